"""Tests of USD files: supported content, errors, and reports of unused content."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.types import JointType, LoopType, Pose

pxr = pytest.importorskip("pxr", reason="usd-core has no wheel for this Python or processor")

from pxr import Usd, UsdUtils  # noqa: E402

from model.formats.usd.usd_text import ARM, GROUND, body, file, joint, placed, prim, read  # noqa: E402

HINGE = joint("Revolute", "j", "a", "b", 'uniform token physics:axis = "Z"')


def built(d: Any) -> fw.Robot:
    return fw.build(d, execution="interpreted")


# --- stages


def test_units_gravity_and_time_step_are_those_of_the_stage(tmp_path: Path) -> None:
    scene = prim("PhysicsScene", "s", "vector3f physics:gravityDirection = (3, 0, 4)\nfloat physics:gravityMagnitude = 500\n"
                 "uniform int newton:timeStepsPerSecond = 500")  # fmt: skip
    limits = 'float physics:lowerLimit = -10\nuniform token physics:axis = "Y"\npoint3f physics:localPos0 = (0, 0, 30)'
    d = read(ARM + joint("Prismatic", "j", "a", "b", limits), tmp_path, "kilogramsPerUnit = 0.1", scene)
    assert d.gravity == pytest.approx((3.0, 0.0, 4.0)) and d.timestep == 0.002
    assert d.joints[1].lower == pytest.approx(-0.1) and d.joints[1].upper == math.inf
    assert d.joints[1].placement.p == pytest.approx((0.0, 0.0, 0.3)) and d.joints[1].axis == (0.0, 1.0, 0.0)
    assert d.bodies[1].inertia.mass == pytest.approx(0.2)
    assert d.bodies[1].inertia.rotational == pytest.approx((3e-6, 0, 0, 4e-6, 0, 5e-6))
    assert dict(d.unused)["lengths without metersPerUnit"] == "read as centimetres"


def test_without_a_scene_gravity_is_that_of_the_earth_down_the_up_axis(tmp_path: Path) -> None:
    assert read(ARM + HINGE, tmp_path).gravity == (0.0, 0.0, -9.81)
    assert read(ARM + HINGE, tmp_path, "metersPerUnit = 0.01").gravity == (0.0, -9.81, 0.0)
    still = prim("PhysicsScene", "s", "bool newton:gravityEnabled = false")
    d = read(ARM + HINGE, tmp_path, "metersPerUnit = 1", still + still.replace('"s"', '"t"'))
    assert not any(d.gravity) and dict(d.unused) == {"physics scenes but for the first": "/t"}


@pytest.mark.parametrize("suffix", [".usd", ".usdc", ".usdz"])
def test_binary_files_and_packages_are_read(suffix: str, tmp_path: Path) -> None:
    text = file(ARM + HINGE, tmp_path)
    stage = Usd.Stage.Open(str(text))
    path = tmp_path / f"packed{suffix}"
    if suffix == ".usdz":
        assert UsdUtils.CreateNewUsdzPackage(str(text), str(path))
    else:
        stage.Export(str(path))
    assert built(fw.read(path)).mass_matrix(np.zeros(1)) == pytest.approx(0.5)
    assert built(fw.read(path, folder=tmp_path)).nv == 1


def test_numbers_of_a_text_are_the_decimals_that_stand_there(tmp_path: Path) -> None:
    d = read(ARM + HINGE, tmp_path)
    assert d.bodies[1].inertia.rotational == (0.3, 0.0, 0.0, 0.4, 0.0, 0.5)


def test_names_are_those_of_prims_or_paths_where_several_have_one(tmp_path: Path) -> None:
    inside = prim("Xform", "left", body("hand")) + prim("Xform", "right", body("hand")) + body("torso")
    d = read(inside, tmp_path)
    assert [b.name for b in d.bodies] == ["r/left/hand", "r/right/hand", "torso"]
    assert [j.name for j in d.joints] == ["root_joint", "root_joint_2", "root_joint_3"]


def test_instances_are_read_each(tmp_path: Path) -> None:
    ball = prim("Sphere", "ball", "double radius = 0.1", "PhysicsCollisionAPI")
    prototype = prim("Xform", "limb", body("link", ball)).replace("def Xform", "class Xform", 1)
    inside = prim("Xform", "one", "", more="instanceable = true\nprepend inherits = </limb>")
    inside += prim("Xform", "two", placed(1, 0, 0), more="instanceable = true\nprepend inherits = </limb>")
    inside += joint("Fixed", "j", "one/link", "two/link", "point3f physics:localPos0 = (1, 0, 0)")
    d = read(inside, tmp_path, outside=prototype)
    assert [b.name for b in d.bodies] == ["r/one/link", "r/two/link"] and [s.body for s in d.shapes] == [
        b.name for b in d.bodies
    ]
    assert built(d).mass == 4.0 and d.unused == ()


def test_scales_above_bodies_scale_their_frames(tmp_path: Path) -> None:
    """Check a robot in other units, below a prim that scales it."""
    ball = prim("Sphere", "ball", "double radius = 1\n" + placed(2, 0, 0), "PhysicsCollisionAPI")
    small = body("b", ball, "float physics:mass = 1\npoint3f physics:centerOfMass = (0, 1, 0)")
    at = 'point3f physics:localPos0 = (0, 0, 5)\npoint3f physics:localPos1 = (1, 0, 0)\nuniform token physics:axis = "Z"'
    inside = prim("Xform", "scaled", placed(0, 0, 0, scale="0.1, 0.1, 0.1") + body("a") + small)
    inside += joint("Fixed", "g", "", "scaled/a") + joint("Revolute", "j", "scaled/a", "scaled/b", at)
    d = read(inside, tmp_path)
    assert d.joints[1].placement.p == pytest.approx((-0.1, 0.0, 0.5)) and d.joints[1].anchor == pytest.approx((0.1, 0.0, 0.0))
    assert d.shapes[0].size == pytest.approx((0.1,)) and d.shapes[0].placement.p == pytest.approx((0.2, 0.0, 0.0))
    assert d.bodies[1].inertia.center == pytest.approx((0.0, 0.1, 0.0))
    # inertia of the ball, moved to the given centre
    assert d.bodies[1].inertia.rotational[0] == pytest.approx(0.4 * 0.01 + 0.01)


def test_joints_may_name_prims_below_bodies(tmp_path: Path) -> None:
    flange = prim("Xform", "flange", placed(0, 0, 0.5, "0.5, 0.5, 0.5, 0.5"))
    inside = (
        body("a", flange) + body("b") + GROUND + joint("Revolute", "j", "a/flange", "b", 'uniform token physics:axis = "X"')
    )
    placement = read(inside, tmp_path).joints[1].placement
    assert placement.p == (0.0, 0.0, 0.5) and placement.R[1][0] == 1.0  # x of the flange is y of a


# --- joints


def test_a_body_that_no_joint_holds_flies_freely_from_where_it_lies(tmp_path: Path) -> None:
    d = read(body("a", placed(1, 2, 3, "0.5, 0.5, 0.5, 0.5")), tmp_path)
    assert d.joints[0].type is JointType.FLOATING
    assert dict(d.configurations[0].coordinates)["root_joint"] == pytest.approx((1, 2, 3, 0.5, 0.5, 0.5, 0.5))


def test_the_root_of_an_articulation_is_the_one_that_flies(tmp_path: Path) -> None:
    for a, b, root in (("", "", "a"), ("", "PhysicsArticulationRootAPI", "b")):
        d = read(body("a", schemas=a) + body("b", schemas=b) + joint("Revolute", "j", "a", "b"), tmp_path)
        assert [j.child for j in d.joints if j.type is JointType.FLOATING] == [root]
        assert built(d).nv == 7


def test_a_joint_that_is_disabled_is_listed_and_a_kinematic_body_stays(tmp_path: Path) -> None:
    d = read(ARM + joint("Revolute", "j", "a", "b", "bool physics:jointEnabled = false"), tmp_path)
    assert built(d).nv == 6 and dict(d.unused) == {"joints that are disabled": "/r/j"}
    d = read(body("a", "bool physics:kinematicEnabled = true\n" + placed(0, 0, 1)) + body("b") + HINGE, tmp_path)
    assert d.joints[0].placement.p == (0.0, 0.0, 1.0) and built(d).nv == 1
    assert dict(d.unused)["kinematic bodies, which stay where they are"] == "/r/a"


def limits(**axes: str) -> tuple[str, str]:
    """Return the text of a joint, and its schemas, with limits "low, high" of axes."""
    pairs = {tag: text.split(",") for tag, text in axes.items()}
    text = "".join(f"float limit:{t}:physics:low = {a}\nfloat limit:{t}:physics:high = {b}\n" for t, (a, b) in pairs.items())
    return text, " ".join(f"PhysicsLimitAPI:{tag}" for tag in axes)


LOCKED = dict.fromkeys(("transX", "transY", "transZ", "rotX", "rotY", "rotZ"), "1, -1")


def free(*tags: str, **axes: str) -> str:
    """Return a generic joint between a and b whose other axes are locked."""
    return joint("", "j", "a", "b", *limits(**{t: x for t, x in LOCKED.items() if t not in (*tags, *axes)}, **axes))


@pytest.mark.parametrize(
    ("inside", "types", "axes"),
    [
        (free(), ["fixed"], []),
        (free("transY"), ["prismatic"], [(0, 1, 0)]),
        (free(rotX="-90, 180"), ["revolute"], [(1, 0, 0)]),
        (free("rotX", "rotY"), ["continuous", "continuous"], [(1, 0, 0), (0, 1, 0)]),
        (free("rotX", "rotY", "rotZ"), ["spherical"], []),
        (free("transZ", "rotZ"), ["prismatic", "continuous"], [(0, 0, 1), (0, 0, 1)]),
        (free("transX", "rotX", "rotY", "rotZ"), ["prismatic", "spherical"], [(1, 0, 0)]),
    ],
)
def test_generic_joints_become_a_joint_for_each_axis_that_is_free(
    inside: str, types: list[str], axes: Any, tmp_path: Path
) -> None:
    d = read(ARM + inside, tmp_path)
    assert [str(j.type) for j in d.joints[1:]] == types
    assert [j.axis for j in d.joints[1:] if j.type.nv == 1] == axes
    if types != ["fixed"]:
        assert built(d).nv == sum(JointType(t).nv for t in types)
    if len(types) == 1:
        assert d.joints[1].name == "j"
    if "revolute" in types:
        assert (d.joints[1].lower, d.joints[1].upper) == (-math.pi / 2, math.pi)


def test_a_generic_joint_that_leaves_all_free_is_none(tmp_path: Path) -> None:
    assert built(read(ARM + joint("", "j", "a", "b"), tmp_path)).nv == 6


def test_swing_limits_are_listed(tmp_path: Path) -> None:
    cone = joint("Spherical", "j", "a", "b", "float physics:coneAngle0Limit = 30")
    for inside in (cone, free("rotX", "rotY", rotZ="-10, 10")):
        assert dict(read(ARM + inside, tmp_path).unused) == {"swing limits of ball joints": "/r/j"}


def test_a_distance_joint_is_refused_or_listed(tmp_path: Path) -> None:
    for inside in (joint("Distance", "j", "a", "b"), joint("", "j", "a", "b", *limits(distance="0, 1"))):
        with pytest.raises(fw.ModelError, match=r"</r/j>: limits of the distance"):
            read(ARM + inside, tmp_path, unsupported="raise")
        with pytest.warns(fw.ModelWarning, match="left out: </r/j>"):
            d = read(ARM + inside, tmp_path)
        assert dict(d.unused)["not supported, and left out"] == "</r/j>" and built(d).nv == 6


# --- loops

CHAIN = (
    "".join(body(name) for name in "abc")
    + GROUND
    + HINGE
    + joint("Revolute", "k", "b", "c", 'uniform token physics:axis = "Z"')
)


@pytest.mark.parametrize(
    ("closing", "kind"),
    [
        (joint("Fixed", "l", "a", "c"), LoopType.WELD),
        (joint("Spherical", "l", "a", "c"), LoopType.SPHERICAL),
        (joint("Prismatic", "l", "a", "c"), LoopType.PRISMATIC),
        (joint("Revolute", "l", "a", "c", 'uniform token physics:axis = "Z"'), LoopType.REVOLUTE),
        (free("rotX", "rotY").replace('"j"', '"l"').replace("/r/b", "/r/c"), LoopType.UNIVERSAL),
        (free("rotX", "transX").replace('"j"', '"l"').replace("/r/b", "/r/c"), LoopType.CYLINDRICAL),
        (free("transX", "transY", "rotZ").replace('"j"', '"l"').replace("/r/b", "/r/c"), LoopType.PLANAR),
    ],
)
def test_a_joint_of_bodies_that_others_connect_closes_a_loop(closing: str, kind: LoopType, tmp_path: Path) -> None:
    (loop,) = read(CHAIN + closing, tmp_path).loops
    assert (loop.name, loop.type, loop.predecessor, loop.successor) == ("l", kind, "a", "c")


def test_excluded_joints_close_loops_rather_than_others(tmp_path: Path) -> None:
    first = joint("Revolute", "first", "a", "c", "bool physics:excludeFromArticulation = true\nfloat physics:upperLimit = 1")
    d = read("".join(body(name) for name in "abc") + first + CHAIN[CHAIN.index("def PhysicsFixedJoint") :], tmp_path)
    assert [loop.name for loop in d.loops] == ["first"]
    assert dict(d.unused) == {"limits, forces and drives of joints that close loops": "/r/first"}


def test_two_joints_of_the_same_bodies_hold_at_once_and_are_listed(tmp_path: Path) -> None:
    d = read(ARM + HINGE + joint("Spherical", "ball", "b", "a"), tmp_path)
    assert [loop.name for loop in d.loops] == ["ball"]
    assert dict(d.unused) == {"joints of two bodies that have another joint, with which they hold at once": "/r/ball"}
    assert built(d).nv == 1


def test_a_four_bar_linkage_moves_as_one(tmp_path: Path) -> None:
    """Check a parallelogram, whose coupler keeps its direction."""
    z, up = 'uniform token physics:axis = "Z"\n', "point3f physics:localPos{} = ({}, {}, 0)\n"
    inside = "".join(body(name, placed(x, y, 0)) for name, x, y in (("a", 0, 0), ("b", 0, 0), ("c", 2, 0), ("d", 0, 1)))
    inside += GROUND + joint("Revolute", "p", "a", "b", z) + joint("Revolute", "q", "a", "c", z + up.format(0, 2, 0))
    inside += joint("Revolute", "s", "b", "d", z + up.format(0, 0, 1))
    inside += joint("Revolute", "t", "c", "d", z + up.format(0, 0, 1) + up.format(1, 2, 0))
    robot = fw.load(file(inside, tmp_path), execution="interpreted")
    assert robot.nv == 1 and {*robot.report()} == {"redundant constraints"}  # it is planar
    q = robot.integrate(robot.neutral(), np.array([0.4]))
    np.testing.assert_allclose(robot.frame_placement("d")(q)[:3, :3], np.eye(3), atol=1e-7)


def test_a_loop_that_no_loop_joint_is_is_refused(tmp_path: Path) -> None:
    closing = free("transX", "rotY").replace('"j"', '"l"').replace("/r/b", "/r/c")
    with pytest.raises(fw.ModelError, match=r"</r/l>: a joint that closes a loop and leaves transX, rotY free"):
        read(CHAIN + closing, tmp_path, unsupported="raise")


def test_joints_whose_bodies_lie_elsewhere_are_listed(tmp_path: Path) -> None:
    inside = body("a") + body("b", placed(0, 0, 0.01)) + GROUND + HINGE
    assert dict(read(inside, tmp_path).unused) == {"joints whose bodies lie elsewhere in the file, and start at zero": "/r/j"}


# --- drives, forces, couplings


def drive(tag: str, **numbers: Any) -> str:
    return "".join(f"float drive:{tag}:physics:{key} = {value}\n" for key, value in numbers.items())


@pytest.mark.parametrize(
    ("numbers", "gain", "bias", "target"),
    [
        ({"stiffness": 2, "damping": 1, "targetPosition": 3}, 2, (0, -2, -1), 3),
        ({"stiffness": 2, "damping": 1, "targetVelocity": 3}, 2, (3, -2, -1), 0),
        ({"damping": 2, "targetVelocity": 4}, 2, (0, 0, -2), 4),
        ({}, 1, (0, 0, 0), 0),
    ],
)
def test_drives_are_actuators(numbers: Any, gain: float, bias: Any, target: float, tmp_path: Path) -> None:
    """Check that drives of sliding joints keep their numbers, and that those of rotating joints are per degree."""
    text = drive("linear", maxForce=5, **numbers)
    d = read(ARM + joint("Prismatic", "j", "a", "b", text, "PhysicsDriveAPI:linear"), tmp_path)
    (actuator,) = d.actuators
    assert (actuator.gain, actuator.bias, actuator.force, actuator.joint) == (gain, bias, (-5, 5), "j")
    assert sum(u for c in d.configurations for _, u in c.controls) == target and d.joints[1].effort == 5
    text = drive("angular", **numbers)
    d = read(ARM + joint("Revolute", "j", "a", "b", text, "PhysicsDriveAPI:angular"), tmp_path)
    per = 180 / math.pi
    assert d.actuators[0].gain == pytest.approx(gain * per if numbers else 1)
    assert d.actuators[0].bias == pytest.approx((bias[0], bias[1] * per, bias[2] * per))
    assert sum(u for c in d.configurations for _, u in c.controls) == pytest.approx(target / per)


def test_a_drive_of_accelerations_and_one_of_a_ball_joint_are_listed_as_not_simulated(tmp_path: Path) -> None:
    text = 'uniform token drive:angular:physics:type = "acceleration"'
    revolute = joint("Revolute", "j", "a", "b", text, "PhysicsDriveAPI:angular")
    d = read(ARM + revolute, tmp_path)
    assert d.actuators == () and dict(d.unused) == {"actuators": "a drive of accelerations at /r/j"}
    generic = free("rotX", "rotY", "rotZ").replace("apiSchemas = [", 'apiSchemas = ["PhysicsDriveAPI:rotY", ')
    assert dict(read(ARM + generic, tmp_path).unused) == {"actuators": "rotY of the ball joint /r/j"}
    with pytest.warns(fw.ModelWarning, match="actuators"):
        fw.Simulation(built(d), 0.01)


def test_attributes_of_physx_are_read_too(tmp_path: Path) -> None:
    text = "float physxJoint:armature = 0.5\nfloat physxJoint:maxJointVelocity = 180\nfloat physxJoint:jointFriction = 0.1"
    text += "\nfloat physxJointAxis:angular:dynamicFrictionEffort = 3"
    d = read(ARM + joint("Revolute", "j", "a", "b", text), tmp_path)
    assert (d.joints[1].armature, d.joints[1].velocity, d.joints[1].dry_friction) == (0.5, pytest.approx(math.pi), 3.0)
    assert dict(d.unused) == {"attributes that are not used": "physxJoint:jointFriction (/r/j)"}
    floats = read(body("a", "bool physxRigidBody:disableGravity = true"), tmp_path)
    assert floats.bodies[0].gravity_compensation == 1.0


NEWTON = "rel newton:mimicJoint = </r/j>\nfloat newton:mimicCoef1 = -2\nfloat newton:mimicCoef0 = 90"
PHYSX = "rel physxMimicJoint:rotZ:referenceJoint = </r/j>\nfloat physxMimicJoint:rotZ:gearing = 2\n"
PHYSX += "float physxMimicJoint:rotZ:offset = -90"


@pytest.mark.parametrize("text", [NEWTON, PHYSX])
def test_mimic_joints_follow_others(text: str, tmp_path: Path) -> None:
    inside = CHAIN.replace('</r/c>\nuniform token physics:axis = "Z"', f'</r/c>\nuniform token physics:axis = "Z"\n{text}')
    (coupling,) = read(inside, tmp_path).couplings
    assert (coupling.joint, coupling.terms, coupling.offset) == ("k", (("j", (-2.0,)),), pytest.approx(math.pi / 2))
    d = read(inside, tmp_path, mimic="independent")
    assert d.couplings == () and dict(d.unused) == {"couplings": "mimic of /r/k, taken as independent"}
    with pytest.raises(fw.ModelError, match="</r/k>: it mimics another joint"):
        read(inside, tmp_path, mimic="refuse")
    for spoiled, words in (
        (inside.replace("mimicCoef1 = -2", "mimicCoef1 = inf").replace("gearing = 2", "gearing = inf"), "is infinite"),
        (inside.replace("Joint = </r/j>", "Joint = </r/ground>"), "</r/ground>"),
        (inside.replace("PhysicsRevoluteJoint", "PhysicsPrismaticJoint", 1), "it mimics </r/j>, and not both slide"),
        (inside.replace("Joint = </r/j>", "Joint = </r/x>"), "</r/x>, and there is no such prim"),
    ):
        with pytest.raises(fw.ModelError, match=f"</r/k>: .*{words}"):
            read(spoiled, tmp_path, unsupported="raise")
        with pytest.warns(fw.ModelWarning, match=f"</r/k>: .*{words}.* so it moves independently"):
            assert read(spoiled, tmp_path).couplings == ()


def test_sites_are_frames(tmp_path: Path) -> None:
    site = prim("Sphere", "tip", placed(0, 0, 0.5), "NewtonSiteAPI")
    d = read(body("a", site), tmp_path)
    assert [(f.name, f.body, f.placement) for f in d.frames] == [("tip", "a", Pose(p=(0.0, 0.0, 0.5)))]
    assert d.shapes == () and d.unused == ()


# --- refusals and reports


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (prim("Xform", "x"), "no prim has an enabled PhysicsRigidBodyAPI"),
        (ARM + joint("Revolute", "j", "a", "nothing"), "</r/j>: physics:body1 is </r/nothing>, and there is no"),
        (ARM + joint("Revolute", "j", "a", "a"), "</r/j>: it connects body 'a' to itself"),
        (ARM + joint("Revolute", "j", "a", "", "rel physics:body1 = [</r/a>, </r/b>]"),
         "</r/j>: physics:body1 has 2 targets"),
        (ARM + joint("Revolute", "j", "a", "b", "float physics:lowerLimit = 1\nfloat physics:upperLimit = -1"), "</r/j>: the"),
        (ARM + joint("Revolute", "j", "a", "b", 'uniform token physics:axis = "W"'), "</r/j>: its axis is 'W'"),
        (ARM + joint("Revolute", "j", "a", "b", "quatf physics:localRot0 = (0, 0, 0, 0)"), "</r/j>: the quaternion is zero"),
        (ARM + joint("Revolute", "j", "a", "b", "float newton:armature = -1"), "</r/j>: the newton:armature is negative (-1)"),
        (ARM + joint("Revolute", "j", "a", "b", drive("angular", stiffness=-1), "PhysicsDriveAPI:angular"), "</r/j>: stif"),
        (body("a", mass="float physics:mass = -1"), "</r/a>: physics:mass is -1"),
        (body("a", mass="float physics:mass = nan"), "</r/a>: physics:mass is not a number"),
        (body("a", mass='string physics:mass = "2"'), "</r/a>: physics:mass is 2, not a number"),
        (body("a", mass="float[] physics:mass = [1, 2]"), "</r/a>: physics:mass is [1, 2], not a number"),
        (body("a", mass="float2 physics:diagonalInertia = (1, 2)"), "</r/a>: physics:diagonalInertia is (1, 2), not numbers"),
        (body("a", 'asset physics:centerOfMass = @a.png@', mass=""), "</r/a>: physics:centerOfMass is"),
        (ARM + joint("Revolute", "j", "a", "b", 'string newton:armature = "1"'), "</r/j>: newton:armature is 1, not a number"),
        (body("a", prim("Mesh", "m", "string points = 'x'\nint[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0, 1, 2]",
                        "PhysicsCollisionAPI")), "its points or faces are not lists of numbers"),
        (body("a", mass="float physics:mass = 1"), "</r/a>: its diagonalInertia is not given"),
        (body("a", mass="float3 physics:diagonalInertia = (1, 1, 1)"), "</r/a>: its mass is not given"),
        (body("a", mass="float physics:mass = 1\nfloat3 physics:diagonalInertia = (1, -1, 1)"), "</r/a>: the moment of its"),
        (body("a", placed(0, 0, 0, scale="1, -1, 1")), "</r/a>: its axes are mirrored"),
        (prim("Xform", "x", placed(0, 0, 0, scale="1, 2, 1") + body("a", placed(0, 0, 0, "0.9, 0.1, 0.2, 0.3"))),
         "</r/x/a>: its axes are sheared"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_prim(inside: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(fw.ModelError) as caught:
        read(inside, tmp_path, unsupported="raise")
    assert words in str(caught.value) and str(tmp_path / "robot.usda") in str(caught.value)


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (ARM + joint("Revolute", "j", "a", "nothing"), "</r/j>: physics:body1 is .*, so the joint is left out"),
        (ARM + joint("Revolute", "j", "a", "b", 'uniform token physics:axis = "W"'), "axis is 'W', so the joint is left out"),
        (ARM + joint("Revolute", "j", "a", "b", "quatf physics:localRot0 = (0, 0, 0, 0)"), "the joint is without a rotation"),
        (ARM + joint("Revolute", "j", "a", "b", drive("angular", stiffness=-1), "PhysicsDriveAPI:angular"), "drive is left"),
        (ARM + joint("Revolute", "j", "a", "b", 'string newton:armature = "1"'), "armature is 1, not a number, left out"),
        (ARM + joint("Revolute", "j", "a", "b", "float newton:armature = nan"), "newton:armature is nan, left out"),
        (body("a", mass="float physics:mass = -1"), "</r/a>: physics:mass is -1, taken as not known"),
        (body("a", mass='string physics:mass = "2"'), "</r/a>: physics:mass is 2, not a number, taken as not known"),
        (body("a", 'asset physics:centerOfMass = @a.png@', mass=""), "</r/a>: physics:centerOfMass is .*, left out"),
        (body("a", mass="float2 physics:diagonalInertia = (1, 2)"), "physics:diagonalInertia is .*, left out"),
    ],
)  # fmt: skip
def test_stages_that_usd_opens_are_read_and_errors_are_reported(inside: str, words: str, tmp_path: Path) -> None:
    with pytest.warns(fw.ModelWarning, match=words):
        assert len(read(inside, tmp_path).bodies) >= 1


def test_units_and_axes_of_the_world_are_checked(tmp_path: Path) -> None:
    for meta, words in (
        ("metersPerUnit = 0", "metersPerUnit and kilogramsPerUnit are not from"),
        ("metersPerUnit = 1\nkilogramsPerUnit = 1e300", "metersPerUnit and kilogramsPerUnit are not from"),
        ('metersPerUnit = 1\nupAxis = "W"', "its upAxis is 'W'"),
    ):
        with pytest.raises(fw.ModelError, match=words):
            read(ARM + HINGE, tmp_path, meta)


def test_damaged_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "bad.usda").write_text("#usda 1.0\ndef Xform {")
    with pytest.raises(fw.ModelError, match=r"bad\.usda: USD cannot open it"):
        fw.read(tmp_path / "bad.usda")
    (tmp_path / "bad.usdc").write_bytes(b"PXR-USDC" + bytes(100))
    with pytest.raises(fw.ModelError, match=r"bad\.usdc: USD cannot open it"):
        fw.read(tmp_path / "bad.usdc")
    with pytest.raises(FileNotFoundError):
        fw.read(tmp_path / "none.usd")


DEVICE = os.devnull
VARIANT = 'variantSet "v" = {\n"a" (references = @device.usda@</x>) {\n}\n}'
ELSEWHERE = "references = @{}@</x>"


@pytest.mark.skipif(os.name == "nt", reason="this system has no devices in folders")
@pytest.mark.parametrize(
    ("meta", "outside"),
    [
        ("subLayers = [@device.usda@]", ""),
        ("subLayers = [@inner.usda@]", ""),
        ('expressionVariables = {string N = "device"}\nsubLayers = [@`"${N}.usda"`@]', ""),
        ("", prim("Xform", "x", more=ELSEWHERE.format("device.usda"))),
        ("", prim("Xform", "x", more=ELSEWHERE.format("device.usdz").replace("references", "payload"))),
        (
            "",
            prim(
                "Xform",
                "x",
                'variantSet "v" = {\n"a" (references = @device.usda@</x>) {\n}\n}',
                more='prepend variantSets = "v"',
            ),
        ),
    ],
)
def test_layers_that_are_devices_are_refused(meta: str, outside: str, tmp_path: Path) -> None:
    """Check all ways in which a file names another; a pipe would let USD wait without end."""
    for name in ("device.usda", "device.usdz"):
        os.symlink(DEVICE, tmp_path / name)
    (tmp_path / "inner.usda").write_text("#usda 1.0\n(subLayers = [@device.usda@])\n")
    with pytest.raises(fw.ModelError, match=r"robot\.usda: @.*\.usda@: .*device\.usd[az]: a pipe, socket or device"):
        read(ARM + HINGE, tmp_path, f"metersPerUnit = 1\n{meta}", outside)


def test_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = file(ARM + HINGE, tmp_path)
    for old, new in ((b"Xform", b"X\xf6rm"), (b'"a"', b'"a\xf6"'), (b"physics:mass", b"physics:m\xf6ss")):
        (tmp_path / "bad.usda").write_bytes(path.read_bytes().replace(old, new))
        with pytest.raises(fw.ModelError, match=r"bad\.usda"):
            fw.read(tmp_path / "bad.usda")


def test_errors_of_usd_after_a_file_is_open_name_the_file(tmp_path: Path) -> None:
    """Check an operation that USD refuses when it computes a placement."""
    path = file(body("a", placed(1, 2, 3).replace("translate", "translaqe")), tmp_path)
    with pytest.raises(fw.ModelError, match=r"robot\.usda: USD cannot open it \(Invalid xform opType token 'translaqe"):
        fw.read(path)


def test_a_missing_reference_is_refused_or_listed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    inside = ARM + HINGE + prim("Xform", "gripper", more="prepend references = @gripper.usda@")
    with pytest.raises(fw.ModelError, match=r"robot\.usda: USD cannot compose it .*@gripper\.usda@"):
        read(inside, tmp_path, unsupported="raise")
    with pytest.warns(fw.ModelWarning, match="left out"):
        assert built(read(inside, tmp_path)).nv == 1
    assert "gripper" in capfd.readouterr().err  # USD also warns


def test_what_nothing_uses_is_listed_with_its_prims(tmp_path: Path) -> None:
    inside = ARM + HINGE.replace("rel", "float newton:limitStiffness = 5\nfloat newton:limitDamping = 0\nrel", 1)
    inside += prim("PhysxPhysicsGearJoint", "gear") + prim("SphereLight", "lamp") + prim("Camera", "eye")
    d = read(inside + prim("PhysicsScene", "s", "int physxScene:solverType = 1"), tmp_path)
    assert dict(d.unused) == {
        "physics that is not used": "PhysxPhysicsGearJoint /r/gear",
        "prims that are not used": "SphereLight /r/lamp, Camera /r/eye",
        "attributes that are not used": "newton:limitStiffness (/r/j)",
    }
    with pytest.warns(fw.ModelWarning, match="physics that is not used"):
        fw.Simulation(built(d), 0.01)


def test_initial_velocities_and_disabled_bodies_are_listed(tmp_path: Path) -> None:
    inside = body("a", "vector3f physics:velocity = (1, 0, 0)") + body("b", "bool physics:rigidBodyEnabled = false")
    assert dict(read(inside, tmp_path).unused) == {
        "initial velocities": "/r/a",
        "rigid bodies that are disabled, and are part of the ground": "/r/b",
        "attributes that are not used": "physics:diagonalInertia (/r/b); physics:mass (/r/b)",
    }


def test_without_usd_core_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file(ARM + HINGE, tmp_path)
    for name in [m for m in sys.modules if m.startswith("featherweight.model.formats.usd.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(ImportError, match=r"reading USD needs the package usd-core: pip install .*\[usd\]"):
        fw.read(path)
