"""An iteration of inverse kinematics of a mechanism: in the coordinates of all joints, with loops above all tasks.

Loops are rows phi = 0 of the highest level. Followers contribute to the columns of their leaders.
"""

from __future__ import annotations

import math
from typing import Any

from ..contact.operational_space.dense_factors import dot
from ..integration import integrate
from ..inverse_kinematics import iteration
from ..inverse_kinematics.iteration import StepSettings, damped_level, is_positive, limited_step, task_levels
from ..inverse_kinematics.task_rows import TaskList, TaskRows, task_rows
from ..kinematics import joint_transforms
from .cluster_tree import ClusterTree, constraint_count, moving
from .counterparts import for_mechanism
from .loop_constraints import cosines, poses, violations
from .maps import constraint_matrix, slopes, spanning_configuration

LOOPS_WITHIN = 1e-11  # norm of the loops' residual at convergence
ABOVE_ALL = 1e12  # weight of squared residuals of loops relative to squared errors
FACING = 0.5  # least cosine of axes that must point the same way
ROUNDING = 1e-9  # [rad, m] tolerance of limits
WRONG = 1e6  # penalty of each violated condition


@for_mechanism(iteration.iterate)
def iterate(mech: ClusterTree, tasks: TaskList, settings: StepSettings, q, targets, caution, results) -> None:
    ahead, *measures = results
    qs = spanning_configuration(mech, q)
    rows = [followed_rows(mech, qs, r) for r in task_rows(mech.tree, tasks, qs, targets)]
    levels = task_levels(tasks, rows, settings, caution)
    phi, K = loop_rows(mech, qs)
    d = limited_step(mech.tree, [damped_level(K, phi, 1.0, settings, 1.0), *levels] if phi else levels, settings, qs)
    moved = [0.0] * len(mech.position)
    integrate(mech.tree, qs, d, moved)
    for place, x in zip(mech.position, moved, strict=True):
        if place >= 0:
            ahead[place] = x
    iteration.write_measures(tasks, rows, levels, d, measures)
    miss, _, cost, _ = measures
    cost[0] = cost[0] + ABOVE_ALL * dot(phi, phi)
    miss[0] = miss[0] + (1.0 / LOOPS_WITHIN**2) * dot(phi, phi)
    miss[0] = miss[0] + WRONG * count_of_wrong(mech, settings, qs)


def count_of_wrong(mech: ClusterTree, settings: StepSettings, qs):
    """Return the number of loops' axes that point the wrong way and of followers beyond their limits."""
    X = joint_transforms(mech.tree, qs)
    count = 0.0
    for cluster in mech.clusters:
        for cosine in cosines(cluster, poses(mech.tree, cluster, X)):
            count = count + is_positive(FACING - cosine)
        for f in cluster.followers:
            if not f.terms:
                continue  # locked
            x = qs[mech.tree.q_index[f.row]]
            if settings.upper[f.row] < math.inf:
                count = count + is_positive(x - (settings.upper[f.row] + ROUNDING))
            if settings.lower[f.row] > -math.inf:
                count = count + is_positive((settings.lower[f.row] - ROUNDING) - x)
    return count


def followed_rows(mech: ClusterTree, qs, r: TaskRows) -> TaskRows:
    """Return rows in which the columns of followers are added to those of their leaders."""
    slope = [list(row) for row in r.slope]
    for cluster in mech.clusters:
        for f in reversed(cluster.followers):
            for leader, factor, _ in slopes(mech, f, qs):
                for row in slope:
                    row[leader] = row[leader] + factor * row[f.row]
            for row in slope:
                row[f.row] = 0.0
    return r._replace(slope=slope)


def loop_rows(mech: ClusterTree, qs) -> tuple[list[Any], list[list[Any]]]:
    """Return the negated residuals of all loops, and their Jacobian with a column for each row of the tree."""
    X = joint_transforms(mech.tree, qs)
    phi: list[Any] = []
    K: list[list[Any]] = []
    for cluster in mech.clusters:
        own, P = set(moving(cluster)), poses(mech.tree, cluster, X)
        phi += [0.0 - x for x in violations(mech.tree, cluster, P, qs)]
        every = cluster._replace(kept=tuple(range(constraint_count(cluster))))
        for entries in constraint_matrix(mech, every, P, qs):
            K.append([entries[r] if r in own else 0.0 for r in range(len(mech.tree.parent))])
    return phi, K


@for_mechanism(iteration.weighted_rows)
def weighted_rows(mech: ClusterTree, tasks: TaskList, q, targets, results) -> None:
    """Write errors and Jacobian rows: those of the loops first, then the weighted ones of the tasks."""
    qs = spanning_configuration(mech, q)
    rows = [followed_rows(mech, qs, r) for r in task_rows(mech.tree, tasks, qs, targets)]
    phi, K = loop_rows(mech, qs)
    errors, A = iteration.stacked_levels(tasks, rows)
    iteration.write_rows((phi + errors, K + A), results)
