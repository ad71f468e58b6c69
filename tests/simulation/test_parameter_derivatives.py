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


BALL_AND_BOX = """<mujoco><option timestep=".001" cone="{cone}"/><default><geom solref="{time} {ratio}"
solimp="{d0} {d} {width} {middle} {power}"/></default><worldbody>
<geom type="plane" size="5 5 1"/><body pos="0 0 .0495"><freejoint/><geom size=".05" mass=".7"/></body>
<body pos=".5 0 .0295"><freejoint/><geom type="box" size=".15 .1 .03" mass="2"/></body></worldbody></mujoco>"""
SOFTNESS = {"time": 0.03, "ratio": 0.8, "d0": 0.6, "d": 0.9, "width": 0.001, "middle": 0.4, "power": 2.5}


def exact_model(text: str) -> Any:
    """Return MuJoCo's model of a text, with a solver that stops at rounding."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.tolerance, model.opt.iterations, model.opt.ls_tolerance = 0.0, 200, 1e-10
    return model


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_derivatives_by_softness_are_differences_of_mujoco(cone: str) -> None:
    """Compare with central differences of MuJoCo's steps; its solver stops at rounding, 1e-10 of velocities over 2e-5."""
    small = 1e-5
    v = 0.3 * np.random.default_rng(0).standard_normal(12)
    v[3:6] = v[9:] = 0.0  # MuJoCo's linear velocities are in the axes of the world
    sim = fw.Simulation(fw.load(BALL_AND_BOX.format(cone=cone, **SOFTNESS)), v=v)

    def after(name: str, factor: float) -> Any:
        model = exact_model(BALL_AND_BOX.format(cone=cone, **SOFTNESS | {name: repr(SOFTNESS[name] * factor)}))
        order, data = fw.MujocoOrder(sim.robot, model), mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = order.state(sim.q, v)
        mujoco.mj_step(model, data)
        return data.qvel.copy()

    slopes = sim.parameter_derivatives("solref", "solimp")
    columns = np.concatenate([slopes["solref"], slopes["solimp"]], axis=1)[12:].T
    for column, name in zip(columns, SOFTNESS, strict=True):
        expected = (after(name, 1.0 + small) - after(name, 1.0 - small)) / (2.0 * small)
        size = np.abs(expected).max()
        assert size > 1e-3, name
        np.testing.assert_allclose(column, expected, rtol=0.0, atol=1e-3 * size, err_msg=name)


HOPPER = """<mujoco><option timestep=".002" cone="{cone}"/><default><geom solimp=".8 .95 .002 .4 3"/></default><worldbody>
<geom type="plane" size="5 5 1"/><body name="base" pos="0 0 .28"><freejoint/>
<inertial pos=".01 -.02 .03" mass="{base}" diaginertia="{turn} {turn} {turn}"/><geom type="box" size=".1 .05 .02"/>
<body name="leg" pos=".05 0 0"><joint name="hip" axis="0 1 0" damping=".1" frictionloss=".5" armature="{armature}"/>
<inertial pos="0 .01 -.1" mass="{leg}" diaginertia=".004 .004 .004"/><geom type="capsule" fromto="0 0 0 0 0 -.25" size=".03"/>
</body></body><body pos="1 0 0"><joint type="slide" axis="0 0 1"/><inertial pos="0 0 0" mass="{slider}" diaginertia="1 1 1"/>
<geom size=".05"/></body></worldbody></mujoco>"""
BODIES = {"base": 4.0, "turn": 0.03, "leg": 1.0, "slider": 2.0, "armature": 0.02}


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
@pytest.mark.parametrize("robots", [1, 11])
def test_other_inertias_scale_the_compliance_as_in_mujoco(cone: str, robots: int) -> None:
    """A hopper with other masses moves as MuJoCo's of a file that has them, in contact and with dry friction that yields."""
    others = {"base": 5.5, "turn": 0.05, "leg": 0.6, "slider": 3.0, "armature": 0.05}
    robot, other = (fw.load(HOPPER.format(cone=cone, **x)) for x in (BODIES, others))
    q, v = robot.start(), 0.1 * np.random.default_rng(0).standard_normal(robot.nv)
    q[7], v[3:6] = -0.25, 0.0
    sim = fw.Simulation(robot, q=np.tile(q, (robots, 1)), v=np.tile(v, (robots, 1)))
    share = (np.arange(robots) % 2 == 0)[:, None]
    own = robot.inertial_parameters, robot.armature
    sim.vary(
        parameters=np.where(share[..., None], other.inertial_parameters, own[0]),
        armature=np.where(share, other.armature, own[1]),
    )
    sim.step(steps=40)
    for i in range(min(robots, 2)):
        model = exact_model(HOPPER.format(cone=cone, **(BODIES if i else others)))
        order, data = fw.MujocoOrder(robot, model), mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = order.state(q, v)
        mujoco.mj_step(model, data, 40)
        assert data.ncon > 0
        reached = order.state(np.atleast_2d(sim.q)[i], np.atleast_2d(sim.v)[i])
        np.testing.assert_allclose(reached[1], data.qvel, rtol=0.0, atol=1e-11)  # rounding over 40 steps


STANDING = """<mujoco><option timestep=".002"/><worldbody><geom name="floor" type="plane" size="5 5 1" pos="0 0 {floor}"/>
<body pos="0 0 .2"><freejoint/><inertial pos="0 0 0" mass="3" diaginertia=".03 .03 .03"/>
<geom name="left" type="sphere" size=".03" pos="{left} .1 -.17"/>
<geom name="right" type="capsule" size=".03 .05" pos=".02 -.1 {right}"/>
<body pos=".2 0 0"><joint axis="0 1 0" damping=".2"/><inertial pos="0 0 -.1" mass=".5" diaginertia=".01 .01 .01"/>
<geom name="foot" type="box" size=".03 .02 .02" pos="{foot} 0 -.18"/></body></body></worldbody></mujoco>"""
PLACES = {"floor": -0.001, "left": 0.0, "right": -0.12, "foot": 0.01}
MOVES = {"floor": ("floor", 2), "left": ("left", 0), "right": ("right", 2), "foot": ("foot", 0)}  # shape and axis


def test_shapes_with_offsets_touch_as_those_of_mujoco() -> None:
    """A robot moves as MuJoCo's of a file with other positions, alone and among others, for many steps."""
    others = {"floor": 0.001, "left": -0.04, "right": -0.115, "foot": 0.03}
    robot = fw.load(STANDING.format(**PLACES))
    offsets = np.zeros((len(robot.shapes), 3))
    for name, (shape, axis) in MOVES.items():
        offsets[[s.name for s in robot.shapes].index(shape), axis] = others[name] - PLACES[name]
    fleet = fw.Simulation(robot, q=np.tile(robot.start(), (11, 1)))
    fleet.vary(shape_offsets=offsets * (np.arange(11) % 2 == 0)[:, None, None])
    fleet.step(steps=100)
    alone = fw.Simulation(robot)
    alone.vary(shape_offsets=offsets)
    alone.step(steps=100)
    for places, reached in ((others, alone.v), (others, fleet.v[0]), (PLACES, fleet.v[1]), (others, fleet.v[10])):
        model = exact_model(STANDING.format(**places))
        data = mujoco.MjData(model)
        mujoco.mj_step(model, data, 100)
        assert data.ncon > 0
        expected = fw.MujocoOrder(robot, model).robot_state(data.qpos, data.qvel)[1]
        np.testing.assert_allclose(reached, expected, rtol=0.0, atol=1e-9)


def test_derivatives_by_positions_of_shapes_are_differences_of_mujoco() -> None:
    """Compare with central differences of MuJoCo's steps over 1e-6 m, beside overlaps of 1 mm, whose curvature is 1e-5."""
    robot, small = fw.load(STANDING.format(**PLACES)), 1e-6
    sim = fw.Simulation(robot)
    sim.step(steps=30)
    slopes = sim.parameter_derivatives("shape_offsets")["shape_offsets"][robot.nv :].reshape(robot.nv, -1, 3)
    largest = 0.0
    for name, (shape, axis) in MOVES.items():
        ends = []
        for sign in (1.0, -1.0):
            model = exact_model(STANDING.format(**PLACES | {name: repr(PLACES[name] + sign * small)}))
            order, data = fw.MujocoOrder(robot, model), mujoco.MjData(model)
            data.qpos[:], data.qvel[:] = order.state(sim.q, sim.v)
            mujoco.mj_step(model, data)
            ends.append(np.asarray(order.robot_state(data.qpos, data.qvel)[1]))
        expected = (ends[0] - ends[1]) / (2.0 * small)
        largest = max(largest, float(np.abs(expected).max()))
        found = slopes[:, [s.name for s in robot.shapes].index(shape), axis]
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-3 * max(1.0, np.abs(expected).max()), err_msg=name)
    assert largest > 1.0


THINGS = """<mujoco><option timestep=".002"/><default><geom solref=".02 1" solimp=".8 .9 .01"/></default><worldbody>
<geom name="floor" type="plane" size="5 5 1"/>
<body pos="0 0 .099"><freejoint/><inertial pos="0 0 .01" mass="1" diaginertia=".01 .01 .01"/><geom name="a" size="{a}"/></body>
<body pos=".5 0 .0495" euler="90 20 0"><freejoint/><inertial pos="0 .01 0" mass="1" diaginertia=".01 .01 .01"/>
<geom name="b" type="capsule" size="{b}"/></body>
<body pos="1 0 .0395" euler="0 0 20"><freejoint/><inertial pos=".01 0 0" mass="2" diaginertia=".01 .01 .01"/>
<geom name="c" type="box" size="{c}"/></body>
<body pos="1.5 0 .0595"><freejoint/><inertial pos=".01 0 0" mass="1" diaginertia=".01 .01 .01"/>
<geom name="d" type="cylinder" size="{d}"/></body>
<body pos="2 0 .0495"><freejoint/><inertial pos=".01 0 0" mass="1" diaginertia=".01 .01 .01"/>
<geom name="e" type="ellipsoid" size="{e}"/></body>
<body pos="1 .01 .139"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .01"/>
<geom name="f" size="{f}"/></body></worldbody></mujoco>"""
SIZES: dict[str, list[float]] = {
    "a": [0.1], "b": [0.05, 0.1], "c": [0.1, 0.05, 0.04], "d": [0.08, 0.06], "e": [0.1, 0.08, 0.05], "f": [0.06]
}  # fmt: skip


def things(sizes: dict[str, list[float]]) -> str:
    """Return a file with shapes of these sizes: a ball on a box, and all kinds on a floor."""
    return THINGS.format(**{name: " ".join(map(repr, x)) for name, x in sizes.items()})


@pytest.mark.parametrize("robots", [1, 19])
def test_shapes_of_other_sizes_touch_as_those_of_mujoco(robots: int) -> None:
    """Robots, of which every second has other sizes, move as MuJoCo's for many steps, after steps with the file's sizes."""
    rng, robot = np.random.default_rng(0), fw.load(things(SIZES))
    factors = np.ones((robots, len(robot.shapes), 3))
    for i, shape in enumerate(robot.shapes):
        if shape.name in SIZES:
            factors[::2, i] = rng.uniform(0.9, 1.15, 3)
    sim = fw.Simulation(robot, q=np.tile(robot.start(), (robots, 1)))
    start = sim.state
    sim.step(steps=20)
    sim.state = start
    sim.vary(shape_sizes=factors)
    sim.step(steps=100)
    for i in {0, robots - 2, robots - 1} - {-1}:
        own = factors[i, [[s.name for s in robot.shapes].index(name) for name in SIZES]]
        model = exact_model(things({name: (own[k, : len(x)] * x).tolist() for k, (name, x) in enumerate(SIZES.items())}))
        data = mujoco.MjData(model)
        mujoco.mj_step(model, data, 100)
        assert data.ncon > 6
        expected = fw.MujocoOrder(robot, model).robot_state(data.qpos, data.qvel)[1]
        np.testing.assert_allclose(np.atleast_2d(sim.v)[i], expected, rtol=0.0, atol=1e-7)


def test_derivatives_by_sizes_of_shapes_are_differences_of_mujoco() -> None:
    """Compare with central differences of MuJoCo's steps over 1e-6 of the sizes, beside overlaps of 1 mm."""
    robot, small = fw.load(things(SIZES)), 1e-6
    sim = fw.Simulation(robot)
    sim.step(steps=10)
    slopes = sim.parameter_derivatives("shape_sizes")["shape_sizes"][robot.nv :].reshape(robot.nv, -1, 3)
    for name, sizes in SIZES.items():
        for k in range(len(sizes)):
            ends = []
            for sign in (1.0, -1.0):
                other = [x * (1.0 + sign * small) if i == k else x for i, x in enumerate(sizes)]
                model = exact_model(things(SIZES | {name: other}))
                order, data = fw.MujocoOrder(robot, model), mujoco.MjData(model)
                data.qpos[:], data.qvel[:] = order.state(sim.q, sim.v)
                mujoco.mj_step(model, data)
                ends.append(np.asarray(order.robot_state(data.qpos, data.qvel)[1]))
            expected = (ends[0] - ends[1]) / (2.0 * small)
            found = slopes[:, [s.name for s in robot.shapes].index(name), k]
            np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-3 * max(1.0, np.abs(expected).max()), err_msg=name)


def test_sizes_that_cannot_vary() -> None:
    robot = fw.load(things(SIZES))
    sim, factors = fw.Simulation(robot), np.ones((len(robot.shapes), 3))
    factors[0, 0] = 1.1
    with pytest.raises(ValueError, match=r"shape_sizes of 'floor' must be 1, because it is a plane; the sizes of sphere, "):
        sim.vary(shape_sizes=factors)
    with pytest.raises(ValueError, match="shape_sizes must be positive factors; got 0"):
        sim.vary(shape_sizes=0.0 * factors)


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
    with pytest.raises(ValueError, match=r"parameters must be one of parameters, armature, shape_offsets, .*; got 'mass'"):
        sim.parameter_derivatives("mass")
