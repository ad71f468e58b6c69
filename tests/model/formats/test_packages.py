"""Tests of the lookup of package://NAME/... and model://NAME/...: the caller's folders, those of ROS, and those around
the file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import featherweight as fw
from featherweight import ModelError
from featherweight.model.formats.geometry import find_mesh
from featherweight.model.formats.packages import Packages


@pytest.fixture(autouse=True)
def no_ros(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(variable, raising=False)


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def named(folder: Path, name: str) -> Path:
    """Create a package with its name in its package.xml."""
    touch(folder / "package.xml").write_text(f'<?xml version="1.0"?><package format="3"><name> {name} </name></package>')
    return folder


def robot(filename: str) -> str:
    return f'<robot name="r"><link name="l"><visual><geometry><mesh filename="{filename}"/></geometry></visual></link></robot>'


def test_a_package_path_is_a_package_or_holds_packages_and_there_may_be_several(tmp_path: Path) -> None:
    inside = touch(tmp_path / "ws" / "bot" / "a.stl")
    shared = touch(tmp_path / "install" / "share" / "hand" / "b.stl")
    cloned = touch(named(tmp_path / "foot-main", "foot") / "c.stl")
    path: Any
    for path, filename, expected in (
        (tmp_path / "ws", "package://bot/a.stl", inside),
        (tmp_path / "ws" / "bot", "package://bot/a.stl", inside),
        (str(tmp_path / "ws" / "bot"), "model://bot/a.stl", inside),
        (tmp_path / "install", "package://hand/b.stl", shared),
        (tmp_path / "foot-main", "package://foot/c.stl", cloned),
        ([tmp_path / "ws", tmp_path / "foot-main"], "package://foot/c.stl", cloned),
        (iter([tmp_path / "foot-main", str(tmp_path / "ws")]), "package://bot/a.stl", inside),
    ):
        description = fw.read(robot(filename), package_path=path)
        assert (description.shapes[0].path, description.unused) == (str(expected), ()), filename


def test_the_caller_comes_before_the_environment_and_that_before_the_folders_around_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [tmp_path / name for name in ("mine", "ros", "ament/share", "ws")]
    meshes = [touch(place / "bot" / "a.stl") for place in places]
    near = tmp_path / "ws" / "bot" / "urdf"
    near.mkdir()
    found = []
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere{os.pathsep}{tmp_path / 'ros'}")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path / 'ament'}")
    for mesh in meshes:
        found.append(find_mesh("package://bot/a.stl", near, Packages.of(tmp_path / "mine")))
        mesh.unlink()
    assert found == [str(mesh) for mesh in meshes]
    assert find_mesh("package://bot/a.stl", near, Packages.of(tmp_path / "mine")) == "package://bot/a.stl"


def test_a_package_is_found_by_its_written_name_above_the_file_though_another_folder_in_it_has_it(tmp_path: Path) -> None:
    """Check the layout of ROS packages with Python modules."""
    package = named(tmp_path / "checkout", "bot")
    (package / "bot").mkdir()
    (package / "urdf").mkdir()
    assert next(Packages().folders("bot", package / "urdf")) == package
    assert next(Packages.of(package).folders("bot", None)) == package


def test_a_prefix_of_one_package_is_not_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check packages that are installed in a folder of their own name, with a share/ folder that has it again."""
    (tmp_path / "bot" / "share" / "bot").mkdir(parents=True)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "bot"))
    assert next(Packages().folders("bot", None)) == tmp_path / "bot" / "share" / "bot"


def test_a_missing_package_is_listed_with_where_it_was_sought_and_what_to_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    monkeypatch.setenv("AMENT_PREFIX_PATH", "/opt/ros/none")
    path = tmp_path / "r.urdf"
    path.write_text(robot("package://bot/a.stl"))
    told = dict(fw.read(path, package_path=mine).unused)["meshes not found"]
    for word in ("package 'bot'", str(mine), "ROS_PACKAGE_PATH (none)", "/opt/ros/none", f"{tmp_path} and", "package_path="):
        assert word in told
    (mine / "bot").mkdir()
    assert dict(fw.read(path, package_path=mine).unused)["meshes not found"].endswith(f"it is not in {mine / 'bot'}")


@pytest.mark.parametrize("name", ["a/b", "a\\b", "..\\b", "C:"])
def test_names_of_packages_lead_to_no_other_folder_on_any_system(tmp_path: Path, name: str) -> None:
    """Check names that are folder names here, and paths on Windows."""
    (tmp_path / name).mkdir(parents=True)
    assert [*Packages.of(tmp_path).folders(name, tmp_path)] == []


@pytest.mark.parametrize("name", ["", ".", "..", "...", "a" * 5000, "a\0b", "é🤖", "%", "*"])
def test_strange_names_of_packages_are_packages_that_are_not_there(tmp_path: Path, name: str) -> None:
    assert [*Packages.of(tmp_path).folders(name, tmp_path)] == []
    filename = f"package://{name}/a.stl"
    assert find_mesh(filename, tmp_path, Packages.of(tmp_path)) == filename
    if "\0" not in name:
        told = dict(fw.read(robot(filename), package_path=tmp_path).unused)["meshes not found"]
        assert len(told) < 900 and "package_path" in told


@pytest.mark.parametrize(
    "text", ["", "<package", "<package/>", '<!DOCTYPE p [<!ENTITY a "b">]><package><name>&a;</name></package>']
)
def test_a_damaged_manifest_names_no_package(tmp_path: Path, text: str) -> None:
    touch(tmp_path / "bot" / "package.xml").write_text(text)
    assert [*Packages.of(tmp_path / "bot").folders("b", None)] == []
    assert next(Packages.of(tmp_path / "bot").folders("bot", None)) == tmp_path / "bot"


@pytest.mark.parametrize("path", ["/no/such/folder", ["/no/such/folder"], __file__])
def test_a_package_path_that_is_no_folder_is_refused(path: object) -> None:
    with pytest.raises(ModelError, match=r"package_path: .*no such folder"):
        fw.read(robot("a.stl"), package_path=path)  # type: ignore[arg-type]


def test_packages_of_mjcf_files_are_found_too(tmp_path: Path) -> None:
    mesh = touch(tmp_path / "bot" / "a.obj")
    text = """<mujoco><asset><mesh name="a" file="package://bot/a.obj"/></asset><worldbody><body name="b"><joint/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><geom type="mesh" mesh="a"/></body></worldbody></mujoco>"""
    assert fw.read(text, package_path=tmp_path).shapes[0].path == str(mesh)
    assert "package_path=" in dict(fw.read(text).unused)["meshes not found"]
