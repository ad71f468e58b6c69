"""Operational space of mechanisms with loops, for contacts and rows of other kinds, in the independent velocities.

All is as for a tree (operational_space/joint_space.py), with the inertia matrix, the Jacobian and the bias force of these.
"""

from __future__ import annotations

from ..contact.constraint_rows import Rows
from ..contact.operational_space.by_factors import (
    write_accelerations,
    write_applied,
    write_consistent_inverse,
    write_constrained,
    write_delassus,
    write_null_space_projector,
)
from ..contact.operational_space.dense_factors import invert
from ..contact.operational_space.reduction import Reduction
from .cluster_tree import Mechanism
from .crba_ltdl import in_situ
from .rnea import bias_force
from .row_jacobian import row_jacobian, velocity_products_of_rows


def ltl(mech: Mechanism, rows: Rows, q, D) -> None:
    """Write J M^-1 J^T by sparse factors."""
    L, d = factors(mech, q)
    write_delassus(mech.parent, L, d, matrix(mech, rows, q), D)


def inertia(mech: Mechanism, rows: Rows, q, result) -> None:
    """Write (J M^-1 J^T)^-1."""
    ltl(mech, rows, q, result)
    invert(len(rows.K), result)


def apply(mech: Mechanism, rows: Rows, q, x, y) -> None:
    """Write J M^-1 J^T x without the matrix."""
    L, d = factors(mech, q)
    write_applied(mech.parent, L, d, matrix(mech, rows, q), x, y)


def bias(mech: Mechanism, rows: Rows, q, v, beta) -> None:
    """Write J' v - J M^-1 (c + g)."""
    z = unbalanced(mech, q, v, [0.0] * len(mech.parent))
    gained = velocity_products_of_rows(mech, rows, q, v)
    L, d = factors(mech, q)
    write_accelerations(mech.parent, L, d, matrix(mech, rows, q), gained, z, beta)


def consistent_inverse(mech: Mechanism, rows: Rows, q, result) -> None:
    """Write M^-1 J^T (J M^-1 J^T)^-1, nv by m."""
    L, d = factors(mech, q)
    write_consistent_inverse(mech.parent, L, d, matrix(mech, rows, q), result)


def null_space_projector(mech: Mechanism, rows: Rows, q, N) -> None:
    """Write 1 - M^-1 J^T (J M^-1 J^T)^-1 J."""
    L, d = factors(mech, q)
    write_null_space_projector(mech.parent, L, d, matrix(mech, rows, q), N)


def constrained(mech: Mechanism, rows: Rows, reduction: Reduction, q, v, tau, result) -> None:
    """Accelerations and forces of constraints that hold still."""
    constrained_to(mech, rows, reduction, q, v, tau, [0.0] * len(reduction.spread), result)


def constrained_to(mech: Mechanism, rows: Rows, reduction: Reduction, q, v, tau, target, result) -> None:
    """y'' with J y'' + J' v = target, the forces, and how strained they are: M y'' + c + g = tau + J^T f."""
    z = unbalanced(mech, q, v, tau)
    gained = velocity_products_of_rows(mech, rows, q, v)
    L, d = factors(mech, q)
    write_constrained(mech.parent, L, d, matrix(mech, rows, q), gained, z, reduction, target, result)


def factors(mech: Mechanism, q):
    """L, and the reciprocals of D."""
    L = in_situ(mech, q)
    return L, [1.0 / L[i][i] for i in range(len(L))]


def matrix(mech: Mechanism, rows: Rows, q):
    """J G."""
    J = [[0.0] * len(mech.parent) for _ in rows.K]
    row_jacobian(mech, rows, q, J)
    return J


def unbalanced(mech: Mechanism, q, v, tau):
    """tau - c - g."""
    z = [0.0] * len(mech.parent)
    bias_force(mech, q, v, z)
    return [t - x for t, x in zip(tau, z, strict=True)]
