"""Tests of B = R J C with M⁻¹ = C Cᵀ, against products of whole matrices; R J are the rows of contacts on bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import featherweight as fw
from contact.given_matrices import branches_from, dense_factor, factor_on_paths, path_of
from featherweight.array_types import Array
from featherweight.collision.detection import ContactPoints
from featherweight.contact.contact_model import ContactModel, joint_rows
from featherweight.contact.contact_problem import write_axes, write_rows
from featherweight.contact.contact_settings import ContactSettings
from featherweight.contact.factors.block_equations import place_of
from featherweight.contact.factors.branches import (
    branch_of_velocity,
    branches_of,
    columns_of_ancestors,
    longest_path,
    widest_row,
)
from featherweight.contact.factors.inverse_factor import (
    ContactGeometry,
    InverseFactors,
    factor_by_inverse,
    inverse_factors,
    inverse_work,
)
from featherweight.contact.factors.relative_rows import group_contacts
from featherweight.contact.factors.row_factor import RowFactor, row_factor_work, sizes_of_branches, sum_of_squares
from featherweight.model.generators import from_parents

Pairs = Sequence[tuple[int, int]]
CHAIN, FORK, DEEP = (-1, 0, 1, 2, 3, 4, 5, 6), (-1, 0, 1, 2, 1, 4, 0, 6, 6), (-1, 0, 1, 0, 3, 3, 5, 5, 7, 7, 9)
FOREST = (-1, 0, 1, -1, 3, 4, 5, 4, 7, -1, 9, 10, 9)


class Robot(NamedTuple):
    """A robot with its dense matrices, and their factors."""

    model: ContactModel
    factors: InverseFactors
    J: Array  # (rows of all bodies, nv)
    Minv: Array  # (nv, nv)

    def rows_of(self, body: int) -> Array:
        begin = int(self.model.width[:body].sum())
        return self.J[begin : begin + self.model.width[body]]


def model_of(parent: Sequence[int], width: Any, moved_by: Any, joints: Any) -> ContactModel:
    """Return bodies and joints with velocities; every joint row has dry friction."""
    settings = ContactSettings(1e-3, 0.01, 1e-4, 0.01, 1e-10, False, False)
    n, branch = len(joints), np.array(branch_of_velocity(parent), np.int64)
    rows = joint_rows(np.arange(n), np.full(n, -np.inf), np.full(n, np.inf), np.ones(n), 1e-3)
    of_bodies, of_joints = (branch[np.array(x, np.int64)] for x in (moved_by, joints))
    return ContactModel(np.array(width, np.int64), np.zeros(0), np.zeros(0), rows, settings, of_bodies, of_joints, len(parent))


def random_robot(rng: np.random.Generator, parent: Sequence[int], moved_by: Any, joints: Any = (), ratio: float = 1.0) -> Robot:
    """Return M = Lᵀ L with entries of L on paths; bodies have six and three rows alternately; diagonal entries of L have
    a given ratio.
    """
    nv, width = len(parent), [(6, 3)[b % 2] for b in range(len(moved_by))]
    on_path = np.array([np.isin(np.arange(nv), path_of(parent, i)) for i in range(nv)])
    L = 0.5 * rng.standard_normal((nv, nv)) * on_path
    L[np.diag_indices(nv)] = np.geomspace(1.0, ratio, nv)
    J = rng.standard_normal((sum(width), nv)) * np.repeat(on_path[list(moved_by)], width, axis=0)
    C = np.linalg.inv(L)
    branches = branches_from(parent)
    factors = InverseFactors(J, factor_on_paths(C, branches), np.eye(nv)[list(joints)], branches)
    return Robot(model_of(parent, width, moved_by, joints), factors, J, C @ C.T)


class Touching(NamedTuple):
    """Contacts of pairs of bodies, -1 for the world, and their points."""

    pairs: Pairs
    points: ContactPoints
    geometry: ContactGeometry

    @property
    def k(self) -> int:
        return len(self.pairs)


def touching(rng: np.random.Generator, robot: Robot, pairs: Pairs) -> Touching:
    """Return bodies at random positions, with random points and normals; points of bodies with three rows are at the body."""
    n, k, width = len(robot.model.width), len(pairs), robot.model.width
    placement, axes, rows = np.tile(np.eye(4), (n, 1, 1)), np.empty((k, 3, 3)), np.full((k, 2, 3, 6), np.nan)
    placement[:, :3, :3] = Rotation.random(n, rng=rng).as_matrix() if n else 0.0
    placement[:, :3, 3] = rng.standard_normal((n, 3))
    a, b = (np.array([p[side] for p in pairs], np.int64) for side in (0, 1))
    point, normal = rng.standard_normal((2, k, 3))
    for c, pair in enumerate(pairs):
        for body in pair:
            if body >= 0 and width[body] == 3:
                point[c] = placement[body, :3, 3]
        normal[c] /= np.linalg.norm(normal[c])
        write_axes(normal[c], axes[c])
        for side, body in enumerate(pair):
            if body >= 0:
                write_rows(axes[c], point[c], placement[body], 1.0 - 2.0 * side, rows[c, side])
    return Touching(
        pairs, ContactPoints(np.arange(k), a, b, point, normal, np.zeros(k)), ContactGeometry(placement, axes, rows)
    )


def factor(robot: Robot, t: Touching) -> RowFactor:
    """Return B for contacts and all joint rows, in a workspace that contained other numbers."""
    model, branches = robot.model, robot.factors.branches
    n = len(model.rows.joint)
    work = inverse_work(model.width, branches, t.k + n)
    sizes = sizes_of_branches(np.diff(branches.first), widest_row(branches), 2 * longest_path(branches))
    room = row_factor_work(t.k + n, sizes)
    for x in (work.numbers, room.values, room.ends):
        x.fill(np.nan)
    factors = inverse_factors(robot.factors.J, robot.factors.E, branches, work)
    factors.C[:] = robot.factors.C
    groups = group_contacts(model, t.points, room)
    return factor_by_inverse(model, t.points, t.geometry, np.arange(n), groups, factors, work, room)


def seen(robot: Robot, t: Touching) -> Array:
    """Return R J of contacts, by the rows on their bodies, and of joint rows."""
    J = np.zeros((3 * t.k, robot.model.nv))
    for c, pair in enumerate(t.pairs):
        for side, body in enumerate(pair):
            if body >= 0:
                J[3 * c : 3 * c + 3] += t.geometry.rows[c, side, :, : robot.model.width[body]] @ robot.rows_of(body)
    return np.concatenate([J, robot.model.rows.sign[:, None] * robot.factors.E])


CASES = pytest.mark.parametrize(
    ("parent", "moved_by", "joints", "pairs"),
    [
        ((-1,), [0], [0], [(0, -1)]),
        (CHAIN, [0, 4, 7], [2, 7], [(0, -1), (2, -1), (0, 2), (2, 1)]),
        (FORK, [1, 3, 5, 7, 8], [2, 8], [(1, 2), (2, 1), (3, 4), (0, 4), (1, 0), (-1, 3), (3, -1), (3, 4)]),
        (DEEP, [0, 6, 8, 10, 2], [10, 3], [(2, 3), (3, 1), (0, 3), (4, 3), (1, 4), (0, -1), (3, 0)]),
        (FOREST, [2, 6, 8, 11, 12], [0, 6, 9], [(0, 1), (2, 1), (4, 3), (3, 0), (4, -1)]),
        (FOREST, [6, 12], [12], [(0, 1), (1, 0)]),
        (DEEP, [0, 6, 8, 10, 2], [10] * 9 + [3], [(0, 2)] * 4 + [(4, -1)] * 3 + [(1, 2)] * 3 + [(-1, 1)] * 2 + [(2, 0)]),
        (FORK, [], [3, 0, 3], []),
        (FORK, [3], [], []),
    ],
    ids=["one velocity", "chain", "fork", "deep", "forest", "two trees", "groups", "joints", "nothing"],
)


@CASES
@pytest.mark.parametrize("ratio", [1.0, 1e4])
def test_rows_are_those_by_the_inverse_mass_matrix(parent: Any, moved_by: Any, joints: Any, pairs: Pairs, ratio: float) -> None:
    """Check B = R J C and B Bᵀ = R J M⁻¹ Jᵀ Rᵀ, also for bodies of one tree; only branches of both paths remain."""
    rng = np.random.default_rng(len(pairs))
    robot = random_robot(rng, parent, moved_by, joints, ratio)
    t = touching(rng, robot, pairs)
    found = factor(robot, t)
    B, J = dense_factor(found, t.k), seen(robot, t)
    unit = np.sqrt(np.diag(J @ robot.Minv @ J.T))
    np.testing.assert_allclose(B / unit[:, None], J @ np.linalg.cholesky(robot.Minv) / unit[:, None], rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(
        B @ B.T / np.outer(unit, unit), J @ robot.Minv @ J.T / np.outer(unit, unit), rtol=0.0, atol=1e-10
    )
    squares = [sum_of_squares(found, *place_of(i, t.k)) for i in range(len(B))]
    np.testing.assert_allclose(squares, (B * B).sum(axis=1), rtol=1e-11)  # zeros fill vectors
    branches, model = robot.factors.branches, robot.model
    for c, g in enumerate(found.group):
        ends = [model.branch[b] for b in pairs[c] if b >= 0] if c < t.k else [model.joint_branch[c - t.k]]
        kept = found.plan.first[found.branch[found.run_begin[g] : found.run_begin[g + 1]]]
        paths = [branches.path[branches.begin[b] : branches.begin[b + 1]] for b in ends]
        assert sorted(kept) == sorted(branches.first[np.unique(np.concatenate(paths))])


def test_contacts_of_the_same_bodies_are_a_group() -> None:
    """Check that three contacts share six rows, and that one and two have their own rows."""
    rng, pairs = np.random.default_rng(0), [(0, 2), (2, 1), (0, 2), (2, -1), (0, 2), (2, 1)]
    robot = random_robot(rng, FORK, [3, 5, 7], [3])
    found = factor(robot, touching(rng, robot, pairs))
    assert found.group.tolist() == [0, 1, 0, 2, 0, 1, 3]
    assert found.members.tolist() == [0, 2, 4, 1, 5, 3, 6] and found.member_begin.tolist() == [0, 3, 5, 6, 7]
    assert found.rows.tolist() == [6, 6, 3, 1]


def test_joint_rows_of_one_branch_share_groups_of_the_most_rows() -> None:
    """Check alternating rows of two branches, eleven of each: eight form a group, three another."""
    rng, joints = np.random.default_rng(1), [3, 8] * 11
    robot = random_robot(rng, FORK, [3], joints)
    t = touching(rng, robot, [(0, -1)])
    robot = robot._replace(factors=robot.factors._replace(E=rng.standard_normal((22, 1)) * robot.factors.E))
    found = factor(robot, t)
    assert found.rows.tolist() == [3, 8, 8, 3, 3] and found.group[1:].tolist() == [1, 2] * 8 + [3, 4] * 3
    np.testing.assert_allclose(dense_factor(found, 1), seen(robot, t) @ np.linalg.cholesky(robot.Minv), rtol=0.0, atol=1e-12)


def test_branches_that_nothing_moves_are_left_out() -> None:
    """Check that all branches of the first tree are omitted, and in the second tree the branch without the body."""
    rng = np.random.default_rng(0)
    robot = random_robot(rng, FOREST, [6])
    found = factor(robot, touching(rng, robot, [(0, -1)]))
    assert sorted(found.plan.first[: found.plan.branches]) == [3, 5]


def test_joint_rows_of_closed_loops_are_any_rows() -> None:
    """Check a joint in a loop, which moves with all independent coordinates: E has no unit rows.

    An upper limit reverses the sign.
    """
    rng = np.random.default_rng(4)
    robot, E = random_robot(rng, CHAIN, [], [7, 7, 7]), rng.standard_normal((3, 8))
    robot.model.rows.sign[1] = -1.0
    robot = robot._replace(factors=robot.factors._replace(E=E))
    B = dense_factor(factor(robot, touching(rng, robot, [])), 0)
    np.testing.assert_allclose(B, [[1.0], [-1.0], [1.0]] * (E @ np.linalg.cholesky(robot.Minv)), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("pairs", [[(0, -1), (1, 2)], [(3, 2), (4, -1)], [(i, -1) for i in range(5)]])
def test_jacobians_may_have_the_columns_of_each_tree_alone(pairs: Pairs) -> None:
    """Check that B has the same bits, and that numbers beyond those of a tree are not read."""
    rng = np.random.default_rng(len(pairs))
    robot = random_robot(rng, FOREST, [2, 6, 8, 11, 12], [0, 6])
    t = touching(rng, robot, pairs)
    expected = dense_factor(factor(robot, t), t.k)
    first = np.array([0, 3, 9, 13])
    shift = np.repeat(first[:3], np.diff(first))
    trees = np.repeat(shift[[2, 6, 8, 11, 12]], robot.model.width)
    J = np.array(
        [[*x[s : first[np.searchsorted(first, s) + 1]], *[np.nan] * 6][:6] for s, x in zip(trees, robot.J, strict=True)]
    )
    cut = robot._replace(factors=robot.factors._replace(J=J, branches=branches_of(FOREST, shift.tolist())))
    np.testing.assert_array_equal(dense_factor(factor(cut, t), t.k), expected)


@pytest.mark.parametrize("seed", range(3))
def test_factors_of_robots(seed: int) -> None:
    """Check joints of all kinds on two trees with branches; every body touches another one, of its own tree or not, and
    the world.
    """
    kinds = ("revolute", "prismatic", "spherical", "floating", "planar")
    robot = fw.build(from_parents([-1, 0, 1, 0, 3, 3, -1, 6, 6], rng=seed, joint_types=kinds))
    rng, forest = np.random.default_rng(seed), robot.step_functions.forest
    contacts = [fw.BilateralContact(body.name) for body in robot.bodies]
    q, n = robot.random_configuration(rng=rng), len(contacts)
    moved_by = [forest.velocity[body.row] for body in robot.model.placed_bodies]
    J, Minv = robot.contact_jacobian(contacts)(q), robot.inverse_mass_matrix(q)
    model = model_of(forest.parent, [6] * n, moved_by, range(robot.nv))
    branches = branches_from(forest.parent)
    columns = columns_of_ancestors(branches, forest.parent)
    C = robot.step_functions.inverse_factor(columns, int(branches.width.max()))(q)
    factors = InverseFactors(J, C, np.eye(robot.nv), branches)
    assert len(factors.branches.width) >= 6
    whole = Robot(model, factors, J, Minv)
    t = touching(rng, whole, [*((b, (b + 1 + seed) % n) for b in range(n)), *((b, -1) for b in range(n))] * 2)
    B, seen_by_all = dense_factor(factor(whole, t), t.k), seen(whole, t)
    A = seen_by_all @ Minv @ seen_by_all.T
    np.testing.assert_allclose(B @ B.T, A, rtol=1e-9, atol=1e-11 * np.abs(A).max())
