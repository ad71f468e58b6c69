"""Logs of robots: inputs and measurements over time, and the windows into which a fit divides them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array, Integers, Matrix, Tensor, Vector
from ..model.model import ModelSensor
from ..model.model_sensors import OF_LAST_STEP
from ..model.types import JointType
from ..names import UnknownNameError, choose_from
from ..robot.robot import Robot
from ..simulation.simulation import Simulation

POSITIONS, VELOCITIES = "q", "v"
ROUNDING = 1e-6  # greatest difference of equal times, relative to a step


@dataclass(frozen=True, eq=False)
class Channel:
    """Measurements at times of their own: `values` (n, k) or (n,), NaN where there are none, at ascending `time` (n,) [s].

    Without `time`, the times are those of the log. `noise` is the standard deviation of the measurements, a number or one for
    each component (k,); without it, the fit estimates the noise of each component from the residuals.
    """

    values: ArrayLike
    time: ArrayLike | None = None
    noise: ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class Log:
    """A recording of a robot.

    `time` (n,) [s] ascends. `tau` (n, nv) are joint forces, `control` (n, nu) controls of the actuators; each acts from its
    time until the next, and a step takes their mean over its duration. Without them, no drive acts.

    `measured` has the measurements (n, k) by name: "q" configurations (n, nq), "v" velocities (n, nv), the name of a joint for
    its part of q (the pose of the base, for a floating joint), or the name of a sensor for its readings. NaN stands for a
    missing number. A `Channel` has times of its own.
    """

    time: ArrayLike
    measured: Mapping[str, ArrayLike | Channel] = field(default_factory=dict)
    tau: ArrayLike | None = None
    control: ArrayLike | None = None


class Samples(NamedTuple):
    """Measurements of one channel in one log."""

    time: Vector  # (n,) [s] from the start of the log
    values: Matrix  # (n, k) NaN where there are none
    noise: Vector | None  # (k,) given standard deviations


class Source(NamedTuple):
    """The place of a channel in the simulation: columns of q, of v, or of the readings of sensors."""

    name: str
    kind: str  # POSITIONS, VELOCITIES or "sensors"
    columns: slice
    components: tuple[str, ...]  # (k,) names of the residuals
    sensor: ModelSensor | None = None

    @property
    def of_step(self) -> bool:
        """True if a reading is the mean over the last step."""
        return self.sensor is not None and self.sensor.kind in OF_LAST_STEP


class CheckedLog(NamedTuple):
    """A log whose arrays are checked, and its inputs in each step."""

    start: float  # [s]
    steps: int
    tau: Matrix | None  # (steps, nv)
    control: Matrix | None  # (steps, nu)
    samples: dict[str, Samples]


class Windows(NamedTuple):
    """Parts of logs, of the same number of steps, that start from states of their own."""

    log: Integers  # (W,) number of the log
    first: Integers  # (W,) step of the log at which the window starts
    begin: Integers  # (W,) step from which on measurements belong to the window
    end: Integers  # (W,) step up to which they do
    steps: int

    def __len__(self) -> int:
        return len(self.log)


def source_of(sim: Simulation, name: str) -> Source:
    """Return the place of a channel. Raises UnknownNameError for a name that is neither a joint nor a sensor."""
    robot = sim.robot
    if name == POSITIONS:
        placed_joints = [j for j in robot.joints if j.q_slice.stop > j.q_slice.start]
        return Source(name, POSITIONS, slice(0, robot.nq), _components((j.name, j.type.nv) for j in placed_joints))
    if name == VELOCITIES:
        widths = ((j.name, j.v_slice.stop - j.v_slice.start) for j in robot.joints)
        return Source(name, VELOCITIES, slice(0, robot.nv), _components(widths))
    for sensor in robot.sensors:
        if sensor.name == name:
            return Source(name, "sensors", sensor.slice, _components([(name, sensor.dim)]), sensor)
    for joint in robot.joints:
        if joint.name == name and joint.q_slice.stop > joint.q_slice.start:
            return Source(name, POSITIONS, joint.q_slice, _components([(name, joint.type.nv)]))
    known = [POSITIONS, VELOCITIES, *(j.name for j in robot.joints), *(s.name for s in robot.sensors)]
    raise UnknownNameError(f"{robot.name} has no joint or sensor {choose_from(name, known)}")


def _components(widths: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Return names of components, from names and numbers of components."""
    return tuple(x for name, n in widths for x in ([name] if n == 1 else [f"{name}[{i}]" for i in range(n)]))


def checked_log(sim: Simulation, log: Log, sources: Mapping[str, Source]) -> CheckedLog:
    """Return a log with its inputs in each step. Raises ValueError for wrong shapes, and for times that do not ascend."""
    time, h = _times("Log: time", log.time), sim.dt
    robot = sim.robot
    samples = {}
    for name, given in log.measured.items():
        channel = given if isinstance(given, Channel) else Channel(given)
        source = sources[name]
        times = time if channel.time is None else _times(f"Log: time of {name!r}", channel.time)
        values, width = np.array(channel.values, float), source.columns.stop - source.columns.start
        if values.ndim == 1 and width == 1:
            values = values[:, None]
        if values.shape != (len(times), width):
            part = f"; {name} has the coordinates of all joints: name the measured joints instead, or fill the rest with NaN"
            raise ValueError(
                f"Log: {name!r} must have shape ({len(times)}, {width}); got {values.shape}"
                f"{part if name in (POSITIONS, VELOCITIES) and values.ndim == 2 and values.shape[1] < width else ''}"
            )
        if np.isinf(values).any():
            raise ValueError(f"Log: {name!r} must be finite, or NaN where there is no measurement")
        if not np.isfinite(values).any():
            raise ValueError(f"Log: {name!r} has no measurement that is not NaN")
        noise = None
        if channel.noise is not None:
            noise = np.broadcast_to(np.asarray(channel.noise, float), (len(source.components),))
            if not (noise > 0.0).all():
                raise ValueError(f"Log: noise of {name!r} must be positive; got {channel.noise!r}")
        if source.kind == POSITIONS and not robot.closed:
            _check_limits(robot, name, source, values)
        samples[name] = Samples(times - time[0], values, noise)
    if not samples:
        raise ValueError("Log: measured is empty; give at least one measurement, such as {'q': positions}")
    last = max(x.time[-1] for x in samples.values())
    steps = int(np.floor(last / h + ROUNDING))
    if steps < 2:
        raise ValueError(f"Log: the measurements end {last:g} s after the first time, within two steps of {h:g} s")
    inputs: dict[str, Matrix | None] = {}
    for what, x, width in (("tau", log.tau, robot.nv), ("control", log.control, len(sim.forces.actuators))):
        if x is None:
            inputs[what] = None
            continue
        x = np.array(x, float)
        if x.ndim == 1 and width == 1:
            x = x[:, None]
        if x.shape != (len(time), width) or not np.isfinite(x).all():
            raise ValueError(f"Log: {what} must be finite numbers of shape ({len(time)}, {width}); got shape {x.shape}")
        inputs[what] = _of_steps(time - time[0], x, steps, h)
    return CheckedLog(float(time[0]), steps, inputs["tau"], inputs["control"], samples)


def _check_limits(robot: Robot, name: str, source: Source, values: Matrix) -> None:
    """Raise ValueError for a joint whose measured positions are mostly farther beyond its limits than their whole range."""
    lower, upper = (x[source.columns] for x in (robot.lower, robot.upper))
    for j in robot.joints:
        k = j.q_slice.start - source.columns.start
        if j.type.nq != 1 or not 0 <= k < values.shape[1] or not np.isfinite(values[:, k]).any():
            continue
        if not np.isfinite(upper[k] - lower[k]):
            continue
        middle = float(np.nanmedian(np.abs(values[:, k] - 0.5 * (lower[k] + upper[k]))))
        if middle > 1.5 * (upper[k] - lower[k]):
            worst = float(values[np.nanargmax(np.abs(values[:, k])), k])
            unit = "m" if j.type is JointType.PRISMATIC else "rad, not degrees"
            limits = f"from {lower[k]:g} to {upper[k]:g}"
            raise ValueError(
                f"Log: {name!r} has joint {j.name!r} at {worst:g}, far beyond its limits {limits}; positions are in {unit}"
            )


def _of_steps(time: Vector, x: Matrix, steps: int, h: float) -> Matrix:
    """Return the means (steps, k) over steps of inputs (n, k), each of which acts from its time until the next."""
    edges = np.arange(steps + 1) * h
    at = np.searchsorted(time, edges[:-1] + ROUNDING * h, side="right") - 1
    last = np.searchsorted(time, edges[1:] - ROUNDING * h) - 1
    found = np.ascontiguousarray(x[at])
    before = np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x[:-1] * np.diff(time)[:, None], axis=0)])  # integrals
    several = np.flatnonzero(last > at)
    begin, end = ((before[i] + x[i] * (t - time[i])[:, None])[several] for i, t in ((at, edges[:-1]), (last, edges[1:])))
    found[several] = (end - begin) / h
    return found


def _times(what: str, given: ArrayLike) -> Vector:
    time = np.array(given, float)
    if time.ndim != 1 or not len(time) or not np.isfinite(time).all() or (np.diff(time) <= 0.0).any():
        raise ValueError(f"{what} must be ascending finite numbers (n,) [s]")
    return time


def windows_of(logs: Sequence[CheckedLog], steps: int) -> Windows:
    """Divide logs into windows of at most so many steps, all of the same length.

    The last window of a log starts early enough to have this length; measurements belong to one window only.
    """
    steps = min([steps, *(x.steps for x in logs)])
    rows = []
    for i, log in enumerate(logs):
        count = -(-log.steps // steps)
        for w in range(count):
            begin, end = w * steps, min((w + 1) * steps, log.steps)
            rows.append((i, min(begin, log.steps - steps), begin if w else -1, end))
    number, first, begin, end = np.array(rows, np.int64).T
    return Windows(number, first, begin, end, steps)


def some_windows(windows: Windows, every: int) -> Windows:
    """Return every `every`-th window."""
    log, first, begin, end = (x[::every] for x in (windows.log, windows.first, windows.begin, windows.end))
    return Windows(log, first, begin, end, windows.steps)


def window_inputs(
    windows: Windows, rows: slice | Integers, inputs: Sequence[Matrix | None], late: float = 0.0
) -> Tensor | None:
    """Return the inputs (W, steps, k) of some windows, `late` steps after those of the logs; None if no log has any.

    The input of a step is the mean over the step. Before the log, the first inputs act.
    """
    if all(x is None for x in inputs):
        return None
    width = next(x.shape[1] for x in inputs if x is not None)
    found = np.zeros((len(windows.log[rows]), windows.steps, width))
    for w, (log, first) in enumerate(zip(windows.log[rows].tolist(), windows.first[rows].tolist(), strict=True)):
        x = inputs[log]
        if x is None:
            continue
        whole = int(np.floor(late))
        at = np.arange(first, first + windows.steps) - whole
        found[w] = x[np.clip(at, 0, None)]
        if late > whole:
            found[w] += (late - whole) * (x[np.clip(at - 1, 0, None)] - found[w])
    return found


class Placed(NamedTuple):
    """Measurements of one channel in some windows, with n places each."""

    low: Array  # (W, n) step before the measurement
    part: Array  # (W, n) time from this step, in steps
    values: Array  # (W, n, k) zero where there are none
    there: Array  # (W, n) whether a measurement is at this place
    number: Array  # (W, n) number of the measurement in its log


def placed(windows: Windows, samples: Sequence[Samples | None], delay: float, h: float, of_step: bool) -> Placed:
    """Return the measurements of a channel of all logs, which measures the motion `delay` seconds before.

    Measurements at the start of a window belong to the window before. Those of a channel that measures steps begin after the
    first step.
    """
    found: list[tuple[Array, Array]] = []
    width = next(x.values.shape[1] for x in samples if x is not None)
    for log, first, begin, end in zip(windows.log.tolist(), windows.first, windows.begin, windows.end, strict=True):
        x = samples[log]
        if x is None:
            found.append((np.zeros(0), np.zeros(0, np.int64)))
            continue
        at = (x.time - delay) / h
        i, j = np.searchsorted(at, (begin + ROUNDING, end + ROUNDING), side="right")
        own = at[i:j] - first
        keep = np.isfinite(x.values[i:j]).any(axis=1) & (own >= (1.0 - ROUNDING if of_step else -ROUNDING))
        found.append((own[keep], np.arange(i, j)[keep]))
    n = max(1, *(len(at) for at, _ in found)) if len(found) > 1 else max(1, len(found[0][0]))
    shape = len(windows), n
    made = Placed(
        np.zeros(shape, np.int64), np.zeros(shape), np.full((*shape, width), np.nan), np.zeros(shape, bool),
        np.zeros(shape, np.int64),
    )  # fmt: skip
    for w, (at, index) in enumerate(found):
        k = len(at)
        whole = np.clip(np.floor(at + ROUNDING).astype(np.int64), 0, windows.steps - 1)
        part = at - whole
        part[np.abs(part - np.round(part)) < ROUNDING] = np.round(part[np.abs(part - np.round(part)) < ROUNDING])
        made.low[w, :k], made.part[w, :k], made.there[w, :k], made.number[w, :k] = whole, part, True, index
        x = samples[int(windows.log[w])]
        if x is not None:
            made.values[w, :k] = x.values[index]
    return made
