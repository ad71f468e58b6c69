"""Problems of optimal control that several tests use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import featherweight as fw
from featherweight.array_types import Array
from featherweight.model.generators import from_parents
from featherweight.optimal_control.layout import Layout
from featherweight.optimal_control.spans import Span
from featherweight.robots.example_files import example

HAND, FEET = "panda_hand_tcp", ("lf_foot", "rf_foot", "lh_foot", "rh_foot")
PANDA_START = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8, 0.02])


def power(v: Any, tau: Any) -> Any:
    return [x * y for x, y in zip(v, tau, strict=True)]


def away(placements: Any, parameters: Any) -> Any:
    """Return the distance of a frame from a point."""
    d = [placements[0][i][3] - parameters[i] for i in range(3)]
    return [np.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])]


def pull(q: Any, a: Any, force: Any) -> Any:
    return [a[0] * force[2], q[2] * force[0]]


def panda(knots: int = 20, **options: Any) -> fw.OptimalControl:
    """Return a reach with terms of all kinds that need no contacts; one finger follows the other."""
    robot = fw.load(example("panda"))
    ocp = fw.OptimalControl(robot, dt=0.02, knots=knots, **options)
    ocp.add(fw.FrameTask(HAND, weight=[1, 1, 1, 0.1, 0.1, 0]), weight=np.append(np.full(knots, 1.0), 1e3))
    ocp.add(fw.PostureTask(), weight=0.1)
    ocp.add(fw.JointVelocities(), weight=0.1)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.add(fw.Residual(power, size=robot.nv), weight=1e-4, at="running", width=5.0)
    ocp.add(fw.Residual(away, size=1, parameters=3, frames=["panda_link5"]), weight=0.01)
    return ocp


def panda_arguments(ocp: fw.OptimalControl) -> dict[str, Any]:
    target = ocp.robot.frame_placement(HAND)(PANDA_START)
    target[:3, 3] += [0.1, 0.2, -0.1]
    return {"targets": {HAND: target}, "parameters": {"away": [0.3, 0.1, 0.2]}}


def standing(robot: fw.Robot, bend: float) -> Array:
    q = robot.neutral()
    q[7:] = np.array([[0.0, bend, -2.0 * bend]] * 2 + [[0.0, -bend, 2.0 * bend]] * 2).ravel()
    q[2] = -robot.frame_placement(FEET)(q)[:, 2, 3].min()
    return q


def hyq(friction: float, stance: int = 12, flight: int = 8) -> tuple[fw.OptimalControl, Array, dict[str, Any]]:
    """Return a jump: stance on four point contacts, and flight."""
    robot = fw.load(example("hyq_no_sensors"), base="floating")
    feet = [fw.BilateralContact(foot, kind="point") for foot in FEET]
    ocp = fw.OptimalControl(robot, dt=0.02, phases=[fw.Phase(stance, feet), fw.Phase(flight)])
    root, *joints = [j.name for j in robot.joints]
    start, goal = standing(robot, 0.75), standing(robot, 0.6)
    goal[2] = start[2] + 0.2
    ocp.add(fw.PostureTask([root], name="trunk"), weight=1e4, at="end")
    ocp.add(fw.PostureTask(joints, name="joints"), weight=10.0)
    ocp.add(fw.JointVelocities(weight=np.append(np.full(6, 100.0), np.full(12, 1.0))), weight=10.0, at="end")
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.add(fw.ContactForces(), weight=1e-5)
    ocp.add(fw.Residual(pull, size=2), weight=1e-6, at=range(stance))
    ocp.limit(friction=friction)
    return ocp, start, {"targets": {"trunk": goal, "joints": goal}}


def hopper(**passive: dict[str, float]) -> tuple[fw.Robot, Array]:
    """Return a floating trunk on a leg with a hip and a knee, and its posture on the ground; joints may have damping and
    springs.
    """
    trunk, rod = (fw.Inertia(m, (0.0, 0.0, z), (0.03, 0.0, 0.0, 0.03, 0.0, 0.01)) for m, z in ((4.0, 0.1), (1.0, -0.2)))
    end, across = fw.Pose(p=(0.0, 0.0, -0.4)), (0.0, 1.0, 0.0)
    joints = [
        fw.Joint("root", fw.JointType.FLOATING, None, "trunk"),
        fw.Joint("hip", fw.JointType.REVOLUTE, "trunk", "thigh", axis=across),
        fw.Joint("knee", fw.JointType.REVOLUTE, "thigh", "shank", end, across),
    ]
    joints = [replace(j, **passive.get(j.name, {})) for j in joints]  # type: ignore[arg-type]
    bodies = [fw.Body("trunk", trunk), fw.Body("thigh", rod), fw.Body("shank", rod)]
    robot = fw.build(fw.describe(bodies, joints, frames=[fw.Frame("foot", "shank", end)], name="hopper"))
    q = robot.neutral()
    q[2], q[7:] = 0.8 * np.cos(0.5), [-0.5, 1.0]
    return robot, q


def leg(stance: int = 20, flight: int = 20, **options: Any) -> tuple[fw.OptimalControl, Array]:
    """Return a leg with a loop under a trunk on a slider, on its toe and then in flight."""
    d = fw.robots.planar_leg_linkage()
    slider = fw.Joint("slider", fw.JointType.PRISMATIC, None, "trunk", axis=(1.0, 0.0, 0.0))
    hip, *others = d.joints
    d = replace(
        d, bodies=(fw.Body("trunk", fw.Inertia(0.6)), *d.bodies), joints=(slider, replace(hip, parent="trunk"), *others),
        frames=(fw.Frame("toe", "foot", fw.Pose(p=(0.127, 0.0, 0.0))),), gravity=(-9.81, 0.0, 0.0),
        independent=("slider", *d.independent),
    )  # fmt: skip
    robot = fw.build(d)
    toe = [fw.BilateralContact("toe", rows=np.eye(6)[:2])]
    ocp = fw.OptimalControl(
        robot, dt=0.005, phases=[fw.Phase(stance, toe), fw.Phase(flight)],
        driven=["base_to_thigh", "thigh_to_driver"], **options,
    )  # fmt: skip
    ocp.add(fw.PostureTask(["slider"], name="height"), weight=1e4, at="end")
    ocp.add(fw.JointVelocities(), weight=0.1)
    ocp.add(fw.Effort(), weight=1.0)
    ocp.add(fw.FrameTask("toe", kind="position", weight=[0, 1, 0]), weight=10.0)
    return ocp, np.array([0.1034, 3.9099, -2.3, 2.3, -2.3])


def sliders(count: int) -> fw.Robot:
    """Return masses on parallel sliders without gravity: a linear system."""
    d = from_parents([-1] * count, rng=1, joint_types=["prismatic"], name="sliders")
    return fw.build(replace(d, gravity=(0.0, 0.0, 0.0)))


def pendulum() -> fw.Robot:
    """Return two links in a plane."""
    rod, end = fw.Inertia(1.0, (0.0, 0.0, -0.25), (0.02, 0.0, 0.0, 0.02, 0.0, 1e-4)), fw.Pose(p=(0.0, 0.0, -0.5))
    shoulder = fw.Joint("shoulder", fw.JointType.CONTINUOUS, None, "upper", axis=(0.0, 1.0, 0.0), effort=6.0)
    elbow = fw.Joint("elbow", fw.JointType.CONTINUOUS, "upper", "lower", end, (0.0, 1.0, 0.0), effort=3.0)
    bodies, frames = [fw.Body("upper", rod), fw.Body("lower", rod)], [fw.Frame("tip", "lower", end)]
    return fw.build(fw.describe(bodies, [shoulder, elbow], frames=frames, name="double pendulum"))


def goes_on(controller: Any) -> Array:
    """Return the next controls, between ticks and after them; a function that other processes can import."""
    robot = controller.ocp.robot
    q = leg()[1] if robot.closed else np.full(2, 0.05)
    found = [controller(t, q, np.full(robot.nv, 0.1)) for t in (0.082, 0.105, 0.131, 0.152)]
    return np.array([x[1] if isinstance(x, tuple) else x for x in found])


def layout_of(ocp: fw.OptimalControl) -> Layout:
    """Return the functions of a problem, and the layout of its rows and parameters."""
    return ocp._layout


def spans_of(ocp: fw.OptimalControl, begin: int = 0) -> list[Span]:
    """Return the spans of the phases of a horizon that begins at a knot of a problem that repeats."""
    return ocp._spans(begin)
