"""The timeline: a slider, play and pause, speed, and the current time and energy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import viser

from ..robot.robot import Robot
from ..robot.trajectory import Trajectory
from .clock import Clock, instant_at, playing_time

RATE = 60.0  # states sent a second
TEXT = 0.125  # [s]: the slider and the text follow less often than the robot


class Player:
    """Player of a trajectory, in its own folder of the panel.

    `draw(k)` is called for each state to draw, and `rest()` when playback pauses.
    """

    def __init__(
        self,
        gui: viser.GuiApi,
        robot: Robot,
        trajectory: Trajectory,
        draw: Callable[[int], None],
        rest: Callable[[], None],
    ) -> None:
        self.robot, self.trajectory, self.draw, self.rest = robot, trajectory, draw, rest
        self.clock = Clock(playing_time(trajectory))
        self._woken, self._ended = threading.Event(), threading.Event()
        self._reported = -np.inf
        end = max(self.clock.duration, 1e-9)
        self.folder = gui.add_folder("Time", order=-1.0)
        with self.folder:
            self._slider = gui.add_slider("time [s]", 0.0, end, min(1e-3, end), 0.0)
            self._button = gui.add_button("Play")
            self._speed = gui.add_slider("speed", 0.1, 4.0, 0.1, 1.0)
            self._loop = gui.add_checkbox("again from the start", True)
            self._text = gui.add_markdown("")
        self._connect()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.seek(0.0)

    def play(self) -> None:
        self.clock.play()
        self._button.label = "Pause"
        self._woken.set()

    def pause(self) -> None:
        self.clock.playing = False
        self._tell()
        self.rest()
        self._button.label = "Play"

    def seek(self, at: float) -> None:
        """Draw the state at a time [s] after the first."""
        self.clock.time = min(max(at, 0.0), self.clock.duration)
        self._draw()
        self._tell()
        if not self.clock.playing:
            self.rest()

    def close(self) -> None:
        """Stop, and remove the folder."""
        self._ended.set()
        self._woken.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=5.0)
        self.folder.remove()

    def _connect(self) -> None:
        self._slider.on_update(self._scrubbed)
        self._button.on_click(lambda _: self.pause() if self.clock.playing else self.play())
        self._speed.on_update(lambda _: setattr(self.clock, "speed", float(self._speed.value)))
        self._loop.on_update(lambda _: setattr(self.clock, "loop", bool(self._loop.value)))

    def _scrubbed(self, event: viser.GuiEvent[Any]) -> None:
        if event.client is None:  # playback moves the slider too
            return
        if self.clock.playing:
            self.pause()
        self.seek(float(self._slider.value))

    def _run(self) -> None:
        """Draw while playing, in its own thread."""
        before = time.perf_counter()
        while not self._ended.is_set():
            if not self.clock.playing:
                self._woken.wait()
                self._woken.clear()
                before = time.perf_counter()
                continue
            now = time.perf_counter()
            self.clock.advance(now - before)
            before = now
            self._draw()
            if not self.clock.playing:
                self.pause()
            elif now - self._reported > TEXT:
                self._tell()
            self._ended.wait(max(0.0, before + 1.0 / RATE - time.perf_counter()))

    def _draw(self) -> None:
        self.draw(instant_at(self.trajectory, self.clock.time))

    def _tell(self) -> None:
        """Set the slider and the text to the time of the clock."""
        self._reported = time.perf_counter()
        self._slider.value = min(self.clock.time, float(self._slider.max))
        k = instant_at(self.trajectory, self.clock.time)
        q, v = self.trajectory.q[k], self.trajectory.v[k]
        kinetic, potential = float(self.robot.kinetic_energy(q, v)), float(self.robot.potential_energy(q))
        self._text.content = (
            f"t = {float(self.trajectory.times[k]):.3f} s of {float(self.trajectory.times[-1]):.3f} s, state {k}  \n"
            f"kinetic energy {kinetic:.4g} J, potential {potential:.4g} J, sum {kinetic + potential:.6g} J"
        )
