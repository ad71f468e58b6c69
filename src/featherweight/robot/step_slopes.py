"""Functions of a robot for the derivatives of time steps."""

from __future__ import annotations

from typing import Any

from ..engine.derivative_program import JacobianProgram, PullbackProgram
from ..engine.function import CompiledFunction
from ..engine.program import ComposedProgram, Program, RenamedProgram
from ..model.types import JointType
from .parametric import with_armature_as_argument
from .robot import Robot


def with_armature(robot: Robot, program: Program) -> Program:
    """Return a program of the robot with the armature of all joints as an argument, in the order of `robot.armature`."""
    return with_armature_as_argument(robot, program, [j.name for j in robot.model.joints if j.type is not JointType.FLOATING])


def spanning_slopes(robot: Robot) -> CompiledFunction[Any]:
    """Return the derivatives of S v by q and v, and of Sᵀ f by q, as a function of q, v and f.

    S v are the velocities, and f the forces, of all joints of a closed robot.
    """
    spanning: Program = robot.spanning_velocity.program  # type: ignore[attr-defined]
    back = ComposedProgram("mapped", (PullbackProgram(spanning),), ("v_bar",))
    parts = (
        RenamedProgram(JacobianProgram(spanning, "", ("q", "v")), (("dvelocity_dq", "swept"), ("dvelocity_dv", "spread"))),
        RenamedProgram(JacobianProgram(back, "", ("q",)), (("velocity_bar", "force"), ("dv_bar_dq", "mapped"))),
    )
    whole = ComposedProgram("spanning_slopes", parts, ("spread", "swept", "mapped"), "", (), ("q", "v", "force"))
    return CompiledFunction(whole, robot.execution)
