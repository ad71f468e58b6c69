"""Building blocks of robots: bodies with their revolute joints, and functions that mirror them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..model.description import Description
from ..model.types import WORLD, Body, Coupling, Inertia, Joint, JointType, Matrix, Pose, Vector

AXES: dict[str, Vector] = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


class Part(NamedTuple):
    """A body and the revolute joint that carries it."""

    body: str
    inertia: Inertia
    joint: str
    parent: str  # body, or WORLD
    axis: str  # x, y or z of the body's frame
    at: Vector = (0.0, 0.0, 0.0)  # position of the joint in the parent's frame [m]
    R: Matrix = Pose().R
    follows: tuple[tuple[str, float], ...] = ()  # joints and ratios: this joint's coordinate is the sum of ratio × coordinate


def robot_of_parts(
    name: str, parts: Sequence[Part], root: Body | None = None, root_joint: str = "", gravity: Vector = (0.0, 0.0, -9.81)
) -> Description:
    """Return the robot of `parts`, with a coupling for each follower; `root`, if given, is on a floating `root_joint`."""
    bodies = [Body(p.body, p.inertia) for p in parts]
    joints = [Joint(p.joint, JointType.REVOLUTE, p.parent, p.body, Pose(p.R, p.at), AXES[p.axis]) for p in parts]
    if root is not None:
        bodies.insert(0, root)
        joints.insert(0, Joint(root_joint, JointType.FLOATING, WORLD, root.name))
    led = [p for p in parts if p.follows]
    return Description(
        name,
        f"featherweight.robots: {name}",
        tuple(bodies),
        tuple(joints),
        gravity=gravity,
        couplings=tuple(Coupling(p.body, p.joint, tuple((j, (ratio,)) for j, ratio in p.follows)) for p in led),
        dependent=tuple(p.joint for p in led),
    )


def rotors(mass: float, across: float, along: float) -> dict[str, Inertia]:
    """Return a rotor for each axis about which it may spin: inertia `along` that axis and `across` it [kg m²]."""
    a, b = along, across
    moments = {"x": (a, 0.0, 0.0, b, 0.0, b), "y": (b, 0.0, 0.0, a, 0.0, b), "z": (b, 0.0, 0.0, b, 0.0, a)}
    return {axis: Inertia(mass, rotational=rotational) for axis, rotational in moments.items()}


def mirrored(part: Part) -> Part:
    """Return the part on the other side of the x–z plane; its joint turns about the axis of the same letter."""
    mass, center, (xx, xy, xz, yy, yz, zz) = part.inertia
    (a, b, c), (d, e, f), (g, h, i) = part.R
    return part._replace(
        inertia=Inertia(mass, flipped(center), (xx, 0.0 - xy, xz, yy, 0.0 - yz, zz)),
        at=flipped(part.at),
        R=((a, 0.0 - b, c), (0.0 - d, e, 0.0 - f), (g, 0.0 - h, i)),
    )


def flipped(v: Vector) -> Vector:
    """Return the vector with the other sign of y; a zero keeps its sign."""
    return (v[0], 0.0 - v[1], v[2])


def joining(parent: str, child: str) -> str:
    """Return the name of a joint: left-hip-yaw-to-knee connects left-hip-yaw and left-knee."""
    side = parent.split("-")[0]
    return f"{parent}-to-{child.removeprefix(side + '-')}" if side in ("left", "right") else f"{parent}-to-{child}"
