"""One step of smooth motion on the configuration manifold: x' = v, v' = a(q, v).

    semi-implicit Euler    v+ = v + h a(q, v),  q+ = q exp(h v+)                                               order 1
    Runge-Kutta 4          in coordinates u of q exp(u), u' = v + [u, v]/2 + [u, [u, v]]/12 (Munthe-Kaas 1998)   order 4
    implicit midpoint      v+ = v + h a(q exp(h v'/2), v') + g v',  v' = (v + v+)/2,  q+ = q exp(h v')            order 2

The midpoint's g, of the order of h³, is what makes the energy at the end that at the beginning plus the work of the forces,
h v' . tau(q', v'), exactly: a discrete gradient (Gonzalez 1996) along the motion. It keeps the rule symmetric in time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..model.types import JointType
from ..robot.robot import Robot
from ..spatial import Vec3, quaternion_at

Array = np.ndarray[Any, np.dtype[Any]]
Acceleration = Callable[[Array, Array], Array]

MIDPOINT_ITERATIONS = 100
ENERGY_ROUNDS = 30
ROUNDING = 4e-16  # of velocities and energies
STAGNANT = 1e-10  # change below which one that no longer shrinks is rounding
WAITED = 3  # iterations without a lesser change
TURNING = 1e-8  # of the kinetic energy, below which that at the mean velocity is none


def put_straight(robot: Robot, q: Array, x: Array, ahead: Array) -> Array:
    """`ahead` (..., nq) with the origins of independent floating and planar joints straight on from q by x (..., nv)."""
    result = np.array(ahead)
    for j in robot.joints:
        if not j.independent or j.type not in (JointType.FLOATING, JointType.PLANAR):
            continue
        at, row, size = j.q_slice.start, j.v_slice.start, 3 if j.type is JointType.FLOATING else 2
        start, l = np.moveaxis(q, -1, 0), np.moveaxis(x, -1, 0)
        if size == 3:
            moved: Any = quaternion_at(start, at + 3).normalized().matrix() @ Vec3(l[row], l[row + 1], l[row + 2])
        else:
            turned = (start[at + 2] + 1j * start[at + 3]) * (l[row] + 1j * l[row + 1]) / np.hypot(start[at + 2], start[at + 3])
            moved = turned.real, turned.imag
        for k in range(size):
            result[..., at + k] = q[..., at + k] + moved[k]
    return result


class Patience:
    """When an iteration has come to rounding: its changes are tiny, or small and no longer less than before."""

    def __init__(self) -> None:
        self._least, self._waited = np.inf, 0

    def ends(self, change: float) -> bool:
        self._waited = 0 if change < self._least else self._waited + 1
        self._least = min(self._least, change)
        return change <= ROUNDING or (change < STAGNANT and self._waited >= WAITED)


class NotConverged(Exception):
    """The implicit step of a robot was not found."""

    def __init__(self, what: str, robot: int) -> None:
        super().__init__(what)
        self.robot = robot


def bracket(robot: Robot, a: Array, b: Array) -> Array:
    """[a, b] of velocities (..., nv), joint by joint: that of SE(3), SO(3) and SE(2), zero on lines."""
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape))
    for j in robot.joints:
        s = j.v_slice
        if s.stop - s.start < j.type.nv:  # in a loop, where the rows that move by themselves are no group
            continue
        x, y = a[..., s], b[..., s]
        if j.type is JointType.SPHERICAL:
            result[..., s] = np.cross(x, y)
        elif j.type is JointType.FLOATING:
            result[..., s.start : s.start + 3] = np.cross(x[..., 3:], y[..., :3]) - np.cross(y[..., 3:], x[..., :3])
            result[..., s.start + 3 : s.stop] = np.cross(x[..., 3:], y[..., 3:])
        elif j.type is JointType.PLANAR:
            result[..., s.start] = y[..., 2] * x[..., 1] - x[..., 2] * y[..., 1]
            result[..., s.start + 1] = x[..., 2] * y[..., 0] - y[..., 2] * x[..., 0]
    return result


def runge_kutta(robot: Robot, q: Array, v: Array, h: float, acceleration: Acceleration) -> tuple[Array, Array]:
    curved = any(j.type.nv > 1 for j in robot.joints)

    def rate(u: Array, w: Array) -> Array:
        if not curved:
            return w
        once = bracket(robot, u, w)
        return w + 0.5 * once + bracket(robot, u, once) / 12.0

    k1, a1 = v, acceleration(q, v)
    u2, v2 = 0.5 * h * k1, v + 0.5 * h * a1
    k2, a2 = rate(u2, v2), acceleration(robot.integrate(q, u2), v2)
    u3, v3 = 0.5 * h * k2, v + 0.5 * h * a2
    k3, a3 = rate(u3, v3), acceleration(robot.integrate(q, u3), v3)
    u4, v4 = h * k3, v + h * a3
    k4, a4 = rate(u4, v4), acceleration(robot.integrate(q, u4), v4)
    moved = robot.integrate(q, h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))
    return moved, v + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)


def midpoint(
    robot: Robot, q: Array, v: Array, h: float, acceleration: Acceleration,
    energy: Callable[[Array, Array], Array], power: Callable[[Array, Array], Array],
) -> tuple[Array, Array]:  # fmt: skip
    """`energy` is kinetic and potential, `power` that of all other forces.

    Raises NotConverged where fixed-point iterations do not settle: the step is too long.
    """
    before = energy(q, v)
    after = v + h * acceleration(q, v)
    gain = np.zeros(v.shape[:-1])
    patience = Patience()
    for _ in range(ENERGY_ROUNDS):
        after, middle = settled(robot, q, v, after, gain, h, acceleration)
        half = 0.5 * (v + after)
        moved = robot.integrate(q, h * half)
        lacking = before + h * power(middle, half) - energy(moved, after)
        kinetic = np.asarray(robot.kinetic_energy(moved, after)) + np.asarray(robot.kinetic_energy(q, v))
        worst = float(np.abs(lacking / (np.abs(before) + kinetic + 1e-300)).max())
        if patience.ends(worst):
            break
        twice = 2.0 * np.asarray(robot.kinetic_energy(moved, half))
        moving = twice > TURNING * kinetic  # where it turns back, there is no way along which to correct the energy
        gain = gain + np.where(moving, lacking / np.where(moving, twice, 1.0), 0.0)
    return moved, after


def settled(
    robot: Robot, q: Array, v: Array, after: Array, gain: Array, h: float, acceleration: Acceleration
) -> tuple[Array, Array]:
    """The velocity at the end for a given gain, by fixed-point iteration from a guess, and the configuration halfway."""
    floor = h * max(1.0, float(np.linalg.norm(robot.gravity)))  # accelerations are sums of terms as great as gravity
    scale = float(np.abs(v).max() + np.abs(after).max()) + floor
    patience = Patience()
    for _ in range(MIDPOINT_ITERATIONS):
        half = 0.5 * (v + after)
        middle = robot.integrate(q, 0.5 * h * half)
        guess = v + h * acceleration(middle, half) + gain[..., None] * half
        changes = np.atleast_2d(np.abs(guess - after)).max(axis=-1)
        change = float(changes.max()) / scale
        after = guess
        if patience.ends(change):
            return after, middle
    what = f"implicit midpoint did not settle in {MIDPOINT_ITERATIONS} iterations (change {change:.2g})"
    raise NotConverged(what, int(np.argmax(np.where(np.isnan(changes), np.inf, changes))))
