"""Regressors of a robot's dynamics, and the parameters in which the dynamics are linear."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import regressors
from ..algorithms.regressors import ARMATURE, COULOMB, PARAMETERS, VISCOUS, JointColumns
from ..engine.function import CompiledFunction
from ..engine.program import Output
from ..model.inertial_parameters import NAMES, inertial_parameters
from ..model.model import MovingJoint
from ..model.types import JointType
from ..names import choose_from
from ..summaries import Several, summarized
from .second_derivatives import TwiceDifferentiable
from .system import placements

Array = np.ndarray[Any, np.dtype[Any]]
Chosen = bool | Iterable[str]
"""Names of joints, or all joints that may have a drive or a bearing: all except floating joints."""


@summarized
class Regressor(NamedTuple):
    """A function with tau = function(q, v, a) @ parameters: ten parameters for each body, then parameters of joints."""

    function: CompiledFunction[Any]
    names: tuple[str, ...]  # (p) names of the parameters
    values: Array  # (p) values of the robot
    bodies: tuple[str, ...]


class Identifiable(TwiceDifferentiable):
    """A system whose dynamics are linear in the inertias of its bodies."""

    @property
    def inertial_parameters(self) -> Array:
        """(nbodies, 10): m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz of each of `bodies`, including all links fixed to it.

        c is the centre of mass and I the rotational inertia about the origin, in the body's frame of the file (Pinocchio's
        `toDynamicParameters`). Regressors take the flattened array, one body after the other.
        """
        return inertial_parameters(self.model)

    @property
    def inertial_parameter_names(self) -> tuple[str, ...]:
        """(10 nbodies) names of the flattened parameters: "forearm.m", "forearm.mx", ..., "forearm.Izz", ..."""
        return Several(f"{body.name}.{name}" for body in self.bodies for name in NAMES)

    @cached_property
    def inverse_dynamics_regressor(self) -> CompiledFunction:
        """Function of q, v, a: the matrix Y (nv, 10 nbodies) with joint forces Y @ inertial_parameters.ravel().

        Atkeson, An and Hollerbach (1986) describe it. The forces are those of `inverse_dynamics` without the forces of
        armatures, which `extended_regressor` includes.
        """
        return self._regressor("inverse_dynamics_regressor", regressors.inverse_dynamics_regressor, ("q", "v", "a"), (self.nv,))

    @cached_property
    def kinetic_energy_regressor(self) -> CompiledFunction:
        """Function of q, v: the row (10 nbodies) whose product with the inertial parameters is the kinetic energy.

        The kinetic energy of armatures is not included.
        """
        return self._regressor("kinetic_energy_regressor", regressors.kinetic_energy_regressor, ("q", "v"))

    @cached_property
    def potential_energy_regressor(self) -> CompiledFunction:
        """Function of q: the row (10 nbodies) whose product with the inertial parameters is `potential_energy`."""
        return self._regressor("potential_energy_regressor", regressors.potential_energy_regressor, ("q",))

    def extended_regressor(self, friction: Chosen = False, armature: Chosen = False) -> Regressor:
        """Return the regressor of inverse dynamics with columns for joints, its parameter names and values.

        `friction` adds the coefficient of viscous friction (force per velocity) of each joint, and after these the dry
        friction (force against the direction of velocity) of each joint. `armature` adds reflected inertias. True selects all
        joints except floating joints; a list of names selects joints of the spanning tree, including followers. A joint with
        several degrees of freedom has one coefficient. The values are those of the robot; those of friction are
        `joints[k].damping` and `.friction`, which `inverse_dynamics` does not include.

        Raises ValueError for an unknown joint.
        """
        kinds = (VISCOUS, friction, "viscous"), (COULOMB, friction, "coulomb"), (ARMATURE, armature, "armature")
        columns = [(kind, j, name) for kind, chosen, name in kinds for j in self._chosen_joints(chosen)]
        names = (*self.inertial_parameter_names, *(f"{j.name}.{name}" for _, j, name in columns))
        own = [(j.damping, j.friction, j.armature)[kind] for kind, j, _ in columns]
        values, bodies = np.append(self.inertial_parameters, own), tuple(b.name for b in self.bodies)
        if not columns:
            return Regressor(self.inverse_dynamics_regressor, names, values, bodies)
        rows = {j.name: j.v_slice for j in self.model.joints}
        joints = JointColumns(
            tuple(kind for kind, *_ in columns),
            tuple(rows[j.name].start for _, j, _ in columns),
            tuple(rows[j.name].stop for _, j, _ in columns),
        )
        if joints not in self._extended:
            self._extended[joints] = self.bind(
                "extended_regressor",
                regressors.extended_regressor,
                ("q", "v", "a"),
                (Output("Y", (self.nv, len(names))),),
                (placements(self.model.placed_bodies), joints),
                doc=Identifiable.extended_regressor.__doc__,
            )
        return Regressor(self._extended[joints], names, values, bodies)

    @cached_property
    def _extended(self) -> dict[JointColumns, CompiledFunction[Any]]:
        return {}

    def _chosen_joints(self, chosen: Chosen) -> list[MovingJoint]:
        if isinstance(chosen, bool):
            return [j for j in self.joints if chosen and j.type is not JointType.FLOATING]
        known = {j.name: j for j in self.joints}
        wanted = [chosen] if isinstance(chosen, str) else list(chosen)
        if unknown := [name for name in wanted if name not in known]:
            raise ValueError(f"{self.name} has no moving joint {choose_from(unknown[0], list(known))}")
        return [known[name] for name in dict.fromkeys(wanted)]

    def _regressor(self, name: str, kernel: Any, inputs: tuple[str, ...], rows: tuple[int, ...] = ()) -> CompiledFunction:
        outputs = (Output("Y" if rows else "y", (*rows, PARAMETERS * len(self.bodies))),)
        bodies = (placements(self.model.placed_bodies),)
        return self.bind(name, kernel, inputs, outputs, bodies, doc=getattr(Identifiable, name).__doc__)
