"""Tests of derivatives of steps by parameters, against the equations of a pendulum and differences of robots of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from simulation.test_derivatives_by_file import walker

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start")

ARM = """<mujoco><option timestep=".01" gravity="0 0 -9"/><worldbody>
<body><joint name="shoulder" axis="0 1 0" damping=".3" stiffness="2" armature=".05" frictionloss="0"/>
  <inertial pos=".1 0 -.5" mass="2" diaginertia=".1 .2 .3"/></body></worldbody>
<actuator><motor joint="shoulder" gear="3"/></actuator></mujoco>"""


def test_those_of_a_pendulum_are_those_of_its_equation() -> None:
    """Compare with (I + a + h d) (v' - v) = h (g u - k q - d v + m (x cos q + z sin q) 9), differentiated by hand."""
    sim = fw.Simulation(fw.load(ARM), q=[0.4], v=[1.5])
    h, u, q, v = 0.01, 0.7, 0.4, 1.5
    x, z, m = 0.1, -0.5, 2.0
    inertia, torque = 0.2 + m * (x * x + z * z), 9.0 * m * (x * np.cos(q) + z * np.sin(q))
    whole = inertia + 0.05 + h * 0.3
    rate = (3.0 * u - 2.0 * q - 0.3 * v + torque) / whole  # (M + h D) v' = h F
    slopes = sim.parameter_derivatives("damping", "stiffness", "armature", "gains", "parameters", control=[u])
    of_velocity = {name: x[1] for name, x in slopes.items()}
    by_inertia = -h * rate / whole
    expected = {
        "damping": [0.3 * (-h * v / whole + h * by_inertia)], "stiffness": [-2.0 * h * q / whole], "armature": [by_inertia],
        "gains": [h * 3.0 * u / whole],
    }  # fmt: skip
    for name, y in expected.items():
        np.testing.assert_allclose(of_velocity[name], y, rtol=1e-6, atol=1e-9, err_msg=name)  # rounding of v over 2e-6
        np.testing.assert_allclose(slopes[name][0], h * of_velocity[name], rtol=1e-6, atol=1e-9)
    by_mass = of_velocity["parameters"][0]  # at constant first moments and inertia about the origin
    assert abs(by_mass) < 1e-9
    np.testing.assert_allclose(of_velocity["parameters"][1], 9.0 * h * np.cos(q) / whole, rtol=1e-6)


@pytest.mark.parametrize("contact", ["file", "rigid"])
def test_many_robots_have_those_of_each(contact: str) -> None:
    """Compare with differences of robots that touch a floor, one by one, at factors of their own."""
    robot, rng, robots = fw.load(f"<mujoco>{walker()}</mujoco>"), np.random.default_rng(2), 3
    factors: dict[str, Any] = {"damping": rng.uniform(0.5, 2.0, robots), "friction": rng.uniform(0.5, 1.5, robots)}
    sim = fw.Simulation(robot, q=np.tile(robot.start(), (robots, 1)), contact=contact)
    sim.vary(**factors)
    tau, control = 0.1 * rng.standard_normal((robots, robot.nv)), rng.uniform(-0.5, 0.5, (robots, 3))
    sim.step(tau, control, steps=40)
    state = sim.state
    slopes = sim.parameter_derivatives("friction", "damping", tau=tau, control=control)
    assert sim.state == state
    assert slopes["friction"].shape == (robots, 20, 1) and slopes["damping"].shape == (robots, 20, 10)
    for name in factors:
        ends = []
        for small in (1e-6, -1e-6):
            sim.vary(**factors | {name: factors[name] + small})
            ends.append(sim.advance(state, tau=tau, control=control))
        change = np.hstack([robot.difference(ends[1].q, ends[0].q), ends[0].v - ends[1].v]) / 2e-6
        np.testing.assert_allclose(slopes[name].sum(axis=2), change, rtol=1e-5, atol=1e-6 * max(1.0, np.abs(change).max()))


BALL_AND_BOX = """<mujoco><option timestep=".001" cone="{cone}"/><default><geom solref="{time} {ratio}"/></default><worldbody>
<geom type="plane" size="5 5 1"/><body pos="0 0 .0495"><freejoint/><geom size=".05" mass=".7"/></body>
<body pos=".5 0 .0295"><freejoint/><geom type="box" size=".15 .1 .03" mass="2"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_derivatives_by_softness_are_differences_of_mujoco(cone: str) -> None:
    """Compare with central differences of MuJoCo's steps; its solver stops at rounding, 1e-10 of velocities over 2e-5."""
    time, ratio, small = 0.03, 0.8, 1e-5
    v = 0.1 * np.random.default_rng(0).standard_normal(12)
    v[3:6] = v[9:] = 0.0  # MuJoCo's linear velocities are in the axes of the world
    sim = fw.Simulation(fw.load(BALL_AND_BOX.format(cone=cone, time=time, ratio=ratio)), v=v)
    order = fw.MujocoOrder(sim.robot, mujoco.MjModel.from_xml_string(BALL_AND_BOX.format(cone=cone, time=time, ratio=ratio)))

    def after(time: float, ratio: float) -> Any:
        model = mujoco.MjModel.from_xml_string(BALL_AND_BOX.format(cone=cone, time=repr(time), ratio=repr(ratio)))
        model.opt.tolerance, model.opt.iterations, model.opt.ls_tolerance = 0.0, 200, 1e-10
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = order.state(sim.q, v)
        mujoco.mj_step(model, data)
        return data.qvel.copy()

    slopes = sim.parameter_derivatives("solref")["solref"]
    a, b = 1.0 + small, 1.0 - small
    expected = after(a * time, ratio) - after(b * time, ratio), after(time, a * ratio) - after(time, b * ratio)
    for column, change in zip(slopes[12:].T, expected, strict=True):
        size = np.abs(change / (2.0 * small)).max()
        assert size > 1e-3
        np.testing.assert_allclose(column, change / (2.0 * small), rtol=0.0, atol=1e-3 * size)


def test_factors_of_zero_have_derivatives_of_one_side() -> None:
    sim = fw.Simulation(fw.load(ARM), q=[0.4], v=[1.5])
    sim.vary(damping=0.0)
    [[_], [by_damping]] = sim.parameter_derivatives("damping")["damping"]
    sim.vary(damping=1e-6)
    more = sim.advance(sim.state)
    sim.vary(damping=0.0)
    np.testing.assert_allclose(by_damping, (more.v - sim.advance(sim.state).v)[0] / 1e-6, rtol=1e-6)


def test_unknown_parameters_are_refused_by_name() -> None:
    sim = fw.Simulation(fw.load(ARM))
    with pytest.raises(ValueError, match=r"parameters must be one of parameters, armature, friction, .*; got 'mass'"):
        sim.parameter_derivatives("mass")
