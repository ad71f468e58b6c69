"""The backward pass of differential dynamic programming: the Riccati recursion, which gives the feedback at each knot.

A knot has changes z = (dq, dv, du) and the next one x' = (dq', dv'), where

    dv' = D z + gap_v        dq' = A dq + S dv' + gap_q

A is the identity and S is h times the identity, except for joints on curved manifolds (free and ball joints), each of which
has a separate block. With the value of the next knot, V(x') = ½ x'ᵀ V x' + gᵀ x', as a function of (dq, dv')

    W_vv = Sᵀ V_qq S + Sᵀ V_qv + V_vq S + V_vv        W_qv = Aᵀ (V_qq S + V_qv)        W_qq = Aᵀ V_qq A

the value of this knot is a quadratic function of z, from which du is eliminated, the last control first:

    Q = H + Dᵀ W_vv D + E W_qv D + (E W_qv D)ᵀ + E W_qq Eᵀ,    E z = dq

With the Runge-Kutta method, all of dq' is a function of z. D then has rows for dq' - dq before those of dv', A is the identity,
and S is the identity for those rows.

If steps are free, the step (its square root, relative to the longest) is the first control, s, and D has a row ds' = ds after
those of q' and v'. At the first knot of a phase s is eliminated like other controls, but stays within bounds. At a knot that
shares the step of the knot before, s is one more state.

Only the lower triangle of Q is computed, and products with identities are skipped. (Mayne 1966; Tassa, Erez and Todorov 2012;
bounds: Tassa, Mansard and Todorov 2014.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import IntegerMatrix, Vector
from ..contact.factors.branch_elimination import subtract_rows
from ..contact.factors.branches import padded
from ..engine.loops.kernels import LANES, TILE, aligned_numbers, subtract_multiples, subtract_product

MOST = 6  # greatest size of a curved block
KNOTS_AT_ONCE = 32  # knots whose derivatives are computed in one call


class Riccati(NamedTuple):
    """Sizes, and memory for one knot. All matrices lie in `numbers`; their rows are padded to whole vectors."""

    n: int  # velocities
    m: int  # controls, with the step if it is free
    free: int  # 1 if steps are free, otherwise 0
    rows: int  # of D: n, or 2 n + free if the next configuration is a function of its own
    short: int  # padded n: row stride of matrices with n columns
    wide: int  # padded 2 n + free
    long: int  # padded 2 n + m
    tall: int  # padded rows
    numbers: Vector  # first D (rows, 2 n + m) of KNOTS_AT_ONCE knots
    value: int  # V (2 n + free, 2 n + free)
    inner: int  # W_vv (rows, rows)
    mixed: int  # W_qv (n, rows)
    outer: int  # W_qq (n, n)
    weighted: int  # -(W_vv D + W_qvᵀ E) (rows, 2 n + m)
    doubled: int  # -(W_vv D + 2 W_qvᵀ E), columns of q (rows, n)
    whole: int  # Q (2 n + m, 2 n + m)
    scaled: int  # rows of du in Q over their pivots (m, 2 n + m)
    gains: int  # (m, 2 n + free)
    turned: int  # rows during the products with a block
    curved: int  # -A and -S of each curved block
    gradient: int  # (2 n + m,) of Q
    slope: Vector  # (2 n + m,) the same, as an array
    ahead: Vector  # (n + rows,) g, then the gradient as a function of (dq, dv')
    blocks: IntegerMatrix  # (k, 2) first velocity and size of each curved block
    promised: Vector  # (2,) predicted decrease by the changes of all controls, and changes of the value by gaps


def riccati(n: int, m: int, rows: int, blocks: list[tuple[int, int]], free: int = 0) -> Riccati:
    """Return memory for n velocities, m controls and so many rows of D; the first control is the step if `free` is 1."""
    short, wide, tall = padded(n), padded(2 * n + free), padded(rows)
    long = max(padded(2 * n + m), wide)
    sizes = (
        (2 * n + free) * wide, rows * tall, n * tall, n * short, rows * long, rows * short, (2 * n + m) * long, m * long,
        m * wide, 2 * MOST * wide, 2 * sum(size * size for _, size in blocks), long,
    )  # fmt: skip
    begins = [int(x) for x in np.cumsum([KNOTS_AT_ONCE * rows * long, *sizes])]
    numbers = aligned_numbers(begins[-1] + 8)
    value, inner, mixed, outer, weighted, doubled, whole, scaled, gains, turned, curved, gradient, _ = begins
    slope = numbers[gradient : gradient + 2 * n + m]
    tables = slope, np.zeros(n + rows), np.array(blocks, np.int64).reshape(-1, 2), np.zeros(2)
    places = value, inner, mixed, outer, weighted, doubled, whole, scaled, gains, turned, curved, gradient
    return Riccati(n, m, free, rows, short, wide, long, tall, numbers, *places, *tables)


class KnotSlopes(NamedTuple):
    """The derivatives of one knot."""

    number: int  # index among the knots whose D is known
    curved: Vector  # A and S of each curved block
    gradient: Vector  # (2 n + m,) gradient of the cost
    hessian: Vector  # entries of H
    places: IntegerMatrix  # (entries, 2) their rows and columns
    h: float  # [s]
    tied: int = 0  # 1 if the step is that of the knot before, otherwise 0
    least: float = 0.0  # least change of the step if it is free
    most: float = 0.0


def begin_value(r: Riccati, gradient: Vector, hessian: Vector, places: IntegerMatrix) -> None:
    """Set the value of the last knot to its cost."""
    x, states = r.numbers, 2 * r.n + r.free
    for i in range(states * r.wide):
        x[r.value + i] = 0.0
    for k in range(len(places)):
        i, j = places[k, 0], places[k, 1]
        x[r.value + i * r.wide + j] = hessian[k]
        x[r.value + j * r.wide + i] = hessian[k]
    for i in range(states):
        r.slope[i] = gradient[i]
    r.promised[0] = 0.0
    r.promised[1] = 0.0


def add_gap(r: Riccati, gap: Vector) -> None:
    """Change the slope of the value by a gap (2 n + free) before its knot."""
    x, states = r.numbers, 2 * r.n + r.free
    before = after = 0.0
    for i in range(states):
        before += gap[i] * r.slope[i]
    for i in range(states):
        at, total = r.value + i * r.wide, 0.0
        for j in range(states):
            total += x[at + j] * gap[j]
        r.slope[i] += total
        after += gap[i] * total
    r.promised[1] += before + 0.5 * after


def step_back(r: Riccati, knot: KnotSlopes, damping: float, feedback: Vector, k: Vector) -> bool:
    """Write feedback -Kᵀ (2 n + free, m), with padded rows, k (m), and the value of this knot.

    Returns whether the value is convex in the controls.
    """
    write_value_of_motion(r, knot)
    write_curvature(r, knot)
    write_gradient(r, knot)
    if not eliminate_controls(r, knot, damping):
        return False
    write_feedback(r, knot, feedback, k)
    write_value(r, knot)
    return True


def step_costate_back(r: Riccati, knot: KnotSlopes, costate: Vector) -> None:
    """Replace the costate, the gradient of the cost by the state (2 n + free) after a knot, by that before it."""
    x, n, states, motion = r.numbers, r.n, 2 * r.n + knot.tied, knot.number * r.rows * r.long
    for i in range(r.rows):
        r.ahead[n + i] = costate[i]
    for i in range(n):
        r.ahead[i] = costate[i]
    if r.rows == n:
        for i in range(n):
            r.ahead[n + i] = costate[n + i] + knot.h * costate[i]
        at = 0
        for b in range(len(r.blocks)):
            first, size = r.blocks[b, 0], r.blocks[b, 1]
            for c in range(size):
                i = first + c
                r.ahead[i], r.ahead[n + i] = 0.0, costate[n + i]
                for k in range(size):
                    r.ahead[i] += knot.curved[at + k * size + c] * costate[first + k]
                    r.ahead[n + i] += knot.curved[at + (size + k) * size + c] * costate[first + k]
            at += 2 * size * size
    for j in range(len(costate)):
        costate[j] = 0.0
    for j in range(states):
        costate[j] = knot.gradient[j]
        if j < n:
            costate[j] += r.ahead[j]
        for i in range(r.rows):
            costate[j] += x[motion + i * r.long + j] * r.ahead[n + i]


def write_value_of_motion(r: Riccati, knot: KnotSlopes) -> None:
    """Write W and the slope of the value as functions of (dq, dv')."""
    x, n, short, h = r.numbers, r.n, r.short, knot.h
    if r.rows > n:
        copy_value(r)
        return
    for i in range(n):
        q, v = r.value + i * r.wide, r.value + (n + i) * r.wide
        subtract_multiples(x, r.mixed + i * short, q, n, short, (-h, -1.0), True)
        subtract_multiples(x, r.inner + i * short, v, n, short, (-h, -1.0), True)
        subtract_multiples(x, r.outer + i * short, q, n, short, (-1.0,), True)
    for i in range(r.gradient - r.curved):
        x[r.curved + i] = -knot.curved[i]
    turn_columns(r)
    for i in range(n):
        subtract_multiples(x, r.inner + i * short, r.mixed + i * short, short, short, (-h,))
        r.ahead[i] = r.slope[i]
        r.ahead[n + i] = r.slope[n + i] + h * r.slope[i]
    turn_rows(r, knot)


def copy_value(r: Riccati) -> None:
    """Write W and the slope of the value as functions of dq, and of dq' - dq, dv' and the step, if D has rows for these."""
    x, n = r.numbers, r.n
    for i in range(r.rows):
        row = r.value + i * r.wide
        for j in range(r.rows):
            x[r.inner + i * r.tall + j] = x[row + j]
        r.ahead[n + i] = r.slope[i]
    for i in range(n):
        row = r.value + i * r.wide
        for j in range(r.rows):
            x[r.mixed + i * r.tall + j] = x[row + j]
        for j in range(n):
            x[r.outer + i * r.short + j] = x[row + j]
        r.ahead[i] = r.slope[i]


def turn_columns(r: Riccati) -> None:
    """Write columns of curved blocks in V_qq S, V_vq S and V_qq A, from rows of V, which is symmetric."""
    x, n, wide, A = r.numbers, r.n, r.wide, r.curved
    by_step, by_turn = r.turned, r.turned + MOST * wide
    for b in range(len(r.blocks)):
        first, size = r.blocks[b, 0], r.blocks[b, 1]
        S = A + size * size
        rows = r.value + first * wide, wide
        subtract_product(x, (by_step, wide), rows, (S, 1, size), (size, wide, size), True)
        subtract_product(x, (by_turn, wide), rows, (A, 1, size), (size, r.short, size), True)
        for c in range(size):
            step, turn = by_step + c * wide, by_turn + c * wide
            for i in range(n):
                value, speed, column = r.value + i * wide, r.value + (n + i) * wide, i * r.short + first + c
                x[r.mixed + column] = x[step + i] + x[value + n + first + c]
                x[r.inner + column] = x[step + n + i] + x[speed + n + first + c]
                x[r.outer + column] = x[turn + i]
        A += 2 * size * size


def turn_rows(r: Riccati, knot: KnotSlopes) -> None:
    """Write rows of curved blocks: Sᵀ (V_qq S + V_qv) in W_vv, Aᵀ times W_qv and W_qq, and the slope."""
    x, n, short, h, A = r.numbers, r.n, r.short, knot.h, r.curved
    for b in range(len(r.blocks)):
        first, size = r.blocks[b, 0], r.blocks[b, 1]
        S = A + size * size
        w, mixed = r.inner + first * short, r.mixed + first * short
        for c in range(size):
            subtract_multiples(x, w + c * short, mixed + c * short, short, short, (h,))
        subtract_product(x, (w, short), (mixed, short), (S, 1, size), (size, short, size))
        for c in range(size):
            of_step = of_turn = 0.0
            for s in range(size):
                of_step -= x[S + s * size + c] * r.slope[first + s]
                of_turn -= x[A + s * size + c] * r.slope[first + s]
            r.ahead[n + first + c] += of_step - h * r.slope[first + c]
            r.ahead[first + c] = of_turn
        for rows in (mixed, r.outer + first * short):
            for i in range(size * short):
                x[r.turned + i] = x[rows + i]
            subtract_product(x, (rows, short), (r.turned, short), (A, 1, size), (size, short, size), True)
        A += 2 * size * size


def write_curvature(r: Riccati, knot: KnotSlopes) -> None:
    """Write the lower triangle of Q."""
    x, n, rows, short, long, tall = r.numbers, r.n, r.rows, r.short, r.long, r.tall
    columns, motion = 2 * n + r.m, knot.number * rows * long
    for i in range(rows):
        G = r.weighted + i * long
        for j in range(n):
            x[G + j] = -x[r.mixed + j * tall + i]
        for j in range(n, long):
            x[G + j] = 0.0
    subtract_product(x, (r.weighted, long), (motion, long), (r.inner, tall, 1), (rows, long, rows))
    for i in range(rows):
        G = r.weighted + i * long
        for j in range(n):
            x[r.doubled + i * short + j] = x[G + j] - x[r.mixed + j * tall + i]
    subtract_product(x, (r.whole, long), (r.doubled, short), (motion, 1, long), (n, short, rows), True)
    for a in range(n):
        row, outer = r.whole + a * long, r.outer + a * short
        for b in range(a):
            x[row + b] = 0.5 * (x[row + b] + x[r.whole + b * long + a]) + x[outer + b]
        x[row + a] += x[outer + a]
    for a in range(n, columns, TILE):
        count = min(TILE, columns - a)
        sizes = count, padded(a + count), rows
        subtract_product(x, (r.whole + a * long, long), (r.weighted, long), (motion + a, 1, long), sizes, True)
    for k in range(len(knot.places)):
        x[r.whole + knot.places[k, 0] * long + knot.places[k, 1]] += knot.hessian[k]


def write_gradient(r: Riccati, knot: KnotSlopes) -> None:
    """Write the gradient of Q."""
    n, columns = r.n, 2 * r.n + r.m
    for j in range(columns):
        r.slope[j] = knot.gradient[j]
    for j in range(n):
        r.slope[j] += r.ahead[j]
    for i in range(r.rows):
        r.numbers[r.turned + i] = -r.ahead[n + i]
    D = knot.number * r.rows * r.long, r.long
    subtract_product(r.numbers, (r.gradient, 0), D, (r.turned, 0, 1), (1, padded(columns), r.rows))


def eliminate_controls(r: Riccati, knot: KnotSlopes, damping: float) -> bool:
    """Eliminate the controls from their rows, the last first; return whether all pivots are positive."""
    x, n, long, states = r.numbers, r.n, r.long, 2 * r.n + knot.tied
    last = 2 * n + r.m - 1
    for p in range(last, states - 1, -1):
        row, length = r.whole + p * long, padded(p + 1)
        later = r.whole + last * long, -long
        subtract_product(x, (row, 0), later, (r.scaled + (last - states) * long + p, 0, -long), (1, length, last - p))
        x[row + p] += damping
        if r.free > 0 and p == 2 * n:
            hold_step(r, knot, row)
        pivot = x[row + p]
        if not pivot > 0.0:
            return False
        by = 1.0 / pivot
        scaled = r.scaled + (p - states) * long
        subtract_multiples(x, scaled, row, long, length, (-by,), True)
        slope = by * r.slope[p]
        r.promised[0] -= 0.5 * slope * r.slope[p]
        most = p // LANES * LANES
        subtract_multiples(x, r.gradient, row, long, most, (slope,))
        for j in range(most, p):
            r.slope[j] -= slope * x[row + j]
    return True


def hold_step(r: Riccati, knot: KnotSlopes, row: int) -> None:
    """Replace the row of a best step that is out of bounds by that of a change to the bound, without feedback."""
    x, p = r.numbers, 2 * r.n
    pivot, slope = x[row + p], r.slope[p]
    change = knot.least
    if knot.least < knot.most:
        if not pivot > 0.0 or knot.least <= -slope / pivot <= knot.most:
            return
        change = knot.least if -slope / pivot < knot.least else knot.most
    r.promised[0] += change * (slope + 0.5 * pivot * change) + 0.5 * change * change
    for j in range(p):
        r.slope[j] += change * x[row + j]
        x[row + j] = 0.0
    x[row + p], r.slope[p] = 1.0, -change


def write_feedback(r: Riccati, knot: KnotSlopes, feedback: Vector, k: Vector) -> None:
    """Write controls as functions of the state, by substitution, the first control first."""
    x, stride, tied, states = r.numbers, padded(r.m), knot.tied, 2 * r.n + knot.tied
    for p in range(r.m - tied):
        row, gain = r.whole + (states + p) * r.long, r.gains + p * r.wide
        by = 1.0 / x[row + states + p]
        subtract_multiples(x, gain, row, r.long, r.wide, (-1.0,), True)
        subtract_rows(x, gain, r.gains, r.wide, r.wide, (row + states, 1, p))
        total = r.slope[states + p]
        for b in range(p):
            total += x[row + states + b] * k[tied + b]
        k[tied + p] = -by * total
        for j in range(states):
            x[gain + j] *= by
            feedback[j * stride + tied + p] = x[gain + j]


def write_value(r: Riccati, knot: KnotSlopes) -> None:
    """Write V of this knot: the rest of Q after elimination of the controls."""
    x, states = r.numbers, 2 * r.n + knot.tied
    for b in range(0, states, TILE):
        count = min(TILE, states - b)
        eliminated, sizes = (r.whole + states * r.long, r.long), (count, padded(b + count), r.m - knot.tied)
        subtract_product(x, (r.whole + b * r.long, r.long), eliminated, (r.scaled + b, 1, r.long), sizes)
    for b in range(states):
        row = r.whole + b * r.long
        value = r.value + b * r.wide
        subtract_multiples(x, value, row, r.long, padded(b + 1), (-1.0,), True)
        for j in range(b):
            x[r.value + j * r.wide + b] = x[row + j]
    for j in range(states, 2 * r.n + r.free):  # the step of the knot before does not matter
        r.slope[j] = 0.0
        for b in range(2 * r.n + r.free):
            x[r.value + j * r.wide + b] = 0.0
            x[r.value + b * r.wide + j] = 0.0
