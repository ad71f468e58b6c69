"""Inertias that bodies can have, nearest to measured forces: a semidefinite program (Wensing, Kim and Slotine 2018).

With P0 = L Lᵀ the pseudo-inertia of a body known before and P = L X Lᵀ, the matrices X are found that minimize

    ½ Σ ((tau - Y pi(X)) / sigma)² + ½ Σ |X - 1|² / spread²        X ⪰ MARGIN,  friction and armature not negative

The second sum is the distance of Lee, Wensing and Park (2020) on inertias, the same in all frames and units, at P0. It decides
what the motions leave open.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..robot.linear_parameters import Regressor
from .consistency import parameters_of, pseudo_inertia
from .data import deviations_of, stacked

Array = np.ndarray[Any, np.dtype[Any]]

MARGIN = 1e-6  # of what was known before, in every direction
SMALL = 1e-3, 0.01  # of the mean mass, and radius [m], of bodies known before that have none
FLAT = 1e-6  # of the largest second moment
UPPER = tuple((i, j) for j in range(4) for i in range(j + 1))  # entries of a symmetric matrix, as the solver takes them
ROOT = np.array([1.0 if i == j else np.sqrt(2.0) for i, j in UPPER])


class InertialFit(NamedTuple):
    """Parameters fitted: `inertial` (nbodies, 10), those of joints by name, and what is left of the forces of each joint."""

    inertial: Array
    joints: dict[str, float]
    residual: Array  # (nv) root mean square [N m, N]


def fit_inertial_parameters(
    regressor: Regressor, q: Any, v: Any, a: Any, tau: Any, *, spread: float = 1.0, prior: Any = None, deviations: Any = None
) -> InertialFit:
    """The physically consistent parameters for measured forces tau (n, nv) at q (n, nq), v and a (n, nv).

    `regressor` is from `Robot.extended_regressor`. `prior` (nbodies, 10) are the inertial parameters known before, the robot's
    unless given, and `spread` says how far those found may be from them, relatively: what the motions do not tell stays there.
    `deviations` (nv) as in `BaseParameters.fit`. The result suits `Robot.with_inertial_parameters`.

    Raises ValueError for wrong shapes or numbers, ImportError without clarabel and scipy, ArithmeticError where the solver
    fails.
    """
    count = 10 * len(regressor.bodies)
    before = np.asarray(regressor.values[:count] if prior is None else prior, dtype=np.float64)
    if before.size != count:
        raise ValueError(f"prior must have shape ({len(regressor.bodies)}, 10); got {before.shape}")
    if not spread > 0.0:
        raise ValueError(f"spread must be positive; got {spread}")
    Y, forces = stacked(regressor, (q, v, a), tau)
    sigma = deviations_of(Y, forces, deviations)
    known = _regular(pseudo_inertia(before.reshape(-1, 10)))
    T = _from_scaled(known)
    own = np.einsum("snbi,bij->snbj", Y[..., :count].reshape(*Y.shape[:2], -1, 10), T)
    A = np.concatenate([own.reshape(*Y.shape[:2], count), Y[..., count:]], axis=-1) / sigma[:, None]
    x = _solved(A.reshape(-1, A.shape[-1]), (forces / sigma).ravel(), len(known), spread)
    X = _positive(x[:count].reshape(-1, 10))
    L = np.linalg.cholesky(known)
    inertial = parameters_of(L @ X @ np.swapaxes(L, -1, -2))
    of_joints = np.maximum(x[count:], 0.0)
    rest = forces - Y @ np.append(inertial, of_joints)
    joints = dict(zip(regressor.names[count:], of_joints.tolist(), strict=True))
    return InertialFit(inertial, joints, np.sqrt(np.mean(rest**2, axis=0)))


def _regular(P: Array) -> Array:
    """The pseudo-inertias, with a little mass and extent for bodies that have none in some direction."""
    mass = P[:, 3, 3]
    m = np.maximum(mass, SMALL[0] * max(float(np.mean(np.maximum(mass, 0.0))), SMALL[0]))
    c = P[:, :3, 3] / np.where(mass > 0.0, mass, np.inf)[:, None]
    values, axes = np.linalg.eigh(P[:, :3, :3] - mass[:, None, None] * c[:, :, None] * c[:, None, :])
    largest = values.max(axis=1, keepdims=True)
    values = np.where(values > FLAT * np.abs(largest), values, SMALL[1] * np.maximum(largest, m[:, None] * SMALL[1] ** 2))
    moved = np.concatenate([c, np.ones((len(c), 1))], axis=1)
    made = m[:, None, None] * moved[:, :, None] * moved[:, None, :]
    made[:, :3, :3] += (axes * values[:, None, :]) @ np.swapaxes(axes, 1, 2)
    return np.asarray(made)


def _symmetric(x: Array) -> Array:
    """Matrices (..., 4, 4) of their entries (..., 10), those off the diagonal times the root of two."""
    X = np.empty((*x.shape[:-1], 4, 4))
    for k, (i, j) in enumerate(UPPER):
        X[..., i, j] = X[..., j, i] = x[..., k] / ROOT[k]
    return X


def _from_scaled(known: Array) -> Array:
    """The matrices (nbodies, 10, 10) that lead from the entries of X to inertial parameters."""
    L = np.linalg.cholesky(known)[:, None]
    return np.asarray(parameters_of(L @ _symmetric(np.eye(len(UPPER))) @ np.swapaxes(L, -1, -2)).swapaxes(-1, -2))


def _positive(x: Array) -> Array:
    """The matrices X (nbodies, 4, 4), definite beyond the solver's rounding."""
    values, axes = np.linalg.eigh(_symmetric(x))
    return np.asarray((axes * np.maximum(values, 0.5 * MARGIN)[:, None, :]) @ np.swapaxes(axes, 1, 2))


def _solved(A: Array, b: Array, bodies: int, spread: float) -> Array:
    """Entries of the matrices X, and parameters of joints: the least squares of A x - b, near ones, in their cones."""
    try:
        import clarabel
        from scipy.sparse import csc_matrix, identity
    except ImportError as error:
        what = "fitting inertias that bodies can have needs clarabel and scipy"
        raise ImportError(f"{what}: pip install 'featherweight[simulation]'") from error
    n, free = A.shape[1], A.shape[1] - len(UPPER) * bodies
    one = np.array([1.0 if i == j else 0.0 for i, j in UPPER])
    near, pull = np.append(np.tile(one, bodies), np.zeros(free)), np.append(np.full(n - free, spread**-2), np.zeros(free))
    unit = np.append(np.ones(n - free), 1.0 / np.maximum(np.linalg.norm(A[:, n - free :], axis=0), 1e-300))
    R = np.asarray(np.linalg.qr(np.column_stack([A * unit, b]), mode="r"))
    H, g = R[:, :n].T @ R[:, :n] + np.diag(pull), R[:, :n].T @ R[:, n] + pull * near
    size = np.diagonal(H).max()
    limits = np.append(np.tile(-MARGIN * one, bodies), np.zeros(free))
    cones = [clarabel.PSDTriangleConeT(4)] * bodies + ([clarabel.NonnegativeConeT(free)] if free else [])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    rows = (-identity(n)).tocsc()
    answer = clarabel.DefaultSolver(csc_matrix(np.triu(H / size)), -g / size, rows, limits, cones, settings).solve()
    if str(answer.status) not in ("Solved", "AlmostSolved"):
        raise ArithmeticError(f"the semidefinite program of the fit was not solved ({answer.status}); are units extreme?")
    return np.asarray(np.asarray(answer.x) * unit)
