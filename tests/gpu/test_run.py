"""Tests of a run without a device: its parts, files and omissions; and the robot of the comparison."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cases
import figures
import kernel_code
import mujoco
import mujoco_peers
import numpy as np
import parts
import prepare
import pytest
import runner
from cases import TALOS, Case, Cases
from figures import Figure, by_peer, fitting
from gpu_tables import beside, bound_rows, document, function_row
from measure import FILES, ROBOTS
from published import FIGURES, seconds
from results import Results
from roofline import BYTES, DEVICES, moved
from run import main
from sass import Instructions

import featherweight as fw
from featherweight.engine import cache
from patience import PATIENCE

ROBOT = fw.build(fw.robots.four_bar())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Case:
    """Replace Talos by a linkage as the only measured robot."""
    function = ROBOT.forward_dynamics
    case = Case(TALOS, "forward dynamics", function, cases.states(ROBOT, function, 16), cases.goals(1.0, 1e30))
    monkeypatch.setattr(runner, "cases", lambda given: Cases([case], ["A robot is left out."]))
    monkeypatch.setattr(figures, "CHECKED", 8)
    return case


def test_a_trial_writes_results_tables_and_a_chart(small: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["functions", "compiling", "batches", "copies", "processors", "steps", "derivatives"]
    assert main(["--library", "processor", "--output", str(tmp_path), "--only", *names]) == 0
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["facts"]["what"] == "a trial on the processor, not on a device" and found["device"] is None
    assert {(f["part"], f["precision"]) for f in found["figures"]} == {
        ("rollouts", "float64"),
        *((part, precision) for part in ("functions", "sweep", "processors") for precision in ("float32", "float64")),
    }
    assert all(f["goal"] is None and f["difference"] < figures.AGREE[f["precision"]] for f in found["figures"])
    assert [(s["precision"], s["goal"]) for s in found["starts"]] == [("float32", None), ("float64", None)]
    assert found["skipped"][0] == "A robot is left out."
    text = (tmp_path / "tables.md").read_text()
    assert capsys.readouterr().out.strip() == text.strip()
    assert "| Featherweight | hopper | float64 | 3200 |" in text
    assert "## Bounds" not in text and "## Published by others, on other machines" in text
    assert (tmp_path / "chart.png").stat().st_size > 5000


def test_a_part_that_fails_or_comes_late_is_said_and_the_others_go_on(small: Case, tmp_path: Path) -> None:
    given = run_options(tmp_path)
    run = runner.Run(given)

    def failing(run: runner.Run) -> Iterator[Figure]:
        yield Figure("functions", "ours", "a robot", "a function", "float32", 2, 1.0)
        raise RuntimeError("out of memory")

    run.part("first", failing)
    given.minutes = 0.0
    run.part("second", failing)
    kept = json.loads((tmp_path / "results.json").read_text())
    assert len(run.results.figures) == len(kept["figures"]) == 1
    assert kept["skipped"][1] == "The part 'first' ended with RuntimeError: out of memory"
    assert run.results.skipped[2] == "The part 'second' is left out: 0 minutes are over."


def run_options(folder: Path) -> Any:
    return type("given", (), {"output": folder, "library": "processor", "minutes": 5.0, "robots": folder})()


def test_without_a_device_the_command_says_what_can_be_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def none(name: str) -> object:
        raise ImportError("no array library with a device: torch: none")

    monkeypatch.setattr(runner, "library", none)
    assert main(["--output", str(tmp_path)]) == 2
    assert "no array library with a device" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_wrong_result_is_no_goal_met(small: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = Figure("functions", "ours", "a robot", "a function", "float32", 1000, 1e-6, 2e-6, 1e8, 1e-7)
    assert function_row(fast)[4:9] == ["1e+09", "1 (2 wall clock)", "1.00e+08", "yes", "1e-07"]
    assert function_row(fast._replace(difference=1e-2))[7:9] == ["no", "1e-02 (wrong)"]
    assert fast._replace(difference=float("nan")).wrong
    assert function_row(fast._replace(goal=2e9))[7] == "no"
    monkeypatch.setattr(figures, "AGREE", {"float32": 0.0, "float64": 0.0})
    assert main(["--library", "processor", "--output", str(tmp_path), "--only", "functions"]) == 1


def test_others_are_compared_with_ours_at_its_best() -> None:
    ours = Figure("functions", "ours", "a robot", "a function", "float32", 1000, 1e-6)
    theirs = ours._replace(part="peers", library="theirs", batch=10)
    (row,) = beside([theirs], {"functions": [ours], "tuned": [], "sweep": [ours._replace(seconds=5e-7)]})
    assert row == ["theirs", "a robot", "a function", "float32", "10", "1e+07", "100", "200.0"]


def test_what_a_peer_printed_is_kept_when_it_fails_or_takes_too_long() -> None:
    prints = "import sys, time; print('hello'); print('{}', flush=True); "
    assert by_peer(["-c", prints], PATIENCE) == (["{}"], "")
    assert by_peer(["-c", prints + "sys.exit('no mujoco')"], PATIENCE) == (["{}"], "ended with 1: no mujoco")
    for limit in (1.0, 10.0, 100.0):  # time limits, some of which expire while a busy machine starts the script
        lines, reason = by_peer(["-c", prints + "time.sleep(1000)"], limit)
        assert reason == f"took longer than {limit:.0f} s"
        if lines:
            break
    assert lines == ["{}"]


def test_batches_are_halved_until_their_arrays_are_not_too_large() -> None:
    function = ROBOT.forward_dynamics
    assert fitting(function, "float32", 2**20) == 2**20
    n = fitting(function, "float64", 2**40)
    assert n * moved(function, "float64") <= figures.RESULTS < 2 * n * moved(function, "float64")


def test_published_figures_have_their_sources() -> None:
    assert all(f.source and f.seconds > 0 for f in FIGURES)
    assert seconds("GRiD 0.6", "g1_29dof", "derivatives of forward dynamics") == pytest.approx(859e-9, rel=2e-3)


def test_talos_in_mujoco_has_the_accelerations_of_ours() -> None:
    """Check that the model for MuJoCo Warp and MJX has the same accelerations, in its order and frames."""
    robot = cases.load(TALOS, ROBOTS)
    w = mujoco_peers.worlds(robot, ROBOTS / FILES[TALOS][0], 4)
    data = mujoco.MjData(w.model)
    for q, v, forces, expected in zip(w.q, w.v, w.forces, w.expected[:4], strict=True):
        data.qpos, data.qvel, data.qfrc_applied = q, v, forces
        mujoco.mj_forward(w.model, data)
        assert data.ncon == data.nefc == 0
        assert data.qacc == pytest.approx(expected, abs=1e-9 * np.abs(expected).max())


def test_what_a_machine_without_a_network_needs(tmp_path: Path) -> None:
    """Check that robot files alone suffice to load robots, and that pieces of a file give the file."""
    prepare.copied_robots(ROBOTS, tmp_path)
    given = type("given", (), {"robots": tmp_path})()
    assert cases.cases(given).skipped == []
    command = prepare.download("3.12", ["defusedxml"], tmp_path)
    assert command[1:4] == ["-m", "pip", "download"] and command[-1] == "defusedxml" and "--no-deps" in command
    whole = tmp_path / "x.whl"
    whole.write_bytes(bytes(range(250)))
    pieces = prepare.cut(whole, 100)
    assert [p.name for p in pieces] == ["x.whl.0", "x.whl.1", "x.whl.2"] and not whole.exists()
    assert b"".join(p.read_bytes() for p in pieces) == bytes(range(250))
    assert prepare.cut(pieces[0], 100) == [pieces[0]]


def test_code_for_a_device_is_what_calls_have_kept_since(tmp_path: Path) -> None:
    head = kernel_code.ELF + bytes(14)
    with kernel_code.empty_cache():
        cache.write("before", {}, head + kernel_code.CUDA + b"older")
        with kernel_code.compiled() as codes:
            cache.write("processor", {}, head + (62).to_bytes(2, "little") + bytes(99))
            cache.write("copies", {}, head + kernel_code.CUDA)
            cache.write("before", {}, head + kernel_code.CUDA + b"larger")  # written again
        assert codes == [head + kernel_code.CUDA + b"larger", head + kernel_code.CUDA]
        where = os.environ["FEATHERWEIGHT_CACHE"]
    assert os.environ.get("FEATHERWEIGHT_CACHE") != where and not Path(where).exists()


def test_large_functions_are_left_out_when_little_time_is_left(
    small: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "LARGE", 1)
    run = runner.Run(run_options(tmp_path))
    assert not list(parts.functions(run))
    assert [f.precision for f in parts.derivatives(run)] == ["float32", "float64"]
    run.given.minutes = 2.0
    assert not list(parts.derivatives(run))
    assert "float64 is left out: 1" in run.results.skipped[-1]


def test_bounds_stand_beside_what_was_measured(small: Case) -> None:
    """Check with machine code: half as many operations give a bound of half the measured time."""
    device = DEVICES["nvidia-h200"]
    code = {f"{TALOS}, forward dynamics, float32, functions": Instructions(1000, {}, 0, 0)}
    each = 2000 / device.issued
    ours = Figure("functions", "ours", TALOS, "forward dynamics", "float32", 10, 10 * each)
    results = Results({"what": "a test"}, device, [ours], [], code, [])
    (row,) = bound_rows([ours], results, [small])
    assert row[4] == f"{5e8 * each:.3f}*" and row[-1].startswith("2.0 times the bound by issue")
    text = document(results, [small])
    assert "## Bounds and measured times" in text and "1000 instructions" in text


def test_what_is_tuned_is_measured_beside(small: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check with a stand-in for the function's tuning, because there is no device."""
    tried: list[int] = []
    monkeypatch.setattr(type(small.function), "tune", lambda self, *args: tried.append(len(args)))
    run = runner.Run(run_options(tmp_path))
    run.trial = False
    found = list(parts.functions(run))
    assert [(f.part, f.precision) for f in found] == [(p, x) for x in BYTES for p in ("functions", "tuned")]
    assert tried == [len(small.states)] * 2
    assert "## Tuned" in document(run.results._replace(figures=found), [small])


@pytest.mark.skipif(sys.platform == "win32", reason="shells and signals of POSIX")
def test_what_compiles_beside_ends_with_all_that_it_started(small: Case, tmp_path: Path) -> None:
    """Check a shell that waits for another process, which holds the other end of a pipe until it ends."""
    run = runner.Run(run_options(tmp_path))
    assert run.wait() is None
    run.beside = subprocess.Popen(["sh", "-c", "sleep 100; true"], stdout=subprocess.PIPE, start_new_session=True)
    run.given.minutes = 0.0
    assert run.wait() is None and run.beside.returncode == -signal.SIGKILL
    assert run.beside.stdout is not None and run.beside.stdout.read() == b""
    run.beside.stdout.close()
    run.beside = subprocess.Popen(["true"], start_new_session=True)
    run.given.minutes = 1.0
    assert run.wait() == 0
    run.end()
