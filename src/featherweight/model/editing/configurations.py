"""Configurations by name, where their joints go, or others come."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..types import Configuration, controls_of
from .notes import noted
from .references import D


def with_coordinates_of(d: D, joints: Collection[str]) -> D:
    """The description with coordinates of these joints alone, and controls of the actuators that are there; configurations
    that have no coordinates left go, and are noted."""
    controls = controls_of(d.actuators)
    kept = [
        replace(
            c,
            coordinates=tuple((name, x) for name, x in c.coordinates if name in joints),
            controls=tuple((name, u) for name, u in c.controls if name in controls),
        )
        for c in d.configurations
    ]
    gone = [c.name for c, was in zip(kept, d.configurations, strict=True) if was.coordinates and not c.coordinates]
    left = tuple(c for c in kept if c.name not in gone)
    return noted(replace(d, configurations=left), "configurations of joints that are gone", gone)


def joined(ours: Sequence[Configuration], theirs: Sequence[Configuration]) -> tuple[Configuration, ...]:
    """Return the configurations of two robots that are joined into one.

    Two configurations with the same name become one, with the coordinates and controls of both.
    """
    found = {c.name: c for c in ours}
    for c in theirs:
        first = found.get(c.name, Configuration(c.name, ()))
        found[c.name] = Configuration(c.name, first.coordinates + c.coordinates, first.controls + c.controls)
    return tuple(found.values())
