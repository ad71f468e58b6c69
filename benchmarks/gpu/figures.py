"""What is measured of our own functions on a device, and beside it on the processors of the same machine."""

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

Array = np.ndarray[Any, np.dtype[Any]]

OURS = "Featherweight"
CHECKED = 64  # states that are compared with the processor's, in double precision
AGREE = {"float32": 1e-3, "float64": 1e-9}  # of the greatest entry
RESULTS = 2**34  # bytes, at most, of one batch
ON_PROCESSORS = 2**18  # states of a batch there
COPIED = 2**20  # states that begin and end as NumPy arrays


class Figure(NamedTuple):
    """The time of a batch by the device's own events, and by the clock on the wall [s]."""

    part: str
    library: str
    robot: str
    function: str
    precision: str
    batch: int
    seconds: float
    wall: float | None = None
    goal: float | None = None  # [states/s]
    difference: float | None = None  # from double precision on the processor, relative to the greatest entry
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
    """A batch whose arrays are not too large, by halves."""
    while batch > 1 and batch * moved(function, precision) > RESULTS:
        batch //= 2
    return batch


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


class Prepared:
    """A function's states on a device, and arrays there for its results."""

    def __init__(self, case: Case, precision: str, batch: int, lib: Library) -> None:
        self.case, self.precision, self.batch = case, precision, batch
        repeated = (np.resize(x.astype(precision), (batch, *x.shape[1:])) for x in case.states)
        self.arrays = [lib.array(x) for x in repeated]
        with compiled() as codes:
            begun = time.perf_counter()
            results = case.function(*self.arrays)
            lib.synchronize()
            self.first = time.perf_counter() - begun
        self.code = codes[0] if codes else None  # kernels that copy are smaller
        self.lib = lib
        out = tuple(lib.empty(x) for x in as_tuple(results))
        self.out = out if isinstance(results, tuple) else out[0]

    def tune(self) -> None:
        """Take what computes these states in the shortest time."""
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
        """Of the first states from those on the processor in double precision, relative to the greatest entry."""
        self.call()
        shown = [self.lib.numpy(x[:CHECKED]) for x in as_tuple(self.out)]
        n = min(CHECKED, self.batch)
        expected = as_tuple(self.case.function(*(x[:n] for x in self.case.states)))
        pairs = zip(shown, expected, strict=True)
        return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)


def measured(part: str, case: Case, precision: str, batch: int, lib: Library, seconds: float = 1.0) -> Figure:
    """A function on a device, its data there."""
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
    """NumPy's arrays in and out, computed on the device."""
    arrays = [np.resize(x.astype(precision), (batch, *x.shape[1:])) for x in case.states]
    out = np.empty_like(case.function(*arrays, device="cuda"))
    spent = median_of(lambda: case.function(*arrays, out=out, device="cuda"), lambda: None)
    return Figure("copied", OURS, case.robot, case.name, precision, batch, spent)


def on_processors(case: Case, batches: tuple[int, ...]) -> Iterator[Figure]:
    """The same functions by all processors of this machine."""
    for precision in BYTES:
        for batch in batches:
            figure = measured("processors", case, precision, min(batch, ON_PROCESSORS), Processor(), 0.4)
            yield figure._replace(library=f"{OURS}, {os.cpu_count()} processors", goal=None)


class Start(NamedTuple):
    """Seconds to a first result."""

    precision: str
    cold: float  # of a function never compiled, on a machine that has nothing kept
    kept: float  # of one whose code an earlier process kept, in this process
    goal: float | None


COMPILES = {"float32": 2.0, "float64": 3.0}  # [s], cold


def starts(case: Case, lib: Library, times: int = 3) -> Iterator[Start]:
    """Medians. The driver's own cache must be off (CUDA_CACHE_DISABLE=1), or it answers for ours."""
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
    """Lines that begin with a brace, which a peer's script prints, and a sentence on why there are no more."""
    try:
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=limit)
        text, failed = done.stdout, f"ended with {done.returncode}" if done.returncode else ""
        last = done.stderr.strip().splitlines()[-1:]
        reason = f"{failed}: {last[0] if last else 'it says no more'}" if failed else ""
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
        text = output.decode() if isinstance(output, bytes) else output
        reason = f"took longer than {limit:.0f} s"
    return [line for line in text.splitlines() if line.startswith("{")], reason
