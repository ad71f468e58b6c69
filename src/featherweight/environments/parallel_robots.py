"""Many robots of one kind, each on a floor of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.description import Description
from ..robot.build import build
from ..simulation import Simulation
from .snapshot import Forces, Links, Snapshot

Array = np.ndarray[Any, np.dtype[Any]]


class ParallelRobots:
    """A simulation of robots that begin anew when they are told to, and stop where a step cannot be taken."""

    def __init__(self, description: Description, robots: int, integrator: str | None, threads: int | None) -> None:
        robot = build(description)
        self.links = Links(description, robot)
        q = np.tile(robot.configurations.get("qpos0", robot.neutral()), (robots, 1))
        self.simulation = Simulation(robot, None, integrator, q=q, max_penetration=np.inf, on_failure="stop", threads=threads)
        self.control = np.zeros((robots, len(robot.actuators)))
        self._touching_links = self._numbers_of_touching_links()

    def begin(self, which: Array, qpos: Array, qvel: Array) -> None:
        """Robots (k,) begin at qpos (k, nq), qvel (k, nv), touching nothing."""
        self.simulation.reset(*self.links.order.back(qpos, qvel), which=which)
        self.control[which] = 0.0

    def advance(self, control: Array, steps: int) -> Array:
        """Take steps under controls (robots, nu); which robots (robots,) could not and have stopped where they were."""
        self.control[:] = control
        for _ in range(steps):
            self.simulation.step(control=self.control)
        return self.simulation.failed

    def snapshot(self, which: Array | slice = slice(None), forces: bool = False) -> Snapshot:
        """All robots as they are, or some, with the forces of the last step or without."""
        q, v = self.simulation.q[which], self.simulation.v[which]
        felt, control = (self._forces(which), self.control[which]) if forces else (None, None)
        return Snapshot(self.links, q, v, felt, control, (self.simulation, which))

    def _forces(self, which: Array | slice) -> Forces:
        """On both links of contacts, but for the world."""
        found = self.simulation.contacts_of_many(which)
        links = self._touching_links[found.candidate]
        contact, side = np.nonzero(links >= 0)
        force = found.forces[contact] * np.where(side == 0, 1.0, -1.0)[:, None]
        return Forces(found.robot[contact], links[contact, side], found.points[contact], force)

    def _numbers_of_touching_links(self) -> Array:
        """Those of `Simulation.touching_links` (n, 2), by their places among all links, -1 for the world."""
        number = {name: k for k, name in enumerate(self.links.names)} | {None: -1}
        return np.array([[number[a], number[b]] for a, b in self.simulation.touching_links], int).reshape(-1, 2)
