"""Rotations and rigid motions as arrays: exponentials, logarithms, their Jacobians, and changes of representation.

Functions broadcast over leading axes. A motion is a homogeneous matrix (4, 4), a rotation a matrix (3, 3), a velocity (linear,
angular) in the axes of the frame that moves (6), and a quaternion (x, y, z, w), as everywhere in this package and in Pinocchio.
Names that end in 3 are of rotations alone. Results are float32 if every array is, else float64; they are computed in float64,
to rounding, at angles from 0 to π. NaN in one of a batch stays there. They are NumPy's operations, made for arrays: of a large
one an element takes less than a microsecond, and a call of a single one some tens.

    T exp(v)                       where a frame at T is, after a unit of time at the velocity v
    exp(v + dv) = exp(v) exp(Jexp(v) dv)
    log(T exp(dv)) = log(T) + Jlog(T) dv

Logarithms turn by at most π. By exactly π there are two, of which one is returned, with its Jlog.

All raise ValueError for arguments of a wrong shape or that are no real numbers, and those that read a rotation from a matrix,
that is logarithms, Jlog, interpolate and the `..._from_matrix` and `..._from_homogeneous`, for a matrix that is none, by more
than 1e-6. `inverse`, `adjoint` and `compose` look at shapes only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce, wraps
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .array_types import Array
from .spatial import Quaternion, Vec3, exp_se3, exp_so3, log_se3, log_so3
from .spatial.lie import quaternion_of_matrix
from .spatial.lie_jacobians import AdjointFunction, inverse_right_jacobian, right_jacobian

__all__ = [
    "Jexp",
    "Jexp3",
    "Jlog",
    "Jlog3",
    "adjoint",
    "compose",
    "exp",
    "exp3",
    "homogeneous",
    "homogeneous_from_xyzquat",
    "interpolate",
    "inverse",
    "log",
    "log3",
    "matrix_from_quaternion",
    "matrix_from_rpy",
    "quaternion_from_matrix",
    "quaternion_from_rpy",
    "rpy_from_matrix",
    "rpy_from_quaternion",
    "xyzquat_from_homogeneous",
]

F = TypeVar("F", bound=Callable[..., Array])

ROTATION = 1e-6  # what R Rᵀ may differ from the identity


def _of_arrays(function: F) -> F:
    """float32 for float32, and no warnings of NaN and infinities: they are results."""

    @wraps(function)
    def call(*args: Any, **named: Any) -> Array:
        arrays = [x for x in (*args, *named.values()) if not isinstance(x, (int, float))]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            result = function(*args, **named)
        single = all(getattr(x, "dtype", None) == np.float32 for x in arrays)
        return result.astype(np.float32) if single else result

    return call  # type: ignore[return-value]


# --- the group


@_of_arrays
def exp(v: npt.ArrayLike) -> Array:
    """The motion (..., 4, 4) that a velocity v (..., 6), held for a unit of time, leads to."""
    x = _given("exp", "v", v, (6,))
    p, q = exp_se3(_vector(x), _vector(x[..., 3:]))
    return _homogeneous(_matrix(q), _stacked(*p))


@_of_arrays
def log(T: npt.ArrayLike) -> Array:
    """The velocity (..., 6) whose exponential is the motion T (..., 4, 4), with an angle of at most π."""
    l, w = _log(rigid("log", "T", T))
    return _stacked(*l, *w)


@_of_arrays
def Jexp(v: npt.ArrayLike) -> Array:
    """The right Jacobian (..., 6, 6) of the exponential at v (..., 6)."""
    x = _given("Jexp", "v", v, (6,))
    return _of_motion(right_jacobian, _vector(x), _vector(x[..., 3:]))


@_of_arrays
def Jlog(T: npt.ArrayLike) -> Array:
    """The Jacobian (..., 6, 6) of the logarithm at T (..., 4, 4), the inverse of `Jexp` at log(T)."""
    return _of_motion(inverse_right_jacobian, *_log(rigid("Jlog", "T", T)))


@_of_arrays
def exp3(w: npt.ArrayLike) -> Array:
    """The rotation (..., 3, 3) about w (..., 3) by its length [rad]."""
    return _matrix(exp_so3(_vector(_given("exp3", "w", w, (3,)))))


@_of_arrays
def log3(R: npt.ArrayLike) -> Array:
    """The vector (..., 3) about which the rotation R (..., 3, 3) turns, by its length of at most π [rad]."""
    return _stacked(*log_so3(_quaternion(_rotation("log3", "R", R))))


@_of_arrays
def Jexp3(w: npt.ArrayLike) -> Array:
    """The right Jacobian (..., 3, 3) of `exp3` at w (..., 3)."""
    return _rows(right_jacobian.of_turn(_vector(_given("Jexp3", "w", w, (3,)))))


@_of_arrays
def Jlog3(R: npt.ArrayLike) -> Array:
    """The Jacobian (..., 3, 3) of `log3` at R (..., 3, 3), the inverse of `Jexp3` at log3(R)."""
    return _rows(inverse_right_jacobian.of_turn(log_so3(_quaternion(_rotation("Jlog3", "R", R)))))


@_of_arrays
def inverse(T: npt.ArrayLike) -> Array:
    """The inverse (..., 4, 4) of a motion T (..., 4, 4), by transposing its rotation."""
    return _homogeneous_inverse(_given("inverse", "T", T, (4, 4)))


@_of_arrays
def compose(*motions: npt.ArrayLike) -> Array:
    """The product (..., 4, 4) of motions (..., 4, 4), one at least, from left to right."""
    if not motions:
        raise ValueError("compose needs one motion at least; got none")
    every = [_given("compose", f"motion {k}", T, (4, 4)) for k, T in enumerate(motions)]
    _require_broadcasting("compose", every)
    return reduce(np.matmul, every[1:], every[0].copy())


@_of_arrays
def adjoint(T: npt.ArrayLike) -> Array:
    """The matrix (..., 6, 6) that takes a velocity in the axes of a frame at T (..., 4, 4) to those that T is given in.

    T exp(v) T⁻¹ = exp(adjoint(T) v): Pinocchio's action matrix.
    """
    x = _given("adjoint", "T", T, (4, 4))
    p = _vector(x[..., :3, 3])
    A = np.zeros((*x.shape[:-2], 6, 6))
    A[..., :3, :3] = A[..., 3:, 3:] = x[..., :3, :3]
    for j in range(3):
        moment = p.cross(_vector(x[..., :3, j]))
        for i in range(3):
            A[..., i, 3 + j] = moment[i]
    return A


@_of_arrays
def interpolate(A: npt.ArrayLike, B: npt.ArrayLike, t: npt.ArrayLike) -> Array:
    """A exp(t log(A⁻¹ B)) (..., 4, 4): at the part t (...) of the way from A to B (..., 4, 4), at a constant velocity."""
    a, b = rigid("interpolate", "A", A), rigid("interpolate", "B", B)
    part = _given("interpolate", "t", t, ())
    _require_broadcasting("interpolate", [a, b, part[..., None, None]])
    l, w = _log(_homogeneous_inverse(a) @ b)
    p, q = exp_se3(_scaled(part, l), _scaled(part, w))
    return a @ _homogeneous(_matrix(q), _stacked(*p))


# --- representations


@_of_arrays
def homogeneous(R: npt.ArrayLike, p: npt.ArrayLike) -> Array:
    """The motion (..., 4, 4) with the rotation R (..., 3, 3), as it is, and the translation p (..., 3)."""
    rotation, translation = _given("homogeneous", "R", R, (3, 3)), _given("homogeneous", "p", p, (3,))
    _require_broadcasting("homogeneous", [rotation, translation[..., None]])
    return _homogeneous(rotation, translation)


@_of_arrays
def matrix_from_quaternion(q: npt.ArrayLike) -> Array:
    """The rotation (..., 3, 3) of a quaternion q (..., 4) of any length but zero."""
    x = _given("matrix_from_quaternion", "q", q, (4,))
    return _matrix(_unit(x))


@_of_arrays
def quaternion_from_matrix(R: npt.ArrayLike) -> Array:
    """The unit quaternion (..., 4) of a rotation R (..., 3, 3), of the two the one with w not negative."""
    q = _quaternion(_rotation("quaternion_from_matrix", "R", R))
    return _stacked(*q.u, q.s)


@_of_arrays
def matrix_from_rpy(rpy: npt.ArrayLike) -> Array:
    """The rotation (..., 3, 3) by roll, pitch, yaw (..., 3) [rad], turned about the fixed axes x, y and z in turn."""
    return _matrix(_from_rpy(_given("matrix_from_rpy", "rpy", rpy, (3,))))


@_of_arrays
def rpy_from_matrix(R: npt.ArrayLike) -> Array:
    """Roll, pitch and yaw (..., 3) [rad] of a rotation R (..., 3, 3), the pitch in ±π/2 and the others in ±π.

    Where the pitch is ±π/2, roll and yaw turn about one axis: only their sum or difference means something, and together they
    give R to rounding.
    """
    return _rpy(_rotation("rpy_from_matrix", "R", R))


@_of_arrays
def quaternion_from_rpy(rpy: npt.ArrayLike) -> Array:
    """The unit quaternion (..., 4) of roll, pitch and yaw (..., 3) [rad], of the two the one with w not negative."""
    q = _from_rpy(_given("quaternion_from_rpy", "rpy", rpy, (3,))).upright()
    return _stacked(*q.u, q.s)


@_of_arrays
def rpy_from_quaternion(q: npt.ArrayLike) -> Array:
    """Roll, pitch and yaw (..., 3) [rad], as by `rpy_from_matrix`, of a quaternion q (..., 4) of any length but zero."""
    return _rpy(_matrix(_unit(_given("rpy_from_quaternion", "q", q, (4,)))))


@_of_arrays
def homogeneous_from_xyzquat(x: npt.ArrayLike) -> Array:
    """The motion (..., 4, 4) of (x, y, z, qx, qy, qz, qw) (..., 7), a free-flyer's configuration; any length but zero of q."""
    given = _given("homogeneous_from_xyzquat", "x", x, (7,))
    return _homogeneous(_matrix(_unit(given[..., 3:])), given[..., :3])


@_of_arrays
def xyzquat_from_homogeneous(T: npt.ArrayLike) -> Array:
    """(x, y, z, qx, qy, qz, qw) (..., 7) of a motion T (..., 4, 4), with qw not negative."""
    x = rigid("xyzquat_from_homogeneous", "T", T)
    q = _quaternion(x[..., :3, :3])
    return _stacked(*_vector(x[..., :3, 3]), *q.u, q.s)


# --- arguments


def _given(function: str, name: str, x: npt.ArrayLike, core: tuple[int, ...]) -> Array:
    """An argument in float64."""
    expected = ", ".join(["...", *map(str, core)])
    try:
        array = np.asarray(x)
    except ValueError:
        raise ValueError(f"{function}: {name} is not an array of numbers; give one of shape ({expected})") from None
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{function}: {name} must hold real numbers; got dtype {array.dtype}")
    if array.shape[array.ndim - len(core) :] != core or array.ndim < len(core):
        raise ValueError(f"{function}: {name} must have shape ({expected}); got {array.shape}")
    return array.astype(np.float64, copy=False)


def _require_broadcasting(function: str, arrays: Sequence[Array]) -> None:
    leading = [x.shape[: x.ndim - 2] for x in arrays]
    try:
        np.broadcast_shapes(*leading)
    except ValueError:
        raise ValueError(f"{function}: leading axes do not broadcast: {' and '.join(map(str, leading))}") from None


def _rotation(function: str, name: str, R: npt.ArrayLike) -> Array:
    return _checked(function, name, _given(function, name, R, (3, 3)))


def rigid(function: str, name: str, T: npt.ArrayLike) -> Array:
    """Return motions (..., 4, 4); errors begin with the names of the function and its argument."""
    x = _given(function, name, T, (4, 4))
    last = _columns(x[..., 3, :])
    _refuse(function, name, (*last[:3], last[3] - 1.0), False, "must have 0, 0, 0, 1 as its last row")
    _checked(function, name, x[..., :3, :3])
    return x


def _checked(function: str, name: str, R: Array) -> Array:
    """A rotation; raises ValueError for a matrix that is none."""
    x, y, z = (_vector(R[..., k, :]) for k in range(3))
    products = x.dot(x) - 1.0, y.dot(y) - 1.0, z.dot(z) - 1.0, x.dot(y), y.dot(z), z.dot(x)
    mirrored = x.dot(y.cross(z)) < 0.0
    what = "is not a rotation: its rows must be perpendicular, of length 1 and right-handed"
    _refuse(function, name, products, mirrored, what)
    return R


def _refuse(function: str, name: str, zeros: Sequence[Any], wrong: Any, what: str) -> None:
    """Raise ValueError where one of the numbers is not zero, or else what is wrong."""
    for x in zeros:
        wrong = wrong | (abs(x) > ROTATION)
    if wrong if isinstance(wrong, bool) else wrong.any():
        at = str([*map(int, np.argwhere(wrong)[0])]) if np.ndim(wrong) else ""
        raise ValueError(f"{function}: {name}{at} {what}")


# --- vectors and quaternions, whose components are floats, or arrays with the leading axes


def _columns(x: Array) -> Any:
    return x.tolist() if x.ndim == 1 else [x[..., k] for k in range(x.shape[-1])]


def _vector(x: Array) -> Vec3:
    return Vec3(*_columns(x[..., :3]))


def _unit(x: Array) -> Quaternion:
    """The unit quaternion along (x, y, z, w); NaN for zero."""
    if x.ndim == 1:
        x = x / np.linalg.norm(x)
        return Quaternion(_vector(x), float(x[3]))
    return Quaternion(_vector(x), x[..., 3]).normalized()


def _scaled(t: Any, v: Vec3) -> Vec3:
    return Vec3(*(t * x for x in v))


def _stacked(*parts: Any) -> Array:
    return np.array(parts, dtype=np.float64) if np.ndim(parts[0]) == 0 else np.stack(parts, axis=-1)


def _rows(rows: Any) -> Array:
    """A matrix, given by rows."""
    if np.ndim(rows[0][0]) == 0:
        return np.array(rows, dtype=np.float64)
    M = np.empty((*rows[0][0].shape, 3, 3))
    for i in range(3):
        for j in range(3):
            M[..., i, j] = rows[i][j]
    return M


def _of_motion(f: AdjointFunction, l: Vec3, w: Vec3) -> Array:
    turned, moved = map(_rows, f.of_motion(l, w))
    J = np.zeros((*turned.shape[:-2], 6, 6))
    J[..., :3, :3] = J[..., 3:, 3:] = turned
    J[..., :3, 3:] = moved
    return J


def _matrix(q: Quaternion) -> Array:
    return _rows(q.matrix())


def _homogeneous(R: Array, p: Array) -> Array:
    T = np.zeros((*np.broadcast_shapes(R.shape[:-2], p.shape[:-1]), 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = R, p, 1.0
    return T


def _homogeneous_inverse(T: Array) -> Array:
    R = np.swapaxes(T[..., :3, :3], -1, -2)
    return _homogeneous(R, -(R @ T[..., :3, 3:])[..., 0])


def _quaternion(R: Array) -> Quaternion:
    return quaternion_of_matrix(R.tolist() if R.ndim == 2 else np.moveaxis(R, (-2, -1), (0, 1)))


def _log(T: Array) -> tuple[Vec3, Vec3]:
    return log_se3(_vector(T[..., :3, 3]), _quaternion(T[..., :3, :3]))


def _from_rpy(rpy: Array) -> Quaternion:
    roll, pitch, yaw = (exp_so3(Vec3(*(x if k == i else 0.0 * x for i in range(3)))) for k, x in enumerate(_vector(rpy)))
    return yaw.product(pitch).product(roll)


def _rpy(R: Array) -> Array:
    """Return angles: with the yaw known, roll comes from the rows that yaw rotates back, which do not vanish at a pitch
    of ±π/2.
    """
    yaw = np.arctan2(R[..., 1, 0], R[..., 0, 0])
    pitch = np.arctan2(-R[..., 2, 0], np.hypot(R[..., 0, 0], R[..., 1, 0]))
    s, c = np.sin(yaw), np.cos(yaw)
    roll = np.arctan2(s * R[..., 0, 2] - c * R[..., 1, 2], c * R[..., 1, 1] - s * R[..., 0, 1])
    return _stacked(roll, pitch, yaw)
