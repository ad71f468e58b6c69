"""Contact impulses that dissipate the most energy, under Coulomb's law.

For contacts with normal n and tangents t, impulses f and the velocities u = A f + b that they leave, A = J M⁻¹ Jᵀ the
Delassus matrix (its blocks are NᵀM⁻¹N, NᵀM⁻¹D and DᵀM⁻¹D), b the velocities without contact (plus gaps that are still open,
divided by the step), Drumwright and Shell (2010) minimize the kinetic energy that is left, which is convex in f:

    min  1/2 fᵀ A f + fᵀ (b + s)      f_n >= 0,  |f_t| <= mu f_n  (or |f_t1|, |f_t2| <= mu f_n)

Taken alone (s = 0), this lets sliding contacts take off, u_n = mu |u_t|, since pressing harder would dissipate more; the
paper bounds the sum of normal impulses against it. Here each contact's own normal velocity is shifted by s_n = mu |u_t| of
the solution (de Saxcé and Feng 1998), a sequence of the same convex problems whose limit obeys Coulomb's law exactly:

    f_n >= 0,  u_n >= 0,  f_n u_n = 0;      friction opposes sliding and is mu f_n where there is any.

Rows with bounds, lower <= f <= upper (limits and dry friction of joints), obey u = 0, or u >= 0 at the lower and u <= 0 at
the upper bound. Contacts come first in A, three rows each, then rows with bounds.

Solved by projected Gauss-Seidel sweeps, from the impulses of the step before, and where those are slow (stacks, great
ratios of mass) by semismooth Newton steps on the natural residual f - P(f - u/rho), P the projection on the set that f may be
in (Alart and Curnier 1991), which know what sticks, slides and is open and so solve resting contacts in one or two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .sweeps import solve_by_sweeps

Array = np.ndarray[Any, np.dtype[Any]]

SWEEPS = 60  # before Newton's method is tried; the sweeps of a humanoid's step end far earlier
ROUNDS = 10  # of sweeps, twice as many each time, and Newton's method
NEWTON_STEPS = 25
SHORTEST = 2.0**-10  # step of the line search
PROXIMAL = 1e-9  # of the diagonal, added to A in Newton's matrix: forces of redundant contacts are not unique


@dataclass(frozen=True, eq=False)
class Problem:
    """Contacts in `mu`, then rows with bounds, of velocities u = A f + b."""

    A: Array  # (m, m)
    b: Array  # (m,) [m/s, rad/s]
    mu: Array  # (k,)
    lower: Array  # (m - 3k,) [N s, N m s]
    upper: Array
    pyramid: bool = False


@dataclass(frozen=True, eq=False)
class Solution:
    """Impulses (m,), the natural residual that they leave [m/s], and the work that it took."""

    impulses: Array
    residual: float
    sweeps: int
    newton_steps: int


def solve(problem: Problem, start: Array, tolerance: float) -> Solution:
    """Impulses from a guess, to a residual of `tolerance` [m/s] if that can be had."""
    f = start.copy()
    swept = steps = 0
    for attempt in range(ROUNDS):
        count, left = solve_by_sweeps(
            problem.A, problem.b, problem.mu, problem.lower, problem.upper, problem.pyramid, f, SWEEPS << attempt, tolerance
        )
        swept += count
        if left <= tolerance:
            break
        tried, left, count = newton(problem, f, tolerance)
        steps += count
        if left <= tolerance:  # otherwise it has led astray, and sweeps go on from where they were
            return Solution(tried, left, swept, steps)
    return Solution(f, residual(problem, f), swept, steps)


def residual(problem: Problem, f: Array) -> float:
    """The greatest entry of the natural residual, as a velocity."""
    if not len(f):
        return 0.0
    return float(np.abs(_natural(problem, f)[0]).max())


def newton(problem: Problem, start: Array, tolerance: float) -> tuple[Array, float, int]:
    """Semismooth Newton steps while they help: impulses, residual and the number of steps."""
    f = start
    left, slope, rho = _natural(problem, f)
    norm = float(np.abs(left).max())
    proximal = PROXIMAL * np.diag(rho)
    for count in range(NEWTON_STEPS):
        if norm <= tolerance:
            return f, norm, count
        matrix = np.diag(rho) - slope * rho + slope @ (problem.A + proximal)
        try:
            step = np.linalg.solve(matrix, left)
        except np.linalg.LinAlgError:
            return f, norm, count
        scale = 1.0
        while scale >= SHORTEST:
            moved = f - scale * step
            new_left, new_slope, _ = _natural(problem, moved)
            new_norm = float(np.abs(new_left).max())
            if new_norm < (1.0 - 1e-4 * scale) * norm:
                break
            scale /= 2
        else:
            return f, norm, count
        f, left, slope, norm = moved, new_left, new_slope, new_norm
    return f, norm, NEWTON_STEPS


def _natural(problem: Problem, f: Array) -> tuple[Array, Array, Array]:
    """rho (f - P(f - u/rho)), the derivative of P (block-diagonal, (m, m)), and rho (m,)."""
    k = len(problem.mu)
    u = problem.A @ f + problem.b
    diagonal = np.diag(problem.A)
    rho = np.concatenate([np.repeat(diagonal[: 3 * k].reshape(k, 3).max(axis=1, initial=0.0), 3), diagonal[3 * k :]])
    rho = np.where(rho > 0.0, rho, 1.0)
    aim = f - u / rho
    reached = np.empty_like(f)
    slope = np.zeros_like(problem.A)
    reached[3 * k :] = np.clip(aim[3 * k :], problem.lower, problem.upper)
    free = np.arange(3 * k, len(f))[(aim[3 * k :] > problem.lower) & (aim[3 * k :] < problem.upper)]
    slope[free, free] = 1.0
    _project(aim[: 3 * k].reshape(k, 3), problem.mu, problem.pyramid, reached[: 3 * k].reshape(k, 3), slope)
    return rho * (f - reached), slope, rho


def _project(aim: Array, mu: Array, pyramid: bool, reached: Array, slope: Array) -> None:
    """Coulomb's projection of contacts: the normal on f_n >= 0, and friction on what the normal then allows."""
    normal, at = 3 * np.arange(len(mu)), aim[:, 1:]
    closed = aim[:, 0] > 0.0
    most = mu * np.where(closed, aim[:, 0], 0.0)
    reached[:, 0] = np.where(closed, aim[:, 0], 0.0)
    slope[normal, normal] = closed
    if pyramid:
        reached[:, 1:] = np.clip(at, -most[:, None], most[:, None])
        for axis in (0, 1):
            row, over = normal + 1 + axis, np.abs(at[:, axis]) > most
            slope[row, row] = closed & ~over
            slope[row, normal] = np.where(closed & over, mu * np.sign(at[:, axis]), 0.0)
        return
    length = np.hypot(at[:, 0], at[:, 1])
    sliding = length > most
    unit = at / np.where(length > 0.0, length, 1.0)[:, None]
    reached[:, 1:] = np.where(sliding[:, None], most[:, None] * unit, at)
    shrink = np.where(sliding, most / np.where(length > 0.0, length, 1.0), 1.0)
    for i in (0, 1):
        slope[normal + 1 + i, normal] = np.where(closed & sliding, mu * unit[:, i], 0.0)
        for j in (0, 1):
            across = (i == j) - np.where(sliding, unit[:, i] * unit[:, j], 0.0)
            slope[normal + 1 + i, normal + 1 + j] = np.where(closed, shrink * across, 0.0)
