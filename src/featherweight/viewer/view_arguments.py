"""Arguments of windows and pictures: the ground, cameras and arrows of forces."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array, Matrix, Vector
from ..checks import ARRAY, FINITE, NOTHING, Kind, Refused, argument, array_of, either, one_of, whole

GROUND = either([one_of(("below",)), FINITE, NOTHING]).worded("'below' (just under the robot), a height in m, or None")

Ground = Annotated[float | Literal["below"] | None, GROUND]

PORT_NUMBER = either([whole(0, 65535), NOTHING]).worded("a whole number from 0 (any port that is free) to 65535, or None")

Port = Annotated[int | None, PORT_NUMBER]


def view_points(position: ArrayLike, at: ArrayLike) -> tuple[Vector, Vector]:
    """Return the position of a camera and its target. Raises ValueError unless they are two different points."""
    points = array_of("look: position", position, 3), array_of("look: at", at, 3)
    if not np.linalg.norm(points[0] - points[1]) > 0.0:
        raise ValueError(f"look: position and at must be two different points (3,); got {position!r} twice")
    return points


def camera_axes(forward: Vector) -> Matrix:
    """Return the axes (3, 3), in rows, of an upright camera that looks along a vector (3,)."""
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, (0.0, 0.0, 1.0))
    right = right / np.linalg.norm(right) if np.linalg.norm(right) > 1e-9 else np.array([1.0, 0.0, 0.0])
    return np.stack([right, np.cross(forward, right), forward])


def arrows_of(points: ArrayLike | None, forces: ArrayLike | None) -> tuple[Matrix | None, Matrix | None]:
    """Return points and forces (n, 3) of contacts, or None for both. Raises ValueError for others."""
    if points is None and forces is None:
        return None, None
    if points is None or forces is None:
        raise ValueError("points and forces must both be given, or neither")
    made = array_of("points", points, "n", 3), array_of("forces", forces, "n", 3)
    if len(made[0]) != len(made[1]):
        raise ValueError(f"points and forces must have the same shape (n, 3); got {made[0].shape} and {made[1].shape}")
    return made


def _frame(x: Any) -> Array:
    made = np.asarray(ARRAY.convert(x))
    right = made.ndim == 3 and made.shape[2] in (3, 4) and made.dtype.kind in "iu" and made.size > 0
    if not right or made.min() < 0 or made.max() > 255:
        raise Refused
    return made.astype(np.uint8)


FRAME = Kind("an array (height, width, 3) of whole numbers 0..255", _frame)


def frame_of(what: str, frame: object) -> Array:
    """Return a picture (height, width, 3), or with opacity (height, width, 4). Raises ValueError for others."""
    made: Array = argument(what, frame, FRAME)
    return made
