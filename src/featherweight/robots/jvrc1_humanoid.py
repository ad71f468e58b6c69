"""JVRC-1, the virtual humanoid of the Japan Virtual Robotics Challenge, with a geared rotor at its joints.

Numbers are those of jvrc1_humanoid.urdf and JVRC1_Humanoid.hpp of generalized_rbda (MIT licence), after
https://github.com/jvrc. Lengths below 1e-15 m in them are rounding errors, and zero here. The URDF file places the right hip
0.087 m too low, and the C++ model does not; here the right side mirrors the left. In both sources, the rotors have the inertia
diag(2e-5, 2e-5, 5e-5) kg m² about every axis of rotation. No solid has this inertia: its third moment exceeds the sum of the
others.
"""

from __future__ import annotations

from typing import NamedTuple

from ..model.description import Description
from ..model.types import Body, Inertia, Vector
from .parts import Part, joining, mirrored, robot_of_parts

RATIO = 6.0
ROTOR = Inertia(0.07, rotational=(2e-5, 0.0, 0.0, 2e-5, 0.0, 5e-5))
WITHOUT = ("neck-yaw", "neck-roll", "neck-pitch", "left-wrist-roll", "left-wrist-yaw")  # no rotor in the URDF file


class Link(NamedTuple):
    """A row of the tables; all frames are parallel at zero."""

    name: str
    parent: str
    axis: str
    at: Vector  # [m]
    mass: float
    center: Vector  # [m]
    moments: Vector  # xx, yy, zz about the centre [kg m²]


O = (0.0, 0.0, 0.0)
TRUNK = (
    Link("waist-yaw", "pelvis", "z", (0.0, 0.0, 0.192), 1.0, (0.0, 0.0, -0.07), (0.00173, 0.00173, 0.0032)),
    Link("waist-pitch", "waist-yaw", "y", O, 1.0, O, (0.002425, 0.002425, 0.002425)),
    Link("waist-roll", "waist-pitch", "x", O, 10.0, (0.02, 0.0, 0.24), (0.157083, 0.101083, 0.1367)),
    Link("neck-yaw", "waist-roll", "z", (-0.003, 0.0, 0.453), 0.5, (0.0, 0.0, -0.05), (0.000729167, 0.000729167, 0.000625)),
    Link("neck-roll", "neck-yaw", "x", O, 0.5, O, (0.0005, 0.0005, 0.0005)),
    Link("neck-pitch", "neck-roll", "y", O, 2.0, (0.01, 0.0, 0.11), (0.00968, 0.00968, 0.00968)),
)
LEG = (
    Link("left-hip-pitch", "pelvis", "y", (0.0, 0.096, 0.0), 1.0, O, (0.00196, 0.00196, 0.00196)),
    Link("left-hip-roll", "left-hip-pitch", "x", O, 1.0, O, (0.00196, 0.00196, 0.00196)),
    Link("left-hip-yaw", "left-hip-roll", "z", O, 3.0, (0.01, 0.0, -0.22), (0.031925, 0.034525, 0.00865)),
    Link("left-knee", "left-hip-yaw", "y", (-0.02, 0.0, -0.389), 3.0, (0.04, 0.0, -0.16), (0.031925, 0.034525, 0.00865)),
    Link("left-ankle-roll", "left-knee", "x", (0.04, 0.0, -0.357), 1.0, O, (0.00064, 0.00064, 0.00064)),
    Link("left-ankle-pitch", "left-ankle-roll", "y", O, 1.5, (0.03, 0.0, -0.07), (0.001417, 0.005617, 0.006217)),
)
ARM = (
    Link("left-shoulder-pitch", "waist-roll", "y", (0.0, 0.24, 0.33), 1.0, O, (0.00196, 0.00196, 0.00196)),
    Link("left-shoulder-roll", "left-shoulder-pitch", "x", O, 1.0, O, (0.00196, 0.00196, 0.00196)),
    Link("left-shoulder-yaw", "left-shoulder-roll", "z", O, 2.0, (-0.01, 0.0, -0.19), (0.01365, 0.0146, 0.00635)),
    Link("left-elbow-pitch", "left-shoulder-yaw", "y", (0.004, 0.0, -0.305), 1.0, (-0.02, 0.0, -0.1),
         (0.010675, 0.010675, 0.0027)),
    Link("left-elbow-yaw", "left-elbow-pitch", "z", (-0.004, 0.0, -0.239), 1.0, O, (0.00064, 0.00064, 0.00064)),
    Link("left-wrist-roll", "left-elbow-yaw", "x", O, 0.5, O, (0.00032, 0.00032, 0.00032)),
    Link("left-wrist-yaw", "left-wrist-roll", "z", O, 0.5, (0.0, -0.01, -0.06), (0.0004625, 0.0007625, 0.0004625)),
)  # fmt: skip


def jvrc1(rotors: str = "all") -> Description:
    """Return JVRC-1: 38 degrees of freedom, and rotors geared by 6.

    `rotors` is "all" for one at each of the 32 joints, as in the paper and the C++ model, or "published" for the 25 of the
    URDF file, which has none in the neck and the wrists.
    """
    if not isinstance(rotors, str) or rotors not in ("all", "published"):
        raise ValueError(f'rotors: expected "all" or "published", got {rotors!r}')
    without = WITHOUT if rotors == "published" else ()
    parts: list[Part] = []
    for links, sides in ((TRUNK, ("",)), (LEG, ("left", "right")), (ARM, ("left", "right"))):
        for side in sides:
            for link in links:
                pair = _with_rotor(link, side)[: 1 if link.name in without else 2]
                parts += [mirrored(p) for p in pair] if side == "right" else pair
    pelvis = Body("pelvis", Inertia(10.0, (-0.01, 0.0, 0.034), (0.089583, 0.0, 0.0, 0.089583, 0.0, 0.1125)))
    return robot_of_parts("jvrc1", parts, pelvis, "base_to_pelvis")


def _with_rotor(link: Link, side: str) -> list[Part]:
    """Return a link and its rotor, which turns about the same axis, on the named side, with the numbers of the left side."""
    name, parent = link.name.replace("left", side), link.parent.replace("left", side)
    joint = joining(parent, name)
    xx, yy, zz = link.moments
    inertia = Inertia(link.mass, link.center, (xx, 0.0, 0.0, yy, 0.0, zz))
    return [
        Part(name, inertia, joint, parent, link.axis, link.at),
        Part(f"{name}-rotor", ROTOR, f"{joint}-rotor", parent, link.axis, link.at, follows=((joint, RATIO),)),
    ]
