"""The mechanisms of Sathya, Decré and Swevers (2023), exact counts of our functions, and polynomials through the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from compared import delassus

from featherweight import BilateralContact, Description, JointType, Robot, build, generators
from featherweight.engine.operations import Operations
from featherweight.model.types import WORLD

LABELS = {
    "pv-osimr": "PV-OSIMr",
    "pv-osim": "PV-OSIM",
    "pv-osimr-some": "PV-OSIMr, some",
    "efpa": "EFPA",
    "kjr": "KJR",
    "ltl": "LTL",
    "dense": "naive",
}
SEED = 2  # of the random geometry; with most other seeds, KJR needs some tens of operations more or less for single links
BRANCH = 7  # links of a branch
TIP = (0.1, 0.05, 0.2)  # [m] where a link is constrained: not on the axis of its own joint


class Mechanism(NamedTuple):
    """A topology, and the links that have 6-D constraints."""

    parents: Sequence[int]
    ends: Sequence[int]
    floating: bool = False

    def robot(self, execution: str = "traced") -> Robot:
        """Return the robot with general geometry and inertias, and revolute joints except for a floating base.

        Geometry and inertias are random, but the same for all links that are the b-th child of their parents, so that longer
        mechanisms repeat the same links and counts are polynomials of the sizes.
        """
        seen: Counter[int] = Counter()
        bodies, joints = [], []
        parts = generators.from_parents([-1] * max(Counter(self.parents).values()), rng=SEED)
        for i, p in enumerate(self.parents):
            body, joint = parts.bodies[seen[p]], parts.joints[seen[p]]
            seen[p] += 1
            kind = JointType.FLOATING if self.floating and p < 0 else joint.type
            bodies.append(replace(body, name=f"body{i}"))
            above = WORLD if p < 0 else f"body{p}"
            joints.append(replace(joint, name=f"joint{i}", type=kind, parent=above, child=f"body{i}"))
        return build(Description("mechanism", "", tuple(bodies), tuple(joints)), execution=execution)

    def contacts(self) -> list[BilateralContact]:
        return [BilateralContact(f"body{i}", placement=moved(*TIP)) for i in self.ends]


def moved(x: float, y: float, z: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the placement of a translated frame."""
    placement = np.eye(4)
    placement[:3, 3] = x, y, z
    return placement


def stem_with_branches(stem: int, branches: int) -> Mechanism:
    """Return figure 3a: a stem with a floating first link and branches of seven links at both ends, constrained at the tips."""
    parents = list(range(-1, stem - 1))
    ends = []
    for at in (stem - 1, 0):
        for _ in range(branches):
            parents += [at, *range(len(parents), len(parents) + BRANCH - 1)]
            ends.append(len(parents) - 1)
    return Mechanism(parents, ends, True)


def chain_of_squares(k: int) -> Mechanism:
    """Return figure 4a: a chain of k² links, every k-th constrained."""
    return Mechanism(range(-1, k * k - 1), range(k - 1, k * k, k))


def constrained_chain(n: int) -> Mechanism:
    """Return figure 4b: a chain with every link constrained."""
    return Mechanism(range(-1, n - 1), range(n))


def stem_with_tips(s: int, c: int, others: int = 0) -> Mechanism:
    """Return a stem of s links with c constrained links at its end, and a chain of `others` links on its first link."""
    chain = [0, *range(s + c, s + c + others - 1)] if others else []
    parents = [*range(-1, s - 1), *[s - 1] * c, *chain]
    return Mechanism(parents, range(s, s + c))


def long_branches(s: int, c: int) -> Mechanism:
    """Return a link with c branches of s links, constrained at the tips."""
    parents = [-1, *(1 + s * b + i - 1 if i else 0 for b in range(c) for i in range(s))]
    return Mechanism(parents, range(s, s * c + 1, s))


def total(operations: Operations) -> int:
    """Return the sum of multiplications, additions, divisions, sines and cosines."""
    return sum(operations)


@cache
def count(mechanism: Callable[..., Mechanism], *sizes: int, algorithm: str) -> int:
    made = mechanism(*sizes)
    return total(delassus(made.robot(), made.contacts(), algorithm).operations)


class Polynomial:
    """The exact polynomial through counts by Newton's divided differences; additional counts must confirm it."""

    def __init__(self, counts: Mapping[int, int | Fraction]) -> None:
        self.counted = tuple(sorted(counts))
        row = [Fraction(counts[x]) for x in self.counted]
        self._differences = [row[0]]
        for order in range(1, len(row)):
            pairs = zip(row, row[1:], self.counted, self.counted[order:], strict=False)
            row = [(b - a) / (y - x) for a, b, x, y in pairs]
            self._differences.append(row[0])
        while len(self._differences) > 1 and not self._differences[-1]:
            self._differences.pop()
        assert len(self._differences) < len(counts), "counts are not a polynomial of a degree that they could confirm"

    @property
    def degree(self) -> int:
        return len(self._differences) - 1

    @property
    def coefficients(self) -> list[Fraction]:
        """Return the coefficients of 1, x, x², ..."""
        found: list[Fraction] = []
        for x, difference in reversed(list(zip(self.counted, self._differences, strict=False))):
            shifted = [Fraction(0), *found]
            found = [a - x * b for a, b in zip(shifted, [*found, Fraction(0)], strict=True)]
            found[0] += difference
        return found

    def __call__(self, x: int) -> int:
        value = sum(c * x**k for k, c in enumerate(self.coefficients))
        assert value.denominator == 1
        return int(value)

    def text(self, x: str) -> str:
        """Return the polynomial in x as text, the highest power first."""
        powers = ["", x, *(x + "²³⁴⁵⁶"[k] for k in range(5))]
        terms = []
        for power, c in zip(powers, self.coefficients, strict=False):
            size = "" if abs(c) == 1 and power else f"{float(abs(c)):,.10g} "
            terms += [("− " if c < 0 else "+ ") + (size + power).strip()] if c else []
        return " ".join(reversed(terms)).removeprefix("+ ")


@cache
def polynomial(mechanism: Callable[[int], Mechanism], algorithm: str, sizes: tuple[int, ...]) -> Polynomial:
    return Polynomial({x: count(mechanism, x, algorithm=algorithm) for x in sizes})


def leading_terms(counts: Mapping[tuple[int, int], int]) -> list[tuple[int, int]]:
    """Return the exponents (i, j) of the terms s^i c^j of the polynomial through counts at all pairs (s, c), without terms that
    divide another term."""
    lengths, numbers = (sorted({pair[axis] for pair in counts}) for axis in (0, 1))
    in_c = {s: Polynomial({c: counts[s, c] for c in numbers}).coefficients for s in lengths}
    highest = max(map(len, in_c.values()))
    terms = set()
    for j in range(highest):
        at = {s: row[j] if j < len(row) else Fraction(0) for s, row in in_c.items()}
        terms |= {(i, j) for i, x in enumerate(Polynomial(at).coefficients) if x}
    return maximal(terms)


def maximal(terms: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    found = set(terms)
    return sorted((t for t in found if not any(t != u and t[0] <= u[0] and t[1] <= u[1] for u in found)), reverse=True)


def sum_of(terms: Iterable[tuple[int, int]], s: str = "s", c: str = "c") -> str:
    def power(x: str, k: int) -> str:
        return "" if k == 0 else x if k == 1 else x + "²³⁴"[k - 2]

    return " + ".join((power(s, i) + " " + power(c, j)).strip() or "1" for i, j in terms)
