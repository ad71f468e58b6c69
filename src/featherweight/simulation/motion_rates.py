"""Derivatives of the smooth part of a step: the integrators, and what moves configurations.

Rates are as in `force_rates`: arrays (rows, directions), those of configurations as velocities there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.types import JointType
from ..robot.robot import Robot
from .force_rates import ForceRates, InputRates, StateRates
from .found_step import FoundStep
from .smooth_motion import write_brackets

Array = np.ndarray[Any, np.dtype[Any]]


def bracket(curved: Array, a: Array, b: Array) -> Array:
    """Return [a, b] (nv, ...) of velocities, or of rates of velocities with a last axis."""
    result = np.zeros((len(a), *max(a.shape[1:], b.shape[1:])))
    write_brackets(curved, a, b, result)
    return result


def bracket_rates(curved: Array, a: Array, b: Array, da: Array, db: Array) -> Array:
    """Return the rates of [a, b]."""
    return bracket(curved, da, b) + bracket(curved, a, db)


def turning_joints(robot: Robot) -> list[tuple[slice, slice]]:
    """Linear and angular velocities of floating and planar joints that are all their own."""
    width = {JointType.FLOATING: 3, JointType.PLANAR: 2}
    kinds = [(j.v_slice, width[j.type]) for j in robot.joints if j.type in width and j.independent]
    return [(slice(v.start, v.start + n), slice(v.start + n, v.stop)) for v, n in kinds]


def cross_matrix(l: Array) -> Array:
    """C (n, n') with C w = w x l, for l in space or in the plane."""
    if len(l) == 2:
        return np.array([[-l[1]], [l[0]]])
    x, y, z = l
    return np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])


def free_velocity_rates(robot: Robot, x: StateRates, h: float, da: Array) -> Array:
    """Of v + h (a + w x v), in the axes of the step's start, for rates of a."""
    rates = x.dv + h * da
    for linear, angular in turning_joints(robot):
        turned = cross_matrix(x.v[linear]) @ x.dv[angular]
        w = x.v[angular]
        along = -cross_matrix(w) if len(w) == 3 else np.array([[0.0, -w[0]], [w[0], 0.0]])
        rates[linear] += h * (turned + along @ x.dv[linear])
    return rates


def straight_move_rates(robot: Robot, q: Array, x: Array, dq: Array, dx: Array) -> Array:
    """Of the configuration that x leads to from q where the origins of floating and planar joints move straight on."""
    by_q, by_x = (J.copy() for J in robot.integrate_derivatives(q, x))
    for linear, angular in turning_joints(robot):
        back = by_q[linear, linear]
        by_q[linear, angular] = back @ cross_matrix(x[linear])
        by_x[linear, linear], by_x[linear, angular] = back, 0.0
    return np.asarray(by_q @ dq + by_x @ dx)


def carried_velocity_rates(robot: Robot, q: Array, u: Array, x: Array, du: Array, dx: Array) -> Array:
    """Of the velocity u in the axes that x turns to from those of q."""
    back, turn = robot.integrate_derivatives(q, x)
    rates = du.copy()
    for linear, angular in turning_joints(robot):
        R = back[linear, linear]
        rates[linear] = R @ du[linear] - cross_matrix(R @ u[linear]) @ turn[angular, angular] @ dx[angular]
    return rates


class SmoothMotion:
    """The smooth step of one robot, and its rates along directions of the state and the inputs."""

    def __init__(self, found: FoundStep, start: StateRates, inputs: InputRates) -> None:
        self.found, self.model, self.robot, self.h = found, found.model, found.robot, found.model.h
        self.start, self.inputs = start, inputs
        self.forces = ForceRates(found.forces)
        self.given = self.forces.of_user(inputs)

    def dynamics(self, q: Array, v: Array, tau: Array, external: Array | None = None) -> Any:
        """The derivatives of accelerations, da_dq, da_dv and da_dtau, of the robot as impulses move it."""
        return self._dynamics_of(self.model.moving, q, v, tau, external)

    def _dynamics_of(self, robot: Robot, q: Array, v: Array, tau: Array, external: Array | None = None) -> Any:
        function = robot.forward_dynamics
        if not (self.found.contacts.bodies or len(self.found.contacts.joint_dofs)):
            return self.found.at_armature(function.derivative("q", "v", "tau"), q, v, tau)
        pushed = function.variant("external_forces").derivative("q", "v", "tau")
        forces = np.zeros((len(self.robot.bodies), 6)) if external is None else external
        return self.found.at_armature(pushed, q, v, tau, external_forces=forces)

    # the parts of a step

    def forces_on_joints(self, x: StateRates) -> tuple[Array, Array]:
        """As the integrator sees them at a state within the step, and their rates."""
        values = self.found.forces_at(x.q, x.v)
        rates = self.given + self.forces.of_drives(x, self.inputs)
        return values, rates + self.forces.of_springs(x)[1] if self.model.passive else rates

    def acceleration(self, x: StateRates) -> tuple[Array, Array]:
        tau, dtau = self.forces_on_joints(x)
        return self.accelerated(x, tau, dtau)

    def accelerated(self, x: StateRates, tau: Array, dtau: Array) -> tuple[Array, Array]:
        """By joint forces tau, and the rates."""
        robot = self.model.moving if self.model.integrator == "semi-implicit" else self.robot
        D = self._dynamics_of(robot, x.q, x.v, tau)
        a: Array = self.found.at_armature(robot.forward_dynamics, x.q, x.v, tau)
        return a, D.da_dq @ x.dq + D.da_dv @ x.dv + D.da_dtau @ dtau

    def moved(self, u: Array, du: Array) -> tuple[Array, Array]:
        """The configuration that u leads to from the start, and its rates."""
        by_q, by_u = self.robot.integrate_derivatives(self.start.q, u)
        return self.robot.integrate(self.start.q, u), by_q @ self.start.dq + by_u @ du

    # integrators

    def semi_implicit_forces(self) -> tuple[Array, Array]:
        """The forces of the semi-implicit step, and their rates."""
        x = self.start
        driving = self.found.driving
        if driving is None:
            rates = self.given + self.forces.of_drives(x, self.inputs)
        else:
            a = self.found.stages.step.acceleration
            rates = self.given + self.forces.of_implicit_drives(x, self.inputs, driving, a, self.h)
        if self.model.passive:
            rates = rates + self.forces.of_springs(x, self.h)[1]
        return self.found.stages.step.load, rates

    def semi_implicit(self) -> Array:
        """Rates of the velocity after a step in which nothing touches, in the axes of its start."""
        _, da = self.accelerated(self.start, *self.semi_implicit_forces())
        return free_velocity_rates(self.robot, self.start, self.h, da)

    def runge_kutta(self) -> tuple[Array, Array]:
        """Rates of configuration and velocity after a step, as `smooth_motion.runge_kutta` takes it."""
        x, h = self.start, self.h
        k, dk = [x.v], [x.dv]
        a, da = (list(y) for y in zip(self.acceleration(x), strict=True))
        curved = self.found.stages.joints.curved
        for part in (0.5 * h, 0.5 * h, h):
            u, du = part * k[-1], part * dk[-1]
            v, dv = x.v + part * a[-1], x.dv + part * da[-1]
            once, donce = bracket(curved, u, v), bracket_rates(curved, u, v, du, dv)
            twice, dtwice = bracket(curved, u, once), bracket_rates(curved, u, once, du, donce)
            k.append(v + 0.5 * once + twice / 12.0)
            dk.append(dv + 0.5 * donce + dtwice / 12.0)
            q, dq = self.moved(u, du)
            for values, new in zip((a, da), self.acceleration(StateRates(q, v, dq, dv)), strict=True):
                values.append(new)
        weights = np.array([1.0, 2.0, 2.0, 1.0]) * h / 6.0
        _, dq = self.moved(np.tensordot(weights, k, 1), np.tensordot(weights, dk, 1))
        return dq, x.dv + np.tensordot(weights, da, 1)

    def midpoint(self) -> tuple[Array, Array]:
        """Rates of configuration and velocity after a step, of the equations that `smooth_motion.midpoint` solves.

        With w = (v + v+)/2 they are v+ - v - h a(q', w) - g w = 0 and E(q, v) + h power(q', w) - E(q+, v+) = 0, in v+ and g.
        """
        x, h, n = self.start, self.h, len(self.start.v)
        after, corrected = self.found.stages.step.free, self.found.stages.step.gain[0] != 0.0
        w = 0.5 * (x.v + after)
        columns = x.dq.shape[1]
        # directions: those of the step, then v+
        wide = StateRates(x.q, x.v, *(np.hstack([d, np.zeros((n, n))]) for d in (x.dq, x.dv)))
        dafter = np.hstack([np.zeros((n, columns)), np.eye(n)])
        dw = 0.5 * (wide.dv + dafter)
        here = SmoothMotion(self.found, wide, _widened(self.inputs, n))
        q, dq = here.moved(0.5 * h * w, 0.5 * h * dw)
        middle = StateRates(q, w, dq, dw)
        a, da = here.acceleration(middle)
        lacking = after - x.v - h * a
        g = float(lacking @ w / (w @ w)) if corrected else 0.0
        residual = dafter - wide.dv - h * da - g * dw
        q1, dq1 = here.moved(h * w, h * dw)
        end = StateRates(q1, after, dq1, dafter)
        if not corrected:
            dafter = -np.linalg.solve(residual[:, columns:], residual[:, :columns])
        else:
            energy = here.energy_rates(wide) + h * here.power_rates(middle) - here.energy_rates(end)
            whole = np.zeros((n + 1, n + 1))
            whole[:n, :n], whole[:n, n], whole[n, :n] = residual[:, columns:], -w, energy[columns:]
            dafter = -np.linalg.solve(whole, np.vstack([residual[:, :columns], energy[:columns]]))[:n]
        self.forces.at_an_end.update(here.forces.at_an_end)
        by_q, by_u = self.robot.integrate_derivatives(x.q, h * w)
        return by_q @ x.dq + by_u @ (0.5 * h * (x.dv + dafter)), dafter

    def energy_rates(self, x: StateRates) -> Array:
        """Of kinetic and potential energy, (directions,)."""
        by_q, by_v = self.robot.kinetic_energy.derivative("q", "v")(x.q, x.v)
        by_q = by_q + self.robot.gravity_force(x.q)
        if self.model.passive:
            by_q = by_q + self.forces.spring_energy_gradient(x)
        return np.asarray(by_q @ x.dq + by_v @ x.dv)

    def power_rates(self, x: StateRates) -> Array:
        """Of the power of forces other than gravity and springs, (directions,)."""
        force = self.found.given_at(x.q, x.v)
        rates = self.given + self.forces.of_drives(x, self.inputs)
        if self.model.passive:
            damping, ddamping = self.forces.of_springs(x, stiff=False)
            force, rates = force + damping, rates + ddamping
        return np.asarray(x.v @ rates + force @ x.dv)


def _widened(inputs: InputRates, more: int) -> InputRates:
    """With further directions, along which inputs do not change."""
    dtau, dcontrol = (np.hstack([d, np.zeros((len(d), more))]) for d in (inputs.dtau, inputs.dcontrol))
    return inputs._replace(dtau=dtau, dcontrol=dcontrol)
