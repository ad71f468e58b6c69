"""What may touch, as arrays for compiled functions: shapes on bodies, the ground, and pairs of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .face_clipping import MOST_POINTS
from .height_fields import MOST_PATCHES

Array = np.ndarray[Any, np.dtype[Any]]

SPHERE, CAPSULE, BOX, CYLINDER, ELLIPSOID, HULL, PLANE, HEIGHTS = range(8)
ROUND = 8  # corners of the polygon that stands for a cylinder's end
MOST_SUPPORTS, MOST_FACES = 128, 256  # of a polytope within the difference of two shapes


class CollisionScene(NamedTuple):
    """Shapes, numbered, and pairs of them. A hull's frame has its origin at the middle of the ball around it, as others have.

    A pair's first shape has the lower kind; of its candidates for contact the first is `first`.
    """

    kind: Any  # (shapes,) int
    body: Any  # (shapes,) int, among the bodies that may touch; -1 for the world
    placement: Any  # (shapes, 12) rows of placement in the body's frame (see `triples`)
    size: Any  # (shapes, 3) [m]: radius and half length, half lengths, or radii
    radius: Any  # (shapes,) [m] of the ball around it
    data: Any  # (shapes, 8) int: see `part_ranges`
    pair: Any  # (pairs, 2) int
    margin: Any  # (pairs,) [m] of their own
    first: Any  # (pairs,) int
    enabled: Any  # (pairs,) bool
    balls: Any  # (n, 4) centre and radius, in the shape's frame: what stands for it on a height field
    hulls: Any  # Hulls
    fields: Any  # HeightFields


class HeightFields(NamedTuple):
    """All height fields (see `height_fields`), in one set of arrays."""

    heights: Any  # (n,)
    grid: Any  # (fields, 3) int
    edges: Any  # (fields, 6)


class Hulls(NamedTuple):
    """All convex hulls of meshes (see `hulls`), in one set of arrays."""

    vertices: Any  # (n, 3)
    links: Any
    linked: Any
    around: Any
    faces: Any
    corners: Any
    normals: Any
    owners: Any
    owned: Any
    starts: Any


class CollisionWork(NamedTuple):
    """Room for `find_contacts` to work in; of one thread."""

    placement: Any  # (shapes, 12) in the world
    velocity: Any  # (shapes, 3) of middles
    turning: Any  # (shapes,) [rad] of a step
    ball: Any  # (shapes,) [m] radius of the ball around a shape and its way in a step
    apart: Any  # (pairs, 3) directions along which shapes were apart; zero where none is known
    found: Any  # (n, 8) point, normal, gap, and number among the pair's candidates
    ends: Any  # (2, 3)
    polygons: Any  # (3, n, 3)
    supports: Any  # (n, 9) points of the difference of two shapes, and those of both that they are of
    planes: Any  # (n, 4) of faces: normal, and distance from the origin
    triangles: Any  # (n, 3) int, of supports
    horizon: Any  # (n, 2) int, of supports
    weights: Any  # (8,)
    nearest: Any  # (9,) what `gap_of_convex` writes
    patches: Any  # (n, 11), see `height_fields`


def collision_work(scene: CollisionScene) -> CollisionWork:
    """Room for one thread."""
    shapes = len(scene.kind)
    corners = int(np.diff(scene.hulls.faces).max(initial=ROUND))
    balls = int((scene.data[:, 2] - scene.data[:, 1]).max(initial=0))
    return CollisionWork(
        placement=np.zeros((shapes, 12)),
        velocity=np.zeros((shapes, 3)),
        turning=np.zeros(shapes),
        ball=np.zeros(shapes),
        apart=np.zeros((len(scene.pair), 3)),
        found=np.zeros((max(MOST_PATCHES * balls, 2 * MOST_POINTS), 8)),
        ends=np.zeros((2, 3)),
        polygons=np.zeros((3, 2 * corners + 4, 3)),
        supports=np.zeros((MOST_SUPPORTS, 9)),
        planes=np.zeros((MOST_FACES, 4)),
        triangles=np.zeros((MOST_FACES, 3), np.int64),
        horizon=np.zeros((MOST_FACES, 2), np.int64),
        weights=np.zeros(8),
        nearest=np.zeros(9),
        patches=np.zeros((MOST_PATCHES, 11)),
    )
