"""The expanded tree: the kinematic tree after each joint is split into joints with one degree of freedom, one for each row.

A joint with k degrees of freedom is k consecutive rows with massless bodies between them, whose transforms are the identity
(Featherstone 2005, section 2). The first row has the joint's transform, the last row its body. Each row's motion axis is one
of the six unit vectors of its own frame.
"""

from __future__ import annotations

from typing import Any, NamedTuple

REVOLUTE, PRISMATIC, SPHERICAL, FLOATING, PLANAR, INNER = range(6)
"""Kinds of joints in all kernels, the only numbering of them; INNER is that of rows after a joint's first."""


class Tree(NamedTuple):
    """The arrays of n rows, as nested tuples (interpreted and traced execution) or as NumPy arrays (rolled execution)."""

    parent: Any  # (n,) int, parent[j] < j, -1 for the ground
    axis: Any  # (n,) int, 0, 1, 2 angular, 3, 4, 5 linear x, y, z of row j's frame
    first: Any  # (n,) int, the first row of row j's joint
    last: Any  # (n,) int, the last row of row j's joint
    kind: Any  # (n,) int, REVOLUTE ... for a first row, INNER for others
    q_index: Any  # (n,) int, start of the joint's coordinates in q
    rotation: Any  # (n, 3, 3) the joint's frame at zero in the parent row's frame
    translation: Any  # (n, 3) [m] origin of the joint's frame at zero in the parent row's frame
    base: Any  # (n, 3) [m] the same placement in steps along single axes: translate by base,
    turns: Any  # (n, 3, 2) rotate about z (yaw), about x (roll), and again about z (twist), as cosine and sine,
    slide: Any  # (n,) [m] slide along z before the twist
    mass: Any  # (n,) [kg]
    moment: Any  # (n, 3) mass times centre of mass [kg m]
    inertia: Any  # (n, 6) xx xy xz yy yz zz about the frame's origin [kg m²]
    armature: Any  # (n,) reflected rotor inertia
    gravity: Any  # (3,) [m/s²] in the world


class Placements(NamedTuple):
    """Placements of m frames or bodies in the frames of rows."""

    row: Any  # (m,) int, -1 for the ground
    rotation: Any  # (m, 3, 3)
    translation: Any  # (m, 3) [m]
