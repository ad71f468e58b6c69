"""Tests of Jacobians of exponentials and logarithms against series of matrices in fifty digits."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from featherweight.spatial import Vec3, exp_so3
from featherweight.spatial.lie import LieCoefficients, cotangent_rest, of_exponential, of_logarithm, quaternion_of_matrix

# Rounding of w causes errors of the size of the angle, relative to the matrix's greatest entry.
TOLERANCE = 4e-15
SMALL = [0.0, 1e-160, 1e-15, 1e-12, 1e-8, 1e-4, 0.03, 0.4999, 0.5, 0.9999, 1.0, 1.0001, 2.0, 3.0, 3.14159]
LARGE = [np.pi, 6.0, 2.0 * np.pi, 20.0]


def velocity(angle: float, length: float) -> np.ndarray:
    rng = np.random.default_rng(7)
    turn = rng.standard_normal(3)
    return np.concatenate([length * rng.standard_normal(3), angle * turn / np.linalg.norm(turn)])


def exact(v: np.ndarray) -> Any:
    """Return (1 - exp(-ad))/ad."""
    (a, b, c), (x, y, z) = v[:3], v[3:]
    with mpmath.workdps(50):
        ad = mpmath.matrix(
            [
                [0, -z, y, 0, -c, b],
                [z, 0, -x, c, 0, -a],
                [-y, x, 0, -b, a, 0],
                [0, 0, 0, 0, -z, y],
                [0, 0, 0, z, 0, -x],
                [0, 0, 0, -y, x, 0],
            ]
        )
        term, jacobian = mpmath.eye(6), mpmath.zeros(6)
        for n in range(1, 120):
            jacobian += term / mpmath.factorial(n)
            term = -ad * term
        return jacobian


def numbers(M: Any) -> np.ndarray:
    return np.array(M.tolist(), dtype=float)


def matrix(f: LieCoefficients, l: Vec3, w: Vec3) -> np.ndarray:
    turning: np.ndarray = np.array(f.turning(w))
    moving: np.ndarray = np.array(f.moving(l, w))
    return np.block([[turning, moving], [np.zeros((3, 3)), turning]])


@pytest.mark.parametrize("length", [1e-9, 1.0, 1e3])
@pytest.mark.parametrize("angle", SMALL + LARGE)
def test_jacobians_of_exponentials_are_right_to_rounding(angle: float, length: float) -> None:
    v = velocity(angle, length)
    l, w = Vec3(*v[:3].tolist()), Vec3(*v[3:].tolist())
    expected = numbers(exact(v))
    found = matrix(of_exponential(w), l, w)
    assert np.abs(found - expected).max() <= max(TOLERANCE, 1e-15 * angle) * np.abs(expected).max()
    opposite = numbers(exact(-v))
    np.testing.assert_allclose(
        matrix(of_exponential(w).opposite(), l, w), opposite, rtol=0, atol=TOLERANCE * abs(opposite).max()
    )


@pytest.mark.parametrize("length", [1e-9, 1.0, 1e3])
@pytest.mark.parametrize("angle", SMALL)
def test_jacobians_of_logarithms_are_right_to_rounding(angle: float, length: float) -> None:
    v = velocity(angle, length)
    l, w = Vec3(*v[:3].tolist()), Vec3(*v[3:].tolist())
    with mpmath.workdps(50):
        expected = numbers(exact(v) ** -1)
    for e in (exp_so3(w), exp_so3(-1.0 * w).conjugate()):
        found = matrix(of_logarithm(e, w), l, w)
        assert np.abs(found - expected).max() <= TOLERANCE * np.abs(expected).max()


@pytest.mark.parametrize("angle", SMALL + LARGE)
def test_arrays_have_the_results_of_numbers(angle: float) -> None:
    every = [velocity(a, 1.0) for a in (angle, 0.3, 2.0)]
    stacked = np.array(every).T
    l, w = Vec3(*stacked[:3]), Vec3(*stacked[3:])
    f = of_exponential(w)
    for k, v in enumerate(every):
        one = of_exponential(Vec3(*v[3:].tolist()))
        expected = matrix(one, Vec3(*v[:3].tolist()), Vec3(*v[3:].tolist()))
        found = np.array([[x[k] for x in row] for row in f.moving(l, w)])
        np.testing.assert_allclose(found, expected[:3, 3:], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("half", [0.0, 1e-300, 1e-20, 1e-8, 1e-4, 0.01, 0.1, 0.5, 1.0, 1.5, 0.5 * np.pi])
def test_the_rest_of_the_cotangent_keeps_its_digits(half: float) -> None:
    with mpmath.workdps(50):
        h = mpmath.mpf(half)
        expected = float((1 - h * mpmath.cot(h)) / h**2) if half > 1e-20 else 1.0 / 3.0
        cosine, sine2 = float(mpmath.cos(h)), float(mpmath.sin(h) ** 2)
    assert cotangent_rest(cosine, sine2) == pytest.approx(expected, rel=4e-16)


def test_quaternions_of_matrices_lose_no_digit() -> None:
    """Check rotations whose quaternions have components of all sizes, zeros and equal components included."""
    rng = np.random.default_rng(1)
    grid = np.array(np.meshgrid(*[(1.0, 1e-8, 0.0)] * 4)).reshape(4, -1).T[:-1] * rng.choice([-1.0, 1.0], (80, 4))
    q = np.vstack([grid, rng.standard_normal((10000, 4))])
    q /= np.linalg.norm(q, axis=1)[:, None]
    x, y, z, w = q.T
    R = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    found = quaternion_of_matrix(R)
    p = np.stack([*found.u, found.s], axis=-1)
    assert (p[:, 3] >= 0.0).all()
    np.testing.assert_allclose(np.sign((p * q).sum(axis=1))[:, None] * p, q, rtol=0, atol=1e-15)
