"""Mass that may as well belong to the parent.

What of a body lies on its revolute joint's axis moves with the parent, too: mass, first moment along the axis and second
moment along the axis can be handed on as a rod without thickness on that axis (the minimal inertial parameters of Gautier
and Khalil 1990). Joint forces, energies and centre of mass stay what they were, and constants that were not zero are.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..spatial import ZERO_RIGID, Mat3, RigidInertia, Sym3, Vec3

LIMIT = 10.0  # times its own mass and inertia that a body may be handed


def on_axis(I: RigidInertia) -> RigidInertia:
    """The rod on the z axis with the body's mass, and its first and second moments along z."""
    r = I.rotational
    second = 0.5 * (r.xx + r.yy - r.zz)
    return RigidInertia(I.mass, Vec3(0.0, 0.0, I.moment.z), Sym3(second, 0.0, 0.0, second, 0.0, 0.0))


def regroup(inertias: dict[int, RigidInertia], revolute: Sequence[tuple[int, int, Mat3, Vec3]]) -> dict[int, RigidInertia]:
    """Hand on what lies on the axes of `revolute` rows (row, parent row, orientation and origin in the parent), outermost
    rows first; rows on the ground keep theirs, which total mass and potential energy need."""
    grouped = dict(inertias)
    for row, parent, R, p in sorted(revolute, key=lambda r: -r[0]):
        if parent < 0 or row not in grouped:
            continue
        I = grouped[row]
        rod = on_axis(I)
        moved = rod.rotate(R).translate(p)
        if parent not in grouped or not _comparable(moved, inertias.get(parent, ZERO_RIGID)):
            continue
        r, s = I.rotational, rod.rotational
        rest = Sym3(r.xx - s.xx, r.xy, r.xz, r.yy - s.yy, r.yz, r.zz)
        grouped[row] = RigidInertia(0.0, Vec3(I.moment.x, I.moment.y, 0.0), rest)
        grouped[parent] = grouped[parent] + moved
    return grouped


def _comparable(moved: RigidInertia, own: RigidInertia) -> bool:
    """Whether the parent keeps its digits beside what is handed on to it."""
    a, b = moved.rotational, own.rotational
    return bool(moved.mass <= LIMIT * own.mass and a.xx + a.yy + a.zz <= LIMIT * (b.xx + b.yy + b.zz))
