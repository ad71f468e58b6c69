"""Derivatives of forward dynamics under constraints, as a program that an operational space compiles."""

from __future__ import annotations

from typing import NamedTuple

from ...algorithms.contact import constraint_rows
from ...algorithms.contact.constraint_rows import ConstraintRows
from ...algorithms.contact.operational_space import constrained_derivatives as equations
from ...algorithms.contact.operational_space.reduction import Reduction
from ...engine.derivative_program import JacobianProgram, OneInLanes
from ...engine.program import ComposedProgram, Input, Output, Program
from ..arguments import A, Q, V
from ..dynamics_derivatives import analytic, inverse_dynamics_derivatives
from ..system import System

NAME = "forward_dynamics_derivatives"
RESULTS = ("acceleration", "force")
STATE = ("q", "v", "tau")


class Constrained(NamedTuple):
    """The parts from which the derivatives of a constrained robot are built."""

    robot: System
    dynamics: Program  # acceleration, force and strain as functions of q, v, tau and an optional target
    target: Program | None  # the target as a function of q, v and more, if it depends on the state
    every: ConstraintRows  # all rows
    kept: ConstraintRows  # rows that do not depend on others of the same body
    reduction: Reduction  # the map between the two


def constrained_slopes(c: Constrained, doc: str) -> Program:
    """Return the program for derivatives of constrained dynamics.

    The program solves the differentiated equations of motion and constraint once for all columns. For a single state it uses
    forward differentiation, in lanes. If rows depend on each other, it always uses forward differentiation of the function
    itself, which treats such rows as the function does.
    """
    before = (c.target,) if c.target else ()
    dynamics = c.dynamics.given("target") if c.target else c.dynamics
    forward = JacobianProgram(ComposedProgram("constrained", (*before, dynamics), RESULTS, first=STATE), doc, STATE)
    if c.reduction.dependent:
        return forward
    results = tuple(f"d{y}_d{x}" for y in RESULTS for x in STATE)
    parts = (*before, dynamics, *_slopes(c), *_solved(c, results))
    return OneInLanes(ComposedProgram(NAME, parts, results, doc, (("acceleration", "a"),), STATE), forward)


def _slopes(c: Constrained) -> tuple[Program, ...]:
    """Return the program for derivatives of the equations' parts at the solution: the acceleration and the forces."""
    robot = c.robot
    n, m, size = robot.nv, len(c.kept.K), len(c.every.K)
    pull = robot.bind("pull", equations.row_forces, (Q, Input("force", (size,))), (Output("pull", (n,)),), (c.every,))
    seen = robot.bind("seen", equations.row_motion, (Q, V, A), (Output("rows", (m,)),), (c.kept,))
    jacobian = robot.bind("J", constraint_rows.row_jacobian, (Q,), (Output("J", (m, n)),), (c.kept,))
    slopes: tuple[Program, ...] = (
        analytic(inverse_dynamics_derivatives(robot)).program,
        JacobianProgram(pull.program, "", ("q",)),
        JacobianProgram(seen.program, "", ("q", "v")),
        jacobian.program,
    )
    return (*slopes, JacobianProgram(c.target, "", ("q", "v"))) if c.target else slopes


def _solved(c: Constrained, results: tuple[str, ...]) -> tuple[Program, ...]:
    n, m, size = c.robot.nv, len(c.kept.K), len(c.every.K)
    square = {name: Input(name, (n, n)) for name in ("dtau_dq", "dtau_dv", "dtau_da", "dpull_dq")}
    rows = [Input(f"drows_d{x}", (m, n)) for x in "qv"]
    targets = [Input(f"dtarget_d{x}", (size, n), optional=True) for x in "qv"]
    R, S = Output("R", (n, 2 * n)), Output("S", (m, 2 * n))
    moved = c.robot.bind("R", equations.motion_slopes, [square[x] for x in ("dtau_dq", "dtau_dv", "dpull_dq")], (R,))
    seen = c.robot.bind("S", equations.row_slopes, (*rows, *targets), (S,), (c.reduction,)).program
    for target in targets if c.target else ():
        seen = seen.given(target.name)
    inputs = square["dtau_da"], Input("J", (m, n)), Input("R", R.shape), Input("S", S.shape)
    outputs = [Output(name, (n if name.startswith("dacceleration") else size, n)) for name in results]
    return moved.program, seen, c.robot.bind(NAME, equations.solved_constraints, inputs, outputs, (c.reduction,)).program
