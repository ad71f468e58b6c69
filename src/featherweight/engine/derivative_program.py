"""Derivatives of programs, as programs: Jacobians, one direction (pushforward), and cotangents (pullback).

They are made from the trace of a program and may be traced, compiled, and differentiated again like others. Arguments and
results on manifolds (`Input.rate`, `Output.along`) have tangents in place of differences.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from .differentiation import Rates, backward, forward, is_zero, outputs_of, values_of
from .lane_trace import LaneTrace, lane_trace
from .program import Input, KernelProgram, Output, Program
from .trace import Trace, trace

Scalar = Any
FEWEST = 0.5  # directions for each lane, from which on lanes are worth while

P = TypeVar("P", bound="DerivedProgram")


@dataclass(frozen=True)
class DerivedProgram(Program):
    """A program made from the trace of another."""

    program: Program
    doc: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        return self.program.options

    def given(self: P, option: str) -> P:
        return replace(self, program=self.program.given(option))

    @property
    def kernels(self) -> tuple[KernelProgram, ...]:
        return self.program.kernels

    @property
    def rollable(self) -> bool:
        return False

    def identity(self) -> tuple[Any, ...]:
        manifolds = tuple((x.name, x.rate.identity()) for x in self.program.inputs if x.rate)
        results = tuple((y.name, y.along.identity()) for y in self.program.outputs if y.along)
        return type(self).__name__, self.program.identity(), manifolds, results

    @cached_property
    def _trace(self) -> Trace:
        return trace(self.program.flat, [x.size for x in self.program.inputs])

    def flat(self, *inputs: list[Any]) -> list[Any]:
        by_name = {x.name: values for x, values in zip(self.inputs, inputs, strict=True)}
        given = [by_name[x.name] for x in self.program.inputs]
        return self.derived(given, values_of(self._trace, given), by_name)

    @abstractmethod
    def derived(self, given: Sequence[list[Any]], x: dict[int, Scalar], by_name: dict[str, list[Any]]) -> list[Any]:
        """The results, from the arguments of the program, its trace's values, and all arguments by name."""

    # manifolds

    def _along(self, values: list[Scalar], rates: Sequence[Rates]) -> list[Rates]:
        """The rates of results as rates of their tangents."""
        every: list[Rates] = []
        begin = 0
        for y in self.program.outputs:
            here, end = rates[begin : begin + y.size], begin + y.size
            if y.along is None:
                every += here
            else:
                tangents: list[Rates] = [{} for _ in range(math.prod(y.tangent))]
                for d in dict.fromkeys(d for r in here for d in r):
                    tangent = y.along.flat(values[begin:end], [r.get(d, 0.0) for r in here])
                    for own, z in zip(tangents, tangent, strict=True):
                        if not is_zero(z):
                            own[d] = z
                every += tangents
            begin = end
        return every


def rates_along(x: Input, value: list[Scalar], tangent: list[Scalar]) -> list[Scalar]:
    """What an argument changes by along a tangent."""
    return x.rate.flat(value, tangent) if x.rate else tangent


def units(n: int) -> list[list[float]]:
    """The rows of an identity matrix."""
    return [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]


@dataclass(frozen=True)
class JacobianProgram(DerivedProgram):
    """The derivatives of all results of a program by some of its arguments: dy_dx for a result y and an argument x."""

    by: tuple[str, ...] = ()

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.program.name}_derivative"

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self.program.inputs

    @property
    def outputs(self) -> tuple[Output, ...]:
        pairs = itertools.product(self.program.outputs, self._differentiated)
        return tuple(Output(f"d{y.name}_d{x.name}", (*y.tangent, *x.tangent)) for y, x in pairs)

    @property
    def _differentiated(self) -> list[Input]:
        by_name = {x.name: x for x in self.program.inputs}
        return [by_name[name] for name in self.by]

    def identity(self) -> tuple[Any, ...]:
        return *super().identity(), self.by, tuple(x.name for x in self.program.inputs)

    @property
    def _columns(self) -> list[int]:
        """Directions along which each argument changes."""
        return [math.prod(x.tangent) for x in self._differentiated]

    def _seeds(self, given: Sequence[list[Any]]) -> list[list[Rates]]:
        """The rates of all scalars of the arguments, along the directions of one argument after the other."""
        seeds: list[list[Rates]] = [[{} for _ in values] for values in given]
        place = {x.name: k for k, x in enumerate(self.program.inputs)}
        count = 0
        for argument in self._differentiated:
            k = place[argument.name]
            for unit in units(math.prod(argument.tangent)):
                for own, rate in zip(seeds[k], rates_along(argument, given[k], unit), strict=True):
                    if not is_zero(rate):
                        own[count] = rate
                count += 1
        return seeds

    def derived(self, given: Sequence[list[Any]], x: dict[int, Scalar], by_name: dict[str, list[Any]]) -> list[Any]:
        rates = self._along(outputs_of(self._trace, x), forward(self._trace, x, self._seeds(given)))
        results, first = [], 0
        for y in self.program.outputs:
            size, at = math.prod(y.tangent), 0
            for width in self._columns:
                results += [row.get(d, 0.0) for row in rates[first : first + size] for d in range(at, at + width)]
                at += width
            first += size
        return results

    def in_lanes(self, lanes: int) -> LaneTrace | None:
        if sum(self._columns) < FEWEST * lanes or any(y.along for y in self.program.outputs):
            return None
        return lane_trace(self._trace, self._seeds, [y.size for y in self.program.outputs], self._columns, lanes)


@dataclass(frozen=True)
class PushforwardProgram(DerivedProgram):
    """The rates of all results of a program along one direction: arguments x and their rates x_dot, tangents on manifolds."""

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.program.name}_pushforward"

    @property
    def inputs(self) -> tuple[Input, ...]:
        return with_others(self.program.inputs, [Input(f"{x.name}_dot", x.tangent, x.optional) for x in self.program.inputs])

    @property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(Output(f"{y.name}_dot", y.tangent) for y in self.program.outputs)

    def derived(self, given: Sequence[list[Any]], x: dict[int, Scalar], by_name: dict[str, list[Any]]) -> list[Any]:
        moving = [
            rates_along(a, values, by_name[f"{a.name}_dot"]) for a, values in zip(self.program.inputs, given, strict=True)
        ]
        seeds = [[{} if is_zero(rate) else {0: rate} for rate in rates] for rates in moving]
        rates = self._along(outputs_of(self._trace, x), forward(self._trace, x, seeds))
        return [r.get(0, 0.0) for r in rates]


@dataclass(frozen=True)
class PullbackProgram(DerivedProgram):
    """The cotangents x_bar of all arguments of a program for cotangents y_bar of its results: y_bar^T dy/dx, by tangents."""

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.program.name}_pullback"

    @property
    def inputs(self) -> tuple[Input, ...]:
        return with_others(self.program.inputs, [Input(f"{y.name}_bar", y.tangent) for y in self.program.outputs])

    @property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(Output(f"{x.name}_bar", x.tangent) for x in self.program.inputs)

    def derived(self, given: Sequence[list[Any]], x: dict[int, Scalar], by_name: dict[str, list[Any]]) -> list[Any]:
        values, weights = outputs_of(self._trace, x), []
        for y in self.program.outputs:
            bar, here = by_name[f"{y.name}_bar"], values[len(weights) : len(weights) + y.size]
            weights += bar if y.along is None else pulled_back(y.along, here, bar, 1)
        bars = backward(self._trace, x, weights)
        results = []
        for a, value, bar in zip(self.program.inputs, given, bars, strict=True):
            results += bar if a.rate is None else pulled_back(a.rate, value, bar, 1)
        return results


def pulled_back(linear: Program, at: list[Scalar], bar: list[Scalar], argument: int) -> list[Scalar]:
    """The cotangent of one argument of a program that has two, for that of its result."""
    t = trace(linear.flat, [x.size for x in linear.inputs])
    inputs = [at, [0.0] * linear.inputs[argument].size]  # it is linear in that argument: any value will do
    return backward(t, values_of(t, inputs), bar)[argument]


def with_others(inputs: Sequence[Input], others: Sequence[Input]) -> tuple[Input, ...]:
    """Arguments and further ones, those that are optional last."""
    return tuple(sorted((*inputs, *others), key=lambda x: x.optional))
