"""The robots and contacts of the tables in docs/algorithms."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

from measure import FILES, ROBOTS
from sathya2023_counts import chain_of_squares, stem_with_branches

from featherweight import BilateralContact, Coupling, Description, Robot, build, generators, load, robots

FILE = {"panda": "panda", "hyq": "hyq", "talos": "talos_reduced"}  # of example-robot-data
CHAIN = "chain of "
TREES = ("panda", "hyq", "talos", f"{CHAIN}10", f"{CHAIN}30")
LOOPS = {
    "four-bar": robots.four_bar,
    "planar legs": robots.planar_leg_linkage,
    "geared chain of 12": lambda: robots.geared_chain(12, rng=0),
    "Mini Cheetah": robots.mini_cheetah,
    "Tello": robots.tello,
}


def chain_of_pairs(n: int, up: int) -> Description:
    """Return a chain of n pairs of links, with rotors that belts connect to both joints of a pair.

    The rotors are on the last link of the pair before, or `up` links nearer to the ground.
    """
    parents, couplings = list[int](), []
    for k in range(n):
        a, on = 4 * k, 4 * k - 3 - up if k else -1
        parents += [4 * k - 3 if k else -1, a, on, on]
        couplings.append(Coupling(f"first {k}", f"joint{a + 2}", ((f"joint{a}", (6.0,)),)))
        couplings.append(Coupling(f"second {k}", f"joint{a + 3}", ((f"joint{a}", (-3.0,)), (f"joint{a + 1}", (7.0,)))))
    made = generators.from_parents(parents, rng=1, name=f"{n} pairs")
    return replace(made, couplings=tuple(couplings))


@cache
def robot(name: str) -> Robot:
    """Return one of TREES or LOOPS. Mimic joints are independent; chains have general geometry."""
    if name.startswith(CHAIN):
        return build(generators.chain(int(name.removeprefix(CHAIN))))
    if name in LOOPS:
        return build(LOOPS[name]())
    path, base = FILES[FILE[name]]
    return load(ROBOTS / path, base=base, mimic="independent")


class Case(NamedTuple):
    """A robot with contacts."""

    robot: Robot
    contacts: tuple[BilateralContact, ...]


FEET = ("lf_foot", "rf_foot", "lh_foot", "rh_foot")
SOLES = ("left_sole_link", "right_sole_link")
HANDS = ("gripper_left_base_link", "gripper_right_base_link")
FRAMES = {
    "panda, its hand": ("panda", "weld", ("panda_hand_tcp",)),
    "hyq, four points": ("hyq", "point", FEET),
    "talos, soles": ("talos", "weld", SOLES),
    "talos, soles and hands": ("talos", "weld", SOLES + HANDS),
}
FRAME = {"panda": "panda_hand_tcp", "hyq": "lf_foot", "talos": "left_sole_link"}  # one of each type
MECHANISMS = {
    "16 bodies in a row, every 4th": lambda: chain_of_squares(4),
    "25 in a row, 4 branches at each end": lambda: stem_with_branches(25, 4),
}
CONTACTS = (*FRAMES, *MECHANISMS)


@cache
def case(name: str) -> Case:
    """Return one of CONTACTS; a surface has six rows, a point three."""
    if name in FRAMES:
        of, kind, frames = FRAMES[name]
        return Case(robot(of), tuple(BilateralContact(frame, kind) for frame in frames))
    made = MECHANISMS[name]()
    return Case(made.robot(), tuple(made.contacts()))
