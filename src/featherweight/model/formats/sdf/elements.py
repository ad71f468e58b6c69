"""Functions for elements that only SDF has: values as text, flags, poses."""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element

from ...types import ModelError, Pose
from ..robot_numbers import rotation_by_angles, rotation_by_quaternion
from ..unsupported import tolerate
from ..xml import only, parse_numbers

FLAGS = {"1": True, "true": True, "0": False, "false": False}


def with_values(element: Element, where: str) -> Element:
    """Return the element with the texts of its child elements as attributes, where `read_scalar` and the like find them."""
    flat, seen = Element(element.tag, element.attrib), set[str]()
    for child in element:
        if len(child) == 0 and child.tag not in seen:
            seen.add(child.tag)
            if text := text_of(child):  # an empty element has the default, as in libsdformat
                only(element, child.tag, where)
                flat.set(child.tag, text)
    return flat


def text_of(element: Element | None) -> str:
    """Return the text of an element without surrounding blanks; empty for no element."""
    return "" if element is None else (element.text or "").strip()


def flag(element: Element, tag: str, default: bool, where: str) -> bool:
    """Return whether the element with this tag is true."""
    text = text_of(only(element, tag, where)).lower()
    if text and text not in FLAGS:
        raise ModelError(f"{where}: <{tag}> is '{text}'; write true or false")
    return FLAGS[text] if text else default


def raw_pose(element: Element | None, where: str) -> Pose:
    """Return the numbers of a <pose>, in its own frame; the identity for one that is empty or missing."""
    text = text_of(element)
    if element is None or not text:
        return Pose()
    form = element.get("rotation_format", "euler_rpy")
    if form == "quat_xyzw":
        x, y, z, *quaternion = parse_numbers(text, 7, "pose", where)
        if not any(quaternion):
            tolerate(where, "the quaternion of its <pose> is zero", "give it a direction", "without a rotation")
            return Pose(p=(x, y, z))
        return Pose(rotation_by_quaternion(quaternion, f"{where}: <pose>"), (x, y, z))
    if form != "euler_rpy":
        raise ModelError(f"{where}: <pose> has the rotation_format '{form}'; use euler_rpy or quat_xyzw")
    x, y, z, *angles = parse_numbers(text, 6, "pose", where)
    if FLAGS.get(element.get("degrees", "").strip().lower(), False):
        angles = [angle * math.pi / 180.0 for angle in angles]
    return Pose(rotation_by_angles(*angles), (x, y, z))


def base_of(element: Element | None) -> str:
    """Return the name of the frame in which a <pose> is given; empty for the default.

    Until SDF 1.6 its attribute is `frame`.
    """
    return "" if element is None else (element.get("relative_to") or element.get("frame") or "").strip()
