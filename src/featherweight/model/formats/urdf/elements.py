"""Elements, numbers and poses of URDF files, with errors that name file and element."""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException  # type: ignore[import-untyped, unused-ignore]
from defusedxml import ElementTree as SafeElementTree

from ...types import Matrix, ModelError, Pose, Vector, matmul

# --- the file and its elements


def parse_xml(source: str) -> Element:
    """The root element of an XML file; `ModelError` if it is damaged or defines entities."""
    with open(source, "rb") as stream:
        try:
            root: Element = SafeElementTree.parse(stream).getroot()
        except ParseError as error:
            remedy = "repair it or export it anew"
            raise ModelError(f"{source}: not an XML file, or cut short ({error}); {remedy}") from error
        except DefusedXmlException as error:
            remedy = "remove the entity declarations"
            raise ModelError(f"{source}: XML that defines entities is not read ({error}); {remedy}") from error
        except (ValueError, LookupError) as error:
            raise ModelError(f"{source}: unreadable text encoding ({error}); save the file as UTF-8") from error
    return root


def robot_element(source: str) -> Element:
    """The <robot> of a URDF file."""
    robot = parse_xml(source)
    _drop_default_namespace(robot)
    if robot.tag != "robot":
        raise ModelError(f"{source}: the root element is <{robot.tag}>, not <robot>; this is not a URDF file")
    return robot


def _drop_default_namespace(robot: Element) -> None:
    if not robot.tag.startswith("{"):
        return
    prefix = robot.tag[: robot.tag.index("}") + 1]
    for element in robot.iter():
        element.tag = element.tag.removeprefix(prefix)


def named(robot: Element, tag: str, source: str) -> dict[str, Element]:
    """The robot's elements with this tag by name, in the file's order."""
    elements: dict[str, Element] = {}
    for number, element in enumerate(robot.findall(tag), start=1):
        name = element.get("name", "")
        if not name.strip():
            raise ModelError(f"{source}: {tag} number {number} has no name; give it one")
        if name in elements:
            raise ModelError(f"{source}: two {tag}s have the name '{name}'; rename one of them")
        elements[name] = element
    return elements


def only(element: Element, tag: str, where: str) -> Element | None:
    """The one child element with this tag, or None."""
    found = element.findall(tag)
    if len(found) > 1:
        raise ModelError(f"{where}: {len(found)} <{tag}> elements inside <{element.tag}>; keep one")
    return found[0] if found else None


def required(element: Element, tag: str, where: str) -> Element:
    """The one child element with this tag."""
    found = only(element, tag, where)
    if found is None:
        raise ModelError(f"{where}: <{element.tag}> has no <{tag}>; add it")
    return found


def attribute(element: Element, key: str, where: str) -> str:
    """An attribute that must not be empty."""
    text = element.get(key, "")
    if not text.strip():
        raise ModelError(f"{where}: <{element.tag}> has no attribute '{key}'; add it")
    return text


# --- numbers


def _numbers(text: str, count: int, key: str, where: str) -> list[float]:
    words = text.split()
    if len(words) != count:
        raise ModelError(f"{where}: '{key}' needs {count} number{'s' * (count > 1)}, not {len(words)} ('{text}')")
    return [_number(word, key, where) for word in words]


def _number(text: str, key: str, where: str) -> float:
    try:
        value = float(text.replace("_", "?"))  # Python reads 1_000 as a number, no other reader of URDF does
    except ValueError:
        raise ModelError(f"{where}: '{key}' is not a number: '{text}'; correct it") from None
    if not math.isfinite(value):
        raise ModelError(f"{where}: '{key}' is {value}; give a finite number, or leave it out where it is optional")
    return value


def read_scalar(element: Element, key: str, where: str) -> float:
    """A required attribute of one finite number."""
    return _numbers(attribute(element, key, where), 1, key, where)[0]


def read_tuple(element: Element, key: str, count: int, where: str) -> list[float]:
    """A required attribute of several finite numbers."""
    return _numbers(attribute(element, key, where), count, key, where)


def read_vector(element: Element, key: str, default: str, where: str) -> Vector:
    """An attribute of three finite numbers."""
    x, y, z = _numbers(element.get(key, default), 3, key, where)
    return (x, y, z)


# --- poses


def _cos_sin(angle: float) -> tuple[float, float]:
    """Cosine and sine, exact at multiples of pi/2 to within 1e-11.

    Files write 1.57079632679 and mean a right angle. Exact zeros keep axes that ought to be parallel parallel, and let
    terms vanish that rounding would keep alive.
    """
    quarter = round(angle / (math.pi / 2))
    if abs(angle - quarter * (math.pi / 2)) < 1e-11:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarter % 4]
    return math.cos(angle), math.sin(angle)


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
    length = math.hypot(x, y, z)
    if length == 0.0:
        raise ModelError(f"{where}: the {tag} is zero; give it a direction")
    return (x / length, y / length, z / length)
