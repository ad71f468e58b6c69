"""Operational space of mechanisms with loops, for contacts and rows of other kinds, in the independent velocities.

M = L^T D L for the inertia matrix of these, Y = J G L^-1, and all else as for a tree.
"""

from __future__ import annotations

from ..operational_space.dense import invert, solve_dependent
from ..operational_space.joint_space import (
    divide,
    divide_transposed,
    write_consistent_inverse,
    write_products,
    write_projector,
)
from ..operational_space.reduction import Reduction, gathered, spread_out
from ..operational_space.rows import Rows
from .joint_space import in_situ
from .maps import dot
from .mechanism import Mechanism
from .rnea import bias_force
from .rows import row_jacobian, velocity_products_of_rows


def factors(mech: Mechanism, q):
    """L, and the reciprocals of D."""
    L = in_situ(mech, q)
    return L, [1.0 / L[i][i] for i in range(len(L))]


def halves(mech: Mechanism, rows: Rows, q, L):
    """Y = J L^-1, and J."""
    J = [[0.0] * len(mech.parent) for _ in rows.K]
    row_jacobian(mech, rows, q, J)
    Y = [list(row) for row in J]
    for y in Y:
        divide_transposed(mech.parent, L, y)
    return Y, J


def ltl(mech: Mechanism, rows: Rows, q, D) -> None:
    """Write J M^-1 J^T by sparse factors."""
    L, d = factors(mech, q)
    Y, _ = halves(mech, rows, q, L)
    write_products(len(mech.parent), len(rows.K), Y, d, D)


def inertia(mech: Mechanism, rows: Rows, q, result) -> None:
    """Write (J M^-1 J^T)^-1."""
    ltl(mech, rows, q, result)
    invert(len(rows.K), result)


def apply(mech: Mechanism, rows: Rows, q, x, y) -> None:
    """Write J M^-1 J^T x without the matrix."""
    n = len(mech.parent)
    L, d = factors(mech, q)
    J = [[0.0] * n for _ in rows.K]
    row_jacobian(mech, rows, q, J)
    z = [dot([row[i] for row in J], x) for i in range(n)]
    divide_transposed(mech.parent, L, z)
    z = [a * b for a, b in zip(d, z, strict=True)]
    divide(mech.parent, L, z)
    for r, row in enumerate(J):
        y[r] = dot(row, z)


def accelerations(mech: Mechanism, rows: Rows, Y, d, z, q, v):
    """J y'' + (J G)' v without forces of constraints, from z of `free_halves`."""
    dz = [x * y for x, y in zip(d, z, strict=True)]
    return [x + dot(row, dz) for x, row in zip(velocity_products_of_rows(mech, rows, q, v), Y, strict=True)]


def free_halves(mech: Mechanism, L, q, v, tau):
    """L^-T (tau - c - g)."""
    z = [0.0] * len(mech.parent)
    bias_force(mech, q, v, z)
    z = [t - x for t, x in zip(tau, z, strict=True)]
    divide_transposed(mech.parent, L, z)
    return z


def bias(mech: Mechanism, rows: Rows, q, v, beta) -> None:
    """Write J' v - J M^-1 (c + g)."""
    L, d = factors(mech, q)
    Y, _ = halves(mech, rows, q, L)
    z = free_halves(mech, L, q, v, [0.0] * len(mech.parent))
    for r, x in enumerate(accelerations(mech, rows, Y, d, z, q, v)):
        beta[r] = x


def consistent_inverse(mech: Mechanism, rows: Rows, q, result) -> None:
    """Write M^-1 J^T (J M^-1 J^T)^-1, nv by m."""
    L, d = factors(mech, q)
    Y, _ = halves(mech, rows, q, L)
    write_consistent_inverse(mech, rows, L, d, Y, result)


def null_space_projector(mech: Mechanism, rows: Rows, q, N) -> None:
    """Write 1 - M^-1 J^T (J M^-1 J^T)^-1 J."""
    n, m = len(mech.parent), len(rows.K)
    inverse = [[0.0] * m for _ in range(n)]
    consistent_inverse(mech, rows, q, inverse)
    J = [[0.0] * n for _ in range(m)]
    row_jacobian(mech, rows, q, J)
    write_projector(n, m, inverse, J, N)


def constrained(mech: Mechanism, rows: Rows, reduction: Reduction, q, v, tau, result) -> None:
    """Accelerations and forces of constraints that hold still."""
    constrained_to(mech, rows, reduction, q, v, tau, [0.0] * len(reduction.spread), result)


def constrained_to(mech: Mechanism, rows: Rows, reduction: Reduction, q, v, tau, target, result) -> None:
    """y'' with J y'' + J' v = target, the forces, and how strained they are: M y'' + c + g = tau + J^T f."""
    n, m = len(mech.parent), len(rows.K)
    L, d = factors(mech, q)
    Y, _ = halves(mech, rows, q, L)
    z = free_halves(mech, L, q, v, tau)
    b = accelerations(mech, rows, Y, d, z, q, v)
    D = [[0.0] * m for _ in range(m)]
    write_products(n, m, Y, d, D)
    aim = gathered(reduction, target)
    f, strain = solve_dependent(m, D, [x - y for x, y in zip(aim, b, strict=True)], reduction.dependent)
    z = [d[i] * (z[i] + dot([row[i] for row in Y], f)) for i in range(n)]
    divide(mech.parent, L, z)
    for i in range(n):
        result[i] = z[i]
    spread_out(reduction, f, result, n)
    result[n + len(reduction.spread)] = strain
