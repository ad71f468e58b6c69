"""Forces of a fluid on bodies, as in MuJoCo: each link is a box with its mass and inertia, or has ellipsoids.

v and w are the velocity of a part's centre relative to the fluid and its angular velocity, in the part's axes; rho and mu are
density and viscosity. On a box with lengths b and mean length d, for each axis i and the other two, j and k:

    force_i  = -3 pi d mu v_i - rho / 2 b_j b_k |v_i| v_i
    torque_i = -pi d³ mu w_i - rho / 64 b_i (b_j⁴ + b_k⁴) |w_i| w_i

On an ellipsoid with semi-axes r, d = 2/3 (r_x + r_y + r_z), volume V, projected area A(v) along v, and A_max, the greatest area
of a section through two axes; m and I are the added mass and inertia, C the coefficients of the file:

    force  = rho ((m v) x w + C_magnus V w x v + C_kutta A(v) cos(n, v) (n x v) x v)
             - (3 pi d mu + rho |v| (C_blunt A(v) + C_slender (A_max - A(v)))) v         n_i = (r_j r_k)² v_i
    torque = rho ((m v) x v + (I w) x w) - (pi d³ mu + rho |T w|) w
    T_i    = C_angular T'_i + C_slender (T_max - T'_i)         T'_i = 8/15 pi r_i max(r_j, r_k)⁴

with T_max = 8/15 pi r_mid r_max⁴ (MuJoCo's documentation, chapter Computation, section Fluid forces). Entrained fluid
contributes only velocity products, not inertia.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt
from typing import NamedTuple

import numpy as np

from ...array_types import Booleans, Integers, Matrix, Shared, Tensor, Vector
from ...collision.triples import outer
from ...model.model import DragPart
from ...model.types import Fluid, FluidCoefficients

LEAST = 1e-15  # [m/s] least velocity with a direction, as in MuJoCo


class DragParts(NamedTuple):
    """Boxes and ellipsoids of a robot in a fluid; may be empty."""

    body: Shared[Integers]  # (n,) numbers of moving bodies
    size: Shared[Matrix]  # (n, 3) [m] lengths of boxes, semi-axes of ellipsoids
    center: Shared[Matrix]  # (n, 3) in the body's frame
    axes: Shared[Tensor]  # (n, 3, 3) rotation of the part in the body's frame
    rounded: Shared[Booleans]  # (n,) whether it is an ellipsoid
    drag: Shared[Matrix]  # (n, 3) of ellipsoids: C_blunt, C_slender, A_max
    lift: Shared[Matrix]  # (n, 2) C_kutta, C_magnus V
    turning: Shared[Matrix]  # (n, 3) T
    added: Shared[Matrix]  # (n, 6) m, I
    velocity: Matrix  # (bodies, 6) linear and angular, in the bodies' frames
    placement: Tensor  # (bodies, 4, 4) in the world, or no rows without wind
    wind: Shared[Vector]  # (3,) [m/s] in the world
    motion: Vector  # (6,) v, w of a part
    wrench: Vector  # (6,) force, torque on it
    density: float  # [kg/m³]
    viscosity: float  # [Pa s]


def drag_parts(parts: Sequence[DragPart], bodies: Sequence[str], fluid: Fluid | None) -> DragParts:
    """Return the parts of a robot whose moving bodies have these names; none without a fluid."""
    fluid = fluid or Fluid()
    rows = [_numbers(x.size, x.ellipsoid or FluidCoefficients()) for x in parts]
    drag, lift, turning, added = np.split(np.array(rows, float).reshape(-1, 14), (3, 5, 8), axis=1)
    return DragParts(
        np.array([bodies.index(x.body) for x in parts], np.int64),
        np.array([x.size for x in parts], float).reshape(-1, 3),
        np.array([x.pose.p for x in parts], float).reshape(-1, 3),
        np.array([x.pose.R for x in parts], float).reshape(-1, 3, 3),
        np.array([x.ellipsoid is not None for x in parts], bool),
        drag.copy(),
        lift.copy(),
        turning.copy(),
        added.copy(),
        np.zeros((len(bodies) if parts else 0, 6)),
        np.zeros((len(bodies) if parts and any(fluid.wind) else 0, 4, 4)),
        np.array(fluid.wind, float),
        np.zeros(6),
        np.zeros(6),
        float(fluid.density),
        float(fluid.viscosity),
    )


def _numbers(r: Sequence[float], c: FluidCoefficients) -> list[float]:
    """Return the rows of `drag`, `lift`, `turning` and `added` of an ellipsoid."""
    greatest, least = max(r), min(r)
    middle = sum(r) - greatest - least
    share = 8.0 / 15.0 * pi
    most = share * middle * greatest**4
    moments = [share * r[i] * max(r[i - 1], r[i - 2]) ** 4 for i in range(3)]
    turning = [c.angular_drag * x + c.slender_drag * (most - x) for x in moments]
    volume = 4.0 / 3.0 * pi * r[0] * r[1] * r[2]
    drag = c.blunt_drag, c.slender_drag, pi * greatest * middle
    return [*drag, c.kutta_lift, c.magnus_lift * volume, *turning, *c.added_mass, *c.added_inertia]


def add_drag(parts: DragParts, forces: Matrix) -> None:
    """Add the forces and torques of the fluid on bodies (bodies, 6), at the origins of their frames and in these."""
    for i in range(len(parts.body)):
        write_motion(parts, i)
        if parts.rounded[i]:
            write_drag_of_ellipsoid(parts, i)
        else:
            write_drag_of_box(parts, i)
        add_wrench(parts, i, forces[parts.body[i]])


def write_motion(parts: DragParts, i: int) -> None:
    """Write the velocity of a part relative to the fluid, in its axes."""
    R, c, u, motion = parts.axes[i], parts.center[i], parts.velocity[parts.body[i]], parts.motion
    x, y, z = u[0] + u[4] * c[2] - u[5] * c[1], u[1] + u[5] * c[0] - u[3] * c[2], u[2] + u[3] * c[1] - u[4] * c[0]
    if len(parts.placement) > 0:
        T, wind = parts.placement[parts.body[i]], parts.wind
        x -= T[0, 0] * wind[0] + T[1, 0] * wind[1] + T[2, 0] * wind[2]
        y -= T[0, 1] * wind[0] + T[1, 1] * wind[1] + T[2, 1] * wind[2]
        z -= T[0, 2] * wind[0] + T[1, 2] * wind[1] + T[2, 2] * wind[2]
    for a in range(3):
        motion[a] = R[0, a] * x + R[1, a] * y + R[2, a] * z
        motion[a + 3] = R[0, a] * u[3] + R[1, a] * u[4] + R[2, a] * u[5]


def write_drag_of_box(parts: DragParts, i: int) -> None:
    b, motion, wrench = parts.size[i], parts.motion, parts.wrench
    mean = (b[0] + b[1] + b[2]) / 3.0
    linear, angular = 3.0 * pi * mean * parts.viscosity, pi * mean * mean * mean * parts.viscosity
    for a in range(3):
        j, k = (a + 1) % 3, (a + 2) % 3
        v, w = motion[a], motion[a + 3]
        square = b[j] * b[j] * b[j] * b[j] + b[k] * b[k] * b[k] * b[k]
        wrench[a] = -(linear + 0.5 * parts.density * b[j] * b[k] * abs(v)) * v
        wrench[a + 3] = -(angular + parts.density / 64.0 * b[a] * square * abs(w)) * w


def write_drag_of_ellipsoid(parts: DragParts, i: int) -> None:
    r, motion, wrench = parts.size[i], parts.motion, parts.wrench
    drag, lift, turning, added = parts.drag[i], parts.lift[i], parts.turning[i], parts.added[i]
    rho, mu = parts.density, parts.viscosity
    v = motion[0], motion[1], motion[2]
    w = motion[3], motion[4], motion[5]
    momentum = added[0] * v[0], added[1] * v[1], added[2] * v[2]
    spin = added[3] * w[0], added[4] * w[1], added[5] * w[2]
    areas = r[1] * r[2] * (r[1] * r[2]), r[2] * r[0] * (r[2] * r[0]), r[0] * r[1] * (r[0] * r[1])
    n = areas[0] * v[0], areas[1] * v[1], areas[2] * v[2]
    square, along = n[0] * n[0] + n[1] * n[1] + n[2] * n[2], n[0] * v[0] + n[1] * v[1] + n[2] * v[2]
    speed = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    seen, kutta = 0.0, 0.0
    if speed > LEAST and square > 0.0:
        seen = pi * sqrt(square / along)
        kutta = lift[0] * seen * along / (speed * square)
    resisting = turning[0] * w[0], turning[1] * w[1], turning[2] * w[2]
    resistance = sqrt(resisting[0] * resisting[0] + resisting[1] * resisting[1] + resisting[2] * resisting[2])
    d = 2.0 / 3.0 * (r[0] + r[1] + r[2])
    linear = 3.0 * pi * d * mu + rho * speed * (drag[0] * seen + drag[1] * (drag[2] - seen))
    angular = pi * d * d * d * mu + rho * resistance
    pushed, magnus, lifted = outer(momentum, w), outer(w, v), outer(outer(n, v), v)
    tilted, spun = outer(momentum, v), outer(spin, w)
    for a in range(3):
        wrench[a] = rho * (pushed[a] + lift[1] * magnus[a] + kutta * lifted[a]) - linear * v[a]
        wrench[a + 3] = rho * (tilted[a] + spun[a]) - angular * w[a]


def add_wrench(parts: DragParts, i: int, total: Vector) -> None:
    R, c, wrench = parts.axes[i], parts.center[i], parts.wrench
    for a in range(3):
        force, torque = wrench[a], wrench[a + 3]
        fx, fy, fz = R[0, a] * force, R[1, a] * force, R[2, a] * force
        total[0] += fx
        total[1] += fy
        total[2] += fz
        total[3] += R[0, a] * torque + c[1] * fz - c[2] * fy
        total[4] += R[1, a] * torque + c[2] * fx - c[0] * fz
        total[5] += R[2, a] * torque + c[0] * fy - c[1] * fx
