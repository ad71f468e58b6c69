"""URDF files of descriptions, which `reader` reads back unchanged."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from ....names import listed
from ...contact_rules import DEFAULT_SOFTNESS, NeighbourRule
from ...editing.locking import joint_motion
from ...editing.notes import warn
from ...editing.references import D, grounded, moved, named_frames, new_name, on_bodies
from ...types import (
    WORLD,
    Actuator,
    Body,
    Contents,
    Coupling,
    Inertia,
    Joint,
    JointType,
    Loop,
    LoopType,
    ModelError,
    Pose,
    Shape,
    ShapeType,
)
from ..xml import written
from .elements import write_origin

WITH_AXIS = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC, JointType.PLANAR)
WITH_LIMITS = (JointType.REVOLUTE, JointType.PRISMATIC)
KEYS = {ShapeType.SPHERE: ("radius",), ShapeType.CYLINDER: ("radius", "length"), ShapeType.CAPSULE: ("radius", "length")}
WITHOUT_ELEMENT = (ShapeType.ELLIPSOID, ShapeType.PLANE, ShapeType.HEIGHTFIELD)
GRAVITY = Contents("", "", (), ()).gravity


def write_urdf(d: Contents, path: str | os.PathLike[str]) -> None:
    """Write a URDF file from which `read_urdf` reads the same robot.

    URDF has one tree of links, and joints whose axes pass through the origins of their children. The writer therefore adds a
    link for the ground if anything is on it, writes frames as links on fixed joints, and adds a massless link for a joint that
    turns about another point. Names of mesh files are relative to this file if they are below its folder. `read_urdf` reads
    some elements that other programs do not: loops, couplings, marks of independence, actuators, spherical joints, capsules,
    armature, stiffness and rest of <dynamics>, and simulation settings.

    Raises ModelError for closures. Warns about gravity, configurations, the rule for contacts of neighbours, sensors, and
    about shapes and friction that URDF cannot hold.
    """
    if d.closures:
        problem = f"a URDF file cannot hold the closures {listed([c.name for c in d.closures])}, functions in Python"
        raise ModelError(f"{os.fspath(path)}: {problem}; save the description without them, and add them with `with_closure`")
    lost = [*_lost(d)]
    if lost:
        warn(d, f"saved as {os.fspath(path)}, it loses {'; '.join(lost)}")
    ElementTree(robot_element_of(d, Path(path).parent)).write(path, encoding="utf-8", xml_declaration=True)


def _lost(d: Contents) -> Iterator[str]:
    if d.gravity != GRAVITY:
        yield f"gravity {d.gravity}: give it to `load`"
    if d.configurations or d.disabled_collisions:
        named = f" {listed([c.name for c in d.configurations])}" if d.configurations else ""
        yield f"configurations{named} and disabled collisions: save an .srdf file, too"
    if d.contact_pairs or (d.neighbours is not NeighbourRule.JOINED and any(s.collision for s in d.shapes)):
        pairs = [" and ".join(pair.shapes) for pair in d.contact_pairs]
        yield f"which neighbours touch{f', and the contact pairs {listed(pairs)}' if pairs else ''}"
    touching = [s.softness for s in d.shapes if s.collision]
    softness = [x for j in d.joints for x in (j.limit_softness, j.dry_friction_softness)]
    softness += [loop.softness for loop in d.loops] + [c.softness for c in d.couplings]
    if any(x != DEFAULT_SOFTNESS for x in (*touching, *softness)):
        yield "softness of contacts, limits, dry friction, loops and couplings"
    if sticky := [s.name for s in d.shapes if s.collision and (s.adhesion or any(s.surface_velocity))]:
        yield f"adhesion and velocities of the surfaces of the shapes {listed(sticky)}"
    if nonlinear := [j.name for j in d.joints if j.is_nonlinear]:
        yield f"springs and dampers that are not linear, of the joints {listed(nonlinear)}: save it as .xml"
    if posed := [j.name for j in d.joints if j.rest_pose]:
        yield f"the poses at which springs of the floating joints {listed(posed)} are at rest: save it as .xml"
    if limited := [j.name for j in d.joints if j.type is JointType.SPHERICAL and j.upper < math.inf]:
        yield f"limits of the spherical joints {listed(limited)}: save it as .xml"
    if d.tendons:
        yield f"the tendons {listed([t.name for t in d.tendons])}"
    if others := [a.name for a in d.actuators if not is_plain(a)]:
        yield f"the actuators {listed(others)}, which act on tendons or at frames, or not linearly: save it as .xml"
    if names := [b.name for b in d.bodies if b.gravity_compensation]:
        yield f"the gravity compensation of the bodies {listed(names)}"
    if names := [j.name for j in d.joints if j.effort_range is not None]:
        yield f"the effort ranges of the joints {listed(names)}, of which the greater is in the file"
    if d.cameras:
        yield f"the cameras {listed([c.name for c in d.cameras])}"
    if d.fluid is not None:
        yield f"the fluid that it moves in ({d.fluid.density:g} kg/m³, {d.fluid.viscosity:g} Pa s)"
    if d.sensors:
        yield f"sensors {listed([s.name for s in d.sensors])}"
    for kind, names in _lost_shapes(d.shapes).items():
        yield f"{kind} {listed(names)}"


def is_plain(a: Actuator) -> bool:
    """Return whether a drive acts on a joint by a linear law."""
    return a.joint is not None and not (a.at or a.activation or a.muscle or a.servo or a.delay or any(a.slopes))


def robot_element_of(d: Contents, folder: Path) -> Element:
    """Return the whole file, for a folder to which names of mesh files are relative."""
    d = as_links(d)
    robot = Element("robot", name=d.name)
    shapes: dict[str | None, list[Element]] = {}
    for shape in d.shapes:
        shapes.setdefault(shape.body, []).extend(_shapes_of(shape, folder))
    for body in d.bodies:
        link = _link(robot, body)
        link.extend(shapes.get(body.name, ()))
    followers = {c.joint: c for c in d.couplings if _is_mimic(c)}
    marks = dict.fromkeys(d.independent, "true") | dict.fromkeys(d.dependent, "false")
    for joint in d.joints:
        element = _joint(robot, joint)
        if joint.name in marks:
            element.set("independent", marks[joint.name])
        if joint.name in followers:
            c = followers[joint.name]
            ((leader, (ratio, *_)),) = c.terms
            SubElement(element, "mimic", joint=leader, multiplier=written(ratio), offset=written(c.offset))
    for loop in d.loops:
        _loop(robot, loop)
    for c in d.couplings:
        if not _is_mimic(c):
            element = SubElement(robot, "coupling", name=c.name, joint=c.joint, offset=written(c.offset))
            for leader, coefficients in c.terms:
                SubElement(element, "term", joint=leader, coefficients=written(*coefficients))
    for a in d.actuators:
        if not is_plain(a):
            continue
        numbers = {"gear": (a.gear,), "gain": (a.gain,), "bias": a.bias, "control": a.control, "force": a.force}
        own = {"name": a.name, "joint": str(a.joint)} | {key: written(*x) for key, x in numbers.items()}
        SubElement(robot, "actuator", own)
    step = {} if d.timestep is None else {"timestep": written(d.timestep)}
    if simulation := step | ({} if d.integrator is None else {"integrator": d.integrator}):
        SubElement(robot, "simulation", simulation)
    indent(robot)
    return robot


# --- links and joints


def _link(robot: Element, body: Body) -> Element:
    link = SubElement(robot, "link", name=body.name)
    if body.inertia != Inertia():
        mass, center, (xx, xy, xz, yy, yz, zz) = body.inertia
        inertial = SubElement(link, "inertial")
        SubElement(inertial, "origin", xyz=written(*center), rpy="0 0 0")
        SubElement(inertial, "mass", value=written(mass))
        entries = {"ixx": xx, "ixy": xy, "ixz": xz, "iyy": yy, "iyz": yz, "izz": zz}
        SubElement(inertial, "inertia", {key: written(x) for key, x in entries.items()})
    return link


def _joint(robot: Element, j: Joint) -> Element:
    element = SubElement(robot, "joint", name=j.name, type=str(j.type))
    write_origin(element, j.placement)
    SubElement(element, "parent", link=str(j.parent))
    SubElement(element, "child", link=j.child)
    if j.type in WITH_AXIS:
        SubElement(element, "axis", xyz=written(*j.axis))
    if j.type in WITH_LIMITS:  # other programs require all of them
        numbers = {"lower": j.lower, "upper": j.upper, "effort": j.effort, "velocity": j.velocity}
        SubElement(element, "limit", {key: written(x) for key, x in numbers.items()})
    elif math.isfinite(min(j.effort, j.velocity)):
        SubElement(element, "limit", effort=written(j.effort), velocity=written(j.velocity))
    dynamics = {
        "damping": j.damping, "friction": j.dry_friction, "armature": j.armature, "stiffness": j.stiffness, "rest": j.rest
    }  # fmt: skip
    if any(dynamics.values()):
        SubElement(element, "dynamics", {key: written(x) for key, x in dynamics.items() if x or key in ("damping", "friction")})
    return element


# --- shapes


def _shapes_of(shape: Shape, folder: Path) -> Iterator[Element]:
    """Write a <visual>, a <collision>, or both; nothing for a shape that URDF cannot express."""
    if _has_element(shape):
        roles = (("visual", shape.visual), ("collision", shape.collision))
        yield from (_shape(role, shape, folder) for role, there in roles if there)


def _has_element(shape: Shape) -> bool:
    return shape.type not in WITHOUT_ELEMENT and (shape.type is not ShapeType.MESH or shape.path is not None)


def _shape(role: str, shape: Shape, folder: Path) -> Element:
    element = Element(role, name=shape.name)
    write_origin(element, shape.placement)
    geometry = SubElement(element, "geometry")
    if shape.type is ShapeType.MESH:
        SubElement(geometry, "mesh", filename=_filename(str(shape.path), folder), scale=written(*shape.size))
    elif shape.type is ShapeType.BOX:
        SubElement(geometry, "box", size=written(*shape.size))
    else:
        numbers = zip(KEYS[shape.type], shape.size, strict=True)
        SubElement(geometry, str(shape.type), {key: written(x) for key, x in numbers})
    if shape.color is not None:
        rgba = written(*shape.color)  # materials of the same name are the same, so the name contains the colour
        SubElement(SubElement(element, "material", name=f"rgba {rgba}"), "color", rgba=rgba)
    return element


def _filename(path: str, folder: Path) -> str:
    """Return the path relative to the folder if the file is below it, otherwise the path as it is."""
    if os.path.isabs(path):
        relative = os.path.relpath(path, os.path.abspath(folder))
        return path if relative.startswith(os.pardir) else relative
    return path


def _lost_shapes(shapes: Iterable[Shape]) -> dict[str, list[str]]:
    """Return names of shapes with properties that URDF cannot express, by property."""
    lost: dict[str, list[str]] = {}
    for s in shapes:
        if s.type is ShapeType.MESH and s.path is None:
            lost.setdefault("meshes without a file", []).append(s.name)
        elif s.type in WITHOUT_ELEMENT:
            lost.setdefault(f"{s.type}s", []).append(s.name)
        elif not s.visual and not s.collision:
            lost.setdefault("shapes that neither show nor touch", []).append(s.name)
        elif s.friction is not None:
            lost.setdefault("friction of the shapes", []).append(s.name)
    return lost


# --- loops and couplings


def _loop(robot: Element, loop: Loop) -> None:
    element = SubElement(robot, "loop", name=loop.name, type=str(loop.type))
    ends = (("predecessor", loop.predecessor, loop.predecessor_frame), ("successor", loop.successor, loop.successor_frame))
    for role, link, frame in ends:
        write_origin(SubElement(element, role, link=str(link)), frame)
    if loop.type not in (LoopType.SPHERICAL, LoopType.WELD):
        SubElement(element, "axis", xyz="0 0 1")


def _is_mimic(c: Coupling) -> bool:
    """Return whether one joint follows another in proportion."""
    return len(c.terms) == 1 and not any(c.terms[0][1][1:]) and c.terms[0][1][0] != 0.0


# --- links and joints that URDF can express: one root, axes through origins, frames as links


TURNING_ABOUT_A_POINT = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.SPHERICAL, JointType.FLOATING, JointType.PLANAR)


def as_links(d: D) -> D:
    """Return the same robot with bodies and joints that are the links and joints of a URDF file."""
    return _frames_as_links(_one_root(_axes_through_origins(_zeros_at_placements(on_bodies(grounded(d))))))


def _zeros_at_placements(d: D) -> D:
    """Return the description with children at `placement` where their coordinate is zero."""

    def at_zero(j: Joint) -> Joint:
        return replace(j, placement=j.placement @ joint_motion(j, (0.0,)), zero=0.0)

    return replace(d, joints=tuple(at_zero(j) if j.zero and j.type.nq == 1 else j for j in d.joints))


def _axes_through_origins(d: D) -> D:
    """Return the description without anchors: a joint with an anchor moves a link there, and a fixed joint leads to the child.

    A hidden body is itself moved there.
    """
    bodies, joints = [*d.bodies], [*d.joints]
    for k, j in enumerate(d.joints):
        if j.type not in TURNING_ABOUT_A_POINT or not any(j.anchor):
            continue
        there, back = Pose(p=j.anchor), Pose(p=j.anchor).inverse()
        at = replace(joints[k], placement=joints[k].placement @ there, anchor=(0.0, 0.0, 0.0))
        if j.child in d.virtual:
            joints[k] = at
            joints = [replace(x, placement=back @ x.placement) if x.parent == j.child else x for x in joints]
        else:
            link = new_name(f"{j.child}_at_{j.name}", (b.name for b in bodies))
            bodies.insert(bodies.index(next(b for b in bodies if b.name == j.child)), Body(link))
            joints[k] = replace(at, child=link)
            name = new_name(f"{j.name}_anchor", (x.name for x in joints))
            joints.append(Joint(name, JointType.FIXED, link, j.child, back))
    return replace(d, bodies=tuple(bodies), joints=tuple(joints))


def _one_root(d: D) -> D:
    """Return the description with a link for the ground, unless one root is all that is on the ground."""
    children = {j.child for j in d.joints}
    roots = [b.name for b in d.bodies if b.name not in children]
    ends = [end for loop in d.loops for end in (loop.predecessor, loop.successor)]
    on_ground = [j.parent for j in d.joints] + [f.body for f in d.frames] + [s.body for s in d.shapes] + ends
    if len(roots) == 1 and None not in on_ground:
        return d
    ground = new_name(WORLD, (b.name for b in d.bodies))
    taken = [j.name for j in d.joints]
    fixed = tuple(Joint(new_name(f"{root}_to_{ground}", taken), JointType.FIXED, ground, root) for root in roots)
    on = moved(d, lambda body, pose: (body or ground, pose))
    return replace(on, bodies=(Body(ground), *d.bodies), joints=(*fixed, *on.joints))


def _frames_as_links(d: D) -> D:
    own = [*named_frames(d)][len(d.bodies) - len(d.virtual) :]
    taken = {j.name for j in d.joints}
    names: list[str] = []
    for f in own:
        names.append(new_name(f"{f.name}_fixed", taken.union(names)))
    joints = (Joint(name, JointType.FIXED, f.body, f.name, f.placement) for name, f in zip(names, own, strict=True))
    return replace(d, bodies=(*d.bodies, *(Body(f.name) for f in own)), joints=(*d.joints, *joints), frames=())
