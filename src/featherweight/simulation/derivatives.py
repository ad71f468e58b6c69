"""Derivatives of a step of a simulation: of the state after it, by the state before, joint forces and controls.

Forward differentiation of the stages of `step` along all directions at once; impulses by the implicit function theorem.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .contact_rates import ContactRates
from .fleet import Fleet, Inputs
from .force_rates import InputRates, StateRates
from .found_step import FoundStep
from .motion_rates import SmoothMotion, carried_velocity_rates, straight_move_rates

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


def step_derivatives(fleet: Fleet, inputs: Inputs, time: float) -> list[StepDerivatives]:
    """Return the derivatives of the step that each robot would take; states stay as they are.

    Raises ValueError for arguments that make no sense, SimulationError for a step that cannot be taken.
    """
    many = []
    for i in range(len(fleet.q)):
        with fleet.attempt(i, inputs, time) as stages:
            many.append(_of_one(FoundStep(fleet.model, fleet.contacts, stages)))
    return many


def of_all_robots(many: list[StepDerivatives]) -> StepDerivatives:
    """Those of many robots as one, with a leading axis."""
    A, B, B_control = (np.stack([getattr(one, name) for one in many]) for name in ("A", "B", "B_control"))
    return StepDerivatives(A, B, B_control, tuple(one.doubtful for one in many))


def _of_one(found: FoundStep) -> StepDerivatives:
    nv, nu = found.robot.nv, found.forces.nu
    s, step = found.stages, found.stages.step
    unit = np.eye(2 * nv + nv + nu)
    start = StateRates(s.state.q, s.state.v, unit[:nv], unit[nv : 2 * nv])
    inputs = InputRates(s.state.tau, unit[2 * nv : 3 * nv], s.state.control if s.state.given[0] else None, unit[3 * nv :])
    motion, smooth = SmoothMotion(found, start, inputs), None
    if found.model.integrator == "semi-implicit":
        dfree = motion.semi_implicit()
    else:
        smooth, dfree = motion.runge_kutta() if found.model.integrator == "rk4" else motion.midpoint()
    dafter, dd, dstruck, doubtful = dfree, np.zeros_like(dfree), np.zeros_like(dfree), list(motion.forces.at_an_end)
    if s.touching.counts[0] > 0 or s.touching.counts[1] > 0:
        contacts = ContactRates(found, motion, dfree)
        dafter, dstruck = contacts.velocity(), contacts.struck()
        if step.displacement.any():
            dd = contacts.displacement()
        doubtful += contacts.names()
    if smooth is not None and not ((step.after != step.free).any() or step.displacement.any()):
        dq, dv = smooth, dafter
    else:
        dq, dv = _led_to(found, start, (dafter, dstruck, dd))
    whole = np.vstack([dq, dv])
    return StepDerivatives(whole[:, : 2 * nv], whole[:, 2 * nv : 3 * nv], whole[:, 3 * nv :], tuple(dict.fromkeys(doubtful)))


def _led_to(found: FoundStep, start: StateRates, rates: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """Return rates of configuration and velocity at the end, from those of `after`, `struck` and the displacement."""
    robot, h, step = found.robot, found.model.h, found.stages.step
    after, d = step.after, step.displacement
    dafter, dstruck, dd = rates
    if found.model.integrator == "semi-implicit":
        x, dx = h * after + d, h * dafter + dd
        return (
            straight_move_rates(robot, start.q, x, start.dq, dx),
            carried_velocity_rates(robot, start.q, after, x, dafter, dx),
        )
    x = 0.5 * h * (start.v + step.struck + after) + d
    dx = 0.5 * h * (start.dv + dstruck + dafter) + dd
    by_q, by_x = robot.integrate_derivatives(start.q, x)
    return np.asarray(by_q @ start.dq + by_x @ dx), dafter
