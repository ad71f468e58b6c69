"""Tests of the window without a browser: configurations, playback, and messages."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import featherweight
from featherweight.model.generators import MOVING, random_tree
from featherweight.model.types import JointType
from featherweight.robot.trajectory import Trajectory
from patience import PATIENCE
from viewer.robots import HOSTILE, arm, hostile_linkage, linkage

pytest.importorskip("viser")

from featherweight.viewer import Window
from featherweight.viewer.clock import Clock, frames_to_draw, instant_at
from featherweight.viewer.coordinates import joint_numbers, settable_coordinates, with_joint_numbers
from featherweight.viewer.figure import Layer
from featherweight.viewer.marks import Mark, described_loops, loop_lines


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Window]:
    with Window(arm(tmp_path), port=0) as made:
        yield made


def swing(robot: featherweight.Robot, count: int = 101, step: float = 0.01) -> Trajectory:
    times = 5.0 + step * np.arange(count)
    q = np.stack([np.sin(times), np.cos(times)], axis=1)[:, : robot.nq]
    points = np.tile([[0.1, 0.2, 0.0]], (count, 1))
    return Trajectory(
        times, q, np.zeros((count, robot.nv)), np.arange(count + 1), points, np.tile([[0.0, 0.0, 9.0]], (count, 1))
    )


def assert_drawn_at(window: Window, q: np.ndarray) -> None:
    for body in window.robot.bodies:
        node, T = window._scene._nodes[body.name], window.robot.frame_placement(body.name)(q)
        assert node.position == pytest.approx(T[:3, 3])
        np.testing.assert_allclose(Rotation.from_quat(node.wxyz, scalar_first=True).as_matrix(), T[:3, :3], atol=1e-12)


def test_importing_the_library_does_not_import_the_window() -> None:
    code = "import sys, featherweight, featherweight.cli; print('viser' in sys.modules, 'trimesh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False False\n"


def test_without_its_packages_the_window_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ImportError, match=r"pip install .*featherweight\[window\]"):
        from featherweight.viewer import Window as _  # noqa: F401


def test_the_server_listens_on_loopback_only_unless_asked(window: Window) -> None:
    assert window.url.startswith("http://127.0.0.1:")
    port = int(window.url.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE):
        pass
    if not Path("/proc/net/tcp").exists():
        pytest.skip("this system has no list of listening sockets")
    listening = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"]
    assert [a for a in listening if a.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]


def test_a_host_that_is_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="address"):
        Window(arm(tmp_path), host="192.0.2.1", port=0)


def test_bodies_are_drawn_where_the_robot_has_them(window: Window) -> None:
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = window.robot.random_configuration(rng=rng)
        window.show(q)
        assert_drawn_at(window, q)
        assert window.q == pytest.approx(q)


def test_wrong_configurations_are_refused(window: Window) -> None:
    with pytest.raises(ValueError, match=r"shape \(2,\); got shape \(3,\)"):
        window.show(np.zeros(3))


def test_live_passes_over_states_that_come_too_fast(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a thousand states per second, by the test's clock: sixty are drawn, after the first."""
    now, drawn = 100.0, set()
    monkeypatch.setattr("featherweight.viewer.window.time", SimpleNamespace(perf_counter=lambda: now))
    for k in range(1000):
        window.live(np.array([1e-3 * k, 0.0]))
        drawn.add(window.q[0])
        now += 1e-3
    assert len(drawn) == 61
    now += 0.05
    window.live(np.array([1.0, 0.0]))
    assert window.q[0] == 1.0


def test_sliders_have_the_limits_of_the_joints_and_follow(window: Window) -> None:
    shoulder, elbow = window._joints.sliders
    assert (shoulder.min, shoulder.max) == (-1.5, 1.25)
    assert (elbow.min, elbow.max) == pytest.approx((-np.pi, np.pi))
    window.show([0.5, -0.25])
    assert (shoulder.value, elbow.value) == (0.5, -0.25)


def test_numbers_of_every_kind_of_joint_are_read_as_they_were_written() -> None:
    robot = featherweight.build(random_tree(40, rng=4))
    assert {j.type for j in robot.joints} == set(MOVING)
    q = robot.random_configuration(rng=3)
    again = q
    for joint in robot.joints:
        again = with_joint_numbers(joint, again, joint_numbers(joint, again))
    assert robot.difference(q, again) == pytest.approx(np.zeros(robot.nv), abs=1e-9)
    numbers = {JointType.FLOATING: 6, JointType.SPHERICAL: 3, JointType.PLANAR: 3}
    assert len(settable_coordinates(robot)) == sum(numbers.get(j.type, 1) for j in robot.joints)


def test_loops_are_closed_by_the_joints_that_depend() -> None:
    robot = linkage()
    with Window(robot, port=0) as window:
        assert [c.label for c in window._joints.coordinates] == ["crank_hinge"]
        window._joints._set(0, 0.3, Client())
        assert window.q[0] == pytest.approx(0.3)
        assert np.abs(robot.residual(window.q)).max() < 1e-9
        assert_drawn_at(window, window.q)


class Client:
    """A page that records its messages."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def add_notification(self, title: str, body: str, **_: object) -> None:
        self.told.append(body)


def test_a_loop_that_cannot_be_closed_leaves_the_robot_where_it_was() -> None:
    robot = linkage()
    with Window(robot, port=0) as window:
        window._joints._set(0, 0.3, Client())
        before, client = window.q, Client()
        window._joints._set(0, -np.pi / 2, client)
        assert ["cannot be closed" in text for text in client.told] == [True]
        assert window.q == pytest.approx(before)
        assert window._joints.sliders[0].value == pytest.approx(0.3)


def test_lines_of_a_closed_loop_meet() -> None:
    robot = linkage()
    q = robot.random_configuration(rng=0)
    bodies = [b.name for b in robot.bodies]
    placements = dict(zip(bodies, robot.frame_placement(bodies)(q), strict=True))
    [(a, at_a), (left, right), (at_b, b)] = loop_lines(robot, placements)["loops"]
    assert left == pytest.approx(right, abs=1e-6)
    assert at_a == pytest.approx(left)
    assert a == pytest.approx(placements["coupler"][:3, 3], abs=1e-6)
    assert b == pytest.approx(placements["rocker"][:3, 3], abs=1e-6)
    assert np.linalg.norm(at_b - b) == pytest.approx(0.5, rel=1e-6)
    assert "pin: revolute, coupler – rocker" in described_loops(robot)


def test_marks_and_layers_can_all_be_shown() -> None:
    with Window(linkage(), port=0) as window:
        for mark in Mark:
            window._scene.marks.show(mark, True)
        for layer in Layer:
            window._scene.show_layer(layer)
        window.show(window.robot.random_configuration(rng=1), [[0.0, 0.0, 0.0]], [[0.0, 0.0, 10.0]])
        center = window._scene.marks._nodes[Mark.CENTER][0].position
        assert center == pytest.approx(window.robot.center_of_mass(window.q))


def test_force_arrows_begin_at_their_points_and_have_the_length_of_the_force(window: Window) -> None:
    marks = window._scene.marks
    weight = window.robot.mass * 9.81
    window.show([0.0, 0.0], [[0.1, 0.2, 0.3], [0.0, 0.0, 0.0]], [[0.0, 0.0, weight], [weight, 0.0, 0.0]])
    [arrows] = marks._nodes[Mark.FORCES]
    assert arrows.points[0, 0] == pytest.approx([0.1, 0.2, 0.3])
    lengths = np.linalg.norm(arrows.points[:, 1] - arrows.points[:, 0], axis=1)
    marks.scale_forces(2.0)
    longer = np.linalg.norm(arrows.points[:, 1] - arrows.points[:, 0], axis=1)
    assert lengths[0] == pytest.approx(lengths[1])
    assert longer == pytest.approx(2.0 * lengths)
    window.show([0.0, 0.0])
    assert not arrows.visible


def test_scrubbing_draws_the_state_of_that_time(window: Window) -> None:
    trajectory = swing(window.robot)
    window.play(trajectory, start=False)
    assert window._player is not None
    for at, k in ((0.0, 0), (0.345, 34), (0.5, 50), (9.0, 100)):
        window._player.seek(at)
        assert_drawn_at(window, trajectory.q[k])
        assert window._joints.sliders[0].value == pytest.approx(np.clip(trajectory.q[k, 0], -1.5, 1.25))


def test_playing_goes_on_and_ends(window: Window) -> None:
    trajectory = swing(window.robot, count=11)
    window.play(trajectory, start=False)
    player = window._player
    assert player is not None
    player.clock.loop = False
    player.play()
    end = time.monotonic() + PATIENCE
    while player._button.label == "Pause" and time.monotonic() < end:
        time.sleep(0.01)
    assert_drawn_at(window, trajectory.q[-1])


def test_a_clock_runs_at_its_speed_and_begins_again() -> None:
    clock = Clock(duration=2.0, speed=0.5)
    clock.advance(1.0)
    assert clock.time == 0.0
    clock.play()
    clock.advance(1.0)
    assert clock.time == 0.5
    clock.advance(4.0)
    assert clock.time == 0.5 and clock.playing
    clock.loop = False
    clock.advance(10.0)
    assert clock.time == 2.0 and not clock.playing
    clock.play()
    assert clock.time == 0.0


@pytest.mark.parametrize(("step", "rate"), [(0.001, 30.0), (0.01, 60.0), (0.1, 30.0), (1 / 30, 30.0)])
def test_recordings_keep_few_states_and_all_the_time(step: float, rate: float) -> None:
    times = 3.0 + step * np.arange(int(2.0 / step) + 1)
    trajectory = Trajectory(times, np.zeros((len(times), 1)), np.zeros((len(times), 1)))
    chosen, lasts = frames_to_draw(trajectory, rate)
    assert len(chosen) <= 2.0 * rate + 1
    assert len(chosen) == min(len(times), round(2.0 * rate) + 1)
    assert lasts.sum() == pytest.approx(times[-1] - times[0])
    assert chosen[0] == 0 and instant_at(trajectory, 2.0) == len(times) - 1


def test_heights_must_fit_their_points(window: Window) -> None:
    window.add_heights([0.0, 1.0, 2.0], [0.0, 1.0], np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"z must have shape \(3, 2\)"):
        window.add_heights([0.0, 1.0, 2.0], [0.0, 1.0], np.zeros((2, 3)))


def test_a_recording_is_one_file_that_names_no_server(window: Window, tmp_path: Path) -> None:
    window.play(swing(window.robot), start=False)
    path = tmp_path / "swing.html"
    window.save(path)
    text = path.read_text(encoding="utf-8")
    assert "__VISER_EMBED_DATA__" in text
    assert window.url.rsplit(":", 1)[1] not in text[:2000]
    assert path.stat().st_size < 3_000_000


@pytest.mark.parametrize("port", [-1, 65536, 10**20])
def test_what_is_no_port_is_refused(tmp_path: Path, port: int) -> None:
    with pytest.raises(ValueError, match=rf"port must be a whole number from 0 .*got {port}"):
        Window(arm(tmp_path), port=port)


def test_a_port_that_is_taken_is_refused_by_name(window: Window, tmp_path: Path) -> None:
    port = int(window.url.rsplit(":", 1)[1])
    with pytest.raises(OSError, match=f"port {port} of 127.0.0.1 is taken; choose another"):
        Window(arm(tmp_path), port=port)


def test_without_a_port_the_next_free_one_is_taken_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        for module in ("server", "window"):
            monkeypatch.setattr(f"featherweight.viewer.{module}.PORT", taken)
        with Window(arm(tmp_path)) as window:
            assert int(window.url.rsplit(":", 1)[1]) in range(taken + 1, taken + 100)
            assert f"open {window.url} in a browser (port {taken} is taken); " in capsys.readouterr().err


def test_a_line_says_where_the_page_is_and_how_it_ends(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Check the window of a robot, and that of a simulation."""
    robot = arm(tmp_path)
    sim = featherweight.Simulation(robot, joints=featherweight.JointOptions(limits=False, dry_friction=False))
    for made in (lambda: Window(robot, port=0), lambda: sim.view(port=0)):
        with made() as window:
            line = f"featherweight: open {window.url} in a browser; the page lasts until close() or the end of the program\n"
            assert capfd.readouterr() == ("", line)


def test_a_window_that_is_closed_says_so(tmp_path: Path) -> None:
    with Window(arm(tmp_path), port=0) as window:
        trajectory = swing(window.robot)
    window.close()
    calls: dict[str, Callable[[], Any]] = {
        "show": lambda: window.show([0.0, 0.0]),
        "live": lambda: window.live([0.0, 0.0]),
        "play": lambda: window.play(trajectory),
        "look": lambda: window.look([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        "add_heights": lambda: window.add_heights([0.0, 1.0], [0.0, 1.0], np.zeros((2, 2))),
        "save": lambda: window.save(tmp_path / "page.html"),
        "picture": lambda: window.picture((10, 10)),
    }
    for name, call in calls.items():
        with pytest.raises(RuntimeError, match=f"^{name}: the window at {window.url} is closed; open another"):
            call()
    assert not (tmp_path / "page.html").exists()


def test_opening_and_closing_print_nothing_and_leave_standard_output_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that `sys.stdout` is never replaced, while other threads print."""
    seen = set()
    out = sys.stdout

    def watch(frame: object, event: str, arg: object) -> None:
        seen.add(sys.stdout is out)

    robot = arm(tmp_path)
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        with Window(robot, port=0, quiet=True) as window:
            thread = window._server._websock_server._server_thread
        thread.join(timeout=PATIENCE)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert not thread.is_alive()
    assert seen == {True}
    assert capfd.readouterr() == ("", "")


class Tags(HTMLParser):
    """Parser of the elements of a page, and of its words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.words += data


def test_names_and_paths_of_files_are_words_in_the_page_and_nothing_else(tmp_path: Path) -> None:
    with pytest.warns(featherweight.ModelWarning, match="meshes cannot be read"):
        shown = Window(hostile_linkage(HOSTILE), port=0)
    with shown as window:
        messages = list(window._server._websock_server._broadcast_buffer.message_from_id.values())
        pages = [m.props.content for m in messages if type(m).__name__ == "GuiHtmlMessage"]
        pages += [m.updates["content"] for m in messages if "content" in getattr(m, "updates", {})]
        markdown = [m.updates["_markdown"] for m in messages if "_markdown" in getattr(m, "updates", {})]
    told = [Tags(p) for p in set(pages) if p]
    assert len(told) == 2
    for page in told:
        assert page.tags == {"div", "ul", "li"}
        assert HOSTILE in page.words
    assert not [m for m in markdown if "window.ran" in m]


def test_a_page_cannot_ask_for_a_tunnel_to_the_world(window: Window) -> None:
    assert window._server.request_share_url() is None
    assert window._server._share_tunnel is None


def test_no_page_no_picture(window: Window) -> None:
    with pytest.raises(RuntimeError, match="no browser"):
        window.picture((10, 10))
