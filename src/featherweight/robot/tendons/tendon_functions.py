"""Lengths and moment arms of a robot's tendons, for one configuration or many."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...array_types import Array
from ...names import knows_keywords
from ..system import System


def _evaluated(robot: System, q: npt.ArrayLike) -> tuple[Array, Array]:
    """Return the coordinates and moment arms of the robot's tendons at q."""
    configurations = robot._checked("q", q, robot.nq)
    if not robot.model.tendons:
        leading = configurations.shape[:-1]
        return np.zeros((*leading, 0)), np.zeros((*leading, 0, robot.nv))
    from .length_functions import LengthFunctions  # imported on demand: imports the compiler of kernels
    from .tendon_table import length_table

    functions = robot._kept(("tendons",), lambda: LengthFunctions(robot, length_table(robot, robot.model.tendons)))
    return functions.evaluate(configurations)


@knows_keywords
def tendon_lengths(robot: System, q: npt.ArrayLike) -> Array:
    """Return the lengths [m, or sums of coordinates] (..., tendons) of the tendons at q (..., nq).

    A string takes the shortest path around the spheres and cylinders that it passes. Lengths of branches behind pulleys
    are divided by the divisors of the pulleys. Raises ValueError for a wrong length of q.
    """
    coordinates, _ = _evaluated(robot, q)
    return coordinates[..., coordinates.shape[-1] - len(robot.model.tendons) :]


@knows_keywords
def tendon_moment_arms(robot: System, q: npt.ArrayLike) -> Array:
    """Return the moment arms J (..., tendons, nv) of the tendons at q (..., nq).

    J v are the rates of the lengths. Forces F along the tendons, positive if they lengthen them, are equivalent to the
    joint forces Jᵀ F.

    Raises ValueError for a wrong length of q.

        tau = robot.tendon_moment_arms(q).T @ np.zeros(len(robot.tendons))  # of forces along the tendons [N]
    """
    _, S = _evaluated(robot, q)
    return S[..., S.shape[-2] - len(robot.model.tendons) :, :]
