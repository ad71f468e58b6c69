"""Robots of a fleet in vector lanes: the same steps with bitwise the same results, several robots at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from ..array_types import Integers, Vector
from ..engine.backends.llvm.jit import host
from ..engine.cache_folder import log
from ..engine.loops.kernels import Layout
from ..engine.threads import share_out
from .contact_stage import ContactStage
from .fleet_loop import RUN_VECTORS
from .interleaved_stages import interleaved_table, lone_stages, may_be_interleaved
from .robot_tables import StagesTable
from .stage_records import FleetArrays, FleetContacts, RobotStages
from .step_model import StepModel

FIRST = 4  # contacts of a robot whose bodies determine its vector
LEAST_LANES = 4  # least number of lanes: with two, the scalar part of the work outweighs the gain
STEPS = 16  # steps in a call, after which robots are regrouped into vectors by their contacts
PATIENCE = 1.0  # [s] of steps of one fleet, after which compiling for vectors pays off
Kind = tuple[int, bool, list[bool]]  # capacity for contacts, whether there are forces on bodies, and which numbers differ
THREAD = "featherweight vectors"  # name of the thread that compiles
WAITING, COMPILING, READY, NEVER = range(4)


def _grouping(contacts: FleetContacts, active: Integers) -> tuple[Vector, Integers, Integers]:
    """Return the bodies of the first contacts of active robots, as one number, and the numbers of contacts and coupled ones."""
    counts, candidates = contacts.counts[active], np.arange(contacts.bodies.shape[1])
    coupled = (candidates < counts[:, None]) & (contacts.bodies[active, :, 1] >= 0) & (contacts.gap[active] < 0.0)
    bodies = contacts.bodies[active, :FIRST, 0]
    places = np.arange(bodies.shape[1])
    weights = (1.0 + contacts.wrench.shape[1]) ** places
    return np.where(places < counts[:, None], bodies + 1, 0) @ weights, counts, np.count_nonzero(coupled, axis=1)


class FleetVectors:
    """Vector code of a fleet's steps. A thread compiles it while the fleet takes its first steps without vectors.

    `make` returns the stages of one robot, as `robot_tables.new_stages` does. `run` is the loop over robots. `kind` identifies
    the properties on which tables of stages depend.
    """

    def __init__(self, model: StepModel, contacts: ContactStage, make: Callable[[], RobotStages]) -> None:
        self.model, self.contacts, self.make = model, contacts, make
        self.run: Any = None
        self.kind: Kind = 0, False, []
        self.lanes = host().lanes("double")
        self.state = WAITING if self.lanes >= LEAST_LANES else NEVER
        self.spent = 0.0  # [s] time of steps without vectors
        self._thread: threading.Thread | None = None  # that compiles
        self.tables: deque[tuple[Kind, StagesTable]] = deque()

    def ready(self, robots: int) -> bool:
        return self.state == READY and robots >= 2 * self.lanes

    def spend(self, seconds: float, robots: int, layout: Layout) -> None:
        """Add the time of steps without vectors, and start to compile after `PATIENCE`."""
        if not (self._thread and self._thread.is_alive()) and self.state == COMPILING:  # after a fork, or Ctrl-C
            self.state = WAITING
        if self.state != WAITING or robots < 2 * self.lanes or not hasattr(self.run, "code"):
            return
        self.spent += seconds
        if self.spent >= PATIENCE:
            self._thread = threading.Thread(target=self._prepare, args=(layout,), name=THREAD, daemon=True)
            self.state = COMPILING
            self._thread.start()

    def prepare(self, layout: Layout) -> bool:
        """Compile for vectors, with fleets of a layout; return whether that is possible."""
        if not may_be_interleaved(self.model, self.contacts, self.make(), self.kind[1]):
            self.state = NEVER
            return False
        made = self._table()
        self._compiled = RUN_VECTORS[self.lanes].for_layouts(made[1].layout, layout)
        self.tables.append(made)
        self.state = READY
        return True

    def _prepare(self, layout: Layout) -> None:
        try:
            self.prepare(layout)
        except Exception as error:  # continue without vectors
            self.state = NEVER
            log.warning("featherweight: no vectors of robots %r: %s", self.model.robot.name, error)

    def _table(self) -> tuple[Kind, StagesTable]:
        kind, external = self.kind, self.kind[1]
        with suppress(IndexError):
            while (found := self.tables.pop())[0] != kind:
                pass
            return found
        alone = [lone_stages(self.model, self.contacts, self.make(), external) for _ in range(self.lanes)]
        return kind, interleaved_table(self.model, self.contacts, alone, self.run, external, kind[2])

    def take_steps(self, arrays: FleetArrays, many: int, threads: int, what: str = "") -> int:
        """Take the steps of the active robots of a fleet at an address; return the number that took all steps.

        One call takes those of all robots if there are no `threads` to share them. Robots with as many contacts on the same
        bodies share vectors, and first of all those with as many contacts between two moving bodies.
        """
        states = arrays.states
        active, done = np.flatnonzero(states.active), list[int]()
        robots = len(active)
        states.order[:robots] = active[np.lexsort(_grouping(arrays.contacts, active))]

        def piece(i: int, j: int) -> None:
            kind, one = self._table()
            done.append(self._compiled(one.address, many, i * self.lanes, min(j * self.lanes, robots)))
            self.tables.append((kind, one))

        vectors = -(-robots // self.lanes)
        if threads:
            share_out(piece, vectors, threads, what=what)
        else:
            piece(0, vectors)
        return sum(done)
