"""Tests of joints that MJCF lacks: saved as others, they move as before, also from the configurations of the robot."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight import (
    Actuator,
    Body,
    Configuration,
    Frame,
    Inertia,
    Joint,
    JointType,
    ModelWarning,
)
from featherweight.model.generators import chain, from_parents
from oracles import trees
from oracles.same_motion import assert_same_motion, interpreted
from oracles.saved_files import (
    EVERYTHING,
    TILTED,
    assert_same,
    in_mujoco,
    saved,
    silently,
    whatever_is_lost,
)
from oracles.states import assert_close


def with_configurations(description: fw.Description, *names: str) -> fw.Description:
    """Return the description with random configurations of these names."""
    robot = interpreted(description)
    rng = np.random.default_rng(1)
    found = []
    for name in names:
        q = robot.random_configuration(rng=rng)
        found.append(Configuration(name, tuple((j.name, tuple(q[j.q_slice].tolist())) for j in robot.joints)))
    return dataclasses.replace(description, configurations=tuple(found))


@pytest.mark.parametrize("start", ["qpos0", "other"])
@pytest.mark.parametrize(
    "name", ["roots", "all_planar", "all_floating", "mixed_21", "floating_inside", "anchored", "all_spherical"]
)
def test_configurations_put_bodies_where_they_were(name: str, start: str, tmp_path: Path) -> None:
    description = with_configurations(trees.TREES[name](), start, "home")
    before, after = interpreted(description), interpreted(whatever_is_lost(description, tmp_path))
    frames = [f.name for f in before.frames]
    for key in (start, "home"):
        there = after.frame_placement(frames)(after.configurations[key])
        assert_close(there, before.frame_placement(frames)(before.configurations[key]))


def test_mujoco_starts_in_the_configuration_of_the_start(tmp_path: Path) -> None:
    """Check files except those with turned ball joints, or with controls."""
    kinds = ("revolute", "prismatic", "planar", "floating")
    description = from_parents([-1, 0, -1, 2, -1, 4, -1, 6], rng=5, joint_types=kinds)
    inner = {j.name for j in description.joints if j.type is JointType.FLOATING and j.parent != "world"}
    joints = tuple(dataclasses.replace(j, type=JointType.REVOLUTE) if j.name in inner else j for j in description.joints)
    description = with_configurations(dataclasses.replace(description, joints=joints, configurations=()), "qpos0")
    model = in_mujoco(description, tmp_path)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    robot = interpreted(description)
    for body in robot.bodies:
        T = robot.frame_placement(body.name)(robot.configurations["qpos0"])
        np.testing.assert_allclose(data.body(body.name).xpos, T[:3, 3], atol=1e-12)
        np.testing.assert_allclose(data.body(body.name).xmat, T[:3, :3].ravel(), atol=1e-12)


def test_a_start_that_mujoco_has_not_is_a_keyframe(tmp_path: Path) -> None:
    balls = chain(2, joint="spherical")
    driven = dataclasses.replace(chain(2), actuators=(Actuator("motor", "joint1"),))
    turned = Configuration("qpos0", (("joint0", (0.6, 0.0, 0.0, 0.8)), ("joint1", (0.0, 0.0, 0.0, 1.0))))
    pushed = Configuration("qpos0", (("joint0", (0.3,)), ("joint1", (0.0,))), (("motor", 0.5),))
    for made, start in ((balls, turned), (driven, pushed)):
        with pytest.warns(ModelWarning, match="it loses or changes the start in the configuration qpos0"):
            again = saved(dataclasses.replace(made, configurations=(start,)), tmp_path)
        assert_same({c.name: c for c in again.configurations}["qpos0"], start)
    silently(dataclasses.replace(balls, configurations=(Configuration("qpos0", ()),)), tmp_path)


def test_what_becomes_of_planar_and_free_joints_is_told(tmp_path: Path) -> None:
    joints = (
        Joint("fly", JointType.FLOATING, None, "a", TILTED, armature=0.1),
        Joint("skate", JointType.PLANAR, "a", "b", TILTED, (0.0, 0.6, 0.8), (0.1, 0.0, 0.0), armature=0.2),
        Joint("hover", JointType.FLOATING, "b", "c", damping=0.3),
    )
    bodies = [Body(name, Inertia(1.0, (0.1, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))) for name in "abc"]
    with pytest.warns(ModelWarning) as caught:
        fw.describe(bodies, joints).save(tmp_path / "saved.xml")
    assert caught[0].filename == __file__
    again = fw.read(tmp_path / "saved.xml")
    message = str(caught[0].message)
    for told in (
        "saved.xml, it loses or changes the places that coordinates of the joints fly begin from",
        "the types of the joints skate, hover (each is slides and a rotation",
        "armature, springs and limits of the joints skate;",
        "armature of the free joints fly",
    ):
        assert told in message
    names = ["fly", "skate_x", "skate_y", "skate_turn", "hover_x", "hover_y", "hover_z", "hover_turn"]
    assert [j.name for j in again.joints] == names
    assert [j.damping for j in again.joints][4:] == [0.3] * 4
    assert len(again.virtual) == 5


def test_free_joints_lead_from_the_ground_through_fixed_links(tmp_path: Path) -> None:
    base, fly = Joint("base_fixed", JointType.FIXED, None, "base"), Joint("fly", JointType.FLOATING, "base", "box")
    description = fw.describe([Body("base"), Body("box", Inertia(1.0, rotational=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)))], [base, fly])
    again = silently(description, tmp_path)
    assert [(j.name, j.type, j.parent) for j in again.joints][1:] == [("fly", JointType.FLOATING, "world")]


def test_bodies_between_joints_that_carry_something_are_bodies(tmp_path: Path) -> None:
    (tmp_path / "robot.xml").write_text(EVERYTHING)
    description = fw.read(tmp_path / "robot.xml")
    virtual = sorted(description.virtual)[0]
    marked = dataclasses.replace(description, frames=(*description.frames, Frame("between", virtual)))
    with pytest.warns(ModelWarning, match=f"the masses of the bodies {virtual}, which have none"):
        again = saved(marked, tmp_path)
    assert virtual in {b.name for b in again.bodies} - again.virtual
    assert_same_motion(interpreted(again), interpreted(marked))


def test_bodies_on_joints_that_mujoco_does_not_let_one_body_have_come_back(tmp_path: Path) -> None:
    """Check seven hinges, or a hinge behind a ball joint."""
    kinds = [JointType.SPHERICAL, *[JointType.REVOLUTE] * 8]
    made = from_parents([k - 1 for k in range(9)], rng=3)
    joints = [dataclasses.replace(j, type=kind, armature=0.1) for j, kind in zip(made.joints, kinds, strict=True)]
    bodies = [Body(b.name) if k < 8 else b for k, b in enumerate(made.bodies)]
    description = dataclasses.replace(
        made, joints=tuple(joints), bodies=tuple(bodies), virtual=frozenset(b.name for b in bodies[:8])
    )
    before, after = interpreted(description), interpreted(whatever_is_lost(description, tmp_path))
    assert_same_motion(after, before)
    assert len(after.bodies) == 3
