"""A motion as one HTML file that plays in any browser without a server or a network; text of files as safe HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence

from ..robot.trajectory import Trajectory
from .clock import frames_to_draw
from .nodes import RobotScene

RATE = 30.0  # frames recorded of each second of simulated time
TEXT = "padding: 0 0.75rem 0.5rem; font-size: 0.875rem; overflow-wrap: anywhere"  # the style of viser's Markdown


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


def listed(lines: Sequence[str], title: str = "") -> str:
    """Return plain lines under a title as an HTML list, with all markup escaped.

    Names and paths come from files and may contain anything. viser's Markdown would execute embedded code and read the files
    that it references, so text from files goes through this function instead.
    """
    rows = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f'<div style="{TEXT}">{html.escape(title)}<ul style="margin: 0; padding-left: 1.2rem">{rows}</ul></div>'
