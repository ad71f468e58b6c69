"""Tests of functions written as LLVM IR, compiled and called."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from featherweight.engine.backends.llvm.ir import Function, Type, Vector
from featherweight.engine.backends.llvm.jit import compile_object, load_object

ATTRIBUTES = "attributes #0 = { nounwind }"


def text(f: Function) -> str:
    return "\n".join([*f.declarations, str(f), ATTRIBUTES])


def compiled(f: Function, result: Any, *arguments: Any) -> Callable[..., Any]:
    code = load_object(compile_object(text(f)), f.name)
    function: Any = ctypes.CFUNCTYPE(result, *arguments)(code.address(f.name))
    function.code = code  # keeps the code alive
    return function


def of_integers(f: Function, count: int) -> Callable[..., Any]:
    return compiled(f, ctypes.c_int64, *[ctypes.c_int64] * count)


def number(name: str, *arguments: str) -> Function:
    """Return a function of integers."""
    return Function("i64", name, [f"i64 {a}" for a in arguments], linkage="external")


def total(name: str, loop: Callable[[Function], Any], *arguments: str) -> Callable[..., Any]:
    """Return the sum of 1000 + i over the indices i of a loop."""
    f = number(name, *arguments)
    sum = f.slot("i64")
    f.store("i64", 0, sum)
    with loop(f) as i:
        f.store("i64", f.add(f.load("i64", sum), f.add(i, 1000)), sum)
    f.ret("i64", f.load("i64", sum))
    return of_integers(f, len(arguments))


@pytest.mark.parametrize(("begin", "count", "step"), [(0, 5, 1), (2, 9, 3), (0, 0, 1), (3, 3, 1), (4, 2, 1), (-3, -1, 1)])
def test_a_loop_runs_over_a_range(begin: int, count: int, step: int) -> None:
    wanted = sum(1000 + i for i in range(begin, count, step))
    found = total("of_values", lambda f: f.loop("%count", "%begin", "%step"), "%begin", "%count", "%step")
    assert found(begin, count, step) == wanted
    assert total("of_constants", lambda f: f.loop(count, begin, step))() == wanted


@pytest.mark.parametrize(("begin", "count", "step"), [(0, 5, 1), (2, 9, 3), (7, 7, 1), (4, 2, 1)])
def test_rounds_are_one_at_least(begin: int, count: int, step: int) -> None:
    wanted = sum(1000 + i for i in range(begin, count, step)) or 1000 + begin
    assert total("rounds", lambda f: f.rounds("%n", "%b", step), "%b", "%n")(begin, count) == wanted


def test_a_loop_that_has_a_constant_round_asks_for_no_first_one() -> None:
    def branches(count: str | int) -> int:
        f = number("f", "%n")
        with f.loop(count):
            pass
        return str(f).count("br i1")

    assert branches(3) == 1
    assert branches("%n") == branches(0) == 2


@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (1, 1), (0, 4), (3, 0)])
def test_nested_loops_fill_a_table(rows: int, columns: int) -> None:
    f = Function("void", "table", ["ptr %out", "i64 %rows", "i64 %columns"], linkage="external")
    with f.loop("%rows") as i, f.loop("%columns") as j:
        f.store("i64", f.add(f.mul(i, 10), j), "%out", f.add(f.mul(i, "%columns"), j))
    f.ret()
    out = np.full((rows, columns), -1, np.int64)
    compiled(f, None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(out.ctypes.data, rows, columns)
    assert np.array_equal(out, 10 * np.arange(rows)[:, None] + np.arange(columns))


def test_a_loop_goes_on_from_the_block_that_its_body_ends_in() -> None:
    f = number("evens", "%n")
    sum = f.slot("i64")
    f.store("i64", 0, sum)
    with f.loop("%n") as i, f.choice(f.equal(f.binary("and", "i64", i, 1), 0)) as (even, odd):
        with even:
            f.store("i64", f.add(f.load("i64", sum), i), sum)
        with odd, f.loop(2):
            f.store("i64", f.add(f.load("i64", sum), 100), sum)
    f.ret("i64", f.load("i64", sum))
    assert of_integers(f, 1)(7) == 0 + 2 + 4 + 6 + 3 * 200


def test_phi_is_the_value_of_the_block_before() -> None:
    f = number("size", "%x")
    with f.choice(f.less("%x", 0)) as (negative, positive):
        with negative:
            opposite, first = f.sub(0, "%x"), f.block
        with positive:
            second = f.block
    f.ret("i64", f.phi("i64", (opposite, first), ("%x", second)))
    size = of_integers(f, 1)
    assert [size(x) for x in (-5, 0, 7)] == [5, 0, 7]


def test_require_goes_elsewhere() -> None:
    f = number("checked", "%x")
    f.require(f.less("%x", 10), "large")
    f.require(f.negation(f.less("%x", 0)), "negative")
    f.ret("i64", "%x")
    for label, answer in (("large", "10"), ("negative", "0")):
        f.label(label)
        f.ret("i64", answer)
    checked = of_integers(f, 1)
    assert [checked(x) for x in (-1, 0, 9, 10, 99)] == [0, 0, 9, 10, 10]


def test_names_are_fresh() -> None:
    f = number("names", "%x")
    names = [*(f.fresh("t") for _ in range(50)), *(f.fresh("other") for _ in range(50))]
    names += [f.add("%x", k).removeprefix("%") for k in range(50)]
    assert len(set(names)) == len(names)


def test_arithmetic_of_integers() -> None:
    f = number("arithmetic", "%a", "%b")
    small = f.least("%a", "%b")
    f.ret("i64", f.add(f.mul(f.div("%a", "%b"), 100), f.sub(small, f.select(f.less("%a", 9), 0, 1))))
    arithmetic = of_integers(f, 2)
    for a, b in ((3, 5), (17, 5), (9, 9)):
        assert arithmetic(a, b) == a // b * 100 + min(a, b) - (a >= 9)


def test_an_aligned_pointer_is_the_next_cache_line() -> None:
    f = Function("ptr", "aligned", ["ptr %p"], linkage="external")
    f.ret("ptr", f.aligned("%p"))
    aligned = compiled(f, ctypes.c_int64, ctypes.c_int64)
    assert [aligned(p) for p in (64, 65, 127, 128, 1)] == [64, 128, 128, 128, 64]


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
def test_first_lanes_alone_are_read_and_written(precision: str, lanes: int) -> None:
    dtype = np.dtype(np.float64 if precision == "double" else np.float32)
    type = Vector(precision, lanes)
    for count in range(1, lanes + 1):
        f = Function("void", "first", ["ptr %x", "ptr %out", "ptr %beside"], linkage="external")
        x = f.load_first(type, "%x", count)
        f.store_first(type, x, "%out", count)
        f.store(type.ir, x, "%beside", align=1)
        f.ret()
        x_of, out, beside = (np.full(lanes + 1, fill, dtype) for fill in (0, -1, -1))
        x_of[:] = 1 + np.arange(lanes + 1)
        compiled(f, None, *[ctypes.c_void_p] * 3)(*(a.ctypes.data for a in (x_of, out, beside)))
        assert list(out) == [*range(1, count + 1), *[-1] * (lanes + 1 - count)]
        assert list(beside) == [*range(1, count + 1), *[0] * (lanes - count), -1]


def test_shuffles_pick_lanes_of_two_vectors() -> None:
    type = Type("double", 4)
    f = Function("void", "shuffle", ["ptr %a", "ptr %b", "ptr %out"], linkage="external")
    first, second = (f.load(type.ir, p, align=8) for p in ("%a", "%b"))
    picked = f.shuffle(type, first, second, [0, 5, 2, 7])
    f.store(type.ir, f.insert(type, picked, f.extract(type, picked, 3), 0), "%out", align=8)
    f.ret()
    a, b, out = np.arange(4.0), 10 + np.arange(4.0), np.zeros(4)
    compiled(f, None, *[ctypes.c_void_p] * 3)(*(x.ctypes.data for x in (a, b, out)))
    assert list(out) == [13, 11, 2, 13]


def test_pairs_hold_two() -> None:
    f = Function("double", "pairs", ["double %a", "double %b"], linkage="external")
    pair = f.pair("double", "%a", "%b")
    f.ret("double", f.binary("fsub", "double", f.member("double", pair, 0), f.member("double", pair, 1)))
    assert compiled(f, ctypes.c_double, ctypes.c_double, ctypes.c_double)(5.0, 3.0) == 2.0


def test_intrinsics_declare_themselves_once() -> None:
    type = Type("double", 1)
    f = Function("double", "intrinsic", ["double %x"], linkage="external")
    f.ret("double", f.intrinsic("sqrt", type, f.intrinsic("fabs", type, f.intrinsic("fabs", type, "%x"))))
    assert list(f.declarations) == ["declare double @llvm.fabs.f64(double)", "declare double @llvm.sqrt.f64(double)"]
    assert compiled(f, ctypes.c_double, ctypes.c_double)(-9.0) == 3.0


@pytest.mark.parametrize(
    ("type", "ir", "mangled", "bytes"),
    [
        (Type("double", 1), "double", "f64", 8),
        (Type("float", 8), "<8 x float>", "v8f32", 32),
        (Vector("double", 1), "<1 x double>", "v1f64", 8),
    ],
)
def test_types_name_themselves(type: Type, ir: str, mangled: str, bytes: int) -> None:
    assert (type.ir, type.mangled, type.bytes) == (ir, mangled, bytes)


@pytest.mark.parametrize("value", [0.0, -0.0, 0.1, 1e-300, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("lanes", [1, 4])
def test_constants_keep_their_bits(value: float, lanes: int) -> None:
    type = Type("double", lanes)
    f = Function("void", "constant", ["ptr %out"], linkage="external")
    f.store(type.ir, type.constant(value), "%out", align=8)
    f.ret()
    out = np.zeros(lanes)
    compiled(f, None, ctypes.c_void_p)(out.ctypes.data)
    assert np.full(lanes, value).tobytes() == out.tobytes()
