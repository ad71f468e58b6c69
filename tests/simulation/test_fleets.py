"""Tests of the benchmark of fleets: its rows, its peers in other processes, and code for shorter vectors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import fleets
import mujoco
import numpy as np
import peer_process
import pytest
from fleet_scenes import FLEETS, G1_MOTORS, GO1_MOTORS, Fleet, Motor, add_drive, matched
from mujoco_fleet import MujocoFleet, looked_at
from peer_process import PeerProcess

ROBOTS = 3
ANSWERING = "from peer_process import serve; import sys; serve(sys.argv[1:], lambda: 0.25)"
LIMITED = """
from limited_vectors import limit_vectors
limit_vectors()
from featherweight.engine.backends.llvm.jit import host
print(host().vector_bytes, "+avx512" in host().features)
try:
    limit_vectors()
except RuntimeError as error:
    print(error)
"""


def options(short: bool = False) -> fleets.Options:
    return fleets.Options(2 * ROBOTS, 1, "rigid", short, ())


def in_a_process(code: str) -> list[str]:
    run = subprocess.run([sys.executable, "-c", code], cwd=peer_process.HERE, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


@pytest.mark.filterwarnings("ignore")
def test_a_row_has_a_cell_for_each_column_and_both_simulate_the_same() -> None:
    row = dict(zip(fleets.header(options()), fleets.row("talos", options()) or (), strict=True))
    assert (row["fleet"], row["steps"]) == (f"{ROBOTS} × Talos, standing", "20")
    ours, theirs = map(float, row["centre of mass, m"].split(" / "))
    assert abs(ours - theirs) < 0.01
    assert "failed" not in row["remark"] and "warned" not in row["remark"]


def test_fleets_without_files_have_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FLEETS, "go1", Fleet("Go1", 1.0, lambda: None))
    assert fleets.row("go1", options()) is None


def test_without_mjbatch_its_cells_are_dashes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    missing = fleets.mjbatch_of(str(Path("no") / "such" / "python"))
    assert "No such file" in capsys.readouterr().out
    monkeypatch.setattr(fleets, "measured", lambda *_: fleets.Measured(2.0, 1.0, None, [None], [""] * 4))
    given = options()._replace(mjbatch=[missing])
    cells = list(zip(fleets.header(given), fleets.row("hopper", given) or (), strict=True))
    at = [name for name, _ in cells].index("mjbatch, µs")
    assert [cell for _, cell in cells[at : at + 2]] == ["-", "-"]


def test_a_robot_that_is_refused_has_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("no such joint")

    monkeypatch.setattr(fleets, "measured", refuse)
    row = fleets.row("hopper", options()) or []
    assert len(row) == len(fleets.header(options()))
    assert row[-1] == "not simulated: no such joint"


def test_vectors_are_limited_before_anything_is_compiled() -> None:
    found, refused = in_a_process(LIMITED)
    size, longer = found.split()
    assert int(size) <= 32 and longer == "False"
    assert refused.startswith("limit_vectors must be called before")


def test_a_peer_answers_until_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "answering.py"
    script.write_text(f"import sys; sys.path.insert(0, {str(peer_process.HERE)!r}); {ANSWERING}")
    monkeypatch.setattr(peer_process, "HERE", tmp_path)
    with PeerProcess("answering.py", ["a", "b"]) as peer:
        assert peer.ready == ["a", "b"]
        assert [peer.run(), peer.run()] == [0.25, 0.25]


def test_a_peer_that_cannot_begin_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failing.py").write_text("import no_such_package")
    monkeypatch.setattr(peer_process, "HERE", tmp_path)
    with pytest.raises(RuntimeError, match="No module named 'no_such_package'"):
        PeerProcess("failing.py", [])


def test_lines_of_peers_are_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", iter([peer_process.RUN]))
    peer_process.serve({"a": 1}, lambda: 2.0)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [{"a": 1}, 2.0]


@pytest.mark.parametrize(
    ("motors", "joint", "stiffness", "damping"),
    [
        (GO1_MOTORS, "FR_hip_joint", 15.895, 1.0119),
        (GO1_MOTORS, "RL_calf_joint", 35.764, 2.2768),
        (G1_MOTORS, "left_elbow_joint", 14.251, 0.90722),
        (G1_MOTORS, "waist_yaw_joint", 40.179, 2.5579),
        (G1_MOTORS, "left_knee_joint", 99.098, 6.3088),
        (G1_MOTORS, "waist_pitch_joint", 28.501, 1.8144),
        (G1_MOTORS, "right_wrist_yaw_joint", 16.778, 1.0681),
    ],
)
def test_gains_are_those_of_mjlab(motors: dict[str, Motor], joint: str, stiffness: float, damping: float) -> None:
    """Check four digits of the values that mjlab 1.6 computes from its motors."""
    motor = matched(motors, joint)
    assert motor is not None
    np.testing.assert_allclose([motor.stiffness, motor.damping], [stiffness, damping], rtol=1e-4)


def test_rollouts_of_mujoco_are_its_steps() -> None:
    spec = mujoco.MjSpec.from_string(
        "<mujoco><worldbody><body><joint name='a'/><geom size='0.1' pos='0.3 0 0'/></body></worldbody></mujoco>"
    )
    add_drive(spec, "a", 10.0, 0.1)
    m = spec.compile()
    data = mujoco.MjData(m)
    states, controls = np.zeros((2, 3)), np.full((2, 5, 1), 0.2)
    states[1, 1] = 0.1
    with MujocoFleet(m, states, 5, controls) as fleet:
        fleet.run()
        data.qpos[:], data.ctrl[:] = 0.1, 0.2
        mujoco.mj_step(m, data, 5)
        assert fleet.end_positions[1] == data.qpos
        heights, contacts = looked_at(m, fleet.ends)
    assert heights.shape == (2,) and not contacts.any()
