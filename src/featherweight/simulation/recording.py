"""Records of the states that a simulation runs through, and interfaces of the observers of a run."""

from __future__ import annotations

import os
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array, Matrix, Vector
from ..engine.progress import Progress
from ..robot.trajectory import Recorded, Recorder, Trajectory, joint_names
from .arguments import Controller, given_forces
from .fleet import Fleet, Inputs
from .stage_records import FleetContacts
from .state import StateLayout, time_of

MOST_KEPT = 256  # states of one robot that are copied before they are read
NO_CONTACTS = np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, bool)  # points, forces, and which are internal


class Recording:
    """Every `every`-th state of a fleet during a run, with the contacts of the first robot."""

    def __init__(self, fleet: Fleet, every: int) -> None:
        self.fleet, self.every, self._recorder = fleet, every, Recorder()
        q, v = fleet.seen  # contacts of an earlier step do not belong to the motion
        self._recorder.add(Recorded.of_one(fleet.time, q.copy(), v.copy(), NO_CONTACTS))
        self._kept: _KeptStates | None = None
        self._internal = fleet.contacts.internal

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
        kept.blocks[kept.count] = fleet.block
        if tau is not None or kept.forced:
            kept.tau[kept.count], kept.forced = fleet.tau, True
        kept.count += 1

    def trajectory(self) -> Trajectory:
        """Return the states so far."""
        self._read_kept()
        robot = self.fleet.plant.robot
        return self._recorder.trajectory(robot, joint_names(robot), self.fleet.plant.ground)

    def _now(self) -> Recorded:
        fleet, (q, v) = self.fleet, self.fleet.seen
        points, forces, _ = fleet.contacts_of(0)
        internal = self._internal[fleet.contact_access.report.candidate[: len(points)]]
        return Recorded.of_one(fleet.time, q.copy(), v.copy(), (points, forces, internal))

    def _read_kept(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            tau = kept.tau[: kept.count] if kept.forced else None
            self._read(kept.blocks[: kept.count], kept.layout, tau)

    def _read(self, blocks: Array, layout: StateLayout, tau: Array | None) -> None:
        """Record states (k, block) of one robot with their contacts, and the joint forces of the steps that led to them."""
        fleet, x, h = self.fleet, layout.rows(blocks), self.fleet.model.h
        exist = np.arange(layout.capacity) < x["counts"][:, None]
        some = np.flatnonzero(x["solved"] < x["counts"])
        if len(some):
            patched = FleetContacts(**{name: x[name][some] for name in FleetContacts._fields})
            x["force"][some] = fleet.spread(patched).of(0, len(some))
        times = time_of(x["set_time"], x["steps"], x["set_step"], h)
        states = times, x["q"].copy(), x["v"].copy(), x["counts"].copy()
        contacts = x["point"][exist], x["force"][exist] / h, self._internal[x["candidate"][exist]]
        self._recorder.add(Recorded(*states, *contacts), tau)


class _KeptStates:
    """States of one robot, with the joint forces of the steps that led to them, and whether these were given."""

    def __init__(self, fleet: Fleet) -> None:
        self.layout, self.forced, self.count = fleet.layout, False, 0
        self.blocks, self.tau = np.empty((MOST_KEPT, fleet.layout.size)), np.zeros((MOST_KEPT, len(fleet.tau)))


def controlled(fleet: Fleet, controller: Controller, control: Any) -> tuple[Any, Any]:
    """Return the joint forces of a controller, and its controls, or `control` if it returns none."""
    q, v = fleet.access.q(), fleet.access.v()
    answer = controller(fleet.time, q, v)
    if fleet.seen[0].shape != q.shape:
        raise ValueError("the controller changed the number of robots of a simulation that runs")
    if type(answer) is np.ndarray:
        return answer, control
    forces = given_forces(answer)
    return forces if len(forces) == 2 else (*forces, control)


def read_only(x: Array) -> Array:
    copied = x.copy()
    copied.setflags(False)  # type: ignore[call-arg]  # `write`, by position, in half the time
    return copied


class Observer(Protocol):
    """Object that `Simulation.watch` accepts and that follows the motion during `Simulation.run`."""

    @property
    def closed(self) -> bool:
        """Return whether the observer is closed. The simulation then removes it."""

    def live(self, q: Vector, points: Matrix, forces: Matrix) -> None:
        """Receive a state that `run` records: q (nq,), and contact forces (k, 3) [N] at points (k, 3) [m], in the world frame.

        A simulation of many robots passes the state of the first robot.
        """

    def play(self, trajectory: Trajectory, *, start: bool) -> None:
        """Receive the motion of one robot at the end of `run`. `start` asks to play it at once; `run` passes False."""


class SimulationView(Observer, Protocol):
    """The page of `Simulation.view`, a `featherweight.Window`. `featherweight.viewer.view` returns this type, too."""

    @property
    def url(self) -> str:
        """The address of the page."""

    @property
    def q(self) -> Vector:
        """A copy of the displayed configuration (nq,)."""

    @property
    def trajectory(self) -> Trajectory | None:
        """The motion in the timeline, or None."""

    def show(self, q: ArrayLike, points: ArrayLike | None = None, forces: ArrayLike | None = None) -> None:
        """Show a configuration (nq,), and contact forces (n, 3) [N] at points (n, 3) [m] in the world frame."""

    def look(self, position: ArrayLike, at: ArrayLike) -> None:
        """Place the camera at `position` (3,) [m] in the world frame, looking at the point `at` (3,) [m]."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the displayed scene and its motion as one HTML file."""

    def close(self) -> None:
        """Stop serving the page."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


class Pictures(Protocol):
    """Object that draws the pictures of `Simulation.render`."""

    def frame(self, simulation: Any, size: tuple[int, int], robot: int | None, camera: str | None) -> Array:
        """Draw all robots, or only `robot`, as an array (height, width, 3) of numbers 0 to 255; `size` is (width, height).

        `camera` is the name of a camera of the file.
        """
