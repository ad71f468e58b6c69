"""Tests of dynamics that are linear in parameters: regressors, columns of joints, and robots with other inertias."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.generators import chain, from_parents, random_tree
from oracles.mechanisms import MECHANISMS
from oracles.robots import example, robot_of
from oracles.states import assert_close, evaluated, random_states, state

KINDS = ("revolute", "prismatic", "spherical", "floating", "planar")
CLOSED = ("four_bar", "planar_leg", "crank_and_rocker", "platform", "coupled", "geared", "own", "tello")
HEAVY = fw.Inertia(1.0, (0.1, 0.0, 0.2), (0.2, 0.01, 0.0, 0.3, 0.0, 0.25))


def without_armature(robot: fw.Robot) -> fw.Robot:
    return robot.with_armature({j.name: 0.0 for j in robot.joints})


@pytest.mark.parametrize(
    "name", ["four_bar", "planar_leg", "crank_and_rocker", "platform", "coupled", "geared", "own", "tello"]
)
def test_regressors_of_mechanisms_give_forces_and_energies(name: str) -> None:
    """Check physically impossible inertias, too, because dynamics are linear."""
    given = fw.build(MECHANISMS[name]())
    robot = without_armature(given)
    x = random_states(robot, 2)
    pi = robot.inertial_parameters.ravel()
    (Y,) = evaluated(robot.inverse_dynamics_regressor, *x)
    assert_close(Y @ pi, evaluated(robot.inverse_dynamics, *x)[0])
    (y,) = evaluated(robot.kinetic_energy_regressor, x.q, x.v)
    assert_close(y @ pi, evaluated(robot.kinetic_energy, x.q, x.v)[0])
    (y,) = evaluated(robot.potential_energy_regressor, x.q)
    np.testing.assert_allclose(y @ pi, evaluated(robot.potential_energy, x.q)[0], atol=1e-11 * 9.81 * robot.mass)
    changed = robot.inertial_parameters * np.random.default_rng(0).uniform(1.0, 1.3, (len(robot.bodies), 1))
    other = robot.with_inertial_parameters(changed)
    assert_close(Y @ changed.ravel(), evaluated(other.inverse_dynamics, *x)[0])


@pytest.mark.parametrize("name", ["geared", "crank_and_rocker", "roots"])
def test_columns_of_joints(name: str) -> None:
    """Check that the columns of armature complete those of bodies, and that friction's columns give its power."""
    robot = fw.build(MECHANISMS[name]()) if name in MECHANISMS else robot_of(name)
    robot = robot.with_armature({j.name: 0.1 + 0.1 * k for k, j in enumerate(robot.joints)})
    x = random_states(robot, 3)
    everything = [j.name for j in robot.joints]
    whole = robot.extended_regressor(joint_friction=everything, armature=everything)
    (Y,) = evaluated(whole.function, *x)
    n = len(everything)
    assert len(whole.names) == len(whole.values) == Y.shape[2] == 10 * len(robot.bodies) + 3 * n
    driven = whole.values.copy()
    driven[-3 * n : -n] = 0.0
    assert_close(Y @ driven, evaluated(robot.inverse_dynamics, *x)[0])
    speeds = evaluated(robot.spanning_velocity, x.q, x.v)[0] if isinstance(robot, fw.ClosedRobot) else x.v
    of_joint = {j.name: speeds[:, j.v_slice] for j in robot.model.joints}
    for k, joint in enumerate(everything):
        viscous, dry = (np.einsum("si,si->s", x.v, Y[..., at + k - 3 * n]) for at in (0, n))
        np.testing.assert_allclose(viscous, np.sum(of_joint[joint] ** 2, axis=1), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(dry, np.sum(np.abs(of_joint[joint]), axis=1), rtol=1e-9, atol=1e-12)


def test_friction_at_rest_is_none() -> None:
    """Check both precisions; a tiny velocity has the full dry friction."""
    robot = example("ur5")
    regressor = robot.extended_regressor(joint_friction=["wrist_1_joint"])
    assert regressor.names[-2:] == ("wrist_1_joint.viscous", "wrist_1_joint.coulomb")
    q, v = robot.neutral(), np.zeros(6)
    for kind in (np.float64, np.float32):
        assert (regressor.function(q.astype(kind), v.astype(kind), v.astype(kind))[:, -2:] == 0.0).all()
    v[3] = -1e-7
    np.testing.assert_allclose(regressor.function(q, v, v)[:, -1], [0, 0, 0, -1, 0, 0], atol=1e-12)


def test_joints_are_chosen() -> None:
    robot = example("hyq")
    count = 10 * len(robot.bodies)
    assert len(robot.extended_regressor().names) == count
    assert robot.extended_regressor().function is robot.inverse_dynamics_regressor
    whole = robot.extended_regressor(joint_friction=True, armature=True)
    assert len(whole.names) == count + 3 * 12  # the floating base has none
    assert robot.extended_regressor(joint_friction=True, armature=True).function is whole.function
    with pytest.raises(ValueError, match=r"hyq has no moving joint 'knee'; it has root_joint, lf_haa_joint"):
        robot.extended_regressor(armature=["knee"])


def test_interpreted_and_rolled() -> None:
    """Check each execution of a tree with every kind of joint, whose bodies do not lie where their joints do."""
    made = random_tree(9, rng=4, joint_types=KINDS, masses=(0.3, 3.0))
    traced, rolled, plain = (fw.build(made, execution=e) for e in ("traced", "rolled", "interpreted"))
    x = random_states(traced, 5)
    (whole,) = evaluated(traced.extended_regressor(True, True).function, *x)
    for robot in (rolled, plain):
        assert_close(robot.extended_regressor(True, True).function(*x), whole)
    assert_close(plain.inverse_dynamics_regressor(*x), whole[..., : 10 * len(plain.bodies)])
    assert_close(plain.kinetic_energy_regressor(x.q, x.v), evaluated(traced.kinetic_energy_regressor, x.q, x.v)[0])
    assert_close(plain.potential_energy_regressor(x.q), evaluated(traced.potential_energy_regressor, x.q)[0])


def test_large_trees_keep_their_loops() -> None:
    robot = fw.build(chain(250, rng=1))
    assert robot.inverse_dynamics_regressor.execution == "rolled"
    whole = robot.extended_regressor(armature=True)
    x = state(robot, 0, 0.1)
    forces = whole.function(*x) @ whole.values
    expected = robot.inverse_dynamics(*x)
    np.testing.assert_allclose(forces, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_derivatives_of_a_regressor() -> None:
    robot = robot_of("mixed_3")
    x = state(robot, 2)
    pi, step = robot.inertial_parameters.ravel(), 1e-6
    by_q = np.moveaxis(robot.inverse_dynamics_regressor.derivative("q")(*x), -1, 0)
    for k, unit in enumerate(step * np.eye(robot.nv)):
        ahead, behind = (robot.inverse_dynamics(robot.integrate(x.q, d), x.v, x.a) for d in (unit, -unit))
        np.testing.assert_allclose(by_q[k] @ pi, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-5)


# robots with other inertias


def test_the_robot_with_its_own_parameters_is_the_same() -> None:
    for name in ("hyq", "anchored"):
        robot = robot_of(name)
        assert robot.with_inertial_parameters(robot.inertial_parameters.ravel()).model == robot.model


def test_parameters_come_back() -> None:
    """Check that masses, centres and totals change, and that the original robot does not."""
    robot = robot_of("fixed_between")
    before = robot.inertial_parameters
    wanted = before.copy()
    wanted[2] *= 1.7
    other = robot.with_inertial_parameters(wanted)
    np.testing.assert_allclose(other.inertial_parameters, wanted, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(robot.inertial_parameters, before)
    assert other.mass == pytest.approx(wanted[:, 0].sum())
    np.testing.assert_allclose(other.bodies[2].center, robot.bodies[2].center, atol=1e-14)
    x = random_states(robot, 2)
    (Y,) = evaluated(robot.inverse_dynamics_regressor, *x)
    assert_close(Y @ wanted.ravel(), evaluated(other.inverse_dynamics, *x)[0])


def test_other_inertias_are_those_of_a_file_that_has_them() -> None:
    """Check parameters about the frame's origin against a description with the centre and the inertia about it."""
    made = from_parents([-1, 0, 1], rng=3, masses=(0.5, 2.0))
    robot = fw.build(made)
    name = robot.bodies[1].name
    bodies = tuple(dataclasses.replace(b, inertia=HEAVY) if b.name == name else b for b in made.bodies)
    expected = fw.build(dataclasses.replace(made, bodies=bodies))
    wanted = robot.inertial_parameters
    c, I = np.array(HEAVY.center), np.array(HEAVY.rotational)
    about = np.array([[I[0], I[1], I[2]], [I[1], I[3], I[4]], [I[2], I[4], I[5]]]) + np.dot(c, c) * np.eye(3) - np.outer(c, c)
    wanted[1] = [1.0, *c, about[0, 0], about[0, 1], about[1, 1], about[0, 2], about[1, 2], about[2, 2]]
    np.testing.assert_allclose(expected.inertial_parameters, wanted, atol=1e-14)
    x = state(robot, 1)
    other = robot.with_inertial_parameters(wanted)
    np.testing.assert_allclose(other.inverse_dynamics(*x), expected.inverse_dynamics(*x), rtol=1e-12)


def parameters(index: int, value: float, body: int = 3) -> np.ndarray:
    wanted = example("ur5").inertial_parameters
    wanted[body, index] = value
    return wanted


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (np.ones(7), r"must have shape \(6, 10\) or \(60,\); got \(7,\)"),
        (parameters(0, -1.0), r"body 'wrist_1_link': the mass is negative \(-1\)"),
        (parameters(0, 0.0, 1), r"body 'upper_arm_link': without mass its first moment"),
        (parameters(5, np.nan), r"body 'wrist_1_link': .* not finite"),
        (parameters(1, 0.5), r"body 'wrist_1_link': the inertia about the centre of mass has the principal moment -"),
    ],
)
def test_parameters_that_no_model_may_have_are_refused(wanted: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        example("ur5").with_inertial_parameters(wanted)


def test_bodies_that_nothing_moves_with_are_refused() -> None:
    for robot in (example("double_pendulum"), fw.build(fw.robots.four_bar())):
        with pytest.raises(fw.ModelError, match="mass"):
            robot.with_inertial_parameters(np.zeros((len(robot.bodies), 10)))
