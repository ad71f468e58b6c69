"""Fit of physically consistent inertias to measured forces: a semidefinite program (Wensing, Kim and Slotine 2018).

With P0 the prior pseudo-inertia of a body and P = L X Lᵀ, P0 = L X0 Lᵀ, the program finds the matrices X that minimize

    ½ Σ ((tau - Y pi(X)) / sigma)² + ½ Σ |X - X0|² / spread²        X ⪰ MARGIN,  friction and armature not negative

L Lᵀ is P0, modified to have some mass and at least a tenth of its length as thickness, because files often contain thinner
bodies by mistake. The second sum is then approximately the distance of inertias at P0 that is the same in all frames and units
(Lee, Wensing and Park 2020). It determines what the motions leave undetermined.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array, Matrix, Vector
from ..checks import Positive, checked
from ..extras import imports_from_extra
from ..robot.linear_parameters import Regressor
from ..summaries import summarized
from .consistency import parameters_of, pseudo_inertia
from .data import deviations_of, stacked

MARGIN = 1e-6  # relative to the prior, in every direction
SMALL = 0.01  # [m] least radius of bodies in the distance
UNKNOWN = 0.1, 0.1  # of the mean mass, and radius [m], of massless bodies in the distance
THIN = 0.01  # of the largest second moment: least moments in the distance
NEARLY_FREE = 1e-7  # weight of zero as the prior of a joint's parameter, because motions may not determine it
UPPER = tuple((i, j) for j in range(4) for i in range(j + 1))  # entries of a symmetric matrix, as the solver takes them
ROOT = np.array([1.0 if i == j else np.sqrt(2.0) for i, j in UPPER])


@summarized
class InertialFit(NamedTuple):
    """Fitted parameters: `inertial` (nbodies, 10), those of joints by name, and the residual force of each joint."""

    inertial: Matrix
    joints: dict[str, float]
    residual: Vector  # (nv) root mean square [N m, N]


@checked
def fit_inertial_parameters(
    regressor: Regressor, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, *, spread: Positive = 10.0,
    prior: ArrayLike | None = None, deviations: ArrayLike | None = None,
) -> InertialFit:  # fmt: skip
    """Return the physically consistent parameters that fit measured forces tau (n, nv) at q (n, nq), v and a (n, nv).

    `regressor` is from `Robot.extended_regressor`. `prior` (nbodies, 10) are prior inertial parameters, by default those of
    the robot, and `spread` is the expected relative deviation from them. Parameters that the motions do not determine keep
    their prior values. `deviations` (nv) are as in `BaseParameters.fit`. The result can be passed to
    `Robot.with_inertial_parameters`.

    Raises ValueError for wrong shapes or numbers, ImportError without clarabel and scipy, and ArithmeticError if the solver
    fails.
    """
    count = 10 * len(regressor.bodies)
    before = np.asarray(regressor.values[:count] if prior is None else prior, dtype=np.float64)
    if before.size != count:
        raise ValueError(f"prior must have shape ({len(regressor.bodies)}, 10); got {before.shape}")
    Y, forces = stacked(regressor, (q, v, a), tau)
    sigma = deviations_of(Y, forces, deviations)
    known = pseudo_inertia(before.reshape(-1, 10))
    L = np.linalg.cholesky(measure(known))
    T, X0 = _from_scaled(L), np.linalg.solve(L, np.swapaxes(np.linalg.solve(L, known), 1, 2))
    own = np.einsum("snbi,bij->snbj", Y[..., :count].reshape(*Y.shape[:2], -1, 10), T)
    A = np.concatenate([own.reshape(*Y.shape[:2], count), Y[..., count:]], axis=-1) / sigma[:, None]
    near = np.array([ROOT[k] * X0[:, i, j] for k, (i, j) in enumerate(UPPER)]).T
    x = _solved(A.reshape(-1, A.shape[-1]), (forces / sigma).ravel(), near, spread)
    X = _positive(x[:count].reshape(-1, 10))
    inertial = parameters_of(L @ X @ np.swapaxes(L, -1, -2))
    of_joints = np.maximum(x[count:], 0.0)
    rest = forces - Y @ np.append(inertial, of_joints)
    joints = dict(zip(regressor.names[count:], of_joints.tolist(), strict=True))
    return InertialFit(inertial, joints, np.sqrt(np.mean(rest**2, axis=0)))


def measure(P: Array) -> Array:
    """Return L Lᵀ of the header, the modified P0 (n, 4, 4)."""
    mass = P[:, 3, 3]
    there = mass > 0.0
    m = np.where(there, mass, UNKNOWN[0] * float(np.mean(np.maximum(mass, 0.0))) or UNKNOWN[0])
    c = P[:, :3, 3] / np.where(there, mass, np.inf)[:, None]
    values, axes = np.linalg.eigh(P[:, :3, :3] - mass[:, None, None] * c[:, :, None] * c[:, None, :])
    least = m * np.where(there, SMALL, UNKNOWN[1]) ** 2
    values = np.maximum(values, np.maximum(THIN * values.max(axis=1), least)[:, None])
    moved = np.concatenate([c, np.ones((len(c), 1))], axis=1)
    made = m[:, None, None] * moved[:, :, None] * moved[:, None, :]
    made[:, :3, :3] += (axes * values[:, None, :]) @ np.swapaxes(axes, 1, 2)
    return np.asarray(made)


def _symmetric(x: Array) -> Array:
    """Return matrices (..., 4, 4) for their entries (..., 10).

    Entries off the diagonal are scaled by the square root of two.
    """
    X = np.empty((*x.shape[:-1], 4, 4))
    for k, (i, j) in enumerate(UPPER):
        X[..., i, j] = X[..., j, i] = x[..., k] / ROOT[k]
    return X


def _from_scaled(L: Array) -> Array:
    """Return the matrices (nbodies, 10, 10) that map the entries of X to inertial parameters."""
    L = L[:, None]
    return np.asarray(parameters_of(L @ _symmetric(np.eye(len(UPPER))) @ np.swapaxes(L, -1, -2)).swapaxes(-1, -2))


def _positive(x: Array) -> Array:
    """Return the matrices X (nbodies, 4, 4), made definite beyond the solver's rounding."""
    values, axes = np.linalg.eigh(_symmetric(x))
    return np.asarray((axes * np.maximum(values, 0.5 * MARGIN)[:, None, :]) @ np.swapaxes(axes, 1, 2))


def _solved(A: Array, b: Array, x0: Array, spread: float) -> Array:
    """Return the matrices X and the parameters of joints by least squares of A x - b, near x0 (nbodies, 10), in their cones."""
    with imports_from_extra("identification", "fitting physically consistent inertias needs clarabel and scipy"):
        import clarabel
        from scipy.sparse import csc_matrix, identity
    bodies, free = len(x0), A.shape[1] - x0.size
    unit = np.append(np.ones(x0.size), 1.0 / np.maximum(np.linalg.norm(A[:, x0.size :], axis=0), 1e-300))
    pull = np.append(np.full(x0.size, 1.0 / spread), np.full(free, NEARLY_FREE))
    whole = np.block([[A * unit, b[:, None]], [np.diag(pull), (pull * np.append(x0, np.zeros(free)))[:, None]]])
    R = np.asarray(np.linalg.qr(whole, mode="r"))
    R, z = R[:-1, :-1], R[:-1, -1]
    x, inverse = (
        np.linalg.solve(R, z),
        np.linalg.inv(R),
    )  # solution without cones; the program is for y = R times the change by the cones
    one = np.array([1.0 if i == j else 0.0 for i, j in UPPER])
    limits = x - np.append(np.tile(MARGIN * one, bodies), np.zeros(free))
    cones = [clarabel.PSDTriangleConeT(4)] * bodies + ([clarabel.NonnegativeConeT(free)] if free else [])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    still = np.zeros(len(x))
    answer = clarabel.DefaultSolver(identity(len(x)).tocsc(), still, csc_matrix(-inverse), limits, cones, settings).solve()
    if str(answer.status) not in ("Solved", "AlmostSolved"):
        raise ArithmeticError(f"the semidefinite program of the fit was not solved ({answer.status}); check the units")
    return np.asarray((x + inverse @ np.asarray(answer.x)) * unit)
