"""Least squares on many configurations at once: Levenberg and Marquardt's method for loops far from closed.

    (J^T J + mu |r| 1) step = -J^T r

With damping in proportion to the residual r the last steps are Newton's, also where rows of J follow from others (Fan and Yuan
2005). Long steps early on are what finds a way, so little damping is best to begin with; steps that fail raise it. Lengths
are in units of the mechanism's, so that they count as angles do. Loops that contradict each other leave a residual: a
configuration has settled when it hardly falls any more, and counts if what is left is tolerated.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...spatial.ordered import product, pseudo_inverse, solved, times, total
from .misclosure import Misclosure

Array = np.ndarray[Any, np.dtype[Any]]

STEPS, LONGEST = 150, 10.0  # and the greatest entry of a step [rad]
DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-4, 1e10
FLOOR = 1e-14  # of damping, in units of the matrix's greatest diagonal entry, against rounding
SLOW = 0.98  # of the squared residual, which a step that gets on reduces to less
SETTLED, STALLED = 2, 8  # steps in a row that are slow, within what is tolerated and beyond
NEWTON_STEPS = 30


class Settled(NamedTuple):
    """Configurations where least squares came to rest."""

    x: Array  # (batch, nx)
    r: Array  # (batch, m) [m, rad]
    closed: Array  # (batch,) whether that is within what is tolerated

    @property
    def worst(self) -> Array:
        """The greatest residual of each."""
        return np.asarray(np.abs(self.r).max(axis=1, initial=0.0))


class ClosingProblem(NamedTuple):
    """Loops to close by moving some of a cluster's rows, and the lengths that count as one."""

    gap: Misclosure
    columns: Array  # of the cluster's moving rows, those that may move
    weights: Array  # (m,) that take the units out of residuals, by the mechanism's length,
    units: Array  # (n,) and put them into velocities
    exact: float  # residual [m, rad] that rounding leaves
    tolerance: float  # [m, rad]

    def moved(self, x: Array, step: Array) -> Array:
        if len(self.columns) == len(self.units):
            return self.gap.moved(x, step * self.units)
        whole = np.zeros((len(x), len(self.units)))
        whole[:, self.columns] = step * self.units[self.columns]
        return self.gap.moved(x, whole)

    def scaled(self, r: Array, J: Array) -> tuple[Array, Array]:
        """Without units, of the columns that may move; J is overwritten where all may."""
        if len(self.columns) == len(self.units):
            J *= self.weights[:, None] * self.units
            return r * self.weights, J
        return r * self.weights, J[:, :, self.columns] * (self.weights[:, None] * self.units[self.columns])

    def evaluated(self, x: Array, limits: bool) -> tuple[Array, Array, Array]:
        """The residual, and without units that and its derivatives; with those of joints beyond their limits."""
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
    """From starting points (batch, nx); with `limits`, joints beyond theirs count as open loops do."""
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
    """By the smaller of the two systems that are the same."""
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
    """With some constraints of the equations of motion closed to rounding, by Newton's method from where that is near."""
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
    """The least step that Newton's method takes for K (..., m, n) and phi (..., m), no joint by more than half a unit."""
    step = -times(pseudo_inverse(K, 1e-10), phi)
    longest = np.abs(step).max(axis=-1, keepdims=True, initial=0.0)
    return np.asarray(step * np.minimum(1.0, 0.5 / np.maximum(longest, 1e-300)))
