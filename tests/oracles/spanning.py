"""Mechanisms cut open: the spanning tree in Pinocchio, and loops and couplings as functions of all its coordinates.

This module does not use the maps G and g, the constraint matrices or the clusters of the library: constraints are differences
of placements and of coordinates, and their derivatives are finite differences.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from math import atan2, cos, sin
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
import scipy.linalg

import featherweight as fw
from featherweight.model.types import LoopType, Pose
from featherweight.robots.tello_humanoid import RATIO
from oracles import pinocchio_models
from oracles.mechanisms import MECHANISMS, closed
from oracles.states import Array, States

STEP = 1e-3
"""Step of `rate`: its error is h^4 / 30 of the fifth derivative, about 1e-13, and eps / h of the function, about 1e-13."""

TURN = 1e-2
"""Step of `bend`: its error is h^4 / 90 of the sixth derivative, about 1e-10, and eps / h² of the function, about 1e-12."""

AMPLIFIED = 4.0
"""Largest velocity of a dependent joint, for unit independent ones: a configuration is regular if none exceeds it."""


def rate(f: Callable[..., Any], h: float = STEP) -> Array:
    """Return f'(0) from the values at four points."""
    return np.asarray((8.0 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12.0 * h))


def bend(f: Callable[..., Any], h: float = TURN) -> Array:
    """Return f''(0) from the values at five points."""
    return np.asarray((16.0 * (f(h) + f(-h)) - (f(2 * h) + f(-2 * h)) - 30.0 * f(0.0)) / (12.0 * h * h))


class Constraints(NamedTuple):
    """Matrix K and vector k of all constraints at one state: K q'' = k."""

    K: Array
    k: Array


class SpanningTree:
    """Bodies and joints of a mechanism without its loops and couplings."""

    def __init__(self, description: fw.Description, robot: fw.ClosedRobot) -> None:
        self.description, self.closed = description, robot
        cut = dataclasses.replace(description, loops=(), couplings=(), closures=(), independent=(), dependent=())
        self.open = fw.build(cut, execution="interpreted")
        self.peer = pinocchio_models.from_description(cut, self.open)
        self.slices = {joint.name: joint.q_slice for joint in self.open.joints}
        self.independent = [r for c in robot._mechanism.clusters for r in c.independent]

    def expand(self, q: Array) -> Array:
        """Return all coordinates; couplings give those of followers."""
        result = np.zeros(self.open.nq)
        follow = {c.joint for c in self.description.couplings}
        for joint in self.closed.joints:
            if joint.name not in follow:
                result[self.slices[joint.name]] = q[joint.q_slice]
        for _ in self.description.couplings:  # as often as the longest possible sequence of couplings
            for c in self.description.couplings:
                result[self.slices[c.joint]] = self.followed(c, result)
        return result

    def followed(self, c: fw.Coupling, Q: Array) -> float:
        x = {name: float(Q[self.slices[name]][0]) for name, _ in c.terms}
        return c.offset + sum(a * x[name] ** (k + 1) for name, many in c.terms for k, a in enumerate(many))

    def residual(self, Q: Array) -> Array:
        """Return the residual of all constraints at any coordinates of the tree."""
        model, data = self.peer.model, self.peer.data
        pin.forwardKinematics(model, data, self.peer.q(Q))
        found = [np.concatenate([aligned(loop, *self.ends(loop, data))]) for loop in self.description.loops]
        for c in self.description.couplings:
            found.append(np.array([float(Q[self.slices[c.joint]][0]) - self.followed(c, Q)]))
        for own in self.description.closures:
            x = np.array([float(Q[self.slices[name]][0]) for name in own.joints])
            found.append(np.array(own.function(x), dtype=np.float64))
        return np.concatenate(found)

    def ends(self, loop: fw.Loop, data: Any) -> tuple[Any, Any]:
        """Return the two frames of a loop in the world, by Pinocchio."""
        (i, a), (j, b) = self.seats(loop)
        return data.oMi[i] * a, data.oMi[j] * b

    def seats(self, loop: fw.Loop) -> tuple[tuple[int, Any], tuple[int, Any]]:
        """Return Pinocchio's joint and the frame on it for both ends of a loop."""
        return self.seat(loop.predecessor, loop.predecessor_frame), self.seat(loop.successor, loop.successor_frame)

    def seat(self, link: str | None, pose: Pose) -> tuple[int, Any]:
        model, placed = self.peer.model, pin.SE3(np.array(pose.R), np.array(pose.p))
        if link is None or link == "world":
            return 0, placed
        frame = model.frames[self.peer._frame(link)]
        return frame.parentJoint, frame.placement * placed

    def constraints(self, Q: Array, V: Array) -> Constraints:
        """Return constraint rows by finite differences of the residual along each joint and along the motion."""
        step = TURN / max(1.0, np.abs(V).max())
        columns = [rate(lambda h, e=e: self.residual(self.open.integrate(Q, h * e))) for e in np.eye(self.open.nv)]
        k = -bend(lambda t: self.residual(self.open.integrate(Q, t * V)), step)
        return Constraints(np.stack(columns, axis=1), k)

    def tree_forces(self, tau: Array) -> Array:
        """Return the forces on all joints, from those on the independent joints."""
        result = np.zeros(self.open.nv)
        result[self.independent] = tau
        return result

    def forward_dynamics(self, q: Array, v: Array, tau: Array) -> Array:
        """Return all accelerations, by Gauss's principle: M a + h - tau is a force of the constraints, and K a = k.

        The velocities of the tree are the unique ones that satisfy K q' = 0 and contain the independent velocities.
        """
        Q = self.expand(q)
        K = self.constraints(Q, np.zeros(self.open.nv)).K
        free = scipy.linalg.null_space(K, rcond=1e-7)
        V = free @ np.linalg.solve(free[self.independent], v)
        K, k = self.constraints(Q, V)
        M, h = self.peer.mass_matrix(Q[None])[0], self.peer.bias_force(Q[None], V[None])[0]
        a = np.linalg.pinv(K, rcond=1e-7) @ k
        rest = free.T @ (self.tree_forces(tau) - h - M @ a)
        return np.asarray(a + free @ np.linalg.solve(free.T @ M @ free, rest))


def aligned(loop: fw.Loop, a: Any, b: Any) -> Array:
    """Return the misclosure of a loop: the pose of the successor's frame b in a."""
    at = a.inverse() * b
    turned = {
        LoopType.SPHERICAL: lambda R: np.zeros(0),
        LoopType.WELD: pin.log3,
        LoopType.PRISMATIC: pin.log3,
        LoopType.UNIVERSAL: lambda R: R[2:, 0],
    }.get(loop.type, lambda R: np.append(R[:2, 2], 0.0 if R[2, 2] > 0.0 else 1.0))
    kept = {LoopType.PRISMATIC: [0, 1], LoopType.CYLINDRICAL: [0, 1], LoopType.PLANAR: [2]}.get(loop.type, [0, 1, 2])
    return np.concatenate([at.translation[kept], turned(at.rotation)])


@functools.cache
def mechanism(name: str, execution: str = "interpreted") -> fw.ClosedRobot:
    return closed(MECHANISMS[name](), execution=execution)


@functools.cache
def spanning(name: str) -> SpanningTree:
    return SpanningTree(MECHANISMS[name](), mechanism(name))


def maps(robot: fw.ClosedRobot, q: Array) -> Array:
    """Return G (..., n, nv) at q, column by column from unit velocities."""
    units = np.eye(robot.nv)
    return np.stack([robot.spanning_velocity(q, e) for e in units], axis=-1)


def amplified(robot: fw.ClosedRobot, q: Array) -> float:
    """Return the largest velocity of a joint that a loop moves, for unit independent velocities; gears are ignored."""
    dependent = [r for c in robot._mechanism.clusters for r in c.dependent]
    return float(np.abs(maps(robot, q)[..., dependent, :]).max(initial=0.0))


def regular_configurations(name: str, count: int, seed: int = 0) -> Array:
    """Return closed configurations, assembled as described, at which no joint moves much faster than others.

    The function chooses the slowest of several, because differences contain curvature, which grows with the third power of
    these velocities.
    """
    robot, tree = mechanism(name), spanning(name)
    rng = np.random.default_rng(seed)
    found: list[Array] = []
    for _ in range(100):
        q = near_neutral_tello(robot, rng) if name == "tello" else robot.random_configuration(rng=rng)
        closed = np.abs(tree.residual(tree.expand(q))).max() < 1e-9
        if closed and amplified(robot, q) <= AMPLIFIED:
            found.append(q)
        if len(found) == 3 * count:
            return np.array(sorted(found, key=lambda q: amplified(robot, q))[:count])
    raise AssertionError(f"{name}: {len(found)} regular configurations in 100")


def near_neutral_tello(robot: fw.ClosedRobot, rng: np.random.Generator) -> Array:
    """Return links of the differentials within ±0.4 rad, and their rotors by the closed form of the paper's authors."""
    description = MECHANISMS["tello"]()
    values: dict[str, float] = {}
    for c in description.closures:
        links = rng.uniform(-0.4, 0.4, 2)
        rotors = (hip_rotors if "hip-differential" in c.name else knee_ankle_rotors)(*links)
        values |= dict(zip(c.joints, (*rotors, *links), strict=True))
    q = robot.neutral()
    for joint in robot.joints:
        if joint.name in values:
            q[joint.q_slice] = values[joint.name]
        elif joint.q_slice.stop - joint.q_slice.start == 1:
            q[joint.q_slice] = rng.uniform(-1.0, 1.0)
    return q


@functools.cache
def regular_states(name: str, count: int = 2, seed: int = 0) -> States:
    q = regular_configurations(name, count, seed)
    rng = np.random.default_rng(seed + 1)
    nv = mechanism(name).nv
    return States(q, rng.standard_normal((count, nv)), rng.standard_normal((count, nv)))


def hip_rotors(gimbal: float, thigh: float) -> tuple[float, float]:
    """Return the angles of rotors 1 and 2 at which `hip_differential` holds [rad]."""
    s1, c1, s2, c2 = sin(gimbal), cos(gimbal), sin(thigh), cos(thigh)

    def rotor(side: float) -> float:
        a = 57 / 2500 - 8 * c1 * s2 / 625 - side * 7 * s1 / 625
        b = -8 * c2 / 625
        c = 49 * c1 / 5000 + 57 * c1 * s2 / 2500 + side * (399 * s1 / 20000 - 7 * s1 * s2 / 625) - 3021 / 160000
        d = math.sqrt(a * a + b * b - c * c)
        return RATIO * atan2(a * c - b * d, b * c + a * d)

    return rotor(1.0), rotor(-1.0)


def knee_ankle_rotors(shin: float, foot: float) -> tuple[float, float]:
    """Return the angles of rotors 1 and 2 at which `knee_ankle_differential` holds [rad]."""
    tilt, beta = math.pi / 9, foot + math.radians(180 - 66)
    a = -21 * sin(tilt) / 6250 - 7 * sin(beta) / 2500
    b = 13 / 625 - 7 * cos(beta) / 2500 - 21 * cos(tilt) / 6250
    e = 273 * cos(tilt) / 12500 + 91 * cos(beta) / 5000 - 147 * cos(tilt - beta) / 50000 - 163349 / 6250000
    d = math.sqrt(a * a + b * b - e * e)
    turned = atan2(b * d + a * e, b * e - a * d) - math.radians(180 - 59.16)
    return RATIO * (shin - turned), RATIO * (shin + turned)
