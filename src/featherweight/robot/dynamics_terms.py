"""The Coriolis matrix, static torques, and the power of joint forces."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from ..algorithms import coriolis_matrix, crba, energy, rnea
from ..algorithms.mechanisms import coriolis_matrix as of_mechanisms
from ..engine.function import CompiledFunction, cheapest
from ..engine.program import ComposedProgram, Input, Output
from .spanning_motion import motion_parts, of_spanning_tree
from .system import System, placements


class DynamicsTerms(System):
    """A system whose equation of motion is M a + C v + g = tau."""

    @cached_property
    def coriolis_matrix(self) -> CompiledFunction:
        """Function of q, v: the matrix C (nv, nv) with C v + g the bias force and M' = C + Cᵀ (Echeandia and Wensing 2021).

        If velocities are rates of coordinates, C is the matrix of Christoffel symbols. The algorithms use composite bodies in
        their own frames ("local") or in the root's frame ("root"); the default is the one with fewer operations. With loops, C
        is Gᵀ (C G + M G'), where G is the Jacobian of the spanning tree's velocities ("projection").
        """
        if self.closed:
            return self._projected_coriolis()
        kernels = {"local": coriolis_matrix.coriolis_matrix, "root": coriolis_matrix.coriolis_matrix_in_root}
        doc, output = DynamicsTerms.coriolis_matrix.__doc__, Output("C", (self.nv, self.nv))

        def candidate(name: str, kernel: Callable[..., None]) -> CompiledFunction:
            return self.bind("coriolis_matrix", kernel, ("q", "v"), (output,), doc=doc, algorithm=name)

        return cheapest({name: candidate(name, kernel) for name, kernel in kernels.items()})

    def _projected_coriolis(self) -> CompiledFunction:
        n = len(self.model.tree.parent)
        square = (n, n)
        names = ("spanning_C", "spanning_M", "G", "G_dot")
        shapes = square, square, (n, self.nv), (n, self.nv)
        inputs = [Input(name, shape) for name, shape in zip(names, shapes, strict=True)]
        parts = (
            *motion_parts(self),
            of_spanning_tree(self, coriolis_matrix.coriolis_matrix, "qv", Output("spanning_C", square)),
            of_spanning_tree(self, crba.crba, "q", Output("spanning_M", square)),
            self.bind("projected", of_mechanisms.projected_coriolis, inputs, (Output("C", (self.nv, self.nv)),)).program,
        )
        program = ComposedProgram("coriolis_matrix", parts, ("C",), DynamicsTerms.coriolis_matrix.__doc__ or "")
        return CompiledFunction(program, self.execution, "projection")

    @cached_property
    def static_torque(self) -> CompiledFunction:
        """Function of q: the joint forces tau (nv) that hold the robot still.

        They are g minus the joint forces of `external_forces`, if given, which are those of `inverse_dynamics`.
        """
        forces = Input("external_forces", (len(self.bodies), 6), optional=True)
        bodies = placements(self.model.placed_bodies)
        output, doc = Output("tau", (self.nv,)), DynamicsTerms.static_torque.__doc__
        return self.bind("static_torque", rnea.static_torque, ("q", forces), (output,), (bodies,), doc=doc)

    @cached_property
    def mechanical_power(self) -> CompiledFunction[Any]:
        """Function of v, tau: the power vᵀ tau [W] of joint forces.

        It equals the rate of the kinetic and potential energy if tau includes damping and friction and no external force acts.
        For robots with loops, v and tau are those of the independent joints; the forces that close the loops do no work.
        """
        doc: Any = DynamicsTerms.mechanical_power.__doc__
        return self.bind("mechanical_power", energy.mechanical_power, ("v", "tau"), (Output("power", ()),), doc=doc)
