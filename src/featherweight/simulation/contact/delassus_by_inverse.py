"""The Delassus matrix of bodies that touch, by the inverse mass matrix, compiled by Numba."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compiling import compiled, jitable
from .contact_problem import BodyDelassus, body_of
from .detection import points_of


class InverseFactors(NamedTuple):
    """What G = J M⁻¹ Jᵀ is made of; of many robots, with a leading axis."""

    J: Any  # (m, nv), rows of all bodies that may touch, one body after the other
    Minv: Any  # (nv, nv)
    E: Any  # (rows, nv), rows of joints, or none


@jitable
def write_delassus_by_inverse(width: Any, contacts: Any, factors: Any, delassus: Any) -> None:
    """G of the bodies that touch anything and of the joint rows, and where they begin."""
    J, Minv, E, G, begin = factors.J, factors.Minv, factors.E, delassus.G, delassus.begin
    bodies, nv = len(width), len(Minv)
    touched = np.zeros(bodies, np.bool_)
    for c in range(len(contacts.gap)):
        for s in range(2):
            body = body_of(contacts, c, s)
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
    rows[size : size + len(E)] = E
    write_product(rows[: size + len(E)], Minv, G)


@jitable
def write_product(rows: Any, Minv: Any, G: Any) -> None:
    """rows M⁻¹ rowsᵀ, where most of the entries of a row are zero."""
    size, nv = rows.shape
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
def write_delassus_of_robots(
    first: int, stop: int, robots: Any, width: Any, contacts: Any, counts: Any, factors: Any, delassus: Any
) -> None:
    """That of the robots numbered `robots[first:stop]`, of which `factors` and `delassus` have one after the other."""
    for n in range(first, stop):
        i = robots[n]
        own = InverseFactors(factors.J[n], factors.Minv[n], factors.E[n % len(factors.E)])
        into = BodyDelassus(delassus.G[n], delassus.begin[n])
        write_delassus_by_inverse(width, points_of(contacts, i, counts[i]), own, into)
