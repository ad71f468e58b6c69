"""Tests of kernels in vector lanes: each lane has the bits of the kernel for one robot."""

from __future__ import annotations

from math import inf, sin, sqrt
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import swinging
from engine.loops.test_random_kernels import LENGTH, kernel_of
from featherweight.array_types import Booleans, IntegerMatrix, Integers, Matrix, Tensor, Vector
from featherweight.engine.loops.kernels import (
    LANES,
    CompiledLoop,
    Counted,
    Interleaved,
    KernelError,
    MachineCall,
    Table,
    as_matrix,
    call_apart,
    call_machine,
    first_of_lanes,
    interleaved_call,
    lane,
    lanes,
    subtract_multiples,
    subtract_product,
    sum_of_products,
    then_separated,
)

WIDTHS = [2, 4, 8]
ROWS = 37  # not a multiple of lanes


class Room(NamedTuple):
    """The workspace for one row of numbers."""

    x: Vector
    A: Matrix
    k: Integers
    common: Vector
    out: Vector
    flag: Booleans


class Rows(NamedTuple):
    """Numbers of all rows, and results."""

    x: Matrix
    A: Tensor
    k: IntegerMatrix
    out: Matrix


def work(one: Room, many: Rows, first: int, stop: int) -> int:
    """Work on rows first to stop; return the sum of the results of `work_on_row`."""
    done, begin = 0, first
    while begin < stop:
        i = begin + lane()
        if i < stop:
            done += work_on_row(one, many, i)
        begin += lanes()
    return done


def put(source: Vector, target: Vector) -> None:
    for j in range(len(source)):
        target[j] = source[j]


def search(a: Vector, n: int) -> float:
    """Return from inside loops, continue, and break."""
    if n == 0:
        return -1.0
    for j in range(n):
        if a[j] > 0.8:
            return a[j] + j
        if a[j] < 0.05:
            break
    total, j = 0.0, 0
    while True:
        j += 1
        if j % 3 == 0:
            continue
        total += sin(a[j]) * j
        if total > 0.5 or j > n:
            break
    return total


def work_on_row(one: Room, many: Rows, i: int) -> int:
    x, out, k = one.x, one.out, one.k
    put(many.x[i], x)
    for j in range(3):
        put(many.A[i, j], one.A[j])
    k[0], k[1] = many.k[i, 0], many.k[i, 1]
    n, m = k[0], k[1]
    one.flag[0] = n > m
    total = 0.0
    for j in range(n):
        total += x[j] * one.common[j] - x[m]
    out[0] = total
    row = one.A[m % 3]
    row[1] += 2.0
    for j in range(3):
        total += sqrt(abs(row[j])) if row[j] > 0 else row[j] * one.A[j, (n + j) % 3]
    out[1] = total
    out[2] = search(x, n)
    out[3] = search(x[1 : m + 1], min(n, m))
    a, b = (n, m) if n < m else (m, n)
    out[4] = float(a * 10 + b) if one.flag[0] else -float(a // 3 + b % 5)
    out[5:8] = 0.25
    for g in range(b - 1, a - 1, -1):
        out[5 + g % 3] = x[g] + g
    best = -inf
    for y in x[:n]:
        best = max(best, y)
    out[8] = best if best > -inf else 0.0
    square = as_matrix(x, 2, m % 4)
    out[9] = square[1, (m - 1) % 4] if m % 4 > 0 else 3.0
    put(one.A[2], out[10:13])
    out[10 : 10 + n % 3] = one.common[: n % 3]
    put(out, many.out[i])
    return n


def rooms(width: int) -> tuple[Room, Rows]:
    """Return the workspace for one row, interleaved for several lanes, and rows."""
    rng = np.random.default_rng(3)
    common = rng.random(12)
    room = Room(np.zeros(12), np.zeros((3, 3)), np.zeros(2, np.int64), common, np.zeros(13), np.zeros(1, bool))
    many = Rows(rng.random((ROWS, 12)), rng.normal(size=(ROWS, 3, 3)), rng.integers(0, 10, (ROWS, 2)), np.zeros((ROWS, 13)))
    if width > 1:
        room = interleaved(room, width)._replace(common=common)
    return room, many


def interleaved(room: Any, width: int) -> Any:
    """Return a named tuple with its arrays interleaved."""
    return type(room)(*(Interleaved.of(x, width) for x in room))


def worked(function: Any, width: int, room: Any, many: Any) -> int:
    tables = Table(room), Table(many)
    loop = CompiledLoop(function, 2, lanes=width)
    return loop.for_tables(*tables)(*(t.address for t in tables), 0, ROWS)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_lane_has_the_bits_of_one_row(width: int) -> None:
    one, rows = rooms(1)
    done = worked(work, 1, one, rows)
    room, in_lanes = rooms(width)
    assert worked(work, width, room, in_lanes) == done
    np.testing.assert_array_equal(in_lanes.out, rows.out)
    assert (rows.out != 0.0).any(axis=0).all()


class Kinds(NamedTuple):
    """Arrays of all kinds."""

    small: Any  # float32
    short: Any  # int32
    byte: Any  # uint8
    truth: Any  # bool


def convert(one: Kinds, many: Kinds, first: int, stop: int) -> int:
    begin = first
    while begin < stop:
        i = min(begin + lane(), stop - 1)
        for j in range(3):
            one.small[j], one.short[j] = many.small[i, j] * 1.1, many.short[i, j] * 3 - 5
            one.byte[j], one.truth[j] = many.byte[i, j] + 7, many.small[i, j] > 0.0
        at = many.byte[i, 0] % 3
        one.truth[at] = not one.truth[at]
        one.short[at] += int(many.small[i, 1] * 100.0)
        for j in range(3):
            many.small[i, j], many.short[i, j] = one.small[j], one.short[j]
            many.byte[i, j], many.truth[i, j] = one.byte[j], one.truth[j]
        begin += lanes()
    return 0


@pytest.mark.parametrize("width", WIDTHS)
def test_arrays_of_all_kinds(width: int) -> None:
    def made() -> Kinds:
        rng = np.random.default_rng(0)
        numbers = rng.normal(size=(ROWS, 3))
        return Kinds(
            numbers.astype(np.float32), (1000 * numbers).astype(np.int32), rng.integers(0, 255, (ROWS, 3)).astype(np.uint8),
            np.zeros((ROWS, 3), bool),
        )  # fmt: skip

    alone, many = made(), made()
    room = Kinds(*(np.zeros(3, x.dtype) for x in alone))
    worked(convert, 1, room, alone)
    worked(convert, width, interleaved(room, width), many)
    for a, b in zip(alone, many, strict=True):
        np.testing.assert_array_equal(a, b)


def add_to_rows(one: Room, many: Rows, first: int, stop: int) -> int:
    begin = first
    while begin < stop:
        i = begin + lane()
        if i < stop:
            for j in range(3):
                put(many.A[i, j], one.A[j])
            add_to_row(one.A, many.x[i], many.k[i, 0] % 3, many.k[i, 1] < 8)
            for j in range(3):
                put(one.A[j], many.A[i, j])
        begin += lanes()
    return 0


def add_to_row(A: Matrix, x: Vector, number: int, waits: bool) -> None:
    """Add x to a row, for all lanes with the same row at once."""
    while waits:
        i = first_of_lanes(number)
        if i == number:
            for j in range(3):
                A[i, j] += x[j]
            waits = False


@pytest.mark.parametrize("width", [1, *WIDTHS])
def test_lanes_with_the_same_number_work_at_once(width: int) -> None:
    room, many = rooms(width)
    expected = many.A.copy()
    for i in np.flatnonzero(many.k[:, 1] < 8):
        expected[i, many.k[i, 0] % 3] += many.x[i, :3]
    worked(add_to_rows, width, room, many)
    np.testing.assert_array_equal(many.A, expected)


class Sums(NamedTuple):
    """A vector that accumulates sums of rows."""

    values: Vector
    total: Vector


def add_up(one: Sums, many: Rows, first: int, stop: int) -> int:
    begin = first
    while begin < stop:
        i = min(begin + lane(), stop - 1)
        put(many.x[i], one.values)
        n = LANES * (1 + many.k[i, 0] % 2)
        subtract_multiples(one.values, many.k[i, 1] % 3, 24, LANES, n, (many.x[i, 0], many.x[i, 1]))
        subtract_multiples(one.values, many.k[i, 0] % 3, 24, LANES, LANES, (many.x[i, 2],), True)
        one.total[0] = sum_of_products(one.values, many.k[i, 1] % 5, one.values, 16, n)
        subtract_product(one.values, (0, LANES), (24, LANES), (40, 1, 2), (1 + many.k[i, 0] % 2, LANES, 2))
        subtract_product(one.values, (16, 0), (24, LANES), (40 + many.k[i, 1] % 4, 0, 3), (1, LANES, many.k[i, 1] % 3), True)
        put(one.values, many.x[i])
        many.out[i, 0] = one.total[0]
        begin += lanes()
    return 0


@pytest.mark.parametrize("width", WIDTHS)
def test_multiples_and_products_of_rows(width: int) -> None:
    def made() -> Rows:
        rng = np.random.default_rng(1)
        return Rows(rng.normal(size=(ROWS, 48)), np.zeros((ROWS, 1, 1)), rng.integers(0, 10, (ROWS, 2)), np.zeros((ROWS, 1)))

    alone, many, room = made(), made(), Sums(np.zeros(48), np.zeros(1))
    worked(add_up, 1, room, alone)
    worked(add_up, width, interleaved(room, width), many)
    np.testing.assert_array_equal(alone.x, many.x)
    np.testing.assert_array_equal(alone.out, many.out)


class Calls(NamedTuple):
    """A call, with its arguments and its result."""

    call: MachineCall
    x: Vector
    y: Vector
    out: Vector


def call_in_some(one: Calls, many: Rows, first: int, stop: int) -> int:
    """Call a function for rows with an even number alone."""
    begin = first
    while begin < stop:
        i = min(begin + lane(), stop - 1)
        put(many.x[i], one.x)
        put(many.x[i], one.y)
        for j in range(len(one.out)):
            one.out[j] = -1.0
        if many.k[i, 0] % 2 == 0:
            call_machine(one.call)
        put(one.out, many.out[i])
        begin += lanes()
    return 0


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("apart", [False, True])
def test_functions_are_called_for_the_lanes_that_take_part(width: int, apart: bool) -> None:
    """Check that calls use vectors, or one lane after the other with copies to arrays of each lane."""
    rng = np.random.default_rng(2)
    numbers, even = rng.normal(size=(ROWS, 12)), rng.integers(0, 10, (ROWS, 2))
    function = swinging(12)
    many = Rows(numbers.copy(), np.zeros((ROWS, 1, 1)), even, np.zeros((ROWS, 12)))
    x, y, out = (Interleaved.of(np.zeros(12), width) for _ in range(3))
    room: Any = x, y, out
    call, kept = interleaved_call(function, width, x, y, out)
    if apart:
        own = [np.zeros(12) for _ in range(width)]
        call, kept = then_separated(call, kept, (out, own))
    worked(call_in_some, width, Calls(call, *room), many)
    expected = np.where(even[:, :1] % 2 == 0, function(numbers, numbers), -1.0)
    np.testing.assert_array_equal(many.out, expected)
    if apart:
        last = np.minimum(ROWS - ROWS % width + np.arange(width), ROWS - 1)
        np.testing.assert_array_equal(np.array(own), many.out[last])


class Lone(NamedTuple):
    """Numbers of one lane."""

    x: Vector
    n: Integers
    done: Booleans


def double(one: Lone, many: int, first: int, stop: int, work: int) -> int:
    for j in range(len(one.x)):
        one.x[j] *= 2.0 + one.n[0]
    one.done[0] = True
    return 0


class Together(NamedTuple):
    """Numbers of all lanes, and a call for each of them."""

    call: MachineCall
    x: Vector
    n: Integers
    done: Booleans


def double_some(one: Together, many: Rows, first: int, stop: int) -> int:
    begin = first
    while begin < stop:
        i = min(begin + lane(), stop - 1)
        put(many.x[i], one.x)
        one.n[0], one.done[0] = many.k[i, 0], False
        if many.k[i, 0] % 2 == 0:
            call_machine(one.call)
        put(one.x, many.x[i])
        many.out[i, 0] = 1.0 if one.done[0] else 0.0
        begin += lanes()
    return 0


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("size", [1, 4, 11])
@pytest.mark.parametrize("counted", [False, True])
def test_lanes_one_after_the_other(width: int, size: int, counted: bool) -> None:
    """Check that each lane works on its own arrays, of which whole vectors of rows are copied where their number is known."""
    rng = np.random.default_rng(4)
    numbers, k = rng.normal(size=(ROWS, size)), rng.integers(0, 10, (ROWS, 2))
    alone = [Lone(np.zeros(size), np.zeros(1, np.int64), np.zeros(1, bool)) for _ in range(width)]
    tables = [Table(x) for x in alone]
    run = CompiledLoop(double, 4).for_tables(tables[0])
    room = interleaved(alone[0], width)
    moves = [(w, [x[j] for x in alone]) for j, w in enumerate(room)]
    some = Counted(room[1], [room[0]]) if counted else None
    call, _ = call_apart(run, (0, 0, 1, 0), [t.address for t in tables], moves[:2], [moves[0], moves[2]], some)
    many = Rows(numbers.copy(), np.zeros((ROWS, 1, 1)), k, np.zeros((ROWS, 1)))
    worked(double_some, width, Together(call, *room), many)
    even = k[:, 0] % 2 == 0
    expected = np.where(even[:, None], numbers * (2.0 + k[:, :1]), numbers)
    for begin in range(0, ROWS if counted else 0, width):
        most = max(-(-k[begin : begin + width, 0].max() // width), 1) * width
        expected[begin : begin + width, most:] = numbers[begin : begin + width, most:]
    np.testing.assert_array_equal(many.x, expected)
    np.testing.assert_array_equal(many.out[:, 0], even)


def write_shared(one: Room, many: Rows, first: int, stop: int) -> int:
    one.common[0] = lane()
    return 0


def test_what_lanes_share_is_not_written() -> None:
    with pytest.raises(KernelError, match=r"write_shared: all lanes write to the same element of a shared array"):
        worked(write_shared, 4, *rooms(4))


def count_twice(one: Room, many: Rows, first: int, stop: int) -> int:
    """Count to a number of each lane by the same name in two loops."""
    n = one.k[0]
    for j in range(n):
        one.out[j] = one.x[j]
    for j in range(n):
        one.out[j] += one.x[j]
    return 0


def test_loops_that_count_by_the_same_name_have_counters_that_lanes_share() -> None:
    one, many = (Table(x) for x in rooms(4))
    assert "gather" not in CompiledLoop(count_twice, 2, lanes=4).module([one.layout, many.layout], True)


class Inputs(NamedTuple):
    """Arguments of random kernels, and results."""

    real: Matrix
    whole: IntegerMatrix
    x: Matrix
    out: Matrix


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_random_kernels(seed: int) -> None:
    source, kernel = kernel_of(Random(seed))

    def run(one: Sums, many: Inputs, first: int, stop: int) -> int:
        begin = first
        while begin < stop:
            i = min(begin + lane(), stop - 1)
            put(many.x[i], one.values)
            value, number, truth = kernel(many.real[i, 0], many.real[i, 1], many.whole[i, 0], many.whole[i, 1], one.values)
            put(one.values, many.x[i])
            many.out[i, 0], many.out[i, 1], many.out[i, 2] = value, float(number), 1.0 if truth else 0.0
            begin += lanes()
        return 0

    def made() -> Inputs:
        rng = np.random.default_rng(seed)
        return Inputs(
            rng.normal(size=(ROWS, 2)), rng.integers(-5, 9, (ROWS, 2)), rng.normal(size=(ROWS, LENGTH)), np.zeros((ROWS, 3))
        )

    alone, many, room = made(), made(), Sums(np.zeros(LENGTH), np.zeros(1))
    worked(run, 1, room, alone)
    worked(run, 4, interleaved(room, 4), many)
    np.testing.assert_array_equal(alone.out, many.out, err_msg=source)
    np.testing.assert_array_equal(alone.x, many.x, err_msg=source)
