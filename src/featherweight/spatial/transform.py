"""Placements of frames in other frames."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from .coriolis import Coriolis
from .inertia import ArticulatedInertia, CrossInertia, Mobility, RigidInertia
from .motion import Force, Motion
from .vectors import IDENTITY3, ZERO3, Mat3, Scalar, Vec3

Inertia = TypeVar("Inertia", RigidInertia, ArticulatedInertia)


class Transform(NamedTuple):
    """The placement of a frame (the child) in another (the parent).

    From the parent to the child: translate by `base`, rotate about z by `yaw`, about x by `roll`, slide along z by `slide`,
    rotate about z by `turn`; rotations are (cosine, sine). Steps along single axes are the cheapest way to transform inertias.
    For a joint whose rotation is not about z, `dense` is set, `R` is the orientation, and `base` = `p`. `p` is always the
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
        """Return a motion of the parent frame in the child frame."""
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
        """Return the child's axes in the parent, as columns."""
        x = X.rotate_to_parent(Vec3(1.0, 0.0, 0.0))
        y = X.rotate_to_parent(Vec3(0.0, 1.0, 0.0))
        z = X.rotate_to_parent(Vec3(0.0, 0.0, 1.0))
        return Mat3(x, y, z).transpose()

    def axes_in_child(X, R: Mat3) -> Mat3:
        """Return the child's axes, as columns, if those of the parent are R."""
        return Mat3(X.rotate_to_child(R.x), X.rotate_to_child(R.y), X.rotate_to_child(R.z))

    def unturned(X) -> Transform:
        """Return the same placement without the last rotation about z."""
        return Transform(X.R, X.p, X.base, X.yaw, X.roll, X.slide, NO_TURN, X.dense)

    def force_to_parent(X, f: Force) -> Force:
        """Return X^T f."""
        if X.dense == 1:
            lin = X.R @ f.lin
            return Force(X.R @ f.ang + X.base.cross(lin), lin)
        l = f.lin.spin(X.turn[0], X.turn[1])
        n = f.ang.spin(X.turn[0], X.turn[1])
        n = Vec3(n.x - X.slide * l.y, n.y + X.slide * l.x, n.z)
        n = n.cycle().spin(X.roll[0], X.roll[1]).cycle().cycle().spin(X.yaw[0], X.yaw[1])
        l = l.cycle().spin(X.roll[0], X.roll[1]).cycle().cycle().spin(X.yaw[0], X.yaw[1])
        return Force(n + X.base.cross(l), l)

    def inertia_to_parent(X, I: Inertia) -> Inertia:
        """Return X^T I X, for a rigid or an articulated inertia."""
        if X.dense == 1:
            return I.rotate(X.R).translate(X.base)
        a = I.spin(X.turn[0], X.turn[1]).shift(X.slide).cycle().spin(X.roll[0], X.roll[1]).cycle().cycle()
        return a.spin(X.yaw[0], X.yaw[1]).translate(X.base)

    def cross_inertia_to_parent(X, B: CrossInertia) -> CrossInertia:
        """Return B X, for a map B from motions of the child."""
        return CrossInertia(tuple(map(X.force_to_parent, B.transpose().columns))).transpose()

    def coriolis_to_parent(X, N: Coriolis, I: RigidInertia, u: Vec3) -> Coriolis:
        """Return N in the parent frame, for bodies with the inertia I there that all move faster by u there."""
        if X.dense == 1:
            a = N.rotate(X.R)
        else:
            a = N.spin(X.turn[0], X.turn[1]).cycle().spin(X.roll[0], X.roll[1]).cycle().cycle().spin(X.yaw[0], X.yaw[1])
        return a.moved_along(I, u, X.p)

    def mobility_to_child(X, O: Mobility) -> Mobility:
        """Return the parent frame's mobility in the child frame."""
        b = O.blocks.translate(Vec3(0.0 - X.base.x, 0.0 - X.base.y, 0.0 - X.base.z))
        if X.dense == 1:
            return Mobility(b.rotate(X.R.transpose()))
        b = b.spin(X.yaw[0], 0.0 - X.yaw[1]).cycle().spin(X.roll[0], 0.0 - X.roll[1]).cycle().cycle()
        return Mobility(b.shift(0.0 - X.slide).spin(X.turn[0], 0.0 - X.turn[1]))


NO_TURN = (1.0, 0.0)
IDENTITY = Transform(IDENTITY3, ZERO3, ZERO3, NO_TURN, NO_TURN, 0.0, NO_TURN, 0)
