"""Tests of the command that opens the window."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight import cli, viewer
from patience import PATIENCE
from viewer.robots import ARM

pytest.importorskip("viser")


@pytest.fixture
def arm(tmp_path: Path) -> str:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return str(path)


def test_view_serves_the_page_until_it_is_interrupted(
    arm: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import urllib.request

    seen: list[int] = []

    def interrupted(_: float) -> None:
        url = capsys.readouterr().out.split()[1]
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(url, timeout=PATIENCE) as page:
            seen.append(page.status)
        raise KeyboardInterrupt

    monkeypatch.setattr("featherweight.cli.console.time.sleep", interrupted)
    assert cli.main(["view", arm, "--port", "0"]) == 0
    assert seen == [200]


def test_view_says_that_a_port_is_taken(arm: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert cli.main(["view", arm, "--port", str(port)]) == 1
    assert f"port {port} of 127.0.0.1 is taken; choose another" in capsys.readouterr().err


@pytest.mark.parametrize("robots", [(), (3,)])
def test_view_saves_a_recording_and_ends(
    arm: str, robots: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check that the recording of many robots is that of the first."""
    states, page = tmp_path / "swing.npz", tmp_path / "swing.html"
    times = np.linspace(0.0, 1.0, 51)
    q = np.stack([np.sin(times), times], axis=1).reshape(51, *(1 for _ in robots), 2)
    np.savez(states, times=times, q=np.broadcast_to(q, (51, *robots, 2)), v=np.zeros((51, *robots, 2)))
    assert cli.main(["view", arm, "--trajectory", str(states), "--save", str(page)]) == 0
    assert capsys.readouterr().out == f"Recording: {page}\n"
    assert "__VISER_EMBED_DATA__" in page.read_text(encoding="utf-8")


def test_view_draws_pictures_without_a_browser(arm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    still, film, states = tmp_path / "arm.png", tmp_path / "arm.gif", tmp_path / "swing.npz"
    times = np.linspace(0.0, 0.2, 21)
    np.savez(states, times=times, q=np.stack([times, times], axis=1), v=np.zeros((21, 2)))
    assert cli.main(["view", arm, "--picture", str(still)]) == 0
    assert cli.main(["view", arm, "--trajectory", str(states), "--picture", str(film)]) == 0
    assert capsys.readouterr().out == f"Picture: {still}\nPicture: {film}\n"
    assert still.read_bytes().startswith(b"\x89PNG") and film.read_bytes().startswith(b"GIF")
    for name, said in (("arm.jpeg", ".gif or .mp4"), ("arm.gif", "--trajectory")):
        assert cli.main(["view", arm, "--picture", str(tmp_path / name)]) == 1
        assert said in capsys.readouterr().err


def test_view_draws_the_picture_of_a_camera(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mujoco")
    file, plain, side = tmp_path / "arm.xml", tmp_path / "plain.png", tmp_path / "side.png"
    file.write_text("""<mujoco><worldbody><camera name="side" pos="0 -2 0" euler="90 0 0"/>
      <body><joint/><geom size="0.1 0.1 0.3" type="box"/></body></worldbody></mujoco>""")
    assert cli.main(["view", str(file), "--picture", str(plain)]) == 0
    assert cli.main(["view", str(file), "--picture", str(side), "--camera", "side"]) == 0
    assert side.read_bytes().startswith(b"\x89PNG") and side.read_bytes() != plain.read_bytes()
    capsys.readouterr()
    for camera, wanted, said in (("top", ["--picture", str(side)], "no camera 'top'; it has side"), ("side", [], "--picture")):
        assert cli.main(["view", str(file), *wanted, "--camera", camera]) == 1
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"q": np.zeros((3, 2)), "v": np.zeros((3, 2))}, "no array times"),
        ({"times": np.zeros(3), "q": np.zeros((3, 5)), "v": np.zeros((3, 2))}, "q must have shape (3, 2) for arm"),
        ({"times": np.zeros(0), "q": np.zeros((0, 2)), "v": np.zeros((0, 2))}, "times must have shape"),
    ],
)
def test_view_names_what_is_wrong_with_a_trajectory(
    arm: str, tmp_path: Path, arrays: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "states.npz"
    np.savez(path, **arrays)
    assert cli.main(["view", arm, "--trajectory", str(path)]) == 1
    error = capsys.readouterr().err
    assert said in error and str(path) in error


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False"])
def test_view_refuses_files_that_are_no_trajectory(
    arm: str, tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "states.npz"
    path.write_bytes(content)
    assert cli.main(["view", arm, "--trajectory", str(path)]) == 1
    assert "no .npz file" in capsys.readouterr().err


def test_view_names_a_file_that_is_missing(arm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["view", arm, "--trajectory", str(tmp_path / "nothing.npz")]) == 1
    assert "nothing.npz" in capsys.readouterr().err


def test_a_simulation_shows_itself_and_its_motion_can_be_kept(tmp_path: Path) -> None:
    """Check the window of `Simulation.view`: it shows where `run` leaves the robot, and its time line has the motion."""
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    robot = fw.load(path)
    sim = fw.Simulation(robot, 1e-3, q=np.array([0.3, 0.0]), joints=fw.JointOptions(limits=False, dry_friction=False))
    with sim.view(port=0) as window:
        assert window.url.startswith("http://127.0.0.1:")
        motion = sim.run(0.2, every=10)
        assert window.trajectory is motion
        window.show(motion.q[-1])
        np.testing.assert_array_equal(window.q, sim.q)
    sim.run(0.01)  # its window is closed
    assert window.trajectory is motion
    motion.save(tmp_path / "motion.npz")
    kept = fw.Trajectory.load(tmp_path / "motion.npz", robot)
    for name in ("times", "q", "v", "first", "points", "forces"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(motion, name))


@pytest.mark.parametrize(
    "ground",
    [fw.Plane(point=(0, 0, -1)), fw.Plane(normal=(0.3, 0, 1)), fw.HeightField(np.zeros((3, 4)) - 1, (-1, 1), (-2, 2))],
)
def test_the_ground_of_a_simulation_is_drawn(tmp_path: Path, ground: Any) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    robot = fw.load(path)
    sim = fw.Simulation(robot, spheres=[fw.ContactSphere(robot.bodies[-1].name, 0.01)], ground=ground)
    with viewer.view(sim, port=0) as window:
        flat = isinstance(ground, fw.Plane) and ground.normal[2] == 1.0
        assert (window._ground == -1.0) == flat
        assert bool(window._heights) == (not flat)
