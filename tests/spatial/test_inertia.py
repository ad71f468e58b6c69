"""Tests of inertias between two bodies against matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherweight.algorithms.kinematics import joint_transforms
from featherweight.model.expansion import build_model
from featherweight.model.generators import chain
from featherweight.spatial import ArticulatedInertia, CrossInertia, Force, Motion, Vec3, unit_motion


def force(x: Any) -> Force:
    return Force(Vec3(*map(float, x[:3])), Vec3(*map(float, x[3:])))


def motion(x: Any) -> Motion:
    return Motion(*force(x))


def row(x: Force | Motion) -> list[float]:
    return [*x.ang, *x.lin]


def matrix(B: CrossInertia | ArticulatedInertia) -> np.ndarray:
    """Return the matrix of a map, column by column."""
    return np.array([row(B @ unit_motion(k, 1.0)) for k in range(6)]).T


def test_products_and_dyads_are_those_of_the_matrix() -> None:
    rng = np.random.default_rng(0)
    M, (u, w) = rng.standard_normal((6, 6)), rng.standard_normal((2, 6))
    B = CrossInertia(tuple(map(force, M.T)))
    np.testing.assert_array_equal(matrix(B), M)
    np.testing.assert_allclose(row(B @ motion(u)), M @ u, atol=1e-14)
    np.testing.assert_array_equal(matrix(B.transpose()), M.T)
    np.testing.assert_array_equal([row(B.column(k)) for k in range(6)], M.T)
    np.testing.assert_array_equal(matrix(B + B.transpose()), M + M.T)
    np.testing.assert_array_equal(matrix(B.folded()), M + M.T)
    np.testing.assert_allclose(matrix(B.plus_dyad(force(u), force(w))), M + np.outer(u, w), atol=1e-14)


def test_a_map_from_motions_of_the_parent_is_that_of_the_motions_in_the_child() -> None:
    rng = np.random.default_rng(1)
    B = CrossInertia(tuple(map(force, rng.standard_normal((6, 6)))))
    X = joint_transforms(build_model(chain(2, rng=3), "fixed", None).tree, [0.3, -0.7])[1]
    for a in map(motion, rng.standard_normal((3, 6))):
        np.testing.assert_allclose(row(X.cross_inertia_to_parent(B) @ a), row(B @ (X @ a)), atol=1e-13)
