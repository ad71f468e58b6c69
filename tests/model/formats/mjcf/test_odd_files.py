"""Tests of odd MJCF files that MuJoCo compiles: they load, the oddity is named, and unsupported="raise" refuses."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherweight as fw

BODY = '<body name="{0}"><joint name="{0}" {1}/><geom size="0.1" pos="0.2 0 0"/></body>'
CLOTH = '<flexcomp name="cloth" type="grid" dim="2" count="3 3 1" spacing=".1 .1 .1" mass="1" radius=".01"/>'


def two(joint: str = "", rest: str = "", inside: str = "", asset: str = "") -> str:
    bodies = BODY.format("a", joint) + BODY.format("b", "")
    return f"<mujoco><asset>{asset}</asset><worldbody>{inside}{bodies}</worldbody>{rest}</mujoco>"


def follow(*pairs: tuple[str, str]) -> str:
    joints = (f'<joint joint1="{a}" joint2="{b}"/>' for a, b in pairs)
    return f"<equality>{''.join(joints)}</equality>"


THIRD = BODY.format("c", "")
ODD = {
    "a stiffness below zero": (two('stiffness="-1"'), 2, "joint 'a': the stiffness is negative (-1), taken as zero"),
    "a tendon's damping below zero": (
        two(
            rest='<tendon><fixed name="t" damping="-1"><joint joint="a" coef="1"/><joint joint="b" coef="1"/></fixed></tendon>'
        ),
        2,
        "tendon 't': the damping is negative (-1), taken as zero",
    ),
    "a cloth": (two(inside=CLOTH), 2, "flexcomp 'cloth'"),
    "one equality twice": (
        two(rest=follow(("a", "b"), ("a", "b"))),
        1,
        "equality number 1: joint 'a' follows by equality 'equality0' already",
    ),
    "joints that follow each other": (
        two(rest=follow(("a", "b"), ("b", "a"))),
        1,
        "joints 'b' and 'a' follow each other, left out",
    ),
    "a joint that follows two": (
        two(rest=follow(("a", "b"), ("a", "c")), inside=THIRD),
        1,
        "",
    ),
    "three in a cycle": (
        two(rest=follow(("a", "b"), ("b", "c"), ("c", "a")), inside=THIRD),
        1,
        "joints 'c' and 'a' follow each other, left out",
    ),
    "three in a cycle that meet at one point": (
        two(
            rest=follow(("a", "b"), ("b", "c")).replace("</eq", '<joint joint1="c" joint2="a" polycoef=".3 .5 0 0 0"/></eq'),
            inside=THIRD + BODY.format("d", ""),
        ),
        1,
        "joints 'c' and 'a' follow each other at one point only, 'c' is fixed at 0.6",
    ),
    "a weld of bodies in one piece": (
        two(rest='<equality><weld body1="c"/></equality>', inside='<body name="c"><geom size="1"/></body>'),
        2,
        "no joint moves body 'c' against 'world', left out",
    ),
    "two constants of one joint": (
        two(rest='<equality><joint joint1="a"/><joint joint1="a" polycoef="1 0 0 0 0"/></equality>'),
        1,
        "equality number 1: joint 'a' follows by equality 'equality0' already, left out",
    ),
    "an offset around a cycle": (
        two(rest=follow(("a", "b")).replace("</eq", '<joint joint1="a" joint2="b" polycoef="1 1 0 0 0"/></eq')),
        1,
        "joints 'b' and 'a' follow each other, with an offset of -1 around the cycle, left out",
    ),
    "a cycle by a polynomial": (
        two(rest=follow(("b", "a")).replace("<joint", '<joint joint1="a" joint2="b" polycoef="0 1 1 0 0"/><joint', 1)),
        1,
        "joints 'b' and 'a' follow each other, by a polynomial of degree 2, left out",
    ),
    "a keyframe that is not finite": (
        two(rest='<keyframe><key name="k" qpos="nan 0"/><key name="l" qpos="1e40 0"/></keyframe>'),
        2,
        "<key> 'l': 'qpos' is '1e40 0', left out",
    ),
    "a colour that is not finite": (
        two(inside='<geom size="1" rgba="nan 0 0 1"/>'),
        2,
        "<geom>: 'rgba' is 'nan 0 0 1', left out",
    ),
    "custom numbers that are not finite": (
        two(rest='<custom><numeric name="n" data="nan"/></custom><statistic center="inf 0 0"/>'),
        2,
        "<numeric> 'n': 'data' is 'nan', left out",
    ),
    "noise that is not finite": (
        two(rest='<sensor><jointpos joint="a" noise="nan"/></sensor>'),
        2,
        "<jointpos>: 'noise' is 'nan', left out",
    ),
    "a gap below zero": (
        two(inside='<geom name="g" size="1" gap="-1"/>'),
        2,
        "geom 'g': the gap is negative (-1), taken as zero",
    ),
    "a camera without an angle": (two(inside='<camera name="c" fovy="0"/>'), 2, "camera 'c': its fovy is 0, taken as 45"),
    "much user data": (two(rest='<size nuserdata="100000"/>'), 2, "<size>: 'nuserdata' is '100000', more than 10000, left out"),
    "a bare ampersand": (two(inside='<geom name="a & b" size="1"/>'), 2, "invalid characters"),
    "dashes in a comment": (two(inside="<!-- a -- b -->"), 2, "invalid characters"),
}


@pytest.mark.parametrize(("text", "nv", "words"), ODD.values(), ids=ODD)
def test_odd_files_are_those_that_mujoco_compiles_and_the_oddity_is_named(text: str, nv: int, words: str) -> None:
    mujoco.MjModel.from_xml_string(text)
    if not words:
        assert fw.load(text, execution="interpreted").nv == nv
        return
    with pytest.warns(fw.ModelWarning) as told:
        robot = fw.load(text, execution="interpreted")
    assert robot.nv == nv and any(words in str(x.message) for x in told), [str(x.message) for x in told]
    report = robot.report()
    assert any(words in report.get(key, "") for key in ("odd contents, taken as said", "not supported, and left out"))
    with pytest.raises(fw.ModelError):
        fw.load(text, unsupported="raise")


@pytest.mark.parametrize("limit", ["-1e40 1e40", "-inf inf"])
def test_infinite_ranges_are_no_limits(limit: str) -> None:
    text = two(f'range="{limit}" limited="true"')
    mujoco.MjModel.from_xml_string(text)
    robot = fw.load(text, execution="interpreted")
    np.testing.assert_array_equal(robot.upper, (np.inf, np.inf))


@pytest.mark.parametrize("light", ['<light type="image" texture="sky" intensity="100"/>', '<light texture="sky"/>', "<light/>"])
def test_lights_with_textures_are_counted(light: str) -> None:
    sky = '<texture name="sky" type="cube" builtin="flat" rgb1="1 1 1" width="8" height="8"/>'
    text = two(inside=light, asset=sky)
    try:
        mujoco.MjModel.from_xml_string(text)
    except ValueError:
        pytest.skip("this version of MuJoCo has no such lights")
    assert fw.load(text, execution="interpreted").report() == {"textures": "1", "lights": "1"}


def test_a_joint_that_follows_two_leads_the_second() -> None:
    """Check a = 0.5 + 2 b and a = 1 - 4 c, from which c = (0.5 - 2 b) / 4."""
    rest = """<equality><joint joint1="a" joint2="b" polycoef=".5 2 0 0 0"/>
    <joint joint1="a" joint2="c" polycoef="1 -4 0 0 0"/></equality>"""
    d = fw.read(two(rest=rest, inside=THIRD))
    assert {c.joint: (c.terms, c.offset) for c in d.couplings} == {
        "a": ((("b", (2.0,)),), 0.5),
        "c": ((("b", (-0.5,)),), 0.125),
    }


def test_a_default_namespace_is_ignored() -> None:
    text = two().replace("<mujoco>", '<mujoco xmlns="http://example.com/mjcf">')
    mujoco.MjModel.from_xml_string(text)
    assert fw.load(text, execution="interpreted").nv == 2


def test_equalities_that_hold_all_joints_make_them_fixed() -> None:
    """Check a robot that couplings hold, and a triangle of three bodies; the file's configuration closes it."""
    held = '<equality><joint joint1="a" polycoef="0.3 0 0 0 0"/><joint joint1="b" joint2="a" polycoef="0 2 0 0 0"/></equality>'
    triangle = """<mujoco><worldbody><body name="a"><joint axis="0 1 0"/><geom size=".1"/>
    <body name="b" pos="1 0 0"><joint axis="0 1 0"/><geom size=".1"/></body></body></worldbody>
    <equality><connect body1="b" anchor="0 0 1"/></equality></mujoco>"""
    for text, angle in ((two(rest=held), 0.6), (triangle, 0.0)):
        mujoco.MjModel.from_xml_string(text)
        with pytest.warns(fw.ModelWarning) as told:
            robot = fw.load(text, execution="interpreted")
        assert any("loops and couplings hold all joints, which are taken as fixed" in str(x.message) for x in told)
        assert robot.nv == 0
        cos = robot.frame_placement("b")(np.zeros(0))[0, 0]
        assert cos == pytest.approx(np.cos(angle), abs=1e-9)
        with pytest.raises(fw.ModelError, match="hold all joints, so the robot cannot move"):
            fw.load(text, unsupported="raise")
