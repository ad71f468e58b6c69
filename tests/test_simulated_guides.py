"""Tests that the scripts of the guides compute what the guides say, on small tasks; tests/docs/test_pages.py runs the pages."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")
pytest.importorskip("mujoco")

import batches
import closed_chains
import computed_torque
import drop_and_push
import editing_models
import operational_space
import whole_body_control

import featherweight as fw

GUIDES = sorted((Path(__file__).parent.parent / "docs" / "guides").glob("*.md"))


def drawn(module: ModuleType, found: Any, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Check that the script draws its results."""
    monkeypatch.setattr(module, "solve", lambda: found)
    monkeypatch.setattr("sys.argv", [module.__name__, "--output", str(folder)])
    module.main()
    assert (folder / f"{module.__name__}.png").stat().st_size > 10_000


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_what_a_page_shows_and_links_to_is_there(page: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", page.read_text()) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_computed_torque_follows_where_springs_lag(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = computed_torque.solve(duration=1.0)
    off = found[1]
    worst = {case: e.max() for case, e in off.items()}
    assert worst["empty", "computed torque"] < 1e-2 * worst["empty", "springs, gravity"]
    assert worst["1.5 kg", "the load known"] < 1e-2 * worst["1.5 kg", "computed torque"]
    drawn(computed_torque, found, monkeypatch, tmp_path)


def test_an_unknown_load_is_held_by_springs_at_rest() -> None:
    """Check that M Kp e equals the unknown weight, up to the motion that remains after 1.5 s: 40 exp(-30) of it."""
    empty, loaded = computed_torque.arms()
    law = computed_torque.controllers(empty)["computed torque"]
    still = np.zeros(7)
    motion = computed_torque.follow(loaded, law, lambda time: (computed_torque.HOME, still, still), duration=1.5)
    q = motion.q[-1]
    held = empty.mass_matrix(q) @ (computed_torque.BANDWIDTH**2 * (computed_torque.HOME - q))
    np.testing.assert_allclose(held, loaded.gravity_force(q) - empty.gravity_force(q), atol=1e-4)


def test_talos_stays_on_its_feet_while_it_squats(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Check that feet stay and the centre follows; the zero-moment point is that of Newton-Euler, and forces are as planned."""
    found = whole_body_control.solve(duration=0.6)
    robot, motion, seen = found.robot, found.motion, whole_body_control.balance(found)
    soles = robot.frame_placement(whole_body_control.FEET)(motion.q)[..., :3, 3]
    assert abs(soles - soles[0]).max() < 5e-4
    assert abs(seen.center - seen.asked).max() < 1e-3
    assert np.ptp(seen.center[:, 2]) > 0.04 and np.ptp(seen.center[:, 1]) > 0.02
    np.testing.assert_allclose(seen.loads[5:], found.control.planned[5:], atol=10.0)  # the plan omits dry friction of the arms
    a = np.diff(motion.v, axis=0) / whole_body_control.STEP
    rate = robot.centroidal_momentum_rate(motion.q[:-1], motion.v[:-1], a)
    upward, c = rate[:, 2] + 9.81 * robot.mass, seen.center[:-1]
    zmp = np.stack(
        [c[:, 0] - (c[:, 2] * rate[:, 0] + rate[:, 4]) / upward, c[:, 1] - (c[:, 2] * rate[:, 1] - rate[:, 3]) / upward]
    )
    np.testing.assert_allclose(seen.zmp, zmp.T, atol=2e-3)  # tolerance: change of momentum in a step of 1 ms
    assert (abs(zmp[:, 1] - soles[0, :, 1].mean()) < 0.5 * np.ptp(soles[0, :, 1]) + 0.06).all()
    drawn(whole_body_control, found, monkeypatch, tmp_path)


def test_a_hand_gives_way_by_force_over_stiffness(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Check the deflection; its tolerance is the remainder exp(-w t) after 1.2 s.

    Motion in the null space does not move the hand.
    """
    found = operational_space.solve()
    pushed, before = (np.searchsorted(found.times, t) - 1 for t in (operational_space.BACK, operational_space.SWING))
    asked = operational_space.FORCE / np.diag(operational_space.STIFFNESS)[:3]
    np.testing.assert_allclose(found.hand[pushed], asked, atol=5e-5)
    assert found.hand[:, 1].min() > -1e-4  # no oscillation
    assert np.linalg.norm(found.elbow[-1]) > 0.05
    assert np.linalg.norm(found.hand[before:], axis=1).max() < 1e-4
    drawn(operational_space, found, monkeypatch, tmp_path)


def test_critical_damping_makes_roots_double() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 4, 4))
    inertia, stiffness = A @ A.T + np.eye(4), B @ B.T + np.eye(4)
    damping = operational_space.critical_damping(inertia, stiffness)
    quarter = damping @ np.linalg.solve(inertia, damping) / 4.0  # D M⁻¹ D = 4 K, as d² = 4 m k
    np.testing.assert_allclose(quarter, stiffness, atol=1e-10)


def test_mechanisms_are_the_same_from_all_formats(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Check robots from all formats, to rounding, also with gears of 1 to 5, and the halves of a differential."""
    found = closed_chains.solve(count=19)
    assert max(difference for difference, _ in found.values()) < 1e-12
    for curves in (curves for _, curves in found.values()):
        for form in ("MJCF", "Python"):
            # angles, within the tolerance of loop closure
            np.testing.assert_allclose(curves[form], curves["URDF"], rtol=0, atol=1e-9)
    motor, pitch, _, inertia = found["gears"][1]["URDF"]
    np.testing.assert_allclose(pitch, -0.2 * motor, atol=1e-12)
    np.testing.assert_allclose(inertia, 1e-3 + (1e-3 + 0.5 * 0.2**2) / 25.0, rtol=1e-12)
    motor, pitch, roll, _ = found["differential"][1]["URDF"]
    np.testing.assert_allclose([pitch, roll], [0.5 * motor] * 2, atol=1e-12)
    motor, pitch, _, _ = found["four-bar"][1]["URDF"]
    crank, top = (r * np.array([np.cos(x), -np.sin(x)]) for r, x in ((0.1, motor), (0.2, pitch)))
    np.testing.assert_allclose(np.hypot(*(top + np.array([[0.3], [0.0]]) - crank)), 0.32, atol=1e-9)
    drawn(closed_chains, found, monkeypatch, tmp_path)


def test_changed_models_weigh_and_move_as_their_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = editing_models.variants()
    arm, armed, held, loaded = map(fw.build, made.values())
    hand = fw.build(fw.read(fw.example(editing_models.HAND)))
    palm = armed.mass - arm.mass - hand.mass  # the hand's own file fixes the palm to the ground
    assert 0.0 < palm < 0.5
    q = np.array(editing_models.POSE)
    whole = armed.mass_matrix(np.append(q, np.full(16, 0.3)))
    np.testing.assert_allclose(held.mass_matrix(q), whole[:6, :6], rtol=0, atol=1e-13)
    place = fw.Frame("place", "tool0", fw.Pose(p=editing_models.LOAD.center))
    weight = 9.81 * editing_models.LOAD.mass * held.frame_jacobian(place)(q)[2]
    np.testing.assert_allclose(loaded.gravity_force(q) - held.gravity_force(q), weight, rtol=0, atol=1e-12)
    found = editing_models.solve()
    M, half = found.both.mass_matrix(found.q), found.both.nv // 2
    np.testing.assert_allclose(M[:half, :half], M[half:, half:], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(M[:half, half:], 0.0)
    right, left = found.both.frame_placement(["right_tool0", "left_tool0"])(found.q)[:, :3, 3]
    np.testing.assert_allclose(left, right * [1.0, -1.0, 1.0], atol=1e-13)
    drawn(editing_models, found, monkeypatch, tmp_path)


def test_chunks_of_files_have_the_bits_of_single_states(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Check results; float32 has four digits in all of them. Memory is not tested, because earlier tests may free memory."""
    found = batches.solve(count=30_000)
    assert found.same
    assert found.size == 4 * 4 * 7 * 30_000
    assert np.median(found.error) < 1e-6 and found.error.max() < 1e-4
    assert all(each > 0.0 for each in found.microseconds.values())
    drawn(batches, found, monkeypatch, tmp_path)


def test_a_quadruped_lands_stands_and_slides_as_newton_and_coulomb_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Check a slide by v²/(2 μ g) to 5 %, with friction so small that the robot hardly pitches."""
    found = drop_and_push.solve(robots=3)
    robot, motion = found.robot, found.motion
    landed = motion.times[np.argmax(found.forces[:, 2] > 0.0)]
    assert landed == pytest.approx(np.sqrt(2.0 * drop_and_push.DROP / 9.81), abs=2.0 * drop_and_push.STEP)
    assert found.forces[-1, 2] == pytest.approx(9.81 * robot.mass, rel=0.01)
    assert np.ptp(motion.q[motion.times > drop_and_push.AT, 1]) > 0.01  # the push
    flat = np.hypot(found.forces[:, 0], found.forces[:, 1])
    assert (flat <= found.forces[:, 2] + 1e-6).all()  # friction 1
    _, (slid, *shorter) = found.slid
    assert slid == pytest.approx(drop_and_push.SPEED**2 / (2.0 * 9.81 * 0.1), rel=0.05)
    assert slid > shorter[0] > shorter[1]
    for name in ("times", "q", "v", "points", "forces"):
        np.testing.assert_array_equal(getattr(found.again, name), getattr(motion, name))
    drawn(drop_and_push, found, monkeypatch, tmp_path)
