"""Loops, couplings and constraints of a description, in terms of the rows of its tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...algorithms.mechanisms.cluster_tree import Alignment, Attached, Closing, Follower
from ...engine.differentiation import rates_of_expressions
from ...engine.graph import Graph
from ...engine.tape import record
from ...model.description import Description
from ...model.model import Model, MovingJoint, Placed
from ...model.types import ALIGNMENTS, FACING, WORLD, Closure, Coupling, Loop, ModelError, Pose


class Declared:
    """The loops, couplings, closures and independence marks of a description, checked."""

    def __init__(self, description: Description, model: Model) -> None:
        self.d, self.model = description, model
        self.tree = model.tree
        self.joints = {j.name: j for j in model.joints}
        self.given = self._marked(description.independent), self._marked(description.dependent)
        self.followers = self._followers()
        self.alignments = {loop.name: self._alignments(loop) for loop in description.loops}
        self.facings = {loop.name: self._facings(loop) for loop in description.loops}
        self.closings = [self._closing(c) for c in description.closures]

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

    def _closing(self, c: Closure) -> Closing:
        return closing(c.name, c.function, tuple(self._row(name, f"constraint {c.name!r}") for name in c.joints))

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
