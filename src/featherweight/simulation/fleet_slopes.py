"""Derivatives of the next steps of all robots of a fleet, on threads."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ..array_types import Array, Matrix, Tensor
from ..engine.loops.kernels import CompiledLoop, Table
from ..engine.loops.prepared_calls import prepared_call
from .robot_slopes import RobotSlopes, names_of
from .robot_tables import StagesTable
from .staged_slopes import DIFFERENTIATE_STAGES, staged_slopes_of
from .step_differences import DIFFERENTIATE_WHOLE_STEPS, differences_of
from .step_slopes import DIFFERENTIATE, DIFFERENTIATE_RIGID, PULL_BACK, PULL_BACK_RIGID, slopes_of

if TYPE_CHECKING:
    from .fleet import Fleet, Inputs


class Way(Enum):
    """Ways to differentiate the steps of a simulation."""

    EQUATIONS = "the equations of a semi-implicit step"
    RIGID = "the same with rigid contact; differences of whole steps where they do not cover the contacts"
    STAGES = "the stages of a Runge-Kutta step with contacts"
    DIFFERENCES = "differences of whole steps"


LOOPS: dict[Way, tuple[CompiledLoop, CompiledLoop, Callable[..., Any]]] = {
    Way.EQUATIONS: (DIFFERENTIATE, PULL_BACK, slopes_of),
    Way.RIGID: (DIFFERENTIATE_RIGID, PULL_BACK_RIGID, slopes_of),
    Way.STAGES: (DIFFERENTIATE_STAGES, DIFFERENTIATE_STAGES, staged_slopes_of),
    Way.DIFFERENCES: (DIFFERENTIATE_WHOLE_STEPS, DIFFERENTIATE_WHOLE_STEPS, differences_of),
}
"""The loops for matrices and for products, and the arrays of a thread."""


class FleetSlopes:
    """The compiled derivatives of steps of a fleet: of their equations, or differences of whole steps.

    `matrices` and `products` evaluate them at the current states; `doubtful` gives the names of what is doubtful in the last
    evaluation.
    """

    def __init__(self, fleet: Fleet, way: Way) -> None:
        self._fleet, self._way = fleet, way
        model = fleet.model
        nv, na, nu = model.robot.nv, model.forces.states, model.forces.nu
        self.rows, self.columns = 2 * nv + na, 3 * nv + na + nu
        self._of: Table | None = None  # table of the fleet for which the arrays are made
        self._runs: dict[bool, Callable[..., int]] = {}  # the compiled loops for its layout, of matrices and of products
        self._alone: dict[bool, Callable[[], int]] = {}  # the calls of these for a single robot
        self._none = {"cotangents": np.zeros((0, self.rows)), "products": np.zeros((0, self.columns))}
        self._multiplies = False  # whether the table has the cotangents of the last products

    def matrices(self, inputs: Inputs) -> Tensor:
        """Return the derivatives (robots, 2 nv + na, 3 nv + na + nu) of the state by the state before, tau and controls."""
        ends = np.empty((len(self._fleet.q), self.rows, self.columns))
        arrays = {"ends": ends} | self._none if self._multiplies else {"ends": ends}
        self._multiplies = False
        self._evaluate(inputs, arrays)
        return ends

    def products(self, inputs: Inputs, cotangents: Matrix) -> Matrix:
        """Return products (robots, 3 nv + na + nu) of cotangents (robots, 2 nv + na) and the derivatives."""
        products = np.empty((len(cotangents), self.columns))
        self._multiplies = True
        self._evaluate(inputs, {"cotangents": cotangents, "products": products})
        return products

    def _evaluate(self, inputs: Inputs, arrays: dict[str, Array]) -> None:
        """Evaluate all robots. Raises SimulationError if a step fails."""
        fleet = self._fleet
        given = fleet.begin_inputs(inputs)
        while True:
            if self._of is not given:
                self._prepare(given)
            for name, x in arrays.items():
                self._table.point(name, x)
            if fleet.is_alone:
                done = self._call_alone()()
            else:
                done = fleet.share(self._piece)
            if done == len(fleet.q):
                return
            given = fleet.after_failed_attempts()

    def _prepare(self, given: Table) -> None:
        """Make the arrays for the fleet's robots."""
        fleet, self._of, self._runs, self._alone = self._fleet, given, {}, {}
        robots, model = len(fleet.q), fleet.model
        capacity, rows = fleet.capacity, len(fleet.contacts.rows.joint)
        self.found = RobotSlopes(
            np.zeros((1, self.rows, self.columns)), np.zeros((0, self.rows)), np.zeros((0, self.columns)),
            np.zeros(robots, np.int64), np.full((robots, capacity), -1), np.zeros((robots, rows), bool),
            np.zeros((robots, len(model.limits))), np.zeros((robots, self.columns), bool),
        )  # fmt: skip
        self._table = Table(self.found)

    def _call_alone(self) -> Callable[[], int]:
        """Return the call for a single robot."""
        if self._multiplies not in self._alone:
            one, given = self._fleet.last_table(), self._of
            run, own = self._of_thread(one)
            assert given
            addresses = one.address, own.address, given.address, self._table.address
            self._alone[self._multiplies] = prepared_call(run, *addresses, 0, 1, kept=(one, own, given, self._table))
        return self._alone[self._multiplies]

    def _of_thread(self, one: StagesTable) -> tuple[Callable[..., int], Any]:
        """Return the compiled loop for a thread's stages, and arrays for these."""
        model, contacts = self._fleet.model, self._fleet.contacts
        of_matrices, of_products, arrays = LOOPS[self._way]
        own: Any = arrays(one, model, contacts)
        if self._multiplies not in self._runs:
            assert one.layout and self._of and self._of.layout
            loop = of_products if self._multiplies else of_matrices
            self._runs[self._multiplies] = loop.for_layouts(one.layout, own.layout, self._of.layout, self._table.layout)
        return self._runs[self._multiplies], own

    def _piece(self, one: StagesTable, first: int, stop: int) -> int:
        run, own = self._of_thread(one)
        assert self._of
        return run(one.address, own.address, self._of.address, self._table.address, first, stop)

    def doubtful(self) -> list[tuple[str, ...]]:
        """Return the names of what is doubtful about each robot's derivatives."""
        return [self._names(i) if unsure else () for i, unsure in enumerate(self.found.unsure.tolist())]

    def _names(self, i: int) -> tuple[str, ...]:
        x, fleet = self.found, self._fleet
        model, bent = fleet.model, np.flatnonzero(x.bent[i])
        names = [f"{model.limits[k]} at its limit" for k in np.flatnonzero(x.limits[i])]
        names += [model.directions_named[k] for k in bent]
        names += names_of(fleet.contacts, model.forces, x.candidates[i], x.rows[i])
        return tuple(dict.fromkeys(names))
