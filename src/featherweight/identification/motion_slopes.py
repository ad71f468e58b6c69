"""Derivatives of motions by their starts and by unknowns, from derivatives of single steps.

A step takes a state s, unknowns x and inputs to s+ = f(s, x). The slopes S of the state by (start, x) follow

    S+ = A S + [0  D],        A = ∂f/∂s,        D = ∂f/∂x.

The states of all windows are known, so that A and D of all steps are computed at once, in a fleet with a robot at each state.
Unknowns that act as joint forces F have D = B ∂F/∂x with B = ∂f/∂tau. Inertial parameters π have F = -Y(q, v, a) π with the
regressor Y and the acceleration a of the step (Atkeson, An and Hollerbach 1986). Latencies shift inputs, by which steps have
derivatives. All others have differences of single steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Integers, Matrix, Vector
from ..contact.factors.branches import padded
from ..engine.loops.kernels import CompiledLoop, Table, aligned_numbers, subtract_product
from ..engine.threads import processors, share_out
from ..model.model import MovingJoint
from ..model.types import JointType
from ..robot.robot import Robot
from ..simulation.derivatives.fleet_derivatives import StepDerivatives
from ..simulation.simulation import Simulation
from ..spatial.vectors import rotation_from_quaternion
from .unknowns import LATENCY, Unknowns

DIFFERENCE = 1e-5  # of unknowns, relative to their scale
AXES = {JointType.FLOATING: 3, JointType.PLANAR: 2}  # numbers of linear velocities
MOST = 1e3  # slope of configurations by those at the start, above which a motion is chaotic, as that of a disc on its rim
TURN = 1e-6  # [rad, m] difference of configurations
ONE_THREAD = 250_000  # products of numbers up to which OpenBLAS multiplies on one thread: starting threads takes longer


class LateDampers(NamedTuple):
    """Corrections where dampers act after impulses that yield: of joint forces, and of velocities after steps (m, nv, p)."""

    steps: Integers  # (m,)
    forces: Array
    ends: Array


class StepSlopes(NamedTuple):
    """Derivatives of steps: by the state before, A (n, 2 nv, 2 nv), by joint forces, B (n, 2 nv, nv), and by unknowns.

    The latter are B times those of joint forces, which `forces` writes for some steps, plus D (n, 2 nv, q) of unknowns that
    are no forces. With a step h > 0, only the rows of velocities v+ (n, nv, .) are there, and positions are q+ = q + h v+.
    """

    A: Array
    B: Array
    D: Array
    others: Integers  # (q,) numbers of the unknowns of D
    forces: Callable[[slice, Array], None]  # (k, nv, p)
    h: float
    late: LateDampers


def step_slopes(
    sim: Simulation, unknowns: Unknowns, x: Vector, before: tuple[Matrix, Matrix], after: tuple[Matrix, Matrix],
    inputs_of: Callable[[Vector], Mapping[str, Any]],
) -> StepSlopes:  # fmt: skip
    """Return the derivatives of steps from states before, q (n, nq) and v (n, nv), to those after.

    `sim` has n robots with unknowns x, `inputs_of` returns their inputs (n, ...) at unknowns. The state of `sim` changes.
    Raises SimulationError if a step fails.
    """
    inputs = inputs_of(x)
    n, nv = before[1].shape
    sim.reset(*before)
    found = sim.derivatives(**inputs)
    others = np.flatnonzero(unknowns.field("moves") * ~unknowns.as_forces)
    straight = _is_straight(sim)
    A, B = (x[:, nv:] if straight else x for x in (found.A, found.B))
    forces, late = _force_slopes(sim, unknowns, x, before, after, inputs)
    D = np.empty((n, A.shape[1], len(others)))
    differ = any(unknowns.list[k].kind != LATENCY for k in others)
    ends = _ends(sim, before, inputs) if differ else after  # without impulses of earlier steps, as all steps below
    for place, k in enumerate(others.tolist()):
        if unknowns.list[k].kind == LATENCY:
            D[..., place] = _slopes_by_latency(unknowns, x, k, inputs_of, found)[:, -A.shape[1] :]
            continue
        small = DIFFERENCE * max(unknowns.list[k].scale, abs(x[k]))
        small = -small if x[k] + small > unknowns.list[k].upper else small
        other = x.copy()
        other[k] += small
        sim.vary(**unknowns.arguments_of(other[None], n))
        moved = _ends(sim, before, inputs)
        D[:, -nv:, place] = (moved[1] - ends[1]) / small
        if not straight:
            D[:, :nv, place] = sim.robot.difference(ends[0], moved[0]) / small
    return StepSlopes(A, B, D, others, forces, sim.dt if straight else 0.0, late)


def _is_straight(sim: Simulation) -> bool:
    """Return whether positions after a step are those before it plus a multiple of the velocities after it."""
    straight = all(j.type.nq <= 1 for j in sim.robot.joints) and not sim.robot.closed
    return straight and sim.contact_softness is not None


def _slopes_by_latency(
    unknowns: Unknowns, x: Vector, k: int, inputs_of: Callable[[Vector], Mapping[str, Any]], found: StepDerivatives
) -> Array:  # fmt: skip
    """Return the derivatives (n, 2 nv) of states after steps by a latency, on which inputs depend linearly between samples."""
    later = x.copy()
    later[k] += DIFFERENCE * unknowns.list[k].scale
    total: Array = np.zeros(found.A.shape[:2])
    for name, u in inputs_of(later).items():
        change = (u - inputs_of(x)[name]) / (later[k] - x[k])
        total += np.matmul(found.B if name == "tau" else found.B_control, change[..., None])[..., 0]
    return total


def _ends(sim: Simulation, before: tuple[Matrix, Matrix], inputs: Mapping[str, Any]) -> tuple[Matrix, Matrix]:
    """Return the states after steps from other states."""
    sim.reset(*before)
    sim.step(**inputs)
    return np.array(sim.q, ndmin=2), np.array(sim.v, ndmin=2)


def _force_slopes(
    sim: Simulation, unknowns: Unknowns, x: Vector, before: tuple[Matrix, Matrix], after: tuple[Matrix, Matrix],
    inputs: Mapping[str, Any],
) -> tuple[Callable[[slice, Array], None], LateDampers]:  # fmt: skip
    """Return the function that writes the joint forces (k, nv, p) of some steps that a change of the unknowns replaces.

    They are zero for unknowns that are no forces. `sim` has differentiated the steps.
    """
    robot, (n, nv), others = sim.robot, before[1].shape, np.flatnonzero(~unknowns.as_forces)
    columns, none = _as_slice(np.setdiff1d(unknowns.inertial, others)), np.zeros((0, nv, len(x)))
    late = LateDampers(np.zeros(0, np.int64), none, none)
    if len(others) == len(x):
        return lambda some, F: F.fill(0.0), late
    settles = sim.has_late_dampers and _is_straight(sim)
    rubs = unknowns.rub or unknowns.scale_friction or settles
    dry, limits = sim.differentiated_joint_forces if rubs else np.zeros((2, n, nv))
    u = velocity_of_step(robot, before, after, sim.dt)
    a = (u - before[1]) / sim.dt
    compliance = unknowns.weight_slopes(x) if unknowns.scale_friction else np.zeros((nv, 0))
    by_parameters = np.ascontiguousarray(unknowns.inertial_slopes(x)[:, columns])
    gains = [k for _, k in unknowns.gains if unknowns.as_forces[k]] if "control" in inputs else []

    def add_inertial(some: Any, F: Array, a: Matrix) -> None:
        if by_parameters.size:
            Y = np.asarray(robot.inverse_dynamics_regressor(before[0][some], before[1][some], a))
            F[..., columns] -= _product(Y.reshape(-1, len(by_parameters)), by_parameters).reshape(*F.shape[:2], -1)

    def write(some: slice, F: Array) -> None:
        unknowns.write_force_slopes(F, x, u[some], a[some], dry[some], limits[some], compliance)
        add_inertial(some, F, a[some])
        for velocity, k in unknowns.drives:
            F[:, velocity, k] = inputs["tau"][some, velocity] / x[k] if "tau" in inputs else 0.0
        if gains:
            F[..., gains] = unknowns.drive_slopes(x, before[0][some], before[1][some], inputs["control"][some])
        F[..., others] = 0.0
        first, stop = np.searchsorted(late.steps, (some.start, some.stop))
        F[late.steps[first:stop] - some.start] += late.forces[first:stop]

    if settles:
        yields = (limits != 0.0) | unknowns.sticks(x, dry)
        if len(sim.touching_links):
            _ends(sim, before, inputs)
            yields = yields | np.reshape(sim.contact_forces, (n, -1)).any(axis=1, keepdims=True)
        late = _late_dampers(sim, unknowns, x, before, (np.flatnonzero(yields.any(axis=1)), a), add_inertial)
    return write, late


def _late_dampers(
    sim: Simulation, unknowns: Unknowns, x: Vector, before: tuple[Matrix, Matrix], at: tuple[Integers, Matrix],
    add_inertial: Callable[[Any, Array, Matrix], None],
) -> LateDampers:  # fmt: skip
    """Return the corrections of some steps with the accelerations a' (n, nv) after dampers act.

    The acceleration a before dampers solves M a + c = F + Jᵀ f(a), and a' solves (M + h D) a' = M a. With unknowns π,

        (M + h D) δa' = M δa + Z,    M δa = G - Z + Jᵀ δf,    Z = δM (a - a') - h δD a',

    where G are the derivatives of joint forces at a', which would be all if f were constant.
    """
    (some, a), h, D = at, sim.dt, unknowns.damping(x)
    masses = np.asarray(sim.with_own_inertias(sim.robot.mass_matrix, before[0][some], which=some))
    forces, ends = np.empty((2, len(some), sim.robot.nv, len(x)))

    def piece(i: int, j: int) -> None:
        own, M, Z, end = some[i:j], masses[i:j], forces[i:j], ends[i:j]
        first = a[own] + np.linalg.solve(M, (h * D * a[own])[..., None])[..., 0]
        end[:] = Z[:] = 0.0
        add_inertial(own, Z, a[own])
        add_inertial(own, end, first)  # which subtracts
        Z -= end
        unknowns.add_late_slopes(Z, first - a[own], h * a[own])
        Z[..., ~unknowns.as_forces] = 0.0
        end[:] = h * np.linalg.solve(M + h * np.diag(D), Z)
        np.negative(Z, out=Z)

    share_out(piece, len(some), processors())
    return LateDampers(some, forces, ends)


def _as_slice(numbers: Integers) -> slice | Integers:
    """Return increasing numbers as a slice if they are consecutive: arrays with a slice are not copied."""
    whole = len(numbers) and numbers[-1] - numbers[0] == len(numbers) - 1
    return slice(numbers[0], numbers[-1] + 1) if whole else numbers


def _product(A: Matrix, B: Matrix) -> Matrix:
    """Return A B, on one thread."""
    found, rows = np.empty((len(A), B.shape[1])), max(1, ONE_THREAD // B.size)
    for i in range(0, len(A), rows):
        np.matmul(A[i : i + rows], B, out=found[i : i + rows])
    return found


def velocity_of_step(robot: Robot, before: tuple[Matrix, Matrix], after: tuple[Matrix, Matrix], h: float) -> Matrix:
    """Return the velocities (n, nv) of semi-implicit steps after their forces, in the axes of their starts.

    Joints that turn and slide express velocities after the step in other axes.
    """
    u = after[1].copy()
    for j in robot.joints:
        if j.type in AXES:
            at, size = j.q_slice.start, AXES[j.type]
            apart = (after[0] - before[0])[:, at : at + size] / h
            R = axes_of_joint(j.type, before[0][:, j.q_slice])
            u[:, j.v_slice.start : j.v_slice.start + size] = (np.swapaxes(R, 1, 2) @ apart[..., None])[..., 0]
    return u


def axes_of_joint(kind: JointType, q: Array) -> Array:
    """Return the axes (..., k, k) in which a floating or planar joint at q expresses its linear velocity."""
    if kind is JointType.PLANAR:
        c, s = q[..., 2], q[..., 3]
        return np.stack([np.stack([c, -s], axis=-1), np.stack([s, c], axis=-1)], axis=-2)
    turns: Array = np.array(rotation_from_quaternion(*np.moveaxis(q[..., 3:], -1, 0)))
    return np.moveaxis(turns, (0, 1), (-2, -1))


class _Window(NamedTuple):
    """Slopes S of the states of a window, and the derivatives of its steps."""

    numbers: Vector  # S (steps + 1, s, width), derivatives of joint forces (steps, nv, width), and -[A B] (steps, rows, s + nv)
    steps: int
    s: int
    rows: int
    nv: int
    width: int
    h: float


def _follow(x: _Window) -> int:
    """Add the slopes of the states before to the slopes of all states, with the derivatives of steps."""
    steps, s, rows, nv, width = x.steps, x.s, x.rows, x.nv, x.width
    forces, factors, first = (steps + 1) * s * width, ((steps + 1) * s + steps * nv) * width, s - rows
    for n in range(steps):
        now, after, place = n * s * width, (n + 1) * s * width, factors + n * rows * (s + nv)
        own = after + first * width
        subtract_product(x.numbers, (own, width), (now, width), (place, s + nv, 1), (rows, width, s))
        source = forces + n * nv * width
        subtract_product(x.numbers, (own, width), (source, width), (place + s, s + nv, 1), (rows, width, nv))
        for i in range(first):
            for j in range(width):
                x.numbers[after + i * width + j] = x.numbers[now + i * width + j] + x.h * x.numbers[own + i * width + j]
    return steps


FOLLOW = CompiledLoop(_follow, 0, what="the derivatives of motions")


class MotionSlopes:
    """Memory for the slopes of the states of one window, which `of` computes."""

    def __init__(self, slopes: StepSlopes, steps: int, columns: int) -> None:
        _, rows, s = slopes.A.shape
        nv, width = slopes.B.shape[2], padded(columns)
        numbers = aligned_numbers(((steps + 1) * s + steps * nv) * width + steps * rows * (s + nv))
        made = numbers[: (steps + 1) * s * width].reshape(steps + 1, s, width)
        rest = numbers[made.size :]
        self._forces = rest[: steps * nv * width].reshape(steps, nv, width)[..., s : columns - 1]
        self._factors = rest[steps * nv * width :].reshape(steps, rows, s + nv)
        self._made, self._columns = made, columns
        self._table = Table(_Window(numbers, steps, s, rows, nv, width, slopes.h))
        self._run = FOLLOW.for_tables(self._table)

    def of(self, slopes: StepSlopes, window: int) -> Array:
        """Return slopes (steps + 1, 2 nv, columns) of the states by (start, unknowns), until the next call.

        Columns after those are zero, and so are all slopes from where the motion is chaotic.
        """
        steps, rows, _ = self._factors.shape
        s, some = self._made.shape[1], slice(window * steps, (window + 1) * steps)
        self._made[1:, s - rows :] = 0.0
        self._made[0] = 0.0
        self._made[0, :, :s] = np.eye(s)
        if len(slopes.others):
            self._made[1:, s - rows :, s + slopes.others] = slopes.D[some]
        np.negative(slopes.A[some], out=self._factors[..., :s])
        np.negative(slopes.B[some], out=self._factors[..., s:])
        late = slopes.late
        first, stop = np.searchsorted(late.steps, (some.start, some.stop))
        _, nv, p = late.ends.shape
        self._made[1 + late.steps[first:stop] - some.start, s - nv :, s : s + p] += late.ends[first:stop]
        slopes.forces(some, self._forces)
        self._run(self._table.address)
        turned = self._made[:, : s // 2, : s // 2]
        if not np.abs(turned[-1]).max() < MOST:
            self._made[int(np.argmin(np.abs(turned).max(axis=(1, 2)) < MOST)) :] = 0.0
        return self._made[..., : self._columns]


def position_slopes(robot: Robot, q: Array, S: Array, joints: Sequence[MovingJoint]) -> Array:
    """Return the slopes (..., k, m) of measured positions of joints at q (..., nq), from those of states S (..., 2 nv, m).

    Positions of a floating or planar joint are those of its origin in the axes of the world, and turns about its own axes.
    """
    if robot.closed:
        return np.asarray(_slopes_by_velocities(robot, q, joints) @ S[..., : robot.nv, :])
    rows = np.concatenate([np.arange(j.v_slice.start, j.v_slice.stop) for j in joints])
    first, stop = int(rows[0]), int(rows[-1]) + 1
    found = S[..., first:stop, :] if stop - first == len(rows) else S[..., rows, :]
    if all(j.type.nv == j.type.nq for j in joints):
        return found
    found, at = found.copy(), 0
    for j in joints:
        if j.type in AXES:
            R = axes_of_joint(j.type, q[..., j.q_slice])
            found[..., at : at + AXES[j.type], :] = R @ found[..., at : at + AXES[j.type], :]
        at += j.type.nv
    return found


def _slopes_by_velocities(robot: Robot, q: Array, joints: Sequence[MovingJoint]) -> Array:
    """Return the derivatives (..., k, nv) of positions of joints of a robot with loops, by differences."""
    found = []
    for k in range(robot.nv):
        step = np.zeros(robot.nv)
        step[k] = TURN
        ahead, behind = (
            np.asarray(robot.integrate(q, np.broadcast_to(s * step, (*q.shape[:-1], len(step))))) for s in (1.0, -1.0)
        )
        parts = [difference_of_joint(j.type, behind[..., j.q_slice], ahead[..., j.q_slice]) for j in joints]
        found.append(np.concatenate(parts, axis=-1) / (2.0 * TURN))
    return np.stack(found, axis=-1)


def difference_of_joint(kind: JointType, predicted: Array, measured: Array) -> Array:
    """Return measured minus predicted coordinates of a joint, as its velocity over one second."""
    if kind.nq == 1:
        return measured - predicted
    if kind is JointType.PLANAR:
        (a, b), (c, d) = (np.moveaxis(x[..., 2:], -1, 0) for x in (predicted, measured))
        turn = np.arctan2(a * d - b * c, a * c + b * d)
        apart = measured[..., :2] - predicted[..., :2]
        return np.concatenate([apart, turn[..., None]], axis=-1)
    vector = _turned(predicted[..., -4:], measured[..., -4:])
    if kind is JointType.SPHERICAL:
        return vector
    return np.concatenate([measured[..., :3] - predicted[..., :3], vector], axis=-1)


def _turned(a: Array, b: Array) -> Array:
    """Return rotation vectors from unit quaternions a to b (..., 4), (x, y, z, w), about the axes of a."""
    a = a / np.linalg.norm(a, axis=-1, keepdims=True)
    u, w = a[..., :3], a[..., 3:]
    vector = w * b[..., :3] - b[..., 3:] * u - np.cross(u, b[..., :3])
    scalar = w * b[..., 3:] + (u * b[..., :3]).sum(axis=-1, keepdims=True)
    sign = np.where(scalar < 0.0, -1.0, 1.0)
    sine = np.linalg.norm(vector, axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, sign * scalar)
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.where(sine > 1e-12, angle / sine, 2.0)
    return np.asarray(sign * factor * vector)
