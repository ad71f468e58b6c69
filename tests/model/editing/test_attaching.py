"""Tests of robots attached to robots: against Pinocchio's appendModel, and against one file; with all contents."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from featherweight import Actuator, Coupling, Frame, ModelError, Pose, Shape, ShapeType, robots
from featherweight.model.contact_rules import TAKEN_AS_EXACT
from featherweight.model.editing.references import grounded
from featherweight.model.formats.srdf import with_srdf
from featherweight.model.generators import chain, from_parents
from featherweight.model.types import WORLD, Fluid
from oracles import robots as examples
from oracles.pinocchio_models import Peer
from oracles.same_motion import assert_same_motion, interpreted
from oracles.states import assert_close, random_states

TILTED = Pose(((0.0, -1.0, 0.0), (0.6, 0.0, -0.8), (0.8, 0.0, 0.6)), (0.1, -0.2, 0.3))


@pytest.mark.parametrize(("arm", "frame", "hand"), [("ur5", "tool0", "allegro"), ("solo12", "FL_LOWER_LEG", "double_pendulum")])
def test_robots_are_pinocchios_appended_models(arm: str, frame: str, hand: str) -> None:
    floating = [pin.JointModelFreeFlyer()] if arm in examples.FLOATING else []
    first = pin.buildModelFromUrdf(str(examples.path(arm)), *floating)
    second = pin.buildModelFromUrdf(str(examples.path(hand)))
    for joint in range(1, second.njoints):
        second.names[joint] = "hand_" + second.names[joint]
    for f in second.frames:
        f.name = "hand_" + f.name
    placement = pin.SE3(np.array(TILTED.R), np.array(TILTED.p))
    frame_id = first.getFrameId(frame, pin.FrameType.BODY)
    both = pin.appendModel(first, second, frame_id, placement)
    whole = fw.read(examples.path(arm), mimic="independent")
    whole = whole.attached(fw.read(examples.path(hand), mimic="independent"), frame, TILTED, prefix="hand_")
    peer = Peer(interpreted(whole, "floating" if floating else "fixed"), both)
    states = random_states(peer.robot, 2)
    assert_close(peer.robot.mass_matrix(states.q), peer.mass_matrix(states.q))
    assert_close(peer.robot.inverse_dynamics(*states), peer.inverse_dynamics(*states))


ARM = """<link name="base"/><link name="upper"><inertial><origin xyz="0 0 0.2"/><mass value="2"/>
<inertia ixx="0.1" iyy="0.1" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="flange"/>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" effort="5" velocity="1"/></joint>
<joint name="flange_fixed" type="fixed"><origin xyz="0 0 0.4" rpy="0.3 0 0"/>
<parent link="upper"/><child link="flange"/></joint>"""
FINGERS = """<link name="{p}palm"><inertial><mass value="0.5"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="{p}left"><inertial><origin xyz="0 0.01 0.05"/><mass value="0.1"/>
<inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><box size="0.01 0.02 0.1"/></geometry></visual></link>
<link name="{p}right"><inertial><origin xyz="0 -0.01 0.05"/><mass value="0.1"/>
<inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="{p}open" type="prismatic"><parent link="{p}palm"/><child link="{p}left"/><axis xyz="0 1 0"/>
<limit lower="0" upper="0.05" effort="9" velocity="1"/></joint>
<joint name="{p}open2" type="prismatic"><parent link="{p}palm"/><child link="{p}right"/><axis xyz="0 -1 0"/>
<limit lower="0" upper="0.05" effort="9" velocity="1"/><mimic joint="{p}open"/></joint>"""
MOUNT = (
    '<joint name="mount" type="fixed"><origin xyz="0 0 0.1" rpy="0 0 1"/><parent link="flange"/><child link="g_palm"/></joint>'
)


def test_an_arm_with_a_gripper_is_the_file_that_holds_both(tmp_path: Path) -> None:
    def read(text: str) -> fw.Description:
        path = tmp_path / "robot.urdf"
        path.write_text(f'<robot name="r">{text}</robot>')
        return fw.read(path)

    arm, gripper = read(ARM), read(FINGERS.format(p=""))
    c, s = np.cos(1.0), np.sin(1.0)
    mount = Pose(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)), (0.0, 0.0, 0.1))
    by_hand = interpreted(read(ARM + FINGERS.format(p="g_") + MOUNT))
    for frame in ("flange", "flange_fixed"):
        made = interpreted(arm.attached(gripper, frame, mount, prefix="g_"))
        assert [j.name for j in made.joints] == [j.name for j in by_hand.joints]
        assert [(j.lower, j.upper, j.effort) for j in made.joints] == [(j.lower, j.upper, j.effort) for j in by_hand.joints]
        assert [s.body for s in made.shapes] == [s.body for s in by_hand.shapes] == ["g_left"]
        assert_same_motion(made, by_hand)


def test_all_that_the_other_has_comes_along() -> None:
    other = dataclasses.replace(
        robots.four_bar((0.5, 1.2, 0.6, 1.0)),
        frames=(Frame("tip", "link2", TILTED), Frame("foot", WORLD)),
        shapes=(
            Shape("floor", None, ShapeType.PLANE, ()),
            Shape("bar", "link1", ShapeType.BOX, (0.1, 0.1, 0.5)),
            Shape("ground", None, ShapeType.BOX, (1.0, 1.0, 0.1)),
        ),
        actuators=(Actuator("motor", "joint1"),),
        unused=(("sensors", "3"),),
        gravity=(0.0, 0.0, -1.62),
    )
    whole = dataclasses.replace(chain(2), unused=(("sensors", "1"),)).attached(other, "body1", TILTED, prefix="a_")
    assert [f.name for f in whole.frames] == ["a_tip", "a_foot"]
    assert [(s.name, s.body) for s in whole.shapes] == [("a_bar", "a_link1"), ("a_ground", "body1")]
    assert [(a.name, a.joint) for a in whole.actuators] == [("a_motor", "a_joint1")]
    assert whole.independent == ("a_joint1",)
    assert whole.shapes[1].placement == TILTED
    (loop,) = whole.loops
    assert (loop.predecessor, loop.successor) == ("a_link2", "a_link3")
    assert dict(whole.unused)["sensors"] == "1, 3 (of four_bar)"
    assert "gravity of what was attached" in dict(whole.unused)
    assert dict(whole.unused)["planes on the ground of what was attached"] == "a_floor (of four_bar)"
    assert "a_floor" in [s.name for s in chain(2).attached(other, prefix="a_").shapes]
    robot = interpreted(whole)
    assert robot.nv == 3
    assert dict(robot.report())["sensors"] == "1, 3 (of four_bar)"


def test_a_robot_on_the_ground_stays_as_it_is() -> None:
    whole = chain(2).attached(robots.four_bar((0.5, 1.2, 0.6, 1.0)), prefix="bar_")
    names = {j.name: f"bar_{j.name}" for j in robots.four_bar().joints}
    names |= {name: f"bar_{name}" for name in ("link1", "link2", "link3")}
    back = {new: old for old, new in names.items()}
    part = interpreted(whole.without("body0"))
    assert_same_motion(part, interpreted(robots.four_bar((0.5, 1.2, 0.6, 1.0))), called=back)
    assert interpreted(whole).nv == 3


def test_a_first_joint_of_its_own_joins_it() -> None:
    """Check a robot whose root has a joint with the ground: this joint hangs it on the frame."""
    made = chain(2).attached(from_parents([-1, 0], rng=4), "body1", TILTED, prefix="b_")
    assert next(j for j in made.joints if j.name == "b_joint0").parent == "body1"
    assert interpreted(made).nv == 4


def test_loops_to_the_ground_lead_to_the_frame() -> None:
    bars = robots.four_bar((0.5, 1.2, 0.6, 1.0))
    loop = fw.Loop("pin", fw.LoopType.SPHERICAL, WORLD, "link2", TILTED)
    made = chain(2).attached(dataclasses.replace(bars, loops=(loop,)), "body1", TILTED, prefix="b_")
    assert made.loops == (fw.Loop("b_pin", fw.LoopType.SPHERICAL, "body1", "b_link2", TILTED @ TILTED),)


def test_a_body_that_is_called_world_is_not_the_ground_of_the_other() -> None:
    moving = from_parents([-1, 0], rng=5)
    assert {j.parent for j in moving.joints} == {WORLD, "body0"}
    named = chain(2).renamed({"body0": "a", "body1": WORLD, "joint0": "ja", "joint1": "jb"})
    for both in (moving.attached(named), named.attached(moving)):
        assert interpreted(both).nv == 4
        assert_same_motion(interpreted(both.without("a")), interpreted(moving))
        assert_same_motion(interpreted(both.without("body0")), interpreted(named))


def test_names_that_both_have_are_refused_with_a_remedy() -> None:
    with pytest.raises(
        ModelError, match=r'both have bodies with the names body0, body1; give a prefix, such as prefix="left_"'
    ):
        chain(3).attached(chain(2))
    first = chain(2).with_coupling(Coupling("gear", "joint1", (("joint0", (1.0,)),)))
    second = first.renamed({"joint0": "j0", "joint1": "j1", "body0": "b0", "body1": "b1"})
    with pytest.raises(ModelError, match="both have couplings with the names gear"):
        first.attached(second)
    with pytest.raises(ModelError, match=r"attached: there is no body, frame or fixed joint 'flang'; there are body0, body1"):
        chain(2).attached(chain(2), "flang", prefix="b_")


def test_what_is_no_description_is_refused() -> None:
    with pytest.raises(
        TypeError,
        match=r"attached: other must be a Description, .*; got 'hand.urdf'; read it: featherweight.read",
    ):
        chain(2).attached("hand.urdf")  # type: ignore[arg-type]


def test_copies_on_copies() -> None:
    hand = from_parents([-1, 0], rng=6)
    both = chain(1).attached(hand, "body0", prefix="l_").attached(hand, "body0", TILTED, prefix="r_")
    assert [j.name for j in both.joints] == ["joint0", "l_joint0", "l_joint1", "r_joint0", "r_joint1"]
    assert interpreted(both).nv == 5


EXCLUDING = """<mujoco model="{name}"><option timestep="{step}" integrator="{integrator}" gravity="{gravity}"/><worldbody>
<geom name="floor" type="box" size="1 1 .1"/>
<body name="b"><joint name="j" axis="0 1 0"/><geom name="g" size=".1" pos=".2 0 0"/><site name="s"/><camera name="e"/>
<body name="c" pos=".4 0 0"><joint name="k" axis="0 1 0"/><geom name="h" size=".1" pos=".2 0 0"/></body></body></worldbody>
<contact><exclude body1="world" body2="b"/><pair geom1="floor" geom2="h" friction="0.3 0.3"/></contact>
<equality><joint name="gear" joint1="k" joint2="j"/></equality><actuator><motor name="m" joint="j"/></actuator>
<tendon><spatial name="t"><site site="s"/><geom geom="h"/><site site="s"/></spatial></tendon>
<keyframe><key name="home" qpos="0.1 0.1"/></keyframe><sensor><jointpos joint="j"/><user dim="1"/></sensor></mujoco>"""


def everything(name: str, step: float, integrator: str, gravity: str) -> fw.Description:
    """Return a description in which no field has its default."""
    text = EXCLUDING.format(name=name, step=step, integrator=integrator, gravity=gravity)
    d = dataclasses.replace(
        fw.read(text),
        loops=(fw.Loop("pin", fw.LoopType.SPHERICAL, "b", None),),
        closures=(fw.Closure("own", ("j",), lambda q: [q[0]]),),
        independent=("j",),
        dependent=("k",),
        led_tendons=("led",),
        virtual=frozenset(["b"]),
        impratio=3.0,
        noslip=4,
        fluid=Fluid(1000.0, 0.1),
    )
    empty = fw.describe([], [])
    assert [f.name for f in dataclasses.fields(d) if getattr(d, f.name) == getattr(empty, f.name)] == []
    return d


JOINED = (
    "bodies", "joints", "frames", "loops", "couplings", "closures", "independent", "dependent", "shapes", "tendons",
    "actuators", "disabled_collisions", "contact_pairs", "cameras", "sensors", "led_tendons",
)  # fmt: skip
MERGED = ("unused", "virtual", "configurations")
OF_THE_FIRST = ("name", "source", "gravity")
OF_THE_FIRST_THAT_HAS_ONE = ("timestep", "integrator", "neighbours", "cone", "impratio", "noslip", "fluid")


def test_no_field_of_a_description_is_lost() -> None:
    """Check that each field of two descriptions is in their combination or in its report. A new field fails this test."""
    sorts = (*JOINED, *MERGED, *OF_THE_FIRST, *OF_THE_FIRST_THAT_HAS_ONE)
    assert sorted(sorts) == sorted(f.name for f in dataclasses.fields(fw.Description))
    first, other = everything("first", 0.01, "RK4", "0 0 -9"), everything("other", 0.02, "Euler", "0 0 -1")
    both = first.attached(other, "c", prefix="o_")
    for field in JOINED:
        ours, theirs = getattr(first, field), getattr(other, field)
        assert len(getattr(both, field)) == len(ours) + len(theirs), field
        assert getattr(both, field)[: len(ours)] == getattr(grounded(first), field), field
    assert both.virtual == {"b", "o_b"}
    assert [dict(c.coordinates).keys() for c in both.configurations] == 2 * [{"j", "k", "o_j", "o_k"}]
    assert both.disabled_collisions == ((None, "b"), ("c", "o_b"))
    assert both.contact_pairs[1].shapes == ("o_floor", "o_h")
    for field in (*OF_THE_FIRST, *OF_THE_FIRST_THAT_HAS_ONE):
        assert getattr(both, field) == getattr(first, field), field
    assert dict(both.unused) == {
        "sensors": "1 user, 1 user (of other)",
        TAKEN_AS_EXACT: "1, 1 (of other)",
        "gravity of what was attached": "(0.0, 0.0, -1.0) (of other)",
        "time step of what was attached": "0.02 (of other)",
        "integrator of what was attached": "euler (of other)",
    }
    alone = fw.describe([], [], name="stand", gravity=other.gravity).attached(other)
    for field in OF_THE_FIRST_THAT_HAS_ONE:
        assert getattr(alone, field) == getattr(other, field), field
    assert dict(alone.unused) == {"sensors": "1 user (of other)", TAKEN_AS_EXACT: "1 (of other)"}


def test_contacts_with_the_ground_stay_disabled_in_a_part(tmp_path: Path) -> None:
    d = fw.read(EXCLUDING.format(name="r", step=0.01, integrator="Euler", gravity="0 0 -9"))
    assert d.disabled_collisions == (("world", "b"),)
    part = dataclasses.replace(d, couplings=(), tendons=()).without("c").renamed({"b": "arm"})
    assert part.disabled_collisions == ((None, "arm"),)
    part.save(tmp_path / "part.srdf")
    bare = dataclasses.replace(part, disabled_collisions=(), configurations=())
    assert with_srdf(bare, tmp_path / "part.srdf").disabled_collisions == ((WORLD, "arm"),)


def test_a_placement_may_be_a_homogeneous_matrix() -> None:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = TILTED
    d, other = chain(2), chain(1)
    assert d.attached(other, "body1", T, prefix="a_") == d.attached(other, "body1", TILTED, prefix="a_")
    T[3] = 5.0, 6.0, 7.0, 8.0
    with pytest.raises(ValueError, match="attached: placement must be a rotation and a translation, with 0, 0, 0, 1 as its"):
        d.attached(other, "body1", T, prefix="a_")
