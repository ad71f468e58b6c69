"""Tests of iterations with rigid friction after the contact problem (MJCF's noslip_iterations), against MuJoCo."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherweight as fw
from simulation.beside_mujoco import beside_mujoco

SCENE = """<mujoco><option timestep="0.002" cone="{cone}" noslip_iterations="{rounds}" noslip_tolerance="0" gravity="3 1 -9"/>
<default><geom condim="{condim}" friction="{friction}"/></default><worldbody>
<geom name="floor" type="plane" size="0 0 1"/>
<body pos="0 0 0.1"><freejoint/><geom name="box" type="box" size=".1 .1 .1" mass="1"/></body>
<body pos="1 0 0.1"><freejoint/><geom name="ball" type="sphere" size=".1" mass="2"/></body>
<body pos="0 1 1"><joint name="dry" axis="0 1 0" frictionloss="3"/><geom size=".05" pos=".3 0 0" mass=".5" contype="0"/>
<body pos=".3 0 0"><joint name="slide" type="slide" axis="1 0 0" frictionloss=".5" damping=".1"/>
<geom size=".05" pos=".1 0 0" mass=".2" contype="0"/></body></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize(("condim", "rounds"), [(3, 2), (3, 30), (6, 30)])
def test_motion_is_that_of_mujoco(cone: str, condim: int, rounds: int) -> None:
    """Check a box that slides and rests, a ball that rolls, and joints with dry friction."""
    v = np.zeros(14)
    v[0], v[5], v[6], v[10] = 0.5, 2.0, 0.3, 3.0
    text = SCENE.format(cone=cone, condim=condim, rounds=rounds, friction="0.6 0.02 0.005")
    assert beside_mujoco(text, 250, v=v)[2].max() < 1e-6


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_what_rests_on_a_slope_does_not_slip(cone: str) -> None:
    ends = [beside_mujoco(SCENE.format(cone=cone, condim=3, rounds=n, friction="1 0 0"), 300)[0].v for n in (0, 50)]
    slow, still = (np.linalg.norm(v[:2]) for v in ends)
    assert slow > 1e-4 and still < 1e-6


def test_a_saved_file_has_the_rounds(tmp_path: Any) -> None:
    description = fw.read(SCENE.format(cone="elliptic", condim=3, rounds=7, friction="1 0 0"))
    description.save(tmp_path / "saved.xml")
    assert fw.read(tmp_path / "saved.xml").noslip == description.noslip == 7
