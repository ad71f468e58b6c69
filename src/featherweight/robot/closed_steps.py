"""What a step of a robot with loops is made of, as functions that are machine code: along velocities, and closing loops."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..algorithms.mechanisms import integration, spanning
from ..algorithms.mechanisms.closing_step import ClosedWithin, closing_step
from ..algorithms.mechanisms.cluster_tree import ClusterTree, constraint_count
from ..engine.function import CompiledFunction
from ..engine.program import Input, Output
from .closing.loops import CLOSED, FACING_AT_LEAST, Loops
from .robot import Robot


class ClosedSteps(Robot):
    """Steps as a compiled simulation takes them, without Python in between.

    `_integrate` is `tangent_step` and `_advance` leaves loops open; `_closing_step`, again and again, closes them. The forms
    `_by_map` are for several steps from one configuration, whose `_spanning_map` is then computed once.
    """

    _loops: Loops

    @property
    def _mechanism(self) -> ClusterTree:
        """The spanning tree and its clusters."""
        return self._loops.mechanism

    @cached_property
    def _spanning_map(self) -> CompiledFunction:
        """Function of q: S (n, nv), the velocities of all joints of the spanning tree for those of the independent ones."""
        output = Output("S", (len(self.model.tree.parent), self.nv))
        return self._function(ClosedSteps._spanning_map, spanning.velocity_matrix, ("q",), output)

    @cached_property
    def _integrate_by_map(self) -> CompiledFunction:
        """Function of q, S, v: `_integrate`, given the `_spanning_map` of q."""
        inputs, output = ("q", self._map_input, "v"), Output("result", (self.nq,))
        return self._function(ClosedSteps._integrate_by_map, integration.integrate_by_map, inputs, output)

    @cached_property
    def _advance_by_map(self) -> CompiledFunction[Any]:
        """Function of q, S, u, d, h: `_advance`, given the `_spanning_map` of q."""
        inputs = ("q", self._map_input, "u", "d", Input("h", ()))
        outputs = Output("ahead", (self.nq,)), Output("velocity", (self.nv,))
        return self._bind(
            "advance_by_map", integration.advance_by_map, inputs, outputs, doc=ClosedSteps._advance_by_map.__doc__
        )

    @property
    def _map_input(self) -> Input:
        return Input("S", (len(self.model.tree.parent), self.nv))

    @cached_property
    def _closing_step(self) -> CompiledFunction[Any] | None:
        """Function of q: q after a step of Newton's method towards closed loops, the independent joints where they are; and, of
        the q that is given, how far loops are open. None where there are no loops that can open.

        ahead (nq)      where to take the next step from, until the loops are closed at q
        residual (m)    closed where none is greater than `_exact`; `opening` is the greatest
        margins (k)     closed, in the way it was built, where none is negative: of constraints that contradict others, and of
                        axes that are to point the same way
        singularity ()  `singularity`; near singular configurations `ahead` may be infinite or NaN
        """
        if not any(c.dependent for c in self._mechanism.clusters):
            return None
        solved = tuple(map(int, self._solved))
        facings = sum(len(c.facings) for c in self._mechanism.clusters)
        within = ClosedWithin(solved, max(self._exact, self._loops.tolerance), FACING_AT_LEAST)
        outputs = (
            Output("ahead", (self.nq,)),
            Output("residual", (len(solved),)),
            Output("margins", (self._constraints - len(solved) + facings,)),
            Output("singularity", ()),
        )
        return self._bind("closing_step", closing_step, ("q",), outputs, (within,), doc=ClosedSteps._closing_step.__doc__)

    @property
    def _exact(self) -> float:
        """The residual [m, or sines of angles] below which loops are closed to rounding."""
        return CLOSED * max(1.0, self._loops.size)

    @cached_property
    def _solved(self) -> np.ndarray:
        """The numbers of the constraints that are closed to rounding: all, but for loops that contradict each other."""
        solved, first = [np.zeros(0, dtype=np.intp)], 0
        for c in self._mechanism.clusters:
            if c.rows in self._loops.assemblies:
                solved.append(first + self._loops.assemblies[c.rows].solved)
            first += constraint_count(c)
        return np.concatenate(solved)

    @cached_property
    def _constraints(self) -> int:
        return sum(map(constraint_count, self._mechanism.clusters))
