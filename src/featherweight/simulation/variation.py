"""Parameters of robots that differ, from factors of the robot's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array
from ..model.types import JointType
from .arguments import numbers
from .smooth_motion import middle_armature

ROWS = ("dry_friction", "damping", "stiffness")


def varied_arrays(
    fleet: Any, given: Mapping[str, ArrayLike | None], parameters: ArrayLike | None, armature: ArrayLike | None
) -> dict[str, Array]:
    """Return fields of `VariedArrays` for factors by name, inertial parameters and armatures.

    Raises as `Simulation.vary` does.
    """
    forces, contacts, robots = fleet.model.forces, fleet.contacts, len(fleet.q)
    n = len(forces.springs.damping)
    sizes = {"friction": 1, "dry_friction": n, "damping": n, "stiffness": n, "gains": len(forces.actuators)}
    factor = {name: _factors(name, x, robots, sizes[name], forces) for name, x in given.items() if x is not None}
    varied: dict[str, Array] = {}
    if "friction" in factor:
        varied["friction"] = factor["friction"] * contacts.model.friction
    if "dry_friction" in factor:
        rows = contacts.rows
        rubs = rows.friction & (rows.holds == 0)
        scale = np.where(rubs, factor["dry_friction"][:, rows.dof], 1.0)
        for name in ("lower", "upper"):
            varied[name] = np.where(rubs, scale * np.where(rubs, getattr(rows, name), 0.0), getattr(rows, name))
    passive = fleet.model.passive
    for name in ("damping", "stiffness"):
        if name in factor and passive:
            varied[name] = factor[name] * getattr(forces.springs, name)
    springs = forces.springs
    if passive and len(springs.bent) and {"damping", "stiffness"} & set(factor):
        varied["bends"] = np.tile(springs.bends, (robots, 1, 1))
        for name, rows in (("stiffness", slice(0, 2)), ("damping", slice(2, 4))):
            if name in factor:
                varied["bends"][:, rows] *= factor[name][:, None, springs.bent]
    if "gains" in factor:
        drives = np.tile(forces.drives.values, (robots, 1, 1))
        drives[:, 1:5] *= factor["gains"][:, None, forces.owner]  # gain and bias
        varied["drives"] = drives
    implicit = passive and fleet.model.integrator == "semi-implicit" and bool({"damping", "stiffness"} & set(varied))
    if len(fleet.model.middle_armature):
        implicit = bool({"damping", "stiffness", "drives"} & set(varied))
    if parameters is not None or armature is not None or implicit:
        varied |= _inertias(fleet, parameters, armature, varied)
    return {name: np.ascontiguousarray(x) for name, x in varied.items()}


def _factors(name: str, given: ArrayLike, robots: int, size: int, forces: Any) -> Array:
    x = numbers(f"vary: {name}", given)
    if np.ndim(x) == 0:
        x = np.full(robots, x)
    if name in ROWS and x.ndim == 2 and x.shape[1] == forces.joint_rows < size:  # lengths keep theirs
        x = np.concatenate([x, np.ones((len(x), size - x.shape[1]))], axis=1)
        for rows, moving in forces.rows_of_places():
            x[:, rows] = x[:, moving]
    if x.shape not in ((robots,), (robots, size)):
        shapes = f"({robots},) or ({robots}, {size})"
        raise ValueError(f"vary: {name} must be a number or have shape {shapes} for {robots} robots; got shape {x.shape}")
    if not (np.isfinite(x).all() and (x >= 0.0).all()):
        worst = x[~(np.isfinite(x) & (x >= 0.0))][0]
        raise ValueError(f"vary: {name} must be finite factors, zero or more; got {worst}")
    return np.broadcast_to(x if x.ndim == 2 else x[:, None], (robots, size))


def _inertias(
    fleet: Any, parameters: ArrayLike | None, armature: ArrayLike | None, varied: Mapping[str, Array]
) -> dict[str, Array]:
    """Return inertial parameters, the joints' own armatures, and those with stiffness and damping of the step."""
    model, robots = fleet.model, len(fleet.q)
    robot, forces, h = model.robot, model.forces, model.h
    own = _of_each("armature", robot.armature if armature is None else armature, robot.armature.shape, robots)
    nominal = np.asarray(robot.inertial_parameters)
    bodies = _of_each("parameters", nominal if parameters is None else parameters, nominal.shape, robots)
    moving, more = own, {}
    rows = model.armature_rows()
    if len(model.middle_armature):
        L = np.broadcast_to(middle_armature(forces, h, model.passive, varied), (robots, len(model.middle_armature))).copy()
        for j in robot.model.joints:
            if j.type is JointType.FLOATING:  # floating joints keep their values
                L[:, j.v_slice] = model.middle_armature[j.v_slice]
        moving, more = own + L[:, rows], {"middle_armature": L}
    elif model.passive and model.integrator == "semi-implicit":
        damping, stiffness = (varied.get(name, getattr(forces.springs, name)[None]) for name in ("damping", "stiffness"))
        moving = own + h * damping[:, rows] + h * h * stiffness[:, rows] * (not model.by_file)
    return more | {"parameters": bodies, "own_armature": own, "armature": np.broadcast_to(moving, own.shape)}


def _of_each(name: str, x: ArrayLike, shape: tuple[int, ...], robots: int) -> Array:
    x = numbers(f"vary: {name}", x)
    if x.ndim == 0 and name == "armature":
        x = np.full(shape, x)
    if x.shape not in (shape, (robots, *shape)):
        raise ValueError(f"vary: {name} must have shape {shape} or {(robots, *shape)} for {robots} robots; got shape {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError(f"vary: {name} must be finite numbers; got {x[~np.isfinite(x)][0]}")
    if name == "armature" and (x < 0.0).any():
        raise ValueError(f"vary: armature must be zero or more; got {x.min():g}")
    return np.broadcast_to(x, (robots, *shape))
