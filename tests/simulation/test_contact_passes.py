"""Tests of contacts in passes of articulated bodies: MuJoCo's velocities after a step from its own states."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherweight as fw

CREATURE = """<mujoco><option timestep="0.004" cone="{cone}" impratio="{impratio}"/>
<default><geom condim="{condim}" friction=".8 .02 .01"/><joint axis="0 1 0" range="-40 70" frictionloss=".03" damping=".05"/>
</default><worldbody><geom type="plane" size="9 9 .1"/>
<body name="torso" pos="0 0 .3"><freejoint/><geom type="capsule" size=".06 .12" euler="0 90 0" mass="3"/>{legs}</body>
<body pos=".1 .3 .08"><freejoint/><geom type="capsule" size=".05 .06" mass=".4"/></body></worldbody>
<contact><exclude body1="torso" body2="thigh0"/></contact>
<tendon><fixed name="strap" range="-.3 .4" frictionloss=".02"><joint joint="hip0" coef="1"/><joint joint="hip1" coef="-1"/>
</fixed></tendon></mujoco>"""
LEG = """<body name="thigh{i}" pos="{x} {y} 0"><joint name="hip{i}"/><joint axis="1 0 0" range="-60 60"/>
<geom type="capsule" fromto="0 0 0 .05 0 -.15" size=".03" mass=".3"/><body pos=".05 0 -.15"><joint range="-90 0"/><geom
type="capsule" fromto="0 0 0 -.05 0 -.15" size=".025" mass=".2"/></body></body>"""


@pytest.mark.parametrize(("cone", "condim", "impratio"), [
    ("pyramidal", 3, 1), ("pyramidal", 4, 1), ("pyramidal", 6, 3), ("elliptic", 3, 1), ("elliptic", 6, 10), ("pyramidal", 1, 1),
])  # fmt: skip
def test_a_creature_that_lies_and_struggles_moves_as_in_mujoco(cone: str, condim: int, impratio: float) -> None:
    """Check legs that touch each other and a loose block, limits and dry friction of joints, and of a tendon."""
    legs = "".join(
        LEG.format(i=i, x=x, y=y) for i, (x, y) in enumerate(((0.1, 0.05), (0.1, -0.05), (-0.1, 0.05), (-0.1, -0.05)))
    )
    text = CREATURE.format(cone=cone, condim=condim, impratio=impratio, legs=legs)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations, model.opt.ls_tolerance = 0.0, 300, 200, 1e-10
    robot, data, rng = fw.load(text), mujoco.MjData(model), np.random.default_rng(0)
    sim, order = fw.Simulation(robot, contact="file"), fw.MujocoOrder(robot, model)
    away, pairs, strapped = [], 0, 0
    for k in range(400):
        if k % 10 == 0:
            data.qfrc_applied[:] = rng.normal(size=model.nv) * np.where(np.arange(model.nv) < 6, 0.0, 1.0)
            data.qfrc_applied[-6:] = 0.0
            tau = order.robot_state(data.qpos, data.qfrc_applied).v
        sim.q, sim.v = order.robot_state(data.qpos, data.qvel)
        sim.step(tau)
        mujoco.mj_step(model, data)
        away.append(np.abs(order.state(sim.q, sim.v).qvel - data.qvel).max())
        bodies = model.geom_bodyid[data.contact.geom]
        pairs, strapped = pairs + int((bodies > 0).all(axis=1).sum()), strapped + int(abs(data.ten_length[0]) > 0.3)
    assert np.max(away) < 1e-8
    assert min(pairs, strapped) > 20
    assert sim.solver["inexact_steps"] == 0
