"""Tests of Gauss-Seidel sweeps, with the matrix and with its factor, against sweeps in NumPy."""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
import pytest

from contact.given_matrices import matrix_of, random_factor, with_factor_of
from contact.problem_families import drawn
from featherweight.array_types import Array
from featherweight.contact.factors.row_factor import sizes_of
from featherweight.contact.impulses import natural_residual, of_arrays, solve_problem
from featherweight.contact.laws import Problem
from featherweight.contact.rigid.gauss_seidel import TWICE, sweep
from featherweight.contact.rigid.newton import newton_work, write_rho

FAMILIES = "foot", "wedge", "heap", "chain with contacts", "dry friction", "random rank"
FRICTION = pytest.mark.parametrize("pyramid", [False, True], ids=["cone", "pyramid"])


def swept(p: Problem, start: Array, count: int) -> Array:
    work, f = newton_work(len(start), sizes_of(p.B)), start.copy()
    write_rho(p, work.rho)
    sweep(p, f, count, work)
    return f


def projected(x: Array, mu: float, pyramid: bool) -> Array:
    n = max(x[0], 0.0)
    if pyramid:
        return np.concatenate([[n], np.clip(x[1:], -mu * n, mu * n)])
    length = np.linalg.norm(x[1:])
    return np.concatenate([[n], x[1:] * (mu * n / length if length > mu * n else 1.0)])


def reference(p: Problem, A: Array, f: Array, count: int) -> Array:
    """Sweep forward and backward, with all velocities recomputed for each contact, group by group if there are groups."""
    f, k = f.copy(), len(p.mu)
    turns = (
        [list(p.B.members[a:b]) for a, b in pairwise(p.B.member_begin)]
        if p.factored
        else [[c] for c in range(k + len(p.lower))]
    )
    for turn in range(count):
        for c in chain(*(turns if turn % 2 == 0 else turns[::-1])):
            if c >= k:
                r = 2 * k + c
                f[r] = np.clip(f[r] - (A[r] @ f + p.b[r]) / (A[r, r] or 1.0), p.lower[c - k], p.upper[c - k])
                continue
            i = slice(3 * c, 3 * c + 3)
            rho = A.diagonal()[i].max() or 1.0
            for _ in range(TWICE):
                f[i] = projected(f[i] - (A[i] @ f + p.b[i]) / rho, p.mu[c], p.pyramid)
    return f


@FRICTION
@pytest.mark.parametrize("factored", [False, True], ids=["matrix", "factor"])
@pytest.mark.parametrize("family", FAMILIES)
def test_each_contact_in_turn_sees_the_impulses_of_those_before(family: str, factored: bool, pyramid: bool) -> None:
    p = of_arrays(drawn(family, 3)._replace(pyramid=pyramid))
    A = p.A
    if factored:
        J = np.linalg.cholesky(A + 1e-9 * np.trace(A) * np.eye(len(A)))
        p, A = of_arrays(with_factor_of(p, J)), J @ J.T
    size = np.abs(p.b).max() / A.diagonal().max()
    start = size * np.abs(np.random.default_rng(1).standard_normal(len(p.b)))
    if len(p.lower):
        start[3 * len(p.mu) :] = np.clip(start[3 * len(p.mu) :], p.lower, p.upper)
    for count in (1, 4):
        expected = reference(p, A, start, count)
        np.testing.assert_allclose(swept(p, start, count), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(6))
def test_contacts_of_a_group_see_one_another_by_its_rows(seed: int) -> None:
    """Check factors with groups of up to eight rows, on several branches, with compliance."""
    rng = np.random.default_rng(seed)
    k, n = 7, 3
    B = random_factor(rng, [6, 3, 2], [[0], [0, 1], [0, 2], [1]], k, n)
    m = 3 * k + n
    limits = np.zeros(n), np.full(n, np.inf)
    R, none = 0.01 * rng.random(m), np.zeros(0, np.int64)
    p = Problem(np.zeros((0, 0)), rng.standard_normal(m), np.full(k, 0.5), *limits, False, B, R, none)
    expected = reference(p, matrix_of(p), np.zeros(m), 5)
    np.testing.assert_allclose(swept(p, np.zeros(m), 5), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_solution_stays(family: str) -> None:
    p = of_arrays(drawn(family, 5))
    tolerance = 1e-8 * np.abs(p.b).max()
    f = solve_problem(p, np.zeros(len(p.b)), tolerance).impulses
    assert natural_residual(p, f) <= tolerance
    assert natural_residual(p, swept(p, f, 3)) <= 100.0 * tolerance


@pytest.mark.parametrize("family", ["foot", "random rank"])
def test_sweeps_come_near_the_solution_from_any_start(family: str) -> None:
    """Check that a hundred sweeps leave less than a thousandth of the greatest velocity, also from impulses a hundred
    times too large.
    """
    for seed in range(4):
        p = of_arrays(drawn(family, seed))
        most = 1e-3 * np.abs(p.b).max()
        for size in (0.0, 100.0):
            start = size * np.abs(p.b).max() / p.A.diagonal().max() * np.random.default_rng(seed).random(len(p.b))
            assert natural_residual(p, swept(p, start, 100)) < max(most, 0.05 * natural_residual(p, start))
