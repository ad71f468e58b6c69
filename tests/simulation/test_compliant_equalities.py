"""Tests of equalities that the springs and dampers of the file hold, against MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.model.contact_rules import TAKEN_AS_EXACT
from featherweight.robot.tendons.length_functions import LengthFunctions
from featherweight.robot.tendons.tendon_table import length_table
from simulation.beside_mujoco import BesideMujoco

OFF = 'contype="0" conaffinity="0"'
BODIES = f"""<body name="a" pos="0 0 1"><joint name="j1" axis="0 1 0"/>
<geom type="capsule" size=".03" fromto="0 0 0 .4 0 0" {OFF}/>
<body name="b" pos=".4 0 0"><joint name="j2" axis="0 1 0.2"/><geom type="capsule" size=".03" fromto="0 0 0 .3 .1 0" {OFF}/>
<body name="tip" pos=".3 .1 0"><geom size=".04" {OFF}/><site name="s" pos=".02 0 0" euler="10 20 30"/></body></body></body>
<body name="c" pos=".5 .5 1"><joint name="j3" axis="1 0 0"/><joint name="j4" type="slide" axis="0 1 0"/>
<geom type="capsule" size=".03" fromto="0 0 0 0 .4 0" {OFF}/><site name="t" pos="0 .1 0"/></body>
<body name="m" mocap="true" pos=".7 .1 1"/>
<body name="f" pos="0 -1 1"><freejoint name="free"/><geom type="box" size=".1 .2 .05" {OFF}/></body>"""
TENDONS = """<tendon><fixed name="t1"><joint joint="j1" coef="2"/><joint joint="j3" coef="-1"/></fixed>
<fixed name="t2"><joint joint="j2" coef="1"/><joint joint="j4" coef="1.5"/></fixed>
<fixed name="t3"><joint joint="j3" coef="3"/></fixed></tendon>"""
EQUALITIES = {
    "connect": '<connect body1="tip" body2="c" anchor=".1 .2 0"/>',
    "weld to a mocap body": '<weld body1="m" body2="tip" torquescale=".3"/>',
    "weld of a free body": '<weld body1="f" body2="c" anchor=".1 .2 0" solref=".05 .7" solimp=".5 .9 .02 .3 3"/>',
    "weld of sites": '<weld site1="s" site2="t" solref="-500 -20"/>',
    "joints": '<joint joint1="j1" joint2="j4" polycoef=".1 2 .5 -.3 .2"/><joint joint1="j3" polycoef=".2 0 0 0 0"/>',
    "tendons": '<tendon tendon1="t1" tendon2="t2" polycoef=".02 .7 .4 -.2 .1"/><tendon tendon1="t3" polycoef=".05 0 0 0 0"/>',
    "a tendon that a joint follows": '<tendon tendon1="t1" polycoef=".1 0 0 0 0" solref=".03 .8"/>',
    "two": '<connect body1="tip" body2="c" anchor=".1 .2 0"/><joint joint1="j1" joint2="j3" polycoef="0 1 0 0 0"/>',
}
LATER = tuple(map(int, mujoco.__version__.split(".")[:2])) >= (4, 0)
SINCE = "older versions of MuJoCo leave out how constraints turn (the rate of their Jacobian)"


def text(equality: str) -> str:
    option = '<option timestep="0.001" cone="elliptic" iterations="200" tolerance="1e-14"/>'
    return f"<mujoco>{option}<worldbody>{BODIES}</worldbody>{TENDONS}<equality>{equality}</equality></mujoco>"


@pytest.mark.skipif(not LATER, reason=SINCE)
@pytest.mark.parametrize("equality", EQUALITIES.values(), ids=EQUALITIES)
def test_motions_are_mujocos(equality: str) -> None:
    """Check half a second, to the residual of MuJoCo's iterative solver."""
    file = text(equality)
    robot, model = fw.load(file, equalities="compliant"), mujoco.MjModel.from_xml_string(file)
    assert robot.nv == model.nv and not robot.closed
    pair, worst = BesideMujoco(robot, model), 0.0
    for _ in range(500):
        pair.step()
        worst = max(worst, pair.away)
    assert worst < 1e-7
    assert np.abs(pair.data.qpos - model.qpos0).max() > 1e-2  # it moved


LED = """<tendon><fixed name="both" stiffness="20" damping=".3" springlength=".2" frictionloss=".1"
range="-.1 .3" limited="true">
<joint joint="j1" coef=".5"/><joint joint="j3" coef="1.5"/></fixed></tendon>
<actuator><motor name="pull" tendon="both"/></actuator>
<equality><joint joint1="j3" joint2="j1" polycoef="0 .7 0 0 0" solref=".1 1"/></equality>"""


def test_tendons_of_joints_that_follow_softly_act_on_all_their_joints() -> None:
    """Compare with MuJoCo; with exact equalities, the tendon is one of the joint that the others follow."""
    text = f"<mujoco><option timestep='1e-5'/><worldbody>{BODIES}</worldbody>{LED}</mujoco>"
    robot = fw.load(text, equalities="compliant")
    assert [x.name for x in robot.tendons] == ["both"] and not fw.load(text).tendons
    pair = BesideMujoco(robot, mujoco.MjModel.from_xml_string(text))
    for _ in range(300):
        pair.step(np.array([3.0]))
    assert pair.faster < 1e-6
    with pytest.raises(fw.ModelError, match='exact equalities: both; read the file with equalities="compliant", too'):
        fw.build(fw.read(text), equalities="compliant")
    assert fw.build(fw.read(text, equalities="compliant"), equalities="compliant").nv == robot.nv


MIMIC = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"
ixz="0" iyz="0"/></inertial></link><link name="c"/><joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>
<joint name="k" type="continuous"><parent link="b"/><child link="c"/><mimic joint="j" multiplier="2"/></joint></robot>"""


def test_the_simulation_of_a_file_takes_its_equalities() -> None:
    """Check motions of a file by its text, and robots that are as the contact law needs them."""
    file = f"<mujoco><option timestep='1e-3'/><worldbody>{BODIES}</worldbody>{LED}</mujoco>"
    sim, model = fw.Simulation(file), mujoco.MjModel.from_xml_string(file)
    assert (sim.robot.nq, sim.robot.nv) == (model.nq, model.nv) and TAKEN_AS_EXACT not in sim.robot.report()
    robot = fw.load(file, equalities="file")
    pair = BesideMujoco(robot, model)
    for _ in range(100):
        pair.step(np.array([3.0]))
    np.testing.assert_array_equal(fw.Simulation(robot).run(0.1, control=[3.0]).q[-1], sim.run(0.1, control=[3.0]).q[-1])
    assert pair.faster < 1e-5
    assert fw.Simulation(file, contact="rigid").robot.nv == model.nv - 1
    assert fw.Simulation(MIMIC).robot.nv == 1  # URDF has no law for joints that follow others


def test_exact_equalities_of_a_file_are_reported_unless_asked_for() -> None:
    file = text(EQUALITIES["connect"])
    robot, exact = fw.load(file), fw.load(file, equalities="exact")
    assert isinstance(robot, fw.ClosedRobot) and robot.report()[TAKEN_AS_EXACT] == "1"
    assert exact.closed and TAKEN_AS_EXACT not in exact.report()
    q = robot.close(robot.start())
    with pytest.warns(fw.ModelWarning, match="are exact in this robot, and yield in MuJoCo"):
        fw.Simulation(robot, q=q)
    assert fw.Simulation(robot, q=q, contact="rigid").robot is robot
    assert fw.Simulation(exact, q=q).robot is exact


def test_rows_are_the_rates_of_their_lengths() -> None:
    """Check rows against central differences, for distant points and large rotations."""
    file = text(EQUALITIES["weld of sites"] + EQUALITIES["weld of a free body"] + EQUALITIES["joints"])
    robot = fw.load(file, equalities="compliant", execution="interpreted")
    x = LengthFunctions(robot, length_table(robot, ()))
    assert [h.component for h in x.table.compliant] == [*range(6), *range(6), 0, 0]
    q, step, rows = robot.random_configuration(rng=5), 1e-6, len(robot.model.tree.parent)
    _, S = x.evaluate(q)
    for k, e in enumerate(np.eye(robot.nv)):
        ahead, behind = (x.evaluate(robot.integrate(q, s * e))[0][robot.nq :] for s in (step, -step))
        np.testing.assert_allclose(S[rows:, k], (ahead - behind) / (2.0 * step), atol=1e-8)


def test_many_robots_take_the_bits_of_one() -> None:
    robot = fw.load(text(EQUALITIES["two"]), equalities="compliant")
    rng = np.random.default_rng(0)
    q, v = np.tile(robot.start(), (4, 1)), 0.1 * rng.normal(size=(4, robot.nv))
    states, _ = fw.Simulation(robot, contact="file").rollout(q, v, steps=20)
    one = fw.Simulation(robot, contact="file")
    for i in range(4):
        one.reset(q[i], v[i])
        one.step(steps=20)
        np.testing.assert_array_equal(one.q, states[i, -1])
    assert one.limit_forces[len(robot.model.tree.parent) :].any()


def test_what_is_held_exactly_only_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="equalities are compliant, and contact='rigid' holds rigidly"):
        fw.Simulation(fw.load(text(EQUALITIES["connect"]), equalities="compliant"), contact="rigid")
    with pytest.raises(fw.ModelError, match=r"can only be exact: loop .*; build with equalities=\"exact\""):
        fw.build(fw.robots.four_bar(), equalities="compliant")
    with pytest.raises(ValueError, match='equalities must be "exact", "compliant" or "file"; got \'soft\''):
        fw.build(fw.robots.four_bar(), equalities="soft")


def test_softness_is_read_and_kept() -> None:
    d = fw.read(text(EQUALITIES["weld of a free body"]))
    assert d.loops[0].softness.solref == (0.05, 0.7) and d.loops[0].softness.solimp == (0.5, 0.9, 0.02, 0.3, 3.0)
    assert fw.read(text(EQUALITIES["weld to a mocap body"])).loops[0].torque_scale == 0.3
    other = d.renamed({"f": "box"})
    assert other.loops[0].predecessor == "box" and other.loops[0].softness == d.loops[0].softness


def test_softness_is_saved(tmp_path: Path) -> None:
    d = fw.read(text(EQUALITIES["weld of a free body"] + EQUALITIES["weld to a mocap body"] + EQUALITIES["joints"]))
    soft = tuple(replace(c, softness=fw.read(text(EQUALITIES["weld of sites"])).loops[0].softness) for c in d.couplings)
    d = replace(d, couplings=soft)
    d.save(tmp_path / "saved.xml")
    again = fw.read(tmp_path / "saved.xml")
    assert [(x.softness, x.torque_scale) for x in again.loops] == [(x.softness, x.torque_scale) for x in d.loops]
    assert [c.softness for c in again.couplings] == [c.softness for c in d.couplings]
