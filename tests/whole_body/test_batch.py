"""Tests of whole-body control of many states in one call: each is a tick of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array
from whole_body.humanoids import FEET, soles, talos, targets

TASKS = (
    fw.CenterOfMassTask(weight=100.0),
    fw.AngularMomentumTask(weight=0.01),
    fw.FrameTask("torso_2_link", "orientation"),
    fw.FrameTask("arm_left_7_link", "position", name="hand"),
    fw.FrameTask("gripper_right_base_link", name="tool", weight=(1.0, 1.0, 2.0, 0.1, 0.1, 0.1)),
    fw.PostureTask(weight=0.01, priority=1),
)


def controller() -> fw.WholeBodyControl:
    return fw.WholeBodyControl(talos().robot, TASKS, soles())


def states(shape: tuple[int, ...], speed: float = 0.1) -> tuple[Array, Array]:
    robot, q = talos()
    rng = np.random.default_rng(3)
    moves, v = speed * rng.standard_normal((2, *shape, robot.nv))
    return robot.integrate(q, moves), v


def tick(wbc: fw.WholeBodyControl, *state: Any, **named: Any) -> fw.WholeBodyResult:
    """Return the results of a tick that begins without active limits."""
    begin = wbc.state
    begin.size[0] = 0
    wbc.state = begin
    return wbc(*state, **named)


def assert_equal(batch: fw.WholeBodyBatch, at: tuple[int, ...], one: fw.WholeBodyResult) -> None:
    for name in ("tau", "acceleration", "forces", "wrenches", "status", "steps"):
        np.testing.assert_array_equal(getattr(batch, name)[at], getattr(one, name), err_msg=f"{name}{list(at)}")


@pytest.mark.parametrize("threads", [1, 3, None])
def test_each_state_has_the_results_of_its_own_tick(threads: int | None) -> None:
    """Check all bits, with targets, references and contacts that are common to states or their own."""
    robot, q0 = talos()
    shape = 4, 5
    q, v = states(shape)
    v[1, 2] *= 300.0  # limits exclude each other
    wanted = targets(TASKS, robot, q0) | {"tool": robot.frame_placement("gripper_right_base_link")(q[:, :1])}
    velocities: dict[str, Any] = {"center of mass": 0.1 * v[..., :3], "posture": v[0, :, 6:], "hand": 0.2}
    accelerations = {"tool": v[..., :6]}
    closed = np.ones((*shape, 2), bool)
    closed[::2, 1, 0] = closed[3, 1:, 1] = False
    found = controller().batch(
        q, v, wanted, velocities=velocities, accelerations=accelerations, contacts=closed, threads=threads
    )
    assert found.tau.shape == (*shape, robot.nv)
    assert found.forces.shape == (*shape, 8, 3)
    assert {*found.status.flat} == {"solved", "infeasible"}
    wbc = controller()
    for at in np.ndindex(shape):
        one = tick(
            wbc, q[at], v[at], wanted | {"tool": wanted["tool"][at[0], 0]},
            velocities={"center of mass": 0.1 * v[at][:3], "posture": v[0, at[1], 6:], "hand": 0.2},
            accelerations={"tool": v[at][:6]},
            contacts=[foot for foot, shut in zip(FEET, closed[at], strict=True) if shut],
        )  # fmt: skip
        assert_equal(found, at, one)


def test_targets_and_active_limits_of_the_controller_stay() -> None:
    robot, q0 = talos()
    wbc, wanted = controller(), targets(TASKS, robot, q0)
    q, v = states((6,), 0.02)
    first = wbc(q[0], v[0], wanted)
    before = wbc.state
    lower = wanted["center of mass"] - [0.0, 0.0, 0.05]
    named: dict[str, Any] = {"contacts": FEET[:1], "velocities": {"posture": 0.1}}
    squat = wbc.batch(q, v, {"center of mass": lower}, **named)
    for own, same in zip(wbc.state, before, strict=True):
        np.testing.assert_array_equal(own, same)
    kept = wbc.batch(q[0], v[0])  # with the targets of the tick, and all contacts, also in memory that a batch has used
    np.testing.assert_allclose(kept.tau, first.tau, atol=1e-6 * np.abs(first.tau).max())
    assert kept.status == "solved"
    for k in range(6):
        assert_equal(squat, (k,), tick(controller(), q[k], v[k], wanted | {"center of mass": lower}, **named))


def test_a_batch_without_states_is_empty() -> None:
    robot, q0 = talos()
    found = controller().batch(np.zeros((0, robot.nq)), np.zeros((0, robot.nv)), targets(TASKS, robot, q0))
    assert (found.tau.shape, found.status.shape) == ((0, robot.nv), (0,))


def test_errors_name_what_is_wrong() -> None:
    robot, q0 = talos()
    wbc, wanted = controller(), targets(TASKS, robot, q0)
    q, v = states((3,))
    long = q.copy()
    long[1, 3:7] *= 1.1
    for (q_given, v_given), named, message in (
        ((q[:, 1:], v), {}, r"WholeBodyControl: q must have shape \(..., 39\); got \(3, 38\)"),
        ((q, v[:2]), {}, r"leading axes do not broadcast: q \(3,\), v \(2,\)"),
        ((q, v * np.nan), {}, "v has numbers that are not finite"),
        ((long, v), {}, r"state \[1\] of q: the quaternion of joint 'root_joint'"),
        ((q, v), {"velocities": {"posture": np.zeros((3, 2))}}, r"'posture' must have shape \(..., 32\); got \(3, 2\)"),
        ((q, v), {"contacts": np.ones((3, 4), bool)}, r"contacts must have shape \(..., 2\); got \(3, 4\)"),
        ((q, v), {"contacts": ["left"]}, "there is no contact 'left'"),
        ((q, v), {"threads": 0}, "threads must be a whole number of at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            wbc.batch(q_given, v_given, wanted, **named)
    with pytest.raises(ValueError, match="give targets for center of mass"):
        wbc.batch(q, v, {name: x for name, x in wanted.items() if name != "center of mass"})
