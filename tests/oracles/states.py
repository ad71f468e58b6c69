"""Random states, and comparisons of results of two programs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import featherweight as fw
from featherweight.engine.function import CompiledFunction
from featherweight.engine.trace import evaluate

Array = npt.NDArray[Any]  # doubles, except in tests of single precision

ROUNDING = 1e-10
"""Largest difference due to rounding, relative to the norm of one state's result.

Two programs that sum the same numbers in another order differ by about n eps κ, where n is the number of terms and κ
measures their cancellation. n eps is about 1e-14 here, so the bound leaves a factor of 1e4 for cancellation; a wrong term
gives a far larger difference. Norms are taken over a whole result, because a component that is nearly zero has no correct
digits.
"""


class States(NamedTuple):
    """Configurations, velocities, accelerations or forces, one row for each state."""

    q: Array
    v: Array
    a: Array


def random_states(robot: fw.Robot, count: int, seed: int = 0) -> States:
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng=rng, size=count)
    return States(q, rng.standard_normal((count, robot.nv)), rng.standard_normal((count, robot.nv)))


def each_state(one: Callable[..., Any]) -> Callable[..., Array]:
    """Extend a method for one state to arrays of states, one row each; other arguments stay unchanged."""

    @functools.wraps(one)
    def call(self: Any, *arguments: Any) -> Array:
        count = next(len(x) for x in arguments if isinstance(x, np.ndarray))
        states = [[x[k] if isinstance(x, np.ndarray) else x for x in arguments] for k in range(count)]
        return np.array([np.array(one(self, *x), dtype=np.float64) for x in states])

    return call


def state(robot: fw.Robot, seed: int, speed: float = 1.0) -> States:
    """Return one state without leading axes: any q, velocities of size `speed`, accelerations or forces of size 1."""
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng=rng)
    return States(q, speed * rng.standard_normal(robot.nv), rng.standard_normal(robot.nv))


def arguments_of(robot: fw.Robot, f: CompiledFunction[Any], count: int, seed: int = 0) -> list[Array]:
    """Return random arguments of any function of a robot, one row for each state: configurations, and numbers of size 1."""
    rng = np.random.default_rng(seed)
    inputs = f.program.inputs
    return [
        robot.random_configuration(rng=rng, size=count) if x.rate else rng.standard_normal((count, *x.shape)) for x in inputs
    ]


def named_arguments(f: CompiledFunction[Any], states: States) -> list[Array]:
    """Return the arguments of a function of q, v, and a or tau, by their names."""
    values = {"q": states.q, "v": states.v, "a": states.a, "tau": states.a}
    return [values[argument.name] for argument in f.program.inputs]


def norms(x: Any, states: int) -> Array:
    """Return the Euclidean norm of each state's result."""
    return np.asarray(np.linalg.norm(np.reshape(x, (states, -1)), axis=1), dtype=np.float64)


def error(result: Any, reference: Any) -> float:
    """Return the largest relative difference over states (the first axis)."""
    result, reference = np.asarray(result, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    assert result.shape == reference.shape
    assert np.all(np.isfinite(result))
    states = len(reference)
    scale = norms(reference, states)
    return float(np.max(norms(result - reference, states) / np.where(scale == 0.0, 1.0, scale), initial=0.0))


def assert_close(result: Any, reference: Any, tolerance: float = ROUNDING) -> None:
    assert error(result, reference) <= tolerance


def assert_same_solutions(x: Any, y: Any, M: Array) -> None:
    """Check that two solutions of M x = b, one system for each state, differ at most by their conditioning.

    Each is exact for a matrix that differs from M by rounding, so x and y differ relatively by up to c eps cond(M) with a
    modest c: 20 here; the largest measured value is 18. Both use units that give M a unit diagonal, so that the joints' units
    do not count as bad conditioning, and a finger's acceleration does not hide an arm's.
    """
    size = np.sqrt(np.diagonal(M, axis1=1, axis2=2))
    x, y = np.asarray(x) * size, np.asarray(y) * size
    scaled = M / (size[:, :, None] * size[:, None, :])
    bound = np.maximum(ROUNDING, 20 * np.finfo(np.float64).eps * np.linalg.cond(scaled))
    assert np.all(norms(x - y, len(M)) <= bound * norms(y, len(M)))


def evaluated(f: CompiledFunction[Any], *arguments: Array) -> list[Array]:
    """Return the results of many states from the trace, which needs no compilation."""
    columns = [list(np.moveaxis(x.reshape(len(x), -1), -1, 0)) for x in arguments]
    count = len(arguments[0])
    values = np.array([np.broadcast_to(x, count) for x in evaluate(f.trace, columns)])
    results, begin = [], 0
    for r in f.program.outputs:
        results.append(np.moveaxis(values[begin : begin + r.size], -1, 0).reshape(count, *r.shape))
        begin += r.size
    return results
