"""Loops and couplings of a URDF file (`<loop>`, `<coupling>`, `<mimic>`), and the joints that it marks as independent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

from ....spatial.elementary import norm
from ...types import Coupling, Joint, Loop, LoopType, Matrix, ModelError, Pose, Vector, add, dot, scale, transpose
from ..xml import attribute, named, only, required
from .couplings import (
    JointMarks,
    Paths,
    coupling_equations,
    mimic_equations,
    moves,
    solve_couplings,
    written_couplings,
)
from .elements import read_axis, read_origin

LOOP_TYPES = {str(t): t for t in LoopType} | {
    "continuous": LoopType.REVOLUTE,
    "ball": LoopType.SPHERICAL,
    "fixed": LoopType.WELD,
}
WITHOUT_AXIS = (LoopType.SPHERICAL, LoopType.WELD)
DRAFTS = {("constraint", "position"): ("loop", "spherical"), ("constraint", "rolling"): ("coupling", "rolling")}
"""The element and type in URDF+ for those of its draft of early 2024, which has the same ends and ratio."""


class Constraints(NamedTuple):
    """All contents of a `Description` besides the tree; `unused` describes those without effect."""

    loops: tuple[Loop, ...]
    couplings: tuple[Coupling, ...]
    independent: tuple[str, ...]
    dependent: tuple[str, ...]
    unused: tuple[tuple[str, str], ...]


def read_constraints(robot: Element, joints: Sequence[Joint], source: str, mimics: bool) -> Constraints:
    """Read loops and couplings, for joints that are known to be a tree of the file's links; <mimic> only on request.

    Joints in a loop or a coupling are independent or dependent as the file marks them. In a file without marks, joints in a
    loop with a <transmission> are independent. Couplings with <term>s name their followers.
    """
    _rename_drafts(robot)
    paths = Paths(named(robot, "link", source), joints)
    loops: list[Loop] = []
    looped: set[str] = set()
    for name, element in named(robot, "loop", source, own=True).items():
        where = f"{source}: loop '{name}'"
        looped.update(joint.name for path in paths.between(element, where) for joint in path)
        loops.append(_loop(name, element, paths, where))
    equations = mimic_equations(robot, joints, source) if mimics else []
    equations += coupling_equations(robot, paths, source)
    written = _marks(robot, source)
    actuated = {e.get("name", "") for e in robot.findall("transmission/joint")} & looped if not written else set()
    terms = written_couplings(robot, joints, source)
    couplings = (*solve_couplings(equations, JointMarks(written, actuated, looped)), *terms)
    chosen = actuated - {coupling.joint for coupling in couplings}
    inside = looped | {joint for e in equations for joint in e.leaders + e.followers}
    inside |= {name for c in terms for name in (c.joint, *dict(c.terms))}
    kept = {name: mark for name, mark in (written or dict.fromkeys(chosen, True)).items() if name in inside}
    return Constraints(
        tuple(loops),
        couplings,
        tuple(joint.name for joint in joints if kept.get(joint.name) is True),
        tuple(joint.name for joint in joints if kept.get(joint.name) is False),
        tuple(_unused(robot, joints, chosen, len(written.keys() - inside))),
    )


def _rename_drafts(robot: Element) -> None:
    """Change each <constraint> of URDF+'s draft into its present element."""
    for element in robot:
        final = DRAFTS.get((element.tag, element.get("type", "")))
        if final is not None and element.find("predecessor") is not None:
            element.tag, kind = final
            element.set("type", kind)


def _marks(robot: Element, source: str) -> Mapping[str, bool]:
    """Return the value of the attribute `independent` of each joint that has it."""
    words = {"true": True, "1": True, "false": False, "0": False}
    marks = {}
    for name, joint in named(robot, "joint", source).items():
        if (text := joint.get("independent")) is not None:
            if text.strip().lower() not in words:
                raise ModelError(f"{source}: joint '{name}': 'independent' is '{text}'; write \"true\" or \"false\"")
            marks[name] = words[text.strip().lower()]
    return marks


def _unused(robot: Element, joints: Sequence[Joint], chosen: set[str], idle_marks: int) -> Iterator[tuple[str, str]]:
    idle = [t for t in robot.findall("transmission") if chosen.isdisjoint(e.get("name", "") for e in t.findall("joint"))]
    if idle:
        yield "transmissions", f"{len(idle)}"
    if idle_marks:
        yield "marks of independence", f"{idle_marks} joint{'s' * (idle_marks > 1)} in no loop or coupling"
    fixed = {joint.name for joint in joints if not moves(joint)}
    if still := [e.get("name", "") for e in robot.findall("joint") if e.get("name") in fixed and e.find("mimic") is not None]:
        yield "mimic of fixed joints", ", ".join(still)


# --- loops


def _loop(name: str, element: Element, paths: Paths, where: str) -> Loop:
    """Return a loop joint, with its frames rotated so that their axes are as `LoopType` says.

    The axis is given in the frames of both ends, and so is the second axis of a universal joint.
    """
    written = attribute(element, "type", where)
    if written not in LOOP_TYPES:
        raise ModelError(f"{where}: unknown type '{written}'; use one of {', '.join(LOOP_TYPES)}")
    kind = LOOP_TYPES[written]
    turns = _turns(kind, element, where)
    roles = ("predecessor", "successor")
    links = [paths.link(element, role, where) for role in roles]
    frames = [read_origin(required(element, role, where), where) @ Pose(turn) for role, turn in zip(roles, turns, strict=True)]
    return Loop(name, kind, links[0], links[1], frames[0], frames[1])


def _turns(kind: LoopType, element: Element, where: str) -> tuple[Matrix, Matrix]:
    """Return the rotations from the frames in the file to those with the axis along z, at both ends."""
    if kind in WITHOUT_AXIS:
        return Pose().R, Pose().R
    two = kind == LoopType.UNIVERSAL and only(element, "axis2", where) is not None
    return loop_turns(read_axis(element, where), read_axis(element, where, "axis2") if two else None, where)


def loop_turns(axis: Vector, second: Vector | None, where: str) -> tuple[Matrix, Matrix]:
    """Return the axes of the frames at both ends of a loop, as `LoopType` says.

    `second` is the second axis of a universal joint, if any.
    """
    if second is None:
        return along_z(axis), along_z(axis)
    if norm(*_across(second, axis)) < 1e-6:
        raise ModelError(f"{where}: axis and axis2 are parallel; give a universal joint two directions")
    x, z = _unit(_across(second, axis)), _unit(_across(axis, second))
    return _frame(x, axis), _frame(second, z)


def along_z(axis: Vector) -> Matrix:
    """Return the rotation by the least angle whose z axis is this unit vector; for -z, half a turn about x."""
    x, y, z = axis
    if z < 0.0:
        a, b, c = along_z(scale(-1.0, axis))  # 1 + z is near zero here
        return (a[0], -a[1], -a[2]), (b[0], -b[1], -b[2]), (c[0], -c[1], -c[2])
    k = 1.0 / (1.0 + z)
    return (1.0 - k * x * x, -k * x * y, x), (-k * x * y, 1.0 - k * y * y, y), (-x, -y, z)


def _frame(x: Vector, z: Vector) -> Matrix:
    """Return the rotation with these axes, which are perpendicular unit vectors."""
    y = (z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0])
    return transpose((x, y, z))


def _across(v: Vector, axis: Vector) -> Vector:
    """Return the part of a vector that is perpendicular to a unit vector."""
    return add(v, scale(-dot(v, axis), axis))


def _unit(v: Vector) -> Vector:
    return scale(1.0 / norm(*v), v)
