"""Volumes of sensors: tests for points inside and for rays that hit them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from ..array_types import Booleans, Matrix
from ..collision.rays import RayShapes, ray_and_shape
from ..collision.shape_parts import KINDS
from ..collision.triples import Triple
from ..engine.loops.kernels import compiled
from ..model.types import SensorZone, ShapeType

HALVED = {ShapeType.BOX: (0.5, 0.5, 0.5), ShapeType.CYLINDER: (1.0, 0.5), ShapeType.CAPSULE: (1.0, 0.5)}
WHOLE = (1.0, 1.0, 1.0)


def zones_of(zones: Sequence[SensorZone]) -> RayShapes:
    """Return volumes, in the frames of sensors, as shapes that rays hit."""
    n, none = len(zones), np.zeros(0)
    sizes = [[*(x * s for x, s in zip(z.size, HALVED.get(z.type, WHOLE), strict=False)), 0.0, 0.0][:3] for z in zones]
    numbers = np.array([KINDS[z.type] for z in zones], np.int64), np.zeros(n, np.int64), np.array(sizes, float).reshape(-1, 3)
    return RayShapes(*numbers, np.zeros((n, 4)), np.zeros((n, 4), np.int64), np.zeros((n, 6)), np.zeros((0, 9)), none)


def is_met(zones: RayShapes, k: int, p: Triple, d: Triple) -> bool:
    """Return whether a ray from p along a unit vector d, in the frame of a zone, hits it or starts inside."""
    return ray_and_shape(p, d, zones, k) < inf


def is_inside(zones: RayShapes, k: int, p: Triple) -> bool:
    """Return whether a point in the frame of a zone, which is convex, is inside it or on its surface."""
    return is_met(zones, k, p, (0.0, 0.0, 1.0)) and is_met(zones, k, p, (0.0, 0.0, -1.0))


@compiled
def are_inside(zones: RayShapes, points: Matrix, inside: Booleans) -> None:
    """Write whether points (n, 3) are inside of the first zone."""
    for i in range(len(points)):
        inside[i] = is_inside(zones, 0, (points[i, 0], points[i, 1], points[i, 2]))
