"""Random pairs of shapes, conditions for their exact contacts, and the same pairs in MuJoCo and coal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.array_types import Array
from featherweight.collision.collision_scene import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    HULL,
    PLANE,
    SPHERE,
    CollisionScene,
    CollisionWork,
    collision_work,
)  # fmt: skip
from featherweight.collision.detection import contacts_of_pair, place_shapes
from featherweight.collision.shape_parts import joined_hulls
from featherweight.robot.collision import shape_pairs
from featherweight.simulation.scene import TouchingParts
from featherweight.simulation.scene_building import assembled_scene, part_of_shape

Type = fw.ShapeType

KINDS = {
    Type.SPHERE: SPHERE, Type.CAPSULE: CAPSULE, Type.BOX: BOX, Type.CYLINDER: CYLINDER, Type.ELLIPSOID: ELLIPSOID,
    Type.MESH: HULL, Type.PLANE: PLANE,
}  # fmt: skip
NOTHING_ELSE = TouchingParts((), (), None, True, 0.8, 0.0, np.zeros(0), np.zeros(0), False)
PAIRS = [(a, b) for i, a in enumerate(KINDS) for b in list(KINDS)[i:] if a is not Type.PLANE]


def random_shape(kind: fw.ShapeType, name: str, rng: np.random.Generator, scale: float = 1.0) -> fw.Shape:
    """Return a shape with lengths between a tenth and one, times the scale."""
    size = tuple(float(x) for x in scale * rng.uniform(0.1, 1.0, 3))
    lengths = {Type.SPHERE: 1, Type.CAPSULE: 2, Type.CYLINDER: 2, Type.PLANE: 0}.get(kind, 3)
    vertices = None
    if kind is Type.MESH:
        vertices, size = scale * rng.uniform(-0.5, 0.5, (int(rng.integers(4, 40)), 3)), (1.0, 1.0, 1.0)
    return fw.Shape(name, name, kind, size[:lengths], vertices=vertices)


def random_rotation(rng: np.random.Generator) -> Array:
    """Return a random rotation, sometimes along axes."""
    if rng.random() < 0.3:
        return np.array(Rotation.create_group("O").as_matrix()[int(rng.integers(24))], dtype=float)
    return np.asarray(Rotation.random(rng=rng).as_matrix())


class PlacedShape(NamedTuple):
    """A shape in the world."""

    shape: fw.Shape
    R: Array
    p: Array

    @property
    def size(self) -> Array:
        """The radii and half lengths, or the vertices of a hull."""
        s = self.shape
        if s.type is Type.MESH:
            return np.asarray(s.vertices)
        half = {Type.BOX: [0.5, 0.5, 0.5], Type.CAPSULE: [1.0, 0.5], Type.CYLINDER: [1.0, 0.5]}
        lengths: Array = np.array(s.size) * np.array(half.get(s.type, [1.0] * len(s.size)))
        return lengths

    def reach(self, d: Array) -> Array:
        """Return the support function along directions (k, 3)."""
        local, s, kind = d @ self.R, self.size, self.shape.type
        length = np.linalg.norm(d, axis=1)
        if kind is Type.SPHERE:
            own = s[0] * length
        elif kind is Type.CAPSULE:
            own = s[0] * length + s[1] * np.abs(local[:, 2])
        elif kind is Type.BOX:
            own = np.abs(local) @ s
        elif kind is Type.CYLINDER:
            own = s[0] * np.hypot(local[:, 0], local[:, 1]) + s[1] * np.abs(local[:, 2])
        elif kind is Type.ELLIPSOID:
            own = np.linalg.norm(local * s, axis=1)
        elif kind is Type.PLANE:
            own = np.where(local[:, 2] > 1.0 - 1e-12, 0.0, np.inf)
        else:
            own = (local @ s.T).max(axis=1)
        return np.asarray(own + d @ self.p)

    def outside(self, x: Array) -> float:
        """Return a signed measure of the distance of a point from the shape, negative inside."""
        y, s, kind = self.R.T @ (x - self.p), self.size, self.shape.type
        if kind is Type.SPHERE:
            return float(np.linalg.norm(y) - s[0])
        if kind is Type.CAPSULE:
            return float(np.linalg.norm(y - [0.0, 0.0, np.clip(y[2], -s[1], s[1])]) - s[0])
        if kind is Type.BOX:
            return float((np.abs(y) - s).max())
        if kind is Type.CYLINDER:
            return float(max(np.hypot(y[0], y[1]) - s[0], abs(y[2]) - s[1]))
        if kind is Type.ELLIPSOID:
            return float((np.linalg.norm(y / s) - 1.0) * s.max())
        if kind is Type.PLANE:
            return float(y[2])
        planes = ConvexHull(s).equations
        return float((planes[:, :3] @ y + planes[:, 3]).max())


class PairContact(NamedTuple):
    """Contacts of a pair: points (k, 3), normals from the second to the first (k, 3), gaps (k,)."""

    points: Array
    normals: Array
    gaps: Array


class TouchingPair:
    """Two shapes on one body each, and arrays for their contacts; the first has the lower type number."""

    def __init__(self, one: fw.Shape, other: fw.Shape) -> None:
        things = [part_of_shape(one, None), part_of_shape(other, None)]
        bodies = [shape.body for shape in (one, other) if shape.body is not None]
        scene = assembled_scene(things, [shape_pairs.TouchingPair(0, 1)], NOTHING_ELSE, 0, [True], bodies).scene
        self.shapes = one, other
        self.scene: CollisionScene = scene._replace(hulls=joined_hulls(things))
        self.work: CollisionWork = collision_work(self.scene)

    @staticmethod
    def shape(kind: fw.ShapeType, body: str, size: tuple[float, ...], vertices: Array | None = None) -> fw.Shape:
        return fw.Shape(body, body, kind, size, vertices=vertices)

    def contacts(self, one: tuple[Array, Array], other: tuple[Array, Array], reach: float) -> PairContact:
        """Return contacts with gaps below `reach` [m] by the functions in plain Python; placements are (R, p)."""
        placement = np.tile(np.eye(4), (2, 1, 1))
        for T, (R, p) in zip(placement, (one, other), strict=True):
            T[:3, :3], T[:3, 3] = R, p
        place_shapes(self.scene, placement, np.zeros((2, 6)), 0.0, self.work)
        found = self.work.found[: contacts_of_pair(self.scene, 0, 1, reach, self.work, self.work.apart[0])]
        rows = found[found[:, 6] < reach]
        return PairContact(rows[:, :3].copy(), rows[:, 3:6].copy(), rows[:, 6].copy())


def support_gap(one: PlacedShape, other: PlacedShape, n: Array) -> Array:
    """Return the gaps between two shapes along directions (k, 3) from the second to the first. The largest gap over all
    directions is the distance, or the negative depth of the overlap."""
    return np.asarray(-one.reach(-n) - other.reach(n))


def greatest_gap(one: PlacedShape, other: PlacedShape, rng: np.random.Generator, directions: int = 500) -> float:
    """Return the largest support gap that random directions and their local improvement find."""
    n = rng.normal(size=(directions, 3))
    if other.shape.type is Type.PLANE:
        return float(support_gap(one, other, other.R[None, :, 2])[0])
    n = np.concatenate([n, one.R.T, -one.R.T, other.R.T, -other.R.T])
    n /= np.linalg.norm(n, axis=1)[:, None]
    gaps = support_gap(one, other, n)
    best, most = n[gaps.argmax()], float(gaps.max())
    width = 0.2
    while width > 1e-7:
        tried = best + width * rng.normal(size=(40, 3))
        tried /= np.linalg.norm(tried, axis=1)[:, None]
        gaps = support_gap(one, other, tried)
        if gaps.max() > most:
            best, most = tried[gaps.argmax()], float(gaps.max())
        else:
            width *= 0.6
    return most
