"""Changes of named configurations when joints are removed or added."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..types import Configuration, controls_of
from .notes import noted
from .references import D


def with_coordinates_of(d: D, joints: Collection[str]) -> D:
    """Return the description with coordinates of only these joints, and controls of only the present actuators.

    Configurations without remaining coordinates are removed and noted.
    """
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
    """Return the configurations of two robots that become one.

    Two configurations with the same name become one, with the coordinates and controls of both.
    """
    found = {c.name: c for c in ours}
    for c in theirs:
        first = found.get(c.name, Configuration(c.name, ()))
        found[c.name] = Configuration(c.name, first.coordinates + c.coordinates, first.controls + c.controls)
    return tuple(found.values())
