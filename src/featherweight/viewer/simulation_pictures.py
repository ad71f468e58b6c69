"""The ground of a simulation, for windows and pictures, and pictures of a simulation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array_types import Array
from ..simulation import Simulation
from ..simulation.scene import Ground, HeightField, Plane
from .offscreen import OffscreenScene

SHOWN = 3.0  # [m] extent of an inclined plane on each side of its point


def level_of(ground: Ground | None) -> float | None:
    """Return the height [m] of a level plane; None for any other ground."""
    flat = isinstance(ground, Plane) and ground.normal[2] > 1.0 - 1e-9
    return float(ground.point[2]) if flat else None  # type: ignore[union-attr]


def heights_of(ground: Ground | None) -> tuple[Array, Array, Array] | None:
    """Return x (n,), y (m,) and z (n, m) [m] of a ground that is not level; None for a level plane or no ground."""
    if ground is None or level_of(ground) is not None:
        return None
    if isinstance(ground, HeightField):
        n, m = ground.grid.shape
        return np.linspace(*ground.x, n), np.linspace(*ground.y, m), ground.grid
    x = y = np.linspace(-SHOWN, SHOWN, 2)
    nx, ny, nz = ground.normal
    px, py, pz = ground.point
    return x + px, y + py, pz - (nx * x[:, None] + ny * y[None]) / nz


def scene_on(robot: Any, size: tuple[int, int], q: Array, ground: Ground | None) -> OffscreenScene:
    """Return a scene of a robot, or of several, on the ground of a simulation; without one, on a floor below q."""
    scene = OffscreenScene(robot, size, q=q, ground="below" if ground is None else level_of(ground))
    heights = heights_of(ground)
    if heights is not None:
        scene.add_heights(*heights)
    return scene


class SimulationPictures:
    """Pictures of all robots of a simulation, side by side, or of one robot.

    The scene is reused until the size or the robots change.
    """

    def __init__(self) -> None:
        self._scene: OffscreenScene | None = None

    def frame(
        self, simulation: Simulation, size: tuple[int, int], robot: int | None = None, camera: str | None = None
    ) -> Array:
        """Draw the robots as an array (height, width, 3) of numbers 0 to 255; `size` is (width, height).

        The view is that of a camera of the file. Without a camera, it shows the position of the robots at the first such
        picture. Raises IndexError for an unknown robot, and ValueError for an unknown camera.
        """
        q = np.atleast_2d(simulation.q)
        if robot is not None:
            q = q[robot][None]
        if self._scene is None or (self._scene.size, len(self._scene.start)) != (size, len(q)):
            self._scene = scene_on(simulation.robot, size, q, simulation.ground)
        if camera is not None:
            self._scene.look_through(camera)
        else:
            self._scene.look_by_itself()
        picture: Array = self._scene.frame(q)
        return picture
