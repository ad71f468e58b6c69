"""Tests of contact points with the contact law of MJCF files: those of MuJoCo, also where other points are as good."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherweight as fw
from simulation.beside_mujoco import BesideMujoco

TWO = (
    """<mujoco><option gravity="0 0 0"/><worldbody>{0}<body pos="0 0 .2"><freejoint/><geom {1}/></body></worldbody></mujoco>"""
)
SHAPES = {
    "boxes": ('<geom type="box" size=".3 .2 .1"/>', 'type="box" size=".2 .3 .1"'),
    "flat boxes": ('<geom type="box" size=".3 .3 .1"/>', 'type="box" size=".3 .3 .1"'),
    "capsules": ('<geom type="capsule" size=".1 .2" euler="90 0 0"/>', 'type="capsule" size=".1 .3" euler="90 0 0"'),
    "a cylinder on the floor": ('<geom type="plane" size="3 3 1"/>', 'type="cylinder" size=".3 .2"'),
    "a box on the floor": ('<geom type="plane" size="3 3 1"/>', 'type="box" size=".3 .2 .2"'),
    "a capsule on a box": ('<geom type="box" size=".3 .3 .1"/>', 'type="capsule" size=".1 .3" euler="90 0 0"'),
}


@pytest.mark.parametrize("turn", [0.0, 1e-3, 0.03, 0.2, 0.8])
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_contact_points_are_mujocos(shapes: tuple[str, str], turn: float) -> None:
    """Check points, normals and gaps of shapes that overlap, at small and large angles between their faces and axes."""
    text, rng = TWO.format(*shapes), np.random.default_rng(3)
    pair = BesideMujoco(fw.load(text), mujoco.MjModel.from_xml_string(text))
    touched = 0
    for _ in range(40):
        axis = rng.standard_normal(3)
        quaternion = np.append(np.sin(0.5 * turn) * axis / np.linalg.norm(axis), np.cos(0.5 * turn))
        pair.sim.q = np.concatenate([rng.uniform(-0.2, 0.2, 2), [rng.uniform(0.15, 0.2)], quaternion])
        pair.sim.v = np.zeros(6)
        pair.data.qpos[:], pair.data.qvel[:] = pair.order.state(pair.sim.q, pair.sim.v)
        pair.step()
        assert pair.faster < 1e-6 * max(1.0, float(np.abs(pair.data.qvel).max()))
        touched += pair.data.ncon > 0
    assert touched > 10
