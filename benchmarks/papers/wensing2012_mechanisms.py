"""Wensing, Featherstone and Orin (2012): the humanoid with the zeros of the paper, and its variants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from compared import delassus
from mechanisms import floating

from featherweight import BilateralContact, Robot, build, generators
from featherweight.engine.function import CompiledFunction
from featherweight.engine.operations import Operations
from featherweight.model.topology import Topology

BODIES = 35
ALGORITHMS = ("efpa", "kjr", "ltl", "pv-osim", "pv-osimr", "dense")
TITLES = {"efpa": "EFPA", "kjr": "RJK", "ltl": "SFA", "pv-osim": "PV-OSIM", "pv-osimr": "PV-OSIMr", "dense": "dense"}
SFA_TO_EFPA = 0.78  # the paper, hands and feet
ZEROS = (67, 56, 73)  # the paper, per cent: J with hands and feet, H, H with two additional arms and legs


@dataclass(frozen=True)
class Limbs:
    """A distribution of a humanoid's joints. The base is the torso or the pelvis; the waist leads to the other one."""

    base: str = "torso"
    waist: int = 1
    neck: int = 3
    arm: int = 7
    leg: int = 6
    fingers: int = 2
    finger: int = 1  # joints of each finger
    arms: int = 2
    legs: int = 2
    hands: int = 2  # arms with fingers

    def __str__(self) -> str:
        hand = f"{self.fingers} × {self.finger}" if self.fingers else "none"
        return f"{self.base}, waist {self.waist}, neck {self.neck}, arm {self.arm}, fingers {hand}, leg {self.leg}"


class Mechanism(NamedTuple):
    """A tree, and the bodies at its ends."""

    parents: tuple[int, ...]
    hands: tuple[int, ...]
    feet: tuple[int, ...]
    head: int
    fingers: tuple[tuple[int, ...], ...]  # of each hand
    floating: bool = True


class _Tree:
    """A parent array that grows by chains."""

    def __init__(self) -> None:
        self.parents = [-1]

    def chain(self, body: int, length: int) -> int:
        """Add `length` bodies in series to a body; return the last one."""
        for _ in range(length):
            self.parents.append(body)
            body = len(self.parents) - 1
        return body

    def fingers(self, hand: int, limbs: Limbs) -> tuple[int, ...]:
        return tuple(self.chain(hand, limbs.finger) for _ in range(limbs.fingers))


@cache
def humanoid(limbs: Limbs, arms_first: bool = False) -> Mechanism:
    """Return a humanoid on a floating base. The first child, the privileged one, leads to the feet (or to the hands)."""
    tree = _Tree()
    torso = pelvis = 0
    hands: list[int] = []
    if limbs.base == "pelvis":
        torso = tree.chain(0, limbs.waist)
    elif arms_first:
        hands = [tree.chain(0, limbs.arm) for _ in range(limbs.arms)]
        pelvis = tree.chain(0, limbs.waist)
    else:
        pelvis = tree.chain(0, limbs.waist)
    feet = tuple(tree.chain(pelvis, limbs.leg) for _ in range(limbs.legs))
    hands = hands or [tree.chain(torso, limbs.arm) for _ in range(limbs.arms)]
    fingers = tuple(tree.fingers(hand, limbs) for hand in hands[: limbs.hands])
    head = tree.chain(torso, limbs.neck)
    return Mechanism(tuple(tree.parents), tuple(hands), feet, head, fingers)


@cache
def on_one_foot(limbs: Limbs) -> Mechanism:
    """Return the robot with one foot as the ground, which reverses all joints of that leg and of the waist."""
    tree = _Tree()
    pelvis = tree.chain(0, limbs.leg - 1)
    foot = tree.chain(pelvis, limbs.leg)
    torso = tree.chain(pelvis, limbs.waist)
    hands = tuple(tree.chain(torso, limbs.arm) for _ in range(limbs.arms))
    fingers = tuple(tree.fingers(hand, limbs) for hand in hands)
    head = tree.chain(torso, limbs.neck)
    return Mechanism(tuple(tree.parents), hands, (foot,), head, fingers, floating=False)


ASIMO = Limbs()
MORE_LIMBS = replace(ASIMO, arms=4, legs=4, hands=4)


def zeros(mechanism: Mechanism, ends: Sequence[int]) -> tuple[float, float]:
    """Return the zeros due to branches in per cent: of J with six rows per end-effector, and of H."""
    base = 6 if mechanism.floating else 1
    depth = [d + base - 1 for d in Topology(mechanism.parents).depth]
    n = len(depth) + base - 1
    entries = 2 * (sum(depth) + base * (base - 1) // 2) - n  # nonzero entries of H: the depth of each row, on both sides
    return 100 * (1 - sum(depth[e] for e in ends) / (n * len(ends))), 100 * (1 - entries / n**2)


def three_zeros(limbs: Limbs) -> tuple[float, float, float]:
    """Return the three percentages of `ZEROS`; `limbs.hands` counts the hands of the robot with four arms."""
    two = humanoid(replace(limbs, arms=2, legs=2, hands=2))
    four = humanoid(replace(limbs, arms=4, legs=4))
    return (*zeros(two, two.hands + two.feet), zeros(four, four.feet)[1])


def distributions() -> Iterator[Limbs]:
    """Yield all distributions of the joints of 35 bodies; the additional arms have hands or not."""
    joints = product(range(4), range(4), range(4, 9), range(5, 9), range(6), range(1, 5))
    for waist, neck, arm, leg, fingers, finger in joints:
        if 1 + waist + neck + 2 * (arm + leg + fingers * finger) != BODIES or (fingers == 0 and finger > 1):
            continue
        for base in ("torso", "pelvis") if waist else ("torso",):
            for hands in (4, 2) if fingers else (2,):
                yield Limbs(base, waist, neck, arm, leg, fingers, finger, hands=hands)


@cache
def matching() -> tuple[tuple[Limbs, tuple[float, float, float]], ...]:
    """Return the distributions within half a per cent of all three numbers of the paper."""
    found = ((limbs, three_zeros(limbs)) for limbs in distributions())
    return tuple((limbs, z) for limbs, z in found if all(abs(x - y) <= 0.5 for x, y in zip(z, ZEROS, strict=True)))


# ---- counts of our functions

Case = tuple[Mechanism, tuple[int, ...]]


@cache
def robot(mechanism: Mechanism) -> Robot:
    if mechanism.floating:
        return build(floating(mechanism.parents))
    return build(generators.from_parents(mechanism.parents))


def contacts(ends: Sequence[int]) -> list[BilateralContact]:
    """Return contacts with six rows, in end-effector frames with general placements."""
    rng = np.random.default_rng(0)
    found = []
    for e in ends:
        T = np.eye(4)
        Q, R = np.linalg.qr(rng.standard_normal((3, 3)))
        Q = Q * np.sign(np.diag(R))
        T[:3, :3] = Q * np.linalg.det(Q)
        T[:3, 3] = rng.uniform(-0.1, 0.1, 3)
        found.append(BilateralContact(f"body{e}", placement=T))
    return found


@cache
def function(mechanism: Mechanism, ends: tuple[int, ...], algorithm: str) -> CompiledFunction:
    return delassus(robot(mechanism), contacts(ends), algorithm)


def flops(operations: Operations) -> int:
    """Return flops, in which divisions and roots count as multiplications, and sines and cosines do not count."""
    return operations.flops + operations.div + operations.sqrt


def counts(mechanism: Mechanism, ends: tuple[int, ...], algorithms: Sequence[str] = ALGORITHMS[:-1]) -> dict[str, int]:
    """Return flops by algorithm, by default of all except "dense"."""
    return {name: flops(function(mechanism, ends, name).operations) for name in algorithms}


def variants() -> dict[str, Case]:
    """Return mechanisms and end-effectors of figure 6, as far as the text describes them; a free foot comes first."""
    asimo, more, one = humanoid(ASIMO), humanoid(MORE_LIMBS), on_one_foot(ASIMO)
    arms, legs = humanoid(replace(ASIMO, arm=11)), humanoid(replace(ASIMO, leg=10))
    both, fingers = humanoid(replace(ASIMO, arm=11, leg=10)), humanoid(replace(ASIMO, fingers=4, finger=3))
    tips = tuple(tip for hand in asimo.fingers for tip in hand)
    return {
        "HF": (asimo, asimo.hands + asimo.feet),
        "HFH": (asimo, (*asimo.hands, *asimo.feet, asimo.head)),
        "FTF": (asimo, tips + asimo.feet),
        "HF, 4 more joints per arm": (arms, arms.hands + arms.feet),
        "HF, 4 more joints per leg": (legs, legs.hands + legs.feet),
        "HF, 4 more joints per limb": (both, both.hands + both.feet),
        "HF, four-fingered hands": (fingers, fingers.hands + fingers.feet),
        "HF, 2 more arms and legs": (more, more.hands + more.feet),
        "HF, standing on one foot": (one, one.feet + one.hands),
    }
