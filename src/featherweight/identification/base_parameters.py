"""Base parameters (Gautier and Khalil 1990), by QR (Gautier 1991): the combinations that determine joint forces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array, Integers, Matrix, Vector
from ..checks import array_of, checked
from ..engine.trace import evaluate
from ..extras import imports_from_extra
from ..robot.linear_parameters import Chosen, Regressor
from ..robot.robot import Robot
from ..summaries import Several, summarized
from .data import deviations_of, stacked

DEPENDENT = 1e-8  # residual of a dependent column, relative to its length; loops are closed to 1e-12
SEED = 0  # of the random states, which do not change the result but for rounding
SHOWN = 1e-7  # smaller coefficients of normalized columns are rounding errors


@summarized
class BaseFit(NamedTuple):
    """Fitted base parameters: `values` (r) with standard `deviations` (r), and the residual force of each joint."""

    values: Vector
    deviations: Vector
    residual: Vector  # (nv) root mean square [N m, N]


@dataclass(frozen=True)
class BaseParameters:
    """The r base parameters of p parameters: tau = regressor.function(q, v, a)[..., columns] @ groups @ parameters."""

    regressor: Regressor
    columns: tuple[int, ...]  # (r) columns of the regressor
    groups: Matrix  # (r, p), ones at `columns`

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"<BaseParameters: {len(self)} of {len(self.regressor.names)}>"

    @property
    def names(self) -> tuple[str, ...]:
        """(r) names of the first parameter of each group."""
        return Several(self.regressor.names[k] for k in self.columns)

    @cached_property
    def expressions(self) -> tuple[str, ...]:
        """(r) the base parameters in words: "link2.Izz + link3.Iyy - 0.4 link3.mx"."""
        return Several(_sum(self.regressor.names, row, k) for row, k in zip(self.groups, self.columns, strict=True))

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Names of parameters on which joint forces do not depend."""
        names = np.array(self.regressor.names)
        return Several(names[~self.groups.any(axis=0)].tolist())

    @property
    def values(self) -> Vector:
        """(r) values of the robot."""
        return self.of(self.regressor.values)

    def of(self, parameters: ArrayLike) -> Array:
        """Return the base parameters (..., r) of parameters (..., p)."""
        return np.asarray(array_of("BaseParameters.of: parameters", parameters, "...", self.groups.shape[1]) @ self.groups.T)

    def matrix(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Return the regressor of the base parameters (..., nv, r)."""
        return np.asarray(self.regressor.function(q, v, a)[..., self.columns])

    @checked
    def fit(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, deviations: ArrayLike | None = None) -> BaseFit:
        """Fit measured forces tau (n, nv) at q (n, nq), v and a (n, nv) by least squares, weighted by the noise of each joint.

        `deviations` (nv) are the standard deviations of the noise of each joint's forces. By default they are estimated by a
        first fit with equal weights. The deviations of the result assume noise in forces only, independent between samples.
        Raises ValueError for wrong shapes, too few samples, or motions that do not determine a base parameter.
        """
        Y, forces = stacked(self.regressor, (q, v, a), tau)
        Y = Y[..., self.columns]
        if Y.shape[0] * Y.shape[1] <= len(self):
            raise ValueError(f"{len(self)} base parameters need more samples than {len(Y)}")
        sigma = deviations_of(Y, forces, deviations)
        A, b = Y / sigma[:, None], forces / sigma
        scale = np.linalg.norm(A, axis=(0, 1))
        if not scale.all():
            raise ValueError(f"these motions do not excite {self.names[int(np.argmin(scale))]}: its column is zero")
        Q, R = np.linalg.qr((A / scale).reshape(-1, len(self)))
        left = np.abs(np.diagonal(R))
        if left.min() < DEPENDENT:
            raise ValueError(f"these motions do not separate {self.names[int(np.argmin(left))]} from other base parameters")
        values = np.linalg.solve(R, Q.T @ b.ravel()) / scale
        inverse = np.linalg.inv(R)
        rest = forces - Y @ values
        return BaseFit(values, np.linalg.norm(inverse, axis=1) / scale, np.sqrt(np.mean(rest**2, axis=0)))


@checked
def base_parameters(robot: Robot, joint_friction: Chosen = False, armature: Chosen = False) -> BaseParameters:
    """Return the base parameters of a robot, with `joint_friction` and `armature` as in `Robot.extended_regressor`.

    Their number is the rank of the regressor at random states, by QR with column pivoting. In the order of the bodies, each
    parameter that is independent of earlier ones begins a group; dependent parameters are added to groups, as by Gautier and
    Khalil. The result is checked at further states.

    Raises ImportError without scipy, and ArithmeticError if the regressor is too ill-conditioned.
    """
    regressor, rng = robot.extended_regressor(joint_friction, armature), np.random.default_rng(SEED)
    p = len(regressor.names)
    W = _random_regressor(robot, regressor, 4 * p, rng)
    norms = np.linalg.norm(W, axis=0)
    moved = np.flatnonzero(norms > DEPENDENT * norms.max())
    A = W[:, moved] / norms[moved]
    chosen = _independent(A)
    rest = np.setdiff1d(np.arange(len(moved)), chosen)
    made_up = np.linalg.lstsq(A[:, chosen], A[:, rest], rcond=None)[0]
    made_up[np.abs(made_up) < SHOWN] = 0.0
    groups = np.zeros((len(chosen), p))
    columns = moved[chosen]
    groups[np.arange(len(chosen)), columns] = 1.0
    groups[:, moved[rest]] = made_up * norms[moved[rest]] / norms[columns][:, None]
    fresh = _random_regressor(robot, regressor, p, rng)
    if np.linalg.norm((fresh - fresh[:, columns] @ groups) / norms.max()) > 1e-6 * np.linalg.norm(fresh / norms.max()):
        raise ArithmeticError(
            f"{robot.name}: base parameters cannot be distinguished from rounding errors; check units and masses"
        )
    return BaseParameters(regressor, tuple(columns.tolist()), groups)


def _random_regressor(robot: Robot, regressor: Regressor, rows: int, rng: np.random.Generator) -> Matrix:
    """Return the regressor at random states, stacked, with at least this many rows.

    It is evaluated from the trace, which takes less time than compiling it.
    """
    n = -(-rows // robot.nv) + 1
    states = robot.random_configuration(rng=rng, size=n), *rng.standard_normal((2, n, robot.nv))
    f, columns = regressor.function, len(regressor.names)
    if f.too_large or f.execution != "traced":
        return np.asarray(f(*states)).reshape(-1, columns)
    values = [np.broadcast_to(x, n) for x in evaluate(f.trace, [list(x.T) for x in states])]
    return np.array(values).T.reshape(-1, columns)


def _independent(A: Matrix) -> Integers:
    """Return the first columns of unit length that span all columns of A; column pivoting gives their number."""
    with imports_from_extra("identification", "base parameters need scipy"):
        from scipy.linalg import qr
    pivoted, order = qr(A, mode="r", pivoting=True)
    rank = int(np.sum(np.abs(np.diagonal(pivoted)) > DEPENDENT))
    first = np.flatnonzero(np.abs(np.diagonal(np.linalg.qr(A, mode="r"))) > DEPENDENT)
    return first if len(first) == rank else np.sort(order[:rank])


def _sum(names: tuple[str, ...], coefficients: Vector, first: int) -> str:
    def terms() -> Iterator[str]:
        yield names[first]
        for k in np.flatnonzero(coefficients):
            if k != first:
                size = f"{abs(coefficients[k]):.4g}"
                yield f"{'-' if coefficients[k] < 0.0 else '+'} {'' if size == '1' else size + ' '}{names[k]}"

    return " ".join(terms())
