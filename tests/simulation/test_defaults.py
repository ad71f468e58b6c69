"""Tests of a simulation's defaults from the robot's file, and of its reports of ignored features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from simulation.scenes import corners, free_bodies, pose, solid_box

BALL = """<mujoco><option timestep="0.004" integrator="RK4"/><worldbody>{floor}
  <body name="ball" pos="0 0 2"><freejoint/><geom name="skin" size="0.1" friction="0.6"/></body></worldbody>{more}
  <keyframe><key name="high" qpos="0 0 5 1 0 0 0"/></keyframe></mujoco>"""
FLOOR = '<geom name="floor" type="plane" size="1 1 1" friction="0.9"/>'


def ball(folder: Path, floor: str = FLOOR, more: str = "") -> fw.Robot:
    path = folder / "ball.xml"
    path.write_text(BALL.format(floor=floor, more=more))
    return fw.load(path)


def landed(sim: fw.Simulation) -> list[str]:
    """Fall for a second, and return the names of contacts."""
    sim.run(1.0)
    return sim.contacts().names


def test_step_integrator_floor_and_configurations_are_the_file_s(tmp_path: Path) -> None:
    robot = ball(tmp_path)
    sim = fw.Simulation(robot, q="high")
    assert (sim.dt, sim.integrator) == (0.004, "rk4")
    assert sim.q[2] == 5.0
    low = [0, 0, 0.1, 0, 0, 0, 1]
    sim.reset(low, [2, 0, 0, 0, 0, 0])
    sim.step()
    [force] = sim.contacts().forces
    np.testing.assert_allclose(force[:2], [-0.9 * force[2], 0.0], atol=1e-6)  # it slides
    other = fw.Simulation(robot, 1e-3, "midpoint", q=low, shapes=False)
    assert (other.dt, other.integrator) == (1e-3, "midpoint")
    assert not landed(other) and other.q[2] < -4.0


def test_shapes_touch_where_there_is_anything_to_touch(tmp_path: Path) -> None:
    alone = ball(tmp_path, floor="")
    assert not landed(fw.Simulation(alone))
    assert landed(fw.Simulation(alone, ground=fw.Plane()))
    boxes = free_bodies(solid_box(1.0, (1.0, 1.0, 1.0)))
    sim = fw.Simulation(boxes, q=pose((0, 0, 0.6)), spheres=corners("body0", (1.0, 1.0, 1.0)), ground=fw.Plane())
    names = landed(sim)
    assert len(names) == 4 and all("point" in name for name in names)


def test_spheres_do_not_switch_shapes_off(tmp_path: Path) -> None:
    """Check that shapes and spheres are independent options."""
    alone = ball(tmp_path, floor="")
    spheres = [fw.ContactSphere(alone.bodies[0].name, 0.02, (0.0, 0.0, 50.0))]  # far above the ball
    assert landed(fw.Simulation(alone, ground=fw.Plane(), spheres=spheres))
    assert not landed(fw.Simulation(alone, ground=fw.Plane(), spheres=spheres, shapes=False))


def test_what_is_not_simulated_is_said_once(tmp_path: Path) -> None:
    robot = ball(tmp_path, more='<option o_friction="1 .5 1 1 1"><flag override="enable"/></option>')
    with pytest.warns(fw.ModelWarning, match="two sliding or rolling frictions") as told:
        fw.Simulation(robot)
    assert len(told) == 1
