"""Shapes on bodies, the ground, and pairs of shapes that may touch, as arrays for compiled functions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..array_types import Booleans, IntegerMatrix, Integers, Matrix, Shared, Tensor, Vector
from .face_clipping import MOST_POINTS
from .height_fields import MOST_PATCHES

SPHERE, CAPSULE, BOX, CYLINDER, ELLIPSOID, HULL, PLANE, HEIGHTS = range(8)
ROUND = 8  # corners of the polygon that approximates a cylinder's end
MOST_SUPPORTS, MOST_FACES = 128, 256  # greatest size of a polytope in the difference of two shapes


class CollisionScene(NamedTuple):
    """Shapes and pairs of shapes, by number. Frames have their origin at the centre of the bounding ball, also for hulls.

    In a pair, the shape with the lower kind comes first; `first` is the first of the pair's candidates for contacts.
    """

    kind: Shared[Integers]  # (shapes,)
    body: Shared[Integers]  # (shapes,) index among the bodies that may touch; -1 for the world
    placement: Shared[Matrix]  # (shapes, 12) placement rows in the body's frame (see `triples`)
    size: Matrix  # (shapes, 3) [m]: radius and half length, half lengths, or radii; the centroid of a hull
    radius: Vector  # (shapes,) [m] radius of the bounding ball
    data: Shared[IntegerMatrix]  # (shapes, 8) see `part_ranges`
    pair: Shared[IntegerMatrix]  # (pairs, 2)
    margin: Shared[Vector]  # (pairs,) [m] margin of the pair
    gap: Shared[Vector]  # (pairs,) [m] distance beyond the margin across which adhesion acts, so contacts are needed
    first: Shared[Integers]  # (pairs,)
    enabled: Shared[Booleans]  # (pairs,)
    balls: Shared[Matrix]  # (n, 4) centre and radius in the shape's frame of balls that represent it on height fields
    hulls: Shared[Hulls]
    fields: Shared[HeightFields]
    by_file: bool  # contact points of boxes, capsules and cylinders are those of MuJoCo


class HeightFields(NamedTuple):
    """All height fields (see `height_fields`) in one set of arrays."""

    heights: Vector  # (n,)
    grid: IntegerMatrix  # (fields, 3)
    edges: Matrix  # (fields, 6)


class Hulls(NamedTuple):
    """All convex hulls of meshes (see `hulls`) in one set of arrays."""

    vertices: Matrix  # (n, 3)
    links: Integers
    linked: Integers
    around: Matrix
    faces: Integers
    corners: Integers
    normals: Matrix
    owners: Integers
    owned: Integers
    starts: Integers


class CollisionWork(NamedTuple):
    """Workspace of `find_contacts` for one thread."""

    placement: Matrix  # (shapes, 12) in the world
    offset: Matrix  # (shapes, 3) [m] displacement of each shape from that of the scene, in its body's frame
    velocity: Matrix  # (shapes, 3) velocities of centres
    turning: Vector  # (shapes,) [rad] rotation in a step
    ball: Vector  # (shapes,) [m] radius of a ball that contains the shape and its motion in a step
    remembers: Booleans  # (1,) whether gaps are remembered, because the next call is likely about the same robot
    travel: Vector  # (shapes,) [m] bound of the path of a shape's points in all calls, and
    reach: Vector  # (shapes,) [m] the same after the step
    apart_until: Vector  # (pairs,) [m] gap of an earlier call, and the travel of both shapes then
    apart: Matrix  # (pairs, 3) separating directions of earlier steps; zero if unknown
    found: Matrix  # (n, 8) point, normal, gap, and number among the pair's candidates
    polygons: Tensor  # (3, n, 3)
    supports: Matrix  # (n, 9) points of the difference of two shapes, and the points of both shapes
    planes: Matrix  # (n, 4) planes of faces: normal, and distance from the origin
    triangles: IntegerMatrix  # (n, 3) numbers of supports
    horizon: IntegerMatrix  # (n, 2) numbers of supports
    weights: Vector  # (8,)
    nearest: Vector  # (9,) result of `gap_of_convex`
    face: Integers  # (1,) row of `triangles`, another result of `gap_of_convex`
    corners: IntegerMatrix  # (2, 3) supports of which a face of the polytope is made, those of other points of a shape first
    candidates: IntegerMatrix  # (2, n) numbers of faces of both shapes at these points
    numbers: IntegerMatrix  # (n, 2) see `by_file.penetration`, also below
    middle: Vector  # (3,) a point inside the polytope
    adjacent: IntegerMatrix  # (n, 3) numbers of faces
    listed: Integers  # (n,)
    places: Integers  # (n,)
    stack: IntegerMatrix  # (n, 3)
    patches: Matrix  # (n, 11), see `height_fields`


def search_arrays() -> dict[str, Any]:
    """Return the workspace arrays for distances and depths of convex shapes."""
    return {
        "supports": np.zeros((MOST_SUPPORTS, 9)),
        "planes": np.zeros((MOST_FACES, 4)),
        "triangles": np.zeros((MOST_FACES, 3), np.int64),
        "horizon": np.zeros((MOST_FACES, 2), np.int64),
        "weights": np.zeros(8),
        "nearest": np.zeros(9),
        "face": np.zeros(1, np.int64),
    }


def collision_work(scene: CollisionScene) -> CollisionWork:
    """Return the workspace of one thread."""
    shapes = len(scene.kind)
    corners = int(np.diff(scene.hulls.faces).max(initial=2 * ROUND))
    balls = int((scene.data[:, 2] - scene.data[:, 1]).max(initial=0))
    return CollisionWork(
        placement=np.zeros((shapes, 12)),
        offset=np.zeros((shapes, 3)),
        velocity=np.zeros((shapes, 3)),
        turning=np.zeros(shapes),
        ball=np.zeros(shapes),
        remembers=np.zeros(1, bool),
        travel=np.zeros(shapes),
        reach=np.zeros(shapes),
        apart_until=np.full(len(scene.pair), -np.inf),
        apart=np.zeros((len(scene.pair), 3)),
        found=np.zeros((max(MOST_PATCHES * balls, 2 * MOST_POINTS), 8)),
        polygons=np.zeros((3, 2 * corners + 4, 3)),
        **search_arrays(),
        corners=np.zeros((2, 3), np.int64),
        candidates=np.zeros((2, MOST_FACES), np.int64),
        numbers=np.zeros((MOST_SUPPORTS, 2), np.int64),
        middle=np.zeros(3),
        adjacent=np.zeros((MOST_FACES, 3), np.int64),
        listed=np.zeros(MOST_FACES, np.int64),
        places=np.zeros(MOST_FACES, np.int64),
        stack=np.zeros((MOST_FACES, 3), np.int64),
        patches=np.zeros((MOST_PATCHES, 11)),
    )
