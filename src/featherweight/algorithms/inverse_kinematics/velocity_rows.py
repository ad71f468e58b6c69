"""Errors of tasks, and how velocities of the robot reduce them: rows for trajectories, where loops are kept by the dynamics."""

from __future__ import annotations

import math

from ...model.tree import Tree
from .iteration import write_rows
from .task_rows import TaskList, TaskRows, task_rows


def velocity_rows(tree: Tree, tasks: TaskList, q, targets, results) -> None:
    """Jacobian rows (with columns of v) and errors of all tasks, times the roots of their weights, one task after the other."""
    write_rows(in_order(tasks, task_rows(tree, tasks, q, targets)), results)


def in_order(tasks: TaskList, rows: list[TaskRows]):
    """Errors and Jacobian rows, without those of weight zero."""
    errors, slopes = [], []
    for task, (error, slope, _) in zip(tasks.every, rows, strict=True):
        for w, x, row in zip(task.weight, error, slope, strict=True):
            if w > 0.0:
                errors.append(math.sqrt(w) * x)
                slopes.append([math.sqrt(w) * y for y in row])
    return errors, slopes
