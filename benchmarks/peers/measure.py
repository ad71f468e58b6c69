"""Common functions of the benchmarks: robots, medians of alternating calls, the peak rate of this machine, tables."""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import sysconfig
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from featherweight.engine.backends.llvm.emit import registers
from featherweight.engine.backends.llvm.jit import Code, compile_object, host, load_object

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"
FILES = {
    "talos_reduced": ("talos_data/robots/talos_reduced.urdf", "floating"),
    "hyq": ("hyq_description/robots/hyq_no_sensors.urdf", "floating"),
    "g1_29dof": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "floating"),
    "panda": ("panda_description/urdf/panda.urdf", "fixed"),
}
Calls = dict[str, tuple[Callable[[], Any], Callable[[], Any], int]]  # by function: our call, a peer's, and the states of both


def options(doc: str | None, robots: bool = False, *, batch: int = 4096) -> argparse.Namespace:
    """Return the options of a comparison: `batch`, `seconds`, and names of `robots` if it takes them."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if robots:
        parser.add_argument("robots", nargs="*", default=list(FILES))
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--seconds", type=float, default=2.0, help="time of each comparison [s]")
    return parser.parse_args()


def median_times(
    calls: Sequence[Callable[[], Any]], seconds: float = 1.0, rounds: int = 40, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the median time of each call [s]. The calls alternate, so that other programs slow all of them equally."""
    repeats = []
    for call in calls:
        call()
        begun = clock()
        call()
        once = max(clock() - begun, 1e-7)
        repeats.append(max(1, int(seconds / rounds / len(calls) / once)))
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, n, sample in zip(calls, repeats, samples, strict=True):
            begun = clock()
            for _ in range(n):
                call()
            sample.append((clock() - begun) / n)
    return [statistics.median(s) for s in samples]


def rows(name: str, calls: Calls, seconds: float) -> list[list[str]]:
    """Return rows of a table: for each function, the times per state of our call and of the peer's [µs], and their ratio."""
    table = []
    for what, (call, peer, states) in calls.items():
        a, b = median_times([call, peer], seconds)
        table.append([name, what, *(f"{1e6 * t / states:.3f}" for t in (a, b)), f"{b / a:.2f}"])
    return table


def peak_flops() -> Callable[[], float]:
    """Return a function that measures the rate of independent vector multiply-adds on one core [1/s], two operations each.

    The registers hold all of them; one more would add loads and stores to the measurement.
    """
    lanes, chains, n = host().lanes("double"), registers(host().vector_bytes), 20_000
    V = f"<{lanes} x double>"
    body = [f"%a{k} = phi {V} [ %x, %entry ], [ %b{k}, %loop ]" for k in range(chains)]
    body += [f"%b{k} = call {V} @llvm.fma.v{lanes}f64({V} %a{k}, {V} %x, {V} %x)" for k in range(chains)]
    total = [f"%s{k} = fadd {V} {f'%s{k - 1}' if k > 1 else '%b0'}, %b{k}" for k in range(1, chains)]
    ir = "\n".join(
        [
            f"declare {V} @llvm.fma.v{lanes}f64({V}, {V}, {V})",
            "define void @peak(i64 %n, ptr %p) #0 {",
            f"entry:\n%x = load {V}, ptr %p, align 8\nbr label %loop",
            "loop:\n%i = phi i64 [ 0, %entry ], [ %j, %loop ]",
            *body,
            "%j = add i64 %i, 1\n%go = icmp slt i64 %j, %n\nbr i1 %go, label %loop, label %exit\nexit:",
            *total,
            f"store {V} %s{chains - 1}, ptr %p, align 8\nret void\n}}",
            f'attributes #0 = {{ "prefer-vector-width"="{64 * lanes}" }}',
        ]
    )
    host()
    code = load_object(compile_object(ir), "peak")
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(code.address("peak"))
    x = np.full(lanes, 1e-3)

    def measure(_: Code = code) -> float:  # keeps the code alive
        begun = time.perf_counter()
        run(n, x.ctypes.data)
        return 2.0 * n * chains * lanes / (time.perf_counter() - begun)

    return measure


def fresh_process() -> dict[str, str]:
    """Return the environment of a process as users start it, in which Python writes bytecode files."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def machine() -> str:
    """Return one line about the machine."""
    h = host()
    return f"{h.cpu}, {8 * h.vector_bytes}-bit vectors, LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


def beside(ours: float, theirs: float) -> str:
    """Return a cell with our time, a peer's time and their ratio, with three digits."""
    return f"{ours:#.3g} / {theirs:#.3g}, **{theirs / ours:.2g} ×**"


def pivoted(corner: str, cells: Iterable[tuple[str, str, str]]) -> str:
    """Return a Markdown table of cells (row, column, text), in the order in which rows and columns occur."""
    texts = {(row, column): text for row, column, text in cells}
    rows, columns = dict.fromkeys(row for row, _ in texts), dict.fromkeys(column for _, column in texts)
    return markdown([corner, *columns], [[row, *(texts.get((row, column), "") for column in columns)] for row in rows])


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
