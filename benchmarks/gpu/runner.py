"""A run: parts one after the other, within a time limit; results are written after each part."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from cases import BATCHES, Case, cases
from figures import Figure
from gpu_arrays import Library, copy_bandwidth, driver_device, library
from gpu_tables import document
from results import Results, facts

COPIED = 2**31  # bytes
TRIAL = 64  # states of batches without a device


class Run:
    """The array library, the cases and the results of a run. An interrupted run keeps the results so far."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.begun = given, time.monotonic()
        self.lib: Library = library(given.library)
        self.trial = self.lib.name == "NumPy"
        device = None if self.trial else driver_device()
        found = cases(given)
        self.cases = [c._replace(batch=min(c.batch, TRIAL), goals={}) for c in found.cases] if self.trial else found.cases
        self.beside: subprocess.Popen[bytes] | None = None  # a background process
        where = facts(self.lib, device)
        where["copies on the device"] = f"{copy_bandwidth(self.lib, TRIAL if self.trial else COPIED) / 1e12:.2f} TB/s, measured"
        self.results = Results(where, device, [], [], {}, list(found.skipped))

    @property
    def left(self) -> float:
        """The remaining time [s]."""
        return 60.0 * float(self.given.minutes) - (time.monotonic() - self.begun)

    def case(self, robot: str, name: str = "forward dynamics") -> Case | None:
        return next((c for c in self.cases if (c.robot, c.name) == (robot, name)), None)

    def batches(self, upto: int = BATCHES[-1]) -> tuple[int, ...]:
        return (TRIAL // 2, TRIAL) if self.trial else tuple(b for b in BATCHES if b <= upto)

    def part(self, name: str, figures: Callable[[Run], Iterator[Figure]]) -> None:
        """Measure one part; report a failure and return, so that the next part starts."""
        if self.left < 0:
            self.skip(f"The part {name!r} is left out: {self.given.minutes:g} minutes are over.")
            return
        begun = time.monotonic()
        try:
            for figure in figures(self):
                self.results.figures.append(figure)
                say(f"{name}: {', '.join(map(str, figure[2:6]))}: {figure.rate:.3g} states/s")
                if self.left < 0:
                    self.skip(f"The part {name!r} was cut short: {self.given.minutes:g} minutes are over.")
                    break
        except Exception as error:
            self.skip(f"The part {name!r} ended with {type(error).__name__}: {error}")
        say(f"{name}: {time.monotonic() - begun:.0f} s")
        self.write()

    def wait(self) -> int | None:
        """Return the exit status of the background process; kill it and return None if the time is over."""
        if self.beside is None:
            return None
        try:
            return self.beside.wait(max(self.left, 0.0))
        except subprocess.TimeoutExpired:
            self.end()
            return None

    def end(self) -> None:
        """Kill the background process and the compilers that it has started."""
        if self.beside is not None and self.beside.poll() is None:
            os.killpg(self.beside.pid, signal.SIGKILL)
            self.beside.wait()

    def skip(self, sentence: str) -> None:
        say(sentence)
        self.results.skipped.append(sentence)

    def write(self) -> None:
        folder: Path = self.given.output
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "results.json").write_text(self.results.as_json())
        (folder / "tables.md").write_text(document(self.results, self.cases))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
