"""Tasks of whole-body control: those of inverse kinematics, and angular momentum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from ..array_types import Array, Vector
from ..checks import CHECKED_LATER, NonNegative, argument, checked, real_array, shown, whole
from ..model.types import JointType
from ..robot.inverse_kinematics.tasks import CenterOfMassTask, FrameTask, IkTask, PostureTask
from ..robot.robot import Robot

BASES = (JointType.FLOATING, JointType.PLANAR)  # joints without drives
PRIORITY = whole(0).worded("an integer of at least 0")


@checked
@dataclass(frozen=True)
class AngularMomentumTask(IkTask):
    """A task of WholeBodyControl that reduces the angular momentum about the centre of mass, at the rate `damping` [1/s].

    It has no target. Its reference "velocity" is a desired angular momentum (3) [kg m²/s] in the world's axes, and its
    reference "acceleration" the rate of that. `weight` is a number or one number for each axis; `priority` is that of a
    FrameTask.
    """

    weight: Annotated[npt.ArrayLike, CHECKED_LATER] = 1.0
    priority: Annotated[int, CHECKED_LATER] = 0
    damping: NonNegative = 10.0
    name: str = "angular momentum"

    def __post_init__(self) -> None:
        what = f"AngularMomentumTask {self.name!r}"
        weight = real_array(f"{what}: weight", self.weight)
        if weight.shape not in ((), (3,)) or not np.isfinite(weight).all() or (weight < 0).any() or not (weight > 0).any():
            raise ValueError(
                f"{what}: weight must be a number or 3 numbers, none negative and at least one positive; got {self.weight!r}"
            )
        argument(f"{what}: priority", self.priority, PRIORITY)


WholeBodyTask = FrameTask | CenterOfMassTask | PostureTask | AngularMomentumTask


def checked_tasks(tasks: Any) -> tuple[WholeBodyTask, ...]:
    """Return the tasks as a tuple. Raises an error for none, for other objects, and for two tasks of one name."""
    every = tuple(tasks) if isinstance(tasks, Iterable) and not isinstance(tasks, str) else (tasks,)
    for task in every:
        if not isinstance(task, WholeBodyTask):
            raise TypeError(
                f"WholeBodyControl takes FrameTask, CenterOfMassTask, PostureTask and AngularMomentumTask; got {shown(task)}"
            )
    if not every:
        raise ValueError("WholeBodyControl needs at least one task; got none")
    check_names("tasks", [task.called for task in every])
    return every


def check_names(what: str, names: list[str]) -> None:
    """Raise ValueError for two equal names."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"WholeBodyControl: two {what} are called {name!r}; rename one of them with name=")


def columns_of(robot: Robot, task: WholeBodyTask) -> list[int]:
    """Return the velocities of a posture's joints, by default of all joints with drives; other tasks have none."""
    if not isinstance(task, PostureTask):
        return []
    joints = [j for j in robot.joints if j.type not in BASES] if task.joints is None else [robot.joint(x) for x in task.joints]
    for j in joints if task.joints is not None else ():
        if j.v_slice.stop == j.v_slice.start:
            raise ValueError(f"{robot.name}: PostureTask names {j.name!r}, which follows other joints; name those")
    return [k for j in joints for k in range(j.v_slice.start, j.v_slice.stop)]


def gains_of(task: WholeBodyTask) -> tuple[float, float]:
    """Return stiffness and damping."""
    if isinstance(task, AngularMomentumTask):
        return 0.0, task.damping
    return task.stiffness, 2.0 * task.stiffness**0.5 if task.damping is None else task.damping


def weights_of(robot: Robot, task: WholeBodyTask) -> Vector:
    """Return the weight of each row."""
    size = len(columns_of(robot, task)) if isinstance(task, PostureTask) else 6 if is_pose(task) else 3
    return np.array(np.broadcast_to(np.asarray(task.weight, dtype=float), (size,)))


def is_pose(task: WholeBodyTask) -> bool:
    return isinstance(task, FrameTask) and task.kind == "pose"


def target_shape(robot: Robot, task: WholeBodyTask) -> tuple[int, ...]:
    """Return the shape of a task's target, without entries if it has none."""
    if isinstance(task, FrameTask):
        return {"pose": (4, 4), "orientation": (3, 3), "position": (3,)}[task.kind]
    return (robot.nq,) if isinstance(task, PostureTask) else (3,) if isinstance(task, CenterOfMassTask) else (0,)


def target_part(task: WholeBodyTask, memory: Array) -> Array:
    """Return the part of a task's memory that has its target: a placement (4, 4), a rotation (3, 3), a point or q (nq,)."""
    if isinstance(task, FrameTask) and task.kind != "pose":
        return memory[:3, 3] if task.kind == "position" else memory[:3, :3]
    return memory
