"""Tests of sensors of MJCF files against MuJoCo's `sensordata`.

MuJoCo gets the state of the simulation and its mean acceleration over the step, (qvel+ - qvel) / h, before it computes
accelerations and forces. So both compute the same numbers, whatever the integrator. Positions and velocities are compared at
the state after the step, as after `mj_forward`.
"""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Container
from typing import Any
from unittest.mock import patch

import mujoco
import numpy as np
import pytest

import featherweight
from featherweight import MujocoOrder, Robot, Simulation
from featherweight.array_types import Array
from featherweight.model.types import Sensed, SensedKind, Sensor, SensorKind
from featherweight.simulation.sensors import sensed_robots
from featherweight.simulation.sensors.loop import measure_fleet
from simulation.plain_python import PlainLoop

ROUNDING = 1e-10  # relative to the greatest reading: (v+ - v) / h has an error of eps |v| / h, 1e-13 at h = 1 ms
AT_THE_END = ("a_frc",)  # a servo, whose stiffness our steps treat implicitly: see the balance below
OF_FORCES = mujoco.mjtStage.mjSTAGE_ACC

QUADRUPED = """
<mujoco model="quadruped">
  <option timestep="0.002" magnetic="0.3 -0.4 0.1"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <camera name="watch" pos="2 1 1" mode="targetbody" target="trunk" resolution="9 5"/>
    <camera name="flat" pos="0 0 3" projection="orthographic" fovy="2" resolution="9 5"/>
    <body name="post" pos="1 1 0"><geom type="box" size="0.1 0.1 0.5"/></body>
    <body name="trunk" pos="0 0 1">
      <freejoint name="root"/>
      <inertial pos="0.01 0.02 -0.01" mass="5" fullinertia="0.1 0.15 0.2 0.01 -0.02 0.015"/>
      <geom name="shell" type="box" size="0.2 0.1 0.05" contype="0" conaffinity="0"/>
      <site name="imu" pos="0.05 -0.02 0.03" euler="20 -30 50"/>
      <site name="tower" pos="0 0 0.1" euler="0 0 40"/>
      <site name="near" type="box" size="0.4 0.4 0.4"/>
      <camera name="front" pos="0.2 0 0.1" euler="80 10 -80" resolution="64 48" sensorsize="0.02 0.015" focal="0.03 0.02"/>
      <camera name="behind" pos="-1 0.1 0.3" euler="70 0 -90" mode="trackcom" resolution="64 48" fovy="50"/>
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
    <camprojection name="pixel" site="foot_0" camera="front"/> <camprojection name="seen" site="imu" camera="watch"/>
    <camprojection name="pixel_behind" site="foot_1" camera="behind"/> <camprojection name="map" site="foot_1" camera="flat"/>
    <framepos name="front" objtype="camera" objname="front"/> <framepos name="behind" objtype="camera" objname="behind"/>
    <framequat name="front_quat" objtype="camera" objname="front"/>
    <framequat name="behind_quat" objtype="camera" objname="behind"/>
    <framezaxis name="behind_z" objtype="camera" objname="behind"/>
    <framexaxis name="watch_x" objtype="camera" objname="watch"/>
    <framelinvel name="behind_vel" objtype="camera" objname="behind"/>
    <frameangvel name="front_ang" objtype="camera" objname="front"/>
    <framelinvel name="foot_behind" objtype="site" objname="foot_1" reftype="camera" refname="behind"/>
    <framepos name="foot_watch" objtype="site" objname="foot_1" reftype="camera" refname="watch"/>
    <framequat name="foot_quat" objtype="site" objname="foot_1" reftype="camera" refname="watch"/>
    <framelinacc name="front_acc" objtype="camera" objname="front"/>
    <framelinacc name="behind_acc" objtype="camera" objname="behind"/>
    <frameangacc name="behind_angacc" objtype="camera" objname="behind"/>
    <insidesite name="inside_front" site="near" objtype="camera" objname="front"/>
    <contact name="none" geom1="ball_0" num="2" data="found dist normal"/>
    <contact name="own" subtree1="trunk" subtree2="trunk" reduce="netforce" data="found force pos"/>
    <contact name="sole" site="foot_0" body2="world"/>
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


TENDONS = """
    <general name="pull" tendon="string" gear="3" dyntype="filter" dynprm="0.02" gainprm="2"/>
    <general name="both" tendon="sum" gainprm="0.5"/>
    <general name="push" site="tool" refsite="anchor" gear="0 0.1 1 0.2 0 0" gainprm="0.3"/>
  </actuator>
  <tendon>
    <spatial name="string" range="0.2 0.75" limited="true"><site site="anchor"/><site site="tool"/></spatial>
    <fixed name="sum"><joint joint="turn" coef="1"/><joint joint="slide" coef="-2"/></fixed>
    <fixed name="lever" stiffness="5" springlength="0.1"><joint joint="slide" coef="3"/></fixed>
  </tendon>
  <sensor>
    <tendonpos name="t_pos" tendon="string"/> <tendonvel name="t_vel" tendon="string"/> <tendonvel name="t_sum" tendon="sum"/>
    <tendonpos name="t_lever" tendon="lever"/> <tendonvel name="t_lever_vel" tendon="lever"/>
    <tendonactuatorfrc name="t_frc" tendon="string"/> <tendonlimitpos name="t_lpos" tendon="string"/>
    <tendonlimitvel name="t_lvel" tendon="string"/> <tendonlimitfrc name="t_lfrc" tendon="string"/>
    <actuatorpos name="a_string" actuator="pull"/> <actuatorvel name="a_push" actuator="push"/>
    <actuatorpos name="a_place" actuator="push"/> <actuatorfrc name="pull_frc" actuator="pull"/>
    <actuatorfrc name="both_frc" actuator="both"/>
"""
TENDONED = ARM.replace("  </actuator>\n  <sensor>\n", TENDONS)
TENDONED = TENDONED.replace("<worldbody>", '<worldbody> <site name="anchor" pos="0.2 0.3 0.9"/>')
HELD = TENDONED
TENDONED = re.sub("<(force|torque) name[^>]*/>", "", TENDONED)  # includes the string's load
MODELS = {"quadruped": quadruped(), "arm": ARM, "tendons": TENDONED}


@pytest.fixture(scope="module", params=MODELS)
def text(request: pytest.FixtureRequest) -> str:
    return MODELS[request.param]


def random_states(robot: Robot, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return configurations well within limits, above the floor, and velocities."""
    q = robot.integrate(robot.start(), rng.uniform(-0.4, 0.4, (n, robot.nv)) * (0.3 if robot.name == "arm" else 1.0))
    return np.asarray(q), rng.standard_normal((n, robot.nv)) * 0.5


def reference(
    model: Any, order: MujocoOrder, before: Any, after: Any, control: Array | None, h: float, time: float, act: Any = ()
) -> Array:
    """Return MuJoCo's readings for states (qpos, qvel) before and after a step, and activations before it."""
    data = mujoco.MjData(model)
    data.act[:] = act
    data.qpos[:], data.qvel[:] = before
    if control is not None:
        data.ctrl[:] = order.ctrl(control)
    mujoco.mj_forward(model, data)
    data.qacc[:] = (after[1] - before[1]) / h
    mujoco.mj_rnePostConstraint(model, data)
    mujoco.mj_sensorAcc(model, data)
    of_step = data.sensordata.copy()
    (data.qpos[:], data.qvel[:]), data.time = after, time
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
            before, act = order.state(sim.q, sim.v), sim.activation
            sim.step(control=control)
            expected = reference(model, order, before, order.state(sim.q, sim.v), control, sim.dt, sim.time, act)
            assert_same(sim.sensors(), expected, robot, ROUNDING, AT_THE_END)


def test_a_tendon_of_one_joint_that_sensors_read_acts_once() -> None:
    robot = featherweight.load(TENDONED)
    assert robot.tendons["lever"].terms == (("slide", 3.0),)
    assert robot.tendons["lever"].stiffness == 0.0
    assert robot.joints["slide"].stiffness == 45.0


def test_forces_on_what_a_string_holds_are_not_measured() -> None:
    told = dict(featherweight.read(HELD).unused)["sensors of forces on bodies that loops or tendons hold"]
    assert told == "tool_force, tool_torque"  # only its joint holds the hand, which is farther out


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
        np.testing.assert_allclose(readings[i], alone.sensors(), rtol=1e-12, atol=1e-11)  # kernels may run in vector lanes
        assert readings[robot.sensors[0].name].shape == (4, robot.sensors[0].dim)


def stepped(text: str, execution: str = "auto") -> Simulation:
    """Return a simulation after three steps from a random state."""
    robot, rng = featherweight.load(text, execution=execution), np.random.default_rng(6)
    (q,), (v,) = random_states(robot, rng, 1)
    sim = Simulation(robot, q=q, v=v)
    for _ in range(3):
        sim.step(control=rng.uniform(-0.5, 0.5, len(robot.actuators)))
    return sim


def test_the_loop_measures_the_same_in_plain_python(text: str) -> None:
    expected, loop, sim = stepped(text).sensors(), PlainLoop(measure_fleet), stepped(text)
    with patch.object(sensed_robots, "MEASURE_FLEET", loop):
        np.testing.assert_allclose(sim.sensors(), expected, rtol=0.0, atol=1e-13 * np.abs(expected).max())
    assert loop.calls > 0


def test_sensors_of_interpreted_robots_read_the_same() -> None:
    """Check to the rounding of (v+ - v) / h, after three steps."""
    expected, got = (stepped(MODELS["quadruped"], execution).sensors() for execution in ("auto", "interpreted"))
    np.testing.assert_allclose(got, expected, rtol=0.0, atol=1e-11 * np.abs(expected).max())


def test_readings_are_copies() -> None:
    sim = stepped(ARM)
    first, again = sim.sensors(), sim.sensors()
    np.testing.assert_array_equal(first, again)
    before = np.array(first)
    again[:] = 0.0
    sim.step()
    np.testing.assert_array_equal(first, before)
    assert (sim.sensors() != before).any()


@pytest.mark.parametrize("integrator", ["rk4", "midpoint"])
def test_accelerations_of_other_integrators_approach_mujocos(integrator: str) -> None:
    """Check that the mean over a step equals the value at its beginning to order h: a hundredth of the step, a hundredth
    of the error.
    """
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
    """Check motion without damping, for which both step with the acceleration at the start; `sensordata` has it after
    `mj_step`.
    """
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


# forces


def test_forces_of_servos_balance_the_motion() -> None:
    """Check M a + c = gear f, to rounding of a, without other forces, also if a step treats stiffness implicitly."""
    text = (
        MODELS["arm"]
        .replace("biasprm", 'ctrlrange="-9 9" biasprm')
        .replace("1 -3 0", "1 -300 -40")
        .replace('gainprm="5"', 'gainprm="50"')
    )
    text = text.replace('forcerange="-4 4"', 'forcerange="-40 40"')
    robot = featherweight.load(text)
    (q,), (v,) = random_states(robot, np.random.default_rng(5), 1)
    sim, control = Simulation(robot, q=q, v=v), np.array([0.3, -0.2, 0.2])
    slide = robot.joints["slide"].v_slice.start
    for held in (False, True):
        before = sim.q.copy(), sim.v.copy()
        sim.step(control=control if not held else np.array([0.3, -0.2, 9.0]))
        a = (sim.v - before[1]) / sim.dt
        needed = robot.inverse_dynamics(*before, a)[slide]
        force = float(sim.sensors()["a_frc"][0])
        assert force == pytest.approx(needed / 2.0, rel=1e-9)
        assert (abs(force) == pytest.approx(40.0, rel=1e-12)) is held
    explicit = 50.0 * 9.0 + 1.0 - 2.0 * (300.0 * before[0][robot.joints["slide"].q_slice] + 40.0 * before[1][slide])
    assert abs(explicit).item() != pytest.approx(40.0, rel=1e-3)  # the law at the beginning gives another number


def test_controls_that_are_not_given_drive_nothing() -> None:
    sim = Simulation(featherweight.load(ARM))
    sim.step()
    assert sim.sensors()["m_frc"] == sim.sensors()["j_frc"] == 0.0
    sim.step(control=np.array([0.5, 0.25, 0.0]))
    assert sim.sensors()["m_frc"] == pytest.approx(0.5)
    assert sim.sensors()["j_frc"] == pytest.approx(0.5 * 3 - 0.25 * 2)
    sim.step(control=np.array([-0.4, 0.0, 0.0]))
    assert sim.sensors()["m_frc"] == pytest.approx(-0.4)
    sim.vary(damping=[0.5])
    assert sim.sensors()["m_frc"] == pytest.approx(-0.4)  # the reading of the last step is unchanged


BOX = """
<mujoco model="box">
  <option timestep="0.002"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="box" pos="0 0 0.1">
      <freejoint/>
      <geom name="box" type="box" size="0.2 0.1 0.1" mass="3"/>
      <site name="middle"/>
      <site name="below" type="box" size="0.3 0.2 0.02" pos="0 0 -0.1"/>
      <site name="right" type="box" size="0.1 0.2 0.02" pos="0.15 0 -0.1"/>
      <site name="far" size="0.01" pos="0.2 0.1 -0.15"/>
      <site name="above" size="0.01" pos="0.2 0.1 0.15"/>
      <body name="sensor" pos="0 0 0.1">
        <geom name="plate" type="box" size="0.1 0.1 0.01" mass="0.5" contype="0" conaffinity="0"/>
        <site name="flange" euler="30 0 0"/>
      </body>
    </body>
  </worldbody>
  <sensor>
    <accelerometer name="acc" site="middle"/> <touch name="below" site="below"/> <touch name="right" site="right"/>
    <touch name="far" site="far"/> <touch name="above" site="above"/>
    <force name="load" site="flange"/> <force name="whole" site="middle"/> <torque name="turning" site="middle"/>
    <touch name="clipped" site="below" cutoff="20"/>
  </sensor>
</mujoco>
"""
WEIGHT = 9.81 * 3.5


@pytest.mark.parametrize("contact", ["rigid", "file"])
def test_a_box_at_rest_reads_its_weight(contact: str) -> None:
    """Check to the tolerance of the contact solver and the remaining motion two seconds after landing."""
    sim = Simulation(featherweight.load(BOX), contact=contact)
    sim.step(steps=1000)
    s = sim.sensors()
    np.testing.assert_allclose(s["acc"], (0.0, 0.0, 9.81), atol=1e-3)
    assert s["below"][0] == pytest.approx(WEIGHT, rel=1e-4)
    assert s["right"][0] == pytest.approx(WEIGHT / 2, rel=1e-3)
    assert s["far"][0] == pytest.approx(WEIGHT / 4, rel=1e-3)  # the normal of one corner points into it
    assert s["above"][0] == 0.0
    assert s["clipped"][0] == 20.0
    np.testing.assert_allclose(s["load"], 0.5 * 9.81 * np.array([0.0, 0.5, np.sqrt(0.75)]), atol=1e-3)
    np.testing.assert_allclose(s["whole"], 0.0, atol=0.01)  # only the floor holds it
    np.testing.assert_allclose(s["turning"], 0.0, atol=0.01)


PLANK = """
<mujoco><worldbody><geom type="plane" size="0 0 1"/>
  <body name="left" pos="0 0 0.1"> <freejoint/> <geom type="box" size="0.2 0.1 0.1" mass="3"/>
    <site name="left" type="box" size="0.21 0.2 0.2"/>
    <body name="right" pos="0.4 0 0"> <geom type="box" size="0.2 0.1 0.1" mass="1"/>
      <site name="right" type="box" size="0.21 0.2 0.2"/> </body> </body> </worldbody>
  <sensor> <touch name="left" site="left"/> <touch name="right" site="right"/> <force name="held" site="right"/> </sensor>
</mujoco>"""


def test_contacts_that_the_solver_leaves_out_are_felt() -> None:
    """Check two boxes of one body, whose eight corners are on the floor: the inner four need no impulse in the solver."""
    robot = featherweight.load(PLANK)
    many = np.tile(robot.start(), (2, 1))
    for sim in (Simulation(robot, contact="rigid"), Simulation(robot, q=many, contact="rigid")):
        sim.step(steps=5)
        points, forces, names = sim.contacts()
        s, right = np.atleast_2d(sim.sensors()), forces[["right" in name for name in names], 2].sum()
        assert len(points) == 8 and (forces[:, 2] > 1.0).all()
        np.testing.assert_allclose(s[:, 1], right, rtol=1e-9)
        np.testing.assert_allclose(s[:, 0] + s[:, 1], 4.0 * 9.81, rtol=1e-6)
        np.testing.assert_allclose(s[:, 4], 9.81 - right, atol=1e-4)  # what the left part adds to the floor


def test_touch_and_interaction_of_a_box_that_slides_are_mujocos() -> None:
    """Check forces with the file's contact law, which agree with MuJoCo's to 3e-4; a wrong contact would differ by more
    than 1e-3.
    """
    model, robot = mujoco.MjModel.from_xml_string(BOX), featherweight.load(BOX)
    order, sim = MujocoOrder(robot, model), Simulation(featherweight.load(BOX), contact="file")
    sim.reset(sim.q - np.eye(7)[2] * 1e-3, np.array([0.5, 0.2, -0.1, 0.0, 0.1, 0.3]))
    for _ in range(5):
        before = order.state(sim.q, sim.v)
        sim.step()
        expected = reference(model, order, before, order.state(sim.q, sim.v), None, sim.dt, sim.time)
        assert expected[robot.sensors["below"].slice] > 1.0
        assert_same(sim.sensors(), expected, robot, 1e-3, ("whole", "turning"))


def test_an_impact_is_a_mean_over_the_step() -> None:
    """Check a box that falls at 1 m/s and stops: h (a - g) equals its change of velocity, and the impulse of the floor."""
    sim = Simulation(featherweight.load(BOX), contact="rigid")
    sim.reset(sim.q + np.eye(7)[2] * 1e-4, -np.eye(6)[2])
    v = sim.v[2]
    sim.step()
    s, h = sim.sensors(), sim.dt
    assert sim.v[2] - v > 0.5
    assert s["acc"][2] * h == pytest.approx(sim.v[2] - v + 9.81 * h, rel=1e-9)
    assert s["below"][0] * h == pytest.approx(3.5 * (sim.v[2] - v + 9.81 * h), rel=1e-6)


def test_limits_push_as_much_as_they_stop() -> None:
    robot = featherweight.load(MODELS["arm"])
    sim, j = Simulation(robot, contact="rigid"), robot.joints["turn"]
    q, v = sim.q.copy(), sim.v.copy()
    q[j.q_slice], v[j.v_slice] = robot.upper[j.q_slice] - 1e-4, 1.0
    sim.reset(q, v)
    before = sim.q.copy(), sim.v.copy()
    sim.step()
    s, a = sim.sensors(), (sim.v - before[1]) / sim.dt
    needed = robot.inverse_dynamics(*before, a)[j.v_slice]
    assert s["l_frc"][0] > 1.0
    assert s["l_frc"][0] == pytest.approx(-needed[0], rel=1e-6)
    assert s["l_slide"] == 0.0


def test_limits_that_are_passed_read_as_in_mujoco() -> None:
    model, robot = mujoco.MjModel.from_xml_string(MODELS["arm"]), featherweight.load(MODELS["arm"])
    data, sim, j = mujoco.MjData(model), Simulation(robot, contact="file"), robot.joints["turn"]
    for beyond in (0.05, -0.05):
        q, v = sim.robot.start(), np.zeros(robot.nv)
        q[j.q_slice], v[j.v_slice] = (robot.upper if beyond > 0 else robot.lower)[j.q_slice] + beyond, 0.3
        sim.reset(q, v)
        data.qpos[:], data.qvel[:] = MujocoOrder(robot, model).state(q, v)
        mujoco.mj_forward(model, data)
        for name in ("l_pos", "l_vel"):
            expected = data.sensordata[robot.sensors[name].slice]
            assert expected[0] != 0.0
            np.testing.assert_allclose(sim.sensors()[name], expected, atol=1e-12)


LOOP = """
<mujoco model="loop">
  <option timestep="1e-5"/>
  <worldbody>
    <body name="crank"> <joint name="crank" axis="0 1 0"/> <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.02"/>
      <body name="rod" pos="0 0 0.3"> <joint name="rod" axis="0 1 0"/> <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.02"/>
        <site name="middle" pos="0.2 0 0.01" euler="10 20 30"/>
      </body>
    </body>
    <body name="rocker" pos="0.5 0 0"> <joint name="rocker" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.02"/>
      <site name="rocker"/>
    </body>
    <body name="gear" pos="0 1 0"> <joint name="gear" axis="0 1 0" range="-170 170"/> <geom type="box" size="0.1 0.1 0.2"/>
      <site name="gear" pos="0.1 0 0.1"/>
    </body>
  </worldbody>
  <equality> <connect body1="rod" body2="rocker" anchor="0.5 0 0"/>
    <joint joint1="gear" joint2="crank" polycoef="0 -2"/> </equality>
  <contact> <exclude body1="rod" body2="rocker"/> </contact>
  <sensor>
    <gyro name="gyro" site="middle"/> <accelerometer name="acc" site="middle"/> <jointpos name="follower" joint="rod"/>
    <jointvel name="rocker" joint="rocker"/> <jointpos name="gear" joint="gear"/> <accelerometer name="gear_acc" site="gear"/>
    <framelinvel name="apart" objtype="site" objname="gear" reftype="site" refname="middle"/>
    <subtreecom name="com" body="crank"/> <subtreeangmom name="spin" body="crank"/> <e_kinetic name="kinetic"/>
    <force name="gear_force" site="gear"/> <torque name="gear_torque" site="gear"/> <force name="held" site="rocker"/>
    <e_potential name="potential"/>
  </sensor>
</mujoco>
"""


def test_sensors_of_robots_with_loops_and_couplings() -> None:
    """Check accelerations of all joints to the order of h: MuJoCo's means end at other velocities on the loop."""
    model, robot = mujoco.MjModel.from_xml_string(LOOP), featherweight.load(LOOP, equalities="exact")
    assert "held" not in [s.name for s in robot.sensors]
    order, sim = MujocoOrder(robot, model), Simulation(robot, shapes=False)
    sim.reset(sim.q, np.full(robot.nv, 0.7))
    sim.step(steps=20000)
    before = order.state(sim.q, sim.v)
    sim.step()
    held = model.sensor("held").adr[0]
    expected = np.delete(
        reference(model, order, before, order.state(sim.q, sim.v), None, sim.dt, sim.time), range(held, held + 3)
    )
    assert abs(expected[robot.sensors["acc"].slice]).max() > 1.0
    of_step = ("acc", "gear_acc", "gear_force", "gear_torque")
    assert_same(sim.sensors(), expected, robot, ROUNDING, of_step)
    assert_same(sim.sensors(), expected, robot, 1e-3, [s.name for s in robot.sensors if s.name not in of_step])


def test_spheres_of_a_simulation_touch() -> None:
    robot = featherweight.load(BOX)
    ball = featherweight.ContactSphere("below", 0.01)
    for contact, steps in (("rigid", 20), ("file", 400)):
        sim = Simulation(
            robot, q=robot.start() + np.eye(7)[2] * 0.01, spheres=[ball], shapes=False, ground=True, contact=contact
        )
        sim.step(steps=steps)
        assert sim.sensors()["below"] == pytest.approx(WEIGHT, rel=1e-3)


# before the first step


def test_a_robot_that_took_no_step_reads_gravity_and_no_forces() -> None:
    robot = featherweight.load(BOX)
    sim = Simulation(robot, q=np.tile(robot.start(), (2, 1)))
    for where in ("new", "reset", "assigned"):
        s = sim.sensors()
        up = robot.frame_placement("middle")(sim.q)[:, 2, :3]
        np.testing.assert_allclose(s["acc"], 9.81 * up, atol=1e-12)
        assert (s["below"] == 0.0).all()
        sim.step(steps=3)
        if where == "new":
            sim.reset(np.tile(robot.start(), (2, 1)), np.ones((2, 6)))
        else:
            sim.v = np.ones((2, 6))
    sim.step()
    still = sim.sensors()["acc"][0].copy()
    sim.reset(which=[1])
    np.testing.assert_array_equal(sim.sensors()["acc"][0], still)
    np.testing.assert_allclose(sim.sensors()["acc"][1], (0.0, 0.0, 9.81), atol=1e-12)


def test_a_state_that_is_assigned_has_no_contacts_of_the_step_before() -> None:
    sim = Simulation(featherweight.load(BOX))
    sim.step(steps=10)
    assert sim.sensors()["below"] > 10.0
    sim.v = np.ones(6)
    assert sim.sensors()["below"] == 0.0
    np.testing.assert_allclose(np.linalg.norm(sim.sensors()["whole"]), WEIGHT, rtol=1e-9)  # held still


def test_forces_on_bodies_hold_what_they_push() -> None:
    """Check a box in the air: nothing holds the whole; the box holds the plate on it."""
    robot = featherweight.load(BOX)
    sim = Simulation(robot, q=robot.start() + np.eye(7)[2], v=np.array([0.1, 0.2, 0.3, 1.0, -2.0, 0.5]))
    push = np.array([[3.0, -4.0, 50.0, 0.1, 0.2, -0.3]])
    for _ in range(3):
        sim.step(external_forces=push)
        np.testing.assert_allclose(sim.sensors()["whole"], 0.0, atol=1e-9)
        np.testing.assert_allclose(sim.sensors()["turning"], 0.0, atol=1e-9)
    assert sim.sensors()["acc"][2] == pytest.approx(50.0 / 3.5, rel=0.1)
    pushed = sim.sensors()["load"].copy()
    sim.step()
    assert np.abs(sim.sensors()["load"] - pushed).max() > 1.0
    np.testing.assert_allclose(sim.sensors()["whole"], 0.0, atol=1e-9)


def test_a_planar_body_that_spins_accelerates_to_its_centre() -> None:
    inertia = featherweight.Inertia(2.0, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    at = featherweight.Pose(p=(0.3, 0.0, 0.0))
    sites = [featherweight.Frame("middle", "disc"), featherweight.Frame("rim", "disc", at)]
    sensors = [Sensor(f.name, SensorKind.ACCELEROMETER, Sensed(SensedKind.SITE, f.name)) for f in sites]
    joint = featherweight.Joint("plane", featherweight.JointType.PLANAR, None, "disc")
    disc = featherweight.describe([featherweight.Body("disc", inertia)], [joint], frames=sites, sensors=sensors)
    sim = Simulation(featherweight.build(disc), 0.01, v=[1.0, 0.5, 2.0])
    for _ in range(5):
        sim.step()
        np.testing.assert_allclose(sim.sensors()["middle"], (0.0, 0.0, 9.81), atol=1e-10)
        np.testing.assert_allclose(sim.sensors()["rim"], (-(2.0**2) * 0.3, 0.0, 9.81), atol=1e-10)


def test_readings_are_of_the_last_of_many_steps() -> None:
    robot, (q, v) = featherweight.load(BOX), (None, np.array([0.1, 0.0, -0.5, 0.3, 0.2, 0.1]))
    readings = []
    for n in (1, 3, 9):  # each run ends at step nine
        sim = Simulation(robot, q=q, v=v)
        for _ in range(9 // n):
            sim.step(steps=n)
        readings.append(np.asarray(sim.sensors()))
    np.testing.assert_array_equal(readings[0], readings[1])
    np.testing.assert_array_equal(readings[0], readings[2])
    sim = Simulation(robot, q=q, v=v)
    sim.run(9 * sim.dt)
    np.testing.assert_array_equal(readings[0], sim.sensors())
    for other in (copy.deepcopy(sim), pickle.loads(pickle.dumps(sim))):
        np.testing.assert_array_equal(other.sensors(), readings[0])


# rays


def shapes_scene(rng: np.random.Generator) -> str:
    """Return shapes of all types around a body with rays in all directions."""
    heights = " ".join(f"{x:.3f}" for x in rng.uniform(0.0, 1.0, 20))
    points = " ".join(f"{x:.3f}" for x in rng.standard_normal(36) * 0.5)
    kinds = {
        "sphere": "0.5", "capsule": "0.3 0.5", "box": "0.4 0.5 0.6", "cylinder": "0.4 0.5", "ellipsoid": "0.3 0.5 0.7",
    }  # fmt: skip
    geoms = "".join(
        f'<geom name="{kind}{n}" type="{kind}" size="{size}" pos="{" ".join(map(str, rng.uniform(-3, 3, 3)))}" '
        f'euler="{" ".join(map(str, rng.uniform(-180, 180, 3)))}"/>'
        for kind, size in kinds.items()
        for n in range(2)
    )
    turns = [" ".join(map(str, x)) for x in rng.uniform(-180, 180, (200, 3))]
    sites = "".join(f'<site name="s{n}" euler="{turn}"/>' for n, turn in enumerate(turns))
    return f"""
    <mujoco>
      <asset>
        <hfield name="hills" nrow="4" ncol="5" size="3 4 1.5 0.5" elevation="{heights}"/>
        <mesh name="rock" vertex="{points}"/>
      </asset>
      <worldbody>
        <geom type="plane" size="0 0 1" pos="0 0 -4" euler="5 3 0"/> {geoms}
        <geom type="hfield" hfield="hills" pos="0 0 -3.5"/>
        <geom type="mesh" mesh="rock" pos="1 2 1.5"/>
        <geom type="sphere" size="4" rgba="1 0 0 0"/>
        <body name="eye"> <freejoint/> <geom size="0.1"/> {sites} </body>
      </worldbody>
      <sensor>{"".join(f'<rangefinder name="r{n}" site="s{n}"/>' for n in range(200))}</sensor>
    </mujoco>"""


def test_rays_meet_shapes_of_all_types_where_mujocos_do() -> None:
    """Check rays from outside and inside of shapes, except inside the height field, whose base MuJoCo sees from the inside.

    MuJoCo stores vertices and heights in single precision.
    """
    rng = np.random.default_rng(6)
    text = shapes_scene(rng)
    model, robot = mujoco.MjModel.from_xml_string(text), featherweight.load(text)
    data, seen = mujoco.MjData(model), set()
    n = 50
    q = np.tile(robot.start(), (n, 1))
    q[:, :3] = rng.uniform((-3, -3, -1.9), 3, (n, 3))
    q[:, 3:] = rng.standard_normal((n, 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    readings = Simulation(robot, q=q, shapes=False).sensors()
    wrong, total = [], 0
    for i in range(n):
        data.qpos[:] = MujocoOrder(robot, model).state(q[i], np.zeros(6)).qpos
        mujoco.mj_forward(model, data)
        for k in range(200):
            hit = np.zeros(1, np.int32)
            mujoco.mj_ray(model, data, data.site_xpos[k], data.site_xmat[k].reshape(3, 3)[:, 2], None, 1, 1, hit, None)
            kind = None if hit[0] < 0 else mujoco.mjtGeom(model.geom_type[hit[0]]).name
            seen.add(kind)
            total += 1
            if abs(readings[i, k] - data.sensordata[k]) > 2e-6:
                wrong.append((kind, readings[i, k], data.sensordata[k]))
    assert seen == {
        None,
        *(f"mjGEOM_{x}" for x in ("PLANE", "SPHERE", "CAPSULE", "BOX", "CYLINDER", "ELLIPSOID", "HFIELD", "MESH")),
    }
    assert not wrong, (len(wrong), total, wrong[:10])


def test_rays_meet_the_ground_of_a_simulation() -> None:
    body = '<body pos="0 0 2"><freejoint/><geom size="0.1"/><site name="down" euler="180 0 0"/></body>'
    text = f"<mujoco><worldbody>{body}</worldbody>"
    robot = featherweight.load(f'{text}<sensor><rangefinder name="down" site="down"/></sensor></mujoco>')
    assert Simulation(robot, ground=False).sensors()["down"] == -1.0
    assert Simulation(robot, ground=True).sensors()["down"] == pytest.approx(2.0, rel=1e-12)
    slope = featherweight.HeightField([[0.0, 0.0], [1.0, 1.0]], (-1.0, 1.0), (-1.0, 1.0))
    assert Simulation(robot, ground=slope).sensors()["down"] == pytest.approx(1.5, rel=1e-12)


# noise, cutoffs, names

NOISY = """
<mujoco model="noisy">
  <worldbody>
    <body name="b" pos="0 0 1"> <freejoint/> <geom size="0.1"/> <site name="s" euler="10 20 30"/> </body>
  </worldbody>
  <sensor>
    <gyro name="gyro" site="s" noise="0.2"/> <velocimeter name="quiet" site="s"/>
    <framequat name="quat" objtype="site" objname="s" noise="0.05"/>
    <framezaxis name="axis" objtype="site" objname="s" noise="0.1"/>
    <rangefinder name="nothing" site="s" noise="0.3"/> <touch name="touch" site="s" noise="0.1"/>
    <accelerometer name="clipped" site="s" cutoff="5" noise="1"/>
    <framepos name="place" objtype="site" objname="s" cutoff="0.5"/>
  </sensor>
</mujoco>
"""


def test_noise_has_the_deviations_of_the_file() -> None:
    """Check means and deviations of 20000 robots, within five standard errors."""
    n = 20000
    robot = featherweight.load(NOISY)
    sim = Simulation(robot, q=np.tile(robot.start(), (n, 1)), v=np.tile(np.arange(6.0), (n, 1)))
    clean, noisy = sim.sensors(), sim.sensors(noise=np.random.default_rng(7))
    off = noisy["gyro"] - clean["gyro"]
    np.testing.assert_allclose(off.mean(axis=0), 0.0, atol=5 * 0.2 / np.sqrt(n))
    np.testing.assert_allclose(off.std(axis=0), 0.2, rtol=5 / np.sqrt(2 * n))
    np.testing.assert_allclose(np.corrcoef(off.T), np.eye(3), atol=5 / np.sqrt(n))
    np.testing.assert_array_equal(noisy["quiet"], clean["quiet"])
    for name in ("quat", "axis"):
        np.testing.assert_allclose(np.linalg.norm(noisy[name], axis=1), 1.0, atol=1e-12)
    turned = np.arccos(np.abs((noisy["quat"] * clean["quat"]).sum(axis=1))) * 2.0
    assert np.sqrt((turned**2).mean() / 3.0) == pytest.approx(0.05, rel=5 / np.sqrt(6 * n))
    across = noisy["axis"] - (noisy["axis"] * clean["axis"]).sum(axis=1)[:, None] * clean["axis"]
    # deviation of directions, to second order
    assert np.sqrt((across**2).sum(axis=1).mean() / 2.0) == pytest.approx(0.1, rel=0.05)
    assert (noisy["nothing"] == -1.0).all()
    assert (noisy["touch"] >= 0.0).all()
    assert (np.abs(noisy["clipped"]) <= 5.0).all()
    np.testing.assert_array_equal(sim.sensors(), clean)
    np.testing.assert_array_equal(sim.sensors(noise=np.random.default_rng(7)), noisy)


def test_cutoffs_cut_as_in_mujoco() -> None:
    text = NOISY.replace('name="gyro"', 'name="gyro" cutoff="2.5"')
    model, robot = mujoco.MjModel.from_xml_string(text), featherweight.load(text)
    data, v = mujoco.MjData(model), np.array([1.0, -2.0, 3.0, -4.0, 5.0, 1.0])
    data.qpos[:], data.qvel[:] = MujocoOrder(robot, model).state(robot.start(), v)
    mujoco.mj_forward(model, data)
    s = Simulation(robot, v=v).sensors()
    for name in ("gyro", "place"):
        np.testing.assert_allclose(s[name], data.sensordata[robot.sensors[name].slice], atol=1e-12)
    assert (np.abs(s["gyro"]) == 2.5).sum() == 1


def test_a_name_that_no_sensor_has_is_refused_with_those_that_there_are() -> None:
    sim = Simulation(featherweight.load(NOISY))
    with pytest.raises(KeyError, match=r"there is no sensor 'gyros' .is it 'gyro'.*; there are gyro, quiet"):
        sim.sensors()["gyros"]
    with pytest.raises(KeyError, match="'giro'"):
        sim.robot.sensors["giro"]
    with pytest.raises(TypeError, match=r"noise must be a numpy\.random\.Generator"):
        sim.sensors(noise=0.1)  # type: ignore[arg-type]


def test_readings_are_an_array() -> None:
    s = Simulation(featherweight.load(NOISY)).sensors()
    assert s.shape == (21,)
    assert s.keys()[:2] == ["gyro", "quiet"]
    assert type(s * 2.0) is type(s[:3]) is type(s["gyro"]) is np.ndarray
    assert isinstance(s.sum(), float)
    s["gyro"][:] = 1.0  # readings are a view
    assert s[0] == 1.0
    again = pickle.loads(pickle.dumps(s))
    np.testing.assert_array_equal(again["gyro"], s["gyro"])
    assert "gyro: [1. 1. 1.]" in repr(s)


def test_a_robot_without_sensors_has_none() -> None:
    sim = Simulation(featherweight.load("<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>"))
    sim.step()
    assert sim.sensors().shape == (0,)
    assert sim.robot.sensors == ()


def test_actuators_of_a_simulation_are_not_those_that_sensors_measure() -> None:
    sim = Simulation(featherweight.load(ARM), actuators=[])
    with pytest.raises(ValueError, match="sensor 'a_frc' measures an actuator of the file"):
        sim.sensors()


def test_inertias_of_robots_with_others_are_their_own() -> None:
    robot = featherweight.load(BOX)
    heavier = robot.with_inertial_parameters(2.0 * robot.inertial_parameters)
    sim, other = (Simulation(r, v=np.ones(6)) for r in (robot, heavier))
    for s in (sim, other):
        s.step()
    assert other.sensors()["below"] == pytest.approx(2.0 * sim.sensors()["below"], rel=1e-6)
    np.testing.assert_allclose(other.sensors()["whole"], 0.0, atol=1e-9)


def test_inertias_of_varied_robots_are_their_own() -> None:
    robot = featherweight.load(BOX)
    parameters = np.tile(robot.inertial_parameters, (2, 1, 1))
    parameters[1] *= 2.0
    heavier = featherweight.load(BOX.replace('mass="3"', 'mass="6"').replace('mass="0.5"', 'mass="1"'))
    sim = Simulation(robot, q=np.tile(robot.start(), (2, 1)), v=np.ones((2, 6)))
    sim.vary(parameters=parameters)
    sim.step(steps=2)
    alone = Simulation(heavier, v=np.ones(6))
    alone.step(steps=2)
    np.testing.assert_allclose(sim.sensors()["whole"][1], alone.sensors()["whole"], atol=1e-8)
    np.testing.assert_allclose(sim.sensors()["below"][1], alone.sensors()["below"], rtol=1e-8)
