"""Contact rules of a description, beyond the numbers of each shape: softness, neighbours and contact pairs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

SOFT = "softness of contacts (solref, solimp)"  # in a report, as below
SOFT_HOLDS = "softness of limits, dry friction and equality constraints (solref, solimp)"
TWO_FRICTIONS = "contacts with two sliding or rolling frictions, read as the first"
TOUCHING_LEFT_OUT = "geoms that touch and are left out"
TOUCHING_AS_MESHES = "primitives fitted to meshes, touching as those meshes"


class Softness(NamedTuple):
    """MuJoCo's numbers for contacts, limits and dry friction that yield: `solref` and `solimp`, with its defaults.

    `solref` are a time constant [s] and a damping ratio, or stiffness and damping as negative numbers. `solimp` are the least
    and greatest impedance, the depth [m, rad] over which one becomes the other, and the midpoint and power of that curve.
    `solmix` is the share of one of two surfaces.
    """

    solref: tuple[float, float] = (0.02, 1.0)
    solimp: tuple[float, float, float, float, float] = (0.9, 0.95, 0.001, 0.5, 2.0)
    solmix: float = 1.0


DEFAULT_SOFTNESS = Softness()


def mixed_softness(a: Softness, b: Softness) -> Softness:
    """Return the softness of a contact of two surfaces, as MuJoCo mixes it."""
    whole = a.solmix + b.solmix
    part = a.solmix / whole if whole > 0.0 else 0.5
    if a.solref[0] > 0.0 and b.solref[0] > 0.0:
        x, y = (part * s + (1.0 - part) * t for s, t in zip(a.solref, b.solref, strict=True))
    else:
        x, y = map(min, a.solref, b.solref)
    c, d, e, f, g = (part * s + (1.0 - part) * t for s, t in zip(a.solimp, b.solimp, strict=True))
    return Softness((x, y), (c, d, e, f, g))


class NeighbourRule(StrEnum):
    """Whose shapes do not touch because their bodies are neighbours. Bodies that are fixed to one another are one."""

    JOINED = "joined"  # those that a joint or a loop connects, free-flying ones aside
    MOVING = "moving"  # those that a joint connects, unless one of them is the ground: MuJoCo's rule
    NONE = "none"  # nobody's


@dataclass(frozen=True, slots=True)
class ContactPair:
    """Two shapes, by their names, that touch whatever else keeps shapes apart; the numbers are as in `Shape`, for both.

    With a `second_friction`, `friction` acts along the first tangent of MuJoCo's contact frame, and this along the second: the
    friction cone is elliptic. A `second_rolling` [m] likewise acts against rolling about the second tangent, and that of
    `turning_friction` about the first.
    """

    shapes: tuple[str, str]
    friction: float | None = None
    condim: int = 3
    margin: float = 0.0
    softness: Softness = DEFAULT_SOFTNESS
    turning_friction: tuple[float, float] = (0.005, 0.0001)
    adhesion: float = 0.0
    gap: float = 0.0
    second_friction: float | None = None
    second_rolling: float | None = None
