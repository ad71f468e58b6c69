"""Model predictive control: a problem of optimal control that is solved again and again, from where the robot is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .problem import OptimalControl, Settings
from .solver import COST, VIOLATION

Array = np.ndarray[Any, np.dtype[Any]]


class Controller:
    """A controller that solves a problem at each tick, from the plan before, moved on by the time that has passed.

        mpc = featherweight.Controller(ocp, rate=100, targets={"tool": T})
        sim.run(2.0, mpc)

    At a tick the solver takes so many `iterations` (one: real-time iteration, Diehl et al. 2005), with the multipliers of the tick
    before. Between ticks, controls follow the plan with its feedback. `targets` and `parameters` may be changed at any time. Raises
    ValueError for a problem of several phases: contacts that come and go are to be known when the problem is compiled.
    """

    def __init__(
        self,
        ocp: OptimalControl,
        *,
        rate: float,
        iterations: int = 1,
        targets: Any = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        if len(ocp.phases) > 1:
            raise ValueError(f"Controller: the problem has {len(ocp.phases)} phases; a controller takes problems with one")
        if not 0.0 < rate < math.inf:
            raise ValueError(f"Controller: rate must be a positive number of ticks a second; got {rate!r}")
        self.ocp, self.period, self.iterations = ocp, 1.0 / rate, iterations
        self.targets, self.parameters = targets, parameters
        self._given: tuple[Any, Any] | None = None
        self._work = ocp.workspace()
        self._settings = Settings(iterations, 0.0, 0.0)
        self._step = float(ocp.steps[0])
        self._driven = list(ocp.driven)
        self.reset()

    def reset(self) -> None:
        """Forget the plan."""
        self.time = -math.inf  # of the plan's beginning [s]
        self._tick = -math.inf
        self._gains: Array = np.zeros(0)

    @property
    def cost(self) -> float:
        """The cost of the plan."""
        return float(self._work.solver.numbers[COST])

    @property
    def violation(self) -> float:
        """The largest violation of a constraint in the plan."""
        return float(self._work.solver.numbers[VIOLATION])

    def __call__(self, time: float, q: Array, v: Array) -> Array:
        """Joint forces tau (nv) at a time [s], at q (nq) and v (nv)."""
        if time >= self._tick + self.period * (1.0 - 1e-9) or time < self.time:
            self.update(time, q, v)
        z, robot = self._work.horizon, self.ocp.robot
        k = min(int((time - self.time) / self._step * (1.0 + 1e-12)), len(z.u) - 1)
        away = np.concatenate([robot.difference(z.q[k], q), v - z.v[k]])
        tau = np.zeros(robot.nv)
        tau[self._driven] = z.u[k] + self._gains[k] @ away
        return tau

    def update(self, time: float, q: Array, v: Array) -> None:
        """Solve from q and v on, at a time [s]."""
        work = self._work
        self._write_parameters(q)
        if time < self.time or self.time == -math.inf:
            work.begin(q, v, work.parameters, None)
            self._settings = self._settings._replace(iterations=max(FIRST, self.iterations))
        else:
            work.move_on(min(round((time - self.time) / self._step), len(work.horizon.u)), q, v)
            self._settings = self._settings._replace(iterations=self.iterations)
        self.time = self._tick = time
        work.run_again(self._settings)
        self._gains = work.gains()

    def _write_parameters(self, q: Array) -> None:
        """Put targets and parameters where kernels read them, if they are others than before."""
        given = self.targets, self.parameters
        if self._given is None or given[0] is not self._given[0] or given[1] is not self._given[1]:
            self._work.parameters[:] = self.ocp.flat_parameters(q, *given)
            self._given = given


FIRST = 50  # iterations of the first tick
