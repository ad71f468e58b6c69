"""Tests of forces at frames, against MuJoCo and Jacobians."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


def state(robot: fw.Robot, seed: int = 0) -> tuple[Array, Array, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng=rng), rng.normal(size=robot.nv), rng


@pytest.mark.parametrize("name", ["ant", "humanoid", "hopper"])
def test_joint_forces_are_those_of_mujoco(name: str) -> None:
    """Check forces and moments at points of bodies, in the world's axes."""
    path = str(ASSETS / f"{name}.xml")
    robot, m = fw.load(path), mujoco.MjModel.from_xml_path(path)
    order, data = fw.MujocoOrder(robot), mujoco.MjData(m)
    q, v, rng = state(robot)
    data.qpos[:], data.qvel[:] = order.state(q, v)
    mujoco.mj_forward(m, data)
    turned = np.array([order.state(q, unit)[1] for unit in np.eye(robot.nv)])  # MuJoCo's velocities for each of ours
    numbers = {b.name: mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_BODY, b.name) for b in robot.bodies}
    named = [x for x in numbers.items() if x[1] >= 0]
    assert len(named) >= 4
    for body, number in named:
        force, moment, at = rng.normal(size=(3, 3))
        at *= 0.3
        rows = robot.wrench(body, force, moment, at=at)(q)
        point, expected = data.xpos[number] + data.xmat[number].reshape(3, 3) @ at, np.zeros(m.nv)
        mujoco.mj_applyFT(m, data, force, moment, point, number, expected)
        a = np.zeros(robot.nv)
        tau = robot.inverse_dynamics(q, v, a) - robot.inverse_dynamics(q, v, a, external_forces=rows)
        np.testing.assert_allclose(tau, turned @ expected, rtol=0, atol=1e-11 * (1.0 + abs(tau).max()))


def robots() -> dict[str, Any]:
    hand = fw.Frame("pen", "panda_hand", [[0, 0, 1, 0.1], [1, 0, 0, 0.2], [0, 1, 0, 0.3], [0, 0, 0, 1]])
    return {
        "panda": (fw.load(fw.example("panda")), ["panda_hand_tcp", "panda_link5", hand]),
        "floating": (fw.load(fw.example("hyq_no_sensors"), base="floating"), ["lf_foot", "trunk"]),
    }


@pytest.mark.parametrize("name", ["panda", "floating"])
@pytest.mark.parametrize("axes", ["world", "local"])
def test_joint_forces_are_those_of_the_jacobian(name: str, axes: str) -> None:
    """Check J^T f for links, frames of the file and frames of the user, many states at once."""
    robot, frames = robots()[name]
    q, v, rng = state(robot, 1)
    q = np.array([q, robot.random_configuration(rng=rng)])
    for frame in frames:
        force, moment, at = rng.normal(size=(3, 3))
        push = robot.wrench(frame, force, moment, at=at, axes=axes)
        rows = push(q)
        assert rows.shape == (2, len(robot.bodies), 6) and (np.abs(rows).sum(axis=2) > 0).sum() == 2
        a, v = np.zeros(robot.nv), np.zeros(robot.nv)
        tau = robot.inverse_dynamics(q, v, a) - robot.inverse_dynamics(q, v, a, external_forces=rows)
        R = robot.frame_placement(frame)(q)[:, :3, :3]
        J = robot.frame_jacobian(frame, "local_world_aligned")(q)
        f, m = (x if axes == "world" else (R @ x) for x in (force, moment))
        f, m = np.broadcast_to(f, (2, 3)), np.broadcast_to(m, (2, 3))
        wrench = np.concatenate([f, m + np.cross(R @ at, f)], axis=1)
        np.testing.assert_allclose(tau, np.einsum("nij,ni->nj", J, wrench), rtol=0, atol=1e-12 * abs(tau).max())


def test_a_push_moves_a_simulation_as_its_joint_forces_do() -> None:
    robot = fw.load(fw.example("panda"))
    push = robot.wrench("panda_hand_tcp", force=[0.0, 0.0, -20.0])
    sim, other = (fw.Simulation(robot, 0.001) for _ in range(2))
    J = robot.frame_jacobian("panda_hand_tcp")
    for _ in range(20):
        sim.step(external_forces=push(sim.q))
        other.step(J(other.q)[:3].T @ [0.0, 0.0, -20.0])
    np.testing.assert_allclose(sim.q, other.q, rtol=0, atol=1e-6)
    assert abs(sim.q - robot.start()).max() > 1e-3
    push.force = [0.0, 0.0, 0.0]
    assert not push(sim.q).any()


def test_errors_name_the_argument() -> None:
    robot = fw.load(fw.example("panda"))
    with pytest.raises(ValueError, match="has no frame 'hand'"):
        robot.wrench("hand")
    with pytest.raises(ValueError, match="wrench: force must be three finite numbers; got"):
        robot.wrench("panda_hand", force=[1.0, 2.0])
    with pytest.raises(ValueError, match="wrench: axes"):
        robot.wrench("panda_hand", axes="body")
    with pytest.raises(ValueError, match="'world' is fixed to the ground"):
        robot.wrench("world")
    assert repr(robot.wrench("panda_hand", force=[0, 0, 1])) == (
        "<Wrench at 'panda_hand': force [0. 0. 1.], moment [0. 0. 0.], world axes>"
    )
