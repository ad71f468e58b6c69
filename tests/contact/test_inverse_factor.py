"""B = J C with M⁻¹ = C Cᵀ, against products of whole matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featherweight.collision.detection import ContactPoints
from featherweight.contact.contact_model import ContactModel, joint_rows
from featherweight.contact.contact_settings import ContactSettings
from featherweight.contact.inverse_factor import (
    InverseFactors,
    InverseWork,
    add_rows_by_inverse,
    inverse_work,
    write_body_row_by_inverse,
    write_inverse_factor,
    write_joint_row_by_inverse,
)

Array = np.ndarray[Any, np.dtype[Any]]


def touching(pairs: list[tuple[int, int]]) -> ContactPoints:
    """Contacts of pairs of bodies, -1 for the world."""
    k = len(pairs)
    a, b = (np.array([p[side] for p in pairs], np.int64) for side in (0, 1))
    return ContactPoints(np.arange(k), a, b, np.zeros((k, 3)), np.zeros((k, 3)), np.zeros(k))


def model_of(width: Array, trees: tuple[Array, Array], nv: int) -> ContactModel:
    """Every joint row has dry friction."""
    settings = ContactSettings(1e-3, 0.01, 1e-4, 0.01, 1e-10, False, False)
    joints = len(trees[1])
    rows = joint_rows(np.arange(joints), np.full(joints, -np.inf), np.full(joints, np.inf), np.ones(joints), 1e-3)
    return ContactModel(width, np.zeros(0), np.zeros(0), rows, settings, *trees, nv)


def random_factors(rng: np.random.Generator, width: Array, nv: int, joints: int, ratio: float = 10.0) -> InverseFactors:
    """Rows of which half the entries are zero; masses in a ratio."""
    m = int(width.sum())
    J = rng.standard_normal((m, nv)) * (rng.random((m, nv)) < 0.5)
    Q = np.linalg.qr(rng.standard_normal((nv, nv)))[0]
    Minv = Q @ np.diag(np.geomspace(1.0, ratio, nv)) @ Q.T
    E = np.eye(nv)[rng.permutation(nv)[:joints]]
    return InverseFactors(J, 0.5 * (Minv + Minv.T), E, np.array([0, nv]), np.zeros(1, np.int64))


def written(model: ContactModel, pairs: list[tuple[int, int]], factors: InverseFactors) -> InverseWork:
    """C in room that held something else; what is not needed stays NaN."""
    first = factors.first
    work = inverse_work(model.width, model.nv, len(first) - 1, int(np.diff(first).max()))
    for room in (work.C, work.matrix, work.reciprocal, work.rows):
        room.fill(np.nan)
    write_inverse_factor(model, touching(pairs), np.arange(len(model.rows.joint)), factors, work)
    return work


def rows_of(model: ContactModel, bodies: list[int], factors: InverseFactors, work: InverseWork) -> Array:
    """B of all rows of some bodies, and of all joint rows."""
    B = np.full((int(model.width[bodies].sum()) + len(factors.E), model.nv), np.nan)
    at = 0
    for body in bodies:
        for i in range(model.width[body]):
            write_body_row_by_inverse(body, i, model, factors, work, B[at])
            at += 1
    for joint in range(len(factors.E)):
        write_joint_row_by_inverse(joint, 1.0, model, factors, work, B[at + joint])
    return B


@pytest.mark.parametrize("ratio", [1.0, 1e8])
@pytest.mark.parametrize("bodies", [[0], [0, 2], [1, 3], [], [0, 1, 2, 3]])
def test_products_of_rows_are_those_by_the_inverse_mass_matrix(bodies: list[int], ratio: float) -> None:
    """Bodies have six rows, or three at their one point; joint rows are single coordinates."""
    rng, width = np.random.default_rng(len(bodies)), np.array([6, 3, 6, 3])
    factors = random_factors(rng, width, 9, 2, ratio)
    model = model_of(width, (np.zeros(4, np.int64), np.zeros(2, np.int64)), 9)
    B = rows_of(model, bodies, factors, written(model, [(b, -1) for b in bodies], factors))
    starts = np.cumsum([0, *width])
    rows = np.concatenate([*(factors.J[starts[b] : starts[b + 1]] for b in bodies), factors.E])
    np.testing.assert_allclose(B @ B.T, rows @ factors.Minv @ rows.T, rtol=1e-12, atol=1e-13 * ratio)


def test_the_factor_is_triangular() -> None:
    factors = random_factors(np.random.default_rng(2), np.array([6]), 11, 0)
    model = model_of(np.array([6]), (np.zeros(1, np.int64), np.zeros(0, np.int64)), 11)
    C = written(model, [(0, -1)], factors).C
    np.testing.assert_array_equal(C, np.tril(C))
    np.testing.assert_allclose(C, np.linalg.cholesky(factors.Minv), rtol=1e-12, atol=1e-13)


def test_joint_rows_of_closed_loops_are_any_rows() -> None:
    """In a loop a joint moves with all independent coordinates: E has no unit rows. An upper limit turns the sign."""
    rng = np.random.default_rng(4)
    factors = random_factors(rng, np.zeros(0, np.int64), 5, 0)._replace(E=rng.standard_normal((4, 5)))
    model = model_of(np.zeros(0, np.int64), (np.zeros(0, np.int64), np.zeros(4, np.int64)), 5)
    work = written(model, [], factors)
    B = rows_of(model, [], factors, work)
    np.testing.assert_allclose(B @ B.T, factors.E @ factors.Minv @ factors.E.T, rtol=1e-12, atol=1e-13)
    turned = np.empty(5)
    write_joint_row_by_inverse(2, -1.0, model, factors, work, turned)
    np.testing.assert_array_equal(turned, -B[2])


@pytest.mark.parametrize("cut", [False, True], ids=["whole matrices", "columns of each tree"])
@pytest.mark.parametrize("pairs", [[(0, -1), (1, 2)], [(3, 2), (4, -1)], [(i, -1) for i in range(5)]])
def test_trees_of_a_forest(pairs: list[tuple[int, int]], cut: bool) -> None:
    """Trees of 3, 6 and 4 degrees of freedom, with two, one and two bodies; joint rows are on the first and the last."""
    rng = np.random.default_rng(len(pairs))
    first, width = np.array([0, 3, 9, 13]), np.array([3, 6, 6, 3, 6])
    tree, joint_tree = np.array([0, 0, 1, 2, 2]), np.array([0, 2, 2])
    own = np.repeat([0, 1, 2], np.diff(first))
    whole = random_factors(rng, width, 13, 0)
    J = whole.J * (np.repeat(tree, width)[:, None] == own)
    Minv, E = whole.Minv * (own[:, None] == own), np.eye(13)[[1, 9, 12]]
    bodies = sorted({b for pair in pairs for b in pair if b >= 0})
    starts = np.cumsum([0, *width])
    rows = np.concatenate([*(J[starts[b] : starts[b + 1]] for b in bodies), E])
    expected, column = rows @ Minv @ rows.T, first[:3].copy()
    if cut:
        J, Minv = (
            np.array([[*x[first[t] : first[t + 1]], *[np.nan] * 6][:6] for t, x in zip(trees, matrix, strict=True)])
            for trees, matrix in ((np.repeat(tree, width), J), (own, Minv))
        )
        column[:] = 0
    factors, model = InverseFactors(J, Minv, E, first, column), model_of(width, (tree, joint_tree), 13)
    B = rows_of(model, bodies, factors, written(model, pairs, factors))
    np.testing.assert_allclose(B @ B.T, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(B @ B.T == 0.0, expected == 0.0)


def test_trees_that_nothing_touches_are_left_out() -> None:
    rng, width = np.random.default_rng(0), np.array([6, 6])
    factors = random_factors(rng, width, 8, 0)._replace(first=np.array([0, 5, 8]), column=np.array([0, 5]))
    model = model_of(width, (np.array([0, 1]), np.zeros(0, np.int64)), 8)
    C = written(model, [(1, -1)], factors).C
    assert np.isnan(C[:5]).all() and np.isfinite(C[5:, :3]).all()


def test_a_contact_adds_combinations_of_the_rows_of_its_bodies() -> None:
    rng, width = np.random.default_rng(1), np.array([6, 3])
    factors, model = random_factors(rng, width, 7, 0), model_of(width, (np.zeros(2, np.int64), np.zeros(0, np.int64)), 7)
    work = written(model, [(0, 1)], factors)
    rows, B = rng.standard_normal((1, 2, 3, 6)), np.ones((3, 7))
    for s, body in ((0, 0), (1, 1)):
        add_rows_by_inverse(rows, 0, s, body, model, factors, work, B)
    seen = rows[0, 0] @ factors.J[:6] + rows[0, 1, :, :3] @ factors.J[6:]
    np.testing.assert_allclose(B, 1.0 + seen @ np.linalg.cholesky(factors.Minv), rtol=1e-12, atol=1e-13)


def test_a_matrix_that_is_not_positive_definite_gives_no_numbers() -> None:
    factors = random_factors(np.random.default_rng(0), np.array([6]), 4, 0)._replace(Minv=np.diag([1.0, -1.0, 1.0, 1.0]))
    model = model_of(np.array([6]), (np.zeros(1, np.int64), np.zeros(0, np.int64)), 4)
    work = written(model, [(0, -1)], factors)
    assert np.isnan(work.C[np.tril_indices(4)]).all()
