"""Changes of tendons and drives when bodies, joints and frames change."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from ..types import Actuator, AnyFrame, Contents, Frame, Pose, Pulley, Tendon, TendonPoint, TendonWrap, frame_name

Move = Callable[[str | None, Pose], tuple[str | None, Pose]]
"""A function from a body (or the ground) and a pose in its frame to those that replace them."""


def moved_tendon(t: Tendon, move: Move) -> Tendon:
    """Return the tendon with other bodies and positions on its path."""

    def point(x: TendonPoint) -> TendonPoint:
        body, pose = move(x.body, Pose(p=x.position))
        return TendonPoint(body, pose.p)

    def node(x: TendonPoint | TendonWrap | Pulley) -> TendonPoint | TendonWrap | Pulley:
        if isinstance(x, TendonPoint):
            return point(x)
        if isinstance(x, Pulley):
            return x
        body, pose = move(x.body, x.placement)
        return x._replace(body=body, placement=pose, side=None if x.side is None else point(x.side))

    return replace(t, path=tuple(map(node, t.path))) if t.path else t


def moved_drive(a: Actuator, move: Move) -> Actuator:
    """Return the drive with another placement of its own frame."""

    def frame(f: AnyFrame) -> AnyFrame:
        if not isinstance(f, Frame):
            return f
        body, pose = move(f.body, Pose.of(f.placement, f.name))
        return replace(f, body=body, placement=pose)

    if a.at is None:
        return a
    return replace(
        a, at=replace(a.at, frame=frame(a.at.frame), reference=None if a.at.reference is None else frame(a.at.reference))
    )


def renamed_drive(a: Actuator, new: Callable[[str], str]) -> Actuator:
    """Return the drive with new names, except those of bodies that carry its own frames."""

    def frame(f: AnyFrame | None) -> AnyFrame | None:
        return replace(f, name=new(f.name)) if isinstance(f, Frame) else None if f is None else new(f)

    def name(x: str | None) -> str | None:
        return None if x is None else new(x)

    at = a.at and replace(a.at, frame=frame(a.at.frame) or a.at.frame, reference=frame(a.at.reference))
    return replace(a, name=new(a.name), joint=name(a.joint), tendon=name(a.tendon), at=at, adhesion=name(a.adhesion))


def without_joints(d: Contents, gone: Collection[str]) -> tuple[tuple[Tendon, ...], tuple[Actuator, ...]]:
    """Return tendons and drives without those that use the coordinates of some joints."""
    tendons = tuple(t for t in d.tendons if not any(joint in gone for joint, _ in t.terms))
    left = {t.name for t in tendons}
    kept = (a for a in d.actuators if a.joint not in gone and (a.tendon is None or a.tendon in left))
    return tendons, tuple(kept)


def without_bodies(
    d: Contents, joints: Collection[str], bodies: Collection[str | None]
) -> tuple[tuple[Tendon, ...], tuple[Actuator, ...]]:
    """Return the tendons and drives of only these joints and bodies (None: the ground)."""
    tendons = tuple(t for t in d.tendons if {*joints}.issuperset(j for j, _ in t.terms) and bodies_of(t) <= {*bodies})
    left = {t.name for t in tendons}
    frames = {f.name: f.body for f in d.frames} | {b.name: b.name for b in d.bodies}

    def stays(f: AnyFrame | None) -> bool:
        return f is None or (f.body if isinstance(f, Frame) else frames.get(f)) in bodies

    def acts(a: Actuator) -> bool:
        on = (a.joint is None or a.joint in joints) and (a.tendon is None or a.tendon in left)
        on = on and (a.adhesion is None or a.adhesion in bodies)
        return on and (a.at is None or (stays(a.at.frame) and stays(a.at.reference)))

    return tendons, tuple(filter(acts, d.actuators))


def bodies_of(t: Tendon) -> set[str | None]:
    """Return the bodies on the path of a tendon."""
    sides = [x.side for x in t.path if isinstance(x, TendonWrap) and x.side is not None]
    return {x.body for x in (*t.path, *sides) if not isinstance(x, Pulley)}


def acted_on(a: Actuator) -> str:
    """Describe the object that a drive acts on."""
    if a.tendon is not None:
        return f"tendon {a.tendon}"
    if a.adhesion is not None:
        return f"contacts of {a.adhesion}"
    if a.at is not None:
        return f"frame {frame_name(a.at.frame)}"
    return str(a.joint)
