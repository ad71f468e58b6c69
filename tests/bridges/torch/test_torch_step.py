"""Tests of a simulation step in PyTorch: values, gradients through contact, and transformations."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from featherweight.torch import step  # noqa: E402
from simulation.stepped_robot import landing  # noqa: E402


def test_values_and_gradients_are_those_of_the_step_function() -> None:
    """Check steps alone, and robot by robot under vmap."""
    sim, given = landing()
    ours, function, rng = step(sim), sim.step_function(), np.random.default_rng(0)
    bars = rng.standard_normal((3, 8)), rng.standard_normal((3, 7))
    expected, gradients = function(*given), function.pullback(*given, bars[0], bars[1])
    tensors = [torch.tensor(x, requires_grad=True) for x in given]
    q_bar, v_bar = map(torch.tensor, bars)
    for apply in (ours, torch.func.vmap(ours), pickle.loads(pickle.dumps(ours))):
        for x, y in zip(apply(*tensors), expected, strict=True):
            np.testing.assert_array_equal(x.detach(), y)
    after = ours(*tensors)
    ((after.q * q_bar).sum() + (after.v * v_bar).sum()).backward()
    for x, y in zip(tensors, gradients, strict=True):
        np.testing.assert_allclose(x.grad, y, rtol=1e-12, atol=1e-12)
    _, pullback = torch.func.vjp(ours, *(x.detach() for x in tensors))
    for x, y in zip(pullback(type(after)(q_bar, v_bar)), gradients, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_gradients_go_through_a_landing() -> None:
    """Check the gradient of the trunk's velocity after 20 steps with respect to a constant control, against differences."""
    sim, (q, v, _, control) = landing()
    ours = step(sim)

    def landed(u: Any) -> Any:
        state = torch.tensor(q[2]), torch.tensor(v[2])
        for _ in range(20):
            state = ours(*state, control=u)
        return state[1][2]

    u, h = torch.tensor(control[2], requires_grad=True), 1e-4
    landed(u).backward()
    with torch.no_grad():
        assert float(u.grad[0]) == pytest.approx(float(landed(u + h) - landed(u - h)) / (2.0 * h), rel=1e-4)


def test_inputs_may_be_left_out_and_wrong_ones_are_refused() -> None:
    sim, (q, v, _, _) = landing()
    ours, x, u = step(sim), torch.tensor(q), torch.tensor(v)
    np.testing.assert_array_equal(ours(x, u).v, ours(x, u, torch.zeros(7, dtype=x.dtype), torch.zeros(1, dtype=x.dtype)).v)
    assert ours(x.float(), u.float()).v.dtype == torch.float32
    with pytest.raises(ValueError, match=r"tau must have shape \(\.\.\., 7\)"):
        ours(x, u, x)
    with pytest.raises(TypeError, match="v must be a tensor"):
        ours(x, v)
    with pytest.raises(TypeError, match=r"featherweight\.Simulation"):
        step(sim.robot)  # type: ignore[arg-type]
    y = torch.tensor(v, requires_grad=True)
    (slope,) = torch.autograd.grad(ours(x, y).v.square().sum(), y, create_graph=True)
    total = slope.sum()
    with pytest.raises(NotImplementedError, match="second derivatives"):
        total.backward()
