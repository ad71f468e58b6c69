"""Overlaps of bodies at the current state, before any motion."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array
from ..contact.laws import PARTING_SPEED
from ..model.editing.notes import warn_caller
from ..model.types import JointType
from ..robot.robot import Robot
from .contact_stage import ContactStage

WARNED = 0.01  # [m] least depth for a warning
SUNK = 0.1  # [m] least depth in the ground for the question whether the robot floats
SHOWN = 3  # number of overlaps in a message


class Overlap(NamedTuple):
    """Two overlapping objects: their names, their links (None for the world), and the depth [m]."""

    names: str
    links: tuple[str | None, str | None]
    depth: float


def overlaps(stage: ContactStage, candidates: Array, gaps: Array) -> list[Overlap]:
    """Return overlaps, deepest first, from the candidates and gaps of contacts of one robot."""
    order = np.argsort(gaps, kind="stable")
    deepest: dict[str, Overlap] = {}
    for c, gap in zip(candidates[order], gaps[order], strict=True):
        if gap < 0.0:
            deepest.setdefault(stage.names[c], Overlap(stage.names[c], stage.touching.links[c], -float(gap)))
    return list(deepest.values())


def overlaps_now(simulation: Any) -> list[Overlap]:
    """Return the current overlaps of the first robot of a simulation."""
    fleet = simulation._fleet
    return overlaps(fleet.contacts, *fleet.look())


def listed(found: list[Overlap]) -> str:
    """Describe the first few overlaps."""
    texts = ", ".join(f"{x.names} by {x.depth:.3g} m" for x in found[:SHOWN])
    return texts + (f" and {len(found) - SHOWN} more" if len(found) > SHOWN else "")


def warn_of_overlaps(robot: Robot, found: list[Overlap]) -> None:
    """Warn about deep overlaps at the start."""
    deep = [x for x in found if x.depth > WARNED]
    if deep:
        sunk = max((x.depth for x in deep if None in x.links), default=0.0)
        standing = not any(j.type is JointType.FLOATING for j in robot.joints)
        asked = f". It is fixed to the world and stands {sunk:.2g} m in the ground: load it with base='floating' if it can move"
        warn_caller(
            f"{robot.name}: bodies overlap at the start: {listed(deep)}. They are separated at {PARTING_SPEED:g} m/s. Start "
            "from another configuration (robot.on_ground(q) puts a robot on the ground), or turn this into an error "
            "(contact=featherweight.ContactOptions(overlaps='refuse'))" + (asked if standing and sunk > SUNK else "")
        )
