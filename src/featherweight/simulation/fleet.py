"""Identical robots: their states, inputs and contacts, the threads that simulate them, and the handling of failed steps."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter as time_now
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array, Integers, Matrix, Tensor, Vector
from ..collision.detection import ContactPoints
from ..contact.laws import RIGID
from ..contact.spread_impulses import closed_contacts, spread_impulses
from ..engine.compilation_messages import WHOLE
from ..engine.function import CompiledFunction
from ..engine.loops.kernels import Layout, Table
from ..engine.loops.prepared_calls import prepared_call
from ..engine.progress import Progress
from ..engine.threads import processors, share_out
from ..model.model_sensors import OF_LAST_STEP
from .contact_arrays import ContactArrays
from .contact_stage import ContactStage
from .failure import SimulationError
from .fleet_loop import ATTEMPT, LOOK, RUN, STEP, WORK_ON_ROBOTS
from .fleet_vectors import STEPS as VECTOR_STEPS
from .fleet_vectors import FleetVectors
from .overlaps import overlaps, warn_of_overlaps
from .robot_tables import StagesTable, new_stages, stages_table
from .stage_records import (
    EVERY,
    INTERIOR_STEPS,
    NEWTON_STEPS,
    RESIDUAL,
    SINCE,
    UNTIL,
    WITH_CONTROL,
    FleetArrays,
    FleetContacts,
    FleetInputs,
    FleetStates,
    RobotStages,
    VariedArrays,
)  # fmt: skip
from .step_failures import FailedStep
from .step_model import StepModel
from .step_status import NO_ROOM, TAKEN

ROOM = 16  # initial room for contacts of a robot
GRAIN = 4  # least number of robots in a thread's piece
MOST_STEPS = 1000  # greatest number of steps in one call
MANY_STEPS = 20  # whose progress is reported if they take long
FLOAT = np.dtype(np.float64)
OF_PLACES = "candidate", "point", "gap", "normal", "bodies", "force", "turn"  # fields of `FleetContacts` with room for contacts
OF_STATE = (  # fields of `FleetStates`, without those of the work on steps
    "q", "v", "act", "steps", "last_row", "report", "inexact", "opened", "deepest", "before_q", "before_v", "before_act",
)  # fmt: skip
OF_ADDRESSES = (  # attributes made by `_bind` and `_compile`
    "vectors", "_run", "_one", "_alone", "_one_step", "_many", "_tables", "_tau", "_control",
    "arrays",
)  # fmt: skip


class Inputs(NamedTuple):
    """Joint forces (.., nv), controls (.., nu), and forces on bodies (.., bodies, 6), or None."""

    tau: Any = None
    control: Any = None
    external: Any = None


class Fleet:
    """States q (robots, nq) and v (robots, nv), with compiled steps.

    `failed` marks the robots whose step failed. `revision` changes with the states and with the values of `vary`.
    """

    def __init__(self, model: StepModel, contacts: ContactStage, touching: bool, threads: int | None, on_failure: str) -> None:
        self.model, self.contacts, self.threads, self.on_failure = model, contacts, threads, on_failure
        self.room = ROOM * (2 if contacts.settings.turning else 1)
        self._external = model.in_fluid or bool(model.forces.sticky)  # whether forces on bodies are possible
        self._tables: deque[StagesTable] = deque()
        self.varied = VariedArrays.none()
        self.revision = 0
        self._enabled = contacts.scene.enabled.copy()
        self._remembers = any(s.kind in OF_LAST_STEP for s in model.robot.sensors)
        self._last_inputs = -1, Inputs()
        self._touching, self.told = touching, False  # `told`: whether warnings about the start were issued

    def __getstate__(self) -> dict[str, object]:
        """Return all attributes except machine code and tables of addresses, which a copy makes for its own arrays."""
        return {name: x for name, x in vars(self).items() if name not in OF_ADDRESSES} | {"_ready": False}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._tables = deque()
        if "_home" in state:
            self._bind(self._home)

    # states

    def reset(self, q: Matrix, v: Matrix, time: float = 0.0) -> None:
        """Start at these states. An error, or Ctrl-C, leaves the fleet as it was."""
        self.revision += 1
        start, failed, home = (q.copy(), v.copy()), np.zeros(len(q), bool), self._new_arrays(q, v)
        enabled, drawn = self.contacts.scene.enabled, self.contacts.touching.drawn.any()
        before, enabled_before = vars(self) | {"_ready": False}, enabled.copy()
        try:
            self.start, self.failed, self._home, self._timed = start, failed, home, (time, 0)
            self._bind(home)
            if drawn:
                enabled[:] = self._enabled
                self.contacts.leave_out(*self.look())
        except BaseException:
            vars(self).update(before)
            self._tables.clear()  # which may have room for more contacts
            enabled[:] = enabled_before
            raise

    def begin_as_drawn(self, q: Vector) -> None:
        """Exclude permanently the pairs of shapes of a robot that overlap at q (nq,), the file's configuration."""
        if self.contacts.touching.drawn.any():
            self.reset(q[None], np.zeros((1, self.model.robot.nv)))
            self._enabled = self.contacts.scene.enabled.copy()

    @property
    def steps(self) -> int:
        """The number of steps since the reset, which the compiled loop counts when it writes the states."""
        return int(self._home.states.steps.item(0))

    @property
    def time(self) -> float:
        """The time of the states [s]."""
        time, first = self._timed
        return float(time + (self._home.states.steps.item(0) - first) * self.model.h)

    def set_time(self, time: float) -> None:
        """Set the time of the states, which go on."""
        self._timed = time, self.steps

    def look(self) -> tuple[Integers, Vector]:
        """Return the candidates (k,) and gaps (k,) of the current contacts of the first robot."""
        if not self.contacts.bodies:
            self._compile()
            return np.zeros(0, np.int64), np.zeros(0)
        self._compile()
        while not self._work(LOOK, 0, 1):
            self._make_room()
        c = self.arrays.contacts
        found = c.candidate[0, : c.counts[0]].copy(), c.gap[0, : c.counts[0]].copy()
        c.counts[0] = 0
        return found

    def reset_some(self, which: int | Array, q: Array, v: Array) -> None:
        """Restart the robots numbered `which`, at states (some, ..)."""
        self._change()
        states, contacts = self._home.states, self._home.contacts
        states.q[which], states.v[which] = q, v
        self.start[0][which], self.start[1][which] = q, v
        self.failed[which] = False
        for x in (states.last_row, states.report, states.inexact, states.opened, states.act, contacts.counts, contacts.wrench):
            x[which] = 0
        states.deepest[which] = self.model.deepest_start
        self._forget_before(which)

    def _change(self) -> None:
        """Register a change between steps that keeps the inputs of the last step."""
        revision, inputs = self._last_inputs
        self.revision += 1
        if revision == self.revision - 1:
            self._last_inputs = self.revision, inputs

    def _forget_before(self, which: int | Array | slice = slice(None)) -> None:
        """Mark robots as having taken no step from their states."""
        states = self._home.states
        if len(states.before_q):
            states.before_q[which] = states.before_v[which] = np.nan

    def _new_arrays(self, q: Matrix, v: Matrix) -> FleetArrays:
        robots, model = len(q), self.model
        contacts, bodies = self.contacts, len(model.robot.bodies)
        differing = [len(x) for x in self.varied if len(x)]
        if differing and robots != differing[0]:
            raise ValueError(
                f"q has rows for {robots} robots, but vary() had another number of robots: call vary() without arguments first"
            )

        def zeros(*shape: int) -> Array:
            return np.zeros((robots, *shape))

        none = np.zeros((0, 0, 0))
        return FleetArrays(
            FleetStates(
                q=np.array(q, order="C"), v=np.array(v, order="C"), active=np.ones(robots, bool),
                taken=np.zeros(robots, np.int64), steps=np.zeros(robots, np.int64), status=np.zeros(robots, np.int64),
                plan=np.ones(3, np.int64), kept_q=none, kept_v=none, last_row=zeros(len(contacts.rows.joint)), report=zeros(7),
                inexact=np.zeros(robots, np.int64), opened=zeros(), deepest=np.full(robots, model.deepest_start),
                act=zeros(model.forces.states),
                before_q=np.full((robots if self._remembers else 0, q.shape[1]), np.nan),
                before_v=np.full((robots if self._remembers else 0, v.shape[1]), np.nan),
                before_act=np.zeros((robots if self._remembers else 0, model.forces.states)),
                order=np.arange(robots),
            ),
            FleetInputs(zeros(1, v.shape[1]), zeros(1, model.forces.nu), zeros(1, bodies, 6), np.zeros(2, bool)),
            FleetContacts(
                counts=np.zeros(robots, np.int64), candidate=np.zeros((robots, self.room), np.int64),
                point=zeros(self.room, 3), gap=zeros(self.room), normal=zeros(self.room, 3), bodies=zeros(self.room, 2),
                solved=np.zeros(robots, np.int64), force=zeros(self.room, 3),
                turn=zeros(self.room, 3 if contacts.settings.turning else 0),
                wrench=zeros(len(contacts.bodies), 6),
            ),
            self.varied,
        )  # fmt: skip

    def _bind(self, arrays: FleetArrays) -> None:
        """Use these arrays."""
        self._ready, self.arrays, inputs = False, arrays, arrays.inputs
        self._tau, self._control = (x[0, 0] if len(x) == 1 else x[:, 0] for x in (inputs.tau, inputs.control))
        robots = len(arrays.states.q)
        self._tau_shapes, self._control_shapes = ((x.shape, (robots, x.shape[-1])) for x in (self._tau, self._control))
        self._given = inputs.given
        self._single = robots == 1
        self._fails_aloud = robots == 1 and self.on_failure == "raise"

    def _begin(self) -> None:
        """Prepare the first steps, and warn about problematic starts."""
        self._compile()
        self.model.robot.warn_where_irregular(self.q, masses=not self.told)
        if self.told:
            return
        self.told, model = True, self.model
        parts = model.deepest_start == math.inf and self.contacts.settings.law == RIGID
        if self._touching and parts:
            warn_of_overlaps(model.robot.name, overlaps(self.contacts, *self.look()))

    def _compile(self) -> None:
        """Get the machine code for the current arrays, the loop first, whose time predicts the total."""
        self._many = Table(self.arrays)
        with self.model.wait:
            layout = self._tables[-1].layout if self._tables else Layout(RobotStages, self._new_stages())
            self._run = WORK_ON_ROBOTS.for_layouts(layout, self._many.layout)
            self.model.wait.whole = WHOLE  # if the loop was cached, the robot's functions take the time
            one = self._table()
        self._tables.append(one)
        if "vectors" not in vars(self):
            self.vectors = FleetVectors(self.model, self.contacts, self._new_stages)
        self.vectors.run, self.vectors.kind = self._run, (self.room, self._external, [len(x) > 0 for x in self.varied])
        self._one = one  # Ctrl-C can take it away from the others
        tables, arguments = (one, self._many), (one.address, self._many.address, 0, 1)
        self._alone, self._one_step = (prepared_call(self._run, *arguments, work, kept=tables) for work in (RUN, STEP))
        self._ready = True

    def _table(self) -> StagesTable:
        """Return new stages for one thread."""
        try:
            return self._tables.pop()
        except IndexError:
            return stages_table(self.model, self.contacts, self._new_stages(), self._external)

    def _new_stages(self) -> RobotStages:
        return new_stages(self.model, self.contacts, self.room, len(self.varied.parameters) > 0)

    @property
    def _differ(self) -> bool:
        """Return whether robots differ from one another."""
        return any(len(x) for x in self.varied)

    def vary(self, varied: dict[str, Array]) -> None:
        """Give robots their own parameters, by fields of `VariedArrays`."""
        self._change()
        made = VariedArrays.none()._replace(**varied)
        home, self._ready = self._home._replace(varied=made), False
        if [len(x) > 0 for x in made] != [len(x) > 0 for x in self.varied]:
            self._tables.clear()
        self.varied, self._home = made, home
        self._bind(home)

    def require_alike(self, what: str) -> None:
        """Raise NotImplementedError for robots that differ."""
        if self._differ:
            raise NotImplementedError(f"{what} for robots that differ from one another (vary) are not implemented")

    @property
    def home(self) -> FleetArrays:
        """The arrays of all robots."""
        return self._home

    @property
    def q(self) -> Matrix:
        """Configurations (robots, nq)."""
        return self._home.states.q

    @property
    def activation(self) -> Matrix:
        """Activations of drives (robots, na), followed by states of delays."""
        return self._home.states.act[:, : self.model.forces.na]

    @property
    def v(self) -> Matrix:
        """Velocities (robots, nv)."""
        return self._home.states.v

    def energy(self, q: Matrix, v: Matrix) -> Vector:
        """Return the sum of kinetic, potential and spring energy (robots,) [J], with each robot's inertias and stiffness."""
        robot = self.model.robot
        total = self.with_own_inertias(robot.kinetic_energy, q, v)
        total = total + self.with_own_inertias(robot.potential_energy, q)
        if self.model.passive:
            total = total + self.spring_energy(q)
        return np.asarray(total)

    def spring_energy(self, q: Matrix) -> Vector:
        """Return the energy (robots,) [J] of springs, with each robot's own stiffness."""
        own = (x if len(x) else None for x in (self.varied.stiffness, self.varied.bends))
        return self.model.forces.spring_energy(q, *own)

    def with_own_inertias(self, function: CompiledFunction[Any], *arguments: Array, which: Array | slice = slice(None)) -> Any:
        """Evaluate a function of the robot for some robots, each with its own inertias if they differ."""
        if not len(self.varied.parameters):
            return function(*arguments)
        parametric = self.model.robot.parametric(function)
        own = {"parameters": self.varied.parameters[which], "armature": self.varied.own_armature[which]}
        return parametric(*arguments, *(own[x.name] for x in parametric.program.inputs[len(arguments) :]))

    @property
    def opened(self) -> float:
        """The greatest opening of loops in the last step, before they were closed."""
        return float(self._home.states.opened.max())

    def put(self, q: Matrix, v: Matrix) -> None:
        """Continue from other states."""
        self._change()
        states = self._home.states
        states.q[:], states.v[:], states.deepest[:] = q, v, self.model.deepest_start
        self._forget_before()

    # results of the last step

    def before_last_step(self) -> tuple[Matrix, Matrix]:
        """Return the states (robots, nq) and (robots, nv) before the last step; NaN for robots that have not taken one."""
        states = self._home.states
        return states.before_q, states.before_v

    def activation_before_last_step(self) -> Matrix:
        """Return activations of drives and states of delays (robots, states) before the last step."""
        return self._home.states.before_act

    def last_inputs(self) -> Inputs:
        """Return controls (robots or 1, nu) and forces on bodies (robots or 1, bodies, 6) of the last step, or None."""
        revision, inputs = self._last_inputs
        if revision == self.revision:
            return inputs
        home = self._home.inputs
        return Inputs(control=home.control[:, 0] if home.given[WITH_CONTROL] else None)

    def contact_arrays(self) -> ContactArrays:
        """Return the contacts of all robots."""
        c = self._home.contacts
        return ContactArrays(c.counts, c.candidate, c.point, c.force)

    def spread_contacts(self, which: int | Array | Sequence[int] | slice) -> ContactArrays:
        """Return the contacts of all robots.

        For the robots in `which`, impulses are spread to the contacts that were left out of their patches.
        """
        raw, c = self.contact_arrays(), self._home.contacts
        asked = np.atleast_1d(np.arange(len(c.counts))[which])
        some = asked[c.solved[asked] < c.counts[asked]]
        if not len(some):
            return raw
        impulse, model, own = raw.impulse.copy(), self.contacts.model, self.varied.friction
        for i in some:
            k = int(c.counts[i])
            a, b = c.bodies[i, :k].T.astype(np.int64).copy()
            points = ContactPoints(c.candidate[i, :k], a, b, c.point[i, :k], c.normal[i, :k], c.gap[i, :k])
            surfaces = own[i] if len(own) else model.friction, model.restitution
            closed = closed_contacts(points, *surfaces, raw.impulse[i, :k], int(c.solved[i]))
            impulse[i, :k] = spread_impulses(points, *surfaces, raw.impulse[i, :k], closed, model.settings.pyramid)
        return raw._replace(impulse=impulse)

    def contact_wrenches(self) -> Tensor:
        """Return impulses (robots, nbodies, 6) of contacts on bodies."""
        wrenches, c = np.zeros((len(self.q), len(self.model.robot.bodies), 6)), self._home.contacts
        wrenches[:, self.contacts.numbers] = np.where((c.counts > 0)[:, None, None], c.wrench, 0.0)
        return wrenches

    def row_impulses(self) -> Matrix:
        """Return impulses (robots, n) of limits and dry friction."""
        rows = self.contacts.rows
        impulses = np.zeros((len(self.q), self.model.forces.rows))
        np.add.at(impulses.T, rows.dof, (rows.sign * self._home.states.last_row).T)
        return impulses

    def limit_impulses(self) -> Matrix:
        """Return nonnegative impulses (robots, rows) of limits, by rows of all joints and lengths."""
        rows, limits = self.contacts.rows, ~self.contacts.rows.friction
        impulses = np.zeros((len(self.q), self.model.forces.rows))
        np.add.at(impulses.T, rows.dof[limits], self._home.states.last_row[:, limits].T)
        return impulses

    def contact_normals(self) -> Tensor:
        """Return normals (robots, room, 3) of the contacts of all robots."""
        return self._home.contacts.normal

    def contact_gaps(self) -> Matrix:
        """Return gaps (robots, room) [m] beyond margins of the contacts of all robots."""
        return self._home.contacts.gap

    def solver_work(self) -> tuple[float, float, float, int]:
        """Return residual [m/s], Newton and interior-point steps, maxima over all robots, and the count of inexact steps."""
        most = self._home.states.report.max(axis=0)
        return most[RESIDUAL], most[NEWTON_STEPS], most[INTERIOR_STEPS], int(self._home.states.inexact.sum())

    # steps

    def step(self, tau: ArrayLike | None, control: ArrayLike | None, steps: int = 1) -> bool:
        """Take steps under joint forces and controls of all robots. Return False for inputs that need conversion.

        Inputs are None or float64 arrays with suitable shapes.
        """
        self.revision += 1
        if not (self._ready and self.told):
            self._bind(self._home)
            self._begin()
        if tau is None:
            self._tau.fill(0.0)
        elif type(tau) is np.ndarray and tau.dtype is FLOAT and tau.shape in self._tau_shapes:
            self._tau[...] = tau
        else:
            return False
        if control is None:
            self._given[WITH_CONTROL] = False
        elif type(control) is np.ndarray and control.dtype is FLOAT and control.shape in self._control_shapes:
            self._control[...] = control
            self._given[WITH_CONTROL] = True
        else:
            return False
        if not (self._fails_aloud and steps == 1) or self._one_step() != 1:
            self._run_all(steps)
        return True

    def run(self, steps: int, inputs: Inputs, every: int = 1, keep: bool = False) -> tuple[Tensor, Tensor]:
        """Take steps with inputs (robots or 1, steps or 1, ..).

        With `keep`, return states (robots, kept, nq) and (robots, kept, nv): every `every`-th state, starting with the first.
        Robots that fail stop before that step, or restart. If failures are errors, raises SimulationError: all robots are then
        at the state before the first failure.
        """
        self.revision += 1
        if not self._ready:
            self._bind(self._home)
        a = self._home
        states = a.states
        if not keep and inputs.external is None and all(x is None or x.shape[1] == 1 for x in inputs):
            for mine, x in ((a.inputs.tau, inputs.tau), (a.inputs.control, inputs.control)):
                mine[...] = 0.0 if x is None else x
            a.inputs.given[:] = inputs.control is not None, False
            self._run_all(steps)
            return states.kept_q, states.kept_v
        kept, robots = 1 + steps // every if keep else 0, len(states.q) if keep else 0
        q, v = np.empty((robots, kept, states.q.shape[1])), np.empty((robots, kept, states.v.shape[1]))
        if keep:
            q[:, 0], v[:, 0] = states.q, states.v
        if inputs.external is not None and not self._external:
            self._external = True
            self._tables.clear()
        zeros = (np.zeros((1, 1, *x.shape[2:])) for x in a.inputs[:3])
        given: list[Any] = [np.ascontiguousarray(z if x is None else x, np.float64) for x, z in zip(inputs, zeros, strict=True)]
        flags = np.array([inputs.control is not None, inputs.external is not None])
        given_inputs = FleetInputs(given[0], given[1], given[2], flags)
        last = {name: x[:, -1].copy() for name, x in zip(inputs._fields, inputs, strict=True) if x is not None and x.shape[1]}
        self._last_inputs = self.revision, Inputs(**last)
        try:
            states.plan[EVERY] = every
            self._bind(a._replace(states=states._replace(kept_q=q, kept_v=v), inputs=given_inputs))
            self._run_all(steps)
        finally:
            states.plan[:2] = 1
            self._bind(self._home)
        return q, v

    def _run_all(self, steps: int) -> None:
        if not (self._ready and self.told):
            self._begin()
        self._raise_errors()  # errors of a step that was tried before
        self.failures: dict[int, tuple[int, SimulationError]] = {}
        time, states = self.time, self.arrays.states
        try:
            if self._single:
                self._run_alone(steps, time)
            else:
                self._run_many(steps, time)
        except SimulationError:
            raise
        except BaseException:  # from a function of the user, or Ctrl-C
            self._errors()
            raise
        finally:
            states.plan[UNTIL] = 1

    def _run_many(self, steps: int, time: float) -> None:
        """Take steps of several robots. If a step fails aloud, or Ctrl-C interrupts them, no robot takes it."""
        states, backup, failed = self.arrays.states, self.backup(), None
        try:
            if self.on_failure != "stop":
                self.failed[:] = False
            end = self.steps + steps
            self._take(steps, time)
            if self.failures and self.on_failure == "raise":
                robot, (done, failed) = min(self.failures.items(), key=lambda item: item[1][0])
                self.restore(backup)
                self.failed[:] = False
                end = self.steps + done
                self._take(done, time)
            states.steps[:] = end  # also of robots that stopped
        except BaseException:
            self.restore(backup)
            raise
        if failed is not None:
            raise SimulationError(failed.what, failed.time, robot, len(states.q)) from None

    def _kept(self) -> list[Array]:
        """Return the arrays of the state and of the last step."""
        return [*(getattr(self._home.states, name) for name in OF_STATE), *self._home.contacts, self.failed]

    def backup(self) -> list[Array]:
        """Return copies of the states and of the results of the last step, for `restore`."""
        return [x.copy() for x in self._kept()]

    def restore(self, backup: list[Array]) -> None:
        """Return to the state of a backup, however often Ctrl-C strikes; there may be room for more contacts now."""
        restored = False
        while not restored:
            try:
                for x, before in zip(self._kept(), backup, strict=True):
                    x[tuple(map(slice, before.shape))] = before
                restored = True
            except KeyboardInterrupt:
                pass

    def _run_alone(self, steps: int, time: float) -> None:
        """Take steps of the only robot, in portions, between which Python handles signals."""
        states, stop, end = self.arrays.states, 0, self.steps + steps
        if not (self.on_failure == "stop" and self.failed[0]):
            states.taken[0], states.active[0], self.failed[0] = 0, True, False
            with Progress(self._work_of(steps) if steps > MOST_STEPS else "", steps) as progress:
                while stop < steps and (not self.failures or self.on_failure == "reset"):
                    stop = min(stop + MOST_STEPS, steps)
                    states.plan[UNTIL] = stop
                    if self._alone() != 1:
                        self._go_on(0, stop, time, self.room)
                    progress.advance(stop - progress.done)
            if self.failures and self.on_failure == "raise":
                (_, error), self.failed[0] = self.failures[0], False
                raise SimulationError(error.what, error.time) from None
        states.steps[0] = end  # also if the robot stopped

    def _take(self, steps: int, time: float) -> None:
        """Take steps in portions, between which Python handles signals."""
        self.arrays.states.taken[:] = 0
        stop, what = 0, self._work_of(steps) if steps >= MANY_STEPS else ""
        with Progress(what if steps > MOST_STEPS else "", steps) as progress:  # else the robots of a portion are counted
            while stop < steps:
                stop = self._take_portion(stop, steps, time, what)
                progress.advance(stop - progress.done)

    def _work_of(self, steps: int) -> str:
        """Describe steps, for messages."""
        return f"simulation of {len(self.q)} robots {self.model.robot.name!r}, {steps} steps"

    def _take_portion(self, stop: int, steps: int, time: float, what: str) -> int:
        """Take some steps from the step `stop` on; return the step that is reached."""
        states = self.arrays.states
        in_vectors = self.vectors.ready(len(states.q))
        room = self.room
        states.plan[SINCE] = stop
        stop = min(stop + (VECTOR_STEPS if in_vectors else MOST_STEPS), steps)
        states.active[:] = ~self.failed | (self.on_failure == "reset")
        states.plan[UNTIL] = stop
        if in_vectors:
            taken = self.vectors.take_steps(self.arrays, self._many.address, self.threads, what)
        else:
            begun = time_now()
            taken = self._work(RUN, 0, len(states.q), what)
            if getattr(WORK_ON_ROBOTS, "fused", False):  # other loops have different rounding errors
                self.vectors.spend(time_now() - begun, len(states.q), self._many.layout)
        if taken == np.count_nonzero(states.active):
            return stop
        for i in np.flatnonzero(states.active & (states.taken < stop)):
            self._go_on(int(i), stop, time, room)
        return stop

    def _work(self, work: int, first: int, stop: int, what: str = "") -> int:
        """Work on robots first to stop, on as many threads as pay off; return the number of successes."""
        done, run, many = [], self._run, self._many  # the calls keep them, whatever a function of the user does

        def piece(i: int, j: int) -> None:
            one = self._table()
            done.append(run(one.address, many.address, first + i, first + j, work))
            self._tables.append(one)

        robots = stop - first
        share_out(piece, robots, 1 if robots < 2 * GRAIN else self.threads or processors(), GRAIN, what)
        return sum(done)

    def _work_alone(self, work: int, i: int) -> int:
        """Work on robot i with the last of the tables, which remains the last."""
        one, many = self._last_table(), self._many
        return int(self._run(one.address, many.address, i, i + 1, work))

    def _last_table(self) -> StagesTable:
        """Return the last of the tables, which remains the last after exceptions: prepared calls contain its address."""
        one = self._table()
        self._tables.append(one)
        return one

    # failed steps

    def _go_on(self, i: int, steps: int, time: float, tried: int) -> None:
        """Take the rest of one robot's steps, after its next step needed more room for contacts than `tried`."""
        while (states := self.arrays.states).taken[i] < steps:
            status = states.status[i]
            self._raise_errors()
            if status == NO_ROOM:
                if self.room == tried:  # otherwise another robot has enlarged the room since
                    self._make_room()
                tried = self.room
            elif status != TAKEN:
                k = int(states.taken[i])
                error = self._failure(i, k, time + k * self.model.h)
                self.failed[i] = True
                self.failures[i] = k, error
                if self.on_failure != "reset":
                    self._keep_stopped(i, k)
                    return
                self.reset_some(i, self.start[0][i], self.start[1][i])
                self.failed[i] = True
                states.taken[i] += 1
                states.steps[i] += 1
                self._keep(i)
            self._work(RUN, i, i + 1)

    def _failure(self, i: int, k: int, time: float) -> SimulationError:
        """Attempt step k of robot i again, alone, to get the message of its failure."""
        one, many, states = self._last_table(), self._many, self.arrays.states
        plan, active = states.plan[UNTIL], states.active[i]
        states.taken[i], states.plan[UNTIL], states.active[i] = k, k + 1, True
        self._run(one.address, many.address, i, i + 1, RUN)
        states.plan[UNTIL], states.active[i] = plan, active
        return FailedStep(self.model, self.contacts, one, time).error(int(states.status[i]), i, len(states.q))

    def _raise_errors(self) -> None:
        """Raise the first exception of a Python function, from any thread, and discard the others."""
        for error in self._errors():
            raise error

    def _errors(self) -> list[BaseException]:
        """Return the exceptions of Python functions, and forget them."""
        errors: list[BaseException] = []
        for one in (*self._tables, self._one):
            errors += one.errors
            one.errors.clear()
        return errors

    def _keep(self, i: int) -> None:
        """Record the state of one robot, if it is one of the recorded states."""
        states = self.arrays.states
        k, every = int(states.taken[i]), int(states.plan[EVERY])
        if len(states.kept_q) and k % every == 0:
            states.kept_q[i, k // every], states.kept_v[i, k // every] = states.q[i], states.v[i]

    def _keep_stopped(self, i: int, k: int) -> None:
        """Record the state of a robot that stopped after k steps for all later ones."""
        states = self.arrays.states
        later = k // int(states.plan[EVERY]) + 1
        if len(states.kept_q):
            states.kept_q[i, later:], states.kept_v[i, later:] = states.q[i], states.v[i]

    def _make_room(self) -> None:
        """Make room for more contacts."""
        had, contacts, longer = self.room, self.arrays.contacts, {}
        for name in OF_PLACES:
            x = getattr(contacts, name)
            longer[name] = np.zeros((len(x), 2 * had, *x.shape[2:]), x.dtype)
            longer[name][:, :had] = x
        contacts = contacts._replace(**longer)
        home, self._ready = self._home._replace(contacts=contacts), False
        self._tables.clear()
        self.room, self._home = 2 * had, home
        self._bind(self.arrays._replace(contacts=contacts))
        self._compile()

    # derivatives

    @contextmanager
    def attempt(self, i: int, inputs: Inputs) -> Iterator[RobotStages]:
        """Yield the stages after the step that robot i would take under inputs of one step, without taking it.

        Raises SimulationError if the step fails.
        """
        home, row = self._home.inputs, slice(i, i + 1)
        inputs_and_zeros = zip(inputs, home, strict=False)
        given: list[Any] = [np.zeros_like(z[:1]) if x is None else x[row] if len(x) > 1 else x for x, z in inputs_and_zeros]
        flags = np.array([inputs.control is not None, False])
        try:
            self._bind(self._home._replace(inputs=FleetInputs(given[0], given[1], given[2], flags)))
            self._compile()
            while not (done := self._work_alone(ATTEMPT, i)) and self.arrays.states.status[i] == NO_ROOM:
                self._make_room()
            one = self._tables[-1]
            if not done:
                failed = FailedStep(self.model, self.contacts, one, self.time)
                raise failed.error(int(self.arrays.states.status[i]), i, len(self.q))
            yield one.content
        finally:
            self._bind(self._home)
