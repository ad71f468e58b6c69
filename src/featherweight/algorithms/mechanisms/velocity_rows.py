"""Rows of tasks for mechanisms with loops: J G, where J is that of the spanning tree."""

from __future__ import annotations

from ..inverse_kinematics import velocity_rows as of_trees
from ..inverse_kinematics.iteration import write_rows
from ..inverse_kinematics.task_rows import TaskList, task_rows
from .cluster_tree import ClusterTree
from .counterparts import for_mechanism
from .spanning import mapped, write_row


@for_mechanism(of_trees.velocity_rows)
def velocity_rows(mech: ClusterTree, tasks: TaskList, q, targets, results) -> None:
    """J G, and errors."""
    qs, M = mapped(mech, q)
    errors, slopes = of_trees.in_order(tasks, task_rows(mech.tree, tasks, qs, targets))
    n = len(results[0][0])
    rows = [[0.0] * n for _ in slopes]
    for slope, row in zip(slopes, rows, strict=True):
        write_row(mech, M, slope, row)
    write_rows((errors, rows), results)
