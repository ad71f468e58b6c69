"""Tests of each construct of kernels, compiled and in plain Python: equal bits, and errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from featherweight.array_types import Integers, Matrix, Vector
from featherweight.engine.loops import kernels
from featherweight.engine.loops.kernels import (
    CompiledKernel,
    KernelError,
    as_matrix,
    compiled,
    subtract_multiples,
    subtract_product,
    sum_of_products,
)

PAIR = (0.5, -3.0)
WEIGHTS = (0.1, 0.2, 0.7, 1.5)
DEEP = (("a", 1), ("b", 2))


class Point(NamedTuple):
    x: float
    y: float

    @property
    def square(self) -> float:
        return self.x * self.x + self.y * self.y

    def scaled(self, s: float) -> Point:
        return Point(s * self.x, s * self.y)

    def __add__(self, other: Point) -> Point:  # type: ignore[override]
        return Point(self.x + other.x, self.y + other.y)

    def __matmul__(self, other: Point) -> float:
        return self.x * other.x + self.y * other.y

    def __neg__(self) -> Point:
        return Point(-self.x, -self.y)

    def __rmul__(self, s: float) -> Point:  # type: ignore[override]
        return Point(s * self.x, s * self.y)


class Body(NamedTuple):
    mass: float
    at: Point
    numbers: Any
    spare: Any = None
    count: int = 2  # type: ignore[assignment]


def alike(function: Callable[..., Any], *args: Any) -> Any:
    """Return the result of both executions, after a comparison of results and written arrays; `args` are copied for each."""
    made = CompiledKernel(function, fused=False)
    given = [copied(args) for _ in range(2)]
    results = function(*given[0]), made(*given[1])
    assert same(*results), results
    assert same(*given), given
    return results[1]


def copied(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.copy()
    if isinstance(x, tuple):
        items = tuple(map(copied, x))
        return type(x)(*items) if hasattr(x, "_fields") else items
    return x


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return bool(a.tobytes() == b.tobytes())
    if not isinstance(a, (int, float)):
        return bool(a == b)
    return bool(np.array(float(a)).tobytes() == np.array(float(b)).tobytes() or (a != a and b != b))


# --- numbers


def arithmetic(a: float, b: float, i: int, j: int) -> tuple[float, ...]:
    return (
        a + b * a - i, a / b, -a, +b, abs(a), abs(i), min(a, b), max(a, b, 0.5), min(i, j), float(i), a * 2, i / j,
        float(i // j), float(i % j), float(i & j), float(i | j), float(i ^ j), float(i << 2), float(i >> 1), float(~i),
        math.sqrt(abs(a)), float(math.floor(a)), float(math.ceil(b)), float(int(a)), float(bool(i)), np.floor(a), np.ceil(b),
    )  # fmt: skip


@pytest.mark.parametrize("a", [1.5, -2.25, 0.1])
@pytest.mark.parametrize("i", [7, -7, 4])
@pytest.mark.parametrize("j", [3, -3, 1, -1])
def test_arithmetic(a: float, i: int, j: int) -> None:
    alike(arithmetic, a, 0.7, i, j)


def powers(x: float, i: int) -> tuple[float, ...]:
    return x**1, x**0.5, float(i**3), float(i**0), x**0


def test_powers() -> None:
    alike(powers, 1.7, -3)
    third = compiled(lambda x: (x**3, x**5, x**-2, x**2))
    x = 1.1
    assert third(x) == pytest.approx((x**3, x**5, x**-2, x**2), rel=1e-15)


def test_division_by_zero_and_whole_numbers_that_wrap() -> None:
    divide = compiled(lambda a, b: a / b)
    assert divide(1.0, 0.0) == math.inf and divide(-1.0, 0.0) == -math.inf and math.isnan(divide(0.0, 0.0))
    assert compiled(lambda i: i * 3)(2**62) == 3 * 2**62 - 2**64
    whole = compiled(lambda i, j: (i // j, i % j))
    assert whole(-(2**63), -1) == (-(2**63), 0)  # no processor exception
    whole(5, 0)


def compared(a: float, b: float, i: int) -> tuple[bool, ...]:
    return (
        a < b, a <= b, a == b, a != b, not a > b, 0.0 <= a < b, i == 1, i in (1, 2, 3), i not in (1, 2), a < b and b > 0.0,
        a < b or b < 0.0, (a, i) == (1.0, 1), (i > 0) & (a > 0.0), (i > 0) | (a > 0.0), (i > 0) ^ (a > 0.0), (a > 0.0) + i > 1,
    )  # fmt: skip


@pytest.mark.parametrize("a", [1.0, -1.0, math.nan])
@pytest.mark.parametrize("b", [1.0, 2.0, math.nan])
def test_comparisons(a: float, b: float) -> None:
    for i in (0, 1, 2):
        alike(compared, a, b, i)


def of_floats(a: float, b: float) -> tuple[float, ...]:
    return (
        float(math.isfinite(a)), float(math.isnan(a)), float(math.isinf(a)), np.minimum(a, b), np.maximum(a, b), min(a, b),
        max(a, b), a * math.inf, math.pi,
    )  # fmt: skip


@pytest.mark.parametrize("a", [1.0, math.inf, -math.inf, math.nan, 0.0, -0.0])
@pytest.mark.parametrize("b", [1.0, math.inf, math.nan, -0.0])
def test_infinities_and_nan(a: float, b: float) -> None:
    alike(of_floats, a, b)


def test_sines_are_those_of_the_engine() -> None:
    """Check to a unit in the last place of the library's."""
    both = compiled(lambda x: (math.sin(x), math.cos(x), math.tan(x)))
    for x in np.random.default_rng(0).uniform(-20.0, 20.0, 50):
        np.testing.assert_allclose(both(float(x)), (math.sin(x), math.cos(x), math.tan(x)), rtol=1e-15)
    assert all(map(math.isnan, both(math.inf)))


# --- fused products


def test_products_are_fused_with_sums() -> None:
    """Check bits against exact rationals that are rounded once."""
    from fractions import Fraction

    def sums(a: float, b: float, c: float, d: float) -> tuple[float, ...]:
        x = c
        x += a * b
        y = c
        y -= a * b
        return a * b + c, c + a * b, c - a * b, a * b - c, a * b + c * d, a * b - c * d, x, y

    rng = np.random.default_rng(1)
    fused, apart = compiled(sums), CompiledKernel(sums, fused=False)
    differ = 0
    for row in rng.standard_normal((50, 4)):
        a, b, c, d = map(float, row)
        x, y, z, w = map(Fraction, (a, b, c, d))
        once = [float(s * x * y + t * z) for s, t in ((1, 1), (-1, 1), (1, -1))]
        product = float(x * y)
        pair = [float(s * z * w + Fraction(product)) for s in (1, -1)]
        assert fused(a, b, c, d) == (once[0], once[0], once[1], once[2], *pair, once[0], once[1])
        assert apart(a, b, c, d) == sums(a, b, c, d)
        differ += fused(a, b, c, d) != apart(a, b, c, d)
    assert differ > 10


# --- statements


def branches(a: float, n: int) -> float:
    total: Any = 0  # becomes a float
    if a > 0.0:
        total += 1
    elif a == 0.0:
        total = 2
    else:
        total -= a
    x = y = 3.0
    x, y = y + 1.0, x
    while True:
        n -= 1
        if n < 0:
            break
        if n % 2:
            continue
        total += x * n
    return total if n < -1 else total - y


def test_branches_and_while() -> None:
    for a in (1.5, 0.0, -2.0):
        for n in (0, 1, 5):
            alike(branches, a, n)


def ranges(n: int, out: Vector) -> int:
    count = 0
    for i in range(n):
        for j in range(i, n, 2):
            out[count % len(out)] += i * j
            count += 1
    for i in range(n - 1, -1, -1):
        out[i % len(out)] -= i
    for i in reversed(range(2, n)):
        if i == 3:
            continue
        if i == 2:
            break
        out[0] = i
    last = -1
    for last in range(3):
        count += last
    for i in range(4):
        last += i
        i += 5
    return count + last


def test_ranges() -> None:
    for n in (0, 1, 2, 7):
        alike(ranges, n, np.zeros(5))


def over_items(values: Vector, matrix: Matrix, point: Any) -> float:
    total = 0.0
    for x in values:
        total += x
    for row in matrix:
        total += row[0] * row[1]
    for k, x in enumerate(point):
        if k == 1:
            continue
        total += k + x
    for a, b in zip(point, WEIGHTS, strict=False):
        if a > 1e3:
            break
        total -= a * b
    for x in reversed(point):
        total = 0.5 * total + x
    for name, k in DEEP:
        if name == "b":
            total += k
    return total


def test_loops_over_arrays_and_tuples() -> None:
    rng = np.random.default_rng(0)
    alike(over_items, rng.standard_normal(5), rng.standard_normal((3, 2)), (1.0, 2.0, 3.0))
    alike(over_items, rng.standard_normal(0), rng.standard_normal((3, 2)), (2e3, 2.0, 3.0))


def early(x: Vector, wanted: float) -> tuple[int, float]:
    for i in range(len(x)):
        if x[i] == wanted:
            return i, x[i]
    return -1, 0.0


def test_early_returns() -> None:
    alike(early, np.arange(5.0), 3.0)
    alike(early, np.arange(5.0), 3.5)


# --- arrays


def arrays(a: Matrix, i: int, k: Integers) -> float:
    row = a[i]
    row[0], row[1] = row[1], row[0]
    part = a[1:3]
    part[0, 1] += 5.0
    inner = a[i, 1:]
    inner[:] = 2.0
    a[0] = 0.5
    a[0, 0:1] = a[1, 1:2]
    x, y, z = a[2]
    k[-1] = len(part) + part.shape[1] + len(a[:100]) + len(a[5:2])
    return x + y * z + a[-1, -2] + len(inner) + k[0] + a[k[0], k[1]]


def test_arrays() -> None:
    alike(arrays, np.arange(12.0).reshape(4, 3), 2, np.array([1, 2, 0]))


KINDS = ("float64", "float32", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "bool")


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_arrays(kind: str) -> None:
    def double(x: Any, y: Any) -> float:
        total = 0.0
        for i in range(len(x)):
            total += x[i]
            y[i] = x[i]
        return total

    values = np.array([0, 1, 100, 255]).astype(kind) if kind != "bool" else np.array([True, False, True, True])
    x, y = values, np.zeros_like(values)
    assert compiled(double)(x, y) == float(x.astype(float).sum())
    np.testing.assert_array_equal(x, y)


def deep(x: Any) -> float:
    total = 0.0
    for i in range(x.shape[0]):
        for l in range(x.shape[3]):
            total += x[i, 1, 0, l, 1] * (i + 2 * l)
        x[i, 0, 1][0, 1] = total
    return total


def test_five_axes() -> None:
    alike(deep, np.random.default_rng(0).standard_normal((2, 3, 2, 3, 2)))


def matrices(x: Vector, m: int) -> float:
    a = as_matrix(x, m, 2)
    a[1, 0] = 7.0
    subtract_multiples(x, 8, 16, 8, 8, (0.5, 2.0))
    subtract_multiples(x, 24, 0, 8, 8, (0.5, 2.0), True)
    return a[m - 1, 1] + sum_of_products(x, 0, x, 8, 16) + sum_of_products(x, 1, x, 2, 8 * (m - m))


def test_views_as_matrices_and_multiples() -> None:
    alike(matrices, np.random.default_rng(0).standard_normal(40), 3)


def product(x: Vector, rows: int, length: int, count: int) -> None:
    begin = rows * (length + 1)
    subtract_product(x, (0, length + 1), (begin, length), (begin + count * length, 2, 3), (rows, length, count))


def product_from_zero(x: Vector, rows: int, length: int, count: int) -> None:
    begin, last = rows * length, rows * length + (count - 1) * length
    subtract_product(x, (0, length), (last, -length), (begin + count * length, 1, rows), (rows, length, count), True)


@pytest.mark.parametrize("function", [product, product_from_zero])
@pytest.mark.parametrize("rows", [0, 1, 2, 5, 6, 9, 13, 14])
def test_products_of_several_rows(function: Callable[..., None], rows: int) -> None:
    for length, count in ((8, 1), (24, 5), (16, 0), (0, 3)):
        alike(function, np.random.default_rng(rows).standard_normal(1000), rows, length, count)


# --- tuples, named tuples, constants


def points(p: Point, q: Point, i: int) -> tuple[float, ...]:
    r = p + q.scaled(2)
    s = r._replace(x=1.0)
    t = Point(y=2, x=1)
    u = (p, q)[1] if i > 0 else -p
    both = (p.x, *q)
    return p @ q, r.square, s.x + s.y, t.y, u.x, PAIR[i], WEIGHTS[i + 1], both[2], (2.0 * q).y, p[0], both[:2][1], q[-1]


def test_named_tuples_with_operators() -> None:
    for i in (0, 1):
        alike(points, Point(0.3, -1.5), Point(2.5, 0.25), i)


class Long(NamedTuple):
    """A tuple with more words than functions receive in registers."""

    point: Point
    numbers: Vector
    flag: bool
    at: int
    pairs: tuple[float, float, float, float, float, float, float, float]
    inner: tuple[float, float, float, float, float, float, float, float]


def sum_of_pairs(pairs: Any) -> float:
    return pairs[0] + 2.0 * pairs[7]


def passed_on(x: Long, other: Long) -> float:
    return sum_of_long(x) + 2.0 * sum_of_long(other) + sum_of_pairs(x.inner)


def sum_of_long(x: Long) -> float:
    return x.point.x + 3.0 * x.pairs[7] + (x.numbers[x.at] if x.flag else x.inner[1])


def replaced(x: Long, turns: int) -> Long:
    """Replace the argument in some branches only."""
    if turns > 1:
        x = x._replace(flag=not x.flag, at=turns)
    return x


def turned(x: Long) -> Long:
    return Long(
        Point(x.pairs[0], x.point.x), x.numbers, not x.flag, x.at, (*x.inner[1:], x.point.y), (*x.pairs[2:], x.point.x, 2.0)
    )


def long_tuples(x: Long, turns: int) -> tuple[float, float, float, float, bool]:
    kept, total, same = x._replace(point=Point(4.0, 5.0)), 0.0, x
    for i in range(turns):
        step = replaced(x, i)
        if i % 2 == 1:
            same = step
        again, old = step, x
        total += passed_on(again, same) + sum_of_long(kept._replace(at=i % 2))
        x = step._replace(pairs=(*step.pairs[1:], total))
        total += passed_on(old, x)
        x = turned(x)
        total += passed_on(x, turned(turned(x)))
    return total, sum_of_long(x), sum_of_long(same), sum_of_long(kept), x.flag


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_long_tuples(turns: int) -> None:
    eight = tuple(np.linspace(0.1, 0.8, 8).tolist())
    alike(long_tuples, Long(Point(0.3, -1.5), np.arange(9.0), True, 3, eight, eight[::-1]), turns)


def body(b: Body) -> float:
    if b.spare is None:
        return b.mass * b.at.x + b.numbers[b.count]
    return b.spare[0]


def test_fields_that_are_none_are_left_out() -> None:
    numbers = np.arange(4.0)
    alike(body, Body(2.0, Point(0.5, 1.0), numbers))
    alike(body, Body(2.0, Point(0.5, 1.0), numbers, np.array([5.0])))


def with_function(f: Any, x: float) -> float:
    return f(x, step=2.0) + named(x)


def named(x: float, step: float = 1.0, *more: float) -> float:
    return x * step + len(more)


def test_functions_as_arguments_defaults_and_names() -> None:
    alike(with_function, named, 1.5)
    alike(lambda x: named(x, 3.0, 1.0, 2.0), 1.5)
    assert compiled(named)(2.0) == 2.0  # Python's defaults


def shared(i: int, kind: str) -> int:
    if kind == "twice":
        i += i
    return i


def test_strings_are_known_at_compilation() -> None:
    assert alike(shared, 3, "twice") == 6
    assert alike(shared, 3, "once") == 3


def test_compiled_functions_call_others() -> None:
    inner = compiled(lambda x: 2.0 * x)
    outer = compiled(lambda x: inner(x) + 1.0)
    assert outer(3.0) == 7.0
    assert inner.python(3.0) == 6.0


def order(x: Vector) -> float:
    def_value = x[0] + (grown(x) if x[1] > 0.0 else 1.0) + x[0]
    return def_value * 10.0 + grown(x) * x[0]


def grown(x: Vector) -> float:
    x[0] += 1.0
    return x[0]


def test_operands_are_evaluated_from_left_to_right() -> None:
    alike(order, np.array([1.0, 2.0]))
    alike(order, np.array([1.0, -2.0]))


# --- arguments from Python


def test_numbers_become_what_annotations_say() -> None:
    def half(x: float) -> float:
        return x / 2

    assert compiled(half)(3) == 1.5
    assert compiled(half)(np.float64(3.0)) == 1.5
    assert compiled(half)(True) == 0.5


def test_arguments_that_are_refused() -> None:
    first = compiled(lambda x: x[0])
    with pytest.raises(ValueError, match="C-contiguous"):
        first(np.zeros((3, 2)).T[0])
    with pytest.raises(ValueError, match="byte order"):
        first(np.zeros(2, ">f8"))
    with pytest.raises(KernelError, match="complex128"):
        first(np.zeros(2, complex))
    with pytest.raises(KernelError, match="not an argument of kernels"):
        first([1.0])
    with pytest.raises(OverflowError, match="64 bits"):
        compiled(lambda i: i)(2**63)
    with pytest.raises(TypeError):
        first()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        first(x=np.zeros(1))
    with pytest.raises(KernelError, match="returns array"):
        compiled(lambda x: x)(np.zeros(1))


def test_views_of_read_only_and_subclassed_arrays() -> None:
    first = compiled(lambda x: x[0])
    x = np.arange(3.0)
    x.flags.writeable = False
    assert first(x) == 0.0

    class Own(np.ndarray):
        pass

    assert first(np.arange(3.0).view(Own)) == 0.0


# --- refusals, which name file and line


def a_list(x: float) -> float:
    y = {x: 1.0}
    return y[x]


def unset(x: float) -> float:
    if x > 0.0:
        y = 1.0
    return y


def two_types(x: float) -> float:
    y = (1.0, 2.0)
    if x > 0.0:
        y = x  # type: ignore[assignment]
    return y[0]


def wrong_rank(x: Vector) -> float:
    return x[0, 1]


def index_by_float(x: Vector) -> float:
    return x[0.5]  # type: ignore[call-overload]


def float_into_ints(k: Integers) -> None:
    k[0] = 0.5


def recursive(n: int) -> int:
    return 1 if n == 0 else recursive(n - 1)


def without_end(x: float) -> float:  # type: ignore[return]  # noqa: RET503
    if x > 0.0:
        return 1.0


def unknown_function(x: float) -> float:
    return math.gamma(x)


def assertion(x: float) -> float:
    assert x > 0.0
    return x


def takes_vector(x: Vector) -> float:
    return x[0]


def gives_matrix(x: Matrix) -> float:
    return takes_vector(x)  # type: ignore[arg-type]


def wrong_result(x: float) -> int:
    return x  # type: ignore[return-value]


def takes_whole(i: int) -> int:
    return i


def gives_float(x: float) -> int:
    return takes_whole(x)  # type: ignore[arg-type]


def variable_power(x: float, n: float) -> float:
    return x**n


def counted_by_variable(n: int) -> int:
    total = 0
    for i in range(0, 10, n):
        total += i
    return total


def zipped(a: Any, b: Any) -> float:
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total


def enumerated(a: Any) -> float:
    total = 0.0
    for k, x in enumerate(a, start=1):
        total += k * x
    return total


REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], int, str]] = [
    (a_list, (1.0,), 1, "a dictionary"),
    (unset, (1.0,), 3, "'y' may have no value here"),
    (two_types, (1.0,), 4, r"'y' is .* one name for one type"),
    (wrong_rank, (np.zeros(2),), 1, "2 indices of an array of float64 with 1 axis"),
    (index_by_float, (np.zeros(2),), 1, r"an index; .*int\(\)"),
    (float_into_ints, (np.zeros(2, np.int64),), 1, r"a float written .*int\(\)"),
    (recursive, (1,), 0, "recursion is not supported; write a loop"),
    (without_end, (1.0,), 2, "may end without a value"),
    (unknown_function, (1.0,), 1, "a call of 'gamma'"),
    (assertion, (1.0,), 1, "assert"),
    (gives_matrix, (np.zeros((2, 2)),), 1, "'x' of takes_vector is an array of float64 with 1 axis, and array of .* 2 axes"),
    (wrong_result, (1.0,), 1, "returns int by its annotation, and float here"),
    (gives_float, (1.0,), 1, r"'i' of takes_whole is int, and float is given; convert it by int\(\)"),
    (zipped, ((1.0, 2.0), (1.0,)), 2, "zip of tuples of 2, 1 items"),
    (enumerated, ((1.0, 2.0),), 2, "enumerate with further arguments"),
    (variable_power, (1.0, 2.0), 1, "write the product out"),
    (counted_by_variable, (2,), 2, "a step that is not a constant; write `while`"),
]


@pytest.mark.parametrize(("function", "args", "line", "words"), REFUSED, ids=[x[0].__name__ for x in REFUSED])
def test_what_is_refused_names_the_line_and_a_remedy(
    function: Callable[..., Any], args: tuple[Any, ...], line: int, words: str
) -> None:
    with pytest.raises(KernelError, match=words) as caught:
        compiled(function)(*args)
    file, number, _ = str(caught.value).split(":", 2)
    assert Path(file).name == "test_kernels.py"
    assert int(number) == function.__code__.co_firstlineno + line


def test_annotations_of_arguments_from_python() -> None:
    with pytest.raises(KernelError, match=r"'x' of takes_vector .*int64.*astype"):
        compiled(takes_vector)(np.zeros(2, np.int64))


# --- checked kernels


def write_at(x: Vector, i: int) -> None:
    x[0] = 1.0
    inner_write(x, i)
    x[1] = 1.0


def inner_write(x: Vector, i: int) -> None:
    x[i] = 2.0


def part_of(x: Vector, i: int, j: int) -> int:
    return len(x[i:j])


def as_wide(x: Vector, m: int, n: int) -> float:
    return as_matrix(x, m, n)[0, 0]


def whole(x: float) -> int:
    return int(x)


def remainder(a: int, b: int) -> int:
    return a % b


def pick(i: int) -> float:
    return WEIGHTS[i]


def copy_row(x: Matrix, y: Vector) -> None:
    y[:] = x[0]


def product_at(x: Vector, at: int, length: int) -> None:
    subtract_product(x, (0, 8), (16, 8), (at, 1, 2), (2, length, 2))


VIOLATIONS: list[tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]] = [
    (part_of, (np.zeros(3), -1, 2), IndexError, "the range -1:2 of 3"),
    (part_of, (np.zeros(3), 1, -1), IndexError, "the range 1:-1 of 3"),
    (as_wide, (np.zeros(5), 2, 3), ValueError, "5 numbers as a matrix of 2 rows and 3 columns"),
    (whole, (1e300,), ValueError, r"1e\+300 as a whole number"),
    (whole, (math.nan,), ValueError, "nan as a whole number"),
    (remainder, (7, 0), ValueError, "7 divided by zero"),
    (pick, (4,), IndexError, "index 4 of 4"),
    (product_at, (np.zeros(36), 33, 8), IndexError, "index 36 of 36"),
    (product_at, (np.zeros(36), -1, 8), IndexError, "index -1 of 36"),
    (product_at, (np.zeros(30), 20, 8), IndexError, "the range 24:32 of 30"),
    (product_at, (np.zeros(36), 32, 7), ValueError, "a length of 7, which is not a multiple of 8"),
    (copy_row, (np.zeros((2, 3)), np.zeros(2)), ValueError, "length 3 written to one of length 2"),
]


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEATHERWEIGHT_CHECKED", "1")


@pytest.mark.usefixtures("checked")
def test_a_violation_ends_the_outermost_call() -> None:
    x = np.zeros(3)
    kernel = compiled(write_at)
    with pytest.raises(IndexError, match=r"test_kernels.py:\d+: index 3 of 3") as caught:
        kernel(x, 3)
    assert f":{inner_write.__code__.co_firstlineno + 1}:" in str(caught.value)
    np.testing.assert_array_equal(x, [1.0, 0.0, 0.0])  # the statements before are executed, and none after
    with pytest.raises(IndexError, match="index -5 of 3"):
        kernel(x, -5)
    kernel(x, 2)
    np.testing.assert_array_equal(x, [1.0, 1.0, 2.0])


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize(
    ("function", "args", "exception", "words"), VIOLATIONS, ids=[f"{x[0].__name__}-{x[3]}" for x in VIOLATIONS]
)
def test_violations(function: Callable[..., Any], args: tuple[Any, ...], exception: type[Exception], words: str) -> None:
    with pytest.raises(exception, match=words) as caught:
        compiled(function)(*args)
    assert f"test_kernels.py:{function.__code__.co_firstlineno + 1}:" in str(caught.value)


@pytest.mark.usefixtures("checked")
def test_checked_kernels_give_the_same_results() -> None:
    alike(arrays, np.arange(12.0).reshape(4, 3), 2, np.array([1, 2, 0]))
    alike(matrices, np.random.default_rng(0).standard_normal(40), 3)
    alike(product, np.random.default_rng(0).standard_normal(200), 7, 8, 3)
    alike(early, np.arange(5.0), 3.0)
    for n in (0, 1, 2, 7):
        alike(ranges, n, np.zeros(5))


class Numbers(NamedTuple):
    values: Any


def element(table: Any, i: int) -> int:
    table.values[i] = 1.0
    return i


@pytest.mark.usefixtures("checked")
def test_checked_loops_over_tables() -> None:
    table = kernels.Table(Numbers(np.zeros(2)))
    run = kernels.CompiledLoop(element, numbers=1).for_tables(table)
    assert run(table.address, 1) == 1
    with pytest.raises(IndexError, match="index 2 of 2"):
        run(table.address, 2)
