"""Rotations and rigid motions: exponentials, logarithms, their Jacobians, and changes of representation.

The functions are compiled functions like those of a robot: leading axes broadcast, `out=` takes the result, and they have
derivatives. A motion is a homogeneous matrix (4, 4), a rotation a matrix (3, 3), a velocity (linear, angular) in the axes of
the frame that moves (6), and a quaternion (x, y, z, w), as everywhere in this package and in Pinocchio. Names that end in 3 are
of rotations alone. Results are exact to rounding at angles from 0 to π. NaN in one state of a batch stays there.

    T exp(v)                       where a frame at T is, after a unit of time at the velocity v
    exp(v + dv) = exp(v) exp(Jexp(v) dv)
    log(T exp(dv)) = log(T) + Jlog(T) dv

Logarithms turn by at most π. By exactly π there are two, of which one is returned, with its Jlog.

Derivatives by motions, rotations and quaternions, and derivatives of them, are with respect to velocities in the axes that
move: `exp.derivative()` computes `Jexp`, and `log.derivative()` computes `Jlog`.

Functions that compute a logarithm, angles or a quaternion from a matrix raise ValueError if the matrix is not a rotation by
more than 2e-6. `inverse`, `adjoint` and `compose` do not check matrices; neither do derivatives and functions of other
libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from .algorithms import frames, rigid_motions
from .array_types import Array
from .engine.function import CompiledFunction
from .engine.guarded import CheckedProgram
from .engine.program import Input, KernelProgram, Output, Program
from .spatial import Mat3, Vec3

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

LIMIT = (2e-6) ** 2
"""Least sum of squares of what a matrix differs from a rotation by, from which functions refuse it."""

VELOCITY, VECTOR, ANGLES = Input("v", (6,)), Input("w", (3,)), Input("rpy", (3,))


def _manifold(
    name: str,
    shape: tuple[int, ...],
    tangent: int,
    kernels: tuple[Callable[..., None], Callable[..., None]],
    count: bool = False,
) -> tuple[Input, Output]:
    """Return an argument and a result on a manifold, for kernels of rates and velocities; `count` adds an axis to results."""
    point, more = Input(name, shape), (1,) if count else ()
    rate = KernelProgram("rate", kernels[0], (), (point, Input("velocity", (tangent,))), (Output("rate", shape),))
    moving = Input(name, more + shape), Input("rate", more + shape)
    along = KernelProgram("velocity", kernels[1], (), moving, (Output("velocity", (tangent,), (*more, tangent)),))
    return point._replace(rate=rate), Output(name, shape, along=along)


MOTION, TO_MOTION = _manifold("T", (4, 4), 6, (rigid_motions.motion_rate, frames.placement_tangent), True)
ROTATION, TO_ROTATION = _manifold("R", (3, 3), 3, (rigid_motions.rotation_rate, rigid_motions.rotation_velocity))
QUATERNION, TO_QUATERNION = _manifold("q", (4,), 3, (rigid_motions.quaternion_rate, rigid_motions.quaternion_velocity))
COORDINATES, TO_COORDINATES = _manifold("x", (7,), 6, (rigid_motions.coordinates_rate, rigid_motions.coordinates_velocity))
A, B = MOTION._replace(name="A"), MOTION._replace(name="B")


def require_rigid(function: str, name: str, T: Array) -> None:
    """Raise ValueError for arrays (..., 4, 4) that are not all rigid motions."""
    x = np.moveaxis(np.asarray(T, dtype=np.float64), (-2, -1), (0, 1))
    _require(function, name, rigid_motions.last_row_error(x), "must have 0, 0, 0, 1 as its last row")
    _require_rotation(function, name, x)


def _require_rotation(function: str, name: str, x: Array) -> None:
    """Raise ValueError for arrays (3, 3, ...), or more rows and columns, that are not all rotations."""
    R = Mat3(*(Vec3(*x[i, :3]) for i in range(3)))
    what = "is not a rotation: its rows must be perpendicular, of length 1 and right-handed"
    _require(function, name, rigid_motions.rotation_error(R), what)


def _require(function: str, name: str, error: npt.ArrayLike, what: str) -> None:
    wrong = np.asarray(error) >= LIMIT
    if wrong.any():
        at = str([*map(int, np.argwhere(wrong)[0])]) if wrong.ndim else ""
        raise ValueError(f"{function}: {name}{at} {what}")


def _refuse(function: str, **arguments: Array) -> NoReturn:
    """Raise ValueError that says which argument is invalid."""
    for name, x in arguments.items():
        if x.shape[-2:] == (4, 4):
            require_rigid(function, name, x)
        elif x.shape[-2:] == (3, 3):
            _require_rotation(function, name, np.moveaxis(x, (-2, -1), (0, 1)))
    raise ValueError(f"{function}: the arguments differ from rigid motions by rounding errors of their sum")


def _program(
    name: str, kernel: Callable[..., None], inputs: Input | tuple[Input, ...], output: Output, doc: str, error: Any = None
) -> Program:
    """Return the program of a function; `error` is the kernel that measures by how much its arguments are invalid."""
    every = (inputs,) if isinstance(inputs, Input) else inputs
    program = KernelProgram(name, kernel, (), every, (output,), doc)
    if error is None:
        return program
    matrices = tuple(x for x in every if len(x.shape) == 2)
    measure = KernelProgram(f"{name}_error", error, (), matrices, (Output("error", ()),))
    return CheckedProgram(program, measure, LIMIT, _refuse)


def _function(*parts: Any) -> CompiledFunction:
    return CompiledFunction(_program(*parts))


# --- the group

exp = _function(
    "exp",
    rigid_motions.exponential,
    VELOCITY,
    TO_MOTION,
    "The motion that a velocity v, held for a unit of time, leads to.",
)
log = _function(
    "log",
    rigid_motions.logarithm,
    MOTION,
    Output("v", (6,)),
    "The velocity whose exponential is the motion T, with an angle of at most π.",
    rigid_motions.check_motion,
)
Jexp = _function(
    "Jexp", rigid_motions.exponential_jacobian, VELOCITY, Output("J", (6, 6)), "The right Jacobian of the exponential at v."
)
Jlog = _function(
    "Jlog",
    rigid_motions.logarithm_jacobian,
    MOTION,
    Output("J", (6, 6)),
    "The Jacobian of the logarithm at T, the inverse of `Jexp` at log(T).",
    rigid_motions.check_motion,
)
exp3 = _function("exp3", rigid_motions.rotation_exponential, VECTOR, TO_ROTATION, "The rotation about w by its length [rad].")
log3 = _function(
    "log3",
    rigid_motions.rotation_logarithm,
    ROTATION,
    Output("w", (3,)),
    "The vector about which the rotation R turns, by its length of at most π [rad].",
    rigid_motions.check_rotation,
)
Jexp3 = _function(
    "Jexp3", rigid_motions.rotation_exponential_jacobian, VECTOR, Output("J", (3, 3)), "The right Jacobian of `exp3` at w."
)
Jlog3 = _function(
    "Jlog3",
    rigid_motions.rotation_logarithm_jacobian,
    ROTATION,
    Output("J", (3, 3)),
    "The Jacobian of `log3` at R, the inverse of `Jexp3` at log3(R).",
    rigid_motions.check_rotation,
)
inverse = _function(
    "inverse", rigid_motions.inverse, MOTION, TO_MOTION, "The inverse of a motion T, by transposing its rotation."
)
adjoint = _function(
    "adjoint",
    rigid_motions.adjoint,
    MOTION,
    Output("adjoint", (6, 6)),
    """The matrix that takes a velocity in the axes of a frame at T to those that T is given in.

    T exp(v) T⁻¹ = exp(adjoint(T) v): Pinocchio's action matrix.""",
)


class Composition(CompiledFunction[Array]):
    """The product of motions from left to right; for other numbers than two of motions, the product of products."""

    def __call__(self, *motions: Any, **named: Any) -> Array:
        if len(motions) > 2:
            *first, last = motions
            left = self(*first)
            return self(left, last, **named)
        if len(motions) == 1 and not {"A", "B"} & named.keys():
            return self(*motions, np.eye(4, dtype=getattr(motions[0], "dtype", None)), **named)
        return super().__call__(*motions, **named)

    def __reduce__(self) -> tuple[object, ...]:
        return _composition, ()


def _composition() -> CompiledFunction:
    return compose


compose: CompiledFunction = Composition(
    _program(
        "compose",
        rigid_motions.composition,
        (A, B),
        TO_MOTION,
        "The product of motions A and B; of more motions, compose(A, B, C, ...), from left to right.",
    )
)
interpolate = _function(
    "interpolate",
    rigid_motions.interpolation,
    (A, B, Input("t", ())),
    TO_MOTION,
    "A exp(t log(A⁻¹ B)): at the part t of the way from A to B, at a constant velocity.",
    rigid_motions.check_motions,
)

# --- representations

homogeneous = _function(
    "homogeneous",
    rigid_motions.homogeneous,
    (Input("R", (3, 3)), Input("p", (3,))),
    Output("T", (4, 4)),
    "The motion with the rotation R, as it is, and the translation p.",
)
matrix_from_quaternion = _function(
    "matrix_from_quaternion",
    rigid_motions.matrix_of_quaternion,
    QUATERNION,
    TO_ROTATION,
    "The rotation of a quaternion q of any length but zero.",
)
quaternion_from_matrix = _function(
    "quaternion_from_matrix",
    rigid_motions.quaternion_of_rotation,
    ROTATION,
    TO_QUATERNION,
    "The unit quaternion of a rotation R, of the two the one with w not negative.",
    rigid_motions.check_rotation,
)
matrix_from_rpy = _function(
    "matrix_from_rpy",
    rigid_motions.matrix_of_angles,
    ANGLES,
    TO_ROTATION,
    "The rotation by roll, pitch, yaw [rad], turned about the fixed axes x, y and z in turn.",
)
rpy_from_matrix = _function(
    "rpy_from_matrix",
    rigid_motions.angles_of_matrix,
    ROTATION,
    Output("rpy", (3,)),
    """Roll, pitch and yaw [rad] of a rotation R, the pitch in ±π/2 and the others in ±π.

    Where the pitch is ±π/2, roll and yaw turn about one axis: only their sum or difference means something, and together they
    give R to rounding.""",
    rigid_motions.check_rotation,
)
quaternion_from_rpy = _function(
    "quaternion_from_rpy",
    rigid_motions.quaternion_of_angles,
    ANGLES,
    TO_QUATERNION,
    "The unit quaternion of roll, pitch and yaw [rad], of the two the one with w not negative.",
)
rpy_from_quaternion = _function(
    "rpy_from_quaternion",
    rigid_motions.angles_of_quaternion,
    QUATERNION,
    Output("rpy", (3,)),
    "Roll, pitch and yaw [rad], as by `rpy_from_matrix`, of a quaternion q of any length but zero.",
)
homogeneous_from_xyzquat = _function(
    "homogeneous_from_xyzquat",
    rigid_motions.motion_of_coordinates,
    COORDINATES,
    TO_MOTION,
    "The motion of x, y, z, qx, qy, qz, qw, a free-flyer's configuration; the quaternion has any length but zero.",
)
xyzquat_from_homogeneous = _function(
    "xyzquat_from_homogeneous",
    rigid_motions.coordinates_of_motion,
    MOTION,
    TO_COORDINATES,
    "x, y, z, qx, qy, qz, qw of a motion T, with qw not negative.",
    rigid_motions.check_motion,
)
