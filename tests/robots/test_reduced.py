"""Tests of robots without dependent bodies."""

from __future__ import annotations

from dataclasses import replace

import featherweight as fw
from featherweight import Actuator, Configuration, Shape, ShapeType
from featherweight.robots.reduced import unconstrained


def test_what_is_on_bodies_that_are_left_out_goes_with_them() -> None:
    """Check shapes, drives and coordinates; a shape would otherwise stand on the ground."""
    linkage = fw.robots.four_bar()
    shapes = tuple(Shape(f"s{k}", f"link{k}", ShapeType.SPHERE, (0.1,)) for k in (1, 2, 3))
    joints = ("joint1", "joint2", "joint3")
    described = replace(
        linkage,
        dependent=("joint2", "joint3"),
        shapes=shapes,
        actuators=tuple(Actuator(f"a_{joint}", joint) for joint in joints),
        configurations=(Configuration("home", tuple((joint, (0.5,)) for joint in joints)),),
    )
    robot = fw.build(unconstrained(described))
    assert [(s.name, s.body) for s in robot.shapes] == [("s1", "link1")]
    assert [a.name for a in robot.actuators] == ["a_joint1"]
    assert robot.configurations["home"].tolist() == [0.5]
