"""Tests of shapes of URDF files: sizes, colours, mesh files, poses as in Pinocchio, and errors."""

from __future__ import annotations

import math
import shutil
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio
import pytest

import featherweight as fw
from featherweight import Description, ModelError, Shape, ShapeType
from featherweight.model.formats.geometry import find_mesh, local_path
from featherweight.model.formats.registry import load_description

SHARE = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share"
ROBOTS = SHARE / "example-robot-data/robots"
FILES = (
    "panda_description/urdf/panda_collision.urdf",
    "hyq_description/robots/hyq_no_sensors.urdf",
    "solo_description/robots/solo12.urdf",
    "talos_data/robots/talos_reduced.urdf",
)
PINOCCHIOS_COLOR = (0.9, 0.9, 0.9, 1.0)  # its color of geometries without one
OVERRULED = (0.0, 0.0, 0.0, 0.9)  # hyq's imu: in Pinocchio, the robot's color of that name precedes a visual's own
SINGLE = 1e-7  # Pinocchio stores colors and scales in single precision


def load(folder: Path, inside: str, rest: str = "", **options: Any) -> Description:
    path = folder / "robot.urdf"
    path.write_text(f'<robot name="r"><link name="base">{inside}</link>{rest}</robot>')
    return load_description(path, **options)


def drawn(geometry: str, more: str = "", tag: str = "visual") -> str:
    return f"<{tag}>{more}<geometry>{geometry}</geometry></{tag}>"


def mesh(filename: str) -> str:
    return drawn(f'<mesh filename="{filename}"/>')


# --- against Pinocchio


def size_of(geometry: object) -> tuple[float, ...]:
    if isinstance(geometry, pinocchio.hppfcl.Box):
        return tuple(2 * geometry.halfSide)
    if isinstance(geometry, pinocchio.hppfcl.Sphere):
        return (geometry.radius,)
    assert isinstance(geometry, (pinocchio.hppfcl.Cylinder, pinocchio.hppfcl.Capsule))
    return (geometry.radius, 2 * geometry.halfLength)


@pytest.mark.filterwarnings("ignore:You passed package dir")
@pytest.mark.parametrize("collision", [False, True], ids=["visual", "collision"])
@pytest.mark.parametrize("file", FILES)
def test_bodies_poses_sizes_and_meshes_are_pinocchios(file: str, collision: bool) -> None:
    path = str(ROBOTS / file)
    model = pinocchio.buildModelFromUrdf(path)
    kind = pinocchio.COLLISION if collision else pinocchio.VISUAL
    theirs = {g.name: g for g in pinocchio.buildGeomFromUrdf(model, path, kind, [str(SHARE)]).geometryObjects}
    robot = fw.load(path, mimic="independent")
    joint_of = {j.child: j.name for j in robot.joints} | {None: "universe"}
    seen: dict[str | None, int] = {}
    for link, ours in zip(load_description(path).shapes, robot.shapes, strict=True):
        if ours.collision != collision:
            continue
        assert ours.visual != ours.collision
        number = seen[link.body] = seen.get(link.body, -1) + 1
        other = theirs.pop(f"{link.body}_{number}")
        assert joint_of[ours.body] == model.names[other.parentJoint]
        np.testing.assert_allclose(ours.placement.R, other.placement.rotation, atol=1e-10)  # ours are exact at right angles
        np.testing.assert_allclose(ours.placement.p, other.placement.translation, atol=1e-10)
        if ours.type == ShapeType.MESH:
            assert ours.path is not None and Path(ours.path).samefile(other.meshPath)
            assert ours.size == pytest.approx(tuple(other.meshScale), rel=SINGLE)
        else:
            assert ours.size == pytest.approx(size_of(other.geometry), rel=1e-15)
        if not collision and ours.color != OVERRULED:
            assert (ours.color or PINOCCHIOS_COLOR) == pytest.approx(tuple(other.meshColor), rel=SINGLE)
    assert not theirs


def test_shapes_of_a_robot_with_mimic_joints_are_on_its_bodies() -> None:
    robot = fw.load(ROBOTS / "panda_description/urdf/panda.urdf")
    assert type(robot).__name__ == "ClosedRobot"
    assert {s.body for s in robot.shapes} == {None} | {b.name for b in robot.bodies}


# --- sizes, names and colors


@pytest.mark.parametrize(
    ("geometry", "kind", "size"),
    [
        ('<sphere radius="0.5"/>', ShapeType.SPHERE, (0.5,)),
        ('<sphere radius="0"/>', ShapeType.SPHERE, (0.0,)),
        ('<box size="1 2 3"/>', ShapeType.BOX, (1.0, 2.0, 3.0)),
        ('<cylinder radius="0.5" length="2"/>', ShapeType.CYLINDER, (0.5, 2.0)),
        ('<capsule radius="0.5" length="2"/>', ShapeType.CAPSULE, (0.5, 2.0)),
        ('<mesh filename="a.stl"/>', ShapeType.MESH, (1.0, 1.0, 1.0)),
        ('<mesh filename="a.stl" scale="1 -2 3"/>', ShapeType.MESH, (1.0, -2.0, 3.0)),
    ],
)
def test_every_geometry_is_read(tmp_path: Path, geometry: str, kind: ShapeType, size: tuple[float, ...]) -> None:
    (shape,) = load(tmp_path, drawn(geometry, '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>')).shapes
    assert (shape.type, shape.size, shape.body) == (kind, size, "base")
    assert shape.placement.p == (1.0, 2.0, 3.0)
    assert shape.placement.R == ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


def test_visual_and_collision_are_shapes_of_their_own(tmp_path: Path) -> None:
    ball = '<sphere radius="1"/>'
    shown, touching = load(tmp_path, drawn(ball) + drawn(ball, tag="collision")).shapes
    assert (shown.visual, shown.collision) == (True, False)
    assert (touching.visual, touching.collision) == (False, True)


def test_names_are_the_files_or_made_up_and_never_twice_the_same(tmp_path: Path) -> None:
    ball, named = drawn('<sphere radius="1"/>'), '<visual name="head"><geometry><sphere radius="1"/></geometry></visual>'
    names = [s.name for s in load(tmp_path, ball + named + ball + named).shapes]
    assert names == ["base_visual", "head", "base_visual_2", "head_2"]


def test_colors_are_the_geometrys_own_or_those_of_its_materials_name(tmp_path: Path) -> None:
    def ball(material: str) -> str:
        return drawn('<sphere radius="1"/>', material)

    shapes = load(
        tmp_path,
        ball('<material name="red"/>')
        + ball('<material name="red"><color rgba="0.5 0 0 1"/></material>')
        + ball('<material name="sky"><color rgba="0 0 1 0.5"/></material>')
        + ball('<material name="sky"/>')
        + ball('<material name=""><color rgba="255 0 0 1"/></material>')
        + ball('<material name="nowhere"/>')
        + ball(""),
        '<material name="red"><color rgba="1 0 0 1"/></material>',
    ).shapes
    red, sky = (1.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 0.5)
    assert [s.color for s in shapes] == [red, (0.5, 0.0, 0.0, 1.0), sky, sky, red, None, None]


# --- mesh files


@pytest.mark.parametrize(
    ("filename", "here", "on_windows"),
    [
        ("file:///C:/robots/a.stl", "/C:/robots/a.stl", "C:/robots/a.stl"),
        ("file:///robots/a.stl", "/robots/a.stl", "/robots/a.stl"),
        ("file://a.stl", "a.stl", "a.stl"),
        ("/C:/a.stl", "/C:/a.stl", "/C:/a.stl"),
        ("C:/a.stl", "C:/a.stl", "C:/a.stl"),
    ],
)
def test_urls_of_files_are_paths(filename: str, here: str, on_windows: str) -> None:
    assert local_path(filename, windows=False) == here
    assert local_path(filename, windows=True) == on_windows


def test_meshes_are_found_beside_the_file_by_uri_and_in_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = ("ws/bot_description/urdf/near.stl", "ws/bot_description/meshes/a b.stl", "ws/share/other/b.stl", "ros/pkg/c.stl")
    near, mine, others, ros = (tmp_path / place for place in places)
    for path in (near, mine, others, ros):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ros"))
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    folder = near.parent
    for filename, expected in (
        ("near.stl", near),
        ("../meshes/a b.stl", mine),
        (f"file://{mine}", mine),
        (str(mine), mine),
        ("package://bot_description/meshes/a b.stl", mine),
        ("package:///bot_description/meshes/a b.stl", mine),
        ("model://bot_description/meshes/a b.stl", mine),
        ("package://other/b.stl", others),
        ("package://pkg/c.stl", ros),
    ):
        assert find_mesh(filename, folder) == str(expected), filename
    assert find_mesh("package://bot_description/near.stl", folder) == "package://bot_description/near.stl"
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ros/pkg"))
    assert find_mesh("package://pkg/c.stl", folder) == str(ros)
    monkeypatch.setenv("ROS_PACKAGE_PATH", "")
    assert find_mesh("package://pkg/c.stl", folder) == "package://pkg/c.stl"
    shutil.move(tmp_path / "ros", tmp_path / "share")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere:{tmp_path}")
    assert find_mesh("package://pkg/c.stl", Path("/")) == str(tmp_path / "share/pkg/c.stl")


def test_a_path_is_absolute_where_the_model_is_loaded_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.stl").touch()
    load(tmp_path, mesh("a.stl"))
    monkeypatch.chdir(tmp_path)
    assert load_description("robot.urdf").shapes[0].path == str(tmp_path / "a.stl")


def test_missing_meshes_are_counted_once_a_file(tmp_path: Path) -> None:
    (tmp_path / "here.stl").touch()
    robot = load(tmp_path, mesh("package://x/gone.stl") + mesh("here.stl") + mesh("package://x/gone.stl") + mesh("lost.stl"))
    [(kind, told)] = robot.unused
    assert kind == "meshes not found" and told.startswith("2, the first is 'package://x/gone.stl'; package 'x' is in none of")
    assert [s.path for s in robot.shapes][:2] == ["package://x/gone.stl", str(tmp_path / "here.stl")]


# --- reports and refusals


def test_what_is_not_drawn_is_listed(tmp_path: Path) -> None:
    robot = load(
        tmp_path,
        "<visual/>" + drawn("<octomap/>") + drawn('<sphere radius="1"/>', "<material><texture/></material><gloss/>"),
    )
    assert len(robot.shapes) == 1
    assert dict(robot.unused) == {
        "geometries of no known kind": "2",
        "textures": "1",
        "unknown elements": "geometry/octomap (1), visual/gloss (1)",
    }


@pytest.mark.parametrize(
    ("geometry", "words"),
    [
        ('<sphere radius="-1"/>', "radius"),
        ("<sphere/>", "radius"),
        ('<sphere radius="nan"/>', "radius"),
        ('<box size="1 2"/>', "size"),
        ('<box size="1 0 1"/>', "positive"),
        ("<box/>", "size"),
        ('<cylinder radius="1"/>', "length"),
        ('<cylinder radius="0" length="1"/>', "positive"),
        ('<capsule radius="1" length="-1"/>', "positive"),
        ("<mesh/>", "filename"),
        ('<mesh filename="a.stl" scale="2"/>', "scale"),
        ('<mesh filename="a.stl" scale="1 0 1"/>', "scale"),
        ('<box size="1 1 1"/><sphere radius="1"/>', "<box> and <sphere>"),
    ],
)
def test_malformed_geometries_are_refused_by_file_link_and_name(tmp_path: Path, geometry: str, words: str) -> None:
    with pytest.raises(ModelError) as caught:
        load(tmp_path, drawn(geometry, tag="collision"), unsupported="raise")
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'robot.urdf'}: link 'base': collision 'base_collision'") and words in text


@pytest.mark.parametrize("rgba", ["1 0 0", "1 0 0 red", "1 0 0 inf"])
def test_malformed_colors_are_refused(tmp_path: Path, rgba: str) -> None:
    with pytest.raises(ModelError, match=r"robot\.urdf: material 'm': 'rgba'"):
        load(tmp_path, "", f'<material name="m"><color rgba="{rgba}"/></material>', unsupported="raise")


# --- robots made in Python


def test_shapes_made_in_python_follow_fixed_joints_and_keep_their_arrays() -> None:
    vertices = np.eye(3)
    mechanism = fw.describe(
        [fw.Body("arm", fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0))), fw.Body("hand"), fw.Body("ground")],
        [
            fw.Joint("post", fw.JointType.FIXED, "world", "ground", fw.Pose(p=(0.0, 0.0, 5.0))),
            fw.Joint("shoulder", fw.JointType.REVOLUTE, "ground", "arm", axis=(0.6, 0.0, 0.8)),
            fw.Joint("wrist", fw.JointType.FIXED, "arm", "hand", fw.Pose(p=(1.0, 0.0, 0.0))),
        ],
        shapes=[
            Shape("palm", "hand", ShapeType.MESH, (1, 1, 1), fw.Pose(p=(0, 2, 0)), vertices=vertices, faces=[[0, 1, 2]]),
            Shape("floor", "ground", ShapeType.PLANE, ()),
        ],
    )
    palm, floor = fw.build(mechanism).shapes
    assert (palm.body, palm.placement) == ("arm", fw.Pose(p=(1.0, 2.0, 0.0)))
    assert palm.vertices is vertices and palm.faces.dtype == np.int64
    assert (floor.body, floor.placement.p) == (None, (0.0, 0.0, 5.0))
    assert all(math.isfinite(x) for x in palm.size)


@pytest.mark.parametrize("name", ["m" * 5000, "data:model/stl;base64," + 5000 * "A", "package://p/" + "m" * 300, "a\0b"])
def test_mesh_names_that_are_no_paths_are_meshes_not_found(tmp_path: Path, name: str) -> None:
    link = f'<link name="l"><visual><geometry><mesh filename="{name.replace(chr(0), "?")}"/></geometry></visual></link>'
    path = tmp_path / "r.urdf"
    path.write_text(f'<robot name="r">{link}</robot>')
    description = load_description(path)
    assert find_mesh(name, tmp_path) == name
    assert dict(description.unused)["meshes not found"].startswith("1, the first is")
    assert len(dict(description.unused)["meshes not found"]) < 600


def test_a_shape_or_frame_on_no_body_is_refused_by_name() -> None:
    body = fw.Body("arm", fw.Inertia(1.0))
    with pytest.raises(ModelError, match="shape 'palm': 'hand' is not a body"):
        fw.describe([body], [], shapes=[Shape("palm", "hand", ShapeType.SPHERE, (1.0,))])
    with pytest.raises(ModelError, match="frame 'tip': 'hand' is not a body"):
        fw.describe([body], [], frames=[fw.Frame("tip", "hand")])
