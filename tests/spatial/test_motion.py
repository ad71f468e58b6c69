"""Tests of spatial vectors of Python numbers and of NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featherweight.spatial.motion import Force, Motion
from featherweight.spatial.vectors import Vec3


@pytest.mark.parametrize("kind", [Motion, Force])
@pytest.mark.parametrize("factor", [2.0, np.float64(2.0), np.array([2.0, 3.0])])
def test_a_multiple_is_a_spatial_vector_whatever_the_number(kind: Any, factor: Any) -> None:
    doubled = factor * kind(Vec3(1.0, 2.0, 3.0), Vec3(4.0, 5.0, 6.0))
    assert type(doubled) is kind
    np.testing.assert_array_equal([doubled.component(k) for k in range(6)], [factor * (k + 1.0) for k in range(6)])
