"""A tick of a controller, as kernels with loops.

A tick shifts the last plan by the knots that have passed, improves it, and follows it: between its knots and near them, the
controls are u = u_k - K_k (x - x_k), where x_k moves along the plan.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Integers, Matrix, Vector
from ..contact.factors.block_equations import copy_numbers
from ..contact.factors.branches import padded
from ..engine.loops.kernels import CompiledLoop, MachineCall, call_machine
from .simulated_horizon import roll_out
from .solver import (
    CONVERGED,
    COST,
    DAMPING,
    NOT_FINITE,
    PENALTY,
    TICK,
    TOLERANCE,
    VIOLATED,
    VIOLATION,
    Horizon,
    Solver,
    solve,
)

FIRST = 50  # iterations of the first tick
FIRST_PENALTY = 10.0
NOW, BEGIN, STEP, PERIOD, AHEAD = range(5)  # `times` [s]: of the state, of the plan's begin, of a step, between ticks, and the
# time by which the plan's knots are ahead of it, at most half a step: ticks do not come at knots
ITERATIONS, IS_FIRST, WINDOW = range(3)  # `counts` of `Control`


class Shifted(NamedTuple):
    """The parts of a plan that a later one starts from."""

    q: Matrix
    v: Matrix
    u: Matrix
    rows: Integers  # (knots + 2,) first rows of knots
    widths: Integers  # (knots + 1,) rows of knots
    first_knots: Integers  # (numbers + 1,) with each number of a knot: an impact has that of the step before it
    multiplier: Vector  # (rows,)
    numbers: Vector  # of the solver

    @property
    def memory(self) -> list[Array]:
        """The arrays that change."""
        return [self.q, self.v, self.u, self.multiplier, self.numbers]

    def copied(self) -> Shifted:
        """Return such parts with memory of their own."""
        q, v, u, multiplier, numbers = map(np.zeros_like, self.memory)
        return self._replace(q=q, v=v, u=u, multiplier=multiplier, numbers=numbers)


class Following(NamedTuple):
    """A plan, a state near it, and the controls there."""

    horizon: Horizon
    feedback: Vector  # as in `Linear`
    first_knots: Integers
    free: int  # 1 if the first control of knots is a step
    difference: MachineCall  # from `start` to `goal`
    start: Vector  # (nq,)
    goal: Vector
    apart: Vector  # (nv,)
    away: Vector  # (2 nv,) from the plan to the state
    q: Vector  # (nq,) the state
    v: Vector
    times: Vector
    lower: Vector  # (nu,) limits of controls
    upper: Vector
    driven: Integers  # (nu,) joints whose forces the controls are; none for actuators
    u: Vector  # (nu,) results
    tau: Vector  # (nv,)


class Rest(NamedTuple):
    """A robot at rest, and the controls that keep it there: (tau / shares - force - stiffness q) / gain."""

    hold: MachineCall  # from `q` to `tau`
    q: Vector
    v: Vector  # of a plan that begins there
    tau: Vector
    velocity: Integers  # (nu,) of each drive
    position: Integers
    shares: Vector  # number of drives of its joint
    force: Vector
    stiffness: Vector
    gain: Vector
    lower: Vector  # (nu,) limits
    upper: Vector
    roots: Vector  # (knots,) of the first steps if they are free, otherwise none


class Interpolation(NamedTuple):
    """Memory for plans with a free step, which move along in time."""

    horizon: Horizon
    q: Matrix  # (knots + 1, nq) the last plan
    v: Matrix
    u: Matrix
    difference: MachineCall  # from `start` to `goal`
    start: Vector  # (nq,)
    goal: Vector
    apart: Vector  # (nv,)
    integrate: MachineCall  # from `start` by `apart` to `open`
    open: Vector  # (nq,)
    close: MachineCall  # one Newton step for loops from `open` to `goal`, if there are any
    passed: Vector  # (1,) time since the begin of the last plan [s]


class Window(NamedTuple):
    """The problem whose horizon begins at one knot of the cycle. All windows share the memory that the solver writes to."""

    solver: Solver
    plan: Shifted
    last: Shifted | None  # memory for this plan while another window starts from it, if there are others
    rest: Rest
    between: Interpolation | None  # if the step is free
    follow: Following  # whose state, times, limits and controls all windows share
    number: Integers  # (knots + 1,)
    parameters: Matrix  # (knots + 1, numbers)


class Control(NamedTuple):
    """All data of a controller: a window for each knot of the cycle, or one if phases do not repeat."""

    windows: list[Window]
    given: Matrix  # targets and parameters, by the numbers of knots, or one row for all
    counts: Integers  # ITERATIONS of a tick, whether it IS_FIRST, and the index of the WINDOW
    times: Vector  # of `Following`
    result: Vector  # (2,) cost and violation of the plan


def control(c: Control) -> int:
    """Improve the plan if a tick is due, and write the controls; return why the solver stopped."""
    times, counts, now = c.times, c.counts, c.times[NOW]
    status, passed, fresh = CONVERGED, now - times[BEGIN], now < times[BEGIN] or counts[IS_FIRST] > 0
    if fresh or now >= times[BEGIN] + times[PERIOD] * (1.0 - 1e-9):
        most, before, knots = counts[ITERATIONS], counts[WINDOW], 0
        if fresh:
            counts[WINDOW] = 0
        else:
            knots = knots_passed(passed - times[AHEAD], times[STEP])
            counts[WINDOW] = (before + knots) % len(c.windows)
        w = c.windows[counts[WINDOW]]
        f, s = w.follow, w.solver
        for k in range(len(w.parameters)):
            copy_numbers(c.given[w.number[k] if len(c.given) > 1 else 0], w.parameters[k])
        if fresh:
            copy_numbers(f.q, w.rest.q)
            copy_numbers(f.v, w.rest.v)
            stand_still(w.plan, w.rest)
            if s.simulated is not None:
                roll_out(s.simulated, w.plan.q, w.plan.v, w.plan.u)
            most, times[AHEAD] = max(FIRST, most), 0.0
        elif w.between is not None:
            w.between.passed[0] = passed
            move_in_time(w.plan, w.rest, w.between)
        else:
            times[AHEAD] += knots * times[STEP] - passed
            number = min(knots, len(f.first_knots) - 1)
            if before == counts[WINDOW]:
                move_on(w.plan, w.plan, number, 1)
            elif w.last is not None:
                b = c.windows[before]
                copy_plan(b.plan, b.last)
                move_on(w.plan, b.last, number, 0)
        copy_numbers(f.q, s.horizon.q[0])
        copy_numbers(f.v, s.horizon.v[0])
        s.numbers[TOLERANCE], s.numbers[VIOLATED], s.numbers[TICK] = 0.0, 0.0, 1.0 if w.between is None else 0.0
        status = solve(s, 0, most, most)
        times[BEGIN] = now
        if w.between is not None:
            times[STEP] = s.horizon.h[0] * s.horizon.u[0, 0] ** 2
        counts[IS_FIRST] = 1 if status == NOT_FINITE else 0
        c.result[0], c.result[1] = s.numbers[COST], s.numbers[VIOLATION]
    follow(c.windows[counts[WINDOW]].follow, 0)
    return status


def knots_passed(time: float, step: float) -> int:
    """Return the nearest number of steps in a time; half a step counts as one, whatever rounding has done to it."""
    return int(time / step + 0.5 + 1e-9)


def stand_still(p: Shifted, rest: Rest) -> int:
    """Start from standing still, with the longest steps if they are free."""
    call_machine(rest.hold)
    for k in range(len(p.q)):
        copy_numbers(rest.q, p.q[k])
        copy_numbers(rest.v, p.v[k])
    for k in range(len(p.u)):
        write_holding_controls(rest, p.u[k])
    for k in range(len(rest.roots)):
        p.u[k, 0] = rest.roots[k]
    for i in range(len(p.multiplier)):
        p.multiplier[i] = 0.0
    p.numbers[PENALTY], p.numbers[DAMPING] = FIRST_PENALTY, 0.0
    return 0


def write_holding_controls(rest: Rest, u: Vector) -> None:
    """Write the controls of a knot that hold the robot at rest, under the force that the last call returned."""
    first = len(u) - len(rest.lower)  # after a free step
    for i in range(first, len(u)):
        u[i] = 0.0  # of drives whose force is not linear
    for i in range(len(rest.gain)):
        of_servo = rest.stiffness[i] * rest.q[rest.position[i]]
        force = rest.tau[rest.velocity[i]] / rest.shares[i] - rest.force[i]
        force -= of_servo
        u[first + i] = force / rest.gain[i]
    for i in range(len(rest.lower)):
        u[first + i] = min(max(u[first + i], rest.lower[i]), rest.upper[i])


def move_in_time(p: Shifted, rest: Rest, b: Interpolation) -> int:
    """Start from the part of the plan that is left after a time, if the problem has one phase with a free step.

    It has as many knots, whose steps are shorter. Where the shortest steps lead beyond the end of the plan, the robot stays
    there.
    """
    z, knots, root = b.horizon, len(p.u), p.u[0, 0]
    begin = b.passed[0] / (z.h[0] * root**2)  # in steps
    ratio = max(1.0 - begin / knots, (z.least[0] / root) ** 2)  # of new steps to old ones
    width = p.rows[knots] // knots
    b.q[:], b.v[:], b.u[:] = p.q, p.v, p.u
    copy_numbers(p.q[knots], rest.q)
    call_machine(rest.hold)
    for k in range(knots + 1):
        at = min(begin + ratio * k, float(knots))
        i = min(int(at), knots - 1)
        part = at - i
        copy_numbers(b.q[i], b.start)
        copy_numbers(b.q[i + 1], b.goal)
        call_machine(b.difference)
        for j in range(len(b.apart)):
            b.apart[j] *= part
            p.v[k, j] = b.v[i, j] + part * (b.v[i + 1, j] - b.v[i, j])
        call_machine(b.integrate)
        copy_numbers(b.open, p.q[k])
        for _ in range(2 if b.close.address != 0 else 0):
            call_machine(b.close)
            copy_numbers(b.goal, b.open)
            copy_numbers(b.goal, p.q[k])
    for k in range(knots):
        at, ahead = min(begin + ratio * k, float(knots)), min(begin + ratio * (k + 1), float(knots))
        middle = min(max(0.5 * (at + ahead) - 0.5, 0.0), knots - 1.0)
        i = int(middle)
        part, j = middle - i, min(i + 1, knots - 1)
        for m in range(p.u.shape[1]):
            p.u[k, m] = b.u[i, m] + part * (b.u[j, m] - b.u[i, m])
        for m in range(width):  # i is k or more
            here, there = p.multiplier[i * width + m], p.multiplier[j * width + m]
            p.multiplier[k * width + m] = ratio * (here + part * (there - here))
        p.u[k, 0] *= np.sqrt(ratio)
        if at >= knots:
            write_holding_controls(rest, p.u[k])
    return 0


def move_on(own: Shifted, before: Shifted, number: int, same: int) -> int:
    """Start from another plan, or the `same`, from its knot of a number on; new knots at the end are copies of the last one.

    Knots keep multipliers if they have the same terms in both.
    """
    first = before.first_knots[number]
    left = len(before.u) - first
    if first > 0 or same == 0:
        shift(before.q, own.q, first)
        shift(before.v, own.v, first)
        shift(before.u, own.u, first)
    end, other = own.rows[len(own.rows) - 2], before.rows[len(before.rows) - 2]
    size = own.rows[len(own.rows) - 1] - end
    if same == 0:
        for i in range(len(own.multiplier)):
            own.multiplier[i] = 0.0
    alike = True
    for k in range(left):
        alike = alike and own.widths[k] == before.widths[first + k]
    if alike:
        for i in range(own.rows[left]):
            own.multiplier[i] = before.multiplier[before.rows[first] + i]
    if before.rows[len(before.rows) - 1] - other == size:
        for i in range(size):
            own.multiplier[end + i] = before.multiplier[other + i]
    own.numbers[PENALTY], own.numbers[DAMPING] = before.numbers[PENALTY], before.numbers[DAMPING]
    return 0


def copy_plan(p: Shifted, into: Shifted) -> None:
    """Copy a plan, because another window, which shares its memory, starts from it."""
    into.q[:], into.v[:], into.u[:] = p.q, p.v, p.u
    copy_numbers(p.multiplier, into.multiplier)
    copy_numbers(p.numbers, into.numbers)


def shift(old: Matrix, new: Matrix, first: int) -> None:
    """Copy rows from `first` on to the begin, and the last row to all that follow."""
    left = len(old) - first
    for k in range(left):
        copy_numbers(old[first + k], new[k])
    for k in range(left, len(new)):
        copy_numbers(old[len(old) - 1], new[k])


def follow(f: Following, _: int) -> int:
    """Write the controls of the plan, with its feedback, within limits."""
    z, n, m = f.horizon, len(f.v), len(f.u)
    passed = (f.times[NOW] - f.times[BEGIN]) / f.times[STEP]
    number = min(int(passed * (1.0 + 1e-12)), len(f.first_knots) - 2)
    first, k = f.first_knots[number], f.first_knots[number + 1] - 1
    near = first if first < k and distance(f.v, z.v[first]) <= distance(f.v, z.v[k]) else k  # before or after an impact
    part = min(passed - number, 1.0)  # between knots, the reference moves: feedback may be stiff
    write_difference(f, z.q[near], f.q)
    for j in range(n):
        f.away[j], f.away[n + j] = f.apart[j], f.v[j] - z.v[near, j]
    write_difference(f, z.q[k], z.q[k + 1])
    for j in range(n):
        f.away[j] -= part * f.apart[j]
        f.away[n + j] -= part * (z.v[k + 1, j] - z.v[k, j])
    wide = padded(z.u.shape[1])
    begin = k * (2 * n + f.free) * wide + f.free
    for i in range(m):
        u = z.u[k, f.free + i]
        for j in range(2 * n):
            u -= f.away[j] * f.feedback[begin + j * wide + i]
        f.u[i] = min(max(u, f.lower[i]), f.upper[i])
    for i in range(len(f.driven)):
        f.tau[f.driven[i]] = f.u[i]
    return 0


def distance(a: Vector, b: Vector) -> float:
    """Return the sum of the absolute differences."""
    total = 0.0
    for j in range(len(a)):
        total += abs(a[j] - b[j])
    return total


def write_difference(f: Following, start: Any, goal: Any) -> None:
    """Write the difference of configurations."""
    copy_numbers(start, f.start)
    copy_numbers(goal, f.goal)
    call_machine(f.difference)


STAND_STILL = CompiledLoop(stand_still, 0, what="the first guess of optimal control")
MOVE_IN_TIME = CompiledLoop(move_in_time, 0, what="the shift of a controller's plan in time")
MOVE_ON = CompiledLoop(move_on, 2, what="the shift of a controller's plan")
FOLLOW = CompiledLoop(follow, 1, what="the controls of a plan")
CONTROL = CompiledLoop(control, 0, what="the tick of a controller that runs without Python")
