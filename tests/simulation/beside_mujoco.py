"""Simulations beside MuJoCo, which takes the same steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

import featherweight as fw
from oracles.states import Array


class BesideMujoco:
    """A simulation and MuJoCo's data, both where the simulation begins."""

    def __init__(self, robot: fw.Robot | fw.ClosedRobot, model: Any, **options: Any) -> None:
        """MuJoCo's solver goes on until rounding stops it. Options are those of `Simulation`."""
        self.model, self.data, self.order = model, mujoco.MjData(model), fw.MujocoOrder(robot, model)
        model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations, model.opt.ls_tolerance = 0.0, 300, 200, 1e-10
        self.sim = fw.Simulation(robot, **{"contact": "as in the file"} | options)
        self.data.qpos[:], self.data.qvel[:] = self.order.state(self.sim.q, self.sim.v)

    def step(self, control: Array | None = None, external_forces: Array | None = None) -> None:
        if control is not None:
            self.data.ctrl[:] = self.order.ctrl(control)
        mujoco.mj_step(self.model, self.data)
        self.sim.step(control=control, external_forces=external_forces)

    @property
    def away(self) -> float:
        """The greatest difference of qpos."""
        return float(np.abs(self.order.state(self.sim.q, self.sim.v).qpos - self.data.qpos).max())

    @property
    def faster(self) -> float:
        """The greatest difference of qvel."""
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
