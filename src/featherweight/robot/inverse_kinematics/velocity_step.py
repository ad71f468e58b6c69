"""One step of differential inverse kinematics, as a kernel with loops.

    minimize  |A x - gain e|² + damping |x|²   subject to   lower <= x <= upper,   K x = -phi,   G x >= -gain s,   v = x / dt

A and e are the rows and errors of a priority, s are spare distances. What a priority reaches is an equality of the next ones.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from ...array_types import Integers, Matrix, Vector
from ...engine.loops.kernels import MachineCall, call_machine
from ...quadratic_programs.active_set import bound_of, minimize
from ...quadratic_programs.cascade import begin_program, keep_costs, next_cost, next_equality, next_limit
from ...quadratic_programs.null_space import add_equalities
from ...quadratic_programs.program import BOUND, COSTS, EQUALITIES, INFEASIBLE, SOLVED, QuadraticProgram

DT, GAIN, DAMPING = range(3)


class VelocityStep(NamedTuple):
    """All data of a step. Columns are the rows of the tree that the unknowns belong to; velocities are some of them."""

    rows: MachineCall
    distances: MachineCall
    q: Vector  # (nq,)
    targets: Vector
    jacobian: Matrix  # (rows, rows of the tree) of loops, then of tasks by priority
    errors: Vector  # (rows,)
    spare: Vector  # (m,) distances beyond those required
    slopes: Matrix  # (m, nv)
    begin: Integers  # (levels + 1,) first row of each priority; loops are before the first
    column: Integers  # (n,) row of the tree of each unknown
    independent: Integers  # (nv,) unknowns that are velocities
    coordinate: Integers  # (n,) an arbitrary one for unknowns without limits
    lower: Vector  # (n,)
    upper: Vector
    speed: Vector  # (nv,)
    settings: Vector  # dt, gain, damping
    program: QuadraticProgram
    reached: Vector  # (n,) x of the last priority that has a solution
    velocity: Vector  # (nv,)


def velocity_step(w: VelocityStep, _: int) -> int:
    """Compute the velocity for q and targets; return the status of the quadratic program."""
    call_machine(w.rows)
    call_machine(w.distances)
    write_box(w)
    status, lacking = prioritized(w, True), False
    for i in range(len(w.spare)):
        lacking = lacking or w.spare[i] < 0.0
    if status == INFEASIBLE and lacking:
        status = prioritized(w, False)
    write_velocity(w)
    return status


def write_box(w: VelocityStep) -> None:
    """Write the least and greatest steps within velocity and joint limits; a q beyond a limit moves back."""
    p = w.program
    for j in range(p.n):
        at = w.q[w.coordinate[j]]
        p.lower[j], p.upper[j] = w.lower[j] - at, w.upper[j] - at
    for k in range(len(w.independent)):
        j, most = w.independent[k], w.settings[DT] * w.speed[k]
        p.lower[j], p.upper[j] = min(max(p.lower[j], -most), most), max(min(p.upper[j], most), -most)


def prioritized(w: VelocityStep, grow: bool) -> int:
    """Compute the step by priorities, and return the status of the first one.

    Distances that lack grow by a fraction if `grow` is true; otherwise, they do not shrink further.
    """
    p, status = w.program, SOLVED
    begin_program(p)
    write_loops(w)
    write_distances(w, grow)
    levels, begin = len(w.begin) - 1, p.counts[EQUALITIES]
    for level in range(levels):
        write_costs(w, level)
        found = minimize(p, begin)
        if level == 0:
            status = found
        if found != SOLVED:  # a later priority has no freedom left beyond rounding errors
            break
        write_reached(w)
        begin = p.counts[EQUALITIES]
        if level + 1 < levels:
            keep_costs(p)
    return status


def write_loops(w: VelocityStep) -> None:
    """Write the equations of loops. Equations that contradict those before are left out: they do when loops are open."""
    p = w.program
    for r in range(w.begin[0]):
        copy_row(w, r, next_equality(p, w.errors[r]))
    add_equalities(p, 0)


def copy_row(w: VelocityStep, r: int, at: int) -> None:
    """Copy the unknowns' columns of a row of the Jacobian."""
    for j in range(w.program.n):
        w.program.numbers[at + j] = w.jacobian[r, w.column[j]]


def write_distances(w: VelocityStep, grow: bool) -> None:
    """Write the limits of distances, which shrink by a fraction of what they exceed."""
    fraction = min(w.settings[GAIN], 1.0)
    for i in range(len(w.spare)):
        least = -fraction * w.spare[i]
        at = next_limit(w.program, least if grow else min(least, 0.0), inf)
        for k in range(len(w.independent)):
            w.program.numbers[at + w.independent[k]] = w.slopes[i, k]


def write_costs(w: VelocityStep, level: int) -> None:
    """Write the cost of a priority."""
    p = w.program
    p.counts[COSTS] = 0
    for j in range(p.n):
        p.diagonal[j] = w.settings[DAMPING]
    for r in range(w.begin[level], w.begin[level + 1]):
        copy_row(w, r, next_cost(p))
        p.target[p.counts[COSTS]] = w.settings[GAIN] * w.errors[r]
        p.counts[COSTS] += 1


def write_reached(w: VelocityStep) -> None:
    """Store x, without rounding errors at its bounds."""
    p, a = w.program, w.program.active
    for j in range(p.n):
        w.reached[j] = min(max(p.numbers[p.x + j], p.lower[j]), p.upper[j])
    for k in range(a.size[0]):
        if a.kind[k] == BOUND:
            w.reached[a.which[k]] = bound_of(p, BOUND, a.which[k], a.side[k])


def write_velocity(w: VelocityStep) -> None:
    """Write the velocity within its limits."""
    for k in range(len(w.independent)):
        v = w.reached[w.independent[k]] / w.settings[DT]
        w.velocity[k] = min(max(v, -w.speed[k]), w.speed[k])
