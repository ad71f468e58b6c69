"""Tests of tendons, activations, muscles and drives at frames, against MuJoCo."""

from __future__ import annotations

import copy
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.not_simulated import not_simulated
from featherweight.simulation.forces.at_joints import forces_at_joints
from simulation.beside_mujoco import BesideMujoco
from simulation.spring_forces import spring_forces
from simulation.step_differences import watched

BODIES = """<site name="s0" pos="0 0 1.2"/>
<body name="a" pos="0 0 1"><joint name="j1" axis="0 1 0" {joint}/>
  <geom name="g1" type="cylinder" size=".05 .1" euler="90 0 0" {off}/>
  <geom type="capsule" size=".03" fromto="0 0 0 .4 0 0" {off}/><site name="s1" pos=".15 0 .04"/>
  <body name="b" pos=".4 0 0"><joint name="j2" axis="0 1 0" {joint}/><geom name="g2" size=".06" {off}/>
    <geom type="capsule" size=".03" fromto="0 0 0 .3 .1 0" {off}/><site name="s2" pos=".2 0 .05"/><site name="sd" pos="0 0 .1"/>
    <body name="c" pos=".3 0 0"><joint name="j3" type="slide" axis="1 0 0" {joint}/><geom size=".04" {off}/>
    <site name="s3" pos=".05 0 .05"/>
</body></body></body>
<body name="fly" pos="0 1 1"><freejoint name="free"/><geom type="box" size=".1 .1 .02" {off}/>
  <site name="r1" pos=".1 0 0" euler="10 0 0"/>
  <site name="r2" pos="-.1 .05 0" euler="0 40 0"/></body>
<body name="ball" pos="1 1 1"><joint name="bj" type="ball" armature=".01"/>
  <geom type="capsule" size=".03" mass="3" fromto="0 0 0 .3 .1 0" {off}/></body>"""
TENDONS = """<tendon>
<spatial name="t1" {springs}><site site="s0"/><geom geom="g1"/><site site="s1"/><geom geom="g2" sidesite="sd"/><site site="s2"/>
  <pulley divisor="2"/><site site="s2"/><site site="s3"/><pulley divisor="2"/><site site="s2"/><site site="s0"/></spatial>
<fixed name="t2" {slack} {limit}><joint joint="j1" coef="1"/><joint joint="j2" coef="-.5"/></fixed>
<spatial name="t3" {friction}><site site="s0"/><site site="s2"/></spatial></tendon>"""
DRIVES = """<actuator>
<general name="servo" tendon="t2" gainprm="2" gear="3" biastype="affine" biasprm=".1 -.4 -.2" forcerange="-.6 .6"/>
<motor name="pull" tendon="t1" gear="2"/>
<general name="rotor" site="r1" gear="0 0 1 0 0 .1"/>
<general name="towards" site="r2" refsite="s2" gear="0 .3 1 .2 0 .1" biastype="affine" biasprm="0 -.3 -.1"/>
<motor name="ball" joint="bj" gear="1 2 3"/>
<general name="parent" jointinparent="bj" gear="1 -2 3" biastype="affine" biasprm="0 -.3 -.1"/>
<motor name="free" joint="free" gear="1 .1 .2 .01 .02 .03"/>
<motor name="turned" jointinparent="free" gear=".1 1 -.2 .01 -.02 .03"/>
<general name="filter" joint="j1" dyntype="filter" dynprm=".02" gainprm="2" ctrlrange="-1 .05" ctrllimited="true"/>
<general name="exact" joint="j2" dyntype="filterexact" dynprm=".05" gainprm="2" biastype="affine" biasprm="0 -1 -.1"
  actrange="-.5 .4"/>
<general name="integrator" joint="j3" dyntype="integrator" gainprm="2" actearly="true"/>
<muscle name="muscle" tendon="t3" lengthrange=".4 1"/>
<muscle name="strong" joint="j1" lengthrange="-1 1" force="3" timeconst=".01 .03" tausmooth=".1"/>
<general name="two" joint="j2" dyntype="muscle" dynprm=".01 .04 0" gaintype="muscle" biastype="muscle" lengthrange="-1 1"
  gainprm=".7 1.4 5 1 0 1.8 10 .4 1.4" biasprm=".3 1.5 8 1 0 1.7 10 .3 1.4"/>
<general name="damper" joint="j2" gaintype="affine" gainprm="1 .5 -.3"/>
</actuator>"""


def text(integrator: str, joint: str = "", **tendons: str) -> str:
    parts = {"springs": "", "slack": "", "limit": "", "friction": ""} | tendons
    world = BODIES.format(joint=joint, off='contype="0" conaffinity="0"')
    option = f'<option timestep="0.001" integrator="{integrator}"/>'
    return f"<mujoco>{option}<worldbody>{world}</worldbody>{TENDONS.format(**parts)}{DRIVES}</mujoco>"


SPRINGS = {
    "springs": 'stiffness="30" springlength=".3" damping=".2"',
    "slack": 'stiffness="3" springlength="-.1 .2" damping=".1"',
}
HELD = {"limit": 'range="-.3 .4" limited="true"', "friction": 'range="0 .75" limited="true" frictionloss=".3"'}


def controls(nu: int, k: int) -> np.ndarray:
    u = 0.1 * np.sin(0.01 * k + np.arange(nu))
    u[2] += 5.0  # torque on the rotor
    return u


def farthest(text: str, steps: int, contact: str = "file") -> float:
    """Simulate beside MuJoCo with the same controls; return the greatest difference of coordinates and activations."""
    robot, worst = fw.load(text), 0.0
    assert not_simulated(robot) == {}
    pair = BesideMujoco(robot, mujoco.MjModel.from_xml_string(text), contact=contact)
    for k in range(steps):
        pair.step(controls(len(robot.actuators), k))
        worst = max(worst, pair.away, np.abs(pair.sim.activation - pair.data.act).max())
    return worst


def test_smooth_motion_is_mujocos() -> None:
    """Check that both use the same Runge-Kutta rule, until rounding has grown."""
    assert farthest(text("RK4", **SPRINGS), 100) < 1e-10


def test_limits_and_dry_friction_of_tendons_are_mujocos() -> None:
    """Compare single steps: MuJoCo treats springs explicitly, and so do we for tendons."""
    drives = text("Euler", **HELD).replace('biastype="affine" biasprm="0 -1 -.1"', "")
    assert farthest(drives, 600) < 1e-8


def test_joint_forces_are_mujocos() -> None:
    file = text("Euler", joint='stiffness="2" damping=".1"', **SPRINGS)
    robot, model = fw.load(file, execution="interpreted"), mujoco.MjModel.from_xml_string(file)
    forces, order, data = forces_at_joints(robot, robot.actuators, 0.001), fw.MujocoOrder(robot, model), mujoco.MjData(model)
    rng = np.random.default_rng(0)
    for _ in range(100):
        q, v, u = robot.random_configuration(rng=rng), rng.normal(size=robot.nv), rng.normal(size=forces.nu)
        activation = rng.uniform(0.0, 1.0, size=model.na)
        data.qpos[:], data.qvel[:] = order.state(q, v)
        data.ctrl[:], data.act[:] = order.ctrl(u), activation
        mujoco.mj_forward(model, data)
        along = rng.normal(size=robot.nv)
        w = order.state(q, along).qvel
        drives = forces.of_drives(q, v, u, activation=activation) @ along
        assert drives == pytest.approx(data.qfrc_actuator @ w, rel=1e-11, abs=1e-11)
        assert spring_forces(forces, q, v) @ along == pytest.approx(data.qfrc_passive @ w, rel=1e-11, abs=1e-11)


def test_rigid_limits_of_tendons_hold() -> None:
    file = text("Euler", limit='range="-.1 .2"', friction='range="0 .65"').replace(DRIVES, "")
    robot = fw.load(file)
    sim = fw.Simulation(robot, 0.001, contact="rigid")
    lengths = []
    for _ in range(1500):
        sim.step()
        lengths.append(robot.tendon_lengths(sim.q))
    highest, lowest = np.max(lengths, axis=0), np.min(lengths, axis=0)
    bounded, straight = ([t.name for t in robot.tendons].index(name) for name in ("t2", "t3"))
    assert lowest[bounded] > -0.1 - 1e-4 and highest[bounded] < 0.2 + 1e-4
    assert 0.65 - 1e-3 < highest[straight] < 0.65 + 1e-4
    assert (sim.limit_forces[robot.nv :] != 0.0).any()


GEARED = """<mujoco><option timestep="0.001"/><compiler angle="radian"/><worldbody>{drive}<body name="link">
<joint name="hinge" axis="0 1 0" range="-1 1" stiffness="0.3" {own}/>
<geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.03" mass="1.5"/></body></worldbody>{tendon}
<actuator><position joint="{joint}" name="servo" kp="8" kv="0.1"/></actuator></mujoco>"""
OF_DRIVE = 'damping="0.1" armature="0.03" frictionloss="0.05"'
DRIVE = f"""<body name="hinge_drive"><joint name="hinge_drive" axis="0 1 0" {OF_DRIVE}/>
<inertial pos="0 0 0" mass="1e-12" diaginertia="1e-12 1e-12 1e-12"/></body>"""
TEETH = """<tendon><fixed name="teeth" limited="true" range="{least} {most}" solreflimit="0.005 0.8">
<joint joint="hinge_drive" coef="1"/><joint joint="hinge" coef="-1"/></fixed></tendon>"""


def geared(gap: float) -> fw.Robot:
    plain = GEARED.format(drive="", own=OF_DRIVE, tendon="", joint="hinge")
    return fw.build(fw.read(plain).with_backlash("hinge", gap, solref=(0.005, 0.8)))


def test_backlash_is_that_of_mujoco() -> None:
    """Compare with a drive of its own in MuJoCo, which needs a little mass, between the limits of a tendon."""
    teeth = TEETH.format(least=-0.02, most=0.02)
    model = mujoco.MjModel.from_xml_string(GEARED.format(drive=DRIVE, own="", tendon=teeth, joint="hinge_drive"))
    pair, gaps = BesideMujoco(geared(0.04), model), []
    for k in range(2000):
        pair.step(np.array([0.5 * np.sin(4e-3 * k)]))
        gaps.append(pair.sim.q[0] - pair.sim.q[1])
    assert pair.away < 1e-7
    assert min(gaps) < -0.02 and max(gaps) > 0.02
    rigid = fw.Simulation(geared(0.04), contact="rigid")
    rigid.run(0.3, control=[1.0])
    assert rigid.q[0] - rigid.q[1] == pytest.approx(0.02, abs=1e-4)


def test_varied_limits_are_those_of_files() -> None:
    """Compare robots of a fleet, in vectors, with robots of their own, whose gaps differ."""
    factors = np.ones((4, 3))
    factors[:, 2] = 0.5, 1.0, 2.0, 0.25
    fleet = fw.Simulation(geared(0.04), q=np.zeros((4, 2)))
    fleet.vary(limits=factors)
    alone = [fw.Simulation(geared(0.04 * x)) for x in factors[:, 2]]
    for k in range(500):
        u = [0.5 * np.sin(8e-3 * k)]
        for sim in (fleet, *alone):
            sim.step(control=u)
    for q, sim in zip(fleet.q, alone, strict=True):
        np.testing.assert_allclose(q, sim.q, atol=1e-12)
    assert np.ptp(fleet.q[:, 0] - fleet.q[:, 1]) > 0.01


def test_drives_without_inertia_have_no_backlash() -> None:
    description = fw.read(GEARED.format(drive="", own="", tendon="", joint="hinge"))
    with pytest.raises(fw.ModelError, match=r"backlash of joint 'hinge': its drive has no inertia"):
        description.with_backlash("hinge", 0.01)


def test_energy_of_tendon_springs_is_kept() -> None:
    """Check that the midpoint rule conserves energy to rounding."""
    file = text("Euler", springs='stiffness="30" springlength=".3"', slack='stiffness="3" springlength="-.1 .2"').replace(
        DRIVES, ""
    )
    sim = fw.Simulation(fw.load(file), 0.001, "midpoint", contact="rigid")
    before = sim.energy()
    sim.run(0.5)
    assert sim.energy() == pytest.approx(before, rel=1e-11)


@pytest.mark.parametrize("integrator", ["RK4", "Euler"])
def test_bounds_of_all_drives_along_a_tendon(integrator: str, tmp_path: Path) -> None:
    """Check bounds of the sum of all forces before their gears and their own limits, in MuJoCo's order."""
    file = f"""<mujoco><option integrator="{integrator}" timestep=".002"/><worldbody>
<body><joint name="a" axis="0 1 0"/><geom size=".1" pos=".1 0 0"/>
<body pos=".3 0 0"><joint name="b" axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body></body></worldbody>
<tendon><fixed name="t" actuatorfrcrange="-1 2"><joint joint="a" coef="1"/><joint joint="b" coef="2"/></fixed></tendon>
<actuator><motor tendon="t" gear="-3"/><motor name="x1" tendon="t" gear="2" forcerange="-1 .4"/><position joint="a" kp="2"/>
<position tendon="t" gear=".5" kp="3"/><dcmotor tendon="t" resistance="2" motorconst=".4" cogging=".3 5 .2"/></actuator>
<sensor><tendonactuatorfrc tendon="t"/><actuatorfrc actuator="x1"/></sensor></mujoco>"""
    robot, model = fw.load(file), mujoco.MjModel.from_xml_string(file)
    data, sim = mujoco.MjData(model), fw.Simulation(robot, 0.002)
    rng, scaled = np.random.default_rng(0), 0
    for k in range(200):
        if k % 10 == 0:
            data.ctrl[:] = rng.normal(0.0, 2.0, 5)
        q, v, u = sim.q, sim.v, data.ctrl.copy()
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(sim.forces.of_drives(q, v, u), data.qfrc_actuator, atol=1e-12)
        mujoco.mj_step(model, data)
        sim.step(control=u)
        np.testing.assert_allclose(sim.sensors(), data.sensordata, atol=1e-11)
        if integrator == "RK4":  # semi-implicit steps treat the servo implicitly, MuJoCo does not
            np.testing.assert_allclose(sim.q, data.qpos, atol=1e-12)
        scaled += not -1.0 < data.ctrl[[0, 1, 3]].sum() < 2.0
    assert 20 < scaled < 180
    fw.read(file).save(tmp_path / "saved.xml")
    assert fw.load(tmp_path / "saved.xml", execution="interpreted").model.tendons == robot.model.tendons


def test_many_robots_take_the_bits_of_one_and_copies_go_on() -> None:
    robot = fw.load(text("RK4", **SPRINGS, **HELD))
    rng, nu = np.random.default_rng(1), len(robot.actuators)
    q, v = np.tile(robot.start(), (5, 1)), 0.1 * rng.normal(size=(5, robot.nv))
    u = np.array([[controls(nu, 100 * i + k) for k in range(30)] for i in range(5)])
    many = fw.Simulation(robot, contact="rigid")
    states, _ = many.rollout(q, v, control=u)
    many.reset(q, v)
    for k in range(30):
        many.step(control=u[:, k])
    one = fw.Simulation(robot, contact="rigid")
    for i in range(5):
        one.reset(q[i], v[i])
        for k in range(30):
            one.step(control=u[i, k])
        np.testing.assert_array_equal(one.q, states[i, -1])
        np.testing.assert_array_equal(one.activation, many.activation[i])
    assert one.activation.shape == (6,) and one.activation.any()
    copied = copy.deepcopy(one)
    for sim in (one, copied):
        sim.step(control=u[0, 0], steps=3)
    np.testing.assert_array_equal(one.activation, copied.activation)
    one.reset()
    assert not one.activation.any()


def test_activations_may_be_assigned() -> None:
    robot = fw.load(text("Euler"))
    sim = fw.Simulation(robot)
    sim.activation = np.linspace(0.0, 0.4, 6)
    np.testing.assert_array_equal(sim.activation, np.linspace(0.0, 0.4, 6))
    with pytest.raises(ValueError, match="activation must be finite numbers of shape"):
        sim.activation = [1.0]


def test_a_rigid_step_with_tendons_has_derivatives() -> None:
    watched(fw.Simulation(fw.load(text("Euler")), contact="rigid"), most=1e-5)
