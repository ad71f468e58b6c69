"""Tests of the growth of operation counts with the number of clusters: recursions over clusters grow linearly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight import robots
from oracles.mechanisms import closed

SIZES = (8, 12, 16)

NOISE = 0.15
"""Relative tolerance of increments: random gears of ratio one take fewer operations. A power more would give 1.4 or more."""

CHAINS: dict[str, Callable[[int], fw.Description]] = {
    "geared": lambda n: robots.geared_chain(n, rng=1),
    "belts": lambda n: robots.belt_chain(n, rng=2),
}


def chain(kind: str, n: int) -> fw.ClosedRobot:
    return closed(CHAINS[kind](n), execution="interpreted")


def at_the_end(robot: fw.ClosedRobot) -> fw.OperationalSpace:
    return robot.operational_space(fw.BilateralContact(f"link-{robot.nv - 1}", "point"))


def cost(function: fw.CompiledFunction[Any], algorithm: str) -> int:
    return function.candidates[algorithm].flops


RECURSIONS = {
    "inertia": "pv-osim",
    "bias": "aba",
    "apply_delassus": "aba",
    "consistent_inverse": "efp",
    "constrained_dynamics": "pv-osim",
}


@pytest.mark.parametrize("kind", CHAINS)
def test_operations_of_recursions_grow_linearly(kind: str) -> None:
    spaces = [at_the_end(chain(kind, n)) for n in SIZES]
    for name, algorithm in RECURSIONS.items():
        few, some, many = (cost(getattr(space, name), algorithm) for space in spaces)
        assert many - some == pytest.approx(some - few, rel=NOISE)
        function: Any = getattr(spaces[-1], name)
        assert function.algorithm == algorithm
        assert many < cost(function, "ltl")


def test_motion_under_a_contact_takes_little_more_than_motion_without_it() -> None:
    """Check the bound that chains without loops satisfy too: one inward pass for each row, and one more outward pass."""
    robot = chain("geared", 24)
    free = cost(robot.forward_dynamics, "aba")
    assert cost(at_the_end(robot).constrained_dynamics, "pv-osim") < 1.6 * free
    assert cost(at_the_end(robot).apply_delassus, "aba") < 0.75 * free


@pytest.mark.parametrize("kind", CHAINS)
def test_operations_of_the_inverse_mass_matrix_grow_with_its_entries(kind: str) -> None:
    inverses = [chain(kind, n).inverse_mass_matrix for n in (8, 14, 20, 26)]
    second = np.diff([cost(f, "global") for f in inverses], 2)
    assert second[1] == pytest.approx(second[0], rel=NOISE)
    assert inverses[-1].algorithm == "global"


def test_operations_of_solutions_with_the_mass_matrix_grow_linearly() -> None:
    def operations(n: int) -> int:
        robot = chain("geared", n)
        robot.solve_mass_matrix(robot.neutral(), np.ones((n, 1)))
        (function,) = (f for key, f in robot._cache.items() if key[0] == "solve_mass_matrix")
        assert function.algorithm == "aba"
        return int(function.operations.flops)

    few, some, many = (operations(n) for n in (16, 24, 32))
    assert many - some == pytest.approx(some - few, rel=NOISE)
