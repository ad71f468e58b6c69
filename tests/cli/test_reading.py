"""Tests of the input of commands: standard input, package paths from an option, xacro files with arguments."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from featherweight import cli
from featherweight.cli.options import RobotFile, of_robot_file

pytest.importorskip("typer")  # without it, commands only report that it is missing

BOT = """<robot name="bot" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="side" default="right"/>
  <link name="base"/><link name="$(arg side)_leg"><inertial><mass value="2"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><geometry><mesh filename="package://bot/leg.stl"/></geometry></visual></link>
  <joint name="hip" type="continuous"><parent link="base"/><child link="$(arg side)_leg"/></joint></robot>"""


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_a_xacro_file_is_read_with_its_arguments_and_packages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bot.xacro"
    path.write_text(BOT)
    assert cli.main(["inspect", str(path)]) == 0
    out = squeezed(capsys.readouterr().out)
    assert "right_leg" in out and "meshes not found" in out
    (tmp_path / "packages" / "bot").mkdir(parents=True)
    (tmp_path / "packages" / "bot" / "leg.stl").touch()
    for written in ("side=left", "side:=left"):  # both spellings of xacro
        assert cli.main(["inspect", str(path), "--xacro-arg", written, "--package-path", str(tmp_path / "packages")]) == 0
        out = squeezed(capsys.readouterr().out)
        assert "left_leg" in out and "meshes not found" not in out


@pytest.mark.parametrize("command", ["inspect", "ops"])
def test_a_minus_is_standard_input(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = BOT.replace("$(arg side)", "left").replace('<xacro:arg name="side" default="right"/>', "")
    text = text.replace("package://bot/", "")
    (tmp_path / "leg.stl").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    assert cli.main([command, "-"]) == 0
    out = squeezed(capsys.readouterr().out)
    assert ("left_leg" if command == "inspect" else "forward_dynamics") in out
    assert "meshes not found" not in out
    assert cli.main([command, "-"]) == 1
    assert "nothing to read" in capsys.readouterr().err


def test_commands_have_the_options_of_a_file_and_their_own_of_which_those_of_one_name_count() -> None:
    calls = []

    def command(file: RobotFile, base: str = "mine", number: int = 3) -> None:
        calls.append((file, base, number))

    app = typer.Typer()
    app.command()(of_robot_file(command))
    for arguments in (["bot.urdf"], ["bot.urdf", "--number", "4", "--mimic", "independent", "--xacro-arg", "a=b"]):
        app(arguments, standalone_mode=False)
    assert calls == [
        (RobotFile(Path("bot.urdf")), "mine", 3),
        (RobotFile(Path("bot.urdf"), mimic="independent", xacro_arg=["a=b"]), "mine", 4),
    ]
    names = [x.name for x in typer.main.get_command(app).params]
    assert [name for name in names if name in (*RobotFile._fields, "number")] == [*RobotFile._fields, "number"]


def test_wrong_options_are_one_line_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bot.xacro"
    path.write_text(BOT)
    for options, words in (
        (["--xacro-arg", "side"], "--xacro-arg side: must have the form NAME=VALUE"),
        (["--xacro-arg", "=left"], "NAME=VALUE"),
        (["--package-path", str(tmp_path / "nowhere")], "no such folder"),
    ):
        assert cli.main(["inspect", str(path), *options]) == 1
        [line] = capsys.readouterr().err.splitlines()
        assert words in line
    assert cli.main(["inspect", str(tmp_path)]) == 1
    assert "name the robot's file in it" in capsys.readouterr().err


def test_names_do_not_control_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Check tables and errors of a file with names of control characters, which XML allows."""
    name, shown = "leg\x9b31m\u202e", r"leg\x9b31m\u202e"
    text = BOT.replace("$(arg side)_leg", name).replace("hip", f"hip{name}").replace('name="bot"', f'name="bot{name}"')
    path = tmp_path / "bot.urdf"
    path.write_text(text.replace('<xacro:arg name="side" default="right"/>', ""), encoding="utf-8")
    assert cli.main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert shown in out and f"hip{shown}" in out and not {"\x9b", "\u202e"} & {*out}
    path.write_text(path.read_text(encoding="utf-8").replace('value="2"', 'value="x"'), encoding="utf-8")
    assert cli.main(["inspect", str(path), "--unsupported", "raise"]) == 1
    err = capsys.readouterr().err
    assert shown in err and not {"\x9b", "\u202e"} & {*err}
