"""Checks of descriptions, whatever their format."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ..names import listed, suggestion
from .contact_rules import ContactPair
from .description import Description
from .editing.acting import bodies_of
from .equivalent_box import semi_axes
from .servos import DriveInput
from .types import (
    LARGEST,
    ROOT_JOINT,
    SMALLEST_MASS,
    WORLD,
    Actuator,
    Frame,
    Joint,
    JointDynamics,
    JointType,
    ModelError,
    PassiveDynamics,
    Pose,
    Pulley,
    Shape,
    ShapeType,
    Tendon,
    TendonPoint,
    TendonWrap,
    controls_of,
    rotation_defect,
    values_of,
)

SIZES = {
    ShapeType.SPHERE: ("radius",),
    ShapeType.BOX: ("length along x", "y", "z"),
    ShapeType.CYLINDER: ("radius", "length"),
    ShapeType.CAPSULE: ("radius", "length of its cylinder"),
    ShapeType.ELLIPSOID: ("radius along x", "y", "z"),
    ShapeType.MESH: ("scale along x", "y", "z"),
    ShapeType.HEIGHTFIELD: ("length along x", "y", "depth of its base"),
}
NONNEGATIVE = ("armature", "damping", "dry_friction", "stiffness", "effort", "velocity")
LIMITS = ("lower", "upper", "effort", "velocity", "effort_range")  # infinite for none
SKEWED = 1e-3  # deviation of a rotation whose numbers are rounded to four digits
ON_AXIS = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC, JointType.PLANAR)


Faults = Iterator[str]
"""Faults of a description: the element, its problem, and what to do."""


def check(d: Description, *kinds: Callable[[Description], Faults]) -> None:
    """Raise ModelError for the first fault of a description, of these kinds or of all: what no robot can have."""
    for faults in kinds or ALL:
        for fault in faults(d):
            raise ModelError(f"{d.source}: {fault}")


def of_names(d: Description) -> Faults:
    """Yield names that two elements have, and bodies and joints that there are not."""
    for what, names in (("bodies", [b.name for b in d.bodies]), ("joints", [j.name for j in d.joints])):
        if twice := [n for n, count in Counter(names).items() if count > 1]:
            yield f"two {what} have the name {twice[0]!r}; rename one of them"
    known = {b.name for b in d.bodies} | {WORLD, None}
    for j in d.joints:
        for role, body in (("parent", j.parent), ("child", j.child)):
            if body not in known:
                yield f"joint {j.name!r}: its {role} {body!r} is not a body; add it or correct the name"
    if twice := [n for n, count in Counter(j.child for j in d.joints).items() if count > 1]:
        yield f"body {twice[0]!r} is the child of two joints; make one of them a Loop"
    for what, on_body in (("shape", d.shapes), ("frame", d.frames)):
        for each in on_body:
            if each.body not in known:
                yield f"{what} {each.name!r}: {each.body!r} is not a body; add it or correct the name"
    joints = {j.name: j for j in d.joints}
    for marked in (*d.independent, *d.dependent):
        if marked not in joints:
            yield f"{marked!r} is marked as independent or dependent, but there is no such joint"


def _of_configurations(d: Description) -> Faults:
    """Yield duplicate names of configurations, unknown joints, and wrong numbers of coordinates.

    Coordinates of fixed joints are ignored.
    """
    if twice := [name for name, count in Counter(c.name for c in d.configurations).items() if count > 1]:
        yield f"two configurations have the name {twice[0]!r}; rename one of them"
    controls, types = controls_of(d.actuators), {ROOT_JOINT: JointType.FLOATING} | {j.name: j.type for j in d.joints}
    for c in d.configurations:
        if unknown := [name for name, _ in c.controls if name not in controls]:
            problem = f"configuration {c.name!r}: there is no actuator with the control {unknown[0]!r}"
            yield f"{problem}; correct the name, or leave it out"
        for joint, values in c.coordinates:
            where = f"configuration {c.name!r}"
            if joint not in types:
                yield f"{where}: there is no joint {joint!r}; correct the name, or leave it out"
            kind = types[joint]
            if kind is not JointType.FIXED and len(values) != kind.nq:
                yield f"{where}: joint {joint!r} ({kind}) has {kind.nq} coordinates, not {len(values)}; give {kind.nq}"
            if kind.rotation and not any(values[-kind.rotation :]):
                yield f"{where}: the rotation of joint {joint!r} is zero; give it unit length"


def of_independent(d: Description) -> Faults:
    """Yield independent joints that cannot be independent."""
    types, leaders = {j.name: j.type for j in d.joints}, {c.joint: c for c in d.couplings}
    for name in d.independent:
        where = f"independent: joint {name!r}"
        if types.get(name, JointType.FIXED) is JointType.FIXED:
            moving = ", ".join(repr(j.name) for j in d.joints if j.type is not JointType.FIXED)
            problem = "is fixed" if name in types else f"does not exist{suggestion(name, types)}"
            yield f"{where} {problem}; the joints that move are {moving}"
        if name in leaders:
            followed = ", ".join(repr(leader) for leader, _ in leaders[name].terms)
            problem = f"follows {followed} by coupling {leaders[name].name!r}, so its velocity is not independent"
            yield f"{where} {problem}; name {followed} instead, or reverse the coupling in the file"


def _of_disabled_collisions(d: Description) -> Faults:
    """Yield disabled collisions of unknown links, which would otherwise count as the ground."""
    known = {b.name for b in d.bodies} | {WORLD, None}
    for pair in d.disabled_collisions:
        if unknown := [link for link in pair if link not in known]:
            problem = f"disabled collisions of {pair[0]!r} and {pair[1]!r}: {unknown[0]!r} is not a body"
            yield f"{problem}; correct the name, or leave them out"


def of_shapes(d: Description) -> Faults:
    """Yield contacts of unknown shapes, and meshes and height fields that are empty or not finite."""
    known = {s.name for s in d.shapes}
    named = [(f"contact pair of {pair.shapes[0]!r} and {pair.shapes[1]!r}", pair) for pair in d.contact_pairs]
    for where, pair in named:
        if unknown := [name for name in pair.shapes if name not in known]:
            yield f"{where}: there is no shape {unknown[0]!r}; correct the name, or leave the pair out"
        if pair.friction is None and pair.second_friction is not None:
            yield f"{where}: it has a second friction and no first; give friction=, too"
    pulling: list[tuple[str, Shape | ContactPair]] = [(f"shape {s.name!r}", s) for s in d.shapes]
    for where, x in [*pulling, *named]:
        for key in ("adhesion", "gap"):
            if getattr(x, key) < 0.0:
                yield f"{where}: the {key} is negative ({getattr(x, key):g}); give zero or more"
    for s in d.shapes:
        where = f"shape {s.name!r}"
        if s.type in SIZES and len(s.size) != len(SIZES[s.type]):
            yield f"{where}: the size of a {s.type} is ({', '.join(SIZES[s.type])}); got {s.size}; give these numbers"
        if s.type is not ShapeType.MESH and min(s.size, default=0.0) < 0.0:
            yield f"{where}: the size {s.size} has a negative number; correct it"
        if len(s.surface_velocity) != 6:
            problem = f"{where}: its surface_velocity has {len(s.surface_velocity)} numbers"
            yield f"{problem}; give three of linear and three of angular velocity"
        if s.type is ShapeType.MESH and not s.path and s.vertices is None:
            yield f"{where}: a mesh has a file or vertices; give it path= or vertices="
        if s.vertices is not None and not (np.abs(s.vertices) <= LARGEST).all():
            yield f"{where}: its vertices are not all finite numbers within ±{LARGEST:g}; correct them"
        if s.fluid is not None and semi_axes(s) is None:
            problem = f"{where}: a {s.type} has no ellipsoid in a fluid"
            yield f"{problem}; leave out fluid=, or give it to a sphere, box, cylinder, capsule or ellipsoid"
        grid = () if s.heights is None else np.shape(s.heights)
        if s.type is ShapeType.HEIGHTFIELD and not (len(grid) == 2 and min(grid) > 1 and np.isfinite(s.heights).all()):
            yield f"{where}: a height field needs finite heights of shape (nx, ny), both at least 2; it has {grid}; give them"
        if s.type is ShapeType.HEIGHTFIELD and not s.size[2] + np.min(s.heights) >= 0.0:
            problem = f"{where}: a height field's base, {s.size[2]:g} m below z = 0, must lie below all of its heights"
            yield f"{problem}; give a greater third size, or shift the heights"


def _of_transmissions(d: Description) -> Faults:
    """Yield tendons and actuators of unknown joints, tendons, bodies or frames, and invalid paths."""
    types = {j.name: j.type for j in d.joints}
    bodies, tendons = {b.name for b in d.bodies} | {WORLD, None}, {t.name for t in d.tendons}
    frames = {f.name for f in d.frames} | {b.name for b in d.bodies}
    for t in d.tendons:
        where = f"tendon {t.name!r}"
        if unknown := [name for name, _ in t.terms if types.get(name, JointType.FIXED).nq != 1]:
            yield f"{where}: {unknown[0]!r} is not a joint with one degree of freedom; correct its terms"
        if lost := [body for body in bodies_of(t) if body not in bodies]:
            yield f"{where}: {lost[0]!r} is not a body; add it or correct the name"
        if not t.terms and not t.path:
            yield f"{where}: it has neither terms nor a path; give it one of them"
        if problem := _path_problem(t.path):
            yield f"{where}: {problem}; correct its path"
        for key in ("stiffness", "damping", "dry_friction"):
            if getattr(t, key) < 0.0:
                yield f"{where}: the {key.replace('_', ' ')} is negative ({getattr(t, key):g}); correct it"
        for what, (lower, upper) in {"limit": (t.lower, t.upper), "rest": t.rest, "force": t.force}.items():
            if lower > upper:
                yield f"{where}: the lower {what} {lower:g} is above the upper one, {upper:g}; exchange them"
    for a in d.actuators:
        where = f"actuator {a.name!r}"
        if (a.joint is not None or a.at is not None) + (a.tendon is not None) + (a.adhesion is not None) != 1:
            yield f"{where}: an actuator acts on a joint, a tendon, at a frame or by adhesion; give it one of them"
        if a.adhesion is not None and a.adhesion not in bodies:
            problem = f"there is no body {a.adhesion!r}{suggestion(a.adhesion, {b.name for b in d.bodies})}"
            yield f"{where}: {problem}; correct the name"
        if problem := _servo_problem(a):
            yield f"{where}: {problem}"
        if a.tendon is not None and a.tendon not in tendons:
            yield f"{where}: there is no tendon {a.tendon!r}{suggestion(a.tendon, tendons)}; correct the name"
        if a.joint is not None and a.at is None and types.get(a.joint, JointType.FIXED).nv != 1:
            yield f"{where}: {a.joint!r} is not a joint with one degree of freedom; correct its joint"
        if a.at is not None and a.at.rod is not None and not (a.at.rod > 0.0 and a.at.reference is not None):
            yield f"{where}: a rod has a positive length, and a reference where its slider is; give it both"
        for f in (a.at.frame, a.at.reference) if a.at is not None else ():
            name = f.body if isinstance(f, Frame) else f
            if name is not None and name not in frames and name != WORLD:
                yield f"{where}: there is no frame or body {name!r}{suggestion(name, frames)}; correct the name"


def _servo_problem(a: Actuator) -> str:
    """Describe the fault of an actuator's servo or motor, and its remedy; the text is empty if there is none."""
    servo, motor = a.servo, a.motor
    if a.delay is not None and not (a.delay.samples >= 1 and 0.0 < a.delay.time < math.inf and len(a.controls) == 1):
        return f"delay {tuple(a.delay)}: it takes one control, a positive time, and one sample or more; correct it"
    if a.orientation is not None and (a.at is None or a.at.reference is None or servo is not None):
        return "an orientation servo acts at a frame with a reference; give it at=FrameForce(...), and no other servo"
    if motor is not None and servo is None:
        return "a motor has a servo; give it one whose inputs are those of the motor, such as Servo((DriveInput.VOLTAGE,))"
    if servo is None:
        return ""
    if a.activation is not None or a.muscle is not None or any(a.slopes):
        return "a servo has neither an activation nor a muscle nor slopes; leave them out"
    if servo.ranges and len(servo.ranges) != len(servo.inputs):
        return (
            f"its servo has {len(servo.inputs)} inputs and {len(servo.ranges)} ranges; give it a range for each input, or none"
        )
    if list(servo.inputs) != [x for x in DriveInput if x in servo.inputs]:
        return f"the inputs of its servo are {', '.join(servo.inputs)}; give each once, in the order {', '.join(DriveInput)}"
    limited = math.isfinite(servo.rate_limit) and (motor is None or not {*servo.inputs} - {DriveInput.VOLTAGE})
    if DriveInput.POSITION not in servo.inputs and (servo.integral or limited):
        return "its servo has an integral or a rate, and no position among its inputs; leave them out, or add the input"
    if min(servo.integral, servo.integral_limit, servo.rate_limit) < 0.0:
        return "the integral gain, its limit and the rate of its servo must not be negative; correct them"
    if motor is None:
        return "a voltage is an input of a motor; give the actuator one" if DriveInput.VOLTAGE in servo.inputs else ""
    if not motor.resistance > 0.0:
        return f"the resistance of its motor is {motor.resistance:g}; it must be positive"
    if motor.constant == 0.0 and servo.inputs != (DriveInput.VOLTAGE,) and servo.inputs:
        return "a servo controls its motor, whose constant is 0; give it another one"
    return ""


def _path_problem(path: Sequence[TendonPoint | TendonWrap | Pulley]) -> str:
    """Describe the fault of a path; the text is empty if there is none."""
    branch: list[TendonPoint | TendonWrap] = []
    for x in (*path, None) if path else ():
        if x is not None and not isinstance(x, Pulley):
            if isinstance(x, TendonWrap) and not (branch and isinstance(branch[-1], TendonPoint)):
                return "a sphere or cylinder lies between two points"
            if isinstance(x, TendonWrap) and not x.radius > 0.0:
                return f"the radius {x.radius:g} of a sphere or cylinder is not positive"
            branch.append(x)
            continue
        if isinstance(x, Pulley) and not x.divisor > 0.0:
            return f"the divisor {x.divisor:g} of a pulley is not positive"
        if branch and (len(branch) < 2 or not isinstance(branch[-1], TendonPoint)):
            return "each of its branches needs at least two points, and ends with one"
        branch = []
    return ""


def _of_cameras(d: Description) -> Faults:
    """Yield cameras with the same name, on unknown bodies, or with an invalid field of view."""
    known = {b.name for b in d.bodies} | {WORLD, None}
    names = [c.name for c in d.cameras]
    for k, c in enumerate(d.cameras):
        where = f"camera {c.name!r}"
        if c.name in names[:k]:
            yield f"{where}: another camera has this name; rename one of them"
        for body in (c.body, c.target):
            if body not in known:
                shown = [b.name for b in d.bodies if b.name not in d.virtual]
                remedy = f"the bodies are {listed(shown)}"
                yield f"{where}: {body!r} is not a body{suggestion(str(body), shown)}; {remedy}"
        if not (c.field_of_view > 0.0 and (c.orthographic or c.field_of_view < math.pi)):
            yield f"{where}: its field_of_view is {c.field_of_view:g}; give an angle in rad between 0 and π"


def _of_numbers(d: Description) -> Faults:
    """Yield invalid numbers: not finite, negative where it must not be, or too large or too small.

    Numbers are too large or too small if later computations would overflow.
    """
    for element, numbers, part in _numbers(d):
        if not all(-LARGEST <= x <= LARGEST for x in numbers):  # also catches NaN
            worst = next(x for x in numbers if not -LARGEST <= x <= LARGEST)
            number = f"the number {worst:g}{_place_of(worst, part)}"
            yield f"{element} has {number}; give numbers within ±{LARGEST:g}, in SI units"
    yield from _of_rotations(d)
    for b in d.bodies:
        mass = b.inertia.mass
        if mass < 0.0:
            yield f"body {b.name!r}: the mass is negative ({mass:g}); correct it"
        if 0.0 < mass < SMALLEST_MASS:
            yield f"body {b.name!r}: the mass {mass:g} kg is too small for the computation; make it zero"
    for j in d.joints:
        for key in NONNEGATIVE:
            if getattr(j, key) < 0.0:
                yield f"joint {j.name!r}: the {key} is negative ({getattr(j, key):g}); correct it"
        if j.effort_range is not None and not (
            j.effort_range[0] <= j.effort_range[1] and j.effort == max(map(abs, j.effort_range))
        ):
            least, most = j.effort_range
            problem = f"the effort_range ({least:g}, {most:g}) must increase and stay within the effort, {j.effort:g}"
            yield f"joint {j.name!r}: {problem}; correct it, and give effort= its greatest magnitude"
        if j.rest_pose and (len(j.rest_pose) != JointType.FLOATING.nq or not any(j.rest_pose[3:])):
            problem = f"the rest pose of a floating joint is (x, y, z, qx, qy, qz, qw); got {j.rest_pose}"
            yield f"joint {j.name!r}: {problem}; give these, or ()"
        if j.type in ON_AXIS and not any(j.axis):
            yield f"joint {j.name!r}: its axis is zero; give the direction of its axis"
        if j.lower > j.upper:
            problem = f"the lower limit {j.lower:g} is above the upper limit {j.upper:g}"
            yield f"joint {j.name!r}: {problem}; exchange or correct them"


def _of_rotations(d: Description) -> Faults:
    """Yield placements whose matrices are not rotations."""
    kinds: dict[str, tuple[Any, ...]] = {"joint": d.joints, "frame": d.frames, "shape": d.shapes, "camera": d.cameras}
    placed: list[tuple[str, Any, str]] = [
        *((f"{kind} {x.name!r}", x, "placement") for kind, elements in kinds.items() for x in elements),
        *((f"loop {x.name!r}", x, key) for x in d.loops for key in ("predecessor_frame", "successor_frame")),
        *((f"tendon {t.name!r}", x, "placement") for t in d.tendons for x in t.path if isinstance(x, TendonWrap)),
    ]
    R = np.array([getattr(x, key).R for _, x, key in placed], dtype=np.float64).reshape(-1, 3, 3)
    skewed = ~(rotation_defect(np.moveaxis(R, 0, -1)) < SKEWED)
    for element, x, key in (placed[k] for k in np.flatnonzero(skewed)):
        problem = f"the matrix of its {key} is not a rotation: {getattr(x, key).R}"
        yield f"{element}: {problem}; its rows must be perpendicular, of length 1 and right-handed"


def _numbers(d: Description) -> Iterator[tuple[str, tuple[float, ...], Any]]:
    """Yield the numbers of each element, and the part that has them; infinite ones, which stand for no limit, are left out."""
    for b in d.bodies:
        yield f"body {b.name!r}", (b.inertia.mass, *b.inertia.center, *b.inertia.rotational, b.gravity_compensation), b
    for j in d.joints:
        own = (*_of_pose(j.placement), *j.axis, *j.anchor, j.zero, *_of_dynamics(JointDynamics, j))
        yield f"joint {j.name!r}", own, j
    for f in d.frames:
        yield f"frame {f.name!r}", _of_pose(f.placement), f
    for camera in d.cameras:
        yield f"camera {camera.name!r}", (*_of_pose(camera.placement), camera.field_of_view, *_flat(camera.sensor)), camera
    for loop in d.loops:
        frames = (*_of_pose(loop.predecessor_frame), *_of_pose(loop.successor_frame))
        yield f"loop {loop.name!r}", (*frames, loop.torque_scale), loop
    for c in d.couplings:
        yield f"coupling {c.name!r}", (c.offset, *(x for _, coefficients in c.terms for x in coefficients)), c
    for t in d.tendons:
        finite = (x for x in (*t.rest, *t.force) if not math.isinf(x))
        own = (*_of_dynamics(PassiveDynamics, t), *(c for _, c in t.terms), *finite)
        yield f"tendon {t.name!r}", (*own, *(x for node in t.path for x in _of_node(node))), t
    for s in d.shapes:
        fluid = () if s.fluid is None else (*s.fluid[:5], *s.fluid.added_mass, *s.fluid.added_inertia)
        rubs = (*s.turning_friction, 0.0 if s.friction is None else s.friction)
        own = (*s.size, s.margin, *s.surface_velocity, s.adhesion, s.gap, *rubs, *fluid)
        yield f"shape {s.name!r}", (*_of_pose(s.placement), *own), s
    for pair in d.contact_pairs:
        frictions = (x for x in (pair.friction, pair.second_friction, pair.second_rolling) if x is not None)
        own = (pair.margin, pair.adhesion, pair.gap, *pair.turning_friction, *frictions)
        yield f"contact pair of {pair.shapes[0]!r} and {pair.shapes[1]!r}", own, pair
    for a in d.actuators:
        yield f"actuator {a.name!r}", tuple(filter(math.isnan, _flat(a))), a
    for sensor in d.sensors:
        yield f"sensor {sensor.name!r}", (sensor.cutoff, sensor.noise, *sensor.field, *_flat(sensor.zone)), sensor
    for configuration in d.configurations:
        for joint, values in configuration.coordinates:
            yield f"configuration {configuration.name!r}, joint {joint!r},", values, None
        for actuator, control in configuration.controls:
            yield f"configuration {configuration.name!r}, actuator {actuator!r},", (control,), None
    if d.timestep is not None:
        yield "its time step", (d.timestep,), None
    if d.fluid is not None:
        yield "its fluid", (d.fluid.density, d.fluid.viscosity, *d.fluid.wind), d.fluid


def _of_dynamics(kind: type, x: Joint | Tendon) -> Iterator[float]:
    """Yield the limits of a joint or a tendon and the numbers of its forces."""
    for key, value in values_of(kind, x).items():
        yield from (number for number in _flat(value) if key not in LIMITS or not math.isinf(number))


def _flat(x: Any) -> Iterator[float]:
    """Yield the numbers in a part."""
    if isinstance(x, (int, float)) and not isinstance(x, bool):
        yield x
    elif isinstance(x, tuple):
        for each in x:
            yield from _flat(each)
    elif is_dataclass(x):
        for key in fields(x):
            yield from _flat(getattr(x, key.name))


def _place_of(number: float, part: Any) -> str:
    """Return the end of "the number 1", which says in which field a part has it."""
    names = [key.name for key in fields(part)] if is_dataclass(part) else getattr(part, "_fields", ())
    return next((f" in its {name}" for name in names if any(x is number for x in _flat(getattr(part, name)))), "")


def _of_node(x: TendonPoint | TendonWrap | Pulley) -> tuple[float, ...]:
    if isinstance(x, Pulley):
        return (x.divisor,)
    if isinstance(x, TendonPoint):
        return x.position
    return (*_of_pose(x.placement), x.radius, *(x.side.position if x.side else ()))


def _of_pose(pose: Pose) -> tuple[float, ...]:
    return (*pose.R[0], *pose.R[1], *pose.R[2], *pose.p)


ALL = (of_names, _of_numbers, _of_configurations, _of_disabled_collisions, of_shapes, _of_transmissions, _of_cameras)
