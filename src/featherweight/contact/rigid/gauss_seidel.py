"""Sweeps of projected Gauss-Seidel steps: each contact in turn gets impulses that fit its current velocity.

    f_c <- P(f_c - u_c / rho)        twice for each contact, with its own block of A between

(Jean 1999; Acary and others 2018 compare such methods.) Every second sweep runs backwards, so that changes at one end of a
stack reach the other. Sweeps converge slowly, but from any start. They find out which contacts are open, stick or slide when
many change at once; Newton's method then finishes with full accuracy. With a factor of A, the contacts of a group depend only
on its six velocities y = Y w, which an impulse changes by Y Yᵀ:

    u_c = E y + R f_c + b_c        y <- y + (Y Yᵀ) Eᵀ d        w <- w + Yᵀ (sum of Eᵀ d)
"""

from __future__ import annotations

from ...array_types import Vector
from ...engine.loops.kernels import LANES
from ..factors.block_equations import write_product
from ..factors.branch_elimination import product_of_row
from ..factors.row_factor import MOST_ROWS, RowFactor, add_group, velocity_of, write_transposed_product, write_velocities
from ..laws import Problem, project_contact
from .newton import NewtonWork

TWICE = 2  # steps of a contact in a sweep


def sweep(problem: Problem, f: Vector, count: int, work: NewtonWork) -> None:
    """Apply `count` sweeps to impulses; `work` contains rho."""
    if problem.factored:
        write_blocks_of_factor(problem, work)
        write_transposed_product(problem.B, len(problem.mu), f, work.equations.sums)
        groups = len(problem.B.width)
        for turn in range(count):
            for x in range(groups):
                g = x if turn % 2 == 0 else groups - 1 - x
                if problem.B.member_begin[g] < problem.B.member_begin[g + 1]:
                    sweep_group(problem, g, f, work)
        return
    k, m, velocity = len(problem.mu), len(f), work.velocity
    write_product(problem, f, work.equations, velocity[:m])
    for i in range(m):
        velocity[i] += problem.b[i]
    for turn in range(count):
        for x in range(m - 2 * k):
            c = x if turn % 2 == 0 else m - 2 * k - 1 - x
            if c < k:
                sweep_contact_by_matrix(problem, c, f, work)
            else:
                sweep_row_by_matrix(problem, 2 * k + c, f, work)


def sweep_row_by_matrix(problem: Problem, i: int, f: Vector, work: NewtonWork) -> None:
    """Change the impulse of row i, and all velocities."""
    change = stepped_row(problem, i, f[i], work.velocity[i], work) - f[i]
    if change != 0.0:
        f[i] += change
        for j in range(len(f)):
            work.velocity[j] += problem.A[j, i] * change


def sweep_contact_by_matrix(problem: Problem, c: int, f: Vector, work: NewtonWork) -> None:
    """Change the impulses of a contact, and all velocities."""
    A, velocity, block, i = problem.A, work.velocity, work.equations.M[c], 3 * c
    for a in range(3):
        for b in range(3):
            block[a, b] = A[i + a, i + b]
    x, y, z = stepped_contact(problem, c, f, (velocity[i], velocity[i + 1], velocity[i + 2]), work)
    if x != 0.0 or y != 0.0 or z != 0.0:
        for j in range(len(f)):
            velocity[j] += A[j, i] * x + A[j, i + 1] * y + A[j, i + 2] * z


def stepped_contact(
    problem: Problem, c: int, f: Vector, u: tuple[float, float, float], work: NewtonWork
) -> tuple[float, float, float]:
    """Apply steps to the impulses of a contact with the velocities u and the block `M`; return the change."""
    block, aim, i = work.equations.M[c], work.tried, 3 * c
    unit, x, y, z = 1.0 / work.rho[i], f[i], f[i + 1], f[i + 2]
    before = x, y, z
    for _ in range(TWICE):
        dx, dy, dz = x - before[0], y - before[1], z - before[2]
        aim[i] = x - unit * (u[0] + block[0, 0] * dx + block[0, 1] * dy + block[0, 2] * dz)
        aim[i + 1] = y - unit * (u[1] + block[1, 0] * dx + block[1, 1] * dy + block[1, 2] * dz)
        aim[i + 2] = z - unit * (u[2] + block[2, 0] * dx + block[2, 1] * dy + block[2, 2] * dz)
        project_contact(problem, aim, c, work.equations.P[c])
        x, y, z = aim[i], aim[i + 1], aim[i + 2]
    f[i], f[i + 1], f[i + 2] = x, y, z
    return x - before[0], y - before[1], z - before[2]


def stepped_row(problem: Problem, i: int, f: float, u: float, work: NewtonWork) -> float:
    """Return the new impulse of row i."""
    j = i - 3 * len(problem.mu)
    return min(max(f - u / work.rho[i], problem.lower[j]), problem.upper[j])


# ---- with a factor


def write_blocks_of_factor(problem: Problem, work: NewtonWork) -> None:
    """Write the block of A of each contact, to `M`, and Y Yᵀ of all groups."""
    B, M, R = problem.B, work.equations.M, problem.R
    for g in range(len(B.width)):
        if B.member_begin[g] < B.member_begin[g + 1]:
            write_products_of_rows(B, g)
        for x in range(B.member_begin[g], B.member_begin[g + 1]):
            c = B.members[x]
            if c < len(problem.mu):
                for a in range(3):
                    for b in range(3):
                        M[c, a, b] = product_of_ends(B, g, c, a, b) + (R[3 * c + a] if a == b else 0.0)


def write_products_of_rows(B: RowFactor, g: int) -> None:
    """Write Y Yᵀ of a group after the workspace for products."""
    values, begin, width, rows = B.values, B.begin[g], B.width[g], B.rows[g]
    at = squares_of(B, g)
    for i in range(rows):
        for j in range(i + 1):
            product = product_of_row(values, begin + i * width, values, begin + j * width, width)
            values[at + i * MOST_ROWS + j] = values[at + j * MOST_ROWS + i] = product


def sums_of(B: RowFactor) -> int:
    """Return the position of sums of Eᵀ d in `values`, after workspace for y and for a row."""
    return B.scratch + MOST_ROWS + B.size + LANES * B.plan.branches


def squares_of(B: RowFactor, g: int) -> int:
    """Return the position of Y Yᵀ of a group in `values`."""
    return sums_of(B) + MOST_ROWS + g * MOST_ROWS * MOST_ROWS


def product_of_ends(B: RowFactor, g: int, c: int, a: int, b: int) -> float:
    """Return an entry of E (Y Yᵀ) Eᵀ of a contact."""
    values, ends, rows, at, square = B.values, B.ends, B.rows[g], B.at[c], squares_of(B, g)
    if at < 0:
        return values[square + (a - 1 - at) * MOST_ROWS + b - 1 - at]
    total = 0.0
    for i in range(rows):
        for j in range(rows):
            total += ends[at + a * rows + i] * values[square + i * MOST_ROWS + j] * ends[at + b * rows + j]
    return total


def sweep_group(problem: Problem, g: int, f: Vector, work: NewtonWork) -> None:
    """Change the impulses of the contacts and rows of a group, and w."""
    B, k, b, R = problem.B, len(problem.mu), problem.b, problem.R
    values, rows, scratch = B.values, B.rows[g], B.scratch
    write_velocities(B, g, work.equations.sums)
    sums, moved = sums_of(B), False
    for r in range(rows):
        values[sums + r] = 0.0
    for x in range(B.member_begin[g], B.member_begin[g + 1]):
        c = B.members[x]
        if c < k:
            i = 3 * c
            u = (
                velocity_of(B, g, c, 0) + b[i] + R[i] * f[i],
                velocity_of(B, g, c, 1) + b[i + 1] + R[i + 1] * f[i + 1],
                velocity_of(B, g, c, 2) + b[i + 2] + R[i + 2] * f[i + 2],
            )
            change = stepped_contact(problem, c, f, u, work)
            if change[0] != 0.0 or change[1] != 0.0 or change[2] != 0.0:
                moved = True
                for l in range(3):
                    add_change(B, g, c, l, change[l])
        else:
            i = 2 * k + c
            way = stepped_row(problem, i, f[i], velocity_of(B, g, c, 0) + b[i] + R[i] * f[i], work) - f[i]
            if way != 0.0:
                moved = True
                f[i] += way
                add_change(B, g, c, 0, way)
    if moved:
        for r in range(rows):
            values[scratch + r] = -values[sums + r]
        add_group(B, g, work.equations.sums)


def add_change(B: RowFactor, g: int, c: int, l: int, change: float) -> None:
    """Add the change of an impulse to the sums, and to y."""
    values, at, scratch, square, rows = B.values, B.at[c], B.scratch, squares_of(B, g), B.rows[g]
    sums = sums_of(B)
    for r in range(rows):
        factor = (change if r == l - 1 - at else 0.0) if at < 0 else change * B.ends[at + l * rows + r]
        if factor != 0.0:
            values[sums + r] += factor
            for j in range(rows):
                values[scratch + j] += values[square + r * MOST_ROWS + j] * factor
