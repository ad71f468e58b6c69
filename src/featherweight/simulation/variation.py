"""Parameters of robots that differ, from factors of the robot's parameters; derivatives of steps by these parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..array_types import Array
from ..checks import argument, one_of
from ..collision.collision_scene import HEIGHTS, HULL
from ..collision.shape_parts import bounding_radius
from ..contact.joint_rows import JointRows
from ..model.types import JointType, ShapeType
from ..robot.robot import Robot
from .arguments import numbers
from .inverse_weights import Inertias
from .smooth_motion import middle_armature
from .state import State

ROWS = "dry_friction", "damping", "stiffness", "limits"
COMPLIANCE = {"solref": 2, "solimp": 5}  # numbers of each
RESIZED = ShapeType.SPHERE, ShapeType.CAPSULE, ShapeType.CYLINDER, ShapeType.BOX, ShapeType.ELLIPSOID


def varied_arrays(fleet: Any, given: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """Return fields of `VariedArrays` for arguments of `Simulation.vary` by name. Raises as it does."""
    forces, contacts, robots = fleet.model.forces, fleet.contacts, len(fleet.q)
    sizes, inertias = sizes_of_factors(forces), {name: given[name] for name in ("parameters", "armature") if name in given}
    factor = {name: _factors(name, given[name], robots, sizes[name], forces) for name in sizes if name in given}
    varied: dict[str, Array] = {}
    if "friction" in factor:
        varied["friction"] = factor["friction"] * contacts.model.friction
    if "shape_offsets" in given:
        moved = _of_each("shape_offsets", given["shape_offsets"], (len(fleet.model.robot.shapes), 3), robots)
        parts = contacts.touching.shapes
        varied["shapes"] = np.where((parts >= 0)[:, None], moved[:, np.maximum(parts, 0)], 0.0)
    if "shape_sizes" in given:
        varied |= _sizes(fleet, given["shape_sizes"])
    if "dry_friction" in factor:
        rows = contacts.rows
        rubs = rows.friction & (rows.holds == 0)
        scale = np.where(rubs, factor["dry_friction"][:, rows.dof], 1.0)
        for name in ("lower", "upper"):
            varied[name] = np.where(rubs, scale * np.where(rubs, getattr(rows, name), 0.0), getattr(rows, name))
    if "limits" in factor:
        varied["bound"] = _bounds(contacts.rows, factor["limits"])
    passive = fleet.model.passive
    for name in ("damping", "stiffness"):
        if name in factor and passive:
            varied[name] = factor[name] * getattr(forces.springs, name)
    springs = forces.springs
    if passive and len(springs.nonlinear) and {"damping", "stiffness"} & set(factor):
        varied["poly"] = np.tile(springs.poly, (robots, 1, 1))
        for name, rows in (("stiffness", slice(0, 2)), ("damping", slice(2, 4))):
            if name in factor:
                varied["poly"][:, rows] *= factor[name][:, None, springs.nonlinear]
    if "gains" in factor:
        varied["drives"] = with_gains(forces, factor["gains"])
    implicit = passive and fleet.model.integrator == "semi-implicit" and bool({"damping", "stiffness"} & set(varied))
    if len(fleet.model.middle_armature):
        implicit = bool({"damping", "stiffness", "drives"} & set(varied))
    if inertias or implicit:
        varied |= _inertias(fleet, inertias, varied)
    varied |= _compliance(fleet, factor, inertias)
    return {name: np.ascontiguousarray(x) for name, x in varied.items()}


def with_gains(forces: Any, factors: Array) -> Array:
    """Return the numbers of drives (..., 9, k) for factors (..., nu) of the gains of actuators."""
    drives = np.tile(forces.drives.values, (*factors.shape[:-1], 1, 1))
    drives[..., 1:5, :] *= factors[..., None, forces.owner]  # gain and bias
    return np.asarray(drives)


def _sizes(fleet: Any, given: ArrayLike) -> dict[str, Array]:
    """Return the sizes of the scene's shapes, and the radii of the balls around them."""
    shapes, scene, parts = fleet.model.robot.shapes, fleet.contacts.scene, fleet.contacts.touching.shapes
    factors = _of_each("shape_sizes", given, (len(shapes), 3), len(fleet.q))
    if not (factors > 0.0).all():
        raise ValueError(f"vary: shape_sizes must be positive factors; got {factors.min():g}")
    for k in np.flatnonzero((factors != 1.0).any(axis=(0, 2))):
        if shapes[k].type not in RESIZED:
            raise ValueError(
                f"vary: shape_sizes of {shapes[k].name!r} must be 1, because it is a {shapes[k].type}; the sizes of "
                f"{', '.join(RESIZED)} can vary"
            )
    if (scene.kind == HEIGHTS).any() and (factors != 1.0).any():
        raise ValueError("vary: shape_sizes cannot vary on height fields")
    sizes = scene.size * np.where((parts >= 0)[:, None], factors[:, np.maximum(parts, 0)], 1.0)
    radii = np.tile(scene.radius, (len(sizes), 1))
    for g in np.flatnonzero(parts >= 0):
        if scene.kind[g] < HULL:
            radii[:, g] = bounding_radius(scene.kind[g], sizes[:, g])
    return {"sizes": sizes, "radii": radii}


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
    if name in COMPLIANCE and (x == 0.0).any():
        raise ValueError(f"vary: {name} must be positive")
    return np.broadcast_to(x if x.ndim == 2 else x[:, None], (robots, size))


def _bounds(rows: JointRows, factors: Array) -> Array:
    """Return limits (robots, rows) of which ranges are multiplied by factors (robots, n), about their middle."""
    bounds = np.tile(rows.bound, (len(factors), 1))
    limits = np.flatnonzero(~rows.friction)
    for dof in np.unique(rows.dof[limits]):
        both = limits[rows.dof[limits] == dof]
        if len(both) == 2:
            middle = rows.bound[both].mean()
            bounds[:, both] = middle + factors[:, dof, None] * (rows.bound[both] - middle)
    return bounds


def _compliance(fleet: Any, factor: Mapping[str, Array], given_inertias: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """Return the numbers of compliant contacts and joint rows for factors of softness and for inertias, which scale them."""
    compliance, robots = fleet.contacts.compliance, len(fleet.q)
    given = {name: factor[name] for name in COMPLIANCE if name in factor}
    if compliance is None:
        if given:
            raise ValueError(f"vary: {next(iter(given))} needs compliant contacts, such as contact='compliant'")
        return {}
    inertias = None
    if given_inertias:
        each, differ = _own_inertias(fleet, given_inertias)
        inertias = Inertias(*(x if differ else x[:1] for x in each))
    elif not given:
        return {}
    contacts, rows = compliance.numbers(inertias, **given)
    return {name: np.broadcast_to(x, (robots, *x.shape[-2:])) for name, x in (("yielding", contacts), ("yielding_rows", rows))}


def sizes_of_factors(forces: Any) -> dict[str, int]:
    """Return how many factors each argument of `vary` has."""
    n = len(forces.springs.damping)
    return {"friction": 1, **COMPLIANCE, **dict.fromkeys(ROWS, n), "gains": len(forces.actuators)}


def _own_inertias(fleet: Any, given: Mapping[str, ArrayLike]) -> tuple[tuple[Array, Array], bool]:
    """Return inertial parameters and the joints' armatures of each robot, and whether these may differ."""
    robot = fleet.model.robot
    nominal = {"parameters": np.asarray(robot.inertial_parameters), "armature": robot.armature}
    bodies, joints = (_of_each(name, given.get(name, x), x.shape, len(fleet.q)) for name, x in nominal.items())
    return (bodies, joints), any(np.ndim(x) > nominal[name].ndim for name, x in given.items())


def _inertias(fleet: Any, given: Mapping[str, ArrayLike], varied: Mapping[str, Array]) -> dict[str, Array]:
    """Return inertial parameters, the joints' own armatures, and those with stiffness and damping of the step."""
    model, robots = fleet.model, len(fleet.q)
    robot, forces, h = model.robot, model.forces, model.h
    (bodies, own), _ = _own_inertias(fleet, given)
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


SMALL = 1e-6  # step of differences, relative to the parameter
FLOOR = 1e-3  # magnitude of a small inertial parameter relative to the greatest of its body
FACTORS = "friction", *COMPLIANCE, *ROWS, "gains"
OF_SHAPES = "shape_offsets", "shape_sizes"
VARIED = "parameters", "armature", *OF_SHAPES, *FACTORS
SIGNED = "parameters", "shape_offsets"
LENGTH = 0.1  # [m] scale of differences of positions


def present_values(simulation: Any, given: Mapping[str, Any], robots: int) -> dict[str, Array]:
    """Return the values (robots, numbers of each parameter) of all parameters, from those given to `vary`."""
    robot, forces = simulation.robot, simulation.forces
    values = {name: np.ones((robots, size)) for name, size in sizes_of_factors(forces).items()}
    values |= {"parameters": robot.inertial_parameters[None], "armature": robot.armature[None]}
    values |= {name: np.full((1, len(robot.shapes), 3), float(name == "shape_sizes")) for name in OF_SHAPES}
    for name, x in given.items():
        numbers, own = np.asarray(x, float), values[name].shape[1:]
        if numbers.ndim == 1 and name in FACTORS:
            numbers = numbers[:, None]
        values[name] = np.broadcast_to(numbers, np.broadcast_shapes(numbers.shape, (1, *own)))
    return {name: np.broadcast_to(x, (robots, *x.shape[1:])).reshape(robots, -1) for name, x in values.items()}


def parameter_derivatives(
    simulation: Any, state: State, given: Mapping[str, Any], names: Sequence[str], inputs: Mapping[str, Any]
) -> dict[str, Array]:
    """Return the derivatives (robots, 2 nv + na, numbers of the parameter) of the state after a step, by name.

    `simulation` is a copy that may be changed, `given` are the arguments of the last `vary`.
    """
    for name in names:
        argument("parameters", name, one_of(VARIED))
    values = present_values(simulation, given, len(state))
    robots, asked = len(state), list(dict.fromkeys(names))
    counts = [values[name].shape[1] for name in asked]
    columns = sum(counts)
    around = {name: np.repeat(values[name], 2 * columns, axis=0) for name in {*asked, *given}}
    distance, first = np.zeros((robots, columns)), 0
    for name, count in zip(asked, counts, strict=True):
        x, own = values[name], around[name].reshape(robots, columns, 2, count)
        small = SMALL * _magnitude(name, x)
        low = x - small if name in SIGNED else np.maximum(x - small, 0.0)
        for k in range(count):
            own[:, first + k, 0, k], own[:, first + k, 1, k] = x[:, k] + small[:, k], low[:, k]
        distance[:, first : first + count] = x + small - low
        first += count
    simulation.vary()  # which allows another number of robots
    simulation.state = state[np.repeat(np.arange(robots), 2 * columns)]
    simulation.vary(**{name: _as_given(name, x, simulation.robot) for name, x in around.items()})
    simulation.step(**{name: _of_all(x, axes, 2 * columns) for name, (x, axes) in inputs.items()})
    ends: State = simulation.state
    q, v, act = (x.reshape(robots, columns, 2, -1) for x in (ends.arrays["q"], ends.arrays["v"], ends.arrays["act"]))
    change = simulation.robot.difference(q[:, :, 1], q[:, :, 0]), v[:, :, 0] - v[:, :, 1], act[:, :, 0] - act[:, :, 1]
    slopes = np.swapaxes(np.concatenate(change, axis=2) / distance[:, :, None], 1, 2)
    return dict(zip(asked, np.split(slopes, np.cumsum(counts)[:-1], axis=2), strict=True))


def _magnitude(name: str, x: Array) -> Array:
    """Return the scale of the differences of parameters (robots, numbers)."""
    if name == "shape_offsets":
        return np.full(x.shape, LENGTH)
    if name != "parameters":
        return np.maximum(np.abs(x), FLOOR if name == "armature" else 1.0)
    bodies = np.abs(x).reshape(len(x), -1, 10)
    scale: Array = np.maximum(bodies, FLOOR * bodies.max(axis=2, keepdims=True)).reshape(x.shape)
    return scale


def _as_given(name: str, x: Array, robot: Robot) -> Array:
    """Return parameters (robots, numbers) as `vary` takes them."""
    if name == "parameters":
        return x.reshape(len(x), *robot.inertial_parameters.shape)
    if name in OF_SHAPES:
        x = x.reshape(len(x), len(robot.shapes), 3)
        constant = name == "shape_sizes" and np.array([s.type not in RESIZED for s in robot.shapes], bool)
        return np.where(np.reshape(constant, (-1, 1)), 1.0, x)
    return x[:, 0] if name == "friction" else x  # that of all contacts


def _of_all(x: Any, axes: int, robots: int) -> Any:
    """Return an input for so many robots in place of each; one without an axis of robots is that of all."""
    return x if x is None or np.ndim(x) == axes else np.repeat(np.asarray(x, float), robots, axis=0)
