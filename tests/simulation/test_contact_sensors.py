"""Tests of contact sensors against MuJoCo at the beginning of steps in which bodies lie, slide and collide."""

from __future__ import annotations

import itertools
import re
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight
from featherweight import MujocoOrder, Simulation
from featherweight.array_types import Array

FORCES = 1e-8  # relative to the greatest force: the solvers stop at different tolerances
EVERYTHING = 'data="found force torque dist pos normal tangent linvel angvel"'
ENDS = {
    "all": "",
    "ball": 'geom1="ball"',
    "to_ball": 'geom2="ball"',
    "rod_floor": 'geom1="rod" geom2="floor"',
    "floor_rod": 'geom1="floor" geom2="rod"',
    "box": 'body1="box"',
    "box_ball": 'body1="box" body2="globe"',
    "ball_box": 'body1="globe" body2="box"',
    "tree": 'subtree1="box"',
    "within": 'subtree1="box" subtree2="box"',
    "world": 'body2="world" subtree1="box"',
    "anything": 'subtree1="world" geom2="ball"',
    "zone": 'site="zone"',
    "zone_box": 'site="zone" body2="box"',
    "nothing": 'geom1="high"',
}
REDUCTIONS = {"none": 9, "mindist": 2, "maxforce": 3, "netforce": 1}


def scene(condim: int = 3) -> str:
    """Return a box that carries a rod and touches a paw, a ball on the box, and a ball in the air, on a tilted floor."""
    sensors = "".join(
        f'<contact name="{name}_{how}" {ends} reduce="{how}" num="{count}" {EVERYTHING}/>'
        for (name, ends), (how, count) in itertools.product(ENDS.items(), REDUCTIONS.items())
    )
    sensors = re.sub('(reduce="netforce"[^>]*) linvel angvel', r"\1", sensors)
    sensors = sensors if condim == 3 else sensors.replace("torque ", "")
    return f"""
    <mujoco model="heap">
      <option timestep="0.002" tolerance="1e-14" iterations="200" cone="elliptic"/>
      <default><geom condim="{condim}"/></default>
      <worldbody>
        <geom name="floor" type="plane" size="0 0 1" euler="3 -2 0"/>
        <site name="zone" type="box" size="0.6 0.15 0.3" pos="0.1 0 0.1"/>
        <body name="box" pos="0 0 0.1"> <freejoint/>
          <geom name="box" type="box" size="0.2 0.15 0.1" mass="3"/>
          <body name="arm" pos="0.35 0 0"> <joint axis="0 1 0" name="arm"/>
            <geom name="rod" type="capsule" size="0.04" fromto="0 0.1 -0.06 0.3 0 -0.06" mass="0.5"/>
            <geom name="tip" pos="0.1 0 0.3" size="0.05" mass="0.2"/>
            <body name="paw" pos="-0.1 0 0.04"> <joint axis="0 0 1"/> <geom name="paw" size="0.06" mass="0.2"/> </body>
          </body>
        </body>
        <body name="globe" pos="0.05 0.02 0.299"> <freejoint/> <geom name="ball" size="0.1" mass="1" margin="0.004"/> </body>
        <body name="star" pos="0 0 2"> <freejoint/> <geom name="high" size="0.1"/> </body>
      </worldbody>
      <sensor>{sensors}</sensor>
    </mujoco>"""


def states(robot: featherweight.Robot, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    q = np.tile(robot.start(), (n, 1))
    q = robot.integrate(q, rng.uniform(-1, 1, (n, robot.nv)) * np.where(np.arange(robot.nv) % 6 < 3, 0.01, 0.03))
    return np.asarray(q), rng.standard_normal((n, robot.nv)) * 0.3


def readings_of_mujoco(model: Any, state: Any) -> Array:
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = state
    mujoco.mj_forward(model, data)
    return np.asarray(data.sensordata.copy())


def by_place(rows: Array) -> Array:
    """Return contacts sorted by their points, 15 columns from the end; some slots are empty."""
    return rows[np.lexsort(np.round(rows[:, -15:-12], 6).T)]


@pytest.mark.parametrize("condim", [1, 3, 4])
def test_contacts_are_those_of_mujoco(condim: int) -> None:
    """Compare contacts. MuJoCo may order contacts differently, and `none` keeps this order: its slots are compared by their
    points.

    Torques of contacts are not compared if contacts resist rotation: their law differs from MuJoCo's by 1e-3.
    """
    model, robot = mujoco.MjModel.from_xml_string(scene(condim)), featherweight.load(scene(condim))
    assert len(robot.sensors) == model.nsensor
    assert robot.sensors[-1].slice.stop == model.nsensordata
    order, found = MujocoOrder(robot, model), set()
    q, v = states(robot, np.random.default_rng(1), 8)
    many = Simulation(robot, q=q, v=v, contact="file")
    many.step()
    every, forces = many.sensors(), FORCES if condim < 4 else 1e-3
    for i in range(len(q)):
        expected = readings_of_mujoco(model, order.state(q[i], v[i]))
        alone = Simulation(robot, q=q[i], v=v[i], contact="file")
        alone.step()
        readings, scale = alone.sensors(), max(1.0, np.abs(expected).max())
        for s in robot.sensors:
            x, y = (z.reshape(s.sensor.slots, -1) for z in (readings[s.name], expected[s.slice]))
            if s.name.endswith("_none"):
                x, y = by_place(x), by_place(y)
            found |= {s.name} if y.any() else set()
            np.testing.assert_allclose(x, y, rtol=0.0, atol=forces * scale, err_msg=f"{s.name} {i}")
            if not s.name.endswith("_netforce"):
                np.testing.assert_allclose(x[:, -16:], y[:, -16:], rtol=0.0, atol=1e-9, err_msg=f"{s.name} {i}")
        np.testing.assert_allclose(every[i], readings, rtol=0.0, atol=1e-9 * scale)
    assert found == {s.name for s in robot.sensors if not s.name.startswith("nothing")}


@pytest.mark.filterwarnings("ignore:.*overlap at the start")
def test_rigid_contacts_are_at_the_places_of_mujocos() -> None:
    """Check a rigid box that comes to rest: the net force is its weight, and the points are midway between the surfaces."""
    model, robot = mujoco.MjModel.from_xml_string(scene()), featherweight.load(scene())
    order, (q,), (v,) = MujocoOrder(robot, model), *states(robot, np.random.default_rng(2), 1)
    sim = Simulation(robot, q=q, v=v * 0.0)
    sim.step()
    expected = readings_of_mujoco(model, order.state(q, v * 0.0))
    for name in ("rod_floor", "floor_rod", "box_ball", "ball_box", "within"):
        s = robot.sensors[f"{name}_mindist"]
        x, y = (z.reshape(2, -1) for z in (sim.sensors()[s.name], expected[s.slice]))
        assert y[0, 0] > 0.0
        np.testing.assert_allclose(x[:, -16:], y[:, -16:], rtol=0.0, atol=1e-9, err_msg=name)
    sim.step(steps=1500)
    np.testing.assert_allclose(
        sim.sensors()["world_netforce"][1:4], 9.81 * (3.0 + 0.5 + 0.2 + 0.2) * np.array([0, 0, -1.0]), atol=0.5
    )


SPHERES = """
<mujoco><worldbody>
  <site name="left" type="box" size="1 2 1" pos="-1.05 0 0"/>
  <body name="b" pos="0 0 0.1"> <freejoint/> <inertial pos="0 0 0" mass="2" diaginertia="0.1 0.1 0.1"/>
    <site name="west" pos="-0.2 -0.1 0"/> <site name="east" pos="0.2 -0.1 0"/> <site name="north" pos="0 0.3 0"/> </body>
</worldbody>
<sensor>
  <contact name="all" data="found force normal" num="4"/> <contact name="left" site="left" body2="b" data="found pos"/>
  <contact name="net" body1="world" reduce="netforce" data="found force"/> <contact name="geoms" subtree1="b" subtree2="b"/>
</sensor></mujoco>"""


def test_spheres_and_the_ground_of_a_simulation_touch() -> None:
    robot = featherweight.load(SPHERES)
    spheres = [featherweight.ContactSphere(name, 0.1) for name in ("west", "east", "north")]
    sim = Simulation(robot, 0.002, spheres=spheres, shapes=False, ground=True)
    assert not np.any(sim.sensors())
    sim.step(steps=400)
    s = sim.sensors()
    rows = s["all"].reshape(4, -1)
    np.testing.assert_array_equal(rows[:, 0], [3, 3, 3, 0])
    np.testing.assert_allclose(rows[:3, 4:], [[0, 0, 1]] * 3, atol=1e-12)  # normals from the ground, a plane, to spheres
    assert rows[:3, 1].sum() == pytest.approx(2 * 9.81, rel=1e-6)
    np.testing.assert_allclose(s["net"], [3, 0, 0, 2 * 9.81], atol=1e-5)
    assert s["left"][0] == 1.0
    np.testing.assert_allclose(s["left"][1:], [-0.2, -0.1, 0], atol=1e-3)
    assert s["geoms"] == 0.0


def test_noise_is_of_forces_and_places_of_what_touches() -> None:
    text = SPHERES.replace('name="all"', 'name="all" noise="0.5"').replace(
        'contact name="left"', 'contact name="left" noise="0.1" num="3"'
    )
    spheres = [featherweight.ContactSphere("west", 0.1), featherweight.ContactSphere("east", 0.1)]
    robot = featherweight.load(text)
    q = np.tile(robot.start(), (2000, 1))
    sim = Simulation(robot, 0.002, q=q, spheres=spheres, shapes=False, ground=True)
    sim.step(steps=2)
    clean, noisy = sim.sensors(), sim.sensors(noise=np.random.default_rng(1))
    x, y = (s["all"].reshape(2000, 4, 7) for s in (clean, noisy))
    np.testing.assert_array_equal(x[..., 0], y[..., 0])
    np.testing.assert_array_equal(x[..., 4:], y[..., 4:])
    np.testing.assert_array_equal(y[:, 2:], 0.0)
    off = (y - x)[:, :2, 1:4]
    assert off.std() == pytest.approx(0.5, rel=0.05)
    assert abs(off.mean()) < 0.05
    off = (noisy["left"] - clean["left"]).reshape(2000, 3, 4)
    assert off[:, 0, 1:].std() == pytest.approx(0.1, rel=0.05)
    np.testing.assert_array_equal(off[:, 1:], 0.0)
