"""Tests of URDF files: supported content, errors, and reports of unused content."""

from __future__ import annotations

import math
import os
import re
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio
import pytest
from scipy.spatial.transform import Rotation

from featherweight import Description, ModelWarning, build, read
from featherweight.model.formats.registry import load_description
from featherweight.model.types import Inertia, JointType, ModelError
from oracles.matrices import symmetric

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"
INERTIAL = '<inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
ARM = '<joint name="elbow" type="revolute"><parent link="base"/><child link="arm"/></joint>'
LINKS = f'<link name="base"/><link name="arm">{INERTIAL}</link>'


def write(folder: Path, content: str) -> Path:
    path = folder / "robot.urdf"
    path.write_text(content)
    return path


def load(folder: Path, inside: str, **options: Any) -> Description:
    return load_description(write(folder, f'<robot name="r">{inside}</robot>'), **options)


def inertial(mass: str = "1", **changes: str | None) -> str:
    moments = {**dict.fromkeys(("ixx", "iyy", "izz"), "1"), **dict.fromkeys(("ixy", "ixz", "iyz"), "0"), **changes}
    attributes = " ".join(f'{key}="{value}"' for key, value in moments.items() if value is not None)
    return f'<link name="base"><inertial><mass value="{mass}"/><inertia {attributes}/></inertial></link>'


def joint(name: str, parent: str, child: str, inside: str = "", type: str = "revolute") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{type}">{ends}{inside}</joint>'


# --- contents


def test_links_and_joints_keep_the_order_of_the_file(tmp_path: Path) -> None:
    links = "".join(f'<link name="{name}"/>' for name in "cabd")
    robot = load(tmp_path, joint("j2", "a", "b") + links + joint("j1", "c", "a") + joint("j0", "a", "d", type="fixed"))
    assert [body.name for body in robot.bodies] == list("cabd")
    assert [joint.name for joint in robot.joints] == ["j2", "j1", "j0"]
    assert robot.name == "r" and robot.source == str(tmp_path / "robot.urdf")


@pytest.mark.parametrize("written", ["revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical"])
def test_every_joint_type_is_read(tmp_path: Path, written: str) -> None:
    robot = load(tmp_path, LINKS + joint("j", "base", "arm", type=written))
    assert robot.joints[0].type == JointType(written)


def test_ball_is_another_word_for_spherical(tmp_path: Path) -> None:
    assert load(tmp_path, LINKS + joint("j", "base", "arm", type="ball")).joints[0].type == JointType.SPHERICAL


def test_axis_is_x_unless_given_and_has_unit_length(tmp_path: Path) -> None:
    assert load(tmp_path, LINKS + ARM).joints[0].axis == (1.0, 0.0, 0.0)
    robot = load(tmp_path, LINKS + joint("j", "base", "arm", '<axis xyz="0 3 4"/>'))
    assert robot.joints[0].axis == pytest.approx((0.0, 0.6, 0.8), abs=1e-16)


def test_limits_belong_to_revolute_and_prismatic_joints(tmp_path: Path) -> None:
    limit = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'
    revolute = load(tmp_path, LINKS + joint("j", "base", "arm", limit)).joints[0]
    assert (revolute.lower, revolute.upper) == (-1.0, 2.0)
    continuous = load(tmp_path, LINKS + joint("j", "base", "arm", limit, "continuous"))
    assert (continuous.joints[0].lower, continuous.joints[0].upper) == (-math.inf, math.inf)
    assert dict(continuous.unused)["position limits of joints without limits"] == "1 joint"
    absent = load(tmp_path, LINKS + joint("j", "base", "arm", '<limit effort="3" velocity="4"/>')).joints[0]
    assert (absent.lower, absent.upper) == (-math.inf, math.inf)


def test_right_angles_written_with_eleven_decimals_are_exact(tmp_path: Path) -> None:
    origin = '<origin xyz="1 2 3" rpy="1.57079632679 -3.14159265359 -1.5707963267948966"/>'
    placement = load(tmp_path, LINKS + joint("j", "base", "arm", origin)).joints[0].placement
    assert {abs(entry) for row in placement.R for entry in row} == {0.0, 1.0}
    assert placement.p == (1.0, 2.0, 3.0)


@pytest.mark.parametrize("size", [1e-200, 0.7071067811865, 3.0, 1e29])
def test_right_angles_written_as_quaternions_are_exact(tmp_path: Path, size: float) -> None:
    for components in ((1, 0, 0, 1), (0, -1, 1, 0), (1, 1, 1, 1), (0, 0, 0, -1)):
        quaternion = " ".join(str(size * c) for c in components)
        placement = load(tmp_path, LINKS + joint("j", "base", "arm", f'<origin quat_xyzw="{quaternion}"/>')).joints[0].placement
        assert {abs(entry) for row in placement.R for entry in row} == {0.0, 1.0}
        np.testing.assert_array_equal(placement.R, np.rint(Rotation.from_quat(components).as_matrix()))


def test_quaternions_agree_with_scipy(tmp_path: Path) -> None:
    for quaternion in np.random.default_rng(5).normal(size=(20, 4)):
        origin = f'<origin xyz="1 2 3" quat_xyzw="{" ".join(map(str, quaternion))}"/>'
        placement = load(tmp_path, LINKS + joint("j", "base", "arm", origin)).joints[0].placement
        np.testing.assert_allclose(placement.R, Rotation.from_quat(quaternion).as_matrix(), atol=1e-15)  # a few roundings
        assert placement.p == (1.0, 2.0, 3.0)


def test_placement_agrees_with_pinocchio(tmp_path: Path) -> None:
    origin = '<origin xyz="1 2 3" rpy="0.3 -1.1 2.5"/>'
    placement = load(tmp_path, LINKS + joint("j", "base", "arm", origin)).joints[0].placement
    np.testing.assert_allclose(placement.R, pinocchio.rpy.rpyToMatrix(0.3, -1.1, 2.5), atol=1e-15)  # a few roundings


def test_turned_inertial_origin_agrees_with_pinocchio(tmp_path: Path) -> None:
    tensor = '<mass value="2"/><inertia ixx="1" ixy="0.1" ixz="-0.2" iyy="1.5" iyz="0.3" izz="2"/>'
    arm = f'<link name="arm"><inertial><origin xyz="1 2 3" rpy="0.3 -1.1 2.5"/>{tensor}</inertial></link>'
    inertia = load(tmp_path, '<link name="base"/>' + arm + ARM_WITH_LIMIT).bodies[1].inertia
    expected = pinocchio.buildModelFromUrdf(str(tmp_path / "robot.urdf")).inertias[1]
    assert (inertia.mass, inertia.center) == (2.0, (1.0, 2.0, 3.0))
    # to the rounding of two products of rotations
    np.testing.assert_allclose(symmetric(inertia.rotational), expected.inertia, atol=1e-14)


ARM_WITH_LIMIT = joint("elbow", "base", "arm", '<limit lower="-1" upper="1" effort="1" velocity="1"/>')


def test_a_link_without_inertial_weighs_nothing_and_a_point_mass_is_allowed(tmp_path: Path) -> None:
    zeros = dict.fromkeys(("ixx", "iyy", "izz"), "0")
    assert load(tmp_path, '<link name="base"/>').bodies[0].inertia == Inertia()
    assert load(tmp_path, inertial("3", **zeros)).bodies[0].inertia.mass == 3.0


def test_a_default_namespace_is_read_through(tmp_path: Path) -> None:
    path = write(tmp_path, f'<robot xmlns="http://www.ros.org">{LINKS}{ARM}</robot>')
    assert [body.name for body in load_description(path).bodies] == ["base", "arm"]
    assert load_description(path).name == "robot"


# --- reports


def test_everything_without_use_is_listed(tmp_path: Path) -> None:
    visual = '<visual><geometry><mesh filename="nowhere.stl"/></geometry></visual><collision/><contact/>'
    inside = '<dynamics damping="0.1" friction="0"/><limit effort="1" velocity="2"/><calibration/><safety_controller/>'
    robot = load(
        tmp_path,
        f'<link name="base">{visual}</link><link name="arm"/>{joint("j", "base", "arm", inside)}'
        '<material name="m"/><transmission/><gazebo><joint/></gazebo><sensor/><ros2_control/><ros2_control/>',
    )
    assert dict(robot.unused) == {
        "meshes not found": "1, the first is 'nowhere.stl'",
        "geometries of no known kind": "1",
        "transmissions": "1",
        "gazebo elements": "1, holding 1 joint",
        "sensors": "1",
        "safety controllers": "1 joint",
        "calibrations": "1 joint",
        "unknown elements": "robot/ros2_control (2), link/contact (1)",
    }


def test_unknown_attributes_are_listed(tmp_path: Path) -> None:
    robot = load(tmp_path, '<link name="base" colour="red"/>')
    assert dict(robot.unused) == {"unknown attributes": "link@colour (1)"}
    drawn = '<origin scale="1 0 0 0"/><geometry><box size="1 1 1" unit="m"><skin/></box></geometry>'
    inside = '<axis xyz="0 0 1" rpy="0 0 1"/><mimic joint="k"><lag/></mimic>'
    robot = load(
        tmp_path,
        f'<link name="base"><visual>{drawn}</visual></link><link name="arm"/><link name="hand"/>'
        f'{joint("j", "base", "arm", inside)}{joint("k", "arm", "hand")}<actuator name="motor" joint="k"><inverter/></actuator>'
        '<gazebo><plugin name="any"/></gazebo><transmission name="any"/>',
    )
    listed = dict(robot.unused)
    assert listed["unknown attributes"] == "origin@scale (1), box@unit (1), axis@rpy (1)"
    assert listed["unknown elements"] == "box/skin (1), mimic/lag (1), actuator/inverter (1)"


def test_inertias_that_no_rigid_body_can_have_are_listed(tmp_path: Path) -> None:
    assert load(tmp_path, inertial(izz="2")).unused == ()
    assert load(tmp_path, inertial(izz="2.1")).unused == (("inertias that no rigid body can have", "base"),)
    assert load(tmp_path, inertial(mass="0")).unused == (("inertias that no rigid body can have", "base"),)


# --- refusals

CHAIN_OF_MIMICS = "".join(
    f'<link name="c{k}"/>' + joint(f"c{k}", "base", f"c{k}", f'<mimic joint="{leader}" multiplier="1e20"/>')
    for k, leader in enumerate(("elbow", "c0", "c1", "c2"))
)
CYCLE = "".join(f'<link name="{name}"/>' for name in "rabc") + "".join(joint(f"{a}{b}", a, b) for a, b in ("ab", "bc", "ca"))
DAMAGED = {
    "no link": ("", ["no link"]),
    "unknown type": (LINKS + joint("elbow", "base", "arm", type="rubber"), ["elbow", "rubber", "revolute"]),
    "missing type": (LINKS + ARM.replace('type="revolute"', ""), ["elbow", "type"]),
    "link without name": ('<link name="base"/><link/>', ["link number 2", "name"]),
    "joint without name": (LINKS + ARM.replace('name="elbow"', ""), ["joint number 1", "name"]),
    "missing parent": (LINKS + ARM.replace('<parent link="base"/>', ""), ["elbow", "<parent>"]),
    "missing child": (LINKS + ARM.replace('<child link="arm"/>', ""), ["elbow", "<child>"]),
    "parent without link": (LINKS + ARM.replace(' link="base"', ""), ["elbow", "<parent>", "link"]),
    "two links of one name": (LINKS + '<link name="arm"/>' + ARM, ["two links", "arm"]),
    "two joints of one name": (LINKS + ARM + ARM, ["two joints", "elbow"]),
    "undefined parent": (LINKS + joint("elbow", "torso", "arm"), ["elbow", "torso", "parent"]),
    "undefined child": (LINKS + joint("elbow", "base", "hand"), ["elbow", "hand", "child"]),
    "two parents": (LINKS + ARM + joint("wrist", "base", "arm"), ["arm", "elbow", "wrist", "two parents"]),
    "several roots": (LINKS, ["base", "arm", "2 links have no parent"]),
    "cycle beside a root": (CYCLE, ["cycle", "ab", "bc", "ca"]),
    "cycle without a root": (LINKS + ARM + joint("wrist", "arm", "base"), ["cycle", "elbow", "wrist"]),
    "joint from a link to itself": ('<link name="base"/>' + joint("j", "base", "base"), ["cycle", "'j'", "base"]),
    "unreadable number": (LINKS + joint("elbow", "base", "arm", '<origin xyz="0 zero 0"/>'), ["elbow", "xyz", "zero"]),
    "underscore": (LINKS + joint("elbow", "base", "arm", '<origin xyz="0 1_0 0"/>'), ["elbow", "xyz", "1_0"]),
    "wrong count": (LINKS + joint("elbow", "base", "arm", '<origin rpy="0 0"/>'), ["elbow", "rpy", "3 numbers, not 2"]),
    "NaN": (LINKS + joint("elbow", "base", "arm", '<axis xyz="nan 0 0"/>'), ["elbow", "xyz", "nan"]),
    "overflow": (inertial(ixx="1e999"), ["base", "ixx", "inf"]),
    "number too large": (inertial(ixx="1e31"), ["base", "ixx", "1e+31", "within ±1e+30"]),
    "axis too large": (LINKS + joint("elbow", "base", "arm", '<axis xyz="1e308 1e308 0"/>'), ["elbow", "xyz", "within"]),
    "factor too large": (
        LINKS + joint("elbow", "base", "arm") + CHAIN_OF_MIMICS,
        ["joint 'c1'", "follow with a number beyond ±1e+30"],
    ),
    "zero quaternion": (
        LINKS + joint("elbow", "base", "arm", '<origin quat_xyzw="0 0 0 0"/>'),
        ["elbow", "quaternion is zero"],
    ),
    "two rotations": (
        LINKS + joint("elbow", "base", "arm", '<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>'),
        ["elbow", "rpy", "quat_xyzw", "keep one"],
    ),
    "short quaternion": (LINKS + joint("elbow", "base", "arm", '<origin quat_xyzw="0 0 1"/>'), ["elbow", "4 numbers, not 3"]),
    "zero axis": (LINKS + joint("elbow", "base", "arm", '<axis xyz="0 0 0"/>'), ["elbow", "axis is zero"]),
    "limits exchanged": (LINKS + joint("elbow", "base", "arm", '<limit lower="1" upper="0"/>'), ["elbow", "above"]),
    "two origins": (LINKS + joint("elbow", "base", "arm", "<origin/><origin/>"), ["elbow", "2 <origin>"]),
    "negative mass": (inertial("-1"), ["base", "negative", "-1"]),
    "missing mass": (inertial().replace('<mass value="1"/>', ""), ["base", "<mass>"]),
    "missing moment": (inertial(iyz=None), ["base", "iyz"]),
    "xacro": (LINKS + ARM + '<x:include xmlns:x="http://www.ros.org/wiki/xacro"/>', ["xacro", "include"]),
}


@pytest.mark.parametrize(("inside", "words"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_named_with_file_and_element(tmp_path: Path, inside: str, words: Sequence[str]) -> None:
    with pytest.raises(ModelError) as caught:
        load(tmp_path, inside, unsupported="raise")
    for word in [str(tmp_path / "robot.urdf"), *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize("digit", ["1", "5e-324", "1e-308", "1e30"])
def test_axes_of_any_length_become_unit_vectors(tmp_path: Path, digit: str) -> None:
    (read,) = load(tmp_path, LINKS + joint("elbow", "base", "arm", f'<axis xyz="{digit} 0 {digit}"/>')).joints
    assert read.axis == pytest.approx((math.sqrt(0.5), 0.0, math.sqrt(0.5)), rel=1e-15)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "robot.urdf")
    with pytest.raises(ModelError, match=r"robot\.urdf: a pipe, socket or device"):
        load_description(tmp_path / "robot.urdf")


BOMB = '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><robot name="&b;"/>'
NOT_URDF = {
    "a pointer of Git LFS": ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
    "a zip archive": ("PK\x03\x04 and more", "a zip file, not XML; unpack it"),
    "cut short": ('<robot name="r"><link name="ba', "cut short"),
    "not XML": ("solid part", "not an XML file"),
    "empty": ("", "not an XML file"),
    "another root": ("<html/>", "<html>, not <robot>"),
    "entity bomb": (BOMB, "entities"),
    "unknown encoding": ('<?xml version="1.0" encoding="klingon"?><robot/>', "robot.urdf"),
}


@pytest.mark.parametrize(("content", "words"), NOT_URDF.values(), ids=NOT_URDF)
def test_a_file_that_is_no_urdf_is_refused(tmp_path: Path, content: str, words: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(ModelError, match=words) as caught:
        load_description(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_reported_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_description(tmp_path / "nowhere.urdf")


def test_the_world_may_be_a_parent_without_a_link() -> None:
    """Drake's and Gazebo's files have such joints. Compare with Pinocchio's reading of the file with the link."""
    joints = '<joint name="weld" type="fixed"><parent link="world"/><child link="base"/><origin xyz="0 1 0"/></joint>'
    joints += ARM.replace("</joint>", '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>')
    text = f'<robot name="r">{{}}{LINKS}{joints}</robot>'
    model = pinocchio.buildModelFromXML(text.format('<link name="world"/>'))
    with pytest.warns(ModelWarning, match="link 'world' is a parent, and not defined, taken as a link fixed to the world"):
        robot = build(read(text.format("")))
    q = np.array([0.3])
    data = model.createData()
    pinocchio.forwardKinematics(model, data, q)
    np.testing.assert_allclose(robot.frame_placement("arm")(q), data.oMi[1].homogeneous, atol=1e-15)
    with pytest.raises(ModelError, match="'world' is a parent, and not defined; define it"):
        read(text.format(""), unsupported="raise")


# --- a collection of real robots

ODD = {  # real files that Pinocchio reads
    "romeo_laas_small": "body 'base_link' .* principal moment -0.02",
    "romeo": "joints move .*RThumb3Link without moving any mass",
    "alex_psyonic_hands": "'Left_index_q2': it mimics joint 'index_q1', which is not defined",
}


@contextmanager
def warned(path: Path) -> Iterator[None]:
    """Context that expects the warning about an odd file, or none."""
    if path.stem not in ODD:
        yield
        return
    with pytest.warns(ModelWarning) as told:
        yield
    assert any(re.search(ODD[path.stem], str(x.message)) for x in told)


@pytest.mark.parametrize("path", sorted(ROBOTS.rglob("*.urdf")), ids=lambda path: path.stem)
def test_real_robots_load_with_the_mass_that_pinocchio_finds(path: Path) -> None:
    if path.stem == "ur3":
        with pytest.raises(ModelError, match="the robot has no link"):
            load_description(path)
        return
    robot = load_description(path, mimic="independent")
    assert robot.couplings == ()
    with warned(path) if path.stem != "alex_psyonic_hands" else nullcontext():
        build(robot, base="floating")
    model = pinocchio.buildModelFromUrdf(str(path), pinocchio.JointModelFreeFlyer())
    # the order of summation differs, so a few roundings of the total
    assert sum(body.inertia.mass for body in robot.bodies) == pytest.approx(
        sum(inertia.mass for inertia in model.inertias), rel=1e-13
    )
    assert sum(joint.type.nv for joint in robot.joints) + 6 == model.nv


@pytest.mark.parametrize("path", sorted(p for p in ROBOTS.rglob("*.urdf") if "<mimic" in p.read_text()), ids=lambda p: p.stem)
def test_joints_of_real_robots_that_mimic_others_follow_them(path: Path) -> None:
    elements = [e for e in ElementTree.parse(path).iterfind("joint") if e.get("type") != "fixed"]
    leaders = {e.get("name"): m.get("joint") for e in elements if (m := e.find("mimic")) is not None}
    with warned(path) if path.stem == "alex_psyonic_hands" else nullcontext():
        couplings = read(path).couplings
    known = {e.get("name") for e in elements}
    assert [coupling.joint for coupling in couplings] == [name for name, leader in leaders.items() if leader in known]


def test_real_robots_are_found() -> None:
    assert len(list(ROBOTS.rglob("*.urdf"))) > 50
