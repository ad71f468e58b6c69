"""Which velocities are the independent ones is the same on machines that round otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from featherweight.robot.closing.independence import determined, first_of_best

TELL = """
import featherweight as fw
from oracles.mechanisms import MECHANISMS
for name in ("platform", "two_loops", "crank_and_rocker"):
    print(name, [j.name for j in fw.build(MECHANISMS[name]()).joints if j.independent])
"""


def told(processor: str) -> str:
    """What another process chooses whose linear algebra is that of another processor (OpenBLAS has those of several)."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OPENBLAS_CORETYPE": processor}
    return subprocess.run([sys.executable, "-c", TELL], env=env, capture_output=True, text=True, check=True).stdout


def test_independent_joints_do_not_depend_on_the_processor() -> None:
    """The platform is symmetric: of two joints that are as good but for rounding, the first is taken."""
    chosen = {told(processor) for processor in ("Prescott", "Haswell", "SkylakeX")}
    assert len(chosen) == 1
    assert chosen.pop().count("[") == 3


@pytest.mark.parametrize("rounding", [-1e-9, 0.0, 1e-9])
def test_of_equal_columns_the_first_is_taken(rounding: float) -> None:
    K = np.array([[1.0, 0.0, 1.0 + rounding, 0.5]])
    assert determined(K, [[0, 1, 2, 3]]) == [0]
    assert determined(K, [[3], [2, 0]]) == [3]
    assert determined(K, [[1], [2, 0]]) == [2]
    assert first_of_best([1.0, 2.0, 2.0 + rounding]) == 1
