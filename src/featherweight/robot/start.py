"""The initial configuration of a robot's file."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ..model.types import START

Array = np.ndarray[Any, np.dtype[Any]]


def start_of(robot: Any) -> Array:
    """Return the initial configuration (nq,) of a robot's file, with its joints within their limits.

    Joints beyond their limits are moved to the limits, and loops are closed again. If the loops cannot be closed then, or the
    result violates limits as much as before, the joints are not moved. If loops cannot be closed in the file's configuration,
    the neutral configuration takes its place.
    """
    start = drawn(robot)
    equal = robot.lower == robot.upper
    low, high = np.where(equal, -np.inf, robot.lower), np.where(equal, np.inf, robot.upper)
    within: Array = np.clip(start, low, high)
    if not robot.closed or np.array_equal(within, start):
        return within

    def beyond(q: Array) -> float:
        return float(np.maximum(low - q, q - high).max())

    try:
        closed = np.array(robot.close(within))
    except ValueError:
        return start
    return closed if beyond(closed) < beyond(start) else start


def drawn(robot: Any) -> Array:
    """Return the initial configuration (nq,) of a robot's file, whatever its limits are."""
    if START in robot.configurations:
        with contextlib.suppress(ValueError):  # loops that cannot be closed
            return np.array(robot.configurations[START])
    return np.array(robot.neutral())
