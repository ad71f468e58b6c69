"""Exciting trajectories: Fourier series within limits that determine base parameters best (Swevers et al. 1997)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array, Matrix, Vector
from ..checks import CHECKED_LATER, Positive, PositiveCount, SeedOrNone, checked
from ..robot.linear_parameters import Chosen
from ..robot.robot import Robot
from .base_parameters import BaseParameters, base_parameters

SAMPLES = 24  # of the regressor in a period of the fastest sine
MARGIN = 0.95  # of the limits
UNLIMITED = 1.0  # [rad, m] amplitude of joints without limits
WORST = 1e12  # condition number at which motions count as useless
ROUNDS = 40  # halvings of the amplitude that bring forces within their limits


@dataclass(frozen=True, eq=False)
class Excitation:
    """A periodic motion that starts and ends at rest: `time` (n,) [s], q, v and a (n, nv), and the forces tau (n, nv).

    `condition` is the condition number of the base regressor with columns of unit length; `determinant` is the logarithm of
    the determinant of its information, which `excite` maximizes.
    """

    time: Vector
    q: Matrix
    v: Matrix
    a: Matrix
    tau: Matrix
    condition: float
    determinant: float


@checked
def excite(
    robot: Annotated[Robot, CHECKED_LATER],
    duration: Positive = 10.0,
    *,
    harmonics: PositiveCount = 5,
    dt: Positive = 1e-3,
    friction: Chosen = True,
    armature: Chosen = False,
    velocity: ArrayLike | None = None,
    effort: ArrayLike | None = None,
    rng: SeedOrNone = 0,
    iterations: PositiveCount = 400,
) -> Excitation:
    """Return a motion of `duration` seconds that determines the base parameters of a robot well, within its limits.

    Each joint moves by a sum of sines and cosines with `harmonics` frequencies, the multiples of 1 / duration, about the
    middle of its limits (about zero without limits, by at most 1 rad or m). The coefficients maximize the determinant of the
    information YᵀY of the regressor of the base parameters, with `friction` and `armature` as in `base_parameters`
    (D-optimality), by an evolution strategy with `iterations` steps. Velocities stay below `velocity` (nv,), by default the
    robot's limits. The amplitude is reduced until forces of the model stay below `effort` (nv,), by default the robot's limits.
    Collisions are not checked.

    Raises ValueError for robots with loops, couplings or joints of several degrees of freedom, and if gravity alone exceeds
    the effort limits.
    """
    if robot.closed or any(j.type.nq != 1 for j in robot.joints):
        raise ValueError(f"{robot.name}: excite needs joints with one degree of freedom each, without loops and couplings")
    base = base_parameters(robot, joint_friction=friction, armature=armature)
    speed = _limits(robot, "velocity", velocity, robot.velocity_limit)
    forces = _limits(robot, "effort", effort, robot.effort_limit)
    series = _Series(robot, duration, harmonics, speed)
    times = np.arange(SAMPLES * harmonics) * duration / (SAMPLES * harmonics)
    generator, best, size = np.random.default_rng(rng), -np.inf, 1.0
    x = np.zeros(2 * harmonics * robot.nv)
    for k in range(iterations):  # (1 + 1) evolution strategy with the one-fifth rule (Rechenberg 1973)
        other = x + size * generator.standard_normal(len(x)) / (1.0 if k == 0 else np.sqrt(len(x)))
        found = _information(base, series.motion(other, times), forces)[0]
        size *= 1.5 if found > best else 1.5**-0.25
        if found > best:
            x, best = other / np.sqrt(np.mean(other**2)), found
    series.shrink = _shrunk(robot, series, x, times, forces)
    time: Vector = np.arange(round(duration / dt) + 1) * np.float64(dt)
    q, v, a = series.motion(x, time)
    determinant, condition = _information(base, series.motion(x, times), forces)
    return Excitation(time, q, v, a, np.asarray(robot.inverse_dynamics(q, v, a)), condition, determinant)


class _Series:
    """Sums of sines and cosines within limits of positions and velocities, at rest at the start."""

    def __init__(self, robot: Robot, duration: float, harmonics: int, speed: Vector) -> None:
        bounded = np.isfinite(robot.lower) & np.isfinite(robot.upper)
        self.middle = np.where(bounded, 0.5 * (robot.lower + robot.upper), 0.0)
        self.range = np.where(bounded, 0.5 * MARGIN * (robot.upper - robot.lower), UNLIMITED)
        self.rates = 2.0 * np.pi / duration * np.arange(1, harmonics + 1)
        self.speed, self.shrink = MARGIN * speed, 1.0
        self.fine = np.linspace(0.0, duration, 64 * harmonics, endpoint=False)

    def motion(self, x: Vector, time: Vector) -> tuple[Matrix, Matrix, Matrix]:
        """Return q, v and a (n, nv) at times (n,), for coefficients (2 harmonics nv,) of any size."""
        a, b = x.reshape(2, len(self.rates), -1)
        a = a - a.mean(axis=0)  # velocity at the start
        b = b - self.rates[:, None] * (self.rates @ b) / (self.rates @ self.rates)  # acceleration at the start
        q, v, _ = self._sums(a, b, self.fine)
        low, high = q.min(axis=0), q.max(axis=0)
        most = np.maximum(0.5 * (high - low) / self.range, np.abs(v).max(axis=0) / self.speed)
        size = self.shrink / np.maximum(most, 1e-12)
        q, v, acceleration = self._sums(a, b, time)
        return self.middle + size * (q - 0.5 * (low + high)), size * v, size * acceleration

    def _sums(self, a: Matrix, b: Matrix, time: Vector) -> tuple[Matrix, Matrix, Matrix]:
        S, C, w = np.sin(np.outer(time, self.rates)), np.cos(np.outer(time, self.rates)), self.rates
        return (S / w) @ a - (C / w) @ b, C @ a + S @ b, (C * w) @ b - (S * w) @ a


def _limits(robot: Robot, what: str, given: ArrayLike | None, own: Vector) -> Vector:
    """Return positive limits (nv,), infinite without any."""
    limits = np.asarray(own if given is None else given, float)
    limits = np.broadcast_to(limits, (robot.nv,)) if limits.ndim == 0 else limits
    if limits.shape != (robot.nv,) or not (limits > 0.0).all():
        raise ValueError(f"excite: {what} must be {robot.nv} positive numbers; got {given!r}")
    return limits


def _information(base: BaseParameters, motion: tuple[Array, Array, Array], forces: Vector) -> tuple[float, float]:
    """Return the logarithm of the determinant of the information, and the condition number of normalized columns.

    Noise of joints is in proportion to their effort limits, if all have one.
    """
    noise = forces if np.isfinite(forces).all() else np.ones(len(forces))
    W = (base.matrix(*motion) / noise[:, None]).reshape(-1, len(base))
    length = np.sqrt(np.einsum("ij,ij->j", W, W))
    if not length.all():
        return -WORST, WORST
    values = np.linalg.eigvalsh(np.einsum("ij,ik->jk", W / length, W / length, optimize=False))
    squares = np.maximum(values, 1e-24)
    return float(np.log(squares).sum() + 2.0 * np.log(length).sum()), float(np.sqrt(squares[-1] / squares[0]))


def _shrunk(robot: Robot, series: _Series, x: Vector, times: Vector, forces: Vector) -> float:
    """Return the greatest factor, at most 1, of the amplitude with which forces are within limits."""

    def fits(factor: float) -> bool:
        series.shrink = factor
        return bool((np.abs(robot.inverse_dynamics(*series.motion(x, times))) <= MARGIN * forces).all())

    if fits(1.0):
        return 1.0
    low, high = 0.0, 1.0
    if not fits(low):
        raise ValueError(f"{robot.name}: in the middle of the joint limits, gravity alone exceeds the effort limits")
    for _ in range(ROUNDS):
        low, high = (0.5 * (low + high), high) if fits(0.5 * (low + high)) else (low, 0.5 * (low + high))
    return low
