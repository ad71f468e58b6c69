"""The placements of a robot's cameras, and the rays of their pixels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..array_types import Array
from ..checks import checked
from ..model.model import PointMass
from ..model.types import Camera, CameraMode, Frame
from ..names import UnknownNameError, choose_from
from .frame_functions import frame_placement
from .system import System

UP = np.array([0.0, 0.0, 1.0])
ORIGIN = "origin"
TINY = 1e-15  # [m] length of a vector without a direction


class CameraPlacement:
    """Function of q (..., nq): the frame of a camera in the world, homogeneous matrices (..., 4, 4).

    The camera looks along -z of its frame; x points right and y up in its image. Camera modes are those of MuJoCo. A tracking
    camera keeps the offset and the orientation that it has in the initial configuration of the robot's file (`start`). A
    camera with a target turns about its position to look at the target, upright.

    Raises ValueError for an unknown camera.
    """

    def __init__(self, robot: System, name: str) -> None:
        known = [c.name for c in robot.cameras]
        if name not in known:
            raise UnknownNameError(f"{robot.name} has no camera {choose_from(name, known)}")
        self.robot, self.camera = robot, robot.cameras[known.index(name)]
        self._masses = robot.model.camera_masses[known.index(name)]
        self.start = robot.start(within_limits=False)

    def __call__(self, q: npt.ArrayLike) -> Array:
        """Return the camera's frame in the world at q."""
        c = self.camera
        if c.mode in (CameraMode.TRACK, CameraMode.TRACKCOM):
            T = np.broadcast_to(self._fixed(self.start), (*np.shape(q)[:-1], 4, 4)).copy()
            T[..., :3, 3] += self._followed(q) - self._followed(self.start)
            return T
        T = self._fixed(q)
        if c.has_target:
            T[..., :3, :3] = _looking_along(self._followed(q) - T[..., :3, 3])
        return T

    def _fixed(self, q: npt.ArrayLike) -> Array:
        """Return the frame of a camera that is fixed to its body."""
        at = Frame(self.camera.name, self.camera.body, self.camera.placement)
        return np.array(frame_placement(self.robot, at)(q))

    def _followed(self, q: npt.ArrayLike) -> Array:
        """Return the point (..., 3) that the camera follows or looks at."""
        if self._masses:
            return self._center(self._masses, q)
        link = self.camera.target if self.camera.has_target else self.camera.body
        return np.array(frame_placement(self.robot, Frame(ORIGIN, link))(q))[..., :3, 3]

    def _center(self, masses: tuple[PointMass, ...], q: npt.ArrayLike) -> Array:
        bodies = list(dict.fromkeys(m.body for m in masses))
        T = np.array(frame_placement(self.robot, [Frame(ORIGIN, body) for body in bodies])(q))
        moments = sum(
            m.mass * (T[..., bodies.index(m.body), :3, :3] @ np.array(m.center) + T[..., bodies.index(m.body), :3, 3])
            for m in masses
        )
        return np.asarray(moments / sum(m.mass for m in masses))


def focal_length(c: Camera) -> tuple[float, float]:
    """Return focal lengths of a camera [pixels], for columns and rows."""
    width, height = c.resolution or (1, 1)
    if c.sensor is not None:
        return c.sensor.focal[0] / c.sensor.size[0] * width, c.sensor.focal[1] / c.sensor.size[1] * height
    angle = np.radians(c.field_of_view) if c.orthographic else c.field_of_view  # MuJoCo interprets the height as degrees
    return (0.5 / np.tan(0.5 * angle) * height,) * 2


def pixel_rays(c: Camera) -> tuple[Array, Array]:
    """Return origins and unit directions (pixels, 3) of the rays through a camera's pixels, row by row, in its frame."""
    width, height = c.resolution or (1, 1)
    row, column = (x.ravel() for x in np.mgrid[:height, :width] + 0.5)
    if c.orthographic:
        half = 0.5 * c.field_of_view
        origins = np.stack([(2.0 * column / width - 1.0) * half, (1.0 - 2.0 * row / height) * half, 0.0 * row], axis=-1)
        return origins, np.broadcast_to((0.0, 0.0, -1.0), origins.shape)
    (fx, fy), (x, y) = focal_length(c), (0.5 * width, 0.5 * height)
    if c.sensor is not None:
        x, y = c.sensor.principal[0] / c.sensor.size[0] * width, c.sensor.principal[1] / c.sensor.size[1] * height
    directions = np.stack([(column - x) / fx, (y - row) / fy, np.full(len(row), -1.0)], axis=-1)
    return np.zeros(directions.shape), directions / np.linalg.norm(directions, axis=-1, keepdims=True)


@checked
def camera_placement(robot: System, camera: str) -> CameraPlacement:
    """Function of q (..., nq): the placement of a camera of the file in the world, homogeneous matrices (..., 4, 4).

    The camera looks along -z; x points right and y up in its image. Cameras that track a body or have a target follow it.
    Raises ValueError for an unknown camera.
    """
    return CameraPlacement(robot, camera)


def _looking_along(direction: Array) -> Array:
    """Return the orientations (..., 3, 3) of upright cameras that look along vectors (..., 3), as MuJoCo computes them."""
    z = _unit(-direction)
    x = _unit(np.cross(UP, z))
    return np.stack([x, _unit(np.cross(z, x)), z], axis=-1)


def _unit(v: Array) -> Array:
    """Normalize vectors (..., 3). A vector without a direction becomes x, as in MuJoCo."""
    length = np.linalg.norm(v, axis=-1, keepdims=True)
    return np.where(length < TINY, np.array([1.0, 0.0, 0.0]), v / np.maximum(length, TINY))
