"""Tests of gravity compensation (MJCF's gravcomp), against MuJoCo."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from simulation.beside_mujoco import BesideMujoco
from simulation.plain_python import ROUNDED, plain_python, steps_by
from simulation.scenes import require_alike_alone
from simulation.step_differences import watched

mujoco = pytest.importorskip("mujoco")

CARRIED = """<mujoco><option timestep="0.002" gravity="1 -2 -9" integrator="{integrator}"/><worldbody>
<body name="trunk" pos="0 0 1" gravcomp="0.4"><freejoint/><geom type="box" size=".1 .2 .05" pos=".02 .03 .01" mass="10"/>
  <body name="arm" pos=".3 0 0" gravcomp="1"><joint name="a" axis="0 1 0" damping="0.3"/>
    <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".04" mass="2"/>
    <body name="fist" pos=".3 .1 0" euler="0 40 0" gravcomp="1.5"><geom size=".05" pos="0 .1 0" mass="1"/></body></body></body>
<body name="leg" pos="2 0 1"><joint name="b" axis="1 0 0"/><joint name="c" axis="0 1 0"{spring}/>
  <geom type="ellipsoid" size=".1 .2 .3" pos="0 0 -.5" mass="3"/>
  <body name="foot" pos="0 0 -0.8" gravcomp="-0.5"><joint name="d" axis="0 1 0"/>
    <geom size=".1" pos=".1 0 0" mass="1"/></body></body>
<body name="ball" pos="4 0 1" gravcomp="0.8"><joint type="ball"/>
  <geom type="cylinder" size=".1 .2" pos="0 .3 -.5" mass="1"/></body>
</worldbody>{more}</mujoco>"""
SPRING = ' stiffness="3"'
DRIVE = '<actuator><position name="m" joint="a" kp="40" kv="3"/></actuator>'
GEAR = '<equality><joint joint1="d" joint2="c" polycoef="0 -0.5 0 0 0" solref="0.005 1"/></equality>'


def text(integrator: str = "Euler", more: str = "", spring: str = "") -> str:
    return CARRIED.format(integrator=integrator, more=more, spring=spring)


def faster_than_mujoco(file: str, steps: int) -> float:
    """Return the greatest difference of velocities from a random start."""
    robot, worst = fw.load(file), 0.0
    v = np.random.default_rng(0).standard_normal(robot.nv)
    pair = BesideMujoco(robot, mujoco.MjModel.from_xml_string(file), v=v, shapes=False)
    for _ in range(steps):
        pair.step()
        worst = max(worst, pair.faster)
    return worst


def test_motion_is_mujocos() -> None:
    """Check free bodies, hinges, ball joints, links fixed to others, parts, and factors above one and below zero;
    differences are rounding in 200 steps, for velocities of order 10.
    """
    assert faster_than_mujoco(text(), 200) < 1e-11
    without = re.sub(r'gravcomp="\S*"', "", text())
    assert np.abs(after(text()) - after(without)).max() > 0.1


def after(file: str, **options: Any) -> Any:
    sim = fw.Simulation(fw.load(file), shapes=False, **options)
    sim.run(0.1)
    return sim.v


def test_motion_by_runge_kutta_is_mujocos() -> None:
    """Check to the order of the methods, which differ for rotations."""
    assert faster_than_mujoco(text("RK4", spring=SPRING), 200) < 1e-7


def test_the_midpoint_rule_has_it_too() -> None:
    """Check agreement with Runge-Kutta in steps of 0.1 ms; errors are of the order (h v)², 1e-6, for velocities of 10."""
    midpoint, fine = (after(text(spring=SPRING), dt=1e-4, integrator=x) for x in ("midpoint", "rk4"))
    np.testing.assert_allclose(midpoint, fine, rtol=0.0, atol=1e-4)


def test_a_body_that_is_carried_whole_stays_and_flies_straight() -> None:
    file = text().replace('gravcomp="0.4"', 'gravcomp="1"').replace('gravcomp="1.5"', 'gravcomp="1"')
    robot = fw.load(file)
    v = np.zeros(robot.nv)
    v[2] = 3.0  # upward for a second: the energy guard includes the compensation
    sim = fw.Simulation(robot, v=v, shapes=False)
    sim.run(1.0)
    np.testing.assert_allclose(sim.v[:7], v[:7], atol=1e-10)
    np.testing.assert_allclose(sim.q[2] - robot.start()[2], 3.0, atol=1e-10)


@pytest.mark.parametrize("more", [GEAR, DRIVE], ids=["gear", "drive"])
def test_forces_of_couplings_and_drives_add_up_with_it(more: str) -> None:
    """Check against the robot without compensation, under joint forces with the power of the compensated weights."""
    file = text(more=more)
    robot, bare = (fw.load(x, equalities="exact") for x in (file, re.sub(r'gravcomp="\S*"', "", file)))
    carried, given = fw.Simulation(robot, shapes=False), fw.Simulation(bare, shapes=False)
    control = np.full(len(robot.actuators), 0.3)
    model = mujoco.MjModel.from_xml_string(file)
    weights = [
        (
            fw.Frame("center", model.body(k).name, fw.Pose(p=tuple(model.body_ipos[k]))),
            model.body_gravcomp[k] * model.body_mass[k],
        )
        for k in range(1, model.nbody)
    ]
    for _ in range(50):
        tau = np.zeros(bare.nv)
        for at, mass in weights:
            tau -= np.asarray(bare.frame_jacobian(at)(given.q))[:3].T @ (mass * np.array(bare.gravity))
        given.step(tau=tau, control=control)
        carried.step(control=control)
    assert robot.closed == (more == GEAR)
    np.testing.assert_allclose(carried.v, given.v, rtol=0.0, atol=1e-11)  # rounding, for velocities of order one
    assert np.abs(carried.v).max() > 0.1


def test_robots_of_a_fleet_are_carried_as_one_alone() -> None:
    require_alike_alone(fw.load(text()))


def test_saved_files_and_edits_keep_it(tmp_path: Path) -> None:
    d = fw.read(text())
    d.save(tmp_path / "again.xml")
    again = fw.read(tmp_path / "again.xml")
    parts = {b.name: b.gravity_compensation for b in d.bodies}
    assert {b.name: b.gravity_compensation for b in again.bodies} == parts
    assert (parts["trunk"], parts["fist"], parts["foot"], parts["leg"]) == (0.4, 1.5, -0.5, 0.0)
    for edited in (d.mirrored("y"), d.renamed({"leg": "shank"}), d.with_payload("fist", fw.Inertia(0.1))):
        assert {b.name.replace("shank", "leg"): b.gravity_compensation for b in edited.bodies} == parts
    with pytest.warns(fw.ModelWarning, match="the gravity compensation of the bodies trunk, arm, fist, foot, ball"):
        d.save(tmp_path / "again.urdf")


def test_links_of_sdf_files_without_gravity_are_carried() -> None:
    link = "<link name='{}'>{}<inertial><mass>2</mass></inertial></link>"
    inside = link.format("light", "<gravity>false</gravity>") + link.format("heavy", "")
    robot = fw.load(f"<sdf version='1.9'><model name='m'>{inside}</model></sdf>")
    sim = fw.Simulation(robot, dt=1e-3, shapes=False)
    sim.run(0.5)
    falling = {j.child: sim.v[j.v_slice][2] for j in robot.joints}
    assert falling["light"] == pytest.approx(0.0, abs=1e-12) and falling["heavy"] == pytest.approx(-0.5 * 9.8, rel=1e-2)


def test_files_that_turn_passive_forces_off_have_none() -> None:
    off = text().replace('integrator="Euler"/>', '><flag spring="disable" damper="disable"/></option>')
    assert {b.gravity_compensation for b in fw.read(off).bodies} == {0.0}
    assert faster_than_mujoco(off, 20) < 1e-11


CARRIED_BY_DRIVES = """<mujoco><option timestep="0.002" gravity="1 -2 -9" integrator="{integrator}"/><worldbody>
<body name="arm" pos="0 0 1" gravcomp="1"><joint name="a" axis="0 1 0" damping="0.3" actuatorgravcomp="true"
  actuatorfrcrange="-{most} {most}"/><geom type="capsule" fromto="0 0 0 .3 .1 0" size=".04" mass="2"/>
  <body name="fist" pos=".3 .1 0" gravcomp="0.7"><joint name="b" axis="1 1 0" actuatorgravcomp="true"
    actuatorfrcrange="-1 {most}"/>
    <geom size=".05" pos="0 .1 0" mass="1"/></body></body>
<body name="lift" pos="1 0 1" gravcomp="1.2"><joint name="c" type="slide" axis="0 0 1" actuatorgravcomp="true"
  actuatorfrcrange="-4 9"/><geom size=".05" mass="1"/></body>
<body name="free" pos="2 0 1" gravcomp="0.5"><joint name="d" axis="0 1 0" actuatorgravcomp="true"/>
  <geom size=".05" pos=".2 0 0"/></body>
<body name="passive" pos="3 0 1" gravcomp="1"><joint name="e" axis="0 1 0" actuatorfrcrange="-0.1 0.1"/>
  <geom size=".05" pos=".2 0 0" mass="1"/></body>
</worldbody>{drives}<sensor><jointactuatorfrc name="a" joint="a"/><jointactuatorfrc name="b" joint="b"/>
<jointactuatorfrc name="c" joint="c"/><jointactuatorfrc name="d" joint="d"/><jointactuatorfrc name="e" joint="e"/></sensor>
</mujoco>"""
MOTORS = """<actuator><motor name="m" joint="a" gear="2"/><motor name="n" joint="c"/><motor name="o" joint="e"/></actuator>"""
SERVOS = """<actuator><position joint="a" kp="20" kv="1"/><position joint="b" kp="3"/><velocity joint="c" kv="5"/></actuator>"""


Case = tuple[Any, Any, fw.Robot, fw.MujocoOrder]


def carried_by_drives(drives: str, integrator: str, most: float = 3.0) -> Case:
    file = CARRIED_BY_DRIVES.format(integrator=integrator, most=most, drives=drives)
    model, robot = mujoco.MjModel.from_xml_string(file), fw.load(file)
    return model, mujoco.MjData(model), robot, fw.MujocoOrder(robot, model)


@pytest.mark.parametrize("most", [3.0, 30.0])
@pytest.mark.parametrize(("drives", "integrator"), [(MOTORS, "Euler"), (MOTORS, "RK4"), (SERVOS, "RK4")])
def test_compensation_by_drives_is_cut_with_their_forces(drives: str, integrator: str, most: float) -> None:
    """Check that force limits include compensation as in MuJoCo, in steps and sensors: to rounding, which grows to 1e-10
    in 200 steps.
    """
    model, data, robot, order = carried_by_drives(drives, integrator, most)
    rng = np.random.default_rng(5)
    sim = fw.Simulation(robot, v=rng.standard_normal(robot.nv), shapes=False)
    data.qpos[:], data.qvel[:] = order.state(sim.q, sim.v)
    limited, cut, free = model.jnt_actfrclimited.astype(bool), 0, 0
    controls = np.repeat(3.0 * rng.standard_normal((10, model.nu)), 20, axis=0)
    for u in controls:
        data.ctrl[:] = u
        mujoco.mj_step(model, data)
        sim.step(control=u)
        np.testing.assert_allclose(order.state(sim.q, sim.v).qvel, data.qvel, rtol=0.0, atol=1e-9)
        if integrator == "Euler":
            np.testing.assert_allclose(
                np.ravel([sim.sensors()[name] for name in "abcde"]), data.qfrc_actuator, rtol=0.0, atol=1e-8
            )
            held = np.isin(data.qfrc_actuator[limited], model.jnt_actfrcrange[limited])
            cut, free = cut + held.sum(), free + (~held).sum()
    assert integrator != "Euler" or (cut > 50 and free > 50)


def test_servos_hold_with_compensation_by_drives_within_efforts() -> None:
    """Check random states and controls; steps are so short that stiffness at their end equals that at their start, to 1e-5."""
    model, data, robot, order = carried_by_drives(SERVOS, "Euler")
    h, rng = 1e-7, np.random.default_rng(5)
    sim = fw.Simulation(robot, dt=h, shapes=False)
    for _ in range(40):
        q, v, u = rng.uniform(-1.5, 1.5, robot.nq), rng.standard_normal(robot.nv), 3.0 * rng.standard_normal(model.nu)
        sim.reset(q=q, v=v)
        sim.step(control=u)
        data.qpos[:], data.qvel[:] = order.state(q, v)
        data.ctrl[:] = u
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose((sim.v - v) / h, data.qacc, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("drives", [MOTORS, SERVOS], ids=["motors", "servos"])
def test_steps_as_machine_code_have_the_bits_of_plain_python(drives: str) -> None:
    """Check steps in which each operation is rounded."""
    _, _, robot, _ = carried_by_drives(drives, "Euler")
    ends = []
    for by in (plain_python(), steps_by(ROUNDED)):
        with by:
            sim = fw.Simulation(robot, v=np.full(robot.nv, 0.5), shapes=False)
            sim.run(0.04, control=np.full(3, 2.0))
            ends.append(sim.v)
    np.testing.assert_array_equal(ends[0], ends[1])


def test_fleets_edits_and_saved_files_keep_what_drives_carry(tmp_path: Path) -> None:
    _, _, robot, _ = carried_by_drives(MOTORS, "Euler")
    q = np.random.default_rng(6).standard_normal((5, robot.nq))
    many = fw.Simulation(robot, q=q, shapes=False)
    many.run(0.05, control=np.ones(3))
    alone = fw.Simulation(robot, q=q[3], shapes=False)
    alone.run(0.05, control=np.ones(3))
    np.testing.assert_array_equal(many.v[3], alone.v)
    d = fw.read(CARRIED_BY_DRIVES.format(integrator="Euler", most=3.0, drives=MOTORS))
    d.save(tmp_path / "again.xml")
    for x in (fw.read(tmp_path / "again.xml"), d.mirrored("y"), d.renamed({"arm": "limb"})):
        assert [(j.drive_compensates, j.effort, j.effort_range) for j in x.joints] == [
            (True, 3.0, None), (True, 3.0, (-1.0, 3.0)), (True, 9.0, (-4.0, 9.0)), (True, np.inf, None), (False, 0.1, None)
        ]  # fmt: skip


def test_compensation_by_drives_that_is_not_computed_is_told() -> None:
    """Check joints that move together; in a file without actuators, MuJoCo's drives carry nothing."""
    gear = '<equality><joint joint1="b" joint2="a" polycoef="0 1 0 0 0"/></equality></mujoco>'
    file = CARRIED_BY_DRIVES.format(integrator="Euler", most=3.0, drives=MOTORS).replace("</mujoco>", gear)
    told = "gravity compensation by drives with limits (actuatorgravcomp), of joints that move together"
    assert fw.load(file).report()[told] == "a, b"
    bare = fw.load(CARRIED_BY_DRIVES.format(integrator="Euler", most=3.0, drives=""))
    assert bare.report()["gravity compensation by drives (actuatorgravcomp) of a file without actuators, which acts"] == "4"
    assert not any("actuatorgravcomp" in kind for kind in carried_by_drives(MOTORS, "Euler")[2].report())


def test_what_is_not_there_says_so() -> None:
    robot = fw.load(text())
    sim = fw.Simulation(robot, q=np.tile(robot.start(), (2, 1)), shapes=False, contact="rigid")
    watched(fw.Simulation(robot, shapes=False, contact="rigid", integrator="rk4"))
    with pytest.raises(NotImplementedError, match="with gravity compensation, cannot vary"):
        sim.vary(parameters=np.tile(robot.inertial_parameters, (2, 1, 1)))
    sim.vary(armature=np.tile(robot.armature, (2, 1)), damping=[1.0, 2.0])
    sim.run(0.1)
