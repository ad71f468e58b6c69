"""Tests that redundant contacts of a patch do not change the motion; solutions above the tolerance are counted."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from featherweight.contact.rigid import interior_point
from oracles.states import Array
from simulation.scenes import free_bodies, solid_box

MASS, SIDE = 2.0, 0.4
DEFAULT = fw.ContactOptions()


def on_a_grid(n: int, contact: fw.ContactOptions = DEFAULT) -> fw.Simulation:
    """Return a box with n x n spheres below it, thrown on the ground: it lands flat, slides, and comes to rest.

    The box does not turn, because friction of a turning, sliding patch depends on its pressure, which is not unique.
    """
    at = np.linspace(-0.5 * SIDE, 0.5 * SIDE, n)
    spheres = [fw.ContactSphere("body0", 0.02, (float(x), float(y), -0.08)) for x in at for y in at]
    robot = free_bodies(solid_box(MASS, (SIDE, SIDE, 0.2)))
    q, v = robot.neutral(), np.zeros(6)
    q[2] = 0.1
    v[:] = 0.6, 0.2, -0.5, 0.0, 0.0, 0.0
    return fw.Simulation(robot, 1e-3, q=q, v=v, spheres=spheres, ground=True, contact=contact)


def motion(n: int) -> tuple[list[Array], fw.Simulation]:
    sim, states = on_a_grid(n), []
    for _ in range(60):
        sim.step(steps=10)
        states.append(np.concatenate([sim.q, sim.v]))
    return states, sim


def test_a_grid_of_spheres_moves_a_box_as_its_corners_do() -> None:
    (few, _), (many, sim) = motion(2), motion(5)
    np.testing.assert_allclose(many, few, rtol=0.0, atol=1e-9)
    points, forces, _ = sim.contacts()
    assert len(points) == 25
    assert np.abs(forces[:, 2]).sum() == pytest.approx(MASS * 9.81, rel=1e-6)


def test_steps_that_end_above_the_tolerance_are_counted() -> None:
    sim = on_a_grid(2)
    sim.run(0.05)
    assert sim.solver["inexact_steps"] == 0 and 0.0 <= sim.solver["residual"] < 1e-7
    strict = on_a_grid(2, fw.ContactOptions(tolerance=1e-17))
    strict.run(0.05)
    counted = strict.solver["inexact_steps"]
    assert 0 < counted <= 50 and strict.solver["residual"] <= interior_point.ACCEPTED * 1e-17
    strict.reset()
    assert strict.solver["inexact_steps"] == 0


@pytest.mark.parametrize("way", ["compiled", "controller"])
def test_runs_record_the_contacts_that_steps_have(way: str) -> None:
    """Check a box with a friction of its own that lands while it is recorded: it then needs more room for contacts."""
    sim, alone = on_a_grid(5), on_a_grid(5)
    for one in (sim, alone):
        one.vary(friction=0.7)
        one.reset([0.0, 0.0, 0.15, 0.0, 0.0, 0.0, 1.0], [0.6, 0.2, -0.5, 0.0, 0.0, 0.0])
    motion = sim.run(0.3, None if way == "compiled" else lambda t, q, v: np.zeros(6))
    numbers = set()
    for k in range(1, 301):
        alone.step()
        points, forces, _ = alone.contacts()
        np.testing.assert_array_equal(motion.contacts(k).points, points)
        np.testing.assert_array_equal(motion.contacts(k).forces, forces)
        numbers.add(len(points))
    assert {0, 25} <= numbers and alone.fleet_arrays.contacts.solved.item(0) < 25
