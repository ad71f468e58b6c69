"""Steps along independent velocities, q exp(G v), along the tangent of loops, and Newton steps that close loops.

The steps along velocities open loops in the order of v².
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.tree import INNER
from ...spatial import sqrt
from .. import integration
from ..contact.operational_space.dense_factors import dot
from ..integration import move_joint
from .cluster_tree import Cluster, ClusterTree
from .counterparts import for_mechanism, takes_mechanism
from .loop_constraints import cosines, poses, violations
from .maps import constraint_matrix, of_rows, spanning_configuration, spanning_velocity, triangle
from .spanning import mapped, nearness_to_singularity, placed, write_all


@for_mechanism(integration.integrate)
def integrate(mech: ClusterTree, q, v, result) -> None:
    qs, M = mapped(mech, q)
    move_joints(mech, qs, spanning_velocity(mech, M, v), result)


def move_joints(mech: ClusterTree, qs, x, result) -> None:
    """Write the coordinates in q of joints that move by velocities of the spanning tree."""
    moved = [0.0] * len(qs)
    integration.integrate(mech.tree, qs, x, moved)
    write_coordinates(mech, moved, result)


@for_mechanism(integration.advance)
def advance(mech: ClusterTree, q, u, d, h, results) -> None:
    """Write the results of a step; origins of joints with independent velocities only move along straight lines."""
    qs, M = mapped(mech, q)
    write_advanced(mech, qs, spanning_velocity(mech, M, led(u, d, h)), (u, d, h), results)


def led(u, d, h) -> list[Any]:
    """Return h u + d."""
    return [h * x + y for x, y in zip(u, d, strict=True)]


def write_advanced(mech: ClusterTree, qs, x, step, results) -> None:
    """Write the results of `advance` for joints that move by velocities x of the spanning tree."""
    ahead, velocity = results
    u, d, h = step
    integration.carry(independent_kinds(mech), u, d, h, velocity)
    moved = [0.0] * len(qs)
    for r in range(len(x)):
        if is_independent(mech, r):
            integration.move_joint_straight(mech.tree, r, qs, x, moved)
        else:
            integration.move_joint(mech.tree, r, qs, x, moved)
    write_coordinates(mech, moved, ahead)


@for_mechanism(integration.difference)
def difference(mech: ClusterTree, q0, q1, result) -> None:
    """Write the independent velocities that move from q0 to q1 in a unit of time."""
    whole = [0.0] * len(mech.tree.parent)
    integration.difference(mech.tree, spanning_configuration(mech, q0), spanning_configuration(mech, q1), whole)
    for cluster in mech.clusters:
        for k, r in enumerate(cluster.independent):
            result[cluster.start + k] = whole[r]


@for_mechanism(integration.integrate_derivatives)
def integrate_derivatives(mech: ClusterTree, q, v, results) -> None:
    """Write the Jacobians by independent velocities: closing loops does not move independent joints."""
    qs, M = mapped(mech, q)
    whole = _squares(mech)
    integration.integrate_derivatives(mech.tree, qs, spanning_velocity(mech, M, v), whole)
    rows = independent_rows(mech)
    for own, full in zip(results, whole, strict=True):
        for i, r in enumerate(rows):
            for k, other in enumerate(rows):
                own[i][k] = full[r][other]


@for_mechanism(integration.difference_derivatives)
def difference_derivatives(mech: ClusterTree, q0, q1, results) -> None:
    """Write the Jacobians by independent velocities, along which the joints move by G."""
    ends = mapped(mech, q0), mapped(mech, q1)
    whole = _squares(mech)
    integration.difference_derivatives(mech.tree, ends[0][0], ends[1][0], whole)
    rows = independent_rows(mech)
    for own, full, (_, M) in zip(results, whole, ends, strict=True):
        for k in range(len(rows)):
            column = spanning_velocity(mech, M, [1.0 if i == k else 0.0 for i in range(len(rows))])
            for i, r in enumerate(rows):
                own[i][k] = dot(full[r], column)


def _squares(mech: ClusterTree) -> tuple[Any, Any]:
    """Return two matrices of zeros for the rows of the tree."""
    n = len(mech.tree.parent)
    return [[0.0] * n for _ in range(n)], [[0.0] * n for _ in range(n)]


def independent_rows(mech: ClusterTree) -> list[int]:
    """Return the rows of the tree of the independent velocities, in their order."""
    return [r for cluster in mech.clusters for r in cluster.independent]


def is_independent(mech: ClusterTree, r: int) -> bool:
    """Return whether no loop or coupling determines a velocity of the joint to which a row of the tree belongs."""
    independent = mech.clusters[mech.owner[r]].independent
    return all(i in independent for i in range(mech.tree.first[r], mech.tree.last[r] + 1))


def independent_kinds(mech: ClusterTree) -> list[int]:
    """Return the joint's kind at the first independent velocity of each joint that is independent as a whole."""
    return [mech.tree.kind[r] if is_independent(mech, r) else INNER for r in independent_rows(mech)]


def write_coordinates(mech: ClusterTree, qs, q) -> None:
    """Write those of the spanning tree's coordinates that q contains into q."""
    for place, x in zip(mech.position, qs, strict=True):
        if place >= 0:
            q[place] = x


class ClosedWithin(NamedTuple):
    """Tolerances within which loops count as closed."""

    solved: tuple[int, ...]  # numbers of the constraints that are closed up to rounding
    others: float  # tolerance of the others, which contradict those
    facing: float  # least cosine between axes that must point the same way


@takes_mechanism
def closing_step(mech: ClusterTree, within: ClosedWithin, q, results) -> None:
    """Write the configuration after a step of Newton's method with fixed independent joints, and measures of q:

        K_d x = -phi      q' = q exp(x / sqrt(1 + 4 |x|^2))

    The square root limits a cluster's step to half a unit if loops are far from closed. It changes the step in third order
    only, so the method still converges quadratically.

    The measures are phi of the solved constraints; margins, none of which is negative if loops are closed; and the closeness
    to a singular configuration.
    """
    ahead, residual, margins, singularity = results
    qs, X = placed(mech, q)
    moved = list(qs)
    phi, facing, total = [], [], 0.0
    for cluster in mech.clusters:
        P = poses(mech.tree, cluster, X)
        violated = violations(mech.tree, cluster, P, qs)
        phi += violated
        facing += cosines(cluster, P)
        if cluster.dependent:
            K_d = of_rows(constraint_matrix(mech, cluster, P, qs), cluster.dependent)
            R = triangle(K_d, [[0.0 - violated[k]] for k in cluster.kept])
            total = total + nearness_to_singularity(K_d, R)
            move_dependent(mech, cluster, qs, [x for (x,) in R.solution()], moved)
    write_coordinates(mech, moved, ahead)
    write_all(residual, [phi[k] for k in within.solved])
    off = [within.others * within.others - phi[k] * phi[k] for k in range(len(phi)) if k not in within.solved]
    write_all(margins, off + [cosine - within.facing for cosine in facing])
    singularity[0] = total


def move_dependent(mech: ClusterTree, cluster: Cluster, qs, x, moved) -> None:
    """Write the coordinates of a cluster's dependent joints after a step x of their dependent rows."""
    scale = 1.0 / sqrt(1.0 + 4.0 * dot(x, x))
    step = [0.0] * len(mech.tree.parent)
    for r, y in zip(cluster.dependent, x, strict=True):
        step[r] = scale * y
    for j in sorted({mech.tree.first[r] for r in cluster.dependent}):
        move_joint(mech.tree, j, qs, step, moved)
