"""MuJoCo's compiler, and conversion of its vectors, quaternions and flags to values of this package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.polyutils import trimseq

from ....array_types import Array
from ....extras import without_warnings
from ....spatial.vectors import rotation_from_quaternion
from ...contact_rules import Softness
from ...types import Matrix, Pose, as_vector
from .mujoco_types import MjModel, MjSpec, Mujoco


@without_warnings
def compiled(spec: MjSpec) -> MjModel:
    """Return MuJoCo's compiled model. The content that it warns about is checked by this package, with names."""
    return spec.compile()


def snap(x: float) -> float:
    """Return the value with 0 and ±1 exact where rounding changed the last digits: quaternions never give them exactly."""
    nearest = float(round(x))
    return nearest if abs(x - nearest) < 1e-14 else x


def as_rotation(quaternion: Iterable[float]) -> Matrix:
    """Return the rotation matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = (float(value) for value in quaternion)
    a, b, c = ((snap(row.x), snap(row.y), snap(row.z)) for row in rotation_from_quaternion(x, y, z, w))
    return (a, b, c)


def as_pose(position: Iterable[float], quaternion: Iterable[float]) -> Pose:
    """Return the pose with an origin and a unit quaternion (w, x, y, z)."""
    return Pose(as_rotation(quaternion), as_vector(position))


def first_controls(model: MjModel) -> Array:
    """Return, for each actuator, the number of its first control, which indexes `ctrl`, `ctrlrange` and `ctrllimited`.

    From MuJoCo 4 on, an actuator may have several controls. Before, each has one, and MuJoCo has no field for it.
    """
    return getattr(model, "actuator_ctrladr", np.arange(model.nu))


def first_outputs(model: MjModel) -> Array:
    """Return, for each actuator, the number of its first output, which indexes gears and ranges of lengths."""
    return getattr(model, "actuator_outadr", np.arange(len(model.actuator_trntype)))


def gears_of(model: MjModel) -> Any:
    """Return the gears (actuators, 6) of the first output of each actuator."""
    return model.actuator_gear[first_outputs(model)]


def softness_of(solref: Iterable[float], solimp: Iterable[float], solmix: float = 1.0) -> Softness:
    """Return MuJoCo's parameters unchanged."""
    (a, b), (c, d, e, f, g) = (map(float, x) for x in (solref, solimp))
    return Softness((a, b), (c, d, e, f, g), float(solmix))


def within(ends: Iterable[float], margin: float) -> tuple[float, float]:
    """Return limits that begin by a margin before their range ends; at least a thousandth of the range remains."""
    lower, upper = map(float, ends)
    inside = min(float(margin), max(0.4995 * (upper - lower), 0.0))
    return lower + inside, upper - inside


CONSTRAINTS = ("CONTACT", "EQUALITY", "FRICTIONLOSS", "LIMIT")  # the constraints that the flag `constraint` disables together


def disabled(mujoco: Mujoco, option: Any, what: str) -> bool:
    """Return whether the <flag> of an <option> disables this; flags that MuJoCo's version lacks are enabled."""
    names = (what, "CONSTRAINT") if what in CONSTRAINTS else (what,)
    return any(option.disableflags & int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}", 0)) for name in names)


def composed(outer: Any, inner: Any) -> Polynomial:
    """Return outer(inner(x)), by Horner's scheme in a fixed order (NumPy multiplies by its BLAS), without leading zeros."""
    result = np.zeros(1)
    for coefficient in reversed(outer.coef):
        product = np.zeros(len(result) + len(inner.coef) - 1)
        for k, c in enumerate(inner.coef):
            product[k : k + len(result)] += c * result
        product[0] += coefficient
        result = trimseq(product)
    return Polynomial(result)
