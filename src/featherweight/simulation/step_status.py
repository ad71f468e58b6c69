"""Reasons for the failure of a step, as numbers that compiled functions return.

`step_failures` has longer words, with names and numbers.
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
    TOO_MANY_CONTACTS,
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

NOT_FINITE = {
    NO_FORCE: "joint force tau",
    NO_CONTROL: "control",
    NO_VELOCITY: "velocity",
    NO_VELOCITY_AFTER_CONTACT: "velocity after contact",
    NO_VELOCITY_AFTER_STEP: "velocity after the step",
    NO_CONFIGURATION: "configuration after the step",
}

WORDS = {
    TAKEN: "the step is taken",
    DIVERGED: "the iteration of the implicit midpoint rule diverges",
    UNSETTLED: "the implicit midpoint rule does not converge",
    OPEN_LOOPS: "the loops cannot be closed",
    TOO_MANY_CONTACTS: "there are more contacts than the workspace takes",
    TOO_DEEP: "bodies overlap too deep",
    UNSOLVED: "the contact solver did not converge",
    LIMIT: "a joint of a loop is beyond its limit",
    NO_PLACEMENT: "the placement or the velocity of a body that may touch is not finite",
    TOO_FAST: "a joint is too fast for the step: the motion diverges",
    GAIN: "the step gains energy without the work of a force",
} | {status: f"a {what} is not finite" for status, what in NOT_FINITE.items()}

NAMES = {value: name for name, value in vars().items() if name.isupper() and isinstance(value, int)}
