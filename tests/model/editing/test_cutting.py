"""Tests of parts of robots: a subtree moves as on a fixed base, and reports name everything that spans the cut."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from featherweight import Coupling, Frame, JointType, ModelError, ModelWarning, Shape, ShapeType, robots
from featherweight.model.generators import chain, from_parents
from oracles import robots as examples
from oracles import trees
from oracles.same_motion import assert_same_motion, interpreted
from oracles.states import assert_close


def branched() -> fw.Description:
    """Return a tree: body0 carries body1 and body3; body2 is on body1, body4 on body3."""
    return from_parents([-1, 0, 1, 0, 3], rng=3)


def test_an_arm_is_cut_off() -> None:
    description = fw.read(examples.path("baxter"), mimic="independent")
    body = next(j.child for j in description.joints if j.name == "left_s0")
    parent = next(j.parent for j in description.joints if j.name == "left_s0")
    arm, rest = description.subtree(body), description.without(body)
    assert {b.name for b in arm.bodies} | {b.name for b in rest.bodies} == {b.name for b in description.bodies}
    assert {b.name for b in arm.bodies}.isdisjoint(b.name for b in rest.bodies)
    assert {s.body for s in arm.shapes} <= {b.name for b in arm.bodies}
    joint = next(j for j in description.joints if j.name == "left_s0")
    back = rest.attached(arm, parent, joint.placement)
    held = description.locked({"left_s0": 0.0})
    assert_same_motion(interpreted(back), interpreted(held))


def test_a_subtree_moves_as_it_did_where_the_rest_stands_still() -> None:
    description = branched()
    part = interpreted(description.subtree("body1"))
    assert [j.name for j in part.joints] == ["joint2"]
    whole = interpreted(description)
    q = np.zeros((3, 5))
    q[:, whole.joints[2].q_slice] = [[0.1], [0.5], [2.0]]
    k = next(j.v_slice for j in whole.joints if j.name == "joint2")
    assert_close(part.mass_matrix(q[:, 2:3]), whole.mass_matrix(q)[:, k, k])


@pytest.mark.parametrize("name", ["mixed_21", "roots", "fixed_between", "anchored"])
def test_what_is_left_moves_as_if_the_rest_had_no_mass(name: str) -> None:
    description = trees.TREES[name]()
    gone = description.bodies[-1].name
    left = description.without(gone)
    bodies, joints = {b.name for b in left.bodies}, {j.name for j in left.joints}
    weightless = dataclasses.replace(
        description,
        bodies=tuple(b if b.name in bodies else fw.Body(b.name) for b in description.bodies),
        joints=tuple(
            j if j.name in joints else fw.Joint(j.name, JointType.FIXED, j.parent, j.child) for j in description.joints
        ),
    )
    assert_same_motion(interpreted(left), interpreted(weightless))


def test_actuators_frames_and_shapes_go_with_their_bodies() -> None:
    description = dataclasses.replace(
        branched(),
        frames=(Frame("on2", "body2"), Frame("on4", "body4"), Frame("mark", None)),
        shapes=(Shape("ball", "body2", ShapeType.SPHERE, (0.1,)), Shape("floor", None, ShapeType.PLANE, ())),
        actuators=(fw.Actuator("m1", "joint1"), fw.Actuator("m2", "joint2"), fw.Actuator("m3", "joint3")),
    )
    left = description.without("body1")
    assert [f.name for f in left.frames] == ["on4", "mark"]
    assert [s.name for s in left.shapes] == ["floor"]
    assert [a.name for a in left.actuators] == ["m3"]
    part = description.subtree("body1")
    assert ([f.name for f in part.frames], [s.name for s in part.shapes]) == (["on2"], ["ball"])
    assert [a.name for a in part.actuators] == ["m2"]
    assert dict(part.unused)["what was on the ground"] == "mark, floor"


def test_a_loop_across_the_cut_is_dropped_and_said() -> None:
    description = robots.four_bar((0.5, 1.2, 0.6, 1.0))
    loop = description.loops[0].name
    with pytest.warns(ModelWarning, match=rf"loops that were cut: {loop}; ") as caught:
        left = description.without("link3")
    assert caught[0].filename == __file__
    assert not left.loops
    assert dict(left.unused)["loops that were cut"] == loop
    assert interpreted(left).nv == 2


def test_loops_of_each_part_stay_with_it() -> None:
    pair = chain(2).attached(robots.four_bar((0.5, 1.2, 0.6, 1.0)), "body1", prefix="left_")
    pair = pair.attached(robots.six_bar(), "body1", prefix="right_")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        left = pair.without("right_link1", "right_link4")
    assert [loop.name for loop in left.loops] == ["left_" + robots.four_bar().loops[0].name]
    assert left.independent == ("left_joint1",)
    assert_same_motion(interpreted(left), interpreted(pair.without("right_link1", "right_link4")))


def test_marks_of_dependent_joints_go_with_the_loop() -> None:
    description = dataclasses.replace(robots.four_bar((0.5, 1.2, 0.6, 1.0)), independent=(), dependent=("joint2", "joint3"))
    with pytest.warns(ModelWarning, match="loops that were cut"):
        left = description.without("link3")
    assert left.dependent == ()
    assert dict(left.unused)["marks of dependent joints, which are chosen again"] == "joint2"


def test_couplings_across_the_cut() -> None:
    """Check that a follower without its leader is free and reported, and that a leader without its follower is unchanged."""
    description = branched().with_coupling(Coupling("gear", "joint4", (("joint2", (2.0,)),)))
    with pytest.warns(ModelWarning, match="couplings to joints that were cut off: gear; their joints are now independent"):
        assert not description.without("body1").couplings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        left = description.without("body3")
    assert not left.couplings
    assert "couplings to joints that were cut off" not in dict(left.unused)


def test_closures_across_the_cut() -> None:
    closure = fw.Closure("rod", ("joint2", "joint4"), lambda q: [q[0] - q[1]])
    description = branched().with_closure(closure)
    with pytest.warns(ModelWarning, match="closures of joints that were cut off: rod; their joints now move without them"):
        assert not description.without("body1").closures


def test_bodies_between_joints_go_with_the_body(tmp_path: Path) -> None:
    path = tmp_path / "r.xml"
    path.write_text(
        '<mujoco><worldbody><body name="a"><joint name="a0"/><geom size="1"/><body name="b"><joint name="b0"/>'
        '<joint name="b1" axis="1 0 0"/><geom size="1"/><body name="c" pos="0 0 1"><joint name="c0"/><geom size="1"/></body>'
        "</body></body></worldbody></mujoco>"
    )
    description = fw.read(path)
    assert [j.name for j in description.without("b").joints] == ["a0"]
    part = description.subtree("b")
    assert ([j.name for j in part.joints], part.virtual) == (["c0"], frozenset())
    assert interpreted(description.without("b")).nv == 1


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ModelError, match=r"subtree: there is no body 'body9' .*; there are body0, body1, body2"):
        branched().subtree("body9")
    with pytest.raises(ModelError, match="without 'body0', which carry all others, nothing is left"):
        branched().without("body0")
