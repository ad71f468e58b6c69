"""Closures for relations between lengths of tendons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .contact_rules import DEFAULT_SOFTNESS, Softness


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
