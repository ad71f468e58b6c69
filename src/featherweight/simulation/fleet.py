"""Identical robots: their states, inputs and contacts, the threads that simulate them, and the handling of failed steps."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from time import perf_counter as time_now
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Integers, Matrix, Tensor, Vector
from ..checks import check_labels
from ..contact.contact_solver import SolverReport
from ..engine.compilation_messages import WHOLE
from ..engine.function import CompiledFunction
from ..engine.loops.kernels import Layout, Table
from ..engine.loops.prepared_calls import prepared_call, writing_call
from ..engine.progress import Progress
from ..engine.threads import processors, share_out
from ..model.model_sensors import OF_LAST_STEP
from .arguments import of_robots
from .array_access import ArrayAccess, ContactAccess, converted
from .contact_arrays import ContactArrays, ContactsOfRobot, SpreadImpulses
from .fleet_loop import ENERGY, LOOK, RUN, STEP, WORK_ON_ROBOTS
from .fleet_vectors import STEPS as VECTOR_STEPS
from .fleet_vectors import FleetVectors
from .plant import Plant
from .restarts import Restarts
from .robot_tables import StagesTable, new_stages, stages_table
from .sensors.history import SensorHistory
from .stage_records import (
    EVERY,
    UNTIL,
    WITH_CONTROL,
    WITH_FORCES,
    FleetArrays,
    FleetContacts,
    FleetGaps,
    FleetInputs,
    FleetStates,
    RobotStages,
    VariedArrays,
)  # fmt: skip
from .starts import FirstInputs, overlaps, warn_of_overlaps
from .state import Field, State, StateLayout, time_of
from .step_failures import Failure, SimulationError
from .step_model import WITH_SOLVER
from .step_status import TAKEN, TOO_MANY_CONTACTS

CAPACITY = 16  # initial capacity for contacts of a robot
GRAIN = 4  # least number of robots in a thread's piece
MOST_STEPS = 1000  # greatest number of steps in one call
MANY_STEPS = 20  # whose progress is reported if they take long
KEPT_Q, KEPT_V, KEPT_BLOCKS = "states.kept_q", "states.kept_v", "states.kept_blocks"  # names of arrays of states over time
INPUTS = "inputs.tau", "inputs.control", "inputs.external"  # names of arrays of `Inputs`
OF_WORK = (  # fields of `FleetStates` that describe the work on steps
    "active", "taken", "status", "culprit", "symptoms", "plan", "order", "energy",
)  # fmt: skip
OF_ARRAYS = "access", "contact_access", "_spread", "_restarts"  # attributes made for the current arrays
OF_ADDRESSES = {  # attributes made by `_settle` and `_compile`, and loops on devices
    "device_loops", "slopes", "vectors", "_run", "_one", "_at_once", "_step_once", "_many", "_tables", "arrays",
    "block", "q", "v", "seen", "_energy", "first_contacts", *OF_ARRAYS,
}  # fmt: skip


class Inputs(NamedTuple):
    """Joint forces (.., nv), controls (.., nu), and forces on bodies (.., bodies, 6), or None."""

    tau: Any = None
    control: Any = None
    external: Any = None


NO_INPUTS = Inputs()


def completed(work: Callable[[], object]) -> None:
    """Do work that may begin again at any point, however often Ctrl-C strikes."""
    done = False
    while not done:
        try:
            work()
            done = True
        except KeyboardInterrupt:
            pass


class Fleet:
    """States q (robots, nq) and v (robots, nv), with compiled steps.

    `failed` marks the robots whose step failed. `revision` changes with the states and with the values of `vary`.
    """

    def __init__(self, plant: Plant, threads: int | None, on_failure: str, root_forces: bool = True) -> None:
        self.plant, self.threads, self.on_failure = plant, threads, on_failure
        self.first_inputs = FirstInputs(plant.forces, root_forces)
        self.model, self.contacts = model, contacts = plant.model, plant.contacts
        self._external = model.in_fluid or bool(model.forces.sticky)  # whether forces on bodies are possible
        self._tables: deque[StagesTable] = deque()
        self.device_loops: dict[Any, Any] = {}  # kernels of rollouts on devices, see `device_rollout`
        self.stages_layout: Layout | None = None  # that of all tables of this robot and scene
        self.arrays_layout: Layout | None = None  # that of the arrays of any robots
        self.varied = VariedArrays.none()
        self.differ = False  # whether robots differ from one another
        self.revision = 0
        self._enabled = contacts.scene.enabled.copy()
        self._drawn = bool(contacts.touching.drawn.any())  # whether a reset may exclude pairs of shapes that overlap
        self._compensated = model.robot.model.weight_compensated
        self._remembers = any(s.kind in OF_LAST_STEP for s in model.robot.sensors)
        self.layout = self._layout(CAPACITY * (2 if contacts.settings.turning else 1))
        self.single = True
        self.warned = self._ready = False  # whether warnings about the start were issued, and the steps are prepared
        self._started = False  # whether the start of the last reset was checked
        self._pointed: dict[str, Array] = {}  # see `_point`
        self.slopes: dict[tuple[bool, bool], Any] = {}  # see `derivatives.compiled_slopes`

    def __getstate__(self) -> dict[str, object]:
        """Return all attributes except machine code and tables of addresses, which a copy makes for its own arrays."""
        own = {name: x for name, x in vars(self).items() if name not in OF_ADDRESSES}
        return own | {"_ready": False, "block": self.block.copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        block = state.pop("block")
        vars(self).update(state)
        self._tables, self.device_loops, self.slopes = deque(), {}, {}
        self._use(block, len(block) // self.layout.size)

    def copied(self, plant: Plant) -> Fleet:
        """Return a fleet with the same states for another simulation, of the same robot and scene."""
        other, start = object.__new__(Fleet), tuple(x.copy() for x in self.start)
        own = {"plant": plant, "contacts": plant.contacts, "start": start, "failed": self.failed.copy()}
        other.__setstate__(self.__getstate__() | own)
        return other

    # states

    @property
    def capacity(self) -> int:
        """The number of contacts of a robot that the arrays take."""
        return self.layout.capacity

    def _layout(self, capacity: int) -> StateLayout:
        """Return the fields of states for a number of contacts."""
        model, contacts, robot = self.model, self.contacts, self.model.robot
        bodies, nu, na, rows = len(robot.bodies), model.forces.nu, model.forces.states, len(contacts.rows.joint)
        kind = (
            ("robot", robot.name), ("coordinates", robot.nq), ("velocities", robot.nv), ("activations and delays", na),
            ("rows of limits and friction", rows), ("possible contacts", len(contacts.names)),
            ("bodies that may touch", len(contacts.bodies)), ("friction against spinning", contacts.settings.turning),
            ("pairs of shapes that may be excluded", int(contacts.touching.drawn.sum())), ("controls", nu),
            ("sensors of the last step", self._remembers), ("length of a step [s]", model.h),
            ("sampled sensors", tuple((s.name, s.sensor.sampling.samples) for s in robot.sensors if s.sensor.sampling)),
        )  # fmt: skip
        once, place = Field(()), Field((capacity,), of_contacts=True)
        count = Field((), whole=True)
        points = Field((capacity, 3), of_contacts=True)
        turns = Field((capacity, 3 if contacts.settings.turning else 0), of_contacts=True)
        fields = {
            "q": Field((robot.nq,)), "v": Field((robot.nv,)), "act": Field((na,)), "steps": count, "set_time": once,
            "set_step": count, "last_row": Field((rows,)), "report": Field((len(SolverReport._fields),)),
            "inexact": count, "opened": once, "deepest": once, "counts": count, "candidate": place._replace(whole=True),
            "point": points, "gap": place, "normal": points, "bodies": Field((capacity, 2), of_contacts=True), "solved": count,
            "force": points, "turn": turns, "wrench": Field((len(contacts.bodies), 6)),
        }  # fmt: skip
        if self._remembers:
            fields |= {
                "before_q": fields["q"], "before_v": fields["v"], "before_act": fields["act"],
                "before_given": Field((2,), whole=True), "before_control": Field((nu,)), "before_external": Field((bodies, 6)),
            }  # fmt: skip
        return StateLayout(kind, fields, capacity, model.h)

    def reset(self, q: Array, v: Array, time: float = 0.0) -> None:
        """Start at states (nq,) and (nv,), or (robots, nq) and (robots, nv). After an error, the fleet is as it was."""
        self.revision += 1
        enabled, drawn = self.contacts.scene.enabled, self._drawn
        before, single = vars(self).copy(), q.ndim == 1
        q, v = np.atleast_2d(q), np.atleast_2d(v)
        robots = len(q)
        same = "arrays" in before and robots == len(self.q)
        kept, enabled_before = (self.backup(), enabled.copy()) if same and drawn else (None, enabled)
        try:
            if not same:
                self._use(self.layout.block(robots), robots)
            self._restart(q, v, time, single)
            if drawn:
                enabled[:] = self._enabled
                self.contacts.leave_out(*self.look())
        except BaseException:
            if same and not drawn:  # interrupted: what is begun ends, because nothing keeps the states before
                completed(lambda: self._restart(q, v, time, single))
                raise
            vars(self).update(before | {"_ready": False})
            self._tables.clear()  # which may be for more contacts
            enabled[:] = enabled_before
            if kept:
                self.restore(kept)
            raise

    def _restart(self, q: Matrix, v: Matrix, time: float, single: bool) -> None:
        """Write states at the start of the simulation of as many robots."""
        self._show(single)
        self.start, self.failed, states = (q.copy(), v.copy()), np.zeros(len(q), bool), self.arrays.states
        self.block.fill(0.0)
        states.q[:], states.v[:], states.set_time[:], states.deepest[:] = q, v, time, self.model.deepest_start
        self._forget_before()
        self._started = False

    def reset_as_usual(self, q: Any, v: Any, time: float) -> bool:
        """Reset the only robot, in little time, to a state (nq,) and (nv,) of any types; return whether this was possible.

        It is not for states that are wrong, are to be mended, or need a warning, and the fleet is then as it was. q is the
        default start, and v zero, if they are None.
        """
        if not (self._ready and self.is_alone and self.single and self.plant.starts_freely and not self._drawn):
            return False
        restarts = self._restarts
        if not restarts.give(q, v):
            return False
        restarts.x.time[0] = time
        if not restarts.run():
            return False
        self.revision += 1
        self.start, self._started = restarts.start, False
        self.failed[0] = False
        return True

    @cached_property
    def _restarts(self) -> Restarts:
        return Restarts(self.plant, self._many)

    def begin_as_drawn(self) -> None:
        """Exclude permanently the pairs of shapes that overlap in the file's configuration."""
        if self._drawn:
            self.reset(self.model.robot.start(), np.zeros(self.model.robot.nv))
            self._enabled = self.contacts.scene.enabled.copy()

    @property
    def tau(self) -> Array:
        """The joint forces of the last step, (nv,) of a single robot or (robots, nv)."""
        tau = self.arrays.inputs.tau
        return tau[0, 0] if len(tau) == 1 else tau[:, 0]

    @property
    def steps(self) -> int:
        """The number of steps since the reset, which the compiled loop counts when it writes the states."""
        return int(self.arrays.states.steps.item(0))

    @property
    def time(self) -> float:
        states = self.arrays.states
        time: float = time_of(states.set_time.item(0), states.steps.item(0), states.set_step.item(0), self.model.h)
        return time

    @property
    def times(self) -> Vector:
        """The time of each robot (robots,) [s]; they differ if robots came from states at different times."""
        states = self.arrays.states
        times: Vector = time_of(states.set_time, states.steps, states.set_step, self.model.h)
        return times

    def set_time(self, time: float) -> None:
        self.revision += 1
        states = self.arrays.states
        states.set_time[:], states.set_step[:] = time, states.steps

    def look(self) -> tuple[Integers, Vector]:
        """Return the candidates (k,) and gaps (k,) of the current contacts of the first robot."""
        if not self._ready:
            self._compile()
        if not self.contacts.bodies:
            return np.zeros(0, np.int64), np.zeros(0)
        before = self.backup()
        try:
            while not self._work(LOOK, 0, 1):
                self._enlarge()
            c = self.arrays.contacts
            return c.candidate[0, : c.counts[0]].copy(), c.gap[0, : c.counts[0]].copy()
        finally:
            self.restore(before)

    def reset_some(self, which: int | Array, q: Array, v: Array) -> None:
        self.revision += 1
        states, contacts = self.arrays.states, self.arrays.contacts
        states.q[which], states.v[which] = q, v
        self.start[0][which], self.start[1][which] = q, v
        self.failed[which] = False
        for x in (states.last_row, states.report, states.inexact, states.opened, states.act, contacts.counts, contacts.wrench):
            x[which] = 0
        states.deepest[which] = self.model.deepest_start
        self._forget_before(which)

    def _forget_before(self, which: int | Array | slice = slice(None)) -> None:
        """Mark robots as having taken no step from their states."""
        states = self.arrays.states
        if len(states.before_q):
            states.before_q[which] = states.before_v[which] = np.nan

    def use(self, state: State) -> None:
        """Use the memory of a state, which may have another capacity for contacts."""
        self.layout = state.layout
        self._use(state.block, len(state))

    def _use(self, block: Array, robots: int) -> None:
        """Use a block of states, and other arrays for as many robots."""
        made = self.new_arrays(block, robots)
        self.block = block
        self._settle(made)

    def new_arrays(self, block: Array, robots: int) -> FleetArrays:
        model, scene = self.model, self.contacts.scene
        differing = [len(x) for x in self.varied if len(x)]
        if differing and robots != differing[0]:
            if any((x != x[:1]).any() for x in self.varied):
                raise ValueError(
                    f"q has rows for {robots} robots, but vary() had another number of robots, which differ: call vary() "
                    "without arguments first"
                )
            self.varied = VariedArrays(*(np.repeat(x[:1], robots, axis=0) for x in self.varied))
        own, none = self.layout.arrays(block, robots), np.zeros((0, 0))
        nothing: dict[str, Any] = dict.fromkeys(("before_q", "before_v", "before_act", "before_control"), none)
        nothing |= dict.fromkeys(("kept_q", "kept_v", "before_external"), np.zeros((0, 0, 0)))
        nothing["before_given"] = none.astype(np.int64)
        states = {name: x for name, x in own.items() if name in FleetStates._fields}
        return FleetArrays(
            FleetStates(
                **(nothing | states), active=np.ones(robots, bool), taken=np.zeros(robots, np.int64),
                status=np.zeros(robots, np.int64), culprit=np.zeros(robots, np.int64), symptoms=np.zeros((robots, 3)),
                plan=np.array([1, 1]), order=np.arange(robots),
                energy=np.zeros(robots), block=block, kept_blocks=none,
            ),
            FleetInputs(
                np.zeros((robots, 1, model.robot.nv)), np.zeros((robots, 1, model.forces.nu)),
                np.zeros((robots, 1, len(model.robot.bodies), 6)), np.zeros(2, bool),
            ),
            FleetContacts(**{name: own[name] for name in FleetContacts._fields}),
            FleetGaps.of(robots, len(scene.kind), len(scene.pair)),
            self.varied,
        )  # fmt: skip

    def _settle(self, arrays: FleetArrays) -> None:
        """Use these arrays of all robots."""
        self._ready, self._pointed = False, {}
        for made in OF_ARRAYS:
            vars(self).pop(made, None)
        self.arrays, robots = arrays, len(arrays.states.q)
        self.q, self.v = arrays.states.q, arrays.states.v
        self._show(self.single)
        self.is_alone, self._one_thread = robots == 1, robots < 2 * GRAIN or self.threads == 1

    def _show(self, single: bool) -> None:
        """Set whether users see a single robot, whose arrays have no axis of robots."""
        self.single = single
        self.seen: tuple[Array, Array] = (self.q[0], self.v[0]) if single else (self.q, self.v)
        """Configurations and velocities as users see them."""
        self.first_contacts: Callable[[], ContactsOfRobot | None] | None = None
        """The quickest way to the contacts of a single robot, once `contacts_of` was called; see `ContactAccess.of_robot`."""
        vars(self).pop("access", None)
        vars(self).pop("contact_access", None)

    @cached_property
    def access(self) -> ArrayAccess:
        """Copies of states, and inputs of steps, by built-in functions."""
        return ArrayAccess(self.arrays, self.block, self.single)

    @cached_property
    def contact_access(self) -> ContactAccess:
        """The contacts of the last step, by built-in functions."""
        return ContactAccess(self.contacts, self.arrays.contacts, self.single)

    def _begin(self, idle: bool) -> None:
        """Prepare the first steps, and warn about problematic starts."""
        if not self._ready:
            self._compile()
        if not self._started:
            self.model.robot.warn_where_irregular(self.q, masses=not self.warned)
        if idle:
            self.first_inputs.warn_of_limp_servos()
        if not self.warned:
            self.warned, model = True, self.model
            if model.deepest_start == math.inf and self.plant.holds_rigidly:
                warn_of_overlaps(model.robot, overlaps(self.contacts, *self.look()))
        self._started = True

    def _compile(self) -> None:
        """Get the machine code for the current arrays, the loop first, whose time predicts the total."""
        self._many = Table(self.arrays, self.arrays_layout)
        self.arrays_layout = self._many.layout
        with self.model.wait:
            if self.stages_layout is None:
                self.stages_layout = Layout(RobotStages, self._new_stages())
            if self.contacts.touches:
                self.model.wait.whole = WITH_SOLVER
            self._run = WORK_ON_ROBOTS.for_layouts(self.stages_layout, self._many.layout)
            self.model.wait.whole = WHOLE  # if the loop was cached, the robot's functions take the time
            one = self._table()
        self._tables.append(one)
        if "vectors" not in vars(self):
            self.vectors = FleetVectors(self.model, self.contacts, self._new_stages)
        self.vectors.run, self.vectors.kind = self._run, (self.capacity, self._external, [len(x) > 0 for x in self.varied])
        self._one = one  # Ctrl-C can take it away from the others
        tables, arguments = (one, self._many), (one.address, self._many.address, 0, len(self.q))
        self._at_once = prepared_call(self._run, *arguments, RUN, kept=tables)
        self._step_once = None
        """Write inputs of a step of the only robot, and take it; return 1, 0 if it fails, None if the inputs do not fit."""
        if self.is_alone and self.on_failure != "stop":
            self._step_once = writing_call(self.access.inputs, self._run, *arguments, STEP, kept=tables)
        self._energy = prepared_call(self._run, *arguments, ENERGY, kept=tables, brief=self.is_alone)
        self._ready = True

    def _table(self) -> StagesTable:
        try:
            return self._tables.pop()
        except IndexError:
            return stages_table(self.model, self.contacts, self._new_stages(), self._external, self.stages_layout)

    def _new_stages(self) -> RobotStages:
        return new_stages(self.model, self.contacts, self.capacity, len(self.varied.parameters) > 0)

    def vary(self, varied: dict[str, Array]) -> None:
        """Give robots their own parameters, by fields of `VariedArrays`."""
        self.revision += 1
        made, arrays = VariedArrays.none()._replace(**varied), self.arrays
        self._ready = False
        if len(made.sizes):
            gaps = arrays.gaps
            arrays = arrays._replace(gaps=FleetGaps.of(len(self.q), *(x.shape[1] for x in (gaps.travel, gaps.apart_until))))
        if [len(x) > 0 for x in made] != [len(x) > 0 for x in self.varied]:
            self._tables.clear()
        self.varied, self.differ = made, any(len(x) for x in made)
        self._settle(arrays._replace(varied=made))

    @property
    def activation(self) -> Matrix:
        """Activations of drives (robots, na), followed by states of delays."""
        return self.arrays.states.act[:, : self.model.forces.na]

    def energy(self) -> Any:
        """Return the sum of kinetic, potential and spring energy [J], with each robot's inertias and stiffness.

        It is a number for a single robot, or (robots,).
        """
        if not self._compensated:  # steps know the energy without that of gravity compensation only
            if not self._ready:
                self._compile()
            if self._one_thread:
                self._energy()
            else:
                self._work(ENERGY, 0, len(self.q))
            energy = self.arrays.states.energy
            return energy.item(0) if self.single else energy.copy()
        robot, q, v = self.model.robot, self.q, self.v
        total = self.with_own_inertias(robot.kinetic_energy, q, v)
        total = total + self.with_own_inertias(robot.potential_energy, q)
        if self.model.passive:
            total = total + self.spring_energy(q)
        return float(total[0]) if self.single else np.asarray(total)

    def spring_energy(self, q: Matrix) -> Vector:
        """Return the energy (robots,) [J] of springs, with each robot's own stiffness."""
        own = (x if len(x) else None for x in (self.varied.stiffness, self.varied.poly))
        return self.model.forces.spring_energy(q, *own)

    def with_own_inertias(self, function: CompiledFunction[Any], *arguments: Array, which: Array | slice = slice(None)) -> Any:
        """Evaluate a function of the robot for some robots, each with its own inertias if they differ."""
        if not len(self.varied.parameters):
            return function(*arguments)
        parametric = self.model.robot.parametric(function)
        own = {"parameters": self.varied.parameters[which], "armature": self.varied.own_armature[which]}
        return parametric(*arguments, *(own[x.name] for x in parametric.program.inputs[len(arguments) :]))

    def put(self, q: Matrix, v: Matrix) -> None:
        self.revision += 1
        states = self.arrays.states
        states.q[:], states.v[:], states.deepest[:] = q, v, self.model.deepest_start
        self._forget_before()

    # results of the last step

    def contact_arrays(self) -> ContactArrays:
        c = self.arrays.contacts
        return ContactArrays(c.counts, c.candidate, c.point, c.force)

    def contacts_of(self, i: int) -> ContactsOfRobot:
        """Return the contacts of robot i, with impulses spread to those left out of their patches."""
        access = self.contact_access
        report = access.report
        if i or not self.is_alone:
            report.robot[0] = i = i % len(self.q)
        found = access.of_robot()
        if found is None:
            k = report.used.item(0)
            report.force[:k] = self._spread.of(i, i + 1)[0, :k] / self.model.h
            found = access.spread_of_robot()
        self.first_contacts = access.of_robot if self.single else None
        return found

    @cached_property
    def _spread(self) -> SpreadImpulses:
        return self.spread(self.arrays.contacts)

    def spread(self, contacts: FleetContacts) -> SpreadImpulses:
        """Return the impulses of contacts of all robots, or of the only robot at several instants, spread over patches."""
        model, own = self.contacts.model, self.varied.friction
        friction = own if len(own) else model.friction[None]
        return SpreadImpulses(contacts, friction, model.restitution, model.settings.pyramid)

    def spread_contacts(self, which: int | Array | Sequence[int] | slice) -> ContactArrays:
        """Return the contacts of all robots, as `contacts_of` does for the robots in `which`."""
        raw, c = self.contact_arrays(), self.arrays.contacts
        asked = np.atleast_1d(np.arange(len(c.counts))[which])
        some = asked[c.solved[asked] < c.counts[asked]]
        if not len(some):
            return raw
        impulse = raw.impulse.copy()
        for i in some:
            impulse[i] = self._spread.of(i, i + 1)[0]
        return raw._replace(impulse=impulse)

    def contact_forces(self) -> Array:
        """Return mean forces (nbodies, 6) of contacts on the bodies of a single robot, or (robots, nbodies, 6)."""
        forces: Array = self.contact_access.on_bodies()
        return forces

    # steps

    def inputs(self, tau: Any, control: Any, external: Any) -> Inputs:
        """Return the inputs of a step as arrays (...) or (robots, ...). Raises ValueError for unfit ones."""
        if tau is None and control is None and external is None:
            return NO_INPUTS
        if tau is not None and type(tau) is not np.ndarray:
            check_labels("tau", tau, self.model.robot.labels("v"))
        given, robots = zip(self.plant.input_sizes.items(), (tau, control, external), strict=True), len(self.q)
        return Inputs(*(None if x is None else of_robots(name, x, size, robots) for (name, size), x in given))

    def step(self, tau: Any, control: Any, external: Any, steps: int = 1) -> None:
        """Take steps under joint forces, controls and forces on bodies of all robots. Raises ValueError for unfit inputs."""
        self.revision += 1
        taken: int | None = None
        at_once = steps == 1 and self._ready and self._started and not self.first_inputs.looks
        if at_once and (external is None or self._external) and self._step_once:
            taken = self._step_once(tau, control, external)
            if taken is None:  # lists and other types
                taken = self._step_once(*map(converted, self.access.inputs, (tau, control, external)))
        if taken is None:
            self._give(tau, control, external)
            if not (self._ready and self._started):
                self._begin(tau is None and control is None)
            if self.is_alone and steps <= MOST_STEPS and not (self.on_failure == "stop" and self.failed.item(0)):
                self.failed[0], states = False, self.arrays.states
                states.active[0], states.taken[0], states.plan[UNTIL] = True, 0, steps  # it may have stopped before
                taken = self._at_once()
        if taken != 1:
            self._run_all(steps, tried=taken == 0)
        elif self.on_failure == "reset":
            self.failed[0] = False

    def _give(self, tau: Any, control: Any, external: Any) -> None:
        """Set the inputs of steps, None for none. Raises ValueError for unfit ones."""
        if external is not None and not self._external:
            self._allow_external()
        if not self.access.give(tau, control, external):
            self.access.give(*self.inputs(tau, control, external))
        if tau is not None and self.first_inputs.looks:
            self.first_inputs.look(self.tau)

    def _allow_external(self) -> None:
        self._external, self._ready = True, False
        self._tables.clear()

    def roll_out(
        self, steps: int, inputs: Inputs, every: int = 1, out: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Take steps with inputs (robots or 1, steps, ..) and return states (robots, kept, nq) and (robots, kept, nv).

        Every `every`-th state is kept, starting with the first. Robots that fail stop before that step, or restart. If failures
        are errors, raises SimulationError: all robots are then at the state before the first failure.
        """
        self.revision += 1
        if inputs.external is not None and not self._external:
            self._allow_external()
        if not (self._ready and self._started):
            self._begin(steps > 0 and inputs.tau is None and inputs.control is None)
        if inputs.tau is not None and self.first_inputs.looks:
            self.first_inputs.look(inputs.tau)
        states, shared = self.arrays.states, self.arrays.inputs
        q, v = out or (np.empty((len(x), 1 + steps // every, x.shape[1])) for x in (states.q, states.v))
        q[:, 0], v[:, 0] = states.q, states.v
        shared.tau.fill(0.0)
        shared.given[WITH_CONTROL], shared.given[WITH_FORCES] = inputs.control is not None, inputs.external is not None
        named = zip(INPUTS, inputs, strict=True)
        given = {name: np.ascontiguousarray(x, np.float64) for name, x in named if x is not None}
        self._run_keeping({KEPT_Q: q, KEPT_V: v, **given}, steps, every)
        return q, v

    def record(self, steps: int, inputs: Inputs, every: int) -> Array:
        """Take steps of the only robot under constant inputs; return every `every`-th state after them (kept, block)."""
        self._give(*inputs)
        if not (self._ready and self._started):
            self._begin(inputs.tau is None and inputs.control is None)
        return self._run_keeping({KEPT_BLOCKS: np.empty((1 + steps // every, len(self.block)))}, steps, every)[KEPT_BLOCKS][1:]

    def _run_keeping(self, arrays: dict[str, Array], steps: int, every: int) -> dict[str, Array]:
        """Take steps that read and write other arrays by name; return the arrays, some of which may be other ones by then."""
        try:
            self.arrays.states.plan[EVERY] = every
            self._point(arrays)
            self._run_all(steps)
            return self._pointed
        finally:
            if self._pointed:
                self._many.point_back()
                self._pointed, self._ready = {}, self._many.content is self.arrays

    def _point(self, arrays: dict[str, Array]) -> None:
        """Let steps read and write other arrays for now, by their names in the table `_many`. Ctrl-C may leave them there."""
        self._pointed, self._ready = arrays, not arrays
        for name, x in arrays.items():
            self._many.point(name, x)

    def _run_all(self, steps: int, tried: bool = False) -> None:
        """Take steps. If the step of one of several robots fails aloud, or Ctrl-C interrupts them, no robot takes it.

        With `tried`, the only robot has already taken the steps before the first that failed.
        """
        self._raise_errors()  # of a step that was tried
        self.failures: dict[int, tuple[int, SimulationError]] = {}
        robots, backup = len(self.q), None if self.is_alone else self.backup()
        states = self.arrays.states
        begun = states.steps - tried * states.taken  # robots of a `State` may have taken different numbers of steps
        try:
            if self.on_failure != "stop":
                self.failed.fill(False)
            if tried:
                self._go_on(0, steps, self.capacity)
            else:
                self._take(steps)
            if self.failures and self.on_failure == "raise":
                robot, (done, error) = min(self.failures.items(), key=lambda item: item[1][0])
                if backup:
                    self.restore(backup)
                    self.failures = {}
                    self._take(done)
                self.failed.fill(False)
                raise SimulationError(error.what, error.time, robot, robots)
            if self.on_failure == "stop":
                self.arrays.states.steps[:] = begun + steps  # also of robots that stopped
        except SimulationError:
            raise
        except BaseException:  # from a function of the user, or Ctrl-C
            self._errors()
            if backup:
                self.restore(backup)
            raise

    def backup(self) -> tuple[State, Array]:
        """Return a copy of the states, and which robots failed, for `restore`."""
        return self.state(), self.failed.copy()

    def restore(self, backup: tuple[State, Array]) -> None:
        """Return to the state of a backup, however often Ctrl-C strikes; there may be a larger capacity for contacts now."""
        state, failed = backup

        def write() -> None:
            self.block[:] = state.with_capacity(self.capacity).block
            self.failed[:] = failed

        completed(write)

    def state(self, history: SensorHistory | None = None) -> State:
        return State(
            self.layout, self.access.block(), self.single, history, self.contacts.scene.enabled.copy() if self._drawn else None
        )

    def take_activations(self, other: Fleet) -> None:
        """Take the activations and delays of the robots of another fleet, one for each, or one for all."""
        own, given = self.arrays.states.act, other.arrays.states.act
        if len(given) in (1, len(own)):
            own[:] = given
        elif given.any():
            raise ValueError(
                f"q has rows for {len(own)} robots, and the activations are those of {len(given)}: start from a State, such as "
                "simulation.state[which]"
            )

    def put_state(self, state: State) -> None:
        """Continue from states, of any number of robots. Raises an error for those of another robot or scene."""
        if type(state) is not State or state.layout is not self.layout:
            self.layout.require(state)
            if state.layout.capacity > self.capacity:
                self._enlarge(state.layout.capacity)
            state = state.with_capacity(self.capacity)
        self.revision += 1
        if len(state.block) == len(self.block):
            if not self.access.put_block(state.block):
                self.block[:] = state.block
            self.failed.fill(False)
        elif not len(state):
            raise ValueError("a state of no robots cannot continue")
        else:
            self._use(state.block.copy(), len(state))
            self.start, self.failed = (self.q.copy(), self.v.copy()), np.zeros(len(state), bool)
        if state.single is not self.single:
            self._show(state.single)
        if state.enabled is not None:
            self.contacts.scene.enabled[:] = state.enabled

    def _take(self, steps: int) -> None:
        """Take steps in portions, between which Python handles signals."""
        self.arrays.states.taken.fill(0)
        stop, what = 0, self._work_of(steps) if steps >= MANY_STEPS else ""
        with Progress(what if steps > MOST_STEPS else "", steps) as progress:  # else the robots of a portion are counted
            while stop < steps and not (self.failures and self.on_failure == "raise"):
                stop = self._take_portion(stop, steps, what)
                progress.advance(stop - progress.done)

    def _work_of(self, steps: int) -> str:
        """Describe steps, for messages."""
        return f"simulation of {len(self.q)} robots {self.model.robot.name!r}, {steps} steps"

    def _take_portion(self, stop: int, steps: int, what: str) -> int:
        """Take some steps from the step `stop` on; return the step that is reached."""
        states, robots, capacity, begun = self.arrays.states, len(self.q), self.capacity, time_now()
        in_vectors, since = self.vectors.ready(robots), stop
        portion = VECTOR_STEPS if in_vectors else MOST_STEPS
        if in_vectors and stop == 0 and not self.arrays.contacts.counts.any():
            portion = 1  # which finds the contacts by which robots are grouped
        stop = min(stop + portion, steps)
        states.plan[UNTIL] = stop
        if self.on_failure == "reset":
            states.active.fill(True)
        else:
            np.logical_not(self.failed, out=states.active)
        at_once = self._one_thread and robots * (stop - since) <= MOST_STEPS
        if in_vectors:
            threads = 0 if at_once else self.threads or processors()
            taken = self.vectors.take_steps(self.arrays, self._many.address, threads, what)
        else:
            taken = self._at_once() if at_once else self._work(RUN, 0, robots, what)
            if getattr(WORK_ON_ROBOTS, "fused", False):  # other loops have different rounding errors
                self.vectors.spend(time_now() - begun, robots, self._many.layout)
        if taken == np.count_nonzero(states.active):
            return stop
        for i in np.flatnonzero(states.active & (states.taken < stop)):
            self._go_on(int(i), stop, capacity)
        return stop

    def _work(self, work: int, first: int, stop: int, what: str = "") -> int:
        """Work on robots first to stop, on as many threads as pay off; return the number of successes."""
        run, many = self._run, self._many  # the calls keep them, whatever a function of the user does
        return self.share(lambda one, i, j: run(one.address, many.address, i, j, work), first, stop, what)

    def share(self, work: Callable[[StagesTable, int, int], int], first: int, stop: int, what: str = "") -> int:
        """Work on robots first to stop, on as many threads as pay off, with stages for each; return the sum of the results."""
        done = []

        def piece(i: int, j: int) -> None:
            one = self._table()
            done.append(work(one, first + i, first + j))
            self._tables.append(one)

        robots = stop - first
        share_out(piece, robots, 1 if robots < 2 * GRAIN else self.threads or processors(), GRAIN, what)
        return sum(done)

    def last_table(self) -> StagesTable:
        """Return the last of the tables, which remains the last after exceptions: prepared calls contain its address."""
        one = self._table()
        self._tables.append(one)
        return one

    # failed steps

    def _go_on(self, i: int, steps: int, tried: int) -> None:
        """Take the rest of one robot's steps, after its next step needed a larger capacity for contacts than `tried`."""
        while (states := self.arrays.states).taken[i] < steps:
            status = states.status[i]
            self._raise_errors()
            if status == TOO_MANY_CONTACTS:
                if self.capacity == tried:  # otherwise another robot has enlarged it since
                    self._enlarge()
                tried = self.capacity
            elif status != TAKEN:
                k = int(states.taken[i])
                error = self._failure(i)
                self.failed[i] = True
                self.failures[i] = k, error
                if self.on_failure != "reset":
                    self._keep(i, stopped=True)
                    return
                self.reset_some(i, self.start[0][i], self.start[1][i])
                self.failed[i] = True
                states.taken[i] += 1
                states.steps[i] += 1
                self._keep(i, stopped=False)
            if states.taken[i] < steps:
                self._work(RUN, i, i + 1)

    def _failure(self, i: int) -> SimulationError:
        x = self.arrays.states
        failure = Failure(int(x.status[i]), int(x.culprit[i]), x.symptoms[i], x.q[i], float(self.times[i]), i, len(x.q))
        return failure.error(self.model, self.contacts)

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

    def _keep(self, i: int, stopped: bool) -> None:
        """Record the state of one robot if it is one of the recorded states; or all later ones, of a robot that stopped."""
        states = self.arrays.states
        k, every = int(states.taken[i]), int(states.plan[EVERY])
        rows = slice(k // every + 1, None) if stopped else slice(-(-k // every), k // every + 1)
        if KEPT_Q in self._pointed:
            self._pointed[KEPT_Q][i, rows], self._pointed[KEPT_V][i, rows] = states.q[i], states.v[i]

    def _enlarge(self, capacity: int = 0) -> None:
        """Enlarge the capacity for contacts: twice, or to `capacity`."""
        before, larger = self.layout, self.state().with_capacity(capacity or 2 * self.capacity)
        home, pointed = self.arrays, self._pointed
        self._tables.clear()
        self.layout, self.block = larger.layout, larger.block
        made = self.new_arrays(self.block, len(larger))
        work: dict[str, Any] = {name: getattr(home.states, name) for name in OF_WORK}
        self._settle(made._replace(states=made.states._replace(**work), inputs=home.inputs))
        self._compile()
        if KEPT_BLOCKS in pointed:
            pointed[KEPT_BLOCKS] = self.layout.moved(pointed[KEPT_BLOCKS], before)
        self._point(pointed)

    # derivatives

    def begin_inputs(self, inputs: Inputs) -> Table:
        """Set the inputs of the next step of all robots; return the table of their arrays. Raises ValueError for unfit ones."""
        self._give(*inputs)
        if not self._ready:
            self._compile()
        self.arrays.states.status.fill(TAKEN)
        return self._many

    def after_failed_attempts(self) -> Table:
        """Enlarge the capacity if contacts need it; return the table of arrays. Raises the error of the first other step."""
        for i in np.flatnonzero(self.arrays.states.status != TAKEN):
            if self.arrays.states.status[i] != TOO_MANY_CONTACTS:
                self._raise_errors()
                raise self._failure(int(i))
        self._enlarge()
        self.arrays.states.status.fill(TAKEN)
        return self._many
