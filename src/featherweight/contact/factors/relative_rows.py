"""Groups of contacts: the six rows Y of one body's velocity relative to another, and rows of contacts in terms of these.

The velocity is that of the point o of the group's first contact, linear and angular, in the axes of the world. A contact at p
with normal and tangents e has the rows

    E = [e, (p - o) x e]

A body with a single contact point has three rows, and so has its group: o is that point, and E = e. Groups of up to `FEW`
contacts have the rows of their contacts.
"""

from __future__ import annotations

from typing import NamedTuple

from ...array_types import Integers, Matrix, Tensor, Vector
from ...collision.detection import ContactPoints, body_of
from ..contact_model import ContactModel
from .row_factor import MOST_ROWS, RowFactorWork

OF_JOINTS = -2  # replaces the second body in groups of joints
FEW = 2  # greatest number of contacts of a group with their own rows


def group_contacts(model: ContactModel, contacts: ContactPoints, target: RowFactorWork) -> int:
    """Write the group of each contact, and the rows of each group; return the number of groups."""
    groups = 0
    for c in range(len(contacts.gap)):
        groups = find_group(c, body_of(contacts, c, 0), body_of(contacts, c, 1), groups, target)
    for g in range(groups):
        target.members[g] = 0  # temporarily the number of members
    for c in range(len(contacts.gap)):
        target.members[target.group[c]] += 1
    for g in range(groups):
        a, b, count = target.first[g], target.second[g], target.members[g]
        of_point = (a >= 0 and model.width[a] == 3) or (b >= 0 and model.width[b] == 3)
        target.rows[g] = 3 * count if count <= FEW else 3 if of_point else 6
    return groups


def find_group(c: int, a: int, b: int, groups: int, target: RowFactorWork) -> int:
    """Write the group of block c with this key; return the new number of groups. Groups of joints have at most `MOST_ROWS`."""
    g = groups - 1
    while g >= 0 and (target.first[g] != a or target.second[g] != b or target.rows[g] == MOST_ROWS):
        g -= 1
    if g < 0:
        g = groups
        target.first[g], target.second[g], target.rows[g] = a, b, 0
        groups += 1
    target.group[c] = g
    return groups


def place_groups(k: int, n: int, groups: int, target: RowFactorWork) -> int:
    """Write the start of each group's Y, and the rows of blocks in Y or E; return the count of numbers in Y."""
    numbers, ends, written = 0, 0, target.member_begin
    for g in range(groups):
        target.begin[g], written[g] = numbers, 0
        numbers += target.rows[g] * target.width[g]
    for c in range(k + n):
        g = target.group[c]
        if has_own_rows(g, target):
            target.at[c] = -1 - written[g]
            written[g] += 3 if c < k else 1
        else:
            target.at[c] = ends
            ends += 3 * target.rows[g]
    return numbers


def has_own_rows(g: int, target: RowFactorWork) -> bool:
    """Return whether Y of a group consists of the rows of its blocks."""
    return bool(target.second[g] == OF_JOINTS or target.members[g] <= FEW)


def write_ends(contacts: ContactPoints, axes: Tensor, c: int, first: int, target: RowFactorWork, angular: bool = False) -> None:
    """Write E of a contact, or of its spinning and rolling, for the first contact of its group."""
    at, rows, ends = target.at[c], target.rows[target.group[c]], target.ends
    x = contacts.point[c, 0] - contacts.point[first, 0]
    y = contacts.point[c, 1] - contacts.point[first, 1]
    z = contacts.point[c, 2] - contacts.point[first, 2]
    for l in range(3):
        a, b, d = axes[c, l, 0], axes[c, l, 1], axes[c, l, 2]
        if angular:
            for i in range(rows):
                ends[at + i] = 0.0
            if rows == 6:
                ends[at + 3], ends[at + 4], ends[at + 5] = a, b, d
            at += rows
            continue
        ends[at], ends[at + 1], ends[at + 2] = a, b, d
        if rows == 6:
            ends[at + 3], ends[at + 4], ends[at + 5] = y * d - z * b, z * a - x * d, x * b - y * a
        at += rows


class RowsOfBody(NamedTuple):
    """Rows of a body, in its axes and at its origin, which lie in an array at equal distances."""

    numbers: Vector
    begin: int
    stride: int


class Columns(NamedTuple):
    """Columns of a body's rows, and where they go: the first ones are shifted by another distance than the others."""

    width: int
    first: int  # number of the first ones
    near: int  # their shift
    far: int  # shift of the others


def add_rows_of_body(
    sign: float, point: Vector, T: Matrix, width: int, source: RowsOfBody, columns: Columns, g: int, target: RowFactorWork
) -> None:
    """Add `sign` times the velocity of a body at a point to Y of a group."""
    values, begin, wide, rows = target.values, target.begin[g], target.width[g], target.rows[g]
    x, y, z = point[0] - T[0, 3], point[1] - T[1, 3], point[2] - T[2, 3]
    for i in range(3):
        factors = sign * T[i, 0], sign * T[i, 1], sign * T[i, 2]
        add_multiples(values, begin + i * wide, factors, source, 0, columns)
        if width == 6:  # for angular velocity w: w x (x, y, z), and w
            (j, k), (u, v) = ((i + 1) % 3, (i + 2) % 3), arms(i, x, y, z)
            across = (
                sign * (T[j, 0] * v - T[k, 0] * u), sign * (T[j, 1] * v - T[k, 1] * u), sign * (T[j, 2] * v - T[k, 2] * u)
            )  # fmt: skip
            add_multiples(values, begin + i * wide, across, source, 3, columns)
            if rows == 6:
                add_multiples(values, begin + (3 + i) * wide, factors, source, 3, columns)


def arms(i: int, x: float, y: float, z: float) -> tuple[float, float]:
    """Return the two components after component i of (x, y, z), in cyclic order."""
    return (y, z) if i == 0 else (z, x) if i == 1 else (x, y)


def add_rows_of_contact(
    rows: Matrix, width: int, source: RowsOfBody, columns: Columns, begin: int, wide: int, values: Vector
) -> None:
    """Add the contribution of a body with `width` rows to a contact's own three rows; `rows` (3, 6) are those on the body."""
    for i in range(3):
        for k in range(0, width, 3):
            factors = rows[i, k], rows[i, k + 1], rows[i, k + 2]
            add_multiples(values, begin + i * wide, factors, source, k, columns)


def add_multiples(
    values: Vector, begin: int, factors: tuple[float, float, float], source: RowsOfBody, row: int, columns: Columns
) -> None:
    """Add multiples of three rows of a body, from `row` on, to one row of values."""
    numbers, stride, (x, y, z) = source.numbers, source.stride, factors
    first, count, row_at = columns.first, columns.width, source.begin + row * stride
    for part in range(2):
        start, stop, into = (0, min(first, count), begin + columns.near) if part == 0 else (first, count, begin + columns.far)
        for j in range(start, stop):
            at = row_at + j
            values[into + j] += x * numbers[at] + y * numbers[at + stride] + z * numbers[at + 2 * stride]


def joint_groups(k: int, keys: Integers, n: int, groups: int, target: RowFactorWork) -> int:
    """Write the groups of n joint rows after k contacts, by their keys; return the number of all groups."""
    for i in range(n):
        groups = find_group(k + i, keys[i], OF_JOINTS, groups, target)
        target.rows[target.group[k + i]] += 1
    return groups
