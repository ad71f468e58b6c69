"""Tests of code for a limited number of registers: only the location of values depends on this number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.engine import cache
from featherweight.engine.backends.llvm import emit
from featherweight.engine.backends.schedule import Registers
from featherweight.model.generators import random_tree


def test_what_is_read_last_goes_first() -> None:
    """Check instruction 3, which reads node 0, instruction 5, which reads node 1, and instruction 4, which reads node 2."""
    registers = Registers([(), (), (), (0,), (2,), (1,)], most=2)
    registers.values |= {0: 10, 1: 11, 2: 12}
    assert registers.evict() == [(1, 11)]
    assert registers.values == {0: 10, 2: 12}


def test_what_is_read_no_more_is_not_held() -> None:
    registers = Registers([(0, 1), (1,)], most=2)
    registers.values |= {0: 10, 1: 11}
    assert registers.read(0, (0, 1)) == [0]
    assert registers.read(1, (1,)) == [1]
    assert not registers.values


def test_lanes_go_before_the_scalar_that_fills_them() -> None:
    registers = Registers([(), (0, 1)], most=2)
    registers.values |= {0: 10, 1: 11}
    registers.spread[0] = 12
    assert registers.evict() == []
    assert registers.values == {0: 10, 1: 11}
    assert not registers.spread


@pytest.mark.parametrize("registers", [4, 9])
@pytest.mark.parametrize("part", [60, 1400])
def test_few_registers_and_short_parts_give_the_same_bits(registers: int, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = fw.build(random_tree(4, rng=4), execution="traced")
    rng = np.random.default_rng(0)
    arguments = [robot.random_configuration(rng=rng, size=11), *rng.standard_normal((2, 11, robot.nv))]
    functions = (robot.forward_dynamics, robot.inverse_dynamics.derivative())

    def results() -> list[Any]:
        made = [f.copy() for f in functions]
        every = [(f(*arguments), f(*(x[0] for x in arguments))) for f in made]
        return [y for pair in every for r in pair for y in (r if isinstance(r, tuple) else (r,))]

    usual = results()
    monkeypatch.setattr(cache, "read", lambda name: None)
    monkeypatch.setattr(emit, "registers", lambda vector_bytes: registers)
    monkeypatch.setattr(emit, "PART", part)
    for x, y in zip(usual, results(), strict=True):
        np.testing.assert_array_equal(x, y)
