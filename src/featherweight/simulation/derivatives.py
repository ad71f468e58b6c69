"""Derivatives of a step of a simulation: of the state after it, by the state before, joint forces and controls.

Forward differentiation of the stages of `step` along all directions at once; impulses by the implicit function theorem.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from .arguments import numbers
from .failure import SimulationError
from .force_rates import InputRates, StateRates
from .motion_rates import SmoothMotion, carried_velocity_rates, straight_move_rates
from .stepper import Stepper

Array = np.ndarray[Any, np.dtype[Any]]


class StepDerivatives(NamedTuple):
    """Jacobians of the state (q, v) after a step, configurations as velocities there; of many robots, with a leading axis.

    `doubtful` names what is at an edge where the step has no derivative (of many robots, a tuple of names for each): contacts,
    joint limits and dry friction between sticking and sliding, or without force; gaps of zero, or of the slop, where there is
    force; redundant contacts that cannot all go on, or whose impulses are not unique and tell (a box that slides and turns);
    efforts, controls and actuators at their limits. What is given there is the derivative to one side, or of one solution; a
    gap of zero is taken for a slight overlap, which stays.
    """

    A: Array  # (2 nv, 2 nv) by the state (q, v) before
    B: Array  # (2 nv, nv) by joint forces tau
    B_control: Array  # (2 nv, nu) by controls, zero where none are given
    doubtful: tuple[Any, ...]


def step_derivatives(stepper: Stepper, tau: Any, control: Any, time: float) -> list[StepDerivatives]:
    """Those of the step that the stepper would take, for each robot; the stepper stays as it is.

    Raises ValueError for arguments that make no sense, SimulationError for a step that cannot be taken.
    """
    tau, control = (None if x is None else numbers(name, x) for name, x in (("tau", tau), ("control", control)))
    stepper.check_inputs(tau, control, time)
    robots = len(stepper.q)
    many = []
    for i in range(robots):
        given = [None if x is None else x[i] if x.ndim == 2 else x for x in (tau, control)]
        try:
            many.append(_of_one(_one_robot(stepper, i), given, time, _last(stepper, i)))
        except SimulationError as error:
            raise SimulationError(error.what, time, i, robots) from None
    return many


def of_all_robots(many: list[StepDerivatives]) -> StepDerivatives:
    """Those of many robots as one, with a leading axis."""
    A, B, B_control = (np.stack([getattr(one, name) for one in many]) for name in ("A", "B", "B_control"))
    return StepDerivatives(A, B, B_control, tuple(one.doubtful for one in many))


def _one_robot(stepper: Stepper, i: int) -> Stepper:
    """A stepper of its own for one robot, in the same state."""
    one = copy(stepper)
    one.q, one.v = stepper.q[i : i + 1], stepper.v[i : i + 1]
    if stepper.contacts is not None:
        one.contacts = copy(stepper.contacts)
        one.contacts.state = _rows_of(stepper.contacts.state, i)
    return one


def _rows_of(x: Any, i: int) -> Any:
    """Copies of one robot's rows of named tuples of arrays."""
    return type(x)(*(_rows_of(y, i) for y in x)) if isinstance(x, tuple) else x[i : i + 1].copy()


def _last(stepper: Stepper, i: int) -> Any:
    """The impulses from which the step's solver starts."""
    if stepper.contacts is None:
        return None
    impulses = stepper.contacts.state.impulses
    return impulses.last_force[i].copy(), impulses.last_row[i].copy()


def _of_one(trial: Stepper, given: list[Array | None], time: float, last: Any) -> StepDerivatives:
    tau, control = given
    nv, nu = trial.robot.nv, trial.forces.nu
    q, v, smooth = trial.q[0], trial.v[0], None
    trial.advance(tau, control, None, time)
    unit = np.eye(2 * nv + nv + nu)
    start = StateRates(q, v, unit[:nv], unit[nv : 2 * nv])
    inputs = InputRates(np.zeros(nv) if tau is None else tau, unit[2 * nv : 3 * nv], control, unit[3 * nv :])
    motion = SmoothMotion(trial, start, inputs)
    if trial.integrator == "semi-implicit":
        dfree = motion.semi_implicit()
    else:
        smooth, dfree = motion.runge_kutta() if trial.integrator == "rk4" else motion.midpoint()
    dafter, dd, dstruck, doubtful = dfree, np.zeros_like(dfree), np.zeros_like(dfree), list(motion.forces.at_an_end)
    if trial.contacts is not None and trial.touched.any():
        from .contact_rates import ContactRates  # needs Numba

        contacts = ContactRates(trial, motion, dfree, last)
        dafter, dstruck = contacts.velocity(), contacts.struck()
        if trial.displacement is not None and trial.displacement.any():
            dd = contacts.displacement()
        doubtful += contacts.names()
    if smooth is not None and not trial.is_pushed(_displacement(trial))[0]:
        dq, dv = smooth, dafter
    else:
        dq, dv = _led_to(trial, start, (dafter, dstruck, dd))
    whole = np.vstack([dq, dv])
    return StepDerivatives(whole[:, : 2 * nv], whole[:, 2 * nv : 3 * nv], whole[:, 3 * nv :], tuple(dict.fromkeys(doubtful)))


def _displacement(trial: Stepper) -> Array:
    return np.zeros_like(trial.after) if trial.displacement is None else trial.displacement


def _led_to(trial: Stepper, start: StateRates, rates: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """Rates of configuration and velocity at the end, as `Stepper` leads there, from `after`, `struck` and the displacement."""
    robot, h, after = trial.robot, trial.h, trial.after[0]
    dafter, dstruck, dd = rates
    d = _displacement(trial)[0]
    if trial.smooth is None:
        x, dx = h * after + d, h * dafter + dd
        return (
            straight_move_rates(robot, start.q, x, start.dq, dx),
            carried_velocity_rates(robot, start.q, after, x, dafter, dx),
        )
    x = 0.5 * h * (start.v + trial.struck[0] + after) + d
    dx = 0.5 * h * (start.dv + dstruck + dafter) + dd
    by_q, by_x = robot.integrate_derivatives(start.q, x)
    return np.asarray(by_q @ start.dq + by_x @ dx), dafter
