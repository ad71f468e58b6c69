"""Properties of the equations of motion of any robot in any state, without a reference program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherweight as fw
from oracles.robots import robot_of
from oracles.states import Array, States, assert_close, norms, state

TREES = ("mixed_8", "anchored", "floating_inside", "roots", "rotors")
ROBOTS = ("panda", "kinova", "hyq", *TREES)
STEP = 1e-5
"""Tolerance for central differences: their error is h² f'''/6 + eps f / h, about 1e-9 of f, and more for large curvature."""

DIFFERENCE = 1e-6

robots = st.sampled_from(ROBOTS)
seeds = st.integers(0, 2**32 - 1)
speeds = st.floats(0.0, 5.0)


def rate(f: fw.CompiledFunction, robot: fw.Robot, x: States) -> Array:
    """Return the derivative of f(q) along v, by central differences."""
    ahead, behind = robot.integrate(x.q, STEP * x.v), robot.integrate(x.q, -STEP * x.v)
    return np.asarray((f(ahead) - f(behind)) / (2 * STEP))


@settings(deadline=None, max_examples=60)
@given(robots, seeds, speeds)
def test_forward_dynamics_undoes_inverse_dynamics(name: str, seed: int, speed: float) -> None:
    """Check to the rounding of the cancelling forces, M a + c + g, times the condition of M."""
    robot = robot_of(name)
    x = state(robot, seed, speed)
    M = robot.mass_matrix(x.q)
    a = robot.forward_dynamics(x.q, x.v, robot.inverse_dynamics(*x))
    size = np.sqrt(np.diagonal(M))
    forces = np.linalg.norm(robot.bias_force(x.q, x.v) / size) + np.linalg.norm(M @ x.a / size)
    softest = np.linalg.eigvalsh(M / np.outer(size, size))[0]
    assert np.linalg.norm((a - x.a) * size) <= 1e-13 * forces / softest


@settings(deadline=None, max_examples=60)
@given(robots, seeds)
def test_mass_matrix_is_symmetric_and_positive_definite(name: str, seed: int) -> None:
    robot = robot_of(name)
    M = robot.mass_matrix(state(robot, seed, 0.0).q)
    np.testing.assert_array_equal(M, M.T)
    size = np.sqrt(np.diagonal(M))
    assert np.linalg.eigvalsh(M / np.outer(size, size))[0] > 0.0


@settings(deadline=None, max_examples=40)
@given(robots, seeds, speeds)
def test_columns_of_the_mass_matrix_are_forces_of_unit_accelerations(name: str, seed: int, speed: float) -> None:
    robot = robot_of(name)
    x = state(robot, seed, speed)
    units, bias = np.eye(robot.nv), robot.bias_force(x.q, x.v)
    columns = robot.inverse_dynamics(x.q, x.v, units) - bias
    M = robot.mass_matrix(x.q)
    assert np.linalg.norm(columns - M) <= 1e-13 * (np.linalg.norm(M) + robot.nv * np.linalg.norm(bias))


@settings(deadline=None, max_examples=40)
@given(robots, seeds)
def test_bias_force_at_rest_is_the_gravity_force(name: str, seed: int) -> None:
    robot = robot_of(name)
    q = state(robot, seed, 0.0).q
    assert_close(robot.bias_force(q, np.zeros(robot.nv))[None], robot.gravity_force(q)[None], 1e-13)


@settings(deadline=None, max_examples=40)
@given(robots, seeds, st.floats(0.1, 10.0))
def test_coriolis_forces_are_quadratic_in_the_velocity(name: str, seed: int, factor: float) -> None:
    robot = robot_of(name)
    x = state(robot, seed, 1.0)
    g = robot.gravity_force(x.q)
    once, more = robot.bias_force(x.q, x.v) - g, robot.bias_force(x.q, factor * x.v) - g
    scale = np.linalg.norm(g) + factor**2 * np.linalg.norm(once)
    assert np.linalg.norm(more - factor**2 * once) <= 1e-12 * scale * max(1.0, factor**2)


@settings(deadline=None, max_examples=40)
@given(robots, seeds, speeds)
def test_kinetic_energy_is_that_of_the_mass_matrix(name: str, seed: int, speed: float) -> None:
    robot = robot_of(name)
    x = state(robot, seed, speed)
    energy = robot.kinetic_energy(x.q, x.v)
    assert energy == pytest.approx(0.5 * x.v @ robot.mass_matrix(x.q) @ x.v, rel=1e-10)


@settings(deadline=None, max_examples=60)
@given(robots, seeds, st.floats(0.0, 2.0))
def test_energy_changes_by_the_power_of_the_forces(name: str, seed: int, speed: float) -> None:
    """Check d/dt (kinetic + potential energy) = v . tau, for any forces."""
    robot = robot_of(name)
    x = state(robot, seed, speed)
    tau = robot.inverse_dynamics(*x)

    def energy(h: float) -> float:
        q, v = robot.integrate(x.q, h * x.v), x.v + h * x.a
        return float(robot.kinetic_energy(q, v) + robot.potential_energy(q))

    power = (energy(STEP) - energy(-STEP)) / (2 * STEP)
    scale = 1.0 + np.linalg.norm(x.v) * np.linalg.norm(tau) + abs(energy(0.0))
    assert abs(power - x.v @ tau) <= DIFFERENCE * scale


@settings(deadline=None, max_examples=40)
@given(robots, seeds)
def test_gravity_force_is_the_gradient_of_potential_energy(name: str, seed: int) -> None:
    robot = robot_of(name)
    x = state(robot, seed, 1.0)
    g = robot.gravity_force(x.q)
    change = rate(robot.potential_energy, robot, x)
    scale = 1.0 + np.linalg.norm(g) * np.linalg.norm(x.v)
    assert abs(change - g @ x.v) <= DIFFERENCE * scale


@settings(deadline=None, max_examples=40)
@given(robots, seeds, speeds)
def test_forces_on_bodies_do_the_power_of_their_jacobians(name: str, seed: int, speed: float) -> None:
    """Check that tau changes by -J^T f, for f at each body's own frame."""
    robot = robot_of(name)
    x = state(robot, seed, speed)
    f = np.random.default_rng(seed).standard_normal((len(robot.bodies), 6))
    J = robot.frame_jacobian([body.name for body in robot.bodies], "local")(x.q)
    free, pushed = robot.inverse_dynamics(*x), robot.inverse_dynamics(*x, external_forces=f)
    expected = -np.einsum("bij,bi->j", J, f)
    scale = np.linalg.norm(free) + norms(expected[None], 1)[0]
    assert np.linalg.norm(pushed - free - expected) <= 1e-12 * scale
