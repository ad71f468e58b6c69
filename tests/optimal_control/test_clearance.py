"""Tests of clearances: distances equal MuJoCo's, balls cover shapes, and plans avoid obstacles that may move."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.algorithms.clearances import ROUNDED, distance_from, greatest, positive
from featherweight.array_types import Array
from featherweight.collision.stand_ins import local_stand_ins
from featherweight.model.types import ShapeType
from featherweight.optimal_control.clearance import covering_balls
from featherweight.robots.example_files import example
from optimal_control.problems import HAND, PANDA_START

SIZES = {"sphere": (0.3,), "capsule": (0.1, 0.5), "cylinder": (0.2, 0.6), "box": (0.4, 0.2, 0.6), "plane": ()}
HALVED = {"capsule": (1.0, 0.5), "cylinder": (1.0, 0.5), "box": (0.5, 0.5, 0.5)}  # MuJoCo uses half sizes
BALL = 0.05


def turned(rng: np.random.Generator) -> fw.Pose:
    R = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    R[:, 0] *= np.linalg.det(R)
    rows, p = R.tolist(), rng.standard_normal(3).tolist()
    return fw.Pose((tuple(rows[0]), tuple(rows[1]), tuple(rows[2])), tuple(p))


@pytest.mark.parametrize("kind", SIZES)
def test_distances_are_those_of_mujoco(kind: str) -> None:
    """Check a small ball outside; distances inside shapes are negative."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        place, p = turned(rng), rng.standard_normal(3)
        T = np.column_stack([np.array(place.R), place.p])
        found = float(distance_from(kind, SIZES[kind], T, p)) - BALL
        spec = mujoco.MjSpec()
        size = np.ones(3)
        size[: len(SIZES[kind])] = np.array(SIZES[kind]) * HALVED.get(kind, 1.0)
        quaternion = np.empty(4)
        mujoco.mju_mat2Quat(quaternion, np.array(place.R).ravel())
        spec.worldbody.add_geom(type=getattr(mujoco.mjtGeom, f"mjGEOM_{kind.upper()}"), size=size, pos=place.p, quat=quaternion)
        spec.worldbody.add_body(pos=p).add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[BALL, 0, 0])
        model = spec.compile()
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        expected = mujoco.mj_geomDistance(model, data, 0, 1, 100.0, None)
        if expected > 0.0:
            assert abs(found - expected) < 3.0 * ROUNDED
        else:
            assert found < 3.0 * ROUNDED
    center = np.array(place.p) - 0.01 * np.array(place.R)[:, 2]
    assert distance_from(kind, SIZES[kind], T, center) < 0.0


def test_rounded_functions_are_close_to_their_own() -> None:
    for x in np.random.default_rng(0).standard_normal((50, 3)):
        assert abs(positive(x[0]) - max(x[0], 0.0)) <= ROUNDED
        assert abs(greatest(*x) - max(x)) <= 2.0 * ROUNDED


@pytest.mark.parametrize("most", [1, 3])
def test_balls_cover_shapes(most: int) -> None:
    """Check that random points of each shape's hull are in one of its balls."""
    rng = np.random.default_rng(0)
    for name in ("panda", "hyq_no_sensors"):
        robot = fw.load(example(name), base="fixed" if name == "panda" else "floating")
        balls = covering_balls(robot, most=most)
        counts: dict[str, int] = {}
        for shape in robot.shapes:
            if shape.body is None or not shape.collision or shape.body not in {b.body for b in balls}:
                continue
            counts[shape.body] = counts.get(shape.body, 0) + 1
            rounding, local = local_stand_ins(shape)
            points = np.asarray(local, float).reshape(-1, 3)
            if shape.type is not ShapeType.MESH:
                points = points @ np.array(shape.placement.R).T + shape.placement.p
            weights = rng.dirichlet(np.full(len(points), 0.1), 200)
            inside = weights @ points + rounding * unit(rng.standard_normal((200, 3)))
            own = [b for b in balls if b.body == shape.body]
            distances = [np.linalg.norm(inside - b.center, axis=1) - b.radius for b in own]
            assert np.min(distances, axis=0).max() < 1e-9
        assert all(sum(b.body == body for b in balls) <= most * n for body, n in counts.items())


def unit(x: Array) -> Array:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


WALL = fw.Shape("wall", None, ShapeType.BOX, (0.5, 0.04, 0.7), fw.Pose(p=(0.55, -0.02, 0.35)))
LAMP = fw.Shape("lamp", None, ShapeType.SPHERE, (0.1,), fw.Pose(p=(0.35, 0.1, 0.9)))
START = PANDA_START + 0.6 * np.eye(8)[0]
GOAL = [0.45, -0.35, 0.35]


def reach(robot: fw.Robot, **more: Any) -> fw.OptimalControl:
    """Return a reach from one side of a wall to the other."""
    ocp = fw.OptimalControl(robot, dt=0.04, knots=30)
    ocp.add(fw.JointVelocities(), weight=0.1)
    ocp.add(fw.Effort(), weight=1e-4)
    ocp.add(fw.FrameTask(HAND, kind="position", name="hand"), weight=1e4, at="end")
    ocp.require(
        fw.clearance(robot, [WALL, LAMP], balls=2, bodies=["panda_link5", "panda_link6", "panda_link7"], **more), 0.01, np.inf
    )
    return ocp


def gaps(robot: fw.Robot, q: Array, shapes: list[fw.Shape]) -> float:
    """Return the least distance of balls along a motion, by loops independent of the library."""
    balls = covering_balls(robot, ["panda_link5", "panda_link6", "panda_link7"], 2)
    least = np.inf
    for ball in balls:
        T = robot.frame_placement(ball.body)(q)
        for p in T[:, :3, :3] @ ball.center + T[:, :3, 3]:
            for s in shapes:
                place = np.column_stack([np.array(s.placement.R), s.placement.p])
                least = min(least, float(distance_from(s.type, s.size, place, p)) - ball.radius)
    return least


def test_a_reach_around_a_wall() -> None:
    """Check fixed obstacles, and the same obstacles by parameters; without the term the arm passes through the wall."""
    robot = fw.load(example("panda"))
    plain = fw.OptimalControl(robot, dt=0.04, knots=30)
    plain.add(fw.JointVelocities(), weight=0.1)
    plain.add(fw.Effort(), weight=1e-4)
    plain.add(fw.FrameTask(HAND, kind="position", name="hand"), weight=1e4, at="end")
    assert gaps(robot, plain.solve(START, targets={"hand": GOAL}).q, [WALL, LAMP]) < -0.02
    plan = reach(robot).solve(START, targets={"hand": GOAL}, iterations=300)
    assert plan.converged and gaps(robot, plan.q, [WALL, LAMP]) > 0.01 - 2e-4
    hand = robot.frame_placement(HAND)(plan.q[-1])[:3, 3]
    assert np.linalg.norm(hand - GOAL) < 0.02
    moving = reach(robot, moving=True)
    where = [[[*row, x] for row, x in zip(s.placement.R, s.placement.p, strict=True)] for s in (WALL, LAMP)]
    same = moving.solve(START, targets={"hand": GOAL}, parameters={"clearance": np.ravel(where)}, iterations=300)
    np.testing.assert_allclose(same.cost, plan.cost, rtol=1e-3)


def test_bodies_that_keep_apart() -> None:
    """Check the distances of all pairs of balls of two bodies."""
    robot = fw.load(example("panda"))
    term = fw.clearance(robot, pairs=[("panda_link2", "panda_link7")], balls=1)
    first, second = (covering_balls(robot, [body], 1) for body in ("panda_link2", "panda_link7"))
    assert term.size == len(first) * len(second) and term.parameters == 0
    ocp = fw.OptimalControl(robot, dt=0.04, knots=10)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.add(fw.JointVelocities(), weight=0.1)
    ocp.require(term, 0.4, math.inf, at="end")
    plan = ocp.solve(PANDA_START, iterations=300)
    assert plan.converged
    a, b = (robot.frame_placement(x[0].body)(plan.q[-1]) for x in (first, second))
    centers = [T[:3, :3] @ x[0].center + T[:3, 3] for T, x in ((a, first), (b, second))]
    assert np.linalg.norm(centers[0] - centers[1]) - first[0].radius - second[0].radius > 0.4 - 2e-4


def test_a_start_in_an_obstacle_is_named() -> None:
    """Check an obstacle that contains the start, so that no solution exists."""
    robot = fw.load(example("panda"))
    hand = robot.frame_placement("panda_link7")(START)[:3, 3].tolist()
    stone = fw.Shape("stone", None, ShapeType.SPHERE, (0.1,), fw.Pose(p=(hand[0], hand[1], hand[2])))
    ocp = fw.OptimalControl(robot, dt=0.04, knots=5)
    ocp.add(fw.Effort(), weight=1e-3)
    ocp.require(fw.clearance(robot, [stone], bodies=["panda_link7"]), 0.01, np.inf)
    plan = ocp.solve(START)
    assert not plan.converged and "; the initial state violates clearance by 0." in plan.reason


def test_meshes_are_covered_by_spheres() -> None:
    """Check that no distance exceeds that of the mesh, or is less by more than the size of a sphere; placements may change."""
    rng, robot = np.random.default_rng(0), fw.load(example("panda"))
    corners = np.array([[0.3, 0.1, 0.0], [-0.3, 0.1, 0.0], [0.0, -0.1, 0.1], [0.0, 0.0, -0.1]])
    rock = fw.Shape("rock", None, ShapeType.MESH, (1.0, 1.0, 1.0), vertices=corners)
    points = rng.dirichlet(np.ones(4), 20_000) @ corners  # points of the tetrahedron
    balls = covering_balls(robot, ["panda_link7"], 2)
    fixed, moving = (fw.clearance(robot, [rock], bodies=["panda_link7"], balls=2, moving=x) for x in (False, True))
    place = turned(rng)
    T = np.column_stack([np.array(place.R), place.p])
    for _ in range(10):
        body = np.array(robot.frame_placement("panda_link7")(robot.random_configuration(rng=rng)))
        rows = np.reshape(fixed.function([body]), (len(balls), 2)).min(axis=1)
        centers = np.array([ball.center for ball in balls]) @ body[:3, :3].T + body[:3, 3]
        away = np.array([np.linalg.norm(points - c, axis=1).min() for c in centers]) - [ball.radius for ball in balls]
        assert (rows <= away + 1e-3).all() and (rows > away - 0.25).all()
        moved = np.vstack([T @ np.vstack([body[:3], [0.0, 0.0, 0.0, 1.0]]), [0.0, 0.0, 0.0, 1.0]])
        shifted = np.reshape(moving.function([moved], list(T.ravel())), (len(balls), 2)).min(axis=1)
        np.testing.assert_allclose(shifted, rows, atol=1e-9)


def test_what_cannot_be_kept_away_is_refused() -> None:
    robot = fw.load(example("panda"))
    egg = fw.Shape("egg", None, ShapeType.ELLIPSOID, (0.1, 0.1, 0.2))
    with pytest.raises(ValueError, match=r"obstacle 'egg' is a.* ellipsoid; obstacles are sphere, .*, plane, mesh"):
        fw.clearance(robot, [egg])
    with pytest.raises(ValueError, match=r"obstacle 'cup' is on 'panda_link7'; obstacles are in the world"):
        fw.clearance(robot, [fw.Shape("cup", "panda_link7", ShapeType.SPHERE, (0.1,))])
    with pytest.raises(ValueError, match="there are no distances"):
        fw.clearance(robot)
    with pytest.raises(ValueError, match="has no moving body"):
        fw.clearance(robot, [LAMP], bodies=["elbow"])
    with pytest.raises(ValueError, match="balls must be a whole number of at least 1"):
        fw.clearance(robot, [LAMP], balls=0)
    with pytest.raises(ValueError, match="has no collision shapes"):
        fw.clearance(fw.build(fw.robots.four_bar()), [LAMP])
