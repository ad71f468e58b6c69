"""Fixed tendons of MJCF files: lengths that are linear in joint coordinates. Equalities of tendons become couplings.

A joint of the tendon then follows the others. A relation that is not a sum of polynomials in one coordinate each becomes a
closure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from ....compliant_equalities import LengthPolynomial
from ....contact_rules import DEFAULT_SOFTNESS, Softness
from ....types import Closure, Coupling, LengthTie, ModelError
from ..mujoco_types import MjModel, Mujoco
from ..numbers import composed

ROUNDED = 1e-9  # [m, rad] difference of equal lengths
NOTHING = 1e-12  # relative to the greatest coefficient: rounding error of one that cancels


class FixedTendon(NamedTuple):
    """A tendon whose length is the sum of coefficient × coordinate."""

    name: str
    terms: Mapping[str, float]  # by joint, none zero
    rest: float  # length in qpos0


class _Relation(NamedTuple):
    """Polynomials of coordinates whose sum is zero; constants are in the last."""

    terms: dict[str, Any]  # numpy's, by joint, without constants
    constant: float


def fixed_tendon(mujoco: Mujoco, model: MjModel, t: int) -> FixedTendon | None:
    """Return a fixed tendon; None for a spatial tendon."""
    rows = slice(int(model.tendon_adr[t]), int(model.tendon_adr[t] + model.tendon_num[t]))
    if np.any(model.wrap_type[rows] != mujoco.mjtWrap.mjWRAP_JOINT):
        return None
    terms: dict[str, float] = {}
    for j, coefficient in zip(map(int, model.wrap_objid[rows]), map(float, model.wrap_prm[rows]), strict=True):
        terms[model.joint(j).name] = terms.get(model.joint(j).name, 0.0) + coefficient
    rest = math.fsum(c * float(model.qpos0[model.joint(name).qposadr[0]]) for name, c in terms.items())
    return FixedTendon(model.tendon(t).name, {name: c for name, c in terms.items() if c}, rest)


class TendonEquality(NamedTuple):
    """An equality: the first tendon's length, minus its rest, is a polynomial of degree four of the second's, or constant."""

    name: str
    where: str  # for messages
    first: FixedTendon
    second: FixedTendon | None
    coefficients: Sequence[float]
    softness: Softness = DEFAULT_SOFTNESS

    @property
    def tie(self) -> LengthTie:
        """The equality as it is in the file."""
        other = self.second or FixedTendon("", {}, 0.0)
        sides = tuple(self.first.terms.items()), tuple(other.terms.items())
        return LengthTie(*sides, (self.first.rest, other.rest), tuple(map(float, self.coefficients)))


def hold_tendons(
    equalities: Iterable[TendonEquality], couplings: Sequence[Coupling]
) -> tuple[tuple[Coupling, ...], tuple[Closure, ...]]:
    """Return the couplings, including those of tendons, and closures."""
    followers = {c.joint: c for c in couplings}
    closures = []
    for equality in equalities:
        relation = _relation(equality)
        reduced = None if relation is None else _without_followers(relation, followers)
        pivot = None if reduced is None else _pivot(reduced, followers)
        if reduced is None or (pivot is None and reduced.terms):
            closures.append(_closure(equality))
        elif not reduced.terms:
            if abs(reduced.constant) > ROUNDED:
                problem = f"tendon '{equality.first.name}' has another length by the other equalities, or no joints"
                raise ModelError(f"{equality.where}: {problem}; remove it, or correct its numbers")
        elif pivot is not None:
            followers = {joint: _with_followed(c, pivot, reduced) for joint, c in followers.items()}
            followers[pivot] = replace(_coupling(equality.name, pivot, reduced), softness=equality.softness, tie=equality.tie)
    return tuple(followers.values()), tuple(closures)


def length_by_one_joint(tendon: FixedTendon, couplings: Iterable[Coupling]) -> tuple[str, float, float] | None:
    """Return the joint, a and b of a length that is a × the coordinate of one joint that follows none + b, or None."""
    terms = {name: Polynomial([0.0, c]) for name, c in tendon.terms.items()}
    reduced = _without_followers(_Relation(terms, 0.0), {c.joint: c for c in couplings})
    if reduced is None or len(reduced.terms) != 1:
        return None
    ((joint, p),) = reduced.terms.items()
    p = p.trim()
    return (joint, float(p.coef[1]), reduced.constant) if p.degree() == 1 else None


def _relation(equality: TendonEquality) -> _Relation | None:
    """Return the relation; None if it contains powers of a sum of coordinates."""
    first, second, coefficients = equality.first, equality.second, equality.coefficients
    terms = {name: Polynomial([0.0, c]) for name, c in first.terms.items()}
    constant = -first.rest - float(coefficients[0])
    if second is not None:
        polynomial = composed(Polynomial([0.0, *coefficients[1:]]), Polynomial([-second.rest, 1.0])).trim()
        if polynomial.degree() > 1 and len(second.terms) > 1:
            return None
        constant -= float(polynomial.coef[0])
        for name, c in second.terms.items():
            own = composed(polynomial, Polynomial([0.0, c]))
            terms[name] = terms.get(name, Polynomial([0.0])) - (own - own.coef[0])
    return _Relation(terms, constant)


def _without_followers(relation: _Relation, followers: Mapping[str, Coupling]) -> _Relation | None:
    """Return the relation in terms of joints that follow none; None if it would contain powers of a sum."""
    terms: dict[str, Any] = {}
    constant, most = relation.constant, max(map(_greatest, relation.terms.values()), default=0.0)
    for name, p in relation.terms.items():
        own, added = ({name: p}, 0.0) if name not in followers else _followed(p, followers[name])
        if own is None:
            return None
        constant += added
        for leader, q in own.items():
            terms[leader] = terms.get(leader, Polynomial([0.0])) + q
            most = max(most, _greatest(q))
    return _Relation({name: p for name, p in terms.items() if _greatest(p) > NOTHING * most}, constant)


def _greatest(p: Polynomial) -> float:
    return float(np.abs(p.coef).max())


def _followed(p: Polynomial, c: Coupling) -> tuple[dict[str, Polynomial] | None, float]:
    """Return a polynomial of a coupled coordinate in terms of its leaders, and its constant."""
    p = p.trim()
    if p.degree() > 1:
        if len(c.terms) > 1:
            return None, 0.0
        ((leader, coefficients),) = c.terms
        whole = composed(p, Polynomial([c.offset, *coefficients]))
        return {leader: whole - whole.coef[0]}, float(whole.coef[0])
    slope = float(p.coef[1])
    return {leader: slope * Polynomial([0.0, *coefficients]) for leader, coefficients in c.terms}, slope * c.offset


def _pivot(relation: _Relation, followers: Mapping[str, Coupling]) -> str | None:
    """Return the joint that becomes the follower: among the possible ones, the last with the greatest coefficient."""
    bound = {name for c in followers.values() for name, coefficients in c.terms if any(coefficients[1:])}
    linear = {name: abs(float(p.coef[1])) for name, p in relation.terms.items() if p.trim().degree() == 1 and name not in bound}
    return max(reversed([*linear]), key=lambda name: linear[name], default=None)


def _coupling(name: str, pivot: str, relation: _Relation) -> Coupling:
    slope = float(relation.terms[pivot].coef[1])
    others = {joint: -1.0 / slope * p for joint, p in relation.terms.items() if joint != pivot}
    return Coupling(
        name, pivot, tuple((j, tuple(map(float, p.coef[1:]))) for j, p in others.items()), 0.0 - relation.constant / slope
    )


def _with_followed(c: Coupling, pivot: str, relation: _Relation) -> Coupling:
    """Return a coupling with the pivot replaced by its leaders."""
    if pivot not in dict(c.terms):
        return c
    whole = _Relation({name: Polynomial([0.0, *coefficients]) for name, coefficients in c.terms}, c.offset)
    reduced = _without_followers(whole, {pivot: _coupling("", pivot, relation)})
    assert reduced is not None  # the pivot's term is linear
    terms = tuple((name, tuple(map(float, p.coef[1:]))) for name, p in reduced.terms.items())
    return replace(c, terms=terms, offset=reduced.constant)


def _closure(equality: TendonEquality) -> Closure:
    name, first, second, coefficients = equality.name, equality.first, equality.second, equality.coefficients
    other = second or FixedTendon("", {}, 0.0)
    joints = tuple(dict.fromkeys((*first.terms, *other.terms)))
    one, two = (tuple(tendon.terms.get(joint, 0.0) for joint in joints) for tendon in (first, other))
    function = LengthPolynomial(one, two, (first.rest, other.rest), tuple(map(float, coefficients)), equality.softness)
    return Closure(name, joints, function.residual)
