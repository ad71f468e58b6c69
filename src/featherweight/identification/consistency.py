"""Physically consistent inertias: those with a positive semidefinite pseudo-inertia (Wensing, Kim and Slotine 2018).

With mass density rho over points r of a body's frame, P = ∫ rho (r, 1)(r, 1)ᵀ = [[Σ, m c], [m cᵀ, m]], where Σ, the second
moment of mass, is ½ tr(I) 1 - I. P transforms between frames as H P Hᵀ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array, Vector
from ..checks import checked, real_array
from ..model.inertia_checks import excess_moments, principal_moments
from ..model.inertial_parameters import NAMES
from ..model.types import Inertia
from ..robot.robot import Robot

TENSOR = ((4, 5, 7), (5, 6, 8), (7, 8, 9))  # indices of the entries of I among the parameters
SLIGHT = 1e-9  # relative to moments: tolerance for rounding


def pseudo_inertia(parameters: ArrayLike) -> Array:
    """Return the matrices P (..., 4, 4) of inertial parameters (..., 10)."""
    x = real_array("inertial parameters", parameters)
    if x.ndim == 0 or x.shape[-1] != len(NAMES):
        raise ValueError(f"inertial parameters must have shape (..., {len(NAMES)}); got {x.shape}")
    I = x[..., TENSOR]
    P = np.empty((*x.shape[:-1], 4, 4))
    P[..., :3, :3] = 0.5 * np.trace(I, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - I
    P[..., :3, 3] = P[..., 3, :3] = x[..., 1:4]
    P[..., 3, 3] = x[..., 0]
    return P


def parameters_of(pseudo: ArrayLike) -> Array:
    """Return the inertial parameters (..., 10) of symmetric matrices P (..., 4, 4)."""
    P = real_array("pseudo-inertias", pseudo)
    if P.shape[-2:] != (4, 4):
        raise ValueError(f"pseudo-inertias must have shape (..., 4, 4); got {P.shape}")
    S = P[..., :3, :3]
    I = np.trace(S, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - S
    tensor = (I[..., a, b] for a, b in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)))
    return np.stack([P[..., 3, 3], *np.moveaxis(P[..., :3, 3], -1, 0), *tensor], axis=-1)


@checked
def inconsistent_bodies(robot: Robot, parameters: ArrayLike | None = None) -> dict[str, str]:
    """Return the bodies whose inertial parameters (nbodies, 10), or flat, no distribution of mass has, and the reasons.

    The default parameters are those of the robot. A body may be flat, thin, a point, or have no mass; P is then semidefinite.
    """
    shape = (len(robot.bodies), len(NAMES))
    given = robot.inertial_parameters if parameters is None else parameters
    x = real_array(f"{robot.name}: inertial parameters", given)
    if x.size != shape[0] * shape[1]:
        raise ValueError(f"{robot.name}: inertial parameters must have shape {shape}; got {x.shape}")
    reasons = {b.name: _why_not(y) for b, y in zip(robot.bodies, x.reshape(shape), strict=True)}
    return {name: reason for name, reason in reasons.items() if reason}


def _why_not(x: Vector) -> str:
    """Describe why a body cannot have these parameters; empty if it can."""
    if not np.isfinite(x).all():
        return "its parameters are not finite"
    mass = float(x[0])
    if mass < 0.0:
        return f"its mass is negative ({mass:.3g} kg)"
    if mass == 0.0:
        return "it has no mass, but other parameters that are not zero" if x.any() else ""
    P = pseudo_inertia(x)
    about = np.eye(4)
    about[:3, 3] = -x[1:4] / mass
    xx, xy, yy, xz, yz, zz = parameters_of(about @ P @ about.T)[4:]
    central = Inertia(mass, rotational=(xx, xy, xz, yy, yz, zz))
    moments = principal_moments([central.rotational])[0]
    excess = float(excess_moments([central])[0])
    if moments[0] < -SLIGHT * abs(x[4:]).max():
        return f"its inertia about the centre of mass has a negative principal moment ({moments[0]:.3g} kg m²)"
    if excess > SLIGHT:
        return f"its greatest principal moment about the centre of mass exceeds the sum of the others by {100 * excess:.3g} %"
    return ""
