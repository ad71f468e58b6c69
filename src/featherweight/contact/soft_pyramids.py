"""Compliant friction pyramids, by Newton's method in velocities: as many unknowns as bodies have velocities.

The impulse l along an edge e of a pyramid follows from the velocity v = B w + b at its contact, and so does that of a row with
bounds, because each has its own compliance R' > 0 (see `edges`):

    l(v) = max(0, -e·v / R')        f(v) = sum of e l        w = Bᵀ f

This w is the minimum of a convex function (the primal problem of MuJoCo, Todorov 2014):

    1/2 |w|² + sum of R' l² / 2        with the gradient  w - Bᵀ f(v)        and the Hessian  1 + Bᵀ D B,  D = sum of e eᵀ / R'

The sum of D is over the edges that push. The function is quadratic while these do not change, so that few steps suffice. A step
has the form of `block_equations`, with M = 1, P = D, r = f(v) - f and without R; a line search follows the slope to its zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ..array_types import Matrix, Vector
from .block_equations import copy_numbers, write_step
from .laws import Problem
from .newton import NewtonWork, write_rho
from .row_factor import RowFactor, sum_of_squares, write_product_of_factor, write_transposed_product

Line = TypeVar("Line")
EDGES = 4  # edges of a contact
STIFF = 1e-5  # compliance relative to entries of A below which velocities determine impulses to too few digits
STEPS, TRIALS = 60, 20
PATIENCE, SMALLER = 12, 0.5  # after this many steps without a reduction by this factor, the residual counts as a rounding error
FLAT = 0.01  # allowed ratio of the slopes at the end and the start of a step


def is_soft(B: RowFactor, k: int, R: Vector) -> bool:
    """Return whether k contacts and further rows are all compliant enough for velocities to determine their impulses."""
    soft = True
    for c in range(len(B.at)):
        i = 3 * c if c < k else 2 * k + c
        soft = soft and bool(R[i] > STIFF * sum_of_squares(B, c, 0))
    return soft


def solve_soft_pyramids(problem: Problem, f: Vector, tolerance: float, zeros: Vector, work: NewtonWork) -> tuple[float, int]:
    """Replace the impulses f by the solution, by the factor of A.

    Return the residual as a velocity, and the number of steps.
    """
    k, m, equations = len(problem.mu), len(f), work.equations
    rigid = problem._replace(R=zeros[:m])
    write_rho(problem, work.rho)
    steps = stalled = 0
    least = marked = residual = write_missing(problem, f, work)
    copy_numbers(f, work.last[:m])
    while residual > tolerance and steps < STEPS and stalled < PATIENCE:
        for c in range(m - 2 * k):
            for i in range(3):
                for j in range(3):
                    equations.M[c, i, j] = 1.0 if i == j else 0.0
        write_step(rigid, equations)
        downhill = 0.0
        for i in range(m):
            downhill += equations.right[i] * equations.moved[i]
        part = part_of_step(slope_after, (problem, f, work), downhill) if downhill > 0.0 else 1.0  # otherwise a rounding error
        for i in range(m):
            f[i] += part * equations.step[i]
        residual = write_missing(problem, f, work)
        steps, stalled = steps + 1, stalled + 1
        if residual < least:
            least = residual
            copy_numbers(f, work.last[:m])
        if residual < SMALLER * marked:
            marked, stalled = residual, 0
    if residual > least:
        copy_numbers(work.last, f)
        write_missing(problem, f, work)
    take_bounds(problem, f, work)
    return least, steps


def take_bounds(problem: Problem, f: Vector, work: NewtonWork) -> None:
    """Replace f by f(v) where that is zero or at a bound.

    Elsewhere f is more accurate, because f(v) divides errors of v by R'.
    """
    right, D, k = work.equations.right, work.equations.P, len(problem.mu)
    for c in range(len(f) - 2 * k):
        i, lines = (3 * c, 3) if c < k else (2 * k + c, 1)
        if D[c, 0, 0] == 0.0:
            for j in range(i, i + lines):
                f[j] += right[j]


def write_missing(problem: Problem, f: Vector, work: NewtonWork) -> float:
    """Write f(v) - f, and D; return the greatest entry as a velocity, infinity if any is NaN."""
    equations, velocity, k, m = work.equations, work.velocity, len(problem.mu), len(f)
    right, D, worst = equations.right, equations.P, 0.0
    write_transposed_product(problem.B, k, f, equations.sums)
    write_product_of_factor(problem.B, k, equations.sums, velocity)
    for c in range(m - 2 * k):
        i, lines = (3 * c, 3) if c < k else (2 * k + c, 1)
        for j in range(i, i + lines):
            velocity[j] += problem.b[j]
        if c < k:
            right[i], right[i + 1], right[i + 2] = answer(problem, c, (velocity[i], velocity[i + 1], velocity[i + 2]), D[c])
        else:
            right[i], D[c, 0, 0] = answer_of_row(problem, i, velocity[i])
        for j in range(i, i + lines):
            right[j] -= f[j]
            left = abs(right[j]) * work.rho[j]
            worst = max(worst, left) if left == left else np.inf
    return worst


def answer(problem: Problem, c: int, v: tuple[float, float, float], D: Matrix) -> tuple[float, float, float]:
    """Return the impulses of a contact at the velocity v, and write D."""
    mu, unit = problem.mu[c], 1.0 / (EDGES * problem.R[3 * c])
    x, y = mu * v[1], mu * v[2]
    first, second = max(-unit * (v[0] + x), 0.0), max(-unit * (v[0] - x), 0.0)
    third, fourth = max(-unit * (v[0] + y), 0.0), max(-unit * (v[0] - y), 0.0)
    a, b = (unit if first > 0.0 else 0.0), (unit if second > 0.0 else 0.0)
    g, h = (unit if third > 0.0 else 0.0), (unit if fourth > 0.0 else 0.0)
    D[0, 0] = a + b + g + h
    D[0, 1] = D[1, 0] = mu * (a - b)
    D[0, 2] = D[2, 0] = mu * (g - h)
    D[1, 1], D[2, 2] = mu * mu * (a + b), mu * mu * (g + h)
    D[1, 2] = D[2, 1] = 0.0
    return first + second + third + fourth, mu * (first - second), mu * (third - fourth)


def answer_of_row(problem: Problem, i: int, v: float) -> tuple[float, float]:
    """Return the impulse of row i with bounds at the velocity v, and D."""
    j = i - 3 * len(problem.mu)
    return answer_within(problem.lower[j], problem.upper[j], problem.R[i], v)


def answer_within(lower: float, upper: float, R: float, v: float) -> tuple[float, float]:
    """Return the impulse between two bounds of a row with compliance R at the velocity v, and D."""
    unit = 1.0 / R
    impulse = -unit * v
    if impulse <= lower:
        return lower, 0.0
    if impulse >= upper:
        return upper, 0.0
    return impulse, unit


def part_of_step(slope_after: Callable[[Line, float], tuple[float, float]], line: Line, downhill: float) -> float:
    """Return the part of a step at whose end the function has nearly zero slope; `downhill` is the slope at its start.

    `slope_after` returns the slope along the line after a part of the step, and its curvature.
    """
    part, low, high = 1.0, 0.0, np.inf
    for _ in range(TRIALS):
        slope, curvature = slope_after(line, part)
        if abs(slope) <= FLAT * downhill:
            break
        if slope < 0.0:
            low = part
        else:
            high = part
        following = part - slope / curvature
        if not low < following < high:
            following = 0.5 * (low + high) if high < np.inf else 2.0 * part
        part = following
    return part


def slope_after(line: tuple[Problem, Vector, NewtonWork], part: float) -> tuple[float, float]:
    """Return the slope of the function along a step after a part of it, and its curvature."""
    problem, f, work = line
    equations, velocity, k = work.equations, work.velocity, len(problem.mu)
    step, moved, D = equations.step, equations.moved, equations.P
    slope = curvature = 0.0
    for i in range(len(f)):
        slope += moved[i] * (f[i] + part * step[i])
        curvature += moved[i] * step[i]
    for c in range(len(f) - 2 * k):
        if c < k:
            i = 3 * c
            x, y, z = moved[i], moved[i + 1], moved[i + 2]
            there = velocity[i] + part * x, velocity[i + 1] + part * y, velocity[i + 2] + part * z
            normal, along, across = answer(problem, c, there, D[c])
            slope -= x * normal + y * along + z * across
            curvature += D[c, 0, 0] * x * x + 2.0 * x * (D[c, 0, 1] * y + D[c, 0, 2] * z)
            curvature += D[c, 1, 1] * y * y + D[c, 2, 2] * z * z
        else:
            i = 2 * k + c
            impulse, unit = answer_of_row(problem, i, velocity[i] + part * moved[i])
            slope -= moved[i] * impulse
            curvature += unit * moved[i] * moved[i]
    return slope, curvature
