"""Changes of numbers: of joints, of friction, and of inertias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...names import choose_from, listed
from ..solids import shape_solid, summed
from ..types import WORLD, Inertia, JointType, ModelError
from .notes import warn
from .references import D, joint_of


def with_joint(d: D, names: Sequence[str], changes: Mapping[str, Any]) -> D:
    """Return the description with other values of some fields of joints."""
    changed = {name: replace(joint_of(d, name, "with_joint"), **changes) for name in names}
    return replace(d, joints=tuple(changed.get(j.name, j) for j in d.joints))


def with_friction(d: D, friction: float, names: Sequence[str] | None) -> D:
    """Return the description with another friction of collision shapes: of all, or of those with these names or links."""
    shapes = [s for s in d.shapes if s.collision]
    known = dict.fromkeys([*(s.name for s in shapes), *(s.body or WORLD for s in shapes)])
    if unknown := [name for name in names or () if name not in known]:
        raise ModelError(f"{d.source}: with_friction: there is no collision shape {choose_from(unknown[0], [*known])}")
    chosen = [s for s in shapes if names is None or s.name in names or (s.body or WORLD) in names]
    return replace(d, shapes=tuple(replace(s, friction=friction) if s in chosen else s for s in d.shapes))


def with_inertias(d: D, given: Mapping[str, Inertia], density: float | None) -> D:
    """Return the description with inertias of bodies, given or, for those without mass, of their shapes at a density [kg/m³].

    The shapes of a body are those that touch, or those that are seen if none touches. Warns about bodies without such shapes.
    """
    bodies = {b.name: b for b in d.bodies}
    if unknown := [name for name in given if name not in bodies]:
        raise ModelError(f"{d.source}: inertias: there is no body {choose_from(unknown[0], [*bodies])}")
    moved, shapeless = {j.child for j in d.joints if j.type is not JointType.FIXED}, list[str]()
    for name, body in bodies.items():
        if name in given:
            bodies[name] = replace(body, inertia=given[name], principal=None)
        elif density is not None and body.inertia == Inertia() and name not in d.virtual:
            on_body = [s for s in d.shapes if s.body == name]
            touching = [s for s in on_body if s.collision] or on_body
            solids = [solid for s in touching if (solid := shape_solid(s)) is not None]
            if not solids:
                shapeless += [name] * (name in moved)
                continue
            whole = summed([solid.of_mass(density * solid.volume) for solid in solids])
            bodies[name] = replace(body, inertia=whole, principal=None)
    if shapeless:
        problem = f"no shape with a volume is on {listed(shapeless)}, which stays without mass"
        warn(d, f"with_inertias: {problem}; give inertias of these bodies")
    return replace(d, bodies=tuple(bodies.values()))
