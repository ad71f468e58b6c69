"""<axis> and <axis2> of SDF joints: directions, limits, forces."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from ...types import Vector, rotate, transpose
from ..robot_numbers import ordered_limits, unit_axis, unlimited
from ..unsupported import excused, nonnegative, tolerate
from ..urdf.loop_elements import along_z
from ..xml import only, read_limit, read_scalar, read_vector
from .elements import flag, with_values
from .frame_graph import FrameGraph
from .models import NamedElement

UNBOUNDED = 1e16  # value for no limit until SDF 1.9
NAN, INFINITE = re.compile("[+-]?nan", re.IGNORECASE), re.compile("[+-]?inf(inity)?", re.IGNORECASE)
FORCES = {"damping": "damping", "friction": "dry_friction", "spring_stiffness": "stiffness", "spring_reference": "rest"}


class JointAxis(NamedTuple):
    """An <axis>: its direction in the child's frame, the fields of `Joint` that it gives, and its <mimic>."""

    direction: Vector
    numbers: dict[str, Any]
    mimic: Element | None

    @property
    def fixed_at(self) -> float | None:
        """The coordinate at which equal limits hold the joint, as in Gazebo; None for an axis along which it moves."""
        lower, upper = self.numbers.get("lower", -math.inf), self.numbers.get("upper", math.inf)
        return lower if lower == upper else None


def read_axis(joint: NamedElement, tag: str, child: str, frames: FrameGraph, ranged: bool = True) -> JointAxis:
    """Return the <axis> or <axis2> of a joint, without position limits unless it is `ranged`."""
    element = only(joint.element, tag, joint.where)
    if element is None and tag == "axis":
        tolerate(joint.where, "there is no <axis>", "add it", "taken as z")
        element = Element(tag)
    elif element is None:
        x, y, z = read_axis(joint, "axis", child, frames).direction
        tolerate(joint.where, "there is no <axis2>", "add it", "taken as perpendicular to <axis>")
        return JointAxis(transpose(along_z((x, y, z)))[0], {}, None)
    where = f"{joint.where}: <{tag}>"
    direction = _direction(joint, element, child, frames, where)
    return JointAxis(direction, _numbers(element, ranged, where), only(element, "mimic", where))


def has_numbers(joint: NamedElement) -> bool:
    """Return whether a joint that needs no axis has an <axis> with limits or forces; an <axis> without them has no effect."""
    element = only(joint.element, "axis", joint.where)
    return element is not None and _say_more(_numbers(element, True, f"{joint.where}: <axis>"))


def _numbers(axis: Element, ranged: bool, where: str) -> dict[str, Any]:
    return {**_limits(axis, ranged, where), **_forces(axis, where)}


def _direction(joint: NamedElement, element: Element, child: str, frames: FrameGraph, where: str) -> Vector:
    """Return the direction in the child's frame; the file gives it in the frame of the joint, of the model or a named one."""
    xyz = only(element, "xyz", where)
    axis = unit_axis(read_vector(with_values(element, where), "xyz", "0 0 1", where), element.tag, where)
    base = joint.frame
    if name := "" if xyz is None else xyz.get("expressed_in", "").strip():
        with excused("so the axis is in the frame of the joint"):
            frames.link(joint.scope.absolute(name), where)
            base = joint.scope.absolute(name)
    elif flag(element, "use_parent_model_frame", False, where):
        base = joint.scope.frame
    return rotate(frames.pose(base, child, where).R, axis)


def has_range(joint: NamedElement) -> bool:
    """Return whether there are position limits."""
    limit = joint.element.find("axis/limit")
    return limit is not None and any(not math.isinf(x) for x in _range(limit, joint.where))


def says_more(axis: JointAxis) -> bool:
    """Return whether an axis contains more than a direction."""
    return axis.mimic is not None or _say_more(axis.numbers)


def _say_more(numbers: dict[str, Any]) -> bool:
    return any(x and not math.isinf(x) for key, x in numbers.items() if key != "rest")


def _range(limit: Element, where: str) -> tuple[float, float]:
    values = with_values(limit, where)
    return _limit(values, "lower", -math.inf, where), _limit(values, "upper", math.inf, where)


def _limits(axis: Element, ranged: bool, where: str) -> dict[str, Any]:
    limit = only(axis, "limit", where)
    if limit is None:
        return {}
    lower, upper = ordered_limits(*_range(limit, where), where) if ranged else (-math.inf, math.inf)
    values = with_values(limit, where)
    most = {key: _limit(values, key, math.inf, where) for key in ("effort", "velocity")}
    return {"lower": lower, "upper": upper} | {key: x if x >= 0.0 else math.inf for key, x in most.items()}


def _limit(values: Element, key: str, default: float, where: str) -> float:
    """Return a number, or infinity, which SDF writes for no limit."""
    text = values.get(key, "")
    if NAN.fullmatch(text):
        tolerate(where, f"its {key} is {text}", "give a number", "taken as no limit")
        return default
    return unlimited(read_limit(values, key, where), UNBOUNDED) if text else default


def _forces(axis: Element, where: str) -> dict[str, Any]:
    dynamics = only(axis, "dynamics", where)
    if dynamics is None:
        return {}
    values = with_values(dynamics, where)
    numbers = {}
    for key, own in FORCES.items():
        text = values.get(key, "")
        if NAN.fullmatch(text) or INFINITE.fullmatch(text):
            tolerate(where, f"its {key} is {text}", "give a finite number", "left out")
        elif text:
            numbers[own] = read_scalar(values, key, where)
    return {own: x if own == "rest" else nonnegative(x, own.replace("_", " "), where) for own, x in numbers.items()}
