"""Tests of MJCF files: tree, inertias and kinematics as in MuJoCo, and clear reports of refused and unused content."""

from __future__ import annotations

import builtins
import math
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from featherweight.model.description import Description
from featherweight.model.formats.mjcf.read.reader import _check_finite
from featherweight.model.formats.registry import load_description
from featherweight.model.types import WORLD, Joint, JointType, ModelError, Pose
from featherweight.robot.not_simulated import CHANGING_MOTION

INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
MISSING = (
    '<asset><mesh name="hull" file="nowhere.obj"/><hfield name="hill" file="nowhere.png" size="1 1 1 1"/>'
    '<texture name="paint" type="2d" file="nowhere.png"/><material name="shiny" texture="paint"/>'
    '<skin name="hide" file="nowhere.skn"/></asset>'
)


def write(folder: Path, inside: str) -> Path:
    path = folder / "robot.xml"
    path.write_text(f'<mujoco model="r">{inside}</mujoco>')
    return path


def load(folder: Path, bodies: str, rest: str = "", **options: Any) -> Description:
    return load_description(write(folder, f"<worldbody>{bodies}</worldbody>{rest}"), **options)


def arm(inside: str = "<joint name='elbow'/>", weight: str = INERTIAL) -> str:
    return f'<body name="arm">{inside}{weight}</body>'


def message(folder: Path, bodies: str, rest: str = "") -> str:
    with pytest.raises(ModelError) as caught:
        load(folder, bodies, rest, unsupported="raise")
    assert str(folder / "robot.xml") in str(caught.value)
    return str(caught.value)


# --- kinematics and inertia


def turned(axis: np.ndarray, angle: float) -> np.ndarray:
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross


def motion(joint: Joint, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the child's placement relative to that of the joint, with q in MuJoCo's coordinates."""
    axis, anchor, p = np.array(joint.axis), np.array(joint.anchor), np.zeros(3)
    R = np.eye(3)
    if joint.type == JointType.PRISMATIC:
        p = axis * (q[0] - joint.zero)
    elif joint.type == JointType.REVOLUTE:
        R = turned(axis, q[0] - joint.zero)
    elif joint.type != JointType.FIXED:
        w, v = q[-4], q[-3:]
        length = np.linalg.norm(v)
        R = turned(v / length, 2 * math.atan2(length, w))
    if joint.type == JointType.FLOATING:
        p = q[:3]
    return R, p + anchor - R @ anchor


def poses(robot: Description, q: np.ndarray) -> dict[str | None, tuple[np.ndarray, np.ndarray]]:
    found: dict[str | None, tuple[np.ndarray, np.ndarray]] = {WORLD: (np.eye(3), np.zeros(3))}
    for joint in robot.joints:
        used, q = np.split(q, [joint.type.nq])
        for R, p in (joint.placement, motion(joint, used)):
            R0, p0 = found[joint.parent if joint.child not in found else joint.child]
            found[joint.child] = (R0 @ np.array(R), p0 + R0 @ np.array(p))
    return found


MIXED = """
<compiler angle="degree" eulerseq="zyx"/>
<worldbody>
  <body name="trunk" pos="1 2 3" euler="10 20 30"><freejoint/>
    <geom type="box" size=".1 .2 .3" pos=".1 0 .2" euler="5 6 7"/>
    <site name="eye" pos="1 0 0" euler="90 0 0"/>
    <body name="upper" pos=".1 .2 .3" euler="40 50 60">
      <joint name="swing" type="hinge" axis="1 2 3" pos=".1 .1 -.2" ref="25" range="-50 70" armature=".4"/>
      <joint name="push" type="slide" axis="0 1 1" pos=".4 .1 .2" ref=".3" range="-1 1"/>
      <joint name="turn" type="ball" pos="-.1 .2 .3"/>
      <inertial pos=".1 .2 .3" mass="2" fullinertia="2 3 4 .1 .2 .3"/>
      <body name="hand" pos="0 0 1" axisangle="1 1 0 33">
        <geom type="capsule" size=".1" fromto="0 0 0 .1 .2 .3"/>
        <body name="tip" pos="0 .1 0" euler="0 0 90"><joint type="hinge" axis="0 0 1"/><geom size=".1"/></body>
      </body>
    </body>
  </body>
  <body name="post" pos="5 5 5"><geom size=".3"/></body>
</worldbody>
"""


def test_bodies_lie_where_mujoco_puts_them(tmp_path: Path) -> None:
    path = write(tmp_path, MIXED)
    robot, model = load_description(path), mujoco.MjModel.from_xml_path(str(path))
    data, rng = mujoco.MjData(model), np.random.default_rng(1)
    for _ in range(5):
        data.qpos[:] = rng.normal(size=model.nq)
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_kinematics(model, data)
        found = poses(robot, data.qpos.copy())
        for i in range(1, model.nbody):
            R, p = found[model.body(i).name]
            np.testing.assert_allclose(R, data.xmat[i].reshape(3, 3), atol=1e-13)  # about ten products of rotations
            np.testing.assert_allclose(p, data.xpos[i], atol=1e-13)


def test_inertias_are_in_body_axes(tmp_path: Path) -> None:
    path = write(tmp_path, MIXED)
    robot, model = load_description(path), mujoco.MjModel.from_xml_path(str(path))
    upper = next(body.inertia for body in robot.bodies if body.name == "upper")
    assert (upper.mass, upper.center) == (2.0, (0.1, 0.2, 0.3))
    # MuJoCo finds the principal axes by iteration, and stops at 1e-12
    assert upper.rotational == pytest.approx((2.0, 0.1, 0.2, 3.0, 0.3, 4.0), abs=1e-11)
    assert sum(body.inertia.mass for body in robot.bodies) == pytest.approx(model.body_mass.sum(), rel=1e-15)


@pytest.mark.parametrize(("flag", "there"), [("limit", (0, 1)), ("equality", (1, 0)), ("constraint", (0, 0))])
def test_what_the_flags_of_constraints_disable_is_not_there(tmp_path: Path, flag: str, there: tuple[int, ...]) -> None:
    joints = '<joint name="e" range="-1 1" limited="true" axis="1 0 0"/><joint name="f"/>'
    rest = f'<equality><joint joint1="f" joint2="e"/></equality><option><flag {flag}="disable"/></option>'
    robot = load(tmp_path, arm(joints), rest)
    assert (np.isfinite(robot.joints[0].upper), len(robot.couplings)) == there
    assert dict(robot.unused).get("inactive equality constraints") == (None if there[1] else "1")


def test_several_joints_of_a_body_become_a_chain(tmp_path: Path) -> None:
    robot = load_description(write(tmp_path, MIXED))
    assert [body.name for body in robot.bodies] == [
        *("trunk", "upper/swing", "upper/push", "upper"),
        *("hand", "tip", "post"),
    ]
    assert robot.virtual == {"upper/swing", "upper/push"}
    assert [(j.name, str(j.type), j.parent, j.child) for j in robot.joints] == [
        ("trunk_joint", "floating", WORLD, "trunk"),
        ("swing", "revolute", "trunk", "upper/swing"),
        ("push", "prismatic", "upper/swing", "upper/push"),
        ("turn", "spherical", "upper/push", "upper"),
        ("hand_fixed", "fixed", "upper", "hand"),
        ("tip_joint", "revolute", "hand", "tip"),
        ("post_fixed", "fixed", WORLD, "post"),
    ]
    assert robot.joints[0].placement == robot.joints[2].placement == Pose()


def test_joints_carry_zero_limits_and_armature(tmp_path: Path) -> None:
    _, swing, push, turn, *_ = load_description(write(tmp_path, MIXED)).joints
    assert (swing.zero, swing.lower, swing.upper) == pytest.approx(np.deg2rad([25, -50, 70]), rel=1e-15)
    assert (swing.armature, turn.armature) == (0.4, 0.0)
    assert (push.zero, push.lower, push.upper) == (0.3, -1.0, 1.0)
    assert (turn.lower, turn.upper) == (-math.inf, math.inf)


def test_sites_become_frames(tmp_path: Path) -> None:
    (eye,) = load_description(write(tmp_path, MIXED)).frames
    assert (eye.name, eye.body, eye.placement.p) == ("eye", "trunk", (1.0, 0.0, 0.0))
    assert eye.placement.R == ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))  # exact zeros


def test_actuator_armature_reaches_the_joint_as_in_mujoco(tmp_path: Path) -> None:
    motors = '<actuator><motor joint="elbow" gear="3" armature="0.5"/><motor joint="elbow" armature="2"/></actuator>'
    robot = load(tmp_path, arm('<joint name="elbow" armature="0.25"/>'), motors)
    model = mujoco.MjModel.from_xml_path(robot.source)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    M = np.zeros((1, 1))
    mujoco.mj_fullM(model, data, M)
    assert robot.joints[0].armature == 0.25 + 9 * 0.5 + 2
    assert M[0, 0] == pytest.approx(robot.joints[0].armature + 1.0, rel=1e-15)


def test_armature_of_a_free_joint_is_refused(tmp_path: Path) -> None:
    text = message(tmp_path, arm('<joint name="loose" type="free" armature="0.5"/>'))
    assert "armature of joint 'loose': that of a free joint" in text and "<freejoint/>" in text


def test_armature_of_a_ball_or_free_joint_is_one_number(tmp_path: Path) -> None:
    robot = load(tmp_path, arm('<joint type="ball" armature="0.25"/>'))
    assert robot.joints[0].armature == 0.25


def test_gravity_is_that_of_the_file(tmp_path: Path) -> None:
    assert load(tmp_path, arm()).gravity == (0.0, 0.0, -9.81)
    assert load(tmp_path, arm(), '<option gravity="1 2 3"/>').gravity == (1.0, 2.0, 3.0)
    assert load(tmp_path, arm(), '<option><flag gravity="disable"/></option>').gravity == (0.0, 0.0, 0.0)


def test_names_are_made_up_where_the_file_has_none(tmp_path: Path) -> None:
    unnamed = f'<body><joint/>{INERTIAL}<site/></body><body name="body1"/>'
    rest = f'<body name="a"><joint name="b_joint"/>{INERTIAL}</body><body name="b"><joint/>{INERTIAL}</body>'
    robot = load(tmp_path, unnamed + rest)
    assert [body.name for body in robot.bodies] == ["body1_2", "body1", "a", "b"]
    assert [joint.name for joint in robot.joints] == ["body1_2_joint", "body1_fixed", "b_joint", "b_joint_2"]
    assert robot.frames[0].name == "site0"


# --- appearance


def test_missing_assets_do_not_matter(tmp_path: Path) -> None:
    shown = '<geom type="mesh" mesh="hull" material="shiny"/><site name="s" material="shiny"/>'
    ground = '<geom type="hfield" hfield="hill" material="shiny"/><geom type="mesh" mesh="hull"/>'
    touch = '<sensor><touch site="s"/></sensor>'
    robot = load(tmp_path, ground + arm("<joint/>" + shown), MISSING + touch)
    assert robot.bodies[0].inertia.mass == 1.0
    assert [s.name for s in robot.sensors] == ["s_touch"]
    assert dict(robot.unused) == {
        "meshes not found": "1, the first is 'nowhere.obj'",
        "height fields whose files cannot be read": "1",
        "geoms that touch and are left out": "1",
        "textures": "1",
        "skins": "1",
    }


@pytest.mark.parametrize("massless", ['mass="0"', 'density="0"', 'group="5"'])
def test_a_missing_mesh_without_mass_does_not_matter(tmp_path: Path, massless: str) -> None:
    geoms = f'<geom size="0.1" mass="3"/><geom type="mesh" mesh="hull" {massless}/>'
    robot = load(tmp_path, arm(weight=geoms), MISSING + '<compiler inertiagrouprange="0 4"/>')
    assert robot.bodies[0].inertia.mass == 3.0


def test_a_missing_mesh_that_gives_the_mass_is_refused(tmp_path: Path) -> None:
    text = message(tmp_path, arm(weight='<geom type="mesh" mesh="hull"/>'), MISSING)
    assert "body 'arm'" in text and "nowhere.obj" in text and "<inertial>" in text


def test_a_missing_mesh_counts_where_geoms_overrule_the_inertial(tmp_path: Path) -> None:
    shape = '<geom type="mesh" mesh="hull"/>'
    text = message(tmp_path, arm(weight=INERTIAL + shape), MISSING + '<compiler inertiafromgeom="true"/>')
    assert "body 'arm'" in text and "nowhere.obj" in text


def test_a_mesh_that_exists_gives_its_mass(tmp_path: Path) -> None:
    corners = "0 0 0  1 0 0  0 1 0  0 0 1"
    mesh = f'<asset><mesh name="hull" vertex="{corners}"/></asset>'
    robot = load(tmp_path, arm(weight='<geom type="mesh" mesh="hull" density="6"/>'), mesh)
    assert robot.bodies[0].inertia.mass == pytest.approx(1.0, rel=1e-6)  # the mesh is stored in single precision


def test_static_bodies_are_not_fused(tmp_path: Path) -> None:
    robot = load(tmp_path, arm(weight=INERTIAL + '<body name="hand"/>'), '<compiler fusestatic="true"/>')
    assert [body.name for body in robot.bodies] == ["arm", "hand"]


# --- reports


def test_everything_without_use_is_listed(tmp_path: Path) -> None:
    hinge = '<geom name="f" size="1"/><geom name="g" size="1"/><joint name="e" stiffness="1" damping="2" frictionloss="3"/>'
    loose = f'<body name="c"><joint type="free" stiffness="1"/>{INERTIAL}</body>'
    joints = hinge + '<joint name="s" type="ball" limited="true" range="0 30"/>'
    robot = load(
        tmp_path,
        '<light/><camera/><body name="target" mocap="true"/>' + arm(joints) + '<body name="b" gravcomp="1"/>' + loose,
        '<tendon><fixed name="t" stiffness="4"><joint joint="e" coef="1"/></fixed></tendon>'
        '<actuator><motor joint="e"/><intvelocity joint="e" actrange="0 1"/><motor tendon="t"/><motor joint="s"/>'
        '<general joint="e" gaintype="affine"/></actuator><contact><pair geom1="f" geom2="g"/></contact>'
        '<keyframe><key ctrl="0 1 0 0 0"/></keyframe><custom><numeric name="n" data="1"/></custom><option viscosity="0.5"/>'
        '<equality><connect body1="arm" body2="b" anchor="0 0 0" active="false"/></equality>',
    )
    assert dict(robot.unused) == {
        "inactive equality constraints": "1",
        "actuators": "1 on ball joint beside others",
        "lights": "1",
        "mocap bodies, taken as fixed": "1",
        "mocap poses of keyframes": "1",
        "custom fields": "1",
    }


SOFT = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="1 1 1" {floor}/>
  <body name="a"><joint name="j" range="0 1" limited="true" frictionloss="1" {joint}/><geom name="g" size=".1" {geom}/>
    <body name="b"><joint name="k" solreflimit="1 1"/><geom size=".1"/></body></body></worldbody>
  <tendon><fixed name="t" {tendon}><joint joint="j" coef="2"/></fixed></tendon>
  <equality><joint joint1="j" joint2="k" {equality}/></equality>
  <actuator><motor joint="j" {motor}/></actuator>
  <contact><pair geom1="floor" geom2="g" {pair}/></contact></mujoco>"""
HOLDS = "equality constraints that yield in MuJoCo, taken as exact"


@pytest.mark.parametrize(
    ("where", "attribute", "kind"),
    [
        ("tendon", 'springyield="1" stiffness="1"', "springs of tendons that yield"),
    ],
)
def test_what_changes_motion_and_is_not_read_is_listed(tmp_path: Path, where: str, attribute: str, kind: str) -> None:
    path = tmp_path / "robot.xml"
    parts = dict.fromkeys(("floor", "joint", "geom", "tendon", "equality", "motor", "pair"), "")
    path.write_text(SOFT.format(**parts))
    assert dict(load_description(path).unused) == {HOLDS: "1"} and HOLDS in CHANGING_MOTION
    path.write_text(SOFT.format(**parts | {where: attribute}))
    try:
        mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        pytest.skip("this version of MuJoCo lacks the element")
    for equalities in ("exact", "compliant", "file"):
        assert dict(load_description(path, equalities=equalities).unused) == {kind: "1"}
    assert kind in CHANGING_MOTION


# --- refusals


def test_actuator_armature_away_from_hinge_and_slide_joints_is_refused_by_name(tmp_path: Path) -> None:
    motor = '<actuator><motor name="pull" joint="hip" gear="1 0 0" armature="1"/></actuator>'
    assert "actuator 'pull'" in message(tmp_path, arm('<joint name="hip" type="ball"/>'), motor)


def test_flexible_bodies_are_refused_by_name(tmp_path: Path) -> None:
    cloth = '<flexcomp name="cloth" type="grid" dim="2" count="3 3 1" spacing=".1 .1 .1" mass="1" radius=".01"/>'
    assert "flexcomp 'cloth'" in message(tmp_path, cloth)


ENDLESS = {
    "copies": ('<replicate count="1e9" offset="0.1 0 0"><geom size="0.1"/></replicate>', "", ["<replicate>", "1e+09 copies"]),
    "copies of copies": (
        '<body name="a"><replicate count="100"><replicate count="100"><site/></replicate></replicate></body>',
        "",
        ["<replicate> of body 'a'", "1.01e+04 copies"],
    ),
    "height field": ("", '<asset><hfield name="h" nrow="99999" ncol="99999" size="1 1 1 1"/></asset>', ["'h'", "1e+10 cells"]),
    "keyframes": ("", '<size nkey="2000000000"/>', ["<size>", "'nkey'", "2000000000"]),
    "stack": ("", '<size nstack="2000000000"/>', ["<size>", "'nstack'", "2000000000"]),
    "flexible": ('<flexcomp name="f" type="grid" count="100000 100000 1" dim="2"/>', "", ["flexcomp 'f'", "not supported"]),
}


@pytest.mark.parametrize(("bodies", "rest", "words"), ENDLESS.values(), ids=ENDLESS)
def test_what_mujoco_would_not_come_back_from_is_refused_by_name(
    tmp_path: Path, bodies: str, rest: str, words: Sequence[str]
) -> None:
    assert all(word in message(tmp_path, arm() + bodies, rest) for word in words)


def test_copies_count_in_included_files_too(tmp_path: Path) -> None:
    (tmp_path / "part.xml").write_text('<mujocoinclude><replicate count="600"><site/></replicate></mujocoinclude>')
    path = write(tmp_path, '<worldbody><replicate count="2"><include file="part.xml"/></replicate></worldbody>')
    with pytest.raises(ModelError, match=r"part.xml: <replicate>: the file asks for 1202 copies"):
        load_description(path)


def test_some_copies_are_made(tmp_path: Path) -> None:
    robot = load(tmp_path, f'<replicate count="9" offset="0.1 0 0">{arm()}</replicate>')
    assert len(robot.bodies) == 9


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize(
    ("rest", "tag"), [('<include file="pipe"/>', "include"), ('<asset><model name="m" file="pipe"/></asset>', "model")]
)
def test_pipes_in_place_of_files_are_refused_by_name(tmp_path: Path, rest: str, tag: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert re.search(rf"robot\.xml: <{tag}>.*pipe: a pipe, socket or device", message(tmp_path, arm(), rest))


DAMAGED = {
    "NaN": (arm('<joint name="elbow" pos="nan 0 0"/>'), ["<joint>", "elbow", "pos", "nan"]),
    "infinite": (arm(weight=INERTIAL.replace('mass="1"', 'mass="inf"')), ["<inertial>", "body 'arm'", "mass", "inf"]),
    "unreadable number": (arm('<joint name="elbow" pos="zero 0 0"/>'), ["joint", "pos", "MuJoCo"]),
    "negative mass": (arm(weight=INERTIAL.replace('mass="1"', 'mass="-1"')), ["MuJoCo", "mass"]),
    "moving without mass": (arm(weight=""), ["MuJoCo", "mass", "arm"]),
    "inertia no body can have": (arm(weight=INERTIAL.replace("1 1 1", "1 1 5")), ["MuJoCo", "inertia", "arm"]),
    "zero axis": (arm('<joint name="elbow" axis="0 0 0"/>'), ["MuJoCo", "axis", "elbow"]),
    "unknown type": (arm('<joint name="elbow" type="rubber"/>'), ["MuJoCo", "joint", "rubber"]),
    "two bodies of one name": (arm() + arm("<joint/>"), ["MuJoCo", "arm", "body"]),
    "unknown element": ("<bone/>", ["MuJoCo", "bone"]),
    "missing include": ('<include file="nowhere.xml"/>', ["MuJoCo", "nowhere.xml"]),
}


@pytest.mark.parametrize(("bodies", "words"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_named_with_file_and_element(tmp_path: Path, bodies: str, words: Sequence[str]) -> None:
    text = message(tmp_path, bodies)
    assert [word for word in words if word not in text] == []


def test_included_files_are_checked_and_named(tmp_path: Path) -> None:
    part = arm('<joint name="elbow" pos="nan 0 0"/>')
    (tmp_path / "part.xml").write_text(f"<mujocoinclude>{part}</mujocoinclude>")
    path = write(tmp_path, '<worldbody><include file="part.xml"/></worldbody>')
    with pytest.raises(ModelError, match=r"part.xml: <joint> of joint 'elbow': 'pos' is 'nan 0 0'"):
        load_description(path)


def test_numbers_that_overflow_are_refused_by_name(tmp_path: Path) -> None:
    heavy = '<geom name="g" type="box" size="1e20 1e20 1e20" density="1e30"/>'
    assert "body 'arm': mass is not finite, or beyond 1e+30" in message(tmp_path, arm(weight=heavy))
    large = '<geom name="g" type="box" size="1e100 1e100 1e100"/>'
    assert "<geom> of geom 'g': 'size'" in message(tmp_path, arm(weight=large))


NOT_FINITE = ("nan", "NaN", "-nan", "nan(1)", "+nan(a_1)", "inf", "-Infinity", "0x1p9999")
LIMITED = '<joint name="elbow" limited="true" range="-1 1" {}/>'
NUMBERS = {
    "mass": (arm(weight='<geom name="elbow" size="1" mass="{}"/>'), ""),
    "solreflimit": (arm(LIMITED.format('solreflimit="{} 1"')), ""),
    "solimplimit": (arm(LIMITED.format('solimplimit="0.9 {}"')), ""),
    "margin": (arm(LIMITED.format('margin="{}"')), ""),
    "impratio": (arm(), '<option impratio="{}"/>'),
    "springlength": (arm(), '<tendon><spatial name="elbow" springlength="{}"/></tendon>'),
    "user": (arm('<joint name="elbow" user="1 {}"/>'), ""),
    "data": (arm(), '<custom><numeric name="elbow" data="{}"/></custom>'),
    "camera": (arm(), '<visual><scale camera="{}"/></visual>'),
    "unknown": (arm('<joint name="elbow" unknown="{}"/>'), ""),
}


@pytest.mark.parametrize("key", NUMBERS)
def test_numbers_that_are_not_finite_are_refused_in_every_attribute(key: str, tmp_path: Path) -> None:
    """Check all spellings that C reads; MuJoCo has new attributes in each version, so they are not listed."""
    bodies, rest = NUMBERS[key]
    for word in NOT_FINITE:
        text = message(tmp_path, bodies.format(word), rest.format(word))
        assert re.search(rf"robot\.xml: <\w+>.*: '{key}' is '.*{re.escape(word)}.*'; give finite numbers", text)


def test_words_that_look_like_numbers_are_names(tmp_path: Path) -> None:
    robot = load(tmp_path, f'<body name="nan"><joint name="inf"/>{INERTIAL}<site name="nan(1)"/></body>')
    assert (robot.bodies[0].name, robot.joints[0].name, robot.frames[0].name) == ("nan", "inf", "nan(1)")


def test_numbers_in_base_16_have_limits_too(tmp_path: Path) -> None:
    assert load(tmp_path, arm(weight='<geom size="1" mass="0x10"/>')).bodies[0].inertia.mass == 16.0
    assert "'mass' is '0x1p200'" in message(tmp_path, arm(weight='<geom size="1" mass="0x1p200"/>'))


@pytest.mark.filterwarnings("error")
def test_reading_changes_no_filters_of_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a file about which MuJoCo warns. All threads share the filters, so `catch_warnings` must not be used."""
    with monkeypatch.context() as changed:
        changed.setattr(warnings, "catch_warnings", None)
        robot = load(tmp_path, arm(), '<compiler settotalmass="3"/>')
    assert robot.bodies[0].inertia.mass == 3.0


BOMB = '<!DOCTYPE m [<!ENTITY a "aaaa">]><mujoco model="&a;"/>'


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('<mujoco><worldbody><body name="a', "cut short"),
        ("", "not an XML file"),
        ("<html/>", "<html>, not <mujoco>"),
        ("<mujocoinclude/>", "load the file that includes this one"),
        (BOMB, "entities"),
    ],
)
def test_a_file_that_is_no_mjcf_is_refused(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(content)
    with pytest.raises(ModelError, match=words) as caught:
        load_description(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_reported_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_description(tmp_path / "nowhere.xml")


def test_without_mujoco_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_mujoco(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "mujoco":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_mujoco)
    with pytest.raises(ImportError, match=r"pip install .*featherweight\[mjcf\]"):
        load_description(write(tmp_path, ""))


@pytest.mark.parametrize(
    ("field", "what"), [("dof_damping", "damping"), ("qpos0", "ref, or the place of its body,"), ("qpos_spring", "springref")]
)
def test_numbers_that_overflowed_are_refused_with_the_joint(field: str, what: str) -> None:
    """Check a compiled model whose last number is set to infinity, because no file with valid numbers leads to one."""
    text = (
        '<mujoco><worldbody><body><joint name="b" type="ball"/><geom size="1"/><body><joint name="last"/>'
        '<geom size="1"/></body></body></worldbody></mujoco>'
    )
    model = mujoco.MjModel.from_xml_string(text)
    getattr(model, field)[-1] = np.inf
    with pytest.raises(ModelError, match=f"r.xml: joint 'last': {what} is not finite, or beyond 1e.30; give finite numbers"):
        _check_finite(model, "r.xml")
