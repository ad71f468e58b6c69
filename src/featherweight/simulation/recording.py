"""Records of the states that a simulation runs through."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array_types import Array, Matrix
from ..engine.progress import Progress
from ..robot.trajectory import Recorded, Recorder, Trajectory, joint_names
from .arguments import Controller, given_forces
from .fleet import MOST_RECORDED, Fleet, Inputs
from .stage_records import FleetContacts
from .state import StateLayout, time_of

NO_CONTACTS = np.zeros((0, 3))


class Recording:
    """Every `every`-th state of a fleet during a run, with the contacts of the first robot."""

    def __init__(self, fleet: Fleet, every: int, progress: Progress) -> None:
        self.fleet, self.progress = fleet, progress
        self.recorder = Recorder(self._now, every)

    @property
    def trajectory(self) -> Trajectory:
        """The states so far."""
        robot = self.fleet.plant.robot
        return self.recorder.trajectory(robot, joint_names(robot), self.fleet.plant.ground)

    def run(self, steps: int, inputs: Inputs) -> None:
        """Take steps of one robot under constant inputs; the compiled loop records states."""
        recorder, progress = self.recorder, self.progress
        while (done := progress.done) < steps:
            count = min(MOST_RECORDED * recorder.every, steps - done)
            recorder.add(self._of_blocks(self.fleet.record(count, inputs, recorder.every), self.fleet.layout))
            progress.advance(count)

    def run_controlled(self, steps: int, controller: Controller, control: Any, external: Any) -> Any:
        """Take steps of one robot with a controller, and copy states, which are read later; return the last control."""
        fleet, progress, every = self.fleet, self.progress, self.recorder.every
        states, k = _KeptStates(fleet), 0
        while (done := progress.done) < steps:
            tau, control = controlled(fleet, controller, control)
            fleet.step(tau, control, external)
            if (done + 1) % every == 0:
                if fleet.layout is not states.layout or k == MOST_RECORDED:
                    self._add(states, k)
                    states, k = _KeptStates(fleet), 0
                states.blocks[k], states.tau[k] = fleet.block, fleet.tau
                states.forced |= tau is not None
                k += 1
            progress.advance()
        self._add(states, k)
        return control

    def _add(self, states: _KeptStates, count: int) -> None:
        """Record the first of some states."""
        if count:
            forces = states.tau[:count] if states.forced else None
            self.recorder.add(self._of_blocks(states.blocks[:count], states.layout), forces)

    def _now(self) -> tuple[float, Array, Array, Matrix, Matrix]:
        """Return time, states, and points and forces of the first robot's contacts."""
        fleet = self.fleet
        q, v = fleet.seen
        points = forces = NO_CONTACTS
        if fleet.arrays.contacts.counts.item(0) > 0:
            _, points, impulses = fleet.contacts_of(0)
            points, forces = points.copy(), impulses / fleet.model.h
        return fleet.time, q.copy(), v.copy(), points, forces

    def _of_blocks(self, blocks: Array, layout: StateLayout) -> Recorded:
        """Return recorded states (k, block) of one robot with their contacts."""
        fleet, x, h = self.fleet, layout.rows(blocks), self.fleet.model.h
        counts = x["counts"]
        exist = np.arange(layout.room) < counts[:, None]
        some = np.flatnonzero(x["solved"] < counts)
        if len(some):
            patched = FleetContacts(**{name: x[name][some] for name in FleetContacts._fields})
            x["force"][some] = fleet.spread(patched).of(0, len(some))
        times = time_of(x["set_time"], x["steps"], x["set_step"], h)
        return Recorded(times, x["q"].copy(), x["v"].copy(), counts.copy(), x["point"][exist], x["force"][exist] / h)


class _KeptStates:
    """States of one robot, with the joint forces of the steps that led to them, and whether these were given."""

    def __init__(self, fleet: Fleet) -> None:
        self.layout, self.forced = fleet.layout, False
        self.blocks, self.tau = np.empty((MOST_RECORDED, fleet.layout.size)), np.empty((MOST_RECORDED, len(fleet.tau)))


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
