"""Derivatives of forward dynamics under constraints, as a program that an operational space compiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...algorithms.contact import constraint_rows
from ...algorithms.contact.constraint_rows import ConstraintRows
from ...algorithms.contact.operational_space import constrained_derivatives as equations
from ...algorithms.contact.operational_space import least_norm
from ...algorithms.contact.operational_space.dense_factors import Reduction
from ...engine.derivative_program import JacobianProgram, OneInLanes
from ...engine.guarded import GuardedProgram
from ...engine.program import ComposedProgram, Input, KernelProgram, Output, Program, RenamedProgram
from ..arguments import DAMPING, A, Q, V
from ..dynamics_derivatives import analytic, inverse_dynamics_derivatives
from ..system import System
from .redundancy import all_rows

NAME = "forward_dynamics_derivatives"
RESULTS = ("acceleration", "force")
STATE = ("q", "v", "tau")
SLOPES = tuple(f"d{y}_d{x}" for y in RESULTS for x in STATE)
ALSO = (("acceleration", "a"),)  # results that are arguments of another name
SOLUTION, NULL_PARTS = "least_norm", "null_parts"  # names of programs with branches


class Constrained(NamedTuple):
    """The parts from which the derivatives of a constrained robot are built."""

    robot: System
    dynamics: GuardedProgram  # acceleration, force and strain as functions of q, v, tau and an optional target
    target: Program | None  # the target as a function of q, v and more, if it depends on the state
    every: ConstraintRows  # all rows
    kept: ConstraintRows  # rows that do not depend on others of the same body
    reduction: Reduction  # the map between the two


def constrained_slopes(c: Constrained, doc: str) -> Program:
    """Return the program for derivatives of constrained dynamics.

    The program solves the differentiated equations of motion and constraint once for all columns. For a single state it uses
    forward differentiation, in lanes; if rows depend on each other in general, it always does. States of lower rank are solved
    by orthogonal factors.
    """
    before = (c.target,) if c.target else ()
    own = c.dynamics.given("target") if c.target else c.dynamics
    assert isinstance(own, GuardedProgram)
    dynamics, again = own.program, own.careful
    assert isinstance(again, ComposedProgram)
    forward = ComposedProgram("constrained", (*before, dynamics), RESULTS, first=STATE)
    plain, watched = (
        JacobianProgram(forward, doc, STATE),
        JacobianProgram(replace(forward, results=(*RESULTS, "strain")), doc, STATE, values=1),
    )
    whole = ComposedProgram(NAME, (*before, dynamics, *_solved_by_factors(c)), SLOPES, doc, ALSO, STATE)
    careful = replace(whole, parts=(*before, *again.parts, *_solved_by_orthogonal_factors(c)), results=(*SLOPES, "rank"))
    guard = replace(c.dynamics, program=plain, watched=watched, careful=careful, with_branches=(SOLUTION, NULL_PARTS, NAME))
    if c.reduction.dependent:
        return guard
    with_strain = replace(whole, results=(*SLOPES, "strain"))
    return replace(guard, program=OneInLanes(whole, plain), watched=OneInLanes(with_strain, watched))


def _solved_by_factors(c: Constrained) -> tuple[Program, ...]:
    n, m = c.robot.nv, len(c.kept.K)
    J = c.robot.bind("J", constraint_rows.row_jacobian, (Q,), (Output("J", (m, n)),), (c.kept,)).program
    inputs = (Input("dtau_da", (n, n)), *_given(n, m), DAMPING)
    solved = c.robot.bind(NAME, equations.solved_constraints, inputs, _outputs(c), (c.reduction,)).program
    assert isinstance(solved, KernelProgram)
    by_columns = tuple(tuple(f"d{y}_d{x}" for y in RESULTS) for x in STATE[:2])
    return *_slopes(c, c.kept, c.reduction), J, replace(solved, columns=by_columns)


def _solved_by_orthogonal_factors(c: Constrained) -> tuple[Program, ...]:
    n, m = c.robot.nv, len(c.every.K)
    pull, seen = pull_of_rows(c.robot, c.every), motion_of_rows(c.robot, c.every)
    M, square = Input("M", (n, n)), (Output("missed", (m,)), Output("g", (n,)), Output("rest", (n,)))
    vectors = Input("rows", (m,)), Input("force", (m,)), Input("target", (m,), optional=True)
    null = on_matrices(c.robot, NULL_PARTS, least_norm.null_parts, (M, Input("J", (m, n)), *vectors), square)
    by_missed = RenamedProgram(JacobianProgram(pull, "", ("q",)), (("force", "missed"), ("dpull_dq", "by_missed")))
    by_g = RenamedProgram(JacobianProgram(seen, "", ("q",)), (("v", "rest"), ("a", "g"), ("drows_dq", "by_g")))
    inputs = (M, *_given(n, m), Input("by_missed", (n, n)), Input("by_g", (m, n)))
    solved = on_matrices(c.robot, NAME, least_norm.solved_constraints, inputs, _outputs(c))
    null_parts = (seen, null.given("target") if c.target else null, by_missed, by_g)
    return *_slopes(c, c.every, all_rows(m)), *null_parts, solved


def _given(n: int, m: int) -> tuple[Input, ...]:
    return Input("J", (m, n)), Input("R", (n, 2 * n)), Input("S", (m, 2 * n))


def _outputs(c: Constrained) -> list[Output]:
    n, size = c.robot.nv, len(c.every.K)
    return [Output(name, (n if name.startswith("dacceleration") else size, n)) for name in SLOPES]


def pull_of_rows(robot: System, rows: ConstraintRows) -> Program:
    """Return the program of the joint forces `pull` (nv), J^T f, as a function of q and the forces of rows."""
    inputs, output = (Q, Input("force", (len(rows.K),))), Output("pull", (robot.nv,))
    return robot.bind("pull", equations.row_forces, inputs, (output,), (rows,)).program


def motion_of_rows(robot: System, rows: ConstraintRows) -> Program:
    """Return the program of the accelerations of `rows` (m), J a + J' v, as a function of q, v and a."""
    return robot.bind("seen", equations.row_motion, (Q, V, A), (Output("rows", (len(rows.K),)),), (rows,)).program


def _slopes(c: Constrained, rows: ConstraintRows, reduction: Reduction) -> tuple[Program, ...]:
    """Return the program for derivatives R and S of the equations, at the solution: the acceleration and the forces."""
    robot, n, m, size = c.robot, c.robot.nv, len(rows.K), len(c.every.K)
    square = [Input(name, (n, n)) for name in ("dtau_dq", "dtau_dv", "dpull_dq")]
    of_rows = [Input(f"drows_d{x}", (m, n)) for x in "qv"]
    targets = [Input(f"dtarget_d{x}", (size, n), optional=True) for x in "qv"]
    moved = robot.bind("R", equations.motion_slopes, square, (Output("R", (n, 2 * n)),)).program
    changed = robot.bind("S", equations.row_slopes, (*of_rows, *targets), (Output("S", (m, 2 * n)),), (reduction,)).program
    for target in targets if c.target else ():
        changed = changed.given(target.name)
    return (
        analytic(inverse_dynamics_derivatives(robot)).program,
        JacobianProgram(pull_of_rows(c.robot, c.every), "", ("q",)),
        JacobianProgram(motion_of_rows(c.robot, rows), "", ("q", "v")),
        *((JacobianProgram(c.target, "", ("q", "v")),) if c.target else ()),
        moved,
        changed,
    )


def on_matrices(
    robot: System, name: str, kernel: Callable[..., None], inputs: Sequence[Input], outputs: Sequence[Output], doc: str = ""
) -> KernelProgram:
    """Return the program of a kernel that reads nothing of the robot but the tree of its inertia matrix."""
    parent = tuple(map(int, robot._system.parent))
    return KernelProgram(name, kernel, (parent,), tuple(inputs), tuple(outputs), doc, owner=robot.name)
