"""Rates of the smooth part of a step: the stages of `smooth_motion`, each differentiated separately.

functions of the robot     Jacobians of their traces, by the chain rule (`rates.through`)
exponentials               the robot's closed forms
laws of joints and drives  affine in control, coordinate and velocity: the same code without constants gives rates
Runge-Kutta stage          linear: the same code gives rates
limits                     a clipped value has no rates; a value at a limit is doubtful
midpoint rule              the implicit function theorem
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array
from ..robot.robot import Robot
from .forces import drive_law, spring_force
from .found_step import FoundStep
from .implicit_drives import GEAR, HIGH, LOW, DriveWork
from .rates import JointMap, Rated, through
from .smooth_motion import RUNGE_KUTTA_ROUNDS, runge_kutta_numbers, runge_kutta_round

AT_AN_END = 1e-9  # relative distance from a limit below which a force or control counts as at the limit


class State(NamedTuple):
    """A configuration (nq,) and a velocity (nv,)."""

    q: Rated
    v: Rated


class Given(NamedTuple):
    """Joint forces (nv,) of the user, and controls (nu,) of drives or None."""

    tau: Rated
    control: Rated | None


class StepRates:
    """The smooth step of one robot along directions of the state and the inputs; `at_an_end` collects values at a limit."""

    def __init__(self, found: FoundStep, start: State, inputs: Given) -> None:
        self.found, self.model, self.robot, self.h = found, found.model, found.robot, found.model.h
        self.start, self.inputs, self.at_an_end = start, inputs, dict[str, None]()
        if self.robot.closed:
            self.robot.require_whole_joints()  # type: ignore[attr-defined]

    # accelerations

    def dynamics(self, q: Array, v: Array, tau: Array, external: Array | None = None) -> Any:
        """Return the derivatives da_dq, da_dv and da_dtau of accelerations, with the inertia that applies to impulses."""
        return self._dynamics_of(self.model.moving, q, v, tau, external)

    def _dynamics_of(self, robot: Robot, q: Array, v: Array, tau: Array, external: Array | None = None) -> Any:
        function = robot.forward_dynamics
        if not (self.found.contacts.bodies or len(self.found.contacts.joint_dofs)):
            return self.found.at_armature(function.derivative("q", "v", "tau"), q, v, tau)
        pushed = function.variant("external_forces").derivative("q", "v", "tau")
        forces = np.zeros((len(self.robot.bodies), 6)) if external is None else external
        return self.found.at_armature(pushed, q, v, tau, external_forces=forces)

    def accelerated(self, x: State, load: Rated) -> Rated:
        """Return the acceleration by forces at joints."""
        robot, at = self.model.moving if self.model.integrator == "semi-implicit" else self.robot, (x.q.value, x.v.value)
        D = self._dynamics_of(robot, *at, load.value)
        a: Array = self.found.at_armature(robot.forward_dynamics, *at, load.value)
        return Rated(a, D.da_dq @ x.q.rates + D.da_dv @ x.v.rates + D.da_dtau @ load.rates)

    def acceleration(self, x: State) -> Rated:
        """Return the acceleration at a state within the step."""
        return self.accelerated(x, self.load(x))

    def moved(self, u: Rated) -> Rated:
        """Return the configuration that u leads to from the start.

        The robot's closed forms are exact to rounding. The derivative of the trace of exp SE(3) would lose half the digits at
        turns of about 1e-8 rad, because of cancellation.
        """
        q, move = self.start.q, self.robot.integrate if self.model.looped else self.robot.step_functions.integrate
        by_q, by_u = self.robot.integrate_derivatives(q.value, u.value)
        return Rated(move(q.value, u.value), by_q @ q.rates + by_u @ u.rates)

    # integrators

    def semi_implicit(self) -> Rated:
        """Return the velocity after a step without contacts, in the axes of its start."""
        x, driving = self.start, self.found.driving
        drives = self.drives(x) if driving is None else self.implicit_drives(x, driving)
        load = self.given + drives
        if self.model.passive:
            load += self.springs(x, self.h)
        a = self.accelerated(x, Rated(self.found.stages.step.load, load.rates))
        return through(self.robot.step_functions.free_velocity, x.v, a, self.h)[0]

    def runge_kutta(self) -> State:
        """Return the state after a step of `smooth_motion.runge_kutta`."""
        x, nothing = self.start, 0.0 * self.start.v
        u, sums, curved = nothing, [nothing, nothing], self.model.curved_rate
        for k in range(RUNGE_KUTTA_ROUNDS):
            [rate] = through(curved, u, x.v) if curved else [x.v]
            arguments = self.start.v, self.acceleration(x), rate, *sums
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
        # directions: those of the step, then v+
        control = self.inputs.control
        inputs = Given(self.inputs.tau.along_more(n), control.along_more(n) if control else None)
        here = StepRates(self.found, State(*(x.along_more(n) for x in self.start)), inputs)
        after = Rated(found[0], np.hstack([np.zeros((n, columns)), np.eye(n)]))
        w = 0.5 * (here.start.v + after)
        middle = State(here.moved(0.5 * h * w), w)
        left = after - here.start.v - h * here.acceleration(middle)
        g = float(left.value @ w.value / (w.value @ w.value)) if found[1] else 0.0
        equations = (left - g * w).rates
        if found[1]:
            end = State(here.moved(h * w), after)
            energy = (here.energy(here.start) + h * here.power(middle) - here.energy(end)).rates
            equations = np.block([[equations, -w.value[:, None]], [energy, np.zeros((1, 1))]])
        self.at_an_end.update(here.at_an_end)
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

    def power(self, x: State) -> Rated:
        """Return the power of forces other than gravity and springs."""
        force = self.given + self.drives(x)
        if self.model.passive:
            force += self.springs(x, stiff=False)
        return Rated(x.v.value @ force.value, x.v.value @ force.rates + force.value @ x.v.rates)

    # forces at joints

    def load(self, x: State) -> Rated:
        """Return all forces at joints (nv,) at a state within the step."""
        load = self.given + self.drives(x)
        return load + self.springs(x) if self.model.passive else load

    @cached_property
    def given(self) -> Rated:
        """Return the forces of the user within efforts."""
        return self._within_efforts(self.inputs.tau)

    def springs(self, x: State, ahead: float = 0.0, stiff: bool = True) -> Rated:
        """Return damping and springs `ahead` seconds later; without springs unless `stiff`."""
        s, joints = self.found.forces.springs, JointMap(self.found.forces, x.q)
        damping, stiffness, v = s.damping, s.stiffness if stiff else 0.0 * s.stiffness, joints.velocities(x.v)
        force = spring_force((damping, stiffness, s.rest), x.q.value[s.at], v.value, ahead)
        linear = damping[:, None], stiffness[:, None], 0.0
        return joints.forces(Rated(force, spring_force(linear, joints.times(x.q.rates), v.rates, ahead)))

    def drives(self, x: State) -> Rated:
        """Return forces of drives within their limits."""
        if self.inputs.control is None:
            return 0.0 * x.v
        values, joints = self.found.forces.drives.values, JointMap(self.found.forces, x.q)
        force = self._cut(self._law(x, joints, self.inputs.control, 0.0), (values[LOW], values[HIGH]), self._drive_names)
        return self._within_efforts(self._at_rows(joints, _scaled(values[GEAR], force)))

    def implicit_drives(self, x: State, work: DriveWork) -> Rated:
        """Return forces of drives evaluated at the end of the step (see `implicit_drives`), in their state there."""
        assert self.inputs.control is not None
        drives, joints = self.found.forces.drives, JointMap(self.found.forces, x.q)
        rows, values = drives.row, drives.values
        gear, acceleration = values[GEAR], joints.times(self.found.stages.step.acceleration)
        asked = gear * work.law - work.inertia * acceleration[rows]
        bounds = np.sort([gear * values[LOW], gear * values[HIGH]], axis=0)
        law = Rated(asked, gear[:, None] * self._law(x, joints, self.inputs.control, self.h).rates)
        force = self._cut(law, (bounds[0], bounds[1]), self._drive_names)
        free = (work.inertia > 0.0) & (work.side == 0.0)
        rates = np.where(free[:, None], law.rates, np.where(work.inertia[:, None] > 0.0, 0.0, force.rates))
        carried = self._at_rows(joints, force._replace(rates=rates))
        within, row = self._within_efforts(carried), work.rows.row
        held, stiff = work.held[row, None] != 0.0, work.stiff[row, None] > 0.0
        return within._replace(rates=np.where(stiff, np.where(held, 0.0, carried.rates), within.rates))

    def _law(self, x: State, joints: JointMap, control: Rated, ahead: float) -> Rated:
        """Return the laws of drives (nu,), with controls within their ranges, before the limits of forces."""
        rows, at, values = self.found.forces.drives[:3]
        u, v = self._cut(control, (values[5], values[6]), self._drive_names), joints.velocities(x.v)
        linear = values[:, :, None].copy()
        linear[2], linear[5], linear[6] = 0.0, -np.inf, np.inf
        rates = drive_law(linear, u.rates, joints.times(x.q.rates)[rows], v.rates[rows], ahead)
        return Rated(drive_law(values, u.value, x.q.value[at], v.value[rows], ahead), rates)

    def _at_rows(self, joints: JointMap, force: Rated) -> Rated:
        """Map forces of drives to independent joints; two drives may share a joint."""
        n, rows = len(self.found.forces.names), self.found.forces.drives.row
        total = Rated(np.zeros(n), np.zeros((n, force.rates.shape[1])))
        for sums, more in zip(total, force, strict=True):
            np.add.at(sums, rows, more)
        return joints.forces(total)

    # limits

    @cached_property
    def _drive_names(self) -> list[str]:
        return [f"actuator {a.name!r}" for a in self.found.forces.actuators]

    @cached_property
    def _effort_names(self) -> list[str]:
        return [f"the effort of joint {j.name!r}" for j in self.robot.joints for _ in range(j.v_slice.stop - j.v_slice.start)]

    def _within_efforts(self, tau: Rated) -> Rated:
        return self._cut(tau, self.robot.effort_bounds, self._effort_names)

    def _cut(self, x: Rated, bounds: tuple[Array, Array], names: list[str]) -> Rated:
        """Clip a vector to bounds, with zero rates for clipped entries; register entries at a bound."""
        for bound in bounds:
            with np.errstate(invalid="ignore"):
                close = np.isfinite(bound) & (np.abs(x.value - bound) <= AT_AN_END * np.abs(bound))
            self.at_an_end.update((f"{names[k]} at its limit", None) for k in np.flatnonzero(close))
        inside = (x.value >= bounds[0]) & (x.value <= bounds[1])
        return Rated(np.clip(x.value, *bounds), inside[:, None] * x.rates)


def _scaled(factors: Array, x: Rated) -> Rated:
    """Return a vector multiplied entry by entry."""
    return Rated(factors * x.value, factors[:, None] * x.rates)


def _round_of(arguments: Sequence[Rated], numbers: tuple[float, float, float]) -> list[Rated]:
    """Return the results of `runge_kutta_round`. It is linear and acts entry by entry, so it also runs on whole arrays."""
    pairs = []
    for parts in zip(*arguments, strict=True):  # the values, then the rates
        results: tuple[list[Any], ...] = ([None], [None], [None], [None])
        w, a, k, K, A = ([x] for x in parts)
        runge_kutta_round(w, a, k, K, A, numbers, results)
        pairs.append([x for [x] in results])
    return [Rated(*pair) for pair in zip(*pairs, strict=True)]
