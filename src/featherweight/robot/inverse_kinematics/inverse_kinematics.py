"""Inverse kinematics: configurations in which frames, the centre of mass and joints meet the targets of tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...algorithms.inverse_kinematics import iteration
from ...algorithms.inverse_kinematics.iteration import StepSettings
from ...algorithms.mechanisms.cluster_tree import constraint_count
from ...array_types import Array, Vector
from ...checks import CHECKED_LATER, POSITIVE, argument, checked, real_array, whole
from ...engine.function import CompiledFunction
from ...engine.loops.standalone import StandaloneLoop
from ...engine.program import Input, Output, Program
from ...engine.progress import Progress
from ...names import SuggestsNames, knows_keywords
from ...summaries import summarized
from ..arguments import Q
from ..checked_states import check
from ..closed import ClosedRobot
from ..robot import Robot
from .attempts import AttemptLimits, Search, attempt, polished
from .differential import Differential, VelocityProblem
from .gaps import spare_distances, with_gaps
from .limits import Draws, Seed, generator_of
from .targets import Targets, packed
from .tasks import ClearanceTask, IkTask, checked_tasks, error_names, slots_of, task_list

ROUNDED = 1e-3  # error of the length of quaternions written with four digits
SHARE, ADDED = 0.03, 1e-6  # damping: fraction of squared errors, and a constant term
MEASURES = ("miss", "left", "cost", "step")
AT_REST = 1e-8  # [rad, m] largest step of an attempt at rest


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
        self.robot = robot
        self.tasks = checked_tasks(tasks)
        self._alone = isinstance(tasks, IkTask)
        self._slots = slots_of(robot, self.tasks)
        self._task_list = task_list(robot, self._slots)
        self._draws = Draws(robot)
        self._nq, self._nv = robot.nq, robot.nv
        self._turning = any(j.type.rotation for j in robot.joints)

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
        most: int = argument("InverseKinematics: iterations", iterations, whole(1))
        further: int = argument("InverseKinematics: restarts", restarts, whole(0))
        limits = AttemptLimits(most, 1 + further, self._rest)
        if flat.ndim == 1 and (start is None or start.ndim == 1):
            return self._solve_one(flat, start, rng, limits)
        return self._solve_many(flat, start, rng, limits)

    def _solve_one(self, target: Array, start: Array | None, seed: Seed, limits: AttemptLimits) -> Reached:
        """Solve one problem, one attempt after the other."""
        rng: np.random.Generator | None = None  # created on demand: it takes longer than a few iterations
        best, least, total = start, math.inf, 0
        with Progress(f"attempts at inverse kinematics of {self.robot.name!r}", limits.attempts) as progress:
            for restarts in progress.counting(range(limits.attempts)):
                q = start
                if q is None or restarts:
                    rng = rng or generator_of(seed)
                    q = self._draws(rng, 1, None if start is None else start[None])[0]
                q, count, cost = attempt(self.iteration, q, target, limits)
                total += count
                if cost is None:
                    return Reached(self._draws.within(q), True, self.errors(q, target), total, restarts)
                if best is None or cost < least:
                    best, least = q, cost
        assert best is not None
        best = self._draws.within(polished(self.iteration, best[None], target[None])[0])
        return Reached(best, False, self.errors(best, target), total, restarts)

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
        if not all(map(math.isfinite, at.tolist())):
            raise ValueError("InverseKinematics: q has numbers that are not finite")
        if self._turning:
            check(self.robot, at, tolerance=ROUNDED)
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
        return Differential(self.robot, self._task_list, self._program, spare_distances(self.robot, self._slots))

    def standalone(self) -> StandaloneLoop:
        """Return the kernel of `velocity` for `featherweight.export`."""
        made = Differential(self.robot, self._task_list, self._program, spare_distances(self.robot, self._slots))
        return made.standalone(self.robot, self._slots)

    def _start(self, q0: npt.ArrayLike) -> Array:
        q = real_array("InverseKinematics: q0", q0)
        if q.ndim < 1 or q.shape[-1] != self._nq:
            raise ValueError(f"InverseKinematics: q0 must have shape (..., {self._nq}); got {q.shape}")
        if not np.isfinite(q).all():
            raise ValueError("InverseKinematics: q0 has numbers that are not finite")
        if self._turning:
            check(self.robot, q, tolerance=ROUNDED)
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
