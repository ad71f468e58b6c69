"""Derivatives of the dynamics of a robot: the ways there are, of which the cheapest is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..algorithms import forward_dynamics_derivatives as by_factors
from ..algorithms import inverse_dynamics_derivatives as recursive
from ..algorithms import frames, rnea
from ..algorithms.mechanisms import rnea as of_mechanisms
from ..algorithms.mechanisms import spanning
from ..engine.derivative_program import ChainRule
from ..engine.function import CompiledFunction, cheapest
from ..engine.program import ComposedProgram, CoreShape, FusedProgram, Input, KernelProgram, Output, Program
from .system import placements

if TYPE_CHECKING:
    from .robot import Robot

BY = ("q", "v", "a")


def inverse_dynamics_derivatives(robot: Robot) -> CompiledFunction:
    """By the recursion in the frames of the bodies, within the chain rule for loops, or forward through inverse dynamics."""
    program = _of_mechanism(robot) if robot.closed else _of_tree(robot)
    named = {"chain" if robot.closed else "local": _named(robot, program)}
    return _with_forward(named, robot.inverse_dynamics)


def forward_dynamics_derivatives(robot: Robot) -> CompiledFunction:
    """By those of inverse dynamics and the factors of the inertia matrix, or forward through each way of forward dynamics."""
    analytic = next(f for name, f in robot.inverse_dynamics_derivatives.alternatives.items() if not name.startswith("forward"))
    square = (robot.nv, robot.nv)
    names = ("da_dq", "da_dv", "da_dtau")
    inputs = ("q", "v", *(Input(f"dtau_d{x}", square) for x in BY))
    solved = robot.bind("solved", by_factors.accelerations_by_factors, inputs, [Output(name, square) for name in names])
    value = robot.forward_dynamics.alternatives["crba-ltdl"]
    doc = type(robot).forward_dynamics_derivatives.__doc__ or ""
    parts = (value.program, analytic.program, solved.program)
    program = ComposedProgram("forward_dynamics_derivatives", parts, names, doc)
    return _with_forward({f"crba-ltdl, {analytic.algorithm}": _named(robot, program)}, robot.forward_dynamics)


def _named(robot: Robot, program: Program) -> CompiledFunction:
    return CompiledFunction(program, robot.execution)


def _with_forward(functions: dict[str, CompiledFunction], source: CompiledFunction) -> CompiledFunction:
    """The functions, and forward differentiation of each way to compute the source."""
    if not source.too_large and source.execution != "rolled":
        forward = source.derivative()
        functions |= {f"forward, {name}": f for name, f in forward.alternatives.items()}
    return cheapest(functions)


def _forces(robot: Robot) -> tuple[Input, Any]:
    """The argument, and where bodies are."""
    return Input("external_forces", (len(robot.bodies), 6), optional=True), placements(robot.model.placed_bodies)


def _of_tree(robot: Robot) -> Program:
    forces, bodies = _forces(robot)
    outputs = [Output(f"dtau_d{x}", (robot.nv, robot.nv)) for x in BY]
    doc = type(robot).inverse_dynamics_derivatives.__doc__
    name, kernel = "inverse_dynamics_derivatives", recursive.rnea_derivatives
    return robot.bind(name, kernel, (*BY, forces), outputs, (bodies,), doc=doc).program


def _of_mechanism(robot: Robot) -> Program:
    """The tree's derivatives within tau = G^T tau_tree(q, G v, G a + g)."""
    forces, bodies = _forces(robot)
    tree = robot.model.tree
    n = len(tree.parent)
    spanning_names = ("spanning_q", "spanning_v", "spanning_a")
    state = [Output(name, (robot.model.nq if name == "spanning_q" else n,)) for name in spanning_names]
    arguments = (*(Input(y.name, y.shape) for y in state), forces)
    torque = Output("spanning_tau", (n,))
    square = tuple(Output(f"dtau_d{name}", (n, n)) for name in spanning_names)

    def of_tree(kernel: Callable[..., None], outputs: tuple[Output, ...]) -> Program:
        return KernelProgram(kernel.__name__, kernel, (tree, bodies), arguments, outputs)

    parts = (
        robot.bind("expansion", of_mechanisms.expansion, BY, state).program,
        robot.bind("tangent", spanning.velocity, ("q", "v"), (Output("spanning_q", (n,)),)).program,
        of_tree(rnea.rnea, (torque,)),
        of_tree(recursive.rnea_derivatives, square),
        robot.bind("projection", of_mechanisms.projection, ("q", Input(torque.name, (n,))), (Output("tau", (robot.nv,)),)).program,
    )
    chain = ChainRule(robot.inverse_dynamics.program, "", ("q", "v"), parts)
    names = (("dtau_dq", "dtau_dv"), ("dtau_da",))
    doc = type(robot).inverse_dynamics_derivatives.__doc__ or ""
    return FusedProgram("inverse_dynamics_derivatives", (chain, robot.mass_matrix.program), names, doc)


def placement_tangents(count: int, batch: CoreShape) -> Program:
    """From homogeneous matrices and their rates, the velocities of frames in their own axes (*batch, 6)."""
    inputs = Input("placement", (count, 4, 4)), Input("rate", (count, 4, 4))
    output = Output("velocity", (*batch, 6), (count, 6))
    return KernelProgram("placement_tangent", frames.placement_tangent, (), inputs, (output,))
