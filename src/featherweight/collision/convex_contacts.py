"""Contacts of any two convex shapes: their nearest or deepest points, and contacts of faces."""

from __future__ import annotations

from ..array_types import Vector
from .by_file.convex_contacts import contacts_by_file
from .collision_scene import SPHERE, CollisionScene, CollisionWork, Hulls
from .convex_shapes import ALIGNED, ConvexShape, convex_shape, face_towards
from .face_clipping import MOST_POINTS, NEARLY, put_face_points, raise_gaps
from .round_contacts import SAME, put
from .separation import FAR, NEVER, are_apart, gap_of_convex, middle_of, nearest_normal
from .triples import Triple, inner, times


def convex_contacts(scene: CollisionScene, a: int, b: int, reach: float, work: CollisionWork, apart: Vector) -> int:
    """Write the contacts of shapes a and b with gaps below `reach`; return their number.

    `apart` (3,) is a direction that separated the shapes before. If it still does, the function returns at once.
    """
    one, other = convex_shape(scene, a, work), convex_shape(scene, b, work)
    size = scene.radius[a] + scene.radius[b]
    if are_apart(one, other, size, reach, apart):
        return 0
    if scene.by_file:
        return contacts_by_file(scene.hulls, (one, other), size, reach, work, apart)
    gap = gap_of_convex(one, other, size, (reach, NEVER), work)
    n = nearest_normal(work.nearest)
    if gap == FAR:
        apart[0], apart[1], apart[2] = n[0], n[1], n[2]
    if gap >= reach or gap == NEVER:
        return 0
    return with_faces(scene.hulls, (one, other), (middle_of(work.nearest), n, gap), reach, work)


def with_faces(
    hulls: Hulls,
    shapes: tuple[ConvexShape, ConvexShape],
    contact: tuple[Triple, Triple, float],
    reach: float,
    work: CollisionWork,
) -> int:
    """Write the contact points of two faces, and the nearest or deepest point if it is not one of them."""
    one, other = shapes
    point, n, gap = contact
    polygons, found = work.polygons, work.found
    k, back = 0, times(-1.0, n)
    m, outward = face_towards(hulls, other, n, polygons[0])
    count, face = face_towards(hulls, one, back, polygons[1])
    cosine, other_cosine = inner(outward, n), inner(face, back)
    if cosine > ALIGNED or (cosine > NEARLY and cosine >= other_cosine):
        k = put_face_points(polygons, m, count, outward, 1.0, reach, found)
    elif other_cosine > NEARLY:
        cosine = other_cosine
        m, outward = face_towards(hulls, one, back, polygons[0])
        count, _ = face_towards(hulls, other, n, polygons[1])
        k = put_face_points(polygons, m, count, outward, -1.0, reach, found)
    if not cosine > ALIGNED:
        raise_gaps(found, k, gap)
    for i in range(k):
        if found[i, 6] <= gap + 0.5 * SAME:
            return k
    if one.kind == SPHERE:  # its only contact
        put(found, 0, point, n, gap)
        return 1
    put(found, k, point, n, gap)
    found[k, 7] = MOST_POINTS
    return k + 1
