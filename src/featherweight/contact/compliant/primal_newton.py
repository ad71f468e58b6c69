"""Newton's method in velocities for convex contact laws, whose contacts and joint rows all yield.

The impulses f(u) of contacts and joint rows follow from their velocities u = J x + b (see `answers`), where x is the
change of the robot's velocities. x is the minimum of a convex function (Todorov 2014), with the gradient M x - Jᵀ f(u) and the
Hessian M + Jᵀ G J, where -G is the derivative of f. A step d from x = M⁻¹ Jᵀ f solves

    (M + Jᵀ G J) d = Jᵀ r      r = f(u) - f        and adds r - G J d to f, so that x = M⁻¹ Jᵀ f remains true

There are two ways to J d: `contact_passes`, and `primal_by_factor`. A line search follows the slope of the function along each
step to its zero. The first step starts from zero impulses, with G of the impulses of the last time step. The function of
pyramids is quadratic while the same edges push, so that few steps suffice.

Stiff contacts with round cones make steps short: the function rises steeply beside the way to its minimum, which is curved.
Rows that hardly yield lose impulses to rounding errors, because r and G J d cancel. The next round of steps then solves a
softer problem, with the compliance R + S and the velocities u - S f for the impulses f of the last round (proximal points,
Rockafellar 1976). Where these impulses do not change, they are those for R. S grows after rounds that do not converge, and
shrinks after others.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple, TypeVar

import numpy as np

from ...array_types import Matrix, Tensor, Vector
from ..factors.block_equations import copy_numbers
from ..laws import CONES, PYRAMIDS
from .answers import (
    DIRECTIONS,
    Answering,
    answer_of_row,
    clear,
    directions_of,
    edges_of,
    friction_of,
    row_of,
    square,
    subtract_product,
    write_answer,
    write_edges,
)  # fmt: skip

Robot = TypeVar("Robot")
ROUNDS, STEPS, TRIALS = 30, 60, 40
PATIENCE, SMALLER = 12, 0.5  # a round ends after this many steps without a reduction of the residual by this factor
LITTLE = 0.01  # least part of a bracket that begins at zero
FLAT = 0.01  # allowed ratio of the slopes at the end and the start of a step
SOFTER, HARDER = 100.0, 0.1  # factors of R + S after rounds of steps
ROUNDING = 1e-12  # difference between impulses and answers, relative to the greatest, that counts as a rounding error
ROUNDED = 1e-9  # impulse along an edge, relative to that of the normal, that counts as zero


class PrimalNumbers(NamedTuple):
    """Numbers of at most m rows, and G of contacts."""

    first: Vector  # (m,) velocities to which rows answer without impulses
    R: Vector  # (m,) compliance R + S of a round
    shift: Vector  # (m,) S f of the last round
    velocity: Vector  # (m,) u, less the shift
    right: Vector  # (m,) r
    step: Vector  # (m,) r - G J d
    moved: Vector  # (m,) J d
    there: Vector  # (m,) velocities, and
    answer: Vector  # (m,) impulses along a step
    slope: Tensor  # (contacts, 6, 6) G of contacts
    stiffness: Vector  # (m,) G of rows with bounds


def primal_numbers(contacts: int, m: int) -> PrimalNumbers:
    """Return numbers of m rows, 3 for each contact and those of joints."""
    a, b, c, d, e, f, g, h, i = np.zeros((9, m))
    return PrimalNumbers(a, b, c, d, e, f, g, h, i, np.zeros((contacts, DIRECTIONS, DIRECTIONS)), np.zeros(m))


class PrimalRows(NamedTuple):
    """The rows of a problem: k contacts, then spinning and rolling of some, then rows with bounds."""

    own: Answering
    f: Vector  # (m,) impulses: those of the last time step, then the solution
    pull: Vector  # (k,) normal impulses of zero contact force, that is, the pulls of adhesion
    x: PrimalNumbers

    @property
    def bounded(self) -> int:
        """First row with bounds."""
        return 3 * (len(self.own.mu) + self.own.turning)


def solve_primal(
    write_moved: Callable[[Robot], None], add_moved: Callable[[Robot, float], None], write_response: Callable[[Robot], None],
    robot: Robot, rows: PrimalRows, stiff: bool, tolerance: float,
) -> tuple[float, int]:  # fmt: skip
    """Replace the impulses of the last time step by the solution; return the residual as a velocity, and the steps.

    `write_moved` writes `moved` for G and r, `add_moved` adds a part of d to x, and `write_response` writes x and the
    velocities J M⁻¹ Jᵀ f of the impulses. `stiff` contacts may hide the inertia of a robot in rounding errors, so these are
    computed once more. The residual is the greatest change of a velocity by this or the last step, or by S and the change of
    impulses in the last round.
    """
    x, R, soft, steps, residual, lost = rows.x, rows.own.R, 1.0, 0, np.inf, np.inf
    rows = rows._replace(own=rows.own._replace(R=x.R[: len(R)]))
    for i in range(len(R)):
        x.R[i], x.shift[i] = R[i], 0.0
    write_first_guess(rows)
    for _ in range(ROUNDS):
        least, more = take_steps(write_moved, add_moved, robot, rows, steps == 0, tolerance)
        if steps == 0 and least <= tolerance and not stiff:
            residual, steps = least, more
            break
        write_response(robot)
        last, lost = lost, take_velocities(rows)
        residual, steps = max(least, lost), steps + more
        for i in range(len(R)):
            residual = max(residual, abs((x.R[i] - R[i]) * rows.f[i] - x.shift[i]))
        if residual <= tolerance:
            break
        stuck = least <= tolerance < lost and lost > SMALLER * last
        if rows.own.cones == CONES or stuck or soft > 1.0:
            soft = SOFTER * soft if least > tolerance or stuck else max(HARDER * soft, 1.0)
        for i in range(len(R)):
            softens = rows.own.cones == CONES or i >= rows.bounded  # the edges of a pyramid share their compliance
            x.R[i] = soft * R[i] if softens else R[i]
            x.velocity[i] += x.shift[i]
            x.shift[i] = (x.R[i] - R[i]) * rows.f[i]
            x.velocity[i] -= x.shift[i]
        write_answers(rows, x.velocity)
        write_missing(rows)
    take_bounds(rows)
    if soft > 1.0:
        for i in range(len(R)):
            x.R[i] = R[i]
            x.velocity[i] += x.shift[i]
        write_answers(rows, x.velocity)
        write_missing(rows)
    return residual, steps


def take_steps(
    write_moved: Callable[[Robot], None], add_moved: Callable[[Robot, float], None], robot: Robot, rows: PrimalRows,
    first: bool, tolerance: float,
) -> tuple[float, int]:  # fmt: skip
    """Take Newton steps until velocities change by less than the tolerance, or impulses are the answers up to rounding.

    Return the last change, or zero, and the number of steps.
    """
    x, f, m = rows.x, rows.f, len(rows.f)
    steps, stalled, least, marked = 0, 0, np.inf, np.inf
    while least > tolerance and steps < STEPS and stalled < PATIENCE:
        write_moved(robot)
        write_step(rows)
        residual = np.inf if first and steps == 0 else greatest_change(x.moved[:m])
        part, known = part_of_step(rows) if tolerance < residual < np.inf else (1.0, False)
        add_moved(robot, part)
        for i in range(m):
            f[i] += part * x.step[i]
            x.velocity[i] += part * x.moved[i]
        if not known:
            write_answers(rows, x.velocity)
        if write_missing(rows) <= ROUNDING:
            residual = 0.0
        steps, stalled = steps + 1, stalled + 1
        least = residual
        if residual < SMALLER * marked:
            marked, stalled = residual, 0
    return least, steps


def write_step(rows: PrimalRows) -> None:
    """Write the change of impulses r - G J d to `step`."""
    own, x = rows.own, rows.x
    for i in range(rows.bounded):
        x.step[i] = x.right[i]
    for c in range(len(own.mu)):
        subtract_product(own, x.slope[c], c, x.moved, x.step)
    for i in range(rows.bounded, len(rows.f)):
        x.step[i] = x.right[i] - x.stiffness[i] * x.moved[i]


def take_velocities(rows: PrimalRows) -> float:
    """Replace velocities by those of the response; return the greatest change, infinity if any is NaN."""
    x, worst = rows.x, 0.0
    for i in range(len(rows.f)):
        u = x.first[i] + x.moved[i] - x.shift[i]
        worst, x.velocity[i] = max(worst, abs(u - x.velocity[i])) if abs(u) < np.inf else np.inf, u
    return worst


def greatest_change(moved: Vector) -> float:
    """Return the greatest entry, infinity if any is NaN."""
    worst = 0.0
    for u in moved:
        worst = max(worst, abs(u)) if abs(u) < np.inf else np.inf
    return worst


def write_first_guess(rows: PrimalRows) -> None:
    """Write G and r of zero impulses, if the same edges push and the same rows act as in the last time step.

    New contacts and rows without impulses act as their velocities without impulses require. Impulses become zero; those of
    contacts that adhesion pulls become the pull, from which their cones start.
    """
    own, f, x, k = rows.own, rows.f, rows.x, len(rows.own.mu)
    copy_numbers(x.first, x.velocity[: len(f)])
    for c in range(k):
        G = x.slope[c]
        if not f[3 * c] > 0.0:
            write_answer(own, x.velocity, c, x.answer, G)
        elif own.cones == PYRAMIDS:
            write_pushing_edges(own, f, c, G)
        else:
            for l in range(directions_of(c, own)):
                row = row_of(c, l, own)
                x.there[row] = -own.R[row] * f[row]
            write_answer(own, x.there, c, x.answer, G)
        for i in range(directions_of(c, own)):
            row = row_of(c, i, own)
            x.right[row] = f[row] = 0.0
        f[3 * c], x.right[3 * c] = rows.pull[c], -rows.pull[c]
        subtract_product(own, G, c, x.velocity, x.right)
    for i in range(rows.bounded, len(f)):
        lower, upper = own.lower[i - 3 * k], own.upper[i - 3 * k]
        if f[i] == 0.0:
            x.right[i], x.stiffness[i] = answer_of_row(own, i, x.velocity[i])
        elif lower < f[i] < upper:
            x.stiffness[i] = 1.0 / own.R[i]
            x.right[i] = -x.stiffness[i] * x.velocity[i]
        else:
            x.right[i], x.stiffness[i] = min(max(f[i], lower), upper), 0.0
        f[i] = 0.0


def write_pushing_edges(own: Answering, f: Vector, c: int, G: Matrix) -> None:
    """Write G of a pyramid with impulses f, by the edges that push there."""
    count, unit, level = directions_of(c, own), 1.0 / (edges_of(c, own) * own.R[3 * c]), level_of_edges(own, f, c)
    both = unit if level > ROUNDED * f[3 * c] else 0.0
    clear(G, count)
    for l in range(1, count):
        mu = friction_of(c, l, own)
        if l < 3 or mu > 0.0:
            aside = f[row_of(c, l, own)] / mu if mu > 0.0 else 0.0
            if 0.5 * abs(aside) > level * (1.0 - ROUNDED):
                G[0, 0] += write_edges(G, l, mu, (unit if aside > 0.0 else 0.0, unit if aside < 0.0 else 0.0))
            else:
                G[0, 0] += write_edges(G, l, mu, (both, both))


def level_of_edges(own: Answering, f: Vector, c: int) -> float:
    """Return the mean impulse of the edges of a pyramid in directions in which both edges push.

    These impulses are the least along edges whose sum is f. If both edges of a direction push, they differ from the mean of
    all such edges by the same amount; the other directions have one edge, and the whole of their friction.
    """
    count, level, left, pairs = directions_of(c, own), -1.0, f[3 * c], 0
    for l in range(1, count):
        pairs += 1 if l < 3 or friction_of(c, l, own) > 0.0 else 0
    rest, last = pairs, pairs + 1
    while 0 < rest < last:  # directions with more friction than twice the mean have one edge
        last, level, left, rest = rest, left / (2.0 * rest), f[3 * c], pairs
        for l in range(1, count):
            mu = friction_of(c, l, own)
            if mu > 0.0 and 0.5 * abs(f[row_of(c, l, own)]) > mu * level * (1.0 - ROUNDED):
                left -= abs(f[row_of(c, l, own)]) / mu
                rest -= 1
    return level


def write_missing(rows: PrimalRows) -> float:
    """Write r for the answers; return the greatest entry of r relative to that of the answers."""
    x, worst, most = rows.x, 0.0, 0.0
    for i in range(len(rows.f)):
        x.right[i] = x.answer[i] - rows.f[i]
        worst, most = max(worst, abs(x.right[i])), max(most, abs(x.answer[i]))
    return worst / most if most > 0.0 else worst


def write_answers(rows: PrimalRows, v: Vector) -> None:
    """Write the answers to velocities v, and G."""
    x = rows.x
    for c in range(len(rows.own.mu)):
        write_answer(rows.own, v, c, x.answer, x.slope[c])
    for i in range(rows.bounded, len(rows.f)):
        x.answer[i], x.stiffness[i] = answer_of_row(rows.own, i, v[i])


def take_bounds(rows: PrimalRows) -> None:
    """Replace impulses by the answers to velocities where these are zero or at a bound.

    Elsewhere impulses are more accurate, because answers divide errors of velocities by R.
    """
    own, x = rows.own, rows.x
    for c in range(len(own.mu)):
        for l in range(directions_of(c, own) if x.slope[c, 0, 0] == 0.0 else 0):
            rows.f[row_of(c, l, own)] = x.answer[row_of(c, l, own)]
    for i in range(rows.bounded, len(rows.f)):
        if x.stiffness[i] == 0.0:
            rows.f[i] = x.answer[i]


# ---- line search


def part_of_step(rows: PrimalRows) -> tuple[float, bool]:
    """Return the part of a step at whose end the function has nearly zero slope, and whether answers are those there."""
    x, downhill = rows.x, 0.0
    for i in range(len(rows.f)):
        downhill += x.right[i] * x.moved[i]
    if not downhill > 0.0:  # a rounding error
        return 1.0, False
    part, low, high = 1.0, 0.0, np.inf
    for _ in range(TRIALS):
        slope, curvature = slope_after(rows, part)
        if abs(slope) <= FLAT * downhill:
            return part, True
        if slope < 0.0:
            low = part
        else:
            high = part
        following = part - slope / curvature
        if not low < following < high:
            following = sqrt(max(low, LITTLE * high) * high) if high < np.inf else 2.0 * part
        part = following
    return part, False


def slope_after(rows: PrimalRows, part: float) -> tuple[float, float]:
    """Return the slope of the function along a step after a part of it, and its curvature; G becomes that there."""
    own, x, slope, curvature = rows.own, rows.x, 0.0, 0.0
    for i in range(len(rows.f)):
        x.there[i] = x.velocity[i] + part * x.moved[i]
    write_answers(rows, x.there)
    for i in range(len(rows.f)):
        slope += x.moved[i] * (rows.f[i] + part * x.step[i] - x.answer[i])
        curvature += x.moved[i] * x.step[i]
    for c in range(len(own.mu)):
        curvature += square(own, x.slope[c], c, x.moved)
    for i in range(rows.bounded, len(rows.f)):
        curvature += x.stiffness[i] * x.moved[i] * x.moved[i]
    return slope, curvature
