"""The sensors of a simulation: readings of its state and of its last step, and samples of those that are delayed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..array_types import Array, Booleans, Tensor
from ..model.model import ModelSensor
from .fleet import Fleet, Inputs
from .sensed_robots import SensedRobots
from .sensor_history import SensorHistory
from .sensor_measures import add_noise, clip, measure
from .sensor_plan import SensorPlan
from .sensor_readings import SensorReadings


class SimulatedSensors:
    """The sensors of the robots of a fleet. `history` has the samples of those that do not measure in each step, if any."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.sensors = fleet, fleet.plant.robot.sensors
        self.history: SensorHistory | None = None

    def copied(self, fleet: Fleet) -> SimulatedSensors:
        """Return the sensors of a copy of the fleet, with the same samples."""
        other = SimulatedSensors(fleet)
        other.history = self.history and self.history.copy()
        return other

    @cached_property
    def robots(self) -> SensedRobots:
        """The robots as the sensors see them."""
        plant = self.fleet.plant
        return SensedRobots(SensorPlan(plant.model, plant.contacts, plant.ground), self.fleet)

    def begin(self, robots: int, time: float) -> None:
        """Forget all samples."""
        sampled = any(s.sensor.sampling is not None for s in self.sensors)
        self.history = SensorHistory(self.sensors, robots, self.fleet.model.h, time) if sampled else None

    def readings(self, noise: np.random.Generator | None) -> SensorReadings:
        """Return readings of all sensors, (nsensordata,) or (robots, nsensordata)."""
        robots, single = self.robots, self.fleet.single
        measure(robots, robots.plan.apart)
        if noise is None and self.history is None:
            return (robots.first if single else robots.readings).copy()
        readings = robots.values.copy()
        if self.history is not None:
            self.history.delay(self.fleet.times, readings)
        if noise is not None:
            add_noise(readings, self.sensors, noise)
            clip(readings, robots.plan.cutoffs)
        return SensorReadings(readings[0] if single else readings, robots.plan.names)

    def measured(self, sensors: Sequence[ModelSensor]) -> Array:
        """Return readings (robots, nsensordata) of some sensors and zero for others, without noise and delays."""
        plan = self.robots.plan
        readings = np.zeros((len(self.fleet.q), len(plan.cutoffs)))
        if sensors:
            measured = measure(self.robots, [s for s in plan.apart if s in sensors])
            for s in sensors:
                readings[:, s.slice] = measured[:, s.slice]
        return readings

    def roll_out(
        self, steps: int, inputs: Inputs, every: int, out: tuple[Tensor, Tensor] | None
    ) -> tuple[tuple[Tensor, Tensor], Booleans]:
        """Take steps as `Fleet.roll_out` does, and store samples; return the states, and which robots failed."""
        fleet, robots = self.fleet, len(self.fleet.q)
        q, v = out or (np.empty((robots, 1 + steps // every, x.shape[1])) for x in (fleet.q, fleet.v))
        q[:, 0], v[:, 0], failed = fleet.q, fleet.v, np.zeros(robots, bool)
        for k in range(steps):
            self._sample_step(*(None if x is None else np.broadcast_to(x[:, k], (robots, *x.shape[2:])) for x in inputs))
            failed |= fleet.failed
            if (k + 1) % every == 0:
                q[:, (k + 1) // every], v[:, (k + 1) // every] = fleet.q, fleet.v
        return (q, v), failed

    def sample(self, tau: Any, control: Any, external: Any, steps: int) -> None:
        """Take steps, and store samples."""
        for _ in range(steps):
            self._sample_step(tau, control, external)

    def _sample_step(self, tau: Any, control: Any, external: Any) -> None:
        """Take a step, and store the samples of its start and of the step. If anything interrupts it, nothing changes."""
        assert self.history is not None
        fleet, began, history = self.fleet, self.fleet.times, self.history.copy()
        readings, backup = self.measured(history.due(began, of_step=False)), fleet.backup()
        try:
            fleet.step(tau, control, external)
            of_step = self.measured(history.due(began, of_step=True))
            history.insert(began, readings + of_step, ~fleet.failed)  # for each sensor one of the two is zero
            if fleet.on_failure == "reset" and fleet.failed.any():
                history.begin(fleet.failed, fleet.times[fleet.failed])
            self.history = history
        except BaseException:
            fleet.restore(backup)
            raise
