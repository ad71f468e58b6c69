"""Projected Gauss-Seidel for contact impulses.

A sweep takes the contacts one by one. With u = A f + b the velocities that the impulses f leave, each takes what alone
would bring it to Coulomb's law, everything else held:

    normal     f_n <- max(0, f_n - u_n / A_nn)
    friction   f_t <- f_t - A_tt⁻¹ u_t, and if that is longer than mu f_n, the step f_t - u_t / rho cut to that length,
               rho the greatest eigenvalue of A_tt (a pyramid: each coordinate by itself, cut to ±mu f_n)
    bounds     f <- f - u / A_ii cut to [lower, upper]

What the velocities lacked before these steps, the greatest of a sweep, is the residual that it returns.
"""

from __future__ import annotations

from math import sqrt

from ..engine.loops.array_types import Vector
from .laws import Problem, cut_friction, holds


def row_velocity(problem: Problem, f: Vector, r: int) -> float:
    u = 0.0
    for j in range(len(f)):
        u += problem.A[r, j] * f[j]
    return u + problem.b[r]  # type: ignore[no-any-return]


def gauss_seidel_sweep(problem: Problem, f: Vector) -> float:
    """One sweep over the contacts and bounded rows of a problem; the residual [m/s] that it found."""
    A, mu, lower, upper = problem.A, problem.mu, problem.lower, problem.upper
    k = len(mu)
    worst = 0.0
    for i in range(k):
        r = 3 * i
        a = A[r, r]
        before = f[r]
        if a > 0.0:
            f[r] = max(0.0, before - row_velocity(problem, f, r) / a)
        worst = max(worst, abs(f[r] - before) * a)
        if mu[i] > 0.0:
            worst = max(worst, stick_or_slide(problem, mu[i] * f[r], f, r))
        else:
            f[r + 1] = f[r + 2] = 0.0
    for i in range(len(lower)):
        r = 3 * k + i
        a = A[r, r]
        if a > 0.0:
            before = f[r]
            f[r] = min(max(before - row_velocity(problem, f, r) / a, lower[i]), upper[i])
            worst = max(worst, abs(f[r] - before) * a)
    return worst


def stick_or_slide(problem: Problem, most: float, f: Vector, r: int) -> float:
    """Friction of the contact whose normal is row r, at most `most`; the residual found."""
    A, pyramid = problem.A, problem.pyramid
    x, y = f[r + 1], f[r + 2]
    u, v = row_velocity(problem, f, r + 1), row_velocity(problem, f, r + 2)
    p, q, c = A[r + 1, r + 1], A[r + 2, r + 2], A[r + 1, r + 2]
    determinant = p * q - c * c
    rho = 0.5 * (p + q) + sqrt(0.25 * (p - q) * (p - q) + c * c)
    if not rho > 0.0:
        return 0.0
    new_x, new_y = x - u / rho, y - v / rho
    if determinant > 1e-12 * rho * rho:
        stuck_x, stuck_y = x - (q * u - c * v) / determinant, y - (p * v - c * u) / determinant
        if holds(stuck_x, stuck_y, most, pyramid):
            new_x, new_y = stuck_x, stuck_y
    new_x, new_y = cut_friction(new_x, new_y, most, pyramid)
    f[r + 1], f[r + 2] = new_x, new_y
    return max(abs(new_x - x), abs(new_y - y)) * rho  # type: ignore[no-any-return]


def solve_by_sweeps(problem: Problem, f: Vector, most: int, tolerance: float) -> tuple[int, float]:
    """Sweeps from the impulses f, which are changed, until the residual is below `tolerance`: how many, and what is left."""
    residual = 0.0
    for k in range(most):
        residual = gauss_seidel_sweep(problem, f)
        if not residual > tolerance:  # NaN too
            return k + 1, residual
    return most, residual
