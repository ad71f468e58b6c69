"""Tests of pictures of cameras of MJCF files: points are at MuJoCo's projections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight

pytest.importorskip("trimesh")
pytest.importorskip("PIL")
mujoco = pytest.importorskip("mujoco")

from featherweight.viewer import OffscreenScene, picture  # noqa: E402

SIZE = (180, 120)
BALLS = """<mujoco model="balls"><worldbody>
  <camera name="fixed" pos="3 -1 1" xyaxes="0.3 0.95 0 -0.2 0.06 0.97" fovy="50"/>
  <camera name="wide" pos="3 -1 1" xyaxes="0.3 0.95 0 -0.2 0.06 0.97" fovy="80"/>
  <camera name="sensor" pos="3 -1 1" xyaxes="0.3 0.95 0 -0.2 0.06 0.97" sensorsize="0.006 0.004" focal="0.005 0.005"
    principal="0.001 -0.0004" resolution="180 120"/>
  <camera name="target" pos="-2 0.4 1" mode="targetbody" target="red"/>
  <body name="red" pos="0.2 0.1 0.6"><freejoint/><geom size="0.08" rgba="1 0 0 1"/>
    <camera name="track" pos="-2 -0.3 0.4" xyaxes="0 -1 0 0.1 0 1" mode="track"/></body>
  <body name="carrier" pos="0 0.3 1"><joint name="hinge" axis="0 0 1"/><geom size="0.08" rgba="0 0 1 1"/>
    <camera name="carried" pos="2 0.2 0.1" xyaxes="0.1 1 0 -0.1 0 1"/></body>
</worldbody></mujoco>"""
NAMES = ["fixed", "wide", "sensor", "target", "track", "carried"]


@pytest.fixture(scope="module")
def robot() -> Any:
    return featherweight.load(BALLS)


def colored(image: Any, channel: int) -> Any:
    """Return the mean position (x, y) of the pixels of a colour, in pixels from the upper left corner."""
    others = np.delete(image.astype(int), channel, axis=2).max(axis=2)
    rows, columns = np.nonzero(image[:, :, channel].astype(int) > others + 60)
    assert len(rows) > 8
    return np.array([columns.mean() + 0.5, rows.mean() + 0.5])


def of_mujoco(model: Any, data: Any, name: str, point: Any) -> Any:
    """Return the position of a point in MuJoCo's picture, by the frustum of its renderer."""
    camera, scene = mujoco.MjvCamera(), mujoco.MjvScene(model, 100)
    camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, model.camera(name).id
    mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, camera, mujoco.mjtCatBit.mjCAT_ALL, scene)
    eyes = scene.camera  # the left and the right eye, which equal the middle except for their distance
    view = eyes[0]
    position = (eyes[0].pos + eyes[1].pos) / 2.0
    forward, up = np.array(view.forward), np.array(view.up)
    ray = np.array(point) - position
    ray = ray * view.frustum_near / (ray @ forward)
    width, height = SIZE
    across = view.frustum_width or 0.5 * width / height * (view.frustum_top - view.frustum_bottom)
    x = (ray @ np.cross(forward, up) - view.frustum_center + across) / (2.0 * across)
    y = (ray @ up - view.frustum_bottom) / (view.frustum_top - view.frustum_bottom)
    return np.array([x * width, (1.0 - y) * height])


@pytest.mark.parametrize("name", NAMES)
def test_points_are_where_mujoco_projects_them(robot: Any, name: str) -> None:
    q = robot.start()
    q[:3] = [0.1, -0.2, 0.7]
    q[robot.joint("hinge").q_slice] = 0.2
    model = mujoco.MjModel.from_xml_string(BALLS)
    data = mujoco.MjData(model)
    data.qpos[:] = featherweight.MujocoOrder(robot, model).state(q, np.zeros(robot.nv)).qpos
    mujoco.mj_forward(model, data)
    image = picture(robot, q, SIZE, camera=name, ground=None)
    # The mean of the pixels of a ball is its centre to half a pixel: pixels count whole, and in perspective the centre of the
    # ball's ellipse is 0.2 pixels away. Fields of view and modes change it by tens of pixels.
    for body, channel in (("red", 0), ("carrier", 2)):
        expected = of_mujoco(model, data, name, data.body(body).xpos)
        assert (expected > 15.0).all() and (expected < np.array(SIZE) - 15.0).all()  # in the picture
        np.testing.assert_allclose(colored(image, channel), expected, rtol=0.0, atol=0.5)


# --- simulations


def test_a_simulation_draws_the_picture_of_its_camera(robot: Any) -> None:
    sim = featherweight.Simulation(robot, shapes=False)
    before = sim.render(90, 60)
    for name in ("target", "track"):
        scene = OffscreenScene(robot, (90, 60), camera=name)
        np.testing.assert_array_equal(sim.render(90, 60, camera=name), scene.frame(sim.q))
    sim.run(0.2)  # the red ball falls, and both cameras move or turn with it
    np.testing.assert_allclose(colored(sim.render(*SIZE, camera="target"), 0), [90.0, 60.0], atol=0.5)  # as above
    at_rest = colored(picture(robot, robot.start(), SIZE, camera="track"), 0)
    np.testing.assert_allclose(colored(sim.render(*SIZE, camera="track"), 0), at_rest, atol=0.5)
    sim.reset(robot.start())
    np.testing.assert_array_equal(sim.render(90, 60), before)  # without a camera of the file, as before


def test_of_several_robots_the_camera_is_the_firsts_or_that_of_the_one_alone(robot: Any) -> None:
    q = np.tile(robot.start(), (2, 1))
    q[1, :3] += [0.3, 0.2, 0.1]
    sim = featherweight.Simulation(robot, q=q, shapes=False)
    scene = OffscreenScene(robot, SIZE, q=q[0], camera="target")  # one floor for both
    for k in (0, 1):
        np.testing.assert_array_equal(sim.render(*SIZE, robot=k, camera="target"), scene.frame(q[k]))
    both = OffscreenScene(robot, SIZE, q=q, camera="track").frame(q)
    np.testing.assert_array_equal(sim.render(*SIZE, camera="track"), both)
    first = OffscreenScene(robot, SIZE, q=q[0], camera="track").frame(q[0])
    x, y = np.round(colored(first, 0)).astype(int)
    assert tuple(both[y, x]) == tuple(first[y, x])  # the first robot's ball is where it is without the other


def test_cameras_that_cannot_be_drawn_are_refused(robot: Any) -> None:
    with pytest.raises(ValueError, match=r"balls has no camera 'trak' \(is it 'track'\?\); it has fixed, wide, sensor"):
        featherweight.Simulation(robot, shapes=False).render(camera="trak")
    flat = featherweight.load(BALLS.replace('name="wide"', 'name="wide" projection="orthographic"'))
    with pytest.raises(ValueError, match="camera 'wide' is orthographic"):
        picture(flat, camera="wide")
