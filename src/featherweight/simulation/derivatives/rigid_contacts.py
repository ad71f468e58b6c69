"""Derivatives of the acceleration with rigid contacts, by corrections of those with a small proximal term (`rigid_answers`).

The matrix M + Jᵀ G J is eliminated once. Each correction solves for a change of the acceleration, from the last change of the
impulses:

    (M + Jᵀ G J) da = Jᵀ E df_last / h        df = E df_last - h G J da

Products with a cotangent g of the acceleration need the cotangent w of the right-hand sides and the cotangents p of the
impulses at constant acceleration, which satisfy the transposed equations, by corrections as well:

    (M + Jᵀ G J)ᵀ w = g - h (G J)ᵀ p_last        p = Eᵀ (p_last + J w / h)

Rows of contacts and joint rows are in `Places.kept` and `Places.moved`: three of each contact, then one of each joint row.
"""

from __future__ import annotations

from ...array_types import Vector
from ...contact.rigid.answers import PROXIMAL, RigidAnswers
from ...engine.loops.kernels import LANES, subtract_multiples, sum_of_products
from .equations import Places, add_product, eliminate, solve_by_gains, solve_transposed

EXACT = 1e-11  # residual of velocities, relative to the greatest derivative, that needs no correction
CONSISTENT = 1e-6  # greatest residual of contacts that can all keep their states
MOST_CORRECTIONS = 6
WITH_PROBE = 3  # least number of corrections that remove the part of a probe that has no effect


def solve_for_rigid_rates(
    x: Vector, n: int, at: Places, rigid: RigidAnswers, counts: tuple[int, int], h: float
) -> bool:  # fmt: skip
    """Replace right-hand sides by rates, with so many contacts and joint rows; return whether these are doubtful.

    Contacts that cannot all keep their states leave a residual. If contacts slide, an additional column starts with a change of
    all impulses. If part of it has an effect on velocities that no correction removes, impulses are not unique, and matter.
    """
    (k, count), slides, done = counts, False, 0
    for c in range(k):
        slides = slides or (rigid.sliding[c] and k + count > 1)
    eliminate(x, n, at)
    solve_by_gains(x, n, at, at.rates)
    left = change_impulses(x, n, at, rigid, counts, at.rates, h)
    if slides:
        write_probe(x, at, rigid, counts)
    least = WITH_PROBE if slides else 1
    while done < least or (done < MOST_CORRECTIONS and left > EXACT * rigid.scale[0]):
        write_last_forces(x, n, at, rigid, counts, h)
        solve_by_gains(x, n, at, at.change)
        left = change_impulses(x, n, at, rigid, counts, at.change, h)
        for i in range(n * at.width):
            x[at.rates + i] += x[at.change + i]
        done += 1
    return bool(left > CONSISTENT * rigid.scale[0] or (slides and effect_of_probe(x, n, at, counts, h) > CONSISTENT))


def write_probe(x: Vector, at: Places, rigid: RigidAnswers, counts: tuple[int, int]) -> None:
    """Write a change of all impulses to the last column."""
    k, count = counts
    for row in range(3 * k + count):
        b = row // 3 if row < 3 * k else row - 2 * k
        x[at.moved + (row + 1) * at.width - 1] = (1.0 - 1.0 / (2 + row)) * (1.0 if row % 2 == 0 else -1.0) / rigid.rho[b]


def effect_of_probe(x: Vector, n: int, at: Places, counts: tuple[int, int], h: float) -> float:
    """Return the greatest velocity of contacts and rows in the last column of the last correction."""
    k, count = counts
    most = 0.0
    for row in range(3 * k + count):
        total = 0.0
        for j in range(n):
            total += x[at.kept + row * at.stride + j] * x[at.change + (j + 1) * at.width - 1]
        most = max(most, h * abs(total))
    return most


def change_impulses(
    x: Vector, n: int, at: Places, rigid: RigidAnswers, counts: tuple[int, int], rates: int, h: float
) -> float:  # fmt: skip
    """Add -h G J da to the changes of impulses, for rates da; return the residual of velocities by the proximal term."""
    (k, count), width, left = counts, at.width, 0.0
    for b in range(k + count):
        size, row, most = 3 if b < k else 1, 3 * b if b < k else 2 * k + b, 0.0
        own = at.moved + row * width
        for l in range(size):
            for j in range(width):
                x[at.passing + l * width + j] = 0.0
            add_product(x, at.passing + l * width, (at.kept + (row + l) * at.stride, n), (rates, width), width)
        for l in range(size):
            G = h * rigid.G[b, l, 0], h * rigid.G[b, l, 1], h * rigid.G[b, l, 2]
            if size == 3:
                subtract_multiples(x, own + l * width, at.passing, width, width, G)
            else:
                subtract_multiples(x, own, at.passing, width, width, (h * rigid.G[b, 0, 0],))
            for part in range(4):
                stop = n if part < 3 else width - 1 - 3 * at.stride
                for j in range(stop):
                    most = max(most, abs(x[own + l * width + part * at.stride + j]))
        if rigid.pushing[b]:
            left = max(left, PROXIMAL * rigid.rho[b] * most)
    return left


def write_last_forces(x: Vector, n: int, at: Places, rigid: RigidAnswers, counts: tuple[int, int], h: float) -> None:
    """Replace the changes of impulses by E df, and write their joint forces Jᵀ E df / h as right-hand sides of the change."""
    (k, count), width, unit = counts, at.width, -1.0 / h
    for i in range(n * width):
        x[at.change + i] = 0.0
    for b in range(k + count):
        size, row = 3 if b < k else 1, 3 * b if b < k else 2 * k + b
        own, J = at.moved + row * width, at.kept + row * at.stride
        for l in range(size):
            if size == 3:
                E = -rigid.E[b, l, 0], -rigid.E[b, l, 1], -rigid.E[b, l, 2]
                subtract_multiples(x, at.passing + l * width, own, width, width, E, True)
            else:
                subtract_multiples(x, at.passing, own, width, width, (-rigid.E[b, 0, 0],), True)
        for i in range(size * width):
            x[own + i] = x[at.passing + i]
        for j in range(n):
            target, first = at.change + j * width, unit * x[J + j]
            if size == 3:
                second, third = unit * x[J + at.stride + j], unit * x[J + 2 * at.stride + j]
                if first != 0.0 or second != 0.0 or third != 0.0:
                    subtract_multiples(x, target, own, width, width, (first, second, third))
            elif first != 0.0:
                subtract_multiples(x, target, own, width, width, (first,))


def pull_back_rigid_rates(
    x: Vector, n: int, at: Places, rigid: RigidAnswers, counts: tuple[int, int], h: float
) -> None:  # fmt: skip
    """Write the cotangents of the right-hand sides and of impulses, from those of the acceleration in the column."""
    (k, count), done, change, size, w, last = counts, 0, 1.0, 0.0, at.cotangent, at.moved_column
    given, aim, passing, rows = at.passing, at.passing + at.stride, at.passing + 2 * at.stride, 3 * k + count
    eliminate(x, n, at)
    for i in range(at.stride):
        x[given + i] = x[at.column + i * LANES] if i < n else 0.0
        x[last + i] = 0.0
    for i in range(rows):
        x[at.answering + i] = 0.0
    while True:
        for i in range(at.stride):
            x[aim + i] = x[given + i]
        for b in range(k + count):
            width, row = (3, 3 * b) if b < k else (1, 2 * k + b)
            for l in range(width):
                pull = 0.0
                for m in range(width):
                    pull += rigid.G[b, m, l] * x[at.answering + row + m]
                subtract_multiples(x, aim, at.kept + (row + l) * at.stride, 0, at.stride, (h * pull,))
        solve_transposed(x, n, at, aim, w)
        change = size = 0.0
        for i in range(n):
            change, size = max(change, abs(x[w + i] - x[last + i])), max(size, abs(x[w + i]))
            x[last + i] = x[w + i]
        if done == MOST_CORRECTIONS or (done > 0 and change <= EXACT * size):
            return
        done += 1
        for b in range(k + count):
            width, row = (3, 3 * b) if b < k else (1, 2 * k + b)
            for l in range(width):
                J = at.kept + (row + l) * at.stride
                x[passing + l] = x[at.answering + row + l] + sum_of_products(x, J, x, w, at.stride) / h
            for l in range(width):
                x[at.answering + row + l] = 0.0
                for m in range(width):
                    x[at.answering + row + l] += rigid.E[b, m, l] * x[passing + m]
