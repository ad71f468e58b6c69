"""Checks of the numbers of descriptions: finite, of the right sign and size, and rotations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from .description import Description
from .types import (
    LARGEST,
    SMALLEST_MASS,
    JointType,
    ModelError,
    Pose,
    Pulley,
    TendonPoint,
    TendonWrap,
    rotation_defect,
)

NONNEGATIVE = ("armature", "damping", "dry_friction", "stiffness", "effort", "velocity")
LIMITS = ("lower", "upper", "effort", "velocity", "effort_range")  # infinite for none
SKEWED = 1e-3  # deviation of a rotation whose numbers are rounded to four digits
ON_AXIS = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC, JointType.PLANAR)


def require_sound_numbers(d: Description) -> None:
    """Raise ModelError for the first invalid number: not finite, negative where it must not be, or too large or too small.

    Numbers are too large or too small if later computations would overflow.
    """
    for element, numbers, part in _numbers(d):
        if not all(-LARGEST <= x <= LARGEST for x in numbers):  # also catches NaN
            worst = next(x for x in numbers if not -LARGEST <= x <= LARGEST)
            number = f"the number {worst:g}{_place_of(worst, part)}"
            raise ModelError(f"{d.source}: {element} has {number}; give numbers within ±{LARGEST:g}, in SI units")
    _require_rotations(d)
    for b in d.bodies:
        mass = b.inertia.mass
        if mass < 0.0:
            raise ModelError(f"{d.source}: body {b.name!r}: the mass is negative ({mass:g}); correct it")
        if 0.0 < mass < SMALLEST_MASS:
            raise ModelError(
                f"{d.source}: body {b.name!r}: the mass {mass:g} kg is too small for the computation; make it zero"
            )
    for j in d.joints:
        for key in NONNEGATIVE:
            if getattr(j, key) < 0.0:
                raise ModelError(f"{d.source}: joint {j.name!r}: the {key} is negative ({getattr(j, key):g}); correct it")
        if j.effort_range is not None and not (
            j.effort_range[0] <= j.effort_range[1] and j.effort == max(map(abs, j.effort_range))
        ):
            least, most = j.effort_range
            problem = f"the effort_range ({least:g}, {most:g}) must increase and stay within the effort, {j.effort:g}"
            raise ModelError(f"{d.source}: joint {j.name!r}: {problem}; correct it, and give effort= its greatest magnitude")
        if j.rest_pose and (len(j.rest_pose) != JointType.FLOATING.nq or not any(j.rest_pose[3:])):
            problem = f"the rest pose of a floating joint is (x, y, z, qx, qy, qz, qw); got {j.rest_pose}"
            raise ModelError(f"{d.source}: joint {j.name!r}: {problem}; give these, or ()")
        if j.type in ON_AXIS and not any(j.axis):
            raise ModelError(f"{d.source}: joint {j.name!r}: its axis is zero; give the direction of its axis")
        if j.lower > j.upper:
            problem = f"the lower limit {j.lower:g} is above the upper limit {j.upper:g}"
            raise ModelError(f"{d.source}: joint {j.name!r}: {problem}; exchange or correct them")


def _require_rotations(d: Description) -> None:
    """Raise ModelError for placements whose matrices are not rotations."""
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
        raise ModelError(f"{d.source}: {element}: {problem}; its rows must be perpendicular, of length 1 and right-handed")


def _numbers(d: Description) -> Iterator[tuple[str, tuple[float, ...], Any]]:
    """Yield the numbers of each element, and the part that has them; infinite ones, which stand for no limit, are left out."""
    for b in d.bodies:
        yield f"body {b.name!r}", (b.inertia.mass, *b.inertia.center, *b.inertia.rotational, b.gravity_compensation), b
    for j in d.joints:
        dynamics = (x for key, value in j.dynamics().items() for x in _flat(value) if key not in LIMITS or not math.isinf(x))
        yield f"joint {j.name!r}", (*_of_pose(j.placement), *j.axis, *j.anchor, j.zero, *dynamics), j
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
        finite = (x for x in (t.lower, t.upper, *t.rest, *t.force) if not math.isinf(x))
        own = (t.stiffness, t.damping, t.dry_friction, *t.stiffness_poly, *t.damping_poly, *(c for _, c in t.terms), *finite)
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


def _flat(x: Any) -> Iterator[float]:
    """Yield the floating-point numbers in a part."""
    if type(x) is float:
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
