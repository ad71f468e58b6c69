"""Collisions and distances of pairs of shapes in many states: compiled placements, then bounding volumes, then coal."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...algorithms import frames
from ...engine.function import CompiledFunction
from ...engine.program import Output
from ...model.model import Placed
from ...model.types import Pose, ShapeType
from ..system import System, placements
from .bounding_volumes import bounding_volumes, near_pairs
from .geometries import geometry_of, geometry_placement, import_coal
from .shape_pairs import CollisionPair, described_pair

Array = np.ndarray[Any, np.dtype[Any]]

CANDIDATES = 1 << 14  # pairs whose bounding volumes are held at a time, of all states


class ShapeQueries:
    """Pairs of shapes of a robot, given by their numbers in `robot.shapes`."""

    def __init__(self, robot: System, pairs: Sequence[tuple[int, int]]) -> None:
        self._coal = coal = import_coal("collisions of shapes")
        used = sorted({k for pair in pairs for k in pair})
        shapes = [robot.shapes[k] for k in used]
        self._robot, self._nq = robot, robot.nq
        self.pairs: tuple[CollisionPair, ...] = tuple(described_pair(robot, i, j) for i, j in pairs)
        self.number = {pair: k for k, pair in enumerate(self.pairs)}
        self._numbers = np.array([(used.index(i), used.index(j)) for i, j in pairs], dtype=np.int64).reshape(-1, 2)
        self._geometries = [geometry_of(coal, s) for s in shapes]
        self._volumes = bounding_volumes(self._geometries, [s.type is ShapeType.PLANE for s in shapes])
        self._poses = [coal.Transform3s() for _ in shapes]  # and what follows: written in each query, one at a time
        self._lock, self._where = threading.Lock(), set[int]()
        self._sides = self._numbers.tolist()
        self._collision, self._touch = coal.CollisionRequest(), coal.CollisionResult()
        self._collision.enable_contact = False  # whether, not where
        self._distance, self._nearest = coal.DistanceRequest(), coal.DistanceResult()
        self._hits = np.zeros(len(pairs), dtype=np.int64)
        self._bodies = [s.body for s in shapes]
        self._height_fields = [s.name for s in shapes if s.type is ShapeType.HEIGHTFIELD]
        placed = {b.name: p for b, p in zip(robot.bodies, robot.model.placed_bodies, strict=True)}
        ground = Placed(-1, Pose())
        carriers = [ground if s.body is None else placed[s.body] for s in shapes]
        where = [Placed(c.row, c.pose @ geometry_placement(s)) for c, s in zip(carriers, shapes, strict=True)] or [ground]
        output = Output("placement", (len(where), 4, 4))
        self._place = robot.bind("shape_placements", frames.frame_placement, ("q",), (output,), (placements(where),))
        self._moving = list(dict.fromkeys(b for b in self._bodies if b is not None))
        self._carriers = [placed[b] for b in self._moving]

    def touching(self, q: Any, margin: float) -> Array:
        """Whether each pair (..., npairs) is within `margin` [m]."""
        found = self._room(q, (len(self.pairs),), bool)
        with self._lock:
            for state, pairs in self._narrow(q, margin):
                for k in pairs:
                    found[state, k] = self._meet(k)
        return self._shaped(q, found)

    def any_touching(self, q: Any, margin: float) -> Array:
        """Whether any pair (...) is within `margin` [m]. Pairs that touch often are tried first."""
        found = self._room(q, (), bool)
        with self._lock:
            for state, pairs in self._narrow(q, margin):
                for k in sorted(pairs, key=self._hits.__getitem__, reverse=True):
                    if self._meet(k):
                        self._hits[k] += 1
                        found[state] = True
                        break
        return self._shaped(q, found)

    def distances(self, q: Any, within: float) -> tuple[Array, Array, Array]:
        """Signed distances (..., npairs), nearest points (..., npairs, 2, 3) and normals (..., npairs, 3); beyond `within` [m]
        infinite and NaN."""
        if self._height_fields:
            raise ValueError(
                f"{self._robot.name}: distances to the height field {self._height_fields[0]!r} are not computed: "
                "give pairs= without it, or ask for collisions with a margin"
            )
        n, nearest, request = len(self.pairs), self._nearest, self._distance
        distance, points, normals = (self._room(q, core, float) for core in ((n,), (n, 2, 3), (n, 3)))
        distance[:], points[:], normals[:] = np.inf, np.nan, np.nan
        with self._lock:
            for state, pairs in self._narrow(q, within):
                for k in pairs:
                    nearest.clear()
                    # coal's functors for one pair would begin where the last call ended, and a result depend on it
                    gap = self._coal.distance(*self._placed(k), request, nearest)
                    if gap <= within:
                        distance[state, k] = gap
                        points[state, k, 0], points[state, k, 1] = nearest.getNearestPoint1(), nearest.getNearestPoint2()
                        normals[state, k] = nearest.normal
        return self._shaped(q, distance), self._shaped(q, points), self._shaped(q, normals)

    def jacobian(self, q: Any, pairs: Sequence[CollisionPair], points: Array, normals: Array) -> Array:
        """What the distances (..., npairs) of some pairs change by along velocities (..., npairs, nv): n · (J_b - J_a)."""
        chosen = self._numbers[[self.number[pair] for pair in pairs]]
        whole = self._velocities(q)  # of a body as it passes the world's origin
        lines = np.empty((*points.shape[:-1], 6))
        lines[..., :3] = normals[..., None, :]
        lines[..., 3:] = np.cross(points, normals[..., None, :])
        result = np.zeros((*normals.shape[:-1], self._robot.nv))
        for side, sign in ((0, -1.0), (1, 1.0)):
            bodies = [self._bodies[k] for k in chosen[:, side]]
            moved = [p for p, body in enumerate(bodies) if body is not None]
            numbers = [self._moving.index(bodies[p]) for p in moved]
            result[..., moved, :] += sign * (lines[..., moved, side, None, :] @ whole[..., numbers, :, :])[..., 0, :]
        return result

    @cached_property
    def _velocities(self) -> CompiledFunction:
        output = Output("J", (len(self._carriers), 6, self._robot.nv))
        constants = (placements(self._carriers), frames.WORLD)
        return self._robot.bind("shape_jacobians", frames.frame_jacobian, ("q",), (output,), constants)

    def _room(self, q: Any, core: tuple[int, ...], kind: type) -> Array:
        """For results of all states in a row."""
        q = np.asarray(q)
        if q.ndim == 0 or q.shape[-1] != self._nq:
            self._place(q)  # says what is wrong with it
        if not np.isfinite(q).all():
            raise ValueError(f"{self._robot.name}: q has numbers that are not finite; correct them")
        return np.zeros((q[..., 0].size, *core), kind)

    def _shaped(self, q: Any, flat: Array) -> Array:
        return flat.reshape((*np.shape(q)[:-1], *flat.shape[1:]))

    # pairs that bounding volumes leave

    def _narrow(self, q: Any, reach: float) -> Iterator[tuple[int, list[int]]]:
        """States with pairs that may be within `reach`, and those pairs; the geometries are placed as in that state."""
        if not self.pairs:
            return
        self._collision.security_margin = reach
        flat = np.asarray(q, dtype=np.float64).reshape(-1, self._nq)  # coal takes no others
        block = max(32, CANDIDATES // len(self.pairs))
        for start in range(0, len(flat), block):
            placement = np.asarray(self._place(flat[start : start + block]))
            state, pair = near_pairs(self._volumes, placement, self._numbers, reach)
            ends = [*np.flatnonzero(np.diff(state, prepend=-1)).tolist(), len(state)]
            for begin, end in itertools.pairwise(ends):
                s = int(state[begin])
                self._placement = placement[s]
                self._where.clear()
                yield start + s, pair[begin:end].tolist()

    def _placed(self, k: int) -> tuple[Any, Any, Any, Any]:
        """A pair's geometries, each with its pose in the state at hand, which is written when it is first asked for."""
        i, j = self._sides[k]
        for g in (i, j):
            if g not in self._where:
                self._where.add(g)
                T = self._placement[g]
                self._poses[g].setTransform(T[:3, :3], T[:3, 3])
        return self._geometries[i], self._poses[i], self._geometries[j], self._poses[j]

    def _meet(self, k: int) -> bool:
        self._touch.clear()
        return bool(self._coal.collide(*self._placed(k), self._collision, self._touch))
