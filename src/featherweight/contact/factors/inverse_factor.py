"""The factor B of a contact problem's matrix, A = B Bᵀ, by the inverse mass matrix.

With M⁻¹ = C Cᵀ, C lower triangular, and the rows J of contacts, B = J C. The mass matrix is Lᵀ L, where row i of L has entries
only for velocities on the path from the ground to i (Featherstone 2005). The same holds for C = L⁻¹, so B has entries where J
has. The robot computes C (`StepFunctions.inverse_factor`) in the layout of `BranchPaths`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Booleans, Integers, Matrix, Shared, Tensor, Tensor4, Vector
from ...collision.detection import ContactPoints, body_of
from ...engine.loops.kernels import aligned_numbers
from ..contact_model import ContactModel
from .branch_elimination import subtract_rows
from .branches import BranchPaths, padded
from .relative_rows import (
    OF_JOINTS,
    Columns,
    RowsOfBody,
    add_rows_of_body,
    add_rows_of_contact,
    has_own_rows,
    joint_groups,
    place_groups,
    write_ends,
)
from .row_factor import RowFactor, RowFactorWork, planned_factor


class ContactGeometry(NamedTuple):
    """Placements of bodies, and axes of contacts."""

    placement: Tensor  # (bodies, 4, 4)
    axes: Tensor  # (contacts, 3, 3) normal and tangents in the world frame
    rows: Tensor4  # (contacts, 2, 3, 6) rows of normal and tangents, on body a and on body b
    sliding: int = 1 << 30  # number of contacts that come first; rows of the others are angular


class InverseFactors(NamedTuple):
    """J and C.

    Trees that share only the ground have separate degrees of freedom. Rows of J have entries only for those of their own tree;
    `BranchPaths.shift` columns before them are not read and need not exist.
    """

    J: Matrix  # (m, columns), rows of all bodies that may touch, body after body
    C: Matrix  # (nv, widest path), padded with zeros: the first `InverseWork.numbers`
    E: Shared[Matrix]  # (rows, nv), rows of joints, or empty
    branches: Shared[BranchPaths]


class InverseWork(NamedTuple):
    """Workspace for rows of bodies."""

    number: Integers  # (branches,) numbers of branches moved by contacts, -1 for others
    source: Integers  # (bodies + 1,) first row of J C of each body in `numbers`; the last is for rows of joints
    numbers: Vector  # C, rows of the widest path's width, and workspace for a branch's part of a row of J
    there: Booleans  # (bodies,) whether its rows are written
    first: Integers  # (groups,) first contact of each group
    key: Integers  # (joint rows,) branches


def inverse_work(widths: Integers, branches: BranchPaths, blocks: int) -> InverseWork:
    """Return workspace for bodies with these numbers of rows, and for `blocks` contacts and joint rows."""
    nv = int(branches.first[-1])
    source = nv + np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    widest = int(branches.width.max(initial=0))
    numbers = aligned_numbers(int(source[-1] + 1) * widest + nv)
    return InverseWork(
        np.empty(len(branches.width), np.int64), source, numbers, np.empty(len(widths), bool), np.empty(blocks, np.int64),
        np.empty(blocks, np.int64),
    )  # fmt: skip


def inverse_factors(J: Matrix, E: Matrix, branches: BranchPaths, work: InverseWork) -> InverseFactors:
    """Return the factors whose C is in the workspace, where it is zero until the robot writes it."""
    nv, widest = int(branches.first[-1]), int(branches.width.max(initial=0))
    return InverseFactors(J, work.numbers[: nv * widest].reshape(nv, widest), E, branches)


def factor_by_inverse(
    model: ContactModel, contacts: ContactPoints, geometry: ContactGeometry, active: Integers, groups: int,
    factors: InverseFactors, work: InverseWork, target: RowFactorWork,
) -> RowFactor:  # fmt: skip
    """Return B = J C for contacts in `groups` groups, and for joint rows."""
    k, n, branches = len(contacts.gap), len(active), factors.branches
    for i in range(n):
        work.key[i] = model.joint_branch[model.rows.joint[active[i]]]
    groups = joint_groups(k, work.key, n, groups, target)
    count = write_branches_of_groups(groups, model, branches, work, target)
    numbers = place_groups(k, n, groups, target)
    for b in range(len(model.width)):
        work.there[b] = False
    for g in range(groups):
        work.first[g] = -1
    for c in range(k):
        write_rows_of_contact(model, contacts, c, geometry, factors, work, target)
    for i in range(n):
        r, g = active[i], target.group[k + i]
        at = target.begin[g] - (1 + target.at[k + i]) * target.width[g]
        row = target.values[at : at + target.width[g]]
        write_row_of_joint(model.rows.joint[r], model.rows.sign[r], model, factors, work, row)
    return planned_factor(target, k + n, groups, len(factors.C), count, numbers)


def write_branches_of_groups(
    groups: int, model: ContactModel, branches: BranchPaths, work: InverseWork, target: RowFactorWork
) -> int:
    """Write the participating branches, and those of each group; return their number."""
    target.run_begin[0] = count = 0
    for b in range(len(work.number)):
        work.number[b] = -1
    for g in range(groups):
        first, second = target.first[g], -1
        if target.second[g] != OF_JOINTS:
            first, second = branch_of(model, first), branch_of(model, target.second[g])
        count = write_runs(g, first, second, count, branches, work, target)
    return count


def branch_of(model: ContactModel, body: int) -> int:
    """Return the branch of a body; -1 for the world."""
    return model.branch[body] if body >= 0 else -1


def write_runs(g: int, a: int, b: int, count: int, branches: BranchPaths, work: InverseWork, target: RowFactorWork) -> int:
    """Write the branches in the rows of a group, the last first: the path of a, then the unshared part of b's path."""
    x, width = target.run_begin[g], 0
    for side in range(2):
        last = a if side == 0 else b
        if last < 0:
            continue
        for y in range(branches.begin[last + 1] - 1, branches.begin[last] - 1, -1):
            step, branch = y - branches.begin[last], branches.path[y]
            if side == 1 and a >= 0 and is_shared(branches, a, step, branch):
                continue
            if work.number[branch] < 0:
                work.number[branch] = count
                target.plan.first[count] = branches.first[branch]
                target.plan.size[count] = branches.first[branch + 1] - branches.first[branch]
                count += 1
            target.branch[x], target.column[x] = work.number[branch], width
            x += 1
            width += padded(branches.first[branch + 1] - branches.first[branch])
    target.run_begin[g + 1], target.width[g] = x, width
    return count


def is_shared(branches: BranchPaths, a: int, step: int, branch: int) -> bool:
    """Return whether a path has this branch at this position."""
    x = branches.begin[a] + step
    return x < branches.begin[a + 1] and branches.path[x] == branch


def shared_width(branches: BranchPaths, a: int, b: int) -> int:
    """Return the number of columns that two paths share."""
    if a < 0 or b < 0:
        return 0
    x, width = branches.begin[b], 0
    while x < branches.begin[b + 1] and is_shared(branches, a, x - branches.begin[b], branches.path[x]):
        width = branches.width[branches.path[x]]
        x += 1
    return width


def write_rows_of_body(body: int, model: ContactModel, factors: InverseFactors, work: InverseWork) -> None:
    """Write J C for all rows of a body."""
    b, begin = model.branch[body], work.source[body]
    first = work.source[0]
    for row in range(begin, work.source[body + 1]):
        write_row_times_factor(factors.J[row - first], factors.branches.shift[b], 1.0, b, factors, work, row)
    work.there[body] = True


def write_row_of_joint(
    joint: int, sign: float, model: ContactModel, factors: InverseFactors, work: InverseWork, row: Vector
) -> None:
    """Write a row of B for a joint with a limit or dry friction."""
    last = work.source[len(model.width)]
    write_row_times_factor(factors.E[joint], 0, sign, model.joint_branch[joint], factors, work, last)
    begin = last * factors.C.shape[1]
    for j in range(len(row)):
        row[j] = work.numbers[begin + j]


def write_row_times_factor(
    source: Vector, shift: int, sign: float, b: int, factors: InverseFactors, work: InverseWork, row: int
) -> None:
    """Write a row with entries on the path of branch b, times C; `shift` columns before those of `source` are omitted."""
    numbers, branches, widest = work.numbers, factors.branches, factors.C.shape[1]
    at, scratch = row * widest, (work.source[len(work.there)] + 1) * widest
    for j in range(branches.width[b]):
        numbers[at + j] = 0.0
    for x in range(branches.begin[b], branches.begin[b + 1]):
        branch = branches.path[x]
        first = branches.first[branch]
        size = branches.first[branch + 1] - first
        for v in range(size):
            numbers[scratch + v] = -sign * source[first + v - shift]
        target = at + branches.spot[x]
        subtract_rows(numbers, target, first * widest, widest, branches.width[branch], (scratch, 1, size))


def write_rows_of_contact(
    model: ContactModel, contacts: ContactPoints, c: int, geometry: ContactGeometry, factors: InverseFactors, work: InverseWork,
    target: RowFactorWork,
) -> None:  # fmt: skip
    """Write the rows of a contact to Y or to E; the first contact of a group also writes the group's Y."""
    g, widest, branches = target.group[c], factors.C.shape[1], factors.branches
    own, first, wide = has_own_rows(g, target), work.first[g] < 0, target.width[g]
    begin, count = target.begin[g], target.rows[g]
    if own:
        begin, count = begin - (1 + target.at[c]) * wide, 3
    elif first:
        work.first[g] = c
    if own or first:
        for j in range(count * wide):
            target.values[begin + j] = 0.0
        other, before = -1, 0
        for s in range(2):
            body = body_of(contacts, c, s)
            if body < 0:
                continue
            if not work.there[body]:
                write_rows_of_body(body, model, factors, work)
            b = model.branch[body]
            width, source = branches.width[b], RowsOfBody(work.numbers, work.source[body] * widest, widest)
            columns = Columns(width, width - shared_width(branches, other, b), before, before - width)
            if own:
                add_rows_of_contact(geometry.rows[c, s], model.width[body], source, columns, begin, wide, target.values)
            else:
                T, sign = geometry.placement[body], 1.0 - 2.0 * s
                add_rows_of_body(sign, contacts.point[c], T, model.width[body], source, columns, g, target)
            other, before = b, width
    if not own:
        write_ends(contacts, geometry.axes, c, work.first[g], target, c >= geometry.sliding)
