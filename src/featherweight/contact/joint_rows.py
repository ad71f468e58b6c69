"""Rows of joints in the contact problem: limits and dry friction.

A limit is a contact with a gap, the distance sign (q - bound) of its coordinate, and the opening speed sign q'; its impulse is
nonnegative. Friction is always active, has no gap, and its impulse is between a negative and a positive bound. Compliant
equalities are always active, too: their gaps have either sign, and their impulses have no bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Booleans, Integers, Shared, Vector
from .contact_settings import ContactSettings

JOINT_MARGIN = 0.1  # gap [rad, m] below which a limit is active, relative to the margin of contacts
BEYOND = 1e-3  # [rad, m] violation from which a joint of a loop must come back; fast steps have smaller errors
LEAST_RETURN = 1e-6  # displacement, relative to that of the fastest joint, that counts as a rounding error


class JointRows(NamedTuple):
    """Lower limits, then upper limits, then friction, and rows held at zero by springs and dampers."""

    joint: Shared[Integers]  # (rows,) index among the degrees of freedom with limits or friction
    dof: Shared[Integers]  # (rows,) index among the velocities of all joints
    at: Shared[Integers]  # (rows,) index of its coordinate in q
    bound: Vector  # (rows,) [rad, m] limits
    sign: Shared[Vector]  # (rows,) 1.0, or -1.0 for an upper limit
    friction: Shared[Booleans]  # (rows,) whether the row is always active: friction and equalities
    lower: Vector  # (rows,) [N s, N m s], least impulse
    upper: Vector  # (rows,) greatest impulse
    first: Shared[Integers]  # (rows,) first row of an equality with several rows
    holds: Shared[Integers]  # (rows,) number of rows of the equality; 0 for all other rows


def write_row_gaps(rows: JointRows, q: Vector, gap: Vector) -> None:
    """Write gaps (rows,) of one robot at its coordinates, infinite for friction."""
    for r in range(len(rows.joint)):
        rubs = rows.friction[r] and rows.holds[r] == 0
        gap[r] = np.inf if rubs else rows.sign[r] * (q[rows.at[r]] - rows.bound[r])


def write_row_speeds(rows: JointRows, velocity: Vector, speed: Vector) -> None:
    """Write speeds (rows,) of one robot for velocities (n,) of all joints."""
    for r in range(len(rows.joint)):
        speed[r] = rows.sign[r] * velocity[rows.dof[r]]


def is_active(rows: JointRows, r: int, gap: float, speed: float, settings: ContactSettings) -> bool:
    """Return whether a row is active: friction, or a limit that is near, or would be at the end of the step.

    Compliant limits are active beyond the limit only.
    """
    if settings.law != 0:  # rigid
        return rows.friction[r] or gap < 0.0
    return rows.friction[r] or min(gap, gap + settings.step * speed) < JOINT_MARGIN * settings.margin


def any_active(rows: JointRows, gap: Vector, speed: Vector, settings: ContactSettings) -> bool:
    """Return whether any row of one robot is active."""
    active = False
    for r in range(len(rows.joint)):
        active |= is_active(rows, r, gap[r], speed[r], settings)
    return active


def farthest_beyond(rows: JointRows, gap: Vector) -> int:
    """Return the row of the limit with the least gap."""
    worst = 0
    for r in range(len(rows.joint)):
        if gap[r] < gap[worst]:
            worst = r
    return worst


def comes_back(gained: float, expected: float, parting: float) -> bool:
    """Return whether a displacement brings a joint of a loop back by at least half of the first-order expectation.

    If a loop does not let the joint move, nothing is expected; at a dead centre, nothing is gained.
    """
    return gained > max(0.5 * expected, LEAST_RETURN * parting)
