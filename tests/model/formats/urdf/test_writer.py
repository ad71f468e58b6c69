"""Tests of saved robots: they are the same after loading; reports name content that a file cannot store."""

from __future__ import annotations

import dataclasses
import math
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import featherweight as fw
from featherweight import (
    Actuator,
    Body,
    Coupling,
    Frame,
    Inertia,
    Joint,
    JointType,
    Loop,
    LoopType,
    ModelError,
    ModelWarning,
    Pose,
    Shape,
    ShapeType,
    robots,
)
from featherweight.model.formats.registry import load_description
from featherweight.model.formats.urdf.elements import roll_pitch_yaw
from featherweight.model.generators import chain, from_parents
from featherweight.model.types import as_matrix
from oracles import robots as examples
from oracles import saved_files, trees
from oracles.same_motion import assert_same_motion, interpreted
from oracles.saved_files import TILTED

FILES = sorted(str(path.relative_to(examples.ROOT)) for path in examples.ROOT.rglob("*.urdf"))
UNREADABLE = ("ur_description/urdf/ur3.urdf",)
ROUNDING = 1e-15  # of cosines and sines, whose products are entries of a rotation


assert_same = partial(saved_files.assert_same, tolerance=ROUNDING)


def saved(description: fw.Description, folder: Path) -> fw.Description:
    """Return the description read from the file that stores the given one."""
    description.save(folder / "saved.urdf")
    return fw.read(folder / "saved.urdf")


@pytest.mark.parametrize("name", [name for name in FILES if name not in UNREADABLE])
def test_robots_of_example_robot_data_come_back(name: str, tmp_path: Path) -> None:
    description = load_description(examples.ROOT / name)
    again = saved(description, tmp_path)
    for field in (
        "name",
        "bodies",
        "joints",
        "frames",
        "loops",
        "couplings",
        "independent",
        "dependent",
        "actuators",
        "shapes",
    ):
        assert_same(getattr(again, field), getattr(description, field))


def test_no_file_of_example_robot_data_is_left_out() -> None:
    assert len(FILES) > 60
    for name in UNREADABLE:
        with pytest.raises(ModelError):
            fw.read(examples.ROOT / name)


@pytest.mark.parametrize("name", ["panda", "solo12", "double_pendulum"])
def test_pinocchio_reads_what_is_saved(name: str, tmp_path: Path) -> None:
    path = tmp_path / "saved.urdf"
    fw.read(examples.path(name)).save(path)
    mine, original = pin.buildModelFromUrdf(str(path)), pin.buildModelFromUrdf(str(examples.path(name)))
    assert list(mine.names) == list(original.names)
    q = pin.randomConfiguration(original)
    data = [(model, model.createData()) for model in (mine, original)]
    M, expected = (pin.crba(model, d, q) for model, d in data)
    np.testing.assert_allclose(M, expected, atol=1e-12)
    limits = [(m.lowerPositionLimit, m.upperPositionLimit, m.effortLimit, m.damping) for m in (mine, original)]
    for a, b in zip(*limits, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "name",
    ["mixed_21", "roots", "anchored", "floating_inside", "fixed_between", "nearly_right_angles", "single_body", "all_planar"],
)
def test_trees_of_all_joints_move_as_before(name: str, tmp_path: Path) -> None:
    description = trees.TREES[name]()
    assert_same_motion(interpreted(saved(description, tmp_path)), interpreted(description))


def test_names_of_all_alphabets_come_back(tmp_path: Path) -> None:
    description = chain(2).renamed({"joint1": 'Gelenk <ä> & "é"', "body1": "体"})
    again = saved(description, tmp_path)
    assert [j.name for j in again.joints][-1] == 'Gelenk <ä> & "é"'
    assert [b.name for b in again.bodies][-1] == "体"


def test_edited_robots_come_back(tmp_path: Path) -> None:
    arm = fw.read(examples.path("ur5")).attached(fw.read(examples.path("allegro")), "tool0", TILTED, prefix="hand_")
    arm = arm.locked({"hand_joint_0.0": 0.2, "elbow_joint": 0.5}).with_payload("tool0", Inertia(0.5, (0.0, 0.1, 0.0)))
    assert_same_motion(interpreted(saved(arm, tmp_path)), interpreted(arm))


# --- loops and couplings


@pytest.mark.parametrize("kind", LoopType)
def test_loops_of_all_types_come_back(kind: LoopType, tmp_path: Path) -> None:
    other = Pose(((0.8, 0.0, 0.6), (0.0, 1.0, 0.0), (-0.6, 0.0, 0.8)), (1.0, 2.0, 3.0))
    loop = Loop("ring", kind, "body2", "body3", TILTED, other)
    tree = from_parents([-1, 0, 1, 0], rng=2)
    assert_same(saved(tree.with_loop(loop), tmp_path).loops, (loop,))
    assert_same(
        saved(tree.with_loop(dataclasses.replace(loop, predecessor=None)), tmp_path).loops,
        (dataclasses.replace(loop, predecessor="world"),),
    )


@pytest.mark.parametrize("make", [robots.mini_cheetah, robots.mit_humanoid])
def test_robots_with_gears_come_back(make: Any, tmp_path: Path) -> None:
    description = make()

    def couplings(d: fw.Description) -> list[Any]:
        return sorted((c.joint, c.terms, c.offset) for c in d.couplings)

    assert couplings(description)
    assert_same(couplings(saved(description, tmp_path)), couplings(description))


@pytest.mark.parametrize("make", [robots.four_bar, robots.six_bar, robots.planar_leg_linkage])
def test_robots_with_loops_keep_their_independent_joints(make: Any, tmp_path: Path) -> None:
    before, after = interpreted(make()), interpreted(saved(make(), tmp_path))
    assert [(j.name, j.v_slice) for j in after.joints] == [(j.name, j.v_slice) for j in before.joints]
    assert after.clusters == before.clusters


def test_a_closed_robot_moves_as_before(tmp_path: Path) -> None:
    description = robots.six_bar()
    assert_same_motion(interpreted(saved(description, tmp_path)), interpreted(description))


def test_couplings_of_all_kinds_come_back(tmp_path: Path) -> None:
    couplings = (
        Coupling("joint1", "joint1", (("joint0", (0.1,)),), 0.3),  # a <mimic> has its joint's name
        Coupling("differential", "joint2", (("joint0", (0.5,)), ("joint3", (-0.25,))), -0.1),
        Coupling("cam", "joint4", (("joint3", (0.5, 0.0, -1 / 3)),)),
    )
    description = dataclasses.replace(chain(5), couplings=couplings)
    assert saved(description, tmp_path).couplings == couplings
    assert_same_motion(interpreted(saved(description, tmp_path)), interpreted(description))


# --- other contents of a description


def test_numbers_of_joints_and_drives_come_back(tmp_path: Path) -> None:
    joint = Joint(
        "elbow", JointType.REVOLUTE, "a", "b", TILTED, (0.0, 0.6, 0.8), armature=0.1, lower=-math.inf, upper=2.0, damping=0.2,
        dry_friction=0.3, stiffness=4.0, rest=-0.5, effort=7.0,
    )  # fmt: skip
    motor = Actuator("motor", "elbow", 2.0, 3.0, (0.1, -3.0, -0.2), (-1.0, math.inf), (-5.0, 5.0))
    root = Joint("root", JointType.FIXED, None, "a")
    slide = Joint("slide", JointType.PRISMATIC, "b", "c", axis=(1.0, 0.0, 0.0))
    made = fw.describe([Body("a"), Body("b", Inertia(1.0)), Body("c", Inertia(2.0))], [root, joint, slide], actuators=[motor])
    again = saved(made, tmp_path)
    assert_same(again.joints[1:], (joint, slide))
    assert again.actuators == (motor,)


def test_frames_become_links_and_anchors_do_not_move_them(tmp_path: Path) -> None:
    description = dataclasses.replace(
        trees.TREES["anchored"](),
        frames=(Frame("eye", "body3", TILTED), Frame("mark", None, TILTED), Frame("body3", "body4", TILTED)),
    )
    before, after = interpreted(description), interpreted(saved(description, tmp_path))
    names = {f.name for f in before.frames}
    assert {"eye", "mark", "body3_frame"} <= names <= {f.name for f in after.frames}
    assert_same_motion(after, before)


def test_shapes_come_back_with_colors_and_meshes(tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "hull.stl").touch()
    shapes = (
        Shape("ball", "body0", ShapeType.SPHERE, (0.1,), TILTED, color=(1.0, 0.5, 0.25, 0.75), collision=False),
        Shape("cup", "body0", ShapeType.CYLINDER, (0.1, 0.3), visual=False),
        Shape("pill", "body0", ShapeType.CAPSULE, (0.1, 0.3), color=(1.0, 0.0, 0.0, 1.0), collision=False),
        Shape("hull", "body1", ShapeType.MESH, (1.0, -2.0, 3.0), TILTED, visual=False, path=str(tmp_path / "meshes/hull.stl")),
        Shape("gone", "body1", ShapeType.MESH, (1.0, 1.0, 1.0), visual=False, path="package://nowhere/a.stl"),
    )
    again = saved(dataclasses.replace(chain(2), shapes=shapes), tmp_path)
    assert_same(again.shapes, shapes)
    assert 'filename="meshes/hull.stl"' in (tmp_path / "saved.urdf").read_text()
    both = dataclasses.replace(chain(2), shapes=(Shape("box", "body0", ShapeType.BOX, (0.1, 0.2, 0.3)),))
    assert [(s.visual, s.collision) for s in saved(both, tmp_path).shapes] == [(True, False), (False, True)]


MJCF = """<mujoco><option gravity="0 0 -1.62"/><worldbody><geom type="plane" size="1 1 1" name="floor"/>
  <body name="torso" pos="0 0 1"><freejoint name="root"/><geom name="hull" size="0.1 0.2 0.3" type="ellipsoid" pos="0 0 0.1"/>
  <body name="thigh" pos="0 0.1 -0.2" euler="10 20 30">
    <joint name="yaw" axis="0 0 1" pos="0.01 0 0.02" armature="0.1"/><joint name="roll" axis="1 0 1" ref="20"/>
    <joint name="slide" type="slide" axis="0 1 0" stiffness="3" springref="0.1"/>
    <joint name="pitch" axis="0 1 0" pos="0.02 0 0"/>
    <geom type="capsule" size="0.04" fromto="0 0 0 0.1 0 -0.3"/><site name="knee" pos="0.1 0 -0.3"/>
    <body name="foot" pos="0.1 0 -0.3"><joint name="ankle" type="ball" pos="0 0 0.01" damping="0.2"/>
      <geom type="box" size="0.1 0.05 0.02" rgba="1 0 0 1"/></body></body>
  <body name="arm" pos="0 0 0.3"><joint name="lift" axis="0 1 0"/><geom size="0.1"/></body></body></worldbody>
  <equality><joint joint1="lift" joint2="roll" polycoef="0.1 0.5 0.2 0 0"/></equality>
  <actuator><position name="push" joint="slide" kp="30" forcerange="-5 5"/><motor name="turn" joint="yaw" gear="3"/></actuator>
</mujoco>"""


def test_an_mjcf_robot_moves_as_before(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(MJCF)
    description = fw.read(path)
    with pytest.warns(ModelWarning, match=r"saved.urdf, it loses gravity \(0.0, 0.0, -1.62\): give it to `load`; ") as caught:
        again = saved(description, tmp_path)
    assert caught[0].filename == __file__
    for lost in ("planes floor", "ellipsoids hull", "friction of the shapes "):
        assert lost in str(caught[0].message)
    before = interpreted(description)
    after = fw.build(again, gravity=before.gravity, execution="interpreted")
    assert_same_motion(after, before)
    assert again.actuators == description.actuators
    numbers = [(j.name, j.armature, j.damping, j.stiffness, j.rest, j.lower, j.upper) for j in before.joints]
    assert numbers == [(j.name, j.armature, j.damping, j.stiffness, j.rest, j.lower, j.upper) for j in after.joints]


# --- refusals


def test_closures_are_refused_by_name(tmp_path: Path) -> None:
    names = ", ".join(c.name for c in robots.tello().closures)
    with pytest.raises(ModelError) as caught:
        robots.tello().save(tmp_path / "tello.urdf")
    assert f"tello.urdf: a URDF file cannot hold the closures {names}, functions in Python" in str(caught.value)
    assert not (tmp_path / "tello.urdf").exists()


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"robot.step: unknown suffix '.step'; a robot is saved as .urdf"):
        chain(2).save(tmp_path / "robot.step")


def test_meshes_without_files_and_hidden_shapes_are_named(tmp_path: Path) -> None:
    shapes = (
        Shape("tetra", "body0", ShapeType.MESH, (1.0, 1.0, 1.0), vertices=np.eye(4, 3)),
        Shape("ghost", "body0", ShapeType.SPHERE, (1.0,), visual=False, collision=False),
    )
    with pytest.warns(ModelWarning, match="meshes without a file tetra; shapes that neither show nor touch ghost"):
        dataclasses.replace(chain(2), shapes=shapes).save(tmp_path / "robot.urdf")


def test_nothing_is_said_where_nothing_is_lost(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fw.read(examples.path("panda")).save(str(tmp_path / "panda.urdf"))


@pytest.mark.parametrize("pitch", [0.0, 1e-9, 1.5, math.pi / 2 - 1e-9, math.pi / 2, -math.pi / 2, math.pi / 2 + 1e-12, 3.0])
def test_angles_give_the_rotation_back_also_where_two_of_their_axes_are_one(pitch: float) -> None:
    R = pin.rpy.rpyToMatrix(0.7, pitch, -1.9)
    back = pin.rpy.rpyToMatrix(np.array(roll_pitch_yaw(as_matrix(R))))
    np.testing.assert_allclose(back, R, atol=1e-15)
