"""Tests of pairs of shapes that may touch, and their parameters: MuJoCo's rules for MJCF files, separate links for others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight import ModelError, Shape, ShapeType
from featherweight.model.contact_rules import ContactPair, NeighbourRule
from featherweight.robot.collision.shape_pairs import touching_pairs

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
LEAST = 1e-5  # MuJoCo's lower bound of friction
INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
GEOM = '<geom name="{0}" size=".1" {1}/>'

BODIES = f"""
  <geom name="floor" type="plane" size="0 0 1" friction=".4" margin=".01"/>
  <geom name="hill" type="hfield" hfield="hill" pos="1 0 0"/>
  <body name="shelf" pos="0 0 1"><geom name="board" type="box" size=".1 .1 .1" friction=".9" margin=".02"/>
    <body name="a"><joint name="a"/>{GEOM.format("ga", 'friction=".2" condim="1"')}
      <body name="fixed">{GEOM.format("gf", 'condim="4" margin=".005"')}
        <body name="b"><joint name="b1"/><joint name="b2" axis="1 0 0"/>{GEOM.format("gb", 'priority="2" friction=".3"')}
          <body name="c"><joint name="c"/>{GEOM.format("gc", 'contype="2" conaffinity="2" priority="2" condim="6"')}
            {GEOM.format("gd", 'contype="0" conaffinity="0" friction=".25"')}
          </body>
        </body>
      </body>
    </body>
  </body>
  <body name="stone" pos="3 0 1"><freejoint/>{GEOM.format("gs", 'contype="3" conaffinity="3" friction=".8 .1 .2"')}
    <body name="leaf"><joint name="leaf"/>{GEOM.format("gl", "")}</body></body>
"""
RULES = {
    "as they are": "",
    "excluded": '<contact><exclude body1="c" body2="a"/><exclude body1="world" body2="b"/><exclude body1="fixed" body2="b"/>'
    '<exclude body1="stone" body2="shelf"/></contact>',
    "in pairs": '<contact><exclude body1="c" body2="b"/><pair geom1="gd" geom2="gb" condim="1"/><pair geom1="gs" geom2="gl"/>'
    '<pair geom1="floor" geom2="gd" friction=".7 .7" margin=".03"/><pair geom1="ga" geom2="gf"/></contact>',
    "with parents": '<option><flag filterparent="disable"/></option>',
    "without contacts": '<option><flag contact="disable"/></option>',
    "without constraints": '<option><flag constraint="disable"/></option>',
}


def margins_add_up() -> bool:
    """Return whether margins add up; MuJoCo 3.3 takes the larger one, minus the gap."""
    ball = '<body pos="{} 0 0"><freejoint/><geom size="0.1" margin="{}"/></body>'
    bodies = ball.format(0, 0.02) + ball.format(0.24, 0.03)
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return bool(data.ncon)


as_now = pytest.mark.skipif(not margins_add_up(), reason="margins and gaps have another meaning in this version of MuJoCo")


def written(folder: Path, rest: str, bodies: str = BODIES) -> Path:
    path = folder / "robot.xml"
    asset = '<asset><hfield name="hill" nrow="2" ncol="3" size="1 1 1 1" elevation="0 1 2 3 4 5"/></asset>'
    path.write_text(f"<mujoco>{asset}<worldbody>{bodies}</worldbody>{rest}</mujoco>")
    return path


def of_mujoco(path: Path) -> dict[tuple[int, int], tuple[float, int, float]]:
    """Return friction, condim and margin of all moving pairs; large margins make all of them near."""
    model = mujoco.MjModel.from_xml_path(str(path))
    sized = ~np.isin(model.geom_type, (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD))
    model.geom_type[sized] = mujoco.mjtGeom.mjGEOM_SPHERE  # sometimes MuJoCo omits distant boxes
    model.geom_size[model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE] = 0.0  # infinite
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE  # and distant geoms with this
    model.geom_gap[:] = model.pair_gap[:] = 100.0
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    weld = model.body_weldid[model.geom_bodyid]
    found = {(int(min(c.geom)), int(max(c.geom))): c for c in data.contact if weld[c.geom[0]] != weld[c.geom[1]]}
    return {key: (c.friction[0] if c.dim > 1 else 0.0, c.dim, c.includemargin) for key, c in found.items()}


def of_ours(path: Path) -> dict[tuple[int, int], tuple[float, int, float]]:
    robot = fw.load(path)
    numbers = {(p.i, p.j): (max(p.friction or 0.0, LEAST * (p.condim > 1)), p.condim, p.margin) for p in touching_pairs(robot)}
    model = mujoco.MjModel.from_xml_path(str(path))
    assert [s.type.value[:5] for s in robot.shapes] == [
        mujoco.mjtGeom(t).name.removeprefix("mjGEOM_").lower().replace("hfield", "heightfield")[:5] for t in model.geom_type
    ]
    return numbers


@as_now
@pytest.mark.parametrize("rule", RULES)
def test_pairs_and_their_numbers_are_mujocos(tmp_path: Path, rule: str) -> None:
    path = written(tmp_path, RULES[rule])
    ours, theirs = of_ours(path), of_mujoco(path)
    assert ours.keys() == theirs.keys()
    assert bool(ours) != rule.startswith("without")
    for key, numbers in theirs.items():
        assert ours[key] == pytest.approx(numbers, rel=1e-15), key


@as_now
@pytest.mark.parametrize("name", ["ant", "half_cheetah", "hopper", "humanoid", "walker2d_v5"])
def test_pairs_of_gymnasiums_robots_are_mujocos(name: str) -> None:
    path = ASSETS / f"{name}.xml"
    ours, theirs = of_ours(path), of_mujoco(path)
    assert ours.keys() == theirs.keys()
    assert all(ours[key] == pytest.approx(numbers, rel=1e-15) for key, numbers in theirs.items())
    floor = [k for k, s in enumerate(fw.load(path).shapes) if s.type is ShapeType.PLANE]
    assert any(key[0] in floor for key in ours)


def test_without_a_file_for_it_shapes_have_the_friction_of_the_simulation() -> None:
    shapes = [Shape(n, n, ShapeType.SPHERE, (0.1,)) for n in ("link1", "link3")]
    four_bar = fw.robots.four_bar()
    (pair,) = touching_pairs(fw.build(replace(four_bar, shapes=tuple(shapes)), execution="interpreted"))
    assert (pair.friction, pair.condim, pair.margin, pair.from_file) == (None, 3, 0.0, False)
    rough = (replace(shapes[0], friction=0.3, margin=0.01), replace(shapes[1], margin=0.02))
    (pair,) = touching_pairs(fw.build(replace(four_bar, shapes=rough), execution="interpreted"))
    assert pair.friction == 0.3 and pair.margin == pytest.approx(0.03)


def test_pairs_of_a_description_travel_with_what_they_name(tmp_path: Path) -> None:
    arm = fw.read(written(tmp_path, RULES["in pairs"]))
    assert ContactPair(("floor", "gd"), 0.7, 3, 0.03) in arm.contact_pairs
    assert ("gb", "tip") in {p.shapes for p in arm.renamed({"gd": "tip"}).contact_pairs}
    left = arm.without("stone").contact_pairs
    assert {p.shapes for p in left} == {p.shapes for p in arm.contact_pairs} - {("gs", "gl")}
    bare = fw.describe([fw.Body("table")], [])
    assert bare.attached(arm, "table", prefix="arm_").neighbours is NeighbourRule.MOVING  # no rule applies to its own shapes
    table = replace(bare, shapes=(fw.Shape("top", "table", fw.ShapeType.BOX, (1.0, 1.0, 0.1)),))
    both = table.attached(arm, "table", prefix="arm_")
    assert ("arm_gb", "arm_gd") in {p.shapes for p in both.contact_pairs}
    assert both.neighbours is NeighbourRule.JOINED
    assert "rule for contacts of neighbours of what was attached" in dict(both.unused)


def test_pairs_of_shapes_that_are_not_there_are_named() -> None:
    wrong = replace(fw.robots.four_bar(), contact_pairs=(ContactPair(("here", "there")),))
    with pytest.raises(ModelError, match="contact pair of 'here' and 'there': there is no shape 'here'"):
        fw.build(wrong)
