"""Sampling-based predictive control on simulations: for contacts that are made and broken.

Model predictive path integral control (MPPI; Williams et al. 2017) draws sequences of controls around the plan, simulates all
of them, and averages them with the weights exp(-(cost - least cost) / temperature). Predictive sampling (Howell et al. 2022)
is the limit of temperature zero: the best sequence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..simulation import Simulation
from .drives import control_bounds
from .problem import OptimalControl
from .workspace import holding_controls

Array = np.ndarray[Any, np.dtype[Any]]


class SamplingController:
    """A controller that simulates many sequences of controls at each tick, and follows the average of the cheap ones.

        mppi = featherweight.SamplingController(ocp, simulation, samples=256, noise=10.0, targets={"tool": T})
        sim.run(2.0, mppi)

    The costs are those of `ocp`; constraints count with penalty / 2 times their squared violations. `simulation` runs the
    samples: make one for this purpose, with on_failure="stop" and a time step of which the step of `ocp` is a multiple.
    Sequences are interpolated linearly between `nodes`, which have the standard deviation `noise` [N m, N], a number or one
    for each control. Controls stay within the robot's limits. The same seed gives the same controls. Raises ValueError for
    arguments that do not fit.
    """

    def __init__(
        self,
        ocp: OptimalControl,
        simulation: Simulation,
        *,
        samples: int = 256,
        noise: Any = 1.0,
        nodes: int = 5,
        temperature: float = 0.1,
        penalty: float = 100.0,
        targets: Any = None,
        parameters: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        spans = ocp._spans()
        if len(spans) > 1 or spans[0].contacts:
            raise ValueError("SamplingController: contacts are the simulation's; give a problem with knots=, without phases")
        if simulation.on_failure != "stop":
            raise ValueError(
                'SamplingController: motions that fail are to cost infinity; make the Simulation with on_failure="stop"'
            )
        hold = ocp._spans()[0].step / simulation.step_size
        if abs(hold - round(hold)) > 1e-9 or hold < 1.0 - 1e-9:
            raise ValueError(
                f"SamplingController: the problem's step {ocp._spans()[0].step} s must be a multiple of the simulation's, "
                f"{simulation.step_size} s"
            )
        if samples < 2 or nodes < 2:
            raise ValueError(f"SamplingController: samples and nodes must be at least 2; got {samples} and {nodes}")
        if temperature < 0.0:
            raise ValueError(f"SamplingController: temperature must not be negative; got {temperature!r}")
        self.ocp, self.simulation, self.samples, self.temperature, self.penalty = ocp, simulation, samples, temperature, penalty
        self.targets, self.parameters = targets, parameters
        self.noise = np.broadcast_to(np.asarray(noise, dtype=float), (ocp.nu,))
        self._hold, self._rng = round(hold), np.random.default_rng(seed)
        self._spline = interpolation(ocp.knots, min(nodes, ocp.knots))
        bounds = control_bounds(ocp.actuators) if ocp.actuators else np.array(ocp.robot.effort_bounds)[:, list(ocp.driven)]
        self._low: Array = bounds[0]
        self._high: Array = bounds[1]
        self.plan: Array | None = None  # (knots, nu)
        self.cost, self._time = math.inf, -math.inf

    def reset(self) -> None:
        """Forget the plan."""
        self.plan, self._time = None, -math.inf

    def __call__(self, time: float, q: Array, v: Array) -> Any:
        """Return the joint forces tau (nv) at a time [s], at q (nq) and v (nv); with actuators (zeros, their controls)."""
        step = self.ocp._spans()[0].step
        if self.plan is None or time < self._time or time >= self._time + step * (1.0 - 1e-9):
            self.update(time, q, v)
        assert self.plan is not None
        tau = np.zeros(self.ocp.robot.nv)
        if self.ocp.actuators:
            return tau, self.plan[0]
        tau[list(self.ocp.driven)] = self.plan[0]
        return tau

    def update(self, time: float, q: Array, v: Array) -> None:
        """Draw sequences, simulate and average them."""
        ocp = self.ocp
        if self.plan is None or time < self._time:
            self.plan = np.tile(holding_controls(ocp.robot, ocp.drives, q), (ocp.knots, 1))
        else:
            passed = min(round((time - self._time) / ocp._spans()[0].step), ocp.knots)
            self.plan = np.concatenate([self.plan[passed:], np.repeat(self.plan[-1:], passed, axis=0)])
        nodes = self._rng.standard_normal((self.samples, self._spline.shape[1], ocp.nu)) * self.noise
        nodes[0] = 0.0
        u = np.clip(self.plan + self._spline @ nodes, self._low, self._high)
        costs = self.costs(q, v, u)
        least = costs.min()
        if not math.isfinite(least):
            raise ValueError("SamplingController: the simulations of all samples fail; take less noise or a shorter time step")
        weights = costs == least if self.temperature == 0.0 else np.exp(-(costs - least) / self.temperature)
        self.plan = np.tensordot(weights / weights.sum(), u, 1)
        self.cost, self._time = float(least), time

    def costs(self, q: Array, v: Array, u: Array) -> Array:
        """Return the costs (samples,) of controls u (samples, knots, nu) from q and v; infinity where the simulation fails."""
        ocp, count = self.ocp, len(u)
        held = np.repeat(u, self._hold, axis=1)
        start = np.broadcast_to(q, (count, len(q))), np.broadcast_to(v, (count, len(v)))
        if ocp.actuators:
            qs, vs = self.simulation.rollout(*start, control=held, every=self._hold)
        else:
            tau = np.zeros((count, ocp.knots * self._hold, ocp.robot.nv))
            tau[..., list(ocp.driven)] = held
            qs, vs = self.simulation.rollout(*start, tau=tau, every=self._hold)
        costs = ocp.cost_of_motions(qs, vs, u, self.targets, self.parameters, penalty=self.penalty, start=q)
        return np.where(self.simulation.failed, np.inf, costs)


def interpolation(knots: int, nodes: int) -> Array:
    """Return the matrix (knots, nodes) of linear interpolation."""
    at = np.linspace(0.0, nodes - 1.0, knots)
    return np.maximum(1.0 - np.abs(at[:, None] - np.arange(nodes)), 0.0)
