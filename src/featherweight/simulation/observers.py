"""Interfaces of a simulation's observers, views and pictures."""

from __future__ import annotations

import os
from typing import Any, Protocol, Self

import numpy as np

from ..robot.trajectory import Trajectory

Array = np.ndarray[Any, np.dtype[Any]]


class Observer(Protocol):
    """Object that `Simulation.watch` takes, which follows the motion during `Simulation.run`."""

    @property
    def closed(self) -> bool:
        """Whether it wants no more states: the simulation then lets go of it."""

    def live(self, q: Array, points: Array, forces: Array) -> None:
        """Take a state that `run` records: q (nq,), and contact forces (k, 3) [N] at points (k, 3) [m], in the world.

        Simulations of many robots give those of the first.
        """

    def play(self, trajectory: Trajectory, *, start: bool) -> None:
        """Take the motion of one robot when `run` ends, and play it at once if `start`, which is False."""


class SimulationView(Observer, Protocol):
    """The page of `Simulation.view`, a `featherweight.Window`. `featherweight.viewer.view` returns it with that type."""

    @property
    def url(self) -> str:
        """The address of the page."""

    @property
    def q(self) -> Array:
        """The configuration (nq,) that is shown, a copy."""

    @property
    def trajectory(self) -> Trajectory | None:
        """The motion in the time line."""

    def show(self, q: Any, points: Any = None, forces: Any = None) -> None:
        """Show a configuration (nq,), and contact forces (n, 3) [N] at points (n, 3) [m] in the world."""

    def look(self, position: Any, at: Any) -> None:
        """Put the camera at a position (3,) [m] in the world, looking at a point (3,) [m]."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what is shown, with its motion, as one HTML file."""

    def close(self) -> None:
        """Stop serving the page."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


class Pictures(Protocol):
    """Object that draws the pictures of `Simulation.render`."""

    def frame(self, simulation: Any, size: tuple[int, int], robot: int | None, camera: str | None) -> Array:
        """Draw all robots, or one of them, as an array (height, width, 3) of numbers 0 to 255; `size` is (width, height).

        `camera` is one of the file."""
