"""Knots that are steps of a simulation: their motions and derivatives, for the solver of optimal control.

The solver (`solver`) calls functions of knots. For a robot they are compiled. Here they are Python functions, which move many
robots at once with the simulation's compiled steps: the trials of a knot side by side, and the knots of a horizon for their
derivatives. A knot takes several steps x' = f(x, u) under the same u; its derivatives are products of those of steps,

    A = A_k ... A_2 A_1        B = A_k (... A_3 (A_2 B_1 + B_2) ...) + B_k
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..algorithms.knots import Drive
from ..array_types import Array, Matrix, Vector
from ..engine.forks import new_lock
from ..engine.loops.prepared_calls import PythonBatch
from ..robot.trajectory import Trajectory
from ..simulation.simulation import Simulation
from .drives import control_bounds, drives_of
from .layout import Motion
from .passive_forces import PassiveForces, holding_controls
from .riccati import KNOTS_AT_ONCE
from .stage_functions import StageFunctions, called_by_name


class SimulatedSteps:
    """The steps of a simulation as the dynamics of knots.

    Controls are those of the simulation's actuators, or forces of the velocities numbered `driven`.
    """

    def __init__(self, simulation: Simulation, every: int, driven: Sequence[int] | None) -> None:
        self.simulation = simulation.with_options(on_failure="stop")
        self.every, self.driven = every, driven
        self._copying = new_lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in vars(self).items() if name not in ("_copying", "passive")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._copying = new_lock()

    def copied(self, on_failure: str, threads: int | None = 1) -> Simulation:
        """Return a copy of the simulation. Steps of a few robots are too short for several threads."""
        with self._copying:
            return self.simulation.with_options(on_failure=on_failure, threads=threads)

    def first_controls(self, q: Vector) -> Vector:
        """Return the controls (nu,) that hold the robot in the air, or zero for drives whose force is not linear."""
        drives, bounds = self.drives_at_rest
        found = holding_controls(drives, self.passive, q) if drives else np.zeros(len(bounds[0]))
        return np.clip(found, *bounds)

    @cached_property
    def passive(self) -> PassiveForces:
        """Forces of springs and gravity compensation."""
        return PassiveForces(self.simulation.robot)

    @property
    def drives_at_rest(self) -> tuple[Sequence[Drive], tuple[Array, Array]]:
        """The drives, none if the force of one is not linear, and the bounds (nu,) of controls."""
        if self.driven is not None:
            none = np.full(len(self.driven), np.inf)
            return [Drive(k) for k in self.driven], (-none, none)
        actuators = self.simulation.forces.actuators
        try:
            drives = drives_of(self.simulation.robot, actuators, {0.0})
        except ValueError:
            drives = ()
        return drives, control_bounds(actuators)

    def trajectory(self, q: Vector, v: Vector, u: Matrix) -> Trajectory:
        """Return the motion of the simulation under controls u (knots, nu), with its contacts."""
        sim = self.copied("raise")
        sim.reset(q, v)

        def planned(*_: Any) -> Any:
            return self.inputs(u[min(sim.steps // self.every, len(u) - 1)])

        return sim.run(len(u) * self.every * sim.dt, planned, every=self.every)

    def inputs(self, u: Array) -> tuple[Array | None, Array | None]:
        """Return joint forces and controls of the simulation for controls u (..., nu)."""
        if self.driven is None:
            return None, u
        tau = np.zeros((*u.shape[:-1], self.simulation.robot.nv))
        tau[..., self.driven] = u
        return tau, None


class SimulatedKnots:
    """Motions and derivatives of the knots of one thread. `errors` gets what the simulation raises."""

    def __init__(self, steps: SimulatedSteps) -> None:
        self.steps = steps
        self.errors: list[BaseException] = []
        self._moving: dict[int, Simulation] = {}
        self._sloping: dict[int, Simulation] = {}
        self._alone: Simulation | None = None

    # motions and derivatives

    def moved(self, q: Matrix, v: Matrix, u: Matrix, start: bool) -> tuple[Matrix, Matrix]:
        """Return the states (robots, ..) after a knot; NaN for robots whose step fails, and for those that come as NaN.

        A robot that comes with the state that the last call returned goes on, with the contacts of its last step. So the motion
        of a horizon is bitwise that of a simulation, which begins at the `start`.
        """
        sim = self._of(len(q), self._moving, "stop", 1)
        lost: Array = np.any(np.isnan(np.hstack([q, v])), axis=1)
        goes_on = (sim.q == q).all(axis=1) & (sim.v == v).all(axis=1)
        if start or not (goes_on | lost).all():
            sim.reset(np.where(lost[:, None], sim.q, q), np.where(lost[:, None], sim.v, v))
        sim.step(*self.steps.inputs(np.where(lost[:, None], 0.0, u)), steps=self.steps.every)
        failed = (lost | sim.failed)[:, None]
        return np.where(failed, np.nan, sim.q), np.where(failed, np.nan, sim.v)

    def motion(self, q: Vector, v: Vector, u: Matrix) -> tuple[Matrix, Matrix]:
        """Return the states (knots + 1, ..) under controls u (knots, nu). Raises SimulationError if a step fails."""
        if self._alone is None:
            self._alone = self.steps.copied("raise")
        tau, control = self.steps.inputs(np.repeat(u[None], self.steps.every, axis=1))
        [many_q, many_v] = self._alone.rollout(q[None], v[None], tau=tau, control=control, every=self.steps.every)
        return many_q[0], many_v[0]

    def slopes(self, q: Matrix, v: Matrix, u: Matrix) -> tuple[Array, Array]:
        """Return A (knots, 2 nv, 2 nv) and B (knots, 2 nv, nu), by the state before a knot and by its controls."""
        sim, inputs = self._of(len(q), self._sloping, "raise", None), self.steps.inputs(u)
        sim.reset(q, v)
        A, B = self._slopes_of_step(sim, inputs)
        for _ in range(1, self.steps.every):
            sim.step(*inputs)
            A_next, B_next = self._slopes_of_step(sim, inputs)
            A, B = A_next @ A, A_next @ B + B_next
        return A, B

    def costs_back(self, motion: Motion, own: Sequence[Array]) -> tuple[Vector, Matrix]:
        """Return the derivatives of a sum of costs by the state before a motion (2 nv,) and by its controls (knots, nu).

        `own` are those of the costs of knots by (q, v, u) of the knot (knots, 2 nv + nu), and of the end by (q, v).
        """
        q, v, u = motion[:3]
        states = 2 * v.shape[1]
        by_state, by_control = own[1][0, :states].copy(), own[0][:, states:].copy()
        for stop in range(len(u), 0, -KNOTS_AT_ONCE):
            first = max(0, stop - KNOTS_AT_ONCE)
            A, B = self.slopes(q[first:stop], v[first:stop], u[first:stop])
            for k in range(stop - 1, first - 1, -1):
                by_control[k] += by_state @ B[k - first]
                by_state = own[0][k, :states] + by_state @ A[k - first]
        return by_state, by_control

    def _slopes_of_step(self, sim: Simulation, inputs: tuple[Array | None, Array | None]) -> tuple[Array, Array]:
        found, driven = sim.derivatives(*inputs), self.steps.driven
        return found.A, found.B_control if driven is None else found.B[..., driven]

    def _of(self, robots: int, known: dict[int, Simulation], on_failure: str, threads: int | None) -> Simulation:
        """Return a simulation of so many robots."""
        if robots not in known:
            known[robots] = sim = self.steps.copied(on_failure, threads)
            sim.reset(np.tile(np.atleast_2d(sim.q)[:1], (robots, 1)))
        return known[robots]

    # functions of knots, as the solver calls them

    def look(self, stage: StageFunctions, arrays: dict[str, Array]) -> PythonBatch:
        """Return the function that writes the states after knots, and their rows, along a motion."""

        def look(first: int, count: int) -> None:
            for k in range(first, first + count):
                one = slice(k, k + 1)
                ends = self.moved(arrays["q"][one], arrays["v"][one], arrays["u"][one], k == 0)
                arrays["ahead"][one], arrays["velocity"][one] = ends
            write_rows(stage, {name: x[first : first + count] for name, x in arrays.items()})

        return PythonBatch(look, self.errors)

    def tried(self, stage: StageFunctions, arrays: dict[str, Array]) -> PythonBatch:
        """Return the function that does this for the trials (knots, trials, ..) of one knot; the last call writes all rows."""
        knots = len(arrays["u"])

        def tried(k: int, count: int) -> None:
            q, v, u, ahead, velocity = (arrays[name][k, :count] for name in ("q", "v", "u", "ahead", "velocity"))
            ahead[:], velocity[:] = self.moved(q, v, u, k == 0)
            if k + 1 == knots:
                write_rows(stage, arrays)

        return PythonBatch(tried, self.errors)

    def derivatives(self, stage: StageFunctions, arrays: dict[str, Array], results: dict[str, Array]) -> PythonBatch:
        """Return the function that writes D of knots, and the gradient and the Hessian of their costs."""

        def derivatives(first: int, count: int) -> None:
            own = {name: x[first : first + count] for name, x in arrays.items()}
            A, B = self.slopes(own["q"], own["v"], own["u"])
            n, D = A.shape[-1] // 2, results["motion"][:count]
            D[..., : 2 * n], D[..., 2 * n : 2 * n + B.shape[-1]] = A, B
            D[:, range(n), range(n)] -= 1.0
            for name, x in called_by_name(stage.slopes, own).items():
                results[name][:count] = x

        return PythonBatch(derivatives, self.errors)

    def raise_errors(self) -> None:
        """Raise the first exception, and forget it."""
        for error in self.errors:
            self.errors.clear()
            raise error


def write_rows(stage: StageFunctions, arrays: dict[str, Array]) -> None:
    """Write the rows of knots."""
    arrays["rows"][:] = called_by_name(stage.only_rows, arrays)["rows"]
