"""URDF files: links become bodies and shapes, joints become joints; all other elements are counted and listed.

A link that is not the child of a joint is the root. The reader opens no other files, so missing meshes do not matter.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element

from ....names import listed
from ...description import Description
from ...types import LARGEST, WORLD, Actuator, Body, Inertia, Joint, JointType, ModelError
from ..robot_numbers import ZeroVectorError, inertia_at, ordered_limits, unused_inertias
from ..robot_source import RobotSource
from ..unsupported import FOLLOW, INDEPENDENT, REFUSE, excused, nonnegative, tolerate, unused_integrator
from ..xml import Names, attribute, counted, named, only, read_limit, read_scalar, read_tuple, required, shortened
from .couplings import fix_still_followers, mimic_refused
from .elements import read_axis, read_origin, robot_element
from .loop_elements import read_constraints
from .schema import unknown_attributes, unknown_elements
from .shapes import read_shapes

JOINT_TYPES = {str(t): t for t in JointType} | {"ball": JointType.SPHERICAL}
WITH_AXIS = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC, JointType.PLANAR)
WITH_LIMITS = (JointType.REVOLUTE, JointType.PRISMATIC)
DYNAMICS = {"damping": "damping", "friction": "dry_friction", "armature": "armature", "stiffness": "stiffness"}
"""Attributes that must not be negative, and the fields of `Joint` that have them."""
OWN_DYNAMICS = ("armature", "stiffness")  # attributes of this package, which urdfdom ignores
RATES = {"acceleration", "deceleration", "jerk"}  # unused attributes of <limit> in URDF 1.2
VERSIONS = ("1.0", "1.1", "1.2")
XACRO = "xacro"  # in the tags of elements that xacro expands
UNEXPANDED = "pass xacro_args={}, if you trust the file, whose expressions run then; or run it through the xacro program first"


def read_urdf(file: RobotSource, options: Mapping[str, str]) -> Description:
    """Read a URDF file, in SI units. The only option is `mimic`; its default is "follow".

    Bodies and joints keep the file's order, including fixed joints. Inertias are about the centre of mass in link axes. In
    addition to the joint types of URDF, `spherical` (or `ball`) is supported. Without a lower and an upper limit both are
    infinite; one alone makes the other zero before URDF 1.2. A missing effort or velocity is infinite, and so is ±1e30.
    Damping and friction are those of <dynamics>; armature, stiffness and rest (of a spring) are additional attributes of
    this package. Each <visual> and each <collision> becomes a shape; `find_mesh` searches for its mesh file, which need not
    exist. Joints that follow others by `<mimic>` become couplings; with `mimic="independent"` they move independently, and
    with `mimic="refuse"` they raise an error.

    Loops and gears are written as

        <loop name type> <predecessor link><origin/></predecessor> <successor link><origin/></successor> <axis xyz/> </loop>
        <coupling name> <predecessor link/> <successor link/> <ratio value/> </coupling>

    as in URDF+ (Chignoli, Slotine, Wensing and Kim 2024), with the types of `LoopType` (and continuous, ball, fixed) and the
    axis in the frames of both ends. Universal joints may have an `<axis2>`; the default is a direction perpendicular to the
    axis. A coupling states: ratio × (sum of the coordinates from the nearest common ancestor to the predecessor) = (sum of
    those to the successor); the default ratio is 1. A fixed joint's name stands for its child link. A coupling may also name
    the follower and its leaders, by polynomials without a constant, which is the offset. Drives with a control are those of
    `Actuator`, whose fields have the same names:

        <coupling name joint offset> <term joint coefficients="c1 c2 ..."/> </coupling>
        <actuator name joint gear gain bias control force/>
        <simulation timestep integrator/>

    `independent="true"` or "false" marks the joints of loops and couplings.

    Raises `ModelError`, which names file and element, for a file that is damaged, is not one tree of links apart from its
    loops, or has couplings that cannot be solved. Raises `OSError` for a file that cannot be opened.
    """
    source = file.name
    mimic = options.get("mimic", FOLLOW)
    robot = robot_element(file)
    for joint in robot.findall("joint") if mimic == REFUSE else []:
        if joint.find("mimic") is not None:
            raise mimic_refused(f"{source}: joint '{joint.get('name', '')}'")
    left = next((e.tag for e in robot.iter() if XACRO in e.tag), None)
    if left is None:
        return _read(file, robot, mimic)
    tolerate(source, f"<{left}> is not expanded", UNEXPANDED, f"left out ({UNEXPANDED})")
    try:
        return _read(file, robot, mimic)
    except ModelError as error:
        raise ModelError(f"{error}. <{left}> is not expanded; {UNEXPANDED}") from error


def _read(file: RobotSource, robot: Element, mimic: str) -> Description:
    source = file.name
    links = named(robot, "link", source)
    _name_joints(robot, source)
    _complete_limits(robot)
    joint_elements = named(robot, "joint", source)
    if not links:
        raise ModelError(f"{source}: the robot has no link; give it at least one <link name=...>")
    bodies = tuple(Body(name, _inertia(link, f"{source}: link '{name}'")) for name, link in links.items())
    joints = tuple(_joint(name, joint, f"{source}: joint '{name}'") for name, joint in joint_elements.items())
    joints = _one_parent(joints, source)
    if WORLD not in links and any(joint.parent == WORLD for joint in joints):  # Drake and Gazebo define it themselves
        tolerate(source, f"link '{WORLD}' is a parent, and not defined", "define it", "taken as a link fixed to the world")
        bodies, links = (Body(WORLD), *bodies), {WORLD: Element("link", name=WORLD), **links}
    if left_out := _require_one_tree(list(links), joints, source):
        bodies = tuple(body for body in bodies if body.name not in left_out)
        joints = tuple(joint for joint in joints if joint.child not in left_out)
        links = {name: link for name, link in links.items() if name not in left_out}
    for element in [e for e in robot.findall("joint") if e.get("name") not in {joint.name for joint in joints}]:
        robot.remove(element)
    if mimic == FOLLOW:
        joints = fix_still_followers(robot, joints, source)
    closing = read_constraints(robot, joints, source, mimic == FOLLOW)
    shapes = read_shapes(robot, links, file)
    simulation = only(robot, "simulation", source)
    integrator = None if simulation is None else simulation.get("integrator")
    return Description(
        robot.get("name") or file.stem,
        source,
        bodies,
        joints,
        unused=(*shapes.unused, *_unused(robot, bodies, mimic), *closing.unused, *unused_integrator(integrator)),
        loops=closing.loops,
        couplings=closing.couplings,
        independent=closing.independent,
        dependent=closing.dependent,
        shapes=shapes.shapes,
        actuators=read_actuators(robot, joints, source),
        timestep=None if simulation is None else _timestep(simulation, f"{source}: <simulation>"),
        integrator=integrator,
    )


def _timestep(simulation: Element, where: str) -> float | None:
    with excused("left out"):
        return read_scalar(simulation, "timestep", where) if "timestep" in simulation.attrib else None
    return None


# --- links


def _inertia(link: Element, where: str) -> Inertia:
    """Return the link's inertia; the tensor is rotated from the axes of its <origin> into those of the link."""
    inertial = only(link, "inertial", where)
    if inertial is None:
        return Inertia()
    with excused("taken as a link without mass"):
        origin, moments = read_origin(inertial, where), [0.0] * 6
        mass = read_scalar(required(inertial, "mass", where), "value", where)
        with excused("taken as a point mass"):
            tensor = required(inertial, "inertia", where)
            moments = [read_scalar(tensor, key, where) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
        return inertia_at(origin, mass, moments, where)
    return Inertia()


# --- joints


def _name_joints(robot: Element, source: str) -> None:
    """Give a name to joints whose name is empty, which urdfdom accepts."""
    elements = robot.findall("joint")
    names = Names(element.get("name", "") for element in elements)
    for number, element in enumerate(elements, start=1):
        if element.get("name") == "":
            name = names.new(f"joint{number}")
            tolerate(source, f"joint number {number} has an empty name", "give it one", f"named '{name}'")
            element.set("name", name)


def _complete_limits(robot: Element) -> None:
    """Give limits of URDF 1.0 and 1.1 with one end the other, which is zero."""
    if robot.get("version", VERSIONS[0]).strip() in VERSIONS[2:]:
        return
    for limit in robot.iterfind("joint/limit"):
        if ("lower" in limit.attrib) != ("upper" in limit.attrib):
            limit.set("upper" if "lower" in limit.attrib else "lower", "0")


def _joint(name: str, element: Element, where: str) -> Joint:
    written = attribute(element, "type", where)
    if written not in JOINT_TYPES:
        raise ModelError(f"{where}: unknown type '{written}'; use one of {', '.join(JOINT_TYPES)}")
    kind = JOINT_TYPES[written]
    parent = attribute(required(element, "parent", where), "link", where)
    child = attribute(required(element, "child", where), "link", where)
    joint = Joint(name, kind, parent, child, read_origin(element, where))
    axis = joint.axis
    if kind in WITH_AXIS:
        try:
            axis = read_axis(element, where)
        except ZeroVectorError:
            with excused("taken as z" if kind is JointType.PLANAR else "taken as a fixed joint"):
                raise
            if kind is not JointType.PLANAR:
                kind = JointType.FIXED
    lower, upper = _limits(element, where) if kind in WITH_LIMITS else (joint.lower, joint.upper)
    dynamics: dict[str, Any] = {field: _nonnegative(element, "dynamics", key, 0.0, where) for key, field in DYNAMICS.items()}
    springs = only(element, "dynamics", where)
    rest = joint.rest
    if springs is not None:
        with excused("left out"):
            rest = read_scalar(springs, "rest", where, rest)
    most: dict[str, Any] = {
        key: _nonnegative(element, "limit", key, math.inf, where, read_limit) for key in ("effort", "velocity")
    }
    return replace(joint, type=kind, axis=axis, lower=lower, upper=upper, rest=rest, **most, **dynamics)


def _limits(joint: Element, where: str) -> tuple[float, float]:
    limit = only(joint, "limit", where)
    if limit is None:
        return -math.inf, math.inf
    lower, upper = read_limit(limit, "lower", where, -math.inf), read_limit(limit, "upper", where, math.inf)
    return ordered_limits(lower, upper, where)


def _nonnegative(
    joint: Element, tag: str, key: str, default: float, where: str, read: Callable[[Element, str, str], float] = read_scalar
) -> float:
    element = only(joint, tag, where)
    if element is None or key not in element.attrib:
        return default
    if tag == "limit" and element.get(key, "").strip().startswith("-"):
        tolerate(where, f"the {key} is negative ({element.get(key)})", "correct it", "taken as no limit")
        return default
    if key not in OWN_DYNAMICS:
        return nonnegative(read(element, key, where), key, where)
    with excused("left out"):
        return nonnegative(read(element, key, where), key, where)
    return default


# --- the tree


def _one_parent(joints: Iterable[Joint], source: str) -> tuple[Joint, ...]:
    """Return the joints with the last one of each child, which is its parent in urdfdom: <loop> elements close loops."""
    last = {joint.child: joint for joint in joints}
    for joint in joints:
        if last[joint.child] is not joint:
            problem = f"link '{joint.child}' has two parents, by joints '{joint.name}' and '{last[joint.child].name}'"
            tolerate(source, problem, "a URDF is a tree, so remove one of the joints", f"'{joint.name}' is left out")
    return tuple(joint for joint in joints if last[joint.child] is joint)


def _require_one_tree(links: list[str], joints: Iterable[Joint], source: str) -> set[str]:
    """Return the links that no path of joints connects to the root, which urdfdom ignores.

    Raises ModelError unless every joint connects two links of the file and all other links form one tree.
    """
    inward: dict[str | None, Joint] = {}
    known: set[str | None] = {*links}
    for joint in joints:
        where = f"{source}: joint '{joint.name}'"
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in known:
                raise ModelError(f"{where}: its {role} link '{link}' is not defined; define it or correct the name")
        inward[joint.child] = joint
    roots = [link for link in links if link not in inward]
    if len(roots) > 1:
        shown = ", ".join(f"'{root}'" for root in roots)
        raise ModelError(f"{source}: {len(roots)} links have no parent: {shown}; join all but one to the others")
    return _in_cycles(links, inward, source, bool(roots))


def _in_cycles(links: Iterable[str], inward: Mapping[str | None, Joint], source: str, rooted_somewhere: bool) -> set[str]:
    """Return the links in cycles of joints, and those that hang on them. Raises ModelError if no link is outside."""
    rooted: set[str | None] = set()
    left_out: set[str] = set()
    for start in links:
        link: str | None = start
        path: dict[str | None, None] = {}  # a dict keeps the order and has a fast lookup
        while link not in rooted and link in inward:
            if link in left_out:
                break
            if link in path:
                members = list(path)
                cycle = ", ".join(f"'{inward[member].name}'" for member in members[members.index(link) :])
                problem = f"a cycle of joints through link '{link}': {cycle}"
                if not rooted_somewhere:
                    raise ModelError(f"{source}: {problem}; remove one of them")
                tolerate(source, problem, "remove one of them", "and its links are left out")
                left_out.update(x for x in members if x is not None)
                break
            path[link] = None
            link = inward[link].parent
        if link in left_out:
            left_out.update(x for x in path if x is not None)
        else:
            rooted.update(path)
    return left_out


# --- unused elements


def _unused(robot: Element, bodies: Iterable[Body], mimic: str) -> Iterator[tuple[str, str]]:
    tags = Counter(child.tag for child in robot)
    if tags["gazebo"]:
        inside = len(robot.findall("gazebo//joint"))
        yield "gazebo elements", f"{tags['gazebo']}" + (f", holding {_joints(inside)}" if inside else "")
    mimics = [joint.get("name", "") for joint in robot.findall("joint") if joint.find("mimic") is not None]
    if mimics and mimic == INDEPENDENT:
        yield "couplings", f"mimic of {', '.join(mimics)}, taken as independent"
    if tags["sensor"]:
        yield "sensors", f"{tags['sensor']}"
    if (version := robot.get("version", VERSIONS[0]).strip()) not in VERSIONS:
        yield "version", f"{shortened(version)}, read as {VERSIONS[-1]}"
    yield from _unused_of_joints(robot)
    if unknown := counted(unknown_elements(robot)):
        yield "unknown elements", unknown
    if unknown := counted(unknown_attributes(robot)):
        yield "unknown attributes", unknown
    yield from unused_inertias(bodies)


def _unused_of_joints(robot: Element) -> Iterator[tuple[str, str]]:
    count: Counter[str] = Counter()
    for joint in robot.findall("joint"):
        ranged = JOINT_TYPES[joint.get("type", "")] in WITH_LIMITS
        for limit in joint.findall("limit"):
            count["range"] += not ranged and ("lower" in limit.attrib or "upper" in limit.attrib)
    if count["range"]:
        yield "position limits of joints without limits", _joints(count["range"])
    of_rates = (
        joint.get("name", "") for joint in robot.findall("joint") for x in joint.findall("limit") if x.attrib.keys() & RATES
    )
    if names := [*dict.fromkeys(of_rates)]:
        yield "limits of acceleration, deceleration and jerk", listed(names)
    for kind, tag in (("safety controllers", "safety_controller"), ("calibrations", "calibration")):
        if elements := robot.findall(f"joint/{tag}"):
            yield kind, _joints(len(elements))


def _joints(count: int) -> str:
    return f"{count} joint" if count == 1 else f"{count} joints"


UNBOUNDED = (-math.inf, math.inf)


def read_actuators(robot: Element, joints: Iterable[Joint], source: str) -> tuple[Actuator, ...]:
    """Return one actuator for each <actuator> element, which is specific to this package, in the file's order."""
    degrees = {joint.name: joint.type.nv for joint in joints}
    elements = named(robot, "actuator", source, own=True).items()
    return tuple(_actuator(name, element, degrees, f"{source}: actuator '{name}'") for name, element in elements)


def _actuator(name: str, element: Element, degrees: dict[str, int], where: str) -> Actuator:
    joint = attribute(element, "joint", where)
    if degrees.get(joint) != 1:
        raise ModelError(f"{where}: '{joint}' is not a joint with one degree of freedom; correct its joint")
    gear, gain = (read_scalar(element, key, where, 1.0) for key in ("gear", "gain"))
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
