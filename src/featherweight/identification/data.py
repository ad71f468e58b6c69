"""Checks of measured motions and forces."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Matrix, Tensor, Vector
from ..robot.linear_parameters import Regressor

LEAST = 1e-4, 1e-6  # least deviations, relative to the joint's forces and to the greatest of all joints


def stacked(regressor: Regressor, motion: tuple[ArrayLike, ArrayLike, ArrayLike], tau: ArrayLike) -> tuple[Tensor, Matrix]:
    """Return the regressor (n, nv, p) at q, v and a (n, .), and forces (n, nv).

    Raises ValueError for forces of a wrong shape.
    """
    Y = np.asarray(regressor.function(*motion))
    forces = np.asarray(tau, dtype=np.float64)
    if Y.ndim != 3:
        raise ValueError(f"q, v and a must have one sample in each row: shapes (n, .); got a batch of shape {Y.shape[:-2]}")
    if forces.shape != Y.shape[:2]:
        raise ValueError(f"tau must have shape {Y.shape[:2]}, like q, v and a; got {forces.shape}")
    if not (np.isfinite(Y).all() and np.isfinite(forces).all()):
        raise ValueError("q, v, a and tau must be finite")
    return Y, forces


def deviations_of(Y: Tensor, tau: Matrix, given: ArrayLike | None) -> Vector:
    """Return standard deviations (nv) of the noise of forces: the given ones, or the residuals of least squares."""
    nv = tau.shape[1]
    if given is not None:
        sigma = np.asarray(given, dtype=np.float64)
        if sigma.shape != (nv,) or not (sigma > 0.0).all():
            raise ValueError(f"deviations must be {nv} positive numbers; got {given!r}")
        return sigma
    p = Y.shape[2]
    scale = np.linalg.norm(Y, axis=(0, 1))
    scale[scale == 0.0] = 1.0
    R = np.asarray(np.linalg.qr(np.column_stack([Y.reshape(-1, p) / scale, tau.ravel()]), mode="r"))
    rest = tau - Y @ (np.linalg.lstsq(R[:, :p], R[:, p], rcond=None)[0] / scale)
    size = np.sqrt(np.mean(tau**2, axis=0))
    least = np.maximum(LEAST[0] * size, LEAST[1] * size.max(initial=0.0))
    return np.maximum(np.sqrt(np.mean(rest**2, axis=0)), np.where(least > 0.0, least, 1.0))
