"""Samples of sensors that are delayed or do not measure in each step; MuJoCo stores them in `history`.

A sensor stores its last samples with their times: one at the start of each step or, with a period, at the start of the first
step after the period. A reading at time t is that of the samples at t - delay, or the last sample without a delay. Kinds that
measure the last step (`OF_LAST_STEP`) are read at its start.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from ...array_types import Array
from ...model.model import ModelSensor
from ...model.model_sensors import OF_LAST_STEP
from ...model.types import SampleInterpolation, SensorSampling

OF_ROBOTS = "times", "values", "last", "of_last", "has_step"  # arrays of a sensor with a row for each robot
ROUNDING = 1e-6  # greatest difference of equal times, relative to a step


class SampledSensor:
    """Samples of one sensor of many robots: times (robots, n) [s], ascending, and values (robots, n, dim)."""

    def __init__(self, sensor: ModelSensor, sampling: SensorSampling, robots: int, step: float) -> None:
        self.of_step, self.slice, self.step = sensor.kind in OF_LAST_STEP, sensor.slice, step
        self.sampling, self.same = sampling, ROUNDING * step
        self.times, self.values = np.zeros((robots, sampling.samples)), np.zeros((robots, sampling.samples, sensor.dim))
        self.last = np.zeros(robots)  # [s] start of the current period
        self.of_last = np.zeros((robots, sensor.dim))  # reading of the last step
        self.has_step = np.zeros(robots, bool)

    def of_robots(self, which: Array | slice) -> SampledSensor:
        other = copy.copy(self)
        for name in OF_ROBOTS:
            setattr(other, name, getattr(self, name)[which].copy())
        return other

    def put(self, which: Array | slice, other: SampledSensor) -> None:
        """Replace the samples of some robots by those of one, or of as many."""
        for name in OF_ROBOTS:
            getattr(self, name)[which] = getattr(other, name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SampledSensor):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in OF_ROBOTS)

    __hash__ = None  # type: ignore[assignment]

    def begin(self, which: Array | slice, time: float | Array) -> None:
        """Set the samples of robots before `time`, () or (some,), to zero."""
        n, step, period = self.sampling.samples, self.step, self.sampling.period
        first = (self.sampling.phase or -period) if period else -step
        ages = first - np.arange(n - 1, -1, -1) * (period or step)
        self.times[which] = np.reshape(time, (-1, 1)) + np.ceil(ages / step - ROUNDING) * step
        self.last[which], self.values[which], self.has_step[which] = time + first, 0.0, False

    def due(self, time: Array) -> Array:
        """Return which robots (robots,) take a sample in a step that starts at times (robots,)."""
        period = self.sampling.period
        return self.last + period <= time + self.same if period else np.ones(len(self.last), bool)

    def insert(self, time: Array, value: Array, moved: Array) -> None:
        """Store samples (robots, dim) of the robots that moved in a step from times (robots,), and are due."""
        if self.sampling.delay:
            self.of_last[moved] = self._at(time - self.sampling.delay)[moved]
        due = self.due(time) & moved
        self.last[due] += self.sampling.period
        self.times[due] = np.concatenate([self.times[due, 1:], time[due, None]], axis=1)
        self.values[due] = np.concatenate([self.values[due, 1:], value[due, None]], axis=1)
        if not self.sampling.delay:
            self.of_last[moved] = self.values[moved, -1]
        self.has_step |= moved

    def read(self, time: Array, present: Array) -> Array:
        """Return readings (robots, dim) at times (robots,); `present` is the measurement without delay."""
        if self.sampling.delay:
            now = self._at(time - self.sampling.delay)
        else:
            now = np.where(self.due(time)[:, None], present, self.values[:, -1])
        return np.where((self.of_step & self.has_step)[:, None], self.of_last, now)

    def _at(self, time: Array) -> Array:
        return read_samples(self.times, self.values, time, self.sampling.interpolation, self.same)


def read_samples(times: Array, values: Array, time: float | Array, how: SampleInterpolation, same: float) -> Array:
    """Return values (robots, dim) at a time, () or (robots,), from samples at times (robots, n).

    Times that differ by at most `same` are equal.

    Beyond all samples, the value is that of the nearest sample.
    """
    n, robots = times.shape[1], np.arange(len(times))
    time = np.broadcast_to(time, len(times))

    def span_of(a: Array, b: Array) -> Array:
        return np.asarray(np.where(a == b, 1.0, times[robots, b] - times[robots, a])[:, None])

    after = (times < time[:, None] - same).sum(axis=1)  # the first sample not before `time`
    high, low = np.minimum(after, n - 1), np.maximum(after - 1, 0)
    exact = (after == n) | (after == 0) | (times[robots, high] <= time + same)
    end, start = values[robots, high], values[robots, low]
    if how is SampleInterpolation.HOLD:
        return np.asarray(np.where(exact[:, None], end, start))
    span = np.where(exact, 1.0, times[robots, high] - times[robots, low])[:, None]
    x = (time - times[robots, low])[:, None] / span
    if how is SampleInterpolation.LINEAR:
        return np.asarray(np.where(exact[:, None], end, start + x * (end - start)))
    before, beyond = np.maximum(low - 1, 0), np.minimum(high + 1, n - 1)
    slopes = [
        np.where(there[:, None], (values[robots, b] - values[robots, a]) / span_of(a, b), 0.0)
        for a, b, there in ((before, high, low > 0), (low, beyond, high < n - 1))
    ]
    cubes = (2.0 * x - 3.0) * x * x, x * (x - 1.0) ** 2, x * x * (x - 1.0)
    between = start + cubes[0] * (start - end) + span * (cubes[1] * slopes[0] + cubes[2] * slopes[1])
    return np.asarray(np.where(exact[:, None], end, between))


class SensorHistory:
    """Samples of all sampled sensors of a simulation."""

    def __init__(self, sensors: Sequence[ModelSensor], robots: int, step: float, time: float) -> None:
        self.sensors = [s for s in sensors if s.sensor.sampling is not None]
        self.sampled = [
            SampledSensor(s, s.sensor.sampling, robots, step) for s in self.sensors if s.sensor.sampling is not None
        ]
        self.begin(slice(None), time)

    def copy(self) -> SensorHistory:
        return self.of_robots(slice(None))

    def of_robots(self, which: Array | slice) -> SensorHistory:
        other = copy.copy(self)
        other.sampled = [x.of_robots(which) for x in self.sampled]
        return other

    def put(self, which: Array | slice, other: SensorHistory) -> None:
        """Replace the samples of some robots by those of one, or of as many."""
        for mine, theirs in zip(self.sampled, other.sampled, strict=True):
            mine.put(which, theirs)

    def rows(self) -> Array:
        """Return all samples as one row of numbers for each robot."""
        arrays = [getattr(x, name) for x in self.sampled for name in OF_ROBOTS]
        return np.concatenate([x.reshape(len(x), -1) for x in arrays], axis=1, dtype=np.float64)

    def put_rows(self, rows: Array) -> None:
        """Replace all samples by those of `rows`."""
        begin = 0
        for x in self.sampled:
            for name in OF_ROBOTS:
                goal = getattr(x, name)
                end = begin + goal[0].size
                goal[:] = rows[:, begin:end].reshape(goal.shape)
                begin = end

    def __eq__(self, other: object) -> bool:
        return self.sampled == other.sampled if isinstance(other, SensorHistory) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def shift(self, seconds: Array) -> None:
        """Move the samples of robots in time by seconds (robots,)."""
        for x in self.sampled:
            x.times += seconds[:, None]
            x.last += seconds

    def begin(self, which: Array | slice, time: float | Array) -> None:
        """Restart robots at a time, () or (some,)."""
        for x in self.sampled:
            x.begin(which, time)

    def due(self, time: Array, of_step: bool) -> list[ModelSensor]:
        """Return the sensors that take a sample in a step from times (robots,), of the last step or of its start."""
        pairs = zip(self.sensors, self.sampled, strict=True)
        return [s for s, x in pairs if x.of_step is of_step and x.due(time).any()]

    def insert(self, time: Array, readings: Array, moved: Array) -> None:
        """Store samples of readings (robots, nsensordata) of a step from times (robots,), for the robots that took it."""
        for x in self.sampled:
            x.insert(time, readings[:, x.slice], moved)

    def delay(self, time: Array, readings: Array) -> None:
        """Replace measurements by the delayed readings at times (robots,), in `readings` (robots, nsensordata)."""
        for x in self.sampled:
            readings[:, x.slice] = x.read(time, readings[:, x.slice])
