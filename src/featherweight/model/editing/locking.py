"""Locking of joints at positions: they become fixed, and joints that move along with them are locked too.

When a robot is built, inertias of bodies that fixed joints connect are added, so the locked robot equals the whole robot with
these velocities at zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...array_types import Array
from ...checks import ARRAY, Refused, shown
from ...spatial.elementary import cos, norm, sin
from ...spatial.vectors import rotation_from_quaternion
from ..placement import frame_with_z
from ..types import (
    ALIGNMENTS,
    FACING,
    ROOT_JOINT,
    Closure,
    Contents,
    Coupling,
    Joint,
    JointType,
    Loop,
    Matrix,
    ModelError,
    Pose,
    Vector,
    as_matrix,
    as_vector,
    dot,
    rotate,
    transpose,
)
from .acting import without_joints
from .kept_parts import with_coordinates_of, with_sensors_of_rest
from .notes import noted, warn
from .references import D, grounded, joint_of, moved, on_bodies, supports, tied_with, unknown

OPEN = 1e-6  # [m, rad] tolerance of closed loops: positions often have six digits
SAME = 1e-9  # [rad, m] at size 1: difference of equal positions
UNIT = 1e-6  # deviation of the length of a quaternion, and of (cos, sin), from 1
ALONG_AN_AXIS = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC)

Positions = dict[str, tuple[float, ...]]


def locked(d: D, positions: Mapping[str, Any]) -> D:
    """Return the description with these joints fixed at these positions, each a number or the joint's part of q."""
    d = on_bodies(grounded(d))
    asked = {name: _position(d, name, value) for name, value in positions.items()}
    couplings, fixed_at = _lock_couplings(d, asked)
    fixed = tuple(_fixed(j, fixed_at[j.name]) if j.name in fixed_at else j for j in d.joints)
    _warn_of_limits(d, fixed_at)
    tendons, actuators = without_joints(d, fixed_at)
    locked = replace(
        d,
        joints=fixed,
        couplings=couplings,
        closures=_lock_closures(d, fixed_at),
        tendons=tendons,
        actuators=actuators,
    )
    locked = _without_locked_loops(locked)
    locked = _marked(locked, d, fixed_at)
    locked = with_coordinates_of(locked, {ROOT_JOINT} | {j.name for j in d.joints} - fixed_at.keys())
    locked = noted(locked, "locked joints", [*fixed_at])
    locked = noted(locked, "actuators of locked joints", [a.name for a in d.actuators if a not in actuators])
    locked = noted(locked, "tendons of locked joints", [t.name for t in d.tendons if t not in tendons])
    return contracted(with_sensors_of_rest(locked))


def _position(d: Contents, name: str, value: object) -> tuple[float, ...]:
    joint = joint_of(d, name, "locked")
    if joint.type is JointType.FIXED:
        free = [j.name for j in d.joints if j.type is not JointType.FIXED]
        raise unknown(d, name, "moving joint", free, "locked")
    where = f"{d.source}: locked: joint {name!r}, which is {joint.type},"
    numbers = _numbers(value)
    if numbers.size != joint.type.nq or numbers.ndim > 1 or not np.isfinite(numbers).all():
        needs = f"{joint.type.nq} finite numbers" if joint.type.nq > 1 else "one finite number"
        raise ModelError(f"{where} needs {needs}; got {shown(value)}")
    q = numbers.ravel()
    group = {JointType.SPHERICAL: q[0:4], JointType.FLOATING: q[3:7], JointType.PLANAR: q[2:4]}.get(joint.type)
    if group is not None:
        length = norm(*group.tolist())
        if abs(length - 1.0) > UNIT:
            what = "(cos, sin)" if joint.type is JointType.PLANAR else "quaternion (x, y, z, w)"
            raise ModelError(f"{where} needs a {what} of length one; got {shown(value)}")
        group /= length
    return tuple(q.tolist())


def _numbers(value: object) -> Array:
    """Return the value as an array; NaN if it does not consist of numbers."""
    try:
        return np.asarray(ARRAY.convert(value), dtype=np.float64)
    except Refused:
        return np.array(np.nan)


def _warn_of_limits(d: Contents, fixed_at: Mapping[str, tuple[float, ...]]) -> None:
    """Warn about positions beyond joint limits, which are often given in degrees by mistake."""
    for j in d.joints:
        if j.name in fixed_at and j.type.nq == 1 and not j.lower <= fixed_at[j.name][0] <= j.upper:
            problem = f"joint {j.name!r} is locked at {fixed_at[j.name][0]:g}, outside of its limits [{j.lower:g}, {j.upper:g}]"
            warn(d, f"{problem}; positions are in rad and m")


def _fixed(joint: Joint, position: tuple[float, ...]) -> Joint:
    placement = joint.placement @ joint_motion(joint, position)
    return Joint(joint.name, JointType.FIXED, joint.parent, joint.child, placement)


def joint_motion(joint: Joint, q: tuple[float, ...]) -> Pose:
    """Return the pose of the child's frame at a position, relative to its pose at `placement`."""
    if joint.type in (JointType.FLOATING, JointType.SPHERICAL):
        frame, move = Pose(p=joint.anchor), _free(q)
    else:
        frame, move = Pose(frame_with_z(joint.axis), joint.anchor), _along_z(joint, q)
    return frame @ move @ frame.inverse()


def _along_z(joint: Joint, q: tuple[float, ...]) -> Pose:
    if joint.type is JointType.PLANAR:
        return Pose(_about_z(q[2], q[3]), (q[0], q[1], 0.0))
    x = q[0] - joint.zero
    return Pose(p=(0.0, 0.0, x)) if joint.type is JointType.PRISMATIC else Pose(_about_z(cos(x), sin(x)))


def _about_z(c: float, s: float) -> Matrix:
    return ((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0))


def _free(q: tuple[float, ...]) -> Pose:
    """Return the motion of a spherical joint (q is a quaternion) or a floating joint (position and quaternion)."""
    p: Vector = as_vector(q[:3]) if len(q) == 7 else (0.0, 0.0, 0.0)
    return Pose(as_matrix(rotation_from_quaternion(*q[-4:])), p)


def _marked(d: D, before: Contents, fixed_at: Mapping[str, tuple[float, ...]]) -> D:
    """Return the description without marks of locked joints.

    A locked joint that was marked as independent removes one degree of freedom together with its mark. A joint without a mark
    removes a degree of freedom of another joint, so the marks of all joints that are connected to it are removed.
    """
    chosen_again = tied_with(before, [name for name in fixed_at if name not in before.independent])
    left = {j.name for j in d.joints if j.name not in fixed_at}
    result = replace(
        d,
        independent=tuple(name for name in d.independent if name in left - chosen_again),
        dependent=tuple(name for name in d.dependent if name in left),
    )
    lost = [name for name in before.independent if name in left & chosen_again]
    return noted(result, "marks of independent joints, which are chosen again", lost)


# --- couplings


def _lock_couplings(d: Contents, asked: Mapping[str, tuple[float, ...]]) -> tuple[tuple[Coupling, ...], Positions]:
    """Return the remaining couplings, and the positions of all locked joints: the given ones, and those that follow.

    A locked joint becomes a constant in the couplings of others. A joint that no longer follows any is locked too, and so is a
    joint that alone leads a locked joint; if a locked joint has several leaders, its coupling is solved for one of them.
    Raises ModelError if positions contradict couplings, or if a locked joint follows others by a polynomial of higher degree,
    which may have several solutions.
    """
    fixed_at, left = dict(asked), list(d.couplings)
    while True:
        left = [_with_constants(c, fixed_at) for c in left]
        ready = next((k for k, c in enumerate(left) if not c.terms or c.joint in fixed_at), None)
        if ready is None:
            return tuple(left), fixed_at
        c = left.pop(ready)
        if c.joint in fixed_at:
            c = _solved(d, _of_leaders(d, c, left, fixed_at), fixed_at)
        if c.terms:
            left.insert(ready, c)
        else:
            _lock(d, fixed_at, c)


def _lock(d: Contents, fixed_at: Positions, c: Coupling) -> None:
    """Record the position of a joint that follows no other; it may be locked already."""
    there = fixed_at.setdefault(c.joint, (c.offset,))[0]
    if abs(there - c.offset) > SAME * max(1.0, abs(there), abs(c.offset)):
        problem = f"coupling {c.name!r} puts joint {c.joint!r} at {c.offset:.9g}, not at {there:.9g}"
        raise ModelError(f"{d.source}: locked: {problem}; lock only one of the joints that it connects, or change a position")


def _with_constants(c: Coupling, fixed_at: Positions) -> Coupling:
    """Return the coupling with locked joints among its terms as part of the offset."""
    constant = math.fsum(_value(p, fixed_at[name][0]) for name, p in c.terms if name in fixed_at)
    terms = tuple(term for term in c.terms if term[0] not in fixed_at and any(term[1]))
    return replace(c, terms=terms, offset=c.offset + constant)


def _value(coefficients: tuple[float, ...], x: float) -> float:
    value = 0.0
    for coefficient in reversed(coefficients):
        value = (value + coefficient) * x
    return value


def _of_leaders(d: Contents, c: Coupling, others: list[Coupling], fixed_at: Positions) -> Coupling:
    """Return a linear coupling in terms of joints that follow none and are not locked."""
    by_joint = {other.joint: other for other in others}
    factors: dict[str, float] = {}
    offset, pending = c.offset, [(name, _factor(d, c, name, p), 0) for name, p in c.terms]
    while pending:
        name, factor, steps = pending.pop(0)
        if steps > len(others):
            raise ModelError(f"{d.source}: locked: couplings of joint {name!r} form a cycle; remove one of them")
        if name in fixed_at:
            offset += factor * fixed_at[name][0]
        elif name in by_joint:
            chain = by_joint[name]
            offset += factor * chain.offset
            pending += [(leader, factor * _factor(d, c, leader, p), steps + 1) for leader, p in chain.terms]
        else:
            factors[name] = factors.get(name, 0.0) + factor
    return replace(c, terms=tuple((name, (factor,)) for name, factor in factors.items() if factor), offset=offset)


def _factor(d: Contents, c: Coupling, leader: str, coefficients: tuple[float, ...]) -> float:
    if any(coefficients[1:]):
        problem = f"joint {c.joint!r} follows {leader!r} by a polynomial (coupling {c.name!r})"
        raise ModelError(f"{d.source}: locked: {problem}, which may have several solutions; lock {leader!r} instead")
    return coefficients[0]


def _solved(d: Contents, c: Coupling, fixed_at: Positions) -> Coupling:
    """Return the coupling of a locked joint, solved for one of its leaders.

    Leaders that are not marked as independent are preferred.
    """
    if not c.terms:
        return c
    terms = {name: factor for name, (factor,) in c.terms}
    joint = next((name for name in terms if name not in d.independent), next(iter(terms)))
    ratio = terms.pop(joint)
    others = tuple((name, (-factor / ratio,)) for name, factor in terms.items())
    return Coupling(c.name, joint, others, (fixed_at[c.joint][0] - c.offset) / ratio)


# --- loops and closures


def _without_locked_loops(d: D) -> D:
    """Return the description without loops between bodies that cannot move relative to each other; these must be closed."""
    paths = supports(d)
    idle = []
    for loop in d.loops:
        a, b = (_moving_body(paths[end]) for end in (loop.predecessor, loop.successor))
        if a[0] == b[0]:
            _require_closed(d, loop, a[1] @ loop.predecessor_frame, b[1] @ loop.successor_frame)
            idle.append(loop.name)
    result = replace(d, loops=tuple(loop for loop in d.loops if loop.name not in idle))
    return noted(result, "loops that locked joints keep closed", idle)


def _moving_body(path: Sequence[Joint]) -> tuple[str | None, Pose]:
    """Return the moving body that carries the end of a path from the ground, and the pose of that end on it."""
    body, pose = None, Pose()
    for j in path:
        fixed = j.type is JointType.FIXED
        body, pose = (body, pose @ j.placement) if fixed else (j.child, Pose())
    return body, pose


def _require_closed(d: Contents, loop: Loop, a: Pose, b: Pose) -> None:
    along, across = ALIGNMENTS[loop.type]
    gap = rotate(transpose(a.R), (b.p[0] - a.p[0], b.p[1] - a.p[1], b.p[2] - a.p[2]))
    axes_a, axes_b = transpose(a.R), transpose(b.R)
    distance = norm(*(gap[k] for k in along))
    turned = max((abs(dot(axes_a[i], axes_b[k])) for i, k in across), default=0.0)
    away = any(dot(axes_a[k], axes_b[k]) < 0.0 for k in FACING[loop.type])
    if distance > OPEN or turned > OPEN or away:
        off = "turned the wrong way" if away else f"off by {turned:.3g} rad"
        what = f"open by {distance:.3g} m" if distance > OPEN else off
        problem = f"at these positions loop {loop.name!r} is {what}, and no joint is left to close it"
        raise ModelError(f"{d.source}: locked: {problem}; take them from a closed configuration, such as `close` returns")


@dataclass(frozen=True)
class _PartlyLocked:
    """A closure's function with some of its joints locked: `positions` has None for those that move."""

    function: Callable[[Any], Sequence[Any]]
    positions: tuple[float | None, ...]

    def __call__(self, q: Sequence[Any]) -> Sequence[Any]:
        moving = iter(q)
        whole = [next(moving) if x is None else x for x in self.positions]
        numbers = all(isinstance(x, (int, float, np.number)) for x in whole)
        array = np.empty(len(whole), dtype=np.float64 if numbers else object)
        array[:] = whole
        return self.function(array)


def _lock_closures(d: Contents, fixed_at: Mapping[str, tuple[float, ...]]) -> tuple[Closure, ...]:
    """Return the closures of joints that still move, as functions of those."""
    left = []
    for c in d.closures:
        positions = tuple(fixed_at[name][0] if name in fixed_at else None for name in c.joints)
        moving = tuple(name for name in c.joints if name not in fixed_at)
        function = _PartlyLocked(c.function, positions)
        if not moving:
            residual = np.abs(np.asarray(function(()), dtype=np.float64)).max(initial=0.0)
            if not residual <= OPEN:
                problem = f"closure {c.name!r} is {residual:.3g} at these positions, and no joint is left to make it zero"
                raise ModelError(f"{d.source}: locked: {problem}; lock its joints at positions where it is zero")
        else:
            left.append(c if len(moving) == len(c.joints) else Closure(c.name, moving, function))
    return tuple(left)


# --- hidden bodies between several joints of one body of a file


def contracted(d: D) -> D:
    """Return the description without hidden bodies that a fixed joint connects to another body.

    The other joints keep their coordinates. If a joint's coordinates cannot be expressed for the body that it then moves, the
    hidden body remains and becomes visible.
    """
    while (joint := _next(d)) is not None:
        in_between = joint.child in d.virtual
        d = _merged(d, joint.child, joint.parent, joint.placement, joint) if in_between else _handed_on(d, joint)
    return d


def _next(d: Contents) -> Joint | None:
    fixed = (j for j in d.joints if j.type is JointType.FIXED)
    return next((j for j in fixed if j.child in d.virtual or j.parent in d.virtual), None)


def _handed_on(d: D, fixed: Joint) -> D:
    """Return the joint that moved the hidden parent of a fixed joint, with the fixed joint's child as its own."""
    F, virtual = fixed.placement, str(fixed.parent)
    inward = next(j for j in d.joints if j.child == virtual)
    straight = inward.type is JointType.SPHERICAL and F.R == Pose().R
    if inward.type is not JointType.FIXED and inward.type not in ALONG_AN_AXIS and not straight:
        return replace(d, virtual=d.virtual - {virtual})
    back = F.inverse()
    onward = replace(
        inward,
        child=fixed.child,
        placement=inward.placement @ F,
        axis=rotate(transpose(F.R), inward.axis),
        anchor=(back @ Pose(p=inward.anchor)).p,
    )
    d = replace(d, joints=tuple(onward if j is inward else j for j in d.joints))
    return _merged(d, virtual, fixed.child, back, fixed)


def _merged(d: D, body: str, onto: str | None, pose: Pose, fixed: Joint) -> D:
    """Return the description without the body and the fixed joint; elements of the body move to `pose` on another."""
    others = replace(
        d,
        bodies=tuple(b for b in d.bodies if b.name != body),
        virtual=d.virtual - {body},
        joints=tuple(j for j in d.joints if j is not fixed),
    )
    return moved(others, lambda at, placed: (onto, pose @ placed) if at == body else (at, placed))
