"""Derivatives of a semi-implicit step without impulses, as two compiled functions: of the velocity, and of the state after it.

    load    L = Sᵀ diag(slopes by position) S + (Sᵀ diag(slopes by velocity) d(S v) + d(Sᵀ f)) / dq     S = 1 without loops
    u       du = dv + h (da + d(w x v)),  da = (da/dq + da/dτ L) dq + ...
    state   dq+, dv+ = Jacobians of `advance` times dq, du

The slopes of forces are arguments (`load_slopes`): in one step they are constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..algorithms.inverse_kinematics.prioritized import is_zero
from ..algorithms.passive_forces import slopes_through_load
from ..engine.derivative_program import JacobianProgram, PullbackProgram
from ..engine.function import CompiledFunction
from ..engine.program import ComposedProgram, Input, KernelProgram, Output, Program, RenamedProgram
from ..robot.dynamics_derivatives import analytic
from ..robot.robot import Robot

BY = "dq", "dv", "dtau"
SLOPES = "by_tau", "by_position", "by_velocity"
ORDER = "q", "v", "tau", "a", "h", *SLOPES, "by_control", "force", "armature"  # of the arguments of `velocity_slopes`


def velocity_slopes(robot: Robot, moving: Robot, drive_rows: Sequence[int], armature: bool) -> CompiledFunction[Any] | None:
    """Return the derivatives (nv, 3 nv + nu) of the velocity after the step by q, v, tau and controls; None if it is too large.

    Its arguments are those of `ORDER`: `by_control` for robots with drives, the `force` of rows for robots with loops, and the
    `armature` of joints if it is asked for. Drives act on rows.
    """
    n, rows, nu = robot.nv, len(robot.model.tree.parent), len(drive_rows)
    dynamics = analytic(moving.forward_dynamics_derivatives)
    if armature:
        dynamics = moving.parametric(dynamics, bodies=False)
    square, maps = (n, n), (("S", (rows, n)), ("turned", (rows, n)), ("carried", (n, n)))
    by_control = (Input("by_control", (nu,)),) * (nu > 0)
    load = KernelProgram(
        "load", load_slopes, (tuple(map(int, drive_rows)),),
        (*(Input(*x) for x in maps), *(Input(x, (rows,)) for x in SLOPES[1:]), *by_control),
        (Output("load_q", square), Output("load_v", square), *(Output("load_u", (n, nu)) for _ in by_control)),
    )  # fmt: skip
    through = KernelProgram(
        "through", slopes_through_load, ((0, 1),),
        (Input("load_q", square), Input("load_v", square), *(Input(f"da_{x}", square) for x in BY)),
        tuple(Output(x, square) for x in BY),
    )  # fmt: skip
    whole = KernelProgram(
        "whole", write_velocity_slopes, (),
        (Input("h", ()), Input("by_tau", (n,)), Input("dvelocity_dv", square), *(Input(x, square) for x in BY),
         *(Input("load_u", (n, nu)) for _ in by_control)),
        (Output("slopes", (n, 3 * n + nu)),),
    )  # fmt: skip
    turning = JacobianProgram(robot.step_functions.free_velocity.program, "", ("v",))
    parts = dynamics.program, *_joint_map(robot, maps), load, through, turning, whole
    return _fitting(ComposedProgram("velocity_slopes", parts, ("slopes",), "", (), ORDER), robot)


def _joint_map(robot: Robot, maps: Sequence[tuple[str, tuple[int, ...]]]) -> tuple[Program, ...]:
    """Return programs for S, for d(S v)/dq, and for d(Sᵀ f)/dq."""
    if not robot.closed:
        given = Input(SLOPES[1], maps[0][1][:1])
        return (KernelProgram("joint_map", write_identity, (), (given,), tuple(Output(*x) for x in maps)),)
    spanning: Program = robot.spanning_velocity.program  # type: ignore[attr-defined]
    carried = ComposedProgram("carried", (PullbackProgram(spanning),), ("v_bar",))
    return (
        RenamedProgram(JacobianProgram(spanning, "", ("q", "v")), (("dvelocity_dq", "turned"), ("dvelocity_dv", "S"))),
        RenamedProgram(JacobianProgram(carried, "", ("q",)), (("velocity_bar", "force"), ("dv_bar_dq", "carried"))),
    )


def end_slopes(robot: Robot, nu: int) -> CompiledFunction[Any] | None:
    """Return A, B and B_control for q, u, d, h and the derivatives of u, the velocity after a step without displacement d.

    Without controls, it has no B_control. The function is None if it is too large.
    """
    n = robot.nv
    moved = JacobianProgram(robot.step_functions.advance.program, "", ("q", "u"))
    given = [Input(y.name, y.shape) for y in moved.outputs], Input("slopes", (n, 3 * n + nu))
    outputs = [Output(name, (2 * n, size)) for name, size in (("A", 2 * n), ("B", n), ("B_control", nu)) if size]
    whole = KernelProgram("whole", write_end_slopes, (), (*given[0], given[1]), tuple(outputs))
    names = tuple(y.name for y in outputs)
    return _fitting(ComposedProgram("end_slopes", (moved, whole), names, "", (), ("q", "u", "d", "h", "slopes")), robot)


def _fitting(program: Program, robot: Robot) -> CompiledFunction[Any] | None:
    function: CompiledFunction[Any] = CompiledFunction(program, "interpreted" if robot.execution == "interpreted" else "auto")
    return None if function.too_large else function


# kernels


def write_identity(_: Any, maps: Any) -> None:
    """Write the map of joints of a tree, which does not depend on q."""
    for i in range(len(maps[0])):
        maps[0][i][i] = 1.0


def load_slopes(drive_rows: Sequence[int], S: Any, turned: Any, carried: Any, *given: Any) -> None:
    """Write the derivatives of the load by q, v and controls."""
    by_position, by_velocity, *by_control, (by_q, by_v, *by_u) = given
    for i, row in enumerate(carried):
        by_q[i][:] = row
    for arm, bend, stiff, damped in zip(S, turned, by_position, by_velocity, strict=True):
        for i, x in enumerate(arm):
            if not is_zero(x):
                for j, y in enumerate(arm):
                    by_q[i][j] = by_q[i][j] + x * (stiff * y + damped * bend[j])
                    by_v[i][j] = by_v[i][j] + x * (damped * y)
    for slopes, result in zip(by_control, by_u, strict=True):
        for k, row in enumerate(drive_rows):
            for i, x in enumerate(S[row]):
                result[i][k] = x * slopes[k]


def write_velocity_slopes(h: Any, by_tau: Any, turning: Any, *given: Any) -> None:
    """Write the derivatives of the velocity by q, v, tau and controls, from those of the acceleration and the load."""
    by_q, by_v, by_load, *by_control, result = given
    n = len(by_tau)
    for i, row in enumerate(result):
        for j in range(n):
            row[j] = h * by_q[i][j]
            row[n + j] = turning[i][j] + h * by_v[i][j]
            row[2 * n + j] = h * (by_load[i][j] * by_tau[j])
        for slopes in by_control:
            for j, load in enumerate(slopes):
                for k, x in enumerate(load):
                    if not is_zero(x):
                        row[3 * n + k] = row[3 * n + k] + h * (by_load[i][j] * x)


def write_end_slopes(q_by_q: Any, q_by_u: Any, v_by_q: Any, v_by_u: Any, slopes: Any, blocks: Any) -> None:
    """Write the derivatives of the state after a step, in blocks of columns, from those of the velocity `slopes`."""
    n, width = len(q_by_q), len(slopes[0])
    for first, by_q, by_u in ((0, q_by_q, q_by_u), (n, v_by_q, v_by_u)):
        for i in range(n):
            row = [*by_q[i], *[0.0] * (width - n)]
            for x, slope in zip(by_u[i], slopes, strict=True):
                if not is_zero(x):
                    row = [y + x * z for y, z in zip(row, slope, strict=True)]
            begin = 0
            for block in blocks:
                size = len(block[0])
                block[first + i][:] = row[begin : begin + size]
                begin += size
