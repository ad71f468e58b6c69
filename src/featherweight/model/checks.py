"""Checks of descriptions, whatever their format."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import Array
from ..names import hint
from ..spatial import RigidInertia, Sym3, Vec3
from ..spatial.ordered import product, singular, singular_values, total
from .contact_rules import ContactPair
from .description import Description
from .editing.acting import bodies_of
from .equivalent_box import semi_axes
from .model import Model
from .servos import DriveInput
from .types import (
    LARGEST,
    ROOT_JOINT,
    ROUNDING_RADIUS,
    SMALLEST_INERTIA,
    WORLD,
    Actuator,
    Frame,
    Inertia,
    JointType,
    ModelError,
    Pulley,
    Shape,
    ShapeType,
    TendonPoint,
    TendonWrap,
    controls_of,
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
ROUNDED = 0.01  # excess of a flat body's moments when they are rounded to three digits


def require_coordinates(d: Description) -> None:
    """Raise ModelError for duplicate names of configurations, unknown joints, and wrong numbers of coordinates.

    Coordinates of fixed joints are ignored.
    """
    if twice := [name for name, count in Counter(c.name for c in d.configurations).items() if count > 1]:
        raise ModelError(f"{d.source}: two configurations have the name {twice[0]!r}; rename one of them")
    controls = controls_of(d.actuators)
    for c in d.configurations:
        if unknown := [name for name, _ in c.controls if name not in controls]:
            problem = f"configuration {c.name!r}: there is no actuator with the control {unknown[0]!r}"
            raise ModelError(f"{d.source}: {problem}; correct the name, or leave it out")
    types = {ROOT_JOINT: JointType.FLOATING} | {j.name: j.type for j in d.joints}
    for configuration in d.configurations:
        for joint, values in configuration.coordinates:
            where = f"{d.source}: configuration {configuration.name!r}"
            if joint not in types:
                raise ModelError(f"{where}: there is no joint {joint!r}; correct the name, or leave it out")
            kind = types[joint]
            if kind is not JointType.FIXED and len(values) != kind.nq:
                problem = f"joint {joint!r} ({kind}) has {kind.nq} coordinates, not {len(values)}"
                raise ModelError(f"{where}: {problem}; give {kind.nq}")
            if kind.rotation and not any(values[-kind.rotation :]):
                raise ModelError(f"{where}: the rotation of joint {joint!r} is zero; give it unit length")


def require_independent(d: Description) -> None:
    """Raise ModelError for independent joints that cannot be independent."""
    types, leaders = {j.name: j.type for j in d.joints}, {c.joint: c for c in d.couplings}
    for name in d.independent:
        where = f"{d.source}: independent: joint {name!r}"
        if types.get(name, JointType.FIXED) is JointType.FIXED:
            moving = ", ".join(repr(j.name) for j in d.joints if j.type is not JointType.FIXED)
            problem = "is fixed" if name in types else f"does not exist{hint(name, types)}"
            raise ModelError(f"{where} {problem}; the joints that move are {moving}")
        if name in leaders:
            followed = ", ".join(repr(leader) for leader, _ in leaders[name].terms)
            problem = f"follows {followed} by coupling {leaders[name].name!r}, so its velocity is not independent"
            raise ModelError(f"{where} {problem}; name {followed} instead, or reverse the coupling in the file")


def require_links(d: Description) -> None:
    """Raise ModelError for disabled collisions of unknown links, which would otherwise count as the ground."""
    known = {b.name for b in d.bodies} | {WORLD, None}
    for pair in d.disabled_collisions:
        if unknown := [link for link in pair if link not in known]:
            problem = f"disabled collisions of {pair[0]!r} and {pair[1]!r}: {unknown[0]!r} is not a body"
            raise ModelError(f"{d.source}: {problem}; correct the name, or leave them out")


def require_shapes(d: Description) -> None:
    """Raise ModelError for contacts of unknown shapes, and for meshes and height fields that are empty or not finite."""
    known = {s.name for s in d.shapes}
    for pair in d.contact_pairs:
        if unknown := [name for name in pair.shapes if name not in known]:
            problem = f"contact pair of {pair.shapes[0]!r} and {pair.shapes[1]!r}: there is no shape {unknown[0]!r}"
            raise ModelError(f"{d.source}: {problem}; correct the name, or leave the pair out")
        if pair.friction is None and pair.second_friction is not None:
            problem = f"contact pair of {pair.shapes[0]!r} and {pair.shapes[1]!r}: it has a second friction and no first"
            raise ModelError(f"{d.source}: {problem}; give friction=, too")
    pulling: list[tuple[str, Shape | ContactPair]] = [(f"shape {s.name!r}", s) for s in d.shapes]
    pulling += [(f"contact pair of {pair.shapes[0]!r} and {pair.shapes[1]!r}", pair) for pair in d.contact_pairs]
    for where, x in pulling:
        for key in ("adhesion", "gap"):
            if getattr(x, key) < 0.0:
                raise ModelError(f"{d.source}: {where}: the {key} is negative ({getattr(x, key):g}); give zero or more")
    for s in d.shapes:
        if s.type in SIZES and len(s.size) != len(SIZES[s.type]):
            problem = f"the size of a {s.type} is ({', '.join(SIZES[s.type])}); got {s.size}"
            raise ModelError(f"{d.source}: shape {s.name!r}: {problem}; give these numbers")
        if s.type is not ShapeType.MESH and min(s.size, default=0.0) < 0.0:
            raise ModelError(f"{d.source}: shape {s.name!r}: the size {s.size} has a negative number; correct it")
        if len(s.surface_velocity) != 6:
            problem = f"shape {s.name!r}: its surface_velocity has {len(s.surface_velocity)} numbers"
            raise ModelError(f"{d.source}: {problem}; give three of linear and three of angular velocity")
        if s.type is ShapeType.MESH and not s.path and s.vertices is None:
            raise ModelError(f"{d.source}: shape {s.name!r}: a mesh has a file or vertices; give it path= or vertices=")
        if s.vertices is not None and not (np.abs(s.vertices) <= LARGEST).all():
            problem = f"shape {s.name!r}: its vertices are not all finite numbers within ±{LARGEST:g}"
            raise ModelError(f"{d.source}: {problem}; correct them")
        if s.fluid is not None and semi_axes(s) is None:
            problem = f"shape {s.name!r}: a {s.type} has no ellipsoid in a fluid"
            raise ModelError(
                f"{d.source}: {problem}; leave out fluid=, or give it to a sphere, box, cylinder, capsule or ellipsoid"
            )
        grid = () if s.heights is None else np.shape(s.heights)
        if s.type is ShapeType.HEIGHTFIELD and not (len(grid) == 2 and min(grid) > 1 and np.isfinite(s.heights).all()):
            problem = f"shape {s.name!r}: a height field needs finite heights of shape (nx, ny), both at least 2; it has {grid}"
            raise ModelError(f"{d.source}: {problem}; give them")
        if s.type is ShapeType.HEIGHTFIELD and not s.size[2] + np.min(s.heights) >= 0.0:
            problem = f"shape {s.name!r}: a height field's base, {s.size[2]:g} m below z = 0, must lie below all of its heights"
            raise ModelError(f"{d.source}: {problem}; give a greater third size, or shift the heights")


def require_transmissions(d: Description) -> None:
    """Raise ModelError for tendons and actuators of unknown joints, tendons, bodies or frames, and for invalid paths."""
    types = {j.name: j.type for j in d.joints}
    bodies, tendons = {b.name for b in d.bodies} | {WORLD, None}, {t.name for t in d.tendons}
    frames = {f.name for f in d.frames} | {b.name for b in d.bodies}
    for t in d.tendons:
        where = f"{d.source}: tendon {t.name!r}"
        if unknown := [name for name, _ in t.terms if types.get(name, JointType.FIXED).nq != 1]:
            raise ModelError(f"{where}: {unknown[0]!r} is not a joint with one degree of freedom; correct its terms")
        if lost := [body for body in bodies_of(t) if body not in bodies]:
            raise ModelError(f"{where}: {lost[0]!r} is not a body; add it or correct the name")
        if not t.terms and not t.path:
            raise ModelError(f"{where}: it has neither terms nor a path; give it one of them")
        if problem := _path_problem(t.path):
            raise ModelError(f"{where}: {problem}; correct its path")
        for key in ("stiffness", "damping", "dry_friction"):
            if getattr(t, key) < 0.0:
                raise ModelError(f"{where}: the {key.replace('_', ' ')} is negative ({getattr(t, key):g}); correct it")
        for what, (lower, upper) in {"limit": (t.lower, t.upper), "rest": t.rest, "force": t.force}.items():
            if lower > upper:
                raise ModelError(f"{where}: the lower {what} {lower:g} is above the upper one, {upper:g}; exchange them")
    for a in d.actuators:
        where = f"{d.source}: actuator {a.name!r}"
        if (a.joint is not None or a.at is not None) + (a.tendon is not None) + (a.adhesion is not None) != 1:
            raise ModelError(f"{where}: an actuator acts on a joint, a tendon, at a frame or by adhesion; give it one of them")
        if a.adhesion is not None and a.adhesion not in bodies:
            problem = f"there is no body {a.adhesion!r}{hint(a.adhesion, {b.name for b in d.bodies})}"
            raise ModelError(f"{where}: {problem}; correct the name")
        if problem := _servo_problem(a):
            raise ModelError(f"{where}: {problem}")
        if a.tendon is not None and a.tendon not in tendons:
            raise ModelError(f"{where}: there is no tendon {a.tendon!r}{hint(a.tendon, tendons)}; correct the name")
        if a.joint is not None and a.at is None and types.get(a.joint, JointType.FIXED).nv != 1:
            raise ModelError(f"{where}: {a.joint!r} is not a joint with one degree of freedom; correct its joint")
        if a.at is not None and a.at.rod is not None and not (a.at.rod > 0.0 and a.at.reference is not None):
            raise ModelError(f"{where}: a rod has a positive length, and a reference where its slider is; give it both")
        for f in (a.at.frame, a.at.reference) if a.at is not None else ():
            name = f.body if isinstance(f, Frame) else f
            if name is not None and name not in frames and name != WORLD:
                raise ModelError(f"{where}: there is no frame or body {name!r}{hint(name, frames)}; correct the name")


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


# --- physically impossible inertias


def principal_moments(rotational: Sequence[Sequence[float]] | Array) -> Array:
    """Return the principal moments, in ascending order (n, 3), of tensors (n, 6) as in `Inertia`."""
    xx, xy, xz, yy, yz, zz = np.asarray(rotational, dtype=float).reshape(-1, 6).T
    tensors = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=-1).reshape(-1, 3, 3)
    shift = total(np.abs(tensors)).max(axis=-1)  # makes them positive, so that their singular values are eigenvalues
    shifted = tensors + shift[:, None, None] * np.eye(3)
    return np.asarray((singular_values(shifted) - shift[:, None])[:, ::-1])


def excess_moments(inertias: Sequence[Inertia]) -> Array:
    """Return by how much the greatest principal moment (n,) exceeds the sum of the two others, as a fraction of this sum.

    For any distribution of mass, the excess is zero or less. It is infinite for rotational inertia without mass.
    """
    if not inertias:
        return np.zeros(0)
    moments = principal_moments([i.rotational for i in inertias])
    mass = np.array([i.mass for i in inertias])
    others = np.maximum(moments[:, 0] + moments[:, 1], 0.0)
    excess = np.maximum(moments[:, 2] - others - ROUNDING_RADIUS**2 * mass, 0.0)
    with np.errstate(divide="ignore"):
        relative = np.divide(excess, others, out=np.zeros(len(mass)), where=excess > 0.0)
    return np.asarray(np.where((mass == 0.0) & (moments[:, 2] > 0.0), np.inf, relative))


def impossible_bodies(model: Model) -> str:
    """Describe the moving bodies with physically impossible inertias, and the excess of their moments; empty if there are none.

    The inertia of a moving body is that of all links that are fixed together.
    """
    tree = model.tree
    rows = [placed.row for placed in model.placed_bodies]
    bodies = [(b, row) for b, row in zip(model.bodies, rows, strict=True) if tree.mass[row] > 0.0]
    rigid = [rigid_inertia_of_row(model, row) for _, row in bodies]
    inertias = [Inertia(I.mass, rotational=tuple(about_center(I))) for I in rigid]
    excess = excess_moments(inertias)
    found = [f"{bodies[k][0].name!r} by {100 * excess[k]:.3g} %" for k in np.flatnonzero(excess > ROUNDED)]
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")


class Verdict(NamedTuple):
    """The properties of an inertia."""

    lowest: float  # least principal moment about the centre of mass
    possible: bool  # True unless a moment is negative beyond rounding
    solid: bool  # True with mass, and inertia about every axis


def judged_inertias(inertias: Sequence[RigidInertia]) -> list[Verdict]:
    """Return a verdict on each inertia, in any frame."""
    moments = principal_moments([tuple(about_center(I)) for I in inertias])
    verdicts = []
    for I, (lowest, _, largest) in zip(inertias, moments.tolist(), strict=True):
        highest = max(abs(largest), abs(I.rotational.xx), abs(I.rotational.yy), abs(I.rotational.zz))
        possible = lowest >= -1e-9 * highest - ROUNDING_RADIUS**2 * I.mass
        verdicts.append(Verdict(lowest, possible, I.mass > 0.0 and lowest > max(1e-9 * highest, SMALLEST_INERTIA)))
    return verdicts


def without_negative_moments(I: RigidInertia) -> RigidInertia:
    """Return an inertia whose negative principal moments about the centre of mass are zero."""
    xx, xy, xz, yy, yz, zz = about_center(I)
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    shift = float(total(np.abs(tensor)).max())  # makes the tensor positive, so that its singular values are eigenvalues
    values, _, axes = singular(tensor + shift * np.eye(3))
    positive = product(axes * np.maximum(values - shift, 0.0), axes.T)
    rotational = Sym3(*(float(positive[k]) for k in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))))
    about = RigidInertia(I.mass, Vec3(0.0, 0.0, 0.0), rotational)
    return about.translate(1.0 / I.mass * I.moment) if I.mass else about


def rigid_inertia_of_row(model: Model, row: int) -> RigidInertia:
    """Return the rigid-body inertia of the body in one row of the tree, in the row's frame."""
    tree = model.tree
    return RigidInertia(tree.mass[row], Vec3(*tree.moment[row]), Sym3(*tree.inertia[row]))


def about_center(I: RigidInertia) -> Sym3:
    """Return the rotational inertia about the centre of mass; for a body without mass, unchanged."""
    return (I.translate(-1.0 / I.mass * I.moment) if I.mass else I).rotational
