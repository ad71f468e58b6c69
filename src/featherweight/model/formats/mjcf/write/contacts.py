"""<contact> elements: pairs, and excludes that make MuJoCo exclude the same neighbours."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element, SubElement

from ....contact_rules import NeighbourRule
from ....types import WORLD, Contents, Joint, JointType
from ...xml import written
from .as_bodies import Limb
from .geoms import Geoms
from .losses import Losses

Pair = frozenset[str | None]  # two moving bodies, or one and the ground


def write_contacts(root: Element, d: Contents, file: Sequence[Limb], geoms: Geoms, lost: Losses) -> bool:
    """Write pairs and excludes of a description and its bodies to the file.

    Returns whether MuJoCo must allow contacts between a body and its parent (its flag `filterparent` disabled).
    """
    contact = SubElement(root, "contact")
    ours, theirs, links = _neighbours(d), _neighbours_of_file(file), _touching_links(d, geoms)
    ours, theirs = ({pair for pair in pairs if pair <= links.keys()} for pairs in (ours, theirs))
    unfiltered = d.neighbours is NeighbourRule.NONE or not theirs <= ours
    excluded = dict.fromkeys(frozenset(pair) for pair in d.disabled_collisions if len({*pair}) == 2)
    for pair in sorted(ours if unfiltered else ours - theirs, key=lambda pair: sorted(map(str, pair))):
        a, b = sorted(pair, key=str)
        excluded |= dict.fromkeys(frozenset(ends) for ends in itertools.product(links[a], links[b]))
    order = {None: 0} | {limb.body.name: k for k, limb in enumerate(file, start=1)}
    for ends in excluded:
        one, other = (name or WORLD for name in sorted(ends, key=lambda name: order[name]))
        SubElement(contact, "exclude", body1=one, body2=other)
    _pairs(contact, d, geoms, lost)
    return unfiltered


def _pairs(contact: Element, d: Contents, geoms: Geoms, lost: Losses) -> None:
    first = {s.name: k for k, s in reversed([*enumerate(d.shapes)])}
    for pair in d.contact_pairs:
        ends = [first[name] for name in pair.shapes]
        if not all(k in geoms.names and d.shapes[k].collision for k in ends):
            lost.add("the contact pairs {} of shapes that are not there or do not touch", " and ".join(pair.shapes))
            continue
        names = {f"geom{n}": geoms.names[k] for n, k in enumerate(ends, start=1)}
        sliding, (spinning, rolling) = 1.0 if pair.friction is None else pair.friction, pair.turning_friction
        second = sliding if pair.second_friction is None else pair.second_friction
        friction = written(sliding, second, spinning, rolling, rolling if pair.second_rolling is None else pair.second_rolling)
        numbers = {"condim": str(pair.condim), "friction": friction, "margin": written(pair.margin)}
        numbers |= {key: written(x) for key, x in (("adhesion", pair.adhesion), ("gap", pair.gap)) if x}
        element = SubElement(contact, "pair", names | numbers)
        solref, solimp, _ = pair.softness
        element.set("solref", written(*solref))  # if omitted, MuJoCo takes those of the geoms
        element.set("solimp", written(*solimp))
        if pair.friction is None:
            lost.add(
                "the friction of the contact pairs {}, which have none of their own (1 in the file)", " and ".join(pair.shapes)
            )


# --- neighbours


def _carriers(joints: Mapping[str, Joint]) -> dict[str | None, str | None]:
    """Return the moving body that carries each body, None for the ground; `joints` are those inward, by body."""
    found: dict[str | None, str | None] = {None: None}

    def carrier(body: str | None) -> str | None:
        path = []
        while body not in found and body in joints and joints[str(body)].type is JointType.FIXED:
            path.append(body)
            body = joints[str(body)].parent
        found.setdefault(body, body if body in joints else None)
        found.update(dict.fromkeys(path, found[body]))
        return found[body]

    for body in joints:
        carrier(body)
    return found


def _neighbours(d: Contents) -> set[Pair]:
    """Return pairs of moving bodies whose shapes do not collide by the description's rule."""
    if d.neighbours is NeighbourRule.NONE:
        return set()
    inward = {j.child: j for j in d.joints}
    on = _carriers(inward)

    def shown(body: str | None) -> str | None:
        body = on.get(body)
        while body in d.virtual:
            body = on.get(inward[str(body)].parent)
        return body

    kinds = (JointType.FIXED, JointType.FLOATING)
    joined = {frozenset((shown(j.parent), j.child)) for j in d.joints if j.type not in kinds and j.child not in d.virtual}
    if d.neighbours is NeighbourRule.MOVING:
        return {pair for pair in joined if None not in pair}
    return joined | {frozenset((on.get(x.predecessor), on.get(x.successor))) for x in d.loops}


def _neighbours_of_file(file: Sequence[Limb]) -> set[Pair]:
    """Return the pairs that MuJoCo excludes: moving bodies of which one carries the other."""
    carriers: dict[str | None, str | None] = {None: None}
    pairs: set[Pair] = set()
    for limb in file:
        on = carriers[limb.parent]
        carriers[limb.body.name] = limb.body.name if limb.joints else on
        if limb.joints and on is not None:
            pairs.add(frozenset((on, limb.body.name)))
    return pairs


def _touching_links(d: Contents, geoms: Geoms) -> dict[str | None, list[str | None]]:
    """Return bodies with collision shapes, by the moving body that carries them."""
    on = _carriers({j.child: j for j in d.joints})
    links: dict[str | None, dict[str | None, None]] = {}
    for k, s in enumerate(d.shapes):
        if s.collision and k in geoms.names:
            links.setdefault(on.get(s.body), {})[s.body] = None
    return {carrier: [*bodies] for carrier, bodies in links.items()}
