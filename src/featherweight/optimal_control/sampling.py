"""Sampling-based predictive control, by the dynamics of a problem, or by simulations that make and break contacts.

Model predictive path integral control (MPPI; Williams et al. 2017) draws sequences of controls around the plan, follows all
of them, and averages them with the weights exp(-(cost - least cost) / temperature). Predictive sampling (Howell et al. 2022)
is the limit at temperature zero: the best sequence.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from ..array_types import Array, Integers, Matrix, Tensor, Vector
from ..checks import NUMBER, SeedOrNone, argument, array_of, generator, real_array
from ..engine.exclusive import Use, exclusive
from ..engine.loops.kernels import CompiledLoop, Table
from ..engine.threads import processors, share_out
from ..names import knows_keywords
from ..simulation import Simulation
from ..simulation.arguments import check_count, check_options
from .controller import checked_numbers, checked_state, inputs_of
from .drives import control_bounds
from .problem import OptimalControl, check_penalty, check_problem
from .sampled_motions import AT_ONCE

NEGLIGIBLE = 1e-12  # weights of samples that do not count


class Draws(NamedTuple):
    """Sequences of controls: a plan, and noise that is linear between nodes."""

    nodes: npt.NDArray[np.float32]  # (samples, nodes, nu), of unit standard deviation
    noise: Vector  # (nu,) standard deviations
    before: Integers  # (knots,) the node at or before each knot
    part: Vector  # (knots,) of the way to the next node
    plan: Matrix  # (knots, nu)
    low: Vector  # (nu,)
    high: Vector  # (nu,)
    u: Tensor  # (knots, samples, nu) the sequences


def draws(knots: int, nodes: int, samples: int, noise: Array, bounds: Array) -> Draws:
    """Return arrays for sequences with noise of standard deviations (nu,), within bounds (2, nu)."""
    at, nu = np.linspace(0.0, nodes - 1.0, knots), len(noise)
    before = np.minimum(at.astype(np.int64), nodes - 2)
    low, high = np.ascontiguousarray(bounds, dtype=float)
    drawn, u = np.zeros((samples, nodes, nu), np.float32), np.zeros((knots, samples, nu))
    return Draws(drawn, noise, before, at - before, np.zeros((knots, nu)), low, high, u)


def write_controls(d: Draws, first: int, stop: int) -> int:
    """Write the sequences of some samples."""
    for k in range(len(d.plan)):
        i, part = d.before[k], d.part[k]
        for a in range(first, stop):
            for j in range(len(d.low)):
                x = d.nodes[a, i, j]
                x = d.plan[k, j] + d.noise[j] * (x + part * (d.nodes[a, i + 1, j] - x))
                d.u[k, a, j] = min(max(x, d.low[j]), d.high[j])
    return 0


WRITE_CONTROLS = CompiledLoop(write_controls, 2, what="sampling of controls")


class SamplingController:
    """A controller that follows many sequences of controls at each tick and averages the cheapest ones.

        mppi = featherweight.SamplingController(ocp, samples=1000, noise=10.0, targets={"tool": T})
        sim.run(2.0, mppi)

    The costs are those of `ocp`; constraints count with penalty / 2 times their squared violations. Samples follow the dynamics
    of `ocp`, with the contacts of its phases, on its `threads`. If the motion itself makes and breaks contacts, give a
    `simulation` to run the samples, which takes much longer: one made for this purpose, with on_failure="stop" and a time step
    of which the step of `ocp` is a multiple; `ocp` then has no contacts. Sequences are interpolated linearly between `nodes`,
    which have the standard deviation `noise` [N m, N], a number or one for each control. Controls stay within the robot's
    limits. The same seed `rng` gives the same controls; without it, each controller draws other samples. Copies and pickles go
    on with the same plan and the same draws. A call while another thread is in one raises RuntimeError: give each thread a
    controller, and a simulation, of its own. Raises ValueError for arguments that are invalid.
    """

    @knows_keywords
    def __init__(
        self,
        ocp: OptimalControl,
        simulation: Simulation | None = None,
        *,
        samples: int = 256,
        noise: ArrayLike = 1.0,
        nodes: int = 5,
        temperature: float = 0.1,
        penalty: float = 100.0,
        targets: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        rng: SeedOrNone = None,
    ) -> None:
        check_problem("SamplingController", ocp)
        if simulation is not None:
            check_options("SamplingController: simulation", simulation, Simulation)
        ocp.require_given_steps("SamplingController")
        simulation = ocp.simulation if simulation is None else simulation
        if ocp.repeats or len(set(ocp.dt)) > 1:
            raise ValueError(
                "SamplingController: the problem needs phases of one time step, without impacts, that do not repeat"
            )
        self._use = Use(f"the sampling controller of {ocp.robot.name!r}", "make one for each thread")
        self._step = float(ocp.dt[0])
        self._hold = 1 if simulation is None else steps_of_knot(ocp, self._step, simulation)
        check_count("SamplingController: samples", samples, 2)
        check_count("SamplingController: nodes", nodes, 2)
        if not argument("SamplingController: temperature", temperature, NUMBER) >= 0.0:
            raise ValueError(f"SamplingController: temperature must not be negative; got {temperature!r}")
        check_penalty("SamplingController", penalty)
        self.ocp, self.simulation, self.samples, self.temperature, self.penalty = ocp, simulation, samples, temperature, penalty
        self.targets, self.parameters = targets, parameters
        given = real_array("SamplingController: noise", noise)
        if given.shape not in ((), (ocp.nu,)) or not ((given >= 0.0) & (given < math.inf)).all():
            raise ValueError(f"SamplingController: noise must be a number or {ocp.nu} of them, none negative; got {noise!r}")
        self.noise = np.array(np.broadcast_to(given, (ocp.nu,)))
        source: Any = generator("SamplingController: rng", rng).bit_generator.seed_seq
        seeds = source.spawn(-(-samples // AT_ONCE))
        self._generators = [np.random.Generator(np.random.SFC64(x)) for x in seeds]  # of samples that follow each other
        bounds = control_bounds(ocp.actuators) if ocp.actuators else np.array(ocp.robot.effort_bounds)[:, list(ocp.driven)]
        self._draws = draws(ocp.knots, max(2, min(nodes, ocp.knots)), samples, self.noise, np.array(bounds))
        self._bind()
        self.plan: Matrix | None = None  # (knots, nu)
        self.cost, self._time = math.inf, -math.inf

    def _bind(self) -> None:
        """Create the compiled function that writes the controls of samples."""
        self._table = Table(self._draws)
        self._write = WRITE_CONTROLS.for_tables(self._table)

    @exclusive
    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes except the compiled function."""
        own = copy.deepcopy((self._draws, self._generators, self._use))
        state = {name: x for name, x in vars(self).items() if name not in ("_table", "_write")}
        return state | dict(zip(("_draws", "_generators", "_use"), own, strict=True))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._bind()

    @exclusive
    def reset(self) -> None:
        """Discard the plan."""
        self.plan, self._time = None, -math.inf

    @exclusive
    def __call__(self, time: float, q: ArrayLike, v: ArrayLike) -> Any:
        """Return the joint forces tau (nv) at a time [s], for q (nq) and v (nv).

        With actuators, return (zeros, their controls). Raises ValueError as `update` does.
        """
        q, v = checked_state("SamplingController", self.ocp.robot, time, q, v)
        if self.plan is None or time < self._time or time >= self._time + self._step * (1.0 - 1e-9):
            self._update(time, q, v)
        assert self.plan is not None
        return inputs_of(self.ocp, self.plan[0])

    @exclusive
    def update(self, time: float, q: ArrayLike, v: ArrayLike) -> None:
        """Draw sequences, follow and average them. Raises ValueError for an invalid time, q or v, and if all motions fail."""
        self._update(time, *checked_state("SamplingController", self.ocp.robot, time, q, v))

    def _update(self, time: float, q: Vector, v: Vector) -> None:
        ocp, d, plan = self.ocp, self._draws, self.plan
        if plan is None or time < self._time:
            plan = np.tile(ocp.first_controls(q), (ocp.knots, 1))
        else:
            passed = min(round((time - self._time) / self._step), ocp.knots)
            plan = np.concatenate([plan[passed:], np.repeat(plan[-1:], passed, axis=0)])
        d.plan[:] = plan
        costs = self._costs(q, v, d.u, self._draw)
        least = costs.min()
        if not math.isfinite(least):
            raise ValueError("SamplingController: the motions of all samples fail; reduce the noise or the time step")
        with np.errstate(over="ignore"):
            weights = costs == least if self.temperature == 0.0 else np.exp((least - costs) / self.temperature)
        weights = weights / weights.sum()
        chosen = np.flatnonzero(weights > NEGLIGIBLE)
        mean, cost = np.einsum("n,knu->ku", weights[chosen], d.u[:, chosen]), float(least)
        self.plan, self.cost, self._time = mean, cost, time

    def _draw(self, first: int, stop: int) -> None:
        """Draw samples from `first` on, a multiple of `AT_ONCE`, and write their controls."""
        for begin in range(first, stop, AT_ONCE):
            nodes = self._draws.nodes[begin : min(begin + AT_ONCE, stop)]
            self._generators[begin // AT_ONCE].standard_normal(dtype=np.float32, out=nodes)
        if first == 0:
            self._draws.nodes[0] = 0.0  # the first sample is the plan
        self._write(self._table.address, first, stop)

    @exclusive
    def costs(self, q: Vector, v: Vector, u: Tensor) -> Vector:
        """Return the costs (samples,) of controls u (samples, knots, nu) from q and v; infinity where the motion fails."""
        q, v = checked_state("SamplingController", self.ocp.robot, 0.0, q, v)
        u = array_of("SamplingController: u", u, "samples", self.ocp.knots, self.ocp.nu)
        return self._costs(q, v, np.swapaxes(u, 0, 1))

    def _costs(self, q: Vector, v: Vector, u: Tensor, write: Callable[[int, int], object] = lambda *_: None) -> Vector:
        """The costs of controls u (knots, samples, nu), which `write` writes for some samples."""
        if self.simulation is not None:
            write(0, u.shape[1])
            return self._costs_of_simulations(q, v, np.swapaxes(u, 0, 1))
        count = u.shape[1]
        costs: Vector = np.empty(count)
        window = self.ocp._window()
        flat = checked_numbers("SamplingController", window.layout.parameters(q, self.targets, self.parameters))

        def piece(begin: int, end: int) -> None:
            first, stop = begin * AT_ONCE, min(end * AT_ONCE, count)
            write(first, stop)
            with window.samples.borrowed() as one:
                one.parameters[:] = flat
                one.costs(q, v, u[:, first:stop], self.penalty, costs[first:stop])

        share_out(piece, -(-count // AT_ONCE), self.ocp.threads or processors())
        return np.where(np.isfinite(costs), costs, np.inf)

    def _costs_of_simulations(self, q: Vector, v: Vector, u: Tensor) -> Vector:
        """The costs of controls u (samples, knots, nu), which the simulation follows."""
        ocp, simulation, count = self.ocp, self.simulation, len(u)
        assert simulation is not None
        repeated = np.repeat(u, self._hold, axis=1)
        start = np.broadcast_to(q, (count, len(q))), np.broadcast_to(v, (count, len(v)))
        if ocp.actuators:
            motions = simulation.rollout(*start, control=repeated, every=self._hold)
        else:
            tau = np.zeros((count, ocp.knots * self._hold, ocp.robot.nv))
            tau[..., list(ocp.driven)] = repeated
            motions = simulation.rollout(*start, tau=tau, every=self._hold)
        costs = ocp.cost_of_motions(*motions, u, self.targets, self.parameters, penalty=self.penalty, start=q)
        return np.where(motions.failed, np.inf, costs)


def steps_of_knot(ocp: OptimalControl, step: float, simulation: Simulation) -> int:
    """Return the steps of a simulation for each knot. Raises ValueError for one that does not fit the problem."""
    if any(phase.contacts for phase in ocp.phases):
        raise ValueError("SamplingController: contacts come from the simulation; give a problem with knots= and without phases")
    if simulation.on_failure != "stop":
        raise ValueError(
            'SamplingController: failed motions must have infinite cost; create the Simulation with on_failure="stop"'
        )
    hold = step / simulation.dt
    if abs(hold - round(hold)) > 1e-9 or hold < 1.0 - 1e-9:
        raise ValueError(
            f"SamplingController: the problem's step {step} s must be a multiple of the simulation's, {simulation.dt} s"
        )
    return round(hold)
