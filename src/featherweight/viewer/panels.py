"""Panels in the page, with controls for the joints and the drawing."""

from __future__ import annotations

import html
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import viser

from ..array_types import Array
from ..robot.closed import ClosedRobot
from .coordinates import joint_numbers, settable_coordinates, with_joint_numbers
from .figure import Layer
from .marks import Mark, described_loops
from .nodes import RobotScene

TEXT = "padding: 0 0.75rem 0.5rem; font-size: 0.875rem; overflow-wrap: anywhere"  # the style of viser's Markdown
MANY = 14  # number of joints from which the sliders start folded


class JointsPanel:
    """A slider for each coordinate that can be set. `set_q(q)` is called with the configuration that a slider requests.

    Joints that depend on the moved joint close the loops. If that is impossible, the page says so, and the robot stays where it
    was.
    """

    def __init__(self, gui: viser.GuiApi, scene: RobotScene, set_q: Callable[[Array], None], lock: threading.RLock) -> None:
        self.scene, self.robot, self.set_q, self.lock = scene, scene.robot, set_q, lock
        self.coordinates = settable_coordinates(self.robot)
        self.sliders: list[viser.GuiSliderHandle[float]] = []
        with gui.add_folder("Joints", order=1.0, expand_by_default=len(self.coordinates) <= MANY):
            for k, c in enumerate(self.coordinates):
                step = 10.0 ** np.floor(np.log10(max(c.upper - c.lower, 1e-6) / 500.0))
                start = min(max(joint_numbers(c.joint, scene.q)[c.place], c.lower), c.upper)
                slider = gui.add_slider(c.label, float(c.lower), float(c.upper), float(step), float(start))
                slider.on_update(self._handler(k))
                self.sliders.append(slider)

    def follow(self, q: Array) -> None:
        """Move the sliders to q; a slider whose coordinate is outside its interval stays at the end."""
        for c, slider in zip(self.coordinates, self.sliders, strict=True):
            slider.value = min(max(joint_numbers(c.joint, q)[c.place], c.lower), c.upper)

    def _handler(self, k: int) -> Callable[[viser.GuiEvent[Any]], None]:
        def moved(event: viser.GuiEvent[Any]) -> None:
            if event.client is not None:  # moved by the user, not by `follow`
                with self.lock:
                    self._set(k, float(self.sliders[k].value), event.client)

        return moved

    def _set(self, k: int, value: float, client: viser.ClientHandle) -> None:
        c, q = self.coordinates[k], self.scene.q
        numbers = joint_numbers(c.joint, q)
        numbers[c.place] = value
        wanted = with_joint_numbers(c.joint, q, numbers)
        robot = self.robot
        try:
            self.set_q(robot.close(wanted) if isinstance(robot, ClosedRobot) else wanted)
        except ValueError as impossible:
            client.add_notification("The loops cannot be closed", str(impossible), auto_close_seconds=4.0, color="red")
            self.follow(q)
            return
        if isinstance(robot, ClosedRobot):
            self.follow(self.scene.q)


class LookPanel:
    """Controls for the drawing, and a note about meshes that could not be read."""

    def __init__(self, gui: viser.GuiApi, scene: RobotScene, lock: threading.RLock) -> None:
        self.scene, self.lock = scene, lock
        marks = [m for m in Mark if m != Mark.LOOPS or described_loops(scene.robot)]
        with gui.add_folder("Show", order=0.0):
            self.layer = gui.add_dropdown("shapes", tuple(x.value for x in Layer), initial_value=scene.layer.value)
            self.layer.on_update(self._show_layer)
            self.opacity = gui.add_slider("opacity", 0.1, 1.0, 0.05, scene.opacity)
            self.opacity.on_update(self._set_opacity)
            self.marks = {m: gui.add_checkbox(m.value, m in scene.marks.shown) for m in marks}
            for mark, box in self.marks.items():
                box.on_update(self._handler(mark))
            self.scale = gui.add_slider("force arrows", 0.1, 5.0, 0.1, scene.marks.force_scale)
            self.scale.on_update(self._scale_forces)
            self.notes = gui.add_html("", visible=False)
        if lines := described_loops(scene.robot):
            with gui.add_folder("Loops and couplings", order=2.0, expand_by_default=False):
                gui.add_html(listed(lines))
        self._note()

    def _show_layer(self, _: viser.GuiEvent[Any]) -> None:
        with self.lock:
            self.scene.show_layer(Layer(self.layer.value))
            self._note()

    def _set_opacity(self, _: viser.GuiEvent[Any]) -> None:
        with self.lock:
            self.scene.set_opacity(float(self.opacity.value))

    def _handler(self, mark: Mark) -> Callable[[viser.GuiEvent[Any]], None]:
        def changed(_: viser.GuiEvent[Any]) -> None:
            with self.lock:
                self.scene.marks.show(mark, bool(self.marks[mark].value))

        return changed

    def _scale_forces(self, _: viser.GuiEvent[Any]) -> None:
        with self.lock:
            self.scene.marks.scale_forces(float(self.scale.value))

    def _note(self) -> None:
        """Name the missing meshes."""
        notes = self.scene.figure.notes
        self.notes.visible = bool(notes)
        if notes:
            self.notes.content = listed(notes, "Meshes not read, drawn from inertias:")


def listed(lines: Sequence[str], title: str = "") -> str:
    """Return plain lines under a title as an HTML list, with all markup escaped.

    Names and paths come from files and may contain anything. viser's Markdown would execute embedded code and read the files
    that it references, so text from files goes through this function instead.
    """
    rows = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f'<div style="{TEXT}">{html.escape(title)}<ul style="margin: 0; padding-left: 1.2rem">{rows}</ul></div>'
