"""Recognition of right angles in files.

Files write 1.57079632679 for a right angle. Exact zeros keep parallel axes parallel, and remove terms that rounding would make
nonzero.
"""

from __future__ import annotations

NEAR = 1e-11  # tolerance in the file's unit


def right_angles(angle: float, right: float) -> int | None:
    """Return the number of right angles in an angle, to within `NEAR`; None for other angles.

    `right` is a right angle in the angle's unit.
    """
    count = round(angle / right)
    return count if abs(angle - count * right) < NEAR else None
