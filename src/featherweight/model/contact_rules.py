"""What a description says of contacts between its shapes, beyond the numbers of each shape."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SPINNING = "friction against spinning (condim 4)"  # in a report, as below
ROLLING = "friction against spinning and rolling (condim 6)"
SOFT = "softness of contacts (solref, solimp)"
SOFT_HOLDS = "softness of limits, dry friction and equality constraints (solref, solimp)"
CONVEYING = "surfaces that move on their bodies (surfacevel)"
ADHESION = "adhesion of contacts"
TWO_FRICTIONS = "contacts with two sliding frictions, read as the first"
TOUCHING_LEFT_OUT = "geoms that touch and are left out"
TOUCHING_AS_MESHES = "primitives fitted to meshes, touching as those meshes"


class NeighbourRule(StrEnum):
    """Whose shapes do not touch because their bodies are neighbours. Bodies that are fixed to one another are one."""

    JOINED = "joined"  # those that a joint or a loop connects, free-flying ones aside
    MOVING = "moving"  # those that a joint connects, unless one of them is the ground: MuJoCo's rule
    NONE = "none"  # nobody's


@dataclass(frozen=True, slots=True)
class ContactPair:
    """Two shapes, by their names, that touch whatever else keeps shapes apart; the numbers are as in `Shape`, for both."""

    shapes: tuple[str, str]
    friction: float | None = None
    condim: int = 3
    margin: float = 0.0
