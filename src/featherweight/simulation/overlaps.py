"""Overlaps of bodies where a simulation is, before anything moves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..contact.laws import PARTING_SPEED
from ..model.editing.notes import warn_caller
from .contact_stage import ContactStage

Array = np.ndarray[Any, np.dtype[Any]]

WARNED = 0.01  # [m] of overlap
SHOWN = 3  # overlaps in a message


class Overlap(NamedTuple):
    """Two things that overlap: what they are in words, their links (None for the world), and how deep [m]."""

    names: str
    links: tuple[str | None, str | None]
    depth: float


def overlaps(stage: ContactStage, candidates: Array, gaps: Array) -> list[Overlap]:
    """Return what overlaps, the deepest first, for the candidates and gaps of contacts of one robot."""
    order = np.argsort(gaps, kind="stable")
    deepest: dict[str, Overlap] = {}
    for c, gap in zip(candidates[order], gaps[order], strict=True):
        if gap < 0.0:
            deepest.setdefault(stage.names[c], Overlap(stage.names[c], stage.touching.links[c], -float(gap)))
    return list(deepest.values())


def overlaps_now(simulation: Any) -> list[Overlap]:
    """Return what overlaps on the first robot of a simulation where it is now."""
    fleet = simulation._fleet
    return overlaps(fleet.contacts, *fleet.look())


def listed(found: list[Overlap]) -> str:
    """Return the first few overlaps in words."""
    texts = ", ".join(f"{x.names} by {x.depth:.3g} m" for x in found[:SHOWN])
    return texts + (f" and {len(found) - SHOWN} more" if len(found) > SHOWN else "")


def warn_of_overlaps(name: str, found: list[Overlap]) -> None:
    """Warn of bodies that overlap much at the start."""
    deep = [x for x in found if x.depth > WARNED]
    if deep:
        warn_caller(
            f"{name}: bodies overlap at the start: {listed(deep)}. They are parted at {PARTING_SPEED:g} m/s; start from "
            "another configuration (robot.on_ground(q) puts a robot on the ground), or refuse such a start "
            "(contact=featherweight.ContactOptions(overlaps='refuse'))"
        )
