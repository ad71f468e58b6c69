"""Compiled functions that take a time step: along velocities, in the axes of the step's start."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ..algorithms import integration
from ..engine.function import CompiledFunction
from ..engine.program import Input, KernelProgram, Output
from ..model.expansion import CURVED
from ..model.tree import INNER
from ..model.types import JointType
from .system import System


class StepFunctions:
    """The functions of a robot that time steps are made of, `Robot.step_functions`.

    They move along velocities and leave loops open; `closing_step`, again and again, closes them.
    """

    def __init__(self, robot: System) -> None:
        self.robot = robot

    @cached_property
    def integrate(self) -> CompiledFunction:
        """The configuration (nq) that a velocity v (nv), held for a unit of time, leads to from q."""
        robot = self.robot
        return robot._function(StepFunctions.integrate, integration.integrate, ("q", "v"), robot.configuration_result("result"))

    @cached_property
    def free_velocity(self) -> CompiledFunction:
        """v + h v' (nv) after a step h [s], in the axes of its start; a is v'."""
        return self._of_velocities(integration.free_velocity, ("v", "a"))

    @cached_property
    def carry(self) -> CompiledFunction:
        """A velocity u (nv) in the axes of a step's start in those of the end, h u and a displacement d (nv) on."""
        return self._of_velocities(integration.carry, ("u", "d"))

    @cached_property
    def advance(self) -> CompiledFunction[Any]:
        """Of q, a velocity u in the axes of a step's start, and a displacement d: q after a step h, and u in the axes there."""
        outputs = self.robot.configuration_result("ahead"), Output("velocity", (self.robot.nv,))
        return self.robot.bind("advance", integration.advance, ("q", "u", "d", Input("h", ())), outputs)

    @cached_property
    def closing_step(self) -> CompiledFunction[Any] | None:
        """A step towards closed loops (see `ClosedStepFunctions`); None where there are no loops that can open."""
        return None

    @property
    def closing_tolerance(self) -> float:
        """The residual [m, or sines of angles] below which loops are closed to rounding; 0 without loops."""
        return 0.0

    @cached_property
    def spanning_map(self) -> CompiledFunction | None:
        """The velocities of all joints for those of the independent ones (see `ClosedStepFunctions`); None without loops."""
        return None

    def _of_velocities(self, kernel: Any, velocities: Sequence[str]) -> CompiledFunction:
        robot = self.robot
        turning = [INNER] * robot.nv
        for j in robot.joints:
            if j.type in (JointType.FLOATING, JointType.PLANAR) and j.independent:
                turning[j.v_slice.start] = CURVED[j.type]
        inputs = (*(Input(name, (robot.nv,)) for name in velocities), Input("h", ()))
        outputs = (Output("velocity", (robot.nv,)),)
        program = KernelProgram(kernel.__name__, kernel, (tuple(turning),), inputs, outputs, kernel.__doc__ or "")
        return CompiledFunction(program, robot.execution)
