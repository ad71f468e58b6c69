"""Vectors with their rates along directions, and functions of them by the chain rule.

Rates are arrays (n, directions): the change of each entry along each direction. The rates of a configuration (nq) are
velocities (nv, directions). Jacobians are those of the engine (`CompiledFunction.derivative`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.integration import write_slopes
from ..array_types import Array
from ..engine.function import CompiledFunction
from ..model.tree import FLOATING
from .forces_at_joints import ForcesAtJoints


class Rated(NamedTuple):
    """A vector (n,), a configuration (nq,) or a number, with its rates. Vectors can be added, and multiplied by numbers."""

    value: Any
    rates: Array

    def __add__(self, other: Rated) -> Rated:  # type: ignore[override]
        return Rated(self.value + other.value, self.rates + other.rates)

    def __sub__(self, other: Rated) -> Rated:
        return Rated(self.value - other.value, self.rates - other.rates)

    def __rmul__(self, factor: float) -> Rated:  # type: ignore[override]
        return Rated(factor * self.value, factor * self.rates)

    def along_more(self, directions: int) -> Rated:
        """Return the same vector with further directions, along which it is constant."""
        return Rated(self.value, np.hstack([self.rates, np.zeros((len(self.rates), directions))]))


def through(function: CompiledFunction[Any], *arguments: Any) -> list[Rated]:
    """Return the results of a function of rated and constant arguments."""
    values = [x.value if isinstance(x, Rated) else x for x in arguments]
    moving = {p.name: x.rates for p, x in zip(function.program.inputs, arguments, strict=True) if isinstance(x, Rated)}
    slopes = iter(_listed(function.derivative(*moving)(*values)))
    return [Rated(y, sum(next(slopes) @ rates for rates in moving.values())) for y in _listed(function(*values))]


def exponential_slopes(kind: int, v: Array) -> tuple[Array, Array]:
    """Return the derivatives of q exp(v), as velocities there, by q and by v, which are the first of the numbers `v`."""
    size = 6 if kind == FLOATING else 3
    by_q, by_v = np.zeros((2, size, size))
    write_slopes(kind, 0, v.tolist(), by_q, by_v)
    return by_q, by_v


def _listed(results: object) -> Any:
    return results if isinstance(results, tuple) else (results,)


class JointMap:
    """The map S(q) from independent velocities to those of all joints, with its rates; the identity without loops."""

    def __init__(self, forces: ForcesAtJoints, q: Rated) -> None:
        self.robot, self.q = forces.robot, q
        self.S = forces.map(q.value)

    @cached_property
    def _slopes(self) -> Array:
        """Rates (nv, n, directions) of the columns of S."""
        slopes: Array = self.robot.spanning_velocity.derivative("q")(self.q.value, np.eye(self.robot.nv))  # type: ignore[attr-defined]
        return slopes @ self.q.rates

    def times(self, x: Array) -> Array:
        """Return S x."""
        return x if self.S is None else self.S @ x

    def slopes(self, x: Array) -> Array:
        """Return rates (n, directions) of S x for constant x (nv,)."""
        return 0.0 * self.q.rates if self.S is None else np.einsum("vrd,v->rd", self._slopes, x)

    def velocities(self, x: Rated) -> Rated:
        """Return S x (n,)."""
        return x if self.S is None else Rated(self.S @ x.value, self.S @ x.rates + self.slopes(x.value))

    def forces(self, f: Rated) -> Rated:
        """Return Sᵀ f (nv,)."""
        if self.S is None:
            return f
        return Rated(self.S.T @ f.value, self.S.T @ f.rates + np.einsum("vrd,r->vd", self._slopes, f.value))
