"""Drives with stiffness and damping, evaluated at the end of a semi-implicit step.

The drive k acts on the row r of a joint with gear g: f = g clip(F), F = gain u + b0 + g (b1 x + b2 v). At the step's end,
for the acceleration a of the row,

    g F+ = g F(x + h v, v) - I a      I = g² (h max(-b2, 0) + h² max(-b1, 0))

A drive within its limits therefore adds the armature I to its joint and the force g F(x + h v, v). A drive at a limit adds the
limiting force and no armature. An effort limit of a joint holds all drives on the joint in the same way. An active-set method
finds the drives at limits: all drives start free, and each acceleration tells which drives would pass a limit. Forces of drives
are monotone, so this is Newton's method for a convex piecewise quadratic function. It takes one iteration if no limit is
passed, and two or three otherwise. Newton's method may cycle if drives are much stiffer than links are heavy. After some
iterations, only the first drive that would pass a limit changes: a principal pivot of least index (Murty 1974), which
terminates.

The functions here work on the arrays of one robot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Integers, Matrix, Shared, Vector
from ...model.types import JointType
from ...robot.robot import Robot
from .at_joints import ForcesAtJoints
from .laws import GEAR, HIGH, LOW, DriveRows, Drives, bound_laws, drive_armature, drive_law, map_forces, spread

ROUNDS_OF_ALL = 5  # iterations in which all drives that would pass a limit change; then one drive at a time, without cycles
MOST_ROUNDS = 50  # greatest number of iterations; the last result is used
OF_LENGTH = -1


class DriveWork(NamedTuple):
    """State of the drives of one robot in a step."""

    joint: Shared[Integers]  # (nu,) index of each drive's joint in `armature`; `OF_LENGTH` for lengths, which have none
    law: Vector  # (nu,) F at x + h v and v
    inertia: Vector  # (nu,) I
    side: Vector  # (nu,) -1, 0 or 1: at the least force, free, at the greatest force
    stiff: Vector  # (joint rows,) whether a drive with an armature acts on the row
    at_effort: Vector  # (joint rows,) -1 or 1 at an effort limit, else 0
    row_force: Vector  # (n,) forces of all joints
    total: Vector  # (nv,) forces of independent joints
    alike: int  # number of leading rows of S that equal the identity
    rows: Shared[DriveRows]


def drive_work(robot: Robot, forces: ForcesAtJoints) -> DriveWork:
    drives, n, joints = forces.drives, forces.rows, forces.joint_rows
    rows = [j.v_slice.start for j in robot.model.joints if j.type is not JointType.FLOATING]
    joint = np.array([rows.index(r) if r in rows else OF_LENGTH for r in drives.row], np.int64)
    nu = len(drives.row)
    law, inertia, side, stiff, at_effort, row_force, total = (np.zeros(k) for k in (nu, nu, nu, joints, joints, n, robot.nv))
    return DriveWork(joint, law, inertia, side, stiff, at_effort, row_force, total, forces.alike, forces.drive_rows)


def has_implicit_drives(forces: ForcesAtJoints, step: float) -> bool:
    of_joints = forces.drives.row < forces.joint_rows
    return bool((drive_armature(forces.drives.values, step)[of_joints] > 0.0).any())


def begin_drives(drives: Drives, step: float, control: Vector, x: Vector, rates: Vector, work: DriveWork) -> None:
    """Set all drives free, at coordinates x and velocities (n,) of all rows.

    Drives on lengths are evaluated at the start of the step, because no joint's armature can represent them.
    """
    d = drives.values
    for i in range(len(work.at_effort)):
        work.stiff[i], work.at_effort[i] = 0.0, 0.0
    for k in range(len(drives.row)):
        drive = d[0, k], d[1, k], d[2, k], d[3, k], d[4, k], d[5, k], d[6, k], d[7, k], d[8, k]
        row = drives.row[k]
        later = step if work.joint[k] != OF_LENGTH else 0.0
        work.law[k] = drive_law(drive, control[k], x[drives.at[k]], rates[row], later)
        work.inertia[k] = drive_armature(drive, later)
        work.side[k] = 0.0
        if work.inertia[k] > 0.0:
            work.stiff[row] = 1.0
    bound_laws(drives, work.law)


def is_free(drives: Drives, work: DriveWork, k: int) -> bool:
    """Return whether a drive is within its limits, and no effort limit holds its joint."""
    return bool(work.inertia[k] > 0.0 and work.side[k] == 0.0 and work.at_effort[drives.row[k]] == 0.0)


def limited(drives: Drives, k: int, force: float) -> float:
    """Return a force after the gear, clipped to the limits of the drive."""
    gear, low, high = drives.values[GEAR, k], drives.values[LOW, k], drives.values[HIGH, k]
    if gear == 0.0:
        return 0.0
    return float(min(max(force, min(gear * low, gear * high)), max(gear * low, gear * high)))


def write_driven(drives: Drives, efforts: Matrix, S: Matrix, work: DriveWork, base: Vector, armature: Vector) -> None:
    """Write joint forces `work.total` (nv,) of the drives in their current state, and the armature (k,).

    `base` is the armature without drives. S is that of `ForcesAtJoints`, or has no rows; `efforts` (2, joint rows) bound the
    drives' sum at each row.
    """
    force = work.row_force
    for j in range(len(armature)):
        armature[j] = base[j]
    for r in range(len(work.row_force)):
        work.row_force[r] = 0.0
    for k in range(len(drives.row)):
        own = drives.values[GEAR, k] * work.law[k]
        if work.side[k] != 0.0:
            own = limited(drives, k, work.side[k] * np.inf)
        elif work.inertia[k] == 0.0:
            own = limited(drives, k, own)
        force[drives.row[k]] += own
        if is_free(drives, work, k):
            armature[work.joint[k]] += work.inertia[k]
    spread(work.rows, S, force)
    for i in range(len(work.at_effort)):
        if work.at_effort[i] != 0.0:
            force[i] = efforts[1, i] if work.at_effort[i] > 0.0 else efforts[0, i]
        elif work.stiff[i] == 0.0:
            force[i] = min(max(force[i], efforts[0, i]), efforts[1, i])
    map_forces(S, work.alike, force, work.total)


def next_side(side: float, asked: float, allowed: float) -> float:
    """Return the limit that holds a force clipped to `allowed`; the change from one limit to the other passes through none."""
    passed = 1.0 if asked > allowed else -1.0 if asked < allowed else 0.0
    return 0.0 if side * passed < 0.0 else passed


def judge_drives(drives: Drives, efforts: Matrix, S: Matrix, rates: Vector, work: DriveWork, one: bool) -> bool:
    """Hold and free drives by the accelerations (n,) of all joints, all drives or `one`.

    Return whether that changes anything.
    """
    changed = False
    for r in range(len(work.row_force)):
        work.row_force[r] = 0.0
    for k in range(len(drives.row)):
        asked = drives.values[GEAR, k] * work.law[k] - work.inertia[k] * rates[drives.row[k]]
        force = limited(drives, k, asked)
        if work.inertia[k] > 0.0:
            side = next_side(work.side[k], asked, force)
            if side != work.side[k] and not (one and changed):
                work.side[k] = side
                changed = True
        work.row_force[drives.row[k]] += force
    spread(work.rows, S, work.row_force)
    for i in range(len(work.at_effort)):
        limit, force = 0.0, work.row_force[i]
        if work.stiff[i] > 0.0:
            limit = next_side(work.at_effort[i], force, min(max(force, efforts[0, i]), efforts[1, i]))
        if limit != work.at_effort[i] and not (one and changed):
            work.at_effort[i] = limit
            changed = True
    return changed
