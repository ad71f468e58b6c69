"""Parts of programs for rates along the motion, and for functions of the spanning tree of a robot with loops."""

from __future__ import annotations

from collections.abc import Callable

from ..algorithms import integration
from ..algorithms.mechanisms import spanning
from ..engine.derivative_program import PushforwardProgram
from ..engine.program import ComposedProgram, CoreShape, Input, KernelProgram, Output, Program
from .arguments import Q, V
from .system import System

SPANNING_Q, SPANNING_V = "spanning_q", "spanning_v"


def motion_parts(robot: System) -> tuple[Program, ...]:
    """Return the programs that compute `spanning_q`, `spanning_v`, G with spanning_v = G v, and G's rate `G_dot` (n, nv).

    Their inputs are q and v.
    """
    n, nv = len(robot.model.tree.parent), robot.nv
    G = robot.bind("velocity_matrix", spanning.velocity_matrix, (Q,), (Output("G", (n, nv)),)).program
    return (
        robot.bind(
            "motion", spanning.motion, (Q, V), (Output(SPANNING_Q, (robot.model.nq,)), Output(SPANNING_V, (n,)))
        ).program,
        G,
        direction((nv,)),
        PushforwardProgram(G),
    )


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
