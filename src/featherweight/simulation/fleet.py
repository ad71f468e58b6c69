"""Robots alike whose steps are compiled: their states, inputs and contacts, and what happens where a step cannot be taken."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from ..engine.function import CompiledFunction
from ..engine.threads import processors, share_out
from .contact_arrays import ContactArrays
from .failure import SimulationError
from .fleet_loop import RUN_ROBOTS, FleetArrays
from .machine_code import Table
from .robot_tables import stages_table

Array = np.ndarray[Any, np.dtype[Any]]

ROOM = 16  # contacts of a robot, at first
GRAIN = 4  # robots of a thread's piece, at least
MOST_STEPS = 1000  # in one call
FLOAT = np.dtype(np.float64)
FLAT = (  # that may be there, with two axes
    "friction", "damping", "stiffness", "lower", "upper", "armature", "own_armature", "middle_armature",
)  # fmt: skip
OF_ADDRESSES = ("_run", "_alone", "_many", "_tables", "_tau", "_control", "arrays")  # what `_bind` and `_compile` make
DEEP = ("drives", "parameters", "kept_q", "kept_v")  # and with three


def _none() -> dict[str, Array]:
    """Arrays that are not there."""
    return {name: np.zeros((0, 0)) for name in FLAT} | {name: np.zeros((0, 0, 0)) for name in DEEP}


class Inputs(NamedTuple):
    """Joint forces (.., nv), controls (.., nu), and forces on bodies (.., bodies, 6), or None."""

    tau: Any = None
    control: Any = None
    external: Any = None


def can_be_compiled(stepper: Any, contacts: Any) -> bool:
    """Whether the functions that a step calls are machine code of their own: those that are too large for that keep loops."""
    robot, inertia = stepper.robot, contacts.inertia
    if inertia.by_sets or (stepper.looped and robot.step_functions.closing_step is None):
        return False
    return all(f.execution == "traced" for f in (robot.forward_dynamics, *inertia.functions))


class Fleet:
    """States q (robots, nq) and v (robots, nv), moved by compiled steps.

    `failed` are those whose step could not be taken: a robot's steps are then taken by `stepper`, one by one, which says why.
    """

    def __init__(self, stepper: Any, contacts: Any, threads: int | None, on_failure: str) -> None:
        self.stepper, self.contacts, self.threads, self.on_failure = stepper, contacts, threads, on_failure
        self.room, self._external = ROOM, False
        self._tables: deque[Table] = deque()
        self.varied: dict[str, Array] = {}
        self.done = 0

    def __getstate__(self) -> dict[str, Any]:
        """All but machine code and tables of addresses, which a copy makes for its own arrays."""
        return {name: x for name, x in vars(self).items() if name not in OF_ADDRESSES} | {"_ready": False}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._tables = deque()
        if "_home" in state:
            self._bind(self._home)

    # states

    def reset(self, q: Array, v: Array) -> None:
        """Begin at these states."""
        self.start = q.copy(), v.copy()
        self.failed = np.zeros(len(q), bool)
        self._home = self._new_arrays(q, v)
        self._bind(self._home)
        self._leave_out_overlaps()

    def _leave_out_overlaps(self) -> None:
        """Shapes of the file that overlap on the first robot are taken for parts of one, and do not touch."""
        contacts = self.contacts
        if not contacts.touching.drawn.any():
            return
        contacts.scene.enabled[:] = True
        contacts.leave_out(*self.look())

    def look(self) -> tuple[Array, Array]:
        """The candidates (k,) and gaps (k,) of what touches on the first robot where it is now."""
        self._compile()
        a = self.arrays
        a.count[0, 1] = -1
        while a.count[0, 1] < 0:
            a.steps[0] = -1
            self._run_some(0, 1)
            if a.count[0, 1] < 0:
                self._make_room()
                a = self.arrays
                a.count[0, 1] = -1
        a.steps[0] = 1
        found = a.candidate[0, : a.count[0, 0]].copy(), a.gap[0, : a.count[0, 0]].copy()
        a.count[0] = 0
        return found

    def reset_some(self, which: Any, q: Array, v: Array) -> None:
        """Robots numbered `which` begin anew, at states (some, ..)."""
        a = self.arrays
        a.q[which], a.v[which] = q, v
        self.start[0][which], self.start[1][which] = q, v
        self.failed[which] = False
        for x in (a.last_row, a.report, a.opened, a.count, a.wrench):
            x[which] = 0

    def _new_arrays(self, q: Array, v: Array) -> FleetArrays:
        robots, stepper = len(q), self.stepper
        contacts, bodies = self.contacts, len(stepper.robot.bodies)

        def zeros(*shape: int) -> Array:
            return np.zeros((robots, *shape))

        if self.varied and robots != len(next(iter(self.varied.values()))):
            raise ValueError(
                f"q is of {robots} robots; vary() was of another number of them: call vary() without arguments first"
            )
        return FleetArrays(
            **(_none() | self.varied), q=np.array(q, order="C"), v=np.array(v, order="C"), tau=zeros(1, v.shape[1]),
            control=zeros(1, stepper.forces.nu), external=zeros(1, bodies, 6), given=np.zeros(2, bool),
            steps=np.ones(2, np.int64), active=np.ones(robots, bool), taken=np.zeros(robots, np.int64),
            last_row=zeros(len(contacts.rows.joint)), report=zeros(5), opened=zeros(), count=np.zeros((robots, 2), np.int64),
            candidate=np.zeros((robots, self.room), np.int64), point=zeros(self.room, 3), gap=zeros(self.room),
            force=zeros(self.room, 3), wrench=zeros(len(contacts.bodies), 6),
        )  # fmt: skip

    def _bind(self, arrays: FleetArrays) -> None:
        """Work on these arrays."""
        self.arrays = arrays
        self._tau, self._control = (x[0, 0] if len(x) == 1 else x[:, 0] for x in (arrays.tau, arrays.control))
        self._ready = False

    def _compile(self) -> None:
        """The machine code for the arrays that there are."""
        self._many, one = Table(self.arrays), self._table()
        self._tables.append(one)
        self._run = RUN_ROBOTS.for_tables(one, self._many)
        self._alone = one.address, self._many.address, 0, 1
        self._ready = True

    def _table(self) -> Table:
        """The stages for one thread."""
        try:
            return self._tables.pop()
        except IndexError:
            return stages_table(self.stepper, self.contacts, self.room, self._external, "parameters" in self.varied)

    def vary(self, varied: dict[str, Array]) -> None:
        """Robots with numbers of their own, by fields of `FleetArrays`."""
        a = self._home
        kept = {name: x for name, x in a._asdict().items() if name not in (*FLAT, *DEEP)}
        if set(varied) != set(self.varied):
            self._tables.clear()
        self.varied = varied
        self._home = FleetArrays(**_none(), **kept)._replace(**varied)
        self._bind(self._home)

    def require_alike(self, what: str) -> None:
        """Raise NotImplementedError for robots that differ."""
        if self.varied:
            raise NotImplementedError(f"{what} for robots that differ from one another (vary) are not there")

    @property
    def q(self) -> Array:
        q: Array = self._home.q
        return q

    @property
    def v(self) -> Array:
        v: Array = self._home.v
        return v

    def energy(self, q: Array, v: Array) -> Array:
        """Kinetic, potential and spring energy (robots,) [J], each robot's with its own inertias and stiffness."""
        robot, forces = self.stepper.robot, self.stepper.forces
        total = self.with_own_inertias(robot.kinetic_energy, q, v)
        total = total + self.with_own_inertias(robot.potential_energy, q)
        if self.stepper.passive:
            total = total + forces.spring_energy(q, self.varied.get("stiffness"))
        return np.asarray(total)

    def with_own_inertias(self, function: CompiledFunction[Any], *arguments: Array, which: Any = slice(None)) -> Any:
        """A function of the robot, at arguments of some robots, each with its own inertias where they differ."""
        if "parameters" not in self.varied:
            return function(*arguments)
        robot = self.stepper.robot
        parametric = robot.parametric(function)
        own = {"parameters": self.varied["parameters"][which], "armature": self.varied["own_armature"][which]}
        return parametric(*arguments, *(own[x.name] for x in parametric.program.inputs[len(arguments) :]))

    @property
    def opened(self) -> float:
        """The greatest opening of loops before they were closed in the last step."""
        return float(self._home.opened.max())

    def put(self, q: Array, v: Array) -> None:
        """Go on from other states."""
        self._home.q[:], self._home.v[:] = q, v

    def hand_over(self) -> None:
        """Put `stepper` where the robots are, to start from the same impulses."""
        a, stepper = self._home, self.stepper
        stepper.reset(a.q.copy(), a.v.copy())
        if stepper.contacts is None:
            return
        impulses = stepper.contacts.state.impulses
        impulses.last_row[:] = a.last_row
        for i in range(len(a.q)):
            k = int(a.count[i, 0])
            impulses.last_force[i, a.candidate[i, :k]] = a.force[i, :k]

    # what came of the last step

    def contact_arrays(self) -> ContactArrays:
        """Of all robots."""
        a = self._home
        return ContactArrays(a.count[:, 0], a.candidate, a.point, a.force)

    def contact_wrenches(self) -> Array:
        """Impulses (robots, nbodies, 6) of contacts on bodies."""
        wrenches = np.zeros((len(self.q), len(self.stepper.robot.bodies), 6))
        touched = self._home.count[:, 0] > 0
        wrenches[:, self.contacts.numbers] = np.where(touched[:, None, None], self._home.wrench, 0.0)
        return wrenches

    def row_impulses(self) -> Array:
        """Impulses (robots, n) of limits and dry friction."""
        rows = self.contacts.rows
        impulses = np.zeros((len(self.q), len(self.stepper.robot.model.tree.parent)))
        np.add.at(impulses.T, rows.dof, (rows.sign * self._home.last_row).T)
        return impulses

    def solver_work(self) -> tuple[float, float, float]:
        """Residual [m/s], sweeps and Newton steps, the most of all robots."""
        residual, _, sweeps, newton_steps, _ = self._home.report.max(axis=0)
        return residual, sweeps, newton_steps

    # steps

    def step(self, tau: Any, control: Any, time: float) -> bool:
        """Take a step under joint forces and controls of all robots, arrays or None; whether they were of that kind."""
        if not self._ready:
            self._compile()
        a = self.arrays
        for mine, given in ((self._tau, tau), (self._control, control)):
            if given is None:
                mine.fill(0.0)
            elif type(given) is np.ndarray and given.dtype == FLOAT and given.shape in (mine.shape, (len(a.q), mine.shape[-1])):
                mine[...] = given
            else:
                return False
        a.given[0], a.given[1] = control is not None, False
        if len(a.q) > 1 or self.on_failure != "raise":
            self._run_all(1, time)
            return True
        a.taken[0] = 0
        if self._run(*self._alone) != 1:
            self._run_all(1, time)
        return True

    def run(self, steps: int, time: float, inputs: Inputs, every: int = 1, keep: bool = False) -> tuple[Array, Array]:
        """Take steps with inputs (robots or 1, steps or 1, ..), from `time` [s] on.

        States (robots, kept, nq) and (.., nv): one in `every`, the first included, if they are to be kept. Robots that fail
        stop before that step, or begin anew where they did. Raises SimulationError if that is to be raised: all robots are
        then at the state before the step of the first to fail, and `done` says how many steps they took.
        """
        a = self._home
        if not keep and inputs.external is None and all(x is None or x.shape[1] == 1 for x in inputs):
            for mine, x in ((a.tau, inputs.tau), (a.control, inputs.control)):
                mine[...] = 0.0 if x is None else x
            a.given[:] = inputs.control is not None, False
            self._run_all(steps, time)
            return a.kept_q, a.kept_v
        kept = 1 + steps // every if keep else 0
        q, v = np.empty((len(a.q) if keep else 0, kept, a.q.shape[1])), np.empty((len(a.q) if keep else 0, kept, a.v.shape[1]))
        if keep:
            q[:, 0], v[:, 0] = a.q, a.v
        if inputs.external is not None and not self._external:
            self._external = True
            self._tables.clear()
        zeros = Inputs(*(np.zeros((1, 1, *x.shape[2:])) for x in (a.tau, a.control, a.external)))
        given = [np.ascontiguousarray(z if x is None else x, np.float64) for x, z in zip(inputs, zeros, strict=True)]
        self._bind(a._replace(tau=given[0], control=given[1], external=given[2], kept_q=q, kept_v=v))
        a.given[:], a.steps[1] = (inputs.control is not None, inputs.external is not None), every
        try:
            self._run_all(steps, time)
        finally:
            a.steps[:] = 1
            self._bind(self._home)
        return q, v

    def _run_all(self, steps: int, time: float) -> None:
        a = self.arrays
        if not self._ready:
            self._compile()
        if self.on_failure != "stop":
            self.failed[:] = False
        self.failures: dict[int, tuple[int, SimulationError]] = {}
        backup = None
        if self.on_failure == "raise" and len(a.q) > 1:
            backup = [(x, x.copy()) for x in (a.q, a.v, a.count, a.candidate, a.force, a.last_row)]
        self._take(steps, time)
        self.done = steps
        if not self.failures or self.on_failure != "raise":
            return
        robot, (self.done, error) = min(self.failures.items(), key=lambda item: item[1][0])
        self.failed[:] = False
        if backup is not None:
            for x, before in backup:
                x[:] = before
            self._take(self.done, time)
        raise SimulationError(error.what, error.time, robot, len(a.q)) from None

    def _take(self, steps: int, time: float) -> None:
        """Steps, some at a time: between them Python sees signals."""
        self.arrays.taken[:] = 0
        for stop in [*range(MOST_STEPS, steps, MOST_STEPS), steps]:
            a = self.arrays
            np.logical_not(self.failed, out=a.active)
            a.steps[0] = stop
            if self._run_some(0, len(a.q)) == np.count_nonzero(a.active):
                continue
            for i in np.flatnonzero(a.active & (a.taken < stop)):
                self._go_on(int(i), stop, time)
        self.arrays.steps[0] = 1

    def _run_some(self, first: int, stop: int) -> int:
        """Run robots first to stop, on as many threads as that is worth; how many took all of their steps."""
        done = []

        def piece(i: int, j: int) -> None:
            one = self._table()
            done.append(self._run(one.address, self._many.address, first + i, first + j))
            self._tables.append(one)

        robots = stop - first
        share_out(piece, robots, 1 if robots < 2 * GRAIN else self.threads or processors(), GRAIN)
        return sum(done)

    # where a step cannot be taken

    def _go_on(self, i: int, steps: int, time: float) -> None:
        """The rest of one robot's steps, of which it could not take the next one."""
        a = self.arrays
        while a.taken[i] < steps:
            if a.count[i, 1] < 0:
                self._make_room()
                a = self.arrays
            else:
                k = int(a.taken[i])
                try:
                    self._step_slowly(i, k, time + k * self.stepper.h)
                except SimulationError as error:
                    self.failed[i] = True
                    self.failures[i] = k, error
                    if self.on_failure != "reset":
                        return
                    self.reset_some(i, self.start[0][i], self.start[1][i])
                    self.failed[i] = True
                a.taken[i] += 1
                self._keep(i)
            self._run_some(i, i + 1)

    def _step_slowly(self, i: int, k: int, time: float) -> None:
        """Step k of one robot by `stepper`, which takes it or says what is wrong."""
        a, stepper = self.arrays, self.stepper
        if self.varied:
            raise SimulationError("the step of a robot that differs from the others (vary) cannot be taken", time)
        tau, control, external = (x[min(i, x.shape[0] - 1), min(k, x.shape[1] - 1)] for x in (a.tau, a.control, a.external))
        stepper.reset(a.q[i : i + 1].copy(), a.v[i : i + 1].copy())
        stepper.advance(tau, control if a.given[0] else None, external[None] if a.given[1] else None, time)
        a.q[i], a.v[i], a.opened[i] = stepper.q[0], stepper.v[0], stepper.opened
        state = stepper.contacts.state
        count = int(state.counts[0])
        if count > self.room:
            self._make_room(count)
            a = self.arrays
        a.count[i] = count, 0
        for mine, its in ((a.candidate, state.contacts.candidate), (a.point, state.contacts.point),
                          (a.gap, state.contacts.gap), (a.force, state.impulses.force)):  # fmt: skip
            mine[i, :count] = its[0, :count]
        a.wrench[i], a.last_row[i] = state.impulses.wrench[0], state.impulses.last_row[0]
        a.report[i] = [float(x[0]) for x in state.report]

    def _keep(self, i: int) -> None:
        """The state of one robot, where it is one of those that are kept."""
        a = self.arrays
        k, every = int(a.taken[i]), int(a.steps[1])
        if len(a.kept_q) and k % every == 0:
            a.kept_q[i, k // every], a.kept_v[i, k // every] = a.q[i], a.v[i]

    def _make_room(self, least: int = 0) -> None:
        """For more contacts."""
        a, had = self.arrays, self.room
        self.room = max(2 * had, least)
        longer = {}
        for name in ("candidate", "point", "gap", "force"):
            x = getattr(a, name)
            longer[name] = np.zeros((len(x), self.room, *x.shape[2:]), x.dtype)
            longer[name][:, :had] = x
        a.count[:, 1] = 0
        self._home = self._home._replace(**longer)
        self._tables.clear()
        self._bind(a._replace(**longer))
        self._compile()
