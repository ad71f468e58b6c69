"""What is drawn of a body: its shapes, fewer triangles than its files have, or the box that has its inertia."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import featherweight
from featherweight import Body, Inertia, Joint, JointType, Mechanism
from featherweight.model.types import Shape, ShapeType
from viewer.robots import arm

trimesh = pytest.importorskip("trimesh")

from featherweight.model.equivalent_box import body_inertias, equivalent_box  # noqa: E402
from featherweight.viewer.drawn_meshes import seen_from_outside, shares, simplified  # noqa: E402
from featherweight.viewer.figure import Figure, Layer  # noqa: E402


def test_a_body_box_has_the_mass_centre_and_inertia_of_the_body(tmp_path: Path) -> None:
    inertias = body_inertias(arm(tmp_path, "floating").model)
    lower = inertias["lower"]
    assert lower.mass == pytest.approx(1.0)
    assert lower.center == pytest.approx([0.01, 0.02, 0.15])
    assert lower.rotational == pytest.approx(np.array([[0.02, 0.001, 0], [0.001, 0.03, 0.002], [0, 0.002, 0.015]]))
    box = equivalent_box(lower)
    assert box is not None
    a, b, c = box.lengths
    principal = lower.mass / 12.0 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b])
    assert box.rotation @ principal @ box.rotation.T == pytest.approx(lower.rotational)
    assert np.linalg.det(box.rotation) == pytest.approx(1.0)


def test_links_that_are_fixed_to_a_body_count_for_its_inertia(tmp_path: Path) -> None:
    robot = arm(tmp_path)
    assert sum(x.mass for x in body_inertias(robot.model).values()) == pytest.approx(robot.mass)


def test_a_box_without_mass_is_none() -> None:
    robot = featherweight.build(
        Mechanism(
            [Body("base"), Body("light"), Body("heavy", Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))],
            [
                Joint("one", JointType.REVOLUTE, "base", "light"),
                Joint("two", JointType.REVOLUTE, "light", "heavy", axis=(1.0, 0.0, 0.0)),
            ],
        )
    )
    assert equivalent_box(body_inertias(robot.model)["light"]) is None
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
    return featherweight.build(Mechanism([Body("base"), Body("body", inertia)], [joint], shapes=[shape]))


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "glb"])
def test_a_mesh_is_read_and_scaled(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"ball.{suffix}"
    trimesh.creation.icosphere(subdivisions=3, radius=0.5).export(path)
    figure = Figure(with_mesh(path))
    [surface] = figure.layer(Layer.VISUAL)["body"]
    assert np.ptp(surface.vertices, axis=0) == pytest.approx([1.0, 2.0, 1.0], rel=0.01)
    assert figure.notes == []


@pytest.mark.parametrize("content", [None, b"", b"solid nonsense", b"\x00" * 200])
def test_a_mesh_that_cannot_be_read_gives_way_to_the_inertia(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "broken.stl"
    if content is not None:
        path.write_bytes(content)
    figure = Figure(with_mesh(path))
    [surface] = figure.layer(Layer.VISUAL)["body"]
    [box] = figure.layer(Layer.INERTIA)["body"]
    np.testing.assert_array_equal(surface.vertices, box.vertices)
    assert [str(path) in note for note in figure.notes] == [True]


def test_many_triangles_become_few_and_keep_the_outline() -> None:
    ball = trimesh.creation.icosphere(subdivisions=5)
    light = simplified(ball.copy(), 400)
    assert 100 < len(light.faces) <= 520
    assert light.extents == pytest.approx(ball.extents, rel=0.05)


def test_what_is_inside_another_surface_is_not_seen() -> None:
    outer, inner = trimesh.creation.icosphere(subdivisions=3), trimesh.creation.icosphere(subdivisions=2, radius=0.5)
    seen = seen_from_outside(trimesh.util.concatenate([outer, inner]))
    assert seen[: len(outer.faces)].all()
    assert seen[len(outer.faces) :].mean() < 0.05


def test_small_meshes_keep_their_triangles_where_large_ones_lose_some() -> None:
    meshes = [trimesh.creation.box((1, 1, 1)), trimesh.creation.icosphere(subdivisions=5)]
    small, large = shares(meshes, 1000)
    assert small == 12
    assert large == 988


def test_the_layer_of_every_triangle_has_every_triangle(tmp_path: Path) -> None:
    path = tmp_path / "ball.stl"
    ball = trimesh.creation.icosphere(subdivisions=5)
    ball.export(path)
    figure = Figure(with_mesh(path), faces=300)
    [full], [light] = figure.layer(Layer.FULL)["body"], figure.layer(Layer.VISUAL)["body"]
    assert len(full.faces) == len(ball.faces)
    assert len(light.faces) < 450


def test_a_moving_body_called_world_is_not_the_ground() -> None:
    solid = Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    box = Shape("box", "world", ShapeType.BOX, (1.0, 1.0, 1.0))
    hinge = Joint("hinge", JointType.REVOLUTE, "world", "arm")
    made = Mechanism([Body("world", solid), Body("arm", solid)], [hinge], shapes=[box])
    assert set(Figure(featherweight.build(made)).layer(Layer.VISUAL)) == {None, "arm"}
    assert set(Figure(featherweight.build(made, "floating")).layer(Layer.VISUAL)) == {"world", "arm"}
