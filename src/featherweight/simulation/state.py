"""States of simulations as values: what the next step reads, and what the last one wrote."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array
from ..checks import PositiveCount, checked, shown
from ..engine.loops.kernels import aligned_numbers
from .sensors.history import SensorHistory

REAL, WHOLE, BYTES = np.dtype(np.float64), np.dtype(np.int64), 8  # types of numbers of states, and the bytes of one


class Field(NamedTuple):
    """A part of a state: its shape for one robot, and whether it holds whole numbers."""

    shape: tuple[int, ...]
    whole: bool = False
    of_contacts: bool = False  # whether its first axis has a place for each contact

    @property
    def size(self) -> int:
        """The numbers of one robot."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its numbers."""
        return WHOLE if self.whole else REAL


class StateLayout:
    """The fields of states of one robot and scene, for a number of contacts.

    States of many robots are one block of memory: for each field the rows of all robots. `kind` has what identifies robot and
    scene, by name; `step` is the length of a step [s].
    """

    def __init__(self, kind: tuple[tuple[str, Any], ...], fields: dict[str, Field], capacity: int, step: float) -> None:
        self.kind, self.fields, self.capacity, self.step = kind, fields, capacity, step
        self.sizes = {name: x.size for name, x in fields.items()}
        self.size = sum(self.sizes.values())

    def with_capacity(self, capacity: int) -> StateLayout:
        """Return the layout for another number of contacts."""
        longer = {n: x._replace(shape=(capacity, *x.shape[1:])) if x.of_contacts else x for n, x in self.fields.items()}
        return StateLayout(self.kind, longer, capacity, self.step)

    def block(self, robots: int) -> Array:
        """Return memory for robots, filled with zeros."""
        return aligned_numbers(robots * self.size)

    def arrays(self, block: Array, robots: int) -> dict[str, Array]:
        """Return the fields (robots, ...) in a block."""
        found, begin = {}, 0
        for name, x in self.fields.items():
            found[name] = np.ndarray((robots, *x.shape), x.dtype, block, BYTES * begin)
            begin += robots * self.sizes[name]
        return found

    def rows(self, blocks: Array) -> dict[str, Array]:
        """Return the fields (k, ...) of k blocks (k, size) of one robot."""
        found, begin = {}, 0
        for name, x in self.fields.items():
            end = begin + self.sizes[name]
            found[name] = blocks[:, begin:end].view(x.dtype).reshape(len(blocks), *x.shape)
            begin = end
        return found

    def moved(self, blocks: Array, other: StateLayout) -> Array:
        """Return blocks (k, size) of one robot that have another layout, for another number of contacts, in this one."""
        found = np.zeros((len(blocks), self.size))
        copy_what_fits(other.rows(blocks), self.rows(found))
        return found

    def require(self, state: object) -> None:
        """Raise an error for anything but a state of this robot and scene."""
        if not isinstance(state, State):
            raise TypeError(f"a state must be a featherweight.State, such as simulation.state; got {shown(state)}")
        if [what for what, _ in self.kind] != [what for what, _ in state.layout.kind]:
            raise ValueError("the state was pickled by another version of Featherweight")
        for (what, own), (_, other) in zip(self.kind, state.layout.kind, strict=True):
            if own != other:
                raise ValueError(f"the state belongs to another robot or scene: {what}: {other!r} instead of {own!r}")


class State:
    """The state of a `Simulation` of one robot or of many, as a value: equal states have the same future, bit for bit.

        state = sim.state                                   # a copy, which later steps do not change
        sim.step(control=u)
        sim.state = state                                   # back, also in another simulation of the same robot and scene
        many = state.repeated(64)                           # states of 64 robots
        many[3] = sim.state
        states = sim.rollout(many, control=U, steps=30)     # 64 futures; `states.final` has their last states

    It holds configuration, velocity, time, activations and delays of actuators, contacts of the last step with their impulses,
    impulses of joint limits and dry friction, overlaps that are still being separated, pairs of shapes that the last reset
    excluded because they overlapped, and what sensors remember. Parameters that `Simulation.vary` changed, and inputs, belong
    to the simulation. States can be pickled and compared.
    """

    __slots__ = ("_arrays", "block", "enabled", "history", "layout", "single")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        layout: StateLayout,
        block: Array,
        single: bool,
        history: SensorHistory | None = None,
        enabled: Array | None = None,
    ) -> None:
        self.layout, self.block, self.single, self.history = layout, block, single, history
        self.enabled = enabled
        """Which pairs of shapes (pairs,) of all robots may touch; None if a reset cannot exclude any."""
        self._arrays: dict[str, Array] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return State, (self.layout, self.block, self.single, self.history, self.enabled)

    def __copy__(self) -> State:
        return State(self.layout, self.block.copy(), self.single, self.history and self.history.copy(), self.enabled)

    def __len__(self) -> int:
        return len(self.block) // self.layout.size

    @property
    def arrays(self) -> dict[str, Array]:
        """The fields (robots, ...) by name."""
        if self._arrays is None:
            self._arrays = self.layout.arrays(self.block, len(self))
        return self._arrays

    @property
    def q(self) -> Array:
        """The configuration, (nq,) or (robots, nq)."""
        return self._seen("q")

    @property
    def v(self) -> Array:
        """The velocity, (nv,) or (robots, nv)."""
        return self._seen("v")

    @property
    def activation(self) -> Array:
        """Activations of actuators, followed by the states of delays, (n,) or (robots, n)."""
        return self._seen("act")

    @property
    def time(self) -> float:
        """The time [s]; of many robots, that of the first."""
        return float(self.times[0])

    @property
    def times(self) -> Array:
        """The time of each robot (robots,) [s]."""
        begin, now, since = (self.arrays[name] for name in ("set_time", "steps", "set_step"))
        times: Array = time_of(begin, now, since, self.layout.step)
        return times

    def _seen(self, name: str) -> Array:
        x = self.arrays[name]
        x = (x[0] if self.single else x).view()
        x.flags.writeable = False
        return x

    # several robots

    def __getitem__(self, which: Any) -> State:
        """Return the state of a robot, or those of some: numbers, a slice or a mask (robots,)."""
        single = isinstance(which, (int, np.integer))
        numbers = self._numbers(which)
        other = State(self.layout, self.layout.block(len(numbers)), single, enabled=self.enabled)
        for name, x in other.arrays.items():
            x[:] = self.arrays[name][numbers]
        other.history = self.history and self.history.of_robots(numbers)
        return other

    def __setitem__(self, which: Any, state: State) -> None:
        """Replace the states of robots by one state, or by one for each.

        Raises ValueError for those of another scene, and for those that exclude other pairs of shapes.
        """
        self.layout.require(state)
        numbers, capacity = self._numbers(which), max(self.layout.capacity, state.layout.capacity)
        if len(state) not in (1, len(numbers)):
            raise ValueError(f"State: {len(numbers)} robots need 1 state or {len(numbers)}; got {len(state)}")
        if not np.array_equal(self.enabled, state.enabled):  # type: ignore[arg-type]
            raise ValueError("State: other pairs of shapes overlapped at the start of these robots, and are excluded")
        if capacity > self.layout.capacity:
            larger = self.with_capacity(capacity)
            self.layout, self.block, self._arrays = larger.layout, larger.block, None
        given = state.with_capacity(capacity)
        for name, x in self.arrays.items():
            x[numbers] = given.arrays[name]
        if self.history is not None and state.history is not None:
            self.history.put(numbers, state.history)

    def _numbers(self, which: Any) -> Array:
        return np.atleast_1d(np.arange(len(self))[which])

    @checked
    def repeated(self, robots: PositiveCount) -> State:
        """Return the states of many robots, each the same as this one, which must be that of one robot."""
        if len(self) != 1:
            raise ValueError(f"State.repeated: the state must be that of one robot; it has {len(self)}")
        return self[np.zeros(robots, np.int64)]

    # comparison, and capacity for contacts

    def with_capacity(self, capacity: int) -> State:
        """Return the state for another number of contacts, or itself."""
        if capacity == self.layout.capacity:
            return self
        layout = self.layout.with_capacity(capacity)
        other = State(layout, layout.block(len(self)), self.single, self.history and self.history.copy(), self.enabled)
        copy_what_fits(self.arrays, other.arrays)
        return other

    def __eq__(self, other: object) -> bool:
        """Return whether both states have the same future: all numbers are equal, bit for bit."""
        if not isinstance(other, State):
            return NotImplemented
        if (self.layout.kind, len(self)) != (other.layout.kind, len(other)) or self.history != other.history:
            return False
        if not np.array_equal(self.enabled, other.enabled):  # type: ignore[arg-type]
            return False
        capacity = max(self.layout.capacity, other.layout.capacity)
        a, b = (x.with_capacity(capacity)._of_contacts_that_exist() for x in (self, other))
        return a == b

    def _of_contacts_that_exist(self) -> list[bytes]:
        """Return all numbers, with zeros for contacts that do not exist."""
        exist = np.arange(self.layout.capacity) < self.arrays["counts"][:, None]
        found = []
        for name, x in self.arrays.items():
            there = exist.reshape(*exist.shape, *[1] * (x.ndim - 2)) if self.layout.fields[name].of_contacts else True
            found.append(np.where(there, x, 0).tobytes())
        return found

    def __repr__(self) -> str:
        of, many = dict(self.layout.kind)["robot"], "" if self.single else f", {len(self)} robots"
        return f"<State of {of!r}: t={self.time:g} s, q {self.q.shape}, v {self.v.shape}{many}>"


def copy_what_fits(given: dict[str, Array], goal: dict[str, Array]) -> None:
    """Copy the places that arrays of the same names have in common."""
    for name, x in goal.items():
        places = tuple(slice(min(a, b)) for a, b in zip(x.shape, given[name].shape, strict=True))
        x[places] = given[name][places]


def time_of(set_time: Any, steps: Any, set_step: Any, h: float) -> Any:
    """Return times [s] of states after numbers of steps h, given times that were set at other numbers."""
    return set_time + (steps - set_step) * h
