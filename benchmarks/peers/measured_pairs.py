"""Distances of two shapes at many placements, by the kernels of `featherweight.collision`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import featherweight as fw
from featherweight.array_types import Array
from featherweight.collision.pair_queries import DistanceQuery, EachTouchingQuery, all_distances, each_touching
from featherweight.collision.query_tables import pair_table, query_work
from featherweight.collision.shape_parts import shape_part
from featherweight.engine.loops.kernels import CompiledLoop, Table

_distances, _touching = CompiledLoop(all_distances, 0), CompiledLoop(each_touching, 0)


class PairDistances(NamedTuple):
    """Signed distances (n,), points on both shapes (n, 2, 3), and normals from the first to the second (n, 3)."""

    distance: Array
    points: Array
    normal: Array


class MeasuredPair:
    """A pair of shapes."""

    def __init__(self, one: fw.Shape, other: fw.Shape) -> None:
        self.shapes = one, other
        self.parts = shape_part(one), shape_part(other)
        self.table = pair_table(self.parts, [(0, 1)])
        self.work = query_work(self.table, 1, 0)

    def distances(self, T: Array, within: float = np.inf) -> PairDistances:
        """Return distances for placements (n, 2, 4, 4) of the bodies of the shapes."""
        n = len(T)
        found = PairDistances(np.zeros((n, 1)), np.zeros((n, 1, 6)), np.zeros((n, 1, 3)))
        query = Table(DistanceQuery(*self._asked(T, within), *found, self.table, self.work))
        _distances.for_tables(query)(query.address)
        return PairDistances(found.distance[:, 0], found.points.reshape(n, 2, 3), found.normal[:, 0])

    def touching(self, T: Array, margin: float = 0.0) -> Array:
        """Return whether the shapes are within a margin (n,)."""
        found = np.zeros((len(T), 1), bool)
        query = Table(EachTouchingQuery(*self._asked(T, margin), found, self.table, self.work))
        _touching.for_tables(query)(query.address)
        return found[:, 0]

    def _asked(self, T: Array, reach: float) -> tuple[Array, Array, Array, Array]:
        T = T @ np.array([part.placement for part in self.parts])
        rows = np.concatenate([T[..., :3, :3].reshape(-1, 2, 9), T[..., :3, 3]], axis=2)
        return np.array([0, len(T)]), np.zeros((len(T), 1)), np.ascontiguousarray(rows), np.array([reach])
