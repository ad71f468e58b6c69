"""Forces at frames as rows of external forces on bodies."""

from __future__ import annotations

from typing import Any

from ..spatial import Vec3


def vector(x, first: int) -> Any:
    """Return three numbers of a list as a vector."""
    return Vec3(x[first], x[first + 1], x[first + 2])


def wrench_on_body(body: int, R, p, in_world: bool, placement, wrench, at, rows) -> None:
    """Write external forces (nbodies, 6) of a wrench (force, moment) at a point `at` of a frame, in axes of world or frame.

    The frame is placed on its body by R (rows) and p; `placement` is that of the frame in the world.
    """
    force, moment = vector(wrench, 0), vector(wrench, 3)
    if in_world:
        x, y, z = (Vec3(placement[0][i], placement[1][i], placement[2][i]) for i in range(3))
        force, moment = (Vec3(x.dot(w), y.dot(w), z.dot(w)) for w in (force, moment))
    moment = moment + vector(at, 0).cross(force)
    X, Y, Z = (Vec3(*row) for row in R)
    force, moment = (Vec3(X.dot(w), Y.dot(w), Z.dot(w)) for w in (force, moment))
    moment = moment + Vec3(*p).cross(force)
    for k, w in enumerate((force, moment)):
        for i, value in enumerate((w.x, w.y, w.z)):
            rows[body][3 * k + i] = value
