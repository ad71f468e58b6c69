"""Tests of the reduction of large angles: its table, and the remainders, against mpmath."""

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt
import pytest
from mpmath import mp, mpf

from featherweight.engine.backends.llvm.ir import Function
from featherweight.engine.backends.llvm.payne_hanek import HALF_PI, TWO_OVER_PI, reduce, table

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

# The double closest to a multiple of pi/2 (Muller, Elementary Functions, on worst cases of range reduction).
CLOSEST = 6381956970095103 * 2.0**797


def reduced(kind: type[Any], x: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the remainders, and the numbers of quarter turns modulo 4."""
    bits, mantissa = np.dtype(kind).itemsize * 8, np.finfo(kind).nmant
    f = Function("void", "one", ["ptr %x", "ptr %angle", "ptr %turns"], "external", "")
    angle, turns = reduce(f, bits, mantissa, f.load(f"i{bits}", "%x"))
    f.store(f"i{bits}", angle, "%angle")
    f.store(f"i{bits}", turns, "%turns")
    f.ret()
    module = llvm.parse_assembly("\n".join([table(), *f.declarations, str(f)]))
    engine = llvm.create_mcjit_compiler(module, llvm.Target.from_default_triple().create_target_machine(opt=2))
    engine.finalize_object()
    one = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(engine.get_function_address("one"))
    angles, quadrants = np.empty_like(x), np.zeros(len(x), np.int64)
    for k in range(len(x)):
        one(x[k:].ctypes.data, angles[k:].ctypes.data, quadrants[k:].ctypes.data)
    return angles, quadrants % 4


def test_the_table_can_be_computed_again() -> None:
    with mp.workprec(1400):
        assert int(TWO_OVER_PI, 16) == int(mp.floor(2 / mp.pi * mpf(2) ** (4 * len(TWO_OVER_PI))))
        assert int(mp.nint(mp.pi / 2 * mpf(2) ** 63)) == HALF_PI


def smallest_distance(digits: int, exponents: range) -> float:
    """Return the smallest distance of m 2^e from a multiple of pi/2, in quarter turns, for m < 2^digits, by the convergents of
    2^e 2/pi."""
    scale = 4 * len(TWO_OVER_PI) + exponents.stop
    smallest = 2**scale
    for e in exponents:
        before, distance = 2**scale, int(TWO_OVER_PI, 16) << exponents.stop + e & 2**scale - 1
        q_before, q = 0, 1
        while q < 2**digits:
            smallest = min(smallest, distance)
            a, following = divmod(before, distance)
            before, distance, q_before, q = distance, following, q, a * q + q_before
    return smallest / 2**scale


def test_no_number_is_closer_to_a_multiple_than_is_reckoned_with() -> None:
    turn = np.pi / 2
    assert 2.0**-61 < smallest_distance(53, range(-52, 972)) * turn < 2.0**-60
    assert 2.0**-30 < smallest_distance(24, range(-23, 105)) * turn < 2.0**-29
    with mp.workprec(1400):
        left = mpf(CLOSEST) - mp.nint(mpf(CLOSEST) * 2 / mp.pi) * mp.pi / 2
    assert abs(float(left)) == pytest.approx(smallest_distance(53, range(797, 798)) * turn, rel=1e-12)
    assert abs(float(left)) == pytest.approx(smallest_distance(53, range(-52, 972)) * turn, rel=1e-12)


@pytest.mark.parametrize(("kind", "bound"), [(np.float64, 0.51), (np.float32, 0.53)])
def test_angles_left_are_right_for_all_exponents(kind: type[Any], bound: float) -> None:
    rng, finfo = np.random.default_rng(1), np.finfo(kind)
    exponents = np.repeat(np.arange(1, finfo.maxexp), 3)
    numbers = np.ldexp(rng.uniform(1, 2, len(exponents)), exponents)
    multiples = np.round(2.0 ** rng.uniform(2, finfo.nmant, 200)) * (np.pi / 2)
    edges = [float(finfo.max), 2.0 ** (finfo.maxexp - 1), *([CLOSEST] if kind is np.float64 else [])]
    x = np.concatenate([numbers, multiples, edges]).astype(kind)
    angles, quadrants = reduced(kind, x)
    assert float(np.abs(angles).max()) <= np.pi / 4
    with mp.workprec(1400):
        for number, angle, quadrant in zip(x, angles, quadrants, strict=True):
            turns = mp.nint(mpf(float(number)) * 2 / mp.pi)
            left = mpf(float(number)) - turns * mp.pi / 2
            assert int(turns) % 4 == quadrant
            assert abs(mpf(float(angle)) - left) <= bound * float(np.spacing(np.abs(kind(float(left)))))


def test_smaller_and_infinite_numbers_read_nothing_but_the_table() -> None:
    """Check lanes of small or infinite numbers beside a large one, for which this code runs, too."""
    edges = np.array([0.0, 5e-324, 1e-300, 0.5, np.inf, np.nan])
    assert len(reduced(np.float64, edges)[0]) == len(edges)
