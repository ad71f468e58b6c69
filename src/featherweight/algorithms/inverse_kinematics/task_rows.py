"""Errors e of inverse kinematics tasks, and the Jacobian J with e(q ⊕ d) ≈ e - J d.

    position       p* - p                                in the world's axes
    orientation    log(R* Rᵀ)                            in the world's axes
    pose           both; in the target's axes if its rows have different weights, as for an orientation
    centre         c* - c
    posture        q* ⊖ q of some joints
    clearance      what distances are too small by, which comes with its slopes among the targets

The Jacobian of the logarithm is omitted: it is the identity where e is zero, and along e everywhere, so the gradient Jᵀ e of
the squares is exact if all rows of an orientation have the same weight.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...model.tree import FLOATING, PLANAR, SPHERICAL, Placements, Tree
from ...spatial import Mat3, Vec3, quaternion_at
from ...spatial.rotation_vector import rotation_vector
from ..energy import center_of_mass, center_of_mass_jacobian
from ..frames import LOCAL_WORLD_ALIGNED, frame_jacobian, frame_poses
from ..kinematics import joint_transforms

POSE, POSITION, ORIENTATION, CENTER, POSTURE, CLEARANCE = range(6)


class TaskSpec(NamedTuple):
    """One task, in the form that kernels read."""

    kind: int
    frame: int  # index of the frame
    weight: tuple[float, ...]  # weight of each row; rows of weight zero are left out
    tolerance: tuple[float, ...]  # tolerance of each part
    level: int  # priority level, 0 first
    at: int  # start of its target
    rows: tuple[int, ...]  # first rows of a posture's joints; rows of the tree that a clearance has slopes by


class TaskList(NamedTuple):
    """All tasks, and their frames."""

    frames: Placements
    every: tuple[TaskSpec, ...]


class TaskRows(NamedTuple):
    """Errors and Jacobian rows of one task, and the starts of its parts, each of one unit."""

    error: list[Any]
    slope: list[list[Any]]
    parts: tuple[int, ...]


def task_rows(tree: Tree, tasks: TaskList, q, targets) -> list[TaskRows]:
    """Return errors and Jacobian rows of each task at q (of all joints of the tree), with a column for each row of the tree."""
    n = len(tree.parent)
    R, p = frame_poses(tree, tasks.frames, joint_transforms(tree, q))
    J = [[[0.0] * n for _ in range(6)] for _ in R]
    frame_jacobian(tree, tasks.frames, LOCAL_WORLD_ALIGNED, q, J)
    return [_rows(tree, task, q, targets, R, p, J) for task in tasks.every]


def _rows(tree: Tree, task: TaskSpec, q, targets, R, p, J) -> TaskRows:
    at = task.at
    if task.kind == CENTER:
        c = [0.0] * 3
        center_of_mass(tree, q, c)
        slope = [[0.0] * len(tree.parent) for _ in range(3)]
        center_of_mass_jacobian(tree, q, slope)
        return TaskRows([targets[at + i] - c[i] for i in range(3)], slope, (0,))
    if task.kind == POSTURE:
        return _posture_rows(tree, task, q, targets)
    if task.kind == CLEARANCE:
        column = {j: at + 1 + i for i, j in enumerate(task.rows)}
        return TaskRows(
            [targets[at]], [[0.0 - targets[column[j]] if j in column else 0.0 for j in range(len(tree.parent))]], (0,)
        )
    k, error, slope = task.frame, [], []
    if task.kind != ORIENTATION:
        error += [targets[at] - p[k].x, targets[at + 1] - p[k].y, targets[at + 2] - p[k].z]
        slope += J[k][:3]
        at += 3
    if task.kind != POSITION:
        wanted = matrix_at(targets, at)
        error += [*rotation_vector(wanted.product(R[k].transpose()))]
        slope += J[k][3:]
        if len({*task.weight}) > 1:
            error, slope = on_axes(wanted, error, slope)
    return TaskRows(error, slope, (0, 3) if task.kind == POSE else (0,))


def on_axes(R: Mat3, error, slope):
    """Return consecutive vectors of the world's axes in the axes of R."""
    n = len(slope[0])
    turned, columns = [], []
    for k in range(0, len(error), 3):
        turned += [*turned_back(R, error, k)]
        by_column = [turned_back(R, [row[j] for row in slope], k) for j in range(n)]
        columns += [[c.x for c in by_column], [c.y for c in by_column], [c.z for c in by_column]]
    return turned, columns


def turned_back(R: Mat3, x, k: int) -> Vec3:
    """Return three entries of x from k on, in the axes of R."""
    return R.transpose() @ Vec3(x[k], x[k + 1], x[k + 2])


def _posture_rows(tree: Tree, task: TaskSpec, q, targets) -> TaskRows:
    """Return differences of joints' coordinates, as velocities at q."""
    error: list[Any] = []
    columns: list[int] = []
    at = task.at
    for j in task.rows:
        k, kind = tree.q_index[j], tree.kind[j]
        if kind == SPHERICAL:
            error += [*turn_to(quaternion_at(q, k), quaternion_at(targets, at))]
            at += 4
        elif kind == FLOATING:
            start = quaternion_at(q, k + 3)
            away = Vec3(*(targets[at + i] - q[k + i] for i in range(3)))
            error += [*start.rotate_back(away), *turn_to(start, quaternion_at(targets, at + 3))]
            at += 7
        elif kind == PLANAR:
            x, y, c, s = targets[at] - q[k], targets[at + 1] - q[k + 1], q[k + 2], q[k + 3]
            cosine, sine = c * targets[at + 2] + s * targets[at + 3], c * targets[at + 3] - s * targets[at + 2]
            turn = Mat3(Vec3(cosine, 0.0 - sine, 0.0), Vec3(sine, cosine, 0.0), Vec3(0.0, 0.0, 1.0))
            error += [c * x + s * y, c * y - s * x, rotation_vector(turn).z]
            at += 4
        else:
            error.append(targets[at] - q[k])
            at += 1
        columns += range(j, tree.last[j] + 1)
    slope = [[1.0 if j == column else 0.0 for j in range(len(tree.parent))] for column in columns]
    return TaskRows(error, slope, (0,))


def turn_to(a, b) -> Vec3:
    """Return the rotation vector from one orientation to another, in the axes of the first."""
    return rotation_vector(a.matrix().transpose().product(b.matrix()))


def matrix_at(x, k: int) -> Mat3:
    """Return the matrix whose nine entries start at index k."""
    return Mat3(*(Vec3(x[i], x[i + 1], x[i + 2]) for i in (k, k + 3, k + 6)))


def weighted_errors(tree: Tree, tasks: TaskList, q, targets, errors) -> None:
    """Write the errors of one task after the other, times the square roots of their weights, without those of weight zero.

    Trajectory optimization minimizes the squares of these rows.
    """
    k = 0
    for task, (error, _, _) in zip(tasks.every, task_rows(tree, tasks, q, targets), strict=True):
        for w, x in zip(task.weight, error, strict=True):
            if w > 0.0:
                errors[k] = math.sqrt(w) * x
                k += 1
