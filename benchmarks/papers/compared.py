"""Algorithms that papers compare with their own. The library does not offer them: they are the cheapest for no robot of the
papers. Multipliers need fewer operations than C-ABA only if most of a mechanism is one loop.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from featherweight import BilateralContact, Robot
from featherweight.algorithms.contact.contact_rows import ContactRows, contact_jacobian, mirror_lower
from featherweight.algorithms.contact.operational_space.dense_factors import dot, factorize, solve
from featherweight.algorithms.crba import crba
from featherweight.algorithms.kinematics import external_forces, joint_transforms
from featherweight.algorithms.ltdl import back_substitute, forward_substitute, ltdl_in_situ
from featherweight.algorithms.mechanisms.cluster_tree import ClusterTree, unconstrained
from featherweight.algorithms.mechanisms.loop_constraints import poses
from featherweight.algorithms.mechanisms.maps import constraint_matrix, slopes
from featherweight.algorithms.mechanisms.projection import whole_tree
from featherweight.engine.function import CompiledFunction
from featherweight.engine.program import KernelProgram
from featherweight.model.tree import Placements, Tree
from featherweight.spatial import sqrt

DENSE, MULTIPLIERS = "dense", "multipliers"


def candidate(function: CompiledFunction[Any], algorithm: str) -> CompiledFunction[Any]:
    """Return a function by another algorithm, also by `multipliers` for a robot with loops."""
    if algorithm == MULTIPLIERS:
        return with_kernel(function.alternatives["projection"], multipliers, MULTIPLIERS)
    return function.alternatives[algorithm]


def delassus(robot: Robot, contacts: Sequence[BilateralContact], algorithm: str) -> CompiledFunction[Any]:
    """Return `Robot.delassus` by an algorithm, also by `dense`."""
    if algorithm == DENSE:
        return with_kernel(robot.delassus(contacts, "ltl"), dense, DENSE)
    return robot.delassus(contacts, algorithm)


def with_kernel(function: CompiledFunction[Any], kernel: Callable[..., None], algorithm: str) -> CompiledFunction[Any]:
    """Return a kernel as a function with the arguments and results of another."""
    assert isinstance(function.program, KernelProgram)
    return CompiledFunction(replace(function.program, kernel=kernel), function.execution, algorithm)


def dense(tree: Tree, contacts: ContactRows, q: Any, D: Any) -> None:
    """Write the Delassus matrix by Cholesky factors of the full inertia matrix, without use of zeros.

    M = L L^T,   Y = L^-1 J^T,   J M^-1 J^T = Y^T Y
    """
    n, m = len(tree.parent), len(contacts.owner)
    J = [[0.0] * n for _ in range(m)]
    contact_jacobian(tree, contacts, q, J)
    H = [[0.0] * n for _ in range(n)]
    crba(tree, q, H)
    for i in range(n):
        for j in range(i + 1):
            x = H[i][j]
            for k in range(j):
                x = x - H[i][k] * H[j][k]
            H[i][j] = sqrt(x) if i == j else x / H[j][j]
    for r in range(m):
        for i in range(n):
            x = J[r][i]
            for k in range(i):
                x = x - H[i][k] * J[r][k]
            J[r][i] = x / H[i][i]
        for s in range(r + 1):
            total = 0.0
            for i in range(n):
                total = total + J[r][i] * J[s][i]
            D[r][s] = total
    mirror_lower(m, D)


def multipliers(mech: ClusterTree, bodies: Placements, q: Any, v: Any, tau: Any, forces: Any, result: Any) -> None:
    """Write the independent accelerations under `tau` and the `forces` on the bodies (Chignoli et al. 2023, section II-D).

    H q'' - K^T f = tau - c,  K q'' = k      by the sparse factors of H and the dense matrix K H^-1 K^T

    K has a row for each joint that is not independent. The spanning tree alone needs a regular H.
    """
    tree, n = mech.tree, len(mech.tree.parent)
    qs, M, H, bias = whole_tree(mech, q, v, external_forces(tree, bodies, forces))
    K, k = spanning_constraints(mech, qs, M, v)
    z = [0.0 - b for b in bias]
    for cluster in mech.clusters:
        for i, r in enumerate(cluster.independent):
            z[r] = z[r] + tau[cluster.start + i]
    d = ltdl_in_situ(tree.parent, H)
    back_substitute(tree.parent, H, z)
    for row in K:
        back_substitute(tree.parent, H, row)
    scaled = [[x * y for x, y in zip(row, d, strict=True)] for row in K]
    D = [[dot(scaled[i], K[j]) if j <= i else 0.0 for j in range(len(K))] for i in range(len(K))]
    C, reciprocal = factorize(len(K), D)
    f = solve(len(K), C, reciprocal, [k[i] - dot(scaled[i], z) for i in range(len(K))])
    for i in range(n):
        z[i] = d[i] * (z[i] + dot([row[i] for row in K], f))
    forward_substitute(tree.parent, H, z)
    for cluster in mech.clusters:
        for i, r in enumerate(cluster.independent):
            result[cluster.start + i] = z[r]


def spanning_constraints(mech: ClusterTree, qs: Any, M: Any, v: Any) -> tuple[Any, Any]:
    """Return K on all rows of the tree and k: the rows of loops, and one row for each follower."""
    n = len(mech.tree.parent)
    X = joint_transforms(mech.tree, qs)
    K, k = [], []
    for cluster, map in zip(mech.clusters, M, strict=True):
        if unconstrained(cluster):
            continue
        y = v[cluster.start : cluster.start + len(cluster.independent)]
        rates = {r: dot(map.G[r], y) for r in cluster.rows}
        for f in cluster.followers:
            row = [0.0] * n
            row[f.row] = 1.0
            bend = 0.0
            for r, slope, second in slopes(mech, f, qs):
                row[r] = row[r] - slope
                bend = bend + second * (rates[r] * rates[r])
            K.append(row)
            k.append(bend)
        if cluster.dependent:
            for entries in constraint_matrix(mech, cluster, poses(mech.tree, cluster, X), qs):
                row = [0.0] * n
                for r in (*cluster.independent, *cluster.dependent):
                    row[r] = entries[r]
                K.append(row)
                k.append(dot([entries[r] for r in cluster.dependent], [map.g[r] for r in cluster.dependent]))
    return K, k
