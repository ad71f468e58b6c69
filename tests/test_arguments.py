"""Tests of wrong arguments, which errors name together with what to write, and of other forms of right ones."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

fw: Any = importlib.import_module("featherweight")  # untyped, because type checkers would report the mistakes

ARM = Path(__file__).parents[1] / "docs" / "files" / "arm.urdf"
REVOLUTE = fw.JointType.REVOLUTE
TURNED = fw.Pose(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)), (0.1, 0.2, 0.3))
HOMOGENEOUS = np.array([[0.0, -1.0, 0.0, 0.1], [1.0, 0.0, 0.0, 0.2], [0.0, 0.0, 1.0, 0.3], [0.0, 0.0, 0.0, 1.0]])
ROUND = fw.Inertia(1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))


@functools.cache
def arm() -> Any:
    return fw.load(ARM, execution="interpreted")


@functools.cache
def described() -> Any:
    return fw.read(ARM)


def still(robots: int | None = None) -> Any:
    q = None if robots is None else np.zeros((robots, 7))
    return fw.Simulation(arm(), q=q, joints=fw.JointOptions(limits=False, dry_friction=False))


def planned() -> Any:
    ocp = fw.OptimalControl(arm(), knots=3)
    ocp.add(fw.Effort())
    return ocp


def hung(*shapes: Any, **of_joint: Any) -> Any:
    """Return a pendulum."""
    joint = fw.Joint(**{"name": "j", "type": "revolute", "parent": None, "child": "b", **of_joint})
    return fw.describe([fw.Body("b", ROUND)], [joint], shapes=shapes)


SLIPS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    # parts of descriptions
    "a number for three": (
        lambda: fw.Shape("s", "b", "box", 0.2),
        ValueError,
        "Shape 's': size must be a list of numbers; got 0.2",
    ),
    "a matrix for a pose": (
        lambda: fw.Pose(HOMOGENEOUS),
        ValueError,
        "a homogeneous matrix becomes a pose by featherweight.Pose.of",
    ),
    "half a matrix for an inertia": (
        lambda: fw.Inertia(1.0, (0, 0, 0), np.eye(2)),
        ValueError,
        "Inertia: rotational must be six numbers (xx, xy, xz, yy, yz, zz) or a symmetric matrix (3, 3); got",
    ),
    "a matrix that is no inertia": (
        lambda: fw.Inertia(1.0, (0, 0, 0), HOMOGENEOUS[:3, :3]),
        ValueError,
        "which is not symmetric",
    ),
    "a type of MuJoCo": (
        lambda: fw.Joint("j", "hinge", None, "b"),
        ValueError,
        "Joint 'j': type must be one of revolute, continuous, prismatic, fixed, floating, spherical, planar; got 'hinge'; "
        "here it is 'revolute'",
    ),
    "a misspelled type": (lambda: fw.Joint("j", "revolut", None, "b"), ValueError, "got 'revolut' (is it 'revolute'?)"),
    "a matrix that is no placement": (
        lambda: fw.Joint("j", REVOLUTE, None, "b", np.eye(3)),
        ValueError,
        "Joint 'j': placement must be a homogeneous matrix (4, 4) of finite numbers, or a featherweight.Pose; got an array",
    ),
    "a body for its name": (
        lambda: fw.Joint("j", REVOLUTE, fw.Body("a"), "b"),
        TypeError,
        "Joint 'j': parent must be a name (text) or None; got Body 'a'",
    ),
    "words for a number": (lambda: fw.Body("b", fw.Inertia("2 kg")), ValueError, "Inertia: mass must be a number; got '2 kg'"),
    "a number for an inertia": (
        lambda: fw.Body("b", 2.0),
        TypeError,
        "Body 'b': inertia must be a featherweight.Inertia(...); got 2.0",
    ),
    "a part's other argument": (
        lambda: fw.Inertia(mas=1.0),
        TypeError,
        "Inertia has no argument 'mas' (is it 'mass'?); it takes",
    ),
    "a part without arguments": (lambda: fw.Joint("j"), TypeError, "missing: type, parent, child"),
    "a replaced field": (lambda: fw.Pose()._replace(p=1.0), ValueError, "Pose: p must be 3 numbers; got 1.0"),
    "a body outside of a list": (
        lambda: fw.describe(fw.Body("b"), []),
        TypeError,
        "describe: bodies must be a list of featherweight.Body(...); got Body 'b'; put it into a list",
    ),
    "a joint among bodies": (
        lambda: fw.describe([fw.Body("b"), "b"], []),
        TypeError,
        "got [Body(name='b'",
    ),
    # what only a whole description tells
    "an axis of no direction": (lambda: fw.build(hung(axis=(0, 0, 0))), fw.ModelError, "joint 'j': its axis is zero; give the"),
    "a number that is none": (
        lambda: fw.build(hung(damping=math.nan)),
        fw.ModelError,
        "joint 'j' has the number nan in its damping; give numbers within",
    ),
    "a skewed placement": (
        lambda: fw.build(hung(placement=fw.Pose(np.diag([1.0, 2.0, 1.0])))),
        fw.ModelError,
        "joint 'j': the matrix of its placement is not a rotation",
    ),
    "a mirrored placement": (
        lambda: fw.build(hung(placement=fw.Pose(np.diag([1.0, 1.0, -1.0])))),
        fw.ModelError,
        "joint 'j': the matrix of its placement is not a rotation",
    ),
    "a size of another shape": (
        lambda: fw.build(hung(fw.Shape("s", "b", "sphere", (1.0, 2.0, 3.0)))),
        fw.ModelError,
        "shape 's': the size of a sphere is (radius); got (1.0, 2.0, 3.0)",
    ),
    "a negative size": (
        lambda: fw.build(hung(fw.Shape("s", "b", "sphere", (-1.0,)))),
        fw.ModelError,
        "shape 's': the size (-1.0,) has a negative number",
    ),
    "a negative friction of a shape": (
        lambda: hung(fw.Shape("s", "b", "sphere", (1.0,), friction=-1.0)),
        fw.ModelError,
        "shape 's': the friction is negative (-1); give zero or more",
    ),
    # changes of descriptions
    "no mass for a payload": (
        lambda: described().with_payload("hand", "1 kg"),
        TypeError,
        "Description.with_payload: inertia must be a featherweight.Inertia(...), or the mass of a point in kg; got '1 kg'",
    ),
    "a body for a payload": (lambda: described().with_payload("hand", fw.Body("b")), TypeError, "write its .inertia"),
    "joints without positions": (
        lambda: described().locked(["elbow"]),
        TypeError,
        "Description.locked: positions must be a dict {joint: position}, such as {'elbow': 0.5}; got ['elbow']",
    ),
    "a robot to attach": (lambda: described().attached(arm()), TypeError, "give the description from which it was built"),
    "an unknown change": (
        lambda: described().with_payload("hand", mass=1.0),
        TypeError,
        "Description.with_payload has no argument 'mass'; it takes on, inertia",
    ),
    # robots
    "a seed by another name": (
        lambda: arm().random_configuration(seed=0),
        TypeError,
        "Robot.random_configuration has no argument 'seed'; here it is rng; it takes rng, size",
    ),
    "a seed that is none": (
        lambda: arm().random_configuration(rng=0.5),
        ValueError,
        "rng must be a seed (a whole number of at least 0)",
    ),
    "armatures of some joints": (
        lambda: arm().with_armature([0.1, 0.2]),
        ValueError,
        "arm: armature must be a number or 7 numbers, one for each of shoulder_yaw",
    ),
    "a negative armature": (
        lambda: arm().with_armature(-0.1),
        ValueError,
        "Robot.with_armature: armature must be a finite number, zero or more, or such",
    ),
    "a contact's misspelled kind": (
        lambda: fw.BilateralContact("hand", kind="pint"),
        ValueError,
        "got 'pint' (is it 'point'?)",
    ),
    "a description for a robot": (
        lambda: fw.InverseKinematics(described(), fw.FrameTask("hand")),
        TypeError,
        "build it: featherweight.build(description)",
    ),
    "joints for their names": (
        lambda: fw.PostureTask(joints=arm().joints),
        TypeError,
        "PostureTask: joints must be a list of names or None; got",
    ),
    "NaN for a target": (
        lambda: fw.InverseKinematics(arm(), fw.FrameTask("hand")).solve(np.full((4, 4), math.nan)),
        ValueError,
        "finite",
    ),
    # simulations
    "a number for a normal": (lambda: fw.Plane(0.8), ValueError, "Plane: point must be three finite numbers; got 0.8"),
    "a number for a position": (
        lambda: fw.ContactPoint("sole", 0.1),
        ValueError,
        "ContactPoint 'sole': position must be three finite numbers; got 0.1",
    ),
    "a length for an interval": (
        lambda: fw.HeightField(np.zeros((2, 2)), 1.0, 1.0),
        ValueError,
        "HeightField: x must be (first, last) with last above first; got 1.0",
    ),
    "a truth value for a number": (
        lambda: fw.ContactOptions(friction=True),
        ValueError,
        "ContactOptions: friction must be a finite number, zero or more; got True",
    ),
    "a number for a truth value": (
        lambda: fw.JointOptions(passive=0),
        TypeError,
        "JointOptions: passive must be True or False; got 0",
    ),
    "gains of some joints": (
        lambda: fw.Simulation(arm(), actuators=fw.PD([1.0, 2.0, 3.0])),
        ValueError,
        "PD: stiffness has 3 numbers, but there are 7 driven joints",
    ),
    "a gain in words": (
        lambda: fw.PD("stiff"),
        ValueError,
        "PD: stiffness must be a finite number, zero or more, or one for each joint",
    ),
    "a negative factor": (
        lambda: still(2).vary(friction=-1),
        ValueError,
        "vary: friction must be finite factors, zero or more; got -1",
    ),
    "a factor that is none": (
        lambda: still(2).vary(friction=True),
        ValueError,
        "vary: friction must be an array of real numbers",
    ),
    "a negative armature of all": (
        lambda: still(2).vary(armature=-1.0),
        ValueError,
        "vary: armature must be zero or more; got -1",
    ),
    "a time in words": (lambda: fw.SimulationError("it fell", "now"), ValueError, "SimulationError: time must be a number"),
    "factors of other robots": (
        lambda: still(2).vary(friction=[1.0, 2.0, 3.0]),
        ValueError,
        "vary: friction must be a number or have shape (2,) or (2, 1) for 2 robots; got shape (3,)",
    ),
    "a misspelled factor": (
        lambda: still(2).vary(frction=1.0),
        TypeError,
        "no argument 'frction' (is it 'friction'?); it takes",
    ),
    "a duration in words": (lambda: still().run("1 s"), ValueError, "duration must be zero or more seconds; got '1 s'"),
    # paths
    "a step below zero": (
        lambda: fw.paths.quintic(arm(), np.zeros((2, 7)), [0.0, 1.0]).trajectory(-0.1),
        ValueError,
        "JointPath.trajectory: dt must be a positive number; got -0.1",
    ),
    "times in words": (
        lambda: fw.paths.quintic(arm(), np.zeros((2, 7)), "01"),
        ValueError,
        "quintic: times must be an array of real",
    ),
    # optimal control
    "a misspelled option of a problem": (
        lambda: fw.OptimalControl(arm(), knot=3),
        TypeError,
        "OptimalControl has no argument 'knot' (is it 'knots'?); it takes",
    ),
    "a horizon": (lambda: fw.OptimalControl(arm(), horizon=3), TypeError, "no argument 'horizon'; here it is knots; it takes"),
    "a misspelled option of a solution": (
        lambda: planned().solve(np.zeros(7), iteration=3),
        TypeError,
        "OptimalControl.solve has no argument 'iteration' (is it 'iterations'?); it takes",
    ),
    "half a knot": (lambda: fw.OptimalControl(arm(), knots=2.5), ValueError, "knots"),
    "a name for a term": (lambda: planned().add("effort"), TypeError, "'effort'"),
    "a knot beyond the end": (
        lambda: planned().add(fw.JointVelocities(), at=[9]),
        ValueError,
        "knots of 'joint velocities' must be numbers from 0 to 3; got [9]",
    ),
    # generators
    "half a link": (lambda: fw.robots.geared_chain(1.5), ValueError, "geared_chain: n must be a whole number; got 1.5"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_wrong_argument_is_told_with_what_to_write(name: str) -> None:
    call, kind, said = SLIPS[name]
    with pytest.raises(kind) as error:
        call()
    assert said in str(error.value)


FORMS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {  # other forms, and those that are documented first
    "lists and arrays": (
        lambda: fw.Inertia(np.float64(2.0), np.array([1.0, 0.0, 0.0]), [1.0, 0.0, 0.0, 2.0, 0.0, 3.0]),
        lambda: fw.Inertia(2.0, (1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 2.0, 0.0, 3.0)),
    ),
    "a matrix of inertia": (
        lambda: fw.Inertia(1.0, rotational=np.array([[1.0, 0.1, 0.2], [0.1, 2.0, 0.3], [0.2, 0.3, 3.0]])),
        lambda: fw.Inertia(1.0, rotational=(1.0, 0.1, 0.2, 2.0, 0.3, 3.0)),
    ),
    "arrays of a pose": (lambda: fw.Pose(HOMOGENEOUS[:3, :3], HOMOGENEOUS[:3, 3]), lambda: TURNED),
    "a matrix of placement": (
        lambda: fw.Joint("j", REVOLUTE, None, "b", HOMOGENEOUS),
        lambda: fw.Joint("j", REVOLUTE, None, "b", TURNED),
    ),
    "rows of placement": (lambda: fw.Frame("f", "b", HOMOGENEOUS.tolist()), lambda: fw.Frame("f", "b", TURNED)),
    "a matrix beside a pose": (lambda: TURNED @ HOMOGENEOUS, lambda: TURNED @ TURNED),
    "the text of a type": (lambda: fw.Joint("j", "revolute", None, "b"), lambda: fw.Joint("j", REVOLUTE, None, "b")),
    "a direction": (
        lambda: fw.Joint("j", REVOLUTE, None, "b", axis=[0, 3, 4]),
        lambda: fw.Joint("j", REVOLUTE, None, "b", axis=(0.0, 0.6, 0.8)),
    ),
    "a gear": (
        lambda: fw.Coupling("c", "a", {"b": 2.0}),
        lambda: fw.Coupling("c", "a", (("b", (2.0,)),)),
    ),
    "coordinates by name": (
        lambda: fw.Configuration("home", {"a": 1.0, "b": [0.0, 1.0]}),
        lambda: fw.Configuration("home", (("a", (1.0,)), ("b", (0.0, 1.0)))),
    ),
    "a point mass": (
        lambda: described().with_payload("hand", 0.5),
        lambda: described().with_payload("hand", fw.Inertia(0.5)),
    ),
    "several bodies": (
        lambda: described().without(["hand"]),
        lambda: described().without("hand"),
    ),
    "an armature for all": (
        lambda: arm().with_armature(0.1).armature.tolist(),
        lambda: arm().with_armature({j.name: 0.1 for j in arm().joints}).armature.tolist(),
    ),
    "armatures in order": (
        lambda: arm().with_armature(np.arange(7)).armature.tolist(),
        lambda: arm().with_armature({j.name: float(k) for k, j in enumerate(arm().joints)}).armature.tolist(),
    ),
    "gains in order": (
        lambda: fw.PD(np.arange(7.0), [1.0] * 7).actuators(arm().joints),
        lambda: fw.PD({j.name: float(k) for k, j in enumerate(arm().joints)}, 1.0).actuators(arm().joints),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_another_form_of_an_argument_gives_the_same(name: str) -> None:
    other, plain = FORMS[name]
    assert other() == plain()


def test_a_factor_for_all_robots_is_one_for_each() -> None:
    one, each = still(3), still(3)
    one.vary(damping=2.0, gains=3.0, armature=0.5)
    each.vary(damping=[2.0] * 3, gains=[3.0] * 3, armature=np.full((3, 7), 0.5))
    tau = np.ones((3, 7))
    for sim in (one, each):
        sim.step(tau)
    assert one.v.tolist() == each.v.tolist()


def test_numbers_that_are_converted_are_python_s() -> None:
    inertia = fw.Inertia(np.float32(0.5), np.zeros(3, np.float32), np.eye(3, dtype=int))
    assert {type(x) for x in (inertia.mass, *inertia.center, *inertia.rotational)} <= {float, int}
    assert hash(inertia) == hash(fw.Inertia(0.5, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))


def test_parts_of_files_are_as_they_are() -> None:
    """Check that directions of unit length and their zeros keep their bits."""
    axis = (0.6, -0.0, 0.8)
    joint = fw.Joint("j", REVOLUTE, None, "b", TURNED, axis)
    assert joint.axis is axis and joint.placement is TURNED
