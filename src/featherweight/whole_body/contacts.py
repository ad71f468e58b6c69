"""Contacts of whole-body control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from ..array_types import Matrix
from ..checks import CHECKED_LATER, Bound, NonNegative, Positive, array_of, checked
from ..model.types import Frame

ORIGIN = ((0.0, 0.0, 0.0),)
RANK = 1e-9  # [m] singular values of the velocities of points, below which they are dependent


@checked
@dataclass(frozen=True)
class UnilateralContact:
    """A contact that can push and not pull: forces at its points stay in their friction cones.

    `frame` is the name of a frame, or a featherweight.Frame, whose z axis is the normal, away from the ground or the object.
    `points` (k, 3) are the corners of the surface in that frame [m]; by default, the contact is the frame's origin. One point
    keeps 3 directions of its velocity at zero, two points 5, and more points that span a plane all 6. `friction` is the
    coefficient μ. `damping` [1/s] is the rate at which velocities of the contact decrease, and `max_force` [N] the greatest
    sum of normal forces.

    Raises ValueError for no points, and for numbers that are not finite.
    """

    frame: str | Frame
    points: Annotated[npt.ArrayLike, CHECKED_LATER] = ORIGIN
    friction: Positive = 0.6
    damping: NonNegative = 20.0
    max_force: Bound = np.inf
    name: str | None = None

    def __post_init__(self) -> None:
        what = f"UnilateralContact {self.called!r}"
        if not len(array_of(f"{what}: points", self.points, "k", 3)):
            raise ValueError(f"{what}: points must be at least one point; leave them out for the frame's origin")
        if not self.max_force > 0.0:
            raise ValueError(f"{what}: max_force must be a positive number; got {self.max_force}")

    @property
    def called(self) -> str:
        """The name of the contact."""
        return self.name or (self.frame.name if isinstance(self.frame, Frame) else self.frame)

    @property
    def corners(self) -> Matrix:
        """The points as an array (k, 3)."""
        return np.asarray(self.points, dtype=float)

    @property
    def rows(self) -> Matrix:
        """The directions (m, 6) of the frame's (linear, angular) velocity that the contact keeps at zero."""
        x, y, z = self.corners.T
        every = np.tile(np.eye(3, 6), (len(x), 1, 1))
        every[:, [0, 1, 1, 2, 2, 0], [4, 3, 5, 4, 3, 5]] = np.stack([z, -z, x, -x, y, -y], axis=1)
        if len(x) == 1:
            return np.array(every[0])
        _, sizes, V = np.linalg.svd(every.reshape(-1, 6))
        return np.eye(6) if (sizes > RANK).all() else np.array(V[sizes > RANK])
