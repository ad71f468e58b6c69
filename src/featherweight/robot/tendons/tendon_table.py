"""Conversion of tendons, drives at frames and followers to the arrays of `Lengths`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Array
from ...model.model import CompliantLengths, CompliantLoop, MovingJoint
from ...model.types import (
    AnyFrame,
    Axes,
    Coupling,
    Frame,
    FrameForce,
    LengthTie,
    LoopType,
    Pose,
    Pulley,
    Tendon,
    TendonPoint,
    TendonWrap,
)
from ..frame_functions import frame_jacobian
from ..system import System
from .lengths import (
    BALL,
    CRANK,
    CYLINDER,
    IN_FRAME,
    IN_REFERENCE,
    IN_WORLD,
    NOTHING,
    PLACE,
    POINT,
    PULLEY,
    SPHERE,
    WRENCH,
    Lengths,
)

AXES = {Axes.FRAME: IN_FRAME, Axes.REFERENCE: IN_REFERENCE, Axes.WORLD: IN_WORLD}
GROUND = -1
NO_FRAME = np.zeros(30)


class CompliantRow(NamedTuple):
    """A row of a compliant equality: component 0 to 2 of a displacement, 3 to 5 of a rotation."""

    by: CompliantLoop | Coupling | CompliantLengths
    component: int = 0
    rows: tuple[int, ...] = ()  # rows of the lengths that it couples

    @property
    def name(self) -> str:
        return self.by.loop.name if isinstance(self.by, CompliantLoop) else self.by.name


class LengthTable(NamedTuple):
    """The lengths of a robot, and the index of each."""

    lengths: Lengths
    compliant: tuple[CompliantRow, ...]  # the last rows
    bodies: tuple[str, ...]  # bodies of strings and frames
    joint_at: Array  # (n,) index of each row's coordinate among the coordinates, -1 for none
    extra: int  # rows of moment arms beyond those of joints

    @property
    def is_linear(self) -> bool:
        """Return whether all lengths are sums of multiples of coordinates, whose moment arms are constant."""
        x = self.lengths
        return not (len(x.node) or (x.frame[:, 1] != NOTHING).any() or x.powers[:, 1:].any())

    def bodies_of(self, i: int) -> list[int]:
        """Return the numbers of the bodies that a length connects; for strings, all bodies on their paths."""
        x = self.lengths
        nodes = x.node[x.nodes[i] : x.nodes[i + 1], 1]
        frames = x.frame[i, [0, 3]] if x.frame[i, 1] else nodes[:0]
        return sorted({int(b) for b in (*nodes, *frames) if b >= 0})


class _Part(NamedTuple):
    """A length without an index in the arrays."""

    row: int
    own: bool
    offset: float = 0.0
    terms: Sequence[tuple[int, int, tuple[float, ...]]] = ()  # coordinate, row, powers
    path: Sequence[TendonPoint | TendonWrap | Pulley] = ()
    force: FrameForce | None = None
    whole: bool = False  # the force also acts on bodies that carry both frames, because the ends of a loop lie apart
    turn: int = 0  # 1 to 3: a component of the rotation instead of a force, times the wrench's last number; 4: a crank
    kind: int = NOTHING  # `BALL`, or a coordinate `PLACE` of a joint; the only term has its coordinates and first row


def length_table(
    robot: System,
    tendons: Sequence[Tendon],
    forces: Sequence[FrameForce] = (),
    followers: Collection[int] = (),
    balls: Sequence[MovingJoint] = (),
    free: Sequence[MovingJoint] = (),
) -> LengthTable:
    """Return the lengths of a robot.

    These are rows of the tree that follow others (`followers`), tendons, angles of ball joints, coordinates of free joints'
    positions, drives at frames, and compliant equalities. Raises ValueError for unknown joints, bodies and frames.
    """
    rows = len(robot.model.tree.parent)
    at, first = np.full(rows, -1), {}
    for whole, j in zip(robot.model.joints, robot.joints, strict=True):
        first[whole.name] = whole.v_slice.start
        if whole.type.nq == 1 and j.q_slice.stop > j.q_slice.start:
            at[whole.v_slice.start] = j.q_slice.start
    parts: list[_Part] = []
    followed = {f.row: f for f in robot.followers()}
    named = {first[name] for t in tendons for name, _ in t.terms if name in first}
    wanted = _with_leaders({*followers, *(named & followed.keys())}, followed)
    for row, f in followed.items():  # leaders first
        if row in wanted:
            terms = [(int(at[leader]), leader, powers) for leader, powers in f.terms]
            at[row] = robot.nq + len(parts)
            parts.append(_Part(row, False, f.offset, terms))
    extra = count(rows)
    for tendon in tendons:
        terms = [_term(tendon, name, c, first, at) for name, c in tendon.terms]
        parts.append(_Part(next(extra), True, 0.0, terms, tendon.path))
    places = {j.name: j.q_slice.start for j in robot.joints}
    for j, kind in [(j, BALL) for j in balls] + [(j, PLACE + k) for j in free for k in range(3)]:
        parts.append(_Part(next(extra), True, terms=[(places[j.name], j.v_slice.start, (0.0,))], kind=kind))
    for force in forces:
        parts.append(_Part(next(extra), True, force=force, turn=0 if force.rod is None else CRANK - WRENCH))
    compliant: list[CompliantRow] = []
    ties: list[list[tuple[int, int]]] = []
    for x in robot.model.compliant_lengths:
        ties.append([])
        for side in filter(None, (x.tie.first, x.tie.second)):
            terms = [(int(at[first[name]]), first[name], (c,)) for name, c in side]
            ties[-1].append((robot.nq + len(parts), row := next(extra)))
            parts.append(_Part(row, True, 0.0, terms))
    for loop in robot.model.compliant_loops:
        for k, part in enumerate(_ends(loop)):
            parts.append(part._replace(row=next(extra)))
            compliant.append(CompliantRow(loop, k))
    for c in robot.model.compliant_couplings:
        terms = [(int(at[first[c.joint]]), first[c.joint], (1.0,))]
        terms += [(int(at[first[name]]), first[name], tuple(-x for x in powers)) for name, powers in c.terms]
        parts.append(_Part(next(extra), True, -c.offset, terms))
        compliant.append(CompliantRow(c))
    for x, sides_at in zip(robot.model.compliant_lengths, ties, strict=True):
        offset, *powers = _around(x.tie)
        terms = [(sides_at[0][0], sides_at[0][1], (1.0,)), *((a, r, tuple(powers)) for a, r in sides_at[1:])]
        parts.append(_Part(next(extra), True, offset, terms))
        compliant.append(CompliantRow(x, rows=tuple(r for _, r in sides_at)))
    lengths, bodies = _arrays(robot, parts)
    return LengthTable(lengths, tuple(compliant), bodies, at, next(extra) - rows)


def _around(tie: LengthTie) -> list[float]:
    """Return -rest - P(length - rest) as coefficients by powers of the second length, from the constant on."""
    total = [0.0]
    for c in reversed(tie.coefficients):  # Horner's rule for polynomials
        shifted = [0.0, *total]
        for k, x in enumerate(total):
            shifted[k] -= tie.rests[1] * x
        total = [shifted[0] - c, *shifted[1:]]
    if not tie.second:
        total = [-tie.coefficients[0]]
    total[0] -= tie.rests[0]
    return total


def _ends(compliant: CompliantLoop) -> list[_Part]:
    """Return the displacement of one end of a loop from the other in the world's axes, and the rotation of a weld."""
    loop = compliant.loop
    ends = (
        Frame(f"{loop.name}/1", loop.predecessor, loop.predecessor_frame),
        Frame(f"{loop.name}/2", loop.successor, loop.successor_frame),
    )
    parts = []
    for k in range(3):
        x, y, z = (float(i == k) for i in range(3))
        force = FrameForce(ends[0], (x, y, z, 0.0, 0.0, 0.0), ends[1], Axes.WORLD, Axes.WORLD)
        parts.append(_Part(0, True, force=force, whole=True))
    for k in range(3 if loop.type is LoopType.WELD else 0):
        force = FrameForce(ends[0], (0.0, 0.0, 0.0, 0.0, 0.0, loop.torque_scale), ends[1])
        parts.append(_Part(0, True, force=force, whole=True, turn=1 + k))
    return parts


def _with_leaders(rows: set[int], followed: Mapping[int, Any]) -> set[int]:
    """Return the rows, and their leaders that are followers themselves."""
    while more := {leader for r in rows for leader, _ in followed[r].terms if leader in followed} - rows:
        rows |= more
    return rows


def _term(tendon: Tendon, name: str, c: float, first: Mapping[str, int], at: Array) -> tuple[int, int, tuple[float, ...]]:
    row = first.get(name, -1)
    if row < 0 or at[row] < 0:
        raise ValueError(f"tendon {tendon.name!r}: {name!r} is not a moving joint with one coordinate; correct its terms")
    return int(at[row]), row, (c,)


def _arrays(robot: System, parts: Sequence[_Part]) -> tuple[Lengths, tuple[str, ...]]:
    powers = max((len(p) for part in parts for _, _, p in part.terms), default=1)
    terms = [(a, r, [*p, *[0.0] * (powers - len(p))]) for part in parts for a, r, p in part.terms]
    numbers: dict[str, int] = {}

    def number(body: str | None) -> int:
        return GROUND if body is None else numbers.setdefault(body, len(numbers))

    nodes = [_node(x, number) for part in parts for x in part.path]
    frames = [_frame(robot, part, number) for part in parts]
    kept = [np.ones(robot.nv) if part.whole else _kept(robot, part.force) for part in parts]
    return Lengths(
        at=robot.nq + np.arange(len(parts)),
        row=np.array([p.row for p in parts], np.int64),
        own=np.array([p.own for p in parts], bool),
        offset=np.array([p.offset for p in parts], float),
        terms=np.cumsum([0, *(len(p.terms) for p in parts)]).astype(np.int64),
        term_at=np.array([a for a, _, _ in terms], np.int64),
        term_row=np.array([r for _, r, _ in terms], np.int64),
        powers=np.array([p for _, _, p in terms], float).reshape(-1, powers),
        nodes=np.cumsum([0, *(len(p.path) for p in parts)]).astype(np.int64),
        node=np.array([x for x, _ in nodes], np.int64).reshape(-1, 4),
        place=np.array([x for _, x in nodes], float).reshape(-1, 16),
        frame=np.array([x for x, _ in frames], np.int64).reshape(-1, 6),
        wrench=np.array([x for _, x in frames], float).reshape(-1, 30),
        kept=np.array(kept, float).reshape(-1, robot.nv),
        placement=np.zeros((len(numbers), 4, 4)),
        jacobian=np.zeros((len(numbers), 6, robot.nv)),
        bias=np.zeros((len(numbers), 6)),
        bias_acceleration=np.zeros(robot.nv),
        drift=np.zeros(max((p.row for p in parts), default=-1) + 1),
    ), tuple(numbers)


def _node(x: TendonPoint | TendonWrap | Pulley, number: Callable[[str | None], int]) -> tuple[list[int], list[float]]:
    if isinstance(x, Pulley):
        return [PULLEY, GROUND, 0, GROUND], [*_row(Pose()), x.divisor, 0.0, 0.0, 0.0]
    if isinstance(x, TendonPoint):
        return [POINT, number(x.body), 0, GROUND], [*_row(Pose(p=x.position)), 0.0, 0.0, 0.0, 0.0]
    side = x.side or TendonPoint(None, (0.0, 0.0, 0.0))
    kind = CYLINDER if x.cylinder else SPHERE
    whole = [kind, number(x.body), int(x.side is not None), number(side.body)]
    return whole, [*_row(x.placement), x.radius, *side.position]


def _frame(robot: System, part: _Part, number: Callable[[str | None], int]) -> tuple[list[int], list[float]]:
    force = part.force
    if force is None:
        return [GROUND, part.kind, 0, GROUND, IN_FRAME, IN_FRAME], [*NO_FRAME]
    own = robot.frame(force.frame)
    other = own if force.reference is None else robot.frame(force.reference)
    referred = int(force.reference is not None)
    whole = [number(own.body), 1 + part.turn, referred, number(other.body), AXES[force.force_axes], AXES[force.torque_axes]]
    wrench = force.wrench if force.rod is None else (*force.wrench[:3], 0.0, 0.0, force.rod)
    return whole, [*_row(own.placement), *_row(other.placement), *wrench]


def _kept(robot: System, force: FrameForce | None) -> Array:
    """Return 0 for the velocities that move both frames of a force alike, otherwise 1."""
    if force is None or force.reference is None:
        return np.ones(robot.nv)
    q = System.random_configuration(robot, rng=0)  # loops may be open
    relative = np.asarray(frame_jacobian(robot, force.frame, relative_to=force.reference)(q))
    return np.asarray(np.abs(relative).max(axis=0, initial=0.0) > 1e-12, float)


def _row(pose: Pose) -> list[float]:
    return [*pose.p, *(x for row in pose.R for x in row)]


def body_frames(bodies: Sequence[str]) -> list[AnyFrame]:
    """Return the frames of the file of some moving bodies."""
    return [Frame(name, name) for name in bodies]
