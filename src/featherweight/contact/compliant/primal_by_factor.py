"""Newton's method of `primal_newton` by the factor B of a problem's matrix, A = B Bᵀ + R.

With J = B in units of velocities in which the mass matrix is one, a step is

    (1 + Bᵀ G B) w = Bᵀ r        J d = B w

a system with zeros for velocities that no contact couples (`factors.branch_elimination`). It needs no function of the robot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Integers, Matrix, Vector
from ..factors.block_equations import (
    BlockEquations,
    add_inner,
    clear_inner,
    copy_numbers,
    factor_system,
    place_of,
    solve_system,
    times,
    write_system,
)
from ..factors.row_factor import RowFactor, write_product_of_factor, write_transposed_product
from ..laws import Problem
from .answers import Answering, directions_of, row_of
from .primal_newton import PrimalNumbers, PrimalRows, primal_numbers, solve_primal


class PrimalWork(NamedTuple):
    """Workspace for convex problems with at most m unknowns."""

    numbers: PrimalNumbers
    group: Integers  # (contacts,) as in `Answering`
    friction: Matrix  # (contacts, 3)
    pull: Vector  # (contacts,) zeros


def primal_work(contacts: int, m: int) -> PrimalWork:
    """Return workspace for contacts, and m rows of contacts and joints."""
    return PrimalWork(primal_numbers(contacts, m), np.full(contacts, -1), np.zeros((contacts, 3)), np.zeros(contacts))


class FactorScene(NamedTuple):
    """A problem given by its factor."""

    B: RowFactor
    rows: PrimalRows
    equations: BlockEquations


def solve_by_factor(
    problem: Problem, f: Vector, tolerance: float, work: PrimalWork, equations: BlockEquations
) -> tuple[float, int]:
    """Replace the impulses f of the last time step by the solution; return the residual as a velocity, and the steps."""
    rows = PrimalRows(answering(problem, work), f, work.pull, work.numbers)
    scene = FactorScene(problem.B, rows, equations)
    copy_numbers(problem.b, rows.x.first[: len(f)])
    return solve_primal(write_moved, add_moved, write_response, scene, rows, problem.stiff, tolerance)


def answering(problem: Problem, work: PrimalWork) -> Answering:
    """Return the numbers that determine the answers of a problem."""
    p = problem
    return Answering(p.R, p.mu, p.lower, p.upper, p.cones, p.turning, work.group, work.friction)


def write_response(scene: FactorScene) -> None:
    """Write the velocities B Bᵀ f of the impulses to `moved`."""
    k, w = len(scene.rows.own.mu), scene.equations.sums
    write_transposed_product(scene.B, k, scene.rows.f, w)
    write_product_of_factor(scene.B, k, w, scene.rows.x.moved)


def write_moved(scene: FactorScene) -> None:
    """Write J d to `moved`."""
    B, x, w, k = scene.B, scene.rows.x, scene.equations.solution, len(scene.rows.own.mu)
    write_system(B, write_inner_of_answers, scene, True)
    factor_system(B, True, scene.equations)
    write_transposed_product(B, k, x.right, w)
    solve_system(B, w, scene.equations)
    write_product_of_factor(B, k, w, x.moved)


def add_moved(scene: FactorScene, part: float) -> None:
    """Do nothing: impulses alone determine the change of velocities."""


def write_inner_of_answers(scene: FactorScene, g: int) -> bool:
    """Write Eᵀ G E of a group to the workspace for products; return whether any G is nonzero."""
    B, own, x, k, there = scene.B, scene.rows.own, scene.rows.x, len(scene.rows.own.mu), False
    clear_inner(B, g)
    for y in range(B.member_begin[g], B.member_begin[g + 1]):
        c = B.members[y]
        if c < k and x.slope[c, 0, 0] > 0.0:
            there = True
            if B.at[c] < 0:
                add_inner(B, g, c, 3, x.slope[c])
            else:
                add_upper_inner(B, B.at[c], B.rows[g], x.slope[c])
            for l in range(3, directions_of(c, own)):
                for j in range(l + 1):
                    add_inner_of_rows(B, g, row_of(c, l, own), row_of(c, j, own), k, x.slope[c, l, j])
        elif c >= k and 2 * k + c >= scene.rows.bounded and x.stiffness[2 * k + c] > 0.0:
            there = True
            add_inner_of_rows(B, g, 2 * k + c, 2 * k + c, k, x.stiffness[2 * k + c])
    for j in range(B.rows[g]):
        for i in range(j):
            B.values[B.scratch + j * B.rows[g] + i] = B.values[B.scratch + i * B.rows[g] + j]
    return there


def add_upper_inner(B: RowFactor, at: int, rows: int, G: Matrix) -> None:
    """Add the upper triangle of Eᵀ G E of a contact."""
    values, ends, scratch = B.values, B.ends, B.scratch
    for j in range(rows):
        first, second, third = times(G, (ends[at + j], ends[at + rows + j], ends[at + 2 * rows + j]))
        for i in range(j + 1):
            values[scratch + i * rows + j] += (
                ends[at + i] * first + ends[at + rows + i] * second + ends[at + 2 * rows + i] * third
            )


def add_inner_of_rows(B: RowFactor, g: int, first: int, second: int, k: int, G: float) -> None:
    """Add the part of two rows with an entry G, and of its mirror image."""
    rows, scratch = B.rows[g], B.scratch
    for i in range(rows if G != 0.0 else 0):
        u = G * end_of(B, rows, first, k, i)
        for j in range(rows if u != 0.0 else 0):
            B.values[scratch + i * rows + j] += u * end_of(B, rows, second, k, j)
            if first != second:
                B.values[scratch + j * rows + i] += u * end_of(B, rows, second, k, j)


def end_of(B: RowFactor, rows: int, row: int, k: int, i: int) -> float:
    """Return entry i of the row of E that belongs to a row."""
    c, l = place_of(row, k)
    if B.at[c] < 0:
        return 1.0 if i == l - 1 - B.at[c] else 0.0
    return B.ends[B.at[c] + l * rows + i]
