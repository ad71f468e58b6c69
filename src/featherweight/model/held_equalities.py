"""Loops and couplings of a description that are held by springs and dampers, beside a model that is the tree without them."""

from __future__ import annotations

from dataclasses import replace

from .description import Description
from .model import HeldLoop, Model
from .types import LoopType, ModelError, Vector

EXACT, COMPLIANT = EQUALITIES = ("exact", "compliant")
KINDS = (LoopType.SPHERICAL, LoopType.WELD)


def with_held_equalities(model: Model, d: Description) -> Model:
    """Return the model with the loops and couplings of its description.

    Raises ModelError for those that are held exactly only.
    """
    others = [x.name for x in d.loops if x.type not in KINDS]
    if unheld := [*others, *(c.name for c in d.closures)]:
        problem = f"equalities that are held exactly only: {', '.join(unheld)} (loops that are no welds nor points, closures)"
        raise ModelError(f'{d.source}: {problem}; build with equalities="exact", or leave them out')
    centers: dict[str | None, Vector] = {b.name: b.inertia.center for b in d.bodies}

    def center(link: str | None) -> Vector:
        return centers.get(link, (0.0, 0.0, 0.0))

    loops = tuple(HeldLoop(x, (center(x.predecessor), center(x.successor))) for x in d.loops)
    return replace(model, held_loops=loops, held_couplings=d.couplings)
