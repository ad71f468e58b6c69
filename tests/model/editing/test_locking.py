"""Tests of locked joints: the robot moves as the whole robot with these joints at rest; reports name other effects."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from featherweight import Coupling, Inertia, JointType, Loop, LoopType, ModelError, ModelWarning, Pose, robots
from featherweight.model.generators import chain, random_tree
from featherweight.robots.linkages import four_bar_configuration
from oracles import robots as examples
from oracles import trees
from oracles.pinocchio_models import Peer
from oracles.same_motion import assert_same_motion, interpreted
from oracles.states import assert_close, random_states


def positions(description: fw.Description, every: int, seed: int = 0) -> dict[str, Any]:
    """Return positions of every second, third, ... joint that moves, from the robot's random configurations."""
    robot = interpreted(description)
    q = robot.random_configuration(rng=seed)
    return {j.name: q[j.q_slice] for j in robot.joints[::every]}


@pytest.mark.parametrize("name", ["panda", "solo12", "allegro", "simple_humanoid", "z1", "hyq", "tiago"])
def test_robots_are_pinocchios_reduced_models(name: str) -> None:
    floating = [pin.JointModelFreeFlyer()] if name in examples.FLOATING else []
    model = pin.buildModelFromUrdf(str(examples.path(name)), *floating)
    description = fw.read(examples.path(name), mimic="independent")
    held = positions(description, 2)
    q = pin.neutral(model)
    for joint, (x,) in held.items():
        k = model.getJointId(joint)
        q[model.idx_qs[k] : model.idx_qs[k] + model.nqs[k]] = x if model.nqs[k] == 1 else (np.cos(x), np.sin(x))
    reduced = pin.buildReducedModel(model, [model.getJointId(joint) for joint in held], q)
    peer = Peer(interpreted(description.locked(held), "floating" if floating else "fixed"), reduced)
    states = random_states(peer.robot, 2)
    assert_close(peer.robot.mass_matrix(states.q), peer.mass_matrix(states.q))
    assert_close(peer.robot.inverse_dynamics(*states), peer.inverse_dynamics(*states))
    frames = [f.name for f in peer.robot.frames]
    assert_close(peer.robot.frame_placement(frames)(states.q), peer.frame_placement(frames, states.q))


@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("name", ["mixed_8", "mixed_21", "anchored", "roots", "floating_inside", "fixed_between", "all_planar"])
def test_joints_of_all_types_are_held_where_they_would_be(name: str, every: int) -> None:
    description = trees.TREES[name]()
    held = positions(description, every)
    if every == 1:
        held.popitem()
    assert_same_motion(interpreted(description.locked(held)), interpreted(description), held)


def test_a_robot_with_all_joints_locked_is_a_description_that_does_not_move() -> None:
    description = chain(3)
    locked = description.locked({j.name: 0.3 for j in description.joints})
    assert {j.type for j in locked.joints} == {JointType.FIXED}
    with pytest.warns(ModelWarning, match="no joint of the robot moves"):
        fw.build(locked)
    flying = interpreted(locked, "floating")
    assert flying.mass == pytest.approx(sum(b.inertia.mass for b in description.bodies))


def test_a_floating_base_is_locked_where_it_is_put() -> None:
    description = random_tree(4, rng=2, joint_types=("revolute",))
    joints = [dataclasses.replace(description.joints[0], type=JointType.FLOATING), *description.joints[1:]]
    description = dataclasses.replace(description, joints=tuple(joints))
    q = np.array([1.0, 2.0, 3.0, 0.5, 0.5, -0.5, 0.5])
    assert_same_motion(interpreted(description.locked({"joint0": q})), interpreted(description), {"joint0": q})


# --- couplings


def follower(terms: tuple[tuple[str, tuple[float, ...]], ...], offset: float = 0.1) -> fw.Description:
    return chain(4).with_coupling(Coupling("gear", "joint3", terms, offset))


def held_at(description: fw.Description, locked: fw.Description) -> dict[str, float]:
    """Return the angles of fixed joints, by the rotation of their placement."""
    angles = {}
    for before, now in zip(description.joints, locked.joints, strict=True):
        if now.type is JointType.FIXED:
            R = np.array((before.placement.inverse() @ now.placement).R)
            angles[now.name] = float(pin.log3(R) @ np.array(before.axis))
    return angles


def test_a_follower_is_held_with_the_joint_that_it_follows() -> None:
    description = follower((("joint1", (2.0, -1.0)),))
    locked = description.locked({"joint1": 0.5})
    assert held_at(description, locked) == pytest.approx({"joint1": 0.5, "joint3": 0.1 + 2.0 * 0.5 - 0.25})
    assert not locked.couplings
    assert dict(locked.unused)["locked joints"] == "joint1, joint3"
    assert_same_motion(interpreted(locked), interpreted(description), {"joint1": 0.5})


def test_one_of_several_leaders_becomes_a_constant() -> None:
    description = follower((("joint1", (2.0,)), ("joint2", (0.5, 3.0))))
    locked = description.locked({"joint2": 0.5})
    assert locked.couplings == (Coupling("gear", "joint3", (("joint1", (2.0,)),), 0.1 + 0.25 + 0.75),)
    assert_same_motion(interpreted(locked), interpreted(description), {"joint2": 0.5})


def test_the_leader_of_a_locked_follower_is_held() -> None:
    description = follower((("joint1", (2.0,)),))
    assert held_at(description, description.locked({"joint3": 0.5})) == pytest.approx({"joint1": 0.2, "joint3": 0.5})


def test_a_locked_differential_couples_its_leaders() -> None:
    description = follower((("joint1", (2.0,)), ("joint2", (0.5,))))
    (coupling,) = description.locked({"joint3": 0.5}).couplings
    assert coupling == Coupling("gear", "joint1", (("joint2", (-0.25,)),), 0.2)


def test_chains_of_couplings_are_followed_to_their_end() -> None:
    description = follower((("joint1", (2.0,)),)).with_coupling(Coupling("belt", "joint1", (("joint0", (4.0,)),)))
    angles = held_at(description, description.locked({"joint3": 0.5}))
    assert angles == pytest.approx({"joint0": 0.05, "joint1": 0.2, "joint3": 0.5})


def test_a_locked_follower_of_all_leaders_by_chains() -> None:
    """Check the gear j3 = 0.1 + 2 j1 + j2, and the belt j2 = 4 j0; locking j3 and j1 locks j0 and j2."""
    description = follower((("joint1", (2.0,)), ("joint2", (1.0,)))).with_coupling(
        Coupling("belt", "joint2", (("joint0", (4.0,)),), 0.2)
    )
    locked = description.locked({"joint3": 0.9, "joint1": 0.1})
    assert held_at(description, locked) == pytest.approx({"joint0": 0.1, "joint1": 0.1, "joint2": 0.6, "joint3": 0.9})
    alone = description.locked({"joint3": 0.9})
    gear, belt = alone.couplings
    assert gear.offset == pytest.approx(0.3)
    assert dataclasses.replace(gear, offset=0.3) == Coupling("gear", "joint1", (("joint0", (-2.0,)),), 0.3)
    assert belt == Coupling("belt", "joint2", (("joint0", (4.0,)),), 0.2)
    assert interpreted(alone).nv == 1


def test_positions_against_couplings_are_refused() -> None:
    with pytest.raises(ModelError, match=r"coupling 'gear' puts joint 'joint3' at 1\.1, not at 0\.7"):
        follower((("joint1", (2.0,)),)).locked({"joint1": 0.5, "joint3": 0.7})
    with pytest.raises(ModelError, match=r"follows 'joint1' by a polynomial .*lock 'joint1' instead"):
        follower((("joint1", (2.0, 1.0)),)).locked({"joint3": 0.7})


# --- loops


def test_a_joint_in_a_loop_takes_a_freedom_of_the_loop() -> None:
    description = robots.six_bar()
    held = {"joint2": 0.9}
    locked = description.locked(held)
    assert locked.independent == ("joint1", "joint3")
    assert_same_motion(interpreted(locked), interpreted(description), held)


def test_marks_are_chosen_anew_where_a_dependent_joint_is_locked() -> None:
    locked = robots.six_bar().locked({"joint5": 2.2})
    assert locked.independent == ()
    assert dict(locked.unused)["marks of independent joints, which are chosen again"] == "joint1, joint2, joint3"
    assert interpreted(locked).nv == 2


def test_a_loop_in_which_nothing_moves_goes_if_it_is_closed() -> None:
    arm = chain(2).attached(robots.four_bar((0.5, 1.2, 0.6, 1.0)), prefix="bar_")
    q = dict(zip(("bar_joint1", "bar_joint2", "bar_joint3"), four_bar(0.8), strict=True))
    locked = arm.locked(q)
    assert not locked.loops
    assert dict(locked.unused)["loops that locked joints keep closed"] == "bar_" + robots.four_bar().loops[0].name
    assert interpreted(locked).nv == 2
    with pytest.raises(ModelError, match=r"loop .* is open by .* take them from a closed configuration"):
        arm.locked(q | {"bar_joint2": 0.1})


def four_bar(crank: float) -> tuple[float, float, float]:
    return four_bar_configuration(crank, (0.5, 1.2, 0.6, 1.0))


def test_all_that_a_crank_moves_is_still_with_it() -> None:
    arm = chain(2).attached(robots.four_bar((0.5, 1.2, 0.6, 1.0)), prefix="bar_")
    part, whole = interpreted(arm.locked({"bar_joint1": 0.8})), interpreted(arm)
    assert (part.nv, whole.nv) == (2, 3)


def test_closures_keep_what_is_held_as_constants() -> None:
    closure = fw.Closure("rod", ("joint0", "joint1", "joint2"), lambda q: [np.sin(q[0]) + q[1] * q[2] - 0.5])
    description = chain(4).with_closure(closure)
    locked = description.locked({"joint1": 0.3})
    assert locked.closures[0].joints == ("joint0", "joint2")
    assert locked.closures[0].function(np.array([0.2, 0.4]))[0] == pytest.approx(np.sin(0.2) + 0.12 - 0.5)
    assert interpreted(locked).nv == 2
    with pytest.raises(ModelError, match=r"closure 'rod' is 0\.5 at these positions"):
        description.locked({"joint0": 0.0, "joint1": 0.0, "joint2": 0.0})


# --- MJCF


MJCF = """<mujoco><worldbody><body name="torso"><freejoint name="root"/><geom size="0.1" pos="0 0 0.1"/>
  <body name="thigh" pos="0 0.1 -0.2" euler="10 20 30">
    <joint name="yaw" axis="0 0 1" pos="0.01 0 0.02" armature="0.1"/><joint name="roll" axis="1 0 1" ref="20"/>
    <joint name="slide" type="slide" axis="0 1 0"/><joint name="pitch" axis="0 1 0" pos="0.02 0 0"/>
    <geom type="capsule" size="0.04" fromto="0 0 0 0.1 0 -0.3"/><site name="knee" pos="0.1 0 -0.3"/>
    <body name="foot" pos="0.1 0 -0.3"><joint name="ankle" type="ball" pos="0 0 0.01"/><joint name="give" type="slide"/>
      <geom type="box" size="0.1 0.05 0.02"/></body></body></body></worldbody>
  <actuator><motor name="push" joint="slide"/><motor name="turn" joint="yaw"/></actuator></mujoco>"""
JOINTS = ("yaw", "roll", "slide", "pitch", "give")


@pytest.fixture(scope="module")
def leg(tmp_path_factory: pytest.TempPathFactory) -> fw.Description:
    path: Path = tmp_path_factory.mktemp("leg") / "leg.xml"
    path.write_text(MJCF)
    return fw.read(path)


@pytest.mark.parametrize("kept", [(), ("yaw",), ("roll",), ("slide", "pitch"), ("pitch", "give"), ("yaw", "pitch")])
def test_bodies_between_joints_of_one_body_go_with_the_joints(leg: fw.Description, kept: tuple[str, ...]) -> None:
    held = {name: 0.2 + 0.1 * k for k, name in enumerate(JOINTS) if name not in kept}
    part = interpreted(leg.locked(held))
    assert_same_motion(part, interpreted(leg), held)
    assert all("/" not in body.name for body in part.bodies)
    assert sum(body.mass for body in part.bodies) == pytest.approx(interpreted(leg).mass)


def test_actuators_of_locked_joints_go_and_are_reported(leg: fw.Description) -> None:
    robot = interpreted(leg.locked({"slide": 0.1}))
    assert [a.name for a in robot.actuators] == ["turn"]
    assert robot.report()["actuators of locked joints"] == "push"


def test_locking_twice_is_locking_both(leg: fw.Description) -> None:
    twice = leg.locked({"yaw": 0.1}).locked({"pitch": 0.2})
    assert_same_motion(interpreted(twice), interpreted(leg.locked({"yaw": 0.1, "pitch": 0.2})))
    assert dict(twice.unused)["locked joints"] == "yaw, pitch"


# --- refusals


def test_what_is_wrong_is_named_and_the_joints_are_listed() -> None:
    description = chain(3)
    with pytest.raises(ModelError, match=r"no joint 'join1' \(is it 'joint1'\?\); there are joint0, joint1, joint2"):
        description.locked({"join1": 0.0})
    with pytest.raises(ModelError, match=r"joint 'joint1', which is revolute, needs one finite number; got \[1, 2\]"):
        description.locked({"joint1": [1, 2]})
    for wrong in (float("nan"), "straight", None):
        with pytest.raises(ModelError, match=f"needs one finite number; got {wrong!r}"):
            description.locked({"joint1": wrong})
    fixed = description.locked({"joint1": 0.0})
    with pytest.raises(ModelError, match=r"no moving joint 'joint1'.*there are joint0, joint2"):
        fixed.locked({"joint1": 0.0})
    ball = chain(2, joint="spherical")
    with pytest.raises(ModelError, match=r"needs a quaternion \(x, y, z, w\) of length one"):
        ball.locked({"joint0": [0, 0, 0, 2]})


def test_degrees_are_noticed_at_the_line_that_gives_them() -> None:
    description = fw.read(examples.path("panda"), mimic="independent")
    with pytest.warns(ModelWarning, match=r"'panda_joint2' is locked at 90, outside of its limits .* in rad") as caught:
        description.locked({"panda_joint2": 90})
    assert caught[0].filename == __file__


def test_nothing_is_said_where_nothing_is_lost() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chain(3).locked({"joint1": 0.2})


def test_loops_on_frames_and_fixed_joints_stay_where_they_were() -> None:
    bars = robots.four_bar((0.5, 1.2, 0.6, 1.0))
    (ring,) = bars.loops
    tip = fw.Frame("tip", ring.predecessor, ring.predecessor_frame)
    plate = fw.Joint("plate_fixed", JointType.FIXED, ring.successor, "plate", ring.successor_frame)
    framed = dataclasses.replace(
        bars,
        bodies=(*bars.bodies, fw.Body("plate", Inertia(0.1, rotational=(0.1, 0.0, 0.0, 0.1, 0.0, 0.1)))),
        joints=(*bars.joints, plate),
        frames=(tip,),
    )
    on_bodies = framed.with_loop(Loop("again", LoopType.REVOLUTE, "tip", "plate_fixed"))
    on_bodies = dataclasses.replace(on_bodies, loops=on_bodies.loops[1:])
    assert_same_motion(interpreted(on_bodies), interpreted(framed))
    assert Pose() == on_bodies.loops[0].predecessor_frame
    again = on_bodies.locked({"joint1": 0.8}).loops[0]
    assert (again.predecessor, again.predecessor_frame) == (ring.predecessor, ring.predecessor_frame)
