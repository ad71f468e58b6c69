"""The impulses by which compliant contacts and joint rows answer to their velocities.

Each contact or row has its own compliance R > 0. At the velocities v, it answers with the impulses f(v) that minimize f R f / 2
+ v f over its cone or bounds. The derivative -G of f(v) is symmetric, and so the answers are the derivative of a convex
function (the primal problem of MuJoCo, Todorov 2014).

    pyramid   f = sum of e max(0, -e·v / R')       over its edges e = n ± mu_j t_j, with R' of `edges`
    cone      sum over j of (f_j / mu_j)² <= f_n²   all friction has the same compliance in units of f_j / mu_j
    row       lower <= -v / R <= upper

Directions of a contact are its normal and two tangents, and with friction against spinning and rolling also rotation about
these three axes.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from ...array_types import Integers, Matrix, Vector
from ..laws import PYRAMIDS, ContactLaw

DIRECTIONS = 6
BOUNDARY = 1e-6  # relative difference from the boundary of two states below which answers have no unique derivative


class Answering(NamedTuple):
    """Numbers that determine the answers of k contacts and of rows with bounds."""

    R: Vector  # (m,) compliance [m/s per N s]
    mu: Vector  # (k,)
    lower: Vector  # (m - 3k,) bounds [N s, N m s]; those of rows of spinning and rolling have no effect
    upper: Vector
    cones: int  # PYRAMIDS or CONES
    turning: int  # number of contacts with friction against spinning and rolling
    group: Integers  # (contacts,) index of each among the rows of three after those of contacts, or -1, if there are any
    friction: Matrix  # (contacts, 3) [m] against spinning, and rolling about both tangents


def answering_of(law: ContactLaw, cones: int, turning: int, group: Integers, friction: Matrix) -> Answering:
    """Return the numbers of a law, and those of spinning and rolling."""
    return Answering(law.compliance, law.friction, law.lower, law.upper, cones, turning, group, friction)


def row_of(c: int, l: int, x: Answering) -> int:
    """Return the row of a direction of contact c."""
    return 3 * c + l if l < 3 else 3 * (len(x.mu) + x.group[c]) + l - 3


def friction_of(c: int, l: int, x: Answering) -> float:
    """Return the friction of a contact in a direction after the first; 0 for none."""
    mu = x.mu[c]
    return mu if l < 3 else x.friction[c, l - 3] if mu > 0.0 else 0.0


def directions_of(c: int, x: Answering) -> int:
    """Return the number of directions of a contact."""
    return DIRECTIONS if x.turning > 0 and x.group[c] >= 0 else 3


def edges_of(c: int, x: Answering) -> int:
    """Return the number of edges of a pyramid."""
    count = 4
    for l in range(3, directions_of(c, x)):
        count += 2 if friction_of(c, l, x) > 0.0 else 0
    return count


def write_answer(x: Answering, v: Vector, c: int, f: Vector, G: Matrix) -> None:
    """Write the impulses of a contact at velocities v (m,) to f (m,), and G (6, 6)."""
    if x.cones == PYRAMIDS:
        write_answer_of_pyramid(x, v, c, f, G)
    else:
        write_answer_of_cone(x, v, c, f, G)


def write_answer_of_pyramid(x: Answering, v: Vector, c: int, f: Vector, G: Matrix) -> None:
    """Write the impulses along the edges of a pyramid."""
    r, mu, normal, total, pushing = 3 * c, x.mu[c], v[3 * c], 0.0, 0.0
    unit = 1.0 / (edges_of(c, x) * x.R[r])
    G[1, 2] = G[2, 1] = 0.0
    for l in (1, 2):
        push, count, f[r + l] = write_answer_of_edges(unit, normal, mu, v[r + l], l, G)
        total, pushing = total + push, pushing + count
    if directions_of(c, x) > 3:
        clear_turning(G)
        for l in range(3, DIRECTIONS):
            row, friction = row_of(c, l, x), friction_of(c, l, x)
            f[row] = 0.0
            if friction > 0.0:
                push, count, f[row] = write_answer_of_edges(unit, normal, friction, v[row], l, G)
                total, pushing = total + push, pushing + count
    f[r], G[0, 0] = total, pushing


def write_answer_of_edges(unit: float, normal: float, mu: float, v: float, l: int, G: Matrix) -> tuple[float, float, float]:
    """Return the impulses of two opposite edges along the normal, their part of G there, and the impulse aside."""
    first, second = max(-unit * (normal + mu * v), 0.0), max(-unit * (normal - mu * v), 0.0)
    both = write_edges(G, l, mu, (unit if first > 0.0 else 0.0, unit if second > 0.0 else 0.0))
    return first + second, both, mu * (first - second)


def write_edges(G: Matrix, l: int, mu: float, units: tuple[float, float]) -> float:
    """Write two edges of a pyramid to G, with 1 / R' of those that push; return their part of the first entry."""
    both = units[0] + units[1]
    G[l, l] = mu * mu * both
    G[0, l] = G[l, 0] = mu * (units[0] - units[1])
    return both


def write_answer_of_cone(x: Answering, v: Vector, c: int, f: Vector, G: Matrix) -> None:
    """Write the impulses within a cone, which is round in units of f_j / mu_j."""
    count, normal, R = directions_of(c, x), v[3 * c], x.R[3 * c]
    along, rubbing = x.R[3 * c + 1] * x.mu[c] * x.mu[c], 0.0
    for l in range(1, count):
        e = friction_of(c, l, x) * v[row_of(c, l, x)]
        rubbing += e * e
    rubbing = sqrt(rubbing)
    push = max(-normal / R, 0.0)
    sticks = rubbing <= along * push
    if not sticks:
        push = max((rubbing - normal) / (R + along), 0.0)
    clear(G, count)
    f[3 * c] = push
    for l in range(1, count):
        mu, row = friction_of(c, l, x), row_of(c, l, x)
        f[row] = 0.0
        if mu > 0.0 and push > 0.0:
            f[row] = -mu * mu * v[row] * (1.0 / along if sticks else push / rubbing)
    if not push > 0.0:
        return
    if sticks:
        G[0, 0] = 1.0 / R
        for l in range(1, count):
            mu = friction_of(c, l, x)
            G[l, l] = mu * mu / along if mu > 0.0 else 0.0
        return
    G[0, 0] = 1.0 / (R + along)
    for i in range(1, count):
        first = friction_of(c, i, x)
        way = first * v[row_of(c, i, x)] / rubbing
        G[0, i] = G[i, 0] = -first * way / (R + along)
        for j in range(1, count):
            mu = friction_of(c, j, x)
            both = way * mu * v[row_of(c, j, x)] / rubbing
            G[i, j] = first * mu * (both / (R + along) + push / rubbing * ((1.0 if i == j else 0.0) - both))


def is_between(x: Answering, v: Vector, c: int) -> bool:
    """Return whether a contact is at the boundary between two states: open, sticking, sliding, or sets of pushing edges."""
    count, normal, close = directions_of(c, x), v[3 * c], False
    if x.cones == PYRAMIDS:
        for l in range(1, count):
            aside = friction_of(c, l, x) * v[row_of(c, l, x)]
            close = close or abs(abs(aside) - abs(normal)) < BOUNDARY * abs(normal)
        return close
    R, along, rubbing = x.R[3 * c], x.R[3 * c + 1] * x.mu[c] * x.mu[c], 0.0
    for l in range(1, count):
        e = friction_of(c, l, x) * v[row_of(c, l, x)]
        rubbing += e * e
    rubbing, sticking = sqrt(rubbing), -along * normal / R
    return bool(abs(rubbing - sticking) < BOUNDARY * abs(sticking) or abs(rubbing - normal) < BOUNDARY * abs(normal))


def clear(G: Matrix, count: int) -> None:
    """Set the first rows and columns of G to zero."""
    for i in range(count):
        for j in range(count):
            G[i, j] = 0.0


def clear_turning(G: Matrix) -> None:
    """Set the rows and columns of spinning and rolling to zero."""
    for i in range(3, DIRECTIONS):
        for j in range(i + 1):
            G[i, j] = G[j, i] = 0.0


def subtract_product(x: Answering, G: Matrix, c: int, v: Vector, result: Vector) -> None:
    """Subtract G v of a contact from the numbers of its rows."""
    r = 3 * c
    a, b, d = v[r], v[r + 1], v[r + 2]
    for i in (0, 1, 2):
        result[r + i] -= G[i, 0] * a + G[i, 1] * b + G[i, 2] * d
    if directions_of(c, x) > 3:
        for i in range(DIRECTIONS):
            for j in range(3 if i < 3 else 0, DIRECTIONS):
                result[row_of(c, i, x)] -= G[i, j] * v[row_of(c, j, x)]


def square(x: Answering, G: Matrix, c: int, v: Vector) -> float:
    """Return vᵀ G v of a contact."""
    r, total = 3 * c, 0.0
    a, b, d = v[r], v[r + 1], v[r + 2]
    for i in (0, 1, 2):
        total += v[r + i] * (G[i, 0] * a + G[i, 1] * b + G[i, 2] * d)
    if directions_of(c, x) > 3:
        for i in range(DIRECTIONS):
            for j in range(3 if i < 3 else 0, DIRECTIONS):
                total += G[i, j] * v[row_of(c, i, x)] * v[row_of(c, j, x)]
    return total


def answer_of_row(x: Answering, i: int, v: float) -> tuple[float, float]:
    """Return the impulse of row i with bounds at the velocity v, and G."""
    j, unit = i - 3 * len(x.mu), 1.0 / x.R[i]
    impulse = -unit * v
    if impulse <= x.lower[j]:
        return x.lower[j], 0.0
    if impulse >= x.upper[j]:
        return x.upper[j], 0.0
    return impulse, unit
