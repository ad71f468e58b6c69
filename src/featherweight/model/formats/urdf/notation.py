"""Numbers and poses in the notation of URDF."""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element, SubElement

from ....spatial.elementary import atan2, cos, sin
from ...types import LARGEST, Matrix, Pose, Vector, matmul


def written(*numbers: float) -> str:
    """Return the shortest texts that read as these numbers; LARGEST for infinity, which readers treat as no limit."""
    return " ".join(_short(math.copysign(LARGEST, x) if math.isinf(x) else x) for x in numbers)


def _short(x: float) -> str:
    return repr(float(x)).removesuffix(".0")


def write_origin(element: Element, pose: Pose) -> None:
    """Write an <origin>, unless it is the identity."""
    rpy = roll_pitch_yaw(pose.R)
    if any(pose.p) or any(rpy):
        SubElement(element, "origin", xyz=written(*pose.p), rpy=written(*rpy))


def roll_pitch_yaw(R: Matrix) -> Vector:
    """Return angles with R = Rz(yaw) Ry(pitch) Rx(roll), accurate even where yaw and roll turn about the same axis."""
    yaw = atan2(R[1][0], R[0][0])
    c, s = cos(yaw), sin(yaw)
    rest = matmul(((c, s, 0.0), (-s, c, 0.0), (0.0, 0.0, 1.0)), R)
    return (atan2(-rest[1][2], rest[1][1]), atan2(-rest[2][0], rest[0][0]), yaw)
