"""Films of trajectories."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from ..array_types import Array
from ..robot.trajectory import Trajectory
from .clock import instant_at, playing_time
from .film import save_film
from .offscreen import OffscreenScene
from .simulation_pictures import scene_on

SEEN = 20  # states that the camera is placed for


def save_motion(
    path: str | os.PathLike[str], motion: Trajectory, rate: float, size: tuple[int, int], camera: str | None
) -> None:
    """Write a film of a trajectory in real time; `Trajectory.save` documents the arguments."""
    if motion.system is None:
        raise ValueError("save: a film needs the robot, which this trajectory does not know; use Trajectory.load(path, robot)")
    scene = scene_on(motion.system, size, motion.q[0], motion.ground)
    if camera is not None:
        scene.look_through(camera)
    elif motion.q.ndim == 2:
        scene.look_at_all(motion.q[:: max(1, len(motion) // SEEN)])
    save_film(path, _frames(scene, motion, rate), rate)


def _frames(scene: OffscreenScene, motion: Trajectory, rate: float) -> Iterator[Array]:
    """Draw the state at each instant of the film; a state that lasts is drawn once."""
    last = -1
    for k in range(int(np.floor(playing_time(motion) * rate + 1e-9)) + 1):
        if (now := instant_at(motion, k / rate)) != last:
            last, picture = now, scene.frame(motion.q[now])
        yield picture
