"""Derivatives of the state after a step, from those of its acceleration.

A semi-implicit step moves by h u with the velocity u after it, in the axes of its start. Joints whose velocities do not commute
rotate by E = exp(h w); their velocities are given in the axes after the step (see `algorithms.integration.advance`).
"""

from __future__ import annotations

from math import cos, sin

from ...array_types import Matrix, Vector
from ...collision.triples import component, times
from ...contact.rigid.answers import INNER, OUTER, OWN
from ...engine.loops.kernels import subtract_multiples
from ...model.tree import FLOATING, PLANAR
from ..smooth_motion import clear, copy
from ..stage_records import RobotStages
from ..turns import UNIT, Columns, Turn, columns_of, crossed, turn_of, turned_by, turned_columns
from .acceleration import pull_back_acceleration, rows_of_problem, write_acceleration_slopes
from .contacts import add_curved
from .equations import Places
from .records import AccelerationSlopes

SAME = 1e-6  # relative difference of slopes below which they count as the same
OF_JOINT = 6  # most velocities of a joint


def write_velocity_rates(s: RobotStages, y: AccelerationSlopes) -> None:
    """Replace the rates of the acceleration by those of the velocity after a semi-implicit step, in the axes of its start."""
    n, h, at, x = len(y.after), s.numbers.step, y.at, y.numbers
    rates, size = at.rates, n * at.width
    for i in range(size):
        x[rates + i] *= h
    for i in range(n):
        x[at.rates + i * at.width + at.stride + i] += 1.0
    clear(y.increment)
    for k in range(len(s.joints.curved)):
        first = s.joints.curved[k, 1]
        for i in range(first, first + (6 if s.joints.curved[k, 0] == FLOATING else 3)):
            row = at.rates + i * at.width + at.stride
            y.increment[i] = 1.0
            add_curved(s, y.increment, x[row : row + n])
            y.increment[i] = 0.0


def write_step_slopes(s: RobotStages, y: AccelerationSlopes, ends: Matrix) -> int:
    """Write the slopes (2 n + na, 3 n + na + nu) of the state after a semi-implicit step.

    Return as `write_acceleration_slopes` does.
    """
    at_limits = write_acceleration_slopes(s, y)
    write_velocity_rates(s, y)
    write_ends(s, y, ends)
    return at_limits


def compare_states(s: RobotStages, y: AccelerationSlopes, ends: Matrix, other: Matrix) -> int:
    """Mark the rigid contacts and joint rows near a boundary of states with different slopes on its sides; return their number.

    All of them take the same side together, since redundant contacts replace each other; then each alone, to find those that
    matter, or else all do. `ends` has the slopes of the step; `other` gets those of other states.
    """
    (k, count), near, found, capacity = rows_of_problem(s), 0, 0, len(s.touching.contacts.gap)
    for c in range(k + count):
        near += 1 if y.rigid.near[c] else 0
    if near == 0:
        return 0
    if differ_beside(s, y, ends, other, 0, k + count):
        for c in range(k + count):
            y.rigid.matters[c] = y.rigid.near[c] and (near == 1 or differ_beside(s, y, ends, other, c, c + 1))
            found += 1 if y.rigid.matters[c] else 0
        write_step_slopes(s, y, ends)
        for c in range(k + count):
            if y.rigid.near[c] and (found == 0 or y.rigid.matters[c]):
                y.doubtful[c if c < k else capacity + s.touching.workspace.assembly.of_rows.active[c - k]] = True
        return max(found, 1)
    write_step_slopes(s, y, ends)
    return 0


def differ_beside(s: RobotStages, y: AccelerationSlopes, ends: Matrix, other: Matrix, first: int, stop: int) -> bool:
    """Return whether slopes are different with contacts and rows from first to stop on a side of the boundaries near them."""
    different = False
    for side in range(INNER, OUTER + 1):
        for c in range(first, stop):
            y.rigid.side[c] = side
        write_step_slopes(s, y, other)
        different = different or are_different(ends, other)
    for c in range(first, stop):
        y.rigid.side[c] = OWN
    return different


def are_different(a: Matrix, b: Matrix) -> bool:
    """Return whether a column of two matrices differs by more than rounding, relative to its greatest number above 1."""
    for j in range(a.shape[1]):
        most, size = 0.0, 1.0
        for i in range(a.shape[0]):
            most, size = max(most, abs(a[i, j] - b[i, j])), max(size, abs(a[i, j]))
        if not most <= SAME * size:
            return True
    return False


def write_step_product(s: RobotStages, y: AccelerationSlopes, cotangent: Vector, product: Vector) -> None:
    """Write the product (3 n + na + nu) of a cotangent (2 n + na) of the state after a semi-implicit step and its slopes.

    One solution with the transposed matrix takes the place of one for each direction.
    """
    n, na, at = len(y.after), len(s.state.act), y.at
    for j in range(at.width):
        y.numbers[at.product + j] = 0.0
    pull_back_ends(s, y, cotangent)
    pull_back_acceleration(s, y)
    for j in range(na):
        subtract_multiples(y.numbers, at.product, at.acts + j * at.width, 0, at.width, (-cotangent[2 * n + j],))
    copy_parts(y, at.product, na, product)


def write_ends(s: RobotStages, y: AccelerationSlopes, ends: Matrix) -> None:
    """Write the slopes of the state after a semi-implicit step, from those of its velocity."""
    n, na, at = len(y.after), len(s.state.act), y.at
    write_end_rows(s, y, at)
    for i in range(n):
        copy_parts(y, at.struck + i * at.width, na, ends[i])
        copy_parts(y, at.rates + i * at.width, na, ends[n + i])
        for k in range(OF_JOINT):
            if y.start[i, k] != 0.0:
                ends[i, y.paths.first[i] + k] += y.start[i, k]
    for j in range(na):
        copy_parts(y, at.acts + j * at.width, na, ends[2 * n + j])


def pull_back_ends(s: RobotStages, y: AccelerationSlopes, cotangent: Vector) -> None:
    """Write cotangents of the acceleration to the column, from those of the state after the step.

    The product gets what q and v add to the state after the step in addition.
    """
    n, at, one, x = len(y.after), y.at, y.one, y.numbers
    for i in range(n * one.width):
        x[one.rates + i] = 0.0
    for i in range(n):  # unit velocities of each joint
        x[one.rates + i * one.width + i - y.paths.first[i]] = 1.0
    write_end_rows(s, y, one)
    clear(y.increment)
    for i in range(n):
        position, velocity, first = one.struck + i * one.width, one.rates + i * one.width, y.paths.first[i]
        for k in range(OF_JOINT):
            if first + k < n:
                y.increment[first + k] += cotangent[i] * x[position + k] + cotangent[n + i] * x[velocity + k]
                x[at.product + first + k] += cotangent[i] * y.start[i, k]
    by_v = at.product + at.stride
    add_curved(s, y.increment, x[by_v : by_v + n])
    for i in range(n * one.width):
        x[one.rates + i] = 0.0
    for i in range(n):
        x[by_v + i] += y.increment[i]
        x[one.rates + i * one.width] = s.numbers.step * y.increment[i]


def write_end_rows(s: RobotStages, y: AccelerationSlopes, at: Places) -> None:
    """Write rows of positions to `struck` and of velocities in the axes after the step to `rates`, from those of velocities.

    `start` gets the slopes of the positions of a joint by those at the start of the step.
    """
    n, h, u, x, joints = len(y.after), s.numbers.step, s.step.after, y.numbers, s.joints.curved
    for i in range(n):
        subtract_multiples(x, at.struck + i * at.width, at.rates + i * at.width, 0, at.width, (-h,), True)
        for k in range(OF_JOINT):
            y.start[i, k] = 1.0 if i == y.paths.first[i] + k else 0.0
    for joint in range(len(joints)):
        kind, i = joints[joint, 0], joints[joint, 1]
        if kind == FLOATING:
            move_floating(h, u, i, y, at)
        elif kind == PLANAR:
            move_planar(h, u, i, y, at)
        else:
            move_turning(turn_of(times(h, u[i : i + 3])), h, i, y, at)
        if kind != PLANAR:
            turn_start(h, u, i, y.start, kind == FLOATING)


def copy_parts(y: AccelerationSlopes, row: int, na: int, target: Vector) -> None:
    """Copy a row of `numbers`, with parts for q, v, joint forces, and controls with activations, to a row of `ends`."""
    n, x, stride, controls = len(y.after), y.numbers, y.at.stride, len(y.nonsmooth) - na
    by_v, by_tau, by_control = row + stride, row + 2 * stride, row + 3 * stride
    copy(x[row : row + n], target[:n])
    copy(x[by_v : by_v + n], target[n : 2 * n])
    copy(x[by_control + controls : by_control + controls + na], target[2 * n : 2 * n + na])
    copy(x[by_tau : by_tau + n], target[2 * n + na : 3 * n + na])
    copy(x[by_control : by_control + controls], target[3 * n + na :])


def combine(
    y: AccelerationSlopes, width: int, target: int, rows: int, columns: Columns, factor: float, begin: bool
) -> None:  # fmt: skip
    """Add the product of a matrix and three rows, times a factor, to three rows; or write it."""
    a, b, c = columns
    for i in range(3):
        factors = -factor * component(a, i), -factor * component(b, i), -factor * component(c, i)
        if begin:
            subtract_multiples(y.numbers, target + i * width, rows, width, width, factors, True)
        else:
            subtract_multiples(y.numbers, target + i * width, rows, width, width, factors)


def move_turning(turn: Turn, h: float, i: int, y: AccelerationSlopes, at: Places) -> None:
    """Write the rows J h dw of a rotation with the velocity w from row i on."""
    columns = columns_of(turn.w, turn.b, turn.c)
    combine(y, at.width, at.struck + i * at.width, at.rates + i * at.width, columns, h, True)


def move_floating(h: float, u: Vector, i: int, y: AccelerationSlopes, at: Places) -> None:
    """Write the rows of a floating joint's position p + R h l, and of l in the axes after the step; l starts at row i."""
    turn, l, width = turn_of(times(h, u[i + 3 : i + 6])), (u[i], u[i + 1], u[i + 2]), at.width
    position, linear, angular = at.struck + i * width, at.rates + i * width, at.rates + (i + 3) * width
    move_turning(turn, h, i + 3, y, at)
    turned = crossed(turned_by(turn.w, turn.a, turn.b, l), columns_of(turn.w, turn.b, turn.c))
    combine(y, width, position, linear, columns_of(turn.w, turn.a, turn.b), 1.0, True)
    for j in range(3):
        subtract_multiples(y.numbers, linear + j * width, position + j * width, 0, width, (-1.0,), True)
    for j in range(3 * width):
        y.numbers[position + j] *= h
    combine(y, width, linear, angular, turned, h, False)


def move_planar(h: float, u: Vector, i: int, y: AccelerationSlopes, at: Places) -> None:
    """Do the same for a planar joint, with one angle, and write its part of `start`."""
    c, s, x, start, width = cos(h * u[i + 2]), sin(h * u[i + 2]), y.numbers, y.start, at.width
    ahead, aside = c * u[i] + s * u[i + 1], c * u[i + 1] - s * u[i]
    for j in range(width):
        first, second, third = at.rates + i * width + j, at.rates + (i + 1) * width + j, at.rates + (i + 2) * width + j
        p, q, turning = c * x[first] + s * x[second], c * x[second] - s * x[first], h * x[third]
        x[at.struck + i * width + j], x[at.struck + (i + 1) * width + j] = h * p, h * q
        x[first], x[second] = p + turning * aside, q - turning * ahead
    start[i, 0], start[i, 1], start[i, 2] = c, s, -h * aside
    start[i + 1, 0], start[i + 1, 1], start[i + 1, 2] = -s, c, h * ahead


def turn_start(h: float, u: Vector, i: int, start: Matrix, floats: bool) -> None:
    """Write the slopes of positions by those of the start, Eᵀ dq."""
    first, column = (i + 3, 3) if floats else (i, 0)
    turn = turn_of(times(h, u[first : first + 3]))
    columns = columns_of(turn.w, turn.a, turn.b)
    put_block(columns, first, column, start)
    if floats:
        put_block(columns, i, 0, start)
        put_block(turned_columns(turn.w, turn.a, turn.b, crossed(times(-h, u[i : i + 3]), UNIT)), i, 3, start)


def put_block(columns: Columns, i: int, j: int, start: Matrix) -> None:
    """Write a matrix (3, 3) at row i and column j."""
    a, b, c = columns
    for r in range(3):
        start[i + r, j], start[i + r, j + 1], start[i + r, j + 2] = component(a, r), component(b, r), component(c, r)
