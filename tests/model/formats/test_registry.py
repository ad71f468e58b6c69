"""Tests of the choice of a reader by suffix: options reach readers that take them, and a new format is one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import featherweight
from featherweight import Body, Description, ModelError
from featherweight.model.formats import registry
from featherweight.model.formats.registry import Format, load_description
from featherweight.robots import example_files

URDF = '<robot name="r"><link name="base"/></robot>'
SDF = '<sdf version="1.9"><model name="r"><link name="base"/></model></sdf>'
MJCF = '<mujoco model="r"><worldbody><body name="base"/></worldbody></mujoco>'


@pytest.mark.parametrize(("suffix", "text"), [(".urdf", URDF), (".URDF", URDF), (".xml", MJCF), (".sdf", SDF), (".world", SDF)])
def test_the_suffix_says_how_a_file_is_read(tmp_path: Path, suffix: str, text: str) -> None:
    path = tmp_path / f"robot{suffix}"
    path.write_text(text)
    assert [body.name for body in load_description(path).bodies] == ["base"]


@pytest.mark.parametrize("name", ["robot.step", "robot", "robot.urdf.old"])
def test_an_unknown_suffix_is_refused_and_the_known_ones_are_listed(name: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_description(name)
    for word in (name, "unknown suffix", *(suffix for entry in registry.FORMATS for suffix in entry.suffixes)):
        assert word in str(caught.value)


def test_a_misspelled_path_is_answered_with_the_files_that_it_resembles(tmp_path: Path) -> None:
    (tmp_path / "quadruped.urdf").write_text(URDF)
    (tmp_path / "quadruped.stl").write_text("")
    for name, error in (("quadurped.urdf", FileNotFoundError), ("quadruped.xml", FileNotFoundError), ("quadruped", ModelError)):
        for folder in (None, tmp_path):
            with pytest.raises(error) as caught:
                load_description(tmp_path / name, folder=folder)
            assert f"; is it {str(tmp_path / 'quadruped.urdf')!r}?" in str(caught.value)


@pytest.mark.parametrize("name", ["pnda.urdf", "panda.udrf"])
def test_a_misspelled_name_is_answered_with_the_example_robot_that_it_resembles(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(example_files, "example_names", lambda: ["panda", "ur5_robot"])
    with pytest.raises((FileNotFoundError, ModelError), match=r"is it featherweight\.example\('panda'\)\?"):
        load_description(name)


def test_a_new_format_is_one_line_and_a_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = ModuleType("a_new_format")
    module.read = lambda path, options: Description(str(options), str(path), (Body("base"),), ())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_new_format", module)
    entry = Format("SKEL", (".skel",), "a_new_format", "read", options=("model",), root="skel")
    monkeypatch.setattr(registry, "FORMATS", [*registry.FORMATS, entry])
    (tmp_path / "two.skel").write_text("<skel/>")
    assert load_description(tmp_path / "two.skel", model="arm", mimic="follow").name == "{'model': 'arm'}"
    assert load_description('<skel version="1.0"/>', model="leg").source == "<string>"
    with pytest.raises(ModelError, match=r"\.skel \(SKEL\)"):
        load_description("robot.step")
    with pytest.raises(ModelError, match=r"<skel> \(SKEL\)"):
        load_description("<step/>")


def test_an_option_that_no_format_takes_is_refused() -> None:
    with pytest.raises(TypeError, match="'mimik'"):
        load_description("robot.urdf", mimik="follow")


def test_readers_and_writers_are_imported_when_they_are_needed() -> None:
    code = "import sys, featherweight; print(sorted(m for m in sys.modules if '.formats.' in m))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    small = (f"featherweight.model.formats.{name}" for name in ("registry", "saving", "unsupported"))
    assert out.strip() == str([*small])


FOLLOWING = """<mujoco><worldbody><body><joint name="a" axis="0 0 1"/><geom size=".1" pos=".2 0 0"/></body>
<body><joint name="b" axis="0 0 1"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
<equality><joint name="gear" joint1="b" joint2="a"/></equality></mujoco>"""


def test_mimic_is_for_followers_of_all_formats() -> None:
    assert [c.joint for c in featherweight.read(FOLLOWING).couplings] == ["b"]
    free = featherweight.load(FOLLOWING, mimic="independent", execution="interpreted")
    assert [j.independent for j in free.joints] == [True, True]
    assert free.report() == {"couplings": "of b, taken as independent"}
    with pytest.raises(ModelError, match=r"equality 'gear': it lets 'b' follow 'a'; load with mimic=\"follow\", or with"):
        featherweight.read(FOLLOWING, mimic="refuse")


@pytest.mark.parametrize("text", [FOLLOWING, '<robot name="r"><link name="a"/></robot>'])
@pytest.mark.parametrize("option", ["mimic", "unsupported"])
def test_options_that_are_misspelt_are_refused_for_every_format(text: str, option: str) -> None:
    with pytest.raises(ValueError, match=f"{option} must be one of follow|{option} must be one of report, raise"):
        load_description(text, mimic="folow") if option == "mimic" else load_description(text, unsupported="repot")


def test_a_joint_that_follows_cannot_be_asked_for_as_independent() -> None:
    refusals = {
        "b": "independent: joint 'b' follows 'a' by coupling 'gear', so its velocity is not independent; name 'a' instead",
        "c": "independent: joint 'c' does not exist; the joints that move are 'a', 'b'",
    }
    for name, message in refusals.items():
        with pytest.raises(ModelError, match=message):
            featherweight.load(FOLLOWING, independent=[name], execution="interpreted")
    with pytest.raises(TypeError, match=r"independent must be a list of names or None; got 'ab'; put it into a list: \['ab'\]"):
        featherweight.load(FOLLOWING, independent="ab", execution="interpreted")
    assert featherweight.load(FOLLOWING, independent=["a"], execution="interpreted").nv == 1


def test_compressed_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"arm\.urdf\.gz: a compressed file; unpack it"):
        load_description(tmp_path / "arm.urdf.gz")
    (tmp_path / "arm.urdf").write_bytes(b"\x1f\x8b\x08\x00")
    with pytest.raises(ModelError, match="a gzip file, not XML; unpack it"):
        load_description(tmp_path / "arm.urdf")
