"""Tests of springs of ball joints, against MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from featherweight.simulation.forces.laws import Springs, coordinate_of_row
from simulation.beside_mujoco import beside_mujoco
from simulation.step_differences import watched

CHAIN = """<mujoco><option timestep="0.001" integrator="RK4"/><worldbody><body pos="0 0 1" euler="10 20 30">
<joint name="first" type="ball" stiffness="6"/><geom type="box" size=".1 .2 .05" pos=".2 .03 .01" mass="1"/>
<body pos=".3 0 0"><joint name="second" type="ball" stiffness="3" damping="0.02"/><geom size=".1" pos=".2 0 0" mass=".5"/>
<body pos=".3 0 0"><joint name="third" axis="0 1 0" stiffness="2"/><geom size=".05" pos=".2 0 0" mass=".2"/></body>
</body></body></worldbody></mujoco>"""
VELOCITY = np.array([1.0, 2.0, 3.0, -1.0, 2.0, 4.0, 5.0])


def chain() -> fw.Robot:
    robot = fw.load(CHAIN)
    assert isinstance(robot, fw.Robot) and robot.report() == {}
    return robot


def test_rotation_vectors_are_those_of_quaternions() -> None:
    """Check the shorter rotation, also for tiny and half turns and quaternions of the other sign."""
    none, zero = np.zeros(3), np.zeros(3, np.int64)
    springs = Springs(none, none, none, none, none, zero, zero, np.arange(3), np.arange(3))
    rng = np.random.default_rng(0)
    for angle in (0.0, 1e-9, 1e-3, 0.5, 1.5, 1.6, 3.0, np.pi - 1e-6):
        axis = rng.standard_normal(3)
        axis /= np.linalg.norm(axis)
        q = np.array([*np.sin(0.5 * angle) * axis, np.cos(0.5 * angle)])
        for quaternion in (q, -q):
            found = [coordinate_of_row(springs, quaternion, r) for r in range(3)]
            np.testing.assert_allclose(found, angle * axis, atol=1e-14)


def test_springs_of_ball_joints_are_mujocos() -> None:
    assert beside_mujoco(CHAIN, 500, v=VELOCITY)[2][-1] < 1e-9


@pytest.mark.parametrize(("integrator", "lost"), [("semi-implicit", 0.2), ("rk4", 1e-6), ("midpoint", 1e-9)])
def test_the_energy_of_springs_counts(integrator: str, lost: float) -> None:
    """Check that joints without dampers conserve the sum of energies, to the order of each integrator."""
    robot = fw.load(CHAIN.replace('damping="0.02"', ""))
    sim = fw.Simulation(robot, 1e-3, integrator, v=VELOCITY)
    energy = sim.energy()
    sim.run(0.5)
    assert sim.energy() == pytest.approx(energy, abs=lost)
    bent = sim.energy() - float(robot.kinetic_energy(sim.q, sim.v)) - float(robot.potential_energy(sim.q))
    assert bent > 0.1


def test_stiff_springs_are_met_at_the_end_of_a_step() -> None:
    robot = fw.load(CHAIN.replace('stiffness="6"', 'stiffness="6e6"').replace('stiffness="3"', 'stiffness="3e6"'))
    sim = fw.Simulation(robot, 1e-2, "semi-implicit", contact="rigid")
    sim.run(1.0)
    np.testing.assert_allclose(sim.q[:3], 0.0, atol=1e-5)


def test_robots_of_a_fleet_may_differ_in_stiffness() -> None:
    robot = chain()
    many = fw.Simulation(robot, q=np.tile(robot.start(), (2, 1)), v=np.tile(VELOCITY, (2, 1)))
    many.vary(stiffness=np.array([1.0, 2.0]))
    many.run(0.1)
    stiffer = fw.load(CHAIN.replace('"6"', '"12"').replace('"3"', '"6"').replace('stiffness="2"', 'stiffness="4"'))
    for i, one in enumerate((robot, stiffer)):
        alone = fw.Simulation(one, v=VELOCITY)
        alone.run(0.1)
        np.testing.assert_allclose(many.q[i], alone.q, atol=1e-12)


def test_steps_have_derivatives() -> None:
    watched(fw.Simulation(chain(), contact="rigid"))
