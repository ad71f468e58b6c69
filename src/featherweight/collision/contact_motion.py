"""Motion of contact points and normals of any two shapes, when their bodies move.

With its outward normal m as a parameter, the surface of a shape has the point S(m). Its derivative R (symmetric, R m = 0) has
the radii of curvature: 0 at a vertex, r on a sphere, infinity along an edge or the side of a cylinder, and in all directions on
a face. For the normal n from b to a, points p_a and p_b of both surfaces with p_a - p_b = g n, and velocities V(x) = v + w x x
of the bodies, the points slide over their surfaces by s, as the normal turns relative to the bodies:

    p_a' = V_a(p_a) + s_a         s_a = -R_a (n' - w_a x n)
    p_b' = V_b(p_b) + s_b         s_b = R_b (n' - w_b x n)          p_a' - p_b' = g n' + g' n,  g' = n . (V_a(p_a) - V_b(p_b))

(Montana 1988 for smooth surfaces). Where R is infinite, its equation is n' = w x n, and the equations of the other surface
determine the slip. Two faces, or an edge along a face, have common directions without slip equations. There the contact is a
corner of one shape, or the crossing of an edge of each, and the point does not slip across these edges.

Both bodies may move as one, so the motion of the contact relative to b depends on the velocity of a relative to b only: with
U = V_a - V_b, w = w_a - w_b and b at rest, s_b = s_a - g n' + U(p_a) along the tangents. The unknowns n' and s_a have two
components each, and four linear equations. They depend on U along both tangents, and on d = w x n.

MuJoCo clips two almost opposed faces along the normal m of one of them, while the contact has the normal of the other. With m
along n + k, a corner x of the latter, or a point x of its edge, has the contact point p_a = x - g k, or p_b = x + g k. Then k,
which turns with the first face, and g' enter the equation of the edge, and with them the components of U and w along n.
"""

from __future__ import annotations

from math import cos, floor, pi, sin, sqrt
from typing import NamedTuple

import numpy as np

from ..array_types import Booleans, Integers, Matrix, Tensor, Vector
from .by_file.convex_contacts import CORNERS, IN_FACE, OPPOSED
from .collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHTS, HULL, ROUND, SPHERE, CollisionScene
from .height_fields import FieldArrays, normal_and_height, vertex_of
from .triples import (
    Triple,
    TripleLike,
    along,
    component,
    inner,
    length_of,
    minus,
    outer,
    plus,
    seen_from,
    times,
    turned,
    turned_back,
)

PARALLEL = 1e-6  # sine of the angle between directions below which they count as parallel
NEAR = 1e-6  # distance from a vertex or edge, relative to the size of the shape, below which a point is on it
UNKNOWNS = 4
GIVEN = 6  # U along both tangents, d along both, and U and w along the normal
RATES = 6  # those of the normal along both tangents, of the point along the axes, and of the gap
NEAR_LINE = 1e-6  # distance from a line of a height field's grid, in cells, below which a point is on it
ON_SURFACE = 1e-3  # distance from a surface, relative to the size of the shape, below which a point is on it
BESIDE = 1e-5  # sine of the angle around a cylinder's axis between a line on its side and the normal above which they differ
LEAST_PIVOT = 1e-12  # relative pivot below which an equation repeats others


Pair = tuple[float, float]
"""Components of a direction along both tangents."""


class SurfacesWork(NamedTuple):
    """Surfaces of both shapes at a contact, with components along the tangents, and workspace."""

    flats: Integers  # (2,) 0, 1 along an edge or a side, 2 on a face
    edge: Matrix  # (2, 2) direction in which a surface with one flat direction is straight
    radii: Tensor  # (2, 2, 2) R in directions that are not flat
    bounds: Integers  # (2,) 0, 1 or 2 directions in which an edge of a face, or the end of an edge, bounds the point
    bound: Matrix  # (2, 2) direction of the edge of a face on which the point is
    rise: Matrix  # (2, 2) rate at which a point that slips on the surface moves along the normal, if they are not perpendicular
    lift: Matrix  # (2, 2) rate at which a line along a side moves along the normal, as the normal turns
    known: Booleans  # (2,) whether the point is on the surface; several points of MuJoCo for two meshes are not
    off: Vector  # (2,) sine of the angle between the normal and that of a face
    tilt: Matrix  # (2, 2) the vector k of the face of each shape that is nearest to the normal
    opposed: Booleans  # (2,) whether there is such a face, and it is almost perpendicular to the normal
    axes: Matrix  # (3, 3) normal and tangents
    equations: Matrix  # (4, 10) of n' and s_a, and their right-hand sides
    chosen: Integers  # (1,) number of equations
    heights: Vector  # (2,) gap, and distance from the point to p_a


def surfaces_work() -> SurfacesWork:
    """Return workspace for one contact."""
    flats, bounds, chosen = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(1, np.int64)
    edge, bound, rise, lift, tilt = np.zeros((5, 2, 2))
    equations, off, heights = np.zeros((UNKNOWNS, UNKNOWNS + GIVEN)), np.zeros(2), np.zeros(2)
    known, opposed, axes = np.ones(2, bool), np.zeros(2, bool), np.zeros((3, 3))
    return SurfacesWork(
        flats, edge, np.zeros((2, 2, 2)), bounds, bound, rise, lift, known, off, tilt, opposed, axes, equations, chosen, heights
    )  # fmt: skip


def write_contact_motion(
    scene: CollisionScene, shapes: tuple[int, int], placement: Matrix, point: TripleLike, heights: tuple[float, float],
    on_ground: bool, work: SurfacesWork, motion: Matrix,
) -> bool:  # fmt: skip
    """Write the rates (6, 6) of a contact relative to body b, at b at rest; return whether they are unique.

    Rows are the rates of the normal along both tangents, of the point along the axes, and of the gap; columns are those by the
    velocity of body a: linear at the point, and angular, along the axes. `work` has the axes: the normal, and two tangents.

    `shapes` are those of a and b, `placement` (shapes, 12) is in the world. `heights` are the gap, and the distance along the
    normal from the point to that midway between the surfaces. The point stays midway, or, on the ground, it keeps its distance
    from the surface of b.
    """
    gap, aside = heights
    n, x = row(work.axes, 0), (point[0], point[1], point[2])
    work.heights[0], work.heights[1] = gap, aside + 0.5 * gap
    p_a, p_b = along(x, aside + 0.5 * gap, n), along(x, aside - 0.5 * gap, n)
    describe(scene, shapes[0], placement[shapes[0]], p_a, times(-1.0, n), work, 0)
    describe(scene, shapes[1], placement[shapes[1]], p_b, n, work, 1)
    clipped = are_clipped(scene, shapes, work)
    if clipped:
        lead = 0 if leads(work) else 1
        x, m, g = (p_a, times(-1.0, n), shapes[0]) if lead == 0 else (p_b, n, shapes[1])
        away, (u, w) = (gap if lead == 0 else -gap), pair(work.tilt, 1 - lead)
        corner = along(along(x, away * u, row(work.axes, 1)), away * w, row(work.axes, 2))
        describe(scene, g, placement[g], corner, m, work, lead)
    unique = choose_equations(work, clipped)
    unique = solve_equations(work.equations) and unique
    write_rates(work, on_ground, motion)
    for side in range(2):
        p, g = (p_b if side == 0 else p_a), shapes[side]
        if work.flats[1 - side] == 2 and not work.known[side] and is_on_axis(scene, g, placement[g], p):
            P = placement[g]
            write_rates_on_axis(work, side, (P[2], P[5], P[8]), motion)
        p = p_a if side == 0 else p_b
        if is_across_edge(scene, shapes, placement, p, work, side):
            P = placement[shapes[side]]
            unique = write_rates_across_edge(work, side, (P[2], P[5], P[8]), scene.size[shapes[side], 0], motion)
            work.known[side] = True
    return bool(unique and work.known[0] and work.known[1])


def are_clipped(scene: CollisionScene, shapes: tuple[int, int], work: SurfacesWork) -> bool:
    """Return whether the contact is one of MuJoCo's for two almost opposed faces, which are not both of boxes."""
    if not (scene.by_file and work.opposed[0] and work.opposed[1]):
        return False
    return scene.kind[shapes[0]] != BOX or scene.kind[shapes[1]] != BOX


def write_rates(work: SurfacesWork, on_ground: bool, motion: Matrix) -> None:
    """Write the rates, from the solution of the equations."""
    gap, ahead, rise, lift = work.heights[0], work.heights[1], work.rise, work.lift
    for i in range(RATES):
        for j in range(6):
            motion[i, j] = 0.0
    for k in range(GIVEN):
        column, sign, opens = k + 1, 1.0, 0.0
        if k == 2:  # d = w x n has the components of w along the second tangent, and against the first
            column = 5
        elif k == 3:
            column, sign = 4, -1.0
        elif k == 4:
            column, opens = 0, 1.0
        elif k == 5:
            column = 3
        turn, slip = solution(work, 0, k, sign), solution(work, 2, k, sign)
        moved = sign * direct(0, k, ahead), sign * direct(1, k, ahead)  # U(p_a)
        slip_b = slip[0] - gap * turn[0] + moved[0], slip[1] - gap * turn[1] + moved[1]
        up_a, up_b = rise[0, 0] * slip[0] + rise[0, 1] * slip[1], rise[1, 0] * slip_b[0] + rise[1, 1] * slip_b[1]
        relative = turn[0] - (sign if k == 2 else 0.0), turn[1] - (sign if k == 3 else 0.0)  # n' - d
        up_a += lift[0, 0] * relative[0] + lift[0, 1] * relative[1]
        up_b -= lift[1, 0] * turn[0] + lift[1, 1] * turn[1]
        motion[0, column], motion[1, column], motion[5, column] = turn[0], turn[1], opens + up_a - up_b
        if on_ground:
            farther = gap - ahead
            motion[2, column] = up_b
            motion[3, column], motion[4, column] = slip_b[0] + farther * turn[0], slip_b[1] + farther * turn[1]
        else:
            motion[2, column] = 0.5 * (opens + up_a + up_b)
            motion[3, column] = 0.5 * (moved[0] + slip[0] + slip_b[0])
            motion[4, column] = 0.5 * (moved[1] + slip[1] + slip_b[1])


def solution(work: SurfacesWork, first: int, k: int, sign: float) -> Pair:
    """Return two unknowns for column k, with a sign."""
    return sign * work.equations[first, UNKNOWNS + k], sign * work.equations[first + 1, UNKNOWNS + k]


def direct(i: int, k: int, ahead: float) -> float:
    """Return component i of U(p_a) for column k, which is a component of U at the point, or of d."""
    return 1.0 if k == i else (ahead if k == i + 2 else 0.0)


# ---- equations


def choose_equations(work: SurfacesWork, clipped: bool) -> bool:
    """Write the equations; return whether edges of the shapes determine the point in all directions.

    Edges of the first surface bound the point in the directions that are left, and have other equations if faces are clipped.
    """
    work.chosen[0] = 0
    first = 0 if leads(work) else 1
    second = 1 - first
    flats, bounds = work.flats[second], work.bounds[second]
    add_equations_of(work, first)
    if work.flats[first] == 2:
        if flats == 0:
            add_equations_of(work, second)
            return True
        if flats == 1:  # an edge or a side along a face
            add_slip_equation(work, second, across(pair(work.edge, second)))
            if bounds > 0:
                add_slip_equation(work, second, pair(work.edge, second))
        elif bounds == 2:
            add_slip_equation(work, second, (1.0, 0.0))
            add_slip_equation(work, second, (0.0, 1.0))
        elif bounds == 1:
            add_slip_equation(work, second, across(pair(work.bound, second)))
    elif work.flats[first] == 1 and flats == 1 and are_parallel(pair(work.edge, first), pair(work.edge, second)):
        add_slip_equation(work, second, across(pair(work.edge, second)))
        if bounds > 0:
            add_slip_equation(work, second, pair(work.edge, second))
    else:
        add_equations_of(work, second)
        return True
    if work.chosen[0] < UNKNOWNS and work.bounds[first] > 0:  # an edge of the first surface bounds the point as well
        if clipped:
            add_clipped_equations(work, first)
        elif work.flats[first] == 1 or work.bounds[first] == 2:
            add_missing(work, first)
        else:
            add_slip_equation(work, first, across(pair(work.bound, first)))
    unique = bool(work.chosen[0] == UNKNOWNS)
    add_missing(work, second)
    return unique


def leads(work: SurfacesWork) -> bool:
    """Return whether the normal is that of a, because a has more flat directions, or the face that is nearer to the normal."""
    if work.flats[0] != work.flats[1]:
        return bool(work.flats[0] > work.flats[1])
    return bool(work.off[0] <= work.off[1])


def are_parallel(a: Pair, b: Pair) -> bool:
    """Return whether unit vectors are parallel."""
    return abs(a[0] * b[1] - a[1] * b[0]) < PARALLEL


def across(e: Pair) -> Pair:
    """Return the direction e turned about the normal by a right angle."""
    return -e[1], e[0]


def pair(rows: Matrix, k: int) -> Pair:
    """Return a row of two numbers as a tuple."""
    return rows[k, 0], rows[k, 1]


def row(rows: Matrix, k: int) -> Triple:
    """Return a row as a tuple."""
    return rows[k, 0], rows[k, 1], rows[k, 2]


def along_tangents(x: Triple, work: SurfacesWork) -> Pair:
    """Return the components of a vector along both tangents."""
    return inner(work.axes[1], x), inner(work.axes[2], x)


def add_missing(work: SurfacesWork, side: int) -> None:
    """Add equations by which the point does not slip on a surface, until there are four."""
    if work.flats[side] == 1 and work.chosen[0] < UNKNOWNS:
        add_slip_equation(work, side, pair(work.edge, side))
    for k in range(2):
        if work.chosen[0] < UNKNOWNS:
            add_slip_equation(work, side, (1.0 - k, 1.0 * k))


def add_clipped_equations(work: SurfacesWork, side: int) -> None:
    """Add the equation of the edge on which the point x of a face is, or, at a corner, those of both tangents."""
    if work.bounds[side] == 1:
        add_clipped_equation(work, side, across(pair(work.bound, side)))
    for k in range(2 if work.bounds[side] == 2 else 0):
        if work.chosen[0] < UNKNOWNS:
            add_clipped_equation(work, side, (1.0 - k, 1.0 * k))


def add_clipped_equation(work: SurfacesWork, side: int, e: Pair) -> None:
    """Add e . s_a + (g e . k)' = 0, or e . s_b - (g e . k)' = 0, where k turns with the other face.

    With e . k = t and the slope r of the other surface, g' = n . U - r . s_b or n . U + r . s_a, and (e . k)' is
    -(e . d + t k . d + (k x e) . n (w . n)) for a, and the opposite for b.
    """
    gap, ahead, k, r = work.heights[0], work.heights[1], pair(work.tilt, 1 - side), pair(work.rise, 1 - side)
    t, spin = e[0] * k[0] + e[1] * k[1], k[0] * e[1] - k[1] * e[0]
    u, w = gap * (e[0] + t * k[0]), gap * (e[1] + t * k[1])
    p, q = t * r[0], t * r[1]
    if side == 0:
        turned = ahead * p + u, ahead * q + w
        add_equation(work, (gap * p, gap * q, e[0] - p, e[1] - q), (p, q, turned[0], turned[1]))
        set_along_normal(work, -t, gap * spin)
    else:
        turned = u - ahead * e[0], w - ahead * e[1]
        add_equation(work, (-gap * e[0], -gap * e[1], e[0] - p, e[1] - q), (-e[0], -e[1], turned[0], turned[1]))
        set_along_normal(work, t, gap * spin)


def set_along_normal(work: SurfacesWork, opening: float, spin: float) -> None:
    """Write the right-hand sides of the last equation by U and w along the normal."""
    i, first = work.chosen[0] - 1, 2 * UNKNOWNS
    work.equations[i, first], work.equations[i, first + 1] = opening, spin


def add_equations_of(work: SurfacesWork, side: int) -> None:
    """Add both equations of a surface."""
    if work.flats[side] == 2:
        add_turn_equation(work, side, (1.0, 0.0))
        add_turn_equation(work, side, (0.0, 1.0))
    elif work.flats[side] == 1:
        e = pair(work.edge, side)
        add_turn_equation(work, side, e)
        add_slip_equation(work, side, across(e))
    else:
        add_slip_equation(work, side, (1.0, 0.0))
        add_slip_equation(work, side, (0.0, 1.0))


def add_turn_equation(work: SurfacesWork, side: int, e: Pair) -> None:
    """Add e . n' = e . d for a flat direction e of a, or e . n' = 0 for b."""
    turned = 1.0 if side == 0 else 0.0
    add_equation(work, (e[0], e[1], 0.0, 0.0), (0.0, 0.0, turned * e[0], turned * e[1]))


def add_slip_equation(work: SurfacesWork, side: int, e: Pair) -> None:
    """Add e . (s_a + R_a (n' - d)) = 0 or e . (s_b - R_b n') = 0 for a direction e."""
    R, gap, ahead = work.radii[side], work.heights[0], work.heights[1]
    u, w = e[0] * R[0, 0] + e[1] * R[1, 0], e[0] * R[0, 1] + e[1] * R[1, 1]
    if side == 0:
        add_equation(work, (u, w, e[0], e[1]), (0.0, 0.0, u, w))
    else:
        turns = -gap * e[0] - u, -gap * e[1] - w
        add_equation(work, (turns[0], turns[1], e[0], e[1]), (-e[0], -e[1], -ahead * e[0], -ahead * e[1]))


def add_equation(
    work: SurfacesWork, left: tuple[float, float, float, float], right: tuple[float, float, float, float]
) -> None:  # fmt: skip
    """Add an equation."""
    i = work.chosen[0]
    work.chosen[0] += 1
    E = work.equations
    E[i, 0], E[i, 1], E[i, 2], E[i, 3] = left
    E[i, 4], E[i, 5], E[i, 6], E[i, 7] = right
    E[i, 8] = E[i, 9] = 0.0


def solve_equations(E: Matrix) -> bool:
    """Replace right-hand sides by solutions, by elimination with pivots; return whether these are unique.

    A repeated equation gives zero for its unknown.
    """
    unique, stop = True, UNKNOWNS + GIVEN
    for j in range(UNKNOWNS):
        best = j
        for i in range(j + 1, UNKNOWNS):
            if abs(E[i, j]) > abs(E[best, j]):
                best = i
        if best != j:
            for k in range(j, stop):
                E[j, k], E[best, k] = E[best, k], E[j, k]
        if abs(E[j, j]) < LEAST_PIVOT:
            unique = False
            for k in range(j, stop):
                E[j, k] = 1.0 if k == j else 0.0
        scale = 1.0 / E[j, j]
        for k in range(j, stop):
            E[j, k] *= scale
        for i in range(UNKNOWNS):
            factor = E[i, j]
            if i != j and factor != 0.0:
                for k in range(j + 1, stop):
                    E[i, k] -= factor * E[j, k]
    return unique


# ---- surfaces


def describe(scene: CollisionScene, g: int, P: Vector, x: Triple, m: Triple, work: SurfacesWork, side: int) -> None:
    """Write the surface of shape g at a point with outward normal m, in the world frame."""
    kind, size = scene.kind[g], scene.size[g]
    y, k = seen_from(P, x), turned_back(P, m)
    work.flats[side], work.bounds[side], work.off[side], work.known[side], work.opposed[side] = 0, 0, 0.0, True, False
    for i in range(2):
        work.edge[side, i] = work.bound[side, i] = work.rise[side, i] = work.lift[side, i] = 0.0
        for j in range(2):
            work.radii[side, i, j] = 0.0
    if kind == SPHERE:
        add_round(work, side, size[0])
    elif kind == CAPSULE:
        describe_capsule(P, size, y, m, work, side)
    elif kind == BOX:
        describe_box(P, size, y, k, work, side)
    elif kind == CYLINDER:
        describe_cylinder(P, size, y, k, work, side)
    elif kind == ELLIPSOID:
        describe_ellipsoid(P, size, k, work, side)
    elif kind == HULL:
        describe_hull(scene, g, P, y, k, work, side)
    elif kind == HEIGHTS:
        describe_heights(scene, g, P, y, k, work, side)
    else:
        set_ground(work, side)


def add_round(work: SurfacesWork, side: int, r: float) -> None:
    """Add the radius of a sphere to R."""
    work.radii[side, 0, 0] += r
    work.radii[side, 1, 1] += r


def add_radius(work: SurfacesWork, side: int, e: Triple, r: float) -> None:
    """Add a radius in the direction e to R."""
    u, w = along_tangents(e, work)
    R = work.radii[side]
    R[0, 0] += r * u * u
    R[0, 1] += r * u * w
    R[1, 0] += r * u * w
    R[1, 1] += r * w * w


def set_face(work: SurfacesWork, side: int, m: Triple) -> None:
    """Make the surface a plane with the normal m, which may differ slightly from the contact's normal."""
    n = row(work.axes, 0)
    work.flats[side], work.off[side], rate = 2, length_of(outer(m, n)), -1.0 / inner(m, n)
    u, w = along_tangents(m, work)
    work.rise[side, 0], work.rise[side, 1] = rate * u, rate * w


def set_opposed(work: SurfacesWork, side: int, m: Triple) -> None:
    """Note the normal of the face that is nearest to the contact's normal."""
    along_n, (u, w) = inner(m, row(work.axes, 0)), along_tangents(m, work)
    work.opposed[side] = abs(along_n) > OPPOSED
    work.tilt[side, 0], work.tilt[side, 1] = u / along_n, w / along_n


def set_edge(work: SurfacesWork, side: int, e: Triple) -> None:
    """Make the surface straight along e, which may be slightly inclined to the plane perpendicular to the contact's normal."""
    u, w = along_tangents(e, work)
    size, up = sqrt(u * u + w * w), inner(e, row(work.axes, 0))
    work.flats[side], work.off[side] = 1, abs(up) / size
    work.edge[side, 0], work.edge[side, 1] = u / size, w / size
    work.rise[side, 0], work.rise[side, 1] = u / size * up / size, w / size * up / size


def set_bound(work: SurfacesWork, side: int, count: int, e: Triple) -> None:
    """Let an edge with direction e bound the point, or a corner, if there are two."""
    work.bounds[side] = min(count, 2)
    u, w = along_tangents(e, work)
    size = sqrt(u * u + w * w)
    work.bound[side, 0], work.bound[side, 1] = (u / size, w / size) if count == 1 else (0.0, 0.0)


def set_ground(work: SurfacesWork, side: int) -> None:
    """Make the surface a plane whose normal is exactly that of the contact."""
    work.flats[side], work.off[side] = 2, -1.0


def describe_heights(scene: CollisionScene, g: int, P: Vector, y: Triple, k: Triple, work: SurfacesWork, side: int) -> None:
    """Write a face, an edge or a vertex of a height field, by the place of the point, and by the normal."""
    f = scene.data[g, 0]
    field = FieldArrays(scene.fields.heights, scene.fields.grid[f], scene.fields.edges[f])
    edges, grid = field.edges, field.grid
    s, t = (y[0] - edges[0]) / edges[2], (y[1] - edges[1]) / edges[3]
    i, j = round_to(s), round_to(t)
    on_x, on_y, on_diagonal = abs(t - j) < NEAR_LINE, abs(s - i) < NEAR_LINE, abs((s - i) - (t - j)) < NEAR_LINE
    inside = 0 <= i < grid[1] and 0 <= j < grid[2]
    if not inside or not (on_x or on_y or on_diagonal):
        set_ground(work, side)
        return
    if on_x and on_y:
        return
    u, w = (1.0 if not on_y else 0.0), (1.0 if not on_x else 0.0)
    for way in range(2):  # the triangles on both sides of the line
        aside = 0.25 if way == 0 else -0.25
        m = normal_and_height(field.heights, grid, edges, y[0] + aside * w * edges[2], y[1] - aside * u * edges[3])
        if length_of(outer((m[0], m[1], m[2]), k)) < PARALLEL:
            set_ground(work, side)
            work.known[side] = False  # the point moves on to another element
            return
    low_i, low_j = i - (1 if u > 0.0 and s < i else 0), j - (1 if w > 0.0 and t < j else 0)
    low_i, low_j = max(low_i, 0), max(low_j, 0)
    high_i, high_j = min(low_i + int(u), grid[1] - 1), min(low_j + int(w), grid[2] - 1)
    edge = minus(vertex_of(field, high_i, high_j), vertex_of(field, low_i, low_j))
    set_edge(work, side, turned(P, edge))


def round_to(x: float) -> int:
    """Return the nearest whole number."""
    return floor(x + 0.5)


def describe_capsule(P: Vector, size: Vector, y: Triple, m: Triple, work: SurfacesWork, side: int) -> None:
    """Write the side of a capsule, or one of its ends.

    A capsule that lies on a plane has a point for each of its ends, even if it is inclined and one of the points is inside it.
    Where it lies on the face of another shape, MuJoCo takes the line on its side, which may be slightly inclined, and its ends.
    """
    axis, tolerance, k = (P[2], P[5], P[8]), ON_SURFACE * (size[0] + size[1]), turned_back(P, m)
    end = size[1] if y[2] > size[0] * k[2] else -size[1]
    from_end = abs(length_of((y[0], y[1], y[2] - end)) - size[0])
    along_axis, far = abs(inner(axis, m)), sqrt(y[0] * y[0] + y[1] * y[1])
    from_side = min(abs(far - size[0]), abs(far - size[0] * sqrt(1.0 - along_axis * along_axis)))
    inside = abs(y[2]) < size[1] * (1.0 - NEAR)
    aside = inside if along_axis < PARALLEL else along_axis < IN_FACE and from_side + NEAR * NEAR * size[0] < from_end
    if aside and from_side < tolerance:
        if inside:
            set_edge(work, side, axis)
        add_side(work, side, P, size, y, k)
    else:
        add_round(work, side, size[0])
        work.known[side] = from_end < tolerance


def add_side(work: SurfacesWork, side: int, P: Vector, size: Vector, y: Triple, k: Triple) -> None:
    """Add the radius r around the axis u of a cylinder or a capsule to R.

    MuJoCo's line along the side, which may be slightly inclined, is at r (m - (m . u) u) from the axis. R is r (1 - u uT)
    there, and the line moves along the normal too. If m is the normal of other deepest points, its motion is unknown.
    """
    n, axis, r = row(work.axes, 0), (P[2], P[5], P[8]), size[0]
    sine, far = sqrt(k[0] * k[0] + k[1] * k[1]), sqrt(y[0] * y[0] + y[1] * y[1])
    work.known[side] = y[0] * k[0] + y[1] * k[1] > 0.0 and abs(y[0] * k[1] - y[1] * k[0]) < BESIDE * r * sine
    u, w = along_tangents(axis, work)
    projected, up = abs(far - r * sine) < abs(far - r), inner(axis, n) / (sine * sine)
    scale = r / (sine * sine * sine)
    if projected:
        add_round(work, side, r)
        scale = -r
        work.rise[side, 0], work.rise[side, 1] = up * u, up * w
        work.lift[side, 0], work.lift[side, 1] = r * up * u, r * up * w
    R = work.radii[side]
    a, b = (u, w) if projected else (-w, u)
    R[0, 0] += scale * a * a
    R[0, 1] += scale * a * b
    R[1, 0] += scale * a * b
    R[1, 1] += scale * b * b


def is_on_axis(scene: CollisionScene, g: int, P: Vector, x: Triple) -> bool:
    """Return whether shape g is a capsule with a point on its axis."""
    size, y = scene.size[g], seen_from(P, x)
    if scene.kind[g] != CAPSULE or abs(y[2]) > size[1]:
        return False
    return bool(length_of((y[0], y[1], 0.0)) < ON_SURFACE * size[0])


def write_rates_on_axis(work: SurfacesWork, side: int, axis: Triple, motion: Matrix) -> None:
    """Write the rates of a contact where the axis of a capsule meets a face of the other shape.

    MuJoCo's contact is that of a ball of the capsule's radius whose center is there. The center moves with the face along the
    normal, and slides along the axis; the gap does not change. As the capsule turns, the contact may jump to another face.
    """
    gap, ahead, (u, w) = work.heights[0], work.heights[1], along_tangents(axis, work)
    rise = inner(axis, row(work.axes, 0))
    center = ahead - gap if side == 0 else ahead  # distance along the normal from the point to the center
    for i in range(RATES):
        for j in range(6):
            motion[i, j] = 0.0
    motion[2, 0] = 1.0
    if side == 0:  # the face is at rest: the axis moves
        motion[2, 0] = 0.0
        motion[3, 0], motion[4, 0] = -u / rise, -w / rise
        motion[3, 1] = motion[4, 2] = 1.0
        motion[3, 5], motion[4, 4] = center, -center
    else:
        motion[3, 0], motion[4, 0] = u / rise, w / rise
        motion[0, 5], motion[1, 4] = 1.0, -1.0
        motion[3, 5], motion[4, 4] = -center, center


def is_across_edge(
    scene: CollisionScene, shapes: tuple[int, int], placement: Matrix, x: Triple, work: SurfacesWork, side: int
) -> bool:
    """Return whether a point is on a line of a cylinder that lies across an edge of a face, and store the line's direction w.

    The cylinder of axis u is deepest along e x u, for the edge e, while the contact has the normal of the face. MuJoCo's line
    is at r w from the axis, with w along e x u. If u is perpendicular to e, this is also the line below the axis: then the edge
    matters if the deeper end of the line is beyond it.
    """
    other, g = 1 - side, shapes[side]
    if scene.kind[g] != CYLINDER or work.flats[other] != 2:
        return False
    P, n = placement[g], row(work.axes, 0)
    y = seen_from(P, x)
    far = sqrt(y[0] * y[0] + y[1] * y[1])
    if not abs(far - scene.size[g, 0]) < NEAR * far:
        return False
    w = times(1.0 / far, turned(P, (y[0], y[1], 0.0)))
    if not (inner(w, n) < 0.0 if side == 0 else inner(w, n) > 0.0):
        return False
    e = outer(n, w)
    size, (p, q), b = length_of(e), along_tangents(e, work), pair(work.bound, other)
    if size < PARALLEL:
        return False
    work.edge[side, 0], work.edge[side, 1] = p / size, q / size
    if scene.kind[shapes[other]] == BOX:
        Q, box, beyond, u = placement[shapes[other]], scene.size[shapes[other]], False, (P[2], P[5], P[8])
        deeper = scene.size[g, 1] if (inner(u, n) < 0.0) == (side == 0) else -scene.size[g, 1]
        k, end, up = turned_back(Q, e), seen_from(Q, along(x, deeper - y[2], u)), turned_back(Q, n)
        for i in range(3):
            beyond = beyond or (abs(component(up, i)) < 0.5 and abs(component(end, i)) > box[i])
        return bool(max(abs(k[0]), abs(k[1]), abs(k[2])) > (1.0 - PARALLEL) * size and (beyond or not work.known[side]))
    return bool(not work.known[side] and work.bounds[other] == 1 and abs(b[0] * q - b[1] * p) < PARALLEL * size)


def write_rates_across_edge(work: SurfacesWork, side: int, axis: Triple, r: float, motion: Matrix) -> bool:
    """Write the rates of a contact of a line of a cylinder across an edge (`is_across_edge`); return whether they are unique.

    With the face at rest, the line c + t u + r w has u' = W x u and w' = (1 - w wT) (e x u') / |e x u|. An edge of the face,
    across it with the direction b bounds t by b . p' = 0, or the end of the cylinder by t' = 0. The normal turns with the face.
    """
    gap, ahead, other, sign = work.heights[0], work.heights[1], 1 - side, 1.0 if side == 0 else -1.0
    u = inner(axis, row(work.axes, 0)), inner(axis, row(work.axes, 1)), inner(axis, row(work.axes, 2))
    e = 0.0, work.edge[side, 0], work.edge[side, 1]
    radial = outer(e, u)
    size = length_of(radial)
    turn = -sign if radial[0] > 0.0 else sign
    w, rate = times(turn / size, radial), turn / size
    b, bounded = (0.0, -work.bound[other, 1], work.bound[other, 0]), work.bounds[other] == 1 and work.flats[side] == 1
    center = along((ahead if side == 0 else ahead - gap, 0.0, 0.0), -r, w)  # of the line, from the contact point
    middle = ahead - 0.5 * gap, 0.0, 0.0
    for j in range(6):
        linear = times(sign, (1.0 if j == 0 else 0.0, 1.0 if j == 1 else 0.0, 1.0 if j == 2 else 0.0))
        spin = times(sign, (1.0 if j == 3 else 0.0, 1.0 if j == 4 else 0.0, 1.0 if j == 5 else 0.0))
        z = outer(e, outer(spin, u))
        p = along(plus(linear, outer(spin, center)), r * rate, along(z, -inner(z, w), w))
        if bounded:
            p = along(p, -inner(b, p) / inner(b, u), u)
        motion[0, j] = motion[1, j] = 0.0
        motion[5, j] = sign * p[0]
        p = 0.5 * p[0], p[1], p[2]
        if side == 1:  # the face moves
            p = minus(p, plus(linear, outer(spin, middle)))
            motion[0, j], motion[1, j] = -spin[2], spin[1]
        motion[2, j], motion[3, j], motion[4, j] = p
    return bool(bounded or work.flats[side] == 0)


def describe_box(P: Vector, size: Vector, y: Triple, k: Triple, work: SurfacesWork, side: int) -> None:
    """Write a face, an edge or a corner of a box, by the normal and by the place of the point."""
    face, flats, bounds, straight = 0, 0, 0, 0
    for i in range(3):
        face = i if abs(k[i]) > abs(component(k, face)) else face
    for i in range(3):
        inside = abs(abs(y[i]) - size[i]) > NEAR * size[i]
        if i != face and (inside or abs(k[i]) < PARALLEL):
            flats += 1
            bounds += 0 if inside else 1
            straight = i if inside or flats == 1 else straight
    e = P[straight], P[3 + straight], P[6 + straight]
    m = times(1.0 if component(k, face) > 0.0 else -1.0, (P[face], P[3 + face], P[6 + face]))
    set_opposed(work, side, m)
    if flats == 2:
        set_face(work, side, m)
        set_bound(work, side, bounds, e)
    elif flats == 1:
        set_edge(work, side, e)
        work.bounds[side] = bounds


def describe_cylinder(P: Vector, size: Vector, y: Triple, k: Triple, work: SurfacesWork, side: int) -> None:
    """Write the side, an end or a rim of a cylinder."""
    axis, sine = (P[2], P[5], P[8]), sqrt(k[0] * k[0] + k[1] * k[1])
    on_rim = abs(sqrt(y[0] * y[0] + y[1] * y[1]) - size[0]) < NEAR * size[0]
    if abs(k[2]) > sine:
        set_opposed(work, side, axis)
    if sine < PARALLEL or (sine < abs(k[2]) and not on_rim):
        set_face(work, side, times(1.0 if k[2] > 0.0 else -1.0, axis))
        work.bounds[side] = 2 if on_rim else 0
        for i in range(0 if on_rim else CORNERS + ROUND):  # sides of MuJoCo's polygon for the end, and of the other one
            count = CORNERS if i < CORNERS else ROUND
            middle = (2.0 * i + 1.0) * pi / count
            if abs(y[0] * cos(middle) + y[1] * sin(middle) - size[0] * cos(pi / count)) < NEAR * size[0]:
                set_bound(work, side, 1, turned(P, (-sin(middle), cos(middle), 0.0)))
        return
    beside = on_rim and abs(y[0] * k[0] + y[1] * k[1] + 0.5 * size[0] * sine) < NEAR * size[0] * sine  # at 120 degrees
    if sine >= abs(k[2]) and not beside:
        if abs(y[2]) < size[1] * (1.0 - NEAR):
            set_edge(work, side, axis)
        add_side(work, side, P, size, y, k)
        return
    set_face(work, side, times(1.0 if k[2] > 0.0 else -1.0, axis))  # MuJoCo's other points turn with the farthest
    work.flats[side] = 0
    around = along_tangents(turned(P, (-k[1] / sine, k[0] / sine, 0.0)), work)
    way = along_tangents(turned(P, (-y[1], y[0], 0.0)), work)
    R = work.radii[side]
    R[0, 0], R[0, 1] = way[0] * around[0] / sine, way[0] * around[1] / sine
    R[1, 0], R[1, 1] = way[1] * around[0] / sine, way[1] * around[1] / sine


def describe_ellipsoid(P: Vector, size: Vector, k: Triple, work: SurfacesWork, side: int) -> None:
    """Write R of an ellipsoid: D/s - D k (D k)ᵀ / s³, with the squares D of its radii and s² = kᵀ D k."""
    D = size[0] * size[0], size[1] * size[1], size[2] * size[2]
    d = D[0] * k[0], D[1] * k[1], D[2] * k[2]
    s = sqrt(inner(d, k))
    add_radius(work, side, turned(P, d), -1.0 / (s * s * s))
    for i in range(3):
        add_radius(work, side, (P[i], P[3 + i], P[6 + i]), D[i] / s)


def describe_hull(scene: CollisionScene, g: int, P: Vector, y: Triple, k: Triple, work: SurfacesWork, side: int) -> None:
    """Write a face, an edge or a corner of a convex hull, by the normal and by the place of the point.

    Of the faces at the point, which may be almost in one plane, that nearest to the normal counts, and its edges.
    """
    first, stop, vertices, near = scene.data[g, 3], scene.data[g, 4], scene.hulls.vertices, NEAR * scene.radius[g]
    normals, face, nearest, highest = scene.hulls.normals, -1, -1.0, -scene.radius[g]
    for f in range(scene.data[g, 5], scene.data[g, 6]):
        m = normals[f, 0], normals[f, 1], normals[f, 2]
        height, aligned = inner(m, minus(y, vertices[scene.hulls.corners[scene.hulls.faces[f]]])), inner(m, k)
        highest = max(highest, height)
        if aligned > 0.5:
            sine = length_of(outer(m, k))
            aligned = 2.0 - sine if sine < PARALLEL else aligned
        if aligned > nearest and (aligned > 1.5 or abs(height) < 4.0 * near):
            nearest, face = aligned, f
    work.known[side] = abs(highest) < ON_SURFACE * scene.radius[g]
    bounds, edge = edges_at(scene, face, y, 4.0 * near) if face >= 0 else (2, (0.0, 0.0, 0.0))
    if face >= 0:
        set_opposed(work, side, turned(P, row(normals, face)))
    if nearest > 1.5 or bounds == 0:
        set_face(work, side, turned(P, row(normals, face)))
        set_bound(work, side, bounds, turned(P, edge))
    elif bounds == 1:
        set_edge(work, side, turned(P, edge))
    else:
        most, count, start, end = inner(vertices[first], k), 0, first, first
        for i in range(first + 1, stop):
            most = max(most, inner(vertices[i], k))
        for i in range(first, stop):
            if inner(vertices[i], k) > most - near:
                start, end, count = end if count > 0 else i, i, count + 1
        if count == 2:  # one end of an edge
            set_edge(work, side, turned(P, minus(vertices[end], vertices[start])))
            work.bounds[side] = 1


def edges_at(scene: CollisionScene, f: int, y: Triple, near: float) -> tuple[int, Triple]:
    """Return the number of edges of a face of a hull at a point, and the direction of one of them."""
    hulls, count, found = scene.hulls, 0, (0.0, 0.0, 0.0)
    m, last = row(hulls.normals, f), row(hulls.vertices, hulls.corners[hulls.faces[f + 1] - 1])
    for i in range(hulls.faces[f], hulls.faces[f + 1]):
        corner = row(hulls.vertices, hulls.corners[i])
        edge = minus(corner, last)
        if abs(inner(outer(edge, m), minus(y, last))) < near * length_of(edge):
            count, found = count + 1, edge
        last = corner
    return count, found
