"""Tests with damaged robot files: each loads as a valid robot, or is refused with a ModelError that names file and element.

Other exceptions, crashes, hangs, and unbounded memory are failures. A child process, which the test watches, loads the files;
the test keeps and names a file that kills the child.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from patience import PATIENCE
from trial.conftest import Rounds
from trial.damage import damaged_bytes, damaged_elements

pytest.importorskip("resource")  # limits are a feature of POSIX

from trial.file_child import SECONDS, Mutant, serve
from trial.robot_files import RobotFile, robot_files

SHARE = 0.2  # share of the time of each of four tests, two of which run at a time
FILES = 20  # files in a round
HUGE = 60_000_000  # bytes of a file without content
DAMAGE = {"bytes": damaged_bytes, "elements": damaged_elements}


class Child:
    """A process that loads files; a new one replaces it after a crash."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        os.mkfifo(folder / "pipe")
        os.mkfifo(folder / "pipe.stl")
        with open(folder / "huge.stl", "wb") as file:
            file.truncate(HUGE)
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, str(self.folder)), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe.recv()  # imports do not count for a file's time

    def verdict(self, mutant: Mutant) -> tuple[str, bool]:
        """Return the problem with the treatment of a file, in words, and whether the file was loaded."""
        began, computed = time.monotonic(), self._computed()
        self.pipe.send(mutant)
        while not self.pipe.poll(0.5):
            if self._computed() - computed > SECONDS or time.monotonic() - began > PATIENCE:
                self.stop()
                self._start()
                return "a hang", False
        try:
            answer: tuple[str, bool] = self.pipe.recv()
        except EOFError:
            self.process.join()
            code = self.process.exitcode
            self._start()
            return f"a crash: exit code {code}", False
        return answer

    def _computed(self) -> float:
        """Return the processor time so far in seconds, or less if the system does not report it."""
        try:
            words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    made = Child(tmp_path)
    yield made
    made.stop()


Damage = Callable[[bytes, str, np.random.Generator], bytes]


def mutants(format: str, damage: Damage, rng: np.random.Generator) -> Iterator[Mutant]:
    files, weights = robot_files(format)
    suffix = ".urdf" if format == "urdf" else ".xml"
    for _ in range(FILES):
        file: RobotFile = files[rng.choice(len(files), p=weights)]
        text = damage(file.text, format, rng)
        base, mimic = str(rng.choice(["fixed", "floating"], p=[0.7, 0.3])), str(rng.choice(["follow", "independent"]))
        yield Mutant(suffix, text, base, mimic, bool(rng.random() < 0.01))


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("format", ["urdf", "mjcf"])
def test_damaged_files_are_sound_or_refused(
    format: str, damage: str, child: Child, rounds: Rounds, record_property: Callable[[str, Any], None]
) -> None:
    count = loaded = 0
    for rng in rounds(SHARE):
        for mutant in mutants(format, DAMAGE[damage], rng):
            words, sound = child.verdict(mutant)
            count, loaded = count + 1, loaded + sound
            if words:
                kept = child.folder / f"damaged{mutant.suffix}"
                kept.write_bytes(mutant.text)
                pytest.fail(f"file {count} ({kept}; base={mutant.base}, mimic={mutant.mimic}): {words}")
    assert loaded > 0 or count < 500
    record_property("files", count)
    record_property("of which loaded", loaded)
