"""Tests of second derivatives against differences of first derivatives, and of products with a vector against the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight import robots
from featherweight.model.generators import chain, from_parents
from oracles.robots import robot_of
from oracles.states import Array, States, state

STEP = 1e-5
DIFFERENCE = 1e-7  # error of central differences

ROBOTS: dict[str, Callable[[], fw.Robot]] = {
    "ur5": lambda: robot_of("ur5"),
    "flying": lambda: fw.build(from_parents([-1, 0], rng=1, joint_types=("floating", "revolute"), masses=(0.5, 2.0))),
    "flying rotor": lambda: ROBOTS["flying"]().with_armature({"joint0": 0.3, "joint1": 0.1}),
    "four_bar": lambda: fw.build(robots.four_bar()),
    "leg": lambda: fw.build(robots.planar_leg_linkage()),
}


@pytest.fixture(params=ROBOTS)
def robot(request: pytest.FixtureRequest) -> fw.Robot:
    return ROBOTS[request.param]()


def differences(robot: fw.Robot, f: fw.CompiledFunction[Any], x: States, result: int, by: str) -> Array:
    """Return the derivative of one of the results of f by q or v, along the last axis."""
    columns = []
    for e in STEP * np.eye(robot.nv):
        ends = []
        for d in (e, -e):
            q, v = (robot.integrate(x.q, d), x.v) if by == "q" else (x.q, x.v + d)
            ends.append(f(q, v, x.a)[result])
        columns.append((ends[0] - ends[1]) / (2 * STEP))
    return np.stack(columns, axis=-1)


def test_are_those_of_the_first(robot: fw.Robot) -> None:
    x = state(robot, 2)
    for first, second in (
        (robot.inverse_dynamics_derivatives, robot.inverse_dynamics_second_derivatives),
        (robot.forward_dynamics_derivatives, robot.forward_dynamics_second_derivatives),
    ):
        qq, qv, vv, last = second(*x)
        for ours, result, by in ((qq, 0, "q"), (qv, 0, "v"), (vv, 1, "v"), (last, 2, "q")):
            exact = differences(robot, first, x, result, by)
            assert np.abs(ours - exact).max() <= DIFFERENCE * max(np.abs(exact).max(), 1.0)


def test_with_a_vector_in_front(robot: fw.Robot) -> None:
    x = state(robot, 4)
    weights = np.random.default_rng(0).standard_normal(robot.nv)
    for second, hessian in (
        (robot.inverse_dynamics_second_derivatives, robot.inverse_dynamics_hessian),
        (robot.forward_dynamics_second_derivatives, robot.forward_dynamics_hessian),
    ):
        *tensors, last = second(*x)
        weighted = [np.einsum("i,ijk", weights, t) for t in (*tensors, np.swapaxes(last, -1, -2))]
        for ours, whole in zip(hessian(*x, weights), weighted, strict=True):
            assert np.abs(ours - whole).max() <= 1e-11 * max(np.abs(whole).max(), 1.0)


def test_columns_one_by_one_are_those_of_straight_code() -> None:
    plain = ROBOTS["flying rotor"]()
    x = state(plain, 4)
    straight, rolled = (type(plain)(plain.model, execution) for execution in ("traced", "rolled"))
    for name in ("inverse_dynamics_second_derivatives", "inverse_dynamics_hessian", "forward_dynamics_hessian"):
        functions = getattr(straight, name), getattr(rolled, name)
        assert [f.execution for f in functions] == ["traced", "rolled"]
        exact, ours = (f(*x, *[np.arange(1.0, 1.0 + plain.nv)] * (len(f.program.inputs) - 3)) for f in functions)
        batch = functions[1](*(np.stack([y, y]) for y in x), *[np.arange(1.0, 1.0 + plain.nv)] * (functions[1].nin - 3))
        for y, one, many in zip(exact, ours, batch, strict=True):
            np.testing.assert_allclose(one, y, rtol=0.0, atol=1e-11 * np.abs(y).max())
            np.testing.assert_array_equal(many, [one, one])


def test_hessians_of_large_robots_are_differences() -> None:
    """Check a chain whose straight code would be too large to compile."""
    robot = fw.build(chain(60, rng=1))
    f, rng = robot.inverse_dynamics_hessian, np.random.default_rng(3)
    assert f.execution == "rolled"
    x, weights, along = state(robot, 5), rng.standard_normal(60), STEP * rng.standard_normal(60)
    by_q, by_v, _, by_a = f(*x, weights)
    ends = [robot.inverse_dynamics_derivatives(x.q + d, x.v, x.a) for d in (along, -along)]
    for ours, high, low in zip((by_q, by_v.T, by_a.T), *ends, strict=True):
        exact = weights @ (high - low) / 2.0
        assert np.abs(ours @ along - exact).max() <= DIFFERENCE * np.abs(exact).max()


def test_batches() -> None:
    robot = robot_of("ur5")
    states = [state(robot, k) for k in range(3)]
    whole = robot.forward_dynamics_second_derivatives(*(np.array(x) for x in zip(*states, strict=True)))
    assert whole._fields == ("d2a_dqdq", "d2a_dqdv", "d2a_dvdv", "d2a_dtaudq")
    for k, x in enumerate(states):
        for one, many in zip(robot.forward_dynamics_second_derivatives(*x), whole, strict=True):
            np.testing.assert_allclose(one, many[k], rtol=1e-9, atol=1e-9)


def test_names() -> None:
    robot: Any = robot_of("ur5")
    names = [r.name for r in robot.inverse_dynamics_second_derivatives.program.outputs]
    assert names == ["d2tau_dqdq", "d2tau_dqdv", "d2tau_dvdv", "d2tau_dadq"]
    assert [r.name for r in robot.forward_dynamics_hessian.program.outputs] == ["dqdq", "dqdv", "dvdv", "dqdtau"]
    assert [x.name for x in robot.forward_dynamics_hessian.program.inputs] == ["q", "v", "tau", "a_bar"]
