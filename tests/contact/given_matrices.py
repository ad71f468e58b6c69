"""Matrices of bodies for tests of the contact solver: G as it is, without M⁻¹."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherweight.contact.contact_problem import BodyDelassus
from featherweight.contact.inverse_factor import InverseFactors, inverse_work
from featherweight.contact.laws import Problem

Array = np.ndarray[Any, np.dtype[Any]]


def given_delassus(G: Array, begin: Any) -> BodyDelassus:
    """G of bodies whose rows begin so."""
    one, none = np.zeros(1, np.int64), np.zeros((0, 0))
    factors = InverseFactors(none, none, none, np.zeros(2, np.int64), one)
    return BodyDelassus(G, np.asarray(begin, np.int64), False, factors, inverse_work(one, 0, 1, 0))


def with_factor_of(p: Problem, J: Array, R: Any = 0.0) -> Problem:
    """The problem with A = J Jᵀ + R given by its factor J."""
    m = len(p.b)
    return p._replace(A=np.zeros((0, 0)), B=np.ascontiguousarray(J), R=np.broadcast_to(np.asarray(R, float), m).copy())


def matrix_of(p: Problem) -> Array:
    """A, also where the problem has its factor."""
    return p.B @ p.B.T + np.diag(p.R) if p.factored else p.A
