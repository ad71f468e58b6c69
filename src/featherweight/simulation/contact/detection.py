"""Where spheres touch the ground and one another, compiled by Numba.

A contact is between body a and body b (-1 is the world), of the robot's bodies that may touch: a point x in the world, the
normal n from b to a, the gap along it (negative where they overlap). Candidate c < spheres is sphere c and the ground, the
others are pairs of spheres; a contact keeps the number of its candidate.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

from ..compiling import compiled, jitable

NO_GROUND, PLANE, HEIGHTS = range(3)


class Spheres(NamedTuple):
    """Spheres on the bodies that may touch, pairs of them, and the ground."""

    body: Any  # (s,) int
    center: Any  # (s, 3) in the body's frame of the file [m]
    radius: Any  # (s,)
    pair: Any  # (p, 2) int
    ground: Any  # NO_GROUND, PLANE or HEIGHTS
    plane: Any  # (4,) normal, and its product with a point of the plane
    heights: Any  # (nx, ny)
    corner: Any  # (2,) x and y of heights[0, 0]
    spacing: Any  # (2,) of the grid


class ContactPoints(NamedTuple):
    """Contacts of one robot; of many, with a leading axis, and room for the most that there may be."""

    candidate: Any  # (c,) int
    a: Any  # (c,) int
    b: Any  # (c,) int
    point: Any  # (c, 3) [m]
    normal: Any  # (c, 3)
    gap: Any  # (c,) [m]


@jitable
def points_of(contacts: Any, robot: int, count: int) -> Any:
    """The first contacts of one robot."""
    i, k = robot, count
    return ContactPoints(
        contacts.candidate[i, :k], contacts.a[i, :k], contacts.b[i, :k], contacts.point[i, :k], contacts.normal[i, :k],
        contacts.gap[i, :k],
    )  # fmt: skip


@jitable
def center_of(spheres: Any, s: int, placement: Any) -> tuple[float, float, float]:
    """The centre of a sphere in the world."""
    T = placement[spheres.body[s]]
    x, y, z = spheres.center[s, 0], spheres.center[s, 1], spheres.center[s, 2]
    return (
        T[0, 0] * x + T[0, 1] * y + T[0, 2] * z + T[0, 3],
        T[1, 0] * x + T[1, 1] * y + T[1, 2] * z + T[1, 3],
        T[2, 0] * x + T[2, 1] * y + T[2, 2] * z + T[2, 3],
    )


@jitable
def normal_and_height(spheres: Any, x: float, y: float) -> tuple[float, float, float, float]:
    """The height field at (x, y): normal, and height."""
    nx, ny = spheres.heights.shape
    hx, hy = spheres.spacing[0], spheres.spacing[1]
    along, across = (x - spheres.corner[0]) / hx, (y - spheres.corner[1]) / hy
    s, t = min(max(along, 0.0), nx - 1.0), min(max(across, 0.0), ny - 1.0)
    i, j = min(int(s), nx - 2), min(int(t), ny - 2)
    s, t = s - i, t - j
    H = spheres.heights
    low = H[i, j] + s * (H[i + 1, j] - H[i, j])
    high = H[i, j + 1] + s * (H[i + 1, j + 1] - H[i, j + 1])
    dx = ((1.0 - t) * (H[i + 1, j] - H[i, j]) + t * (H[i + 1, j + 1] - H[i, j + 1])) / hx
    dy = (high - low) / hy
    if along < 0.0 or along > nx - 1.0:
        dx = 0.0
    if across < 0.0 or across > ny - 1.0:
        dy = 0.0
    length = sqrt(1.0 + dx * dx + dy * dy)
    return -dx / length, -dy / length, 1.0 / length, low + t * (high - low)


@jitable
def write_contact(contacts: Any, k: int, candidate: int, a: int, b: int, point: Any, normal: Any, gap: float) -> int:
    contacts.candidate[k], contacts.a[k], contacts.b[k], contacts.gap[k] = candidate, a, b, gap
    for i in range(3):
        contacts.point[k, i], contacts.normal[k, i] = point[i], normal[i]
    return k + 1


@jitable
def find_contacts(spheres: Any, placement: Any, reach: float, contacts: Any) -> int:
    """Write the contacts with gaps below `reach` [m], for placements (bodies, 4, 4) of the bodies; how many there are."""
    k = 0
    for s in range(len(spheres.body)):
        x, y, z = center_of(spheres, s, placement)
        r = spheres.radius[s]
        if spheres.ground == PLANE:
            p = spheres.plane
            n = (p[0], p[1], p[2])
            gap = n[0] * x + n[1] * y + n[2] * z - p[3] - r
        elif spheres.ground == HEIGHTS:
            nx, ny, nz, height = normal_and_height(spheres, x, y)
            n = (nx, ny, nz)
            gap = (z - height) * nz - r
        else:
            continue
        if gap < reach:
            down = r + gap  # of the centre
            point = (x - down * n[0], y - down * n[1], z - down * n[2])
            k = write_contact(contacts, k, s, spheres.body[s], -1, point, n, gap)
    for i in range(len(spheres.pair)):
        s, t = spheres.pair[i, 0], spheres.pair[i, 1]
        x, y, z = center_of(spheres, s, placement)
        u, v, w = center_of(spheres, t, placement)
        dx, dy, dz = x - u, y - v, z - w
        distance = sqrt(dx * dx + dy * dy + dz * dz)
        gap = distance - spheres.radius[s] - spheres.radius[t]
        if gap < reach:
            n = (dx / distance, dy / distance, dz / distance) if distance > 0.0 else (0.0, 0.0, 1.0)
            out = spheres.radius[t] + 0.5 * gap
            point = (u + out * n[0], v + out * n[1], w + out * n[2])
            k = write_contact(contacts, k, len(spheres.body) + i, spheres.body[s], spheres.body[t], point, n, gap)
    return k


@compiled
def find_contacts_of_robots(
    first: int, stop: int, spheres: Any, placement: Any, reach: float, contacts: Any, count: Any
) -> None:
    """Contacts of robots first to stop, and how many each has."""
    room = contacts.gap.shape[1]
    for i in range(first, stop):
        count[i] = find_contacts(spheres, placement[i], reach, points_of(contacts, i, room))
