"""Tests of built-in functions around compiled loops, and of what replaces them where the layouts of objects are unknown."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

from featherweight.array_types import Integers, Vector
from featherweight.engine import exclusive
from featherweight.engine.loops import prepared_calls
from featherweight.engine.loops.kernels import CompiledLoop, Table
from featherweight.engine.loops.prepared_calls import Goal, Result, prepared_call, reader, writer, writing_call


class Numbers(NamedTuple):
    x: Vector
    used: Integers


class Seen(NamedTuple):
    x: Any
    names: Any


def double(n: Numbers, factor: int) -> int:
    for k in range(len(n.x)):
        n.x[k] = n.x[k] * factor
    return n.used[0]


DOUBLE = CompiledLoop(double, numbers=1)
NAMES = ["a", "b", "c"]


@pytest.fixture(params=[True, False], ids=["built-in", "general"])
def known(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        for module in (prepared_calls, exclusive):
            monkeypatch.setattr(module, "layouts_known", lambda: False)
    return bool(request.param)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("brief", [True, False])
def test_a_prepared_call_returns_what_the_loop_does(brief: bool) -> None:
    numbers = Numbers(np.arange(3.0), np.array([-7]))
    table = Table(numbers)
    call = prepared_call(DOUBLE.for_tables(table), table.address, 3, kept=table, brief=brief)
    assert [call(), call()] == [-7, -7]
    np.testing.assert_array_equal(numbers.x, [0.0, 9.0, 18.0])


@pytest.mark.usefixtures("known")
def test_a_writer_copies_arrays_that_fit_and_no_others() -> None:
    one, many, flag = np.full((1, 3), 9.0), np.full((2, 2, 3), 9.0), np.zeros(1, bool)
    write = writer(Goal(one, None, True), Goal(many, flag, True))
    row, rows = np.arange(3.0), np.arange(12.0).reshape(2, 2, 3)
    for x in (row, row[None]):
        one.fill(9.0)
        assert write(x, rows) is True and flag[0]
        np.testing.assert_array_equal(one[0], row)
        np.testing.assert_array_equal(many, rows)
    assert write(None, None) is True and not flag[0]
    assert not one.any() and many.any()
    unfit = ([0.0, 1.0, 2.0], row.astype(int), row.astype(">f8"), np.float64(1.0), np.array(1.0), np.arange(4.0))
    assert not any(write(x, None) for x in (*unfit, row[None, None], np.zeros((3, 3))))
    assert not write(row, rows[0]) and not write(row)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_writer_copies_numbers_of_both_precisions_with_any_strides(dtype: Any) -> None:
    goal, flag = np.zeros((2, 3, 4)), np.zeros(1, bool)
    every = np.random.default_rng(0).standard_normal((8, 6, 9)).astype(dtype)
    write = writer(Goal(goal, flag, True))
    wide = every[:2, :3, :4], every[::4, ::-2, 1::2], every.T[::5, 3::-1, :8:2][:, [0, 1, 2]], every[:2, :3, :4].copy(order="F")
    for x in (*wide, np.broadcast_to(every[0, 0, :4], (2, 3, 4))):
        goal.fill(0.0)
        assert write(x) is True
        np.testing.assert_array_equal(goal, x)
    empty = np.zeros((2, 0))
    assert writer(Goal(empty, None, True))(empty[::-1].astype(dtype)) is True


@pytest.mark.usefixtures("known")
def test_a_writing_call_calls_the_loop_only_with_arguments_that_fit() -> None:
    numbers, flag = Numbers(np.zeros(3), np.array([5])), np.zeros(1, bool)
    table = Table(numbers)
    call = writing_call((Goal(numbers.x, flag),), DOUBLE.for_tables(table), table.address, 3, kept=table)
    assert call(np.arange(3.0)) == 5 and flag[0]
    np.testing.assert_array_equal(numbers.x, [0.0, 3.0, 6.0])
    assert call(None) == 5 and not flag[0]
    np.testing.assert_array_equal(numbers.x, [0.0, 9.0, 18.0])
    assert call([0.0, 1.0, 2.0]) is None and call(np.zeros(2)) is None and call() is None
    np.testing.assert_array_equal(numbers.x, [0.0, 9.0, 18.0])
    numbers.used[0] = 0  # which the loop returns
    assert call(np.ones(3)) == 0
    np.testing.assert_array_equal(numbers.x, 3.0)


@pytest.mark.usefixtures("known")
def test_a_writer_without_robots_takes_the_shape_alone() -> None:
    goal = np.zeros(3)
    write = writer(Goal(goal))
    assert write(np.ones(3)) is True and goal.all()
    assert not write(np.ones((1, 3)))


@pytest.mark.usefixtures("known")
def test_a_reader_returns_copies() -> None:
    x, used, chosen = np.arange(12.0).reshape(4, 3), np.array([2]), np.array([2, 0, 1, 1])
    read = reader(Result(x, used), Result(chosen, used, names=NAMES), result_class=Seen)
    seen = read()
    assert type(seen) is Seen and seen.names == ["c", "a"]
    x[0], used[0] = -1.0, 0
    np.testing.assert_array_equal(seen.x, [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    seen.x[0] = 5.0
    later = read()
    assert later.x.shape == (0, 3) and later.names == [] and later.names is not read().names


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("dtype", [float, np.int64, bool])
def test_a_copy_may_be_read_only(dtype: Any) -> None:
    x = np.array([[0, 1], [1, 0]], dtype)
    seen = reader(Result(x, read_only=True))()
    np.testing.assert_array_equal(seen, x)
    assert seen.dtype == x.dtype and not seen.flags.writeable and not np.shares_memory(seen, x)


@pytest.mark.usefixtures("known")
def test_a_reader_calls_a_loop_first() -> None:
    numbers = Numbers(np.ones(3), np.array([1]))
    table = Table(numbers)
    read = reader(Result(numbers.x), run=DOUBLE.for_tables(table), arguments=(table.address, 2))
    np.testing.assert_array_equal(read(), [2.0, 2.0, 2.0])
    numbers.used[0] = 0
    assert read() is None
    np.testing.assert_array_equal(numbers.x, [4.0, 4.0, 4.0])


@pytest.mark.usefixtures("known")
def test_one_thread_enters_as_often_as_it_leaves() -> None:
    use, found = exclusive.Use("it", "make another"), list[bool]()

    def enter_elsewhere() -> bool:
        thread = threading.Thread(target=lambda: found.append(use.enter() and use.leave()))
        thread.start()
        thread.join()
        return found[-1]

    assert use.enter() and use.enter() and not enter_elsewhere()
    assert use.leave() and not enter_elsewhere()
    assert use.leave() and enter_elsewhere() and not use.leave()
