"""Checking of users' targets, and packing of the targets of all tasks in one array."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...array_types import Array
from ...checks import real_array
from ...engine.loops.standalone import Port
from ...model.types import Pose, homogeneous_matrix, rotation_defect
from ..robot import Robot
from .tasks import PostureTask, TargetSlot

Targets = ArrayLike | Sequence[Any] | Mapping[str, Any]  # of the only task, of each task, or by name

ROTATIONS = (4, 4), (3, 3)  # shapes of targets that contain a rotation in their first three rows and columns
ROTATION = 1e-6  # largest deviation of a rotation matrix from orthonormality
LAST_ROW = (0.0, 0.0, 0.0, 1.0)  # of a homogeneous matrix


def packed(slots: Sequence[TargetSlot], targets: Targets, alone: bool, owner: str = "InverseKinematics") -> Array:
    """Return flat targets (*batch, n). Raises an error that names the task for a missing, unknown or misshapen target.

    `alone` says that the only task was not given in a sequence; its target then needs no sequence either. An array is the
    target of the only task that has one. Messages begin with `owner`.
    """
    only = len(slots) == 1 and isinstance(targets, np.ndarray)
    given = [targets] if only else _by_task(slots, targets, alone, owner)
    arrays = [checked_target(owner, slot.task.called, slot.shape, x) for slot, x in zip(slots, given, strict=True)]
    if len(slots) == 1 and arrays[0].ndim == len(slots[0].shape):
        return arrays[0].ravel().take(slots[0].order)
    if all(x.shape == slot.shape for slot, x in zip(slots, arrays, strict=True)):
        return np.concatenate([x.ravel().take(slot.order) for slot, x in zip(slots, arrays, strict=True)])
    leading = [x.shape[: x.ndim - len(slot.shape)] for slot, x in zip(slots, arrays, strict=True)]
    try:
        batch = leading[0] if len(leading) == 1 else np.broadcast_shapes(*leading)
    except ValueError:
        shapes = ", ".join(f"{slot.task.called!r} {x.shape}" for slot, x in zip(slots, arrays, strict=True))
        raise ValueError(f"{owner}: batch axes of targets do not broadcast: {shapes}") from None
    flat = np.empty((*batch, slots[-1].end))
    for slot, x in zip(slots, arrays, strict=True):
        whole = x.reshape(*x.shape[: x.ndim - len(slot.shape)], math.prod(slot.shape))
        flat[..., slot.begin : slot.end] = whole[..., slot.order]
    return flat


def target_ports(robot: Robot, slots: Sequence[TargetSlot], flat: Array) -> list[Port]:
    """Return the targets in a flat array as inputs of a kernel without Python; rotations are the identity, postures neutral."""
    ports = []
    for slot in slots:
        part = flat[slot.begin : slot.end]
        if slot.shape in ROTATIONS:
            part[:] = np.eye(slot.shape[0]).reshape(-1)[slot.order]
        elif isinstance(slot.task, PostureTask):
            part[:] = robot.neutral()[slot.order]
        what = f"target of {type(slot.task).__name__} {slot.task.called!r}"
        ports.append(Port(f"target_{slot.task.called}", part, what, slot.shape, slot.picked))
    return ports


def _by_task(slots: Sequence[TargetSlot], targets: Targets, alone: bool, owner: str) -> Sequence[Any]:
    names = [slot.task.called for slot in slots]
    if isinstance(targets, Mapping):
        if set(targets) != set(names):
            raise ValueError(f"{owner}: targets must be those of the tasks {names}; got {list(targets)}")
        return [targets[name] for name in names]
    if alone or (isinstance(targets, Pose) and len(slots) == 1):
        return [targets]
    if isinstance(targets, np.ndarray) or not isinstance(targets, Sequence) or len(targets) != len(slots):
        got = f"{len(targets)} of them" if isinstance(targets, (list, tuple)) else type(targets).__name__
        raise ValueError(f"{owner}: targets must be a list with one target for each of the tasks {names}, or a dict; got {got}")
    return targets


def checked_target(owner: str, name: str, shape: tuple[int, ...], target: ArrayLike | Pose, batches: bool = True) -> Array:
    """Return a target (*shape), or with `batches` (..., *shape), as an array.

    Raises ValueError, which begins with `owner`, for others.
    """
    if isinstance(target, Pose):
        target = homogeneous_matrix(target)
    x = real_array(f"{owner}: the target of {name!r}", target)
    n = len(shape)
    if x.shape != shape and (not batches or x.ndim < n or x.shape[x.ndim - n :] != shape):
        wanted = f"({', '.join(['...', *map(str, shape)])})" if batches else str(shape)
        advice = ""
        if shape == (4, 4) and x.shape[-1:] == (3,):
            advice = '; a position is the target of FrameTask(frame, "position")'
        elif shape == (3,) and x.shape[-2:] == (4, 4):
            advice = "; the position of a matrix T is T[..., :3, 3]"
        raise ValueError(f"{owner}: the target of {name!r} must have shape {wanted}; got {x.shape}{advice}")
    one = x.ndim == n  # Python's numbers are then faster than arrays
    numbers = x.ravel().tolist() if one else []
    if not (all(map(math.isfinite, numbers)) if one else np.isfinite(x).all()):
        raise ValueError(f"{owner}: the target of {name!r} has numbers that are not finite")
    if shape in ROTATIONS:
        k = shape[1]
        rows = [numbers[i : i + 3] for i in (0, k, 2 * k)] if one else np.moveaxis(x[..., :3, :3], (-2, -1), (0, 1))
        far = rotation_defect(rows)
        if (far if one else far.max(initial=0.0)) > ROTATION:
            raise ValueError(f"{owner}: the target of {name!r} contains a matrix that is not a rotation")
    if shape == (4, 4):
        off = (
            max(map(abs, map(operator.sub, numbers[12:], LAST_ROW)))
            if one
            else np.abs(x[..., 3, :] - LAST_ROW).max(initial=0.0)
        )
        if off > ROTATION:
            raise ValueError(f"{owner}: the target of {name!r} must have 0, 0, 0, 1 as its last row")
    return x
