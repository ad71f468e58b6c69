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


# The semi-implicit step of bodies that turn. Linear velocities of floating and planar joints are in axes that turn with the
# body, where a step v + h v' of a body that only spins would gain h² w² of its speed. So they are stepped in the axes of the
# start, which do not turn, and only then expressed in those of the end. `turning[i]` is the joint's kind at its first row.


def free_velocity(turning, v, a, h, result) -> None:
    """u = v + h (v' + w x v), in the axes of the start."""
    for i in range(len(turning)):
        result[i] = v[i] + h * a[i]
    for i in range(len(turning)):
        if turning[i] == FLOATING:
            c = Vec3(v[i + 3], v[i + 4], v[i + 5]).cross(Vec3(v[i], v[i + 1], v[i + 2]))
            result[i] = result[i] + h * c.x
            result[i + 1] = result[i + 1] + h * c.y
            result[i + 2] = result[i + 2] + h * c.z
        elif turning[i] == PLANAR:
            result[i] = result[i] - h * (v[i + 2] * v[i + 1])
            result[i + 1] = result[i + 1] + h * (v[i + 2] * v[i])


def carry(turning, u, d, h, result) -> None:
    """The tangent x that moves by h u + d, origins straight on, and after it the velocity u in the axes of the end.

    q exp(x) moves an origin by V(w) x_l, so x_l = V(w)⁻¹ l with V⁻¹ l = l - w x l / 2 + (1/12 + w²/720 + ...) w x (w x l).
    """
    n = len(turning)
    for i in range(n):
        result[i] = h * u[i] + d[i]
        result[n + i] = u[i]
    for i in range(n):
        if turning[i] == FLOATING:
            w = Vec3(h * u[i + 3] + d[i + 3], h * u[i + 4] + d[i + 4], h * u[i + 5] + d[i + 5])
            l = Vec3(h * u[i] + d[i], h * u[i + 1] + d[i + 1], h * u[i + 2] + d[i + 2])
            once = w.cross(l)
            s = w.dot(w)
            bend = 1.0 / 12.0 + s * (1.0 / 720.0 + s * (1.0 / 30240.0 + s / 1209600.0))
            x = l - 0.5 * once + bend * w.cross(once)
            sinc, c, _ = sinc_of_half(w)
            e = 0.5 * sinc * w
            velocity = Vec3(u[i], u[i + 1], u[i + 2])
            across = e.cross(velocity)
            back = velocity - (2.0 * c) * across + 2.0 * e.cross(across)
            result[i] = x.x
            result[i + 1] = x.y
            result[i + 2] = x.z
            result[n + i] = back.x
            result[n + i + 1] = back.y
            result[n + i + 2] = back.z
        elif turning[i] == PLANAR:
            angle = h * u[i + 2] + d[i + 2]
            s = angle * angle
            along = 1.0 - s * (1.0 / 12.0 + s * (1.0 / 720.0 + s * (1.0 / 30240.0 + s / 1209600.0)))
            x, y = h * u[i] + d[i], h * u[i + 1] + d[i + 1]
            result[i] = along * x + 0.5 * angle * y
            result[i + 1] = along * y - 0.5 * angle * x
            sine, cosine = sincos(angle)
            result[n + i] = cosine * u[i] + sine * u[i + 1]
            result[n + i + 1] = cosine * u[i + 1] - sine * u[i]
