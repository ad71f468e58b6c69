"""Tests of equality constraints of MJCF files: zero where MuJoCo's residuals are zero, and clear errors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from featherweight.model.description import Description
from featherweight.model.formats.registry import load_description
from featherweight.model.types import WORLD, Coupling, Loop, LoopType, ModelError, Pose

WEIGHT = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
BODIES = f"""
    <body name="a" pos="0 0 1" euler="10 20 30"><joint name="ja" axis="0 1 0"/>{WEIGHT}
      <site name="here" pos="0.1 0.2 0.3" euler="40 0 0"/>
      <body name="b" pos="0 0.3 0.1" euler="0 0 50"><joint name="jb" ref="20" axis="1 0 0"/>{WEIGHT}
        <body name="tip" pos="0 0 1">{WEIGHT}</body></body></body>
    <body name="c" pos="1 0 1" euler="-10 0 30"><joint name="jc" axis="0 0 1" ref="10"/>{WEIGHT}
      <site name="there" pos="-0.1 0.2 0.3" euler="0 30 0"/></body>
    <body name="d"><joint name="jd" type="slide" ref="-2"/>{WEIGHT}</body>
    <body name="f"><joint name="jf"/>{WEIGHT}</body>
    <body name="e" pos="3 0 0"><joint type="ball" name="je"/>{WEIGHT}</body>"""


def write(folder: Path, equality: str, rest: str = "") -> Path:
    path = folder / "robot.xml"
    path.write_text(f"<mujoco><worldbody>{BODIES}</worldbody>{rest}<equality>{equality}</equality></mujoco>")
    return path


def load(folder: Path, equality: str, rest: str = "", **options: Any) -> Description:
    return load_description(write(folder, equality, rest), **options)


def mujoco_at(path: Path, seed: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return MuJoCo's model in a random configuration."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    q = np.random.default_rng(seed).normal(size=model.nv)
    mujoco.mj_integratePos(model, data.qpos, q, 1.0)
    mujoco.mj_forward(model, data)
    return model, data


def placed(data: mujoco.MjData, body: str | None, frame: Pose) -> tuple[np.ndarray, np.ndarray]:
    """Return orientation and origin of a frame on a body, in the world."""
    R, p = data.body(body).xmat.reshape(3, 3), data.body(body).xpos
    return R @ np.array(frame.R), p + R @ np.array(frame.p)


LOOPS = {
    "connect": ('<connect body1="b" body2="c" anchor="0.1 0.2 0.3"/>', "spherical b c"),
    "connect to the world": ('<connect body1="b" anchor="0.1 0.2 0.3"/>', "spherical b world"),
    "connect by sites": ('<connect site1="here" site2="there"/>', "spherical a c"),
    "weld": ('<weld body1="b" body2="c"/>', "weld b c"),
    "weld at an anchor": ('<weld body1="b" body2="c" anchor="0.1 0.2 0.3"/>', "weld b c"),
    "weld in a pose": ('<weld body1="b" body2="c" anchor="0.1 0.2 0.3" relpose="1 2 3 1 2 0 -1"/>', "weld b c"),
    "weld to the world": ('<weld body1="b" relpose="1 2 3 0.8 0.6 0 0"/>', "weld b world"),
    "weld by sites": ('<weld site1="here" site2="there"/>', "weld a c"),
    "weld of position": ('<weld body1="b" body2="c" anchor="0.1 0.2 0.3" torquescale="0"/>', "spherical b c"),
}


@pytest.mark.parametrize(("equality", "expected"), LOOPS.values(), ids=LOOPS)
def test_frames_of_loops_are_apart_by_the_residual_of_mujoco(tmp_path: Path, equality: str, expected: str) -> None:
    path = write(tmp_path, equality)
    (loop,) = load_description(path).loops
    assert [str(loop.type), loop.predecessor, loop.successor] == expected.split()
    _, data = mujoco_at(path, seed=1)
    (R1, p1), (R2, p2) = (placed(data, *end) for end in ends(loop))
    assert data.nefc == (6 if "<weld" in equality else 3)
    np.testing.assert_allclose(p1 - p2, data.efc_pos[:3], atol=1e-14)  # quaternions against matrices: a few roundings
    if loop.type == LoopType.WELD:
        half_angle = np.arccos((np.trace(R1.T @ R2) - 1) / 2) / 2
        assert np.linalg.norm(data.efc_pos[3:]) == pytest.approx(np.sin(half_angle), abs=1e-13)
        assert half_angle > 0.1


def ends(loop: Loop) -> tuple[tuple[str | None, Pose], tuple[str | None, Pose]]:
    return (loop.predecessor, loop.predecessor_frame), (loop.successor, loop.successor_frame)


def test_loops_have_names_of_the_file_or_of_their_own(tmp_path: Path) -> None:
    weld = '<weld body1="b" body2="c"/>'
    loops = load(tmp_path, weld + weld.replace("<weld", '<weld name="equality2"') + weld).loops
    assert [loop.name for loop in loops] == ["equality0", "equality2", "equality2_"]
    assert WORLD == "world"


COUPLINGS = {
    "gear": '<joint joint1="jc" joint2="ja" polycoef="0 -3 0 0 0"/>',
    "offset and reference": '<joint joint1="jc" joint2="jb" polycoef="0.1 2 0 0 0"/>',
    "quartic": '<joint joint1="jd" joint2="jb" polycoef="0.1 0.2 0.3 0.4 0.5"/>',
    "chain": '<joint joint1="jb" joint2="jc" polycoef="0.1 2 0.5 0 0"/><joint joint1="ja" joint2="jb" polycoef="0 1 1 0 0"/>',
    "chain backwards": '<joint joint1="ja" joint2="jb"/><joint joint1="jb" joint2="jd" polycoef="1 0 -2 0 0"/>',
}


@pytest.mark.parametrize("equality", COUPLINGS.values(), ids=COUPLINGS)
def test_coordinates_that_follow_leave_mujoco_no_residual(tmp_path: Path, equality: str) -> None:
    path = write(tmp_path, equality)
    couplings = load_description(path).couplings
    followers = {coupling.joint for coupling in couplings}
    model, data = mujoco_at(path, seed=2)
    assert np.abs(data.efc_pos).max() > 0.1
    for coupling in couplings:
        ((leader, coefficients),) = coupling.terms
        assert leader not in followers and coefficients[-1] != 0.0
        q = data.joint(leader).qpos[0]
        data.joint(coupling.joint).qpos[0] = coupling.offset + sum(c * q**k for k, c in enumerate(coefficients, start=1))
    mujoco.mj_forward(model, data)
    assert data.nefc == len(couplings) == equality.count("<joint")
    np.testing.assert_allclose(data.efc_pos, 0.0, atol=1e-12)  # polynomials of degree 4 in numbers of about 3


def test_numbers_of_a_gear_are_those_of_the_file(tmp_path: Path) -> None:
    (coupling,) = load(tmp_path, '<joint name="g" joint1="jd" joint2="ja" polycoef="0 0.1 0 0 0"/>').couplings
    assert coupling == Coupling("g", "jd", (("ja", (0.1,)),), -2.0)


def test_inactive_ones_are_listed(tmp_path: Path) -> None:
    gear = '<joint joint1="jc" joint2="ja"/>'
    robot = load(tmp_path, gear + '<joint joint1="jd" active="false"/><weld body1="b" body2="c" active="false"/>')
    assert len(robot.couplings) == 1 and robot.loops == ()
    assert dict(robot.unused)["inactive equality constraints"] == "2"
    assert "inactive equality constraints" not in dict(load(tmp_path, gear).unused)


def test_a_joint_that_an_equality_holds_follows_nothing(tmp_path: Path) -> None:
    """Check that it keeps the sum of its coordinate in qpos0 and the constant, and so do its followers."""
    held = '<joint name="pin" joint1="jb" polycoef="0.3 0 0 0 0"/><joint joint1="ja" joint2="jb" polycoef="0.1 2 0 0 0"/>'
    zeros = '<joint joint1="jd" joint2="jb" polycoef="1 0 0 0 0"/>'
    b = np.radians(20) + 0.3
    for equality, expected in ((held, {"jb": b, "ja": 0.1 + 2.0 * 0.3}), (zeros, {"jd": -1.0})):
        couplings = load(tmp_path, equality).couplings
        assert all(c.terms == () for c in couplings)
        assert {c.joint: c.offset for c in couplings} == pytest.approx(expected)


# --- refusals

REFUSED = {
    "joint that follows two": (
        '<joint name="one" joint1="ja" joint2="jb"/><joint name="two" joint1="ja" joint2="jc" polycoef="0 1 1 0 0"/>',
        ["equality 'two'", "'ja'", "'one'", "exchange"],
    ),
    "circle": (
        '<joint name="one" joint1="ja" joint2="jb"/><joint name="two" joint1="jb" joint2="ja"/>',
        ["equality 'two'", "'jb' and 'ja' follow each other", "remove"],
    ),
    "ball joint": ('<joint name="pin" joint1="je" joint2="jb"/>', ["pin"]),
    "bodies in one piece": ('<weld name="pin" body1="b" body2="tip"/>', ["equality 'pin'", "'b'", "'tip'", "no joint"]),
    "NaN": ('<connect name="pin" body1="b" anchor="0 nan 0"/>', ["connect 'pin'", "anchor", "finite"]),
    "unnamed": (
        '<joint joint1="jc" joint2="jb"/><joint joint1="jc" joint2="ja" polycoef="0 1 1 0 0"/>',
        ["equality number 1", "'jc'", "exchange"],
    ),
    "degree": (
        """<joint name="one" joint1="ja" joint2="jb" polycoef="0 0 0 0 1"/><joint joint1="jb" joint2="jc" polycoef="0 0 0 0 1"/>
           <joint joint1="jc" joint2="jd" polycoef="0 0 0 0 1"/><joint joint1="jd" joint2="jf" polycoef="0 0 0 0 1"/>""",
        ["equality 'one'", "'ja'", "degree above 64"],
    ),
    "overflow": ('<joint name="pin" joint1="ja" joint2="jb" polycoef="0 1e999 0 0 0"/>', ["joint 'pin'", "polycoef", "finite"]),
}


@pytest.mark.parametrize(("equality", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_named_with_file_and_element(tmp_path: Path, equality: str, words: Sequence[str]) -> None:
    with pytest.raises(ModelError) as caught:
        load(tmp_path, equality, unsupported="raise")
    for word in [str(tmp_path / "robot.xml"), *words]:
        assert word in str(caught.value)
