"""One iteration of inverse kinematics: errors, Jacobians, a step d by priorities and within limits, and the next q.

    1. Compute d by `prioritized_step`, without limits.
    2. Joints that d would move past a limit move to this limit; the others take another step with the remaining errors.
       This repeats up to `passes` times; then any excess over a limit is clipped.
    3. q ⊕ d

Comparisons are sums of magnitudes, |x| = sqrt(x²), because a trace has no branches.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...model.tree import PRISMATIC, REVOLUTE, Tree
from ...spatial import sqrt
from ..contact.operational_space.dense_factors import dot, is_zero
from ..integration import integrate
from .prioritized import Level, prioritized_step
from .task_rows import TaskList, TaskRows, TaskSpec, task_rows

SHARP = 1e-30  # [rad², m²] a comparison is undecided if its sides differ by less than the square root


class StepSettings(NamedTuple):
    """Limits [rad, m] by rows of the tree; damping, as a fraction of the squared error and a constant, for weight one; passes.

    `passes` is the number of times that joints may be fixed at limits.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    share: float
    added: float
    passes: int


def iterate(tree: Tree, tasks: TaskList, settings: StepSettings, q, targets, caution, results) -> None:
    """Write the q after a step, and the measures of q by `write_measures`.

    `caution` multiplies the damping of errors.
    """
    ahead, *measures = results
    rows = task_rows(tree, tasks, q, targets)
    levels = task_levels(tasks, rows, settings, caution)
    d = limited_step(tree, levels, settings, q)
    integrate(tree, q, d, ahead)
    write_measures(tasks, rows, levels, d, measures)


def task_levels(tasks: TaskList, rows: list[TaskRows], settings: StepSettings, caution) -> list[Level]:
    """Return rows of one priority as one level, times the square roots of their weights."""
    levels = []
    for number in sorted({task.level for task in tasks.every}):
        A, e, weights = [], [], []
        for task, (error, slope, _) in zip(tasks.every, rows, strict=True):
            for w, x, row in zip(task.weight, error, slope, strict=True):
                if task.level == number and w > 0.0:
                    A.append([math.sqrt(w) * y for y in row])
                    e.append(math.sqrt(w) * x)
                    weights.append(w)
        levels.append(damped_level(A, e, max(weights), settings, caution))
    return levels


def damped_level(A, e, weight: float, settings: StepSettings, caution) -> Level:
    return Level(A, e, settings.share * caution * dot(e, e) + settings.added * weight, weight)


def limited_step(tree: Tree, levels: list[Level], settings: StepSettings, q) -> list[Any]:
    """Return d (n); joints on which nothing depends have zeros."""
    n = len(tree.parent)
    used = [j for j in range(n) if not all(is_zero(row[j]) for level in levels for row in level.A)]
    levels = [level._replace(A=[[row[j] for j in used] for row in level.A]) for level in levels]
    d = prioritized_step(len(used), levels)
    ranges = {k: range_of(tree, settings, j, q) for k, j in enumerate(used) if has_limits(tree, settings, j)}
    free, at_limit = [1.0] * len(used), [0.0] * len(used)
    for _ in range(settings.passes if ranges else 0):
        for k, (lower, upper) in ranges.items():
            free[k], at_limit[k] = fixed_at_limits(free[k], at_limit[k], d[k], lower, upper)
        again = [
            level._replace(
                A=[[x * f for x, f in zip(row, free, strict=True)] for row in level.A],
                e=[x - dot(row, at_limit) for x, row in zip(level.e, level.A, strict=True)],
            )
            for level in levels
        ]
        d = [f * x + y for f, x, y in zip(free, prioritized_step(len(used), again), at_limit, strict=True)]
    whole = [0.0] * n
    for k, j in enumerate(used):
        whole[j] = clipped(d[k], *ranges[k]) if k in ranges else d[k]
    return whole


def has_limits(tree: Tree, settings: StepSettings, j: int) -> bool:
    return tree.kind[j] in (REVOLUTE, PRISMATIC) and (settings.lower[j] > -math.inf or settings.upper[j] < math.inf)


def range_of(tree: Tree, settings: StepSettings, j: int, q):
    """Return how far a joint may move down and up."""
    x = q[tree.q_index[j]]
    lower, upper = settings.lower[j], settings.upper[j]
    return lower - x if lower > -math.inf else -math.inf, upper - x if upper < math.inf else math.inf


def fixed_at_limits(free, at_limit, d, lower, upper):
    """Return the masks of free and fixed joints: unchanged if d is within limits, otherwise with a joint at its limit."""
    if not is_infinite(upper):
        over = free * is_positive(d - upper)
        free, at_limit = free - over, at_limit + over * upper
    if not is_infinite(lower):
        under = free * is_positive(lower - d)
        free, at_limit = free - under, at_limit + under * lower
    return free, at_limit


def is_infinite(x) -> bool:
    """Return whether a limit is known to be infinite."""
    return isinstance(x, float) and math.isinf(x)


def is_positive(x):
    """Return 1 or 0."""
    return 0.5 + 0.5 * (x / sqrt(x * x + SHARP))


def clipped(x, lower, upper):
    if not is_infinite(lower):
        x = 0.5 * ((lower + x) + magnitude(x - lower))
    if not is_infinite(upper):
        x = 0.5 * ((upper + x) - magnitude(x - upper))
    return x


def magnitude(x):
    return sqrt(x * x)


def write_measures(tasks: TaskList, rows: list[TaskRows], levels: list[Level], d, measures) -> None:
    """Write measures of the errors at q.

    They are the sum of squares of errors over tolerances, at most 1 if all are kept; the squares of those errors; the weighted
    squares of all errors, with smaller weights for lower priorities; and the squared step.
    """
    miss, left, cost, step = measures
    over, total = 0.0, 0.0
    for task, r in zip(tasks.every, rows, strict=True):
        for tolerance, squares in zip(task.tolerance, squared_parts(task, r), strict=True):
            if tolerance < math.inf:
                over = over + (1.0 / tolerance**2) * squares
                total = total + squares
    miss[0] = over
    left[0] = total
    total = 0.0
    for level in reversed(levels):
        total = LOWER_LEVELS * total + dot(level.e, level.e)
    cost[0] = total
    step[0] = dot(d, d)


LOWER_LEVELS = 1e-6  # weight of the squares of one level relative to the level above


def squared_parts(task: TaskSpec, r: TaskRows) -> list[Any]:
    """Return the squared lengths of a task's errors, one for each unit; rows of weight zero are ignored."""
    error = [x if w > 0.0 else 0.0 for w, x in zip(task.weight, r.error, strict=True)]
    ends = (*r.parts[1:], len(error))
    return [dot(error[begin:end], error[begin:end]) for begin, end in zip(r.parts, ends, strict=True)]


def task_errors(tree: Tree, tasks: TaskList, q, targets, errors) -> None:
    """Write the lengths of all tasks' errors: a pose has one in m and one in rad. Rows of weight zero are ignored."""
    rows = task_rows(tree, tasks, q, targets)
    squares = [x for task, r in zip(tasks.every, rows, strict=True) for x in squared_parts(task, r)]
    for k, x in enumerate(squares):
        errors[k] = sqrt(x)


def weighted_rows(tree: Tree, tasks: TaskList, q, targets, results) -> None:
    """Write Jacobian rows and errors of all tasks, times the square roots of their weights, level by level."""
    write_rows(stacked_levels(tasks, task_rows(tree, tasks, q, targets)), results)


def stacked_levels(tasks: TaskList, rows: list[TaskRows]) -> tuple[list[Any], list[list[Any]]]:
    """Return errors, and rows of the Jacobian."""
    levels = task_levels(tasks, rows, StepSettings((), (), 0.0, 0.0, 0), 0.0)
    return [x for level in levels for x in level.e], [row for level in levels for row in level.A]


def write_rows(rows: tuple[list[Any], list[list[Any]]], results) -> None:
    jacobian, errors = results
    for i, (x, row) in enumerate(zip(*rows, strict=True)):
        errors[i] = x
        for j, entry in enumerate(row):
            jacobian[i][j] = entry
