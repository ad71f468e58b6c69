"""Tests of steps by priority, against null spaces and least squares by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from featherweight.algorithms.inverse_kinematics.prioritized import Level, prioritized_step

Array = np.ndarray


def level(A: Array, e: Array, damping: float) -> Level:
    return Level([[float(x) for x in row] for row in A], [float(x) for x in e], damping, 1.0)


def reference(levels: list[Level], n: int) -> Array:
    """Solve in an orthonormal basis of the null space of all rows above."""
    d, rows = np.zeros(n), np.zeros((0, n))
    for A, e, damping, _ in levels:
        M = np.array(A)
        Z = np.eye(n)
        if len(rows):
            _, sizes, V = np.linalg.svd(rows)
            Z = V[np.count_nonzero(sizes > 1e-9) :].T
        B = M @ Z
        d = d + Z @ np.linalg.solve(B.T @ B + damping * np.eye(Z.shape[1]), B.T @ (np.array(e) - M @ d))
        rows = np.vstack([rows, M])
    return d


def random_rows(rng: np.random.Generator, m: int, n: int) -> Array:
    return rng.standard_normal((m, n))


@pytest.mark.parametrize("damping", [1e-3, 0.3])
def test_levels_are_solved_in_the_null_space_of_those_above(damping: float) -> None:
    """Check to 1e-9: damping of lower levels moves the rows above by 1e-13 of the remaining errors."""
    rng = np.random.default_rng(1)
    n = 9
    levels = [level(random_rows(rng, m, n), rng.standard_normal(m), damping) for m in (3, 4, 5)]
    d = np.array(prioritized_step(n, levels))
    assert d == pytest.approx(reference(levels, n), abs=1e-9, rel=1e-9)


def test_rows_of_one_entry_are_rows_like_others() -> None:
    rng = np.random.default_rng(2)
    n = 6
    single = np.diag([0.5, 2.0, 0.5, 1.0, 0.7, 0.0])[:5]
    both = level(np.vstack([random_rows(rng, 2, n), single]), rng.standard_normal(7), 1e-3)
    above = level(random_rows(rng, 3, n), rng.standard_normal(3), 1e-3)
    for levels in ([both], [above, both], [above, level(single, rng.standard_normal(5), 1e-3)]):
        assert np.array(prioritized_step(n, levels)) == pytest.approx(reference(levels, n), abs=1e-9, rel=1e-9)


def test_rows_that_depend_on_each_other_hold_as_one() -> None:
    rng = np.random.default_rng(3)
    row = random_rows(rng, 1, 5)
    above = level(np.vstack([row, 2.0 * row, row]), np.array([1.0, 2.0, 1.0]), 1e-9)
    below = level(random_rows(rng, 5, 5), rng.standard_normal(5), 1e-3)
    d = np.array(prioritized_step(5, [above, below]))
    assert row @ d == pytest.approx([1.0], abs=1e-7)
    assert d == pytest.approx(reference([above, below], 5), abs=1e-6)
