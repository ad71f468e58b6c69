"""Keyframes and qpos0 of MJCF files: bodies lie where MuJoCo puts them, and what `neutral` has to do with that."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.model.formats.registry import load_description

INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
HINGE = '<joint name="elbow" axis="0 1 0" ref="30"/>'
SLIDE = '<joint name="slider" type="slide" axis="1 0 0" ref="0.25"/>'
BALL = '<joint name="shoulder" type="ball" pos="0 0 0.1"/>'
ARM = (
    f'<body name="box" pos="1 2 3" quat="0.8 0 0.6 0"><freejoint name="fly"/>{INERTIAL}'
    f'<body name="upper" pos="0.1 0 0">{BALL}{INERTIAL}'
    f'<body name="lower" pos="0 0 0.4" euler="0 20 0">{HINGE}{SLIDE}{INERTIAL}</body></body></body>'
)
KEYS = (
    '<keyframe><key name="home" qpos="1 0 0 0.6 0 0 0.8  0.6 0 0.8 0  0.5 0.1"/>'
    '<key/><key name="key1" qpos="0 0 0 2 0 0 0  1 0 0 0  0 0"/></keyframe>'
)


def written(folder: Path, bodies: str, rest: str = "") -> Path:
    path = folder / "robot.xml"
    path.write_text(f'<mujoco model="r"><worldbody>{bodies}</worldbody>{rest}</mujoco>')
    return path


def assert_bodies_are_where_mujoco_puts_them(path: Path) -> None:
    """At qpos0 and at all keyframes, to rounding."""
    robot = fw.load(path, execution="interpreted")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    keys = [None, *range(model.nkey)]
    assert len(robot.configurations) == len(keys)
    names = [name for b in range(1, model.nbody) if (name := model.body(b).name)]
    for key, name in zip(keys, robot.configurations, strict=True):
        mujoco.mj_resetData(model, data) if key is None else mujoco.mj_resetDataKeyframe(model, data, key)
        mujoco.mj_kinematics(model, data)
        for T, body in zip(robot.frame_placement(names)(robot.configurations[name]), names, strict=True):
            np.testing.assert_allclose(T[:3, 3], data.body(body).xpos, atol=1e-12)
            np.testing.assert_allclose(T[:3, :3].ravel(), data.body(body).xmat, atol=1e-12)


def test_bodies_are_where_mujoco_puts_them_at_keyframes_of_all_joint_types(tmp_path: Path) -> None:
    path = written(tmp_path, ARM, KEYS)
    assert_bodies_are_where_mujoco_puts_them(path)
    assert list(fw.load(path).configurations) == ["qpos0", "home", "key1_2", "key1"]


ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"


@pytest.mark.parametrize("name", ["ant", "humanoid", "hopper", "walker2d", "swimmer", "reacher", "pusher", "half_cheetah"])
def test_bodies_of_gymnasiums_robots_are_where_mujoco_puts_them(name: str) -> None:
    assert_bodies_are_where_mujoco_puts_them(ASSETS / f"{name}.xml")


def test_neutral_is_qpos0_but_for_free_joints_and_references(tmp_path: Path) -> None:
    robot = fw.load(written(tmp_path, ARM))
    start, neutral = robot.configurations["qpos0"], robot.neutral()
    np.testing.assert_allclose(start, [1, 2, 3, 0, 0.6, 0, 0.8, 0, 0, 0, 1, np.pi / 6, 0.25], atol=1e-15)
    np.testing.assert_array_equal(neutral, [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0])


def test_exclusions_are_pairs_that_do_not_collide(tmp_path: Path) -> None:
    exclude = '<contact><exclude body1="box" body2="lower"/><exclude body1="lower" body2="world"/></contact>'
    description = load_description(written(tmp_path, ARM, exclude))
    assert {frozenset(pair) for pair in description.disabled_collisions} == {
        frozenset({"box", "lower"}), frozenset({"lower", "world"})
    }  # fmt: skip


ONE, TWO, THREE = (f'<joint name="{name}" axis="0 1 0"/>{INERTIAL}' for name in ("one", "two", "three"))
LINKAGE = f'<body name="a">{ONE}<body name="b" pos="1 0 0">{TWO}</body></body><body name="c" pos="0 0 -1">{THREE}</body>'


def test_a_keyframe_that_leaves_a_loop_open_is_closed_near_it(tmp_path: Path) -> None:
    """MuJoCo's constraints give way, so its keyframes close loops to some digits only."""
    loop = '<equality><connect body1="b" body2="c" anchor="0 0 -1"/></equality>'
    closed = "0.3 -0.3 0.3"
    for qpos in (closed, "0.3 -0.301 0.3005"):
        path = written(tmp_path, LINKAGE, f'{loop}<keyframe><key name="home" qpos="{qpos}"/></keyframe>')
        robot = fw.load(path, independent=["one"], execution="interpreted")
        assert isinstance(robot, fw.ClosedRobot)
        home = robot.configurations["home"]
        np.testing.assert_allclose(home, [0.3, -0.3, 0.3], atol=1e-9)
        assert np.abs(robot.residual(home)).max() < 1e-9
