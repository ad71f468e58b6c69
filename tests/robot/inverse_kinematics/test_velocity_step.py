"""Velocities of differential inverse kinematics beside null spaces of singular values and the solver DAQP.

DAQP is a dual active-set method (Arnström, Bemporad and Axehill 2022).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import featherweight as fw
from featherweight.array_types import Array
from oracles.mechanisms import MECHANISMS
from oracles.robots import example

daqp = pytest.importorskip("daqp")

DT, RANK = 0.05, 1e-9


def solved(S: Array, t: Array, rows: Array, lower: Array, upper: Array) -> Array:
    """Return the y with the smallest |S y - t| for which rows @ y is within bounds."""
    moving = np.linalg.norm(rows, axis=1) > RANK  # rounding errors contradict bounds of others
    rows, lower, upper = np.ascontiguousarray(rows[moving]), lower[moving], upper[moving]
    kinds = np.zeros(len(lower), dtype=np.int32)
    y, _, flag, _ = daqp.solve(S.T @ S, -S.T @ t, rows, upper, lower, kinds, primal_tol=1e-11)
    assert flag == 1
    return np.asarray(y)


def reference(ik: fw.InverseKinematics, q: Array, targets: Any, gain: float, damping: float, speed: Any) -> Array:
    """Return the step x (n) of all unknowns, by priorities."""
    w = ik._differential._step
    J, e = ik._differential.rows(q, ik.flat_targets(targets))
    J, n = J[:, w.column], len(w.column)
    most = np.full(n, np.inf)
    most[w.independent] = DT * speed
    down, up = w.lower - q[w.coordinate], w.upper - q[w.coordinate]
    lower, upper = np.clip(down, -most, most), np.clip(up, -most, most)
    x, Z, loops = np.zeros(n), np.eye(n), w.begin[0]
    if loops:
        x = np.linalg.lstsq(J[:loops], e[:loops], rcond=RANK)[0]
        Z = scipy.linalg.null_space(J[:loops], rcond=RANK)
    for begin, end in zip(w.begin, w.begin[1:], strict=False):
        A = J[begin:end]
        S, t = np.vstack([A @ Z, damping**0.5 * Z]), np.append(gain * e[begin:end] - A @ x, -(damping**0.5) * x)
        x = x + Z @ solved(S, t, Z, np.minimum(lower - x, 0.0), np.maximum(upper - x, 0.0))
        _, sizes, V = np.linalg.svd(A @ Z)
        Z = Z @ V[np.count_nonzero(sizes > RANK * np.linalg.norm(A)) :].T
        if not Z.shape[1]:
            break
    return x


def frame_targets(robot: fw.Robot, tasks: Sequence[Any], q: Array, rng: np.random.Generator, away: float) -> list[Array]:
    """Return targets that the robot reaches near q, each at another configuration."""
    targets: list[Array] = []
    for task in tasks:
        there = robot.integrate(q, away * rng.standard_normal(robot.nv))
        if isinstance(task, fw.PostureTask):
            targets.append(there)
        elif isinstance(task, fw.CenterOfMassTask):
            targets.append(robot.center_of_mass(there))
        else:
            T = robot.frame_placement(task.frame)(there)
            targets.append({"pose": T, "position": T[:3, 3], "orientation": T[:3, :3]}[task.kind])
    return targets


HAND = "panda_hand"
CASES: dict[str, tuple[str, list[Any]]] = {
    "redundant": ("panda", [fw.FrameTask(HAND)]),
    "weights": ("panda", [fw.FrameTask(HAND, weight=[1, 2, 0, 1, 0, 3]), fw.PostureTask(weight=1e-3)]),
    "two priorities": ("panda", [fw.FrameTask(HAND), fw.PostureTask(priority=1)]),
    "posture first": ("panda", [fw.PostureTask(["panda_joint2"]), fw.FrameTask(HAND, priority=1)]),
    "three priorities": (
        "panda",
        [
            fw.FrameTask(HAND, "position"),
            fw.FrameTask(HAND, "orientation", priority=1, name="turn"),
            fw.PostureTask(priority=2),
        ],
    ),
    "one task twice": ("panda", [fw.FrameTask(HAND), fw.FrameTask(HAND, priority=1, name="it"), fw.PostureTask(priority=2)]),
    "six joints": ("ur5", [fw.FrameTask("tool0"), fw.PostureTask(priority=1)]),
    "legs": ("hyq", [fw.FrameTask("lf_foot", "position"), fw.FrameTask("rh_foot", "position"), fw.CenterOfMassTask()]),
}
LIMITS = ({"speed": np.inf}, {"speed": 1.0}, {"speed": 0.2, "gain": 0.5, "damping": 1e-4})


@pytest.mark.parametrize("case", CASES)
def test_velocities_are_those_of_daqp(case: str) -> None:
    """Check steps from random configurations, from limits, and with speed limits.

    Both methods have rounding errors of 1e-16 divided by the damping of 1e-6.
    """
    name, tasks = CASES[case]
    robot, rng = example(name), np.random.default_rng(0)
    ik = fw.InverseKinematics(robot, tasks)
    at_bounds = 0
    for k in range(20):
        q = robot.random_configuration(rng=k)
        if k % 2 and name == "panda":
            q = np.where(rng.random(9) < 0.5, robot.upper, q)
        targets = frame_targets(robot, tasks, q, rng, 0.2)
        for more in LIMITS:
            options = {"gain": 1.0, "damping": 1e-6, **more}
            v = ik.velocity(q, targets, DT, **options)
            x = reference(ik, q, targets, **options)
            np.testing.assert_allclose(DT * v, x, rtol=0, atol=1e-8)
            at_bounds += int(np.count_nonzero(abs(v) == options["speed"]))
    assert at_bounds > 20


@pytest.mark.parametrize("bend", [0.0, 1e-9, 1e-5])
def test_singular_configurations_have_velocities(bend: float) -> None:
    """Check a straight arm, which loses directions of motion."""
    robot, tasks = example("ur5"), CASES["six joints"][1]
    ik, rng = fw.InverseKinematics(robot, tasks), np.random.default_rng(1)
    q = np.full(6, bend)
    for more in LIMITS:
        options = {"gain": 1.0, "damping": 1e-6, **more}
        targets = frame_targets(robot, tasks, q, rng, 0.3)
        v, x = ik.velocity(q, targets, DT, **options), reference(ik, q, targets, **options)
        np.testing.assert_allclose(DT * v, x, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["four_bar", "planar_leg", "platform", "geared_chain", "mini_cheetah", "own"])
def test_loops_precede_all_tasks(name: str) -> None:
    robot = fw.build(MECHANISMS[name]())
    tasks = [fw.FrameTask(robot.frames[-1].name), fw.PostureTask(priority=1)]
    ik, rng = fw.InverseKinematics(robot, tasks), np.random.default_rng(2)
    for k in range(10):
        q = robot.random_configuration(rng=k)
        targets = frame_targets(robot, tasks, q, rng, 0.02)
        for more in LIMITS:
            options = {"gain": 1.0, "damping": 1e-6, **more}
            v = ik.velocity(q, targets, DT, **options)
            x = reference(ik, q, targets, **options)[ik._differential._step.independent]
            np.testing.assert_allclose(DT * v, x, rtol=0, atol=1e-8)


def test_limits_that_exclude_each_other_are_reported() -> None:
    """Check a joint beyond its limit, whose way back a ball obstructs."""
    shape = fw.Shape("rod", "link", fw.ShapeType.SPHERE, (0.1,), fw.Pose(p=(1.0, 0.0, 0.0)))
    ball = fw.Shape("ball", None, fw.ShapeType.SPHERE, (0.1,), fw.Pose(p=(1.0, 0.0, 0.0)))
    joint = fw.Joint("joint", fw.JointType.REVOLUTE, None, "link", fw.Pose(), axis=(0.0, 0.0, 1.0), lower=-0.1, upper=0.1)
    inertia = fw.Inertia(1.0, (0.5, 0.0, 0.0), (0.01, 0.0, 0.0, 0.1, 0.0, 0.1))
    robot = fw.build(fw.describe([fw.Body("link", inertia)], [joint], shapes=[shape]))
    ik = fw.InverseKinematics(robot, [fw.PostureTask(), fw.ClearanceTask(fw.clearance(robot, [ball]), 0.2)])
    assert ik.velocity([0.7], {"posture": [0.0]}, DT, speed=4.0) == pytest.approx([-4.0])
    with pytest.raises(ValueError, match="no velocity within limits"):
        ik.velocity([0.3], {"posture": [0.0]}, DT, speed=1.0)
    assert ik.velocity([0.1], {"posture": [0.0]}, DT, speed=1.0) == pytest.approx([0.0], abs=1e-9)


def test_threads_take_turns() -> None:
    robot = example("panda")
    ik = fw.InverseKinematics(robot, fw.FrameTask(HAND))
    problems = robot.random_configuration(rng=3, size=200)
    pose: Callable[[Array], Array] = robot.frame_placement(HAND)
    target = pose(problems[0])
    alone = [ik.velocity(q, target, DT, speed=1.0) for q in problems]
    with ThreadPoolExecutor(4) as pool:
        together = [*pool.map(lambda q: ik.velocity(q, target, DT, speed=1.0), problems)]
    assert np.array_equal(alone, together)
