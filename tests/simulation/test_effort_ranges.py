"""Tests of force limits of a joint's drives that differ by direction (MJCF's actuatorfrcrange), against MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from simulation.beside_mujoco import BesideMujoco

mujoco = pytest.importorskip("mujoco")

PUSHED = """<mujoco><option timestep="0.002" integrator="{integrator}"/><worldbody>
<body name="arm"><joint name="a" axis="0 1 0" actuatorfrcrange="-1 3"/><geom type="capsule" fromto="0 0 0 .3 .1 0" size=".04"/>
  <body name="hand" pos=".3 .1 0"><joint name="b" axis="1 0 0" actuatorfrcrange="-2 0.1"/>
  <joint name="c" type="slide" axis="0 0 1" actuatorfrcrange="-5 5"/><geom size=".05" pos="0 .1 0"/></body></body>
</worldbody><actuator>{drives}</actuator></mujoco>"""
MOTORS = '<motor joint="a" gear="2"/><motor joint="a"/><motor joint="b"/><motor joint="c"/>'
SERVOS = '<position joint="a" kp="20"/><motor joint="a"/><position joint="b" kp="3"/><velocity joint="c" kv="5"/>'


@pytest.mark.parametrize(("drives", "integrator"), [(MOTORS, "Euler"), (MOTORS, "RK4"), (SERVOS, "RK4")])
def test_motion_is_mujocos(drives: str, integrator: str) -> None:
    """Check limits in both directions, to rounding. Servos of Euler steps are in test_implicit_drives.py."""
    text = PUSHED.format(integrator=integrator, drives=drives)
    model, robot, rng = mujoco.MjModel.from_xml_string(text), fw.load(text), np.random.default_rng(0)
    pair = BesideMujoco(robot, model, shapes=False)
    sim, data = pair.sim, pair.data
    many = fw.Simulation(robot, q=np.zeros((3, robot.nq)), shapes=False)
    ends: set[tuple[int, float]] = set()
    for u in np.repeat(4.0 * rng.standard_normal((10, model.nu)), 20, axis=0):
        pair.step(u)
        many.step(control=u)
        assert pair.faster < 1e-9
        held = np.isin(data.qfrc_actuator[:, None], model.jnt_actfrcrange) & (data.qfrc_actuator != 0.0)[:, None]
        ends |= {(int(j), float(data.qfrc_actuator[j])) for j in np.flatnonzero(held.any(axis=1))}
    np.testing.assert_array_equal(many.v[2], sim.v)
    assert {(0, -1.0), (0, 3.0), (1, -2.0), (1, 0.1)} <= ends


def test_forces_of_users_are_cut_to_them() -> None:
    robot = fw.load(PUSHED.format(integrator="Euler", drives=""))
    np.testing.assert_array_equal(robot.effort_limit, [3.0, 2.0, 5.0])
    np.testing.assert_array_equal(robot.effort_bounds, [[-1.0, -2.0, -5.0], [3.0, 0.1, 5.0]])
    for tau, cut in (([-9.0, -9.0, -9.0], [-1.0, -2.0, -5.0]), ([9.0, 9.0, 9.0], [3.0, 0.1, 5.0])):
        ends = []
        for force in (tau, cut):
            sim = fw.Simulation(robot, shapes=False)
            sim.step(tau=force)
            ends.append(sim.v)
        np.testing.assert_array_equal(ends[0], ends[1])


def test_saved_files_and_edits_keep_them(tmp_path: Path) -> None:
    d = fw.read(PUSHED.format(integrator="Euler", drives=MOTORS))
    d.save(tmp_path / "again.xml")
    for x in (fw.read(tmp_path / "again.xml"), d.mirrored("x"), d.renamed({"arm": "limb"})):
        assert [(j.effort, j.effort_range) for j in x.joints] == [(3.0, (-1.0, 3.0)), (2.0, (-2.0, 0.1)), (5.0, None)]
    with pytest.warns(fw.ModelWarning, match="the effort ranges of the joints a, b, of which the greater is in the file"):
        d.save(tmp_path / "again.urdf")


@pytest.mark.parametrize(
    ("effort", "given"), [(3.0, (3.0, -3.0)), (5.0, (-1.0, 3.0)), (2.0, (-1.0, 3.0)), (3.0, (float("nan"), 3.0))]
)
def test_ranges_that_are_none_are_refused(effort: float, given: Any) -> None:
    d = fw.read(PUSHED.format(integrator="Euler", drives=""))
    wrong = replace(d, joints=(replace(d.joints[0], effort=effort, effort_range=given), *d.joints[1:]))
    with pytest.raises(fw.ModelError, match=r"joint 'a'.* effort_range.* give (effort= its greatest magnitude|numbers within)"):
        fw.build(wrong)
