"""Compiled functions for time steps: motion along velocities in the axes at the start of the step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from ..algorithms import crba_ltdl, integration
from ..algorithms.contact import contact_passes
from ..engine.function import CompiledFunction
from ..engine.program import Input, KernelProgram, Output
from ..model.expansion import CURVED
from ..model.topology import Topology
from ..model.tree import INNER, Placements
from ..model.types import JointType
from .arguments import Argument, Q, V, Velocity
from .compiled_member import compiled
from .system import System


class Forest(NamedTuple):
    """Trees that share only the ground, as ranges of velocities."""

    begins: tuple[int, ...]  # (trees + 1,) the first velocity of each tree, and nv
    of_row: tuple[int, ...]  # (n,) the tree of each row of all joints, ascending
    parent: tuple[int, ...]  # (nv,) the parent of each velocity, -1 on the ground
    velocity: tuple[int, ...]  # (n,) the last velocity that moves each row of all joints

    @property
    def widest(self) -> int:
        """The number of velocities of the largest tree."""
        return max((stop - begin for begin, stop in pairwise(self.begins)), default=0)


def forest_of(parent: Sequence[int], velocity_of_row: Sequence[int]) -> Forest:
    """Return the trees of the expanded tree of velocities (nv,), and the tree of each row of all joints.

    If the rows of different trees are interleaved, which loops may cause, all trees count as one.
    """
    begins = Topology(parent).trees
    of_row = [bisect_right(begins[:-1], velocity) - 1 for velocity in velocity_of_row]
    if of_row != sorted(of_row):
        begins, of_row = (0, len(parent)), [0] * len(of_row)
    return Forest(begins, tuple(of_row), tuple(parent), tuple(velocity_of_row))


class StepFunctions:
    """The functions of a robot that simulations call in time steps: `Robot.step_functions`.

    They move along velocities and leave loops open; repeated calls of `closing_step` close the loops.
    """

    def __init__(self, robot: System) -> None:
        self.robot = robot

    @compiled
    def integrate(self) -> CompiledFunction:
        """The configuration (nq) that the robot reaches from q when it moves with the velocity v (nv) for a unit of time."""
        robot = self.robot
        return StepFunctions.integrate.bind(robot, integration.integrate, (Q, V), robot.configuration_result("result"))

    @cached_property
    def free_velocity(self) -> CompiledFunction:
        """The velocity v + h a (nv) after a step h [s], in the axes at the start of the step."""
        return self._of_velocities(integration.free_velocity, ("v", "a"))

    @cached_property
    def carry(self) -> CompiledFunction:
        """The velocity u (nv), given in the axes at the start of a step, in the axes after the displacement h u + d (nv)."""
        return self._of_velocities(integration.carry, ("u", "d"))

    @compiled
    def advance(self) -> CompiledFunction[Any]:
        """Function of q, u, d and h: q after a step h, and the velocity u in the axes there.

        The argument u is a velocity in the axes at the start of the step, and d is a displacement.
        """
        outputs = self.robot.configuration_result("ahead"), Output("velocity", (self.robot.nv,))
        return StepFunctions.advance.bind(
            self.robot, integration.advance, (Q, Velocity("u"), Velocity("d"), Input("h", ())), outputs
        )

    @cached_property
    def closing_step(self) -> CompiledFunction[Any] | None:
        """A step towards closed loops (see `ClosedStepFunctions`); None if no loop can open."""
        return None

    @property
    def closing_tolerance(self) -> float:
        """The residual [m, or sines of angles] below which loops are closed up to rounding; 0 without loops."""
        return 0.0

    @cached_property
    def spanning_map(self) -> CompiledFunction | None:
        """The map from independent velocities to those of all joints (see `ClosedStepFunctions`); None without loops."""
        return None

    @cached_property
    def forest(self) -> Forest:
        """The trees of the robot that share only the ground."""
        return forest_of(self.robot.parent, range(self.robot.nv))

    def inverse_factor(self, columns: tuple[int, ...], width: int) -> CompiledFunction:
        """Return the function of q: C (nv, width) with M(q)⁻¹ = C Cᵀ, row i of which has entries for i and its ancestors.

        `columns` are their columns, in the order of a packed factor: each velocity, its parent, and so on to the ground.
        """
        output = Output("C", (self.robot.nv, width))
        return self.robot.bind("inverse_factor", crba_ltdl.inverse_factor, (Q,), [output], (columns,))

    def contact_passes(self, bodies: Placements, rows: tuple[int, ...], stride: int) -> tuple[CompiledFunction[Any], ...]:
        """Return the functions of `algorithms.contact.contact_passes`, for contacts of `bodies` and limits of some rows.

        The matrix has `stride` columns.
        """
        n, of_bodies = self.robot.nv, (len(bodies.row), 6)
        stiffness = Q, Input("K", (*of_bodies, 6)), Input("D", (len(rows),))
        loads, motion = (Input("wrench", of_bodies), Velocity("force")), Output("motion", of_bodies)
        factor, axes = ("factor", (n, 7)), [Output(x, (n, 3)) for x in ("linear", "angular", "place")]

        def bind(kernel: Callable[..., None], inputs: Sequence[Argument], *outputs: Output) -> CompiledFunction[Any]:
            given = (bodies,) if kernel is contact_passes.contact_loads else (bodies, rows)
            return self.robot.bind(kernel.__name__, kernel, inputs, outputs, given)

        return (
            bind(contact_passes.contact_factor, stiffness, Output(*factor)),
            bind(contact_passes.contact_response, (Q, Input(*factor), *loads), motion, Output("x", (n,))),
            bind(contact_passes.contact_matrix, stiffness, Output("H", (n, stride))),
            bind(contact_passes.contact_loads, (Q, *loads), Output("load", (n,))),
            self.robot.bind("contact_axes", contact_passes.contact_axes, (Q,), axes),
        )

    def _of_velocities(self, kernel: Callable[..., None], velocities: Sequence[str]) -> CompiledFunction:
        robot = self.robot
        turning = [INNER] * robot.nv
        for j in robot.joints:
            if j.type in (JointType.FLOATING, JointType.PLANAR) and j.independent:
                turning[j.v_slice.start] = CURVED[j.type]
        inputs = (*(Input(name, (robot.nv,)) for name in velocities), Input("h", ()))
        outputs = (Output("velocity", (robot.nv,)),)
        program = KernelProgram(kernel.__name__, kernel, (tuple(turning),), inputs, outputs, kernel.__doc__ or "")
        return CompiledFunction(program, robot.execution)
