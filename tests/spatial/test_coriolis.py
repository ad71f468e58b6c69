"""Tests of the Coriolis operator, against sums over points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from featherweight.spatial import Coriolis, Mat3, RigidInertia, Sym3, Vec3, coriolis_of_turning

RNG = np.random.default_rng(0)
MASSES = RNG.uniform(0.1, 2.0, 5)
POINTS = RNG.standard_normal((5, 3))


def inertia(points: Any) -> RigidInertia:
    I = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(MASSES, points, strict=True))
    return RigidInertia(MASSES.sum(), Vec3(*(MASSES @ points)), Sym3(I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2]))


def summed(points: Any, velocities: Any, x: Any) -> Any:
    """Return torque and force of m x × v, summed over points."""
    forces = MASSES[:, None] * np.cross(x, velocities)
    return np.concatenate([np.cross(points, forces).sum(axis=0), forces.sum(axis=0)])


def of(N: Coriolis, x: Any) -> Any:
    f = N @ Vec3(*x)
    return np.array([*f.ang, *f.lin])


def test_of_a_turning_body() -> None:
    w, x = RNG.standard_normal((2, 3))
    N = coriolis_of_turning(inertia(POINTS), Vec3(*w))
    np.testing.assert_allclose(of(N, x), summed(POINTS, np.cross(w, POINTS), x), rtol=1e-13)


def test_faster_and_seen_from_elsewhere() -> None:
    w, x, u, p = RNG.standard_normal((4, 3))
    N = coriolis_of_turning(inertia(POINTS), Vec3(*w))
    moved = N.moved_along(inertia(POINTS + p), Vec3(*u), Vec3(*p))
    np.testing.assert_allclose(of(moved, x), summed(POINTS + p, np.cross(w, POINTS) + u, x), rtol=1e-12)
    np.testing.assert_allclose(of(N.sped(inertia(POINTS), Vec3(*u)), x), summed(POINTS, np.cross(w, POINTS) + u, x), rtol=1e-12)


def test_turned() -> None:
    w, x = RNG.standard_normal((2, 3))
    angle = 0.7
    R = Rotation.from_rotvec([0.0, 0.0, angle]).as_matrix()
    N = coriolis_of_turning(inertia(POINTS), Vec3(*w))
    expected = summed(POINTS @ R.T, np.cross(w, POINTS) @ R.T, x)
    np.testing.assert_allclose(of(N.spin(np.cos(angle), np.sin(angle)), x), expected, rtol=1e-13)
    dense = N.rotate(Mat3(*(Vec3(*row) for row in R)))
    np.testing.assert_allclose(of(dense, x), expected, rtol=1e-13)


@pytest.mark.parametrize("k", range(6))
def test_a_component_as_a_function(k: int) -> None:
    w, x, u = RNG.standard_normal((3, 3))
    N = coriolis_of_turning(inertia(POINTS), Vec3(*w)).sped(inertia(POINTS), Vec3(*u))
    assert N.of_component(k).dot(Vec3(*x)) == pytest.approx(of(N, x)[k], rel=1e-13)
