"""The contact problem of one robot: from contacts to the matrix and velocities of `impulses`.

The Delassus matrix G has the rows of the bodies that may touch and of joints with limits and dry friction. A body has six rows
(linear and angular, in its axes and at its origin), or three at its single contact point. Contacts change, but G does not: the
rows of a contact are a combination R of its bodies' rows, so A = R G Rᵀ consists of the blocks of touching bodies, and no code
is compiled for a set of contacts. If there are many more contacts than velocities of bodies, A = B Bᵀ is given by B = R L, with
the factor L of G.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..array_types import Integers, Matrix, Shared, Tensor, Tensor4, Vector
from ..collision.detection import ContactPoints, body_of
from ..engine.loops.kernels import LANES, aligned_numbers, as_matrix, subtract_product
from .compliant.compliance import yielding_of
from .contact_model import ContactModel, pull_of
from .factors.block_equations import place_of
from .factors.branch_elimination import multiplications
from .factors.branches import padded
from .factors.delassus_factor import FactorWork, factor_work, write_factor
from .factors.inverse_factor import ContactGeometry, InverseFactors, InverseWork, factor_by_inverse
from .factors.relative_rows import (
    Columns,
    RowsOfBody,
    add_rows_of_body,
    add_rows_of_contact,
    group_contacts,
    has_own_rows,
    joint_groups,
    place_groups,
    write_ends,
)
from .factors.row_factor import (
    NO_BRANCHES,
    FactorSizes,
    RowFactor,
    RowFactorWork,
    begin_one_branch,
    blocks_of_factor,
    no_factor,
    planned_factor,
    row_factor_work,
    write_column,
)
from .joint_rows import is_active
from .laws import COULOMB, RIGID, ContactLaw, Problem, RowMotion, empty_law, law_in, write_law

REDUNDANT = 1.25  # least ratio of impulses to rows of G for which B replaces A


class ContactKinematics(NamedTuple):
    """Placements and velocities of bodies that may touch, and gaps and speeds of joint rows."""

    placement: Tensor  # (bodies, 4, 4)
    velocity: Matrix  # (bodies, 6), linear and angular in the body's axes
    gap: Vector  # (joint rows,)
    speed: Vector  # (joint rows,)
    velocity_before: Matrix  # (bodies, 6) at the start of the step, if the problem needs it
    speed_before: Vector  # (joint rows,)


class BodyDelassus(NamedTuple):
    """G, and the first row of each body; or the factors from which G is computed, if that is cheaper."""

    G: Matrix  # (m, m)
    begin: Shared[Integers]  # (bodies + 1,) the last is the first row of joints
    by_inverse: bool  # G is empty, and `factors` are given
    factors: InverseFactors
    work: Shared[InverseWork]


class ContactImpulses(NamedTuple):
    """Impulses [N s, N m s] of a step, and the least displacement that separates overlapping bodies, as impulses."""

    force: Matrix  # (contacts, 3) in the world frame
    wrench: Matrix  # (bodies, 6)
    joint: Vector  # (joints with limits or friction,)
    correction: Matrix  # (bodies, 6), the displacement
    joint_correction: Vector
    impact: Matrix  # (bodies, 6), part of impacts at the start, if velocities and positions are at the same time
    joint_impact: Vector
    last_force: Matrix  # (candidates, 3) in the world frame, initial guess of the next step
    last_row: Vector  # (joint rows,)
    kept: Integers  # (contacts,) candidates in `last_force`; their number is kept_count[0]
    kept_count: Integers  # (1,)
    next_row: Vector  # (joint rows,)
    turn: Matrix  # (contacts, 3) [N m s] in the world frame, of friction against spinning and rolling
    last_turn: Matrix  # (candidates, 3), no rows without such friction

    @classmethod
    def of_sizes(
        cls, contacts: int, bodies: int, joints: int, candidates: int, rows: int, turning: bool = True
    ) -> ContactImpulses:
        """Return zero impulses for so many contacts, with or without friction against spinning and rolling."""
        wrench, correction, impact = np.zeros((3, bodies, 6))
        joint, joint_correction, joint_impact = np.zeros((3, joints))
        last_row, next_row = np.zeros((2, rows))
        kept, kept_count = np.zeros(contacts, np.int64), np.zeros(1, np.int64)
        return cls(
            np.zeros((contacts, 3)), wrench, joint, correction, joint_correction, impact, joint_impact,
            np.zeros((candidates, 3)), last_row, kept, kept_count, next_row, np.zeros((contacts, 3)),
            np.zeros((candidates if turning else 0, 3)),
        )  # fmt: skip


class ProblemRows(NamedTuple):
    """The rows of one robot's problem: k contacts, then rows with bounds. The matrix of the problem is separate."""

    approach: Vector  # (m,) velocities before impulses, without gaps
    before: Vector  # (m,) velocities at the start of the step, if needed
    law: ContactLaw
    rows: Tensor4  # (contacts, 2, 3, 6) rows of normal and tangents, on body a and on body b
    axes: Tensor  # (contacts, 3, 3) normal and tangents in the world frame
    start: Vector  # (m,) impulses of the previous step
    active: Integers  # (active joint rows,)
    pull: Vector = np.zeros(0)  # (contacts,) [N s] pull of adhesion
    conveyed: Vector = np.zeros(0)  # (m,) velocities of moving surfaces relative to their bodies; included in `approach`


class AssembledProblem(NamedTuple):
    """One robot's problem, and the meaning of its rows, as in `ProblemRows`."""

    problem: Problem
    approach: Vector
    before: Vector
    law: ContactLaw
    rows: Tensor4
    axes: Tensor
    start: Vector
    active: Integers
    pull: Vector = np.zeros(0)
    conveyed: Vector = np.zeros(0)


def write_axes(n: Vector, axes: Matrix) -> None:
    """Write a normal and two tangents to the rows of `axes`."""
    x, y, z = n[0], n[1], n[2]
    if abs(x) < 0.9:
        tx, ty, tz = 1.0 - x * x, -x * y, -x * z
    else:
        tx, ty, tz = -y * x, 1.0 - y * y, -y * z
    length = sqrt(tx * tx + ty * ty + tz * tz)
    tx, ty, tz = tx / length, ty / length, tz / length
    axes[0, 0], axes[0, 1], axes[0, 2] = x, y, z
    axes[1, 0], axes[1, 1], axes[1, 2] = tx, ty, tz
    axes[2, 0], axes[2, 1], axes[2, 2] = y * tz - z * ty, z * tx - x * tz, x * ty - y * tx


def write_file_axes(
    tangents: Vector, contacts: ContactPoints, c: int, placement: Tensor, sliding: bool, axes: Matrix
) -> None:  # fmt: skip
    """Rotate the tangents of a contact to MuJoCo's, and scale them by their friction relative to the greater one.

    An elliptic cone thereby becomes round. Without another direction, MuJoCo's first tangent is y, or z if the normal is near
    y, minus its component along the normal.
    """
    n = contacts.normal[c]
    x, y, z = 0.0, 1.0, 0.0
    if not -0.5 < n[1] < 0.5:
        y, z = 0.0, 1.0
    if tangents[2] != 0.0 or tangents[3] != 0.0 or tangents[4] != 0.0:
        T, u, v, w = placement[contacts.a[c]], tangents[2], tangents[3], tangents[4]
        x = T[0, 0] * u + T[0, 1] * v + T[0, 2] * w
        y = T[1, 0] * u + T[1, 1] * v + T[1, 2] * w
        z = T[2, 0] * u + T[2, 1] * v + T[2, 2] * w
    along = x * n[0] + y * n[1] + z * n[2]
    x, y, z = x - along * n[0], y - along * n[1], z - along * n[2]
    length = sqrt(x * x + y * y + z * z)
    if not length > 0.0:  # an upright capsule
        return
    x, y, z = x / length, y / length, z / length
    first, second = (tangents[0], tangents[1]) if sliding else (1.0, 1.0)
    axes[1, 0], axes[1, 1], axes[1, 2] = first * x, first * y, first * z
    axes[2, 0] = second * (n[1] * z - n[2] * y)
    axes[2, 1] = second * (n[2] * x - n[0] * z)
    axes[2, 2] = second * (n[0] * y - n[1] * x)


def add_surface_velocities(model: ContactModel, contacts: ContactPoints, c: int, p: ProblemRows) -> None:
    """Add velocities of surfaces relative to their bodies, along the tangents of a contact or for its spinning row."""
    k, x, sign = len(p.law.friction), contacts.point[c], 1.0
    first, last = (1, 3) if c < k else (0, 1)
    for i in range(3):
        p.conveyed[3 * c + i] = 0.0
    for s in range(2):
        w, body = model.surfaces[contacts.candidate[c], s], body_of(contacts, c, s)
        u = w[0] + w[4] * x[2] - w[5] * x[1], w[1] + w[5] * x[0] - w[3] * x[2], w[2] + w[3] * x[1] - w[4] * x[0]
        if c >= k:
            u = w[3], w[4], w[5]
        for i in range(first, last):
            seen = sign * (p.axes[c, i, 0] * u[0] + p.axes[c, i, 1] * u[1] + p.axes[c, i, 2] * u[2])
            if body >= 0:
                seen = 0.0
                for j in range(6):
                    seen += p.rows[c, s, i, j] * w[j]
            p.conveyed[3 * c + i] += seen
        sign = -1.0
    for i in range(first, last):
        p.approach[3 * c + i] += p.conveyed[3 * c + i]
        p.before[3 * c + i] += p.conveyed[3 * c + i]


def write_rows(axes: Matrix, point: Vector, T: Matrix, sign: float, rows: Matrix) -> None:
    """Write rows (3, 6) that act on the (linear, angular) velocity of a body with placement T, in its axes."""
    dx, dy, dz = point[0] - T[0, 3], point[1] - T[1, 3], point[2] - T[2, 3]
    px = T[0, 0] * dx + T[1, 0] * dy + T[2, 0] * dz
    py = T[0, 1] * dx + T[1, 1] * dy + T[2, 1] * dz
    pz = T[0, 2] * dx + T[1, 2] * dy + T[2, 2] * dz
    for k in range(3):
        a, b, c = sign * axes[k, 0], sign * axes[k, 1], sign * axes[k, 2]
        x = T[0, 0] * a + T[1, 0] * b + T[2, 0] * c
        y = T[0, 1] * a + T[1, 1] * b + T[2, 1] * c
        z = T[0, 2] * a + T[1, 2] * b + T[2, 2] * c
        rows[k, 0], rows[k, 1], rows[k, 2] = x, y, z
        rows[k, 3], rows[k, 4], rows[k, 5] = py * z - pz * y, pz * x - px * z, px * y - py * x


def write_turning_rows(axes: Matrix, T: Matrix, sign: float, rows: Matrix) -> None:
    """Write rows (3, 6) of spinning about the normal and rolling about the tangents, in the axes of a body with placement T."""
    for k in range(3):
        a, b, c = sign * axes[k, 0], sign * axes[k, 1], sign * axes[k, 2]
        rows[k, 0] = rows[k, 1] = rows[k, 2] = 0.0
        rows[k, 3] = T[0, 0] * a + T[1, 0] * b + T[2, 0] * c
        rows[k, 4] = T[0, 1] * a + T[1, 1] * b + T[2, 1] * c
        rows[k, 5] = T[0, 2] * a + T[1, 2] * b + T[2, 2] * c


class RowWork(NamedTuple):
    """Workspace for the rows of at most k contacts and n joint rows, m = 3 k + n."""

    active: Integers  # (m,)
    rows: Tensor4  # (k, 2, 3, 6)
    axes: Tensor  # (k, 3, 3)
    gap: Vector  # (k + n,)
    approach: Vector  # (m,)
    before: Vector  # (m,)
    start: Vector  # (m,)
    law: ContactLaw
    turning: Integers  # (k,) index among the rows of spinning and rolling, or -1
    turning_friction: Matrix  # (k, 3)
    pull: Vector  # (k,)
    conveyed: Vector  # (m,)


def row_work(contacts: int, rows: int) -> RowWork:
    """Return workspace for the rows of contacts and joint rows."""
    m = 3 * contacts + rows
    approach, before, start = np.empty((3, m))
    return RowWork(
        np.empty(m, np.int64), np.empty((contacts, 2, 3, 6)), np.empty((contacts, 3, 3)), np.empty(contacts + m),
        approach, before, start, empty_law(contacts, m), np.full(contacts, -1), np.empty((contacts, 3)),
        np.empty(contacts), np.zeros(m),
    )  # fmt: skip


class AssemblyWork(NamedTuple):
    """Workspace for the problem of at most k contacts and n joint rows, m = 3 k + n."""

    of_rows: RowWork
    A: Vector  # (m m,)
    half: Vector  # (3 columns of G,)
    factor: FactorWork  # factor of G
    place: Integers  # (columns of G,) position of each row of G in its factor
    columns: Integers  # (1,) columns of B in the last problem, -1 if A was given
    factor_rows: RowFactorWork
    pair: Integers  # (k,) numbers of the pairs of touching bodies
    key: Integers  # (k + n,)
    rows_of_A: Vector  # ((m + columns) padded(m),)
    split: RowFactorWork


def assembly_work(contacts: int, rows: int, columns: int, sizes: FactorSizes) -> AssemblyWork:
    """Return workspace for contacts and joint rows; G has `columns` columns. The system provides memory as it is used."""
    m = 3 * contacts + rows
    return AssemblyWork(
        row_work(contacts, rows), np.empty(m * m), np.empty(3 * columns), factor_work(columns), np.empty(columns, np.int64),
        np.full(1, -1), row_factor_work(contacts + rows, sizes), np.empty(contacts, np.int64),
        np.empty(contacts + rows, np.int64), aligned_numbers((m + sizes.columns) * padded(m)), row_factor_work(m, NO_BRANCHES),
    )  # fmt: skip


def find_active_rows(model: ContactModel, kinematics: ContactKinematics, active: Integers) -> int:
    """Write the joint rows that would close within the step; return their number."""
    rows, settings = model.rows, model.settings
    count = 0
    for r in range(len(rows.joint)):
        if is_active(rows, r, kinematics.gap[r], kinematics.speed[r], settings):
            active[count] = r
            count += 1
    return count


def assembled(
    model: ContactModel, contacts: ContactPoints, kinematics: ContactKinematics, delassus: BodyDelassus,
    impulses: ContactImpulses, work: AssemblyWork, turning: int = 0,
) -> AssembledProblem:  # fmt: skip
    """Return the problem of one robot, with the rows of `rows_of_contacts`."""
    rows, settings = rows_of_contacts(model, contacts, kinematics, impulses, work.of_rows, turning), model.settings
    k = len(contacts.gap) - turning
    p = problem_in(work, settings.pyramid, k, len(rows.active), turning)
    p = p._replace(problem=p.problem._replace(cones=settings.cones, turning=turning, rounds=settings.rounds))
    return p._replace(problem=problem_of_rows(model, contacts, kinematics.placement, p, delassus, work))


def rows_of_contacts(
    model: ContactModel, contacts: ContactPoints, kinematics: ContactKinematics, impulses: ContactImpulses, work: RowWork,
    turning: int = 0,
) -> ProblemRows:  # fmt: skip
    """Return the rows of one robot's problem, for its contacts and the joint rows that would close within the step.

    They are written to the workspace `work`. The last `turning` contacts represent the spinning and rolling of contacts before
    them. Their rows come before those of joints, and have bounds.
    """
    settings = model.settings
    n = 3 * turning + find_active_rows(model, kinematics, work.active[3 * turning :])
    active = work.active[:n]
    k = len(contacts.gap) - turning
    p = rows_in(work, settings.pyramid, k, n, turning)
    rows, axes, gap, law, approach, before, start = p.rows, p.axes, work.gap[: k + n], p.law, p.approach, p.before, p.start
    for c in range(k + turning):
        if c < k:
            gap[c] = contacts.gap[c]
        write_axes(contacts.normal[c], axes[c])
        elliptic = len(model.tangents) > 0 and model.tangents[contacts.candidate[c], 0] > 0.0
        if elliptic:
            write_file_axes(model.tangents[contacts.candidate[c]], contacts, c, kinematics.placement, c < k, axes[c])
        x, y, z = last_impulse(impulses, contacts.candidate[c], c < k)
        for i in range(3):
            at = 3 * c + i
            approach[at] = before[at] = 0.0
            start[at] = 0.0 + axes[c, i, 0] * x + axes[c, i, 1] * y + axes[c, i, 2] * z
        for i in range(2 if elliptic and c < k else 0):
            part = model.tangents[contacts.candidate[c], i]
            start[3 * c + 1 + i] /= part * part
        for s in range(2):
            body = body_of(contacts, c, s)
            if body >= 0:
                if c < k:
                    write_rows(axes[c], contacts.point[c], kinematics.placement[body], 1.0 - 2.0 * s, rows[c, s])
                else:
                    write_turning_rows(axes[c], kinematics.placement[body], 1.0 - 2.0 * s, rows[c, s])
                add_velocity(rows[c, s], kinematics.velocity[body], 3 * c, approach)
                add_velocity(rows[c, s], kinematics.velocity_before[body], 3 * c, before)
        if len(model.surfaces) > 0:
            add_surface_velocities(model, contacts, c, p)
        if c < k:
            p.pull[c] = pull_of(model, contacts.candidate[c], gap[c], start[3 * c])
            start[3 * c] += p.pull[c]
    for i in range(3 * turning):
        active[i], gap[k + i] = -1, np.inf
    for i in range(3 * turning, n):
        r = active[i]
        gap[k + i] = kinematics.gap[r]
        approach[3 * k + i], before[3 * k + i] = kinematics.speed[r], kinematics.speed_before[r]
        start[3 * k + i] = impulses.last_row[r]
    write_law(model, RowMotion(contacts.candidate, active, gap, approach, before), law)
    write_turning_law(model, contacts, p, turning, work)
    return p


def last_impulse(impulses: ContactImpulses, candidate: int, sliding: bool) -> tuple[float, float, float]:
    """Return the force of the last step at a candidate, or its impulse against spinning and rolling."""
    if sliding:
        return impulses.last_force[candidate, 0], impulses.last_force[candidate, 1], impulses.last_force[candidate, 2]
    return impulses.last_turn[candidate, 0], impulses.last_turn[candidate, 1], impulses.last_turn[candidate, 2]


def add_velocity(rows: Matrix, motion: Vector, row: int, velocity: Vector) -> None:
    """Add the velocity of a body along three rows."""
    u = v = w = 0.0
    for j in range(6):
        x = motion[j]
        u += rows[0, j] * x
        v += rows[1, j] * x
        w += rows[2, j] * x
    velocity[row] += u
    velocity[row + 1] += v
    velocity[row + 2] += w


def write_turning_law(model: ContactModel, contacts: ContactPoints, p: ProblemRows, turning: int, work: RowWork) -> None:
    """Bound friction against spinning and rolling by the normal impulses of the previous step.

    In the compliant law it has the compliance of MuJoCo's elliptic cones with isotropic friction.
    """
    law, k, yields, of = p.law, len(p.law.friction), model.settings.law != RIGID, 0
    if turning == 0:
        return
    for c in range(k):
        work.turning[c] = -1
    for t in range(turning):
        c, i = contacts.candidate[k + t], 3 * t
        while contacts.candidate[of] != c:
            of += 1
        work.turning[of] = t
        normal = max(p.start[3 * of], 0.0)
        for l in range(3):
            most, r = model.turning[c, l], 3 * k + i + l
            work.turning_friction[of, l] = most
            law.lower[i + l], law.upper[i + l] = -most * normal, most * normal
            law.distance[k + i + l], law.stiffness[k + i + l] = np.inf, 0.0
            law.bias[r], law.compliance[r] = p.approach[r], 0.0
            if yields and most > 0.0:
                ratio = law.friction[of] / most
                law.compliance[r] = law.compliance[3 * of + 1] * ratio * ratio
                law.bias[r] += (model.settings.step * yielding_of(model.yielding, c).damping - 1.0) * p.before[r]


def problem_of_rows(
    model: ContactModel, contacts: ContactPoints, placement: Tensor, p: AssembledProblem, delassus: BodyDelassus,
    work: AssemblyWork,
) -> Problem:  # fmt: skip
    """Return the problem with its matrix A, or with B instead, if that is cheaper."""
    given, m, k, sliding = p.problem, len(p.approach), len(contacts.gap), len(p.law.friction)
    A, B, active = given.A, given.B, p.active[3 * (k - sliding) :]
    turning, convex = k - sliding, given.cones != COULOMB
    pairs = group_contacts(model, contacts, work.factor_rows)
    for c in range(k):
        work.pair[c] = work.factor_rows.group[c]
    geometry = ContactGeometry(placement, p.axes, p.rows, sliding)
    if delassus.by_inverse:
        B = factor_by_inverse(model, contacts, geometry, active, pairs, delassus.factors, delassus.work, work.factor_rows)
        factored = convex or is_cheaper(B, m)
    else:
        size = pick_rows(model, contacts, active, delassus, work)
        factored = convex or m > REDUNDANT * min(size, model.nv)
        if factored:
            rank = write_factor(delassus.G, size, work.factor)
            B = factor_of_rows(model, contacts, geometry, active, delassus, pairs, rank, work)
    if turning > 0 and (factored or delassus.by_inverse):
        B = with_rows_of_turning(B, sliding, turning, work.split)
    work.columns[0] = B.size if factored else -1
    if factored and given.rounds == 0:
        A = as_matrix(work.A, 0, 0)
    else:
        if delassus.by_inverse:
            write_square(B, sliding, work.rows_of_A, A)
        else:
            write_contact_delassus(model, contacts, p.rows, active, delassus, work.half, work.place, A)
        for i in range(m):
            A[i, i] += p.law.compliance[i]
    return given._replace(A=A, B=B, pair=work.pair[:sliding])


def with_rows_of_turning(B: RowFactor, sliding: int, turning: int, work: RowFactorWork) -> RowFactor:
    """Return B with the rows of each contact after the first `sliding` ones as separate blocks, because they have bounds."""
    for i in range(len(B.at) + 2 * turning):
        c = i
        if i >= sliding:
            c = sliding + (i - sliding) // 3 if i < sliding + 3 * turning else i - 2 * turning
        l = (i - sliding) % 3 if sliding <= i < sliding + 3 * turning else 0
        work.group[i] = B.group[c]
        work.at[i] = B.at[c] + l * B.rows[B.group[c]] if B.at[c] >= 0 else B.at[c] - l
    return blocks_of_factor(B, len(B.at) + 2 * turning, work)


def is_cheaper(B: RowFactor, m: int) -> bool:
    """Return whether steps of the solver take fewer multiplications with B than with A of m rows."""
    total = multiplications(B.plan)
    for g in range(len(B.width)):
        total += B.rows[g] * B.width[g] * B.width[g]
    return total < m * m * m


def write_square(B: RowFactor, k: int, scratch: Vector, A: Matrix) -> None:
    """Write A = B Bᵀ for k contacts and further rows; `scratch` is workspace for Bᵀ and -A with padded rows."""
    m = len(A)
    stride = padded(m)
    square = B.size * stride
    for i in range(square):
        scratch[i] = 0.0
    for i in range(m):
        c, l = place_of(i, k)
        write_column(B, c, l, scratch, i, stride)
    for i in range(0, m, LANES):
        count, length = min(LANES, m - i), stride - i
        subtract_product(scratch, (square + i * stride + i, stride), (i, stride), (i, 1, stride), (count, length, B.size), True)
    for i in range(m):
        for j in range(i, m):
            A[i, j] = A[j, i] = -scratch[square + i * stride + j]


def pick_rows(
    model: ContactModel, contacts: ContactPoints, active: Integers, delassus: BodyDelassus, work: AssemblyWork
) -> int:
    """Write the rows of G that contacts and joint rows use, and the index of each among them; return their number."""
    begin, width, joint, place, picked = delassus.begin, model.width, model.rows.joint, work.place, work.factor.rows
    bodies, size = len(width), 0
    for i in range(len(place)):
        place[i] = -1
    for c in range(len(contacts.gap)):
        for s in range(2):
            body = body_of(contacts, c, s)
            if body >= 0 and place[begin[body]] < 0:
                for i in range(width[body]):
                    place[begin[body] + i], picked[size] = size, begin[body] + i
                    size += 1
    for i in range(len(active)):
        row = begin[bodies] + joint[active[i]]
        if place[row] < 0:
            place[row], picked[size] = size, row
            size += 1
    return size


def factor_of_rows(
    model: ContactModel, contacts: ContactPoints, geometry: ContactGeometry, active: Integers, delassus: BodyDelassus,
    groups: int, rank: int, work: AssemblyWork,
) -> RowFactor:  # fmt: skip
    """Return B of contacts in `groups` groups, and of joint rows, by the factor L of the selected rows of G."""
    begin, rows, place, L, target = delassus.begin, model.rows, work.place, work.factor.L, work.factor_rows
    k, n, stride = len(contacts.gap), len(active), padded(rank)
    for i in range(n):
        work.key[i] = -1
    groups = joint_groups(k, work.key, n, groups, target)
    begin_one_branch(groups, rank, target)
    numbers = place_groups(k, n, groups, target)
    for i in range(numbers):
        target.values[i] = 0.0
    for g in range(groups):
        work.key[g] = -1
    for c in range(k):
        g = target.group[c]
        own, first = has_own_rows(g, target), work.key[g] < 0
        if first and not own:
            work.key[g] = c
        for s in range(2):
            body = body_of(contacts, c, s)
            if body >= 0 and (own or first):
                source, columns = RowsOfBody(L, place[begin[body]] * stride, stride), Columns(stride, stride, 0, 0)
                if own:
                    at = target.begin[g] - (1 + target.at[c]) * stride
                    add_rows_of_contact(geometry.rows[c, s], model.width[body], source, columns, at, stride, target.values)
                else:
                    T = geometry.placement[body]
                    add_rows_of_body(1.0 - 2.0 * s, contacts.point[c], T, model.width[body], source, columns, g, target)
        if not own:
            write_ends(contacts, geometry.axes, c, work.key[g], target, c >= geometry.sliding)
    for i in range(n):
        r, g = active[i], target.group[k + i]
        at, row = (
            target.begin[g] - (1 + target.at[k + i]) * stride,
            place[begin[len(model.width)] + rows.joint[r]] * stride,
        )
        for j in range(stride):
            target.values[at + j] = rows.sign[r] * L[row + j]
    return planned_factor(target, k + n, groups, rank, 1, numbers)


def rows_in(work: RowWork, pyramid: bool, k: int, n: int, turning: int = 0) -> ProblemRows:
    """Return the rows of k contacts and n rows with bounds in the memory of a `RowWork`."""
    m, each = 3 * k + n, k + turning
    return ProblemRows(
        work.approach[:m], work.before[:m], law_in(work.law, pyramid, k, n), work.rows[:each], work.axes[:each], work.start[:m],
        work.active[:n], work.pull[:k], work.conveyed[:m],
    )  # fmt: skip


def problem_in(work: AssemblyWork, pyramid: bool, k: int, n: int, turning: int = 0) -> AssembledProblem:
    """Return the problem of k contacts and n rows with bounds in the memory of an `AssemblyWork`."""
    m, p = 3 * k + n, rows_in(work.of_rows, pyramid, k, n, turning)
    law = p.law
    problem = Problem(
        as_matrix(work.A, m, m), law.bias, law.friction, law.lower, law.upper, law.pyramid, no_factor(work.factor_rows),
        law.compliance, work.pair[:0],
    )  # fmt: skip
    return AssembledProblem(problem, p.approach, p.before, law, p.rows, p.axes, p.start, p.active, p.pull, p.conveyed)


def write_contact_delassus(
    model: ContactModel, contacts: ContactPoints, rows: Tensor4, active: Integers, delassus: BodyDelassus, scratch: Vector,
    place: Integers, A: Matrix,
) -> None:  # fmt: skip
    """Write A = R G Rᵀ for contacts and joint rows; `scratch` is workspace for three rows of R G, `place` is of `pick_rows`."""
    G, begin, width, joint_rows = delassus.G, delassus.begin, model.width, model.rows
    count, nr = len(contacts.gap), len(active)
    k = 3 * count
    end = begin[len(width)]
    half = as_matrix(scratch, 3, G.shape[1])
    for c in range(count):
        for body in range(len(width)):
            if place[begin[body]] >= 0:
                write_half(contacts, c, rows, delassus, width, (begin[body], begin[body] + width[body]), half)
        for r in range(nr):
            column = end + joint_rows.joint[active[r]]
            write_half(contacts, c, rows, delassus, width, (column, column + 1), half)
        for d in range(c, count):
            for i in range(3):
                for j in range(3):
                    A[3 * c + i, 3 * d + j] = 0.0
            for s in range(2):
                body = body_of(contacts, d, s)
                if body >= 0 and is_felt(half, begin[body], width[body]):
                    add_block(rows, d, s, half, begin[body], width[body], A, 3 * c)
            for i in range(3):
                for j in range(3):
                    A[3 * d + j, 3 * c + i] = A[3 * c + i, 3 * d + j]
        for j in range(nr):
            r = active[j]
            for i in range(3):
                total = half[i, end + joint_rows.joint[r]] * joint_rows.sign[r]
                A[3 * c + i, k + j] = total
                A[k + j, 3 * c + i] = total
    for i in range(nr):
        for j in range(nr):
            r, t = active[i], active[j]
            entry = G[end + joint_rows.joint[r], end + joint_rows.joint[t]]
            A[k + i, k + j] = joint_rows.sign[r] * joint_rows.sign[t] * entry


def write_half(
    contacts: ContactPoints, c: int, rows: Tensor4, delassus: BodyDelassus, width: Integers, columns: tuple[int, int],
    half: Matrix,
) -> None:  # fmt: skip
    """Write a range of columns of three rows of R G: combinations of the rows of the bodies of contact c."""
    G, first, stop = delassus.G, columns[0], columns[1]
    for i in range(3):
        for j in range(first, stop):
            half[i, j] = 0.0
    for s in range(2):
        body = body_of(contacts, c, s)
        if body >= 0:
            x = delassus.begin[body]
            for i in range(3):
                for y in range(0, width[body], 3):
                    k, l, m = rows[c, s, i, y], rows[c, s, i, y + 1], rows[c, s, i, y + 2]
                    for j in range(first, stop):
                        half[i, j] += k * G[x + y, j] + l * G[x + y + 1, j] + m * G[x + y + 2, j]


def is_felt(half: Matrix, x: int, width: int) -> bool:
    """Return whether three rows of R G are nonzero at a body whose rows start at x."""
    for i in range(3):
        for j in range(x, x + width):
            if half[i, j] != 0.0:
                return True
    return False


def add_block(rows: Tensor4, d: int, s: int, half: Matrix, x: int, width: int, A: Matrix, row: int) -> None:
    """Add the contribution of a body of contact d to three rows of A = R G Rᵀ.

    `half` is R G, and the body's rows start at x.
    """
    for i in range(3):
        for j in range(3):
            total = (
                half[i, x] * rows[d, s, j, 0] + half[i, x + 1] * rows[d, s, j, 1] + half[i, x + 2] * rows[d, s, j, 2]
            )  # fmt: skip
            if width == 6:
                total += (
                    half[i, x + 3] * rows[d, s, j, 3] + half[i, x + 4] * rows[d, s, j, 4] + half[i, x + 5] * rows[d, s, j, 5]
                )
            A[row + i, 3 * d + j] += total
