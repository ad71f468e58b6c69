"""Mechanisms with loops as CAD programs export them: welded loops, far from closed at zero, with rounded numbers.

Each mechanism is created in an assembled pose, with the points and axes of its joints in the world. Then every joint is turned
back by a random angle, so that the pose at zero is arbitrary, and every number of the file is rounded. The kinds are `planar`
and `spatial` rings of revolute joints, a `linkage` of planar rings that share bodies, and a `platform` on legs. Welds of
planar rings are redundant, and rounding makes them contradict each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from featherweight.array_types import Array
from featherweight.model.description import Description
from featherweight.model.generators import random_direction, random_inertia, random_rotation
from featherweight.model.random_numbers import uniform
from featherweight.model.types import WORLD, Body, Joint, JointType, Loop, LoopType, Pose, as_matrix, as_vector
from featherweight.spatial import sincos
from featherweight.spatial.elementary import atan2, cos, norm, sin
from featherweight.spatial.ordered import lengths, product, times

KINDS = ("planar", "spatial", "linkage", "platform")
LEAST = {"planar": 4, "spatial": 7, "linkage": 7, "platform": 36}


def closed_mechanism(kind: str, joints: int, *, rng: int, digits: int = 6, spread: float = math.pi) -> Description:
    """Return a mechanism of one of `KINDS` with a number of joints, whose loops are welds.

    `joints` is the total number of joints, at least `LEAST` of the kind. A linkage has k + 1 rings, for the greatest 3 k + 4
    that does not exceed `joints`; a platform has six legs with a sixth of the joints each. Joints are turned by up to `spread`
    [rad, and 0.1 m] between zero and the pose in which the loops are closed. Numbers are rounded to `digits` decimals. Raises
    ValueError for an unknown kind and for too few joints.
    """
    if kind not in KINDS:
        raise ValueError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    if joints < LEAST[kind]:
        raise ValueError(f"joints: expected {LEAST[kind]} or more for a {kind} mechanism, got {joints}")
    made = _Assembled(np.random.default_rng(rng), digits, spread)
    {"planar": _planar, "spatial": _spatial, "linkage": _linkage, "platform": _platform}[kind](made, joints)
    return made.description(f"{kind}_{joints}_{rng}")


@dataclass
class _Assembled:
    """Bodies in an assembled pose, and the joints and loops between them."""

    rng: np.random.Generator
    digits: int
    spread: float
    bodies: list[Body] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    places: dict[str, Pose] = field(default_factory=lambda: {WORLD: Pose()})

    def add(self, parent: str, point: Array, axis: Array, kind: JointType = JointType.REVOLUTE) -> str:
        """Add a body on a joint at a point and about, or along, an axis of the world."""
        R = random_rotation(self.rng)
        child, e = f"body{len(self.bodies)}", self._rounded(times(R.T, axis))
        e /= lengths(e)
        turned = float(uniform(self.rng, -self.spread, self.spread, ()))
        self.places[child] = place = Pose(as_matrix(R), as_vector(point))
        if kind is JointType.PRISMATIC:
            back = Pose(p=as_vector(-0.1 * turned / math.pi * e))
        else:
            back = Pose(as_matrix(_rotation(-turned * e)))
        at = self._written(self.places[parent].inverse() @ place @ back)
        self.joints.append(Joint(f"joint{len(self.joints)}", kind, parent, child, at, as_vector(e)))
        self.bodies.append(Body(child, random_inertia(self.rng, (0.5, 5.0))))
        return child

    def weld(self, predecessor: str, successor: str) -> None:
        """Add a weld between two bodies that were one body in the drawing."""
        at = Pose(as_matrix(random_rotation(self.rng)), self.places[successor].p)
        on, to = (self._written(self.places[b].inverse() @ at) for b in (predecessor, successor))
        self.loops.append(Loop(f"loop{len(self.loops)}", LoopType.WELD, predecessor, successor, on, to))

    def ring(self, points: Array, axes: Array, begin: str, end: str) -> list[str]:
        """Add bodies in series from one to another, on joints at points; the last is welded to `end`."""
        bodies = [begin]
        for point, axis in zip(points, axes, strict=True):
            bodies.append(self.add(bodies[-1], point, axis))
        self.weld(end, bodies[-1])
        return bodies[1:]

    def description(self, name: str) -> Description:
        return Description(name, f"generated: {name}", tuple(self.bodies), tuple(self.joints), loops=tuple(self.loops))

    def _rounded(self, x: ArrayLike) -> Array:
        return np.round(np.asarray(x, dtype=float), self.digits) + 0.0

    def _written(self, pose: Pose) -> Pose:
        """Return the pose as a file gives it: a position, and roll, pitch and yaw, all rounded."""
        R = np.array(pose.R)
        angles = (
            atan2(R[2, 1], R[2, 2]),
            atan2(-R[2, 0], norm(R[2, 1], R[2, 2])),
            atan2(R[1, 0], R[0, 0]),
        )
        roll, pitch, yaw = self._rounded(angles)
        about_x, about_y, about_z = (_rotation(turn) for turn in np.diag([roll, pitch, yaw]))
        R = product(product(about_z, about_y), about_x)
        return Pose(as_matrix(R), as_vector(self._rounded(pose.p)))


def _planar(made: _Assembled, joints: int) -> None:
    R = random_rotation(made.rng)
    points = product(_polygon(made.rng, joints), R[:, :2].T)
    made.ring(points, np.broadcast_to(R[:, 2], points.shape), WORLD, WORLD)


def _spatial(made: _Assembled, joints: int) -> None:
    points = np.add.accumulate(0.2 * np.array([random_direction(made.rng) for _ in range(joints)]))
    made.ring(points, np.array([random_direction(made.rng) for _ in range(joints)]), WORLD, WORLD)


def _linkage(made: _Assembled, joints: int) -> None:
    """Add a ring of four bars, and pairs of bars that connect two bodies each."""
    R = random_rotation(made.rng)
    points = product(_polygon(made.rng, 4), R[:, :2].T)
    bodies = [WORLD, *made.ring(points, np.broadcast_to(R[:, 2], points.shape), WORLD, WORLD)[:-1]]
    for _ in range((joints - 4) // 3):
        a, b = made.rng.choice(len(bodies), 2, replace=False)
        ends = [np.array(made.places[bodies[k]].p) + times(R[:, :2], uniform(made.rng, -0.2, 0.2, 2)) for k in (a, b)]
        middle = 0.5 * (ends[0] + ends[1]) + times(R[:, :2], uniform(made.rng, -0.3, 0.3, 2))
        points = np.array([ends[0], middle, ends[1]])
        points -= times(points, R[:, 2])[:, None] * R[:, 2]
        bodies += made.ring(points, np.broadcast_to(R[:, 2], points.shape), bodies[a], bodies[b])[:-1]


def _platform(made: _Assembled, joints: int) -> None:
    """Add six legs: crossed axes at the ground, revolute joints or a slide, and three crossed axes at the plate."""
    plate, legs = None, joints // 6
    for k in range(6):
        angle = math.pi / 3 * k + float(uniform(made.rng, -0.4, 0.4, ()))
        foot = np.array([0.5 * cos(angle), 0.5 * sin(angle), 0.0])
        angle = math.pi / 3 * k + float(uniform(made.rng, -0.4, 0.4, ()))
        head = np.array([0.3 * cos(angle), 0.3 * sin(angle), 0.6])
        body = WORLD
        R = random_rotation(made.rng)
        for axis in R[:2]:
            body = made.add(body, foot, axis)
        along = (head - foot) / lengths(head - foot)
        body = made.add(body, foot + 0.5 * (head - foot), along, JointType.PRISMATIC)
        for j in range(legs - 6):
            body = made.add(body, foot + (head - foot) * (0.6 + 0.3 * j / legs), random_direction(made.rng))
        for axis in random_rotation(made.rng):
            body = made.add(body, head, axis)
        if plate is None:
            plate = body
        else:
            made.weld(plate, body)


def _polygon(rng: np.random.Generator, count: int) -> Array:
    """Return corners around a point in the plane, with sides of about 0.3 m."""
    angles = 2.0 * math.pi * (np.arange(count) + uniform(rng, -0.3, 0.3, count)) / count
    radius = 0.05 * count * uniform(rng, 0.7, 1.3, count)
    sines, cosines = sincos(angles)
    return np.stack([radius * cosines, radius * sines], axis=-1)


def _rotation(w: Array) -> Array:
    """Return the rotation by a rotation vector."""
    angle = float(lengths(w))
    if angle == 0.0:
        return np.eye(3)
    x, y, z = w / angle
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + sin(angle) * K + (1.0 - cos(angle)) * product(K, K))
