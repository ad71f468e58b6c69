"""First derivatives of the dynamics of a robot: the available algorithms and the choice of the cheapest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..algorithms import forward_dynamics_derivatives as by_factors
from ..algorithms import idsva, rnea
from ..algorithms import inverse_dynamics_derivatives as recursive
from ..algorithms.mechanisms import rnea as of_mechanisms
from ..algorithms.mechanisms import spanning
from ..engine.derivative_program import ChainRule, JacobianProgram, OneInLanes
from ..engine.function import CompiledFunction, R, cheapest
from ..engine.program import ComposedProgram, FusedProgram, Input, KernelProgram, Output, Program
from .arguments import A, Argument, Q, V
from .compiled_member import compiled
from .dynamics import external_forces, forward_dynamics, inverse_dynamics, mass_matrix
from .system import System, body_placements

if TYPE_CHECKING:
    from .result_types import ForwardDynamicsDerivatives, InverseDynamicsDerivatives

STATE = Q, V, A
BY = tuple(x.name for x in STATE)


@compiled
def inverse_dynamics_derivatives(robot: System) -> CompiledFunction[InverseDynamicsDerivatives]:
    """Derivatives of inverse dynamics at q, v, a: dtau_dq, dtau_dv and dtau_da = M(q), (nv, nv) each.

    Derivatives by q are with respect to velocities. The algorithms are a recursion with composite bodies in their own
    frames ("local"; after Singh, Russell and Wensing 2022) or in the root's frame ("root"; their IDSVA), and forward
    differentiation ("forward, rnea"). For robots with loops, the chain rule applies the tree's derivatives ("chain"). The
    default is the algorithm with the fewest operations. `external_forces` are those of `inverse_dynamics`; they rotate
    with the bodies.

        dtau_dq, dtau_dv, M = robot.inverse_dynamics_derivatives(q, v, a)
    """
    if robot.closed:
        return _compared(robot, {"chain": _of_mechanism(robot)}, inverse_dynamics(robot))
    kernels = {"local": recursive.rnea_derivatives, "root": idsva.idsva}
    return _compared(robot, {name: _of_tree(robot, k) for name, k in kernels.items()}, inverse_dynamics(robot))


@compiled
def forward_dynamics_derivatives(robot: System) -> CompiledFunction[ForwardDynamicsDerivatives]:
    """Derivatives of forward dynamics at q, v, tau: da_dq, da_dv and da_dtau = M(q)⁻¹, (nv, nv) each.

    Derivatives by q are with respect to velocities. The algorithms are the derivatives of inverse dynamics with sparse
    factors of the mass matrix ("crba-ltdl, local"; Carpentier and Mansard 2018), and forward differentiation of the
    cheapest algorithm for forward dynamics ("forward, aba" ...). The default is the algorithm with the fewest operations.
    `external_forces` are those of `forward_dynamics`; they rotate with the bodies.

        da_dq, da_dv, da_dtau = robot.forward_dynamics_derivatives(q, v, tau)
    """
    square = (robot.nv, robot.nv)
    names = ("da_dq", "da_dv", "da_dtau")
    inputs: list[Argument] = [Q, V, *(Input(f"dtau_d{x}", square) for x in BY)]
    solved = robot.bind("solved", by_factors.accelerations_by_factors, inputs, [Output(name, square) for name in names])
    own = analytic(inverse_dynamics_derivatives(robot))
    parts = forward_dynamics(robot).alternatives["crba-ltdl"].program, own.program, solved.program
    doc = forward_dynamics_derivatives.__doc__ or ""
    program = ComposedProgram("forward_dynamics_derivatives", parts, names, doc)
    return _compared(robot, {f"crba-ltdl, {own.algorithm}": program}, forward_dynamics(robot))


def _compared(robot: System, programs: dict[str, Program], source: CompiledFunction[Any]) -> CompiledFunction[Any]:
    """Return the cheapest of programs for derivatives and forward differentiation of the source.

    Forward differentiation is left out if the source is too large or is rolled. It computes a single state if its directions
    fill the lanes.
    """
    if source.execution == "rolled" or source.too_large:
        return cheapest({name: CompiledFunction(program, robot.execution) for name, program in programs.items()})
    forward = source.copy().derivative()
    assert isinstance(forward.program, JacobianProgram)
    one = forward.program
    own = {name: CompiledFunction(OneInLanes(program, one), robot.execution) for name, program in programs.items()}
    return cheapest({**own, f"forward, {source.algorithm}": forward})


def analytic(function: CompiledFunction[R]) -> CompiledFunction[R]:
    """Return the cheapest algorithm for a derivative other than forward differentiation of the function."""
    if not function.algorithm.startswith("forward"):
        return function
    return next(iter(function.alternatives.values()))


def _of_tree(robot: System, kernel: Callable[..., None]) -> Program:
    outputs = [Output(f"dtau_d{x}", (robot.nv, robot.nv)) for x in BY]
    inputs, constants = (*STATE, external_forces(robot)), (body_placements(robot),)
    return inverse_dynamics_derivatives.bind(robot, kernel, inputs, outputs, constants).program


def _of_mechanism(robot: System) -> Program:
    """Return the program that applies the chain rule to tau = G^T tau_tree(q, G v, G a + g)."""
    bodies, tree = body_placements(robot), robot.model.tree
    n = len(tree.parent)
    names = ("spanning_q", "spanning_v", "spanning_a")
    state = [Output(name, (robot.model.nq if name == "spanning_q" else n,)) for name in names]
    arguments = (*(Input(y.name, y.shape) for y in state), external_forces(robot))
    torque = Output("spanning_tau", (n,))
    square = tuple(Output(f"dtau_d{name}", (n, n)) for name in names)
    projected = (Q, Input(torque.name, (n,)))

    def of_tree(kernel: Callable[..., None], outputs: tuple[Output, ...]) -> Program:
        return KernelProgram(kernel.__name__, kernel, (tree, bodies), arguments, outputs)

    parts = (
        robot.bind("expansion", of_mechanisms.expansion, STATE, state).program,
        robot.bind("tangent", spanning.velocity, (Q, V), (Output("spanning_q", (n,)),)).program,
        of_tree(rnea.rnea, (torque,)),
        of_tree(recursive.rnea_derivatives, square),
        robot.bind("projection", of_mechanisms.projection, projected, (Output("tau", (robot.nv,)),)).program,
    )
    chain = ChainRule(inverse_dynamics(robot).program, "", ("q", "v"), parts)
    doc = inverse_dynamics_derivatives.__doc__ or ""
    results = (("dtau_dq", "dtau_dv"), ("dtau_da",))
    return FusedProgram("inverse_dynamics_derivatives", (chain, mass_matrix(robot).program), results, doc)
