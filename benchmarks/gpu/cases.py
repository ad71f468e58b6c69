"""The functions that the GPU benchmarks measure, and the speeds that they must reach."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import FILES, ROBOTS
from published import seconds

import featherweight as fw
from featherweight.array_types import Array
from featherweight.engine.function import CompiledFunction

BATCH = 2**20
BATCHES = tuple(2**k for k in range(10, 23))  # of the chart
DISTINCT = 4096  # distinct states; batches repeat them
TIMES_GRID = 20.0  # the speed of GRiD's table, which was measured on another device
FEET = ("leg_left_6_link", "leg_right_6_link")
TALOS, PANDA, G1, CHEETAH = "talos_reduced", "panda", "g1_29dof", "mini_cheetah"


class Case(NamedTuple):
    """A function, and its goals in states per second by precision."""

    robot: str
    name: str
    function: CompiledFunction[Any]
    states: tuple[Array, ...]  # DISTINCT states of each argument, in double precision
    goals: Mapping[str, float] = {}  # default of a named tuple; never changed
    batch: int = BATCH


class Cases(NamedTuple):
    cases: list[Case]
    skipped: list[str]  # sentences


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all scripts of this folder have."""
    text = "folder with the robot files of example-robot-data, if that package is not installed"
    parser.add_argument("--robots", type=Path, default=ROBOTS, metavar="FOLDER", help=text)


def load(name: str, folder: Path) -> fw.Robot:
    """Return a robot from a file, or one that the library defines."""
    if name == CHEETAH:
        return fw.build(fw.robots.mini_cheetah())
    file, base = FILES[name]
    return fw.load(folder / file, base, mimic="independent")


def states(robot: fw.Robot, function: CompiledFunction[Any], n: int = DISTINCT) -> tuple[Array, ...]:
    """Return random arguments of a function: configurations for q, normal numbers for the others."""
    rng = np.random.default_rng(0)
    made = []
    for x in function.program.inputs:
        made.append(robot.random_configuration(rng=rng, size=n) if x.rate else rng.standard_normal((n, *x.shape)))
    return tuple(made)


def cases(given: argparse.Namespace) -> Cases:
    """Return the cases whose robot files exist."""
    found, skipped = [], []
    for name, measured in {TALOS: _talos, PANDA: _panda, CHEETAH: _cheetah, G1: _g1}.items():
        if name in FILES and not (given.robots / FILES[name][0]).is_file():
            skipped.append(f"{name} is left out: no file {FILES[name][0]} in {given.robots} (--robots FOLDER).")
            continue
        found += measured(name, load(name, given.robots))
    return Cases(found, skipped)


def _case(name: str, robot: fw.Robot, what: str, function: CompiledFunction[Any], **more: Any) -> Case:
    return Case(name, what, function, states(robot, function), **more)


def goals(single: float, double: float) -> dict[str, float]:
    return {"float32": single, "float64": double}


def _talos(name: str, robot: fw.Robot) -> list[Case]:
    case = partial(_case, name, robot)
    contacts = [fw.BilateralContact(foot, "weld") for foot in FEET]
    return [
        case("forward dynamics", robot.forward_dynamics, goals=goals(5e8, 1.5e8)),
        case("inverse dynamics", robot.inverse_dynamics, goals=goals(1e9, 3e8)),
        case("mass matrix", robot.mass_matrix),
        case("inverse mass matrix", robot.inverse_mass_matrix),
        case("Delassus matrix, 12 rows", robot.delassus(contacts)),
        case("derivatives of inverse dynamics", robot.inverse_dynamics.derivative()),
    ]


def _panda(name: str, robot: fw.Robot) -> list[Case]:
    return [_case(name, robot, "forward dynamics", robot.forward_dynamics, goals=goals(3e9, 1e9))]


def _cheetah(name: str, robot: fw.Robot) -> list[Case]:
    return [_case(name, robot, "forward dynamics, rotors", robot.forward_dynamics, goals=goals(5e8, 1.5e8))]


def _g1(name: str, robot: fw.Robot) -> list[Case]:
    """Return the cases of G1, with the batch of GRiD's table."""

    def goal(what: str) -> dict[str, float]:
        return {"float32": TIMES_GRID / seconds("GRiD 0.6", name, what)}

    functions = {
        "forward dynamics": robot.forward_dynamics,
        "inverse dynamics": robot.inverse_dynamics,
        "derivatives of forward dynamics": robot.forward_dynamics_derivatives,
    }
    return [_case(name, robot, k, f, goals=goal(k), batch=1024) for k, f in functions.items()]
