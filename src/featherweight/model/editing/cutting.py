"""Parts of a robot: the subtree of a body, or the robot without some subtrees."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..types import ROOT_JOINT, Contents, ModelError
from .acting import bodies_of, without_bodies
from .kept_parts import with_coordinates_of, with_sensors_of_rest
from .notes import missed, noted
from .references import D, bodies_of_subtree, grounded, on_bodies, require_body, tied_joints, tied_with

CUT = "add the loop again between the remaining bodies, or keep both of its ends"


def subtree(d: D, body: str) -> D:
    """Return the body, on the ground in place of its joint, with its descendants."""
    d = grounded(d)
    require_body(d, body, "subtree")
    return kept_bodies(d, bodies_of_subtree(d, body), ground=False)


def without(d: D, bodies: tuple[str, ...]) -> D:
    """Return the description without the bodies and their descendants."""
    d = grounded(d)
    gone: set[str] = set()
    inward = {j.child: j.parent for j in d.joints}
    for body in bodies:
        require_body(d, body, "without")
        gone |= bodies_of_subtree(d, body)
        above = inward.get(body)
        while above in d.virtual:  # bodies between the joints of the removed body
            gone.add(str(above))
            above = inward.get(str(above))
    left = [b.name for b in d.bodies if b.name not in gone]
    if not left:
        raise ModelError(
            f"{d.source}: without {', '.join(map(repr, bodies))}, which carry all others, nothing is left; keep one"
        )
    return kept_bodies(d, left, ground=True)


def kept_bodies(d: D, bodies: Collection[str], ground: bool) -> D:
    """Return the description of only these bodies, and of the elements on the ground if `ground`.

    A joint is removed with its child, an actuator with its joint, shapes and frames with their body. Loops, couplings and
    closures that concern remaining joints are removed with a warning.
    """
    d = on_bodies(d)
    kept: set[str | None] = {*bodies, *([None] if ground else [])}
    joints = tuple(j for j in d.joints if j.child in kept and j.parent in kept)
    left = {j.name for j in joints}
    ends = {x.name: (x.predecessor in kept, x.successor in kept) for x in d.loops}
    loops = tuple(x for x in d.loops if all(ends[x.name]))
    couplings = tuple(c for c in d.couplings if left.issuperset((c.joint, *(name for name, _ in c.terms))))
    closures = tuple(c for c in d.closures if left.issuperset(c.joints))
    open_loops = [x.name for x in d.loops if any(ends[x.name]) and not all(ends[x.name])]
    open_couplings = [c.name for c in d.couplings if c not in couplings and c.joint in left]
    open_closures = [c.name for c in d.closures if c not in closures and not left.isdisjoint(c.joints)]
    on_ground = [f.name for f in d.frames if f.body is None] + [s.name for s in d.shapes if s.body is None]
    on_ground += [c.name for c in d.cameras if c.body is None]
    cameras = tuple(c for c in d.cameras if c.body in kept)
    blind = [c.name for c in cameras if c.has_target and c.target not in kept]
    shapes = tuple(s for s in d.shapes if s.body in kept)
    shape_names = {s.name for s in shapes}
    tendons, actuators = without_bodies(d, left, kept)
    result = replace(
        d,
        bodies=tuple(b for b in d.bodies if b.name in kept),
        joints=joints,
        frames=tuple(f for f in d.frames if f.body in kept),
        virtual=d.virtual & frozenset(bodies),
        loops=loops,
        couplings=couplings,
        closures=closures,
        shapes=shapes,
        tendons=tendons,
        actuators=actuators,
        cameras=tuple(c for c in cameras if c.name not in blind),
        disabled_collisions=tuple(pair for pair in d.disabled_collisions if kept.issuperset(pair)),
        contact_pairs=tuple(pair for pair in d.contact_pairs if shape_names.issuperset(pair.shapes)),
    )
    result = with_sensors_of_rest(result)
    result = missed(result, "loops that were cut", open_loops, CUT)
    result = missed(result, "couplings to joints that were cut off", open_couplings, "their joints are now independent")
    result = missed(result, "closures of joints that were cut off", open_closures, "their joints now move without them")
    cut = [t.name for t in d.tendons if t not in tendons and not (bodies_of(t) - {None}).isdisjoint(bodies)]
    result = missed(result, "tendons that were cut", cut, "attach them to the remaining bodies")
    result = noted(result, "cameras whose target was cut off", blind)
    result = noted(result, "what was on the ground", [] if ground else on_ground)
    result = with_coordinates_of(result, left | {ROOT_JOINT} if ground else left)
    gone = tied_joints(d).keys() - tied_joints(result).keys()
    return with_marks_of_joints(result, d, {joint for what in gone for joint in tied_joints(d)[what]})


def with_marks_of_joints(result: D, before: Contents, freed: Collection[str]) -> D:
    """Return the description without the marks of removed joints, and of dependent joints that `freed` joints affect.

    If constraints on `freed` joints are removed, the remaining constraints may not determine all marked dependent joints.
    """
    loose, left = tied_with(before, freed), {j.name for j in result.joints}
    unmarked = [name for name in result.dependent if name in loose & left]
    result = replace(
        result,
        independent=tuple(name for name in result.independent if name in left),
        dependent=tuple(name for name in result.dependent if name in left - loose),
    )
    return noted(result, "marks of dependent joints, which are chosen again", unmarked)
