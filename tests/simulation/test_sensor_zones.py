"""Tests of sensor volumes against MuJoCo's rays: a point is inside if rays in opposite directions both meet the surface."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from featherweight.model.types import SensorZone, ShapeType
from featherweight.simulation.sensors.records import are_inside, is_met, zones_of

ZONES = {
    ShapeType.SPHERE: ((0.7,), (0.7, 0, 0), mujoco.mjtGeom.mjGEOM_SPHERE),
    ShapeType.CAPSULE: ((0.4, 1.0), (0.4, 0.5, 0), mujoco.mjtGeom.mjGEOM_CAPSULE),
    ShapeType.CYLINDER: ((0.5, 1.2), (0.5, 0.6, 0), mujoco.mjtGeom.mjGEOM_CYLINDER),
    ShapeType.ELLIPSOID: ((0.3, 0.6, 0.9), (0.3, 0.6, 0.9), mujoco.mjtGeom.mjGEOM_ELLIPSOID),
    ShapeType.BOX: ((0.6, 1.0, 1.6), (0.3, 0.5, 0.8), mujoco.mjtGeom.mjGEOM_BOX),
}


@pytest.mark.parametrize("kind", ZONES)
def test_rays_and_points_are_where_they_are_in_mujoco(kind: ShapeType) -> None:
    rng, (size, theirs, geom) = np.random.default_rng(1), ZONES[kind]
    points, directions = rng.uniform(-1, 1, (2000, 3)), rng.standard_normal((2000, 3))
    directions[:300] = np.eye(3)[rng.integers(0, 3, 300)] * rng.choice((-1.0, 1.0), (300, 1))  # along faces and axes
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    zones = zones_of([SensorZone(kind, size)])

    def meets(point: object, direction: object) -> bool:
        eye = np.eye(3).ravel()
        distance = mujoco.mju_rayGeom(np.zeros(3), eye, np.array(theirs, float), point, direction, geom, None)
        return bool(distance >= 0.0)

    ahead = np.array([meets(p, d) for p, d in zip(points, directions, strict=True)])
    behind = np.array([meets(p, -d) for p, d in zip(points, directions, strict=True)])
    met = [is_met(zones, 0, p, d) for p, d in zip(points.tolist(), directions.tolist(), strict=True)]
    np.testing.assert_array_equal(met, ahead)
    inside = np.zeros(len(points), bool)
    are_inside(zones, points, inside)
    np.testing.assert_array_equal(inside, ahead & behind)
    assert 0.05 < (ahead & behind).mean() < ahead.mean() < 0.9
