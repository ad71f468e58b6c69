"""A small picture of a robot as the bytes of a file, for notebooks."""

from __future__ import annotations

import io

from PIL import Image

from ..model.types import ShapeType
from ..robot.robot import Robot
from .figure import Layer
from .offscreen import picture

SIZE = (320, 240)


def png_of(robot: Robot) -> bytes:
    """Return a .png file of a robot in its initial configuration.

    Meshes that a file draws take seconds to read, so that collision shapes, or boxes of the inertias, take their place.
    """
    file = io.BytesIO()
    Image.fromarray(picture(robot, size=SIZE, layer=_quick_layer(robot))).save(file, "png")
    return file.getvalue()


def _quick_layer(robot: Robot) -> Layer:
    if not any(s.visual and s.type is ShapeType.MESH for s in robot.shapes):
        return Layer.VISUAL
    return Layer.COLLISION if any(s.collision and s.body is not None for s in robot.shapes) else Layer.INERTIA
