"""Frames as files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

Array = np.ndarray[Any, np.dtype[Any]]

HUNDREDTH = 0.01  # [s] in which a .gif file counts


def save_picture(path: str | os.PathLike[str], frame: Array) -> None:
    """Write a frame (height, width, 3) of numbers 0..255; the file's ending says how, .png for example."""
    Image.fromarray(frame).save(path)


def save_film(path: str | os.PathLike[str], frames: Iterable[Array], rate: float = 25.0) -> None:
    """Write frames (height, width, 3) of numbers 0..255, `rate` a second, as a .gif file, or .mp4 with imageio and its ffmpeg.

    A .gif file lasts whole hundredths of a second a frame, two at least. Raises ValueError for no frames, a rate that is not
    positive, or another kind of file, and ImportError without what .mp4 needs.
    """
    kind, many = Path(path).suffix.lower(), list(frames)
    if not many or not rate > 0.0:
        raise ValueError(f"save_film: needs a frame at least and a positive rate; got {len(many)} and {rate}")
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
