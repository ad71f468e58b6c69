"""Tests of the algorithms of forward dynamics against each other, and of the choice between them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.engine.function import CompiledFunction
from oracles.robots import NAMES, robot_of
from oracles.states import assert_same_solutions, random_states
from oracles.trees import ILL_CONDITIONED, TREES

STATES = 4


@pytest.fixture(params=[*NAMES, *TREES, *ILL_CONDITIONED])
def robot(request: pytest.FixtureRequest) -> fw.Robot:
    return robot_of(request.param)


def test_forward_dynamics_by_both_algorithms(robot: fw.Robot) -> None:
    states, M = random_states(robot, STATES), robot.mass_matrix(random_states(robot, STATES).q)
    f = robot.forward_dynamics
    one, other = f(*states, algorithm="aba"), f(*states, algorithm="crba-ltdl")
    assert_same_solutions(one, other, M)
    np.testing.assert_array_equal(f(*states), {"aba": one, "crba-ltdl": other}[f.algorithm])


@pytest.mark.parametrize("name", ["hyq", "panda", "mixed_8", "roots", "floating_inside", "fixed_between", "anchored"])
def test_external_forces_by_both_algorithms(name: str) -> None:
    robot = robot_of(name)
    states, f = random_states(robot, STATES), robot.forward_dynamics
    forces = np.random.default_rng(5).standard_normal((STATES, len(robot.bodies), 6))
    one = f(*states, external_forces=forces, algorithm="aba")
    other = f(*states, algorithm="crba-ltdl", external_forces=forces)
    assert_same_solutions(one, other, robot.mass_matrix(states.q))
    assert not np.allclose(other, f(*states, algorithm="crba-ltdl"))
    # forward dynamics inverts inverse dynamics
    tau = robot.inverse_dynamics(*states, external_forces=forces)
    back = f(states.q, states.v, tau, external_forces=forces, algorithm="crba-ltdl")
    assert_same_solutions(back, states.a, robot.mass_matrix(states.q))


@pytest.mark.parametrize("name", [*NAMES, "balanced", "side_branches", "roots", "depth_one", "mixed_21"])
def test_the_algorithm_with_the_fewest_operations_is_chosen(name: str) -> None:
    """Check the choice.

    Sines and cosines do not count, because all algorithms have the same; a division counts as eight products.
    """
    f = robot_of(name).forward_dynamics
    found = f.candidates
    assert set(found) == {"aba", "crba-ltdl"}
    assert len({o.trig for o in found.values()}) == 1
    assert f.algorithm == min(found, key=lambda a: found[a].mul + found[a].add + 8 * (found[a].div + found[a].sqrt))
    assert f.operations == found[f.algorithm]


def test_each_algorithm_is_chosen_for_some_robot() -> None:
    """Check robots for which each algorithm is best: the mass matrix of a shallow tree is sparse, that of a long chain
    dense.
    """
    assert robot_of("balanced").forward_dynamics.algorithm == "crba-ltdl"
    assert fw.build(fw.generators.chain(20)).forward_dynamics.algorithm == "aba"


@pytest.mark.parametrize("name", ["panda", "depth_one"])
def test_an_unknown_algorithm_is_refused(name: str) -> None:
    robot = robot_of(name)
    states = random_states(robot, 2)
    with pytest.raises(ValueError, match=r"forward_dynamics: algorithm must be one of aba, crba-ltdl; got 'rnea'"):
        robot.forward_dynamics(*states, algorithm="rnea")
    with pytest.raises(ValueError, match=r"inverse_dynamics: algorithm must be one of rnea; got 'aba'"):
        robot.inverse_dynamics(*states, algorithm="aba")
    np.testing.assert_array_equal(robot.inverse_dynamics(*states, algorithm="rnea"), robot.inverse_dynamics(*states))


@pytest.mark.parametrize("algorithm", ["aba", "crba-ltdl"])
def test_an_algorithm_may_be_asked_for_one_state_after_another(algorithm: str) -> None:
    """Check calls before and after the function for one state becomes a built-in function."""
    robot = robot_of("double_pendulum")
    q, v, tau = random_states(robot, 3)
    batch = robot.forward_dynamics(q, v, tau, algorithm=algorithm)
    for k in range(3):
        one = robot.forward_dynamics(q[k], v[k], tau[k], algorithm=algorithm)
        np.testing.assert_allclose(one, batch[k], rtol=1e-12)
        robot.forward_dynamics(q[k], v[k], tau[k])


def test_pickles_keep_the_algorithms() -> None:
    robot = robot_of("panda")
    states = random_states(robot, 2)
    f: CompiledFunction[Any] = robot.forward_dynamics
    g: CompiledFunction[Any] = pickle.loads(pickle.dumps(f))
    assert (g.algorithm, g.candidates) == (f.algorithm, f.candidates)
    again: fw.Robot = pickle.loads(pickle.dumps(robot))
    forces = np.ones((len(robot.bodies), 6))
    for algorithm in f.candidates:
        expected = f(*states, algorithm=algorithm)
        np.testing.assert_array_equal(g(*states, algorithm=algorithm), expected)
        np.testing.assert_array_equal(again.forward_dynamics(*states, algorithm=algorithm), expected)
        pushed = g(*states, algorithm=algorithm, external_forces=forces)
        np.testing.assert_array_equal(pushed, f(*states, algorithm=algorithm, external_forces=forces))
