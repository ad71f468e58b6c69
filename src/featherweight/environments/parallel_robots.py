"""Many robots of one kind, each on a floor of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.description import Description
from ..model.types import WORLD
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
        self._touching_links = self._links_of_candidates(description)

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
        return Snapshot(self.links, q, v, *((self._forces(which), self.control[which]) if forces else ()))

    def _forces(self, which: Array | slice) -> Forces:
        """On both links of contacts, but for the world."""
        arrays = self.simulation._mover.arrays
        robot, k = np.nonzero(np.arange(arrays.candidate.shape[1]) < arrays.count[which, :1])
        at = (np.arange(len(self.control))[which][robot], k)
        links, force = self._touching_links[arrays.candidate[at]], arrays.force[at] / self.simulation.step_size
        contact, side = np.nonzero(links >= 0)
        force = force[contact] * np.where(side == 0, 1.0, -1.0)[:, None]
        return Forces(robot[contact], links[contact, side], arrays.point[at][contact], force)

    def _links_of_candidates(self, description: Description) -> Array:
        """The links (candidates, 2) of what may touch, by their places among all, -1 for the world."""
        touching = self.simulation._stepper.contacts.touching
        number = {name: k for k, name in enumerate(self.links.names)} | {WORLD: -1}
        link = np.array([number[s.body or WORLD] for s in description.shapes if s.collision])
        links: Array = link[touching.scene.pair[touching.pairs]]
        return links
