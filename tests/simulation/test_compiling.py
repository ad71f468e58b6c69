"""Compilation that a step waits for is told, and does not count as its time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from featherweight.simulation.compiling import Compilation

SOLVE = """
import numpy as np, time
from featherweight.simulation.compiling import compilation
from featherweight.simulation.contact.impulses import Problem, natural_residual
problem = Problem(np.eye(3), np.array([0.0, 0.0, -1.0]), np.array([0.5]))
begun = time.perf_counter()
natural_residual(problem, np.zeros(3))
print(compilation.seconds > 0.5 * (time.perf_counter() - begun), flush=True)
seconds = compilation.seconds
natural_residual(problem, np.zeros(3))
print(compilation.seconds == seconds)
"""


def event(begins: bool, module: str = "featherweight.simulation.step") -> Any:
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


def test_what_compiled_functions_call_counts_once(caplog: pytest.LogCaptureFixture) -> None:
    told = Compilation()
    begun = time.perf_counter()
    for begins in (True, True, False, False):
        told.notify(event(begins))
        time.sleep(0.01)
    assert 0.03 <= told.seconds <= time.perf_counter() - begun - 0.01
    assert len(caplog.records) == 1


def test_what_others_compile_does_not_count(caplog: pytest.LogCaptureFixture) -> None:
    told = Compilation()
    for begins in (True, False):
        told.notify(event(begins, "users.own"))
    assert told.seconds == 0.0
    assert not caplog.records
