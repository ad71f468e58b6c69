"""Marks over the robot: frames and their names, the centre of mass, loops and couplings, contact forces."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
import viser
import viser.transforms as tf
from numpy.typing import ArrayLike

from ..array_types import Array
from ..model.description import Description
from ..model.triangles import homogeneous_matrix
from ..model.types import WORLD, Pose
from ..robot.closed import ClosedRobot
from ..robot.robot import Robot

FORCE, CENTER, LOOP, COUPLING = (0, 150, 70), (250, 190, 30), (200, 30, 160), (30, 90, 220)
WEIGHT = 0.35  # length of the arrow for a force equal to the robot's weight, relative to the robot's size


class Mark(StrEnum):
    """Marks that can be drawn over the robot."""

    FRAMES = "frames"
    NAMES = "names of frames"
    CENTER = "centre of mass"
    LOOPS = "loops and couplings"
    FORCES = "contact forces"


class MarkNodes:
    """Nodes of marks, created when they are first shown."""

    def __init__(self, server: viser.ViserServer, robot: Robot, bodies: dict[str | None, Any], size: float) -> None:
        self.scene, self.robot, self.bodies, self.size = server.scene, robot, bodies, size
        self.force_scale = 1.0
        self.shown = {Mark.FORCES}
        self._nodes: dict[Mark, list[Any]] = {}
        self._at: tuple[Array, dict[str, Array]] | None = None
        self._contacts: tuple[ArrayLike | None, ArrayLike | None] = (None, None)

    def show(self, mark: Mark, visible: bool) -> None:
        """Show or hide a mark."""
        (self.shown.add if visible else self.shown.discard)(mark)
        if visible:
            self._nodes_of(mark)
        for node in self._nodes.get(mark, ()):
            node.visible = visible
        if self._at is not None:
            self.move(*self._at)
        self.draw_contacts(*self._contacts)

    def like(self, other: MarkNodes) -> None:
        """Show the same marks as another scene, at the same scale."""
        self.force_scale = other.force_scale
        for mark in Mark:
            self.show(mark, mark in other.shown)

    def move(self, q: Array, placements: dict[str, Array]) -> None:
        """Move the marks to a configuration, with the placements (4, 4) of the bodies there."""
        self._at = q, placements
        if Mark.CENTER in self.shown:
            center = np.asarray(self.robot.center_of_mass(q))
            [node] = self._nodes_of(Mark.CENTER)
            node.visible = bool(np.isfinite(center).all())
            node.position = np.nan_to_num(center)
        if Mark.LOOPS in self.shown:
            nodes = self._nodes_of(Mark.LOOPS)
            for node, ends in zip(nodes, loop_lines(self.robot, placements).values(), strict=True):
                node.points = ends

    def draw_contacts(self, points: ArrayLike | None, forces: ArrayLike | None) -> None:
        """Draw contact forces (n, 3) [N] as arrows that start at points (n, 3) [m]."""
        self._contacts = points, forces
        arrows = self._arrows(points, forces)
        if Mark.FORCES not in self.shown or (not len(arrows) and Mark.FORCES not in self._nodes):
            return
        [node] = self._nodes_of(Mark.FORCES)
        node.visible = len(arrows) > 0
        if len(arrows):
            node.points = arrows

    def scale_forces(self, scale: float) -> None:
        """Scale the arrows of forces."""
        self.force_scale = scale
        self.draw_contacts(*self._contacts)

    def _arrows(self, points: ArrayLike | None, forces: ArrayLike | None) -> Array:
        """Return the ends (n, 2, 3) of the arrows."""
        if points is None or forces is None or not np.size(points):
            return np.zeros((0, 2, 3), dtype=np.float32)
        weight = self.robot.mass * float(np.linalg.norm(self.robot.gravity)) or 1.0
        p, f = np.asarray(points, dtype=float), np.asarray(forces, dtype=float)
        return np.stack([p, p + f * (self.force_scale * WEIGHT * self.size / weight)], axis=1).astype(np.float32)

    # how nodes are made

    def _nodes_of(self, mark: Mark) -> list[Any]:
        if mark not in self._nodes:
            make = {
                Mark.FRAMES: self._frames,
                Mark.NAMES: self._names,
                Mark.CENTER: self._center,
                Mark.LOOPS: self._lines,
                Mark.FORCES: self._forces,
            }
            self._nodes[mark] = make[mark]()
        return self._nodes[mark]

    def _frames(self) -> list[Any]:
        length, nodes = 0.05 * self.size, []
        for k, frame in enumerate(self.robot.frames):
            turn = quaternions(frame.placement.R)
            nodes.append(
                self.scene.add_frame(
                    f"{self.bodies[frame.body].name}/frame/{k}",
                    axes_length=length,
                    axes_radius=0.04 * length,
                    wxyz=turn,
                    position=frame.placement.p,
                )
            )
        return nodes

    def _names(self) -> list[Any]:
        nodes = []
        for k, frame in enumerate(self.robot.frames):
            name = f"{self.bodies[frame.body].name}/name/{k}"
            nodes.append(self.scene.add_label(name, frame.name, position=frame.placement.p, font_screen_scale=0.9))
        return nodes

    def _center(self) -> list[Any]:
        return [self.scene.add_icosphere("/marks/center", radius=0.02 * self.size, color=CENTER, subdivisions=2)]

    def _forces(self) -> list[Any]:
        thick = 0.006 * self.size
        return [
            self.scene.add_arrows(
                "/marks/forces",
                np.zeros((1, 2, 3), dtype=np.float32),
                FORCE,
                shaft_radius=thick,
                head_radius=2.2 * thick,
                head_length=5 * thick,
                visible=False,
            )
        ]

    def _lines(self) -> list[Any]:
        lines = loop_lines(self.robot, self._at[1]) if self._at else {}
        colors = {"loops": LOOP, "couplings": COUPLING}
        return [
            self.scene.add_line_segments(f"/marks/{name}", ends, colors[name], thickness=3.0, thickness_units="screen")
            for name, ends in lines.items()
        ]


def quaternions(R: ArrayLike) -> Array:
    """Convert rotations (..., 3, 3) to unit quaternions (..., 4), scalar first, as viser has them."""
    return np.asarray(tf.SO3.from_matrix(np.asarray(R)).wxyz)


# loops and couplings, as lines and as text


def loop_lines(robot: Robot, placements: dict[str, Array]) -> dict[str, Array]:
    """Return the ends (n, 2, 3) [m] of the lines of "loops" and of "couplings", for placements (4, 4) of the bodies.

    A loop is drawn as a line from the origin of each of its two bodies to the loop's frame there, and a line between the two
    frames, whose length is zero if the loop is closed. A coupling is a line between the bodies that two joints move. A robot
    without loops or without couplings has no entry for them.
    """
    d = loop_description(robot)
    if d is None:
        return {}
    loops, couplings = [], []
    for loop in d.loops:
        a, at_a = _origins(robot, loop.predecessor, loop.predecessor_frame, placements)
        b, at_b = _origins(robot, loop.successor, loop.successor_frame, placements)
        loops += [(a, at_a), (at_a, at_b), (at_b, b)]
    child = {j.name: j.child for j in d.joints}
    for c in d.couplings:
        end, _ = _origins(robot, child[c.joint], Pose(), placements)
        couplings += [(_origins(robot, child[name], Pose(), placements)[0], end) for name, _ in c.terms]
    lines = {"loops": loops, "couplings": couplings}
    return {name: np.array(ends, dtype=np.float32) for name, ends in lines.items() if ends}


def loop_description(robot: Robot) -> Description | None:
    """Return the description of a robot with loops or couplings; None for other robots."""
    return robot.description if isinstance(robot, ClosedRobot) else None


def _origins(robot: Robot, link: str | None, pose: Pose, placements: dict[str, Array]) -> tuple[Array, Array]:
    """Return the origins of a link and of a frame on it, in the world frame."""
    frame = next((f for f in robot.frames if f.name == link), None)
    T = np.eye(4) if frame is None else homogeneous_matrix(frame.placement)
    if frame is not None and frame.body is not None:
        T = placements[frame.body] @ T
    return T[:3, 3], (T @ homogeneous_matrix(pose))[:3, 3]


def described_loops(robot: Robot) -> list[str]:
    """Describe the loops and couplings of a robot, one line each."""
    d = loop_description(robot)
    if d is None:
        return []
    lines = [f"{loop.name}: {loop.type}, {loop.predecessor or WORLD} – {loop.successor}" for loop in d.loops]
    for c in d.couplings:
        terms = [
            f"{coefficient:.4g} {name}" + (f"^{power}" if power > 1 else "")
            for name, coefficients in c.terms
            for power, coefficient in enumerate(coefficients, 1)
            if coefficient
        ]
        lines.append(f"{c.joint} = {' + '.join([*terms, *([f'{c.offset:.4g}'] if c.offset else [])]) or '0'}")
    return lines + [f"{c.name}: {', '.join(c.joints)}" for c in d.closures]
