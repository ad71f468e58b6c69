"""Couplings of locked joints, and the couplings that remain for other joints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ..types import Contents, Coupling, ModelError

SAME = 1e-9  # [rad, m] at size 1: difference of equal positions

Positions = dict[str, tuple[float, ...]]


def hold_couplings(d: Contents, asked: Mapping[str, tuple[float, ...]]) -> tuple[tuple[Coupling, ...], Positions]:
    """Return the remaining couplings, and the positions of all locked joints: the given ones, and those that follow.

    A locked joint becomes a constant in the couplings of others. A joint that no longer follows any is locked too, and so is a
    joint that alone leads a locked joint; if a locked joint has several leaders, its coupling is solved for one of them.
    Raises ModelError if positions contradict couplings, or if a locked joint follows others by a polynomial of higher degree,
    which may have several solutions.
    """
    held, left = dict(asked), list(d.couplings)
    while True:
        left = [_with_constants(c, held) for c in left]
        ready = next((k for k, c in enumerate(left) if not c.terms or c.joint in held), None)
        if ready is None:
            return tuple(left), held
        c = left.pop(ready)
        if c.joint in held:
            c = _solved(d, _of_leaders(d, c, left, held), held)
        if c.terms:
            left.insert(ready, c)
        else:
            _hold(d, held, c)


def _hold(d: Contents, held: Positions, c: Coupling) -> None:
    """Record the position of a joint that follows no other; it may be locked already."""
    there = held.setdefault(c.joint, (c.offset,))[0]
    if abs(there - c.offset) > SAME * max(1.0, abs(there), abs(c.offset)):
        problem = f"coupling {c.name!r} puts joint {c.joint!r} at {c.offset:.9g}, not at {there:.9g}"
        raise ModelError(f"{d.source}: locked: {problem}; lock only one of the joints that it connects, or change a position")


def _with_constants(c: Coupling, held: Positions) -> Coupling:
    """Return the coupling with locked joints among its terms as part of the offset."""
    constant = math.fsum(_value(p, held[name][0]) for name, p in c.terms if name in held)
    terms = tuple(term for term in c.terms if term[0] not in held and any(term[1]))
    return replace(c, terms=terms, offset=c.offset + constant)


def _value(coefficients: tuple[float, ...], x: float) -> float:
    value = 0.0
    for coefficient in reversed(coefficients):
        value = (value + coefficient) * x
    return value


def _of_leaders(d: Contents, c: Coupling, others: list[Coupling], held: Positions) -> Coupling:
    """Return a linear coupling in terms of joints that follow none and are not locked."""
    by_joint = {other.joint: other for other in others}
    factors: dict[str, float] = {}
    offset, pending = c.offset, [(name, _factor(d, c, name, p), 0) for name, p in c.terms]
    while pending:
        name, factor, steps = pending.pop(0)
        if steps > len(others):
            raise ModelError(f"{d.source}: locked: couplings of joint {name!r} form a cycle; remove one of them")
        if name in held:
            offset += factor * held[name][0]
        elif name in by_joint:
            chain = by_joint[name]
            offset += factor * chain.offset
            pending += [(leader, factor * _factor(d, c, leader, p), steps + 1) for leader, p in chain.terms]
        else:
            factors[name] = factors.get(name, 0.0) + factor
    return replace(c, terms=tuple((name, (factor,)) for name, factor in factors.items() if factor), offset=offset)


def _factor(d: Contents, c: Coupling, leader: str, coefficients: tuple[float, ...]) -> float:
    if any(coefficients[1:]):
        problem = f"joint {c.joint!r} follows {leader!r} by a polynomial (coupling {c.name!r})"
        raise ModelError(f"{d.source}: locked: {problem}, which may have several solutions; lock {leader!r} instead")
    return coefficients[0]


def _solved(d: Contents, c: Coupling, held: Positions) -> Coupling:
    """Return the coupling of a locked joint, solved for one of its leaders.

    Leaders that are not marked as independent are preferred.
    """
    if not c.terms:
        return c
    terms = {name: factor for name, (factor,) in c.terms}
    joint = next((name for name in terms if name not in d.independent), next(iter(terms)))
    ratio = terms.pop(joint)
    others = tuple((name, (-factor / ratio,)) for name, factor in terms.items())
    return Coupling(c.name, joint, others, (held[c.joint][0] - c.offset) / ratio)
