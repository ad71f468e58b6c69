"""Penalties of rows: squares, Huber's function, and constraints by augmented Lagrangians.

A row r of a cost with weight w and width d costs w r²/2, and w d (|r| - d/2) beyond |r| = d (Huber 1964).

A constraint low <= r <= high with multiplier m and penalty p costs p e²/2, where s = r + m/p and e is the distance of s from
the interval; the multiplier becomes p e (Hestenes 1969, Powell 1969; Rockafellar 1974 for inequalities).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Array, Booleans, Vector


class Laws(NamedTuple):
    """The penalties of all rows of all knots; the first row of each knot is stored elsewhere."""

    constraint: Booleans  # True for a constraint, False for a cost
    weight: Vector  # weight of a cost, times the step; factor of a constraint's penalty; a row with 0 is ignored
    low: Vector
    high: Vector  # upper bound of a constraint; width of a cost
    multiplier: Vector
    exact: Booleans  # whether second derivatives of the row are added to the Hessian
    in_ticks: Booleans  # whether ticks of a controller update the multiplier: those of contact forces would make it oscillate


def new_laws(rows: int) -> Laws:
    """Return costs with weight zero."""
    constraint, exact, in_ticks = np.zeros((3, rows), bool)
    weight, low, multiplier = np.zeros((3, rows))
    return Laws(constraint, weight, low, np.full(rows, np.inf), multiplier, exact, in_ticks)


def costs_of_rows(laws: Laws, which: slice, rows: Array, penalty: float) -> Array:
    """Return the costs (...) of rows (..., knots, rows of a knot); constraints count without their multipliers."""
    flat = rows.reshape(*rows.shape[:-2], -1)
    weight, constraint, low, high = laws.weight[which], laws.constraint[which], laws.low[which], laws.high[which]
    size = np.abs(flat)
    width = np.where(constraint, np.inf, high)
    with np.errstate(invalid="ignore", over="ignore"):
        cost = np.where(size <= width, 0.5 * flat * flat, width * (size - 0.5 * width))
        away = flat - np.clip(flat, low, high)
        total: Array = (weight * np.where(constraint, 0.5 * penalty * away * away, cost)).sum(axis=-1)
    return total


def slopes_of_rows(laws: Laws, rows: Array) -> tuple[Array, Array]:
    """Return the derivatives of the costs by all rows (..., rows), and their Gauss-Newton curvature; zero for constraints."""
    weight, size = np.where(laws.constraint, 0.0, laws.weight), np.abs(rows)
    weight = weight * np.divide(laws.high, size, out=np.ones(size.shape), where=~laws.constraint & (size > laws.high))
    return weight * rows, weight


def outside(x: float, low: float, high: float) -> float:
    """Return the signed distance of x from an interval."""
    return x - high if x > high else x - low if x < low else 0.0


def cost_of_row(laws: Laws, i: int, r: float, penalty: float) -> float:
    """Return the cost of row i at r."""
    w, width = laws.weight[i], laws.high[i]
    if w == 0.0:
        return 0.0
    if laws.constraint[i]:
        p = penalty * w
        e = outside(r + laws.multiplier[i] / p, laws.low[i], laws.high[i])
        return 0.5 * (p * e) * e
    size = abs(r)
    return 0.5 * (w * r) * r if size <= width else w * width * (size - 0.5 * width)


def slope_of_row(laws: Laws, i: int, r: float, penalty: float) -> tuple[float, float]:
    """Return the derivative of the cost by r, and its Gauss-Newton curvature."""
    w, width = laws.weight[i], laws.high[i]
    if w == 0.0:
        return 0.0, 0.0
    if laws.constraint[i]:
        p = penalty * w
        e = outside(r + laws.multiplier[i] / p, laws.low[i], laws.high[i])
        return p * e, p if e != 0.0 else 0.0
    size = abs(r)
    if size <= width:
        return w * r, w
    return (w * width if r > 0.0 else -w * width), w * width / size


def violation_of_row(laws: Laws, i: int, r: float) -> float:
    """Return the violation of a constraint."""
    return abs(outside(r, laws.low[i], laws.high[i])) if laws.constraint[i] and laws.weight[i] > 0.0 else 0.0


def update_multiplier(laws: Laws, i: int, r: float, penalty: float) -> None:
    """Set the multiplier to the force of the constraint."""
    if laws.constraint[i] and laws.weight[i] > 0.0:
        p = penalty * laws.weight[i]
        laws.multiplier[i] = p * outside(r + laws.multiplier[i] / p, laws.low[i], laws.high[i])
