"""Semismooth Newton steps for contact impulses.

The natural residual, as a velocity, of impulses f that leave the velocities u = A f + b:

    r(f) = rho (f - P(f - u/rho))        P the projection on what f may be: f_n >= 0, then |f_t| <= mu f_n; bounds
    r' = rho (1 - P') + P' A             P' is block-diagonal: 0 open, 1 sticking, and in between sliding

rho is the greatest entry on the diagonal of A for each contact (Alart and Curnier 1991). Whether a contact is open, sticks or
slides follows from f - u/rho, so that resting contacts, for which r is linear, are solved in a step or two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.loops.array_types import Integers, Matrix, Tensor, Vector
from ..engine.loops.kernels import LANES
from .elimination import room_for_equations, solve_partly_symmetric
from .laws import Problem, project

NEWTON_STEPS = 8
PROXIMAL = 1e-9  # of rho, added to A in r' only: impulses of redundant contacts are not unique


class NewtonWork(NamedTuple):
    """Room for Newton's method with at most m unknowns, of which the first 3 k are those of contacts."""

    rho: Vector  # (m,)
    residual: Vector  # (m,) r(f)
    slope: Tensor  # (m, 3, 3) blocks of P', one for a contact or a row with bounds
    step: Vector  # (m,)
    equations: Vector  # what has to be solved for, as `elimination` has it
    reciprocal: Vector  # (m,)
    solution: Vector  # (m,)
    unknowns: Integers  # (m,) those in it


def newton_work(size: int) -> NewtonWork:
    """Room for so many unknowns."""
    rho, residual, step, reciprocal, solution = np.empty((5, size))
    equations, unknowns = room_for_equations(size), np.empty(size, np.int64)
    return NewtonWork(rho, residual, np.empty((size, 3, 3)), step, equations, reciprocal, solution, unknowns)


def write_residual(problem: Problem, f: Vector, rho: Vector, residual: Vector, slope: Tensor) -> float:
    """Write r(f) and the blocks (k + rows, 3, 3) of P'; the greatest entry of r, infinity if any is NaN."""
    A, b, mu, lower, upper = problem.A, problem.b, problem.mu, problem.lower, problem.upper
    k, m = len(mu), len(f)
    worst = 0.0
    write_product_with(A, f, residual)
    for i in range(m):
        residual[i] = f[i] - (b[i] + residual[i]) / rho[i]
    for c in range(k):
        r = 3 * c
        project(residual, mu[c], problem.pyramid, r, slope[c])
    for i in range(3 * k, m):
        s, aim = i - 2 * k, residual[i]
        residual[i] = min(max(aim, lower[i - 3 * k]), upper[i - 3 * k])
        slope[s, 0, 0], slope[s, 0, 1], slope[s, 0, 2] = 1.0 if residual[i] == aim else 0.0, 0.0, 0.0
    for i in range(m):
        residual[i] = rho[i] * (f[i] - residual[i])
        worst = max(worst, abs(residual[i])) if residual[i] == residual[i] else np.inf
    return worst


def write_product_with(A: Matrix, f: Vector, product: Vector) -> None:
    """A f, four rows at a time."""
    m = len(f)
    for i in range(0, m - 3, 4):
        t = u = v = w = 0.0
        for j in range(m):
            t += A[i, j] * f[j]
            u += A[i + 1, j] * f[j]
            v += A[i + 2, j] * f[j]
            w += A[i + 3, j] * f[j]
        product[i], product[i + 1], product[i + 2], product[i + 3] = t, u, v, w
    for i in range(m // 4 * 4, m):
        t = 0.0
        for j in range(m):
            t += A[i, j] * f[j]
        product[i] = t


def project_all(problem: Problem, f: Vector, slope: Tensor) -> None:
    """P of all impulses, in place; `slope` (contacts, 3, 3) is room."""
    k = len(problem.mu)
    for c in range(k):
        project(f, problem.mu[c], problem.pyramid, 3 * c, slope[c])
    for i in range(len(problem.lower)):
        f[3 * k + i] = min(max(f[3 * k + i], problem.lower[i]), problem.upper[i])


def write_newton_step(A: Matrix, k: int, work: NewtonWork) -> None:
    """Write the step that makes r zero, were r' constant.

    Where P' is zero (open contacts, forces at their bounds), r' is rho, and the step is known; what is left of r' is smaller.
    Its rows have rho P' PROXIMAL added. Those in which P' is one (what sticks, and all normals) make a symmetric matrix.
    """
    unknowns, step = work.unknowns, work.step
    size, symmetric = order_unknowns(len(A), k, work)
    if size == 0:
        return
    write_equations(A, k, size, symmetric, work)
    if not solve_partly_symmetric(work.equations, size, symmetric, work.reciprocal, work.solution):
        write_equations(A, k, size, 0, work)
        solve_partly_symmetric(work.equations, size, 0, work.reciprocal, work.solution)
    for x in range(size):
        step[unknowns[x]] = work.solution[x]


def order_unknowns(m: int, k: int, work: NewtonWork) -> tuple[int, int]:
    """Write which steps have to be solved for, first those in whose rows P' is one: how many of all, and how many of these.

    Steps that are known are written.
    """
    slope, unknowns, step = work.slope, work.unknowns, work.step
    last = size = 0
    for i in range(m):
        c, l = place_of(i, k)
        first, second, third = slope[c, l, 0], slope[c, l, 1], slope[c, l, 2]
        step[i] = 0.0
        if slope[c, l, l] == 1.0 and abs(first) + abs(second) + abs(third) == 1.0:
            unknowns[size] = i
            size += 1
        elif first == 0.0 and second == 0.0 and third == 0.0:
            step[i] = work.residual[i] / work.rho[i]
        else:
            last += 1
            unknowns[m - last] = i
    for x in range(last):  # they were put at the end, the last first
        unknowns[size + x] = unknowns[m - last + x]
    return size + last, size


def place_of(i: int, k: int) -> tuple[int, int]:
    """The block of P' that has row i, and which of its rows."""
    return (i // 3, i % 3) if i < 3 * k else (i - 2 * k, 0)


def write_equations(A: Matrix, k: int, size: int, symmetric: int, work: NewtonWork) -> None:
    """r' step = r for the unknown steps; of the first `symmetric` rows the upper half."""
    matrix, unknowns, rho, slope, step = work.equations, work.unknowns, work.rho, work.slope, work.step
    m, stride, known = len(A), (size // LANES + 1) * LANES, work.solution  # room for A times the steps that are known
    moves = False
    for i in range(m):
        known[i] = 0.0
        moves |= step[i] != 0.0
    if moves:
        write_product_with(A, step[:m], known)
    for x in range(size):
        row, at = unknowns[x], x * stride
        c, i = place_of(row, k)
        first, width = (row - i, 3) if row < 3 * k else (row, 1)
        right = work.residual[row]
        if x < symmetric:
            for y in range(x // LANES * LANES, x):
                matrix[at + y] = 0.0
            for y in range(x, size):
                matrix[at + y] = A[row, unknowns[y]]
            matrix[at + x] += rho[row] * PROXIMAL
            right -= known[row]
        else:
            for y in range(size):
                matrix[at + y] = 0.0
            for l in range(width):
                part = slope[c, i, l]
                if part != 0.0:
                    for y in range(size):
                        matrix[at + y] += part * A[first + l, unknowns[y]]
                    right -= part * known[first + l]
            for y in range(size):
                l = unknowns[y] - first
                if 0 <= l < width:
                    matrix[at + y] += rho[row] * ((1.0 if i == l else 0.0) - (1.0 - PROXIMAL) * slope[c, i, l])
        matrix[at + size] = right
        for y in range(size + 1, stride):
            matrix[at + y] = 0.0


def write_rho(A: Matrix, k: int, rho: Vector) -> None:
    for c in range(k):
        most = max(A[3 * c, 3 * c], A[3 * c + 1, 3 * c + 1], A[3 * c + 2, 3 * c + 2])
        rho[3 * c] = rho[3 * c + 1] = rho[3 * c + 2] = most if most > 0.0 else 1.0
    for i in range(3 * k, len(A)):
        rho[i] = A[i, i] if A[i, i] > 0.0 else 1.0


def solve_by_newton(problem: Problem, f: Vector, tolerance: float, most: int, work: NewtonWork) -> tuple[float, int]:
    """Change the impulses f, whether or not they come near: the residual left, and the number of steps, `most` at most.

    Steps are whole ones: the residual may grow while contacts change between sticking, sliding and open, and a search along
    the step would stop there.
    """
    write_rho(problem.A, len(problem.mu), work.rho)
    norm = write_residual(problem, f, work.rho, work.residual, work.slope)
    for count in range(most):
        if not norm > tolerance:
            return norm, count
        write_newton_step(problem.A, len(problem.mu), work)
        for i in range(len(f)):
            f[i] -= work.step[i]
        norm = write_residual(problem, f, work.rho, work.residual, work.slope)
    return norm, most
