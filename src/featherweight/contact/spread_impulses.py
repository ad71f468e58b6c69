"""Distribution of contact forces over all points of a patch, for readers of forces.

The solver sets the impulses of redundant contacts to zero (`patches`), and the motion does not determine the distribution of
forces over several contacts. Here the forces of each patch are replaced, within Coulomb's cones, by others with the same wrench
J f and a lesser norm. First they change along the direction of the patch's total force, in which each stays in its cone while
it does not pull, also if the patch slides; then freely. Both move straight towards the least norm. A force that reaches the
boundary of its cone is fixed, and the others continue.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from ..array_types import Booleans, Integers, Matrix, Vector
from ..collision.detection import ContactPoints
from .contact_problem import write_axes
from .patches import PatchWork, find_patches, patch_work

SAME_GAP = 1e-9  # [m]
ROUNDING = 1e-13  # force, relative to a patch's normal force, that counts as zero
RANK = 1e-12  # length, relative to the greatest, that counts as zero: directions of impossible wrenches
FLAT = 1e-12  # ratio of the squared sizes of a patch in its plane that counts as zero
WRENCH = 6


class SpreadWork(NamedTuple):
    """Workspace of `spread_over_patches` for at most k contacts, of which n belong to the current patch."""

    patches: PatchWork
    closed: Booleans  # (k,) whether each contact has no gap after the step
    place: Integers  # (k,) the closed contacts of the patch
    free: Integers  # (k,) numbers of those whose forces may change
    arm: Matrix  # (k, 3) their positions relative to the mean, in the axes of the patch, divided by the greatest
    force: Matrix  # (k, 3) their forces in the same axes
    change: Matrix  # (k, 3) changes of the free forces
    way: Vector  # (k,) how many times each may be added
    part: Vector  # (3 k,) coefficients of the free forces in the directions of the changes
    wrench: Matrix  # (6, 3 k) their wrenches, then an orthonormal basis of the rows
    directions: Matrix  # (3, 3) directions in the axes of the patch, one a row


def spread_work(contacts: int) -> SpreadWork:
    """Return workspace for `contacts` contacts."""
    k = contacts
    place, free = np.zeros((2, k), np.int64)
    arm, force, change = np.zeros((3, k, 3))
    return SpreadWork(
        patch_work(k), np.zeros(k, bool), place, free, arm, force, change, np.zeros(k), np.zeros(3 * k),
        np.zeros((WRENCH, 3 * k)), np.zeros((3, 3)),
    )  # fmt: skip


def spread_over_patches(
    contacts: ContactPoints, friction: Vector, restitution: Vector, pyramid: bool, force: Matrix, work: SpreadWork
) -> None:
    """Replace forces (k, 3) or impulses of contacts, in the world frame, by others with the same wrench of each patch.

    `friction` and `restitution` are those of candidates. Only `work.closed` contacts, those without a gap after the step, take
    part: forces at other contacts would violate Signorini's law.
    """
    axes = work.patches.axes
    for p in range(find_patches(contacts, friction, restitution, work.patches)):
        count = 0
        for c in range(len(contacts.gap)):
            if work.patches.patch[c] == p and work.closed[c]:
                work.place[count] = c
                count += 1
        if count < 2:
            continue
        write_axes(contacts.normal[work.place[0]], axes)
        for i in range(count):
            for x in range(3):
                work.arm[i, x] = product(contacts.point[work.place[i]], axes[x])
                work.force[i, x] = product(force[work.place[i]], axes[x])
        spread_in_patch(count, friction[contacts.candidate[work.place[0]]], pyramid, work)
        for i in range(count):
            for x in range(3):
                f = work.force[i]
                force[work.place[i], x] = f[0] * axes[0, x] + f[1] * axes[1, x] + f[2] * axes[2, x]


def find_closed(
    contacts: ContactPoints, friction: Vector, restitution: Vector, force: Matrix, solved: int, work: SpreadWork
) -> None:
    """Find the contacts that have no gap after a step; the first `solved` of them were in the solver.

    A contact that was left out is closed if all others of its patch carry a force, and its gap is the one that theirs imply.
    """
    patch = work.patches.patch
    for c in range(len(contacts.gap)):
        work.closed[c] = product(contacts.normal[c], force[c]) > 0.0
    for p in range(find_patches(contacts, friction, restitution, work.patches)):
        kept, pressed = 0, True
        for c in range(solved):
            if patch[c] == p:
                kept += 1
                pressed = pressed and work.closed[c]
        if kept > 0 and pressed:
            close_left_out(contacts, solved, p, work)


def close_left_out(contacts: ContactPoints, solved: int, p: int, work: SpreadWork) -> None:
    """Find the closed contacts of patch p that were left out: the gap is affine in the plane of the patch."""
    patch, axes, kept = work.patches.patch, work.patches.axes, 0
    write_axes(contacts.normal[work.patches.first[p]], axes)
    x, y, g = 0.0, 0.0, 0.0
    for c in range(solved):
        if patch[c] == p:
            kept += 1
            x += product(contacts.point[c], axes[1])
            y += product(contacts.point[c], axes[2])
            g += max(contacts.gap[c], 0.0)
    x, y, g = x / kept, y / kept, g / kept
    xx, xy, yy, xg, yg = 0.0, 0.0, 0.0, 0.0, 0.0
    for c in range(solved):
        if patch[c] == p:
            dx, dy = product(contacts.point[c], axes[1]) - x, product(contacts.point[c], axes[2]) - y
            dg = max(contacts.gap[c], 0.0) - g
            xx, xy, yy, xg, yg = xx + dx * dx, xy + dx * dy, yy + dy * dy, xg + dx * dg, yg + dy * dg
    size, spread, slope_x, slope_y = xx + yy, xx * yy - xy * xy, 0.0, 0.0
    if spread > FLAT * size * size:
        slope_x, slope_y = (yy * xg - xy * yg) / spread, (xx * yg - xy * xg) / spread
    elif size > 0.0:  # on a line, across which the gap is constant
        slope_x, slope_y = (xx * xg + xy * yg) / (size * size), (xy * xg + yy * yg) / (size * size)
    for c in range(solved, len(contacts.gap)):
        if patch[c] == p:
            dx, dy = product(contacts.point[c], axes[1]) - x, product(contacts.point[c], axes[2]) - y
            implied = g + slope_x * dx + slope_y * dy
            work.closed[c] = abs(implied - max(contacts.gap[c], 0.0)) <= SAME_GAP


def spread_in_patch(count: int, mu: float, pyramid: bool, work: SpreadWork) -> None:
    """Replace the forces of one patch, along its normal and two tangents."""
    arm, force, directions = work.arm, work.force, work.directions
    size, normal = 0.0, 0.0
    for i in range(count):
        normal += force[i, 0]
    if not normal > 0.0:
        return
    for x in range(3):
        mean, total = 0.0, 0.0
        for i in range(count):
            mean += arm[i, x] / count
            total += force[i, x]
        directions[0, x] = total / normal
        for i in range(count):
            arm[i, x] -= mean
            size = max(size, abs(arm[i, x]))
    for i in range(count):
        for x in range(3):
            arm[i, x] = arm[i, x] / size if size > 0.0 else 0.0
    lessen(count, 1, mu, pyramid, ROUNDING * normal, work)
    for x in range(3):
        for y in range(3):
            directions[x, y] = 1.0 if x == y else 0.0
    lessen(count, 3, mu, pyramid, ROUNDING * normal, work)


def lessen(count: int, ways: int, mu: float, pyramid: bool, rounding: float, work: SpreadWork) -> None:
    """Change the forces of a patch to a lesser norm, along the first `ways` directions, orthogonal and of equal length."""
    free, force, change, left = work.free, work.force, work.change, count
    for i in range(count):
        free[i] = i
    while left > 1:
        write_change(left, ways, work)
        greatest, least = 0.0, 1.0
        for k in range(left):
            for x in range(3):
                greatest = max(greatest, abs(change[k, x]))
        if greatest <= rounding:
            return
        for k in range(left):
            work.way[k] = way_in_cone(force[free[k]], change[k], mu, pyramid, rounding)
            least = min(least, work.way[k])
        still = 0
        for k in range(left):
            f = force[free[k]]
            for x in range(3):
                f[x] += least * change[k, x]
            f[0] = max(f[0], 0.0)  # only rounding errors make it pull
            if work.way[k] > least:
                free[still] = free[k]
                still += 1
        if least == 1.0:
            return
        left = still


def write_change(count: int, ways: int, work: SpreadWork) -> None:
    """Write the changes of free forces, without wrench, that lead to the least norm."""
    part, wrench, directions, size = work.part, work.wrench, work.directions, count * ways
    square = product(directions[0], directions[0])
    for k in range(count):
        i = work.free[k]
        for d in range(ways):
            push, at = directions[d], k * ways + d
            x, y, z = work.arm[i, 0], work.arm[i, 1], work.arm[i, 2]
            wrench[0, at], wrench[1, at], wrench[2, at] = push[0], push[1], push[2]
            wrench[3, at] = y * push[2] - z * push[1]
            wrench[4, at] = z * push[0] - x * push[2]
            wrench[5, at] = x * push[1] - y * push[0]
            part[at] = product(work.force[i], push) / square
    rank = orthonormalize(wrench, size)
    for _ in range(2):  # again, because of rounding errors
        for r in range(rank):
            subtract_part(part, wrench[r], size)
    for k in range(count):
        for j in range(3):
            work.change[k, j] = 0.0
            for d in range(ways):
                work.change[k, j] -= part[k * ways + d] * directions[d, j]


def orthonormalize(rows: Matrix, size: int) -> int:
    """Replace rows, of which `size` numbers count, by an orthonormal basis, the longest remainder first; return its rank."""
    greatest = 0.0
    for r in range(len(rows)):
        longest, found = -1.0, r
        for k in range(r, len(rows)):
            length = length_of(rows[k], size)
            if length > longest:
                longest, found = length, k
        greatest = max(greatest, longest)
        if longest <= RANK * greatest:
            return r
        for j in range(size):
            rows[r, j], rows[found, j] = rows[found, j] / longest, rows[r, j]
        for _ in range(2):
            for s in range(r):
                subtract_part(rows[r], rows[s], size)
            length = length_of(rows[r], size)
            for j in range(size):
                rows[r, j] /= length
        for k in range(r + 1, len(rows)):
            subtract_part(rows[k], rows[r], size)
    return len(rows)


def subtract_part(x: Vector, unit: Vector, size: int) -> None:
    """Subtract the part of x in the direction of a unit vector."""
    along = 0.0
    for j in range(size):
        along += x[j] * unit[j]
    for j in range(size):
        x[j] -= along * unit[j]


def length_of(x: Vector, size: int) -> float:
    """Return the length of the first `size` numbers."""
    square = 0.0
    for j in range(size):
        square += x[j] * x[j]
    return sqrt(square)


def way_in_cone(force: Vector, change: Vector, mu: float, pyramid: bool, rounding: float) -> float:
    """Return how many times the change may be added until a force leaves its cone, beyond rounding errors."""
    way, push = first_crossing(max(force[0], 0.0), change[0]), mu * force[0] + rounding
    if pyramid:
        for x in range(1, 3):
            way = min(way, first_crossing(max(push - force[x], 0.0), mu * change[0] - change[x]))
            way = min(way, first_crossing(max(push + force[x], 0.0), mu * change[0] + change[x]))
        return way
    slip = force[1] * force[1] + force[2] * force[2]
    most = max(push, sqrt(slip))
    a = change[1] * change[1] + change[2] * change[2] - (mu * change[0]) ** 2  # a t² + 2 b t - c is positive outside
    b = force[1] * change[1] + force[2] * change[2] - most * mu * change[0]
    c = max(most * most - slip, 0.0)
    root = sqrt(max(b * b + a * c, 0.0))
    if b > 0.0:
        return min(way, c / (root + b)) if b * b + a * c >= 0.0 else way
    return min(way, (root - b) / a) if a > 0.0 else way  # it first moves inward


def first_crossing(distance: float, change: float) -> float:
    """Return how many times a change may be added to a quantity that must stay nonnegative."""
    return distance / -change if change < 0.0 else inf


def product(x: Vector, y: Vector) -> float:
    """Return the scalar product of vectors (3,)."""
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]
