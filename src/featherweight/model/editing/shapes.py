"""Changes of shapes: additional ones, and their friction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...names import choose_from
from ..types import WORLD, ModelError, Shape
from .references import D


def with_shape(d: D, shape: Shape) -> D:
    """Return the description with an additional shape."""
    if shape.name in {x.name for x in d.shapes}:
        raise ModelError(f"{d.source}: there already is a shape {shape.name!r}; give the new one another name")
    links = [body.name for body in d.bodies]
    if shape.body not in (None, WORLD, *links):
        raise ModelError(f"{d.source}: shape {shape.name!r}: there is no link {choose_from(shape.body, links)}")
    return replace(d, shapes=(*d.shapes, shape))


def with_friction(d: D, friction: float, names: Sequence[str] | None) -> D:
    """Return the description with another friction of collision shapes: of all, or of those with these names or links."""
    shapes = [s for s in d.shapes if s.collision]
    known = dict.fromkeys([*(s.name for s in shapes), *(s.body or WORLD for s in shapes)])
    if unknown := [name for name in names or () if name not in known]:
        raise ModelError(f"{d.source}: with_friction: there is no collision shape {choose_from(unknown[0], [*known])}")
    chosen = [s for s in shapes if names is None or s.name in names or (s.body or WORLD) in names]
    return replace(d, shapes=tuple(replace(s, friction=friction) if s in chosen else s for s in d.shapes))
