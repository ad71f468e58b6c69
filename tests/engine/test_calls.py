"""Every way of calling a compiled function gives the bits of the plain call, or an error that names the argument.

A function is called through machine code that reads Python's objects itself, and hands what it does not take to Python: the
tests go through both, and count references and memory.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import resource
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.guard import guarded
from engine.kernels import swinging
from featherweight.engine.function import CompiledFunction
from featherweight.engine.program import Input, KernelProgram, Output
from featherweight.spatial import sincos

N = 4
RNG = np.random.default_rng(0)
HUGE = 10**400


def several(x: Any, s: Any, A: Any, load: Any, total: Any, y: Any, B: Any) -> None:
    """Arguments and results of all ranks up to two, and an optional argument."""
    t = 0.0
    for i in range(3):
        sine, cosine = sincos(x[i])
        y[i] = sine * s + load[i]
        t = t + cosine * s
        for j in range(2):
            B[i][j] = A[j][i] * x[i] + s / 3.0
    total[0] = t


SEVERAL = KernelProgram(
    "several", several, (), (Input("x", (3,)), Input("s", ()), Input("A", (2, 3)), Input("load", (3,), optional=True)),
    (Output("total", ()), Output("y", (3,)), Output("B", (3, 2))),
)  # fmt: skip


@pytest.fixture(scope="module")
def one() -> CompiledFunction:
    return swinging(N)


@pytest.fixture(scope="module")
def many() -> CompiledFunction:
    return CompiledFunction(SEVERAL, "traced")


def arguments(batch: tuple[int, ...] = (), dtype: Any = np.float64) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(1)
    shapes = ((3,), (), (2, 3))
    x, s, A = (rng.standard_normal(batch + shape).astype(dtype) for shape in shapes)
    return x, s, A


def outs(batch: tuple[int, ...] = (), dtype: Any = np.float64) -> tuple[Any, ...]:
    return tuple(np.full(batch + shape, -99, dtype) for shape in ((), (3,), (3, 2)))


def assert_same(results: Any, wanted: Any) -> None:
    for a, b in zip(results, wanted, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b)


def layouts(x: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The same numbers in arrays of all kinds, without their dtype changed in what it holds."""
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
    }
    if x.ndim == 1:
        every |= {"list": x.tolist(), "tuple": tuple(x.tolist()), "list of NumPy's": list(x)}
    if x.ndim == 2:
        every |= {"nested": x.tolist(), "nested tuples": tuple(map(tuple, x.tolist())), "of arrays": tuple(x)}
    if x.ndim == 0:
        every |= {"float": float(x), "scalar": x[()]}
    return every


@pytest.mark.parametrize("batch", [(), (1,), (2,), (9,), (70,), (3, 5)])
def test_arrays_of_every_kind_give_the_same_bits(batch: tuple[int, ...], many: CompiledFunction) -> None:
    plain = arguments(batch)
    wanted = many(*plain)
    for k in range(3):
        for kind, same in layouts(plain[k]).items():
            for rest in (plain, tuple(x.copy(order="F") for x in plain)):
                args = (*rest[:k], same, *rest[k + 1 :])
                assert_same(many(*args), wanted)
                given = outs(batch)
                assert_same(many(*args, out=given), wanted), kind
                assert_same(given, wanted)


@pytest.mark.parametrize("batch", [(), (1,), (9,), (3, 5)])
def test_single_precision_of_all_or_of_some(batch: tuple[int, ...], many: CompiledFunction) -> None:
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
def test_a_state_gives_the_same_bits_alone_in_batches_and_with_singles(states: int, many: CompiledFunction) -> None:
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


def test_names_in_any_order_and_mixed_with_places(many: CompiledFunction) -> None:
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
    again = many(*X, out=many(*X))  # results of an earlier call, in their class
    assert_same(again, many(*X))


def test_numbers_of_every_kind_in_lists(one: CompiledFunction) -> None:
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


def test_numbers_of_classes_of_their_own(one: CompiledFunction) -> None:
    class Real(float):
        pass

    class Whole(int):
        def __float__(self) -> float:
            return 3.0

    y = np.ones(N)
    np.testing.assert_array_equal(one([Real(1.0), 2, 3, 4], y), one([1, 2, 3, 4], y))
    np.testing.assert_array_equal(one([Whole(3), 2, 3, 4], y), one([3, 2, 3, 4], y))


def test_memory_maps_and_matrices(one: CompiledFunction, tmp_path: Path) -> None:
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


def test_batches_without_states(many: CompiledFunction) -> None:
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
def test_results_go_to_arrays_of_every_kind(batch: tuple[int, ...], dtype: Any, many: CompiledFunction) -> None:
    args = arguments(batch)
    wanted = many(*args)
    table = np.full((*batch, 12), np.nan, dtype)  # columns of one table: they lie between each other, and share nothing
    columns = (table[..., 0], table[..., 1:4], table[..., 5:11].reshape((*batch, 3, 2), copy=False))
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
def test_results_may_lie_on_arguments(batch: tuple[int, ...], many: CompiledFunction) -> None:
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


def wrong_calls() -> list[tuple[str, Callable[[CompiledFunction], Any], type[Exception], list[str]]]:
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
        ("string", lambda f: f("abc", s, A), TypeError, ["x", "real"]),
        ("strings", lambda f: f(["1", "2", "3"], s, A), TypeError, ["x", "real"]),
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
        ("read-only out", lambda f: f(x, s, A, out=(t, read_only, B)), ValueError, ["out for y", "read-only"]),
        ("broadcast out", lambda f: f(x, s, A, out=(t, np.broadcast_to(0.0, 3), B)), ValueError, ["out for y", "read-only"]),
        ("outs on each other", lambda f: f(x, s, A, out=(t, area[:3], area[2:8].reshape(3, 2))), ValueError, ["B", "overlaps"]),
        ("out twice", lambda f: f(X, s, A, out=(area[:5], area[4:19].reshape(5, 3), np.zeros((5, 3, 2)))), ValueError, ["y"]),
    ]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), [pytest.param(*c[1:], id=c[0]) for c in wrong_calls()])
@pytest.mark.parametrize("execution", ["traced", "interpreted"])
def test_errors_name_the_argument(
    execution: str, call: Any, error: type[Exception], words: list[str], many: CompiledFunction
) -> None:
    f = many if execution == "traced" else CompiledFunction(SEVERAL, execution)
    with pytest.raises(error) as caught:
        call(f)
    for word in words:
        assert word in str(caught.value)


def calls(f: CompiledFunction) -> dict[str, Callable[[], Any]]:
    """A call of each way through the entry."""
    x, s, A = arguments()
    X, S, AA = arguments((4,))
    single, batch = outs(), outs((4,))
    x4, s4, A4 = arguments((), np.float32)
    listed, strided = x.tolist(), np.zeros(6)[::2]
    scalar, whole = float(s), 10**6
    return {
        "one": lambda: f(x, s, A),
        "by name": lambda: f(A=A, x=x, s=s),
        "out": lambda: f(x, s, A, out=single),
        "single precision": lambda: f(x4, s4, A4),
        "mixed precision": lambda: f(x4, s, A4),
        "list": lambda: f(listed, scalar, A),
        "whole numbers": lambda: f([whole, whole + 1, 3], whole, A),
        "strided": lambda: f(strided, s, A),
        "batch": lambda: f(X, S, AA),
        "batch with one": lambda: f(X, s, A),
        "batch out": lambda: f(X, S, AA, out=batch),
        "general": lambda: f(x, s, A, threads=1),
    }


def failures(f: CompiledFunction) -> dict[str, Callable[[], Any]]:
    x, s, A = arguments()
    wrong = (np.zeros(()), np.zeros(4), np.zeros((3, 2)))
    return {
        "huge": lambda: f([1.0, 2.0, HUGE], s, A),
        "huge number": lambda: f(x, HUGE, A),
        "shape": lambda: f(x[:2], s, A),
        "name": lambda: f(x, s, B=A),
        "wrong out": lambda: f(x, s, A, out=wrong),
        "string": lambda: f(x, "s", A),
    }


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("kind", [*calls(swinging(1)), *failures(swinging(1))])
def test_no_call_leaks(kind: str, many: CompiledFunction) -> None:
    times = 100_000 if kind in calls(many) and kind != "general" else 10_000  # what Python answers takes longer
    call = (calls(many) | failures(many))[kind]

    def repeat(n: int) -> None:
        for _ in range(n):
            try:
                call()
            except (TypeError, ValueError):
                continue

    repeat(times // 10)
    gc.collect()
    blocks, memory = sys.getallocatedblocks(), resident()
    repeat(times)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 500  # an object a call would be many more
    assert resident() - memory < 16 * times + 1_000_000  # 16 bytes is the least that malloc gives


def test_references_are_as_many_as_before(many: CompiledFunction) -> None:
    x, s, A = arguments()
    listed, whole, out = x.tolist(), 123_456_789, outs()
    seen = [x, s, A, listed, listed[0], whole, out, *out, np.dtype(np.float64), np.dtype(np.float32), type(many(x, s, A))]
    every = [*calls(many).values(), *failures(many).values()]
    every += [lambda: many(x, s, A), lambda: many(listed, whole, A, out=out), lambda: many(A=A, s=s, x=listed)]
    every += [lambda: many(x[None], s, A), lambda: many(x, s, A[None]), lambda: many(x, whole, A, out=listed)]

    def repeat(times: int) -> list[int]:
        for _ in range(times):
            for call in every:
                with contextlib.suppress(TypeError, ValueError):
                    call()
        gc.collect()
        return [sys.getrefcount(o) for o in seen]

    before = repeat(1)
    after = repeat(50)
    assert after == before


def test_results_are_held_by_their_tuple_only(many: CompiledFunction) -> None:
    result = many(*arguments())
    held = sys.getrefcount(result), [sys.getrefcount(result[k]) for k in range(3)]
    assert held == (2, [2, 2, 2])  # the call of getrefcount is one
    assert gc.is_tracked(result)
    of_class = sys.getrefcount(type(result))
    more = [many(*arguments()) for _ in range(50)]
    of_class_then = sys.getrefcount(type(result))
    assert of_class_then == of_class + len(more)


def test_results_live_on_their_own(many: CompiledFunction) -> None:
    wanted = [np.array(r) for r in many(*arguments())]
    kept = [many(*arguments()) for _ in range(200)]
    gc.collect()
    again = pickle.loads(pickle.dumps(kept[7]))
    del kept[::2]
    gc.collect()
    for result in (*kept, again):
        assert_same(result, wanted)
    assert type(again) is type(kept[0]) and again._fields == ("total", "y", "B") and again.y is again[1]
    total, y, _ = again
    assert isinstance(total, np.float64) and hash(total) == hash(float(total))
    y[:] = 0.0  # results are the caller's
    assert kept[0].y is not y and again._replace(y=1).y == 1
    circle = many(*arguments())
    assert set(map(id, gc.get_referents(circle))) >= {id(circle.y), id(circle.B)}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")
def test_without_memory_for_the_results_an_error_is_raised() -> None:
    f = CompiledFunction(SEVERAL, "traced")
    f(*arguments((2,)))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            x = np.broadcast_to(0.0, (40_000_000, 3))
            with open("/proc/self/statm") as file:
                size = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + 200_000_000, -1))
            try:
                f(x, 0.0, np.zeros((2, 3)), threads=1)
            except MemoryError:
                np.testing.assert_array_equal(f(*arguments()).y, f(*arguments((1,))).y[0] * 0 + f(*arguments()).y)
                status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("batch", [(), (1,), (2,), (7,), (8,), (9,), (17,), (3, 3)])
def test_nothing_outside_the_arrays_is_touched(
    batch: tuple[int, ...], dtype: type, at_end: bool, many: CompiledFunction
) -> None:
    args = arguments(batch, dtype)
    wanted = many(*args)
    results = tuple(guarded(r, at_end) for r in outs(batch, dtype))
    assert_same(many(*(guarded(a, at_end) for a in args), out=results), wanted)
    spread = [guarded(np.repeat(a, 2, axis=-1) if a.ndim else a, at_end) for a in args]  # strided, and the last one is an end
    strided = [a[..., (1 if at_end else 0) :: 2] if a.ndim > len(batch) or k != 1 else a for k, a in enumerate(spread)]
    if batch:
        strided[1] = guarded(args[1], at_end)
    assert_same(many(*strided), wanted)
    assert_same(many(guarded(args[0], at_end)[..., ::-1], *args[1:]), many(args[0][..., ::-1].copy(), *args[1:]))


@pytest.mark.parametrize("execution", ["traced", "rolled"])
def test_threads_of_the_caller_may_race_from_the_first_call_on(execution: str) -> None:
    if execution == "rolled":
        pytest.importorskip("numba")
    args, batch = arguments(), arguments((50,))
    reference = CompiledFunction(SEVERAL, "traced")
    wanted, wanted_batch, loaded = reference(*args), reference(*batch), reference(*args, load=np.ones(3))
    for _ in range(3):
        f = CompiledFunction(SEVERAL, execution)
        barrier, wrong = threading.Barrier(8), []

        def work(f: CompiledFunction = f, barrier: threading.Barrier = barrier, wrong: list[Any] = wrong) -> None:
            try:
                barrier.wait()
                for _ in range(30):
                    for given, right in (
                        (f(*args), wanted), (f(*batch), wanted_batch), (f(*batch, threads=2), wanted_batch),
                        (f(*args, load=np.ones(3)), loaded),
                    ):  # fmt: skip
                        for a, b in zip(given, right, strict=True):
                            np.testing.assert_allclose(a, b, rtol=0, atol=0 if execution == "traced" else 1e-13)
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork beside threads
def test_a_forked_child_goes_on(one: CompiledFunction) -> None:
    x = RNG.standard_normal((30_000, N))
    wanted = one(x, x, threads=4)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            same = np.array_equal(one(x, x, threads=4), wanted) and np.array_equal(one(x[0], x[0]), wanted[0])
            status = 0 if same else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("execution", ["traced", "interpreted", "rolled"])
def test_pickles_are_the_function_before_and_after_its_first_call(execution: str) -> None:
    if execution == "rolled":
        pytest.importorskip("numba")
    f = CompiledFunction(SEVERAL, execution)
    before = pickle.loads(pickle.dumps(f))
    wanted = f(*arguments())
    after = pickle.loads(pickle.dumps(f))
    loaded = f(*arguments(), load=np.ones(3))
    for again in (before, after, pickle.loads(pickle.dumps(after)), f.copy()):
        assert isinstance(again, CompiledFunction) and again.execution == execution and str(again.program) == str(f.program)
        assert_same(again(*arguments()), wanted)
        assert_same(again(*arguments(), load=np.ones(3)), loaded)
    given = pickle.loads(pickle.dumps(f.variant("load")))
    assert_same(given(*arguments(), np.ones(3)), loaded)


def test_functions_that_are_gone_leave_the_others(many: CompiledFunction) -> None:
    wanted = many(*arguments())
    for _ in range(5):
        CompiledFunction(SEVERAL, "traced")(*arguments())
        gc.collect()
    assert_same(many(*arguments()), wanted)
