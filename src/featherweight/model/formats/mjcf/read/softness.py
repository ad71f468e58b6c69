"""Softness of contacts, limits, dry friction and equalities of MJCF files, and margins of limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ....contact_rules import DEFAULT_SOFTNESS, SOFT_HOLDS, Softness
from ..mujoco_types import MjModel

SOLREF, SOLIMP, _ = DEFAULT_SOFTNESS


def softness_of(solref: Iterable[float], solimp: Iterable[float], solmix: float = 1.0) -> Softness:
    """Return MuJoCo's parameters unchanged."""
    (a, b), (c, d, e, f, g) = (map(float, x) for x in (solref, solimp))
    return Softness((a, b), (c, d, e, f, g), float(solmix))


def within(ends: Iterable[float], margin: float) -> tuple[float, float]:
    """Return limits that begin by a margin before their range ends; at least a thousandth of the range remains."""
    lower, upper = map(float, ends)
    inside = min(float(margin), max(0.4995 * (upper - lower), 0.0))
    return lower + inside, upper - inside


def differ_from_default(solref: ArrayLike, solimp: ArrayLike) -> Any:
    """Return, for each row, whether its softness differs from MuJoCo's default."""
    return ~(np.isclose(solref, SOLREF).all(axis=1) & np.isclose(solimp, SOLIMP).all(axis=1))


def unused_of_equalities(model: MjModel) -> Iterator[tuple[str, str]]:
    """Yield, in words, the softness of active equalities, which exact ones do not use."""
    soft = np.count_nonzero(differ_from_default(model.eq_solref, model.eq_solimp)[np.asarray(model.eq_active0) != 0])
    if soft:
        yield SOFT_HOLDS, f"{soft}"
