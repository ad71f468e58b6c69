"""Each public compiled function in CasADi gives the results of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array
from robot.every_function import Function, as_tuple, functions_of, functions_of_motions, linkage, states_of

pytest.importorskip("casadi")

from featherweight.casadi import wrap

ROUNDING = 1e-11


def differs(f: Function, robot: fw.Robot | None) -> bool:
    rng = np.random.default_rng(3)
    x = [states_of(robot, given, rng, ()) for given in f.program.inputs]
    for a, b in zip(as_tuple(wrap(f)(*x)), as_tuple(f(*x)), strict=True):
        if not np.linalg.norm(np.array(a) - matrix(b)) <= ROUNDING * max(1.0, float(np.linalg.norm(b))):
            return True
    return False


def matrix(x: Any) -> Array:
    """Return a result as a matrix, as CasADi has it: vectors are columns, and rows are all axes but the last."""
    x = np.asarray(x)
    return x.reshape(-1, 1) if x.ndim < 2 else x.reshape(-1, x.shape[-1])


def test_functions_of_a_robot() -> None:
    robot = linkage()
    assert [name for name, f in functions_of(robot) if differs(f, robot)] == []


def test_functions_of_rigid_motions() -> None:
    assert [name for name, f in functions_of_motions().items() if differs(f, None)] == []
