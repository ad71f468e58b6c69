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

The unknowns n', s_a and s_b have two components each along the tangents, and six linear equations.
"""

from __future__ import annotations

from math import floor, sqrt
from typing import NamedTuple

import numpy as np

from ..array_types import Booleans, Integers, Matrix, Tensor, Vector
from .collision_scene import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHTS, HULL, SPHERE, CollisionScene
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
MOVES = 12  # velocities of both bodies, six of each
UNKNOWNS = 6
NEAR_LINE = 1e-6  # distance from a line of a height field's grid, in cells, below which a point is on it
ON_SURFACE = 1e-3  # distance from a surface, relative to the size of the shape, below which a point is on it
LEAST_PIVOT = 1e-12  # relative pivot below which an equation repeats others


class SurfacesWork(NamedTuple):
    """Surfaces of both shapes at a contact, in the world frame, and workspace."""

    flats: Integers  # (2,) 0, 1 along an edge or a side, 2 on a face
    edge: Matrix  # (2, 3) direction in which a surface with one flat direction is straight
    radii: Tensor  # (2, 3, 3) R in directions that are not flat
    bounds: Integers  # (2,) 0, 1 or 2 directions in which an edge of a face, or the end of an edge, bounds the point
    bound: Matrix  # (2, 3) direction of the edge of a face on which the point is
    rise: Matrix  # (2, 3) rate at which a point that slips on the surface moves along the normal, if they are not perpendicular
    known: Booleans  # (2,) whether the point is on the surface; several points of MuJoCo for two meshes are not
    off: Vector  # (2,) sine of the angle between the normal and that of a face
    tangents: Matrix  # (2, 3)
    equations: Matrix  # (6, 6 + MOVES) of n', s_a and s_b, and their right-hand sides
    chosen: Integers  # (1,) number of equations


def surfaces_work() -> SurfacesWork:
    """Return workspace for one contact."""
    whole = np.zeros(2, np.int64), np.zeros((2, 3)), np.zeros((2, 3, 3)), np.zeros(2, np.int64), np.zeros((2, 3))
    equations = np.zeros((UNKNOWNS, UNKNOWNS + MOVES))
    rise, off, tangents = np.zeros((2, 3)), np.zeros(2), np.zeros((2, 3))
    return SurfacesWork(*whole, rise, np.ones(2, bool), off, tangents, equations, np.zeros(1, np.int64))


def write_contact_motion(
    scene: CollisionScene, shapes: tuple[int, int], placement: Matrix, at: tuple[TripleLike, Vector, float], moves: Matrix,
    of: tuple[int, int], work: SurfacesWork, motion: Matrix,
) -> bool:  # fmt: skip
    """Write the rates (MOVES, 7) of normal, point midway between the surfaces, and gap; return whether they are unique.

    `shapes` are those of a and b, `placement` (shapes, 12) is in the world, and `at` has the point, the normal and the gap.
    `moves` (MOVES, 6) has velocities of body a, then of body b: linear at the world's origin, and angular, in the world frame.
    Only those in the range `of` are considered.
    """
    point, normal, gap = at
    n, x = (normal[0], normal[1], normal[2]), (point[0], point[1], point[2])
    p_a, p_b = along(x, 0.5 * gap, n), along(x, -0.5 * gap, n)
    describe(scene, shapes[0], placement[shapes[0]], p_a, times(-1.0, n), work, 0)
    describe(scene, shapes[1], placement[shapes[1]], p_b, n, work, 1)
    write_tangents(n, work.tangents)
    unique = choose_equations(work, n, gap, (p_a, p_b), moves, of)
    unique = solve_equations(work.equations, UNKNOWNS + of[0], UNKNOWNS + of[1]) and unique
    unique = bool(unique and work.known[0] and work.known[1])
    for k in range(of[0], of[1]):
        write_motion_of(k, moves, work, (p_a, p_b), n, motion[k])
    return unique


def write_motion_of(
    k: int, moves: Matrix, work: SurfacesWork, points: tuple[Triple, Triple], n: Triple, motion: Vector
) -> None:  # fmt: skip
    """Write n', p' and g' for velocity k."""
    solution, first, second = work.equations, work.tangents[0], work.tangents[1]
    turn = combined(first, second, solution[0, UNKNOWNS + k], solution[1, UNKNOWNS + k])
    slip_a = combined(first, second, solution[2, UNKNOWNS + k], solution[3, UNKNOWNS + k])
    slip_b = combined(first, second, solution[4, UNKNOWNS + k], solution[5, UNKNOWNS + k])
    slip_a = along(slip_a, inner(row(work.rise, 0), slip_a), n)
    slip_b = along(slip_b, inner(row(work.rise, 1), slip_b), n)
    moved_a, moved_b = (
        plus(velocity_of_move(moves, k, 0, points[0]), slip_a),
        plus(velocity_of_move(moves, k, 1, points[1]), slip_b),
    )
    for i in range(3):
        motion[i] = component(turn, i)
        motion[3 + i] = 0.5 * (component(moved_a, i) + component(moved_b, i))
    motion[6] = inner(n, minus(moved_a, moved_b))


def combined(a: TripleLike, b: TripleLike, s: float, t: float) -> Triple:
    """Return s a + t b."""
    return along(times(s, a), t, b)


def velocity_of_move(moves: Matrix, k: int, side: int, x: Triple) -> Triple:
    """Return the velocity of the point x of body a (side 0) or b by velocity k."""
    if k < 6 * side or k >= 6 * side + 6:
        return 0.0, 0.0, 0.0
    return plus((moves[k, 0], moves[k, 1], moves[k, 2]), outer(turning_of_move(moves, k), x))


def turning_of_move(moves: Matrix, k: int) -> Triple:
    """Return the angular velocity of velocity k."""
    return moves[k, 3], moves[k, 4], moves[k, 5]


def unit(k: int) -> Triple:
    """Return a unit vector."""
    return 1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0


def write_tangents(n: Triple, tangents: Matrix) -> None:
    """Write two tangents."""
    e = unit(0) if abs(n[0]) < 0.9 else unit(1)
    t = along(e, -inner(e, n), n)
    t = times(1.0 / length_of(t), t)
    u = outer(n, t)
    for i in range(3):
        tangents[0, i], tangents[1, i] = component(t, i), component(u, i)


# ---- equations


def choose_equations(
    work: SurfacesWork, n: Triple, gap: float, points: tuple[Triple, Triple], moves: Matrix, of: tuple[int, int]
) -> bool:  # fmt: skip
    """Write the six equations; return whether edges of the shapes determine the point in all directions."""
    work.chosen[0] = 0
    add_closure(work, gap, points, moves, of)
    first = 0 if leads(work) else 1
    second = 1 - first
    flats, bounds = work.flats[second], work.bounds[second]
    add_equations_of(work, moves, n, first)
    if work.flats[first] == 2:
        if flats == 0:
            add_equations_of(work, moves, n, second)
            return True
        if flats == 1:  # an edge or a side along a face
            add_slip_equation(work, moves, n, second, outer(n, row(work.edge, second)))
            if bounds > 0:
                add_slip_equation(work, moves, n, second, row(work.edge, second))
        elif bounds == 2:
            add_slip_equation(work, moves, n, second, row(work.tangents, 0))
            add_slip_equation(work, moves, n, second, row(work.tangents, 1))
        elif bounds == 1:
            add_slip_equation(work, moves, n, second, outer(n, row(work.bound, second)))
    elif work.flats[first] == 1 and flats == 1 and are_parallel(row(work.edge, first), row(work.edge, second)):
        add_slip_equation(work, moves, n, second, outer(n, row(work.edge, second)))
        if bounds > 0:
            add_slip_equation(work, moves, n, second, row(work.edge, second))
    else:
        add_equations_of(work, moves, n, second)
        return True
    if work.chosen[0] < UNKNOWNS and work.bounds[first] > 0:  # an edge of the first surface bounds the point as well
        if work.flats[first] == 1 or work.bounds[first] == 2:
            add_missing(work, moves, n, first)
        else:
            across = outer(n, row(work.bound, first))
            add_slip_equation(work, moves, n, first, across)
    unique = bool(work.chosen[0] == UNKNOWNS)
    add_missing(work, moves, n, second)
    return unique


def leads(work: SurfacesWork) -> bool:
    """Return whether the normal is that of a, because a has more flat directions, or the face that is nearer to the normal."""
    if work.flats[0] != work.flats[1]:
        return bool(work.flats[0] > work.flats[1])
    return bool(work.off[0] <= work.off[1])


def are_parallel(a: Triple, b: Triple) -> bool:
    """Return whether unit vectors are parallel."""
    return length_of(outer(a, b)) < PARALLEL


def row(rows: Matrix, k: int) -> Triple:
    """Return a row as a tuple."""
    return rows[k, 0], rows[k, 1], rows[k, 2]


def add_missing(work: SurfacesWork, moves: Matrix, n: Triple, side: int) -> None:
    """Add equations by which the point does not slip on a surface, until there are six."""
    if work.flats[side] == 1 and work.chosen[0] < UNKNOWNS:
        add_slip_equation(work, moves, n, side, row(work.edge, side))
    for k in range(2):
        if work.chosen[0] < UNKNOWNS:
            add_slip_equation(work, moves, n, side, row(work.tangents, k))


def add_equations_of(work: SurfacesWork, moves: Matrix, n: Triple, side: int) -> None:
    """Add both equations of a surface."""
    if work.flats[side] == 2:
        add_turn_equation(work, moves, n, side, row(work.tangents, 0))
        add_turn_equation(work, moves, n, side, row(work.tangents, 1))
    elif work.flats[side] == 1:
        e = row(work.edge, side)
        add_turn_equation(work, moves, n, side, e)
        add_slip_equation(work, moves, n, side, outer(n, e))
    else:
        add_slip_equation(work, moves, n, side, row(work.tangents, 0))
        add_slip_equation(work, moves, n, side, row(work.tangents, 1))


def add_turn_equation(work: SurfacesWork, moves: Matrix, n: Triple, side: int, e: Triple) -> None:
    """Add e . n' = e . (w x n) for a flat direction e."""
    i = begin_equation(work)
    for t in range(2):
        work.equations[i, t] = inner(e, row(work.tangents, t))
    for k in range(6 * side, 6 * side + 6):
        work.equations[i, UNKNOWNS + k] = inner(e, outer(turning_of_move(moves, k), n))


def add_slip_equation(work: SurfacesWork, moves: Matrix, n: Triple, side: int, e: Triple) -> None:
    """Add e . (s + sign R (n' - w x n)) = 0 for a direction e."""
    i, sign, R = begin_equation(work), 1.0 if side == 0 else -1.0, work.radii[side]
    eR = (
        e[0] * R[0, 0] + e[1] * R[1, 0] + e[2] * R[2, 0],
        e[0] * R[0, 1] + e[1] * R[1, 1] + e[2] * R[2, 1],
        e[0] * R[0, 2] + e[1] * R[1, 2] + e[2] * R[2, 2],
    )
    for t in range(2):
        tangent = row(work.tangents, t)
        work.equations[i, t] = sign * inner(eR, tangent)
        work.equations[i, 2 + 2 * side + t] = inner(e, tangent)
    for k in range(6 * side, 6 * side + 6):
        work.equations[i, UNKNOWNS + k] = sign * inner(eR, outer(turning_of_move(moves, k), n))


def add_closure(work: SurfacesWork, gap: float, points: tuple[Triple, Triple], moves: Matrix, of: tuple[int, int]) -> None:
    """Add s_a - s_b - g n' = V_b(p_b) - V_a(p_a) along both tangents."""
    for t in range(2):
        i, tangent = begin_equation(work), row(work.tangents, t)
        work.equations[i, t], work.equations[i, 2 + t], work.equations[i, 4 + t] = -gap, 1.0, -1.0
        for k in range(of[0], of[1]):
            a, b = velocity_of_move(moves, k, 0, points[0]), velocity_of_move(moves, k, 1, points[1])
            work.equations[i, UNKNOWNS + k] = inner(tangent, minus(b, a))


def begin_equation(work: SurfacesWork) -> int:
    """Return the number of a new equation, of zeros."""
    i = work.chosen[0]
    work.chosen[0] += 1
    for j in range(UNKNOWNS + MOVES):
        work.equations[i, j] = 0.0
    return i  # type: ignore[no-any-return]


def solve_equations(E: Matrix, first: int, stop: int) -> bool:
    """Replace a range of right-hand sides by solutions, by elimination with pivots; return whether these are unique.

    A repeated equation gives zero for its unknown.
    """
    unique = True
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
                for k in range(j + 1, UNKNOWNS):
                    E[i, k] -= factor * E[j, k]
                for k in range(first, stop):
                    E[i, k] -= factor * E[j, k]
    return unique


# ---- surfaces


def describe(scene: CollisionScene, g: int, P: Vector, x: Triple, m: Triple, work: SurfacesWork, side: int) -> None:
    """Write the surface of shape g at a point with outward normal m, in the world frame."""
    kind, size = scene.kind[g], scene.size[g]
    y, k = seen_from(P, x), turned_back(P, m)
    work.flats[side], work.bounds[side], work.off[side], work.known[side] = 0, 0, 0.0, True
    for i in range(3):
        work.edge[side, i] = work.bound[side, i] = work.rise[side, i] = 0.0
        for j in range(3):
            work.radii[side, i, j] = 0.0
    if kind == SPHERE:
        add_round(work, side, m, size[0])
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


def add_round(work: SurfacesWork, side: int, m: Triple, r: float) -> None:
    """Add the radius of a sphere to R."""
    for i in range(3):
        for j in range(3):
            work.radii[side, i, j] += r * ((1.0 if i == j else 0.0) - m[i] * m[j])


def add_radius(work: SurfacesWork, side: int, e: Triple, r: float) -> None:
    """Add a radius in the direction e to R."""
    for i in range(3):
        for j in range(3):
            work.radii[side, i, j] += r * e[i] * e[j]


def set_face(work: SurfacesWork, side: int, m: Triple, n: Triple) -> None:
    """Make the surface a plane with the normal m, which may differ slightly from the contact's normal n."""
    work.flats[side], work.off[side], rate = 2, length_of(outer(m, n)), 1.0 / inner(m, n)
    for i in range(3):
        work.rise[side, i] = n[i] - rate * m[i]


def set_edge(work: SurfacesWork, side: int, e: Triple, n: Triple) -> None:
    """Make the surface straight along e, which may be slightly inclined to the plane perpendicular to n."""
    flat = along(e, -inner(e, n), n)
    size = length_of(flat)
    work.flats[side], work.off[side] = 1, abs(inner(e, n)) / size
    for i in range(3):
        work.edge[side, i] = flat[i] / size
        work.rise[side, i] = work.edge[side, i] * inner(e, n) / size


def set_bound(work: SurfacesWork, side: int, count: int, e: Triple, n: Triple) -> None:
    """Let an edge with direction e bound the point, or a corner, if there are two."""
    work.bounds[side] = min(count, 2)
    flat = along(e, -inner(e, n), n)
    size = length_of(flat)
    for i in range(3):
        work.bound[side, i] = flat[i] / size if count == 1 else 0.0


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
    set_edge(work, side, turned(P, edge), turned(P, k))


def round_to(x: float) -> int:
    """Return the nearest whole number."""
    return floor(x + 0.5)


def describe_capsule(P: Vector, size: Vector, y: Triple, m: Triple, work: SurfacesWork, side: int) -> None:
    """Write the side of a capsule, or one of its ends.

    Where the axis meets the other surface, MuJoCo puts a point on the axis, which follows that surface; it is not known.
    """
    axis, along_axis = (P[2], P[5], P[8]), min(max(y[2], -size[1]), size[1])
    away = length_of((y[0], y[1], y[2] - along_axis))
    work.known[side] = abs(away - size[0]) < ON_SURFACE * (size[0] + size[1])
    if abs(y[2]) < size[1] * (1.0 - NEAR) and abs(inner(axis, m)) < PARALLEL:
        set_edge(work, side, axis, m)
        add_radius(work, side, outer(m, axis), size[0])
    else:
        add_round(work, side, m, size[0])


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
    e, n = (P[straight], P[3 + straight], P[6 + straight]), turned(P, k)
    if flats == 2:
        m = times(1.0 if component(k, face) > 0.0 else -1.0, (P[face], P[3 + face], P[6 + face]))
        set_face(work, side, m, n)
        set_bound(work, side, bounds, e, n)
    elif flats == 1:
        set_edge(work, side, e, n)
        work.bounds[side] = bounds


def describe_cylinder(P: Vector, size: Vector, y: Triple, k: Triple, work: SurfacesWork, side: int) -> None:
    """Write the side, an end or a rim of a cylinder."""
    axis, sine = (P[2], P[5], P[8]), sqrt(k[0] * k[0] + k[1] * k[1])
    on_rim = abs(sqrt(y[0] * y[0] + y[1] * y[1]) - size[0]) < NEAR * size[0]
    if sine < PARALLEL or (sine < abs(k[2]) and not on_rim):
        set_face(work, side, times(1.0 if k[2] > 0.0 else -1.0, axis), turned(P, k))
        work.bounds[side] = 2 if on_rim else 0
        return
    if abs(k[2]) < PARALLEL and abs(y[2]) < size[1] * (1.0 - NEAR):
        set_edge(work, side, axis, turned(P, k))
    if on_rim and sine < abs(k[2]):  # MuJoCo's other points at this angle from the farthest one turn with it
        set_face(work, side, times(1.0 if k[2] > 0.0 else -1.0, axis), turned(P, k))
        work.flats[side] = 0
    way = turned(P, (-y[1], y[0], 0.0) if on_rim else (-size[0] * k[1] / sine, size[0] * k[0] / sine, 0.0))
    around = turned(P, (-k[1] / sine, k[0] / sine, 0.0))
    for i in range(3):
        for j in range(3):
            work.radii[side, i, j] = way[i] * around[j] / sine


def describe_ellipsoid(P: Vector, size: Vector, k: Triple, work: SurfacesWork, side: int) -> None:
    """Write R of an ellipsoid: D/s - D k (D k)ᵀ / s³, with the squares D of its radii and s² = kᵀ D k."""
    D = size[0] * size[0], size[1] * size[1], size[2] * size[2]
    d = D[0] * k[0], D[1] * k[1], D[2] * k[2]
    s = sqrt(inner(d, k))
    add_radius(work, side, turned(P, d), -1.0 / (s * s * s))
    for i in range(3):
        add_radius(work, side, (P[i], P[3 + i], P[6 + i]), D[i] / s)


def describe_hull(scene: CollisionScene, g: int, P: Vector, y: Triple, k: Triple, work: SurfacesWork, side: int) -> None:
    """Write a face, an edge or a corner of a convex hull, by the normal and by the place of the point."""
    first, stop, vertices, near = scene.data[g, 3], scene.data[g, 4], scene.hulls.vertices, NEAR * scene.radius[g]
    normals, n, touched, face = scene.hulls.normals, turned(P, k), 0, -1
    one, other, highest = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), -scene.radius[g]  # normals of faces at the point
    for f in range(scene.data[g, 5], scene.data[g, 6]):
        m = normals[f, 0], normals[f, 1], normals[f, 2]
        height = inner(m, minus(y, vertices[scene.hulls.corners[scene.hulls.faces[f]]]))
        highest = max(highest, height)
        if inner(m, k) > 0.0 and length_of(outer(m, k)) < PARALLEL:
            face = f
        if abs(height) < 4.0 * near:
            if touched == 0:
                one = m
            elif touched == 1:
                other = m
            touched += 1
    work.known[side] = abs(highest) < ON_SURFACE * scene.radius[g]
    edge = outer(one, other)
    if face >= 0:
        set_face(work, side, turned(P, (normals[face, 0], normals[face, 1], normals[face, 2])), n)
        set_bound(work, side, max(touched - 1, 0), turned(P, edge), n)
    elif touched == 1:
        set_face(work, side, turned(P, one), n)
    elif touched == 2:
        set_edge(work, side, turned(P, edge), n)
    else:
        most, count, start, end = inner(vertices[first], k), 0, first, first
        for i in range(first + 1, stop):
            most = max(most, inner(vertices[i], k))
        for i in range(first, stop):
            if inner(vertices[i], k) > most - near:
                start, end, count = end if count > 0 else i, i, count + 1
        if count == 2:  # one end of an edge
            set_edge(work, side, turned(P, minus(vertices[end], vertices[start])), n)
            work.bounds[side] = 1
