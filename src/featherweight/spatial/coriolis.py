"""Half the Coriolis forces 2 x × v of the points of moving bodies, as a map of an additional angular velocity x."""

from __future__ import annotations

from typing import NamedTuple

from .inertia import RigidInertia
from .motion import Force, Motion
from .vectors import ZERO3, Mat3, Scalar, Vec3


class Coriolis(NamedTuple):
    """The map from x to the sum of the forces m x × v over points at r with mass m and velocity v (K x about the origin).

    K = sum of m ((r . v) 1 - v r^T), and the momentum is the sum of m v.
    """

    K: Mat3
    momentum: Vec3

    def __add__(a, b: Coriolis) -> Coriolis:  # type: ignore[override]
        return Coriolis(a.K + b.K, a.momentum + b.momentum)

    def __matmul__(a, x: Vec3) -> Force:
        return Force(a.K @ x, x.cross(a.momentum))

    def of_component(a, k: int) -> Vec3:
        """Return the component k of the force, as a function of x."""
        Q = a.momentum
        if k == 0:
            return a.K.x
        if k == 1:
            return a.K.y
        if k == 2:
            return a.K.z
        if k == 3:
            return Vec3(0.0, Q.z, 0.0 - Q.y)
        if k == 4:
            return Vec3(0.0 - Q.z, 0.0, Q.x)
        return Vec3(Q.y, 0.0 - Q.x, 0.0)

    def onto(a, m: Motion) -> Vec3:
        """Return the power of the force on a motion, as a function of x."""
        s, l, Q = m.ang, m.lin, a.momentum
        return a.K.transpose() @ s + Q.cross(l)

    def spin(a, c: Scalar, s: Scalar) -> Coriolis:
        return Coriolis(a.K.spin(c, s), a.momentum.spin(c, s))

    def cycle(a) -> Coriolis:
        return Coriolis(a.K.cycle(), a.momentum.cycle())

    def rotate(a, R: Mat3) -> Coriolis:
        return Coriolis(R.product(a.K).product(R.transpose()), R @ a.momentum)

    def sped(a, I: RigidInertia, u: Vec3) -> Coriolis:
        """Return the map of the same bodies with the inertia I, when all move faster by u."""
        return a.moved_along(I, u, ZERO3)

    def moved_along(a, I: RigidInertia, u: Vec3, p: Vec3) -> Coriolis:
        """Return the map about an origin at -p, of the same bodies with the inertia I there, when all move faster by u."""
        h, Q = I.moment, a.momentum
        d = h.dot(u) + p.dot(Q)
        x, y, z = a.K.x - u.x * h - Q.x * p, a.K.y - u.y * h - Q.y * p, a.K.z - u.z * h - Q.z * p
        K = Mat3(Vec3(x.x + d, x.y, x.z), Vec3(y.x, y.y + d, y.z), Vec3(z.x, z.y, z.z + d))
        return Coriolis(K, Q + I.mass * u)


def coriolis_of_turning(I: RigidInertia, w: Vec3) -> Coriolis:
    """Return the map of a body that rotates about the origin with the angular velocity w."""
    J = I.rotational
    half = 0.5 * (J.xx + J.yy + J.zz)
    x = Vec3(half - J.xx, 0.0 - J.xy, 0.0 - J.xz)  # second moments of mass
    y = Vec3(0.0 - J.xy, half - J.yy, 0.0 - J.yz)
    z = Vec3(0.0 - J.xz, 0.0 - J.yz, half - J.zz)
    return Coriolis(Mat3(w.z * y - w.y * z, w.x * z - w.z * x, w.y * x - w.x * y), w.cross(I.moment))


ZERO_CORIOLIS = Coriolis(Mat3(ZERO3, ZERO3, ZERO3), ZERO3)
