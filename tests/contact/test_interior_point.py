"""The interior-point method: its directions, its steps inside of cones, and problems on which Newton goes astray."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contact.given_matrices import matrix_of, with_factor_of
from contact.problem_families import drawn
from featherweight.contact.impulses import natural_residual, of_arrays, solver_work, with_factor
from featherweight.contact.interior_point import (
    STARTS,
    InsidePoint,
    begin_inside,
    interior_work,
    part_in_cone,
    part_to_zero,
    solve_inside,
    step_inside,
)
from featherweight.contact.laws import Problem
from featherweight.contact.newton import PROXIMAL, newton_work, solve_by_newton, write_rho
from featherweight.engine.loops.kernels import compiled

Array = np.ndarray[Any, np.dtype[Any]]
solve_compiled = compiled(solve_inside)
FRICTION = pytest.mark.parametrize("pyramid", [False, True], ids=["cone", "pyramid"])


def random_problem(seed: int, pyramid: bool, least: float = 0.1, alike: bool = True) -> Problem:
    """Three contacts, a limit and dry friction; the factor has fewer columns than rows."""
    rng = np.random.default_rng(seed)
    J = rng.standard_normal((11, 7))
    limits = np.array([0.0, -0.2]), np.array([np.inf, 0.2])
    p = Problem(J @ J.T, J @ rng.standard_normal(7), np.array([0.3, least, 0.8]), *limits, pyramid)
    R = 0.01 * np.repeat(rng.random(11)[:5], [3, 3, 3, 1, 1])
    if not alike:  # as of springs
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


@FRICTION
@pytest.mark.parametrize("least", [0.1, 0.0], ids=["friction", "no friction"])
@pytest.mark.parametrize("start", range(len(STARTS)))
@pytest.mark.parametrize("seed", range(3))
def test_steps_stay_inside_of_all_cones(seed: int, start: int, least: float, pyramid: bool) -> None:
    p = random_problem(seed, pyramid, least)
    newton, work = newton_work(13), interior_work(13)
    write_rho(p, newton.rho)
    begin_inside(p, STARTS[start], newton, work)
    work.pace[0] = 0.0
    assert_inside(p, work.point)
    for _ in range(12):
        assert 0.0 <= step_inside(p, STARTS[start], newton, work) <= 1.0
        assert_inside(p, work.point)


def equations(p: Problem, x: InsidePoint) -> Array:
    """Velocities that differ from those inside, and all products, as the law has them."""
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
@pytest.mark.parametrize("seed", range(4))
def test_a_direction_makes_velocities_equal_by_differences(seed: int, alike: bool, pyramid: bool) -> None:
    """To first order the differences of velocities vanish, and so do scalar products; these are not scaled."""
    p = random_problem(seed, pyramid, alike=alike)
    newton, work = newton_work(11), interior_work(11)
    write_rho(p, newton.rho)
    begin_inside(p, STARTS[0], newton, work)
    work.pace[0] = 0.0
    for _ in range(3):
        step_inside(p, STARTS[0], newton, work)
    x = InsidePoint._make([field.copy() for field in work.point])
    step_inside(p, STARTS[0], newton, work)  # `ahead` is then the direction at x in which products vanish
    h, ahead = 1e-6, work.ahead
    ends = [InsidePoint._make([a + s * h * d for a, d in zip(x, ahead, strict=True)]) for s in (1.0, -1.0)]
    change = (equations(p, ends[0]) - equations(p, ends[1])) / (2.0 * h)
    at_x = equations(p, x)
    linear = linear_equations(p)
    np.testing.assert_allclose(change[linear], -at_x[linear], rtol=1e-5, atol=1e-6 * np.abs(at_x).max())


def linear_equations(p: Problem) -> Array:
    """Which of `equations` a direction makes zero to first order: all but the vector parts of products of scaled cones."""
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
    """Newton's method alone goes astray on some of the problems; the interior-point method reaches the tolerance on all."""
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
        rooms = work.interior, work.newton
        least, steps, _ = solve_compiled(p, with_factor(p, work), f, np.inf, tolerance, len(STARTS), *rooms)
        assert least <= tolerance and steps > 0
        assert natural_residual(p, f) <= tolerance * 1.001 + 16.0 * np.finfo(float).eps * (np.abs(p.A) @ np.abs(f)).max()
    assert astray > 0
