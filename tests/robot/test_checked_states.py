"""Tests of checks of states, with a robot that has a joint of every kind, and unknown names."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.generators import from_parents
from featherweight.names import UnknownNameError
from oracles.robots import example

KINDS = (fw.JointType.FLOATING, fw.JointType.SPHERICAL, fw.JointType.PLANAR, fw.JointType.REVOLUTE)


@pytest.fixture(scope="module")
def robot() -> fw.Robot:
    made = from_parents([-1, 0, 1, 2], rng=4)
    joints = [dataclasses.replace(j, type=kind) for j, kind in zip(made.joints, KINDS, strict=True)]
    joints[3] = dataclasses.replace(joints[3], lower=-1.0, upper=2.0, velocity=3.0)
    return fw.build(dataclasses.replace(made, joints=tuple(joints)), execution="interpreted")


def test_valid_states_pass(robot: fw.Robot) -> None:
    q = robot.random_configuration(rng=0, size=(2, 3))
    robot.check(q)
    robot.check(q, np.zeros(robot.nv), limits=True)
    robot.check(q[0, 0].tolist())
    robot.check(q.astype(np.float32))


@pytest.mark.parametrize(
    ("place", "what"),
    [(6, "the quaternion of joint 'joint0'"), (10, "the quaternion of joint 'joint1'"), (13, "cosine and sine")],
)
def test_rotations_that_are_not_normalized_are_refused(robot: fw.Robot, place: int, what: str) -> None:
    q = robot.neutral()
    q[place] += 1e-3
    with pytest.raises(ValueError, match=what):
        robot.check(q)
    robot.check(q, tolerance=1.0)
    many = np.stack([robot.neutral(), q])
    with pytest.raises(ValueError, match=rf"state \[1\] of q: {what}"):
        robot.check(many)


def test_numbers_that_are_not_finite_are_refused(robot: fw.Robot) -> None:
    q, v = robot.neutral(), np.zeros(robot.nv)
    q[15], v[8] = np.nan, np.inf
    with pytest.raises(ValueError, match=r"q\[15\], of joint 'joint3', must be finite; got nan"):
        robot.check(q)
    with pytest.raises(ValueError, match=r"v\[8\], of joint 'joint1', must be finite; got inf"):
        robot.check(robot.neutral(), v)


def test_limits_are_checked_when_asked(robot: fw.Robot) -> None:
    q, v = robot.neutral(), np.zeros(robot.nv)
    q[15], v[12] = 2.1, -3.1
    robot.check(q, v)
    with pytest.raises(ValueError, match=r"q\[15\], of joint 'joint3', must be within \[-1, 2\]; got 2.1"):
        robot.check(q, limits=True)
    with pytest.raises(ValueError, match=r"v\[12\], of joint 'joint3', must be within \[-3, 3\]; got -3.1"):
        robot.check(robot.neutral(), v, limits=True)
    with pytest.raises(ValueError, match=r"q must have shape \(\.\.\., 16\)"):
        robot.check(q[:-1])


def test_unknown_names_are_one_error() -> None:
    panda = example("panda", "interpreted")
    for ask in (
        lambda: panda.joint("panda_jiont1"),
        lambda: panda.joints["panda_jiont1"],
        lambda: panda.body("panda_lnik1"),
        lambda: panda.bodies["panda_lnik1"],
        lambda: panda.frame("panda_hnad"),
        lambda: panda.frame_placement("panda_hnad"),
        lambda: panda.configurations["hmoe"],
        lambda: panda.camera_placement("front"),
    ):
        for kind in (UnknownNameError, KeyError, ValueError):
            with pytest.raises(kind) as caught:
                ask()
        assert str(caught.value)[0] not in "'\"" and caught.value.__context__ is None


def test_completions_show_what_the_reference_lists() -> None:
    """Check that `dir` has the members that the reference lists, and the model's name."""
    page = Path(__file__).parents[2] / "docs/reference/robot.md"
    listed = set(re.findall(r"^Robot\.(\w+)(?:  |$)", page.read_text(encoding="utf-8"), re.MULTILINE))
    shown = {name for name in dir(example("panda", "interpreted")) if not name.startswith("_")}
    assert shown == listed | {"model", "name", "execution"}


def test_help_shows_the_texts_of_fields() -> None:
    for cls in (getattr(fw, name) for name in fw.__all__):
        if isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields"):
            assert not any(str(getattr(cls, field).__doc__).startswith("Alias") for field in cls._fields), cls
    assert fw.Inertia.mass.__doc__ == "float" and fw.Operations.add.__doc__ == "additions and subtractions"
