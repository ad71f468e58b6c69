"""The penetration depth of two convex shapes (van den Bergen 2001, the expanding polytope).

`supports` are as in `closest_points`. Triangles of them, with outward normals, form a polytope around the origin inside the set
of differences a - b of two shapes. It grows at its face nearest to the origin, until that face is on the surface of the set.
"""

from __future__ import annotations

from ..array_types import IntegerMatrix, Matrix
from .closest_points import add_support
from .collision_scene import MOST_FACES, MOST_SUPPORTS
from .convex_shapes import ConvexShape
from .query_tables import SearchWork
from .triples import Triple, component, inner, length_of, minus, outer, times, with_component

CLOSE = 1e-9  # tolerance of the depth relative to the shapes' size
COPLANAR = 1.0 - 1e-10  # least cosine of the angle between coplanar faces
IN_PLANE = 1e-12  # distance from a face's plane, relative to the shapes' size, that counts as in the plane
SLIVER = 1e-9  # twice the area, relative to the squared longest side, below which a triangle has no normal


def deepest(one: ConvexShape, other: ConvexShape, count: int, size: float, work: SearchWork) -> int:
    """Return the face of the polytope nearest to the origin, from a simplex of `count` points that touches it; -1 on failure.

    Its normal points from `one` to `other`, and its distance is the depth.
    """
    supports, planes, triangles = work.supports, work.planes, work.triangles
    count = tetrahedron(one, other, count, size, supports)
    if count < 4:
        return -1
    faces = first_faces(supports, planes, triangles)
    best = 0
    for _ in range(MOST_SUPPORTS):
        best = 0
        for f in range(1, faces):
            if planes[f, 3] < planes[best, 3]:
                best = f
        if count == MOST_SUPPORTS:
            break
        n = planes[best, 0], planes[best, 1], planes[best, 2]
        add_support(one, other, n, supports, count)
        if inner(n, supports[count]) - planes[best, 3] <= CLOSE * size:
            break
        grown = grow(faces, count, -IN_PLANE * size, work)
        if grown < 0:
            break
        faces, count = grown, count + 1
    return face_below_origin(faces, best, size, work)


def face_below_origin(faces: int, best: int, size: float, work: SearchWork) -> int:
    """Return the face in the plane of face `best` that contains the plane's point nearest to the origin."""
    found, most = best, -1e300
    for f in range(faces):
        plane = work.planes[f]
        if plane[3] <= work.planes[best, 3] + CLOSE * size and inner(plane, work.planes[best]) > COPLANAR:
            u, v, w = weights_of_face(work, f)
            if min(u, min(v, w)) > most:
                found, most = f, min(u, min(v, w))
    return found


def tetrahedron(one: ConvexShape, other: ConvexShape, count: int, size: float, supports: Matrix) -> int:
    """Add points to a simplex until it is a tetrahedron with volume; return their number."""
    least = 1e-6 * size
    if count == 3 and length_of(outer(minus(supports[1], supports[0]), minus(supports[2], supports[0]))) < least * least:
        count = 2
    if count == 2 and length_of(minus(supports[1], supports[0])) < least:
        count = 1
    if count == 1:
        for i in range(6):
            add_support(one, other, with_component((0.0, 0.0, 0.0), i // 2, 1.0 - 2.0 * (i % 2)), supports, 1)
            if length_of(minus(supports[1], supports[0])) > least:
                count = 2
                break
    if count == 2:
        u = minus(supports[1], supports[0])
        u = times(1.0 / length_of(u), u)
        k = 0
        for i in range(1, 3):
            if abs(component(u, i)) < abs(component(u, k)):
                k = i
        x = outer(u, with_component((0.0, 0.0, 0.0), k, 1.0))
        x = times(1.0 / length_of(x), x)
        y = outer(u, x)
        for i in range(6):
            c = (1.0, 0.5, -0.5, -1.0, -0.5, 0.5)[i]
            s = (0.0, 0.8660254, 0.8660254, 0.0, -0.8660254, -0.8660254)[i]
            d = c * x[0] + s * y[0], c * x[1] + s * y[1], c * x[2] + s * y[2]
            add_support(one, other, d, supports, 2)
            if length_of(outer(u, minus(supports[2], supports[0]))) > least:
                count = 3
                break
    if count == 3:
        n = outer(minus(supports[1], supports[0]), minus(supports[2], supports[0]))
        n = times(1.0 / length_of(n), n)
        for _ in range(2):
            n = times(-1.0, n)
            add_support(one, other, n, supports, 3)
            if abs(inner(n, minus(supports[3], supports[0]))) > least:
                count = 4
                break
    return count


def first_faces(supports: Matrix, planes: Matrix, triangles: IntegerMatrix) -> int:
    """Write the faces of the tetrahedron of the first four points; return their number."""
    n = outer(minus(supports[1], supports[0]), minus(supports[2], supports[0]))
    left = inner(n, minus(supports[3], supports[0])) > 0.0
    for f in range(4):
        i, j, k = f, (f + 1) % 4, (f + 2) % 4
        if (f % 2 == 0) == left:
            j, k = k, j
        write_face(supports, planes, triangles, f, (i, j, k))
    return 4


def write_face(supports: Matrix, planes: Matrix, triangles: IntegerMatrix, f: int, corners: tuple[int, int, int]) -> None:
    """Write face f."""
    i, j, k = corners
    triangles[f, 0], triangles[f, 1], triangles[f, 2] = i, j, k
    a = supports[i]
    n = outer(minus(supports[j], a), minus(supports[k], a))
    area = length_of(n)
    u, v, w = minus(supports[j], a), minus(supports[k], a), minus(supports[k], supports[j])
    thin = area <= SLIVER * max(inner(u, u), max(inner(v, v), inner(w, w)))
    planes[f, 3] = 1e300  # a face without a normal, never the nearest to the origin
    if not thin:
        planes[f, 0], planes[f, 1], planes[f, 2] = n[0] / area, n[1] / area, n[2] / area
        planes[f, 3] = inner(n, a) / area


def grow(faces: int, point: int, least: float, work: SearchWork) -> int:
    """Replace the faces visible from a new point by faces from their outline to it; return the new number, -1 on failure.

    The point is above a visible face by more than `least`, which is negative: faces in whose planes the point is go too, so
    that there are no slivers.
    """
    supports, planes, triangles, horizon = work.supports, work.planes, work.triangles, work.horizon
    w = supports[point]
    edges, f = 0, 0
    while f < faces:
        if planes[f, 0] * w[0] + planes[f, 1] * w[1] + planes[f, 2] * w[2] - planes[f, 3] <= least:
            f += 1
            continue
        for e in range(3):
            i, j = triangles[f, e], triangles[f, (e + 1) % 3]
            twin = -1
            for h in range(edges):
                if horizon[h, 0] == j and horizon[h, 1] == i:
                    twin = h
            if twin >= 0:
                edges -= 1
                horizon[twin, 0], horizon[twin, 1] = horizon[edges, 0], horizon[edges, 1]
            elif edges < MOST_FACES:
                horizon[edges, 0], horizon[edges, 1] = i, j
                edges += 1
        faces -= 1
        for x in range(4):
            planes[f, x] = planes[faces, x]
        for x in range(3):
            triangles[f, x] = triangles[faces, x]
    if edges < 3 or faces + edges > MOST_FACES:
        return -1
    for h in range(edges):
        write_face(supports, planes, triangles, faces, (horizon[h, 0], horizon[h, 1], point))
        faces += 1
    return faces


def weights_of_face(work: SearchWork, f: int) -> Triple:
    """Return the weights of a face's corners in its plane's point nearest to the origin."""
    supports, plane, corners = work.supports, work.planes[f], work.triangles[f]
    a, b, c = supports[corners[0]], supports[corners[1]], supports[corners[2]]
    p = times(plane[3], plane)
    area = inner(plane, outer(minus(b, a), minus(c, a)))
    u = inner(plane, outer(minus(b, p), minus(c, p))) / area
    v = inner(plane, outer(minus(c, p), minus(a, p))) / area
    return u, v, 1.0 - u - v
