"""Tests of the solver on given arrays: the source of a compiled step, here in plain Python.

The solver allocates nothing: compiled loops over tables cannot create lists.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

from contact.given_matrices import branches_from, factors_in, given_delassus, one_branch
from featherweight.array_types import Array
from featherweight.collision.detection import ContactPoints
from featherweight.contact.contact_model import ContactModel, joint_rows
from featherweight.contact.contact_problem import BodyDelassus, ContactImpulses, ContactKinematics, write_axes
from featherweight.contact.contact_settings import ContactSettings
from featherweight.contact.contact_solver import (
    FASTEST_PARTING,
    PARTED,
    SolverReport,
    SolverWorkspace,
    forget_forces,
    impulse_work,
    keep_impulses,
    problem_after,
    resolve,
    solver_workspace,
)
from featherweight.contact.factors.inverse_factor import inverse_work
from featherweight.contact.joint_rows import JointRows
from featherweight.contact.laws import PARTING_SPEED, RETURN_SPEED, Problem

STEP, BODIES, POINTS, ROWS = 1e-3, 1, 4, 2
CORNERS = np.array([(x, y, -0.1) for x in (-0.2, 0.2) for y in (-0.15, 0.15)])


def model(restitution: float) -> ContactModel:
    """Return a box, and a separate joint with dry friction and a limit."""
    settings = ContactSettings(STEP, 0.01, 1e-4, 0.01, 1e-10, False, False)
    ints = np.array([0, 0]), np.array([6, 6]), np.array([7, 7])
    friction, upper = np.array([False, True]), np.array([np.inf, 1e-4])
    none = np.zeros(2, np.int64)
    rows = JointRows(*ints, np.zeros(2), np.ones(2), friction, np.array([0.0, -1e-4]), upper, none, none)
    branch, joint_branch = np.array([0]), np.array([1])
    mu, e = np.full(POINTS, 0.5), np.full(POINTS, restitution)
    return ContactModel(np.array([6]), mu, e, rows, settings, branch, joint_branch, 7)


def test_impulses_that_stop_a_box_and_a_joint() -> None:
    """Check a box that falls on its corners, too deep, and bounces; and a joint beyond its limit."""
    for restitution in (0.0, 0.5):
        points = ContactPoints(
            np.arange(POINTS), np.zeros(POINTS, np.int64), np.full(POINTS, -1), CORNERS.copy(),
            np.tile([0.0, 0.0, 1.0], (POINTS, 1)), np.full(POINTS, -1e-3),
        )  # fmt: skip
        velocity = np.array([[0.0, 0.0, -1.0, 0.0, 0.0, 0.0]])
        kinematics = ContactKinematics(
            np.eye(4)[None], velocity, np.full(ROWS, -1e-3), np.full(ROWS, -1.0), velocity, -np.ones(2)
        )
        J, Minv = np.eye(7)[:6], np.diag(1.0 / np.array([2.0, 2.0, 2.0, 0.01, 0.02, 0.02, 0.5]))
        impulses = ContactImpulses.of_sizes(POINTS, 1, 1, POINTS, ROWS)
        given, branches = model(restitution), branches_from([-1, 0, 1, 2, 3, 4, -1])
        work = inverse_work(given.width, branches, POINTS + ROWS)
        factors = factors_in(work, J, Minv, np.eye(7)[6:], branches)
        delassus = BodyDelassus(np.zeros((0, 0)), np.array([0, 6]), True, factors, work)
        workspace = solver_workspace(6, 4, 7, branches)  # more than needed
        report = resolve(given, points, kinematics, delassus, impulses, workspace)
        assert report.residual <= report.allowed and report.parting > 0.0
        np.testing.assert_allclose(impulses.wrench[0], [0.0, 0.0, 2.0 * (1.0 + restitution), 0.0, 0.0, 0.0], atol=1e-8)
        # the impulse of the limit, and of friction, which opposes it
        np.testing.assert_allclose(impulses.joint, [0.5], rtol=1e-8)
        assert (Minv[:6, :6] @ impulses.correction[0])[2] > 0.0 and impulses.joint_correction[0] > 0.0


# ---- free bodies that touch


BALL, EPS = (2.0, 2.0, 2.0, 0.01, 0.01, 0.01), 1e-9
FRICTION = pytest.mark.parametrize("pyramid", [False, True], ids=["cone", "pyramid"])
NO_ROWS = joint_rows(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0), STEP)


class Scene:
    """Free bodies with diagonal inertia at random positions, which touch each other and the world; -1 is the world."""

    def __init__(self, rng: np.random.Generator, inertia: Any, pairs: list[tuple[int, int]], turned: bool = True) -> None:
        n, k = len(inertia), len(pairs)
        self.inertia, self.n, self.k = np.asarray(inertia, float), n, k
        self.placement = np.tile(np.eye(4), (n, 1, 1))
        if turned:
            self.placement[:, :3, 3] = 0.3 * rng.standard_normal((n, 3))
            self.placement[:, :3, :3] = Rotation.random(n, rng=rng).as_matrix()
        a, b = (np.array([p[i] for p in pairs], np.int64) for i in (0, 1))
        normals = np.array([0.0, 0.0, 1.0]) + 0.2 * turned * rng.standard_normal((k, 3))
        normals /= np.linalg.norm(normals, axis=1)[:, None]
        at = self.placement[a, :3, 3] + (0.2 * rng.standard_normal((k, 3)) if turned else 0.0)
        self.points = ContactPoints(np.arange(k), a, b, at, normals, np.zeros(k))
        self.friction, self.restitution = np.full(k, 0.5), np.zeros(k)
        self.before = np.zeros((n, 6))
        self.velocity = self.before.copy()
        self.settings = ContactSettings(STEP, 0.01, 1e-4, 0.01, 1e-12, False, False)

    @property
    def J(self) -> Array:
        """Return the velocities of contacts (normal, then tangents) as a matrix on those of all bodies."""
        rows, axes = np.zeros((3 * self.k, 6 * self.n)), np.empty((3, 3))
        for c in range(self.k):
            write_axes(self.points.normal[c], axes)
            for body, sign in ((self.points.a[c], 1.0), (self.points.b[c], -1.0)):
                if body >= 0:
                    R = self.placement[body, :3, :3]
                    x, y, z = R.T @ (self.points.point[c] - self.placement[body, :3, 3])
                    across = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
                    rows[3 * c : 3 * c + 3, 6 * body : 6 * body + 6] = sign * axes @ R @ np.hstack([np.eye(3), across])
        return rows

    @property
    def model(self) -> ContactModel:
        branch, none = np.arange(self.n), np.zeros(0, np.int64)
        width, nv = np.full(self.n, 6), 6 * self.n
        return ContactModel(width, self.friction, self.restitution, NO_ROWS, self.settings, branch, none, nv)

    @property
    def kinematics(self) -> ContactKinematics:
        none = np.zeros(0)
        return ContactKinematics(self.placement, self.velocity, none, none, self.before, none)

    def resolve(self, workspace: SolverWorkspace | None = None) -> tuple[ContactImpulses, SolverReport]:
        impulses = ContactImpulses.of_sizes(self.k, self.n, 0, self.k, 0)
        delassus = given_delassus(np.diag(1.0 / self.inertia.ravel()), 6 * np.arange(self.n + 1))
        workspace = workspace or solver_workspace(self.k, 0, 6 * self.n, one_branch(6 * self.n))
        report = resolve(self.model, self.points, self.kinematics, delassus, impulses, workspace)
        assert report.residual <= report.allowed
        return impulses, report

    def moved(self, wrench: Array) -> Array:
        """Return the change of the velocity by impulses on bodies."""
        change: Array = wrench / self.inertia
        return change

    def kinetic(self, v: Array) -> float:
        return float(0.5 * (self.inertia * v * v).sum())


@pytest.mark.parametrize("in_step", [False, True])
@pytest.mark.parametrize("e", [0.0, 0.3, 1.0])
def test_a_ball_leaves_the_ground_at_its_restitution_times_its_speed(e: float, in_step: bool) -> None:
    """Check gravity in the step, which is not part of the impact: without `in_step` it is not returned; with it, it acts
    after the impact.
    """
    ball = Scene(np.random.default_rng(0), [BALL], [(0, -1)], turned=False)
    ball.restitution[:], ball.settings = e, ball.settings._replace(in_step=in_step)
    ball.before[0, 2], ball.velocity[0, 2] = -1.0, -1.5
    impulses, _ = ball.resolve()
    after = ball.velocity + ball.moved(impulses.wrench)
    expected = max(0.0, -1.5 + 1.0 + e) if in_step else e
    np.testing.assert_allclose(after[0], [0.0, 0.0, expected, 0.0, 0.0, 0.0], atol=EPS)
    np.testing.assert_allclose(impulses.impact[0, 2], 2.0 * (1.0 + e) if in_step else 0.0, atol=EPS)


def test_what_touches_slowly_or_goes_away_does_not_bounce() -> None:
    for before, after in ((-0.009, 0.0), (0.5, 0.3)):
        ball = Scene(np.random.default_rng(0), [BALL], [(0, -1)], turned=False)
        ball.restitution[:] = 1.0
        ball.before[0, 2], ball.velocity[0, 2] = before, before - 0.2
        v = ball.velocity + ball.moved(ball.resolve()[0].wrench)
        np.testing.assert_allclose(v[0, 2], after, atol=EPS)


def test_three_balls_in_a_row() -> None:
    """Check a ball that hits two others, which touch each other at rest: the last ball takes all of the motion."""
    balls = Scene(np.random.default_rng(0), [BALL] * 3, [(1, 0), (2, 1)], turned=False)
    balls.restitution[:], balls.before[0, 2] = 1.0, 3.0
    balls.velocity = balls.before.copy()
    v = balls.velocity + balls.moved(balls.resolve()[0].wrench)
    np.testing.assert_allclose(v[:, 2], [0.0, 0.0, 3.0], atol=1e-7)


@FRICTION
@pytest.mark.parametrize("in_step", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_impacts_add_no_energy_and_leave_nothing_that_closes(seed: int, in_step: bool, pyramid: bool) -> None:
    """Check bodies with friction and different restitution."""
    rng = np.random.default_rng(seed)
    masses = [np.exp(rng.uniform(-2.0, 2.0)) * np.array([1, 1, 1, 0.02, 0.02, 0.03]) for _ in range(3)]
    scene = Scene(rng, masses, [(0, -1), (1, 0), (2, 1), (0, -1), (2, -1)])
    scene.restitution[:] = rng.choice([0.0, 0.6, 1.0], 5)
    scene.settings = scene.settings._replace(pyramid=pyramid, in_step=in_step)
    scene.before = rng.standard_normal((3, 6)) - [0, 0, 2, 0, 0, 0]
    scene.velocity = scene.before + (0.0 if in_step else 0.01) * rng.standard_normal((3, 6))
    impulses, _ = scene.resolve()
    after = scene.velocity + scene.moved(impulses.wrench)
    tolerance = 1e-7 * np.abs(scene.J @ scene.before.ravel()).max()
    assert (scene.J @ after.ravel())[::3].min() >= -tolerance
    worked = float((impulses.wrench * 0.5 * (scene.before + (scene.before if in_step else scene.velocity))).sum())
    worked += float((impulses.wrench * 0.5 * scene.moved(impulses.wrench)).sum())
    assert worked <= 1e-7 * scene.kinetic(scene.before)
    if in_step:
        assert scene.kinetic(after) <= scene.kinetic(scene.before) * (1.0 + 1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_an_elastic_impact_at_one_point_keeps_the_energy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scene = Scene(rng, [BALL, (0.1, 0.1, 0.1, 0.01, 0.02, 0.03)], [(1, 0)])
    scene.restitution[:], scene.friction[:] = 1.0, 0.0
    v = rng.standard_normal((2, 6))
    scene.before = -v * np.sign((scene.J @ v.ravel())[0])
    scene.velocity = scene.before
    v = scene.before + scene.moved(scene.resolve()[0].wrench)
    assert scene.kinetic(v) == pytest.approx(scene.kinetic(scene.before))
    np.testing.assert_allclose((scene.J @ v.ravel())[0], -(scene.J @ scene.before.ravel())[0])


def test_bodies_get_the_wrench_of_forces_at_points() -> None:
    """Check that both bodies get opposite forces, and that `last_force` stores them by candidate for the next step."""
    rng = np.random.default_rng(1)
    scene = Scene(rng, [BALL] * 2, [(1, 0), (0, -1), (1, -1)])
    scene.velocity = rng.standard_normal((2, 6)) - [0, 0, 3, 0, 0, 0]
    impulses, _ = scene.resolve()
    wrench = np.zeros((2, 6))
    for c in range(3):
        for body, sign in ((scene.points.a[c], 1.0), (scene.points.b[c], -1.0)):
            if body >= 0:
                T = scene.placement[body]
                force = sign * T[:3, :3].T @ impulses.force[c]
                lever = T[:3, :3].T @ (scene.points.point[c] - T[:3, 3])
                wrench[body] += np.concatenate([force, np.cross(lever, force)])
    np.testing.assert_allclose(impulses.wrench, wrench, atol=1e-12)
    keep_impulses(impulses, np.arange(len(impulses.force)), len(impulses.force))
    np.testing.assert_array_equal(impulses.last_force, impulses.force)
    forget_forces(impulses)
    assert not impulses.last_force.any() and impulses.kept_count == [0]
    keep_impulses(impulses, np.array([2]), 1)
    np.testing.assert_array_equal(impulses.last_force, [[0, 0, 0], [0, 0, 0], impulses.force[0]])


# ---- the displacement


@pytest.mark.parametrize("seed", range(6))
def test_the_displacement_is_the_least_that_leaves_no_overlap(seed: int) -> None:
    """Check min dᵀ M d with N d + gap + slop >= 0 for all, by non-negative least squares (Lawson and Hanson 1974, chapter
    23).
    """
    rng = np.random.default_rng(seed)
    scene = Scene(rng, [BALL, np.multiply(BALL, 0.05)], [(0, -1), (1, 0), (0, -1), (1, -1)][: 2 + seed % 3])
    scene.settings = scene.settings._replace(slop=1e-6)
    scene.points.gap[:] = rng.uniform(-1e-2, 2e-3, scene.k)
    scene.points.gap[0] = -5e-3
    impulses, report = scene.resolve()
    assert report.parting == FASTEST_PARTING * STEP
    d, N = scene.moved(impulses.correction).ravel(), scene.J[::3]
    apart = np.maximum(scene.points.gap, -(PARTING_SPEED * STEP + scene.settings.slop))  # of this step
    left = N @ d + apart + scene.settings.slop
    assert left.min() >= -0.2 * scene.settings.slop
    root, h = np.sqrt(scene.inertia.ravel()), -1e3 * (apart + scene.settings.slop)
    E, unit = np.vstack([(N / root).T, h]), np.append(np.zeros(len(root)), 1.0)
    r = E @ nnls(E, unit)[0] - unit
    np.testing.assert_allclose(1e3 * root * d, -r[:-1] / r[-1], atol=1e-2 * np.abs(h).max())


def test_what_bounces_parts_by_itself() -> None:
    """Check that a fast body separates without an additional displacement, and that a slower one gets the remainder."""
    for e, rest in ((1.0, 0.0), (0.0, PARTING_SPEED * STEP)):
        ball = Scene(np.random.default_rng(0), [BALL], [(0, -1)], turned=False)
        ball.restitution[:], ball.points.gap[:] = e, -2e-3
        ball.before[0, 2] = ball.velocity[0, 2] = -3.0
        impulses, report = ball.resolve()
        assert report.parting == FASTEST_PARTING * STEP
        np.testing.assert_allclose(ball.moved(impulses.correction)[0, 2], rest, atol=1e-9)


@pytest.mark.parametrize(("gap", "parting"), [(0.0, 0.0), (-0.9e-4, 0.0), (-1.1e-4, FASTEST_PARTING * STEP), (1e-3, 0.0)])
def test_overlap_up_to_the_slop_is_left_alone(gap: float, parting: float) -> None:
    ball = Scene(np.random.default_rng(0), [BALL], [(0, -1)], turned=False)
    ball.points.gap[:], ball.velocity[0, 2] = gap, -1.0
    impulses, report = ball.resolve()
    assert report.parting == parting
    assert impulses.correction.any() == (parting > 0.0)


def test_joints_beyond_limits_come_back_at_their_speed_and_friction_is_not_pushed() -> None:
    """Check two uncoupled joints with inertia 0.5; the second has a limit and dry friction."""
    rows = joint_rows(np.arange(2), np.array([0.0, 0.0]), np.full(2, np.inf), np.array([0.0, 7.0]), STEP)
    settings, none = ContactSettings(STEP, 0.01, 1e-4, 0.01, 1e-12, False, False), np.zeros(0, np.int64)
    given = ContactModel(none, np.zeros(0), np.zeros(0), rows, settings, none, np.arange(2), 2)
    gap = np.array([-0.3, -5e-4, np.inf])
    speed = np.array([0.0, -1e-2, -1e-2])
    kinematics = ContactKinematics(np.zeros((0, 4, 4)), np.zeros((0, 6)), gap, speed, np.zeros((0, 6)), speed)
    delassus = given_delassus(2.0 * np.eye(2), [0])
    impulses = ContactImpulses.of_sizes(0, 0, 2, 0, 3)
    no_points = ContactPoints._make([*np.zeros((3, 0), np.int64), *np.zeros((2, 0, 3)), np.zeros(0)])
    report = resolve(given, no_points, kinematics, delassus, impulses, solver_workspace(0, 3, 2, one_branch(2)))
    assert report.residual <= report.allowed and report.parting == RETURN_SPEED * STEP and report.stored == 0.0
    np.testing.assert_allclose(2.0 * impulses.joint_correction, [RETURN_SPEED * STEP, 4e-4], rtol=0.0, atol=PARTED * 1e-4)
    np.testing.assert_allclose(2.0 * impulses.joint, [0.0, 1e-2], atol=1e-12)


# ---- the sequence of problems of a step


@pytest.mark.parametrize("in_step", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_steps_are_the_same_by_the_matrix_and_by_its_factor(seed: int, in_step: bool) -> None:
    """Check five copies of each contact: there are more impulses than velocities, so A is given by its factor."""
    found = []
    for copies in (1, 5):
        rng = np.random.default_rng(seed)
        scene = Scene(rng, [BALL, np.multiply(BALL, 0.3)], [(0, -1), (1, 0), (1, -1)])
        scene.restitution[:] = [0.0, 0.7, 0.4]
        scene.before = rng.standard_normal((2, 6)) - [0, 0, 2, 0, 0, 0]
        scene.velocity = scene.before - [0, 0, 0.01, 0, 0, 0]
        scene.settings, scene.k = scene.settings._replace(in_step=in_step, tolerance=1e-10), 3 * copies
        points = [np.concatenate([x] * copies) for x in scene.points]
        scene.points = ContactPoints._make([np.arange(3 * copies), *points[1:]])
        scene.friction, scene.restitution = (np.tile(x, copies) for x in (scene.friction, scene.restitution))
        impulses, _ = scene.resolve()
        found.append((scene.moved(impulses.wrench), scene.moved(impulses.impact)))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-7)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-7)


def test_the_problem_after_impulses_has_what_they_leave() -> None:
    """Check that it has the velocities A f + b, and the remaining bounds."""
    rng = np.random.default_rng(0)
    J = rng.standard_normal((5, 5))
    p = Problem(J @ J.T, rng.standard_normal(5), np.array([0.5]), np.array([0.0, -2.0]), np.array([np.inf, 2.0]))
    f = rng.random(5)
    after = problem_after(p, f, impulse_work(2, 3))
    np.testing.assert_allclose(after.b, p.A @ f + p.b)
    np.testing.assert_allclose([after.lower, after.upper], [[-f[3], -2.0 - f[4]], [np.inf, 2.0 - f[4]]])
    assert after.A is p.A and after.mu is p.mu
