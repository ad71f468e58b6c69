"""Checks of what a simulation is given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..robot.robot import Robot
from .scene import Ground, Sphere

Array = np.ndarray[Any, np.dtype[Any]]

INTEGRATORS = ("semi-implicit", "rk4", "midpoint")


def check_step(step: float, integrator: str) -> None:
    if not (math.isfinite(step) and step > 0.0):
        raise ValueError(f"step must be a positive number of seconds; got {step!r}")
    if integrator not in INTEGRATORS:
        raise ValueError(f"integrator must be one of {', '.join(INTEGRATORS)}; got {integrator!r}")


def check_tolerances(tolerance: float, **lengths: float) -> None:
    for name, value in lengths.items():
        if not value >= 0.0:
            raise ValueError(f"{name} must be zero or more; got {value!r}")
    if not 0.0 < tolerance < 1.0:
        raise ValueError(f"tolerance must be between 0 and 1; got {tolerance!r}")


def check_pairs(pairs: Sequence[tuple[int, int]], spheres: Sequence[Sphere], ground: Ground | None) -> None:
    """Pairs are of two spheres by number, and every sphere has something to touch."""
    for i, j in pairs:
        if not (0 <= i < len(spheres) and 0 <= j < len(spheres)) or i == j:
            raise ValueError(f"pairs must name two of the {len(spheres)} spheres by number; got {(i, j)}")
        if spheres[i].radius + spheres[j].radius == 0.0:
            raise ValueError(f"pair {(i, j)}: two points never touch; one needs a radius")
    if spheres and ground is None and not pairs:
        raise ValueError("the spheres have nothing to touch: give ground=, or pairs= of them")


def states(robot: Robot, q: Any, v: Any) -> tuple[Array, Array]:
    """States (nq,) and (nv,) of a robot, or (robots, nq) and (robots, nv) of many: the neutral one at rest unless given."""
    nq, nv = robot.nq, robot.nv
    q = np.array(robot.neutral() if q is None else q, dtype=np.float64)
    v = np.zeros((*q.shape[:-1], nv)) if v is None else np.array(v, dtype=np.float64)
    for name, x, n in (("q", q, nq), ("v", v, nv)):
        if x.ndim == 0 or x.ndim > 2 or x.shape[-1] != n:
            raise ValueError(f"{name} must have shape ({n},) or (robots, {n}); got {x.shape}")
        if not np.isfinite(x).all():
            raise ValueError(f"{name} must be finite numbers")
    if q.ndim == v.ndim == 2 and len(q) != len(v):
        raise ValueError(f"q and v must be of as many robots; got {len(q)} and {len(v)}")
    if q.ndim != v.ndim or q.shape[:-1] != v.shape[:-1]:
        leading = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        q, v = (np.array(np.broadcast_to(x, (*leading, x.shape[-1])), order="C") for x in (q, v))
    return q, v
