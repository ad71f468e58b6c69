"""Tests of equations of docs/algorithms, of loops and of operational space: independent code against the library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.algorithms.kinematics import joint_transforms
from featherweight.algorithms.mechanisms.maps import maps, spanning_configuration
from featherweight.algorithms.mechanisms.spanning import closing_matrix
from featherweight.robot.robot import Robot
from oracles.mechanisms import closed as built
from oracles.mechanisms import flying_linkage

LINKAGES = {"four-bar": fw.robots.four_bar, "planar legs": fw.robots.planar_leg_linkage}
Matrix = Any


def closed(name: str) -> tuple[Any, Robot, Matrix]:
    """Return the robot, its spanning tree, and a closed configuration of the tree."""
    robot = built(LINKAGES[name]())
    tree = Robot(robot.model)
    q = robot.random_configuration(rng=2)
    assert np.abs(robot.residual(q)).max() < 1e-9
    return robot, tree, np.asarray(q)


def velocity_maps(robot: Any, q: Matrix, v: Matrix) -> tuple[Matrix, Matrix]:
    """Return G (n, nv) and g (n) of all clusters."""
    mech = robot._system
    qs = spanning_configuration(mech, list(q))
    found = maps(mech, joint_transforms(mech.tree, qs), qs, list(v))
    G, g = np.zeros((len(mech.tree.parent), robot.nv)), np.zeros(len(mech.tree.parent))
    for cluster, M in zip(mech.clusters, found, strict=True):
        for k, r in enumerate(cluster.rows):
            row = np.eye(len(cluster.rows))[k] if M is None else M.G[r]
            G[r, cluster.start : cluster.start + len(cluster.independent)] = row
            g[r] = 0.0 if M is None else M.g[r]
    return G, g


def constraints(robot: Any, q: Matrix) -> Matrix:
    """Return K of the independent constraints."""
    mech = robot._system
    count = sum(len(c.alignments) for c in mech.clusters)
    K = [[0.0] * len(mech.tree.parent) for _ in range(count)]
    closing_matrix(mech, list(q), K)
    kept, start = [], 0
    for c in mech.clusters:
        kept += [start + k for k in c.kept]
        start += len(c.alignments)
    return np.array(K)[kept]


@pytest.mark.parametrize("name", LINKAGES)
def test_dynamics_of_linkages(name: str) -> None:
    robot, tree, q = closed(name)
    rng = np.random.default_rng(0)
    v, y2, tau = rng.standard_normal((3, robot.nv))
    G, g = velocity_maps(robot, q, v)
    K = constraints(robot, q)
    independent = [r for c in robot._system.clusters for r in c.independent]
    dependent = [r for c in robot._system.clusters for r in c.dependent]
    np.testing.assert_allclose(G[dependent], -np.linalg.solve(K[:, dependent], K[:, independent]), atol=1e-9)

    step = 1e-6  # k = -K' q', by differences along a closed motion, accurate to about 1e-8
    ahead, behind = (np.asarray(tree.integrate(q, s * (G @ v))) for s in (step, -step))
    k = -(constraints(robot, ahead) - constraints(robot, behind)) @ (G @ v) / (2 * step)
    np.testing.assert_allclose(g[dependent], np.linalg.solve(K[:, dependent], k), atol=1e-6 * (1 + np.abs(g).max()))
    assert not g[independent].any()

    whole = np.asarray(tree.inverse_dynamics(q, G @ v, G @ y2 + g))
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, y2), G.T @ whole, rtol=1e-9, atol=1e-9)

    H, c = np.asarray(tree.mass_matrix(q)), np.asarray(tree.bias_force(q, G @ v))
    np.testing.assert_allclose(robot.mass_matrix(q), G.T @ H @ G, rtol=1e-9, atol=1e-12)
    spanning = np.zeros(len(H))
    spanning[independent] = tau
    projected = np.linalg.solve(G.T @ H @ G, G.T @ (spanning - c - H @ g))
    m = len(K)
    system = np.block([[H, K.T], [K, np.zeros((m, m))]])
    solved = np.linalg.solve(system, np.concatenate([spanning - c, K @ g]))[independent]
    for algorithm in robot.forward_dynamics.candidates:
        ours = robot.forward_dynamics(q, v, tau, algorithm=algorithm)
        np.testing.assert_allclose(ours, projected, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(ours, solved, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("algorithm", ["global", "local", "crba-ltdl"])
def test_inverse_mass_matrix_of_a_cluster_that_carries_others(algorithm: str) -> None:
    """Check the equations with one origin for all bodies, and quantities from definitions: O = J M^-1 J^T."""
    robot = built(flying_linkage(), execution="interpreted")
    q = robot.random_configuration(rng=2)
    names = ("torso", "a", "b")
    J = {name: robot.frame_jacobian(name, "world")(q) for name in names}
    inverse, Minv = robot.inverse_mass_matrix(q, algorithm=algorithm), np.linalg.inv(robot.mass_matrix(q))
    O = {name: J[name] @ Minv @ J[name].T for name in names}
    velocities = {joint.name: joint.v_slice.start for joint in robot.joints}
    own = [k for k in range(robot.nv) if np.abs(J["b"] - J["torso"])[:, k].max() > 1e-12]
    assert len(own) == 2
    Phi = {name: J[name][:, own] for name in "ab"}
    R = -J["torso"] @ Minv[:, own]
    W = np.linalg.solve(O["torso"], R)
    E = inverse[np.ix_(own, own)]
    mobility = E - R.T @ W  # D^-1
    np.testing.assert_allclose(mobility, mobility.T, atol=1e-10)
    arrived = {}
    for name, k in (("a", velocities["arm_a"]), ("b", velocities["slide_b"])):
        g = Phi[name] @ E / 2 - R
        np.testing.assert_allclose(O[name], O["torso"] + Phi[name] @ g.T + g @ Phi[name].T, atol=1e-9)
        Y = -np.linalg.solve(O[name], J[name] @ Minv[:, k])
        np.testing.assert_allclose(inverse[own, k], (R - Phi[name] @ E).T @ Y, atol=1e-9)
        t = -Phi[name].T @ Y
        arrived[name] = (k, t, Y + W @ t)
    (i, t, Y), (k, other_t, other_Y) = arrived.values()
    np.testing.assert_allclose(inverse[i, k], t @ mobility @ other_t + Y @ O["torso"] @ other_Y, atol=1e-9)


def test_operational_space() -> None:
    """Check all functions of operational-space.md from M, J and the bias force."""
    robot = fw.build(fw.generators.from_parents([-1, 0, 1, 2, 3, 1, 5, 6], rng=3))
    rng = np.random.default_rng(5)
    q, v, tau = robot.random_configuration(rng=1), *rng.standard_normal((2, robot.nv))
    ends = [robot.bodies[4].name, robot.bodies[7].name]
    space = robot.operational_space([fw.BilateralContact(name, "point") for name in ends])
    M, J, c = (np.asarray(x) for x in (robot.mass_matrix(q), space.jacobian(q), robot.bias_force(q, v)))
    D = J @ np.linalg.solve(M, J.T)
    inverse = np.linalg.inv(D)
    bar = np.linalg.solve(M, J.T) @ inverse
    step = 1e-6  # J' by differences
    ahead, behind = (np.asarray(space.jacobian(robot.integrate(q, s * v))) for s in (step, -step))
    bent = (ahead - behind) @ v / (2 * step)
    x, b = rng.standard_normal((2, len(D)))
    exact: dict[str, Any] = dict(rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(space.inertia(q), inverse, **exact)
    np.testing.assert_allclose(space.apply_delassus(q, x), D @ x, **exact)
    np.testing.assert_allclose(space.consistent_inverse(q), bar, **exact)
    np.testing.assert_allclose(space.null_space_projector(q), np.eye(robot.nv) - bar @ J, **exact)
    beta = np.asarray(space.bias(q, v))
    np.testing.assert_allclose(beta, bent - J @ np.linalg.solve(M, c), rtol=1e-5, atol=1e-5)
    force = inverse @ (b - beta - J @ np.linalg.solve(M, tau))
    for algorithm in space.constrained_dynamics.candidates:
        motion = space.forward_dynamics(q, v, tau, b, algorithm=algorithm)
        np.testing.assert_allclose(motion.force, force, **exact)
        np.testing.assert_allclose(motion.acceleration, np.linalg.solve(M, tau - c + J.T @ force), **exact)
