"""Tests of mirrored robots: at the same coordinates they are mirror images, with the same mass matrix."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import featherweight as fw
from featherweight import Frame, Pose, Shape, ShapeType, robots
from featherweight.model.generators import random_tree
from featherweight.model.triangles import shape_meshes
from featherweight.model.types import as_vector
from oracles.mechanisms import closed
from oracles.same_motion import interpreted
from oracles.states import assert_close, random_states

TILTED = Pose(((0.0, -1.0, 0.0), (0.6, 0.0, -0.8), (0.8, 0.0, 0.6)), (0.1, -0.2, 0.3))


@pytest.mark.parametrize("axis", "xyz")
def test_trees_with_one_coordinate_a_joint(axis: str) -> None:
    description = random_tree(7, rng=4, joint_types=("revolute", "continuous", "prismatic"))
    k = "xyz".index(axis)
    joints = (dataclasses.replace(j, anchor=(0.1, 0.2, -0.1)) if j.type == "revolute" else j for j in description.joints)
    description = dataclasses.replace(description, joints=tuple(joints), frames=(Frame("eye", "body5", TILTED),))
    description = dataclasses.replace(description, gravity=as_vector(np.where(np.arange(3) == k, 0.0, -5.0)))
    robot, image = interpreted(description), interpreted(description.mirrored(axis))
    q, v, a = random_states(robot, 3)
    assert_close(image.mass_matrix(q), robot.mass_matrix(q))
    assert_close(image.inverse_dynamics(q, v, a), robot.inverse_dynamics(q, v, a))
    M = np.eye(4)
    M[k, k] = -1.0
    names = [f.name for f in robot.frames]
    assert_close(image.frame_placement(names)(q), M @ robot.frame_placement(names)(q) @ M)
    back = interpreted(description.mirrored(axis).mirrored(axis))
    assert_close(back.frame_placement(names)(q), robot.frame_placement(names)(q))


def test_loops_close_at_the_same_coordinates() -> None:
    robot, image = (closed(x, execution="interpreted") for x in (robots.six_bar(), robots.six_bar().mirrored("y")))
    q = robot.random_configuration(rng=0, size=3)
    assert np.abs(image.residual(q)).max() < 1e-12
    assert_close(image.mass_matrix(q), robot.mass_matrix(q))


@pytest.mark.parametrize("axis", "xyz")
def test_points_of_shapes_are_mirrored(axis: str) -> None:
    """Check vertices of a mesh, and the normal of a plane, which stays on the side of its image."""
    mesh = Shape("mesh", None, ShapeType.MESH, (1.0, 2.0, 3.0), TILTED, path="a.stl")
    floor = Shape("floor", None, ShapeType.PLANE, (), TILTED)
    made = dataclasses.replace(random_tree(2, rng=1), shapes=(mesh, floor)).mirrored(axis).shapes
    M = np.eye(3)
    M["xyz".index(axis), "xyz".index(axis)] = -1.0
    R, p = np.array(TILTED.R), np.array(TILTED.p)
    vertex = np.array([0.3, -0.4, 0.5])
    image = np.array(made[0].placement.R) @ (np.array(made[0].size) * vertex) + np.array(made[0].placement.p)
    np.testing.assert_allclose(image, M @ (R @ (np.array(mesh.size) * vertex) + p), atol=1e-15)
    np.testing.assert_allclose(np.array(made[1].placement.R)[:, 2], M @ R[:, 2], atol=1e-15)
    assert np.linalg.det(np.array(made[1].placement.R)) == pytest.approx(1.0)


@pytest.mark.parametrize("axis", "xyz")
def test_points_of_height_fields_are_mirrored(axis: str) -> None:
    heights = np.random.default_rng(0).uniform(size=(3, 4))
    hill = Shape("hill", None, ShapeType.HEIGHTFIELD, (2.0, 1.0, 0.5), TILTED, heights=heights)
    (image,) = dataclasses.replace(random_tree(2, rng=1), shapes=(hill,)).mirrored(axis).shapes
    M = np.eye(3)
    M["xyz".index(axis), "xyz".index(axis)] = -1.0

    def points(shape: Shape) -> np.ndarray:
        """Return points in the order of their heights, which are all different."""
        found = np.asarray(shape_meshes(shape)[0][0].vertices)
        return found[np.argsort(np.asarray(shape.heights).ravel())]

    np.testing.assert_allclose(points(image), points(hill) @ M, atol=1e-15)


def test_other_axes_are_refused() -> None:
    with pytest.raises(ValueError, match=r'axis must be "x", "y" or "z", the normal of the mirror plane; got \'xy\''):
        fw.generators.chain(2).mirrored("xy")
