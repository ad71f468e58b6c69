"""Many robots of one kind, each on a floor of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.description import Description
from ..model.types import Shape, ShapeType
from ..robot.build import build
from ..simulation import Plane, Simulation, SimulationError, Sphere
from ..simulation.contact.standins import stand_ins
from .snapshot import Forces, Links, Snapshot

Array = np.ndarray[Any, np.dtype[Any]]


class ParallelRobots:
    """A simulation of robots that begin anew when they are told to, and stop where a step cannot be taken.

    Collision shapes of the file touch its floor, by spheres at the ends of capsules, with the greater of two frictions.
    """

    def __init__(self, description: Description, robots: int, timestep: float, integrator: str, threads: int | None) -> None:
        self.robot = build(description)
        self.links = Links(description, self.robot)
        self.spheres = spheres_on_links(description)
        self._link = np.array([self.links.names.index(str(s.frame)) for s in self.spheres])
        self._home = self.robot.configurations.get("qpos0", self.robot.neutral())
        q = np.tile(self._home, (robots, 1))
        self.simulation = Simulation(
            self.robot, timestep, integrator, q=q, spheres=self.spheres, ground=Plane(), max_penetration=np.inf, threads=threads
        )  # fmt: skip
        self.control = np.zeros((robots, len(self.robot.actuators)))
        self._begun = np.ones(robots, bool)  # that have not moved since they began

    def begin(self, which: Array, qpos: Array, qvel: Array) -> None:
        """Robots (k,) begin at qpos (k, nq), qvel (k, nv), touching nothing."""
        self._put(which, *self.links.order.back(qpos, qvel))
        self.control[which], self._begun[which] = 0.0, True

    def _put(self, which: Array, q: Array, v: Array) -> None:
        """Robots (k,) go on from other states, as if they had touched nothing before."""
        sim = self.simulation
        sim.q, sim.v = _with_rows(sim.q, which, q), _with_rows(sim.v, which, v)
        impulses = sim._stepper.contacts.state.impulses
        impulses.last_force[which], impulses.last_row[which] = 0.0, 0.0

    def advance(self, control: Array, steps: int) -> Array:
        """Take steps under controls (robots, nu); which robots (robots,) could not and have stopped where they were."""
        sim, failed = self.simulation, np.zeros(len(control), bool)
        kept: dict[int, tuple[Array, Array]] = {}  # the last sound states of robots that fail
        self.control[:], self._begun[:] = control, False
        while steps:
            try:
                sim.step(control=np.where(failed[:, None], 0.0, control))
                steps -= 1
            except SimulationError as error:
                if error.robot in kept:
                    raise
                failed[error.robot] = True
                kept[error.robot] = sim.q[error.robot].copy(), sim.v[error.robot].copy()
                self._put(np.array([error.robot]), self._home, np.zeros(self.robot.nv))  # the others go on
        if kept:
            self._put(np.array(list(kept)), *map(np.array, zip(*kept.values(), strict=True)))
        return failed

    def snapshot(self, which: Array | slice = slice(None), forces: bool = False) -> Snapshot:
        """All robots as they are, or some, with the forces of the last step or without."""
        q, v = self.simulation.q[which], self.simulation.v[which]
        return Snapshot(self.links, q, v, *((self._forces(which), self.control[which]) if forces else ()))

    def _forces(self, which: Array | slice) -> Forces:
        state = self.simulation._stepper.contacts.state
        there = np.arange(state.contacts.candidate.shape[1]) < state.counts[which, None]
        robot, k = np.nonzero(there & ~self._begun[which, None])
        at = (np.arange(len(self.control))[which][robot], k)
        force = state.impulses.force[at] / self.simulation.step_size
        return Forces(robot, self._link[state.contacts.candidate[at]], state.contacts.point[at], force)


def _with_rows(x: Array, which: Array, rows: Array) -> Array:
    changed = x.copy()
    changed[which] = rows
    return changed


def spheres_on_links(description: Description) -> list[Sphere]:
    """Spheres for the collision shapes of each link, that slide as MuJoCo has it: by the greater friction of two."""
    floor = [s for s in description.shapes if s.type is ShapeType.PLANE and s.collision]
    friction = max((s.friction or 0.0 for s in floor), default=0.0)
    touching = [s for s in description.shapes if s.type is not ShapeType.PLANE and s.collision and s.body is not None]
    return [
        Sphere(sphere.frame, sphere.radius, sphere.center, max(sphere.friction or 0.0, friction))
        for shape in touching
        if touches_any(shape, floor)
        for sphere in stand_ins(shape, str(shape.body))
    ]


def touches_any(shape: Shape, others: list[Shape]) -> bool:
    return any(shape.contype & other.conaffinity or other.contype & shape.conaffinity for other in others)
