"""Tests of collisions and distances of shapes: closed forms, Pinocchio with coal, derivatives, and errors."""

from __future__ import annotations

import math
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collision_peer import CollisionPeer
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight import JointType, Shape, ShapeType
from featherweight.model.types import as_matrix
from oracles import robots

SOLID = fw.Inertia(1.0, (0.0, 0.0, 0.0), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01))
COAL = 1e-6  # [m] coal's tolerance for curved shapes
EXACT = 1e-9


def free_bodies(*shapes: Shape) -> fw.Robot:
    """Return a robot with a free-flying body for each name."""
    names = list(dict.fromkeys(s.body for s in shapes if s.body not in (None, "world")))
    joints = [fw.Joint(f"{n}_joint", JointType.FLOATING, "world", n) for n in names]
    return fw.build(fw.describe([fw.Body(n, SOLID) for n in names], joints, shapes=shapes), execution="interpreted")


def cube(half: float) -> np.ndarray:
    return half * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)


PLANE = Shape("floor", "world", ShapeType.PLANE, ())
SPHERE = Shape("ball", "a", ShapeType.SPHERE, (0.3,))
BOX = Shape("box", "b", ShapeType.BOX, (0.4, 0.6, 0.8))
HULL = Shape("hull", "b", ShapeType.MESH, (2.0, 3.0, 4.0), vertices=cube(0.1))  # the same box
CAPSULE = Shape("capsule", "b", ShapeType.CAPSULE, (0.1, 0.5))
CYLINDER = Shape("cylinder", "b", ShapeType.CYLINDER, (0.2, 0.5))
ELLIPSOID = Shape("egg", "b", ShapeType.ELLIPSOID, (0.1, 0.2, 0.3))


@pytest.mark.parametrize(
    ("one", "other", "place", "distance", "normal"),
    [
        (SPHERE, Shape("ball2", "b", ShapeType.SPHERE, (0.2,)), (0.6, 0.0, 0.8), 0.5, (0.6, 0.0, 0.8)),
        (SPHERE, Shape("ball2", "b", ShapeType.SPHERE, (0.2,)), (0.0, 0.24, -0.32), -0.1, (0.0, 0.6, -0.8)),
        (SPHERE, BOX, (0.0, 1.0, 0.1), 0.4, (0.0, 1.0, 0.0)),
        (SPHERE, BOX, (0.0, 0.0, 0.6), -0.1, (0.0, 0.0, 1.0)),
        (SPHERE, HULL, (0.0, 1.0, 0.1), 0.4, (0.0, 1.0, 0.0)),
        (SPHERE, CAPSULE, (1.0, 0.0, 0.2), 0.6, (1.0, 0.0, 0.0)),
        (SPHERE, CYLINDER, (0.0, 0.0, -1.0), 0.45, (0.0, 0.0, -1.0)),
        (SPHERE, ELLIPSOID, (0.0, -1.0, 0.0), 0.5, (0.0, -1.0, 0.0)),
        (Shape("brick", "a", ShapeType.BOX, (0.2, 0.2, 0.2)), HULL, (0.5, 0.05, 0.0), 0.2, (1.0, 0.0, 0.0)),
        (PLANE, BOX, (3.0, 0.0, 1.0), 0.6, (0.0, 0.0, 1.0)),
        (PLANE, HULL, (3.0, 0.0, 0.3), -0.1, (0.0, 0.0, 1.0)),
        (PLANE, CAPSULE, (3.0, 0.0, 0.3), -0.05, (0.0, 0.0, 1.0)),
        (PLANE, ELLIPSOID, (3.0, 0.0, 0.7), 0.4, (0.0, 0.0, 1.0)),
        (PLANE, CYLINDER, (3.0, 0.0, 0.7), 0.45, (0.0, 0.0, 1.0)),
    ],
)
def test_distances_and_normals_are_those_of_closed_forms(
    one: Shape, other: Shape, place: tuple[float, ...], distance: float, normal: tuple[float, ...]
) -> None:
    """Check a first body in any pose, and a second at `place` in its frame."""
    robot = free_bodies(one, other)
    rng = np.random.default_rng(0)
    turn, origin = Rotation.random(random_state=1), rng.uniform(-1.0, 1.0, 3)
    if one is PLANE:
        turn, origin = Rotation.identity(), np.zeros(3)
    q = np.concatenate([origin, turn.as_quat()] * len(robot.bodies))
    q[-7:-4] += turn.apply(place)
    found = robot.distances(q)
    assert [p.shapes for p in found.pairs] == [(one.name, other.name)]
    np.testing.assert_allclose(found.distance, [distance], atol=EXACT)
    np.testing.assert_allclose(found.normal[0], turn.apply(normal), atol=1e-4)  # by the root of its error
    first, second = found.points[0]
    np.testing.assert_allclose(second - first, found.distance[0] * found.normal[0], atol=EXACT)
    assert found.closest == found.distance[0]
    assert robot.in_collision(q) == (distance < 0.0)
    assert robot.in_collision(q, margin=max(distance, 0.0) + 1e-5)
    if distance > 0.0:
        assert not robot.in_collision(q, margin=distance - 1e-5)


# --- Pinocchio

FILES = {
    "panda": ("panda_description/urdf/panda.urdf", "panda_description/srdf/panda.srdf", "fixed"),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", "ur_description/srdf/ur5.srdf", "fixed"),
    "hyq": ("hyq_description/robots/hyq_no_sensors.urdf", "hyq_description/srdf/hyq.srdf", "floating"),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", "anymal_b_simple_description/srdf/anymal.srdf", "floating"),
    "solo": ("solo_description/robots/solo12.urdf", "solo_description/srdf/solo.srdf", "floating"),
    "pr2": ("pr2_description/urdf/pr2.urdf", "pr2_description/srdf/pr2.srdf", "fixed"),
    "talos": ("talos_data/robots/talos_reduced.urdf", "talos_data/srdf/talos.srdf", "floating"),
}


@pytest.mark.filterwarnings("ignore:You passed package dir")
@pytest.mark.parametrize("name", FILES)
def test_pairs_collisions_and_distances_are_pinocchios(name: str) -> None:
    """Check the same convex hulls; frames differ by rounding, and so do pairs that barely touch.

    If faces or edges are parallel, nearest points are not unique, but their distance and normal are.
    """
    file, srdf, base = FILES[name]
    path = robots.ROOT / file
    robot = fw.load(path, base, srdf=robots.ROOT / srdf, mimic="independent")
    peer = CollisionPeer(robot, path, robots.ROOT / srdf, robots.ROOT.parents[1])
    mine = set(map(frozenset, peer.named_pairs()))
    assert mine <= peer.own_pairs
    bodies = {link: body.name for body in robot.bodies for link in body.links}
    joined = {frozenset((j.parent, j.child)) for j in robot.joints}
    assert all(frozenset(bodies.get(link) for link, _ in pair) in joined for pair in peer.own_pairs - mine)
    q = robot.random_configuration(rng=0, size=(3, 4))
    found, rows = robot.distances(q), q.reshape(-1, robot.nq)
    assert found.distance.shape == (3, 4, len(mine)) and found.points.shape == (3, 4, len(mine), 2, 3)
    theirs = [peer.distances(peer.configuration(row)) for row in rows]
    expected = np.array([distance for distance, _ in theirs]).reshape(found.distance.shape)
    np.testing.assert_allclose(found.distance, expected, rtol=COAL, atol=2 * COAL)
    normals = np.array([normal for _, normal in theirs]).reshape(found.normal.shape)
    sure = expected > 0.01
    # |v|² >= d² + |v - v*|² for the vector v between any points of convex shapes, and v* between the nearest
    turned = np.linalg.norm(found.normal[sure] - normals[sure], axis=-1)
    assert (turned <= np.sqrt(2.0 * COAL / expected[sure]) + COAL).all()
    np.testing.assert_allclose(
        found.points[..., 1, :] - found.points[..., 0, :], found.distance[..., None] * found.normal, atol=10 * EXACT
    )
    touching = robot.collisions(q)
    sure = np.abs(expected) > 2 * COAL
    np.testing.assert_array_equal(touching.touching[sure], expected[sure] < 0.0)
    np.testing.assert_array_equal(robot.in_collision(q), touching.any)
    np.testing.assert_array_equal(touching.any.ravel(), [peer.collide(peer.configuration(row)) for row in rows])


# --- many states


def arm(*shapes: Shape, **more: Any) -> fw.Robot:
    """Return a hinge, a slide and a ball joint in series, on a free-flying base."""
    kinds = [JointType.FLOATING, JointType.REVOLUTE, JointType.PRISMATIC, JointType.SPHERICAL]
    parents = ["world", "a", "b", "c"]
    joints = [
        fw.Joint(f"j{k}", kind, parents[k], "abcd"[k], fw.Pose(p=(0.5, 0.0, 0.1) if k else (0.0, 0.0, 0.0)))
        for k, kind in enumerate(kinds)
    ]
    bodies = [fw.Body(n, SOLID) for n in "abcd"]
    return fw.build(fw.describe(bodies, joints, shapes=shapes, **more), execution="interpreted")


TILTED = fw.Pose(as_matrix(Rotation.from_euler("xyz", [0.3, 0.2, 0.1]).as_matrix()), (0.1, -0.2, 0.05))
SHAPES = (
    Shape("base", "a", ShapeType.CAPSULE, (0.15, 0.5), TILTED),
    Shape("base2", "a", ShapeType.SPHERE, (0.2,), fw.Pose(p=(0.0, 0.3, 0.0))),
    Shape("elbow", "b", ShapeType.SPHERE, (0.1,), TILTED),
    Shape("slider", "c", ShapeType.MESH, (1.0, 1.0, 1.0), TILTED, vertices=cube(0.1) + 0.05),
    Shape("tip", "d", ShapeType.ELLIPSOID, (0.1, 0.2, 0.3), TILTED),
    Shape("tip2", "d", ShapeType.BOX, (0.1, 0.2, 0.3), TILTED),
    Shape("table", "world", ShapeType.BOX, (1.0, 1.0, 0.2), TILTED),
    Shape("ramp", "world", ShapeType.PLANE, (), fw.Pose(TILTED.R, (0.0, 0.0, -0.6))),
)


def test_bounding_volumes_leave_out_what_is_farther_apart_only() -> None:
    robot = arm(*SHAPES)
    q = robot.random_configuration(rng=0, size=60)
    whole = robot.distances(q)
    assert len(whole.pairs) == 20 and np.isfinite(whole.distance).all()
    for reach in (0.0, 0.05, 0.3):
        near = robot.distances(q, within=reach)
        inside = whole.distance <= reach
        assert inside.any() and not inside.all()
        some = np.asarray(inside.any(axis=0))
        assert near.pairs == tuple(p for p, there in zip(whole.pairs, some, strict=True) if there)
        there = inside[:, some]
        np.testing.assert_array_equal(near.distance, np.where(there, whole.distance[:, some], np.inf))
        np.testing.assert_array_equal(near.points[there], whole.points[:, some][there])
        assert np.isnan(near.points[~there]).all() and np.isnan(near.normal[~there]).all()
        sure = np.abs(whole.distance - reach) > 2 * COAL
        found = robot.collisions(q, margin=reach)
        np.testing.assert_array_equal(found.touching[sure], inside[sure])
        np.testing.assert_array_equal(robot.in_collision(q, margin=reach), found.any)


def test_of_one_state_only_what_is_near_comes_back() -> None:
    robot = arm(*SHAPES)
    q = robot.random_configuration(rng=0, size=60)
    whole = robot.distances(q)
    state = int(whole.distance.min(axis=1).argsort()[30])
    reach = float(np.sort(whole.distance[state])[2])
    near = robot.distances(q[state], within=reach)
    assert near.distance.shape == (3,) and np.isfinite(near.points).all() and len(near.pairs) == 3
    np.testing.assert_array_equal(near.distance, whole.distance[state, [whole.pairs.index(p) for p in near.pairs]])
    none = robot.distances(q[:0], within=0.1)
    assert repr(none) == "<Distances of 0 pairs of shapes in 0 states>"
    assert none.pairs == () and none.distance.shape == (0, 0) and robot.distance_jacobian(q[:0], none).shape == (0, 0, robot.nv)


def test_numbers_of_a_state_do_not_depend_on_other_states_or_calls() -> None:
    """Check prisms of forty sides, several vertices of which may be equally far."""
    angle = np.linspace(0.0, 2.0 * np.pi, 40, endpoint=False)
    x = np.concatenate([np.column_stack([np.cos(angle), np.sin(angle), np.full(40, z)]) for z in (-1.0, 1.0)])
    hulls = [Shape(f"hull{k}", f"body{k}", ShapeType.MESH, (1.0, 1.0, 2.0), vertices=x) for k in range(3)]
    robot = free_bodies(*hulls)
    q = robot.random_configuration(rng=0, size=40)
    first = robot.distances(q)
    for other in (robot.distances(q), free_bodies(*hulls).distances(q)):
        np.testing.assert_array_equal(other.distance, first.distance)
        np.testing.assert_array_equal(other.points, first.points)
    backwards = robot.distances(q[::-1])
    np.testing.assert_array_equal(backwards.distance[::-1], first.distance)
    np.testing.assert_array_equal(backwards.normal[::-1], first.normal)
    for k in (7, 3, 21):
        alone = robot.distances(q[k])
        np.testing.assert_array_equal(alone.distance, first.distance[k])
        np.testing.assert_array_equal(alone.points, first.points[k])


def panda() -> fw.Robot:
    """Return Panda, compiled, with meshes, for which a single state has its own code path."""
    file, srdf, base = FILES["panda"]
    return fw.load(robots.ROOT / file, base, srdf=robots.ROOT / srdf, mimic="independent")


def test_one_state_has_the_answers_of_a_batch_whatever_was_asked_before() -> None:
    robot = panda()
    q = robot.random_configuration(rng=1, size=300)
    for margin in (0.0, 0.02):
        batch = robot.in_collision(q, margin=margin)
        assert batch.any() and not batch.all()
        np.testing.assert_array_equal([robot.in_collision(row, margin=margin) for row in q], batch)
        np.testing.assert_array_equal([robot.in_collision(row, margin=margin) for row in q[::-1]], batch[::-1])
        np.testing.assert_array_equal(robot.collisions(q, margin=margin).any, batch)
    whole = robot.distances(q)
    for k in (0, 7, 150, 299):
        alone = robot.distances(q[k])
        np.testing.assert_array_equal(alone.distance, whole.distance[k])
        np.testing.assert_array_equal(alone.points, whole.points[k])
        np.testing.assert_array_equal(alone.normal, whole.normal[k])


def test_one_state_may_be_given_in_any_way_that_numpy_takes() -> None:
    robot = panda()
    q = robot.random_configuration(rng=1, size=40)
    expected = robot.in_collision(q)
    strided = np.repeat(q, 2, axis=1)[:, ::2]
    frozen = q.copy()
    frozen.flags.writeable = False
    for k in (0, 5, 11):
        for given in (q[k], strided[k], frozen[k], q[k].tolist(), tuple(q[k]), q[k].astype(">f8"), q[k][None]):
            assert robot.in_collision(given) == expected[k]
    assert robot.in_collision(np.zeros(robot.nq, dtype=int)) == robot.in_collision(np.zeros(robot.nq))
    wrong: list[Any] = [q[0, :-1], np.append(q[0], 0.0), q[0, 0], "q", [None] * robot.nq, q[0] * 1j]
    for given in wrong:
        with pytest.raises((ValueError, TypeError)):
            robot.in_collision(given)
    for k in range(robot.nq):
        broken = q[0].copy()
        broken[k] = np.nan if k % 2 else np.inf
        with pytest.raises(ValueError, match="panda: q has numbers that are not finite"):
            robot.in_collision(broken)
    with pytest.raises(ValueError, match=r"margin must be zero or more \[m\]; got -0.1"):
        robot.in_collision(q[0], margin=-0.1)
    assert robot.in_collision(q[0], margin=0.0) == expected[0]


def test_batches_are_the_same_on_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = panda()
    q = robot.random_configuration(rng=2, size=2000)
    monkeypatch.setattr("featherweight.robot.collision.shape_queries.processors", lambda: 1)
    alone = robot.in_collision(q), robot.collisions(q).touching, robot.distances(q, within=0.05).distance
    monkeypatch.setattr("featherweight.robot.collision.shape_queries.processors", lambda: 4)
    shared = robot.in_collision(q), robot.collisions(q).touching, robot.distances(q, within=0.05).distance
    for one, other in zip(alone, shared, strict=True):
        np.testing.assert_array_equal(one, other)
    q[1234, 3] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        robot.collisions(q)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda row: bool(robot.in_collision(row)), q[:1000]))
    np.testing.assert_array_equal(found, alone[0][:1000])


def test_results_are_short_in_words() -> None:
    robot = arm(*SHAPES)
    q = robot.random_configuration(rng=0, size=60)
    collisions, one = robot.collisions(q), robot.collisions(q[0])
    touching = int(collisions.touching.any(axis=0).sum())
    assert repr(collisions).startswith(f"<Collisions: {touching} of 20 pairs of shapes touch in 60 states: ")
    assert " states" not in repr(one) and max(len(repr(x)) for x in (collisions, one, robot.distances(q))) < 250
    assert f"the least is {robot.distances(q).distance.min():.4g} m" in repr(robot.distances(q))


def test_the_jacobian_is_the_slope_of_distances() -> None:
    """Check against central differences with steps of 1e-4."""
    robot = arm(*SHAPES)
    q = robot.random_configuration(rng=3, size=(2, 3))
    found = robot.distances(q)
    J = robot.distance_jacobian(q, found)
    assert J.shape == (2, 3, len(found.pairs), robot.nv)
    steps = 1e-4 * np.eye(robot.nv)
    ahead, behind = (robot.distances(robot.integrate(q[..., None, :], s * steps)).distance for s in (1.0, -1.0))
    slopes = np.swapaxes((ahead - behind) / 2e-4, -1, -2)
    near = robot.distances(q, within=0.05)
    left_out = np.isinf(near.distance)
    assert left_out.any() and not left_out.all()
    part = robot.distance_jacobian(q, near)
    of_all = J[..., [found.pairs.index(p) for p in near.pairs], :]
    np.testing.assert_array_equal(part[~left_out], of_all[~left_out])
    assert np.isnan(part[left_out]).all()
    steady = (np.abs(np.swapaxes(ahead + behind, -1, -2) - 2.0 * found.distance[..., None]) < 1e-7).all(axis=-1)
    assert steady.mean() > 0.8  # states without jumps of the nearest points
    np.testing.assert_allclose(J[steady], slopes[steady], atol=1e-3)


def test_states_have_the_leading_axes_of_q() -> None:
    robot = arm(*SHAPES)
    q = robot.random_configuration(rng=0, size=(2, 3))
    n = len(robot.collision_pairs())
    for rows, axes in ((q, (2, 3)), (q[0], (3,)), (q[0, 0], ()), (q[:0], (0, 3))):
        assert robot.in_collision(rows).shape == axes
        assert robot.collisions(rows).touching.shape == (*axes, n)
        found = robot.distances(rows)
        assert (found.distance.shape, found.normal.shape) == ((*axes, n), (*axes, n, 3))
    single = robot.distances(q.astype(np.float32)).distance
    np.testing.assert_allclose(single, robot.distances(q).distance, atol=1e-5)
    listed = robot.collisions(q).listed(1, 2)
    assert listed == [p for p, hit in zip(robot.collision_pairs(), robot.collisions(q[1, 2]).touching, strict=True) if hit]
    with pytest.raises(IndexError, match="index of one state, of 2 numbers"):
        robot.collisions(q).listed(1)


def test_several_threads_may_ask_at_a_time() -> None:
    robot = arm(*SHAPES)
    q = robot.random_configuration(rng=0, size=(4, 20))
    expected = robot.distances(q).distance
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda rows: robot.distances(rows).distance, q))
    np.testing.assert_array_equal(found, expected)


def test_robots_travel_to_other_processes_after_queries() -> None:
    robot = arm(*SHAPES)
    q = robot.random_configuration(rng=0, size=5)
    expected = robot.in_collision(q)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(robot)).in_collision(q), expected)


# --- pairs


def test_pairs_are_of_bodies_that_no_joint_connects() -> None:
    robot = arm(*SHAPES)
    bodies = {frozenset(p.bodies) for p in robot.collision_pairs()}
    assert bodies == {*map(frozenset, [("a", "c"), ("a", "d"), ("b", "d"), *((None, b) for b in "abcd")])}  # the base flies


def test_links_are_named_and_files_may_disable_their_pairs() -> None:
    joints = [fw.Joint("turn", JointType.REVOLUTE, "ground", "a"), fw.Joint("weld", JointType.FIXED, "a", "tool")]
    joints += [fw.Joint("next", JointType.REVOLUTE, "tool", "b"), fw.Joint("last", JointType.REVOLUTE, "b", "c")]
    names = ("ground", "a", "tool", "b", "c")
    shapes = [Shape(f"s_{n}", n, ShapeType.SPHERE, (0.1,)) for n in names]
    description = fw.describe([fw.Body(n, SOLID) for n in names], joints, shapes=shapes)
    robot = fw.build(description)
    links = [p.links for p in robot.collision_pairs()]
    assert links == [("ground", "b"), ("ground", "c"), ("a", "c"), ("tool", "c")]
    assert robot.collision_pairs()[3] == (("s_tool", "s_c"), ("tool", "c"), ("a", "c"))
    disabled = fw.build(replace(description, disabled_collisions=(("c", "tool"), ("ground", "b"))))
    assert [p.links for p in disabled.collision_pairs()] == [("ground", "c"), ("a", "c")]
    with pytest.raises(fw.ModelError, match="disabled collisions of 'c' and 'hook': 'hook' is not a body"):
        fw.build(replace(description, disabled_collisions=(("c", "hook"),)))


def test_pairs_may_be_given_by_the_names_of_shapes_links_and_bodies() -> None:
    robot = arm(*SHAPES)
    q = robot.random_configuration(rng=0, size=5)
    pairs = [("elbow", "a"), ("world", "d"), (None, "tip")]
    chosen = [p.shapes for p in robot.collision_pairs(pairs)]
    assert chosen == [
        ("base", "elbow"), ("base2", "elbow"), ("tip", "table"), ("tip2", "table"), ("tip", "ramp"), ("tip2", "ramp")
    ]  # fmt: skip
    found = robot.distances(q, pairs=pairs)
    whole = robot.distances(q)
    assert [p.shapes for p in found.pairs] == chosen
    number = {p.shapes: k for k, p in enumerate(whole.pairs)}
    same = [k for k, pair in enumerate(chosen) if pair in number]
    assert len(same) == 4
    np.testing.assert_array_equal(found.distance[:, same], whole.distance[:, [number[chosen[k]] for k in same]])
    assert robot.distance_jacobian(q, found).shape == (5, 6, robot.nv)


MJCF = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="a" pos="0 0 1"><freejoint/><geom name="ga" size="0.1"/>
<body name="b" pos="0.1 0 0"><joint name="x" axis="1 0 0"/><joint name="y" axis="0 1 0"/><geom name="gb" size="0.1"/>
<body name="c" pos="0.1 0 0"><joint name="z"/><geom name="gc" size="0.1"/>
<body name="d" pos="0.1 0 0"><joint name="w"/><geom name="gd" size="0.1" contype="2" conaffinity="4"/>
<geom name="ge" size="0.1" contype="4" conaffinity="1"/></body></body></body></body></worldbody>{rest}</mujoco>"""


def test_mjcf_pairs_heed_several_joints_of_a_body_exclusions_and_affinities(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(MJCF.format(rest=""))
    pairs = {p.shapes for p in fw.load(path).collision_pairs()}
    assert pairs == {*(("floor", f"g{n}") for n in "abce"), ("ga", "gc"), ("ga", "ge"), ("gb", "ge")}
    path.write_text(MJCF.format(rest='<contact><exclude body1="c" body2="a"/><exclude body1="world" body2="b"/></contact>'))
    excluded = {p.shapes for p in fw.load(path).collision_pairs()}
    assert pairs - excluded == {("ga", "gc"), ("floor", "gb")}


def test_bodies_that_a_loop_joins_are_neighbours() -> None:
    shapes = [Shape(n, n, ShapeType.SPHERE, (0.1,), fw.Pose(p=(0.1, 0.0, 0.0))) for n in ("link1", "link2", "link3")]
    robot = fw.build(replace(fw.robots.four_bar(), shapes=tuple(shapes)), execution="interpreted")
    assert [p.shapes for p in robot.collision_pairs()] == [("link1", "link3")]
    assert isinstance(robot, fw.ClosedRobot)
    q = robot.close([0.4, 0.3, 0.5])
    found = robot.distances(q)
    where = robot.frame_placement(["link1", "link3"])(q) @ [0.1, 0.0, 0.0, 1.0]
    np.testing.assert_allclose(found.distance, [np.linalg.norm(where[1] - where[0]) - 0.2], atol=EXACT)
    ahead, behind = (robot.distances(robot.integrate(q, [step])).distance for step in (1e-4, -1e-4))
    np.testing.assert_allclose(robot.distance_jacobian(q, found), [(ahead - behind) / 2e-4], atol=1e-6)


def test_a_robot_without_pairs_never_collides() -> None:
    robot = arm()
    q = robot.random_configuration(rng=0, size=3)
    assert robot.collision_pairs() == ()
    assert not robot.in_collision(q).any()
    assert robot.distances(q).distance.shape == (3, 0)
    assert (robot.distances(q).closest == math.inf).all()


# --- refusals


def test_what_is_wrong_is_named() -> None:
    robot = arm(*SHAPES)
    q = robot.random_configuration(rng=0, size=3)
    with pytest.raises(
        ValueError, match="'hand' is not a shape, link or body with collision shapes; links with some: a, b, c, d"
    ):
        robot.in_collision(q, pairs=[("hand", "a")])
    with pytest.raises(ValueError, match="no collision shapes of 'base' and 'a' move relative to one another"):
        robot.in_collision(q, pairs=[("base", "a")])
    with pytest.raises(ValueError, match=r"margin must be zero or more \[m\]; got -0.1"):
        robot.collisions(q, margin=-0.1)
    with pytest.raises(ValueError, match=r"within must be zero or more \[m\]; got nan"):
        robot.distances(q, within=math.nan)
    with pytest.raises(ValueError, match="q"):
        robot.in_collision(q[:, :-1])
    with pytest.raises(ValueError, match="q has numbers that are not finite"):
        robot.in_collision(np.where(np.arange(robot.nq) == 3, np.nan, q))
    with pytest.raises(ValueError, match="are not those of this robot at this q"):
        robot.distance_jacobian(q[0], robot.distances(q))


@pytest.mark.parametrize(("missing", "needed"), [("scipy.spatial", "scipy"), ("trimesh", "trimesh")])
def test_meshes_say_which_package_they_need(missing: str, needed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that robots of other shapes have collisions without the package. The cache has no hull of this mesh."""
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "featherweight.model.triangles", raising=False)
    given: dict[str, Any] = {"vertices": cube(0.12345)} if needed == "scipy" else {"path": "/nowhere/part.stl"}
    robot = arm(Shape("part", "d", ShapeType.MESH, (1.0, 1.0, 1.0), **given), *SHAPES[:3])
    with pytest.raises(ImportError, match=rf"part.* on 'd'.* needs? {needed}: pip install .*featherweight\[shapes\]"):
        robot.in_collision(np.zeros(13))
    assert arm(*SHAPES[:3]).in_collision(np.zeros((2, 13))).shape == (2,)


def test_a_flat_mesh_is_refused_with_its_name() -> None:
    sheet = Shape("sheet", "d", ShapeType.MESH, (1.0, 1.0, 1.0), vertices=cube(0.1) * [1.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="the mesh 'sheet' on 'd' is flat"):
        arm(*SHAPES, sheet).in_collision(np.zeros(13))


def test_what_lies_on_a_height_field_touches_it() -> None:
    """Check a slope: z = 0.5 x + 0.25 y, whose normal gives the lowest sphere a height of r |n| / n_z."""
    slope = np.add.outer(0.5 * np.linspace(-2.0, 2.0, 9), 0.25 * np.linspace(-1.0, 1.0, 5))
    field = Shape("hill", None, ShapeType.HEIGHTFIELD, (4.0, 2.0, 3.0), heights=slope)
    robot = free_bodies(Shape("ball", "body0", ShapeType.SPHERE, (0.1,)), field)
    q = np.tile(robot.neutral(), (4, 1))
    q[:, :2] = [[1.3, 0.3], [1.3, 0.3], [-1.1, -0.4], [-1.1, -0.4]]
    lowest = 0.5 * q[:, 0] + 0.25 * q[:, 1] + 0.1 * np.sqrt(1.0 + 0.5**2 + 0.25**2)
    q[:, 2] = lowest + np.array([1e-6, -1e-6, 1e-6, -1e-6])
    assert robot.in_collision(q).tolist() == [False, True, False, True]
    q[:, 2] += 0.01
    assert not robot.in_collision(q).any()
    assert robot.in_collision(q, margin=0.011).all()
    found = robot.distances(q)
    np.testing.assert_allclose(found.distance[:, 0], (q[:, 2] - lowest) / np.sqrt(1.0 + 0.5**2 + 0.25**2), atol=1e-12)
    np.testing.assert_allclose(found.normal[:, 0], np.tile(np.array([0.5, 0.25, -1.0]) / np.sqrt(1.3125), (4, 1)), atol=1e-9)


def test_height_fields_need_heights() -> None:
    field = Shape("hill", None, ShapeType.HEIGHTFIELD, (4.0, 2.0, 3.0), heights=[[0.0, 1.0]])
    with pytest.raises(fw.ModelError, match=r"shape 'hill': a height field needs finite heights .*\(1, 2\)"):
        free_bodies(Shape("ball", "body0", ShapeType.SPHERE, (0.1,)), field)
    low = Shape("hill", None, ShapeType.HEIGHTFIELD, (4.0, 2.0, 3.0), heights=[[0.0, 1.0], [-3.1, 0.0]])
    with pytest.raises(fw.ModelError, match=r"shape 'hill': a height field's base, 3 m below z = 0"):
        free_bodies(Shape("ball", "body0", ShapeType.SPHERE, (0.1,)), low)
