"""Reasons for which a step is not taken, as numbers that compiled functions return; `step_failures` has the words."""

from __future__ import annotations

(
    TAKEN,
    NO_NUMBER,  # a force or control that is not finite
    DIVERGED,  # the iteration of the midpoint rule
    UNSETTLED,
    OPEN_LOOPS,  # loops that cannot be closed
    NO_VELOCITY,  # a velocity that is not finite
    NO_ROOM,  # for contacts
    TOO_DEEP,  # overlap
    UNSOLVED,  # the contact problem
    NO_VELOCITY_AFTER_CONTACT,
    LIMIT,  # a joint of a loop beyond its limit
    NO_STATE,  # a state that is not finite
    TOO_FAST,
    GAIN,  # of energy
) = range(14)
