"""Access to the arrays of a fleet by built-in functions, which take a tenth of a microsecond: inputs, states, contacts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Integers, Matrix, Tensor
from ..engine.loops.kernels import CompiledLoop, Table
from ..engine.loops.prepared_calls import Goal, Result, reader, writer
from .contact_arrays import ContactsOfRobot
from .contact_stage import ContactStage
from .smooth_motion import copy_rows
from .stage_records import WITH_CONTROL, WITH_FORCES, FleetArrays, FleetContacts

OF_ROBOT, ON_BODIES = range(2)


def converted(goal: Goal, x: Any) -> Any:
    """Return an input as the array of a goal with its numbers, if NumPy converts it to real numbers that fit; else itself."""
    given, (array, _, of_robots) = x, goal
    if x is None:
        return None
    if type(x) is not np.ndarray:
        if type(x) is not list and type(x) is not tuple:
            return given
        try:
            x = np.array(x)
        except ValueError:  # of lists of different lengths
            return given
    shape, goal_shape = x.shape, array.shape
    if x.dtype.kind not in "fiu" or not (shape == goal_shape or (of_robots and shape == goal_shape[1:])):
        return given
    array[...] = x
    return array


class ContactReport(NamedTuple):
    """Contacts of the last step as users see them: those of one robot, and the forces on the bodies of all."""

    contacts: FleetContacts
    places: Integers  # (k,) numbers of the bodies that may touch
    step: float  # [s]
    robot: Integers  # (1,) the number of the robot
    used: Integers  # (1,) the number of its contacts
    candidate: Integers  # (capacity,)
    point: Matrix  # (capacity, 3) [m]
    force: Matrix  # (capacity, 3) [N]
    on_bodies: Tensor  # (robots, bodies, 6) [N, N m]


def report_contacts(x: ContactReport, work: int) -> int:
    """Write the contacts of a robot, or the forces on bodies; return 0 if impulses must be spread over patches first."""
    every = x.contacts
    if work == OF_ROBOT:
        i = x.robot[0]
        count = every.counts[i]
        x.used[0] = count
        for c in range(count):
            x.candidate[c] = every.candidate[i, c]
        copy_rows(every.point[i, :count], x.point[:count])
        for c in range(count):
            for j in range(3):
                x.force[c, j] = every.force[i, c, j] / x.step
        return int(every.solved[i] >= count)
    for i in range(len(every.counts)):
        for k in range(len(x.places)):
            force = x.on_bodies[i, x.places[k]]
            for j in range(6):
                force[j] = every.wrench[i, k, j] / x.step if every.counts[i] > 0 else 0.0
    return 1


REPORT = CompiledLoop(report_contacts, numbers=1, what="the contacts of a simulation")


class ArrayAccess:
    """The arrays of a fleet.

    `single` says whether users see one robot, whose arrays have no axis of robots.
    """

    def __init__(self, arrays: FleetArrays, block: Array, single: bool) -> None:
        self._arrays, self._block, self._single = arrays, block, single

    def give(self, tau: Any, control: Any, external: Any) -> bool:
        """Write the inputs of the next step, None for none; return False for shapes and types that need a conversion."""
        given = tau, control, external
        return self._write(*given) or self._write(*map(converted, self.inputs, given))

    @cached_property
    def inputs(self) -> tuple[Goal, ...]:
        """The arrays of joint forces, controls and forces on bodies of the next step."""
        inputs, given = self._arrays.inputs, self._arrays.inputs.given
        flags = None, given[WITH_CONTROL:][:1], given[WITH_FORCES:][:1]
        return tuple(Goal(x[:, 0], flag, True) for x, flag in zip(inputs[:3], flags, strict=True))

    @cached_property
    def _write(self) -> Callable[..., bool]:
        return writer(*self.inputs)

    @cached_property
    def q(self) -> Callable[[], Array]:
        """Return a copy of the configurations, which users cannot write to."""
        return self._seen(self._arrays.states.q)

    @cached_property
    def v(self) -> Callable[[], Array]:
        """Return a copy of the velocities, which users cannot write to."""
        return self._seen(self._arrays.states.v)

    def _seen(self, x: Matrix) -> Callable[[], Array]:
        return reader(Result(x[0] if self._single else x, read_only=True))

    @cached_property
    def block(self) -> Callable[[], Array]:
        """Return a copy of the states."""
        return reader(Result(self._block))

    @cached_property
    def put_block(self) -> Callable[[Array], bool]:
        """Overwrite the states; see `writer`."""
        return writer(Goal(self._block))


class ContactAccess:
    """The contacts of a fleet in the last step: `on_bodies` for the forces on all bodies, `of_robot` for those of one robot.

    `of_robot` returns None for impulses that must be spread over patches. Then write them to the report, and call
    `spread_of_robot`.
    """

    def __init__(self, stage: ContactStage, contacts: FleetContacts, single: bool) -> None:
        places, bodies, step = stage.numbers, len(stage.robot.bodies), stage.settings.step
        robots, capacity = contacts.gap.shape
        whole, real = np.zeros(capacity, np.int64), np.zeros((2, capacity, 3))
        x = self.report = ContactReport(
            contacts, places, step, np.zeros(1, np.int64), np.zeros(1, np.int64), whole, real[0], real[1],
            np.zeros((robots, bodies, 6)),
        )  # fmt: skip
        self._table = table = Table(x)
        run: Any = REPORT.for_tables(table)
        chosen = Result(x.point, x.used), Result(x.force, x.used), Result(x.candidate, x.used, names=stage.names)
        self.of_robot: Callable[[], ContactsOfRobot | None] = reader(
            *chosen, result_class=ContactsOfRobot, run=run, arguments=(table.address, OF_ROBOT)
        )
        self.spread_of_robot: Callable[[], ContactsOfRobot] = reader(*chosen, result_class=ContactsOfRobot)
        forces = Result(x.on_bodies[0] if single else x.on_bodies)
        self.on_bodies = reader(forces, run=run, arguments=(table.address, ON_BODIES))
