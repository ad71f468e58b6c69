"""Tests of derivatives of solutions by initial states, targets and parameters, against differences of solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array
from optimal_control.problems import leg, pendulum
from optimal_control.test_free_steps import FREE, hop

EXACT = {"iterations": 500, "tolerance": 1e-17, "constraint_tolerance": 1e-9}


def reach(limited: bool, integrator: str = "semi-implicit", step: Any = 0.04) -> fw.OptimalControl:
    ocp = fw.OptimalControl(pendulum(), dt=step, knots=10, integrator=integrator)
    ocp.add(fw.FrameTask("tip", kind="position"), weight=50.0)
    ocp.add(fw.JointVelocities(), weight=0.05)
    ocp.add(fw.Residual(lambda u, parameters: [parameters[0] * x for x in u], size=2, parameters=1, name="scaled"), weight=1e-2)
    if limited:
        ocp.limit(efforts=True)
    return ocp


def compare(ocp: fw.OptimalControl, given: list[Array], eps: float, rel: float = 1e-3) -> Any:
    """Compare cotangents, for random ones of the solution, with central differences of two solutions, accurate to 1e-8 /
    eps.
    """
    f, rng = ocp.plan_function(**EXACT), np.random.default_rng(0)
    solved = f(*given)
    bars: list[Any] = [rng.standard_normal(x.shape) for x in solved[:5]]
    found = f.pullback(solved, given[2:], bars)

    def paired(k: int, x: Array) -> Any:
        values = f(*given[:k], x, *given[k + 1 :])
        return sum((b * y).sum() for b, y in zip(bars, values, strict=False))

    for k, name in enumerate(f.names):
        if name == "q":
            ends = [ocp.robot.integrate(given[k], s * eps * np.ones(ocp.robot.nv)) for s in (1.0, -1.0)]
        else:
            ends = [given[k] + s * eps * rng.standard_normal(given[k].shape) for s in (1.0, 1.0)]
            ends[1] = 2.0 * given[k] - ends[0]
        difference = paired(k, ends[0]) - paired(k, ends[1])
        assert (found[k] * (ends[0] - ends[1])).sum() == pytest.approx(difference, rel=rel), name
    return f, solved


@pytest.mark.parametrize(("limited", "integrator"), [(False, "semi-implicit"), (True, "semi-implicit"), (False, "rk4")])
def test_derivatives_are_those_of_solutions(limited: bool, integrator: str) -> None:
    """Check joint forces at their limits, too."""
    ocp, n = reach(limited, integrator), 2
    tips = np.array([[[0.7, 0.0, -0.4]], [[0.6, 0.0, -0.5]]])
    given = [np.array([[0.1, 0.2], [0.3, -0.2]]), np.zeros((n, 2)), tips, np.ones((n, 11, 1))]
    _, solved = compare(ocp, given, 3e-4)
    low, high = ocp.robot.effort_bounds
    assert (np.minimum(abs(solved.u - low), abs(solved.u - high)) < 1e-6).any() == limited


@pytest.mark.parametrize(("limited", "integrator"), [(False, "semi-implicit"), (True, "semi-implicit"), (False, "rk4")])
def test_derivatives_with_free_steps_are_those_of_solutions(limited: bool, integrator: str) -> None:
    """Check a weight of time that is a parameter; each problem has its own."""
    ocp = reach(limited, integrator, (0.01, 0.06))
    ocp.add(fw.Residual(lambda a, parameters: [parameters[0]], size=1, parameters=1, name="time"), weight=3.0)
    tips, times = np.array([[[0.7, 0.0, -0.4]], [[0.6, 0.0, -0.5]]]), np.array([[[1.0]], [[0.01]]])
    q = np.array([[0.1, 0.2], [0.3, -0.2]] if limited else [[0.4, 0.2], [0.3, -0.6]])
    _, solved = compare(ocp, [q, np.zeros((2, 2)), tips, np.ones((2, 11, 1)), times], 1e-3)
    assert (solved.steps > 0.011).all() and (solved.steps < 0.059).all()
    np.testing.assert_array_equal(solved.steps, solved.steps[:, :1] * np.ones(10))
    low, high = ocp.robot.effort_bounds
    assert (np.minimum(abs(solved.u - low), abs(solved.u - high)) < 1e-6).any() == limited


def test_derivatives_with_free_steps_of_phases() -> None:
    """Check a hop with an impact; the step of the first phase is at its upper bound."""
    ocp, start, targets = hop([(0.005, 0.045), FREE, FREE])
    f = ocp.plan_function()
    _, solved = compare(ocp, [start[None], np.zeros((1, ocp.robot.nv)), *(targets[x][None, None] for x in f.names[2:])], 1e-4)
    assert solved.steps[0, 0] == 0.045 and (solved.steps[0, 15:] < 0.04).all()


def test_a_leg_with_a_loop_and_a_contact() -> None:
    ocp, start = leg()
    f = ocp.plan_function()
    values = [np.full((1, 1, *f.shapes[name]), 0.0 if name == "toe" else 0.6) for name in f.names[2:]]
    compare(ocp, [start[None], np.zeros((1, ocp.robot.nv)), *values], 1e-4, 3e-3)  # solutions scatter by 1e-7


def test_problems_without_a_solution_and_wrong_shapes_are_named() -> None:
    ocp = reach(True)
    f, q, v = ocp.plan_function(iterations=1), np.zeros((1, 2)), np.zeros((1, 2))
    with pytest.raises(ValueError, match="1 of 1 problems have no solution that could be differentiated, problem 0 first"):
        f(q, v, np.array([[[0.7, 0.0, -0.4]]]), np.ones((1, 1, 1)))
    tip, scale = np.zeros(3), np.ones(1)
    with pytest.raises(ValueError, match="targets and parameters must be scaled, tip; got tip"):
        f.arranged(q, v, {"tip": tip}, {}, np.broadcast_to)
    with pytest.raises(ValueError, match=r"tip must have shape \(3,\), \(11 or 1, ...\)"):
        f.arranged(q, v, {"tip": np.zeros((5, 3))}, {"scaled": scale}, np.broadcast_to)
    shapes = [x.shape for x in f.arranged(q[0], v[0], {"tip": tip}, {"scaled": np.ones((11, 1))}, np.broadcast_to)]
    assert shapes == [(1, 2), (1, 2), (1, 1, 3), (1, 11, 1)]
