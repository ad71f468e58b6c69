"""One time step as a sequence of stages.

A robot first moves as if it touched nothing. Impulses at contacts, limits and dry friction then change its velocity, by maximum
dissipation (`contact.impulses`); with the contact law of an MJCF file, dampers act together with them. A displacement without
velocity separates overlapping bodies, and the velocity moves the robot. All execution modes use this code: compiled for one
robot, compiled for many robots, and plain Python.
"""

from __future__ import annotations

from .robot_stages import (
    all_finite,
    apply_impulses,
    arrive,
    detect,
    find_impulses,
    forget_impulses,
    is_touched,
    judge_end,
    move,
    move_freely,
    part,
)  # fmt: skip
from .smooth_motion import STAGED
from .stage_records import PARTING, RobotStages
from .step_status import NO_VELOCITY_AFTER_CONTACT, TAKEN
from .touching_stages import try_stages


def take_step(s: RobotStages) -> int:
    """Take a step. Return `TAKEN`, or the reason for its failure; after a failure the state is unchanged."""
    status = try_step(s)
    if status == TAKEN:
        arrive(s)
    return status


def try_step(s: RobotStages) -> int:
    """Compute the result of a step without changing the state."""
    if s.numbers.integrator == STAGED:
        return try_stages(s)
    status = move_freely(s)
    if status != TAKEN:
        return status
    status = detect(s)
    if status != TAKEN:
        return status
    if is_touched(s):
        status = find_impulses(s)
        if status != TAKEN:
            return status
        if s.touching.report[PARTING] > 0.0:
            part(s)
        apply_impulses(s)
        if not all_finite(s.step.after):
            return NO_VELOCITY_AFTER_CONTACT
    else:
        forget_impulses(s)
        if s.numbers.settles:
            apply_impulses(s)
    status = move(s)
    if status != TAKEN:
        return status
    return judge_end(s)
