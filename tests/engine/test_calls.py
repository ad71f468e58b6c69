"""Tests that every way to call a compiled function gives the bits of the plain call, or an error that names the argument.

Machine code that reads Python's objects handles calls, and passes unsupported ones to Python: the tests take both paths, and
count references and memory.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.kernels import SEVERAL, arguments, assert_same, outs, swinging
from featherweight.engine.function import CompiledFunction

N = 4
RNG = np.random.default_rng(0)
HUGE = 10**400


@pytest.fixture(scope="module")
def one() -> CompiledFunction:
    return swinging(N)


@pytest.fixture(scope="module")
def many() -> CompiledFunction:
    return CompiledFunction(SEVERAL, "traced")


class ByDlpack:
    """An array, on a device of some kind, of a library that NumPy does not know."""

    def __init__(self, x: Any, kind: int = 1) -> None:
        self.x, self.kind = x, kind

    def __dlpack__(self, **asked: Any) -> Any:
        return self.x.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0


class ByArray:
    """A table, a labelled variable, or another object that converts itself to an array."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.x, dtype)


def layouts(x: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Yield arrays of all layouts with the same numbers, without a change of dtype that loses digits."""
    wide = np.zeros((*x.shape[:-1], 3 * x.shape[-1]), x.dtype) if x.ndim else np.zeros(3, x.dtype)
    wide[..., ::3] = x if x.ndim else x[None]
    raw = np.frombuffer(b"x" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)
    read_only = x.copy()
    read_only.flags.writeable = False
    every = {
        "strided": wide[..., ::3] if x.ndim else wide[0, ...],
        "reversed": x[..., ::-1].copy()[..., ::-1] if x.ndim else x,
        "fortran": np.array(x, order="F"),
        "unaligned": raw,
        "read-only": read_only,
        "swapped": x.astype(x.dtype.newbyteorder()),
        "unpickled": pickle.loads(pickle.dumps(x)),
        "long double": x.astype(np.longdouble),
        "subclass": x.view(type("Own", (np.ndarray,), {})),
        "sequence of arrays": list(x) if x.ndim else x,
        "DLPack alone": ByDlpack(x),
        "in pinned memory": ByDlpack(x, 3),
        "__array__ alone": ByArray(x),
    }
    if x.ndim == 1:
        every |= {"list": x.tolist(), "tuple": tuple(x.tolist()), "list of NumPy's": list(x)}
    if x.ndim == 2:
        every |= {"nested": x.tolist(), "nested tuples": tuple(map(tuple, x.tolist())), "of arrays": tuple(x)}
    if x.ndim == 0:
        every |= {"float": float(x), "scalar": x[()]}
    return every


@pytest.mark.parametrize("batch", [(), (1,), (2,), (9,), (70,), (3, 5)])
def test_arrays_of_every_kind_give_the_same_bits(batch: tuple[int, ...], many: CompiledFunction[Any]) -> None:
    plain = arguments(batch)
    wanted = many(*plain)
    for k in range(3):
        for same in layouts(plain[k]).values():
            for rest in (plain, tuple(x.copy(order="F") for x in plain)):
                args = (*rest[:k], same, *rest[k + 1 :])
                assert_same(many(*args), wanted)
                given = outs(batch)
                assert_same(many(*args, out=given), wanted)
                assert_same(given, wanted)


@pytest.mark.parametrize("batch", [(), (1,), (9,), (3, 5)])
def test_single_precision_of_all_or_of_some(batch: tuple[int, ...], many: CompiledFunction[Any]) -> None:
    x, s, A = arguments(batch, np.float32)
    wanted = many(x, s, A)
    assert all(np.asarray(r).dtype == np.float32 for r in wanted)
    in_double = many(*(a.astype(np.float64) for a in (x, s, A)))
    for single, double in zip(wanted, in_double, strict=True):
        np.testing.assert_allclose(single, double, rtol=0, atol=3e-6)  # a few roundings of numbers below 5
    halves = [a.astype(np.float16) for a in (x, s, A)]
    assert_same(many(*halves), many(*(a.astype(np.float32) for a in halves)))
    for k in range(3):
        mixed = [a.astype(np.float64) if i == k else a for i, a in enumerate((x, s, A))]
        assert_same(many(*mixed), in_double)
    for kind, same in layouts(x).items():
        if kind in ("long double", "list", "tuple", "nested", "nested tuples"):
            assert_same(many(same, s, A), in_double)
        else:
            assert_same(many(same, s, A), wanted)
    for dtype in (np.float64, np.float32):
        given = outs(batch, dtype)
        many(x, s, A, out=given)
        assert_same(given, [np.asarray(r, dtype) for r in wanted])


@pytest.mark.parametrize("states", [1, 2, 7, 8, 9, 33])
def test_a_state_gives_the_same_bits_alone_in_batches_and_with_singles(states: int, many: CompiledFunction[Any]) -> None:
    x, s, A = arguments((states,))
    wanted = many(x, s, A)
    for i in range(states):
        assert_same(many(x[i], s[i], A[i]), [r[i] for r in wanted])
        assert_same(many(x[i : i + 1], s[i], A[i]), [r[i : i + 1] for r in wanted])
        assert_same(many(x[i], s[i : i + 1], A[i].tolist()), [r[i : i + 1] for r in wanted])
    alone = many(x, s[0], A)
    assert_same(many(x, np.full(states, s[0]), A), alone)
    assert_same(many(x, np.broadcast_to(s[0], states), A), alone)
    assert_same(many(x, float(s[0]), A), alone)
    assert_same(many(np.broadcast_to(x[0], (states, 3)), s, A), many(x[0], s, A))
    grid = many(x[:, None], s, A[0])
    assert grid.y.shape == (states, states, 3)
    for i in range(states):
        assert_same([r[i] for r in grid], many(x[i], s, A[0]))


def test_names_in_any_order_and_mixed_with_places(many: CompiledFunction[Any]) -> None:
    x, s, A = arguments()
    wanted = many(x, s, A)
    for args, named in (
        ((), {"A": A, "x": x, "s": s}), ((x,), {"A": A, "s": s}), ((x, s), {"A": A}), ((), {"s": s, "A": A, "x": x}),
    ):  # fmt: skip
        assert_same(many(*args, **named), wanted)
        made_up = {"".join(list(name)): value for name, value in named.items()}  # strings that are not interned
        assert_same(many(*args, **made_up), wanted)
        given = outs()
        results = many(*args, out=given, **named)
        assert type(results) is type(wanted) and all(a is b for a, b in zip(results, given, strict=True))
        assert_same(many(*args, **named, out=None, threads=None, algorithm=None, load=None), wanted)
        assert_same(many(*args, **named, threads=2, algorithm="several"), wanted)
        assert_same(many(*args, **named, load=np.zeros(3)), wanted)
    X = arguments((5,))
    again = many(*X, out=many(*X))  # results of an earlier call, as instances of their class
    assert_same(again, many(*X))


def test_numbers_of_every_kind_in_lists(one: CompiledFunction[Any]) -> None:
    y = np.ones(N)
    wanted = one(np.array([1.0, 2.0, 0.0, 1.0]), y)
    for x in (
        [1, 2, 0, 1], (1, 2.0, 0, True), [True, 2, False, True], [np.float64(1), np.int8(2), np.float32(0), np.uint64(1)],
        [np.array(1.0), 2, 0, 1], np.array([1, 2, 0, 1], np.uint64), np.array([1, 2, 0, 1], "i1"),
    ):  # fmt: skip
        np.testing.assert_array_equal(one(x, y), wanted)
        np.testing.assert_array_equal(one([list(x)], y), wanted[None])
    bits = np.array([True, False, True, True])
    np.testing.assert_array_equal(one(bits, y), one(bits.astype(float), y))
    for whole in (2**53 + 1, -(2**63), 2**64, 10**300):
        np.testing.assert_array_equal(one([whole, 0, 0, 0], y), one(np.array([float(whole), 0, 0, 0]), y))


def test_numbers_of_classes_of_their_own(one: CompiledFunction[Any]) -> None:
    class Real(float):
        pass

    class Whole(int):
        def __float__(self) -> float:
            return 3.0

    y = np.ones(N)
    np.testing.assert_array_equal(one([Real(1.0), 2, 3, 4], y), one([1, 2, 3, 4], y))
    np.testing.assert_array_equal(one([Whole(3), 2, 3, 4], y), one([3, 2, 3, 4], y))


def test_memory_maps_and_matrices(one: CompiledFunction[Any], tmp_path: Path) -> None:
    x = RNG.standard_normal((6, N))
    x.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.float64, "r", shape=(6, N))
    np.testing.assert_array_equal(one(mapped, x), one(x, x))
    np.testing.assert_array_equal(one(mapped[0], x[0]), one(x[0], x[0]))
    out = np.memmap(tmp_path / "out", np.float64, "w+", shape=(N,))
    assert one(x[0], x[0], out=out) is out
    np.testing.assert_array_equal(out, one(x[0], x[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = np.matrix(x[0])
    result = one(matrix, x[0])
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, one(x[:1], x[0]))


def test_batches_without_states(many: CompiledFunction[Any]) -> None:
    for batch in ((0,), (3, 0), (0, 2)):
        results = many(*arguments(batch))
        assert [r.shape for r in results] == [batch, (*batch, 3), (*batch, 3, 2)]
        given = outs(batch)
        assert all(a is b for a, b in zip(many(*arguments(batch), out=given), given, strict=True))
    _, s, A = arguments()
    assert many(np.zeros((0, 3)), s, A).y.shape == (0, 3)
    assert many(np.zeros((1, 3)), np.zeros(0), A).y.shape == (0, 3)


@pytest.mark.parametrize("batch", [(), (1,), (9,), (3, 4)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, ">f8", np.longdouble, np.float16, complex])
def test_results_go_to_arrays_of_every_kind(batch: tuple[int, ...], dtype: Any, many: CompiledFunction[Any]) -> None:
    args = arguments(batch)
    wanted = many(*args)
    table = np.full((*batch, 12), np.nan, dtype)  # columns of one table: interleaved, without common elements
    columns = (table[..., 0], table[..., 1:4], table[..., 5:11].reshape((*batch, 3, 2)))
    assert np.shares_memory(columns[2], table)
    flipped = tuple(np.full(r.shape, np.nan, dtype, order="F")[..., ::-1] for r in outs((*batch, 1)))
    raw = [np.zeros(1 + np.dtype(dtype).itemsize * np.asarray(r).size, np.uint8)[1:].view(dtype) for r in wanted]
    unaligned = tuple(u.reshape(np.shape(r)) for u, r in zip(raw, wanted, strict=True))
    flipped = tuple(
        f[..., 0] if k == 0 else f.reshape(np.shape(r)) for k, (f, r) in enumerate(zip(flipped, wanted, strict=True))
    )
    for given in (columns, flipped, unaligned):
        results = many(*args, out=given)
        assert all(a is b for a, b in zip(results, given, strict=True))
        for a, b in zip(given, wanted, strict=True):
            np.testing.assert_array_equal(a, np.asarray(b).astype(dtype))


@pytest.mark.parametrize("batch", [(), (1,), (9,), (70,)])
def test_results_may_lie_on_arguments(batch: tuple[int, ...], many: CompiledFunction[Any]) -> None:
    x, s, A = arguments(batch)
    wanted = many(x, s, A)
    area = np.concatenate([x.ravel(), A.ravel()])
    on_x, on_A = area[: x.size].reshape(x.shape), area[x.size :].reshape(A.shape)
    for shift in (0, 1, -1):
        begin = min(max(0, x.size // 2 + shift), area.size - x.size)
        area[: x.size], area[x.size :] = x.ravel(), A.ravel()
        given = (np.zeros(batch), area[begin : begin + x.size].reshape(x.shape), np.zeros((*batch, 3, 2)))
        assert_same(many(on_x, s, on_A, out=given), wanted)
    area[: x.size], area[x.size :] = x.ravel(), A.ravel()
    given = (np.zeros(batch), np.zeros(x.shape), on_A.reshape((*batch, 3, 2)))
    assert_same(many(on_x, s, on_A, out=given), wanted)


def wrong_calls() -> list[tuple[str, Callable[[CompiledFunction[Any]], Any], type[Exception], list[str]]]:
    x, s, A = arguments()
    X, S, _ = arguments((5,))
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    area = np.zeros(40)
    y = np.zeros(3)
    B, t = np.zeros((3, 2)), np.zeros(())
    names = ["several", "total", "y", "B"]
    return [
        ("short", lambda f: f(x[:2], s, A), ValueError, ["x", "(..., 3)", "(2,)"]),
        ("short list", lambda f: f([1, 2], s, A), ValueError, ["x", "(..., 3)", "(2,)"]),
        ("long tuple", lambda f: f((1, 2, 3, 4), s, A), ValueError, ["x", "(4,)"]),
        ("empty list", lambda f: f([], s, A), ValueError, ["x", "(0,)"]),
        ("a number for a vector", lambda f: f(1.0, s, A), ValueError, ["x", "()"]),
        ("a whole number for a vector", lambda f: f(1, s, A), ValueError, ["x", "()"]),
        ("transposed", lambda f: f(x, s, A.T), ValueError, ["A", "(..., 2, 3)", "(3, 2)"]),
        ("vector for a matrix", lambda f: f(x, s, x), ValueError, ["A", "(3,)"]),
        ("ragged", lambda f: f(x, s, [[1, 2, 3], [1, 2]]), ValueError, ["several", "A"]),
        ("huge", lambda f: f([1, 2, HUGE], s, A), TypeError, ["x", "real numbers"]),
        ("huge number", lambda f: f(x, HUGE, A), TypeError, ["s", "real numbers"]),
        ("huge below", lambda f: f(x, s, [[1, 2, -HUGE], [1, 2, 3]]), TypeError, ["A", "real numbers"]),
        ("none", lambda f: f(None, s, A), TypeError, ["x"]),
        ("none inside", lambda f: f([1, None, 2], s, A), TypeError, ["x"]),
        ("no array", lambda f: f({"x": 1.0}, s, A), TypeError, ["x must be an array of real numbers", "got {'x': 1.0}"]),
        ("string", lambda f: f("abc", s, A), TypeError, ["x", "real"]),
        ("strings", lambda f: f(["1", "2", "3"], s, A), TypeError, ["x", "real"]),
        ("of a phone's GPU", lambda f: f(x, ByDlpack(s, 8), A), TypeError, ["s is on a device", "copy"]),
        ("DLPack of bytes", lambda f: f(ByDlpack(np.zeros(3, "S1")), s, A), TypeError, ["x cannot be imported by DLPack"]),
        ("a table of words", lambda f: f(ByArray(["a", "b", "c"]), s, A), TypeError, ["x", "real"]),
        ("bytes", lambda f: f(x, b"1", A), TypeError, ["s", "real"]),
        ("complex", lambda f: f(x + 0j, s, A), TypeError, ["x", "complex"]),
        ("complex number", lambda f: f(x, 1j, A), TypeError, ["s", "complex"]),
        ("objects", lambda f: f(x.astype(object), s, A), TypeError, ["x", "object"]),
        ("dates", lambda f: f(np.zeros(3, "M8[s]"), s, A), TypeError, ["x", "datetime"]),
        ("dictionary", lambda f: f({}, s, A), TypeError, ["x"]),
        ("set", lambda f: f({1, 2, 3}, s, A), TypeError, ["x"]),
        ("generator", lambda f: f((i for i in range(3)), s, A), TypeError, ["x"]),
        ("batches", lambda f: f(X, S[:4], A), ValueError, ["broadcast", "x (5, 3)", "s (4,)"]),
        ("axes of batches", lambda f: f(X, np.zeros((2, 4)), A), ValueError, ["broadcast", "s (2, 4)"]),
        ("twice", lambda f: f(x, s, A, x=x), TypeError, ["several(x, s, A)"]),
        ("twice, one absent", lambda f: f(x, s, x=x), TypeError, ["several(x, s, A)"]),
        ("unknown", lambda f: f(x, s, A, B=x), TypeError, ["several(x, s, A)", "B"]),
        ("unknown for known", lambda f: f(x, s, B=A), TypeError, ["several(x, s, A)", "B"]),
        ("none at all", lambda f: f(), TypeError, ["several(x, s, A)"]),
        ("out only", lambda f: f(out=outs()), TypeError, ["several(x, s, A)"]),
        ("too many", lambda f: f(x, s, A, x), TypeError, ["4 arguments"]),
        ("far too many", lambda f: f(*[x] * 100), TypeError, ["100 arguments"]),
        ("threads", lambda f: f(x, s, A, threads=0), ValueError, ["threads", "0"]),
        ("parts of threads", lambda f: f(X, s, A, threads=1.5), ValueError, ["threads", "1.5"]),
        ("word for threads", lambda f: f(X, s, A, threads="2"), ValueError, ["threads", "'2'"]),
        ("algorithm", lambda f: f(x, s, A, algorithm="none"), ValueError, ["algorithm", "several", "none"]),
        ("option", lambda f: f(x, s, A, load=np.zeros(4)), ValueError, ["load", "(4,)"]),
        ("option by place", lambda f: f(x, s, A, np.zeros(3)), TypeError, ["4 arguments"]),
        ("one out for several", lambda f: f(x, s, A, out=y), ValueError, names),
        ("list of outs", lambda f: f(x, s, A, out=[t, y, B]), ValueError, names),
        ("too few outs", lambda f: f(x, s, A, out=(t, y)), ValueError, names),
        ("outs of a batch", lambda f: f(x, s, A, out=outs((1,))), ValueError, ["out for total", "(1,)"]),
        ("outs of one", lambda f: f(X, s, A, out=outs()), ValueError, ["out for total", "(5,)"]),
        ("outs of fewer", lambda f: f(X, s, A, out=outs((4,))), ValueError, ["out for total", "(5,)", "(4,)"]),
        ("none among outs", lambda f: f(x, s, A, out=(t, None, B)), ValueError, ["out for y", "NoneType"]),
        ("number among outs", lambda f: f(x, s, A, out=(0.0, y, B)), ValueError, ["out for total", "float"]),
        ("outs of whole numbers", lambda f: f(x, s, A, out=(t, y.astype(int), B)), TypeError, ["out for y", "int64"]),
        ("outs of a batch of whole numbers", lambda f: f(X, s, A, out=outs((5,), int)), TypeError, ["out for total"]),
        ("outs of words", lambda f: f(x, s, A, out=(t, y.astype("U8"), B)), TypeError, ["out for y", "<U8"]),
        ("outs of a batch of objects", lambda f: f(X, s, A, out=outs((5,), object)), TypeError, ["out for total", "object"]),
        ("read-only out", lambda f: f(x, s, A, out=(t, read_only, B)), ValueError, ["out for y", "read-only"]),
        ("broadcast out", lambda f: f(x, s, A, out=(t, np.broadcast_to(0.0, 3), B)), ValueError, ["out for y", "read-only"]),
        ("outs on each other", lambda f: f(x, s, A, out=(t, area[:3], area[2:8].reshape(3, 2))), ValueError, ["B", "overlaps"]),
        ("out twice", lambda f: f(X, s, A, out=(area[:5], area[4:19].reshape(5, 3), np.zeros((5, 3, 2)))), ValueError, ["y"]),
    ]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), [pytest.param(*c[1:], id=c[0]) for c in wrong_calls()])
@pytest.mark.parametrize("execution", ["traced", "interpreted"])
def test_errors_name_the_argument(
    execution: str, call: Any, error: type[Exception], words: list[str], many: CompiledFunction[Any]
) -> None:
    f = many if execution == "traced" else CompiledFunction(SEVERAL, execution)
    with pytest.raises(error) as caught:
        call(f)
    for word in words:
        assert word in str(caught.value)


def test_what_another_library_says_of_an_argument_names_it(many: CompiledFunction[Any]) -> None:
    class Recorded:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
            raise RuntimeError("it is recorded; detach it first")

    x, _, A = arguments()
    with pytest.raises(RuntimeError, match="detach it first") as raised:
        many(x, Recorded(), A)
    assert raised.value.__notes__ == ["It was given as several: s."]
