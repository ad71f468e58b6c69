"""Tests of random kernels of the subset: compiled without fused products, they are bitwise equal to Python."""

from __future__ import annotations

import linecache
import math
from itertools import count
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from featherweight.engine.loops.kernels import CompiledKernel

FLOATS, INTS = ["a", "b", "c", "w"], ["i", "j", "k"]  # w is an integer at first
LENGTH = 5
NUMBERS = ["0.0", "1.0", "0.1", "-2.7", "1e-3", "3.3", "1e200"]
_number = count()


class Writer:
    """Writer of random statements; loops end, integers stay small, and nothing raises in Python."""

    def __init__(self, random: Random) -> None:
        self.random, self.lines = random, [""]
        self.loops = 0

    def choose(self, *options: Any) -> Any:
        return self.random.choice(options)

    def real(self, depth: int) -> str:
        kind = self.random.randrange(12) if depth else self.random.randrange(3)
        if kind < 2:
            return str(self.random.choice(FLOATS))
        if kind == 2:
            return str(self.random.choice(NUMBERS))
        x, y = self.real(depth - 1), self.real(depth - 1)
        options = [
            f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"({x} * {y} + {self.real(depth - 1)})",
            f"{x} / (abs({y}) + 1.0)", f"min({x}, {y})", f"max({x}, {y}, 0.25)", f"-{x}", f"math.sqrt(abs({x}))",
            f"x[{self.place(depth - 1)}]", f"float({self.whole(depth - 1)})",
            f"({x} if {self.truth(depth - 1)} else {y})", f"pair({x}, {y})[{self.choose(0, 1)}]",
            f"({x}, {y})[{self.whole(depth - 1)} % 2]", f"{x} * {self.whole(depth - 1)}",
        ]  # fmt: skip
        return str(self.random.choice(options))

    def whole(self, depth: int) -> str:
        kind = self.random.randrange(10) if depth else self.random.randrange(3)
        if kind < 2:
            return str(self.random.choice(INTS))
        if kind == 2:
            return str(self.random.randrange(-3, 8))
        x, y = self.whole(depth - 1), self.whole(depth - 1)
        options = [
            f"({x} + {y})", f"({x} - {y})", f"({x} * {y} % 97)", f"({x} // {self.choose(3, -4, 7)})",
            f"({x} % {self.choose(5, -3)})", f"(({x} & {y}) ^ {x})", f"min({x}, {y})", f"abs({x})",
            f"len(x[{self.choose(0, 1)}:{y} % 9])", f"(({self.truth(0)}) + {x})",
            f"({x} if {self.truth(depth - 1)} else {y})", f"(int({self.real(0)} * 0.0 == 0.0) + {y})",
        ]  # fmt: skip
        return str(self.random.choice(options))

    def truth(self, depth: int) -> str:
        x, y = self.real(depth // 2), self.real(depth // 2)
        simple = [
            f"{x} < {y}",
            f"{x} >= {y}",
            f"{self.whole(0)} == {self.whole(0)}",
            f"0.0 < {x} <= {y}",
            f"{self.whole(0)} in (1, 2, 5)",
        ]
        if not depth:
            return str(self.random.choice(simple))
        s, t = self.truth(depth - 1), self.truth(depth - 1)
        return str(self.random.choice([*simple, f"({s} and {t})", f"({s} or {t})", f"not ({s})"]))

    def place(self, depth: int) -> str:
        return f"({self.whole(depth)}) % {LENGTH}"

    def statements(self, indent: str, depth: int) -> None:
        for _ in range(self.random.randrange(1, 4)):
            self.statement(indent, depth)

    def line(self, text: str) -> None:
        self.lines.append(text)

    def statement(self, indent: str, depth: int) -> None:
        kind = self.random.randrange(12 if depth else 6)
        if kind == 0:
            self.line(f"{indent}{self.choose(*FLOATS)} {self.choose('=', '+=', '-=', '*=')} {self.real(3)}")
        elif kind == 1:
            self.line(f"{indent}{self.choose(*INTS)} = ({self.whole(3)}) % 89")
        elif kind == 2:
            self.line(f"{indent}x[{self.place(1)}] {self.choose('=', '+=', '-=')} {self.real(2)}")
        elif kind == 3:
            self.line(f"{indent}a, b, i = b, {self.real(2)}, ({self.whole(1)}) % 89")
        elif kind == 4:
            self.line(f"{indent}x[i % {LENGTH}], x[j % {LENGTH}] = x[j % {LENGTH}], x[i % {LENGTH}]")
        elif kind == 5:
            self.line(f"{indent}a, c = pair({self.real(1)}, {self.real(1)})")
        elif kind < 8:
            self.line(f"{indent}if {self.truth(2)}:")
            self.statements(indent + "    ", depth - 1)
            if self.choose(True, False):
                self.line(f"{indent}else:")
                self.statements(indent + "    ", depth - 1)
        elif kind < 11:
            self.loop(indent, depth)
        else:
            self.line(f"{indent}if {self.truth(1)}:")
            self.line(f"{indent}    return a + x[0], i, {self.truth(0)}")

    def loop(self, indent: str, depth: int) -> None:
        n, inner = self.loops, indent + "    "
        self.loops += 1
        head = self.choose(
            f"for n{n} in range({self.whole(1)} % 4):",
            f"for n{n} in range(3, {self.whole(1)} % 4, -1):",
            f"for n{n} in reversed(range(1, 4)):",
            f"for n{n} in (1, 3, {self.whole(1)}):",
            f"for c in x[:{self.whole(1)} % 4]:",
        )
        if self.choose(True, False, False):
            self.line(f"{indent}n{n} = 0")
            head = f"while n{n} < 3 and {self.truth(1)}:"
        self.line(f"{indent}{head}")
        if head.startswith("while"):
            self.line(f"{inner}n{n} += 1")
        self.statements(inner, depth - 1)
        if self.choose(True, False):
            self.line(f"{inner}if {self.truth(1)}:")
            self.line(f"{inner}    {self.choose('break', 'continue')}")
            self.statements(inner, depth - 1)


def pair(a: float, b: float) -> tuple[float, float]:
    return a * b - a, b


def kernel_of(random: Random) -> tuple[str, Any]:
    """Return a random kernel: its source, and a function whose source `inspect` and the compiler find."""
    writer = Writer(random)
    writer.statements("    ", 3)
    writer.statements("    ", 2)
    head = "def kernel(a: float, b: float, i: int, j: int, x):\n    c, k, w = 0.7123, 2, 1"
    source = "\n".join([head, *writer.lines, "    return a + b * c + w, i + j + k, a < b", ""])
    name = f"<random kernel {next(_number)}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    scope: dict[str, Any] = {"math": math, "pair": pair, "__name__": __name__}
    exec(compile(source, name, "exec"), scope)
    return source, scope["kernel"]


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_random_kernels_compute_what_python_does(random: Random) -> None:
    source, kernel = kernel_of(random)
    made = CompiledKernel(kernel, fused=False)
    for a, b, i, j in ((0.3141, -1.717, 3, 4), (-2.03, 0.57, -2, 0)):
        x = np.arange(LENGTH) * 0.7 - 1.0
        y = x.copy()
        with np.errstate(all="ignore"):
            expected = kernel(a, b, i, j, x)
        found = made(a, b, i, j, y)
        assert found[1:] == expected[1:], source
        np.testing.assert_array_equal(found[0], expected[0], err_msg=source)
        np.testing.assert_array_equal(x, y, err_msg=source)
