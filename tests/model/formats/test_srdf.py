"""Tests of SRDF files: Pinocchio's reference configurations, disabled collisions, and unused content."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from featherweight.model.description import Description
from featherweight.model.formats.srdf import with_srdf
from featherweight.model.types import Body, Joint, JointType, ModelError
from oracles import robots

WITH_STATES = {
    "talos": "talos_data/srdf/talos.srdf",
    "icub": "icub_description/srdf/icub.srdf",
    "simple_humanoid": "simple_humanoid_description/srdf/simple_humanoid.srdf",
    "hyq": "hyq_description/srdf/hyq.srdf",
    "anymal": "anymal_c_simple_description/srdf/anymal.srdf",
    "solo12": "solo_description/srdf/solo.srdf",
    "go2": "go2_description/srdf/go2.srdf",
    "panda": "panda_description/srdf/panda.srdf",
    "kinova": "kinova_description/srdf/kinova.srdf",
    "z1": "z1_description/srdf/z1.srdf",
    "baxter": "baxter_description/srdf/baxter_manipulation.srdf",
    "pr2": "pr2_description/srdf/pr2.srdf",
}


@pytest.mark.parametrize("name", WITH_STATES)
def test_group_states_are_the_configurations_that_pinocchio_reads(name: str) -> None:
    """Check to rounding. Quaternions have unit length here, and joints that Pinocchio writes as (cos, sin) are angles."""
    path, srdf, flying = str(robots.path(name)), str(robots.ROOT / WITH_STATES[name]), name in robots.FLOATING
    robot = fw.load(path, "floating" if flying else "fixed", srdf=srdf, mimic="independent", execution="interpreted")
    model = pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer()) if flying else pin.buildModelFromUrdf(path)
    pin.loadReferenceConfigurations(model, srdf, False)
    expected = dict(model.referenceConfigurations.items() if hasattr(model.referenceConfigurations, "items") else ())
    expected = expected or {item.key(): item.data() for item in model.referenceConfigurations}
    assert expected and robot.configurations.keys() == expected.keys()
    for state, theirs in expected.items():
        mine = robot.configurations[state]
        for joint in robot.joints:
            i = model.getJointId(joint.name)
            wanted = theirs[model.idx_qs[i] : model.idx_qs[i] + model.nqs[i]]
            got = mine[joint.q_slice]
            if len(wanted) > len(got):
                got = np.array([math.cos(got[0]), math.sin(got[0])])
            np.testing.assert_allclose(got, wanted, atol=1e-12, err_msg=joint.name)


KINDS = {"hinge": JointType.REVOLUTE, "wheel": JointType.CONTINUOUS, "flat": JointType.PLANAR, "ball": JointType.SPHERICAL}
KINDS["weld"] = JointType.FIXED
ROBOT = Description(
    "robot",
    "robot.urdf",
    tuple(Body(f"b{k}") for k in range(len(KINDS) + 1)),
    tuple(Joint(name, kind, f"b{k}", f"b{k + 1}") for k, (name, kind) in enumerate(KINDS.items())),
)


def read(folder: Path, inside: str) -> Description:
    path = folder / "robot.srdf"
    path.write_text(f'<robot name="r">{inside}</robot>')
    return with_srdf(ROBOT, path)


def state(inside: str, name: str = "home", group: str = "all") -> str:
    return f'<group_state name="{name}" group="{group}">{inside}</group_state>'


def test_joints_of_all_types_are_read_and_the_virtual_joint_is_the_root(tmp_path: Path) -> None:
    values = {"hinge": "0.5", "wheel": "7", "flat": "1 2 0.3", "ball": "0 0.6 0 0.8", "odom": "1 2 3 0 0 0 1"}
    joints = "".join(f'<joint name="{name}" value="{value}"/>' for name, value in values.items())
    virtual = '<virtual_joint name="odom" type="floating" parent_frame="world" child_link="b0"/>'
    [home] = read(tmp_path, virtual + state(joints)).configurations
    assert home.name == "home"
    assert dict(home.coordinates) == {
        "hinge": (0.5,),
        "wheel": (7.0,),
        "flat": (1.0, 2.0, math.cos(0.3), math.sin(0.3)),
        "ball": (0.0, 0.6, 0.0, 0.8),
        "root_joint": (1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0),
    }


def test_what_the_robot_does_not_have_is_listed(tmp_path: Path) -> None:
    joints = '<joint name="tail" value="1"/><joint name="weld" value="0"/><joint name="hinge" value="1"/>'
    pairs = '<disable_collisions link1="b0" link2="tail" reason="Never"/>'
    description = read(tmp_path, state(joints) + pairs + '<group name="all"/><end_effector name="e"/><group name="g"/>')
    assert [c.coordinates for c in description.configurations] == [(("hinge", (1.0,)),)]
    assert dict(description.unused) == {
        "configurations of unknown joints": "tail (1)",
        "configurations of fixed joints": "weld (1)",
        "collisions of unknown links": "tail (1)",
        "SRDF elements": "group (2), end_effector (1)",
    }


def test_states_of_one_name_in_several_groups_are_told_apart(tmp_path: Path) -> None:
    hinge, wheel = '<joint name="hinge" value="1"/>', '<joint name="wheel" value="2"/>'
    description = read(tmp_path, state(hinge, group="arm") + state(wheel, group="base") + state(hinge, "rest"))
    assert [c.name for c in description.configurations] == ["arm/home", "base/home", "rest"]


def test_disabled_collisions_are_pairs_of_links(tmp_path: Path) -> None:
    pair = '<disable_collisions link1="{}" link2="{}"/>'
    twice = pair.format("b0", "b2") + pair.format("b0", "b1") + pair.format("b0", "b2")
    assert read(tmp_path, twice).disabled_collisions == (("b0", "b2"), ("b0", "b1"))
    by_default = '<disable_default_collisions link="b1"/><enable_collisions link1="b4" link2="b1"/>'
    assert read(tmp_path, by_default).disabled_collisions == (("b1", "b0"), ("b1", "b2"), ("b1", "b3"), ("b1", "b5"))


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (
            state('<joint name="hinge" value="1 2"/>'),
            "'hinge': 'value' has 2 numbers; a revolute joint needs 1",
        ),
        (state('<joint name="hinge" value="x"/>'), "joint 'hinge': 'value' is not a number"),
        (state('<joint name="hinge" value="nan"/>'), "joint 'hinge': 'value' is nan"),
        (state('<joint name="hinge"/>'), "joint 'hinge': <joint> has no attribute 'value'"),
        (state('<joint value="1"/>'), "group_state 'home': <joint> has no attribute 'name'"),
        (state('<joint name="hinge" value="1"/>' * 2), "joint 'hinge' has two values"),
        (state("") + state(""), "group_state 'all/home': another configuration has this name"),
        ('<disable_collisions link1="b0"/>', "<disable_collisions>: .* no attribute 'link2'"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, inside: str, message: str) -> None:
    with pytest.raises(ModelError, match=f"robot.srdf: .*{message}"):
        read(tmp_path, inside)


def test_a_file_that_is_no_srdf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scene.srdf"
    path.write_text("<mujoco/>")
    with pytest.raises(ModelError, match="root element is <mujoco>, not <robot>, so that this is not an SRDF file"):
        with_srdf(ROBOT, path)
