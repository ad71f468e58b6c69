"""Tests of SDF files: supported content, errors, and reports of unused content."""

from __future__ import annotations

import math
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight import Description
from featherweight.model.formats.registry import load_description
from featherweight.model.types import Inertia, JointType, LoopType, ModelError
from featherweight.robot.system import LOOP_TOLERANCE

CASSIE = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots/cassie_description/robots"
INERTIA = "<ixx>0.3</ixx><ixy>0.01</ixy><ixz>-0.02</ixz><iyy>0.4</iyy><iyz>0.03</iyz><izz>0.5</izz>"
INERTIAL = f"<inertial><pose>0.1 0.2 0.3 0.4 0.5 0.6</pose><mass>2</mass><inertia>{INERTIA}</inertia></inertial>"


def read(inside: str, version: str = "1.11", **options: Any) -> Description:
    return load_description(f'<sdf version="{version}"><model name="m">{inside}</model></sdf>', **options)


def link(name: str, inside: str = "") -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(name: str, parent: str, child: str, inside: str = "<axis><xyz>0 0 1</xyz></axis>", type: str = "revolute") -> str:
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f'<joint name="{name}" type="{type}">{ends}{inside}</joint>'


def moved(d: Description) -> fw.Robot:
    return fw.build(d, execution="interpreted")


def closed(d: Description) -> fw.ClosedRobot:
    robot = moved(d)
    assert isinstance(robot, fw.ClosedRobot)
    return robot


def place(d: Description, name: str, q: Sequence[float] | None = None) -> np.ndarray:
    robot = moved(d)
    return np.asarray(robot.frame_placement(name)(robot.neutral() if q is None else np.array(q)))


def position(d: Description, name: str) -> list[float]:
    return [float(x) for x in place(d, name)[:3, 3]]


BASE = link("base") + joint("weld", "world", "base", "", "fixed")
ARM = BASE + link("arm") + joint("elbow", "base", "arm")


# --- a robot that also exists as URDF

URDF = """<robot name="m"><link name="base"/>{links}
<joint name="a" type="revolute"><parent link="base"/><child link="one"/><origin xyz="0.1 0 0.2" rpy="0.3 0 0"/>
  <axis xyz="0 1 1"/><limit lower="-1" upper="2" effort="5" velocity="6"/><dynamics damping="0.1" friction="0.2"/></joint>
<joint name="b" type="prismatic"><parent link="one"/><child link="two"/><origin xyz="0 0.3 0" rpy="0 0.2 0.1"/>
  <axis xyz="1 0 0"/></joint>
<joint name="c" type="spherical"><parent link="two"/><child link="three"/><origin xyz="0.2 0 0.1"/></joint>
<joint name="d" type="continuous"><parent link="one"/><child link="four"/><origin xyz="0 0 0.5" rpy="0 0 1"/>
  <axis xyz="0 0 -1"/></joint></robot>"""
URDF_LINK = """<link name="{}"><inertial><origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><mass value="2"/>
<inertia ixx="0.3" ixy="0.01" ixz="-0.02" iyy="0.4" iyz="0.03" izz="0.5"/></inertial></link>"""
BOUNDS = "<limit><lower>-1</lower><upper>2</upper><effort>5</effort><velocity>6</velocity></limit>"
AXES = {
    "a": f"<axis><xyz>0 1 1</xyz>{BOUNDS}<dynamics><damping>0.1</damping><friction>0.2</friction></dynamics></axis>",
    "b": "<axis><xyz>1 0 0</xyz></axis>",
    "c": "",
    "d": "<axis><xyz>0 0 -1</xyz></axis>",
}
JOINTS = {
    "a": ("base", "one", "revolute", "0.1 0 0.2 0.3 0 0"),
    "b": ("one", "two", "prismatic", "0 0.3 0 0 0.2 0.1"),
    "c": ("two", "three", "ball", "0.2 0 0.1 0 0 0"),
    "d": ("one", "four", "continuous", "0 0 0.5 0 0 1"),
}


def chained() -> str:
    """Return the file with each link placed in its parent, by the joint's name or the link's."""
    placed = "".join(
        f'<link name="{child}"><pose relative_to="{parent}">{pose}</pose>{INERTIAL}</link>'
        for parent, child, _, pose in JOINTS.values()
    )
    return BASE + placed + "".join(joint(n, p, c, AXES[n], kind) for n, (p, c, kind, _) in JOINTS.items())


def by_joints() -> str:
    """Return the file with each joint placed in the parent, and the child in the joint."""
    placed = "".join(
        f'<link name="{child}"><pose relative_to="{name}"/>{INERTIAL}</link>' for name, (_, child, _, _) in JOINTS.items()
    )
    joints = "".join(
        joint(n, p, c, f'<pose relative_to="{p}">{pose}</pose>{AXES[n]}', kind) for n, (p, c, kind, pose) in JOINTS.items()
    )
    return joints + BASE + placed


@pytest.mark.parametrize("written", [chained, by_joints])
def test_a_robot_is_that_of_its_urdf(written: Callable[[], str]) -> None:
    d = read(written())
    robot, urdf = moved(d), moved(fw.read(URDF.format(links="".join(map(URDF_LINK.format, ("one", "two", "three", "four"))))))
    assert d.unused == () and (robot.nq, robot.nv) == (urdf.nq, urdf.nv) == (7, 6)
    q = robot.random_configuration(rng=1)
    v, tau = np.random.default_rng(2).normal(size=(2, 6))
    # the same numbers multiplied in another order: a few roundings of entries below ten
    np.testing.assert_allclose(robot.mass_matrix(q), urdf.mass_matrix(q), rtol=0, atol=1e-12)
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, tau), urdf.inverse_dynamics(q, v, tau), rtol=0, atol=1e-11)
    (a,) = (j for j in d.joints if j.name == "a")
    assert (a.lower, a.upper, a.effort, a.velocity, a.damping, a.dry_friction) == (-1, 2, 5, 6, 0.1, 0.2)


# --- frames


def test_poses_are_in_the_model_unless_they_say_otherwise() -> None:
    pose = "<pose>{}</pose>".format
    inside = BASE + link("a", pose("1 2 3 0 0 1.5707963267948966")) + joint("j", "base", "a")
    frames = f'<frame name="f">{pose("0 0 1 0 0 0")}</frame><frame name="g" attached_to="a">{pose("1 0 0 0 0 0")}</frame>'
    frames += '<frame name="h" attached_to="g"><pose relative_to="f">0 0 1 0 0 0</pose></frame>'
    frames += '<frame name="i" attached_to="j"/>'
    d = read(inside + frames)
    assert [(f.name, f.body) for f in d.frames] == [("f", "base"), ("g", "a"), ("h", "a"), ("i", "a")]
    assert position(d, "a") == [1, 2, 3] and position(d, "f") == [0, 0, 1]
    np.testing.assert_allclose(position(d, "g"), [1, 3, 3], atol=1e-15)  # a rounding or two, as below
    np.testing.assert_allclose(position(d, "h"), [0, 0, 2], atol=1e-15)
    np.testing.assert_allclose(position(d, "i"), [1, 2, 3], atol=1e-15)
    turned = place(d, "h", [math.pi])  # about the vertical through (1, 2)
    np.testing.assert_allclose(turned[:3, 3], [2, 4, 2], atol=1e-15)


def test_the_default_frame_of_a_joint_is_its_child() -> None:
    child = '<pose relative_to="base">0 0 2 0 1.5707963267948966 0</pose>'
    d = read(BASE + link("a", child) + joint("j", "base", "a", "<pose>0 0 1 0 0 0</pose><axis><xyz>0 1 0</xyz></axis>"))
    (read_joint,) = (j for j in d.joints if j.name == "j")
    assert (read_joint.anchor, read_joint.axis) == ((0, 0, 1), (0, 1, 0))
    np.testing.assert_allclose(place(d, "a", [math.pi / 2])[:3, 3], [1, 0, 3], atol=1e-15)  # rotation about (1, 0, 2)


@pytest.mark.parametrize(
    ("xyz", "axis"),
    [
        ("<xyz>1 0 0</xyz>", (1, 0, 0)),
        ('<xyz expressed_in="__model__">1 0 0</xyz>', (0, -1, 0)),
        ('<xyz expressed_in="base">1 0 0</xyz>', (0, -1, 0)),
        ('<xyz expressed_in="tilted">0 0 1</xyz>', (0, -1, 0)),
        ("<xyz>2 0 0</xyz><use_parent_model_frame>1</use_parent_model_frame>", (0, -1, 0)),
        ("", (0, 0, 1)),
    ],
)
def test_axes_are_in_the_joint_unless_they_say_otherwise(xyz: str, axis: Sequence[float]) -> None:
    tilted = '<frame name="tilted"><pose degrees="true">0 0 0 0 90 0</pose></frame>'
    child = link("a", "<pose>0 0 0 0 0 1.5707963267948966</pose>")
    d = read(BASE + child + tilted + joint("j", "base", "a", f"<axis>{xyz}</axis>"), "1.6")
    (read_joint,) = (j for j in d.joints if j.name == "j")
    np.testing.assert_allclose(read_joint.axis, axis, atol=1e-15)


@pytest.mark.parametrize(
    "pose",
    [
        '<pose degrees="true">1 2 3 0 0 90</pose>',
        '<pose rotation_format="quat_xyzw">1 2 3 0 0 2 2</pose>',
        '<pose frame="">1 2 3 0 0 1.57079632679</pose>',
    ],
)
def test_rotations_are_angles_or_quaternions(pose: str) -> None:
    d = read(BASE + link("a", pose) + joint("j", "base", "a"))
    np.testing.assert_allclose(d.joints[-1].placement.R, [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)
    assert d.joints[-1].placement.p == (1, 2, 3)


def test_a_placement_frame_lies_where_the_model_is_put() -> None:
    inside = f'{link("a", "<pose>0 0 1 0 0 0</pose>")}<frame name="grip" attached_to="a"><pose>0 0 1 0 0 0</pose></frame>'
    d = load_description(
        f"""<sdf version="1.8"><world name="w"><frame name="table"><pose>5 0 0 0 0 0</pose></frame>
        <model name="m" placement_frame="grip"><pose relative_to="table">1 0 0 0 0 0</pose>{inside}</model></world></sdf>"""
    )
    assert dict(d.configurations[0].coordinates) == {"root_joint": (6, 0, -1, 0, 0, 0, 1)}
    assert [(f.name, f.body, f.placement.p) for f in d.frames] == [("table", None, (5, 0, 0)), ("grip", "a", (0, 0, 1))]


def test_the_model_moves_with_its_canonical_link() -> None:
    links = BASE + link("arm") + joint("j", "base", "arm") + '<frame name="f"><pose>1 0 0 0 0 0</pose></frame>'
    assert [f.body for f in read(links).frames] == ["base"]
    text = f'<sdf version="1.8"><model name="m" canonical_link="arm">{links}</model></sdf>'
    assert [f.body for f in load_description(text).frames] == ["arm"]


def test_until_1_6_a_joint_may_have_the_name_of_a_link() -> None:
    d = read(BASE + link("a") + joint("a", "base", "a", "<pose>0 0 1 0 0 0</pose><axis><xyz>1 0 0</xyz></axis>"), "1.6")
    assert d.joints[-1].anchor == (0, 0, 1)


# --- bases


def test_a_link_that_no_joint_moves_flies_freely() -> None:
    d = read(link("a", "<pose>1 2 3 0 0 1.5707963267948966</pose>"))
    assert [(j.name, j.type) for j in d.joints] == [("root_joint", JointType.FLOATING)]
    ((name, q),) = d.configurations[0].coordinates
    np.testing.assert_allclose(q, [1, 2, 3, 0, 0, math.sqrt(0.5), math.sqrt(0.5)], atol=1e-15)
    assert (d.configurations[0].name, name) == ("qpos0", "root_joint")
    assert fw.build(d, base="floating", execution="interpreted").nv == 6
    np.testing.assert_array_equal(moved(d).start(), q)
    assert d.locked({"root_joint": q}).joints[0].type is JointType.FIXED


def test_static_models_and_joints_on_the_world_hold_a_robot() -> None:
    assert moved(read(ARM + "")).nv == 1
    d = read("<static>true</static>" + link("a", "<pose>0 0 1 0 0 0</pose>") + link("b") + joint("j", "a", "b"))
    assert [(j.name, j.type, j.parent, j.placement.p) for j in d.joints] == [
        ("a_fixed", JointType.FIXED, None, (0, 0, 1)),
        ("b_fixed", JointType.FIXED, None, (0, 0, 0)),
    ]
    assert dict(d.unused) == {"joints of static models": "j"}


# --- inertias


def test_what_is_missing_of_an_inertia_is_that_of_the_specification() -> None:
    one = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
    inertias = {
        "": Inertia(1.0, (0, 0, 0), one),
        "<inertial><mass>3</mass></inertial>": Inertia(3.0, (0, 0, 0), one),
        "<inertial><inertia><ixx>2</ixx></inertia></inertial>": Inertia(1.0, (0, 0, 0), (2.0, *one[1:])),
        "<inertial><pose>1 0 0 0 0 0</pose><mass>0</mass></inertial>": Inertia(0.0, (1, 0, 0), one),
    }
    for written, inertia in inertias.items():
        assert read(link("a", written)).bodies[0].inertia == inertia


def test_a_turned_inertia_has_its_products_with_their_signs() -> None:
    """Check half a turn about z: xz and yz change their signs."""
    tensor = f'<inertial><pose degrees="1">0 0 0 0 0 180</pose><inertia>{INERTIA}</inertia></inertial>'
    assert read(link("a", tensor)).bodies[0].inertia.rotational == (0.3, 0.01, 0.02, 0.4, -0.03, 0.5)


# --- joints of several axes, loops, couplings


@pytest.mark.parametrize("kind", ["universal", "revolute2"])
def test_two_axes_are_two_joints_with_nothing_between(kind: str) -> None:
    axes = f"<axis><xyz>1 0 0</xyz>{BOUNDS}</axis><axis2><xyz>0 1 0</xyz></axis2>"
    pose = "<pose>0 0 1 0 0 0</pose>"
    d = read(BASE + link("a", pose) + joint("j", "base", "a", axes, kind))
    first, second = d.joints[1:]
    assert (first.name, first.child, first.upper) == ("j_axis", "a/j_axis", 2) and d.virtual == {"a/j_axis"}
    assert (second.name, second.parent, second.child, second.upper) == ("j_axis2", "a/j_axis", "a", math.inf)
    R = place(d, "a", [0.3, 0.4])[:3, :3]
    c, s, e, f = math.cos(0.3), math.sin(0.3), math.cos(0.4), math.sin(0.4)
    expected = np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) @ [[e, 0, f], [0, 1, 0], [-f, 0, e]]
    np.testing.assert_allclose(R, expected, atol=1e-15)


@pytest.mark.parametrize(
    ("pitch", "slide"),
    [
        ("<screw_thread_pitch>0.01</screw_thread_pitch>", 0.01),
        ("<thread_pitch>-100</thread_pitch>", 0.02 * math.pi),
        ("", 1.0),
    ],
)
def test_a_screw_slides_as_it_turns(pitch: str, slide: float) -> None:
    d = read(BASE + link("a") + joint("j", "base", "a", f"{pitch}<axis><xyz>1 0 0</xyz>{BOUNDS}</axis>", "screw"))
    robot = fw.build(d, execution="interpreted")
    assert robot.nv == 1 and [(j.name, j.upper) for j in d.joints[1:]] == [("j_slide", math.inf), ("j", 2)]
    assert place(d, "a", [math.pi])[0, 3] == pytest.approx(slide / 2, rel=1e-14)  # half a turn


SQUARE = {  # a parallelogram in the plane of x and y, with its closing joint
    "a": "0 0 0 0 0 0",
    "b": "0 1 0 0 0 0",
    "c": "1 0 0 0 0 0",
}


def parallelogram(closing: str, type: str = "revolute", pose: str = "0 1 0 0 0 0") -> Description:
    links = "".join(link(n, f"<pose>{pose}</pose>{INERTIAL}") for n, pose in SQUARE.items())
    joints = joint("crank", "base", "a") + joint("rod", "a", "b") + joint("rocker", "base", "c")
    return read(BASE + links + joints + joint("pin", "b", "c", f"<pose>{pose}</pose>{closing}", type))


@pytest.mark.parametrize(
    ("written", "kind", "inside"),
    [
        ("revolute", LoopType.REVOLUTE, "<axis><xyz>0 0 1</xyz></axis>"),
        ("continuous", LoopType.REVOLUTE, "<axis><xyz>0 0 -1</xyz></axis>"),
        ("prismatic", LoopType.PRISMATIC, "<axis><xyz>0 1 0</xyz></axis>"),
        ("ball", LoopType.SPHERICAL, ""),
        ("fixed", LoopType.WELD, ""),
        ("universal", LoopType.UNIVERSAL, "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 0 1</xyz></axis2>"),
        ("revolute2", LoopType.UNIVERSAL, "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 0 1</xyz></axis2>"),
    ],
)
def test_a_joint_whose_child_has_one_already_closes_a_loop(written: str, kind: LoopType, inside: str) -> None:
    d = parallelogram(inside, written)
    (loop,) = d.loops
    assert (loop.name, loop.type, loop.predecessor, loop.successor) == ("pin", kind, "b", "c")
    assert (loop.predecessor_frame.p, loop.successor_frame.p) == ((1, 0, 0), (0, 1, 0))
    axes = [
        [row[2] for row in loop.predecessor_frame.R],
        [row[2 if kind != "universal" else 0] for row in loop.successor_frame.R],
    ]
    if inside:
        xyz = [[float(x) for x in word.split("</xyz>")[0].split()] for word in inside.split("<xyz>")[1:]]
        np.testing.assert_allclose(axes, [xyz[0], xyz[-1]], atol=1e-15)


def test_a_parallelogram_moves_as_one() -> None:
    robot = closed(parallelogram("<axis><xyz>0 0 1</xyz></axis>"))
    assert (robot.nq, robot.nv) == (3, 1)
    q = robot.close(np.array([0.4, -0.39, 0.41]))
    assert abs(q[0]) > 0.3
    np.testing.assert_allclose(q, q[0] * np.array([1, -1, 1]), atol=1e-9)  # tolerance of loop closure


def test_what_loops_cannot_hold_is_listed() -> None:
    d = parallelogram(f"<axis><xyz>0 0 1</xyz>{BOUNDS}</axis>")
    assert dict(d.unused) == {"limits and forces of joints that close loops, gear others or have no axis": "pin"}


def test_a_joint_back_to_what_carries_it_closes_a_loop_whatever_their_order() -> None:
    ring = joint("ab", "a", "b") + joint("ba", "b", "a") + joint("ground", "world", "a")
    d = read(link("a") + link("b") + ring)
    assert [(j.name, j.parent) for j in d.joints] == [("ab", "a"), ("ground", None)]
    assert [loop.name for loop in d.loops] == ["ba"]


GEAR = "<gearbox_ratio>0.1</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body><axis><xyz>0 0 1</xyz></axis>"


@pytest.mark.parametrize(("axis2", "factor"), [("", -0.1), ("<axis2><xyz>0 0 -1</xyz></axis2>", 0.1)])
def test_a_gearbox_couples_the_angles_of_its_links(axis2: str, factor: float) -> None:
    """Check theta_2 = -ratio theta_1, both from the reference body."""
    links = link("rotor") + link("wheel") + joint("motor", "base", "rotor") + joint("out", "base", "wheel")
    d = read(BASE + links + joint("gear", "rotor", "wheel", GEAR + axis2, "gearbox"))
    assert [(c.name, c.joint, c.terms) for c in d.couplings] == [("gear", "out", (("motor", (factor,)),))]
    assert moved(d).nv == 1


MIMIC = '<mimic joint="k" axis="{}"><multiplier>2</multiplier><offset>0.3</offset><reference>0.1</reference></mimic>'


@pytest.mark.parametrize(("axis", "leader"), [("axis", "k_axis"), ("axis2", "k_axis2")])
def test_mimic_joints_follow_an_axis(axis: str, leader: str) -> None:
    follower = joint("j", "base", "a", f"<axis><xyz>0 0 1</xyz>{MIMIC.format(axis)}</axis>")
    two = "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>"
    text = BASE + link("a") + link("b") + follower + joint("k", "base", "b", two, "universal")
    (coupling,) = read(text).couplings
    assert (coupling.joint, coupling.terms) == ("j", ((leader, (2.0,)),)) and coupling.offset == pytest.approx(0.1, abs=1e-16)
    free = read(text, mimic="independent")
    assert free.couplings == () and dict(free.unused) == {"couplings": "mimic of j, taken as independent"}
    with pytest.raises(ModelError, match="joint 'j': it mimics another joint; load with mimic="):
        read(text, mimic="refuse")


# --- parameters of joints


def test_a_joint_without_an_axis_has_no_use_for_one() -> None:
    """Check files of fixed joints, whose <axis> has zero length."""
    d = read(
        BASE + link("a") + joint("j", "base", "a", "<axis><xyz>0 0 0</xyz><limit><lower>-inf</lower></limit></axis>", "fixed")
    )
    assert d.joints[-1].type is JointType.FIXED and d.unused == ()
    damped = "<axis><xyz>0 0 1</xyz><dynamics><damping>1</damping></dynamics></axis>"
    d = read(BASE + link("a") + joint("j", "base", "a", damped, "ball"))
    assert dict(d.unused) == {"limits and forces of joints that close loops, gear others or have no axis": "j"}


def test_limits_that_are_none_are_infinite() -> None:
    none = "<lower>-1e16</lower><upper>inf</upper><effort>-1</effort><velocity>-1</velocity>"
    d = read(BASE + link("a") + joint("j", "base", "a", f"<axis><xyz>0 0 1</xyz><limit>{none}</limit></axis>"))
    j = d.joints[-1]
    assert (j.lower, j.upper, j.effort, j.velocity) == (-math.inf, math.inf, math.inf, math.inf)
    continuous = read(BASE + link("a") + joint("j", "base", "a", f"<axis><xyz>0 0 1</xyz>{BOUNDS}</axis>", "continuous"))
    assert continuous.joints[-1].upper == math.inf and continuous.joints[-1].effort == 5
    assert dict(continuous.unused) == {"position limits of joints without limits": "j"}


def test_springs_are_read() -> None:
    spring = "<dynamics><spring_stiffness>7</spring_stiffness><spring_reference>0.2</spring_reference></dynamics>"
    j = read(BASE + link("a") + joint("j", "base", "a", f"<axis><xyz>0 0 1</xyz>{spring}</axis>")).joints[-1]
    assert (j.stiffness, j.rest) == (7, 0.2)


# --- reports


def test_everything_without_use_is_listed() -> None:
    inside = """<link name="a"><gravity>0</gravity><enable_wind>true</enable_wind><kinematic>false</kinematic><sensor name="s"/>
    <velocity_decay><linear>0</linear></velocity_decay><light name="l"/><inertial><mass surely="1">1</mass></inertial></link>
    <plugin name="p" filename="p.so"/><plugin name="q" filename="q.so"/>"""
    assert dict(read(inside).unused) == {
        "plugins": "2",
        "sensors": "1",
        "lights": "1",
        "elements that are not used": "link/enable_wind (1)",
        "attributes that are not used": "mass@surely (1)",
    }


def test_inertias_that_no_rigid_body_can_have_are_listed() -> None:
    assert read(link("a", "<inertial><inertia><izz>2.1</izz></inertia></inertial>")).unused == (
        ("inertias that no rigid body can have", "a"),
    )


# --- refusals

CYCLE = '<frame name="f"><pose relative_to="g"/></frame><frame name="g"><pose relative_to="f"/></frame>'
TIED = "".join(f'<frame name="{a}" attached_to="{b}"><pose relative_to="__model__"/></frame>' for a, b in ("fg", "gf"))
SPIN = "<axis><xyz>0 0 1</xyz>{}</axis>".format
FOLLOWING = '<mimic joint="{}"/>'.format
TWO = BASE + link("a") + link("b")
OBLIQUE = SPIN("") + "<axis2><xyz>0 1 1</xyz></axis2>"
DAMAGED = {
    "no link": ("", ["model 'm'", "no link"]),
    "link without name": ("<link/>", ["model 'm': <link>", "'name'"]),
    "two links of one name": (link("a") * 2, ["link 'a'", "rename"]),
    "two joints of one name": (ARM + link("b") + joint("elbow", "base", "b"), ["joint 'elbow'", "rename"]),
    "a frame of a link's name": (link("a") + '<frame name="a"/>', ["frame 'a'", "rename"]),
    "a reserved name": (link("world"), ["link 'world'", "reserved"]),
    "a reserved name with underscores": (link("__a__"), ["link '__a__'", "reserved"]),
    "unknown type": (BASE + link("a") + joint("j", "base", "a", type="rubber"), ["joint 'j'", "rubber", "revolute2"]),
    "missing type": (ARM.replace(' type="revolute"', ""), ["elbow", "'type'"]),
    "missing parent": (ARM.replace("<parent>base</parent>", ""), ["elbow", "<parent>"]),
    "missing child": (ARM.replace("<child>arm</child>", ""), ["elbow", "<child>"]),
    "missing axis": (BASE + link("a") + joint("j", "base", "a", ""), ["joint 'j'", "<axis>"]),
    "missing axis2": (BASE + link("a") + joint("j", "base", "a", type="universal"), ["joint 'j'", "<axis2>"]),
    "zero axis": (ARM.replace("0 0 1", "0 0 0"), ["elbow", "axis is zero"]),
    "undefined parent": (BASE + link("a") + joint("j", "torso", "a"), ["joint 'j'", "'torso'"]),
    "undefined child": (BASE + joint("j", "base", "hand"), ["joint 'j'", "'hand'"]),
    "a child that is the world": (BASE + joint("j", "base", "world"), ["joint 'j'", "exchange"]),
    "a joint from a link to itself": (link("a") + joint("j", "a", "a"), ["joint 'j'", "'a' to itself"]),
    "an unknown frame": (link("a", '<pose relative_to="f"/>'), ["link 'a'", "'f'", "define it"]),
    "an unknown frame of an axis": (ARM.replace("<xyz>", '<xyz expressed_in="f">'), ["elbow", "'f'"]),
    "an unknown frame of a shape": (
        link("a", '<visual name="v"><pose relative_to="f"/><geometry><sphere><radius>1</radius></sphere></geometry></visual>'),
        ["visual 'v'", "'f'"],
    ),
    "frames in each other": (link("a") + CYCLE, ["frame 'f'", "circle", "'g'"]),
    "frames on each other": (link("a") + TIED, ["frame 'f'", "attached to each other in a circle: 'f', 'g'"]),
    "unreadable pose": (link("a", "<pose>0 0 zero 0 0 0</pose>"), ["link 'a'", "pose", "zero"]),
    "short pose": (link("a", "<pose>0 0 0</pose>"), ["link 'a'", "6 numbers, not 3"]),
    "zero quaternion": (link("a", '<pose rotation_format="quat_xyzw">0 0 0 0 0 0 0</pose>'), ["link 'a'", "quaternion"]),
    "unknown rotation": (link("a", '<pose rotation_format="xyz">0 0 0 0 0 0</pose>'), ["link 'a'", "euler_rpy"]),
    "two poses": (link("a", "<pose/><pose/>"), ["link 'a'", "2 <pose>"]),
    "two masses": (link("a", "<inertial><mass>1</mass><mass>1</mass></inertial>"), ["link 'a'", "2 <mass>"]),
    "NaN": (link("a", "<inertial><mass>nan</mass></inertial>"), ["link 'a'", "mass", "nan"]),
    "negative mass": (link("a", "<inertial><mass>-1</mass></inertial>"), ["link 'a'", "negative"]),
    "an inertia to be computed of no mesh": (
        link("a", '<inertial auto="true"/><collision name="c"><geometry><mesh><uri>x.stl</uri></mesh></geometry></collision>'),
        ["link 'a'", "auto", 'unsupported="report"'],
    ),
    "no flag": (link("a", "<gravity>perhaps</gravity>"), ["link 'a'", "<gravity> is 'perhaps'"]),
    "limits exchanged": (
        BASE + link("a") + joint("j", "base", "a", SPIN("<limit><lower>1</lower><upper>0</upper></limit>")),
        ["joint 'j': <axis>", "above"],
    ),
    "negative damping": (
        BASE + link("a") + joint("j", "base", "a", SPIN("<dynamics><damping>-1</damping></dynamics>")),
        ["joint 'j': <axis>", "damping is negative"],
    ),
    "an unknown leader": (TWO + joint("j", "base", "a", SPIN(FOLLOWING("k"))), ["joint 'j'", "'k'", "independent"]),
    "leaders in a circle": (
        TWO + joint("j", "base", "a", SPIN(FOLLOWING("k"))) + joint("k", "base", "b", SPIN(FOLLOWING("j"))),
        ["cycle", "'j'", "'k'"],
    ),
    "zero thread": (
        BASE + link("a") + joint("j", "base", "a", "<thread_pitch>0</thread_pitch>" + SPIN(""), "screw"),
        ["joint 'j'", "thread_pitch"],
    ),
    "a thread without bounds": (
        BASE + link("a") + joint("j", "base", "a", "<thread_pitch>1e-310</thread_pitch>" + SPIN(""), "screw"),
        ["joint 'j'", "thread_pitch is 1e-310"],
    ),
    "a gearbox without reference": (
        ARM + link("b") + joint("g", "arm", "b", SPIN(""), "gearbox"),
        ["joint 'g'", "<gearbox_reference_body>"],
    ),
    "a gearbox across a free body": (ARM + link("b") + joint("g", "arm", "b", GEAR, "gearbox"), ["joint 'g'", "root_joint"]),
    "a screw that closes a loop": (
        ARM + link("b") + joint("k", "base", "b") + joint("s", "arm", "b", SPIN(""), "screw"),
        ["joint 's'", "screw joint that closes a loop", 'unsupported="report"'],
    ),
    "a loop of two oblique axes": (
        ARM + link("b") + joint("k", "base", "b") + joint("u", "arm", "b", OBLIQUE, "universal"),
        ["joint 'u'", "not perpendicular"],
    ),
    "an unknown placement frame": ('<model name="n" placement_frame="f"><link name="a"/></model>', ["model 'n'", "'n::f'"]),
    "an outer placement frame": (
        f'<model name="n" placement_frame="f">{link("a")}<frame name="f"><pose relative_to="world"/></frame></model>',
        ["model 'n'", "'n::f' is not placed in it"],
    ),
    "models without end": ('<model name="n">' * 60 + link("a") + "</model>" * 60, ["nested more than 50 deep"]),
}  # fmt: skip


@pytest.mark.parametrize(("inside", "words"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_named_with_file_and_element(inside: str, words: Sequence[str]) -> None:
    with pytest.raises(ModelError) as caught:
        read(inside, unsupported="raise")
    for word in ["<string>", *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize("inside", ["an inertia to be computed of no mesh", "a screw that closes a loop"])
def test_what_is_not_supported_may_be_left_out(inside: str) -> None:
    d = read(DAMAGED[inside][0])
    assert "not supported, and left out" in dict(d.unused)


NOT_SDF = {
    '<robot name="r"/>': "no link",
    "<sdf/>": "no attribute 'version'",
    '<sdf version="1.0"/>': "version '1.0' is not supported, 1.2 to 1.12 are",
    '<sdf version="1.13"/>': "version '1.13' is not supported",
    '<sdf version="new"/>': "version 'new' is not supported",
    '<sdf version="1.7"/>': "no link in it",
    '<sdf version="1.7"><world name="a"/><world name="b"/></sdf>': "several worlds.*'a', 'b'",
    '<sdf version="1.7"><model name="m">': "cut short",
}


@pytest.mark.parametrize(("text", "words"), NOT_SDF.items())
def test_text_that_is_no_sdf_is_refused(text: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        load_description(text, unsupported="raise")


def test_a_file_of_another_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.sdf").write_text("<html/>")
    with pytest.raises(ModelError, match=r"m\.sdf: the root element is <html>, not <sdf>"):
        load_description(tmp_path / "m.sdf")


# --- the files of a real robot

RODS = "left-pitch-rod-joint, right-pitch-rod-joint"
FREE = {"cassie_v2": 18, "cassie_reduced": 11, "cassie_simple": 11, "cassie_wo_gearbox_spring": 13}  # numbers of velocities


def test_real_files_are_found() -> None:
    assert {path.stem for path in CASSIE.glob("*.sdf")} == {"cassie", *FREE}


@pytest.mark.parametrize("name", ["cassie", *FREE])
def test_cassie_is_read_without_loss(name: str) -> None:
    d = fw.read(CASSIE / f"{name}.sdf")
    unused = dict(d.unused)
    unused.pop("inertias that no rigid body can have", None)  # of two rotors of cassie.sdf
    assert unused == {
        "plugins": "1",
        "elements that are not used": "contact/ode (2)",
        "limits and forces of joints that close loops, gear others or have no axis": RODS,  # damping of ball joints
    }
    assert len(d.bodies) == (35 if name == "cassie" else 23)
    assert len(d.loops) == (6 if name == "cassie" else 4) and len(d.couplings) == (10 if name == "cassie" else 0)
    assert sum(s.collision for s in d.shapes) == 9
    assert {(j.stiffness, j.rest) for j in d.joints if j.stiffness} == {(1500, 0), (1250, 0)}


@pytest.mark.parametrize(("name", "nv"), FREE.items())
def test_the_loops_of_cassie_close(name: str, nv: int) -> None:
    robot = closed(fw.read(CASSIE / f"{name}.sdf"))
    assert robot.nv == nv and robot.mass == pytest.approx(32.94, rel=1e-3)
    assert np.abs(robot.residual(robot.neutral())).max() < 1e-8  # the files have six decimals
    q = robot.close(robot.integrate(robot.neutral(), np.full(nv, 0.02)))
    assert np.abs(robot.residual(q)).max() < 1e-8


def test_rotors_of_cassie_turn_as_their_gears_say() -> None:
    """Check that prismatic joints hold two links parallel whose hinges are 35 mm apart, and contradict the other loops."""
    d = fw.read(CASSIE / "cassie.sdf")
    whole = closed(d)
    assert whole.nv == 18 and np.abs(whole.residual(whole.random_configuration(rng=1))).max() < LOOP_TOLERANCE
    assert "'right-shin-spring-joint' by 8" in whole.report()["loops that contradict each other"]
    robot = closed(replace(d, loops=tuple(loop for loop in d.loops if loop.type is not LoopType.PRISMATIC)))
    assert robot.nv == 20 and np.abs(robot.residual(robot.neutral())).max() < 1e-8
    ratios = {c.joint: c.terms for c in d.couplings}
    assert ratios["left-roll-op"] == (("left-roll-ip", (-0.04,)),)
    assert ratios["right-foot-op"] == (("right-foot-ip", (-0.02,)),)
