"""Tests of contacts of balls with height fields, against MuJoCo: in plain Python, field by field, and in a simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.collision.height_fields import MOST_PATCHES, FieldArrays, field_patches

BALL = """<mujoco><asset><hfield name="h" nrow="{}" ncol="{}" size="1.5 1 0.5 0.1" elevation="{}"/></asset><worldbody>
<geom type="hfield" hfield="h"/><body><freejoint/><geom size="{}" mass="1" margin="0.02"/></body></worldbody></mujoco>"""


def patches(field: Any, c: Any, reach: float) -> np.ndarray:
    rows = np.zeros((MOST_PATCHES, 11))
    return rows[: field_patches(FieldArrays(*field), tuple(c), reach, rows)]


@pytest.mark.parametrize("radius", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("shape", [(2, 2), (3, 5)])
def test_distances_and_normals_are_those_of_mujocos_triangles(shape: tuple[int, int], radius: float) -> None:
    """Check balls over, beside and below random fields, with their centres outside; tolerance: rounding.

    MuJoCo returns the distance to the prism below each triangle; the least is that to the solid.
    """
    rng = np.random.default_rng([*shape, int(1000 * radius)])
    model = mujoco.MjModel.from_xml_string(BALL.format(*shape, " ".join(map(str, rng.random(shape).ravel())), radius))
    data = mujoco.MjData(model)
    heights = 0.5 * model.hfield_data.reshape(shape).T.astype(float)
    columns, rows = heights.shape
    edges = np.array([-1.5, -1.0, 3.0 / (columns - 1), 2.0 / (rows - 1), heights.max(), 0.1])
    field, touched = (heights.ravel(), (0, columns, rows), edges), 0
    for c in rng.uniform([-1.7, -1.2, -0.3], [1.7, 1.2, 0.8], (120, 3)):
        data.qpos[:3] = c
        mujoco.mj_forward(model, data)
        found = patches(field, c, radius + 0.02)
        theirs = sorted((float(x.dist), *x.frame[:3]) for x in data.contact)
        if len(found) and found[:, 6].min() <= 0.0:  # the centre is inside
            assert theirs
            continue
        assert bool(len(found)) == bool(theirs)
        if theirs:
            own = found[found[:, 6].argmin()]
            np.testing.assert_allclose([own[6] - radius, *own[3:6]], theirs[0], atol=1e-12)
            touched += 1
    assert touched > (1 if radius < 0.01 else 8)


def test_a_ball_in_a_valley_touches_both_sides_and_on_a_plain_once() -> None:
    valley = np.array([0.5, 0.0, 0.5, 0.5, 0.0, 0.5]), (0, 2, 3), np.array([0.0, 0.0, 1.0, 1.0, 0.5, np.inf])
    found = patches(valley, (0.3, 1.0, 0.1), 0.2)
    np.testing.assert_allclose(found[:, 6], 0.1 / np.sqrt(1.25))
    np.testing.assert_allclose(sorted(found[:, 4] * np.sqrt(1.25)), [-0.5, 0.5])
    plain = np.zeros(9), (0, 3, 3), np.array([0.0, 0.0, 1.0, 1.0, 0.0, np.inf])
    for x in (0.0, 1e-12, 0.3, 1.0, 1.0 + 1e-15, 2.0):
        for y in (0.0, 0.3, 1.0 - 1e-13, 1.0):
            for z in (1e-300, 1e-9, 0.1, -1e-9):
                if z < 0.0 and (x < 1e-6 or x == 2.0 or y == 0.0):  # the nearest exit is to the side
                    continue
                found = patches(plain, (x, y, z), 0.2)
                np.testing.assert_allclose(found[:, 3:7], [[0.0, 0.0, 1.0, z]], atol=1e-15)


def test_the_way_out_of_the_solid_is_the_shortest() -> None:
    block = np.full(4, 1.0), (0, 2, 2), np.array([0.0, 0.0, 2.0, 3.0, 1.0, 0.5])
    for c, n, depth in (((1.0, 1.5, 0.9), (0, 0, 1), 0.1), ((1.0, 1.5, -0.45), (0, 0, -1), 0.05),
                        ((0.01, 1.5, 0.2), (-1, 0, 0), 0.01), ((1.0, 2.98, 0.2), (0, 1, 0), 0.02)):  # fmt: skip
        (row,) = patches(block, c, 0.1)
        np.testing.assert_allclose(row[3:7], [*n, -depth], atol=1e-14)
        np.testing.assert_allclose(row[:3], np.add(c, np.multiply(n, depth)), atol=1e-14)


FIELDS = """<mujoco><compiler angle="degree"/><option timestep="0.002"/>
<asset><hfield name="one" nrow="2" ncol="2" size="1 1 0.5 0.1" elevation="0 1 1 0"/>
<hfield name="two" nrow="3" ncol="4" size="1 0.7 0.4 0.2" elevation="0 1 2 3  4 4 4 9  5 6 7 8"/></asset>
<worldbody>
  <geom type="plane" size="9 9 1" pos="0 0 -1"/>
  <geom type="hfield" hfield="one"/>
  <geom type="hfield" hfield="two" pos="4 0 0.5" euler="30 -10 50"/>
  <body><joint type="slide" axis="1 0 0" frictionloss="1e3"/><joint type="slide" axis="0 1 0" frictionloss="1e3"/>
    <joint type="slide" axis="0 0 1"/><geom size="0.05" mass="1" condim="1"/></body>
</worldbody></mujoco>"""


def test_balls_rest_where_mujoco_has_turned_and_moved_fields_and_the_floor_beside_them(tmp_path: Path) -> None:
    """Check that each ball touches the field or floor, to the slop of contacts, and nothing else."""
    path = tmp_path / "fields.xml"
    path.write_text(FIELDS)
    robot = fw.load(path)
    places = np.random.default_rng(2).uniform([-1.3, -1.3], [5.3, 1.3], (24, 2))
    q = np.column_stack([places, np.full(24, 1.6)])
    sim = fw.Simulation(robot, q=q, contact="rigid")
    sim.run(0.9, every=10**6)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.geom_margin[:] = 1e-3  # with a margin, MuJoCo reports positive and negative distances
    data = mujoco.MjData(model)
    resting = []
    for end in sim.q:
        data.qpos[:] = end
        mujoco.mj_forward(model, data)
        resting.append(min((float(c.dist) for c in data.contact), default=np.inf))
    np.testing.assert_allclose(resting, 0.0, atol=2e-6)
    np.testing.assert_allclose(sim.q[:, :2], places, atol=1e-9)
    assert 3 < np.isclose(sim.q[:, 2], -0.95, atol=1e-5).sum() < 20
