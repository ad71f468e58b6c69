"""Configurations as points of a manifold: the neutral one, random ones, q ⊕ v, and the v between two configurations.

A configuration is the concatenation of one chart per joint, and each joint belongs to one of four Lie groups:

    line      revolute, continuous, prismatic   q = (x)                         v = (ẋ)
    SO(3)     spherical                         q = (qx, qy, qz, qw)            v = ω
    SE(2)     planar                            q = (x, y, cos θ, sin θ)        v = (vx, vy, ω)
    SE(3)     floating                          q = (x, y, z, qx, qy, qz, qw)   v = (linear, angular)

v is in the axes of the moved frame and lasts for one second: q ⊕ v = q · exp(v), and the difference is log(q0⁻¹ · q1), with
the functions of spatial/lie.py. These are the conventions of Pinocchio, except that a continuous joint has one coordinate
here.

Every function treats all joints of a group at once, over all leading axes. Lengths are in m, angles in rad.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from ..checks import ARRAY, SeedOrNone, Size, argument
from ..spatial import Quaternion, Vec3, exp_se2, exp_se3, exp_so3, log_se2, log_se3, log_so3, sincos
from .random_numbers import draw_unit_quaternion, uniform, unit_vectors
from .types import JointType

Array = npt.NDArray[np.float64]

AT_ONCE = 256  # configurations that are drawn ahead, in one array


class Coordinates(NamedTuple):
    """The slices of q and v of a moving joint, and the limits [rad or m] of its coordinate if it has only one."""

    type: JointType
    q: slice
    v: slice
    lower: float = -math.inf
    upper: float = math.inf


def neutral(coords: Sequence[Coordinates], nq: int) -> Array:
    """Return the configuration (nq,) with all joints at zero: zero coordinates, identity rotations.

    If `nq` exceeds the coordinates of the joints, the others are zero.
    """
    q = np.zeros(nq)
    for group, rows, *_ in _members(coords):
        q[rows] = group.neutral
    return q


def random_configuration(
    coords: Sequence[Coordinates],
    nq: int,
    rng: SeedOrNone = None,
    size: Size = None,
) -> Array:
    """Return random configurations (*size, nq), or a single one (nq,) if `size` is None.

    A coordinate with limits is uniform between them. Without limits, an angle is uniform in [-π, π] and a length in [-1, 1] m.
    A single finite limit is one end of an interval of the same width. Rotations are uniform on SO(3), the positions of planar
    and floating joints are uniform in [-1, 1] m. `rng` is a generator, or a seed for a new one.
    """
    rng = np.random.default_rng(rng)
    if size is None and isinstance(coords, Joints) and coords.common is not None and len(coords.common.width) == nq:
        return coords.common.drawn(rng)
    shape = shape_of(size)
    q = np.zeros((*shape, nq))
    for group, rows, _, low, width, straight in _members(coords):
        x = group.sample(rng, low, width, (*shape, len(rows)))
        if straight is None:
            q[..., rows] = x
        else:
            q[..., straight] = x.reshape(*shape, rows.size)
    return q


class UnseededConfigurations:
    """Single configurations from a generator without a seed, drawn many at once: a generator's call takes longer than a number.

    A forked process draws its own.
    """

    def __init__(self, coords: Joints, nq: int) -> None:
        self._coords, self._nq = coords, nq
        self.begin()
        _unseeded.add(self)

    def begin(self) -> None:
        """Begin with a new generator."""
        self._rng = np.random.default_rng()
        self._ready: list[Array] = []

    def drawn(self) -> Array:
        """Return the next configuration (nq,)."""
        try:
            return self._ready.pop()
        except IndexError:
            drawn = random_configuration(self._coords, self._nq, self._rng, AT_ONCE)
            self._ready += list(drawn[1:])
            first: Array = drawn[0]
            return first


_unseeded: WeakSet[UnseededConfigurations] = WeakSet()


def _begin_all() -> None:
    for x in _unseeded:
        x.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_all)


def shape_of(size: Size) -> tuple[int, ...]:
    """Return the leading axes that `size` gives, as NumPy's generators interpret it."""
    if size is None:
        return ()
    return tuple(map(operator.index, np.atleast_1d(np.asarray(size))))


def integrate(coords: Sequence[Coordinates], q: npt.ArrayLike, v: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return q ⊕ v: the configuration (..., nq) reached from q (..., nq) by moving with v (..., nv) for one second.

    Leading axes broadcast. The result is float64, or float32 if both arguments are. Its quaternions and (cos θ, sin θ) pairs
    are normalised; those of q need not be. A NaN in a joint's q or v gives NaN in its result. Of the two signs of a
    quaternion, a floating joint takes the one nearer to q, and a spherical joint the one that follows the motion, as in
    Pinocchio.

    Raises ValueError if the last axis of `q` or `v` has the wrong length or if leading axes do not broadcast.
    """
    nq, nv = _sizes(coords)
    (a, b), dtype = _prepare(("q", q, nq), ("v", v, nv))
    out = np.zeros((*np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), nq))
    with np.errstate(invalid="ignore"):
        for group, rows, columns, *_ in _members(coords):
            out[..., rows] = group.integrate(a[..., rows], b[..., columns])
    return out.astype(dtype, copy=False)


def difference(coords: Sequence[Coordinates], q0: npt.ArrayLike, q1: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return q1 ⊖ q0: the v (..., nv) with integrate(q0, v) = q1, for q0 and q1 (..., nq).

    Rotations take the short way, by at most π; the quaternions q and -q are the same rotation. Coordinates of revolute and
    continuous joints are subtracted, including whole turns. Leading axes, dtype, NaN and errors are as in `integrate`.
    """
    nq, nv = _sizes(coords)
    (a, b), dtype = _prepare(("q0", q0, nq), ("q1", q1, nq))
    out = np.zeros((*np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), nv))
    with np.errstate(invalid="ignore"):
        for group, rows, columns, *_ in _members(coords):
            out[..., columns] = group.difference(a[..., rows], b[..., rows])
    return out.astype(dtype, copy=False)


# ---- arguments


def _sizes(coords: Sequence[Coordinates]) -> tuple[int, int]:
    return max((j.q.stop for j in coords), default=0), max((j.v.stop for j in coords), default=0)


def _prepare(*arguments: tuple[str, npt.ArrayLike, int]) -> tuple[list[Array], npt.DTypeLike]:
    """Return the named arguments in float64, with checked lengths, and the dtype of the result."""
    given = [np.asarray(argument(name, value, ARRAY)) for name, value, _ in arguments]
    for (name, _, length), array in zip(arguments, given, strict=True):
        if array.ndim == 0:
            raise ValueError(f"{name}: expected an array whose last axis has length {length}, got a scalar")
        if array.shape[-1] != length:
            raise ValueError(f"{name}: expected last axis of length {length}, got {array.shape[-1]}")
    try:
        np.broadcast_shapes(*(array.shape[:-1] for array in given))
    except ValueError:
        shapes = " and ".join(f"{name} {a.shape}" for (name, _, _), a in zip(arguments, given, strict=True))
        raise ValueError(f"leading axes do not broadcast: {shapes}") from None
    single = all(array.dtype == np.float32 for array in given)
    double = [array.astype(np.float64, casting="same_kind", copy=False) for array in given]
    return double, np.float32 if single else np.float64


class Joints(tuple[Coordinates, ...]):
    """Joints, with their groups found once."""

    @cached_property
    def members(self) -> list[Members]:
        """The groups that have joints."""
        found = []
        for group in _GROUPS:
            if joints := [joint for joint in self if joint.type in group.types]:
                q = np.array([range(j.q.start, j.q.stop) for j in joints])
                v = np.array([range(j.v.start, j.v.stop) for j in joints])
                low, high = np.array([interval(joint) for joint in joints]).T
                found.append(Members(group, q, v, low.copy(), high - low, _consecutive(q.ravel())))
        return found

    @cached_property
    def common(self) -> CommonJoints | None:
        """Joints with one degree of freedom and at most one floating joint; None if there are others, or other coordinates."""
        lines = next((m for m in self.members if m.group is _LINE), None)
        bases = [m for m in self.members if m.group is _SE3]
        if any(m.group not in (_LINE, _SE3) for m in self.members) or sum(len(m.q) for m in bases) > 1:
            return None
        none = np.zeros(0)
        rows, low, width = (none, none, none) if lines is None else (lines.q[:, 0], lines.low, lines.width)
        drawn = np.concatenate([rows, *(m.q[0] for m in bases)]).astype(np.intp)
        if sorted(drawn) != list(range(len(drawn))):
            return None
        low, width = (
            np.append(x, np.array(y * len(bases))) for x, y in ((low, [-1.0] * 3 + [0.0] * 4), (width, [2.0] * 3 + [1.0] * 4))
        )
        order = None if _consecutive(drawn) else np.argsort(drawn)
        return CommonJoints(low, width, len(low) - 4 * len(bases), bool(bases), order)


class CommonJoints(NamedTuple):
    """Joints with one degree of freedom and at most one floating joint, to draw a single configuration in little time.

    The coordinates of the floating joint are drawn last: its position, and its quaternion.
    """

    low: Array  # (nq,) least random coordinates, in the order in which they are drawn
    width: Array  # (nq,) widths of their ranges
    uniform: int  # number of uniform coordinates, which come before a quaternion
    turns: bool  # whether there is a quaternion
    order: npt.NDArray[np.intp] | None  # (nq,) number of each coordinate among those drawn; None if they are in order

    def drawn(self, rng: np.random.Generator) -> Array:
        """Return the configuration (nq,) that `random_configuration` draws group by group."""
        if not self.turns:
            x: Array = rng.random(self.uniform)
        else:
            x = np.empty(len(self.width))
            rng.random(out=x[: self.uniform])
            draw_unit_quaternion(rng, x[self.uniform :])
        x *= self.width
        x += self.low
        return x if self.order is None else x[self.order]


class Members(NamedTuple):
    """A group, the indices (k, ·) of its k joints in q and v, and the ranges of their random coordinates.

    `low` are the least random coordinates, and `width` the widths of their ranges. `straight` are the indices in q as a slice,
    which NumPy writes faster, if they are consecutive.
    """

    group: _Group
    q: npt.NDArray[np.intp]
    v: npt.NDArray[np.intp]
    low: Array
    width: Array
    straight: slice | None


def _consecutive(rows: npt.NDArray[np.intp]) -> slice | None:
    """Return indices as a slice if they are consecutive, and None if not."""
    return slice(int(rows[0]), int(rows[0]) + len(rows)) if len(rows) and (np.diff(rows) == 1).all() else None


def _members(coords: Sequence[Coordinates]) -> list[Members]:
    return (coords if isinstance(coords, Joints) else Joints(coords)).members


def interval(joint: Coordinates) -> tuple[float, float]:
    """Return the range of random coordinates of a joint."""
    half = 1.0 if joint.type is JointType.PRISMATIC else math.pi
    if math.isfinite(joint.lower):
        return joint.lower, joint.upper if math.isfinite(joint.upper) else joint.lower + 2 * half
    return (joint.upper - 2 * half, joint.upper) if math.isfinite(joint.upper) else (-half, half)


# ---- groups: q · exp(v) and log(q0⁻¹ · q1), on arrays whose last axis holds the coordinates


def _vector(x: Array) -> Vec3:
    return Vec3(x[..., 0], x[..., 1], x[..., 2])


def _quaternion(x: Array) -> Quaternion:
    """Return the unit quaternion along (x, y, z, w)."""
    return Quaternion(_vector(x), x[..., 3]).normalized()


def _coordinates(*parts: Any) -> Array:
    """Return vectors, quaternions and numbers in one array."""
    flat: list[Any] = []
    for x in parts:
        flat += [*x.u, x.s] if isinstance(x, Quaternion) else [*x] if isinstance(x, Vec3) else [x]
    return np.stack(np.broadcast_arrays(*flat), axis=-1)


def _so3_integrate(q: Array, w: Array) -> Array:
    return _coordinates(_quaternion(q).product(exp_so3(_vector(w))).normalized())


def _so3_difference(q0: Array, q1: Array) -> Array:
    return _coordinates(log_so3(_quaternion(q0).conjugate().product(_quaternion(q1))))


def _se3_integrate(q: Array, v: Array) -> Array:
    start = _quaternion(q[..., 3:])
    step, e = exp_se3(_vector(v), _vector(v[..., 3:]))
    end = start.product(e).normalized()
    side: Any = np.where(e.s < 0.0, -1.0, 1.0)  # the scalar product of start and end is the cosine of half the turn
    return _coordinates(_vector(q) + start.matrix() @ step, Quaternion(side * end.u, side * end.s))


def _se3_difference(q0: Array, q1: Array) -> Array:
    start = _quaternion(q0[..., 3:])
    step = start.rotate_back(_vector(q1) - _vector(q0))
    return _coordinates(*log_se3(step, start.conjugate().product(_quaternion(q1[..., 3:]))))


def _direction(q: Array) -> tuple[Array, Array]:
    """Return cosine and sine of a planar joint."""
    r = np.sqrt(q[..., 2] * q[..., 2] + q[..., 3] * q[..., 3])
    return q[..., 2] / r, q[..., 3] / r


def _se2_integrate(q: Array, v: Array) -> Array:
    c, s = _direction(q)
    x, y, turn_c, turn_s = exp_se2(v[..., 0], v[..., 1], v[..., 2])
    return _coordinates(q[..., 0] + c * x - s * y, q[..., 1] + s * x + c * y, c * turn_c - s * turn_s, s * turn_c + c * turn_s)


def _se2_difference(q0: Array, q1: Array) -> Array:
    (c0, s0), (c1, s1) = _direction(q0), _direction(q1)
    x, y = q1[..., 0] - q0[..., 0], q1[..., 1] - q0[..., 1]
    return _coordinates(*log_se2(c0 * x + s0 * y, c0 * y - s0 * x, c0 * c1 + s0 * s1, c0 * s1 - s0 * c1))


# ---- samples


def _so3_sample(rng: np.random.Generator, low: Array, width: Array, shape: tuple[int, ...]) -> Array:
    return unit_vectors(rng, (*shape, 4))


def _se3_sample(rng: np.random.Generator, low: Array, width: Array, shape: tuple[int, ...]) -> Array:
    q = np.empty((*shape, 7))
    q[..., :3] = uniform(rng, -1.0, 1.0, (*shape, 3))
    q[..., 3:] = _so3_sample(rng, low, width, shape)
    return q


def _se2_sample(rng: np.random.Generator, low: Array, width: Array, shape: tuple[int, ...]) -> Array:
    sine, cosine = sincos(uniform(rng, -math.pi, math.pi, shape))
    return np.concatenate([uniform(rng, -1.0, 1.0, (*shape, 2)), np.stack([cosine, sine], -1)], axis=-1)


def _line_sample(rng: np.random.Generator, low: Array, width: Array, shape: tuple[int, ...]) -> Array:
    x = rng.random(shape)  # `uniform` refuses limits of 0 and -0
    x *= width
    x += low
    return x[..., None]


class _Group(NamedTuple):
    """A Lie group: its joints, identity, samples (rng, low, width, shape), q · exp(v) and log(q0⁻¹ · q1)."""

    types: tuple[JointType, ...]
    neutral: tuple[float, ...]
    sample: Callable[[np.random.Generator, Array, Array, tuple[int, ...]], Array]
    integrate: Callable[[Array, Array], Array]
    difference: Callable[[Array, Array], Array]


_ONE_DOF = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC)
_LINE = _Group(_ONE_DOF, (0.0,), _line_sample, lambda q, v: q + v, lambda q0, q1: q1 - q0)
_SO3 = _Group((JointType.SPHERICAL,), (0.0, 0.0, 0.0, 1.0), _so3_sample, _so3_integrate, _so3_difference)
_SE2 = _Group((JointType.PLANAR,), (0.0, 0.0, 1.0, 0.0), _se2_sample, _se2_integrate, _se2_difference)
_SE3 = _Group((JointType.FLOATING,), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), _se3_sample, _se3_integrate, _se3_difference)
_GROUPS = (_LINE, _SO3, _SE2, _SE3)
