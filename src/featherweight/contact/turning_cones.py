"""Elliptic friction cones of contacts with friction against spinning and rolling, as in MuJoCo.

One cone bounds all friction of a contact, along its tangents, about its normal and about its tangents:

    sum over j of (f_j / mu_j)² <= f_n²

Without compliance, A leaves the velocities w = A f + b. Springs and dampers of compliance R, where R_j mu_j² is the same for
all j, respond with the impulses f(w) that minimize f R f / 2 + w f over the cone. This function has a closed form, and so has
its derivative -G. Rows with bounds respond in the same way. The solution f = f(A f + b) minimizes the convex function

    λ A λ / 2 + s(A λ + b)        with the derivative -f of s

of λ. Newton's method finds it, (1 + G A) Δ = f - λ, with a line search: MuJoCo's method for accelerations (chapter Computation
of its documentation), formulated for impulses.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..array_types import Integers, Matrix, Vector
from ..engine.loops.kernels import aligned_numbers
from .elimination import numbers_of_equations, solve_partly_symmetric, stride_of
from .laws import Problem

MOST_STEPS, MOST_TRIALS = 60, 40
SLOPE = 1e-3  # allowed ratio of the final to the first slope of a line search
LEAST = 1e-15  # [m/s per N s] least compliance
SMALL = 1e-3  # compliance relative to the diagonal of A below which it does not measure errors of velocities
INSIDE = 1.0 + 1e-12  # squared radius of a cone, with rounding errors
DIRECTIONS = 6


class TurningWork(NamedTuple):
    """Workspace for problems with at most m unknowns, and the rows of spinning and rolling of their contacts."""

    turning: Integers  # (contacts,) index of the three rows after those of contacts for spinning and rolling, or -1
    friction: Matrix  # (contacts, 3) [m] against spinning, and rolling about both tangents
    numbers: Vector  # (5 m,)
    answer: Matrix  # (6, 6) G of a contact
    scaled: Vector  # (6,)
    matrix: Vector
    reciprocal: Vector
    step: Vector  # (m,) step of the rows of one island
    island: Integers  # (m,) island of each row
    rows: Integers  # (m,) rows of one island
    place: Integers  # (m,) index of each row in its island
    rest: Integers  # (m,) rows without an island so far


def turning_work(size: int) -> TurningWork:
    """Return workspace for `size` unknowns."""
    numbers, answer, scaled = np.empty(5 * size), np.empty((DIRECTIONS, DIRECTIONS)), np.empty(DIRECTIONS)
    island, rows, place, rest = np.empty((4, size), np.int64)
    return TurningWork(
        np.full(size, -1), np.zeros((size, 3)), numbers, answer, scaled, aligned_numbers(numbers_of_equations(size)),
        np.empty(size), np.empty(size), island, rows, place, rest,
    )  # fmt: skip


def solve_turning(problem: Problem, impulses: Vector, tolerance: float, work: TurningWork) -> tuple[float, int]:
    """Replace impulses by the solution; return the residual [m/s] and the number of steps, of the island with the greatest.

    Rows that A does not couple are solved separately.
    """
    worst, most = 0.0, 0
    for island in range(find_islands(problem, work)):
        count = 0
        for i in range(len(impulses)):
            if work.island[i] == island:
                work.rows[count], work.place[i] = i, count
                count += 1
        residual, steps = solve_island(problem, impulses, tolerance, work.rows[:count], work)
        worst, most = max(worst, residual), max(most, steps)
    return worst, most


def find_islands(problem: Problem, work: TurningWork) -> int:
    """Write the island of each row; return their number. All rows of a contact are in one island."""
    m, k, count, waiting, owner, rest = len(problem.b), len(problem.mu), 0, work.rows, work.place, work.rest
    for i in range(m):
        rest[i], owner[i] = i, i // 3 if i < 3 * k else -1
    for c in range(k):
        for l in range(3, 6 if work.turning[c] >= 0 else 3):
            owner[row_of(c, l, k, work.turning)] = c
    left = m
    while left > 0:
        left -= 1
        waiting[0], size, done = rest[left], 1, 0
        while done < size:
            row, at = waiting[done], 0
            work.island[row] = count
            done += 1
            while at < left:
                i = rest[at]
                if problem.A[row, i] != 0.0 or (owner[row] >= 0 and owner[i] == owner[row]):
                    left -= 1
                    rest[at], waiting[size] = rest[left], i
                    size += 1
                else:
                    at += 1
        count += 1
    return count


def solve_island(problem: Problem, impulses: Vector, tolerance: float, rows: Integers, work: TurningWork) -> tuple[float, int]:
    """Change impulses of an island to the solution; return the residual [m/s] and the number of steps."""
    m = len(impulses)
    w, f, step, change, left = (
        work.numbers[:m], work.numbers[m : 2 * m], work.numbers[2 * m : 3 * m], work.numbers[3 * m : 4 * m],
        work.numbers[4 * m : 5 * m],
    )  # fmt: skip
    write_velocities(problem, impulses, rows, w)
    for i in rows:
        w[i] += problem.b[i]
    residual = np.inf
    for count in range(MOST_STEPS):
        write_answers(problem, w, rows, f, work)
        for i in rows:
            left[i] = f[i] - impulses[i]
        residual = misfit(problem, impulses, left, rows, work) if count == 0 else np.inf
        if residual <= tolerance:
            return residual, 0
        write_velocities(problem, left, rows, change)
        residual = 0.0
        for i in rows:
            residual = max(residual, abs(change[i]))
        if not residual > tolerance or count == MOST_STEPS - 1:
            break
        write_equations(problem, w, left, rows, work)
        solve_partly_symmetric(work.matrix, len(rows), 0, work.reciprocal, work.step)
        for i in rows:
            step[i] = work.step[work.place[i]]
        write_velocities(problem, step, rows, change)
        if not slope_at(problem, (impulses, w, step, change), 0.0, rows, f, work) < 0.0:  # a rounding error
            for i in rows:
                step[i] = left[i]
            write_velocities(problem, step, rows, change)
        length = length_of_step(problem, (impulses, w, step, change), rows, f, work)
        for i in rows:
            impulses[i] += length * step[i]
            w[i] += length * change[i]
    for i in rows:
        impulses[i] = f[i]
    return residual, count


def misfit(problem: Problem, impulses: Vector, left: Vector, rows: Integers, work: TurningWork) -> float:
    """Return by how much [m/s] velocities miss those that correspond to the impulses of an island.

    `left` is the difference between responses and impulses. The result is infinite for impulses outside of their cones or
    bounds.
    """
    k, worst = len(problem.mu), 0.0
    for which in rows:
        row = int(which)
        worst = max(worst, abs(left[row]) * max(problem.R[row], SMALL * problem.A[row, row]))
        if row < 3 * k and row % 3 == 0:
            c, rubbing = row // 3, 0.0
            for l in range(1, 6 if work.turning[c] >= 0 else 3):
                mu, part = friction_of(problem, c, l, work), impulses[row_of(c, l, k, work.turning)]
                rubbing += (part / mu) ** 2 if mu > 0.0 else np.inf if part != 0.0 else 0.0
            if not (impulses[row] >= 0.0 and rubbing <= impulses[row] * impulses[row] * INSIDE):
                return np.inf
        bounded = row >= 3 * (k + problem.turning)
        if bounded and not problem.lower[row - 3 * k] <= impulses[row] <= problem.upper[row - 3 * k]:
            return np.inf
    return worst


def length_of_step(
    problem: Problem, line: tuple[Vector, Vector, Vector, Vector], rows: Integers, f: Vector, work: TurningWork
) -> float:
    """Return the position along a step at which the convex function is least; its slope grows along the step."""
    first = slope_at(problem, line, 0.0, rows, f, work)
    low, high, below, above = 0.0, 1.0, first, slope_at(problem, line, 1.0, rows, f, work)
    for _ in range(MOST_TRIALS):
        if not above < 0.0:
            break
        low, below, high = high, above, 2.0 * high
        above = slope_at(problem, line, high, rows, f, work)
    middle = high
    for _ in range(MOST_TRIALS):
        if not above > -SLOPE * first:
            return middle
        middle = low + (high - low) * min(max(below / (below - above), 0.05), 0.95)
        there = slope_at(problem, line, middle, rows, f, work)
        if abs(there) <= -SLOPE * first:
            return middle
        if there < 0.0:
            low, below = middle, there
        else:
            high, above = middle, there
    return middle


def slope_at(
    problem: Problem, line: tuple[Vector, Vector, Vector, Vector], t: float, rows: Integers, f: Vector, work: TurningWork
) -> float:
    """Return the slope of the convex function along a step, of impulses, velocities, and their changes by the step."""
    impulses, w, step, change = line
    ahead, total = work.reciprocal, 0.0
    for i in rows:
        ahead[i] = w[i] + t * change[i]
    write_answers(problem, ahead, rows, f, work)
    for i in rows:
        total += change[i] * (impulses[i] + t * step[i] - f[i])
    return total


def write_velocities(problem: Problem, f: Vector, rows: Integers, w: Vector) -> None:
    """Write A f, without compliance, of the rows of an island."""
    for i in rows:
        total, row = -problem.R[i] * f[i], problem.A[i]
        for j in rows:
            total += row[j] * f[j]
        w[i] = total


def write_answers(problem: Problem, w: Vector, rows: Integers, f: Vector, work: TurningWork) -> None:
    """Write the impulses f(w) of an island."""
    k = len(problem.mu)
    for i in rows:
        if i < 3 * k:
            if i % 3 == 0:
                write_answer(problem, w, f, int(i) // 3, work, False)
        elif i >= 3 * (k + problem.turning):
            f[i] = min(max(-w[i] / max(problem.R[i], LEAST), problem.lower[i - 3 * k]), problem.upper[i - 3 * k])


def row_of(c: int, l: int, k: int, turning: Integers) -> int:
    """Return the row of a direction of contact c: normal, two tangents, spinning, and rolling about both tangents."""
    return 3 * c + l if l < 3 else 3 * (k + turning[c]) + l - 3


def friction_of(problem: Problem, c: int, l: int, work: TurningWork) -> float:
    """Return the friction of a contact in a direction; 0 for none."""
    if l < 3:
        return problem.mu[c]  # type: ignore[no-any-return]
    return work.friction[c, l - 3] if problem.mu[c] > 0.0 else 0.0


def write_answer(problem: Problem, w: Vector, f: Vector, c: int, work: TurningWork, derivative: bool) -> None:
    """Write the impulses of a contact, and with `derivative` also G to `work.answer`.

    In units of f_j / mu_j, the cone is round, and all friction has the same compliance.
    """
    k, e, G = len(problem.mu), work.scaled, work.answer
    count = 6 if work.turning[c] >= 0 else 3
    normal, R, rubbing = w[3 * c], max(problem.R[3 * c], LEAST), 0.0
    for l in range(1, count):
        e[l] = friction_of(problem, c, l, work) * w[row_of(c, l, k, work.turning)]
        rubbing += e[l] * e[l]
    rubbing = sqrt(rubbing)
    along = max(problem.R[3 * c + 1] * problem.mu[c] * problem.mu[c], LEAST)
    push = max(-normal / R, 0.0)
    sticks = rubbing <= along * push
    if not sticks:
        push = max((rubbing - normal) / (R + along), 0.0)
    f[3 * c] = push
    for l in range(1, count):
        part = -1.0 / along if sticks else -push / rubbing
        f[row_of(c, l, k, work.turning)] = friction_of(problem, c, l, work) * part * e[l]
    if not derivative:
        return
    for i in range(DIRECTIONS):
        for j in range(DIRECTIONS):
            G[i, j] = 0.0
    if not push > 0.0:
        return
    if sticks:
        G[0, 0] = 1.0 / R
        for l in range(1, count):
            G[l, l] = friction_of(problem, c, l, work) ** 2 / along
        return
    G[0, 0] = 1.0 / (R + along)
    for i in range(1, count):
        first = friction_of(problem, c, i, work)
        G[0, i] = G[i, 0] = -first * e[i] / rubbing / (R + along)
        for j in range(1, count):
            both = e[i] * e[j] / (rubbing * rubbing)
            second = (1.0 if i == j else 0.0) - both
            G[i, j] = first * friction_of(problem, c, j, work) * (both / (R + along) + push / rubbing * second)


def write_equations(problem: Problem, w: Vector, left: Vector, rows: Integers, work: TurningWork) -> None:
    """Write 1 + G A of an island, with `left` as its right-hand side."""
    n, k, matrix = len(rows), len(problem.mu), work.matrix
    stride = stride_of(n)
    for i in range(n * stride):
        matrix[i] = 0.0
    for which in rows:
        row = int(which)
        if row < 3 * k and row % 3 == 0:
            c = row // 3
            count = 6 if work.turning[c] >= 0 else 3
            write_answer(problem, w, work.reciprocal, c, work, True)
            for i in range(count):
                at = work.place[row_of(c, i, k, work.turning)] * stride
                for j in range(count):
                    if work.answer[i, j] != 0.0:
                        add_row(problem, row_of(c, j, k, work.turning), work.answer[i, j], at, rows, work)
        elif row >= 3 * (k + problem.turning):
            f = -w[row] / max(problem.R[row], LEAST)
            if problem.lower[row - 3 * k] < f < problem.upper[row - 3 * k]:
                add_row(problem, row, 1.0 / max(problem.R[row], LEAST), work.place[row] * stride, rows, work)
    for i in range(n):
        matrix[i * stride + i] += 1.0
        matrix[i * stride + n] = left[rows[i]]


def add_row(problem: Problem, row: int, factor: float, at: int, rows: Integers, work: TurningWork) -> None:
    """Add a row of A without compliance, times a factor, to the row of the equations that starts at `at`."""
    for j in range(len(rows)):
        work.matrix[at + j] += factor * problem.A[row, rows[j]]
    work.matrix[at + work.place[row]] -= factor * problem.R[row]
