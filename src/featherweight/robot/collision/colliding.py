"""Collisions and distances of a robot's shapes: what users call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..system import System
from .shape_pairs import CollisionPair, described_pair, pairs_of_names, pairs_that_may_touch

if TYPE_CHECKING:
    from .shape_queries import ShapeQueries

Array = np.ndarray[Any, np.dtype[Any]]
SHOWN = 3  # pairs in the words for a result
NamedPairs = Iterable[tuple[str | None, str | None]] | None


@dataclass(frozen=True, eq=False, repr=False)
class Collisions:
    """Which pairs of shapes touch: `touching` (..., npairs) for the pairs in `pairs`."""

    pairs: tuple[CollisionPair, ...]
    touching: Array

    @property
    def any(self) -> Array:
        """Whether any pair touches (...)."""
        return np.asarray(self.touching.any(axis=-1))

    def listed(self, *state: int) -> list[CollisionPair]:
        """The pairs that touch in one state, given by its index along the leading axes."""
        row = self.touching[state]
        if row.ndim != 1:
            axes = self.touching.ndim - 1
            raise IndexError(f"listed: give the index of one state, of {axes} number{'s' * (axes != 1)}; got {state}")
        return [self.pairs[k] for k in np.flatnonzero(row)]

    def __repr__(self) -> str:
        flat = _by_state(self.touching)
        some = [self.pairs[k] for k in np.flatnonzero(flat.any(axis=0))]
        return f"<Collisions: {len(some)} of {len(self.pairs)} pairs of shapes touch{_in_states(flat)}{_first_of(some)}>"


@dataclass(frozen=True, eq=False, repr=False)
class Distances:
    """Distances between pairs of shapes in the world [m], for the pairs in `pairs`.

    `distance` (..., npairs) is negative by the depth where shapes overlap. `points` (..., npairs, 2, 3) are the nearest ones
    on the first and the second shape, or the deepest ones, and `normal` (..., npairs, 3) the unit vector that leads from the
    first to the second: points[1] - points[0] = distance * normal. If a reach `within` was given, `pairs` are those that come
    so near in any of the states; in the other states their distance is infinite, and points and normal are NaN. In a height
    field a shape is as deep as in that prism under a triangle of the field in which it is deepest.
    """

    pairs: tuple[CollisionPair, ...]
    distance: Array
    points: Array
    normal: Array

    @property
    def closest(self) -> Array:
        """The least distance (...) [m]; infinite without any."""
        return np.asarray(self.distance.min(axis=-1, initial=np.inf))

    def __repr__(self) -> str:
        flat = _by_state(self.distance)
        order = np.argsort(flat.min(axis=0, initial=np.inf), kind="stable")
        least = f"; the least is {flat.min():.4g} m" if flat.size else ""
        nearest = _first_of([self.pairs[k] for k in order])
        return f"<Distances of {len(self.pairs)} pairs of shapes{_in_states(flat)}{least}{nearest}>"


def _by_state(x: Array) -> Array:
    """Numbers (states, npairs) of numbers (..., npairs)."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _in_states(flat: Array) -> str:
    return "" if len(flat) == 1 else f" in {len(flat)} states"


def _first_of(pairs: Sequence[CollisionPair]) -> str:
    """The first few, in words."""
    named = ", ".join(f"{a} and {b}" for a, b in (pair.shapes for pair in pairs[:SHOWN]))
    return f": {named}{', ...' if len(pairs) > SHOWN else ''}" if pairs else ""


class Colliding(System):
    """A system whose collision shapes may touch one another and the ground's.

    Shapes are the collision shapes of the file: meshes are taken for their convex hulls, planes for the half spaces below them,
    height fields for the solids below their surfaces. `pairs` are pairs of names of shapes, links or moving bodies, None or
    "world" for the ground. Without, they are all that may touch: shapes that move relative to one another, but not on
    bodies that a joint or a loop connects (free-flying ones aside), nor on links whose collisions SRDF or MJCF's `<exclude>`
    disable. Of MJCF they are MuJoCo's: joints on the ground and loops keep nothing apart, contype and conaffinity do, and a
    `<pair>` touches whatever does.

    All raise ValueError for names that are none, numbers that are not finite, or meshes that are flat or cannot be read, and
    ImportError for meshes without the packages that read them and find their hulls (the extra `shapes`).
    """

    def collision_pairs(self, pairs: NamedPairs = None) -> tuple[CollisionPair, ...]:
        """The pairs of shapes that the functions below look at, in their order."""
        return tuple(described_pair(self, i, j) for i, j in self._numbers(pairs))

    def in_collision(self, q: Any, *, margin: float = 0.0, pairs: NamedPairs = None) -> Any:
        """Whether any pair of shapes touches, or comes within `margin` [m], at configurations q (..., nq): booleans (...)."""
        queries = self._every_pair if pairs is None else self._queries(pairs)
        return queries.any_touching(q, margin)

    def collisions(self, q: Any, *, margin: float = 0.0, pairs: NamedPairs = None) -> Collisions:
        """Which pairs of shapes touch, or come within `margin` [m], at configurations q (..., nq)."""
        queries = self._queries(pairs)
        return Collisions(queries.pairs, queries.touching(q, margin))

    def distances(self, q: Any, *, within: float = math.inf, pairs: NamedPairs = None) -> Distances:
        """Distances, nearest points and normals of pairs of shapes at configurations q (..., nq).

        With `within` [m] the result has only the pairs that come so near, in any of the states; bounding volumes leave out most
        of the others, which is faster. The numbers of a state do not depend on other states or earlier calls.
        """
        queries = self._queries(pairs)
        distance, points, normal = queries.distances(q, within)
        if within == math.inf:
            return Distances(queries.pairs, distance, points, normal)
        near = np.flatnonzero((_by_state(distance) <= within).any(axis=0))
        some = tuple(queries.pairs[k] for k in near)
        return Distances(some, distance[..., near], points[..., near, :, :], normal[..., near, :])

    def distance_jacobian(self, q: Any, distances: Distances) -> Array:
        """Return the derivative of `distances(q)` along velocities: n · (J_second - J_first) at the nearest points.

        The shape is (..., npairs, nv). Rows are NaN for pairs whose distances were not computed. Where the nearest points jump,
        as between parallel faces, a row is the derivative on one side.
        """
        known = (x for x in self._by_names.values() if all(pair in x.number for pair in distances.pairs))
        queries = next(known, None)
        if queries is None or distances.normal.shape[:-2] != np.shape(q)[:-1]:
            raise ValueError("distance_jacobian: `distances` are not those of this robot at this q; give robot.distances(q)")
        return queries.jacobian(q, distances.pairs, distances.points, distances.normal)

    def on_ground(self, q: Any = None, *, height: float = 0.0, root: str | None = None) -> Array:
        """Return q (..., nq) with the robot moved along the world's z axis: its lowest point is at `height` [m].

        Shapes are collision shapes, or visual ones where there are none. Without q it is `start()`. `root` is the name of the
        free joint that moves, where there are several. Raises ValueError for a base that does not float, and for a robot
        without shapes.
        """
        from .lowest_point import floating_root, lifted, lowest_point, shapes_below

        joint = floating_root(self, root)
        q = self._checked("q", self.start() if q is None else q, self.nq)
        return lifted(self, joint, q, height - lowest_point(self, shapes_below(self, joint), q))

    @cached_property
    def _every_pair(self) -> ShapeQueries:
        return self._queries(None)

    def _queries(self, pairs: NamedPairs) -> ShapeQueries:
        from .shape_queries import ShapeQueries  # with the compiler of its kernels

        key = None if pairs is None else tuple((a, b) for a, b in pairs)
        if key not in self._by_names:
            self._by_names[key] = ShapeQueries(self, self._numbers(key))
        return self._by_names[key]

    def _numbers(self, pairs: NamedPairs) -> list[tuple[int, int]]:
        return pairs_that_may_touch(self) if pairs is None else pairs_of_names(self, pairs)

    @cached_property
    def _by_names(self) -> dict[Any, ShapeQueries]:
        return {}
