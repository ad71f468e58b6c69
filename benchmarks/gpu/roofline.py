"""What a device can do at best: bounds on the time of a state, from what a function computes and moves.

    python benchmarks/gpu/roofline.py [--robots FOLDER] [--device nvidia-h200]

These are bounds, not measurements: no device is needed. A kernel takes at least as long as the scarcest of what it uses.

- issue: each scheduler starts one instruction a cycle, for 32 threads.
- arithmetic: in double precision half of these, or less, can be multiplications and additions.
- special: reciprocals, roots' and sines' starting values come from a unit of 16 results a cycle.
- memory: arguments in and results out cross the device's memory once.
- local, shared: values that registers do not hold, and rows that threads bring in together, cross the first cache.

Without machine code instructions are the fewest that the operations can be: a multiplication and an addition may be one. With
the counts of `sass.py` they are those that the assembler wrote; loops, which only copy rows, are counted once.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, NamedTuple

from cases import Case, cases, options
from measure import markdown
from sass import Instructions

from featherweight.engine.function import CompiledFunction

BYTES = {"float32": 4, "float64": 8}


class Device(NamedTuple):
    """What bounds follow from."""

    name: str
    multiprocessors: int
    clock: float  # [Hz]
    bandwidth: float  # of the device's memory [bytes/s]
    schedulers: int = 4  # of a multiprocessor, each of which starts an instruction of 32 threads a cycle
    double: float = 0.5  # results in double precision for each in single precision
    special: int = 16  # reciprocals and the like of a multiprocessor a cycle
    cache: int = 128  # bytes between registers and the first cache of a multiprocessor a cycle

    def __str__(self) -> str:
        speed = f"{self.clock / 1e9:.2f} GHz, {self.bandwidth / 1e12:.1f} TB/s"
        return f"{self.name}: {self.multiprocessors} multiprocessors at {speed}"

    @property
    def cycles(self) -> float:
        """Of all multiprocessors together, in a second."""
        return self.multiprocessors * self.clock

    @property
    def issued(self) -> float:
        """Instructions of one thread that can be started [1/s]."""
        return self.cycles * self.schedulers * 32


DEVICES = {"nvidia-h200": Device("H200", 132, 1.98e9, 4.8e12)}
"""By their makers' data sheets; the clock is the highest."""


class Work(NamedTuple):
    """What one state takes."""

    instructions: float
    double: float  # multiplications and additions in double precision, of these
    special: float
    moved: float  # bytes in and out
    local: float  # bytes to and from the thread's own memory
    shared: float  # bytes to and from the block's


def moved(function: CompiledFunction[Any], precision: str) -> int:
    """Bytes of the arguments and results of one state."""
    program = function.program
    return BYTES[precision] * (sum(x.size for x in program.inputs) + sum(y.size for y in program.outputs))


def counted(function: CompiledFunction[Any], precision: str) -> Work:
    """From exact operation counts: at least so much."""
    o = function.operations
    least = max(o.mul, o.add)
    special = o.div + o.sqrt
    double = least if precision == "float64" else 0
    return Work(least + special, double, special, moved(function, precision), 0, 0)


def assembled(function: CompiledFunction[Any], precision: str, code: Instructions) -> Work:
    """From machine code for one state."""
    return Work(code.total, code.double, code.special, moved(function, precision), code.local_bytes, code.shared_bytes)


RESOURCES = ("issue", "arithmetic", "special", "memory", "local", "shared")


def bounds(work: Work, device: Device) -> dict[str, float]:
    """Least time of a state [s], when many are computed, by each of what may be scarce."""
    times = (
        work.instructions / device.issued,
        work.double / (device.issued * device.double),
        work.special / (device.cycles * device.special),
        work.moved / device.bandwidth,
        work.local / (device.cycles * device.cache),
        work.shared / (device.cycles * device.cache),
    )
    return dict(zip(RESOURCES, times, strict=True))


def binding(found: Mapping[str, float]) -> str:
    """The greatest of the bounds: what a measured time is to be compared with."""
    return max(found, key=found.__getitem__)


def in_words(found: Mapping[str, float], seconds: float) -> str:
    """Which bound is next to the time measured, and how far that is."""
    name = binding(found)
    return f"{seconds / found[name]:.1f} times the bound by {name} ({1e9 * found[name]:.3f} ns)"


def row(case: Case, precision: str, device: Device, work: Work) -> list[str]:
    """A line of the table of bounds."""
    found = bounds(work, device)
    most = 1.0 / max(found.values())
    goal = case.goals.get(precision)
    share = "" if goal is None else f"{goal:.1e} ({100 * goal / most:.0f} %)"
    times = [f"{1e9 * found[x]:.3f}" for x in COUNTED]
    return [case.robot, case.name, precision, *times, binding(found), f"{most:.2e}", share]


COUNTED = RESOURCES[:4]  # that operations alone tell something of
HEADER = ["robot", "function", "precision", *(f"{x}, ns" for x in COUNTED), "bound by", "states/s at most", "goal, of that"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options(parser)
    parser.add_argument("--device", choices=list(DEVICES), default="nvidia-h200")
    given = parser.parse_args()
    device = DEVICES[given.device]
    found = cases(given)
    print(f"Bounds, not measurements: {device}, large batches, times of a state in ns.\n")
    rows = [row(c, p, device, counted(c.function, p)) for c in found.cases for p in BYTES]
    print(markdown(HEADER, rows))
    for line in found.skipped:
        print("\n" + line)


if __name__ == "__main__":
    main()
