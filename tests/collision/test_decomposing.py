"""Tests of convex decomposition: a ball stays in a cup, the parts fill the mesh, and all formats have them."""

from __future__ import annotations

import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull

import featherweight as fw
from featherweight import Decomposition, ModelError
from featherweight.array_types import Array
from featherweight.collision import coacd_process
from featherweight.collision.decomposing import DECOMPOSED

HEIGHT, FLOOR, BALL = 0.1, 0.02, 0.015  # [m] of a square cup, and a ball's radius
QUICK = Decomposition(iterations=20)


def cup() -> trimesh.Trimesh:
    """Return a square cup: 80 mm wide, with walls and a floor of 20 mm. Its parts are boxes."""
    outer = trimesh.creation.box((0.08, 0.08, HEIGHT))
    corners = outer.vertices.copy()
    corners[:, :2] *= 0.5
    corners[:, 2] = np.where(corners[:, 2] > 0.0, HEIGHT / 2, FLOOR - HEIGHT / 2)
    on_top = (outer.vertices[outer.faces][:, :, 2] > 0.0).all(axis=1)
    walls = np.asarray(outer.faces)[~on_top]
    inside = walls[:, ::-1] + 8
    top = [k for k in range(8) if outer.vertices[k, 2] > 0.0]
    ring = sorted(top, key=lambda k: np.arctan2(*outer.vertices[k, [1, 0]]))
    rim = [t for a, b in zip(ring, ring[1:] + ring[:1], strict=True) for t in ([a, b, b + 8], [a, b + 8, a + 8])]
    mesh = trimesh.Trimesh(np.vstack([outer.vertices, corners]), np.vstack([walls, inside, rim]), process=False)
    mesh.apply_translation((0.0, 0.0, HEIGHT / 2))
    assert mesh.is_watertight
    return mesh


CUP = cup()
VOLUME = 0.08 * 0.08 * HEIGHT - 0.04 * 0.04 * (HEIGHT - FLOOR)
MJCF = f"""<mujoco><asset><mesh name="cup" vertex="{" ".join(map(str, CUP.vertices.ravel()))}"
face="{" ".join(map(str, CUP.faces.ravel()))}"/></asset>
<worldbody><geom name="cup" type="mesh" mesh="cup"/>
<body name="ball" pos="0.003 0 0.15"><freejoint/>
<geom name="ball" size="{BALL}" mass="0.03"/></body></worldbody>{{rest}}</mujoco>"""


def hulls(shapes: Any) -> list[ConvexHull]:
    return [ConvexHull(s.vertices) for s in shapes if s.part_of is not None]


def height_of_ball(robot: fw.Robot) -> float:
    """Return the height at which a ball comes to rest that falls into the cup."""
    sim = fw.Simulation(robot, dt=2e-3)
    sim.run(0.6)
    return float(sim.q[2])


def test_a_ball_stays_in_a_cup_and_lies_on_the_hull_without_decomposition() -> None:
    """Check heights to 1 mm: contacts of MJCF files yield."""
    text = MJCF.format(rest="")
    assert height_of_ball(fw.load(text)) == pytest.approx(HEIGHT + BALL, abs=1e-3)
    robot = fw.load(text, decompose=QUICK)
    assert height_of_ball(robot) == pytest.approx(FLOOR + BALL, abs=1e-3)
    parts = [s.name for s in robot.shapes if s.part_of == "cup"]
    assert robot.report()[DECOMPOSED] == f"cup ({len(parts)} parts)"


def test_parts_fill_the_mesh() -> None:
    """Check volumes to 2 %: parts of the cup are boxes but for cuts that miss a face by a little."""
    d = fw.read(MJCF.format(rest=""), decompose=QUICK)
    assert sum(h.volume for h in hulls(d.shapes)) == pytest.approx(VOLUME, rel=0.02)
    whole = next(s for s in d.shapes if s.name == "cup")
    assert whole.visual and not whole.collision and whole.faces is not None
    points = np.vstack([s.vertices for s in d.shapes if s.part_of])
    np.testing.assert_allclose([points.min(0), points.max(0)], CUP.bounds, atol=1e-3)


URDF = """<robot name="r"><link name="base"><collision name="cup"><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/>
<geometry><mesh filename="cup.stl" scale="1 2 -3"/></geometry></collision></link></robot>"""
SDF = """<sdf version="1.9"><model name="r"><link name="base"><collision name="cup"><pose>0.1 0.2 0.3 0.1 0.2 0.3</pose>
<geometry><mesh><uri>cup.stl</uri><scale>1 2 -3</scale></mesh></geometry></collision></link></model></sdf>"""


def usd() -> str:
    """Return a layer with the cup, scaled by (1, 2, 3), on a rigid body."""
    points = ", ".join(str(tuple(map(float, p))) for p in CUP.vertices * (1, 2, 3))
    counts, faces = ", ".join(["3"] * len(CUP.faces)), ", ".join(map(str, CUP.faces.ravel()))
    return f"""#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "base" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
{{
    float physics:mass = 1
    def Mesh "cup" (prepend apiSchemas = ["PhysicsCollisionAPI"])
    {{
        point3f[] points = [{points}]
        int[] faceVertexCounts = [{counts}]
        int[] faceVertexIndices = [{faces}]
    }}
}}
"""


@pytest.mark.parametrize(("suffix", "text"), [("urdf", URDF), ("sdf", SDF), ("usda", usd())])
def test_meshes_of_all_formats_are_decomposed_where_they_lie(suffix: str, text: str, tmp_path: Path) -> None:
    """Check that scaled, turned and mirrored meshes have parts that fill them. Triangles of STL files share no vertices."""
    CUP.export(tmp_path / "cup.stl")
    file = tmp_path / f"cup.{suffix}"
    file.write_text(text)
    d = fw.read(file, decompose=QUICK)
    assert sum(h.volume for h in hulls(d.shapes)) == pytest.approx(6.0 * VOLUME, rel=0.02)
    part = next(s for s in d.shapes if s.part_of is not None)
    whole = next(s for s in d.shapes if s.name == part.part_of)
    assert part.placement == whole.placement
    assert part.collision and not part.visual and not whole.collision


def test_contact_pairs_and_sensors_of_a_mesh_are_those_of_its_parts() -> None:
    rest = """<contact><pair geom1="cup" geom2="ball"/></contact>
    <sensor><distance name="d" geom1="cup" geom2="ball" cutoff="1"/></sensor>"""
    d = fw.read(MJCF.format(rest=rest), decompose=QUICK)
    parts = [s.name for s in d.shapes if s.part_of == "cup"]
    assert [pair.shapes for pair in d.contact_pairs] == [(name, "ball") for name in parts]
    sim = fw.Simulation(fw.build(d), q=[0.0, 0.0, FLOOR + BALL + 0.002, 0.0, 0.0, 0.0, 1.0])
    assert sim.sensors()["d"] == pytest.approx(2e-3, abs=1e-4)  # to the floor inside
    assert fw.build(d.renamed({"cup": "mug"})).sensors


def test_convex_flat_and_missing_meshes_remain(tmp_path: Path) -> None:
    box = trimesh.creation.box((0.1, 0.2, 0.3))
    flat = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    shapes = [
        fw.Shape("box", None, "mesh", (1, 1, 1), vertices=box.vertices, faces=box.faces),
        fw.Shape("flat", None, "mesh", (1, 1, 1), vertices=flat, faces=[[0, 1, 2]]),
        fw.Shape("missing", None, "mesh", (1, 1, 1), path=str(tmp_path / "none.stl")),
    ]
    assert fw.describe([], [], shapes=shapes).decomposed().shapes == tuple(shapes)


def test_only_the_named_bodies_and_as_many_parts_as_asked() -> None:
    d = fw.read(MJCF.format(rest=""))
    assert d.decomposed(Decomposition(bodies=["ball"])) == d
    few = d.decomposed(Decomposition(most_parts=3, most_corners=8, iterations=20))
    parts = [s for s in few.shapes if s.part_of]
    assert 2 <= len(parts) <= 3
    assert max(len(s.vertices) for s in parts) <= 8
    with pytest.raises(ModelError, match="no body 'bal'"):
        d.decomposed(Decomposition(bodies=["bal"]))


def test_a_second_time_the_parts_are_read_from_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    d = fw.read(MJCF.format(rest=""))
    first = d.decomposed(QUICK)

    def never(*_: object, **__: object) -> Any:
        raise AssertionError("it is computed again")

    monkeypatch.setattr(subprocess, "run", never)
    again = d.decomposed(QUICK)
    assert [s.name for s in again.shapes] == [s.name for s in first.shapes]
    assert all(np.array_equal(a.vertices, b.vertices) for a, b in zip(first.shapes, again.shapes, strict=True) if a.part_of)


def test_without_coacd_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    there = metadata.version

    def version(package: str) -> str:
        if package == "coacd":
            raise metadata.PackageNotFoundError(package)
        return there(package)

    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(ImportError, match=r"decomposing the mesh 'cup' needs coacd.*\[decomposition\]"):
        fw.load(MJCF.format(rest=""), decompose=True)


def test_a_mesh_that_ends_coacd_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Check a process that fails in place of CoACD's, whose failures depend on its version."""
    failing = tmp_path / "failing.py"
    failing.write_text("raise SystemExit('no good mesh')")
    monkeypatch.setattr(coacd_process, "__file__", str(failing))
    with pytest.raises(ModelError, match=r"the mesh 'cup' on .*CoACD cannot decompose it \(no good mesh\); repair"):
        fw.read(MJCF.format(rest=""), decompose=Decomposition(iterations=21))


@pytest.mark.parametrize(("key", "value"), [("threshold", 0.0), ("most_parts", 0), ("bodies", 3), ("iterations", 0)])
def test_options_are_checked(key: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=rf"Decomposition.*{key} must be"):
        Decomposition(**{key: value})


def test_saved_parts_are_those_of_mujoco(tmp_path: Path) -> None:
    d = fw.read(MJCF.format(rest=""), decompose=QUICK)
    d.save(tmp_path / "parts.xml")
    again = fw.read(tmp_path / "parts.xml")
    volume: Array = np.array([ConvexHull(s.vertices).volume for s in again.shapes if s.collision and s.vertices is not None])
    assert volume.sum() == pytest.approx(sum(h.volume for h in hulls(d.shapes)), rel=1e-6)
