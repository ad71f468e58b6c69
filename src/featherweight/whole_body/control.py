"""Whole-body control: the class that users call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt

from ..array_types import Array, Vector
from ..checks import CHECKED_LATER, NonNegative, Positive, checked, real_array
from ..engine.exclusive import Use, exclusive
from ..engine.loops.standalone import StandaloneLoop
from ..names import choose_from
from ..quadratic_programs.program import BLOCKING_INDEX, BLOCKING_KIND, CONE, INFEASIBLE, ROW, STEPS, ActiveSet
from ..robot.inverse_kinematics.tasks import IkTask
from ..robot.robot import Robot
from .contacts import UnilateralContact
from .controller import Reference, WholeBodyController
from .result import WholeBodyResult
from .standalone import standalone_tick
from .tasks import AngularMomentumTask, check_names, checked_tasks, target_shape, write_target
from .workspace import Settings, Workspace

if TYPE_CHECKING:
    from ..simulation.simulation import Simulation

STATUS = ("solved", "infeasible", "inconsistent", "too many steps")
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

    Raises ValueError for unknown frames and joints, for two tasks or contacts of one name, and for a robot that is too large to
    be compiled without loops.
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
            raise ValueError(f"WholeBodyControl: friction_edges must be 0, or at least 3; got {friction_edges}")
        self._settings = Settings(
            None if driven is None else tuple(driven), friction_edges, limit_rate, acceleration_weight, force_weight
        )
        self._make()

    def _make(self) -> None:
        self._use = Use(f"the controller of {self.robot.name!r}", "make one for each thread, such as copy.copy(controller)")
        self._work = Workspace(self.robot, self.tasks, self.contacts, self._settings)
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
        targets: Mapping[str, npt.ArrayLike] | None = None,
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
        for name, x, into in (("q", q, terms.q), ("v", v, terms.v)):
            given = x if type(x) is np.ndarray else real_array(f"WholeBodyControl: {name}", x)
            if given.shape != into.shape:
                raise ValueError(f"WholeBodyControl: {name} must have shape {into.shape}; got {given.shape}")
            into[:] = given
        if targets:
            for name, x in targets.items():
                number = self._number(name)
                task = self.tasks[number]
                write_target(task, self._array(name, x, target_shape(self.robot, task)), work.target_of(task, number))
            self._missing -= targets.keys()
        if self._missing:
            raise ValueError(f"WholeBodyControl: give targets for {', '.join(sorted(self._missing))}")
        self._write_references(tasks.velocity, velocities)
        self._write_references(tasks.acceleration, accelerations)
        if contacts is None:
            work.contacts.closed[:] = True
        else:
            work.contacts.closed[:] = False
            for name in contacts:
                work.contacts.closed[self._contact(name)] = True
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
            raise ValueError(f"WholeBodyControl: there is no task {choose_from(name, [*self._numbers])}") from None

    def _contact(self, name: str) -> int:
        if name not in self._names:
            raise ValueError(f"WholeBodyControl: there is no contact {choose_from(name, self._names)}")
        return self._names.index(name)

    def _array(self, name: str, x: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
        given = real_array(f"WholeBodyControl: the target of {name!r}", x)
        if given.shape != shape or not shape[0]:
            raise ValueError(f"WholeBodyControl: the target of {name!r} must have shape {shape}; got {given.shape}")
        return given

    def _write_references(self, into: Vector, references: Mapping[str, npt.ArrayLike] | None) -> None:
        into[:] = 0.0
        if references:
            begin = self._work.tasks.begin
            for name, x in references.items():
                k = self._number(name)
                into[begin[k] : begin[k + 1]] = x

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
