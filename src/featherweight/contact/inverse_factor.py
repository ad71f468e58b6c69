"""The factor B of a contact problem's matrix, A = B Bᵀ, by the inverse mass matrix.

With M⁻¹ = C Cᵀ, C lower triangular, and the rows J that contacts see, B = J C. The mass matrix is Lᵀ L, where row i of L has
entries for the velocities on the path from the ground to i only (Featherstone 2005), and so has C = L⁻¹; B has entries where J
has. Each row of C follows from those before it on its path, so that only branches are factored that contacts move.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..collision.detection import ContactPoints, body_of
from ..engine.loops.array_types import Booleans, Integers, Matrix, Tensor4, Vector
from .branch_elimination import planned
from .branches import Branches
from .contact_model import ContactModel
from .row_factor import RowFactor, RowFactorWork, couple_groups, factor_in


class InverseFactors(NamedTuple):
    """J and M⁻¹.

    Trees that share only the ground have degrees of freedom of their own. Rows of J and M⁻¹ have entries for those of their own
    tree only; `Branches.shift` columns before them are not read, and need not be there.
    """

    J: Matrix  # (m, columns), rows of all bodies that may touch, one body after the other
    Minv: Matrix  # (nv, columns)
    E: Matrix  # (rows, nv), rows of joints, or none
    branches: Branches


class InverseWork(NamedTuple):
    """Room for C, and for rows of bodies."""

    C: Matrix  # (nv, widest path)
    reciprocal: Vector  # (nv,) of its diagonal
    number: Integers  # (branches,) of those that contacts move, -1 of others
    velocity: Integers  # (longest path,)
    column: Integers  # (longest path,) of each velocity
    source: Integers  # (bodies + 1,) the rows of J at which those of each body begin
    rows: Vector  # (rows of J times the widest path,) J C of each body
    there: Booleans  # (bodies,) whether it is written


def inverse_work(widths: Integers, nv: int, branches: Branches) -> InverseWork:
    """Room for bodies with so many rows."""
    source = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    widest = int(branches.width.max(initial=0))
    velocity, column = np.empty((2, widest), np.int64)
    return InverseWork(
        np.zeros((nv, widest)), np.empty(nv), np.empty(len(branches.width), np.int64), velocity, column, source,
        np.empty(int(source[-1]) * widest), np.empty(len(widths), bool),
    )  # fmt: skip


def factor_by_inverse(
    model: ContactModel, contacts: ContactPoints, rows: Tensor4, active: Integers, groups: int, factors: InverseFactors,
    work: InverseWork, room: RowFactorWork,
) -> RowFactor:  # fmt: skip
    """Return B = J C for contacts, which are in so many groups, and joint rows; C stays in `work`."""
    k, n = len(contacts.gap), len(active)
    for i in range(n):
        groups = find_group(k + i, model.joint_branch[model.rows.joint[active[i]]], -1, groups, room)
    count = write_branches_of_groups(groups, factors.branches, work, room)
    couple_groups(groups, count, room)
    for b in range(len(work.number)):
        if work.number[b] >= 0:
            write_factor_of_branch(b, factors, work)
    for b in range(len(model.width)):
        work.there[b] = False
    at = 0
    for c in range(k):
        room.at[c] = at
        at += 3 * room.width[room.group[c]]
        write_rows_of_contact(model, contacts, c, rows, factors, work, room)
    for i in range(n):
        room.at[k + i] = at
        at += room.width[room.group[k + i]]
        r = active[i]
        write_row_of_joint(model.rows.joint[r], model.rows.sign[r], model, factors, work, room.values[room.at[k + i] : at])
    return factor_in(room, k + n, groups, len(factors.Minv), planned(count, room.plan))


def group_contacts(model: ContactModel, contacts: ContactPoints, room: RowFactorWork) -> int:
    """Write the group of each contact, one for each pair of branches that touch; how many groups there are."""
    groups = 0
    for c in range(len(contacts.gap)):
        a, b = branch_of_side(model, contacts, c, 0), branch_of_side(model, contacts, c, 1)
        groups = find_group(c, a, b, groups, room)
    return groups


def find_group(c: int, a: int, b: int, groups: int, room: RowFactorWork) -> int:
    """Write the group of block c, whose bodies are on branches a and b; how many groups there are then."""
    g = groups - 1
    while g >= 0 and (room.first[g] != a or room.second[g] != b):
        g -= 1
    if g < 0:
        g = groups
        room.first[g], room.second[g] = a, b
        groups += 1
    room.group[c] = g
    return groups


def write_branches_of_groups(groups: int, branches: Branches, work: InverseWork, room: RowFactorWork) -> int:
    """Write which branches take part, and those of each group; how many take part."""
    room.run_begin[0] = count = 0
    for b in range(len(work.number)):
        work.number[b] = -1
    for g in range(groups):
        count = write_runs(g, room.first[g], room.second[g], count, branches, work, room)
    return count


def branch_of_side(model: ContactModel, contacts: ContactPoints, c: int, s: int) -> int:
    """The branch of one of the bodies of a contact, -1 of what does not move."""
    body = body_of(contacts, c, s)
    return model.branch[body] if body >= 0 else -1


def write_runs(g: int, a: int, b: int, count: int, branches: Branches, work: InverseWork, room: RowFactorWork) -> int:
    """Write which branches the rows of a group have: the path of a, then that of b but for what they share."""
    x, width = room.run_begin[g], 0
    for side in range(2):
        last = a if side == 0 else b
        if last < 0:
            continue
        for y in range(branches.begin[last], branches.begin[last + 1]):
            step, branch = y - branches.begin[last], branches.path[y]
            if side == 1 and a >= 0 and is_shared(branches, a, step, branch):
                continue
            if work.number[branch] < 0:
                work.number[branch] = count
                room.plan.first[count] = branches.first[branch]
                room.plan.size[count] = branches.first[branch + 1] - branches.first[branch]
                count += 1
            room.branch[x], room.column[x] = work.number[branch], width
            x += 1
            stop = branches.spot[y + 1] if y + 1 < branches.begin[last + 1] else branches.width[last]
            width += stop - branches.spot[y]
    room.run_begin[g + 1], room.width[g] = x, width
    return count


def is_shared(branches: Branches, a: int, step: int, branch: int) -> bool:
    """Whether a path has this branch at this place."""
    x = branches.begin[a] + step
    return x < branches.begin[a + 1] and branches.path[x] == branch  # type: ignore[no-any-return]


def shared_width(branches: Branches, a: int, b: int) -> int:
    """The columns that two paths share."""
    if a < 0 or b < 0:
        return 0
    x, width = branches.begin[b], 0
    while x < branches.begin[b + 1] and is_shared(branches, a, x - branches.begin[b], branches.path[x]):
        x += 1
        width = branches.spot[x] if x < branches.begin[b + 1] else branches.width[b]
    return width


def write_path(b: int, branches: Branches, work: InverseWork) -> int:
    """Write the velocities of a path and their columns; how many there are."""
    count = 0
    for x in range(branches.begin[b], branches.begin[b + 1]):
        branch = branches.path[x]
        for v in range(branches.first[branch], branches.first[branch + 1]):
            work.velocity[count], work.column[count] = v, branches.spot[x] + v - branches.first[branch]
            count += 1
    return count


def write_factor_of_branch(b: int, factors: InverseFactors, work: InverseWork) -> None:
    """Write the rows of C of one branch, after those of its path; NaN where M⁻¹ is not positive definite."""
    branches, C, velocity, column = factors.branches, work.C, work.velocity, work.column
    stop = write_path(b, branches, work)
    begin, shift = stop - (branches.first[b + 1] - branches.first[b]), branches.shift[b]
    for t in range(begin, stop):
        i = velocity[t]
        row, square = C[i], factors.Minv[i, i - shift]
        for s in range(t):
            v = velocity[s]
            x = factors.Minv[i, v - shift]
            for j in range(column[s]):
                x -= row[j] * C[v, j]
            x *= work.reciprocal[v]
            row[column[s]] = x
            square -= x * x
        x = sqrt(square) if square > 0.0 else np.nan
        row[column[t]], work.reciprocal[i] = x, 1.0 / x


def write_rows_of_body(body: int, model: ContactModel, factors: InverseFactors, work: InverseWork) -> None:
    """Write J C of all rows of a body."""
    b, source = model.branch[body], work.source[body]
    count, width = write_path(b, factors.branches, work), factors.branches.width[b]
    for row in range(source, work.source[body + 1]):
        at = row * len(work.velocity)
        target = work.rows[at : at + width]
        write_row_times_factor(factors.J[row], factors.branches.shift[b], 1.0, count, work, target)
    work.there[body] = True


def write_row_of_joint(
    joint: int, sign: float, model: ContactModel, factors: InverseFactors, work: InverseWork, row: Vector
) -> None:
    """Write a row of B for a joint with a limit or dry friction."""
    count = write_path(model.joint_branch[joint], factors.branches, work)
    write_row_times_factor(factors.E[joint], 0, sign, count, work, row)


def write_row_times_factor(source: Vector, shift: int, sign: float, count: int, work: InverseWork, row: Vector) -> None:
    """Write a row times C, for the path that is written; columns before `shift` are left out of `source`."""
    for j in range(len(row)):
        row[j] = 0.0
    for t in range(count):
        v = work.velocity[t]
        part = sign * source[v - shift]
        if part != 0.0:
            C = work.C[v]
            for j in range(work.column[t] + 1):
                row[j] += part * C[j]


def write_rows_of_contact(
    model: ContactModel, contacts: ContactPoints, c: int, rows: Tensor4, factors: InverseFactors, work: InverseWork,
    room: RowFactorWork,
) -> None:  # fmt: skip
    """Write the three rows of B of a contact."""
    at, width, values, widest = room.at[c], room.width[room.group[c]], room.values, len(work.velocity)
    for j in range(3 * width):
        values[at + j] = 0.0
    own = 0  # columns of the other body's path
    for s in range(2):
        body = body_of(contacts, c, s)
        if body < 0:
            continue
        if not work.there[body]:
            write_rows_of_body(body, model, factors, work)
        b = model.branch[body]
        wide, shared = factors.branches.width[b], 0
        if s == 1:
            shared = shared_width(factors.branches, branch_of_side(model, contacts, c, 0), b)
        for i in range(3):
            for row in range(model.width[body]):
                part, source, target = rows[c, s, i, row], (work.source[body] + row) * widest, at + i * width
                for j in range(shared):
                    values[target + j] += part * work.rows[source + j]
                target += own - shared
                for j in range(shared, wide):
                    values[target + j] += part * work.rows[source + j]
        own = wide
