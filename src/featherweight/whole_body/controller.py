"""Whole-body control as the controller of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..array_types import Array, Vector
from ..robot.robot import Robot
from .contacts import UnilateralContact
from .result import WholeBodyResult

if TYPE_CHECKING:
    from ..simulation.simulation import Simulation

Reference = Mapping[str, Any] | Callable[[float], Mapping[str, Any]]


class OpenedContact(NamedTuple):
    """A planned contact that opened: the time [s] of the first tick at which it was open, its name, and planned force [N]."""

    time: float
    name: str
    planned: float


class UnsolvedTick(NamedTuple):
    """A tick whose problem had no solution: its time [s], status, and limits that exclude each other."""

    time: float
    status: str
    blocking: tuple[str, ...]


class WholeBodyController:
    """A function of time, q and v for `Simulation.run`, made by `WholeBodyControl.controller`.

    `result` is that of the last tick. `opened` lists contacts that were planned and turned out open, each once until it closes
    again: their `time` [s], `name` and `planned` normal force [N]. `unsolved` lists the ticks without a solution: their `time`,
    `status` and `blocking` limits.
    """

    def __init__(
        self,
        control: Callable[..., WholeBodyResult],
        robot: Robot,
        contacts: Sequence[UnilateralContact],
        reference: Reference,
        simulation: Simulation | None,
    ) -> None:
        self.control, self.reference, self.simulation = control, reference, simulation
        self._names = [c.called for c in contacts]
        self.result: WholeBodyResult | None = None
        self.opened: list[OpenedContact] = []
        self.unsolved: list[UnsolvedTick] = []
        self._open: frozenset[str] = frozenset()
        self._normals = None if simulation is None else contact_normals(robot, contacts)

    def __call__(self, time: float, q: Array, v: Array) -> Vector:
        """Return joint forces (nv)."""
        reference = self.reference(time) if callable(self.reference) else self.reference
        measured = self._measured()
        self.result = result = self.control(q, v, **({"measured": measured, **reference} if measured else reference))
        if result.status != "solved":
            self.unsolved.append(UnsolvedTick(time, result.status, result.blocking))
        for name in result.open_contacts:
            if name not in self._open:
                self.opened.append(OpenedContact(time, name, float(result.wrenches[self._names.index(name), 2])))
        self._open = frozenset(result.open_contacts)
        return result.tau

    def _measured(self) -> dict[str, float]:
        """Return the normal forces of contacts in the simulation's last step; none before its first step."""
        if self.simulation is None or self._normals is None or self.simulation.steps == 0:
            return {}
        forces = self.simulation.contact_forces
        return {name: float(normal @ forces[body, :3]) for name, (body, normal) in self._normals.items()}


def contact_normals(robot: Robot, contacts: Sequence[UnilateralContact]) -> dict[str, tuple[int, Vector]]:
    """Return the body of each contact, and the contact's normal in the body's axes.

    Raises ValueError for two contacts of one body, whose forces a simulation does not tell apart.
    """
    bodies = [body.name for body in robot.bodies]
    found: dict[str, tuple[int, Vector]] = {}
    for contact in contacts:
        frame = robot.frame(contact.frame)
        if frame.body not in bodies:
            raise ValueError(f"WholeBodyControl: contact {contact.called!r} is fixed to the ground")
        body = bodies.index(frame.body)
        if any(other == body for other, _ in found.values()):
            raise ValueError(
                f"WholeBodyControl: contacts {[c.called for c in contacts]} include two of the body {frame.body!r}, whose "
                "forces a simulation adds; give measured= of each instead of simulation="
            )
        found[contact.called] = body, np.array(frame.placement.R)[:, 2]
    return found
