"""Functions for elements that only URDF has: its root, <origin> and <axis>."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement

from ....spatial.elementary import atan2, cos, sin
from ...types import Matrix, ModelError, Pose, Vector, matmul
from ..robot_numbers import rotation_by_angles, rotation_by_quaternion, unit_axis
from ..robot_source import RobotSource
from ..unsupported import excused, tolerate
from ..xml import drop_default_namespace, only, parse_numbers, read_vector, written


def robot_element(source: RobotSource) -> Element:
    """Return the <robot> of a URDF file."""
    robot = source.root
    drop_default_namespace(robot)
    if robot.tag != "robot":
        problem = f"the root element is <{robot.tag}>, not <robot>, so that this is not a URDF file"
        raise ModelError(f"{source.name}: {problem}; give the file the suffix of its format (.xml for MJCF), or give its text")
    return robot


# --- poses


def read_origin(element: Element, where: str) -> Pose:
    """Return the pose in <origin>; the identity without one."""
    origin = only(element, "origin", where)
    if origin is None:
        return Pose()
    xyz = read_vector(origin, "xyz", "0 0 0", where)
    if (quaternion := origin.get("quat_xyzw")) is None:
        return Pose(rotation_by_angles(*read_vector(origin, "rpy", "0 0 0", where)), xyz)
    if "rpy" in origin.attrib:
        tolerate(where, "<origin> has both 'rpy' and 'quat_xyzw'", "keep one of them", "'rpy' counts")
        return Pose(rotation_by_angles(*read_vector(origin, "rpy", "0 0 0", where)), xyz)
    with excused("without a rotation"):
        return Pose(rotation_by_quaternion(parse_numbers(quaternion, 4, "quat_xyzw", where), f"{where}: <origin>"), xyz)
    return Pose(p=xyz)


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


def read_axis(joint: Element, where: str, tag: str = "axis") -> Vector:
    """Return the unit vector in <axis>; x without one. An <axis> without `xyz` is zero, as in urdfdom."""
    element = only(joint, tag, where)
    xyz = (1.0, 0.0, 0.0) if element is None else read_vector(element, "xyz", "0 0 0", where)
    return unit_axis(xyz, tag, where)
