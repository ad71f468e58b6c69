"""Reasons for the failure of a step, as numbers that compiled functions return; `step_failures` has the messages."""

from __future__ import annotations

(
    TAKEN,
    NO_NUMBER,  # a force or control that is not finite
    DIVERGED,  # divergence of the midpoint rule's iteration
    UNSETTLED,
    OPEN_LOOPS,  # loops that cannot be closed
    NO_VELOCITY,  # a velocity that is not finite
    NO_ROOM,  # too many contacts for the arrays
    TOO_DEEP,  # too deep an overlap
    UNSOLVED,  # no solution of the contact problem
    NO_VELOCITY_AFTER_CONTACT,
    LIMIT,  # a joint of a loop beyond its limit
    NO_STATE,  # a state that is not finite
    TOO_FAST,
    GAIN,  # gain of energy
) = range(14)
