"""Tests of the logarithm of rotation matrices in kernels, against SciPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from featherweight.spatial import Mat3, Vec3
from featherweight.spatial.rotation_vector import rotation_vector


def vector_of(matrix: np.ndarray) -> np.ndarray:
    return np.array(rotation_vector(Mat3(*(Vec3(*map(float, row)) for row in matrix))))


@pytest.mark.parametrize(
    ("angle", "tolerance"),
    [(0.0, 0.0), (1e-12, 1e-16), (1e-3, 1e-16), (0.3, 2e-16), (1.5, 2e-15), (3.0, 1e-14), (3.1415, 1e-10)],
)
def test_turns_of_any_angle(angle: float, tolerance: float) -> None:
    """Check that near half a turn the error grows with the reciprocal of the remainder, because the matrix hardly
    determines the axis.
    """
    axes = np.random.default_rng(0).standard_normal((50, 3))
    for axis in axes / np.linalg.norm(axes, axis=1, keepdims=True):
        assert vector_of(Rotation.from_rotvec(angle * axis).as_matrix()) == pytest.approx(angle * axis, abs=tolerance, rel=0)


@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.6, 0.8, 0.0), (0.0, -0.6, 0.8)])
def test_half_turns_are_turns_by_pi_either_way(axis: tuple[float, float, float]) -> None:
    matrix = 2.0 * np.outer(axis, axis) - np.eye(3)
    turn = vector_of(matrix)
    assert np.linalg.norm(turn) == pytest.approx(math.pi, abs=1e-6)
    assert abs(turn @ axis) == pytest.approx(math.pi, abs=1e-6)


def test_what_turns_by_more_than_half_a_turn_comes_out_as_the_short_way() -> None:
    turn = vector_of(Rotation.from_rotvec([0.0, 0.0, 3.5]).as_matrix())
    assert turn == pytest.approx([0.0, 0.0, 3.5 - 2.0 * math.pi], abs=1e-14)
