"""Tests of odd URDF files that urdfdom and Pinocchio read: they load, the oddity is named, and unsupported="raise" refuses.

Mass matrices, joint limits and frames are compared with those of Pinocchio, within rounding.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw

WHOLE = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
INERTIAL = f'<inertial><origin xyz="0.1 0 0.2"/><mass value="2"/>{WHOLE}</inertial>'
LIMIT = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'


def hinge(
    name: str, child: str, inside: str = "", limit: str = LIMIT, axis: str = '<axis xyz="0 1 0"/>', parent: str = "base"
) -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="revolute">{ends}<origin xyz="0 0 0.3"/>{axis}{limit}{inside}</joint>'


def arm(
    inside: str = "",
    joint: str = "",
    beside: str = "",
    inertial: str = INERTIAL,
    limit: str = LIMIT,
    head: str = "<robot name='r'>",
) -> str:
    """Return a robot of one hinge, with contents of the link that moves, of the joint, and of the robot."""
    return (
        f'{head}<link name="base"/><link name="arm">{inertial}{inside}</link>{hinge("j", "arm", joint, limit)}{beside}</robot>'
    )


def drawn(geometry: str, tag: str = "collision", more: str = "") -> str:
    return f"<{tag}><geometry>{geometry}</geometry>{more}</{tag}>"


SECOND = f'<link name="hand">{INERTIAL}</link>' + hinge("k", "hand")
COLOUR = '<material name="{}"><color rgba="1 0 0 1"/></material>'
BOX = '<box size="1 1 1"/>'

ODD = {
    # damaged XML
    "a prefix without xmlns": (arm(beside='<drake:x a="1"/>'), "prefix"),
    "an attribute's prefix without xmlns": (arm(beside='<x drake:a="1"/>'), "prefix"),
    "a bare ampersand": (arm(beside='<x a="b & c"/>'), "invalid characters"),
    "a less-than sign": (arm(beside='<x a="b < c"/>'), "invalid characters"),
    "dashes in a comment": (arm(beside="<!-- a -- b -->"), "invalid characters"),
    "a control character": (arm(beside='<x a="\x01"/>'), "invalid characters"),
    "elements after the root": (arm() + "<robot/>", "elements follow the root element"),
    "a macro": (arm(beside='<xacro:foo name="s"/>'), "<xacro:foo> is not expanded"),
    "a macro with a namespace": (
        arm(beside="<xacro:foo/>", head='<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">'),
        "foo> is not expanded",
    ),
    "entities that nothing uses": ('<!DOCTYPE robot [<!ENTITY e "1">]>' + arm(), "XML that defines entities (e)"),
    "an unknown entity": (arm(beside='<x a="&nbsp;"/>'), "invalid characters"),
    "a reference to no character": (arm(beside='<x a="&#1;&#xD800;"/>'), "invalid characters"),
    "no blank between attributes": (arm(beside='<x a="1"b="2"/>'), "invalid characters"),
    "two XML declarations": ('<?xml version="1.0"?><?xml version="1.0"?>' + arm(), "invalid XML declarations"),
    "an XML declaration without a version": ('<?xml encoding="utf-8"?>' + arm(), "invalid XML declarations"),
    # names and elements of this package
    "a joint with an empty name": (arm().replace('joint name="j"', 'joint name=""'), "has an empty name, named 'joint1'"),
    "a loop without a name": (arm(beside="<loop/>"), "loop number 1 has no name, left out"),
    "a coupling without a name": (arm(beside="<coupling/>"), "coupling number 1 has no name, left out"),
    "an actuator without a name": (arm(beside="<actuator/>"), "actuator number 1 has no name, left out"),
    "a time step that is a word": (arm(beside='<simulation timestep="x"/>'), "'timestep' is not a number: 'x', left out"),
    # the tree
    "links in a cycle": (
        arm(beside='<link name="a"/><link name="b"/>' + hinge("x", "a", parent="b") + hinge("y", "b", parent="a")),
        "a cycle of joints through link 'a': 'x', 'y', and its links are left out",
    ),
    # passive forces
    "a damping below zero": (arm(joint='<dynamics damping="-1"/>'), "joint 'j': the damping is negative (-1), taken as zero"),
    "a stiffness that is a word": (
        arm(joint='<dynamics damping="0" stiffness="x"/>'),
        "'stiffness' is not a number: 'x', left",
    ),
    # elements that should be there once
    "two limits": (arm(joint=LIMIT.replace("-1", "-2")), "joint 'j': 2 <limit>"),
    "two axes": (arm(joint='<axis xyz="1 0 0"/>'), "joint 'j': 2 <axis>"),
    "two origins": (arm(joint='<origin xyz="1 0 0"/>'), "joint 'j': 2 <origin>"),
    "two inertials": (arm(INERTIAL.replace('value="2"', 'value="3"')), "link 'arm': 2 <inertial>"),
    "two masses": (arm(inertial=INERTIAL.replace(WHOLE, f'<mass value="3"/>{WHOLE}')), "link 'arm': 2 <mass>"),
    "two parents of one joint": (arm(joint='<parent link="arm"/>'), "joint 'j': 2 <parent>"),
    # inertias
    "no mass": (arm(inertial=f"<inertial>{WHOLE}</inertial>", beside=SECOND), "link 'arm': <inertial> has no <mass>"),
    "a mass that is no number": (arm(inertial=INERTIAL.replace('"2"', '"x"'), beside=SECOND), "'value' is not a number: 'x'"),
    "an infinite mass": (arm(inertial=INERTIAL.replace('"2"', '"inf"'), beside=SECOND), "'value' is inf"),
    "no moments": (arm(inertial=INERTIAL.replace(WHOLE, "")), "<inertial> has no <inertia>, taken as a point mass"),
    "a missing moment": (arm(inertial=INERTIAL.replace(' ixy="0"', "")), "has no attribute 'ixy', taken as a point mass"),
    # limits
    "limits beyond all bounds": (arm(limit=LIMIT.replace('"-1"', '"-1e308"').replace('"2"', '"1e308"')), ""),
    # shapes
    "two materials": (arm(drawn(BOX, "visual", COLOUR.format("x") + COLOUR.format("y"))), "2 <material>"),
    "a colour of two numbers": (arm(beside='<material name="m"><color rgba="1 0"/></material>'), "without a colour"),
    "a colour that is a word": (arm(beside='<material name="m"><color rgba="red"/></material>'), "without a colour"),
    "a box without extent": (arm(drawn('<box size="0 0 0"/>')), "collision 'arm_collision': the size of its <box>"),
    "a cylinder without length": (arm(drawn('<cylinder radius="1" length="0"/>')), "the size of its <cylinder>"),
    "a negative radius": (arm(drawn('<sphere radius="-1"/>')), "radius of its <sphere> is negative (-1), left out"),
    "a box of two numbers": (arm(drawn('<box size="1 1"/>')), "'size' needs 3 numbers"),
    "a mesh without a name": (arm(drawn("<mesh/>")), "<mesh> has no attribute 'filename', left out"),
    "a mesh scaled to nothing": (arm(drawn('<mesh filename="a.stl" scale="0 0 0"/>')), "the scale of its mesh has a zero"),
    "two geometries": (arm(drawn(f'{BOX}<sphere radius="1"/>')), "holds <box> and <sphere>, the first counts"),
    # joints that follow others
    "an unknown leader": (arm(joint='<mimic joint="x"/>'), "'x', which is not defined, so it moves independently"),
    "a joint that follows itself": (arm(joint='<mimic joint="j"/>'), "in a cycle: 'j', so 'j' moves independently"),
}


@contextmanager
def quiet() -> Iterator[None]:
    """Context without the messages that urdfdom writes to the standard output and error."""
    kept = [os.dup(k) for k in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for k in (1, 2):
        os.dup2(nowhere, k)
    try:
        yield
    finally:
        for k, own in zip((1, 2), kept, strict=True):
            os.dup2(own, k)
            os.close(own)
        os.close(nowhere)


def of_pinocchio(text: str) -> pin.Model:
    with quiet():
        return pin.buildModelFromXML(text)


@pytest.mark.parametrize(("text", "words"), ODD.values(), ids=ODD)
def test_odd_files_are_those_that_pinocchio_reads_and_the_oddity_is_named(text: str, words: str) -> None:
    theirs = of_pinocchio(text)
    if words:
        with pytest.warns(fw.ModelWarning) as told:
            robot = fw.load(text, execution="interpreted")
        assert any(words in str(x.message) for x in told), [str(x.message) for x in told]
        assert words in robot.report()["odd contents, taken as said"]
        with pytest.raises(fw.ModelError):
            fw.load(text, unsupported="raise")
    else:
        robot = fw.load(text, execution="interpreted")
    assert (robot.nq, robot.nv) == (theirs.nq, theirs.nv)
    q = np.linspace(0.3, 0.7, robot.nq)
    data = theirs.createData()
    pin.forwardKinematics(theirs, data, q)
    pin.updateFramePlacements(theirs, data)
    placed = robot.frame_placement("arm")(q)
    np.testing.assert_allclose(placed, data.oMf[theirs.getFrameId("arm")].homogeneous, atol=1e-15)
    if not robot.model.massless:
        np.testing.assert_allclose(robot.mass_matrix(q), pin.crba(theirs, data, q), atol=1e-14)
    if "limits beyond" not in words and words:
        np.testing.assert_array_equal(robot.lower, theirs.lowerPositionLimit)
    with quiet():
        shapes = pin.buildGeomFromUrdfString(theirs, text, pin.GeometryType.VISUAL, package_dirs=[])
    assert len([s for s in robot.shapes if s.visual]) == shapes.ngeoms


def test_limits_that_stand_for_none_and_exchanged_limits() -> None:
    assert fw.read(ODD["limits beyond all bounds"][0]).joints[0].upper == np.inf
    with pytest.warns(fw.ModelWarning, match="joint 'j': the lower limit 2.0 is above the upper limit -1.0, the two are exch"):
        exchanged = fw.read(arm(limit='<limit lower="2" upper="-1" effort="1" velocity="1"/>')).joints[0]
    assert (exchanged.lower, exchanged.upper) == (-1.0, 2.0)


@pytest.mark.parametrize("mimic", ['joint="still"', 'joint="k" multiplier="0"'])
def test_a_joint_that_follows_one_that_cannot_move_it_stays_at_its_offset(mimic: str) -> None:
    still = '<link name="plate"/>' + hinge("still", "plate").replace("revolute", "fixed")
    text = arm(joint=f"<mimic {mimic} offset='0.5'/>", beside=SECOND + still)
    with pytest.warns(fw.ModelWarning, match="joint 'j': it mimics joint .*, fixed at 0.5"):
        robot = fw.load(text, execution="interpreted")
    theirs = of_pinocchio(text)
    data = theirs.createData()
    pin.framesForwardKinematics(theirs, data, np.array([0.5, 0.0]))
    placed = robot.frame_placement("arm")(np.zeros(1))
    np.testing.assert_allclose(placed, data.oMf[theirs.getFrameId("arm")].homogeneous, atol=1e-15)


def test_a_negative_mass_and_negative_moments_become_zero() -> None:
    with pytest.warns(fw.ModelWarning, match=r"link 'arm': the mass is negative \(-2.0\), taken as zero"):
        assert fw.read(arm(inertial=INERTIAL.replace('"2"', '"-2"'))).bodies[1].inertia == fw.Inertia()
    text = arm(inertial=INERTIAL.replace('izz="1"', 'izz="-3e-9"'))
    with pytest.warns(fw.ModelWarning, match=r"body 'arm' .* principal moment -3e-09 kg m², taken as zero"):
        robot = fw.load(text, execution="interpreted")
    theirs = of_pinocchio(text)
    M = pin.crba(theirs, theirs.createData(), np.zeros(1))
    np.testing.assert_allclose(robot.mass_matrix(np.zeros(1)), M, atol=3e-9)
    assert min(np.linalg.eigvalsh([[1, 0, 0], [0, 1, 0], [0, 0, 0]])) == 0.0
    moments = robot.bodies["arm"].inertia.rotational
    np.testing.assert_allclose(moments, (1.0, 0.0, 0.0, 1.0, 0.0, 0.0), atol=1e-15)
    assert robot.report() == {"negative principal moments of inertia, taken as zero": "arm"}


def test_bytes_that_are_not_utf_8_are_read_as_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    path.write_bytes(arm(beside='<x a="Größe"/>').encode("latin-1"))
    with pytest.warns(fw.ModelWarning, match="bytes that are not UTF-8, read as Latin-1"):
        assert fw.load(path).nv == pin.buildModelFromUrdf(str(path)).nv
    path.write_bytes(b'\n<?xml version="1.0"?>' + arm().encode())
    with pytest.warns(fw.ModelWarning, match="blanks before the XML declaration, ignored"):
        assert fw.load(path).nv == pin.buildModelFromUrdf(str(path)).nv
    path.write_bytes(b"\xef\xbb\xbf" + arm().encode())  # a byte order mark is no oddity
    assert fw.load(path).nv == pin.buildModelFromUrdf(str(path)).nv
    path.write_bytes(('<?xml version="1.0" encoding="utf8x"?>' + arm()).encode())
    with pytest.warns(fw.ModelWarning, match="an unknown encoding, read as UTF-8"):
        assert fw.load(path).nv == pin.buildModelFromUrdf(str(path)).nv


def test_an_error_of_a_file_with_macros_says_that_they_are_not_expanded() -> None:
    text = '<robot name="r"><xacro:macro name="m" params="x"/><link name="a"/><joint name="j" type="${t}"/></robot>'
    with pytest.raises(fw.ModelError, match=r"joint 'j': unknown type .*<xacro:macro> is not expanded; pass xacro_args="):
        fw.read(text)


MESH = b"solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid a\n"


@pytest.mark.parametrize("name", ["package:///part.stl", "package://part.stl", "package:///sub/part.stl", "sub\\part.stl"])
def test_meshes_are_found_beside_the_file_without_a_package_and_by_backslashes(name: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for folder in (tmp_path, tmp_path / "sub"):
        (folder / "part.stl").write_bytes(MESH)
    path = tmp_path / "r.urdf"
    path.write_text(arm(drawn(f'<mesh filename="{name}"/>', "visual")))
    folder = tmp_path / "sub" if "sub" in name else tmp_path
    assert fw.read(path).shapes[0].path == str(folder / "part.stl")
    text = fw.read(path.read_text(), package_path=tmp_path)
    assert "\\" in name or text.shapes[0].path == str(folder / "part.stl")
    if "\\" not in name:
        model = of_pinocchio(path.read_text())
        theirs = pin.buildGeomFromUrdf(model, str(path), pin.GeometryType.VISUAL, package_dirs=[str(tmp_path)])
        assert os.path.samefile(theirs.geometryObjects[0].meshPath, folder / "part.stl")


def test_pointers_of_git_lfs_are_meshes_that_are_not_there(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n"
    for name in ("part.stl", "part.dae"):
        (tmp_path / name).write_text(pointer)
        robot = fw.load(arm(drawn(f'<mesh filename="{name}"/>')), folder=tmp_path, execution="interpreted")
        assert f"'{tmp_path / name}', a pointer of Git LFS" in robot.report()["meshes not found"]
        assert robot.mass_matrix([0.1]).shape == (1, 1)
        with pytest.raises(ValueError, match=f"{name}: a pointer of Git LFS, not the file; fetch the file by `git lfs pull`"):
            fw.Simulation(robot, ground=True)


@pytest.mark.parametrize("axis", ['<axis xyz="0 0 0"/>', "<axis/>"])
@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "planar"])
def test_an_axis_of_length_zero_moves_nothing(kind: str, axis: str) -> None:
    """Check that a plane without a normal is that of x and y, as in Pinocchio."""
    text = arm().replace('<axis xyz="0 1 0"/>', axis).replace('type="revolute"', f'type="{kind}"')
    of_pinocchio(text)
    taken = "taken as z" if kind == "planar" else "taken as a fixed joint"
    with pytest.warns(fw.ModelWarning, match=f"joint 'j': the axis is zero, {taken}"):
        d = fw.read(text)
    assert (d.joints[0].type, d.joints[0].axis) == ("planar" if kind == "planar" else "fixed", (0.0, 0.0, 1.0))
    with pytest.raises(fw.ModelError, match="the axis is zero; give it a direction"):
        fw.read(text, unsupported="raise")


@pytest.mark.parametrize("suffix", ["xml", "sdf", "mjcf"])
def test_the_root_element_decides_where_the_suffix_is_that_of_another_format(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"arm.{suffix}"
    file.write_text(arm())
    with pytest.warns(fw.ModelWarning, match="the root element <robot> is that of URDF"):
        assert fw.read(file).joints[0].type == "revolute"
    with pytest.raises(fw.ModelError, match=r"give the file the suffix \.urdf"):
        fw.read(file, unsupported="raise")


def test_percent_signs_in_names_of_meshes_are_those_of_uris_unless_a_file_has_them(tmp_path: Path) -> None:
    (tmp_path / "my part.stl").write_bytes(MESH)
    path = tmp_path / "r.urdf"
    path.write_text(arm(drawn('<mesh filename="my%20part.stl"/>', "visual")))
    assert fw.read(path).shapes[0].path == str(tmp_path / "my part.stl")
    (tmp_path / "my%20part.stl").write_bytes(MESH)
    assert fw.read(path).shapes[0].path == str(tmp_path / "my%20part.stl")


def test_the_last_of_two_parents_counts() -> None:
    """Check a link that two joints carry: Pinocchio hangs it on the second joint, twice."""
    text = arm(beside=SECOND + hinge("m", "hand", parent="arm"))
    theirs = of_pinocchio(text)
    assert theirs.getFrameId("m") < theirs.nframes and theirs.parents[2] == 1
    with pytest.warns(fw.ModelWarning, match="link 'hand' has two parents, by joints 'k' and 'm', 'k' is left out"):
        joints = fw.read(text).joints
    assert [(j.name, j.parent) for j in joints] == [("j", "base"), ("m", "arm")]
    with pytest.raises(fw.ModelError, match="a URDF is a tree, so remove one"):
        fw.read(text, unsupported="raise")


def test_a_file_of_links_in_cycles_alone_is_refused() -> None:
    cycle = '<link name="a"/><link name="b"/>' + hinge("x", "a", parent="b") + hinge("y", "b", parent="a")
    with pytest.raises(ValueError, match="valid URDF"):
        of_pinocchio(f"<robot name='r'>{cycle}</robot>")
    with pytest.raises(fw.ModelError, match="a cycle of joints through link 'a': 'x', 'y'; remove one of them"):
        fw.read(f"<robot name='r'>{cycle}</robot>")


@pytest.mark.parametrize("key", ["effort", "velocity"])
def test_a_negative_effort_or_velocity_is_no_limit(key: str) -> None:
    text = arm(limit=LIMIT.replace(f'{key}="', f'{key}="-'))
    with pytest.warns(fw.ModelWarning, match=rf"joint 'j': the {key} is negative \(-\d\), taken as no limit"):
        assert getattr(fw.read(text).joints[0], key) == np.inf


@pytest.mark.parametrize("ends", ['upper="1"', 'lower="-1"'])
def test_one_limit_makes_the_other_zero_before_version_1_2(ends: str) -> None:
    text = arm(limit=f'<limit {ends} effort="1" velocity="1"/>')
    theirs, ours = of_pinocchio(text), fw.read(text).joints[0]
    assert (ours.lower, ours.upper) == (theirs.lowerPositionLimit[0], theirs.upperPositionLimit[0])
    newer = fw.read(text.replace("<robot", "<robot version='1.2'", 1)).joints[0]
    assert np.isinf((newer.lower, newer.upper)).sum() == 1
