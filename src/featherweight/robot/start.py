"""The configuration in which a robot's file starts."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ..model.types import START

Array = np.ndarray[Any, np.dtype[Any]]


def start_of(robot: Any) -> Array:
    """Return the configuration (nq,) in which a robot's file starts, with its joints within their limits.

    Joints beyond their limits are moved to them, and loops are closed again. Where that cannot be, or leads no farther into
    the limits, the joints stay; where loops cannot be closed in the file's configuration, it is the neutral one.
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
    """Return the configuration (nq,) that a robot's file draws it in, whatever its limits are."""
    if START in robot.configurations:
        with contextlib.suppress(ValueError):  # of loops
            return np.array(robot.configurations[START])
    return np.array(robot.neutral())
