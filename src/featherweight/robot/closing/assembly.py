"""Closed configurations of one cluster, searched from many starting points at once and in a reproducible order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...array_types import Array
from ...model import configuration
from ...model.random_numbers import uniform
from ...model.types import JointType
from ...spatial.elementary import norm
from ...spatial.ordered import lengths
from .misclosure import Misclosure
from .solver import ClosingProblem, Settled, refined, settle

STARTS = 600  # starting points of a search
NEAR = 30  # starting points around a guess, at increasing distances
WAVE = 8  # starting points in the first batch
ROUNDING = 1e-9  # [m, rad] tolerance of joint limits
NUMBERS = 2**23  # most numbers in the derivatives of a batch


class Found(NamedTuple):
    """Closed configurations in the order of their starting points, and the smallest residual of the failed attempts."""

    x: Array  # (found, nx)
    left: Array | None  # (m,) [m, rad]


class Assembly:
    """A cluster's loops, which are closed up to rounding, or up to their contradiction within a tolerance.

    `solved` are the rows of the residual that are closed up to rounding. Without rounding, the other rows would follow from
    them.
    """

    def __init__(self, gap: Misclosure, exact: float, tolerance: float) -> None:
        self.gap = gap
        self.length = max((norm(*gap.tree.translation[r]) for r in gap.cluster.rows), default=0.0) or 1.0
        weights, units = np.where(gap.is_length, 1.0 / self.length, 1.0), np.where(gap.slides, self.length, 1.0)
        self.problem = ClosingProblem(gap, np.arange(len(gap.rows)), weights, units, exact, max(tolerance, exact))
        self.solved = np.arange(len(gap.is_length))
        self.kept: list[int] = []  # numbers of independent constraints,
        self.dependent: list[int] = []  # and of the moving rows that these constraints determine

    @property
    def nx(self) -> int:
        return self.gap.nx

    def solve_only(self, rows: Sequence[int]) -> None:
        """Close only some constraints up to rounding; the others, which contradict those, stay within the tolerance.

        Otherwise, least squares would move towards configurations where the contradiction is small.
        """
        self.solved = np.array(rows, dtype=np.intp)
        weights = np.zeros_like(self.problem.weights)
        weights[self.solved] = self.problem.weights[self.solved]
        self.problem = self.problem._replace(weights=weights)

    def settled(self, x: Array, columns: Array | None = None, limits: bool = False) -> Settled:
        """Return the configurations closed from starting points (batch, nx) by moving some of the moving rows."""
        p = self.problem if columns is None else self.problem._replace(columns=columns)
        s = settle(p, x, limits)
        near = np.flatnonzero(s.closed)
        if len(near) and len(self.solved) < s.r.shape[1]:  # contradicting angles are not zero: `refined` takes their sines
            s.x[near], s.r[near], s.closed[near] = refined(p, s.x[near], self.solved)
        return s

    def search(
        self, draw: Callable[[int], Array], wanted: int, first: int = WAVE, accept: Callable[..., Array] | None = None
    ) -> Found:
        """Return closed configurations from starting points that `draw` returns, within joint limits if there are any."""
        inside: list[Array] = [np.zeros((0, self.nx))]
        outside: list[Array] = [np.zeros((0, self.nx))]
        left: Array | None = None
        tried, most, wave = 0, max(STARTS, 20 * wanted), max(first, min(wanted, self._batch))
        while tried < most and sum(map(len, inside)) < wanted:
            s = self.settled(draw(wave))
            left = _better(left, s)
            x, within = self._pulled_within(s.x[s.closed])
            good = np.ones(len(x), dtype=bool) if accept is None else accept(x)
            inside.append(x[good & within])
            outside.append(x[good & ~within])
            tried += wave
            if tried >= 4 * WAVE + wanted and sum(map(len, inside)) == 0 and sum(map(len, outside)) >= wanted:
                break
            wave = min(max(2 * wave, WAVE), max(WAVE, 2 * wanted, STARTS // 4), self._batch)
        return Found(np.concatenate(inside + outside)[:wanted], left)

    @property
    def _batch(self) -> int:
        return max(WAVE, NUMBERS // max(1, len(self.gap.rows) * len(self.gap.is_length)))

    def _pulled_within(self, x: Array) -> tuple[Array, Array]:
        """Remove whole turns, move joints between their limits where possible, and return whether they are within them."""
        x = self._unwound(x)
        within = self._within(x)
        if len(out := np.flatnonzero(~within)):
            s = self.settled(x[out], limits=True)
            moved = self._unwound(s.x)
            good = s.closed & self._within(moved)
            x[out[good]], within[out[good]] = moved[good], True
        return x, within

    def _within(self, x: Array) -> Array:
        lower, upper, at, _ = self.gap.limits
        good = (x[:, at] >= lower - ROUNDING) & (x[:, at] <= upper + ROUNDING)
        return np.asarray(good.all(axis=1))

    def _unwound(self, x: Array) -> Array:
        """Return configurations with angles within half a turn of the middle of their limits, or of zero.

        Whole turns are removed from angles only where they change nothing.
        """
        at, middle = self._turning
        x = x.copy()
        x[:, at] -= 2.0 * math.pi * np.round((x[:, at] - middle) / (2.0 * math.pi))
        return x

    @cached_property
    def _turning(self) -> tuple[Array, Array]:
        """The indices of angles whose whole turns matter to no coupling or user-defined constraint, and their middles."""
        cluster = self.gap.cluster
        counted = {r for f in cluster.followers for r, _ in f.terms} | {r for c in cluster.closings for r in c.rows}
        own = [
            c
            for c in self.gap.coordinates
            if c.type in (JointType.REVOLUTE, JointType.CONTINUOUS) and self.gap.rows[c.v.start] not in counted
        ]
        middles = [0.5 * (c.lower + c.upper) if math.isfinite(c.lower) and math.isfinite(c.upper) else 0.0 for c in own]
        return np.array([c.q.start for c in own], dtype=np.intp), np.array(middles)

    def around(self, x: Array, rng: np.random.Generator, step: float = 0.05) -> Callable[[int], Array]:
        """Return a function that draws starting points: x itself, points at increasing distance from x, then random points."""
        drawn = 0

        def draw(count: int) -> Array:
            nonlocal drawn
            number = np.arange(drawn, drawn + count)
            drawn += count
            moves = step * np.minimum(number, NEAR)[:, None] * uniform(rng, -1.0, 1.0, (count, len(self.gap.rows)))
            starts = self.gap.moved(np.broadcast_to(x, (count, len(x))), moves)
            anywhere = number >= NEAR
            starts[anywhere] = self.anywhere(rng)(int(anywhere.sum()))
            return starts

        return draw

    def anywhere(self, rng: np.random.Generator) -> Callable[[int], Array]:
        return lambda count: np.asarray(configuration.random_configuration(self.gap.coordinates, self.nx, rng, count))

    def nearest(self, x: Array, columns: Array, attempts: int) -> Found:
        """Return the closed configuration nearest to x (nx,), from x or from starting points around it.

        Only some of the moving rows move.
        """
        rng, tried, left = np.random.default_rng(0), 0, None
        while tried < attempts:
            number = np.arange(tried, min(attempts, 1 if tried == 0 else tried + self._batch))
            spread = np.minimum(0.05 * number, math.pi)[:, None]
            starts = self.problem._replace(columns=columns).moved(
                np.broadcast_to(x, (len(number), len(x))), spread * uniform(rng, -1.0, 1.0, (len(number), len(columns)))
            )
            s = self.settled(starts, columns)
            left = _better(left, s)
            if s.closed.any():
                away = lengths(configuration.difference(self.gap.coordinates, x, s.x[s.closed]))
                return Found(s.x[s.closed][[away.argmin()]], left)
            tried += len(number)
        return Found(np.zeros((0, self.nx)), left)

    def singularity(self, x: Array) -> Array:
        """Return |K_d|² / R_kk² (batch,), as `ClosedRobot.singularity` defines it, at closed configurations (batch, nx)."""
        K = self.gap(x)[1][:, self.kept][:, :, self.dependent]
        diagonal = np.diagonal(np.linalg.qr(K, mode="r"), axis1=-2, axis2=-1)
        with np.errstate(divide="ignore"):
            return np.asarray((K * K).sum(axis=(1, 2)) * (1.0 / diagonal**2).sum(axis=1))

    def neutral(self) -> Array:
        return configuration.neutral(self.gap.coordinates, self.nx)

    def worst(self, x: Array) -> Array:
        """Return the largest residual (batch,) [m, rad] of configurations (batch, nx)."""
        return np.asarray(np.abs(self.gap.residual(x)).max(axis=1, initial=0.0))

    def openings(self, r: Array) -> dict[str, tuple[float, float]]:
        """Return the greatest length [m] and the greatest angle [rad], or number, of residuals (..., m), for each loop."""
        worst = np.abs(r).reshape(-1, r.shape[-1]).max(axis=0, initial=0.0)
        result = {}
        for k, name in enumerate(self.gap.names):
            own, lengths = self.gap.loop_of_row == k, self.gap.is_length
            result[name] = (float(worst[own & lengths].max(initial=0.0)), float(worst[own & ~lengths].max(initial=0.0)))
        return result

    def text_of(self, r: Array) -> str:
        """Describe the largest misclosure of a loop."""
        name, (length, angle) = max(self.openings(r).items(), key=lambda item: max(item[1]))
        return f"{said(length, angle)} of {name!r}"


def said(length: float, angle: float) -> str:
    texts = [f"{length:.3g} m"] * (length > 0.0) + [f"{angle:.3g} rad"] * (angle > 0.0)
    return " and ".join(texts) or "nothing"


def _better(left: Array | None, s: Settled) -> Array | None:
    """Return the smaller of two residuals: `left` and that of the best attempt in `s` that failed. None stands for none."""
    failed = np.flatnonzero(~s.closed & np.isfinite(s.worst))
    if not len(failed):
        return left
    r = s.r[failed[s.worst[failed].argmin()]]
    return r if left is None or np.abs(r).max(initial=0.0) < np.abs(left).max(initial=0.0) else left
