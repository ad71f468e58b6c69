"""Groups of contacts: the six rows Y of the velocity of one body relative to another, and what contacts see of it.

The velocity is that of the point o of the group's first contact, linear and angular, in the axes of the world. A contact at p
with normal and tangents e sees

    E = [e, (p - o) x e]

Where there is one point p alone, o is that point, there are three rows, and E = e.
"""

from __future__ import annotations

from ..collision.detection import ContactPoints, body_of
from ..engine.loops.array_types import Integers, Matrix, Tensor, Vector
from .contact_model import ContactModel
from .row_factor import MOST_ROWS, RowFactorWork, write_unit

OF_JOINTS = -2  # in place of the second body


def group_contacts(model: ContactModel, contacts: ContactPoints, room: RowFactorWork) -> int:
    """Write the group of each contact, and the rows of each group; how many groups there are."""
    groups = 0
    for c in range(len(contacts.gap)):
        groups = find_group(c, body_of(contacts, c, 0), body_of(contacts, c, 1), groups, room)
    for g in range(groups):
        room.members[g] = 0  # here, for now: how many contacts there are
    for c in range(len(contacts.gap)):
        room.members[room.group[c]] += 1
    for g in range(groups):
        a, b = room.first[g], room.second[g]
        of_point = (a >= 0 and model.width[a] == 3) or (b >= 0 and model.width[b] == 3)
        room.rows[g] = 3 if of_point or room.members[g] == 1 else 6
    return groups


def find_group(c: int, a: int, b: int, groups: int, room: RowFactorWork) -> int:
    """Write the group of block c with this key; how many groups there are then. Groups of joints have `MOST_ROWS` at most."""
    g = groups - 1
    while g >= 0 and (room.first[g] != a or room.second[g] != b or room.rows[g] == MOST_ROWS):
        g -= 1
    if g < 0:
        g = groups
        room.first[g], room.second[g], room.rows[g] = a, b, 0
        groups += 1
    room.group[c] = g
    return groups


def place_groups(k: int, n: int, groups: int, room: RowFactorWork) -> int:
    """Write where Y of each group begins, and E of joint rows; how many numbers Y has."""
    numbers = 0
    for g in range(groups):
        room.begin[g] = numbers
        numbers += room.rows[g] * room.width[g]
        room.members[g] = 0  # here, for now: rows that are written
    ends = 0
    for c in range(k):
        room.at[c] = ends
        ends += 3 * room.rows[room.group[c]]
    for c in range(k, k + n):
        g = room.group[c]
        ends = write_unit(c, g, room.members[g], ends, room)
        room.members[g] += 1
    return numbers


def first_of_group(k: int, g: int, room: RowFactorWork) -> int:
    """The first contact of a group."""
    c = 0
    while room.group[c] != g:
        c += 1
    return c if c < k else -1


def write_ends(contacts: ContactPoints, axes: Tensor, c: int, first: int, room: RowFactorWork) -> None:
    """Write E of a contact, for the first contact of its group."""
    at, rows, ends = room.at[c], room.rows[room.group[c]], room.ends
    x = contacts.point[c, 0] - contacts.point[first, 0]
    y = contacts.point[c, 1] - contacts.point[first, 1]
    z = contacts.point[c, 2] - contacts.point[first, 2]
    for l in range(3):
        a, b, d = axes[c, l, 0], axes[c, l, 1], axes[c, l, 2]
        ends[at], ends[at + 1], ends[at + 2] = a, b, d
        if rows == 6:
            ends[at + 3], ends[at + 4], ends[at + 5] = y * d - z * b, z * a - x * d, x * b - y * a
        at += rows


def add_rows_of_body(
    sign: float, point: Vector, T: Matrix, width: int, source: tuple[Vector, int, int], columns: tuple[int, int, int, int],
    g: int, room: RowFactorWork,
) -> None:  # fmt: skip
    """Add `sign` times the velocity of a body at a point to Y of a group.

    `source` are the rows of the body, in its axes and at its origin: numbers, where the first begins, and the distance of rows.
    `columns` says how many are the first, how far they move, how far the others move, and how many there are of all.
    """
    numbers, at, stride = source
    values, begin, wide, rows = room.values, room.begin[g], room.width[g], room.rows[g]
    x, y, z = point[0] - T[0, 3], point[1] - T[1, 3], point[2] - T[2, 3]
    for k in range(width // 3 * 3):
        part = k % 3
        a, b, d = sign * T[0, part], sign * T[1, part], sign * T[2, part]
        row = at + k * stride
        if k < 3:
            add_multiple(values, begin, wide, (a, b, d), numbers, row, columns)
        else:  # of angular velocity w: w x (x, y, z), and w
            across = b * z - d * y, d * x - a * z, a * y - b * x
            add_multiple(values, begin, wide, across, numbers, row, columns)
            if rows == 6:
                add_multiple(values, begin + 3 * wide, wide, (a, b, d), numbers, row, columns)


def add_multiple(
    values: Vector, begin: int, wide: int, factors: tuple[float, float, float], numbers: Vector, row: int,
    columns: tuple[int, int, int, int],
) -> None:  # fmt: skip
    """Add multiples of a row to three rows."""
    first, near, far, count = columns
    x, y, z = factors
    for j in range(count):
        into, number = begin + j + (near if j < first else far), numbers[row + j]
        values[into] += x * number
        values[into + wide] += y * number
        values[into + 2 * wide] += z * number


def joint_groups(k: int, keys: Integers, n: int, groups: int, room: RowFactorWork) -> int:
    """Write the groups of n joint rows after k contacts, by their keys; how many groups there are of all."""
    for i in range(n):
        groups = find_group(k + i, keys[i], OF_JOINTS, groups, room)
        room.rows[room.group[k + i]] += 1
    return groups
