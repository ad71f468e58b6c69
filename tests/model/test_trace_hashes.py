"""Tests that the code compiled from a robot does not depend on the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from processors import NEEDED, runnable, settings

TESTS = Path(__file__).parents[1]
PATHS = [str(TESTS), str(TESTS.parent / "benchmarks" / "peers")]
CONTROL = "control:"


def printed(env: dict[str, str]) -> list[str]:
    """Return the lines of `trace_hashes.py --short` from another process."""
    command = [sys.executable, str(Path(__file__).with_name("trace_hashes.py")), "--short"]
    return subprocess.run(
        command,
        env={**env, "PYTHONPATH": os.pathsep.join([*PATHS, env.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()


def test_a_robot_gives_the_same_traces_counts_and_algorithms_for_any_processor() -> None:
    """Check processes with other functions of NumPy and its BLAS, other threads and another order of sets: traces are equal."""
    processors = runnable()
    every = [printed(settings(name, threads=1 + k % 2, seed=k, old=k % 2 == 0)) for k, name in enumerate(processors)]
    traces = [[line for line in lines if not line.startswith(CONTROL)] for lines in every]
    assert len(traces[0]) > 30
    for name, lines in zip(processors, traces, strict=True):
        assert lines == traces[0], name
    controls = {line for lines in every for line in lines if line.startswith(CONTROL)}
    assert len(controls) > 1 or len(processors) == 1, "these settings change nothing"


@pytest.mark.parametrize(
    ("features", "processors"),
    [
        ({"SSE3", "SSE42", "AVX", "AVX2", "FMA3"}, {"Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen"}),
        ({"NEON", "ASIMD"}, {"ARMV8", "CORTEXA57"}),
        ({"NEON", "ASIMD", "ASIMDDP"}, {"ARMV8", "CORTEXA57", "NEOVERSEN1"}),
    ],
)
def test_only_processors_that_this_one_can_stand_for_are_taken(features: set[str], processors: set[str]) -> None:
    """Check that processors with unknown instructions are left out."""
    assert set(runnable(dict.fromkeys(features, True))) == processors
    assert set(runnable()) <= NEEDED.keys()
