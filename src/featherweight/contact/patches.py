"""Detection of contacts that are redundant in their patch.

A patch contains all contacts of two bodies a and b with one normal n and one friction coefficient. The normal velocity u_n of a
contact is an affine function of its position in the plane normal to n. A contact p needs no impulse if it is a mean of others,
with weights w >= 0 whose sum is 1, and its gap g is not less than theirs:

    p = sum w_i c_i,  max(g_p, 0) >= sum w_i max(g_i, 0)     =>     u_n(p) + max(g_p, 0) / h >= 0  if this holds at all c_i

Signorini's and Coulomb's laws hold at p with zero impulse. If all points are in a plane, the others can exert every wrench that
all contacts can. With g_p >= sum w_i g_i, a displacement that separates overlaps at all c_i also does so at p. Therefore the
corners of the convex hull stay (Andrew's monotone chain), and contacts inside it whose gaps are less than those of the corners
around them. If some gaps are open, the hull of the closed contacts is used as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Booleans, Integers, Matrix, Vector
from ..collision.detection import ContactPoints
from ..collision.triples import Triple
from .contact_problem import write_axes

SAME_NORMAL = 1e-12  # greatest difference of components of equal normals
SAME_POINT = 1e-9  # distance of equal points, and of points on an edge from it, relative to a patch's size
FEWEST = 3  # least number of contacts of a patch to reduce


class PatchWork(NamedTuple):
    """Workspace of `reduce_patches` for at most k contacts."""

    first: Integers  # (k,) first contact of each patch
    size: Integers  # (k,) number of contacts of each patch
    patch: Integers  # (k,) patch of each contact, or -1
    stays: Booleans  # (k,) whether each contact stays
    x: Vector  # (k,) position of each contact in the plane of its patch [m]
    y: Vector  # (k,)
    gap: Vector  # (k,) gap of each contact [m]
    order: Integers  # (k,) contacts of a patch by x, then y
    corners: Integers  # (k + 1,) corners of the hull, counter-clockwise
    is_corner: Booleans  # (k,) whether each contact is a corner
    axes: Matrix  # (3, 3) normal and tangents of a patch
    left: ContactPoints  # (k,) the contacts that are left out


def patch_work(contacts: int) -> PatchWork:
    """Return workspace for `contacts` contacts."""
    k = contacts
    first, size, patch, order, candidate, a, b = np.zeros((7, k), np.int64)
    x, y, gap, left_gap = np.zeros((4, k))
    stays, is_corner = np.zeros((2, k), bool)
    return PatchWork(
        first, size, patch, stays, x, y, gap, order, np.zeros(k + 1, np.int64), is_corner, np.zeros((3, 3)),
        ContactPoints(candidate, a, b, np.zeros((k, 3)), np.zeros((k, 3)), left_gap),
    )  # fmt: skip


def reduce_patches(contacts: ContactPoints, friction: Vector, restitution: Vector, tolerance: float, work: PatchWork) -> int:
    """Move the contacts that need no impulse behind the others, and return the number of others.

    The order is otherwise unchanged. `friction` and `restitution` are those of candidates; a contact with restitution stays.
    `tolerance` [m] bounds how much the gap of a removed contact may be less than the gaps around it. Points closer to each
    other count as one.
    """
    count = len(contacts.gap)
    if count < FEWEST:
        return count
    patches = find_patches(contacts, friction, restitution, work)
    stay = count
    for c in range(count):
        work.stays[c] = True
    for p in range(patches):
        if work.size[p] >= FEWEST:
            stay -= reduce_patch(contacts, p, tolerance, work)
    if stay < count:
        move_behind(contacts, work)
    return stay


def find_patches(contacts: ContactPoints, friction: Vector, restitution: Vector, work: PatchWork) -> int:
    """Write the patch of each contact without restitution; return the number of patches."""
    patches = 0
    for c in range(len(contacts.gap)):
        work.patch[c] = -1
        if restitution[contacts.candidate[c]] > 0.0:
            continue
        p = 0
        while p < patches and not are_alike(contacts, friction, c, work.first[p]):
            p += 1
        if p == patches:
            work.first[p], work.size[p] = c, 0
            patches += 1
        work.patch[c] = p
        work.size[p] += 1
    return patches


def are_alike(contacts: ContactPoints, friction: Vector, c: int, d: int) -> bool:
    """Return whether two contacts belong to one patch."""
    if contacts.a[c] != contacts.a[d] or contacts.b[c] != contacts.b[d]:
        return False
    for i in range(3):
        if not abs(contacts.normal[c, i] - contacts.normal[d, i]) <= SAME_NORMAL:
            return False
    return friction[contacts.candidate[c]] == friction[contacts.candidate[d]]


def reduce_patch(contacts: ContactPoints, p: int, tolerance: float, work: PatchWork) -> int:
    """Find the contacts of patch p that need no impulse; return their number."""
    order, gap = work.order, work.gap
    size = project_patch(contacts, p, work)
    near = max(SAME_POINT * size, tolerance)
    sort_patch(work.size[p], near, work)
    count = leave_out_copies(work.size[p], near, tolerance, work)
    left = work.size[p] - count
    inner, out = leave_out_inner(count, near, tolerance, work)
    left += out
    if out < inner:  # some gaps are smaller than those of open corners
        closed = 0
        for i in range(count):
            if gap[order[i]] <= tolerance:
                order[closed] = order[i]
                closed += 1
        if FEWEST <= closed < count:
            inner, out = leave_out_inner(closed, near, tolerance, work)
            left += out
    return left


def project_patch(contacts: ContactPoints, p: int, work: PatchWork) -> float:
    """Write the contacts of patch p, their positions in its plane and their gaps; return the patch's size [m]."""
    first, axes, x, y = work.first[p], work.axes, work.x, work.y
    write_axes(contacts.normal[first], axes)
    count = 0
    left, right, low, high = 0.0, 0.0, 0.0, 0.0
    for c in range(first, len(contacts.gap)):
        if work.patch[c] == p:
            dx = contacts.point[c, 0] - contacts.point[first, 0]
            dy = contacts.point[c, 1] - contacts.point[first, 1]
            dz = contacts.point[c, 2] - contacts.point[first, 2]
            x[c] = axes[1, 0] * dx + axes[1, 1] * dy + axes[1, 2] * dz
            y[c] = axes[2, 0] * dx + axes[2, 1] * dy + axes[2, 2] * dz
            left, right = min(left, x[c]), max(right, x[c])
            low, high = min(low, y[c]), max(high, y[c])
            work.gap[c] = contacts.gap[c]
            work.order[count] = c
            count += 1
    return max(right - left, high - low)


def sort_patch(count: int, near: float, work: PatchWork) -> None:
    """Sort contacts by x, then y, then number (insertion sort)."""
    order = work.order
    for i in range(1, count):
        c = order[i]
        j = i
        while j > 0 and precedes(c, order[j - 1], near, work):
            order[j] = order[j - 1]
            j -= 1
        order[j] = c


def precedes(c: int, d: int, near: float, work: PatchWork) -> bool:
    dx, dy = work.x[c] - work.x[d], work.y[c] - work.y[d]
    if abs(dx) > near:
        return dx < 0.0
    if abs(dy) > near:
        return dy < 0.0
    return c < d


def leave_out_copies(count: int, near: float, tolerance: float, work: PatchWork) -> int:
    """Keep one of several contacts at one position, the first or one with a smaller gap; return the number of positions."""
    order, gap = work.order, work.gap
    places = 1
    for i in range(1, count):
        c, d = order[i], order[places - 1]
        if abs(work.x[c] - work.x[d]) > near or abs(work.y[c] - work.y[d]) > near:
            order[places] = c
            places += 1
        elif gap[c] >= gap[d] - tolerance:
            work.stays[c] = False
        else:
            work.stays[d] = False
            order[places - 1] = c
    return places


def leave_out_inner(count: int, near: float, tolerance: float, work: PatchWork) -> tuple[int, int]:
    """Remove contacts that are redundant because of the corners of the hull of the first contacts in `order`.

    Returns the number of earlier remaining contacts that are not corners, and how many of these are removed now.
    """
    h = find_corners(count, near, work)
    for i in range(count):
        work.is_corner[work.order[i]] = False
    for i in range(h):
        work.is_corner[work.corners[i]] = True
    inner, out = 0, 0
    for i in range(count):
        c = work.order[i]
        if work.stays[c] and not work.is_corner[c]:
            inner += 1
            if is_redundant(c, h, near, tolerance, work):
                work.stays[c] = False
                out += 1
    return inner, out


def find_corners(count: int, near: float, work: PatchWork) -> int:
    """Write the corners of the convex hull of sorted contacts, counter-clockwise; return their number.

    A point closer than `near` to the line between its neighbours is not a corner.
    """
    order, corners = work.order, work.corners
    h = 0
    for i in range(count):
        while h >= 2 and not turns_left(corners[h - 2], corners[h - 1], order[i], near, work):
            h -= 1
        corners[h] = order[i]
        h += 1
    lower = h + 1
    for i in range(count - 2, -1, -1):
        while h >= lower and not turns_left(corners[h - 2], corners[h - 1], order[i], near, work):
            h -= 1
        corners[h] = order[i]
        h += 1
    return h - 1 if count > 1 else count


def cross(c: int, d: int, e: int, work: PatchWork) -> float:
    """Return twice the area of a triangle of contacts, positive if it is counter-clockwise."""
    x, y = work.x, work.y
    return (x[d] - x[c]) * (y[e] - y[c]) - (y[d] - y[c]) * (x[e] - x[c])


def turns_left(c: int, d: int, e: int, near: float, work: PatchWork) -> bool:
    """Return whether d is to the right of the line from c to e, by more than `near`."""
    dx, dy = work.x[e] - work.x[c], work.y[e] - work.y[c]
    area = cross(c, d, e, work)
    return area > 0.0 and area * area > near * near * (dx * dx + dy * dy)


def is_redundant(c: int, h: int, near: float, tolerance: float, work: PatchWork) -> bool:
    """Return whether a contact is a mean of the h corners, and its gap is not less than the same mean of theirs."""
    corners = work.corners
    if h < FEWEST:
        return h == 2 and is_redundant_on_edge(c, corners[0], corners[1], near, tolerance, work)
    low, high = 1, h - 1  # bisection for the triangle at the first corner that contains the contact
    while high - low > 1:
        middle = (low + high) // 2
        if cross(corners[0], corners[middle], c, work) >= 0.0:
            low = middle
        else:
            high = middle
    i, j, k = corners[0], corners[low], corners[high]
    first, second, third = cross(j, k, c, work), cross(k, i, c, work), cross(i, j, c, work)
    if first < 0.0 and first <= min(second, third):
        return is_redundant_on_edge(c, j, k, near, tolerance, work)
    if second < 0.0 and second <= third:
        return is_redundant_on_edge(c, k, i, near, tolerance, work)
    if third < 0.0:
        return is_redundant_on_edge(c, i, j, near, tolerance, work)
    area = first + second + third
    return has_gap_of_mean(c, (i, j, k), (first / area, second / area, third / area), tolerance, work)


def is_redundant_on_edge(c: int, d: int, e: int, near: float, tolerance: float, work: PatchWork) -> bool:
    """Return whether a contact is between two others, and its gap is not less than theirs there."""
    x, y = work.x, work.y
    dx, dy = x[e] - x[d], y[e] - y[d]
    t = min(max(((x[c] - x[d]) * dx + (y[c] - y[d]) * dy) / (dx * dx + dy * dy), 0.0), 1.0)
    ox, oy = x[c] - (x[d] + t * dx), y[c] - (y[d] + t * dy)
    within = ox * ox + oy * oy <= near * near
    return within and has_gap_of_mean(c, (d, e, e), (1.0 - t, t, 0.0), tolerance, work)


def has_gap_of_mean(c: int, corners: tuple[int, int, int], weights: Triple, tolerance: float, work: PatchWork) -> bool:
    """Return whether the gap of a contact is not less than the mean of those of corners, also with negative gaps as zero."""
    gap = work.gap
    mean, opening = 0.0, 0.0
    for i in range(3):
        mean += weights[i] * gap[corners[i]]
        opening += weights[i] * max(gap[corners[i]], 0.0)
    return gap[c] >= mean - tolerance and max(gap[c], 0.0) >= opening - tolerance


def move_behind(contacts: ContactPoints, work: PatchWork) -> None:
    """Move the removed contacts behind the others."""
    kept, left = 0, 0
    for c in range(len(contacts.gap)):
        if work.stays[c]:
            copy_contact(contacts, c, contacts, kept)
            kept += 1
        else:
            copy_contact(contacts, c, work.left, left)
            left += 1
    for i in range(left):
        copy_contact(work.left, i, contacts, kept + i)


def copy_contact(source: ContactPoints, c: int, target: ContactPoints, d: int) -> None:
    target.candidate[d], target.a[d], target.b[d] = source.candidate[c], source.a[c], source.b[c]
    target.gap[d] = source.gap[c]
    for i in range(3):
        target.point[d, i], target.normal[d, i] = source.point[c, i], source.normal[c, i]
