"""Tests of solutions of optimal control in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import featherweight as fw  # noqa: E402
from featherweight.torch import plan  # noqa: E402
from optimal_control.problems import pendulum  # noqa: E402
from optimal_control.test_free_steps import swing  # noqa: E402


def test_gradients_are_those_of_the_plan_function_and_learn_a_target() -> None:
    """Check one problem, many problems, and a gradient descent that finds the target that leads to given controls."""
    ocp = fw.OptimalControl(pendulum(), dt=0.04, knots=20)
    ocp.add(fw.FrameTask("tip", kind="position"), weight=50.0)
    ocp.add(fw.JointVelocities(), weight=0.05)
    ocp.add(fw.Effort(), weight=1e-2)
    solve = plan(ocp, tolerance=1e-10, iterations=1000)
    q = torch.tensor([0.1, 0.2], dtype=torch.float64, requires_grad=True)
    tip = torch.tensor([0.7, 0.0, -0.4], dtype=torch.float64, requires_grad=True)
    found = solve(q, targets={"tip": tip})
    ((found.u**2).sum() + found.cost).backward()
    f = ocp.plan_function(tolerance=1e-10)
    given = [q.detach().numpy()[None], np.zeros((1, 2)), tip.detach().numpy()[None, None]]
    solved = f(*given)
    bars = [np.zeros_like(solved.q), np.zeros_like(solved.v), 2.0 * solved.u, np.ones(1)]
    expected = f.pullback(solved, given[2:], bars)
    np.testing.assert_allclose(q.grad, expected[0][0], rtol=1e-9)
    np.testing.assert_allclose(tip.grad, expected[2][0, 0], rtol=1e-9)
    many = solve(torch.stack([q, q]), targets={"tip": tip})
    assert many.u.shape == (2, 20, 2) and solve(q.float(), targets={"tip": tip}).u.dtype == torch.float32

    guess = torch.tensor([0.6, 0.0, -0.5], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([guess], max_iter=40, line_search_fn="strong_wolfe")

    def loss() -> Any:
        optimizer.zero_grad()
        off = ((solve(q.detach(), targets={"tip": guess}).u - found.u.detach()) ** 2).sum()
        off.backward()
        return off

    optimizer.step(loss)
    np.testing.assert_allclose(guess.detach()[[0, 2]], tip.detach()[[0, 2]], atol=1e-3)
    with pytest.raises(TypeError, match="tip must be a tensor"):
        solve(q, targets={"tip": [0.7, 0.0, -0.4]})
    with pytest.raises(TypeError, match=r"plan takes a featherweight\.OptimalControl"):
        plan(ocp.robot)  # type: ignore[arg-type]


def test_the_gradient_of_a_duration_leads_to_shorter_plans() -> None:
    """Check that the plan becomes shorter by the amount that the gradient predicts."""
    solve = plan(swing((0.01, 0.1)), tolerance=1e-14, constraint_tolerance=1e-9, iterations=500)
    q = torch.zeros(2, dtype=torch.float64)
    target = torch.tensor([0.5, -0.3], dtype=torch.float64, requires_grad=True)
    found = solve(q, targets={"posture": target})
    duration = found.dt.sum()
    duration.backward()
    closer = target.detach() - 1e-3 * target.grad / target.grad.norm()
    shorter = solve(q, targets={"posture": closer}).dt.sum()
    assert float((duration - shorter).detach()) == pytest.approx(1e-3 * float(target.grad.norm()), rel=0.02)
