"""Derivatives of Runge-Kutta steps (Kutta 1901; on manifolds Munthe-Kaas 1999), by the chain rule through their stages.

    x_k = q exp(u_k)     u_k = c_k h w_{k-1}     v_k = v + c_k h a_{k-1}     a_k = a(x_k, v_k, u, r)     w_k = w(u_k, v_k)

    q' = q exp(h (w_1 + 2 w_2 + 2 w_3 + w_4) / 6)      v' = v + h (a_1 + 2 a_2 + 2 a_3 + a_4) / 6      c = 0, 1/2, 1/2, 1

w_k is the rate of u_k: v_k, except for joints on curved manifolds, whose derivatives are separate blocks. r is the target of
contacts, a function of q and v, which is the same at all stages: it brings contacts to rest over the step. A target that
follows the velocities of the stages would spoil the order.

Compiled functions write the derivatives of a and r and the blocks for many knots; `write_step` combines them for one knot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import Array, IntegerMatrix, Integers, Matrix, Vector
from ..contact.factors.branches import padded
from ..engine.loops.kernels import compiled, subtract_multiples, subtract_product
from .riccati import KNOTS_AT_ONCE
from .spans import System
from .stage_functions import StageFunctions, called_by_name

STAGES = 4


class StepSlopes(NamedTuple):
    """Sizes, and memory for the derivatives of knots. Matrices lie in `numbers`; their rows are padded to whole vectors."""

    n: int  # velocities
    m: int  # controls
    long: int  # padded 2 n + m: row stride of matrices of derivatives by (dq, dv, du)
    free: int  # 1 if steps are free: D has a column for the step after those of (dq, dv), and a row; otherwise 0
    stride: int  # of rows of D
    blocks: IntegerMatrix  # (k, 2) first velocity and size of each joint on a curved manifold
    links: Matrix  # (KNOTS_AT_ONCE, numbers) for each block: of w_2 to w_4 by u and v, then of x_2 to x_4 and q' by q and u
    target_size: Integers  # (spans,) of r
    call: Integers  # (spans,) number of the first of two calls that write derivatives; -1 for knots that are not steps
    by_step: Matrix  # (KNOTS_AT_ONCE, 2 n) derivatives of q' and v' by free steps
    numbers: Vector  # first X, U, V, W, -A, and the sums of W and -A, (n, 2 n + m) each
    targets: int  # derivatives of r (target_size, 2 n) of KNOTS_AT_ONCE knots
    accelerations: int  # derivatives of a (n, padded 2 n + m, and target_size) of all stages of KNOTS_AT_ONCE knots


class StepMemory:
    """The memory of derivatives of steps, and the arrays in it that compiled functions read and write."""

    def __init__(self, system: System, spans: Sequence[StageFunctions]) -> None:
        n, m, steps = system.robot.nv, len(system.drives), [span.steps for span in spans]
        target_size, call = [span.target_size for span in spans], [2 * sum(steps[:i]) if x else -1 for i, x in enumerate(steps)]
        long, most, knots = padded(2 * n + m), max(target_size), KNOTS_AT_ONCE * any(steps)
        begins = [int(x) for x in np.cumsum([7 * n * long * any(steps), knots * most * long])]
        numbers = np.zeros(begins[-1] + knots * STAGES * n * (long + padded(most)))
        blocks = np.array(system.blocks, np.int64).reshape(-1, 2)
        links = np.zeros((knots, 14 * int((blocks[:, 1] ** 2).sum())))
        tables = np.array(target_size, np.int64), np.array(call, np.int64), np.zeros((knots, 2 * n * system.free))
        stride = padded(2 * n + system.controls)
        self.slopes = StepSlopes(n, m, long, int(system.free), stride, blocks, links, *tables, numbers, *begins)
        self.states = {x: np.zeros((knots, STAGES, k)) for x, k in (("q", system.robot.nq), ("v", n), ("tau", n))}
        self.target = np.zeros(knots * STAGES * most)

    def arrays(self, i: int) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return the results of a span's `stages`, and the arguments and results of its `accelerations`."""
        s, target_size = self.slopes, int(self.slopes.target_size[i])
        target = self.target[: KNOTS_AT_ONCE * STAGES * target_size].reshape(KNOTS_AT_ONCE, STAGES, target_size)
        shape, last = (KNOTS_AT_ONCE, target_size, s.long), (KNOTS_AT_ONCE * STAGES, s.n, s.long + padded(target_size))
        by_state = s.numbers[s.targets : s.targets + int(np.prod(shape))].reshape(shape)
        of_stages = s.numbers[s.accelerations : s.accelerations + int(np.prod(last))].reshape(last)
        stages = {f"stage_{name}": x for name, x in (self.states | {"target": target}).items()}
        each = {name.removeprefix("stage_"): x.reshape(len(of_stages), -1) for name, x in stages.items()}
        return stages | {"links": s.links, "target_slopes": by_state}, each | {"acceleration_slopes": of_stages}


def write_step(s: StepSlopes, span: int, knot: int, h: float, motion: Vector, begin: int) -> None:
    """Write D: derivatives of q', without those of q, and of v' by (dq, dv, du), row by row from `begin`.

    If steps are free, D also has their column and row.
    `knot` is the number among the knots whose derivatives are known.
    """
    x, n, long, stride = s.numbers, s.n, s.long, s.stride
    size = n * long
    U, V, W, A, W_sum, A_sum = size, 2 * size, 3 * size, 4 * size, 5 * size, 6 * size
    clear(x, 0, 7 * size)
    for k in range(STAGES):
        c = 0.0 if k == 0 else h if k == STAGES - 1 else 0.5 * h
        weight = 1.0 if k == 0 or k == STAGES - 1 else 2.0
        write_multiple(x, U, W, c, size)
        write_multiple(x, V, A, -c, size)
        for i in range(n):
            x[V + i * long + n + i] += 1.0
        write_places(s, knot, k)
        write_rates(s, knot, k)
        write_accelerations(s, span, knot, k)
        subtract_multiples(x, W_sum, W, size, size, (-weight,))
        subtract_multiples(x, A_sum, A, size, size, (-weight,))
    write_multiple(x, U, W_sum, h / 6.0, size)
    write_places(s, knot, STAGES)
    for i in range(n):
        for j in range(2 * n + s.m):
            to = j + s.free if j >= 2 * n else j
            motion[begin + i * stride + to] = x[i * long + j]
            motion[begin + (n + i) * stride + to] = -h / 6.0 * x[A_sum + i * long + j]
        motion[begin + i * stride + i] -= 1.0
        motion[begin + (n + i) * stride + n + i] += 1.0
    if s.free > 0:
        for i in range(2 * n):
            motion[begin + i * stride + 2 * n] = s.by_step[knot, i]
        clear(motion, begin + 2 * n * stride, stride)
        motion[begin + 2 * n * stride + 2 * n] = 1.0


def write_multiple(x: Vector, target: int, source: int, factor: float, size: int) -> None:
    """Write a matrix times a number."""
    subtract_multiples(x, target, source, size, size, (-factor,), True)


def clear(x: Vector, begin: int, count: int) -> None:
    """Set numbers to zero."""
    for i in range(begin, begin + count):
        x[i] = 0.0


def write_places(s: StepSlopes, knot: int, k: int) -> None:
    """Write X, the derivatives of x_k; the fifth is q'."""
    x, n, long, at = s.numbers, s.n, s.long, 0
    write_multiple(x, 0, n * long, 1.0, n * long)
    for i in range(n):
        x[i * long + i] += 1.0
    for b in range(len(s.blocks) if k > 0 else 0):
        first, size = s.blocks[b, 0], s.blocks[b, 1]
        own = at + (4 + 2 * k) * size * size
        for i in range(size):
            row = (first + i) * long
            clear(x, row, long)
            for j in range(size):
                place = own + i * size + j
                x[row + first + j] += s.links[knot, place]
                factor = s.links[knot, place + size * size]
                subtract_multiples(x, row, n * long + (first + j) * long, long, long, (-factor,))
        at += 14 * size * size


def write_rates(s: StepSlopes, knot: int, k: int) -> None:
    """Write W, the derivatives of w_k."""
    x, long, at = s.numbers, s.long, 0
    size = s.n * long
    U, V, W = size, 2 * size, 3 * size
    write_multiple(x, W, V, 1.0, size)
    for b in range(len(s.blocks) if k > 0 else 0):
        first, size = s.blocks[b, 0], s.blocks[b, 1]
        own = at + 2 * (k - 1) * size * size
        for i in range(size):
            row = W + (first + i) * long
            clear(x, row, long)
            for j in range(size):
                place, source = own + i * size + j, (first + j) * long
                subtract_multiples(x, row, U + source, long, long, (-s.links[knot, place],))
                subtract_multiples(x, row, V + source, long, long, (-s.links[knot, place + size * size],))
        at += 14 * size * size


def write_accelerations(s: StepSlopes, span: int, knot: int, k: int) -> None:
    """Write -A, the negative derivatives of a_k."""
    x, n, m, long, target_size = s.numbers, s.n, s.m, s.long, s.target_size[span]
    size, wide = n * long, long + padded(target_size)
    rows, first, sizes = (4 * size, long), s.accelerations + (knot * STAGES + k) * n * wide, (n, long, n)
    clear(x, 4 * size, size)
    for i in range(n):
        row, own = 4 * size + i * long, first + i * wide
        for j in range(0 if k == 0 else 2 * n, 2 * n + m):  # X and V of the first stage are parts of the identity
            x[row + j] = -x[own + j]
    if k > 0:
        subtract_product(x, rows, (0, long), (first, wide, 1), sizes)
        subtract_product(x, rows, (2 * size, long), (first + n, wide, 1), sizes)
    target_rows = s.targets + knot * target_size * long, long
    subtract_product(x, rows, target_rows, (first + long, wide, 1), (n, long, target_size))


@compiled
def write_one_step(s: StepSlopes, span: int, h: float, motion: Vector) -> None:
    """Write D of the first knot whose derivatives are known."""
    write_step(s, span, 0, h, motion, 0)


def motions(memory: StepMemory, i: int, span: StageFunctions, known: dict[str, Array]) -> Array:
    """Return D (k, rows, columns) for k states of a span, from the arguments of `StageFunctions.stages` by name.

    If steps are free, "by_step" has the derivatives by them (k, 2 n).
    """
    s, (stages, each) = memory.slopes, memory.arrays(i)
    found, count = called_by_name(span.stages, known), len(known["q"])
    D, h = np.zeros((count, (2 * s.n + s.free) * s.stride)), np.broadcast_to(known["h"], count)
    for k in range(count):
        for name, x in found.items():
            stages[name][0] = x[k]
        inputs = [each[x.name][:STAGES] for x in span.accelerations.program.inputs]
        each["acceleration_slopes"][:STAGES] = span.accelerations(*inputs)
        if s.free:
            s.by_step[0] = known["by_step"][k]
        write_one_step(s, i, float(h[k]), D[k])
    return D.reshape(count, -1, s.stride)[:, :, : 2 * s.n + s.free + s.m]
