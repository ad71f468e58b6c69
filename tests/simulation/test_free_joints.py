"""Dry friction and dampers of free joints along the axes of the world, beside MuJoCo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.not_simulated import not_simulated
from featherweight.simulation.forces import ForcesAtJoints
from oracles.states import random_states

mujoco = pytest.importorskip("mujoco", minversion="3.8")

FLYING = """<mujoco><option timestep="0.001" {option} gravity="0 0 -.3"><flag contact="disable"/></option><worldbody>
<body pos="0 0 1" euler="10 20 30"><joint name="f" type="free" {free}/>
<geom type="box" size=".1 .2 .3" pos=".1 0 0" density="100"/>
<body pos=".4 0 0"><joint name="b" axis="0 1 0" {hinge}/><geom type="capsule" size=".05" fromto="0 0 0 .4 0 0"/></body></body>
<body pos="0 2 0"><joint name="g" type="free"/><geom size=".1"/></body></worldbody></mujoco>"""
FRICTION = 'frictionloss=".3"'
DAMPERS = 'damping=".1 .2 .3"'


def beside(free: str, option: str = "", hinge: str = "", **options: Any) -> tuple[fw.Robot, fw.MujocoOrder, Any]:
    text = FLYING.format(free=free, option=option, hinge=hinge)
    robot, model = fw.load(text, **options), mujoco.MjModel.from_xml_string(text)
    assert isinstance(robot, fw.Robot) and not_simulated(robot) == {}
    model.opt.tolerance, model.opt.iterations = 1e-14, 500
    return robot, fw.MujocoOrder(robot, model), mujoco.MjData(model)


def test_forces_of_dampers_are_mujocos() -> None:
    robot, order, data = beside(DAMPERS, execution="interpreted")
    forces, x = ForcesAtJoints(robot, ()), random_states(robot, 5)
    for q, v in zip(x.q, 3.0 * x.v, strict=True):
        data.qpos[:], data.qvel[:] = order.state(q, v)
        mujoco.mj_forward(data.model, data)
        S = np.array([order.state(q, e).qvel for e in np.eye(robot.nv)])
        np.testing.assert_allclose(forces.of_springs(q, v), S @ data.qfrc_passive, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("free", "option", "hinge", "left"),
    [(FRICTION, "", FRICTION, 1e-10), (DAMPERS, 'integrator="RK4"', "", 1e-8)],
    ids=["friction", "dampers"],
)
def test_motion_is_mujocos(free: str, option: str, hinge: str, left: float) -> None:
    """To what solvers leave; turns by "rk4" are those of another rule of the same order. For one robot and for two at once."""
    robot, order, data = beside(free, option, hinge)
    x = random_states(robot, 2)
    many = fw.Simulation(robot, q=x.q, v=2.0 * x.v, contact="as in the file")
    many.step(steps=300)
    for i in range(2):
        data.qpos[:], data.qvel[:] = order.state(x.q[i], 2.0 * x.v[i])
        for _ in range(300):
            mujoco.mj_step(data.model, data)
        np.testing.assert_allclose(order.state(many.q[i], many.v[i]).qpos, data.qpos, atol=left)
        alone = fw.Simulation(robot, q=x.q[i], v=2.0 * x.v[i], contact="as in the file")
        alone.step(steps=300)
        np.testing.assert_array_equal(alone.q, many.q[i])


def test_factors_of_joints_are_those_of_their_places() -> None:
    robot = beside('frictionloss=".3" damping="0 .2 .3"')[0]
    twice = beside('frictionloss=".6" damping="0 .4 .6"')[0]
    x = random_states(robot, 1)
    many = fw.Simulation(robot, q=np.tile(x.q, (2, 1)), v=np.tile(x.v, (2, 1)), contact="rigid")
    factors = np.ones((2, robot.nv))
    factors[1, robot.joints["f"].v_slice] = 2.0
    many.vary(damping=factors, joint_friction=factors)
    many.run(0.1)
    for i, own in enumerate((robot, twice)):
        alone = fw.Simulation(own, q=x.q[0], v=x.v[0], contact="rigid")
        alone.run(0.1)
        np.testing.assert_allclose(many.q[i], alone.q, atol=1e-9)


def test_dry_friction_holds_a_tilted_body_that_is_pushed_along_the_world() -> None:
    """By 0.29 N along x and y at once; along the axes of the body the greatest force would be another one."""
    robot = beside(FRICTION)[0]
    sim = fw.Simulation(robot, contact="rigid", joints=fw.JointOptions(limits=False))
    row = sim.forces.rows_of_places()[0][0]
    S = sim.forces.map(sim.q)
    assert S is not None
    weight = np.asarray(robot.bias_force(sim.q, 0.0 * sim.v))
    pushed = weight + S[row].T @ np.array([0.29, 0.29, 0.0])
    sim.run(0.1, tau=pushed)
    assert np.abs(sim.v[:6]).max() < 1e-6
    sim.run(0.1, tau=weight + S[row].T @ np.array([0.31, 0.29, 0.0]))
    assert np.abs(sim.v[:6]).max() > 1e-5


def test_files_carry_them(tmp_path: Path) -> None:
    described = fw.read(FLYING.format(free=f"{FRICTION} {DAMPERS}", option="", hinge=""))
    described.save(tmp_path / "again.xml")
    for d in (described, fw.read(tmp_path / "again.xml")):
        assert (d.joints[0].friction, d.joints[0].damping, d.joints[0].damping_poly) == (0.3, 0.1, (0.2, 0.3))


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(NotImplementedError, match="dry friction of free joints"):
        fw.Simulation(beside(FRICTION)[0]).derivatives()
