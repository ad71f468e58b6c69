"""Frames saved as picture and film files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from PIL import Image

from ..array_types import Array
from ..checks import CHECKED_LATER, Positive, checked, shown
from ..extras import install_command
from .view_arguments import frame_of

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
