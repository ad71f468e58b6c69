"""Elimination of constraint rows that depend on others of the same body; they receive their share of the forces afterwards."""

from __future__ import annotations

from typing import Any, NamedTuple


class Reduction(NamedTuple):
    """The map between all M rows and the m independent ones."""

    spread: Any  # (M, m) maps forces of the independent rows to those of all rows with the least norm
    gather: Any  # (m, M) maps targets of all rows to those of the independent rows, by least squares
    norm: Any  # (m, m) spread^T spread, the square of the norm of all forces as a function of the independent ones
    dependent: int  # 1 if the remaining rows are dependent at every configuration


class ReducedRows(NamedTuple):
    """Independent rows in the form that a kernel reads, and the map between these and all rows."""

    rows: Any
    reduction: Reduction


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


def damp_rows(reduction: Reduction, damping, D) -> None:
    """Add to the Delassus matrix of the independent rows what `damping` 1 adds to that of all rows."""
    for r in range(len(D)):
        for s in range(len(D)):
            D[r][s] = D[r][s] + damping * reduction.norm[r][s]
