"""Inverse kinematics: configurations in which frames, the centre of mass and joints meet the targets of tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...algorithms.inverse_kinematics import iteration
from ...algorithms.inverse_kinematics.iteration import StepSettings
from ...algorithms.mechanisms.cluster_tree import constraint_count
from ...array_types import Array, Integers, Matrix, Vector
from ...checks import CHECKED_LATER, POSITIVE, argument, checked, generator, real_array, whole
from ...engine.function import CompiledFunction
from ...engine.loops.standalone import StandaloneLoop
from ...engine.program import Input, Output, Program
from ...engine.progress import Progress
from ...model.configuration import Coordinates, interval
from ...model.types import JointType
from ...names import SuggestsNames, knows_keywords
from ...summaries import summarized
from ..arguments import Q
from ..checked_states import many_states, require_finite, require_rotations
from ..closed import ClosedRobot
from ..robot import Robot
from ..system import System
from .attempts import AttemptLimits, Search
from .differential import Differential, VelocityProblem
from .gaps import spare_distances, with_gaps
from .one_problem import CONVERGED, ITERATIONS, MEASURES, RESTARTS, UNFINISHED, OneSearch
from .targets import Targets, packed
from .tasks import ClearanceTask, IkTask, checked_tasks, error_names, slots_of, task_list

SHARE, ADDED = 0.03, 1e-6  # damping: fraction of squared errors, and a constant term
AT_REST = 1e-8  # [rad, m] largest step of an attempt at rest


Seed = int | np.random.Generator | None

STREAM = tuple(b"IK")  # stream of a seed; `random_configuration` uses another, so no search starts at a random target


def generator_of(seed: Seed) -> np.random.Generator:
    """Return the generator itself, or a generator for the seed, or one of fresh numbers for None."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0:
        return np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=STREAM))
    return generator("InverseKinematics: rng", seed)


class Draws:
    """Random configurations of a robot within limits, with open loops: iterations close them faster than `close` does."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.lower, self.upper = robot.lower, robot.upper
        unlimited = [j.q_slice for j in robot.joints if j.type in (JointType.FLOATING, JointType.PLANAR)]
        self.free = np.array([k for s in unlimited for k in range(s.start, s.stop)], np.int64)

    def within(self, q: Array) -> Array:
        """Return q with its coordinates clipped to their limits."""
        return np.minimum(np.maximum(q, self.lower), self.upper)

    def __call__(self, rng: np.random.Generator, count: int, like: Array | None = None) -> Array:
        """Return configurations (count, nq); floating and planar joints, which have no limits, are as in `like`."""
        if self._box is not None:
            low, width = self._box
            q: Array = low + width * rng.random((count, len(low)))
        else:
            q = self.within(System.random_configuration(self.robot, rng=rng, size=count))
        if like is not None:
            q[:, self.free] = like[:, self.free]
        return q

    @cached_property
    def _box(self) -> tuple[Array, Array] | None:
        """The least coordinates and the widths of their ranges, for coordinates that vary independently."""
        joints = [j for j in self.robot.joints if j.q_slice.stop > j.q_slice.start]
        if any(j.type.nv > 1 for j in joints):
            return None
        limits = zip(joints, self.lower, self.upper, strict=True)
        ends = np.array([interval(Coordinates(j.type, j.q_slice, j.v_slice, lower, upper)) for j, lower, upper in limits])
        return ends[:, 0], ends[:, 1] - ends[:, 0]


@summarized
class Reached(NamedTuple):
    """The result of `solve`, for each problem.

    `q` (..., nq) is the configuration. `converged` is True if q satisfies all tolerances. `errors` (..., k) are the errors at
    q in the order of `error_names`, [m] and [rad]. If a problem has not converged, q has the smallest errors that were found.

    `iterations` counts the iterations of all finished attempts, `restarts` the attempts after the first.
    """

    q: Array
    converged: Any
    errors: Array
    iterations: Any
    restarts: Any


class InverseKinematics(SuggestsNames):
    """A solver of tasks for a robot, for one problem or for thousands at a time.

    The method is damped Newton iteration (Levenberg-Marquardt) on the configuration manifold (Sugihara 2011). One compiled
    function computes an iteration: kinematics, errors, Jacobians, priorities and a step within joint limits, with one problem
    in each lane. Tasks of equal priority are weighted against each other. Tasks with higher priority numbers move only in the
    null space of those with lower numbers (Siciliano and Slotine 1991). Loops precede all tasks. Attempts that get stuck
    restart from other configurations.

        ik = featherweight.InverseKinematics(robot, featherweight.FrameTask("hand"))
        found = ik.solve(targets, rng=0)

    Raises ValueError for an unknown frame or joint, and for tasks with the same name.
    """

    @checked
    def __init__(self, robot: Robot, tasks: Annotated[IkTask | Iterable[IkTask], CHECKED_LATER]) -> None:
        if robot.execution == "rolled":
            raise ValueError(f"{robot.name}: inverse kinematics needs traced functions; rolled is not offered")
        robot.require_motion("InverseKinematics")
        self.robot = robot
        self.tasks = checked_tasks(tasks)
        self._alone = isinstance(tasks, IkTask)
        self._slots = slots_of(robot, self.tasks)
        self._task_list = task_list(robot, self._slots)
        self._draws = Draws(robot)
        self._searches: list[OneSearch] = []  # without a thread that uses them
        self._nq, self._nv = robot.nq, robot.nv

    def __repr__(self) -> str:
        return f"<InverseKinematics of {self.robot.name!r}: {', '.join(task.called for task in self.tasks)}>"

    def __reduce__(self) -> tuple[object, ...]:
        return InverseKinematics, (self.robot, self.tasks[0] if self._alone else self.tasks)

    @property
    def error_names(self) -> tuple[str, ...]:
        """Names of the columns of errors: "hand position" [m], "hand orientation" [rad], "center of mass" [m], "posture"."""
        return error_names(self.tasks)

    @cached_property
    def iteration(self) -> CompiledFunction[Any]:
        """Function of q, flat targets, and caution (1 or another factor of the damping): the next q and measures of q.

        The measures are the sum of squares of errors over tolerances, at most 1 if all are kept; the squares of those errors;
        the weighted squares of all errors, which the step reduces; and the squared step.
        """
        settings = StepSettings(*self.robot.row_limits(), SHARE, ADDED, 2 if self._levels > 1 else 1)
        caution = Input("caution", ())
        outputs = (Output("ahead", (self.robot.nq,)), *(Output(name, ()) for name in MEASURES))
        return self._function(iteration.iterate, (caution,), outputs, settings)

    @cached_property
    def errors(self) -> CompiledFunction:
        """Function of q and flat targets (see `flat_targets`): the norms of errors (k), in the order of `error_names`."""
        return self._function(iteration.task_errors, (), (Output("errors", (len(self.error_names),)),))

    def _function(
        self, kernel: Callable[..., None], inputs: tuple[Input, ...], outputs: tuple[Output, ...], *more: Any
    ) -> CompiledFunction[Any]:
        program = self._program(kernel, inputs, outputs, *more)
        return CompiledFunction(program, "traced" if self.robot.execution == "auto" else self.robot.execution)

    def _program(
        self, kernel: Callable[..., None], inputs: tuple[Input, ...], outputs: tuple[Output, ...], *more: Any
    ) -> Program:
        """Return the kernel's program of q and users' targets."""
        gaps = sum(1 + self.robot.nv for task in self.tasks if isinstance(task, ClearanceTask))
        targets = Input("targets", (self._slots[-1].end + gaps,))
        constants = (self._task_list, *more)
        bound = self.robot.bind(kernel.__name__, kernel, (Q, targets, *inputs), outputs, constants, doc=kernel.__doc__)
        return with_gaps(self.robot, self._slots, bound.program)

    def flat_targets(self, targets: Targets) -> Array:
        """Return targets, given as for `solve`, as the one array (..., n) that `iteration` and `errors` take."""
        return packed([slot for slot in self._slots if slot.picked], targets, self._alone)

    @knows_keywords
    def solve(
        self,
        targets: Targets,
        q0: npt.ArrayLike | None = None,
        *,
        rng: Seed = None,
        iterations: int = 20,
        restarts: int = 100,
    ) -> Reached:
        """Return configurations (..., nq) that solve the tasks within joint limits.

        `targets` is the target of the only task (a placement is a matrix or a `Pose`), or a sequence with one target for each
        task, or a dict by task names. Leading axes broadcast, also with those of `q0` (..., nq), the initial configurations,
        which are random by default. An attempt ends after `iterations` iterations (ten times as many if tasks without
        tolerances are minimized; batches check at every third), or when errors no longer decrease. Up to `restarts` attempts
        follow from random configurations; floating bases start as in q0. `rng` is a seed, which gives the same results each
        time, or a generator; without it, each call draws other numbers. They differ from those of `random_configuration`.

        Raises ValueError, which names the task, for targets or q0 that have a wrong shape, are not finite or contain no
        rotation.
        """
        flat = self.flat_targets(targets)
        start = None if q0 is None else self._start(q0)
        limits = self._attempt_limits(iterations, restarts)
        if flat.ndim == 1 and (start is None or start.ndim == 1):
            return self._solve_one(flat, start, rng, limits)
        return self._solve_many(flat, start, rng, limits)

    def _attempt_limits(self, iterations: int, restarts: int) -> AttemptLimits:
        most: int = argument("InverseKinematics: iterations", iterations, whole(1))
        further: int = argument("InverseKinematics: restarts", restarts, whole(0))
        return AttemptLimits(most, 1 + further, self._rest)

    def solver(self, *, rng: int = 0, iterations: int = 20, restarts: int = 100) -> IkSolver:
        """Return `solve` of one problem from a given q0, with these settings, for `featherweight.export` and `Standalone`.

        Attempts after the first start from the configurations that the seed `rng` gives, which are the same in each call.
        """
        limits = self._attempt_limits(iterations, restarts)
        return IkSolver(self, argument("InverseKinematics: rng", rng, whole(0)), limits)

    def _solve_one(self, target: Array, start: Array | None, seed: Seed, limits: AttemptLimits) -> Reached:
        """Solve one problem, one attempt after the other."""
        rng: np.random.Generator | None = None  # created on demand: it takes longer than a few iterations
        search = self._free_search()
        search.begin(target, limits)
        work = search.work
        with Progress(f"attempts at inverse kinematics of {self.robot.name!r}", limits.attempts) as progress:
            for k in progress.counting(range(limits.attempts)):
                q = start
                if q is None or k:
                    rng = rng or generator_of(seed)
                    q = self._draws(rng, 1, None if start is None else start[None])[0]
                status = search.attempt(k, q)
                if status != UNFINISHED:
                    break
        iterations, restarts = (int(work.counts[k]) for k in (ITERATIONS, RESTARTS))
        found = Reached(work.best.copy(), status == CONVERGED, work.errors.copy(), iterations, restarts)
        self._searches.append(search)
        return found

    def _free_search(self) -> OneSearch:
        try:
            return self._searches.pop()
        except IndexError:
            return self._new_search(np.zeros((1, self._nq)), np.zeros(0, np.int64))

    def _new_search(self, initial: Matrix, free: Integers) -> OneSearch:
        limits = self._draws.lower, self._draws.upper
        return OneSearch((self.iteration, self.errors), limits, self._rest, initial, free)

    def _solve_many(self, targets: Array, start: Array | None, seed: Seed, limits: AttemptLimits) -> Reached:
        batch = targets.shape[:-1]
        if start is not None:
            try:
                batch = np.broadcast_shapes(batch, start.shape[:-1])
            except ValueError:
                raise ValueError(
                    f"InverseKinematics: batch axes of targets {targets.shape[:-1]} and q0 {start.shape[:-1]} do not broadcast"
                ) from None
            start = np.broadcast_to(start, (*batch, self.robot.nq)).reshape(-1, self.robot.nq)
        flat = np.ascontiguousarray(np.broadcast_to(targets, (*batch, targets.shape[-1])).reshape(-1, targets.shape[-1]))
        rng = generator_of(seed)
        first = self._draws(rng, len(flat), None) if start is None else start

        def draw(problems: Array) -> Array:
            return self._draws(rng, len(problems), None if start is None else start[problems])

        what = f"inverse kinematics of {self.robot.name!r}, {len(flat)} problems"
        found = Search(self.iteration, draw, first, flat, limits, what).run()
        best = self._draws.within(found.q)
        results = best, found.solved, self.errors(best, flat), found.iterations, found.attempts - 1
        return Reached(*(x.reshape(*batch, *x.shape[1:]) for x in results))

    @knows_keywords
    def velocity(
        self,
        q: npt.ArrayLike,
        targets: Targets,
        dt: float,
        *,
        gain: float = 1.0,
        damping: float = 1e-6,
        speed: npt.ArrayLike = math.inf,
    ) -> Vector:
        """Return the velocity (nv) that moves q (nq) towards the targets within the time dt [s].

        This is differential inverse kinematics: a quadratic program for each priority minimizes the weighted squares of the
        remaining errors, which are scaled by `gain` (1 removes all errors in one step), with `damping`. It satisfies joint
        limits and the velocity limits `speed` [rad/s, m/s], a number or an array (nv); loops stay closed, and the distances of
        a ClearanceTask shrink by at most `gain` times what they exceed, to first order in the step. `q` is one configuration,
        and `targets` are as for `solve`. The function is compiled at the first call.

        Raises ValueError for arguments of a wrong shape, and if no velocity satisfies loops and limits.
        """
        flat, at = self.flat_targets(targets), real_array("InverseKinematics: q", q)
        if at.shape != (self._nq,) or flat.ndim != 1:
            raise ValueError(
                f"InverseKinematics: velocity takes one q ({self._nq},) and one target of each task; got {at.shape}"
                f" and targets of batch {flat.shape[:-1]}"
            )
        require_finite("InverseKinematics", "q", at)
        require_rotations(self.robot, at)
        for name, number in (("dt", dt), ("gain", gain), ("damping", damping)):
            if type(number) is not float or not 0.0 < number < math.inf:
                argument(f"InverseKinematics: {name}", number, POSITIVE)
        fastest = real_array("InverseKinematics: speed", speed)
        if fastest.shape not in ((), (self._nv,)) or not (fastest > 0.0 if fastest.ndim == 0 else (fastest > 0.0).all()):
            raise ValueError(
                f"InverseKinematics: speed must be positive, a number or {self._nv} of them, one for each velocity; "
                f"got {speed!r}"
            )
        return self._differential.velocity(at, flat, VelocityProblem(dt, gain, damping, fastest))

    @cached_property
    def _differential(self) -> Differential:
        return self._new_differential()

    def _new_differential(self) -> Differential:
        return Differential(self.robot, self._task_list, self._program, spare_distances(self.robot, self._slots))

    def standalone(self) -> StandaloneLoop:
        """Return the kernel of `velocity` for `featherweight.export`; `solver` has that of `solve`."""
        return self._new_differential().standalone(self.robot, self._slots)

    def standalone_search(self, seed: int, limits: AttemptLimits) -> StandaloneLoop:
        """Return the kernel of `solve` for one problem from a given q0, with the initial configurations of a seed."""
        rng, initial = generator_of(seed), np.zeros((limits.attempts, self._nq))
        for k in range(1, limits.attempts):
            initial[k] = self._draws(rng, 1)[0]
        return self._new_search(initial, self._draws.free).standalone(self.robot, self._slots, limits)

    def _start(self, q0: npt.ArrayLike) -> Array:
        q = many_states("InverseKinematics", "q0", q0, self._nq)
        require_rotations(self.robot, q)
        return self._draws.within(q)

    @property
    def _levels(self) -> int:
        """The number of priority levels; the robot's loops, if any, form one."""
        loops = isinstance(self.robot, ClosedRobot) and any(map(constraint_count, self.robot._mechanism.clusters))
        return len({task.priority for task in self.tasks}) + loops

    @cached_property
    def _rest(self) -> float:
        """The squared step at rest; infinite if no task is minimized."""
        keeps_all = all(math.isfinite(x) for task in self._task_list.every for x in task.tolerance)
        return math.inf if keeps_all else AT_REST**2


@dataclass(frozen=True)
class IkSolver:
    """`InverseKinematics.solve` of one problem as `InverseKinematics.solver` returns it, for programs without Python."""

    ik: InverseKinematics
    seed: int
    limits: AttemptLimits

    @property
    def robot(self) -> Robot:
        """The robot of the tasks."""
        return self.ik.robot

    def standalone(self) -> StandaloneLoop:
        """Return the kernel for `featherweight.export`."""
        return self.ik.standalone_search(self.seed, self.limits)
