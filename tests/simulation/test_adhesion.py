"""Tests of drives that pull contacts together, against MuJoCo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.not_simulated import not_simulated
from oracles.states import Array
from simulation.beside_mujoco import beside_mujoco

HANGING = """<mujoco><option timestep="0.001" cone="elliptic" iterations="200" tolerance="1e-14"/><worldbody>
<geom name="ceiling" type="box" size="1 1 .1" pos="0 0 1.1"/>
<body name="box" pos=".1 0 .9502"><freejoint name="free"/><geom type="box" size=".1 .08 .05" mass="1"/></body>
<body name="arm" pos="0 .5 .8"><joint name="j" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>
  <body name="pad" pos=".3 0 .1"><joint name="k" type="slide" axis="0 0 1" range="-.05 .2"/><geom name="pad" size=".05"/>
</body></body></worldbody>
<actuator><adhesion name="hold" body="box" ctrlrange="0 1" gain="30"/><adhesion name="pad" body="pad" ctrlrange="0 2" gain="8"/>
<motor joint="j" gear="3"/></actuator></mujoco>"""


def test_motions_are_mujocos() -> None:
    """Check a box that hangs on the ceiling and is released, and a pad on an arm that sticks and slides."""

    def control(k: int) -> Array:
        return np.array([1.0 if k < 400 else 0.0, 1.5, -0.8 + 0.002 * k])

    assert not_simulated(fw.load(HANGING)) == {}
    sim, _, away = beside_mujoco(HANGING, 400, control)
    assert away.max() < 1e-6 and abs(sim.q[2] - 0.9502) < 2e-3  # the ceiling holds it
    sim, _, away = beside_mujoco(HANGING, 700, control)
    assert away.max() < 1e-6 and sim.q[2] < 0.7  # it fell


def test_rigid_contacts_hold_what_sticks() -> None:
    robot = fw.load(HANGING)
    sim = fw.Simulation(robot, contact="rigid")
    sim.run(0.5, control=np.array([1.0, 0.0, 0.0]))
    assert sim.q[2] == pytest.approx(0.95, abs=1e-3) and np.abs(sim.v[:6]).max() < 1e-6
    sim.run(0.2, control=np.array([0.2, 0.0, 0.0]))  # 6 N against a weight of 9.8 N
    assert sim.q[2] < 0.9


def test_what_other_integrators_and_files_do(tmp_path: Path) -> None:
    robot = fw.load(HANGING)
    with pytest.raises(ValueError, match=r"adhesion \(actuator 'hold'\) needs integrator 'semi-implicit'"):
        fw.Simulation(robot, integrator="rk4", contact="rigid")
    d = fw.read(HANGING)
    assert [a.adhesion for a in d.renamed({"box": "brick"}).actuators] == ["brick", "pad", None]
    assert [a.name for a in d.without("pad").actuators] == ["hold", d.actuators[2].name]
    d.save(tmp_path / "saved.xml")
    assert fw.read(tmp_path / "saved.xml").actuators == d.actuators
