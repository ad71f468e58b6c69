"""The Delassus matrix of bodies that touch, by the inverse mass matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..collision.detection import ContactPoints
from ..engine.loops.array_types import Booleans, IntegerMatrix, Integers, Matrix, Vector
from .contact_problem import BodyDelassus, body_of


class InverseFactors(NamedTuple):
    """Factors of G = J M⁻¹ Jᵀ."""

    J: Matrix  # (m, nv), rows of all bodies that may touch, one body after the other
    Minv: Matrix  # (nv, nv)
    E: Matrix  # (rows, nv), rows of joints, or none


class InverseWork(NamedTuple):
    """Room for at most r rows of G, of bodies and joints."""

    touched: Booleans  # (bodies,)
    rows: Matrix  # (r, nv)
    places: IntegerMatrix  # (r, nv) where rows are not zero
    entries: Integers  # (r,) at how many places
    half: Vector  # (nv,)


def inverse_work(bodies: int, rows: int, nv: int) -> InverseWork:
    """Room for so many rows, of so many bodies that may touch."""
    return InverseWork(
        np.empty(bodies, bool), np.empty((rows, nv)), np.empty((rows, nv), np.int64), np.empty(rows, np.int64), np.empty(nv)
    )  # fmt: skip


def write_delassus_by_inverse(
    width: Integers, contacts: ContactPoints, factors: InverseFactors, delassus: BodyDelassus, work: InverseWork
) -> None:
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


def write_product(size: int, Minv: Matrix, G: Matrix, work: InverseWork) -> None:
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
