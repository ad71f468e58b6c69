"""Tests of the contact law that a simulation has unless another is asked for: that of the robot's file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.contact.laws import COMPLIANT, CONES, COULOMB, PYRAMIDS, RIGID
from featherweight.simulation.simulation_options import law_of
from simulation.beside_mujoco import beside_mujoco

BALL = """<mujoco><option cone="{cone}" timestep="0.002"/><worldbody><geom type="plane" size="0 0 1"/>
<body name="ball" pos="0 0 .1"><freejoint/><geom size=".1" mass="1"/></body></worldbody></mujoco>"""
URDF = """<robot name="ball"><link name="ball"><inertial><mass value="1"/>
<inertia ixx="0.004" ixy="0" ixz="0" iyy="0.004" iyz="0" izz="0.004"/></inertial>
<collision><geometry><sphere radius="0.1"/></geometry></collision></link></robot>"""
SDF = """<sdf version="1.9"><model name="ball"><link name="ball"><inertial><mass>1</mass>
<inertia><ixx>0.004</ixx><iyy>0.004</iyy><izz>0.004</izz></inertia></inertial><collision name="c">
<geometry><sphere><radius>0.1</radius></sphere></geometry></collision></link></model></sdf>"""
USD = """#usda 1.0
(
  defaultPrim = "robot"
  metersPerUnit = 1
  upAxis = "Z"
)
def Xform "robot" ( prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"] )
{
  float physics:mass = 1
  float3 physics:diagonalInertia = (0.004, 0.004, 0.004)
}
"""
LEG = """<mujoco><option timestep="0.01" integrator="{integrator}"/><worldbody>
<body pos="0 0 1"><joint name="hip" axis="0 1 0"/>
<geom type="capsule" size=".03" fromto="0 0 0 0 0 -.3" mass="1"/></body></worldbody></mujoco>"""


def by_default(robot: fw.Robot | fw.ClosedRobot) -> tuple[int, int]:
    assert isinstance(robot, fw.Robot)
    return law_of(fw.ContactOptions().law, robot)


def test_an_mjcf_file_has_its_own_law_and_other_robots_are_rigid(tmp_path: Path) -> None:
    """Check files, saved files, robots built in Python, and a robot that is attached to an MJCF scene."""
    assert by_default(fw.load(BALL.format(cone="elliptic"))) == (COMPLIANT, CONES)
    assert by_default(fw.load(BALL.format(cone="pyramidal"))) == (COMPLIANT, PYRAMIDS)
    fw.read(BALL.format(cone="elliptic")).save(tmp_path / "saved.xml")
    assert by_default(fw.load(tmp_path / "saved.xml")) == (COMPLIANT, CONES)
    for robot in (
        fw.load(URDF, base="floating"),
        fw.load(SDF),
        fw.build(fw.generators.chain(2)),
        fw.build(fw.robots.mini_cheetah()),
    ):
        assert by_default(robot) == (RIGID, COULOMB)
    pytest.importorskip("pxr")
    (tmp_path / "ball.usda").write_text(USD)
    assert by_default(fw.load(tmp_path / "ball.usda")) == (RIGID, COULOMB)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_a_ball_sinks_as_deep_as_in_mujoco_and_not_if_rigid(cone: str) -> None:
    text = BALL.format(cone=cone)
    sim, _, away = beside_mujoco(text, 300)
    assert away.max() < 1e-9 and 0.1 - sim.q[2] > 1e-5
    for contact in ("rigid", fw.ContactOptions(law="rigid")):
        rigid = fw.Simulation(fw.load(text), contact=contact)
        rigid.step(steps=300)
        assert rigid.q[2] == pytest.approx(0.1, abs=2e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"contact": fw.ContactOptions(restitution=0.5)},
        {"contact": fw.ContactOptions(restitution=0.5, law="compliant")},
        {"ground": fw.Plane(restitution=0.5), "spheres": [fw.ContactSphere("ball", 0.1)]},
        {"spheres": [fw.ContactSphere("ball", 0.1, restitution=0.5)], "ground": True},
        {"contact": fw.ContactOptions(pyramid=True)},
    ],
    ids=["option", "compliant", "ground", "sphere", "pyramid"],
)
def test_what_only_rigid_contacts_have_says_so(options: dict[str, Any]) -> None:
    robot = fw.load(BALL.format(cone="elliptic"))
    with pytest.raises(ValueError, match=r"(restitution|pyramid=True) needs rigid contact.*use contact='rigid'"):
        fw.Simulation(robot, **options)


def test_a_rigid_ball_of_an_mjcf_file_bounces() -> None:
    sim = fw.Simulation(fw.load(BALL.format(cone="elliptic")), contact=fw.ContactOptions(law="rigid", restitution=0.5))
    sim.reset(sim.q + np.eye(7)[2] * 0.1, -np.eye(6)[2])
    sim.run(0.1)
    assert 0.5 < sim.v[2] < 0.9


@pytest.mark.parametrize(
    ("integrator", "gains", "stable"),
    [
        ("Euler", (100.0, 1.0), True), ("Euler", (400.0, 20.0), False), ("Euler", (4000.0, 0.0), False),
        ("implicitfast", (400.0, 20.0), True), ("implicitfast", (4000.0, 0.0), False),
    ],
)  # fmt: skip
def test_drives_that_are_too_stiff_for_steps_of_mujoco_are_named(
    integrator: str, gains: tuple[float, float], stable: bool
) -> None:
    """Check the criterion: MuJoCo's own servo with these gains comes to rest, or diverges."""
    robot, drives = fw.load(LEG.format(integrator=integrator)), fw.PD(*gains)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        sim = fw.Simulation(robot, actuators=drives)
        fw.Simulation(robot, actuators=drives, contact="rigid")
    assert [("at their start, which can be unstable for" in str(x.message)) for x in told] == [True] * (not stable)
    if not stable:
        assert "hip" in str(told[0].message) and "contact='rigid'" in str(told[0].message)
    servo = f'<actuator><position joint="hip" kp="{gains[0]}" kv="{gains[1]}"/></actuator>'
    model = mujoco.MjModel.from_xml_string(LEG.format(integrator=integrator).replace("</mujoco>", f"{servo}</mujoco>"))
    data = mujoco.MjData(model)
    data.qvel[:] = sim.v = np.array([1e-3])
    mujoco.mj_step(model, data, 30)
    assert bool(data.warning.number.any()) is not stable  # MuJoCo resets what diverges
    if stable:
        assert abs(data.qvel[0]) < 1e-3
        sim.step(control=[0.0], steps=30)
        assert abs(sim.v[0]) < 1e-3
    else:
        with pytest.raises(fw.SimulationError, match="the motion diverges"):
            sim.step(control=[0.0], steps=30)
