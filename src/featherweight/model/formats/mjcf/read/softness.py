"""Softness of contacts, limits, dry friction and equalities of MJCF files, and margins of limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ....contact_rules import TAKEN_AS_EXACT, Softness
from ..mujoco_types import MjModel


def softness_of(solref: Iterable[float], solimp: Iterable[float], solmix: float = 1.0) -> Softness:
    """Return MuJoCo's parameters unchanged."""
    (a, b), (c, d, e, f, g) = (map(float, x) for x in (solref, solimp))
    return Softness((a, b), (c, d, e, f, g), float(solmix))


def within(ends: Iterable[float], margin: float) -> tuple[float, float]:
    """Return limits that begin by a margin before their range ends; at least a thousandth of the range remains."""
    lower, upper = map(float, ends)
    inside = min(float(margin), max(0.4995 * (upper - lower), 0.0))
    return lower + inside, upper - inside


def unused_of_equalities(model: MjModel) -> Iterator[tuple[str, str]]:
    """Yield the number of active equalities, in words."""
    if number := np.count_nonzero(model.eq_active0):
        yield TAKEN_AS_EXACT, f"{number}"
