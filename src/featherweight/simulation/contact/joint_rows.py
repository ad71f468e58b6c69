"""Rows of joints in the contact problem: limits and dry friction, compiled by Numba.

A limit is a contact with a gap, the distance sign (q - bound) of its coordinate, and the speed sign q' at which it opens;
its impulse pushes. Friction is always there, has no gap, and its impulse lies between bounds of both signs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compiling import compiled, jitable

JOINT_MARGIN = 0.1  # of the margin of contacts: gap of a joint's limit [rad, m] from which on it counts


class JointRows(NamedTuple):
    """Lower limits, then upper ones, then friction."""

    joint: Any  # (rows,) int, which of the degrees of freedom with limits or friction
    dof: Any  # (rows,) int, its velocity among those of all joints
    at: Any  # (rows,) int, the place of its coordinate in q
    bound: Any  # (rows,) [rad, m] of limits
    sign: Any  # (rows,) 1.0, or -1.0 for an upper limit
    friction: Any  # (rows,) bool
    lower: Any  # (rows,) [N s, N m s], least impulse
    upper: Any  # (rows,) and greatest


@jitable
def write_row_gaps(rows: Any, q: Any, gap: Any) -> None:
    """Gaps (rows,) of one robot, infinite for friction, at q (nq,)."""
    for r in range(len(rows.joint)):
        gap[r] = np.inf if rows.friction[r] else rows.sign[r] * (q[rows.at[r]] - rows.bound[r])


@jitable
def write_row_speeds(rows: Any, velocity: Any, speed: Any) -> None:
    """Speeds (rows,) of one robot for velocities (n,) of all joints."""
    for r in range(len(rows.joint)):
        speed[r] = rows.sign[r] * velocity[rows.dof[r]]


@jitable
def is_active(rows: Any, r: int, gap: float, speed: float, settings: Any) -> bool:
    """Whether a row counts: friction, or a limit that is near, or would be at the end of the step."""
    return rows.friction[r] or min(gap, gap + settings.step * speed) < JOINT_MARGIN * settings.margin  # type: ignore[no-any-return]


@jitable
def any_active(rows: Any, gap: Any, speed: Any, settings: Any) -> bool:
    """Whether any row of one robot counts."""
    active = False
    for r in range(len(rows.joint)):
        active |= is_active(rows, r, gap[r], speed[r], settings)
    return active


@compiled
def write_gaps(rows: Any, q: Any, gap: Any) -> None:
    """`write_row_gaps` of many robots."""
    for i in range(len(q)):
        write_row_gaps(rows, q[i], gap[i])


@compiled
def write_speeds(rows: Any, velocity: Any, speed: Any) -> None:
    """`write_row_speeds` of many robots."""
    for i in range(len(velocity)):
        write_row_speeds(rows, velocity[i], speed[i])


@compiled
def write_active(rows: Any, gap: Any, speed: Any, settings: Any, active: Any) -> None:
    """`any_active` of many robots."""
    for i in range(len(gap)):
        active[i] = any_active(rows, gap[i], speed[i], settings)
