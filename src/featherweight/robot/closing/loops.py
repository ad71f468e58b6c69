"""Clusters from the loops, couplings and constraints of a description."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from ...algorithms.mechanisms.cluster_tree import (
    Alignment,
    Attached,
    Closing,
    Cluster,
    ClusterTree,
    Follower,
    constraint_count,
    moving,
)
from ...array_types import Array
from ...engine.differentiation import rates_of_expressions
from ...engine.graph import Graph
from ...engine.tape import record
from ...model import configuration
from ...model.clusters import clusters, handles, rows_between_bodies, whole_joints
from ...model.configuration import Coordinates
from ...model.description import Description
from ...model.model import Model, MovingJoint, Placed
from ...model.types import ALIGNMENTS, FACING, SMALLEST_INERTIA, WORLD, Coupling, Loop, ModelError, Pose
from ...spatial.elementary import norm
from ..system import LOOP_TOLERANCE
from .assembly import STARTS, Assembly, Found
from .independence import determined, kept_rows
from .misclosure import LoopFrames, Misclosure
from .solver import refined
from .soundness import loose_velocities, with_massless

CLOSED = 1e-12  # residual of a closed configuration, relative to the mechanism's size or to 1
NOTABLE = 1e-9  # residual that reports mention, relative to the mechanism's size or to 1
MISSED = 10.0  # misfit of nearly closed configurations, relative to the least misfit
SAMPLES, FURTHER = 4, 0.1  # closed configurations that determine rank; [rad] between starting points
FACING_AT_LEAST = 0.5  # cosine of axes that point the same way; 1 at closed loops


class Loops:
    """A model's clusters by the loops, couplings, closures and marks of a description, and the closing of its loops."""

    def __init__(self, description: Description, model: Model, tolerance: float = LOOP_TOLERANCE) -> None:
        self.d, self.model, self.tree = description, model, model.tree
        self.joints = {j.name: j for j in model.joints}
        self.given = self._marked(description.independent), self._marked(description.dependent)
        self.followers = self._followers()
        self.alignments = {loop.name: self._alignments(loop) for loop in description.loops}
        self.facings = {loop.name: self._facings(loop) for loop in description.loops}
        self.closings = [
            closing(c.name, c.function, tuple(self._row(name, f"constraint {c.name!r}") for name in c.joints))
            for c in description.closures
        ]
        self.tolerance = float(tolerance)
        self.assemblies: dict[tuple[int, ...], Assembly] = {}  # for each cluster with loops
        self.misfits: dict[str, tuple[float, float]] = {}  # [m, rad] contradiction of loops with others
        self._start: dict[tuple[int, ...], Array] = {}  # a closed configuration of the joints of each such cluster
        self.mechanism = self._mechanism()

    def with_model(self, model: Model) -> Loops:
        """Return the same clusters for a model that differs only in its inertias."""
        other = copy(self)
        other.model, other.tree, other.joints = model, model.tree, {j.name: j for j in model.joints}
        other.mechanism = self.mechanism._replace(tree=model.tree)
        return other

    def require_mass(self) -> None:
        """Raise ModelError for independent velocities that move no mass."""
        if found := self._loose():
            joint, there = found
            raise ModelError(
                f"{self.d.source}: joint {joint!r}, with the joints that loops and couplings move along, moves no mass"
                f"{there}; give the bodies an inertia"
            )

    def with_massless(self) -> Loops:
        """Return the same clusters, for a model with the names of its links without mass if a joint moves no mass."""
        found = self._loose()
        joint = next(j for j in self.model.joints if j.name == found[0]) if found else None
        return self.with_model(with_massless(self.model, joint))

    def _loose(self) -> tuple[str, str] | None:
        """Return the joint of a velocity that moves no mass, in general or where a follower stands still, and where."""
        q = self.in_general_position()
        for at, there in ((q, ""), *self._standstills(q)):
            lost = int(loose_velocities(self.mechanism, at[None])[0])
            if lost >= 0:
                return self.joint_of(lost), there
        return None

    def in_general_position(self) -> Array:
        """Return a closed configuration (nq,) that is not singular."""
        q = np.asarray(configuration.random_configuration(self.coordinates, self.nq, np.random.default_rng(1)))
        for clustered, x in self._start.items():
            q[self.assemblies[clustered].gap.places] = x
        return q

    def fixed_positions(self) -> dict[str, Array]:
        """Return the coordinates at which loops and couplings hold the joints, if no joint can move."""
        q = self.in_general_position()
        fixed = {j.name: q[c.q] for c, j in zip(self.coordinates, self._joints_in_q, strict=True)}
        return fixed | {c.joint: np.array([c.offset]) for c in self.d.couplings if not c.terms}

    def joint_of(self, velocity: int) -> str:
        """Return the name of the joint to which an independent velocity belongs."""
        row = [r for c in self.mechanism.clusters for r in c.independent][velocity]
        return next(j.name for j in self.model.joints if j.v_slice.start <= row < j.v_slice.stop)

    def _standstills(self, q: Array) -> Iterator[tuple[Array, str]]:
        """Yield configurations in which a joint within its limits does not move a follower of it, with a description.

        Joints in clusters with loops cannot be moved freely; they are skipped.
        """
        place = {j.v_slice.start: (c, j) for c, j in zip(self.coordinates, self._joints_in_q, strict=True)}
        for row, coefficients in {term for f in self.followers.values() for term in f.terms}:
            cluster = self.mechanism.clusters[self.mechanism.owner[row]]
            if row in place and len(coefficients) > 1 and not cluster.alignments and not cluster.closings:
                coordinates, joint = place[row]
                for x in _stationary(coefficients):
                    if joint.lower <= x <= joint.upper:
                        at = q.copy()
                        at[coordinates.q] = x
                        yield at, f" where {joint.name!r} is {x:.4g}"

    @cached_property
    def _joints_in_q(self) -> list[MovingJoint]:
        return [j for j in self.model.joints if j.v_slice.start not in self.followers]

    # what the description declares, in terms of the rows of its tree

    def _joint(self, name: str, where: str) -> MovingJoint:
        if name not in self.joints:
            raise ModelError(f"{self.d.source}: {where}: there is no moving joint {name!r}; correct the name")
        joint = self.joints[name]
        if joint.type.nv != 1:
            raise ModelError(f"{self.d.source}: {where}: joint {name!r} is {joint.type} and has no single coordinate")
        return joint

    def _row(self, name: str, where: str) -> int:
        return int(self._joint(name, where).v_slice.start)

    def _followers(self) -> dict[int, Follower]:
        """The couplings by the row of the follower; a follower comes after the joints that it follows."""
        asked: dict[int, tuple[Coupling, Follower]] = {}
        for c in self.d.couplings:
            where = f"coupling {c.name!r}"
            row = self._row(c.joint, where)
            if row in asked:
                raise ModelError(
                    f"{self.d.source}: {where}: joint {c.joint!r} already follows by {asked[row][0].name!r}; keep one"
                )
            terms = tuple((self._row(name, where), tuple(map(float, p))) for name, p in c.terms)
            asked[row] = (c, Follower(row, float(c.offset), terms))
        ordered: dict[int, Follower] = {}
        while len(ordered) < len(asked):
            ready = [
                r for r, (_, f) in asked.items() if r not in ordered and all(t not in asked or t in ordered for t, _ in f.terms)
            ]
            if not ready:
                names = ", ".join(repr(c.name) for r, (c, _) in asked.items() if r not in ordered)
                raise ModelError(f"{self.d.source}: couplings {names} form a cycle; remove one of them")
            ordered |= {r: asked[r][1] for r in ready}
        return ordered

    def _attached(self, link: str | None, pose: Pose, where: str) -> Attached:
        if link is None or (link == WORLD and link not in {b.name for b in self.d.bodies}):
            placed = Placed(-1, Pose())
        else:
            places = [p for f, p in zip(self.model.frames, self.model.placed_frames, strict=True) if f.name == link]
            if not places:
                raise ModelError(f"{self.d.source}: {where}: there is no link {link!r}; correct the name")
            placed = places[0]
        at = placed.pose @ pose
        return Attached(placed.row, at.R, at.p)

    def _alignments(self, loop: Loop) -> tuple[Alignment, ...]:
        where = f"loop {loop.name!r}"
        a = self._attached(loop.predecessor, loop.predecessor_frame, where)
        b = self._attached(loop.successor, loop.successor_frame, where)
        if a.row == b.row:
            raise ModelError(f"{self.d.source}: {where} connects links of the same body; remove it")
        points, axes = ALIGNMENTS[loop.type]
        return (*(Alignment(a, b, k, -1) for k in points), *(Alignment(a, b, i, k) for i, k in axes))

    def _facings(self, loop: Loop) -> tuple[Alignment, ...]:
        first = self.alignments[loop.name][0]
        return tuple(Alignment(first.a, first.b, k, k) for k in FACING[loop.type])

    def _marked(self, names: Sequence[str]) -> set[int]:
        """Return the rows of joints with these names."""
        rows: set[int] = set()
        for name in names:
            if name not in self.joints:
                raise ModelError(
                    f"{self.d.source}: {name!r} is marked as independent or dependent, but no moving joint has this name"
                )
            rows |= set(range(self.joints[name].v_slice.start, self.joints[name].v_slice.stop))
        return rows

    # clusters

    def _ties(self) -> Iterable[frozenset[int]]:
        for f in self.followers.values():
            yield whole_joints(self.tree, [f.row, *(r for r, _ in f.terms)])
        for rows in self.alignments.values():
            yield rows_between_bodies(self.tree, [rows[0].a.row, rows[0].b.row])
        for c in self.closings:
            yield whole_joints(self.tree, c.rows)

    def _mechanism(self) -> ClusterTree:
        tree = self.tree
        groups: list[Cluster] = []
        found = clusters(tree, self._ties())
        on = handles(tree, found)
        below = {own[-1] for own in on if len(own) > 1}
        for rows, own in zip(found, on, strict=True):
            inside = set(rows)
            followers = tuple(f for r, f in self.followers.items() if r in inside)
            following = {f.row for f in followers}
            groups.append(
                Cluster(
                    rows=rows,
                    handles=own,
                    start=0,
                    independent=tuple(r for r in rows if r not in following),
                    dependent=(),
                    followers=followers,
                    alignments=tuple(a for many in self.alignments.values() if first_row(many) in inside for a in many),
                    facings=tuple(a for many in self.facings.values() if many and first_row(many) in inside for a in many),
                    closings=tuple(c for c in self.closings if c.rows[0] in inside),
                    kept=(),
                    crossed=len(own) > 1 or not inside.isdisjoint(below),
                )
            )
        self.unreduced = self._numbered(groups)
        return self._numbered([self._reduced(c) for c in self.unreduced.clusters])

    def _numbered(self, groups: list[Cluster]) -> ClusterTree:
        tree = self.tree
        owner, start = [-1] * len(tree.parent), 0
        for k, c in enumerate(groups):
            groups[k] = c._replace(start=start)
            start += len(c.independent)
            for r in c.rows:
                owner[r] = k
        parent = []
        for c in groups:
            last = self._last(groups, owner, c.output)
            for k, _ in enumerate(c.independent):
                parent.append(last if k == 0 else c.start + k - 1)
        position, q = [], 0
        for joint in self.model.joints:
            follows = joint.v_slice.start in self.followers
            for _ in range(joint.type.nq):
                position.append(-1 if follows else q)
                q += not follows
        return ClusterTree(tree, tuple(groups), tuple(position), tuple(owner), tuple(parent))

    def _last(self, groups: Sequence[Cluster], owner: Sequence[int], row: int) -> int:
        """Return the last independent velocity that moves a row's body; -1 if there is none."""
        while row >= 0:
            cluster = groups[owner[row]]
            if not cluster.dependent and not cluster.followers:
                return int(cluster.start + cluster.rows.index(row))
            if cluster.independent:
                return int(cluster.start + len(cluster.independent) - 1)
            row = cluster.output
        return -1

    # which constraints and velocities are independent

    @cached_property
    def coordinates(self) -> list[Coordinates]:
        """Joints that appear in q, with all their coordinates and velocities."""
        coordinates, q, v = [], 0, 0
        for j in self.model.joints:
            if j.v_slice.start not in self.followers:
                coordinates.append(Coordinates(j.type, slice(q, q + j.type.nq), slice(v, v + j.type.nv), j.lower, j.upper))
                q, v = q + j.type.nq, v + j.type.nv
        return coordinates

    @cached_property
    def velocity_rows(self) -> list[int]:
        """Rows whose joints appear in q."""
        return [r for r in range(len(self.tree.parent)) if r not in self.followers]

    @property
    def nq(self) -> int:
        return self.coordinates[-1].q.stop if self.coordinates else 0

    def moved(self, q: Array, rows: Sequence[int], step: Array) -> Array:
        """Return configurations (..., nq) after steps (..., rows) of the joints in q that these rows of the tree belong to."""
        move = np.zeros((*step.shape[:-1], len(self.velocity_rows)))
        move[..., [self.velocity_rows.index(r) for r in rows]] = step
        return np.asarray(configuration.integrate(self.coordinates, q, move))

    @cached_property
    def size(self) -> float:
        """The longest distance between consecutive joints [m]."""
        return max((norm(*p) for p in self.tree.translation), default=1.0)

    def _assembly(self, cluster: Cluster) -> Assembly:
        loops = [
            LoopFrames(loop.name, loop.type, own[0].a, own[0].b)
            for loop in self.d.loops
            if first_row(own := self.alignments[loop.name]) in cluster.rows
        ]
        closures = [c.name for c, own in zip(self.d.closures, self.closings, strict=True) if own.rows[0] in cluster.rows]
        gap = Misclosure(self.unreduced, cluster, self.model.joints, loops, closures)
        return Assembly(gap, CLOSED * max(1.0, self.size), self.tolerance)

    def _samples(self, assembly: Assembly) -> Found:
        """Return closed configurations in general position, from near zero, from random points, or around the best ones.

        If loops contradict each other, nearly closed configurations count as closed; such loops are not closed exactly.
        """
        rng = np.random.default_rng(0)
        near = assembly.around(assembly.neutral(), rng)
        near(2)  # those nearest to zero are not in general position
        x, left = assembly.search(near, SAMPLES)
        if not len(x):
            return Found(x, left)
        worst = assembly.worst(x)
        if len(x) < SAMPLES:
            further = assembly.around(x[worst.argmin()], rng, step=FURTHER)
            further(2)
            x = np.concatenate([x, assembly.search(further, SAMPLES - len(x)).x])
            worst = assembly.worst(x)
        return Found(x[worst <= max(assembly.problem.exact, MISSED * worst.min())], left)

    def _reduced(self, cluster: Cluster) -> Cluster:
        """Return the cluster with independent constraint rows and velocities."""
        if not cluster.alignments and not cluster.closings:
            return cluster
        names = self.names(cluster)
        self.assemblies[cluster.rows] = assembly = self._assembly(cluster)
        x, left = self._samples(assembly)
        if not len(x):
            raise ModelError(self._open(names, assembly, left))
        kept, K, x = kept_rows(assembly, x)
        r = assembly.gap.residual(x)
        if np.abs(r).max() >= assembly.problem.exact:
            assembly.solve_only(kept)
            s = refined(assembly.problem, x, assembly.solved)
            if not s.closed.any():
                raise ModelError(self._open(names, assembly, s.r[s.worst.argmin()]))
            x, r = s.x[s.closed], s.r[s.closed]
        self._start[cluster.rows] = x[0]
        self.misfits |= {n: m for n, m in assembly.openings(r).items() if max(m) > NOTABLE * max(1.0, self.size)}
        columns = moving(cluster)
        dependent = self._dependents(K[kept], columns, names)
        assembly.kept, assembly.dependent = kept, [c for c, r in enumerate(columns) if r in dependent]
        return cluster._replace(
            kept=tuple(kept),
            dependent=tuple(r for r in columns if r in dependent),
            independent=tuple(r for r in columns if r not in dependent),
        )

    def _open(self, names: str, assembly: Assembly, left: Array | None) -> str:
        text = f"{self.d.source}: {names} cannot be closed: no configuration was found that satisfies them"
        if left is None:
            return text
        return (
            f"{text}; the best of {STARTS} attempts leaves {assembly.text_of(left)} open. Correct the frames of the loops, or, "
            "if rounded numbers make them contradict each other by so little, give a larger loop_tolerance"
        )

    def _dependents(self, K: Array, columns: list[int], names: str) -> set[int]:
        """Return the dependent rows: those that the description marks, otherwise those that make K_d well conditioned."""
        keep, give = self.given
        groups = (
            [c for c, r in enumerate(columns) if r in give],
            [c for c, r in enumerate(columns) if r not in give and r not in keep],
            [c for c, r in enumerate(columns) if r in keep],
        )
        chosen = determined(K, groups)
        if set(chosen) & set(groups[2]) or len(chosen) < len(K) or not set(groups[0]) <= set(chosen):
            free = len(columns) - len(K)
            what = f"{self.d.source}: {free} of {len(columns)} velocities stay free with {names}"
            if not (keep | give) & set(columns):
                raise ModelError(
                    f"{what}, but where they are closed some constraints nearly depend on others, so that no joints "
                    "follow from the rest: the mechanism is singular in every closed configuration that was found, like a "
                    "fully stretched arm. Move the frames of the loops so that it can bend, or remove a loop"
                )
            raise ModelError(
                f"{what}, but the joints that are marked as independent or dependent do not match this; mark others, or none"
            )
        return {columns[c] for c in chosen}

    def names(self, cluster: Cluster) -> str:
        """Return the names of the loops and constraints of a cluster."""
        names = [repr(n) for n, a in self.alignments.items() if first_row(a) in cluster.rows]
        names += [
            repr(c.name) for c, closing in zip(self.d.closures, self.closings, strict=True) if closing.rows[0] in cluster.rows
        ]
        names += [repr(c.name) for c in self.d.couplings if self._row(c.joint, "") in cluster.rows]
        return ", ".join(names)

    def row_names(self, cluster: Cluster) -> list[str]:
        """Return the kinds of the constraint rows that a cluster keeps, in words."""
        texts = []
        for name, alignments in self.alignments.items():
            if first_row(alignments) in cluster.rows:
                for a in alignments:
                    axes = "xyz"[a.axis] if a.other < 0 else f"{'xyz'[a.axis]} on {'xyz'[a.other]}"
                    texts.append(f"{name}: {'force along' if a.other < 0 else 'couple that keeps square'} {axes}")
        for c, closing in zip(self.d.closures, self.closings, strict=True):
            if closing.rows[0] in cluster.rows:
                texts += [f"{c.name}: constraint {k}" for k in range(closing.size)]
        return [texts[k] for k in cluster.kept]

    def redundant(self, cluster: Cluster) -> int:
        """Return the redundant constraint rows."""
        return constraint_count(cluster) - len(cluster.kept)


def _stationary(coefficients: Sequence[float]) -> list[float]:
    """Return the points where the derivative of c1 x + c2 x² + ... is zero, within a reasonable range."""
    slope = np.array([float(k * c) for k, c in enumerate(coefficients, 1)])
    slope /= max(np.abs(slope).max(), SMALLEST_INERTIA)
    significant = np.flatnonzero(np.abs(slope) > 1e-60)  # smaller slopes have roots out of range
    roots: Any = Polynomial(slope[: significant[-1] + 1]).roots() if len(significant) else ()
    return [float(x.real) for x in roots if x.imag == 0.0]


def first_row(alignments: Sequence[Alignment]) -> int:
    """Return the row of the tree that carries the first frame of a loop."""
    a = alignments[0]
    return max(a.a.row, a.b.row)


def closing(name: str, function: Callable[[Any], Any], rows: tuple[int, ...]) -> Closing:
    """Return constraints function(q) = 0 on the coordinates of rows, on tapes, with exact K and K' q'."""
    n = len(rows)
    g = Graph()
    q = [g.input(0, i) for i in range(n)]
    rates = [g.input(0, n + i) for i in range(n)]

    array = np.empty(n, dtype=object)
    array[:] = q
    result = np.array(function(array), dtype=object)
    if result.ndim != 1 or len(result) == 0:
        raise ValueError(f"constraint {name!r} must return a sequence of at least one number; got shape {result.shape}")
    values = list(result)
    K = rates_of_expressions(values, [*((x, {i: 1.0}) for i, x in enumerate(q)), *((v, {}) for v in rates)])
    velocities = [*((x, {0: v}) for x, v in zip(q, rates, strict=True)), *((v, {}) for v in rates)]
    slopes = [r.get(0, 0.0) for r in rates_of_expressions(values, velocities)]
    curvature = [r.get(0, 0.0) for r in rates_of_expressions(slopes, velocities)]
    entries = [row.get(i, 0.0) for row in K for i in range(n)]
    return Closing(rows, len(values), record(values), record(entries), record(curvature))
