"""Rollouts on a device: one thread for each robot, all steps in one launch, with the same stages as on this machine.

The kernel computes in float64, bitwise equal to this machine's results.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array
from ..engine.backends.cuda.device_code import place_of
from ..engine.backends.cuda.device_loop import DeviceLoop, NumberedCalls
from ..engine.backends.cuda.driver import Device
from ..engine.loops.kernels import Layout, MachineCall
from ..engine.program import CoreShape, Input, Output
from .arguments import check_inputs, numbers
from .fleet import Fleet
from .fleet_loop import keep, run
from .robot_tables import calls_of_robot, with_solver_compiled_in
from .stage_records import CallsOfRobot, FleetArrays, FleetGaps, FleetInputs, RobotStages, VariedArrays
from .step_failures import Failure
from .step_status import TAKEN, TOO_MANY_CONTACTS

Rows = Sequence[tuple[int, int]]  # arrays on a device: address of the first row, and row stride in elements

HERE = "roll out on this machine, with NumPy's arrays and without device="
FLOAT = np.dtype(np.float64)
INPUTS = ("tau", "control", "external_forces")  # in the order of `Inputs`


def rolled_out(
    fleet: Fleet, arrays: Mapping[str, Any], steps: int | None, every: int, device: str | None
) -> tuple[Any, Any] | None:
    """Return the states of `Simulation.rollout` on the device of its arrays, or on the named device; None on this machine."""
    given = {name: x for name, x in arrays.items() if x is not None}
    place = place_of("rollout", [(x, name) for name, x in given.items()], device)
    if place is None:
        return None
    _require_that_devices_can(fleet)
    if place.library is None:
        v = given.get("v")
        states = np.atleast_2d(numbers("q", given["q"])), None if v is None else np.atleast_2d(numbers("v", v))
        given["q"], given["v"] = fleet.plant.states(*states)
        given |= {name: numbers(name, given[name]) for name in INPUTS if name in given}
    else:
        there = place.executable(RolloutOnDevice(fleet, {}, 0, 1))  # any number of steps, to inspect the arrays only
        given = {name: there.array(x, f"rollout: {name}") for name, x in given.items()}
        _check_states(fleet, given)
    sizes = fleet.plant.input_sizes
    robots = int(given["q"].shape[0]) if given["q"].ndim > 1 else 1
    steps = check_inputs([(name, given.get(name), sizes[name]) for name in INPUTS], robots, steps)
    if steps == 0:
        given = {name: x for name, x in given.items() if name not in INPUTS}
    call = RolloutOnDevice(fleet, {name: x.shape for name, x in given.items()}, steps, every)
    q, v = place.executable(call).run([given[x.name] for x in call.program.inputs], (robots,), FLOAT, None, None)
    if call.failed is not None:
        failure = call.failed._replace(robots=robots)
        raise failure.error(fleet.model, fleet.contacts)
    return q, v


def roll_out(one: RobotStages, many: FleetArrays, i: int) -> int:
    """Record the first state of robot i, and take its steps. Return 1 if all succeeded."""
    keep(many, i, 0, many.states.q[i], many.states.v[i])
    return run(one, many, i)


class RolloutShapes(NamedTuple):
    """Arrays of a rollout of one robot, in the form in which `Program` describes those of a function."""

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]

    @property
    def shapes(self) -> tuple[CoreShape, ...]:
        return (*(x.shape for x in self.inputs), *(y.shape for y in self.outputs))


class RolloutOnDevice:
    """Code for rows of robots that takes a number of steps and returns every `every`-th state.

    `shapes` are those of the given arguments; all other arguments are zero.
    """

    def __init__(self, fleet: Fleet, shapes: Mapping[str, tuple[int, ...]], steps: int, every: int) -> None:
        self.fleet, self.steps, self.every, self.kept = fleet, steps, every, 1 + steps // every
        nq, nv = fleet.plant.robot.nq, fleet.plant.robot.nv
        cores = {"q": (nq,), "v": (nv,)} | {n: (steps, *size) for n, size in fleet.plant.input_sizes.items()}
        inputs = tuple(Input(name, cores[name]) for name in cores if name in shapes)
        self.program = RolloutShapes("rollout", inputs, (Output("q", (self.kept, nq)), Output("v", (self.kept, nv))))
        self.failed: Failure | None = None  # that with the first step
        self.done = 0  # number of launched robots

    def launch(self, device: Device, stream: int, dtype: np.dtype[Any], states: int, rows: Rows) -> None:
        """Roll out robots, and wait for them. Each argument and result has an address and a row stride in elements."""
        fleet = _copy_of(self.fleet, self.fleet.varied)
        scene = fleet.contacts.scene
        enabled = scene.enabled.copy()
        try:
            if fleet.contacts.touching.drawn.any():  # as on this machine, shapes that overlap on the first robot never touch
                if self.done == 0:
                    first = self._rows_of_robot(device, stream, rows, 0)
                    fleet.reset(first["q"][None], first.get("v", np.zeros(self.fleet.plant.robot.nv))[None])
                    self._enabled = scene.enabled.copy()
                scene.enabled[:] = self._enabled
            begin = 0
            while begin < states:
                loop = loop_of(fleet)
                count = min(states - begin, max(device.free_bytes() // 2 // loop.own_bytes, 1))
                some = [(address + 8 * step * begin, step) for address, step in rows]
                if not self._launch_some(loop, fleet, (device, stream), count, some):
                    fleet.use(fleet.state().with_capacity(2 * fleet.capacity))
                    continue
                begin += count
                self.done += count
        finally:
            scene.enabled[:] = enabled

    def _launch_some(self, loop: DeviceLoop, fleet: Fleet, where: tuple[Device, int], count: int, rows: Rows) -> bool:
        """Roll out robots whose stages fit in memory together; note the first failure. Return whether all contacts fit."""
        device, stream = where
        robot, some = self.fleet.plant.robot, slice(self.done, self.done + count)
        part = _copy_of(fleet, VariedArrays(*(x[some] for x in fleet.varied)))
        arrays = part.new_arrays(part.layout.block(count), count)._replace(gaps=FleetGaps.of(1, 0, 0))
        arrays.states.deepest[:] = part.model.deepest_start
        given = dict(zip((x.name for x in self.program.inputs), rows, strict=False))
        elsewhere: list[tuple[Array, int]] = []
        taken_memory: list[Any] = []

        def there(shape: tuple[int, ...], address: int) -> Array:
            """Return a placeholder of an array on the device."""
            elsewhere.append((np.empty(shape), address))
            return elsewhere[-1][0]

        def dense(name: str, core: tuple[int, ...], own: bool = False) -> Array:
            """Return an argument with a row for each robot or one for all, copied if the caller's array must not change."""
            (address, step), size = given[name], math.prod(core)
            if not own and step in (0, size):
                return there((count if step else 1, *core), address)
            taken_memory.append(device.allocate(8 * count * size, stream))
            goal = int(taken_memory[-1].handle)
            pieces = [(0, 0, count)] if step == size else [(i, i * step, 1) for i in range(count)]
            for i, before, robots in pieces:
                device.copy(goal + 8 * i * size, address + 8 * before, 8 * robots * size, stream)
            return there((count, *core), goal)

        states = arrays.states._replace(
            q=dense("q", (robot.nq,), own=True),
            plan=np.array([self.steps, self.every]),
            **{
                f"kept_{y.name}": there((count, *y.shape), address)
                for y, (address, _) in zip(self.program.outputs, rows[len(given) :], strict=True)
            },
        )
        if "v" in given:
            states = states._replace(v=dense("v", (robot.nv,), own=True))
        inputs = dict(zip(("tau", "control", "external"), INPUTS, strict=True))
        cores = self.fleet.plant.input_sizes
        made: Any = {
            field: dense(name, (self.steps, *cores[name])) if name in given else np.zeros((1, 1, *cores[name]))
            for field, name in inputs.items()
        }
        flags = np.array(["control" in given, "external_forces" in given])
        arrays = arrays._replace(states=states, inputs=FleetInputs(**made, given=flags))
        loop.run(device, stream, arrays, count, elsewhere)
        if not (full := bool((states.status == TOO_MANY_CONTACTS).any())) and (states.status != TAKEN).any():
            i = int(np.where(states.status == TAKEN, self.steps, states.taken).argmin())
            q, time = np.empty(robot.nq), float(states.taken[i] * part.model.h)
            device.copy(q.ctypes.data, int(taken_memory[0].handle) + i * q.nbytes, q.nbytes, stream)
            device.synchronize(stream)
            if self.failed is None or time < self.failed.time:
                known = int(states.status[i]), int(states.culprit[i]), states.symptoms[i]
                self.failed = Failure(*known, q, time, self.done + i, 1)
        for memory in taken_memory:
            memory.close()
        return not full

    def _rows_of_robot(self, device: Device, stream: int, rows: Rows, i: int) -> dict[str, Array]:
        """Return the arguments of one robot, copied to this machine."""
        given = {x.name: np.empty(x.shape) for x in self.program.inputs}
        for x, (address, step) in zip(given.values(), rows, strict=False):
            device.copy(x.ctypes.data, address + 8 * i * step, x.nbytes, stream)
        device.synchronize(stream)
        return given


def _copy_of(fleet: Fleet, varied: VariedArrays) -> Fleet:
    """Return a fleet with its own arrays, for robots with these variations."""
    other = copy.copy(fleet)
    other.varied, other.device_loops = varied, fleet.device_loops
    return other


def loop_of(fleet: Fleet) -> DeviceLoop:
    """Return the kernel for the current stages of a fleet, cached while they have the same form."""
    has_bodies = len(fleet.varied.parameters) > 0
    kept: dict[Any, DeviceLoop] = fleet.device_loops
    key = fleet.capacity, has_bodies, fleet.contacts.scene.enabled.tobytes()
    if key not in kept:
        content, twin = (with_solver_compiled_in(fleet._new_stages()) for _ in range(2))
        calls = NumberedCalls()
        functions = calls_of_robot(fleet.model, fleet.contacts, content, external=True)
        made = {name: calls.call(*call) for name, call in functions.items()}
        made["delassus_of_touching"] = made["impulses_alone"] = MachineCall(0, np.zeros(0, np.int64))
        content = content._replace(calls=CallsOfRobot(**made, solver=None))
        copies = {name: made[name]._replace(pointers=made[name].pointers.copy()) for name in made}
        twin = twin._replace(calls=CallsOfRobot(**copies, solver=None))
        kept.clear()
        kept[key] = DeviceLoop(roll_out, content, twin, calls, Layout(FleetArrays, fleet.arrays))
    return kept[key]


# checks


def _require_that_devices_can(fleet: Fleet) -> None:
    """Raise NotImplementedError for features that the kernels lack, with a remedy."""
    robot, name = fleet.plant.robot, f"{fleet.plant.robot.name}: a rollout on a device"
    if robot.forward_dynamics.execution != "traced":
        raise NotImplementedError(f"{name} needs a robot whose forward_dynamics is traced, which this one's is not; {HERE}")
    if fleet.contacts.inertia.by_sets:
        raise NotImplementedError(
            f"{name} does not support Delassus matrices made for the touching bodies, which this robot needs; {HERE}"
        )
    if fleet.on_failure != "raise":
        raise NotImplementedError(f"{name} supports only on_failure='raise'; change it, or {HERE}")


def _check_states(fleet: Fleet, given: Mapping[str, Any]) -> None:
    """Check the shapes of states on a device, whose values are not read."""
    q, v = given["q"], given.get("v")
    for name, x, n in (("q", q, fleet.plant.robot.nq), ("v", v, fleet.plant.robot.nv)):
        if x is not None and (x.ndim not in (1, 2) or x.shape[-1] != n or 0 in x.shape):
            raise ValueError(f"{name} must have shape (robots, {n}); got {x.shape}")
    if v is not None and q.shape[:-1] != v.shape[:-1]:
        raise ValueError(f"q and v must have the same number of robots; got shapes {q.shape} and {v.shape}")
    for name, x in given.items():
        if x.dtype.kind not in "fiub":
            raise TypeError(f"rollout: {name} must hold real numbers; got dtype {x.dtype}")
