"""Joints, and what ties joints together: loops, couplings and closures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from ...checks import NUMBER, ONE_OR_SEVERAL, checked, pairs_by_name
from ...summaries import summarized
from ..contact_rules import DEFAULT_SOFTNESS, Softness
from .frames import DIRECTION, Pose, PoseLike, Vector, VectorLike

NQ = {"fixed": 0, "floating": 7, "spherical": 4, "planar": 4}  # numbers of coordinates; of other types 1
NV = {"fixed": 0, "floating": 6, "spherical": 3, "planar": 3}  # degrees of freedom


class JointType(StrEnum):
    """Types of joints; `continuous` is a revolute joint without limits."""

    REVOLUTE = "revolute"
    CONTINUOUS = "continuous"
    PRISMATIC = "prismatic"
    FIXED = "fixed"
    FLOATING = "floating"
    SPHERICAL = "spherical"
    PLANAR = "planar"

    @property
    def nq(self) -> int:
        """The number of coordinates."""
        return NQ.get(self.value, 1)

    @property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        return NV.get(self.value, 1)

    @property
    def rotation(self) -> int:
        """The number of last coordinates that form a unit quaternion, or a cosine and sine."""
        return {"floating": 4, "spherical": 4, "planar": 2}.get(self.value, 0)


NO_POLY = (0.0, 0.0)
"""Higher coefficients of linear springs and dampers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassiveDynamics:
    """Limits, springs, dampers and dry friction of a joint or a tendon, for its coordinate or length x and velocity v."""

    lower: float = -math.inf  # limits [rad, m]
    upper: float = math.inf  # for a spherical joint, the greatest angle of its rotation from zero
    stiffness: float = 0.0  # of the spring [N m/rad, N/m]
    damping: float = 0.0  # force per velocity [N m s/rad, N s/m]
    dry_friction: float = 0.0  # greatest force of dry friction [N m, N]
    stiffness_poly: tuple[float, float] = NO_POLY  # b, c in stiffness x + b x² + c x³ for x from rest [N m/rad², ...]
    damping_poly: tuple[float, float] = NO_POLY  # b, c in the force damping v + b |v| v + c v³ [N m s²/rad², N m s³/rad³, ...]
    limit_softness: Softness = DEFAULT_SOFTNESS
    dry_friction_softness: Softness = DEFAULT_SOFTNESS

    @property
    def has_spring(self) -> bool:
        """True if there is a spring."""
        return self.stiffness != 0.0 or any(self.stiffness_poly)

    @property
    def is_nonlinear(self) -> bool:
        """True if the spring or the damper is nonlinear."""
        return any(self.stiffness_poly) or any(self.damping_poly)


@dataclass(frozen=True, slots=True, kw_only=True)
class JointDynamics(PassiveDynamics):
    """Limits of a joint and the forces that act at it: the numbers that joints of files and of robots share."""

    rest: float = 0.0  # coordinate at which the spring's force is zero
    armature: float = 0.0  # reflected rotor inertia, added to the diagonal of the mass matrix
    effort: float = math.inf  # greatest force of the joint's drive [N m, N]
    velocity: float = math.inf  # greatest velocity [rad/s, m/s]; files write 0 if it is unknown
    rest_pose: tuple[float, ...] = ()
    """(x, y, z, qx, qy, qz, qw) of zero force, for the springs of a floating joint; by default at zero."""
    effort_range: tuple[float, float] | None = None  # least and greatest force of the drive, if not ±effort
    drive_compensates: bool = False  # the drive supplies the gravity compensation, within its effort


@checked
@summarized
@dataclass(frozen=True, slots=True)
class Joint(JointDynamics):
    """A joint of the file.

    At zero, the child's frame lies at `placement` in the parent's frame. `axis` is a direction in the child's frame, which gets
    length one: the axis of a revolute, continuous or prismatic joint, and the normal of a planar joint's plane. `anchor` is
    the point of the child's frame about which a revolute or spherical joint turns. Limits and forces are keyword arguments.

    The forces of springs and dampers are polynomials, as in MJCF. The spring of a spherical joint depends on the angle of its
    rotation. A floating joint has two springs of the same stiffness, on its displacement and on its angle of rotation. A
    damper acts on each component of the velocity. Dry friction and dampers of a floating joint act along the axes of the
    parent and about the axes of the child.
    """

    name: str
    type: JointType | Any
    parent: str | None  # body, or the ground: None, or WORLD
    child: str
    placement: PoseLike = Pose()
    axis: Annotated[Vector | Any, DIRECTION] = (0.0, 0.0, 1.0)
    anchor: VectorLike = (0.0, 0.0, 0.0)
    zero: float = 0.0  # coordinate in the file at which the child lies at `placement` (MJCF `ref`)


def values_of(kind: Any, x: Any) -> dict[str, Any]:
    """Return the fields that an object has from a dataclass, by name: keyword arguments of another class that has them."""
    return {f.name: getattr(x, f.name) for f in fields(kind)}


class LoopType(StrEnum):
    """Types of loop joints, by the free motion between the two connected frames; their z axes are the joint's axis."""

    REVOLUTE = "revolute"  # turning about z
    SPHERICAL = "spherical"  # turning
    WELD = "weld"  # nothing
    PRISMATIC = "prismatic"  # sliding along z
    CYLINDRICAL = "cylindrical"  # turning about z and sliding along it
    UNIVERSAL = "universal"  # turning about z of the predecessor's frame and x of the successor's; they stay perpendicular
    PLANAR = "planar"  # sliding along x and y, and turning about z


POSITION = (0, 1, 2)
ALIGNMENTS = {  # axes of the predecessor's frame along which points meet; pairs of axes that stay perpendicular
    LoopType.REVOLUTE: (POSITION, ((0, 2), (1, 2))),
    LoopType.SPHERICAL: (POSITION, ()),
    LoopType.WELD: (POSITION, ((0, 1), (1, 2), (2, 0))),
    LoopType.PRISMATIC: ((0, 1), ((0, 1), (1, 2), (2, 0))),
    LoopType.CYLINDRICAL: ((0, 1), ((0, 2), (1, 2))),
    LoopType.UNIVERSAL: (POSITION, ((2, 0),)),
    LoopType.PLANAR: ((2,), ((0, 2), (1, 2))),
}
FACING = {  # axes that point the same way in both frames
    LoopType.REVOLUTE: (2,),
    LoopType.SPHERICAL: (),
    LoopType.WELD: (0, 1, 2),
    LoopType.PRISMATIC: (0, 1, 2),
    LoopType.CYLINDRICAL: (2,),
    LoopType.UNIVERSAL: (),
    LoopType.PLANAR: (2,),
}


@checked
@dataclass(frozen=True, slots=True)
class Loop:
    """A joint that closes a loop: it connects a frame on one body with a frame on another."""

    name: str
    type: LoopType | Any
    predecessor: str | None  # body, or the ground: None or WORLD
    successor: str | None  # body, or the ground: None or WORLD
    predecessor_frame: PoseLike = Pose()
    successor_frame: PoseLike = Pose()
    softness: Softness = DEFAULT_SOFTNESS  # where equalities are compliant
    torque_scale: float = 1.0  # MJCF: weight of a weld's rotation relative to its displacement [m]


@checked
class LengthTie(NamedTuple):
    """A relation between two lengths: the first minus its rest is a polynomial of the second minus its rest.

    Lengths are sums of coefficient × coordinate over (joint, coefficient).
    """

    first: tuple[tuple[str, float], ...]
    second: tuple[tuple[str, float], ...]
    rests: tuple[float, float]
    coefficients: tuple[float, ...]


COEFFICIENTS = pairs_by_name(ONE_OR_SEVERAL)
FACTORS = pairs_by_name(NUMBER)


@checked
@dataclass(frozen=True, slots=True)
class Coupling:
    """A joint that follows others: its coordinate is offset + sum of c1 q + c2 q² + ... over `terms`.

    All joints have one degree of freedom. `terms` are (joint, (c1, c2, ...)); a gear has one coefficient, its ratio.
    """

    name: str
    joint: str
    terms: Annotated[tuple[tuple[str, tuple[float, ...]], ...] | Any, COEFFICIENTS]
    offset: float = 0.0
    softness: Softness = DEFAULT_SOFTNESS  # where equalities are compliant
    tie: LengthTie | None = None  # the relation in the file, if the coupling comes from lengths


@checked
@dataclass(frozen=True, slots=True)
class Closure:
    """User-defined constraints: `function(q)` is zero for the coordinates q of `joints`, which have one coordinate each.

    The function takes an array of numeric or symbolic numbers and returns a sequence. Arithmetic, numpy.sin, numpy.cos and
    numpy.sqrt accept symbolic numbers; comparisons do not.
    """

    name: str
    joints: tuple[str, ...]
    function: Callable[[Any], Sequence[Any]]
