"""Renaming of a description's elements, and of all references to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..types import NAMED_PARTS, ROOT_JOINT, Contents, LengthTie, ModelError, Sensed, controls_of
from .acting import renamed_drive
from .references import D, grounded, moved, unknown

Rename = Callable[[str], str]


def renamed(d: D, names: Mapping[str, str]) -> D:
    """Return the description in which everything with an old name has the new one; all names change at once."""
    d = grounded(d)
    known = {name for _, name in all_names(d)}
    for old, new in names.items():
        if old not in known:
            raise unknown(d, old, "body, joint or frame", sorted(known), "renamed")
        if not isinstance(new, str) or not new.strip():
            raise ModelError(f"{d.source}: renamed: the new name of {old!r} is {new!r}; give a text that is not empty")
    result = with_names(d, lambda name: names.get(name, name))
    before = Counter(all_names(d))
    for (kind, name), count in Counter(all_names(result)).items():
        if count > max(1, before[kind, name]):
            raise ModelError(f"{d.source}: renamed: two {NAMED_PARTS[kind]} would have the name {name!r}; give another name")
    return result


def all_names(d: Contents) -> Iterator[tuple[str, str]]:
    """Yield the kind and name of each named element."""
    for kind, plural in NAMED_PARTS.items():
        yield from ((kind, element.name) for element in getattr(d, plural))


def _renamed_tie(tie: LengthTie, new: Rename) -> LengthTie:
    first, second = (tuple((new(name), c) for name, c in side) for side in (tie.first, tie.second))
    return tie._replace(first=first, second=second)


def with_names(d: D, new: Rename) -> D:
    """Return the description with `new` of every name in it, except those of configurations; the ground has none."""

    def on(body: str | None) -> str | None:
        return None if body is None else new(body)

    def named(x: Any, **others: Any) -> Any:
        return replace(x, name=new(x.name), **others)

    def sensed(x: Sensed | None) -> Sensed | None:
        return x if x is None or x.name is None else Sensed(x.kind, new(x.name))

    d = moved(d, lambda body, pose: (on(body), pose))
    drives = tuple(renamed_drive(a, new) for a in d.actuators)
    control = dict(zip(controls_of(d.actuators), controls_of(drives), strict=True))
    return replace(
        d,
        bodies=tuple(map(named, d.bodies)),
        joints=tuple(named(j, child=new(j.child)) for j in d.joints),
        frames=tuple(map(named, d.frames)),
        virtual=frozenset(map(new, d.virtual)),
        loops=tuple(map(named, d.loops)),
        couplings=tuple(
            named(
                c,
                joint=new(c.joint),
                terms=tuple((new(name), p) for name, p in c.terms),
                tie=c.tie and _renamed_tie(c.tie, new),
            )
            for c in d.couplings
        ),
        closures=tuple(named(c, joints=tuple(map(new, c.joints))) for c in d.closures),
        independent=tuple(map(new, d.independent)),
        dependent=tuple(map(new, d.dependent)),
        shapes=tuple(named(s, part_of=s.part_of and new(s.part_of)) for s in d.shapes),
        tendons=tuple(named(t, terms=tuple((new(joint), c) for joint, c in t.terms)) for t in d.tendons),
        led_tendons=tuple(map(new, d.led_tendons)),
        actuators=drives,
        configurations=tuple(
            replace(
                c,
                coordinates=tuple((joint if joint == ROOT_JOINT else new(joint), x) for joint, x in c.coordinates),
                controls=tuple((control[name], u) for name, u in c.controls),
            )
            for c in d.configurations
        ),
        cameras=tuple(map(named, d.cameras)),
        sensors=tuple(named(s, on=sensed(s.on), reference=sensed(s.reference)) for s in d.sensors),
        contact_pairs=tuple(replace(p, shapes=(new(p.shapes[0]), new(p.shapes[1]))) for p in d.contact_pairs),
    )
