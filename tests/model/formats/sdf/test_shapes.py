"""Tests of shapes of SDF files: visuals and collisions of links, errors, and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight import Description, ModelError, ShapeType
from featherweight.model.contact_rules import TWO_FRICTIONS
from featherweight.model.formats.registry import load_description


def read(inside: str, **options: Any) -> Description:
    return load_description(f'<sdf version="1.11"><model name="m"><link name="a">{inside}</link></model></sdf>', **options)


def collision(geometry: str, more: str = "", name: str = "c") -> str:
    return f'<collision name="{name}"><geometry>{geometry}</geometry>{more}</collision>'


SPHERE = "<sphere><radius>0.5</radius></sphere>"
READ = {
    "<box><size>1 2 3</size></box>": (ShapeType.BOX, (1, 2, 3)),
    SPHERE: (ShapeType.SPHERE, (0.5,)),
    "<cylinder><radius>0.5</radius><length>2</length></cylinder>": (ShapeType.CYLINDER, (0.5, 2)),
    "<capsule><radius>0.5</radius><length>2</length></capsule>": (ShapeType.CAPSULE, (0.5, 2)),
    "<ellipsoid><radii>1 2 3</radii></ellipsoid>": (ShapeType.ELLIPSOID, (1, 2, 3)),
    "<plane><size>1 1</size></plane>": (ShapeType.PLANE, ()),
    "<mesh><uri>m.stl</uri><scale>1 -2 3</scale></mesh>": (ShapeType.MESH, (1, -2, 3)),
}


@pytest.mark.parametrize(("geometry", "expected"), READ.items())
def test_geometries_are_read(geometry: str, expected: tuple[ShapeType, tuple[float, ...]]) -> None:
    (shape,) = read(collision(geometry, "<pose>1 2 3 0 0 0</pose>")).shapes
    assert (shape.type, shape.size) == expected
    assert (shape.name, shape.body, shape.placement.p, shape.visual, shape.collision) == ("c", "a", (1, 2, 3), False, True)


def test_names_are_those_of_the_file_or_made_up() -> None:
    shapes = read(
        collision(SPHERE) + collision(SPHERE) + collision(SPHERE, name="") + f"<visual><geometry>{SPHERE}</geometry></visual>"
    )
    assert [s.name for s in shapes.shapes] == ["c", "c_2", "a_collision", "a_visual"]


def test_a_plane_lies_across_its_normal() -> None:
    (shape,) = read(collision("<plane><normal>0 3 0</normal></plane>")).shapes
    np.testing.assert_allclose(np.array(shape.placement.R)[:, 2], [0, 1, 0], atol=1e-16)


def test_a_cone_is_a_pyramid_and_is_listed_so() -> None:
    d = read(collision("<cone><radius>0.5</radius><length>2</length></cone>"))
    (shape,) = d.shapes
    assert dict(d.unused) == {"cones, as pyramids of 32 sides": "1"} and shape.type is ShapeType.MESH
    corners = shape.vertices[shape.faces]
    volume = np.einsum("ki,ki->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6
    assert volume == pytest.approx(np.pi * 0.25 * 2 / 3, rel=0.01)  # faces point outward; the pyramid lies within the cone
    assert (shape.vertices[:, 2].min(), shape.vertices[:, 2].max()) == (-1, 1)


def test_a_pose_may_be_in_another_frame() -> None:
    text = f"""<sdf version="1.9"><model name="m"><link name="a"><pose>1 0 0 0 0 0</pose>
    {collision(SPHERE, '<pose relative_to="__model__">0 0 1 0 0 0</pose>')}</link></model></sdf>"""
    assert load_description(text).shapes[0].placement.p == (-1, 0, 1)


@pytest.mark.parametrize(
    ("material", "color"),
    [
        ("<material><diffuse>1 0.5 0 0.5</diffuse><ambient>0 0 0 1</ambient></material>", (1, 0.5, 0, 0.5)),
        ("<material><ambient>0.1 0.2 0.3 1</ambient></material>", (0.1, 0.2, 0.3, 1)),
        ("<material><diffuse>1 0.5 0</diffuse></material><transparency>0.25</transparency>", (1, 0.5, 0, 0.75)),
        ("<material><specular>1 1 1 1</specular></material>", None),
        ("", None),
    ],
)
def test_colors_are_those_of_the_material(material: str, color: tuple[float, ...] | None) -> None:
    assert read(f'<visual name="v"><geometry>{SPHERE}</geometry>{material}</visual>').shapes[0].color == color


def surface(inside: str) -> str:
    return f"<surface>{inside}</surface>"


def test_friction_is_that_of_ode() -> None:
    def friction(inside: str) -> Description:
        return read(collision(SPHERE, surface(f"<friction>{inside}</friction>")))

    assert read(collision(SPHERE)).shapes[0].friction is None
    d = friction("<ode><mu>0.7</mu><mu2>0.7</mu2></ode>")
    assert d.shapes[0].friction == 0.7 and d.unused == ()
    d = friction("<ode><mu>0.7</mu><mu2>0.5</mu2><fdir1>1 0 0</fdir1></ode><torsional><coefficient>1</coefficient></torsional>")
    assert d.shapes[0].friction == 0.7
    told = {"friction against spinning": "1", TWO_FRICTIONS: "1", "elements that are not used": "ode/fdir1 (1)"}
    assert dict(d.unused) == told


def test_bits_say_who_touches_whom() -> None:
    def bits(inside: str) -> tuple[int, int, bool]:
        shape = read(collision(SPHERE, surface(f"<contact>{inside}</contact>"))).shapes[0]
        return shape.contype, shape.conaffinity, shape.collision

    assert bits("") == (65535, 65535, True)
    assert bits("<collide_bitmask>0x02</collide_bitmask>") == (2, 2, True)
    assert bits("<collide_bitmask>2</collide_bitmask><category_bitmask>4</category_bitmask>") == (4, 2, True)
    assert bits("<collide_without_contact>true</collide_without_contact>") == (65535, 65535, False)


def test_what_is_not_read_is_listed() -> None:
    inside = (
        collision("<heightmap><uri>h.png</uri></heightmap>")
        + collision("<polyline><point>0 0</point></polyline><polyline/>")
        + collision("<empty/>")
        + '<visual name="v"/>'
        + collision("<mesh><uri>m.stl</uri><submesh><name>s</name></submesh></mesh>")
        + f'<visual name="w"><geometry>{SPHERE}</geometry><material><script><name>x</name></script></material></visual>'
        + collision(SPHERE, surface("<bounce><restitution_coefficient>0.5</restitution_coefficient></bounce>"))
    )
    d = read(inside)
    assert [s.type for s in d.shapes] == [ShapeType.MESH, ShapeType.SPHERE, ShapeType.SPHERE]
    assert dict(d.unused) == {
        "meshes not found": "1, the first is 'm.stl'; the name is relative, but the text has no folder: pass folder=",
        "geometries that are not read (heightmap)": "1",
        "geometries that are not read (polyline)": "1",
        "visuals and collisions without geometry": "1",
        "submeshes, in place of which the whole mesh is taken": "1",
        "textures": "1",
        "elements that are not used": "surface/bounce (1)",
    }


REFUSED = {
    "two geometries": (collision(SPHERE + "<box><size>1 1 1</size></box>"), ["collision 'c'", "<sphere> and <box>"]),
    "no radius": (collision("<sphere/>"), ["collision 'c'", "'radius'"]),
    "negative radius": (collision("<sphere><radius>-1</radius></sphere>"), ["radius of its <sphere> is negative"]),
    "flat box": (collision("<box><size>1 0 1</size></box>"), ["size of its <box> must be positive"]),
    "flat ellipsoid": (collision("<ellipsoid><radii>1 0 1</radii></ellipsoid>"), ["size of its <ellipsoid> must be positive"]),
    "flat cone": (collision("<cone><radius>1</radius><length>0</length></cone>"), ["size of its <cone> must be positive"]),
    "zero normal": (collision("<plane><normal>0 0 0</normal></plane>"), ["normal of its plane is zero"]),
    "zero scale": (collision("<mesh><uri>m</uri><scale>1 0 1</scale></mesh>"), ["scale of its mesh has a zero"]),
    "mesh without file": (collision("<mesh/>"), ["<mesh> has no <uri>"]),
    "negative friction": (
        collision(SPHERE, surface("<friction><ode><mu>-1</mu></ode></friction>")),
        ["link 'a': collision 'c'", "friction is negative"],
    ),
    "no bits": (collision(SPHERE, surface("<contact><collide_bitmask>x</collide_bitmask></contact>")), ["bitmask is 'x'"]),
}  # fmt: skip


@pytest.mark.parametrize(("inside", "words"), REFUSED.values(), ids=REFUSED)
def test_damaged_shapes_are_named(inside: str, words: Sequence[str]) -> None:
    with pytest.raises(ModelError) as caught:
        read(inside, unsupported="raise")
    for word in ["<string>", *words]:
        assert word in str(caught.value)
    d = read(inside)
    assert any(words[-1] in said for said in dict(d.unused).values())


def test_a_ball_rests_on_the_ground_of_its_world() -> None:
    ground = f'<model name="g"><static>1</static><link name="l">{collision("<plane/>")}</link></model>'
    ball = f'<model name="b"><pose>0 0 1 0 0 0</pose><link name="l">{collision(SPHERE)}</link></model>'
    robot = fw.load(f'<sdf version="1.9"><world name="w">{ground}{ball}</world></sdf>', execution="interpreted")
    assert [pair.links for pair in robot.collision_pairs()] == [("g::l", "l")]
