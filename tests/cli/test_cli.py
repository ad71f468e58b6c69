"""Tests of the command line: output, pictures and errors."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import typer

from featherweight import cli
from featherweight.cli.app import app
from featherweight.version import __version__

ARM = """<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0 0 0.2"/><mass value="2"/>
    <inertia ixx="0.03" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.01"/></inertial>
    <visual><geometry><sphere radius="0.1"/></geometry></visual></link>
  <link name="lower"><inertial><origin xyz="0 0 0.1"/><mass value="1"/>
    <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/></inertial></link>
  <link name="tool"><inertial><mass value="0.5"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="1.25" effort="10" velocity="1"/></joint>
  <joint name="slide" type="prismatic"><parent link="upper"/><child link="lower"/><origin xyz="0 0 0.4"/>
    <axis xyz="0 0 1"/><limit lower="0" upper="0.3" effort="10" velocity="1"/>{mimic}</joint>
  <joint name="wrist" type="fixed"><parent link="lower"/><child link="tool"/><origin xyz="0 0 0.2"/></joint>
</robot>"""

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def arm(tmp_path: Path) -> str:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.format(mimic=""))
    return str(path)


@pytest.fixture
def coupled_arm(tmp_path: Path) -> str:
    path = tmp_path / "coupled.urdf"
    path.write_text(ARM.format(mimic='<mimic joint="shoulder"/>'))
    return str(path)


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"featherweight {__version__}\n"


def test_inspect_shows_joints_bodies_totals_and_what_is_not_used(arm: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", arm]) == 0
    out = squeezed(capsys.readouterr().out)
    assert "0 shoulder revolute world → upper 0 0 -1.5 … 1.25 rad 1" in out
    assert "1 slide prismatic upper → lower 1 1 0 … 0.3 m" in out
    assert "mass [kg]" in out
    assert "1 lower 1.5 0.0000, 0.0000, 0.1333 tool" in out
    assert "mass 3.5 kg" in out
    assert "depth of the tree 2 joints" in out


def test_inspect_shows_what_acts_in_joints_and_leaves_out_what_is_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pendulum.xml"
    path.write_text("""<mujoco model="pendulum[1]">
      <worldbody><geom type="plane" size="0 0 1"/><body name="rod">
        <joint name="hinge" damping="0.5" stiffness="3" springref="30"/>
        <geom type="capsule" fromto="0 0 0 0 0 1" size="0.1"/></body></worldbody>
      <actuator><position name="servo" joint="hinge" kp="20" ctrlrange="-1 1"/></actuator>
      <keyframe><key name="up" qpos="1"/></keyframe></mujoco>""")
    assert cli.main(["inspect", str(path)]) == 0
    out = squeezed(capsys.readouterr().out)
    assert "Joint forces joint damping stiffness at rest ─" in out.replace("─ ", "─") and "hinge 0.5 3 0.5236" in out
    assert "friction" not in out and "armature" not in out
    assert "servo hinge 1 20 0, -20, 0 -1 … 1 Force" in out
    assert "name pendulum[1]" in out
    assert "named configurations qpos0, up" in out
    assert "collision shapes 1 plane, 1 capsule" in out


def test_inspect_tells_servos_and_the_ranges_of_their_controls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "servos.xml"
    path.write_text("""<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody><actuator>
      <pid name="servo" joint="j" kp="7" posrange="-1 2" velrange="-3 4"/></actuator></mujoco>""")
    assert cli.main(["inspect", str(path)]) == 0
    assert "servo j 1 servo -1 … 2; -3 … 4 Force" in squeezed(capsys.readouterr().out)


@pytest.mark.parametrize("command", [c.name for c in app.registered_commands])
def test_help_holds_every_word_of_every_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Check that the help contains words in brackets, such as units."""
    group: Any = typer.main.get_command(app)
    chosen = group.commands[command]
    assert cli.main([command, "--help"]) == 0
    shown = "".join(capsys.readouterr().out.split())
    assert len(chosen.params) > 0
    for option in chosen.params:
        assert "".join((option.help or "").split()) in shown


def test_names_of_files_in_brackets_are_told_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = tmp_path / "arm[bold].urdf"
    damaged.write_text("<robot")
    assert cli.main(["inspect", str(damaged)]) == 1
    assert str(damaged) in capsys.readouterr().err
    assert cli.main(["inspect", "a", "[b]"]) == 2
    assert "[b]" in capsys.readouterr().err


def test_inspect_with_a_floating_base_has_a_free_flyer(arm: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = Path(arm).read_text().replace('<link name="base"/>', "").replace("base", "upper")
    start, stop = text.index('<joint name="shoulder"'), text.index('<joint name="slide"')
    Path(arm).write_text(text[:start] + text[stop:])
    assert cli.main(["inspect", arm, "--base", "floating"]) == 0
    out = squeezed(capsys.readouterr().out)
    assert "floating world → upper 0:7 0:6 –" in out
    assert "configuration, nq 8" in out


def test_ops_prints_the_counts_of_each_function(arm: str, capsys: pytest.CaptureFixture[str]) -> None:
    import featherweight

    assert cli.main(["ops", arm]) == 0
    out = squeezed(capsys.readouterr().out)
    function = featherweight.load(arm).forward_dynamics
    mul, add, div, sqrt, trig = function.operations
    total = mul + add + div + sqrt + trig
    assert f"forward_dynamics (2),(2),(2)->(2) {mul} {add} {div} {sqrt} {trig} {total} traced" in out


def test_ops_compares_algorithms_for_contacts(arm: str, capsys: pytest.CaptureFixture[str]) -> None:
    import featherweight

    robot = featherweight.load(arm)
    frame = robot.frames[-1].name
    delassus = robot.delassus(featherweight.BilateralContact(frame))
    assert cli.main(["ops", arm, "--contact", frame]) == 0
    out = squeezed(capsys.readouterr().out)
    for name, o in delassus.candidates.items():
        arrow = " ←" if name == delassus.algorithm else ""
        assert f"{name}{arrow} {o.mul} {o.add} {o.div} {o.sqrt} {o.trig} {sum(o)}" in out
    assert cli.main(["ops", arm, "--contact", "nowhere"]) == 1
    assert "no frame 'nowhere'" in capsys.readouterr().err


@pytest.mark.parametrize("threads", [1, 2])
def test_bench_draws_a_chart_and_prints_its_path(
    arm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], threads: int
) -> None:
    output = tmp_path / "charts"
    options = ["--batch", "32", "--repeats", "1", "--threads", str(threads), "--output", str(output)]
    assert cli.main(["bench", arm, *options]) == 0
    out = capsys.readouterr().out
    chart = output / "bench_arm.png"
    assert f"Chart: {chart}" in out
    assert chart.read_bytes().startswith(PNG)
    assert "forward_dynamics" in out
    assert ("batch, 2 threads" in out) == (threads == 2)


def test_joints_that_mimic_others_follow_them_unless_asked(coupled_arm: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ops", coupled_arm]) == 0
    assert "forward_dynamics (1),(1),(1)->(1)" in squeezed(capsys.readouterr().out)
    assert cli.main(["ops", coupled_arm, "--mimic", "independent"]) == 0
    assert "forward_dynamics (2),(2),(2)->(2)" in squeezed(capsys.readouterr().out)


TIED = """<mujoco><worldbody><site name="eye"/>
  <body name="bob">{joint}<geom size="0.1" pos="0 0 -1"/><site name="tip" pos="0 0 -1"/></body></worldbody>
  <tendon><spatial name="rope"><site site="tip"/><site site="eye"/></spatial></tendon>
  <equality><tendon name="tie" tendon1="rope"/></equality></mujoco>"""


@pytest.mark.parametrize("command", ["inspect", "ops", "simulate"])
def test_what_is_not_supported_is_refused_or_left_out_as_asked(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check a robot of which nothing moves, too: it has frames, and no simulation."""
    path = tmp_path / "tied.xml"
    path.write_text(TIED.format(joint=""))
    for asked, refused in (([], False), (["--unsupported", "raise"], True), (["--unsupported", "report"], False)):
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            code = cli.main([command, str(path), "--base", "fixed", *asked])
        assert code == (refused or command == "simulate")
        told = capsys.readouterr().err
        assert ("left out: equality 'tie'" in told) == ("no joint of the robot moves" in told) == (not refused)
        assert ("--unsupported report" in told) == refused
        assert ("Simulation needs a joint that moves; load a flying robot with --base floating" in told) == (
            command == "simulate" and not refused
        )


def test_inspect_lists_what_was_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tied.xml"
    path.write_text(TIED.format(joint="<joint/>"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cli.main(["inspect", str(path), "--unsupported", "report"]) == 0
    assert "not supported, and left out equality 'tie'" in squeezed(capsys.readouterr().out)


@pytest.mark.parametrize("command", ["inspect", "ops", "bench"])
def test_a_missing_file_is_one_line_on_stderr(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, "nowhere/arm.urdf"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "nowhere/arm.urdf: No such file or directory" in err


def test_a_refused_model_is_one_line_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = tmp_path / "damaged.urdf"
    damaged.write_text("<robot name='x'><link name='a'>")
    assert cli.main(["inspect", str(damaged)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert str(damaged) in err


@pytest.mark.filterwarnings("default:.*no joint of the robot moves")
def test_a_robot_that_cannot_move_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rigid = tmp_path / "rigid.urdf"
    rigid.write_text("<robot name='rigid'><link name='a'/></robot>")
    assert cli.main(["ops", str(rigid)]) == 0
    shown = capsys.readouterr()
    assert "joint_jacobian" in shown.out and "no joint of the robot moves" in shown.err


def test_an_unknown_option_value_is_a_usage_error(arm: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", arm, "--base", "wobbly"]) == 2
    assert "wobbly" in capsys.readouterr().err


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cli, "REQUIRED", ("typer", "no_such_package"))
    assert cli.main(["--version"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == 'the command line needs no_such_package, not installed here: pip install "featherweight[cli]"\n'


def test_demo_prints_its_check_and_draws_its_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not _installed("example-robot-data"):
        pytest.skip("example-robot-data is not installed")
    assert cli.main(["demo", "--states", "300", "--repeats", "1", "--output", str(tmp_path)]) == 0
    out = squeezed(capsys.readouterr().out)
    assert "33 bodies, nq = 39, nv = 38, 90.3 kg" in out
    assert "Forward dynamics of 300 states took" in out
    assert "(tolerance 1e-10): pass" in out
    assert f"Picture: {tmp_path / 'demo.png'}" in out
    assert (tmp_path / "demo.png").read_bytes().startswith(PNG)


def test_demo_without_its_robot_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    assert cli.main(["demo", "--output", str(tmp_path)]) == 1
    assert 'pip install "featherweight[robots]"' in capsys.readouterr().err


def test_the_library_does_not_import_what_only_the_command_line_needs() -> None:
    code = "import sys, featherweight; print(sorted({'typer', 'rich', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def test_inspect_shows_clusters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inertial = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    links = "".join(f'<link name="{n}">{inertial}</link>' for n in ("arm", "rotor"))
    joints = "".join(
        f'<joint name="{n}" type="continuous"><parent link="base"/><child link="{c}"/><axis xyz="0 0 1"/>{more}</joint>'
        for n, c, more in (("drive", "arm", ""), ("spin", "rotor", '<mimic joint="drive" multiplier="6"/>'))
    )
    path = tmp_path / "geared.urdf"
    path.write_text(f'<robot name="geared"><link name="base"/>{links}{joints}</robot>')
    assert cli.main(["inspect", str(path)]) == 0
    assert "'spin' drive spin –" in squeezed(capsys.readouterr().out)


def test_cache_shows_what_is_kept_and_removes_it(
    arm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FEATHERWEIGHT_CACHE", str(tmp_path / "kept"))
    monkeypatch.setenv("FEATHERWEIGHT_CACHE_SIZE", "20 MB")
    assert cli.main(["cache"]) == 0
    assert "0 files, 0.0 MB of 20 MB" in squeezed(capsys.readouterr().out)
    assert cli.main(["ops", arm]) == 0
    files = list((tmp_path / "kept").glob("*.bin"))
    capsys.readouterr()
    assert cli.main(["cache"]) == 0
    out = squeezed(capsys.readouterr().out)
    assert str(tmp_path / "kept") in out and f"{len(files)} files" in out and "most recently used: today" in out
    assert cli.main(["cache", "--clear"]) == 0
    assert f"Removed {len(files)} files" in squeezed(capsys.readouterr().out)
    assert files and not list((tmp_path / "kept").glob("*.bin"))


def test_the_package_is_the_command_and_prints_in_any_encoding(coupled_arm: str) -> None:
    command = [sys.executable, "-m", "featherweight", "inspect", coupled_arm]
    done = subprocess.run(command, capture_output=True, check=True, env=os.environ | {"PYTHONIOENCODING": "latin-1"})
    out = squeezed(done.stdout.decode("latin-1").replace("|", " "))
    assert "0 shoulder revolute world -> upper 0 0 -1.5 ... 1.25 rad 1" in out
    assert "gravity (0, 0, -9.81) m/s²" in out


def test_a_warning_is_one_line_on_stderr(arm: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(arm).write_text(Path(arm).read_text().replace('izz="0.01"', 'izz="0.09"'))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert cli.main(["inspect", arm]) == 0
    err = capsys.readouterr().err
    assert err.startswith("warning: ") and err.count("\n") == 1 and "'upper' by 50 %" in err
