"""Derivatives of a semi-implicit step without impulses, as compiled functions: of its velocity, and of the state after it.

    load    L = Sᵀ K S dq + Sᵀ D d(S v) + d(Sᵀ) f      K, D: slopes of forces of rows by position and velocity; S = 1 for trees
    u       du = dv + h (da + d(w x v)),  da = da/dq dq + da/dv dv + da/dtau L
    state   dq+, dv+ = Jacobians of `advance` times dq, du

The slopes of forces are arguments, because limits change them (`load_slopes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..algorithms.inverse_kinematics.prioritized import is_zero
from ..engine.derivative_program import JacobianProgram, PullbackProgram
from ..engine.function import CompiledFunction
from ..engine.program import ComposedProgram, Input, KernelProgram, Output, Program, RenamedProgram
from ..robot.dynamics_derivatives import analytic
from ..robot.robot import Robot

ORDER = "q", "v", "tau", "a", "h", "by_tau", "by_position", "by_velocity", "by_control", "force", "armature"
"""The arguments of `velocity_slopes`: `force` only for robots with loops, `armature` only if it is an argument."""
SLOPES = "slopes"


def velocity_slopes(robot: Robot, moving: Robot, drive_rows: Sequence[int], armature: bool) -> CompiledFunction[Any] | None:
    """Return the derivatives (nv, 3 nv + nu) of the velocity after a step by q, v, tau and controls of drives on rows.

    `armature` says whether the armature of `moving` is an argument. A function that would be too large is None.
    """
    n, rows, nu = robot.nv, len(robot.model.tree.parent), len(drive_rows)
    dynamics = analytic(moving.forward_dynamics_derivatives)
    if armature:
        dynamics = moving.parametric(dynamics, bodies=False)
    turning = JacobianProgram(robot.step_functions.free_velocity.program, "", ("v",))
    maps = _joint_map(robot)
    made = [Input(y.name, y.shape) for program in (dynamics.program, turning, *maps) for y in program.outputs]
    sizes = {"h": (), "by_tau": (n,), "by_position": (rows,), "by_velocity": (rows,), "by_control": (nu,)}
    given = (*(Input(name, shape) for name, shape in sizes.items() if name != "by_control" or nu), *made)
    whole = KernelProgram(SLOPES, write_slopes, (tuple(drive_rows),), given, (Output(SLOPES, (n, 3 * n + nu)),))
    return _fitting(
        ComposedProgram("velocity_slopes", (dynamics.program, turning, *maps, whole), (SLOPES,), "", (), ORDER), robot
    )


def _joint_map(robot: Robot) -> tuple[Program, ...]:
    """Return programs for d(S v)/dq, S, and d(Sᵀ f)/dq for forces f of rows."""
    n, rows = robot.nv, len(robot.model.tree.parent)
    if not robot.closed:
        outputs = Output("turned", (rows, n)), Output("S", (rows, n)), Output("carried", (n, n))
        return (KernelProgram("joint_map", write_identity, (), (Input("v", (n,)),), outputs),)
    spanning: Program = robot.spanning_velocity.program  # type: ignore[attr-defined]
    carried = ComposedProgram("carried", (PullbackProgram(spanning),), ("v_bar",))
    return (
        RenamedProgram(JacobianProgram(spanning, "", ("q", "v")), (("dvelocity_dq", "turned"), ("dvelocity_dv", "S"))),
        RenamedProgram(JacobianProgram(carried, "", ("q",)), (("velocity_bar", "force"), ("dv_bar_dq", "carried"))),
    )


def end_slopes(robot: Robot, nu: int) -> CompiledFunction[Any] | None:
    """Return the derivatives (2 nv, 3 nv + nu) of the state after a step, for q, u, d, h and `slopes` of u.

    The displacement d is zero. A function that would be too large is None.
    """
    n, width = robot.nv, 3 * robot.nv + nu
    moved = JacobianProgram(robot.step_functions.advance.program, "", ("q", "u"))
    given = (*(Input(y.name, y.shape) for y in moved.outputs), Input(SLOPES, (n, width)))
    whole = KernelProgram("ends", write_end_slopes, (), given, (Output("ends", (2 * n, width)),))
    return _fitting(ComposedProgram("end_slopes", (moved, whole), ("ends",), "", (), ("q", "u", "d", "h", SLOPES)), robot)


def _fitting(program: Program, robot: Robot) -> CompiledFunction[Any] | None:
    function: CompiledFunction[Any] = CompiledFunction(program, "interpreted" if robot.execution == "interpreted" else "auto")
    return None if function.too_large else function


# kernels


def write_identity(_: Any, maps: Any) -> None:
    """Write the map of joints of a tree, which does not depend on q."""
    for i in range(len(maps[1])):
        maps[1][i][i] = 1.0


def write_slopes(drive_rows: Sequence[int], h: Any, by_tau: Any, by_position: Any, by_velocity: Any, *others: Any) -> None:
    """Write the derivatives of the velocity after a step."""
    *by_control, da_dq, da_dv, da_dtau, turning, turned, S, carried, slopes = others
    n = len(by_tau)
    for i, row in enumerate(slopes):
        by_force = [sum((x * y for x, y in zip(da_dtau[i], arm, strict=True) if not is_zero(y)), 0.0) for arm in S]
        for j in range(n):
            by_q, by_v = da_dq[i][j], da_dv[i][j]
            for k, x in enumerate(da_dtau[i]):
                by_q = by_q + x * carried[k][j]
            for r, x in enumerate(by_force):
                by_q = by_q + x * (by_position[r] * S[r][j] + by_velocity[r] * turned[r][j])
                by_v = by_v + x * (by_velocity[r] * S[r][j])
            row[j], row[n + j], row[2 * n + j] = h * by_q, turning[i][j] + h * by_v, h * (da_dtau[i][j] * by_tau[j])
        for own in by_control:
            for k, r in enumerate(drive_rows):
                row[3 * n + k] = h * (by_force[r] * own[k])


def write_end_slopes(q_by_q: Any, q_by_u: Any, v_by_q: Any, v_by_u: Any, slopes: Any, ends: Any) -> None:
    """Write the derivatives of the state after a step, from those of its velocity."""
    for i, (by_q, by_u) in enumerate(zip([*q_by_q, *v_by_q], [*q_by_u, *v_by_u], strict=True)):
        row = [*by_q, *[0.0] * (len(ends[i]) - len(by_q))]
        for x, slope in zip(by_u, slopes, strict=True):
            if not is_zero(x):
                row = [y + x * z for y, z in zip(row, slope, strict=True)]
        ends[i][:] = row
