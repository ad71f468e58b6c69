"""Derivatives of programs, as programs: Jacobians, one direction (pushforward), and cotangents (pullback).

They are made from the trace of a program, and can be traced, compiled and differentiated like any program. Arguments and
results on manifolds (`Input.rate`, `Output.along`) have tangents instead of differences.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from .differentiation import Rates, backward, forward, is_zero
from .jacobian_trace import JacobianTrace, jacobian_trace
from .program import Input, Output, Program, WrappedProgram, nested, split
from .trace import Trace, outputs_of, trace, values_of

Scalar = Any
WASTE_OF_RATES = 1.1  # nodes per live operation of a Jacobian: forward differentiation makes few dead rates
FEWEST = 0.5  # least directions per lane for which lanes pay off


@dataclass(frozen=True)
class DerivedProgram(WrappedProgram):
    """A program made from the trace of another."""

    program: Program
    doc: str = ""

    @property
    def rollable(self) -> bool:
        return False

    def identity(self) -> tuple[object, ...]:
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
        """Return the results, from the arguments of the program, the values of its trace, and all arguments by name."""

    # manifolds

    def _along(self, values: list[Scalar], rates: Sequence[Rates]) -> list[Rates]:
        """Convert rates of results to rates of their tangents."""
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
    """Return the rate of an argument along a tangent."""
    return x.rate.flat(value, tangent) if x.rate else tangent


def units(n: int) -> list[list[float]]:
    """Return the rows of an identity matrix."""
    return [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]


@dataclass(frozen=True)
class JacobianProgram(DerivedProgram):
    """The derivatives dy_dx of all results y of a program with respect to some arguments x.

    The last results, as many scalars as `values` says, are results themselves instead.
    """

    by: tuple[str, ...] = ()
    values: int = field(default=0, kw_only=True)

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.program.name}_derivative"

    @property
    def rollable(self) -> bool:
        """True if the program's rates along each direction are all results."""
        return not self.values

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        return self.program.inputs

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        pairs = itertools.product(self._moving, self._differentiated)
        slopes = tuple(Output(f"d{y.name}_d{x.name}", (*y.tangent, *x.tangent)) for y, x in pairs)
        return slopes + self.program.outputs[len(self._moving) :]

    @cached_property
    def _moving(self) -> tuple[Output, ...]:
        return self.program.outputs[: len(self.program.outputs) - self.values]

    @cached_property
    def _differentiated(self) -> list[Input]:
        return [x for x in self.program.inputs if x.name in self.by]

    def identity(self) -> tuple[object, ...]:
        values = (self.values,) if self.values else ()
        return *super().identity(), self.by, tuple(x.name for x in self.program.inputs), *values

    def nodes_for(self, operations: int) -> int:
        return round(WASTE_OF_RATES * operations) + len(self._trace.graph)  # including the values of the program

    def derived(self, given: Sequence[list[Any]], x: dict[int, Scalar], by_name: dict[str, list[Any]]) -> list[Any]:
        seeds, results = seeded(self.program.inputs, given, self.by), outputs_of(self._trace, x)
        slopes = self._matrices(self._along(results, forward(self._trace, x, seeds)))
        return slopes + results[len(results) - self.values :]

    def _matrices(self, rates: Sequence[Rates]) -> list[Scalar]:
        """Return the concatenated results, from the rates of the program's results."""
        at = first_directions(self.program.inputs, self.by)
        results, first = [], 0
        for y in self._moving:
            size = math.prod(y.tangent)
            for x in self._differentiated:
                columns = range(at[x.name], at[x.name] + math.prod(x.tangent))
                results += [row.get(d, 0.0) for row in rates[first : first + size] for d in columns]
            first += size
        return results

    def in_lanes(self, lanes: int, own: Trace | None = None) -> JacobianTrace | None:
        columns = [math.prod(x.tangent) for x in self._differentiated]
        if sum(columns) < FEWEST * lanes or any(y.along for y in self.program.outputs):
            return None

        def seeds(given: Sequence[list[Any]]) -> list[list[Rates]]:
            return seeded(self.program.inputs, given, self.by)

        return jacobian_trace(self._trace, seeds, [y.size for y in self._moving], columns, lanes, self.values)


def first_directions(inputs: Sequence[Input], by: Sequence[str]) -> dict[str, int]:
    """Return the first direction of each differentiated argument."""
    moving = [x for x in inputs if x.name in by]
    first = itertools.accumulate((math.prod(x.tangent) for x in moving), initial=0)
    return {x.name: d for x, d in zip(moving, first, strict=False)}


def seeded(inputs: Sequence[Input], given: Sequence[list[Scalar]], by: Sequence[str]) -> list[list[Rates]]:
    """Return the rates of arguments along the unit vectors of their tangents."""
    first = first_directions(inputs, by)
    seeds: list[list[Rates]] = []
    for x, values in zip(inputs, given, strict=True):
        own: list[Rates] = [{} for _ in values]
        for d, unit in enumerate(units(math.prod(x.tangent)) if x.name in by else (), first.get(x.name, 0)):
            for rates, rate in zip(own, rates_along(x, values, unit), strict=True):
                if not is_zero(rate):
                    rates[d] = rate
        seeds.append(own)
    return seeds


@dataclass(frozen=True)
class ChainRule(JacobianProgram):
    """The derivatives of project(x, inner(expand(x))), where derivatives of the inner function are given.

    `program` is the whole; `parts` are

        expand    of arguments of the whole; its results are the first arguments of the inner function, by name
        tangent   of a point x on a manifold and its rate: the tangent of the result of that name
        inner     one result, which is the last argument of `project`
        slopes    its derivatives with respect to the results of `expand`, in order; arguments as for the inner function
        project   of arguments of the whole, and the inner result
    """

    parts: tuple[Program, ...] = ()

    @property
    def rollable(self) -> bool:
        return False

    def given(self, option: str) -> ChainRule:
        expand, tangent, inner, slopes, project = self.parts
        parts = expand, tangent, inner.given(option), slopes.given(option), project
        return replace(self, program=self.program.given(option), parts=parts)

    def identity(self) -> tuple[object, ...]:
        return *super().identity(), tuple(p.identity() for p in self.parts)

    def flat(self, *inputs: list[Any]) -> list[Any]:
        expand, tangent, inner, slopes, project = self.parts
        known = {x.name: values for x, values in zip(self.inputs, inputs, strict=True)}
        seeds = dict(zip(known, seeded(self.inputs, inputs, self.by), strict=True))
        values, rates = _moved(expand, known, seeds)
        known |= values
        moving: list[Rates] = []
        for y in expand.outputs:
            own = rates[y.name]
            if y.name == tangent.outputs[0].name:
                own = self._tangents(tangent, known)
            moving += own
        arguments = [known[x.name] for x in inner.inputs]
        [f] = inner.outputs
        known[f.name] = inner.flat(*arguments)
        blocks = [
            nested(m, y.shape) for m, y in zip(split(slopes.flat(*arguments), slopes.outputs), slopes.outputs, strict=True)
        ]
        rows = [[entry for block in blocks for entry in block[i]] for i in range(f.size)]
        seeds[f.name] = [combined(row, moving) for row in rows]
        _, projected = _moved(project, known, seeds)
        return self._matrices([r for y in project.outputs for r in projected[y.name]])

    def _tangents(self, tangent: Program, known: dict[str, list[Scalar]]) -> list[Rates]:
        """Return the rates of the tangents of a point, along the directions of the point from which it is computed."""
        x, x_dot = tangent.inputs
        first = first_directions(self.inputs, self.by)[x.name]
        columns = [tangent.flat(known[x.name], unit) for unit in units(x_dot.size)]
        return [
            {first + d: column[i] for d, column in enumerate(columns) if not is_zero(column[i])}
            for i in range(tangent.outputs[0].size)
        ]


@dataclass(frozen=True)
class OneInLanes(WrappedProgram):
    """A program for derivatives, and a shorter one in lanes with the same results for one state."""

    program: Program
    one: JacobianProgram

    def given(self, option: str) -> OneInLanes:
        one = self.one.given(option) if option in self.one.options else self.one
        return OneInLanes(self.program.given(option), one)

    def identity(self) -> tuple[object, ...]:
        return "one in lanes", self.program.identity(), self.one.identity()

    def in_lanes(self, lanes: int, own: Trace | None = None) -> JacobianTrace | None:
        in_lanes = self.one.in_lanes(lanes)
        whole = own or trace(self.flat, [x.size for x in self.inputs])
        return in_lanes if in_lanes and len(in_lanes.trace.live) < len(whole.live) else None


def _moved(
    program: Program, known: dict[str, list[Scalar]], seeds: dict[str, list[Rates]]
) -> tuple[dict[str, list[Scalar]], dict[str, list[Rates]]]:
    """Return the results of a program and their rates, by name."""
    t = trace(program.flat, [x.size for x in program.inputs])
    x = values_of(t, [known[a.name] for a in program.inputs])
    values = split(outputs_of(t, x), program.outputs)
    rates = split(forward(t, x, [seeds[a.name] for a in program.inputs]), program.outputs)
    names = [y.name for y in program.outputs]
    return dict(zip(names, values, strict=True)), dict(zip(names, rates, strict=True))


def combined(row: Sequence[Scalar], moving: Sequence[Rates]) -> Rates:
    """Return the rates of a linear combination."""
    total: Rates = {}
    for slope, rates in zip(row, moving, strict=True):
        if not is_zero(slope):
            for d, rate in rates.items():
                total[d] = total[d] + slope * rate if d in total else slope * rate
    return total


@dataclass(frozen=True)
class PushforwardProgram(DerivedProgram):
    """The rates of all results of a program along one direction, from arguments x and rates x_dot (tangents on manifolds)."""

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.program.name}_pushforward"

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        pairs = zip(self.dots, self.program.inputs, strict=True)
        return with_others(self.program.inputs, [Input(dot, x.tangent, x.optional) for dot, x in pairs])

    @cached_property
    def dots(self) -> list[str]:
        """Names of the rates of arguments."""
        names = [x.name for x in self.program.inputs]
        return unlike(names, [f"{name}_dot" for name in names])

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(Output(f"{y.name}_dot", y.tangent) for y in self.program.outputs)

    def derived(self, given: Sequence[list[Any]], x: dict[int, Scalar], by_name: dict[str, list[Any]]) -> list[Any]:
        arguments = zip(self.program.inputs, given, self.dots, strict=True)
        moving = [rates_along(a, values, by_name[dot]) for a, values, dot in arguments]
        seeds = [[{} if is_zero(rate) else {0: rate} for rate in rates] for rates in moving]
        rates = self._along(outputs_of(self._trace, x), forward(self._trace, x, seeds))
        return [r.get(0, 0.0) for r in rates]


@dataclass(frozen=True)
class PullbackProgram(DerivedProgram):
    """The cotangents x_bar = y_bar^T dy/dx of all arguments of a program for cotangents y_bar of its results, by tangents."""

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.program.name}_pullback"

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        pairs = zip(self._bars, self.program.outputs, strict=True)
        return with_others(self.program.inputs, [Input(bar, y.tangent) for bar, y in pairs])

    @cached_property
    def _bars(self) -> list[str]:
        """Names of the cotangents of results."""
        return unlike([x.name for x in self.program.inputs], [f"{y.name}_bar" for y in self.program.outputs])

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(Output(f"{x.name}_bar", x.tangent) for x in self.program.inputs)

    def derived(self, given: Sequence[list[Any]], x: dict[int, Scalar], by_name: dict[str, list[Any]]) -> list[Any]:
        values = outputs_of(self._trace, x)
        weights: list[Scalar] = []
        for y, name in zip(self.program.outputs, self._bars, strict=True):
            bar, here = by_name[name], values[len(weights) : len(weights) + y.size]
            weights += bar if y.along is None else pulled_back(y.along, here, bar)
        bars = backward(self._trace, x, weights)
        results = []
        for a, value, bar in zip(self.program.inputs, given, bars, strict=True):
            results += bar if a.rate is None else pulled_back(a.rate, value, bar)
        return results


def pulled_back(linear: Program, at: list[Scalar], bar: list[Scalar]) -> list[Scalar]:
    """Return the cotangent of the second of a program's two arguments, for the cotangent of its result."""
    t = trace(linear.flat, [x.size for x in linear.inputs])
    inputs = [at, [0.0] * linear.inputs[1].size]  # the program is linear in that argument, so its value does not matter
    return backward(t, values_of(t, inputs), bar)[1]


def with_others(inputs: Sequence[Input], others: Sequence[Input]) -> tuple[Input, ...]:
    """Return arguments and further ones, optional ones last."""
    return tuple(sorted((*inputs, *others), key=lambda x: x.optional))


def unlike(taken: Sequence[str], wishes: Sequence[str]) -> list[str]:
    """Return names, with numbers appended if they are taken: derivatives of derivatives would repeat names."""
    names = list(taken)
    for wish in wishes:
        names.append(next(n for n in itertools.chain([wish], (f"{wish}_{k}" for k in itertools.count(2))) if n not in names))
    return names[len(taken) :]
