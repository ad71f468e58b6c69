"""Tests of compiled steps of robots with loops: equal to Python's, and closed again by a few Newton steps."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

import numpy as np
import pytest
from loop_generators import closed_mechanism

import featherweight as fw
from featherweight.model import configuration
from featherweight.robot.closing.loops import FACING_AT_LEAST
from featherweight.spatial import Vec3
from featherweight.spatial.lie import quaternion_at
from oracles.mechanisms import MECHANISMS, closed, coupled_across_branches

H = 1e-3  # [s]
ROUNDING = 1e-14


def put_straight(robot: fw.ClosedRobot, q: np.ndarray, x: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    """Return `ahead` with the origins of independent floating and planar joints moved straight from q by x, in fixed axes."""
    result = ahead.copy()
    for joint in robot.joints:
        at, row = joint.q_slice.start, joint.v_slice.start
        if joint.independent and joint.type is fw.JointType.FLOATING:
            result[at : at + 3] = q[at : at + 3] + np.array(
                [*(quaternion_at(q, at + 3).normalized().matrix() @ Vec3(*x[row : row + 3]))]
            )
        elif joint.independent and joint.type is fw.JointType.PLANAR:
            moved = complex(*q[at + 2 : at + 4]) / abs(complex(*q[at + 2 : at + 4])) * complex(*x[row : row + 2])
            result[at : at + 2] = q[at : at + 2] + np.array([moved.real, moved.imag])
    return result


def in_the_plane() -> fw.Description:
    """Return a robot with couplings on bodies of a planar joint."""
    made = coupled_across_branches()
    root = dataclasses.replace(made.joints[0], type=fw.JointType.PLANAR)
    return dataclasses.replace(made, joints=(root, *made.joints[1:]))


def built(name: str, execution: str = "interpreted") -> fw.ClosedRobot:
    return closed(in_the_plane() if name == "planar" else MECHANISMS[name](), execution=execution)


def closing_step(robot: fw.ClosedRobot, q: np.ndarray) -> Any:
    """Return a Newton step towards closed loops."""
    assert robot.step_functions.closing_step is not None
    return robot.step_functions.closing_step(q)


def state(robot: fw.ClosedRobot, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return a state away from singular configurations."""
    rng = np.random.default_rng(seed)
    return min(robot.random_configuration(rng=rng, size=5), key=robot.singularity), rng.standard_normal(robot.nv)


def along(robot: fw.ClosedRobot, q: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return q with each joint moved along its own velocity, where the independent ones are x."""
    return configuration.integrate(robot._coordinates, q, robot.spanning_velocity(q, x)[..., robot._loops.velocity_rows])


@pytest.mark.parametrize("name", [*MECHANISMS, "planar"])
def test_steps_are_those_of_each_joint_along_its_own_velocity(name: str) -> None:
    robot = built(name)
    q, v = state(robot)
    steps = robot.step_functions
    S = steps.spanning_map(q)
    np.testing.assert_allclose(S.T, [robot.spanning_velocity(q, unit) for unit in np.eye(robot.nv)], atol=ROUNDING)
    np.testing.assert_allclose(S @ v, robot.spanning_velocity(q, v), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(robot.tangent_step(q, v), along(robot, q, v), rtol=ROUNDING, atol=ROUNDING)
    d = 0.1 * H * np.ones(robot.nv)
    ahead, end = steps.advance(q, v, d, H)
    straight = put_straight(robot, q, H * v + d, along(robot, q, H * v + d))
    np.testing.assert_allclose(ahead, straight, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(end, steps.carry(v, d, H), rtol=ROUNDING, atol=ROUNDING)
    whole = configuration.difference(robot._coordinates, q, ahead)
    own = [robot._loops.velocity_rows.index(r) for cluster in robot._mechanism.clusters for r in cluster.independent]
    np.testing.assert_allclose(robot.difference(q, ahead), whole[..., own], rtol=1e-12, atol=ROUNDING)


COUPLED = ("coupled", "several", "locked", "repeated", "geared_chain", "belt_chain", "mini_cheetah")
LOOPED = [name for name in MECHANISMS if name not in COUPLED]


@pytest.mark.parametrize("name", LOOPED)
def test_newton_s_steps_close_loops_as_close_does(name: str) -> None:
    robot = built(name)
    q, v = state(robot)
    q, _ = robot.step_functions.advance(q, v, 0.0 * v, H)
    given = q
    for _ in range(4):
        step = closing_step(robot, q)
        assert np.abs(step.residual).max() == pytest.approx(robot.opening(q), rel=1e-6, abs=ROUNDING)
        assert step.singularity == pytest.approx(robot.singularity(q), rel=1e-9)
        if np.abs(step.residual).max() < robot.step_functions.closing_tolerance:
            break
        q = step.ahead
    assert robot.opening(q) < robot.step_functions.closing_tolerance
    np.testing.assert_allclose(q, robot.close(given, attempts=0), rtol=1e-11, atol=1e-11)  # loops of both are closed to 1e-12
    assert (step.margins >= 0.0).all()


@pytest.mark.parametrize("name", ["four_bar", "crank_and_rocker", "platform", "tello"])
def test_joints_that_nothing_determines_stay_to_the_bit(name: str) -> None:
    robot = built(name)
    q = state(robot)[0] + 0.01
    ahead = closing_step(robot, q).ahead
    rows = {r for c in robot._mechanism.clusters for r in c.dependent}
    for whole, j in zip(robot.model.joints, robot.joints, strict=True):
        stays = rows.isdisjoint(range(whole.v_slice.start, whole.v_slice.stop))
        assert np.array_equal(ahead[j.q_slice], q[j.q_slice]) == stays


def test_steps_from_far_away_are_short() -> None:
    robot = built("chain_weld")
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (100, robot.nq))
    longest = np.linalg.norm(closing_step(robot, q).ahead - q, axis=-1)
    assert 0.45 < longest.max() <= 0.5


def test_margins_tell_axes_that_point_the_wrong_way() -> None:
    robot = built("chain_revolute", "traced")
    q = state(robot)[0] + np.random.default_rng(0).uniform(-1.5, 1.5, (200, robot.nq))
    for _ in range(30):
        q = closing_step(robot, q).ahead
    closed = robot.opening(q) < robot.step_functions.closing_tolerance
    margins, cosines = closing_step(robot, q).margins[closed], robot._closing.facing(q)[closed]
    np.testing.assert_array_equal(margins >= 0.0, cosines >= FACING_AT_LEAST)
    assert (margins >= 0.0).any() and not (margins >= 0.0).all()


def test_margins_tell_constraints_that_contradict_others() -> None:
    made = closed_mechanism("planar", 4, rng=2, digits=3)
    robots = [closed(made, execution="interpreted", loop_tolerance=x) for x in (0.1, 0.2)]
    q = robots[0].random_configuration(rng=0)
    steps = [closing_step(r, q) for r in robots]
    assert len(steps[0].residual) < len(robots[0].residual(q)) and (steps[0].margins >= 0.0).all()
    for allowed, step in zip((0.1, 0.2), steps, strict=True):
        others = np.delete(robots[0].residual(q), robots[0].step_functions.solved)
        np.testing.assert_allclose(step.margins[: len(others)], allowed**2 - others**2, atol=ROUNDING)


def test_a_step_tells_that_it_is_near_a_singular_configuration() -> None:
    """Check a flat four-bar, whose crank does not determine how it folds."""
    robot = built("four_bar", "traced")
    for off in (0.0, 1e-9, 1e-6):
        q = np.array([0.0, off, 0.0])
        assert closing_step(robot, q).singularity == pytest.approx(robot.singularity(q), rel=1e-3)
        assert robot.singularity(q) > 0.1 / (off * off + 1e-300)


@pytest.mark.parametrize("name", COUPLED)
def test_couplings_cannot_open(name: str) -> None:
    assert built(name).step_functions.closing_step is None


@pytest.mark.parametrize("mechanism", ["geared", "crank_and_rocker"])
def test_they_are_machine_code(mechanism: str) -> None:
    robot, same = built(mechanism, "traced"), built(mechanism)
    q, v = state(same)
    arguments_of = {
        "spanning_map": [q],
        "advance": [q, v, 0.01 * v, np.array(H)],
        "closing_step": [q + 0.01],
        "integrate": [q, v],
    }
    for name, arguments in arguments_of.items():
        function = getattr(robot.step_functions, name)
        results = [np.full(y.shape, np.nan) for y in function.program.outputs]
        given = [np.ascontiguousarray(x) for x in arguments]
        pointers = (ctypes.c_void_p * (len(given) + len(results)))(*(x.ctypes.data for x in (*given, *results)))
        assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(function.address)(pointers) == 0
        expected = getattr(same.step_functions, name)(*arguments)
        for found, other in zip(results, expected if len(results) > 1 else [expected], strict=True):
            np.testing.assert_allclose(found, other, rtol=1e-9, atol=1e-12)
