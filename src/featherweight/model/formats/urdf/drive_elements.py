"""`<actuator>` elements of a URDF file, which are specific to this package, with the fields of `Actuator`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from xml.etree.ElementTree import Element

from ...types import LARGEST, Actuator, Joint, ModelError
from ..xml import attribute, named, read_scalar, read_tuple

UNBOUNDED = (-math.inf, math.inf)


def read_actuators(robot: Element, joints: Iterable[Joint], source: str) -> tuple[Actuator, ...]:
    """Return one actuator for each element, in the file's order."""
    degrees = {joint.name: joint.type.nv for joint in joints}
    elements = named(robot, "actuator", source).items()
    return tuple(_actuator(name, element, degrees, f"{source}: actuator '{name}'") for name, element in elements)


def _actuator(name: str, element: Element, degrees: dict[str, int], where: str) -> Actuator:
    joint = attribute(element, "joint", where)
    if degrees.get(joint) != 1:
        raise ModelError(f"{where}: '{joint}' is not a joint with one degree of freedom; correct its joint")
    gear, gain = (read_scalar(element, key, where) if key in element.attrib else 1.0 for key in ("gear", "gain"))
    b0, b1, b2 = read_tuple(element, "bias", 3, where) if "bias" in element.attrib else (0.0, 0.0, 0.0)
    return Actuator(name, joint, gear, gain, (b0, b1, b2), _range(element, "control", where), _range(element, "force", where))


def _range(element: Element, key: str, where: str) -> tuple[float, float]:
    """Return two numbers; the largest floats stand for infinity."""
    if key not in element.attrib:
        return UNBOUNDED
    lower, upper = (math.copysign(math.inf, x) if abs(x) >= LARGEST else x for x in read_tuple(element, key, 2, where))
    if lower > upper:
        raise ModelError(f"{where}: the least {key} {lower:g} is above the greatest {upper:g}; exchange or correct them")
    return (lower, upper)
