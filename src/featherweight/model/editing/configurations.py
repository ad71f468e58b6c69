"""Configurations by name, where their joints go, or others come."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..types import Configuration
from .notes import noted
from .references import D


def with_coordinates_of(d: D, joints: Collection[str]) -> D:
    """The description with coordinates of these joints alone; configurations that have none left go, and are noted."""
    kept = [replace(c, coordinates=tuple((name, x) for name, x in c.coordinates if name in joints)) for c in d.configurations]
    gone = [c.name for c, was in zip(kept, d.configurations, strict=True) if was.coordinates and not c.coordinates]
    left = tuple(c for c in kept if c.name not in gone)
    return noted(replace(d, configurations=left), "configurations of joints that are gone", gone)


def joined(ours: Sequence[Configuration], theirs: Sequence[Configuration]) -> tuple[Configuration, ...]:
    """Those of two robots that are one: of two with the same name, the coordinates of both."""
    coordinates = {c.name: c.coordinates for c in ours}
    for c in theirs:
        coordinates[c.name] = (*coordinates.get(c.name, ()), *c.coordinates)
    return tuple(Configuration(name, x) for name, x in coordinates.items())
