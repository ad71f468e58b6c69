"""Randomized robots, drawn as MuJoCo Playground randomizes its quadruped and its humanoid; and rough ground."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Array
from ..simulation import Simulation
from .reset_noise import ResetNoise

FIRST = 10**6  # index of the first random number for randomization, beyond those of episodes
FRICTION, SURFACE = (0.4, 1.0), 0.6  # range of coefficients, and the coefficient in the file
ARMATURE, MASS = (1.0, 1.05), (0.9, 1.1)  # factors
LOAD = 1.0  # [kg] on the loaded body
SPACING = 0.25  # [m] of points of rough ground
GROUND_SEED = 2025


class Variation(NamedTuple):
    """Ranges of the random variations of a task's robots."""

    body: str  # the body with a load
    dry_friction: tuple[float, float] = (0.9, 1.1)  # factors
    center: float = 0.0  # [m] largest shift of that body's centre of mass in each direction


def randomize(simulation: Simulation, noise: ResetNoise, variation: Variation) -> None:
    """Draw friction of the ground and of joints, armature, masses, and a load on one body, for each robot."""
    robot, robots = simulation.robot, len(simulation.q)
    nominal, joints = np.array(robot.inertial_parameters), robot.nv - 6
    body = [b.name for b in robot.bodies].index(variation.body)
    u = noise.uniform(np.arange(robots), FIRST, 5 + 2 * joints + len(nominal))
    friction, load, center, rest = u[:, 0], u[:, 1], u[:, 2:5], u[:, 5:]
    parameters = between(MASS, rest[:, 2 * joints :])[:, :, None] * nominal
    parameters[:, body] = moved(parameters[:, body], variation.center * (2.0 * center - 1.0), LOAD * (2.0 * load - 1.0))
    rubbing = np.ones((robots, robot.nv))
    rubbing[:, 6:] = between(variation.dry_friction, rest[:, :joints])
    simulation.vary(
        parameters=parameters, armature=between(ARMATURE, rest[:, joints : 2 * joints]) * robot.armature,
        friction=between(FRICTION, friction) / SURFACE, dry_friction=rubbing,
    )  # fmt: skip


def between(bounds: tuple[float, float], u: Array) -> Array:
    """Return numbers between bounds, for numbers u between 0 and 1."""
    numbers: Array = bounds[0] + (bounds[1] - bounds[0]) * u
    return numbers


def moved(parameters: Array, shift: Array, load: Array) -> Array:
    """Return inertial parameters (robots, 10) of bodies with centres of mass shifted by (robots, 3), and with a load there.

    The rotational inertia about the centre of mass does not change.
    """
    mass, moment = parameters[:, 0], parameters[:, 1:4]
    center = moment / mass[:, None]
    inertia = parameters[:, 4:] - about(mass, center)
    heavier, there = mass + load, center + shift
    return np.column_stack([heavier, heavier[:, None] * there, inertia + about(heavier, there)])


def about(mass: Array, c: Array) -> Array:
    """Return the inertia (xx, xy, yy, xz, yz, zz) of point masses at points c about the origin."""
    x, y, z = c.T
    parts: Array = mass[:, None] * np.column_stack([y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y])
    return parts


def rough_heights(height: float, length: float) -> Array:
    """Return random heights (n, n) [m], 0 to `height`, of grid points over a square, the same at each call."""
    n = round(length / SPACING) + 1
    noise = ResetNoise([GROUND_SEED])
    return height * noise.uniform(np.zeros(1, int), 0, n * n).reshape(n, n)
