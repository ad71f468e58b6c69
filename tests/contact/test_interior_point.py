"""Tests of the interior-point method: directions, steps inside cones, and problems on which Newton's method fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contact.given_matrices import matrix_of, with_factor_of
from contact.problem_families import drawn
from featherweight.array_types import Array
from featherweight.contact.impulses import natural_residual, of_arrays, solver_work, with_factor
from featherweight.contact.laws import Problem
from featherweight.contact.rigid import interior_point
from featherweight.contact.rigid.interior_point import (
    INSIDE,
    PROGRESS,
    STALLED,
    STARTS,
    STEPS,
    InsidePoint,
    InteriorWork,
    Start,
    begin_inside,
    interior_work,
    part_in_cone,
    part_to_zero,
    products_at,
    solve_inside,
    step_inside,
)
from featherweight.contact.rigid.newton import NewtonWork, newton_work, solve_by_newton, write_rho
from featherweight.engine.loops.kernels import compiled

PROXIMAL = 1e-5
solve_compiled = compiled(solve_inside)
FRICTION = pytest.mark.parametrize("pyramid", [False, True], ids=["cone", "pyramid"])


def random_problem(seed: int, pyramid: bool, least: float = 0.1, alike: bool = True) -> Problem:
    """Return a problem of three contacts, a limit and dry friction; the factor has fewer columns than rows."""
    rng = np.random.default_rng(seed)
    J = rng.standard_normal((11, 7))
    limits = np.array([0.0, -0.2]), np.array([np.inf, 0.2])
    p = Problem(J @ J.T, J @ rng.standard_normal(7), np.array([0.3, least, 0.8]), *limits, pyramid)
    R = 0.01 * np.repeat(rng.random(11)[:5], [3, 3, 3, 1, 1])
    if not alike:  # compliance along normals only, as of springs
        R[[1, 2, 4, 5, 7, 8]] = 0.0
    return with_factor_of(p, J, R)


def assert_inside(p: Problem, point: InsidePoint) -> None:
    k = len(p.mu)
    assert (point.f[: 3 * k : 3] > 0.0).all() and (point.normal[:k] > 0.0).all()
    for c in np.flatnonzero(p.mu > 0.0):
        most, x = p.mu[c] * point.f[3 * c], point.f[3 * c + 1 : 3 * c + 3]
        if p.pyramid:
            assert np.abs(x).max() < most and (point.friction[c] > 0.0).all()
        else:
            assert np.linalg.norm(x) < most and np.linalg.norm(point.friction[c, 1:3]) < point.friction[c, 0]
    f = point.f[3 * k : len(p.b)]
    assert (f > p.lower).all() and (f < p.upper).all()
    assert (point.low[: len(f)][np.isfinite(p.lower)] > 0.0).all() and (point.high[: len(f)][np.isfinite(p.upper)] > 0.0).all()


def begun(p: Problem, start: Start, near: Array) -> tuple[InteriorWork, NewtonWork]:
    """Return a workspace, filled with NaN before, at the point where a start near impulses begins."""
    m = len(p.b)
    newton, work = newton_work(m + 2), interior_work(m + 2)
    for room in (*work.point, work.velocity):
        room.fill(np.nan)
    write_rho(p, newton.rho)
    begin_inside(p, start, near, newton, work)
    return work, newton


@FRICTION
@pytest.mark.parametrize("least", [0.1, 0.0], ids=["friction", "no friction"])
@pytest.mark.parametrize("start", range(len(STARTS)))
@pytest.mark.parametrize("seed", range(3))
def test_steps_stay_inside_of_all_cones(seed: int, start: int, least: float, pyramid: bool) -> None:
    p = random_problem(seed, pyramid, least)
    work, newton = begun(p, STARTS[start], np.random.default_rng(seed).standard_normal(11))
    assert_inside(p, work.point)
    for _ in range(12):
        assert 0.0 <= step_inside(p, STARTS[start], newton, work) <= 1.0
        assert_inside(p, work.point)


def equations(p: Problem, x: InsidePoint) -> Array:
    """Return the differences from the velocities inside, and all products, by the law."""
    k, f = len(p.mu), x.f[: len(p.b)]
    u = matrix_of(p) @ f + p.b
    left: list[float] = []
    for c in range(k):
        n, t = f[3 * c], f[3 * c + 1 : 3 * c + 3]
        left += [u[3 * c] - x.normal[c], n * x.normal[c]]
        if p.mu[c] == 0.0:
            continue
        g, most = x.friction[c], p.mu[c] * n
        if p.pyramid:
            left += [u[3 * c + 1] - g[0] + g[1], u[3 * c + 2] - g[2] + g[3]]
            left += [g[0] * (most + t[0]), g[1] * (most - t[0]), g[2] * (most + t[1]), g[3] * (most - t[1])]
        else:
            left += [*(u[3 * c + 1 : 3 * c + 3] - g[1:3]), most * g[0] + t @ g[1:3], *(most * g[1:3] + g[0] * t)]
    for j, (low, high) in enumerate(zip(p.lower, p.upper, strict=True)):
        left.append(u[3 * k + j] - x.low[j] * int(np.isfinite(low)) + x.high[j] * int(np.isfinite(high)))
        if np.isfinite(low):
            left.append((f[3 * k + j] - low) * x.low[j])
        if np.isfinite(high):
            left.append((high - f[3 * k + j]) * x.high[j])
    return np.array(left)


@FRICTION
@pytest.mark.parametrize("alike", [True, False], ids=["compliance", "compliance of normals alone"])
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_a_direction_makes_velocities_equal_by_differences(seed: int, start: int, alike: bool, pyramid: bool) -> None:
    """Check that differences of velocities and scalar products vanish to first order; they are not scaled."""
    p = random_problem(seed, pyramid, alike=alike)
    work, newton = begun(p, STARTS[start], np.random.default_rng(seed).random(11))
    for _ in range(3):
        step_inside(p, STARTS[start], newton, work)
    x = InsidePoint._make([field.copy() for field in work.point])
    step_inside(p, STARTS[start], newton, work)  # then `ahead` is the direction at x in which products vanish
    h, ahead = 1e-6, work.ahead
    ends = [InsidePoint._make([a + s * h * d for a, d in zip(x, ahead, strict=True)]) for s in (1.0, -1.0)]
    change = (equations(p, ends[0]) - equations(p, ends[1])) / (2.0 * h)
    at_x = equations(p, x)
    linear = linear_equations(p)
    np.testing.assert_allclose(change[linear], -at_x[linear], rtol=1e-5, atol=1e-6 * np.abs(at_x).max())


def linear_equations(p: Problem) -> Array:
    """Return the `equations` that a direction makes zero to first order: all but the vector parts of products of scaled
    cones.
    """
    kept: list[bool] = []
    for mu in p.mu:
        kept += [True, True]
        if mu > 0.0:
            kept += [True] * 6 if p.pyramid else [True, True, True, False, False]
    for low, high in zip(p.lower, p.upper, strict=True):
        kept += [True] * (1 + int(np.isfinite(low)) + int(np.isfinite(high)))
    return np.array(kept)


def test_parts_of_ways_to_boundaries() -> None:
    assert part_to_zero(2.0, -4.0) == 0.5 and part_to_zero(2.0, 1.0) == np.inf
    assert part_in_cone((1.0, 0.0, 0.0), (0.0, 2.0, 0.0)) == pytest.approx(0.5)
    assert part_in_cone((1.0, 0.0, 0.0), (-1.0, 0.0, 0.0)) == pytest.approx(1.0)
    assert part_in_cone((1.0, 0.0, 0.0), (1.0, 0.5, 0.5)) == np.inf
    rng = np.random.default_rng(0)
    for _ in range(40):
        a, d = np.append(2.0, rng.uniform(-1.0, 1.0, 2)), rng.standard_normal(3)
        part = part_in_cone(tuple(a), tuple(d))
        if part < np.inf:
            x = a + part * d
            assert x[0] == pytest.approx(np.linalg.norm(x[1:]), abs=1e-9 * max(1.0, np.abs(x).max()))
        else:
            x = a + 1e6 * d
            assert x[0] >= np.linalg.norm(x[1:]) * (1.0 - 1e-9)


@FRICTION
@pytest.mark.parametrize("family", ["foot", "wedge", "twins", "heap", "random rank"])
def test_it_solves_what_newtons_method_does_not_from_a_bad_start(family: str, pyramid: bool) -> None:
    """Check problems on some of which Newton's method alone fails; the interior-point method reaches the tolerance on all.

    It restarts as long as necessary.
    """
    astray = 0
    for seed in range(6):
        p = of_arrays(drawn(family, seed)._replace(pyramid=pyramid))
        m, tolerance = len(p.b), 1e-8 * np.abs(p.b).max()
        rng, work = np.random.default_rng(seed), solver_work(m)
        write_rho(p, work.newton.rho)
        f = 100.0 * np.abs(p.b).max() / work.newton.rho[:m].min() * rng.standard_normal(m)
        left, _ = solve_by_newton(p, f.copy(), tolerance, 8, PROXIMAL, work.newton)
        astray += left > tolerance
        f[:] = 0.0
        rooms, least = (work.interior, work.newton), np.inf
        for start in STARTS:
            if least > tolerance:
                least, steps, _ = solve_compiled(p, with_factor(p, work), f, least, tolerance, start, *rooms)
                assert 0 < steps <= STEPS
        assert least <= tolerance
        assert natural_residual(p, f) <= tolerance * 1.001 + 16.0 * np.finfo(float).eps * (np.abs(p.A) @ np.abs(f)).max()
    assert astray > 0


# ---- starts

NEAR = STARTS[0]


def products(p: Problem, point: InsidePoint) -> tuple[Array, Array, Array]:
    """Return products of normals (k,), of friction (k, 4) (vector products of cones with a zero appended), and of bounds (n,
    2).

    Products are NaN without friction or bound.
    """
    k, n = len(p.mu), len(p.lower)
    f, normal = point.f[: 3 * k].reshape(k, 3), point.normal[:k]
    friction, rows = np.full((k, 4), np.nan), np.full((n, 2), np.nan)
    for c in np.flatnonzero(p.mu > 0.0):
        most, (x, y), g = p.mu[c] * f[c, 0], f[c, 1:], point.friction[c]
        if p.pyramid:
            friction[c] = g * [most + x, most - x, most + y, most - y]
        else:
            friction[c] = [most * g[0] + x * g[1] + y * g[2], most * g[1] + g[0] * x, most * g[2] + g[0] * y, 0.0]
    for j in range(n):
        x = point.f[3 * k + j]
        if p.lower[j] < p.upper[j]:
            rows[j, 0] = (x - p.lower[j]) * point.low[j] if np.isfinite(p.lower[j]) else np.nan
            rows[j, 1] = (p.upper[j] - x) * point.high[j] if np.isfinite(p.upper[j]) else np.nan
    return f[:, 0] * normal, friction, rows


def impulses_inside(rng: np.random.Generator, p: Problem, part: float, size: float) -> Array:
    """Return impulses with a given part of the maximum friction, and rows well within their bounds."""
    k = len(p.mu)
    f = np.zeros(len(p.b))
    normal, angle = size * rng.uniform(1.0, 3.0, k), rng.uniform(0.0, 2.0 * np.pi, k)
    way = np.column_stack([np.cos(angle), np.sin(angle)])
    way /= np.abs(way).max(axis=1)[:, None] if p.pyramid else 1.0
    f[: 3 * k].reshape(k, 3)[:] = np.column_stack([normal, part * (p.mu * normal)[:, None] * way])
    for j, (low, high) in enumerate(zip(p.lower, p.upper, strict=True)):
        middle = low + size if np.isinf(high) else high - size if np.isinf(low) else 0.5 * (low + high)
        f[3 * k + j] = middle if np.isfinite(middle) else 0.3
    return f


def problem_of_bounds(seed: int, pyramid: bool, mu: Any) -> Problem:
    """Return contacts with the coefficients mu, and a row with each kind of bounds, the last two of them nearly equal."""
    rng = np.random.default_rng(seed)
    k, inf = len(mu), np.inf
    lower = np.array([0.0, -inf, -0.2, -inf, 1.0, -1e-9])
    upper = np.array([inf, 0.5, 0.2, inf, 1.0 + 1e-6, 1e-9])
    J = rng.standard_normal((3 * k + 6, 3 * k + 6))
    p = Problem(J @ J.T, rng.standard_normal(3 * k + 6), np.array(mu, float), lower, upper, pyramid)
    return with_factor_of(p, J)


MUS = pytest.mark.parametrize("mu", [[0.3, 1.0, 2.0], [0.0, 0.5, 0.0]], ids=["friction", "no friction"])


@FRICTION
@MUS
@pytest.mark.parametrize("seed", range(4))
def test_a_start_is_at_the_impulses_given_where_these_are_inside(seed: int, mu: list[float], pyramid: bool) -> None:
    """Check that all products are equal and those of vectors zero: the point is on the central path except for velocities."""
    p = problem_of_bounds(seed, pyramid, mu)
    near = impulses_inside(np.random.default_rng(seed), p, 0.8, 100.0)
    point = begun(p, NEAR, near)[0].point
    assert_inside(p, point)
    np.testing.assert_allclose(point.f[: len(near)], near, rtol=1e-14)
    normals, friction, rows = products(p, point)
    s = normals[0]
    np.testing.assert_allclose(normals, s, rtol=1e-13)
    np.testing.assert_allclose(rows[np.isfinite(rows)], s, rtol=1e-12)
    assert np.isfinite(rows).sum() == 8
    expected = np.array([s] * 4 if pyramid else [s, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(
        friction[p.mu > 0.0], np.tile(expected, (int((p.mu > 0.0).sum()), 1)), rtol=1e-12, atol=1e-12 * s
    )


@FRICTION
@MUS
@pytest.mark.parametrize("part", [0.95, 1.0, 1.5, 1e6])
def test_friction_begins_inside_of_the_cone_along_the_friction_given(part: float, mu: list[float], pyramid: bool) -> None:
    """Check that normal impulses are the given ones, and that products are equal."""
    p = problem_of_bounds(3, pyramid, mu)
    near = impulses_inside(np.random.default_rng(0), p, part, 100.0)
    point = begun(p, NEAR, near)[0].point
    assert_inside(p, point)
    f, given = point.f[:9].reshape(3, 3), near[:9].reshape(3, 3)
    np.testing.assert_array_equal(f[:, 0], given[:, 0])
    np.testing.assert_allclose(f[:, 1:], INSIDE / part * given[:, 1:], rtol=1e-12)
    _, friction, _ = products(p, point)
    np.testing.assert_allclose(friction[p.mu > 0.0, 0], point.normal[0] * f[0, 0], rtol=1e-11)


@FRICTION
@MUS
@pytest.mark.parametrize("size", [0.0, 1e-12, 1.0, 1e6])
@pytest.mark.parametrize("seed", range(4))
def test_a_start_near_any_impulses_is_inside(seed: int, size: float, mu: list[float], pyramid: bool) -> None:
    """Check nearly equal bounds, and impulses outside their cones.

    Contacts with smaller normal impulses than in other starts begin as in those.
    """
    p = problem_of_bounds(seed, pyramid, mu)
    near = size * np.random.default_rng(seed).standard_normal(len(p.b))
    work, newton = begun(p, NEAR, near)
    assert_inside(p, work.point)
    other = begun(p, NEAR._replace(near=False), near)[0].point
    for c in range(3):
        assert work.point.f[3 * c] == max(near[3 * c], other.f[3 * c])
        if near[3 * c] <= other.f[3 * c]:
            np.testing.assert_array_equal(work.point.f[3 * c : 3 * c + 3], other.f[3 * c : 3 * c + 3])
            assert work.point.normal[c] == other.normal[c]
            np.testing.assert_array_equal(work.point.friction[c], other.friction[c])
    normals, _, rows = products(p, work.point)
    np.testing.assert_allclose(rows[np.isfinite(rows)], normals[0], rtol=1e-6)  # digits that 2e-9 of bounds leave
    for _ in range(4):
        assert 0.0 <= step_inside(p, NEAR, newton, work) <= 1.0
        assert_inside(p, work.point)


@pytest.mark.parametrize("start", STARTS[:2])
def test_rows_whose_bounds_are_equal_have_that_impulse(start: Start) -> None:
    lower = np.array([0.7, -0.1])
    p = with_factor_of(Problem(np.eye(2), np.ones(2), np.zeros(0), lower, np.array([0.7, 0.1])), np.eye(2))
    work, newton = begun(p, start, np.array([5.0, 5.0]))
    assert work.point.f[0] == 0.7
    for _ in range(3):
        step_inside(p, start, newton, work)
        assert work.point.f[0] == 0.7 and -0.1 < work.point.f[1] < 0.1


def test_a_start_ends_after_steps_in_which_products_do_not_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a problem without solution: a start ends after `STALLED` successive steps that each leave more than
    `PROGRESS` of the smallest product so far.
    """
    p, ended = of_arrays(drawn("squeezed", 0)), 0
    work, tolerance = solver_work(len(p.b)), 1e-8 * float(np.abs(p.b).max())
    write_rho(p, work.newton.rho)
    factored, seen = with_factor(p, work), list[float]()

    def noted(problem: Problem, friction: float, point: InsidePoint, way: InsidePoint, part: float) -> float:
        seen.append(products_at(problem, friction, point, way, part))
        return seen[-1]

    def step(problem: Problem, start: Start, newton: NewtonWork, work: InteriorWork) -> float:
        with monkeypatch.context() as inner:
            inner.setattr(interior_point, "products_at", products_at)
            return step_inside(problem, start, newton, work)

    monkeypatch.setattr(interior_point, "products_at", noted)
    monkeypatch.setattr(interior_point, "step_inside", step)
    for start in STARTS:
        seen.clear()
        _, steps, _ = solve_inside(p, factored, np.zeros(len(p.b)), np.inf, tolerance, start, work.interior, work.newton)
        lowest, stalled = seen[0], 0
        for count, product in enumerate(seen[1:], start=1):
            assert stalled < STALLED
            lowest, stalled = (product, 0) if product < PROGRESS * lowest else (lowest, stalled + 1)
            assert (count == steps) == (count == len(seen) - 1)
        assert stalled == STALLED or steps == STEPS
        ended += steps < STEPS
    assert ended > 0
