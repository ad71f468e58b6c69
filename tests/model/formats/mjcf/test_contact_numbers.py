"""Tests of contact parameters of a file for all geoms or for pairs: equal to those of MuJoCo's contacts, or reported."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.robot.collision.shape_pairs import touching_pairs
from featherweight.robot.not_simulated import not_simulated

SCENE = """<mujoco><option {option}><flag override="{override}"/></option><worldbody>
<geom name="floor" type="plane" size="5 5 1" friction=".9" margin=".003"/>
<body name="a" pos="0 0 .19"><freejoint/><geom name="a" size=".2" friction=".3" margin=".002" condim="{condim}"/></body>
<body name="b" pos=".39 0 .19"><freejoint/><geom name="b" size=".2" friction=".4" margin=".01"/></body></worldbody>
<contact><pair geom1="floor" geom2="b" friction="{pair}" margin=".02"/></contact></mujoco>"""
OVER = 'o_friction=".05 {second} .005 .0001 .0001" o_margin=".04"'


def scene(override: bool = False, second: str = ".05", pair: str = ".6 .6", condim: int = 3, more: str = "") -> str:
    over = {True: "enable", False: "disable"}[override]
    return SCENE.format(option=OVER.format(second=second) + more, override=over, pair=pair, condim=condim)


@pytest.mark.parametrize("override", [False, True])
@pytest.mark.parametrize("condim", [1, 3])
def test_friction_and_margin_are_those_of_mujocos_contacts(override: bool, condim: int) -> None:
    text = scene(override, condim=condim)
    robot, model = fw.load(text, execution="interpreted"), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    theirs = {
        tuple(sorted(c.geom)): (c.friction[0] if c.dim > 1 else 0.0, c.includemargin, c.dim) for c in data.contact[: data.ncon]
    }
    ours = {(pair.i, pair.j): (pair.friction, pair.margin, pair.condim) for pair in touching_pairs(robot)}
    assert ours.keys() == theirs.keys() == {(0, 1), (0, 2), (1, 2)}
    for pair, numbers in ours.items():
        np.testing.assert_allclose(np.array(numbers, float), np.array(theirs[pair], float), rtol=1e-15, err_msg=str(pair))
    assert not_simulated(robot) == {}


FOUR = {"contacts with two sliding or rolling frictions, read as the first": "4"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (scene(pair="1 .05"), {}),
        (scene(second=".06"), {}),
        (scene(True, second=".06"), FOUR),
        (scene(True, pair="1 .05"), {}),
        (scene(True, more=' o_solref=".1 1"'), {}),
    ],
    ids=["pair", "off", "override", "overridden pair", "soft"],
)
def test_frictions_of_all_contacts_are_named(text: str, told: dict[str, str]) -> None:
    assert not_simulated(fw.load(text, execution="interpreted")) == told


TORUS = """<mujoco><extension><plugin plugin="mujoco.sdf.torus"><instance name="t"/></plugin></extension>
<asset><mesh name="m"><plugin instance="t"/></mesh></asset><worldbody><geom type="plane" size="2 2 1"/>
<body><freejoint/><geom type="sdf" mesh="m"><plugin instance="t"/></geom></body></worldbody></mujoco>"""


def test_geoms_that_a_plugin_makes_are_left_out_by_name() -> None:
    try:
        mujoco.MjModel.from_xml_string(TORUS)
    except ValueError:
        pytest.skip("this version of MuJoCo comes without the plugin")
    robot = fw.load(TORUS, execution="interpreted")
    assert [s.type for s in robot.shapes] == [fw.ShapeType.PLANE]
    assert robot.report() == {"geoms made by plugins": "1", "plugins": "1", "geoms that touch and are left out": "1"}
    assert not_simulated(robot) == {"geoms that touch and are left out": "1"}
