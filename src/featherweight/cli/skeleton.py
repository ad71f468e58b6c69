"""A robot drawn as a skeleton of its joints and masses, in perspective from an angle."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Polygon, Wedge

from ..array_types import Array
from ..robot.robot import Robot
from ..viewer.chart_style import BLUE, FAINT, GREEN, GRID, INK, ORANGE, PURPLE, RED, TEAL

LIMBS = (
    ("free-flyer", ("root",), INK),
    ("torso", ("torso",), GREEN),
    ("head", ("head",), PURPLE),
    ("left arm", ("arm_left", "gripper_left"), BLUE),
    ("right arm", ("arm_right", "gripper_right"), TEAL),
    ("left leg", ("leg_left",), ORANGE),
    ("right leg", ("leg_right",), RED),
)
"""Limbs of Talos: names, prefixes of joint names, and colours."""

AZIMUTH, ELEVATION = math.radians(-42.0), math.radians(10.0)  # direction of the eye, from the robot's front and from the ground
MASS_RADIUS = 0.028  # [m] of the disc of 1 kg; its area grows with the mass
SOLES = ("left_sole_link", "right_sole_link")
SOLE_HALF = (0.105, 0.065)  # [m]


class Projection(NamedTuple):
    """An orthographic projection of points (..., 3) in the world frame to the picture's plane, with their depth."""

    right: Array
    up: Array
    eye: Array

    def of(self, points: Array) -> Array:
        return np.stack([points @ self.right, points @ self.up], axis=-1)


def projection_from(azimuth: float, elevation: float) -> Projection:
    """Return the projection for an eye at infinity in the direction of an azimuth and an elevation [rad]."""
    eye = np.array(
        [
            math.cos(azimuth) * math.cos(elevation),
            math.sin(azimuth) * math.cos(elevation),
            math.sin(elevation),
        ]
    )
    right = np.array([-math.sin(azimuth), math.cos(azimuth), 0.0])
    return Projection(right, np.cross(eye, right), eye)


def limb_of(joint: str) -> tuple[str, str]:
    """Return the name and colour of the limb of a joint."""
    return next(((name, color) for name, starts, color in LIMBS if joint.startswith(starts)), ("", INK))


def draw_skeleton(ax: Axes, robot: Robot, q: Array) -> None:
    """Draw bones between joints, a disc for each body's mass at its centre, and the centre of mass of the robot."""
    projection = projection_from(AZIMUTH, ELEVATION)
    placements = robot.frame_placement([b.name for b in robot.bodies])(q)
    centers = placements[:, :3, 3] + np.einsum("kij,kj->ki", placements[:, :3, :3], [b.center for b in robot.bodies])
    _ground(ax, projection, placements[0, :3, 3])
    _soles(ax, projection, robot.frame_placement(SOLES)(q))
    _bones(ax, projection, robot, placements[:, :3, 3], centers)
    _masses(ax, projection, robot, centers)
    _center_of_mass(ax, projection, robot.center_of_mass(q))
    _key(ax)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_title("Bodies and their masses", x=0.04, pad=18.0)
    ax.set_xlim(-0.80, 1.00)
    ax.set_ylim(-0.20, 1.60)
    ax.set_anchor("N")


def _ground(ax: Axes, projection: Projection, base: Array) -> None:
    half, step = 0.6, 0.2
    x0, y0 = base[:2]
    for s in np.arange(-half, half + 0.5 * step, step):
        for ends in (((s, -half), (s, half)), ((-half, s), (half, s))):
            line = projection.of(np.array([[x0 + x, y0 + y, 0.0] for x, y in ends]))
            ax.plot(*line.T, color=GRID, linewidth=0.8, zorder=0)


def _soles(ax: Axes, projection: Projection, placements: Array) -> None:
    a, b = SOLE_HALF
    corners = np.array([(a, b, 0.0), (a, -b, 0.0), (-a, -b, 0.0), (-a, b, 0.0)])
    for name, T in zip(SOLES, placements, strict=True):
        color = limb_of(f"leg_{name}")[1]
        outline = projection.of(corners @ T[:3, :3].T + T[:3, 3])
        ax.add_patch(Polygon(outline, facecolor=color, edgecolor=color, alpha=0.35, linewidth=1.0, zorder=1))


def _bones(ax: Axes, projection: Projection, robot: Robot, origins: Array, centers: Array) -> None:
    number = {b.name: b.index for b in robot.bodies}
    parents = {j.parent for j in robot.joints}
    for joint in robot.joints:
        k = number[joint.child]
        color = limb_of(joint.name)[1]
        ends = [origins[number[joint.parent]], origins[k]] if joint.parent in number else []
        for line in [ends, [origins[k], centers[k]] if joint.child not in parents else []]:
            if line:
                depth = float(np.mean(line, axis=0) @ projection.eye)
                ax.plot(*projection.of(np.array(line)).T, color=color, linewidth=4.0, solid_capstyle="round", zorder=10 + depth)


def _masses(ax: Axes, projection: Projection, robot: Robot, centers: Array) -> None:
    limbs = {j.child: limb_of(j.name)[1] for j in robot.joints}
    for body, center in zip(robot.bodies, centers, strict=True):
        disc = Circle(
            tuple(projection.of(center)),
            MASS_RADIUS * math.sqrt(body.mass),
            facecolor=limbs[body.name],
            edgecolor="white",
            linewidth=0.8,
            alpha=0.8,
            zorder=10 + float(center @ projection.eye) + 0.05,
        )
        ax.add_patch(disc)


def _center_of_mass(ax: Axes, projection: Projection, center: Array) -> None:
    x, y = projection.of(center)
    radius = 0.032
    foot = projection.of(center * np.array([1.0, 1.0, 0.0]))
    ax.plot([x, foot[0]], [y, foot[1]], color=INK, linewidth=1.0, linestyle=(0, (3, 2)), zorder=19)
    ax.plot(*foot, marker="x", color=INK, markersize=6, zorder=19)
    ax.add_patch(Circle((x, y), radius, facecolor="white", edgecolor=INK, linewidth=1.2, zorder=20))
    for start in (0.0, 180.0):
        ax.add_patch(Wedge((x, y), radius, start, start + 90.0, facecolor=INK, linewidth=0, zorder=21))
    ax.annotate(
        "centre of mass", (x + 1.1 * radius, y), (x + 0.26, y - 0.05), va="center", ha="left", fontsize=8.5, zorder=22,
        arrowprops={"arrowstyle": "-", "color": INK, "linewidth": 0.8},
    )  # fmt: skip


def _key(ax: Axes) -> None:
    """Draw discs of known masses beside the figure."""
    x, y = 0.66, 0.64
    ax.text(x, y + 0.05, "mass of a body", fontsize=8.5, ha="center", color=FAINT)
    for mass in (1.0, 5.0, 15.0):
        radius = MASS_RADIUS * math.sqrt(mass)
        y -= radius
        ax.add_patch(Circle((x, y), radius, facecolor=GRID, edgecolor=FAINT, linewidth=0.8))
        ax.text(x + 0.14, y, f"{mass:.0f} kg", fontsize=8.5, va="center", color=FAINT)
        y -= radius + 0.04
