"""Conversion of a description to links and joints that URDF can express: one root, axes through origins, frames as links."""

from __future__ import annotations

from dataclasses import replace

from ...editing.locking import joint_motion
from ...editing.references import D, grounded, moved, named_frames, new_name, on_bodies
from ...types import WORLD, Body, Joint, JointType, Pose

TURNING_ABOUT_A_POINT = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.SPHERICAL, JointType.FLOATING, JointType.PLANAR)


def as_links(d: D) -> D:
    """Return the same robot with bodies and joints that are the links and joints of a URDF file."""
    return _frames_as_links(_one_root(_axes_through_origins(_zeros_at_placements(on_bodies(grounded(d))))))


def _zeros_at_placements(d: D) -> D:
    """Return the description with children at `placement` where their coordinate is zero."""

    def at_zero(j: Joint) -> Joint:
        return replace(j, placement=j.placement @ joint_motion(j, (0.0,)), zero=0.0)

    return replace(d, joints=tuple(at_zero(j) if j.zero and j.type.nq == 1 else j for j in d.joints))


def _axes_through_origins(d: D) -> D:
    """Return the description without anchors: a joint with an anchor moves a link there, and a fixed joint leads to the child.

    A hidden body is itself moved there.
    """
    bodies, joints = [*d.bodies], [*d.joints]
    for k, j in enumerate(d.joints):
        if j.type not in TURNING_ABOUT_A_POINT or not any(j.anchor):
            continue
        there, back = Pose(p=j.anchor), Pose(p=j.anchor).inverse()
        at = replace(joints[k], placement=joints[k].placement @ there, anchor=(0.0, 0.0, 0.0))
        if j.child in d.virtual:
            joints[k] = at
            joints = [replace(x, placement=back @ x.placement) if x.parent == j.child else x for x in joints]
        else:
            link = new_name(f"{j.child}_at_{j.name}", (b.name for b in bodies))
            bodies.insert(bodies.index(next(b for b in bodies if b.name == j.child)), Body(link))
            joints[k] = replace(at, child=link)
            name = new_name(f"{j.name}_anchor", (x.name for x in joints))
            joints.append(Joint(name, JointType.FIXED, link, j.child, back))
    return replace(d, bodies=tuple(bodies), joints=tuple(joints))


def _one_root(d: D) -> D:
    """Return the description with a link for the ground, unless one root is all that is on the ground."""
    carried = {j.child for j in d.joints}
    roots = [b.name for b in d.bodies if b.name not in carried]
    ends = [end for loop in d.loops for end in (loop.predecessor, loop.successor)]
    on_ground = [j.parent for j in d.joints] + [f.body for f in d.frames] + [s.body for s in d.shapes] + ends
    if len(roots) == 1 and None not in on_ground:
        return d
    ground = new_name(WORLD, (b.name for b in d.bodies))
    taken = [j.name for j in d.joints]
    fixed = tuple(Joint(new_name(f"{root}_to_{ground}", taken), JointType.FIXED, ground, root) for root in roots)
    on = moved(d, lambda body, pose: (body or ground, pose))
    return replace(on, bodies=(Body(ground), *d.bodies), joints=(*fixed, *on.joints))


def _frames_as_links(d: D) -> D:
    own = [*named_frames(d)][len(d.bodies) - len(d.virtual) :]
    taken = {j.name for j in d.joints}
    names: list[str] = []
    for f in own:
        names.append(new_name(f"{f.name}_fixed", taken.union(names)))
    joints = (Joint(name, JointType.FIXED, f.body, f.name, f.placement) for name, f in zip(names, own, strict=True))
    return replace(d, bodies=(*d.bodies, *(Body(f.name) for f in own)), joints=(*d.joints, *joints), frames=())
