"""Derivatives of a contact's velocities and wrenches by the motion of its bodies.

At a contact's point and along its axes (the normal, and two tangents), bodies have the velocities V = (v, w), with the
difference V_a - V_b. Impulses F along the axes and T about them act on a, and against b. As the bodies move by m = (u, t), the
point moves by p' and the axes turn by o. A velocity that is constant in a body's axes changes at the rate m x V. Hence

    seen = v x o + w x p' + (t_a x v_a + u_a x w_a) - (t_b x v_b + u_b x w_b)        with v, w of V_a - V_b
           w x o + t_a x w_a - t_b x w_b
    felt = o x F - t x F,  o x T - t x T + (p' - u) x F         in the axes of a; the opposite in those of b

`contact_motion` has the motion of the normal and the point; the axes also turn about the normal, as `write_axes` of
`contact_problem` chooses the tangents.

A contact has rows of numbers: factors of the velocities of both bodies in their own axes, at their origins. Contacts of the
same bodies share a block of such rows. For each body's six directions, it has a row of the derivative of the wrench, with the
rates of impulses -G seen, and a row of -Jᵀ G J.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Matrix, Tensor, Vector
from ..collision.collision_scene import CollisionScene
from ..collision.contact_motion import SurfacesWork, surfaces_work, write_contact_motion
from ..collision.detection import ContactPoints, body_of
from ..collision.triples import Triple, along, component, inner, length_of, minus, outer, times
from ..engine.loops.kernels import aligned_numbers, subtract_multiples
from .compliant.compliance import Yielding, power

DIRECTIONS = 6  # normal, two tangents, and rotation about these
OF_SIDE = 8  # numbers of a row for one body, of which the last two are zero
WIDE = 16  # numbers of a row
OF_BODIES, RELATIVE, MOTION, TURN, SEEN, FORCE, PULL, TOTAL, STORED = (
    WIDE * i for i in (0, 12, 18, 24, 27, 33, 39, 45, 47)
)  # fmt: skip
"""Places of rows: the velocities of a and b at the point, their difference, the rates of `contact_motion` with those of the
point in the world, the angular velocity of the axes, rates of velocities, rates of impulses and of other forces, and -G times
the difference; then a row of a combination, and rows of blocks and contacts."""
GAP = MOTION + 5 * WIDE
PAIR = 2 * WIDE  # numbers of two rows: factors of velocities of bodies, and of their derivatives
BLOCK = 2 * DIRECTIONS * PAIR  # numbers of a block: pairs of rows for the directions of a, then of b
KEPT = 3 * PAIR  # numbers that are kept of a rigid contact: rates of velocities, and velocities, along three axes


class ContactSlopes(NamedTuple):
    """Rows of contacts, and workspace."""

    numbers: Vector  # rows at the places above, then blocks, then rows of rigid contacts
    motion: Matrix  # (6, 6)
    impulse: Vector  # (6,) along and about the axes
    velocity: Matrix  # (2, 6) of both bodies at the point, along and about unit axes
    scale: Vector  # (6,) lengths of the axes
    surfaces: SurfacesWork


def contact_slopes(blocks: int, rigid: int) -> ContactSlopes:
    """Return arrays for so many blocks and rigid contacts."""
    numbers = aligned_numbers(STORED + blocks * BLOCK + rigid * KEPT)
    motion, impulse, velocity = np.zeros((6, 6)), np.zeros(DIRECTIONS), np.zeros((2, 6))
    return ContactSlopes(numbers, motion, impulse, velocity, np.ones(DIRECTIONS), surfaces_work())


class ContactAt(NamedTuple):
    """A contact: its number, shapes, the margin between them, and how the law chooses its tangents."""

    c: int
    shapes: tuple[int, int]
    margin: float  # [m] distance between the surfaces at a gap of zero
    directions: int  # 3, or 6 with friction against spinning and rolling
    tangents: Vector  # (5,) scales, and the direction of the first tangent in a's axes, or (0,)
    on_ground: bool  # whether the point is at the margin of the ground, b, instead of midway between both surfaces


def range_of(contacts: ContactPoints, c: int) -> tuple[int, int]:
    """Return the first number and the length of rows of a contact, those of bodies that move."""
    if contacts.a[c] < 0:
        return OF_SIDE, OF_SIDE
    return 0, OF_SIDE if contacts.b[c] < 0 else WIDE


def write_contact_slopes(
    scene: CollisionScene, shapes_at: Matrix, contacts: ContactPoints, placement: Tensor, x: ContactAt,
    velocity: Matrix, y: ContactSlopes,
) -> bool:  # fmt: skip
    """Write the rows of a contact up to the rates of its velocities; return whether its motion is unique.

    `placement` (bodies, 4, 4) is that of the bodies that may touch, `shapes_at` (shapes, 12) that of their shapes, and
    `velocity` (bodies, 6) that of the bodies, in their axes and at their origins.
    """
    first, length = range_of(contacts, x.c)
    spin = write_frame(contacts, placement, x, y)
    write_rows_of_bodies(contacts, placement, x.c, velocity, y)
    gap = contacts.gap[x.c]
    heights = gap + x.margin, 0.5 * gap if x.on_ground else 0.0
    unique = write_contact_motion(
        scene, x.shapes, shapes_at, triple(contacts.point[x.c], 0), heights, x.on_ground, y.surfaces, y.motion
    )  # fmt: skip
    write_motion_rows(first, length, spin, y)
    write_seen_rows(first, length, x.directions, y)
    return unique


def write_frame(contacts: ContactPoints, placement: Tensor, x: ContactAt, y: ContactSlopes) -> tuple[float, bool]:
    """Write the unit axes of `contact_problem.write_axes` or `write_file_axes`, and their lengths.

    Return the rate at which they turn about the normal as they turn about the first tangent, and whether the first tangent is
    that of a body.
    """
    n, e, first, second = triple(contacts.normal[x.c], 0), (1.0, 0.0, 0.0), 1.0, 1.0
    if abs(component(n, 0)) >= 0.9:
        e = 0.0, 1.0, 0.0
    of_body = False
    if len(x.tangents) > 0 and x.tangents[0] > 0.0:
        given = triple(x.tangents, 2)
        e = (0.0, 1.0, 0.0) if -0.5 < component(n, 1) < 0.5 else (0.0, 0.0, 1.0)
        of_body = inner(given, given) > 0.0
        if of_body:
            e = from_body(placement[contacts.a[x.c]], given)
        first, second = x.tangents[0], x.tangents[1]
    flat = along(e, -inner(e, n), n)
    if not inner(flat, flat) > 0.0:  # an upright capsule
        e, of_body = (1.0, 0.0, 0.0) if abs(component(n, 0)) < 0.9 else (0.0, 1.0, 0.0), False
        flat = along(e, -inner(e, n), n)
    size = length_of(flat)
    t = times(1.0 / size, flat)
    put_triple(n, y.surfaces.axes[0], 0)
    put_triple(t, y.surfaces.axes[1], 0)
    put_triple(outer(n, t), y.surfaces.axes[2], 0)
    y.scale[1], y.scale[2] = first, second
    return inner(e, n) / size, of_body


def from_body(T: Matrix, x: Triple) -> Triple:
    """Rotate a vector from a body's frame to the world frame."""
    result = 0.0, 0.0, 0.0
    for i in range(3):
        result = along(result, component(x, i), axis_of_body(T, i))
    return result


def write_rows_of_bodies(contacts: ContactPoints, placement: Tensor, c: int, velocity: Matrix, y: ContactSlopes) -> None:
    """Write the velocities of the bodies at the point as rows, and at `velocity`."""
    x, point = y.numbers, triple(contacts.point[c], 0)
    for s in range(2):
        body = body_of(contacts, c, s)
        for l in range(6):
            y.velocity[s, l] = 0.0
        if body >= 0:
            T, V = placement[body], velocity[body]
            arm = minus(point, origin_of(T))
            for l in range(3):
                axis = triple(y.surfaces.axes[l], 0)
                about = outer(arm, axis)
                linear, angular = OF_BODIES + (6 * s + l) * WIDE + OF_SIDE * s, OF_BODIES + (6 * s + 3 + l) * WIDE + OF_SIDE * s
                for i in range(3):
                    e = axis_of_body(T, i)
                    straight, turning = inner(e, axis), inner(e, about)
                    x[linear + i], x[linear + 3 + i], x[angular + 3 + i] = straight, turning, straight
                    y.velocity[s, l] += straight * V[i] + turning * V[3 + i]
                    y.velocity[s, 3 + l] += straight * V[3 + i]


def write_motion_rows(first: int, length: int, spin: tuple[float, bool], y: ContactSlopes) -> None:
    """Write the relative velocity, the motion of the contact, and the angular velocity of its axes."""
    x, M, b = y.numbers, y.motion, OF_BODIES + 6 * WIDE + first
    relative, motion, turn = RELATIVE + first, MOTION + first, TURN + first
    for l in range(6):
        row = l * WIDE
        subtract_multiples(x, relative + row, OF_BODIES + first + row, 6 * WIDE, length, (-1.0, 1.0), True)
    for k in range(6):
        rates = -M[k, 0], -M[k, 1], -M[k, 2], -M[k, 3], -M[k, 4], -M[k, 5]
        subtract_multiples(x, motion + k * WIDE, relative, WIDE, length, rates, True)
    for l in range(3):
        subtract_multiples(x, motion + (2 + l) * WIDE, b + l * WIDE, 0, length, (-1.0,))
    along_first, with_body = spin
    for j in range(length):  # n' = o x n
        aside, ahead = x[b + 4 * WIDE + j] - x[motion + WIDE + j], x[b + 5 * WIDE + j] + x[motion + j]
        x[turn + WIDE + j], x[turn + 2 * WIDE + j], x[turn + j] = aside, ahead, along_first * aside
    if with_body:
        a = OF_BODIES + 3 * WIDE + first
        subtract_multiples(x, turn, a, WIDE, length, (-1.0, along_first))


def write_seen_rows(first: int, length: int, directions: int, y: ContactSlopes) -> None:
    """Write the rates of the velocities along and about the axes."""
    x, V = y.numbers, y.velocity
    seen, turn, moved, a = SEEN + first, TURN + first, MOTION + 2 * WIDE + first, OF_BODIES + first
    v_a, w_a, v_b, w_b = triple(V[0], 0), triple(V[0], 3), triple(V[1], 0), triple(V[1], 3)
    b, spin = a + 6 * WIDE, minus(w_a, w_b)
    for j in range(directions):
        for i in range(length):
            x[seen + j * WIDE + i] = 0.0
    add_outer(x, seen, minus(v_a, v_b), turn, length, 1.0)
    add_outer(x, seen, spin, moved, length, 1.0)
    if first == 0:
        add_outer(x, seen, v_a, a + 3 * WIDE, length, -1.0)
        add_outer(x, seen, w_a, a, length, -1.0)
    if length == WIDE or first > 0:
        add_outer(x, seen, v_b, b + 3 * WIDE, length, 1.0)
        add_outer(x, seen, w_b, b, length, 1.0)
    if directions > 3:
        add_outer(x, seen + 3 * WIDE, spin, turn, length, 1.0)
        add_outer(x, seen + 3 * WIDE, w_a, a + 3 * WIDE, length, -1.0)
        add_outer(x, seen + 3 * WIDE, w_b, b + 3 * WIDE, length, 1.0)


def add_outer(x: Vector, target: int, a: Triple, rows: int, length: int, sign: float) -> None:
    """Add the vector product of a and three rows, with a sign, to three rows."""
    u, v, w = times(sign, a)
    subtract_multiples(x, target, rows + WIDE, WIDE, length, (w, -v))
    subtract_multiples(x, target + WIDE, rows, 2 * WIDE, length, (-w, u))
    subtract_multiples(x, target + 2 * WIDE, rows, WIDE, length, (v, -u))


def add_to_block(contacts: ContactPoints, x: ContactAt, G: Matrix, softer: float, block: int, y: ContactSlopes) -> None:
    """Add the rates of a contact's wrenches to a block.

    `impulse` and G are those along the scaled axes. A gap that opens makes impulses greater at the rate `softer`.
    """
    first, length = range_of(contacts, x.c)
    numbers, f, scale, count = y.numbers, y.impulse, y.scale, x.directions
    relative, force, turn, pull = RELATIVE + first, FORCE + first, TURN + first, PULL + first
    F, T = (f[0], scale[1] * f[1], scale[2] * f[2]), triple(f, 3)
    for l in range(6 * WIDE):
        numbers[FORCE + l] = 0.0
    add_outer(numbers, force, F, turn, length, -1.0)
    add_outer(numbers, force + 3 * WIDE, F, MOTION + 2 * WIDE + first, length, -1.0)
    if count > 3:
        add_outer(numbers, force + 3 * WIDE, T, turn, length, -1.0)
    for l in range(count):
        u, row = scale[l], l * WIDE
        a, b, c = u * G[l, 0], u * scale[1] * G[l, 1], u * scale[2] * G[l, 2]
        subtract_multiples(numbers, force + row, SEEN + first, WIDE, length, (a, b, c))
        subtract_multiples(numbers, pull + row, relative, WIDE, length, (a, b, c), True)
        if count > 3:
            rest = u * G[l, 3], u * G[l, 4], u * G[l, 5]
            subtract_multiples(numbers, force + row, SEEN + 3 * WIDE + first, WIDE, length, rest)
            subtract_multiples(numbers, pull + row, relative + 3 * WIDE, WIDE, length, rest)
        subtract_multiples(numbers, force + row, GAP + first, 0, length, (-u * f[l] * softer,))
    for s in range(2):
        if body_of(contacts, x.c, s) >= 0:
            for i in range(6):
                own, target = RELATIVE + OF_SIDE * s + i, block + (6 * s + i) * PAIR + first
                a, b, c = -numbers[own], -numbers[own + WIDE], -numbers[own + 2 * WIDE]
                p, q, r = -numbers[own + 3 * WIDE], -numbers[own + 4 * WIDE], -numbers[own + 5 * WIDE]
                subtract_multiples(numbers, target, force, WIDE, length, (a, b, c, p, q, r))
                if count > 3:
                    subtract_multiples(numbers, target + WIDE, pull, WIDE, length, (a, b, c, p, q, r))
                else:
                    subtract_multiples(numbers, target + WIDE, pull, WIDE, length, (a, b, c))
            add_turning_axes(s, F, T, block, y)


def add_turning_axes(s: int, F: Triple, T: Triple, block: int, y: ContactSlopes) -> None:
    """Add the rates -m x of the wrench on a body in its axes, which move: the wrench (f, t) times m."""
    x, rows, first = y.numbers, OF_BODIES + 6 * s * WIDE + OF_SIDE * s, block + 6 * s * PAIR + OF_SIDE * s
    f = t = 0.0, 0.0, 0.0
    for l in range(3):
        row, sign = rows + l * WIDE, 1.0 if s == 0 else -1.0
        F_l, T_l = sign * component(F, l), sign * component(T, l)
        f, t = along(f, F_l, triple(x, row)), along(along(t, F_l, triple(x, row + 3)), T_l, triple(x, row))
    add_outer_matrix(f, first + 3, x)
    add_outer_matrix(f, first + 3 * PAIR, x)
    add_outer_matrix(t, first + 3 * PAIR + 3, x)


def add_outer_matrix(a: Triple, first: int, x: Vector) -> None:
    """Add the matrix of the vector product with a."""
    u, v, w = a
    x[first + 1] -= w
    x[first + 2] += v
    x[first + PAIR] += w
    x[first + PAIR + 2] -= u
    x[first + 2 * PAIR] -= v
    x[first + 2 * PAIR + 1] += u


def keep_rigid_rows(contacts: ContactPoints, c: int, place: int, y: ContactSlopes) -> None:
    """Copy the rates of the velocities along the scaled axes, and these velocities, as pairs of rows."""
    first, length = range_of(contacts, c)
    for l in range(3):
        scale = (-y.scale[l],)
        subtract_multiples(y.numbers, place + l * PAIR + first, SEEN + l * WIDE + first, 0, length, scale, True)
        subtract_multiples(y.numbers, place + l * PAIR + WIDE + first, RELATIVE + l * WIDE + first, 0, length, scale, True)


def put_triple(x: Triple, numbers: Vector, first: int) -> None:
    """Write three numbers."""
    numbers[first], numbers[first + 1], numbers[first + 2] = x[0], x[1], x[2]


def triple(numbers: Vector, first: int) -> Triple:
    """Return three numbers."""
    return numbers[first], numbers[first + 1], numbers[first + 2]


def axis_of_body(T: Matrix, i: int) -> Triple:
    """Return an axis of a body."""
    return T[0, i], T[1, i], T[2, i]


def origin_of(T: Matrix) -> Triple:
    """Return the origin of a body."""
    return T[0, 3], T[1, 3], T[2, 3]


def impedance_slope(y: Yielding, gap: float) -> float:
    """Return the derivative of `compliance.impedance` by the gap."""
    x = abs(gap) / y.width
    if x >= 1.0 or x == 0.0:
        return 0.0
    rate = 1.0
    if y.power != 1.0:
        if x <= y.midpoint:
            rate = y.power * power(x / y.midpoint, y.power - 1.0)
        else:
            rate = y.power * power((1.0 - x) / (1.0 - y.midpoint), y.power - 1.0)
    return (1.0 if gap > 0.0 else -1.0) * rate * (y.greatest - y.least) / y.width
