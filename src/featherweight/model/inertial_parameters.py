"""The ten inertial parameters of each moving body, in its frame of the file, and models with other inertias or armatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array
from ..checks import real_array
from ..names import UnknownNameError, choose_from, listed
from ..spatial import Mat3, RigidInertia, Sym3, Vec3
from .inertia_checks import about_center, judged_inertias, rigid_inertia_of_row
from .model import Model, Placed
from .position_drives import OF_JOINTS
from .types import LARGEST, SMALLEST_MASS, Inertia, JointType, Pose, add, scale

NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Mass, mass times centre, and rotational inertia about the frame's origin, in Pinocchio's order."""


def inertial_parameters(model: Model) -> Array:
    """Return (nbodies, 10) parameters in the order of `NAMES`, of each moving body with all links that are fixed to it."""
    rows = [_parameters(_in_file(rigid_inertia_of_row(model, placed.row), placed)) for placed in model.placed_bodies]
    return np.array(rows).reshape(-1, len(NAMES))


def with_inertial_parameters(model: Model, parameters: ArrayLike) -> Model:
    """Return the same model with other parameters, (nbodies, 10) or flat.

    Raises ValueError, which names the body and the problem.
    """
    before = inertial_parameters(model)
    after = real_array(f"{model.name}: inertial parameters", parameters)
    if after.size != before.size or after.shape not in (before.shape, (before.size,)):
        raise ValueError(
            f"{model.name}: inertial parameters must have shape {before.shape} or ({before.size},); got {after.shape}"
        )
    after = after.reshape(before.shape)
    tree, bodies = model.tree, list(model.bodies)
    mass, moment, inertia = list(tree.mass), list(tree.moment), list(tree.inertia)
    for k in np.flatnonzero((after != before).any(axis=1)):  # unchanged bodies keep their exact zeros
        values = [float(x) for x in after[k]]
        _require_body(model, bodies[k].name, values)
        placed = model.placed_bodies[k]
        I = inertia_in_row(values, placed)
        mass[placed.row], moment[placed.row], inertia[placed.row] = I.mass, tuple(I.moment), tuple(I.rotational)
        m, x, y, z = values[:4]
        center = (x / m, y / m, z / m) if m else (0.0, 0.0, 0.0)
        bodies[k] = replace(bodies[k], inertia=Inertia(m, center, tuple(about_center(_rigid(values)))))
    changed = replace(
        model, bodies=tuple(bodies), tree=tree._replace(mass=tuple(mass), moment=tuple(moment), inertia=tuple(inertia))
    )
    last = [j.v_slice.stop - 1 for j in model.joints]
    return replace(changed, solid=all(x.solid for x in judged_inertias([rigid_inertia_of_row(changed, row) for row in last])))


def _require_body(model: Model, name: str, values: list[float]) -> None:
    """Raise ValueError for parameters that no model may have."""
    where = f"{model.name}: inertial parameters of body {name!r}"
    if not all(abs(x) <= LARGEST for x in values):
        raise ValueError(f"{where}: {values} are not finite numbers within ±{LARGEST:g}")
    m = values[0]
    if m < 0.0:
        raise ValueError(f"{where}: the mass is negative ({m:g})")
    if 0.0 < m < SMALLEST_MASS:
        raise ValueError(f"{where}: the mass {m:g} kg is too small for the computation; make it zero")
    if m == 0.0 and any(values[1:4]):
        raise ValueError(f"{where}: without mass its first moment must be zero too; got {values[1:4]}")
    if not (verdict := judged_inertias([_rigid(values)])[0]).possible:
        raise ValueError(
            f"{where}: the inertia about the centre of mass has the principal moment {verdict.lowest:.3g} kg m²; fit them so "
            "that they are physically consistent (featherweight.identification.fit_inertial_parameters)"
        )


def _rigid(values: Sequence[Any]) -> RigidInertia:
    m, x, y, z, xx, xy, yy, xz, yz, zz = values
    return RigidInertia(m, Vec3(x, y, z), Sym3(xx, xy, xz, yy, yz, zz))


def _parameters(I: RigidInertia) -> list[float]:
    J = I.rotational
    return [I.mass, *I.moment, J.xx, J.xy, J.yy, J.xz, J.yz, J.zz]


def _in_file(I: RigidInertia, placed: Placed) -> RigidInertia:
    x, y, z = placed.pose.p
    return I.translate(Vec3(0.0 - x, 0.0 - y, 0.0 - z)).rotate(_axes(placed).transpose())


def inertia_in_row(parameters: Sequence[Any], placed: Placed) -> RigidInertia:
    """Return the inertia of a body with parameters (10), scalars of any kind, in the frame of its row of the tree."""
    return _rigid(parameters).rotate(_axes(placed)).translate(Vec3(*placed.pose.p))


def _axes(placed: Placed) -> Mat3:
    return Mat3(*(Vec3(*row) for row in placed.pose.R))


ARMATURE = OF_JOINTS.worded("a finite number, zero or more, or such a number for each joint, in a list or in a dict by name")

Armature = Annotated[float | Mapping[str, float] | ArrayLike, ARMATURE]
"""Reflected inertias of joints, as `with_armature` takes them."""


def with_armature(model: Model, given: Armature) -> Model:
    """Return the same model with the given reflected inertias [kg m², kg], as `Robot.with_armature` takes them."""
    armature, known = _armature_by_name(model, given), [j.name for j in model.joints]
    if unknown := [name for name in armature if name not in known]:
        raise UnknownNameError(f"{model.name} has no moving joint {choose_from(unknown[0], known)}")
    rows = list(model.tree.armature)
    for j in model.joints:
        for row in range(j.v_slice.start, j.v_slice.stop):
            rows[row] = float(armature.get(j.name, rows[row]))
    joints = tuple(replace(j, armature=float(armature.get(j.name, j.armature))) for j in model.joints)
    return replace(model, joints=joints, tree=model.tree._replace(armature=tuple(rows)))


def _armature_by_name(model: Model, given: Any) -> Mapping[str, float]:
    """Return armatures by joint: those of a mapping, one for all joints except floating joints, or one for each of these."""
    if isinstance(given, Mapping):
        return given
    names = [j.name for j in model.joints if j.type is not JointType.FLOATING]
    if isinstance(given, tuple) and len(given) != len(names):
        wanted = f"a number or {len(names)} numbers, one for each of {listed(names)}"
        raise ValueError(f"{model.name}: armature must be {wanted}; got {len(given)}")
    return dict(zip(names, given if isinstance(given, tuple) else [given] * len(names), strict=True))


def only_compensated(model: Model) -> Model:
    """Return the model with only the compensated masses: its gravity forces are those of the compensation."""
    zeros = ((0.0,) * 3,) * len(model.tree.mass)
    bare = model.tree._replace(mass=(0.0,) * len(zeros), moment=zeros, inertia=((0.0,) * 6,) * len(zeros))
    return _with_weights(replace(model, tree=bare), 1.0)


def without_compensated(model: Model) -> Model:
    """Return the model without the compensated masses: its potential energy is that of gravity and the compensation."""
    return _with_weights(model, -1.0)


def _with_weights(model: Model, sign: float) -> Model:
    """Return the model with the compensated masses, times a sign, at the centres of their links."""
    tree, rows = model.tree, {b.name: placed for b, placed in zip(model.bodies, model.placed_bodies, strict=True)}
    mass, moment = list(tree.mass), list(tree.moment)
    for m in model.weight_compensated:
        row, pose = rows[str(m.body)]
        mass[row] += sign * m.mass
        moment[row] = add(moment[row], scale(sign * m.mass, (pose @ Pose(p=m.center)).p))
    return replace(model, tree=tree._replace(mass=tuple(mass), moment=tuple(moment)))
