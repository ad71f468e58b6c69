"""Frames saved as picture and film files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

from ..array_types import Array

HUNDREDTH = 0.01  # [s] unit of time in a .gif file


def save_picture(path: str | os.PathLike[str], frame: Array) -> None:
    """Save a frame (height, width, 3) of numbers 0..255; the file's ending, .png for example, gives the format."""
    Image.fromarray(frame).save(path)


def save_film(path: str | os.PathLike[str], frames: Iterable[Array], rate: float = 25.0) -> None:
    """Save frames (height, width, 3) of numbers 0..255, `rate` per second, as a .gif or .mp4 file.

    An .mp4 file needs imageio and its ffmpeg. In a .gif file, a frame lasts a whole number of hundredths of a second, at least
    two. Raises ValueError without frames, for a rate that is not positive, and for other kinds of files. Raises ImportError
    without the packages for .mp4.
    """
    kind, many = Path(path).suffix.lower(), list(frames)
    if not many or not rate > 0.0:
        raise ValueError(f"save_film: needs at least one frame and a positive rate; got {len(many)} frames and rate {rate}")
    if kind == ".gif":
        images = [Image.fromarray(frame) for frame in many]
        lasts = max(2, round(1.0 / (rate * HUNDREDTH)))
        images[0].save(path, save_all=True, append_images=images[1:], duration=10 * lasts, loop=0)
    elif kind == ".mp4":
        try:
            import imageio_ffmpeg  # noqa: F401
            from imageio import v2 as imageio
        except ImportError as missing:
            raise ImportError(f'.mp4 needs {missing.name}: pip install "imageio[ffmpeg]"; or write a .gif') from missing
        imageio.mimwrite(path, many, fps=rate, macro_block_size=2)
    else:
        raise ValueError(f"save_film: {path} must end with .gif or .mp4")
