"""What is URDF's own among elements: its root, <origin> and <axis>."""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element

from ....spatial.elementary import cos, norm, sin
from ...types import Matrix, ModelError, Pose, Vector, matmul
from ..right_angles import right_angles
from ..robot_source import RobotSource
from ..xml import only, read_vector


def robot_element(source: RobotSource) -> Element:
    """The <robot> of a URDF file."""
    robot = source.root
    _drop_default_namespace(robot)
    if robot.tag != "robot":
        problem = f"the root element is <{robot.tag}>, not <robot>, so that this is not a URDF file"
        raise ModelError(f"{source.name}: {problem}; give the file the suffix of its format (.xml for MJCF), or give its text")
    return robot


def _drop_default_namespace(robot: Element) -> None:
    if not robot.tag.startswith("{"):
        return
    prefix = robot.tag[: robot.tag.index("}") + 1]
    for element in robot.iter():
        element.tag = element.tag.removeprefix(prefix)


# --- poses


def _cos_sin(angle: float) -> tuple[float, float]:
    """Cosine and sine, exact for right angles."""
    count = right_angles(angle, math.pi / 2)
    if count is not None:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[count % 4]
    return cos(angle), sin(angle)


def _rotation(roll: float, pitch: float, yaw: float) -> Matrix:
    """Rz(yaw) Ry(pitch) Rx(roll)."""
    (cr, sr), (cp, sp), (cy, sy) = _cos_sin(roll), _cos_sin(pitch), _cos_sin(yaw)
    Rx: Matrix = ((1.0, 0.0, 0.0), (0.0, cr, -sr), (0.0, sr, cr))
    Ry: Matrix = ((cp, 0.0, sp), (0.0, 1.0, 0.0), (-sp, 0.0, cp))
    Rz: Matrix = ((cy, -sy, 0.0), (sy, cy, 0.0), (0.0, 0.0, 1.0))
    return matmul(Rz, matmul(Ry, Rx))


def read_origin(element: Element, where: str) -> Pose:
    """The pose that <origin> gives, the identity without one."""
    origin = only(element, "origin", where)
    if origin is None:
        return Pose()
    return Pose(_rotation(*read_vector(origin, "rpy", "0 0 0", where)), read_vector(origin, "xyz", "0 0 0", where))


def read_axis(joint: Element, where: str, tag: str = "axis") -> Vector:
    """The unit vector that <axis> gives, x without one."""
    element = only(joint, tag, where)
    x, y, z = (1.0, 0.0, 0.0) if element is None else read_vector(element, "xyz", "1 0 0", where)
    _, exponent = math.frexp(max(abs(x), abs(y), abs(z)))
    x, y, z = (math.ldexp(c, -exponent) for c in (x, y, z))  # the least numbers have too few digits to divide by
    length = norm(x, y, z)
    if length == 0.0:
        raise ModelError(f"{where}: the {tag} is zero; give it a direction")
    return (x / length, y / length, z / length)
