"""Tests of a body's figure: its shapes, simplified meshes, or the box that has its inertia."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight
from featherweight import Body, Inertia, Joint, JointType, describe
from featherweight.model.types import Shape, ShapeType
from viewer.robots import arm

trimesh = pytest.importorskip("trimesh")

from featherweight.model.equivalent_box import equivalent_box  # noqa: E402
from featherweight.viewer.drawn_meshes import lighter, shaded, simplified, vertex_normals  # noqa: E402
from featherweight.viewer.figure import Figure, Layer  # noqa: E402


def test_a_body_box_has_the_mass_centre_and_inertia_of_the_body(tmp_path: Path) -> None:
    lower = arm(tmp_path, "floating").bodies["lower"].inertia
    assert lower.mass == pytest.approx(1.0)
    assert lower.center == pytest.approx([0.01, 0.02, 0.15])
    assert np.array(lower.rotational.matrix) == pytest.approx(
        np.array([[0.02, 0.001, 0], [0.001, 0.03, 0.002], [0, 0.002, 0.015]])
    )
    box = equivalent_box(lower)
    assert box is not None
    a, b, c = box.lengths
    principal = lower.mass / 12.0 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b])
    assert box.rotation @ principal @ box.rotation.T == pytest.approx(np.array(lower.rotational.matrix))
    assert np.linalg.det(box.rotation) == pytest.approx(1.0)


def test_links_that_are_fixed_to_a_body_count_for_its_inertia(tmp_path: Path) -> None:
    robot = arm(tmp_path)
    assert sum(x.mass for x in robot.bodies) == pytest.approx(robot.mass)


def test_a_box_without_mass_is_none() -> None:
    robot = featherweight.build(
        describe(
            [Body("base"), Body("light"), Body("heavy", Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))],
            [
                Joint("one", JointType.REVOLUTE, "base", "light"),
                Joint("two", JointType.REVOLUTE, "light", "heavy", axis=(1.0, 0.0, 0.0)),
            ],
        )
    )
    assert equivalent_box(robot.bodies["light"].inertia) is None
    [ball] = Figure(robot).layer(Layer.VISUAL)["light"]
    assert np.ptp(ball.vertices, axis=0) == pytest.approx([0.02] * 3, rel=0.1)


def test_layers_have_the_shapes_that_the_file_gives_and_inertias_elsewhere(tmp_path: Path) -> None:
    figure = Figure(arm(tmp_path))
    visual = figure.layer(Layer.VISUAL)
    [box] = visual["upper"]
    assert box.color == (230, 26, 26)
    assert np.array([box.vertices.min(axis=0), box.vertices.max(axis=0)]) == pytest.approx(
        np.array([[-0.08, -0.08, 0.0], [0.08, 0.08, 0.5]])
    )
    assert set(visual) == {None, "upper", "lower"}
    assert set(figure.layer(Layer.COLLISION)) == {"upper"}
    assert set(figure.layer(Layer.INERTIA)) == {"upper", "lower"}
    for a, b in zip(visual["lower"], figure.layer(Layer.INERTIA)["lower"], strict=True):
        np.testing.assert_array_equal(a.vertices, b.vertices)


@pytest.mark.parametrize(
    ("kind", "size", "extents"),
    [
        (ShapeType.SPHERE, (0.2,), (0.4, 0.4, 0.4)),
        (ShapeType.BOX, (0.1, 0.2, 0.3), (0.1, 0.2, 0.3)),
        (ShapeType.CYLINDER, (0.1, 0.5), (0.2, 0.2, 0.5)),
        (ShapeType.CAPSULE, (0.1, 0.5), (0.2, 0.2, 0.7)),
        (ShapeType.ELLIPSOID, (0.1, 0.2, 0.3), (0.2, 0.4, 0.6)),
    ],
)
def test_primitives_have_their_size_and_lie_about_their_origin(
    kind: ShapeType, size: tuple[float, ...], extents: tuple[float, ...]
) -> None:
    from featherweight.model.triangles import primitive

    mesh = primitive(Shape("shape", "body", kind, size))
    assert mesh.extents == pytest.approx(extents, rel=0.02)
    assert mesh.bounds.mean(axis=0) == pytest.approx([0.0] * 3, abs=2e-3)


def with_mesh(path: Path) -> featherweight.Robot:
    inertia = Inertia(1.0, rotational=(0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    shape = Shape("mesh", "body", ShapeType.MESH, (1.0, 2.0, 1.0), path=str(path))
    joint = Joint("joint", JointType.REVOLUTE, "base", "body")
    return featherweight.build(describe([Body("base"), Body("body", inertia)], [joint], shapes=[shape]))


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "glb"])
def test_a_mesh_is_read_and_scaled(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"ball.{suffix}"
    trimesh.creation.icosphere(subdivisions=3, radius=0.5).export(path)
    figure = Figure(with_mesh(path))
    [surface] = figure.layer(Layer.VISUAL)["body"]
    assert np.ptp(surface.vertices, axis=0) == pytest.approx([1.0, 2.0, 1.0], rel=0.01)
    assert figure.notes == []


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning:collada")
def test_a_collada_mesh_whose_texture_is_missing_is_read_with_its_other_colours(tmp_path: Path) -> None:
    """Check a material that names a surface that the file does not have."""
    path, image = tmp_path / "ball.dae", "<init_from>nowhere.png</init_from>"
    ball = trimesh.creation.icosphere(subdivisions=2, radius=0.5)
    ball.visual = trimesh.visual.TextureVisuals(material=trimesh.visual.material.PBRMaterial(baseColorFactor=[0, 0, 255, 255]))
    ball.export(path)
    [plain] = Figure(with_mesh(path)).layer(Layer.VISUAL)["body"]
    text = path.read_text()
    start, stop = text.index("<diffuse>"), text.index("</diffuse>")
    sampler = f'<newparam sid="sampler"><sampler2D><source>no_surface</source>{image}</sampler2D></newparam>'
    text = f'{text[:start]}<diffuse><texture texture="sampler" texcoord="UV"/>{text[stop:]}'
    path.write_text(text.replace("<profile_COMMON>", f"<profile_COMMON>{sampler}"))
    figure = Figure(with_mesh(path))
    [surface] = figure.layer(Layer.VISUAL)["body"]
    assert figure.notes == []
    assert (plain.color, surface.color) == ((0, 0, 255), (255, 255, 255))
    np.testing.assert_array_equal(surface.vertices, plain.vertices)


@pytest.mark.parametrize("content", [None, b"", b"solid nonsense", b"\x00" * 200])
def test_a_mesh_that_cannot_be_read_gives_way_to_the_inertia(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "broken.stl"
    if content is not None:
        path.write_bytes(content)
    figure = Figure(with_mesh(path))
    with pytest.warns(featherweight.ModelWarning, match="meshes cannot be read"):
        [surface] = figure.layer(Layer.VISUAL)["body"]
    [box] = figure.layer(Layer.INERTIA)["body"]
    np.testing.assert_array_equal(surface.vertices, box.vertices)
    assert [str(path) in note for note in figure.notes] == [True]


def open_edges(mesh: Any) -> int:
    """Return the number of edges with one face."""
    mesh.merge_vertices()
    return int((np.unique(mesh.edges_sorted, axis=0, return_counts=True)[1] == 1).sum())


def test_a_mesh_with_fewer_triangles_stays_closed_and_near_the_given_one() -> None:
    ring = trimesh.creation.torus(0.4, 0.1, major_sections=160, minor_sections=80)
    light = simplified(ring.copy(), 0.002)
    assert len(light.faces) < len(ring.faces) / 4
    assert open_edges(light) == 0 and light.euler_number == ring.euler_number
    points = trimesh.sample.sample_surface(light, 20_000, seed=0)[0]
    off = np.hypot(np.hypot(points[:, 0], points[:, 1]) - 0.4, points[:, 2]) - 0.1
    assert np.abs(off).max() < 0.003


def test_borders_stay_as_they_are() -> None:
    ball = trimesh.creation.icosphere(subdivisions=5)
    bowl = trimesh.Trimesh(ball.vertices, ball.faces[ball.triangles_center[:, 2] < 0.2])
    bowl.remove_unreferenced_vertices()
    light = simplified(bowl.copy(), 0.01)
    assert len(light.faces) < len(bowl.faces) / 4
    assert open_edges(light) == open_edges(bowl) > 0
    assert light.bounds == pytest.approx(bowl.bounds, abs=0.01)


def test_meshes_that_are_few_enough_together_are_left_alone() -> None:
    meshes = [trimesh.creation.box((1, 1, 1)), trimesh.creation.icosphere(subdivisions=5)]
    count = sum(len(m.faces) for m in meshes)
    assert sum(len(m.faces) for m in lighter(meshes, count)) == count
    box, ball = lighter(meshes, count - 1)
    assert len(box.faces) == 12
    assert len(ball.faces) < count / 4


def test_the_layer_of_every_triangle_has_every_triangle(tmp_path: Path) -> None:
    path = tmp_path / "ball.stl"
    ball = trimesh.creation.icosphere(subdivisions=5)
    ball.export(path)
    figure = Figure(with_mesh(path), faces=300)
    [full], [light] = figure.layer(Layer.FULL)["body"], figure.layer(Layer.VISUAL)["body"]
    assert len(full.faces) == len(ball.faces)
    assert len(light.faces) < len(ball.faces) / 4


def test_a_moving_body_called_world_is_not_the_ground() -> None:
    solid = Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    box = Shape("box", "world", ShapeType.BOX, (1.0, 1.0, 1.0))
    hinge = Joint("hinge", JointType.REVOLUTE, "world", "arm")
    made = describe([Body("world", solid), Body("arm", solid)], [hinge], shapes=[box])
    assert set(Figure(featherweight.build(made)).layer(Layer.VISUAL)) == {None, "arm"}
    assert set(Figure(featherweight.build(made, "floating")).layer(Layer.VISUAL)) == {"world", "arm"}


def test_the_ground_that_bodies_touch_is_drawn_in_every_layer() -> None:
    solid = Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    plane = Shape("plane", None, ShapeType.PLANE, (), visual=False)
    hinge = Joint("hinge", JointType.REVOLUTE, "base", "arm")
    robot = featherweight.build(describe([Body("base"), Body("arm", solid)], [hinge], shapes=[plane]))
    for layer in Layer:
        assert [p.name for p in Figure(robot).planes(layer)] == ["plane"]


def drawn_file(tmp_path: Path, name: str, content: str | bytes) -> Figure:
    """Return the figure of a body with a mesh file."""
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    mesh = Shape("mesh", "a", ShapeType.MESH, (1.0, 1.0, 1.0), path=str(path))
    body = Body("a", Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    return Figure(featherweight.build(describe([body], [Joint("free", JointType.FLOATING, "world", "a")], shapes=[mesh])))


def test_a_face_with_very_many_corners_at_few_vertices_is_a_few_triangles(tmp_path: Path) -> None:
    corners = " ".join(str(1 + k % 4) for k in range(20_000))
    figure = drawn_file(tmp_path, "ring.obj", f"v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 1\nf {corners}\n")
    [surface] = figure.layer(Layer.VISUAL)["a"]
    assert len(surface.faces) == 2 and not figure.notes


def test_faces_that_lie_over_one_another_give_way_to_the_inertia(tmp_path: Path) -> None:
    """Check a fan of long triangles, each as large as the whole."""
    angle = np.linspace(0.0, 2.0 * np.pi, 30_000, endpoint=False)
    vertices = "".join(f"v {np.cos(a):.9f} {np.sin(a):.9f} 0\n" for a in angle)
    figure = drawn_file(tmp_path, "fan.obj", vertices + "f " + " ".join(map(str, range(1, 30_001))) + "\n")
    [box] = figure.layer(Layer.VISUAL)["a"]
    assert len(box.faces) == 12
    [note] = figure.notes
    assert "fan.obj: 29998 faces" in note and "simplify it" in note


def test_vertices_at_which_very_many_faces_meet_are_not_simplified() -> None:
    """Check that simplification is skipped, because it takes time in the square of their number."""
    count = 20_000
    angle = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
    rim = np.column_stack([np.cos(angle), np.sin(angle), 0.1 * np.sin(7.0 * angle)])
    faces = np.column_stack([np.zeros(count - 2, int), np.arange(1, count - 1), np.arange(2, count)])
    fan = trimesh.Trimesh(rim, faces, process=False)
    assert simplified(fan, 0.01) is fan


MSH_BOX = trimesh.creation.box((0.2, 0.3, 0.4))


def msh(faces: bool, counts: tuple[int, int] = (0, 0)) -> bytes:
    """Write MuJoCo's binary format, with some normals and texture coordinates."""
    normals, coordinates = counts
    corners = np.asarray(MSH_BOX.faces, "<i4") if faces else np.zeros((0, 3), "<i4")
    head = np.array([8, normals, coordinates, len(corners)], "<i4")
    between = np.ones(3 * normals + 2 * coordinates, "<f4")
    return head.tobytes() + np.asarray(MSH_BOX.vertices, "<f4").tobytes() + between.tobytes() + corners.tobytes()


@pytest.mark.parametrize("content", [msh(True), msh(False), msh(True, (8, 8))])
def test_mujocos_binary_meshes_are_read_as_mujoco_reads_them(tmp_path: Path, content: bytes) -> None:
    mujoco = pytest.importorskip("mujoco")
    figure = drawn_file(tmp_path, "box.msh", content)
    [surface] = figure.layer(Layer.VISUAL)["a"]
    assert len(surface.faces) == 12 and not figure.notes
    np.testing.assert_allclose(np.ptp(surface.vertices, axis=0), [0.2, 0.3, 0.4], rtol=1e-6)
    asset = f'<asset><mesh name="m" file="{tmp_path}/box.msh"/></asset>'
    model = mujoco.MjModel.from_xml_string(f'<mujoco>{asset}<worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>')
    assert (model.mesh_vertnum[0], model.mesh_facenum[0]) == (8, 12)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gmsh.msh", "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n", "not in MuJoCo's binary MSH format"),
        ("short.msh", msh(True)[:-4], "not in MuJoCo's binary MSH format"),
        ("wrong.msh", msh(True)[:-4] + b"\x09\0\0\0", "a face names a vertex that does not exist"),
        ("part.step", "ISO-10303-21;", "convert it to STL, OBJ, COLLADA, PLY or glTF"),
    ],
)
def test_meshes_of_other_formats_are_told_with_what_to_do(tmp_path: Path, name: str, content: str | bytes, words: str) -> None:
    figure = drawn_file(tmp_path, name, content)
    with pytest.warns(featherweight.ModelWarning, match="meshes cannot be read"):
        assert len(figure.layer(Layer.VISUAL)["a"]) == 1
    [note] = figure.notes
    assert str(tmp_path / name) in note and words in note


@pytest.mark.parametrize(("top", "height", "corners", "vertical"), [(1.0, 2.0, 96, 48), (0.1, 0.3, 72, 24)])
def test_sharp_edges_and_large_plane_parts_are_shaded_apart(top: float, height: float, corners: int, vertical: int) -> None:
    """Check a cylinder, and a cone of 18° without its tip: its small end is shaded with its side, its large end is not."""
    angles = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = np.concatenate([np.c_[ring, np.zeros(24)], np.c_[top * ring, np.full(24, height)]])
    vertices, faces = shaded(trimesh.Trimesh(points).convex_hull)
    normals = vertex_normals(trimesh.Trimesh(vertices, faces, process=False))
    assert (len(vertices), np.isclose(np.abs(normals[:, 2]), 1.0).sum()) == (corners, vertical)


def test_normals_of_a_ball_point_away_from_its_centre() -> None:
    ball = trimesh.creation.icosphere(subdivisions=2)
    np.testing.assert_allclose(vertex_normals(trimesh.Trimesh(*shaded(ball))), ball.vertices, atol=0.02)
