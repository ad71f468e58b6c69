"""Pictures of a robot without a window, a display or a graphics card."""

from __future__ import annotations

from typing import Any

import numpy as np
import trimesh
from numpy.typing import ArrayLike

from ..array_types import Array, Matrix, Tensor, Vector
from ..checks import Count, PixelSize, PositiveCount, checked, real_array
from ..engine.exclusive import Use, exclusive
from ..model.triangles import height_surface, homogeneous_matrix
from ..robot.camera_placement import CameraPlacement
from ..robot.robot import Robot
from .drawn_meshes import vertex_normals
from .figure import AWAY, FIELD, Figure, Layer, cell_of, extent, extent_of_robot
from .rasterizer import LitWorld, PixelView, Planes, Surfaces, draw, place, shade
from .view_arguments import Ground, camera_axes, view_points

FACES = 200_000  # triangles of all meshes of a robot: more than pictures can show
DISTANCE = 1.6  # of the first camera from the robots, in units of their size
SUNLIGHT = np.array([-0.35, 0.25, -1.0])  # direction of the light
SHADOW = 1024  # side of the sun's depth buffer in pixels
NEAR, REACH = 0.01, 6.0  # least visible distance, and the reach of the ground, in distances of the camera from its target
GROUND, HEIGHTS = ((222, 226, 231), (203, 209, 216)), (205, 208, 200)
SKY = ((240, 244, 248), (170, 196, 226))
SPACING = 1.2  # distance between robots, in units of their size
LEVELS = 4096  # levels of light in the table of screen values
DECODE = 2.2  # exponent (gamma) from screen values to light


LENS = np.array([[1.0], [-1.0], [-1.0]])  # from a file's axes of cameras (x right, y up, looking along -z) to the rasterizer's


class OffscreenScene:
    """A scene of one robot, or several identical ones, that draws pictures (height, width, 3) of numbers from 0 to 255.

    `size` is (width, height). `ground` is the height of a floor [m]; None draws only the file's ground; "below" adds a floor
    under the robot at `q` (nq,) (default: its initial configuration) if the file has no ground. Each pixel is the mean of
    `samples` × `samples` samples. The camera looks at all robots of the first frame until `look` is called. With `camera`, or
    after `look_through`, pictures show the view of a camera of the robot's file; with several robots, that of the first one.
    Raises ValueError for invalid sizes, and for a camera that the robot does not have. A call while another thread is in one
    raises RuntimeError: give each thread a scene.
    """

    @checked
    def __init__(
        self,
        robot: Robot,
        size: PixelSize = (640, 480),
        *,
        q: ArrayLike | None = None,
        ground: Ground = "below",
        layer: Layer | Any = Layer.VISUAL,
        faces: Count = FACES,
        samples: PositiveCount = 2,
        camera: str | None = None,
    ) -> None:
        self.robot, self.size = robot, size
        self._use = Use(f"the scene of {robot.name!r}", "make an OffscreenScene for each thread")
        self.figure = Figure(robot, faces)
        self.camera: tuple[Vector, Vector] | None = None
        bodies = [b.name for b in robot.bodies]
        self._placement = robot.frame_placement(bodies)
        self._pieces = [
            (len(bodies) if body is None else bodies.index(body), s.vertices, s.faces, (*s.color, 255 * (s.opacity or 1.0)))
            for body, surfaces in self.figure.layer(layer).items()
            for s in surfaces
        ]
        self._join()
        self.start: Array = robot.start() if q is None else np.array(q, dtype=float)
        points = self._placed(self._configurations(self.start))[0]
        low, high = extent(points[:, self._vertex_bodies < len(bodies)])
        self._robot_size = float(np.linalg.norm(high - low)) or 1.0
        self._planes = [homogeneous_matrix(s.placement) for s in self.figure.planes(layer) if s.body is None]
        if not (ground is None or (ground == "below" and self._planes)):
            floor = np.eye(4)
            floor[2, 3] = low[2] if ground == "below" else ground
            self._planes.append(floor)
        shape = (size[1] * samples, size[0] * samples)
        self._depth, self._owner = np.empty(shape, np.float32), np.empty(shape, np.int32)
        self._shadow, self._shaded = np.empty((SHADOW, SHADOW), np.float32), np.empty((SHADOW, SHADOW), np.int32)
        horizon, zenith = _light(SKY)
        self._sky = np.stack([horizon, zenith - horizon])
        self._through: CameraPlacement | None = None
        if camera is not None:
            self.look_through(camera)
        self._bright = np.round(255.0 * np.linspace(0.0, 1.0, LEVELS) ** (1.0 / DECODE)).astype(np.uint8)

    @exclusive
    def look(self, position: ArrayLike, at: ArrayLike) -> None:
        """Place the camera at `position` (3,) [m] in the world frame, looking at the point `at` (3,) [m]."""
        self.camera, self._through = view_points(position, at), None

    @exclusive
    def look_through(self, camera: str) -> None:
        """Draw the view of a camera of the robot's file, which moves with its body.

        The vertical field of view is the camera's; `size` sets the width of the picture. Raises ValueError for a camera that
        the robot does not have, and for an orthographic one.
        """
        through = self.robot.camera_placement(camera)
        if through.camera.orthographic:
            raise ValueError(
                f"{self.robot.name}: camera {camera!r} is orthographic, which pictures do not support; choose another camera"
            )
        self._through = through

    @exclusive
    def look_at_all(self, q: ArrayLike) -> None:
        """Place the camera so that it sees the robot at each of the configurations q (n, nq)."""
        self.camera, self._through = self._framed(self._placed(self._configurations(q))[0]), None

    @exclusive
    def look_by_itself(self) -> None:
        """Return from a camera of the file to the camera that `look` placed, or to the view of all robots."""
        self._through = None

    @exclusive
    def add_heights(self, x: ArrayLike, y: ArrayLike, z: ArrayLike) -> None:
        """Draw ground of heights z (n, m) [m] at the points x (n,) and y (m,) [m]."""
        self._pieces.append((len(self.robot.bodies), *height_surface(x, y, z), (*HEIGHTS, 255.0)))
        self._join()

    @exclusive
    def frame(self, q: ArrayLike, offsets: ArrayLike | None = None) -> Array:
        """Draw a picture (height, width, 3) of numbers 0..255 at q (nq,), or of several robots at q (robots, nq).

        `offsets` (robots, 3) [m] moves each robot; by default, the robots stand in rows.
        """
        q = self._configurations(q)
        shifts = self._rows(len(q)) if offsets is None else real_array("frame: offsets", offsets)
        if shifts.shape != (len(q), 3):
            raise ValueError(f"frame: offsets must have shape {(len(q), 3)}; got {shifts.shape}")
        points, normals = self._placed(q)
        points += shifts[:, None]
        surfaces = Surfaces(points, normals, self._faces, self._colors)
        sun = self._sun(points)
        if self._through is not None:
            view, distance = self._seen_through(self._through, q[0], shifts[0]), DISTANCE * self._robot_size
        else:
            if self.camera is None:
                self.camera = self._framed(points)
            position, at = self.camera
            view, distance = self._view(position, at), float(np.linalg.norm(at - position))
        seen = np.empty((points.shape[1], 3))
        for camera, depth, owner in ((view, self._depth, self._owner), (sun, self._shadow, self._shaded)):
            depth.fill(0.0 if camera.near else -np.inf)
            owner.fill(-1)
            draw(camera, surfaces, seen, depth, owner)
        picture = np.empty((self.size[1], self.size[0], 3), np.uint8)
        world = LitWorld(surfaces, self._floor(), sun, self._shadow, self._sky, REACH * distance)
        shade(view, world, self._depth, self._owner, self._bright, picture)
        return picture

    # within

    def _configurations(self, q: ArrayLike) -> Matrix:
        given: Matrix = np.atleast_2d(real_array(f"{self.robot.name}: q", q))
        if given.ndim != 2 or given.shape[1] != self.robot.nq:
            raise ValueError(
                f"{self.robot.name}: q must have shape ({self.robot.nq},), or (robots, {self.robot.nq}); got {np.shape(q)}"
            )
        if not np.isfinite(given).all():
            raise ValueError(f"{self.robot.name}: q must be finite numbers")
        return given

    def _join(self) -> None:
        """Join all pieces into one set of triangles."""
        counts = [len(v) for _, v, _, _ in self._pieces]
        starts = np.cumsum([0, *counts])
        meshes = [trimesh.Trimesh(v, f, process=False) for _, v, f, _ in self._pieces]
        none = np.zeros((0, 3))
        self._vertices = np.concatenate([none, *(m.vertices for m in meshes)])
        self._normals = np.concatenate([none, *(vertex_normals(m) for m in meshes)])
        self._faces = np.concatenate([none, *(m.faces + k for m, k in zip(meshes, starts, strict=False))]).astype(np.int32)
        self._vertex_bodies = np.repeat(np.array([b for b, *_ in self._pieces], np.int32), counts)
        colors = _light(np.array([c for *_, c in self._pieces]).reshape(-1, 4))
        self._colors = np.repeat(colors, [len(m.faces) for m in meshes], axis=0)

    def _placed(self, q: Matrix) -> tuple[Tensor, Tensor]:
        """Return points and normals (robots, n, 3) in the world frame."""
        T = np.concatenate([np.asarray(self._placement(q)), np.broadcast_to(np.eye(4), (len(q), 1, 4, 4))], axis=1)
        points = np.empty((len(q), len(self._vertices), 3))
        normals = np.empty_like(points)
        for k in range(len(q)):
            place(self._vertices, self._normals, self._vertex_bodies, T[k], points[k], normals[k])
        return points, normals

    def _rows(self, count: int) -> Array:
        """Return positions (count, 3) in a square."""
        side = int(np.ceil(np.sqrt(count)))
        k = np.arange(count)
        return SPACING * self._robot_size * np.stack([k // side, k % side, np.zeros(count)], axis=1)

    def _framed(self, points: Tensor) -> tuple[Vector, Vector]:
        """Return a camera that sees all robots; it ignores landscapes."""
        moves = self._vertex_bodies < len(self.robot.bodies)
        low, high = extent_of_robot(points[:, moves], points[:, ~moves])
        center, narrow = (low + high) / 2.0, max(1.0, self.size[1] / self.size[0])
        return center + AWAY * DISTANCE * narrow * (float(np.linalg.norm(high - low)) or 1.0), center

    def _view(self, position: Vector, at: Vector) -> PixelView:
        height, width = self._depth.shape
        focal = height / (2.0 * np.tan(FIELD / 2.0))
        near = NEAR * float(np.linalg.norm(at - position))
        return PixelView(camera_axes(at - position), position, focal, np.array([width, height]) / 2.0, near)

    def _seen_through(self, through: CameraPlacement, q: Vector, shift: Vector) -> PixelView:
        """Return the view of a camera of the file; an off-axis sensor shifts the picture."""
        height, width = self._depth.shape
        T, camera = through(q), through.camera
        focal = height / (2.0 * np.tan(camera.field_of_view / 2.0))
        center = np.array([width, height]) / 2.0
        if camera.sensor is not None:
            center -= np.array(camera.sensor.principal) * height / camera.sensor.size[1]
        return PixelView(np.ascontiguousarray(T[:3, :3].T * LENS), T[:3, 3] + shift, focal, center, NEAR * self._robot_size)

    def _sun(self, points: Tensor) -> PixelView:
        """Return the sun's view of all robots and of the surfaces that their shadows may fall on."""
        moving = points[:, self._vertex_bodies < len(self.robot.bodies)]
        low, high = extent(moving if moving.size else points)
        center, size = (low + high) / 2.0, float(np.linalg.norm(high - low)) or 1.0
        return PixelView(camera_axes(SUNLIGHT), center, SHADOW / (1.1 * size), np.array([SHADOW, SHADOW]) / 2.0, 0.0)

    def _floor(self) -> Planes:
        """Return the planes, with squares of a readable length."""
        frames = np.array([np.concatenate([T[None, :3, 3], T[:3, :3].T]) for T in self._planes]).reshape(-1, 4, 3)
        return Planes(frames, cell_of(self._robot_size), _light(GROUND))


@checked
def picture(robot: Robot, q: ArrayLike | None = None, size: PixelSize = (640, 480), **options: Any) -> Array:
    """Draw one picture (height, width, 3) of a robot at q (nq,), or of several at (robots, nq).

    `options` are arguments of `OffscreenScene`. To draw several pictures, keep an `OffscreenScene`: reading meshes takes most
    of the time.
    """
    scene = OffscreenScene(robot, size, q=q, **options)
    return scene.frame(scene.start)


def _light(colors: ArrayLike) -> Array:
    """Convert screen colours (n, 3), or (n, 4) with opacity, to light from 0 to 1."""
    light = np.asarray(colors, dtype=float) / 255.0
    light[:, :3] **= DECODE
    return light
