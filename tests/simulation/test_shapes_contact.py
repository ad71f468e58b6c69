"""Tests of contacts of shapes with each other and with the ground."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from featherweight.simulation.standins import spheres_of

pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start")

ShapeType = fw.ShapeType
DENSITY = 1000.0


def body(name: str, size: tuple[float, float, float]) -> fw.Body:
    mass = DENSITY * float(np.prod(size))
    x, y, z = (mass * s * s / 12.0 for s in size)
    return fw.Body(name, fw.Inertia(mass, rotational=(y + z, 0.0, 0.0, x + z, 0.0, x + y)))


def free_bodies(shapes: list[fw.Shape], size: tuple[float, float, float] = (0.1, 0.1, 0.1)) -> fw.Robot:
    names = list(dict.fromkeys(s.body for s in shapes if s.body and s.body != "world"))
    joints = [fw.Joint(f"{n}_joint", fw.JointType.FLOATING, "world", n) for n in names]
    return fw.build(fw.describe([body(n, size) for n in names], joints, shapes=shapes))


def at(robot: fw.Robot, positions: list[tuple[float, float, float]]) -> np.ndarray:
    q = robot.neutral()
    for k, p in enumerate(positions):
        q[7 * k : 7 * k + 3] = p
    return q


def test_ten_boxes_in_a_stack_stay_and_each_carries_those_above() -> None:
    """Check that gaps of 20 µm close; then nothing moves (1e-6 m would show the creep of a solver with residuals)."""
    n, rng = 10, np.random.default_rng(0)
    robot = free_bodies([fw.Shape(f"box-{i}", f"b{i}", ShapeType.BOX, (0.1, 0.1, 0.1)) for i in range(n)])
    shifts = 0.01 * rng.uniform(-1.0, 1.0, (n, 2))
    q = at(robot, [(*shifts[i], 0.05 + 0.1 * i + 2e-5 * (i + 1)) for i in range(n)])
    sim = fw.Simulation(robot, 2e-3, q=q, shapes=True, ground=fw.Plane())
    sim.run(0.1)
    settled = sim.q.copy()
    sim.run(0.5)
    np.testing.assert_allclose(sim.q, settled, atol=1e-6)
    _, forces, names = sim.contacts()
    carried: Counter[str] = Counter()
    for name, force in zip(names, forces, strict=True):
        carried[name if "and" in name else "ground"] += abs(force[2])
    weights = sorted(carried.values(), reverse=True)
    np.testing.assert_allclose(weights, 9.81 * np.arange(n, 0, -1), rtol=1e-6)


@pytest.mark.parametrize(
    ("type", "size", "height"),
    [
        (ShapeType.CYLINDER, (0.05, 0.1), 0.05),
        (ShapeType.CAPSULE, (0.03, 0.1), 0.08),
        (ShapeType.ELLIPSOID, (0.08, 0.07, 0.05), 0.05),
        (ShapeType.SPHERE, (0.06,), 0.06),
    ],
)
def test_a_round_body_falls_onto_the_plane_and_rests_on_its_lowest_point(
    type: fw.ShapeType, size: tuple[float, ...], height: float
) -> None:
    """Check to 20 µm."""
    robot = free_bodies([fw.Shape("s", "b", type, size)])
    sim = fw.Simulation(robot, 1e-3, q=at(robot, [(0.0, 0.0, height + 0.01)]), shapes=True, ground=fw.Plane())
    sim.run(0.3)
    assert sim.q[2] == pytest.approx(height, abs=2e-5)
    assert abs(sim.v[2]) < 1e-3
    assert sim.contacts()[1].sum(axis=0)[2] == pytest.approx(9.81, rel=1e-2)


def test_a_mesh_is_taken_for_its_convex_hull() -> None:
    """Check a tetrahedron, given by its corners: its centroid rests a quarter of its height above the ground."""
    corners = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]) * 0.05
    down = np.array([1.0, 1.0, 1.0]) / np.sqrt(3.0)  # direction of a corner; the opposite face is the base
    axis = np.cross(down, [0.0, 0.0, 1.0])
    K = np.array([[0.0, 0.0, axis[1]], [0.0, 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    R = np.eye(3) + K + K @ K / (1.0 + down[2])
    shape = fw.Shape("t", "b", ShapeType.MESH, (1.0, 1.0, 1.0), vertices=corners @ R.T)
    height = 0.05 / np.sqrt(3.0)  # height of the centroid above the base
    robot = free_bodies([shape])
    sim = fw.Simulation(robot, 1e-3, q=at(robot, [(0.0, 0.0, height + 1e-3)]), shapes=True, ground=fw.Plane())
    sim.run(0.2)
    assert sim.q[2] == pytest.approx(height, abs=2e-5)


FLAT = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.1, 0.1, 0.0], [0.0, 0.1, 0.0]])
FACES = np.array([[0, 1, 2], [0, 2, 3]])


@pytest.mark.parametrize(
    ("vertices", "faces"), [(FLAT, FACES), (FLAT, None), (FLAT[:3], FACES[:1]), (FLAT[:3] @ np.eye(3)[[1, 2, 0]], None)]
)
def test_a_flat_mesh_is_refused_with_its_name(vertices: np.ndarray, faces: np.ndarray | None) -> None:
    robot = free_bodies([fw.Shape("sheet", "b", ShapeType.MESH, (1.0, 1.0, 1.0), vertices=vertices, faces=faces)])
    with pytest.raises(ValueError, match=r"the mesh 'sheet' on 'b' is flat.*give it thickness"):
        fw.Simulation(robot, shapes=True, ground=fw.Plane())


def test_a_flat_mesh_is_refused_with_its_file(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    file = tmp_path / "sheet.stl"
    trimesh.Trimesh(FLAT, FACES).export(file)
    robot = free_bodies([fw.Shape("sheet", "b", ShapeType.MESH, (1.0, 1.0, 1.0), path=str(file))])
    with pytest.raises(ValueError, match=r"the mesh 'sheet' \(.*sheet\.stl\) on 'b' is flat"):
        fw.Simulation(robot, shapes=True, ground=fw.Plane())


def test_shapes_of_the_world_are_obstacles() -> None:
    table = fw.Shape("table", "world", ShapeType.BOX, (1.0, 1.0, 0.2), fw.Pose(p=(0.0, 0.0, 0.1)))
    robot = free_bodies([fw.Shape("s", "b", ShapeType.BOX, (0.1, 0.1, 0.1)), table])
    sim = fw.Simulation(robot, 1e-3, q=at(robot, [(0.0, 0.0, 0.26)]), shapes=True)
    sim.run(0.3)
    assert sim.q[2] == pytest.approx(0.25, abs=2e-5)


def test_bodies_that_overlap_at_first_are_parted() -> None:
    """Check that each body moves half of the way, while both fall."""
    shapes = [fw.Shape("a", "a", ShapeType.BOX, (0.1, 0.1, 0.1)), fw.Shape("b", "b", ShapeType.BOX, (0.1, 0.1, 0.1))]
    robot = free_bodies(shapes)
    sim = fw.Simulation(robot, 1e-3, q=at(robot, [(0.0, 0.0, 0.0), (0.05, 0.0, 0.0)]), shapes=True)
    sim.run(0.06)
    np.testing.assert_allclose(sim.v[[2, 8]], -9.81 * 0.06, rtol=1e-9)
    np.testing.assert_allclose(sim.q[[0, 7]], [-0.025, 0.075], atol=1e-5)


def test_points_and_spheres_stand_for_shapes_exactly() -> None:
    """Check that the extent of the stand-ins equals that of the shape in random directions; points on round shapes have
    less.
    """
    turned = fw.Pose(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)), (0.1, 0.2, 0.3))
    shapes = [
        fw.Shape("box", "a", ShapeType.BOX, (0.2, 0.4, 0.6), turned),
        fw.Shape("capsule", "b", ShapeType.CAPSULE, (0.1, 0.4), turned),
        fw.Shape("sphere", "c", ShapeType.SPHERE, (0.25,), turned),
    ]
    spheres = spheres_of(free_bodies(shapes))
    d = np.random.default_rng(1).normal(size=(50, 3))
    d /= np.linalg.norm(d, axis=1)[:, None]
    R, p = np.array(turned.R), np.array(turned.p)
    local = d @ R
    reach = {
        "a": np.abs(local) @ [0.1, 0.2, 0.3],
        "b": 0.1 + 0.2 * np.abs(local[:, 2]),
        "c": np.full(50, 0.25),
    }
    for name, expected in reach.items():
        mine = [s for s in spheres if s.frame == name]
        found = np.max([d @ np.array(s.center) + s.radius for s in mine], axis=0)
        np.testing.assert_allclose(found, expected + d @ p, atol=1e-12)


def test_a_robot_without_shapes_stands_on_the_boxes_of_its_inertias() -> None:
    robot = fw.build(fw.describe([body("b", (0.2, 0.3, 0.4))], [fw.Joint("j", fw.JointType.FLOATING, "world", "b")]))
    corners = np.array([s.center for s in spheres_of(robot)])
    np.testing.assert_allclose(np.abs(corners), np.broadcast_to([0.1, 0.15, 0.2], (8, 3)), atol=1e-12)


def test_stand_ins_need_neither_trimesh_nor_viser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a mesh that cannot be read without them: the box of its body's inertia replaces it."""
    for name in [
        m for m in sys.modules if m.startswith(("trimesh", "viser", "featherweight.viewer", "featherweight.model.tri"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("trimesh", "viser"):
        monkeypatch.setitem(sys.modules, name, None)
    mesh = fw.Shape("m", "b", ShapeType.MESH, (1.0, 1.0, 1.0), path="nowhere.stl")
    with pytest.warns(fw.ModelWarning, match="boxes replace meshes that cannot be read, of the bodies b: .*needs trimesh"):
        corners = np.array([s.center for s in spheres_of(free_bodies([mesh], (0.2, 0.3, 0.4)))])
    np.testing.assert_allclose(np.abs(corners), np.broadcast_to([0.1, 0.15, 0.2], (8, 3)), atol=1e-12)
