"""The window: one robot on one page."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..names import missing_attribute
from ..robot.robot import Robot
from ..robot.trajectory import Trajectory
from .figure import FACES, Figure, Layer
from .html import RATE, html_of
from .nodes import FIELD, RobotScene
from .panels import JointsPanel, LookPanel
from .player import Player
from .poses import looking_at
from .server import LOOPBACK, PORT, serve, stop

Array = np.ndarray[Any, np.dtype[Any]]

LIVE_RATE = 60.0  # states a second that `live` sends at most


class Window:
    """A page that shows a robot, at `url`.

    `ground` is the height of a grid [m], None for no grid, or "below" for one under the robot as it is at first.
    Meshes that have more than `faces` triangles together are drawn with fewer; the page can show them all. Only this machine
    can see the page unless `host` says otherwise, and pages of other sites are refused. `port` 0 takes any that is free;
    without one it is 8080, or the next that is free. A line on standard error says where the page is, unless `quiet`. Raises
    OSError where the port is taken.

    Usable from several threads. A context manager: leaving it closes the window, after which it raises RuntimeError.
    """

    if not TYPE_CHECKING:  # type checkers would take every attribute to be there
        __getattr__ = missing_attribute

    def __init__(
        self,
        robot: Robot,
        trajectory: Trajectory | None = None,
        host: str = LOOPBACK,
        port: int | None = None,
        *,
        q: Any = None,
        ground: float | Literal["below"] | None = "below",
        faces: int = FACES,
        quiet: bool = False,
    ) -> None:
        self.robot = robot
        self.figure = Figure(robot, faces)
        self.trajectory: Trajectory | None = None
        self._lock = threading.RLock()
        self._player: Player | None = None
        self._due = -np.inf
        first = trajectory.q[0] if trajectory is not None and len(trajectory) else robot.start()
        self._heights: list[tuple[Array, Array, Array]] = []
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
        """The panels beside the scene."""
        gui = self._server.gui
        gui.main_panel.dock_right()
        self._joints = JointsPanel(gui, self._scene, self._moved_by_hand, self._lock)
        self._look = LookPanel(gui, self._scene, self._lock)
        for note in self.figure.notes:
            print(f"featherweight: {note}: drawn from the body's inertia", file=sys.stderr)
        if trajectory is not None:
            self.play(trajectory, start=False)

    # what the page shows

    @property
    def url(self) -> str:
        """Where the page is."""
        host = self._server.get_host()
        return f"http://{f'[{host}]' if ':' in host else host}:{self._server.get_port()}"

    @property
    def q(self) -> Array:
        """The configuration (nq,) that is shown, a copy."""
        return self._scene.q.copy()

    def show(self, q: Any, points: Any = None, forces: Any = None) -> None:
        """Show a configuration (nq,), and contact forces (n, 3) [N] at points (n, 3) [m] in the world."""
        q = self._configuration(q)
        with self._opened("show"):
            self._scene.move(q, points, forces)
            self._joints.follow(q)

    def live(self, q: Any, points: Any = None, forces: Any = None) -> None:
        """`show` for a simulation that runs: all but sixty states a second are passed over, and sliders do not follow."""
        now = time.perf_counter()
        if now >= self._due:
            self._due = max(self._due + 1.0 / LIVE_RATE, now)
            with self._opened("live"):
                self._scene.move(self._configuration(q), points, forces)

    def play(self, trajectory: Trajectory, *, start: bool = True) -> None:
        """Take a trajectory into the time line, in place of what is there, and play it if `start`."""
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
    def camera(self) -> tuple[Array, Array]:
        """Where the window puts the camera (3,) [m] in the world, and the point (3,) [m] that it looks at."""
        return self._scene.camera

    def look(self, position: Any, at: Any) -> None:
        """Put the camera at a position (3,) [m] in the world, looking at a point (3,) [m]."""
        with self._opened("look"):
            self._scene.look(position, at)

    def add_heights(self, x: Any, y: Any, z: Any) -> None:
        """Draw ground of heights z (n, m) [m] above the points x (n,) and y (m,) [m]."""
        with self._opened("add_heights"):
            self._scene.add_heights(x, y, z)
            self._heights.append((x, y, z))

    # what stays

    def save(self, path: str | os.PathLike[str], rate: float = RATE) -> None:
        """Write what is shown, in motion if there is a trajectory, as one HTML file that needs neither server nor network.

        `rate` is how many states are kept of each second of simulated time.
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
            html = html_of(scene, self.trajectory, rate)
        finally:
            stop(server)
        Path(path).write_text(html, encoding="utf-8")

    def picture(self, size: tuple[int, int], *, timeout: float = 30.0) -> Array:
        """Return what an open page draws from the window's camera, without the panels: (height, width, 3) in 0..255.

        `size` is (width, height). Raises RuntimeError where no page is open, TimeoutError where it does not answer.
        """
        self._check_open("picture")
        clients = list(self._server.get_clients().values())
        if not clients:
            raise RuntimeError(f"picture: no browser has {self.url} open")
        position, at = self._scene.camera
        camera = {"position": position, "wxyz": looking_at(position, at), "fov": FIELD}
        drawn: Array = clients[0].get_render(size[1], size[0], **camera, transport_format="png", timeout=timeout)
        opacity = drawn[..., 3:] / 255.0
        mixed: Array = np.round(drawn[..., :3] * opacity + 255.0 * (1.0 - opacity)).astype(np.uint8)
        return mixed

    def close(self) -> None:
        """Stop serving the page. Once is enough; more does nothing."""
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

    def _configuration(self, q: Any) -> Array:
        given: Array = np.asarray(q, dtype=np.float64)
        if given.shape != (self.robot.nq,):
            raise ValueError(f"{self.robot.name}: a configuration has shape ({self.robot.nq},); got {given.shape}")
        return given

    def _start(self) -> Array:
        return self._scene.q if self.trajectory is None else self._configuration(self.trajectory.q[0])

    def _lowest(self) -> float | None:
        """Just below the robot, unless the file has a ground of its own."""
        return None if self.figure.planes(Layer.VISUAL) else float(self._scene.box[0, 2])

    def _furnish(self, scene: RobotScene) -> None:
        if self._ground is not None:
            scene.add_ground(self._ground)
        for x, y, z in self._heights:
            scene.add_heights(x, y, z)

    def _moved_by_hand(self, q: Array) -> None:
        if self._player is not None and self._player.clock.playing:
            self._player.pause()
        self._scene.move(q)

    def _draw(self, k: int) -> None:
        assert self.trajectory is not None
        with self._lock:
            self._scene.move(self.trajectory.q[k], *self.trajectory.contacts(k))

    def _rest(self) -> None:
        """Let the sliders follow where playback rests."""
        with self._lock:
            self._joints.follow(self._scene.q)
