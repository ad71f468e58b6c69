"""Tests that bodies at rest have no velocity, with all integrators: on the ground, on legs, at joint limits."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import featherweight as fw
from featherweight.model.types import WORLD
from oracles.states import Array
from simulation.scenes import HINGE, SLIDE, G, Y, Z, corners, free_bodies, pendulum, solid_box

INTEGRATORS = ("semi-implicit", "rk4", "midpoint")
SIDES = (0.2, 0.3, 0.1)
LEG, FOOT = 0.2, 0.02  # [m]
GAINS = 80.0, 3.0  # [N m/rad, N m s/rad]
STANCE = np.array([0.6, -1.2])  # [rad] of hip and knee


def at_rest(sim: fw.Simulation, duration: float) -> None:
    """Assert that the robot stays at rest for a duration, to the solver's tolerance, without creep."""
    before = sim.q
    for _ in range(round(duration / sim.dt)):
        sim.step()
        assert np.abs(sim.v).max() < 1e-8
    np.testing.assert_allclose(sim.q, before, rtol=0.0, atol=1e-8 * duration)


@functools.cache
def box() -> fw.Robot:
    return free_bodies(solid_box(2.0, SIDES))


def boxed(integrator: str, step: float, height: float = 0.0, **more: Any) -> fw.Simulation:
    q = box().neutral()
    q[2] = 0.5 * SIDES[2] + height
    spheres = corners("body0", SIDES)
    return fw.Simulation(
        box(), step, integrator, spheres=spheres, ground=fw.Plane(), contact=fw.ContactOptions(friction=0.5), **{"q": q} | more
    )


@pytest.mark.parametrize("step", [1e-3, 1e-2])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_box_on_the_ground(integrator: str, step: float) -> None:
    """Check that the box lies on the ground, not above it, from the first step on, and after a fall."""
    at_rest(boxed(integrator, step), 0.1)
    fallen = boxed(integrator, step, 0.02)
    fallen.run(0.4, every=1000)
    at_rest(fallen, 0.1)
    assert abs(fallen.q[2] - 0.5 * SIDES[2]) < 1e-8


@pytest.mark.parametrize("integrator", ["rk4", "midpoint"])
@pytest.mark.parametrize("step", [1e-3, 1e-2])
def test_a_box_slides_as_far_as_coulomb_says(integrator: str, step: float) -> None:
    """Check the distance, v²/(2 mu g), minus up to the distance of a step: the last step leaves less than mu g h²."""
    sim = boxed(integrator, step, v=[1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    sim.run(0.5, every=1000)
    assert abs(sim.q[0] - 1.0 / (2.0 * 0.5 * G)) < 0.5 * G * step**2 + 1e-9
    at_rest(sim, 0.1)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_pendulum_at_its_limit(integrator: str) -> None:
    sim = fw.Simulation(pendulum(lower=0.5), 2e-3, integrator, q=[0.8])
    sim.run(1.5, every=1000)
    at_rest(sim, 0.1)
    assert sim.q[0] == pytest.approx(0.5, abs=1e-8)


@functools.cache
def leg(springs: bool) -> fw.Robot:
    """Return a trunk that slides up and down on a leg with hip and knee, with or without springs and dampers."""
    kp, kd = GAINS
    limb = fw.Inertia(0.5, (0.0, 0.0, -0.5 * LEG), (0.002, 0.0, 0.0, 0.002, 0.0, 0.0002))
    joints = [
        fw.Joint("height", SLIDE, WORLD, "trunk", axis=Z),
        fw.Joint("hip", HINGE, "trunk", "thigh", axis=Y),
        fw.Joint("knee", HINGE, "thigh", "shank", fw.Pose(p=(0.0, 0.0, -LEG)), Y),
    ]
    if springs:
        for k, rest in ((1, STANCE[0]), (2, STANCE[1])):
            joints[k] = dataclasses.replace(joints[k], stiffness=kp, damping=kd, rest=float(rest))
    bodies = [
        fw.Body("trunk", fw.Inertia(3.0, (0.0, 0.0, 0.0), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01))),
        fw.Body("thigh", limb),
        fw.Body("shank", limb),
    ]
    return fw.build(fw.describe(bodies, joints))


def standing(stance: Array) -> Array:
    """Return the configuration with these angles and the foot on the ground."""
    hip, knee = stance
    return np.array([LEG * np.cos(hip) + LEG * np.cos(hip + knee) + FOOT, hip, knee])


@pytest.mark.parametrize(
    ("integrator", "step", "servos", "share"),
    [
        ("semi-implicit", 1e-2, False, 1e-5), ("midpoint", 1e-2, False, 0.01), ("midpoint", 1e-2, True, 0.01),
        ("rk4", 1e-3, False, 0.05), ("rk4", 5e-4, True, 0.0125),
    ],
)  # fmt: skip
def test_a_leg_stands_where_its_energy_is_least(integrator: str, step: float, servos: bool, share: float) -> None:
    """Check the minimum of the energy of gravity and of springs or servos over stances with the foot on the ground, without
    friction (SciPy).

    The tolerance is relative to the springs' deflection: impulses use inertia, stiffness and damping at the beginning of the
    step, and the smooth step uses them within it, a difference of second order in h.
    """
    kp, kd = GAINS
    robot = leg(not servos)
    drives = [fw.Actuator(name, name, gain=kp, bias=(0.0, -kp, -kd)) for name in ("hip", "knee")] if servos else []
    foot = fw.ContactSphere("shank", FOOT, (0.0, 0.0, -LEG))
    sim = fw.Simulation(robot, step, integrator, q=standing(STANCE), spheres=[foot], ground=fw.Plane(),
                        contact=fw.ContactOptions(friction=0.0),
                        actuators=drives)  # fmt: skip
    sim.run(4.0, control=STANCE if servos else None, every=10**4)

    def energy(stance: Array) -> float:
        weight = float(leg(False).potential_energy(standing(stance)))
        return weight + 0.5 * kp * float(((stance - STANCE) ** 2).sum())

    least = scipy.optimize.minimize(energy, STANCE, options={"gtol": 1e-9}).x
    given = np.abs(least - STANCE).max()
    assert given > 0.02
    np.testing.assert_allclose(sim.q, standing(least), rtol=0.0, atol=share * given + 1e-7)
    assert np.abs(sim.v).max() < 1e-8
    assert sim.contacts()[1].sum(axis=0)[2] == pytest.approx(robot.mass * G, rel=share)
