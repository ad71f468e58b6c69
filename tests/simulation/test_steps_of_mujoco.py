"""Tests of steps with the contact law of MJCF files: those of MuJoCo's integrators, for stiff drives and dampers, too."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherweight as fw
from simulation.beside_mujoco import BesideMujoco

LATER = tuple(map(int, mujoco.__version__.split(".")[:2])) >= (4, 0)

# an arm with a spring, a strong damper and a servo pushes a ball about; both are far from the limit of short steps
ARM = """<mujoco><option timestep="0.005" integrator="{integrator}"><flag {flag}/></option><compiler angle="radian"/><worldbody>
<geom type="plane" size="5 5 .1"/>
<body pos="0 0 .5"><joint name="a" axis="0 1 0" damping="20" armature=".01"/>
  <geom type="capsule" size=".03" fromto="0 0 0 .4 0 0" mass="1"/>
  <body pos=".4 0 0"><joint name="b" axis="0 1 0" stiffness="40" springref=".7" {damping} range="-1 .3"/>
    <geom type="capsule" size=".03" fromto="0 0 0 .4 0 -.2" mass="1"/></body></body>
<body pos=".7 0 .1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1" damping="50"/>
  <geom type="sphere" size=".1" mass="2"/></body>
</worldbody><actuator><position name="servo" joint="a" kp="200" kv="{kv}" forcerange="-30 30"/></actuator></mujoco>"""


def pair_of(text: str, **options: str) -> BesideMujoco:
    return BesideMujoco(fw.load(text), mujoco.MjModel.from_xml_string(text), **options)


@pytest.mark.parametrize("kv", [0, 3])
@pytest.mark.parametrize("damping", ['damping="2"', 'damping=".5 .03 .02"'])
@pytest.mark.parametrize(("integrator", "flag"), [("Euler", ""), ("Euler", 'eulerdamp="disable"'), ("implicitfast", "")])
def test_steps_are_mujocos(integrator: str, flag: str, damping: str, kv: int) -> None:
    """Check springs, dampers and a drive that also reaches its bounds, in contact and at a limit, by single steps.

    Dampers act after the impulses, which would otherwise differ by the ratio of h times the damping to the inertia.
    """
    if " " in damping and not hasattr(mujoco.MjModel, "dof_dampingpoly"):
        pytest.skip("this version of MuJoCo has linear dampers only")
    pair = pair_of(ARM.format(integrator=integrator, flag=flag, damping=damping, kv=kv))
    touched = limited = bounded = False
    for k in range(200):
        pair.sim.q, pair.sim.v = pair.order.robot_state(pair.data.qpos, pair.data.qvel)
        pair.step(np.array([0.5 if k < 100 else -0.8]))
        assert pair.faster < 1e-7
        touched, limited = touched or pair.data.ncon > 1, limited or bool((pair.data.efc_type == 3).any())
        bounded = bounded or abs(pair.data.actuator_force[0]) == 30.0
    assert touched and limited and bounded


def test_files_say_whether_damping_is_explicit(tmp_path: Path) -> None:
    """Check files with the flag, also after they are saved; other laws keep their own steps."""
    description = fw.read(ARM.format(integrator="Euler", flag='eulerdamp="disable"', damping="", kv=0))
    description.save(tmp_path / "saved.xml")
    assert fw.read(tmp_path / "saved.xml").integrator == description.integrator == "explicit euler"
    assert fw.Simulation(fw.build(description)).integrator == "semi-implicit"


def test_other_laws_evaluate_stiff_drives_at_the_end_of_a_step() -> None:
    """Check a drive that vibrates in MuJoCo's steps, and comes to rest in the library's own."""
    text = """<mujoco><option timestep=".01"/><worldbody><body><joint name="a" axis="0 1 0"/>
    <geom size=".1" mass="1" pos=".3 0 0"/></body></worldbody><actuator><position joint="a" kp="2000"/></actuator></mujoco>"""
    own, theirs = pair_of(text, contact="compliant").sim, pair_of(text).sim
    for sim in (own, theirs):
        sim.step(control=np.array([0.1]), steps=100)
    assert abs(own.v[0]) < 1e-3 and abs(theirs.v[0]) > 1.0


@pytest.mark.parametrize("joints", ['axis="0 0 1" armature="1"', 'axis="0 0 1"/><joint type="slide" axis="1 0 0"'])
@pytest.mark.parametrize(
    "rest", ['pos="0 0 0"', 'pos=".01 0 0"', 'pos="0 0 0"/><site/><geom size=".01" mass=".1" pos=".1 0 0"']
)
def test_the_softness_of_bodies_that_only_slide_is_mujocos(joints: str, rest: str) -> None:
    """Check bodies with their centre of mass at the origin, for which MuJoCo takes the inverse of the mass, and others."""
    text = f"""<mujoco><option timestep=".005"/><worldbody><geom type="plane" size="5 5 .1"/><body pos="0 0 .099">
    <joint type="slide" {joints} range="-.01 1"/><geom size=".1" mass="2" {rest}/></body></worldbody></mujoco>"""
    pair = pair_of(text)
    for _ in range(100):
        pair.step()
        assert pair.faster < 1e-8
    assert pair.data.ncon == 1


# dampers and drives along lengths of one and of two branches, gains that depend on velocity, and free bodies
IMPLICIT = """<mujoco><option timestep="{step}" integrator="{integrator}"/><compiler angle="radian"/><worldbody>
<body pos="0 0 1"><joint name="lift" type="slide" axis="0 0 1" damping="1"/><geom size=".05" mass="1"/><site name="palm"/>
  <body pos=".1 0 0"><joint name="left" type="slide" axis="1 0 0" armature=".01"/><geom size=".02" mass=".1"/>
    <site name="tip" pos=".05 0 .1"/><body pos="0 0 .1"><joint name="bend" axis="0 1 0" actuatorfrcrange="-.5 .5"/>
      <geom size=".03" pos=".1 0 .1" mass=".2"/><site name="end" pos=".2 0 .1"/></body></body>
  <body pos="-.1 0 0"><joint name="right" type="slide" axis="1 0 0"/><geom size=".02" mass=".1"/></body></body>
<body name="block" pos="1 0 1"><joint type="free" damping=".02"/><geom type="box" size=".05 .1 .15" pos=".03 .02 .01"/>
  <body pos="0 .1 0"><geom size=".03"/></body></body>
</worldbody><tendon>
  <fixed name="grip" damping="4"><joint joint="left" coef="1"/><joint joint="right" coef="-1"/></fixed>
  <fixed name="bounded" actuatorfrcrange="-1 1"><joint joint="lift" coef="1"/><joint joint="left" coef=".5"/></fixed>
  <spatial name="string" damping="2 .5 .3" stiffness="20"><site site="palm"/><site site="end"/></spatial>
</tendon><actuator>
  <general tendon="grip" biastype="affine" gainprm="100" biasprm="0 -100 -10" ctrlrange="-1 1"/>
  <general tendon="bounded" biastype="affine" gainprm="2" biasprm="0 0 -3" ctrlrange="-1 1"/>
  <damper joint="bend" kv=".3" ctrlrange="0 1"/><muscle joint="left" lengthrange="-.2 .2" force="5"/>
  <position joint="bend" kp="2" kv=".2"/>
  <general site="tip" refsite="palm" gear="0 0 1 0 0 0" biastype="affine" biasprm="0 0 -1"/>
</actuator></mujoco>"""


@pytest.mark.parametrize(("integrator", "step"), [("Euler", 0.001), ("implicitfast", 0.01)])
def test_what_acts_at_the_end_of_a_step_is_what_acts_there_in_mujoco(integrator: str, step: float) -> None:
    """Check lengths of one and of two branches, of which MuJoCo leaves out pairs, forces at bounds, and a body that spins."""
    pair = pair_of(IMPLICIT.format(integrator=integrator, step=step))
    pair.data.qvel[-6:], rng = (1.0, 2.0, -1.0, 9.0, -4.0, 6.0), np.random.default_rng(0)
    bounded, free = set[str](), set[str]()
    for k in range(100):
        if k % 10 == 0:
            control = rng.uniform(-1.0, 1.0, 6)
        pair.sim.q, pair.sim.v = pair.order.robot_state(pair.data.qpos, pair.data.qvel)
        pair.sim.activation = pair.data.act
        pair.step(control)
        assert pair.faster < 1e-11
        for what, force, most in (("tendon", pair.data.actuator_force[1], 1.0), ("joint", pair.data.qfrc_actuator[2], 0.5)):
            (bounded if abs(force) > most - 1e-9 else free).add(what)
    assert bounded == free == {"tendon", "joint"}


RUNGE_KUTTA = """<mujoco><option timestep="0.01" integrator="RK4"/><compiler angle="radian"/><worldbody>
<geom type="plane" size="5 5 .1"/><body pos="0 0 .3"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
  <joint axis="0 1 0" damping=".1"/><geom type="capsule" size=".05" fromto="-.2 0 0 .2 0 0" mass="1"/>
  <body pos=".2 0 0"><joint name="k" axis="0 1 0" range=".5 1.5" armature=".01" stiffness="2" frictionloss=".1"/>
    <geom type="capsule" size=".04" fromto="0 0 0 .2 0 -.1" mass=".5"/></body></body>
</worldbody><actuator><general joint="k" dyntype="filter" dynprm=".05" gainprm="2"/></actuator></mujoco>"""


def test_contacts_act_in_each_stage_of_runge_kutta() -> None:
    """Check a leg that falls, bounces at its limit and lies, driven by a filtered control."""
    pair = pair_of(RUNGE_KUTTA)
    assert pair.sim.integrator == "rk4"
    for k in range(200):
        pair.step(np.array([1.0 if k % 40 < 20 else -1.0]))
        assert pair.away < 1e-6 and pair.faster < 1e-5
        assert pair.sim.activation[0] == pytest.approx(pair.data.act[0], abs=1e-12)
    assert pair.data.ncon > 0 and pair.data.nf > 0


@pytest.mark.skipif(not LATER, reason="older versions of MuJoCo average angular velocities in the axes of bodies")
def test_rotations_by_runge_kutta_are_mujocos() -> None:
    """Check a free body with two others on ball joints, which turn by up to half a radian in a step."""
    link = '<body pos="{0}"><joint type="ball" damping=".1"/><geom type="box" size=".1 .05 .07" pos=".1 0 0" mass=".5"/>'
    pair = pair_of(f"""<mujoco><option timestep="0.03" integrator="RK4"><flag contact="disable"/></option>
    <worldbody><body pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3" pos=".1 0 .1" mass="1"/>
    {link.format(".1 .2 .3")}{link.format("1 0 .1")}</body></body></body></worldbody></mujoco>""")
    rng = np.random.default_rng(0)
    for _ in range(20):
        mujoco.mj_resetData(pair.model, pair.data)
        mujoco.mj_integratePos(pair.model, pair.data.qpos, rng.normal(size=12), 1.0)
        pair.data.qvel[:] = rng.normal(scale=5.0, size=12)
        pair.sim.q, pair.sim.v = pair.order.robot_state(pair.data.qpos, pair.data.qvel)
        pair.step()
        assert pair.away < 1e-12 and pair.faster < 1e-10


@pytest.mark.skipif(not LATER, reason="older versions of MuJoCo damp joints whose drives are at the joint's effort limit")
@pytest.mark.parametrize("joint", ['actuatorfrcrange="-10 10"', ""])
@pytest.mark.parametrize("drive", ['forcerange="-5 5"', ""])
def test_drives_at_a_limit_do_not_damp_at_the_end_of_a_step(joint: str, drive: str) -> None:
    text = f"""<mujoco><option integrator="implicitfast" timestep=".01" gravity="0 0 0"/><worldbody><body>
    <joint name="j" type="slide" {joint}/><geom size=".1" mass="1"/></body></worldbody>
    <actuator><position joint="j" kp="1000" kv="100" {drive}/><velocity joint="j" kv="50"/></actuator></mujoco>"""
    pair = BesideMujoco(fw.load(text), mujoco.MjModel.from_xml_string(text))
    for _ in range(30):
        pair.step(np.array([1.0, 0.1]))
        assert pair.faster < 1e-12


def test_a_damped_arm_that_is_welded_to_a_mocap_body_moves_as_in_mujoco() -> None:
    """Check that the weld sees the inertia of the arm without its damping, which is 50 times as large in a step."""
    link = '<joint axis="{0}" damping="50" armature=".1"/><geom type="capsule" size=".04" fromto="0 0 0 .4 0 0" mass="1"/>'
    text = f"""<mujoco><option timestep="0.002"/><worldbody><body name="hand" mocap="true" pos=".7 .1 .9"/>
    <body pos="0 0 1">{link.format("0 1 0")}<body pos=".4 0 0">{link.format("0 0 1")}
      <body name="tip" pos=".4 0 0">{link.format("0 1 0")}</body></body></body></worldbody>
    <equality><weld body1="hand" body2="tip" relpose="0 0 0 1 0 0 0"/></equality></mujoco>"""
    pair = BesideMujoco(fw.load(text, equalities="compliant"), mujoco.MjModel.from_xml_string(text))
    for _ in range(250):
        pair.step()
    assert pair.away < 1e-8 < 1e-2 < np.abs(pair.data.qpos).max()
