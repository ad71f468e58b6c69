"""Rollouts on a device: one thread a robot, all steps in one launch, in free flight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..engine.backends.cuda.repeated import RepeatedCode
from ..engine.call_arrays import result_type
from ..engine.devices import ComputingPlace, place_of
from .arguments import check_inputs, numbers
from .device_steps import repeated_step
from .state_of_robots import StateOfRobots

Arrays = Mapping[str, Any]  # arguments of a rollout by name, None where they are not given
HERE = "roll out on this machine, with NumPy's arrays and without device="


def rolled_out(
    simulation: StateOfRobots, arrays: Arrays, steps: int | None, every: int, device: str | None
) -> tuple[Any, Any] | None:
    """States of `Simulation.rollout` where its arrays are, or on the device that is named; None on this machine."""
    given = {name: x for name, x in arrays.items() if x is not None}
    place = place_of("rollout", [(x, name) for name, x in given.items()], device)
    if place is None:
        return None
    _require_free_flight(simulation, given)
    if place.library is None:
        given, dtype = _of_numpy(simulation, given)
    else:
        there = place.executable(_code(simulation).call((), 0, 1))  # any number of steps: arrays are looked at only
        given = {name: there.array(x, f"rollout: {name}") for name, x in given.items()}
        dtype = _dtype([x.dtype for x in given.values()], given)
        _check_states(simulation, given)
    return _computed(simulation, place, given, steps, every, dtype)


def _computed(
    simulation: StateOfRobots, place: ComputingPlace, given: dict[str, Any], steps: int | None, every: int, dtype: np.dtype[Any]
) -> tuple[Any, Any]:
    robots = _robots(given["q"])
    steps = check_inputs({"tau": (given.get("tau"), (simulation.robot.nv,))}, robots, steps)
    if steps == 0:
        given.pop("tau", None)
    call = _code(simulation).call(tuple(given), steps, every)
    ordered = [given[x.name] for x in call.program.inputs]
    q, v = place.executable(call).run(ordered, (robots,), dtype, None, None)
    return q, v


def _code(simulation: StateOfRobots) -> RepeatedCode:
    code: RepeatedCode | None = vars(simulation).get("_repeated")
    if code is None:
        code = vars(simulation)["_repeated"] = RepeatedCode(repeated_step(simulation._model))
    return code


# what may be wrong


def _require_free_flight(simulation: StateOfRobots, given: Arrays) -> None:
    """Raise NotImplementedError for what the kernels do not have, with what to do."""
    robot, name = simulation.robot, f"{simulation.robot.name}: a rollout on a device"
    if robot.closed:
        raise NotImplementedError(f"{name} is of robots without loops and couplings; {HERE}")
    if robot.forward_dynamics.execution != "traced":
        raise NotImplementedError(f"{name} is of robots whose forward_dynamics is traced, and this one's is not; {HERE}")
    if simulation._model.forces.turning_springs and simulation._model.passive:
        raise NotImplementedError(f"{name} has no springs of ball joints; {HERE}")
    if len(simulation._model.forces.springs.bent) and simulation._model.passive:
        raise NotImplementedError(f"{name} has no springs or dampers that are not linear; {HERE}")
    if simulation._model.forces.lengths is not None:
        raise NotImplementedError(
            f"{name} has no tendons, limits of ball joints, dry friction of free joints or forces at frames; {HERE}"
        )
    if robot.model.carried:
        raise NotImplementedError(f"{name} has no gravity compensation, and this robot has; {HERE}")
    if robot.model.drag:
        raise NotImplementedError(f"{name} has no drag, and this robot is in a fluid; {HERE}")
    if simulation._touching:
        left_out = _leaving_out(simulation._stage)
        raise NotImplementedError(f"{name} is in free flight; leave out what acts (Simulation(..., {left_out})), or {HERE}")
    for argument in ("control", "external_forces"):
        if argument in given:
            raise NotImplementedError(f"{name} takes no {argument}; give joint forces tau, or {HERE}")
    if simulation._on_failure != "raise":
        raise NotImplementedError(f"{name} looks for no failures: on_failure must be 'raise'; or {HERE}")
    if any(map(len, simulation._fleet.varied)):
        raise NotImplementedError(f"{name} is of robots alike; call vary() without arguments first, or {HERE}")


def _leaving_out(contacts: Any) -> str:
    """The arguments of a simulation without what changes velocities here."""
    friction = contacts.rows.friction
    fields = [name for name, acts in (("limits", ~friction), ("friction", friction)) if acts.any()]
    joints = [f"joints=featherweight.JointOptions({', '.join(f'{name}=False' for name in fields)})"] if fields else []
    return ", ".join([*(["shapes=False and no spheres"] if contacts.bodies else []), *joints])


def _of_numpy(simulation: StateOfRobots, given: Arrays) -> tuple[dict[str, Any], np.dtype[Any]]:
    """Arrays of a rollout, checked as on this machine, and the type that is computed with."""
    dtype = _dtype([np.asarray(x).dtype for x in given.values()], given)
    v = given.get("v")
    q, v = simulation._checked(np.atleast_2d(numbers("q", given["q"])), None if v is None else np.atleast_2d(numbers("v", v)))
    arrays = {"q": q, "v": v} | ({"tau": numbers("tau", given["tau"])} if "tau" in given else {})
    return {name: x.astype(dtype) for name, x in arrays.items()}, dtype


def _dtype(dtypes: list[np.dtype[Any]], given: Arrays) -> np.dtype[Any]:
    """As of all functions: float32 if every argument is."""
    for name, dtype in zip(given, dtypes, strict=True):
        if dtype.kind not in "fiub":
            raise TypeError(f"rollout: {name} must hold real numbers; got dtype {dtype}")
    return result_type(dtypes)


def _check_states(simulation: StateOfRobots, given: Arrays) -> None:
    """Shapes of states on a device, whose numbers nobody reads."""
    q, v = given["q"], given.get("v")
    for name, x, n in (("q", q, simulation.robot.nq), ("v", v, simulation.robot.nv)):
        if x is not None and (x.ndim not in (1, 2) or x.shape[-1] != n or 0 in x.shape):
            raise ValueError(f"{name} must have shape (robots, {n}); got {x.shape}")
    if v is not None and _robots(q) != _robots(v):
        raise ValueError(f"q and v must be of as many robots; got shapes {q.shape} and {v.shape}")


def _robots(x: Any) -> int:
    return int(x.shape[0]) if x.ndim > 1 else 1
