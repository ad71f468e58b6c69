"""Records of the states that a simulation runs through."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array_types import Array
from ..engine.progress import Progress
from ..robot.trajectory import Recorded, Recorder, Trajectory, joint_names
from .arguments import Controller, given_forces
from .fleet import Fleet, Inputs
from .stage_records import FleetContacts
from .state import StateLayout, time_of

MOST_KEPT = 256  # states of one robot that are copied before they are read
NO_CONTACTS = np.zeros((0, 3))


class Recording:
    """Every `every`-th state of a fleet during a run, with the contacts of the first robot."""

    def __init__(self, fleet: Fleet, every: int) -> None:
        self.fleet, self.every, self._recorder = fleet, every, Recorder()
        q, v = fleet.seen  # contacts of an earlier step do not belong to the motion
        self._recorder.add(Recorded.of_one(fleet.time, q.copy(), v.copy(), NO_CONTACTS, NO_CONTACTS))
        self._kept: _KeptStates | None = None

    def run(self, steps: int, inputs: Inputs, progress: Progress) -> None:
        """Take steps of one robot under constant inputs; the compiled loop records states."""
        while (done := progress.done) < steps:
            count = min(MOST_KEPT * self.every, steps - done)
            blocks = self.fleet.record(count, inputs, self.every)
            tau = None if inputs.tau is None else np.tile(self.fleet.tau, (len(blocks), 1))
            self._read(blocks, self.fleet.layout, tau)
            progress.advance(count)

    def note(self, step: int, tau: Any, last: bool) -> None:
        """Record the state after a step if it is due, and the joint forces of the step if it was given any."""
        if step % self.every and not last:
            return
        fleet, kept = self.fleet, self._kept
        if not fleet.single:
            self._recorder.add(self._now(), None if tau is None else fleet.tau[None].copy())
            return
        if kept is None or kept.count == MOST_KEPT or kept.layout is not fleet.layout:
            self._read_kept()
            kept = self._kept = _KeptStates(fleet)
        kept.blocks[kept.count], kept.tau[kept.count] = fleet.block, fleet.tau
        kept.forced |= tau is not None
        kept.count += 1

    def trajectory(self) -> Trajectory:
        """Return the states so far."""
        self._read_kept()
        robot = self.fleet.plant.robot
        return self._recorder.trajectory(robot, joint_names(robot), self.fleet.plant.ground)

    def _now(self) -> Recorded:
        """Return the states of many robots."""
        fleet, (q, v) = self.fleet, self.fleet.seen
        _, points, impulses = fleet.contacts_of(0)
        return Recorded.of_one(fleet.time, q.copy(), v.copy(), points.copy(), impulses / fleet.model.h)

    def _read_kept(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            tau = kept.tau[: kept.count] if kept.forced else None
            self._read(kept.blocks[: kept.count], kept.layout, tau)

    def _read(self, blocks: Array, layout: StateLayout, tau: Array | None) -> None:
        """Record states (k, block) of one robot with their contacts, and the joint forces of the steps that led to them."""
        fleet, x, h = self.fleet, layout.rows(blocks), self.fleet.model.h
        exist = np.arange(layout.room) < x["counts"][:, None]
        some = np.flatnonzero(x["solved"] < x["counts"])
        if len(some):
            patched = FleetContacts(**{name: x[name][some] for name in FleetContacts._fields})
            x["force"][some] = fleet.spread(patched).of(0, len(some))
        times = time_of(x["set_time"], x["steps"], x["set_step"], h)
        states = times, x["q"].copy(), x["v"].copy(), x["counts"].copy()
        self._recorder.add(Recorded(*states, x["point"][exist], x["force"][exist] / h), tau)


class _KeptStates:
    """States of one robot, with the joint forces of the steps that led to them, and whether these were given."""

    def __init__(self, fleet: Fleet) -> None:
        self.layout, self.forced, self.count = fleet.layout, False, 0
        self.blocks, self.tau = np.empty((MOST_KEPT, fleet.layout.size)), np.empty((MOST_KEPT, len(fleet.tau)))


def controlled(fleet: Fleet, controller: Controller, control: Any) -> tuple[Any, Any]:
    """Return the joint forces of a controller, and its controls, or `control` if it returns none."""
    single, robots, (q, v) = fleet.single, len(fleet.q), fleet.seen
    forces = given_forces(controller(fleet.time, read_only(q), read_only(v)))
    if single is not fleet.single or robots != len(fleet.q):
        raise ValueError("the controller changed the number of robots of a simulation that runs")
    return forces if len(forces) == 2 else (*forces, control)


def read_only(x: Array) -> Array:
    """Return a read-only copy of a state, which later steps do not change."""
    copied = x.copy()
    copied.setflags(False)  # type: ignore[call-arg]  # `write`, by position, in half the time
    return copied
