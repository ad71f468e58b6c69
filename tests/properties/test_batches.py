"""Tests that a state's results depend bitwise on that state alone: not on its batch, its strides or the threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherweight as fw
from oracles.robots import robot_of
from oracles.states import named_arguments, random_states

ROBOTS = ("panda", "hyq", "mixed_8")
FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_force", "kinetic_energy", "center_of_mass")

robots = st.sampled_from(ROBOTS)
functions = st.sampled_from(FUNCTIONS)
sizes = st.integers(1, 70)
seeds = st.integers(0, 2**32 - 1)


def case(robot: str, function: str, count: int, seed: int = 0) -> tuple[fw.CompiledFunction, list[Any]]:
    f = robot_of(robot).functions[function]
    return f, named_arguments(f, random_states(robot_of(robot), count, seed))


@settings(deadline=None, max_examples=80)
@given(robots, functions, sizes, seeds, st.data())
def test_a_state_gives_the_same_bits_in_any_batch(robot: str, function: str, size: int, seed: int, data: st.DataObject) -> None:
    f, args = case(robot, function, size, seed)
    whole = f(*args)
    k = data.draw(st.integers(0, size - 1), label="position")
    stop = data.draw(st.integers(k + 1, size), label="end of a smaller batch")
    np.testing.assert_array_equal(whole[k], f(*(x[k] for x in args)))
    np.testing.assert_array_equal(whole[k:stop], f(*(x[k:stop] for x in args)))


@settings(deadline=None, max_examples=60)
@given(robots, functions, sizes, st.sampled_from(["backwards", "every third", "Fortran", "columns of more"]))
def test_strides_change_nothing(robot: str, function: str, size: int, layout: str) -> None:
    f, args = case(robot, function, size)

    def laid_out(x: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
        if layout == "backwards":
            return x[::-1, ::-1].copy()[::-1, ::-1]
        if layout == "every third":
            return np.repeat(x, 3, axis=0)[::3]
        if layout == "Fortran":
            return np.asfortranarray(x)
        return np.hstack([np.full((size, 3), np.nan), x, np.full((size, 2), np.nan)])[:, 3:-2]

    strided = [laid_out(x) for x in args]
    for x, y in zip(args, strided, strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(f(*strided), f(*args))
    np.testing.assert_array_equal(f(*(x[-1] for x in strided)), f(*(x[-1] for x in args)))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_change_nothing(function: str, threads: int) -> None:
    """Check a batch that is large enough for several threads."""
    f, args = case("panda", function, 20_011)
    np.testing.assert_array_equal(f(*args, threads=threads), f(*args))


@settings(deadline=None, max_examples=40)
@given(robots, st.integers(1, 5), st.integers(1, 5))
def test_leading_axes_broadcast_like_loops(robot: str, rows: int, columns: int) -> None:
    f = robot_of(robot).forward_dynamics
    q, v, tau = random_states(robot_of(robot), max(rows, columns))
    result = f(q[:rows, None], v[:columns], tau[0])
    assert result.shape == (rows, columns, robot_of(robot).nv)
    for i in range(rows):
        for j in range(columns):
            np.testing.assert_array_equal(result[i, j], f(q[i], v[j], tau[0]))


def test_empty_batches_are_fine() -> None:
    f, args = case("hyq", "mass_matrix", 1)
    assert f(args[0][:0]).shape == (0, 18, 18)
    assert f(np.empty((3, 0, 19))).shape == (3, 0, 18, 18)


@settings(deadline=None, max_examples=40)
@given(robots, functions, sizes, st.data())
def test_nan_stays_in_its_state(robot: str, function: str, size: int, data: st.DataObject) -> None:
    f, args = case(robot, function, size)
    clean = f(*args)
    k = data.draw(st.integers(0, size - 1), label="state")
    x = data.draw(st.integers(0, len(args) - 1), label="argument")
    args[x][k] = np.nan
    spoiled = f(*args)
    np.testing.assert_array_equal(np.delete(spoiled, k, axis=0), np.delete(clean, k, axis=0))
    assert np.isnan(spoiled[k]).any()


@settings(deadline=None, max_examples=40)
@given(robots, functions, sizes)
def test_out_takes_the_result(robot: str, function: str, size: int) -> None:
    f, args = case(robot, function, size)
    expected = f(*args)
    out = np.full_like(expected, np.nan)
    assert f(*args, out=out) is out
    np.testing.assert_array_equal(out, expected)
    spread = np.full((size, *(2 * n for n in expected.shape[1:])), np.nan)
    inner = spread[(slice(None), *(slice(None, None, 2) for _ in expected.shape[1:]))]
    f(*args, out=inner)
    np.testing.assert_array_equal(inner, expected)


@settings(deadline=None, max_examples=40)
@given(robots, st.integers(0, 70), st.integers(-2, 2))
def test_out_may_overlap_an_argument(robot: str, size: int, shift: int) -> None:
    """Check one state (size 0) or a batch, whose result overlaps the argument, shifted by up to a few numbers."""
    f = robot_of(robot).forward_dynamics
    q, v, tau = (x if size else x[0] for x in random_states(robot_of(robot), max(1, size)))
    expected = f(q, v, tau)
    space = np.zeros(tau.size + 4)
    given_tau = space[2 : 2 + tau.size].reshape(tau.shape)
    given_tau[...] = tau
    out = space[2 + shift : 2 + shift + tau.size].reshape(tau.shape)
    f(q, v, given_tau, out=out)
    np.testing.assert_array_equal(out, expected)
