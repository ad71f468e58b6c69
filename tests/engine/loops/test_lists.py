"""Tests of lists and named tuples in compiled kernels: bits of plain Python if products are not fused; memory is freed."""

from __future__ import annotations

import ctypes
import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from featherweight.engine.function import CompiledFunction
from featherweight.engine.loops.kernels import CompiledKernel, KernelError
from featherweight.engine.program import Input, KernelProgram, Output
from featherweight.spatial import IDENTITY, ZERO_FORCE, Force, Motion, Transform, Vec3

RNG = np.random.default_rng(0)


class Pair(NamedTuple):
    """A number, and whether it is positive."""

    value: float
    positive: bool

    def __add__(a, b: Pair) -> Pair:  # type: ignore[override]
        return Pair(a.value + b.value, a.value + b.value > 0.0)


def agrees(kernel: Any, *args: Any) -> Any:
    """Return the result of a kernel and its output arrays, after a comparison of compiled code with plain Python."""
    compiled = CompiledKernel(kernel, fused=False)
    copies = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
    result = compiled(*args)
    assert result == kernel(*copies)
    for x, y in zip(args, copies, strict=True):
        if isinstance(x, np.ndarray):
            np.testing.assert_array_equal(x, y)
    return result


def sums(x: Any, out: Any) -> None:
    n = len(x)
    total = [0.0] * (n + 1)
    for i in range(n):
        total[i + 1] = total[i] + x[i]
    squares = [y * y for y in total]
    ends = [total[-1], squares[-1], 3]
    steps = [i * i for i in range(2, n)]
    for i in range(n):
        out[i] = squares[i] * ends[0] - ends[1] + ends[2]
        if i < n - 2:
            out[i] += steps[i]


def test_lists_of_numbers() -> None:
    for n in (2, 3, 40, 3000):
        agrees(sums, RNG.standard_normal(n), np.zeros(n))


def tables(x: Any, out: Any) -> int:
    n = len(x)
    A = [[0.0] * n for _ in range(n)]
    B = [[x[i] * x[j] - i for j in range(n)] for i in range(n)]
    C = [[[k] * 2 for k in range(3)] for _ in x]
    for i in range(n):
        row = A[i]
        for j in range(i):
            row[j] = B[i][j] + C[j][2][1]
    chosen = A[n - 1]
    for j in range(n):
        out[j] = chosen[j]
    return len(A) * len(A[0]) + len(C[0])


def test_lists_of_lists_are_tables_whose_rows_are_written_in_place() -> None:
    for n in (1, 5, 60):
        assert agrees(tables, RNG.standard_normal(n), np.zeros(n)) == n * n + 3


def carried(parent: Any, x: Any, out: Any) -> None:
    n = len(parent)
    X = [IDENTITY] * n
    f = [ZERO_FORCE] * n
    for i in range(n):
        c, s = math.sqrt(1.0 - x[i] * x[i]), x[i]
        X[i] = IDENTITY._replace(turn=(c, s), base=Vec3(x[i], 1.0, 0.0 - x[i]))
        f[i] = Force(Vec3(x[i], 2.0, 0.5), Vec3(1.0, x[i], 0.25)).replaced(i % 6, 3.0)
    for i in range(n - 1, -1, -1):
        p = parent[i]
        if p >= 0:
            f[p] = f[p] + x[i] * X[i].force_to_parent(f[i])
    moved = motions(X, f)
    for i in range(n):
        out[i, 0] = f[i].component(i % 6)
        out[i, 1] = f[i].power(moved[i])
        out[i, 2] = total(moved[i])


def motions(X: list[Transform], f: list[Force]) -> list[Motion]:
    m = [Motion(g.lin, g.ang) for g in f]
    for i in range(1, len(X)):
        m[i] = X[i] @ m[i - 1] - m[i]
    return m


def total(m: Motion) -> float:
    return sum_of(m.ang) + sum_of(m.lin)


def sum_of(v: Vec3) -> float:
    parts = [v.x, v.y, v.z]
    whole = 0.0
    for k in range(len(parts)):
        whole += parts[k]
    return whole


def test_lists_of_spatial_quantities_with_operators_and_methods() -> None:
    for n in (1, 7, 500):
        parent = np.array([int(RNG.integers(-1, i)) if i else -1 for i in range(n)])
        agrees(carried, parent, RNG.uniform(-0.1, 0.1, n), np.zeros((n, 3)))


def truths(x: Any) -> int:
    pairs = [Pair(0.0, False)] * len(x)
    marked = [False] * len(x)
    for i in range(len(x)):
        pairs[i] = pairs[i - 1] + Pair(x[i], x[i] > 0.0) if i > 0 else Pair(x[i], x[i] > 0.0)
        marked[i] = pairs[i].positive
    count = 0
    for p in pairs:
        count += p.positive
    for m in marked:
        count += 100 * m
    return count


def test_lists_of_truth_values_and_of_tuples_with_them() -> None:
    agrees(truths, RNG.standard_normal(50))


def last_of(x: Any, n: int) -> float:
    """Return a number from a list that is kept from one iteration to the next."""
    before = [0.0] * 3
    for i in range(n):
        now = [before[k] + x[k] * i for k in range(3)]
        before = now
    return before[0] + before[1] - before[2]


def test_a_list_that_outlives_a_round_is_kept() -> None:
    agrees(last_of, RNG.standard_normal(3), 200)


def found(x: Any, n: int) -> float:
    """Return a number from a list that is created in a loop and read after it."""
    k = 0
    while True:
        row = [x[k] + j for j in range(n)]
        k += 1
        if k == len(x):
            break
    other = [0.0] * n
    other[0] = 1.0
    return row[0] + row[n - 1] + other[0]


def test_a_list_that_is_read_behind_a_loop_is_kept() -> None:
    agrees(found, RNG.standard_normal(9), 4)


def worked(n: int, times: int) -> float:
    result = 0.0
    for i in range(times):
        room = [1.0] * n
        room[i % n] = 2.0
        result += within(n, i) + room[n - 1]
    return result


def within(n: int, i: int) -> float:
    room = [0.5] * n
    return room[i % n]


def test_memory_is_given_back_after_each_round_and_each_call() -> None:
    resource: Any = pytest.importorskip("resource")
    kernel = CompiledKernel(worked, fused=False)
    assert kernel(100, 7) == worked(100, 7)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kernel(20_000, 10_000)  # 3.2 GB in total
    for _ in range(2000):
        kernel(20_000, 1)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB


def as_long(n: int) -> float:
    room = [0.0] * n
    return room[n - 1]


def in_another(n: int) -> float:
    whole = 1.0
    for _ in range(3):
        whole += as_long(n)
    return whole


@pytest.mark.parametrize("kernel", [as_long, in_another])
def test_where_there_is_no_memory_an_error_says_so(kernel: Any) -> None:
    compiled = CompiledKernel(kernel)
    with pytest.raises(MemoryError, match="lists"):
        compiled(1 << 50)
    assert compiled(1000) == kernel(1000)


def doubled(length: int, x: Any, out: Any) -> None:
    room = [0.0] * length
    room[-1] = x[0]
    out[0] = 2.0 * room[length - 1]
    j = -1
    for i in range(2):
        out[j] = x[i] + out[0]  # the last element
        j -= 1


def test_large_functions_have_an_address_and_say_where_memory_ends() -> None:
    arrays = (Input("x", (2,)),), (Output("out", (3,)),)
    for length in (10, 1 << 50):
        f = CompiledFunction(KernelProgram("doubled", doubled, (length,), *arrays), "rolled")
        x, out = np.array([3.0, 4.0]), np.zeros(3)
        address = f.address
        assert address is not None
        places = (ctypes.c_void_p * 2)(x.ctypes.data, out.ctypes.data)
        ended = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(address)(ctypes.addressof(places))
        if length == 10:
            wanted = [0.0] * 3
            doubled(length, [3.0, 4.0], wanted)
            assert ended == 0 and wanted == [6.0, 10.0, 9.0]
            np.testing.assert_array_equal(out, wanted)
            np.testing.assert_array_equal(f(x), wanted)
        else:
            assert ended == 1 and np.isnan(out).all()
            with pytest.raises(MemoryError):
                f(x)


def of_lists(n: int) -> float:
    A = [[0.0] * 3] * n
    return A[0][0]


def unlike(n: int) -> float:
    A = [[0.0] * k for k in range(n)]
    return A[0][0]


def chosen(x: Any) -> float:
    A = [y for y in x if y > 0.0]
    return A[0]


def mixed(n: int) -> float:
    A = [n, (1.0, 2.0)]
    return A[0]  # type: ignore[return-value]


def wrong_item(n: int) -> float:
    A = [0] * n
    A[0] = 0.5  # type: ignore[call-overload]
    return A[0]


@pytest.mark.parametrize(
    ("kernel", "argument", "words"),
    [
        (of_lists, 3, r"or of lists, times a number; a kernel has \[x\] \* n"),
        (unlike, 3, "the name 'k' is not defined"),
        (chosen, np.ones(3), "a comprehension .* with a condition; write a loop"),
        (mixed, 3, "a list of int and .*; items need one type"),
        (wrong_item, 3, "a float written into an array of int64"),
    ],
)
def test_lists_outside_the_subset_are_refused_with_their_line(kernel: Any, argument: Any, words: str) -> None:
    with pytest.raises(KernelError, match=rf"test_lists.py:\d+: in {kernel.__name__}: .*{words}"):
        CompiledKernel(kernel)(argument)
