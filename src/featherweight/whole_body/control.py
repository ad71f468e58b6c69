"""Whole-body control: the class that users call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt

from ..array_types import Array, Booleans, Vector
from ..checks import CHECKED_LATER, NonNegative, Positive, checked, real_array
from ..engine.exclusive import Use, exclusive
from ..engine.loops.standalone import StandaloneLoop
from ..engine.threads import check_threads, processors
from ..model.types import Pose
from ..names import choose_from
from ..quadratic_programs.program import BLOCKING_INDEX, BLOCKING_KIND, CONE, INFEASIBLE, ROW, STEPS, ActiveSet
from ..robot.checked_states import many_states, one_state, require_finite, require_rotations
from ..robot.inverse_kinematics.targets import checked_target
from ..robot.inverse_kinematics.tasks import IkTask
from ..robot.robot import Robot
from .batch import Argument, batch_shape, reference_rows, run_batch
from .contacts import UnilateralContact
from .controller import Reference, WholeBodyController
from .result import WholeBodyBatch, WholeBodyResult
from .standalone import STATUSES, standalone_tick
from .tasks import AngularMomentumTask, check_names, checked_tasks, target_part, target_shape
from .workspace import Settings, Workspace

if TYPE_CHECKING:
    from ..simulation.simulation import Simulation

Target = npt.ArrayLike | Pose

OWNER = "WholeBodyControl"
STATUS = tuple(x.name.lower().replace("_", " ") for x in STATUSES)
LOADED = 1.0  # [N] planned normal force from which a contact is expected to touch
OPEN = 0.1  # fraction of it, below which a measured force says that the contact is open
SMALL = 1e-9  # factor of a limit that is a rounding error, relative to the greatest
APART = 1e-3  # [m] distance from which a contact is open


class WholeBodyControl:
    """A controller that computes joint forces from tasks, contacts and limits, by one quadratic program in each tick.

        tasks = [featherweight.CenterOfMassTask(), featherweight.PostureTask(weight=0.01)]
        corners = [(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.05, 0.05)]  # of a sole, in its frame
        feet = [featherweight.UnilateralContact(sole, corners) for sole in ("left_sole", "right_sole")]
        wbc = featherweight.WholeBodyControl(robot, tasks, feet)
        result = wbc(q, v, {"center of mass": c, "posture": q0})

    A tick minimizes the weighted squares of the tasks' errors in acceleration, subject to the equations of motion, contacts at
    rest, friction cones, and limits of joint forces (the robot's `effort_bounds`), positions and velocities. Tasks of priority
    0 come first; tasks with higher numbers move only in the remaining freedom. One compiled kernel computes all of it: it
    evaluates the robot's functions, eliminates dynamics and contacts, and solves with a dual active-set method (Goldfarb and
    Idnani 1983), which begins with the active limits of the last tick (`state`).

    `driven` names the joints with drives; by default all but floating and planar ones. `friction_edges` replaces the cones by
    pyramids inside them with so many planes; 0 stands for cones. `limit_rate` [1/s] is the rate at which joints approach limits
    of position and velocity; 0 ignores these limits. The weights of accelerations and forces select one of several solutions.

    Raises ValueError for unknown frames and joints, and for two tasks or contacts of one name.
    """

    @checked
    def __init__(
        self,
        robot: Robot,
        tasks: Annotated[IkTask | Iterable[IkTask], CHECKED_LATER],
        contacts: Iterable[UnilateralContact] = (),
        *,
        driven: Iterable[str] | None = None,
        friction_edges: Annotated[int, CHECKED_LATER] = 0,
        limit_rate: NonNegative = 20.0,
        acceleration_weight: Positive = 1e-6,
        force_weight: Positive = 1e-8,
    ) -> None:
        self.robot, self.tasks, self.contacts = robot, checked_tasks(tasks), tuple(contacts)
        check_names("contacts", [c.called for c in self.contacts])
        if friction_edges and friction_edges < 3:
            raise ValueError(f"{OWNER}: friction_edges must be 0, or at least 3; got {friction_edges}")
        self._settings = Settings(
            None if driven is None else tuple(driven), friction_edges, limit_rate, acceleration_weight, force_weight
        )
        self._make()

    def _make(self) -> None:
        self._use = Use(f"the controller of {self.robot.name!r}", "make one for each thread, such as copy.copy(controller)")
        self._work = Workspace(self.robot, self.tasks, self.contacts, self._settings)
        self._copies: list[Workspace] = []  # for batches, one for each thread
        self._numbers = {task.called: k for k, task in enumerate(self.tasks)}
        self._missing = {t.called for t in self.tasks if not isinstance(t, AngularMomentumTask)}
        self._names = [c.called for c in self.contacts]

    def __getstate__(self) -> dict[str, Any]:
        work = self._work
        memory = work.tasks.target, work.tasks.center, work.postures, *work.tick.program.before
        return {
            "given": (self.robot, self.tasks, self.contacts, self._settings),
            "missing": self._missing,
            "memory": [x.copy() for x in memory],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.robot, self.tasks, self.contacts, self._settings = state["given"]
        self._make()
        self._missing = set(state["missing"])
        work = self._work
        memory = work.tasks.target, work.tasks.center, work.postures, *work.tick.program.before
        for x, given in zip(memory, state["memory"], strict=True):
            x[:] = given

    def __repr__(self) -> str:
        return f"<WholeBodyControl of {self.robot.name!r}: {', '.join([*self._numbers, *self._names])}>"

    @property
    def state(self) -> ActiveSet:
        """The active limits of the last tick, with which the next one begins: a copy. Results hardly depend on it."""
        return ActiveSet._make(x.copy() for x in self._work.tick.program.before)

    @state.setter
    def state(self, state: ActiveSet) -> None:
        for x, given in zip(self._work.tick.program.before, state, strict=True):
            x[:] = given

    @exclusive
    def __call__(
        self,
        q: npt.ArrayLike,
        v: npt.ArrayLike,
        targets: Mapping[str, Target] | None = None,
        *,
        velocities: Mapping[str, npt.ArrayLike] | None = None,
        accelerations: Mapping[str, npt.ArrayLike] | None = None,
        contacts: Iterable[str] | None = None,
        measured: Mapping[str, float] | None = None,
        distances: Mapping[str, float] | None = None,
    ) -> WholeBodyResult:
        """Return joint forces for q (nq) and v (nv).

        `targets` are those of tasks by name, as in inverse kinematics: a placement (4, 4), a position (3) or a rotation (3, 3)
        of a frame, the centre of mass (3), a configuration (nq) of a posture. A target stays until another replaces it.
        `velocities` and `accelerations` are the references of the tasks' rates, zero by default: (linear, angular) in the
        world's axes for frames, the velocities of the joints for a posture. `contacts` are the names of the closed contacts; by
        default, all are.

        `measured` are normal forces [N] and `distances` gaps [m] of contacts by name. The result's `open_contacts` names the
        planned contacts that these show open.

        Raises ValueError for unknown names, wrong shapes, numbers that are not finite, and tasks without targets.
        """
        work = self._work
        terms, tasks = work.terms, work.tasks
        terms.q[:], terms.v[:] = one_state(OWNER, self.robot, q, v)
        if targets:
            found = [
                (k := self._number(n), self._target(n, x, target_shape(self.robot, self.tasks[k]))) for n, x in targets.items()
            ]
            for k, target in found:  # all of them are right
                self._target_memory(k, work)[...] = target
            self._missing -= targets.keys()
        _require_targets(self._missing)
        self._write_references("velocity", tasks.velocity, velocities)
        self._write_references("acceleration", tasks.acceleration, accelerations)
        self._write_closed(work.contacts.closed, contacts)
        status = work.run()
        result, counts = work.tick.result, work.tick.program.counts
        return WholeBodyResult(
            result.tau.copy(),
            result.acceleration.copy(),
            result.forces.copy(),
            result.wrenches.copy(),
            STATUS[status],
            self._blocking() if status == INFEASIBLE else (),
            self._opened(measured, distances) if measured or distances else (),
            int(counts[STEPS]),
        )

    @exclusive
    def batch(
        self,
        q: npt.ArrayLike,
        v: npt.ArrayLike,
        targets: Mapping[str, Target] | None = None,
        *,
        velocities: Mapping[str, npt.ArrayLike] | None = None,
        accelerations: Mapping[str, npt.ArrayLike] | None = None,
        contacts: Iterable[str] | npt.NDArray[np.bool_] | None = None,
        threads: int | None = None,
    ) -> WholeBodyBatch:
        """Return joint forces for many states q (..., nq) and v (..., nv), on `threads` threads (default: all processors).

            result = wbc.batch(q, v, {"center of mass": c})  # c (3) for all states, or (..., 3)

        Leading axes of all arguments broadcast. Targets that are not given are those of the controller, which do not change.
        `contacts` are the names of the contacts that are closed in all states, or an array of booleans (..., contacts) in the
        order of the controller's contacts. Each tick begins without active limits, so a state has the same result in every
        batch.

        Raises the errors of a tick, and ValueError for leading axes that do not broadcast.
        """
        check_threads(OWNER, threads)
        arguments = [
            Argument("q", many_states(OWNER, "q", q, self.robot.nq), lambda w: w.terms.q),
            Argument("v", many_states(OWNER, "v", v, self.robot.nv), lambda w: w.terms.v),
            Argument("contacts", self._closed(contacts), lambda w: w.contacts.closed),
        ]
        require_rotations(self.robot, arguments[0].values)
        for name, x in (targets or {}).items():
            k = self._number(name)
            target = self._target(name, x, target_shape(self.robot, self.tasks[k]), batches=True)
            arguments.append(Argument(f"target of {name!r}", target, partial(self._target_memory, k)))
        _require_targets(self._missing - {*(targets or ())})
        for what, references in (("velocity", velocities), ("acceleration", accelerations)):
            for rows, x in self._references(what, references, batches=True):
                arguments.append(Argument(what, x, partial(reference_rows, what, rows)))
        shape = batch_shape(OWNER, arguments, self._work)
        workspaces = self._copied_workspaces(max(1, min(math.prod(shape), threads or processors())))
        return run_batch(workspaces, arguments, shape, STATUS, f"whole-body control of {self.robot.name!r}")

    def controller(self, reference: Reference, simulation: Simulation | None = None) -> WholeBodyController:
        """Return a function of time, q and v that `Simulation.run` takes as its controller.

            sim.run(2.0, wbc.controller(lambda t: {"targets": {"center of mass": path(t)}}, sim))

        `reference` is a function of time that returns the keywords of a tick: targets, velocities, accelerations, contacts. A
        dict stays the same at all times. With `simulation`, the forces of its last step are compared with the planned ones, and
        the controller lists contacts that turn out open.
        """
        return WholeBodyController(self, self.robot, self.contacts, reference, simulation)

    def standalone(self) -> StandaloneLoop:
        """Return the kernel of a tick for `featherweight.export`."""
        work = Workspace(self.robot, self.tasks, self.contacts, self._settings)
        return standalone_tick(work, self.robot, self.tasks, self._names)

    def _number(self, name: str) -> int:
        try:
            return self._numbers[name]
        except KeyError:
            raise ValueError(f"{OWNER}: there is no task {choose_from(name, [*self._numbers])}") from None

    def _contact(self, name: str) -> int:
        if name not in self._names:
            raise ValueError(f"{OWNER}: there is no contact {choose_from(name, self._names)}")
        return self._names.index(name)

    def _target(self, name: str, x: Target, shape: tuple[int, ...], batches: bool = False) -> Array:
        if not shape[0]:
            raise ValueError(f"{OWNER}: {name!r} has no target; its references are velocities= and accelerations=")
        return checked_target(OWNER, name, shape, x, batches)

    def _target_memory(self, number: int, work: Workspace) -> Array:
        return target_part(self.tasks[number], work.target_of(self.tasks[number], number))

    def _write_references(self, what: str, into: Vector, references: Mapping[str, npt.ArrayLike] | None) -> None:
        into[:] = 0.0
        for rows, x in self._references(what, references):
            into[rows] = x

    def _references(
        self, what: str, references: Mapping[str, npt.ArrayLike] | None, batches: bool = False
    ) -> Iterator[tuple[slice, Array]]:
        """Yield the rows of tasks and their references (rows,), or with `batches` (..., rows)."""
        begin = self._work.tasks.begin
        for name, x in (references or {}).items():
            k = self._number(name)
            size, given = int(begin[k + 1] - begin[k]), real_array(f"{OWNER}: the {what} of {name!r}", x)
            if given.ndim == 0:
                given = np.full(size, given)
            if given.shape != (size,) and not (batches and given.shape[-1] == size):
                wanted = f"(..., {size})" if batches else f"({size},)"
                raise ValueError(f"{OWNER}: the {what} of {name!r} must have shape {wanted}; got {given.shape}")
            require_finite(OWNER, f"the {what} of {name!r}", given.reshape(-1))
            yield slice(int(begin[k]), int(begin[k + 1])), given

    def _write_closed(self, into: Booleans, contacts: Iterable[str] | None) -> None:
        into[:] = contacts is None
        for name in contacts or ():
            into[self._contact(name)] = True

    def _closed(self, contacts: Iterable[str] | npt.NDArray[np.bool_] | None) -> Array:
        """Return whether contacts are closed (..., contacts)."""
        count = len(self._names)
        if isinstance(contacts, np.ndarray) and contacts.dtype == bool:
            if contacts.shape[-1:] != (count,):
                raise ValueError(f"{OWNER}: contacts must have shape (..., {count}); got {contacts.shape}")
            return contacts
        closed = np.empty(count, bool)
        self._write_closed(closed, contacts)
        return closed

    def _copied_workspaces(self, count: int) -> list[Workspace]:
        """Return workspaces with the targets of this controller, and references of zero."""
        while len(self._copies) < count:
            self._copies.append(Workspace(self.robot, self.tasks, self.contacts, self._settings))
        own = self._work
        for work in self._copies[:count]:
            work.tasks.target[:], work.tasks.center[:], work.postures[:] = own.tasks.target, own.tasks.center, own.postures
            work.tasks.velocity[:] = work.tasks.acceleration[:] = 0.0
        return self._copies[:count]

    def _blocking(self) -> tuple[str, ...]:
        """Return the names of limits that exclude each other: the one that was tried, and those that it would have to pass.

        These are the active ones with negative factors in n = Σ r_j n_j (Farkas's lemma).
        """
        p = self._work.tick.program
        ratios = p.ratio[: p.active.size[0]]
        against = np.flatnonzero(ratios < -SMALL * np.abs(ratios).max(initial=0.0))
        found = [(int(p.counts[BLOCKING_KIND]), int(p.counts[BLOCKING_INDEX]))]
        found += [(int(p.active.kind[k]), int(p.active.which[k])) for k in against]
        return tuple(dict.fromkeys(self._limit(kind, i) for kind, i in found))

    def _limit(self, kind: int, i: int) -> str:
        """Return the name of a limit."""
        work, driven = self._work, self._work.joints.driven
        if kind == ROW and i >= len(driven):
            return f"greatest force of {self._names[work.contacts.limited[i - len(driven)]]!r}"
        if kind != CONE:
            row = driven[i] if kind == ROW else i
            joint = next(j for j in self.robot.joints if j.v_slice.start <= row < j.v_slice.stop)
            return f"{'effort' if kind == ROW else 'position or velocity'} limit of {joint.name!r}"
        contact = int(np.searchsorted(work.contacts.point, i, side="right")) - 1
        return f"friction cone of {self._names[contact]!r}"

    def _opened(self, measured: Mapping[str, float] | None, distances: Mapping[str, float] | None) -> tuple[str, ...]:
        """Return the names of planned contacts that measurements show open."""
        closed, planned = self._work.contacts.closed, self._work.tick.result.wrenches[:, 2]
        found = set[int]()
        for name, force in (measured or {}).items():
            k = self._contact(name)
            if closed[k] and planned[k] >= LOADED and not force >= OPEN * planned[k]:
                found.add(k)
        for name, distance in (distances or {}).items():
            k = self._contact(name)
            if closed[k] and not distance <= APART:
                found.add(k)
        return tuple(self._names[k] for k in sorted(found))


def _require_targets(missing: set[str]) -> None:
    """Raise ValueError if tasks have no targets."""
    if missing:
        names = sorted(missing)
        raise ValueError(f"{OWNER}: give targets for {', '.join(names)}, by name: targets={{{names[0]!r}: ...}}")
