"""Tests of keyframes and qpos0 of MJCF files: bodies are in MuJoCo's places; the relation to `neutral`."""

from __future__ import annotations

from dataclasses import replace
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
    """Compare bodies at qpos0 and at all keyframes, to rounding."""
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


DRIVES = '<actuator><motor name="lift" joint="elbow"/><general joint="elbow" dyntype="user"/><motor joint="slider"/></actuator>'


def test_controls_of_keyframes_are_those_of_actuators_that_are_read(tmp_path: Path) -> None:
    keys = '<keyframe><key name="hold" ctrl="0.5 0 -2"/><key name="rest"/><key name="drive" ctrl="0 1 0"/></keyframe>'
    description = fw.read(written(tmp_path, ARM, DRIVES + keys))
    assert dict(description.unused)["controls of keyframes"] == "1"
    robot = fw.build(description)
    assert [a.name for a in robot.actuators] == ["lift", "slider_actuator"]
    assert robot.configurations.control("hold").tolist() == [0.5, -2.0]
    assert robot.configurations.control("rest").tolist() == robot.configurations.control("qpos0").tolist() == [0.0, 0.0]
    with pytest.raises(KeyError, match="no configuration 'up'"):
        robot.configurations.control("up")
    less = fw.build(description.locked({"slider": 0.1}).renamed({"lift": "raise"}))
    assert less.configurations.control("hold").tolist() == [0.5]
    twice = description.attached(description, "lower", prefix="other_")
    assert dict(next(c.controls for c in twice.configurations if c.name == "hold"))["other_lift"] == 0.5
    with pytest.warns(fw.ModelWarning, match="loses the controls of the configurations hold"):
        description.save(tmp_path / "robot.srdf")


def test_controls_are_found_behind_actuators_that_have_several(tmp_path: Path) -> None:
    pid = '<actuator><pid joint="slider" kp="1"/><motor name="lift" joint="elbow"/></actuator>'
    try:
        model = mujoco.MjModel.from_xml_path(str(written(tmp_path, ARM, pid)))
    except ValueError:
        pytest.skip("this version of MuJoCo has no pid actuators")
    assert model.nu > 2
    controls = np.where(np.arange(model.nu) == model.actuator_ctrladr[1], 3, 0)
    key = f'<keyframe><key ctrl="{" ".join(map(str, controls))}"/></keyframe>'
    description = fw.read(written(tmp_path, ARM, pid + key))
    assert next(c for c in description.configurations if c.name == "key0").controls[2:] == (("lift", 3.0),)
    assert "controls of keyframes" not in dict(description.unused)


def test_controls_of_actuators_that_are_not_there_are_refused(tmp_path: Path) -> None:
    description = fw.read(written(tmp_path, ARM))
    wrong = replace(description, configurations=(fw.Configuration("home", (), (("lift", 1.0),)),))
    with pytest.raises(fw.ModelError, match="configuration 'home': there is no actuator with the control 'lift'"):
        fw.build(wrong)


STEPS = {
    "": (0.002, "euler"),
    'timestep="0.01" integrator="RK4"': (0.01, "rk4"),
    'integrator="implicitfast"': (0.002, "implicitfast"),
    'integrator="implicit"': (0.002, "implicit"),
}


@pytest.mark.parametrize("option", STEPS)
def test_time_step_and_integrator_are_the_files_also_when_saved(tmp_path: Path, option: str) -> None:
    path = written(tmp_path, ARM, f"<option {option}/>")
    robot = fw.load(path, execution="interpreted")
    assert (robot.model.timestep, robot.model.integrator) == STEPS[option]
    told = "integrator, in place of which a simulation is semi-implicit"
    assert robot.report().get(told) == ("implicit" if '"implicit"' in option else None)
    with pytest.warns(fw.ModelWarning, match="configurations"):
        fw.read(path).save(tmp_path / "saved.urdf")
    back = fw.read(tmp_path / "saved.urdf")
    assert (back.timestep, back.integrator) == STEPS[option]
    assert "unknown elements" not in dict(back.unused)
    assert fw.robots.four_bar().timestep is None


def test_exclusions_are_pairs_that_do_not_collide(tmp_path: Path) -> None:
    exclude = '<contact><exclude body1="box" body2="lower"/><exclude body1="lower" body2="world"/></contact>'
    description = load_description(written(tmp_path, ARM, exclude))
    assert {frozenset(pair) for pair in description.disabled_collisions} == {
        frozenset({"box", "lower"}), frozenset({"lower", "world"})
    }  # fmt: skip


ONE, TWO, THREE = (f'<joint name="{name}" axis="0 1 0"/>{INERTIAL}' for name in ("one", "two", "three"))
LINKAGE = f'<body name="a">{ONE}<body name="b" pos="1 0 0">{TWO}</body></body><body name="c" pos="0 0 -1">{THREE}</body>'


def test_a_keyframe_that_leaves_a_loop_open_is_closed_near_it(tmp_path: Path) -> None:
    """Check keyframes that close loops to some digits only, because MuJoCo's constraints yield."""
    loop = '<equality><connect body1="b" body2="c" anchor="0 0 -1"/></equality>'
    closed = "0.3 -0.3 0.3"
    for qpos in (closed, "0.3 -0.301 0.3005"):
        path = written(tmp_path, LINKAGE, f'{loop}<keyframe><key name="home" qpos="{qpos}"/></keyframe>')
        robot = fw.load(path, independent=["one"], execution="interpreted")
        assert isinstance(robot, fw.ClosedRobot)
        home = robot.configurations["home"]
        np.testing.assert_allclose(home, [0.3, -0.3, 0.3], atol=1e-9)
        assert np.abs(robot.residual(home)).max() < 1e-9
