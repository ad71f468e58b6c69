"""Tests of the positions of a simulation's spheres."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from featherweight.collision.collision_scene import HEIGHTS
from featherweight.collision.height_fields import normal_and_height
from featherweight.model.generators import chain
from featherweight.simulation.scene import TouchingParts
from featherweight.simulation.scene_building import make_scene


def parts(*spheres: fw.ContactSphere) -> TouchingParts:
    return TouchingParts(spheres, (), fw.Plane(), False, 0.8, 0.0, np.zeros(0), np.zeros(0), False)


def test_spheres_in_frames_of_ones_own() -> None:
    robot = fw.build(chain(3, rng=1), execution="interpreted")
    T = np.array([[0.0, -1.0, 0.0, 0.1], [1.0, 0.0, 0.0, 0.2], [0.0, 0.0, 1.0, 0.3], [0.0, 0.0, 0.0, 1.0]])
    spheres = [fw.ContactPoint("body2", (0.1, 0.0, 0.0)), fw.ContactSphere(fw.Frame("toe", "body2", T), 0.1, (1.0, 2.0, 3.0))]
    touching = make_scene(robot, parts(*spheres))
    assert (touching.bodies, touching.scene.body.tolist()) == (["body2"], [0, 0, -1])
    centers = touching.scene.placement[:2, 9:]
    np.testing.assert_allclose(centers, [[0.1, 0.0, 0.0], [0.1 - 2.0, 0.2 + 1.0, 0.3 + 3.0]], rtol=0.0, atol=1e-15)


def test_spheres_in_unknown_frames_are_refused() -> None:
    robot = fw.build(chain(3, rng=1), execution="interpreted")
    with pytest.raises(ValueError, match=r"no frame 'paw'; it has .*body2"):
        make_scene(robot, parts(fw.ContactPoint("paw")))
    with pytest.raises(ValueError, match=r"the point on 'goal' is fixed to the world"):
        make_scene(robot, parts(fw.ContactPoint(fw.Frame("goal", None))))
    with pytest.raises(ValueError, match=r"ContactSphere 'toe': radius must be a finite number, zero or more"):
        fw.ContactSphere(fw.Frame("toe", "body2"), -1.0)


MJCF = """<mujoco>
<asset><hfield name="hill" nrow="3" ncol="4" size="2 1 0.5 0.1" elevation="0 1 2 3  4 4 4 9  5 6 7 8"/></asset>
<worldbody>
  <geom name="hill" type="hfield" hfield="hill" pos="0.1 0.2 0.3" euler="0 0 40" friction="0.4" margin="0.01"/>
  <body pos="0 0 2"><freejoint/><geom name="ball" size="0.1" friction="0.9" margin="0.02"/></body>
</worldbody>{}</mujoco>"""


@pytest.mark.parametrize(
    ("rest", "friction", "margin"),
    [("", 0.9, 0.03), ('<contact><pair geom1="ball" geom2="hill" friction="0.3 0.3" margin="0.05"/></contact>', 0.3, 0.05)],
)
def test_height_fields_and_numbers_of_pairs_are_the_files(tmp_path: Path, rest: str, friction: float, margin: float) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(MJCF.format(rest))
    robot = fw.load(path, execution="interpreted")
    touching = make_scene(robot, TouchingParts((), (), None, True, 0.8, 0.0, np.zeros(0), np.zeros(0), False))
    scene, hill = touching.scene, robot.shapes[0]
    assert set(touching.friction) == {friction}
    assert scene.margin == pytest.approx(np.full(len(scene.margin), margin))
    placement = scene.placement[scene.kind.tolist().index(HEIGHTS)]
    field = scene.fields.heights, scene.fields.grid[0], scene.fields.edges[0]
    np.testing.assert_allclose(placement, [*np.ravel(hill.placement.R), *hill.placement.p], atol=1e-15)
    for (i, j), height in np.ndenumerate(hill.heights):
        x, y = 4.0 * i / 3 - 2.0, 2.0 * j / 2 - 1.0
        assert normal_and_height(*field, x, y)[3] == pytest.approx(height)
