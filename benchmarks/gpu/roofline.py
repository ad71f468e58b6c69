"""Lower bounds on the time per state on a device, from the operations and the memory traffic of a function.

    python benchmarks/gpu/roofline.py [--robots FOLDER] [--device nvidia-h200]

These are bounds, not measurements: no device is needed. A kernel takes at least as long as the resource that it exhausts first.

- issue: each scheduler starts one instruction per cycle, for 32 threads.
- arithmetic: in double precision, at most half of these can be multiplications and additions.
- special: a unit with 16 results per cycle gives the starting values of reciprocals, roots and sines.
- memory: arguments and results cross the device's memory once.
- local, shared: values that do not fit the registers, and rows that threads load together, cross the first cache.

Without machine code, the number of instructions is the least that the operations allow: a multiplication and an addition may be
one instruction. With the counts of `sass.py`, it is that of the assembler's code; loops, which only copy rows, count once.
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
    """The rates of a device that bounds follow from."""

    name: str
    multiprocessors: int
    clock: float  # [Hz]
    bandwidth: float  # of the device's memory [bytes/s]
    schedulers: int = 4  # per multiprocessor; each starts an instruction of 32 threads per cycle
    double: float = 0.5  # results in double precision per result in single precision
    special: int = 16  # special results per multiprocessor and cycle
    cache: int = 128  # bytes between registers and first cache, per multiprocessor and cycle

    def __str__(self) -> str:
        speed = f"{self.clock / 1e9:.2f} GHz, {self.bandwidth / 1e12:.1f} TB/s"
        return f"{self.name}: {self.multiprocessors} multiprocessors at {speed}"

    @property
    def cycles(self) -> float:
        """The cycles of all multiprocessors per second."""
        return self.multiprocessors * self.clock

    @property
    def issued(self) -> float:
        """The issue rate of instructions of one thread [1/s]."""
        return self.cycles * self.schedulers * 32


DEVICES = {"nvidia-h200": Device("H200", 132, 1.98e9, 4.8e12)}
"""Devices by their data sheets, with the highest clock."""


class Work(NamedTuple):
    """Instructions and memory traffic of one state."""

    instructions: float
    double: float  # multiplications and additions in double precision among them
    special: float
    moved: float  # bytes of arguments and results
    local: float  # bytes to and from local memory
    shared: float  # bytes to and from shared memory


def moved(function: CompiledFunction[Any], precision: str) -> int:
    """Return the bytes of the arguments and results of one state."""
    program = function.program
    return BYTES[precision] * (sum(x.size for x in program.inputs) + sum(y.size for y in program.outputs))


def counted(function: CompiledFunction[Any], precision: str) -> Work:
    """Return the least work that the exact operation counts allow."""
    o = function.operations
    least = max(o.mul, o.add)
    special = o.div + o.sqrt
    double = least if precision == "float64" else 0
    return Work(least + special, double, special, moved(function, precision), 0, 0)


def assembled(function: CompiledFunction[Any], precision: str, code: Instructions) -> Work:
    """Return the work of the machine code for one state."""
    return Work(code.total, code.double, code.special, moved(function, precision), code.local_bytes, code.shared_bytes)


RESOURCES = ("issue", "arithmetic", "special", "memory", "local", "shared")


def bounds(work: Work, device: Device) -> dict[str, float]:
    """Return the least time per state [s] in a large batch, by resource."""
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
    """Return the resource with the largest bound."""
    return max(found, key=found.__getitem__)


def in_words(found: Mapping[str, float], seconds: float) -> str:
    """Return the ratio of the measured time to the largest bound, in words."""
    name = binding(found)
    return f"{seconds / found[name]:.1f} times the bound by {name} ({1e9 * found[name]:.3f} ns)"


def row(case: Case, precision: str, device: Device, work: Work) -> list[str]:
    """Return a row of the table of bounds."""
    found = bounds(work, device)
    most = 1.0 / max(found.values())
    goal = case.goals.get(precision)
    share = "" if goal is None else f"{goal:.1e} ({100 * goal / most:.0f} %)"
    times = [f"{1e9 * found[x]:.3f}" for x in COUNTED]
    return [case.robot, case.name, precision, *times, binding(found), f"{most:.2e}", share]


COUNTED = RESOURCES[:4]  # the resources whose use follows from operations alone
HEADER = ["robot", "function", "precision", *(f"{x}, ns" for x in COUNTED), "bound by", "states/s at most", "goal (of that)"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options(parser)
    parser.add_argument("--device", choices=list(DEVICES), default="nvidia-h200")
    given = parser.parse_args()
    device = DEVICES[given.device]
    found = cases(given)
    print(f"Bounds, not measurements: {device}, large batches, times per state in ns.\n")
    rows = [row(c, p, device, counted(c.function, p)) for c in found.cases for p in BYTES]
    print(markdown(HEADER, rows))
    for line in found.skipped:
        print("\n" + line)


if __name__ == "__main__":
    main()
