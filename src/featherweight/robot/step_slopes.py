"""Compiled functions for the derivatives of semi-implicit steps without impulses.

The slopes of forces are arguments, because their limits change them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..algorithms import step_slopes as kernels
from ..engine.derivative_program import JacobianProgram, PullbackProgram
from ..engine.function import CompiledFunction
from ..engine.program import ComposedProgram, Input, KernelProgram, Output, Program, RenamedProgram
from ..model.types import JointType
from .dynamics_derivatives import analytic
from .parametric import with_armature_as_argument
from .robot import Robot

ORDER = "q", "v", "tau", "a", "h", "by_tau", "by_position", "by_velocity", "by_control", "force", "armature"
"""The arguments of `velocity_slopes`: `force` only for robots with loops, `armature` only if it is an argument."""
SLOPES = "slopes"


def velocity_slopes(robot: Robot, moving: Robot, drive_rows: Sequence[int], armature: bool) -> CompiledFunction[Any] | None:
    """Return the derivatives (nv, 3 nv + nu) of the velocity after a step by q, v, tau and controls of drives on rows.

    `moving` has the inertia that applies; `armature` says whether that of its joints is an argument. A function that would be
    too large is None.
    """
    n, rows, nu = robot.nv, len(robot.model.tree.parent), len(drive_rows)
    dynamics = analytic(moving.forward_dynamics_derivatives).program
    if armature:
        dynamics = with_armature(moving, dynamics)
    parts = dynamics, JacobianProgram(robot.step_functions.free_velocity.program, "", ("v",)), *_joint_map(robot)
    sizes = {"h": (), "by_tau": (n,), "by_position": (rows,), "by_velocity": (rows,), "by_control": (nu,)}
    given = [Input(name, shape) for name, shape in sizes.items() if 0 not in shape]
    given += [Input(y.name, y.shape) for program in parts for y in program.outputs]
    result = Output(SLOPES, (n, 3 * n + nu))
    whole = KernelProgram(SLOPES, kernels.write_velocity_slopes, (tuple(drive_rows),), tuple(given), (result,))
    return _fitting(ComposedProgram("velocity_slopes", (*parts, whole), (SLOPES,), "", (), ORDER), robot)


def with_armature(robot: Robot, program: Program) -> Program:
    """Return a program of the robot with the armature of all joints as an argument, in the order of `robot.armature`."""
    return with_armature_as_argument(robot, program, [j.name for j in robot.model.joints if j.type is not JointType.FLOATING])


def _joint_map(robot: Robot) -> tuple[Program, ...]:
    """Return programs for d(S v)/dq, S, and d(Sᵀ f)/dq for forces f of rows."""
    n, rows = robot.nv, len(robot.model.tree.parent)
    if not robot.closed:
        outputs = Output("turned", (rows, n)), Output("S", (rows, n)), Output("carried", (n, n))
        return (KernelProgram("joint_map", kernels.write_identity, (), (Input("v", (n,)),), outputs),)
    spanning: Program = robot.spanning_velocity.program  # type: ignore[attr-defined]
    carried = ComposedProgram("carried", (PullbackProgram(spanning),), ("v_bar",))
    return (
        RenamedProgram(JacobianProgram(spanning, "", ("q", "v")), (("dvelocity_dq", "turned"), ("dvelocity_dv", "S"))),
        RenamedProgram(JacobianProgram(carried, "", ("q",)), (("velocity_bar", "force"), ("dv_bar_dq", "carried"))),
    )


def end_slopes(robot: Robot, nu: int) -> CompiledFunction[Any] | None:
    """Return the derivatives (2 nv, 3 nv + nu) of the state after a step, for q, u, d, h and the derivatives `slopes` of u.

    The displacement d is zero. A function that would be too large is None.
    """
    n, width = robot.nv, 3 * robot.nv + nu
    moved = JacobianProgram(robot.step_functions.advance.program, "", ("q", "u"))
    given = (*(Input(y.name, y.shape) for y in moved.outputs), Input(SLOPES, (n, width)))
    whole = KernelProgram("ends", kernels.write_end_slopes, (), given, (Output("ends", (2 * n, width)),))
    return _fitting(ComposedProgram("end_slopes", (moved, whole), ("ends",), "", (), ("q", "u", "d", "h", SLOPES)), robot)


def _fitting(program: Program, robot: Robot) -> CompiledFunction[Any] | None:
    function: CompiledFunction[Any] = CompiledFunction(program, "interpreted" if robot.execution == "interpreted" else "auto")
    return None if function.too_large else function
