"""Tests of contact points with the contact law of MJCF files: those of MuJoCo, also where other points are as good."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pytest

import featherweight as fw
from simulation.beside_mujoco import BesideMujoco


def corners(a: float, b: float, c: float) -> str:
    return " ".join(f"{x} {y} {z}" for x, y, z in itertools.product((-a, a), (-b, b), (-c, c)))


MESHES = f"""<asset><mesh name="plate" vertex="{corners(0.3, 0.3, 0.1)}"/><mesh name="block" vertex="{corners(0.2, 0.3, 0.1)}"/>
<mesh name="wedge" vertex="-.2 -.1 -.1 .2 -.1 -.1 .2 .2 -.1 -.2 .2 -.1 0 0 .1 0 .1 .1"/></asset>"""
TWO = f"""<mujoco>{MESHES}<option gravity="0 0 0" ccd_tolerance="1e-12" ccd_iterations="300"/><worldbody>{{0}}
<body pos="0 0 .2"><freejoint/><geom {{1}}/></body></worldbody></mujoco>"""
SHAPES = {
    "boxes": ('<geom type="box" size=".3 .2 .1"/>', 'type="box" size=".2 .3 .1"'),
    "flat boxes": ('<geom type="box" size=".3 .3 .1"/>', 'type="box" size=".3 .3 .1"'),
    "capsules": ('<geom type="capsule" size=".1 .2" euler="90 0 0"/>', 'type="capsule" size=".1 .3" euler="90 0 0"'),
    "small capsules": ('<geom type="capsule" size=".15 .01" pos="0 0 .05"/>', 'type="capsule" size=".1 .02"'),
    "a cylinder on the floor": ('<geom type="plane" size="3 3 1"/>', 'type="cylinder" size=".3 .2"'),
    "a box on the floor": ('<geom type="plane" size="3 3 1"/>', 'type="box" size=".3 .2 .2"'),
    "two meshes": ('<geom type="mesh" mesh="plate"/>', 'type="mesh" mesh="block"'),
    "a mesh on a box": ('<geom type="box" size=".3 .3 .1"/>', 'type="mesh" mesh="wedge"'),
    "a mesh on the floor": ('<geom type="plane" size="3 3 1" pos="0 0 .1"/>', 'type="mesh" mesh="wedge"'),
    "a capsule on a mesh": ('<geom type="mesh" mesh="plate"/>', 'type="capsule" size=".1 .2" euler="90 0 0"'),
    "a capsule on a box": ('<geom type="box" size=".3 .3 .1"/>', 'type="capsule" size=".1 .3" euler="90 0 0"'),
}


LATER = tuple(map(int, mujoco.__version__.split(".")[:2])) >= (4, 0)


@pytest.mark.parametrize("turn", [0.0, 1e-3, 0.03, 0.2, 0.8])
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_contact_points_are_mujocos(shapes: tuple[str, str], turn: float) -> None:
    """Check points, normals and gaps of shapes that overlap, at small and large angles between their faces and axes."""
    of_mesh = "mesh" in "".join(shapes)
    if of_mesh and not LATER:
        pytest.skip("older versions of MuJoCo have other points of meshes")
    text, rng = TWO.format(*shapes), np.random.default_rng(3)
    pair = BesideMujoco(fw.load(text), mujoco.MjModel.from_xml_string(text))
    touched = missed = 0
    for _ in range(40):
        axis = rng.standard_normal(3)
        quaternion = np.append(np.sin(0.5 * turn) * axis / np.linalg.norm(axis), np.cos(0.5 * turn))
        pair.sim.q = np.concatenate([rng.uniform(-0.2, 0.2, 2), [rng.uniform(0.15, 0.2)], quaternion])
        pair.sim.v = np.zeros(6)
        pair.data.qpos[:], pair.data.qvel[:] = pair.order.state(pair.sim.q, pair.sim.v)
        pair.step()
        missed += pair.faster > (1e-5 if of_mesh else 1e-6) * max(1.0, float(np.abs(pair.data.qvel).max()))
        touched += pair.data.ncon > 0
    assert touched > 10 and missed <= of_mesh


FINE = """<mujoco><asset><mesh name="one" vertex="{0}"/><mesh name="other" vertex="{1}"/></asset><option gravity="0 0 0"/>
<worldbody><geom type="mesh" mesh="one"/><body><freejoint/><geom type="mesh" mesh="other"/></body></worldbody></mujoco>"""


@pytest.mark.skipif(not LATER, reason="older versions of MuJoCo have other points of meshes")
def test_fine_meshes_deep_inside_each_other_touch_where_mujoco_says() -> None:
    """Check meshes of many faces with MuJoCo's tolerance and number of iterations, which end its search at some face."""
    rng = np.random.default_rng(1)
    clouds = [rng.standard_normal((n, 3)) for n in (400, 150)]
    scaled = [
        x / np.linalg.norm(x, axis=1)[:, None] * size
        for x, size in zip(clouds, ((0.3, 0.2, 0.1), (0.2, 0.2, 0.3)), strict=True)
    ]
    text = FINE.format(*(" ".join(f"{x:.4f}" for x in cloud.ravel()) for cloud in scaled))
    pair, deepest = BesideMujoco(fw.load(text), mujoco.MjModel.from_xml_string(text)), 0.0
    for _ in range(30):
        quaternion = rng.standard_normal(4)
        pair.sim.q = np.concatenate([rng.uniform(-0.1, 0.1, 3), quaternion / np.linalg.norm(quaternion)])
        pair.sim.v = np.zeros(6)
        pair.data.qpos[:], pair.data.qvel[:] = pair.order.state(pair.sim.q, pair.sim.v)
        pair.step()
        assert pair.faster < 1e-9 * float(np.abs(pair.data.qvel).max())
        deepest = min(deepest, pair.data.contact.dist.min())
    assert deepest < -0.2


def test_pairs_that_a_file_names_twice_touch_twice() -> None:
    """Check a ball that sinks half as deep; rigid contacts do not change."""
    text = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
    <body pos="0 0 .1"><freejoint/><geom name="ball" size=".1" mass="1"/></body></worldbody>
    <contact><pair geom1="floor" geom2="ball" condim="1"/>{0}</contact></mujoco>"""
    once, twice = text.format(""), text.format('<pair geom1="floor" geom2="ball" condim="1"/>')
    heights = []
    for file in (once, twice):
        pair = BesideMujoco(fw.load(file), mujoco.MjModel.from_xml_string(file))
        for _ in range(300):
            pair.step()
        assert pair.away < 1e-9
        heights.append(pair.sim.q[2])
    assert 0.1 - heights[1] == pytest.approx(0.5 * (0.1 - heights[0]), rel=0.2)
    assert len(fw.Simulation(fw.load(twice), contact="rigid").touching_links) == 1
