"""Tests of memory layouts of objects of NumPy and Python, measured in the installed versions.

If a release moves a field, a test fails and names it. Users lose only speed: the general call takes over.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from engine.kernels import SEVERAL, arguments, assert_same, outs
from engine.test_calls import wrong_calls
from featherweight import build, generators
from featherweight.array_types import Integers, Matrix, Vector
from featherweight.engine.backends.llvm import python_objects as known
from featherweight.engine.backends.llvm.entry_table import callable_by_entry
from featherweight.engine.function import CompiledFunction
from featherweight.engine.loops import compiled_functions
from featherweight.engine.loops.kernels import compiled

HERE = f"NumPy {np.__version__}"


def memory(x: Any, size: int) -> bytes:
    return ctypes.string_at(id(x), size)


def places(pattern: bytes, x: Any, size: int, step: int) -> set[int]:
    """Return the places where an object has some bytes, after its header."""
    held = memory(x, size)
    return {k for k in range(known.HEADER, size - len(pattern) + 1, step) if held[k : k + len(pattern)] == pattern}


def word(value: int) -> bytes:
    return value.to_bytes(8, "little")


def integer(value: int) -> bytes:
    return value.to_bytes(4, "little", signed=True)


ARRAYS = [np.zeros(shape) for shape in ((3, 5), (7, 2, 4), (11,))]
DTYPES = [np.dtype(x) for x in ("f4", "f8", "i1", "?", "c16", "u2", ">f8", ">i4")]
ARRAY_BYTES, DTYPE_BYTES = np.ndarray.__basicsize__, np.dtype.__basicsize__


def of_arrays(value: Callable[[Any], bytes], step: int = 8) -> set[int]:
    """Return the places at which all arrays contain the expected values."""
    return set.intersection(*(places(value(a), a, ARRAY_BYTES, step) for a in ARRAYS))


def of_dtypes(value: Callable[[Any], bytes], step: int) -> set[int]:
    return set.intersection(*(places(value(d), d, DTYPE_BYTES, step) for d in DTYPES))


def shape_and_strides(a: Any) -> Iterator[tuple[int, int]]:
    """Yield adjacent words, one of which points as many numbers behind the other as there are axes: NumPy allocates both
    together.
    """
    words = {k: int.from_bytes(memory(a, ARRAY_BYTES)[k : k + 8], "little") for k in range(known.HEADER, ARRAY_BYTES - 7, 8)}
    yield from ((i, j) for i, j in product(words, words) if words[i] and words[j] - words[i] == 8 * a.ndim)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("DATA", lambda: of_arrays(lambda a: word(a.ctypes.data))),
        ("NDIM", lambda: of_arrays(lambda a: integer(a.ndim), 4)),
        ("DESCR", lambda: of_arrays(lambda a: word(id(a.dtype)))),
        ("DIMS", lambda: set.intersection(*({i for i, _ in shape_and_strides(a)} for a in ARRAYS))),
        ("STRIDES", lambda: set.intersection(*({j for _, j in shape_and_strides(a)} for a in ARRAYS))),
        ("FLAGS", lambda: of_arrays(lambda a: integer(a.flags.num), 4)),
        ("KIND_OF_DESCR", lambda: of_dtypes(lambda d: d.kind.encode(), 1)),
        ("ORDER_OF_DESCR", lambda: of_dtypes(lambda d: d.byteorder.encode(), 1)),
        ("NUMBER_OF_DESCR", lambda: of_dtypes(lambda d: integer(d.num), 4)),
    ],
)
def test_numpy_keeps_what_is_read_where_it_is_read(name: str, found: Callable[[], set[int]]) -> None:
    offsets = found()
    assert getattr(known, name) in offsets, f"{HERE}: python_objects.{name} is {getattr(known, name)}; it lies at {offsets}"
    assert len(offsets) == 1, f"{HERE}: {name} may lie at any of {offsets}, so this test is inconclusive"


def test_shape_and_strides_are_numbers_of_64_bits() -> None:
    for a in ARRAYS:
        for place, wanted in ((known.DIMS, a.shape), (known.STRIDES, a.strides)):
            at = int.from_bytes(memory(a, ARRAY_BYTES)[place : place + 8], "little")
            assert tuple((ctypes.c_int64 * a.ndim).from_address(at)) == wanted


def test_numpys_tables_have_the_functions_that_are_called() -> None:
    """Check the entries of the tables, which another ABI would change."""
    abi = ctypes.CFUNCTYPE(ctypes.c_uint)(known.array_api()[0])()
    assert abi == 0x2000000, f"{HERE} has ABI {abi:#x}: look at each entry of its tables that is used"
    new = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        ctypes.py_object,
        ctypes.py_object,
        ctypes.c_int,
        *[ctypes.c_void_p] * 3,
        ctypes.c_int,
        ctypes.c_void_p,
    )(known.interfaces().new_array)
    dtype = np.dtype(np.float32)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))  # the array takes the reference
    made = new(np.ndarray, dtype, 2, ctypes.addressof((ctypes.c_int64 * 2)(3, 4)), None, None, 0, None)
    assert (type(made), made.shape, made.dtype, made.flags.c_contiguous) == (np.ndarray, (3, 4), np.float32, True)


def test_all_that_the_entry_relies_on_is_as_it_says() -> None:
    """Check properties without a position above: flags, tuples, lists, floats, the Python itself."""
    difference = known.layout_difference()
    if difference == "this Python is none of CPython's with a lock, on 64 bits":
        pytest.skip(difference)
    assert difference == "", f"{HERE}: {difference}"
    assert callable_by_entry(SEVERAL)


@pytest.mark.parametrize(
    "name", ["TYPE", "DATA", "NDIM", "DIMS", "STRIDES", "DESCR", "FLAGS", "KIND_OF_DESCR", "NUMBER_OF_DESCR"]
)
def test_what_lies_elsewhere_is_noticed_and_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a field that a new release might insert."""
    monkeypatch.setattr(known, name, getattr(known, name) + (8 if getattr(known, name) % 8 == 0 else 4))
    assert re.search(r": at \d+ there is .*, and it should be ", known.layout_difference())


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a NumPy with unknown array layouts."""
    monkeypatch.setattr("featherweight.engine.backends.llvm.entry_table.layouts_known", lambda: False)


def ways(f: CompiledFunction[Any]) -> Iterator[Any]:
    """Make calls of all kinds, with one state and with many."""
    for batch, dtype in product(((), (1,), (9,), (3, 5)), (np.float64, np.float32)):
        x, s, A = arguments(batch, dtype)
        yield f(x, s, A)
        yield f(A=A, x=x, s=s)
        yield f(x.tolist(), s.tolist(), A)
        given = outs(batch, dtype)
        assert all(a is b for a, b in zip(f(x, s, A, out=given), given, strict=True))
        yield given


def test_without_known_layouts_every_call_gives_the_same_bits(unknown: None) -> None:
    general = CompiledFunction(SEVERAL, "traced")
    results = [[np.asarray(r) for r in result] for result in ways(general)]
    assert type(general).__call__ is CompiledFunction.__call__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("featherweight.engine.backends.llvm.entry_table.layouts_known", known.layouts_known)
        for ours, wanted in zip(results, ways(CompiledFunction(SEVERAL, "traced")), strict=True):
            assert_same(ours, wanted)


@pytest.mark.parametrize(("call", "error", "words"), [pytest.param(*c[1:], id=c[0]) for c in wrong_calls()])
def test_without_known_layouts_errors_are_the_same(unknown: None, call: Any, error: type[Exception], words: list[str]) -> None:
    with pytest.raises(error) as caught:
        call(CompiledFunction(SEVERAL, "traced"))
    for said in words:
        assert said in str(caught.value)


def test_without_known_layouts_a_robot_moves_the_same(unknown: None) -> None:
    robot = build(generators.chain(5, rng=3))
    q = robot.random_configuration(rng=np.random.default_rng(0), size=7)
    v, tau = np.random.default_rng(1).standard_normal((2, 7, robot.nv))
    a = robot.forward_dynamics(q, v, tau)
    for k in range(7):
        np.testing.assert_array_equal(robot.forward_dynamics(q[k], v[k], tau[k]), a[k])
    residual = (robot.mass_matrix(q) @ a[..., None])[..., 0] - tau + robot.bias_force(q, v)
    np.testing.assert_allclose(residual, 0.0, atol=1e-11 * np.abs(tau).max() * robot.nv)


def weighted_rows(rows: Matrix, weights: Integers, pair: tuple[Vector, float], out: Vector) -> float:
    """Write weighted sums of rows; return one that also depends on a number."""
    for i in range(len(rows)):
        out[i] = pair[1]
        for x in rows[i]:
            out[i] += x * weights[i] + pair[0][i]
    return out[0] + out[len(out) - 1]


def test_without_known_layouts_kernels_with_loops_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, weights, vector = np.linspace(0.1, 3.0, 12).reshape(3, 4), np.array([3, -1, 7]), np.array([0.3, 0.7, 1.1])
    results = []
    for known_layouts in (known.layouts_known(), False):
        monkeypatch.setattr(compiled_functions, "_OBJECTS", known_layouts)
        out = np.empty(3)
        results.append((compiled(weighted_rows)(rows, weights, (vector, 0.5), out), *out))
    assert results[0] == results[1]
