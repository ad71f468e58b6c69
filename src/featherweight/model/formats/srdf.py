"""SRDF files, read and written, which complement a URDF file: named configurations, and links whose collisions are ignored."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from ...names import listed
from ...spatial.elementary import cos, sin
from ..description import Description
from ..editing.notes import warn
from ..types import ROOT_JOINT, WORLD, Configuration, Contents, JointType, ModelError
from .robot_source import RobotInput, open_source
from .unsupported import excused, tolerate
from .xml import attribute, read_numbers

USED = {"group_state", "disable_collisions", "disable_default_collisions", "enable_collisions", "virtual_joint"}


def with_srdf(description: Description, given: RobotInput) -> Description:
    """Return the description with the configurations and the disabled collisions of an SRDF file, or of its text, added.

    A `<group_state>` gives the coordinates of the joints that it names: one number for one coordinate, (x, y, angle) or (x, y,
    cos, sin) for a planar joint, a quaternion (x, y, z, w) for a spherical joint, position and quaternion for a floating
    joint. `root_joint`, and the file's `<virtual_joint>`, are the free-flyer of base="floating". If several groups have states
    of the same name, the states are called group/name. `unused` lists the file's data on unknown joints and links and on fixed
    joints, and all its other elements.

    Raises ModelError, which names file and element, for a damaged file and for coordinates that do not match a joint. Raises
    OSError for a file that cannot be opened.
    """
    file = open_source(given)
    source, robot = file.name, file.root
    if robot.tag != "robot":
        problem = f"the root element is <{robot.tag}>, not <robot>, so that this is not an SRDF file"
        raise ModelError(f"{source}: {problem}; give the one that belongs to the robot")
    unused: dict[str, Counter[str]] = {}
    configurations = tuple(_configurations(robot, description, source, unused))
    disabled = tuple(_disabled(robot, {b.name for b in description.bodies}, source, unused))
    unused["SRDF elements"] = Counter(element.tag for element in robot if element.tag not in USED)
    entries = ((kind, ", ".join(f"{name} ({n})" for name, n in names.items())) for kind, names in unused.items() if names)
    return replace(
        description,
        unused=(*description.unused, *entries),
        configurations=(*description.configurations, *configurations),
        disabled_collisions=tuple(dict.fromkeys((*description.disabled_collisions, *disabled))),
    )


# --- group states


def _configurations(
    robot: Element, description: Description, source: str, unused: dict[str, Counter[str]]
) -> Iterator[Configuration]:
    types = {j.name: j.type for j in description.joints}
    roots = {ROOT_JOINT, *(joint.get("name", "") for joint in robot.findall("virtual_joint"))} - types.keys()
    states = robot.findall("group_state")
    often = Counter(state.get("name") for state in states)
    taken = {c.name for c in description.configurations}
    for state in states:
        name = attribute(state, "name", f"{source}: <group_state>")
        if often[name] > 1:
            name = f"{state.get('group', '')}/{name}"
        where = f"{source}: group_state '{name}'"
        if name in taken:
            tolerate(where, "another configuration has this name", "rename one of them", "left out")
            continue
        taken.add(name)
        coordinates: dict[str, tuple[float, ...]] = {}
        for joint, values in _joints(state, where):
            if joint in coordinates:
                tolerate(where, f"joint '{joint}' has two values", "remove one", "the first counts")
                continue
            if joint in roots and len(values) == JointType.FLOATING.nq:
                coordinates[ROOT_JOINT] = values
            elif joint not in types:
                unused.setdefault("configurations of unknown joints", Counter())[joint] += 1
            elif types[joint] is JointType.FIXED:
                unused.setdefault("configurations of fixed joints", Counter())[joint] += 1
            else:
                with excused("left out"):
                    coordinates[joint] = _of_joint(types[joint], values, f"{where}: joint '{joint}'")
        yield Configuration(name, tuple(coordinates.items()))


def _joints(state: Element, where: str) -> Iterator[tuple[str, tuple[float, ...]]]:
    for joint in state.findall("joint"):
        with excused("left out"):
            name = attribute(joint, "name", where)
            yield name, tuple(read_numbers(joint, "value", f"{where}: joint '{name}'"))


def _of_joint(kind: JointType, values: tuple[float, ...], where: str) -> tuple[float, ...]:
    if kind is JointType.PLANAR and len(values) == kind.nv:
        x, y, angle = values
        values = (x, y, cos(angle), sin(angle))
    if len(values) != kind.nq:
        raise ModelError(f"{where}: 'value' has {len(values)} numbers; a {kind} joint needs {kind.nq}")
    return values


# --- collisions


def _disabled(robot: Element, links: set[str], source: str, unused: dict[str, Counter[str]]) -> Iterator[tuple[str, str]]:
    """Yield pairs of links without collisions.

    A link whose collisions are disabled by default is in all pairs, except those that are enabled.
    """
    known: Mapping[str, list[tuple[str, str]]] = {tag: [] for tag in ("disable_collisions", "enable_collisions")}
    for tag, pairs in known.items():
        for element in robot.findall(tag):
            where = f"{source}: <{tag}>"
            pair = attribute(element, "link1", where), attribute(element, "link2", where)
            if unknown := [link for link in pair if link not in links | {WORLD}]:
                unused.setdefault("collisions of unknown links", Counter()).update(unknown)
            else:
                pairs.append(pair)
    enabled = {frozenset(pair) for pair in known["enable_collisions"]}
    for element in robot.findall("disable_default_collisions"):
        link = attribute(element, "link", f"{source}: <{element.tag}>")
        yield from ((link, other) for other in sorted(links - {link}) if frozenset((link, other)) not in enabled)
    yield from (pair for pair in known["disable_collisions"])


WHOLE = "whole_body"  # the group of all configurations


def write_srdf(d: Contents, path: str | os.PathLike[str]) -> None:
    """Write an SRDF file, which `load(..., srdf=path)` reads beside the robot's file.

    It has what URDF cannot express: named configurations and disabled collisions. Warns about controls, which SRDF cannot hold.
    """
    if lost := [c.name for c in d.configurations if c.controls]:
        warn(d, f"saved as {os.fspath(path)}, it loses the controls of the configurations {listed(lost)}")
    robot = Element("robot", name=d.name)
    for c in d.configurations:
        state = SubElement(robot, "group_state", name=c.name, group=WHOLE)
        for joint, values in c.coordinates:
            SubElement(state, "joint", name=joint, value=" ".join(map(repr, values)))
    for a, b in d.disabled_collisions:
        SubElement(robot, "disable_collisions", link1=a or WORLD, link2=b or WORLD)
    indent(robot)
    ElementTree(robot).write(path, encoding="unicode", xml_declaration=True)
