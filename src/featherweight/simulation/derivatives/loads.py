"""Slopes of the forces at joints, by state and inputs: those of the linear laws, with all limits kept.

    load = clip(tau) + Sᵀ (clip(sum of drives) + dampers and springs)

A force within its limits has the slopes of its law, a force at a limit has none. Drives that a step evaluates at its end keep
the state in which the step found them (see `forces.implicit_drives`).
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from ...array_types import Vector
from ..forces.implicit_drives import limited, write_driven
from ..forces.laws import BY_POSITION, BY_VELOCITY, GAIN, GEAR, HIGH, LEAST_CONTROL, LOW, MOST_CONTROL
from ..smooth_motion import STAGED, add_springs, be_at, clear, copy, write_given, write_row_velocity, write_rows, write_tau
from ..stage_records import WITH_CONTROL, RobotStages

AT_A_LIMIT = 1e-9  # relative distance from a limit below which a force or control counts as at the limit


class LoadSlopes(NamedTuple):
    """Slopes of the forces of rows. `ends` marks the values at a limit by 1, in the order of `StepModel.limits`."""

    tau: Vector  # (nv,) of the force by that of the user: 1, or 0 beyond an effort
    position: Vector  # (rows,) by the coordinate
    velocity: Vector  # (rows,) by the velocity
    control: Vector  # (nu,) of the row of a drive, by its control
    force: Vector  # (rows,) the forces of drives and springs
    free: Vector  # (nu,) 1 for drives within their limits, else 0
    within: Vector  # (rows,) 1 where the sum of the drives is within the efforts, else 0
    ends: Vector  # controls (nu), drives (nu), efforts of rows and of independent joints (nv)


def load_slopes(s: RobotStages) -> LoadSlopes:
    """Return arrays for the slopes at the stages of one robot."""
    nv, rows, nu = len(s.state.v), len(s.point.row_force), len(s.joints.drives.row)
    sizes = {"tau": nv, "control": nu, "free": nu, "ends": 2 * nu + rows + nv}
    return LoadSlopes(*(np.zeros(sizes.get(name, rows)) for name in LoadSlopes._fields))


def write_load_slopes(s: RobotStages, y: LoadSlopes) -> int:
    """Write the slopes, the load and S, at x and w, or at the state of a semi-implicit step or a stage with contacts.

    Return the number of values at a limit.
    """
    p, springs, ahead = s.point, s.joints.springs, 0.0
    if s.numbers.integrator <= STAGED:
        be_at(s, s.state.q, s.state.v)
        ahead = s.numbers.ahead
    clear(y.position)
    clear(y.velocity)
    clear(y.force)
    clear(y.ends)
    if s.state.given[WITH_CONTROL]:
        write_drive_slopes(s, y, ahead)
    else:
        write_rows(s)
        write_given(s)
        clear(y.control)
    copy(p.given, p.load)
    add_springs(s, ahead)
    for r in range(len(springs.damping)):
        stiffness = springs.stiffness[r]
        if springs.slack[r] > 0.0 and 0.0 < p.coordinates[springs.at[r]] - springs.rest[r] < springs.slack[r]:
            stiffness = 0.0
        y.position[r] -= stiffness
        y.velocity[r] -= springs.damping[r] + ahead * springs.ahead[r] * stiffness
        y.force[r] += p.row_force[r]
    return write_tau_slopes(s, y)


def write_tau_slopes(s: RobotStages, y: LoadSlopes) -> int:
    """Write the slopes of the user's forces; return the number of values at a limit."""
    first, count = len(y.ends) - len(y.tau), 0
    for i in range(len(y.tau)):
        y.tau[i] = is_within(s.state.tau[i], s.joints.efforts[0, i], s.joints.efforts[1, i], y.ends, first + i)
    for i in range(len(y.ends)):
        count += 1 if y.ends[i] > 0.0 else 0
    return count


def write_drive_slopes(s: RobotStages, y: LoadSlopes, ahead: float) -> None:
    """Write the forces `given`, and add the forces of drives and their slopes to those of rows."""
    p, j, work, values, nu = s.point, s.joints, s.joints.driving, s.joints.drives.values, len(y.free)
    write_rows(s)
    if s.numbers.driven:
        write_driven(j.drives, j.within, p.S, work, s.inertias.base_armature, s.inertias.armature)
        copy(work.row_force, y.force)
        write_tau(s)
        for i in range(len(p.given)):
            p.given[i] += work.total[i]
        write_row_velocity(s, s.step.acceleration)
    else:
        write_given(s)
        copy(p.row_force, y.force)
    clear(p.row_force)
    for k in range(nu):
        gear, low, high = values[GEAR, k], values[LOW, k], values[HIGH, k]
        y.control[k] = is_within(s.state.control[k], values[LEAST_CONTROL, k], values[MOST_CONTROL, k], y.ends, k)
        if s.numbers.driven:
            least, most = min(gear * low, gear * high), max(gear * low, gear * high)
            asked = gear * work.law[k] - work.inertia[k] * p.row_velocity[j.drives.row[k]]
            y.free[k] = is_within(asked, least, most, y.ends, nu + k)
            if work.inertia[k] > 0.0:
                y.free[k] = 1.0 if work.side[k] == 0.0 else 0.0
            p.row_force[j.drives.row[k]] += limited(j.drives, k, asked)
        else:
            y.free[k] = is_within(p.law[k], low, high, y.ends, nu + k)
            p.row_force[j.drives.row[k]] += gear * min(max(p.law[k], low), high)
    for r in range(j.within.shape[1]):
        y.within[r] = is_within(p.row_force[r], j.within[0, r], j.within[1, r], y.ends, 2 * nu + r)
        if s.numbers.driven and work.stiff[r] > 0.0:
            y.within[r] = 1.0 if work.at_effort[r] == 0.0 else 0.0
    for k in range(nu):
        gear, r = values[GEAR, k], j.drives.row[k]
        slope = gear * y.free[k] * y.within[r]
        y.control[k] *= slope * values[GAIN, k]
        y.position[r] += slope * gear * values[BY_POSITION, k]
        y.velocity[r] += slope * gear * (values[BY_VELOCITY, k] + ahead * min(values[BY_POSITION, k], 0.0))


def is_within(x: float, low: float, high: float, ends: Vector, i: int) -> float:
    """Return 1 for a number between bounds, else 0, and mark one that is at a bound."""
    ends[i] = 1.0 if is_at(x, low) or is_at(x, high) else 0.0
    return 0.0 if x < low or x > high else 1.0


def is_at(x: float, bound: float) -> bool:
    """Return whether a number equals a bound, which may be infinite."""
    return abs(bound) < inf and abs(x - bound) <= AT_A_LIMIT * abs(bound)
