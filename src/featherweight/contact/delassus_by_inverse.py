"""The Delassus matrix of bodies that touch, by the inverse mass matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .contact_problem import body_of


class InverseFactors(NamedTuple):
    """What G = J M⁻¹ Jᵀ is made of; of many robots, with a leading axis."""

    J: Any  # (m, nv), rows of all bodies that may touch, one body after the other
    Minv: Any  # (nv, nv)
    E: Any  # (rows, nv), rows of joints, or none


class InverseWork(NamedTuple):
    """Room for at most r rows of G, of bodies and joints."""

    touched: Any  # (bodies,) bool
    rows: Any  # (r, nv)
    places: Any  # (r, nv) int, where rows are not zero
    entries: Any  # (r,) int, at how many places
    half: Any  # (nv,)


def inverse_work(bodies: int, rows: int, nv: int) -> InverseWork:
    """Room for so many rows, of so many bodies that may touch."""
    return InverseWork(
        np.empty(bodies, bool), np.empty((rows, nv)), np.empty((rows, nv), np.int64), np.empty(rows, np.int64), np.empty(nv)
    )  # fmt: skip


def write_delassus_by_inverse(width: Any, contacts: Any, factors: Any, delassus: Any, work: Any) -> None:
    """G of the bodies that touch anything and of the joint rows, and where they begin; `work` is an `InverseWork`."""
    J, E, begin, touched, rows = factors.J, factors.E, delassus.begin, work.touched, work.rows
    bodies, nv = len(width), len(factors.Minv)
    for body in range(bodies):
        touched[body] = False
    for c in range(len(contacts.gap)):
        for s in range(2):
            body = body_of(contacts, c, s)
            if body >= 0:
                touched[body] = True
    size = source = 0
    for body in range(bodies):
        begin[body] = size
        if touched[body]:
            for i in range(width[body]):
                for k in range(nv):
                    rows[size + i, k] = J[source + i, k]
            size += width[body]
        source += width[body]
    begin[bodies] = size
    for i in range(len(E)):
        for k in range(nv):
            rows[size + i, k] = E[i, k]
    write_product(size + len(E), factors.Minv, delassus.G, work)


def write_product(size: int, Minv: Any, G: Any, work: Any) -> None:
    """rows M⁻¹ rowsᵀ, where most of the entries of a row are zero."""
    rows, entries, places, half = work.rows, work.entries, work.places, work.half
    nv = len(Minv)
    for i in range(size):
        entries[i] = 0
        for k in range(nv):
            if rows[i, k] != 0.0:
                places[i, entries[i]] = k
                entries[i] += 1
    for i in range(size):
        for j in range(nv):
            half[j] = 0.0
        for n in range(entries[i]):
            k = places[i, n]
            for j in range(nv):
                half[j] += rows[i, k] * Minv[k, j]
        for j in range(i, size):
            total = 0.0
            for n in range(entries[j]):
                total += half[places[j, n]] * rows[j, places[j, n]]
            G[i, j] = G[j, i] = total
