"""One time step as a sequence of stages.

A robot first moves as if it touched nothing. Impulses at contacts, limits and dry friction then change its velocity, by maximum
dissipation (`contact.impulses`); with the contact law of an MJCF file, dampers act together with them. A displacement without
velocity separates overlapping bodies, and the velocity moves the robot. All execution modes use this code: compiled for one
robot, compiled for many robots, and plain Python.

In the Runge-Kutta step of MuJoCo, contacts, limits and dry friction act in each of the four stages. The compliant law of MJCF
files determines accelerations, so that a stage is a semi-implicit step of which only the acceleration remains. Contacts and
impulses of the step are those of its last stage. Rotation vectors from the start have the rates of Munthe-Kaas (1998), and
origins of bodies move by averages of linear velocities, here in the axes at the start of the step.
"""

from __future__ import annotations

from ..array_types import Vector
from ..engine.loops.kernels import call_machine
from .robot_stages import (
    all_finite,
    apply_impulses,
    arrive,
    detect,
    find_impulses,
    find_near,
    forget_impulses,
    is_touched,
    judge_end,
    move,
    move_freely,
    part,
    write_pushed_acceleration,
)  # fmt: skip
from .smooth_motion import (
    RUNGE_KUTTA_ROUNDS,
    STAGED,
    clear,
    close,
    copy,
    runge_kutta_numbers,
    runge_kutta_round,
    write_next_activations,
)  # fmt: skip
from .stage_records import PARTING, RobotStages
from .step_status import NO_VELOCITY_AFTER_CONTACT, TAKEN
from .turns import write_fixed_acceleration, write_rates_of_turns


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
    status = find_contacts_and_limits(s)
    return end_step(s) if status == TAKEN else status


def end_step(s: RobotStages) -> int:
    """Compute the result of a step from the contacts and limits that are found."""
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


def find_contacts_and_limits(s: RobotStages) -> int:
    """Move the robot as if it touched nothing, and find what it touches."""
    status = move_freely(s)
    if status != TAKEN:
        return status
    status = detect(s)
    if status == TAKEN:
        find_near(s)
    return status


# ---- "rk4" with contacts in each stage


def try_stages(s: RobotStages) -> int:
    """Compute the result of a step without changing the state."""
    r, state, step = s.rounds, s.state, s.step
    copy(state.q, r.start_q)
    copy(state.v, r.start_v)
    copy(state.act, r.start_act)
    status = take_stages(s)
    copy(state.q, step.ahead)
    copy(state.v, step.after)
    copy(state.v, step.end)
    copy(r.start_q, state.q)
    copy(r.start_v, state.v)
    copy(r.start_act, state.act)
    if status != TAKEN:
        return status
    write_next_activations(s)
    return judge_end(s)


def take_stages(s: RobotStages) -> int:
    """Move the state by four stages, from the state `start` of `rounds`."""
    p, r, state = s.point, s.rounds, s.state
    clear(p.increment)
    clear(r.rates)
    clear(r.accelerations)
    clear(r.act_rates)
    copy(state.v, r.rate)
    for k in range(RUNGE_KUTTA_ROUNDS):
        status = accelerate_touching(s)
        if status != TAKEN:
            return status
        numbers = runge_kutta_numbers(s.numbers.step, k)
        take_stage(s, p.increment, s.step.pushed, numbers)
        for j in range(len(p.act)):
            r.act_rates[j] += numbers[2] * p.act_rate[j]
            state.act[j] = r.start_act[j] + numbers[0] * p.act_rate[j] + numbers[1] * r.act_rates[j]
        status = go_straight(s)
        if status != TAKEN:
            return status
    for j in range(len(p.act)):
        p.act_rate[j] = r.act_rates[j] / 6.0
    return TAKEN


def take_stage(s: RobotStages, increment: Vector, acceleration: Vector, numbers: tuple[float, float, float]) -> None:
    """Move velocity, increment and sums by a stage."""
    r, w = s.rounds, s.point.w
    write_fixed_acceleration(s.joints.curved, increment, s.state.v, acceleration, r.once)
    runge_kutta_round(r.start_v, r.once, r.rate, r.rates, r.accelerations, numbers, (w, increment, r.rates, r.accelerations))
    copy(w, r.rate)


def go_straight(s: RobotStages) -> int:
    """Move the state from the start of the step along `increment`; return whether loops close."""
    copy(s.rounds.start_q, s.state.q)
    call_machine(s.calls.advance)
    write_rates_of_turns(s.joints.curved, s.point.increment, s.rounds.rate)
    status = close(s)
    copy(s.point.x, s.state.q)
    return status


def accelerate_touching(s: RobotStages) -> int:
    """Write the acceleration at the state with the impulses of a step there, spread over the step, to `pushed`."""
    status = find_contacts_and_limits(s)
    if status != TAKEN:
        return status
    if not is_touched(s):
        forget_impulses(s)
        copy(s.step.acceleration, s.step.pushed)
        return TAKEN
    status = find_impulses(s)
    if status != TAKEN:
        return status
    write_pushed_acceleration(s, s.touching.impulses.wrench, s.touching.impulses.joint)
    return TAKEN if all_finite(s.step.pushed) else NO_VELOCITY_AFTER_CONTACT
