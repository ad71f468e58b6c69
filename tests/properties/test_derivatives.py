"""Properties of derivatives of any tree and any mechanism with loops: algorithms agree, and so do transposes and powers."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import featherweight as fw
from featherweight.engine.function import CompiledFunction
from featherweight.engine.trace import evaluate, trace
from featherweight.model.generators import random_tree
from featherweight.robot.robot import Robot
from oracles.states import Array, States, state
from oracles.trees import awkward
from properties.test_closed import MODERATE, Case, cases

AGREEMENT = 1e-9  # relative to the greatest entry, for robots with mass ratios of a hundred
LEAST = 1e-3  # lower bound of the greatest entry: zero matrices are rounding of terms of order one

TYPES = ("revolute", "prismatic", "continuous", "spherical", "planar", "floating")


def evaluated(f: CompiledFunction[Any], *arguments: Array) -> list[Array]:
    """Return the results of one state from the trace, which may be too large to compile, because not every algorithm is
    chosen.
    """
    whole = trace(f.program.flat, [a.size for a in f.program.inputs])
    flat = np.array(evaluate(whole, [list(map(float, np.ravel(x))) for x in arguments]))
    ends = np.cumsum([r.size for r in f.program.outputs])[:-1]
    return [x.reshape(r.shape) for x, r in zip(np.split(flat, ends), f.program.outputs, strict=True)]


def assert_alike(ours: Array, theirs: Array) -> None:
    assert np.abs(ours - theirs).max(initial=0.0) <= AGREEMENT * max(np.abs(theirs).max(initial=0.0), LEAST)


def check(robot: Robot, x: States, rng: np.random.Generator) -> None:
    """Check each algorithm for the derivatives, the pushforward and the pullback."""
    n = robot.nv
    for f, derivatives in (
        (robot.inverse_dynamics, robot.inverse_dynamics_derivatives),
        (robot.forward_dynamics, robot.forward_dynamics_derivatives),
    ):
        ways = [evaluated(way, *x) for way in derivatives.alternatives.values()]
        for other in ways[1:]:
            for ours, theirs in zip(ways[0], other, strict=True):
                assert_alike(ours, theirs)
        directions = rng.standard_normal((3, n))
        [along] = evaluated(f.copy().pushforward, *x, *directions)
        assert_alike(sum(J @ d for J, d in zip(ways[0], directions, strict=True)), along)
        bar = rng.standard_normal(n)
        for back, J in zip(evaluated(f.copy().pullback, *x, bar), ways[0], strict=True):
            assert_alike(back, bar @ J)


@settings(deadline=None, max_examples=12)
@given(st.integers(1, 6), st.integers(0, 10**6), st.floats(0.0, 1.0), st.sets(st.sampled_from(TYPES), min_size=1))
def test_random_trees(n: int, seed: int, branching: float, types: set[str]) -> None:
    made = random_tree(n, rng=seed, branching=branching, joint_types=sorted(types), masses=(0.1, 10.0))
    robot = fw.build(awkward(made, np.random.default_rng(seed)))
    check(robot, state(robot, seed, 2.0), np.random.default_rng(seed))


@settings(deadline=None, max_examples=8)
@given(cases())
def test_random_mechanisms(case: Case) -> None:
    robot = case.robot
    if robot.singularity(case.q) < MODERATE:
        check(robot, States(case.q, case.v, case.a), np.random.default_rng(0))
