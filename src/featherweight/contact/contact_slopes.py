"""Derivatives of a contact's velocities and wrenches by the motion of its bodies, at constant impulses.

With the contact's axes e_i and its point p, bodies with velocities V(x) = v + w x x have the velocities e_i . (V_a(p) - V_b(p))
along the axes, and e_i . (w_a - w_b) about them; impulses along e_i act on a at p, and against b. As body a moves by a velocity
m, its axes turn with it, so a velocity that is constant in these axes changes at the rate m x V, and the contact's axes and
point move as `contact_motion` says. The results are for the six velocities of each body in its own axes, at its origin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Matrix, Tensor, Vector
from ..collision.collision_scene import CollisionScene
from ..collision.contact_motion import MOVES, SurfacesWork, surfaces_work, write_contact_motion
from ..collision.detection import ContactPoints, body_of
from ..collision.triples import (
    Triple,
    along,
    component,
    inner,
    length_of,
    minus,
    outer,
    plus,
    times,
)  # fmt: skip
from .compliance import Yielding, power

DIRECTIONS = 6  # normal, two tangents, and rotation about these

Twist = tuple[Triple, Triple]
"""Linear velocity of the point at the world's origin, and angular velocity."""


class ContactSlopes(NamedTuple):
    """Results for one contact, and workspace."""

    seen: Matrix  # (6, MOVES) rates of the velocities along and about the axes
    felt: Tensor  # (2, 6, MOVES) rates of the impulses' wrenches on both bodies, in their axes
    gap: Vector  # (MOVES,) rate of the gap
    moves: Matrix  # (MOVES, 6) unit velocities of both bodies, in the world frame
    motion: Matrix  # (MOVES, 7) of the normal, the point and the gap
    turned: Matrix  # (3, 3) rates of the axes
    impulse: Vector  # (6,)
    surfaces: SurfacesWork


def contact_slopes() -> ContactSlopes:
    """Return room for one contact."""
    seen, felt, gap = np.zeros((DIRECTIONS, MOVES)), np.zeros((2, DIRECTIONS, MOVES)), np.zeros(MOVES)
    moves, motion = np.zeros((MOVES, 6)), np.zeros((MOVES, 7))
    return ContactSlopes(seen, felt, gap, moves, motion, np.zeros((3, 3)), np.zeros(DIRECTIONS), surfaces_work())


class ContactAt(NamedTuple):
    """A contact: its number, shapes, the margin between them, and its axes (scaled by friction, with MuJoCo's tangents)."""

    c: int
    shapes: tuple[int, int]
    margin: float  # [m] distance between the surfaces at a gap of zero
    axes: Matrix  # (3, 3)
    turning_axes: Matrix  # (3, 3)
    directions: int  # 3, or 6 with friction against spinning and rolling
    tangents: Vector  # (5,) scales, and the direction of the first tangent in a's axes, or (0,)
    on_ground: bool  # whether the point is at the margin of the ground, b, instead of midway between both surfaces


def write_contact_slopes(
    scene: CollisionScene, shapes_at: Matrix, contacts: ContactPoints, placement: Tensor, x: ContactAt,
    velocity: tuple[Twist, Twist], y: ContactSlopes,
) -> bool:  # fmt: skip
    """Write the rates at `velocity` of both bodies, for the impulses in `y`; return whether the contact's motion is unique.

    `placement` (bodies, 4, 4) is that of the bodies that may touch, `shapes_at` (shapes, 12) that of their shapes.
    """
    point, normal, gap = triple(contacts.point[x.c], 0), contacts.normal[x.c], contacts.gap[x.c] + x.margin
    aside = 0.5 * contacts.gap[x.c] if x.on_ground else 0.0
    middle = along(point, aside, triple(normal, 0))
    for s in range(2):
        write_unit_moves(placement, body_of(contacts, x.c, s), y.moves, 6 * s)
    of = 0 if contacts.a[x.c] >= 0 else 6, MOVES if contacts.b[x.c] >= 0 else 6
    unique = write_contact_motion(scene, x.shapes, shapes_at, (middle, normal, gap), y.moves, of, y.surfaces, y.motion)
    for k in range(of[0], of[1]):
        for i in range(3 if x.on_ground else 0):
            y.motion[k, 3 + i] -= 0.5 * normal[i] * y.motion[k, 6] + aside * y.motion[k, i]
        write_rates_of_move(contacts, placement, x, velocity, k, y)
    return unique


def write_unit_moves(placement: Tensor, body: int, moves: Matrix, first: int) -> None:
    """Write the unit velocities of a body, in its axes and at its origin; zeros for the world."""
    for i in range(3):
        e, o = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if body >= 0:
            e, o = axis_of_body(placement[body], i), origin_of(placement[body])
        put_triple(e, moves[first + i], 0)
        put_triple((0.0, 0.0, 0.0), moves[first + i], 3)
        put_triple(outer(o, e), moves[first + 3 + i], 0)
        put_triple(e, moves[first + 3 + i], 3)


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


def twist_of(T: Matrix, velocity: Vector, more: Vector, factor: float) -> Twist:
    """Return velocity + factor more, both (linear, angular) in a body's axes and at its origin, in the world frame."""
    v = w = 0.0, 0.0, 0.0
    for i in range(3):
        e = axis_of_body(T, i)
        v = along(v, velocity[i] + factor * more[i], e)
        w = along(w, velocity[3 + i] + factor * more[3 + i], e)
    return plus(v, outer(origin_of(T), w)), w


def write_rates_of_move(
    contacts: ContactPoints, placement: Tensor, x: ContactAt, velocity: tuple[Twist, Twist], k: int, y: ContactSlopes
) -> None:  # fmt: skip
    """Write the rates for one velocity of one body."""
    side, p, (a, b) = k // 6, triple(contacts.point[x.c], 0), velocity
    normal, moved, f = triple(y.motion[k], 0), triple(y.motion[k], 3), y.impulse
    m, turn = triple(y.moves[k], 0), triple(y.moves[k], 3)
    sign, (v, w) = (1.0, a) if side == 0 else (-1.0, b)
    linear, angular = times(sign, plus(outer(turn, v), outer(m, w))), times(sign, outer(turn, w))  # m x V
    spin = minus(a[1], b[1])
    relative = plus(minus(a[0], b[0]), outer(spin, p))
    rest = plus(plus(outer(spin, moved), linear), outer(angular, p))
    force = torque = dforce = dtorque = 0.0, 0.0, 0.0
    write_axes_rates(
        contacts.normal[x.c], normal, x, turn if side == 0 else (0.0, 0.0, 0.0), placement, contacts, True, y.turned
    )
    for i in range(3):
        e, de = triple(x.axes[i], 0), triple(y.turned[i], 0)
        y.seen[i, k] = inner(de, relative) + inner(e, rest)
        force, dforce = along(force, f[i], e), along(dforce, f[i], de)
    if x.directions > 3:
        write_axes_rates(
            contacts.normal[x.c], normal, x, turn if side == 0 else (0.0, 0.0, 0.0), placement, contacts, False, y.turned
        )
        for i in range(3):
            e, de = triple(x.turning_axes[i], 0), triple(y.turned[i], 0)
            y.seen[3 + i, k] = inner(de, spin) + inner(e, angular)
            torque, dtorque = along(torque, f[3 + i], e), along(dtorque, f[3 + i], de)
    torque = plus(torque, outer(p, force))
    dtorque = plus(dtorque, plus(outer(moved, force), outer(p, dforce)))
    for s in range(2):
        body, own = body_of(contacts, x.c, s), 1.0 if s == 0 else -1.0
        F, N = dforce, dtorque
        if s == side:  # relative to the axes of the body, which move
            F, N = minus(F, outer(turn, force)), minus(N, plus(outer(turn, torque), outer(m, force)))
        for i in range(3):
            y.felt[s, i, k] = y.felt[s, 3 + i, k] = 0.0
            if body >= 0:
                e = axis_of_body(placement[body], i)
                y.felt[s, i, k] = own * inner(e, F)
                y.felt[s, 3 + i, k] = own * inner(e, minus(N, outer(origin_of(placement[body]), F)))
    y.gap[k] = y.motion[k, 6]


def write_axes_rates(
    normal: Vector, dn: Triple, x: ContactAt, turn: Triple, placement: Tensor, contacts: ContactPoints, sliding: bool,
    rates: Matrix,
) -> None:  # fmt: skip
    """Write the rates of the axes of `contact_problem.write_axes` or `write_file_axes`, for a rate of the normal.

    `turn` is the angular velocity of body a, in which the first tangent of capsules is given.
    """
    n, e, de = triple(normal, 0), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    first = second = 1.0
    if abs(n[0]) >= 0.9:
        e = 0.0, 1.0, 0.0
    if len(x.tangents) > 0 and x.tangents[0] > 0.0:
        given = triple(x.tangents, 2)
        e = (0.0, 1.0, 0.0) if -0.5 < n[1] < 0.5 else (0.0, 0.0, 1.0)
        if inner(given, given) > 0.0:
            T, e = placement[contacts.a[x.c]], (0.0, 0.0, 0.0)
            for i in range(3):
                e = along(e, component(given, i), axis_of_body(T, i))
            de = outer(turn, e)
        if sliding:
            first, second = x.tangents[0], x.tangents[1]
    flat = along(e, -inner(e, n), n)
    if not inner(flat, flat) > 0.0:  # an upright capsule
        e, de = (1.0, 0.0, 0.0) if abs(n[0]) < 0.9 else (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)
        flat = along(e, -inner(e, n), n)
    size = length_of(flat)
    t = times(1.0 / size, flat)
    raw = minus(along(de, -(inner(de, n) + inner(e, dn)), n), times(inner(e, n), dn))
    dt = times(1.0 / size, along(raw, -inner(t, raw), t))
    put_triple(dn, rates[0], 0)
    put_triple(times(first, dt), rates[1], 0)
    put_triple(times(second, plus(outer(dn, t), outer(n, dt))), rates[2], 0)


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
