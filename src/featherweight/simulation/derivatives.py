"""Derivatives of a step: the state after it, by the state before it, joint forces and controls.

compiled loops over robots    semi-implicit steps with the contact law of an MJCF file or rigid contact (`step_slopes`); "rk4"
                              with the law of an MJCF file (`staged_slopes`)
one robot after the other     semi-implicit steps with rigid contacts that bounce, with contact points on bodies without others,
                              or in which overlapping bodies separate (`acceleration_slopes.are_covered`); "rk4" and
                              "midpoint" with rigid contact, with linear forces: impulses by the implicit function theorem
                              (`step_rates`, `contact_rates`)
differences of whole steps    all others, in a compiled loop (`step_differences`)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array, Matrix
from ..summaries import summarized
from .contact_rates import ContactRates
from .fleet import Fleet, Inputs
from .fleet_slopes import FleetSlopes, Way
from .found_step import FoundStep
from .rates import Rated, through
from .step_rates import State, StepRates


@summarized
class StepDerivatives(NamedTuple):
    """Jacobians of the state after a step: (q, v), then activations and delays of actuators, if there are any.

    Changes of configurations are velocities. Many robots have a leading axis. n is 2 nv + na.

    `doubtful` names the elements for which the step has no unique derivative at this state (for many robots, one tuple of names
    each):

    - contacts, joint limits and dry friction between sticking and sliding, or without force;
    - gaps of zero, and with rigid contact of `slop`;
    - contacts whose point is not determined by the surfaces;
    - redundant contacts that cannot all keep their state, or whose impulses are not unique and matter (a box that slides and
      turns);
    - efforts, controls and actuators at their limits;
    - with differences of whole steps, states and inputs along which the step bends.

    For these elements the Jacobians are one-sided derivatives, or those of one solution. A gap of zero counts as a slight
    overlap that persists.
    """

    A: Array  # (n, n) by the state before
    B: Array  # (n, nv) by joint forces tau
    B_control: Array  # (n, nu) by controls, zero if none are given
    doubtful: tuple[Any, ...]


def way_of(fleet: Fleet, inputs: Inputs) -> Way:
    """Return how the steps of a fleet are differentiated."""
    plant, model, forces = fleet.plant, fleet.model, fleet.plant.forces
    convex = plant.contacts.convex and not (forces.sticky or len(plant.contacts.model.surfaces))
    if convex and model.integrator == "semi-implicit":
        return Way.EQUATIONS
    if convex and model.staged and not forces.states:
        return Way.STAGES
    rigid = plant.holds_rigidly and not (forces.sticky or len(plant.contacts.model.surfaces))
    linear = model.has_linear_forces or (model.integrator == "semi-implicit" and forces.plain and not len(forces.springs.bent))
    if not (rigid and linear) or plant.contacts.settings.turning or fleet.differ or inputs.external is not None:
        return Way.DIFFERENCES
    return Way.EQUATIONS if model.integrator == "semi-implicit" else Way.ALONE


def step_derivatives(fleet: Fleet, inputs: Inputs) -> StepDerivatives:
    """Return the derivatives of the step that each robot would take. The states do not change.

    Raises ValueError for invalid arguments and SimulationError for a step that fails.
    """
    ends, doubtful = matrices(fleet, inputs)
    m = ends.shape[1]
    forces = m + fleet.model.robot.nv
    if fleet.single:
        one = ends[0]
        return StepDerivatives(one[:, :m], one[:, m:forces], one[:, forces:], doubtful[0])
    return StepDerivatives(ends[..., :m], ends[..., m:forces], ends[..., forces:], tuple(doubtful))


def matrices(fleet: Fleet, inputs: Inputs) -> tuple[Array, list[tuple[str, ...]]]:
    """Return the derivatives (robots, 2 nv + na, 3 nv + na + nu) of states after the step, and the doubtful names."""
    slopes, robots, nv = compiled_slopes(fleet, inputs), len(fleet.q), fleet.model.robot.nv
    left: Sequence[int] = range(robots)
    doubtful: list[tuple[str, ...]] = [()] * robots
    if slopes is None:
        ends: Array = np.empty((robots, 2 * nv, 3 * nv + fleet.model.forces.nu))
    else:
        ends, doubtful, left = slopes.matrices(inputs), slopes.doubtful(), slopes.left
    if left:
        for i, (of_robot, names) in zip(left, alone(fleet, inputs, left), strict=True):
            ends[i], doubtful[i] = of_robot, names
    return ends, doubtful


def alone(fleet: Fleet, inputs: Inputs, which: Sequence[int]) -> Iterator[tuple[Array, tuple[str, ...]]]:
    """Yield the derivatives (2 nv, 3 nv + nu) of some robots, one after the other, and the doubtful names."""
    for table in fleet.attempts(inputs, which):
        found = FoundStep(fleet.model, fleet.contacts, table)
        ends = _ends(found)
        yield ends, (*found.at_a_limit, *found.doubtful)


def products(fleet: Fleet, inputs: Inputs, cotangents: Matrix) -> Matrix:
    """Return products (robots, 3 nv + na + nu) of cotangents (robots, 2 nv + na) of states after the step and derivatives."""
    slopes = compiled_slopes(fleet, inputs)
    if slopes is None:
        return np.asarray(np.einsum("ri,rij->rj", cotangents, matrices(fleet, inputs)[0]))
    found = slopes.products(inputs, cotangents)
    for i, (ends, _) in zip(slopes.left, alone(fleet, inputs, slopes.left), strict=True):
        found[i] = cotangents[i] @ ends
    return found


def compiled_slopes(fleet: Fleet, inputs: Inputs) -> FleetSlopes | None:
    """Return the compiled derivatives of a fleet, which are made once; None for one robot after the other."""
    kind = fleet.differ, inputs.external is not None
    if kind not in fleet.slopes:
        fleet.model.directions  # noqa: B018  # raises for joints that have none
        way = way_of(fleet, inputs)
        fleet.slopes[kind] = None if way is Way.ALONE else FleetSlopes(fleet, way)
    made: FleetSlopes | None = fleet.slopes[kind]
    return made


def _ends(found: FoundStep) -> Array:
    """Return the derivatives (2 nv, 3 nv + nu) of the state after the step by q, v, joint forces and controls."""
    model, s, step = found.model, found.stages, found.stages.step
    compiled = found.slopes_of_step()
    if compiled and not found.touched:
        return compiled.ends
    start = State(*map(Rated, s.state[:2], model.directions))
    rates, smooth, contacts = StepRates(found, start), None, None
    if compiled:
        free = compiled.velocity()
    else:
        smooth = rates.runge_kutta() if model.integrator == "rk4" else rates.midpoint()
        free = smooth.v.rates
    after, displacement = Rated(step.after, free), None
    if found.touched:
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
