"""Contact rules of a description that are not parameters of one shape: softness, neighbours and contact pairs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from ..checks import checked

TAKEN_AS_EXACT = "equality constraints that yield in MuJoCo, taken as exact"  # keys of reports, here and below
TWO_FRICTIONS = "contacts with two sliding or rolling frictions, read as the first"
TOUCHING_LEFT_OUT = "geoms that touch and are left out"
TOUCHING_AS_MESHES = "primitives fitted to meshes, touching as those meshes"


@checked
class Softness(NamedTuple):
    """MuJoCo's parameters of compliant contacts, limits and dry friction: `solref` and `solimp`, with its defaults.

    `solref` are a time constant [s] and a damping ratio, or stiffness and damping as negative numbers. `solimp` are the least
    and greatest impedance, the depth [m, rad] over which the impedance changes from one to the other, and the midpoint and
    power of that curve. `solmix` is the weight of one of two surfaces.
    """

    solref: tuple[float, float] = (0.02, 1.0)
    solimp: tuple[float, float, float, float, float] = (0.9, 0.95, 0.001, 0.5, 2.0)
    solmix: float = 1.0


DEFAULT_SOFTNESS = Softness()


def mixed_softness(a: Softness, b: Softness) -> Softness:
    """Return the softness of a contact between two surfaces, mixed as in MuJoCo."""
    whole = a.solmix + b.solmix
    part = a.solmix / whole if whole > 0.0 else 0.5
    if a.solref[0] > 0.0 and b.solref[0] > 0.0:
        x, y = (part * s + (1.0 - part) * t for s, t in zip(a.solref, b.solref, strict=True))
    else:
        x, y = map(min, a.solref, b.solref)
    c, d, e, f, g = (part * s + (1.0 - part) * t for s, t in zip(a.solimp, b.solimp, strict=True))
    return Softness((x, y), (c, d, e, f, g))


class NeighbourRule(StrEnum):
    """Rules that exclude contacts between shapes of neighbouring bodies. Bodies that are fixed to one another count as one."""

    JOINED = "joined"  # bodies that a joint or a loop connects, except by free joints
    MOVING = "moving"  # bodies that a joint connects, except the ground: MuJoCo's rule
    NONE = "none"  # no bodies


@checked
@dataclass(frozen=True, slots=True)
class ContactPair:
    """Two shapes, by name, that collide whatever other rules exclude; the parameters are as in `Shape`, for both.

    With `second_friction`, `friction` acts along the first tangent of MuJoCo's contact frame and `second_friction` along the
    second, so that the friction cone is elliptic. Likewise, `second_rolling` [m] acts against rolling about the second
    tangent, and that of `turning_friction` about the first.
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
