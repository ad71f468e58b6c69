"""Lengths along which forces act: tendons, coordinates of followers, and displacements of frames.

    l = o + sum over terms of p(x)                 joints of a fixed tendon, or those that a joint follows
      + sum over branches of the length of the string / divisor                                    spatial tendons
      + w . (displacement of a frame from another)                                        drives at frames
    or the angle of a ball joint's rotation from zero, whose moment arms are its axis          limits
    or a coordinate of a free joint's position, which moves along an axis of its parent         dry friction, dampers

Each length has a row S of moment arms, dl/dt = S v; a force F along the length is equivalent to the joint forces Sᵀ F. The
moment arms of a string are those of its straight segments: a segment from point a on one body to point b on another, in the
direction u, lengthens at the rate u . (v_b - v_a).
"""

from __future__ import annotations

from math import cos, sin, sqrt
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Booleans, IntegerMatrix, Integers, Matrix, Shared, Tensor, Vector
from ...collision.triples import Triple, TripleLike, along, inner, length_of, minus, outer, times
from .wrapping import angle_of, wrap_around

POINT, SPHERE, CYLINDER, PULLEY = range(4)
IN_FRAME, IN_REFERENCE, IN_WORLD = range(3)
BALL, NOTHING, WRENCH = range(-1, 2)  # purposes of frames; the next three: components of the rotation from the reference
CRANK = 5  # a slider on an axis of the reference, and a rod from it to the frame
PLACE = -4  # and the next two: coordinates of a free joint's position
SHORTEST = 1e-15  # [m] shortest segment that has a direction


class Lengths(NamedTuple):
    """The lengths of a robot, as arrays."""

    at: Shared[Integers]  # (lengths,) index among the coordinates
    row: Shared[Integers]  # (lengths,) row of moment arms
    own: Shared[Booleans]  # (lengths,) whether the row must be written; rows of joints exist already
    offset: Shared[Vector]  # (lengths,)
    terms: Shared[Integers]  # (lengths + 1,) first term of each
    term_at: Shared[Integers]  # (terms,) coordinate
    term_row: Shared[Integers]  # (terms,) row of moment arms
    powers: Shared[Matrix]  # (terms, k) coefficients of the first and higher powers
    nodes: Shared[Integers]  # (lengths + 1,) first node of the string of each
    node: Shared[IntegerMatrix]  # (nodes, 4) kind, body (-1: ground), whether it has a side point, and the side point's body
    place: Matrix  # (nodes, 16) position, rotation by rows, radius or divisor, side point
    frame: IntegerMatrix  # (lengths, 6) body, purpose, whether there is a reference, its body, axes of force and torque
    wrench: Matrix  # (lengths, 30) placements of both frames (12 each), wrench
    kept: Matrix  # (lengths, nv) 0 for velocities that carry both frames, otherwise 1
    placement: Tensor  # (bodies, 4, 4) placements of the bodies with strings and frames
    jacobian: Tensor  # (bodies, 6, nv) linear and angular, at their origins in the world's axes
    bias: Matrix  # (bodies, 6) accelerations there for joint accelerations `bias_acceleration`, J' v + J a
    bias_acceleration: Vector  # (nv,) joint accelerations at constant velocity, in the axes at the start of a step
    drift: Vector  # (rows,) second rates of lengths under equalities, without joint accelerations


def no_lengths(nv: int) -> Lengths:
    """Return empty arrays of lengths for a robot with nv velocities."""
    whole, flag, number = np.zeros(0, np.int64), np.zeros(0, bool), np.zeros(0)
    begins = np.zeros(1, np.int64)
    return Lengths(
        whole, whole, flag, number, begins, whole, whole, np.zeros((0, 1)), begins, np.zeros((0, 4), np.int64),
        np.zeros((0, 16)), np.zeros((0, 6), np.int64), np.zeros((0, 30)), np.zeros((0, nv)), np.zeros((0, 4, 4)),
        np.zeros((0, 6, nv)), np.zeros((0, 6)), np.zeros(nv), number,
    )  # fmt: skip


def write_lengths(x: Lengths, coordinates: Vector, S: Matrix) -> None:
    """Write all lengths to the coordinates, and their moment arms to the rows, which contain those of joints already."""
    for i in range(len(x.at)):
        value = x.offset[i]
        if x.own[i]:
            row = S[x.row[i]]
            for j in range(len(row)):
                row[j] = 0.0
            if x.frame[i, 1] == BALL:
                value += add_angle(x, i, coordinates, S)
            elif x.frame[i, 1] < BALL:
                value += add_place(x, i, x.frame[i, 1] - PLACE, coordinates, S)
            else:
                value += add_terms(x, i, coordinates, S)
            value += add_string(x, i, row)
            if x.frame[i, 1] == WRENCH:
                value += add_frame(x, i, row)
            elif x.frame[i, 1] == CRANK:
                value += add_crank(x, i, row)
            elif x.frame[i, 1] > WRENCH:
                value += add_turn(x, i, x.frame[i, 1] - WRENCH - 1, row)
        else:
            value += sum_of_terms(x, i, coordinates)
        coordinates[x.at[i]] = value


# terms


def sum_of_terms(x: Lengths, i: int, coordinates: Vector) -> float:
    """Return the sum of the polynomials of a length."""
    total = 0.0
    for t in range(x.terms[i], x.terms[i + 1]):
        total += polynomial(x.powers[t], coordinates[x.term_at[t]])
    return total


def add_terms(x: Lengths, i: int, coordinates: Vector, S: Matrix) -> float:
    """Add the moment arms of polynomials, and return the polynomials' values."""
    row = S[x.row[i]]
    for t in range(x.terms[i], x.terms[i + 1]):
        slope, leader = slope_of(x.powers[t], coordinates[x.term_at[t]]), S[x.term_row[t]]
        for j in range(len(row)):
            row[j] += slope * leader[j]
    return sum_of_terms(x, i, coordinates)


def polynomial(powers: Vector, q: float) -> float:
    """Return c1 q + c2 q² + ..."""
    value = 0.0
    for k in range(len(powers) - 1, -1, -1):
        value = (value + powers[k]) * q
    return value


def slope_of(powers: Vector, q: float) -> float:
    """Return c1 + 2 c2 q + ..."""
    value = 0.0
    for k in range(len(powers) - 1, -1, -1):
        value = value * q + (k + 1) * powers[k]
    return value


def rotation_vector(q: Any, i: int) -> Triple:
    """Return the rotation vector of the quaternion (x, y, z, w) at an index of q, of at most half a turn."""
    x, y, z, w = q[i], q[i + 1], q[i + 2], q[i + 3]
    s, sign = sqrt(x * x + y * y + z * z), 1.0 if w >= 0.0 else -1.0
    if s == 0.0:
        return 0.0, 0.0, 0.0
    scale = 2.0 * angle_of(s, sign * w) / s * sign
    return scale * x, scale * y, scale * z


def turn_from(rest: Any, q: Any, i: int) -> tuple[float, float, float, float]:
    """Return the quaternion (x, y, z, w) of the rotation from a reference quaternion to the one at an index of q."""
    a, b, c, d = rest[0], rest[1], rest[2], rest[3]
    x, y, z, w = q[i], q[i + 1], q[i + 2], q[i + 3]
    return (
        d * x - w * a - (b * z - c * y),
        d * y - w * b - (c * x - a * z),
        d * z - w * c - (a * y - b * x),
        d * w + a * x + b * y + c * z,
    )


def add_angle(x: Lengths, i: int, coordinates: Vector, S: Matrix) -> float:
    """Add the moment arms of a ball joint's angle, and return the angle; its first term gives its quaternion and first row."""
    t, row = x.terms[i], S[x.row[i]]
    turn = rotation_vector(coordinates, x.term_at[t])
    angle = length_of(turn)
    if angle > 0.0:
        axis = times(1.0 / angle, turn)
        for k in range(3):
            component, leader = axis[k], S[x.term_row[t] + k]
            for j in range(len(row)):
                row[j] += component * leader[j]
    return angle


def add_place(x: Lengths, i: int, k: int, coordinates: Vector, S: Matrix) -> float:
    """Add the moment arms of coordinate k of a free joint's position, and return the coordinate.

    Its first term gives position and quaternion, and the first row of the joint. The moment arms for a velocity in the body's
    axes are R(q)ᵀ times those for the position.
    """
    t, row = x.terms[i], S[x.row[i]]
    at, first = x.term_at[t], x.term_row[t]
    u, w = (coordinates[at + 3], coordinates[at + 4], coordinates[at + 5]), coordinates[at + 6]
    e = 1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0
    across = outer(u, e)
    axis = along(along(e, -2.0 * w, across), 2.0, outer(u, across))
    for m in range(3):
        component, leader = axis[m], S[first + m]
        for j in range(len(row)):
            row[j] += component * leader[j]
    return coordinates[at + k]


# strings


def add_string(x: Lengths, i: int, row: Vector) -> float:
    """Add the moment arms of a string, and return its length."""
    total, divisor, k, last = 0.0, 1.0, x.nodes[i], x.nodes[i + 1] - 1
    while k < last:
        if x.node[k, 0] == PULLEY or x.node[k + 1, 0] == PULLEY:
            divisor = x.place[k, 12] if x.node[k, 0] == PULLEY else divisor
            k += 1
        elif x.node[k + 1, 0] == POINT:
            total += add_part(x, x.node[k, 1], point_of(x, k), x.node[k + 1, 1], point_of(x, k + 1), divisor, row) / divisor
            k += 1
        else:
            total += add_wrapped(x, k, divisor, row) / divisor
            k += 2
    return total


def add_wrapped(x: Lengths, k: int, divisor: float, row: Vector) -> float:
    """Add the moment arms of a string from node k around the next node to the one after, and return its length."""
    w, first, last = k + 1, point_of(x, k), point_of(x, k + 2)
    body, a, b = x.node[w, 1], x.node[k, 1], x.node[k + 2, 1]
    sided = x.node[w, 2] > 0
    side = placed(x, x.node[w, 3], x.place[w, 13:16]) if sided else (0.0, 0.0, 0.0)
    center = point_of(x, w)
    inside = seen_from(x, w, minus(side, center)) if sided else (0.0, 0.0, 0.0)
    start, end = seen_from(x, w, minus(first, center)), seen_from(x, w, minus(last, center))
    path = wrap_around(start, end, x.place[w, 12], x.node[w, 0] == CYLINDER, sided, inside)
    if not path.touches:
        return add_part(x, a, first, b, last, divisor, row)
    meets, leaves = placed(x, body, on_body(x, w, path.first)), placed(x, body, on_body(x, w, path.last))
    before = add_part(x, a, first, body, meets, divisor, row)
    return before + path.length + add_part(x, body, leaves, b, last, divisor, row)


def add_part(x: Lengths, a: int, p: Triple, b: int, r: Triple, divisor: float, row: Vector) -> float:
    """Add the moment arms of a straight segment from p on body a to r on body b, and return its length."""
    d = minus(r, p)
    size = length_of(d)
    if a != b and size > SHORTEST:
        u = times(1.0 / (size * divisor), d)
        add_force(x, b, r, u, row)
        add_force(x, a, p, times(-1.0, u), row)
    return size


def add_force(x: Lengths, body: int, point: Triple, force: Triple, row: Vector) -> None:
    """Add the joint forces of a force at a point of a body."""
    if body >= 0:
        T = x.placement[body]
        origin = T[0, 3], T[1, 3], T[2, 3]
        add_wrench(x, body, force, outer(minus(point, origin), force), row)


def add_wrench(x: Lengths, body: int, force: Triple, torque: Triple, row: Vector) -> None:
    """Add the joint forces of a force at a body's origin and a torque, in the world's axes."""
    if body < 0:
        return
    J = x.jacobian[body]
    for j in range(len(row)):
        row[j] += force[0] * J[0, j] + force[1] * J[1, j] + force[2] * J[2, j]
        row[j] += torque[0] * J[3, j] + torque[1] * J[4, j] + torque[2] * J[5, j]


# placements


def placed(x: Lengths, body: int, p: TripleLike) -> Triple:
    """Return a point of a body in the world."""
    if body < 0:
        return p[0], p[1], p[2]
    T, q = x.placement[body], turned_by(x, body, p)
    return T[0, 3] + q[0], T[1, 3] + q[1], T[2, 3] + q[2]


def turned_by(x: Lengths, body: int, a: TripleLike) -> Triple:
    """Return a vector of a body's frame in the world's axes."""
    if body < 0:
        return a[0], a[1], a[2]
    T = x.placement[body]
    return (
        T[0, 0] * a[0] + T[0, 1] * a[1] + T[0, 2] * a[2],
        T[1, 0] * a[0] + T[1, 1] * a[1] + T[1, 2] * a[2],
        T[2, 0] * a[0] + T[2, 1] * a[1] + T[2, 2] * a[2],
    )


def point_of(x: Lengths, k: int) -> Triple:
    """Return the position of a node in the world."""
    return placed(x, x.node[k, 1], x.place[k, 0:3])


def axis_of_node(x: Lengths, k: int, i: int) -> Triple:
    """Return an axis of a node in the world."""
    return turned_by(x, x.node[k, 1], (x.place[k, 3 + i], x.place[k, 6 + i], x.place[k, 9 + i]))


def seen_from(x: Lengths, k: int, a: Triple) -> Triple:
    """Return a vector in the axes of a node."""
    return inner(axis_of_node(x, k, 0), a), inner(axis_of_node(x, k, 1), a), inner(axis_of_node(x, k, 2), a)


def on_body(x: Lengths, k: int, a: Triple) -> Triple:
    """Return a point of a node's frame in the frame of its body."""
    p = x.place[k]
    return (
        p[0] + p[3] * a[0] + p[4] * a[1] + p[5] * a[2],
        p[1] + p[6] * a[0] + p[7] * a[1] + p[8] * a[2],
        p[2] + p[9] * a[0] + p[10] * a[1] + p[11] * a[2],
    )


# frames


def frame_axis(x: Lengths, body: int, place: Vector, i: int) -> Triple:
    """Return an axis of a frame in the world."""
    return turned_by(x, body, (place[3 + i], place[6 + i], place[9 + i]))


def axis_in_world(x: Lengths, i: int, axes: int, k: int) -> Triple:
    """Return the world direction of an axis of a force or a torque."""
    if axes == IN_WORLD:
        return 1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0
    if axes == IN_REFERENCE:
        return frame_axis(x, x.frame[i, 3], x.wrench[i, 12:24], k)
    return frame_axis(x, x.frame[i, 0], x.wrench[i, 0:12], k)


def add_frame(x: Lengths, i: int, row: Vector) -> float:
    """Add the moment arms of a wrench at a frame, and return the frame's displacement from its reference along the wrench."""
    w, body, other = x.wrench[i], x.frame[i, 0], x.frame[i, 3]
    force, torque = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for k in range(3):
        e, f = axis_in_world(x, i, x.frame[i, 4], k), axis_in_world(x, i, x.frame[i, 5], k)
        force, torque = along(force, w[24 + k], e), along(torque, w[27 + k], f)
    point, nothing = placed(x, body, w[0:3]), (0.0, 0.0, 0.0)
    add_force(x, body, point, force, row)
    add_wrench(x, body, nothing, torque, row)
    if x.frame[i, 2] == 0:
        return 0.0
    there = placed(x, other, w[12:15])
    add_force(x, other, there, times(-1.0, force), row)
    add_wrench(x, other, nothing, times(-1.0, torque), row)
    for j in range(len(row)):
        row[j] *= x.kept[i, j]
    return inner(force, minus(point, there)) + inner(torque, turn_between(x, i))


def add_crank(x: Lengths, i: int, row: Vector) -> float:
    """Add the moment arms of a force on a slider that a rod connects to a crank, and return the slider's position.

    With d from the origin of the slider's axis a to the pin of the crank, the slider is at a.d - sqrt((a.d)² + rod² - d.d). If
    the rod is too short, the slider is at the nearest point, a.d.
    """
    w, body, other, rod = x.wrench[i], x.frame[i, 0], x.frame[i, 3], x.wrench[i, 29]
    pin, start = placed(x, body, w[0:3]), placed(x, other, w[12:15])
    axis, d = (0.0, 0.0, 0.0), minus(pin, start)
    for k in range(3):
        axis = along(axis, w[24 + k], frame_axis(x, other, w[12:24], k))
    far = inner(axis, d)
    square = far * far + rod * rod - inner(d, d)
    root = sqrt(max(square, 0.0))
    ratio = 1.0 - far / root if square > 0.0 else 1.0
    force = along(times(ratio, axis), 1.0 / root if square > 0.0 else 0.0, d)
    add_force(x, body, pin, force, row)
    add_force(x, other, start, times(-1.0, force), row)
    add_wrench(x, other, (0.0, 0.0, 0.0), outer(axis, times(ratio, d)), row)
    return far - root


def add_turn(x: Lengths, i: int, k: int, row: Vector) -> float:
    """Add the moment arms of a component of the rotation from the reference frame to the frame, and return the component.

    The component is in the reference's axes: that of the quaternion (w, e), the sine of half the angle along the axis, times a
    scale. Its rate is (w u_k + e × u_k) / 2 . (relative angular velocity), with u_k the axis k.
    """
    w, body, other, scale = x.wrench[i], x.frame[i, 0], x.frame[i, 3], x.wrench[i, 29]
    cosine, half = half_turn_between(x, i)
    u = frame_axis(x, other, w[12:24], k)
    direction = outer(half, u)
    torque = times(0.5 * scale, along(direction, cosine, u))
    nothing = 0.0, 0.0, 0.0
    add_wrench(x, body, nothing, torque, row)
    add_wrench(x, other, nothing, times(-1.0, torque), row)
    return scale * inner(half, u)


def half_turn_between(x: Lengths, i: int) -> tuple[float, Triple]:
    """Return the quaternion of the rotation from the reference frame to the frame: cosine, and vector part in the world's axes.

    Its cosine is positive.
    """
    turn = turn_between(x, i)
    angle = length_of(turn)
    if angle < SHORTEST:
        return 1.0, times(0.5, turn)
    return cos(0.5 * angle), times(sin(0.5 * angle) / angle, turn)


def turn_between(x: Lengths, i: int) -> Triple:
    """Return the rotation vector from the reference frame to the frame, in the world's axes."""
    w, body, other = x.wrench[i], x.frame[i, 0], x.frame[i, 3]
    trace, s = 0.0, (0.0, 0.0, 0.0)
    for k in range(3):
        a, b = frame_axis(x, other, w[12:24], k), frame_axis(x, body, w[0:12], k)
        trace += inner(a, b)
        c = outer(a, b)
        s = s[0] + 0.5 * c[0], s[1] + 0.5 * c[1], s[2] + 0.5 * c[2]
    sine, cosine = length_of(s), 0.5 * (trace - 1.0)
    if sine < SHORTEST:
        return 0.0, 0.0, 0.0
    size = sqrt(sine * sine + cosine * cosine)
    return times(angle_of(sine / size, cosine / size) / sine, s)


# the drift of equalities


def write_drift(x: Lengths, v: Vector) -> None:
    """Write the drift of the lengths with a reference frame for velocities v, given placements and biases of bodies.

    A point at r in a body has the acceleration a + α × r + ω × (ω × r). With the relative angular velocity δ in the
    reference's axes, the quaternion (w, e) has the rates w' = -δ . e / 2 and e' = (w δ + δ × e) / 2.
    """
    for i in range(len(x.at)):
        if x.frame[i, 2] > 0 and x.frame[i, 1] != CRANK:
            x.drift[x.row[i]] = drift_of_turn(x, i, v) if x.frame[i, 1] > WRENCH else drift_of_points(x, i, v)


def drift_of_points(x: Lengths, i: int, v: Vector) -> float:
    """Return the second rate of a component of the displacement from the reference frame, in the world's axes."""
    w = x.wrench[i]
    a, b = bias_of_point(x, x.frame[i, 0], w[0:3], v), bias_of_point(x, x.frame[i, 3], w[12:15], v)
    d = minus(a, b)
    return w[24] * d[0] + w[25] * d[1] + w[26] * d[2]


def bias_of_point(x: Lengths, body: int, p: TripleLike, v: Vector) -> Triple:
    """Return the acceleration of a point of a body at constant joint velocities."""
    if body < 0:
        return 0.0, 0.0, 0.0
    B, r, turn = x.bias[body], turned_by(x, body, p), angular_velocity(x, body, v)
    inward = outer(turn, outer(turn, r))
    swing = outer((B[3], B[4], B[5]), r)
    return B[0] + swing[0] + inward[0], B[1] + swing[1] + inward[1], B[2] + swing[2] + inward[2]


def angular_velocity(x: Lengths, body: int, v: Vector) -> Triple:
    """Return the angular velocity of a body in the world's axes."""
    a, b, c = 0.0, 0.0, 0.0
    if body >= 0:
        for j in range(len(v)):
            a += x.jacobian[body, 3, j] * v[j]
            b += x.jacobian[body, 4, j] * v[j]
            c += x.jacobian[body, 5, j] * v[j]
    return a, b, c


def angular_bias(x: Lengths, body: int) -> Triple:
    """Return the angular acceleration of a body at constant joint velocities."""
    if body < 0:
        return 0.0, 0.0, 0.0
    return x.bias[body, 3], x.bias[body, 4], x.bias[body, 5]


def drift_of_turn(x: Lengths, i: int, v: Vector) -> float:
    """Return the second rate of a component of the rotation from the reference frame, in its axes."""
    body, other, k = x.frame[i, 0], x.frame[i, 3], x.frame[i, 1] - WRENCH - 1
    cosine, half = half_turn_between(x, i)
    u = frame_axis(x, other, x.wrench[i, 12:24], k)
    turn = angular_velocity(x, other, v)
    delta = minus(angular_velocity(x, body, v), turn)
    change = minus(minus(angular_bias(x, body), angular_bias(x, other)), outer(turn, delta))
    rate = times(0.5, along(outer(delta, half), cosine, delta))
    total = along(along(outer(change, half), cosine, change), 1.0, outer(delta, rate))
    return x.wrench[i, 29] * 0.5 * (inner(u, total) - 0.5 * inner(delta, half) * inner(u, delta))
