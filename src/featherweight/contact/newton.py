"""Semismooth Newton steps for contact impulses.

The natural residual, as a velocity, of impulses f that leave the velocities u = A f + b:

    r(f) = rho (f - P(f - u/rho))              P the projection on what f may be: f_n >= 0, then |f_t| <= mu f_n; bounds
    r' = rho (1 - (1 - delta) P') + P' A       P' is block-diagonal: 0 open, 1 sticking, and in between sliding

rho is the greatest entry on the diagonal of A for each contact (Alart and Curnier 1991). Whether a contact is open, sticks or
slides follows from f - u/rho, so that resting contacts, for which r is linear, are solved in a step or two. Impulses of
redundant contacts are not unique, and contacts with gaps that differ cannot all stick: delta is the part of rho that yields
in a step (a proximal term: it is zero where steps come to rest). Smaller ones make far steps between the corners of a foot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.loops.array_types import Tensor, Vector
from .block_equations import (
    BlockEquations,
    block_equations,
    copy_numbers,
    place_of,
    write_product,
    write_step,
)
from .laws import Problem, project
from .row_factor import NO_BRANCHES, FactorSizes, sum_of_squares

PROXIMAL = 1e-6
LEAST_DAMPING, FIRST_DAMPING, MOST_DAMPING = 1e-6, 1e-3, 1e-2  # proximal terms of damped steps
LESS_DAMPING, MORE_DAMPING = 0.1, 100.0  # after a step that gains, and after one that does not


class NewtonWork(NamedTuple):
    """Room for Newton's method with at most m unknowns, of which the first 3 k are those of contacts."""

    rho: Vector  # (m,)
    velocity: Vector  # (m,) A f + b, of the last residual
    last: Vector  # (m,) impulses
    tried: Vector  # (m,)
    equations: BlockEquations  # its right side is r(f), and its P are P'


def newton_work(size: int, branches: FactorSizes = NO_BRANCHES) -> NewtonWork:
    """Room for so many unknowns."""
    rho, velocity, last, tried = np.empty((4, size))
    return NewtonWork(rho, velocity, last, tried, block_equations(size, branches))


def write_rho(problem: Problem, rho: Vector) -> None:
    """Write rho, in [m/s per N s] as entries of A."""
    k, m = len(problem.mu), len(problem.b)
    for i in range(m):
        if problem.factored:
            c, l = place_of(i, k)
            rho[i] = problem.R[i] + sum_of_squares(problem.B, c, l)
        else:
            rho[i] = problem.A[i, i]
    for c in range(k):
        most = max(rho[3 * c], rho[3 * c + 1], rho[3 * c + 2])
        rho[3 * c] = rho[3 * c + 1] = rho[3 * c + 2] = most
    for i in range(m):
        if not rho[i] > 0.0:
            rho[i] = 1.0


def write_residual(problem: Problem, f: Vector, work: NewtonWork) -> float:
    """Write r(f) and the blocks of P' to the equations; the greatest entry of r, infinity if any is NaN."""
    b, mu, lower, upper, rho = problem.b, problem.mu, problem.lower, problem.upper, work.rho
    residual, slope = work.equations.right, work.equations.P
    k, m = len(mu), len(f)
    worst = 0.0
    write_product(problem, f, work.equations, work.velocity[:m])
    for i in range(m):
        work.velocity[i] += b[i]
        residual[i] = f[i] - work.velocity[i] / rho[i]
    for c in range(k):
        project(residual, mu[c], problem.pyramid, 3 * c, slope[c])
    for i in range(3 * k, m):
        s, aim = i - 2 * k, residual[i]
        residual[i] = min(max(aim, lower[i - 3 * k]), upper[i - 3 * k])
        slope[s, 0, 0], slope[s, 0, 1], slope[s, 0, 2] = 1.0 if residual[i] == aim else 0.0, 0.0, 0.0
    for i in range(m):
        residual[i] = rho[i] * (f[i] - residual[i])
        worst = max(worst, abs(residual[i])) if residual[i] == residual[i] else np.inf
    return worst


def project_all(problem: Problem, f: Vector, slope: Tensor) -> None:
    """P of all impulses, in place; `slope` (contacts, 3, 3) is room."""
    k = len(problem.mu)
    for c in range(k):
        project(f, problem.mu[c], problem.pyramid, 3 * c, slope[c])
    for i in range(len(problem.lower)):
        f[3 * k + i] = min(max(f[3 * k + i], problem.lower[i]), problem.upper[i])


def write_newton_step(problem: Problem, proximal: float, work: NewtonWork) -> None:
    """Write the step that makes r zero, were r' constant."""
    M, slope, rho = work.equations.M, work.equations.P, work.rho
    k, kept = len(problem.mu), 1.0 - proximal
    for c in range(k):
        for i in range(3):
            for j in range(3):
                M[c, i, j] = rho[3 * c] * ((1.0 if i == j else 0.0) - kept * slope[c, i, j])
    for i in range(3 * k, len(problem.b)):
        M[i - 2 * k, 0, 0] = rho[i] * (1.0 - kept * slope[i - 2 * k, 0, 0])
    write_step(problem, work.equations)


def solve_by_newton(
    problem: Problem, f: Vector, tolerance: float, most: int, proximal: float, work: NewtonWork, patience: int = 1000
) -> tuple[float, int]:
    """Change the impulses f to the best that steps meet: the residual left, and the number of steps, `most` at most.

    Steps are whole ones: the residual may grow while contacts change between sticking, sliding and open, and a search along
    the step would stop there. They end after `patience` of them if nothing was gained. `work` has rho.
    """
    last, step = work.last, work.equations.step
    m = len(f)
    for i in range(m):
        last[i] = f[i]
    first = least = write_residual(problem, f, work)
    for count in range(most):
        if not least > tolerance or (count == patience and not least < first):
            return least, count
        write_newton_step(problem, proximal, work)
        for i in range(m):
            last[i] -= step[i]
        residual = write_residual(problem, last[:m], work)
        if residual < least:
            least = residual
            for i in range(m):
                f[i] = last[i]
        elif not residual < np.inf:
            return least, count + 1
    return least, most


def solve_by_damped_newton(problem: Problem, f: Vector, tolerance: float, most: int, work: NewtonWork) -> tuple[float, int]:
    """As `solve_by_newton`, with proximal terms as Levenberg and Marquardt choose them.

    A step that gains nothing is taken back, and its proximal term grows; at `MOST_DAMPING` steps stay whatever they gain.
    """
    last, tried, step, proximal = work.last, work.tried, work.equations.step, FIRST_DAMPING
    m = len(f)
    copy_numbers(f, last[:m])
    least = current = write_residual(problem, f, work)
    for count in range(most):
        if not least > tolerance:
            return least, count
        write_newton_step(problem, proximal, work)
        for i in range(m):
            tried[i] = last[i] - step[i]
        residual = write_residual(problem, tried[:m], work)
        if residual < current or (proximal >= MOST_DAMPING and residual < np.inf):
            proximal = max(LESS_DAMPING * proximal, LEAST_DAMPING) if residual < current else proximal
            current = residual
            copy_numbers(tried, last[:m])
        else:
            proximal = min(MORE_DAMPING * proximal, MOST_DAMPING)
            write_residual(problem, last[:m], work)  # P' once more
        if residual < least:
            least = residual
            copy_numbers(tried, f)
    return least, most
