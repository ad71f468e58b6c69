"""Drag of bodies in a fluid, as MuJoCo computes it: each link is the box with its mass and inertia.

With the velocity v of the box's centre and its angular velocity w, in its axes, its lengths b, d their mean, density rho and
viscosity mu, for each axis i and the other two, j and k:

    force_i  = -3 pi d mu v_i - rho / 2 b_j b_k |v_i| v_i
    torque_i = -pi d³ mu w_i - rho / 64 b_i (b_j⁴ + b_k⁴) |w_i| w_i

(the chapter Computation of MuJoCo's documentation, section Passive forces).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import Any, NamedTuple

import numpy as np

from ..engine.loops.array_types import Integers, Matrix, Tensor, Vector
from ..model.model import DragBox
from ..model.types import Fluid

Array = np.ndarray[Any, np.dtype[Any]]


class DragBoxes(NamedTuple):
    """The boxes of a robot in a fluid, or none."""

    body: Integers  # (n,) numbers of moving bodies
    size: Matrix  # (n, 3) [m]
    center: Matrix  # (n, 3) in the body's frame
    axes: Tensor  # (n, 3, 3) rotation of the box in the body's frame
    velocity: Matrix  # (bodies, 6) linear and angular, in the bodies' frames
    density: float  # [kg/m³]
    viscosity: float  # [Pa s]


def drag_boxes(boxes: Sequence[DragBox], bodies: Sequence[str], fluid: Fluid | None) -> DragBoxes:
    """Return the boxes of a robot whose moving bodies have these names; none without a fluid."""
    kept = [] if fluid is None else list(boxes)
    return DragBoxes(
        np.array([bodies.index(x.body) for x in kept], np.int64),
        np.array([x.size for x in kept], float).reshape(-1, 3),
        np.array([x.pose.p for x in kept], float).reshape(-1, 3),
        np.array([x.pose.R for x in kept], float).reshape(-1, 3, 3),
        np.zeros((len(bodies) if kept else 0, 6)),
        0.0 if fluid is None else float(fluid.density),
        0.0 if fluid is None else float(fluid.viscosity),
    )


def add_drag(boxes: DragBoxes, forces: Matrix) -> None:
    """Add the forces and torques of drag on bodies (bodies, 6), at the origins of their frames and in these."""
    for i in range(len(boxes.body)):
        add_drag_of_box(boxes, i, forces[boxes.body[i]])


def add_drag_of_box(boxes: DragBoxes, i: int, wrench: Vector) -> None:
    """Add the drag of one box."""
    R, c, b, u = boxes.axes[i], boxes.center[i], boxes.size[i], boxes.velocity[boxes.body[i]]
    x, y, z = u[0] + u[4] * c[2] - u[5] * c[1], u[1] + u[5] * c[0] - u[3] * c[2], u[2] + u[3] * c[1] - u[4] * c[0]
    mean = (b[0] + b[1] + b[2]) / 3.0
    linear, angular = 3.0 * pi * mean * boxes.viscosity, pi * mean * mean * mean * boxes.viscosity
    for a in range(3):
        j, k = (a + 1) % 3, (a + 2) % 3
        v = R[0, a] * x + R[1, a] * y + R[2, a] * z
        w = R[0, a] * u[3] + R[1, a] * u[4] + R[2, a] * u[5]
        square = b[j] * b[j] * b[j] * b[j] + b[k] * b[k] * b[k] * b[k]
        force = -(linear + 0.5 * boxes.density * b[j] * b[k] * abs(v)) * v
        torque = -(angular + boxes.density / 64.0 * b[a] * square * abs(w)) * w
        fx, fy, fz = R[0, a] * force, R[1, a] * force, R[2, a] * force
        wrench[0] += fx
        wrench[1] += fy
        wrench[2] += fz
        wrench[3] += R[0, a] * torque + c[1] * fz - c[2] * fy
        wrench[4] += R[1, a] * torque + c[2] * fx - c[0] * fz
        wrench[5] += R[2, a] * torque + c[0] * fy - c[1] * fx
