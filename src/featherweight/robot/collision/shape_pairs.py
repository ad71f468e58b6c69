"""The pairs of a robot's shapes that may collide."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...model.contact_rules import DEFAULT_SOFTNESS, NeighbourRule, Softness, mixed_softness
from ...model.types import WORLD, JointType, Shape, ShapeType
from ...summaries import described
from ..system import System

Names = tuple[str | None, str | None]
Turning = tuple[float, float, float]  # [m] torsional friction, and rolling friction about the first and second tangent


@described
class CollisionPair(NamedTuple):
    """Two shapes: their names, and the links of the file and the moving bodies that carry them (None for the ground)."""

    shapes: tuple[str, str]
    links: Names
    bodies: Names

    def __str__(self) -> str:
        return " and ".join(self.shapes)


def described_pair(robot: System, i: int, j: int) -> CollisionPair:
    """Return the pair of two shapes, given by their numbers in `robot.shapes`."""
    a, b, links = robot.shapes[i], robot.shapes[j], robot.model.shape_links
    return CollisionPair((a.name, b.name), (links[i], links[j]), (a.body, b.body))


class TouchingPair(NamedTuple):
    """Two shapes that may collide, by their numbers in `robot.shapes`, i < j, and the parameters of their contacts."""

    i: int
    j: int
    friction: float | None = None  # Coulomb coefficient, zero for condim 1; None if neither shape has one
    margin: float = 0.0  # [m] distance at which they touch
    condim: int = 3  # 1 without friction, 3 with; 4 and 6 also with torsional and rolling friction
    from_file: bool = False  # the file names the pair
    softness: Softness = DEFAULT_SOFTNESS
    turning: Turning = (0.0, 0.0, 0.0)  # zero where condim has none
    adhesion: float = 0.0  # [N] pull of each contact
    gap: float = 0.0  # [m] distance beyond the margin within which it pulls
    second_friction: float | None = None  # along the second tangent, if different


def touching_pairs(robot: System) -> list[TouchingPair]:
    """Return the pairs of collision shapes that move relative to one another and may collide, in MuJoCo's order.

    The rule of the description (`NeighbourRule`) excludes shapes of neighbouring bodies, except obstacles. Pairs of links whose
    collisions the files disable, and pairs that MJCF's contype and conaffinity separate, are excluded too. `contact_pairs` are
    always included, with their own parameters, as often as they are given. Other pairs take friction, condim and adhesion from
    the shape of higher priority. At equal priority they take the greater friction and condim, and the sum of both adhesions.
    Margins and gaps are added.
    """
    named = _named_pairs(robot)
    neighbours, obstacles = _neighbours(robot), robot.model.obstacles
    disabled = {frozenset(pair) for pair in robot.model.disabled_collisions}
    links, shapes = robot.model.shape_links, robot.shapes
    numbers = [k for k, shape in enumerate(shapes) if shape.collision]
    return [
        pair
        for i, j in itertools.combinations(numbers, 2)
        if _moving(shapes[i], shapes[j])
        if (i, j) in named
        or (
            (frozenset((shapes[i].body, shapes[j].body)) not in neighbours or {shapes[i].name, shapes[j].name} & obstacles)
            and frozenset((links[i], links[j])) not in disabled
            and (shapes[i].contype & shapes[j].conaffinity or shapes[j].contype & shapes[i].conaffinity)
        )
        for pair in named.get((i, j)) or [_touching(i, j, shapes[i], shapes[j])]
    ]


def pairs_that_may_touch(robot: System) -> list[tuple[int, int]]:
    """Return the shape numbers of `touching_pairs`."""
    return [*dict.fromkeys((pair.i, pair.j) for pair in touching_pairs(robot))]


def _named_pairs(robot: System) -> dict[tuple[int, int], list[TouchingPair]]:
    number = {shape.name: k for k, shape in reversed([*enumerate(robot.shapes)])}
    named: dict[tuple[int, int], list[TouchingPair]] = {}
    for pair in robot.model.contact_pairs:
        i, j = sorted(number[name] for name in pair.shapes)
        touching = TouchingPair(
            i,
            j,
            _effective(pair.friction, pair.condim),
            pair.margin,
            pair.condim,
            True,
            pair.softness,
            _turning([pair.turning_friction], pair.condim, pair.second_rolling),
            pair.adhesion,
            pair.gap,
            pair.second_friction if pair.condim > 1 else None,
        )
        named.setdefault((i, j), []).append(touching)
    return named


def _touching(i: int, j: int, a: Shape, b: Shape) -> TouchingPair:
    saying = [a, b] if a.priority == b.priority else [max(a, b, key=lambda shape: shape.priority)]
    condim = max(shape.condim for shape in saying)
    friction = max((shape.friction for shape in saying if shape.friction is not None), default=None)
    softness = mixed_softness(saying[0].softness, saying[-1].softness)
    turning = _turning([shape.turning_friction for shape in saying], condim)
    adhesion, gap = sum(shape.adhesion for shape in saying), a.gap + b.gap
    friction = _effective(friction, condim)
    return TouchingPair(i, j, friction, a.margin + b.margin, condim, False, softness, turning, adhesion, gap)


def _turning(of_shapes: Sequence[tuple[float, float]], condim: int, second: float | None = None) -> Turning:
    """Return the greater torsional and rolling friction of two shapes, where condim includes it."""
    spinning, rolling = (max(x) for x in zip(*of_shapes, strict=True))
    second = rolling if second is None else second
    return (spinning if condim >= 4 else 0.0), (rolling if condim >= 6 else 0.0), (second if condim >= 6 else 0.0)


def _effective(friction: float | None, condim: int) -> float | None:
    return 0.0 if condim == 1 else friction


def pairs_of_names(robot: System, wanted: Iterable[tuple[str | None, str | None]]) -> list[tuple[int, int]]:
    """Return pairs of collision shapes between two named things, by their numbers in `robot.shapes`.

    Pairs that the files exclude are included. A name is that of a shape, a link or a moving body; None or "world" is the
    ground. Raises ValueError for an unknown name, for a name without collision shapes, and for two names between which nothing
    moves.
    """
    found: dict[tuple[int, int], None] = {}
    for one, other in wanted:
        sides = _shapes_of(robot, one), _shapes_of(robot, other)
        pairs = [(min(i, j), max(i, j)) for i, j in itertools.product(*sides) if _moving(robot.shapes[i], robot.shapes[j])]
        if not pairs:
            raise ValueError(f"{robot.name}: no collision shapes of {one!r} and {other!r} move relative to one another")
        found.update(dict.fromkeys(pairs))
    return list(found)


def _shapes_of(robot: System, name: str | None) -> list[int]:
    ground = name is None or (name == WORLD and all(f.name != WORLD for f in robot.frames))
    links = robot.model.shape_links
    shapes = [(k, s) for k, s in enumerate(robot.shapes) if s.collision]
    found = [k for k, s in shapes if (s.body is None if ground else name in (s.name, links[k], s.body))]
    if not found:
        known = ", ".join(dict.fromkeys(str(links[k] or WORLD) for k, _ in shapes)) or "none"
        raise ValueError(f"{robot.name}: {name!r} is not a shape, link or body with collision shapes; links with some: {known}")
    return found


def _moving(a: Shape, b: Shape) -> bool:
    """Return whether two shapes move relative to one another; surfaces without an inside never collide."""
    return a.body != b.body and not {a.type, b.type} <= {ShapeType.PLANE, ShapeType.HEIGHTFIELD}


def _neighbours(robot: System) -> set[frozenset[str | None]]:
    """Return pairs of bodies whose shapes are excluded; massless bodies between the joints of one MJCF body count as none."""
    rule = robot.model.neighbours
    if rule is NeighbourRule.NONE:
        return set()
    shown = {b.name for b in robot.bodies}
    parent = {j.child: j.parent for j in robot.joints}

    def visible(body: str | None) -> str | None:
        while body is not None and body not in shown:
            body = parent[body]
        return body

    joints = (j for j in robot.joints if j.child in shown and j.type is not JointType.FLOATING)
    joined = {frozenset((visible(j.parent), j.child)) for j in joints}
    if rule is NeighbourRule.MOVING:
        return {bodies for bodies in joined if None not in bodies}
    return joined | {frozenset(ends) for ends in robot._loop_ends}
