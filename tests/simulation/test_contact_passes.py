"""Tests of the convex contact law in passes and by factors: MuJoCo's velocities after a step from its own states."""

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


LINKAGE = """<body pos="0 5 1"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .1 0 0" size=".01" mass=".1"/>
<body name="coupler" pos=".1 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .3" size=".01" mass=".1"/></body>
</body><body name="rocker" pos=".3 5 1"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 -.2 0 .3" size=".01" mass=".1"/>
</body></worldbody><equality><connect body1="coupler" body2="rocker" anchor="0 0 .3"/></equality>"""
BALL = """<body pos="{x} {y} .05"><freejoint/><geom size=".05" mass=".2"/></body>"""


@pytest.mark.parametrize(("cone", "condim", "impratio", "way"), [
    ("pyramidal", 3, 1, "passes"), ("pyramidal", 4, 1, "passes"), ("pyramidal", 6, 3, "passes"), ("elliptic", 3, 1, "passes"),
    ("elliptic", 6, 10, "passes"), ("pyramidal", 1, 1, "passes"), ("pyramidal", 3, 1, "rolled"), ("elliptic", 6, 10, "rolled"),
    ("pyramidal", 3, 1, "closed"), ("pyramidal", 6, 3, "closed"), ("elliptic", 3, 1, "closed"), ("elliptic", 6, 10, "closed"),
    ("pyramidal", 4, 1, "many"), ("elliptic", 6, 10, "many"),
])  # fmt: skip
def test_a_creature_that_lies_and_struggles_moves_as_in_mujoco(cone: str, condim: int, impratio: float, way: str) -> None:
    """Check legs that touch each other and a loose block, limits and dry friction of joints, and of a tendon.

    Robots with loops, and those with many velocities, have contacts by factors. MuJoCo does not get the loop of another
    mechanism, because it yields there.
    """
    legs = "".join(
        LEG.format(i=i, x=x, y=y) for i, (x, y) in enumerate(((0.1, 0.05), (0.1, -0.05), (-0.1, 0.05), (-0.1, -0.05)))
    )
    text = CREATURE.format(cone=cone, condim=condim, impratio=impratio, legs=legs)
    if way == "many":
        balls = "".join(BALL.format(x=0.4 + 0.09 * (i % 4), y=0.099 * (i // 4)) for i in range(13))
        text = text.replace("</worldbody>", balls + "</worldbody>")
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations, model.opt.ls_tolerance = 0.0, 300, 200, 1e-10
    robot, data, rng = fw.load(text), mujoco.MjData(model), np.random.default_rng(0)
    order, steps = fw.MujocoOrder(robot, model), 60 if way == "many" else 400
    if way == "closed":
        robot = fw.load(text.replace("</worldbody>", LINKAGE), equalities="exact")
    elif way == "rolled":
        robot = fw.load(text, execution="rolled")
    sim = fw.Simulation(robot, contact="file")
    away, pairs, strapped = [], 0, 0
    for k in range(steps):
        if k % 10 == 0:
            data.qfrc_applied[:] = rng.normal(size=model.nv) * np.where(np.arange(model.nv) < 6, 0.0, 1.0)
            data.qfrc_applied[18:] = 0.0
            tau = np.r_[order.robot_state(data.qpos, data.qfrc_applied).v, np.zeros(robot.nv - model.nv)]
        q, v = order.robot_state(data.qpos, data.qvel)
        sim.q, sim.v = np.r_[q, sim.q[len(q) :]], np.r_[v, sim.v[len(v) :]]
        sim.step(tau)
        mujoco.mj_step(model, data)
        away.append(np.abs(order.state(sim.q[: len(q)], sim.v[: len(v)]).qvel - data.qvel).max())
        bodies = model.geom_bodyid[data.contact.geom]
        pairs, strapped = pairs + int((bodies > 0).all(axis=1).sum()), strapped + int(abs(data.ten_length[0]) > 0.3)
    assert np.max(away) < 1e-8
    assert min(pairs, strapped) > 20 or way == "many"
    assert robot.closed == (way == "closed") and sim.solver["inexact_steps"] == 0
