"""Derivatives of forward dynamics under constraints, from the derivatives of its equations, for a tree or a mechanism.

    M q'' + c + g = tau + J^T f,   J q'' + J' v = b

Let R be the derivatives of M q'' + c + g - J^T f and S those of J q'' + J' v - b, both at constant q'' and f. Then

    [M  -J^T] [dq'']     [R]
    [J    0 ] [df  ] = - [S]      Y = J L^-1,  z = L^-T R,  (Y D^-1 Y^T) df = Y D^-1 z - S,  dq'' = L^-1 D^-1 (Y^T df - z)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....model.tree import Tree
from ....spatial import ZERO_FORCE, Force, unit_motion
from ...frames import world_poses
from ...integration import configuration_rate
from ...kinematics import (
    accelerations_of_velocities,
    force,
    joint_transforms,
    spatial_velocities,
    vec3,
    velocity_products,
)
from ...ltdl import back_substitute, invert_unit, ltdl_in_situ, on_pattern, product_with_transpose
from ...mechanisms.counterparts import takes_mechanism
from ..constraint_rows import (
    ConstraintRows,
    add_entry_accelerations,
    entries_of_functions,
    rotation_between,
    row_accelerations,
    write_joint_forces_of,
)
from .by_factors import back_substituted, write_products
from .dense_factors import Reduction, damp_rows, factorize_semidefinite, gathered, solve, spread_out


def row_forces(tree: Tree, rows: ConstraintRows, q, f, tau) -> None:
    """Write J^T f."""
    X = joint_transforms(tree, q)
    write_joint_forces_of(tree, X, wrenches_of_rows(tree, rows, X, f), tau)
    add_entry_forces(rows, q, f, tau)


def wrenches_of_rows(tree: Tree, rows: ConstraintRows, X, f):
    """Return the wrenches of forces f of the rows, on the rows of the tree."""
    R, _ = world_poses(tree, X)
    F = [ZERO_FORCE] * len(tree.parent)
    for g in range(len(rows.start)):
        total = ZERO_FORCE
        for r in range(rows.start[g], rows.stop[g]):
            total = total + f[r] * force(rows.K, r)
        for t in range(rows.first[g], rows.first[g + 1]):
            i = rows.link[t]
            if i >= 0:
                E = rotation_between(rows, R, g, t)
                lin = rows.weight[t] * (E @ total.lin)
                F[i] = F[i] + Force(rows.weight[t] * (E @ total.ang) + vec3(rows.point, t).cross(lin), lin)
    return F


def add_entry_forces(rows: ConstraintRows, q, f, tau) -> None:
    """Add the forces of those entries of J that are functions of q."""
    for x, row in zip(f, entries_of_functions(rows, q, len(tau)), strict=True):
        for i in range(len(tau)):
            tau[i] = tau[i] + row[i] * x


def row_motion(tree: Tree, rows: ConstraintRows, q, v, a, result) -> None:
    """Write J a + J' v."""
    X = joint_transforms(tree, q)
    w, c = velocity_products(tree, X, v)
    for j in range(len(c)):
        c[j] = c[j] + unit_motion(tree.axis[j], a[j])
    b = row_accelerations(tree, rows, X, w, spatial_velocities(tree, X, v), accelerations_of_velocities(tree, X, c))
    add_entry_accelerations(rows.entries, q, configuration_rate(tree, q, v), v, b)
    add_entry_products(rows, q, a, b)
    for r in range(len(rows.K)):
        result[r] = b[r]


def add_entry_products(rows: ConstraintRows, q, a, b) -> None:
    """Add the products of those entries of J that are functions of q with a."""
    for r, row in enumerate(entries_of_functions(rows, q, len(a))):
        for i in range(len(a)):
            b[r] = b[r] + row[i] * a[i]


class KktFactors(NamedTuple):
    """M = L^T D L with d = 1 / D and N = L^-1, Y = J N, and Y D^-1 Y^T, damped, = C diag(1 / reciprocal) C^T."""

    L: Any
    d: Any
    N: Any
    Y: Any
    C: Any
    reciprocal: Any


def kkt_factors(parent, reduction: Reduction, M, J, damping) -> KktFactors:
    n, m = len(parent), len(J)
    L = on_pattern(parent, M)
    d = ltdl_in_situ(parent, L)
    N = [[0.0] * n for _ in range(n)]
    invert_unit(parent, L, N)
    Y = back_substituted(parent, L, J)
    D = [[0.0] * m for _ in range(m)]
    write_products(n, m, Y, d, D)
    damp_rows(reduction, damping, D)
    C, reciprocal, _ = factorize_semidefinite(m, D)
    return KktFactors(L, d, N, Y, C, reciprocal)


@takes_mechanism
def motion_slopes(system, dtau_dq, dtau_dv, pull_dq, R) -> None:
    """Write the derivatives of M q'' + c + g - J^T f by q and, next to them, by v."""
    n = len(system.parent)
    for i in range(n):
        for k in range(n):
            R[i][k] = dtau_dq[i][k] - pull_dq[i][k]
            R[i][n + k] = dtau_dv[i][k]


@takes_mechanism
def row_slopes(system, reduction: Reduction, rows_dq, rows_dv, target_dq, target_dv, S) -> None:
    """Write the derivatives of J q'' + J' v - b by q and, next to them, by v."""
    n = len(system.parent)
    for k in range(n):
        by_q = gathered(reduction, [row[k] for row in target_dq])
        by_v = gathered(reduction, [row[k] for row in target_dv])
        for r in range(len(S)):
            S[r][k] = rows_dq[r][k] - by_q[r]
            S[r][n + k] = rows_dv[r][k] - by_v[r]


@takes_mechanism
def solved_constraints(system, reduction: Reduction, M, J, R, S, damping, results) -> None:
    """Write the derivatives of q'' and of the forces of all rows, by q, v and tau."""
    a_q, a_v, a_tau, f_q, f_v, f_tau = results
    n, m = len(system.parent), len(J)
    F = kkt_factors(system.parent, reduction, M, J, damping)
    for k in range(2 * n):
        by = (a_q, f_q) if k < n else (a_v, f_v)
        write_column(system.parent, F, reduction, [R[i][k] for i in range(n)], [S[r][k] for r in range(m)], k % n, by)
    write_by_forces(system.parent, F, reduction, a_tau, f_tau)


def write_column(parent, F: KktFactors, reduction: Reduction, z, S, k: int, results) -> None:
    """Write column k of the derivatives of q'' and the forces, given that of R, in z, and of S."""
    accelerations, forces = results
    n, m = len(parent), len(S)
    back_substitute(parent, F.L, z)
    y = [F.d[i] * z[i] for i in range(n)]
    b = [0.0] * m
    for r in range(m):
        b[r] = 0.0 - S[r]
        for i in range(n):
            b[r] = b[r] + F.Y[r][i] * y[i]
    f = solve(m, F.C, F.reciprocal, b)
    for i in range(n):
        pull = 0.0
        for r in range(m):
            pull = pull + F.Y[r][i] * f[r]
        y[i] = F.d[i] * pull - y[i]
    for i in range(n):
        total = y[i]
        j = parent[i]
        while j >= 0:
            total = total + F.N[i][j] * y[j]
            j = parent[j]
        accelerations[i][k] = total
    write_spread(reduction, f, forces, k)


def write_by_forces(parent, F: KktFactors, reduction: Reduction, a_tau, f_tau) -> None:
    """Write M^-1 - W^T Lambda W and -Lambda W, for W = J M^-1 and Lambda = (J M^-1 J^T)^-1."""
    n, m = len(parent), len(F.Y)
    product_with_transpose(parent, F.N, F.d, a_tau)
    W = [[0.0] * n for _ in range(m)]
    for r in range(m):
        for i in range(n):
            total = F.d[i] * F.Y[r][i]
            j = parent[i]
            while j >= 0:
                total = total + F.N[i][j] * (F.d[j] * F.Y[r][j])
                j = parent[j]
            W[r][i] = total
    for k in range(n):
        f = solve(m, F.C, F.reciprocal, [0.0 - W[r][k] for r in range(m)])
        write_spread(reduction, f, f_tau, k)
        for i in range(k + 1):
            total = a_tau[i][k]
            for r in range(m):
                total = total + W[r][i] * f[r]
            a_tau[i][k] = total
            a_tau[k][i] = total


def write_spread(reduction: Reduction, f, forces, k: int) -> None:
    """Write column k of the derivatives of the forces of all rows."""
    column = [0.0] * len(forces)
    spread_out(reduction, f, column)
    for r in range(len(forces)):
        forces[r][k] = column[r]
