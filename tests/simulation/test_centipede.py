"""Tests of a walking centipede: algorithms for the contact inertia, Newton's law, and contacts that start and end."""

from __future__ import annotations

import drumwright2012_centipede as figure
import numpy as np
import pytest

from featherweight.engine.loops import kernel_code
from simulation.scenes import end_velocity, free_velocity

SEGMENTS, STEPS = 4, 50


@pytest.fixture(scope="module")
def walks() -> dict[str, figure.Walk]:
    """Return the same steps with each algorithm for the contact inertia."""
    made = {way: figure.Walk(SEGMENTS, way) for way in figure.WAYS}
    for walk in made.values():
        for _ in range(STEPS):
            walk.step()
    return made


def test_all_ways_to_the_contact_inertia_give_the_same_motion(walks: dict[str, figure.Walk]) -> None:
    """Check to 1e-9 in rad, m and their rates [1/s]: the solver leaves 1e-8 of velocities below 1e-1."""
    expected = walks["pv-osimr"].simulation
    assert expected.time == pytest.approx(STEPS * figure.STEP)
    for way, walk in walks.items():
        for x, y in ((walk.simulation.q, expected.q), (walk.simulation.v, expected.v)):
            np.testing.assert_allclose(x, y, rtol=0.0, atol=1e-9, err_msg=way)
        np.testing.assert_allclose(walk.simulation.contacts()[1], expected.contacts()[1], rtol=0.0, atol=1e-6, err_msg=way)


def test_forces_at_the_feet_are_what_moves_the_body(walks: dict[str, figure.Walk]) -> None:
    """Check Newton's law in the rows of the floating base, where joint forces have no effect.

    The tolerance is 1e-7 of the weight: velocities of 0.1 m/s are accurate to 1e-16, over steps of 1e-5 s.
    """
    simulation, gait = walks["pv-osimr"].simulation, walks["pv-osimr"].gait
    robot, q, v = simulation.robot, simulation.q.copy(), simulation.v.copy()
    simulation.step(gait.forces(simulation.time, q, v))
    points, forces, names = simulation.contacts()
    turned = robot.frame_placement("segment-0")(q)
    at, R = turned[:3, 3], turned[:3, :3]
    wrench = np.concatenate([R.T @ forces.sum(axis=0), R.T @ np.cross(points - at, forces).sum(axis=0)])
    began = free_velocity(robot, v, np.zeros_like(v), figure.STEP)
    gained = robot.mass_matrix(q) @ (end_velocity(simulation, q) - began) / figure.STEP + robot.bias_force(q, v)
    np.testing.assert_allclose(gained[:6], wrench, rtol=0.0, atol=1e-7 * 9.81 * robot.mass)
    assert len(names) == SEGMENTS and (forces[:, 2] > 0.0).all()
    assert 0.5 < forces[:, 2].sum() / (9.81 * robot.mass) < 1.5


def refuse(ir: str) -> bytes:
    raise AssertionError("compiled")


def test_other_feet_on_the_ground_compile_nothing(walks: dict[str, figure.Walk], monkeypatch: pytest.MonkeyPatch) -> None:
    for walk in walks.values():
        simulation, gait = walk.simulation, walk.gait
        standing = set(simulation.contacts()[2])
        later = 0.5 * figure.PERIOD
        simulation.reset(*gait.start(later), later)
        with monkeypatch.context() as patched:
            for name in ("compile_loops", "compile_optimized"):
                patched.setattr(kernel_code, name, refuse)
            for _ in range(3):
                simulation.step(gait.forces(simulation.time, simulation.q, simulation.v))
        other = set(simulation.contacts()[2])
        assert len(other) == SEGMENTS and other.isdisjoint(standing)


def test_contacts_that_come_and_go_are_those_of_the_gait(walks: dict[str, figure.Walk]) -> None:
    """Check that stance legs touch the ground at their points, and no other leg does."""
    simulation, gait = walks["global"].simulation, walks["global"].gait
    for part in (0.1, 0.35, 0.6, 0.85):
        simulation.reset(*gait.start(part * figure.PERIOD), part * figure.PERIOD)
        simulation.step(gait.forces(simulation.time, simulation.q, simulation.v))
        stands = gait.wave(part * figure.PERIOD)[2]
        names = {f"the point on 'foot-{i}-{side}'" for (i, side), down in zip(gait.legs, stands, strict=True) if down}
        assert set(simulation.contacts()[2]) == names
