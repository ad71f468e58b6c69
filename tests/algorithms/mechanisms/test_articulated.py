"""Tests of clusters that hang on several bodies: their articulated inertias, and all algorithms that use them."""

from __future__ import annotations

import functools
from typing import Any

import mpmath
import numpy as np
import pytest
from algorithm_robots import chain_of_pairs

import featherweight as fw
from featherweight.algorithms.mechanisms import articulated
from featherweight.engine.function import CompiledFunction
from featherweight.engine.trace import Arithmetic, evaluate
from oracles.mechanisms import MECHANISMS, closed, coupled_at_random, ladder
from oracles.spanning import SpanningTree, maps
from oracles.states import Array, States, assert_close, random_states, state

SEEDS = (0, 2, 17, 28, 38, 40)
"""Random mechanisms with clusters that have two or three handles, in their parent and beyond it."""

FORWARD = ("aba", "crba-ltdl", "projection")
DELASSUS = ("pv-osim", "pv-osimr", "efpa", "ltl")

ROUNDING = 1e-9
"""Tolerance for random mechanisms: the condition numbers of their mass matrices are at most 1e4."""

DIGITS = 1e-12
"""Tolerance in fifty digits: constants of traces are rounded, and divided by as little as 1e-2."""


@functools.cache
def of(seed: int) -> tuple[fw.ClosedRobot, SpanningTree, States]:
    made = coupled_at_random(seed)
    robot = closed(made, execution="interpreted")
    assert any(len(c.handles) > 1 for c in robot._mechanism.clusters)
    return robot, SpanningTree(made, robot), random_states(robot, 2, seed)


def contacts(robot: fw.Robot) -> list[fw.BilateralContact]:
    """Return contacts on every second body, of points and surfaces, and a second one on the last body."""
    names = [b.name for b in robot.bodies][::-2]
    kinds: Any = ("point", "weld")
    return [fw.BilateralContact(name, kinds[k % 2]) for k, name in enumerate((*names[:3], names[0]))]


seeds = pytest.mark.parametrize("seed", SEEDS)


@seeds
def test_dynamics_are_those_of_pinocchio_s_spanning_tree_under_the_couplings(seed: int) -> None:
    """Check Gauss's principle with couplings by differences, to 1e-8, and the mass matrix and round trips to rounding."""
    robot, tree, (q, v, a) = of(seed)
    G = maps(robot, q)
    M = G.swapaxes(1, 2) @ tree.peer.mass_matrix(np.array([tree.expand(x) for x in q])) @ G
    assert_close(robot.mass_matrix(q), M, ROUNDING)
    assert_close(robot.inverse_mass_matrix(q), np.linalg.inv(M), ROUNDING)
    tau = robot.inverse_dynamics(q, v, a)
    expected = np.array([tree.forward_dynamics(*x)[tree.independent] for x in zip(q, v, a, strict=True)])
    for algorithm in FORWARD:
        assert_close(robot.forward_dynamics(q, v, tau, algorithm=algorithm), a, ROUNDING)
        assert_close(robot.forward_dynamics(q, v, a, algorithm=algorithm), expected, 1e-8)


@seeds
def test_delassus_matrices_of_all_algorithms_are_j_times_the_inverse_times_j(seed: int) -> None:
    robot, _, (q, _, _) = of(seed)
    several = contacts(robot)
    J = robot.contact_jacobian(several)(q)
    expected = J @ np.linalg.inv(robot.mass_matrix(q)) @ J.swapaxes(1, 2)
    for algorithm in DELASSUS:
        assert_close(robot.delassus(several, algorithm)(q), expected, ROUNDING)


def in_fifty_digits(f: CompiledFunction[Any], x: States) -> Array:
    with mpmath.workdps(50):
        numbers = Arithmetic(mpmath.mpf, mpmath.sqrt, mpmath.sin, mpmath.cos)
        parts = x[: len(f.program.inputs)]
        return np.array(evaluate(f.trace, [[mpmath.mpf(float(y)) for y in part] for part in parts], numbers))


@pytest.mark.parametrize("dyads", [0, articulated.DYADS])
@pytest.mark.parametrize("name", ["several", "rotors_up", "pairs", "ladder"])
def test_algorithms_agree_in_fifty_digits(name: str, dyads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check dyads and the blocks that replace them; the ladder has more dyads than stay apart."""
    monkeypatch.setattr(articulated, "DYADS", dyads)
    made = {"pairs": chain_of_pairs(3, 1), "ladder": ladder(5)}.get(name) or MECHANISMS[name]()
    robot = closed(made, execution="interpreted")
    x = state(robot, 1)
    expected, *others = (in_fifty_digits(robot.forward_dynamics.alternatives[k], x) for k in reversed(FORWARD))
    size = max(map(abs, expected))
    for found in others:
        assert max(map(abs, found - expected)) <= DIGITS * size
    several = contacts(robot)[:1]
    expected, *others = (in_fifty_digits(robot.delassus(several, k), x) for k in reversed(DELASSUS))
    size = max(map(abs, expected))
    for found in others:
        assert max(map(abs, found - expected)) <= DIGITS * size


def operations(description: fw.Description) -> int:
    return sum(fw.build(description).forward_dynamics.alternatives["aba"].operations)


def test_the_cost_of_a_chain_of_pairs_with_rotors_one_link_up_is_linear() -> None:
    """Check that every pair is a cluster, and that four more pairs always need about as many operations."""
    robot = closed(chain_of_pairs(4, 1), execution="interpreted")
    assert [len(c.rows) for c in robot._mechanism.clusters] == [4, 4, 4, 4]
    assert [len(c.handles) for c in robot._mechanism.clusters] == [0, 2, 2, 2]
    four, eight, twelve = (operations(chain_of_pairs(n, 1)) for n in (4, 8, 12))
    assert twelve - eight < 1.02 * (eight - four)


def test_the_cost_of_a_ladder_is_linear() -> None:
    short, long, longer = (operations(ladder(n)) for n in (12, 18, 24))
    assert longer - long < 1.1 * (long - short)
