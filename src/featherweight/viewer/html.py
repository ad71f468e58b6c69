"""A motion as one HTML file that plays in any browser, without a server or a network; words of files as HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence

from ..robot.trajectory import Trajectory
from .clock import frames_to_draw
from .nodes import RobotScene

RATE = 30.0  # frames recorded of each second of simulated time
TEXT = "padding: 0 0.75rem 0.5rem; font-size: 0.875rem; overflow-wrap: anywhere"  # as viser has its Markdown


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


def listed(lines: Sequence[str], title: str = "") -> str:
    """A list of plain lines under a title as HTML, in which nothing of them is markup.

    Names and paths are a file's, and may hold anything. viser's Markdown runs what they hold, and reads the files that
    they name: text of files goes through here instead.
    """
    rows = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f'<div style="{TEXT}">{html.escape(title)}<ul style="margin: 0; padding-left: 1.2rem">{rows}</ul></div>'
