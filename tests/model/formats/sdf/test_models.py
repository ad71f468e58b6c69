"""Tests of several models in one SDF file: worlds, nested models, and files that include others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from featherweight import Description, ModelError
from featherweight.model.formats.registry import load_description
from featherweight.model.types import JointType

SPIN = "<axis><xyz>0 0 1</xyz></axis>"
GROUND = """<model name="ground_plane"><static>true</static><link name="link"><collision name="c"><geometry><plane>
<normal>0 0 1</normal><size>9 9</size></plane></geometry></collision></link></model>"""
BALL = '<collision name="c"><geometry><sphere><radius>0.1</radius></sphere></geometry></collision>'
HAND = f"""<model name="hand"><link name="palm">{BALL}</link><link name="finger"><pose>0 0 1 0 0 0</pose>{BALL}</link>
<frame name="tip" attached_to="finger"><pose relative_to="finger">0 0 1 0 0 0</pose></frame>
<joint name="knuckle" type="revolute"><parent>palm</parent><child>finger</child>{SPIN}</joint></model>"""


def sdf(inside: str, version: str = "1.9") -> str:
    return f'<sdf version="{version}">{inside}</sdf>'


def world(inside: str) -> Description:
    return load_description(sdf(f'<world name="w">{inside}</world>'))


def origin(d: Description, name: str) -> list[float]:
    """Return the origin of a frame with all joints at zero and free bodies at the poses of the file."""
    robot = fw.build(d, execution="interpreted")
    return [round(float(x), 12) for x in robot.frame_placement(name)(robot.start())[:3, 3]]


# --- worlds


def test_names_of_the_one_model_that_moves_are_its_own() -> None:
    d = world(GROUND + HAND.replace("<link", "<pose>0 0 3 0 0 0</pose><link", 1))
    assert d.name == "hand" and [b.name for b in d.bodies] == ["ground_plane::link", "palm", "finger"]
    assert [(j.name, j.type) for j in d.joints] == [
        ("ground_plane::link_fixed", JointType.FIXED),
        ("root_joint", JointType.FLOATING),
        ("knuckle", JointType.REVOLUTE),
    ]
    assert d.gravity == (0, 0, -9.8) and origin(d, "tip") == [0, 0, 5]


def test_names_of_several_models_begin_with_theirs() -> None:
    d = world(HAND + HAND.replace('"hand"', '"other"'))
    assert d.name == "w"
    assert [j.name for j in d.joints] == ["hand::root_joint", "other::root_joint", "hand::knuckle", "other::knuckle"]
    d = world(HAND + GROUND.replace('"link"', '"palm"').replace('"ground_plane"', '"palm"'))
    assert [b.name for b in d.bodies] == ["palm", "finger", "palm::palm"]


def test_names_that_would_be_two_keep_those_of_their_models() -> None:
    frame = '<frame name="tip"/>'
    assert [f.name for f in world(HAND + frame).frames] == ["hand::tip", "tip"]


def test_joints_of_a_world_join_models() -> None:
    join = f'<joint name="j" type="revolute"><parent>hand::finger</parent><child>other</child>{SPIN}</joint>'
    d = world(HAND + HAND.replace('"hand"', '"other"') + join)
    (joint,) = (j for j in d.joints if j.name == "j")
    assert (joint.parent, joint.child, joint.placement.p) == ("hand::finger", "other::palm", (0, 0, -1))


def test_a_world_says_gravity_and_the_time_step() -> None:
    physics = """<physics type="ode"><max_step_size>0.1</max_step_size></physics>
    <physics type="dart" default="1"><max_step_size>0.002</max_step_size></physics>"""
    d = world(f"<gravity>0 0 -1.6</gravity>{physics}{HAND}")
    assert (d.gravity, d.timestep) == ((0, 0, -1.6), 0.002)
    assert world(HAND).timestep is None


def test_several_models_without_a_world_are_one_description() -> None:
    d = load_description(sdf(HAND + GROUND, "1.5"))
    assert [b.name for b in d.bodies] == ["hand::palm", "hand::finger", "ground_plane::link"]


def test_what_a_world_has_besides_is_listed() -> None:
    inside = '<light name="l"/><scene><grid>true</grid></scene><plugin name="p" filename="p"/>'
    inside += "<wind><linear_velocity>0 0 0</linear_velocity></wind>"
    assert dict(world(inside + HAND).unused) == {"lights": "1", "plugins": "1", "elements that are not used": "world/scene (1)"}


# --- collisions


def pairs(d: Description) -> set[frozenset[str | None]]:
    return {frozenset(pair) for pair in d.disabled_collisions}


LIMBS = "".join(f'<link name="{name}">{BALL}</link>' for name in "abc")
LIMBS += f'<joint name="j" type="revolute"><parent>a</parent><child>b</child>{SPIN}</joint>'


@pytest.mark.parametrize(
    ("inside", "apart"),
    [
        (LIMBS, ["ab", "ac", "bc"]),
        ("<self_collide>1</self_collide>" + LIMBS, ["ab"]),
        (LIMBS.replace('<link name="a">', '<link name="a"><self_collide>true</self_collide>'), ["ab", "bc"]),
    ],
)
def test_links_of_a_model_touch_only_if_it_says_so(inside: str, apart: Sequence[str]) -> None:
    d = load_description(sdf(f'<model name="m">{inside}</model>'))
    assert pairs(d) == {frozenset(pair) for pair in apart}
    robot = fw.build(d, execution="interpreted")
    assert len(robot.collision_pairs()) == 3 - len(apart)


def test_links_of_two_models_touch() -> None:
    robot = fw.build(world(GROUND + HAND + HAND.replace('"hand"', '"other"')), execution="interpreted")
    assert len(robot.collision_pairs()) == 4 + 4  # of two hands, and of their links with the ground


# --- nested models


def test_names_and_poses_of_nested_models() -> None:
    hand = HAND.replace("<link", "<pose>0 2 0 0 0 0</pose><link", 1)
    arm = f"""<model name="arm"><pose>1 0 0 0 0 0</pose><link name="base"/>{hand}
    <joint name="wrist" type="fixed"><parent>base</parent><child>hand::palm</child></joint>
    <frame name="f" attached_to="hand::tip"/><frame name="g" attached_to="hand"/></model>"""
    d = load_description(sdf(arm))
    assert [b.name for b in d.bodies] == ["base", "hand::palm", "hand::finger"]
    assert [(j.name, j.child) for j in d.joints] == [
        ("root_joint", "base"),
        ("hand::knuckle", "hand::finger"),
        ("wrist", "hand::palm"),
    ]
    assert [(f.name, f.body) for f in d.frames] == [("hand::tip", "hand::finger"), ("f", "hand::finger"), ("g", "hand::palm")]
    assert origin(d, "f") == [1, 2, 2]


# --- includes


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "hand"
    folder.mkdir(parents=True)
    (folder / "hand.sdf").write_text(sdf(HAND))
    (folder / "newer.sdf").write_text("<sdf/>")
    config = '<sdf version="1.4">old.sdf</sdf><sdf version="1.9">hand.sdf</sdf><sdf version="1.99">newer.sdf</sdf>'
    (folder / "model.config").write_text(f"<model><name>Hand</name>{config}</model>")
    (tmp_path / "models" / "sun").mkdir()
    (tmp_path / "models" / "sun" / "model.sdf").write_text(sdf('<light name="sun"/>'))
    return tmp_path / "models"


@pytest.mark.parametrize("uri", ["model://hand", "model://hand/hand.sdf", "hand", "hand/hand.sdf", "file://{}/hand", "{}/hand"])
def test_included_files_are_found(models: Path, uri: str) -> None:
    (models / "world.sdf").write_text(sdf(f'<world name="w"><include><uri>{uri.format(models)}</uri></include></world>'))
    assert [b.name for b in load_description(models / "world.sdf").bodies] == ["palm", "finger"]


def test_included_files_are_found_where_users_say(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = sdf('<world name="w"><include><uri>model://hand</uri></include></world>')
    assert len(load_description(text, package_path=models).bodies) == 2
    assert len(load_description(text, folder=models).bodies) == 2
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(models))
    assert len(load_description(text).bodies) == 2


def test_an_include_names_places_and_fixes_its_model(models: Path) -> None:
    inside = """<frame name="table"><pose>0 0 1 0 0 0</pose></frame>
    <include><uri>model://hand</uri><name>a</name><pose relative_to="table">0 0 1 0 0 0</pose></include>
    <include><uri>model://hand</uri><name>b</name><pose>4 0 0 0 0 0</pose><placement_frame>tip</placement_frame></include>
    <include><uri>model://hand</uri><name>c</name><static>1</static></include>
    <include><uri>model://sun</uri></include>"""
    d = load_description(sdf(f'<world name="w">{inside}</world>'), folder=models)
    assert [b.name for b in d.bodies] == [f"{model}::{link}" for model in "abc" for link in ("palm", "finger")]
    assert origin(d, "a::palm") == [0, 0, 2] and origin(d, "b::tip") == [4, 0, 0]
    assert [j.name for j in d.joints if j.parent is None] == [
        "a::root_joint",
        "b::root_joint",
        "c::palm_fixed",
        "c::finger_fixed",
    ]
    assert dict(d.unused) == {"joints of static models": "c::knuckle", "lights": "1"}


def test_a_merged_model_is_part_of_the_one_that_includes_it(models: Path) -> None:
    inside = """<link name="base"/><include merge="true"><uri>model://hand</uri><pose>0 0 5 0 0 0</pose></include>
    <joint name="wrist" type="fixed"><parent>base</parent><child>palm</child></joint>
    <frame name="f"><pose relative_to="tip">0 0 1 0 0 0</pose></frame>"""
    d = load_description(sdf(f'<model name="arm">{inside}</model>'), folder=models)
    assert [b.name for b in d.bodies] == ["base", "palm", "finger"] and [j.name for j in d.joints][1:] == ["knuckle", "wrist"]
    assert origin(d, "tip") == [0, 0, 7] and origin(d, "f") == [0, 0, 8]
    assert pairs(d) == {frozenset(("palm", "finger")), frozenset(("base", "palm"))}


def test_an_include_leaves_the_file_as_it_is(models: Path) -> None:
    """Check that the robot is the same as with the model written out."""
    text = '<world name="w">{}</world>'
    pose = "<pose>1 2 3 0.1 0.2 0.3</pose>"
    one = load_description(sdf(text.format(f"<include><uri>hand</uri>{pose}</include>")), folder=models)
    other = load_description(sdf(text.format(HAND.replace("<link", f"{pose}<link", 1))))
    assert (one.bodies, one.joints, one.frames, one.configurations) == (
        other.bodies,
        other.joints,
        other.frames,
        other.configurations,
    )


def including(uri: str, more: str = "", tag: str = "<include>") -> str:
    return sdf(f'<world name="w">{HAND}{tag}<uri>{uri}</uri>{more}</include></world>')


REFUSED = {
    "a model that is nowhere": (
        including("model://none"),
        ["<include> of 'model://none'", "package 'none' is in none of", "report"],
    ),
    "a file that is nowhere": (including("none.sdf"), ["'none.sdf'", "there is no such file"]),
    "a download": (including("https://fuel.gazebosim.org/x"), ["is to be downloaded", "package_path="]),
    "no uri": (including("x").replace("<uri>x</uri>", ""), ["<include> has no <uri>"]),
    "a placement frame without pose": (
        including("hand", "<placement_frame>tip</placement_frame>"),
        ["<placement_frame> and no <pose>"],
    ),
    "parameters": (
        including("hand", '<e:params xmlns:e="e"/>'),
        ["<{e}params> changes what is included", "write the model out"],
    ),
    "two models": (including("two.sdf"), ["has 2 models"]),
    "no model": (including("none_at_all.sdf"), ["has 0 models"]),
    "itself": (including("itself.sdf"), ["itself.sdf", "the file includes itself"]),
    "another format": (including("robot.urdf"), ["the root element is <robot>"]),
    "a config without versions": (including("model://old"), ["model.config", "names no <sdf> of a version up to 1.12"]),
}


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED)
def test_includes_that_are_refused(models: Path, text: str, words: Sequence[str]) -> None:
    (models / "two.sdf").write_text(sdf(HAND + GROUND))
    (models / "none_at_all.sdf").write_text(sdf(""))
    (models / "itself.sdf").write_text(sdf('<model name="x"><include><uri>itself.sdf</uri></include></model>'))
    (models / "robot.urdf").write_text('<robot name="r"/>')
    (models / "old").mkdir()
    (models / "old" / "model.config").write_text('<model><sdf version="1.99">x.sdf</sdf></model>')
    with pytest.raises(ModelError) as caught:
        load_description(text, folder=models, unsupported="raise")
    for word in words:
        assert word in str(caught.value)


def test_a_few_files_cannot_include_millions(models: Path) -> None:
    for k in range(20):
        twice = "".join(f"<include><uri>{k + 1}.sdf</uri><name>{name}</name></include>" for name in "ab")
        (models / f"{k}.sdf").write_text(sdf(f'<model name="m">{twice}</model>'))
    (models / "20.sdf").write_text(sdf(HAND))
    with pytest.raises(ModelError, match="more than 1000 files are included"):
        load_description(models / "0.sdf")


def test_includes_that_are_not_found_may_be_left_out(models: Path) -> None:
    d = load_description(including("model://none"), folder=models)
    assert [b.name for b in d.bodies] == ["palm", "finger"]
    assert dict(d.unused) == {"not supported, and left out": "<include> of 'model://none', which is not found"}


def test_a_file_of_missing_includes_names_them(models: Path) -> None:
    text = sdf('<world name="w"><include><uri>model://none</uri></include></world>')
    with pytest.raises(ModelError, match=r"no link in it, as it leaves out <include> of 'model://none', which is not found"):
        load_description(text, folder=models)


def test_relative_names_of_text_need_a_folder() -> None:
    with pytest.raises(ModelError, match="pass folder="):
        load_description(including("hand.sdf"), unsupported="raise")


def test_meshes_lie_beside_the_file_that_names_them(models: Path) -> None:
    (models / "hand" / "palm.stl").write_text("")
    mesh = '<visual name="v"><geometry><mesh><uri>palm.stl</uri></mesh></geometry></visual>'
    (models / "hand" / "hand.sdf").write_text(sdf(HAND.replace('<link name="palm">', f'<link name="palm">{mesh}')))
    d = load_description(sdf('<world name="w"><include><uri>model://hand</uri></include></world>'), folder=models)
    assert d.shapes[0].path == str(models / "hand" / "palm.stl") and d.unused == ()
    assert np.array_equal(d.shapes[0].placement.R, np.eye(3))


@pytest.mark.parametrize("version", ["9" * 5000 + ".1", "1." + "9" * 5000, "1.9.x"])
def test_versions_that_are_none_are_refused(version: str) -> None:
    """Check numbers that Python does not convert, because it would take too long."""
    with pytest.raises(ModelError, match=r"<sdf>: version '.*' is not supported, 1\.2 to 1\.12 are"):
        fw.read(sdf('<model name="m"><link name="a"/></model>', version))
