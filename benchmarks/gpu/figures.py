"""Measurements of our functions on a device, and on the processors of the same machine."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from cases import BATCHES, Case
from gpu_arrays import Library, Processor, median_by_events, median_of
from kernel_code import compiled, empty_cache
from roofline import BYTES, moved

from featherweight.engine.function import CompiledFunction

OURS = "Featherweight"
CHECKED = 64  # states whose results are compared with the processor's, in double precision
AGREE = {"float32": 1e-3, "float64": 1e-9}  # relative to the largest entry
RESULTS = 2**34  # bytes of one batch at most
ON_PROCESSORS = 2**18  # states of a batch on the processors
COPIED = 2**20  # states that begin and end as NumPy arrays


class Figure(NamedTuple):
    """The time of a batch [s], by device events and by wall clock."""

    part: str
    library: str
    robot: str
    function: str
    precision: str
    batch: int
    seconds: float
    wall: float | None = None
    goal: float | None = None  # [states/s]
    difference: float | None = None  # from double precision on the processor, relative to the largest entry
    first: float | None = None  # the first call, which compiles [s]

    @property
    def rate(self) -> float:
        return self.batch / self.seconds

    @property
    def wrong(self) -> bool:
        return self.difference is not None and not self.difference < AGREE[self.precision]

    @property
    def met(self) -> str:
        if self.goal is None:
            return ""
        return "yes" if self.rate >= self.goal and not self.wrong else "no"


def fitting(function: CompiledFunction[Any], precision: str, batch: int) -> int:
    """Return the batch size, halved until the arrays fit RESULTS bytes."""
    while batch > 1 and batch * moved(function, precision) > RESULTS:
        batch //= 2
    return batch


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


class Prepared:
    """A function with its arguments and result arrays on a device."""

    def __init__(self, case: Case, precision: str, batch: int, lib: Library) -> None:
        self.case, self.precision, self.batch = case, precision, batch
        repeated = (np.resize(x.astype(precision), (batch, *x.shape[1:])) for x in case.states)
        self.arrays = [lib.array(x) for x in repeated]
        with compiled() as codes:
            begun = time.perf_counter()
            results = case.function(*self.arrays)
            lib.synchronize()
            self.first = time.perf_counter() - begun
        self.code = codes[0] if codes else None  # the others are smaller kernels, for copies
        self.lib = lib
        out = tuple(lib.empty(x) for x in as_tuple(results))
        self.out = out if isinstance(results, tuple) else out[0]

    def tune(self) -> None:
        """Select the fastest kernel for these states."""
        with compiled() as codes:
            begun = time.perf_counter()
            self.case.function.tune(*self.arrays)
            self.lib.synchronize()
            self.first = time.perf_counter() - begun
        self.code = codes[0] if codes else self.code

    def call(self) -> Any:
        return self.case.function(*self.arrays, out=self.out)

    @property
    def difference(self) -> float:
        """The largest difference from double precision on the processor, relative to the largest entry."""
        self.call()
        shown = [self.lib.numpy(x[:CHECKED]) for x in as_tuple(self.out)]
        n = min(CHECKED, self.batch)
        expected = as_tuple(self.case.function(*(x[:n] for x in self.case.states)))
        pairs = zip(shown, expected, strict=True)
        return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)


def measured(part: str, case: Case, precision: str, batch: int, lib: Library, seconds: float = 1.0) -> Figure:
    """Measure a function on a device, with the data on the device."""
    return timed(part, Prepared(case, precision, fitting(case.function, precision, batch), lib), lib, seconds)


def timed(part: str, ready: Prepared, lib: Library, seconds: float = 1.0) -> Figure:
    case, precision, batch = ready.case, ready.precision, ready.batch
    events = median_by_events(lib, ready.call, seconds / 2)
    wall = median_of(ready.call, lib.synchronize, seconds / 2)
    goal = case.goals.get(precision)
    names = (part, OURS, case.robot, case.name, precision)
    return Figure(*names, batch, events, wall, goal, ready.difference, ready.first)


def sweep(case: Case, lib: Library, batches: tuple[int, ...] = BATCHES) -> Iterator[Figure]:
    for precision in BYTES:
        for batch in batches:
            yield measured("sweep", case, precision, batch, lib, 0.4)._replace(goal=None)


def copied(case: Case, precision: str, batch: int = COPIED) -> Figure:
    """Measure a function on the device with NumPy arrays as arguments and result."""
    arrays = [np.resize(x.astype(precision), (batch, *x.shape[1:])) for x in case.states]
    out = np.empty_like(case.function(*arrays, device="cuda"))
    spent = median_of(lambda: case.function(*arrays, out=out, device="cuda"), lambda: None)
    return Figure("copied", OURS, case.robot, case.name, precision, batch, spent)


def on_processors(case: Case, batches: tuple[int, ...]) -> Iterator[Figure]:
    """Measure a function on all processors of this machine."""
    for precision in BYTES:
        for batch in batches:
            figure = measured("processors", case, precision, min(batch, ON_PROCESSORS), Processor(), 0.4)
            yield figure._replace(library=f"{OURS}, {os.cpu_count()} processors", goal=None)


class Start(NamedTuple):
    """Times from a call to the first result [s]."""

    precision: str
    cold: float  # with an empty cache
    kept: float  # with the code in the cache
    goal: float | None


COMPILES = {"float32": 2.0, "float64": 3.0}  # [s], cold


def starts(case: Case, lib: Library, times: int = 3) -> Iterator[Start]:
    """Yield the medians by precision. CUDA_CACHE_DISABLE=1 must be set: the driver's cache would hide the compilation."""
    for precision, goal in COMPILES.items():
        arrays = [lib.array(x.astype(precision)) for x in case.states]
        cold, kept = [], []
        for _ in range(times):
            with empty_cache():
                cold.append(_first_call(case.function.copy(), arrays, lib))
                kept.append(_first_call(case.function.copy(), arrays, lib))
        yield Start(precision, statistics.median(cold), statistics.median(kept), goal)


def _first_call(function: CompiledFunction[Any], arrays: list[Any], lib: Library) -> float:
    begun = time.perf_counter()
    function(*arrays)
    lib.synchronize()
    return time.perf_counter() - begun


def by_peer(command: list[str], limit: float) -> tuple[list[str], str]:
    """Return the JSON lines that a peer's script prints, and why it failed ("" if it did not)."""
    try:
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=limit)
        text, failed = done.stdout, f"ended with {done.returncode}" if done.returncode else ""
        last = done.stderr.strip().splitlines()[-1:]
        reason = f"{failed}: {last[0] if last else 'no error message'}" if failed else ""
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
        text = output.decode() if isinstance(output, bytes) else output
        reason = f"took longer than {limit:.0f} s"
    return [line for line in text.splitlines() if line.startswith("{")], reason
