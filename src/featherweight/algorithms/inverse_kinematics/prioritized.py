"""Damped least squares, level by level: each level moves only in the null space of those above it.

    B_k = A_k N_k                                       N_1 = 1, N_(k+1) = N_k - B_kᵀ (B_k B_kᵀ + ν)⁻¹ B_k
    d   = sum of B_kᵀ (B_k B_kᵀ + λ_k)⁻¹ (e_k - A_k (d of the levels above))

after Nakamura, Hanafusa and Yoshikawa (1987) and Siciliano and Slotine (1991), each level damped as by Levenberg and Marquardt.
The projections are applied to rows one level after the other; N is not formed. The damping λ_k is a share of the squared error,
so that it vanishes where the errors do (Sugihara 2011), and a small part besides for singular configurations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..contact.operational_space.dense_factors import factorize, solve

NULL = 1e-10  # ν of a level's weight: directions that it moves by less are left to levels below


class Level(NamedTuple):
    """Weighted rows A (m, n) and errors e (m), the damping λ, and the weight of the level, with which ν goes."""

    A: list[list[Any]]
    e: list[Any]
    damping: Any
    weight: float


def prioritized_step(n: int, levels: list[Level]) -> list[Any]:
    """d (n)."""
    d = [0.0] * n
    above: list[tuple[list[list[Any]], Any, Any]] = []  # B, and the factors of B Bᵀ + ν
    for k, level in enumerate(levels):
        left = [x - dot(row, d) for x, row in zip(level.e, level.A, strict=True)]
        B = level.A
        for rows, C, r in above:
            B = [projected(row, rows, C, r) for row in B]
        move = by_columns(n, B, left, level.damping) if len(B) > n else by_rows(n, B, left, level.damping)
        d = [x + y for x, y in zip(d, move, strict=True)]
        if k + 1 < len(levels):
            above.append((B, *factorize(len(B), gram(B, NULL * level.weight))))
    return d


def projected(row, rows, C, r):
    """A row without its part along others, with the factors of their products."""
    y = solve(len(rows), C, r, [dot(row, other) for other in rows])
    return [x - along(rows, y, j) for j, x in enumerate(row)]


def by_rows(n: int, B, e, damping):
    """Bᵀ (B Bᵀ + λ)⁻¹ e."""
    C, r = factorize(len(B), gram(B, damping))
    y = solve(len(B), C, r, e)
    return [along(B, y, j) for j in range(n)]


def by_columns(n: int, B, e, damping):
    """The same as (Bᵀ B + λ)⁻¹ Bᵀ e."""
    columns = [[row[j] for row in B] for j in range(n)]
    C, r = factorize(n, gram(columns, damping))
    return solve(n, C, r, [dot(column, e) for column in columns])


def gram(rows, damping):
    """The scalar products of rows, with something added to the diagonal; below it."""
    return [[dot(a, b) + damping if i == j else dot(a, b) for j, b in enumerate(rows[: i + 1])] for i, a in enumerate(rows)]


def along(rows, y, j: int):
    """Entry j of the sum of rows times y."""
    total = 0.0
    for row, factor in zip(rows, y, strict=True):
        total = total + row[j] * factor
    return total


def dot(x, y):
    total = 0.0
    for a, b in zip(x, y, strict=True):
        total = total + a * b
    return total
