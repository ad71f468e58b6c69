"""Parts of programs for rates along the motion, and for functions of the spanning tree of a robot with loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..algorithms import integration
from ..algorithms.mechanisms import spanning
from ..engine.derivative_program import JacobianProgram, PullbackProgram, PushforwardProgram
from ..engine.function import CompiledFunction
from ..engine.program import ComposedProgram, CoreShape, Input, KernelProgram, Output, Program, RenamedProgram
from .arguments import Q, V
from .system import System

SPANNING_Q, SPANNING_V = "spanning_q", "spanning_v"


def velocity_matrix(robot: System) -> CompiledFunction:
    """Return the function of q: the matrix G (n, nv) from the velocities of a closed robot to those of all its joints."""
    output = Output("G", (len(robot.model.tree.parent), robot.nv))
    return robot.bind("velocity_matrix", spanning.velocity_matrix, (Q,), (output,))


def motion_parts(robot: System) -> tuple[Program, ...]:
    """Return the programs that compute `spanning_q`, `spanning_v`, G with spanning_v = G v, and G's rate `G_dot` (n, nv).

    Their inputs are q and v.
    """
    n, G = len(robot.model.tree.parent), velocity_matrix(robot).program
    state = Output(SPANNING_Q, (robot.model.nq,)), Output(SPANNING_V, (n,))
    motion = robot.bind("motion", spanning.motion, (Q, V), state).program
    return motion, G, direction((robot.nv,)), PushforwardProgram(G)


def direction(tangent: CoreShape) -> Program:
    """Return the program that passes v as the direction `q_dot` of a configuration, for rates along the motion."""
    return KernelProgram("q_dot", integration.hand_on, (), (Input("v", tangent),), (Output("q_dot", tangent),))


def of_spanning_tree(robot: System, kernel: Callable[..., None], arguments: str, output: Output) -> Program:
    """Return a kernel for trees as a function of `spanning_q` ("q"), or of `spanning_q` and `spanning_v` ("qv")."""
    tree = robot.model.tree
    inputs = {"q": Input(SPANNING_Q, (robot.model.nq,)), "v": Input(SPANNING_V, (len(tree.parent),))}
    program = KernelProgram(kernel.__name__, kernel, (tree,), tuple(inputs[x] for x in arguments), (output,))
    robot.require_masses_of(program)
    return program


def rate_along_velocity(source: Program, name: str, result: str, doc: str | None) -> Program:
    """Return the program that computes `result` from q and v: the rate of a function of q along the motion.

    Forward differentiation of `source` gives the program.
    """
    pushforward = PushforwardProgram(source)
    parts, renamed = (direction(source.inputs[0].tangent), pushforward), ((pushforward.outputs[0].name, result),)
    return ComposedProgram(name, parts, (result,), doc or "", renamed, ("q", "v"))


def spanning_slopes(robot: System) -> CompiledFunction[Any]:
    """Return the derivatives of S v by q and v, and of Sᵀ f by q, as a function of q, v and f.

    S v are the velocities, and f the forces, of all joints of a closed robot.
    """
    output = Output("velocity", (len(robot.model.tree.parent),))
    velocity = robot.bind("spanning_velocity", spanning.velocity, (Q, V), (output,)).program
    back = ComposedProgram("mapped", (PullbackProgram(velocity),), ("v_bar",))
    parts = (
        RenamedProgram(JacobianProgram(velocity, "", ("q", "v")), (("dvelocity_dq", "swept"), ("dvelocity_dv", "spread"))),
        RenamedProgram(JacobianProgram(back, "", ("q",)), (("velocity_bar", "force"), ("dv_bar_dq", "mapped"))),
    )
    whole = ComposedProgram("spanning_slopes", parts, ("spread", "swept", "mapped"), "", (), ("q", "v", "force"))
    return CompiledFunction(whole, robot.execution)
