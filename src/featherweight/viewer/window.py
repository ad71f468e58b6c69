"""Windows: one robot on one page in the browser, HTML files of it, and windows that follow a simulation."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array, Vector
from ..checks import Count, PixelSize, Positive, array_of, checked
from ..names import SuggestsNames
from ..robot.robot import Robot
from ..robot.trajectory import Trajectory
from ..simulation import Simulation
from ..summaries import visible
from .clock import frames_to_draw
from .figure import FACES, FIELD, Figure, Layer
from .marks import quaternions
from .nodes import RobotScene
from .panels import JointsPanel, LookPanel
from .player import Player
from .server import LOOPBACK, PORT, serve, stop
from .simulation_pictures import heights_of, level_of
from .view_arguments import Ground, Port, arrows_of, camera_axes, view_points

RATE = 30.0  # frames that an HTML file stores of each second of simulated time
LIVE_RATE = 60.0  # [Hz] greatest rate of states that `live` sends


class Window(SuggestsNames):
    """A page in the browser that shows a robot, at `url`.

    `ground` is the height of a grid [m], None for no grid, or "below" for a grid under the robot's initial position. If the
    meshes have more than `faces` triangles together, the page draws simplified meshes; the page can switch to all triangles.
    Only this machine can see the page unless `host` says otherwise, and the server refuses requests from pages of other sites.
    `port` 0 takes any free port; the default is the first free port from 8080 on. Unless `quiet`, a line on standard error says
    where the page is. Raises OSError if the port is taken.

    A window can be used from several threads. It is a context manager that closes the window at the end; a closed window raises
    RuntimeError.
    """

    @checked
    def __init__(
        self,
        robot: Robot,
        trajectory: Trajectory | None = None,
        host: str = LOOPBACK,
        port: Port = None,
        *,
        q: ArrayLike | None = None,
        ground: Ground = "below",
        faces: Count = FACES,
        quiet: bool = False,
    ) -> None:
        self.robot = robot
        self.figure = Figure(robot, faces)
        self.trajectory: Trajectory | None = None
        self._lock = threading.RLock()
        self._player: Player | None = None
        self._due = -np.inf
        first = trajectory.q[0] if trajectory is not None and len(trajectory) else robot.start()
        self._heights: list[tuple[ArrayLike, ArrayLike, ArrayLike]] = []
        self.closed = False
        self._server = serve(host, port, robot.name)
        try:
            self._scene = RobotScene(self._server, self.figure, self._configuration(first if q is None else q))
            self._ground = self._lowest() if ground == "below" else ground
            self._furnish(self._scene)
            self._fill(trajectory)
        except BaseException:
            stop(self._server)
            raise
        if not quiet:
            taken = f" (port {PORT} is taken)" if port is None and self._server.get_port() != PORT else ""
            print(
                f"featherweight: open {self.url} in a browser{taken}; the page lasts until close() or the end of the program",
                file=sys.stderr,
                flush=True,
            )

    def _fill(self, trajectory: Trajectory | None) -> None:
        """Add the panels beside the scene."""
        gui = self._server.gui
        gui.main_panel.dock_right()
        self._joints = JointsPanel(gui, self._scene, self._moved_by_hand, self._lock)
        self._look = LookPanel(gui, self._scene, self._lock)
        for note in self.figure.notes:
            print(f"featherweight: {visible(note)}: drawn from the body's inertia", file=sys.stderr)
        if trajectory is not None:
            self.play(trajectory, start=False)

    # what the page shows

    @property
    def url(self) -> str:
        """The address of the page."""
        host = self._server.get_host()
        return f"http://{f'[{host}]' if ':' in host else host}:{self._server.get_port()}"

    def _repr_html_(self) -> str:
        """Return the page in a frame, for notebooks on this machine; text if the window is closed."""
        if self.closed:
            return "<p>This window is closed.</p>"
        link = f'<a href="{self.url}" target="_blank">{self.url}</a>'
        return f'<iframe src="{self.url}" style="width: 100%; height: 480px; border: 0"></iframe><p>{link}</p>'

    @property
    def q(self) -> Vector:
        """A copy of the displayed configuration (nq,)."""
        return self._scene.q.copy()

    def show(self, q: ArrayLike, points: ArrayLike | None = None, forces: ArrayLike | None = None) -> None:
        """Show a configuration (nq,), and contact forces (n, 3) [N] at points (n, 3) [m] in the world frame."""
        q, (points, forces) = self._configuration(q), arrows_of(points, forces)
        with self._opened("show"):
            self._scene.move(q, points, forces)
            self._joints.follow(q)

    def live(self, q: ArrayLike, points: ArrayLike | None = None, forces: ArrayLike | None = None) -> None:
        """Show a state of a running simulation: at most 60 states per second are drawn, and the sliders do not follow.

        The arguments are those of `show`.
        """
        q, (points, forces) = self._configuration(q), arrows_of(points, forces)
        now = time.perf_counter()
        if now >= self._due:
            self._due = max(self._due + 1.0 / LIVE_RATE, now)
            with self._opened("live"):
                self._scene.move(q, points, forces)

    @checked
    def play(self, trajectory: Trajectory, *, start: bool = True) -> None:
        """Load a trajectory into the timeline, in place of the previous one, and play it if `start`."""
        if not len(trajectory):
            raise ValueError("play: the trajectory has no states")
        self._configuration(trajectory.q[0])
        self._check_open("play")
        if self._player is not None:
            self._player.close()
        self.trajectory = trajectory
        self._player = Player(self._server.gui, self.robot, trajectory, self._draw, self._rest)
        if start:
            self._player.play()

    @property
    def camera(self) -> tuple[Vector, Vector]:
        """Position of the window's camera (3,) [m] in the world frame, and the point (3,) [m] that it looks at."""
        return self._scene.camera

    def look(self, position: ArrayLike, at: ArrayLike) -> None:
        """Place the camera at `position` (3,) [m] in the world frame, looking at the point `at` (3,) [m]."""
        points = view_points(position, at)
        with self._opened("look"):
            self._scene.look(*points)

    def add_heights(self, x: ArrayLike, y: ArrayLike, z: ArrayLike) -> None:
        """Draw ground of heights z (n, m) [m] at the points x (n,) and y (m,) [m]."""
        with self._opened("add_heights"):
            self._scene.add_heights(x, y, z)
            self._heights.append((x, y, z))

    # # files and pictures

    @checked
    def save(self, path: str | os.PathLike[str], fps: Positive = RATE) -> None:
        """Save the displayed scene as one HTML file that needs neither server nor network; with a trajectory, it moves.

        `fps` is the number of stored states per second of simulated time.
        """
        self._check_open("save")
        server = serve(LOOPBACK, 0)
        try:
            with self._lock:
                scene = RobotScene(server, self.figure, self._start())
                self._furnish(scene)
                scene.show_layer(self._scene.layer)
                scene.set_opacity(self._scene.opacity)
                scene.marks.like(self._scene.marks)
                scene.look(*self._scene.camera)
            html = html_of(scene, self.trajectory, fps)
        finally:
            stop(server)
        Path(path).write_text(html, encoding="utf-8")

    @checked
    def picture(self, size: PixelSize, *, timeout: Positive = 30.0) -> Array:
        """Return the view of the window's camera from an open page, without panels: (height, width, 3) in 0..255.

        `size` is (width, height). Raises RuntimeError if no page is open, and TimeoutError if the page does not answer.
        """
        self._check_open("picture")
        clients = list(self._server.get_clients().values())
        if not clients:
            raise RuntimeError(f"picture: no browser has {self.url} open")
        position, at = self._scene.camera
        camera = {"position": position, "wxyz": quaternions(camera_axes(at - position).T), "fov": FIELD}
        drawn: Array = clients[0].get_render(size[1], size[0], **camera, transport_format="png", timeout=timeout)
        opacity = drawn[..., 3:] / 255.0
        mixed: Array = np.round(drawn[..., :3] * opacity + 255.0 * (1.0 - opacity)).astype(np.uint8)
        return mixed

    def close(self) -> None:
        """Stop serving the page. Further calls do nothing."""
        with self._lock:
            was_closed, self.closed = self.closed, True
        if self._player is not None:
            self._player.close()
            self._player = None
        if not was_closed:
            stop(self._server)

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # within

    def _check_open(self, method: str) -> None:
        if self.closed:
            raise RuntimeError(f"{method}: the window at {self.url} is closed; open another Window")

    @contextmanager
    def _opened(self, method: str) -> Iterator[None]:
        with self._lock:
            self._check_open(method)
            yield

    def _configuration(self, q: ArrayLike) -> Vector:
        return array_of(f"{self.robot.name}: q", q, self.robot.nq)

    def _start(self) -> Vector:
        return self._scene.q if self.trajectory is None else self._configuration(self.trajectory.q[0])

    def _lowest(self) -> float | None:
        """Return a height just below the robot; None if the file has its own ground."""
        return None if self.figure.planes(Layer.VISUAL) else float(self._scene.box[0, 2])

    def _furnish(self, scene: RobotScene) -> None:
        if self._ground is not None:
            scene.add_ground(self._ground)
        for x, y, z in self._heights:
            scene.add_heights(x, y, z)

    def _moved_by_hand(self, q: Vector) -> None:
        if self._player is not None and self._player.clock.playing:
            self._player.pause()
        self._scene.move(q)

    def _draw(self, k: int) -> None:
        assert self.trajectory is not None
        with self._lock:
            self._scene.move(self.trajectory.q[k], *self.trajectory.contacts(k))

    def _rest(self) -> None:
        """Move the sliders to the configuration at which playback has stopped."""
        with self._lock:
            self._joints.follow(self._scene.q)


def html_of(scene: RobotScene, trajectory: Trajectory | None = None, rate: float = RATE) -> str:
    """Return HTML of a scene at rest, or moving along a trajectory with at most `rate` frames per second of simulated time."""
    if trajectory is None:
        return str(scene.server.get_scene_serializer().as_html())
    chosen, lasts = frames_to_draw(trajectory, rate)
    scene.move(trajectory.q[chosen[0]], *trajectory.contacts(int(chosen[0])))
    recorder = scene.server.get_scene_serializer()
    for k, last in zip(chosen, lasts, strict=True):
        scene.move(trajectory.q[k], *trajectory.contacts(int(k)))
        recorder.insert_sleep(float(last))
    return str(recorder.as_html())


@checked
def view(simulation: Simulation, host: str = LOOPBACK, port: int | None = None) -> Window:
    """Open a window that shows the robot of a simulation (the first of many) and its ground, and follows `Simulation.run`.

    `host` and `port` are as for `Window`.
    """
    window = Window(
        simulation.robot, host=host, port=port, q=np.atleast_2d(simulation.q)[0], ground=level_of(simulation.ground)
    )
    heights = heights_of(simulation.ground)
    if heights is not None:
        window.add_heights(*heights)
    simulation.watch(window)
    return window
