"""Functions that texts of tasks share."""

from __future__ import annotations

from ..array_types import Vector


def cut(x: float, low: float, high: float) -> float:
    """Return a number clipped to a range."""
    return min(max(x, low), high)


def total(x: Vector) -> float:
    """Return the sum of numbers."""
    found = 0.0
    for y in x:
        found += y
    return found


def squares(x: Vector) -> float:
    """Return the sum of the squares of numbers."""
    found = 0.0
    for y in x:
        found += y * y
    return found
