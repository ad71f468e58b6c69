"""Operational space by factors of the joint-space inertia matrix, for any constraint rows of a tree or a mechanism.

M = L^T D L,   Y = J L^-1,   J M^-1 J^T = Y D^-1 Y^T,   M^-1 J^T = L^-1 D^-1 Y^T      (Featherstone 2005, 2010)
"""

from __future__ import annotations

from ...crba_ltdl import factorized_mass_matrix, row_bias, write_bias_force, write_row_jacobian
from ...ltdl import back_substitute, forward_substitute, solve_in_situ
from ...mechanisms.counterparts import takes_mechanism
from ..constraint_rows import ConstraintRows
from .dense_factors import (
    ReducedRows,
    Reduction,
    damp_rows,
    gathered,
    invert,
    solve_dependent,
    spread_out,
    write_times_inverse,
)


@takes_mechanism
def ltl_rows(system, rows: ConstraintRows, q, D) -> None:
    """Write J M^-1 J^T."""
    L, d = factorized_mass_matrix(system, q)
    Y = back_substituted(system.parent, L, jacobian_of(system, rows, q))
    write_products(len(system.parent), len(Y), Y, d, D)


@takes_mechanism
def inertia(system, rows: ConstraintRows, q, damping, results) -> None:
    """Write (J M^-1 J^T + damping 1)^-1, and the strain."""
    result, strain = results
    ltl_rows(system, rows, q, result)
    strain[0] = invert(len(rows.K), result, damping)


@takes_mechanism
def apply(system, rows: ConstraintRows, q, x, y) -> None:
    """Write J M^-1 J^T x without the matrix."""
    n, m = len(system.parent), len(rows.K)
    L, d = factorized_mass_matrix(system, q)
    J = jacobian_of(system, rows, q)
    z = [0.0] * n
    for i in range(n):
        for r in range(m):
            z[i] = z[i] + J[r][i] * x[r]
    solve_in_situ(system.parent, L, d, z)
    for r in range(m):
        total = 0.0
        for i in range(n):
            total = total + J[r][i] * z[i]
        y[r] = total


@takes_mechanism
def bias(system, rows: ConstraintRows, q, v, beta) -> None:
    """Write J' v - J M^-1 (c + g)."""
    L, d = factorized_mass_matrix(system, q)
    z = net_force(system, q, v, [0.0] * len(system.parent))
    back_substitute(system.parent, L, z)
    Y = back_substituted(system.parent, L, jacobian_of(system, rows, q))
    write_row_accelerations(Y, d, row_bias(system, rows, q, v), z, beta)


@takes_mechanism
def consistent_inverse(system, rows: ConstraintRows, q, results) -> None:
    """Write M^-1 J^T (J M^-1 J^T)^-1, n by m, and the strain."""
    result, strain = results
    strain[0] = write_consistent_inverse(system, jacobian_of(system, rows, q), q, result)


@takes_mechanism
def null_space_projector(system, rows: ConstraintRows, q, results) -> None:
    """Write 1 - M^-1 J^T (J M^-1 J^T)^-1 J, and the strain."""
    N, strain = results
    n, m = len(system.parent), len(rows.K)
    inverse = [[0.0] * m for _ in range(n)]
    J = jacobian_of(system, rows, q)
    strain[0] = write_consistent_inverse(system, J, q, inverse)
    write_projector(n, m, inverse, J, N)


@takes_mechanism
def constrained(system, reduced: ReducedRows, q, v, tau, target, damping, results) -> None:
    """Write q'', the forces f, and their strain: M q'' + c + g = tau + J^T f, J q'' + J' v + damping f = target."""
    rows, reduction = reduced
    qdd, force, strain = results
    n, m = len(system.parent), len(rows.K)
    L, d = factorized_mass_matrix(system, q)
    z = net_force(system, q, v, tau)
    Y = back_substituted(system.parent, L, jacobian_of(system, rows, q))
    D = [[0.0] * m for _ in range(m)]
    b = [0.0] * m
    back_substitute(system.parent, L, z)
    write_row_accelerations(Y, d, row_bias(system, rows, q, v), z, b)
    write_products(n, m, Y, d, D)
    damp_rows(reduction, damping, D)
    wanted = gathered(reduction, target)
    for r in range(m):
        b[r] = wanted[r] - b[r]
    f, strain[0] = solve_dependent(m, D, b, reduction.dependent)
    for i in range(n):
        for r in range(m):
            z[i] = z[i] + Y[r][i] * f[r]
        z[i] = d[i] * z[i]
    forward_substitute(system.parent, L, z)
    for i in range(n):
        qdd[i] = z[i]
    spread_out(reduction, f, force)


@takes_mechanism
def impulse(system, rows: ConstraintRows, reduction: Reduction, q, v, restitution, results) -> None:
    """Write the velocity w with J w = -restitution J v, the impulses p, and their strain: M (w - v) = J^T p."""
    after, given, strain = results
    n, m = len(system.parent), len(rows.K)
    L, d = factorized_mass_matrix(system, q)
    J = jacobian_of(system, rows, q)
    b = [0.0] * m
    for r in range(m):
        for i in range(n):
            b[r] = b[r] - J[r][i] * v[i]
        b[r] = (1.0 + restitution) * b[r]
    Y = back_substituted(system.parent, L, J)
    D = [[0.0] * m for _ in range(m)]
    write_products(n, m, Y, d, D)
    p, strain[0] = solve_dependent(m, D, b, reduction.dependent)
    z = [0.0] * n
    for i in range(n):
        for r in range(m):
            z[i] = z[i] + Y[r][i] * p[r]
        z[i] = d[i] * z[i]
    forward_substitute(system.parent, L, z)
    for i in range(n):
        after[i] = v[i] + z[i]
    spread_out(reduction, p, given)


# Parts


def jacobian_of(system, rows: ConstraintRows, q):
    """Return J."""
    J = [[0.0] * len(system.parent) for _ in range(len(rows.K))]
    write_row_jacobian(system, rows, q, J)
    return J


def net_force(system, q, v, tau):
    """Return tau - c - g."""
    n = len(system.parent)
    z = [0.0] * n
    write_bias_force(system, q, v, z)
    for i in range(n):
        z[i] = tau[i] - z[i]
    return z


def back_substituted(parent, L, J):
    """Return Y = J L^-1."""
    n, m = len(parent), len(J)
    Y = [[0.0] * n for _ in range(m)]
    for r in range(m):
        for i in range(n):
            Y[r][i] = J[r][i]
        back_substitute(parent, L, Y[r])
    return Y


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


def write_row_accelerations(Y, d, bias_acceleration, z, b) -> None:
    """Write Y D^-1 z + J' v."""
    n = len(z)
    dz = [0.0] * n
    for i in range(n):
        dz[i] = d[i] * z[i]
    for r in range(len(Y)):
        total = bias_acceleration[r]
        for i in range(n):
            total = total + Y[r][i] * dz[i]
        b[r] = total


def write_consistent_inverse(system, J, q, result):
    """Write M^-1 J^T (J M^-1 J^T)^-1. Returns the strain."""
    n, m = len(system.parent), len(J)
    L, d = factorized_mass_matrix(system, q)
    Y = back_substituted(system.parent, L, J)
    D = [[0.0] * m for _ in range(m)]
    write_products(n, m, Y, d, D)
    for r in range(m):
        for i in range(n):
            Y[r][i] = d[i] * Y[r][i]
        forward_substitute(system.parent, L, Y[r])
    return write_times_inverse(m, D, Y, result)


def write_projector(n: int, m: int, inverse, J, N) -> None:
    """Write 1 - inverse J."""
    for i in range(n):
        for j in range(n):
            total = 1.0 if i == j else 0.0
            for r in range(m):
                total = total - inverse[i][r] * J[r][j]
            N[i][j] = total
