"""Hidden bodies between several joints of one body of a file: they are removed when one of these joints becomes fixed."""

from __future__ import annotations

from dataclasses import replace

from ..types import Camera, Contents, Joint, JointType, Loop, Pose, rotate, transpose
from .acting import moved_drive, moved_tendon
from .references import D

ALONG_AN_AXIS = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC)


def contracted(d: D) -> D:
    """Return the description without hidden bodies that a fixed joint connects to another body.

    The other joints keep their coordinates. If a joint's coordinates cannot be expressed for the body that it then moves, the
    hidden body remains and becomes visible.
    """
    while (joint := _next(d)) is not None:
        in_between = joint.child in d.virtual
        d = _merged(d, joint.child, joint.parent, joint.placement, joint) if in_between else _handed_on(d, joint)
    return d


def _next(d: Contents) -> Joint | None:
    fixed = (j for j in d.joints if j.type is JointType.FIXED)
    return next((j for j in fixed if j.child in d.virtual or j.parent in d.virtual), None)


def _handed_on(d: D, fixed: Joint) -> D:
    """Return the joint that moved the hidden parent of a fixed joint, with the fixed joint's child as its own."""
    F, virtual = fixed.placement, str(fixed.parent)
    inward = next(j for j in d.joints if j.child == virtual)
    straight = inward.type is JointType.SPHERICAL and F.R == Pose().R
    if inward.type is not JointType.FIXED and inward.type not in ALONG_AN_AXIS and not straight:
        return replace(d, virtual=d.virtual - {virtual})
    back = F.inverse()
    moved = replace(
        inward,
        child=fixed.child,
        placement=inward.placement @ F,
        axis=rotate(transpose(F.R), inward.axis),
        anchor=(back @ Pose(p=inward.anchor)).p,
    )
    d = replace(d, joints=tuple(moved if j is inward else j for j in d.joints))
    return _merged(d, virtual, fixed.child, back, fixed)


def _merged(d: D, body: str, onto: str | None, pose: Pose, fixed: Joint) -> D:
    """Return the description without the body and the fixed joint; elements of the body move to `pose` on another."""

    def moved(loop: Loop) -> Loop:
        at: dict[str | None, tuple[str | None, Pose]] = {body: (onto, pose)}
        (a, A), (b, B) = (at.get(end, (end, Pose())) for end in (loop.predecessor, loop.successor))
        frames = A @ loop.predecessor_frame, B @ loop.successor_frame
        return replace(loop, predecessor=a, successor=b, predecessor_frame=frames[0], successor_frame=frames[1])

    def put(at: str | None, placed: Pose) -> tuple[str | None, Pose]:
        return (onto, pose @ placed) if at == body else (at, placed)

    def camera(c: Camera) -> Camera:
        c = replace(c, target=onto) if c.target == body else c
        return replace(c, body=onto, placement=pose @ c.placement) if c.body == body else c

    joints = (j for j in d.joints if j is not fixed)
    return replace(
        d,
        bodies=tuple(b for b in d.bodies if b.name != body),
        virtual=d.virtual - {body},
        joints=tuple(replace(j, parent=onto, placement=pose @ j.placement) if j.parent == body else j for j in joints),
        frames=tuple(replace(f, body=onto, placement=pose @ f.placement) if f.body == body else f for f in d.frames),
        loops=tuple(moved(x) if body in (x.predecessor, x.successor) else x for x in d.loops),
        tendons=tuple(moved_tendon(t, put) for t in d.tendons),
        actuators=tuple(moved_drive(a, put) for a in d.actuators),
        shapes=tuple(replace(s, body=onto, placement=pose @ s.placement) if s.body == body else s for s in d.shapes),
        cameras=tuple(camera(c) for c in d.cameras),
    )
