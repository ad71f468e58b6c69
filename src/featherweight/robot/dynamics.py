"""The dynamics of a robot: joint forces, accelerations, the mass matrix and energies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..algorithms import aba, crba, crba_ltdl, energy, inverse, rnea
from ..algorithms import coriolis_matrix as of_trees
from ..algorithms.mechanisms import on_spanning_tree as of_mechanisms
from ..array_types import Array
from ..checks import ARRAY, argument
from ..engine.function import CompiledFunction, cheapest
from ..engine.program import ComposedProgram, Input, Output
from ..names import knows_keywords
from .arguments import TAU, A, Q, V
from .compiled_member import compiled
from .factorization import Factorization, Pattern, packed_size, pattern_of
from .spanning_motion import motion_parts, of_spanning_tree
from .system import System, body_placements

FACTORIZE = ("factorize",)  # a key


def external_forces(robot: System) -> Input:
    """Return the optional input for forces on the bodies; kernels that take it take `body_placements` too."""
    return Input("external_forces", (len(robot.bodies), 6), optional=True)


@compiled
def inverse_dynamics(robot: System) -> CompiledFunction:
    """tau (nv) = M(q) a + c(q, v) + g(q), by the recursive Newton-Euler algorithm (Featherstone 2008, table 5.1).

    The optional `external_forces` (..., nbodies, 6) act on the bodies: the force, and the torque about the origin of the
    body's frame in the file, both in the axes of that frame.

        tau = robot.inverse_dynamics(q, v, a)
    """
    inputs, output = (Q, V, A, external_forces(robot)), Output("tau", (robot.nv,))
    return inverse_dynamics.bind(robot, rnea.rnea, inputs, output, (body_placements(robot),))


@compiled
def forward_dynamics(robot: System) -> CompiledFunction:
    """The acceleration a (nv) under joint forces tau.

    There are two algorithms: the articulated-body algorithm ("aba"; Featherstone 2008, table 7.1), and the sparse factors
    of the mass matrix with back-substitution ("crba-ltdl"; Featherstone 2005). The default is the one with fewer
    operations for this robot; a division counts as eight. `algorithm=` selects one. `external_forces` are those of
    `inverse_dynamics`.

        a = robot.forward_dynamics(q, v, tau)  # (nv,); rows of states give (n, nv)
    """
    return cheapest_accelerations(forward_dynamics, robot, {"aba": aba.aba, "crba-ltdl": crba_ltdl.crba_ltdl})


def cheapest_accelerations(
    member: compiled[Array], robot: System, kernels: Mapping[str, Callable[..., None]]
) -> CompiledFunction:
    """Return forward dynamics by the cheapest of several kernels."""
    inputs, output = (Q, V, TAU, external_forces(robot)), Output("a", (robot.nv,))
    return member.cheapest(robot, kernels, inputs, output, (body_placements(robot),))


@compiled
def mass_matrix(robot: System) -> CompiledFunction:
    """The mass matrix M(q) (nv, nv), full and symmetric.

    The algorithm is the composite-rigid-body algorithm (Featherstone 2008, table 6.2).

        M = robot.mass_matrix(q)  # (nv, nv)
    """
    return mass_matrix.bind(robot, crba.crba, (Q,), Output("M", (robot.nv, robot.nv)))


@compiled
def inverse_mass_matrix(robot: System) -> CompiledFunction:
    """The inverse mass matrix M(q)⁻¹ (nv, nv), full and symmetric.

    There are three algorithms: a recursion of Θ(nv²) in one frame for all bodies ("global"; after Drumwright 2012), the
    same in the bodies' own frames ("local"), and the sparse factors of the mass matrix ("crba-ltdl"; Featherstone 2005).
    The default is the one with the fewest operations for this robot; a division counts as eight. `algorithm=` selects one.
    A robot that is too large for counting uses "global", and threads share the columns, except those of robots with loops.

        Minv = robot.inverse_mass_matrix(q)
    """
    output = Output("Minv", (robot.nv, robot.nv))
    whole = inverse_mass_matrix.bind(robot, inverse.inverse_global, (Q,), output, ((0, robot.nv),), part=1)
    others = {"local": inverse.inverse_local, "crba-ltdl": crba_ltdl.inverse_by_factors}
    ways = {name: inverse_mass_matrix.bind(robot, kernel, (Q,), output, algorithm=name) for name, kernel in others.items()}
    return cheapest({"global": whole, **ways})


@knows_keywords
def solve_mass_matrix(robot: System, q: npt.ArrayLike, B: npt.ArrayLike) -> Array:
    """Return M(q)⁻¹ B for matrices B (..., nv, m), in Θ(nv m) (Drumwright 2012, algorithm 1).

    Each m compiles a function. Raises ValueError for a wrong shape.

        J = robot.frame_jacobian("hand", q)
        mobility = J @ robot.solve_mass_matrix(q, J.T)  # (6, 6)
    """
    robot.require_motion("solve_mass_matrix")
    if type(B) is not np.ndarray or B.dtype.kind != "f":
        B = np.asarray(argument("solve_mass_matrix: B", B, ARRAY))
    if B.ndim < 2 or B.shape[-2] != robot.nv:
        raise ValueError(f"solve_mass_matrix: B must have shape (..., {robot.nv}, m); got {B.shape}")
    m = B.shape[-1]

    def make() -> CompiledFunction:
        inputs, output = (Q, Input("B", (robot.nv, m))), Output("result", (robot.nv, m))
        name, doc = "solve_mass_matrix", solve_mass_matrix.__doc__
        kernels: dict[str, Callable[..., None]] = {"aba": inverse.solve_mass_matrix}
        if robot.closed:
            kernels["crba-ltdl"] = crba_ltdl.solve_by_factors
        return cheapest({a: robot.bind(name, k, inputs, (output,), doc=doc, algorithm=a) for a, k in kernels.items()})

    return robot._kept(("solve_mass_matrix", m), make)(q, B)


@knows_keywords
def factorize(robot: System, q: npt.ArrayLike) -> Factorization:
    """Return the sparse factors M(q) = Lᵀ D L (Featherstone 2005) as an object with L, D, solve, logdet and products.

    For example:

        a = robot.factorize(q).solve(tau)  # M(q) a = tau
    """
    packed, pattern = _packed_factors(robot)
    return Factorization(packed(q), pattern, True)


def packed_factors(robot: System) -> CompiledFunction:
    """Return the function of q that computes the factors of `factorize`, packed."""
    return _packed_factors(robot)[0]


def _packed_factors(robot: System) -> tuple[CompiledFunction, Pattern]:
    """Return the function of `packed_factors`, and the pattern of the factors."""

    def make() -> tuple[CompiledFunction, Pattern]:
        output = Output("factors", (packed_size(robot.parent),))
        packed = robot.bind("factorize", crba_ltdl.packed_factors, (Q,), (output,), doc=factorize.__doc__)
        return packed, pattern_of(robot.parent)

    return robot._kept(FACTORIZE, make)


@compiled
def bias_force(robot: System) -> CompiledFunction:
    """The bias force c(q, v) + g(q) (nv): the joint forces under which all joint accelerations are zero.

    For example:

        a = robot.factorize(q).solve(tau - robot.bias_force(q, v))  # as forward_dynamics
    """
    return bias_force.bind(robot, rnea.bias_force, (Q, V), Output("tau", (robot.nv,)))


@compiled
def gravity_force(robot: System) -> CompiledFunction:
    """The gravity force g(q) (nv): the joint forces that hold the robot still.

    For example:

        tau = robot.gravity_force(q)  # holds the robot at rest
    """
    return gravity_force.bind(robot, rnea.gravity_force, (Q,), Output("tau", (robot.nv,)))


@compiled
def kinetic_energy(robot: System) -> CompiledFunction[Any]:
    """The kinetic energy 1/2 v^T M(q) v [J].

    The algorithms use the velocities of the bodies ("bodies") or the mass matrix ("crba"). The second is cheaper in
    `together` with a function that computes the mass matrix.

        energy = robot.kinetic_energy(q, v) + robot.potential_energy(q)
    """
    kernels = {"bodies": energy.kinetic_energy, "crba": energy.kinetic_energy_by_mass_matrix}
    return kinetic_energy.cheapest(robot, kernels, (Q, V), Output("energy", ()))


@compiled
def potential_energy(robot: System) -> CompiledFunction[Any]:
    """The potential energy in gravity [J]; it is zero when the centre of mass is at the world's origin.

    For example:

        robot.potential_energy(q)  # [J]; rows of configurations give an array
    """
    return potential_energy.bind(robot, energy.potential_energy, (Q,), Output("energy", ()))


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
