"""Angles of files that are meant to be right.

Files write 1.57079632679 and mean a right angle. Exact zeros keep axes that ought to be parallel parallel, and let terms vanish
that rounding would keep alive.
"""

from __future__ import annotations

NEAR = 1e-11  # in the file's unit


def right_angles(angle: float, right: float) -> int | None:
    """How many right angles an angle is, to within `NEAR`; None for others. `right` is one of them in the angle's unit."""
    count = round(angle / right)
    return count if abs(angle - count * right) < NEAR else None
