"""Compliant loops and couplings of a description, for a model that is the tree without them; relations between lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from .contact_rules import DEFAULT_SOFTNESS, Softness
from .description import Description
from .model import CompliantLengths, CompliantLoop, Model
from .types import LengthTie, LoopType, ModelError, Vector

EXACT, COMPLIANT, OF_FILE = EQUALITIES = ("exact", "compliant", "file")
KINDS = (LoopType.SPHERICAL, LoopType.WELD)


class LengthPolynomial(NamedTuple):
    """A function that is zero if one length, minus its rest, is the given polynomial of another."""

    first: tuple[float, ...]  # coefficients of all coordinates
    second: tuple[float, ...]
    rests: tuple[float, float]
    coefficients: tuple[float, ...]
    softness: Softness = DEFAULT_SOFTNESS

    def residual(self, q: Sequence[Any]) -> list[Any]:
        lengths = [sum(c * x for c, x in zip(side, q, strict=True)) for side in (self.first, self.second)]
        stretch = lengths[1] - self.rests[1]
        value = 0.0
        for c in reversed(self.coefficients):
            value = value * stretch + c
        return [lengths[0] - self.rests[0] - value]


def with_compliant_equalities(model: Model, d: Description) -> Model:
    """Return the model with the compliant loops and couplings of its description.

    Raises ModelError for constraints that can only be exact.
    """
    if d.led_tendons:
        problem = f"tendons of joints that follow others act on these by exact equalities: {', '.join(d.led_tendons)}"
        raise ModelError(f'{d.source}: {problem}; read the file with equalities="compliant", too')
    lengths = [CompliantLengths(c.name, c.tie, c.softness) for c in d.couplings if c.tie is not None]
    exact_only = [x.name for x in d.loops if x.type not in KINDS]
    for closure in d.closures:
        made = getattr(closure.function, "__self__", None)
        if isinstance(made, LengthPolynomial):
            sides = (tuple(zip(closure.joints, side, strict=True)) for side in (made.first, made.second))
            first, second = (tuple((name, c) for name, c in side if c) for side in sides)
            lengths.append(
                CompliantLengths(closure.name, LengthTie(first, second, made.rests, made.coefficients), made.softness)
            )
        else:
            exact_only.append(closure.name)
    if exact_only:
        problem = f"equalities that can only be exact: {', '.join(exact_only)} (loops that are no welds nor points, closures)"
        raise ModelError(f'{d.source}: {problem}; build with equalities="exact", or remove them')
    centers: dict[str | None, Vector] = {b.name: b.inertia.center for b in d.bodies}

    def center(link: str | None) -> Vector:
        return centers.get(link, (0.0, 0.0, 0.0))

    loops = tuple(CompliantLoop(x, (center(x.predecessor), center(x.successor))) for x in d.loops)
    couplings = tuple(c for c in d.couplings if c.tie is None)
    return replace(model, compliant_loops=loops, compliant_couplings=couplings, compliant_lengths=tuple(lengths))
