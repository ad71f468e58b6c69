"""Numbers and poses as URDF has them."""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element, SubElement

from ....spatial.elementary import atan2, cos, sin
from ...types import LARGEST, Matrix, Pose, Vector, matmul


def written(*numbers: float) -> str:
    """The shortest texts that read as these numbers; LARGEST for infinity, which readers of limits take for none."""
    return " ".join(_short(math.copysign(LARGEST, x) if math.isinf(x) else x) for x in numbers)


def _short(x: float) -> str:
    return repr(float(x)).removesuffix(".0")


def write_origin(element: Element, pose: Pose) -> None:
    """An <origin>, if it says anything."""
    rpy = roll_pitch_yaw(pose.R)
    if any(pose.p) or any(rpy):
        SubElement(element, "origin", xyz=written(*pose.p), rpy=written(*rpy))


def roll_pitch_yaw(R: Matrix) -> Vector:
    """Angles with R = Rz(yaw) Ry(pitch) Rx(roll), precise where yaw and roll turn about one axis, too."""
    yaw = atan2(R[1][0], R[0][0])
    c, s = cos(yaw), sin(yaw)
    rest = matmul(((c, s, 0.0), (-s, c, 0.0), (0.0, 0.0, 1.0)), R)
    return (atan2(-rest[1][2], rest[1][1]), atan2(-rest[2][0], rest[0][0]), yaw)
