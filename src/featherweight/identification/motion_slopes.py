"""Derivatives of motions by their starts and by unknowns, from derivatives of single steps.

A step takes a state s, unknowns x and inputs to s+ = f(s, x). The slopes S of the state by (start, x) follow

    S+ = A S + [0  D],        A = ∂f/∂s,        D = ∂f/∂x.

The states of all windows are known, so that A and D of all steps are computed at once, in a fleet with a robot at each state.
Unknowns that act as joint forces F have D = B ∂F/∂x with B = ∂f/∂tau. Inertial parameters π have F = -Y(q, v, a) π with the
regressor Y and the acceleration a of the step (Atkeson, An and Hollerbach 1986). All others have differences of single steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Matrix, Vector
from ..engine.threads import processors, share_out
from ..model.model import MovingJoint
from ..model.types import JointType
from ..robot.robot import Robot
from ..simulation.simulation import Simulation
from .unknowns import OF_INPUTS, Unknowns

DIFFERENCE = 1e-5  # of unknowns, relative to their scale
AXES = {JointType.FLOATING: 3, JointType.PLANAR: 2}  # numbers of linear velocities
TURN = 1e-6  # [rad, m] difference of configurations


class StepSlopes(NamedTuple):
    """Derivatives of steps: by the state before, A (n, 2 nv, 2 nv), and by unknowns, D (n, 2 nv, p).

    With a step h > 0, only the rows of velocities v+ (n, nv, .) are there, and positions are q+ = q + h v+.
    """

    A: Array
    D: Array
    h: float = 0.0


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
    as_forces = unknowns.as_forces
    by_differences = np.flatnonzero(unknowns.field("moves") * ~as_forces).tolist()
    ends = after
    if by_differences:
        ends = _ends(sim, before, inputs)  # without impulses of earlier steps, as all steps below
    straight = sim.contact_softness is not None and not sim.robot.closed and all(j.type.nq <= 1 for j in sim.robot.joints)
    A, B = (x[:, nv:] if straight else x for x in (found.A, found.B))
    if as_forces.any():
        D = _product(B, _force_slopes(sim, unknowns, x, before, after, inputs))
    else:
        D = np.zeros((n, A.shape[1], len(x)))
    for k in by_differences:
        small = DIFFERENCE * max(unknowns.list[k].scale, abs(x[k]))
        small = -small if x[k] + small > unknowns.list[k].upper else small
        other = x.copy()
        other[k] += small
        sim.vary(**unknowns.arguments_of(other[None], n))
        moved = _ends(sim, before, inputs_of(other) if unknowns.list[k].kind in OF_INPUTS else inputs)
        D[:, -nv:, k] = (moved[1] - ends[1]) / small
        if not straight:
            D[:, :nv, k] = sim.robot.difference(ends[0], moved[0]) / small
    return StepSlopes(A, D, sim.dt if straight else 0.0)


def _ends(sim: Simulation, before: tuple[Matrix, Matrix], inputs: Mapping[str, Any]) -> tuple[Matrix, Matrix]:
    """Return the states after steps from other states."""
    sim.reset(*before)
    sim.step(**inputs)
    return np.array(sim.q, ndmin=2), np.array(sim.v, ndmin=2)


def _force_slopes(
    sim: Simulation, unknowns: Unknowns, x: Vector, before: tuple[Matrix, Matrix], after: tuple[Matrix, Matrix],
    inputs: Mapping[str, Any],
) -> Array:  # fmt: skip
    """Return the joint forces (n, nv, p) that a change of the unknowns replaces; zero for unknowns that are no forces.

    `sim` has differentiated the steps.
    """
    robot, (n, nv) = sim.robot, before[1].shape
    dry, limits = sim.differentiated_joint_forces if unknowns.rub or unknowns.scale_friction else np.zeros((2, n, nv))
    u = velocity_of_step(robot, before, after, sim.dt)
    a = (u - before[1]) / sim.dt
    F = unknowns.force_slopes(x, u, a, dry, limits)
    columns = unknowns.inertial
    if len(columns):
        by_parameters = np.ascontiguousarray(unknowns.inertial_slopes(x)[:, columns])
        Y = np.asarray(robot.inverse_dynamics_regressor(*before, a))
        first, stop = int(columns[0]), int(columns[-1]) + 1  # a slice is faster
        F[..., columns if stop - first > len(columns) else slice(first, stop)] -= (
            Y.reshape(n * nv, -1) @ by_parameters
        ).reshape(n, nv, -1)
    for velocity, k in unknowns.drives:
        F[:, velocity, k] = inputs["tau"][:, velocity] / x[k] if "tau" in inputs else 0.0
    return F


def velocity_of_step(robot: Robot, before: tuple[Matrix, Matrix], after: tuple[Matrix, Matrix], h: float) -> Matrix:
    """Return the velocities (n, nv) of semi-implicit steps after their forces, in the axes of their starts.

    Joints that turn and slide express velocities after the step in other axes.
    """
    u = after[1].copy()
    for j in robot.joints:
        if j.type in AXES:
            at, size = j.q_slice.start, AXES[j.type]
            apart = (after[0] - before[0])[:, at : at + size] / h
            R = _axes(j.type, before[0][:, j.q_slice])
            u[:, j.v_slice.start : j.v_slice.start + size] = (np.swapaxes(R, 1, 2) @ apart[..., None])[..., 0]
    return u


def _axes(kind: JointType, q: Array) -> Array:
    """Return the axes (..., k, k) in which a floating or planar joint at q expresses its linear velocity."""
    if kind is JointType.PLANAR:
        c, s = q[..., 2], q[..., 3]
        return np.stack([np.stack([c, -s], axis=-1), np.stack([s, c], axis=-1)], axis=-2)
    x, y, z, w = np.moveaxis(q[..., 3:], -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def motion_slopes(slopes: StepSlopes, windows: int, columns: int) -> Array:
    """Return slopes (windows, steps + 1, 2 nv, columns) of states by (start, unknowns). Further columns are zero."""
    A, D = (x.reshape(windows, -1, *x.shape[1:]) for x in slopes[:2])
    _, steps, rows, s = A.shape
    first, p = s - rows, D.shape[-1]
    S = np.empty((windows, steps + 1, s, columns))
    S[:, 0] = np.eye(s, columns)

    def some(begin: int, end: int) -> None:
        for n in range(steps):
            now, after = S[begin:end, n], S[begin:end, n + 1]
            found = np.matmul(A[begin:end, n], now, out=after[:, first:])
            found[..., s : s + p] += D[begin:end, n]
            if first:
                np.multiply(found, slopes.h, out=after[:, :first])
                after[:, :first] += now[:, :first]

    share_out(some, windows, processors(), windows)
    return S


def _product(A: Array, B: Array) -> Array:
    """Return the products (n, k, m) of matrices, computed on threads."""
    found = np.empty((*A.shape[:2], B.shape[2]))

    def some(begin: int, end: int) -> None:
        np.matmul(A[begin:end], B[begin:end], out=found[begin:end])

    share_out(some, len(A), processors(), len(A))
    return found


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
            R = _axes(j.type, q[..., j.q_slice])
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
