"""Costs of many sequences of controls from one state, by the dynamics of the problem, in lanes and on threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Integers, Tensor, Vector
from ..engine.loops.kernels import CompiledLoop, Table
from ..engine.loops.prepared_calls import BatchCalls, batch_calls, call_batch
from .laws import Laws, cost_of_row, outside
from .layout import Layout
from .terms import PARAMETERS

AT_ONCE = 128  # motions whose states of a knot fit the second-level cache


class Motions(NamedTuple):
    """Motions side by side."""

    q: Tensor  # (knots + 1, motions, nq)
    v: Tensor
    u: Tensor  # (knots, motions, nu)
    row: Vector  # the rows of all motions at the first knot, then at the second, ...


class Sampled(NamedTuple):
    """Motions, what their knots are, and their costs."""

    motions: Motions
    stage: Integers  # (knots + 1,)
    begin: Integers  # (stages + 1,) first knots of stages
    rows: Integers  # (knots + 2,) first rows of knots
    laws: Laws
    cost: Vector  # (motions,)
    penalty: Vector  # (1,)
    step: BatchCalls  # by stages


def follow(s: Sampled, count: int) -> int:
    """Follow the controls of the first `count` motions and sum their costs."""
    knots, most = len(s.motions.u), len(s.cost)
    for a in range(count):
        s.cost[a] = 0.0
    for k in range(knots + 1):
        first, width = s.rows[k], s.rows[k + 1] - s.rows[k]
        if k < knots or width > 0:
            call_batch(s.step, s.stage[k], k - s.begin[s.stage[k]], count)
        for i in range(width):
            add_costs(s, count, first + i, first * most + i, width)
    return 0


def add_costs(s: Sampled, count: int, i: int, at: int, width: int) -> None:
    """Add the costs of a row of all motions, which lie `width` numbers apart; constraints have no multipliers here."""
    laws, row = s.laws, s.motions.row
    weight, low, high = laws.weight[i], laws.low[i], laws.high[i]
    if weight == 0.0:
        return
    if laws.constraint[i]:
        half = 0.5 * s.penalty[0] * weight
        for a in range(count):
            e = outside(row[at + a * width], low, high)
            s.cost[a] += half * e * e
    elif high > 1e300:  # squares, without a width
        half = 0.5 * weight
        for a in range(count):
            r = row[at + a * width]
            s.cost[a] += half * r * r
    else:
        for a in range(count):
            s.cost[a] += cost_of_row(laws, i, row[at + a * width], 0.0)


FOLLOW = CompiledLoop(follow, 1, what="sampling in optimal control")


def arrays_of_stage(layout: Layout, i: int, motions: Motions, parameters: Array) -> dict[str, Array]:
    """Return arguments and results of a stage's step for motions side by side, which share parameters."""
    stage, count = layout.stages[i], motions.q.shape[1]
    knots, rows = layout.knots_of_stage(i), layout.rows_of_stage(i)
    own: dict[str, Array] = {"q": motions.q, "v": motions.v, PARAMETERS: side_by_side(parameters, count)}
    if not stage.end:
        own |= {"u": motions.u, "h": side_by_side(layout.h, count), "ahead": motions.q[1:], "velocity": motions.v[1:]}
    found = {name: x[knots] for name, x in own.items()}
    found["rows"] = motions.row[rows.start * count : rows.stop * count].reshape(-1, count, stage.rows)
    return found


def side_by_side(x: Array, count: int) -> Array:
    """Return the same for all motions: (k, count, ...)."""
    return np.broadcast_to(x[:, None], (len(x), count, *x.shape[1:]))


def in_order(function: Any, arrays: Mapping[str, Array]) -> list[Array]:
    """Return the arrays of a function's arguments and results."""
    return [arrays[x.name] for x in (*function.program.inputs, *function.program.outputs)]


class SampledMotions:
    """Memory for motions of one thread, and the compiled steps on it."""

    def __init__(self, layout: Layout) -> None:
        knots, robot, nu = layout.knots, layout.robot, len(layout.system.drives)
        self.parameters = np.zeros((knots + 1, layout.size))
        shapes = (knots + 1, AT_ONCE, robot.nq), (knots + 1, AT_ONCE, robot.nv), (knots, AT_ONCE, nu)
        q, v, u = (np.zeros(shape) for shape in shapes)
        motions = self.motions = Motions(q, v, u, np.zeros(AT_ONCE * int(layout.rows[-1])))
        stages = [(stage.step, arrays_of_stage(layout, i, motions, self.parameters))
                  for i, stage in enumerate(layout.stages) if stage.rows]  # fmt: skip
        calls, self._kept = batch_calls([f for f, _ in stages], [in_order(f, arrays) for f, arrays in stages])
        tables = layout.stage_of_knot, np.array(layout.begin, np.int64), layout.rows.astype(np.int64)
        self.sampled = Sampled(motions, *tables, layout.laws, np.zeros(AT_ONCE), np.zeros(1), calls)
        self._table = Table(self.sampled)
        self._run = FOLLOW.for_tables(self._table)

    def costs(self, q: Array, v: Array, u: Array, penalty: float, costs: Array) -> None:
        """Write the costs (n,) of controls u (knots, n, nu)."""
        self.sampled.penalty[0] = penalty
        for first in range(0, len(costs), AT_ONCE):
            count = min(AT_ONCE, len(costs) - first)
            self.motions.q[0], self.motions.v[0] = q, v
            self.motions.u[:, :count] = u[:, first : first + count]
            self._run(self._table.address, count)
            costs[first : first + count] = self.sampled.cost[:count]
        if self.sampled.step.failed[0]:
            raise MemoryError("no memory for the workspace of optimal control")
