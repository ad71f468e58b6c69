"""Random states, and how results of two programs are compared."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import featherweight as fw

Array = npt.NDArray[np.float64]

ROUNDING = 1e-10
"""Largest difference, relative to the norm of one state's result, that rounding explains.

Two programs that sum the same numbers in another order differ by about n eps κ, with n the number of terms and κ how much
they cancel. n eps is some 1e-14 here, so the bound leaves a factor of 1e4 for cancellation, and is far below what any
wrong term gives. Norms are taken over a whole result, since a component that is nearly zero has no digits of its own.
"""


class States(NamedTuple):
    """Configurations, velocities, accelerations or forces, one state a row."""

    q: Array
    v: Array
    a: Array


def random_states(robot: fw.Robot, count: int, seed: int = 0) -> States:
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng, count)
    return States(q, rng.standard_normal((count, robot.nv)), rng.standard_normal((count, robot.nv)))


def norms(x: Any, states: int) -> Array:
    """The Euclidean norm of each state's result."""
    return np.asarray(np.linalg.norm(np.reshape(x, (states, -1)), axis=1), dtype=np.float64)


def error(result: Any, reference: Any) -> float:
    """The largest relative difference over states (the first axis)."""
    result, reference = np.asarray(result, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    assert result.shape == reference.shape
    assert np.all(np.isfinite(result))
    states = len(reference)
    scale = norms(reference, states)
    return float(np.max(norms(result - reference, states) / np.where(scale == 0.0, 1.0, scale), initial=0.0))


def assert_close(result: Any, reference: Any, tolerance: float = ROUNDING) -> None:
    assert error(result, reference) <= tolerance


def condition_bound(M: Array, factor: float = 100.0) -> float:
    """What two backward stable solutions of M x = b may differ by, relatively; `ROUNDING` at least.

    Forward dynamics divides by M: each solution is exact for matrices within n eps of M, so they differ by up to
    cond(M) n eps. M is scaled to a unit diagonal first, as the units of the joints do not matter to either.
    """
    worst = 1.0
    for H in M:
        d = 1.0 / np.sqrt(np.diagonal(H))
        worst = max(worst, float(np.linalg.cond(d[:, None] * H * d)))
    return max(ROUNDING, factor * np.finfo(np.float64).eps * worst)


def scaled(x: Array, M: Array) -> Array:
    """Accelerations in units that give M (states, n, n) a unit diagonal."""
    return np.asarray(x * np.sqrt(np.diagonal(M, axis1=1, axis2=2)), dtype=np.float64)
