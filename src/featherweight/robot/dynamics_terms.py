"""The Coriolis matrix, static torques, and the power of joint forces."""

from __future__ import annotations

from typing import Any

from ..algorithms import coriolis_matrix as of_trees
from ..algorithms import crba, energy, rnea
from ..algorithms.mechanisms import on_spanning_tree as of_mechanisms
from ..engine.function import CompiledFunction
from ..engine.program import ComposedProgram, Input, Output
from .arguments import TAU, Q, V
from .compiled_member import compiled
from .dynamics import external_forces
from .spanning_motion import motion_parts, of_spanning_tree
from .system import System, body_placements


@compiled
def coriolis_matrix(robot: System) -> CompiledFunction:
    """Function of q, v: the matrix C (nv, nv) with C v + g the bias force and M' = C + Cᵀ (Echeandia and Wensing 2021).

    If velocities are rates of coordinates, C is the matrix of Christoffel symbols. The algorithms use composite bodies in
    their own frames ("local") or in the root's frame ("root"); the default is the one with fewer operations. With loops, C
    is Gᵀ (C G + M G'), where G is the Jacobian of the spanning tree's velocities ("projection").

        c = robot.coriolis_matrix(q, v) @ v  # as robot.bias_force(q, v) - robot.gravity_force(q)
    """
    if robot.closed:
        return _projected_coriolis(robot)
    kernels = {"local": of_trees.coriolis_matrix, "root": of_trees.coriolis_matrix_in_root}
    return coriolis_matrix.cheapest(robot, kernels, (Q, V), Output("C", (robot.nv, robot.nv)))


def _projected_coriolis(robot: System) -> CompiledFunction:
    n = len(robot.model.tree.parent)
    square = (n, n)
    names = ("spanning_C", "spanning_M", "G", "G_dot")
    shapes = square, square, (n, robot.nv), (n, robot.nv)
    inputs = [Input(name, shape) for name, shape in zip(names, shapes, strict=True)]
    parts = (
        *motion_parts(robot),
        of_spanning_tree(robot, of_trees.coriolis_matrix, "qv", Output("spanning_C", square)),
        of_spanning_tree(robot, crba.crba, "q", Output("spanning_M", square)),
        robot.bind("projected", of_mechanisms.projected_coriolis, inputs, (Output("C", (robot.nv, robot.nv)),)).program,
    )
    program = ComposedProgram("coriolis_matrix", parts, ("C",), coriolis_matrix.__doc__ or "")
    return CompiledFunction(program, robot.execution, "projection")


@compiled
def static_torque(robot: System) -> CompiledFunction:
    """Function of q: the joint forces tau (nv) that hold the robot still.

    They are g minus the joint forces of `external_forces`, if given, which are those of `inverse_dynamics`.

        push = robot.wrench("hand", force=[0.0, 0.0, -20.0])
        tau = robot.static_torque(q, external_forces=push(q))  # holds against the push
    """
    inputs, output = (Q, external_forces(robot)), Output("tau", (robot.nv,))
    return static_torque.bind(robot, rnea.static_torque, inputs, output, (body_placements(robot),))


@compiled
def mechanical_power(robot: System) -> CompiledFunction[Any]:
    """Function of v, tau: the power vᵀ tau [W] of joint forces.

    It equals the rate of the kinetic and potential energy if tau includes damping and friction and no external force acts.
    For robots with loops, v and tau are those of the independent joints; the forces that close the loops do no work.

        robot.mechanical_power(v, tau)  # [W]
    """
    return mechanical_power.bind(robot, energy.mechanical_power, (V, TAU), Output("power", ()))
