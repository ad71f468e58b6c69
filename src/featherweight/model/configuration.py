"""Configurations as points of a manifold: the neutral one, random ones, q ⊕ v, and the v between two of them.

A configuration is the concatenation of one chart per joint, and each joint belongs to one of four Lie groups:

    line      revolute, continuous, prismatic   q = (x)                         v = (ẋ)
    SO(3)     spherical                         q = (qx, qy, qz, qw)            v = ω
    SE(2)     planar                            q = (x, y, cos θ, sin θ)        v = (vx, vy, ω)
    SE(3)     floating                          q = (x, y, z, qx, qy, qz, qw)   v = (linear, angular)

with v in the moved frame and in force for one second, so that q ⊕ v = q · exp(v) and the difference is
log(q0⁻¹ · q1). These are the conventions of Pinocchio, except that a continuous joint has one coordinate here.
Exponentials and logarithms: Solà, Deray, Atchuthan, "A micro Lie theory for state estimation in robotics" (2018),
appendices B to D, written with half angles so that neither tiny angles nor angles near π lose digits.

Every function treats all joints of a group at once, over all leading axes. Lengths in m, angles in rad.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .types import JointType

Array = npt.NDArray[np.float64]


class Coordinates(NamedTuple):
    """Where a moving joint lives in q and v, and the limits [rad or m] of its coordinate if it has one only."""

    type: JointType
    q: slice
    v: slice
    lower: float = -math.inf
    upper: float = math.inf


def neutral(coords: Sequence[Coordinates], nq: int) -> Array:
    """The configuration (nq,) of all joints at zero: zero coordinates, identity rotations.

    The coordinates of other joints, if `nq` leaves room for any, are zero.
    """
    q = np.zeros(nq)
    for group, joints, rows, _ in _groups(coords):
        q[rows] = np.broadcast_to(group.neutral, (len(joints), len(group.neutral)))
    return q


def random_configuration(
    coords: Sequence[Coordinates],
    nq: int,
    rng: np.random.Generator | int | None = None,
    size: int | tuple[int, ...] | None = None,
) -> Array:
    """Random configurations (*size, nq); a single one (nq,) if `size` is None.

    A coordinate with limits is uniform between them; without, an angle is uniform in [-π, π] and a length in [-1, 1] m.
    One finite limit gives an interval of the same width that ends there. Rotations are uniform on SO(3), the positions
    of planar and floating joints uniform in [-1, 1] m. `rng` is a generator, or a seed for a new one.
    """
    rng = np.random.default_rng(rng)
    shape = () if size is None else (size,) if isinstance(size, int) else tuple(size)
    q = np.zeros((*shape, nq))
    for group, joints, rows, _ in _groups(coords):
        low, high = np.array([_interval(joint) for joint in joints]).T
        q[..., rows] = group.sample(rng, low, high, (*shape, len(joints)))
    return q


def integrate(coords: Sequence[Coordinates], q: npt.ArrayLike, v: npt.ArrayLike) -> npt.NDArray[Any]:
    """q ⊕ v: the configuration (..., nq) reached from q (..., nq) by moving with v (..., nv) for one second.

    Leading axes broadcast. The result is float64, or float32 if both arguments are; its quaternions and
    (cos θ, sin θ) pairs are normalised, and those of q need not be. A NaN in a joint's q or v gives NaN in its result.
    Of the two signs of a quaternion, a floating joint takes the one nearer to q, a spherical joint the one that follows
    the motion, as Pinocchio does.

    Raises ValueError if the last axis of `q` or `v` has the wrong length or if leading axes do not broadcast.
    """
    nq, nv = _sizes(coords)
    (a, b), dtype = _prepare(("q", q, nq), ("v", v, nv))
    out = np.zeros((*np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), nq))
    with np.errstate(invalid="ignore"):
        for group, _, rows, columns in _groups(coords):
            out[..., rows] = group.integrate(a[..., rows], b[..., columns])
    return out.astype(dtype, copy=False)


def difference(coords: Sequence[Coordinates], q0: npt.ArrayLike, q1: npt.ArrayLike) -> npt.NDArray[Any]:
    """q1 ⊖ q0: the v (..., nv) with integrate(q0, v) = q1, for q0 and q1 (..., nq).

    Rotations take the short way, by at most π; q and -q of a quaternion are the same rotation. Coordinates of revolute
    and continuous joints are subtracted, whole turns included. Leading axes, dtype, NaN and errors as in `integrate`.
    """
    nq, nv = _sizes(coords)
    (a, b), dtype = _prepare(("q0", q0, nq), ("q1", q1, nq))
    out = np.zeros((*np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), nv))
    with np.errstate(invalid="ignore"):
        for group, _, rows, columns in _groups(coords):
            out[..., columns] = group.difference(a[..., rows], b[..., rows])
    return out.astype(dtype, copy=False)


# ---- arguments


def _sizes(coords: Sequence[Coordinates]) -> tuple[int, int]:
    return max((j.q.stop for j in coords), default=0), max((j.v.stop for j in coords), default=0)


def _prepare(*arguments: tuple[str, npt.ArrayLike, int]) -> tuple[list[Array], npt.DTypeLike]:
    """The named arguments in float64, their lengths checked, and the dtype of the result."""
    given = [np.asarray(value) for _, value, _ in arguments]
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


def _groups(
    coords: Sequence[Coordinates],
) -> Iterator[tuple[_Group, list[Coordinates], npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """For each group that has joints: the group, its k joints, and their indices (k, ·) into q and into v."""
    for group in (_LINE, _SO3, _SE2, _SE3):
        joints = [joint for joint in coords if joint.type in group.types]
        if joints:
            q = np.array([range(j.q.start, j.q.stop) for j in joints], dtype=np.intp)
            v = np.array([range(j.v.start, j.v.stop) for j in joints], dtype=np.intp)
            yield group, joints, q, v


def _interval(joint: Coordinates) -> tuple[float, float]:
    """Where random coordinates of a joint lie."""
    half = 1.0 if joint.type is JointType.PRISMATIC else math.pi
    if math.isfinite(joint.lower):
        return joint.lower, joint.upper if math.isfinite(joint.upper) else joint.lower + 2 * half
    return (joint.upper - 2 * half, joint.upper) if math.isfinite(joint.upper) else (-half, half)


# ---- functions of an angle that stay accurate where it is tiny

_SMALL = 0.25  # rad: below, the truncated series are exact to rounding


def _sinc(x: Array) -> Array:
    """sin(x) / x."""
    zero = x == 0
    return np.where(zero, 1.0, np.sin(x) / np.where(zero, 1.0, x))


def _cubic_remainder(angle: Array) -> Array:
    """(x - sin x) / x³."""
    x2 = np.minimum(angle, _SMALL) ** 2
    series = (1 - x2 / 20 * (1 - x2 / 42 * (1 - x2 / 72 * (1 - x2 / 110)))) / 6
    x = np.maximum(angle, _SMALL)
    return np.where(angle < _SMALL, series, (x - np.sin(x)) / x**3)


def _cotangent_remainder(angle: Array) -> Array:
    """(1 - h cot h) / x² with h = x/2, for 0 ≤ x ≤ π."""
    h2 = np.minimum(angle / 2, _SMALL / 2) ** 2
    series = (1 / 3 + h2 * (1 / 45 + h2 * (2 / 945 + h2 * (1 / 4725 + h2 * (2 / 93555))))) / 4
    x = np.maximum(angle, _SMALL)
    return np.where(angle < _SMALL, series, (1 - np.cos(x / 2) / _sinc(x / 2)) / x**2)


# ---- rotations: unit quaternions (x, y, z, w)


def _norm(x: Array) -> Array:
    """Length along the last axis, which is kept. Scaled, so that tiny vectors do not underflow."""
    largest: Array = np.max(np.abs(x), axis=-1, keepdims=True)
    unit = np.where(largest == 0, 1.0, largest)
    squares: Array = np.sum((x / unit) ** 2, axis=-1, keepdims=True)
    return largest * np.sqrt(squares)


def _normalized(x: Array) -> Array:
    return x / _norm(x)


def _product(a: Array, b: Array) -> Array:
    """Hamilton product of quaternions (..., 4)."""
    u, s, v, t = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    return np.concatenate([s * v + t * u + np.cross(u, v), s * t - np.sum(u * v, -1, keepdims=True)], axis=-1)


def _conjugate(q: Array) -> Array:
    return np.concatenate([-q[..., :3], q[..., 3:]], axis=-1)


def _rotated(q: Array, x: Array) -> Array:
    """The vectors x (..., 3) turned by unit quaternions q (..., 4)."""
    u, t = q[..., :3], 2 * np.cross(q[..., :3], x)
    return x + q[..., 3:] * t + np.cross(u, t)


def _so3_integrate(q: Array, w: Array) -> Array:
    half = _norm(w) / 2
    return _normalized(_product(_normalized(q), np.concatenate([w / 2 * _sinc(half), np.cos(half)], axis=-1)))


def _so3_difference(q0: Array, q1: Array) -> Array:
    q = _product(_conjugate(_normalized(q0)), _normalized(q1))
    q = np.where(q[..., 3:] < 0, -q, q)
    sine = _norm(q[..., :3])
    half = np.arctan2(sine, q[..., 3:])
    return 2 * q[..., :3] / _sinc(half)


def _so3_sample(rng: np.random.Generator, low: Array, high: Array, shape: tuple[int, ...]) -> Array:
    return _normalized(rng.standard_normal((*shape, 4)))


# ---- rigid motions in space and in the plane; the line


def _se3_integrate(q: Array, v: Array) -> Array:
    linear, w = v[..., :3], v[..., 3:]
    angle = _norm(w)
    once = np.cross(w, linear)
    step = linear + _sinc(angle / 2) ** 2 / 2 * once + _cubic_remainder(angle) * np.cross(w, once)
    position = q[..., :3] + _rotated(_normalized(q[..., 3:]), step)
    turned = _so3_integrate(q[..., 3:], w)
    turned = np.where(np.sum(turned * q[..., 3:], -1, keepdims=True) < 0, -turned, turned)
    return np.concatenate([position, turned], axis=-1)


def _se3_difference(q0: Array, q1: Array) -> Array:
    w = _so3_difference(q0[..., 3:], q1[..., 3:])
    step = _rotated(_conjugate(_normalized(q0[..., 3:])), q1[..., :3] - q0[..., :3])
    once = np.cross(w, step)
    linear = step - once / 2 + _cotangent_remainder(_norm(w)) * np.cross(w, once)
    return np.concatenate([linear, w], axis=-1)


def _se3_sample(rng: np.random.Generator, low: Array, high: Array, shape: tuple[int, ...]) -> Array:
    return np.concatenate([rng.uniform(-1, 1, (*shape, 3)), _so3_sample(rng, low, high, shape)], axis=-1)


def _turned(turn: Array, x: Array) -> Array:
    """Product of complex numbers (..., 2), given as (real, imaginary): x turned by (cos, sin)."""
    c, s = turn[..., 0], turn[..., 1]
    return np.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1]], axis=-1)


def _se2_integrate(q: Array, v: Array) -> Array:
    turn, angle = _normalized(q[..., 2:]), v[..., 2]
    arc = np.stack([_sinc(angle), np.sin(angle / 2) * _sinc(angle / 2)], axis=-1)
    position = q[..., :2] + _turned(turn, _turned(arc, v[..., :2]))
    direction = _turned(turn, np.stack([np.cos(angle), np.sin(angle)], axis=-1))
    return np.concatenate([position, _normalized(direction)], axis=-1)


def _se2_difference(q0: Array, q1: Array) -> Array:
    back = _normalized(q0[..., 2:]) * np.array([1.0, -1.0])
    turn = _turned(back, q1[..., 2:])
    half = np.arctan2(turn[..., 1], turn[..., 0]) / 2
    arc = np.stack([np.cos(half) / _sinc(half), -half], axis=-1)
    linear = _turned(arc, _turned(back, q1[..., :2] - q0[..., :2]))
    return np.concatenate([linear, 2 * half[..., None]], axis=-1)


def _se2_sample(rng: np.random.Generator, low: Array, high: Array, shape: tuple[int, ...]) -> Array:
    angle = rng.uniform(-math.pi, math.pi, shape)
    return np.concatenate([rng.uniform(-1, 1, (*shape, 2)), np.stack([np.cos(angle), np.sin(angle)], -1)], axis=-1)


def _line_sample(rng: np.random.Generator, low: Array, high: Array, shape: tuple[int, ...]) -> Array:
    return rng.uniform(low, high, shape)[..., None]


class _Group(NamedTuple):
    """A Lie group: its joints, identity, samples (rng, lower, upper, shape), q · exp(v) and log(q0⁻¹ · q1)."""

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
