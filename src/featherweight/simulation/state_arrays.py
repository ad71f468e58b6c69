"""States as plain arrays, for libraries whose transformations pass arrays through."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array
from ..summaries import summarized
from .state import State, StateLayout, copy_what_fits

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
    """The form of states as arrays, for one robot and scene, with room for a number of contacts.

    `example` is a state of one robot, which excludes the same pairs of shapes as all others.
    """

    def __init__(self, example: State, contacts: int) -> None:
        self.example, self._layout = example, example.layout.with_room(contacts)
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
        if (most := int(state.arrays["counts"].max())) > self._layout.room:
            raise ValueError(f"a robot has {most} contacts, but room for {self._layout.room}: give step(..., contacts={most})")
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
