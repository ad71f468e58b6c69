"""Tests of servos, motors, orientation servos and cranks, against MuJoCo."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import featherweight as fw

mujoco = pytest.importorskip("mujoco", minversion="4")

MODEL = """<mujoco model="servos"><option timestep="0.002" integrator="{integrator}"/>
<worldbody><site name="world" pos="0 0 1" euler="20 0 0"/>
<site name="rail" pos="0.8 0 1.1" zaxis="-1 0.1 0.2"/>
<body name="a" pos="0 0 1"><site name="pin" pos="0.1 0.1 0.02"/>
<joint name="turn" axis="0 1 0" damping="0.3"/><geom size=".1" pos="0.2 0 0"/>
<body name="b" pos="0.4 0 0"><joint name="ball" type="ball" damping="0.05"/><geom size=".1" pos="0.1 0 0.1"/>
<site name="tip" euler="10 20 30"/>
<body name="c" pos="0.2 0 0"><joint name="slide" type="slide" axis="1 1 0" damping="1"/><geom size=".08" pos="0 .1 0"/>
</body></body></body>
<body name="free" pos="1 0 1"><freejoint/><geom size=".1 .1 .2" type="box"/><site name="deck"/></body>
</worldbody><tendon><fixed name="both"><joint joint="turn" coef="1"/><joint joint="slide" coef="-2"/></fixed></tendon>
<actuator>{actuators}</actuator></mujoco>"""

ORDINARY = '<motor name="plain" joint="turn" gear="0.5" ctrlrange="-1 1"/>'
CASES = {
    "pid": '<pid name="x" joint="turn" kp="10" kv="1" gear="2" velrange="-1 2"/>',
    "integral": '<pid name="x" joint="slide" kp="10" kv="1" ki="20" imax="0.01" slewmax="3" posrange="-1 1" '
    'forcerange="-5 5"/>',
    "feedforward": '<pid name="x" joint="turn" input="pos ff" kp="3" kv="2"/>',
    "force alone": '<pid name="x" tendon="both" input="ff" kp="3" kv="2" ffrange="-.5 .2" gear="-1.5"/>',
    "kept states": '<general name="x" joint="turn" gaintype="pid" dyntype="pid" gainprm="9" dynprm="0 2" biastype="affine" '
    'biasprm="0 -3 -1" input="pos" actrange="-.05 .03"/>',
    "early": '<general name="x" joint="turn" gaintype="pid" dyntype="pid" gainprm="9" dynprm="0 0" biastype="affine" '
    'biasprm="0 -3 -1" input="pos" actearly="true"/>',
    "around a circle": '<pid name="x" joint="ball" kp="1" ki=".4" kv=".1" slewmax="4" gear="0.6 0.8 0"/>',
    "servo around a circle": '<position name="x" joint="ball" kp="1" kv=".1" gear="0 0.5 0.2"/>',
    "integrated around a circle": '<intvelocity name="x" joint="ball" kp="1" kv=".1" gear="1 0 0" actrange="-3.3 3.3"/>',
    "sites around a circle": '<position name="x" site="tip" refsite="world" kp="1" gear="0 0 0 0.1 0.7 0.2"/>',
    "orientation": '<orientation name="x" joint="ball" kp="4" kv=".2" forcerange="0 2" ctrlrange="-2 2"/>',
    "quaternion": '<orientation name="x" site="tip" refsite="world" kp="2" kv=".2" input="quat"/>',
    "between bodies": '<orientation name="x" site="deck" refsite="tip" kp=".5" kv=".02"/>',
    "integrated orientation": '<general name="x" joint="ball" gaintype="so3" biastype="so3" dyntype="integrator" gainprm="3" '
    'biasprm=".1 -3 -.1" actrange="-3 3"/>',
    "crank": '<position name="x" cranksite="pin" slidersite="rail" cranklength="0.9" gear="2" kp="20" kv="1"/>',
    "crank between bodies": '<motor name="x" cranksite="deck" slidersite="tip" cranklength="1.2" gear="-0.3"/>',
    "crank behind others": '<orientation joint="ball" kp="1"/><motor name="x" cranksite="pin" slidersite="rail" '
    'cranklength="0.8" gear="1.5"/>',
    "voltage": '<dcmotor name="x" joint="turn" resistance="2" motorconst=".4" gear="3"/>',
    "no input": '<dcmotor name="x" joint="turn" resistance="2" motorconst=".4" gear="3" input="none"/>',
    "inductance": '<dcmotor name="x" joint="turn" resistance="2" motorconst=".4" inductance="0.01" saturation="0 0 40"/>',
    "saturation": '<dcmotor name="x" joint="slide" resistance="2" motorconst=".4" saturation="0.1 0 0" cogging=".5 6 .3"/>',
    "controlled": '<dcmotor name="x" joint="turn" resistance="2" motorconst=".4" input="pos vel ff" '
    'controller="3 2 .1 5 .02 0"/>',
    "driver": '<dcmotor name="x" joint="turn" resistance="2" motorconst=".4" input="pos voltage" controller="3 0 .1 0 0 1.5"/>',
    "velocity at a rate": '<dcmotor name="x" joint="turn" resistance="2" motorconst=".4" input="vel ff" '
    'controller="0 0 2 30 0 0"/>',
    "force at a rate": '<dcmotor name="x" joint="turn" resistance="2" motorconst=".4" input="ff voltage" '
    'controller="1 0 .1 20 0 0"/>',
    "winding": '<dcmotor name="x" joint="turn" resistance="2" motorconst=".4" thermal="2 .3 0 .04 20 25"/>',
    "all": '<dcmotor name="x" joint="turn" resistance="2" motorconst=".4" input="pos vel ff voltage" '
    'controller="3 2 .1 5 .02 2.5" inductance="0.01" thermal="2 .3 0 .04 20 25" saturation="1 0 50" cogging=".1 6 .3"/>',
}
DELAYED = {
    how: f'<position name="x" joint="turn" kp="5" kv="1" delay="{time}" nsample="{n}" interp="{how.strip()}" ctrlrange="-1 1"/>'
    for how, time, n in (
        ("zoh", 0.006, 3),
        ("linear", 0.0115, 8),
        ("cubic", 0.0093, 12),
        ("zoh ", 0.0005, 4),
        ("linear ", 0.1, 5),
    )
} | {"filtered": '<general name="x" joint="turn" dyntype="filter" dynprm=".03" gainprm="3" delay=".005" nsample="9"/>'}
BRISTLES = {
    "bristles": '<dcmotor name="x" joint="turn" resistance="2" motorconst=".4" lugre="100 1 .1 .2 .05"/>',
    "bristles and all": CASES["all"].replace("/>", ' lugre="300 2 .1 .2 .05"/>'),
}


def pair(case: str, integrator: str = "RK4") -> tuple[fw.Robot, Any]:
    text = MODEL.format(integrator=integrator, actuators=ORDINARY + (CASES | BRISTLES | DELAYED)[case])
    return fw.load(text), mujoco.MjModel.from_xml_string(text)


@pytest.mark.parametrize("case", CASES)
def test_motion_is_that_of_mujoco(case: str) -> None:
    """Check Runge-Kutta steps of the same equations: differences are rounding that grows with the motion."""
    robot, model = pair(case)
    assert robot.report().keys() <= {"sites"}
    data, order, rng = mujoco.MjData(model), fw.MujocoOrder(robot, model), np.random.default_rng(3)
    sim = fw.Simulation(robot, model.opt.timestep, "rk4")
    begun = order.state(sim.q, sim.v)
    for k in range(400):
        if k % 40 == 0:
            data.ctrl[:] = rng.normal(0.0, 2.5, model.nu)
        mujoco.mj_step(model, data)
        sim.step(control=order.control(data.ctrl))
    there = order.state(sim.q, sim.v)
    assert abs(there.qpos - begun.qpos).max() > 0.1
    np.testing.assert_allclose(there.qpos, data.qpos, atol=1e-9)
    np.testing.assert_allclose(sim.activation, data.act, atol=1e-9)


@pytest.mark.parametrize("case", [*CASES, *BRISTLES])
def test_forces_are_those_of_mujoco_at_any_state(case: str) -> None:
    robot, model = pair(case, "Euler")
    data, order, rng = mujoco.MjData(model), fw.MujocoOrder(robot, model), np.random.default_rng(4)
    sim, seen = fw.Simulation(robot, model.opt.timestep), 0.0
    for _ in range(20):
        q, v = robot.random_configuration(rng=rng), rng.standard_normal(robot.nv)
        state = order.state(q, v)
        data.qpos[:], data.qvel[:] = state.qpos, state.qvel
        data.act[:], data.ctrl[:] = rng.normal(0.0, 0.01, model.na), rng.normal(0.0, 3.0, model.nu)
        control, act = order.control(data.ctrl), data.act.copy()
        mujoco.mj_forward(model, data)
        force = sim.forces.of_drives(q, v, control, activation=act)
        expected = order.robot_state(data.qpos, data.qfrc_actuator).v
        seen = max(seen, abs(force).max())
        np.testing.assert_allclose(force, expected, atol=1e-11 * max(1.0, abs(expected).max()))
        sim.reset(q, v)
        sim.activation = act
        sim.step(control=control)
        mujoco.mj_step(model, data)
        np.testing.assert_allclose(sim.activation, data.act, atol=1e-11)
    assert seen > 0.01


@pytest.mark.parametrize("case", DELAYED)
def test_delayed_controls_are_those_of_mujoco(case: str, tmp_path: Any) -> None:
    """Check drive forces from sensors in short RK4 steps: readings inside a step are those of its beginning here, and
    those of its stages in MuJoCo.
    """
    sensor = '<sensor><actuatorfrc actuator="x"/></sensor></mujoco>'
    text = MODEL.format(integrator="RK4", actuators=ORDINARY + DELAYED[case]).replace("</mujoco>", sensor)
    model, robot = mujoco.MjModel.from_xml_string(text), fw.load(text)
    assert robot.report().keys() <= {"sites"}
    data, order, rng = mujoco.MjData(model), fw.MujocoOrder(robot, model), np.random.default_rng(8)
    sim = fw.Simulation(robot, 0.002, "rk4")
    fleet = fw.Simulation(robot, 0.002, "rk4", q=np.tile(sim.q, (2, 1)))
    for _ in range(40):
        data.ctrl[:] = rng.normal(0.0, 1.0, model.nu)
        data.qpos[:], data.qvel[:] = order.state(sim.q, sim.v)
        data.act[:] = sim.activation
        control = order.control(data.ctrl)
        sim.step(control=control)
        fleet.step(control=control)
        mujoco.mj_step(model, data)
        np.testing.assert_allclose(sim.sensors(), data.sensordata, atol=1e-11)
        np.testing.assert_array_equal(fleet.q[1], sim.q)
    fw.read(text).save(tmp_path / "saved.xml")
    assert fw.load(tmp_path / "saved.xml").actuators == robot.actuators
    sim.reset()
    sim.step(control=np.ones(2))
    assert sim.sensors()[0] == 0.0 or case == "filtered"


@pytest.mark.parametrize("case", ["integral", "orientation", "quaternion", "integrated orientation", "bristles and all"])
def test_a_fleet_moves_as_each_robot_does_alone(case: str) -> None:
    robot, _ = pair(case)
    rng = np.random.default_rng(5)
    q, v = robot.random_configuration(rng=rng, size=3), rng.standard_normal((3, robot.nv))
    control = rng.standard_normal((3, len(robot.controls)))
    fleet = fw.Simulation(robot, q=q, v=v)
    fleet.step(steps=20, control=control)
    for i in range(3):
        alone = fw.Simulation(robot, q=q[i], v=v[i])
        alone.step(steps=20, control=control[i])
        np.testing.assert_array_equal(fleet.q[i], alone.q)
        np.testing.assert_array_equal(fleet.activation[i], alone.activation)


@pytest.mark.parametrize("case", [*CASES, *BRISTLES])
def test_saved_and_renamed_robots_have_the_same_drives(case: str, tmp_path: Any) -> None:
    robot, _ = pair(case)
    description = fw.read(MODEL.format(integrator="RK4", actuators=ORDINARY + (CASES | BRISTLES)[case]))
    description.save(tmp_path / "saved.xml")
    again = fw.load(tmp_path / "saved.xml")
    assert list(again.controls) == list(robot.controls)
    rng = np.random.default_rng(6)
    q, v, u = robot.random_configuration(rng=rng), rng.standard_normal(robot.nv), rng.standard_normal(len(robot.controls))
    one, other = (fw.Simulation(r, q=q, v=v, dt=0.002).forces for r in (robot, again))
    act = rng.normal(0.0, 0.01, one.na)
    force = one.of_drives(q, v, u, activation=act)
    np.testing.assert_allclose(other.of_drives(q, v, u, activation=act), force, atol=1e-12)
    named = fw.build(description.renamed({"x": "left"}))
    assert list(named.controls) == [name.replace("x", "left", 1) if name[0] == "x" else name for name in robot.controls]


def test_a_stiff_servo_of_a_light_motor_is_stable_in_long_steps() -> None:
    """Check that the semi-implicit step treats stiffness, damping and back-EMF implicitly: explicit steps with these
    gains diverge.
    """
    text = MODEL.format(integrator="Euler", actuators='<dcmotor name="x" joint="turn" resistance="1e-4" motorconst=".1"/>')
    for robot in (
        fw.load(text),
        fw.load(MODEL.format(integrator="Euler", actuators='<pid name="x" joint="turn" kp="1e5" kv="100" input="pos"/>')),
    ):
        sim = fw.Simulation(robot, 0.02, contact="rigid")
        sim.step(steps=300, control=[0.0])
        assert abs(sim.v[0]) < 0.2  # the motor brakes a falling weight


def test_gains_of_a_fleet_scale_the_whole_law() -> None:
    robot, _ = pair("pid")
    sim = fw.Simulation(robot, q=np.tile(robot.start(), (2, 1)))
    sim.vary(gains=[[1.0, 1.0], [1.0, 0.0]])
    sim.step(steps=5, control=[0.0, 1.0, 1.0])
    assert sim.q[0, 0] != sim.q[1, 0]
    bare = fw.Simulation(robot, actuators=robot.actuators[:1])
    bare.step(steps=5, control=[0.0])
    np.testing.assert_allclose(sim.q[1], bare.q, atol=1e-14)


JOINT = '<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody></mujoco>'
AT = fw.FrameForce("body", (0.0, 0.0, 0.0, 1.0, 0.0, 0.0))
VOLTAGE = fw.Servo((fw.DriveInput.VOLTAGE,))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"joint": "j", "orientation": fw.OrientationServo(1.0)}, "with a reference"),
        ({"joint": "j", "motor": fw.DCMotor(1.0, 1.0)}, "a motor has a servo"),
        ({"joint": "j", "servo": VOLTAGE}, "a voltage is an input of a motor"),
        ({"joint": "j", "servo": VOLTAGE, "motor": fw.DCMotor(0.0, 1.0)}, "resistance"),
        ({"joint": "j", "servo": fw.Servo(), "motor": fw.DCMotor(1.0, 0.0)}, "constant is 0"),
        ({"joint": "j", "servo": fw.Servo(ranges=((0.0, 1.0),))}, "2 inputs and 1 ranges"),
        ({"joint": "j", "servo": fw.Servo(inputs=(fw.DriveInput.FORCE,), integral=1.0)}, "no position among its inputs"),
        ({"joint": "j", "servo": fw.Servo(inputs=(fw.DriveInput.VELOCITY,), rate_limit=1.0)}, "no position among its inputs"),
        ({"joint": "j", "servo": dataclasses.replace(VOLTAGE, rate_limit=1.0), "motor": fw.DCMotor(1.0, 1.0)}, "no position"),
        ({"joint": "j", "servo": fw.Servo(inputs=(fw.DriveInput.VELOCITY, fw.DriveInput.POSITION))}, "in the order"),
        ({"joint": "j", "servo": fw.Servo(), "delay": fw.ControlDelay(0.1, 2)}, "takes one control"),
        ({"joint": "j", "delay": fw.ControlDelay(0.1, 0)}, "one sample or more"),
        ({"joint": "j", "servo": fw.Servo(integral=-1.0)}, "must not be negative"),
        ({"joint": "j", "servo": fw.Servo(), "slopes": (1.0, 0.0)}, "neither an activation"),
    ],
)
def test_actuators_that_make_no_sense_are_refused(fields: dict[str, Any], problem: str) -> None:
    description = dataclasses.replace(fw.read(JOINT), actuators=(fw.Actuator("x", **fields),))
    with pytest.raises(fw.ModelError, match=f"actuator 'x': .*{problem}"):
        fw.build(description)


@pytest.mark.parametrize(
    ("actuator", "kind"),
    [
        ('<general joint="turn" biastype="user"/>', "user"),
    ],
)  # fmt: skip
def test_what_is_not_simulated_is_reported(actuator: str, kind: str) -> None:
    robot = fw.load(MODEL.format(integrator="Euler", actuators=actuator))
    assert kind in robot.report()["actuators"]


def test_sensors_of_actuators_have_their_whole_force() -> None:
    """Check that the force includes friction and cogging of a motor."""
    sensors = """<sensor><actuatorfrc actuator="x"/><actuatorfrc actuator="plain"/><jointactuatorfrc joint="turn"/>
      <actuatorpos actuator="x"/><actuatorvel actuator="x"/></sensor></mujoco>"""
    actuators = BRISTLES["bristles and all"] + ORDINARY
    text = MODEL.format(integrator="RK4", actuators=actuators).replace("</mujoco>", sensors)
    robot, model = fw.load(text), mujoco.MjModel.from_xml_string(text)
    data, sim, rng = mujoco.MjData(model), fw.Simulation(robot, 0.002, "rk4"), np.random.default_rng(7)
    for _ in range(3):
        data.ctrl[:] = rng.standard_normal(model.nu)
        sim.reset(robot.random_configuration(rng=rng), rng.standard_normal(robot.nv))
        data.qpos[:], data.qvel[:] = fw.MujocoOrder(robot, model).state(sim.q, sim.v)
        sim.activation = data.act[:] = rng.normal(0.0, 0.01, model.na)
        sim.step(control=data.ctrl)
        mujoco.mj_step(model, data)
        np.testing.assert_allclose(sim.sensors()[:3], data.sensordata[:3], atol=1e-11)


@pytest.mark.parametrize("case", ["orientation", "between bodies", "integrated orientation"])
def test_sensors_of_orientation_servos_have_three_numbers(case: str, tmp_path: Any) -> None:
    sensors = """<sensor><actuatorfrc actuator="plain"/><actuatorpos actuator="x"/><actuatorvel actuator="x"/>
      <actuatorfrc actuator="x"/><actuatorpos actuator="plain"/></sensor></mujoco>"""
    text = MODEL.format(integrator="RK4", actuators=ORDINARY + CASES[case]).replace("</mujoco>", sensors)
    robot, model = fw.load(text), mujoco.MjModel.from_xml_string(text)
    assert robot.report().keys() <= {"sites"}
    data, order, rng = mujoco.MjData(model), fw.MujocoOrder(robot, model), np.random.default_rng(9)
    sims = [fw.Simulation(robot, 0.002, "rk4", q=q) for q in (robot.start(), np.tile(robot.start(), (2, 1)))]
    for _ in range(5):
        data.ctrl[:] = rng.normal(0.0, 2.0, model.nu)
        q, v = robot.random_configuration(rng=rng), rng.standard_normal(robot.nv)
        data.qpos[:], data.qvel[:] = order.state(q, v)
        data.act[:] = rng.normal(0.0, 0.5, model.na)
        act = data.act.copy()
        mujoco.mj_step(model, data)
        force = data.sensordata.copy()
        mujoco.mj_forward(model, data)
        force[1:7], force[10] = data.sensordata[1:7], data.sensordata[10]
        for sim in sims:
            sim.reset(q if sim is sims[0] else np.tile(q, (2, 1)), v if sim is sims[0] else np.tile(v, (2, 1)))
            sim.activation = act if sim is sims[0] else np.tile(act, (2, 1))
            sim.step(control=order.control(data.ctrl))
        np.testing.assert_allclose(sims[0].sensors(), force, atol=1e-8)
        np.testing.assert_array_equal(sims[1].sensors()[1], sims[0].sensors())
    assert sims[0].sensors()["x_actuatorfrc"].shape == (3,)
    fw.read(text).save(tmp_path / "saved.xml")
    assert [s.dim for s in fw.load(tmp_path / "saved.xml").sensors] == [s.dim for s in robot.sensors]
