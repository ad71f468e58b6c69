"""Conversion of a description to what MJCF can express: free joints only on the ground, no planar joints, no body "world"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from .....spatial.elementary import atan2, norm
from ....editing.joint_types import neutral_position, zero_position
from ....editing.locking import joint_motion
from ....editing.references import D, grounded, new_name, on_bodies
from ....editing.renaming import renamed
from ....placement import frame_with_z
from ....types import (
    START,
    WORLD,
    Body,
    Configuration,
    Contents,
    Coupling,
    Frame,
    Inertia,
    Joint,
    JointType,
    Pose,
    rotate,
    transpose,
)
from ...robot_numbers import free_coordinates
from .losses import Losses

Coordinates = tuple[float, ...]

SPLIT = "the types of the joints {} (each is slides and a rotation in the file, with coordinates of their own)"
ORDER = "the order of the joints {} in q: free joints of bodies on the ground come after the joints of fixed bodies"
FROM_GROUND = "the places that coordinates of the joints {} begin from (the ground's origin in the file)"
NOT_SPLIT = "armature, springs and limits of the joints {}"
UNIT = 1e-12  # deviation of a length from 1 that is left unchanged
MOST_DOF = 6  # degrees of freedom of the joints of one body


def as_bodies(d: D, lost: Losses) -> D:
    """Return the same robot with joints that MJCF can express, for a description `without_world`.

    The placement of a free joint is its body's pose in the file. Configurations have coordinates of all joints.
    """
    return _starting(_split(_free_from_ground(_completed(d), lost), lost))


def without_world(d: D, lost: Losses) -> D:
    """Return the same robot without a body named like the ground.

    A root of this name becomes the ground and a frame; another body of this name is renamed.
    """
    d = on_bodies(grounded(d))
    world = next((b for b in d.bodies if b.name == WORLD), None)
    if world is None:
        return d
    if any(j.child == WORLD for j in d.joints):
        name = new_name(f"{WORLD}_body", (b.name for b in d.bodies))
        lost.add(f"the name of the body {{}} ({name} in the file)", WORLD)
        return renamed(d, {WORLD: name})
    if world.inertia != Inertia():
        lost.add("the mass of the root {}, which is the ground in the file", WORLD)
    frames = d.frames if any(f.name == WORLD for f in d.frames) else (Frame(WORLD, WORLD), *d.frames)
    return grounded(replace(d, bodies=tuple(b for b in d.bodies if b is not world), frames=frames))


# --- configurations


def _completed(d: D) -> D:
    """Return the description with coordinates of all joints: missing ones are zero, or follow from couplings."""
    followers = {c.joint: c for c in d.couplings}
    kinds = {j.name: j.type for j in d.joints}

    def complete(given: Mapping[str, Coordinates]) -> dict[str, Coordinates]:
        values = {j.name: given.get(j.name, zero_position(j.type)) for j in d.joints if j.type is not JointType.FIXED}
        values = {name: _unit(x, kinds[name]) for name, x in values.items()}
        return {
            name: (_followed(followers[name], values),) if name in followers and name not in given else x
            for name, x in (dict(given) | values).items()
        }

    found = (replace(c, coordinates=tuple(complete(dict(c.coordinates)).items())) for c in d.configurations)
    return replace(d, configurations=tuple(found))


def _unit(x: Coordinates, kind: JointType) -> Coordinates:
    """Return coordinates with a quaternion, or cosine and sine, of unit length."""
    if not kind.rotation:
        return x
    length = norm(*x[-kind.rotation :])
    unit = tuple(c / length for c in x[-kind.rotation :])
    return x if abs(length - 1.0) < UNIT else (*x[: -kind.rotation], *unit)


def _followed(c: Coupling, values: Mapping[str, Coordinates]) -> float:
    return c.offset + sum((a * values[name][0] ** k for name, row in c.terms for k, a in enumerate(row, start=1)), 0.0)


def _with_start(d: D) -> D:
    """Return the description with an initial configuration, by default that in which bodies lie at their placements."""
    if any(c.name == START for c in d.configurations):
        return d
    moving = (j for j in d.joints if j.type is not JointType.FIXED)
    zeros = tuple((j.name, neutral_position(j)) for j in moving)
    return replace(d, configurations=(Configuration(START, zeros), *d.configurations))


def _starting(d: D) -> D:
    """Return the description with bodies placed as in the initial configuration, as far as coordinates allow."""
    start = {name: x for c in d.configurations if c.name == START for name, x in c.coordinates}

    def moved(j: Joint) -> Joint:
        if j.type is JointType.FLOATING and j.name in start:
            return replace(j, placement=joint_motion(j, start[j.name]))
        if j.type.nq == 1 and j.name in start and start[j.name][0] != j.zero:
            return replace(j, placement=j.placement @ joint_motion(j, start[j.name]), zero=start[j.name][0])
        return j

    return replace(d, joints=tuple(map(moved, d.joints)))


def _with_coordinates(d: D, joint: Joint, new: Mapping[str, Mapping[str, Coordinates]]) -> D:
    """Return the description with other coordinates in place of a joint's, by configuration."""

    def changed(c: Configuration) -> Configuration:
        pairs = (pair for name, x in c.coordinates for pair in (new[c.name].items() if name == joint.name else [(name, x)]))
        return replace(c, coordinates=tuple(pairs))

    return replace(d, configurations=tuple(map(changed, d.configurations)))


def _coordinates_of(d: Contents, joint: Joint) -> dict[str, Coordinates]:
    """Return the coordinates of one joint, by configuration."""
    return {c.name: dict(c.coordinates)[joint.name] for c in d.configurations}


# --- joints


def _free_from_ground(d: D, lost: Losses) -> D:
    """Return the description with free joints on the ground, where only fixed joints lead to the ground."""
    inward, before = {j.child: j for j in d.joints}, _order(d)
    for j in [j for j in d.joints if j.type is JointType.FLOATING]:
        parent, at = j.parent, j.placement
        while parent is not None and (parent not in inward or inward[parent].type is JointType.FIXED):
            above = inward.get(parent)
            parent, at = (None, at) if above is None else (above.parent, above.placement @ at)
        if parent is not None:
            continue
        if at != Pose() or any(j.anchor):
            lost.add(FROM_GROUND, j.name)
            d = _with_start(d)
            poses = {name: at @ joint_motion(j, x) for name, x in _coordinates_of(d, j).items()}
            d = _with_coordinates(d, j, {name: {j.name: free_coordinates(T)} for name, T in poses.items()})
        free = replace(j, parent=None, placement=Pose(), anchor=(0.0, 0.0, 0.0))
        if (at != Pose() or any(j.anchor)) and j.has_spring:
            T = at @ joint_motion(j, j.rest_pose or zero_position(j.type))
            free = replace(free, rest_pose=free_coordinates(T))
        d = replace(d, joints=tuple(free if x is j else x for x in d.joints))
    for name, k in _order(d).items():
        if k != before[name]:
            lost.add(ORDER, name)
    return d


def _order(d: D) -> dict[str, int]:
    """Return the places of the moving joints in depth-first order."""
    outward, moved = _outward(d), {j.child for j in d.joints}
    waiting = [*reversed(outward[None])]
    for b in reversed(d.bodies):
        waiting += [] if b.name in moved else reversed(outward[b.name])
    order: list[str] = []
    while waiting:
        j = waiting.pop()
        order += [] if j.type is JointType.FIXED else [j.name]
        waiting += reversed(outward[j.child])
    return {name: k for k, name in enumerate(order)}


def _split(d: D, lost: Losses) -> D:
    """Return the description without planar joints, and with free joints only on the ground.

    Planar joints become two slides and a hinge; other free joints become three slides and a ball joint.
    """
    for j in d.joints:
        planar = j.type is JointType.PLANAR
        if not planar and (j.type is not JointType.FLOATING or j.parent is None):
            continue
        lost.add(SPLIT, j.name)
        kind = JointType.REVOLUTE if planar else JointType.SPHERICAL
        taken = [x.name for x in d.joints]
        turn = Joint(new_name(f"{j.name}_turn", taken), kind, j.parent, j.child, j.placement, j.axis, j.anchor)
        turn = replace(turn, damping=j.damping, dry_friction=j.dry_friction, dry_friction_softness=j.dry_friction_softness)
        if replace(j, name=turn.name, type=kind) != turn:
            lost.add(NOT_SPLIT, j.name)
        axes = transpose(frame_with_z(j.axis))[: 2 if planar else 0] or Pose().R
        slides = [
            replace(turn, name=new_name(f"{j.name}_{letter}", taken), type=JointType.PRISMATIC, axis=axis, anchor=Pose().p)
            for letter, axis in zip("xyz", axes, strict=False)
        ]
        new: dict[str, dict[str, Coordinates]] = {}
        for c, x in _coordinates_of(d, j).items():
            new[c] = {slide.name: (value,) for slide, value in zip(slides, x, strict=False)}
            new[c][turn.name] = (atan2(x[3], x[2]),) if planar else x[3:]
        d = _in_place(_with_coordinates(d, j, new), j, [*slides, turn])
    return d


def _in_place(d: D, j: Joint, chain: list[Joint]) -> D:
    """Return the description with consecutive joints in place of one, on hidden bodies."""
    parent, placement, taken = j.parent, j.placement, {b.name for b in d.bodies}
    joints, bodies = [], []
    for each in chain:
        child = j.child if each is chain[-1] else new_name(f"{j.child}/{each.name}", taken)
        joints.append(replace(each, parent=parent, child=child, placement=placement))
        parent, placement = child, Pose()
        if each is not chain[-1]:
            bodies.append(Body(child))
    return replace(
        d,
        bodies=(*bodies, *d.bodies),
        joints=tuple(x for old in d.joints for x in (joints if old is j else (old,))),
        virtual=d.virtual.union(b.name for b in bodies),
    )


# --- bodies of the file


class Limb(NamedTuple):
    """A body of the file and its joints, in its frame; a fixed joint is not listed."""

    body: Body
    parent: str | None
    placement: Pose
    joints: tuple[Joint, ...]


def limbs(d: Contents) -> Iterator[Limb]:
    """Yield the bodies of the file, depth-first; hidden bodies become joints of the next body, where MuJoCo allows it."""
    bodies, outward = {b.name: b for b in d.bodies}, _outward(d)
    roots = bodies.keys() - {j.child for j in d.joints}
    waiting = [*reversed(outward[None])]
    waiting += [Joint("", JointType.FIXED, None, name) for name in reversed([*bodies]) if name in roots]
    occupied = {x for pair in d.disabled_collisions for x in pair}
    occupied |= {f.body for f in d.frames} | {s.body for s in d.shapes} | {x for c in d.cameras for x in (c.body, c.target)}
    occupied |= {end for loop in d.loops for end in (loop.predecessor, loop.successor)}

    def passes(chain: list[Joint]) -> bool:
        child = chain[-1].child
        plain = child in d.virtual and child not in occupied and bodies[child].inertia == Inertia()
        return plain and len(outward[child]) == 1 and _one_body([*chain, *outward[child]])

    while waiting:
        chain = [waiting.pop()]
        while passes(chain):
            chain += outward[chain[-1].child]
        yield _limb(bodies[chain[-1].child], chain)
        waiting += reversed(outward[chain[-1].child])


def _outward(d: Contents) -> dict[str | None, list[Joint]]:
    found: dict[str | None, list[Joint]] = {None: [], **{b.name: [] for b in d.bodies}}
    for j in d.joints:
        found[j.parent].append(j)
    return found


def _one_body(chain: list[Joint]) -> bool:
    """Return whether MuJoCo allows one body to have all of these joints."""
    kinds = [j.type for j in chain]
    after_ball = kinds[kinds.index(JointType.SPHERICAL) + 1 :] if JointType.SPHERICAL in kinds else []
    return (
        not {JointType.FIXED, JointType.FLOATING} & {*kinds}
        and {*after_ball} <= {JointType.PRISMATIC}
        and sum(kind.nv for kind in kinds) <= MOST_DOF
    )


def _limb(body: Body, chain: list[Joint]) -> Limb:
    """Return a body whose axes and anchors are in its frame with all joints at zero."""
    joints, behind = [], Pose()
    for j in reversed(chain):
        back = behind.inverse()
        moved = j if behind == Pose() else replace(j, axis=rotate(back.R, j.axis), anchor=(back @ Pose(p=j.anchor)).p)
        joints.append(moved)
        behind = j.placement if behind == Pose() else j.placement @ behind
    moving = tuple(j for j in reversed(joints) if j.type is not JointType.FIXED)
    return Limb(body, chain[0].parent, behind, moving)
