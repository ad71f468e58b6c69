"""Programs in which points on manifolds are plain arrays, for libraries that differentiate arrays of numbers.

Tangents are changes dx of the array. A change that leaves the manifold counts by its projection P dx, the nearest tangent:
P = R (Rᵀ R)⁻¹ Rᵀ for the rates R v of the manifold (`Input.rate`). The transpose of P is P, so cotangents are tangent to the
manifold, and <x_bar, dx> = <v_bar, v> for dx = R v.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .derivative_program import units
from .differentiation import is_zero
from .jacobian_trace import JacobianTrace
from .program import Input, Output, Program, WrappedProgram
from .trace import Trace

Scalar = Any


@dataclass(frozen=True)
class AmbientProgram(WrappedProgram):
    """The same function, with derivatives of its arrays with respect to its arrays."""

    program: Program

    @functools.cached_property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs in order, all required, because derivatives append further ones."""
        return tuple(x._replace(optional=False, rate=x.rate and TangentProjection.of(x.rate)) for x in self.program.inputs)

    @functools.cached_property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(y._replace(along=None) for y in self.program.outputs)

    def in_lanes(self, lanes: int, own: Trace | None = None) -> JacobianTrace | None:
        return self.program.in_lanes(lanes, own)


@dataclass(frozen=True)
class TangentProjection(WrappedProgram):
    """The tangent part of a change of a point on a manifold; `program` gives the manifold's rates."""

    program: Program

    @classmethod
    def of(cls, rate: Program) -> TangentProjection:
        return rate if isinstance(rate, TangentProjection) else cls(rate)

    @functools.cached_property
    def inputs(self) -> tuple[Input, ...]:
        x = self.program.inputs[0]
        return x, Input("change", x.shape)

    def identity(self) -> tuple[object, ...]:
        return "projection", self.program.identity()

    def flat(self, *inputs: list[Scalar]) -> list[Scalar]:
        x, change = inputs
        columns = [self.program.flat(x, unit) for unit in units(self.program.inputs[1].size)]
        sparse = [{i: r for i, r in enumerate(column) if not is_zero(r)} for column in columns]
        along = solved([[_dot(a, b) for b in sparse] for a in sparse], [_dot(a, dict(enumerate(change))) for a in sparse])
        return [_total(r[i] * v for r, v in zip(sparse, along, strict=True) if i in r) for i in range(len(change))]


def _total(terms: Iterable[Scalar]) -> Scalar:
    """Return the sum in order; the result of `sum` for floats depends on Python's version."""
    return functools.reduce(operator.add, terms, 0.0)


def _dot(a: dict[int, Scalar], b: dict[int, Scalar]) -> Scalar:
    return _total(a[i] * b[i] for i in a if i in b)


def solved(A: list[list[Scalar]], b: list[Scalar]) -> list[Scalar]:
    """Solve A x = b for a positive definite A by L D Lᵀ, skipping structural zeros."""
    n, x = len(b), list(b)
    L: list[dict[int, Scalar]] = [{} for _ in range(n)]  # row by row
    inverse: list[Scalar] = []  # inverse of D
    for i in range(n):
        row: dict[int, Scalar] = {}  # row of L D
        for j in range(i):
            y = A[i][j] - _total(row[k] * L[j][k] for k in row if k in L[j])
            if not is_zero(y):
                row[j] = y
        L[i] = {j: y * inverse[j] for j, y in row.items()}
        inverse.append(1.0 / (A[i][i] - _total(row[j] * L[i][j] for j in row)))
        x[i] = x[i] - _total(L[i][j] * x[j] for j in L[i])
    x = [y * d for y, d in zip(x, inverse, strict=True)]
    for i in reversed(range(n)):
        for j, y in L[i].items():
            x[j] = x[j] - y * x[i]
    return x


def is_plain(x: Input) -> bool:
    """Return whether an argument may have any numbers: it is not on a manifold with fewer dimensions."""
    rate = x.rate.program if isinstance(x.rate, TangentProjection) else x.rate
    return rate is None or rate.inputs[1].shape == x.shape


def is_ambient(program: Program) -> bool:
    """Return whether derivatives of a program are already those of arrays with respect to arrays."""
    manifolds = [x for x in program.inputs if x.rate and not isinstance(x.rate, TangentProjection)]
    return not manifolds and not any(y.along for y in program.outputs)
