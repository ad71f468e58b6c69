"""The ground of a simulation, for windows and pictures."""

from __future__ import annotations

import numpy as np

from ..array_types import Array
from ..simulation.scene import Ground, HeightField, Plane

SHOWN = 3.0  # [m] extent of an inclined plane on each side of its point


def level_of(ground: Ground | None) -> float | None:
    """Return the height [m] of a level plane; None for any other ground."""
    flat = isinstance(ground, Plane) and ground.normal[2] > 1.0 - 1e-9
    return float(ground.point[2]) if flat else None  # type: ignore[union-attr]


def heights_of(ground: Ground | None) -> tuple[Array, Array, Array] | None:
    """Return x (n,), y (m,) and z (n, m) [m] of a ground that is not level; None for a level plane or no ground."""
    if ground is None or level_of(ground) is not None:
        return None
    if isinstance(ground, HeightField):
        n, m = ground.grid.shape
        return np.linspace(*ground.x, n), np.linspace(*ground.y, m), ground.grid
    x = y = np.linspace(-SHOWN, SHOWN, 2)
    nx, ny, nz = ground.normal
    px, py, pz = ground.point
    return x + px, y + py, pz - (nx * x[:, None] + ny * y[None]) / nz
