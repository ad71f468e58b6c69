"""Tests of sources of robots: paths, text, bytes, open files; the folder of relative names; and short errors."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight import ModelError, ModelWarning

URDF = """<robot name="arm"><link name="base"/>
  <link name="rod"><inertial><origin xyz="0 0 0.3"/><mass value="2"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial>
    <visual><geometry><mesh filename="meshes/rod.obj"/></geometry></visual></link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""
MJCF = """<mujoco model="arm"><compiler meshdir="meshes"/><asset><mesh name="rod" file="rod.obj"/></asset>
  <worldbody><body name="rod"><joint name="hinge" axis="0 1 0"/><geom type="mesh" mesh="rod"/></body></worldbody></mujoco>"""
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
TEXTS = {".urdf": URDF, ".xml": MJCF}

WAYS: dict[str, Callable[[Path], Any]] = {
    "path": lambda path: path,
    "name": str,
    "string": Path.read_text,
    "bytes": Path.read_bytes,
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "text file": lambda path: path.open(),
    "binary file": lambda path: path.open("rb"),
    "text in memory": lambda path: io.StringIO(path.read_text()),
    "bytes in memory": lambda path: io.BytesIO(path.read_bytes()),
}


@pytest.fixture(params=TEXTS)
def robot_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Create a robot file with a mesh beside it, which has a relative name."""
    (tmp_path / "bot" / "meshes").mkdir(parents=True)
    (tmp_path / "bot" / "meshes" / "rod.obj").write_text(TETRAHEDRON)
    path = tmp_path / "bot" / f"arm{request.param}"
    path.write_text(TEXTS[request.param])
    return path


def meshes(description: fw.Description) -> list[str | None]:
    return [shape.path for shape in description.shapes]


@pytest.mark.parametrize("way", WAYS)
def test_all_ways_to_give_a_robot_give_the_same(robot_file: Path, way: str) -> None:
    expected = fw.read(robot_file)
    given = WAYS[way](robot_file)
    read = fw.read(given, folder=robot_file.parent)
    assert (read.bodies, read.joints, read.unused) == (expected.bodies, expected.joints, expected.unused)
    assert meshes(read) == meshes(expected) == [str(robot_file.parent / "meshes" / "rod.obj")]
    if hasattr(given, "read"):
        assert not given.closed and not given.read()
        given.close()


def test_a_text_without_a_name_for_its_robot_is_a_robot() -> None:
    assert fw.read('<robot><link name="a"/></robot>').name == "robot"


@pytest.mark.parametrize("mode", ["r", "rb"])
def test_relative_names_of_an_open_file_lie_beside_it(
    robot_file: Path, mode: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with robot_file.open(mode) as stream:
        read = fw.read(stream)
    assert meshes(read) == meshes(fw.read(robot_file)) and read.source == str(robot_file)
    monkeypatch.chdir(tmp_path)
    with (robot_file.parent.relative_to(tmp_path) / robot_file.name).open(mode) as stream:
        assert meshes(fw.read(stream)) == meshes(read)
    packed = robot_file.parent / "arm.gz"
    packed.write_bytes(gzip.compress(robot_file.read_bytes()))
    with gzip.open(packed) as stream:
        assert meshes(fw.read(stream)) == meshes(read)


def test_relative_names_of_text_lie_nowhere_and_it_is_said_what_to_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that they are not searched in the working folder either, which may contain another robot's files."""
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "rod.obj").write_text(TETRAHEDRON)
    monkeypatch.chdir(tmp_path)
    listed = dict(fw.read(URDF).unused)["meshes not found"]
    assert "'meshes/rod.obj'" in listed and "folder=" in listed
    assert "meshes not found" not in dict(fw.read(URDF, folder=".").unused)
    with pytest.raises(ModelError, match=r"<string>: body 'rod': .*mesh 'rod\.obj'.*folder="):
        fw.read(MJCF)


def test_what_lies_at_absolute_names_needs_no_folder(robot_file: Path) -> None:
    absolute = f"{robot_file.parent / 'meshes'}"
    read = fw.read(robot_file.read_text().replace("meshes/", f"{absolute}/").replace('"meshes"', f'"{absolute}"'))
    assert meshes(read) == [f"{absolute}/rod.obj"]


def test_a_folder_replaces_that_of_the_file(robot_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "meshes"
    other.mkdir(parents=True)
    (other / "rod.obj").write_text(TETRAHEDRON.replace("v 1 0 0", "v 3 0 0"))
    assert meshes(fw.read(robot_file, folder=other.parent)) == [str(other / "rod.obj")]
    assert meshes(fw.read(robot_file.read_text(), folder=str(other.parent))) == [str(other / "rod.obj")]


def test_included_files_of_text_are_read_and_checked(tmp_path: Path) -> None:
    (tmp_path / "rod.xml").write_text('<mujoco><body name="rod"><joint/><geom size="0.1"/></body></mujoco>')
    text = '<mujoco><worldbody><include file="rod.xml"/></worldbody></mujoco>'
    assert [body.name for body in fw.read(text, folder=tmp_path).bodies] == ["rod"]
    with pytest.raises(ModelError, match=r"<string>: <include>: 'rod\.xml' is relative.*folder="):
        fw.read(text)
    (tmp_path / "rod.xml").write_text('<mujoco><body name="rod"><joint/><geom size="inf"/></body></mujoco>')
    with pytest.raises(ModelError, match=r"rod\.xml: <geom> of body 'rod': 'size' is 'inf'"):
        fw.read(text, folder=tmp_path)


@pytest.mark.parametrize("declared", ["utf-16", "latin-1", "ascii", "no-such-encoding"])
def test_a_declared_encoding_counts_for_bytes_and_not_for_strings(declared: str) -> None:
    text = f'<?xml version="1.0" encoding="{declared}"?><robot name="Ärmchen"><link name="a"/></robot>'
    assert fw.read(text).name == fw.read(io.StringIO(text)).name == "Ärmchen"
    if declared in ("utf-16", "latin-1"):
        assert fw.read(text.encode(declared)).name == "Ärmchen"
    else:
        with pytest.raises(ModelError, match="<bytes>"):
            fw.read(text.encode(), unsupported="raise")
        with pytest.warns(ModelWarning, match="read as UTF-8"):
            assert fw.read(text.encode()).name == "Ärmchen"
    mjcf = (
        f'<?xml version="1.0" encoding="{declared}"?><mujoco model="Ärmchen"><worldbody><body name="a"/></worldbody></mujoco>'
    )
    assert fw.read(mjcf).name == "Ärmchen"


@pytest.mark.parametrize("before", ["\ufeff", "\n  ", "\ufeff\r\n\t", "\n\ufeff"])
def test_marks_and_blanks_before_text_mean_nothing(before: str) -> None:
    urdf = '<?xml version="1.0"?><robot name="arm"><link name="a"/></robot>'
    for text in (before + urdf, before + MJCF.replace('type="mesh" mesh="rod"', 'size="1"')):
        for given in (text, text.encode(), io.StringIO(text), io.BytesIO(text.encode())):
            assert fw.read(given).name == "arm"


class Strange:
    """An object similar to an open file."""

    name = 7

    def __init__(self, found: Any) -> None:
        self.found = found

    def read(self) -> Any:
        return self.found


LONG = 1_000_000
HOSTILE: dict[str, tuple[Any, type[Exception], list[str]]] = {
    "empty": ("", ModelError, ["empty string"]),
    "blank": (" \n\ufeff", ModelError, ["empty string"]),
    "long": ("a" * LONG, ModelError, ["neither XML", f"{LONG} characters"]),
    "long, with a suffix": ("/" + "a/" * LONG + "x.urdf", ModelError, ["neither XML"]),
    "long name": ("a" * 300 + ".urdf", ModelError, ["neither XML"]),
    "lines": ("robot:\n  name: arm\n", ModelError, ["neither XML", "'robot:\\n"]),
    "zero": ("a\0.urdf", ModelError, ["neither XML"]),
    "half a pair": ("\ud800.urdf", ModelError, ["neither XML"]),
    "half a pair in text": ('<robot name="\ud800"/>', ModelError, ["<string>", "encoding"]),
    "no bytes": (b"", ModelError, ["<bytes>: nothing to read"]),
    "no bytes but a mark": (b"\xef\xbb\xbf \n", ModelError, ["<bytes>: nothing to read"]),
    "a path in bytes": (b"arm.urdf", ModelError, ["<bytes>: no XML", "str"]),
    "garbage": (bytes(range(256)) * 100, ModelError, ["<bytes>: not an XML file"]),
    "garbage as text": ("<" + "\x01\x02\xff" * 100, ModelError, ["<string>: not an XML file"]),
    "packed": (gzip.compress(URDF.encode()), ModelError, ["<bytes>"]),
    "cut short": (URDF[:-20], ModelError, ["<string>", "cut short"]),
    "two": (URDF + URDF, ModelError, ["<string>", "not an XML file"]),
    "a page": ("<!DOCTYPE html><html></html>", ModelError, ["<html>", "<robot> (URDF)", "<mujoco> (MJCF)"]),
    "a long tag": (f"<{'a' * LONG}/>", ModelError, ["the root element"]),
    "entities": ('<!DOCTYPE r [<!ENTITY a "b">]><robot name="&a;"/>', ModelError, ["<string>", "entities"]),
    "entities in bytes": (b'<!DOCTYPE r [<!ENTITY a SYSTEM "/etc/passwd">]><robot name="&a;"/>', ModelError, ["entities"]),
    "number": (7, TypeError, ["path", "int"]),
    "none": (None, TypeError, ["path", "NoneType"]),
    "list": (["arm.urdf"], TypeError, ["path", "list"]),
    "a file that is at its end": (Strange(""), ModelError, ["<file>: nothing to read", "end"]),
    "a file that gives no text": (Strange(7), TypeError, ["<file>", "int"]),
    "a mesh": (Strange(b"solid rod\nendsolid"), ModelError, ["<file>: no XML"]),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_no_robot_is_refused_in_few_words(kind: str) -> None:
    given, error, words = HOSTILE[kind]
    with pytest.raises(error) as caught:
        fw.read(given, unsupported="raise")
    told = str(caught.value)
    assert len(told) < 400 and [word for word in words if word not in told] == []


def test_folders_are_refused_and_errors_name_an_open_file(tmp_path: Path) -> None:
    folder = tmp_path / "bot.urdf"
    folder.mkdir()
    for given in (folder, str(tmp_path), Path()):
        with pytest.raises(IsADirectoryError, match="name the robot's file in it"):
            fw.read(given)
    path = tmp_path / "latin.urdf"
    path.write_bytes('<robot name="Ä"/>'.encode("latin-1"))
    with path.open(encoding="utf-8") as stream, pytest.raises(ModelError, match=r"latin\.urdf: .*'rb'"):
        fw.read(stream)
    with path.open("rb") as stream, pytest.raises(ModelError, match=r"latin\.urdf: not an XML file"):
        fw.read(stream, unsupported="raise")
    with pytest.raises(ModelError, match=r"folder: .*nowhere: no such folder"):
        fw.read(URDF, folder=tmp_path / "nowhere")


def test_errors_inside_text_name_the_element() -> None:
    with pytest.raises(ModelError, match=r"^<string>: link 'rod': the mass is negative"):
        fw.read(URDF.replace('mass value="2"', 'mass value="-2"'), unsupported="raise")
    with pytest.raises(ModelError, match=r"^<bytes>: joint 'hinge': unknown type 'hinged'"):
        fw.read(URDF.replace("continuous", "hinged").encode())


def test_load_computes_the_same_of_text_and_an_srdf_may_be_text_too(robot_file: Path) -> None:
    state = '<robot name="arm"><group_state name="up" group="all"><joint name="hinge" value="0.5"/></group_state></robot>'
    robots = [
        fw.load(given, folder=robot_file.parent, srdf=state, execution="interpreted")
        for given in (robot_file, robot_file.read_text())
    ]
    q = np.array([0.5])
    assert all(robot.configurations["up"] == q for robot in robots)
    np.testing.assert_array_equal(robots[0].gravity_force(q), robots[1].gravity_force(q))
