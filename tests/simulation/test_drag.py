"""Drag of bodies in a fluid, beside MuJoCo."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.simulation.derivatives import StepDerivatives

mujoco = pytest.importorskip("mujoco")

SWIMMING = """<mujoco><option density="{density}" viscosity="{viscosity}" timestep="0.002" gravity="0 0 -3"
  integrator="{integrator}"/><worldbody>
<body name="trunk" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .05" pos=".02 .03 .01" euler="10 20 30" mass="10"/>
  <body pos=".3 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 .1 0" size=".04" mass="2"/>
    <body pos=".3 .1 0" euler="0 40 0"><geom size=".05" pos="0 .1 0" mass="1"/></body></body></body>
<body pos="2 0 1"><joint axis="1 0 0"/><joint axis="0 1 0"/>
  <geom type="ellipsoid" size=".1 .2 .3" pos="0 0 -.5" mass="3"/></body>
<body pos="4 0 1"><joint type="ball"/><geom type="cylinder" size=".1 .2" pos="0 .3 -.5" mass="1"/></body>
</worldbody></mujoco>"""
FLUIDS = ((1000.0, 0.0), (0.0, 5.0), (4000.0, 0.1))


def swimming(density: float = 1000.0, viscosity: float = 0.1, integrator: str = "Euler") -> str:
    return SWIMMING.format(density=density, viscosity=viscosity, integrator=integrator)


def beside_mujoco(text: str, steps: int, external: Any = None) -> float:
    """Return the greatest difference of velocities from a random start, under a force on the trunk if one is given."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    robot = fw.load(text)
    sim = fw.Simulation(robot, v=np.random.default_rng(0).standard_normal(robot.nv) * 2.0, shapes=False)
    order = fw.MujocoOrder(robot, model)
    data.qpos[:], data.qvel[:] = order.state(sim.q, sim.v)
    worst = 0.0
    for _ in range(steps):
        given = None
        if external is not None:
            given = np.zeros((len(robot.bodies), 6))
            R = np.asarray(robot.frame_placement("trunk")(sim.q))[:3, :3]
            given[0, :3] = R.T @ external
            mujoco.mj_forward(model, data)
            data.qfrc_applied[:] = 0.0
            mujoco.mj_applyFT(model, data, external, np.zeros(3), data.xpos[1], 1, data.qfrc_applied)
        mujoco.mj_step(model, data)
        sim.step(external_forces=given)
        worst = max(worst, np.abs(order.state(sim.q, sim.v).qvel - data.qvel).max())
    return worst


@pytest.mark.parametrize(("density", "viscosity"), FLUIDS)
def test_drag_is_mujocos(density: float, viscosity: float) -> None:
    """Of free bodies, hinges, several joints of a body, ball joints, and links that are fixed to others, at every step."""
    assert beside_mujoco(swimming(density, viscosity), 200) < 1e-11


def test_drag_by_runge_kutta_is_mujocos() -> None:
    """To the order of the methods, which differ on rotations."""
    assert beside_mujoco(swimming(integrator="RK4"), 200) < 1e-7


def test_drag_and_forces_of_users_add_up() -> None:
    assert beside_mujoco(swimming(), 100, np.array([30.0, -20.0, 10.0])) < 1e-11


def test_robots_of_a_fleet_are_dragged_as_one_alone() -> None:
    robot = fw.load(swimming())
    v = np.random.default_rng(1).standard_normal((9, robot.nv))
    many = fw.Simulation(robot, q=np.tile(robot.start(), (9, 1)), v=v, shapes=False)
    many.run(0.1)
    for i in (0, 8):
        alone = fw.Simulation(robot, v=v[i], shapes=False)
        alone.run(0.1)
        np.testing.assert_array_equal(many.v[i], alone.v)


def test_a_swimmer_swims() -> None:
    """Gymnasium's, under its motors, goes on as in MuJoCo for half a second."""
    gymnasium = pytest.importorskip("gymnasium")
    from pathlib import Path

    path = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "swimmer.xml"
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    robot = fw.load(path)
    sim, order = fw.Simulation(robot), fw.MujocoOrder(robot, model)
    for k in range(50):
        control = np.array([np.sin(0.1 * k), np.cos(0.1 * k)])
        data.ctrl[:] = control
        mujoco.mj_step(model, data)
        sim.step(control=control)
    np.testing.assert_allclose(order.state(sim.q, sim.v).qpos, data.qpos, atol=2e-4)
    assert np.abs(data.qvel).max() > 0.5


def test_links_without_axes_of_the_file_have_those_of_their_inertia() -> None:
    """A description to which a link is attached that no MJCF file has given."""
    body = fw.Body("link", fw.Inertia(1.0, (0.1, 0.0, 0.0), (0.01, 0, 0, 0.02, 0, 0.025)))
    part = fw.describe([body], [fw.Joint("hinge", fw.JointType.REVOLUTE, None, "link", axis=(0.0, 1.0, 0.0))])
    robot = fw.build(fw.read(swimming()).attached(part, "trunk"))
    (box,) = [x for x in robot.model.drag if x.body == "link"]
    a, b, c = sorted(box.size)
    squares = np.array([b * b + c * c, a * a + c * c, a * a + b * b]) / 12.0
    np.testing.assert_allclose(sorted(squares), [0.01, 0.02, 0.025], rtol=1e-12)


def test_what_is_not_there_says_so() -> None:
    robot = fw.load(swimming())
    with pytest.raises(ValueError, match="drag in a fluid is of the integrators 'semi-implicit' and 'rk4'"):
        fw.Simulation(robot, integrator="midpoint")
    with pytest.raises(NotImplementedError, match="in a fluid"):
        fw.Simulation(robot, shapes=False).derivatives()
    assert isinstance(fw.Simulation(fw.build(fw.generators.chain(2))).derivatives(), StepDerivatives)


def test_wind_and_shapes_of_geoms_are_told() -> None:
    text = swimming().replace("<option", '<option wind="1 0 0"').replace('size=".05"', 'size=".05" fluidshape="ellipsoid"')
    report = fw.load(text).report()
    assert report["wind"] == "1 0 0"
    assert report["geoms with drag of their own (fluidshape), taken as their links' boxes"] == "1"
