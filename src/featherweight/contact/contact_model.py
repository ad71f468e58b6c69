"""Surfaces and joint rows of a robot, as arrays for compiled functions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Integers, Matrix, Shared, Tensor, Vector
from .compliant.compliance import NONE
from .contact_settings import ContactSettings
from .joint_rows import JointRows

PRESSED = 1e-6  # impulse relative to the pull of adhesion below which it counts as a rounding error
NO_TURNING = np.zeros((0, 3))
NO_SURFACES = np.zeros((0, 2, 6))
NO_TANGENTS = np.zeros((0, 5))
NO_ADHESION = np.zeros((0, 2))


class ContactModel(NamedTuple):
    """The rows in G of the bodies that may touch (see `contact_problem`), the surfaces of candidates, and joint rows."""

    width: Shared[Integers]  # (bodies,) 6 or 3
    friction: Vector  # (candidates,)
    restitution: Shared[Vector]  # (candidates,)
    rows: JointRows
    settings: ContactSettings
    branch: Shared[Integers]  # (bodies,) last branch that moves each body, see `factors.branches`
    joint_branch: Shared[Integers]  # (joints with limits or friction,) the same for joints
    nv: int  # degrees of freedom, an upper bound of the rank of G
    yielding: Matrix = NONE  # (candidates, 12) fields of `compliance.Yielding`, or empty
    yielding_rows: Matrix = NONE  # (joint rows, 12)
    turning: Shared[Matrix] = (
        NO_TURNING  # (candidates, 3) [m] friction against spinning, and rolling about both tangents, or empty
    )
    surfaces: Shared[Tensor] = NO_SURFACES
    """(candidates, 2, 6) velocities of the surfaces a and b relative to their bodies, linear and angular, in the bodies' axes
    and at their origins (for the world, its own); or empty."""
    tangents: Shared[Matrix] = NO_TANGENTS
    """(candidates, 5) two sliding frictions relative to the greater one (`friction`), zero if they are equal, and the direction
    of the first tangent in the axes of body a, zero for MuJoCo's default; or empty."""
    adhesion: Shared[Matrix] = NO_ADHESION
    """(candidates, 2) pull of adhesion [N] and its greatest gap [m]; or empty."""


def pull_of(model: ContactModel, candidate: int, gap: float, last: float = 0.0) -> float:
    """Return the impulse [N s] by which adhesion pulls a contact together; zero if its gap is too wide.

    A rigid contact at rest has a gap of at most the slop. While it rolls, the gap grows with the curvature of its path: if its
    normal impulse in the `last` step shows contact, adhesion holds it up to the margin.
    """
    if len(model.adhesion) == 0:
        return 0.0
    pull, near, settings = model.settings.step * model.adhesion[candidate, 0], model.adhesion[candidate, 1], model.settings
    if settings.law == 0:  # rigid
        near += settings.margin if last != 0.0 and last + pull > PRESSED * pull else settings.slop
    return pull if gap <= near else 0.0


def limited_rows(lower: Vector, upper: Vector, friction: Vector, equality: Integers | None = None) -> Integers:
    """Return the rows of all joints and lengths (n,) with limits or dry friction, or that an equality holds."""
    kept = np.zeros(len(friction), bool) if equality is None else equality >= 0
    return np.flatnonzero((friction > 0.0) | np.isfinite(lower) | np.isfinite(upper) | kept)


def joint_rows(
    at: Integers, lower: Vector, upper: Vector, friction: Vector, step: float, equality: Integers | None = None
) -> JointRows:
    """Return the rows of `limited_rows`.

    All arguments are by row of all joints and lengths (n,): index of the coordinate, limits [rad, m], dry friction [N m, N]
    (zero without any), and the number of the equality that holds the row at zero, or -1.
    """
    dof = limited_rows(lower, upper, friction, equality)
    equality = np.full(len(at), -1) if equality is None else equality
    each = range(len(dof))
    below = [k for k in each if np.isfinite(lower[dof[k]])]
    above = [k for k in each if np.isfinite(upper[dof[k]])]
    dry = [k for k in each if friction[dof[k]] > 0.0]
    kept = [k for k in each if equality[dof[k]] >= 0]
    joint = np.array([*below, *above, *dry, *kept], dtype=np.int64)
    limits, n, free = len(below) + len(above), len(dry), len(kept)
    most = step * friction[dof[dry]]
    owner = equality[dof[kept]]
    first = [limits + n + int(np.flatnonzero(owner == x)[0]) for x in owner]
    count = [int(np.count_nonzero(owner == x)) for x in owner]
    none = np.zeros(limits + n, np.int64)
    return JointRows(
        joint=joint,
        dof=dof[joint].astype(np.int64),
        at=at[dof[joint]].astype(np.int64),
        bound=np.concatenate([lower[dof[below]], upper[dof[above]], np.zeros(n + free)]),
        sign=np.concatenate([np.ones(len(below)), -np.ones(len(above)), np.ones(n + free)]),
        friction=np.concatenate([np.zeros(limits, bool), np.ones(n + free, bool)]),
        lower=np.concatenate([np.zeros(limits), -most, np.full(free, -np.inf)]),
        upper=np.concatenate([np.full(limits, np.inf), most, np.full(free, np.inf)]),
        first=np.concatenate([none, np.array(first, np.int64)]),
        holds=np.concatenate([none, np.array(count, np.int64)]),
    )
