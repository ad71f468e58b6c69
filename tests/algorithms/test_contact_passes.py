"""Tests of the equations of Newton's method for compliant contacts, beside dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.system import body_placements
from oracles.trees import TREES, tree

TIGHT = 1e-9  # relative: contacts are up to 1e5 times stiffer than inertias


@pytest.mark.parametrize("name", sorted(TREES))
@pytest.mark.parametrize(("stiffness", "execution"), [(0.0, "traced"), (1.0, "traced"), (1e5, "traced"), (1e5, "rolled")])
def test_passes_and_the_matrix_solve_the_equations(name: str, stiffness: float, execution: str) -> None:
    """Check contacts of all bodies, and limits of every second row."""
    robot = fw.Robot(tree(name)[1].model, execution)
    rng, n, bodies = np.random.default_rng(0), robot.nv, [b.name for b in robot.bodies]
    rows = tuple(range(0, n, 2))
    functions = robot.step_functions.contact_passes(body_placements(robot), rows, n)
    factor, response, matrix, loads, axes = functions
    root = rng.standard_normal((len(bodies), 6, 3))  # three rows of a contact on each body
    K, D = stiffness * root @ root.transpose(0, 2, 1), stiffness * rng.random(len(rows))
    wrench, force = rng.standard_normal((len(bodies), 6)), rng.standard_normal(n)
    q = robot.random_configuration(rng=rng)
    J = robot.frame_jacobian(bodies, "local")(q).reshape(len(bodies), 6, n)
    H = robot.mass_matrix(q) + np.einsum("bij,bik,bkl->jl", J, K, J)
    H[rows, rows] += D
    load = force + np.einsum("bij,bi->j", J, wrench)
    x = np.linalg.solve(H, load)
    motion, velocity = response(q, factor(q, K, D), wrench, force)
    scale = np.abs(x).max()
    np.testing.assert_allclose(velocity, x, rtol=0.0, atol=TIGHT * scale * max(1.0, np.linalg.cond(H) / 1e4))
    np.testing.assert_allclose(motion, J @ velocity, rtol=0.0, atol=TIGHT * max(scale, np.abs(motion).max()))
    np.testing.assert_allclose(matrix(q, K, D), np.tril(H), rtol=0.0, atol=1e-12 * np.abs(H).max())
    np.testing.assert_allclose(loads(q, wrench, force), load, rtol=0.0, atol=1e-12 * np.abs(load).max())
    lin, ang, place = axes(q)
    np.testing.assert_allclose(np.hstack([lin - np.cross(ang, place), ang]).T, robot.joint_jacobian(q), rtol=0.0, atol=1e-12)
    moved = robot.frame_velocity(bodies, "local")(q, x)  # the fifth function of contacts in passes
    np.testing.assert_allclose(moved, J @ x, rtol=0.0, atol=1e-12 * np.abs(J @ x).max())
