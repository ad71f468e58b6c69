"""Boxes of uniform density with the mass, centre and inertia of bodies, and ellipsoids with the extents of shapes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Array
from .model import Model
from .types import Body, Matrix, Shape, ShapeType, Vector, as_matrix, as_vector


class BodyInertia(NamedTuple):
    """The mass [kg], centre of mass (3,) [m], and inertia (3, 3) about it [kg m²] of a body, in its frame of the file."""

    mass: float
    center: Array
    rotational: Array


class Box(NamedTuple):
    """The lengths (3,) [m] of a box along the columns of a rotation (3, 3), and its centre (3,) [m]."""

    lengths: Array
    rotation: Array
    center: Array


def body_inertias(model: Model) -> dict[str, BodyInertia]:
    """Return the inertia of each moving body, with everything that is fixed to it, by the body's name."""
    tree, inertias = model.tree, {}
    for body, (row, pose) in zip(model.bodies, model.placed_bodies, strict=True):
        xx, xy, xz, yy, yz, zz = tree.inertia[row]
        mass, moment = float(tree.mass[row]), np.array(tree.moment[row])
        center = moment / mass if mass > 0.0 else np.zeros(3)
        about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        about_center = about_origin - mass * (center @ center * np.eye(3) - np.outer(center, center))
        R = np.array(pose.R)
        inertias[body.name] = BodyInertia(mass, R.T @ (center - np.array(pose.p)), R.T @ about_center @ R)
    return inertias


def equivalent_box(inertia: BodyInertia) -> Box | None:
    """Return the box of uniform density with this inertia; None without mass.

    A box with sides a, b, c has the principal moment m (b² + c²) / 12 about its first axis, so a² is 6 / m times the sum of
    the other two moments minus the first. Impossible moments give a side of zero.
    """
    if inertia.mass <= 0.0:
        return None
    moments, axes = np.linalg.eigh((inertia.rotational + inertia.rotational.T) / 2)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    return Box(box_lengths(inertia.mass, moments), axes, inertia.center)


def box_lengths(mass: float, moments: Array) -> Array:
    """Return the lengths (3,) [m] of the box with principal moments (3,)."""
    squares = 6.0 / mass * (moments.sum() - 2.0 * moments)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def box_of_link(body: Body) -> tuple[Matrix, Vector]:
    """Return the axes, as columns in the link's frame, and lengths [m] of the box of a link, along the axes of its file."""
    mass, center, (xx, xy, xz, yy, yz, zz) = body.inertia
    rotational = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if body.principal is None:
        box = equivalent_box(BodyInertia(mass, np.array(center), rotational))
        assert box is not None  # it has mass
        return as_matrix(box.rotation), as_vector(box.lengths)
    R = np.array(body.principal)
    return body.principal, as_vector(box_lengths(mass, np.diag(R.T @ rotational @ R)))


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
