"""MJCF files of descriptions, for `read_mjcf` and for MuJoCo."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from ....editing.joint_types import zero_position
from ....editing.locking import joint_motion
from ....editing.notes import warn
from ....editing.references import supports
from ....types import EXPLICIT_EULER, START, Camera, CameraMode, Contents, Frame, Joint, JointType, ModelError, Pose, Shape
from ...xml import written
from .as_bodies import Limb, as_bodies, limbs, without_world
from .contacts import write_contacts
from .equality import Equalities
from .geoms import Geoms, place, soften
from .inertials import Inertials
from .losses import Losses
from .sensors import write_sensors
from .tendons import DriveElements, write_coefficients

INTEGRATORS = {"euler": "Euler", EXPLICIT_EULER: "Euler", "rk4": "RK4", "implicit": "implicit", "implicitfast": "implicitfast"}
KINDS = {JointType.FLOATING: "free", JointType.SPHERICAL: "ball", JointType.PRISMATIC: "slide"}  # others are hinges

SAME = 1e-12  # difference of equal poses, due to rounding
DEEPEST = 480  # deepest nesting of bodies that MuJoCo reads


def write_mjcf(d: Contents, path: str | os.PathLike[str]) -> None:
    """Write an MJCF file from which `read_mjcf` reads the same robot, and which MuJoCo reads.

    MJCF has nested bodies, and only bodies on the ground may have a free joint. Planar joints, and free joints on other
    bodies, therefore become slides with a hinge or a ball joint; fixed joints have no names. The configuration `qpos0` is the
    pose of the bodies in the file; all others are keyframes. Frames become sites, loops become welds, and excludes make MuJoCo
    exclude the neighbours that the description excludes. Names of mesh files are relative to this file if they are below its
    folder.

    Warns (ModelWarning) about all contents that the file changes or cannot hold, by name. Raises ModelError for bodies that
    are nested deeper than MuJoCo reads, or not connected to the ground.
    """
    lost = Losses()
    root = mjcf_element_of(d, Path(path).parent, lost)
    if text := lost.text():
        warn(d, f"saved as {os.fspath(path)}, it loses or changes {text}")
    ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def mjcf_element_of(d: Contents, folder: Path, lost: Losses) -> Element:
    """Return the whole file, for a folder to which names of mesh files are relative."""
    d = without_world(d, lost)
    supports(d)  # raises ModelError for unconnected bodies
    words = as_bodies(d, lost)
    file = [*limbs(words)]
    root = Element("mujoco", model=d.name)
    SubElement(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    option = _option(root, d, lost)
    still: set[str | None] = {None}
    for limb in file:
        still |= {limb.body.name} if limb.parent in still and not limb.joints else set()
    geoms = Geoms(root, folder, words, still, lost)
    names = lost.unique([f.name for f in words.frames], "frames")
    bodies = _bodies(root, words, file, geoms, names, lost)
    flags = {"filterparent": "disable"} if write_contacts(root, d, file, geoms, lost) else {}
    if d.integrator == EXPLICIT_EULER:
        flags["eulerdamp"] = "disable"
    if flags:
        SubElement(option, "flag", flags)
    Equalities(root, {j.name: j.zero for j in words.joints}, lost).write(words)
    drives = DriveElements(words, bodies, names, lost).write(root)
    _keyframes(root, words, [j for limb in file for j in limb.joints], drives, lost)
    write_sensors(root, words, lost)
    for name in (*d.independent, *d.dependent):
        lost.add("marks of independence of the joints {}", name)
    for empty in [x for x in root if not len(x) and not x.attrib]:
        root.remove(empty)
    indent(root)
    return root


def _option(root: Element, d: Contents, lost: Losses) -> Element:
    option = SubElement(root, "option", gravity=written(*d.gravity))
    if d.timestep is not None:
        option.set("timestep", written(d.timestep))
    if d.integrator in INTEGRATORS:
        option.set("integrator", INTEGRATORS[d.integrator])
    elif d.integrator is not None:
        lost.add("the integrator {}", d.integrator)
    if d.cone is not None:
        option.set("cone", d.cone)
    if d.impratio != 1.0:
        option.set("impratio", written(d.impratio))
    if d.noslip:
        option.set("noslip_iterations", f"{d.noslip}")
    if d.fluid is not None:
        option.set("density", written(d.fluid.density))
        option.set("viscosity", written(d.fluid.viscosity))
        if any(d.fluid.wind):
            option.set("wind", written(*d.fluid.wind))
    return option


# --- bodies


def _bodies(
    root: Element, d: Contents, file: Sequence[Limb], geoms: Geoms, names: Sequence[str], lost: Losses
) -> dict[str | None, Element]:
    """Write bodies with all their elements, and return the bodies' elements; frames have these names."""
    world = SubElement(root, "worldbody")
    elements: dict[str | None, Element] = {None: world}
    depths: dict[str | None, int] = {None: 0}
    inertials = Inertials(file, lost)
    eyes = lost.unique([c.name for c in d.cameras], "cameras")
    drawn, marked, seen_from = _by_body(d.shapes), _by_body(d.frames), _by_body(d.cameras)

    def furnish(body: str | None) -> None:
        for k in drawn.get(body, ()):
            geoms.write(elements[body], k)
        for k in marked.get(body, ()):
            place(SubElement(elements[body], "site", name=names[k]), Pose.of(d.frames[k].placement, names[k]))
        for k in seen_from.get(body, ()):
            _camera(SubElement(elements[body], "camera", name=eyes[k]), d.cameras[k])

    furnish(None)
    for limb in file:
        name = limb.body.name
        depths[name] = depths[limb.parent] + 1
        if depths[name] > DEEPEST:
            problem = f"body {name!r} lies in {DEEPEST} others, more than MuJoCo reads"
            raise ModelError(f"{d.source}: {problem}; save the robot as .urdf, or lock joints")
        elements[name] = element = SubElement(elements[limb.parent], "body", name=name)
        place(element, limb.placement)
        if limb.body.gravity_compensation:
            element.set("gravcomp", written(limb.body.gravity_compensation))
        inertials.write(element, name)
        for j in limb.joints:
            _joint(element, j, lost)
        furnish(name)
    for j in d.joints:
        if j.type is JointType.FIXED and j.name != f"{j.child}_fixed":
            lost.add("the names of the fixed joints {}", j.name)
    return elements


def _by_body(elements: Sequence[Shape | Frame | Camera]) -> dict[str | None, list[int]]:
    """Return the numbers of the elements on each body."""
    found: dict[str | None, list[int]] = {}
    for k, x in enumerate(elements):
        found.setdefault(x.body, []).append(k)
    return found


# --- cameras


def _camera(element: Element, c: Camera) -> None:
    """Write a camera into its element, which has its name."""
    place(element, c.placement)
    if c.mode is not CameraMode.FIXED:
        element.set("mode", c.mode)
    if c.has_target:
        element.set("target", "world" if c.target is None else c.target)
    if c.resolution is not None:
        element.set("resolution", written(*c.resolution))
    if c.orthographic:
        element.set("projection", "orthographic")
    if c.sensor is not None:
        for key, value in zip(("sensorsize", "focal", "principal"), c.sensor, strict=True):
            element.set(key, written(*value))
    else:
        element.set("fovy", written(c.field_of_view if c.orthographic else math.degrees(c.field_of_view)))


# --- joints


def _joint(body: Element, j: Joint, lost: Losses) -> None:
    element = SubElement(body, "joint", name=j.name, type=KINDS.get(j.type, "hinge"))
    free, scalar = j.type is JointType.FLOATING, j.type.nq == 1
    if any(j.anchor) and j.type is not JointType.PRISMATIC:
        element.set("pos", written(*j.anchor))
    if scalar:
        element.set("axis", written(*j.axis))
        if j.zero:
            element.set("ref", written(j.zero))
        _limits(element, j, lost)
    if j.drive_compensates:
        element.set("actuatorgravcomp", "true")
    springs = j.stiffness, *j.stiffness_poly
    write_coefficients(element, damping=(j.damping, *j.damping_poly), frictionloss=(j.dry_friction,))
    if not free:
        write_coefficients(element, armature=(j.armature,))
    elif j.armature:
        lost.add("armature of the free joints {}", j.name)
    if not free or _rests_where_it_starts(j):
        write_coefficients(element, stiffness=springs)
    elif j.has_spring:
        lost.add("springs of the free joints {}, which are at rest elsewhere than where the file puts them", j.name)
    if scalar and j.has_spring:
        element.set("springref", written(j.rest))
    ball = j.type is JointType.SPHERICAL
    if ball and 0.0 < j.upper < math.inf:
        element.set("range", written(0.0, j.upper))
    if not scalar and (math.isfinite(min(-j.lower, j.effort)) or (not (ball and j.upper > 0.0) and math.isfinite(j.upper))):
        lost.add("limits and efforts of the joints {}, which have several degrees of freedom", j.name)
    soften(element, j.limit_softness, "limit")
    soften(element, j.dry_friction_softness, "friction")
    if 0.0 < j.velocity < math.inf:
        lost.add("velocity limits of the joints {}", j.name)


def _rests_where_it_starts(j: Joint) -> bool:
    """Return whether the spring of a free joint is at rest at its body's pose in the file, as MuJoCo's are."""
    T, start = joint_motion(j, j.rest_pose or zero_position(j.type)), j.placement
    pairs = zip((*T.p, *(x for row in T.R for x in row)), (*start.p, *(x for row in start.R for x in row)), strict=True)
    return all(abs(x - y) < SAME for x, y in pairs)


def _limits(element: Element, j: Joint, lost: Losses) -> None:
    """Write the limits; MuJoCo refuses ranges without extent."""
    if j.lower < j.upper and math.isfinite(max(j.lower, -j.upper)):
        element.set("range", written(j.lower, j.upper))
    elif j.lower == j.upper:
        lost.add("limits of the joints {}, of which the lower is the upper one", j.name)
    if j.effort_range is not None and j.effort_range[0] < j.effort_range[1]:
        element.set("actuatorfrcrange", written(*j.effort_range))
    elif 0.0 < j.effort < math.inf:
        element.set("actuatorfrcrange", written(-j.effort, j.effort))
    elif j.effort == 0.0:
        lost.add("the efforts of the joints {}, which are zero", j.name)


# --- configurations


def _keyframes(root: Element, d: Contents, joints: Sequence[Joint], drives: Sequence[str], lost: Losses) -> None:
    """Write all configurations, except the initial one if bodies lie there."""
    keyframe = SubElement(root, "keyframe")
    fixed = {j.name for j in d.joints if j.type is JointType.FIXED}
    for c in d.configurations:
        given, controls = dict(c.coordinates), dict(c.controls)
        for name in given.keys() - fixed - {j.name for j in joints}:
            lost.add(f"coordinates of {name} in the configurations {{}}", c.name)
        if c.name == START:
            balls = [j.name for j in joints if j.type is JointType.SPHERICAL]
            if not controls and all(given[name] == zero_position(JointType.SPHERICAL) for name in balls):
                continue
            lost.add("the start in the configuration {} (a keyframe of the file)", c.name)
        qpos = [x for j in joints for x in _qpos(j, given[j.name])]
        key = SubElement(keyframe, "key", name=c.name, qpos=written(*qpos))
        if any(controls.values()):
            key.set("ctrl", written(*(controls.get(name, 0.0) for a in d.actuators if a.name in drives for name in a.controls)))


def _qpos(j: Joint, x: tuple[float, ...]) -> tuple[float, ...]:
    """Return qpos; MuJoCo's quaternions have the scalar first."""
    return (*x[:-4], x[-1], *x[-4:-1]) if j.type.rotation else x
