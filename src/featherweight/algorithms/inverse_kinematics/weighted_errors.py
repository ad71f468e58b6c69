"""Errors of all tasks, times the square roots of their weights: rows whose squares trajectory optimization minimizes."""

from __future__ import annotations

import math

from ...model.tree import Tree
from .task_rows import TaskList, task_rows


def weighted_errors(tree: Tree, tasks: TaskList, q, targets, errors) -> None:
    """Write the errors of one task after the other, without those of weight zero."""
    k = 0
    for task, (error, _, _) in zip(tasks.every, task_rows(tree, tasks, q, targets), strict=True):
        for w, x in zip(task.weight, error, strict=True):
            if w > 0.0:
                errors[k] = math.sqrt(w) * x
                k += 1
