"""Tests of inverse kinematics that avoids obstacles and self-collisions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array

LEAST = 0.03  # [m]
BALL = fw.Shape("ball", None, fw.ShapeType.SPHERE, (0.15,), fw.Pose(p=(0.6, 0.3, 0.0)))
TIP = fw.Frame("tip", "link3", fw.Pose(p=(0.4, 0.0, 0.0)))


def arm(coupled: bool) -> fw.Robot:
    """Return four links of 0.4 m in a plane, covered by capsules; if coupled, the last joint follows the one before."""
    inertia = fw.Inertia(1.0, (0.15, 0.0, 0.0), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01))
    names = [f"link{k}" for k in range(4)]
    along = fw.Pose(((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)), (0.2, 0.0, 0.0))
    shapes = [fw.Shape(f"{name}_shape", name, fw.ShapeType.CAPSULE, (0.04, 0.26), along) for name in names]
    joints = [
        fw.Joint(f"joint{k}", fw.JointType.REVOLUTE, names[k - 1] if k else None, name, fw.Pose(p=(0.4 * (k > 0), 0.0, 0.0)),
                 axis=(0.0, 0.0, 1.0), lower=-3.0, upper=3.0)
        for k, name in enumerate(names)
    ]  # fmt: skip
    couplings = [fw.Coupling("together", "joint3", (("joint2", (0.5,)),))] if coupled else []
    bodies = [fw.Body(name, inertia) for name in names]
    return fw.build(fw.describe(bodies, joints, shapes=shapes, couplings=couplings, frames=[TIP]))


def distances(robot: fw.Robot, term: Any, q: Array, *parameters: Any) -> Array:
    """Return the least distance of the term at each q (n, nq)."""
    placements = robot.frame_placement(list(term.frames))(q)
    return np.array([min(term.function(T, *parameters)) for T in placements])


def test_solutions_keep_their_distance_from_obstacles_and_from_other_links() -> None:
    robot = arm(True)
    term = fw.clearance(robot, [BALL], pairs=[("link0", "link3")])
    reach = fw.FrameTask("tip", "position", weight=[1, 1, 0])
    rng = np.random.default_rng(0)
    places = robot.frame_placement("tip")(robot.random_configuration(rng=rng, size=300))[:, :3, 3]
    targets = places[np.linalg.norm(places - BALL.placement.p, axis=1) > 0.3]
    careless = fw.InverseKinematics(robot, reach).solve(targets).q
    assert (distances(robot, term, careless) < LEAST - 2e-6).mean() > 0.2
    ik = fw.InverseKinematics(robot, [reach, fw.ClearanceTask(term, LEAST)])
    found = ik.solve(targets)  # the only task with targets
    assert found.converged.mean() > 0.95
    assert distances(robot, term, found.q[found.converged]).min() > LEAST - 2e-6
    hands = robot.frame_placement("tip")(found.q[found.converged])[:, :3, 3]
    np.testing.assert_allclose(hands, targets[found.converged], rtol=0, atol=2e-6)
    short = np.maximum(0.0, LEAST - distances(robot, term, careless))  # a lower bound of the norm of all violations
    errors = ik.errors(careless, ik.flat_targets({"tip": targets}))[:, 1]
    assert ik.error_names == ("tip position", "clearance")
    assert (errors >= short - 1e-9).all() and (errors[short == 0.0] < 1e-9).all()


def test_obstacles_may_move_with_the_targets() -> None:
    robot = arm(False)
    term = fw.clearance(robot, [BALL], moving=True)
    ik = fw.InverseKinematics(robot, [fw.FrameTask("tip", "position"), fw.ClearanceTask(term, LEAST, name="away")])
    balls = np.tile(np.eye(4)[:3], (20, 1, 1))
    balls[:, :2, 3] = np.random.default_rng(1).uniform(0.3, 0.8, (20, 2))
    found = ik.solve([np.array([0.1, 1.1, 0.0]), balls.reshape(20, 12)])
    assert found.converged.all()
    for q, ball in zip(found.q, balls, strict=True):
        assert distances(robot, term, q[None], ball.ravel())[0] > LEAST - 2e-6


def test_velocities_approach_obstacles_without_reaching_them() -> None:
    """Check a hand that is pulled into a ball, and stops at the distance."""
    robot = arm(True)
    term = fw.clearance(robot, [BALL])
    ik = fw.InverseKinematics(robot, [fw.FrameTask("tip", "position", weight=[1, 1, 0]), fw.ClearanceTask(term, LEAST)])
    q, near = np.array([-0.5, 0.3, 0.3]), []
    for _ in range(300):
        q = robot.integrate(q, 0.01 * ik.velocity(q, {"tip": BALL.placement.p}, 0.01, gain=0.5, speed=1.0))
        near.append(distances(robot, term, q[None])[0])
    assert min(near) > LEAST - 1e-3 and near[-1] == pytest.approx(LEAST, abs=1e-4)


def test_what_is_no_clearance_is_refused_by_name() -> None:
    robot = arm(False)
    term = fw.clearance(robot, [BALL])
    with pytest.raises(TypeError, match=r"must be what featherweight.clearance returns"):
        fw.ClearanceTask(fw.Effort())
    with pytest.raises(ValueError, match="distance must be a finite number, zero or more"):
        fw.ClearanceTask(term, -0.1)
    with pytest.raises(TypeError, match=r"require\(task.term, low=distance, high=math.inf\)"):
        fw.OptimalControl(robot, knots=3).require(fw.ClearanceTask(term, LEAST), high=math.inf)
