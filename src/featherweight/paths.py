"""Paths over time: quintic polynomials and trapezoidal velocities between configurations, straight lines between placements.

    q(t) = q_i ⊕ s(t),   v = J(s) s',   a = J(s) s'' + (d/dt J(s)) s'        J the right Jacobian of ⊕

s is a piecewise polynomial in the tangent space at the point q_i with which its segment begins. Where the direction of s does
not change, J(s) s' = s': v and a are then those of s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import se3
from .array_types import Array, Integers, Matrix, Tensor, Vector
from .checks import Positive, array_of, checked, real_array, shown
from .robot.robot import Robot
from .robot.trajectory import Trajectory, joint_names
from .summaries import summarized

Segments = tuple[Vector, Integers, Tensor, float]  # times, bases and coefficients of pieces, and the end

__all__ = ["FramePath", "FramePoints", "JointPath", "JointPoints", "line", "quintic", "trapezoidal"]

STENCIL = np.array([1.0, -8.0, 8.0, -1.0]) / 12.0  # of a first derivative, at -2, -1, 1 and 2 steps
STEP = 1e-3  # of s: the stencil is exact to rounding


@summarized
class JointPoints(NamedTuple):
    """Points of a path: configurations q (..., nq), velocities v and accelerations a (..., nv)."""

    q: Array
    v: Array
    a: Array


@summarized
class FramePoints(NamedTuple):
    """Points of a path: placements T (..., 4, 4), velocities v and (classical) accelerations a (..., 6).

    v and a are (linear, angular) at the frame's origin in the world's axes: "local_world_aligned" of `Robot`.
    """

    T: Array
    v: Array
    a: Array


@dataclass(frozen=True, eq=False)
class _Path:
    """Pieces that begin at `times` (m,) [s] and at the points numbered `bases` (m,): polynomials (m, 6, n) of s."""

    points: Array
    times: Vector
    bases: Integers
    coefficients: Tensor
    end: float  # [s]

    @property
    def duration(self) -> float:
        """Time from the first point to the last [s]."""
        return float(self.end - self.times[0])

    def _at(self, time: ArrayLike) -> tuple[Array, Array, Array, Array]:
        """Return points, s, s' and s'' (..., n) at times (...); at rest before the first point and after the last."""
        t = real_array("time", time)
        k = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 1)
        x = (np.clip(t, self.times[0], self.end) - self.times[k])[..., None]
        s, ds, dds = np.zeros((3, *t.shape, self.coefficients.shape[-1]))
        for power in range(5, -1, -1):  # Horner's rule
            dds, ds, s = dds * x + 2.0 * ds, ds * x + s, s * x + self.coefficients[k, power]
        moves = ((t >= self.times[0]) & (t <= self.end))[..., None]
        return self.points[self.bases[k]], s, ds * moves, dds * moves


@summarized
@dataclass(frozen=True, eq=False)
class JointPath(_Path):
    """A path of configurations over time: `path(t)` returns the `JointPoints` at times t (...) [s].

    The robot is at rest before the first point and after the last.
    """

    robot: Robot

    def __call__(self, time: ArrayLike) -> JointPoints:
        """Return configurations, velocities and accelerations at times (...) [s]."""
        base, s, ds, dds = self._at(time)
        return JointPoints(np.asarray(self.robot.integrate(base, s)), *_rates(self.robot, base, s, ds, dds))

    @checked
    def trajectory(self, dt: Positive) -> Trajectory:
        """Return a `Trajectory` with a state every `dt` seconds, and the last one. Raises ValueError unless dt > 0."""
        times = np.append(np.arange(self.times[0], self.end - 1e-9 * dt, dt), self.end)
        q, v, _ = self(times)
        return Trajectory(times, q, v, robot=self.robot.name, joints=joint_names(self.robot), system=self.robot)


@summarized
@dataclass(frozen=True, eq=False)
class FramePath(_Path):
    """A path of a frame over time: `path(t)` returns the `FramePoints` at times t (...) [s]; at rest before and after."""

    def __call__(self, time: ArrayLike) -> FramePoints:
        """Return placements, velocities and accelerations at times (...) [s]."""
        base, s, *rates = self._at(time)
        R, p = base[..., :3, :3], base[..., :3, 3]
        v, a = (np.concatenate([x[..., :3], (R @ x[..., 3:, None])[..., 0]], axis=-1) for x in rates)
        return FramePoints(se3.homogeneous(R @ se3.exp3(s[..., 3:]), p + s[..., :3]), v, a)


@checked
def quintic(
    robot: Robot, q: ArrayLike, times: ArrayLike, velocities: ArrayLike | None = None, accelerations: ArrayLike | None = None
) -> JointPath:
    """Return the path of quintic polynomials through configurations q (n, nq) at `times` (n,) [s].

    `velocities` and `accelerations` (n, nv) are those at the points, zero by default. Both are continuous along the path. A
    segment that is at rest at both ends keeps limits if it takes max(15/8 d/v, (10/√3 d/a)^½) s for each joint.

    Raises ValueError for wrong shapes, numbers that are not finite, and times that do not increase.
    """
    q, d = _segments(robot, q)
    times, shape = _given("quintic: times", times, (len(q),)), (len(q), robot.nv)
    v = _given("quintic: velocities", np.zeros(shape) if velocities is None else velocities, shape)
    a = _given("quintic: accelerations", np.zeros(shape) if accelerations is None else accelerations, shape)
    end = v[1:], a[1:]
    if _turns(robot):  # s' and s'' at the ends, from v and a there
        J = robot.integrate_derivatives(q[:-1], d).dresult_dv
        slope = np.linalg.solve(J, v[1:, :, None])[..., 0]
        bend = _rates(robot, q[:-1], d, slope, np.zeros_like(d))[1]
        end = slope, np.linalg.solve(J, (a[1:] - bend)[..., None])[..., 0]
    return JointPath(q, *_quintics(d, times, (v[:-1], a[:-1]), end), robot)


@checked
def trapezoidal(
    robot: Robot, q: ArrayLike, acceleration_limit: ArrayLike, velocity_limit: ArrayLike | None = None
) -> JointPath:
    """Return the fastest path with trapezoidal velocities that is straight between configurations q (n, nq) and stops at each.

    All joints begin, accelerate and stop together, and one joint at least is at a limit: `acceleration_limit` [rad/s², m/s²] or
    `velocity_limit` [rad/s, m/s], numbers or (nv,); the latter is `robot.velocity_limit` by default.

    Raises ValueError for wrong shapes and for limits that are not positive, or infinite for accelerations.
    """
    q, d = _segments(robot, q)
    limits = robot.velocity_limit if velocity_limit is None else velocity_limit, acceleration_limit
    return JointPath(q, *_trapezoids(d, *(_fastest("trapezoidal", d, x) for x in limits)), robot)


@checked
def line(
    T: ArrayLike, times: ArrayLike | None = None, *, velocity_limit: ArrayLike = np.inf, acceleration_limit: ArrayLike = np.inf
) -> FramePath:
    """Return the path along straight lines between placements T (n, 4, 4), which stops at each; orientations by slerp.

    With `times` (n,) [s], the law of time is quintic. Without, velocities are trapezoidal with limits for (linear, angular)
    velocities [m/s, rad/s] and accelerations [m/s², rad/s²].

    Raises ValueError for wrong shapes, no rigid motions, times that do not increase, and limits as in `trapezoidal`.
    """
    T = array_of("line: T", T, "n", 4, 4)
    se3.require_rigid("line", "T", T)
    if len(T) < 2:
        raise ValueError(f"line: T must have shape (n, 4, 4), with two placements at least; got {T.shape}")
    turned = se3.log3(se3.compose(se3.inverse(T[:-1]), T[1:])[:, :3, :3])
    d = np.concatenate([np.diff(T[:, :3, 3], axis=0), turned], axis=-1)
    if times is not None:
        rest = np.zeros_like(d), np.zeros_like(d)
        return FramePath(T, *_quintics(d, _given("line: times", times, (len(T),)), rest, rest))
    parts = np.linalg.norm(d.reshape(-1, 2, 3), axis=-1)
    return FramePath(T, *_trapezoids(d, *(_fastest("line", parts, x) for x in (velocity_limit, acceleration_limit))))


def _segments(robot: Robot, q: ArrayLike) -> tuple[Matrix, Matrix]:
    """Return configurations (n, nq) and the velocities (n - 1, nv) that lead from each to the next in a unit of time."""
    q = array_of("q", q, "n", robot.nq)
    if len(q) < 2:
        raise ValueError(f"q must be two configurations at least; got {len(q)}")
    return q, np.asarray(robot.difference(q[:-1], q[1:]))


def _given(name: str, x: ArrayLike, shape: tuple[int, ...]) -> Array:
    return array_of(name, x, *shape)


def _fastest(name: str, d: Matrix, limit: ArrayLike) -> Vector:
    """Return how fast the travelled part of ways d (k, n) may change (k,) within limits, a number or (n,)."""
    limit = real_array(f"{name}: limits", limit)
    if limit.shape not in ((), d.shape[1:]) or not (limit > 0.0).all():
        raise ValueError(f"{name}: limits must be positive, a number or {d.shape[1]} of them; got {shown(limit)}")
    with np.errstate(divide="ignore"):
        return np.asarray((limit / np.abs(d)).min(axis=-1))


def _trapezoids(d: Matrix, velocity: Vector, acceleration: Vector) -> Segments:
    """Return three pieces for each of the ways d (k, n), of which the travelled part changes at most so fast."""
    still = ~d.any(axis=-1)
    if not np.isfinite(acceleration[~still]).all():
        raise ValueError("limits of accelerations must be finite for all that moves; give acceleration_limit")
    gain = np.where(still, 1.0, acceleration)
    peak = np.minimum(velocity, np.sqrt(gain))  # a triangle, if the limit of velocity is not reached
    rise = np.where(still, 0.0, peak / gain)
    cruise = np.where(still, 0.0, np.maximum(1.0 / peak - rise, 0.0))
    times = np.concatenate([[0.0], np.cumsum(np.stack([rise, cruise, rise], axis=1))])
    part, zero = 0.5 * gain * rise**2, np.zeros_like(rise)
    laws = np.array([[zero, zero, 0.5 * gain], [part, peak, zero], [1.0 - part, peak, -0.5 * gain]])  # by powers of time
    pieces = np.zeros((len(d), 3, 6, d.shape[1]))
    pieces[:, :, :3] = np.moveaxis(laws, 2, 0)[..., None] * d[:, None, None]
    return times[:-1], np.repeat(np.arange(len(d)), 3), pieces.reshape(-1, 6, d.shape[1]), float(times[-1])


def _quintics(d: Matrix, times: Vector, begin: tuple[Matrix, Matrix], end: tuple[Matrix, Matrix]) -> Segments:
    """Return one piece for each of the ways d (k, n), with s' and s'' at the beginning and the end."""
    (v0, a0), (v1, a1), T = begin, end, np.diff(times)[:, None]
    if not (T > 0.0).all():
        raise ValueError(f"times must increase; got {times}")
    c3 = (20.0 * d - (8.0 * v1 + 12.0 * v0) * T - (3.0 * a0 - a1) * T**2) / (2.0 * T**3)
    c4 = (-30.0 * d + (14.0 * v1 + 16.0 * v0) * T + (3.0 * a0 - 2.0 * a1) * T**2) / (2.0 * T**4)
    c5 = (12.0 * d - 6.0 * (v1 + v0) * T - (a0 - a1) * T**2) / (2.0 * T**5)
    return times[:-1], np.arange(len(d)), np.stack([np.zeros_like(d), v0, 0.5 * a0, c3, c4, c5], axis=1), float(times[-1])


def _turns(robot: Robot) -> bool:
    return any(j.type.nv > 1 for j in robot.joints)


def _rates(robot: Robot, q: Array, s: Array, ds: Array, dds: Array) -> tuple[Array, Array]:
    """Return v and a (..., nv) of the header."""
    if not _turns(robot):
        return ds, dds
    size = np.abs(ds).max(axis=-1, keepdims=True)
    h = STEP / np.where(size > 0.0, size, 1.0)
    near = s + np.multiply.outer([-2.0, -1.0, 1.0, 2.0], h * ds)
    changes = robot.integrate_derivatives(q, near).dresult_dv @ ds[..., None]
    J = robot.integrate_derivatives(q, s).dresult_dv
    v, a = ((J @ x[..., None])[..., 0] for x in (ds, dds))
    return v, a + np.tensordot(STENCIL, changes[..., 0], 1) / h
