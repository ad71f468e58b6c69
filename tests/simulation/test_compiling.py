"""Compilation that a step waits for is told, and does not count as its time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from featherweight.simulation.compiling import Compilation

from featherweight.simulation import compiling

SOLVE = """
import numpy as np, time
from featherweight.simulation.compiling import compilation
from featherweight.contact.impulses import Problem, natural_residual
problem = Problem(np.eye(3), np.array([0.0, 0.0, -1.0]), np.array([0.5]))
begun = time.perf_counter()
natural_residual(problem, np.zeros(3))
print(0.0 < compilation.seconds <= time.perf_counter() - begun, flush=True)
seconds = compilation.seconds
natural_residual(problem, np.zeros(3))
print(compilation.seconds == seconds)
"""


LOOP = """
from featherweight.simulation.compiling import compilation
from simulation.test_compiled_loop import LOOP, table
compilation.listen()
LOOP.for_tables(table()[0])
print(compilation.seconds)
"""


def event(begins: bool, module: str | None = "featherweight.simulation.step") -> Any:
    dispatcher = SimpleNamespace(py_func=SimpleNamespace(__module__=module))
    return SimpleNamespace(is_start=begins, data={"dispatcher": dispatcher})


def test_what_is_not_on_the_disk_is_told_once_and_timed(tmp_path: Path) -> None:
    """In a process with an empty cache of Numba's, and in another that finds it full."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run([sys.executable, "-c", SOLVE], env=env, capture_output=True, text=True, check=True) for _ in range(2)
    ]
    assert runs[0].stdout.split() == ["True", "True"]
    assert runs[0].stderr.count("compiling further parts of simulations") == 1
    assert runs[1].stdout.split() == ["False", "True"]
    assert runs[1].stderr == ""


def test_what_compiled_functions_call_counts_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of the test's own."""
    told, now = Compilation(), 5.0
    monkeypatch.setattr(compiling, "time", SimpleNamespace(perf_counter=lambda: now))
    for begins in (True, True, False, False):
        told.notify(event(begins))
        now += 1.0
    assert told.seconds == 3.0
    assert len(caplog.records) == 1


@pytest.mark.parametrize("module", ["users.own", None])
def test_what_others_compile_does_not_count(module: str | None, caplog: pytest.LogCaptureFixture) -> None:
    """With our functions that it calls; code that is made while a program runs has no module."""
    told = Compilation()
    for each in (event(True, module), event(True), event(False), event(False, module)):
        told.notify(each)
    assert told.seconds == 0.0
    assert not caplog.records


def test_loops_of_steps_have_their_own_words(tmp_path: Path) -> None:
    """In a process that has compiled something else before."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "FEATHERWEIGHT_CACHE": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", LOOP], env=env, capture_output=True, text=True, check=True)
    assert run.stdout == "0.0\n"
    assert "compiling the steps of simulations" in run.stderr
    assert "further parts" not in run.stderr
