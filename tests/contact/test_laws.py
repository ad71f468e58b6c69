"""Tests of contact laws: the rigid law by its definition, and another law with the same interface."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from contact.given_matrices import given_delassus, one_branch
from featherweight.array_types import Array
from featherweight.collision.detection import ContactPoints
from featherweight.contact import contact_problem
from featherweight.contact.contact_model import ContactModel, joint_rows
from featherweight.contact.contact_problem import ContactImpulses, ContactKinematics
from featherweight.contact.contact_settings import ContactSettings
from featherweight.contact.contact_solver import SolverReport, resolve, solver_workspace
from featherweight.contact.laws import (
    MOST_LATE,
    PARTING_SPEED,
    RETURN_SPEED,
    ContactLaw,
    RowMotion,
    bounces,
    empty_law,
    law_in,
    part_of_restitution,
    project,
    stored_energy,
    write_restitution,
    write_rigid_law,
)

STEP, SLOP, BOUNCE = 1e-3, 1e-4, 0.01
FRICTION = pytest.mark.parametrize("pyramid", [False, True], ids=["cone", "pyramid"])
NO_ROWS = joint_rows(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0), STEP)


def normal_shift(mu: float, x: float, y: float, pyramid: bool) -> float:
    """Return the shift s of the normal velocity at a tangential velocity (x, y), with which contacts dissipate the most energy.

    The impulses in the cone that minimize fᵀ (A + R) f / 2 + fᵀ (b + s) obey Coulomb's law (de Saxcé and Feng 1998).
    """
    return float(mu * (abs(x) + abs(y)) if pyramid else mu * np.hypot(x, y))


def holds(x: float, y: float, most: float, pyramid: bool) -> bool:
    """Return whether friction (x, y) is at most `most`."""
    return bool(max(abs(x), abs(y)) <= most if pyramid else x**2 + y**2 <= most * most)


def cut_friction(x: float, y: float, most: float, pyramid: bool) -> tuple[float, float]:
    """Return the friction nearest to (x, y) of magnitude at most `most`."""
    if pyramid:
        return min(max(x, -most), most), min(max(y, -most), most)
    length = float(np.hypot(x, y))
    return (x * most / length, y * most / length) if length > most else (x, y)


def model_of(friction: Any, restitution: Any, rows: Any = NO_ROWS, step: float = STEP, **settings: Any) -> ContactModel:
    how = ContactSettings(step, 0.01, SLOP, BOUNCE, 1e-12, False, False)._replace(**settings)
    tree, joint_tree = np.zeros(1, np.int64), np.zeros(len(rows.joint), np.int64)
    return ContactModel(
        np.array([3]), np.asarray(friction, float), np.asarray(restitution, float), rows, how, tree, joint_tree, 3
    )


# ---- the rigid law


def rigid(restitution: float, gap: float, approach: float, before: float) -> ContactLaw:
    """Return the law of one contact with a moving normal."""
    law = empty_law(1, 0)
    for x in law[:-1]:
        x.fill(np.nan)
    motion = RowMotion(np.array([1]), np.zeros(0, np.int64), np.array([gap]), np.array([approach, 3.0, 4.0]),
                       np.array([before, 0.0, 0.0]))  # fmt: skip
    write_rigid_law(model_of([0.1, 0.7], [0.2, restitution]), motion, law)
    return law


def test_a_gap_may_close_within_the_step_and_no_farther() -> None:
    for gap, more in ((2e-3, 2.0), (0.0, 0.0), (-5e-3, 0.0)):
        law = rigid(0.0, gap, -1.0, -1.0)
        np.testing.assert_allclose(law.bias, [-1.0 + more, 3.0, 4.0])
        assert not law.compliance.any() and not law.stiffness.any() and not bounces(law)
        assert law.friction == [0.7] and law.distance == [max(gap, -(PARTING_SPEED * STEP + SLOP))]


def test_a_contact_bounces_in_the_step_that_is_nearest_to_its_impact() -> None:
    """Check that the contact bounces if the gap is closed or closes in the first half of the step, or if it would end too
    deep.
    """
    for gap, speed, now in ((-1e-3, -1.0, True), (0.4e-3, -1.0, True), (0.6e-3, -1.0, False), (0.06, -101.0, True)):
        law = rigid(0.5, gap, speed, speed)
        assert bounces(law) == now
        expected = speed if now else speed + MOST_LATE / STEP + gap / STEP
        np.testing.assert_allclose(law.bias[0], expected)
    slow = rigid(0.5, 0.0, -1.0, -0.9 * BOUNCE)
    assert not bounces(slow) and slow.bias[0] == -1.0


def test_limits_push_and_dry_friction_is_bounded_both_ways() -> None:
    rows = joint_rows(np.arange(2), np.array([-1.0, -inf]), np.array([inf, inf]), np.array([0.0, 3.0]), STEP)
    law = empty_law(0, 2)
    gap = np.array([-0.5, inf])
    motion = RowMotion(np.zeros(0, np.int64), np.arange(2), gap, np.array([-2.0, 5.0]), np.zeros(2))
    write_rigid_law(model_of([], [], rows), motion, law)
    np.testing.assert_array_equal(law.bias, [-2.0, 5.0])
    np.testing.assert_allclose([law.lower, law.upper], [[0.0, -3.0 * STEP], [inf, 3.0 * STEP]])
    np.testing.assert_allclose(law.distance, [-(RETURN_SPEED * STEP + SLOP), inf])
    gap[0] = 1e-3
    write_rigid_law(model_of([], [], rows), motion, law)
    np.testing.assert_allclose(law.bias, [-2.0 + 1e-3 / STEP, 5.0])
    assert law.distance[0] == 1e-3


def test_a_law_in_the_room_for_more_has_the_lengths_of_its_rows() -> None:
    law = law_in(empty_law(5, 4), True, 2, 3)
    assert [len(x) for x in law[:-1]] == [9, 9, 2, 3, 3, 2, 2, 2, 5, 5] and law.pyramid


# ---- a spring with a damper, as another law


STIFFNESS, DAMPING = 4e4, 60.0


def write_spring_law(model: ContactModel, motion: RowMotion, law: ContactLaw) -> None:
    """Write springs with dampers along normals, evaluated at the end of the step."""
    h = model.settings.step
    write_rigid_law(model, motion, law)
    for c in range(len(law.friction)):
        law.restitution[c], law.distance[c], law.stiffness[c] = 0.0, np.inf, STIFFNESS
        law.compliance[3 * c] = 1.0 / (h * (h * STIFFNESS + DAMPING))
        law.bias[3 * c] = motion.approach[3 * c] + STIFFNESS * motion.gap[c] / (h * STIFFNESS + DAMPING)


def force_on_point(mass: float, height: float, v: Any, h: float, mu: float) -> tuple[Array, SolverReport]:
    """Return the contact force in the world on a mass point above the ground, free to move at v."""
    contact = ContactPoints(np.array([0]), np.array([0]), np.array([-1]), np.array([[0.0, 0.0, height]]),
                            np.array([[0.0, 0.0, 1.0]]), np.array([height]))  # fmt: skip
    T, velocity, none = np.eye(4), np.zeros((1, 6)), np.zeros(0)
    T[2, 3], velocity[0, :3] = height, v
    kinematics = ContactKinematics(T[None], velocity, none, none, velocity, none)
    impulses = ContactImpulses.of_sizes(1, 1, 0, 1, 0)
    delassus = given_delassus(np.eye(3) / mass, [0, 3])
    workspace = solver_workspace(1, 0, 3, one_branch(3))
    report = resolve(model_of([mu], [0.0], step=h), contact, kinematics, delassus, impulses, workspace)
    assert report.residual <= report.allowed
    return impulses.force[0] / h, report


@pytest.fixture
def springs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact_problem, "write_law", write_spring_law)


@pytest.mark.usefixtures("springs")
@pytest.mark.parametrize("h", [1e-4, 1e-2])
@pytest.mark.parametrize(
    ("mass", "height", "v"), [(2.0, -1e-3, -0.3), (2.0, -1e-2, 1e-4), (1e-3, 0.0, -1.0), (1e4, 2e-5, -1.0)]
)
def test_the_force_of_a_spring_with_a_damper(mass: float, height: float, v: float, h: float) -> None:
    """Check the force of overlap and speed at the end of the step; no other term separates overlaps."""
    force, report = force_on_point(mass, height, [0.0, 0.0, v], h, 0.5)
    after = v + h * force[2] / mass
    np.testing.assert_allclose(force[2], -STIFFNESS * (height + h * after) - DAMPING * after, rtol=1e-9)
    assert force[2] > 0.0 and report.parting == 0.0 and not force[:2].any()


@pytest.mark.usefixtures("springs")
def test_a_spring_does_not_pull() -> None:
    assert not force_on_point(2.0, -1e-4, [0.0, 0.0, 5.0], 1e-3, 0.5)[0].any()
    assert not force_on_point(2.0, 1e-3, [0.0, 0.0, -0.1], 1e-3, 0.5)[0].any()


@pytest.mark.usefixtures("springs")
def test_what_slides_on_a_spring_is_held_by_friction_of_its_force() -> None:
    force, _ = force_on_point(2.0, -1e-2, [3.0, 4.0, 0.0], 1e-4, 0.5)
    np.testing.assert_allclose(force[:2], -0.5 * force[2] * np.array([0.6, 0.8]), rtol=1e-9)


@pytest.mark.usefixtures("springs")
def test_a_mass_on_a_spring_moves_as_a_damped_oscillator_and_rests_at_its_weight() -> None:
    """Check against the exact motion, to the error of steps of 20 µs; the energy with that of the spring never grows."""
    mass, h, g = 2.0, 2e-5, 9.81
    rest = mass * g / STIFFNESS
    z, v = -3.0 * rest, 0.0
    rate, omega = 0.5 * DAMPING / mass, np.sqrt(STIFFNESS / mass - (0.5 * DAMPING / mass) ** 2)
    law = empty_law(1, 0)
    law.stiffness[:] = STIFFNESS
    energies = []
    for _ in range(400):
        v -= h * g
        force, report = force_on_point(mass, z, [0.0, 0.0, v], h, 0.0)
        before = stored_energy(law, np.array([z]))
        v += h * force[2] / mass
        z += h * v
        assert report.stored == pytest.approx(stored_energy(law, np.array([z])) - before, abs=1e-12)
        energies.append(0.5 * mass * v * v + mass * g * z + stored_energy(law, np.array([z])))
    t = 400 * h
    exact = -rest - 2.0 * rest * np.exp(-rate * t) * (np.cos(omega * t) + rate / omega * np.sin(omega * t))
    assert z == pytest.approx(exact, abs=0.01 * rest)
    assert (np.diff(energies) <= 0.0).all()
    force, _ = force_on_point(mass, -rest, [0.0, 0.0, -1e-3 * g], 1e-3, 0.5)
    assert force[2] == pytest.approx(mass * g, rel=1e-9)


def test_rigid_contacts_store_nothing_and_springs_only_where_they_are_pressed() -> None:
    assert stored_energy(rigid(0.0, -1.0, 0.0, 0.0), np.array([-1.0])) == 0.0
    law = empty_law(1, 1)
    law.stiffness[:] = 3.0, 5.0
    assert stored_energy(law, np.array([-2.0, 4.0])) == 6.0


# ---- Coulomb's cone


@FRICTION
def test_friction_is_cut_to_the_nearest_that_is_allowed(pyramid: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        aim, most = rng.standard_normal(2), rng.choice([0.0, 1e-9, 0.3, 1.0, 3.0])
        cut = np.array(cut_friction(aim[0], aim[1], most, pyramid))
        if holds(aim[0], aim[1], most, pyramid):
            np.testing.assert_array_equal(cut, aim)
            continue
        x, y = cut * (1.0 - 1e-15)
        assert holds(x, y, most, pyramid)
        angles = np.linspace(0.0, 2.0 * np.pi, 4001)
        edge = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        edge *= most / (np.abs(edge).max(axis=1, keepdims=True) if pyramid else 1.0)
        nearest = np.linalg.norm(edge - aim, axis=1).min()
        assert np.linalg.norm(cut - aim) == pytest.approx(nearest, abs=1e-5)
        assert np.linalg.norm(cut - aim) <= nearest + 1e-12


@FRICTION
@pytest.mark.parametrize("mu", [0.0, 0.7])
def test_a_projection_has_its_derivative_and_changes_nothing_twice(pyramid: bool, mu: float) -> None:
    """Check the derivative against differences, away from edges; open contacts, and those at the tip, have none."""
    rng, slope, other = np.random.default_rng(1), np.zeros((3, 3)), np.zeros((3, 3))
    cases = [*rng.standard_normal((40, 3)), np.zeros(3), np.array([-0.0, 1.0, 1.0]), np.array([2.0, 0.0, 0.0])]
    for aim in cases:
        f = aim.copy()
        project(f, mu, pyramid, 0, slope)
        again = f.copy()
        project(again, mu, pyramid, 0, other)
        np.testing.assert_allclose(again, f, rtol=1e-15, atol=1e-300)
        np.testing.assert_allclose(f, [max(aim[0], 0.0), *cut_friction(aim[1], aim[2], mu * max(aim[0], 0.0), pyramid)])
        if aim[0] > 1e-3 and mu > 0.0:
            for i in range(3):
                ends = [aim + s * 1e-7 * np.eye(3)[i] for s in (1.0, -1.0)]
                for x in ends:
                    project(x, mu, pyramid, 0, other)
                np.testing.assert_allclose(slope[:, i], (ends[0] - ends[1]) / 2e-7, atol=1e-5)
        elif not aim[0] > 0.0:
            assert not f.any() and not slope.any()


@FRICTION
def test_the_shift_brings_every_velocity_of_coulombs_law_into_the_dual_cone(pyramid: bool) -> None:
    """Check that (u + s n) · f is never negative in the cone, and zero for friction that opposes sliding."""
    rng, mu = np.random.default_rng(2), 0.6
    for u in rng.standard_normal((20, 2)):
        s = normal_shift(mu, u[0], u[1], pyramid)
        most = minimize(
            lambda angle, u=u: float(u @ cut_friction(9.0 * np.cos(angle[0]), 9.0 * np.sin(angle[0]), mu, pyramid)),
            [np.arctan2(-u[1], -u[0]) + 0.05], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14},
        )  # fmt: skip
        assert most.fun + s == pytest.approx(0.0, abs=1e-9)
        opposed = -mu * (np.sign(u) if pyramid else u / np.linalg.norm(u))
        assert opposed @ u + s == pytest.approx(0.0, abs=1e-14)


# ---- restitution


def test_restitution_is_cut_where_it_would_add_energy() -> None:
    """Check by bisection that the restitution is the greatest part, at most one, with which the energy does not grow."""
    rng, cut = np.random.default_rng(3), 0
    for _ in range(60):
        k, n = 3, 4
        J = rng.standard_normal((3 * k, n))
        A, start, end = J @ J.T, J @ rng.standard_normal(n), J @ rng.standard_normal(n)
        law = empty_law(k, 0)
        law.restitution[:], law.compliance[:] = rng.choice([0.0, 0.5, 1.0], k), rng.choice([0.0, 0.3])
        compression, f = rng.random(3 * k), -np.linalg.pinv(A) @ (start + end) * rng.uniform(0.5, 1.0)
        back, given = np.full(3 * k, np.nan), f.copy()
        write_restitution(law, compression, back)
        f += part_of_restitution((start, end), f, back, (A @ f, A @ back)) * back
        whole = np.zeros(3 * k)
        whole[::3] = law.restitution * compression[::3]
        np.testing.assert_array_equal(back, whole)

        def work(
            s: float, A: Array = A, start: Array = start, end: Array = end, f: Array = given, back: Array = whole
        ) -> float:
            return float((f + s * back) @ (0.5 * A @ (f + s * back) + 0.5 * (start + end)))

        if not whole.any():
            np.testing.assert_array_equal(f, given)
            continue
        part = float((f - given) @ whole / (whole @ whole))
        np.testing.assert_allclose(f, given + part * whole, atol=1e-13)
        assert 0.0 <= part <= 1.0 + 1e-12
        if work(1.0) <= 0.0:
            assert part == pytest.approx(1.0)
        else:
            cut += 1
            assert work(part) <= 1e-9 or part == 0.0
            assert work(part + 1e-6) > 0.0
    assert 5 < cut < 50
