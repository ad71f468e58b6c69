"""Tests of `featherweight export`."""

from __future__ import annotations

from pathlib import Path

import pytest

from featherweight.cli import main

pytest.importorskip("typer")  # without it, commands only report that it is missing

PENDULUM = """<robot name="pendulum"><link name="base"/>
<link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""


@pytest.fixture
def urdf(tmp_path: Path) -> str:
    path = tmp_path / "pendulum.urdf"
    path.write_text(PENDULUM)
    return str(path)


def test_functions_are_written_by_name(urdf: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = "forward_dynamics, frame_placement:rod,mass_matrix.derivative"
    assert main(["export", urdf, str(tmp_path / "out"), "--functions", names, "--files", "source,object"]) == 0
    files = {p.name for p in (tmp_path / "out").iterdir()}
    objects = {"forward_dynamics.o", "frame_placement_rod.o", "mass_matrix_derivative.o"}
    assert files == {"pendulum.h", "pendulum.c", *objects}
    assert "hinge  continuous  [0]  [0]  rad; rad/s" in (tmp_path / "out" / "pendulum.h").read_text()
    printed = capsys.readouterr().out
    assert all(f"{tmp_path / 'out' / name}  " in printed for name in files)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ["--functions", "forward_dynamicz"],
            "robot 'pendulum' has no function 'forward_dynamicz' (is it 'forward_dynamics'?); it has",
        ),
        (["--functions", "frame_placement"], "has no function 'frame_placement'"),
        (["--functions", "frame_placement:arm"], "function 'frame_placement:arm': "),
        (["--functions", "mass_matrix.integral"], "the derivatives of a function are derivative, pullback and pushforward"),
        (["--target", "pi"], "target must be host, x86-64-v2"),
        (["--files", "dll"], "files are source, object"),
        (["--functions", "mass_matrix:rod"], "function 'mass_matrix:rod': mass_matrix takes no frame"),
        (["--functions", "mass_matrix:"], "function 'mass_matrix:': mass_matrix takes no frame"),
        (["--functions", "frame_placement:rod,frame_placement: rod"], "would have the same name frame_placement_rod"),
        (["--prefix", "7"], "'7forward_dynamics' cannot be a name in C"),
    ],
)
def test_what_is_wrong_is_one_line(
    options: list[str], text: str, urdf: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", urdf, str(tmp_path / "out"), *options]) == 1
    assert text in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_names_that_c_does_not_take_are_made_some(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(PENDULUM.replace('"pendulum"', '"int"').replace('"rod"', '"größe.1"'))
    out = tmp_path / "out"
    assert main(["export", str(tmp_path / "r.urdf"), str(out), "--functions", "frame_placement:größe.1"]) == 0
    assert {p.name for p in out.iterdir()} == {"robot_int.h", "robot_int.c", "librobot_int.a"}
    assert "int frame_placement_gr_e_1(" in (out / "robot_int.h").read_text()


def test_a_folder_that_cannot_be_one_is_one_line(urdf: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (urdf, f"{urdf}/sub"):
        assert main(["export", urdf, folder]) == 1
        assert capsys.readouterr().err.startswith(f"error: {folder}: ")
    assert Path(urdf).read_text() == PENDULUM
