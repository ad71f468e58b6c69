"""Tests of nearly right angles, which are made exact wherever MJCF files give orientations by angles."""

from __future__ import annotations

import math
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.model.formats.mjcf.read.orientations import make_orientations_plain

ARM = """<mujoco><compiler angle="{unit}" eulerseq="{order}"/>
  <default><default class="turned"><geom euler="0 0 {right}"/></default></default>
  <worldbody><frame euler="{half} 0 0.3"><body name="upper" euler="{tilt} {right} -{right}"><joint axis="0 0 1"/>
    <inertial pos="0.1 0.2 0.3" mass="1" diaginertia="1 2 2.5" euler="0 {right} 0"/>
    <geom class="turned" type="box" size="0.1 0.2 0.3"/><site name="tip" axisangle="0 1 0 -{right}"/>
    <body name="lower" axisangle="0 3 4 {half}"><joint axis="1 0 0"/><geom type="box" size="0.1 0.2 0.3" euler="{right} 0 0"/>
  </body></body></frame></worldbody></mujoco>"""

ROUNDED = {"unit": "radian", "right": "1.57079632679", "half": "3.14159265359", "tilt": "0.7"}
EXACT = {"unit": "radian", "right": repr(math.pi / 2), "half": repr(math.pi), "tilt": "0.7"}
DEGREES = {"unit": "degree", "right": "89.999999999995", "half": "180.000000000004", "tilt": "40"}


def placements(robot: fw.Robot) -> np.ndarray:
    return robot.frame_placement(["upper", "lower", "tip"])(np.zeros(2))


def of_mujoco(text: str) -> np.ndarray:
    """Return MuJoCo's placements of the same frames, from the digits of the file."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    poses = np.tile(np.eye(4), (3, 1, 1))
    for pose, frame in zip(poses, (data.body("upper"), data.body("lower"), data.site("tip")), strict=True):
        pose[:3, :3], pose[:3, 3] = frame.xmat.reshape(3, 3), frame.xpos
    return poses


@pytest.mark.parametrize("order", ["xyz", "XYZ", "zyx", "YZY"])
def test_rounded_radians_are_what_all_digits_are(order: str) -> None:
    rounded, exact = (ARM.format(order=order, **numbers) for numbers in (ROUNDED, EXACT))
    robot, meant = fw.load(rounded), fw.load(exact)
    np.testing.assert_array_equal(placements(robot), placements(meant))
    np.testing.assert_allclose(placements(robot), of_mujoco(exact), atol=1e-15)  # rounding of products of quaternions
    np.testing.assert_allclose(placements(robot), of_mujoco(rounded), atol=5e-11)  # five corrected angles, 1e-11 each
    assert np.abs(placements(robot) - of_mujoco(rounded)).max() > 1e-12
    assert robot.inverse_dynamics.operations == meant.inverse_dynamics.operations
    np.testing.assert_array_equal(robot.inertial_parameters, meant.inertial_parameters)
    for ours, theirs in zip(robot.shapes, meant.shapes, strict=True):
        assert ours.placement == theirs.placement


def test_degrees_snap_by_as_little() -> None:
    """Check the tolerance of 1e-11 in degrees."""
    near, right = (ARM.format(order="xyz", **{**DEGREES, **more}) for more in ({}, {"right": "90", "half": "180"}))
    np.testing.assert_array_equal(placements(fw.load(near)), placements(fw.load(right)))
    far = ARM.format(order="xyz", **{**DEGREES, "right": "89.99999999997"})
    assert not np.array_equal(placements(fw.load(far)), placements(fw.load(right)))


@pytest.mark.parametrize("angle", ["1.5708", "1.570796", "1.57079632", "1.570796326", "1.5707963267"])
def test_angles_of_fewer_digits_are_taken_as_they_are(angle: str) -> None:
    text = ARM.format(order="xyz", **{**EXACT, "right": angle})
    np.testing.assert_allclose(placements(fw.load(text)), of_mujoco(text), atol=1e-15)


def attaching(folder: Path, unit: str, right: str) -> Path:
    """Return a file with a body turned by a right angle, with another attached, turned by the same angle in radians."""
    child = '<body name="c" euler="1.57079632679 0 0"><joint/><geom size="0.1"/></body>'
    (folder / "child.xml").write_text(f'<mujoco><compiler angle="radian"/><worldbody>{child}</worldbody></mujoco>')
    mount = f'<body name="mount" euler="{right} 0 0"><attach model="child" body="c" prefix="x_"/></body>'
    asset = '<asset><model name="child" file="child.xml"/></asset>'
    text = f'<mujoco><compiler angle="{unit}"/>{asset}<worldbody>{mount}</worldbody></mujoco>'
    (folder / "parent.xml").write_text(text)
    return folder / "parent.xml"


def test_attached_models_have_units_of_their_own(tmp_path: Path) -> None:
    """Check units, which MuJoCo reports from version 3.6 on."""
    told = hasattr(mujoco.MjSpec().worldbody, "compiler")
    for unit, right, exact in (("radian", "1.57079632679", True), ("degree", "90", told)):
        R = fw.load(attaching(tmp_path, unit, right)).frame_placement("x_c")(np.zeros(1))[:3, :3]
        np.testing.assert_allclose(R, np.diag([1.0, -1.0, -1.0]), rtol=0, atol=0 if exact else 1e-11)


def test_angles_that_are_no_numbers_are_left_to_be_refused() -> None:
    """Check that text is refused earlier, and other attached content when MuJoCo compiles it."""
    spec = mujoco.MjSpec()
    given = spec.worldbody.add_body().alt
    given.type = mujoco.mjtOrientation.mjORIENTATION_EULER
    given.euler = [math.nan, math.inf, 90.000000000005]
    make_orientations_plain(mujoco, spec)
    np.testing.assert_array_equal(given.euler, [math.nan, math.inf, 90.000000000005])
    assert given.type == mujoco.mjtOrientation.mjORIENTATION_EULER


@pytest.mark.parametrize("order", ["xyz", "ZYX"])
def test_unit_quaternions_and_axes_are_taken_as_they_are(order: str) -> None:
    """Check that they are unchanged, so that the numbers of the compiled model are the same on every machine."""
    joint = '<joint axis="0 0 1"/>'
    text = (
        ARM.format(order=order, **ROUNDED).replace(joint, '<joint axis="0.3 -2 1"/>').replace('euler="3.14159265359 0 0.3"', "")
    )
    spec = mujoco.MjSpec.from_string(text)
    make_orientations_plain(mujoco, spec)
    model = spec.compile()
    upper, lower = spec.body("upper"), spec.body("lower")
    np.testing.assert_array_equal(model.body_quat[1:], [upper.quat, lower.quat])
    np.testing.assert_array_equal(model.body_iquat[1], upper.iquat)
    np.testing.assert_array_equal(model.jnt_axis, [joint.axis for joint in spec.joints])
    assert np.abs(np.linalg.norm(model.body_quat, axis=1) - 1.0).max() < 1e-15
