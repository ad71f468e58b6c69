"""Composition of polynomials with sums in a fixed order: NumPy multiplies polynomials by the scalar product of its BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.polyutils import trimseq


def composed(outer: Any, inner: Any) -> Any:
    """Return outer(inner(x)), by Horner's scheme, without leading zeros."""
    result = np.zeros(1)
    for coefficient in reversed(outer.coef):
        product = np.zeros(len(result) + len(inner.coef) - 1)
        for k, c in enumerate(inner.coef):
            product[k : k + len(result)] += c * result
        product[0] += coefficient
        result = trimseq(product)
    return Polynomial(result)
