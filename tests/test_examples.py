"""Tests that the examples give the results that they describe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import hyq_trots
import identify
import panda_avoids
import pictures
import reach_many
import swing_and_jump
import talos_walks

import featherweight as fw

SWING, JUMP = swing_and_jump.pendulum(), swing_and_jump.leg()


@pytest.fixture(scope="module")
def swung() -> Any:
    return swing_and_jump.solve(*SWING)


@pytest.fixture(scope="module")
def jumped() -> Any:
    return swing_and_jump.solve(*JUMP)


def test_the_pendulum_swings_up_and_stands(swung: Any) -> None:
    ocp, _, goal = SWING
    assert abs(ocp.robot.difference(goal, swung.q[-1])).max() < 1e-3
    assert abs(swung.v[-1]).max() < 1e-2
    assert swung.u.shape == (125, 1)  # the elbow is not driven


def test_the_leg_reaches_the_apex_and_never_pulls_at_the_ground(jumped: Any) -> None:
    ocp = JUMP[0]
    assert jumped.q[-1, 0] == pytest.approx(0.35, abs=2e-3)
    assert abs(jumped.v[-1, 0]) < 1e-2
    assert abs(ocp.robot.residual(jumped.q)).max() < 1e-6
    toe = ocp.robot.frame_placement("toe")(jumped.q)[:, 2:0:-1, 3]
    np.testing.assert_allclose(toe[:41], toe[[0] * 41], atol=2e-3)  # stance, within the accuracy of steps of 2.5 ms
    assert toe[-1, 0] > toe[0, 0] + 0.15
    upward, sideways = swing_and_jump.push(ocp, jumped).T
    assert (upward > 0.0).all()
    assert (abs(sideways[1:]) < 0.3 * upward[1:]).all()  # the friction of rubber


def test_the_picture_of_the_jump_is_drawn(swung: Any, jumped: Any, tmp_path: Path) -> None:
    force = swing_and_jump.push(JUMP[0], jumped)
    pictures.picture_of_jump(tmp_path / "jump.png", (SWING[0], swung), (JUMP[0], jumped, JUMP[2]), force)
    assert (tmp_path / "jump.png").stat().st_size > 10_000


def test_panda_finds_the_inertias_of_its_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check base parameters to their estimated deviations, and forces of another motion to the noise, which the file's
    parameters exceed.
    """
    pytest.importorskip("clarabel")
    found = identify.solve()
    base, fit, truth, inertial = found.base, found.fit, found.truth, found.consistent.inertial
    assert len(base) == 64
    off = (fit.values - truth) / fit.deviations
    assert np.std(off) < 1.5 and abs(off).max() < 4.0
    assert abs((base.values - truth) / fit.deviations).max() > 50.0
    errors = {name: np.sqrt(np.mean((tau - found.asked) ** 2, axis=0)) for name, tau in found.predicted.items()}
    assert (errors["file"] > 3.0 * identify.FORCE_NOISE).all()
    for name in ("base parameters", "consistent inertias"):
        np.testing.assert_allclose(errors[name], identify.FORCE_NOISE, rtol=0.1)
    assert fw.identification.inconsistent_bodies(found.arm, inertial) == {}
    assert found.arm.with_inertial_parameters(inertial).mass == pytest.approx(inertial[:, 0].sum())
    monkeypatch.setattr(identify, "solve", lambda: found)
    monkeypatch.setattr("sys.argv", ["identify.py", "--output", str(tmp_path)])
    identify.main()
    assert (tmp_path / "identify.png").stat().st_size > 10_000


def test_panda_reaches_with_crocoddyl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("crocoddyl")
    import reach_with_crocoddyl as reach

    robot, q, v, _, costs = reach.solve()
    hand = robot.frame_placement(reach.HAND)(q[-1])[:3, 3]
    np.testing.assert_allclose(hand, reach.TARGET, atol=2e-3)
    assert abs(v[-1]).max() < 1e-2
    assert costs[-1] < 1e-2 * costs[0]
    monkeypatch.setattr("sys.argv", ["reach_with_crocoddyl.py", "--output", str(tmp_path)])
    reach.main()
    assert (tmp_path / "reach_with_crocoddyl.png").stat().st_size > 10_000


def test_poses_that_are_said_to_be_taken_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Check that position and direction agree on a part of the map; poses far from the arm are unreachable."""
    monkeypatch.setattr(reach_many, "X", np.array([-2.0, 0.4, 0.5]))
    monkeypatch.setattr(reach_many, "Z", np.array([0.4, 0.5]))
    robot, targets, found = reach_many.solve(restarts=30)
    share = found.converged.mean(axis=-1)
    assert (share[:, 0] == 0.0).all() and (share[:, 1:] > 0.9).all()
    poses = robot.frame_placement(reach_many.HAND)(found.q[found.converged])
    wanted = targets[found.converged]
    assert abs(poses[:, :3, 3] - wanted[:, :3, 3]).max() < 1e-4
    assert abs(poses[:, :3, 2] - wanted[:, :3, 2]).max() < 1e-4
    path = tmp_path / "reach.png"
    pictures.picture_of_workspace(path, robot, reach_many.X, reach_many.Z, share, reach_many.arms(robot, found))
    assert path.stat().st_size > 10_000


def test_panda_avoids_a_wall_and_a_ball(tmp_path: Path) -> None:
    """Check that the arm passes over the wall with the target in reach, and keeps its distance, to the error of one
    iteration per tick.
    """
    q, kept, ticks = panda_avoids.run(fw.load(fw.example("panda")), 3.6)
    hand = fw.load(fw.example("panda")).frame_placement(panda_avoids.HAND)(q)[:, :3, 3]
    away = np.linalg.norm(hand - panda_avoids.target(panda_avoids.STEP * np.arange(len(q))), axis=1)
    assert kept.min() > 0.005 and len(ticks) == len(q) == 90
    assert np.median(away) < 0.02 and hand[0, 1] < -0.3 and hand[-1, 1] > 0.2
    pictures.picture_of_avoiding(tmp_path / "avoids.png", np.arange(len(q)), away, kept, panda_avoids.GAP)
    panda_avoids.film_with_ball(tmp_path / "avoids.gif", q[:8])
    assert all((tmp_path / f"avoids.{kind}").stat().st_size > 10_000 for kind in ("png", "gif"))


def test_hyq_trots_and_is_pushed(tmp_path: Path) -> None:
    """Check that the robot follows its reference upright, also after a push, with alternating feet."""
    robot = fw.load(fw.example(hyq_trots.HYQ), base="floating")
    q, trot, ticks = hyq_trots.run(robot, 5.0)
    times = hyq_trots.STEP * np.arange(len(q))
    feet = robot.frame_placement(hyq_trots.FEET)(q)[:, :, :3, 3]
    assert np.abs(q[times < 3.0, 0] - q[0, 0] - trot.forward(times[times < 3.0])).max() < 0.03
    assert abs(q[-1, 0] - q[0, 0] - trot.forward(times[-1])) < 0.05 and len(ticks) == 250
    assert np.abs(q[:, 1]).max() > 0.05 > abs(q[-1, 1]) and np.abs(q[:, 2] - q[0, 2]).max() < 0.1
    lifted = feet[times < 3.0, :, 2] > hyq_trots.RADIUS + 0.01
    assert (
        lifted.mean(axis=0).min() > 0.3
        and not (lifted[:, 0] & lifted[:, 1]).any()
        and (lifted[:, 0] == lifted[:, 3]).mean() > 0.9
    )
    pictures.picture_of_trot(tmp_path / "trot.png", times, q, feet, trot.forward(times), hyq_trots.FEET)
    assert (tmp_path / "trot.png").stat().st_size > 10_000


def test_talos_squats_is_pushed_and_walks(tmp_path: Path) -> None:
    """Check that the robot follows its references upright; soles lift alternately and land at their targets."""
    robot = fw.load(fw.example(talos_walks.TALOS), base="floating", mimic="independent")
    with pytest.warns(fw.ModelWarning, match="plans leave out .*: dry friction of arm_left_1_joint"):
        q, reference, _ = talos_walks.run(robot, 6.3)
    times = talos_walks.STEP * np.arange(len(q))
    targets = reference.targets(times)
    center, soles = robot.center_of_mass(q), robot.frame_placement(talos_walks.SOLES)(q)[:, :, :3, 3]
    assert 0.05 < np.ptp(center[times < talos_walks.SQUAT, 2]) < talos_walks.DEPTH
    pushed = (times > talos_walks.PUSHED[0]) & (times < talos_walks.WALK)
    assert np.ptp(center[pushed, 0]) > 0.005 and abs(center[pushed, 0][-1] - targets["center of mass"][pushed, 0][-1]) < 0.02
    assert abs(center - targets["center of mass"]).max() < 0.08
    lifted = soles[..., 2] > 0.01
    assert lifted.any(axis=0).all() and not lifted.all(axis=1).any()
    for i, sole in enumerate(talos_walks.SOLES):
        off = soles[:, i] - targets[sole][:, :3, 3]
        assert abs(off[targets[sole][:, 2, 3] < 1e-3, 0]).max() < 0.03
    pictures.picture_of_walk(tmp_path / "walk.png", times, center, targets["center of mass"], soles)
    assert (tmp_path / "walk.png").stat().st_size > 10_000
