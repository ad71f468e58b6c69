"""Derivatives of a step: the state after it, by the state before it, joint forces and controls.

The stages of `step` are differentiated forward along all directions at once, impulses by the implicit function theorem.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array
from ..summaries import summarized
from .contact_rates import ContactRates
from .fleet import Fleet, Inputs
from .found_step import FoundStep
from .plant import Plant
from .rates import Rated, through
from .step_rates import State, StepRates


@summarized
class StepDerivatives(NamedTuple):
    """Jacobians of the state (q, v) after a step. Changes of configurations are velocities. Many robots have a leading axis.

    `doubtful` names the elements for which the step has no unique derivative at this state (for many robots, one tuple of names
    each):

    - contacts, joint limits and dry friction between sticking and sliding, or without force;
    - gaps of zero, and with rigid contact of `slop`;
    - contacts whose point is not determined by the surfaces;
    - redundant contacts that cannot all keep their state, or whose impulses are not unique and matter (a box that slides and
      turns);
    - efforts, controls and actuators at their limits.

    For these elements the Jacobians are one-sided derivatives, or those of one solution. A gap of zero counts as a slight
    overlap that persists.
    """

    A: Array  # (2 nv, 2 nv) by the state (q, v) before
    B: Array  # (2 nv, nv) by joint forces tau
    B_control: Array  # (2 nv, nu) by controls, zero if none are given
    doubtful: tuple[Any, ...]


def step_derivatives(fleet: Fleet, inputs: Inputs) -> StepDerivatives:
    """Return the derivatives of the step that each robot would take. The states do not change.

    Raises ValueError for invalid arguments and SimulationError for a step that fails.
    """
    model, robots, nv = fleet.model, len(fleet.q), fleet.model.robot.nv
    model.directions  # noqa: B018  # raises for joints that have none
    ends, doubtful = np.empty((robots, 2 * nv, 3 * nv + model.forces.nu)), []
    for i, table in enumerate(fleet.attempts(inputs)):
        found = FoundStep(model, fleet.contacts, table)
        ends[i] = _ends(found)
        doubtful.append((*found.at_a_limit, *found.doubtful))
    A, B, B_control = ends[..., : 2 * nv], ends[..., 2 * nv : 3 * nv], ends[..., 3 * nv :]
    if fleet.single:
        return StepDerivatives(A[0], B[0], B_control[0], doubtful[0])
    return StepDerivatives(A, B, B_control, tuple(doubtful))


def require_derivatives(plant: Plant) -> None:
    """Raise NotImplementedError for a simulation whose steps have no derivatives."""
    model, forces, name = plant.model, plant.forces, plant.robot.name
    compiled = model.integrator == "semi-implicit" or model.staged
    convex = plant.contacts.convex and compiled
    if not (plant.holds_rigidly or convex):
        raise NotImplementedError(
            f"{name}: derivatives of a step with compliant contacts need the law 'file' of an MJCF file, without "
            "noslip_iterations, and the integrator 'semi-implicit' or 'rk4'; use these, or contact='rigid'"
        )
    if forces.sticky:
        raise NotImplementedError(f"derivatives of a step of {name} with adhesion are not implemented")
    if model.staged and forces.states:
        raise NotImplementedError(
            f"derivatives of a step of {name} by 'rk4', within which activations or delays follow the controls, are not "
            "implemented; use the integrator 'semi-implicit'"
        )
    if len(plant.contacts.model.surfaces):
        raise NotImplementedError(f"derivatives of a step of {name} with moving surfaces are not implemented")
    if plant.contacts.settings.turning and not convex:
        raise NotImplementedError("derivatives of a step with friction against spinning or rolling need contact='file'")
    if model.has_linear_forces or (compiled and (convex or (forces.plain and not len(forces.springs.bent)))):
        return
    if not forces.plain:
        what = "tendons, limits of ball joints, dry friction of free joints, forces at frames, activations or muscles"
    elif model.in_fluid or plant.robot.model.carried:
        what = "drag or gravity compensation"
    else:
        what = "nonlinear springs and dampers, or springs of ball joints or free joints"
    raise NotImplementedError(
        f"derivatives of a step of {name} with {what} are not implemented for this contact law and integrator; use the contact "
        "law 'file' of an MJCF file"
    )


def _ends(found: FoundStep) -> Array:
    """Return the derivatives (2 nv, 3 nv + nu) of the state after the step by q, v, joint forces and controls."""
    model, s, step = found.model, found.stages, found.stages.step
    compiled = found.slopes_of_step()
    if compiled and (found.contacts.convex or not found.touched):
        return compiled.ends
    start = State(*map(Rated, s.state[:2], model.directions))
    rates, smooth, contacts = StepRates(found, start), None, None
    if compiled:
        free = compiled.velocity()
    else:
        smooth = rates.runge_kutta() if model.integrator == "rk4" else rates.midpoint()
        free = smooth.v.rates
    after, displacement = Rated(step.after, free), None
    if found.touched and not found.contacts.convex:
        contacts = ContactRates(found, start, free)
        after = after._replace(rates=contacts.velocity())
        displacement = Rated(step.displacement, contacts.displacement()) if step.displacement.any() else None
    found.doubtful.update(dict.fromkeys(contacts.names() if contacts else ()))
    if compiled and displacement is None:
        return compiled.ends_of(after.rates)
    parted = displacement or Rated(step.none, 0.0 * free)
    if smooth is None:
        end = State(*through(found.robot.step_functions.advance, start.q, after, parted, model.h))
    elif contacts and (displacement or (step.after != step.free).any()):
        struck = Rated(step.struck, contacts.struck())
        end = State(rates.moved(0.5 * model.h * (start.v + struck + after) + parted), after)
    else:
        end = smooth._replace(v=after)
    return np.vstack([end.q.rates, end.v.rates])
