"""Tests of functions with inertias as arguments, against robots that have these inertias."""

from __future__ import annotations

import pickle
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight import identification
from featherweight.engine.function import CompiledFunction
from oracles.mechanisms import MECHANISMS
from oracles.mujoco_models import from_description
from oracles.robots import example, robot_of
from oracles.states import Array, assert_close, evaluated, random_states, state
from oracles.trees import TREES

ROBOTS = ("ur5", "anymal", "roots", "floating_inside", "spherical_below_prismatic", "coupled", "geared", "planar_leg", "own")


def robot_named(name: str) -> fw.Robot:
    return fw.build(MECHANISMS[name]()) if name in MECHANISMS else robot_of(name)


def drawn(robot: fw.Robot, count: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    parameters = identification.random_parameters(robot, count, mass=(0.5, 2.0), center=0.5, lengths=(0.7, 1.4), rng=rng)
    return parameters, robot.armature * rng.uniform(0.5, 2.0, (count, len(robot.armature))) + rng.uniform(0.0, 0.1)


def with_inertias(robot: fw.Robot, parameters: Array, armature: Array) -> fw.Robot:
    names = [j.name for j in robot.joints if j.type is not fw.JointType.FLOATING]
    return robot.with_inertial_parameters(parameters).with_armature(dict(zip(names, armature, strict=True)))


FUNCTIONS = {
    "inverse_dynamics": "qva",
    "forward_dynamics": "qva",
    "mass_matrix": "q",
    "inverse_mass_matrix": "q",
    "bias_force": "qv",
    "kinetic_energy": "qv",
    "potential_energy": "q",
    "center_of_mass_jacobian": "q",
    "coriolis_matrix": "qv",
    "centroidal_map_rate": "qv",
}


@pytest.mark.parametrize("name", ROBOTS)
def test_functions_are_those_of_robots_with_these_inertias(name: str) -> None:
    """Check each available algorithm."""
    robot = robot_named(name)
    x = random_states(robot, 2)
    parameters, armature = drawn(robot, 2)
    others = [with_inertias(robot, *pair) for pair in zip(parameters, armature, strict=True)]
    for member, letters in FUNCTIONS.items():
        function, arguments = getattr(robot, member), [getattr(x, k) for k in letters]
        for algorithm, own in robot.parametric(function).alternatives.items():
            assert [i.name for i in own.program.inputs][len(letters) :] == ["parameters", "armature"]
            (result,) = evaluated(own, *arguments, parameters, armature)
            of_others = [getattr(other, member).alternatives[algorithm] for other in others]
            reference = [evaluated(f, *(a[k : k + 1] for a in arguments))[0][0] for k, f in enumerate(of_others)]
            assert_close(result, np.array(reference))


@pytest.mark.parametrize("name", ["anymal", "planar_leg"])
def test_delassus_and_derivatives_of_robots_with_these_inertias(name: str) -> None:
    """Check that contacts, forces on bodies, and composed and differentiated functions use these inertias, and can be
    pickled.
    """
    robot = robot_named(name)
    contacts = [fw.BilateralContact(robot.frames[-1].name, kind="point")]
    x = random_states(robot, 1)
    parameters, armature = drawn(robot, 1)
    other = with_inertias(robot, parameters[0], armature[0])
    forces = np.random.default_rng(0).standard_normal((1, len(robot.bodies), 6))
    space, theirs = robot.operational_space(contacts), other.operational_space(contacts)
    pairs: list[tuple[CompiledFunction[Any], CompiledFunction[Any], list[Any]]] = [
        (space.delassus("ltl"), theirs.delassus("ltl"), [x.q]),
        (space.constrained_dynamics, theirs.constrained_dynamics, [*x]),
        (robot.forward_dynamics_derivatives, other.forward_dynamics_derivatives, [*x]),
        (robot.mass_matrix.derivative("q"), other.mass_matrix.derivative("q"), [x.q]),
        (robot.together(robot.mass_matrix, robot.bias_force), other.together(other.mass_matrix, other.bias_force), [x.q, x.v]),
    ]
    for function, reference, arguments in pairs:
        own = robot.parametric(function, armature=True)
        wanted = reference.alternatives.get(own.algorithm, reference)
        own = pickle.loads(pickle.dumps(own))
        for result, expected in zip(
            evaluated(own, *arguments, parameters, armature), evaluated(wanted, *arguments), strict=True
        ):
            assert_close(result, expected, 1e-9)
    own = robot.parametric(robot.inverse_dynamics).variant("external_forces")
    (tau,) = evaluated(own, *x, parameters, armature, forces)
    assert_close(tau, evaluated(other.inverse_dynamics.variant("external_forces"), *x, forces)[0])


def test_a_batch_of_robots_has_inertias_of_its_own() -> None:
    """Check compiled functions against MuJoCo's models of each robot; armatures that are not chosen stay."""
    description = TREES["spherical_below_prismatic"]()
    robot = fw.build(description)
    x = random_states(robot, 2)
    parameters, armature = drawn(robot, 2)
    tau = robot.parametric(robot.inverse_dynamics)(x.q, x.v, x.a, parameters, armature)
    for k in range(2):
        peer = from_description(description)
        _set_inertias(peer.model, robot, parameters[k], armature[k])
        assert_close(tau[k][None], peer.inverse_dynamics(x.q[k : k + 1], x.v[k : k + 1], x.a[k : k + 1]), 1e-9)
    first = robot.joints[0].name
    own = robot.parametric(robot.inverse_dynamics, armature=[first])
    other = robot.with_armature({first: 0.5}).with_inertial_parameters(parameters[0])
    assert_close(own(*x, parameters[0], [0.5]), other.inverse_dynamics(*x))


def _set_inertias(model: Any, robot: fw.Robot, parameters: Array, armature: Array) -> None:
    values = dict(zip([j.name for j in robot.joints], armature, strict=True))
    rows = [values[j.name] for j in robot.joints for _ in range(j.type.nv)]
    model.dof_armature[:] = rows
    for body, own in zip(robot.bodies, parameters, strict=True):
        m, c = own[0], own[1:4] / own[0]
        I = own[4:][[[0, 1, 3], [1, 2, 4], [3, 4, 5]]] - m * (c @ c * np.eye(3) - np.outer(c, c))
        moments, axes = np.linalg.eigh(I)
        axes[:, 2] *= np.linalg.det(axes)
        k = model.body(body.name).id
        model.body_mass[k], model.body_ipos[k], model.body_inertia[k] = m, c, moments
        mujoco.mju_mat2Quat(model.body_iquat[k], axes.ravel())
    mujoco.mj_setConst(model, mujoco.MjData(model))


def test_derivatives_by_parameters_are_the_regressor() -> None:
    """Check that those of forward dynamics agree with differences, too."""
    robot = example("ur5")
    x = state(robot, 0)
    given = robot.inertial_parameters, robot.armature + 0.1
    by = robot.parametric(robot.inverse_dynamics).derivative("parameters", "armature")
    Y, rotors = (y[0] for y in evaluated(by, *(np.array([y]) for y in (*x, *given))))
    assert_close(Y.reshape(1, 6, -1), evaluated(robot.inverse_dynamics_regressor, *(y[None] for y in x))[0])
    np.testing.assert_allclose(rotors, np.diag(x.a), atol=1e-12)
    dynamics = robot.parametric(robot.forward_dynamics)
    direction, h = np.random.default_rng(0).standard_normal(given[0].shape) * given[0], 1e-6
    moved = np.stack([given[0] + h * direction, given[0] - h * direction])
    (a,) = evaluated(dynamics, *(np.stack([y, y]) for y in x), moved, np.stack([given[1]] * 2))
    (slope,) = evaluated(dynamics.derivative("parameters"), *(y[None] for y in (*x, *given)))
    np.testing.assert_allclose(np.einsum("ijk,jk->i", slope[0], direction), (a[0] - a[1]) / (2 * h), rtol=1e-6, atol=1e-6)


def test_robots_that_differ_in_inertias_share_one_compilation() -> None:
    robot = example("ur5")
    other = with_inertias(robot, *(y[0] for y in drawn(robot, 1)))
    own, theirs = (r.parametric(r.mass_matrix).program.identity() for r in (robot, other))
    assert own == theirs
    kept, changed = (r.parametric(r.mass_matrix, armature=False).program.identity() for r in (robot, other))
    assert kept != changed


def test_bodies_and_joints_are_chosen() -> None:
    """Check a payload as the only choice: everything else becomes constant."""
    robot = example("ur5")
    x = state(robot, 0)
    parameters, armature = (y[0] for y in drawn(robot, 1))
    changed = robot.inertial_parameters
    changed[-1] = parameters[-1]
    whole = robot.parametric(robot.mass_matrix)
    last = robot.parametric(robot.mass_matrix, bodies=robot.bodies[-1].name, armature=False)
    (M,) = evaluated(last, x.q[None], parameters[None, -1:])
    assert_close(M, evaluated(robot.with_inertial_parameters(changed).mass_matrix, x.q[None])[0])
    assert last.operations.flops < 0.9 * whole.operations.flops
    rotors = robot.parametric(robot.mass_matrix, bodies=False)
    assert [i.name for i in rotors.program.inputs] == ["q", "armature"]
    (M,) = evaluated(rotors, x.q[None], armature[None])
    assert_close(M, evaluated(with_inertias(robot, robot.inertial_parameters, armature).mass_matrix, x.q[None])[0])
    assert robot.parametric(robot.mass_matrix, False, False) is robot.mass_matrix


def test_functions_of_the_motion_alone_stay_as_they_are() -> None:
    linkage = fw.build(MECHANISMS["planar_leg"]())
    assert isinstance(linkage, fw.ClosedRobot)
    for robot, function in (
        (linkage, linkage.residual),
        (linkage, linkage.spanning_velocity),
        (example("ur5"), example("ur5").frame_placement("tool0")),
        (example("ur5"), example("ur5").joint_jacobian),
    ):
        assert robot.parametric(function) is function


def test_what_cannot_have_inertias_as_arguments_is_refused() -> None:
    robot = example("ur5")
    with pytest.raises(ValueError, match="another robot"):
        robot.parametric(example("panda").mass_matrix)
    with pytest.raises(ValueError, match="no moving joint 'elbow'"):
        robot.parametric(robot.mass_matrix, armature=["elbow"])
    with pytest.raises(ValueError, match="no moving body 'hand'"):
        robot.parametric(robot.mass_matrix, ["hand"])
    with pytest.raises(ValueError, match="CenterOfMass"):
        robot.parametric(robot.contact_jacobian(fw.CenterOfMass()))
    rolled = example("ur5", "rolled")
    with pytest.raises(ValueError, match="rolled"):
        rolled.parametric(rolled.mass_matrix)
