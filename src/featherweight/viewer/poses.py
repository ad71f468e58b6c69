"""Poses in viser's convention."""

from __future__ import annotations

import numpy as np
import viser.transforms as tf
from numpy.typing import ArrayLike

from ..array_types import Array


def quaternions(R: ArrayLike) -> Array:
    """Convert rotations (..., 3, 3) to unit quaternions (..., 4), scalar first."""
    return np.asarray(tf.SO3.from_matrix(np.asarray(R)).wxyz)


def looking_at(position: Array, at: Array) -> Array:
    """Return the orientation (4,), a unit quaternion, of an upright camera at a position (3,) that looks at a point (3,)."""
    forward = (at - position) / np.linalg.norm(at - position)
    right = np.cross(forward, (0.0, 0.0, 1.0))
    if np.linalg.norm(right) < 1e-9:
        right = np.array([1.0, 0.0, 0.0])
    right /= np.linalg.norm(right)
    return quaternions(np.stack([right, np.cross(forward, right), forward], axis=1))
