"""Elastic impacts on bodies that touch others, or almost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from oracles.states import Array
from simulation.test_derivatives import INTEGRATORS, agreed, tight

RADIUS, STEP = 0.1, 1e-3


def row_of_balls(gaps: Sequence[float], e: float, integrator: str, masses: Sequence[float] | None = None) -> fw.Simulation:
    """Return balls that slide along x, the first of which comes at 1 m/s from a distance of 0.1 m."""
    masses = masses or [1.0] * (len(gaps) + 1)
    places = np.cumsum([0.0, *(2.0 * RADIUS + gap for gap in gaps)])
    balls = "".join(
        f'<body pos="{x} 0 0"><joint type="slide" axis="1 0 0"/><geom size="{RADIUS}" mass="{m}"/></body>'
        for x, m in zip(places, masses, strict=True)
    )
    robot = fw.load(f'<mujoco><option gravity="0 0 0"/><worldbody>{balls}</worldbody></mujoco>')
    spheres = [fw.ContactSphere(body.name, RADIUS) for body in robot.bodies]
    pairs = list(pairwise(range(len(spheres))))
    sim = fw.Simulation(robot, STEP, integrator, spheres=spheres, pairs=pairs, contact=tight(law="rigid", restitution=e))
    q, v = np.zeros((2, len(places)))
    q[0], v[0] = -0.1, 1.0
    sim.reset(q, v)
    return sim


def one_after_the_other(v: Sequence[float], masses: Sequence[float], e: float, slow: float) -> Array:
    """Return velocities after impacts of pairs of neighbours, each by Newton's law, until all close more slowly than `slow`."""
    v = list(v)
    while any(a - b > slow for a, b in pairwise(v)):
        k = max(range(len(v) - 1), key=lambda k: v[k] - v[k + 1])
        a, b = masses[k : k + 2]
        impulse = (1.0 + e) * (v[k] - v[k + 1]) / (1.0 / a + 1.0 / b)
        v[k], v[k + 1] = v[k] - impulse / a, v[k + 1] + impulse / b
    return np.array(v)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("gap", [0.0, 1e-4, 5e-4, 9e-4, 2e-3])
@pytest.mark.parametrize("balls", [3, 6])
def test_newtons_cradle_passes_the_motion_to_the_last_ball(balls: int, gap: float, integrator: str) -> None:
    sim = row_of_balls([gap] * (balls - 1), 1.0, integrator)
    sim.run(0.15)
    np.testing.assert_allclose(sim.v, [0.0] * (balls - 1) + [1.0], atol=1e-9)


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4"])
@pytest.mark.parametrize("e", [0.6, 0.95, 1.0])
def test_balls_of_different_masses_collide_as_one_pair_after_the_other(e: float, integrator: str) -> None:
    masses = [0.4, 3.0, 0.2, 1.0]
    sim = row_of_balls([0.0] * 3, e, integrator, masses)
    sim.run(0.101)
    wanted = one_after_the_other([1.0, 0.0, 0.0, 0.0], masses, e, 0.0 if e == 1.0 else 0.01)
    slow = 0.0 if e == 1.0 else 0.01  # closing speeds below this are removed without a bounce
    np.testing.assert_allclose(sim.v, wanted, atol=1e-9 + slow)
    np.testing.assert_allclose(masses @ sim.v, 0.4, atol=1e-9)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_ball_that_strikes_a_touching_triangle_keeps_the_energy(integrator: str) -> None:
    """Check also symmetry: the two balls behind part to both sides alike."""
    joints = '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>'
    ball = f'<body pos="{{}} {{}} 0">{joints}<geom size="0.1" friction="0"/></body>'
    rows = [(-0.25, 0.0), (0.0, 0.0), (0.1 * np.sqrt(3.0), 0.1), (0.1 * np.sqrt(3.0), -0.1)]
    text = "".join(ball.format(*at) for at in rows)
    robot = fw.load(f'<mujoco><option gravity="0 0 0"/><worldbody>{text}</worldbody></mujoco>')
    contact = tight(law="rigid", restitution=1.0)
    sim = fw.Simulation(robot, STEP, integrator, shapes=True, contact=contact, v=[1.0, 0, 0, 0, 0, 0, 0, 0])
    before = sim.energy()
    sim.run(0.2)
    assert sim.energy() == pytest.approx(before, rel=1e-6)
    (_, _, behind, other) = sim.v.reshape(4, 2)
    np.testing.assert_allclose(behind, other * [1, -1], atol=1e-6)
    assert behind[0] > 0.1


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_derivatives_of_impacts_in_several_rounds(integrator: str) -> None:
    sim = row_of_balls([2e-4, 1e-4], 0.9, integrator, [1.0, 2.0, 0.7])
    q, v = np.array([1e-4, 0.0, 0.0]), np.array([1.0, 0.1, 0.05])
    assert agreed(sim, q, v).doubtful == ()
    assert sim.v[2] > 0.5


def test_a_ball_between_walls_that_come_closer_ends_in_finite_rounds() -> None:
    """Check a light ball between a heavy one and a wall: more than 1000 bounces in a step, most of which are left out."""
    text = (
        '<geom type="box" pos="0.3 0 0" size="0.1 1 1"/><body pos="0.1 0 0"><joint type="slide" axis="1 0 0"/><geom size="0.1"'
        ' mass="1e-6"/></body><body pos="-0.1 0 0"><joint type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body>'
    )
    robot = fw.load(f'<mujoco><option gravity="0 0 0"/><worldbody>{text}</worldbody></mujoco>')
    sim = fw.Simulation(robot, STEP, shapes=True, contact=fw.ContactOptions(law="rigid", restitution=1.0), v=[0.0, 1.0])
    before: Any = sim.energy()
    sim.run(0.05)
    assert np.isfinite(sim.v).all()
    assert sim.energy() <= before * (1.0 + 1e-6)
