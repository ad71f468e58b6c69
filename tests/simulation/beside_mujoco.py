"""Simulations and MuJoCo taking the same steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.simulation.forces.at_joints import forces_at_joints
from oracles.states import Array, random_states
from simulation.spring_forces import spring_forces


class BesideMujoco:
    """A simulation and MuJoCo's data, both in the start state of the simulation."""

    def __init__(self, robot: fw.Robot | fw.ClosedRobot, model: Any, **options: Any) -> None:
        """Create both; `options` are those of `Simulation`. MuJoCo's solver iterates until rounding stops it."""
        self.model, self.data, self.order = model, mujoco.MjData(model), fw.MujocoOrder(robot, model)
        model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations, model.opt.ls_tolerance = 0.0, 300, 200, 1e-10
        self.sim = fw.Simulation(robot, **options)
        self.data.qpos[:], self.data.qvel[:] = self.order.state(self.sim.q, self.sim.v)

    def step(self, control: Array | None = None, external_forces: Array | None = None) -> None:
        if control is not None:
            self.data.ctrl[:] = self.order.ctrl(control)
        mujoco.mj_step(self.model, self.data)
        self.sim.step(control=control, external_forces=external_forces)

    @property
    def away(self) -> float:
        """Return the greatest difference of qpos."""
        return float(np.abs(self.order.state(self.sim.q, self.sim.v).qpos - self.data.qpos).max())

    @property
    def faster(self) -> float:
        """Return the greatest difference of qvel."""
        return float(np.abs(self.order.state(self.sim.q, self.sim.v).qvel - self.data.qvel).max())


def beside_mujoco(
    text: str, steps: int, control: Callable[[int], Array] | None = None, **options: Any
) -> tuple[fw.Simulation, Any, Array]:
    """Return the simulation of an MJCF file, MuJoCo's data, and the greatest difference of qpos after each step."""
    pair = BesideMujoco(fw.load(text), mujoco.MjModel.from_xml_string(text), **options)
    away = np.empty(steps)
    for k in range(steps):
        pair.step(control(k) if control else None)
        away[k] = pair.away
    return pair.sim, pair.data, away


def require_springs(robot: fw.Robot | fw.ClosedRobot, order: fw.MujocoOrder, data: Any, tolerance: float) -> None:
    """Check forces and energies of springs and dampers against MuJoCo at random states, mapped to the independent joints."""
    forces, x, model = forces_at_joints(robot, robot.actuators), random_states(robot, 5), data.model
    for q, v in zip(x.q, 3.0 * x.v, strict=True):
        data.qpos[:], data.qvel[:] = order.state(q, v)
        mujoco.mj_forward(model, data)
        S, found = np.array([order.state(q, e).qvel for e in np.eye(robot.nv)]), spring_forces(forces, q, v)
        np.testing.assert_allclose(found, S @ data.qfrc_passive, rtol=tolerance, atol=tolerance)
        assert np.abs(found).max() > 0.1
        of_gravity = -float(model.body_mass @ data.xipos @ model.opt.gravity)
        assert forces.spring_energy(q) == pytest.approx(data.energy[0] - of_gravity, abs=1e-9)


def require_motion(robot: fw.Robot | fw.ClosedRobot, order: fw.MujocoOrder, data: Any, steps: int, tolerance: float) -> None:
    """Check that a batch of two robots moves from random states as in MuJoCo, and bitwise as a single robot."""
    x = random_states(robot, 2)
    many = fw.Simulation(robot, q=x.q, v=2.0 * x.v)
    many.step(steps=steps)
    for i in range(2):
        data.qpos[:], data.qvel[:] = order.state(x.q[i], 2.0 * x.v[i])
        mujoco.mj_step(data.model, data, steps)
        np.testing.assert_allclose(order.state(many.q[i], many.v[i]).qpos, data.qpos, atol=tolerance)
        alone = fw.Simulation(robot, q=x.q[i], v=2.0 * x.v[i])
        alone.step(steps=steps)
        np.testing.assert_array_equal(alone.q, many.q[i])
