"""Moving along a velocity on the configuration manifold: q exp(v), joint by joint.

    line           q + v
    SO(3)          q (v/2 sinc h, cos h)                               v = w, h = |w|/2, sinc x = (sin x)/x
    SE(3)          p + R (sinc 2h l + 1/2 sinc² h w x l + (1 - sinc 2h)/(4h²) w (w . l))          v = (l, w)
    SE(2)          p + R (l turned and shortened as along an arc),  the turn of (cos, sin) by w

Exponentials as in Solà, Deray and Atchuthan, "A micro Lie theory for state estimation in robotics" (2018), appendices B to
D. There is no branch where angles are tiny: `TINY` keeps quotients defined, and what (1 - sinc) loses there is lost to
rounding of l anyway. Rotations are normalized, so they stay so over any number of steps.
"""

from __future__ import annotations

from ..model.tree import FLOATING, INNER, PLANAR, SPHERICAL, Tree
from ..spatial import Vec3, rotation_from_quaternion, sincos, sqrt

TINY = 1e-30  # [rad²], far below where sin x and x differ in any digit


def sinc_of_half(w: Vec3):
    """sin(h)/h, cos(h) and h² of half the length h of a vector."""
    h2 = 0.25 * w.dot(w) + TINY
    h = sqrt(h2)
    s, c = sincos(h)
    return s / h, c, h2


def turned(x, y, z, w, e: Vec3, c):
    """The Hamilton product of the quaternions (x, y, z, w) and (e, c)."""
    u = Vec3(x, y, z)
    vector = c * u + w * e + u.cross(e)
    return vector, w * c - u.dot(e)


def write_unit_quaternion(u: Vec3, w, result, k: int) -> None:
    scale = 1.0 / sqrt(u.dot(u) + w * w)
    result[k] = scale * u.x
    result[k + 1] = scale * u.y
    result[k + 2] = scale * u.z
    result[k + 3] = scale * w


def integrate(tree: Tree, q, v, result) -> None:
    """The configuration that the velocity v, held for a unit of time, leads to from q."""
    for j in range(len(tree.parent)):
        kind = tree.kind[j]
        k = tree.q_index[j]
        if kind == SPHERICAL:
            spherical(j, k, q, v, result)
        elif kind == FLOATING:
            floating(j, k, q, v, result)
        elif kind == PLANAR:
            planar(j, k, q, v, result)
        elif kind != INNER:
            result[k] = q[k] + v[j]


def spherical(j: int, k: int, q, v, result) -> None:
    w = Vec3(v[j], v[j + 1], v[j + 2])
    sinc, c, _ = sinc_of_half(w)
    vector, scalar = turned(q[k], q[k + 1], q[k + 2], q[k + 3], 0.5 * sinc * w, c)
    write_unit_quaternion(vector, scalar, result, k)


def floating(j: int, k: int, q, v, result) -> None:
    l = Vec3(v[j], v[j + 1], v[j + 2])
    w = Vec3(v[j + 3], v[j + 4], v[j + 5])
    sinc, c, h2 = sinc_of_half(w)
    sinc2 = sinc * c  # sin(2h)/(2h)
    step = sinc2 * l + 0.5 * sinc * sinc * w.cross(l) + (0.25 * (1.0 - sinc2) / h2 * w.dot(l)) * w
    scale = 1.0 / sqrt(q[k + 3] * q[k + 3] + q[k + 4] * q[k + 4] + q[k + 5] * q[k + 5] + q[k + 6] * q[k + 6])
    x, y, z, s = scale * q[k + 3], scale * q[k + 4], scale * q[k + 5], scale * q[k + 6]
    moved = rotation_from_quaternion(x, y, z, s) @ step
    result[k] = q[k] + moved.x
    result[k + 1] = q[k + 1] + moved.y
    result[k + 2] = q[k + 2] + moved.z
    vector, scalar = turned(x, y, z, s, 0.5 * sinc * w, c)
    write_unit_quaternion(c * vector, c * scalar, result, k + 3)  # on the side of the quaternion before, by the sign of c


def planar(j: int, k: int, q, v, result) -> None:
    half = 0.5 * v[j + 2]
    h = sqrt(half * half + TINY)
    s, c = sincos(h)
    sinc = s / h
    sine = half * sinc  # of half the turn
    x, y = sinc * (c * v[j] - sine * v[j + 1]), sinc * (sine * v[j] + c * v[j + 1])
    scale = 1.0 / sqrt(q[k + 2] * q[k + 2] + q[k + 3] * q[k + 3])
    cosine0, sine0 = scale * q[k + 2], scale * q[k + 3]
    result[k] = q[k] + cosine0 * x - sine0 * y
    result[k + 1] = q[k + 1] + sine0 * x + cosine0 * y
    turn_c, turn_s = c * c - sine * sine, 2.0 * sine * c
    result[k + 2] = cosine0 * turn_c - sine0 * turn_s
    result[k + 3] = sine0 * turn_c + cosine0 * turn_s
