"""Tests of changed joint types, and of three hinges as one spherical joint."""

from __future__ import annotations

import dataclasses
import math
import warnings
from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from featherweight import Actuator, Body, Coupling, Joint, JointType, ModelError, ModelWarning, Pose, robots
from featherweight.model.generators import chain
from oracles.same_motion import assert_same_motion, interpreted
from oracles.states import assert_close

BODY = fw.Inertia(1.0, (0.1, 0.2, 0.3), (0.1, 0.0, 0.0, 0.2, 0.0, 0.25))
TILTED = Pose(((0.0, -1.0, 0.0), (0.6, 0.0, -0.8), (0.8, 0.0, 0.6)), (0.1, -0.2, 0.3))


def hip() -> fw.Description:
    """Return hinges about z, x and y that meet beside the origins of their massless bodies."""
    above = [Joint("waist", JointType.REVOLUTE, None, "pelvis", Pose(p=(0.0, 0.0, 1.0)))]
    hinges = [
        Joint("yaw", JointType.REVOLUTE, "pelvis", "a", TILTED, (0.0, 0.0, 1.0), lower=-1.0, upper=1.0),
        Joint("roll", JointType.CONTINUOUS, "a", "b", Pose(p=(0.0, 0.0, -0.1)), (1.0, 0.0, 0.0), armature=0.1),
        Joint("pitch", JointType.REVOLUTE, "b", "thigh", Pose(p=(0.2, 0.0, 0.0)), (0.0, 1.0, 0.0), anchor=(-0.2, 0.4, 0.0)),
    ]
    bodies = (Body("pelvis", BODY), Body("a"), Body("b"), Body("thigh", BODY), Body("shin", BODY))
    knee = Joint("knee", JointType.REVOLUTE, "thigh", "shin", TILTED)
    return fw.describe(bodies, (*above, *hinges, knee))


def rotation_quaternion(R: np.ndarray) -> np.ndarray:
    w = 0.5 * math.sqrt(1.0 + np.trace(R))
    return np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], 4 * w * w]) / (4 * w)


def test_hinges_that_meet_become_a_ball() -> None:
    three, ball = interpreted(hip()), interpreted(hip().with_joint_type(("yaw", "roll", "pitch"), JointType.SPHERICAL))
    assert [(j.name, j.type) for j in ball.joints] == [("waist", "revolute"), ("yaw", "spherical"), ("knee", "revolute")]
    zero = three.frame_placement("thigh")(np.zeros(5))
    q = np.array([0.3, 0.4, -0.2, 0.5, 0.7])
    without_waist = q * [0, 1, 1, 1, 1]
    turned = zero[:3, :3].T @ three.frame_placement("thigh")(without_waist)[:3, :3]
    q_ball = np.concatenate([q[:1], rotation_quaternion(turned), q[4:]])
    for frame in ("thigh", "shin", "pelvis"):
        np.testing.assert_allclose(ball.frame_placement(frame)(q_ball), three.frame_placement(frame)(q), atol=1e-14)
    v = np.array([0.5, 0.1, -0.7, 0.3, 0.9])
    J, J_ball = three.frame_jacobian("shin")(q), ball.frame_jacobian("shin")(q_ball)
    v_ball = np.linalg.lstsq(J_ball, J @ v, rcond=None)[0]
    np.testing.assert_allclose(J_ball @ v_ball, J @ v, atol=1e-13)
    without_rotors = dataclasses.replace(hip(), joints=tuple(dataclasses.replace(j, armature=0.0) for j in hip().joints))
    assert ball.kinetic_energy(q_ball, v_ball) == pytest.approx(interpreted(without_rotors).kinetic_energy(q, v))


def test_three_joints_of_an_mjcf_body_become_a_ball(tmp_path: Path) -> None:
    """Check joints as files of humanoids often have them."""
    path = tmp_path / "robot.xml"
    body = '<body name="leg" pos="0 0 1" euler="0 20 0"><geom size="0.1" pos="0 0 -0.3"/>{}</body>'
    axes = {"x": "1 0 0", "z": "0 0 1", "y": "0 1 0"}
    hinges = "".join(f'<joint name="hip_{k}" pos="0.01 0.02 0" axis="{axis}"/>' for k, axis in axes.items())
    path.write_text(f"<mujoco><worldbody>{body.format(hinges)}</worldbody></mujoco>")
    made = fw.read(path).with_joint_type(("hip_x", "hip_z", "hip_y"), JointType.SPHERICAL)
    ball = '<joint name="hip_x" type="ball" pos="0.01 0.02 0"/>'
    path.write_text(f"<mujoco><worldbody>{body.format(ball)}</worldbody></mujoco>")
    assert made.virtual == frozenset()
    assert made.unused == (*fw.read(path).unused, ("configurations of joints that are gone", "qpos0"))
    assert_same_motion(interpreted(made), interpreted(fw.read(path)))


def test_numbers_of_hinges_that_become_a_ball_are_reported() -> None:
    ball = hip().with_joint_type(("yaw", "roll", "pitch"), JointType.SPHERICAL)
    assert dict(ball.unused)["numbers of joints that have another type"] == "yaw (lower, upper), roll (armature)"


def test_hinges_that_are_no_ball_are_refused() -> None:
    joints = ("yaw", "roll", "pitch")
    apart = dataclasses.replace(
        hip(),
        joints=tuple(dataclasses.replace(j, anchor=(-0.2, 0.0, 0.0)) if j.name == "pitch" else j for j in hip().joints),
    )
    assert interpreted(apart.with_joint_type(joints, "spherical")).nv == 5  # an anchor moved along the axis has no effect
    apart = dataclasses.replace(
        hip(),
        joints=tuple(dataclasses.replace(j, anchor=(0.1, 0.0, 0.0)) if j.name == "pitch" else j for j in hip().joints),
    )
    with pytest.raises(ModelError, match=r"the axes of yaw, roll, pitch miss each other by 0\.\d+ m"):
        apart.with_joint_type(joints, JointType.SPHERICAL)
    with pytest.raises(ModelError, match=r"'pitch' is not on the body that 'yaw' moves"):
        hip().with_joint_type(("yaw", "pitch", "roll"), JointType.SPHERICAL)
    with pytest.raises(ModelError, match="body 'b' between them has mass"):
        hip().with_payload("b", BODY).with_joint_type(joints, JointType.SPHERICAL)
    with pytest.raises(ModelError, match="body 'a' between them carries eye"):
        dataclasses.replace(hip(), frames=(fw.Frame("eye", "a"),)).with_joint_type(joints, JointType.SPHERICAL)
    with pytest.raises(ModelError, match="name three hinges for a spherical one, or one joint"):
        hip().with_joint_type(joints[:2], JointType.SPHERICAL)


def test_a_placeholder_becomes_a_ball() -> None:
    description = hip().with_joint_type("knee", JointType.FIXED).with_joint_type("knee", JointType.SPHERICAL)
    expected = dataclasses.replace(
        hip(),
        joints=tuple(dataclasses.replace(j, type=JointType.SPHERICAL) if j.name == "knee" else j for j in hip().joints),
    )
    assert_same_motion(interpreted(description), interpreted(expected))


def test_a_fixed_joint_moves_along_the_axis_that_is_given() -> None:
    fixed = chain(2).with_joint_type("joint1", "fixed")
    slide = fixed.with_joint_type("joint1", JointType.PRISMATIC, axis=(0.0, 3.0, 4.0))
    assert slide.joints[1].axis == (0.0, 0.6, 0.8)
    with pytest.raises(ModelError, match=r"joint 'joint1': the axis .* has no direction"):
        fixed.with_joint_type("joint1", JointType.PRISMATIC, axis=(0.0, 0.0, 0.0))


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "spherical", "planar", "floating"])
def test_a_joint_that_becomes_fixed_stays_at_its_placement(kind: str) -> None:
    description = chain(3, joint=kind)
    robot = interpreted(description)
    neutral = robot.neutral()[robot.joints[1].q_slice]
    assert_same_motion(interpreted(description.with_joint_type("joint1", "fixed")), robot, {"joint1": neutral})


def test_numbers_that_keep_their_meaning_stay() -> None:
    joint = dataclasses.replace(chain(2).joints[1], lower=-1.0, upper=2.0, damping=0.3, armature=0.1, zero=0.4, effort=9.0)
    description = dataclasses.replace(chain(2), joints=(chain(2).joints[0], joint))
    turning = description.with_joint_type("joint1", JointType.CONTINUOUS).joints[1]
    assert (turning.lower, turning.upper, turning.damping, turning.zero) == (-math.inf, math.inf, 0.3, 0.4)
    ball = description.with_joint_type("joint1", JointType.SPHERICAL).joints[1]
    assert (ball.zero, ball.damping, ball.armature) == (0.0, 0.3, 0.1)
    turned = description.with_joint_type("joint1", JointType.REVOLUTE, axis=(0.0, 0.0, 2.0)).joints[1]
    assert turned == dataclasses.replace(joint, axis=(0.0, 0.0, 1.0))
    slide = description.with_joint_type("joint1", JointType.PRISMATIC).joints[1]
    assert (slide.lower, slide.damping, slide.zero, slide.effort) == (-math.inf, 0.0, 0.0, math.inf)
    lost = dict(description.with_joint_type("joint1", JointType.PRISMATIC).unused)
    assert lost == {"numbers of joints that have another type": "joint1 (lower, upper, damping, armature, effort)"}
    assert description.with_joint_type("joint1", JointType.REVOLUTE).unused == ()


def test_what_named_the_coordinate_goes_and_is_said() -> None:
    description = chain(3).with_coupling(Coupling("gear", "joint2", (("joint1", (2.0,)),)))
    description = dataclasses.replace(description, actuators=(Actuator("motor", "joint1"), Actuator("other", "joint0")))
    with pytest.warns(ModelWarning) as caught:
        ball = description.with_joint_type("joint1", JointType.SPHERICAL)
    told = [str(w.message) for w in caught]
    assert any("couplings of joints that have another type: gear" in text for text in told)
    assert any("actuators of joints that have another type: motor" in text for text in told)
    assert [a.name for a in ball.actuators] == ["other"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert description.with_joint_type("joint1", JointType.CONTINUOUS).couplings == description.couplings


def test_marks_in_the_loop_are_chosen_anew() -> None:
    bars = robots.four_bar((0.5, 1.2, 0.6, 1.0)).with_joint_type("joint2", JointType.SPHERICAL)
    assert bars.independent == ()
    assert dict(bars.unused)["marks of joints in loops, which are chosen again"] == "joint1, joint2, joint3"
    assert interpreted(robots.four_bar((0.5, 1.2, 0.6, 1.0))).nv == 1


def test_unknown_joints_and_types_are_refused() -> None:
    with pytest.raises(ModelError, match=r"there is no joint 'joint7' .*; there are joint0, joint1"):
        chain(2).with_joint_type("joint7", JointType.SPHERICAL)
    with pytest.raises(ValueError, match=r"kind must be one of revolute, .*; got 'ball'; here it is 'spherical'"):
        chain(2).with_joint_type("joint1", "ball")


def test_numbers_of_a_tree_are_as_before() -> None:
    q = np.array([[0.1, 0.2]])
    same = interpreted(chain(2).with_joint_type("joint1", JointType.REVOLUTE))
    assert_close(same.mass_matrix(q), interpreted(chain(2)).mass_matrix(q))
