"""Rows of constraints that depend on others of the same body are left out, and get their part of the forces afterwards."""

from __future__ import annotations

from typing import Any, NamedTuple


class Reduction(NamedTuple):
    """Between all M rows and the m independent ones."""

    spread: Any  # (M, m) the forces of all rows, of least norm, for those of the independent ones
    gather: Any  # (m, M) what the independent rows are to do, in the sense of least squares, for what all are to do
    dependent: int  # 1 if the rows that are left depend on each other wherever the robot is


def gathered(reduction: Reduction, target):
    """Return the targets (m,) of the independent rows for the targets (M,) of all rows."""
    result = [0.0] * len(reduction.gather)
    for r in range(len(reduction.gather)):
        for s in range(len(reduction.spread)):
            result[r] = result[r] + reduction.gather[r][s] * target[s]
    return result


def spread_out(reduction: Reduction, f, force) -> None:
    """Write the forces of all rows."""
    for s in range(len(reduction.spread)):
        total = 0.0
        for r in range(len(reduction.gather)):
            total = total + reduction.spread[s][r] * f[r]
        force[s] = total
