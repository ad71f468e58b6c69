"""Tests of shapes of MJCF files: equal to MuJoCo's geoms, with or without mesh files."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight import ModelError, ShapeType
from featherweight.model.formats.registry import load_description

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
SINGLE = 1e-6  # MuJoCo stores vertices in single precision
INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
CORNERS = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
TETRAHEDRON = "".join(f"v {x} {y} {z}\n" for x, y, z in CORNERS) + "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
SIZES: dict[mujoco.mjtGeom, tuple[ShapeType, Callable[[np.ndarray], np.ndarray]]] = {
    mujoco.mjtGeom.mjGEOM_SPHERE: (ShapeType.SPHERE, lambda s: s[:1]),
    mujoco.mjtGeom.mjGEOM_BOX: (ShapeType.BOX, lambda s: 2 * s),
    mujoco.mjtGeom.mjGEOM_CYLINDER: (ShapeType.CYLINDER, lambda s: s[:2] * [1, 2]),
    mujoco.mjtGeom.mjGEOM_CAPSULE: (ShapeType.CAPSULE, lambda s: s[:2] * [1, 2]),
    mujoco.mjtGeom.mjGEOM_ELLIPSOID: (ShapeType.ELLIPSOID, lambda s: s),
    mujoco.mjtGeom.mjGEOM_PLANE: (ShapeType.PLANE, lambda s: s[:0]),
}

PRIMITIVES = """
<mujoco>
  <default>
    <geom rgba="0.1 0.2 0.3 1" friction="0.7"/>
    <default class="thin"><geom type="capsule" size="0.02" group="3"/></default>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" pos="0 0 -1" euler="5 0 0"/>
    <body name="shelf" pos="0 1 0" euler="0 0 30"><geom name="board" type="box" size="0.5 0.2 0.01"/></body>
    <body name="trunk" pos="0.1 0.2 1.3" euler="10 20 30">
      <joint name="x" type="slide" axis="1 0 0" ref="0.2"/>
      <joint name="hip" axis="0 1 1" pos="0.1 0 0"/>
      <geom name="ball" type="sphere" size="0.1" pos="1 2 3"/>
      <geom name="strut" class="thin" fromto="0 0 0 0.3 -0.1 0.2"/>
      <geom name="egg" type="ellipsoid" size="0.1 0.2 0.3" axisangle="1 1 0 40"/>
      <frame pos="0 0 1" euler="0 90 0"><geom name="drum" type="cylinder" size="0.1 0.4" xyaxes="0 1 0 -1 0 0"/></frame>
      <body name="welded" pos="0 0 -0.4" quat="0.8 0 0.6 0">
        <geom name="plate" type="box" size="0.05 0.1 0.2" zaxis="1 1 1"/>
        <body name="shank" pos="0 0 -0.4">
          <joint name="knee" axis="1 0 0"/>
          <geom name="bone" class="thin" size="0.02 0.3" pos="0 0 -0.3" quat="0.5 0.5 0.5 0.5"/>
        </body>
      </body>
    </body>
    <body name="free" pos="3 0 0"><freejoint/><geom name="stone" type="box" size="0.1 0.2 0.3" pos="0 0 0.1"/></body>
  </worldbody>
</mujoco>
"""

SCALED = 'scale="2 1 0.5"'
REFERRED = 'refpos="0.1 0.2 0.3"'
MESHES = """
<mujoco>
  <compiler meshdir="meshes"/>
  <asset>
    <mesh name="hull" file="hull.obj" {asset}/>
    <mesh name="inline" vertex="0 0 0  1 0 0  0 2 0  0 0 3" {asset}/>
  </asset>
  <worldbody>
    <geom name="rock" type="mesh" mesh="hull" pos="1 1 1" euler="10 20 30"/>
    <body name="arm" pos="1 0 0" euler="0 30 0">
      <joint name="elbow" axis="0 1 0"/>
      {inertial}
      <geom name="shell" type="mesh" mesh="hull" pos="0.1 0.2 0.3" axisangle="1 2 3 50"/>
      <geom name="wedge" type="mesh" mesh="inline" pos="-0.1 0 0" euler="0 0 40"/>
    </body>
  </worldbody>
</mujoco>
"""


def write(folder: Path, text: str, with_meshes: bool = True) -> str:
    path = folder / "robot.xml"
    path.write_text(text)
    if with_meshes:
        (folder / "meshes").mkdir(exist_ok=True)
        (folder / "meshes/hull.obj").write_text(TETRAHEDRON)
    return str(path)


def shapes(folder: Path, geoms: str, rest: str = "") -> dict[str, fw.Shape]:
    path = folder / "robot.xml"
    path.write_text(f'<mujoco><worldbody><body name="arm"><joint/>{INERTIAL}{geoms}</body></worldbody>{rest}</mujoco>')
    return {s.name: s for s in load_description(path).shapes}


def moved(path: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return MuJoCo's model in a configuration without zeros."""
    model = mujoco.MjModel.from_xml_path(path)
    data = mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, np.random.default_rng(0).normal(size=model.nv), 1.0)
    mujoco.mj_forward(model, data)
    return model, data


def in_world(shape: fw.Shape, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
    body = data.body(shape.body or "world")
    R = body.xmat.reshape(3, 3)
    return R @ shape.placement.R, R @ shape.placement.p + body.xpos


# --- against MuJoCo


def test_primitives_are_where_mujoco_has_them(tmp_path: Path) -> None:
    path = write(tmp_path, PRIMITIVES)
    robot = fw.load(path)
    model, data = moved(path)
    assert [s.name for s in robot.shapes] == [model.geom(i).name for i in range(model.ngeom)]
    for i, shape in enumerate(robot.shapes):
        R, p = in_world(shape, data)
        np.testing.assert_allclose(R, data.geom_xmat[i].reshape(3, 3), atol=1e-14, err_msg=shape.name)  # a few roundings
        np.testing.assert_allclose(p, data.geom_xpos[i], atol=1e-14, err_msg=shape.name)
        kind, size = SIZES[mujoco.mjtGeom(model.geom_type[i])]
        assert shape.type == kind
        assert shape.size == tuple(size(model.geom_size[i]))
        assert shape.color == pytest.approx(tuple(model.geom_rgba[i]), rel=SINGLE)
        assert shape.friction == model.geom_friction[i, 0]
    assert {s.name: s.body for s in robot.shapes}["plate"] == "trunk"
    assert [s.name for s in robot.shapes if s.body is None] == ["floor", "board"]
    assert robot.report() == {}


@pytest.mark.parametrize("inertial", ["", INERTIAL], ids=["gives the mass", "is only drawn"])
@pytest.mark.parametrize("asset", ["", SCALED, REFERRED, f"{SCALED} {REFERRED}", 'scale="2 2 2" refquat="1 2 0 1" ' + REFERRED])
def test_vertices_of_meshes_are_where_mujoco_has_them(tmp_path: Path, asset: str, inertial: str) -> None:
    path = write(tmp_path, MESHES.format(asset=asset, inertial=inertial))
    robot = fw.load(path)
    model, data = moved(path)
    assert [s.name for s in robot.shapes] == ["rock", "shell", "wedge"]
    for i, shape in enumerate(robot.shapes):
        m = model.geom_dataid[i]
        theirs = model.mesh_vert[model.mesh_vertadr[m] :][: model.mesh_vertnum[m]]
        theirs = theirs @ data.geom_xmat[i].reshape(3, 3).T + data.geom_xpos[i]
        R, p = in_world(shape, data)
        vertices = CORNERS if shape.vertices is None else shape.vertices
        np.testing.assert_allclose((vertices * shape.size) @ R.T + p, theirs, atol=SINGLE, err_msg=shape.name)
    assert [s.path for s in robot.shapes] == [str(tmp_path / "meshes/hull.obj")] * 2 + [None]
    assert robot.report() == {}


HILLS = """
<mujoco>
  <compiler meshdir="meshes"/>
  <asset>
    <hfield name="hill" nrow="3" ncol="4" size="2 1 0.5 0.1" elevation="0 1 2 3  4 4 4 9  5 6 7 8"/>
    <hfield name="dune" file="dune.bin" size="1 2 0.3 0.2"/>
  </asset>
  <worldbody>
    <geom name="near" type="hfield" hfield="hill" pos="0.1 0.2 0.3" euler="0 0 40"/>
    <body name="stand" pos="5 0 0" euler="0 0 -30"><geom name="far" type="hfield" hfield="dune"/></body>
    <body name="arm"><joint/><geom size="0.01"/></body>
  </worldbody>
</mujoco>
"""


def test_height_fields_are_where_rays_meet_mujocos(tmp_path: Path) -> None:
    path = write(tmp_path, HILLS)
    heights = np.random.default_rng(0).uniform(size=(5, 6)).astype(np.float32)
    header = np.array(heights.shape, dtype=np.int32)
    (tmp_path / "meshes/dune.bin").write_bytes(header.tobytes() + heights.tobytes())
    fields = [s for s in fw.load(path).shapes if s.type is ShapeType.HEIGHTFIELD]
    assert [(s.name, s.body, s.size) for s in fields] == [("near", None, (4.0, 2.0, 0.1)), ("far", None, (2.0, 4.0, 0.2))]
    model = mujoco.MjModel.from_xml_path(path)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    for shape in fields:
        nx, ny = shape.heights.shape
        for (i, j), height in np.ndenumerate(shape.heights):
            x, y = (0.999 * length * (k / (n - 1) - 0.5) for length, k, n in zip(shape.size, (i, j), (nx, ny), strict=False))
            start = np.array(shape.placement.R) @ [x, y, 2.0] + shape.placement.p
            depth = mujoco.mj_ray(model, data, start, np.array([0.0, 0.0, -1.0]), None, 1, -1, np.zeros(1, np.int32), None)
            assert 2.0 - depth == pytest.approx(height, abs=2e-3)  # a thousandth beside the point, on slopes below one


def test_missing_meshes_change_no_pose_and_are_listed(tmp_path: Path) -> None:
    text = MESHES.format(asset=f"{SCALED} {REFERRED}", inertial=INERTIAL)
    found = load_description(write(tmp_path, text)).shapes
    (tmp_path / "gone").mkdir()
    robot = load_description(write(tmp_path / "gone", text, with_meshes=False))
    assert [s.placement for s in robot.shapes] == [s.placement for s in found]
    assert [s.path for s in robot.shapes] == ["hull.obj", "hull.obj", None]
    assert dict(robot.unused) == {"meshes not found": "1, the first is 'hull.obj'"}


def test_arrays_of_meshes_survive_pickling(tmp_path: Path) -> None:
    robot = fw.load(write(tmp_path, MESHES.format(asset=SCALED, inertial=INERTIAL)))
    again = pickle.loads(pickle.dumps(robot))
    assert again.shapes == robot.shapes
    np.testing.assert_array_equal(again.shapes[2].vertices, CORNERS)


def test_faces_of_inline_meshes_are_the_files(tmp_path: Path) -> None:
    mesh = '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 2 0 0 0 3" face="0 2 1 0 1 3 0 3 2 1 2 3"/></asset>'
    shape = shapes(tmp_path, '<geom name="g" type="mesh" mesh="m"/>', mesh)["g"]
    assert shape.faces.tolist() == [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]


@pytest.mark.parametrize(
    ("compiler", "file"),
    [
        ('meshdir="meshes"', "hull.obj"),
        ('assetdir="meshes"', "hull.obj"),
        ("", "meshes/hull.obj"),
        ('meshdir="meshes" strippath="true"', "elsewhere/hull.obj"),
    ],
)
def test_mesh_files_are_found_where_the_compiler_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, file: str
) -> None:
    asset = f'<compiler {compiler}/><asset><mesh name="hull" file="{file}"/></asset>'
    geom = '<geom type="mesh" mesh="hull"/>'
    path = write(tmp_path, f"<mujoco>{asset}<worldbody><body><joint/>{INERTIAL}{geom}</body></worldbody></mujoco>")
    mujoco.MjModel.from_xml_path(path)  # MuJoCo finds the file, too
    monkeypatch.chdir(tmp_path)
    for name in (path, "robot.xml"):
        assert load_description(name).shapes[0].path == str(tmp_path / "meshes/hull.obj")


# --- appearance


def test_colors_are_the_geoms_or_its_materials(tmp_path: Path) -> None:
    paint = '<asset><material name="red" rgba="1 0 0 1"/></asset>'
    found = shapes(
        tmp_path,
        '<geom name="own" size="1" rgba="0 1 0 0.5" material="red"/><geom name="red" size="1" material="red"/>'
        '<geom name="plain" size="1"/>',
        paint,
    )
    assert [s.color for s in found.values()] == [(0.0, 1.0, 0.0, 0.5), (1.0, 0.0, 0.0, 1.0), None]


def test_what_is_drawn_and_what_touches(tmp_path: Path) -> None:
    geoms = (
        '<geom name="both" size="1"/>',
        '<geom name="drawn" size="1" contype="0" conaffinity="0"/>',
        '<geom name="touched" size="1" contype="0" conaffinity="2"/>',
        '<geom name="hidden" size="1" group="3"/>',
        '<geom name="clear" size="1" rgba="1 1 1 0"/>',
    )
    found = shapes(tmp_path, "".join(geoms))
    assert [n for n, s in found.items() if s.visual] == ["both", "drawn", "touched"]
    assert [n for n, s in found.items() if s.collision] == ["both", "touched", "hidden", "clear"]
    off = shapes(tmp_path, "".join(geoms), '<option><flag contact="disable"/></option>')
    assert not any(s.collision for s in off.values())


def test_geoms_without_names_get_some(tmp_path: Path) -> None:
    assert list(shapes(tmp_path, '<geom size="1"/><geom name="arm_geom" size="1"/><geom size="1"/>')) == [
        "arm_geom_2",
        "arm_geom",
        "arm_geom_3",
    ]


def test_geoms_that_the_compiler_might_discard_are_there(tmp_path: Path) -> None:
    found = shapes(tmp_path, '<geom size="1" contype="0" conaffinity="0" mass="0"/>', '<compiler discardvisual="true"/>')
    assert len(found) == 1


# --- reports


def test_primitives_fitted_to_meshes_are_the_meshes_unless_mujoco_fits_them(tmp_path: Path) -> None:
    text = (
        '<mujoco><compiler meshdir="meshes"/><asset><mesh name="hull" file="hull.obj"/></asset><worldbody><body><joint/>{}'
        '<geom type="box" mesh="hull" pos="1 2 3" contype="{}" conaffinity="0"/></body></worldbody></mujoco>'
    )
    drawn = load_description(write(tmp_path, text.format(INERTIAL, 0)))
    touching = load_description(write(tmp_path, text.format(INERTIAL, 1)))
    assert dict(touching.unused) == {"primitives fitted to meshes, touching as those meshes": "1"}
    assert (drawn.shapes[0].type, drawn.shapes[0].placement.p) == (ShapeType.MESH, (1.0, 2.0, 3.0))
    assert dict(drawn.unused) == {"primitives fitted to meshes, taken as those meshes": "1"}
    path = write(tmp_path, text.format("", 1))
    fitted, model = load_description(path).shapes[0], mujoco.MjModel.from_xml_path(path)
    assert (fitted.type, fitted.placement.p) == (ShapeType.BOX, tuple(model.geom_pos[0]))
    assert fitted.size == tuple(2 * model.geom_size[0])


def test_what_no_shape_can_say_is_listed(tmp_path: Path) -> None:
    asset = (
        '<asset><mesh name="skewed" vertex="0 0 0 1 0 0 0 2 0 0 0 3" scale="1 2 3" refquat="1 1 0 0"/>'
        '<hfield name="hill" file="nowhere.png" size="1 1 1 1"/></asset>'
    )
    path = tmp_path / "robot.xml"
    geoms = '<geom type="mesh" mesh="skewed"/><geom type="hfield" hfield="hill"/><geom name="last" size="1"/>'
    path.write_text(f"<mujoco>{asset}<worldbody><body><joint/>{INERTIAL}{geoms}</body></worldbody></mujoco>")
    robot = load_description(path)
    assert [s.name for s in robot.shapes] == ["last"]
    assert dict(robot.unused) == {
        "meshes that their asset turns and stretches": "1",
        "height fields whose files cannot be read": "1",
        "geoms that touch and are left out": "2",
    }


def test_sizes_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    with pytest.raises(fw.ModelError, match=r"robot\.xml: <geom> of geom 'g': 'pos'"):
        shapes(tmp_path, '<geom name="g" size="1" pos="nan 0 0"/>')


def test_a_height_field_gives_its_body_mass_and_inertia(tmp_path: Path) -> None:
    """Check a field with numbers in the file: mass, centre and inertia are those that MuJoCo computes."""
    field = '<hfield name="f" nrow="2" ncol="2" size="1 2 0.5 0.1" elevation="0 1 1 0"/>'
    geom = '<geom type="hfield" hfield="f" pos="0.1 0.2 0.3" density="3"/>'
    body = f'<body name="b"><joint type="free"/>{geom}</body>'
    text = f"<mujoco><asset>{field}</asset><worldbody>{body}</worldbody></mujoco>"
    robot, theirs = fw.load(text, execution="interpreted"), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    mujoco.mj_forward(theirs, data)
    M = np.zeros((6, 6))
    mujoco.mj_fullM(theirs, data, M)
    assert robot.mass == pytest.approx(theirs.body_mass[1], rel=1e-12) and robot.mass > 0.0
    np.testing.assert_allclose(robot.mass_matrix(robot.start()), M, rtol=0.0, atol=1e-12 * np.abs(M).max())
    assert robot.shapes[0].type == "heightfield"


WEIGHED = '<body name="b"><joint/><geom type="mesh" mesh="m"/></body>'


@pytest.mark.parametrize(
    ("asset", "words"),
    [
        ('vertex="0 0 0 1 0 0 0 1 0 0 0"', "mesh 'm': 'vertex' has 11 numbers"),
        ('vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 1 2 3"', "mesh 'm': 'face' has 4 numbers"),
        ('vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 1 4"', "mesh 'm': 'face' names a vertex that does not exist"),
        ('file="m.stl" refquat="0 0 0 0"', "mesh 'm': 'refquat' is zero"),
        (f'file="{"m" * 5000}.stl"', "body 'b': its inertia comes from mesh"),
        pytest.param('file="pipe.stl"', r"mesh 'm': .*pipe\.stl: a pipe, socket or device", marks=needs_pipes),
    ],
)
def test_meshes_that_cannot_be_are_refused_by_name(tmp_path: Path, asset: str, words: str) -> None:
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.stl")
    path = tmp_path / "robot.xml"
    path.write_text(f'<mujoco><asset><mesh name="m" {asset}/></asset><worldbody>{WEIGHED}</worldbody></mujoco>')
    with pytest.raises(ModelError, match=words):
        fw.load(path)


def test_a_mesh_file_too_large_to_weigh_is_refused_by_name(tmp_path: Path) -> None:
    with open(tmp_path / "m.stl", "wb") as file:
        file.truncate(60_000_000)
    path = tmp_path / "robot.xml"
    path.write_text(f'<mujoco><asset><mesh name="m" file="m.stl"/></asset><worldbody>{WEIGHED}</worldbody></mujoco>')
    with pytest.raises(ModelError, match=r"mesh 'm': its file 'm\.stl' has 60 MB"):
        fw.load(path)
