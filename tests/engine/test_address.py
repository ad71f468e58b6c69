"""Tests of functions called by address, also from compiled code."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import featherweight as fw
from engine.kernels import expected, swinging


def called(function: fw.CompiledFunction, *arguments: np.ndarray) -> np.ndarray:
    """Return the result of `void f(double **arguments)` at a function's address."""
    result = np.full(function.program.outputs[0].shape, np.nan)
    arrays = [np.ascontiguousarray(a, dtype=np.float64) for a in (*arguments, result)]
    pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    assert function.address is not None
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function.address)(ctypes.addressof(pointers))
    return arrays[-1]


@pytest.mark.parametrize("joints", [1, 7, 60])  # the last needs a workspace on the heap
def test_a_function_called_by_address_gives_the_same_bits(joints: int) -> None:
    robot = fw.build(fw.generators.random_tree(joints, rng=1), execution="traced")
    rng = np.random.default_rng(0)
    q, v, tau = robot.random_configuration(rng=rng), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)
    for function, arguments in (
        (robot.forward_dynamics, (q, v, tau)),
        (robot.mass_matrix, (q,)),
        (robot.kinetic_energy, (q, v)),
    ):
        np.testing.assert_array_equal(called(function, *arguments), function(*arguments))


def test_functions_that_are_not_traced_have_no_address() -> None:
    robot = fw.build(fw.generators.random_tree(3, rng=1), execution="interpreted")
    assert robot.mass_matrix.address is None


@pytest.mark.parametrize("precision", ["double", "float"])
def test_calls_from_python_take_code_that_other_libraries_asked_for_first(precision: str) -> None:
    f = swinging(3)
    f.own.machine_code.code(precision, False)
    x = np.random.default_rng(0).standard_normal(3).astype("f4" if precision == "float" else "f8")
    np.testing.assert_allclose(f(x, x), expected(x, x), rtol=1e-6)
