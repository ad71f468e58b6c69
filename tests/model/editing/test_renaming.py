"""Tests of renamed parts: the robot is the same, and all references follow."""

from __future__ import annotations

import dataclasses
import re

import pytest

import featherweight as fw
from featherweight import Actuator, Closure, Coupling, Frame, Loop, LoopType, ModelError, Shape, ShapeType, robots
from featherweight.model.generators import chain
from oracles.same_motion import assert_same_motion, interpreted


def full() -> fw.Description:
    """Return one of each kind of object, all of which name joint1 or body1."""
    return dataclasses.replace(
        chain(4),
        frames=(Frame("tip", "body1"),),
        loops=(Loop("ring", LoopType.SPHERICAL, "body1", "tip"),),
        couplings=(Coupling("joint1", "joint1", (("joint0", (1.0,)),)), Coupling("gear", "joint2", (("joint1", (1.0,)),))),
        closures=(Closure("rod", ("joint1", "joint3"), lambda q: [q[0]]),),
        independent=("joint1",),
        dependent=("joint3",),
        shapes=(Shape("ball", "body1", ShapeType.SPHERE, (0.1,)),),
        actuators=(Actuator("motor", "joint1"),),
    )


def test_all_that_refers_to_a_part_follows() -> None:
    new = full().renamed({"joint1": "elbow", "body1": "forearm", "tip": "hand"})
    assert not re.search(r"'(joint1|body1|tip)'", repr(new))
    assert new.renamed({"elbow": "joint1", "forearm": "body1", "hand": "tip"}).loops == full().loops
    assert new.joints[1].name == "elbow"
    assert (new.loops[0].predecessor, new.loops[0].successor) == ("forearm", "hand")
    assert new.couplings[1].terms == (("elbow", (1.0,)),)
    assert (new.independent, new.actuators[0].joint, new.shapes[0].body) == (("elbow",), "elbow", "forearm")


def test_the_robot_is_the_same() -> None:
    names = {"joint1": "crank", "link1": "bar", "joint3": "joint1"}
    new = robots.four_bar((0.5, 1.2, 0.6, 1.0)).renamed(names)
    back = {new: old for old, new in names.items()}
    assert_same_motion(interpreted(new), interpreted(robots.four_bar((0.5, 1.2, 0.6, 1.0))), called=back)


def test_names_are_exchanged_at_once() -> None:
    assert [j.name for j in chain(2).renamed({"joint0": "joint1", "joint1": "joint0"}).joints] == ["joint1", "joint0"]


def test_names_that_cannot_be_are_refused() -> None:
    with pytest.raises(ModelError, match=r"renamed: there is no body, joint or frame 'join0' \(is it 'joint0'\?\); there are"):
        chain(2).renamed({"join0": "a"})
    with pytest.raises(ModelError, match="two joints would have the name 'joint1'; give another name"):
        chain(2).renamed({"joint0": "joint1"})
    with pytest.raises(ModelError, match="the new name of 'joint0' is ' '; give a text that is not empty"):
        chain(2).renamed({"joint0": " "})
