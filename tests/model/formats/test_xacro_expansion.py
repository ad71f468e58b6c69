"""Tests of xacro: the robot equals a hand-written file, packages are found as for meshes, and errors name the file."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import xacro  # type: ignore[import-untyped, unused-ignore]

import featherweight as fw
from featherweight import ModelError, ModelWarning

HEAD = '<robot name="bot" xmlns:xacro="http://www.ros.org/wiki/xacro">'
LEG = f"""{HEAD}<xacro:macro name="leg" params="side mass:=1.5">
  <link name="${{side}}_leg"><inertial><mass value="${{2 * mass}}"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><geometry><mesh filename="package://bot/meshes/leg.stl"/></geometry></visual></link>
  <joint name="${{side}}_hip" type="continuous"><parent link="base"/><child link="${{side}}_leg"/>
    <axis xyz="0 ${{1 if side == 'left' else -1}} 0"/></joint></xacro:macro></robot>"""
BOT = f"""<?xml version="1.0"?>{HEAD}<xacro:arg name="arm" default="none"/><xacro:arg name="fixed" default="false"/>
  <xacro:include filename="$(find bot)/urdf/leg.xacro"/>
  <link name="base"/><xacro:leg side="left"/><xacro:leg side="right" mass="$(arg mass)"/>
  <xacro:unless value="${{'$(arg arm)' == 'none'}}"><link name="$(arg arm)_arm"/>
    <joint name="shoulder" type="${{'fixed' if xacro.arg('fixed') == 'true' else 'revolute'}}"><parent link="base"/>
      <child link="$(arg arm)_arm"/></joint></xacro:unless></robot>"""


@pytest.fixture
def bot(tmp_path: Path) -> Path:
    """Create the file in its package, whose folder has another name."""
    package = tmp_path / "bot-main"
    (package / "urdf").mkdir(parents=True)
    (package / "meshes").mkdir()
    (package / "package.xml").write_text("<package><name>bot</name></package>")
    (package / "meshes" / "leg.stl").touch()
    (package / "urdf" / "leg.xacro").write_text(LEG)
    path = package / "urdf" / "bot.urdf.xacro"
    path.write_text(BOT)
    return path


def refused(inside: str, **arguments: Any) -> str:
    with pytest.raises(ModelError) as caught:
        fw.read(f"{HEAD}{inside}</robot>", **{"xacro_args": {}, "unsupported": "raise", **arguments})
    assert len(str(caught.value)) < 500 and str(caught.value).startswith("<string>: ")
    return str(caught.value)


def test_a_file_is_what_its_macros_arguments_and_includes_make_of_it(bot: Path) -> None:
    description = fw.read(bot, xacro_args={"mass": 3})
    assert [(b.name, b.inertia.mass) for b in description.bodies] == [("base", 0.0), ("left_leg", 3.0), ("right_leg", 6.0)]
    assert [(j.name, j.axis) for j in description.joints] == [("left_hip", (0.0, 1.0, 0.0)), ("right_hip", (0.0, -1.0, 0.0))]
    assert {shape.path for shape in description.shapes} == {str(bot.parent.parent / "meshes" / "leg.stl")}
    assert (description.name, description.source, description.unused) == ("bot", str(bot), ())


def test_arguments_choose_and_truth_is_a_word(bot: Path) -> None:
    for fixed, kind in ((True, fw.JointType.FIXED), (False, fw.JointType.REVOLUTE)):
        description = fw.read(bot, xacro_args={"mass": 1, "arm": "left", "fixed": fixed})
        assert (description.bodies[-1].name, description.joints[-1].type) == ("left_arm", kind)


def test_what_xacro_warns_of_is_a_warning_with_its_place_and_nothing_is_printed(
    bot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leg = bot.parent / "leg.xacro"
    leg.write_text(LEG.replace("params=", 'typo="1" params='))
    with pytest.warns(ModelWarning, match=r"bot\.urdf\.xacro: xacro: in .*leg\.xacro: .*unknown attribute\(s\): typo") as told:
        fw.read(bot, xacro_args={"mass": 1})
    assert [warning.filename for warning in told] == [__file__]
    assert capsys.readouterr() == ("", "")


def test_load_takes_it_too(bot: Path) -> None:
    robot = fw.load(bot, xacro_args={"mass": 0.5}, execution="interpreted")
    assert robot.mass == 2 * 1.5 + 2 * 0.5


def test_arguments_that_a_file_does_not_ask_for_are_warned_of(bot: Path) -> None:
    with pytest.warns(
        ModelWarning, match=r"xacro_args: it does not ask for \['amr'\], but for \['arm', 'fixed', 'mass'\]"
    ) as told:
        fw.read(bot, xacro_args={"mass": 1, "amr": "left"})
    assert told[0].filename == __file__
    with pytest.raises(TypeError, match="xacro_args must be a dict"):
        fw.read(bot, xacro_args=["mass:=1"])  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"bot\.urdf\.xacro: xacro: .*argument mass"):
        fw.read(bot)


def test_text_and_other_files_are_expanded_only_where_arguments_are_given_since_expressions_run(tmp_path: Path) -> None:
    text = f'{HEAD}<xacro:property name="x" value="1"/><link name="${{xacro.fatal(\'it has run\')}}"/></robot>'
    path = tmp_path / "bot.urdf"
    path.write_text(text)
    for given in (text, text.encode(), path):
        with pytest.raises(ModelError, match=r"is not expanded; pass xacro_args=.*trust"):
            fw.read(given, unsupported="raise")
        with pytest.raises(ModelError, match="it has run"):
            fw.read(given, xacro_args={})


def test_an_open_file_with_the_name_of_a_xacro_file_is_one(bot: Path) -> None:
    with bot.open() as text, bot.open("rb") as binary:
        read = [fw.read(stream, xacro_args={"mass": 3}) for stream in (text, binary)]
    assert all(r.bodies == fw.read(bot, xacro_args={"mass": 3}).bodies for r in read)


def test_packages_of_text_are_found_where_the_caller_says(bot: Path) -> None:
    told = refused('<xacro:include filename="$(find bot)/urdf/leg.xacro"/>')
    assert "package 'bot' is in none of package_path (none)" in told and "pass package_path=" in told
    for package_path in (bot.parent.parent, [bot.parent.parent]):
        description = fw.read(BOT, xacro_args={"mass": 1}, package_path=package_path)
        assert [b.name for b in description.bodies] == ["base", "left_leg", "right_leg"] and description.unused == ()


def test_relative_names_lie_beside_the_file_that_has_them(bot: Path) -> None:
    below = bot.parent / "below"
    below.mkdir()
    (below / "part.xacro").write_text(f'{HEAD}<xacro:include filename="inner.xacro"/></robot>')
    (below / "inner.xacro").write_text(f"{HEAD}<link name=\"${{xacro.load_yaml('n.yaml')['name']}}\"/></robot>")
    (below / "n.yaml").write_text("name: yes_there\n")
    text = f'{HEAD}<xacro:include filename="below/part.xacro"/></robot>'
    bot.write_text(text)
    assert fw.read(bot).bodies == fw.read(text, xacro_args={}, folder=bot.parent).bodies
    assert fw.read(bot).bodies[0].name == "yes_there"
    for inside in ('<xacro:include filename="below/part.xacro"/>', "<link name=\"${xacro.load_yaml('n.yaml')}\"/>"):
        assert "pass folder=" in refused(inside)


def test_mjcf_is_expanded_as_well(tmp_path: Path) -> None:
    path = tmp_path / "ball.xacro"
    path.write_text(
        '<mujoco xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="r" default="1"/><worldbody><body name="ball">'
        '<freejoint/><geom size="${2 * $(arg r)}" mass="1"/></body></worldbody></mujoco>'
    )
    assert fw.read(path, xacro_args={"r": 0.25}).shapes[0].size == (0.5,)


HOSTILE = {
    "no such macro": ("<xacro:leg/>", ["unknown macro name: xacro:leg"]),
    "no such name": ("<link name='${foo}'/>", ["'foo' is not defined", "expression 'foo'"]),
    "division": ("<link name='${1 / 0}'/>", ["division by zero"]),
    "no such argument": ("<link name='$(arg side)'/>", ["argument side"]),
    "no such variable": ("<link name='$(env NO_SUCH_VARIABLE)'/>", ["NO_SUCH_VARIABLE"]),
    "no such command": ("<link name='$(rm x)'/>", ["rm x"]),
    "no such file": ('<xacro:include filename="/no/such/file"/>', ["No such file", "/no/such/file"]),
    "a device": ('<xacro:include filename="/dev/zero"/>', ["/dev/zero", "device"]),
    "an endless macro": ('<xacro:macro name="a"><xacro:a/></xacro:macro><xacro:a/>', ["macro 'a'", "recursion"]),
    "a circle": (
        '<xacro:property name="a" value="${b}"/><xacro:property name="b" value="${a}"/><link name="${a}"/>',
        ["circular"],
    ),
    "imports": ("<link name=\"${__import__('os')}\"/>", ["__import__"]),
    "no name": ("<xacro:macro/>", ["'name'"]),
    "no condition": ("<xacro:if/>", ["'value'"]),
    "other prefix": ('<x:include xmlns:x="http://www.ros.org/wiki/xacro" filename="a"/>', ["<x:include>", "prefix xacro"]),
    "damaged": ("<link", ["not an XML file"]),
    "long": (f"<link name='${{{'x' * 100_000}}}'/>", ["name 'xxx"]),
    "nothing left": ("", ["no link"]),
    "macros alone": ('<xacro:macro name="arm"><link name="a"/></xacro:macro>', ["only macros (arm)", "that includes it"]),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_cannot_be_expanded_is_refused_in_few_words(kind: str) -> None:
    inside, words = HOSTILE[kind]
    told = refused(inside)
    assert [word for word in words if word not in told] == []


def test_included_files_are_checked_as_robots_are_and_named(tmp_path: Path) -> None:
    part = tmp_path / "part.xacro"
    for text, words in (
        ('<!DOCTYPE r [<!ENTITY a "b">]><robot>&a;</robot>', "entities"),
        ("<robot", "not an XML file"),
        (f'{HEAD}<link name="${{lost}}"/></robot>', "'lost' is not defined"),
        (f'{HEAD}<xacro:include filename="{part}"/></robot>', "include itself"),
    ):
        part.write_text(text)
        told = refused(f'<xacro:include filename="{part}"/>')
        assert words in told and str(part) in told
    part.unlink()
    assert fw.read(f'{HEAD}<xacro:include filename="{part}" optional="true"/><link name="a"/></robot>', xacro_args={}).bodies


def test_entities_of_the_file_itself_are_refused() -> None:
    with pytest.raises(ModelError, match="<string>: XML that defines entities"):
        fw.read('<!DOCTYPE r [<!ENTITY a "b">]><robot name="&a;"/>', xacro_args={})


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        fw.read(tmp_path / "nowhere.xacro")


def test_xacro_is_as_it_was_afterwards_also_after_errors(bot: Path) -> None:
    names = ("parse", "abs_filename_spec", "warning", "print_location", "filestack", "macrostack")
    before = [getattr(xacro, name) for name in names]
    fw.read(bot, xacro_args={"mass": 1})
    refused("<link name='${foo}'/>")
    assert [getattr(xacro, name) for name in names] == before
    assert "leg" in xacro.process_file(str(bot.parent / "leg.xacro")).toxml()


def test_threads_expand_files_side_by_side(bot: Path) -> None:
    masses = [float(k) for k in range(1, 25)]
    with ThreadPoolExecutor(8) as pool:
        read = pool.map(lambda mass: fw.read(bot, xacro_args={"mass": mass}).bodies[2].inertia.mass, masses)
    assert [*read] == [2 * mass for mass in masses]


def test_without_the_package_it_is_said_what_to_install_and_what_else_to_do(bot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(ImportError, match=r"pip install \"\S*\[xacro\]\"; or expand it elsewhere, by `xacro .*bot"):
        fw.read(bot)
    assert fw.read(f'{HEAD}<link name="a"/></robot>').bodies  # the namespace alone needs nothing
