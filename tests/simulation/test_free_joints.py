"""Tests of springs of free joints, and of their dry friction and dampers along the axes of the world, against MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.not_simulated import not_simulated
from featherweight.simulation.forces.at_joints import forces_at_joints
from oracles.states import random_states
from simulation.beside_mujoco import require_motion, require_springs
from simulation.spring_forces import spring_forces
from simulation.step_differences import watched

mujoco = pytest.importorskip("mujoco", minversion="3.8")

FLYING = """<mujoco><option timestep="0.001" {option} gravity="0 0 -.3"><flag contact="disable" energy="enable"/></option>
<worldbody><body pos="0 0 1" euler="10 20 30"><joint name="f" type="free" {free}/>
<geom type="box" size=".1 .2 .3" pos=".1 0 0" density="100"/>
<body pos=".4 0 0"><joint name="b" axis="0 1 0" {hinge}/><geom type="capsule" size=".05" fromto="0 0 0 .4 0 0"/></body></body>
<body pos="0 2 0"><joint name="g" type="free"/><geom size=".1"/></body></worldbody></mujoco>"""
FRICTION = 'frictionloss=".3"'
DAMPERS = 'damping=".1 .2 .3"'
SPRINGS = 'stiffness="3 1 2"'


def beside(free: str, option: str = "", hinge: str = "", **options: Any) -> tuple[fw.Robot, fw.MujocoOrder, Any]:
    text = FLYING.format(free=free, option=option, hinge=hinge)
    robot, model = fw.load(text, **options), mujoco.MjModel.from_xml_string(text)
    assert isinstance(robot, fw.Robot) and not_simulated(robot) == {}
    model.opt.tolerance, model.opt.iterations = 1e-14, 500
    return robot, fw.MujocoOrder(robot, model), mujoco.MjData(model)


def test_forces_and_energies_are_mujocos() -> None:
    require_springs(*beside(f"{DAMPERS} {SPRINGS}", execution="interpreted"), 1e-12)


@pytest.mark.parametrize(
    ("free", "option", "hinge", "left"),
    [
        (FRICTION, "", FRICTION, 1e-10),
        (DAMPERS, 'integrator="RK4"', "", 1e-8),
        (SPRINGS, "", "", 1e-12),
        (f"{SPRINGS} {DAMPERS}", 'integrator="RK4"', "", 1e-8),
    ],
    ids=["friction", "dampers", "springs", "both"],
)
def test_motion_is_mujocos(free: str, option: str, hinge: str, left: float) -> None:
    """Check one robot and two, to the tolerance of the solvers; for rotations, "rk4" uses another rule of the same order."""
    require_motion(*beside(free, option, hinge), 300, left)


def test_factors_of_joints_are_those_of_their_places() -> None:
    robot = beside('frictionloss=".3" damping="0 .2 .3"')[0]
    twice = beside('frictionloss=".6" damping="0 .4 .6"')[0]
    x = random_states(robot, 1)
    many = fw.Simulation(robot, q=np.tile(x.q, (2, 1)), v=np.tile(x.v, (2, 1)), contact="rigid")
    factors = np.ones((2, robot.nv))
    factors[1, robot.joints["f"].v_slice] = 2.0
    many.vary(damping=factors, dry_friction=factors)
    many.run(0.1)
    for i, own in enumerate((robot, twice)):
        alone = fw.Simulation(own, q=x.q[0], v=x.v[0], contact="rigid")
        alone.run(0.1)
        np.testing.assert_allclose(many.q[i], alone.q, atol=1e-9)


def test_dry_friction_holds_a_tilted_body_that_is_pushed_along_the_world() -> None:
    """Check forces of 0.29 N along both x and y; along the body's axes, the largest force would differ."""
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


@pytest.mark.parametrize(("integrator", "lost"), [("semi-implicit", 0.1), ("rk4", 1e-6), ("midpoint", 1e-9)])
def test_the_energy_of_springs_counts(integrator: str, lost: float) -> None:
    robot = beside(SPRINGS)[0]
    x = random_states(robot, 1)
    sim = fw.Simulation(robot, 1e-3, integrator, q=x.q[0], v=x.v[0])
    energy = sim.energy()
    sim.run(0.3)
    assert sim.energy() == pytest.approx(energy, abs=lost)


def test_files_carry_them(tmp_path: Path) -> None:
    described = fw.read(FLYING.format(free=f"{FRICTION} {DAMPERS} {SPRINGS}", option="", hinge=""))
    described.save(tmp_path / "again.xml")
    for d in (described, fw.read(tmp_path / "again.xml")):
        own = d.joints[0]
        assert (own.dry_friction, own.damping, own.damping_poly) == (0.3, 0.1, (0.2, 0.3))
        assert (own.stiffness, own.stiffness_poly, own.rest_pose[:3]) == (3.0, (1.0, 2.0), (0.0, 0.0, 1.0))
        assert own.rest_pose == pytest.approx(described.joints[0].rest_pose, abs=1e-15)
    with pytest.warns(fw.ModelWarning, match="the poses at which springs of the floating joints f are at rest"):
        described.save(tmp_path / "robot.urdf")
    elsewhere = replace(described.joints[0], rest_pose=(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
    with pytest.warns(fw.ModelWarning, match="springs of the free joints f, which are at rest elsewhere"):
        replace(described, joints=(elsewhere, *described.joints[1:])).save(tmp_path / "robot.xml")


def test_springs_of_a_free_joint_on_a_frame_of_its_own() -> None:
    """Check the displacement along the axes of the frame in the ground, also after the file is saved."""
    body = fw.Body("b", fw.Inertia(1.0, (0.1, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    at = fw.Pose(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)), (0.3, 0.2, 0.1))
    rest = (0.1, 0.2, 0.3, 0.0, 0.6, 0.0, 0.8)
    joint = fw.Joint("j", fw.JointType.FLOATING, None, "b", at, stiffness=5.0, damping_poly=(1.0, 2.0), rest_pose=rest)
    robot = fw.build(fw.describe([body], [joint]), execution="interpreted")
    forces, step = forces_at_joints(robot, ()), 1e-6
    assert forces.spring_energy(np.array(rest)) == 0.0
    q = random_states(robot, 1).q[0]
    for k, e in enumerate(np.eye(6)):
        there = [forces.spring_energy(robot.integrate(q, sign * step * e)) for sign in (1.0, -1.0)]
        assert (there[1] - there[0]) / (2.0 * step) == pytest.approx(
            spring_forces(forces, q, np.zeros(6))[k], rel=1e-7, abs=1e-7
        )


def test_a_rest_pose_is_seven_numbers() -> None:
    body = fw.Body("b", fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    joint = fw.Joint("j", fw.JointType.FLOATING, None, "b", stiffness=1.0, rest_pose=(0.0, 0.0, 1.0))
    with pytest.raises(fw.ModelError, match="joint 'j': the rest pose of a floating joint is"):
        fw.build(fw.describe([body], [joint]))


def test_steps_have_derivatives() -> None:
    for free in (FRICTION, SPRINGS):
        watched(fw.Simulation(beside(free)[0], contact="rigid", integrator="midpoint"), most=1e-5)
