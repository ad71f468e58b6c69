"""Gauss-Newton steps of multiple shooting: starts of windows are eliminated, unknowns are within bounds.

With the sums G[w, c] of `shooting` and the noise s[c] of each component, the normal equations of window w are

    [A_w  B_w] [start   ]   [a_w]                         Σ_c G[w, c] / s[c]²
    [B_wᵀ C_w] [unknowns] = [c_w],

and the Schur complement Σ_w (C_w - B_wᵀ A_w⁻¹ B_w) that of the unknowns. Its inverse is their covariance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Matrix, Vector
from .shooting import Grams

START = 1.0, 30.0  # [rad, m], [rad/s, m/s] deviations that regularize numbers of starts that nothing measures

STEP = 0.03, 0.3  # the same of steps: a contact stops some velocities of starts only as long as it lasts


class Prior(NamedTuple):
    """Prior of the unknowns: information (p,), mean (p,), and weak information (p,) that keeps steps finite."""

    information: Vector
    mean: Vector
    weak: Vector


class Normal(NamedTuple):
    """Normal equations in blocks."""

    A: Array  # (W, s, s)
    B: Array  # (W, s, p)
    C: Matrix  # (p, p)
    a: Array  # (W, s)
    c: Vector  # (p,)


class Step(NamedTuple):
    """A step: of the unknowns (p,), of the starts (W, s), and the decrease of the objective that it predicts.

    `deviations` is the sum of squares of the step of the unknowns, in their deviations.
    """

    unknowns: Vector
    starts: Matrix
    decrease: float
    deviations: float


def weighted(grams: Grams, noise: Mapping[str, Vector]) -> Array:
    """Return the sums (W, m, m) of all components, for their noise."""
    found: Any = 0.0
    for name, G in grams.sums.items():
        found = found + (noise[name] ** -2.0 @ G.reshape(*G.shape[:2], -1)).reshape(len(G), *G.shape[2:])
    return np.asarray(found)


def normal_equations(grams: Grams, noise: Mapping[str, Vector], prior: Prior, x: Vector) -> Normal:
    """Return the normal equations at unknowns x (p,), with priors."""
    G, p = weighted(grams, noise), len(x)
    s = G.shape[1] - 1 - p
    A = G[:, :s, :s] + np.diag(np.repeat(np.array(START) ** -2.0, s // 2))
    C = G[:, s:-1, s:-1].sum(axis=0) + np.diag(prior.information + prior.weak)
    c = G[:, s:-1, -1].sum(axis=0) + prior.information * (prior.mean - x)
    return Normal(A, G[:, :s, s:-1], C, G[:, :s, -1], c)


def reduced(N: Normal) -> tuple[Matrix, Array]:
    """Return the Schur complement (p, p), and A⁻¹ B (W, s, p)."""
    AB = np.linalg.solve(N.A, N.B)
    S = N.C - np.einsum("wsp,wsq->pq", N.B, AB)
    return 0.5 * (S + S.T), AB


def solved(N: Normal, x: Vector, bounds: tuple[Vector, Vector], damping: float) -> Step:
    """Return a Levenberg-Marquardt step from x (p,) within bounds.

    Damping is relative to the diagonal. Unknowns at a bound that the step would cross stay there; others are cut.
    """
    damped = N._replace(A=_damped(N.A, damping), C=N.C * (1.0 + damping * np.eye(len(N.C))))
    S, AB = reduced(damped)
    Aa = np.linalg.solve(damped.A, N.a[..., None])[..., 0]
    g = N.c - np.einsum("wsp,ws->p", AB, N.a)
    free, step = np.ones(len(x), bool), np.zeros(len(x))
    for _ in range(len(x) + 1):
        step[:] = 0.0
        rest = np.flatnonzero(free)
        if len(rest):
            scale = np.sqrt(np.diagonal(S)[rest])
            step[rest] = np.linalg.solve(S[np.ix_(rest, rest)] / np.outer(scale, scale), g[rest] / scale) / scale
        beyond = free & (((x <= bounds[0]) & (step < 0.0)) | ((x >= bounds[1]) & (step > 0.0)))
        if not beyond.any():
            break
        free &= ~beyond
    step = np.clip(x + step, *bounds) - x
    starts = Aa - AB @ step
    linear = np.sum(N.a * starts) + N.c @ step
    quadratic = (
        np.einsum("ws,wst,wt->", starts, N.A, starts) + 2.0 * np.einsum("ws,wsp,p->", starts, N.B, step) + step @ N.C @ step
    )
    return Step(step, starts, float(2.0 * linear - quadratic), float(step @ S @ step))


def starts_for(N: Normal, step: Vector, damping: float) -> Matrix:
    """Return the damped steps of the starts (W, s) for a step of the unknowns (p,)."""
    return np.asarray(np.linalg.solve(_damped(N.A, damping), (N.a - N.B @ step)[..., None])[..., 0])


def _damped(A: Array, damping: float) -> Array:
    """Return the matrices (W, s, s) of starts for a damped step."""
    s = A.shape[1]
    return np.asarray(A * (1.0 + damping * np.eye(s)) + np.diag(np.repeat(np.array(STEP) ** -2.0, s // 2)))


def covariance_of(S: Matrix) -> Matrix:
    """Return the inverse of a Schur complement, computed in units of its diagonal."""
    scale = 1.0 / np.sqrt(np.diagonal(S))
    scaled = S * np.outer(scale, scale)
    try:
        root = np.linalg.inv(np.linalg.cholesky(scaled))
        inverse = root.T @ root
    except np.linalg.LinAlgError:
        inverse = np.linalg.pinv(scaled, rcond=1e-14, hermitian=True)
    return np.asarray(inverse * np.outer(scale, scale))


def used_freedoms(grams: Grams, noise: Mapping[str, Vector], N: Normal) -> dict[str, Vector]:
    """Return the number of unknowns and starts that the measurements of each component determine, by channel (k,)."""
    S, AB = reduced(N)
    cov, inverse = covariance_of(S), np.linalg.inv(N.A)
    cross = -AB @ cov  # (W, s, p)
    own = inverse - cross @ np.swapaxes(AB, 1, 2)
    s = N.A.shape[1]
    found = {}
    for name, G in grams.sums.items():
        traces = np.einsum("wst,wcst->c", own, G[..., :s, :s]) + 2.0 * np.einsum("wsp,wcsp->c", cross, G[..., :s, s:-1])
        traces += np.einsum("pq,wcpq->c", cov, G[..., s:-1, s:-1])
        found[name] = traces * noise[name] ** -2.0
    return found
