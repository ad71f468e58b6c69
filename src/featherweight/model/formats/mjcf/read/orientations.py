"""Orientations and axes of MJCF files, before compilation: they become unit quaternions and unit vectors.

MuJoCo takes these unchanged. Its results for angles and for other lengths depend on the system's library and on the processor.
Orientations by `xyaxes`, `zaxis` and `fromto`, and those of nested <frame> elements, are left to MuJoCo.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from .....spatial import Quaternion, Vec3
from .....spatial.elementary import cos, norm, sin
from ...robot_numbers import right_angles
from ..mujoco_types import MjSpec, Mujoco

ROOT = math.sqrt(0.5)
EIGHTHS = ((1.0, 0.0), (ROOT, ROOT), (0.0, 1.0), (-ROOT, ROOT), (-1.0, 0.0), (-ROOT, -ROOT), (0.0, -1.0), (ROOT, -ROOT))
"""Cosine and sine of multiples of 45°."""


def make_orientations_plain(mujoco: Mujoco, spec: MjSpec) -> None:
    """Replace orientations by unit quaternions, with nearly right angles made exact, and joints' axes by unit vectors."""
    kinds = mujoco.mjtOrientation
    for element, key, given in _orientations(spec):
        compiler = getattr(element, "compiler", spec.compiler)  # MuJoCo before 3.6 has no compiler settings for attached models
        turn = None
        if given.type == kinds.mjORIENTATION_EULER:
            turn = _of_euler([float(x) for x in given.euler], "".join(compiler.eulerseq), bool(compiler.degree))
        elif given.type == kinds.mjORIENTATION_AXISANGLE:
            *axis, angle = (float(x) for x in given.axisangle)
            unit = _unit(axis)
            turn = None if unit is None else _about(Vec3(*unit), angle, bool(compiler.degree))
        elif given.type == kinds.mjORIENTATION_QUAT:
            unit = _unit([float(x) for x in getattr(element, key)])
            if unit is not None:
                setattr(element, key, unit)
        if turn is not None:
            unit = _unit([turn.s, *turn.u])
            if unit is not None:
                setattr(element, key, unit)
                given.type = kinds.mjORIENTATION_QUAT
    for joint in spec.joints:
        direction = _unit([float(x) for x in joint.axis])
        if direction is not None:
            joint.axis = direction


def _orientations(spec: MjSpec) -> Iterator[tuple[Any, str, Any]]:
    """Yield elements, the names of their quaternions, and their alternative orientations."""
    for element in (*spec.bodies, *spec.frames, *spec.geoms, *spec.sites, *spec.cameras):
        yield element, "quat", element.alt
        if hasattr(element, "ialt"):  # orientation of a body's inertia
            yield element, "iquat", element.ialt


def _unit(x: list[float]) -> list[float] | None:
    """Return the vector at length one; None for a vector without direction, which MuJoCo refuses or replaces."""
    if not all(map(math.isfinite, x)):
        return None
    length = norm(*x)
    return [c / length for c in x] if 1e-14 < length < math.inf else None


def _of_euler(angles: list[float], sequence: str, degrees: bool) -> Quaternion | None:
    """Return consecutive rotations: about moving axes (lower case) or about fixed axes."""
    whole = Quaternion(Vec3(0.0, 0.0, 0.0), 1.0)
    for angle, letter in zip(angles, sequence, strict=True):
        turn = _about(Vec3(*(float(letter.lower() == axis) for axis in "xyz")), angle, degrees)
        if turn is None:
            return None
        whole = whole.product(turn) if letter.islower() else turn.product(whole)
    return whole


def _about(axis: Vec3, angle: float, degrees: bool) -> Quaternion | None:
    """Return the rotation about a unit vector; None for an angle that is NaN, which is refused later."""
    if not math.isfinite(angle):
        return None
    count = right_angles(angle, 90.0 if degrees else math.pi / 2)
    half = 0.5 * (math.radians(angle) if degrees else angle)
    c, s = (cos(half), sin(half)) if count is None else EIGHTHS[count % 8]
    return Quaternion(s * axis, c)
