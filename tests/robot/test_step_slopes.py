"""Tests of the derivatives of semi-implicit steps against central differences."""

from __future__ import annotations

from typing import Any

import numpy as np

import featherweight as fw
from featherweight.model.types import WORLD
from featherweight.robot.step_slopes import end_slopes, velocity_slopes
from oracles.states import Array
from simulation.scenes import BALL, FREE, HINGE

H, SMALL = 0.01, 1e-6
DRIVE_ROWS = (0, 4, 0)


def moving_robot() -> tuple[fw.Robot, Array, Array, np.random.Generator]:
    """Return a robot with a free and a ball joint, and a state."""
    inertia = fw.Inertia(2.0, (0.1, 0.05, 0.02), (0.1, 0.0, 0.0, 0.2, 0.0, 0.25))
    parts = zip("abc", (FREE, BALL, HINGE), (WORLD, "a", "b"), strict=True)
    joints = [fw.Joint(name, kind, parent, name) for name, kind, parent in parts]
    bodies = [fw.Body(j.child, inertia) for j in joints]
    robot, rng = fw.build(fw.describe(bodies, joints)), np.random.default_rng(1)
    return robot, robot.random_configuration(rng), rng.standard_normal(robot.nv), rng


def differences(function: Any, size: int) -> Array:
    """Return the derivatives at zero of a function of a vector."""
    return np.stack([(function(e) - function(-e)) / (2.0 * SMALL) for e in SMALL * np.eye(size)], axis=1)


def test_the_velocity_follows_forces_with_given_slopes() -> None:
    robot, q, v, rng = moving_robot()
    n, nu = robot.nv, len(DRIVE_ROWS)
    tau, by_tau, by_position, by_velocity = rng.standard_normal((4, n))
    by_position[:-1] = 0.0  # only the hinge has a coordinate
    by_control = rng.standard_normal(nu)

    def velocity(x: Array) -> Array:
        dq, dv, dtau, du = np.split(x, [n, 2 * n, 3 * n])
        load = tau + by_tau * dtau + by_position * dq + by_velocity * dv
        np.add.at(load, np.array(DRIVE_ROWS), by_control * du)
        return robot.step_functions.free_velocity(v + dv, robot.forward_dynamics(robot.integrate(q, dq), v + dv, load), H)

    function = velocity_slopes(robot, robot, DRIVE_ROWS, armature=False)
    assert function is not None
    a = robot.forward_dynamics(q, v, tau)
    slopes = function(q, v, tau, a, H, by_tau, by_position, by_velocity, by_control)
    expected = differences(velocity, 3 * n + nu)
    np.testing.assert_allclose(slopes, expected, rtol=0.0, atol=1e-8 * np.abs(expected).max())


def test_the_state_after_a_step_follows_its_velocity() -> None:
    robot, q, u, rng = moving_robot()
    n = robot.nv
    slopes, none = rng.standard_normal((n, 3 * n + 1)), np.zeros(n)
    start = robot.step_functions.advance(q, u, none, H).ahead

    def state(x: Array) -> Array:
        end = robot.step_functions.advance(robot.integrate(q, x[:n]), u + slopes @ x, none, H)
        return np.concatenate([robot.difference(start, end.ahead), end.velocity])

    function = end_slopes(robot, 1)
    assert function is not None
    expected = differences(state, 3 * n + 1)
    np.testing.assert_allclose(function(q, u, none, H, slopes), expected, rtol=0.0, atol=1e-8 * np.abs(expected).max())
