"""Tests of cameras of MJCF files: poses and fields of view against MuJoCo; edits and saved files."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight
from featherweight import Camera, CameraMode, CameraSensor, Pose

mujoco = pytest.importorskip("mujoco")

ARM = """<mujoco model="filmed arm"><compiler angle="degree" eulerseq="xyz"/><worldbody>
  <camera name="corner" pos="2 -1 1.5" euler="60 10 55" fovy="30"/>
  <camera name="watching" pos="1 2 3" mode="targetbody" target="hand"/>
  <camera name="above" pos="0 0 4" mode="targetbody" target="base"/>
  <camera name="all of it" pos="-2 1 0.4" mode="targetbodycom" target="world"/>
  <body name="base" pos="0 0 0.2" euler="0 0 30"><geom size="0.2" mass="3"/>
    <body name="arm" pos="0.1 0 0.3" euler="20 0 0"><joint name="a" axis="0 1 0.3" ref="25" range="-90 90"/>
      <joint name="b" axis="1 0 0" pos="0 0.1 0"/>
      <geom type="capsule" fromto="0 0 0 0.6 0 0" size="0.05" mass="1.5"/>
      <camera name="trailing" pos="0.2 -1 0.5" euler="80 0 0" mode="track"/>
      <camera name="trailing mass" pos="-0.5 -1 0.5" xyaxes="1 0.2 0 0 0.5 1" mode="trackcom"/>
      <body name="bracket" pos="0.6 0 0.05" euler="0 90 0"><geom size="0.03" pos="0 0 0.1" mass="0.2"/>
        <body name="hand" pos="0 0 0.1"><joint type="ball"/><geom type="box" size="0.1 0.05 0.02" pos="0.1 0 0" mass="0.4"/>
          <camera name="eye" pos="0.05 0.01 0.04" quat="1 2 0.3 0.1" fovy="75"/>
          <camera pos="0 0 0.2" mode="targetbody" target="base"/>
          <camera name="at arm" pos="0 0.2 0.2" mode="targetbodycom" target="arm"/>
        </body></body></body></body>
  <body name="ball" pos="1 1 1" euler="0 40 0"><freejoint/><geom size="0.1" mass="0.5"/>
    <camera name="chase" pos="-1 0 0.5" euler="70 0 -90" mode="trackcom"/>
    <camera name="rider" pos="0 0 0.2" euler="90 0 0"/></body>
</worldbody></mujoco>"""
NAMES = ["corner", "watching", "above", "all of it", "trailing", "trailing mass", "eye", "camera7", "at arm", "chase", "rider"]
ROUNDING = 1e-12  # positions in metres and unit vectors, which MuJoCo rotates by quaternions from body to body


def of_mujoco(model: Any, robot: Any, q: Any) -> Any:
    """Return MuJoCo's placements (ncam, 4, 4) of all cameras at q."""
    data = mujoco.MjData(model)
    data.qpos[:] = featherweight.MujocoOrder(robot, model).state(q, np.zeros(robot.nv)).qpos
    mujoco.mj_forward(model, data)
    T = np.tile(np.eye(4), (model.ncam, 1, 1))
    T[:, :3, :3], T[:, :3, 3] = data.cam_xmat.reshape(-1, 3, 3), data.cam_xpos
    return T


def placed(robot: Any, q: Any) -> Any:
    return np.stack([robot.camera_placement(c.name)(q) for c in robot.cameras], axis=-3)


def saved(description: Any, path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", featherweight.ModelWarning)  # about other losses of the file
        description.save(path)
    return featherweight.read(path)


# --- against MuJoCo


def test_cameras_are_where_mujoco_has_them() -> None:
    robot, model = featherweight.load(ARM), mujoco.MjModel.from_xml_string(ARM)
    assert [c.name for c in robot.cameras] == NAMES and "cameras" not in robot.report()
    q = np.concatenate([robot.start()[None], robot.random_configuration(rng=np.random.default_rng(5), size=20)])
    ours = placed(robot, q)
    for k in range(len(q)):
        np.testing.assert_allclose(ours[k], of_mujoco(model, robot, q[k]), rtol=0.0, atol=ROUNDING)
    moved = np.ptp(ours, axis=0).max(axis=(1, 2)) > 0.01
    still = {"corner", "above"}
    assert {name for name, moves in zip(NAMES, moved, strict=True) if not moves} == still


def test_fields_of_view_are_angles_in_degrees_of_any_file_and_follow_from_sensors() -> None:
    text = """<mujoco><compiler angle="radian"/><worldbody><body><joint/><geom size="0.1"/>
      <camera name="usual"/><camera name="wide" fovy="100"/>
      <camera name="sensor" sensorsize="0.006 0.004" focal="0.005 0.005" principal="0.001 -0.0005" resolution="300 200"/>
      </body></worldbody></mujoco>"""
    usual, wide, sensor = featherweight.load(text).cameras
    assert [usual.field_of_view, wide.field_of_view] == pytest.approx([math.pi / 4, math.radians(100.0)])
    # MuJoCo stores it in single precision
    assert sensor.field_of_view == pytest.approx(2.0 * math.atan(0.002 / 0.005), rel=1e-6)
    np.testing.assert_allclose(np.array(sensor.sensor), [[0.006, 0.004], [0.005, 0.005], [0.001, -0.0005]], rtol=1e-6)
    assert sensor.resolution == (300, 200) and usual.resolution is None and usual.sensor is None


def test_a_camera_that_is_not_there_is_refused_with_those_that_are() -> None:
    robot = featherweight.load(ARM)
    with pytest.raises(ValueError, match=r"no camera 'rear'.*; it has corner, watching"):
        robot.camera_placement("rear")
    without = featherweight.load('<mujoco><worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>')
    with pytest.raises(ValueError, match="it has none"):
        without.camera_placement("rear")


# --- files and edits


def test_a_saved_file_has_the_same_cameras(tmp_path: Path) -> None:
    description = featherweight.read(ARM)
    robot = featherweight.build(description)
    again = featherweight.build(saved(description, tmp_path / "again.xml"))
    q = robot.random_configuration(rng=np.random.default_rng(6), size=5)
    np.testing.assert_allclose(placed(again, q), placed(robot, q), rtol=0.0, atol=ROUNDING)
    for a, b in zip(again.cameras, robot.cameras, strict=True):
        assert (a.name, a.body, a.mode, a.target, a.resolution) == (b.name, b.body, b.mode, b.target, b.resolution)
        assert a.field_of_view == pytest.approx(b.field_of_view, rel=1e-6)  # MuJoCo stores it in single precision
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    order = [model.camera(k).name for k in range(model.ncam)]
    theirs = of_mujoco(model, again, q[0])[[order.index(c.name) for c in again.cameras]]
    np.testing.assert_allclose(theirs, placed(robot, q[0]), rtol=0.0, atol=ROUNDING)


def test_a_saved_file_has_the_sensors_and_projections(tmp_path: Path) -> None:
    sensor = CameraSensor((0.006, 0.004), (0.005, 0.005), (0.001, -0.0005))
    seen = Camera("seen", "b", sensor=sensor, field_of_view=2.0 * math.atan(0.4), resolution=(30, 20))
    flat = Camera("flat", "b", field_of_view=1.5, orthographic=True)
    body = featherweight.Body("b", featherweight.Inertia(1.0, (0.0,) * 3, (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    joint = featherweight.Joint("j", featherweight.JointType.REVOLUTE, None, "b")
    d = featherweight.describe([body], [joint], cameras=[seen, flat])
    again = {c.name: c for c in saved(d, tmp_path / "c.xml").cameras}
    assert again["flat"].orthographic and again["flat"].field_of_view == 1.5
    np.testing.assert_allclose(
        np.array(again["seen"].sensor), np.array(sensor), rtol=1e-6
    )  # MuJoCo stores it in single precision
    assert again["seen"].resolution == (30, 20)


def test_urdf_files_lose_cameras_by_name(tmp_path: Path) -> None:
    with pytest.warns(featherweight.ModelWarning, match=r"the cameras corner, watching"):
        featherweight.read(ARM).save(tmp_path / "arm.urdf")


def test_renamed_attached_and_locked_robots_keep_their_cameras() -> None:
    description = featherweight.read(ARM)
    robot = featherweight.build(description)
    q = robot.random_configuration(rng=np.random.default_rng(7))
    renamed = featherweight.build(description.renamed({"hand": "palm", "eye": "lens"}))
    assert renamed.cameras["lens"].body == "palm" and renamed.cameras["watching"].target == "palm"
    np.testing.assert_allclose(placed(renamed, q), placed(robot, q), rtol=0.0, atol=ROUNDING)
    held = description.locked({"b": float(q[robot.joint("b").q_slice][0])})
    part = np.delete(q, robot.joint("b").q_slice)
    fixed = [c.name for c in robot.cameras if "track" not in c.mode]  # offsets of tracking cameras depend on the start
    for name in fixed:
        expected = robot.camera_placement(name)(q)
        np.testing.assert_allclose(featherweight.build(held).camera_placement(name)(part), expected, rtol=0.0, atol=ROUNDING)


def test_attached_cameras_stand_on_what_they_are_attached_to() -> None:
    arm = featherweight.read(ARM)
    at = Pose(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)), (0.3, 0.2, 0.1))
    both = arm.attached(arm.without("ball"), "hand", at, prefix="second ")
    robot, one = featherweight.build(both), featherweight.build(arm)
    q = robot.random_configuration(rng=np.random.default_rng(8))
    hand = robot.frame_placement("hand")(q)
    there = hand @ np.block([[np.array(at.R), np.array(at.p)[:, None]], [0.0, 0.0, 0.0, 1.0]])
    corner = np.array(one.camera_placement("corner")(one.neutral()))
    np.testing.assert_allclose(robot.camera_placement("second corner")(q), there @ corner, rtol=0.0, atol=ROUNDING)
    assert robot.cameras["second watching"].target == "second hand" and robot.cameras["second all of it"].target == "hand"
    assert "second all of it" in robot.report()["cameras that look at the ground, which is another point now"]


def test_cut_robots_have_the_cameras_that_are_left() -> None:
    description = featherweight.read(ARM)
    without = description.without("bracket")
    assert [c.name for c in without.cameras] == ["corner", "above", "all of it", "trailing", "trailing mass", "chase", "rider"]
    assert dict(without.unused)["cameras whose target was cut off"] == "watching"
    hand = description.subtree("hand")
    assert [c.name for c in hand.cameras] == ["eye"]
    assert "corner" in dict(hand.unused)["what was on the ground"]


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_a_mirrored_camera_sees_the_mirror_image(axis: str) -> None:
    """Check that a point's position in the picture, (right, up)/distance, has the opposite sign of right, in every
    configuration.
    """
    text = ARM.replace('<joint type="ball"/>', '<joint name="c" axis="1 2 3"/>')
    text = re.sub(r'<body name="ball".*</body>', "", text, flags=re.S)
    d = featherweight.read(text)
    robot, image = featherweight.build(d), featherweight.build(d.mirrored(axis))
    M = np.diag([-1.0 if x == axis else 1.0 for x in "xyz"])
    q = robot.random_configuration(rng=np.random.default_rng(9))
    point = np.array([0.3, -0.4, 0.5])
    for name in ("corner", "eye", "trailing", "trailing mass"):
        x, y, z = seen(robot.camera_placement(name)(q), point)
        assert seen(image.camera_placement(name)(q), M @ point) == pytest.approx((-x, y, z), abs=ROUNDING)


def seen(T: Any, point: Any) -> Any:
    """Return a point in the frame of a camera."""
    return T[:3, :3].T @ (point - T[:3, 3])


def test_descriptions_in_python_have_cameras_and_wrong_ones_are_refused() -> None:
    body = featherweight.Body("b", featherweight.Inertia(1.0, (0.0,) * 3, (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))
    joint = featherweight.Joint("j", featherweight.JointType.REVOLUTE, None, "b")

    def build(*cameras: Camera) -> Any:
        return featherweight.build(featherweight.describe([body], [joint], cameras=cameras))

    robot = build(Camera("c", "b", Pose(p=(1.0, 0.0, 0.0))), Camera("w", "world", mode=CameraMode.TARGETBODY, target="b"))
    np.testing.assert_allclose(robot.camera_placement("c")([math.pi / 2])[:3, 3], [0.0, 1.0, 0.0], atol=1e-15)
    for wrong, problem in (
        ([Camera("c", "a")], "'a' is not a body"),
        ([Camera("c", "b", mode=CameraMode.TARGETBODY, target="bb")], "'bb' is not a body"),
        ([Camera("c", "b"), Camera("c", None)], "another camera has this name"),
        ([Camera("c", "b", field_of_view=60.0)], "field_of_view is 60; give an angle in rad"),
    ):
        with pytest.raises(featherweight.ModelError, match=problem):
            build(*wrong)
