"""Differential dynamic programming with multiple shooting, for one problem, as a kernel with loops.

An iteration computes the derivatives of all knots, the Riccati recursion, and trials of the steps 1, 1/2, 1/4 ... side by
side. Knots of a guess need not follow from each other: a step alpha leaves 1 - alpha of each gap (Mastalli et al. 2020, FDDP).
The merit of a step is the cost plus a weight times the sum of gaps; the weight grows until full steps promise to decrease the
merit. Constraints are penalized (`laws`); multipliers and penalty change when the cost hardly decreases (Howell, Jackson and
Manchester 2019, ALTRO).
"""

from __future__ import annotations

from typing import NamedTuple

from ..array_types import IntegerMatrix, Integers, Matrix, Tensor, Vector
from ..contact.factors.block_equations import copy_numbers
from ..contact.factors.branches import padded
from ..engine.loops.kernels import subtract_product
from ..engine.loops.prepared_calls import BatchCalls, call_batch
from .laws import Laws, cost_of_row, slope_of_row, update_multiplier, violation_of_row
from .riccati import KNOTS_AT_ONCE, KnotSlopes, Riccati, add_gap, begin_value, step_back, step_costate_back
from .runge_kutta import STAGES, StepSlopes, write_step
from .simulated_horizon import SimulatedHorizon, look_ahead, move, write_knot_slopes

TRIALS = 8  # step lengths that are tried side by side
ENOUGH = 0.1  # accepted fraction of the promised decrease
STEEPER = 0.3  # promised decrease of a full step, at least, relative to that of closing gaps
LEAST_PART = 0.5  # of the second derivatives, before they are left out
LEAST_DAMPING, MOST_DAMPING, MORE, LESS = 1e-9, 1e9, 10.0, 0.2
LARGER_PENALTY, MUCH_SMALLER = 10.0, 0.25
MOST_PENALTY = 1e10
ROUNDING = 1e-8  # promised decrease relative to the cost below which a tick counts as solved
ROUNDED_GAP = 1e-14  # [rad, m] between configurations, below which it is the rounding error of rotations
RETRIES = 3  # further iterations of a tick, with more damping, if no step decreases the merit
CONVERGED, ITERATIONS, STALLED, NOT_FINITE, PAUSED = range(5)
DEPARTED = 5  # a simulation does not follow a converged plan, whose knots it reaches only nearly


class Horizon(NamedTuple):
    """The motion, and the stage and rows of its knots; a stage is a phase, and the last stage is the end."""

    q: Matrix  # (knots + 1, nq)
    v: Matrix  # (knots + 1, nv)
    u: Matrix  # (knots, nu), first the roots of steps relative to h if some are free
    h: Vector  # (knots + 1,) [s]; of free steps the longest
    least: Vector  # (knots,) least roots of steps
    tied: Integers  # (knots,) 1 if the step is that of the knot before
    stage: Integers  # (knots + 1,)
    begin: Integers  # (stages + 1,) first knots of stages
    rows: Integers  # (knots + 2,) first rows of knots
    row: Vector  # all rows


class Linear(NamedTuple):
    """Feedback, gaps and the inputs of derivatives."""

    feedback: Vector  # -Kᵀ (2 nv + free, nu) of knots, rows padded; then memory for TRIALS differences of states, and controls
    k: Matrix  # (knots, nu)
    gap: Matrix  # (knots + 1, 2 nv + free) before each knot
    force: Vector  # (rows,) derivative of the cost by each row
    stiffness: Vector  # (rows,)
    bend: Vector  # (rows,) factors of the second derivatives of rows
    curved: Matrix  # (KNOTS_AT_ONCE, numbers)
    gradient: Matrix  # (KNOTS_AT_ONCE, 2 nv + nu)
    hessian: Vector  # KNOTS_AT_ONCE times the most entries
    curvature: Vector  # the part of them that second derivatives of steps add, or nothing
    costate: Vector  # (2 nv + free,) gradient of the cost by the state of a knot, along the motion
    by_ahead: Matrix  # (KNOTS_AT_ONCE, nv) its first numbers at the end of each knot, or no rows
    by_velocity: Matrix  # (KNOTS_AT_ONCE, nv) the next ones
    last: Vector  # (2 nv + nu,) gradient of the end
    places: IntegerMatrix  # entries of the Hessians of all stages
    first_place: Integers  # (stages + 1,)


class Trials(NamedTuple):
    """Trial motions, side by side."""

    q: Tensor  # (knots + 1, TRIALS, nq)
    v: Tensor
    u: Tensor
    row: Vector  # TRIALS × rows of each knot
    away: Matrix  # (TRIALS, nv) q minus the knot's q
    gap: Matrix  # (TRIALS, nv)
    reached: Matrix  # (TRIALS, nq) before gaps
    cost: Vector  # (TRIALS,)


class Calls(NamedTuple):
    """Functions of knots."""

    look: BatchCalls  # by stages: next states and rows of knots
    slopes: BatchCalls  # by stages
    curvature: BatchCalls  # by stages, if second derivatives of steps are added
    steps: BatchCalls  # `stages` and `accelerations` of each stage of Runge-Kutta steps
    tried: BatchCalls  # by stages, of TRIALS states of one knot
    away: BatchCalls  # `difference`, of TRIALS states; then of all knots, for gaps
    closing: BatchCalls  # `integrate`, of TRIALS states


class Solver(NamedTuple):
    """All data of the solver."""

    flat: bool  # whether differences of configurations are differences of coordinates
    exact: bool  # whether there are second derivatives of rows or steps
    horizon: Horizon
    ahead_q: Matrix  # (knots, nq) next configurations
    ahead_v: Matrix
    apart: Matrix  # (knots, nv)
    linear: Linear
    trials: Trials
    laws: Laws
    riccati: Riccati
    steps: StepSlopes
    calls: Calls
    numbers: Vector  # as numbered below
    counts: Integers  # iterations, outer iterations
    simulated: SimulatedHorizon | None = None  # if knots are steps of a simulation, without Python


TOLERANCE, VIOLATED, PENALTY = range(3)
COST, VIOLATION, GAP = range(3, 6)  # without constraints; the largest violation; the sum of gaps
TICK, DAMPING = 6, 7  # 1 in ticks of controllers; the damping, which stays between them
MERIT, WEIGHT, BEFORE, MOVED, SOLVED = range(8, 13)  # variables of `solve` while it pauses
NUMBERS = 13


def solve(s: Solver, k: int, pause: int, most: int) -> int:
    """Improve the motion in at most `most` iterations; return why the solver stops.

    After `pause` of them it returns `PAUSED`; another call, with this number as k, goes on as if there had been no pause.
    """
    x, in_tick = s.numbers, s.numbers[TICK] > 0.0
    if k == 0:
        find_motion(s)
        x[MERIT], x[WEIGHT], x[BEFORE], x[MOVED], x[SOLVED] = cost_of_motion(s), 0.0, 1e300, 1.0, 0.0
        if not in_tick:
            x[DAMPING] = 0.0
        s.counts[1] = 0
    cost, damping, weight, before = x[MERIT], x[DAMPING], x[WEIGHT], x[BEFORE]
    status, moved, solved = ITERATIONS, x[MOVED] > 0.0, x[SOLVED] > 0.0
    while k < pause or (pause == most and in_tick and not moved and k < most + RETRIES):
        if not abs(cost) < 1e300:
            status = NOT_FINITE
            break
        damping = backward(s, damping)
        if damping > MOST_DAMPING:
            status = STALLED
            break
        gaps, promise = s.numbers[GAP], -s.riccati.promised[0]
        nearly = promise <= s.numbers[TOLERANCE] * (1.0 + abs(cost)) and gaps <= s.numbers[VIOLATED]
        if nearly and violation_of_motion(s) <= s.numbers[VIOLATED]:
            status = CONVERGED
            break
        change = s.riccati.promised[0] + s.riccati.promised[1]
        if gaps > 0.0:
            weight = max(weight, change / ((1.0 - STEEPER) * gaps))
        change -= weight * gaps
        try_steps(s, gaps)
        best = longest_trial(s, cost + weight * gaps, weight * gaps, change)
        k += 1
        solved = promise <= ROUNDING * (1.0 + abs(cost))
        moved = best >= 0 or solved
        if best >= 0:
            accept(s, best)
            cost = s.trials.cost[best]
            if best <= 1:
                damping = LESS * damping if damping > LEAST_DAMPING else 0.0
        elif in_tick and solved:
            status = CONVERGED  # rounding errors reject steps; more damping would only spoil the feedback
            break
        elif not nearly:
            damping = max(LEAST_DAMPING, MORE * damping)
            if damping > MOST_DAMPING:
                status = STALLED
                break
        if nearly:
            violation = violation_of_motion(s)
            if s.numbers[PENALTY] > MOST_PENALTY:
                status = STALLED
                break
            update_multipliers(s, False)
            if violation > MUCH_SMALLER * before:
                s.numbers[PENALTY] *= LARGER_PENALTY
            before = violation
            s.counts[1] += 1
            cost = cost_of_motion(s)
    if status == ITERATIONS and k < most:
        x[MERIT], x[DAMPING], x[WEIGHT], x[BEFORE] = cost, damping, weight, before
        x[MOVED], x[SOLVED] = 1.0 if moved else 0.0, 1.0 if solved else 0.0
        return PAUSED
    s.counts[0] = k
    s.numbers[COST] = cost_without_constraints(s)
    s.numbers[VIOLATION] = violation_of_motion(s)
    s.numbers[DAMPING] = 0.0 if solved else damping  # steps that rounding errors reject say nothing about damping
    if in_tick and moved:  # multipliers of an unchanged motion would grow without effect
        update_multipliers(s, True)
    return status


def find_motion(s: Solver) -> None:
    """Compute the rows of all knots, and the gaps between them."""
    z, c = s.horizon, s.calls
    stages, knots = len(z.begin) - 1, len(z.u)
    if s.simulated is not None:
        look_ahead(s.simulated, z.q, z.v, z.u, s.ahead_q, s.ahead_v)
    for i in range(stages):
        if z.rows[z.begin[i + 1]] > z.rows[z.begin[i]]:
            call_batch(c.look, i, 0, z.begin[i + 1] - z.begin[i])
    call_batch(c.away, 1, 0, knots)
    n, total = z.v.shape[1], 0.0
    for k in range(knots):
        for j in range(n):
            s.linear.gap[k + 1, j] = s.apart[k, j] if abs(s.apart[k, j]) > ROUNDED_GAP else 0.0
            s.linear.gap[k + 1, n + j] = s.ahead_v[k, j] - z.v[k + 1, j]
        for j in range(2 * n):
            total += abs(s.linear.gap[k + 1, j])
    s.numbers[GAP] = total


def cost_of_motion(s: Solver) -> float:
    """Return the sum over all rows."""
    total, penalty = 0.0, s.numbers[PENALTY]
    for i in range(len(s.horizon.row)):
        total += cost_of_row(s.laws, i, s.horizon.row[i], penalty)
    return total


def cost_without_constraints(s: Solver) -> float:
    """Return the sum over rows of costs."""
    total = 0.0
    for i in range(len(s.horizon.row)):
        if not s.laws.constraint[i]:
            total += cost_of_row(s.laws, i, s.horizon.row[i], 0.0)
    return total


def violation_of_motion(s: Solver) -> float:
    """Return the largest violation of a constraint."""
    most = 0.0
    for i in range(len(s.horizon.row)):
        most = max(most, violation_of_row(s.laws, i, s.horizon.row[i]))
    return most


def update_multipliers(s: Solver, in_tick: bool) -> None:
    """Update the multipliers of all constraints, or of those that ticks of controllers update."""
    for i in range(len(s.horizon.row)):
        if in_tick and not s.laws.in_ticks[i]:
            continue
        update_multiplier(s.laws, i, s.horizon.row[i], s.numbers[PENALTY])


def backward(s: Solver, damping: float) -> float:
    """Compute derivatives and feedback of all knots, the last first.

    Returns the damping that makes the cost convex in all controls, so that the step descends. If second derivatives make it
    concave, a smaller part of those of steps, then of rows, and finally none is used before the damping grows.
    """
    of_rows, of_steps = 1.0 if s.exact else 0.0, 1.0 if len(s.linear.by_ahead) > 0 else 0.0
    for i in range(len(s.horizon.row)):
        s.linear.force[i], s.linear.stiffness[i] = slope_of_row(s.laws, i, s.horizon.row[i], s.numbers[PENALTY])
    while damping <= MOST_DAMPING:
        if s.exact:
            bend_rows(s, of_rows)
        if passed_back(s, damping, of_steps):
            return damping
        if of_steps > 0.0:
            of_steps = smaller_part(of_steps)
        elif of_rows > 0.0:
            of_rows = smaller_part(of_rows)
        else:
            damping = max(LEAST_DAMPING, MORE * damping)
    return damping


def smaller_part(part: float) -> float:
    """Return the next smaller part of second derivatives."""
    return 0.5 * part if part > LEAST_PART else 0.0


def bend_rows(s: Solver, part: float) -> None:
    """Write the factors of the second derivatives of rows: a part of the derivatives of the cost by these rows."""
    for i in range(len(s.horizon.row)):
        s.linear.bend[i] = part * s.linear.force[i] if s.laws.exact[i] else 0.0


def passed_back(s: Solver, damping: float, part: float) -> bool:
    """Run the recursion with a part of the second derivatives; return whether all knots are convex."""
    z, l, r = s.horizon, s.linear, s.riccati
    last, knots = len(z.begin) - 2, len(z.u)
    entries, size = l.first_place[last + 1] - l.first_place[last], (2 * r.n + r.free) * padded(r.m)
    if z.rows[knots + 1] > z.rows[knots]:
        call_batch(s.calls.slopes, last, 0, 1)
    else:
        for j in range(len(l.last)):
            l.last[j] = 0.0
    copy_numbers(l.last[: len(l.costate)], l.costate)
    begin_value(r, l.last, l.hessian[:entries], l.places[l.first_place[last] : l.first_place[last + 1]])
    for i in range(last - 1, -1, -1):
        stop = z.begin[i + 1]
        while stop > z.begin[i]:
            first = max(z.begin[i], stop - KNOTS_AT_ONCE)
            call_batch(s.calls.slopes, i, first - z.begin[i], stop - first)
            if s.steps.call[i] >= 0:
                write_steps(s, i, first, stop)
            if s.simulated is not None:
                for k in range(first, stop):
                    write_knot_slopes(s.simulated, z.q[k], z.v[k], z.u[k], r, k - first)
            entries = l.first_place[i + 1] - l.first_place[i]
            if part > 0.0 and len(l.by_ahead) > 0:
                bend_steps(s, i, first, stop, part)
            for k in range(stop - 1, first - 1, -1):
                if s.numbers[GAP] > 0.0:
                    add_gap(r, l.gap[k + 1])
                if not step_back(r, slopes_of_knot(s, i, k, first), damping, l.feedback[k * size : (k + 1) * size], l.k[k]):
                    return False
            stop = first
    return True


def slopes_of_knot(s: Solver, i: int, k: int, first: int) -> KnotSlopes:
    """Return the derivatives of a knot of a stage, among those of knots from `first` on."""
    z, l, known = s.horizon, s.linear, k - first
    begin, end = l.first_place[i], l.first_place[i + 1]
    at, entries = known * (end - begin), end - begin
    return KnotSlopes(
        known, l.curved[known], l.gradient[known], l.hessian[at : at + entries], l.places[begin:end], z.h[k], z.tied[k],
        z.least[k] - z.u[k, 0], 1.0 - z.u[k, 0],
    )  # fmt: skip


def bend_steps(s: Solver, i: int, first: int, stop: int, part: float) -> None:
    """Add a part of the second derivatives of steps, times costates, to the Hessians of the knots of a stage."""
    z, l, r = s.horizon, s.linear, s.riccati
    for k in range(stop - 1, first - 1, -1):
        copy_numbers(l.costate[: r.n], l.by_ahead[k - first])
        copy_numbers(l.costate[r.n : 2 * r.n], l.by_velocity[k - first])
        step_costate_back(r, slopes_of_knot(s, i, k, first), l.costate)
    call_batch(s.calls.curvature, i, first - z.begin[i], stop - first)
    for j in range((stop - first) * (l.first_place[i + 1] - l.first_place[i])):
        l.hessian[j] += part * l.curvature[j]


def write_steps(s: Solver, i: int, first: int, stop: int) -> None:
    """Write D of Runge-Kutta steps from a knot of a stage to another."""
    z, r, call = s.horizon, s.riccati, s.steps.call[i]
    call_batch(s.calls.steps, call, first - z.begin[i], stop - first)
    call_batch(s.calls.steps, call + 1, 0, STAGES * (stop - first))
    for k in range(stop - first):
        root = z.u[first + k, 0] if r.free > 0 else 1.0
        write_step(s.steps, i, k, z.h[first + k] * root * root, r.numbers, k * r.rows * r.long)


def try_steps(s: Solver, gaps: float) -> None:
    """Compute motions with feedback for all step lengths, side by side."""
    z, t = s.horizon, s.trials
    knots = len(z.u)
    for a in range(TRIALS):
        copy_numbers(z.q[0], t.q[0, a])
        copy_numbers(z.v[0], t.v[0, a])
    for k in range(knots):
        i = z.stage[k]
        write_controls(s, k)
        if s.simulated is not None:
            move(s.simulated, s.simulated.steps.fleets[1], k == 0, t.q[k], t.v[k], t.u[k], t.q[k + 1], t.v[k + 1])
        call_batch(s.calls.tried, i, k - z.begin[i], TRIALS)
        if gaps > 0.0:
            keep_gaps(s, k)
    if z.rows[knots + 1] > z.rows[knots]:
        call_batch(s.calls.tried, z.stage[knots], 0, TRIALS)


def write_controls(s: Solver, k: int) -> None:
    """Write the controls of a knot for all trials."""
    z, t, l = s.horizon, s.trials, s.linear
    n, m, alpha = z.v.shape[1], z.u.shape[1], 1.0
    if s.flat:
        for a in range(TRIALS):
            for j in range(n):
                t.away[a, j] = t.q[k, a, j] - z.q[k, j]
    else:
        call_batch(s.calls.away, 0, k, TRIALS)
    x, wide, free = l.feedback, padded(m), s.riccati.free
    size = 2 * n + free
    gains, states = k * size * wide, len(z.u) * size * wide
    controls = states + TRIALS * size
    for a in range(TRIALS):
        state, control = states + a * size, controls + a * wide
        for j in range(n):
            x[state + j] = t.away[a, j]
            x[state + n + j] = t.v[k, a, j] - z.v[k, j]
        if free > 0 and k > 0:
            x[state + 2 * n] = t.u[k - 1, a, 0] - z.u[k - 1, 0]
        for i in range(m):
            x[control + i] = z.u[k, i] + alpha * l.k[k, i]
        alpha *= 0.5
    subtract_product(x, (controls, wide), (gains, wide), (states, size, 1), (TRIALS, wide, size))
    for a in range(TRIALS):
        control = controls + a * wide
        copy_numbers(x[control : control + m], t.u[k, a])
        if free > 0:
            t.u[k, a, 0] = t.u[k - 1, a, 0] if z.tied[k] > 0 else min(max(t.u[k, a, 0], z.least[k]), 1.0)


def keep_gaps(s: Solver, k: int) -> None:
    """Leave 1 - alpha of the gap before the next knot."""
    t, l = s.trials, s.linear
    n, alpha = s.horizon.v.shape[1], 1.0
    for a in range(TRIALS):
        for j in range(n):
            t.gap[a, j] = (alpha - 1.0) * l.gap[k + 1, j]
            t.v[k + 1, a, j] += (alpha - 1.0) * l.gap[k + 1, n + j]
        copy_numbers(t.q[k + 1, a], t.reached[a])
        alpha *= 0.5
    call_batch(s.calls.closing, 0, k + 1, TRIALS)


def cost_of_trial(s: Solver, a: int) -> float:
    """Return the cost of the motion of one trial."""
    z, total, penalty = s.horizon, 0.0, s.numbers[PENALTY]
    for k in range(len(z.q)):
        begin, rows = z.rows[k], z.rows[k + 1] - z.rows[k]
        for i in range(rows):
            total += cost_of_row(s.laws, begin + i, s.trials.row[begin * TRIALS + a * rows + i], penalty)
    return total


def longest_trial(s: Solver, merit: float, gaps: float, change: float) -> int:
    """Return the longest step that decreases the merit enough; -1 if none does.

    The best step would often be a short one, which leads away from where Newton's steps converge.
    """
    alpha = 1.0
    for a in range(TRIALS):
        s.trials.cost[a] = cost_of_trial(s, a)
        if s.trials.cost[a] + (1.0 - alpha) * gaps <= merit + ENOUGH * alpha * change:
            return a
        alpha *= 0.5
    return -1


def accept(s: Solver, a: int) -> None:
    """Replace the motion by a trial."""
    z, t, l = s.horizon, s.trials, s.linear
    for k in range(len(z.q)):
        copy_numbers(t.q[k, a], z.q[k])
        copy_numbers(t.v[k, a], z.v[k])
        begin, rows = z.rows[k], z.rows[k + 1] - z.rows[k]
        copy_numbers(t.row[begin * TRIALS + a * rows : begin * TRIALS + (a + 1) * rows], z.row[begin : begin + rows])
    for k in range(len(z.u)):
        copy_numbers(t.u[k, a], z.u[k])
    alpha, total = 1.0, 0.0
    for _ in range(a):
        alpha *= 0.5
    for k in range(1, len(z.q)):
        for j in range(2 * z.v.shape[1]):
            l.gap[k, j] *= 1.0 - alpha
            total += abs(l.gap[k, j])
    s.numbers[GAP] = total
