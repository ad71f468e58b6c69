"""Motions of more robots than one machine can simulate: parameter sweeps and random initial states, in portions."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from inspect import signature
from threading import local
from typing import Any, NamedTuple

import numpy as np

from ..engine.lazy import lazy
from ..engine.lazy_blocks import Result, Sent, of_blocks
from ..names import choose_from
from ..summaries import summarized
from .arguments import check_count, numbers
from .simulation import Simulation

Array = Any  # NumPy's or Dask's
VARIED = tuple(signature(Simulation.vary).parameters)[1:]  # names of parameters that may differ between robots


@summarized
class Motions(NamedTuple):
    """States (robots, states, nq) and (robots, states, nv), and `failed` (robots,): which robots stopped at a failed step."""

    q: Array
    v: Array
    failed: Array


def sweep(
    make: Callable[[], Simulation],
    q: Array,
    v: Array = None,
    steps: int | None = None,
    *,
    tau: Array = None,
    control: Array = None,
    external_forces: Array = None,
    every: int = 1,
    vary: Mapping[str, Array] | None = None,
) -> Motions:
    """Simulate robots from q (robots, nq) and v (robots, nv), by `rollout` of the simulation that `make` returns.

        motions = featherweight.sweep(make, q, v, steps=1000, every=1000, vary={"friction": factors})

    With NumPy arrays, the call computes all motions here, at once. If an argument is a Dask array, the results are Dask arrays,
    which Dask's workers compute on demand: each chunk of robots is a portion, and each portion is one rollout. Dask sends
    `make` to the workers by cloudpickle, so it may be a lambda or a local function; each worker thread calls it once. Let
    `make` set `threads=1` if there are as many worker threads as processors, and `on_failure="stop"`: otherwise a
    SimulationError of one robot fails the whole sweep.

    tau, control and external_forces have shape (robots or 1, steps, ...). Each entry of `vary` is an argument of
    `Simulation.vary`, with a row for each robot. The results of a portion are bitwise the same wherever it is computed.

    Raises ValueError for wrong shapes and unknown names in `vary`, and TypeError if `make` does not return a Simulation or
    cannot be sent. `rollout` and `vary` raise all other errors, in which the first robot of a portion has number 0.
    """
    vary = dict(vary or {})
    if unknown := vary.keys() - VARIED:
        raise ValueError(f"vary has no {choose_from(min(unknown), list(VARIED))}")
    check_count("every", every, 1)
    inputs = {"tau": tau, "control": control, "external_forces": external_forces}
    given = {"q": q, "v": v, **inputs, **vary}
    arrays = {name: numbers(name, x) if lazy(x) is None else lazy(x) for name, x in given.items() if x is not None}
    steps = _number_of_steps({name: x for name, x in arrays.items() if name in inputs}, steps)
    _check_rows(arrays, once=inputs.keys())
    if all(isinstance(x, np.ndarray) for x in arrays.values()):
        return _roll_out(_made(make), arrays, vary.keys(), steps, every)
    return Motions(*_later(make, arrays, tuple(vary), steps, every))


def _made(make: Callable[[], Simulation]) -> Simulation:
    if not callable(make):
        raise TypeError(f"make must be a function that makes a Simulation; got {type(make).__name__}")
    made = make()
    if not isinstance(made, Simulation):
        raise TypeError(f"make must make a Simulation; it made {type(made).__name__}")
    return made


def _number_of_steps(inputs: Mapping[str, Any], steps: int | None) -> int:
    """Return the number of steps of the inputs, or `steps`. Raises ValueError if they differ or if neither is given."""
    for name, x in inputs.items():
        if x.ndim < 3:
            raise ValueError(f"{name} must have axes of robots, steps and elements; got shape {x.shape}")
        if steps is not None and x.shape[1] != steps:
            raise ValueError(f"{name} is for {x.shape[1]} steps; got steps={steps}")
        steps = x.shape[1]
    if steps is None:
        raise ValueError("give steps=, or tau, control or external_forces for each step")
    check_count("steps", steps, 1)
    return steps


def _check_rows(arrays: Mapping[str, Any], once: Any) -> None:
    """Check that each array has a row for each robot; inputs in `once` may have one row for all."""
    robots = arrays["q"].shape[0] if arrays["q"].ndim == 2 else None
    if robots is None or np.isnan(robots):
        raise ValueError(f"q must have shape (robots, nq), their number known; got {arrays['q'].shape}")
    for name, x in arrays.items():
        if x.ndim < 1 or x.shape[0] not in ((robots, 1) if name in once else (robots,)):
            raise ValueError(f"{name} must have a row for each of {robots} robots; got shape {x.shape}")


def _roll_out(simulation: Simulation, arrays: Mapping[str, Any], varied: Any, steps: int, every: int) -> Motions:
    """Return the motions of one portion."""
    if varied:
        simulation.vary()  # the portion before may have had another number of robots
        simulation.reset(arrays["q"], arrays.get("v"))
        simulation.vary(**{name: arrays[name] for name in varied})
    rest = {name: x for name, x in arrays.items() if name not in varied}
    q, v = simulation.rollout(rest.pop("q"), rest.pop("v", None), steps, every=every, **rest)
    return Motions(q, v, simulation.failed)


class _OfThread(local):
    """The simulation of each thread. Threads cannot share one, because it holds states."""

    simulation: Simulation | None = None

    def made(self, make: Callable[[], Simulation]) -> Simulation:
        if self.simulation is None:
            self.simulation = _made(make)
        return self.simulation


class Portions(Sent):
    """Rollouts of portions, with arrays in the order of `names`."""

    __name__ = "sweep"

    def __init__(
        self, make: Callable[[], Simulation], names: tuple[str, ...], varied: tuple[str, ...], steps: int, every: int
    ) -> None:
        super().__init__(make, names, varied, steps, every)
        self._make, self._names, self._how, self._mine = make, names, (varied, steps, every), _OfThread()

    def __call__(self, *blocks: Any) -> Any:
        arrays = dict(zip(self._names, blocks, strict=True))
        return _roll_out(self._mine.made(self._make), arrays, *self._how)


def _later(
    make: Callable[[], Simulation], arrays: Mapping[str, Any], varied: tuple[str, ...], steps: int, every: int
) -> list[Any]:
    """Return Dask arrays of q, v and failed."""
    robot = _made(make).robot
    for name, size in (("q", robot.nq), ("v", robot.nv)):
        if name in arrays and arrays[name].shape[1:] != (size,):
            raise ValueError(f"{name} must have shape (robots, {size}); got {arrays[name].shape}")
    states = 1 + steps // every
    results = Result("q", (states, robot.nq), float), Result("v", (states, robot.nv), float), Result("failed", (), np.bool_)
    call = Portions(make, tuple(arrays), varied, steps, every)
    try:
        pickle.dumps(call)
    except Exception as error:  # any exception: an object's __reduce__ may raise anything
        raise TypeError(
            f"make cannot be sent to Dask's workers: {error}; open files and create all other objects that cannot be sent "
            "inside make"
        ) from error
    return of_blocks(call, "sweep", [(x, x.shape[1:]) for x in arrays.values()], results)
