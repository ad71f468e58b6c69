"""Tests of the conversion of a description to a model: merging, order, expansion, and errors."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from featherweight import (
    FrameTask,
    InverseKinematics,
    ModelWarning,
    NotDefinedError,
    Shape,
    ShapeType,
    Simulation,
    build,
    describe,
)
from featherweight.model.description import Description
from featherweight.model.expansion import build_model
from featherweight.model.generators import random_tree
from featherweight.model.model import Model
from featherweight.model.placement import AxialScrews, Line, axial_screws, common_normal_frame, frame_with_z
from featherweight.model.topology import Topology
from featherweight.model.tree import FLOATING, INNER, REVOLUTE
from featherweight.model.types import (
    WORLD,
    Body,
    Camera,
    Frame,
    Inertia,
    Joint,
    JointType,
    ModelError,
    Pose,
    Tendon,
    TendonPoint,
    TendonWrap,
    as_matrix,
    as_vector,
)

SOLID = Inertia(2.0, (0.1, 0.0, 0.0), (0.02, 0.0, 0.0, 0.03, 0.0, 0.04))


def described(*joints: Joint, bodies: dict[str, Inertia] | None = None, **more: Any) -> Description:
    names = dict.fromkeys([n for j in joints for n in (j.parent, j.child) if n not in ("world", None)])
    inertias = dict.fromkeys(names, SOLID) | (bodies or {})
    return Description("robot", "robot.file", tuple(Body(n, i) for n, i in inertias.items()), joints, **more)


def hinge(parent: str, child: str, **more: Any) -> Joint:
    return Joint(f"{parent}-{child}", JointType.REVOLUTE, parent, child, **more)


def weld(parent: str, child: str, at: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Joint:
    return Joint(f"{parent}-{child}", JointType.FIXED, parent, child, Pose(p=at))


def test_joints_are_in_depth_first_order_of_the_file() -> None:
    model = build_model(described(hinge("a", "b"), hinge("c", "d"), hinge("a", "c"), hinge("b", "e")))
    assert [j.child for j in model.joints] == ["b", "e", "c", "d"]
    assert model.topology.parent == (-1, 0, -1, 2)
    assert [j.parent for j in model.joints] == [None, "b", None, "c"]


def test_links_that_are_fixed_together_are_one_body_with_all_their_frames() -> None:
    fixed = described(
        hinge("base", "arm"), weld("arm", "hand", (0.0, 0.0, 1.0)), hinge("hand", "finger"), weld("finger", "tip"),
        frames=(Frame("nail", "tip", Pose(p=(0.0, 0.2, 0.0))),),
    )  # fmt: skip
    model = build_model(fixed)
    assert [b.links for b in model.bodies] == [("arm", "hand"), ("finger", "tip")]
    assert model.bodies[0].mass == 4.0
    assert model.bodies[0].center == pytest.approx((0.1, 0.0, 0.5))
    assert model.mass == 8.0
    frames = {f.name: f for f in model.frames}
    assert list(frames) == ["base", "arm", "hand", "finger", "tip", "nail"]
    assert frames["hand"].body == "arm"
    assert frames["hand"].placement.p == (0.0, 0.0, 1.0)
    assert frames["base"].body is None
    assert frames["nail"].placement.p == (0.0, 0.2, 0.0)


def test_a_joint_with_several_degrees_of_freedom_becomes_as_many_rows() -> None:
    model = build_model(described(hinge("a", "b")), base="floating")
    assert model.tree.parent == (-1, 0, 1, 2, 3, 4, 5)
    assert model.tree.axis == (3, 4, 5, 0, 1, 2, 2)
    assert model.tree.kind == (FLOATING, *[INNER] * 5, REVOLUTE)
    assert model.tree.first == (0, 0, 0, 0, 0, 0, 6)
    assert model.tree.last == (5, 5, 5, 5, 5, 5, 6)
    assert model.tree.mass == (0, 0, 0, 0, 0, 2.0, 2.0)
    assert (model.nq, model.nv) == (8, 7)
    assert model.joints[0].name == "root_joint"
    assert (model.joints[1].q_slice, model.joints[1].v_slice) == (slice(7, 8), slice(6, 7))


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 0, 0), (0, -1, 0), (0, 0, -1)])
def test_an_axis_along_a_coordinate_only_renames_axes(axis: Any) -> None:
    R = np.array(frame_with_z(axis))
    np.testing.assert_array_equal(R[:, 2], axis)
    np.testing.assert_array_equal(np.abs(R).sum(0), 1)
    assert np.linalg.det(R) == 1.0


AXES = [*np.random.default_rng(1).standard_normal((100, 3)), (1, 1, 0), (0, 1e-9, 1), (3, 0, -4), (1e-200, 0, 1), (0, 0, -1)]


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_any_axis_becomes_z(axis: Any) -> None:
    unit = np.asarray(axis, float) / np.linalg.norm(axis)
    R = np.array(frame_with_z(tuple(unit.tolist())))
    np.testing.assert_allclose(R[:, 2], unit, atol=1e-15)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(R) > 0


def placements() -> list[Pose]:
    rng = np.random.default_rng(2)
    right = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    rotations = [
        *Rotation.random(100, rng=rng).as_matrix(),
        np.eye(3),
        right,
        right.T,
        np.diag([1, -1, -1]),
        np.diag([-1, -1, 1]),
    ]
    rotations += [Rotation.from_rotvec([angle, 0, 0]).as_matrix() for angle in (1e-9, 1e-6, 1.5708, 3.14159)]
    origins = [*rng.standard_normal((len(rotations) - 2, 3)), (0, 0, 0), (0, 0.3, 0)]
    return [Pose(as_matrix(R), as_vector(p)) for R, p in zip(rotations, origins, strict=True)]


def rotation_of(w: AxialScrews) -> np.ndarray[Any, Any]:
    """Return Rz(yaw) Rx(roll) Rz(twist)."""

    def about_z(c: float, s: float) -> np.ndarray[Any, Any]:
        return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])

    c, s = w.roll
    return about_z(*w.yaw) @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) @ about_z(*w.twist)


@pytest.mark.parametrize("placement", placements(), ids=str)
def test_any_placement_is_a_way_of_one_axis_at_a_time(placement: Pose) -> None:
    w = axial_screws(placement)
    R = rotation_of(w)
    np.testing.assert_allclose(R, placement.R, atol=4e-15)
    np.testing.assert_allclose(w.base + R @ (0, 0, w.slide), placement.p, atol=4e-14)


def test_two_axes_are_two_screws_apart() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        points, directions = rng.standard_normal((2, 2, 3))
        axes = [
            Line(tuple(p.tolist()), tuple((u / np.linalg.norm(u)).tolist())) for p, u in zip(points, directions, strict=True)
        ]
        frame = common_normal_frame(axes[0], axes[1])
        np.testing.assert_allclose(np.array(frame.R)[:, 2], axes[0].direction, atol=1e-14)
        u = np.array(frame.R).T @ axes[1].direction
        p = np.array(frame.R).T @ (np.array(axes[1].point) - frame.p)
        assert abs(u[0]) < 1e-14
        foot = p - u * (p @ u - p[0] * u[0]) / (1 - u[0] ** 2)
        np.testing.assert_allclose(foot[1:], 0.0, atol=1e-12)


@pytest.mark.parametrize("tilt", [0.0, 1e-12, 1e-8, 1e-6, 1e-4, 0.03])
def test_frames_stay_near_axes_that_are_nearly_parallel(tilt: float) -> None:
    """Check that frames stay near: the common normal of such axes is ill-conditioned, and far from the body its inertia
    loses digits.
    """
    axes = [
        Line((0.1, 0.2, 0.3), (0.0, 0.0, 1.0)),
        Line((0.5, -0.1, 0.2), (math.sin(tilt), 0.0, math.cos(tilt))),
    ]
    for one, other in (axes, axes[::-1]):
        frame = common_normal_frame(one, other)
        np.testing.assert_allclose(np.array(frame.R)[:, 2], one.direction, atol=1e-14)
        assert np.linalg.norm(np.subtract(frame.p, one.point)) < 10.0


def test_a_model_is_the_same_whatever_the_order_of_bodies_in_the_file() -> None:
    d = random_tree(20, rng=3)
    other = replace(d, bodies=d.bodies[::-1])
    assert build_model(d).tree == build_model(other).tree


REFUSED = {
    "no mass at all": (described(hinge("a", "b"), bodies={"b": Inertia()}), ["joints move b without moving any mass"]),
    "no mass along": (
        described(Joint("slide", JointType.PRISMATIC, "a", "b"), bodies={"b": Inertia(0.0, rotational=SOLID.rotational)}),
        ["joints move b without moving any mass"],
    ),
    "a point on the axis": (
        described(hinge("a", "b"), bodies={"b": Inertia(1.0, (0.0, 0.0, 0.3))}),
        ["joints move b without moving any mass"],
    ),
    "a hinge on a hinge with the same axis": (
        described(hinge("a", "b"), hinge("b", "c"), bodies={"b": Inertia()}),
        ["joints move b without moving any mass"],
    ),
    "a point that a ball joint turns about itself": (
        described(hinge("a", "b"), Joint("ball", JointType.SPHERICAL, "b", "c"), bodies={"c": Inertia(1.0, (0.1, 0.2, 0.0))}),
        ["joints move c without moving any mass"],
    ),
    "an indefinite inertia": (
        described(hinge("a", "b"), bodies={"b": Inertia(1.0, rotational=(1.0, 1.1, 0.0, 1.0, 0.0, 1.0))}),
        ["'b'", "principal moment -0.1"],
    ),
    "an indefinite inertia of merged links": (
        described(hinge("a", "b"), weld("b", "c"), bodies={"c": Inertia(1.0, rotational=(-0.5, 0.0, 0.0, 1.0, 0.0, 1.0))}),
        ["'b'", "links b, c", "principal moment"],
    ),
}


@pytest.mark.parametrize(("description", "words"), REFUSED.values(), ids=REFUSED)
def test_robots_whose_dynamics_are_not_defined_are_built_with_a_warning(description: Description, words: list[str]) -> None:
    with pytest.warns(ModelWarning) as told:
        robot = build(description)
    for word in ["robot.file", *words]:
        assert any(word in str(x.message) for x in told)
    np.testing.assert_allclose(robot.frame_placement("b")(robot.neutral())[3], (0.0, 0.0, 0.0, 1.0))
    if robot.model.massless:
        with pytest.raises(NotDefinedError, match=f"mass_matrix needs the masses .* none: {', '.join(robot.model.massless)}"):
            robot.mass_matrix  # noqa: B018
    else:
        assert np.linalg.eigvalsh(robot.mass_matrix(robot.neutral())).min() > 0.0


def test_bodies_without_mass_between_joints_and_rotors_on_the_axis_are_fine() -> None:
    gimbal = described(hinge("a", "b", axis=(1.0, 0.0, 0.0)), hinge("b", "c", axis=(0.0, 1.0, 0.0)), bodies={"b": Inertia()})
    assert build(gimbal).nv == 2
    rotor = described(hinge("a", "b", armature=0.1), bodies={"b": Inertia(1.0, (0.0, 0.0, 0.3))})
    assert build(rotor).nv == 1


def test_a_flying_base_without_mass_is_refused_if_it_can_turn_alone() -> None:
    arm = described(hinge("base", "arm"), bodies={"base": Inertia()})
    assert build(arm).nv == 1
    with pytest.warns(ModelWarning, match="joints move base without moving any mass"):
        build(arm, "floating")


def test_a_link_with_a_flawed_inertia_may_be_part_of_a_sound_body() -> None:
    flawed = Inertia(1e-6, rotational=(-3e-8, 0.0, 0.0, 1e-8, 0.0, 1e-8))
    assert build_model(described(hinge("a", "b"), weld("b", "c"), bodies={"c": flawed})).nv == 1


@pytest.mark.parametrize(("base", "gravity", "words"), [
    ("flying", None, 'must be "fixed" or "floating"'),
    ("fixed", (0.0, 1.0), "three finite numbers"),
    ("fixed", (0.0, 0.0, math.nan), "three finite numbers"),
])  # fmt: skip
def test_options_that_mean_nothing_are_refused(base: str, gravity: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        build_model(described(hinge("a", "b")), base, gravity)


def test_a_free_flyer_needs_one_root_that_does_not_move_yet() -> None:
    two = described(hinge("world", "a"), hinge("world", "b"))
    with pytest.raises(ModelError, match=r"'a' \(revolute\), 'b' \(revolute\)"):
        build_model(two, "floating")
    held = described(Joint("held", JointType.FIXED, "world", "a"), hinge("a", "b"))
    assert [j.name for j in build_model(held, "floating").joints] == ["root_joint", "a-b"]
    free = described(Joint("free", JointType.FLOATING, "world", "a"))
    assert build_model(free, "floating") == build_model(free)


def test_a_link_may_be_called_world() -> None:
    model: Model = build_model(described(weld("world", "base"), hinge("base", "arm"), bodies={"world": Inertia()}))
    assert [j.child for j in model.joints] == ["arm"]


def test_a_link_called_world_moves_where_a_joint_moves_it() -> None:
    base = described(weld("world", "base"), hinge("base", "arm"), bodies={"world": SOLID})
    base = replace(base, frames=(Frame("mark", "world"), Frame("ground", None)))
    flying = build_model(base, "floating")
    assert [(j.parent, j.child) for j in flying.joints] == [(None, "world"), ("world", "arm")]
    assert {f.name: f.body for f in flying.frames} == {
        "world": "world", "base": "world", "mark": "world", "arm": "arm", "ground": None
    }  # fmt: skip
    tip = build_model(described(hinge("base", "world"), hinge("world", "arm"), bodies={"world": SOLID}))
    assert [(j.parent, j.child) for j in tip.joints] == [(None, "world"), ("world", "arm")]
    hung = build_model(described(Joint("pin", JointType.REVOLUTE, None, "world"), bodies={"world": SOLID}))
    assert [(j.parent, j.child) for j in hung.joints] == [(None, "world")]


@pytest.mark.parametrize(
    ("inertia", "words"),
    [
        (SOLID._replace(mass=5e-324), "body 'b': the mass .* too small"),
        (SOLID._replace(mass=-1.0), "body 'b': the mass is negative"),
        (SOLID._replace(center=(1e160, 0.0, 0.0)), "body 'b' has the number 1e[+]160"),
        (SOLID._replace(rotational=(1e308, 0.0, 0.0, 1e308, 0.0, 1e308)), "body 'b' has the number 1e[+]308"),
        (SOLID._replace(mass=math.nan), "body 'b' has the number nan"),
    ],
)
def test_inertias_that_nothing_can_be_computed_of_are_refused(inertia: Inertia, words: str) -> None:
    with pytest.raises(ModelError, match=f"robot.file: {words}"):
        build_model(described(hinge("a", "b"), bodies={"b": inertia}))


@pytest.mark.parametrize("more", [{"lower": math.nan}, {"lower": 1.0, "upper": 0.0}, {"zero": 1e31}, {"upper": 1e308}])
def test_numbers_of_joints_that_nothing_can_be_computed_of_are_refused(more: dict[str, float]) -> None:
    with pytest.raises(ModelError, match=r"robot\.file: joint 'a-b'"):
        build_model(described(hinge("a", "b", **more)))


def test_inertia_that_is_too_little_to_divide_by_is_none() -> None:
    dust = Inertia(1.0, rotational=(1e-320, 0.0, 0.0, 1e-320, 0.0, 1e-320))
    with pytest.warns(ModelWarning, match="joints move b without moving any mass"):
        build(described(hinge("a", "b"), bodies={"b": dust}))


@pytest.mark.parametrize("execution", ["auto", "rolled", "interpreted"])
def test_a_robot_that_cannot_move_has_frames(execution: str) -> None:
    with pytest.warns(ModelWarning, match=r"no joint of the robot moves.*floating"):
        robot = build(described(weld("a", "b")), execution=execution)
    assert (robot.nq, robot.nv) == (0, 0)
    b = described(weld("a", "b")).joints[0]
    np.testing.assert_array_equal(robot.frame_placement("b")(np.zeros((2, 0)))[1, :3, 3], b.placement.p)
    assert robot.frame_jacobian("b")(robot.neutral()).shape == (6, 0) and not robot.in_collision(robot.neutral())
    assert robot.mass_matrix([]).shape == (0, 0)
    with pytest.raises(NotDefinedError, match="Simulation needs a joint that moves"):
        Simulation(robot)
    if execution != "rolled":
        with pytest.raises(NotDefinedError, match="InverseKinematics needs a joint that moves"):
            InverseKinematics(robot, FrameTask("b"))
    with pytest.raises(NotDefinedError, match="solve_mass_matrix needs a joint that moves"):
        robot.solve_mass_matrix([], np.zeros((0, 2)))
    with pytest.raises(ModelError, match=r"no joint of the robot moves.*floating"):
        build_model(described(weld("a", "b")), strict=True)
    assert build_model(described(weld("a", "b")), "floating").nv == 6


def test_gravity_is_the_file_s_unless_given() -> None:
    d = described(hinge("a", "b"), gravity=(0.0, 0.0, -1.62))
    assert build_model(d).tree.gravity == (0.0, 0.0, -1.62)
    assert build_model(d, gravity=(1, 2, 3)).tree.gravity == (1.0, 2.0, 3.0)


# topology


def test_topology_follows_from_the_parents() -> None:
    t = Topology([-1, 0, 1, 1, 3, 0, -1])
    assert t.depth == (1, 2, 3, 3, 4, 2, 1)
    assert t.children == ((1, 5), (2, 3), (), (4,), (), (), ())
    assert t.roots == (0, 6)
    assert t.support(4) == (0, 1, 3, 4)
    assert t.subtree(1) == (1, 2, 3, 4)
    assert t.subtree(6) == (6,)


@pytest.mark.parametrize("parent", [[0], [-2], [-1, 1], [-1, 2, 0]])
def test_what_is_no_parent_array_is_refused(parent: list[int]) -> None:
    with pytest.raises(ValueError, match="parent"):
        Topology(parent)


def test_a_mesh_of_nothing_is_refused_with_its_name() -> None:
    d = describe([Body("b")], [], shapes=[Shape("lump", "b", ShapeType.MESH, (1.0, 1.0, 1.0))])
    with pytest.raises(ModelError, match=r"shape 'lump': a mesh has a file or vertices; give it path= or vertices="):
        build(d)


TWICE = Pose(R=((2.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 2.0)))
MIRRORED = Pose(R=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0)))


@pytest.mark.parametrize("placement", [TWICE, MIRRORED])
def test_placements_are_rotations(placement: Pose) -> None:
    box = Shape("box", "b", ShapeType.BOX, (1.0, 1.0, 1.0), placement)
    camera = Camera("eye", "b", placement)
    joint = Joint("j", JointType.FIXED, WORLD, "b", placement)
    body = Body("b", Inertia(1.0))
    ends = TendonPoint("b", (0.0, 0.0, 0.0)), TendonPoint("b", (1.0, 0.0, 0.0))
    wrapped = Tendon("t", path=(ends[0], TendonWrap("b", placement, 0.1), ends[1]))
    for element, d in (
        ("shape 'box'", describe([body], [], shapes=[box])),
        ("camera 'eye'", replace(describe([body], []), cameras=(camera,))),
        ("joint 'j'", describe([body], [joint])),
        ("tendon 't'", replace(describe([body], []), tendons=(wrapped,))),
    ):
        with pytest.raises(ModelError, match=f"{element}: the matrix of its placement is not a rotation"):
            build(d)


def test_rotations_may_be_rounded_to_four_digits() -> None:
    turned = Pose(R=((0.866, -0.5, 0.0), (0.5, 0.866, 0.0), (0.0, 0.0, 1.0)))
    box = Shape("box", "b", ShapeType.BOX, (1.0, 1.0, 1.0), turned)
    assert build(describe([Body("b", SOLID)], [], shapes=[box]), "floating").shapes[0].placement == turned


def test_vertices_are_finite() -> None:
    vertices = [[0.0, 0.0, 0.0], [1.0, math.nan, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    d = describe([Body("b")], [], shapes=[Shape("lump", "b", ShapeType.MESH, (1.0, 1.0, 1.0), vertices=vertices)])
    with pytest.raises(ModelError, match=r"shape 'lump': its vertices are not all finite numbers"):
        build(d)
