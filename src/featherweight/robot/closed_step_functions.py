"""Compiled functions for time steps of a robot with loops: motion along velocities, and closing of loops."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..algorithms.mechanisms import spanning
from ..algorithms.mechanisms.cluster_tree import constraint_count
from ..algorithms.mechanisms.integration import ClosedWithin, closing_step
from ..engine.function import CompiledFunction
from ..engine.program import Output
from .arguments import Q
from .closing.loops import CLOSED, FACING_AT_LEAST, Loops
from .step_functions import Forest, StepFunctions, forest_of
from .system import System


class ClosedStepFunctions(StepFunctions):
    """The functions that compiled simulations call in a time step, without Python; `integrate` is `tangent_step`."""

    def __init__(self, robot: System, loops: Loops) -> None:
        super().__init__(robot)
        self._loops = loops

    @cached_property
    def forest(self) -> Forest:
        """The trees of the robot that share only the ground; a loop merges the trees that it connects."""
        mechanism = self._loops.mechanism
        velocities = []
        for k in mechanism.owner:
            c = mechanism.clusters[k]
            while not c.independent and c.output >= 0:  # it moves with the body that carries it
                c = mechanism.clusters[mechanism.owner[c.output]]
            velocities.append(min(c.start + max(len(c.independent), 1), self.robot.nv) - 1)
        return forest_of(self.robot.parent, velocities)

    @cached_property
    def spanning_map(self) -> CompiledFunction:
        """Function of q: the matrix S (n, nv) from independent velocities to those of all joints of the tree."""
        output = Output("S", (len(self.robot.model.tree.parent), self.robot.nv))
        doc = ClosedStepFunctions.spanning_map.__doc__
        return self.robot.bind("spanning_map", spanning.velocity_matrix, (Q,), (output,), doc=doc)

    @cached_property
    def closing_step(self) -> CompiledFunction[Any] | None:
        """Function of q: one step of Newton's method towards closed loops, and the misclosure at q.

        Independent joints do not move. The function is None if no loop can open. The results are:

            ahead (nq)      start of the next step, unless the loops are closed at q
            residual (m)    loops are closed if no entry exceeds `closing_tolerance`; `opening` is the largest entry
            margins (k)     loops are closed in their original assembly if no entry is negative: margins of constraints that
                            contradict others, and of axes that must point the same way
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
            "closing_step", closing_step, (Q,), outputs, (within,), doc=ClosedStepFunctions.closing_step.__doc__
        )

    @property
    def closing_tolerance(self) -> float:
        """The residual [m, or sines of angles] below which loops are closed up to rounding."""
        return CLOSED * max(1.0, self._loops.size)

    @cached_property
    def solved(self) -> np.ndarray:
        """The numbers of the constraints that are closed up to rounding: all, except for loops that contradict each other."""
        solved, first = [np.zeros(0, dtype=np.intp)], 0
        for c in self._loops.mechanism.clusters:
            if c.rows in self._loops.assemblies:
                solved.append(first + self._loops.assemblies[c.rows].solved)
            first += constraint_count(c)
        return np.concatenate(solved)

    def loop_of_residual(self, k: int) -> tuple[str, str]:
        """Return the name of the loop to which entry k of `residual` belongs, and its unit."""
        gaps = [self._loops.assemblies[c.rows] for c in self._loops.mechanism.clusters if c.rows in self._loops.assemblies]
        rows = [(a.gap, row) for a in gaps for row in a.solved]
        gap, row = rows[k]
        return gap.names[gap.loop_of_row[row]], "m" if gap.is_length[row] else "rad"

    @cached_property
    def constraints(self) -> int:
        """The number of constraint rows of all loops."""
        return sum(map(constraint_count, self._loops.mechanism.clusters))
