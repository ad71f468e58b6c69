"""The solver of quadratic programs beside DAQP and the conditions of optimality."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import nnls

from featherweight.array_types import Array
from featherweight.engine.loops.kernels import CompiledLoop, Table
from featherweight.quadratic_programs.active_set import solve
from featherweight.quadratic_programs.program import (
    BLOCKING_INDEX,
    BLOCKING_KIND,
    BOUND,
    COSTS,
    EQUALITIES,
    INCONSISTENT,
    INFEASIBLE,
    LIMITS,
    RANK,
    ROW,
    SOLVED,
    STEPS,
    QuadraticProgram,
    Sizes,
    quadratic_program,
)

SOLVE = CompiledLoop(solve, 1)
FRICTION = 0.7


class Given(NamedTuple):
    """A program, as matrices."""

    program: QuadraticProgram
    A: Array
    b: Array
    E: Array
    e: Array
    C: Array

    @property
    def hessian(self) -> Array:
        return self.A.T @ self.A + np.diag(self.program.diagonal)

    @property
    def x(self) -> Array:
        p = self.program
        return p.numbers[p.x : p.x + p.n]


def rows(p: QuadraticProgram, place: int, count: int) -> Array:
    return p.numbers[place : place + count * p.wide].reshape(count, p.wide)[:, : p.n]


def random_program(n: int, edges: int, seed: int) -> Given:
    """Return a program with all kinds of constraints, which a point known in advance satisfies."""
    rng = np.random.default_rng(seed)
    costs, equalities, limits, cones = 20, n // 4, 30, n // 6
    cone = np.arange(n - 3 * cones, n, 3)
    p = quadratic_program(Sizes(n, costs, n, equalities, limits, cones), cone, edges)
    A, b = rng.standard_normal((costs, n)), 10.0 * rng.standard_normal(costs)
    E, C, inside = rng.standard_normal((equalities, n)), rng.standard_normal((limits, n)), 0.1 * rng.standard_normal(n)
    inside[cone + 2] = 1.0 + np.abs(inside[cone]) + np.abs(inside[cone + 1])
    fill(p, A, b, E, E @ inside, C)
    p.diagonal[:] = 1e-4
    p.least[:], p.most[:] = C @ inside - 0.1, C @ inside + 0.3
    p.lower[:], p.upper[:], p.friction[:] = inside - 0.5, inside + 1.0, FRICTION
    return Given(p, A, b, E, E @ inside, C)


def fill(p: QuadraticProgram, A: Array, b: Array, E: Array, e: Array, C: Array) -> None:
    rows(p, p.costs, len(A))[:], rows(p, p.equalities, len(E))[:], rows(p, p.limits, len(C))[:] = A, E, C
    p.target[: len(b)], p.right[: len(e)] = b, e
    p.counts[COSTS], p.counts[EQUALITIES], p.counts[LIMITS] = len(A), len(E), len(C)


def solved(p: QuadraticProgram) -> int:
    table = Table(p)
    return int(SOLVE.for_tables(table)(table.address, 0))


def active_normals(given: Given) -> Array:
    """Return the normals (k, n) of the active inequalities."""
    p, a, found = given.program, given.program.active, []
    for k in range(a.size[0]):
        normal, i = np.zeros(p.n), a.which[k]
        if a.kind[k] == BOUND:
            normal[i] = a.side[k]
        elif a.kind[k] == ROW:
            normal = a.side[k] * given.C[i]
        else:
            normal[p.cone[i] : p.cone[i] + 3] = -a.cosine[k], -a.sine[k], p.friction[i]
            assert np.hypot(a.cosine[k], a.sine[k]) == pytest.approx(1.0)
        found.append(normal)
    return np.array(found).reshape(-1, p.n)


@pytest.mark.parametrize("edges", [0, 4, 7])
@pytest.mark.parametrize("n", [7, 20, 52])
def test_the_solution_keeps_all_constraints_and_is_optimal(n: int, edges: int) -> None:
    """The gradient is a combination of normals of equalities and, with positive factors, of active inequalities.

    The tolerances are some thousand rounding errors.
    """
    for seed in range(5):
        given = random_program(n, edges, seed)
        p, x = given.program, given.x
        assert solved(p) == SOLVED
        np.testing.assert_allclose(given.E @ x, given.e, atol=1e-10)
        assert (x >= p.lower - 1e-9).all() and (x <= p.upper + 1e-9).all()
        assert (given.C @ x >= p.least - 1e-9).all() and (given.C @ x <= p.most + 1e-9).all()
        forces = x[p.cone[:, None] + [0, 1, 2]]
        if edges:
            assert (forces[:, :2] @ p.edges.T <= FRICTION * forces[:, 2:] + 1e-9).all()
        else:
            assert (np.hypot(*forces[:, :2].T) <= FRICTION * forces[:, 2] + 1e-9).all()
        gradient = given.hessian @ x - given.A.T @ given.b
        normals = np.vstack([active_normals(given), given.E, -given.E])
        left = nnls(normals.T, gradient)[1]
        assert left < 1e-11 * np.abs(gradient).max() * n
        if edges:
            slacks = [*(given.C @ x - p.least), *(p.most - given.C @ x)]
            assert min(np.abs(slacks)) < 1e-9  # the problem has active limits


@pytest.mark.parametrize("n", [7, 40])
def test_the_solution_is_that_of_daqp(n: int) -> None:
    daqp = pytest.importorskip("daqp")
    for seed in range(5):
        given = random_program(n, 6, seed)
        p = given.program
        assert solved(p) == SOLVED
        planes = np.zeros((len(p.cone), 6, n))
        for k, at in enumerate(p.cone):
            planes[k, :, at : at + 2], planes[k, :, at + 2] = -p.edges, FRICTION
        matrix = np.vstack([given.E, given.C, planes.reshape(-1, n)])
        ends = np.zeros(6 * len(p.cone)), np.full(6 * len(p.cone), 1e30)
        lower = np.concatenate([p.lower, given.e, p.least, ends[0]])
        upper = np.concatenate([p.upper, given.e, p.most, ends[1]])
        kinds = np.array([0] * n + [5] * len(given.e) + [0] * (len(lower) - n - len(given.e)), dtype=np.int32)
        x, _, flag, _ = daqp.solve(given.hessian, -given.A.T @ given.b, matrix, upper, lower, kinds)
        assert flag == 1
        np.testing.assert_allclose(given.x, x, atol=1e-6)  # DAQP's tolerance


def test_the_kernel_is_the_same_in_python() -> None:
    given, other = random_program(10, 0, 1), random_program(10, 0, 1)
    assert solved(given.program) == solve(other.program, 0) == SOLVED
    np.testing.assert_allclose(given.x, other.x, rtol=1e-9)


def test_the_active_set_of_a_similar_program_saves_steps() -> None:
    given = random_program(40, 0, 2)
    p = given.program
    assert solved(p) == SOLVED
    x, cold = given.x.copy(), int(p.counts[STEPS])
    for before, now in zip(p.before, p.active, strict=True):
        before[:] = now
    rows(p, p.equalities, len(given.E))[:] = given.E  # reflections have replaced them
    assert solved(p) == SOLVED
    np.testing.assert_allclose(given.x, x, atol=1e-9)
    assert p.counts[STEPS] < 0.7 * cold


def test_dependent_equalities_are_allowed_if_they_are_consistent() -> None:
    p = quadratic_program(Sizes(3, 1, 3, 2, 0, 0), np.zeros(0, np.int64))
    p.diagonal[:] = 1.0
    for right, status in ((2.0, SOLVED), (3.0, INCONSISTENT)):
        fill(p, np.zeros((1, 3)), np.zeros(1), np.array([[1.0, 1, 1], [2, 2, 2]]), np.array([1.0, right]), np.zeros((0, 3)))
        assert solved(p) == status
        assert p.counts[RANK] == 1
        if status == SOLVED:
            np.testing.assert_allclose(p.numbers[p.x : p.x + 3], 1.0 / 3.0)


def test_limits_that_contradict_each_other_are_reported() -> None:
    p = quadratic_program(Sizes(2, 1, 2, 1, 1, 0), np.zeros(0, np.int64))
    p.diagonal[:] = 1.0
    fill(p, np.zeros((1, 2)), np.zeros(1), np.array([[1.0, 1]]), np.array([1.0]), np.array([[1.0, 1]]))
    p.least[0] = 2.0
    assert solved(p) == INFEASIBLE
    assert (p.counts[BLOCKING_KIND], p.counts[BLOCKING_INDEX]) == (ROW, 0)
