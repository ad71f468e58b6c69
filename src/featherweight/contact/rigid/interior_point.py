"""An interior-point method for contact impulses under Coulomb's law, for problems in which Newton's method fails.

In addition to the impulses f, a contact has its normal velocity z > 0 and a point (g, y) inside a cone, |y| < g, where y is the
tangential velocity. With the velocities u = A f + b, Coulomb's law is

    u_n = z,  u_t = y        f_n z = 0        (mu f_n, f_t) o (g, y) = 0

with o the product of second-order cones, whose first entry is the scalar product: friction is in its cone, and opposite to the
velocity at its bound. Initially, these products are s instead of zero. As s decreases, the solutions form the central path, on
which no contact is open, sticks or slides, so that there are no cases to try. The cone bounds friction by f_n alone, and the
normal condition does not contain the sliding speed: this is Coulomb's law itself, a nonconvex problem (Acary and others 2024;
the simulator of Howell and others 2022 solves the same conditions). Rows with bounds have products of the distance to each
bound and its multiplier; so do the four sides of a friction pyramid.

Steps are Mehrotra's: the direction in which all products vanish predicts how far s can decrease; the step goes to that s, and
corrects the second-order error of the first direction. Cones have Nesterov-Todd scaling. The equations of a step have the form
of `factors.block_equations`. A start ends when the products stop decreasing. The next one begins elsewhere, or has another
ratio of the products of friction to those of normals, because the central path may fold for one ratio and not for another.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from ...array_types import Matrix, Vector
from ..factors.block_equations import (
    copy_numbers,
    factor_system,
    solve_system,
    subtract_responses,
    times,
    write_product,
    write_system_of_velocities,
)  # fmt: skip
from ..factors.row_factor import write_transposed_product
from ..laws import Problem
from .newton import PATH_STEPS, NewtonWork, project_all, solve_along_path, solve_by_newton

STEPS = 30  # greatest number of steps for each start
ACCEPTED = 1e6
"""Greatest residual, in tolerances, at which the best impulses are accepted when the solver reaches its bound of steps."""
WITHIN = 0.96  # fraction of the distance to the boundary
SHORT = 0.1  # step length below which the method first moves towards the central path
PROGRESS, STALLED = 0.5, 5  # a start ends if this many steps do not reduce the products by this factor
LONG = 0.93  # step length after which Newton steps try to finish
POLISHES = 1e-6, 1e-4, 1e-8  # proximal terms of these Newton steps, in turn
GAIN = 0.1  # greatest allowed ratio of successive residuals of Newton steps
MOST_POLISHING = 8
INSIDE = 0.9  # fraction of the greatest friction at a start near given impulses
HOLDING = 1e-7  # relative to rho
YIELDING = 1e-9  # relative to rho, only against rounding errors


class Start(NamedTuple):
    """A starting point of the method."""

    near: bool  # start near the given impulses
    holding: bool  # impulses have the size of those that would stop all contacts together, otherwise each contact alone
    size: float  # factor of the impulses and velocities
    friction: float  # ratio of the products of friction to those of normals


STARTS = (
    Start(True, False, 0.3, 1.0),
    Start(False, False, 1.0, 1.0),
    Start(False, False, 1.0, 10.0),
    Start(False, True, 1.0, 3.0),
)


class InsidePoint(NamedTuple):
    """Impulses and velocities inside their cones, or a direction, for at most k contacts and n rows with bounds."""

    f: Vector  # (m,)
    normal: Vector  # (k,) z
    friction: Matrix  # (k, 4) g, y; for a pyramid, the multipliers of its sides
    low: Vector  # (n,) multipliers of lower bounds
    high: Vector  # (n,)


def inside_point(contacts: int, rows: int) -> InsidePoint:
    """Return memory for contacts and rows."""
    low, high = np.empty((2, rows))
    return InsidePoint(np.empty(3 * contacts + rows), np.empty(contacts), np.empty((contacts, 4)), low, high)


class InteriorWork(NamedTuple):
    """Workspace for problems of at most m unknowns."""

    point: InsidePoint
    ahead: InsidePoint  # direction in which products vanish
    way: InsidePoint  # direction of the step
    tried: InsidePoint
    velocity: Vector  # (m,) u
    scaling: Matrix  # (k, 4) scaling of cones
    polished: Vector  # (m,)


def interior_work(size: int) -> InteriorWork:
    """Return workspace for `size` unknowns."""
    k = size // 3 + 1
    point, ahead, way, tried = (inside_point(k, size) for _ in range(4))
    velocity, polished = np.empty((2, size))
    return InteriorWork(point, ahead, way, tried, velocity, np.empty((k, 4)), polished)


def solve_inside(
    problem: Problem,
    factored: Problem,
    best: Vector,
    least: float,
    tolerance: float,
    start: Start,
    work: InteriorWork,
    newton: NewtonWork,
) -> tuple[float, int, int]:
    """Replace the impulses `best`, with residual `least`, by better ones if found; return residual, steps and Newton steps.

    `factored` is the same problem with a factor of A.
    """
    polishing = stalled = 0
    begin_inside(factored, start, best, newton, work)
    lowest = products_at(factored, start.friction, work.point, work.way, 0.0)
    for count in range(STEPS):
        length = step_inside(factored, start, newton, work)
        products = products_at(factored, start.friction, work.point, work.way, 0.0)
        if products < PROGRESS * lowest:
            lowest, stalled = products, 0
        else:
            stalled += 1
        last = stalled == STALLED or count == STEPS - 1 or not length >= 0.0  # NaN
        if length > LONG or last:
            residual, taken = polish(problem, POLISHES[polishing % len(POLISHES)], last, tolerance, work, newton)
            polishing += taken
            if residual < least:
                least = residual
                copy_numbers(work.polished, best)
        if last or not least > tolerance:
            return least, count + 1, polishing
    return least, STEPS, polishing


def polish(
    problem: Problem, proximal: float, last: bool, tolerance: float, work: InteriorWork, newton: NewtonWork
) -> tuple[float, int]:
    """Take Newton steps from impulses inside the cones; return the residual and the number of steps.

    After the last step of a start, they follow a path.
    """
    polished = work.polished[: len(problem.b)]
    copy_numbers(work.point.f, polished)
    project_all(problem, polished, newton.equations.P)
    if last:
        return solve_along_path(problem, polished, tolerance, PATH_STEPS, newton)
    return solve_by_newton(problem, polished, tolerance, MOST_POLISHING, proximal, newton, GAIN)


def begin_inside(problem: Problem, start: Start, near: Vector, newton: NewtonWork, work: InteriorWork) -> None:
    """Write a starting point: equal products, velocities of the size of the greatest, impulses of the size that stops contacts.

    Contacts with more inertia have greater impulses. A start near given impulses uses these, moved inside as far as in other
    starts.
    """
    point, rho, holding = work.point, newton.rho, newton.equations.step
    k, m, f = len(problem.mu), len(problem.b), point.f
    if start.holding:
        write_holding_impulses(problem, newton, work)
    force = speed = 0.0
    for i in range(m):
        root = sqrt(rho[i])
        x = holding[i] if start.holding else problem.b[i] / rho[i]
        force, speed = max(force, abs(x) * root), max(speed, abs(problem.b[i]) / root)
    force, speed = start.size * force, start.size * speed
    for c in range(k):
        root = sqrt(rho[3 * c])
        f[3 * c], f[3 * c + 1], f[3 * c + 2] = force / root, 0.0, 0.0
        point.normal[c] = speed * root
        for j in range(4):
            point.friction[c, j] = speed * root if j == 0 or problem.pyramid else 0.0
        if start.near and near[3 * c] > force / root:
            begin_near(problem, c, near, force * speed, point)
    for i in range(m - 3 * k):
        lower, upper, r = problem.lower[i], problem.upper[i], 3 * k + i
        root = sqrt(rho[r])
        point.low[i] = speed * root if lower > -inf else 0.0
        point.high[i] = speed * root if upper < inf else 0.0
        if lower > -inf and upper < inf:
            f[r] = 0.5 * (lower + upper)
        elif lower > -inf:
            f[r] = lower + force / root
        elif upper < inf:
            f[r] = upper - force / root
        else:
            f[r] = 0.0
        if start.near:
            begin_row_near(r, near[r], force / root, force * speed, (lower, upper), (i, point))


def begin_near(problem: Problem, c: int, near: Vector, s: float, point: InsidePoint) -> None:
    """Write impulses of a contact near the given ones, and velocities, with products s."""
    f, i, most = point.f, 3 * c, problem.mu[c] * near[3 * c]
    x, y = near[i + 1], near[i + 2]
    length = max(abs(x), abs(y)) if problem.pyramid else sqrt(x * x + y * y)
    shrink = min(1.0, INSIDE * most / length) if length > 0.0 else 1.0
    f[i], f[i + 1], f[i + 2] = near[i], shrink * x, shrink * y
    point.normal[c] = s / near[i]
    if not most > 0.0:
        return
    if problem.pyramid:
        for side in range(4):
            point.friction[c, side] = s / left_at_side(problem.mu[c], f, i, side)
    else:
        square = (most - shrink * length) * (most + shrink * length)
        point.friction[c, 0], point.friction[c, 1], point.friction[c, 2] = (
            s * most / square,
            -s * f[i + 1] / square,
            -s * f[i + 2] / square,
        )


def begin_row_near(
    r: int, near: float, distance: float, s: float, bounds: tuple[float, float], place: tuple[int, InsidePoint]
) -> None:
    """Write the impulse of row r, and multipliers, with products s."""
    lower, upper = bounds
    i, point = place
    least = min(distance, 0.1 * (upper - lower))
    point.f[r] = min(max(near, lower + least), upper - least)
    if lower < upper:
        point.low[i] = s / (point.f[r] - lower) if lower > -inf else 0.0
        point.high[i] = s / (upper - point.f[r]) if upper < inf else 0.0


def write_holding_impulses(problem: Problem, newton: NewtonWork, work: InteriorWork) -> None:
    """Write the impulses that would leave (nearly) no velocity to `step` of the equations."""
    L, h, w = newton.equations.P, newton.equations.step, newton.equations.solution
    k, m, B, equations = len(problem.mu), len(problem.b), problem.B, newton.equations
    for c in range(m - 2 * k):
        soft = 1.0 / (HOLDING * newton.rho[3 * c if c < k else c + 2 * k])
        for a in range(3):
            for b in range(3):
                L[c, a, b] = soft if a == b else 0.0
    for i in range(m):
        h[i] = -problem.b[i] / (HOLDING * newton.rho[i])
    write_system_of_velocities(problem, True, equations)
    factor_system(B, True, equations)
    write_transposed_product(B, k, h, w)
    solve_system(B, w, equations)
    subtract_responses(problem, w, equations)


def step_inside(problem: Problem, start: Start, newton: NewtonWork, work: InteriorWork) -> float:
    """Take a step; return its length relative to the full step."""
    point, ahead, way, equations = work.point, work.ahead, work.way, newton.equations
    m = len(problem.b)
    write_product(problem, point.f[:m], equations, work.velocity[:m])
    for i in range(m):
        work.velocity[i] += problem.b[i]
    write_scaling(problem, point, work.scaling)
    write_responses_inside(problem, newton.rho, work, newton)
    for i in range(m):
        equations.step[i] = 0.0
    write_system_of_velocities(problem, False, equations)
    factor_system(problem.B, False, equations)
    s = products_at(problem, start.friction, point, ahead, 0.0)
    write_direction(problem, 0.0, 0.0, 0.0, ahead, work, newton)
    part = min(1.0, part_inside(problem, point, ahead))
    ratio = max(products_at(problem, start.friction, point, ahead, part), 0.0) / s
    aim = s * ratio * ratio * ratio
    write_direction(problem, aim, start.friction * aim, 1.0, way, work, newton)
    part = min(1.0, WITHIN * part_inside(problem, point, way))
    centre = 0.5
    while part < SHORT and centre <= 1.0:
        aim = centre * s
        write_direction(problem, aim, start.friction * aim, 0.0, work.tried, work, newton)
        other = min(1.0, WITHIN * part_inside(problem, point, work.tried))
        if other > part:
            part = other
            copy_point(problem, work.tried, way)
        centre *= 2.0
    move_inside(problem, point, way, part)
    return part


def write_scaling(problem: Problem, point: InsidePoint, scaling: Matrix) -> None:
    """Write w and eta of each cone's scaling W = eta [[w_0, wᵀ], [w, 1 + w wᵀ / (1 + w_0)]]: W (mu f_n, f_t) = W⁻¹ (g, y)."""
    if problem.pyramid:
        return
    f = point.f
    for c in range(len(problem.mu)):
        if not problem.mu[c] > 0.0:
            continue
        a, x, y = problem.mu[c] * f[3 * c], f[3 * c + 1], f[3 * c + 2]
        g, u, v = point.friction[c, 0], point.friction[c, 1], point.friction[c, 2]
        length, other = sqrt(x * x + y * y), sqrt(u * u + v * v)
        force, speed = sqrt((a - length) * (a + length)), sqrt((g - other) * (g + other))
        a, x, y, g, u, v = a / force, x / force, y / force, g / speed, u / speed, v / speed
        double = 2.0 * sqrt(0.5 * (1.0 + a * g + x * u + y * v))
        scaling[c, 0], scaling[c, 1], scaling[c, 2] = (g + a) / double, (u - x) / double, (v - y) / double
        scaling[c, 3] = sqrt(speed / force)


def write_responses_inside(problem: Problem, rho: Vector, work: InteriorWork, newton: NewtonWork) -> None:
    """Write L, the response of impulses to velocities, in forms without differences of nearly equal numbers."""
    L, point, f = newton.equations.P, work.point, work.point.f
    k, n = len(problem.mu), len(problem.lower)
    for c in range(k):
        mu, i = problem.mu[c], 3 * c
        for a in range(3):
            for b in range(3):
                L[c, a, b] = 0.0
        normal, soft = (point.normal[c] / f[i] + problem.R[i] + YIELDING * rho[i]), YIELDING * rho[i]
        if not mu > 0.0:
            L[c, 0, 0] = 1.0 / normal
        elif problem.pyramid:
            write_response_of_pyramid(mu, normal, (soft + problem.R[i + 1], soft + problem.R[i + 2]), (c, point), L[c])
        else:
            write_response_of_cone(mu, normal, soft + problem.R[i + 1], work.scaling[c], L[c])
    for j in range(n):
        r, c = 3 * k + j, k + j
        lower, upper, total = problem.lower[j], problem.upper[j], problem.R[3 * k + j] + YIELDING * rho[3 * k + j]
        L[c, 0, 0] = 0.0
        if lower < upper:
            if lower > -inf:
                total += point.low[j] / (f[r] - lower)
            if upper < inf:
                total += point.high[j] / (upper - f[r])
            L[c, 0, 0] = 1.0 / total


def write_response_of_cone(mu: float, normal: float, soft: float, scaling: Vector, L: Matrix) -> None:
    """Write the inverse of a contact's block, in axes along and across the tangential part of w, the only coupling.

    Both tangents have the compliance `soft`.
    """
    w, x, y, square = scaling[0], scaling[1], scaling[2], scaling[3] * scaling[3]
    length = sqrt(x * x + y * y)
    n, along, across = 1.0 / normal, 1.0 / (square * (1.0 + 2.0 * length * length) + soft), 1.0 / (square + soft)
    coupling = -2.0 * mu * square * w * length * n * along
    x, y = (x / length, y / length) if length > 0.0 else (1.0, 0.0)
    L[0, 0], L[1, 0], L[2, 0] = n, coupling * x, coupling * y
    L[1, 1], L[2, 2] = along * x * x + across * y * y, along * y * y + across * x * x
    L[1, 2] = L[2, 1] = (along - across) * x * y


def write_response_of_pyramid(
    mu: float, normal: float, soft: tuple[float, float], place: tuple[int, InsidePoint], L: Matrix
) -> None:
    """Write the inverse of a contact's block: each tangent is coupled only with the normal."""
    c, point = place
    L[0, 0] = 1.0 / normal
    for t in range(2):
        most, x = mu * point.f[3 * c], point.f[3 * c + 1 + t]
        below, above = point.friction[c, 2 * t] / (most + x), point.friction[c, 2 * t + 1] / (most - x)
        L[1 + t, 1 + t] = 1.0 / (below + above + soft[t])
        L[1 + t, 0] = -mu * (below - above) * L[0, 0] * L[1 + t, 1 + t]


def write_direction(
    problem: Problem, s: float, friction: float, second: float, way: InsidePoint, work: InteriorWork, newton: NewtonWork
) -> None:
    """Write the direction in which products become s, and those of friction become `friction`.

    `second` is the fraction of the products of the direction `ahead` to correct.
    """
    equations, u = newton.equations, work.velocity
    r = equations.right
    k, m = len(problem.mu), len(problem.b)
    write_aims(problem, s, friction, second, way, work)
    for c in range(k):
        i = 3 * c
        r[i] = way.normal[c] - (u[i] - work.point.normal[c])
        for t in range(2):
            r[i + 1 + t] = 0.0
            if problem.mu[c] > 0.0:
                r[i + 1 + t] = aim_of(problem, way, c, t) - (u[i + 1 + t] - aim_of(problem, work.point, c, t))
    for i in range(3 * k, m):
        j = i - 3 * k
        r[i] = 0.0
        if problem.lower[j] < problem.upper[j]:
            r[i] = way.low[j] - way.high[j] - (u[i] - work.point.low[j] + work.point.high[j])
    # x = L r - L B w, with (1 + Bᵀ L B) w = Bᵀ L r
    h, w, L = equations.step, equations.solution, equations.P
    for c in range(k):
        i = 3 * c
        h[i], h[i + 1], h[i + 2] = times(L[c], (r[i], r[i + 1], r[i + 2]))
    for i in range(3 * k, m):
        h[i] = L[i - 2 * k, 0, 0] * r[i]
    write_transposed_product(problem.B, k, h, w)
    solve_system(problem.B, w, equations)
    subtract_responses(problem, w, equations)
    for i in range(m):
        way.f[i] = h[i]
    finish_direction(problem, way, work)


def aim_of(problem: Problem, point: InsidePoint, c: int, t: int) -> float:
    """Return the tangential velocity of a contact, by its cone or by the multipliers of its pyramid."""
    if problem.pyramid:
        return point.friction[c, 2 * t] - point.friction[c, 2 * t + 1]
    return point.friction[c, 1 + t]


def write_aims(problem: Problem, s: float, friction: float, second: float, way: InsidePoint, work: InteriorWork) -> None:
    """Write the changes of velocities and multipliers for which products become s or `friction` at constant impulses."""
    point, ahead, f = work.point, work.ahead, work.point.f
    k = len(problem.mu)
    for c in range(k):
        i, mu = 3 * c, problem.mu[c]
        z = point.normal[c]
        way.normal[c] = s / f[i] - z
        if second > 0.0:
            way.normal[c] -= second * ahead.f[i] * ahead.normal[c] / f[i]
        if not mu > 0.0:
            continue
        if problem.pyramid:
            for side in range(4):
                left = left_at_side(mu, f, i, side)
                way.friction[c, side] = friction / left - point.friction[c, side]
                if second > 0.0:
                    change = left_at_side(mu, ahead.f, i, side)
                    way.friction[c, side] -= second * change * ahead.friction[c, side] / left
        else:
            write_aim_of_cone(mu, friction, second, c, way, work)
    for j in range(len(problem.lower)):
        x, dx, lower, upper = f[3 * k + j], ahead.f[3 * k + j], problem.lower[j], problem.upper[j]
        way.low[j] = way.high[j] = 0.0
        if lower < upper:
            if lower > -inf:
                way.low[j] = s / (x - lower) - point.low[j]
                if second > 0.0:
                    way.low[j] -= second * dx * ahead.low[j] / (x - lower)
            if upper < inf:
                way.high[j] = s / (upper - x) - point.high[j]
                if second > 0.0:
                    way.high[j] += second * dx * ahead.high[j] / (upper - x)


def left_at_side(mu: float, f: Vector, i: int, side: int) -> float:
    """Return the remaining friction of the contact at row i at one of the four sides of its pyramid."""
    sign = 1.0 - 2.0 * (side % 2)
    return mu * f[i] + sign * f[i + 1 + side // 2]


def write_aim_of_cone(mu: float, s: float, second: float, c: int, way: InsidePoint, work: InteriorWork) -> None:
    """Write the change of (g, y): with W the scaling and l = W (mu f_n, f_t), -(g, y) + W (l \\ (s e - second-order part))."""
    point, f, i = work.point, work.point.f, 3 * c
    w, p, q, eta = work.scaling[c, 0], work.scaling[c, 1], work.scaling[c, 2], work.scaling[c, 3]
    d, dx, dy = s, 0.0, 0.0
    if second > 0.0:
        a = scaled(w, p, q, (mu * work.ahead.f[i], work.ahead.f[i + 1], work.ahead.f[i + 2]))
        g, y = work.ahead.friction[c, 0], (work.ahead.friction[c, 1], work.ahead.friction[c, 2])
        b = scaled(w, -p, -q, (g, y[0], y[1]))  # eta cancels
        d -= second * (a[0] * b[0] + a[1] * b[1] + a[2] * b[2])
        dx, dy = -second * (a[0] * b[1] + b[0] * a[1]), -second * (a[0] * b[2] + b[0] * a[2])
    l = scaled(w, p, q, (mu * f[i], f[i + 1], f[i + 2]))
    l0, l1, l2 = eta * l[0], eta * l[1], eta * l[2]
    length = sqrt(l1 * l1 + l2 * l2)
    determinant = (l0 - length) * (l0 + length)
    first = (l0 * d - l1 * dx - l2 * dy) / determinant
    t = scaled(w, p, q, (first, (dx - first * l1) / l0, (dy - first * l2) / l0))
    way.friction[c, 0] = eta * t[0] - point.friction[c, 0]
    way.friction[c, 1] = eta * t[1] - point.friction[c, 1]
    way.friction[c, 2] = eta * t[2] - point.friction[c, 2]


def scaled(w: float, p: float, q: float, a: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return the scaling of a cone, without eta, times a vector; its inverse for -p and -q."""
    along = p * a[1] + q * a[2]
    part = a[0] + along / (1.0 + w)
    return w * a[0] + along, a[1] + part * p, a[2] + part * q


def finish_direction(problem: Problem, way: InsidePoint, work: InteriorWork) -> None:
    """Convert aims to the changes of velocities and multipliers that correspond to the change of impulses."""
    point, f, df = work.point, work.point.f, way.f
    k = len(problem.mu)
    for c in range(k):
        i, mu = 3 * c, problem.mu[c]
        way.normal[c] -= point.normal[c] / f[i] * df[i]
        if not mu > 0.0:
            continue
        if problem.pyramid:
            for side in range(4):
                change = left_at_side(mu, df, i, side)
                way.friction[c, side] -= point.friction[c, side] / left_at_side(mu, f, i, side) * change
        else:
            w, p, q, eta = work.scaling[c, 0], work.scaling[c, 1], work.scaling[c, 2], work.scaling[c, 3]
            a, x, y = mu * df[i], df[i + 1], df[i + 2]
            double = 2.0 * eta * eta
            along = double * (w * a + p * x + q * y)  # eta² (2 w wᵀ - J)
            way.friction[c, 0] -= along * w - eta * eta * a
            way.friction[c, 1] -= along * p + eta * eta * x
            way.friction[c, 2] -= along * q + eta * eta * y
    for j in range(len(problem.lower)):
        x, dx, lower, upper = f[3 * k + j], df[3 * k + j], problem.lower[j], problem.upper[j]
        if lower < upper:
            if lower > -inf:
                way.low[j] -= point.low[j] / (x - lower) * dx
            if upper < inf:
                way.high[j] += point.high[j] / (upper - x) * dx


def products_at(problem: Problem, friction: float, point: InsidePoint, way: InsidePoint, part: float) -> float:
    """Return the mean of all products after a part of a direction, with those of friction divided by `friction`."""
    k = len(problem.mu)
    total = count = 0.0
    for c in range(k):
        i, mu = 3 * c, problem.mu[c]
        normal, z = along(point.f[i], way.f[i], part), along(point.normal[c], way.normal[c], part)
        total += normal * z
        count += 1.0
        if not mu > 0.0:
            continue
        x, y = along(point.f[i + 1], way.f[i + 1], part), along(point.f[i + 2], way.f[i + 2], part)
        first, second = (
            along(point.friction[c, 0], way.friction[c, 0], part),
            along(point.friction[c, 1], way.friction[c, 1], part),
        )
        third = along(point.friction[c, 2], way.friction[c, 2], part)
        if problem.pyramid:
            fourth = along(point.friction[c, 3], way.friction[c, 3], part)
            total += first * (mu * normal + x) + second * (mu * normal - x)
            total += third * (mu * normal + y) + fourth * (mu * normal - y)
            count += 4.0
        else:
            total += mu * normal * first + x * second + y * third
            count += 1.0
    for j in range(len(problem.lower)):
        lower, upper = problem.lower[j], problem.upper[j]
        x = along(point.f[3 * k + j], way.f[3 * k + j], part)
        if lower < upper:
            if lower > -inf:
                total += (x - lower) * along(point.low[j], way.low[j], part)
                count += 1.0
            if upper < inf:
                total += (upper - x) * along(point.high[j], way.high[j], part)
                count += 1.0
    return total / count if count > 0.0 else 0.0


def along(x: float, change: float, part: float) -> float:
    """Return a number after a part of its change; for a zero part, the change may be anything."""
    return x + part * change if part > 0.0 else x


def part_inside(problem: Problem, point: InsidePoint, way: InsidePoint) -> float:
    """Return the greatest part of a direction that stays inside; NaN if a direction contains NaN."""
    k, most = len(problem.mu), 1e9
    for c in range(k):
        i, mu = 3 * c, problem.mu[c]
        most = least_of(most, part_to_zero(point.f[i], way.f[i]))
        most = least_of(most, part_to_zero(point.normal[c], way.normal[c]))
        if not mu > 0.0:
            continue
        if problem.pyramid:
            for side in range(4):
                left, change = left_at_side(mu, point.f, i, side), left_at_side(mu, way.f, i, side)
                most = least_of(most, part_to_zero(left, change))
                most = least_of(most, part_to_zero(point.friction[c, side], way.friction[c, side]))
        else:
            a = mu * point.f[i], point.f[i + 1], point.f[i + 2]
            most = least_of(most, part_in_cone(a, (mu * way.f[i], way.f[i + 1], way.f[i + 2])))
            g = point.friction[c, 0], point.friction[c, 1], point.friction[c, 2]
            most = least_of(most, part_in_cone(g, (way.friction[c, 0], way.friction[c, 1], way.friction[c, 2])))
    for j in range(len(problem.lower)):
        lower, upper = problem.lower[j], problem.upper[j]
        if lower < upper:
            if lower > -inf:
                most = least_of(most, part_to_zero(point.f[3 * k + j] - lower, way.f[3 * k + j]))
                most = least_of(most, part_to_zero(point.low[j], way.low[j]))
            if upper < inf:
                most = least_of(most, part_to_zero(upper - point.f[3 * k + j], -way.f[3 * k + j]))
                most = least_of(most, part_to_zero(point.high[j], way.high[j]))
    return most


def least_of(a: float, b: float) -> float:
    """Return the smaller number, or NaN if one is NaN."""
    return b if not b >= a else a


def part_to_zero(x: float, change: float) -> float:
    """Return the part of a change after which x > 0 becomes zero."""
    return inf if change >= 0.0 else -x / change


def part_in_cone(a: tuple[float, float, float], d: tuple[float, float, float]) -> float:
    """Return the part of d after which a, inside the cone a_0 > |a_t|, reaches its boundary."""
    square = d[0] * d[0] - d[1] * d[1] - d[2] * d[2]
    half = a[0] * d[0] - a[1] * d[1] - a[2] * d[2]
    length = sqrt(a[1] * a[1] + a[2] * a[2])
    inside = (a[0] - length) * (a[0] + length)
    if square >= 0.0 and half >= 0.0:
        return inf
    root = half * half - square * inside
    if root < 0.0:
        return inf
    # the smaller positive root of square x² + 2 half x + inside
    root = sqrt(root)
    return inside / (root - half) if root > half else inf


def copy_point(problem: Problem, source: InsidePoint, target: InsidePoint) -> None:
    for i in range(len(problem.b)):
        target.f[i] = source.f[i]
    for c in range(len(problem.mu)):
        target.normal[c] = source.normal[c]
        for j in range(4):
            target.friction[c, j] = source.friction[c, j]
    for j in range(len(problem.lower)):
        target.low[j], target.high[j] = source.low[j], source.high[j]


def move_inside(problem: Problem, point: InsidePoint, way: InsidePoint, part: float) -> None:
    """Move by a part of a direction."""
    for i in range(len(problem.b)):
        point.f[i] += part * way.f[i]
    for c in range(len(problem.mu)):
        point.normal[c] += part * way.normal[c]
        if problem.mu[c] > 0.0:
            for j in range(4 if problem.pyramid else 3):
                point.friction[c, j] += part * way.friction[c, j]
    for j in range(len(problem.lower)):
        point.low[j] += part * way.low[j]
        point.high[j] += part * way.high[j]
