"""Tests of the forces that `contacts` returns: they are spread over patches and have the wrench of the solved forces."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from oracles.states import Array
from simulation.scenes import free_bodies, solid_box

MASS, SIDE, N = 2.0, 0.4, 5
WEIGHT = 9.81 * MASS


def box_on_a_grid(v: list[float], robots: int = 1, mu: float = 0.5) -> fw.Simulation:
    at = np.linspace(-0.5 * SIDE, 0.5 * SIDE, N)
    spheres = [fw.ContactPoint("body0", (float(x), float(y), -0.1)) for x in at for y in at]
    robot = free_bodies(solid_box(MASS, (SIDE, SIDE, 0.2)))
    q = robot.neutral()
    q[2] = 0.1
    states = (q, v) if robots == 1 else (np.tile(q, (robots, 1)), np.tile(v, (robots, 1)))
    options = fw.ContactOptions(friction=mu)
    return fw.Simulation(robot, 1e-3, q=states[0], v=states[1], spheres=spheres, ground=True, contact=options)


def wrench(points: Array, forces: Array) -> Array:
    return np.concatenate([forces.sum(axis=0), np.cross(points, forces).sum(axis=0)])


def raw(sim: fw.Simulation) -> tuple[Array, Array]:
    stored = sim.contact_arrays
    points, impulses = (x[0, : stored.counts[0]] for x in (stored.point, stored.impulse))
    return points.copy(), impulses / sim.dt


def test_a_box_at_rest_presses_on_all_points_alike() -> None:
    sim = box_on_a_grid([0.0] * 6)
    sim.run(0.01)
    points, forces, _ = sim.contacts()
    assert np.count_nonzero(np.abs(raw(sim)[1][:, 2]) > 0.0) == 4
    np.testing.assert_allclose(np.abs(forces[:, 2]), WEIGHT / N**2, rtol=1e-6)
    np.testing.assert_allclose(wrench(points, forces), wrench(*raw(sim)), rtol=0.0, atol=1e-12 * WEIGHT)


def test_friction_of_a_sliding_box_opposes_it_at_each_point() -> None:
    sim = box_on_a_grid([1.0, 0.5, 0.0, 0.0, 0.0, 0.0])
    sim.run(0.01)
    _, forces, _ = sim.contacts()
    pressed = np.abs(forces[:, 2])
    assert np.count_nonzero(pressed > 0.0) > 4
    assert pressed.sum() == pytest.approx(WEIGHT, rel=1e-6)
    slide = np.array([1.0, 0.5]) / np.hypot(1.0, 0.5)
    np.testing.assert_allclose(np.abs(forces[:, :2] @ slide), 0.5 * pressed, rtol=1e-6, atol=1e-9)


def test_a_box_that_tips_has_forces_at_its_edge_alone() -> None:
    sim = box_on_a_grid([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    sim.step()
    points, forces, _ = sim.contacts()
    loaded = np.abs(forces[:, 2]) > 1e-9
    assert 0 < loaded.sum() < N**2
    np.testing.assert_allclose(wrench(points, forces), wrench(*raw(sim)), rtol=0.0, atol=1e-9)


def test_robots_of_a_fleet_read_what_one_alone_does() -> None:
    alone, many = box_on_a_grid([0.3, 0.0, 0.0, 0.0, 0.0, 0.0]), box_on_a_grid([0.3, 0.0, 0.0, 0.0, 0.0, 0.0], robots=2)
    alone.run(0.005)
    many.run(0.005)
    together = many.contacts_of_many()
    for robot in range(2):
        np.testing.assert_array_equal(many.contacts(robot)[1], alone.contacts()[1])
        np.testing.assert_array_equal(together.forces[together.robot == robot], alone.contacts()[1])
