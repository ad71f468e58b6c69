"""Tests of SDF files that libsdformat reads and that are odd, old or need what is not there."""

from __future__ import annotations

import math

import numpy as np
import pytest

import featherweight as fw

INERTIAL = "<inertial><mass>1</mass></inertial>"
ODD = "odd contents, taken as said"


def sdf(inside: str, version: str = "1.9") -> str:
    return f'<sdf version="{version}"><model name="m">{inside}</model></sdf>'


def link(name: str, inside: str = "", pose: str = "") -> str:
    return f'<link name="{name}">{f"<pose>{pose}</pose>" if pose else ""}{INERTIAL}{inside}</link>'


def joint(
    name: str, parent: str, child: str, limit: str = "", axis: str = "0 0 1", kind: str = "revolute", more: str = ""
) -> str:
    about = f"<axis><xyz>{axis}</xyz>{f'<limit>{limit}</limit>' if limit else ''}</axis>" if axis else ""
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{about}{more}</joint>'


HELD = joint("hold", "world", "a", axis="", kind="fixed")


@pytest.mark.parametrize("number", ["1e16", "1e31", "1.79769e+308", "inf", "1.7976931348623157e+308", "2e308"])
def test_numbers_that_stand_for_no_limit(number: str) -> None:
    limit = f"<lower>-{number}</lower><upper>{number}</upper><effort>{number}</effort><velocity>{number}</velocity>"
    j = fw.read(sdf(link("a") + link("b") + HELD + joint("j", "a", "b", limit))).joints[1]
    assert (j.lower, j.upper, j.effort, j.velocity) == (-math.inf, math.inf, math.inf, math.inf)


def test_prefixes_without_a_declaration_are_parts_of_names() -> None:
    text = sdf(link("a", '<sensor name="s" type="custom" gz:type="odometer"/>'))
    with pytest.warns(fw.ModelWarning, match=r"a prefix is not declared \(xmlns"):
        assert fw.load(text).nv == 6
    with pytest.raises(fw.ModelError, match="not an XML file"):
        fw.load(text, unsupported="raise")


def test_a_joint_may_be_named_world() -> None:
    with pytest.warns(fw.ModelWarning, match="joint 'world': this name is reserved"):
        d = fw.read(sdf(link("a") + joint("world", "world", "a")))
    assert [(j.name, j.parent, j.child) for j in d.joints] == [("world", None, "a")]


def test_exchanged_limits_and_negative_numbers_are_reported() -> None:
    limit = "<lower>2</lower><upper>-1</upper>"
    text = sdf(
        link("a") + joint("j", "world", "a", limit).replace("</axis>", "<dynamics><damping>-1</damping></dynamics></axis>")
    )
    with pytest.warns(fw.ModelWarning, match=ODD) as told:
        d = fw.read(text)
    (j,) = d.joints
    assert (j.lower, j.upper, j.damping) == (-1.0, 2.0, 0.0)
    said = dict(d.unused)[ODD]
    assert "the two are exchanged" in said and "the damping is negative (-1), taken as zero" in said and len(told) == 1


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_equal_limits_hold_a_joint_of_the_tree_and_of_a_loop(kind: str) -> None:
    """Check a placement that is that of the same joint at this coordinate, and a loop that the file's placements close."""
    limit = "<lower>0.3</lower><upper>0.3</upper>"
    parts = link("a") + link("b", pose="1 2 3 0.1 0.2 0.3") + HELD
    more = "<pose>0.1 0 0 0 0 0.5</pose>"
    held = fw.load(sdf(parts + joint("j", "a", "b", limit, "1 2 3", kind, more) + link("c") + joint("k", "b", "c")))
    free = fw.load(sdf(parts + joint("j", "a", "b", "", "1 2 3", kind, more) + link("c") + joint("k", "b", "c")))
    assert (held.nv, free.nv) == (1, 2)
    assert held.report() == {"joints that their limits hold, taken as fixed": "j"}
    there, here = free.frame_placement("c")([0.3, 0.7]), held.frame_placement("c")([0.7])
    np.testing.assert_allclose(here, there, atol=1e-15)
    zero = limit.replace("0.3", "0")
    chain = link("a") + link("b", pose="1 0 0 0 0 0") + link("c", pose="1 1 0 0 0 0") + HELD
    chain += joint("j", "a", "b", axis="0 1 0") + joint("k", "b", "c", axis="1 0 0")
    closed = fw.read(sdf(chain + joint("l", "a", "c", zero, "0 1 0", kind)))
    assert [loop.type for loop in closed.loops] == ["weld"]


def test_axes_of_version_1_4_are_in_the_frame_of_the_model() -> None:
    parts = link("a") + link("b", pose="0 0 0 0 0 1.5707963267948966") + HELD + joint("j", "a", "b", axis="1 0 0")
    old, new = (fw.read(sdf(parts, version)).joints[1].axis for version in ("1.4", "1.5"))
    np.testing.assert_allclose(old, (0.0, -1.0, 0.0), atol=1e-15)
    assert new == (1.0, 0.0, 0.0)


def test_inertias_are_computed_from_collision_shapes() -> None:
    box = "<collision name='{}'>{}<pose>{} 0 0 0 0 0</pose><geometry><box><size>0.2 0.4 0.6</size></box></geometry></collision>"
    shapes = box.format("p", "<density>500</density>", 1) + box.format("q", "", -1)
    auto = '<inertial auto="true"><density>250</density>{}</inertial>'
    d = fw.read(sdf(f'<link name="a">{auto.format("")}{shapes}</link>'))
    mass, center, moments = d.bodies[0].inertia
    assert mass == pytest.approx(36.0) and center == pytest.approx((1.0 / 3.0, 0.0, 0.0))
    apart = 24.0 * (2.0 / 3.0) ** 2 + 12.0 * (4.0 / 3.0) ** 2
    own = np.array([0.52, 0, 0, 0.40, 0, 0.20]) * 36.0 / 12.0
    np.testing.assert_allclose(moments, own + np.array([0, 0, 0, apart, 0, apart]), atol=1e-12)
    scaled = fw.read(sdf(f'<link name="a">{auto.format("<mass>72</mass>")}{shapes}</link>')).bodies[0].inertia
    assert scaled.mass == pytest.approx(72.0) and scaled.rotational == pytest.approx(2.0 * np.array(moments))
    assert d.unused == ()


def test_files_that_are_to_be_downloaded_are_left_out() -> None:
    world = (
        f'<world name="w"><include><uri>https://fuel.gazebosim.org/x</uri></include><model name="m">{link("a")}</model></world>'
    )
    with pytest.warns(fw.ModelWarning, match="not supported, and left out: <include>"):
        assert fw.load(f'<sdf version="1.9">{world}</sdf>').nv == 6
    newer = sdf(link("a"), "1.13")
    with pytest.warns(fw.ModelWarning, match=r"version '1\.13' is not supported, 1\.2 to 1\.12 are, read as 1\.12"):
        assert fw.load(newer).nv == 6


@pytest.mark.parametrize("fixed", [True, False])
def test_links_that_hang_on_loops_alone_start_where_the_file_places_them(fixed: bool) -> None:
    """Check a parallelogram whose bar is the parent of both its joints: the file's own placements close the loops."""
    places = {"base": (0, 0, 1), "arm": (0.2, 0, 1), "crank": (0.6, 0, 1), "rod": (0.6, 0, 1.1), "bar": (0.7, 0, 1)}
    parts = "".join(link(name, pose=f"{x} {y} {z} 0 0 0") for name, (x, y, z) in places.items())
    parts += joint("elbow", "base", "arm", axis="0 1 0")
    parts += joint("c", "arm", "crank", axis="0 1 0") + joint("r", "arm", "rod", axis="0 1 0")
    at_end = "<pose>0.1 0 0 0 0 0</pose>"
    parts += joint("b1", "bar", "crank", axis="0 1 0", more=at_end) + joint("b2", "bar", "rod", axis="0 1 0", more=at_end)
    robot = fw.load(sdf(parts + (joint("hold", "world", "base", axis="", kind="fixed") if fixed else "")))
    q = robot.start()
    np.testing.assert_allclose(q, robot.configurations["qpos0"], atol=0)
    assert np.abs(robot.residual(q)).max() == 0.0  # type: ignore[attr-defined]
    for name, p in places.items():
        np.testing.assert_allclose(robot.frame_placement(name)(q)[:3, 3], p, atol=1e-15)


def test_states_that_name_some_joints_of_a_loop_keep_these() -> None:
    """Check a four-bar linkage whose state names the crank: the others are closed from zero, and the crank stays."""
    base = fw.robots.four_bar()
    names = [j.name for j in base.joints if j.type != "fixed"]
    d = fw.describe(
        base.bodies, base.joints, loops=base.loops, name="bar",
        configurations=[fw.Configuration("up", ((names[0], (0.4,)),)), fw.Configuration("as it is", ())],
    )  # fmt: skip
    robot = fw.build(d)
    up = robot.configurations["up"]
    assert up[robot.joints[0].q_slice] == pytest.approx(0.4, abs=1e-15)
    assert np.abs(robot.residual(up)).max() < 1e-12  # type: ignore[attr-defined]
    start = robot.configurations["as it is"]
    np.testing.assert_allclose(start, robot.neutral(), atol=1e-9)


def test_an_axis_that_is_missing_is_z() -> None:
    text = sdf(link("a") + link("b") + HELD + joint("j", "a", "b", axis=""))
    with pytest.warns(fw.ModelWarning, match="joint 'j': there is no <axis>, taken as z"):
        assert fw.read(text).joints[1].axis == (0.0, 0.0, 1.0)
    with pytest.raises(fw.ModelError, match="there is no <axis>; add it"):
        fw.read(text, unsupported="raise")


TWO = link("a") + link("b") + HELD
GEARED = TWO + joint("j", "a", "b") + link("c") + joint("k", "b", "c")
QUATERNION = '<frame name="f"><pose rotation_format="quat_xyzw">1 0 0 0 0 0 0</pose></frame>'


def gearbox(inside: str) -> str:
    return GEARED + joint("g", "b", "c", kind="gearbox", more=inside)


def mimic(leader: str, inside: str = "") -> str:
    return GEARED.replace("</axis>", f'<mimic joint="{leader}">{inside}</mimic></axis>', 1)


SPOILED = {  # contents of a model, degrees of freedom, words
    "a type in capitals": (TWO + joint("j", "a", "b", kind="Revolute"), 1, ""),
    "a universal joint of one axis": (
        TWO + joint("j", "a", "b", kind="universal"),
        2,
        "joint 'j': there is no <axis2>, taken as perpendicular to <axis>",
    ),
    "a gearbox without a reference": (gearbox(""), 2, "<joint> has no <gearbox_reference_body>, left out"),
    "a gearbox of an unknown body": (
        gearbox("<gearbox_reference_body>x</gearbox_reference_body>"),
        2,
        "no frame 'x', left out",
    ),
    "a screw without a pitch": (
        TWO + joint("j", "a", "b", kind="screw", more="<screw_thread_pitch>0</screw_thread_pitch>"),
        1,
        "joint 'j': its screw_thread_pitch is zero, taken as a hinge",
    ),
    "a mimic of an unknown joint": (
        mimic("x"),
        2,
        "joint 'x', which does not exist or closes a loop, so it moves independently",
    ),
    "a mimic of itself": (mimic("j"), 2, "joints that mimic each other in a cycle: 'j', so 'j' moves independently"),
    "a zero quaternion": (
        TWO + joint("j", "a", "b") + QUATERNION,
        1,
        "frame 'f': the quaternion of its <pose> is zero, without",
    ),
    "an infinite mass": (
        GEARED.replace("<mass>1<", "<mass>inf<", 1),
        2,
        "link 'a': 'mass' is inf, taken as a link without mass",
    ),
    "an empty mass": (GEARED.replace("<mass>1<", "<mass><"), 2, ""),
    "an axis in an unknown frame": (
        TWO + joint("j", "a", "b").replace("<xyz>", '<xyz expressed_in="q">'),
        1,
        "there is no frame 'q', so the axis is in the frame of the joint",
    ),
    "a limit that is not a number": (
        TWO + joint("j", "a", "b", "<lower>nan</lower>"),
        1,
        "its lower is nan, taken as no limit",
    ),
    "an infinite damping": (
        TWO + joint("j", "a", "b").replace("</axis>", "<dynamics><damping>inf</damping></dynamics></axis>"),
        1,
        "its damping is inf, left out",
    ),
}


@pytest.mark.parametrize(("inside", "nv", "words"), SPOILED.values(), ids=SPOILED)
def test_spoiled_elements_that_libsdformat_accepts_are_reported(inside: str, nv: int, words: str) -> None:
    """Check files that `gz sdf --check` of libsdformat 12.3 calls valid (those with <mimic>, of SDF 1.11, as SDF 1.9)."""
    text = sdf(inside, "1.11")
    if not words:
        assert fw.load(text, execution="interpreted").nv == nv
        return
    with pytest.warns(fw.ModelWarning) as told:
        robot = fw.load(text, execution="interpreted")
    assert robot.nv == nv and any(words in str(x.message) for x in told), [str(x.message) for x in told]
    with pytest.raises(fw.ModelError):
        fw.read(text, unsupported="raise")


def test_the_axes_of_a_universal_joint_of_one_axis_are_perpendicular() -> None:
    with pytest.warns(fw.ModelWarning, match="taken as perpendicular"):
        d = fw.read(sdf(TWO + joint("j", "a", "b", axis="1 2 3", kind="universal")))
    first, second = (j.axis for j in d.joints if j.type == "revolute")
    assert np.dot(first, second) == pytest.approx(0.0, abs=1e-15) and np.linalg.norm(second) == pytest.approx(1.0)


def test_the_first_of_several_worlds_counts() -> None:
    world = "<world name='{0}'><model name='{0}m'>" + link("a") + "</model></world>"
    text = f'<sdf version="1.9">{world.format("v")}{world.format("w")}</sdf>'
    with pytest.warns(fw.ModelWarning, match="several worlds, or worlds and models: 'v', 'w', the first world counts"):
        assert fw.read(text).name == "vm"
    text = f'<sdf version="1.9"><model name="m">{link("b")}</model>{world.format("v")}</sdf>'
    with pytest.warns(fw.ModelWarning, match="the first world counts"):
        assert [b.name for b in fw.read(text).bodies] == ["a"]


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_versions_before_1_4_have_its_axes(version: str) -> None:
    parts = link("a") + link("b", pose="0 0 0 0 0 1.5707963267948966") + HELD + joint("j", "a", "b", axis="1 0 0")
    np.testing.assert_allclose(fw.read(sdf(parts, version)).joints[1].axis, (0.0, -1.0, 0.0), atol=1e-15)
