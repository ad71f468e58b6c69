"""Joints whose limits or dry friction count in the contact problem, and their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contact.joint_rows import JointRows
from .forces import ForcesAtJoints
from .scene import TouchingParts

Array = np.ndarray[Any, np.dtype[Any]]


def limited_rows(forces: ForcesAtJoints, parts: TouchingParts) -> Array:
    """The degrees of freedom of all joints that have limits or dry friction that count."""
    limited = np.isfinite(parts.lower) | np.isfinite(parts.upper)
    return np.flatnonzero((parts.joint_friction & (forces.friction > 0.0)) | limited)


def joint_rows(forces: ForcesAtJoints, parts: TouchingParts, step: float) -> JointRows:
    """The rows of `limited_rows`."""
    dof = limited_rows(forces, parts)
    each = range(len(dof))
    lower = [k for k in each if np.isfinite(parts.lower[dof[k]])]
    upper = [k for k in each if np.isfinite(parts.upper[dof[k]])]
    friction = [k for k in each if parts.joint_friction and forces.friction[dof[k]] > 0.0]
    joint = np.array([*lower, *upper, *friction], dtype=np.int64)
    limits, n = len(lower) + len(upper), len(friction)
    most = step * forces.friction[dof[friction]]
    return JointRows(
        joint=joint,
        dof=dof[joint].astype(np.int64),
        at=forces.at[dof[joint]].astype(np.int64),
        bound=np.concatenate([parts.lower[dof[lower]], parts.upper[dof[upper]], np.zeros(n)]),
        sign=np.concatenate([np.ones(len(lower)), -np.ones(len(upper)), np.ones(n)]),
        friction=np.concatenate([np.zeros(limits, bool), np.ones(n, bool)]),
        lower=np.concatenate([np.zeros(limits), -most]),
        upper=np.concatenate([np.full(limits, np.inf), most]),
    )
