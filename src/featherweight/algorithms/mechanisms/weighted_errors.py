"""Errors of tasks for mechanisms with loops: those of the spanning tree."""

from __future__ import annotations

from ..inverse_kinematics import weighted_errors as of_trees
from ..inverse_kinematics.task_rows import TaskList
from .cluster_tree import ClusterTree
from .counterparts import for_mechanism
from .maps import spanning_configuration


@for_mechanism(of_trees.weighted_errors)
def weighted_errors(mech: ClusterTree, tasks: TaskList, q, targets, errors) -> None:
    of_trees.weighted_errors(mech.tree, tasks, spanning_configuration(mech, q), targets, errors)
