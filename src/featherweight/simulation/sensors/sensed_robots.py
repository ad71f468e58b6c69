"""Robots as their sensors see them: the memory of the loop that measures most sensors, and calls of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import numpy as np

from ...array_types import Array
from ...engine.function import CompiledFunction
from ...engine.loops.kernels import MachineCall, Table, machine_call
from ...engine.loops.prepared_calls import prepared_call
from ...names import UnknownNameError, choose_from
from ...summaries import visible
from ..fleet import Fleet
from ..forces.implicit_drives import drive_work
from ..forces.laws import ordered_sum
from ..stage_records import FleetArrays
from .loop import ALL, MEASURE, MEASURE_FLEET, PREPARE
from .plan import SensorPlan
from .records import DrivesOfStep, Instant, SensedFleet

T = TypeVar("T")

NEXT, PREVIOUS = np.array((1, 2, 0)), np.array((2, 0, 1))
NO_CALL = MachineCall(0, np.zeros(0, np.int64))


class SensedRobots:
    """The robots of a fleet as their sensors see them: `now`, and `then`, at the start of the last step.

    `measure` writes the arrays. They belong to the fleet's own, `home`, which the fleet may replace.
    """

    def __init__(self, plan: SensorPlan, fleet: Fleet) -> None:
        self.plan, self.fleet, self.robot = plan, fleet, plan.robot
        self._kept: dict[Hashable, Any] = {}
        self._use(fleet.arrays)

    def _use(self, home: FleetArrays) -> None:
        plan, states = self.plan, home.states
        functions = [f for f in (plan.frames_function, plan.joints_function) if f]
        self.robots, remembered = len(states.q), len(states.before_q)
        self.now = self._instant(states.q, states.v)
        self.then = self._instant(*(np.zeros((remembered, x.shape[1])) for x in (states.q, states.v)))
        self.values: Array = np.zeros((self.robots, len(plan.cutoffs)))
        self.content = SensedFleet(
            plan.records, self.now, self.then, self._drives(), np.zeros(home.contacts.force.shape),
            np.zeros((self.robots, plan.channels.end)), self.values, NO_CALL, NO_CALL, NO_CALL,
        )  # fmt: skip
        self._in_stages = plan.in_stages or self.robots > 1 or any(f.address is None for f in functions)
        if not self._in_stages:
            c, channels = plan.channels, self.content.channels
            self.content = self.content._replace(
                joints_now=_call(plan.joints_function, *self.now[:2], channels[:, c.q :], channels[:, c.v :]),
                frames_now=_call(plan.frames_function if plan.now else None, *self.now.arguments(plan.order)),
                frames_then=_call(plan.frames_function if plan.then else None, *self.then.arguments(plan.order)),
            )
        table, many = Table(self.content, plan.layout), Table(home, self.fleet.arrays_layout)
        plan.layout, run, kept = table.layout, MEASURE_FLEET.for_layouts(table.layout, many.layout), (table, many, functions)
        self._prepare, self._measure, self._measure_all = (
            prepared_call(run, table.address, many.address, work, kept=kept) for work in (PREPARE, MEASURE, ALL)
        )
        self.readings = SensorReadings(self.values, plan.names)
        self.first = SensorReadings(self.values[0], plan.names)  # of the first robot
        self.home = home  # last: Ctrl-C may strike before

    def _instant(self, q: Array, v: Array) -> Instant:
        n, frames = len(q), len(self.plan.frames)
        motions = np.zeros((n, frames, 6)), np.zeros((n, frames, 6))
        return Instant(q, v, np.zeros((n, v.shape[1])), np.zeros((n, frames, 4, 4)), *motions)

    def _drives(self) -> DrivesOfStep:
        plan, forces = self.plan, self.plan.forces
        lengths, mapped = forces.lengths.count if forces.lengths else 0, plan.has_drives and forces.mapped
        return DrivesOfStep(
            forces.drives._replace(values=forces.drives.values.copy()), forces.laws,
            np.zeros((self.robots, self.robot.nq + lengths)) if mapped else self.then.q,
            np.zeros((self.robots if mapped else 0, forces.rows, self.robot.nv)), np.zeros(forces.rows), np.zeros(forces.nu),
            np.zeros(len(forces.parts)), np.zeros(forces.states), drive_work(self.robot, forces),
            plan.records.step if plan.model.driven else 0.0,
        )  # fmt: skip

    def measure(self) -> None:
        """Write the readings of the sensors that the loop measures, and the motion of all frames."""
        if self.home is not self.fleet.arrays:
            self._use(self.fleet.arrays)
        self._kept.clear()
        missing = self._prepare() if self._in_stages else self._measure_all()
        if missing:
            self.content.spread[...] = self.fleet.spread_contacts(slice(None)).impulse
        if self._in_stages:
            self._evaluate()
        if missing or self._in_stages:
            self._measure()

    def _evaluate(self) -> None:
        """Evaluate the functions that the loop does not call."""
        plan, x, robot, forces = self.plan, self.content, self.robot, self.plan.forces
        c, channels, q, v, q0 = plan.channels, self.content.channels, self.now.q, self.now.v, self.then.q
        for order, instant in ((plan.now, self.now), (plan.then, self.then)):
            if order:
                self._move_frames(instant)
        if plan.joints_function:
            channels[:, c.q : c.v], channels[:, c.v : c.impulse] = plan.joints_function(q, v)
        if plan.has_lengths:
            lengths, S = plan.lengths_function.evaluate(q)
            count, row = len(plan.tendons) + len(plan.reaches), len(robot.model.tree.parent)
            first = lengths.shape[1] - plan.lengths_function.table.extra
            channels[:, c.length : c.length + count] = lengths[:, first : first + count]
            channels[:, c.length_rate : c.length_rate + count] = ordered_sum(S[:, row : row + count] * v[:, None])
        if plan.has_compensation:
            force = plan.carrying.gravity_force(q0)
            channels[:, c.compensation : c.length] = np.where(self.rested[:, None], 0.0, force)
        if len(x.drives.S):
            x.drives.coordinates[...], x.drives.S[...] = forces.all_coordinates(q0), forces.map(q0)

    def _move_frames(self, x: Instant) -> None:
        """Write the motion of frames; cameras that are not fixed to their bodies move with the bodies where they are."""
        plan, order = self.plan, self.plan.order
        given, T, v, a = x.arguments(order), x.placement, x.velocity, x.acceleration
        assert plan.frames_function is not None
        plan.frames_function(*given[:order], out=given[order:] if order > 1 else given[1])
        for k, camera in plan.cameras.items():
            T[:, k], fixed = camera(x.q), plan.frames.index(plan.frames[k])
            arm, w = T[:, k, :3, 3] - T[:, fixed, :3, 3], v[:, k, 3:]
            v[:, k, :3] += cross(w, arm)
            a[:, k, :3] += cross(a[:, k, 3:], arm) + cross(w, cross(w, arm))

    def kept(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return a quantity that several sensors need, computed once for a measurement."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]

    @property
    def rested(self) -> Array:
        """Marks of the robots (robots,) that have taken no step from their states."""
        return np.asarray(np.isnan(self.home.states.before_v).any(axis=1))


def _call(function: CompiledFunction[Any] | None, *arrays: Array) -> MachineCall:
    return NO_CALL if function is None else machine_call(function, *(x[0] for x in arrays))


def cross(a: Array, b: Array) -> Array:
    """Return the vector product of vectors (..., 3); `numpy.cross` takes ten times as long for a few vectors."""
    return np.asarray(a[..., NEXT] * b[..., PREVIOUS] - a[..., PREVIOUS] * b[..., NEXT])


class SensorReadings(np.ndarray[Any, np.dtype[np.float64]]):
    """Sensor readings (nsensordata,) of one robot, or (robots, nsensordata) of many, in the order of the file.

    `readings["imu_gyro"]` is a view of the readings of one sensor, (dim,) or (robots, dim). Every other index, and arithmetic,
    returns a plain array. Raises KeyError for an unknown sensor name.
    """

    names: Mapping[str, slice]

    def __new__(cls, values: Array, names: Mapping[str, slice]) -> SensorReadings:
        readings = np.ascontiguousarray(values, np.float64).view(cls)
        readings.names = names
        return readings

    def __array_finalize__(self, source: object) -> None:
        self.names = getattr(source, "names", {})

    def __array_wrap__(self, array: Array, context: object = None, return_scalar: bool = False) -> Any:
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def __reduce__(self) -> tuple[object, ...]:
        return SensorReadings, (np.array(self), dict(self.names))

    def __getitem__(self, which: Any) -> Any:
        plain = self.view(np.ndarray)
        if not isinstance(which, str):
            return plain[which]
        if which not in self.names:
            raise UnknownNameError(f"there is no sensor {choose_from(which, list(self.names)).replace('it has', 'there are')}")
        return plain[..., self.names[which]]

    def keys(self) -> list[str]:
        return list(self.names)

    def __repr__(self) -> str:
        shape = "" if self.ndim < 2 else f" of {len(self)} robots"
        parts = ", ".join(f"{name}: {np.array2string(self[name], precision=4)}" for name in self.names) if self.ndim < 2 else ""
        return visible(f"<SensorReadings{shape}: {parts or ', '.join(self.names) or 'none'}>")
