"""Robots among obstacles: shapes that a robot gets without being built again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any, TypeVar, cast

from ...checks import CHECKED_LATER, checked, shown
from ...model.checks import check, of_shapes
from ...model.description import Description
from ...model.types import WORLD, Frame, Shape
from ..system import System
from .colliding import KNOWN_QUERIES

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
    other._cache = {key: x for key, x in robot._cache.items() if key != KNOWN_QUERIES}
    return other


def _on_moving_body(robot: System, shape: Shape, link: str | None) -> Shape:
    """Return a shape on a link as one on the moving body that carries the link."""
    if link is None:
        return replace(shape, body=None)
    carrier = robot.frame(Frame(shape.name, link, shape.placement))
    return replace(shape, body=carrier.body, placement=carrier.placement)
