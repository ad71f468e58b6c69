"""URDF files: links become bodies, joints become joints, and everything else is counted and listed.

A link that no joint has for a child is the root. Nothing outside the file is opened, so missing meshes do not matter.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

import numpy as np
from defusedxml import DefusedXmlException  # type: ignore[import-untyped, unused-ignore]
from defusedxml import ElementTree as SafeElementTree

from .types import (
    ROUNDING_RADIUS,
    Body,
    Description,
    Inertia,
    Joint,
    JointType,
    Matrix,
    ModelError,
    Pose,
    Vector,
    matmul,
    transpose,
)

JOINT_TYPES = {str(t): t for t in JointType} | {"ball": JointType.SPHERICAL}
WITH_AXIS = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC, JointType.PLANAR)
WITH_LIMITS = (JointType.REVOLUTE, JointType.PRISMATIC)

# What may stand inside an element, and what is known but of no use to dynamics. Anything else is listed as unknown.
LINK_TAGS = {"inertial", "visual", "collision"}
JOINT_TAGS = {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "safety_controller", "calibration"}
ROBOT_TAGS = {"link", "joint", "material", "transmission", "gazebo", "sensor"}
INERTIAL_TAGS = {"origin", "mass", "inertia"}


def load_urdf(path: str | os.PathLike[str], mimic: str = "refuse") -> Description:
    """Read a URDF file, in SI units.

    Bodies and joints keep the file's order, fixed joints included. Inertias are about the centre of mass in link axes.
    Besides the joint types of URDF, `spherical` (or `ball`) is read. A joint with no lower or upper limit has an
    infinite one. Joints that follow others by `<mimic>` are refused, or with `mimic="independent"` move by themselves.

    Raises `ModelError`, which names file and element, for a file that is damaged, is not one tree of links, or asks
    for what is not supported; `OSError` for one that cannot be opened.
    """
    source = os.fspath(path)
    robot = _robot_element(source)
    if mimic not in ("refuse", "independent"):
        raise ValueError(f'mimic must be "refuse" or "independent"; got {mimic!r}')
    _refuse_unsupported(robot, source, mimic)
    links = _named(robot, "link", source)
    joint_elements = _named(robot, "joint", source)
    if not links:
        raise ModelError(f"{source}: the robot has no link; give it at least one <link name=...>")
    bodies = tuple(Body(name, _inertia(link, f"{source}: link '{name}'")) for name, link in links.items())
    joints = tuple(_joint(name, joint, f"{source}: joint '{name}'") for name, joint in joint_elements.items())
    _require_one_tree(list(links), joints, source)
    name = robot.get("name") or Path(source).stem
    return Description(name, source, bodies, joints, unused=tuple(_unused(robot, bodies, source)))


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


def _robot_element(source: str) -> Element:
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


def _refuse_unsupported(robot: Element, source: str, mimic: str) -> None:
    for element in robot.iter():
        if "xacro" in element.tag:
            raise ModelError(f"{source}: <{element.tag}> is not expanded; run the file through the xacro program first")
    for element in robot:
        where = f"{source}: {element.tag} '{element.get('name', '')}'"
        if element.tag in ("loop", "coupling"):
            raise ModelError(f"{where}: loops and couplings are not supported yet; remove it to get the open tree")
        if element.tag != "joint":
            continue
        if element.find("mimic") is not None and mimic == "refuse":
            remedy = 'load with mimic="independent" to let the joint move by itself'
            raise ModelError(f"{where}: couplings between joints (mimic) are not supported yet; {remedy}")
        if "independent" in element.attrib:
            remedy = "remove the attribute to get the open tree"
            raise ModelError(f"{where}: the attribute 'independent' belongs to loops, not supported yet; {remedy}")


def _named(robot: Element, tag: str, source: str) -> dict[str, Element]:
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


def _only(element: Element, tag: str, where: str) -> Element | None:
    """The one child element with this tag, or None."""
    found = element.findall(tag)
    if len(found) > 1:
        raise ModelError(f"{where}: {len(found)} <{tag}> elements inside <{element.tag}>; keep one")
    return found[0] if found else None


def _required(element: Element, tag: str, where: str) -> Element:
    found = _only(element, tag, where)
    if found is None:
        raise ModelError(f"{where}: <{element.tag}> has no <{tag}>; add it")
    return found


def _attribute(element: Element, key: str, where: str) -> str:
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


def _scalar(element: Element, key: str, where: str) -> float:
    return _numbers(_attribute(element, key, where), 1, key, where)[0]


def _vector(element: Element, key: str, default: str, where: str) -> Vector:
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


def _origin(element: Element, where: str) -> Pose:
    origin = _only(element, "origin", where)
    if origin is None:
        return Pose()
    return Pose(_rotation(*_vector(origin, "rpy", "0 0 0", where)), _vector(origin, "xyz", "0 0 0", where))


# --- links


def _inertia(link: Element, where: str) -> Inertia:
    """The link's inertia; the tensor is turned from the axes of its <origin> into those of the link."""
    inertial = _only(link, "inertial", where)
    if inertial is None:
        return Inertia()
    mass = _scalar(_required(inertial, "mass", where), "value", where)
    if mass < 0.0:
        raise ModelError(f"{where}: the mass is negative ({mass}); correct it")
    tensor = _required(inertial, "inertia", where)
    xx, xy, xz, yy, yz, zz = (_scalar(tensor, key, where) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    origin = _origin(inertial, where)
    local: Matrix = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    about_center = matmul(matmul(origin.R, local), transpose(origin.R))
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = about_center
    return Inertia(mass, origin.p, (xx, xy, xz, yy, yz, zz))


def _principal_moments(inertia: Inertia) -> list[float]:
    xx, xy, xz, yy, yz, zz = inertia.rotational
    moments: list[float] = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).tolist()
    return moments


def _is_impossible(inertia: Inertia) -> bool:
    """No distribution of mass has this inertia: a moment exceeds the two others' sum, or turning without mass.

    It is only listed here: what counts is the inertia of all links that are fixed together.
    """
    small, middle, large = _principal_moments(inertia)
    slack = ROUNDING_RADIUS**2 * inertia.mass
    return large > (small + middle) * (1 + 1e-6) + slack or (inertia.mass == 0.0 and large > 0.0)


# --- joints


def _joint(name: str, element: Element, where: str) -> Joint:
    written = _attribute(element, "type", where)
    if written not in JOINT_TYPES:
        raise ModelError(f"{where}: unknown type '{written}'; use one of {', '.join(JOINT_TYPES)}")
    kind = JOINT_TYPES[written]
    parent = _attribute(_required(element, "parent", where), "link", where)
    child = _attribute(_required(element, "child", where), "link", where)
    joint = Joint(name, kind, parent, child, _origin(element, where))
    axis = _axis(element, where) if kind in WITH_AXIS else joint.axis
    lower, upper = _limits(element, where) if kind in WITH_LIMITS else (joint.lower, joint.upper)
    return Joint(name, kind, parent, child, joint.placement, axis, lower=lower, upper=upper)


def _axis(joint: Element, where: str) -> Vector:
    element = _only(joint, "axis", where)
    x, y, z = (1.0, 0.0, 0.0) if element is None else _vector(element, "xyz", "1 0 0", where)
    length = math.hypot(x, y, z)
    if length == 0.0:
        raise ModelError(f"{where}: the axis is zero; give it a direction")
    return (x / length, y / length, z / length)


def _limits(joint: Element, where: str) -> tuple[float, float]:
    limit = _only(joint, "limit", where)
    if limit is None:
        return -math.inf, math.inf
    lower = _scalar(limit, "lower", where) if "lower" in limit.attrib else -math.inf
    upper = _scalar(limit, "upper", where) if "upper" in limit.attrib else math.inf
    if lower > upper:
        raise ModelError(f"{where}: the lower limit {lower} is above the upper limit {upper}; exchange or correct them")
    return lower, upper


# --- the tree


def _require_one_tree(links: list[str], joints: Iterable[Joint], source: str) -> None:
    """Every joint joins two links of the file, and all links hang on one root."""
    inward: dict[str, Joint] = {}
    known = set(links)
    for joint in joints:
        where = f"{source}: joint '{joint.name}'"
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in known:
                raise ModelError(f"{where}: its {role} link '{link}' is not defined; define it or correct the name")
        if joint.child in inward:
            first = inward[joint.child].name
            raise ModelError(
                f"{source}: link '{joint.child}' has two parents, by joints '{first}' and '{joint.name}'; "
                "a URDF is a tree, so remove one of the joints"
            )
        inward[joint.child] = joint
    roots = [link for link in links if link not in inward]
    if len(roots) > 1:
        shown = ", ".join(f"'{root}'" for root in roots)
        raise ModelError(f"{source}: {len(roots)} links have no parent: {shown}; join all but one to the others")
    _refuse_cycle(links, inward, source)


def _refuse_cycle(links: list[str], inward: dict[str, Joint], source: str) -> None:
    rooted: set[str] = set()
    for link in links:
        path: dict[str, None] = {}  # insertion order matters, and so does the look-up
        while link not in rooted and link in inward:
            if link in path:
                members = list(path)
                cycle = ", ".join(f"'{inward[member].name}'" for member in members[members.index(link) :])
                raise ModelError(f"{source}: a cycle of joints through link '{link}': {cycle}; remove one of them")
            path[link] = None
            link = inward[link].parent
        rooted.update(path)


# --- what dynamics does not use


def _unused(robot: Element, bodies: Iterable[Body], source: str) -> Iterator[tuple[str, str]]:
    tags = Counter(child.tag for child in robot)
    visuals, collisions = len(robot.findall("link/visual")), len(robot.findall("link/collision"))
    if visuals or collisions:
        yield "meshes", f"{visuals} visual and {collisions} collision geometries"
    if tags["material"]:
        yield "materials", f"{tags['material']}"
    if tags["transmission"]:
        yield "transmissions", f"{tags['transmission']}"
    if tags["gazebo"]:
        inside = len(robot.findall("gazebo//joint"))
        yield "gazebo elements", f"{tags['gazebo']}" + (f", holding {_joints(inside)}" if inside else "")
    if follow := [joint.get("name", "") for joint in robot.findall("joint") if joint.find("mimic") is not None]:
        yield "couplings", f"mimic of {', '.join(follow)}, taken as independent"
    if tags["sensor"]:
        yield "sensors", f"{tags['sensor']}"
    yield from _unused_of_joints(robot, source)
    if unknown := _listing(_unknown_elements(robot)):
        yield "unknown elements", unknown
    if unknown := _listing(_unknown_attributes(robot)):
        yield "unknown attributes", unknown
    if impossible := [body.name for body in bodies if _is_impossible(body.inertia)]:
        yield "inertias that no rigid body can have", ", ".join(impossible)


def _unused_of_joints(robot: Element, source: str) -> Iterator[tuple[str, str]]:
    count: Counter[str] = Counter()
    for joint in robot.findall("joint"):
        where = f"{source}: joint '{joint.get('name')}'"
        ranged = JOINT_TYPES[joint.get("type", "")] in WITH_LIMITS
        for limit in joint.findall("limit"):
            count.update(key for key in ("effort", "velocity") if key in limit.attrib)
            count["range"] += not ranged and ("lower" in limit.attrib or "upper" in limit.attrib)
        for dynamics in joint.findall("dynamics"):
            written = [key for key in ("damping", "friction") if key in dynamics.attrib]
            count.update(key for key in written if _scalar(dynamics, key, where) != 0.0)
    if count["effort"] or count["velocity"]:
        yield "joint limits", f"effort of {_joints(count['effort'])}, velocity of {_joints(count['velocity'])}"
    if count["range"]:
        yield "position limits of joints without limits", _joints(count["range"])
    if count["damping"] or count["friction"]:
        yield "joint dynamics", f"damping of {_joints(count['damping'])}, friction of {_joints(count['friction'])}"
    for kind, tag in (("safety controllers", "safety_controller"), ("calibrations", "calibration")):
        if elements := robot.findall(f"joint/{tag}"):
            yield kind, _joints(len(elements))


def _unknown_elements(robot: Element) -> Iterator[str]:
    allowed = (("", ROBOT_TAGS), ("link", LINK_TAGS), ("joint", JOINT_TAGS), ("link/inertial", INERTIAL_TAGS))
    for path, known in allowed:
        for element in robot.findall(path) if path else [robot]:
            yield from (f"{element.tag}/{child.tag}" for child in element if child.tag not in known)


def _unknown_attributes(robot: Element) -> Iterator[str]:
    known = {
        "link": {"name"},
        "joint": {"name", "type"},
        "joint/limit": {"lower", "upper", "effort", "velocity"},
        "joint/dynamics": {"damping", "friction"},
        "joint/origin": {"xyz", "rpy"},
        "link/inertial/origin": {"xyz", "rpy"},
    }
    for path, keys in known.items():
        for element in robot.findall(path):
            yield from (f"{element.tag}@{key}" for key in element.attrib if key not in keys)


def _joints(count: int) -> str:
    return f"{count} joint" if count == 1 else f"{count} joints"


def _listing(names: Iterable[str]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in Counter(names).items())
