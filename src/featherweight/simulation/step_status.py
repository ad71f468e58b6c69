"""Reasons for the failure of a step, as numbers that compiled functions return.

`step_failures` has the words, and `standalone` those for programs without Python.
"""

from __future__ import annotations

(
    TAKEN,
    NO_FORCE,  # a joint force of the user that is not finite
    NO_CONTROL,  # a control that is not finite
    DIVERGED,  # divergence of the midpoint rule's iteration
    UNSETTLED,
    OPEN_LOOPS,  # loops that cannot be closed
    NO_VELOCITY,  # a velocity that is not finite
    NO_ROOM,  # too many contacts for the arrays
    TOO_DEEP,  # too deep an overlap
    UNSOLVED,  # no solution of the contact problem
    NO_VELOCITY_AFTER_CONTACT,
    LIMIT,  # a joint of a loop beyond its limit
    NO_PLACEMENT,  # bodies whose placements or velocities are not finite
    NO_VELOCITY_AFTER_STEP,
    NO_CONFIGURATION,  # a configuration that is not finite
    TOO_FAST,
    GAIN,  # gain of energy
) = range(17)
