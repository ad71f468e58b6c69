"""Tests of compiled functions: loops over rows, broadcasting, threads, errors, pickling, the disk cache."""

from __future__ import annotations

import inspect
import pickle
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from engine.guard import guarded
from engine.kernels import expected, swinging
from featherweight.engine import threads
from featherweight.engine.backends.llvm.ir import Type
from featherweight.engine.backends.llvm.jit import host
from featherweight.engine.backends.llvm.loop import emit_loop
from featherweight.engine.backends.llvm.python_objects import layouts_known
from featherweight.engine.function import CompiledFunction, cheapest
from featherweight.engine.program import Input, KernelProgram, Output
from featherweight.engine.program_trace import ProgramTrace
from featherweight.engine.trace import trace
from patience import PATIENCE


def table(x: Any, out: Any) -> None:
    for i in range(len(x)):
        for j in range(len(x[0])):
            out[j][i] = 2.0 * x[i][j] + i


TABLE = CompiledFunction(KernelProgram("table", table, (), (Input("x", (3, 5)),), (Output("out", (5, 3)),)), "traced")
RNG = np.random.default_rng(0)
SIZES = [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 24, 31]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_row_length_and_batch_length(n: int, dtype: type) -> None:
    f = swinging(n)
    tolerance = 1e-14 if dtype == np.float64 else 2e-6  # some roundings
    for states in (0, 1, 2, 7, 8, 9, 16, 17, 63, 64, 65, 200):
        x, y = RNG.standard_normal((2, states, n)).astype(dtype)
        result = f(x, y)
        assert result.dtype == dtype
        np.testing.assert_allclose(result, expected(x, y), rtol=0, atol=tolerance * 20)


@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", SIZES)
def test_nothing_outside_the_arrays_is_touched(n: int, dtype: type, at_end: bool) -> None:
    f = swinging(n)
    for states in (1, 2, 3, 7, 8, 9, 13, 16, 17, 65):
        x, y = RNG.standard_normal((2, states, n)).astype(dtype)
        out = guarded(np.zeros((states, n), dtype), at_end)
        f(guarded(x, at_end), guarded(y, at_end), out=out)
        np.testing.assert_array_equal(out, f(x, y))
        f(guarded(x[0], at_end), guarded(y[0], at_end), out=out[0])


def test_a_step_outside_a_guarded_array_would_be_seen() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import ctypes, numpy as np\nfrom engine.guard import guarded\n"
        "a = guarded(np.zeros(5)); ctypes.c_double.from_address(a.ctypes.data + 40).value"
    )
    done = subprocess.run([sys.executable, "-c", code, str(Path(__file__).parents[1])], capture_output=True, check=False)
    assert done.returncode < 0


def test_strides_of_every_kind_give_the_same_bits() -> None:
    n, states = 11, 37
    f = swinging(n)
    x, y = RNG.standard_normal((2, states, n))
    reference = f(x, y)
    wide = np.zeros((states, 3 * n))
    wide[:, ::3] = x
    reversed_rows, reversed_columns = x[::-1].copy()[::-1], x[:, ::-1].copy()[:, ::-1]
    unaligned = np.frombuffer(b"x" + x.tobytes(), np.uint8)[1:].view(np.float64).reshape(states, n)
    swapped = x.astype(x.dtype.newbyteorder())
    for same in (wide[:, ::3], np.asfortranarray(x), reversed_rows, reversed_columns, unaligned, swapped):
        np.testing.assert_array_equal(f(same, y), reference)
        np.testing.assert_array_equal(f(same[5], y[5]), reference[5])
    out = np.zeros((n, states)).T
    assert f(x, y, out=out) is out
    np.testing.assert_array_equal(out, reference)


def test_a_state_gives_the_same_bits_alone_in_a_batch_and_at_any_place() -> None:
    n = 9
    f = swinging(n)
    x, y = RNG.standard_normal((2, 41, n)) * 1e3
    reference = f(x, y)
    for i in range(41):
        np.testing.assert_array_equal(f(x[i], y[i]), reference[i])
        np.testing.assert_array_equal(f(x[i:], y[i:]), reference[i:])


def test_arrays_of_rank_two_go_in_and_out() -> None:
    x = RNG.standard_normal((29, 3, 5))
    wanted = np.swapaxes(2 * x + np.arange(3)[:, None], -1, -2)
    np.testing.assert_array_equal(TABLE(x), wanted)
    np.testing.assert_array_equal(TABLE(np.swapaxes(np.swapaxes(x, 1, 2).copy(), 1, 2)), wanted)
    np.testing.assert_array_equal(TABLE(x[4]), wanted[4])
    out = np.zeros((5, 3, 29))
    TABLE(x, out=np.moveaxis(out, -1, 0))
    np.testing.assert_array_equal(np.moveaxis(out, -1, 0), wanted)


def test_leading_axes_broadcast() -> None:
    f = swinging(4)
    x, y = RNG.standard_normal((5, 1, 4)), RNG.standard_normal((6, 4))
    assert f(x, y).shape == (5, 6, 4)
    np.testing.assert_array_equal(f(x, y)[3, 2], f(x[3, 0], y[2]))
    np.testing.assert_array_equal(f(x[0, 0], y)[2], f(x[0, 0], y[2]))


def test_a_result_may_lie_on_an_argument() -> None:
    f = swinging(4)
    x, y = RNG.standard_normal((2, 70, 4))
    for wanted, at in ((f(x, y), slice(None)), (f(x[0], y[0]), 0)):
        z = x.copy()
        f(z[at], y[at], out=z[at])
        np.testing.assert_array_equal(z[at], wanted)


def test_threads_wait_for_a_result_that_lies_on_an_argument() -> None:
    f = swinging(4)
    rows = RNG.standard_normal((60_001, 4))
    wanted = f(rows[:-1].copy(), rows[0].copy())
    f(rows[:-1], rows[0], out=rows[1:], threads=4)
    np.testing.assert_array_equal(rows[1:], wanted)


def test_numbers_lists_and_names_are_taken() -> None:
    f = swinging(3)
    x: Any = [1.0, 2.0, 3.0]
    y = (4, 5, 6)
    wanted = expected(np.array(x), np.array(y))
    for result in (f(x, y), f(y=y, x=x), f(np.array([1, 2, 3]), y=np.array(y, np.int8)), f(np.float32(x), np.array(y))):
        assert result.dtype == np.float64
        np.testing.assert_allclose(result, wanted, rtol=1e-14)


def test_threads_share_a_batch_and_change_nothing() -> None:
    f = swinging(6)
    x, y = RNG.standard_normal((2, 50_001, 6))
    alone = f(x, y, threads=1)
    for count in (2, 3, 8):
        np.testing.assert_array_equal(f(x, y, threads=count), alone)
    grid = f(x[:5000].reshape(2, 2500, 6), y[:5000].reshape(2, 2500, 6), threads=2)
    np.testing.assert_array_equal(grid.reshape(-1, 6), alone[:5000])


def test_the_gil_is_released_while_it_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that this thread sees a partial batch, which except for the beginning is one call of machine code."""
    monkeypatch.setattr(threads, "LONGEST", 1e9)
    f = swinging(24)
    x = RNG.standard_normal((400_000, 24))
    out, places, ended = np.empty_like(x), [len(x) // 2, len(x) - 1], threading.Event()

    def compute() -> None:
        while not ended.is_set():
            out[places] = np.nan
            f(x, x, out=out, threads=1)

    thread = threading.Thread(target=compute)
    thread.start()
    end = time.monotonic() + PATIENCE
    missing = [True, True]
    while missing != [False, True] and time.monotonic() < end:
        missing = np.isnan(out[places, 0]).tolist()  # one read of both, which no other Python thread interrupts
        time.sleep(1e-4)
    ended.set()
    thread.join()
    assert missing == [False, True]


def test_nan_stays_in_its_state() -> None:
    f = swinging(5)
    x, y = RNG.standard_normal((2, 20, 5))
    reference = f(x, y)
    x[7] = np.nan
    result = f(x, y)
    assert np.isnan(result[7]).all()
    np.testing.assert_array_equal(np.delete(result, 7, 0), np.delete(reference, 7, 0))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda f: f(np.zeros(3), np.zeros(4)), ValueError, ["swing", "x", "(..., 4)", "(3,)"]),
        (lambda f: f(np.zeros(4), np.zeros((9, 5))), ValueError, ["swing", "y", "(..., 4)", "(9, 5)"]),
        (lambda f: f(np.zeros(4), 1.0), ValueError, ["y", "()"]),
        (lambda f: f(np.zeros(4)), TypeError, ["swing(x, y)", "x, y"]),
        (lambda f: f(np.zeros(4), np.zeros(4), np.zeros(4)), TypeError, ["3 arguments"]),
        (lambda f: f(np.zeros(4), z=np.zeros(4)), TypeError, ["z"]),
        (lambda f: f(np.zeros(4), np.zeros(4, complex)), TypeError, ["y", "complex"]),
        (lambda f: f(np.zeros(4), ["a"] * 4), TypeError, ["y"]),
        (lambda f: f(np.zeros((2, 4)), np.zeros((3, 4))), ValueError, ["broadcast", "x (2, 4)", "y (3, 4)"]),
        (lambda f: f(np.zeros(4), np.zeros(4), out=np.zeros(5)), ValueError, ["out", "(4,)", "(5,)"]),
        (lambda f: f(np.zeros(4), np.zeros(4), threads=0), ValueError, ["threads"]),
    ],
)
@pytest.mark.parametrize("execution", ["traced", "interpreted"])
def test_errors_name_the_argument(execution: str, call: Any, error: type[Exception], words: list[str]) -> None:
    f = swinging(4, execution)
    f(np.zeros(4), np.zeros(4))
    with pytest.raises(error) as caught:
        call(f)
    for word in words:
        assert word in str(caught.value)


def test_pickling_keeps_the_function() -> None:
    f = swinging(4)
    x, y = RNG.standard_normal((2, 4))
    before = f(x, y)
    again = pickle.loads(pickle.dumps(f))
    assert again.signature == f.signature == "(4),(4)->(4)"
    np.testing.assert_array_equal(again(x, y), before)


def test_one_state_takes_the_short_way() -> None:
    f = swinging(4)
    f(np.zeros(4), np.zeros(4))
    if layouts_known():
        assert type(type(f).__call__).__name__ == "wrapper_descriptor"  # of Python's PyVectorcall_Call
    out = np.empty(4)
    assert f(np.ones(4), np.ones(4), out=out) is out
    np.testing.assert_array_equal(out, f(np.ones((1, 4)), np.ones((1, 4)))[0])


def test_references_are_counted_right() -> None:
    f = swinging(4)
    x, out = np.zeros(4), np.zeros(4)
    f(x, x)
    before = sys.getrefcount(x), sys.getrefcount(out)
    for _ in range(100):
        f(x, x, out=out)
        f(x, x)
        with pytest.raises(ValueError, match="x must have"):
            f(x[:3], x)
    assert (sys.getrefcount(x), sys.getrefcount(out)) == before


def test_an_interpreted_function_agrees() -> None:
    x, y = RNG.standard_normal((2, 3, 4))
    np.testing.assert_allclose(swinging(4, "interpreted")(x, y), swinging(4)(x, y), rtol=1e-14)


def test_a_function_over_the_node_budget_keeps_its_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("featherweight.engine.program_trace.NODE_BUDGET", 20)
    assert swinging(50, "auto").execution == "rolled"
    assert swinging(1, "auto").execution == "traced"
    assert swinging(50, "auto").operations == swinging(50).operations


@pytest.mark.parametrize("count", [30, 31])
def test_whether_a_trace_is_within_a_budget_does_not_depend_on_traces_made_before(count: int) -> None:
    """Otherwise the algorithm that a function uses would depend on the cache."""
    program = swinging(count, "traced").program
    nodes = len(ProgramTrace(program, bounded=True).trace.graph)
    for budget, fits in ((nodes - 1, False), (nodes, True)):
        fresh, known = (ProgramTrace(program, bounded=True) for _ in range(2))
        assert fresh.within(budget) == fits
        assert known.operations.flops > 0  # of the whole trace
        assert known.within(budget) == fits
        assert ProgramTrace(program, bounded=True).within(budget) == fits


def test_small_traces_are_compared_whole() -> None:
    """A cheaper algorithm is chosen even if most nodes of its trace are inputs and dead."""

    def short(x: Any, out: Any) -> None:
        out[0] = x[0] * x[0]

    def shorter(x: Any, out: Any) -> None:
        for a in x:
            out[0] = a * a
        out[0] = x[0]

    inputs, outputs = (Input("x", (50,)),), (Output("out", (1,)),)
    kernels = {f.__name__: CompiledFunction(KernelProgram("f", f, (), inputs, outputs), "traced") for f in (short, shorter)}
    assert cheapest(kernels).algorithm == "shorter"


def test_algorithms_over_the_node_budget_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("program_trace", "execution"):
        monkeypatch.setattr(f"featherweight.engine.{module}.NODE_BUDGET", 200)
    steps = 0

    def short(x: Any, out: Any) -> None:
        out[0] = x[0] * x[0]

    def long(x: Any, out: Any) -> None:
        nonlocal steps
        for _ in range(10_000):
            x[0] = x[0] * x[1]
            steps += 1
        out[0] = x[0]

    inputs, outputs = (Input("x", (2,)),), (Output("out", (1,)),)
    ways = {f.__name__: CompiledFunction(KernelProgram("f", f, (), inputs, outputs), "traced") for f in (short, long)}
    f = cheapest(ways)
    assert "algorithm" in inspect.signature(f).parameters and f.algorithm == "short"
    assert set(f.candidates) == {"short"} and set(f.alternatives) == {"short", "long"}
    assert steps < 1000
    assert cheapest({"long": ways["long"], "longer": ways["long"]}).candidates == {} and steps < 1000


@pytest.fixture(params=[16, 32])
def narrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Set the vector length of other processors; return it in bytes."""
    real = host()
    monkeypatch.setattr("featherweight.engine.backends.llvm.backend.host", lambda: real._replace(vector_bytes=request.param))
    return int(request.param)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_narrower_vectors_give_the_same_bits(narrow: int, n: int, dtype: type) -> None:
    wide = CompiledFunction(swinging(n).program, "traced")
    narrow_one = swinging(n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("featherweight.engine.backends.llvm.backend.host", host)
        x, y = RNG.standard_normal((2, 70, n)).astype(dtype)
        wanted = wide(x, y)
    for states in (1, 2, 3, 7, 64, 70):
        out = guarded(np.zeros((states, n), dtype))
        narrow_one(guarded(x[:states]), guarded(y[:states]), out=out)
        np.testing.assert_array_equal(out, wanted[:states])
    np.testing.assert_array_equal(narrow_one(x[3], y[3]), wanted[3])


@pytest.mark.parametrize(
    ("triple", "cpu", "lanes"), [("aarch64-unknown-linux-gnu", "neoverse-n1", 2), ("x86_64-unknown-linux-gnu", "haswell", 4)]
)
@pytest.mark.parametrize("precision", ["double", "float"])
def test_code_for_other_processors_calls_no_library_for_its_arithmetic(
    triple: str, cpu: str, lanes: int, precision: str
) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    program = swinging(9).program
    (ir,) = emit_loop(trace(program.flat, [9, 9]), program.shapes, Type(precision, lanes * (1 + (precision == "float"))), True)
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2)
    assembly = machine.emit_assembly(llvm.parse_assembly(ir))
    assert "fmla" in assembly or "vfmadd" in assembly
    called = set(re.findall(r"\b(?:call\w*|bl)\s+([A-Za-z_][\w.]*)", assembly))
    beside = {"malloc", "free", "feclearexcept", "sin", "cos"}
    assert all(name.startswith("fw.") or name in beside for name in called), called


def test_without_fused_multiply_add_products_are_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    real = host()
    monkeypatch.setattr("featherweight.engine.backends.llvm.backend.host", lambda: real._replace(fma=False))
    x, y = RNG.standard_normal((2, 30, 7))
    np.testing.assert_allclose(swinging(7)(x, y), expected(x, y), rtol=0, atol=1e-14)


@pytest.mark.parametrize("execution", ["traced", "interpreted"])
def test_single_precision_overflows_to_infinity_without_a_word(execution: str) -> None:
    f = swinging(3, execution)
    x, y = np.full(3, 1e20, np.float32), np.full(3, -1e20, np.float32)
    np.testing.assert_array_equal(f(x, y), np.full(3, np.inf, np.float32))
    out = np.zeros(3, np.float32)
    assert (f(x, y, out=out) == np.inf).all()


def inverses(x: Any, out: Any) -> None:
    for i in range(2):
        out[i] = 1.0 / x[i] + x[0] / x[1]


@pytest.mark.parametrize("execution", ["traced", "interpreted", "rolled"])
def test_division_by_zero_gives_infinity_and_nan_in_every_execution(execution: str) -> None:
    f = CompiledFunction(KernelProgram("inverses", inverses, (), (Input("x", (2,)),), (Output("out", (2,)),)), execution)
    np.testing.assert_array_equal(f([0.0, 2.0]), [np.inf, 0.5])
    np.testing.assert_array_equal(f([[0.0, 0.0], [1.0, -0.0], [2.0, 4.0]]), [[np.nan] * 2, [-np.inf] * 2, [1.0, 0.75]])


@pytest.mark.parametrize("execution", ["traced", "interpreted", "rolled"])
def test_results_of_single_precision_are_the_same_in_arrays_of_double(execution: str) -> None:
    f = swinging(3, execution)
    x, y = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
    out = np.zeros((5, 3))
    f(x, y, out=out)
    np.testing.assert_array_equal(out, f(x, y))


def test_functions_that_are_compared_stay_as_they_are() -> None:
    two, three = swinging(2, "interpreted"), swinging(3, "interpreted")
    before = [(f.algorithm, f.alternatives) for f in (two, three)]
    chosen = cheapest({"long": three, "short": two})
    assert (
        [(f.algorithm, f.alternatives) for f in (two, three)]
        == before
        == [("swing", {"swing": two}), ("swing", {"swing": three})]
    )
    assert chosen is not two and chosen.algorithm == "short" and list(chosen.alternatives) == ["long", "short"]
    assert chosen.alternatives["short"] is chosen and chosen.alternatives["long"].algorithm == "long"
    assert chosen.trace is two.trace  # created once
    again = cheapest({"one": two, "other": three})
    assert (chosen.algorithm, again.algorithm) == ("short", "one")
