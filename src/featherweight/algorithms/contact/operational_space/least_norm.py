"""Operational space for constraint rows of any rank, by orthogonal factors.

M = L^T D L,   A = J L^-1 D^-1/2,   J M^-1 J^T = A A^T

    A = B E,  E E^T = 1    Gram-Schmidt on the rows of A, each time with the row that is most independent of those before
    B = Q R,  Q^T Q = 1    Gram-Schmidt on the columns of B

    (A A^T)^+ = Q R^-T R^-1 Q^T,   A^T (A A^T)^+ = E^T R^-1 Q^T

B has as many columns as there are independent rows. The accuracy depends on the condition of J, not on that of J M^-1 J^T, the
square. Solutions are those of least squares, and of least norm.

`matrices` and `equations` write what the other kernels read. These have branches, so they are not traced, and need nothing of
the system but the tree `parent` on whose paths M has its entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....spatial import sqrt
from ...crba_ltdl import row_bias, write_mass_matrix, write_row_jacobian
from ...ltdl import forward_substitute, ltdl_in_situ, on_pattern, solve_in_situ
from ...mechanisms.counterparts import takes_mechanism
from ..constraint_rows import ConstraintRows
from .by_factors import back_substituted, net_force, write_projector

INDEPENDENT = 1e-16  # square of the least part, relative to its length, of an independent row that other rows do not have
MOVING = 1e-24  # square of the least length of a row, relative to the longest


class OrthogonalFactors(NamedTuple):
    """The factors of A in the docstring of this module; Q is transposed."""

    rank: Any
    E: Any  # (m, n), the first `rank` rows
    Q: Any  # (m, m), the first `rank` rows
    R: Any  # (m, m), upper triangle of the first `rank` rows


def orthogonal_factors(m: int, n: int, A):
    """Return the factors of A, which is destroyed."""
    E, B = zeros(m, n), zeros(m, m)
    whole, left = [0.0] * m, [0.0] * m
    longest = 0.0
    for r in range(m):
        whole[r] = dot(n, A[r], A[r])
        longest = whole[r] if whole[r] > longest else longest
    for r in range(m):
        left[r] = whole[r] if whole[r] > MOVING * longest else 0.0
    rank = 0
    for _ in range(m):
        best, most = -1, INDEPENDENT
        for r in range(m):
            if left[r] > most * whole[r]:
                best, most = r, left[r] / whole[r]
        if best >= 0:
            e = A[best]
            for k in range(rank):  # once more, because the first time leaves rounding errors of the whole row
                B[k][best] = B[k][best] + subtract_part(n, e, E[k])
            B[rank][best] = scale_to_unit(n, e, E[rank])
            left[best] = 0.0
            for r in range(m):
                if left[r] > 0.0:
                    B[rank][r] = subtract_part(n, A[r], E[rank])
                    left[r] = dot(n, A[r], A[r])
            rank = rank + 1
    Q, R = zeros(m, m), zeros(m, m)
    for k in range(rank):
        for _ in range(2):
            for j in range(k):
                R[j][k] = R[j][k] + subtract_part(m, B[k], Q[j])
        R[k][k] = scale_to_unit(m, B[k], Q[k])
    return OrthogonalFactors(rank, E, Q, R)


def zeros(m: int, n: int):
    return [[0.0] * n for _ in range(m)]


def dot(n: int, x, y):
    total = 0.0
    for i in range(n):
        total = total + x[i] * y[i]
    return total


def subtract_part(n: int, x, e):
    """Subtract from x its part along the unit vector e. Returns its length."""
    part = dot(n, x, e)
    for i in range(n):
        x[i] = x[i] - part * e[i]
    return part


def scale_to_unit(n: int, x, e):
    """Write the unit vector of x. Returns the length of x."""
    length = sqrt(dot(n, x, x))
    for i in range(n):
        e[i] = x[i] / length
    return length


def along(m: int, F: OrthogonalFactors, b):
    """Return R^-1 Q^T b, the motion along the rows of E under which A has the value b, in the sense of least squares."""
    w = [0.0] * m
    for k in range(F.rank):
        w[k] = dot(m, F.Q[k], b)
    for k in range(F.rank - 1, -1, -1):
        for j in range(k + 1, F.rank):
            w[k] = w[k] - F.R[k][j] * w[j]
        w[k] = w[k] / F.R[k][k]
    return w


def forces_for(m: int, F: OrthogonalFactors, w):
    """Return Q R^-T w, the forces of least norm that cause the motion w."""
    u, f = [0.0] * m, [0.0] * m
    for k in range(F.rank):
        u[k] = w[k]
        for j in range(k):
            u[k] = u[k] - F.R[j][k] * u[j]
        u[k] = u[k] / F.R[k][k]
        for r in range(m):
            f[r] = f[r] + F.Q[k][r] * u[k]
    return f


@takes_mechanism
def matrices(system, rows: ConstraintRows, q, results) -> None:
    """Write M and J."""
    M, J = results
    write_mass_matrix(system, q, M)
    write_row_jacobian(system, rows, q, J)


@takes_mechanism
def equations(system, rows: ConstraintRows, q, v, tau, results) -> None:
    """Write M, J, tau - c - g and J' v."""
    M, J, net, gained = results
    n, m = len(system.parent), len(rows.K)
    write_mass_matrix(system, q, M)
    write_row_jacobian(system, rows, q, J)
    z, b = net_force(system, q, v, tau), row_bias(system, rows, q, v)
    for i in range(n):
        net[i] = z[i]
    for r in range(m):
        gained[r] = b[r]


class Space(NamedTuple):
    """The sparse factors of the inertia matrix, the reciprocals of D, their roots, and the orthogonal factors of the rows."""

    parent: Any
    L: Any
    d: Any
    root: Any
    J: Any
    F: OrthogonalFactors


def space_of(parent, M, J):
    """Return the factors for the rows J."""
    n, m = len(parent), len(J)
    L = on_pattern(parent, M)
    d = ltdl_in_situ(parent, L)
    root = [0.0] * n
    for i in range(n):
        root[i] = sqrt(d[i])
    A = back_substituted(parent, L, J)
    for r in range(m):
        for i in range(n):
            A[r][i] = A[r][i] * root[i]
    return Space(parent, L, d, root, J, orthogonal_factors(m, n, A))


def motion_of(space: Space, w):
    """Return L^-1 D^-1/2 E^T w, the joint motion."""
    n = len(space.parent)
    z = [0.0] * n
    for i in range(n):
        total = 0.0
        for k in range(space.F.rank):
            total = total + space.F.E[k][i] * w[k]
        z[i] = space.root[i] * total
    forward_substitute(space.parent, space.L, z)
    return z


def write_solution(space: Space, z, b, motion, force) -> None:
    """Write the motion, and the forces of least norm, for which J times the motion is b and M (motion - z) = J^T force."""
    n, m = len(z), len(b)
    w = along(m, space.F, [b[r] - dot(n, space.J[r], z) for r in range(m)])
    change, f = motion_of(space, w), forces_for(m, space.F, w)
    for i in range(n):
        motion[i] = z[i] + change[i]
    for r in range(m):
        force[r] = f[r]


def constrained(parent, M, J, net, gained, target, results) -> None:
    """Write q'' with J q'' + J' v = target, the forces f, and the rank: M q'' + c + g = tau + J^T f."""
    qdd, force, rank = results
    space = space_of(parent, M, J)
    z = [net[i] for i in range(len(parent))]
    write_response(space, z, [target[r] - gained[r] for r in range(len(J))], qdd, force)
    rank[0] = space.F.rank


def impulse(parent, M, J, v, restitution, results) -> None:
    """Write the velocity w with J w = -restitution J v, the impulses p, and the rank: M (w - v) = J^T p."""
    after, given, rank = results
    space = space_of(parent, M, J)
    write_solution(space, v, [0.0 - restitution * dot(len(parent), J[r], v) for r in range(len(J))], after, given)
    rank[0] = space.F.rank


def inertia(parent, M, J, results) -> None:
    """Write the pseudo-inverse of J M^-1 J^T, and the rank."""
    result, rank = results
    m, space = len(J), space_of(parent, M, J)
    for r in range(m):
        f = forces_for(m, space.F, along(m, space.F, unit(m, r)))
        for s in range(m):
            result[s][r] = f[s]
    rank[0] = space.F.rank


def consistent_inverse(parent, M, J, results) -> None:
    """Write M^-1 J^T (J M^-1 J^T)^+, n by m, and the rank."""
    result, rank = results
    rank[0] = write_consistent_inverse(parent, M, J, result)


def null_space_projector(parent, M, J, results) -> None:
    """Write 1 - M^-1 J^T (J M^-1 J^T)^+ J, and the rank."""
    N, rank = results
    n, m = len(parent), len(J)
    inverse = zeros(n, m)
    rank[0] = write_consistent_inverse(parent, M, J, inverse)
    write_projector(n, m, inverse, J, N)


def write_consistent_inverse(parent, M, J, result):
    """Write M^-1 J^T (J M^-1 J^T)^+. Returns the rank."""
    m, space = len(J), space_of(parent, M, J)
    for r in range(m):
        z = motion_of(space, along(m, space.F, unit(m, r)))
        for i in range(len(parent)):
            result[i][r] = z[i]
    return space.F.rank


def unit(m: int, r: int):
    e = [0.0] * m
    e[r] = 1.0
    return e


# Derivatives at a constant rank, with those of the pseudo-inverse (Golub and Pereyra 1973): with P = D D^+ and x = b - D f
#
#     df = D^+ (db - dD f) + D^+ D^+ dD x + (1 - P) dD D^+ f,     dD x = J M^-1 dJ^T x,     (1 - P) dD = (1 - P) dJ M^-1 J^T


def null_parts(parent, M, J, rows, force, target, results) -> None:
    """Write the residuals x of the rows and the motion g = M^-1 J^T D^+ f, of which dJ^T x and dJ g are parts; and zeros."""
    missed, g, rest = results
    n, m = len(parent), len(J)
    space = space_of(parent, M, J)
    z = motion_of(space, along(m, space.F, force))
    for r in range(m):
        missed[r] = target[r] - rows[r]
    for i in range(n):
        g[i] = z[i]
        rest[i] = 0.0


def solved_constraints(parent, M, J, R, S, by_missed, by_g, results) -> None:
    """Write the derivatives of q'' and of the forces, by q, v and tau, as in `constrained_derivatives`."""
    a_q, a_v, a_tau, f_q, f_v, f_tau = results
    n, m = len(parent), len(J)
    space = space_of(parent, M, J)
    motion, force = [0.0] * n, [0.0] * m
    for k in range(n):
        write_response(space, [0.0 - R[i][k] for i in range(n)], [0.0 - S[r][k] for r in range(m)], motion, force)
        add_null_parts(space, [by_missed[i][k] for i in range(n)], [by_g[r][k] for r in range(m)], motion, force)
        write_columns(k, motion, force, a_q, f_q)
        write_response(space, [0.0 - R[i][n + k] for i in range(n)], [0.0 - S[r][n + k] for r in range(m)], motion, force)
        write_columns(k, motion, force, a_v, f_v)
        write_response(space, unit(n, k), [0.0] * m, motion, force)
        write_columns(k, motion, force, a_tau, f_tau)


def write_response(space: Space, z, b, motion, force) -> None:
    """Write the motion and the forces for joint forces z, which are replaced, and J times the motion equal to b."""
    solve_in_situ(space.parent, space.L, space.d, z)
    write_solution(space, z, b, motion, force)


def write_columns(k: int, motion, force, accelerations, forces) -> None:
    """Write column k of two matrices."""
    for i in range(len(motion)):
        accelerations[i][k] = motion[i]
    for r in range(len(force)):
        forces[r][k] = force[r]


def add_null_parts(space: Space, x, y, motion, force) -> None:
    """Add D^+ D^+ J M^-1 x, and the motion that it causes, and (1 - P) y."""
    n, m = len(motion), len(force)
    solve_in_situ(space.parent, space.L, space.d, x)
    change, correction = [0.0] * n, [0.0] * m
    write_solution(space, [0.0] * n, [dot(n, space.J[r], x) for r in range(m)], change, correction)
    write_solution(space, [0.0] * n, correction, change, correction)
    for i in range(n):
        motion[i] = motion[i] + change[i]
    for k in range(space.F.rank):
        subtract_part(m, y, space.F.Q[k])
    for r in range(m):
        force[r] = force[r] + correction[r] + y[r]
