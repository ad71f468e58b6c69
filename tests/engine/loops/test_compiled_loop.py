"""Tests of loops over named tuples of arrays as machine code, which a second process loads."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from featherweight.engine.loops.kernels import CompiledLoop, Table, call_machine, machine_call
from simulation.scenes import pendulum


class Inner(NamedTuple):
    numbers: Any
    matrix: Any


class Outer(NamedTuple):
    inner: Any
    count: int  # type: ignore[assignment]  # a field, in place of the method of tuples
    factor: float
    wanted: bool
    absent: Any
    call: Any

    def add(self) -> None:
        for i in range(len(self.inner.numbers)):
            self.inner.numbers[i] += self.factor * self.inner.matrix[i, 1]


def repeated(table: Any, times: int) -> int:
    for _ in range(times):
        if table.wanted:
            table.add()
    call_machine(table.call)
    if table.absent is None:
        return table.count + len(table.inner.matrix)
    return -1


LOOP = CompiledLoop(repeated, numbers=1)


def table(wanted: bool = True) -> tuple[Table, np.ndarray]:
    robot = pendulum()
    q, tau = np.array([0.3]), np.zeros(1)
    inner = Inner(np.zeros(3), np.arange(12.0).reshape(3, 4))
    made = Table(Outer(inner, 40, 0.5, wanted, None, machine_call(robot.gravity_force, q, tau)))
    made.kept = robot, q
    return made, tau


def test_fields_methods_calls_and_what_is_absent() -> None:
    for wanted, times in ((True, 4), (False, 4)):
        t, tau = table(wanted)
        assert LOOP.for_tables(t)(t.address, times) == 43
        expected = 4 * 0.5 * np.array([1.0, 5.0, 9.0]) if wanted else np.zeros(3)
        np.testing.assert_array_equal(t.content.inner.numbers, expected)
        np.testing.assert_array_equal(tau, pendulum().gravity_force([0.3]))


def test_arrays_that_are_not_contiguous_are_refused() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        Table(Inner(np.zeros(3), np.zeros((4, 3)).T))


def test_a_second_process_does_not_compile(tmp_path: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from featherweight.engine.loops.kernel_code import compilation_observers\n"
        "from engine.loops.test_compiled_loop import LOOP, table\n"
        "made = []\n"
        "compilation_observers.append(lambda kernel, facts, ir: made.append(kernel.name))\n"
        "t, _ = table()\n"
        "assert LOOP.for_tables(t)(t.address, 4) == 43\n"
        "print(len(made))"
    )
    tests, environment = str(Path(__file__).parents[2]), {**os.environ, "FEATHERWEIGHT_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", program, tests]
    told = [subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout for _ in range(2)]
    assert told == ["1\n", "0\n"]


def test_threads_wait_for_the_first_that_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def slow(text: str, layouts: Any) -> Any:
        begun.append(text)
        time.sleep(0.05)
        return text

    loop = CompiledLoop(repeated, numbers=1)
    monkeypatch.setattr(loop, "_load", slow)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: loop.for_tables(Table(Inner(np.zeros(2), np.zeros((2, 2))))), range(4)))
    assert len(begun) == 1
    assert len({*map(id, found)}) == 1
