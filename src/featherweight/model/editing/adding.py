"""Additions to a description: loops, couplings, closures, backlash, shapes and payloads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from ...names import choose_from
from ..contact_rules import Softness
from ..solids import summed
from ..types import (
    WORLD,
    Body,
    Closure,
    Contents,
    Coupling,
    Inertia,
    Joint,
    JointType,
    Loop,
    ModelError,
    Pose,
    Shape,
    Tendon,
)
from .kept_parts import without_sensors_across_loops
from .references import D, grounded, joint_of, place, supports


def with_loop(d: D, loop: Loop) -> D:
    """Return the description with an additional loop, between bodies that can move relative to each other."""
    d, where = grounded(d), f"loop {loop.name!r}"
    _require_new(d, "loop", loop.name, (x.name for x in d.loops))
    paths = supports(d)
    moving = [[j for j in paths[place(d, end, where).body] if j.type.nv] for end in (loop.predecessor, loop.successor)]
    if moving[0] == moving[1]:
        problem = f"no joint moves {loop.predecessor!r} against {loop.successor!r}"
        raise ModelError(f"{d.source}: {where}: {problem}; name bodies that joints move, or remove the loop")
    return without_sensors_across_loops(grounded(replace(d, loops=(*d.loops, loop))))


def with_coupling(d: D, coupling: Coupling) -> D:
    """Return the description with an additional coupling, of a joint that follows no other yet."""
    d, where = grounded(d), f"coupling {coupling.name!r}"
    _require_new(d, "coupling", coupling.name, (c.name for c in d.couplings))
    _require_coordinates(d, (coupling.joint, *(name for name, _ in coupling.terms)), where)
    if there := [c.name for c in d.couplings if c.joint == coupling.joint]:
        raise ModelError(f"{d.source}: {where}: joint {coupling.joint!r} already follows by coupling {there[0]!r}; keep one")
    if not any(any(p) for _, p in coupling.terms):
        raise ModelError(f"{d.source}: {where}: joint {coupling.joint!r} would follow no other; use `locked` to fix it")
    return replace(d, couplings=(*d.couplings, coupling))


def with_closure(d: D, closure: Closure) -> D:
    """Return the description with an additional closure, a user-defined constraint."""
    d, where = grounded(d), f"closure {closure.name!r}"
    _require_new(d, "closure", closure.name, (c.name for c in d.closures))
    _require_coordinates(d, closure.joints, where)
    return replace(d, closures=(*d.closures, closure))


DRIVE = ("armature", "damping", "damping_poly", "dry_friction", "dry_friction_softness", "effort", "effort_range", "velocity")
"""Fields of a joint that are those of its drive."""


def backlash_tendon(joint: str) -> str:
    """Return the name of the tendon whose limits are the gap between the drive of a joint and its link."""
    return f"{joint}_backlash"


def with_backlash(d: D, joint: str, gap: float, softness: Softness) -> D:
    """Return the description with the drive of a joint as a joint of its own, in a gap."""
    d, where = grounded(d), f"backlash of joint {joint!r}"
    _require_coordinates(d, (joint,), where)
    link = joint_of(d, joint, where)
    if not link.armature > 0.0:
        raise ModelError(f"{d.source}: {where}: its drive has no inertia; give it one, with_joint({joint!r}, armature=...)")
    drive, tendon = f"{joint}_drive", backlash_tendon(joint)
    for kind, name, taken in (("joint", drive, d.joints), ("body", drive, d.bodies), ("tendon", tendon, d.tendons)):
        _require_new(d, kind, name, (x.name for x in taken))
    kind = JointType.PRISMATIC if link.type is JointType.PRISMATIC else JointType.CONTINUOUS
    own: dict[str, Any] = {name: getattr(link, name) for name in DRIVE}
    none: dict[str, Any] = {f.name: f.default for f in fields(Joint) if f.name in DRIVE}
    turns = Joint(drive, kind, link.parent, drive, link.placement, link.axis, link.anchor, link.zero, **own)
    at = d.joints.index(link)
    return replace(
        d,
        bodies=(*d.bodies, Body(drive)),
        joints=(*d.joints[:at], turns, replace(link, **none), *d.joints[at + 1 :]),
        tendons=(
            *d.tendons,
            Tendon(tendon, ((drive, 1.0), (joint, -1.0)), lower=-0.5 * gap, upper=0.5 * gap, limit_softness=softness),
        ),
        actuators=tuple(replace(a, joint=drive) if a.joint == joint else a for a in d.actuators),
        configurations=tuple(
            replace(c, coordinates=(*c.coordinates, *((drive, x) for name, x in c.coordinates if name == joint)))
            for c in d.configurations
        ),
    )  # fmt: skip


def with_shape(d: D, shape: Shape) -> D:
    """Return the description with an additional shape."""
    _require_new(d, "shape", shape.name, (x.name for x in d.shapes))
    links = [body.name for body in d.bodies]
    if shape.body not in (None, WORLD, *links):
        raise ModelError(f"{d.source}: shape {shape.name!r}: there is no link {choose_from(shape.body, links)}")
    return replace(d, shapes=(*d.shapes, shape))


def _require_new(d: Contents, kind: str, name: str, taken: Iterable[str]) -> None:
    if name in taken:
        raise ModelError(f"{d.source}: there already is a {kind} {name!r}; give the new one another name")


def _require_coordinates(d: Contents, joints: Iterable[str], where: str) -> None:
    for name in joints:
        joint = joint_of(d, name, where)
        if joint.type.nv != 1:
            problem = f"joint {name!r} is {joint.type} and has no single coordinate"
            ones = ", ".join(j.name for j in d.joints if j.type.nv == 1)
            raise ModelError(f"{d.source}: {where}: {problem}; those that have one are {ones or 'none'}")


# --- payloads


def with_payload(d: D, on: str, inertia: Inertia) -> D:
    """Return the description with mass added to a body, or to the body of a frame: `inertia` is in that body or frame."""
    d = grounded(d)
    at = place(d, on, "payload")
    if at.body is None:
        raise ModelError(
            f"{d.source}: payload: {on!r} lies on the ground, where mass has no effect; name a body that a joint moves"
        )
    if inertia.mass < 0.0:
        raise ModelError(f"{d.source}: payload on {on!r}: its mass is negative ({inertia.mass:g} kg); correct it")
    owner = next(b for b in d.bodies if b.name == at.body)
    added = Inertia(inertia.mass, (at.pose @ Pose(p=inertia.center)).p, inertia.rotational.rotated(at.pose.R))
    heavier = replace(owner, inertia=summed([owner.inertia, added]), principal=None)
    return replace(d, bodies=tuple(heavier if b is owner else b for b in d.bodies))
