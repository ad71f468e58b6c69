"""Tests of the derivatives of single steps by unknowns of a fit, against central differences of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.identification.motion_slopes import step_slopes
from featherweight.identification.unknowns import Unknowns

ARM = """<mujoco><option timestep=".002"/><worldbody>{floor}<body name="upper"><joint name="a" axis="0 1 0" frictionloss=".5"
armature=".02" damping="{damping}" solimpfriction=".5 .6 .01"/><inertial pos="0 0 -.2" mass="1" diaginertia=".02 .02 .01"/>
<body name="lower" pos="0 0 -.4"><joint name="b" axis="0 1 0" frictionloss=".6" range="-20 20" solreflimit=".03 .6"
damping="{damping}" armature=".01"/><geom size=".03" pos="0 0 -.4" mass="0"/>
<inertial pos=".03 .01 -.2" mass=".5" diaginertia=".01 .01 .005"/></body></body></worldbody></mujoco>"""
FLOOR = '<geom type="plane" size="5 5 1" pos="0 0 -.79" solref=".1 1" solimp=".5 .6 .01"/>'


@pytest.mark.parametrize("floor", ["", FLOOR])
@pytest.mark.parametrize("damping", [0.1, 0.5])
def test_slopes_by_joints_and_inertias_are_differences(floor: str, damping: float) -> None:
    """Joints slide, stick and are at limits, and a foot presses on a floor, before dampers act (Euler's steps of MuJoCo)."""
    robots, rng = 64, np.random.default_rng(0)
    sim = fw.Simulation(fw.load(ARM.format(floor=floor, damping=damping)))
    unknowns = Unknowns(sim, ["armature", "mass", "damping", "dry_friction"], ["q"])
    x, fleet = unknowns.field("initial"), unknowns.simulation.with_options(on_failure="stop")
    q, tau = rng.uniform(-0.6, 0.6, (robots, 2)), rng.uniform(-2.0, 2.0, (robots, 2))
    v = rng.uniform(-2.0, 2.0, (robots, 2)) * 10.0 ** rng.uniform(-4.0, 0.0, (robots, 2))
    fleet.reset(q, v)

    def end(x: Any) -> tuple[Any, Any]:
        fleet.vary(**unknowns.arguments_of(x[None], robots))
        fleet.reset(q, v)
        fleet.step(tau)
        return np.array(fleet.q), np.array(fleet.v)

    after = end(x)
    slopes = step_slopes(fleet, unknowns, x, (q, v), after, lambda _: {"tau": tau})
    forces = np.zeros((robots, 2, len(x)))
    slopes.forces(slice(0, robots), forces)
    found = slopes.B @ forces
    found[slopes.late.steps] += slopes.late.ends
    found[..., slopes.others] += slopes.D
    assert len(slopes.late.steps) > robots // 4 and bool(floor) == bool(len(slopes.others))
    for k, own in enumerate(x):
        small = 1e-5 * own * (np.arange(len(x)) == k)
        expected = (end(x + small)[1] - end(x - small)[1]) / (2e-5 * own)
        accuracy = 1e-4 if k in slopes.others else 1e-6  # of forward and central differences
        np.testing.assert_allclose(
            found[..., k], expected, rtol=0.0, atol=accuracy * np.abs(expected).max(), err_msg=unknowns.list[k].name
        )
