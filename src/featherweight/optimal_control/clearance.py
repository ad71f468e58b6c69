"""Terms that keep a robot away from obstacles and from itself: distances of balls that cover its shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.clearances import distance_from, length, placed_point
from ..checks import PositiveCount, checked
from ..collision.stand_ins import local_stand_ins
from ..model.types import WORLD, Pose, Shape, ShapeType
from ..robot.robot import Robot
from .terms import Residual

OBSTACLES = (ShapeType.SPHERE, ShapeType.CAPSULE, ShapeType.CYLINDER, ShapeType.BOX, ShapeType.PLANE)
PLACED = 12  # entries of a placement


class Solid(NamedTuple):
    """An obstacle or, for a mesh, one of the spheres that cover it."""

    obstacle: int
    kind: ShapeType
    size: tuple[float, ...]
    center: tuple[float, float, float] = (0.0, 0.0, 0.0)  # [m] in the obstacle's frame


class Ball(NamedTuple):
    """A ball on a body."""

    body: str
    center: tuple[float, float, float]  # [m] in the body's frame
    radius: float  # [m]


class Distances(NamedTuple):
    """The distances of a term: of balls from solids, and of two balls each."""

    at: dict[str, int]  # number of each body's placement
    balls: tuple[Ball, ...]
    solids: tuple[Solid, ...]
    two: tuple[tuple[Ball, Ball], ...]
    fixed: list[list[list[float]]]  # (obstacles, 3, 4) placements of obstacles that do not move

    def rows(self, placements: Any, where: Sequence[Any]) -> list[Any]:
        """Return the distances, for placements of bodies and obstacles."""

        def center(ball: Ball) -> list[Any]:
            return placed_point(placements[self.at[ball.body]], ball.center)

        results = []
        for ball in self.balls:
            p = center(ball)
            results += [distance_from(s.kind, s.size, where[s.obstacle], p, s.center) - ball.radius for s in self.solids]
        for a, b in self.two:
            apart = [x - y for x, y in zip(center(a), center(b), strict=True)]
            results.append(length(*apart) - a.radius - b.radius)
        return results


def from_fixed(distances: Distances, placements: Any) -> list[Any]:
    """Return the distances from obstacles that do not move."""
    return distances.rows(placements, distances.fixed)


def from_moving(distances: Distances, placements: Any, parameters: Any) -> list[Any]:
    """Return the distances from obstacles whose placements are parameters."""
    begins = range(0, PLACED * len(distances.fixed), PLACED)
    numbers = [[parameters[k + 4 * i : k + 4 * i + 4] for i in range(3)] for k in begins]
    return distances.rows(placements, numbers)


@checked
def clearance(
    robot: Robot,
    obstacles: Iterable[Shape] = (),
    *,
    bodies: Iterable[str] | None = None,
    pairs: Iterable[tuple[str, str]] = (),
    moving: bool = False,
    balls: PositiveCount = 4,
    name: str = "clearance",
) -> Residual:
    """Return a term whose rows are distances [m] of a robot from obstacles, negative where they overlap.

        table = featherweight.Shape("table", None, "box", (0.6, 1.0, 0.05), featherweight.Pose(p=(0.5, 0.0, 0.2)))
        ocp.require(featherweight.clearance(robot, [table]), low=0.02, high=math.inf)

    Up to `balls` balls cover each collision shape of the `bodies` (names; the default is all moving bodies), so that
    distances are those of the shapes or less (`covering_balls`). Obstacles are spheres, capsules, cylinders, boxes, planes
    and meshes in the world; up to `balls` spheres cover a mesh, too. The term also contains distances between the bodies of
    each pair in `pairs`. There is one row for each ball and obstacle or sphere of a mesh, and one for each two balls of a
    pair.

    With `moving`, the placements of obstacles are parameters: `solve(..., parameters={name: T[:, :3].ravel()})` for placements
    T (obstacles, 4, 4). More leading axes have the same meaning as for targets. Sizes are constants.

    Raises ValueError for obstacles of other types, for bodies without collision shapes, and if no row remains.
    """
    shapes, couples = tuple(obstacles), tuple(pairs)
    for shape in shapes:
        if shape.type not in (*OBSTACLES, ShapeType.MESH):
            known = ", ".join((*OBSTACLES, ShapeType.MESH))
            raise ValueError(f"clearance: obstacle {shape.name!r} is a {shape.type}; obstacles are {known}")
        if shape.body not in (None, WORLD):
            raise ValueError(f"clearance: obstacle {shape.name!r} is on {shape.body!r}; obstacles are in the world (body=None)")
    found = covering_balls(robot, bodies if bodies is not None or shapes else [], balls) if shapes else []
    others = [(covering_balls(robot, [a], balls), covering_balls(robot, [b], balls)) for a, b in couples]
    two = [(a, b) for first, second in others for a in first for b in second]
    solids = [solid for k, shape in enumerate(shapes) for solid in solids_of(k, shape, balls)]
    size = len(found) * len(solids) + len(two)
    if not size:
        raise ValueError("clearance: there are no distances; give obstacles, or pairs of bodies")
    frames = tuple(dict.fromkeys(ball.body for ball in (*found, *(x for both in two for x in both))))
    at = {body: k for k, body in enumerate(frames)}
    poses = [Pose() if s.type is ShapeType.MESH else s.placement for s in shapes]  # vertices are those of the body
    fixed = [[[*row, x] for row, x in zip(pose.R, pose.p, strict=True)] for pose in poses]

    distances = Distances(at, tuple(found), tuple(solids), tuple(two), fixed)
    if moving and shapes:
        return Residual(partial(from_moving, distances), size, PLACED * len(shapes), frames, name=name)
    return Residual(partial(from_fixed, distances), size, frames=frames, name=name)


def solids_of(obstacle: int, shape: Shape, most: int) -> list[Solid]:
    """Return an obstacle, or up to `most` spheres that cover its mesh."""
    if shape.type is not ShapeType.MESH:
        return [Solid(obstacle, shape.type, shape.size)]
    return [Solid(obstacle, ShapeType.SPHERE, (radius,), center) for center, radius in _balls_of(shape, most)]


@checked
def covering_balls(robot: Robot, bodies: Iterable[str] | None = None, most: PositiveCount = 4) -> list[Ball]:
    """Return balls that cover the collision shapes of bodies (default: all moving bodies), up to a number for each shape.

    The balls lie along the longest axis of each shape; for a mesh, they cover its convex hull. Raises ValueError for a body
    that does not exist or has no collision shapes, and for a number that is not positive.
    """
    names = [body.name for body in robot.bodies] if bodies is None else [robot.body(name).name for name in bodies]
    found: list[Ball] = []
    for name in names:
        shapes = [s for s in robot.shapes if s.body == name and s.collision]
        if not shapes and bodies is not None:
            raise ValueError(f"{robot.name}: {name!r} has no collision shapes, so distances from it are not defined")
        for shape in shapes:
            found += [Ball(name, center, radius) for center, radius in _balls_of(shape, most)]
    if not found:
        raise ValueError(f"{robot.name} has no collision shapes on bodies that move")
    return found


def _balls_of(shape: Shape, most: int) -> list[tuple[tuple[float, float, float], float]]:
    """Return centres in the body's frame, and radii."""
    rounding, local = local_stand_ins(shape)
    points = np.asarray(local, dtype=float).reshape(-1, 3)
    if not len(points):
        raise ValueError(f"balls cannot cover the {shape.type} {shape.name!r}; leave out its body")
    if shape.type is ShapeType.ELLIPSOID:  # the shapes that replace it lie inside
        points = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * shape.size
    if shape.type is not ShapeType.MESH:
        points = points @ np.array(shape.placement.R).T + np.array(shape.placement.p)
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    axes = np.linalg.svd(points - middle)[2] if len(points) > 1 else np.eye(3)
    along = (points - middle) @ axes.T
    low, high = along.min(axis=0), along.max(axis=0)
    center = 0.5 * (low + high)
    wide = float(np.hypot(*(along - center)[:, 1:].T).max()) + rounding
    span = float(high[0] - low[0])
    count = min(max(1, math.ceil(span / (2.0 * wide))), most) if wide > 0.0 else most
    step = span / count
    places = low[0] + step * (np.arange(count) + 0.5)
    radius = math.hypot(wide, 0.5 * step)
    centers = middle + np.column_stack([places, np.full((count, 2), center[1:])]) @ axes
    return [((float(x), float(y), float(z)), radius) for x, y, z in centers]
