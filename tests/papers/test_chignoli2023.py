"""Tests of Chignoli, Adrian, Kim and Wensing (2023): counts of the cluster algorithms, torques of a leg, the report's
sections.
"""

from __future__ import annotations

from typing import Any

import chignoli2023_chains as chains
import chignoli2023_leg as leg
import chignoli2023_parallel as parallel
import numpy as np
import pytest
from chignoli2023_robots import (
    CLUSTER,
    FORWARD,
    GENERAL,
    INVERSE,
    OSIM,
    ROBOTS,
    UNIFORM,
    compared,
    costs,
    costs_with_divisions,
    exact,
)
from compared import candidate

from featherweight import CompiledFunction

EVERY = (*ROBOTS, *UNIFORM)


def interpreted(function: CompiledFunction[Any]) -> CompiledFunction:
    """Return the same function in plain Python, because compiling these mechanisms takes long."""
    return CompiledFunction(function.program, "interpreted")


@pytest.mark.parametrize("name", EVERY)
def test_cluster_recursions_take_fewer_operations_than_projection_and_multipliers(name: str) -> None:
    """Check tables III and IV: the signs of the paper's numbers."""
    for counted in (costs, costs_with_divisions):
        found = counted(FORWARD, name)
        assert found[CLUSTER[FORWARD]] < min(found["projection"], found["multipliers"])
        assert found["projection"] < found["multipliers"]
    found = costs_with_divisions(OSIM, name)
    assert found["PV-OSIM"] < found["sparse factors"]


@pytest.mark.parametrize("name", ROBOTS[2:])
def test_c_efpa_takes_fewer_operations_than_sparse_factors_for_one_foot(name: str) -> None:
    """Check table IV; chains of 12 links are too short for our counts."""
    found = costs_with_divisions(OSIM, name)
    assert found[CLUSTER[OSIM]] < found["sparse factors"]


@pytest.mark.parametrize("name", ROBOTS)
def test_one_reciprocal_a_row_brings_sparse_factors_ahead_for_one_foot_but_on_the_largest_robot(name: str) -> None:
    """Check that only divisions become fewer: as many multiplications replace them, and roots need one more for D."""
    found, divided = costs(OSIM, name), costs_with_divisions(OSIM, name)
    assert found["sparse factors"] < divided["sparse factors"]
    assert all(found[key] == divided[key] for key in found if key != "sparse factors")
    assert (found["sparse factors"] < found[CLUSTER[OSIM]]) == (name != "JVRC-1")


@pytest.mark.parametrize("name", EVERY)
def test_the_approximate_tree_takes_fewer_operations(name: str) -> None:
    """Check all functions except the inverse operational-space inertia of some robots."""
    for what in (INVERSE, FORWARD):
        found = costs(what, name)
        assert found["approximate"] < found[CLUSTER[what]]


@pytest.mark.parametrize("name", ROBOTS)
def test_the_compared_functions_agree(name: str) -> None:
    """Check one state in plain Python to the rounding of products of some dozens of terms, with gears of up to 12."""
    robot = exact(name)
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng=rng, size=1)
    v, tau = rng.standard_normal((2, 1, robot.nv))
    ours, *others = (interpreted(candidate(robot.forward_dynamics, a))(q, v, tau) for a in ("aba", "projection", "multipliers"))
    for other in others:
        np.testing.assert_allclose(other, ours, rtol=0, atol=1e-8 * np.abs(ours).max())
    found = compared(OSIM, name)
    one, two, three = (interpreted(found[key].function)(q) for key in (CLUSTER[OSIM], "sparse factors", "PV-OSIM"))
    for other in (two, three):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-8 * np.abs(one).max())


def test_general_geometry_has_no_zeros_to_leave_out() -> None:
    """Check that a robot of the same joints takes more operations; a general chain takes the same, except for the axes of
    rotors.
    """
    assert costs(FORWARD, "Mini Cheetah" + GENERAL)[CLUSTER[FORWARD]] > 2 * costs(FORWARD, "Mini Cheetah")[CLUSTER[FORWARD]]
    chain = "12 link GT chain"
    assert costs(FORWARD, chain + GENERAL)[CLUSTER[FORWARD]] == pytest.approx(costs(FORWARD, chain)[CLUSTER[FORWARD]], rel=0.04)


@pytest.mark.parametrize("chain", chains.CHAINS, ids=lambda chain: chain.name)
def test_c_aba_is_linear_in_the_length_of_a_chain(chain: chains.Chain) -> None:
    """Check the slope of log count against log length for long chains; the first links, on the ground, take less."""
    assert chains.exponent(chains.long_counts(chain), *chains.LONG) <= chains.GOAL
    short = {n: chains.counted(chain, n) for n in (8, 12, 16, 24)}
    slopes = {a: chains.exponent({n: c[a] for n, c in short.items()}, 8, 24) for a in chains.FORWARD}
    assert slopes["aba"] < 1.2 and slopes["projection"] > 1.7 and slopes["multipliers"] > 1.9


@pytest.mark.parametrize("chain", chains.CHAINS[2:], ids=lambda chain: chain.name)
def test_two_more_links_in_the_plane_always_take_the_same(chain: chains.Chain) -> None:
    found = [chains.counted(chain, n)["aba"] for n in (4, 6, 8, 10, 12)]
    assert len(set(np.diff(found))) == 1


@pytest.mark.parametrize("kind", [parallel.EXPLICIT, parallel.IMPLICIT])
def test_a_loop_between_parallel_chains_is_one_cluster(kind: str) -> None:
    """Check the sizes of the second version's benchmark: n is 2 d - 1; the implicit constraint has a bar."""
    for made in parallel.every(kind)[:10]:
        robot = parallel.robot(made)
        sizes = [len(cluster.rows) for cluster in robot._mechanism.clusters]
        assert robot.nv == 2 * made.depth - 1
        assert max(sizes) == made.bodies + (kind == parallel.IMPLICIT) and sizes.count(1) == len(sizes) - 1


@pytest.mark.parametrize("kind", [parallel.EXPLICIT, parallel.IMPLICIT])
def test_the_cost_of_a_loop_grows_with_its_bodies_and_that_of_multipliers_with_the_depth(kind: str) -> None:
    small, large, deep = (parallel.counted(parallel.Parallel(kind, *sizes)) for sizes in ((10, 2), (10, 16), (20, 2)))
    assert large["aba"] > 2.5 * small["aba"] and large["multipliers"] < 1.5 * small["multipliers"]
    assert deep["aba"] < 2.2 * small["aba"] and deep["multipliers"] > 4 * small["multipliers"]
    assert large["multipliers"] < min(large[algorithm] for algorithm in parallel.OFFERED)


def test_accelerations_of_parallel_chains_are_those_of_multipliers() -> None:
    """Check states with closed loops, in plain Python."""
    for kind in (parallel.EXPLICIT, parallel.IMPLICIT):
        made = parallel.Parallel(kind, 5, 6)
        robot, state = parallel.robot(made), parallel.states(made, 4)
        np.testing.assert_allclose(robot.residual(state[0]), 0.0, rtol=0, atol=1e-9)
        ours, other = (interpreted(candidate(robot.forward_dynamics, a))(*state) for a in ("aba", "multipliers"))
        np.testing.assert_allclose(ours, other, rtol=0, atol=1e-9 * np.abs(other).max())


def test_root_mean_squares_of_figure_14_are_those_of_the_knee() -> None:
    """Check the values, which the paper rounds to two digits; it names the ankle."""
    for model, (rms, _) in leg.PAPER.items():
        assert abs(leg.deviation(leg.Motion(), model, leg.KNEE)[0] - rms) < 0.005
        assert abs(leg.deviation(leg.Motion(), model, leg.ANKLE)[0] - rms) > 0.2
