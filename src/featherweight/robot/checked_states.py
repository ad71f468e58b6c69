"""Checks of states that come from users, sensors or files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from ..array_types import Array, Vector
from ..checks import checked, real_array
from ..model.editing.notes import warn_caller
from ..model.model import MovingJoint
from ..model.types import JointType
from .system import System

ROUNDED = 1e-3  # error of the length of quaternions written with four digits
ROTATIONS = ("rotations",)  # a key
FLOAT = np.dtype(float)


@checked
def check(
    robot: System, q: npt.ArrayLike, v: npt.ArrayLike | None = None, *, limits: bool = False, tolerance: float = 1e-6
) -> None:
    """Raise ValueError for states q (..., nq) and v (..., nv) with which functions of the robot compute wrong results.

    The functions themselves do not check, so that they stay fast. The error names the joint: of a number that is not finite; of
    a quaternion, or cosine and sine of a planar joint, whose length differs from 1 by more than `tolerance`; and with
    `limits=True`, of a coordinate [m, rad] or a velocity beyond its limits by more than `tolerance`. The quaternion (1, 0, 0,
    0), which is MuJoCo's for no rotation and half a turn here, gives a ModelWarning.

        robot.check(q, v, limits=True)
    """
    configurations = robot._checked("q", q, robot.nq)
    _require_finite(robot, "q", configurations)
    for j, rows in rotations_of(robot):
        turn = configurations[..., rows]
        length = np.sqrt((turn * turn).sum(axis=-1))
        wrong = np.abs(length - 1.0) > tolerance
        for state in np.argwhere(wrong)[:1].tolist() if wrong.any() else ():
            what = "cosine and sine" if j.type is JointType.PLANAR else "the quaternion"
            found = float(length[tuple(state)])
            how = "divide it by its length" if found else "robot.neutral() has one"
            place = f"q[{rows.start}:{rows.stop}]"
            _refuse(robot, "q", state, f"{what} of joint {j.name!r}, {place}, must have length 1; got {found:.9g}; {how}")
    warn_of_scalar_first(robot, configurations)
    if limits:
        _require_within(robot, "q", configurations, robot.lower - tolerance, robot.upper + tolerance)
    if v is not None:
        velocities = robot._checked("v", v, robot.nv)
        _require_finite(robot, "v", velocities)
        if limits:
            most = robot.velocity_limit + tolerance
            _require_within(robot, "v", velocities, -most, most)


def one_state(owner: str, robot: System, q: npt.ArrayLike, v: npt.ArrayLike) -> tuple[Vector, Vector]:
    """Return a state (nq,) and (nv,) for a controller as arrays, in a few microseconds.

    Raises ValueError, which begins with `owner`, for others, and for quaternions without unit length.
    """
    return _one(owner, "q", q, robot.nq, robot), _one(owner, "v", v, robot.nv)


def _one(owner: str, name: str, x: npt.ArrayLike, size: int, turning: System | None = None) -> Vector:
    given = x if type(x) is np.ndarray and x.dtype is FLOAT else real_array(f"{owner}: {name}", x)
    if given.shape != (size,):
        raise ValueError(f"{owner}: {name} must have shape ({size},); got {given.shape}")
    require_finite(owner, name, given)
    if turning is not None:
        require_rotations(turning, given)
    return given


def many_states(owner: str, name: str, x: npt.ArrayLike, size: int) -> Array:
    """Return configurations or velocities (..., size) as an array. Raises ValueError, which begins with `owner`, for others."""
    given = real_array(f"{owner}: {name}", x)
    if given.shape[-1:] != (size,):
        raise ValueError(f"{owner}: {name} must have shape (..., {size}); got {given.shape}")
    require_finite(owner, name, given.reshape(-1))
    return given


def require_finite(owner: str, name: str, x: Vector) -> None:
    """Raise ValueError for numbers (n,) that are not finite."""
    if not math.isfinite(sum(x.tolist())) and not np.isfinite(x).all():  # large numbers overflow; NumPy is slow for a few
        raise ValueError(f"{owner}: {name} has numbers that are not finite")


def require_rotations(robot: System, q: Array) -> None:
    """Check quaternions of q (..., nq) as `check` does, but allow four digits; those of one state in little time."""
    for _, rows in rotations_of(robot):
        turn = q[rows].tolist() if q.ndim == 1 else ()
        if not turn or abs(math.hypot(*turn) - 1.0) > ROUNDED or (turn[0] == 1.0 and len(turn) == 4):
            check(robot, q, tolerance=ROUNDED)
            return


def rotations_of(robot: System) -> list[tuple[MovingJoint, slice]]:
    """Return the joints whose coordinates include a quaternion, or cosine and sine, and where these are in q."""

    def make() -> list[tuple[MovingJoint, slice]]:
        rotating = [j for j in robot.joints if j.type.rotation and j.q_slice.stop - j.q_slice.start == j.type.nq]
        return [(j, slice(j.q_slice.stop - j.type.rotation, j.q_slice.stop)) for j in rotating]

    return robot._kept(ROTATIONS, make)


def warn_of_scalar_first(robot: System, q: Array) -> None:
    """Warn about quaternions that are exactly (1, 0, 0, 0) in q (..., nq): half a turn about x, or no rotation with w first.

    It takes a fraction of a microsecond for one state without them.
    """
    for j, rows in rotations_of(robot):
        begin = rows.start
        if rows.stop - begin == 4 and (q[begin] == 1.0 if q.ndim == 1 else (q[..., begin] == 1.0).any()):
            warn_caller(
                f"{robot.name}: the quaternion of joint {j.name!r}, q[{begin}:{begin + 4}], is (1, 0, 0, 0): half a turn about "
                "x, because w is last here. If it means no rotation, with w first as in MuJoCo and Drake, write (0, 0, 0, 1); "
                "featherweight.MujocoOrder converts states"
            )


def _require_finite(robot: System, name: str, x: Array) -> None:
    finite = np.isfinite(x)
    if finite.all():
        return
    for *state, k in np.argwhere(~finite)[:1].tolist():
        _refuse(robot, name, state, f"{_place(robot, name, k)} must be finite; got {x[(*state, k)]}")


def _require_within(robot: System, name: str, x: Array, lower: Array, upper: Array) -> None:
    for *state, k in np.argwhere((x < lower) | (x > upper))[:1].tolist():
        within = f"[{lower[k]:.6g}, {upper[k]:.6g}]"
        _refuse(robot, name, state, f"{_place(robot, name, k)} must be within {within}; got {x[(*state, k)]:.6g}")


def _place(robot: System, name: str, k: int) -> str:
    """Return a number of a state with the name of its joint."""
    slices = {j.name: j.q_slice if name == "q" else j.v_slice for j in robot.joints}
    return f"{name}[{k}], of joint {next(joint for joint, s in slices.items() if s.start <= k < s.stop)!r},"


def _refuse(robot: System, name: str, state: Sequence[int], problem: str) -> NoReturn:
    raise ValueError(f"{robot.name}: {f'state {state} of {name}: ' if state else ''}{problem}")
