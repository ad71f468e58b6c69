"""One step of smooth motion on the configuration manifold: x' = v, v' = a(q, v).

    semi-implicit Euler    v+ = v + h a(q, v),  q+ = q exp(h v+)                                               order 1
    Runge-Kutta 4          in coordinates u of q exp(u), u' = v + [u, v]/2 + [u, [u, v]]/12 (Munthe-Kaas 1998)   order 4
    implicit midpoint      v+ = v + h a(q exp(h v'/2), v') + g v',  v' = (v + v+)/2,  q+ = q exp(h v')            order 2

The midpoint's g, of the order of h³, is what makes the energy at the end that at the beginning plus the work of the forces,
h v' . tau(q', v'), exactly: a discrete gradient (Gonzalez 1996) along the motion. It keeps the rule symmetric in time.

The midpoint rule's equations are solved for v+ by a simplified Newton iteration. Damping d and stiffness k of joints and drives
are linear in v+, and belong to its matrix: with the armature L = h/2 d + h²/4 k added to M,

    v+ <- v + h (M + L)⁻¹ (tau(q', v') - bias(q', v') + L ((v+ - v) - g v') / h) + g v'

has the same solution, and contracts however stiff joints are. Broyden's method, with the steps kept (Kelley 1995, section 7.3),
learns the rest: drives at their limits, velocity products, the curvature of potentials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..model.types import JointType
from ..robot.robot import Robot
from ..spatial import Vec3, quaternion_at
from .forces import ForcesAtJoints, drive_armature, ordered_sum

Array = np.ndarray[Any, np.dtype[Any]]
Acceleration = Callable[[Array, Array], Array]

MIDPOINT_ITERATIONS = 100
ENERGY_ROUNDS = 30
ROUNDING = 4e-16  # of velocities and energies
SHRUNK = 0.9  # of a change before, below which one is less
STAGNANT = 1e-10, 3  # a change below which one that has not become less for so many iterations is rounding
AT_BEST = 1e-6, 10  # and where rounding is magnified: by stiffness over a short step, or by a mass matrix of bad condition
KEPT_STEPS = 20  # of Broyden's method, which then begins anew
LEAST_SLOPE = 1e-3  # of the equations along a step, below which Broyden's method learns nothing from it
TURNING = 1e-8  # of the kinetic energy, below which that at the mean velocity is none
MOST_GAIN = 0.1  # of the mean velocity that corrects the energy: it is some (h w)² of it, w the frequency of a motion


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


class AtMiddle(NamedTuple):
    """Accelerations and forces of robots in the middle of the step, (robots, nv)."""

    acceleration: Array
    load: Array  # forces at joints
    lag: Array  # and those that stand for the armature L


class MovingRobots(Protocol):
    """Robots as the midpoint rule sees them, q (robots, nq) and v (robots, nv)."""

    def at_middle(self, q: Array, v: Array, lag: Array) -> AtMiddle:
        """Accelerations of the robots with the armature L under all forces, and L times accelerations `lag`."""

    def power_at_middle(self, q: Array, v: Array, found: AtMiddle) -> Array:
        """The power (robots,) of forces other than gravity and springs, for what `at_middle` has found."""

    def energies(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Kinetic energy, and that of gravity and springs, both (robots,)."""


def middle_armature(forces: ForcesAtJoints, h: float, passive: bool, given: Mapping[str, Array] | None = None) -> Array:
    """L (..., n), the armature of all joints' rows by which the midpoint rule meets damping and stiffness.

    A joint has one armature for all its rows. Joints that loops move have none: the ratio of their velocities to independent
    ones changes, and with it the armature would bring forces of its own.

    `given` has damping and stiffness (..., n) and drives (..., 9, k) where they are not those of the robot.
    """
    given = given or {}
    damping, stiffness = (given.get(name, getattr(forces, name)) for name in ("damping", "stiffness"))
    drives = given.get("drives", forces.drives.values)
    half = 0.5 * h
    shape = np.broadcast_shapes(damping.shape, stiffness.shape, (*drives.shape[:-2], damping.shape[-1]))
    L = np.zeros(shape)
    if passive:
        L += half * damping + half * half * stiffness
    of_drives = drive_armature(np.moveaxis(drives, -2, 0), half)
    for k, row in enumerate(forces.drives.row):
        L[..., row] += of_drives[..., k]
    for whole, j in zip(forces.robot.model.joints, forces.robot.joints, strict=True):
        L[..., whole.v_slice] = L[..., whole.v_slice.start, None] if j.independent else 0.0
    return L


def has_settled(change: Any, waited: Any) -> Any:
    """Whether an iteration has come to rounding, after so many without a lesser change; of numbers or arrays."""
    still = (change < STAGNANT[0]) & (waited >= STAGNANT[1])
    return (change <= ROUNDING) | still | ((change < AT_BEST[0]) & (waited >= AT_BEST[1]))


class Patience:
    """When the iterations of each robot have come to rounding."""

    def __init__(self, robots: int) -> None:
        self._least, self.waited = np.full(robots, np.inf), np.zeros(robots, np.int64)

    def ends(self, change: Array) -> Array:
        self.waited = np.where(change < SHRUNK * self._least, 0, self.waited + 1)
        self._least = np.minimum(self._least, change)
        return np.asarray(has_settled(change, self.waited))


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


def midpoint(robot: Robot, q: Array, v: Array, h: float, a: Array, motion: MovingRobots) -> tuple[Array, Array, Array]:
    """Configurations and velocities after a step, and the robots (robots,) whose energy is corrected.

    a (robots, nv) are accelerations at the beginning, with the armature L. The iterations of each robot end by its own measure,
    and it then stays as it is: robots move as if alone, to the bit, and as `smooth_motion.midpoint` moves them.

    Raises NotConverged where iterations do not settle.
    """
    kinetic_before, potential_before = motion.energies(q, v)
    before = kinetic_before + potential_before
    after, moved, gain = v + h * a, np.array(q), np.zeros(len(v))
    going, corrected, patience = np.ones(len(v), bool), np.zeros(len(v), bool), Patience(len(v))
    for _ in range(ENERGY_ROUNDS):
        after, middle, found = settled(robot, q, v, (after, gain, going), h, motion)
        half = 0.5 * (v + after)
        power = motion.power_at_middle(middle, half, found)
        moved = np.where(going[:, None], robot.integrate(q, h * half), moved)
        kinetic, potential = motion.energies(moved, after)
        lacking = before + h * power - (kinetic + potential)
        energy = kinetic + kinetic_before + (np.abs(potential) + np.abs(potential_before)) + 1e-300
        worst = np.abs(lacking) / energy
        going &= ~(patience.ends(worst) | (patience.waited >= STAGNANT[1]))
        if not going.any():
            break
        twice = 2.0 * np.asarray(robot.kinetic_energy(moved, half))
        way = going & is_a_way(twice, kinetic + kinetic_before, gain * twice + lacking)
        corrected |= way
        gain = gain + np.where(way, lacking / np.where(way, twice, 1.0), 0.0)
    return moved, after, corrected


def is_a_way(twice: Any, kinetic: Any, lacking: Any) -> Any:
    """Whether the energy that is lacking can be given along the mean velocity; `twice` is twice the energy of that.

    It cannot where a robot turns back, or is at rest: what is lacking there is rounding. Arguments are numbers or arrays.
    """
    return (twice > TURNING * kinetic) & (abs(lacking) < MOST_GAIN * twice)


def settled(
    robot: Robot, q: Array, v: Array, guess: tuple[Array, Array, Array], h: float, motion: MovingRobots
) -> tuple[Array, Array, AtMiddle]:
    """Velocities at the end, from guesses for given gains; configurations halfway and what acts there.

    `guess` has velocities, gains, and the robots (robots,) to look at.
    """
    after, gain, going = guess
    floor = h * max(1.0, float(np.linalg.norm(robot.gravity)))  # accelerations are sums of terms as great as gravity
    scale = np.abs(v).max(axis=-1) + np.abs(after).max(axis=-1) + floor
    steps, patience, going = QuasiNewton(after.shape), Patience(len(v)), going.copy()
    middle, found = np.array(q), AtMiddle(*np.zeros((3, *v.shape)))
    for _ in range(MIDPOINT_ITERATIONS):
        half = 0.5 * (v + after)
        here = robot.integrate(q, 0.5 * h * half)
        lag = (after - v - gain[:, None] * half) / h
        now = motion.at_middle(here, half, lag)
        middle = np.where(going[:, None], here, middle)
        found = AtMiddle(*(np.where(going[:, None], x, y) for x, y in zip(now, found, strict=True)))
        left = v + h * now.acceleration + gain[:, None] * half - after
        change = np.abs(left).max(axis=-1) / scale
        lost = going & ~(change < np.inf)
        if lost.any():
            raise NotConverged("the iterations of the implicit midpoint step diverge", int(lost.argmax()))
        ended = patience.ends(change)
        step = steps.next(left, ~((change < STAGNANT[0]) | (patience.waited >= STAGNANT[1])))
        after = np.where(going[:, None], after + np.where(ended[:, None], left, step), after)
        going &= ~ended
        if not going.any():
            return after, middle, found
    i = int(going.argmax())
    what = f"the implicit midpoint step is not found: iteration {MIDPOINT_ITERATIONS} changes {change[i]:.2g} of the velocity"
    raise NotConverged(what, i)


class QuasiNewton:
    """Broyden's steps for many systems of equations side by side, from what is left of them at one point after another.

    `smooth_motion.quasi_newton_step` is the same for one system.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.steps, self.weights, self.count = np.zeros((KEPT_STEPS, *shape)), np.zeros((KEPT_STEPS, shape[0])), 0

    def next(self, left: Array, learns: Array) -> Array:
        """Steps (robots, nv) for what is left; `learns` (robots,) says for which the last step counts."""
        s, w, k = self.steps, self.weights, self.count % KEPT_STEPS
        z = left
        for j in range(k - 1):
            z = z + s[j + 1] * (ordered_sum(s[j] * z) * w[j])[:, None]
        if k > 0:
            slope = 1.0 - ordered_sum(s[k - 1] * z) * w[k - 1]
            good = learns & (slope > LEAST_SLOPE)
            w[k - 1] = np.where(good, w[k - 1], 0.0)
            z = z / np.where(good, slope, 1.0)[:, None]
        s[k] = z
        square = ordered_sum(z * z)
        w[k] = np.where(square > 0.0, 1.0 / np.where(square > 0.0, square, 1.0), 0.0)
        self.count += 1
        return z
