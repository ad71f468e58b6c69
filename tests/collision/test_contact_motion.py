"""Tests of the motion of contact points and normals against central differences of detection."""

from __future__ import annotations

import itertools
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.collision.collision_scene import PLANE, collision_work
from featherweight.collision.contact_motion import RATES, surfaces_work, write_contact_motion
from featherweight.collision.detection import ContactPoints, find_contacts
from featherweight.contact.contact_problem import write_axes
from oracles.states import Array

CORNERS = " ".join(f"{x:.4f}" for x in (np.random.default_rng(5).standard_normal((14, 3)) * [0.1, 0.12, 0.09]).ravel())
SHAPES = {
    "sphere": 'type="sphere" size=".1"',
    "capsule": 'type="capsule" size=".06 .12"',
    "box": 'type="box" size=".1 .12 .15"',
    "cylinder": 'type="cylinder" size=".1 .12"',
    "ellipsoid": 'type="ellipsoid" size=".1 .14 .18"',
    "mesh": 'type="mesh" mesh="hull"',
    "brick": 'type="mesh" mesh="brick"',
    "plane": 'type="plane" size="0 0 1"',
    "heights": 'type="hfield" hfield="hills"',
}
HILLS = '<hfield name="hills" nrow="3" ncol="3" size="1 1 .3 .1" elevation="0 .2 0 .5 1 .4 0 .3 .1"/>'
STEP = 1e-6
MOVES = 12  # velocities of both bodies, six of each
GROUND = ("plane", "heights")

Found = tuple[int, ContactPoints, Array]


def scene_of(a: str, b: str) -> fw.Simulation:
    ground = f"<geom {SHAPES[b]}/>" if b in GROUND else f'<body name="b"><freejoint/><geom {SHAPES[b]}/></body>'
    brick = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.12, 0.12) for z in (-0.15, 0.15))
    assets = f'<asset><mesh name="hull" vertex="{CORNERS}"/><mesh name="brick" vertex="{brick}"/>{HILLS}</asset>'
    body = f'<body name="a"><freejoint/><geom {SHAPES[a]}/></body>'
    return fw.Simulation(fw.load(f"<mujoco>{assets}<worldbody>{ground}{body}</worldbody></mujoco>"), contact="file")


def detected(sim: fw.Simulation, T: Array) -> Found:
    """Return the contacts of bodies with placements T, points midway between the surfaces, and placements of shapes."""
    stage, room = sim._plant.contacts, 64
    work = collision_work(stage.scene)
    candidate, a, b = (np.zeros(room, np.int64) for _ in range(3))
    contacts = ContactPoints(candidate, a, b, np.zeros((room, 3)), np.zeros((room, 3)), np.zeros(room))
    count = find_contacts(stage.scene, T, np.zeros((len(T), 6)), 1e-3, 1e-3, contacts, work)
    for c in range(count):
        if stage.scene.kind[stage.scene.pair[stage.touching.pairs[contacts.candidate[c]], 1]] >= PLANE:
            contacts.point[c] += 0.5 * contacts.gap[c] * contacts.normal[c]
    return count, contacts, work.placement


def moved(T: Array, twist: Array) -> Array:
    """Return a placement moved by a small velocity: linear at the world's origin, and angular."""
    D = np.eye(4)
    D[:3, :3], D[:3, 3] = Rotation.from_rotvec(twist[3:]).as_matrix(), twist[:3]
    result: Array = D @ T
    return result


def placed_at(sim: fw.Simulation, rng: np.random.Generator, gap: float) -> Array:
    """Return placements at random rotations with this least gap."""
    grounded = len(sim._plant.contacts.bodies) == 1
    T = np.tile(np.eye(4), (1 if grounded else 2, 1, 1))
    for one in T:
        one[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    way = np.array([0.03, 0.02, 1.0]) if grounded else rng.standard_normal(3)
    aside = np.array([*rng.uniform(-0.8, 0.8, 2), 0.0]) * grounded
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        T[-1, :3, 3] = aside + middle * way / np.linalg.norm(way)
        count, contacts, _ = detected(sim, T)
        apart = not count or contacts.gap[:count].min() > gap
        low, high = (low, middle) if apart else (middle, high)
    T[-1, :3, 3] = aside + low * way / np.linalg.norm(way)
    return T


def rates_of(sim: fw.Simulation, T: Array, found: Found, c: int) -> tuple[Array, bool]:
    """Return the rates (12, 7) of normal, point and gap for unit velocities of both bodies, and whether they are unique."""
    _, contacts, shapes_at = found
    stage, x, n = sim._plant.contacts, contacts.point[c], contacts.normal[c]
    a, b = stage.scene.pair[stage.touching.pairs[contacts.candidate[c]]]
    work, relative, motion = surfaces_work(), np.zeros((RATES, 6)), np.zeros((MOVES, 7))
    write_axes(n, work.axes)
    axes = work.axes
    unique = write_contact_motion(stage.scene, (a, b), shapes_at, x, (contacts.gap[c], 0.0), False, work, relative)
    for k in range(MOVES):
        sign, (v, w) = (1.0, -1.0)[k // 6], np.split(np.eye(6)[k % 6], 2)
        moved = v + np.cross(w, x)
        rates = relative @ (sign * np.concatenate([axes @ moved, axes @ w]))
        turned, carried = (0.0 * x, 0.0 * x) if k < 6 else (np.cross(w, n), moved)
        motion[k] = *(turned + rates[:2] @ axes[1:]), *(carried + rates[2:5] @ axes), rates[5]
    return motion, unique


def differences(sim: fw.Simulation, T: Array, found: Found, c: int) -> dict[int, Array]:
    """Return the same rates of bodies that move by differences."""
    _, contacts, _ = found
    rates: dict[int, Array] = {}
    for k in range(MOVES):
        body = (contacts.a[c], contacts.b[c])[k // 6]
        if body < 0:
            continue
        ends = []
        for sign in (1.0, -1.0):
            there = T.copy()
            there[body] = moved(T[body], sign * STEP * np.eye(6)[k % 6])
            count, after, _ = detected(sim, there)
            same = [i for i in range(count) if after.candidate[i] == contacts.candidate[c]]
            nearest = min(same, key=lambda i: float(np.linalg.norm(after.point[i] - contacts.point[c])))
            ends.append(np.concatenate([after.normal[nearest], after.point[nearest], after.gap[nearest : nearest + 1]]))
        rates[k] = (ends[0] - ends[1]) / (2.0 * STEP)
    return rates


def pairs() -> list[Any]:
    moving = [s for s in SHAPES if s not in (*GROUND, "brick")]
    return [*itertools.combinations_with_replacement(moving, 2), *itertools.product(moving, ["plane"]), ("sphere", "heights")]


@pytest.mark.parametrize(("a", "b"), pairs(), ids=lambda x: str(x))
def test_contacts_move_as_differences_of_detection_say(a: str, b: str) -> None:
    sim, rng = scene_of(a, b), np.random.default_rng(3)
    errors = []
    for _ in range(4):
        T = placed_at(sim, rng, -1e-3)
        found = detected(sim, T)
        for c in range(found[0]):
            motion, unique = rates_of(sim, T, found, c)
            if unique and found[1].gap[c] < 0.0:
                for k, expected in differences(sim, T, found, c).items():
                    errors.append(np.abs(motion[k] - expected).max() / max(1.0, np.abs(expected).max()))
    assert errors
    assert np.quantile(errors, 0.9) < 1e-6
    if "mesh" not in (a, b):  # several points of MuJoCo for two meshes jump
        assert max(errors) < 1e-6


def test_ellipsoids_move_as_their_closest_points() -> None:
    """Compare with the root of the equation that the line between the points of a common normal is along this normal."""
    sim, rng = scene_of("ellipsoid", "ellipsoid"), np.random.default_rng(4)
    radii = np.array([0.1, 0.14, 0.18])

    def point(T: Array, m: Array) -> Array:
        local = radii * (T[:3, :3].T @ m)
        found: Array = T[:3, :3] @ (radii * local / np.linalg.norm(local)) + T[:3, 3]
        return found

    def contact(T: Array, n: Array) -> Array:
        for _ in range(50):
            across = np.linalg.svd(n[None])[2][1:]

            def aside(x: Array, across: Array = across, n: Array = n) -> Array:
                m = (n + x @ across) / np.linalg.norm(n + x @ across)
                gap: Array = point(T[1], -m) - point(T[0], m)
                return np.array([across[0] @ gap - (m @ gap) * (across[0] @ m), across[1] @ gap - (m @ gap) * (across[1] @ m)])

            J = np.stack([(aside(e) - aside(-e)) / 2e-6 for e in 1e-6 * np.eye(2)], axis=1)
            step = -np.linalg.solve(J, aside(np.zeros(2)))
            n = (n + step @ across) / np.linalg.norm(n + step @ across)
        a, b = point(T[1], -n), point(T[0], n)
        return np.concatenate([n, 0.5 * (a + b), [n @ (a - b)]])

    for _ in range(10):
        T = placed_at(sim, rng, -1e-3)
        found = detected(sim, T)
        assert found[0] == 1
        first, second = int(found[1].b[0]), int(found[1].a[0])
        start = contact(T[[first, second]], found[1].normal[0])
        np.testing.assert_allclose(start[:3], found[1].normal[0], rtol=0.0, atol=1e-4)
        found[1].normal[0], found[1].point[0], found[1].gap[0] = start[:3], start[3:6], start[6]
        motion, unique = rates_of(sim, T, found, 0)
        assert unique
        for k in range(MOVES):
            ends = []
            for sign in (1.0, -1.0):
                there = T.copy()
                body = (second, first)[k // 6]
                there[body] = moved(T[body], sign * 1e-5 * np.eye(6)[k % 6])
                ends.append(contact(there[[first, second]], start[:3]))
            np.testing.assert_allclose(motion[k], (ends[0] - ends[1]) / 2e-5, rtol=0.0, atol=1e-6)


def test_a_box_lying_on_a_box_slides_over_edges_of_both() -> None:
    """Check corners, and crossings of an edge of each, of two boxes with parallel faces, turned about their normal."""
    sim = scene_of("box", "box")
    T = np.tile(np.eye(4), (2, 1, 1))
    T[-1, :3, :3], T[-1, :3, 3] = Rotation.from_rotvec([0.0, 0.0, 0.5]).as_matrix(), (0.05, 0.03, 0.299)
    found = detected(sim, T)
    assert found[0] >= 4
    for c in range(found[0]):
        motion, unique = rates_of(sim, T, found, c)
        assert unique
        for k, expected in differences(sim, T, found, c).items():
            if k % 6 not in (3, 4):  # faces that tilt leave other points
                np.testing.assert_allclose(motion[k], expected, rtol=0.0, atol=1e-7)


@pytest.mark.parametrize(("a", "b"), [("capsule", "box"), ("box", "capsule")])
@pytest.mark.parametrize("turn", [[0.0, 1.6, 0.0], [0.05, 1.65, 0.1]])
def test_an_end_of_a_capsule_that_has_passed_through_a_face_moves_as_a_ball(a: str, b: str, turn: list[float]) -> None:
    """Check a capsule that pierces a box, in both orders of the bodies."""
    sim = scene_of(a, b)
    T = np.tile(np.eye(4), (2, 1, 1))
    capsule = sim._plant.contacts.bodies.index("a" if b == "box" else "b")
    T[capsule, :3, :3], T[capsule, :3, 3] = Rotation.from_rotvec(turn).as_matrix(), (0.01, 0.02, 0.03)
    compare(sim, T)


def test_corners_and_edges_of_meshes_move_over_faces_that_are_slightly_inclined() -> None:
    """Check two meshes with almost opposed faces, which MuJoCo clips along the normal that the contact does not have."""
    sim, rng = scene_of("brick", "brick"), np.random.default_rng(0)
    for trial in range(20):
        T = np.tile(np.eye(4), (2, 1, 1))
        turn = np.append(0.01 * rng.standard_normal(2), rng.uniform(-1.0, 1.0))
        T[trial % 2, :3, :3], T[-1, :3, 3] = Rotation.from_rotvec(turn).as_matrix(), (0.05, 0.03, 0.299)
        compare(sim, T)


def compare(sim: fw.Simulation, T: Array, most: float = 1e-6) -> None:
    """Check that the motion of all contacts is unique, and compare it with differences."""
    found = detected(sim, T)
    assert found[0] >= 1
    for c in np.flatnonzero(found[1].gap[: found[0]] < 0.0).tolist():
        motion, unique = rates_of(sim, T, found, c)
        assert unique
        for k, expected in differences(sim, T, found, c).items():
            np.testing.assert_allclose(motion[k], expected, rtol=0.0, atol=most)


@pytest.mark.parametrize(("a", "b"), [*itertools.product(["cylinder", "capsule"], ["brick", "cylinder"]), ("cylinder", "box")])
def test_lines_on_sides_that_are_slightly_inclined_to_a_face_move_with_the_normal(a: str, b: str) -> None:
    """Check MuJoCo's lines along a side that lies on a face: their ends, and where they leave the face."""
    sim, height = scene_of(a, b), {"brick": 0.15, "cylinder": 0.12, "box": 0.15}[b]
    side = sim._plant.contacts.bodies.index("a") if a != b else 1
    for tilt in (-0.01, -0.02):  # so that the deepest point is an end of the line
        T = np.tile(np.eye(4), (2, 1, 1))
        T[side, :3, :3] = Rotation.from_euler("yz", [0.5 * np.pi + tilt, 0.3]).as_matrix()
        T[side, :3, 3] = 0.05, 0.01, height + (0.1 if a == "cylinder" else 0.06) - 0.004
        compare(sim, T)


def test_a_cylinder_that_lies_across_the_edge_of_a_box_touches_its_upper_face_as_in_mujoco() -> None:
    """Check the gaps where an end of the cylinder is parallel to a side of the box."""
    shapes = "".join(f"<body><freejoint/><geom {SHAPES[name]}/></body>" for name in ("box", "cylinder"))
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{shapes}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    turn = Rotation.from_euler("y", 0.5 * np.pi + 0.02)
    data.qpos[7:] = [0.0, 0.01, 0.246, *np.roll(turn.as_quat(), 1)]
    mujoco.mj_forward(model, data)
    sim, T = scene_of("cylinder", "box"), np.tile(np.eye(4), (2, 1, 1))
    side = sim._plant.contacts.bodies.index("a")
    T[side, :3, :3], T[side, :3, 3] = turn.as_matrix(), data.qpos[7:10]
    count, contacts, _ = detected(sim, T)
    np.testing.assert_allclose(np.sort(contacts.gap[:count]), np.sort(data.contact.dist), rtol=0.0, atol=1e-8)


def test_where_surfaces_leave_the_point_open_the_motion_is_not_unique() -> None:
    """Check two parallel cylinders on top of each other, whose common line has no end."""
    sim = scene_of("cylinder", "cylinder")
    T = np.tile(np.eye(4), (2, 1, 1))
    for one in T:
        one[:3, :3] = Rotation.from_rotvec([0.0, 0.5 * np.pi, 0.0]).as_matrix()
    T[-1, :3, 3] = 0.02, 0.0, 0.1995
    found = detected(sim, T)
    assert found[0] > 0
    assert not all(rates_of(sim, T, found, c)[1] for c in range(found[0]))


@pytest.mark.parametrize("tilt", [0.05, 0.4, 0.7])
def test_points_beside_the_lowest_one_of_a_cylinder_turn_with_it(tilt: float) -> None:
    """Check MuJoCo's three points of a tilted end: the outer two go up and down as they move along the rim."""
    sim = scene_of("cylinder", "plane")
    T = np.eye(4)[None].copy()
    T[0, :3, :3] = Rotation.from_rotvec([tilt, 0.0, 0.0]).as_matrix() @ Rotation.from_rotvec([0.0, 0.0, 1.0]).as_matrix()
    count, contacts, _ = detected(sim, T)
    assert np.count_nonzero(contacts.gap[:count] < 0.0) == count >= 3
    compare(sim, T, 1e-7)
