"""Tests of laws of centroidal momentum and of the Coriolis matrix, with loops, and in every execution."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.engine.function import CompiledFunction
from featherweight.model.generators import chain, random_tree
from oracles.robots import robot_of
from oracles.spanning import mechanism, regular_states, spanning
from oracles.states import Array, States, assert_close, evaluated, random_states

MOMENTA = (
    "centroidal_map",
    "centroidal_map_rate",
    "centroidal_momentum",
    "centroidal_momentum_rate",
    "centroidal_bias",
    "centroidal_inertia",
    "center_of_mass_velocity",
    "center_of_mass_acceleration",
)
EVERY = (*MOMENTA, "coriolis_matrix", "static_torque", "mechanical_power")
CLOSED = 1e-9
"""Tolerance for regular states of mechanisms."""


def at(robot: fw.Robot, name: str, x: States) -> Array:
    """Evaluate a function of the robot at many states, by its trace."""
    f: CompiledFunction[Any] = getattr(robot, name)
    return evaluated(f, *(getattr(x, a.name) for a in f.program.inputs))[0]


def times(A: Array, x: Array) -> Array:
    return np.asarray(np.einsum("...ij,...j->...i", A, x))


def rate_along(f: CompiledFunction[Any], x: States) -> Array:
    """Return the rate of a function of q along v."""
    return evaluated(f.pushforward, x.q, x.v)[0]


def check_identities(robot: fw.Robot, x: States, tolerance: float) -> None:
    """Check identities between the functions, the mass matrix and the centre of mass."""
    A, rate = at(robot, "centroidal_map", x), at(robot, "centroidal_map_rate", x)
    for way in robot.centroidal_momentum.alternatives.values():
        assert_close(evaluated(way, x.q, x.v)[0], times(A, x.v), tolerance)
    assert_close(at(robot, "centroidal_bias", x), times(rate, x.v), tolerance)
    assert_close(at(robot, "centroidal_momentum_rate", x), times(A, x.a) + times(rate, x.v), tolerance)
    assert_close(rate, rate_along(robot.centroidal_map, x), tolerance)
    J = at(robot, "center_of_mass_jacobian", x)
    assert_close(A[:, :3], robot.mass * J, tolerance)
    for way in robot.center_of_mass_velocity.alternatives.values():
        assert_close(evaluated(way, x.q, x.v)[0], times(J, x.v), tolerance)
    assert_close(times(J, x.v), rate_along(robot.center_of_mass, x), tolerance)
    acceleration = at(robot, "centroidal_momentum_rate", x)[:, :3] / robot.mass
    assert_close(at(robot, "center_of_mass_acceleration", x), acceleration, tolerance)
    C = at(robot, "coriolis_matrix", x)
    M_rate = rate_along(robot.mass_matrix, x)
    size = np.linalg.norm(at(robot, "mass_matrix", x), axis=(1, 2)) * np.linalg.norm(x.v, axis=1)
    assert np.all(np.linalg.norm(C + np.swapaxes(C, 1, 2) - M_rate, axis=(1, 2)) <= tolerance * size)
    bias = at(robot, "bias_force", x)
    forces = times(C, x.v) + at(robot, "gravity_force", x)
    assert np.all(np.linalg.norm(forces - bias, axis=1) <= tolerance * (np.linalg.norm(bias, axis=1) + size))


@pytest.mark.parametrize("name", ["hyq", "all_spherical", "floating_inside", "anchored", "roots", "single_body"])
def test_identities_of_trees(name: str) -> None:
    robot = robot_of(name)
    check_identities(robot, random_states(robot, 2), 1e-11)


@pytest.mark.parametrize("name", ["four_bar", "crank_and_rocker", "coupled", "repeated", "own"])
def test_identities_of_mechanisms(name: str) -> None:
    check_identities(mechanism(name), regular_states(name), CLOSED)


@pytest.mark.parametrize("name", ["crank_and_rocker", "platform", "coupled", "geared_chain"])
def test_mechanisms_move_as_their_spanning_trees(name: str) -> None:
    """Check against the tree without loops, with the velocities and accelerations that loops give."""
    robot, cut, x = mechanism(name), spanning(name), regular_states(name)
    Q, V = np.array([cut.expand(q) for q in x.q]), robot.spanning_velocity(x.q, x.v)
    tau = robot.inverse_dynamics(*x)
    accelerations = np.array([cut.forward_dynamics(*y) for y in zip(x.q, x.v, tau, strict=True)])
    whole = States(Q, V, accelerations)
    for function in ("centroidal_momentum", "centroidal_momentum_rate", "centroidal_inertia", "center_of_mass_acceleration"):
        assert_close(at(robot, function, x), at(cut.open, function, whole), 1e-7)


def test_at_rest() -> None:
    """Check exact zeros: the effect of a free body's linear velocity on its angular momentum, and everything at rest."""
    robot = robot_of("hyq")
    x = random_states(robot, 2)._replace(v=np.zeros((2, robot.nv)))
    for name in ("centroidal_map_rate", "centroidal_momentum", "centroidal_bias", "center_of_mass_velocity", "coriolis_matrix"):
        assert not at(robot, name, x).any()
    moving = random_states(robot, 2)
    for name in ("centroidal_map", "centroidal_map_rate"):
        assert not at(robot, name, moving)[:, 3:, :3].any()


def test_far_from_the_origin() -> None:
    """Check that the location of the world's origin affects neither values nor their digits."""
    robot = robot_of("hyq")
    x = random_states(robot, 2)
    away = x._replace(q=x.q + np.array([1e6, -2e6, 5e5] + [0.0] * (robot.nq - 3)))
    for name in MOMENTA:
        np.testing.assert_array_equal(at(robot, name, away), at(robot, name, x))


def test_momentum_is_kept_without_forces_from_outside() -> None:
    """Check that joint forces change a free robot's momentum by its weight only."""
    robot = robot_of("hyq")
    x = random_states(robot, 2)
    tau = x.a.copy()
    tau[:, :6] = 0.0
    [a] = evaluated(robot.forward_dynamics, x.q, x.v, tau)
    rate = at(robot, "centroidal_momentum_rate", x._replace(a=a))
    weight = np.array([*(robot.mass * np.array(robot.gravity)), 0.0, 0.0, 0.0])
    np.testing.assert_allclose(rate, np.array([weight, weight]), atol=1e-9)


@pytest.mark.parametrize("name", ["hyq", "anchored"])
def test_power_is_the_rate_of_energy(name: str) -> None:
    check_power(robot_of(name), random_states(robot_of(name), 2), 1e-10)


@pytest.mark.parametrize("name", ["planar_leg", "coupled"])
def test_power_is_the_rate_of_energy_with_loops(name: str) -> None:
    check_power(mechanism(name), regular_states(name), CLOSED)


def check_power(robot: fw.Robot, x: States, tolerance: float) -> None:
    tau = at(robot, "inverse_dynamics", x)
    push = robot.kinetic_energy.pushforward
    [kinetic] = evaluated(push, x.q, x.v, x.v, x.a)
    rate = kinetic + rate_along(robot.potential_energy, x)
    [power] = evaluated(robot.mechanical_power, x.v, tau)
    np.testing.assert_allclose(power, rate, atol=tolerance * np.abs(tau * x.v).sum(axis=1).max())


@pytest.mark.parametrize("name", ["planar_leg", "coupled"])
def test_static_torque_with_loops(name: str) -> None:
    """Check that the effect of forces on bodies is their power along any motion."""
    robot, x = mechanism(name), regular_states(name)
    forces = np.random.default_rng(1).standard_normal((len(x.q), len(robot.bodies), 6))
    held, bare = robot.static_torque(x.q, external_forces=forces), robot.static_torque(x.q)
    assert_close(bare, robot.gravity_force(x.q), 1e-12)
    velocities = robot.frame_velocity([b.name for b in robot.bodies], "local")(x.q, x.v)
    np.testing.assert_allclose(np.sum((bare - held) * x.v, axis=1), np.sum(forces * velocities, axis=(1, 2)), rtol=1e-9)


# executions


def test_executions() -> None:
    """Check a tree with every kind of joint and two roots, for the functions with the most loops."""
    kinds = ("revolute", "prismatic", "spherical", "floating", "planar")
    made = random_tree(7, rng=4, joint_types=kinds, masses=(0.3, 3.0))
    robot, plain, rolled = (fw.build(made, execution=e) for e in ("auto", "interpreted", "rolled"))
    x = random_states(robot, 2)
    for name in EVERY:
        f = getattr(plain, name)
        given: dict[str, Any] = dict(zip("qva", x, strict=True)) | {"tau": x.a}
        arguments = [given[a.name] for a in f.program.inputs]
        expected = evaluated(getattr(robot, name), *arguments)[0]
        assert_close(f(*arguments), expected, 1e-11)
        if name in ("coriolis_matrix", "centroidal_map_rate"):
            assert_close(getattr(rolled, name)(*arguments), expected, 1e-11)


def test_large_trees_keep_their_loops() -> None:
    robot = fw.build(chain(300, rng=1))
    assert robot.coriolis_matrix.execution == "rolled"


def test_compiled_batches_and_single_precision() -> None:
    robot = robot_of("double_pendulum")
    x = random_states(robot, 9)
    for name in EVERY:
        f = getattr(robot, name)
        given: dict[str, Any] = dict(zip("qva", x, strict=True)) | {"tau": x.a}
        arguments = [given[a.name] for a in f.program.inputs]
        expected = evaluated(f, *arguments)[0]
        np.testing.assert_allclose(f(*arguments), expected, rtol=1e-9, atol=1e-12)
        single = f(*(y.astype(np.float32) for y in arguments))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, expected, rtol=1e-3, atol=1e-4)


def test_without_mass_there_is_no_centre_of_it() -> None:
    """Check a robot of rotors alone."""
    made = chain(2)
    nothing = fw.Inertia(0.0, (0.0, 0.0, 0.0), (0.0,) * 6)
    bodies = tuple(dataclasses.replace(b, inertia=nothing) for b in made.bodies)
    joints = tuple(dataclasses.replace(j, armature=1.0) for j in made.joints)
    robot = fw.build(dataclasses.replace(made, bodies=bodies, joints=joints))
    for name in (*MOMENTA, "center_of_mass", "center_of_mass_jacobian"):
        with pytest.raises(ValueError, match=rf"{name} is not defined: chain_2 has no mass"):
            getattr(robot, name)
    assert "mass_matrix" in robot.functions
    assert not [name for name in robot.functions if "center" in name or "centroidal" in name]


# operations


def test_operations() -> None:
    """Check counts for one robot: a limit on the costs of changes."""
    robot = robot_of("hyq")
    limits = {"center_of_mass_jacobian": 376, "centroidal_map": 1316, "centroidal_map_rate": 3151, "coriolis_matrix": 3492}
    for name, limit in limits.items():
        assert getattr(robot, name).operations.flops <= limit


def test_the_cheapest_algorithm_is_chosen() -> None:
    """Check deep trees, whose many pairs of joints make one frame for all cheaper, and shallow trees with few pairs."""
    assert robot_of("hyq").coriolis_matrix.algorithm == "local"
    assert fw.build(chain(20)).coriolis_matrix.algorithm == "root"
    assert set(robot_of("hyq").centroidal_map_rate.candidates) == {"composite", "forward"}


def test_momentum_beside_its_map_is_a_product() -> None:
    robot = robot_of("hyq")
    both = robot.together(robot.centroidal_map, robot.centroidal_momentum)
    assert robot.centroidal_momentum.algorithm == "bodies"
    assert both.operations.flops <= robot.centroidal_map.operations.flops + 12 * robot.nv
