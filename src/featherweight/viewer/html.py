"""A motion as one HTML file that plays in any browser, without a server or a network."""

from __future__ import annotations

import contextlib
import io
import socket
import threading

import viser

from ..robot.trajectory import Trajectory
from .clock import frames_to_draw
from .nodes import RobotScene

RATE = 30.0  # frames recorded of each second of simulated time
PATIENCE = 0.5  # [s]


def serve(host: str, port: int, label: str | None = None) -> viser.ViserServer:
    """A viser server, without its announcement on standard output.

    Raises OSError for a host that is not this machine's: the server would look for a free port forever.
    """
    family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    socket.create_server((host, 0), family=family).close()
    with contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer(host=host, port=port, label=label, verbose=False)
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    return server


def stop(server: viser.ViserServer) -> None:
    """Stop a server, without its farewell. It waits seconds for browsers that keep a connection; nobody else has to."""
    with contextlib.redirect_stdout(io.StringIO()):
        stopping = threading.Thread(target=server.stop, daemon=True)
        stopping.start()
        stopping.join(timeout=PATIENCE)


def html_of(scene: RobotScene, trajectory: Trajectory | None = None, rate: float = RATE) -> str:
    """HTML of a scene at rest, or moving along a trajectory with at most `rate` frames a second of simulated time."""
    if trajectory is None:
        return str(scene.server.get_scene_serializer().as_html())
    chosen, lasts = frames_to_draw(trajectory, rate)
    scene.move(trajectory.q[chosen[0]], *trajectory.contacts(int(chosen[0])))
    recorder = scene.server.get_scene_serializer()
    for k, last in zip(chosen, lasts, strict=True):
        scene.move(trajectory.q[k], *trajectory.contacts(int(k)))
        recorder.insert_sleep(float(last))
    return str(recorder.as_html())
