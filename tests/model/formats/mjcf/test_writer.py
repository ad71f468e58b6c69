"""Tests of saved MJCF files: they are the same robot here and in MuJoCo; reports name content that a file cannot store."""

from __future__ import annotations

import dataclasses
import math
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight import (
    Actuator,
    Body,
    Configuration,
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
)
from featherweight.model.generators import chain, random_tree
from oracles import robots as examples
from oracles import trees
from oracles.mujoco_models import Peer
from oracles.same_motion import assert_same_motion, interpreted
from oracles.saved_files import (
    EVERYTHING,
    SOFT,
    TILTED,
    assert_same,
    assert_same_description,
    assert_touch_alike,
    in_mujoco,
    saved,
    silently,
    whatever_is_lost,
)
from oracles.states import assert_close

# --- files of MuJoCo


def mjcf_files() -> list[str]:
    """Return the MJCF files of installed packages; some are parts that other files include."""
    packages = Path(sysconfig.get_paths()["purelib"])
    found = [path for name in ("gymnasium", "gymnasium_robotics", "mjlab") for path in sorted((packages / name).rglob("*.xml"))]
    return [str(path) for path in found if "<worldbody" in path.read_text()]


@pytest.mark.parametrize("path", mjcf_files(), ids=lambda path: "/".join(Path(path).parts[-2:]))
def test_mjcf_files_come_back_whole(path: str, tmp_path: Path) -> None:
    try:
        description = fw.read(path, unsupported="report")
    except ModelError:
        pytest.skip("no robot")
    again = silently(description, tmp_path)
    assert_same_description(again, description)
    mujoco.MjModel.from_xml_path(str(tmp_path / "saved.xml"))


def test_files_are_tried() -> None:
    assert len(mjcf_files()) > 10


def test_all_elements_come_back(tmp_path: Path) -> None:
    (tmp_path / "robot.xml").write_text(EVERYTHING)
    description = fw.read(tmp_path / "robot.xml")
    again = silently(description, tmp_path)
    assert_same_description(again, description)
    for a, b in zip(again.shapes, description.shapes, strict=True):
        for key in ("vertices", "faces", "heights"):
            assert_same(getattr(a, key), getattr(b, key), 1e-7)  # MuJoCo's are in single precision
    assert_touch_alike(interpreted(again), interpreted(description))


def test_mujoco_compiles_what_it_compiled_of_the_file_before(tmp_path: Path) -> None:
    """Check positions of bodies, and accelerations under actuators, springs, limits and contacts."""
    (tmp_path / "robot.xml").write_text(EVERYTHING)
    models = [mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml")), in_mujoco(fw.read(tmp_path / "robot.xml"), tmp_path)]
    accelerations = []
    for model in models:
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, model.key("bent").id)
        data.qvel[:] = np.linspace(-1.0, 1.0, model.nv)
        mujoco.mj_forward(model, data)
        accelerations.append(data.qacc)
    np.testing.assert_allclose(accelerations[1], accelerations[0], rtol=1e-6, atol=1e-6)  # the constraint solver's tolerance


# --- URDF files, and trees


def assert_moves_as_mujocos(robot: fw.Robot, model: Any) -> None:
    """Check the mass matrix and joint forces at random states."""
    model.dof_damping[:] = 0.0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_SPRING
    peer = Peer(robot, model)
    rng = np.random.default_rng(0)
    q = np.atleast_2d(robot.random_configuration(rng=rng, size=2))
    v, a = rng.standard_normal((2, 2, robot.nv))
    assert_close(robot.mass_matrix(q), peer.mass_matrix(q))
    assert_close(robot.inverse_dynamics(q, v, a), peer.inverse_dynamics(q, v, a))


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ["panda", "ur5", "solo12", "go2", "g1", "talos", "kinova", "double_pendulum"])
def test_urdf_robots_move_as_before(name: str, base: str, tmp_path: Path) -> None:
    description = fw.read(examples.path(name))
    with pytest.warns(ModelWarning, match="it loses or changes"):
        again = saved(description, tmp_path)
    if base == "floating" and any(b.name == "world" for b in description.bodies):
        pytest.skip("the root is the ground")
    before, after = interpreted(description, base), interpreted(again, base)
    assert [j.name for j in after.joints] == [j.name for j in before.joints]
    assert {f.name for f in after.frames} == {f.name for f in before.frames}
    assert_same_motion(after, before)
    left = {s.name for s in after.shapes}
    there = [s for s in description.shapes if s.name in left]
    assert_touch_alike(after, interpreted(dataclasses.replace(description, shapes=tuple(there)), base))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "saved.xml"))
    if base == "fixed" and not description.couplings:
        assert_moves_as_mujocos(before, model)


@pytest.mark.parametrize("name", [n for n in trees.TREES if n not in ("rotors", "roots", "all_floating")])
def test_mujoco_moves_trees_as_we_do(name: str, tmp_path: Path) -> None:
    """Check planar and inner floating joints, which become slides and a hinge or a ball joint in MuJoCo."""
    description = trees.TREES[name]()
    on_ground = [j for j in description.joints if j.type is JointType.FLOATING and j.parent == "world"]
    placed = {j.name: dataclasses.replace(j, placement=Pose()) for j in on_ground}
    bare = {j.name: dataclasses.replace(placed.get(j.name, j), armature=0.0) for j in description.joints}
    curved = (JointType.FLOATING, JointType.PLANAR)  # their armature is lost
    joints = tuple(bare[j.name] if j.type in curved else j for j in description.joints)
    description = dataclasses.replace(description, joints=joints)
    assert_moves_as_mujocos(interpreted(description), in_mujoco(description, tmp_path))


@pytest.mark.parametrize("seed", range(5))
def test_generated_trees_come_back(seed: int, tmp_path: Path) -> None:
    kinds = ("revolute", "continuous", "prismatic", "spherical", "fixed")
    description = trees.awkward(random_tree(15, rng=seed, joint_types=kinds), np.random.default_rng(seed))
    names = {j.name: f"{j.child}_fixed" for j in description.joints if j.type is JointType.FIXED}
    description = description.renamed(names)
    before, after = interpreted(description), interpreted(silently(description, tmp_path))
    assert_same_motion(after, before)
    assert [(j.name, j.lower, j.upper, j.armature) for j in after.joints] == [
        (j.name, j.lower, j.upper, j.armature) for j in before.joints
    ]


def test_edited_robots_come_back(tmp_path: Path) -> None:
    (tmp_path / "robot.xml").write_text(EVERYTHING)
    robot = dataclasses.replace(fw.read(tmp_path / "robot.xml"), couplings=())
    for edited in (
        robot.locked({"roll": 0.5, "shoulder": (0.6, 0.0, 0.0, 0.8)}),
        robot.mirrored("y"),
        robot.subtree("torso"),
        chain(3).attached(robot.without("arm"), "body2", TILTED, prefix="its_"),
        robot.attached(chain(3).renamed({"joint0": "first"}), "knee"),
    ):
        before, after = interpreted(edited), interpreted(whatever_is_lost(edited, tmp_path))
        frames = [f.name for f in before.frames]
        for name, q in before.configurations.items():
            assert_close(after.frame_placement(frames)(after.configurations[name]), before.frame_placement(frames)(q))
        if [j.type for j in after.joints] == [j.type for j in before.joints]:
            assert_same_motion(after, before)


def test_names_of_all_alphabets_come_back(tmp_path: Path) -> None:
    again = silently(chain(2).renamed({"joint1": 'Gelenk <ä> & "é"', "body1": "体"}), tmp_path)
    assert [j.name for j in again.joints][-1] == 'Gelenk <ä> & "é"'
    assert [b.name for b in again.bodies][-1] == "体"


def test_both_suffixes_are_written(tmp_path: Path) -> None:
    assert_same_motion(interpreted(whatever_is_lost(chain(3), tmp_path, ".mjcf")), interpreted(chain(3)))


# --- joints, actuators and configurations


def test_numbers_of_joints_and_drives_come_back(tmp_path: Path) -> None:
    elbow = Joint(
        "elbow", JointType.REVOLUTE, "a", "b", TILTED, (0.0, 0.6, 0.8), armature=0.1, lower=-math.inf, upper=2.0, damping=0.2,
        dry_friction=0.3, stiffness=4.0, rest=-0.5, effort=7.0, limit_softness=SOFT, dry_friction_softness=SOFT,
    )  # fmt: skip
    motors = (
        Actuator("servo", "elbow", 2.0, 3.0, (0.1, -3.0, -0.2), (-1.0, math.inf), (-5.0, 5.0)),
        Actuator("motor", "slide"),
    )
    root = Joint("a_fixed", JointType.FIXED, None, "a")
    slide = Joint("slide", JointType.PRISMATIC, "b", "c", axis=(1.0, 0.0, 0.0), lower=0.0, zero=0.25)
    solid = Inertia(1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    made = fw.describe([Body("a"), Body("b", solid), Body("c", solid)], [root, elbow, slide], actuators=motors)
    again = silently(made, tmp_path)
    assert_same(again.joints[1:], (elbow, slide))
    assert again.actuators == motors


def test_limits_of_ball_joints_are_named(tmp_path: Path) -> None:
    joints = tuple(dataclasses.replace(j, lower=-1.0, upper=1.0) for j in chain(1, joint="spherical").joints)
    with pytest.warns(ModelWarning, match="limits and efforts of the joints joint0, which have several degrees of freedom"):
        saved(dataclasses.replace(chain(1), joints=joints), tmp_path)


def test_limits_that_mjcf_has_not_are_named(tmp_path: Path) -> None:
    made = chain(3)
    numbers: Sequence[dict[str, Any]] = ({"lower": 0.0, "upper": 0.0}, {"effort": 0.0}, {"velocity": 2.0})
    joints = tuple(dataclasses.replace(j, **own) for j, own in zip(made.joints, numbers, strict=True))
    fixed = Actuator("still", "joint0", control=(1.0, 1.0), force=(0.0, 0.0))
    with pytest.warns(ModelWarning) as caught:
        again = saved(dataclasses.replace(made, joints=joints, actuators=(fixed,)), tmp_path)
    for told in (
        "limits of the joints joint0, of which the lower is the upper one",
        "the efforts of the joints joint1, which are zero",
        "velocity limits of the joints joint2",
        "the ctrlrange of the actuators still, which has no extent",
        "the forcerange of the actuators still, which has no extent",
    ):
        assert told in str(caught[0].message)
    assert again.joints[0].upper == math.inf


def test_configurations_have_coordinates_of_followers_and_what_has_none_is_named(tmp_path: Path) -> None:
    made = dataclasses.replace(
        chain(3),
        couplings=(Coupling("gear", "joint1", (("joint0", (2.0,)),), 0.3),),
        configurations=(
            Configuration("home", (("joint0", (0.5,)), ("root_joint", (0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)))),
            Configuration("driven", (), (("motor", 0.5),)),
        ),
        actuators=(Actuator("motor", "joint2"),),
    )
    with pytest.warns(ModelWarning, match="it loses or changes coordinates of root_joint in the configurations home"):
        again = saved(made, tmp_path)
    found = {c.name: c for c in again.configurations}
    assert found["home"].coordinates == (("joint0", (0.5,)), ("joint1", (1.3,)), ("joint2", (0.0,)))
    assert found["driven"].controls == (("motor", 0.5),)


def test_rotations_of_configurations_have_unit_length(tmp_path: Path) -> None:
    made = dataclasses.replace(
        chain(1, joint="floating"),
        configurations=(Configuration("qpos0", (("joint0", (1.0, 2.0, 3.0, 0.0, 1.2, 0.0, 1.6)),)),),
    )
    again = whatever_is_lost(made, tmp_path)
    before, after = interpreted(made), interpreted(again)
    one, other = (robot.frame_placement("body0")(robot.configurations["qpos0"]) for robot in (before, after))
    assert_close(other, one)


def test_bodies_that_nothing_leads_to_are_refused(tmp_path: Path) -> None:
    made = chain(3)
    joints = (
        made.joints[0],
        *(dataclasses.replace(j, parent=p) for j, p in zip(made.joints[1:], ("body2", "body1"), strict=True)),
    )
    with pytest.raises(ModelError, match="bodies body1, body2 are not connected to the ground"):
        dataclasses.replace(made, joints=joints).save(tmp_path / "saved.xml")


def test_options_that_mjcf_has_not_are_named(tmp_path: Path) -> None:
    with pytest.warns(ModelWarning, match="it loses or changes the integrator leapfrog"):
        saved(dataclasses.replace(chain(2), integrator="leapfrog"), tmp_path)
    with pytest.warns(ModelWarning, match="it loses or changes marks of independence of the joints joint0, joint1"):
        saved(dataclasses.replace(chain(2), independent=("joint0",), dependent=("joint1",)), tmp_path)


def test_names_that_several_have_and_names_of_fixed_joints_are_told(tmp_path: Path) -> None:
    made = fw.read(examples.path("double_pendulum"))
    balls = tuple(Shape("ball", "link1", ShapeType.SPHERE, (0.1 * k,), friction=1.0) for k in (1, 2))
    frames = (Frame("eye", "link1"), Frame("eye", "link2"), Frame("link2", "link1"))
    motors = (Actuator("motor", "joint1"), Actuator("motor", "joint2"))
    made = dataclasses.replace(made, shapes=balls, frames=frames, actuators=motors)
    tied = made.with_loop(Loop("tie", LoopType.WELD, "link1", "link2"))
    tied = dataclasses.replace(tied, couplings=(Coupling("tie", "joint1", (("joint2", (1.0,)),)),))
    with pytest.warns(ModelWarning) as caught:
        again = saved(tied, tmp_path)
    for kind in (
        "ball of all shapes",
        "eye of all frames",
        "motor of all actuators",
        "tie of all loops, couplings and closures",
    ):
        assert f"the name {kind} but the first that has it" in str(caught[0].message)
    assert ([a.name for a in again.actuators], again.couplings[0].name) == (["motor", "motor_2"], "tie_2")
    assert [s.name for s in again.shapes] == ["ball", "ball_2"]
    assert [f.name for f in again.frames] == ["eye", "link2", "eye_2"]
    first, second = chain(2).joints
    fixed = dataclasses.replace(chain(2), joints=(dataclasses.replace(first, type=JointType.FIXED), second))
    with pytest.warns(ModelWarning, match="the names of the fixed joints joint0"):
        saved(fixed, tmp_path)


def on_a_base(*kinds: JointType) -> fw.Description:
    """A fixed body that carries others by joints of these kinds."""
    solid = Inertia(1.0, (0.0, 0.0, 0.1), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    joints = [Joint(f"joint{k}", kind, "base", f"body{k}") for k, kind in enumerate(kinds)]
    return fw.describe([Body("base"), *(Body(j.child, solid) for j in joints)], joints)


def test_free_joints_that_come_later_in_q_are_named(tmp_path: Path) -> None:
    free, hinge = JointType.FLOATING, JointType.CONTINUOUS
    with pytest.warns(ModelWarning, match="the order of the joints joint1, joint0 in q"):
        again = saved(on_a_base(free, hinge), tmp_path)
    assert [j.name for j in fw.build(again).joints] == ["joint1", "joint0"]
    kept = silently(on_a_base(hinge, free), tmp_path)
    assert [j.name for j in fw.build(kept).joints] == ["joint0", "joint1"]
