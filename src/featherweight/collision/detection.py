"""Contact detection between shapes, and between shapes and the ground.

A contact is between body a and body b (-1 is the world), two of the robot's bodies that may touch. It has a point x in the
world frame, the normal n from b to a, and the gap along n (negative for overlaps). Each pair of shapes has a range of
candidates for its contact points; a contact stores the number of its candidate.

The gap of a pair decreases by at most the paths of both shapes. A gap that was measured in an earlier step therefore shows that
a pair cannot touch yet, as long as the sum of these paths is smaller. Placements themselves give the paths, so this also holds
for shapes that were set elsewhere. It leaves out pairs, but changes no contact.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..array_types import Integers, Matrix, Tensor, Vector
from .box_contacts import box_box
from .by_file.capsule_box import capsule_box_by_file
from .by_file.convex_contacts import hull_plane_by_file
from .collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHTS, PLANE, SPHERE, CollisionScene, CollisionWork
from .convex_contacts import convex_contacts
from .convex_shapes import convex_shape
from .ground_contacts import (
    box_plane,
    capsule_plane,
    cylinder_plane,
    cylinder_plane_by_file,
    ellipsoid_plane,
    hull_plane,
    point_plane,
)  # fmt: skip
from .height_fields import FieldArrays, balls_on_heights
from .hulls import searched_hull
from .round_contacts import (
    ball_ball,
    ball_box,
    ball_capsule,
    ball_cylinder,
    ball_ellipsoid,
    capsule_box,
    capsule_capsule,
    gap_of_capsule_and_box,
    gap_of_capsules,
)  # fmt: skip
from .triples import Triple, TripleLike, axis_of, inner, length_of, minus, position_of

ROUNDED = 1e-9  # [m] rounding errors of gaps and paths
AT_REST = 0.0, 0.0, 0.0


class ContactPoints(NamedTuple):
    """Contacts of one robot, or places for them."""

    candidate: Integers  # (c,)
    a: Integers  # (c,)
    b: Integers  # (c,)
    point: Matrix  # (c, 3) [m]
    normal: Matrix  # (c, 3)
    gap: Vector  # (c,) [m]


def body_of(contacts: ContactPoints, c: int, side: int) -> int:
    """Return the body on one side of a contact, -1 for the world."""
    return contacts.a[c] if side == 0 else contacts.b[c]


def find_contacts(
    scene: CollisionScene,
    placement: Tensor,
    velocity: Matrix,
    step: float,
    margin: float,
    contacts: ContactPoints,
    work: CollisionWork,
) -> int:
    """Write the contacts of one robot; return their number, or -1 if there are more than the arrays take.

    `placement` (bodies, 4, 4) and `velocity` (bodies, 6), linear and angular in each body's axes, belong to the bodies that may
    touch. A contact has a gap below the margin, now or after a step at these velocities.
    """
    place_shapes(scene, placement, velocity, step, work)
    count, remembers = 0, work.remembers[0]
    for p in range(len(scene.first)):
        touching = scene.margin[p]  # gap at which the pair is in contact
        found_at = margin + scene.gap[p]
        reach = found_at + touching
        a, b = scene.pair[p, 0], scene.pair[p, 1]
        if remembers and work.apart_until[p] >= reach + work.reach[a] + work.reach[b]:
            continue
        if not scene.enabled[p]:
            continue
        if scene.kind[b] < PLANE and are_far(work.placement[a], work.placement[b], reach + work.ball[a] + work.ball[b]):
            if remembers:
                between = length_of(minus(position_of(work.placement[a]), position_of(work.placement[b])))
                remember(p, between - scene.radius[a] - scene.radius[b], a, b, work)
            continue
        wide = reach + way_in_step(scene, a, b, step, work)
        if not is_near(scene, a, b, wide, work):
            continue
        within = touching + scene.gap[p] if scene.by_file else wide  # the distance on which MuJoCo's contact points depend
        found = contacts_of_pair(scene, a, b, within, work, work.apart[p])
        if remembers:
            remember(p, least_gap(scene, a, b, found, wide, work), a, b, work)
        count = keep(scene, p, found, (placement, velocity), (found_at, step, touching), contacts, count, work)
        if count < 0:
            return -1
    return count


def remember(p: int, gap: float, a: int, b: int, work: CollisionWork) -> None:
    """Remember the gap of a pair."""
    work.apart_until[p] = gap - ROUNDED + work.travel[a] + work.travel[b]


def least_gap(scene: CollisionScene, a: int, b: int, found: int, wide: float, work: CollisionWork) -> float:
    """Return a lower bound of the gap of a pair, by the contacts that were found within a distance; -infinity if it is unknown.

    Contacts of other shapes than these need not have the least gap, and points of ground that moves may move by any distance.
    """
    one, other = scene.kind[a], scene.kind[b]
    PA, PB, SA, SB = work.placement[a], work.placement[b], scene.size[a], scene.size[b]
    if one == CAPSULE and other == CAPSULE:
        return gap_of_capsules(PA, SA, PB, SB)
    if one == CAPSULE and other == BOX:
        return gap_of_capsule_and_box(PA, SA, PB, SB)
    on_ground = other == PLANE and scene.body[b] < 0 and one <= BOX
    if not on_ground and not (one == SPHERE and other <= BOX):
        return -np.inf
    gap = wide
    for i in range(found):
        gap = min(gap, work.found[i, 6])
    return gap


def place_shapes(scene: CollisionScene, placement: Tensor, velocity: Matrix, step: float, work: CollisionWork) -> None:
    """Compute placements of shapes in the world frame, velocities of their centres, and their rotation in a step."""
    for g in range(len(scene.kind)):
        own, P, body, moved = scene.placement[g], work.placement[g], scene.body[g], 0.0
        a, b, c = own[9] + work.offset[g, 0], own[10] + work.offset[g, 1], own[11] + work.offset[g, 2]
        if body < 0:
            x, y, z = a - P[9], b - P[10], c - P[11]
            for i in range(9):
                P[i] = own[i]
            P[9], P[10], P[11] = a, b, c
            for i in range(3):
                work.velocity[g, i] = 0.0
            work.turning[g], work.ball[g] = 0.0, scene.radius[g]
            work.travel[g] += sqrt(x * x + y * y + z * z)
            work.reach[g] = work.travel[g]
            continue
        T, v, turned = placement[body], velocity[body], 0.0
        for i in range(3):
            for j in range(3):
                x = T[i, 0] * own[j] + T[i, 1] * own[3 + j] + T[i, 2] * own[6 + j]
                turned += (x - P[3 * i + j]) * (x - P[3 * i + j])
                P[3 * i + j] = x
            x = T[i, 0] * a + T[i, 1] * b + T[i, 2] * c + T[i, 3]
            moved += (x - P[9 + i]) * (x - P[9 + i])
            P[9 + i] = x
        work.velocity[g, 0], work.velocity[g, 1], work.velocity[g, 2] = velocity_of(T, v, position_of(P))
        work.turning[g] = step * sqrt(v[3] * v[3] + v[4] * v[4] + v[5] * v[5])
        work.ball[g] = scene.radius[g] * (1.0 + work.turning[g]) + step * length_of(work.velocity[g])
        work.travel[g] += sqrt(moved) + scene.radius[g] * sqrt(turned)
        work.reach[g] = work.travel[g] + work.ball[g] - scene.radius[g]


def resize_shapes(scene: CollisionScene, sizes: Matrix, radii: Vector, work: CollisionWork) -> None:
    """Give shapes other sizes (shapes, 3) and bounding balls, whose surfaces count as having moved by the change."""
    for g in range(len(radii)):
        for k in range(3):
            work.travel[g] += abs(sizes[g, k] - scene.size[g, k])
            scene.size[g, k] = sizes[g, k]
        scene.radius[g] = radii[g]


def are_far(PA: Vector, PB: Vector, reach: float) -> bool:
    """Return whether the centres of two placed shapes are at least `reach` [m] apart."""
    x, y, z = PA[9] - PB[9], PA[10] - PB[10], PA[11] - PB[11]
    return x * x + y * y + z * z >= reach * reach


def velocity_of(T: Matrix, v: Vector, x: TripleLike) -> Triple:
    """Return the velocity of a world point x on a body at T that moves at v (linear, angular), in the body's axes."""
    d = x[0] - T[0, 3], x[1] - T[1, 3], x[2] - T[2, 3]
    wx = T[0, 0] * v[3] + T[0, 1] * v[4] + T[0, 2] * v[5]
    wy = T[1, 0] * v[3] + T[1, 1] * v[4] + T[1, 2] * v[5]
    wz = T[2, 0] * v[3] + T[2, 1] * v[4] + T[2, 2] * v[5]
    return (
        T[0, 0] * v[0] + T[0, 1] * v[1] + T[0, 2] * v[2] + wy * d[2] - wz * d[1],
        T[1, 0] * v[0] + T[1, 1] * v[1] + T[1, 2] * v[2] + wz * d[0] - wx * d[2],
        T[2, 0] * v[0] + T[2, 1] * v[1] + T[2, 2] * v[2] + wx * d[1] - wy * d[0],
    )


def way_in_step(scene: CollisionScene, a: int, b: int, step: float, work: CollisionWork) -> float:
    """Return an upper bound of the decrease of two shapes' distance in a step [m]."""
    way = step * length_of(minus(work.velocity[a], work.velocity[b])) + work.turning[a] * scene.radius[a]
    if scene.kind[b] < PLANE:
        return way + work.turning[b] * scene.radius[b]
    between = length_of(minus(position_of(work.placement[a]), position_of(work.placement[b])))
    return way + work.turning[b] * (between + scene.radius[a])


def is_near(scene: CollisionScene, a: int, b: int, reach: float, work: CollisionWork) -> bool:
    """Return whether the bounding balls of two shapes, or a ball and the ground, come within `reach` [m]."""
    PA, PB = work.placement[a], work.placement[b]
    apart = minus(position_of(PA), position_of(PB))
    most = reach + scene.radius[a]
    if scene.kind[b] == PLANE:
        return inner(axis_of(PB, 2), apart) < most
    if scene.kind[b] == HEIGHTS:
        return inner(axis_of(PB, 2), apart) < most + scene.fields.edges[scene.data[b, 0], 4]
    most += scene.radius[b]
    return inner(apart, apart) < most * most


def contacts_of_pair(scene: CollisionScene, a: int, b: int, reach: float, work: CollisionWork, apart: Vector) -> int:
    """Write the contacts of two shapes, the one of lower kind first, to `work.found`; return their number.

    Contacts with gaps of at least `reach` [m] may be included. `apart` is that of `convex_contacts`.
    """
    one, other = scene.kind[a], scene.kind[b]
    PA, PB, SA, SB, found = work.placement[a], work.placement[b], scene.size[a], scene.size[b], work.found
    if other == HEIGHTS:
        return contacts_on_heights(scene, a, b, reach, work)
    if one == SPHERE and other == SPHERE:
        return ball_ball(position_of(PA), SA[0], position_of(PB), SB[0], found, 0)
    if one == SPHERE and other == PLANE:
        return point_plane(position_of(PA), SA[0], PB, found, 0)
    count = closed_contacts((one, PA, SA), (other, PB, SB), reach, work, scene.by_file)
    if count >= 0:
        return count
    return general_contacts(scene, a, b, reach, work, apart)


def contacts_on_heights(scene: CollisionScene, a: int, b: int, reach: float, work: CollisionWork) -> int:
    """Write the contacts of a shape's balls with a height field."""
    fields, f = scene.fields, scene.data[b, 0]
    field = FieldArrays(fields.heights, fields.grid[f], fields.edges[f])
    balls = scene.balls[scene.data[a, 1] : scene.data[a, 2]]
    return balls_on_heights(work.placement[a], balls, work.placement[b], field, reach, work.patches, work.found)


def closed_contacts(
    first: tuple[int, Vector, Vector], second: tuple[int, Vector, Vector], reach: float, work: CollisionWork, by_file: bool
) -> int:
    """Write the contacts of shapes (kind, placement, size) in closed form; return -1 if there is no closed form."""
    one, PA, SA = first
    other, PB, SB = second
    found = work.found
    if other == PLANE:
        return on_plane(one, PA, SA, PB, found, by_file)
    if one == SPHERE and not (by_file and other == ELLIPSOID):  # for which MuJoCo has no closed form
        return on_ball(other, position_of(PA), SA[0], PB, SB, found)
    if one == CAPSULE and other == CAPSULE:
        return capsule_capsule(PA, SA, PB, SB, found, by_file)
    if one == CAPSULE and other == BOX:
        return capsule_box_by_file(PA, SA, PB, SB, found) if by_file else capsule_box(PA, SA, PB, SB, reach, found)
    return -1


def on_ball(kind: int, c: TripleLike, r: float, P: Vector, S: Vector, found: Matrix) -> int:
    """Write the contacts of a ball with other shapes."""
    if kind == CAPSULE:
        return ball_capsule(c, r, P, S, found, 0)
    if kind == BOX:
        return ball_box(c, r, P, S, found, 0)
    if kind == CYLINDER:
        return ball_cylinder(c, r, P, S, found, 0)
    if kind == ELLIPSOID:
        return ball_ellipsoid(c, r, P, S, found, 0)
    return -1


def on_plane(kind: int, PA: Vector, S: Vector, PB: Vector, found: Matrix, by_file: bool) -> int:
    """Write the contacts of shapes with a half space."""
    if kind == CAPSULE:
        return capsule_plane(PA, S, PB, found)
    if kind == BOX:
        return box_plane(PA, S, PB, found)
    if kind == CYLINDER:
        return cylinder_plane_by_file(PA, S, PB, found) if by_file else cylinder_plane(PA, S, PB, found)
    if kind == ELLIPSOID:
        return ellipsoid_plane(PA, S, PB, found)
    return -1


def general_contacts(scene: CollisionScene, a: int, b: int, reach: float, work: CollisionWork, apart: Vector) -> int:
    """Write the contacts of a hull and a half space, of two boxes, or of any other convex shapes."""
    hulls, PA, PB = scene.hulls, work.placement[a], work.placement[b]
    if scene.kind[b] == PLANE and scene.by_file:
        return hull_plane_by_file(hulls, convex_shape(scene, a, work), PB, reach, work)
    if scene.kind[b] == PLANE:
        return hull_plane(PA, searched_hull(hulls, scene.data[a]), PB, work.found)
    if scene.kind[a] == BOX and scene.kind[b] == BOX:
        count = box_box(PA, scene.size[a], PB, scene.size[b], reach, work.found, work.polygons, scene.by_file)
        if count >= 0:
            return count
    return convex_contacts(scene, a, b, reach, work, apart)


def keep(
    scene: CollisionScene,
    p: int,
    found: int,
    motion: tuple[Tensor, Matrix],
    bounds: Triple,
    contacts: ContactPoints,
    count: int,
    work: CollisionWork,
) -> int:
    """Store the points of pair p that are within reach, now or after the step.

    Returns the number of contacts including these, or -1 if there are more than the arrays take. `motion` contains placements
    and velocities of the bodies; `bounds` are the reach, the step, and the gap at which shapes are in contact.
    """
    placement, velocity = motion
    reach, step, margin = bounds
    a, b = scene.body[scene.pair[p, 0]], scene.body[scene.pair[p, 1]]
    flip = a < 0  # the world comes second
    for i in range(found):
        row = work.found[i]
        gap = row[6] - margin
        if not gap < reach:
            u = velocity_of(placement[a], velocity[a], row) if a >= 0 else AT_REST
            w = velocity_of(placement[b], velocity[b], row) if b >= 0 else AT_REST
            opening = row[3] * (u[0] - w[0]) + row[4] * (u[1] - w[1]) + row[5] * (u[2] - w[2])
            if not gap + step * opening < reach:
                continue
        if count == len(contacts.gap):
            return -1
        contacts.candidate[count] = scene.first[p] + int(row[7])
        contacts.a[count], contacts.b[count] = (b, a) if flip else (a, b)
        contacts.gap[count] = gap
        for x in range(3):
            contacts.point[count, x] = row[x]
            contacts.normal[count, x] = -row[3 + x] if flip else row[3 + x]
        count += 1
    return count
