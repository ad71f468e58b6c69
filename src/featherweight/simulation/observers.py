"""Interfaces of a simulation's observers, views and pictures."""

from __future__ import annotations

import os
from typing import Any, Protocol, Self

from numpy.typing import ArrayLike

from ..array_types import Array, Matrix, Vector
from ..robot.trajectory import Trajectory


class Observer(Protocol):
    """Object that `Simulation.watch` accepts and that follows the motion during `Simulation.run`."""

    @property
    def closed(self) -> bool:
        """Return whether the observer is closed. The simulation then removes it."""

    def live(self, q: Vector, points: Matrix, forces: Matrix) -> None:
        """Receive a state that `run` records: q (nq,), and contact forces (k, 3) [N] at points (k, 3) [m], in the world frame.

        A simulation of many robots passes the state of the first robot.
        """

    def play(self, trajectory: Trajectory, *, start: bool) -> None:
        """Receive the motion of one robot at the end of `run`. `start` asks to play it at once; `run` passes False."""


class SimulationView(Observer, Protocol):
    """The page of `Simulation.view`, a `featherweight.Window`. `featherweight.viewer.view` returns this type, too."""

    @property
    def url(self) -> str:
        """The address of the page."""

    @property
    def q(self) -> Vector:
        """A copy of the displayed configuration (nq,)."""

    @property
    def trajectory(self) -> Trajectory | None:
        """The motion in the timeline, or None."""

    def show(self, q: ArrayLike, points: ArrayLike | None = None, forces: ArrayLike | None = None) -> None:
        """Show a configuration (nq,), and contact forces (n, 3) [N] at points (n, 3) [m] in the world frame."""

    def look(self, position: ArrayLike, at: ArrayLike) -> None:
        """Place the camera at `position` (3,) [m] in the world frame, looking at the point `at` (3,) [m]."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the displayed scene and its motion as one HTML file."""

    def close(self) -> None:
        """Stop serving the page."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


class Pictures(Protocol):
    """Object that draws the pictures of `Simulation.render`."""

    def frame(self, simulation: Any, size: tuple[int, int], robot: int | None, camera: str | None) -> Array:
        """Draw all robots, or only `robot`, as an array (height, width, 3) of numbers 0 to 255; `size` is (width, height).

        `camera` is the name of a camera of the file.
        """
