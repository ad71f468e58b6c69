"""Points and spheres that approximate a shape on height fields and on a given ground."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from ..array_types import Matrix, Vector
from ..model.types import Shape, ShapeType
from .hulls import mesh_vertices
from .triples import Triple

RIM = 12  # points on the rim of a cylinder
DIRECTIONS = np.array([d for d in itertools.product((-1.0, 0.0, 1.0), repeat=3) if any(d)])  # 26


def local_stand_ins(shape: Shape) -> tuple[float, Sequence[Triple] | Matrix]:
    """Return the radius of the spheres that approximate a shape, and their centres in its frame (a mesh's in its body's).

    Planes and height fields have none. Raises ValueError or ImportError for an unreadable mesh.
    """
    size = shape.size
    match shape.type:
        case ShapeType.SPHERE:
            return size[0], [(0.0, 0.0, 0.0)]
        case ShapeType.CAPSULE:
            return size[0], [(0.0, 0.0, -0.5 * size[1]), (0.0, 0.0, 0.5 * size[1])]
        case ShapeType.BOX:
            return 0.0, list(box_corners(size))
        case ShapeType.CYLINDER:
            angles = [2.0 * math.pi * k / RIM for k in range(RIM)]
            ends = (-0.5 * size[1], 0.5 * size[1])
            return 0.0, [(size[0] * math.cos(a), size[0] * math.sin(a), z) for z in ends for a in angles]
        case ShapeType.ELLIPSOID:
            axes = np.array(size)
            return 0.0, axes**2 * DIRECTIONS / np.linalg.norm(axes * DIRECTIONS, axis=1)[:, None]
    return 0.0, extreme_points(mesh_vertices(shape))


def extreme_points(vertices: Matrix) -> Matrix:
    """Return those of the vertices (n, 3) that are farthest along one of many directions."""
    farthest: Matrix = vertices[np.unique((DIRECTIONS @ vertices.T).argmax(axis=1))]
    return farthest


def box_corners(size: Sequence[float] | Vector) -> Iterator[Triple]:
    """Yield the corners of a box of these lengths in its frame."""
    for signs in itertools.product((-0.5, 0.5), repeat=3):
        yield signs[0] * size[0], signs[1] * size[1], signs[2] * size[2]
