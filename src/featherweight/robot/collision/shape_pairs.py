"""Which pairs of a robot's shapes may touch each other."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from ...model.types import WORLD, JointType, Shape, ShapeType
from ..system import System

Names = tuple[str | None, str | None]


class CollisionPair(NamedTuple):
    """Two shapes: their names, and the links of the file and the moving bodies that carry them, None for the ground."""

    shapes: tuple[str, str]
    links: Names
    bodies: Names


def described_pair(robot: System, i: int, j: int) -> CollisionPair:
    """The pair of two shapes by their numbers in `robot.shapes`."""
    a, b, links = robot.shapes[i], robot.shapes[j], robot.model.shape_links
    return CollisionPair((a.name, b.name), (links[i], links[j]), (a.body, b.body))


def pairs_that_may_touch(robot: System) -> list[tuple[int, int]]:
    """Pairs of collision shapes that move relative to one another, by their numbers in `robot.shapes`.

    Left out are shapes of bodies that a joint or a loop connects, but for free-flying ones; of links whose collisions the
    files disable; and those that MJCF's contype and conaffinity keep apart.
    """
    joined = _joined(robot)
    disabled = {frozenset(pair) for pair in robot.model.disabled_collisions}
    links = robot.model.shape_links
    numbers = [k for k, shape in enumerate(robot.shapes) if shape.collision]
    return [
        (i, j)
        for i, j in itertools.combinations(numbers, 2)
        if _moving(robot.shapes[i], robot.shapes[j])
        and frozenset((robot.shapes[i].body, robot.shapes[j].body)) not in joined
        and frozenset((links[i], links[j])) not in disabled
        and _affine(robot.shapes[i], robot.shapes[j])
    ]


def pairs_of_names(robot: System, wanted: Iterable[tuple[str | None, str | None]]) -> list[tuple[int, int]]:
    """Pairs of collision shapes on two named things each, by their numbers in `robot.shapes`, whatever the files leave out.

    A name is that of a shape, a link or a moving body; None or "world" is the ground. Raises ValueError for a name that is
    none or carries no collision shape, and for two between which nothing moves.
    """
    found: dict[tuple[int, int], None] = {}
    for one, other in wanted:
        sides = _carried(robot, one), _carried(robot, other)
        pairs = [(min(i, j), max(i, j)) for i, j in itertools.product(*sides) if _moving(robot.shapes[i], robot.shapes[j])]
        if not pairs:
            raise ValueError(f"{robot.name}: no collision shapes of {one!r} and {other!r} move relative to one another")
        found.update(dict.fromkeys(pairs))
    return list(found)


def _carried(robot: System, name: str | None) -> list[int]:
    ground = name is None or (name == WORLD and all(f.name != WORLD for f in robot.frames))
    links = robot.model.shape_links
    shapes = [(k, s) for k, s in enumerate(robot.shapes) if s.collision]
    found = [k for k, s in shapes if (s.body is None if ground else name in (s.name, links[k], s.body))]
    if not found:
        known = ", ".join(dict.fromkeys(str(links[k] or WORLD) for k, _ in shapes)) or "none"
        raise ValueError(f"{robot.name}: {name!r} is no shape, link or body with collision shapes; links with some: {known}")
    return found


def _moving(a: Shape, b: Shape) -> bool:
    return a.body != b.body and not (a.type is ShapeType.PLANE and b.type is ShapeType.PLANE)


def _affine(a: Shape, b: Shape) -> bool:
    return bool(a.contype & b.conaffinity or b.contype & a.conaffinity)


def _joined(robot: System) -> set[frozenset[str | None]]:
    """Pairs of bodies that a joint or a loop connects; massless bodies between the joints of one MJCF body are none."""
    shown = {b.name for b in robot.bodies}
    parent = {j.child: j.parent for j in robot.joints}

    def visible(body: str | None) -> str | None:
        while body is not None and body not in shown:
            body = parent[body]
        return body

    joints = (j for j in robot.joints if j.child in shown and j.type is not JointType.FLOATING)
    return {frozenset((visible(j.parent), j.child)) for j in joints} | {frozenset(ends) for ends in robot.loop_ends}
