"""Tests that forces at joints of random MJCF files equal MuJoCo's, unless the report of the loader names the difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

import featherweight as fw
from featherweight.robot.left_out_at_joints import EFFORTS_OF_FOLLOWERS, SPRINGS_OF_SEVERAL
from featherweight.robot.not_simulated import not_simulated
from featherweight.simulation.forces.at_joints import forces_at_joints
from simulation.spring_forces import spring_forces
from trial.conftest import Rounds
from trial.drawn_files import drawn_file

SHARE = 0.05  # share of the time
EXACT = 1e-11  # relative to the forces, which are sums of a few products of similar size
PASSIVE = {SPRINGS_OF_SEVERAL}  # kinds in the report that change passive forces
DRIVEN = {
    "actuators",
    "effort limits that differ by direction, read as the greater",
    EFFORTS_OF_FOLLOWERS,
}


def test_forces_of_drawn_files_are_mujocos_or_named(rounds: Rounds, record_property: Callable[[str, Any], None]) -> None:
    count = compared = 0
    for rng in rounds(SHARE):
        text = drawn_file(rng, hasattr(mujoco.MjModel, "actuator_ctrladr"))
        model, robot = mujoco.MjModel.from_xml_string(text), fw.load(text, execution="interpreted")
        compared += _compare(robot, model, rng, text)
        count += 1
    record_property("files", count)
    record_property("forces compared", compared)
    assert compared > 0 or count < 20


def _compare(robot: fw.Robot, model: Any, rng: np.random.Generator, text: str) -> int:
    """Compare joint forces, mapped to the independent velocities; return the number of compared kinds."""
    order, forces, data, named = (
        fw.MujocoOrder(robot, model),
        forces_at_joints(robot, robot.actuators),
        mujoco.MjData(model),
        not_simulated(robot),
    )
    q = robot.random_configuration(rng=rng)
    v, u = rng.standard_normal(robot.nv), rng.standard_normal(len(robot.controls))
    assert len(order.ctrl(u)) == order.nu == model.nu
    np.testing.assert_array_equal(order.control(order.ctrl(u)), u, err_msg=text)
    data.qpos[:], data.qvel[:] = order.state(q, v)
    data.ctrl[:] = order.ctrl(u)
    mujoco.mj_forward(model, data)
    S = np.array([order.state(q, e).qvel for e in np.eye(robot.nv)])
    pairs = []
    if PASSIVE.isdisjoint(named):
        pairs.append((spring_forces(forces, q, v), S @ data.qfrc_passive))
    if DRIVEN.isdisjoint(named):
        pairs.append((forces.of_drives(q, v, u), S @ data.qfrc_actuator))
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    pairs.append((np.asarray(robot.mass_matrix(q)), S @ M @ S.T))
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, atol=EXACT * (1.0 + np.abs(theirs).max(initial=0.0)), rtol=0.0, err_msg=text)
    return len(pairs) - 1
