"""Where the spheres of a simulation are."""

from __future__ import annotations

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.generators import chain
from featherweight.simulation.contact.scene_building import make_scene
from featherweight.simulation.scene import TouchingParts


def parts(*spheres: fw.Sphere) -> TouchingParts:
    return TouchingParts(spheres, (), fw.Plane(), False, 0.8, 0.0, False, False)


def test_spheres_in_frames_of_ones_own() -> None:
    robot = fw.build(chain(3, seed=1), execution="interpreted")
    T = np.array([[0.0, -1.0, 0.0, 0.1], [1.0, 0.0, 0.0, 0.2], [0.0, 0.0, 1.0, 0.3], [0.0, 0.0, 0.0, 1.0]])
    spheres = [fw.Point("body2", (0.1, 0.0, 0.0)), fw.Sphere(fw.Frame("toe", "body2", T), 0.1, (1.0, 2.0, 3.0))]
    touching = make_scene(robot, parts(*spheres))
    assert (touching.bodies, touching.scene.body.tolist()) == (["body2"], [0, 0, -1])
    centers = touching.scene.placement[:2, 9:]
    np.testing.assert_allclose(centers, [[0.1, 0.0, 0.0], [0.1 - 2.0, 0.2 + 1.0, 0.3 + 3.0]], rtol=0.0, atol=1e-15)


def test_spheres_in_unknown_frames_are_refused() -> None:
    robot = fw.build(chain(3, seed=1), execution="interpreted")
    with pytest.raises(ValueError, match=r"no frame 'paw'; it has .*body2"):
        make_scene(robot, parts(fw.Point("paw")))
    with pytest.raises(ValueError, match=r"the point on 'goal' is fixed to the world"):
        make_scene(robot, parts(fw.Point(fw.Frame("goal", None))))
    with pytest.raises(ValueError, match=r"radius of the sphere on 'toe' must be zero or more"):
        fw.Sphere(fw.Frame("toe", "body2"), -1.0)
