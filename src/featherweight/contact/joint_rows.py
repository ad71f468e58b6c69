"""Rows of joints in the contact problem: limits and dry friction.

A limit is a contact with a gap, the distance sign (q - bound) of its coordinate, and the speed sign q' at which it opens;
its impulse pushes. Friction is always there, has no gap, and its impulse lies between bounds of both signs. What a compliant
equality holds is always there, too: its gap may have either sign, and its impulse has no bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.loops.array_types import Booleans, Integers, Vector
from .contact_settings import ContactSettings

JOINT_MARGIN = 0.1  # of the margin of contacts: gap of a joint's limit [rad, m] from which on it counts
BEYOND = 1e-3  # [rad, m] from which on a joint of a loop must come back; less is the error of steps that turn fast
LEAST_RETURN = 1e-6  # of the displacement of the joint that moves farthest; less is rounding


class JointRows(NamedTuple):
    """Lower limits, then upper ones, then friction, and what springs and dampers hold at zero."""

    joint: Integers  # (rows,) which of the degrees of freedom with limits or friction
    dof: Integers  # (rows,) its velocity among those of all joints
    at: Integers  # (rows,) the place of its coordinate in q
    bound: Vector  # (rows,) [rad, m] of limits
    sign: Vector  # (rows,) 1.0, or -1.0 for an upper limit
    friction: Booleans  # (rows,) whether it always counts: friction, and what is held
    lower: Vector  # (rows,) [N s, N m s], least impulse
    upper: Vector  # (rows,) and greatest
    first: Integers  # (rows,) of an equality that holds several rows, the first
    holds: Integers  # (rows,) and how many it holds; 0 of all other rows


def write_row_gaps(rows: JointRows, q: Vector, gap: Vector) -> None:
    """Gaps (rows,) of one robot, infinite for friction, at its coordinates."""
    for r in range(len(rows.joint)):
        rubs = rows.friction[r] and rows.holds[r] == 0
        gap[r] = np.inf if rubs else rows.sign[r] * (q[rows.at[r]] - rows.bound[r])


def write_row_speeds(rows: JointRows, velocity: Vector, speed: Vector) -> None:
    """Speeds (rows,) of one robot for velocities (n,) of all joints."""
    for r in range(len(rows.joint)):
        speed[r] = rows.sign[r] * velocity[rows.dof[r]]


def is_active(rows: JointRows, r: int, gap: float, speed: float, settings: ContactSettings) -> bool:
    """Whether a row counts: friction, or a limit that is near, or would be at the end of the step."""
    return rows.friction[r] or min(gap, gap + settings.step * speed) < JOINT_MARGIN * settings.margin


def any_active(rows: JointRows, gap: Vector, speed: Vector, settings: ContactSettings) -> bool:
    """Whether any row of one robot counts."""
    active = False
    for r in range(len(rows.joint)):
        active |= is_active(rows, r, gap[r], speed[r], settings)
    return active


def farthest_beyond(rows: JointRows, gap: Vector) -> int:
    """The row of the limit with the least gap."""
    worst = 0
    for r in range(len(rows.joint)):
        if gap[r] < gap[worst]:
            worst = r
    return worst


def comes_back(gained: float, expected: float, parting: float) -> bool:
    """Whether a displacement brings a joint of a loop back: by at least half of what it should to first order.

    Where a loop leaves the joint no way to go, nothing is expected, and where it is at a dead centre, nothing is gained.
    """
    return gained > max(0.5 * expected, LEAST_RETURN * parting)
