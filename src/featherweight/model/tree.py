"""The expanded tree: one degree of freedom a row, as every algorithm sees a robot.

A joint with k degrees of freedom is k consecutive rows with massless bodies between, whose transforms are the identity
(Featherstone 2005, section 3); the first row carries the joint's transform, the last its body. Each row's motion axis is
one of the six unit vectors of its own frame.
"""

from __future__ import annotations

from typing import Any, NamedTuple

REVOLUTE, PRISMATIC, SPHERICAL, FLOATING, PLANAR, INNER = range(6)
"""Kinds of joints in all kernels, the only numbering of them; INNER is that of rows after a joint's first."""


class Tree(NamedTuple):
    """The model arrays of n rows, as nested tuples (interpreted and traced) or as NumPy arrays (rolled)."""

    parent: Any  # (n,) int, parent[j] < j, -1 for the ground
    axis: Any  # (n,) int, 0, 1, 2 angular, 3, 4, 5 linear x, y, z of row j's frame
    first: Any  # (n,) int, the first row of row j's joint
    last: Any  # (n,) int, the last row of row j's joint
    kind: Any  # (n,) int, REVOLUTE ... for a first row, INNER for others
    q_index: Any  # (n,) int, where the joint's configuration starts
    rotation: Any  # (n, 3, 3) the joint's frame at zero in the parent row's frame
    translation: Any  # (n, 3) [m], its origin there
    base: Any  # (n, 3) [m] the same placement one axis at a time: translate by base,
    turns: Any  # (n, 3, 2) turn about z (yaw), about x (roll), and again about z (twist) as cosine and sine,
    slide: Any  # (n,) [m] sliding along z before the twist
    offset: Any  # (n,) [rad] what is added to a revolute joint's angle, rather than turned by a twist
    mass: Any  # (n,) [kg]
    moment: Any  # (n, 3) mass times centre of mass [kg m]
    inertia: Any  # (n, 6) xx xy xz yy yz zz about the frame's origin [kg m²]
    armature: Any  # (n,) reflected rotor inertia
    gravity: Any  # (3,) [m/s²] in the world


class Placements(NamedTuple):
    """Frames in the frames of rows: m frames or bodies."""

    row: Any  # (m,) int, -1 for the ground
    rotation: Any  # (m, 3, 3)
    translation: Any  # (m, 3) [m]
