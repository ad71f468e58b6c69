"""Each public compiled function in CasADi gives the results of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array
from robot.every_function import Function, as_tuple, differs, functions_of, functions_of_motions, linkage, states_of

pytest.importorskip("casadi")

from featherweight.casadi import wrap


def is_wrong(name: str, f: Function, robot: fw.Robot | None) -> bool:
    """Return whether CasADi's results are not those of Python, as matrices."""
    rng = np.random.default_rng(3)
    x = [states_of(robot, given, rng, ()) for given in f.program.inputs]
    return differs(tuple(map(np.array, as_tuple(wrap(f, name)(*x)))), tuple(map(matrix, as_tuple(f(*x)))))


def matrix(x: Any) -> Array:
    """Return a result as a matrix, as CasADi has it: vectors are columns, and rows are all axes but the last."""
    x = np.asarray(x)
    return x.reshape(-1, 1) if x.ndim < 2 else x.reshape(-1, x.shape[-1])


def test_functions_of_a_robot() -> None:
    robot = linkage()
    assert [name for name, f in functions_of(robot) if is_wrong(name, f, robot)] == []


def test_functions_of_rigid_motions() -> None:
    """Check them under other names: C has an `exp`."""
    assert [name for name, f in functions_of_motions().items() if is_wrong(f"se3_{name}", f, None)] == []
