"""Lookup of names in a description: bodies, frames, joints, paths; errors list the known names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from ...names import listed, suggestion
from ..types import WORLD, Contents, Frame, Joint, JointType, Loop, ModelError, Pose
from .acting import Move, moved_drive, moved_tendon

D = TypeVar("D", bound=Contents)


class Place(NamedTuple):
    """A pose on a body, or on the ground: None."""

    body: str | None
    pose: Pose = Pose()


def grounded(d: D) -> D:
    """Return the description with None in place of WORLD where it means the ground."""
    if any(b.name == WORLD for b in d.bodies):
        return d

    return moved(d, lambda name, pose: (None if name == WORLD else name, pose))


def moved(d: D, move: Move) -> D:
    """Return the description with everything that is placed on a body, or on the ground, on the body and at the pose of `move`.

    A joint is placed on its parent.
    """

    def on(x: Any, body: str = "body", placement: str = "placement") -> Any:
        before = getattr(x, body), getattr(x, placement)
        after = move(*before)
        return x if after == before else replace(x, **{body: after[0], placement: after[1]})

    def loop(x: Loop) -> Any:
        return on(on(x, "predecessor", "predecessor_frame"), "successor", "successor_frame")

    def body(name: str | None) -> str | None:
        return move(name, Pose())[0]

    return replace(
        d,
        joints=tuple(on(j, "parent") for j in d.joints),
        frames=tuple(map(on, d.frames)),
        shapes=tuple(map(on, d.shapes)),
        tendons=tuple(moved_tendon(t, move) for t in d.tendons),
        actuators=tuple(moved_drive(a, move) for a in d.actuators),
        loops=tuple(map(loop, d.loops)),
        disabled_collisions=tuple((body(a), body(b)) for a, b in d.disabled_collisions),
        cameras=tuple(on(replace(c, target=body(c.target)) if c.has_target else c) for c in d.cameras),
    )


def shown_bodies(d: Contents) -> list[str]:
    """Return the names of the bodies, without those hidden from users."""
    return [b.name for b in d.bodies if b.name not in d.virtual]


def named_frames(d: Contents) -> Iterator[Frame]:
    """Yield a frame for each shown body, then those of the file; a name that is taken gets the suffix "_frame"."""
    taken: set[str] = set()
    for frame in (*(Frame(name, name) for name in shown_bodies(d)), *d.frames):
        name = frame.name
        while name in taken:
            name += "_frame"
        taken.add(name)
        yield replace(frame, name=name)


def places(d: Contents) -> dict[str, Place]:
    """Return, by name, the places to which something may be attached: bodies, frames, and fixed joints.

    A fixed joint stands for the frame of its child. A name that several places have belongs to the first in this order.
    """
    found = {f.name: Place(f.body, f.placement) for f in named_frames(d)}
    for name in d.virtual:
        found.setdefault(name, Place(name))
    for j in d.joints:
        if j.type is JointType.FIXED:
            found.setdefault(j.name, Place(j.child))
    return found


def place(d: Contents, name: str | None, where: str) -> Place:
    """Return the place of a name; None, and WORLD unless something has that name, are the ground."""
    known = places(d)
    if name is None or (name == WORLD and name not in known):
        return Place(None)
    if name not in known:
        raise unknown(d, name, "body, frame or fixed joint", (n for n in known if n not in d.virtual), where)
    return known[name]


def on_bodies(d: D) -> D:
    """Return the description with bodies in place of the frames or fixed joints that loops name."""

    def moved(loop: Loop) -> Loop:
        where = f"loop {loop.name!r}"
        a, b = place(d, loop.predecessor, where), place(d, loop.successor, where)
        frames = a.pose @ loop.predecessor_frame, b.pose @ loop.successor_frame
        return replace(loop, predecessor=a.body, successor=b.body, predecessor_frame=frames[0], successor_frame=frames[1])

    bodies = {None, *(b.name for b in d.bodies)}
    on = tuple(loop if {loop.predecessor, loop.successor} <= bodies else moved(loop) for loop in d.loops)
    return replace(d, loops=on)


def joint_of(d: Contents, name: str, where: str) -> Joint:
    """Return the joint of this name."""
    for j in d.joints:
        if j.name == name:
            return j
    raise unknown(d, name, "joint", (j.name for j in d.joints), where)


def require_body(d: Contents, name: str, where: str) -> None:
    """Raise ModelError unless this is a body."""
    if name not in shown_bodies(d):
        raise unknown(d, name, "body", shown_bodies(d), where)


def unknown(d: Contents, name: object, kind: str, known: Iterable[str], where: str) -> ModelError:
    """Return the error for an unknown name, with the known names."""
    there = list(known)
    return ModelError(
        f"{d.source}: {where}: there is no {kind} {name!r}{suggestion(name, there)}; there are {listed(there) or 'none'}"
    )


def new_name(wish: str, taken: Iterable[str]) -> str:
    """Return the given name, with a number appended if it is taken."""
    used, name, number = set(taken), wish, 1
    while name in used:
        number += 1
        name = f"{wish}_{number}"
    return name


# --- the tree


def supports(d: Contents) -> dict[str | None, tuple[Joint, ...]]:
    """Return, for each body and for the ground (None), the joints from the ground to it, including fixed joints."""
    children: dict[str | None, list[Joint]] = {}
    for j in d.joints:
        children.setdefault(j.parent, []).append(j)
    moved = {j.child for j in d.joints}
    paths: dict[str | None, tuple[Joint, ...]] = {None: ()} | {b.name: () for b in d.bodies if b.name not in moved}
    waiting = list(paths)
    while waiting:
        body = waiting.pop()
        for j in children.get(body, ()):
            paths[j.child] = (*paths[body], j)
            waiting.append(j.child)
    if lost := [b.name for b in d.bodies if b.name not in paths]:
        raise ModelError(f"{d.source}: bodies {listed(lost)} are not connected to the ground; correct their joints")
    return paths


def bodies_of_subtree(d: Contents, body: str) -> set[str]:
    """Return the body and its descendants."""
    return {name for name, path in supports(d).items() if name and (name == body or any(j.parent == body for j in path))}


def links_of_subtree(d: Contents, link: str | None) -> list[str]:
    """Return the names of a link and its descendants, in the file's order; of all links for the ground.

    Unlike `bodies_of_subtree`, it takes descriptions that are not `grounded`.
    """
    links = [b.name for b in d.bodies]
    if link not in links:
        return links
    above = {j.child: j.parent for j in d.joints}

    def is_on(body: str | None) -> bool:
        while body is not None and body != link:
            body = above.get(body)
        return body is not None

    return [name for name in links if is_on(name)]


def tied_joints(d: Contents) -> dict[str, set[str]]:
    """Return the moving joints that each loop, coupling and closure connects, by "loop 'name'" and so on."""
    paths, child = supports(d), {j.name: j.child for j in d.joints}
    ties: dict[str, tuple[list[str | None], set[str]]] = {}
    for loop in d.loops:
        where = f"loop {loop.name!r}"
        ties[where] = [place(d, end, where).body for end in (loop.predecessor, loop.successor)], set()
    for c in d.couplings:
        names = {c.joint, *(name for name, _ in c.terms)}
        ties[f"coupling {c.name!r}"] = [child[n] for n in names], names
    for closure in d.closures:
        ties[f"closure {closure.name!r}"] = [child[n] for n in closure.joints], {*closure.joints}
    return {what: own | _between(paths, ends) for what, (ends, own) in ties.items()}


def _between(paths: dict[str | None, tuple[Joint, ...]], ends: Iterable[str | None]) -> set[str]:
    """Return the moving joints on the paths to some of the bodies but not to all."""
    on = [{j.name for j in paths[end] if j.type is not JointType.FIXED} for end in ends]
    return {name for names in on for name in names if not all(name in others for others in on)}


def tied_with(d: Contents, joints: Iterable[str]) -> set[str]:
    """Return the joints, and all joints that loops, couplings and closures connect to them, directly or indirectly."""
    together, ties = set(joints), [*tied_joints(d).values()]
    while more := [tie for tie in ties if not tie.isdisjoint(together) and not tie <= together]:
        together.update(*more)
    return together
