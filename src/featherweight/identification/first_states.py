"""First guesses of the states at the starts of windows, from measured positions and velocities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..array_types import Array, Integers, Vector
from ..model.model import MovingJoint
from ..model.types import JointType
from ..robot.robot import Robot
from ..simulation.simulation import Simulation
from .logs import POSITIONS, VELOCITIES, CheckedLog, Samples, Source, Windows
from .motion_slopes import axes_of_joint, difference_of_joint
from .shooting import Starts

NEAR, REACH = 9, 0.015  # least number of measurements to which a parabola is fitted, and the time [s] on both sides
LEAST = 4  # fewer give a mean, and no velocity


def first_states(
    sim: Simulation, logs: Sequence[CheckedLog], sources: Mapping[str, Source], windows: Windows, offsets: Mapping[int, float],
    delays: Mapping[str, float],
) -> Starts:  # fmt: skip
    """Return states at the starts of windows.

    Positions and velocities are those of parabolas through measurements nearby. Joints that are not measured start where the
    simulation of the window before ends, and in a log's first window where `sim` is. `offsets` and `delays` are the
    initial ones, by coordinate and channel.
    """
    robot, h = sim.robot, sim.dt
    Q, V = np.empty((len(windows), robot.nq)), np.empty((len(windows), robot.nv))
    present = np.atleast_2d(sim.q)[0].copy(), np.atleast_2d(sim.v)[0].copy()
    before = -1
    for w, (i, first) in enumerate(zip(windows.log.tolist(), windows.first.tolist(), strict=True)):
        log = logs[i]
        if i != before:
            q, v = present[0].copy(), present[1].copy()
        known_q, known_v = _measured(robot, log, sources, first * h, (q, v), offsets, delays)
        if robot.closed:
            kept = [j.name for j, known in zip(robot.joints, known_q, strict=True) if known and j.independent]
            q[:] = robot.close(q, keep=kept or None)  # type: ignore[attr-defined]
        Q[w], V[w] = q, v
        before = i
        last = w + 1 == len(windows) or windows.log[w + 1] != i
        if not last and not (all(known_q) and all(known_v)):
            sim.reset(q[None], v[None])
            for k in range(first, int(windows.first[w + 1])):
                tau, control = (None if x is None else x[k] for x in (log.tau, log.control))
                sim.step(tau, control)
            q, v = sim.q.reshape(-1).copy(), sim.v.reshape(-1).copy()
    return Starts(Q, V)


def _measured(
    robot: Robot, log: CheckedLog, sources: Mapping[str, Source], time: float, state: tuple[Array, Array],
    offsets: Mapping[int, float], delays: Mapping[str, float],
) -> tuple[list[bool], list[bool]]:  # fmt: skip
    """Write measured positions and velocities at a time into a state; return for which joints there are any."""
    q, v = state
    known_q, known_v = [False] * len(robot.joints), [False] * len(robot.joints)
    for name, samples in log.samples.items():
        source, at = sources[name], time + delays.get(name, 0.0)
        if source.kind == POSITIONS:
            for group in _groups(robot, source, samples):
                columns = np.concatenate([np.arange(j.q_slice.start, j.q_slice.stop) for _, j in group])
                found = _smooth_position(group[0][1].type, samples, columns - source.columns.start, at)
                if found is None:
                    continue
                q[columns] = found[0] - [offsets.get(k, 0.0) for k in columns.tolist()]
                for i, (n, j) in enumerate(group):
                    known_q[n] = True
                    if found[1] is not None and j.independent and not known_v[n]:
                        v[j.v_slice], known_v[n] = found[1] if len(group) == 1 else found[1][i], True
        elif source.kind == VELOCITIES:
            for n, j in enumerate(robot.joints):
                if j.v_slice.stop > j.v_slice.start:
                    fitted = _parabola(*_near(samples, np.arange(j.v_slice.start, j.v_slice.stop), at), at)
                    if fitted is not None:
                        v[j.v_slice], known_v[n] = fitted[0], True
    return known_q, known_v


def _groups(robot: Robot, source: Source, samples: Samples) -> list[list[tuple[int, MovingJoint]]]:
    """Return the joints of a channel with their numbers, in groups that the same measurements determine."""
    inside = [
        (n, j)
        for n, j in enumerate(robot.joints)
        if source.columns.start <= j.q_slice.start < j.q_slice.stop <= source.columns.stop
    ]
    if all(j.type.nq == 1 for _, j in inside) and np.isfinite(samples.values).all():
        return [inside]
    return [[x] for x in inside]


def _near(samples: Samples, columns: Integers, at: float) -> tuple[Vector, Array]:
    """Return times (n,) and values (n, k) of the complete measurements that are nearest to a time."""
    begin, middle, end = np.searchsorted(samples.time, (at - REACH, at, at + REACH)).tolist()
    near = max(NEAR, end - begin)
    reach = near
    while True:
        rows = np.arange(max(middle - reach, 0), min(middle + reach, len(samples.time)))
        rows = rows[np.isfinite(samples.values[rows[:, None], columns]).all(axis=1)]
        if len(rows) >= near or reach >= len(samples.time):
            break
        reach *= 4
    rows = rows[np.argsort(np.abs(samples.time[rows] - at), kind="stable")[:near]]
    return samples.time[rows], samples.values[rows[:, None], columns]


def _smooth_position(kind: JointType, samples: Samples, columns: Integers, at: float) -> tuple[Array, Array | None] | None:
    """Return the position of a joint, or of joints with one coordinate, at a time, and the velocity if enough is measured."""
    times, values = _near(samples, columns, at)
    if not len(times):
        return None
    reference = values[0]
    if kind.nq > kind.nv:  # measured numbers of a turn may have any length
        turn = slice(2, None) if kind is JointType.PLANAR else slice(kind.nq - 4, None)
        reference = reference.copy()
        reference[turn] /= np.linalg.norm(reference[turn])
    apart = difference_of_joint(kind, np.broadcast_to(reference, values.shape), values)
    fitted = _parabola(times, apart, at)
    if fitted is None:
        return reference, None
    if kind.nq == 1:
        return reference + fitted[0], fitted[1]
    return reference, _velocity_of_joint(reference, fitted[1])


def _velocity_of_joint(position: Array, rate: Array) -> Array:
    """Return the velocity of a joint, with linear components in the axes of its child."""
    if len(rate) == 6:
        R = axes_of_joint(JointType.FLOATING, position)
        return np.concatenate([R.T @ rate[:3], rate[3:]])
    return rate


def _parabola(times: Vector, values: Array, at: float) -> tuple[Array, Array] | None:
    """Return value (k,) and slope (k,) at a time of the parabola through values (n, k), a line through few; None for fewer."""
    if len(times) < LEAST:
        return None
    t = times - at
    scale = float(np.abs(t).max()) or 1.0
    basis = np.vander(t / scale, 3 if len(times) >= 2 * LEAST - 1 else 2, increasing=True)
    found = np.linalg.lstsq(basis, values, rcond=None)[0]
    return found[0], found[1] / scale
