"""Least squares for many configurations at once: the Levenberg-Marquardt method for loops far from closed.

    (J^T J + mu |r| 1) step = -J^T r

Because the damping is proportional to the residual r, the last steps are Newton steps, even if rows of J are dependent (Fan
and Yuan 2005). Long first steps find a way to a solution, so the damping starts small; failed steps increase it. Lengths are
in units of the mechanism's size, so that they are comparable to angles. Loops that contradict each other leave a residual: a
configuration has settled when its residual hardly decreases, and counts as closed if its residual is within the tolerance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Array
from ...spatial.ordered import product, pseudo_inverse, solved, times, total
from .misclosure import Misclosure

STEPS, LONGEST = 150, 10.0  # steps, and the greatest entry of a step [rad]
DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-4, 1e10
FLOOR = 1e-14  # least damping, relative to the matrix's greatest diagonal entry
SLOW = 0.98  # a step is slow if it leaves more than this of the squared residual
SETTLED, STALLED = 2, 8  # consecutive slow steps, within the tolerance and beyond
NEWTON_STEPS = 30


class Settled(NamedTuple):
    """Configurations at which least squares stopped."""

    x: Array  # (batch, nx)
    r: Array  # (batch, m) [m, rad]
    closed: Array  # (batch,) whether r is within the tolerance

    @property
    def worst(self) -> Array:
        """The largest residual of each configuration."""
        return np.asarray(np.abs(self.r).max(axis=1, initial=0.0))


class ClosingProblem(NamedTuple):
    """Loops to close by moving some of a cluster's rows, and the units of their residuals."""

    gap: Misclosure
    columns: Array  # indices, among the cluster's moving rows, of those that may move
    weights: Array  # (m,) make residuals dimensionless, by the mechanism's length
    units: Array  # (n,) give dimensionless velocities their units
    exact: float  # residual [m, rad] due to rounding
    tolerance: float  # [m, rad]

    def moved(self, x: Array, step: Array) -> Array:
        if len(self.columns) == len(self.units):
            return self.gap.moved(x, step * self.units)
        whole = np.zeros((len(x), len(self.units)))
        whole[:, self.columns] = step * self.units[self.columns]
        return self.gap.moved(x, whole)

    def scaled(self, r: Array, J: Array) -> tuple[Array, Array]:
        """Return dimensionless derivatives by the columns that may move; overwrites J if all may move."""
        if len(self.columns) == len(self.units):
            J *= self.weights[:, None] * self.units
            return r * self.weights, J
        return r * self.weights, J[:, :, self.columns] * (self.weights[:, None] * self.units[self.columns])

    def evaluated(self, x: Array, limits: bool) -> tuple[Array, Array, Array]:
        """Return the residual, and the dimensionless residual and derivatives, including violated joint limits."""
        r, J = self.gap(x)
        s, K = self.scaled(r, J)
        if not limits:
            return r, s, K
        lower, upper, at, row = self.gap.limits
        beyond = x[:, at] - np.clip(x[:, at], lower, upper)
        more = np.zeros((len(x), len(at), len(self.units)))
        more[:, range(len(at)), row] = beyond != 0.0
        return (
            np.concatenate([r, beyond], axis=1),
            np.concatenate([s, beyond / self.units[row]], axis=1),
            np.concatenate([K, more[:, :, self.columns]], axis=1),
        )


def settle(p: ClosingProblem, x: Array, limits: bool = False) -> Settled:
    """Solve from starting points (batch, nx); with `limits`, joints beyond their limits count as open loops do."""
    x = x.copy()
    r, s, K = p.evaluated(x, limits)
    cost, damping, slow = total(s * s), np.full(len(x), DAMPING), np.zeros(len(x), dtype=int)
    closed = np.abs(r).max(axis=1, initial=0.0) < p.exact
    active = np.flatnonzero(~closed & np.isfinite(cost)) if len(p.columns) else np.zeros(0, dtype=int)
    for _ in range(STEPS):
        if not len(active):
            break
        own = K[active] if len(active) < len(x) else K
        step = _step(own, s[active], damping[active] * np.sqrt(cost[active]))
        linear = s[active] + times(own, step)
        tried = p.moved(x[active], step)
        r_tried, s_tried, K_tried = p.evaluated(tried, limits)
        cost_tried, before = total(s_tried * s_tried), cost[active]
        with np.errstate(invalid="ignore", divide="ignore"):
            gain = (before - cost_tried) / np.maximum(before - total(linear * linear), 1e-300)
            better = cost_tried < before
            fast = cost_tried < SLOW * before
        change = np.where(gain > 0.75, 0.2, np.where(gain >= 0.25, 1.0, 4.0))
        damping[active] = np.clip(damping[active] * change, LEAST_DAMPING, MOST_DAMPING)
        slow[active] = np.where(fast, 0, slow[active] + 1)
        taken = active[better]
        for old, new in ((x, tried), (r, r_tried), (s, s_tried), (K, K_tried), (cost, cost_tried)):
            old[taken] = new[better]
        worst = np.abs(r[active]).max(axis=1)
        done = (worst < p.exact) | ((slow[active] >= SETTLED) & (worst <= p.tolerance))
        closed[active[done]] = True
        active = active[~done & (slow[active] < STALLED)]
    return Settled(x, r[:, : len(p.gap.is_length)], closed)


def _step(K: Array, s: Array, damping: Array) -> Array:
    """Return the step, from the smaller of the two equivalent systems."""
    m, n = K.shape[1:]
    if m == 0:
        return np.zeros((len(K), n))
    across = K.swapaxes(1, 2)
    A = product(K, across) if m <= n else product(across, K)
    diagonal = range(min(m, n)), range(min(m, n))
    least = FLOOR * np.maximum(A[:, *diagonal].max(axis=1), FLOOR)
    A[:, *diagonal] += np.maximum(damping, least)[:, None]
    step = times(across, solved(A, s)) if m <= n else solved(A, times(across, s))
    longest = np.abs(step).max(axis=1, keepdims=True)
    return np.asarray(-step * np.minimum(1.0, LONGEST / np.maximum(longest, 1e-300)))


def refined(p: ClosingProblem, x: Array, rows: Array) -> Settled:
    """Close some constraints of the equations of motion up to rounding by Newton's method, from a point close by."""
    x = x.copy()
    left, kept = np.arange(len(x)), np.full(len(x), np.inf)
    for _ in range(NEWTON_STEPS):
        s, K = p.gap(x[left], as_sines=True)
        kept[left] = np.abs(s[:, rows]).max(axis=1, initial=0.0)
        going = ~(kept[left] < p.exact) & np.isfinite(s).all(axis=1)
        left, s, K = left[going], s[going], K[going]
        if not len(left) or not len(p.columns):
            break
        s, K = p.scaled(s, K)
        x[left] = p.moved(x[left], newton_step(K[:, rows], s[:, rows]))
    r = p.gap.residual(x)
    return Settled(x, r, (kept < p.exact) & (np.abs(r).max(axis=1, initial=0.0) <= max(p.tolerance, p.exact)))


def newton_step(K: Array, phi: Array) -> Array:
    """Return the least-norm step of Newton's method for K (..., m, n) and phi (..., m).

    No joint moves by more than half a unit.
    """
    step = -times(pseudo_inverse(K, 1e-10), phi)
    longest = np.abs(step).max(axis=-1, keepdims=True, initial=0.0)
    return np.asarray(step * np.minimum(1.0, 0.5 / np.maximum(longest, 1e-300)))
