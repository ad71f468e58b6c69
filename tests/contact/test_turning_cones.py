"""Tests of cones with friction against spinning and rolling: the minimum over all contacts, for any magnitudes."""

from typing import Any

import numpy as np
import pytest

from featherweight.contact.laws import CONES, Problem
from featherweight.contact.turning_cones import (
    TurningWork,
    row_of,
    solve_turning,
    turning_work,
    write_answer,
)
from featherweight.engine.loops.kernels import compiled

Array = Any
solve_compiled = compiled(solve_turning)


def drawn(seed: int, k: int, bounded: int, spread: float = 0.5) -> tuple[Problem, TurningWork]:
    """Return k contacts, some with turning friction, and rows with bounds; inertias differ by powers of ten of `spread`."""
    rng = np.random.default_rng(seed)
    turns = rng.random(k) < 0.7
    t = int(turns.sum())
    m = 3 * (k + t) + bounded
    J = rng.standard_normal((m, max(m // 2, 1))) * 10.0 ** rng.normal(0.0, spread, (m, 1))
    A = J @ J.T
    work = turning_work(m)
    work.turning[:k] = np.where(turns, np.cumsum(turns) - 1, -1)
    mu = rng.uniform(0.1, 1.5, k)
    friction = rng.uniform(0.001, 0.3, (k, 3))
    friction[rng.random(k) < 0.3, 1:] = 0.0
    work.friction[:k] = friction
    R = rng.uniform(0.05, 0.5, m) * np.diag(A)
    for c in range(k):
        whole = R[3 * c + 1] * mu[c] ** 2
        for l in range(1, 6 if turns[c] else 3):
            own = mu[c] if l < 3 else friction[c, l - 3]
            R[row_of(c, l, k, work.turning)] = whole / own**2 if own > 0.0 else 0.0
    upper = rng.uniform(0.0, 2.0, m - 3 * k)
    problem = Problem(A + np.diag(R), 3.0 * rng.standard_normal(m), mu, -upper, upper, R=R, cones=CONES, turning=t)
    return problem, work


def cone(problem: Problem, work: TurningWork, c: int, f: Array) -> float:
    """Return the distance of a contact from the boundary of its cone, positive inside."""
    k, total = len(problem.mu), 0.0
    for l in range(1, 6 if work.turning[c] >= 0 else 3):
        own, x = problem.mu[c] if l < 3 else work.friction[c, l - 3], f[row_of(c, l, k, work.turning)]
        total += (x / own) ** 2 if own > 0.0 else 1e12 * x * x
    return float(f[3 * c] - np.sqrt(total))


def certificate(problem: Problem, work: TurningWork, f: Array) -> float:
    """Return the violation of the conditions of the minimum [m/s]: impulses in their cones, velocities in the dual ones,
    and zero products.
    """
    k, u = len(problem.mu), problem.A @ f + problem.b
    worst = 0.0
    for c in range(k):
        assert cone(problem, work, c, f) >= -1e-12 * abs(f[3 * c])
        own = [problem.mu[c]] * 2 + (work.friction[c].tolist() if work.turning[c] >= 0 else [])
        rows = [row_of(c, l, k, work.turning) for l in range(1 + len(own))]
        rubbing = np.sqrt(sum((mu * u[row]) ** 2 for mu, row in zip(own, rows[1:], strict=True)))
        worst = max(worst, rubbing - u[3 * c])
        if f[3 * c] > 0.0:
            worst = max(worst, abs(f[rows] @ u[rows]) / f[3 * c])
    first = 3 * k + 3 * int((work.turning[:k] >= 0).sum())
    for i in range(first, len(f)):
        low, high = problem.lower[i - 3 * k], problem.upper[i - 3 * k]
        assert low <= f[i] <= high
        worst = max(worst, u[i] if f[i] > low else 0.0, -u[i] if f[i] < high else 0.0)
    return float(worst)


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
def test_impulses_are_the_minimum(spread: float) -> None:
    """Check many contacts, and inertias that differ by up to six powers of ten, which magnify residuals in the conditions."""
    for seed in range(80):
        problem, work = drawn(seed, 1 + seed % 9, seed % 5, spread)
        f, scale = np.zeros(len(problem.b)), np.abs(problem.b).max()
        residual, steps = solve_compiled(problem, f, 1e-9 * scale, work)
        assert residual <= 1e-9 * scale and steps <= 20
        assert certificate(problem, work, f) <= 1e-6 * scale


def test_a_good_start_takes_no_steps() -> None:
    problem, work = drawn(3, 5, 2)
    f = np.zeros(len(problem.b))
    solve_compiled(problem, f, 1e-12, work)
    again = f.copy()
    _, steps = solve_compiled(problem, again, 1e-10, work)
    assert steps == 0
    np.testing.assert_allclose(again, f, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_derivatives_are_those_of_the_answers(seed: int) -> None:
    problem, work = drawn(seed, 1, 0)
    m = len(problem.b)
    rng = np.random.default_rng(seed)
    for _ in range(10):
        w, f = 2.0 * rng.standard_normal(m), np.zeros(m)
        w[0] -= 1.0
        write_answer(problem, w, f, 0, work, True)
        G = work.answer[:m, :m].copy()
        for j in range(m):
            ahead, behind, e = np.zeros(m), np.zeros(m), np.zeros(m)
            e[j] = 1e-6
            write_answer(problem, w + e, ahead, 0, work, False)
            write_answer(problem, w - e, behind, 0, work, False)
            np.testing.assert_allclose(-(ahead - behind) / 2e-6, G[:, j], atol=1e-5 * max(1.0, np.abs(G).max()))


def test_islands_are_solved_as_each_alone() -> None:
    """Check two problems side by side, with the rows of contacts, turning and bounds concatenated."""
    parts = [drawn(seed, k, bounded) for seed, k, bounded in ((5, 2, 2), (11, 3, 1))]
    alone = []
    for problem, work in parts:
        f = np.zeros(len(problem.b))
        solve_compiled(problem, f, 1e-12, work)
        alone.append(f)
    k = [len(p.mu) for p, _ in parts]
    t = [p.turning for p, _ in parts]
    m = sum(len(p.b) for p, _ in parts)
    sizes = [(3 * a, 3 * b, len(p.b) - 3 * a - 3 * b) for a, b, (p, _) in zip(k, t, parts, strict=True)]
    places: list[Array] = [np.zeros(0, int), np.zeros(0, int)]
    at = 0
    for group in range(3):
        for i in range(2):
            places[i] = np.concatenate([places[i], np.arange(at, at + sizes[i][group])])
            at += sizes[i][group]
    A, b, R = np.zeros((m, m)), np.zeros(m), np.zeros(m)
    for rows, (p, _) in zip(places, parts, strict=True):
        A[np.ix_(rows, rows)], b[rows], R[rows] = p.A, p.b, p.R
    mu, lower, upper = (np.concatenate(x) for x in zip(*((p.mu, p.lower, p.upper) for p, _ in parts), strict=True))
    bounds = np.zeros(m - 3 * sum(k)), np.zeros(m - 3 * sum(k))
    for i, (p, _) in enumerate(parts):
        own = places[i][3 * k[i] :] - 3 * sum(k)
        bounds[0][own], bounds[1][own] = p.lower, p.upper
    assert len(lower) == len(upper) == len(bounds[0])
    work = turning_work(m)
    work.turning[: sum(k)] = np.concatenate(
        [np.where(w.turning[:n] >= 0, w.turning[:n] + shift, -1) for (_, w), n, shift in zip(parts, k, (0, t[0]), strict=True)]
    )
    work.friction[: sum(k)] = np.concatenate([w.friction[:n] for (_, w), n in zip(parts, k, strict=True)])
    f = np.zeros(m)
    solve_compiled(Problem(A, b, mu, *bounds, R=R, cones=CONES, turning=sum(t)), f, 1e-12, work)
    for rows, own in zip(places, alone, strict=True):
        np.testing.assert_allclose(f[rows], own, atol=1e-10)
