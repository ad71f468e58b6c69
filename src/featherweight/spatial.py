"""Spatial vector algebra (Featherstone, *Rigid Body Dynamics Algorithms*, chapter 2) on named tuples of scalars.

A scalar is a float, a traced expression, or a Numba float: the same source serves all three executions. Vectors are
ordered [angular; linear]. Inertias are stored by their distinct entries, so that symmetry is never computed twice.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

Scalar = Any  # float, or a traced expression with the arithmetic of one


def sincos(x: Scalar) -> tuple[Scalar, Scalar]:
    """Sine and cosine of an angle in radians."""
    if isinstance(x, float):
        return math.sin(x), math.cos(x)
    return x.sin(), x.cos()


def _sincos_of_float(x):
    return math.sin(x), math.cos(x)


sincos.rolled = _sincos_of_float  # type: ignore[attr-defined]  # Numba has no traced expressions to tell from floats


def sqrt(x: Scalar) -> Scalar:
    """Square root; NaN of a negative number."""
    if isinstance(x, float):
        return math.sqrt(x) if x >= 0.0 else math.nan
    return x.sqrt()


def _sqrt_of_float(x):
    return math.sqrt(x)


sqrt.rolled = _sqrt_of_float  # type: ignore[attr-defined]


class Vec3(NamedTuple):
    """A vector of three scalars."""

    x: Scalar
    y: Scalar
    z: Scalar

    def __add__(a, b: Vec3) -> Vec3:  # type: ignore[override]
        return Vec3(a.x + b.x, a.y + b.y, a.z + b.z)

    def __sub__(a, b: Vec3) -> Vec3:
        return Vec3(a.x - b.x, a.y - b.y, a.z - b.z)

    def __rmul__(a, s: Scalar) -> Vec3:
        return Vec3(s * a.x, s * a.y, s * a.z)

    def dot(a, b: Vec3) -> Scalar:
        return a.x * b.x + a.y * b.y + a.z * b.z

    def cross(a, b: Vec3) -> Vec3:
        return Vec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)

    def spin(a, c: Scalar, s: Scalar) -> Vec3:
        """Rotate about z: Rz a."""
        return Vec3(c * a.x - s * a.y, s * a.x + c * a.y, a.z)

    def cycle(a) -> Vec3:
        """The same vector on axes renamed y, z, x."""
        return Vec3(a.y, a.z, a.x)


class Mat3(NamedTuple):
    """A 3x3 matrix by rows."""

    x: Vec3
    y: Vec3
    z: Vec3

    def __add__(a, b: Mat3) -> Mat3:  # type: ignore[override]
        return Mat3(a.x + b.x, a.y + b.y, a.z + b.z)

    def __sub__(a, b: Mat3) -> Mat3:
        return Mat3(a.x - b.x, a.y - b.y, a.z - b.z)

    def __matmul__(a, v: Vec3) -> Vec3:
        return Vec3(a.x.dot(v), a.y.dot(v), a.z.dot(v))

    def transpose(a) -> Mat3:
        return Mat3(Vec3(a.x.x, a.y.x, a.z.x), Vec3(a.x.y, a.y.y, a.z.y), Vec3(a.x.z, a.y.z, a.z.z))

    def product(a, b: Mat3) -> Mat3:
        """The matrix product a b."""
        t = b.transpose()
        return Mat3(t @ a.x, t @ a.y, t @ a.z)

    def spin(a, c: Scalar, s: Scalar) -> Mat3:
        """Rz a Rz^T, with four products for the upper left block: its trace and skew part do not change."""
        k = s * (a.y.y - a.x.x) - c * (a.x.y + a.y.x)
        sk, ck = s * k, c * k
        right = Vec3(a.x.z, a.y.z, a.z.z).spin(c, s)
        below = a.z.spin(c, s)
        return Mat3(Vec3(a.x.x + sk, (0.0 - ck) - a.y.x, right.x), Vec3((0.0 - ck) - a.x.y, a.y.y - sk, right.y), below)

    def cycle(a) -> Mat3:
        """The same matrix on axes renamed y, z, x."""
        return Mat3(a.y.cycle(), a.z.cycle(), a.x.cycle())


class Sym3(NamedTuple):
    """A symmetric 3x3 matrix by its six distinct entries."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yy: Scalar
    yz: Scalar
    zz: Scalar

    def __add__(a, b: Sym3) -> Sym3:  # type: ignore[override]
        return Sym3(a.xx + b.xx, a.xy + b.xy, a.xz + b.xz, a.yy + b.yy, a.yz + b.yz, a.zz + b.zz)

    def __sub__(a, b: Sym3) -> Sym3:
        return Sym3(a.xx - b.xx, a.xy - b.xy, a.xz - b.xz, a.yy - b.yy, a.yz - b.yz, a.zz - b.zz)

    def __matmul__(a, v: Vec3) -> Vec3:
        return Vec3(
            a.xx * v.x + a.xy * v.y + a.xz * v.z,
            a.xy * v.x + a.yy * v.y + a.yz * v.z,
            a.xz * v.x + a.yz * v.y + a.zz * v.z,
        )

    def spin(a, c: Scalar, s: Scalar) -> Sym3:
        """Rz a Rz^T, with four products for the upper left block."""
        k = s * (a.yy - a.xx) - c * (a.xy + a.xy)
        sk = s * k
        side = Vec3(a.xz, a.yz, a.zz).spin(c, s)
        return Sym3(a.xx + sk, (0.0 - c * k) - a.xy, side.x, a.yy - sk, side.y, a.zz)

    def cycle(a) -> Sym3:
        """The same matrix on axes renamed y, z, x."""
        return Sym3(a.yy, a.yz, a.xy, a.zz, a.xz, a.xx)

    def rotate(a, R: Mat3) -> Sym3:
        """R a R^T for any rotation R."""
        x, y, z = a @ R.x, a @ R.y, a @ R.z
        return Sym3(R.x.dot(x), R.x.dot(y), R.x.dot(z), R.y.dot(y), R.y.dot(z), R.z.dot(z))


class Motion(NamedTuple):
    """A spatial motion vector."""

    ang: Vec3
    lin: Vec3

    def __add__(a, b: Motion) -> Motion:  # type: ignore[override]
        return Motion(a.ang + b.ang, a.lin + b.lin)

    def component(a, k: int) -> Scalar:
        return (a.ang.x, a.ang.y, a.ang.z, a.lin.x, a.lin.y, a.lin.z)[k]


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

    def power(a, m: Motion) -> Scalar:
        """The scalar product of a force and a motion."""
        return a.ang.dot(m.ang) + a.lin.dot(m.lin)


class RigidInertia(NamedTuple):
    """A rigid body: mass, first moment of mass (mass times centre), and rotational inertia about the frame's origin."""

    mass: Scalar
    moment: Vec3
    rotational: Sym3

    def __add__(a, b: RigidInertia) -> RigidInertia:  # type: ignore[override]
        return RigidInertia(a.mass + b.mass, a.moment + b.moment, a.rotational + b.rotational)

    def __matmul__(a, m: Motion) -> Force:
        return Force(a.rotational @ m.ang + a.moment.cross(m.lin), a.mass * m.lin - a.moment.cross(m.ang))

    def gyroscopic(a, w: Vec3) -> Force:
        """The force that the angular velocity w needs when the frame's origin is momentarily at rest."""
        return Force(w.cross(a.rotational @ w), w.cross(w.cross(a.moment)))

    def rate(a, B: Mat3, o: Vec3) -> Force:
        """The force for points that accelerate by o + B r; 2/3 of the work of a product and a gyroscopic force."""
        I, h = a.rotational, a.moment
        half = 0.5 * (I.xx + I.yy + I.zz)
        x, y, z = half - I.xx, half - I.yy, half - I.zz  # second moments of mass; the mixed ones are -xy, -xz, -yz
        yy_xx, zz_yy, xx_zz = B.y.y - B.x.x, B.z.z - B.y.y, B.x.x - B.z.z
        n = Vec3(
            I.xz * B.y.x - I.xy * B.z.x + y * B.z.y - z * B.y.z - I.yz * zz_yy,
            I.xy * B.z.y - I.yz * B.x.y + z * B.x.z - x * B.z.x - I.xz * xx_zz,
            I.yz * B.x.z - I.xz * B.y.z + x * B.y.x - y * B.x.y - I.xy * yy_xx,
        )
        return Force(n + h.cross(o), a.mass * o + B @ h)

    def column(a, k: int) -> Force:
        """The force for the unit motion along axis k."""
        return a @ unit_motion(k, 1.0)

    def articulated(a) -> ArticulatedInertia:
        h = a.moment
        return ArticulatedInertia(
            a.rotational,
            Mat3(Vec3(0.0, 0.0 - h.z, h.y), Vec3(h.z, 0.0, 0.0 - h.x), Vec3(0.0 - h.y, h.x, 0.0)),
            Sym3(a.mass, 0.0, 0.0, a.mass, 0.0, a.mass),
        )

    def spin(a, c: Scalar, s: Scalar) -> RigidInertia:
        return RigidInertia(a.mass, a.moment.spin(c, s), a.rotational.spin(c, s))

    def cycle(a) -> RigidInertia:
        return RigidInertia(a.mass, a.moment.cycle(), a.rotational.cycle())

    def rotate(a, R: Mat3) -> RigidInertia:
        return RigidInertia(a.mass, R @ a.moment, a.rotational.rotate(R))

    def shift(a, d: Scalar) -> RigidInertia:
        """The same body seen from an origin at -d along z."""
        md = a.mass * d
        z = a.moment.z + md
        k = d * (a.moment.z + z)
        I = a.rotational
        return RigidInertia(
            a.mass,
            Vec3(a.moment.x, a.moment.y, z),
            Sym3(I.xx + k, I.xy, I.xz - d * a.moment.x, I.yy + k, I.yz - d * a.moment.y, I.zz),
        )

    def translate(a, p: Vec3) -> RigidInertia:
        """The same body seen from an origin at -p."""
        k = a.moment + (0.5 * a.mass) * p
        x, y, z = k.x * p.x, k.y * p.y, k.z * p.z
        x, y, z = x + x, y + y, z + z
        I = a.rotational
        return RigidInertia(
            a.mass,
            a.moment + a.mass * p,
            Sym3(
                I.xx + (y + z),
                I.xy - (k.x * p.y + k.y * p.x),
                I.xz - (k.x * p.z + k.z * p.x),
                I.yy + (x + z),
                I.yz - (k.y * p.z + k.z * p.y),
                I.zz + (x + y),
            ),
        )


class ArticulatedInertia(NamedTuple):
    """A symmetric map [[A, C], [C^T, D]] from motion to force."""

    A: Sym3
    C: Mat3
    D: Sym3

    def __add__(a, b: ArticulatedInertia) -> ArticulatedInertia:  # type: ignore[override]
        return ArticulatedInertia(a.A + b.A, a.C + b.C, a.D + b.D)

    def __matmul__(a, m: Motion) -> Force:
        return Force(a.A @ m.ang + a.C @ m.lin, a.C.transpose() @ m.ang + a.D @ m.lin)

    def column(a, k: int) -> Force:
        """The force for the unit motion along axis k."""
        A, C, D = a.A, a.C, a.D
        if k == 2:
            return Force(Vec3(A.xz, A.yz, A.zz), C.z)
        if k == 0:
            return Force(Vec3(A.xx, A.xy, A.xz), C.x)
        if k == 1:
            return Force(Vec3(A.xy, A.yy, A.yz), C.y)
        if k == 3:
            return Force(Vec3(C.x.x, C.y.x, C.z.x), Vec3(D.xx, D.xy, D.xz))
        if k == 4:
            return Force(Vec3(C.x.y, C.y.y, C.z.y), Vec3(D.xy, D.yy, D.yz))
        return Force(Vec3(C.x.z, C.y.z, C.z.z), Vec3(D.xz, D.yz, D.zz))

    def minus_dyad(a, u: Force, w: Force) -> ArticulatedInertia:
        """a - u w^T for parallel u and w."""
        A, C, D = a.A, a.C, a.D
        m, f, n, g = u.ang, u.lin, w.ang, w.lin
        return ArticulatedInertia(
            Sym3(
                A.xx - m.x * n.x,
                A.xy - m.x * n.y,
                A.xz - m.x * n.z,
                A.yy - m.y * n.y,
                A.yz - m.y * n.z,
                A.zz - m.z * n.z,
            ),
            Mat3(C.x - m.x * g, C.y - m.y * g, C.z - m.z * g),
            Sym3(
                D.xx - f.x * g.x,
                D.xy - f.x * g.y,
                D.xz - f.x * g.z,
                D.yy - f.y * g.y,
                D.yz - f.y * g.z,
                D.zz - f.z * g.z,
            ),
        )

    def without(a, k: int) -> ArticulatedInertia:
        """The same map with row and column k set to the zeros that they are after a joint along k has been freed."""
        A, C, D = a.A, a.C, a.D
        if k == 2:
            return ArticulatedInertia(Sym3(A.xx, A.xy, 0.0, A.yy, 0.0, 0.0), Mat3(C.x, C.y, ZERO3), D)
        if k == 0:
            return ArticulatedInertia(Sym3(0.0, 0.0, 0.0, A.yy, A.yz, A.zz), Mat3(ZERO3, C.y, C.z), D)
        if k == 1:
            return ArticulatedInertia(Sym3(A.xx, 0.0, A.xz, 0.0, 0.0, A.zz), Mat3(C.x, ZERO3, C.z), D)
        x, y, z = C.x, C.y, C.z
        if k == 3:
            return ArticulatedInertia(
                A,
                Mat3(Vec3(0.0, x.y, x.z), Vec3(0.0, y.y, y.z), Vec3(0.0, z.y, z.z)),
                Sym3(0.0, 0.0, 0.0, D.yy, D.yz, D.zz),
            )
        if k == 4:
            return ArticulatedInertia(
                A,
                Mat3(Vec3(x.x, 0.0, x.z), Vec3(y.x, 0.0, y.z), Vec3(z.x, 0.0, z.z)),
                Sym3(D.xx, 0.0, D.xz, 0.0, 0.0, D.zz),
            )
        return ArticulatedInertia(
            A,
            Mat3(Vec3(x.x, x.y, 0.0), Vec3(y.x, y.y, 0.0), Vec3(z.x, z.y, 0.0)),
            Sym3(D.xx, D.xy, 0.0, D.yy, 0.0, 0.0),
        )

    def spin(a, c: Scalar, s: Scalar) -> ArticulatedInertia:
        return ArticulatedInertia(a.A.spin(c, s), a.C.spin(c, s), a.D.spin(c, s))

    def cycle(a) -> ArticulatedInertia:
        return ArticulatedInertia(a.A.cycle(), a.C.cycle(), a.D.cycle())

    def rotate(a, R: Mat3) -> ArticulatedInertia:
        return ArticulatedInertia(a.A.rotate(R), R.product(a.C).product(R.transpose()), a.D.rotate(R))

    def shift(a, d: Scalar) -> ArticulatedInertia:
        """The same map seen from an origin at -d along z."""
        A, C, D = a.A, a.C, a.D
        x = Vec3(C.x.x - d * D.xy, C.x.y - d * D.yy, C.x.z - d * D.yz)
        y = Vec3(C.y.x + d * D.xx, C.y.y + d * D.xy, C.y.z + d * D.xz)
        return ArticulatedInertia(
            Sym3(
                A.xx - d * (C.x.y + x.y),
                A.xy + d * (C.x.x - y.y),
                A.xz - d * C.z.y,
                A.yy + d * (C.y.x + y.x),
                A.yz + d * C.z.x,
                A.zz,
            ),
            Mat3(x, y, C.z),
            D,
        )

    def translate(a, p: Vec3) -> ArticulatedInertia:
        """The same map seen from an origin at -p: C' = C + p x D, A' = A - C px - (C' px)^T."""
        A, C, D = a.A, a.C, a.D
        u, v, w = p.cross(Vec3(D.xx, D.xy, D.xz)), p.cross(Vec3(D.xy, D.yy, D.yz)), p.cross(Vec3(D.xz, D.yz, D.zz))
        E = Mat3(
            Vec3(C.x.x + u.x, C.x.y + v.x, C.x.z + w.x),
            Vec3(C.y.x + u.y, C.y.y + v.y, C.y.z + w.y),
            Vec3(C.z.x + u.z, C.z.y + v.z, C.z.z + w.z),
        )
        x, y, z = C.x.cross(p), C.y.cross(p), C.z.cross(p)
        r, s, t = E.x.cross(p), E.y.cross(p), E.z.cross(p)
        return ArticulatedInertia(
            Sym3(
                A.xx - (x.x + r.x),
                A.xy - (x.y + s.x),
                A.xz - (x.z + t.x),
                A.yy - (y.y + s.y),
                A.yz - (y.z + t.y),
                A.zz - (z.z + t.z),
            ),
            E,
            D,
        )


class Transform(NamedTuple):
    """A frame (the child) placed in another (the parent).

    From the parent to the child: translate by `base`, turn about z by `yaw`, about x by `roll`, slide along z by `slide`,
    turn about z by `turn`; turns are (cosine, sine). One axis at a time is the cheapest way to move inertias. A joint whose
    rotation is not a turn about z says so by `dense` and has its orientation in `R`, and `base` = `p`. `p` is always the
    child's origin in the parent.
    """

    R: Mat3
    p: Vec3
    base: Vec3
    yaw: tuple[Scalar, Scalar]
    roll: tuple[Scalar, Scalar]
    slide: Scalar
    turn: tuple[Scalar, Scalar]
    dense: int

    def __matmul__(X, m: Motion) -> Motion:
        """A motion of the parent frame, in the child frame."""
        lin = m.lin - X.base.cross(m.ang)
        if X.dense == 1:
            T = X.R.transpose()
            return Motion(T @ m.ang, T @ lin)
        w = m.ang.spin(X.yaw[0], 0.0 - X.yaw[1]).cycle().spin(X.roll[0], 0.0 - X.roll[1]).cycle().cycle()
        l = lin.spin(X.yaw[0], 0.0 - X.yaw[1]).cycle().spin(X.roll[0], 0.0 - X.roll[1]).cycle().cycle()
        l = Vec3(l.x + X.slide * w.y, l.y - X.slide * w.x, l.z)
        return Motion(w.spin(X.turn[0], 0.0 - X.turn[1]), l.spin(X.turn[0], 0.0 - X.turn[1]))

    def rotate_to_child(X, a: Vec3) -> Vec3:
        if X.dense == 1:
            return X.R.transpose() @ a
        b = a.spin(X.yaw[0], 0.0 - X.yaw[1]).cycle().spin(X.roll[0], 0.0 - X.roll[1]).cycle().cycle()
        return b.spin(X.turn[0], 0.0 - X.turn[1])

    def rotate_to_parent(X, a: Vec3) -> Vec3:
        if X.dense == 1:
            return X.R @ a
        b = a.spin(X.turn[0], X.turn[1]).cycle().spin(X.roll[0], X.roll[1]).cycle().cycle()
        return b.spin(X.yaw[0], X.yaw[1])

    def orientation(X) -> Mat3:
        """The child's axes in the parent, as columns."""
        x = X.rotate_to_parent(Vec3(1.0, 0.0, 0.0))
        y = X.rotate_to_parent(Vec3(0.0, 1.0, 0.0))
        z = X.rotate_to_parent(Vec3(0.0, 0.0, 1.0))
        return Mat3(x, y, z).transpose()

    def force_to_parent(X, f: Force) -> Force:
        """X^T f."""
        if X.dense == 1:
            lin = X.R @ f.lin
            return Force(X.R @ f.ang + X.base.cross(lin), lin)
        l = f.lin.spin(X.turn[0], X.turn[1])
        n = f.ang.spin(X.turn[0], X.turn[1])
        n = Vec3(n.x - X.slide * l.y, n.y + X.slide * l.x, n.z)
        n = n.cycle().spin(X.roll[0], X.roll[1]).cycle().cycle().spin(X.yaw[0], X.yaw[1])
        l = l.cycle().spin(X.roll[0], X.roll[1]).cycle().cycle().spin(X.yaw[0], X.yaw[1])
        return Force(n + X.base.cross(l), l)

    def rigid_to_parent(X, I: RigidInertia) -> RigidInertia:
        """X^T I X."""
        if X.dense == 1:
            return I.rotate(X.R).translate(X.base)
        a = I.spin(X.turn[0], X.turn[1]).shift(X.slide).cycle().spin(X.roll[0], X.roll[1]).cycle().cycle()
        return a.spin(X.yaw[0], X.yaw[1]).translate(X.base)

    def articulated_to_parent(X, I: ArticulatedInertia) -> ArticulatedInertia:
        """X^T I X."""
        if X.dense == 1:
            return I.rotate(X.R).translate(X.base)
        a = I.spin(X.turn[0], X.turn[1]).shift(X.slide).cycle().spin(X.roll[0], X.roll[1]).cycle().cycle()
        return a.spin(X.yaw[0], X.yaw[1]).translate(X.base)


def acceleration_field(w: Vec3, alpha: Vec3) -> Mat3:
    """B with B r the acceleration, beside the origin's, of a point at r: skew(alpha) + skew(w)^2."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    return Mat3(
        Vec3(0.0 - (yy + zz), xy - alpha.z, xz + alpha.y),
        Vec3(xy + alpha.z, 0.0 - (xx + zz), yz - alpha.x),
        Vec3(xz - alpha.y, yz + alpha.x, 0.0 - (xx + yy)),
    )


def unit_motion(k: int, s: Scalar) -> Motion:
    """The motion s along axis k: 0, 1, 2 angular, 3, 4, 5 linear x, y, z."""
    return Motion(
        Vec3(s if k == 0 else 0.0, s if k == 1 else 0.0, s if k == 2 else 0.0),
        Vec3(s if k == 3 else 0.0, s if k == 4 else 0.0, s if k == 5 else 0.0),
    )


def rotation_from_quaternion(x: Scalar, y: Scalar, z: Scalar, w: Scalar) -> Mat3:
    """The rotation matrix of a unit quaternion with scalar part w."""
    a, b, c = x + x, y + y, z + z
    xx, yy, zz = a * x, b * y, c * z
    xy, xz, yz = a * y, a * z, b * z
    wx, wy, wz = a * w, b * w, c * w
    return Mat3(
        Vec3(1.0 - (yy + zz), xy - wz, xz + wy),
        Vec3(xy + wz, 1.0 - (xx + zz), yz - wx),
        Vec3(xz - wy, yz + wx, 1.0 - (xx + yy)),
    )


ZERO3 = Vec3(0.0, 0.0, 0.0)
ZERO_SYM3 = Sym3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
IDENTITY3 = Mat3(Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0))
ZERO_MOTION = Motion(ZERO3, ZERO3)
ZERO_FORCE = Force(ZERO3, ZERO3)
ZERO_RIGID = RigidInertia(0.0, ZERO3, ZERO_SYM3)
ZERO_ARTICULATED = ArticulatedInertia(ZERO_SYM3, Mat3(ZERO3, ZERO3, ZERO3), ZERO_SYM3)
NO_TURN = (1.0, 0.0)
IDENTITY = Transform(IDENTITY3, ZERO3, ZERO3, NO_TURN, NO_TURN, 0.0, NO_TURN, 0)
