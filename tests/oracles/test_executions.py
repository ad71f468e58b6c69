"""Tests that three executions of one source, interpreted, traced and rolled, agree to rounding, in both precisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.generators import from_parents
from oracles.robots import DYNAMICS, example, watched_frames
from oracles.states import arguments_of, assert_close, named_arguments, random_states
from oracles.trees import awkward

EXECUTIONS = ("traced", "rolled")
ROBOTS = ("panda", "kinova", "hyq", "talos", "tiago")
STATES = 3

ROUNDING = 1e-12
"""Tolerance: executions sum the same terms in nearly the same order, so they differ less than two programs."""


@pytest.fixture(params=EXECUTIONS)
def execution(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=ROBOTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("function", DYNAMICS)
def test_agrees_with_plain_python(name: str, execution: str, function: str) -> None:
    robot, reference = example(name, execution), example(name, "interpreted")
    args = named_arguments(robot.functions[function], random_states(robot, STATES))
    compiled = robot.functions[function]
    assert compiled.execution == execution
    plain = reference.functions[function]
    for algorithm in compiled.candidates or (compiled.algorithm,):
        assert_close(compiled(*args, algorithm=algorithm), plain(*args, algorithm=algorithm), ROUNDING)


def flying(execution: str) -> fw.Robot:
    """Return a body that floats and a joint on it, both with rotors."""
    made = from_parents([-1, 0], rng=1, joint_types=("floating", "revolute"), masses=(0.5, 2.0))
    return fw.build(awkward(made, np.random.default_rng(0)), execution=execution)


def results(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


@pytest.mark.parametrize("make", [flying, lambda execution: fw.build(fw.robots.four_bar(), execution=execution)])
def test_every_function_agrees_with_plain_python_and_in_batches(make: Callable[[str], fw.Robot]) -> None:
    """Check that a state has the same bits alone, in plain Python, and in batches of several sizes."""
    compiled, plain = make("traced"), make("interpreted")
    for name, f in compiled.functions.items():
        arguments = arguments_of(compiled, f, 11)
        values, reference = results(f(*arguments)), plain.functions[name]
        expected = results(reference(*arguments, algorithm=f.algorithm))
        for x, y in zip(values, expected, strict=True):
            assert np.abs(x - y).max() <= 1e-9 * max(1.0, np.abs(y).max()), name
        for k, part in ((3, slice(3, 4)), (9, slice(2, 11))):
            for x, y in zip(results(f(*(a[part] for a in arguments))), values, strict=True):
                np.testing.assert_array_equal(x, y[part], name)
            for x, y in zip(results(reference(*(a[k] for a in arguments), algorithm=f.algorithm)), expected, strict=True):
                np.testing.assert_array_equal(x, y[k], name)


@pytest.mark.parametrize("reference", ["local", "local_world_aligned", "world"])
@pytest.mark.parametrize("name", ["kinova", "hyq"])
def test_frames_agree_with_plain_python(name: str, execution: str, reference: str) -> None:
    robot, plain = example(name, execution), example(name, "interpreted")
    q, v, _ = random_states(robot, STATES)
    frames = watched_frames(robot)
    assert_close(robot.frame_placement(frames)(q), plain.frame_placement(frames)(q), ROUNDING)
    jacobian, velocity = robot.frame_jacobian(frames, reference), robot.frame_velocity(frames, reference)
    assert_close(jacobian(q), plain.frame_jacobian(frames, reference)(q), ROUNDING)
    assert_close(velocity(q, v), plain.frame_velocity(frames, reference)(q, v), ROUNDING)
    bias, plain_bias = (r.frame_bias_acceleration(frames, reference) for r in (robot, plain))
    assert_close(bias(q, v), plain_bias(q, v), ROUNDING)


def test_relative_frames_agree_with_plain_python(execution: str) -> None:
    """Check rates of Jacobians, which use all parts of the other functions."""
    robot, plain = example("kinova", execution), example("kinova", "interpreted")
    q, v, _ = random_states(robot, STATES)
    frames, other = watched_frames(robot), robot.bodies[2].name
    for reference in ("local", "local_world_aligned", "world"):
        ours, theirs = (r.frame_jacobian_rate(frames, reference, relative_to=other) for r in (robot, plain))
        assert_close(ours(q, v), theirs(q, v), ROUNDING)


@pytest.mark.parametrize("name", ["kinova", "hyq"])
def test_external_forces_agree_with_plain_python(name: str, execution: str) -> None:
    robot, plain = example(name, execution), example(name, "interpreted")
    states = random_states(robot, STATES)
    f = np.random.default_rng(1).standard_normal((STATES, len(robot.bodies), 6))
    for function in ("inverse_dynamics", "forward_dynamics"):
        ours = robot.functions[function](*states, external_forces=f)
        assert_close(ours, plain.functions[function](*states, external_forces=f), ROUNDING)


@pytest.mark.parametrize("function", DYNAMICS)
@pytest.mark.parametrize("name", ["panda", "hyq", "talos"])
def test_single_precision(name: str, function: str) -> None:
    """Check to 1e-3: eps of 6e-8, a few hundred operations in sequence, through matrices of condition up to 1e2."""
    compiled = example(name).functions[function]
    args = named_arguments(compiled, random_states(example(name), 16))
    result = compiled(*(x.astype(np.float32) for x in args))
    assert result.dtype == np.float32
    assert_close(result, compiled(*args), 1e-3)
