"""Attachment of one robot to a frame of another: a gripper on an arm, arms on a torso.

The result has the name and the source of the first, and the elements of both. Gravity, time step, integrator and the rule for
contacts of neighbours are those of the first robot, or of the second if the first has none. `unused` lists the settings of the
second that differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...names import listed
from ..types import Camera, Contents, Joint, JointType, ModelError, Pose, ShapeType
from .acting import moved_drive, moved_tendon
from .configurations import joined, with_coordinates_of
from .kept_sensors import with_sensors_of_rest
from .notes import merged
from .references import D, Place, grounded, new_name, on_bodies, place, supports
from .renaming import KINDS, all_names, with_names


def attached(d: D, other: Contents, frame: str | None, placement: Pose, prefix: str) -> D:
    """Return the description with another one, whose ground lies at `placement` on a frame of the first; None is the ground."""
    d, added = grounded(d), on_bodies(grounded(other))
    if prefix:
        added = with_names(added, lambda name: prefix + name)
    _require_own_names(d, added)
    at = place(d, frame, "attached")
    at = Place(at.body, at.pose @ placement)
    planes = _planes_that_would_move(d, added, at)
    added = replace(
        added,
        shapes=tuple(s for s in added.shapes if s.name not in planes),
        contact_pairs=tuple(pair for pair in added.contact_pairs if not {*planes}.intersection(pair.shapes)),
    )
    added = with_sensors_of_rest(added)
    unused = tuple((kind, f"{text} (of {other.name})") for kind, text in added.unused)
    ruled = d if any(s.collision for s in d.shapes) or not any(s.collision for s in added.shapes) else added
    alone = replace(
        d,
        timestep=added.timestep if d.timestep is None else d.timestep,
        integrator=added.integrator if d.integrator is None else d.integrator,
        neighbours=ruled.neighbours,
        cone=added.cone if d.cone is None else d.cone,
        impratio=added.impratio if d.cone is None else d.impratio,
        noslip=added.noslip if d.cone is None else d.noslip,
        fluid=added.fluid if d.fluid is None else d.fluid,
        led_tendons=d.led_tendons + added.led_tendons,
    )
    unused += tuple(_overruled(alone, added, other.name))
    if planes:
        unused += (("planes on the ground of what was attached", f"{listed(planes)} (of {other.name})"),)
    if any(at.pose.p) and (shifted := [c.name for c in added.cameras if c.has_target and c.target is None]):
        unused += (("cameras that look at the ground, which is another point now", f"{listed(shifted)} (of {other.name})"),)
    added = _on(added, at, {j.name for j in d.joints})
    return replace(
        alone,
        bodies=d.bodies + added.bodies,
        joints=d.joints + added.joints,
        frames=d.frames + added.frames,
        unused=merged(d.unused, unused),
        virtual=d.virtual | added.virtual,
        loops=d.loops + added.loops,
        couplings=d.couplings + added.couplings,
        closures=d.closures + added.closures,
        independent=d.independent + added.independent,
        dependent=d.dependent + added.dependent,
        shapes=d.shapes + added.shapes,
        tendons=d.tendons + added.tendons,
        cameras=d.cameras + added.cameras,
        actuators=d.actuators + added.actuators,
        configurations=joined(d.configurations, with_coordinates_of(added, {j.name for j in added.joints}).configurations),
        disabled_collisions=d.disabled_collisions + added.disabled_collisions,
        contact_pairs=d.contact_pairs + added.contact_pairs,
        sensors=d.sensors + added.sensors,
    )


def _overruled(d: Contents, added: Contents, name: str) -> Iterator[tuple[str, str]]:
    """Yield, in words, the settings of `added` that the result `d` does not keep: a description has only one of each."""
    touching = any(s.collision for s in added.shapes)
    for kind, ours, theirs, there in (
        ("gravity", d.gravity, added.gravity, True),
        ("time step", d.timestep, added.timestep, added.timestep is not None),
        ("integrator", d.integrator, added.integrator, added.integrator is not None),
        ("cones of friction", d.cone, added.cone, added.cone is not None),
        ("impratio", d.impratio, added.impratio, added.cone is not None),
        ("noslip", d.noslip, added.noslip, added.cone is not None),
        ("fluid", d.fluid, added.fluid, added.fluid is not None),
        ("rule for contacts of neighbours", d.neighbours, added.neighbours, touching),
    ):
        if there and ours != theirs:
            yield f"{kind} of what was attached", f"{theirs} (of {name})"


def _require_own_names(d: Contents, added: Contents) -> None:
    """Raise ModelError if two elements of a kind have the same name, or if a frame has the name of a body."""
    there = {*all_names(d)}
    for kind, plural in KINDS.items():
        clash = [name for k, name in all_names(added) if k == kind and (kind, name) in there]
        if clash:
            problem = f"both have {plural} with the names {listed(clash)}"
            raise ModelError(f'{d.source}: attached: {problem}; give a prefix, such as prefix="left_", or rename them')


def _planes_that_would_move(d: Contents, added: Contents, at: Place) -> list[str]:
    """Return floors: planes on the ground of their robot, which must not move with the frame."""
    moves = any(j.type.nv for j in supports(d)[at.body])
    return [s.name for s in added.shapes if moves and s.body is None and s.type is ShapeType.PLANE]


def _on(added: D, at: Place, taken: set[str]) -> D:
    """Return `added` with everything that is on its ground moved to `at`; bodies without a joint get a fixed joint there."""
    moved = {j.child for j in added.joints}
    taken = taken | {j.name for j in added.joints}
    roots = [
        Joint(new_name(f"{b.name}_to_{at.body or 'world'}", taken), JointType.FIXED, at.body, b.name, at.pose)
        for b in added.bodies
        if b.name not in moved
    ]

    def attached_joint(joint: Joint) -> Joint:
        return replace(joint, parent=at.body, placement=at.pose @ joint.placement)

    def end(body: str | None, pose: Pose) -> tuple[str | None, Pose]:
        return (at.body, at.pose @ pose) if body is None else (body, pose)

    def camera(c: Camera) -> Camera:
        c = replace(c, target=at.body) if c.has_target and c.target is None else c
        return replace(c, body=at.body, placement=at.pose @ c.placement) if c.body is None else c

    loops = []
    for x in added.loops:
        (a, A), (b, B) = end(x.predecessor, x.predecessor_frame), end(x.successor, x.successor_frame)
        loops.append(replace(x, predecessor=a, successor=b, predecessor_frame=A, successor_frame=B))
    return replace(
        added,
        joints=(*roots, *(attached_joint(j) if j.parent is None else j for j in added.joints)),
        frames=tuple(replace(f, body=at.body, placement=at.pose @ f.placement) if f.body is None else f for f in added.frames),
        shapes=tuple(replace(s, body=at.body, placement=at.pose @ s.placement) if s.body is None else s for s in added.shapes),
        loops=tuple(loops),
        tendons=tuple(moved_tendon(t, end) for t in added.tendons),
        actuators=tuple(moved_drive(a, end) for a in added.actuators),
        cameras=tuple(map(camera, added.cameras)),
        disabled_collisions=tuple(
            (at.body if a is None else a, at.body if b is None else b) for a, b in added.disabled_collisions
        ),
    )
