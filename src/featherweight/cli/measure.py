"""Time of functions: medians over repeated measurements."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array
from ..engine.function import CompiledFunction
from ..robot.robot import Robot

SHORTEST = 2e-3  # [s] least time of one measurement; shorter calls are repeated


class Timing(NamedTuple):
    """Time of a function for one state [s]."""

    name: str
    single: float  # one call from Python for each state
    batch: float  # one call for many states, on one thread
    threaded: float  # the same call on all threads


def random_arguments(robot: Robot, function: CompiledFunction[Any], rng: np.random.Generator, states: int) -> list[Array]:
    """Return random arguments for a number of states: configurations within limits, all others standard normal."""
    return [
        robot.random_configuration(rng=rng, size=states) if a.rate else rng.standard_normal((states, *a.shape))
        for a in function.program.inputs
    ]


def time_functions(
    robot: Robot, names: Iterable[str], batch: int, threads: int, repeats: int, progress: Callable[[str], None]
) -> list[Timing]:
    """Time functions of a robot; `progress` is called with the name of each function when it is done."""
    rng = np.random.default_rng(0)
    functions, timings = robot.functions, []
    for name in names:
        arguments = random_arguments(robot, functions[name], rng, batch)
        timings.append(time_function(name, functions[name], arguments, threads, repeats))
        progress(name)
    return timings


def time_function(name: str, function: CompiledFunction[Any], arguments: list[Array], threads: int, repeats: int) -> Timing:
    """Time a function for a batch of states, with a given result array, and for its first state alone."""
    states = len(arguments[0])
    one = [a[0].copy() for a in arguments]
    results = tuple(np.empty((states, *y.shape)) for y in function.program.outputs)
    out = results if len(results) > 1 else results[0]
    single = _median_time(lambda: function(*one), repeats)
    batch = _median_time(lambda: function(*arguments, out=out, threads=1), repeats)
    threaded = batch
    if threads > 1:
        threaded = _median_time(lambda: function(*arguments, out=out, threads=threads), repeats)
    return Timing(name, single, batch / states, threaded / states)


def _median_time(call: Callable[[], Any], repeats: int) -> float:
    """Return the median time of a call [s], without the first one, which compiles."""
    call()
    calls = 1
    while (elapsed := _time(call, calls)) < SHORTEST:
        calls = max(2 * calls, int(calls * SHORTEST / max(elapsed, 1e-7)))
    return median(_time(call, calls) for _ in range(repeats)) / calls


def _time(call: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - start
