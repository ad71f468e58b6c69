"""The scene of a viser server: a node for each body, which moves with the robot, and marks over the bodies."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import viser
from numpy.typing import ArrayLike

from ..array_types import Array, Vector
from ..checks import array_of
from ..model.triangles import height_surface, homogeneous_matrix
from .figure import AWAY, FIELD, Figure, Layer, cell_of, extent_of_robot
from .marks import MarkNodes, quaternions
from .view_arguments import view_points

WHITE, DIM, DARK = (255, 255, 255), (100, 100, 108), (20, 20, 26)
LINES, STRIP = (190, 194, 200), 0.016  # the colour of the ground's lines, and their width in cells
CELLS = 6  # cells of the ground on each side of its centre
DISTANCE = 1.8  # of the first camera from the robot, in units of its size

_ShownSurface = tuple[Any, float | None]


def _through(own: float | None, opacity: float) -> float | None:
    """Return the opacity of a surface; None for a solid surface, which is drawn faster."""
    return own if opacity >= 1.0 else opacity * (1.0 if own is None else own)


class RobotScene:
    """The scene of a page: a robot at one configuration.

    Each body has a node, which carries its surfaces. `move` sends only the poses of nodes.
    """

    def __init__(self, server: viser.ViserServer, figure: Figure, q: Array) -> None:
        self.server, self.figure, self.robot = server, figure, figure.robot
        self.q = q
        self._bodies = [b.name for b in self.robot.bodies]
        self._placement = self.robot.frame_placement(self._bodies)
        self._shown: dict[Layer, list[_ShownSurface]] = {}
        self.opacity = 1.0
        self._light()
        self._nodes: dict[str | None, Any] = {
            b: server.scene.add_frame(f"/robot/{k}", show_axes=False) for k, b in enumerate(self._bodies)
        }
        self._nodes[None] = server.scene.add_frame("/world", show_axes=False)
        self.layer = Layer.VISUAL
        self.show_layer(Layer.VISUAL)
        self.marks = MarkNodes(server, self.robot, self._nodes, self.size)
        self.move(q)
        self.look()

    def _light(self) -> None:
        """Add two lights, one above and one aside, which shade smoothly at the least cost.

        Without a graphics card, shadows, reflections and lamps take longer to draw than the robot.
        """
        scene = self.server.scene
        scene.configure_default_lights(enabled=False)
        scene.configure_environment_map(None)
        scene.add_light_hemisphere("/light/above", sky_color=WHITE, ground_color=DIM, intensity=1.9, position=(0.0, 0.0, 1.0))
        scene.add_light_hemisphere("/light/aside", sky_color=WHITE, ground_color=DARK, intensity=1.5, position=(0.8, 0.1, 0.5))

    # the robot

    def placements(self, q: Array) -> dict[str, Array]:
        """Return the placement (4, 4) of each moving body's frame (of the file) in the world frame."""
        return dict(zip(self._bodies, np.asarray(self._placement(q)), strict=True))

    def move(self, q: Vector, points: ArrayLike | None = None, forces: ArrayLike | None = None) -> None:
        """Draw the robot at q (nq,), with contact forces (n, 3) [N] at points (n, 3) [m] in the world frame."""
        self.q = q
        T = np.asarray(self._placement(q))
        with self.server.atomic():
            for name, position, turn in zip(self._bodies, T[:, :3, 3], quaternions(T[:, :3, :3]), strict=True):
                node = self._nodes[name]
                node.position, node.wxyz = position, turn
            self.marks.move(q, dict(zip(self._bodies, T, strict=True)))
            self.marks.draw_contacts(points, forces)

    def show_layer(self, layer: Layer) -> None:
        """Draw the shapes of a layer. Their triangles are sent when the layer is first shown."""
        if layer not in self._shown:
            self._shown[layer] = self._add_layer(layer)
        for other, nodes in self._shown.items():
            for node, _ in nodes:
                node.visible = other == layer
        self.layer = layer

    def set_opacity(self, opacity: float) -> None:
        """Set the opacity of the bodies, from 0 to 1 (opaque)."""
        self.opacity = opacity
        for nodes in self._shown.values():
            for node, own in nodes:
                node.opacity = _through(own, opacity)

    def _add_layer(self, layer: Layer) -> list[_ShownSurface]:
        """Return the nodes of a layer, each with the opacity given by the file."""
        scene, nodes = self.server.scene, []
        for body, surfaces in self.figure.layer(layer).items():
            for k, s in enumerate(surfaces):
                name = f"{self._nodes[body].name}/{layer}/{k}"
                look = {"color": s.color, "opacity": _through(s.opacity, self.opacity), "material": "toon5"}
                nodes.append((scene.add_mesh_simple(name, s.vertices, s.faces, **look), s.opacity))
        for k, plane in enumerate(self.figure.planes(layer)):
            T = homogeneous_matrix(plane.placement)
            nodes.append((self._add_grid(f"{self._nodes[plane.body].name}/plane/{layer}/{k}", T), None))
        return nodes

    @cached_property
    def box(self) -> Array:
        """The least and greatest coordinates (2, 3) [m] of the robot at the start of the scene."""
        points = self.figure.points
        return extent_of_robot(points(Layer.VISUAL, self.placements(self.q)), points(Layer.VISUAL, {None: np.eye(4)}))

    @cached_property
    def size(self) -> float:
        """The diagonal of that box [m]."""
        return float(np.linalg.norm(self.box[1] - self.box[0]))

    # the world

    def add_ground(self, height: float) -> None:
        """Add a grid at a height [m]."""
        T = np.eye(4)
        T[:2, 3], T[2, 3] = np.round(self.box.mean(axis=0)[:2], 1), height
        self._add_grid("/ground", T)

    def _add_grid(self, name: str, T: Array) -> Any:
        """Add strips across a square: without a graphics card, planes and lines with a width in pixels take long to draw."""
        cell = cell_of(self.size)
        at, half, end = cell * np.arange(-CELLS, CELLS + 1), STRIP * cell / 2.0, cell * CELLS
        along_y = np.array([[(a - half, -end), (a + half, -end), (a + half, end), (a - half, end)] for a in at])
        corners = np.concatenate([along_y, along_y[:, ::-1, ::-1]]).reshape(-1, 2)
        faces = (4 * np.arange(len(corners) // 4)[:, None, None] + np.array([[0, 1, 2], [0, 2, 3]])).reshape(-1, 3)
        vertices = np.column_stack([corners, np.zeros(len(corners))])
        look = {"color": LINES, "material": "toon5", "side": "double", "cast_shadow": False}
        turn = quaternions(T[:3, :3])
        return self.server.scene.add_mesh_simple(name, vertices, faces, **look, position=T[:3, 3], wxyz=turn)

    def add_heights(self, x: ArrayLike, y: ArrayLike, z: ArrayLike) -> None:
        """Add a surface with heights z (n, m) [m] at x (n,) and y (m,) [m]."""
        vertices, faces = height_surface(x, y, z)
        look = {"color": (205, 208, 200), "material": "toon5", "side": "double", "cast_shadow": False}
        self.server.scene.add_mesh_simple("/heights", vertices, faces, **look)

    def look(self, position: ArrayLike | None = None, at: ArrayLike | None = None) -> None:
        """Set the position of the camera and its target [m], in open pages and as the initial view of others."""
        away = AWAY * DISTANCE * max(self.size, 1e-3)
        at = self.box.mean(axis=0) if at is None else array_of("look: at", at, 3)
        position, center = self.camera = view_points(at + away if position is None else position, at)
        for camera in (self.server.initial_camera, *(c.camera for c in self.server.get_clients().values())):
            camera.position = position
            camera.look_at = center
            camera.fov = FIELD
            camera.near = max(0.01 * self.size, 1e-4)
