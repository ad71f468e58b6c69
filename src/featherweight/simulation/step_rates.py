"""Rates of the smooth part of a step: the stages of `smooth_motion`, each differentiated separately.

functions of the robot     Jacobians of their traces, by the chain rule (`rates.through`)
exponentials               closed forms, joint by joint
forces at joints           linear within limits (`load_slopes`)
Runge-Kutta stage          linear: the same code gives rates
midpoint rule              the implicit function theorem
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .found_step import FoundStep
from .rates import JointMap, Rated, exponential_slopes, through
from .smooth_motion import RUNGE_KUTTA_ROUNDS, runge_kutta_numbers, runge_kutta_round


class State(NamedTuple):
    """A configuration (nq,) and a velocity (nv,)."""

    q: Rated
    v: Rated


class StepRates:
    """The smooth step of one robot along directions: the state (nv each), joint forces (nv) and controls (nu), then others."""

    def __init__(self, found: FoundStep, start: State) -> None:
        self.found, self.model, self.robot, self.h, self.start = found, found.model, found.robot, found.model.h, start

    # accelerations

    def accelerated(self, x: State, load: Rated) -> Rated:
        """Return the acceleration by forces at joints."""
        at = x.q.value, x.v.value, load.value
        da_dq, da_dv, da_dtau = self.model.stage_slopes(*at, *self.found.armature)
        rates = da_dq @ x.q.rates + da_dv @ x.v.rates + da_dtau @ load.rates
        return Rated(self.robot.forward_dynamics(*at), rates)

    def moved(self, u: Rated) -> Rated:
        """Return the configuration that u leads to from the start.

        Closed forms are exact to rounding. The derivative of the trace of exp SE(3) would lose half the digits at turns of
        about 1e-8 rad, because of cancellation.
        """
        q, move = self.start.q, self.robot.integrate if self.model.looped else self.robot.step_functions.integrate
        rates = q.rates + u.rates
        for kind, first in self.model.curved:
            by_q, by_u = exponential_slopes(kind, u.value[first:])
            own = slice(first, first + len(by_q))
            rates[own] = by_q @ q.rates[own] + by_u @ u.rates[own]
        return Rated(move(q.value, u.value), rates)

    # integrators

    def runge_kutta(self) -> State:
        """Return the state after a step of `smooth_motion.runge_kutta`."""
        x, nothing = self.start, 0.0 * self.start.v
        u, sums, curved = nothing, [nothing, nothing], self.model.curved_rate
        for k in range(RUNGE_KUTTA_ROUNDS):
            [rate] = through(curved, u, x.v) if curved else [x.v]
            arguments = self.start.v, self.accelerated(x, self.load(x)), rate, *sums
            v, u, *sums = _round_of(arguments, runge_kutta_numbers(self.h, k))
            x = State(self.moved(u), v)
        return x

    def midpoint(self) -> State:
        """Return the state after a step of `smooth_motion.midpoint`.

        With w = (v + v+)/2 its equations are v+ - v - h a(q', w) - g w = 0 and E(q, v) + h power(q', w) - E(q+, v+) = 0, in v+
        and g.
        """
        h, n, columns = self.h, len(self.start.v.value), self.start.v.rates.shape[1]
        found = self.found.stages.step.free, self.found.stages.step.gain[0] != 0.0
        here = StepRates(self.found, State(*(x.along_more(n) for x in self.start)))  # further directions: those of v+
        after = Rated(found[0], np.hstack([np.zeros((n, columns)), np.eye(n)]))
        w = 0.5 * (here.start.v + after)
        middle = State(here.moved(0.5 * h * w), w)
        load = here.load(middle)
        left = after - here.start.v - h * here.accelerated(middle, load)
        g = float(left.value @ w.value / (w.value @ w.value)) if found[1] else 0.0
        equations = (left - g * w).rates
        if found[1]:
            end = State(here.moved(h * w), after)
            energy = (here.energy(here.start) + h * here.power(middle, load) - here.energy(end)).rates
            equations = np.block([[equations, -w.value[:, None]], [energy, np.zeros((1, 1))]])
        known, unknown = equations[:, :columns], equations[:, columns:]
        after = Rated(found[0], -np.linalg.solve(unknown, known)[:n])
        return State(self.moved(0.5 * h * (self.start.v + after)), after)

    def energy(self, x: State) -> Rated:
        """Return kinetic and potential energy [J]."""
        [kinetic], [potential] = through(self.robot.kinetic_energy, x.q, x.v), through(self.robot.potential_energy, x.q)
        if self.model.passive:
            s, joints = self.found.forces.springs, JointMap(self.found.forces, x.q)
            stretched = x.q.value[s.at] - s.rest
            potential += Rated(0.5 * s.stiffness @ stretched**2, s.stiffness * stretched @ joints.times(x.q.rates))
        return kinetic + potential

    def power(self, x: State, load: Rated) -> Rated:
        """Return the power of forces other than gravity and springs."""
        if self.model.passive:
            s, joints = self.found.forces.springs, JointMap(self.found.forces, x.q)
            pull = s.stiffness * (x.q.value[s.at] - s.rest)
            load += joints.forces(Rated(pull, s.stiffness[:, None] * joints.times(x.q.rates)))
        return Rated(x.v.value @ load.value, x.v.value @ load.rates + load.value @ x.v.rates)

    # forces at joints

    def load(self, x: State) -> Rated:
        """Return all forces at joints (nv,) at a state within the step."""
        stages, nv = self.found.stages, self.robot.nv
        stages.point.x[:], stages.point.w[:] = x.q.value, x.v.value
        y, joints = self.found.slopes(), JointMap(self.found.forces, x.q)
        rates = y.position[:, None] * joints.times(x.q.rates) + y.velocity[:, None] * joints.velocities(x.v).rates
        np.add.at(rates, (stages.joints.drives.row, 3 * nv + np.arange(len(y.control))), y.control)
        load = Rated(stages.point.load.copy(), joints.forces(Rated(y.force, rates)).rates)
        load.rates[:, 2 * nv : 3 * nv] += np.diag(y.tau)
        return load


def _round_of(arguments: Sequence[Rated], numbers: tuple[float, float, float]) -> list[Rated]:
    """Return the results of `runge_kutta_round`. It is linear and acts entry by entry, so it also runs on whole arrays."""
    pairs = []
    for parts in zip(*arguments, strict=True):  # the values, then the rates
        results: tuple[list[Any], ...] = ([None], [None], [None], [None])
        w, a, k, K, A = ([x] for x in parts)
        runge_kutta_round(w, a, k, K, A, numbers, results)
        pairs.append([x for [x] in results])
    return [Rated(*pair) for pair in zip(*pairs, strict=True)]
