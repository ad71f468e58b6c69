"""Tests of rays of sites and cameras, against MuJoCo."""

from __future__ import annotations

import re

import mujoco
import numpy as np
import pytest

import featherweight
from featherweight import MujocoOrder, Simulation
from simulation.test_sensors import shapes_scene

SINGLE = 2e-6  # relative: MuJoCo stores vertices and heights in single precision
CAMERAS = """
<camera name="wide" fovy="100" resolution="7 5" euler="10 20 30"/>
<camera name="lens" resolution="6 4" euler="100 20 30" sensorsize="0.046875 0.03125"
 focal="0.03125 0.015625" principal="0.00390625 -0.001953125"/>
<camera name="flat" projection="orthographic" fovy="0.2" resolution="4 6" euler="-70 0 30"/>
<camera name="still" mode="track" fovy="60" resolution="4 4" pos="0.1 0 0.2" euler="60 0 30"/>
"""


def scene(data: str) -> str:
    text = shapes_scene(np.random.default_rng(6))
    text = re.sub(r'(<rangefinder name="r\d+" site="s\d+")', rf'\1 data="{data}"', text)
    text = text.replace('<geom size="0.1"/>', f'<geom size="0.1"/>{CAMERAS}')
    rays = "".join(f'<rangefinder name="{name}" camera="{name}" data="{data}"/>' for name in ("wide", "lens", "flat", "still"))
    return text.replace("</sensor>", rays + '<rangefinder name="plain" camera="wide"/></sensor>')


@pytest.mark.parametrize("data", ["dist dir origin point normal depth", "point depth", "normal"])
def test_rays_have_the_data_of_mujocos(data: str) -> None:
    """Check rays from above the height field; MuJoCo sees its base from the inside."""
    text = scene(data)
    model, robot, rng, n = mujoco.MjModel.from_xml_string(text), featherweight.load(text), np.random.default_rng(7), 20
    data_of, seen, wrong = mujoco.MjData(model), set(), []
    assert robot.sensors[-1].slice.stop == model.nsensordata
    q = np.tile(robot.start(), (n, 1))
    q[:, :3] = rng.uniform((-3, -3, -1.7), 3, (n, 3))
    q[:, 3:] = rng.standard_normal((n, 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    readings = Simulation(robot, q=q, shapes=False).sensors()
    for i in range(n):
        data_of.qpos[:] = MujocoOrder(robot, model).state(q[i], np.zeros(6)).qpos
        mujoco.mj_forward(model, data_of)
        for s in robot.sensors:
            rays = (
                1 if s.name[0] == "r" else int(np.prod(model.cam_resolution[model.camera(s.name.replace("plain", "wide")).id]))
            )
            x, y = (np.reshape(z, (rays, -1)) for z in (readings[i, s.slice], data_of.sensordata[s.slice]))
            off = np.abs(x - y).max(axis=1)
            wrong += [(s.name, i, k, x[k], y[k]) for k in np.flatnonzero(off > SINGLE * max(1.0, np.abs(y).max()))]
            seen |= {(s.name, bool(row.any())) for row in y}
    assert not wrong, (len(wrong), wrong[:6])
    assert {name for name, _ in seen} == {s.name for s in robot.sensors}
    np.testing.assert_array_equal(Simulation(robot, q=q[3], shapes=False).sensors(), readings[3])
