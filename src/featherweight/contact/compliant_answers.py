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

from ..array_types import Integers, Matrix, Vector
from .laws import PYRAMIDS, ContactLaw

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
    count, unit, normal = directions_of(c, x), 1.0 / (edges_of(c, x) * x.R[3 * c]), v[3 * c]
    clear(G, count)
    f[3 * c] = 0.0
    for l in range(1, count):
        mu, row = friction_of(c, l, x), row_of(c, l, x)
        f[row] = 0.0
        if l < 3 or mu > 0.0:
            aside = mu * v[row]
            first, second = max(-unit * (normal + aside), 0.0), max(-unit * (normal - aside), 0.0)
            f[3 * c] += first + second
            f[row] = mu * (first - second)
            write_edges(G, l, mu, (unit if first > 0.0 else 0.0, unit if second > 0.0 else 0.0))


def write_edges(G: Matrix, l: int, mu: float, units: tuple[float, float]) -> None:
    """Add two edges of a pyramid to G, with 1 / R' of those that push."""
    both = units[0] + units[1]
    G[0, 0] += both
    G[l, l] = mu * mu * both
    G[0, l] = G[l, 0] = mu * (units[0] - units[1])


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


def answer_of_row(x: Answering, i: int, v: float) -> tuple[float, float]:
    """Return the impulse of row i with bounds at the velocity v, and G."""
    j, unit = i - 3 * len(x.mu), 1.0 / x.R[i]
    impulse = -unit * v
    if impulse <= x.lower[j]:
        return x.lower[j], 0.0
    if impulse >= x.upper[j]:
        return x.upper[j], 0.0
    return impulse, unit
