"""Derivatives of forward dynamics under constraints: the program that an operational space compiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...algorithms.contact import constraint_rows
from ...algorithms.contact.operational_space import constrained_derivatives as equations
from ...algorithms.contact.operational_space.constrained_derivatives import solved_constraints
from ...engine.derivative_program import JacobianProgram
from ...engine.function import CompiledFunction
from ...engine.program import ComposedProgram, Input, Output, Program

if TYPE_CHECKING:
    from .operational_space import OperationalSpace

NAME = "forward_dynamics_derivatives"
RESULTS = ("acceleration", "force")


def constrained_slopes(space: OperationalSpace, stabilized: bool, doc: str) -> CompiledFunction:
    """By the equations of motion and constraint, solved once for all columns; or, where rows depend on each other, forward
    through the function itself, so that they are treated as it treats them."""
    dynamics = space.constrained_dynamics.alternatives["ltl"].program
    before: tuple[Program, ...] = ()
    if stabilized:
        dynamics, before = dynamics.given("target"), (space.stabilization.program,)
    if space.rows_depend:
        whole = ComposedProgram("constrained", (*before, dynamics), RESULTS, first=("q", "v", "tau"))
        return CompiledFunction(JacobianProgram(whole, doc, ("q", "v", "tau")), _execution(space), "forward")
    results = tuple(f"d{y}_d{x}" for y in RESULTS for x in ("q", "v", "tau"))
    parts = (*before, dynamics, *_slopes(space, stabilized), _solved(space, stabilized, results))
    program = ComposedProgram(NAME, parts, results, doc, (("acceleration", "a"),), ("q", "v", "tau"))
    return CompiledFunction(program, _execution(space), "ltl")


def _execution(space: OperationalSpace) -> str:
    return "interpreted" if space.robot.execution == "interpreted" else "traced"


def _slopes(space: OperationalSpace, stabilized: bool) -> tuple[Program, ...]:
    """The derivatives of the parts of the equations, at the acceleration and the forces that solve them."""
    robot: Any = space.robot
    n = robot.nv
    kept = space.kept_rows
    m = len(kept.K)
    pull = robot.bind("pull", equations.row_forces, ("q", Input("force", (space.size,))), (Output("pull", (n,)),), (space.every_row,))
    seen = robot.bind("seen", equations.row_motion, ("q", "v", "a"), (Output("rows", (m,)),), (kept,))
    jacobian = robot.bind("J", constraint_rows.row_jacobian, ("q",), (Output("J", (m, n)),), (kept,))
    dynamics = robot.inverse_dynamics_derivatives.alternatives
    analytic = next(f for name, f in dynamics.items() if not name.startswith("forward"))
    slopes: list[Program] = [
        analytic.program,
        JacobianProgram(pull.program, "", ("q",)),
        JacobianProgram(seen.program, "", ("q", "v")),
        jacobian.program,
    ]
    if stabilized:
        slopes.append(JacobianProgram(space.stabilization.program, "", ("q", "v")))
    return tuple(slopes)


def _solved(space: OperationalSpace, stabilized: bool, results: tuple[str, ...]) -> Program:
    robot, n = space.robot, space.robot.nv
    m = len(space.kept_rows.K)
    square = [Input(name, (n, n)) for name in ("dtau_dq", "dtau_dv", "dtau_da", "dpull_dq")]
    rows = [Input(name, (m, n)) for name in ("J", "drows_dq", "drows_dv")]
    targets = [Input(f"dtarget_d{x}", (space.size, n), optional=True) for x in "qv"]
    outputs = [Output(name, (n if name.startswith("dacc") else space.size, n)) for name in results]
    program = robot.bind(NAME, solved_constraints, (*square, *rows, *targets), outputs, (space.reduction,)).program
    for target in targets if stabilized else ():
        program = program.given(target.name)
    return program
