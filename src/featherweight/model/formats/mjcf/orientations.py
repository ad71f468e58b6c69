"""Orientations that are given by angles, before MuJoCo makes quaternions of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..right_angles import right_angles


def make_right_angles_exact(mujoco: Any, spec: Any) -> None:
    """Let angles of `euler` and `axisangle` be the right ones that they are next to."""
    for given, right in _orientations(spec):
        if given.type == mujoco.mjtOrientation.mjORIENTATION_EULER:
            given.euler = [_exact(angle, right) for angle in given.euler]
        elif given.type == mujoco.mjtOrientation.mjORIENTATION_AXISANGLE:
            *axis, angle = given.axisangle
            given.axisangle = [*axis, _exact(angle, right)]


def _orientations(spec: Any) -> Iterator[tuple[Any, float]]:
    """With what a right angle is in the unit of each; MuJoCo before 3.6 does not tell that of attached models."""
    for element in (*spec.bodies, *spec.frames, *spec.geoms, *spec.sites):
        right = 90.0 if getattr(element, "compiler", spec.compiler).degree else math.pi / 2
        yield element.alt, right
        if hasattr(element, "ialt"):  # of a body's inertia
            yield element.ialt, right


def _exact(angle: float, right: float) -> float:
    count = right_angles(angle, right) if math.isfinite(angle) else None  # which is refused later
    return float(angle) if count is None else count * right
