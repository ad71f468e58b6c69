"""Tests of shapes of saved MJCF files: equal appearance and pairs in contact; reports name shapes that MuJoCo cannot read."""

from __future__ import annotations

import dataclasses
import math
import struct
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight import (
    JointType,
    Loop,
    LoopType,
    ModelWarning,
    Pose,
    Shape,
    ShapeType,
)
from featherweight.model.contact_rules import ContactPair, NeighbourRule
from featherweight.model.formats.mjcf.numbers import as_rotation
from featherweight.model.generators import chain, from_parents
from featherweight.robot.collision.shape_pairs import touching_pairs
from featherweight.spatial.lie import quaternion_of_matrix
from oracles.same_motion import interpreted
from oracles.saved_files import (
    SOFT,
    TILTED,
    assert_same,
    assert_touch_alike,
    saved,
    silently,
    whatever_is_lost,
)

# --- shapes


def stl(path: Path, triangles: Any) -> None:
    facets = b"".join(struct.pack("<12fH", 0.0, 0.0, 0.0, *np.ravel(t).tolist(), 0) for t in triangles)
    path.write_bytes(b" " * 80 + struct.pack("<I", len(triangles)) + facets)


TETRA = np.eye(4, 3)[[[0, 1, 2], [0, 3, 1], [1, 3, 2], [0, 2, 3]]]


def test_shapes_come_back_with_colors_and_meshes(tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    stl(tmp_path / "meshes" / "hull.stl", TETRA)
    numbers: dict[str, Any] = {
        "condim": 4,
        "margin": 0.01,
        "priority": 2,
        "contype": 6,
        "conaffinity": 5,
        "turning_friction": (0.02, 0.003),
    }
    shapes = (
        Shape("ball", "body0", ShapeType.SPHERE, (0.1,), TILTED, color=(1.0, 0.5, 0.25, 0.75), friction=0.3, softness=SOFT),
        Shape("grey", "body0", ShapeType.BOX, (0.1, 0.2, 0.3), color=(0.5, 0.5, 0.5, 1.0), friction=1.0, **numbers),
        Shape("cup", "body0", ShapeType.CYLINDER, (0.1, 0.3), visual=False, friction=0.0),
        Shape("pill", "body0", ShapeType.CAPSULE, (0.1, 0.3), friction=1.0, softness=SOFT._replace(solmix=2.0)),
        Shape("egg", "body0", ShapeType.ELLIPSOID, (0.1, 0.3, 0.2), friction=1.0),
        Shape(
            "ghost", "body0", ShapeType.SPHERE, (1.0,), visual=False, collision=False, friction=1.0, contype=0, conaffinity=0
        ),
        Shape("hull", "body1", ShapeType.MESH, (1.0, -2.0, 3.0), TILTED, friction=1.0, path=str(tmp_path / "meshes/hull.stl")),
        Shape("twin", "body1", ShapeType.MESH, (1.0, -2.0, 3.0), friction=1.0, path=str(tmp_path / "meshes/hull.stl")),
        Shape("cloud", "body1", ShapeType.MESH, (1.0, 1.0, 2.0), TILTED, friction=1.0, vertices=np.eye(5, 3)),
    )
    made = dataclasses.replace(chain(2), shapes=shapes, neighbours=NeighbourRule.MOVING)
    again = silently(made, tmp_path)
    assert_same(again.shapes, shapes)
    assert_same(again.shapes[8].vertices, np.eye(5, 3))
    assert (tmp_path / "saved.xml").read_text().count('file="meshes/hull.stl"') == 1
    assert_touch_alike(interpreted(again), interpreted(made))
    mujoco.MjModel.from_xml_path(str(tmp_path / "saved.xml"))


def test_height_fields_below_zero_come_back_shifted(tmp_path: Path) -> None:
    heights = np.array([[-0.5, 0.25, 0.0], [0.5, 1.5, -0.25]])
    hills = Shape("hills", None, ShapeType.HEIGHTFIELD, (2.0, 4.0, 1.0), TILTED, friction=1.0, heights=heights)
    flat_ground = Shape("flat", None, ShapeType.HEIGHTFIELD, (2.0, 4.0, 1.0), friction=1.0, heights=np.full((2, 2), 0.5))
    again, level = silently(dataclasses.replace(chain(2), shapes=(hills, flat_ground)), tmp_path).shapes
    np.testing.assert_allclose(again.heights, heights + 0.5, atol=1e-7)  # MuJoCo's are in single precision
    assert_same(again.placement, TILTED @ Pose(p=(0.0, 0.0, -0.5)))
    assert_same(again.size, (2.0, 4.0, 0.5))
    assert_same((level.placement.p, level.size), ((0.0, 0.0, 0.5), (2.0, 4.0, 1.5)))
    assert not level.heights.any()
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "saved.xml"))
    np.testing.assert_allclose(model.hfield_data[:6], [0.0, 0.5, 0.375, 1.0, 0.25, 0.125], atol=1e-7)  # rows along y


def test_shapes_that_mujoco_does_not_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.dae").touch()
    (tmp_path / "text.stl").write_text("solid text")
    mesh: dict[str, Any] = {"type": ShapeType.MESH, "size": (1.0, 1.0, 1.0), "friction": 1.0}
    shapes = (
        Shape("drawn", "body0", path=str(tmp_path / "a.dae"), **mesh),
        Shape("gone", "body0", path="package://nowhere/a.stl", **mesh),
        Shape("text", "body0", path=str(tmp_path / "text.stl"), **mesh),
        Shape("corner", "body0", vertices=np.eye(3), **mesh),
        Shape("sheet", "body0", vertices=np.array([[0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]]), **mesh),
        Shape("point", "body0", ShapeType.SPHERE, (0.0,), friction=1.0),
        Shape("floor", "body1", ShapeType.PLANE, (), friction=1.0),
        Shape("rough", "body1", ShapeType.SPHERE, (1.0,)),
        Shape("shy", "body1", ShapeType.SPHERE, (1.0,), friction=1.0, contype=0, conaffinity=0),
        Shape("quiet", "body1", ShapeType.SPHERE, (1.0,), friction=1.0, collision=False),
    )
    pairs = (ContactPair(("point", "quiet"), 1.0), ContactPair(("point", "gone"), 1.0), ContactPair(("point", "rough")))
    with pytest.warns(ModelWarning) as caught:
        again = saved(dataclasses.replace(chain(2), shapes=shapes, contact_pairs=pairs), tmp_path)
    message = str(caught[0].message)
    for told in (
        "the meshes drawn, in files that MuJoCo does not read",
        "the meshes gone, whose files are not there",
        "the meshes text, in STL files that are text, or of more than 200000 triangles",
        "the meshes corner, of fewer than four vertices",
        "the meshes sheet, which touch and are flat",
        "the sizes of the shapes point, which are zero (1e-12 m in the file)",
        "the planes and height fields floor, on bodies that move",
        "the friction of the shapes rough, which have none of their own (1 in the file)",
        "the collisions of the shapes shy, whose contype and conaffinity are 0",
        "the contact pairs point and quiet, point and gone of shapes that are not there or do not touch",
        "the friction of the contact pairs point and rough, which have none of their own (1 in the file)",
    ):
        assert told in message
    assert {s.name for s in again.shapes} == {"point", "rough", "shy", "quiet"}
    assert len(again.contact_pairs) == 1
    mujoco.MjModel.from_xml_path(str(tmp_path / "saved.xml"))


def test_long_lists_of_names_are_cut(tmp_path: Path) -> None:
    made = chain(14)
    joints = tuple(dataclasses.replace(j, velocity=1.0) for j in made.joints)
    with pytest.warns(ModelWarning, match="velocity limits of the joints joint0, .* joint9 and 4 more"):
        saved(dataclasses.replace(made, joints=joints), tmp_path)


# --- neighbours that touch


@pytest.mark.parametrize("rule", NeighbourRule)
@pytest.mark.parametrize("seed", range(4))
def test_the_same_pairs_touch_by_all_rules(rule: NeighbourRule, seed: int, tmp_path: Path) -> None:
    kinds = ("revolute", "fixed", "spherical", "floating")
    made = from_parents([-1, -1, 0, 2, 3, 2, 0, 6, 7, 1], rng=seed, joint_types=kinds)
    joints = tuple(dataclasses.replace(j, placement=Pose()) if j.type is JointType.FLOATING else j for j in made.joints)
    shapes = [Shape(f"ball{k}", f"body{k}", ShapeType.SPHERE, (0.1,), friction=1.0) for k in range(10)]
    shapes += [Shape("floor", None, ShapeType.BOX, (0.1, 0.1, 0.1), friction=1.0)]
    description = dataclasses.replace(
        made,
        joints=joints,
        shapes=tuple(shapes),
        neighbours=rule,
        loops=(Loop("ring", LoopType.SPHERICAL, "body4", "body8"),),
        disabled_collisions=(("body0", "body9"), (None, "body5")),
        contact_pairs=(ContactPair(("ball0", "ball2"), 0.5, 3, 0.01, SOFT),),
    )
    before = fw.build(dataclasses.replace(description, loops=()), execution="interpreted")
    again = whatever_is_lost(description, tmp_path)
    after = fw.build(dataclasses.replace(again, loops=()), execution="interpreted")
    expected, found = (
        {frozenset((r.shapes[p.i].name, r.shapes[p.j].name)) for p in touching_pairs(r)} for r in (before, after)
    )
    if rule is NeighbourRule.JOINED:
        moving = {x.name: x.body for x in before.shapes}
        ends = {moving["ball4"], moving["ball8"]}
        expected = {pair for pair in expected if {moving[name] for name in pair} != ends}
    assert found == expected and len(found) > 10


# --- numbers


def test_quaternions_give_rotations_back() -> None:
    rng = np.random.default_rng(0)
    for axis in (*np.eye(3), *rng.standard_normal((20, 3))):
        for angle in (0.0, 1e-9, 1.0, math.pi / 2, math.pi - 1e-9, math.pi, -2.0):
            w, u = math.cos(angle / 2), math.sin(angle / 2) * axis / np.linalg.norm(axis)
            R = as_rotation([w, *u])
            (x, y, z), w = quaternion_of_matrix(R)
            np.testing.assert_allclose(as_rotation([w, x, y, z]), R, atol=1e-15)
