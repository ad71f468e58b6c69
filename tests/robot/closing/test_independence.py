"""Tests of the choice of independent velocities; `model/test_trace_hashes.py` compares the choice on other machines."""

from __future__ import annotations

import numpy as np
import pytest

from featherweight.robot.closing.independence import determined, first_of_best


@pytest.mark.parametrize("rounding", [-1e-9, 0.0, 1e-9])
def test_of_equal_columns_the_first_is_taken(rounding: float) -> None:
    K = np.array([[1.0, 0.0, 1.0 + rounding, 0.5]])
    assert determined(K, [[0, 1, 2, 3]]) == [0]
    assert determined(K, [[3], [2, 0]]) == [3]
    assert determined(K, [[1], [2, 0]]) == [2]
    assert first_of_best([1.0, 2.0, 2.0 + rounding]) == 1
