"""The part of a robot's dynamics that is linear in its parameters: regressors, and the parameters themselves."""

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
from .second_derivatives import TwiceDifferentiable
from .system import placements

Array = np.ndarray[Any, np.dtype[Any]]
Chosen = bool | Iterable[str]
"""Joints by name, or all that a drive or a bearing may be at: all but floating ones."""


class Regressor(NamedTuple):
    """tau = function(q, v, a) @ parameters: those of bodies, ten each, and then those of joints."""

    function: CompiledFunction[Any]
    names: tuple[str, ...]  # (p) of the parameters
    values: Array  # (p) of the robot
    bodies: tuple[str, ...]


class Identifiable(TwiceDifferentiable):
    """A system whose dynamics are linear in the inertias of its bodies."""

    @property
    def inertial_parameters(self) -> Array:
        """(nbodies, 10): m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz of each of `bodies`, all that is fixed to it included.

        c is the centre of mass and I the rotational inertia about the origin, in the body's frame of the file: Pinocchio's
        `toDynamicParameters`. Regressors take them flat, one body after the other.
        """
        return inertial_parameters(self.model)

    @property
    def inertial_parameter_names(self) -> tuple[str, ...]:
        """(10 nbodies) of the flat parameters: "forearm.m", "forearm.mx", ..., "forearm.Izz", ..."""
        return tuple(f"{body.name}.{name}" for body in self.bodies for name in NAMES)

    @cached_property
    def inverse_dynamics_regressor(self) -> CompiledFunction:
        """Y (nv, 10 nbodies) of q, v, a: joint forces are Y @ inertial_parameters.ravel() (Atkeson, An and Hollerbach 1986).

        But for those of armatures, which `extended_regressor` has. Of robots with loops they are those of `inverse_dynamics`.
        """
        return self._regressor("inverse_dynamics_regressor", regressors.inverse_dynamics_regressor, ("q", "v", "a"), (self.nv,))

    @cached_property
    def kinetic_energy_regressor(self) -> CompiledFunction:
        """The row (10 nbodies) of q, v whose product with the inertial parameters is the kinetic energy, without armatures'."""
        return self._regressor("kinetic_energy_regressor", regressors.kinetic_energy_regressor, ("q", "v"))

    @cached_property
    def potential_energy_regressor(self) -> CompiledFunction:
        """The row (10 nbodies) of q whose product with the inertial parameters is `potential_energy`."""
        return self._regressor("potential_energy_regressor", regressors.potential_energy_regressor, ("q",))

    def extended_regressor(self, friction: Chosen = False, armature: Chosen = False) -> Regressor:
        """The regressor of inverse dynamics with columns for joints after those of bodies, its names and the robot's values.

        `friction` adds for each joint the coefficient of viscous friction (force per velocity), and then for each that of dry
        friction (force against the velocity's direction); `armature` adds reflected inertias. True is all joints that are not
        floating, or joints are named; those of the spanning tree, followers too. A joint with several degrees of freedom has
        one coefficient for all. The values of friction are `joints[k].damping` and `.friction`, which `inverse_dynamics`
        leaves out.

        Raises ValueError for a joint that the robot does not have.
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
