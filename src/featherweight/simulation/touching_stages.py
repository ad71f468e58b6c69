"""The Runge-Kutta step of MuJoCo, in which contacts, limits and dry friction act in each of the four stages.

The compliant law of MJCF files gives accelerations, so that a stage is a semi-implicit step of which only the acceleration
remains. Contacts and impulses of the step are those of its last stage.
"""

from __future__ import annotations

from .robot_stages import (
    all_finite,
    detect,
    find_impulses,
    forget_impulses,
    is_touched,
    judge_end,
    move_freely,
    write_pushed_acceleration,
)
from .smooth_motion import (
    RUNGE_KUTTA_ROUNDS,
    clear,
    copy,
    go,
    runge_kutta_numbers,
    runge_kutta_round,
    write_curved_rate,
    write_next_activations,
)
from .stage_records import RobotStages
from .step_status import NO_VELOCITY_AFTER_CONTACT, TAKEN


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
    for k in range(RUNGE_KUTTA_ROUNDS):
        status = accelerate_touching(s)
        if status != TAKEN:
            return status
        write_curved_rate(s.joints.curved, p.increment, state.v, r.rate, r.once, r.twice)
        numbers, results = runge_kutta_numbers(s.numbers.step, k), (p.w, p.increment, r.rates, r.accelerations)
        runge_kutta_round(r.start_v, s.step.pushed, r.rate, r.rates, r.accelerations, numbers, results)
        for j in range(len(p.act)):
            r.act_rates[j] += numbers[2] * p.act_rate[j]
            state.act[j] = r.start_act[j] + numbers[0] * p.act_rate[j] + numbers[1] * r.act_rates[j]
        copy(p.w, state.v)
        copy(r.start_q, state.q)
        status = go(s)
        if status != TAKEN:
            return status
        copy(p.x, state.q)
    for j in range(len(p.act)):
        p.act_rate[j] = r.act_rates[j] / 6.0
    return TAKEN


def accelerate_touching(s: RobotStages) -> int:
    """Write the acceleration at the state with the impulses of a step there, spread over the step, to `pushed`."""
    status = move_freely(s)
    if status != TAKEN:
        return status
    status = detect(s)
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
