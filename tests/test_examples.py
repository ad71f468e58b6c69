"""The examples do what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import identify
import jump_by_ilqr
import pictures
import reach_many
from ilqr import Task, linearized, rollout, solve

import featherweight as fw

WHEEL = fw.Inertia(0.5, (0.0, 0.0, 0.0), (0.02, 0.0, 0.0, 0.02, 0.0, 0.04))
SWING, JUMP = jump_by_ilqr.pendulum(), jump_by_ilqr.leg()


@pytest.fixture(scope="module")
def swung() -> Any:
    return solve(*SWING)


@pytest.fixture(scope="module")
def jumped() -> Any:
    return solve(*JUMP)


def follows(task: Task, q: Any, v: Any, u: Any) -> None:
    """Knot by knot, by single calls."""
    dynamics = [f for f, _, knots in task.phases for _ in range(knots)]
    for i, f in enumerate(dynamics):
        tau = np.zeros(task.robot.nv)
        tau[task.drives] = u[i]
        a = f(q[i], v[i], tau)
        np.testing.assert_allclose(v[i + 1], v[i] + task.h * (a[0] if isinstance(a, tuple) else a), rtol=0, atol=1e-9)
        np.testing.assert_allclose(q[i + 1], task.robot.integrate(q[i], task.h * v[i + 1]), rtol=0, atol=1e-9)


def test_the_pendulum_swings_up_and_stands(swung: Any) -> None:
    task = SWING[0]
    q, v, u, costs = swung
    follows(task, q, v, u)
    assert abs(task.robot.difference(task.goal, q[-1])).max() < 1e-3  # 0.05 rad is what it must reach
    assert abs(v[-1]).max() < 1e-2
    assert u.shape == (125, 1)  # the elbow is not driven
    assert (np.diff(costs) < 0.0).all()
    assert costs[-1] < 1e-4 * costs[0]


def test_the_leg_reaches_the_apex_and_never_pulls_at_the_ground(jumped: Any) -> None:
    task = JUMP[0]
    q, v, u, costs = jumped
    follows(task, q, v, u)
    assert q[-1, 0] == pytest.approx(0.35, abs=2e-3)
    assert abs(v[-1, 0]) < 1e-2
    assert abs(task.robot.residual(q)).max() < 1e-10
    assert (np.diff(costs) < 0.0).all()
    toe = task.robot.frame_placement("toe")(q)[:, :2, 3]
    np.testing.assert_allclose(toe[:41], toe[[0] * 41], atol=2e-3)  # of stance, as far as steps of 2.5 ms hold it
    assert toe[-1, 0] > toe[0, 0] + 0.15
    upward, sideways = jump_by_ilqr.push(task, q, v, u).T
    assert (upward > 0.0).all()
    assert (abs(sideways[1:]) < 0.3 * upward[1:]).all()  # no more than rubber holds


def attitude() -> Any:
    """A body in flight with a flywheel, every velocity driven, from one attitude to another."""
    bodies = [fw.Body("body", fw.Inertia(2.0, (0.1, 0.0, 0.0), (0.3, 0.0, 0.0, 0.2, 0.0, 0.1))), fw.Body("wheel", WHEEL)]
    flight = fw.Joint("flight", fw.JointType.FLOATING, None, "body")
    hinge = fw.Joint("hinge", fw.JointType.REVOLUTE, "body", "wheel", fw.Pose(p=(0.0, 0.2, 0.0)), (0.0, 0.6, 0.8))
    robot = fw.build(fw.describe(bodies, [flight, hinge], name="flyer"))
    start, goal = robot.neutral(), robot.random_configuration(np.random.default_rng(3))
    phases = [(robot.forward_dynamics, robot.forward_dynamics_derivatives, 20)]
    weights = np.ones(14)
    task = Task(robot, phases, list(range(7)), 0.05, start, goal, 1e4 * weights, 0.1 * weights, 1e-2)
    return task, np.ones((20, 7))


@pytest.mark.parametrize("given", [SWING, JUMP, attitude()], ids=["pendulum", "leg", "flyer"])
def test_linearized_steps_are_those_of_differences(given: Any) -> None:
    task, guess = given
    n, nv, h = len(guess), task.robot.nv, 1e-6
    still = np.tile(task.start, (n, 1)), np.zeros((n, nv)), guess, 0.0 * guess, np.zeros((*guess.shape, 2 * nv))
    _, *x = rollout(task, *still, np.ones((1, 1)))
    q, v, u = (y[:, 0] for y in x)
    A, B = linearized(task, q, v, u)
    assert A.shape == (n, 2 * nv, 2 * nv) and B.shape == (n, 2 * nv, len(task.drives))
    for i in (0, n - 1):
        f = task.phases[0 if i == 0 else -1][0]

        def ahead(dx: Any, du: Any, i: int = i, f: Any = f) -> Any:
            tau = np.zeros(nv)
            tau[task.drives] = u[i] + du
            start, speed = task.robot.integrate(q[i], dx[:nv]), v[i] + dx[nv:]
            a = f(start, speed, tau)
            speed = speed + task.h * (a[0] if isinstance(a, tuple) else a)
            return np.append(task.robot.difference(q[i + 1], task.robot.integrate(start, task.h * speed)), speed)

        J = np.hstack([A[i], B[i]])
        for column, e in zip(J.T, h * np.eye(J.shape[1]), strict=True):
            change = (ahead(e[: 2 * nv], e[2 * nv :]) - ahead(-e[: 2 * nv], -e[2 * nv :])) / (2 * h)
            np.testing.assert_allclose(column, change, rtol=1e-6, atol=1e-6 * abs(J).max())


def test_attitudes_are_reached_on_the_manifold() -> None:
    task, guess = attitude()
    q, v, u, costs = solve(task, guess)
    follows(task, q, v, u)
    assert abs(task.robot.difference(task.start, task.goal)[3:6]).max() > 1.0  # far to turn
    assert abs(task.robot.difference(task.goal, q[-1])).max() < 1e-2
    assert len(costs) < 20


def test_the_picture_of_the_jump_is_drawn(swung: Any, jumped: Any, tmp_path: Path) -> None:
    force = jump_by_ilqr.push(JUMP[0], *jumped[:3])
    pictures.picture_of_jump(tmp_path / "jump.png", (SWING[0], *swung), (JUMP[0], *jumped), force)
    assert (tmp_path / "jump.png").stat().st_size > 10_000


def test_solving_twice_gives_the_same(jumped: Any) -> None:
    for one, other in zip(jumped, solve(*JUMP), strict=True):
        np.testing.assert_array_equal(one, other)


def test_panda_finds_the_inertias_of_its_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Base parameters to what their deviations say; forces of another motion to the noise, where the file's are far off."""
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
    """In place and in direction, on a part of the map; what is far from the arm is not."""
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
