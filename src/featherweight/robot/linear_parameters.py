"""Regressors of a robot's dynamics, and the parameters in which the dynamics are linear."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, NamedTuple

import numpy as np

from ..algorithms import regressors
from ..algorithms.regressors import ARMATURE, COULOMB, PARAMETERS, VISCOUS, JointColumns
from ..array_types import Array, Vector
from ..checks import NAME, SWITCH, checked, either, list_of
from ..engine.function import CompiledFunction
from ..engine.program import Output
from ..model.model import MovingJoint
from ..model.types import JointType
from ..names import UnknownNameError, choose_from
from ..summaries import summarized
from .arguments import A, Argument, Q, V
from .compiled_member import compiled
from .system import System, body_placements

Chosen = Annotated[bool | str | Iterable[str], either([SWITCH, NAME, list_of(NAME)])]
"""Names of joints, or all joints that may have a drive or a bearing: all except floating joints."""


@summarized
class Regressor(NamedTuple):
    """A function with tau = function(q, v, a) @ parameters: ten parameters for each body, then parameters of joints."""

    function: CompiledFunction
    names: tuple[str, ...]  # (p) names of the parameters
    values: Vector  # (p) values of the robot
    bodies: tuple[str, ...]


@compiled
def inverse_dynamics_regressor(robot: System) -> CompiledFunction:
    """Function of q, v, a: the matrix Y (nv, 10 nbodies) with joint forces Y @ inertial_parameters.ravel().

    Atkeson, An and Hollerbach (1986) describe it. The forces are those of `inverse_dynamics` without the forces of
    armatures, which `extended_regressor` includes.

        tau = robot.inverse_dynamics_regressor(q, v, a) @ robot.inertial_parameters.ravel()
    """
    return _regressor(inverse_dynamics_regressor, robot, regressors.inverse_dynamics_regressor, (Q, V, A), (robot.nv,))


@compiled
def kinetic_energy_regressor(robot: System) -> CompiledFunction:
    """Function of q, v: the row (10 nbodies) whose product with the inertial parameters is the kinetic energy.

    The kinetic energy of armatures is not included.
    """
    return _regressor(kinetic_energy_regressor, robot, regressors.kinetic_energy_regressor, (Q, V))


@compiled
def potential_energy_regressor(robot: System) -> CompiledFunction:
    """Function of q: the row (10 nbodies) whose product with the inertial parameters is `potential_energy`."""
    return _regressor(potential_energy_regressor, robot, regressors.potential_energy_regressor, (Q,))


@checked
def extended_regressor(robot: System, joint_friction: Chosen = False, armature: Chosen = False) -> Regressor:
    """Return the regressor of inverse dynamics with columns for joints, its parameter names and values.

    `joint_friction` adds the coefficient of viscous friction (force per velocity) of each joint, and after these the dry
    friction (force against the direction of velocity) of each joint. `armature` adds reflected inertias. True selects all
    joints except floating joints; a list of names selects joints of the spanning tree, including followers. A joint with
    several degrees of freedom has one coefficient. The values are those of the robot; those of friction are
    `joints[k].damping` and `.dry_friction`, which `inverse_dynamics` does not include.

    Raises ValueError for an unknown joint.

        regressor = robot.extended_regressor(joint_friction=True)
        tau = regressor.function(q, v, a) @ regressor.values
    """
    kinds = (VISCOUS, joint_friction, "viscous"), (COULOMB, joint_friction, "coulomb"), (ARMATURE, armature, "armature")
    columns = [(kind, j, name) for kind, chosen, name in kinds for j in chosen_joints(robot, chosen)]
    names = (*robot.inertial_parameter_names, *(f"{j.name}.{name}" for _, j, name in columns))
    own = [(j.damping, j.dry_friction, j.armature)[kind] for kind, j, _ in columns]
    values, bodies = np.append(robot.inertial_parameters, own), tuple(b.name for b in robot.bodies)
    if not columns:
        return Regressor(inverse_dynamics_regressor(robot), names, values, bodies)
    rows = {j.name: j.v_slice for j in robot.model.joints}
    joints = JointColumns(
        tuple(kind for kind, *_ in columns),
        tuple(rows[j.name].start for _, j, _ in columns),
        tuple(rows[j.name].stop for _, j, _ in columns),
    )

    def make() -> CompiledFunction:
        output, constants = Output("Y", (robot.nv, len(names))), (body_placements(robot), joints)
        kernel, doc = regressors.extended_regressor, extended_regressor.__doc__
        return robot.bind("extended_regressor", kernel, (Q, V, A), (output,), constants, doc=doc)

    return Regressor(robot._kept(("extended_regressor", joints), make), names, values, bodies)


def chosen_joints(robot: System, chosen: Chosen) -> list[MovingJoint]:
    if isinstance(chosen, bool):
        return [j for j in robot.joints if chosen and j.type is not JointType.FLOATING]
    known = {j.name: j for j in robot.joints}
    wanted = [chosen] if isinstance(chosen, str) else list(chosen)
    if unknown := [name for name in wanted if name not in known]:
        raise UnknownNameError(f"{robot.name} has no moving joint {choose_from(unknown[0], list(known))}")
    return [known[name] for name in dict.fromkeys(wanted)]


def _regressor(
    member: compiled[Array],
    robot: System,
    kernel: Callable[..., None],
    inputs: tuple[Argument, ...],
    rows: tuple[int, ...] = (),
) -> CompiledFunction:
    output = Output("Y" if rows else "y", (*rows, PARAMETERS * len(robot.bodies)))
    return member.bind(robot, kernel, inputs, output, (body_placements(robot),))
