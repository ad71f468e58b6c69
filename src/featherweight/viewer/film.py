"""Frames saved as picture and film files: films of trajectories, and small pictures of robots for notebooks."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
from PIL import Image

from ..array_types import Array
from ..checks import CHECKED_LATER, Positive, checked, shown
from ..extras import install_command
from ..model.types import ShapeType
from ..robot.robot import Robot
from ..robot.trajectory import Trajectory
from .clock import instant_at, playing_time
from .figure import Layer
from .offscreen import OffscreenScene, picture
from .simulation_pictures import scene_on
from .view_arguments import frame_of

SEEN = 20  # states of a trajectory that the camera is placed for
SMALL = (320, 240)  # size of pictures in notebooks
HUNDREDTH = 0.01  # [s] unit of time in a .gif file


@checked
def save_picture(path: str | os.PathLike[str], frame: Annotated[Array, CHECKED_LATER]) -> None:
    """Save a frame (height, width, 3) of numbers 0..255; the file's ending, .png for example, gives the format."""
    Image.fromarray(frame_of("save_picture: frame", frame)).save(path)


@checked
def save_film(path: str | os.PathLike[str], frames: Annotated[Iterable[Array], CHECKED_LATER], fps: Positive = 25.0) -> None:
    """Save frames (height, width, 3) of numbers 0..255, `fps` per second, as a .gif or .mp4 file.

    An .mp4 file needs the extra `film`. In a .gif file, a frame lasts a whole number of hundredths of a second, at least
    two. Raises ValueError without frames, for a rate that is not positive, and for other kinds of files. Raises ImportError
    without the packages for .mp4.
    """
    kind = Path(path).suffix.lower()
    if not isinstance(frames, Iterable) or isinstance(frames, str | bytes):
        raise TypeError(f"save_film: frames must be a list of arrays (height, width, 3); got {shown(frames)}")
    many = [frame_of(f"save_film: frame {k}", frame) for k, frame in enumerate(frames)]
    if not many:
        raise ValueError("save_film: needs at least one frame; got none")
    if kind == ".gif":
        images = [Image.fromarray(frame) for frame in many]
        lasts = max(2, round(1.0 / (fps * HUNDREDTH)))
        images[0].save(path, save_all=True, append_images=images[1:], duration=10 * lasts, loop=0)
    elif kind == ".mp4":
        try:
            import imageio_ffmpeg  # noqa: F401
            from imageio import v2 as imageio
        except ImportError as missing:
            raise ImportError(f".mp4 needs {missing.name}: {install_command('film')}; or write a .gif") from missing
        imageio.mimwrite(path, many, fps=fps, macro_block_size=2)
    else:
        raise ValueError(f"save_film: {path} must end with .gif or .mp4")


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
            last, drawn = now, scene.frame(motion.q[now])
        yield drawn


def png_of(robot: Robot) -> bytes:
    """Return a .png file of a robot in its initial configuration.

    Meshes that a file draws take seconds to read, so that collision shapes, or boxes of the inertias, take their place.
    """
    file = io.BytesIO()
    Image.fromarray(picture(robot, size=SMALL, layer=_quick_layer(robot))).save(file, "png")
    return file.getvalue()


def _quick_layer(robot: Robot) -> Layer:
    if not any(s.visual and s.type is ShapeType.MESH for s in robot.shapes):
        return Layer.VISUAL
    return Layer.COLLISION if any(s.collision and s.body is not None for s in robot.shapes) else Layer.INERTIA
