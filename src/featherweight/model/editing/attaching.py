"""Attachment of one robot to a frame of another: a gripper on an arm, arms on a torso.

The result has the name and the source of the first, and the elements of both. Gravity, time step, integrator and the rule for
contacts of neighbours are those of the first robot, or of the second if the first has none. `unused` lists the settings of the
second that differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...names import listed
from ..types import NAMED_PARTS, Configuration, Contents, Joint, JointType, ModelError, Pose, ShapeType
from .kept_parts import with_coordinates_of, with_sensors_of_rest
from .notes import merged
from .references import D, Place, grounded, moved, new_name, on_bodies, place, supports
from .renaming import all_names, with_names

SETTINGS = {
    "timestep": ("time step", "timestep"),
    "integrator": ("integrator", "integrator"),
    "cone": ("cones of friction", "cone"),
    "impratio": ("impratio", "cone"),
    "noslip": ("noslip", "cone"),
    "fluid": ("fluid", "fluid"),
}
"""Settings of which a description has only one: their names in reports, and the field that is None if they are not given."""

ADDED = (*NAMED_PARTS.values(), "independent", "dependent", "led_tendons", "disabled_collisions", "contact_pairs")
"""Fields of the result that consist of those of both descriptions."""


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
    settings = {key: getattr(added if getattr(d, given) is None else d, key) for key, (_, given) in SETTINGS.items()}
    alone = replace(d, neighbours=ruled.neighbours, **settings)
    unused += tuple(_overruled(alone, added, other.name))
    if planes:
        unused += (("planes on the ground of what was attached", f"{listed(planes)} (of {other.name})"),)
    if any(at.pose.p) and (shifted := [c.name for c in added.cameras if c.has_target and c.target is None]):
        unused += (("cameras that look at the ground, which is another point now", f"{listed(shifted)} (of {other.name})"),)
    added = _on(added, at, {j.name for j in d.joints})
    return replace(
        alone,
        unused=merged(d.unused, unused),
        virtual=d.virtual | added.virtual,
        configurations=_joined(d.configurations, with_coordinates_of(added, {j.name for j in added.joints}).configurations),
        **{name: getattr(d, name) + getattr(added, name) for name in ADDED},
    )


def _joined(ours: Sequence[Configuration], theirs: Sequence[Configuration]) -> tuple[Configuration, ...]:
    """Return the configurations of both robots; those of the same name become one, with the contents of both."""
    found = {c.name: c for c in ours}
    for c in theirs:
        first = found.get(c.name, Configuration(c.name, ()))
        found[c.name] = Configuration(c.name, first.coordinates + c.coordinates, first.controls + c.controls)
    return tuple(found.values())


def _overruled(d: Contents, added: Contents, name: str) -> Iterator[tuple[str, str]]:
    """Yield, in words, the settings of `added` that the result `d` does not keep: a description has only one of each."""
    touching = any(s.collision for s in added.shapes)
    kinds = {"gravity": ("gravity", True)}
    kinds |= {key: (kind, getattr(added, given) is not None) for key, (kind, given) in SETTINGS.items()}
    kinds["neighbours"] = "rule for contacts of neighbours", touching
    for key, (kind, given) in kinds.items():
        if given and getattr(d, key) != getattr(added, key):
            yield f"{kind} of what was attached", f"{getattr(added, key)} (of {name})"


def _require_own_names(d: Contents, added: Contents) -> None:
    """Raise ModelError if two elements of a kind have the same name, or if a frame has the name of a body."""
    there = {*all_names(d)}
    for kind, plural in NAMED_PARTS.items():
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
    children = {j.child for j in added.joints}
    taken = taken | {j.name for j in added.joints}
    roots = [
        Joint(new_name(f"{b.name}_to_{at.body or 'world'}", taken), JointType.FIXED, at.body, b.name, at.pose)
        for b in added.bodies
        if b.name not in children
    ]
    on = moved(added, lambda body, pose: (at.body, at.pose @ pose) if body is None else (body, pose))
    return replace(on, joints=(*roots, *on.joints))
