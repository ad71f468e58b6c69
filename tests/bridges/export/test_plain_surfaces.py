"""Faces that stand for the shapes of bodies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from featherweight.exporting.plain_surfaces import PlainSurface, plain_surfaces

ROBOT = """<robot name="one"><link name="ground"/><link name="body"><inertial><mass value="1"/>
  <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>SHAPES</link>
  <joint name="turn" type="continuous"><parent link="ground"/><child link="body"/></joint></robot>"""
PLACED = '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><geometry>{}</geometry>'
BOX, MESH = '<box size="0.2 0.3 0.4"/>', '<mesh filename="none.stl"/>'
CYLINDER, SPHERE = '<cylinder radius="0.2" length="0.5"/>', '<sphere radius="0.3"/>'


def surfaces(folder: Path, visual: str, collision: str = "") -> list[PlainSurface]:
    texts = [f"<{kind}>{PLACED.format(g)}</{kind}>" for kind, g in (("visual", visual), ("collision", collision)) if g]
    path = folder / "one.urdf"
    path.write_text(ROBOT.replace("SHAPES", "".join(texts)))
    return plain_surfaces(fw.load(path))


def volume(s: PlainSurface) -> float:
    """By the divergence theorem: less than nothing if faces are seen from inside."""
    fans = [[f[0], f[k], f[k + 1]] for f in s.faces for k in range(1, len(f) - 1)]
    return float(np.linalg.det(s.vertices[np.array(fans)]).sum() / 6.0)


@pytest.mark.parametrize(("shape", "expected"), [(BOX, 0.024), (CYLINDER, np.pi * 0.02), (SPHERE, np.pi * 0.036)])
def test_faces_enclose_what_the_shape_does(tmp_path: Path, shape: str, expected: float) -> None:
    [s] = surfaces(tmp_path, shape)
    assert s.body == 0
    assert 0.9 * expected < volume(s) < 1.0001 * expected  # corners lie on what is round
    middle = (s.vertices.min(axis=0) + s.vertices.max(axis=0)) / 2
    np.testing.assert_allclose(middle, [1, 2, 3], atol=0.02)


def test_a_mesh_gives_way_to_plain_shapes_that_collide_and_these_to_the_box_of_the_inertia(tmp_path: Path) -> None:
    [s] = surfaces(tmp_path, MESH, BOX)
    assert np.isclose(volume(s), 0.024)
    [s] = surfaces(tmp_path, MESH)
    assert np.isclose(volume(s), 0.6**1.5)  # a cube of side a has m a^2 / 6


MJCF = """<mujoco><worldbody><body name="body"><joint type="ball"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  {}</body></worldbody></mujoco>"""


def of_geom(folder: Path, geom: str) -> PlainSurface:
    path = folder / "one.xml"
    path.write_text(MJCF.format(geom))
    [s] = plain_surfaces(fw.load(path))
    return s


def test_an_ellipsoid_has_its_three_half_axes(tmp_path: Path) -> None:
    s = of_geom(tmp_path, '<geom type="ellipsoid" size="0.1 0.2 0.3" pos="1 2 3" axisangle="0 0 1 90" rgba="1 0 0.2 1"/>')
    assert s.body == 0 and s.color == (255, 0, 51)
    own = (s.vertices - [1, 2, 3])[:, [1, 0, 2]]  # turned by a right angle about z
    np.testing.assert_allclose(np.linalg.norm(own / [0.1, 0.2, 0.3], axis=1), 1.0, rtol=1e-9)
    expected = 4 / 3 * np.pi * 0.1 * 0.2 * 0.3
    assert 0.9 * expected < volume(s) < expected
    np.testing.assert_allclose(abs(own).max(axis=0), [0.1, 0.2, 0.3], rtol=0.03)


@pytest.mark.parametrize("length", [0.5, 1e-3])
def test_a_capsule_is_a_cylinder_between_two_half_spheres(tmp_path: Path, length: float) -> None:
    """From one point to another; a short one is a sphere."""
    s = of_geom(tmp_path, f'<geom type="capsule" size="0.1" fromto="1 2 3 {1 + length} 2 3"/>')
    along = np.clip(s.vertices[:, 0], 1, 1 + length)
    ends = np.stack([along, np.full_like(along, 2), np.full_like(along, 3)], axis=1)
    np.testing.assert_allclose(np.linalg.norm(s.vertices - ends, axis=1), 0.1, rtol=1e-6)
    expected = np.pi * 0.01 * length + 4 / 3 * np.pi * 0.001
    assert 0.9 * expected < volume(s) < expected
    np.testing.assert_allclose(s.vertices[:, 0].min(), 0.9, atol=1e-9)
    np.testing.assert_allclose(s.vertices[:, 0].max(), 1.1 + length, atol=1e-9)
