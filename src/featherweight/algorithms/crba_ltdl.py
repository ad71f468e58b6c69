"""Functions of the inertia matrix and its sparse factors, for a tree or a mechanism: CRBA and LTDL (Featherstone 2005).

H = L^T D L,     H q'' = tau - c     for the bias force c

A system is a Tree, or a ClusterTree with its independent velocities. Both have

    parent     the tree on whose paths the inertia matrix H has its entries
    H, c + g   the inertia matrix, and the forces due to velocities and gravity
    J, J' v    the Jacobian of constraint rows, and their accelerations without joint accelerations
"""

from __future__ import annotations

from ..model.tree import Placements, Tree
from ..spatial import sqrt
from .contact.constraint_rows import row_bias_acceleration, row_jacobian
from .crba import crba
from .ltdl import invert_unit, ltdl_in_situ, pack, product_with_transpose, solve_in_situ
from .mechanisms.counterparts import counterpart, takes_mechanism
from .rnea import bias_force, rnea


def kernel_for(system, kernel):
    """Return the kernel itself for a tree, or its counterpart for a mechanism."""
    return kernel if isinstance(system, Tree) else counterpart(kernel)


def write_mass_matrix(system, q, H) -> None:
    """Write H."""
    kernel_for(system, crba)(system, q, H)


def write_bias_force(system, q, v, tau) -> None:
    """Write c + g."""
    kernel_for(system, bias_force)(system, q, v, tau)


def write_joint_forces(system, bodies, q, v, qdd, forces, tau) -> None:
    """Write H q'' + c + g minus the joint forces of `forces` on the bodies."""
    kernel_for(system, rnea)(system, bodies, q, v, qdd, forces, tau)


def write_row_jacobian(system, rows, q, J) -> None:
    """Write J."""
    kernel_for(system, row_jacobian)(system, rows, q, J)


def row_bias(system, rows, q, v):
    """Return J' v."""
    return kernel_for(system, row_bias_acceleration)(system, rows, q, v)


def factorized_mass_matrix(system, q):
    """Return L, with D on its diagonal, and the reciprocals of D."""
    n = len(system.parent)
    L = [[0.0] * n for _ in range(n)]
    write_mass_matrix(system, q, L)
    r = ltdl_in_situ(system.parent, L)
    return L, r


@takes_mechanism
def packed_factors(system, q, F) -> None:
    """Write the packed LTDL factors of the inertia matrix."""
    L, _ = factorized_mass_matrix(system, q)
    pack(system.parent, L, F)


@takes_mechanism
def crba_ltdl(system, bodies: Placements, q, v, tau, forces, qdd) -> None:
    """Write the accelerations under the joint forces `tau` and the `forces` on the bodies."""
    n = len(system.parent)
    bias = [0.0] * n
    write_joint_forces(system, bodies, q, v, [0.0] * n, forces, bias)
    L, r = factorized_mass_matrix(system, q)
    for i in range(n):
        qdd[i] = tau[i] - bias[i]
    solve_in_situ(system.parent, L, r, qdd)


@takes_mechanism
def inverse_by_factors(system, q, inverse) -> None:
    """Write the inverse of the inertia matrix, N D^-1 N^T with N = L^-1."""
    n = len(system.parent)
    N = [[0.0] * n for _ in range(n)]
    L, r = factorized_mass_matrix(system, q)
    invert_unit(system.parent, L, N)
    product_with_transpose(system.parent, N, r, inverse)


@takes_mechanism
def inverse_factor(system, columns: tuple[int, ...], q, C) -> None:
    """Write C = N D^-1/2, whose product C C^T is the inverse of the inertia matrix.

    `columns` are those of the nonzero entries in the rows of C, in the order of a packed factor.
    """
    n = len(system.parent)
    N = [[0.0] * n for _ in range(n)]
    L, r = factorized_mass_matrix(system, q)
    invert_unit(system.parent, L, N)
    k = 0
    for i in range(n):
        r[i] = sqrt(r[i])
        for j in range(len(C[i])):
            C[i][j] = 0.0
        j = i
        while j >= 0:
            C[i][columns[k]] = N[i][j] * r[j]
            k += 1
            j = system.parent[j]


@takes_mechanism
def solve_by_factors(system, q, B, result) -> None:
    """Write the inverse of the inertia matrix times B, both n by m."""
    n = len(system.parent)
    L, r = factorized_mass_matrix(system, q)
    for c in range(len(B[0])):
        x = [B[i][c] for i in range(n)]
        solve_in_situ(system.parent, L, r, x)
        for i in range(n):
            result[i][c] = x[i]
