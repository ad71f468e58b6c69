"""Derivatives of a step by the parameters of `Simulation.vary`, by central differences of steps of a fleet.

Each parameter has two robots of its own, with a slightly greater and a slightly smaller value. They take the step together,
from the same state and impulses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..array_types import Array
from ..checks import argument, one_of
from .state import State

SMALL = 1e-6  # step of differences, relative to the parameter
FLOOR = 1e-3  # magnitude of a small inertial parameter relative to the greatest of its body
FACTORS = "friction", "dry_friction", "damping", "stiffness", "gains"
VARIED = "parameters", "armature", *FACTORS


def present_values(simulation: Any, given: Mapping[str, Any], robots: int) -> dict[str, Array]:
    """Return the values (robots, numbers of each parameter) of all parameters, from those given to `vary`."""
    robot, forces = simulation.robot, simulation.forces
    n = len(forces.springs.damping)
    sizes = {"friction": 1, "dry_friction": n, "damping": n, "stiffness": n, "gains": len(forces.actuators)}
    values = {name: np.ones((robots, size)) for name, size in sizes.items()}
    values |= {"parameters": robot.inertial_parameters[None], "armature": robot.armature[None]}
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
        low = x - small if name == "parameters" else np.maximum(x - small, 0.0)
        for k in range(count):
            own[:, first + k, 0, k], own[:, first + k, 1, k] = x[:, k] + small[:, k], low[:, k]
        distance[:, first : first + count] = x + small - low
        first += count
    simulation.vary()  # which allows another number of robots
    simulation.state = state[np.repeat(np.arange(robots), 2 * columns)]
    simulation.vary(**{name: _as_given(name, x, simulation.robot.inertial_parameters.shape) for name, x in around.items()})
    simulation.step(**{name: _of_all(x, axes, 2 * columns) for name, (x, axes) in inputs.items()})
    ends: State = simulation.state
    q, v, act = (x.reshape(robots, columns, 2, -1) for x in (ends.arrays["q"], ends.arrays["v"], ends.arrays["act"]))
    change = simulation.robot.difference(q[:, :, 1], q[:, :, 0]), v[:, :, 0] - v[:, :, 1], act[:, :, 0] - act[:, :, 1]
    slopes = np.swapaxes(np.concatenate(change, axis=2) / distance[:, :, None], 1, 2)
    return dict(zip(asked, np.split(slopes, np.cumsum(counts)[:-1], axis=2), strict=True))


def _magnitude(name: str, x: Array) -> Array:
    """Return the scale of the differences of parameters (robots, numbers)."""
    if name != "parameters":
        return np.maximum(np.abs(x), FLOOR if name == "armature" else 1.0)
    bodies = np.abs(x).reshape(len(x), -1, 10)
    scale: Array = np.maximum(bodies, FLOOR * bodies.max(axis=2, keepdims=True)).reshape(x.shape)
    return scale


def _as_given(name: str, x: Array, bodies: tuple[int, ...]) -> Array:
    """Return parameters (robots, numbers) as `vary` takes them."""
    if name == "parameters":
        return x.reshape(len(x), *bodies)
    return x[:, 0] if name == "friction" else x  # that of all contacts


def _of_all(x: Any, axes: int, robots: int) -> Any:
    """Return an input for so many robots in place of each; one without an axis of robots is that of all."""
    return x if x is None or np.ndim(x) == axes else np.repeat(np.asarray(x, float), robots, axis=0)
