"""Derivatives of a step: the state after it, by the state before it, joint forces and controls.

the equations of a step       semi-implicit steps with the contact law of an MJCF file or rigid contact (`semi_implicit`),
                              "rk4" with the law of an MJCF file (`runge_kutta`)
differences of whole steps    all others; rigid contacts that bounce, contact points on bodies without others, and steps in
                              which overlapping bodies separate (`differences`)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Array, Matrix, Tensor
from ...contact.joint_rows import JointRows
from ...engine.loops.kernels import CompiledLoop, Table
from ...engine.loops.prepared_calls import Goal, Result, prepared_call, reader, writer
from ...summaries import summarized
from ..arguments import of_robots
from ..fleet import Fleet, Inputs
from ..forces.at_joints import ForcesAtJoints
from ..robot_tables import StagesTable
from .differences import DIFFERENTIATE_WHOLE_STEPS, differences_of
from .records import RobotSlopes
from .runge_kutta import DIFFERENTIATE_STAGES, staged_slopes_of
from .semi_implicit import DIFFERENTIATE, slopes_of


@summarized
class StepDerivatives(NamedTuple):
    """Jacobians of the state after a step: (q, v), then activations and delays of actuators, if there are any.

    Changes of configurations are velocities. Many robots have a leading axis. n is 2 nv + na.

    `doubtful` names the elements for which the step has no unique derivative at this state (for many robots, one tuple of names
    each):

    - contacts, joint limits and dry friction between sticking and sliding, or without force;
    - contacts that push at a point that the surfaces do not determine, if a joint rotates one of the bodies;
    - redundant contacts that cannot all keep their state, or whose impulses are not unique and matter (a box that slides and
      turns);
    - efforts, controls and actuators at their limits;
    - with differences of whole steps, states and inputs along which the step has a kink.

    For these elements the Jacobians are one-sided derivatives, or those of one solution. A rigid contact or limit at rest, with
    a gap of zero or an overlap of `slop`, is not among them; it counts as an overlap that persists.
    """

    A: Array  # (n, n) by the state before
    B: Array  # (n, nv) by joint forces tau
    B_control: Array  # (n, nu) by controls, zero if none are given
    doubtful: tuple[Any, ...]


Way = tuple[CompiledLoop, Callable[..., Table]]
"""A way to differentiate steps: the compiled loop over robots, and the function that makes the arrays of a thread."""

EQUATIONS: Way = DIFFERENTIATE, slopes_of  # differences of whole steps where rigid contacts are not covered
STAGES: Way = DIFFERENTIATE_STAGES, staged_slopes_of
DIFFERENCES: Way = DIFFERENTIATE_WHOLE_STEPS, differences_of

MATRICES, PRODUCTS = range(2)


def way_of(fleet: Fleet, inputs: Inputs) -> Way:
    """Return how the steps of a fleet are differentiated."""
    plant, model, forces = fleet.plant, fleet.model, fleet.plant.forces
    if model.robot.split_joint is not None:  # whose configurations after a step have no derivatives
        return DIFFERENCES
    convex = plant.contacts.convex and not (forces.sticky or len(plant.contacts.model.surfaces))
    if convex and model.integrator == "semi-implicit":
        return EQUATIONS
    if convex and model.staged and not forces.states:
        return STAGES
    rigid = plant.holds_rigidly and model.integrator == "semi-implicit" and not plant.contacts.settings.turning
    linear = model.has_linear_forces or (forces.plain and not len(forces.springs.nonlinear))
    covered = rigid and linear and not (forces.lengths or forces.sticky or len(plant.contacts.model.surfaces))
    return EQUATIONS if covered and inputs.external is None else DIFFERENCES


def step_derivatives(fleet: Fleet, inputs: Inputs) -> StepDerivatives:
    """Return the derivatives of the step that each robot would take. The states do not change.

    Raises ValueError for invalid arguments and SimulationError for a step that fails.
    """
    slopes = compiled_slopes(fleet, inputs)
    ends, m = slopes.matrices(inputs), slopes.rows
    forces = m + fleet.model.robot.nv
    if fleet.single:
        one = ends[0]
        return StepDerivatives(one[:, :m], one[:, m:forces], one[:, forces:], slopes.doubtful(0))
    doubtful: list[tuple[str, ...]] = [()] * len(ends)
    for i in np.flatnonzero(slopes.found.unsure).tolist():
        doubtful[i] = slopes.doubtful(i)
    return StepDerivatives(ends[..., :m], ends[..., m:forces], ends[..., forces:], tuple(doubtful))


def compiled_slopes(fleet: Fleet, inputs: Inputs) -> FleetSlopes:
    """Return the compiled derivatives of a fleet, which are made once."""
    kind = fleet.differ, inputs.external is not None
    if kind not in fleet.slopes:
        fleet.slopes[kind] = FleetSlopes(fleet, way_of(fleet, inputs))
    made: FleetSlopes = fleet.slopes[kind]
    return made


def size_of_slopes(fleet: Fleet) -> tuple[int, int]:
    """Return the numbers of rows and columns of a step's derivatives: 2 nv + na and 3 nv + na + nu."""
    nv, na, nu = fleet.model.robot.nv, fleet.model.forces.states, fleet.model.forces.nu
    return 2 * nv + na, 3 * nv + na + nu


def new_slopes(fleet: Fleet, robots: int) -> RobotSlopes:
    """Return memory for the derivatives of one robot's step, and for what is doubtful about those of so many."""
    (rows, columns), bounded = size_of_slopes(fleet), len(fleet.contacts.rows.joint)
    return RobotSlopes(
        np.zeros((1, rows, columns)), np.zeros((0, rows)), np.zeros((0, columns)),
        np.zeros(robots, np.int64), np.full((robots, fleet.capacity), -1), np.zeros((robots, bounded), bool),
        np.zeros((robots, len(fleet.model.limits))), np.zeros((robots, columns), bool), np.zeros((robots, bounded)),
    )  # fmt: skip


class SlopesOfOne(NamedTuple):
    """The compiled derivatives of one robot's step."""

    call: Callable[[], int]  # evaluates them; returns 1, or 0 for a step that fails
    put: Callable[[Any], bool]  # copies cotangents, see `writer`
    read: Callable[[], Array]  # returns a copy of matrices (1, rows, columns), or of products (1, columns)


class FleetSlopes:
    """The compiled derivatives of steps of a fleet, on threads: of their equations, or differences of whole steps.

    `matrices` and `products` evaluate them at the current states; `doubtful` returns the names of what is doubtful in the last
    evaluation of matrices.
    """

    def __init__(self, fleet: Fleet, way: Way) -> None:
        self._fleet, (self._loop, self._arrays) = fleet, way
        self.rows, self.columns = size_of_slopes(fleet)
        self._of: Table | None = None  # table of the fleet for which the arrays are made
        self._run: Callable[..., int] | None = None  # the compiled loop for its layout
        self._tables: list[Table] = []  # of matrices, and of products
        self._alone: list[SlopesOfOne] = []  # the same of a single robot

    def matrices(self, inputs: Inputs) -> Tensor:
        """Return the derivatives (robots, 2 nv + na, 3 nv + na + nu) of the state by the state before, tau and controls."""
        if self._fleet.is_alone:
            return self._evaluate_one(inputs, MATRICES)
        ends = np.empty((len(self._fleet.q), self.rows, self.columns))
        self._evaluate(inputs, MATRICES, {"ends": ends})
        return ends

    def products(self, inputs: Inputs, cotangents: Any) -> Matrix:
        """Return products (robots, 3 nv + na + nu) of cotangents (robots or none, 2 nv + na) and the derivatives."""
        if self._fleet.is_alone:
            return self._evaluate_one(inputs, PRODUCTS, cotangents)
        given = self._fitting(cotangents)
        products = np.empty((len(given), self.columns))
        self._evaluate(inputs, PRODUCTS, {"cotangents": given, "products": products})
        return products

    def _fitting(self, cotangents: Any) -> Matrix:
        """Return cotangents of all robots. Raises ValueError for wrong ones."""
        robots = len(self._fleet.q)
        given = of_robots("cotangents", cotangents, (self.rows,), robots)
        return np.ascontiguousarray(np.broadcast_to(given, (robots, self.rows)), np.float64)

    def _evaluate_one(self, inputs: Inputs, what: int, cotangents: Any = None) -> Array:
        """Return matrices of a single robot, or products. Raises SimulationError if the step fails."""
        given = self._fleet.begin_inputs(inputs)
        while True:
            if self._of is not given:
                self._prepare(given)
            one = self._alone[what]
            if what == PRODUCTS and not (type(cotangents) is np.ndarray and one.put(cotangents)):
                one.put(self._fitting(cotangents))
            if one.call() == 1:
                return one.read()
            given = self._fleet.after_failed_attempts()

    def _evaluate(self, inputs: Inputs, what: int, arrays: dict[str, Array]) -> None:
        """Evaluate all robots. Raises SimulationError if a step fails."""
        fleet = self._fleet
        given = fleet.begin_inputs(inputs)
        while True:
            if self._of is not given:
                self._prepare(given)
            table = self._tables[what]
            for name, x in arrays.items():
                table.point(name, x)
            if fleet.share(partial(self._piece, table.address), 0, len(fleet.q)) == len(fleet.q):
                return
            given = fleet.after_failed_attempts()

    def _prepare(self, given: Table) -> None:
        """Make the arrays for the fleet's robots."""
        self._of, self._run = given, None
        self.found = x = new_slopes(self._fleet, len(self._fleet.q))
        multiplied = x._replace(cotangents=np.zeros((1, self.rows)), products=np.zeros((1, self.columns)))
        self._tables, self._alone = [Table(x), Table(multiplied)], []
        for table, result in zip(self._tables if self._fleet.is_alone else (), (x.ends, multiplied.products), strict=False):
            one = self._fleet.last_table()
            run, own = self._of_thread(one)
            addresses = one.address, own.address, given.address, table.address
            call = prepared_call(run, *addresses, 0, 1, kept=(one, own, given, table))
            self._alone.append(SlopesOfOne(call, writer(Goal(multiplied.cotangents, None, True)), reader(Result(result))))

    def _of_thread(self, one: StagesTable) -> tuple[Callable[..., int], Table]:
        """Return the compiled loop for a thread's stages, and arrays for these."""
        own = one.made_once(self._arrays, self._fleet.model, self._fleet.contacts)
        if self._run is None:
            assert one.layout and self._of and self._of.layout
            self._run = self._loop.for_layouts(one.layout, own.layout, self._of.layout, self._tables[MATRICES].layout)
        return self._run, own

    def _piece(self, table: int, one: StagesTable, first: int, stop: int) -> int:
        run, own = self._of_thread(one)
        assert self._of
        return run(one.address, own.address, self._of.address, table, first, stop)

    def doubtful(self, i: int) -> tuple[str, ...]:
        """Return the names of what is doubtful about the derivatives of robot i."""
        return self._names(i) if self.found.unsure.item(i) else ()

    def _names(self, i: int) -> tuple[str, ...]:
        x, fleet = self.found, self._fleet
        model, nonsmooth = fleet.model, np.flatnonzero(x.nonsmooth[i])
        names = [f"{model.limits[k]} at its limit" for k in np.flatnonzero(x.limits[i])]
        names += [model.directions_named[k] for k in nonsmooth]
        names += [fleet.contacts.names[int(c)] for c in x.candidates[i] if c >= 0]
        names += [name_of_row(fleet.contacts.rows, int(r), model.forces) for r in np.flatnonzero(x.rows[i])]
        return tuple(dict.fromkeys(names))


def name_of_row(rows: JointRows, r: int, forces: ForcesAtJoints) -> str:
    """Return the name of a row of a joint."""
    return f"the {'dry friction' if rows.friction[r] else 'limit'} of joint {forces.names[rows.dof[r]]!r}"
