"""A robot's collision shapes in Pinocchio, with convex hulls of meshes and the pairs of this package."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pinocchio as pin

import featherweight as fw
from featherweight.array_types import Array

Numbered = tuple[str, int]  # a link, and the number of its collision shape


class CollisionPeer:
    """The geometry model of a URDF file with its data; `own_pairs` are Pinocchio's pairs with the SRDF file."""

    def __init__(self, robot: fw.Robot, path: Path, srdf: Path, packages: Path) -> None:
        self.robot, floating = robot, robot.joints[0].type is fw.JointType.FLOATING
        self.model = pin.buildModelFromUrdf(str(path), *((pin.JointModelFreeFlyer(),) if floating else ()))
        self.shapes = pin.buildGeomFromUrdf(self.model, str(path), pin.COLLISION, package_dirs=[str(packages)])
        for shape in self.shapes.geometryObjects:
            if hasattr(shape.geometry, "buildConvexHull"):
                shape.geometry.buildConvexHull(True, "Qt")
                shape.geometry = shape.geometry.convex
        numbers = self._numbers()
        self.shapes.addAllCollisionPairs()
        pin.removeCollisionPairs(self.model, self.shapes, str(srdf), False)
        by_number = {n: name for name, n in numbers.items()}
        self.own_pairs = {frozenset((by_number[p.first], by_number[p.second])) for p in self.shapes.collisionPairs}
        self.shapes.removeAllCollisionPairs()
        for a, b in self.named_pairs():
            self.shapes.addCollisionPair(pin.CollisionPair(numbers[a], numbers[b]))
        self.data, self.found = self.model.createData(), self.shapes.createData()

    def _numbers(self) -> dict[Numbered, int]:
        count: Counter[str] = Counter()
        numbers = {}
        for n, shape in enumerate(self.shapes.geometryObjects):
            link = self.model.frames[shape.parentFrame].name
            numbers[link, count[link]] = n
            count[link] += 1
        return numbers

    def named_pairs(self) -> list[tuple[Numbered, Numbered]]:
        """Return the robot's pairs."""
        count: Counter[str | None] = Counter()
        named: dict[str, Numbered] = {}
        for shape, link in zip(self.robot.shapes, self.robot.model.shape_links, strict=True):
            if shape.collision:
                named[shape.name] = str(link), count[link]
                count[link] += 1
        return [(named[p.shapes[0]], named[p.shapes[1]]) for p in self.robot.collision_pairs()]

    def configuration(self, q: Array) -> Array:
        """Return Pinocchio's configuration for ours; continuous joints are (cos, sin)."""
        result = np.zeros(self.model.nq)
        for joint in self.robot.joints:
            i = self.model.getJointId(joint.name)
            mine, start, width = q[joint.q_slice], self.model.idx_qs[i], self.model.nqs[i]
            if len(mine) < width:
                mine = np.array([np.cos(mine[0]), np.sin(mine[0])])
            result[start : start + width] = mine
        return result

    def collide(self, q: Array) -> bool:
        """Return whether any pair collides in Pinocchio's configuration."""
        return bool(pin.computeCollisions(self.model, self.data, self.shapes, self.found, q, True))

    def distances(self, q: Array) -> tuple[Array, Array]:
        """Return the distances (npairs,) and normals (npairs, 3) of all pairs in Pinocchio's configuration."""
        pin.computeDistances(self.model, self.data, self.shapes, self.found, q)
        results = self.found.distanceResults
        return np.array([d.min_distance for d in results]), np.array([d.normal for d in results])
