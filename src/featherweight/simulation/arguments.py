"""Checks of the arguments of a simulation."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array
from ..checks import (
    ARRAY,
    FUNCTION,
    NONNEGATIVE,
    NOTHING,
    POSITIVE,
    argument,
    check_labels,
    either,
    object_of,
    one_of,
    shown,
    whole,
)
from ..engine.backends.host_arrays import HostArrays
from ..model.model import MovingJoint
from ..model.types import JointType
from ..names import choose_from
from ..robot import checked_states
from ..robot.robot import Robot
from ..robot.wrenches import Wrench
from .scene import ContactSphere, Ground, HeightField, Plane

T = TypeVar("T")

EXACT = 1e-9  # error of the length of quaternions after integration: rounding errors
ROUNDED = 1e-3  # error of the length of quaternions written with four digits

INTEGRATOR = one_of(("semi-implicit", "rk4", "midpoint"))
ON_FAILURE = one_of(("raise", "stop", "reset"))

SECONDS = POSITIVE.worded("a positive number of seconds")
DURATION = NONNEGATIVE.worded("zero or more seconds")
ROBOT = object_of(Robot)


def check_robot(owner: str, robot: object) -> None:
    """Raise TypeError, with what to write, for any object but a robot."""
    argument(f"{owner}: robot", robot, ROBOT)


def check_options(name: str, options: object, kind: type) -> None:
    if not isinstance(options, kind):
        raise TypeError(f"{name} must be featherweight.{kind.__name__}(...); got {shown(options)}")


def ground_of(ground: object) -> Ground | None:
    """Return the given ground; True is the plane z = 0. Raises TypeError for other objects."""
    if ground is True:
        return Plane()
    if ground is False:
        return None
    if ground is not None and not isinstance(ground, Plane | HeightField):
        raise TypeError(
            "ground must be True (the plane z = 0), featherweight.Plane(...), featherweight.HeightField(...) or None; "
            f"got {shown(ground)}"
        )
    return ground


def parts_of(kind: type[T], name: str, things: object, example: str) -> tuple[T, ...]:
    """Return a tuple of objects of one kind. Raises TypeError for others."""
    if isinstance(things, kind):
        raise TypeError(f"{name} must be a list; put the {kind.__name__} into one: {name}=[...]")
    if isinstance(things, str) or not isinstance(things, Iterable):
        raise TypeError(f"{name} must be a list of {kind.__name__}, such as [{example}]; got {shown(things)}")
    made = tuple(things)
    for x in made:
        if not isinstance(x, kind):
            raise TypeError(f"{name} must be a list of {kind.__name__}, such as [{example}]; it contains {shown(x)}")
    return made


def pairs_of(pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return pairs of numbers. Raises TypeError for other objects."""
    try:
        return tuple((operator.index(i), operator.index(j)) for i, j in pairs)
    except (TypeError, ValueError):
        raise TypeError(f"pairs must be pairs of numbers of spheres, such as [(0, 1)]; got {shown(pairs)}") from None


def check_pairs(pairs: Sequence[tuple[int, int]], spheres: Sequence[ContactSphere], ground: Ground | None) -> None:
    """Check that pairs name two spheres by number, and that every sphere has something to touch."""
    for i, j in pairs:
        if not (0 <= i < len(spheres) and 0 <= j < len(spheres)) or i == j:
            raise ValueError(f"pairs must name two of the {len(spheres)} spheres by number; got {(i, j)}")
        if spheres[i].radius + spheres[j].radius == 0.0:
            raise ValueError(f"pair {(i, j)}: two points never touch; one needs a radius")
    if spheres and ground is None and not pairs:
        raise ValueError("the spheres have nothing to touch: give ground= or pairs=")


def check_count(name: str, count: object, least: int) -> int:
    """Return a whole number of at least `least`. Raises ValueError for other numbers."""
    if type(count) is int and count >= least:
        return count
    number: int = argument(name, count, whole(least).worded(f"at least {least}, a whole number"))
    return number


def check_inputs(inputs: Iterable[tuple[str, Any, tuple[int, ...]]], robots: int, steps: int | None) -> int:
    """Return the number of steps of a rollout, from its inputs or `steps`.

    Inputs are names, arrays (robots or 1, steps, *size) or None, and sizes.
    """
    for name, x, size in inputs:
        if x is None:
            continue
        right = x.ndim == 2 + len(size) and x.shape[0] in (1, robots) and x.shape[2:] == size
        if not right or (steps is not None and x.shape[1] != steps):
            wanted = f"({robots} or 1, {'steps' if steps is None else steps}, {', '.join(map(str, size))})"
            raise ValueError(f"{name} of a rollout must have shape {wanted}; got {x.shape}")
        steps = x.shape[1]
    if steps is None:
        raise ValueError("a rollout needs steps=, or tau or control for each step")
    return check_count("steps", steps, 0)


def check_out(out: Any, shapes: Sequence[tuple[int, ...]]) -> None:
    right = isinstance(out, tuple | list) and len(out) == len(shapes)
    for x, shape in zip(out, shapes, strict=True) if right else ():
        right &= isinstance(x, np.ndarray) and x.shape == shape and x.dtype == np.float64
        right = right and x.flags.c_contiguous and x.flags.writeable
    if not right:
        wanted = " and ".join(map(str, shapes))
        raise ValueError(f"out must be a pair of writable C-contiguous float64 arrays (q, v) with shapes {wanted}")


def numbers(name: str, x: object) -> Array:
    """Return a copy, in C order, of an array of real numbers."""
    if type(x) is np.ndarray and x.dtype.kind in "fiu":
        return np.array(x, dtype=np.float64, order="C")
    try:
        given = HostArrays().array(x, name)
    except TypeError as error:
        raise ValueError(str(error)) from None
    try:
        if given.dtype.kind in "cSUMm" or (given.dtype.kind == "b" and given.ndim == 0):
            raise TypeError(f"its type is {given.dtype}")
        return np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of real numbers: {error}") from None


def of_robots(name: str, x: object, size: tuple[int, ...], robots: int) -> Array:
    """Return an input of one step as an array (*size) or (robots, *size)."""
    if isinstance(x, Wrench):
        raise ValueError(f"{name} must be an array; call the wrench with q for one: robot.wrench(...)(q)")
    if isinstance(x, Mapping):
        order = "the controls: list(robot.controls)" if name == "control" else "the joints: robot.joints[name].v_slice"
        raise ValueError(f"{name} must be an array, not a dict; its numbers are in the order of {order}")
    x = numbers(name, x)
    if x.shape not in (size, (robots, *size)):
        wanted, many = str(size), f"(robots, {', '.join(map(str, size))})"
        more = ", one for each actuator" if name == "control" else ""
        if name == "tau" and x.ndim == 0:
            more = " (joint forces; steps=... is the number of steps, and dt=... of the Simulation their length)"
        raise ValueError(f"{name} must have shape {wanted} or {many}{more}; got {x.shape}")
    return x


Controller = Callable[[float, Array, Array], Any]
CONTROLLER = either([FUNCTION, NOTHING]).worded("a function of time, q and v, or None")


def given_forces(answer: object) -> tuple[Any, Any] | tuple[Any]:
    """Return the result of a controller as a tuple of tau, or of tau and control. Raises ValueError for other results."""
    if answer is None or (isinstance(answer, tuple) and len(answer) != 2):
        got = "None" if answer is None else f"a tuple of {len(answer)}"
        raise ValueError(f"a controller must return joint forces tau, or a pair of tau (or None) and controls; got {got}")
    return answer if isinstance(answer, tuple) else (answer,)


_rotations: WeakKeyDictionary[Robot, list[tuple[MovingJoint, slice]]] = WeakKeyDictionary()  # see `rotations_of`


def rotations_of(robot: Robot) -> list[tuple[MovingJoint, slice]]:
    """Return the joints whose coordinates include a quaternion, or cosine and sine, and where these are in q."""
    if robot not in _rotations:
        begins = {JointType.SPHERICAL: 0, JointType.FLOATING: 3, JointType.PLANAR: 2}
        whole = [j for j in robot.joints if j.type in begins and j.q_slice.stop - j.q_slice.start == j.type.nq]
        _rotations[robot] = [(j, slice(j.q_slice.start + begins[j.type], j.q_slice.stop)) for j in whole]
    return _rotations[robot]


def with_unit_rotations(robot: Robot, q: Array) -> Array:
    """Return q with quaternions, and cosine and sine of planar joints, normalized if their lengths are within `ROUNDED` of 1.

    Lengths within `EXACT` of 1 are unchanged, so that a state continues bitwise. Raises ValueError for other lengths.
    """
    for j, rows in rotations_of(robot):
        if q.ndim == 1 and abs(np.dot(q[rows], q[rows]) - 1.0) <= EXACT:
            continue
        length = np.linalg.norm(q[..., rows], axis=-1)
        wrong = np.argwhere(np.atleast_1d(np.abs(length - 1.0)) > ROUNDED)
        if len(wrong):
            what = "cosine and sine" if j.type is JointType.PLANAR else "quaternion"
            where = f" of robot {wrong[0, 0]}" if q.ndim > 1 else ""
            found = float(np.atleast_1d(length)[wrong[0, 0]])
            raise ValueError(
                f"q: the {what} of joint {j.name!r}{where}, q[{rows.start}:{rows.stop}], must have unit length, but "
                f"has {found:.9g}; " + ("divide it by its length" if found > 0.0 else "use that of robot.neutral()")
            )
        if (np.abs(length - 1.0) > EXACT).any():
            q = q.copy()
            q[..., rows] = np.where(np.abs(length - 1.0)[..., None] > EXACT, q[..., rows] / length[..., None], q[..., rows])
    return q


def warn_of_scalar_first(robot: Robot, q: Array) -> None:
    """Warn about quaternions that may be MuJoCo's identity, as `Robot.check` does, in a fraction of a microsecond for one."""
    for _, rows in rotations_of(robot):
        first = q[rows.start] if q.ndim == 1 else q[:, rows.start]
        if rows.stop - rows.start == 4 and (first == 1.0 if q.ndim == 1 else (first == 1.0).any()):
            checked_states.warn_of_scalar_first(robot, q)
            return


def require_unit_rotations(owner: str, robot: Robot, q: Array) -> None:
    """Raise ValueError for a configuration (nq,) with a quaternion, or cosine and sine, whose length differs from 1."""
    if any(abs(np.dot(q[rows], q[rows]) - 1.0) > ROUNDED for _, rows in rotations_of(robot)):
        try:
            with_unit_rotations(robot, q)
        except ValueError as error:
            raise ValueError(f"{owner}: {error}") from None


def chosen_robots(which: ArrayLike, robots: int) -> Array:
    """Return the numbers (k,) of some robots, given as a mask (robots,) or as numbers.

    Raises ValueError for other arguments.
    """
    chosen = np.asarray(argument("which", which, ARRAY))
    if chosen.dtype == bool and chosen.shape != (robots,):
        raise ValueError(f"which must be a mask of shape ({robots},), or numbers of robots; got shape {chosen.shape}")
    numbers = np.flatnonzero(chosen) if chosen.dtype == bool else np.atleast_1d(chosen)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or ((numbers < -robots) | (numbers >= robots)).any():
        raise ValueError(
            f"which must be a mask of shape ({robots},), or numbers of robots from 0 to {robots - 1}; got {shown(which)}"
        )
    return numbers


def named_configuration(robot: Robot, name: str) -> Array:
    """Return a reference configuration (nq,) by its name. Raises ValueError for an unknown name."""
    if name not in robot.configurations:
        raise ValueError(f"q: {robot.name} has no configuration {choose_from(name, list(robot.configurations))}")
    return np.asarray(robot.configurations[name])


def states(robot: Robot, q: ArrayLike | None, v: ArrayLike | None) -> tuple[Array, Array]:
    """Return states (nq,) and (nv,) of a robot, or (robots, nq) and (robots, nv) of many, as new arrays.

    v is zero by default. Raises ValueError for invalid states, with the name of the joint.
    """
    nq, nv = robot.nq, robot.nv
    for name, x in (("q", q), ("v", v)):
        if type(x) is not np.ndarray:
            check_labels(name, x, robot.labels(name))
    q = numbers("q", q)
    v = np.zeros((*q.shape[:-1], nv)) if v is None else numbers("v", v)
    for name, x, n in (("q", q, nq), ("v", v, nv)):
        if x.ndim == 0 or x.ndim > 2 or x.shape[-1] != n:
            raise ValueError(f"{name} must have shape ({n},) or (robots, {n}); got {x.shape}")
        if len(x) == 0:
            raise ValueError(f"{name} must have rows for at least one robot; got shape {x.shape}")
        if not np.isfinite(x).all():
            *_, place = (int(k) for k in np.argwhere(~np.isfinite(x))[0])
            rows = {j.name: j.q_slice if name == "q" else j.v_slice for j in robot.joints}
            joint = next(j for j, s in rows.items() if s.start <= place < s.stop)
            raise ValueError(f"{name} must be finite numbers; number {place}, of joint {joint!r}, is not finite")
    q = with_unit_rotations(robot, q)
    if q.ndim == v.ndim == 2 and len(q) != len(v):
        raise ValueError(f"q and v must have the same number of robots; got {len(q)} and {len(v)}")
    if q.ndim != v.ndim or q.shape[:-1] != v.shape[:-1]:
        leading = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        q, v = (np.array(np.broadcast_to(x, (*leading, x.shape[-1])), order="C") for x in (q, v))
    return q, v
