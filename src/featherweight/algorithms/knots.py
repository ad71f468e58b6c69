"""Knots of optimal control problems: steps, rows of costs and constraints, and parts of their derivatives."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..spatial import sqrt
from .contact.operational_space.dense_factors import is_zero
from .forward_dynamics_derivatives import dot

FELT = "felt"  # the joint forces at the end of a step
ROUNDED = 1e-3  # relative to the weight: smaller tangential forces are rounded off
ROUNDED_WIDTH = 1e-8  # relative to a width's square; the error of costs is about its square


class Drive(NamedTuple):
    """The action of a control u on a joint of one degree of freedom: gain u + stiffness q + damping v + force [N m, N].

    A drive that is evaluated at the end of a step has an armature, which reduces its force in proportion to the joint's
    acceleration.
    """

    velocity: int  # number of the joint's velocity
    gain: float = 1.0
    position: int = 0  # number of the joint's coordinate
    stiffness: float = 0.0
    damping: float = 0.0
    force: float = 0.0
    armature: float = 0.0  # [kg m², kg]

    @property
    def alone(self) -> bool:
        """True if the joint force depends on the control alone."""
        return self.stiffness == self.damping == self.force == 0.0


def joint_forces(drives: tuple[Drive, ...], u, *others: Any) -> None:
    """Write joint forces tau of drives, as functions of q and v too if drives need them; zero at other joints."""
    *state, tau = others
    for i, d in enumerate(drives):
        total = d.gain * u[i] if d.gain != 1.0 else u[i]
        if not d.alone:
            q, v = state
            total = total + d.stiffness * q[d.position] + d.damping * v[d.velocity] + d.force
        tau[d.velocity] = tau[d.velocity] + total


def felt_forces(drives: tuple[Drive, ...], tau, a, felt) -> None:
    """Write joint forces at the end of a step, given those without the drives' armatures."""
    for i, x in enumerate(tau):
        felt[i] = x
    for d in drives:
        felt[d.velocity] = felt[d.velocity] - d.armature * a[d.velocity]


def add_through_drives(drives: tuple[Drive, ...], n: int, by_tau, row) -> None:
    """Add the part of the derivatives by (dq, dv, du) that results from derivatives by the joint forces."""
    for i, d in enumerate(drives):
        for at, factor in ((2 * n + i, d.gain), (d.velocity, d.stiffness), (n + d.velocity, d.damping)):
            if factor != 0.0:
                row[at] = row[at] + (by_tau[d.velocity] if factor == 1.0 else factor * by_tau[d.velocity])


def next_velocity(impact: bool, v, a, h, results) -> None:
    """Write the velocity after a step h, and the displacement (semi-implicit Euler).

    After an impact, the velocity changes by the jump a.
    """
    velocity, displacement = results
    for i, x in enumerate(a):
        velocity[i] = v[i] + x if impact else v[i] + h * x
        displacement[i] = 0.0 if impact else h * velocity[i]


def stage_state(part: float, v, h, rate, a, results) -> None:
    """Write the velocity at a stage of the Runge-Kutta method, and the displacement to it, from rates of the stage before."""
    velocity, displacement = results
    for i, x in enumerate(a):
        velocity[i] = v[i] + part * h * x
        displacement[i] = part * h * rate[i]


def runge_kutta(h, v, *rates_and_results: Any) -> None:
    """Write the velocity after a step, and the displacement along it, by the classical method of order 4 (Kutta 1901).

    Displacements are coordinates u of the motion q exp(u) (Munthe-Kaas 1999); the first stage has the rate v.
    """
    k2, k3, k4, a, a2, a3, a4, (velocity, displacement) = rates_and_results
    sixth = h * (1.0 / 6.0)
    for i, x in enumerate(v):
        velocity[i] = x + sixth * (a[i] + 2.0 * (a2[i] + a3[i]) + a4[i])
        displacement[i] = sixth * (x + 2.0 * (k2[i] + k3[i]) + k4[i])


def stacked(*rows_and_result: Any) -> None:
    """Write arrays as rows."""
    *rows, result = rows_and_result
    for row, x in zip(result, rows, strict=True):
        row[:] = x


def side_by_side(a, b, result) -> None:
    """Write the columns of two matrices, and then zeros."""
    for row, x, y in zip(result, a, b, strict=True):
        row[: len(x) + len(y)] = [*x, *y]


def links(blocks: tuple[tuple[int, int], ...], *matrices_and_result: Any) -> None:
    """Write the blocks of the first joint of all matrices, then those of the second, ..."""
    *matrices, result = matrices_and_result
    spans = [range(first, first + size) for first, size in blocks]
    result[:] = [x[i][j] for span in spans for x in matrices for i in span for j in span]


def acceleration_slopes(drives: tuple[Drive, ...], first: int, by_q, by_v, by_tau, *more: Any) -> None:
    """Write derivatives of an acceleration by (dq, dv, du), and from the column `first` on those by the target of contacts."""
    *by_target, result = more
    n = len(by_q)
    for i, row in enumerate(result):
        row[: 2 * n] = [*by_q[i], *by_v[i]]
        add_through_drives(drives, n, by_tau[i], row)
        for part in by_target:
            row[first : first + len(part[i])] = part[i]


def no_rebound(h, restitution) -> None:
    """Write a restitution of zero: contacts hold after an impact."""
    restitution[0] = 0.0


def jump(after, v, a) -> None:
    """Write the jump of the velocity at an impact."""
    for i, x in enumerate(after):
        a[i] = x - v[i]


def nothing(v, result) -> None:
    """Write zeros."""


def jump_slopes(by_q, by_v, results) -> None:
    """Write the derivatives of the jump by q, v and tau, given those of the velocity after it."""
    da_dq, da_dv, _ = results
    for i, row in enumerate(by_v):
        for j, x in enumerate(row):
            da_dq[i][j] = by_q[i][j]
            da_dv[i][j] = x - 1.0 if i == j else x


def free_step(longest, root, h) -> None:
    """Write the length of a free step from its square root relative to the longest."""
    h[0] = longest * root * root


def root_two(a, rows) -> None:
    """Write the row whose half square is one, so that its integral is the duration."""
    rows[0] = math.sqrt(2.0)


def rest_after_step(h, results) -> None:
    """Write gains that bring contacts to rest after a step, wherever they are."""
    _, gains = results
    gains[1] = 1.0 / h


def picked(which: tuple[int, ...], x, rows) -> None:
    """Write some entries of a quantity."""
    for i, k in enumerate(which):
        rows[i] = x[k]


def friction(mu: float, weight: float, sole: tuple[float, float], turns: tuple[Any, ...], placements, force, rows) -> None:
    """Write rows that are positive if contacts do not slip, tilt or turn, in units of the robot's weight.

    `turns` has for each contact whether it is a surface, and the axes of its frame in the frame that is placed. A point has
    the row mu f_z - |f_t|, with the normal z of the world. Close to zero |f_t| is rounded, so that it has a derivative. A
    surface has more rows: the centre of pressure lies within the sole (length along x, width along y), and the moment about
    the normal is at most mu f_z times a quarter of length and width.
    """
    length, width = sole
    reach = 0.5 * width, 0.5 * length, 0.25 * mu * (length + width)
    at = row = 0
    for T, (surface, R) in zip(placements, turns, strict=True):
        own = [sum((R[i][j] * force[at + j] for j in range(3)), 0.0) for i in range(3)]
        x, y, z = (sum((T[r][c] * own[c] for c in range(3)), 0.0) for r in range(3))
        small = ROUNDED * weight
        rows[row] = (mu * z - sqrt(x * x + y * y + small * small)) * (1.0 / weight)
        row += 1
        for i in range(3 * surface):
            moment = force[at + 3 + i] * (1.0 / reach[i])
            rows[row], rows[row + 1] = (z - moment) * (1.0 / weight), (z + moment) * (1.0 / weight)
            row += 2
        at += 6 if surface else 3


def gathered(sizes: tuple[int, ...], *parts_and_rows: Any) -> None:
    """Write all rows, one part after the other."""
    *parts, rows = parts_and_rows
    k = 0
    for part in parts:
        for x in part:
            rows[k] = x
            k += 1


def scaled_rows(scaled: tuple[bool, ...], root, rows, results) -> None:
    """Write rows whose squares are in proportion to the step if they are `scaled`; others do not change."""
    for i, (x, own) in enumerate(zip(rows, scaled, strict=True)):
        results[i] = root * x if own else x


def huber_rows(widths: tuple[float, ...], rows, results) -> None:
    """Write rows whose half squares are Huber's function of the given ones (Huber 1964); those of infinite width do not change.

    They are r sqrt(d (2 m - d)) / m with m = max(|r|, d), rounded close to |r| = d, so that it has derivatives.
    """
    for i, (x, d) in enumerate(zip(rows, widths, strict=True)):
        results[i] = x
        if d < math.inf:
            beyond, small = x * x - d * d, ROUNDED_WIDTH * d * d
            m = sqrt(0.5 * (x * x + d * d + sqrt(beyond * beyond + small * small)))
            results[i] = x * sqrt(d * (2.0 * m - d)) / m


def with_column_of_step(scaled: tuple[bool, ...], first: int, slopes, *given: Any) -> None:
    """Write derivatives of scaled rows by (dq, dv, step, du), given those by (dq, dv, du), and the column of a free step."""
    *free, results = given
    for i, (row, own) in enumerate(zip(slopes, scaled, strict=True)):
        others = [free[0] * x if own and not is_zero(x) else x for x in row]
        results[i][:] = [*others[:first], free[1][i] if free else 0.0, *others[first:]]


def row_slopes(quantities: tuple[tuple[str, ...], ...], drives: tuple[Drive, ...], n: int, *given: Any) -> None:
    """Write derivatives of all rows by (dq, dv, du).

    `quantities` has the quantities by which each part's derivatives are given. Derivatives of a and force by q, v and tau come
    last, if parts depend on them.
    """
    *arrays, rows = given
    left = iter(arrays)
    parts = [(by, [next(left) for _ in by]) for by in quantities]
    through = {name: [next(left) for _ in range(3)] for name in ("a", "force") if depends(quantities, name)}
    k = 0
    for by, slopes in parts:
        for i in range(len(slopes[0])):
            for name, slope in zip(by, slopes, strict=True):
                add_slopes(name, slope[i], through.get("a" if name == FELT else name), drives, n, rows[k])
            k += 1


def depends(quantities: tuple[tuple[str, ...], ...], name: str) -> bool:
    """Return whether derivatives of a or force are needed."""
    return any(name in by or (name == "a" and FELT in by) for by in quantities)


def add_slopes(name: str, slope, through, drives: tuple[Drive, ...], n: int, row) -> None:
    """Add the derivatives of one row by one quantity."""
    if name == "u":
        for i, x in enumerate(slope):
            row[2 * n + i] = row[2 * n + i] + x
    elif name == "tau":
        add_through_drives(drives, n, slope, row)
    elif name == FELT:
        add_through_drives(drives, n, slope, row)
        armature = [sum(d.armature for d in drives if d.velocity == j) for j in range(n)]
        add_slopes("a", [-x * y if x else 0.0 for x, y in zip(armature, slope, strict=True)], through, drives, n, row)
    elif through is None:
        first = n if name == "v" else 0
        for j, x in enumerate(slope):
            row[first + j] = row[first + j] + x
    else:
        for i, x in enumerate(slope):
            if is_zero(x):
                continue
            by_q, by_v, by_tau = (part[i] for part in through)
            for j in range(n):
                row[j] = row[j] + x * by_q[j]
                row[n + j] = row[n + j] + x * by_v[j]
            add_through_drives(drives, n, [x * y for y in by_tau], row)


def second_derivatives(
    quantities: tuple[tuple[str, ...], ...], blocks: tuple[tuple[int, int], ...], drives: tuple[Drive, ...], n: int, *given: Any
) -> None:
    """Write the lower triangle of the second derivatives by (dq, dv, du) of a weighted sum of rows.

    The second derivatives by the quantities of each part are given. Derivatives along the velocities of a curved joint do not
    commute; the second derivative along a displacement has their mean.
    """
    *arrays, whole = given
    left = iter(arrays)
    for by in quantities:
        second = {(x, y): next(left) for x in by for y in by}
        for x in by:
            rows = [[0.0] * len(whole) for _ in second[x, x]]
            for i, row in enumerate(rows):
                for y in by:
                    add_slopes(y, second[x, y][i], None, drives, n, row)
            for j in range(len(whole)):
                add_slopes(x, [row[j] for row in rows], None, drives, n, whole[j])
    for first, size in blocks:
        for i in range(first, first + size):
            for j in range(first, i):
                whole[i][j] = 0.5 * (whole[i][j] + whole[j][i])


class StepVariables(NamedTuple):
    """The variables of a step, and its results a and force, in which the second derivatives of its equations are given.

    Columns of derivatives are (dq, dv, du), or (dq, dv, step, du) with a free step.
    """

    moved: tuple[str, ...]  # variables of the next state
    balanced: tuple[str, ...]  # variables of the equations
    solved: tuple[str, ...]  # which of them are functions of the others
    drives: tuple[Drive, ...]
    blocks: tuple[tuple[int, int], ...]  # of joints on curved manifolds
    n: int
    root: tuple[str, ...]  # name of the root of a free step, if something depends on it
    column: bool  # whether there is a column for a step

    @property
    def width(self) -> int:
        """The number of columns."""
        return 2 * self.n + len(self.drives) + self.column


def balance(load, moved, *pull_and_result: Any) -> None:
    """Write the residual of the equations of motion: load and constraint forces, without the forces that the motion takes."""
    *pull, result = pull_and_result
    for i, x in enumerate(load):
        result[i] = x - moved[i]
        for part in pull:
            result[i] = result[i] + part[i]


def slack(rows, *target_and_result: Any) -> None:
    """Write the residual of the equations of constraints: the target without the accelerations of rows."""
    *target, result = target_and_result
    for i, x in enumerate(rows):
        result[i] = -x
        for part in target:
            result[i] = result[i] + part[i]


def multipliers(inverse, *by_force_and_results: Any) -> None:
    """Write the multipliers of the equations of motion and of constraint rows, for a cotangent of the acceleration.

    The matrix of these equations is symmetric, so the multipliers are its solution for this cotangent: derivatives of
    acceleration and constraint force by the joint forces give them.
    """
    *by_force, bar, results = by_force_and_results
    of_motion, *of_rows = results if by_force else (results,)
    for j in range(len(inverse)):
        of_motion[j] = dot(bar, inverse, j)
    for df_dtau, multiplier in zip(by_force, of_rows, strict=True):
        for r, row in enumerate(df_dtau):
            multiplier[r] = -sum((x * y for x, y in zip(row, bar, strict=True)), 0.0)


def step_curvature(s: StepVariables, places: tuple[tuple[int, int], ...], *given: Any) -> None:
    """Write the second derivatives at `places` of the Lagrange function of a step by its independent variables.

    Given are the second derivatives of the next state and of the equations by all their variables, then the derivatives of a
    and force by q, v, tau and the root. With the rows Z of a and force by the independent variables y, the result is
    W_yy + W_ya Z + (W_ya Z)ᵀ + Zᵀ W_aa Z.

    Derivatives along velocities of curved joints do not commute with each other, and those of the next configuration of these
    joints do not commute with any; the second derivative along a displacement has their mean.
    """
    *arrays, hessian = given
    left = iter(arrays)
    first, second = (
        {(x, y): rows_of(next(left), x in s.root, y in s.root) for x in names for y in names} for names in (s.moved, s.balanced)
    )
    total = second | {
        (x, y): [
            [0.5 * (a + first[y, x][j][i]) + (second[x, y][i][j] if (x, y) in second else 0.0) for j, a in enumerate(row)]
            for i, row in enumerate(rows)
        ]
        for (x, y), rows in first.items()
    }
    Z = {name: slopes_of_solution(s, [next(left) for _ in range(3 + len(s.root))]) for name in s.solved}
    begin, width = {"q": 0, "v": s.n} | dict.fromkeys(s.root, 2 * s.n), s.width
    H = [[0.0] * width for _ in range(width)]
    for (x, y), W in total.items():
        for i, row in enumerate(W):
            if x in s.solved and y in s.solved:
                by = through_rows(row, Z[y], width)
                for j, z in enumerate(Z[x][i]):
                    add_row(H[j], 0, by, z)
            elif y in s.solved:
                by = through_rows(row, Z[y], width)
                add_row(H[begin[x] + i], 0, by)
                for j, z in enumerate(by):
                    H[j][begin[x] + i] = H[j][begin[x] + i] + z
            elif x not in s.solved:
                add_row(H[begin[x] + i], begin[y], row)
    block = {i: k for k, (at, size) in enumerate(s.blocks) for i in range(at, at + size)}
    for k, (i, j) in enumerate(places):
        same = i != j and i in block and block.get(i) == block.get(j)
        hessian[k] = 0.5 * (H[i][j] + H[j][i]) if same else H[i][j]


def rows_of(W, single_row: bool, single_column: bool):
    """Return the rows of second derivatives; those by the root of a step have lost an axis."""
    rows = [W] if single_row else W
    return [[x] for x in rows] if single_column else rows


def slopes_of_solution(s: StepVariables, slopes):
    """Return the rows of derivatives by all columns, given those by q, v, tau and the root of a free step."""
    by_q, by_v, by_tau, *by_root = slopes
    rows = []
    for i, by in enumerate(by_q):
        row = [*by, *by_v[i], *([0.0] * len(s.drives))]
        add_through_drives(s.drives, s.n, by_tau[i], row)
        step = [by_root[0][i] if by_root else 0.0] * s.column
        rows.append([*row[: 2 * s.n], *step, *row[2 * s.n :]])
    return rows


def through_rows(weights, rows, width: int):
    """Return the sum of rows with weights."""
    total = [0.0] * width
    for w, row in zip(weights, rows, strict=True):
        if not is_zero(w):
            add_row(total, 0, row, w)
    return total


def add_row(total, first: int, row, factor=None) -> None:
    """Add a row, times a factor, to the entries of another from `first` on."""
    if factor is not None and is_zero(factor):
        return
    for j, x in enumerate(row, first):
        if not is_zero(x):
            total[j] = total[j] + (x if factor is None else factor * x)


def second_with_step(scaled: tuple[bool, ...], first: int, second, slopes, bend, results) -> None:
    """Write the lower triangle of second derivatives by (dq, dv, step, du), given those by (dq, dv, du).

    The derivatives by the step are those of rows, `slopes`, which are `scaled` by it.
    """
    for i, row in enumerate(second):
        results[i + (i >= first)][:] = [*row[:first], 0.0, *row[first:]]
    for row, factor, own in zip(slopes, bend, scaled, strict=True):
        for j, x in enumerate(row):
            if own and not is_zero(x):
                a, b = (first, j) if j < first else (j + 1, first)
                results[a][b] = results[a][b] + factor * x


def gauss_newton(places: tuple[tuple[int, int], ...], rows, force, stiffness, *second_and_results: Any) -> None:
    """Write the gradient Jᵀ f and the entries of the Hessian Jᵀ diag(c) J of the cost, at `places`.

    Second derivatives of rows, if they are given, are added to the Hessian.
    """
    *second, (gradient, hessian) = second_and_results
    own = {place: k for k, place in enumerate(places)}
    for whole in second:
        for (i, j), k in own.items():
            hessian[k] = whole[i][j]
    for i, row in enumerate(rows):
        nonzero = [j for j, x in enumerate(row) if not is_zero(x)]
        for j in nonzero:
            gradient[j] = gradient[j] + row[j] * force[i]
            by = row[j] * stiffness[i]
            for k in nonzero:
                if k <= j:
                    at = own[j, k]
                    hessian[at] = hessian[at] + by * row[k]


def motion_slopes(curved: tuple[tuple[int, int], ...], drives: tuple[Drive, ...], impact: bool, h, *given: Any) -> None:
    """Write D = dv' by (dq, dv, du) into the last rows, and for each curved block the derivatives of q' by q and by v'."""
    lasts = 0.0 if impact else h
    h = 1.0 if impact else h
    *by, results = given
    motion, blocks = results if isinstance(results, tuple) else (results, None)
    by_q, by_v, by_tau = by[:3]
    n = len(by_q)
    for i, row in enumerate(motion[len(motion) - n :]):
        for j in range(n):
            row[j] = h * by_q[i][j]
            row[n + j] = (1.0 if i == j else 0.0) + h * by_v[i][j]
        add_through_drives(drives, n, [h * x for x in by_tau[i]], row)
    at = 0
    for first, size in curved:
        for scale, slope in ((1.0, by[3]), (lasts, by[4])):
            for i in range(first, first + size):
                for j in range(first, first + size):
                    blocks[at] = scale * slope[i][j]
                    at += 1


def motion_with_step(curved: tuple[tuple[int, int], ...], h, slopes, *given: Any) -> None:
    """Write derivatives of q' without those of q, of v', and of the step, by (dq, dv, step, du).

    Given are those of v' by (dq, dv, du), the blocks of q', and the columns of a free step.
    """
    *others, results = given
    n, columns, at = len(slopes), range(len(slopes[0])), 0
    ahead = [[h * x for x in row] for row in slopes]
    for first, size in curved:
        own = range(first, first + size)
        A, S = ([others[0][k + i * size : k + (i + 1) * size] for i in range(size)] for k in (at, at + size * size))
        for i, by_q, by_velocity in zip(own, A, S, strict=True):
            ahead[i] = [sum((x * slopes[k][j] for k, x in zip(own, by_velocity, strict=True)), 0.0) for j in columns]
            for j, x in zip(own, by_q, strict=True):
                ahead[i][j] = ahead[i][j] + (x - 1.0 if i == j else x)
        at += 2 * size * size
    column = [x for part in others[len(curved) > 0 :] for x in part] or [0.0] * (2 * n)
    for out, row, x in zip(results, [*ahead, *slopes], column, strict=False):
        out[: len(row) + 1] = [*row[: 2 * n], x, *row[2 * n :]]
    results[2 * n][2 * n] = 1.0


def column_of_step(h, *parts_and_result: Any) -> None:
    """Write the derivatives of q' and v' by a free step, one after the other; zeros if the step h is given."""
    *parts, result = parts_and_result
    for i, x in enumerate(x for part in parts for x in part):
        result[i] = x
