"""Compiled functions that take a time step of a robot with loops: along velocities, and closing loops."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..algorithms.mechanisms import spanning
from ..algorithms.mechanisms.closing_step import ClosedWithin, closing_step
from ..algorithms.mechanisms.cluster_tree import constraint_count
from ..engine.function import CompiledFunction
from ..engine.program import Output
from .closing.loops import CLOSED, FACING_AT_LEAST, Loops
from .step_functions import Forest, StepFunctions, forest_of
from .system import System


class ClosedStepFunctions(StepFunctions):
    """Steps as a compiled simulation takes them, without Python in between; `integrate` is `tangent_step`."""

    def __init__(self, robot: System, loops: Loops) -> None:
        super().__init__(robot)
        self._loops = loops

    @cached_property
    def forest(self) -> Forest:
        """The trees of the robot that share only the ground; those that loops join are one."""
        mechanism = self._loops.mechanism
        velocities = []
        for k in mechanism.owner:
            c = mechanism.clusters[k]
            while not c.independent and c.output >= 0:  # it moves with the body that it hangs on
                c = mechanism.clusters[mechanism.owner[c.output]]
            velocities.append(min(c.start + max(len(c.independent), 1), self.robot.nv) - 1)
        return forest_of(self.robot.parent, velocities)

    @cached_property
    def spanning_map(self) -> CompiledFunction:
        """Function of q: S (n, nv), the velocities of all joints of the spanning tree for those of the independent ones."""
        output = Output("S", (len(self.robot.model.tree.parent), self.robot.nv))
        return self.robot._function(ClosedStepFunctions.spanning_map, spanning.velocity_matrix, ("q",), output)

    @cached_property
    def closing_step(self) -> CompiledFunction[Any] | None:
        """Function of q: q after a step of Newton's method towards closed loops, the independent joints where they are; and, of
        the q that is given, how far loops are open. None where there are no loops that can open.

        ahead (nq)      where to take the next step from, until the loops are closed at q
        residual (m)    closed where none is greater than `closing_tolerance`; `opening` is the greatest
        margins (k)     closed, in the way it was built, where none is negative: of constraints that contradict others, and of
                        axes that are to point the same way
        singularity ()  `singularity`; near singular configurations `ahead` may be infinite or NaN
        """
        if not any(c.dependent for c in self._loops.mechanism.clusters):
            return None
        solved = tuple(map(int, self.solved))
        facings = sum(len(c.facings) for c in self._loops.mechanism.clusters)
        within = ClosedWithin(solved, max(self.closing_tolerance, self._loops.tolerance), FACING_AT_LEAST)
        outputs = (
            Output("ahead", (self.robot.nq,)),
            Output("residual", (len(solved),)),
            Output("margins", (self.constraints - len(solved) + facings,)),
            Output("singularity", ()),
        )
        return self.robot.bind(
            "closing_step", closing_step, ("q",), outputs, (within,), doc=ClosedStepFunctions.closing_step.__doc__
        )

    @property
    def closing_tolerance(self) -> float:
        """The residual [m, or sines of angles] below which loops are closed to rounding."""
        return CLOSED * max(1.0, self._loops.size)

    @cached_property
    def solved(self) -> np.ndarray:
        """The numbers of the constraints that are closed to rounding: all, but for loops that contradict each other."""
        solved, first = [np.zeros(0, dtype=np.intp)], 0
        for c in self._loops.mechanism.clusters:
            if c.rows in self._loops.assemblies:
                solved.append(first + self._loops.assemblies[c.rows].solved)
            first += constraint_count(c)
        return np.concatenate(solved)

    @cached_property
    def constraints(self) -> int:
        """The number of constraint rows of all loops."""
        return sum(map(constraint_count, self._loops.mechanism.clusters))
