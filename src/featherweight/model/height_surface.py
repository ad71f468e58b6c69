"""The triangles of ground given by heights."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def height_surface(x: Any, y: Any, z: Any) -> tuple[Array, Array]:
    """Return vertices (n m, 3) and faces (k, 3) of heights z (n, m) [m] at x (n,) and y (m,) [m].

    A cell has two triangles, which share the diagonal from its point (i, j) to (i + 1, j + 1), as in simulations. Raises
    ValueError if the shapes do not match.
    """
    x, y, z = (np.asarray(a, dtype=float) for a in (x, y, z))
    if z.shape != (len(x), len(y)):
        raise ValueError(f"add_heights: z must have shape {(len(x), len(y))}; got {z.shape}")
    X, Y = np.meshgrid(x, y, indexing="ij")
    k = np.arange(z.size).reshape(z.shape)
    a, b, c, d = (k[i, j].ravel() for i in (slice(-1), slice(1, None)) for j in (slice(-1), slice(1, None)))
    faces = np.concatenate([np.stack([a, c, d], 1), np.stack([a, d, b], 1)])
    return np.stack([X, Y, z], axis=-1).reshape(-1, 3), faces
