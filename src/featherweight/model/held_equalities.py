"""Compliant loops and couplings of a description, for a model that is the tree without them."""

from __future__ import annotations

from dataclasses import replace

from .description import Description
from .length_polynomial import LengthPolynomial
from .model import HeldLengths, HeldLoop, Model
from .types import LengthTie, LoopType, ModelError, Vector

EXACT, COMPLIANT = EQUALITIES = ("exact", "compliant")
KINDS = (LoopType.SPHERICAL, LoopType.WELD)


def with_held_equalities(model: Model, d: Description) -> Model:
    """Return the model with the compliant loops and couplings of its description.

    Raises ModelError for constraints that can only be exact.
    """
    if d.led_tendons:
        problem = f"tendons of joints that follow others act on these by exact equalities: {', '.join(d.led_tendons)}"
        raise ModelError(f'{d.source}: {problem}; read the file with equalities="compliant", too')
    lengths = [HeldLengths(c.name, c.tie, c.softness) for c in d.couplings if c.tie is not None]
    unheld = [x.name for x in d.loops if x.type not in KINDS]
    for closure in d.closures:
        made = getattr(closure.function, "__self__", None)
        if isinstance(made, LengthPolynomial):
            sides = (tuple(zip(closure.joints, side, strict=True)) for side in (made.first, made.second))
            first, second = (tuple((name, c) for name, c in side if c) for side in sides)
            lengths.append(HeldLengths(closure.name, LengthTie(first, second, made.rests, made.coefficients), made.softness))
        else:
            unheld.append(closure.name)
    if unheld:
        problem = f"equalities that are held exactly only: {', '.join(unheld)} (loops that are no welds nor points, closures)"
        raise ModelError(f'{d.source}: {problem}; build with equalities="exact", or remove them')
    centers: dict[str | None, Vector] = {b.name: b.inertia.center for b in d.bodies}

    def center(link: str | None) -> Vector:
        return centers.get(link, (0.0, 0.0, 0.0))

    loops = tuple(HeldLoop(x, (center(x.predecessor), center(x.successor))) for x in d.loops)
    couplings = tuple(c for c in d.couplings if c.tie is None)
    return replace(model, held_loops=loops, held_couplings=couplings, held_lengths=tuple(lengths))
