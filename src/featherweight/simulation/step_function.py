"""A step of a simulation as a function of states as arrays, for libraries that differentiate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import integration
from ..array_types import Array
from ..engine.forks import new_lock
from ..engine.function import CompiledFunction
from ..engine.program import Input, Output
from ..robot.arguments import Q, V
from ..summaries import summarized
from .arguments import with_unit_rotations
from .state import State, StateLayout, copy_what_fits


@summarized
class StepRates(NamedTuple):
    """Rates of the state after a step along rates of its arguments."""

    q: Array  # (..., nq)
    v: Array  # (..., nv)
    activation: Array  # (..., na)


@summarized
class StepGradients(NamedTuple):
    """Cotangents of the arguments of a step."""

    q: Array  # (..., nq) tangent to the configuration manifold
    v: Array  # (..., nv)
    activation: Array  # (..., na)
    tau: Array  # (..., nv)
    control: Array  # (..., nu)


class StepFunction:
    """The step of a copy of a simulation as a function of states as arrays; `Simulation.step_function` makes it.

    `step(state, tau, control)` returns the state after the step, with the bits of `Simulation.advance`. Arguments are arrays
    with the same leading axes; `sizes` gives their last axes. `pushforward` multiplies by the derivative, and `pullback` by the
    transposed derivative; changes of configurations that leave their manifold count by their projection on it. `started` is the
    state of one robot after a reset. A lock serializes calls from several threads.
    """

    def __init__(self, simulation: Any, contacts: int | None = None) -> None:
        """Take a simulation that nobody else moves. Arrays of states are for so many contacts of a robot."""
        self._simulation, self._contacts, robot = simulation, contacts, simulation.robot
        self.name = f"step of {robot.name}"
        excluding = simulation.state.enabled
        simulation.reset(simulation.q, simulation.v)
        every: State = simulation.state
        every.enabled = excluding
        simulation.state = every
        start = every[0]
        possible = min(start.layout.capacity, len(simulation.touching_links))
        self._form = StateForm(start, possible if contacts is None else contacts)
        self.started = self._form.arrays(start)
        self.sizes = self._form.sizes | {"tau": robot.nv, "control": len(robot.controls)}
        rate, velocity = Output("rate", (robot.nq,)), Output("v", (robot.nv,))
        self._rate: CompiledFunction = robot.bind("configuration_rate", integration.write_configuration_rate, (Q, V), (rate,))
        self._velocity: CompiledFunction = robot.bind(
            "configuration_velocity", integration.configuration_velocity, (Q, Input("rate", (robot.nq,))), (velocity,)
        )
        columns = self._rate(robot.neutral(), np.eye(robot.nv))
        self._squares = np.square(columns).sum(1)  # diagonal of RᵀR, of rates R v of configurations
        self._lock = new_lock()

    def __reduce__(self) -> tuple[object, ...]:
        return StepFunction, (self._simulation, self._contacts)

    def __repr__(self) -> str:
        return f"<{self.name}: function of {', '.join(self.sizes)}>"

    def arrays(self, state: State) -> StateArrays:
        """Return a `State` as arrays. Raises as `Simulation.advance` does, and ValueError for more contacts than these."""
        return self._form.arrays(state)

    def state(self, arrays: Sequence[Array]) -> State:
        """Return arrays, with one leading axis or none, as a `State`. Raises ValueError for wrong shapes."""
        leading, rows = self._rows(StateArrays(*arrays)._asdict())
        if len(leading) > 1:
            raise ValueError(f"{self.name}: a State has one leading axis or none; got {len(leading)}")
        made = self._state(rows)
        return made if leading else made[0]

    def __call__(self, state: Sequence[Array], tau: Array, control: Array) -> StateArrays:
        """Return the state after a step. Raises as `Simulation.advance` does, and ValueError for too many contacts."""
        leading, rows = self._rows({**StateArrays(*state)._asdict(), "tau": tau, "control": control})
        if not len(rows["q"]):
            return StateArrays(*state)
        with self._lock:
            after = self._simulation.advance(self._state(rows), tau=rows["tau"], control=_given(rows["control"]))
        return StateArrays(*(x.reshape(*leading, x.shape[1]) for x in self._form.arrays(after)))

    def pushforward(
        self, state: Sequence[Array], tau: Array, control: Array, after: Array, rates: Sequence[Array]
    ) -> StepRates:
        """Return rates of q, v and activations after the step; `after` is that q.

        `rates` are those of q, v, activations, tau and control. Raises as `Simulation.derivatives` does.
        """
        leading, rows = self._rows_of_derivatives(state, tau, control, after, zip(StepGradients._fields, rates, strict=True))
        if not len(rows["q"]):
            return StepRates(*(np.zeros((*leading, self.sizes[name])) for name in StepRates._fields))
        with self._lock:
            sim = self._simulation
            sim.state = self._state(rows)
            slopes = sim.derivatives(rows["tau"], _given(rows["control"]))
            along = self._velocity(rows["q"], rows["q along"])
            x = np.concatenate([along, rows["v along"], rows["activation along"]], axis=1)
            found = sum(
                (A @ y[..., None])[..., 0]
                for A, y in ((slopes.A, x), (slopes.B, rows["tau along"]), (slopes.B_control, rows["control along"]))
            )
            by_q, by_v, by_activation = self._split(found)
            ends = self._rate(rows["q after"], by_q), by_v, by_activation
        return StepRates(*(x.reshape(*leading, x.shape[1]) for x in ends))

    def pullback(
        self, state: Sequence[Array], tau: Array, control: Array, after: Array, bars: Sequence[Array]
    ) -> StepGradients:
        """Return cotangents of the arguments for cotangents `bars` of q, v and activations after the step; `after` is that q.

        The cotangents of q are projected on the tangent space. Raises as `Simulation.derivatives` does.
        """
        leading, rows = self._rows_of_derivatives(state, tau, control, after, zip(StepRates._fields, bars, strict=True))
        if not len(rows["q"]):
            return StepGradients(*(np.zeros((*leading, self.sizes[name])) for name in StepGradients._fields))
        with self._lock:
            self._simulation.state = self._state(rows)
            end = self._squares * self._velocity(rows["q after"], rows["q along"])
            above = np.concatenate([end, rows["v along"], rows["activation along"]], axis=1)
            below = self._simulation.derivative_products(above, rows["tau"], _given(rows["control"]))
            by_q, *others = self._split(below)
            found = self._rate(rows["q"], by_q / self._squares), *others
        return StepGradients(*(x.reshape(*leading, x.shape[1]) for x in found))

    def arranged(self, named: Mapping[str, Any], library: Any) -> list[Any]:
        """Return arrays of any library by name, such as a state and inputs, with the same leading axes.

        `library` is the module with `broadcast_shapes` and `broadcast_to`. Raises ValueError for wrong shapes, and TypeError
        for a memory of another type.
        """
        for name, x in named.items():
            if x.ndim == 0 or x.shape[-1] != self.sizes[name]:
                raise ValueError(f"{self.name}: {name} must have shape (..., {self.sizes[name]}); got {tuple(x.shape)}")
            if name == "memory" and not str(x.dtype).endswith("int32"):
                raise TypeError(f"{self.name}: the memory of a state must have the type int32, as it came; got {x.dtype}")
        leading = library.broadcast_shapes(*(x.shape[:-1] for x in named.values()))
        return [library.broadcast_to(x, (*leading, x.shape[-1])) for x in named.values()]

    def _rows_of_derivatives(
        self, state: Sequence[Array], tau: Array, control: Array, after: Array, bars: Iterable[tuple[str, Array]]
    ) -> tuple[tuple[int, ...], dict[str, Array]]:
        """Return the leading axes, and the arguments of a derivative as rows by name; " along" marks rates and cotangents."""
        given = {**StateArrays(*state)._asdict(), "tau": tau, "control": control, "q after": after}
        return self._rows(given | {f"{name} along": x for name, x in bars})

    def _split(self, rows: Array) -> list[Array]:
        """Split rows (n, 2 nv + na, ...) of states along velocities, and of inputs if there are any."""
        nv, na = self.sizes["v"], self.sizes["activation"]
        ends = np.cumsum([nv, nv, na, nv])
        return np.split(rows, ends if rows.shape[1] > ends[2] else ends[:2], axis=1)

    def _rows(self, named: Mapping[str, Any]) -> tuple[tuple[int, ...], dict[str, Array]]:
        """Return the leading axes, and the arrays with one axis in place of them. Raises ValueError for wrong shapes."""
        sizes = self.sizes | {"q after": self.sizes["q"]} | {f"{name} along": size for name, size in self.sizes.items()}
        leading = np.shape(named["q"])[:-1]
        for name, x in named.items():
            if np.shape(x) != (*leading, sizes[name]):
                raise ValueError(f"{self.name}: {name} must have shape {(*leading, sizes[name])}; got {np.shape(x)}")
        kinds = {name: np.int32 if name == "memory" else np.float64 for name in named}
        robots = int(np.prod(leading))
        return leading, {n: np.asarray(x, kinds[n], order="C").reshape(robots, sizes[n]) for n, x in named.items()}

    def _state(self, rows: Mapping[str, Array]) -> State:
        rows = dict(rows, q=with_unit_rotations(self._simulation.robot, rows["q"]))
        return self._form.state(StateArrays(*(rows[name] for name in StateArrays._fields)))


def _given(control: Array) -> Array | None:
    return control if control.shape[1] else None


NAMED = {"q": "q", "v": "v", "activation": "act"}  # arrays with fields of states, the first fields of each layout
MOST_PLACES = 4  # numbers of robots for which the places of numbers are kept


@summarized
class StateArrays(NamedTuple):
    """States as arrays of any library, with the same leading axes.

    `memory` has the bits of all other numbers, such as the time and the impulses of the last step.
    """

    q: Any  # (..., nq)
    v: Any  # (..., nv)
    activation: Any  # (..., na) activations of actuators, followed by the states of delays
    memory: Any  # (..., words) int32, the halves of numbers in double precision


class StateForm:
    """The form of states as arrays, for one robot and scene, for a number of contacts.

    `example` is a state of one robot, which excludes the same pairs of shapes as all others.
    """

    def __init__(self, example: State, contacts: int) -> None:
        self.example, self._layout = example, example.layout.with_capacity(contacts)
        self._ends = np.cumsum([self._layout.sizes[field] for field in NAMED.values()])
        self._places = lru_cache(MOST_PLACES)(self._places_in)
        alone = self.arrays(example)
        self.sizes: dict[str, int] = {name: x.shape[-1] for name, x in alone._asdict().items()}

    def arrays(self, state: State) -> StateArrays:
        """Return a state as arrays of NumPy.

        Raises TypeError for anything else, and ValueError for the state of another robot or scene, or with more contacts.
        """
        if type(state) is not State or state.layout is not self.example.layout:
            self._layout.require(state)
        if not np.array_equal(state.enabled, self.example.enabled):  # type: ignore[arg-type]
            raise ValueError("the state excludes other pairs of shapes, which overlapped at its start")
        if (most := int(state.arrays["counts"].max())) > self._layout.capacity:
            raise ValueError(
                f"a robot has {most} contacts, but capacity for {self._layout.capacity}: give step(..., contacts={most})"
            )
        rows = state.block[self._places(state.layout, len(state))]
        if state.history is not None:
            rows = np.concatenate([rows, state.history.rows()], axis=1)
        *named, rest = np.split(rows, self._ends, axis=1)
        return StateArrays(*(x[0] if state.single else x for x in (*named, np.ascontiguousarray(rest).view(np.int32))))

    def state(self, arrays: StateArrays) -> State:
        """Return arrays of NumPy, with one leading axis or none, as a state."""
        *named, memory = map(np.atleast_2d, arrays)
        rows = np.concatenate([*named, np.ascontiguousarray(memory).view(np.float64)], axis=1, dtype=np.float64)
        robots, like, size = len(rows), self.example, self._layout.size
        history = like.history and like.history.of_robots(np.zeros(robots, np.int64))
        if history is not None:
            history.put_rows(rows[:, size:])
        block = like.layout.block(robots)
        block[self._places(like.layout, robots)] = rows[:, :size]
        return State(like.layout, block, arrays.q.ndim == 1, history, like.enabled)

    def _places_in(self, layout: StateLayout, robots: int) -> Array:
        """Return the places (robots, numbers) of the numbers of arrays in the block of states."""
        places = np.zeros((robots, self._layout.size))
        copy_what_fits(layout.arrays(np.arange(float(robots * layout.size)), robots), self._layout.rows(places))
        return places.astype(np.int64)
