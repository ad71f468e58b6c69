"""Joints of an SDF file: a tree of links, and the joints that close loops.

The first joint of a link, in the file's order, belongs to the tree; joints on the world come before others. A further joint
closes a loop, and so does a joint whose child carries its parent.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple
from xml.etree.ElementTree import Element

from ...editing.locking import joint_motion
from ...types import (
    LARGEST,
    ROOT_JOINT,
    Body,
    Coupling,
    Joint,
    JointType,
    Loop,
    LoopType,
    ModelError,
    Pose,
    Vector,
    dot,
    rotate,
)
from ..unsupported import INDEPENDENT, REFUSE, Unsupported, excused
from ..urdf.couplings import Equation, JointMarks, break_circles, exact, following, joints_above, mimic_refused, solve_couplings
from ..urdf.loop_elements import loop_turns
from ..xml import Names, attribute, read_scalar, required
from .axis_elements import JointAxis, has_numbers, has_range, read_axis, says_more
from .elements import text_of, with_values
from .frame_graph import GROUND
from .models import Models, NamedElement

WITH_ONE_AXIS = {
    "revolute": JointType.REVOLUTE,
    "continuous": JointType.CONTINUOUS,
    "prismatic": JointType.PRISMATIC,
    "screw": JointType.REVOLUTE,
}
WITH_TWO_AXES = ("universal", "revolute2")
WITHOUT_AXIS = {"fixed": JointType.FIXED, "ball": JointType.SPHERICAL}
GEARBOX = "gearbox"
KINDS = (*WITH_ONE_AXIS, *WITH_TWO_AXES, *WITHOUT_AXIS, GEARBOX)
LOOP_TYPES = {
    "revolute": LoopType.REVOLUTE,
    "continuous": LoopType.REVOLUTE,
    "prismatic": LoopType.PRISMATIC,
    "universal": LoopType.UNIVERSAL,
    "revolute2": LoopType.UNIVERSAL,
    "fixed": LoopType.WELD,
    "ball": LoopType.SPHERICAL,
}
PARALLEL = 1e-6  # tolerance of 1 - cos for parallel axes of a gearbox; its square root is that for perpendicular axes
AXES = ("axis", "axis2")


class JointEnds(NamedTuple):
    """A joint of the file, and the links that it connects; the ground is ""."""

    part: NamedElement
    kind: str
    parent: str
    child: str


class Mechanism:
    """The joints of all models as a tree with loops and couplings. Names are absolute, the ground is None."""

    def __init__(self, models: Models, mimic: str, unsupported: Unsupported) -> None:
        self.models, self.frames, self.mimic, self.unsupported = models, models.frames, mimic, unsupported
        self.joints: list[Joint] = []
        self.loops: list[Loop] = []
        self.virtual: list[Body] = []
        self.neighbours: list[tuple[str, str]] = []  # links that a joint or a loop connects
        self.lost: list[str] = []  # joints whose limits or forces are ignored
        self.independent: list[str] = []  # joints made independent
        self.ranged: list[str] = []  # joints with limits that are ignored
        self.fixed_by_limits: list[str] = []
        self._equations: dict[str, Equation] = {}
        self._gears: list[Equation] = []
        self._inward: dict[str, Joint] = {}  # joints that carry links and virtual bodies
        self._names = Names(part.name for part in [*models.links, *models.joints])
        self._by_axis: dict[tuple[str, str], str] = {}  # joints by joint of the file and axis
        self._mimics: list[tuple[NamedElement, str, Element]] = []
        static = {part.name for part in models.links if part.scope.static}
        self.on_static = [p.name for p in models.joints if p.scope.static]
        ends = [self._ends(part) for part in models.joints if not part.scope.static]
        closing = _closing(ends, static)
        self._add_roots(static, {e.child for e in ends if e.kind != GEARBOX and e.part.name not in closing})
        for e in ends:
            if e.kind == GEARBOX:
                continue
            if e.parent != GROUND:
                self.neighbours.append((e.parent, e.child))
            if e.part.name in closing:
                self._add_loop(e)
            else:
                self._add_joint(e)
        for part, name, element in self._mimics:
            if self.mimic == REFUSE:
                raise mimic_refused(part.where)
            with excused("so it moves independently"):
                self._add_mimic(part, name, element)
        for e in ends:
            if e.kind == GEARBOX:
                with excused("left out"):
                    self._add_gearbox(e)

    def couplings(self, source: str) -> tuple[Coupling, ...]:
        break_circles(self._equations, source)
        return solve_couplings([*self._equations.values(), *self._gears], JointMarks({}, (), ()))

    def _ends(self, part: NamedElement) -> JointEnds:
        kind = attribute(part.element, "type", part.where).lower()  # as in libsdformat
        if kind not in KINDS:
            raise ModelError(f"{part.where}: unknown type '{kind}'; use one of {', '.join(KINDS)}")
        names = [text_of(required(part.element, role, part.where)) for role in ("parent", "child")]
        parent, child = (self.frames.link(part.scope.absolute(name), part.where) for name in names)
        if child == GROUND:
            raise ModelError(f"{part.where}: its child is the world; exchange parent and child, and reverse its axis")
        if parent == child:
            raise ModelError(f"{part.where}: it connects link '{child}' to itself; correct its parent or its child")
        if kind == "screw":
            kind = "revolute"
            with excused("taken as a hinge"):
                _pitch(part)
                kind = "screw"
        return JointEnds(part, kind, parent, child)

    # --- the tree

    def _add_roots(self, static: set[str], moved: set[str]) -> None:
        """Add joints of roots: static links are fixed to the ground, and links that no joint moves float freely."""
        for part in self.models.links:
            if part.name in static:
                placement = self.frames.pose(part.name, GROUND, part.where)
                name = self._names.new(f"{part.name}_fixed")
                self._append(Joint(name, JointType.FIXED, None, part.name, placement))
            elif part.name not in moved:
                self._append(Joint(self._names.new(part.scope.prefix + ROOT_JOINT), JointType.FLOATING, None, part.name))

    def _append(self, joint: Joint) -> None:
        self.joints.append(joint)
        self._inward[joint.child] = joint

    def _add_joint(self, e: JointEnds) -> None:
        """Add a joint.

        A joint of two axes, and a screw, become two joints with a massless body between them at the child's frame.
        """
        part, parent = e.part, e.parent or None
        placement = self.frames.pose(e.child, e.parent, part.where)
        axes = self._axes(e)
        if e.kind in WITHOUT_AXIS:
            anchor = self._at(e).p if e.kind == "ball" else Pose().p
            self._append(Joint(part.name, WITHOUT_AXIS[e.kind], parent, e.child, placement, anchor=anchor))
            return
        names = [self._names.new(f"{part.name}_{tag}") for tag in AXES] if len(axes) == 2 else [part.name]
        kinds = [WITH_ONE_AXIS.get(e.kind, JointType.REVOLUTE)] * len(axes)
        for name, tag, axis in zip(names, AXES, axes, strict=False):
            self._by_axis[part.name, tag] = name
            if axis.mimic is not None:
                self._mimics.append((part, name, axis.mimic))
        if e.kind == "screw":
            names, axes = [self._names.new(f"{part.name}_slide"), part.name], [JointAxis(axes[0].direction, {}, None), *axes]
            kinds = [JointType.PRISMATIC, *kinds]
            lead = exact(_pitch(part) / (2.0 * math.pi))  # a turn slides by the pitch
            self._gears.append(following(part.name, part.where, names[0], part.name, lead))
        for k, (name, kind, axis) in enumerate(zip(names, kinds, axes, strict=True)):
            child = e.child
            if k + 1 < len(names):
                child = self._names.new(f"{e.child}/{name.removeprefix(part.scope.prefix)}")
                self.virtual.append(Body(child))
            anchor = Pose().p if kind is JointType.PRISMATIC else self._at(e).p
            joint = Joint(name, kind, parent, child, placement, axis.direction, anchor, **axis.numbers)
            if axis.fixed_at is not None and e.kind != "screw" and axis.mimic is None:
                self.fixed_by_limits.append(name)
                joint = Joint(name, JointType.FIXED, parent, child, placement @ joint_motion(joint, (axis.fixed_at,)))
            self._append(joint)
            parent, placement = child, Pose()

    def _at(self, e: JointEnds) -> Pose:
        """Return the joint's frame in the child's frame."""
        return self.frames.pose(e.part.frame, e.child, e.part.where)

    def _axes(self, e: JointEnds) -> list[JointAxis]:
        if e.kind in WITHOUT_AXIS:
            self.lost += [e.part.name] * has_numbers(e.part)
            return []
        ranged = e.kind != "continuous"
        if not ranged and has_range(e.part):
            self.ranged.append(e.part.name)
        tags = AXES if e.kind in WITH_TWO_AXES else AXES[:1]
        return [read_axis(e.part, tag, e.child, self.frames, ranged) for tag in tags]

    # --- loops

    def _add_loop(self, e: JointEnds) -> None:
        part = e.part
        if e.kind not in LOOP_TYPES:
            remedy = "reorder the joints so that another joint closes this loop"
            self.unsupported.refuse(part.where, f"a {e.kind} joint that closes a loop is not supported", remedy)
            return
        at = self._at(e)
        axes = self._axes(e)
        turns = (at.R, at.R)
        if axes:
            first, second = axes[0].direction, axes[1].direction if len(axes) == 2 else None
            if second is not None and abs(dot(first, second)) > math.sqrt(PARALLEL):
                problem = "it closes a loop, and its two axes are not perpendicular, which is not supported"
                self.unsupported.refuse(part.where, problem, "reorder the joints so that another joint closes this loop")
                return
            turns = loop_turns(first, second, part.where)
        there = self.frames.pose(e.child, e.parent, part.where)
        ends, kind = (there @ Pose(turns[0], at.p), Pose(turns[1], at.p)), LOOP_TYPES[e.kind]
        if len(axes) == 1 and axes[0].fixed_at is not None:
            self.fixed_by_limits.append(part.name)
            free = Joint(part.name, WITH_ONE_AXIS[e.kind], None, e.child)
            ends, kind = (ends[0] @ joint_motion(free, (axes[0].fixed_at,)), ends[1]), LoopType.WELD
        elif any(map(says_more, axes)):
            self.lost.append(part.name)
        self.loops.append(Loop(part.name, kind, e.parent or None, e.child, *ends))

    # --- couplings

    def _add_mimic(self, part: NamedElement, name: str, element: Element) -> None:
        """Add a coupling: follower = multiplier × (leader - reference) + offset."""
        if self.mimic == INDEPENDENT:
            self.independent.append(name)
            return
        leader, tag = attribute(element, "joint", part.where), element.get("axis") or AXES[0]
        by_axis = self._by_axis.get((part.scope.absolute(leader), tag))
        if by_axis is None:
            problem = f"it mimics the {tag} of joint '{leader}', which does not exist or closes a loop"
            raise ModelError(f'{part.where}: {problem}; correct the name, or load with mimic="independent"')
        values = with_values(element, part.where)
        defaults = {"multiplier": 1.0, "offset": 0.0, "reference": 0.0}
        multiplier, offset, reference = (exact(read_scalar(values, key, part.where, x)) for key, x in defaults.items())
        self._equations[name] = following(name, part.where, name, by_axis, multiplier, offset - multiplier * reference)

    def _add_gearbox(self, e: JointEnds) -> None:
        """Add the coupling of a gearbox.

        ratio × (angle from the reference body to the parent about <axis>) + (angle to the child about <axis2>) = 0
        """
        part, values = e.part, with_values(e.part.element, e.part.where)
        named = text_of(required(part.element, "gearbox_reference_body", part.where))
        reference = self.frames.link(part.scope.absolute(named), part.where)
        ratio = exact(read_scalar(values, "gearbox_ratio", part.where, 1.0))
        tags = AXES if part.element.find("axis2") is not None else (AXES[0], AXES[0])
        row: dict[str, Fraction] = {}
        turning: list[tuple[str, ...]] = []
        for link, tag, factor in zip((e.parent, e.child), tags, (ratio, Fraction(1)), strict=True):
            axis = read_axis(part, tag, e.child, self.frames)
            if says_more(axis):
                self.lost.append(part.name)
            along = rotate(self.frames.pose(e.child, GROUND, part.where).R, axis.direction)
            signs = self._signs(reference, link, along, part.where)
            turning.append(tuple(signs)[::-1])
            for name, sign in signs.items():
                row[name] = row.get(name, Fraction(0)) + factor * sign
        self._gears.append(Equation(part.name, part.where, {k: x for k, x in row.items() if x}, turning[0], turning[1]))

    def _signs(self, reference: str, link: str, axis: Vector, where: str) -> dict[str, int]:
        """Return the joints from one link to another with axes parallel to the axis, with their sense of rotation, 1 or -1."""
        up, down = joints_above(reference, self._inward), joints_above(link, self._inward)
        common = sum(1 for a, b in zip(reversed(up), reversed(down), strict=False) if a is b)
        path = [(j, -1) for j in up[: len(up) - common]] + [(j, 1) for j in reversed(down[: len(down) - common])]
        signs = {}
        for joint, way in path:
            if joint.type is JointType.FIXED:
                continue
            turned = rotate(self.frames.pose(self._shown(joint.child), GROUND, where).R, joint.axis)
            if joint.type not in (JointType.REVOLUTE, JointType.CONTINUOUS) or abs(dot(turned, axis)) < 1.0 - PARALLEL:
                problem = f"joint '{joint.name}' is between its links, and does not turn about its axis"
                raise ModelError(f"{where}: {problem}; correct its links, its reference body or its axes")
            signs[joint.name] = way if dot(turned, axis) > 0.0 else -way
        return signs

    def _shown(self, body: str) -> str:
        """Return the link itself, or the link to which a massless body belongs."""
        while body not in self.frames:
            body = next(j.child for j in self.joints if j.parent == body)
        return body


def _pitch(part: NamedElement) -> float:
    """Return the length per turn of a screw. The older thread_pitch is turns per length, left-handed."""
    values = with_values(part.element, part.where)
    keys = [key for key in ("screw_thread_pitch", "thread_pitch") if key in values.attrib]
    if not keys:
        return 1.0
    pitch = read_scalar(values, keys[0], part.where)
    if abs(pitch) < 1.0 / LARGEST:
        raise ModelError(f"{part.where}: its {keys[0]} is {f'{pitch:g}' if pitch else 'zero'}; correct it")
    return pitch if keys[0] == "screw_thread_pitch" else -2.0 * math.pi / pitch


def _closing(ends: list[JointEnds], static: set[str]) -> set[str]:
    """Return the joints that close loops, by a forest that grows joint by joint."""
    top = dict.fromkeys(static, GROUND)  # for each link, a link above it

    def root(link: str) -> str:
        while link in top:
            if top[link] in top:
                top[link] = top[top[link]]
            link = top[link]
        return link

    closing = set()
    for e in sorted((e for e in ends if e.kind != GEARBOX), key=lambda e: e.parent != GROUND):
        if e.child in top or root(e.parent) == e.child:
            closing.add(e.part.name)
        else:
            top[e.child] = e.parent
    return closing
