"""Tests of states in MuJoCo's order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.qpos_qvel import QposQvel

mujoco = pytest.importorskip("mujoco")

BALL = """
<mujoco><worldbody><body name="base"><freejoint/><geom type="box" size=".1 .2 .3"/>
  <body name="link" pos=".3 0 0"><joint name="ball" type="ball"/><geom type="box" size=".3 .2 .1" pos=".2 0 0"/>
    <body name="tip" pos=".3 0 0"><joint name="hinge" axis="0 1 0"/><geom size=".1"/></body></body></body>
</worldbody></mujoco>
"""


def test_bodies_are_and_move_where_mujoco_has_them(tmp_path: Path) -> None:
    (tmp_path / "ball.xml").write_text(BALL)
    robot = fw.load(tmp_path / "ball.xml")
    model = mujoco.MjModel.from_xml_string(BALL)
    data, order = mujoco.MjData(model), QposQvel.in_own_order(robot)
    q = robot.random_configuration(rng=0, size=3)
    v = np.random.default_rng(1).standard_normal((3, robot.nv))
    qpos, qvel = order.qpos(q), order.qvel(q, v)
    placement = fw.evaluate(robot.frame_placement("tip").trace, [q[0]])
    jacobian = robot.frame_jacobian("tip")
    velocity = np.reshape(fw.evaluate(jacobian.trace, [q[0]]), (6, robot.nv)) @ v[0]
    data.qpos[:], data.qvel[:] = qpos[0], qvel[0]
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(np.reshape(placement, (4, 4))[:3, 3], data.body("tip").xpos, rtol=0, atol=1e-12)
    theirs = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, 3, theirs, 0)
    np.testing.assert_allclose(velocity, np.roll(theirs, 3), rtol=0, atol=1e-12)
    for x, y in zip(order.back(qpos, qvel), (q, v), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-14)
    np.testing.assert_allclose(order.back(2.0 * qpos, qvel)[0][:, 3:11], q[:, 3:11], rtol=0, atol=1e-14)  # normalized
