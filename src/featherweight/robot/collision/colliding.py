"""Collisions and distances of a robot's shapes, and of the ground's.

The shapes are the collision shapes of the file. Meshes stand for their convex hulls, planes for the half spaces below
them, height fields for the solids below their surfaces. `pairs` are pairs of names of shapes, links or moving bodies; None
or "world" is the ground. The default is all shapes that move relative to one another, except on bodies that a joint or a
loop connects (other than free joints) and on links whose collisions SRDF or MJCF's `<exclude>` disable. For MJCF files,
MuJoCo's rules apply: joints on the ground and loops do not exclude pairs, contype and conaffinity do, and a `<pair>`
always collides.

All functions raise ValueError for unknown names, for numbers that are not finite, and for meshes that are flat or cannot
be read. They raise ImportError if a mesh needs a package of the extra `shapes` that is not installed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ...array_types import Array
from ...checks import CHECKED_LATER, NAME, NOTHING, Finite, argument, checked, either, list_of, shown, tuple_of
from ...model.checks import check, of_shapes
from ...model.description import Description
from ...model.types import WORLD, Frame, Shape
from ...names import knows_keywords
from ...summaries import Several, SeveralListed
from ..system import System
from .shape_pairs import CollisionPair, described_pair, pairs_of_names, pairs_that_may_touch

if TYPE_CHECKING:
    from .shape_queries import ShapeQueries

KNOWN_QUERIES = ("shape queries",)
SHOWN = 3  # pairs that `repr` of a result lists
PAIRS = list_of(tuple_of(either([NAME, NOTHING]), either([NAME, NOTHING]))).worded("pairs of names in a list")
NamedPairs = Annotated[Iterable[tuple[str | None, str | None]] | None, either([PAIRS, NOTHING])]


@dataclass(frozen=True, eq=False, repr=False)
class Collisions:
    """Colliding pairs of shapes: booleans `touching` (..., npairs) for the pairs in `pairs`."""

    pairs: tuple[CollisionPair, ...]
    touching: Array

    @property
    def any(self) -> Array:
        """True where any pair touches (...)."""
        return np.asarray(self.touching.any(axis=-1))

    def listed(self, *state: int) -> list[CollisionPair]:
        """Return the pairs that touch in one state, given by its index along the leading axes."""
        row = self.touching[state]
        if row.ndim != 1:
            axes = self.touching.ndim - 1
            raise IndexError(f"listed: give the index of one state, of {axes} number{'s' * (axes != 1)}; got {state}")
        return SeveralListed(self.pairs[k] for k in np.flatnonzero(row))

    def __repr__(self) -> str:
        flat = _by_state(self.touching)
        some = [self.pairs[k] for k in np.flatnonzero(flat.any(axis=0))]
        return f"<Collisions: {len(some)} of {len(self.pairs)} pairs of shapes touch{_in_states(flat)}{_first_of(some)}>"


@dataclass(frozen=True, eq=False, repr=False)
class Distances:
    """Distances between pairs of shapes in the world [m], for the pairs in `pairs`.

    `distance` (..., npairs) is negative where shapes overlap, by the penetration depth. `points` (..., npairs, 2, 3) are the
    nearest points on the first and the second shape, or the deepest points. `normal` (..., npairs, 3) is the unit vector from
    the first shape to the second: points[1] - points[0] = distance * normal.

    If `within` was given, `pairs` are those whose distance is smaller in any of the states; in other states, their distance is
    infinite and their points and normal are NaN. The depth of a shape in a height field is the greatest depth in a prism under
    a triangle of the field.
    """

    pairs: tuple[CollisionPair, ...]
    distance: Array
    points: Array
    normal: Array

    @property
    def closest(self) -> Array:
        """The smallest distance (...) [m]; infinite without pairs."""
        return np.asarray(self.distance.min(axis=-1, initial=np.inf))

    def __repr__(self) -> str:
        flat = _by_state(self.distance)
        order = np.argsort(flat.min(axis=0, initial=np.inf), kind="stable")
        least = f"; the least is {flat.min():.4g} m" if flat.size else ""
        nearest = _first_of([self.pairs[k] for k in order])
        return f"<Distances of {len(self.pairs)} pairs of shapes{_in_states(flat)}{least}{nearest}>"


def _by_state(x: Array) -> Array:
    """Reshape numbers (..., npairs) to (states, npairs)."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _in_states(flat: Array) -> str:
    return "" if len(flat) == 1 else f" in {len(flat)} states"


def _first_of(pairs: Sequence[CollisionPair]) -> str:
    """Describe the first few pairs."""
    named = ", ".join(str(pair) for pair in pairs[:SHOWN])
    return f": {named}{', ...' if len(pairs) > SHOWN else ''}" if pairs else ""


@checked
def collision_pairs(robot: System, pairs: NamedPairs = None) -> tuple[CollisionPair, ...]:
    """Return the pairs of shapes that the functions below check, in their order.

    For example:

        for pair in robot.collision_pairs():
            print(pair)
    """
    return robot._kept(
        ("collision pairs", pairs), lambda: Several(described_pair(robot, i, j) for i, j in _numbers(robot, pairs))
    )


@knows_keywords
def in_collision(robot: System, q: npt.ArrayLike, *, margin: float = 0.0, pairs: NamedPairs = None) -> Any:
    """Return whether any pair of shapes is within `margin` [m] at configurations q (..., nq): booleans (...).

    For example:

        robot.in_collision(q)  # True or False; rows of configurations give booleans
    """
    queries = _queries(robot, pairs)
    return queries.any_touching(q, margin)


@knows_keywords
def collisions(robot: System, q: npt.ArrayLike, *, margin: float = 0.0, pairs: NamedPairs = None) -> Collisions:
    """Return which pairs of shapes are within `margin` [m] at configurations q (..., nq).

    For example:

        robot.collisions(q).listed()  # the pairs of shapes that touch
    """
    queries = _queries(robot, pairs)
    return Collisions(queries.pairs, queries.touching(q, margin))


@knows_keywords
def distances(robot: System, q: npt.ArrayLike, *, within: float = math.inf, pairs: NamedPairs = None) -> Distances:
    """Return distances, nearest points and normals of pairs of shapes at configurations q (..., nq).

    With `within` [m], the result has only the pairs that are closer in any of the states. This is faster, because bounding
    volumes exclude most other pairs. The results of a state do not depend on other states or earlier calls.

        found = robot.distances(q)
        found.closest, found.pairs  # [m]
    """
    queries = _queries(robot, pairs)
    distance, points, normal = queries.distances(q, within)
    if within == math.inf:
        return Distances(queries.pairs, distance, points, normal)
    near = np.flatnonzero((_by_state(distance) <= within).any(axis=0))
    some = Several(queries.pairs[k] for k in near)
    return Distances(some, distance[..., near], points[..., near, :, :], normal[..., near, :])


@checked
def distance_jacobian(robot: System, q: npt.ArrayLike, distances: Distances) -> Array:
    """Return the derivative of `distances(q)` by velocities: n · (J_second - J_first) at the nearest points.

    The shape is (..., npairs, nv). Rows are NaN for pairs whose distances were not computed. Where the nearest points
    jump, for example between parallel faces, a row is a one-sided derivative.

        found = robot.distances(q)
        rates = robot.distance_jacobian(q, found) @ v  # (npairs,) [m/s]
    """
    known = (x for x in _known_queries(robot).values() if all(pair in x.number for pair in distances.pairs))
    queries = next(known, None)
    if queries is None or distances.normal.shape[:-2] != np.shape(q)[:-1]:
        raise ValueError("distance_jacobian: `distances` are not those of this robot at this q; give robot.distances(q)")
    return queries.jacobian(q, distances.pairs, distances.points, distances.normal)


@checked
def on_ground(robot: System, q: npt.ArrayLike | None = None, *, height: Finite = 0.0, root: str | None = None) -> Array:
    """Return q (..., nq) with the robot moved along the world's z axis so that its lowest point is at `height` [m].

    The shapes are collision shapes, or visual shapes if there are none. The default for q is `start()`. `root` names the
    free joint that moves, if there are several. Raises ValueError for a base that does not float, and for a robot without
    shapes.
    """
    from .lowest_point import LowestPoint, floating_root

    joint = floating_root(robot, root)
    below = robot._kept(("lowest point", joint.name), lambda: LowestPoint(robot, joint))
    return below.lifted(robot._checked("q", robot.start() if q is None else q, robot.nq), height)


def _queries(robot: System, pairs: NamedPairs) -> ShapeQueries:
    """Return the queries for pairs, which are made once."""
    known = _known_queries(robot)
    key = None if pairs is None else argument(f"{robot.name}: pairs", pairs, PAIRS)
    if key not in known:
        from .shape_queries import ShapeQueries  # imports the compiler

        known[key] = ShapeQueries(robot, _numbers(robot, key))
    return known[key]


def _known_queries(robot: System) -> dict[Any, ShapeQueries]:
    """Return the queries that have been made, by the names of their pairs."""
    return robot._kept(KNOWN_QUERIES, dict)


def _numbers(robot: System, pairs: NamedPairs) -> list[tuple[int, int]]:
    return pairs_that_may_touch(robot) if pairs is None else pairs_of_names(robot, pairs)


R = TypeVar("R", bound=System)

OF_SHAPES = ("shapes", "_html")  # attributes of a robot that show its shapes


@checked
def with_obstacles(robot: R, obstacles: Annotated[Shape | Iterable[Shape], CHECKED_LATER]) -> R:
    """Return the robot among more shapes, for collisions, distances, inverse kinematics, simulations and pictures.

    A shape with the body None or "world" is fixed to the world, and one with a link moves along, such as a grasped object. The
    new robot takes less than a millisecond, because it has the functions that this one has made so far. This one does not
    change.

        table = featherweight.Shape("table", None, "box", (1.0, 1.0, 0.1), featherweight.Pose(p=(0.5, 0.0, -0.05)))
        robot.with_obstacles(table).in_collision(q)

    Raises ValueError for names that another shape has, for unknown links, and for shapes that no description may have.
    """
    several = isinstance(obstacles, Iterable) and not isinstance(obstacles, str)
    given: tuple[Any, ...] = tuple(cast("Iterable[Any]", obstacles)) if several else (obstacles,)
    if wrong := [x for x in given if not isinstance(x, Shape)]:
        raise TypeError(f"{robot.name}: obstacles must be featherweight.Shape objects in a list; got {shown(wrong[0])}")
    taken = {shape.name for shape in robot.shapes}
    for shape in given:
        if shape.name in taken:
            raise ValueError(f"{robot.name}: there already is a shape {shape.name!r}; give the obstacle another name")
        taken.add(shape.name)
    check(Description(robot.name, robot.model.source, (), (), shapes=given), of_shapes)
    links = tuple(None if shape.body in (None, WORLD) else shape.body for shape in given)
    shapes = [_on_moving_body(robot, shape, link) for shape, link in zip(given, links, strict=True)]
    model = replace(robot.model, shapes=(*robot.model.shapes, *shapes), shape_links=(*robot.model.shape_links, *links))
    model = replace(
        model, obstacles=model.obstacles | {shape.name for shape, link in zip(given, links, strict=True) if link is None}
    )
    other = object.__new__(type(robot))
    vars(other).update({name: x for name, x in vars(robot).items() if name not in OF_SHAPES})
    other._take_model(model)
    other._cache = robot._cache.without(KNOWN_QUERIES)
    return other


def _on_moving_body(robot: System, shape: Shape, link: str | None) -> Shape:
    """Return a shape on a link as one on the moving body that carries the link."""
    if link is None:
        return replace(shape, body=None)
    carrier = robot.frame(Frame(shape.name, link, shape.placement))
    return replace(shape, body=carrier.body, placement=carrier.placement)
