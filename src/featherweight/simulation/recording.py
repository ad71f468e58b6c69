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
        fleet, recorder = self.fleet, self.recorder
        layout, kept, forces = fleet.layout, list[Array](), list[Array | None]()
        while (done := self.progress.done) < steps and fleet.single:
            tau, control = controlled(fleet, controller, control)
            fleet.step(tau, control, external)
            if (done + 1) % recorder.every == 0:
                if fleet.layout is not layout or len(kept) == MOST_RECORDED:
                    recorder.add(self._of_blocks(np.array(kept), layout), forces)
                    layout, kept, forces = fleet.layout, [], []
                kept.append(fleet.block.copy())
                forces.append(None if tau is None else np.array(tau, dtype=float))
            self.progress.advance()
        if kept:
            recorder.add(self._of_blocks(np.array(kept), layout), forces)
        return control

    def _now(self) -> tuple[float, Array, Array, Matrix, Matrix]:
        """Return time, states, and points and forces of the first robot's contacts."""
        fleet = self.fleet
        q, v = fleet.seen
        points = forces = NO_CONTACTS
        if fleet.home.contacts.counts.item(0) > 0:
            _, points, impulses = fleet.contacts_of(0)
            points, forces = points.copy(), impulses / fleet.model.h
        return fleet.time, q.copy(), v.copy(), points, forces

    def _of_blocks(self, blocks: Array, layout: StateLayout) -> Recorded:
        """Return recorded states (k, block) of one robot with their contacts."""
        fleet, x, h = self.fleet, layout.rows(blocks), self.fleet.model.h
        counts, contacts = x["counts"], FleetContacts(**{name: x[name] for name in FleetContacts._fields})
        exist = np.arange(layout.room) < counts[:, None]
        for i in np.flatnonzero(x["solved"] < counts):
            x["force"][i, : counts[i]] = fleet.contacts_of(int(i), contacts)[2]
        times = time_of(x["set_time"], x["steps"], x["set_step"], h)
        return Recorded(times, x["q"].copy(), x["v"].copy(), counts.copy(), x["point"][exist], x["force"][exist] / h)


def controlled(fleet: Fleet, controller: Controller, control: Any) -> tuple[Any, Any]:
    """Return the joint forces of a controller, and its controls, or `control` if it returns none."""
    single, robots, (q, v) = fleet.single, len(fleet.q), fleet.seen
    tau, *controls = given_forces(controller(fleet.time, read_only(q), read_only(v)))
    if (single, robots) != (fleet.single, len(fleet.q)):
        raise ValueError("the controller changed the number of robots of a simulation that runs")
    return tau, controls[0] if controls else control


def read_only(x: Array) -> Array:
    """Return a read-only copy of a state, which later steps do not change."""
    copied = x.copy()
    copied.setflags(False)  # type: ignore[call-arg]  # `write`, by position, in half the time
    return copied
