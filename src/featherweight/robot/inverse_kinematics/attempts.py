"""Batches of problems: each row of a batch is an attempt, which ends solved or stuck and is then restarted elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...array_types import Array
from ...engine.progress import Progress

Iteration = Callable[..., tuple[Array, Array, Array, Array, Array]]  # see InverseKinematics.iteration
Draw = Callable[[Array], Array]  # returns initial configurations for problems given by their numbers

HASTY = 8  # iterations of a single attempt before the check for oscillation, which is slower than an iteration
YOUNG = 4  # iterations before an attempt may be stuck
STALLED = 0.01  # of squared errors of tasks with tolerances: an attempt with a smaller squared step is stuck
MORE_AT_REST = 10  # factor of the iterations of an attempt that must come to rest
POLISHING = 100  # iterations for the best attempts at unsolved problems,
POLISHED = 1e-20  # unless all squared steps are smaller earlier
ROWS_IN_USE = 512  # with several attempts at one problem if few problems are left,
MOST_ATTEMPTS = 64  # but at most this many at each
SELDOM = 3  # iterations between checks for finished attempts; a check takes about as long as the iterations
TO_AND_FRO = 0.3  # a step oscillates if it goes back by more than this fraction of the step before
MORE, LESS = 3.0, 0.7  # factors of caution after an oscillating step, and after others
LEAST, MOST = 1e-4, 1e6  # bounds of caution, which starts at 1
ALIVE = 0.75  # fraction of rows with open problems, below which the other rows are dropped


class AttemptLimits(NamedTuple):
    """Limits of the search: iterations of an attempt, attempts at a problem, and the squared step of an attempt at rest.

    The squared step is infinite unless some tasks are minimized rather than kept within a tolerance.
    """

    iterations: int
    attempts: int
    rest: float

    @property
    def longest(self) -> int:
        """The iterations of an attempt; more if it must come to rest."""
        return self.iterations if self.rest == math.inf else MORE_AT_REST * self.iterations


class Outcome(NamedTuple):
    """The best q of each problem, whether it is a solution, and the numbers of iterations and restarts."""

    q: Array
    solved: Array
    iterations: Array
    attempts: Array


class Caution:
    """The damping of rows, which increases when steps oscillate: if errors remain, Newton's steps may stay too long.

    Without the curvature of constraints, steps overshoot by any factor (Björck 1996, chapter 9, on large residuals).
    """

    def __init__(self, rows: int) -> None:
        self.values = np.ones(rows)
        self._last: Array | None = None

    def see(self, q: Array, ahead: Array, kept: Array | bool = True) -> None:
        """Record steps from q to ahead of all rows; steps may be bold once tolerances are kept and only rest is sought."""
        step = ahead - q
        if self._last is not None and len(self._last) == len(step):
            turned = np.einsum("ij,ij->i", step, self._last)
            back = turned < -TO_AND_FRO * np.einsum("ij,ij->i", self._last, self._last)
            self.values = np.where(
                back, np.minimum(MORE * self.values, MOST), np.maximum(LESS * self.values, np.where(kept, LEAST, 1.0))
            )
        self._last = step

    def begin(self, rows: Array) -> None:
        """Reset rows that restart."""
        self.values[rows] = 1.0
        if self._last is not None:
            self._last[rows] = 0.0

    def keep(self, rows: Array, more: int) -> None:
        """Keep these rows only, and add `more` rows that restart."""
        self.values = np.concatenate([self.values[rows], np.ones(more)])
        self._last = None


class Search:
    """Solves problems with `targets` (k, n) from q (k, nq) and, when an attempt gets stuck, from random configurations."""

    def __init__(
        self, iterate: Iteration, draw: Draw, q: Array, targets: Array, limits: AttemptLimits, what: str = "inverse kinematics"
    ) -> None:
        k, self.what = len(q), what
        self.iterate, self.draw, self.limits = iterate, draw, limits
        self.targets = targets
        self.best, self.cost = q.copy(), np.full(k, np.inf)
        self.solved, self.open = np.zeros(k, dtype=bool), np.ones(k, dtype=bool)
        self.iterations, self.attempts = np.zeros(k, dtype=int), np.ones(k, dtype=int)
        self.q, self.aims = q.copy(), targets  # one for each row, which is an attempt at the problem `owner`
        self.owner, self.age, self.alive = np.arange(k), np.zeros(k, dtype=int), np.ones(k, dtype=bool)
        self.caution = Caution(k) if limits.rest < math.inf else None

    def run(self) -> Outcome:
        with Progress(self.what, len(self.open)) as progress:
            self._search(progress)
        self._polish(np.flatnonzero(~self.solved))
        return Outcome(self.best, self.solved, self.iterations, self.attempts)

    def _search(self, progress: Progress) -> None:
        """Iterate until all problems are closed."""
        count = 0
        while len(self.owner):
            count += 1
            ahead, miss, left, cost, move = self.iterate(self.q, self.aims, self.caution.values if self.caution else 1.0)
            if self.caution:
                self.caution.see(self.q, ahead, miss <= 1.0)
            here, self.q = self.q, ahead
            self.age += 1
            if count % SELDOM == 0:
                self._sort_out(here, miss, left, cost, move)
                progress.advance(int(np.count_nonzero(~self.open)) - progress.done)

    def _sort_out(self, here: Array, miss: Array, left: Array, cost: Array, move: Array) -> None:
        """End attempts that are solved or stuck."""
        going = self.alive & self.open[self.owner]
        kept = miss <= 1.0
        solved = kept & (move <= self.limits.rest) & going
        stalled = ~kept & (self.age >= YOUNG) & ~(move >= STALLED * left)
        stuck = (stalled | (self.age >= self.limits.longest)) & going & ~solved
        rows = np.flatnonzero(solved)
        if len(rows):
            problems = self.owner[rows]
            self.best[problems], self.solved[problems], self.open[problems] = here[rows], True, False
            self.iterations[problems] += self.age[rows]
        rows = np.flatnonzero(stuck)
        if len(rows):
            self._restart(rows, here, cost)
        going = self.alive & self.open[self.owner]
        if np.count_nonzero(going) <= ALIVE * len(going):
            self._enlarge(going)

    def _restart(self, rows: Array, here: Array, cost: Array) -> None:
        """Restart stuck rows elsewhere, as long as their problems are open and have attempts left."""
        rows = rows[np.argsort(-cost[rows], kind="stable")]  # the best row of a problem comes last, and its result stays
        problems = self.owner[rows]
        better = (cost[rows] < self.cost[problems]) & self.open[problems]
        self.best[problems[better]], self.cost[problems[better]] = here[rows[better]], cost[rows[better]]
        np.add.at(self.iterations, problems, self.age[rows])
        again = rows[(_rank(problems) < self.limits.attempts - self.attempts[problems]) & self.open[problems]]
        np.add.at(self.attempts, self.owner[again], 1)
        self.q[again] = self.draw(self.owner[again])
        self.age[again] = 0
        if self.caution:
            self.caution.begin(again)
        self.alive[rows] = False
        self.alive[again] = True
        running = np.bincount(self.owner[self.alive], minlength=len(self.open))
        self.open[problems[running[problems] == 0]] = False

    def _enlarge(self, going: Array) -> None:
        """Drop rows of closed problems; if few are left, make several attempts at each problem at once."""
        rows = np.flatnonzero(going)
        left = np.flatnonzero(self.open)
        more = np.zeros(0, dtype=int)
        if len(rows) < ROWS_IN_USE and len(left):
            running = np.bincount(self.owner[rows], minlength=len(self.open))[left]
            each = min(MOST_ATTEMPTS, ROWS_IN_USE // len(left))
            more = np.repeat(left, np.maximum(0, np.minimum(each - running, self.limits.attempts - self.attempts[left])))
            np.add.at(self.attempts, more, 1)
        if self.caution:
            self.caution.keep(rows, len(more))
        self.owner = np.concatenate([self.owner[rows], more])
        self.alive = np.ones(len(self.owner), dtype=bool)
        self.age = np.concatenate([self.age[rows], np.zeros(len(more), dtype=int)])
        self.q = np.concatenate([self.q[rows], self.draw(more)]) if len(more) else self.q[rows]
        self.aims = self.targets[self.owner]

    def _polish(self, left: Array) -> None:
        """Reduce the errors of the best attempts at unsolved problems to a local minimum."""
        if len(left):
            self.best[left], self.solved[left] = polished(self.iterate, self.best[left], self.targets[left], self.limits.rest)


def _rank(numbers: Array) -> Array:
    """Return, for each number, how many equal numbers precede it."""
    order = np.argsort(numbers, kind="stable")
    _, first, counts = np.unique(numbers[order], return_index=True, return_counts=True)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order)) - np.repeat(first, counts)
    return rank


def polished(iterate: Iteration, q: Array, targets: Array, rest: float) -> tuple[Array, Array]:
    """Return the best configurations found by further iterations, and whether they are solutions."""
    best, least, caution = q.copy(), np.full(len(q), np.inf), Caution(len(q))
    solved = np.zeros(len(q), dtype=bool)
    for _ in range(POLISHING):
        ahead, miss, _, cost, move = iterate(q, targets, caution.values)
        caution.see(q, ahead)
        better = cost < least
        best[better], least[better] = q[better], cost[better]
        solved[better] = ((miss <= 1.0) & (move <= rest))[better]
        if not (move > POLISHED).any():
            break
        q = ahead
    return best, solved
