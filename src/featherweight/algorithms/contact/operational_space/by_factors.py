"""Operational space through the joint-space inertia matrix, for constraint rows of any kind.

M = L^T D L,   Y = J L^-1,   J M^-1 J^T = Y D^-1 Y^T,   M^-1 J^T = L^-1 D^-1 Y^T      (Featherstone 2005, 2010)
"""

from __future__ import annotations

from ....model.tree import Tree
from ....spatial import ZERO_FORCE
from ...crba import crba
from ...kinematics import (
    accelerations_of_velocities,
    angular_velocities,
    joint_transforms,
    spatial_velocities,
    velocity_products,
)
from ...ltdl import ltdl_in_situ
from ...rnea import newton_euler
from ..constraint_rows import Rows, bias_accelerations, jacobian
from ..delassus.dense import by_cholesky
from .dense_factors import factorize, invert, solve, solve_dependent
from .reduction import Reduction, gathered, spread_out


def row_jacobian(tree: Tree, rows: Rows, q, J) -> None:
    """Write J, m by n."""
    jacobian(tree, rows, joint_transforms(tree, q), q, J)


def delassus(tree: Tree, rows: Rows, q, D) -> None:
    """Write J M^-1 J^T."""
    L, d = factors(tree, q)
    write_delassus(tree.parent, L, d, matrix(tree, rows, q), D)


def dense(tree: Tree, rows: Rows, q, D) -> None:
    """Write J M^-1 J^T, by Cholesky's factors of the full inertia matrix."""
    by_cholesky(tree, q, matrix(tree, rows, q), D)


def inertia(tree: Tree, rows: Rows, q, result) -> None:
    """Write (J M^-1 J^T)^-1."""
    delassus(tree, rows, q, result)
    invert(len(rows.K), result)


def apply(tree: Tree, rows: Rows, q, x, y) -> None:
    """Write J M^-1 J^T x without the matrix."""
    L, d = factors(tree, q)
    write_applied(tree.parent, L, d, matrix(tree, rows, q), x, y)


def bias(tree: Tree, rows: Rows, q, v, beta) -> None:
    """Write J' v - J M^-1 (c + g)."""
    L, d = factors(tree, q)
    z = unbalanced(tree, q, v, [0.0] * len(tree.parent))
    write_accelerations(tree.parent, L, d, matrix(tree, rows, q), gained(tree, rows, q, v), z, beta)


def consistent_inverse(tree: Tree, rows: Rows, q, result) -> None:
    """Write M^-1 J^T (J M^-1 J^T)^-1, n by m."""
    L, d = factors(tree, q)
    write_consistent_inverse(tree.parent, L, d, matrix(tree, rows, q), result)


def null_space_projector(tree: Tree, rows: Rows, q, N) -> None:
    """Write 1 - M^-1 J^T (J M^-1 J^T)^-1 J."""
    L, d = factors(tree, q)
    write_null_space_projector(tree.parent, L, d, matrix(tree, rows, q), N)


def constrained(tree: Tree, rows: Rows, reduction: Reduction, q, v, tau, result) -> None:
    """Accelerations and forces of constraints that hold still."""
    constrained_to(tree, rows, reduction, q, v, tau, [0.0] * len(reduction.spread), result)


def constrained_to(tree: Tree, rows: Rows, reduction: Reduction, q, v, tau, target, result) -> None:
    """q'' with J q'' + J' v = target, the forces, and how strained they are: M q'' + c + g = tau + J^T f."""
    L, d = factors(tree, q)
    z = unbalanced(tree, q, v, tau)
    J = matrix(tree, rows, q)
    write_constrained(tree.parent, L, d, J, gained(tree, rows, q, v), z, reduction, target, result)


# What these have of a tree


def factors(tree: Tree, q):
    """L, and the reciprocals of D."""
    n = len(tree.parent)
    L = [[0.0] * n for _ in range(n)]
    d = [0.0] * n
    crba(tree, q, L)
    ltdl_in_situ(tree.parent, L)
    for i in range(n):
        d[i] = 1.0 / L[i][i]
    return L, d


def matrix(tree: Tree, rows: Rows, q):
    """J."""
    J = [[0.0] * len(tree.parent) for _ in range(len(rows.K))]
    jacobian(tree, rows, joint_transforms(tree, q), q, J)
    return J


def unbalanced(tree: Tree, q, v, tau):
    """tau - c - g."""
    n = len(tree.parent)
    z = [0.0] * n
    newton_euler(tree, q, v, [0.0] * n, [ZERO_FORCE] * n, z)
    for i in range(n):
        z[i] = tau[i] - z[i]
    return z


def gained(tree: Tree, rows: Rows, q, v):
    """J' v."""
    X = joint_transforms(tree, q)
    w, carried = angular_velocities(tree, X, v)
    a = accelerations_of_velocities(tree, X, velocity_products(tree, X, w, carried, v))
    return bias_accelerations(tree, rows, X, w, spatial_velocities(tree, X, v), a, q, v)


# What follows from L, 1/D and J, for the velocities of a tree or the independent ones of a mechanism with loops


def halves(parent, L, J):
    """Y = J L^-1."""
    n, m = len(parent), len(J)
    Y = [[0.0] * n for _ in range(m)]
    for r in range(m):
        for i in range(n):
            Y[r][i] = J[r][i]
        divide_transposed(parent, L, Y[r])
    return Y


def divide_transposed(parent, L, y) -> None:
    """Replace y by L^-T y."""
    for i in range(len(parent) - 1, -1, -1):
        j = parent[i]
        while j >= 0:
            y[j] = y[j] - L[i][j] * y[i]
            j = parent[j]


def divide(parent, L, y) -> None:
    """Replace y by L^-1 y."""
    for i in range(len(parent)):
        j = parent[i]
        while j >= 0:
            y[i] = y[i] - L[i][j] * y[j]
            j = parent[j]


def write_products(n: int, m: int, Y, d, D) -> None:
    """Write Y D^-1 Y^T."""
    for r in range(m):
        Z = [0.0] * n
        for i in range(n):
            Z[i] = Y[r][i] * d[i]
        for s in range(r + 1):
            total = 0.0
            for i in range(n):
                total = total + Z[i] * Y[s][i]
            D[r][s] = total
            D[s][r] = total


def write_delassus(parent, L, d, J, D) -> None:
    """Write J M^-1 J^T."""
    write_products(len(parent), len(J), halves(parent, L, J), d, D)


def write_applied(parent, L, d, J, x, y) -> None:
    """Write J M^-1 J^T x without the matrix."""
    n, m = len(parent), len(J)
    z = [0.0] * n
    for i in range(n):
        for r in range(m):
            z[i] = z[i] + J[r][i] * x[r]
    divide_transposed(parent, L, z)
    for i in range(n):
        z[i] = d[i] * z[i]
    divide(parent, L, z)
    for r in range(m):
        total = 0.0
        for i in range(n):
            total = total + J[r][i] * z[i]
        y[r] = total


def write_accelerations(parent, L, d, J, gained, z, b) -> None:
    """Write J M^-1 z + J' v."""
    divide_transposed(parent, L, z)
    accelerate(halves(parent, L, J), d, gained, z, b)


def accelerate(Y, d, gained, z, b) -> None:
    """Write Y D^-1 z + J' v."""
    n = len(z)
    dz = [0.0] * n
    for i in range(n):
        dz[i] = d[i] * z[i]
    for r in range(len(Y)):
        total = gained[r]
        for i in range(n):
            total = total + Y[r][i] * dz[i]
        b[r] = total


def write_consistent_inverse(parent, L, d, J, result) -> None:
    """Write M^-1 J^T (J M^-1 J^T)^-1."""
    n, m = len(parent), len(J)
    Y = halves(parent, L, J)
    D = [[0.0] * m for _ in range(m)]
    write_products(n, m, Y, d, D)
    for r in range(m):
        for i in range(n):
            Y[r][i] = d[i] * Y[r][i]
        divide(parent, L, Y[r])
    C, reciprocal = factorize(m, D)
    for i in range(n):
        x = solve(m, C, reciprocal, [Y[r][i] for r in range(m)])
        for r in range(m):
            result[i][r] = x[r]


def write_null_space_projector(parent, L, d, J, N) -> None:
    """Write 1 - M^-1 J^T (J M^-1 J^T)^-1 J."""
    n, m = len(parent), len(J)
    inverse = [[0.0] * m for _ in range(n)]
    write_consistent_inverse(parent, L, d, J, inverse)
    write_projector(n, m, inverse, J, N)


def write_projector(n: int, m: int, inverse, J, N) -> None:
    """Write 1 - inverse J."""
    for i in range(n):
        for j in range(n):
            total = 1.0 if i == j else 0.0
            for r in range(m):
                total = total - inverse[i][r] * J[r][j]
            N[i][j] = total


def write_constrained(parent, L, d, J, gained, z, reduction: Reduction, target, result) -> None:
    """Write accelerations with J a + J' v = target, forces f, and how strained they are: M a = z + J^T f."""
    n, m = len(parent), len(J)
    Y = halves(parent, L, J)
    D = [[0.0] * m for _ in range(m)]
    b = [0.0] * m
    divide_transposed(parent, L, z)
    accelerate(Y, d, gained, z, b)
    write_products(n, m, Y, d, D)
    aim = gathered(reduction, target)
    for r in range(m):
        b[r] = aim[r] - b[r]
    f, strain = solve_dependent(m, D, b, reduction.dependent)
    for i in range(n):
        for r in range(m):
            z[i] = z[i] + Y[r][i] * f[r]
        z[i] = d[i] * z[i]
    divide(parent, L, z)
    for i in range(n):
        result[i] = z[i]
    spread_out(reduction, f, result, n)
    result[n + len(reduction.spread)] = strain
