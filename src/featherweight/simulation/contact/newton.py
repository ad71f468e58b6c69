"""Semismooth Newton steps for contact impulses, compiled by Numba.

The natural residual, as a velocity, of impulses f that leave the velocities u = A f + b:

    r(f) = rho (f - P(f - u/rho))        P the projection on what f may be: f_n >= 0, then |f_t| <= mu f_n; bounds
    r' = rho (1 - P') + P' A             P' is block-diagonal: 0 open, 1 sticking, and in between sliding

rho is the greatest entry on the diagonal of A for each contact (Alart and Curnier 1991). What is open, sticks and slides
comes from f - u/rho, so that resting contacts, for which r is linear, are solved in a step or two.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ..compiling import jitable

NEWTON_STEPS = 8
LAPACK_FROM = 36  # unknowns: fewer are eliminated faster here
PROXIMAL = 1e-9  # of rho, added to A in r' only: impulses of redundant contacts are not unique


class NewtonWork(NamedTuple):
    """Arrays of Newton's method for m unknowns, of which the first 3 k are those of contacts."""

    rho: Any  # (m,)
    residual: Any  # (m,) r(f)
    slope: Any  # (m - 2 k, 3, 3) blocks of P'
    step: Any  # (m,)
    jacobian: Any  # (m, m) of what has to be solved for
    right: Any  # (m,)
    unknowns: Any  # (m,) int, those in it


@jitable
def newton_work(problem: Any) -> Any:
    k, m = len(problem.mu), len(problem.b)
    rho = np.empty(m)
    write_rho(problem.A, k, rho)
    slope = np.zeros((m - 2 * k, 3, 3))
    return NewtonWork(rho, np.empty(m), slope, np.empty(m), np.empty((m, m)), np.empty(m), np.empty(m, np.int64))


@jitable
def write_residual(problem: Any, f: Any, rho: Any, residual: Any, slope: Any) -> float:
    """Write r(f) and the blocks (k + rows, 3, 3) of P'; the greatest entry of r."""
    A, b, mu, lower, upper = problem.A, problem.b, problem.mu, problem.lower, problem.upper
    k, m = len(mu), len(f)
    worst = 0.0
    for i in range(m):
        u = b[i]
        for j in range(m):
            u += A[i, j] * f[j]
        residual[i] = f[i] - u / rho[i]
    for c in range(k):
        r = 3 * c
        project(residual, mu[c], problem.pyramid, r, slope[c])
    for i in range(3 * k, m):
        s, aim = k + i - 3 * k, residual[i]
        residual[i] = min(max(aim, lower[i - 3 * k]), upper[i - 3 * k])
        slope[s, 0, 0] = 1.0 if residual[i] == aim else 0.0
    for i in range(m):
        residual[i] = rho[i] * (f[i] - residual[i])
        worst = max(worst, abs(residual[i]))
    return worst


@jitable
def project(aim: Any, mu: float, pyramid: bool, r: int, slope: Any) -> None:
    """P of one contact, in place, and its derivative."""
    slope[:] = 0.0
    if not aim[r] > 0.0:
        aim[r] = aim[r + 1] = aim[r + 2] = 0.0
        return
    slope[0, 0] = 1.0
    most = mu * aim[r]
    if pyramid:
        for i in range(1, 3):
            if abs(aim[r + i]) <= most:
                slope[i, i] = 1.0
            else:
                way = 1.0 if aim[r + i] > 0.0 else -1.0
                aim[r + i], slope[i, 0] = way * most, way * mu
        return
    x, y = aim[r + 1], aim[r + 2]
    length = sqrt(x * x + y * y)
    if length <= most:
        slope[1, 1] = slope[2, 2] = 1.0
        return
    x, y, shrink = x / length, y / length, most / length
    aim[r + 1], aim[r + 2] = most * x, most * y
    slope[1, 0], slope[2, 0] = mu * x, mu * y
    slope[1, 1], slope[2, 2] = shrink * (1.0 - x * x), shrink * (1.0 - y * y)
    slope[1, 2] = slope[2, 1] = -shrink * x * y


@jitable
def project_all(problem: Any, f: Any) -> None:
    """P of all impulses, in place."""
    slope = np.empty((3, 3))
    k = len(problem.mu)
    for c in range(k):
        project(f, problem.mu[c], problem.pyramid, 3 * c, slope)
    for i in range(len(problem.lower)):
        f[3 * k + i] = min(max(f[3 * k + i], problem.lower[i]), problem.upper[i])


@jitable
def write_newton_step(A: Any, k: int, work: Any) -> None:
    """Write the step that makes r zero, were r' constant.

    Where P' is zero (open contacts, forces at their bounds), r' is rho, and the step is known; what is left of r' is smaller.
    Its rows have rho P' PROXIMAL added.
    """
    rho, residual, slope, step = work.rho, work.residual, work.slope, work.step
    matrix, right, unknowns = work.jacobian, work.right, work.unknowns
    m, n = len(rho), 0
    for i in range(m):
        c, l = (i // 3, i % 3) if i < 3 * k else (k + i - 3 * k, 0)
        known = slope[c, l, 0] == 0.0 and slope[c, l, 1] == 0.0 and slope[c, l, 2] == 0.0
        step[i] = residual[i] / rho[i] if known else 0.0
        if not known:
            unknowns[n] = i
            n += 1
    for x in range(n):
        row = unknowns[x]
        right[x] = residual[row]
        c, i, first, width = (row // 3, row % 3, row - row % 3, 3) if row < 3 * k else (k + row - 3 * k, 0, row, 1)
        for y in range(n):
            matrix[x, y] = 0.0
        for l in range(width):
            part = slope[c, i, l]
            if part != 0.0:
                for y in range(n):
                    matrix[x, y] += part * A[first + l, unknowns[y]]
                total = 0.0
                for j in range(m):
                    total += A[first + l, j] * step[j]
                right[x] -= part * total
        for y in range(n):
            l = unknowns[y] - first
            if 0 <= l < width:
                matrix[x, y] += rho[row] * ((1.0 if i == l else 0.0) - (1.0 - PROXIMAL) * slope[c, i, l])
    if n > 0:
        solved = solve_linear(matrix[:n, :n], right[:n])
        for x in range(n):
            step[unknowns[x]] = solved[x]


@jitable
def write_rho(A: Any, k: int, rho: Any) -> None:
    for c in range(k):
        most = max(A[3 * c, 3 * c], A[3 * c + 1, 3 * c + 1], A[3 * c + 2, 3 * c + 2])
        rho[3 * c] = rho[3 * c + 1] = rho[3 * c + 2] = most if most > 0.0 else 1.0
    for i in range(3 * k, len(rho)):
        rho[i] = A[i, i] if A[i, i] > 0.0 else 1.0


@jitable
def solve_linear(matrix: Any, right: Any) -> Any:
    """matrix⁻¹ right; the matrix is overwritten."""
    n = len(right)
    if n >= LAPACK_FROM:
        return np.linalg.solve(np.ascontiguousarray(matrix), right)
    x = right.copy()
    for c in range(n):
        pivot = c
        for i in range(c + 1, n):
            if abs(matrix[i, c]) > abs(matrix[pivot, c]):
                pivot = i
        if pivot != c:
            for j in range(c, n):
                matrix[c, j], matrix[pivot, j] = matrix[pivot, j], matrix[c, j]
            x[c], x[pivot] = x[pivot], x[c]
        for i in range(c + 1, n):
            factor = matrix[i, c] / matrix[c, c]
            if factor != 0.0:
                for j in range(c + 1, n):
                    matrix[i, j] -= factor * matrix[c, j]
                x[i] -= factor * x[c]
    for c in range(n - 1, -1, -1):
        for j in range(c + 1, n):
            x[c] -= matrix[c, j] * x[j]
        x[c] /= matrix[c, c]
    return x


@jitable
def solve_by_newton(problem: Any, f: Any, tolerance: float, most: int) -> tuple[Any, float, int]:
    """Impulses from f on, whether or not they come near: with the residual left, and the number of steps, `most` at most.

    Steps are whole ones: the residual may grow while contacts change between sticking, sliding and open, and a search along
    the step would stop there.
    """
    work = newton_work(problem)
    norm = write_residual(problem, f, work.rho, work.residual, work.slope)
    for count in range(most):
        if not norm > tolerance:
            return f, norm, count
        write_newton_step(problem.A, len(problem.mu), work)
        f = f - work.step
        norm = write_residual(problem, f, work.rho, work.residual, work.slope)
    return f, norm, most
