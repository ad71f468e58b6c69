"""The dual active-set method of Goldfarb and Idnani (1983), after the equalities are eliminated (`null_space`).

An iteration selects a violated inequality n·x >= c, and moves x and multipliers until it holds:

    d = Jᵀ n      z = J₂ d₂      r = R⁻¹ d₁      x <- x + t z      u <- u - t r

where the first columns of J belong to the active inequalities. The step ends earlier where a multiplier vanishes; that
inequality then leaves the active set. Without a step that keeps all active ones, no x satisfies the inequalities.

A friction cone is the intersection of its tangent half-spaces μ f_z >= f_x cos φ + f_y sin φ. The violated one is that in the
direction of the present force, so that the method adds planes until the force is in the cone (Kelley 1960). A pyramid has given
planes instead.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from ..engine.loops.kernels import subtract_product, sum_of_products
from .null_space import add_equalities, write_descent, write_hessian, write_minimum, write_null_space
from .program import (
    BLOCKING_INDEX,
    BLOCKING_KIND,
    BOUND,
    CONE,
    INCONSISTENT,
    INFEASIBLE,
    ITERATIONS,
    LIMITS,
    RANK,
    ROW,
    SOLVED,
    STEPS,
    ActiveSet,
    QuadraticProgram,
)

TOLERANCE = 1e-10  # violation of an inequality, relative to 1 + its size
DEPENDENT = 1e-18  # squared part of a normal outside the active ones, relative to its square
MOST_STEPS = 1000
ROUNDING = 1e-28  # squared part of a normal that is a rounding error, relative to the squares of the normal and of J
NO_STEP = 1e300


class Inequality(NamedTuple):
    """One inequality, and n·x - c."""

    kind: int
    which: int
    side: float
    cosine: float
    sine: float
    slack: float


def minimize(p: QuadraticProgram, begin: int) -> int:
    """Write the minimum to x and return the status. Rows of E before `begin` are reflected already."""
    if not add_equalities(p, begin):
        return INCONSISTENT
    write_null_space(p)
    write_hessian(p)
    write_minimum(p)
    write_products(p)
    p.active.size[0] = 0
    tried, refined = 0, True
    while p.counts[STEPS] < MOST_STEPS:
        wanted, tried = next_inequality(p, tried)
        if wanted.kind < 0:
            if refined:
                return SOLVED
            refine(p)
            refined = True
            continue
        refined = False
        if not satisfy(p, wanted):
            p.counts[BLOCKING_KIND], p.counts[BLOCKING_INDEX] = wanted.kind, wanted.which
            return INFEASIBLE
    return ITERATIONS


def refine(p: QuadraticProgram) -> None:
    """Move x to the minimum for the active inequalities; steps along nearly parallel planes have rounding errors."""
    x, n, wide, count = p.numbers, p.n, p.wide, p.active.size[0]
    write_descent(p, p.x)
    for k in range(count, n - p.counts[RANK]):
        row = p.inverse + k * wide
        part = sum_of_products(x, row, x, p.normal, wide)
        for j in range(n):
            x[p.x + j] += part * x[row + j]
    write_products(p)


def write_products(p: QuadraticProgram) -> None:
    """Write C x."""
    for i in range(p.counts[LIMITS]):
        p.product[i] = sum_of_products(p.numbers, p.limits + i * p.wide, p.numbers, p.x, p.wide)


def next_inequality(p: QuadraticProgram, tried: int) -> tuple[Inequality, int]:
    """Return a violated inequality, first of those that were active before; its kind is -1 if there is none."""
    while tried < p.before.size[0]:
        known = stored(p, p.before, tried)
        tried += 1
        if known.slack < 0.0:
            return known, tried
    return most_violated(p), tried


def stored(p: QuadraticProgram, some: ActiveSet, k: int) -> Inequality:
    """Return an inequality of a set, with a slack of 0 if it holds to the tolerance."""
    kind, i, side, x = some.kind[k], some.which[k], some.side[k], p.numbers
    if kind == CONE:
        at = p.x + p.cone[i]
        slack = p.friction[i] * x[at + 2] - some.cosine[k] * x[at] - some.sine[k] * x[at + 1]
        scale = 1.0 + abs(x[at]) + abs(x[at + 1])
    else:
        value = x[p.x + i] if kind == BOUND else p.product[i]
        end = bound_of(p, kind, i, side)
        slack, scale = side * (value - end), 1.0 + abs(end)
    return Inequality(kind, i, side, some.cosine[k], some.sine[k], slack if slack < -TOLERANCE * scale else 0.0)


def bound_of(p: QuadraticProgram, kind: int, i: int, side: float) -> float:
    """Return the bound of a variable or a row."""
    if kind == BOUND:
        return p.lower[i] if side > 0.0 else p.upper[i]
    return p.least[i] if side > 0.0 else p.most[i]


def most_violated(p: QuadraticProgram) -> Inequality:
    """Return the inequality with the largest violation relative to its size; its kind is -1 if there is none."""
    x, worst = p.numbers, -TOLERANCE
    kind, index, side, cosine, sine, slack = -1, 0, 1.0, 0.0, 0.0, 0.0
    for i in range(p.n):
        value = x[p.x + i]
        down, up = (value - p.lower[i]) / (1.0 + abs(p.lower[i])), (p.upper[i] - value) / (1.0 + abs(p.upper[i]))
        if down < worst:
            worst, kind, index, side, slack = down, BOUND, i, 1.0, value - p.lower[i]
        if up < worst:
            worst, kind, index, side, slack = up, BOUND, i, -1.0, p.upper[i] - value
    for i in range(p.counts[LIMITS]):
        value = p.product[i]
        down, up = (value - p.least[i]) / (1.0 + abs(p.least[i])), (p.most[i] - value) / (1.0 + abs(p.most[i]))
        if down < worst:
            worst, kind, index, side, slack = down, ROW, i, 1.0, value - p.least[i]
        if up < worst:
            worst, kind, index, side, slack = up, ROW, i, -1.0, p.most[i] - value
    for i in range(len(p.cone)):
        at = p.x + p.cone[i]
        c, s = tangent(p, x[at], x[at + 1])
        gap = p.friction[i] * x[at + 2] - c * x[at] - s * x[at + 1]
        ratio = gap / (1.0 + abs(x[at]) + abs(x[at + 1]))
        if p.friction[i] >= 0.0 and ratio < worst:
            worst, kind, index, side, slack = ratio, CONE, i, 1.0, gap
            cosine, sine = c, s
    return Inequality(kind, index, side, cosine, sine, slack)


def tangent(p: QuadraticProgram, fx: float, fy: float) -> tuple[float, float]:
    """Return cosine and sine of the direction whose plane a force violates most."""
    if len(p.edges) == 0:
        size = sqrt(fx * fx + fy * fy)
        return (fx / size, fy / size) if size > 0.0 else (1.0, 0.0)
    best, found = -NO_STEP, 0
    for k in range(len(p.edges)):
        value = p.edges[k, 0] * fx + p.edges[k, 1] * fy
        if value > best:
            best, found = value, k
    return p.edges[found, 0], p.edges[found, 1]


def satisfy(p: QuadraticProgram, wanted: Inequality) -> bool:
    """Move x until the inequality holds, and add it to the active ones; return False if that is impossible."""
    x, a, size = p.numbers, p.active, p.n - p.counts[RANK]
    slack, own = wanted.slack, 0.0
    write_normal(p, wanted)
    least = ROUNDING * p.squares[0] * sum_of_products(x, p.normal, x, p.normal, p.wide)
    for j in range(size):
        x[p.d + j] = sum_of_products(x, p.inverse + j * p.wide, x, p.normal, p.wide)
    while True:
        p.counts[STEPS] += 1
        count = a.size[0]
        inside = outside = 0.0
        for j in range(size):
            square = x[p.d + j] * x[p.d + j]
            if j < count:
                inside += square
            else:
                outside += square
        write_ratios(p, count)
        partial, leaving = NO_STEP, -1
        for j in range(count):
            if p.ratio[j] > 0.0 and a.multiplier[j] < partial * p.ratio[j]:
                partial, leaving = a.multiplier[j] / p.ratio[j], j
        moves = outside > max(DEPENDENT * (inside + outside), least)
        full = -slack / outside if moves else NO_STEP
        t = min(partial, full)
        if t >= NO_STEP:
            return False
        for j in range(count):
            a.multiplier[j] -= t * p.ratio[j]
        own += t
        if moves:
            move(p, t, count, size)
            slack += t * outside
        if full <= partial:
            add(p, wanted, own, sqrt(outside), size)
            return True
        drop(p, leaving)


def write_normal(p: QuadraticProgram, one: Inequality) -> None:
    """Write the normal n of an inequality."""
    x = p.numbers
    for k in range(p.wide):
        x[p.normal + k] = 0.0
    if one.kind == BOUND:
        x[p.normal + one.which] = one.side
    elif one.kind == ROW:
        row = p.limits + one.which * p.wide
        for k in range(p.n):
            x[p.normal + k] = one.side * x[row + k]
    else:
        at = p.normal + p.cone[one.which]
        x[at], x[at + 1], x[at + 2] = -one.cosine, -one.sine, p.friction[one.which]


def write_ratios(p: QuadraticProgram, count: int) -> None:
    """Write r = R⁻¹ d₁."""
    x = p.numbers
    for i in range(count - 1, -1, -1):
        row, total = p.factor + i * p.wide, x[p.d + i]
        for j in range(i + 1, count):
            total -= x[row + j] * p.ratio[j]
        p.ratio[i] = total / x[row + i]


def move(p: QuadraticProgram, t: float, count: int, size: int) -> None:
    """Move x by t z."""
    x, wide = p.numbers, p.wide
    subtract_product(x, (p.step, wide), (p.inverse + count * wide, wide), (p.d + count, 0, 1), (1, wide, size - count), True)
    for i in range(p.counts[LIMITS]):
        p.product[i] -= t * sum_of_products(x, p.limits + i * wide, x, p.step, wide)
    for k in range(p.n):
        x[p.x + k] -= t * x[p.step + k]


def add(p: QuadraticProgram, one: Inequality, multiplier: float, length: float, size: int) -> None:
    """Add an inequality to the active ones: reflect the columns of J so that d₂ has one entry, of this length."""
    x, a, wide = p.numbers, p.active, p.wide
    count = a.size[0]
    for i in range(count):
        x[p.factor + i * wide + count] = x[p.d + i]
    first = x[p.d + count]
    end = -length if first > 0.0 else length
    x[p.factor + count * wide + count] = end
    x[p.d + count] = first - end
    squares = 2.0 * (length * length - first * end)  # of d₂ - (end, 0 ...)
    if squares > 0.0:
        subtract_product(
            x, (p.work, wide), (p.inverse + count * wide, wide), (p.d + count, 0, 1), (1, wide, size - count), True
        )
        for k in range(p.n):
            x[p.work + k] *= -2.0 / squares
        subtract_product(x, (p.inverse + count * wide, wide), (p.work, 0), (p.d + count, 1, 0), (size - count, wide, 1))
    a.kind[count], a.which[count], a.side[count] = one.kind, one.which, one.side
    a.cosine[count], a.sine[count], a.multiplier[count] = one.cosine, one.sine, multiplier
    a.size[0] = count + 1


def drop(p: QuadraticProgram, leaving: int) -> None:
    """Drop an active inequality; rotations make R triangular again, and turn the columns of J and d likewise."""
    x, a, wide = p.numbers, p.active, p.wide
    count = a.size[0] - 1
    for j in range(leaving, count):
        a.kind[j], a.which[j], a.side[j] = a.kind[j + 1], a.which[j + 1], a.side[j + 1]
        a.cosine[j], a.sine[j], a.multiplier[j] = a.cosine[j + 1], a.sine[j + 1], a.multiplier[j + 1]
        for i in range(j + 2):
            x[p.factor + i * wide + j] = x[p.factor + i * wide + j + 1]
    a.size[0] = count
    for j in range(leaving, count):
        up, down = p.factor + j * wide, p.factor + (j + 1) * wide
        length = sqrt(x[up + j] * x[up + j] + x[down + j] * x[down + j])
        c, s = x[up + j] / length, x[down + j] / length
        rotate(p, up + j, down + j, count - j, (c, s))
        rotate(p, p.inverse + j * wide, p.inverse + (j + 1) * wide, p.n, (c, s))
        x[p.d + j], x[p.d + j + 1] = c * x[p.d + j] + s * x[p.d + j + 1], c * x[p.d + j + 1] - s * x[p.d + j]


def rotate(p: QuadraticProgram, up: int, down: int, length: int, by: tuple[float, float]) -> None:
    """Rotate two rows."""
    x, (c, s) = p.numbers, by
    for k in range(length):
        x[up + k], x[down + k] = c * x[up + k] + s * x[down + k], c * x[down + k] - s * x[up + k]


def solve(p: QuadraticProgram, begin: int) -> int:
    """Solve a program from the start: see `minimize`."""
    p.counts[STEPS] = 0
    if begin == 0:
        p.counts[RANK] = 0
    return minimize(p, begin)
