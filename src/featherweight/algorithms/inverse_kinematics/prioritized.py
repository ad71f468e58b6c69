"""Damped least squares with priorities: each level moves only in the null space of the levels above it.

    x minimizes |A x - (e - A d)|² + λ |x|²     subject to C x = 0,     d <- d + x

for the rows A and errors e of each level in turn, where C are the rows of all levels above. The method follows Nakamura,
Hanafusa and Yoshikawa (1987) and Siciliano and Slotine (1991), with Levenberg-Marquardt damping of each level: λ is a fraction
of the squared error, which vanishes with the errors (Sugihara 2011), plus a small constant for singular configurations.

Rows with a single entry u, such as those of postures, are combined with λ in a diagonal matrix D = λ + u², so that matrices
are no larger than the number of other rows: with x0 = D⁻¹ u (their errors), all times a scale s,

    [C D⁻¹ Cᵀ + ν      C D⁻¹ Aᵀ  ]       [  - C x0      ]
    [A D⁻¹ Cᵀ          A D⁻¹ Aᵀ + s] y = [ e - A d - A x0 ],           x = x0 + D⁻¹ (Cᵀ Aᵀ) y
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..contact.operational_space.dense_factors import dot, factorize, is_zero, solve

NULL = 1e-13  # ν relative to the diagonal, above rounding, for dependent rows; C x is off by this over λ of the remaining e


class Level(NamedTuple):
    """Weighted rows A (m, n) and errors e (m), the damping λ, and the greatest weight of a row."""

    A: list[list[Any]]
    e: list[Any]
    damping: Any
    weight: float


def prioritized_step(n: int, levels: list[Level]) -> list[Any]:
    """Return d (n)."""
    d = [0.0] * n
    C: list[list[Any]] = []
    weights: list[float] = []
    for level in levels:
        left = [x - dot(row, d) for x, row in zip(level.e, level.A, strict=True)]
        single = [sum(not is_zero(x) for x in row) == 1 for row in level.A]
        A = [row for row, alone in zip(level.A, single, strict=True) if not alone]
        e = [x for x, alone in zip(left, single, strict=True) if not alone]
        s = level.damping + (level.weight if any(single) else 0.0)
        x0, inverse = diagonal_part(n, level, left, single, s)
        S = [*C, *A]
        wanted = [x - dot(row, x0) for x, row in zip([0.0] * len(C) + e, S, strict=True)]
        scaled = [[x * y for x, y in zip(row, inverse, strict=True)] for row in S]
        G = [[dot(S[i], scaled[j]) for j in range(i + 1)] for i in range(len(S))]
        for i in range(len(S)):
            G[i][i] = G[i][i] + (NULL * (weights[i] + G[i][i]) if i < len(C) else s)
        L, reciprocal = factorize(len(S), G)
        y = solve(len(S), L, reciprocal, wanted)
        for j in range(n):
            d[j] = d[j] + x0[j] + dot([row[j] for row in scaled], y)
        C += level.A
        weights += [level.weight] * len(level.A)
    return d


def diagonal_part(n: int, level: Level, left, single, s):
    """Return x0, and s D⁻¹ on the diagonal."""
    if not any(single):
        return [0.0] * n, [1.0] * n
    D, g = [level.damping] * n, [0.0] * n
    for row, error, alone in zip(level.A, left, single, strict=True):
        if alone:
            j = next(k for k, x in enumerate(row) if not is_zero(x))
            D[j] = D[j] + row[j] * row[j]
            g[j] = g[j] + row[j] * error
    reciprocal = [1.0 / x for x in D]
    return [x * y for x, y in zip(g, reciprocal, strict=True)], [s * x for x in reciprocal]
