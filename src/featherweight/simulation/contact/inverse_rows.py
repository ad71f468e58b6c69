"""The Delassus matrix of bodies that touch, by the inverse mass matrix, compiled by Numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import compiled
from .contact_space import side
from .detection import Contacts


@compiled
def write_inertia(
    width: Any, found: Any, count: int, J: Any, Minv: Any, E: Any, joints: bool, begin: Any, G: Any
) -> None:  # fmt: skip
    """G = J M⁻¹ Jᵀ of the bodies that touch anything, and of the joint rows E (rows, nv) if they are asked for; and `begin`.

    J (m, nv) has the rows of all bodies that may touch, one body after the other.
    """
    bodies, nv = len(width), len(Minv)
    touched = np.zeros(bodies, np.bool_)
    for c in range(count):
        for s in range(2):
            body = side(found, c, s)
            if body >= 0:
                touched[body] = True
    rows = np.empty((len(G), nv))
    size = source = 0
    for body in range(bodies):
        begin[body] = size
        if touched[body]:
            rows[size : size + width[body]] = J[source : source + width[body]]
            size += width[body]
        source += width[body]
    begin[bodies] = size
    if joints:
        rows[size : size + len(E)] = E
        size += len(E)
    entries, column = np.empty(size, np.int64), np.empty((size, nv), np.int64)  # of each row, where it is not zero
    for i in range(size):
        entries[i] = 0
        for k in range(nv):
            if rows[i, k] != 0.0:
                column[i, entries[i]] = k
                entries[i] += 1
    half = np.empty(nv)
    for i in range(size):
        half[:] = 0.0
        for n in range(entries[i]):
            k = column[i, n]
            for j in range(nv):
                half[j] += rows[i, k] * Minv[k, j]
        for j in range(i, size):
            total = 0.0
            for n in range(entries[j]):
                total += half[column[j, n]] * rows[j, column[j, n]]
            G[i, j] = G[j, i] = total


@compiled
def write_inertia_range(
    first: int, stop: int, robots: Any, width: Any, found: Any, count: Any, J: Any, Minv: Any, E: Any, joints: bool,
    begin: Any, G: Any,
) -> None:  # fmt: skip
    """`write_inertia` for the robots numbered `robots[first:stop]`, of which J, Minv, E, begin and G have their own."""
    for n in range(first, stop):
        i = robots[n]
        one = Contacts(found.candidate[i], found.a[i], found.b[i], found.point[i], found.normal[i], found.gap[i])
        write_inertia(width, one, count[i], J[n], Minv[n], E[n % len(E)], joints, begin[n], G[n])
