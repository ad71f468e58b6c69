"""Tasks of inverse kinematics: the public classes, and the data that kernels read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from ...algorithms.inverse_kinematics.task_rows import (
    CENTER,
    CLEARANCE,
    ORIENTATION,
    POSE,
    POSITION,
    POSTURE,
    TaskList,
    TaskSpec,
)
from ...array_types import Array
from ...checks import CHECKED_LATER, NonNegative, argument, checked, number_in, one_of, real_array, shown, whole
from ...model.model import MovingJoint
from ...model.tree import Placements
from ...model.types import Frame
from ...names import listed
from ..system import System

KINDS = {"pose": POSE, "position": POSITION, "orientation": ORIENTATION}
WITHIN = 1e-6  # [m, rad] tolerance of tasks of priority 0
GROUND = Placements((-1,), (((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),), ((0.0, 0.0, 0.0),))
PRIORITY = whole(0).worded("an integer of at least 0")
TOLERANCE = number_in("positive", 0.0, ends="(]")
UNITS = {POSE: ("position", "orientation"), POSITION: ("position",), ORIENTATION: ("orientation",)}


class IkTask:
    """The common type of FrameTask, CenterOfMassTask, PostureTask and ClearanceTask, for type checkers."""

    name: Any

    @property
    def called(self) -> str:
        """The name of the task, and of its target if it has one."""
        return str(self.name)


@checked
@dataclass(frozen=True)
class FrameTask(IkTask):
    """A task that moves a frame of the robot to a target: its "pose" (4, 4), "position" (3) [m] or "orientation" (3, 3).

    `frame` is a name, or a featherweight.Frame on a body. `weight` is a number, or one number for each row (6 for a pose,
    position first, otherwise 3); zero ignores a row. Rows are in the world's axes for a position and in the target's axes
    otherwise. Tasks of `priority` 0 come first; tasks with higher numbers move only in the remaining freedom. `tolerance` [m,
    rad] is the largest allowed error. The default is 1e-6 for priority 0; for other priorities it is infinity, which minimizes
    the error. Whole-body control ignores it: it accelerates by `stiffness` [1/s²] times the error and `damping` [1/s] times the
    error of the velocity, critically damped by default.
    """

    frame: str | Frame
    kind: Annotated[str, CHECKED_LATER] = "pose"
    weight: Annotated[npt.ArrayLike, CHECKED_LATER] = 1.0
    priority: Annotated[int, CHECKED_LATER] = 0
    tolerance: Annotated[float | None, CHECKED_LATER] = None
    name: str | None = None
    stiffness: NonNegative = 100.0
    damping: NonNegative | None = None

    def __post_init__(self) -> None:
        argument(f"FrameTask {self.called!r}: kind", self.kind, one_of(KINDS))
        _check(self, 6 if self.kind == "pose" else 3)

    @property
    def called(self) -> str:
        """The name of the task's target."""
        return self.name or (self.frame.name if isinstance(self.frame, Frame) else self.frame)


@checked
@dataclass(frozen=True)
class CenterOfMassTask(IkTask):
    """A task that moves the centre of mass to a target (3) in the world [m]; the options are those of a FrameTask."""

    weight: Annotated[npt.ArrayLike, CHECKED_LATER] = 1.0
    priority: Annotated[int, CHECKED_LATER] = 0
    tolerance: Annotated[float | None, CHECKED_LATER] = None
    name: str = "center of mass"
    stiffness: NonNegative = 100.0
    damping: NonNegative | None = None

    def __post_init__(self) -> None:
        _check(self, 3)


@checked
@dataclass(frozen=True)
class PostureTask(IkTask):
    """A task that moves the named joints, or all joints, to their coordinates in a target configuration (nq).

    The options are those of a FrameTask, except that `weight` is one number and the default of `tolerance` is infinity: a
    posture selects one of several solutions. In whole-body control, all joints are those with drives.
    """

    joints: Iterable[str] | None = None
    weight: Annotated[float, CHECKED_LATER] = 1.0
    priority: Annotated[int, CHECKED_LATER] = 0
    tolerance: Annotated[float | None, CHECKED_LATER] = None
    name: str = "posture"
    stiffness: NonNegative = 100.0
    damping: NonNegative | None = None

    def __post_init__(self) -> None:
        _check(self, 1)


@checked
@dataclass(frozen=True)
class ClearanceTask(IkTask):
    """A task that keeps distances from obstacles, or between bodies, at least at `distance` [m].

        away = featherweight.ClearanceTask(featherweight.clearance(robot, [table], pairs=[("hand", "base")]), 0.02)
        ik = featherweight.InverseKinematics(robot, [featherweight.FrameTask("hand"), away])

    `term` is what `featherweight.clearance` returns. Where all distances are large enough, the task is met. Its error is the
    norm of what they are too small by. It has a target only if the obstacles of the term move: their placements, as the
    parameters of the term. The options are those of a FrameTask, with a number for `weight`.

    Raises TypeError for a term that is not a function of placements, ValueError for a distance that is negative.
    """

    term: Any
    distance: NonNegative = 0.0
    weight: Annotated[float, CHECKED_LATER] = 1.0
    priority: Annotated[int, CHECKED_LATER] = 0
    tolerance: Annotated[float | None, CHECKED_LATER] = None
    name: str = "clearance"

    def __post_init__(self) -> None:
        if getattr(self.term, "by", None) != ("q",) or "q" in self.term.arguments or not self.term.frames:
            raise TypeError(f"ClearanceTask: term must be what featherweight.clearance returns; got {self.term!r}")
        _check(self, 1)


KnownTask = FrameTask | CenterOfMassTask | PostureTask | ClearanceTask


def _check(task: KnownTask, rows: int) -> None:
    what = f"{type(task).__name__} {task.called!r}"
    weight = real_array(f"{what}: weight", task.weight)
    if weight.shape not in ((), (rows,)) or not np.isfinite(weight).all() or (weight < 0).any() or not (weight > 0).any():
        wanted = f"a number or {rows} numbers" if rows > 1 else "a number"
        raise ValueError(f"{what}: weight must be {wanted}, none negative and at least one positive; got {task.weight!r}")
    argument(f"{what}: priority", task.priority, PRIORITY)
    if task.tolerance is not None:
        argument(f"{what}: tolerance", task.tolerance, TOLERANCE)


def checked_tasks(tasks: IkTask | Iterable[IkTask]) -> tuple[KnownTask, ...]:
    """Return the tasks as a tuple.

    Raises an error for no tasks, for an object that is not a task, and for two tasks of one name.
    """
    several = isinstance(tasks, Iterable) and not isinstance(tasks, str)
    every = tuple(map(_known, tasks if several else (tasks,)))  # type: ignore[arg-type]
    if not every:
        raise ValueError("InverseKinematics needs at least one task; got none")
    names = [task.called for task in every]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"InverseKinematics: two tasks are called {name!r}; rename one of them with name=")
    return every


def _known(task: IkTask) -> KnownTask:
    if not isinstance(task, KnownTask):
        advice = f"; write featherweight.FrameTask({task!r})" if isinstance(task, str) else ""
        raise TypeError(
            f"InverseKinematics takes FrameTask, CenterOfMassTask, PostureTask or ClearanceTask; got {shown(task)}{advice}"
        )
    return task


@dataclass(frozen=True)
class TargetSlot:
    """The position of a task's target in the flat array of all targets, and the entries that it takes."""

    task: KnownTask
    shape: tuple[int, ...]  # shape of the user's target
    picked: tuple[int, ...]  # flat indices of the entries that kernels read
    begin: int

    @cached_property
    def order(self) -> Array:
        """`picked` as an index."""
        return np.array(self.picked, dtype=np.intp)

    @property
    def end(self) -> int:
        return self.begin + len(self.picked)


_POSE = (3, 7, 11, 0, 1, 2, 4, 5, 6, 8, 9, 10)  # origin and axes in a homogeneous matrix


def slots_of(robot: System, tasks: Sequence[KnownTask]) -> list[TargetSlot]:
    """Return the slots of tasks' targets, one after the other."""
    slots: list[TargetSlot] = []
    for task in tasks:
        if isinstance(task, PostureTask):
            shape: tuple[int, ...] = (robot.nq,)
            picked = tuple(k for j in _joints(robot, task) for k in range(j.q_slice.start, j.q_slice.stop))
        elif isinstance(task, ClearanceTask):
            shape, picked = (task.term.parameters,), tuple(range(task.term.parameters))
        elif isinstance(task, FrameTask) and task.kind == "pose":
            shape, picked = (4, 4), _POSE
        elif isinstance(task, FrameTask) and task.kind == "orientation":
            shape, picked = (3, 3), tuple(range(9))
        else:
            shape, picked = (3,), (0, 1, 2)
        slots.append(TargetSlot(task, shape, picked, slots[-1].end if slots else 0))
    return slots


def task_list(robot: System, slots: Sequence[TargetSlot]) -> TaskList:
    """Return tasks and their frames in the form that kernels read."""
    tasks = [slot.task for slot in slots]
    framed = [robot.placements([t.frame]) if isinstance(t, FrameTask) else GROUND for t in tasks]
    frames = Placements(*(tuple(x for part in column for x in part) for column in zip(*framed, strict=True)))
    return TaskList(frames, specs_of(robot, slots))


def specs_of(robot: System, slots: Sequence[TargetSlot]) -> tuple[TaskSpec, ...]:
    """Return the specifications of tasks that kernels read; the frame of a task has the number of its slot."""
    levels = sorted({slot.task.priority for slot in slots})
    specs, end = [], slots[-1].end  # where the entries of clearance tasks begin: an error and nv slopes each
    for k, slot in enumerate(slots):
        task, at, rows = slot.task, slot.begin, tuple[int, ...]()
        kind = CENTER if isinstance(task, CenterOfMassTask) else POSTURE
        if isinstance(task, FrameTask):
            kind = KINDS[task.kind]
        size = {POSE: 6}.get(kind, 3)
        if isinstance(task, PostureTask):
            rows = tuple(robot.model.joints[j.index].v_slice.start for j in _joints(robot, task))
            size = sum(j.type.nv for j in _joints(robot, task))
        if isinstance(task, ClearanceTask):
            kind, size, rows, at = CLEARANCE, 1, _independent_rows(robot), end
            end += 1 + robot.nv
        default = WITHIN if task.priority == 0 and kind != POSTURE else math.inf
        tolerance = float(default if task.tolerance is None else task.tolerance)
        weight = tuple(float(w) for w in np.broadcast_to(np.asarray(task.weight, dtype=float), (size,)))
        parts = (tolerance,) * len(UNITS.get(kind, ("",)))
        specs.append(TaskSpec(kind, k, weight, parts, levels.index(task.priority), at, rows))
    return tuple(specs)


def _independent_rows(robot: System) -> tuple[int, ...]:
    """Return the rows of the tree that the robot's velocities (nv) are those of."""
    clusters = robot._system.clusters if robot.closed else ()
    return tuple(r for c in clusters for r in c.independent) if clusters else tuple(range(robot.model.nv))


def error_names(tasks: Sequence[KnownTask]) -> tuple[str, ...]:
    """Return the names of the columns of errors."""
    names: list[str] = []
    for task in tasks:
        if isinstance(task, FrameTask):
            names += [f"{task.called} {unit}" for unit in UNITS[KINDS[task.kind]]]
        else:
            names.append(task.called)
    return tuple(names)


def _joints(robot: System, task: PostureTask) -> list[MovingJoint]:
    """Return the joints that have coordinates of their own."""
    moving = {j.name: j for j in robot.joints if j.q_slice.stop > j.q_slice.start}
    for name in task.joints or ():
        if name not in moving:
            raise ValueError(
                f"{robot.name}: PostureTask names {name!r}, which is not a joint with a part of q; {listed([*moving])} are"
            )
    names = moving if task.joints is None else task.joints
    return [moving[name] for name in names]
