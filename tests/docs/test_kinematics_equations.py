"""Tests of the equations of kinematics.md, regressors.md and inverse-kinematics.md: independent code against the library."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from featherweight.algorithms.inverse_kinematics.prioritized import Level, prioritized_step
from featherweight.spatial.rotation_vector import rotation_vector
from featherweight.spatial.vectors import Mat3, Vec3

ROBOT = fw.build(fw.generators.random_tree(7, rng=5, joint_types=("revolute", "prismatic"), masses=(0.5, 5.0)))
RNG = np.random.default_rng(6)
Q, V, A = ROBOT.random_configuration(rng=1), *RNG.standard_normal((2, ROBOT.nv))
LAST = ROBOT.bodies[-1].name
STEP = 1e-6  # step of differences: the truncation error is of order its square, the rounding error of order its inverse


def motions() -> np.ndarray:
    """Return (s, d) of all joints at the world's origin, on the world's axes, angular first."""
    J = np.asarray(ROBOT.joint_jacobian(Q))
    return np.vstack([J[3:], J[:3]])


def test_a_jacobian_has_a_column_for_each_joint_on_the_way() -> None:
    S = motions()
    x = np.asarray(ROBOT.frame_placement(LAST)(Q))[:3, 3]
    on_the_way = []
    i = len(ROBOT.bodies) - 1
    while i >= 0:
        on_the_way.append(i)
        i = ROBOT.parent[i]
    J, world = np.zeros((6, ROBOT.nv)), np.zeros((6, ROBOT.nv))
    for j in on_the_way:
        s, d = S[:3, j], S[3:, j]
        J[:, j] = [*(d + np.cross(s, x)), *s]
        world[:, j] = [*d, *s]
    np.testing.assert_allclose(ROBOT.frame_jacobian(LAST)(Q), J, atol=1e-12)
    np.testing.assert_allclose(ROBOT.frame_jacobian(LAST, "world")(Q), world, atol=1e-12)


def test_classical_and_spatial_accelerations() -> None:
    velocity = np.asarray(ROBOT.frame_velocity(LAST)(Q, V))
    spatial = np.asarray(ROBOT.frame_acceleration(LAST)(Q, V, A))
    spatial[:3] += np.cross(velocity[3:], velocity[:3])
    classical = np.asarray(ROBOT.frame_classical_acceleration(LAST)(Q, V, A))
    np.testing.assert_allclose(classical, spatial, atol=1e-10)
    J, rate = np.asarray(ROBOT.frame_jacobian(LAST)(Q)), np.asarray(ROBOT.frame_jacobian_rate(LAST)(Q, V))
    np.testing.assert_allclose(classical, J @ A + rate @ V, atol=1e-10)


def test_the_center_of_mass_moves_as_its_parts() -> None:
    ahead, behind = (np.asarray(ROBOT.center_of_mass(ROBOT.integrate(Q, s * V))) for s in (STEP, -STEP))
    J = np.asarray(ROBOT.center_of_mass_jacobian(Q))
    np.testing.assert_allclose(J @ V, (ahead - behind) / (2 * STEP), atol=1e-7)
    S = motions()
    for j in range(ROBOT.nv):
        parts = [k for k in range(ROBOT.nv) if j in carriers(k)]
        m = sum(ROBOT.inertial_parameters[k, 0] for k in parts)
        h = sum(first_moment(k) for k in parts)
        np.testing.assert_allclose(J[:, j], (np.cross(S[:3, j], h) + m * S[3:, j]) / ROBOT.mass, atol=1e-12)


def carriers(k: int) -> list[int]:
    rows = []
    while k >= 0:
        rows.append(k)
        k = ROBOT.parent[k]
    return rows


def first_moment(k: int) -> np.ndarray:
    """Return the first moment of a body about the world's origin, on the world's axes."""
    m, *h = ROBOT.inertial_parameters[k, :4]
    T = np.asarray(ROBOT.frame_placement(ROBOT.bodies[k].name)(Q))
    return T[:3, :3] @ h + m * T[:3, 3]


def test_kinetic_energy_is_the_same_both_ways() -> None:
    energies = [ROBOT.kinetic_energy(Q, V, algorithm=way) for way in ROBOT.kinetic_energy.candidates]
    np.testing.assert_allclose(energies, 0.5 * V @ np.asarray(ROBOT.mass_matrix(Q)) @ V, rtol=1e-12)
    both = ROBOT.together(ROBOT.mass_matrix, ROBOT.kinetic_energy)
    alone = ROBOT.mass_matrix.operations
    by_bodies = ROBOT.kinetic_energy.candidates["bodies"]
    assert both.operations.flops < alone.flops + by_bodies.flops


def test_a_column_of_the_regressor_is_a_body_with_one_parameter() -> None:
    """Check f = m o + B h, n = h x o + I alpha + w x I w about the body's origin, and their power at the joints."""
    Y = np.asarray(ROBOT.inverse_dynamics_regressor(Q, V, A))
    k, pi = len(ROBOT.bodies) - 1, RNG.standard_normal(10)
    m, h = pi[0], pi[1:4]
    xx, xy, yy, xz, yz, zz = pi[4:]
    rotational = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    velocity = np.asarray(ROBOT.frame_velocity(LAST, "local")(Q, V))
    acceleration = np.asarray(ROBOT.frame_classical_acceleration(LAST, "local")(Q, V, A))
    T = np.asarray(ROBOT.frame_placement(LAST)(Q))
    w, alpha = velocity[3:], acceleration[3:]
    o = acceleration[:3] - T[:3, :3].T @ ROBOT.model.tree.gravity
    f = m * o + np.cross(alpha, h) + np.cross(w, np.cross(w, h))
    n = np.cross(h, o) + rotational @ alpha + np.cross(w, rotational @ w)
    J = np.asarray(ROBOT.frame_jacobian(LAST, "local")(Q))
    np.testing.assert_allclose(Y[:, 10 * k : 10 * k + 10] @ pi, J.T @ np.concatenate([f, n]), atol=1e-9)


@pytest.mark.parametrize("damping", [1e-3, 0.5])
def test_a_step_by_priorities(damping: float) -> None:
    """Check that the second level minimizes its damped squares without moving the first."""
    first, second = (RNG.standard_normal((m, 7)) for m in (2, 3))
    e1, e2 = RNG.standard_normal(2), RNG.standard_normal(3)
    levels = [Level(A.tolist(), e.tolist(), damping, 1.0) for A, e in ((first, e1), (second, e2))]
    above = first.T @ np.linalg.solve(first @ first.T + damping * np.eye(2), e1)
    free = np.linalg.svd(first)[2][2:].T  # null space of the first level
    moved = second @ free
    x = free @ np.linalg.solve(moved.T @ moved + damping * np.eye(5), moved.T @ (e2 - second @ above))
    np.testing.assert_allclose(prioritized_step(7, levels), above + x, atol=1e-8)  # ν and its effect are above rounding


def test_an_orientation_error_is_the_logarithm() -> None:
    w = np.array([0.4, -0.7, 0.9])
    h = np.linalg.norm(w)
    K = np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
    R = np.eye(3) + np.sin(h) / h * K + (1 - np.cos(h)) / h**2 * K @ K
    np.testing.assert_allclose(rotation_vector(Mat3(*(Vec3(*row) for row in R))), w, atol=1e-12)
