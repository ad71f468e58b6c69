"""Tests of UniSim's contract, in MuJoCo's conventions, and of the motion against MuJoCo's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array

unisim = pytest.importorskip("unisim")
mujoco = pytest.importorskip("mujoco")

from unisim.scene import SceneCfg  # noqa: E402

from featherweight.unisim import FeatherweightBackend  # noqa: E402

STEP = 0.0005  # [s], as in the file
CRAWLER = """
<mujoco model="crawler">
  <option timestep="0.0005" integrator="RK4"/>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <body name="post" pos="3 0 1"> <geom size="0.1"/> </body>
    <body name="trunk" pos="0 0 1">
      <freejoint name="root"/> <geom type="box" size="0.2 0.1 0.05" mass="3"/> <site name="imu" pos="0.1 0 0"/>
      <body name="thigh" pos="0.2 0 0">
        <joint name="hip" axis="0 1 0" range="-90 90" damping="0.1"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.2" mass="0.5"/>
        <body name="shank" pos="0 0 -0.2">
          <joint name="knee" type="slide" axis="0 0 1" damping="2" range="-0.5 0.5"/>
          <geom size="0.04" pos="0 0 -0.1" mass="0.3"/>
          <body name="toe" pos="0 0 -0.1"> <geom size="0.02" mass="0.05"/> </body>
        </body>
      </body>
      <body name="head" pos="-0.2 0 0.1"> <joint name="neck" type="ball"/> <geom size="0.06" pos="0 0 0.1" mass="0.4"/> </body>
    </body>
  </worldbody>
  <actuator>
    <position name="hip_servo" joint="hip" kp="2" kv="0.05" ctrlrange="-1 1"/> <motor name="knee_motor" joint="knee" gear="5"/>
  </actuator>
  <sensor> <gyro name="gyro" site="imu"/> <framepos name="toe_at" objtype="xbody" objname="toe"/> </sensor>
  <keyframe> <key name="crouch" qpos="0 0 0.8 0.8 0 0.6 0 0.3 0.05 1 0 0 0"/> </keyframe>
</mujoco>
"""


def crawlers(folder: Path, count: int = 3, **options: Any) -> Any:
    file = folder / "crawler.xml"
    file.write_text(CRAWLER)
    return FeatherweightBackend(SceneCfg(model_file=str(file)), count, STEP, **options)


def random_states(model: Any, count: int, seed: int = 0) -> tuple[Array, Array]:
    """Return states in the air, within limits."""
    rng = np.random.default_rng(seed)
    qpos, qvel = np.empty((count, model.nq)), rng.normal(size=(count, model.nv))
    for row in qpos:
        row[:] = model.qpos0
        mujoco.mj_integratePos(model, row, rng.normal(size=model.nv) * [1, 1, 0, 1, 1, 1, 0.2, 0.02, 1, 1, 1], 1.0)
        row[2] += 3.0
    return qpos, qvel * [1, 1, 1, 2, 2, 2, 2, 0.1, 2, 2, 2]


def arm() -> Any:
    """Return a robot with drives, from a file without actuators."""
    inertia = fw.Inertia(1.0, (0.0, 0.0, 0.1), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01))
    joint = fw.Joint("shoulder", fw.JointType.REVOLUTE, None, "link", axis=(0.0, 1.0, 0.0))
    return FeatherweightBackend(fw.build(fw.describe([fw.Body("link", inertia)], [joint])), 2, 0.01, actuators=fw.PD(10.0, 1.0))


def linkage() -> Any:
    """Return a mechanism whose loop MuJoCo's coordinates may open."""
    return FeatherweightBackend(fw.build(fw.robots.four_bar()), 2, 0.001, actuators=fw.PD(1.0, 1.0))


def test_backends_conform(tmp_path: Path) -> None:
    backend = crawlers(tmp_path)
    assert backend.get_play_capabilities().supports_physics_state_playback  # most checks need this capability
    for one in (backend, crawlers(tmp_path, 1), arm(), linkage()):
        unisim.assert_backend_conformance(one)
    report = backend.get_capabilities()
    assert report.get("tensor.stepping").support is unisim.SupportLevel.EXACT
    assert report.get("dr.reset.body_mass").support is unisim.SupportLevel.UNSUPPORTED


def test_names_and_numbers_are_mujocos(tmp_path: Path) -> None:
    backend, model = crawlers(tmp_path), mujoco.MjModel.from_xml_string(CRAWLER)
    names = ["hip", "knee"]
    for there, here in (
        (model.actuator_ctrlrange[0], backend.get_actuator_ctrl_range()[0]),
        (model.actuator_gainprm[:, 0], backend.get_actuator_gains()[0]),
        (-model.actuator_biasprm[:, 2], backend.get_actuator_gains()[1]),
        (model.key("crouch").qpos, backend.get_keyframe_qpos("crouch")),
        (model.qpos0, backend.get_default_qpos()),
        (model.qpos0[7:], backend.get_default_dof_pos()),
        ([model.joint(x).range for x in names], backend.get_joint_range(names=names)),
        ([model.joint(x).dofadr[0] for x in names], backend.get_joint_dof_indices(names)),
        ([model.joint(x).qposadr[0] for x in names], backend.get_joint_state_qpos_indices(names)),
        ([model.joint(x).qposadr[0] - 7 for x in names], backend.get_joint_dof_pos_indices(names)),
        ([model.joint(x).dofadr[0] - 6 for x in names], backend.get_joint_dof_vel_indices(names)),
        (
            [model.body(k).name for k in backend.get_body_ids(["toe", "post", "trunk", "world"])],
            ["toe", "post", "trunk", "world"],
        ),
        (model.opt.gravity, backend.get_gravity()),
    ):
        np.testing.assert_array_equal(there, here)
    assert backend.get_actuator_names() == ("hip_servo", "knee_motor")
    assert backend.get_actuator_joint_names() == ("hip", "knee")
    assert backend.get_sensor_names() == ("gyro", "toe_at")
    assert (backend.num_dof_vel, backend.get_joint_range().shape) == (model.nv - 6, (3, 2))
    layout = backend.get_root_state_layout("trunk")
    assert layout.qpos_indices == tuple(range(7)) and layout.qvel_indices == tuple(range(6))
    for wrong, call in (
        ("kneel", lambda: backend.get_joint_range(names=["kneel"])),
        ("neck", lambda: backend.get_joint_dof_indices(["neck"])),
        ("tow", lambda: backend.get_body_ids(["tow"])),
        ("thigh", lambda: backend.get_root_state_layout("thigh")),
        ("stand", lambda: backend.get_keyframe_qpos("stand")),
    ):
        with pytest.raises((ValueError, NotImplementedError), match=f"'{wrong}'"):
            call()


def test_motion_is_mujocos(tmp_path: Path) -> None:
    """Check 50 steps in the air, without limits."""
    backend, model = crawlers(tmp_path, 15), mujoco.MjModel.from_xml_string(CRAWLER)
    qpos, qvel = random_states(model, 15)
    backend._host_set_state(np.arange(15), qpos, qvel)
    ctrl = np.random.default_rng(1).uniform([-1.5, -0.1], [1.5, 0.1], (15, 2))
    backend._host_step(ctrl, 50)
    state = backend._host_get_state(("qpos", "qvel", "ctrl"))
    np.testing.assert_array_equal(state["ctrl"], ctrl)
    for i in range(15):
        data = mujoco.MjData(model)
        data.qpos, data.qvel, data.ctrl = qpos[i], qvel[i], ctrl[i]
        mujoco.mj_step(model, data, 50)
        np.testing.assert_allclose(state["qpos"][i], data.qpos, rtol=0, atol=1e-9)
        np.testing.assert_allclose(state["qvel"][i], data.qvel, rtol=0, atol=1e-9)
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(backend._reading("toe_at")[i], data.sensor("toe_at").data, rtol=0, atol=1e-9)


def test_some_environments_begin_anew(tmp_path: Path) -> None:
    backend, model = crawlers(tmp_path, 4), mujoco.MjModel.from_xml_string(CRAWLER)
    qpos, qvel = random_states(model, 2)
    backend._host_step(np.ones((4, 2)), 5)
    before = backend.get_physics_state()
    backend._host_set_state(np.array([3, 1]), qpos, qvel)
    after = backend.get_physics_state()
    np.testing.assert_array_equal(after[[0, 2]], before[[0, 2]])
    np.testing.assert_allclose(after[[3, 1]], np.column_stack([[0.0, 0.0], qpos, qvel]), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(backend._host_get_state("ctrl")["ctrl"], [[1, 1], [0, 0], [1, 1], [0, 0]])
    backend._host_reset(np.array([1]))
    np.testing.assert_array_equal(backend.get_physics_state()[1], [0.0, *model.qpos0, *np.zeros(model.nv)])
    np.testing.assert_array_equal(backend.get_physics_state()[[0, 2, 3]], after[[0, 2, 3]])


def test_motion_goes_on_from_a_snapshot(tmp_path: Path) -> None:
    backend, model = crawlers(tmp_path), mujoco.MjModel.from_xml_string(CRAWLER)
    backend._host_set_state(np.arange(3), *random_states(model, 3))
    snapshots = [backend.get_physics_state()]
    for _ in range(2):
        backend._host_step(np.full((3, 2), 0.5), 7)
        snapshots.append(backend.get_physics_state())
    np.testing.assert_allclose(snapshots[2][:, 0], 14 * STEP, rtol=1e-12)
    backend.set_physics_state(snapshots[1])
    backend._host_step(np.full((3, 2), 0.5), 7)
    np.testing.assert_allclose(backend.get_physics_state(), snapshots[2], rtol=0, atol=1e-12)


def test_controls_are_converted_before_each_step(tmp_path: Path) -> None:
    backend, other, seen = crawlers(tmp_path), crawlers(tmp_path), list[float]()

    def convert(asked: Any, ctrl: Array) -> Array:
        seen.append(float(asked.get_physics_state()[0, 0]))
        return ctrl * len(seen)

    backend.set_pre_step_control(convert)
    backend._host_step(np.full((3, 2), 0.1), 3)
    np.testing.assert_allclose(seen, [0.0, STEP, 2 * STEP], rtol=0, atol=1e-15)
    for k in range(3):
        other._host_step(np.full((3, 2), 0.1) * (k + 1), 1)
    np.testing.assert_array_equal(backend.get_physics_state(), other.get_physics_state())
    backend.set_pre_step_control(lambda _, ctrl: unisim.PreStepControlOutput(ctrl, np.array([1]), np.ones((3, 1, 3))))
    with pytest.raises(NotImplementedError, match="wrench"):
        backend._host_step(np.zeros((3, 2)))


def test_loops_are_closed_where_digits_open_them() -> None:
    backend = linkage()
    robot = backend.robot
    q = np.array([robot.random_configuration(rng=k) for k in range(2)])
    state = backend.order.state(q, np.zeros((2, robot.nv)))
    rough = state.qpos.astype(np.float32).astype(np.float64) + 1e-5
    assert robot.opening(backend.order.robot_state(rough, state.qvel).q).max() > 1e-6  # a simulation refuses such an opening
    backend._host_set_state(np.arange(2), rough, state.qvel)
    np.testing.assert_allclose(backend._host_get_state("qpos")["qpos"], state.qpos, rtol=0, atol=1e-3)


def test_wrong_scenes_and_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="fragment_files"):
        FeatherweightBackend(SceneCfg(model_file="a.xml", fragment_files=["b.xml"]))
    with pytest.raises(ValueError, match="model_file"):
        FeatherweightBackend(SceneCfg())
    with pytest.raises(ValueError, match="num_envs"):
        crawlers(tmp_path, 0)
    backend = crawlers(tmp_path)
    width = backend.order.nq
    for rows in ([0, 0], [3], [-1], [[0]], [0.5]):
        with pytest.raises(ValueError, match="env_indices"):
            backend._host_set_state(np.array(rows), np.zeros((len(rows), width)), np.zeros((len(rows), width - 2)))
    payload = unisim.backend.base.TensorResetRandomizationPayload(body_mass=np.ones((1, 6)))
    with pytest.raises(NotImplementedError, match="body_mass"):
        backend._host_set_state(np.array([0]), np.zeros((1, width)), np.zeros((1, width - 2)), payload)
    for wrong in (np.zeros((3, 1)), np.full((3, 2), np.nan)):
        with pytest.raises(ValueError, match="ctrl"):
            backend._host_step(wrong)
    with pytest.raises(KeyError, match="energy"):
        backend._host_get_state("energy")


def test_actuators_with_several_controls_are_refused_and_servos_have_their_gains() -> None:
    text = """<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body></worldbody>
      <actuator><pid name="servo" joint="j" kp="7" kv="2" input="{}" posrange="-1 2"/></actuator></mujoco>"""
    with pytest.raises(NotImplementedError, match="'servo' must have one control"):
        FeatherweightBackend(fw.load(text.format("pos vel")))
    backend = FeatherweightBackend(fw.load(text.format("pos")))
    np.testing.assert_array_equal(backend.get_actuator_gains(), [[7.0], [2.0]])
    np.testing.assert_array_equal(backend.get_actuator_ctrl_range(), [[-1.0, 2.0]])
