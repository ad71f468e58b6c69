"""Bodies, robots and measurements that tests of the simulation share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.model.types import WORLD, Vector
from oracles.states import Array

HINGE, SLIDE, BALL = fw.JointType.REVOLUTE, fw.JointType.PRISMATIC, fw.JointType.SPHERICAL
FREE, PLANAR = fw.JointType.FLOATING, fw.JointType.PLANAR
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
DOWN, NO_GRAVITY = (0.0, 0.0, -9.81), (0.0, 0.0, 0.0)
G = 9.81
NONE: Mapping[str, Any] = {}
NOTHING: dict[str, Any] = {"joints": fw.JointOptions(limits=False, dry_friction=False, passive=False)}


def solid_box(mass: float, sides: Sequence[float]) -> fw.Inertia:
    a, b, c = (mass * s * s / 12.0 for s in sides)
    return fw.Inertia(mass, (0.0, 0.0, 0.0), (b + c, 0.0, 0.0, a + c, 0.0, a + b))


def solid_ball(mass: float, radius: float) -> fw.Inertia:
    i = 0.4 * mass * radius * radius
    return fw.Inertia(mass, (0.0, 0.0, 0.0), (i, 0.0, 0.0, i, 0.0, i))


def corners(frame: str, sides: Sequence[float], **surface: float) -> list[fw.ContactSphere]:
    a, b, c = (0.5 * s for s in sides)
    return [fw.ContactPoint(frame, (x, y, z), **surface) for x in (-a, a) for y in (-b, b) for z in (-c, c)]


def free_bodies(*inertias: fw.Inertia, gravity: Vector = DOWN) -> fw.Robot:
    """Return free bodies "body0", "body1", ..."""
    names = [f"body{k}" for k in range(len(inertias))]
    bodies = [fw.Body(name, inertia) for name, inertia in zip(names, inertias, strict=True)]
    joints = [fw.Joint(f"free{k}", FREE, WORLD, name) for k, name in enumerate(names)]
    return fw.build(fw.describe(bodies, joints, gravity=gravity))


def cart(mass: float = 1.0, axis: Vector = X, gravity: Vector = DOWN, **joint: Any) -> fw.Robot:
    """Return a mass on a rail."""
    body = fw.Body("cart", fw.Inertia(mass, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    rail = fw.Joint("rail", SLIDE, WORLD, "cart", axis=axis, **joint)
    return fw.build(fw.describe([body], [rail], gravity=gravity))


def pendulum(mass: float = 1.5, length: float = 0.4, inertia: float = 0.05, **joint: Any) -> fw.Robot:
    """Return a physical pendulum about y, which hangs at zero; `inertia` is about its centre."""
    bob = fw.Body("bob", fw.Inertia(mass, (0.0, 0.0, -length), (inertia, 0.0, 0.0, inertia, 0.0, 0.1 * inertia)))
    return fw.build(fw.describe([bob], [fw.Joint("pivot", HINGE, WORLD, "bob", axis=Y, **joint)]))


def double_pendulum(shoulder: Mapping[str, Any] = NONE, elbow: Mapping[str, Any] = NONE, **more: Any) -> fw.Robot:
    """Return two links of 0.6 m and 1 kg about y, "upper" and "lower", which hang at zero."""
    link = fw.Inertia(1.0, (0.0, 0.0, -0.3), (0.03, 0.0, 0.0, 0.03, 0.0, 0.005))
    joints = [
        fw.Joint("shoulder", HINGE, WORLD, "upper", axis=Y, **shoulder),
        fw.Joint("elbow", HINGE, "upper", "lower", fw.Pose(p=(0.0, 0.0, -0.6)), Y, **elbow),
    ]
    return fw.build(fw.describe([fw.Body("upper", link), fw.Body("lower", link)], joints, **more))


def two_legged(sides: Sequence[float], **hips: Any) -> fw.Robot:
    """Return a trunk on a floating base, "body0", with two legs on hinges about y and x."""
    leg = fw.Inertia(0.5, (0.0, 0.0, -0.1), (0.003, 0.0, 0.0, 0.003, 0.0, 0.001))
    joints = [fw.Joint("base", FREE, WORLD, "body0")]
    for k, y, axis in ((1, 0.15, Y), (2, -0.15, X)):
        joints.append(fw.Joint(f"hip{k}", HINGE, "body0", f"body{k}", fw.Pose(p=(0.0, y, 0.0)), axis, **hips))
    bodies = [fw.Body("body0", solid_box(3.0, sides)), fw.Body("body1", leg), fw.Body("body2", leg)]
    return fw.build(fw.describe(bodies, joints))


def on_feet(robot: fw.Robot, sides: Sequence[float], step: float, **options: Any) -> fw.Simulation:
    """Return a simulation of `two_legged` on a plane, which its feet and the corners of its trunk touch."""
    feet = [fw.ContactSphere(f"body{k}", 0.03, (0.0, 0.0, -0.18)) for k in (1, 2)]
    return fw.Simulation(robot, step, spheres=[*feet, *corners("body0", sides)], ground=fw.Plane(), **options)


def boxes(heights: Any, **options: Any) -> fw.Simulation:
    """Return a fleet of boxes of 0.4 m x 0.3 m x 0.2 m whose corners touch a plane."""
    sides = (0.4, 0.3, 0.2)
    robot = free_bodies(solid_box(2.0, sides))
    q = np.tile(robot.neutral(), (len(heights), 1))
    q[:, 2] = heights
    return fw.Simulation(robot, 1e-3, q=q, spheres=corners("body0", sides), ground=fw.Plane(), **options)


def centers(robot: fw.Robot, spheres: list[fw.ContactSphere], q: Array) -> Array:
    """Return the centres of spheres (spheres, 3)."""
    T = robot.frame_placement([s.frame for s in spheres])(q)
    return np.einsum("sij,sj->si", T[:, :3, :3], np.array([s.center for s in spheres])) + T[:, :3, 3]


def pose(p: Sequence[float] | Array, turn: Rotation | None = None) -> Array:
    """Return the configuration of a floating joint."""
    return np.array([*p, *(turn or Rotation.identity()).as_quat()])


def configuration_rate(robot: fw.Robot, q: Array, v: Array) -> Array:
    """Return dq/dt (nq,) by the definition of each joint's coordinates."""
    rate = np.empty(robot.nq)
    for joint in robot.joints:
        x, w, at = q[joint.q_slice], v[joint.v_slice], joint.q_slice.start
        if joint.type in (BALL, FREE):
            quaternion, turn = x[-4:], w[-3:]
            rate[joint.q_slice.stop - 4 : joint.q_slice.stop - 1] = 0.5 * (
                quaternion[3] * turn + np.cross(quaternion[:3], turn)
            )
            rate[joint.q_slice.stop - 1] = -0.5 * quaternion[:3] @ turn
            if joint.type is FREE:
                rate[at : at + 3] = Rotation.from_quat(quaternion).apply(w[:3])
        elif joint.type is PLANAR:
            c, s = x[2:]
            rate[joint.q_slice] = [c * w[0] - s * w[1], s * w[0] + c * w[1], -s * w[2], c * w[2]]
        else:
            rate[joint.q_slice] = w
    return rate


def solved(robot: fw.Robot, q: Array, v: Array, duration: float, force: Any) -> tuple[Array, Array]:
    """Return the motion under joint forces `force`(q, v), by a Runge-Kutta method of order 8 to nearly all digits."""

    def rate(_: float, x: Array) -> Array:
        q, v = x[: robot.nq], x[robot.nq :]
        return np.concatenate([configuration_rate(robot, q, v), robot.forward_dynamics(q, v, force(q, v))])

    made = solve_ivp(rate, (0.0, duration), np.concatenate([q, v]), method="DOP853", rtol=1e-13, atol=1e-13)
    return made.y[: robot.nq, -1], made.y[robot.nq :, -1]


def state_error(robot: fw.Robot, q: Array, v: Array, q_ref: Array, v_ref: Array) -> float:
    return float(max(np.abs(robot.difference(q_ref, q)).max(), np.abs(v - v_ref).max()))


def momentum(robot: fw.Robot, q: Array, v: Array) -> Array:
    """Return linear momentum, and angular momentum about the world's origin, (6,), of bodies on floating joints.

    The momentum of all that moves on such a joint is M v of the joint's rows, in its axes and about its origin.
    """
    total = np.zeros(6)
    h = robot.mass_matrix(q) @ v
    for joint in robot.joints:
        if joint.parent is None:
            assert joint.type is FREE
            R, p = Rotation.from_quat(q[joint.q_slice][3:]), q[joint.q_slice][:3]
            linear, angular = R.apply(h[joint.v_slice][:3]), R.apply(h[joint.v_slice][3:])
            total += [*linear, *(np.cross(p, linear) + angular)]
    return total


def free_velocity(robot: fw.Robot, v: Array, a: Array, h: float) -> Array:
    """Return v + h dv/dt in axes that do not turn with bodies on floating and planar joints."""
    u = v + h * a
    for joint in robot.joints:
        if joint.type is FREE:
            s = joint.v_slice.start
            u[s : s + 3] += h * np.cross(v[s + 3 : s + 6], v[s : s + 3])
        elif joint.type is fw.JointType.PLANAR:
            s = joint.v_slice.start
            u[s : s + 2] += h * v[s + 2] * np.array([-v[s + 1], v[s]])
    return u


def end_velocity(sim: fw.Simulation, q: Array) -> Array:
    """Return the velocity after a step from q; for floating and planar joints, in their axes at the start of the step."""
    u = sim.v.copy()
    for joint in sim.robot.joints:
        if joint.type is FREE:
            s, k = joint.v_slice.start, joint.q_slice.start
            turn = Rotation.from_quat(q[k + 3 : k + 7]).inv() * Rotation.from_quat(sim.q[k + 3 : k + 7])
            u[s : s + 3] = turn.apply(u[s : s + 3])
        elif joint.type is fw.JointType.PLANAR:
            s, k = joint.v_slice.start, joint.q_slice.start
            turned = complex(*sim.q[k + 2 : k + 4]) * complex(*q[k + 2 : k + 4]).conjugate() * complex(*u[s : s + 2])
            u[s : s + 2] = turned.real, turned.imag
    return u


def require_alike_alone(robot: fw.Robot) -> None:
    """Check that the first and the last of nine flying robots with random velocities are bitwise equal to a single robot."""
    v = np.random.default_rng(1).standard_normal((9, robot.nv))
    many = fw.Simulation(robot, q=np.tile(robot.start(), (9, 1)), v=v, shapes=False)
    many.run(0.1)
    for i in (0, 8):
        alone = fw.Simulation(robot, v=v[i], shapes=False)
        alone.run(0.1)
        np.testing.assert_array_equal(many.v[i], alone.v)
