"""Tests of sensors with delays or intervals, against MuJoCo; steps are powers of two, so that times are exact."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight
from featherweight import Simulation
from featherweight.array_types import Array
from featherweight.model.types import SensorKind

H = 1 / 512
MOTION = 1e-9  # error of (v+ - v) / h with velocities that agree to 1e-14

KINDS = {
    "gyro": 'gyro site="tip"',
    "place": 'framepos objtype="site" objname="tip"',
    "acc": 'accelerometer site="tip"',
    "angle": 'jointpos joint="a"',
    "push": 'jointactuatorfrc joint="a"',
    "clipped": 'jointvel joint="a" cutoff="0.5"',
    "time": "clock",
}
SAMPLINGS: dict[str, dict[str, Any]] = {
    "late": {"nsample": 3, "delay": 3 * H},
    "soon": {"nsample": 2, "delay": 0.3 * H},
    "too_late": {"nsample": 2, "delay": 5 * H},
    "line": {"nsample": 5, "delay": 2.4 * H, "interp": "linear"},
    "curve": {"nsample": 6, "delay": 3.6 * H, "interp": "cubic"},
    "edge": {"nsample": 3, "delay": 2.5 * H, "interp": "cubic"},
    "seldom": {"nsample": 1, "interval": 3.5 * H},
    "phase": {"nsample": 3, "interval": f"{4 * H} {-1.5 * H}"},
    "both": {"nsample": 4, "interval": 2 * H, "delay": 5 * H, "interp": "linear"},
    "history": {"nsample": 3},
}


def text() -> str:
    def words(given: dict[str, Any]) -> str:
        return " ".join(f'{key}="{value}"' for key, value in given.items())

    sensors = "".join(f'<{k} name="{n}_{m}" {words(s)}/>' for n, k in KINDS.items() for m, s in SAMPLINGS.items())
    return f"""
    <mujoco model="two links">
      <option timestep="{H}"/>
      <worldbody>
        <body name="one" pos="0 0 1"> <joint name="a" axis="0 1 0"/> <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.04"/>
          <body name="two" pos="0.3 0 0"> <joint name="b" axis="1 2 0"/> <geom name="ball" size="0.05" pos="0.2 0 0.1"/>
            <site name="tip" pos="0.2 0 0" euler="10 20 30"/>
          </body>
        </body>
      </worldbody>
      <actuator> <motor joint="a" gear="2"/> </actuator>
      <sensor>{sensors} <gyro name="now" site="tip"/></sensor>
    </mujoco>"""


def readings_of_mujoco(model: Any, control: Array, steps: int) -> Array:
    """Return readings after each step: of forces as `mj_step` leaves them, of other quantities at the state after it."""
    data, result = mujoco.MjData(model), []
    data.qvel[:] = 1.0, -2.0
    of_step = np.repeat(model.sensor_needstage == mujoco.mjtStage.mjSTAGE_ACC, model.sensor_dim)
    for k in range(steps):
        data.ctrl[:] = control[k]
        mujoco.mj_step(model, data)
        last = data.sensordata.copy()
        mujoco.mj_forward(model, data)
        result.append(np.where(of_step, last, data.sensordata))
    return np.array(result)


@pytest.fixture(scope="module")
def robot() -> featherweight.Robot:
    return featherweight.load(text())


def test_readings_are_those_of_mujoco(robot: featherweight.Robot) -> None:
    model, steps = mujoco.MjModel.from_xml_string(text()), 23
    control = np.sin(np.arange(steps))[:, None]
    expected = readings_of_mujoco(model, control, steps)
    sim, many = (Simulation(robot, v=v) for v in ([1.0, -2.0], [[0.3, 0.2], [1.0, -2.0], [2.0, 1.0]]))
    assert np.abs(np.diff(expected, axis=0)).max(axis=0).astype(bool).sum() > 100
    for k in range(steps):
        for x in (sim, many):
            x.step(control=control[k])
        for s in robot.sensors:
            y = expected[k, s.slice]
            np.testing.assert_allclose(
                sim.sensors()[s.name], y, rtol=0.0, atol=MOTION * max(1.0, np.abs(y).max()), err_msg=f"{s.name} {k}"
            )
        np.testing.assert_allclose(many.sensors()[1], sim.sensors(), rtol=0.0, atol=MOTION)
    assert np.abs(many.sensors()[0] - many.sensors()[1]).max() > 0.1


def test_samples_move_along_when_the_time_is_set(robot: featherweight.Robot) -> None:
    sim, other = Simulation(robot, v=[1.0, -2.0]), Simulation(robot, v=[1.0, -2.0])
    for x in (sim, other):
        x.step(steps=5)
    sim.time = 1000 * H
    for x in (sim, other):
        x.step(steps=3)
    assert sim.time == other.time + 995 * H
    for s in robot.sensors:
        if s.kind is not SensorKind.CLOCK:
            ours, theirs = sim.sensors()[s.name], other.sensors()[s.name]
            np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-12, err_msg=s.name)


def test_before_the_first_step_readings_are_those_of_mujoco(robot: featherweight.Robot) -> None:
    """Check all readings except accelerations and forces: without delay, these are for a robot that is held still."""
    model = mujoco.MjModel.from_xml_string(text())
    data, readings = mujoco.MjData(model), Simulation(robot).sensors()
    mujoco.mj_forward(model, data)
    for s in robot.sensors:
        if not s.name.startswith(("acc", "push")) or (s.sensor.sampling and s.sensor.sampling.delay):
            np.testing.assert_allclose(readings[s.name], data.sensordata[s.slice], rtol=0.0, atol=1e-12, err_msg=s.name)


def test_all_ways_to_take_steps_keep_samples(robot: featherweight.Robot) -> None:
    v, control, n = np.array([1.0, -2.0]), np.array([0.3]), 9
    sim = Simulation(robot, v=v)
    for _ in range(n):
        sim.step(control=control)
    expected = np.asarray(sim.sensors())
    steps, ran, controlled, rolled = (Simulation(robot, v=v) for _ in range(4))
    steps.step(control=control, steps=n)
    ran.run(n * H, control=control, every=4)
    controlled.run(n * H, lambda time, q, v: (None, control))
    states = rolled.rollout(sim.robot.start(), v, control=np.tile(control, (1, n, 1)), every=2)
    plain = [s for s in robot.sensors if s.sensor.sampling is None]
    bare = featherweight.load(text().split("<sensor>")[0] + "</mujoco>")
    alone = Simulation(bare).rollout(sim.robot.start(), v, control=np.tile(control, (1, n, 1)), every=2)
    for x, y in zip(states, alone, strict=True):
        np.testing.assert_allclose(x, y, rtol=0.0, atol=1e-13)
    assert len(plain) == 1 + len(KINDS)  # samples that no sensor reads are dropped
    for other in (steps, ran, controlled, copy.deepcopy(sim), pickle.loads(pickle.dumps(sim))):
        np.testing.assert_array_equal(other.sensors(), expected)
    np.testing.assert_array_equal(rolled.sensors(), Simulation(robot, v=v).sensors())  # a rollout changes nothing
    np.testing.assert_array_equal(sim.sensors(), expected)  # reading changes nothing


def test_robots_that_begin_anew_have_no_samples(robot: featherweight.Robot) -> None:
    v = np.array([[1.0, -2.0], [0.5, 0.2]])
    sim = Simulation(robot, v=v)
    sim.step(steps=8)
    others = sim.sensors()[0].copy()
    sim.reset(v=v[1], which=[1])
    fresh = Simulation(robot, v=v[1])
    timeless = [s.name for s in robot.sensors if s.kind is not SensorKind.CLOCK]
    for k in range(7):
        for name in timeless:
            np.testing.assert_allclose(
                sim.sensors()[name][1], fresh.sensors()[name], rtol=0.0, atol=1e-9, err_msg=f"{name} {k}"
            )
        if k == 0:
            np.testing.assert_array_equal(sim.sensors()[0], others)
        sim.step()
        fresh.step()
    assert np.abs(sim.sensors()[0] - sim.sensors()[1]).max() > 0.1


def test_a_step_that_is_not_taken_leaves_no_sample(robot: featherweight.Robot) -> None:
    sim, other = (Simulation(robot, v=[1.0, -2.0]) for _ in range(2))
    for x in (sim, other):
        x.step(steps=4)
    with pytest.raises(featherweight.SimulationError):
        sim.step(np.array([np.nan, 0.0]))
    for x in (sim, other):
        x.step(steps=3)
    np.testing.assert_array_equal(sim.sensors(), other.sensors())


def test_noise_is_that_of_the_delayed_reading() -> None:
    late = text().replace(
        '<gyro name="now" site="tip"/>', '<gyro name="noisy" site="tip" noise="0.1" nsample="2" delay="0.004"/>'
    )
    sim = Simulation(featherweight.load(late), v=[[1.0, -2.0]] * 500)
    sim.step(steps=5)
    off = sim.sensors(noise=np.random.default_rng(1))["noisy"] - sim.sensors()["noisy"]
    assert off.std() == pytest.approx(0.1, rel=0.1)
    assert abs(off.mean()) < 0.015


@pytest.mark.parametrize("on_failure", ["stop", "reset"])
def test_a_robot_that_fails_keeps_no_sample_of_that_step(robot: featherweight.Robot, on_failure: str) -> None:
    """Check that a stopped robot keeps its readings, a restarted one has no samples, and the others continue."""
    v = np.array([[1.0, -2.0], [0.5, 0.2]])
    sim, other = (Simulation(robot, v=v, on_failure=on_failure) for _ in range(2))
    for x in (sim, other):
        x.step(steps=8)
    before = sim.sensors()[1]
    bad = np.zeros((2, 2))
    bad[1] = np.nan
    sim.step(bad)
    other.step()
    assert list(sim.failed) == [False, True]
    np.testing.assert_array_equal(sim.sensors()[0], other.sensors()[0])
    fresh = Simulation(robot, v=v[1])
    for s in robot.sensors:
        if s.name.startswith(("gyro", "acc")) and s.name.endswith(("late", "soon")):
            expected = fresh.sensors()[s.name] if on_failure == "reset" else before[s.slice]
            got = sim.sensors()[s.name][1]
            if on_failure == "reset" or s.name.startswith("acc"):
                np.testing.assert_array_equal(got, expected, err_msg=s.name)
    if on_failure == "reset":
        sim.step()
        fresh.step()
        for s in robot.sensors:
            if s.kind is not SensorKind.CLOCK:
                np.testing.assert_allclose(
                    sim.sensors()[s.name][1], fresh.sensors()[s.name], rtol=0.0, atol=1e-9, err_msg=s.name
                )
