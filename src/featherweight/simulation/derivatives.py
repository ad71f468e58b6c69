"""Derivatives of a step: the state after it, by the state before it, joint forces and controls.

the equations of a step       semi-implicit steps with the contact law of an MJCF file or rigid contact (`step_slopes`), and
                              "rk4" with the law of an MJCF file (`staged_slopes`)
differences of whole steps    all others; rigid contacts that bounce, contact points on bodies without others, and steps in
                              which overlapping bodies separate (`step_differences`)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..array_types import Array, Matrix
from ..summaries import summarized
from .fleet import Fleet, Inputs
from .fleet_slopes import FleetSlopes, Way


@summarized
class StepDerivatives(NamedTuple):
    """Jacobians of the state after a step: (q, v), then activations and delays of actuators, if there are any.

    Changes of configurations are velocities. Many robots have a leading axis. n is 2 nv + na.

    `doubtful` names the elements for which the step has no unique derivative at this state (for many robots, one tuple of names
    each):

    - contacts, joint limits and dry friction between sticking and sliding, or without force;
    - contacts whose point is not determined by the surfaces;
    - redundant contacts that cannot all keep their state, or whose impulses are not unique and matter (a box that slides and
      turns);
    - efforts, controls and actuators at their limits;
    - with differences of whole steps, states and inputs along which the step bends.

    For these elements the Jacobians are one-sided derivatives, or those of one solution. A rigid contact or limit at rest, with
    a gap of zero or an overlap of `slop`, is not among them; it counts as an overlap that persists.
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
    rigid = plant.holds_rigidly and model.integrator == "semi-implicit" and not plant.contacts.settings.turning
    linear = model.has_linear_forces or (forces.plain and not len(forces.springs.bent))
    covered = rigid and linear and not (forces.sticky or len(plant.contacts.model.surfaces))
    return Way.RIGID if covered and inputs.external is None else Way.DIFFERENCES


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
    slopes = compiled_slopes(fleet, inputs)
    return slopes.matrices(inputs), slopes.doubtful()


def products(fleet: Fleet, inputs: Inputs, cotangents: Matrix) -> Matrix:
    """Return products (robots, 3 nv + na + nu) of cotangents (robots, 2 nv + na) of states after the step and derivatives."""
    return compiled_slopes(fleet, inputs).products(inputs, cotangents)


def compiled_slopes(fleet: Fleet, inputs: Inputs) -> FleetSlopes:
    """Return the compiled derivatives of a fleet, which are made once.

    Raises NotImplementedError for joints that loops determine in part.
    """
    kind = fleet.differ, inputs.external is not None
    if kind not in fleet.slopes:
        fleet.model.robot.require_whole_joints()
        fleet.slopes[kind] = FleetSlopes(fleet, way_of(fleet, inputs))
    made: FleetSlopes = fleet.slopes[kind]
    return made
