"""Tests of the inverse of the mass matrix and its sparse factors against LAPACK, Pinocchio and MuJoCo.

Entries have the units of their joints. Comparisons scale results to a mass matrix with unit diagonal, so that no joint's units
hide another's errors.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from oracles import mujoco_models, pinocchio_models
from oracles.robots import COMPILED, NAMES, example, robot_of
from oracles.states import ROUNDING, Array, assert_same_solutions, evaluated, norms, random_states
from oracles.trees import ILL_CONDITIONED, TREES, tree

STATES = 4
EPS = np.finfo(np.float64).eps
ALL = (*NAMES, *TREES, *ILL_CONDITIONED)


@pytest.fixture(params=ALL)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def robot(name: str) -> fw.Robot:
    return robot_of(name)


@pytest.fixture
def q(robot: fw.Robot) -> Array:
    return random_states(robot, STATES).q


def sizes(M: Array) -> Array:
    return np.sqrt(np.diagonal(M, axis1=1, axis2=2))


def scaled(M: Array) -> Array:
    """Return the matrix scaled to a unit diagonal."""
    size = sizes(M)
    return np.asarray(M / (size[:, :, None] * size[:, None, :]))


def residual(M: Array, inverse: Array) -> float:
    """Return ||M X - 1||, the largest over all states."""
    return float(np.max(norms(M @ inverse - np.eye(M.shape[1]), len(M))))


def assert_same_columns(X: Array, Y: Array, M: Array, growth: float = 20) -> None:
    """Compare two solutions of M X = B column by column with `assert_same_solutions`."""
    size = sizes(M)[:, :, None]
    bound = np.maximum(ROUNDING, growth * EPS * np.linalg.cond(scaled(M)))
    assert np.all(norms(size * (X - Y), len(M)) <= bound * norms(size * Y, len(M)))


# the inverse


@pytest.mark.parametrize("algorithm", ["global", "local", "crba-ltdl"])
def test_inverse_is_lapacks(robot: fw.Robot, q: Array, algorithm: str) -> None:
    M, inverse = robot.mass_matrix(q), robot.inverse_mass_matrix(q, algorithm=algorithm)
    size = sizes(M)[:, None, :]
    assert_same_columns(inverse * size, np.linalg.inv(M) * size, M)


@pytest.mark.parametrize("name", NAMES)
def test_inverses_of_robots_are_as_good_as_lapacks(name: str) -> None:
    """Check that the residual is mostly at most four times that of LAPACK's inverse.

    LAPACK inverts the matrix of the residual. Our inverse comes from q, and differs by the rounding of both matrices: a factor
    of about two is expected. A few roundings, n eps, are noise. The test takes the largest residual of many states, since the
    ratio of two roundings in one state is random: up to 20 was measured. If one state in fifty has by far the greatest
    condition (icub, 1e12), the largest is again a single state; therefore the test compares the median of several.
    """
    robot = example(name)
    q = random_states(robot, 450).q
    functions = robot.mass_matrix, robot.inverse_mass_matrix
    M, inverse = (f(q) if name in COMPILED else evaluated(f, q)[0] for f in functions)
    parts = range(0, len(q), 50)
    ours, lapacks = ([residual(M[k : k + 50], X[k : k + 50]) for k in parts] for X in (inverse, np.linalg.inv(M)))
    assert np.median(np.array(ours) / (np.array(lapacks) + robot.nv * EPS)) <= 4.0


@pytest.mark.parametrize("name", [*TREES, *ILL_CONDITIONED])
def test_inverses_of_trees_are_nearly_as_good_as_lapacks(name: str) -> None:
    """Check a factor of eight, larger than for robots: joints of all types in long chains had up to 5.7 times LAPACK's
    error.
    """
    robot = robot_of(name)
    q = random_states(robot, STATES).q
    M, size = robot.mass_matrix(q), sizes(robot.mass_matrix(q))
    ours = residual(scaled(M), robot.inverse_mass_matrix(q) * size[:, :, None] * size[:, None, :])
    assert ours <= 8 * residual(scaled(M), np.linalg.inv(scaled(M))) + 4 * robot.nv * EPS


def test_inverse_is_pinocchios(name: str, robot: fw.Robot, q: Array) -> None:
    """Check to Pinocchio's error: up to 160 eps cond(M) from LAPACK, a thousand times ours; icub's condition is 6e5."""
    if name in NAMES:
        peer = pinocchio_models.example(name)
    else:
        peer = pinocchio_models.from_description(*tree(name))
    theirs = []
    for x in q:
        upper = np.triu(pin.computeMinverse(peer.model, peer.data, peer.q(x)))
        theirs.append((upper + np.triu(upper, 1).T)[np.ix_(peer.columns, peer.columns)])
    M = peer.mass_matrix(q)
    size = sizes(M)[:, None, :]
    assert_same_columns(robot.inverse_mass_matrix(q) * size, np.array(theirs) * size, M, growth=500)


@pytest.mark.parametrize("name", ["mixed_21", "all_spherical", "roots", "grid", "one_dof_60"])
@pytest.mark.parametrize("parts", [2, 3])
def test_threads_that_share_columns_write_the_whole_inverse(name: str, parts: int) -> None:
    """Check bitwise that each part writes its columns and the rows opposite, and nothing else."""
    robot = fw.build(tree(name)[0], execution="interpreted")
    program: Any = fw.build(tree(name)[0], execution="rolled").inverse_mass_matrix.program
    shares = program.shares(parts)
    assert 2 <= len(shares) <= parts
    q = random_states(robot, 1).q[0].tolist()
    whole = [[np.nan] * robot.nv for _ in range(robot.nv)]
    program.kernel(*program.constants, q, whole)
    assert np.all(np.isfinite(whole))
    together = [[np.nan] * robot.nv for _ in range(robot.nv)]
    for k, share in enumerate(shares):
        share.kernel(*share.constants, q, together)
        assert np.any(np.isnan(together)) == (k < len(shares) - 1)
    np.testing.assert_array_equal(together, whole)


def test_inverse_is_symmetric_to_the_last_bit_and_positive(robot: fw.Robot, q: Array) -> None:
    inverse = robot.inverse_mass_matrix(q)
    np.testing.assert_array_equal(inverse, np.swapaxes(inverse, 1, 2))
    assert np.all(np.diagonal(inverse, axis1=1, axis2=2) > 0.0)


@pytest.mark.parametrize("name", ["roots", "allegro"])
def test_robots_with_several_roots_move_apart(name: str) -> None:
    """Check that blocks of the inverse between different roots are exactly zero."""
    robot = robot_of(name)
    parent = robot.model.tree.parent
    root: list[int] = []
    for i, p in enumerate(parent):
        root.append(i if p < 0 else root[p])
    apart = np.not_equal.outer(root, root)
    assert np.any(apart)
    inverse = robot.inverse_mass_matrix(random_states(robot, STATES).q)
    assert np.all(inverse[:, apart] == 0.0)
    assert np.all(robot.factorize(random_states(robot, STATES).q).L[:, apart] == 0.0)


def test_solutions_for_matrices(robot: fw.Robot, q: Array) -> None:
    M = robot.mass_matrix(q)
    B = np.random.default_rng(2).standard_normal((STATES, robot.nv, 2))
    X = robot.solve_mass_matrix(q, B)
    assert X.shape == B.shape
    assert_same_columns(X, np.linalg.solve(M, B), M)


@pytest.mark.parametrize("name", ["panda", "solo12", "roots"])
def test_solutions_for_the_unit_matrix_are_the_inverse(name: str) -> None:
    robot = robot_of(name)
    q = random_states(robot, STATES).q
    M, size = robot.mass_matrix(q), sizes(robot.mass_matrix(q))[:, None, :]
    inverse, unit = robot.inverse_mass_matrix(q) * size, np.eye(robot.nv)
    assert_same_columns(robot.solve_mass_matrix(q, unit) * size, inverse, M)  # a product with the inverse
    some = robot.solve_mass_matrix(q, unit[:, :-1]) * size[..., :-1]  # by recursion
    assert_same_columns(some, inverse[..., :-1], M)


def test_solutions_broadcast() -> None:
    robot = robot_of("panda")
    q, B = random_states(robot, 3).q, np.random.default_rng(3).standard_normal((4, 1, robot.nv, 2))
    X = robot.solve_mass_matrix(q, B)
    assert X.shape == (4, 3, robot.nv, 2)
    np.testing.assert_allclose(X[2, 1], robot.solve_mass_matrix(q[1], B[2, 0]), rtol=1e-12, atol=1e-12)
    assert robot.solve_mass_matrix(q[0], B[0, 0].tolist()).shape == (robot.nv, 2)
    single = robot.solve_mass_matrix(q.astype(np.float32), B.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, X, rtol=0.0, atol=1e-4 * np.max(np.abs(X)))


@pytest.mark.parametrize("shape", [(), (9,), (8, 3), (3, 9), (9, 9, 3)])
def test_wrong_shapes_are_named(shape: tuple[int, ...]) -> None:
    robot = robot_of("panda")
    q = robot.neutral()
    if shape == (9, 9, 3):
        with pytest.raises(ValueError, match="broadcast"):
            robot.solve_mass_matrix(np.broadcast_to(q, (2, robot.nq)), np.ones(shape))
        return
    with pytest.raises(ValueError, match=r"B must have shape \(\.\.\., 9, m\)"):
        robot.solve_mass_matrix(q, np.ones(shape))
    with pytest.raises(ValueError, match=r"q must have shape \(\.\.\., 9\)"):
        robot.solve_mass_matrix(np.ones(10), np.ones((9, 3)))


# factors


def test_factors_multiply_to_the_mass_matrix(robot: fw.Robot, q: Array) -> None:
    """Check that LTDL is backward stable: entries differ by n eps of the diagonal."""
    M, F = robot.mass_matrix(q), robot.factorize(q)
    difference = np.swapaxes(F.L, 1, 2) @ (F.D[:, :, None] * F.L) - M
    size = sizes(M)
    assert np.all(np.abs(difference) <= robot.nv * EPS * size[:, :, None] * size[:, None, :])
    assert np.all(F.D > 0.0)
    np.testing.assert_array_equal(np.diagonal(F.L, axis1=1, axis2=2), 1.0)


def test_factors_have_entries_only_for_ancestors(robot: fw.Robot, q: Array) -> None:
    tree = fw.model.topology.Topology(robot.model.tree.parent)
    outside = np.ones((robot.nv, robot.nv), dtype=bool)
    for i in range(robot.nv):
        outside[i, list(tree.support(i))] = False
    assert np.all(robot.factorize(q).L[:, outside] == 0.0)


def test_factors_solve_and_give_the_determinant(robot: fw.Robot, q: Array) -> None:
    M, F = robot.mass_matrix(q), robot.factorize(q)
    b = np.random.default_rng(4).standard_normal((STATES, robot.nv))
    assert_same_solutions(F.solve(b), np.linalg.solve(M, b[:, :, None])[:, :, 0], M)
    sign, logdet = np.linalg.slogdet(M)
    assert np.all(sign == 1.0)
    bound = np.maximum(ROUNDING, robot.nv * EPS * np.linalg.cond(scaled(M)))
    assert np.all(np.abs(F.logdet() - logdet) <= bound)


@pytest.mark.parametrize("name", ["talos", "allegro", "mixed_13", "balanced"])
def test_factors_are_those_of_the_mass_matrix(name: str) -> None:
    robot = robot_of(name)
    q = random_states(robot, STATES).q
    F, G = robot.factorize(q), fw.ltdl(robot.mass_matrix(q), robot.model.tree.parent)
    assert F.parent == G.parent
    np.testing.assert_allclose(F.L, G.L, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(F.D, G.D, rtol=1e-10)


@pytest.mark.parametrize("name", ["side_branches", "balanced", "grid", "all_revolute", "all_spherical", "anchored"])
def test_factors_are_mujocos(name: str) -> None:
    """Check against MuJoCo's M = L^T D L, in compressed rows whose last entry is the diagonal."""
    robot = robot_of(name)
    peer = mujoco_models.from_description(*tree(name))
    model, data = peer.model, peer.data
    q = random_states(robot, STATES).q
    F = robot.factorize(q)
    for k in range(STATES):
        peer._set(q[k])
        mujoco.mj_forward(model, data)
        theirs = np.zeros((robot.nv, robot.nv))
        for i in range(robot.nv):
            row = slice(model.M_rowadr[i], model.M_rowadr[i] + model.M_rownnz[i])
            theirs[i, model.M_colind[row]] = data.qLD[row]
        np.fill_diagonal(theirs, 1.0)
        np.testing.assert_allclose(F.L[k], theirs, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(1.0 / F.D[k], data.qLDiagInv, rtol=1e-10)
