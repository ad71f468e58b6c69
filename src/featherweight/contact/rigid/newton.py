"""Semismooth Newton steps for contact impulses.

The natural residual, as a velocity, of impulses f that leave the velocities u = A f + b:

    r(f) = rho (f - P(f - u/rho))              P the projection on admissible f: f_n >= 0, then |f_t| <= mu f_n; bounds
    r' = rho (1 - (1 - delta) P') + P' A       P' is block-diagonal: 0 open, 1 sticking, and in between sliding

rho is the greatest entry on the diagonal of A for each contact (Alart and Curnier 1991). f - u/rho determines whether a contact
is open, sticks or slides, so that resting contacts, for which r is linear, take one or two steps. Impulses of redundant
contacts are not unique, and contacts with different gaps cannot all stick. delta is a proximal term, a compliance relative to
rho, that vanishes where steps come to rest. Smaller values cause long steps between the corners of a foot.

Whole steps change many contacts at once, mostly wrongly. Within one set of open, sticking and sliding contacts, r is linear
except for the directions of sliding, so a step of length t to its first change leaves (1 - t) r. The next step starts there
(Katzenelson 1965; the path search of Ralph 1994, and of the solver PATH).
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ...array_types import Tensor, Vector
from ..factors.block_equations import (
    BlockEquations,
    block_equations,
    copy_numbers,
    place_of,
    write_change_of_step,
    write_product,
    write_step,
)
from ..factors.row_factor import NO_BRANCHES, FactorSizes, sum_of_squares
from ..laws import Problem, project_contact

PATH_STEPS = 14
SLOW = 0.3  # ratio of residuals above which a path is slow
WITHOUT_TRIAL = 1 << 30
ALONG_PATH = 1e-7  # proximal term of steps along a path
CLOSE = 1e3  # residual, in tolerances, below which the next two proximal terms are used
AT_END, LEAST = (
    1e-6,
    1e-8,
)  # alternate if steps gain little: the first is too large for some problems, the second too inaccurate
GAIN = 0.5  # greatest ratio of residuals for which a whole step is accepted
AT_ONCE = 1e-3  # part of a step within which the contact that changed last may not change back
HERE, BEYOND = 1e-12, 1e-9  # parts of a step: earlier changes are ignored; a step ends this far after a change


class NewtonWork(NamedTuple):
    """Workspace for Newton's method with at most m unknowns, of which the first 3 k are those of contacts."""

    rho: Vector  # (m,)
    velocity: Vector  # (m,) A f + b of the last residual
    last: Vector  # (m,) impulses
    tried: Vector  # (m,)
    equations: BlockEquations  # its right-hand side is r(f), and its P are P'


def newton_work(size: int, branches: FactorSizes = NO_BRANCHES) -> NewtonWork:
    """Return workspace for `size` unknowns."""
    rho, velocity, last, tried = np.empty((4, size))
    return NewtonWork(rho, velocity, last, tried, block_equations(size, branches))


def write_rho(problem: Problem, rho: Vector) -> None:
    """Write rho [m/s per N s], in the units of A."""
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
    """Write r(f) and the blocks of P' to the equations; return the greatest entry of r, infinity if any is NaN."""
    m = len(f)
    write_product(problem, f, work.equations, work.velocity[:m])
    for i in range(m):
        work.velocity[i] += problem.b[i]
    return write_residual_at(problem, f, work)


def write_residual_at(problem: Problem, f: Vector, work: NewtonWork) -> float:
    """Write r(f) and the blocks of P' for velocities that are already written; return as `write_residual` does."""
    mu, lower, upper, rho = problem.mu, problem.lower, problem.upper, work.rho
    residual, slope = work.equations.right, work.equations.P
    k, m = len(mu), len(f)
    worst = 0.0
    for i in range(m):
        residual[i] = f[i] - work.velocity[i] / rho[i]
    for c in range(k):
        project_contact(problem, residual, c, slope[c])
    for i in range(3 * k, m):
        s, aim = i - 2 * k, residual[i]
        residual[i] = min(max(aim, lower[i - 3 * k]), upper[i - 3 * k])
        slope[s, 0, 0], slope[s, 0, 1], slope[s, 0, 2] = 1.0 if residual[i] == aim else 0.0, 0.0, 0.0
    for i in range(m):
        residual[i] = rho[i] * (f[i] - residual[i])
        worst = max(worst, abs(residual[i])) if residual[i] == residual[i] else np.inf
    return worst


def project_all(problem: Problem, f: Vector, slope: Tensor) -> None:
    """Project all impulses by P, in place; `slope` (contacts, 3, 3) is workspace."""
    k = len(problem.mu)
    for c in range(k):
        project_contact(problem, f, c, slope[c])
    for i in range(len(problem.lower)):
        f[3 * k + i] = min(max(f[3 * k + i], problem.lower[i]), problem.upper[i])


def write_newton_step(problem: Problem, proximal: float, work: NewtonWork) -> None:
    """Write the step that makes r zero for constant r'."""
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
    problem: Problem, f: Vector, tolerance: float, most: int, proximal: float, work: NewtonWork, gain: float = np.inf
) -> tuple[float, int]:
    """Replace the impulses f by the best ones met in at most `most` steps; return the residual and the number of steps.

    Steps are whole: the residual may grow while contacts change between sticking, sliding and open, and a line search would
    stop there. They end after a step that leaves more than `gain` of the residual. `work` contains rho.
    """
    last, step = work.last, work.equations.step
    m = len(f)
    for i in range(m):
        last[i] = f[i]
    least = residual = write_residual(problem, f, work)
    for count in range(most):
        if not least > tolerance:
            return least, count
        write_newton_step(problem, proximal, work)
        for i in range(m):
            last[i] -= step[i]
        before, residual = residual, write_residual(problem, last[:m], work)
        if residual < least:
            least = residual
            for i in range(m):
                f[i] = last[i]
        if not residual < np.inf or not residual <= gain * before:
            return least, count + 1
    return least, most


def solve_along_path(
    problem: Problem, f: Vector, tolerance: float, most: int, work: NewtonWork, trial: int = WITHOUT_TRIAL
) -> tuple[float, int]:
    """Follow a path of steps, each of which ends where the first contact or row changes its state; return as `solve_by_newton`.

    Up to there r is linear except for the directions of sliding, so that a step of length t leaves (1 - t) r (Katzenelson 1965;
    Ralph 1994). If a contact changes back immediately, the step continues to a later change. The path ends if `trial` steps
    leave more than `SLOW` of the residual.
    """
    last, changes = work.last, work.tried
    m = len(f)
    copy_numbers(f, last[:m])
    least = residual = first = write_residual(problem, last[:m], work)
    before, at_end = -1, AT_END
    for count in range(most):
        if count == trial and least > SLOW * first:
            return write_residual(problem, f, work), count
        if count > 0 and not least > tolerance:
            least = residual = write_residual(problem, f, work)  # removes rounding errors of updated velocities
            copy_numbers(f, last[:m])
        if not least > tolerance:
            return least, count
        close = residual <= CLOSE * tolerance
        write_newton_step(problem, at_end if close else ALONG_PATH, work)
        write_change_of_step(problem, work.equations, changes[:m])
        part, changed = part_to_change(problem, last, before, work)
        left = move_along(problem, 1.0, last[:m], work)
        if part < 1.0 and not left <= GAIN * residual:
            left = move_along(problem, part - 1.0, last[:m], work)
        else:
            changed = -1
        if close and not left <= GAIN * residual:
            at_end = LEAST if at_end == AT_END else AT_END
        residual, before = left, changed
        if residual < least:
            least = residual
            copy_numbers(last, f)
        elif not residual < np.inf:
            return least, count + 1
    return write_residual(problem, f, work), most


def move_along(problem: Problem, part: float, f: Vector, work: NewtonWork) -> float:
    """Move impulses and velocities by a part of the step; return the residual."""
    for i in range(len(f)):
        f[i] -= part * work.equations.step[i]
        work.velocity[i] -= part * work.tried[i]
    return write_residual_at(problem, f, work)


def part_to_change(problem: Problem, f: Vector, before: int, work: NewtonWork) -> tuple[float, int]:
    """Return the part of a step after which a contact or row changes its state, and which one; 1 and -1 without a change.

    `before` changed last. It may change back, but not immediately: then the third change is used.
    """
    step, changes, velocity, rho = work.equations.step, work.tried, work.velocity, work.rho
    k, m = len(problem.mu), len(problem.b)
    first, second, third = 1.0, 1.0, 1.0
    at_first, at_second, at_third = -1, -1, -1
    for c in range(m - 2 * k):
        if c < k:
            part = part_of_contact(problem, f, c, work)
        else:
            i = 2 * k + c
            j = i - 3 * k
            aim, way = f[i] - velocity[i] / rho[i], changes[i] / rho[i] - step[i]
            part = min(part_to(problem.lower[j] - aim, way), part_to(problem.upper[j] - aim, way))
        if part < first:
            first, second, third, at_first, at_second, at_third = part, first, second, c, at_first, at_second
        elif part < second:
            second, third, at_second, at_third = part, second, c, at_second
        elif part < third:
            third, at_third = part, c
    if at_first >= 0 and at_first == before and first < AT_ONCE:
        first, at_first = third, at_third
    return (first * (1.0 + BEYOND) + BEYOND if at_first >= 0 else 1.0), at_first


def part_of_contact(problem: Problem, f: Vector, c: int, work: NewtonWork) -> float:
    """Return the part of a step after which contact c changes between open, sticking and sliding."""
    step, changes, velocity, mu, i = work.equations.step, work.tried, work.velocity, problem.mu[c], 3 * c
    unit = 1.0 / work.rho[i]
    n, x, y = f[i] - velocity[i] * unit, f[i + 1] - velocity[i + 1] * unit, f[i + 2] - velocity[i + 2] * unit
    dn, dx, dy = changes[i] * unit - step[i], changes[i + 1] * unit - step[i + 1], changes[i + 2] * unit - step[i + 2]
    part = part_to(-n, dn)
    if problem.pyramid:
        for side in range(2):
            sign = 1.0 - 2.0 * side
            part = first_inside(part, part_to(sign * mu * n - x, dx - sign * mu * dn), n, dn)
            part = first_inside(part, part_to(sign * mu * n - y, dy - sign * mu * dn), n, dn)
        return part
    return min(part, part_to_cone((n, x, y), (dn, dx, dy), mu))


def part_to_cone(at: tuple[float, float, float], way: tuple[float, float, float], mu: float) -> float:
    """Return the part of a change after which |(x, y)| = mu n, with n > 0."""
    (n, x, y), (dn, dx, dy), part = at, way, np.inf
    # |(x, y) + t (dx, dy)|² = mu² (n + t dn)²
    square = dx * dx + dy * dy - mu * mu * dn * dn
    half = x * dx + y * dy - mu * mu * n * dn
    constant = x * x + y * y - mu * mu * n * n
    root = half * half - square * constant
    if root >= 0.0:
        q = -(half + (sqrt(root) if half >= 0.0 else -sqrt(root)))
        part = first_inside(part, part_to(q, square), n, dn)
        part = first_inside(part, part_to(constant, q), n, dn)
    return part


def part_to(distance: float, way: float) -> float:
    """Return the part of a change after which a distance is covered; infinity if never, or if it is behind."""
    if way == 0.0:
        return np.inf
    part = distance / way
    return part if part > HERE else np.inf


def first_inside(part: float, other: float, n: float, dn: float) -> float:
    """Return the smaller part; the other one only if the normal impulse is positive there."""
    return other if other < part and n + other * dn > 0.0 else part
