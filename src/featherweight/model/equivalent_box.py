"""Boxes of uniform density with the mass, centre and inertia of bodies, and ellipsoids with the extents of shapes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Array
from .types import Body, Inertia, Matrix, Shape, ShapeType, Vector, as_matrix, as_vector, transpose


class Box(NamedTuple):
    """The lengths (3,) [m] of a box along the columns of a rotation (3, 3), and its centre (3,) [m]."""

    lengths: Array
    rotation: Array
    center: Array


def equivalent_box(inertia: Inertia) -> Box | None:
    """Return the box of uniform density with this inertia; None without mass.

    A box with sides a, b, c has the principal moment m (b² + c²) / 12 about its first axis, so a² is 6 / m times the sum of
    the other two moments minus the first. Impossible moments give a side of zero.
    """
    if inertia.mass <= 0.0:
        return None
    moments, axes = np.linalg.eigh(np.array(inertia.rotational.matrix))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    return Box(box_lengths(inertia.mass, moments), axes, np.array(inertia.center))


def box_lengths(mass: float, moments: Array) -> Array:
    """Return the lengths (3,) [m] of the box with principal moments (3,)."""
    squares = 6.0 / mass * (moments.sum() - 2.0 * moments)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def box_of_link(body: Body) -> tuple[Matrix, Vector]:
    """Return the axes, as columns in the link's frame, and lengths [m] of the box of a link, along the axes of its file."""
    if body.principal is None:
        box = equivalent_box(body.inertia)
        assert box is not None  # it has mass
        return as_matrix(box.rotation), as_vector(box.lengths)
    xx, _, _, yy, _, zz = body.inertia.rotational.rotated(transpose(body.principal))
    return body.principal, as_vector(box_lengths(body.inertia.mass, np.array([xx, yy, zz])))


def semi_axes(shape: Shape) -> Vector | None:
    """Return the semi-axes [m] of the ellipsoid with the extents of a primitive shape, along its axes; None for others."""
    match shape.type, shape.size:
        case ShapeType.SPHERE, (r,):
            return r, r, r
        case ShapeType.CAPSULE, (r, length):
            return r, r, 0.5 * length + r
        case ShapeType.CYLINDER, (r, length):
            return r, r, 0.5 * length
        case ShapeType.BOX, (x, y, z):
            return 0.5 * x, 0.5 * y, 0.5 * z
        case ShapeType.ELLIPSOID, (x, y, z):
            return x, y, z
    return None
