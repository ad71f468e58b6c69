"""Tests of the choice of contacts of a step."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.collision.collision_scene import collision_work
from featherweight.collision.detection import ContactPoints, find_contacts
from featherweight.simulation.scene import TouchingParts
from featherweight.simulation.scene_building import TouchingScene, make_scene

STEP, MARGIN = 1e-2, 1e-3  # [s], [m]
Box = fw.ShapeType.BOX


def scene_of(*shapes: fw.Shape, ground: fw.Plane | fw.HeightField | None = None) -> TouchingScene:
    names = list(dict.fromkeys(s.body for s in shapes if s.body and s.body != "world"))
    bodies = [fw.Body(n, fw.Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0))) for n in names]
    joints = [fw.Joint(f"{n}_joint", fw.JointType.FLOATING, "world", n) for n in names]
    robot = fw.build(fw.describe(bodies, joints, shapes=shapes), execution="interpreted")
    return make_scene(robot, TouchingParts((), (), ground, True, 0.8, 0.0, np.zeros(0), np.zeros(0), False))


def places(room: int) -> ContactPoints:
    numbers, vectors = np.zeros((3, room), np.int64), np.zeros((2, room, 3))
    return ContactPoints(numbers[0], numbers[1], numbers[2], vectors[0], vectors[1], np.zeros(room))


def found(touching: TouchingScene, p: np.ndarray, v: np.ndarray, room: int = 32) -> tuple[int, ContactPoints]:
    """Return contacts for positions (bodies, 3) and velocities (bodies, 3), by functions in plain Python."""
    contacts = places(room)
    T = np.tile(np.eye(4), (len(p), 1, 1))
    T[:, :3, 3] = p
    velocity = np.hstack([v, np.zeros_like(v)])
    return find_contacts(touching.scene, T, velocity, STEP, MARGIN, contacts, collision_work(touching.scene)), contacts


BALL = fw.Shape("ball", "a", fw.ShapeType.SPHERE, (0.1,))


@pytest.mark.parametrize(("height", "speed", "count"), [(0.5, -50.0, 1), (0.5, -30.0, 0), (0.5, 50.0, 0), (5e-4, 1.0, 1)])
def test_what_would_touch_within_the_step_is_a_contact(height: float, speed: float, count: int) -> None:
    """Check a ball at 50 m/s, half a metre above the ground, which it reaches in a step of 10 ms; shapes within the
    margin always count.
    """
    touching = scene_of(BALL, ground=fw.Plane())
    k, contacts = found(touching, np.array([[0.0, 0.0, 0.1 + height]]), np.array([[0.0, 0.0, speed]]))
    assert k == count
    np.testing.assert_allclose(contacts.gap[:k], height, rtol=0.0, atol=1e-12)


def test_a_ball_does_not_pass_through_a_thin_plate_in_a_step() -> None:
    plate = fw.Shape("plate", "world", Box, (1.0, 1.0, 1e-3))
    k, contacts = found(scene_of(BALL, plate), np.array([[0.0, 0.0, 0.4]]), np.array([[0.0, 0.0, -100.0]]))
    assert k == 1
    assert contacts.b[0] == -1
    np.testing.assert_allclose(contacts.normal[0], [0.0, 0.0, 1.0], atol=1e-12)


def test_resting_contacts_are_not_multiplied_by_speed() -> None:
    """Check that a box that slides touches at its four lower corners."""
    box = fw.Shape("box", "a", Box, (0.2, 0.2, 0.2))
    k, contacts = found(scene_of(box, ground=fw.Plane()), np.array([[0.0, 0.0, 0.1]]), np.array([[5.0, 0.0, 0.0]]))
    assert k == 4
    assert sorted(contacts.candidate[:4]) == [0, 1, 2, 3]


@pytest.mark.parametrize("beyond", [-0.05, 0.0, 1e-3, 5e-3, 0.05])
def test_a_ball_touches_a_mesh_at_its_one_candidate(beyond: float) -> None:
    """Check a ball on a face, and beyond its edge, where the contact's normal differs from that of the face."""
    corners = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1))
    robot = fw.load(
        f"""<mujoco><asset><mesh name="cube" vertex="{corners}"/></asset><worldbody><geom type="mesh" mesh="cube"/>
        <body><freejoint/><geom size=".1"/></body></worldbody></mujoco>""",
        execution="interpreted",
    )
    touching = make_scene(robot, TouchingParts((), (), None, True, 0.8, 0.0, np.zeros(0), np.zeros(0), False))
    height = 0.1 + np.sqrt(0.1**2 - max(beyond, 0.0) ** 2) - 1e-5
    k, contacts = found(touching, np.array([[0.1 + beyond, 0.01, height]]), np.zeros((1, 3)))
    assert (k, len(touching.links)) == (1, 1)
    assert contacts.candidate[0] == 0
    np.testing.assert_allclose(contacts.gap[0], -1e-5, rtol=0.2)


def test_without_room_the_answer_is_minus_one() -> None:
    box = fw.Shape("box", "a", Box, (0.2, 0.2, 0.2))
    assert found(scene_of(box, ground=fw.Plane()), np.array([[0.0, 0.0, 0.1]]), np.zeros((1, 3)), room=3)[0] == -1


def test_planes_of_the_file_are_ground() -> None:
    floor = fw.Shape("floor", "world", fw.ShapeType.PLANE, (), fw.Pose(p=(0.0, 0.0, 0.5)))
    k, contacts = found(scene_of(BALL, floor), np.array([[0.0, 0.0, 0.59]]), np.zeros((1, 3)))
    assert (k, contacts.a[0], contacts.b[0]) == (1, 0, -1)
    np.testing.assert_allclose(contacts.gap[0], -0.01, atol=1e-12)


@pytest.mark.parametrize("turn", [False, True])
def test_the_world_is_the_second_of_a_contact(turn: bool) -> None:
    """Check that normals point to the first body, whichever of the two shapes is the simpler one."""
    moving = fw.Shape("m", "a", Box if turn else fw.ShapeType.SPHERE, (0.2, 0.2, 0.2) if turn else (0.1,))
    still = fw.Shape("s", "world", fw.ShapeType.SPHERE if turn else Box, (0.1,) if turn else (0.2, 0.2, 0.2))
    touching = scene_of(moving, still)
    k, contacts = found(touching, np.array([[0.0, 0.0, 0.199]]), np.zeros((1, 3)))
    assert (k, contacts.a[0], contacts.b[0]) == (1, 0, -1)
    assert touching.links[contacts.candidate[0]] == ("a", None)
    np.testing.assert_allclose(contacts.normal[0], [0.0, 0.0, 1.0], atol=1e-12)


SHAPES = (
    fw.Shape("ball", "a", fw.ShapeType.SPHERE, (0.1,)), fw.Shape("bar", "b", fw.ShapeType.CAPSULE, (0.05, 0.3)),
    fw.Shape("brick", "c", Box, (0.2, 0.1, 0.3)), fw.Shape("rod", "d", fw.ShapeType.CAPSULE, (0.08, 0.2)),
    fw.Shape("can", "e", fw.ShapeType.CYLINDER, (0.1, 0.2)), fw.Shape("table", "world", Box, (1.0, 1.0, 0.1)),
)  # fmt: skip


@pytest.mark.parametrize("by_file", [False, True])
def test_remembered_gaps_change_no_contact(by_file: bool) -> None:
    """Check shapes that move slowly, jump, approach each other, and rest, with contacts found anew at each moment."""
    touching, rng = scene_of(*SHAPES, ground=fw.Plane((0.0, 0.0, -0.3))), np.random.default_rng(0)
    touching = touching._replace(scene=touching.scene._replace(by_file=by_file))
    bodies, works = 5, [collision_work(touching.scene) for _ in range(2)]
    works[0].remembers[0] = True
    contacts = [places(64) for _ in works]
    T, left_out, touched = np.tile(np.eye(4), (bodies, 1, 1)), 0, 0
    for moment in range(120):
        if moment % 40 == 0:
            T[:, :3, 3] = rng.uniform(-1.0, 1.0, (bodies, 3))
            T[:, :3, :3] = [Rotation.random(random_state=rng).as_matrix() for _ in range(bodies)]
        moved = rng.choice([0.0, 1e-4, 3e-3]) * rng.standard_normal((bodies, 3))
        T[:, :3, 3] = T[:, :3, 3] * (0.95 if moment % 2 else 1.0) + moved
        T[:, :3, :3] = (
            T[:, :3, :3] @ Rotation.from_rotvec(rng.choice([0.0, 0.3]) * rng.standard_normal((bodies, 3))).as_matrix()
        )
        velocity = rng.choice([0.0, 0.1, 3.0]) * rng.standard_normal((bodies, 6))
        far = works[0].apart_until >= MARGIN + works[0].travel[touching.scene.pair].sum(axis=1)
        k, n = (find_contacts(touching.scene, T, velocity, STEP, MARGIN, c, w) for c, w in zip(contacts, works, strict=True))
        assert k == n
        np.testing.assert_array_equal(contacts[0].candidate[:k], contacts[1].candidate[:k])
        np.testing.assert_allclose(contacts[0].gap[:k], contacts[1].gap[:k], atol=1e-12)
        left_out, touched = left_out + int(far.sum()), touched + k
    assert left_out > 500
    assert touched > 100
