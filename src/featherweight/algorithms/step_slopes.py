"""Derivatives of a semi-implicit step: of the velocity after it, and of the state after it.

    load    L = Sᵀ K S dq + Sᵀ D d(S v) + d(Sᵀ) f      K, D: slopes of the forces f of rows, by position and by velocity
    u       du = dv + h (da + d(w x v)),  da = da/dq dq + da/dv dv + da/dtau L
    state   dq+, dv+ = Jacobians of `integration.advance` times dq, du

S maps independent velocities to those of all rows; it is 1 for trees.
"""

from __future__ import annotations

from .inverse_kinematics.prioritized import dot, is_zero


def write_identity(v, maps) -> None:
    """Write d(S v)/dq, S and d(Sᵀ f)/dq of a tree: zero, 1 and zero."""
    _, S, _ = maps
    for i in range(len(S)):
        S[i][i] = 1.0


def write_velocity_slopes(drive_rows: tuple[int, ...], h, by_tau, by_position, by_velocity, *others) -> None:
    """Write du by (dq, dv, dtau, dcontrols), where drives with slopes `by_control` act on rows."""
    *by_control, da_dq, da_dv, da_dtau, turning, turned, S, carried, slopes = others
    n = len(by_tau)
    for i, row in enumerate(slopes):
        by_force = [dot(da_dtau[i], arm) for arm in S]
        stiff, damped = ([x * k for x, k in zip(by_force, own, strict=True)] for own in (by_position, by_velocity))
        by_q, by_v = [*da_dq[i]], [*da_dv[i]]
        for total, factors, matrix in (
            (by_q, da_dtau[i], carried), (by_q, stiff, S), (by_q, damped, turned), (by_v, damped, S),
        ):  # fmt: skip
            add_products(factors, matrix, total)
        for j in range(n):
            row[j], row[n + j], row[2 * n + j] = h * by_q[j], turning[i][j] + h * by_v[j], h * (da_dtau[i][j] * by_tau[j])
        for own in by_control:
            for k, r in enumerate(drive_rows):
                row[3 * n + k] = h * (by_force[r] * own[k])


def write_end_slopes(q_by_q, q_by_u, v_by_q, v_by_u, slopes, ends) -> None:
    """Write dq+ and dv+ by the directions of du, which begin with those of q."""
    for i, (by_q, by_u) in enumerate(zip([*q_by_q, *v_by_q], [*q_by_u, *v_by_u], strict=True)):
        row = [*by_q, *[0.0] * (len(ends[i]) - len(by_q))]
        add_products(by_u, slopes, row)
        ends[i][:] = row


def add_products(factors, matrix, total) -> None:
    """Add the product of a row of factors and a matrix."""
    for x, row in zip(factors, matrix, strict=True):
        if not is_zero(x):
            for j, y in enumerate(row):
                if not is_zero(y):
                    total[j] = total[j] + x * y
