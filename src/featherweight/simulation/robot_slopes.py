"""Derivatives of the steps of many robots, and what is doubtful about them."""

from __future__ import annotations

from typing import NamedTuple

from ..array_types import BooleanMatrix, IntegerMatrix, Integers, Matrix, Tensor, Vector
from .slope_records import AccelerationSlopes
from .smooth_motion import clear
from .stage_records import FOUND, RobotStages


class RobotSlopes(NamedTuple):
    """Derivatives of the steps of many robots, and what is doubtful about them."""

    ends: Tensor  # (robots, 2 nv + na, 3 nv + na + nu), or (1, ...) for products with cotangents only
    cotangents: Matrix  # (robots, 2 nv + na) of the state after the step, or (0, ..)
    products: Matrix  # (robots, 3 nv + na + nu) of the state before, joint forces and controls
    unsure: Integers  # (robots,) 1 for robots with doubtful names
    candidates: IntegerMatrix  # (robots, contacts) those of contacts at the boundary between two states, then -1
    rows: BooleanMatrix  # (robots, joint rows) whether a row is at the boundary between two states
    limits: Matrix  # (robots, values that limits bound) 1 at a limit, see `StepModel.limits`
    nonsmooth: BooleanMatrix  # (robots, 3 nv + na + nu) whether the step has a kink along a direction


def begin_doubtful(x: RobotSlopes, i: int) -> None:
    """Forget what is doubtful about robot i."""
    x.unsure[i] = 0
    for c in range(x.candidates.shape[1]):
        x.candidates[i, c] = -1
    for r in range(x.rows.shape[1]):
        x.rows[i, r] = False
    clear(x.limits[i])
    for k in range(x.nonsmooth.shape[1]):
        x.nonsmooth[i, k] = False


def note_doubtful(one: RobotStages, y: AccelerationSlopes, x: RobotSlopes, i: int) -> None:
    """Note what is doubtful about the acceleration of robot i, next to what is known already."""
    t, n, na, controls = one.touching, len(y.after), len(one.state.act), len(one.state.control)
    capacity, known = x.candidates.shape[1], 0
    x.unsure[i] = 1
    for c in range(t.counts[FOUND]):
        if y.doubtful[c]:
            while known < capacity - 1 and x.candidates[i, known] >= 0:
                known += 1
            x.candidates[i, known] = t.contacts.candidate[c]
    for r in range(x.rows.shape[1]):
        x.rows[i, r] = x.rows[i, r] or y.doubtful[capacity + r]
    for k in range(x.limits.shape[1]):
        x.limits[i, k] = max(x.limits[i, k], y.load.ends[k])
    for k in range(len(y.nonsmooth)):
        place = 3 * n + na + k if k < controls else 2 * n + k - controls
        x.nonsmooth[i, place] = x.nonsmooth[i, place] or y.nonsmooth[k]


def multiply(ends: Matrix, cotangent: Vector, product: Vector) -> None:
    """Write the product of a transposed matrix and a vector."""
    clear(product)
    for row in range(len(cotangent)):
        for column in range(len(product)):
            product[column] += ends[row, column] * cotangent[row]
