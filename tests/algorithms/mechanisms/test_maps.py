"""Tests of the solution of small systems of loops: correct for any sparsity, and cheap if loops share few joints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featherweight.algorithms.mechanisms.maps import solve_square
from featherweight.engine.trace import count, trace


def loops(n: int, shared: int = 2, size: int = 3) -> np.ndarray:
    """Return the pattern of a matrix of n loops with some joints of their own and some shared joints, which come last."""
    entries = np.zeros((shared + n * size, shared + n * size), dtype=bool)
    entries[:, :shared] = True
    for k in range(n):
        own = slice(shared + k * size, shared + (k + 1) * size)
        entries[own, own] = True
        entries[k:shared:n, own] = True
    return entries


@pytest.mark.parametrize("share", [0.2, 0.4, 1.0])
def test_systems_with_any_pattern_of_zeros_are_solved(share: float) -> None:
    rng = np.random.default_rng(0)
    solved = 0
    while solved < 10:
        n = int(rng.integers(1, 9))
        A: Any = np.where(rng.random((n, n)) < share, rng.standard_normal((n, n)), 0.0)
        B = rng.standard_normal((n, 2))
        if np.linalg.matrix_rank(A, 1e-2) == n:
            np.testing.assert_allclose(solve_square(A.tolist(), B.tolist()), np.linalg.solve(A, B), atol=1e-11)
            solved += 1


def test_what_loops_cost_that_share_few_joints_grows_with_their_number() -> None:
    def multiplications(n: int) -> int:
        entries = loops(n)
        size = len(entries)

        def solve(A: list[Any], b: list[Any]) -> list[Any]:
            rows = [[A[i * size + k] if entries[i, k] else 0.0 for k in range(size)] for i in range(size)]
            return [x for (x,) in solve_square(rows, [[y] for y in b])]

        return count(trace(solve, [size * size, size])).mul

    few, some, more = (multiplications(n) for n in (2, 4, 6))
    assert more - some == pytest.approx(some - few, rel=0.1)
