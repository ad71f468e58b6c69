"""Tests of the contact problem of one robot against moving rigid bodies: velocities at contacts, and effects of impulses."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.spatial.transform import Rotation

from contact.given_matrices import (
    branches_from,
    dense_factor,
    factors_in,
    given_delassus,
    matrix_of,
    one_branch,
    random_factor,
)
from featherweight.array_types import Array
from featherweight.collision.detection import ContactPoints, body_of
from featherweight.contact.contact_model import ContactModel, joint_rows
from featherweight.contact.contact_problem import (
    AssembledProblem,
    BodyDelassus,
    ContactImpulses,
    ContactKinematics,
    assembled,
    assembly_work,
    write_axes,
    write_rows,
    write_square,
)
from featherweight.contact.contact_settings import ContactSettings
from featherweight.contact.factors.branches import longest_path, padded, widest_row
from featherweight.contact.factors.inverse_factor import inverse_work
from featherweight.contact.factors.row_factor import FactorSizes, sizes_of_branches, sizes_of_one_branch

CANDIDATES, JOINTS = 9, 3
SETTINGS = ContactSettings(1e-3, 0.01, 1e-4, 0.01, 1e-10, False, False)
ROWS = joint_rows(np.arange(JOINTS), np.array([-1.0, -inf, -inf]), np.array([1.0, 2.0, inf]), np.array([0.0, 0.0, 3.0]), 1e-3)


@pytest.mark.parametrize(
    "normal",
    [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, -1), (0.9, np.sqrt(0.19), 0), (0.9 - 1e-12, 0.1, 0.4), (1, 1e-9, 0)],
)
def test_a_normal_and_two_tangents_turn_right(normal: tuple[float, float, float]) -> None:
    n, axes = np.array(normal, float) / np.linalg.norm(normal), np.empty((3, 3))
    write_axes(n, axes)
    np.testing.assert_array_equal(axes[0], n)
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(axes) == pytest.approx(1.0)


def random_placement(rng: np.random.Generator, size: float = 1.0) -> Array:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.random(rng=rng).as_matrix(), size * rng.standard_normal(3)
    return T


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_rows_give_the_velocity_of_the_point_that_a_body_carries(size: float) -> None:
    """Check against a finite difference of the point's position; the sign of a side reverses all."""
    rng = np.random.default_rng(0)
    T, v, x, axes, rows = (
        random_placement(rng, size),
        rng.standard_normal(6),
        rng.standard_normal(3),
        np.empty((3, 3)),
        np.empty((3, 6)),
    )
    write_axes(np.array([0.6, 0.0, 0.8]), axes)
    local = T[:3, :3].T @ (x - T[:3, 3])
    h = 1e-5

    def carried(t: float) -> Array:
        R = T[:3, :3] @ Rotation.from_rotvec(t * v[3:]).as_matrix()
        place: Array = T[:3, 3] + t * T[:3, :3] @ v[:3] + R @ local
        return place

    moved = (carried(h) - carried(-h)) / (2.0 * h)
    for sign in (1.0, -1.0):
        write_rows(axes, x, T, sign, rows)
        np.testing.assert_allclose(rows @ v, sign * axes @ moved, atol=1e-8 * size + 1e-8)


class Touching:
    """Bodies with six or three rows that touch each other and the world at random points, and joint rows."""

    def __init__(self, rng: np.random.Generator, width: list[int], contacts: int) -> None:
        n = len(width)
        self.width, self.contacts = np.array(width), contacts
        sides = [rng.choice(n + 1, 2, replace=False) for _ in range(contacts)]
        a, b = (np.array([s[i] for s in sides], np.int64).reshape(-1) for i in (0, 1))
        a, b = np.where(a == n, b, a), np.where(a == n, -1, b)
        b[b == n] = -1
        normals = rng.standard_normal((contacts, 3))
        normals /= np.linalg.norm(normals, axis=1)[:, None]
        self.points = ContactPoints(
            rng.permutation(CANDIDATES)[:contacts],
            a,
            b,
            rng.standard_normal((contacts, 3)),
            normals,
            rng.uniform(-1e-3, 1e-3, contacts),
        )
        placement = np.array([random_placement(rng) for _ in width]).reshape(n, 4, 4)
        for i in np.flatnonzero(self.width == 3):  # its frame is where it may touch
            here = [c for c in range(contacts) if i in (a[c], b[c])]
            for c in here:
                self.points.point[c] = placement[i, :3, 3]
        v, before = rng.standard_normal((2, n, 6))
        gap = np.where(ROWS.friction, inf, np.array([1e-4, -1e-3, 0.7, inf][: len(ROWS.joint)]))
        self.kinematics = ContactKinematics(placement, v, gap, rng.standard_normal(4), before, rng.standard_normal(4))
        branch = np.zeros(n, np.int64), np.zeros(JOINTS, np.int64)
        self.model = ContactModel(
            self.width, rng.random(CANDIDATES), np.zeros(CANDIDATES), ROWS, SETTINGS, *branch, int(self.width.sum()) + JOINTS
        )
        self.branches = one_branch(self.model.nv)
        size = int(self.width.sum())
        J = rng.standard_normal((size + JOINTS, size + JOINTS))
        self.delassus = given_delassus(J @ J.T, np.cumsum([0, *width]))
        self.impulses = ContactImpulses.of_sizes(contacts, n, JOINTS, CANDIDATES, 4)
        for x in (self.impulses.last_force, self.impulses.last_row):
            x[:] = rng.standard_normal(x.shape)

    def sizes(self) -> FactorSizes:
        by_branches = sizes_of_branches(
            np.diff(self.branches.first), widest_row(self.branches), 2 * longest_path(self.branches)
        )
        return FactorSizes(*map(max, by_branches, sizes_of_one_branch(self.model.nv)))

    def assembled(self) -> AssembledProblem:
        work = assembly_work(self.contacts + 1, 4, self.model.nv, self.sizes())
        rows = work.of_rows
        numbers = work.A, work.half, rows.gap, rows.rows, rows.axes, work.factor_rows.values
        for room in (*rows.law[:-1], rows.approach, rows.before, rows.start, *numbers):
            room.fill(np.nan)
        return assembled(self.model, self.points, self.kinematics, self.delassus, self.impulses, work)

    def map(self, p: AssembledProblem) -> Array:
        """Return the velocities of rows by those of all bodies and joints, from exact velocities of points."""
        k, starts = self.contacts, np.cumsum([0, *self.width])
        R = np.zeros((len(p.start), len(self.delassus.G)))
        for c in range(k):
            for body, sign in ((self.points.a[c], 1.0), (self.points.b[c], -1.0)):
                if body >= 0:
                    T = self.kinematics.placement[body]
                    x, y, z = T[:3, :3].T @ (self.points.point[c] - T[:3, 3])
                    across = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
                    turned = sign * p.axes[c] @ T[:3, :3] @ np.hstack([np.eye(3), across])
                    R[3 * c : 3 * c + 3, starts[body] : starts[body + 1]] = turned[:, : self.width[body]]
        for i, r in enumerate(p.active):
            R[3 * k + i, starts[-1] + ROWS.joint[r]] = ROWS.sign[r]
        return R


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("contacts", [0, 1, 6])
def test_the_problem_is_that_of_rows_on_bodies_and_joints(seed: int, contacts: int) -> None:
    """Check A = R G Rᵀ, velocities R v, and the impulses of the previous step rotated into the axes of contacts."""
    rng = np.random.default_rng(seed)
    touching = Touching(rng, [[6], [6, 6], [6, 3, 6]][seed % 3], contacts)
    p, kinematics = touching.assembled(), touching.kinematics
    R, k = touching.map(p), contacts
    A = matrix_of(p.problem)
    np.testing.assert_allclose(A, R @ touching.delassus.G @ R.T, atol=1e-12 * np.abs(A).max(initial=1.0))
    np.testing.assert_allclose(A, A.T, atol=0.0 if not p.problem.factored else 1e-13 * np.abs(A).max())
    bodies = int(touching.width.sum())
    for x, v, speed in ((p.approach, kinematics.velocity, kinematics.speed),
                        (p.before, kinematics.velocity_before, kinematics.speed_before)):  # fmt: skip
        whole = np.concatenate([v[i, : touching.width[i]] for i in range(len(v))])
        np.testing.assert_allclose(x[: 3 * k], R[: 3 * k, :bodies] @ whole, atol=1e-12)
        np.testing.assert_array_equal(x[3 * k :], speed[p.active])
    last = touching.impulses.last_force[touching.points.candidate]
    np.testing.assert_allclose(p.start[: 3 * k], np.einsum("cij,cj->ci", p.axes, last).ravel(), atol=1e-14)
    np.testing.assert_array_equal(p.start[3 * k :], touching.impulses.last_row[p.active])
    np.testing.assert_array_equal(p.problem.mu, touching.model.friction[touching.points.candidate])


def test_joints_that_are_near_their_limits_or_have_friction_have_rows() -> None:
    """Check rows; the third row belongs to a distant upper limit."""
    touching = Touching(np.random.default_rng(0), [6], 1)
    p = touching.assembled()
    assert p.active.tolist() == [0, 1, 3] and len(p.start) == 6
    np.testing.assert_allclose(p.problem.upper, [inf, inf, 3e-3])


def test_a_compliance_is_on_the_diagonal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that nothing else changes, and that rigid contacts have none."""
    from featherweight.contact import contact_problem, laws

    touching = Touching(np.random.default_rng(1), [6, 6], 3)
    rigid = touching.assembled().problem

    def write_soft_law(model: ContactModel, motion: laws.RowMotion, law: laws.ContactLaw) -> None:
        laws.write_rigid_law(model, motion, law)
        law.compliance[:] = np.arange(1.0, len(law.compliance) + 1.0)

    monkeypatch.setattr(contact_problem, "write_law", write_soft_law)
    soft = touching.assembled().problem
    np.testing.assert_array_equal(soft.A, rigid.A + np.diag(np.arange(1.0, len(rigid.A) + 1.0)))
    np.testing.assert_array_equal(soft.b, rigid.b)


def test_redundant_contacts_leave_a_matrix_of_the_rank_of_the_body() -> None:
    """Check twelve rows on a body with six degrees of freedom, and a mass ratio of 10⁸ between two bodies."""
    rng = np.random.default_rng(3)
    touching = Touching(rng, [6], 5)
    p = touching.assembled()
    assert p.problem.factored and p.problem.B.size <= 6 + JOINTS
    assert np.linalg.matrix_rank(matrix_of(p.problem)[:15, :15]) == 6
    light = Touching(rng, [6, 6], 4)
    G = block_diag(np.eye(6), 1e8 * np.eye(6), np.eye(JOINTS))
    light.delassus = light.delassus._replace(G=G)
    p = light.assembled()
    R = light.map(p)
    np.testing.assert_allclose(matrix_of(p.problem), R @ G @ R.T, rtol=1e-12, atol=1e-4)


@pytest.mark.parametrize(("contacts", "factored"), [(2, False), (8, True)])
def test_the_inverse_mass_matrix_gives_the_matrix_of_bodies(contacts: int, factored: bool) -> None:
    """Check few contacts, which use the matrix, and many, which use its factor. Bodies and joints have their own branches."""
    rng, own = np.random.default_rng(contacts), np.repeat([0, 1, 2], [6, 3, JOINTS])
    touching, alike = Touching(rng, [6, 3], contacts), own[:, None] == own
    branch, joint_branch = np.arange(2), np.full(JOINTS, 2)
    touching.model = touching.model._replace(branch=branch, joint_branch=joint_branch)
    touching.branches = branches_from([-1, 0, 1, 2, 3, 4, -1, 6, 7, -1, 9, 10])
    J, C = rng.standard_normal((2, 12, 12)) * alike
    Minv, width = C @ C.T + np.eye(12), touching.width
    work = inverse_work(width, touching.branches, contacts + len(ROWS.joint))
    factors = factors_in(work, J[:9], Minv, J[9:], touching.branches)
    found = []
    for delassus in (
        touching.delassus._replace(G=J @ Minv @ J.T),
        BodyDelassus(np.zeros((0, 0)), np.cumsum([0, *width]), True, factors, work),
    ):
        touching.delassus = delassus
        found.append(touching.assembled().problem)
    assert found[1].factored == factored
    np.testing.assert_allclose(matrix_of(found[1]), matrix_of(found[0]), rtol=0.0, atol=1e-10 * np.abs(Minv).max())


@pytest.mark.parametrize(("k", "n"), [(0, 4), (4, 0), (5, 3)])
def test_the_matrix_of_a_factor_is_its_square(k: int, n: int) -> None:
    """Check that rows of one group do not change those of groups with other branches."""
    B = random_factor(np.random.default_rng(k), [6, 3, 4], [[0], [1], [2, 0]], k, n)
    J, A = dense_factor(B, k), np.full((3 * k + n, 3 * k + n), np.nan)
    write_square(B, k, np.full((3 * k + n + B.size) * padded(3 * k + n), np.nan), A)
    np.testing.assert_allclose(A, J @ J.T, rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(A, A.T)


def test_the_sides_of_a_contact() -> None:
    points = Touching(np.random.default_rng(0), [6, 6], 4).points
    for c in range(4):
        assert (body_of(points, c, 0), body_of(points, c, 1)) == (points.a[c], points.b[c])
