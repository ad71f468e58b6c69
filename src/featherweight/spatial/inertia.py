"""Rigid and articulated inertias; only distinct entries are stored, so symmetric entries are never computed twice."""

from __future__ import annotations

from typing import NamedTuple

from .motion import ZERO_FORCE, Force, Motion, unit_motion
from .vectors import ZERO3, ZERO_SYM3, Mat3, Scalar, Sym3, Vec3


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
        """Return the force for the angular velocity w when the frame's origin is momentarily at rest."""
        return Force(w.cross(a.rotational @ w), w.cross(w.cross(a.moment)))

    def rate(a, B: Mat3, o: Vec3) -> Force:
        """Return the force for points with accelerations o + B r.

        It takes 2/3 of the operations of a product and a gyroscopic force.
        """
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
        """Return the force for the unit motion along axis k."""
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
        """Return the inertia of the same body about an origin at -d along z."""
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
        """Return the inertia of the same body about an origin at -p."""
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

    def centered(a) -> Sym3:
        """Return the rotational inertia about the centre of mass."""
        return a.translate((0.0 - 1.0 / a.mass) * a.moment).rotational


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
        """Return the force for the unit motion along axis k."""
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
        """Return a - u w^T for parallel u and w."""
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
        """Return the map with zeros in row and column k, which a free joint along k makes zero."""
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
        """Return the same map about an origin at -d along z."""
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
        """Return the same map about an origin at -p: C' = C + p x D, A' = A - C px - (C' px)^T."""
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


class CrossInertia(NamedTuple):
    """A map from the motion of one body to the force on another, by the forces for unit motions along the six axes."""

    columns: tuple[Force, ...]

    def __add__(a, b: CrossInertia) -> CrossInertia:  # type: ignore[override]
        return CrossInertia(tuple(f + g for f, g in zip(a.columns, b.columns, strict=True)))

    def __matmul__(a, m: Motion) -> Force:
        total = ZERO_FORCE
        for k, f in enumerate(a.columns):
            total = total + m.component(k) * f
        return total

    def column(a, k: int) -> Force:
        """Return the force for the unit motion along axis k."""
        return a.columns[k]

    def transpose(a) -> CrossInertia:
        rows = [[f.component(k) for f in a.columns] for k in range(6)]
        return CrossInertia(tuple(Force(Vec3(*row[:3]), Vec3(*row[3:])) for row in rows))

    def plus_dyad(a, u: Force, w: Force) -> CrossInertia:
        """Return a + u w^T."""
        return CrossInertia(tuple(f + w.component(k) * u for k, f in enumerate(a.columns)))

    def folded(a) -> ArticulatedInertia:
        """Return a + a^T, the inertia if both bodies are the same."""
        x, y, z, p, q, r = a.columns
        return ArticulatedInertia(
            Sym3(
                x.ang.x + x.ang.x,
                y.ang.x + x.ang.y,
                z.ang.x + x.ang.z,
                y.ang.y + y.ang.y,
                z.ang.y + y.ang.z,
                z.ang.z + z.ang.z,
            ),
            Mat3(
                Vec3(p.ang.x + x.lin.x, q.ang.x + x.lin.y, r.ang.x + x.lin.z),
                Vec3(p.ang.y + y.lin.x, q.ang.y + y.lin.y, r.ang.y + y.lin.z),
                Vec3(p.ang.z + z.lin.x, q.ang.z + z.lin.y, r.ang.z + z.lin.z),
            ),
            Sym3(
                p.lin.x + p.lin.x,
                q.lin.x + p.lin.y,
                r.lin.x + p.lin.z,
                q.lin.y + q.lin.y,
                r.lin.y + q.lin.z,
                r.lin.z + r.lin.z,
            ),
        )


class Mobility(NamedTuple):
    """The inverse of an articulated inertia: the map from a force on a body to its motion.

    Its blocks, [[linear for linear, linear for angular], [., angular for angular]], transform between frames as an inertia's
    do.
    """

    blocks: ArticulatedInertia

    def motion(a, f: Force) -> Motion:
        """Return the motion for a force."""
        D, C, A = a.blocks
        return Motion(C.transpose() @ f.lin + A @ f.ang, D @ f.lin + C @ f.ang)

    def plus_symmetric(a, s: Motion, g: Motion) -> Mobility:
        """Return a + s g^T + g s^T."""
        D, C, A = a.blocks
        w, v, u, h = s.ang, s.lin, g.ang, g.lin
        return Mobility(
            ArticulatedInertia(
                D + _symmetric_product(v, h),
                Mat3(C.x + (v.x * u + h.x * w), C.y + (v.y * u + h.y * w), C.z + (v.z * u + h.z * w)),
                A + _symmetric_product(w, u),
            )
        )

    def translate(a, p: Vec3) -> Mobility:
        """Return the same map about an origin at p."""
        return Mobility(a.blocks.translate(Vec3(0.0 - p.x, 0.0 - p.y, 0.0 - p.z)))


def mobility(G, begin, k: int) -> Mobility:
    """Return a mobility from the lower triangle of its matrix on [torque; force].

    The rows of the triangle are the ends of six lists in G; list i ends at begin[i + 1].
    """
    a, b, c = begin[k + 1] - 1, begin[k + 2] - 2, begin[k + 3] - 3
    x, y, z = begin[k + 4] - 4, begin[k + 5] - 5, begin[k + 6] - 6
    return Mobility(
        ArticulatedInertia(
            Sym3(G[x + 3], G[y + 3], G[z + 3], G[y + 4], G[z + 4], G[z + 5]),
            Mat3(Vec3(G[x], G[x + 1], G[x + 2]), Vec3(G[y], G[y + 1], G[y + 2]), Vec3(G[z], G[z + 1], G[z + 2])),
            Sym3(G[a], G[b], G[c], G[b + 1], G[c + 1], G[c + 2]),
        )
    )


def _symmetric_product(a: Vec3, b: Vec3) -> Sym3:
    """Return a b^T + b a^T."""
    return Sym3(
        2.0 * (a.x * b.x),
        a.x * b.y + b.x * a.y,
        a.x * b.z + b.x * a.z,
        2.0 * (a.y * b.y),
        a.y * b.z + b.y * a.z,
        2.0 * (a.z * b.z),
    )


ZERO_RIGID = RigidInertia(0.0, ZERO3, ZERO_SYM3)
ZERO_ARTICULATED = ArticulatedInertia(ZERO_SYM3, Mat3(ZERO3, ZERO3, ZERO3), ZERO_SYM3)
ZERO_CROSS = CrossInertia((ZERO_FORCE,) * 6)
ZERO_MOBILITY = Mobility(ZERO_ARTICULATED)
