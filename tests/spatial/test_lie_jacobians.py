"""Tests of Jacobians of exponentials against series of matrices in fifty digits."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from featherweight.spatial import Vec3
from featherweight.spatial.lie_jacobians import ad_se2, ad_se3, ad_so3, inverse_adjoint, inverse_right_jacobian, right_jacobian

# Rounding of ad causes errors of the size of the angle, relative to the matrix's greatest entry.
TOLERANCE = 4e-15
ANGLES = [0.0, 1e-160, 1e-12, 1e-8, 1e-4, 0.03, 0.4999, 0.5, 0.5001, 1.0, 2.0, 3.0, 3.14159, np.pi]
SIZES = {ad_so3: 3, ad_se2: 3, ad_se3: 6}


def velocity(ad: Any, angle: float, length: float) -> np.ndarray:
    rng = np.random.default_rng(7)
    turn = rng.standard_normal(1 if ad is ad_se2 else 3)
    return np.concatenate([length * rng.standard_normal(SIZES[ad] - len(turn)), angle * turn / np.linalg.norm(turn)])


def exact(ad: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return exp(-ad), (1 - exp(-ad))/ad and its inverse."""
    with mpmath.workdps(50):
        x = mpmath.matrix(ad.tolist())
        one = term = mpmath.eye(len(ad))
        jacobian = mpmath.zeros(len(ad))
        for n in range(1, 120):
            jacobian += term / mpmath.factorial(n)
            term = -x * term
        shrunk, full, inverse = (np.array(m.tolist(), dtype=float) for m in (one - x * jacobian, jacobian, jacobian**-1))
        return shrunk, full, inverse


@pytest.mark.parametrize("ad", SIZES)
@pytest.mark.parametrize("length", [1e-9, 1.0, 1e3])
@pytest.mark.parametrize("angle", ANGLES)
def test_functions_of_ad_are_right_to_rounding(ad: Any, length: float, angle: float) -> None:
    v = velocity(ad, angle, length)
    x = ad(v)
    for function, expected in zip((inverse_adjoint, right_jacobian, inverse_right_jacobian), exact(x), strict=True):
        assert np.abs(function(x, np.array(angle)) - expected).max() <= TOLERANCE * np.abs(expected).max()


def in_blocks(function: Any, v: Any) -> np.ndarray:
    """Return the matrix of a rotation or a motion from its blocks; the components of v are numbers, or arrays."""
    if len(v) == 3:
        return np.array(function.of_turn(Vec3(*v)))
    turned, moved = map(np.array, function.of_motion(Vec3(*v[:3]), Vec3(*v[3:])))
    return np.concatenate([np.concatenate([turned, moved], 1), np.concatenate([0.0 * moved, turned], 1)], 0)


@pytest.mark.parametrize("ad", [ad_so3, ad_se3])
@pytest.mark.parametrize("length", [1e-9, 1.0, 1e3])
def test_blocks_are_those_of_the_matrix(ad: Any, length: float) -> None:
    for function in (inverse_adjoint, right_jacobian, inverse_right_jacobian):
        every = np.array([velocity(ad, angle, length) for angle in ANGLES])
        together = in_blocks(function, every.T)
        for k, (v, angle) in enumerate(zip(every, ANGLES, strict=True)):
            expected = function(ad(v), np.array(angle))
            for found in (in_blocks(function, v.tolist()), together[..., k]):
                assert np.abs(found - expected).max() <= TOLERANCE * np.abs(expected).max()


@pytest.mark.parametrize("ad", SIZES)
def test_turns_of_more_than_pi_lose_digits_by_their_size_only(ad: Any) -> None:
    v = velocity(ad, 20.0, 1.0)
    for function, expected in zip((inverse_adjoint, right_jacobian), exact(ad(v)), strict=False):
        assert np.abs(function(ad(v), np.array(20.0)) - expected).max() < 2e-14


@pytest.mark.parametrize("ad", SIZES)
def test_ad_is_the_commutator_of_flows(ad: Any) -> None:
    """Check that exp(-ad(v)) carries [v, x] as it carries x, and that [v, v] = 0."""
    v, x = velocity(ad, 1.0, 1.0), np.random.default_rng(1).standard_normal(SIZES[ad])
    E = inverse_adjoint(ad(v), np.array(1.0))
    np.testing.assert_allclose(ad(v) @ v, 0.0, atol=1e-15)
    np.testing.assert_allclose(E @ (ad(v) @ x), ad(E @ v) @ (E @ x), atol=1e-14)
