"""Spatial motions and forces, [angular; linear]."""

from __future__ import annotations

from typing import NamedTuple

from .vectors import ZERO3, Mat3, Scalar, Vec3


class Motion(NamedTuple):
    """A spatial motion vector."""

    ang: Vec3
    lin: Vec3

    def __add__(a, b: Motion) -> Motion:  # type: ignore[override]
        return Motion(a.ang + b.ang, a.lin + b.lin)

    def __sub__(a, b: Motion) -> Motion:
        return Motion(a.ang - b.ang, a.lin - b.lin)

    def __rmul__(a, s: Scalar) -> Motion:
        return Motion(s * a.ang, s * a.lin)

    def cross(a, b: Motion) -> Motion:
        """Return a x b: the rate of b when it moves with a."""
        return Motion(a.ang.cross(b.ang), a.ang.cross(b.lin) + a.lin.cross(b.ang))

    def cross_force(a, f: Force) -> Force:
        """Return a x* f."""
        return Force(a.ang.cross(f.ang) + a.lin.cross(f.lin), a.ang.cross(f.lin))

    def component(a, k: int) -> Scalar:
        return (a.ang.x, a.ang.y, a.ang.z, a.lin.x, a.lin.y, a.lin.z)[k]

    def replaced(a, k: int, s: Scalar) -> Motion:
        """Return the same motion with another component k."""
        w, v = a.ang, a.lin
        return Motion(
            Vec3(s if k == 0 else w.x, s if k == 1 else w.y, s if k == 2 else w.z),
            Vec3(s if k == 3 else v.x, s if k == 4 else v.y, s if k == 5 else v.z),
        )


class Force(NamedTuple):
    """A spatial force vector."""

    ang: Vec3
    lin: Vec3

    def __add__(a, b: Force) -> Force:  # type: ignore[override]
        return Force(a.ang + b.ang, a.lin + b.lin)

    def __sub__(a, b: Force) -> Force:
        return Force(a.ang - b.ang, a.lin - b.lin)

    def __rmul__(a, s: Scalar) -> Force:
        return Force(s * a.ang, s * a.lin)

    def component(a, k: int) -> Scalar:
        return (a.ang.x, a.ang.y, a.ang.z, a.lin.x, a.lin.y, a.lin.z)[k]

    def replaced(a, k: int, s: Scalar) -> Force:
        """Return the same force with another component k."""
        n, f = a.ang, a.lin
        return Force(
            Vec3(s if k == 0 else n.x, s if k == 1 else n.y, s if k == 2 else n.z),
            Vec3(s if k == 3 else f.x, s if k == 4 else f.y, s if k == 5 else f.z),
        )

    def translate(a, p: Vec3) -> Force:
        """Return the same force about an origin at -p."""
        return Force(a.ang + p.cross(a.lin), a.lin)

    def power(a, m: Motion) -> Scalar:
        """Return the scalar product of a force and a motion."""
        return a.ang.dot(m.ang) + a.lin.dot(m.lin)


for _kind in (Motion, Force):
    _kind.__array_ufunc__ = None  # type: ignore[union-attr]  # so that numbers and arrays of NumPy leave products to them


def unit_motion(k: int, s: Scalar) -> Motion:
    """Return the motion s along axis k: 0, 1, 2 angular, 3, 4, 5 linear x, y, z."""
    return Motion(
        Vec3(s if k == 0 else 0.0, s if k == 1 else 0.0, s if k == 2 else 0.0),
        Vec3(s if k == 3 else 0.0, s if k == 4 else 0.0, s if k == 5 else 0.0),
    )


def acceleration_field(w: Vec3, alpha: Vec3) -> Mat3:
    """Return B, where B r is the acceleration of a point at r relative to that of the origin: skew(alpha) + skew(w)^2."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    return Mat3(
        Vec3(0.0 - (yy + zz), xy - alpha.z, xz + alpha.y),
        Vec3(xy + alpha.z, 0.0 - (xx + zz), yz - alpha.x),
        Vec3(xz - alpha.y, yz + alpha.x, 0.0 - (xx + yy)),
    )


ZERO_MOTION = Motion(ZERO3, ZERO3)
ZERO_FORCE = Force(ZERO3, ZERO3)
