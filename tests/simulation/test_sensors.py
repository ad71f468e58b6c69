"""Sensors of MJCF files against MuJoCo's `sensordata`.

MuJoCo is put where the simulation was, and given its mean acceleration over the step, (qvel+ - qvel) / h, before it computes
accelerations and forces: then both compute the same numbers, whichever way they step. Positions and velocities are compared at
the state after the step, as after `mj_forward`.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Container
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight
from featherweight import MujocoOrder, Robot, Simulation
from featherweight.model.types import SensorKind

Array = np.ndarray[Any, np.dtype[Any]]

ROUNDING = 1e-10  # relative to the greatest reading: (v+ - v) / h has some eps |v| / h of it, 1e-13 at h = 1 ms
AT_THE_END = ("a_frc",)  # a servo, whose stiffness a step meets at its end here: see the balance below
OF_FORCES = mujoco.mjtStage.mjSTAGE_ACC

QUADRUPED = """
<mujoco model="quadruped">
  <option timestep="0.002" magnetic="0.3 -0.4 0.1"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="post" pos="1 1 0"><geom type="box" size="0.1 0.1 0.5"/></body>
    <body name="trunk" pos="0 0 1">
      <freejoint name="root"/>
      <inertial pos="0.01 0.02 -0.01" mass="5" fullinertia="0.1 0.15 0.2 0.01 -0.02 0.015"/>
      <geom name="shell" type="box" size="0.2 0.1 0.05" contype="0" conaffinity="0"/>
      <site name="imu" pos="0.05 -0.02 0.03" euler="20 -30 50"/>
      <site name="tower" pos="0 0 0.1" euler="0 0 40"/>
      <site name="near" type="box" size="0.4 0.4 0.4"/>
      {legs}
    </body>
  </worldbody>
  <actuator>{motors}</actuator>
  <sensor>
    <accelerometer name="imu_acc" site="imu"/> <gyro name="imu_gyro" site="imu"/> <velocimeter name="imu_vel" site="imu"/>
    <magnetometer name="compass" site="imu"/>
    <framequat name="orientation" objtype="site" objname="imu"/> <framepos name="place" objtype="body" objname="trunk"/>
    <framexaxis name="ahead" objtype="xbody" objname="trunk"/> <frameyaxis name="left" objtype="geom" objname="shell"/>
    <framezaxis name="up" objtype="body" objname="trunk"/>
    <framelinvel name="linear" objtype="site" objname="imu"/> <frameangvel name="angular" objtype="site" objname="imu"/>
    <framelinacc name="linear_acc" objtype="site" objname="tower"/>
    <frameangacc name="angular_acc" objtype="body" objname="trunk"/>
    <framelinacc name="still_acc" objtype="xbody" objname="post"/>
    <subtreecom name="com" body="trunk"/> <subtreelinvel name="com_vel" body="trunk"/>
    <subtreeangmom name="spin" body="trunk"/> <subtreecom name="all" body="world"/>
    <subtreeangmom name="spin_0" body="upper_0"/>
    <framepos name="foot_in_trunk" objtype="site" objname="foot_1" reftype="xbody" refname="trunk"/>
    <framequat name="foot_turned" objtype="site" objname="foot_1" reftype="site" refname="imu"/>
    <framezaxis name="foot_axis" objtype="site" objname="foot_1" reftype="site" refname="imu"/>
    <framelinvel name="foot_vel" objtype="site" objname="foot_1" reftype="site" refname="imu"/>
    <frameangvel name="foot_ang" objtype="site" objname="foot_1" reftype="site" refname="imu"/>
    <force name="force_0" site="knee_0"/> <torque name="torque_0" site="knee_0"/>
    <force name="force_1" site="sole_1"/> <torque name="torque_1" site="sole_1"/>
    <touch name="touch_0" site="foot_0"/> <touch name="touch_1" site="foot_1"/>
    <insidesite name="inside" site="near" objtype="site" objname="foot_0"/>
    <rangefinder name="range" site="tower"/> <rangefinder name="range_foot" site="foot_0"/>
    <distance name="feet" geom1="ball_0" geom2="ball_1" cutoff="2"/>
    <normal name="between" body1="lower_1" geom2="floor" cutoff="5"/>
    <fromto name="from_to" geom1="floor" geom2="ball_0" cutoff="5"/>
    <e_potential name="potential"/> <e_kinetic name="kinetic"/> <clock name="time"/>
  </sensor>
</mujoco>
"""

LEG = """
<body name="upper_{k}" pos="{x} 0 0" euler="{k} 10 0">
  <joint name="hip_{k}" axis="0 1 0" damping="0.3" stiffness="2" springref="6" range="-120 120" limited="true"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.03" contype="0" conaffinity="0"/>
  <body name="lower_{k}" pos="0 0 -0.2">
    <joint name="knee_{k}" axis="0 1 0" armature="0.02" ref="6" range="-120 120" limited="true"/>
    <site name="knee_{k}" pos="0 0.01 0" euler="10 20 30"/>
    <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02" contype="0" conaffinity="0"/>
    <body name="sole_{k}" pos="0 0 -0.2">
      <geom name="ball_{k}" size="0.03"/> <site name="foot_{k}" size="0.04"/>
      <site name="sole_{k}" pos="0 0 0.02" euler="5 0 0"/>
    </body>
  </body>
</body>
"""

ARM = """
<mujoco model="arm">
  <option timestep="0.001"/>
  <worldbody>
    <body name="base" pos="0 0 0.5">
      <geom type="cylinder" size="0.1 0.1"/>
      <body name="link" pos="0 0 0.1">
        <joint name="turn" axis="0 0 1" range="-60 60" limited="true"/>
        <geom type="box" size="0.05 0.04 0.2" pos="0 0 0.2"/>
        <body name="slider" pos="0 0 0.4">
          <joint name="slide" type="slide" axis="1 0 0" range="-0.1 0.2" limited="true"/>
          <geom type="ellipsoid" size="0.1 0.05 0.05"/>
          <body name="wrist" pos="0.1 0 0">
            <joint name="wrist" type="ball"/>
            <geom type="capsule" size="0.03 0.1" pos="0.1 0.02 0"/>
            <site name="tool" pos="0.2 0 0" euler="0 30 60"/>
            <body name="hand" pos="0.2 0 0" euler="0 0 30">
              <geom name="palm" type="box" size="0.02 0.04 0.06"/> <site name="hand" pos="0.01 0 0"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="turn" joint="turn" gear="3" ctrlrange="-1 1"/>
    <motor name="help" joint="turn" gear="-2"/>
    <general name="slide" joint="slide" gear="2" gainprm="5" biastype="affine" biasprm="1 -3 0" forcerange="-4 4"/>
  </actuator>
  <sensor>
    <jointpos name="p_turn" joint="turn"/> <jointvel name="v_turn" joint="turn"/> <jointpos name="p_slide" joint="slide"/>
    <ballquat name="ball" joint="wrist"/> <ballangvel name="ball_vel" joint="wrist"/>
    <actuatorpos name="a_pos" actuator="slide"/> <actuatorvel name="a_vel" actuator="slide"/>
    <actuatorfrc name="a_frc" actuator="slide"/> <actuatorfrc name="m_frc" actuator="turn"/>
    <jointactuatorfrc name="j_frc" joint="turn"/>
    <jointlimitpos name="l_pos" joint="turn"/> <jointlimitvel name="l_vel" joint="turn"/>
    <jointlimitfrc name="l_frc" joint="turn"/> <jointlimitfrc name="l_slide" joint="slide"/>
    <force name="tool_force" site="tool"/> <torque name="tool_torque" site="tool"/>
    <force name="hand_force" site="hand"/> <torque name="hand_torque" site="hand"/>
    <framelinacc objtype="site" objname="tool" name="tool_acc"/> <accelerometer site="hand" name="hand_acc"/>
    <framepos name="palm" objtype="geom" objname="palm"/> <subtreecom name="hand_com" body="hand"/>
    <e_kinetic name="kinetic"/> <e_potential name="potential"/>
  </sensor>
</mujoco>
"""


def quadruped() -> str:
    legs = "".join(LEG.format(k=k, x=0.15 - 0.3 * k) for k in range(2))
    motors = "".join(f'<motor name="{j}_{k}" joint="{j}_{k}" gear="2"/>' for k in range(2) for j in ("hip", "knee"))
    return QUADRUPED.format(legs=legs, motors=motors)


MODELS = {"quadruped": quadruped(), "arm": ARM}


@pytest.fixture(scope="module", params=MODELS)
def text(request: pytest.FixtureRequest) -> str:
    return MODELS[request.param]


def random_states(robot: Robot, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Configurations well within limits, above the floor, and velocities."""
    q = robot.integrate(robot.start(), rng.uniform(-0.4, 0.4, (n, robot.nv)) * (0.3 if robot.name == "arm" else 1.0))
    return np.asarray(q), rng.standard_normal((n, robot.nv)) * 0.5


def reference(model: Any, order: MujocoOrder, before: Any, after: Any, control: Array | None, h: float, time: float) -> Array:
    """MuJoCo's readings, for states (qpos, qvel) before and after a step."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = before
    if control is not None:
        data.ctrl[:] = order.ctrl(control)
    mujoco.mj_forward(model, data)
    data.qacc[:] = (after[1] - before[1]) / h
    mujoco.mj_rnePostConstraint(model, data)
    mujoco.mj_sensorAcc(model, data)
    of_step = data.sensordata.copy()
    data.qpos[:], data.qvel[:], data.time = *after, time
    mujoco.mj_forward(model, data)
    stage = np.repeat(model.sensor_needstage, model.sensor_dim)
    return np.where(stage == OF_FORCES, of_step, data.sensordata)


def assert_same(got: Any, expected: Array, robot: Robot, tolerance: float, leave_out: Container[str] = ()) -> None:
    for s in robot.sensors:
        x, y = got[s.name], expected[s.slice]
        if s.kind in (SensorKind.BALLQUAT, SensorKind.FRAMEQUAT) and x @ y < 0.0:
            y = -y
        if s.name not in leave_out:
            np.testing.assert_allclose(x, y, rtol=0.0, atol=tolerance * max(1.0, np.abs(y).max()), err_msg=s.name)


# against MuJoCo


def test_every_sensor_of_one_robot_reads_as_in_mujoco(text: str) -> None:
    model, robot, rng = mujoco.MjModel.from_xml_string(text), featherweight.load(text), np.random.default_rng(1)
    order = MujocoOrder(robot, model)
    assert robot.sensors[-1].slice.stop == model.nsensordata
    for q, v in zip(*random_states(robot, rng, 5), strict=True):
        sim, control = Simulation(robot, q=q, v=v), rng.uniform(-0.5, 0.5, len(robot.actuators))
        for _ in range(3):
            before = order.state(sim.q, sim.v)
            sim.step(control=control)
            expected = reference(model, order, before, order.state(sim.q, sim.v), control, sim.step_size, sim.time)
            assert_same(sim.sensors(), expected, robot, ROUNDING, AT_THE_END)


def test_many_robots_read_as_each_alone(text: str) -> None:
    robot, rng = featherweight.load(text), np.random.default_rng(2)
    q, v = random_states(robot, rng, 4)
    control = rng.uniform(-0.5, 0.5, (4, len(robot.actuators)))
    many = Simulation(robot, q=q, v=v)
    many.step(control=control, steps=3)
    readings = many.sensors()
    assert readings.shape == (4, robot.sensors[-1].slice.stop)
    for i in range(4):
        alone = Simulation(robot, q=q[i], v=v[i])
        alone.step(control=control[i], steps=3)
        np.testing.assert_allclose(readings[i], alone.sensors(), rtol=1e-12, atol=1e-11)  # kernels may run in lanes
        assert readings[robot.sensors[0].name].shape == (4, robot.sensors[0].dim)


@pytest.mark.parametrize("integrator", ["rk4", "midpoint"])
def test_accelerations_of_other_integrators_approach_mujocos(integrator: str) -> None:
    """The mean over a step is that at its beginning but for terms of the order of h: a hundredth of the step, of the error."""
    text = MODELS["arm"]
    model, robot = mujoco.MjModel.from_xml_string(text), featherweight.load(text)
    order, control = MujocoOrder(robot, model), np.array([0.3, -0.2, 0.1])
    (q,), (v,) = random_states(robot, np.random.default_rng(3), 1)
    columns = np.concatenate([np.arange(s.slice.start, s.slice.stop) for s in robot.sensors if "acc" in s.name])
    errors = []
    for h in (1e-3, 1e-5):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = order.state(q, v)
        data.ctrl[:] = order.ctrl(control)
        mujoco.mj_forward(model, data)
        sim = Simulation(robot, h, integrator, q=q, v=v)
        sim.step(control=control)
        errors.append(np.abs(np.asarray(sim.sensors()) - data.sensordata)[columns].max())
    assert 1e-3 < errors[0] < 1.0
    assert errors[1] < 0.02 * errors[0]


def test_after_mj_step_mujoco_has_the_same_readings_of_forces() -> None:
    """Without damping both step by the acceleration at the beginning, which `sensordata` has after `mj_step`."""
    text = MODELS["arm"].replace('gainprm="5" biastype="affine" biasprm="1 -3 0"', 'gainprm="5"')
    model, robot = mujoco.MjModel.from_xml_string(text), featherweight.load(text)
    data, control = mujoco.MjData(model), np.array([0.3, -0.2, 0.1])
    (q,), (v,) = random_states(robot, np.random.default_rng(4), 1)
    data.qpos[:], data.qvel[:] = MujocoOrder(robot, model).state(q, v)
    data.ctrl[:] = control
    mujoco.mj_step(model, data)
    sim = Simulation(robot, q=q, v=v)
    sim.step(control=control)
    columns = np.repeat(model.sensor_needstage, model.sensor_dim) == OF_FORCES
    np.testing.assert_allclose(np.asarray(sim.sensors())[columns], data.sensordata[columns], rtol=0.0, atol=1e-9)
