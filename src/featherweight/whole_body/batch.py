"""One tick of whole-body control for each of many states, on threads."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import Array, Vector
from ..engine.threads import share_out
from ..quadratic_programs.program import STEPS
from .result import WholeBodyBatch
from .workspace import Workspace


class Argument(NamedTuple):
    """An argument of a tick for many states."""

    name: str
    values: Array  # (..., *shape)
    place: Callable[[Workspace], Array]  # returns the memory (*shape) of a workspace for one state


def reference_rows(what: str, rows: slice, work: Workspace) -> Vector:
    """Return the memory of the "velocity" or "acceleration" of some rows of tasks."""
    return (work.tasks.velocity if what == "velocity" else work.tasks.acceleration)[rows]


def batch_shape(owner: str, arguments: Sequence[Argument], work: Workspace) -> tuple[int, ...]:
    """Return the leading axes of all arguments together. Raises ValueError if they do not broadcast."""
    leading = {x.name: x.values.shape[: x.values.ndim - x.place(work).ndim] for x in arguments}
    try:
        return np.broadcast_shapes(*leading.values())
    except ValueError:
        shapes = ", ".join(f"{name} {shape}" for name, shape in leading.items())
        raise ValueError(f"{owner}: leading axes do not broadcast: {shapes}") from None


def run_batch(
    workspaces: Sequence[Workspace], arguments: Sequence[Argument], shape: tuple[int, ...], statuses: Sequence[str], what: str
) -> WholeBodyBatch:
    """Return the results of all states (*shape), with one thread for each workspace. Each tick begins without active limits."""
    n, idle = math.prod(shape), deque(workspaces)
    result = workspaces[0].tick.result
    tau, acceleration, forces, wrenches = (np.empty((n, *x.shape)) for x in result)
    status, steps = np.empty(n, np.int64), np.empty(n, np.int64)
    own = [x.place(workspaces[0]).shape for x in arguments]
    rows = [np.broadcast_to(x.values, shape + one).reshape(n, *one) for x, one in zip(arguments, own, strict=True)]

    def piece(start: int, stop: int) -> None:
        work = idle.pop()
        program, result = work.tick.program, work.tick.result
        places = [x.place(work) for x in arguments]
        for k in range(start, stop):
            for into, x in zip(places, rows, strict=True):
                into[...] = x[k]
            program.before.size[0] = 0
            status[k] = work.run()
            steps[k] = program.counts[STEPS]
            tau[k], acceleration[k], forces[k], wrenches[k] = result
        idle.append(work)

    share_out(piece, n, len(workspaces), what=what)

    def whole(x: Array) -> Array:
        return x.reshape(shape + x.shape[1:])

    return WholeBodyBatch(
        whole(tau), whole(acceleration), whole(forces), whole(wrenches), whole(np.array(statuses)[status]), whole(steps)
    )
