"""Tests of a simulation's defaults from the robot's file, and of its reports of ignored features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import featherweight as fw
from simulation.scenes import corners, free_bodies, solid_box

BALL = """<mujoco><option timestep="0.004" integrator="RK4"/><worldbody>{floor}
  <body name="ball" pos="0 0 2"><freejoint/><geom name="skin" size="0.1" friction="0.6"/></body></worldbody>{more}
  <keyframe><key name="high" qpos="0 0 5 1 0 0 0"/></keyframe></mujoco>"""
FLOOR = '<geom name="floor" type="plane" size="1 1 1" friction="0.9"/>'


def ball(folder: Path, floor: str = FLOOR, more: str = "") -> fw.Robot:
    path = folder / "ball.xml"
    path.write_text(BALL.format(floor=floor, more=more))
    return fw.load(path)


def contacts(sim: fw.Simulation) -> Any:
    """Return the pairs that may touch."""
    assert sim._fleet is not None
    return sim._fleet.contacts


def test_step_integrator_floor_and_configurations_are_the_file_s(tmp_path: Path) -> None:
    robot = ball(tmp_path)
    sim = fw.Simulation(robot, q="high")
    assert (sim.step_size, sim.integrator) == (0.004, "rk4")
    assert sim.q[2] == 5.0
    touching = contacts(sim).touching
    assert touching.friction.tolist() == [0.9]
    other = fw.Simulation(robot, 1e-3, "midpoint", shapes=False)
    assert (other.step_size, other.integrator) == (1e-3, "midpoint")
    assert not contacts(other).names


def test_shapes_touch_where_there_is_anything_to_touch(tmp_path: Path) -> None:
    alone = ball(tmp_path, floor="")
    assert not contacts(fw.Simulation(alone)).names
    assert contacts(fw.Simulation(alone, ground=fw.Plane())).names
    boxes = free_bodies(solid_box(1.0, (1.0, 1.0, 1.0)))
    sim = fw.Simulation(boxes, spheres=corners("body0", (1.0, 1.0, 1.0)), ground=fw.Plane())
    assert all("point" in name for name in contacts(sim).names)


def test_what_is_not_simulated_is_said_once(tmp_path: Path) -> None:
    robot = ball(tmp_path, more='<option o_friction="1 .5 1 1 1"><flag override="enable"/></option>')
    with pytest.warns(fw.ModelWarning, match="two sliding or rolling frictions") as told:
        fw.Simulation(robot)
    assert len(told) == 1
