"""The logarithm of a rotation matrix without branches and without arc tangent, so that it can be traced.

    Q = 4 q qᵀ                    linear in R, q the unit quaternion (s, u)
    v = Q c,  q = v / |v|         for any c with q . c not zero
    θ u / |u| = 8 u f(t²) / ((1 + s) (1 + sqrt(1 + |u|²/(1 + s)²)))        t = tan(θ/8), f(t²) = arctan(t)/t

With c = (1, 0, 0, 0) the scalar part s is not negative, so the rotation is the short one. Here c also has small further
components, so that q is defined for half a turn about any axis outside a plane that no robot meets by construction.
"""

from __future__ import annotations

from .vectors import Mat3, Vec3, sqrt

ASIDE = (2.9e-8, 5.3e-8, 7.1e-8)  # c after its first component
ARC_TANGENT = (  # f on [0, tan²(pi/8)], interpolated at Chebyshev nodes; error 2e-18
    1.0,
    -0.3333333333333312,
    0.1999999999994035,
    -0.14285714279197312,
    0.11111110742286896,
    -0.0909089673297879,
    0.0769204396500265,
    -0.06662936116136517,
    0.058467627400560856,
    -0.05034575594522044,
    0.03795171422296338,
    -0.017790395523288063,
)


def rotation_vector(R: Mat3) -> Vec3:
    """Return the rotation vector, of length at most pi [rad], of a rotation matrix.

    If the angle is within 2e-7 of pi, the result may be the rotation in the opposite direction.
    """
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R
    x, y, z = zy - yz, xz - zx, yx - xy
    a, b, c = xy + yx, yz + zy, zx + xz
    p, q, r = ASIDE
    s = 1.0 + xx + yy + zz + p * x + q * y + r * z
    u = Vec3(
        x + p * (1.0 + xx - yy - zz) + q * a + r * c,
        y + p * a + q * (1.0 - xx + yy - zz) + r * b,
        z + p * c + q * b + r * (1.0 - xx - yy + zz),
    )
    length = sqrt(s * s + u.dot(u))
    whole = 1.0 / (length + s)
    t = sqrt(1.0 + (whole * whole) * u.dot(u))  # u / (length + s) is tan(θ/4)
    quarter = 1.0 / (1.0 + t)
    w2 = (whole * quarter) * (whole * quarter) * u.dot(u)
    f = 0.0
    for coefficient in reversed(ARC_TANGENT):
        f = f * w2 + coefficient
    turn: Vec3 = (8.0 * whole * quarter * f) * u
    return turn
