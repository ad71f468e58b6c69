"""A step of a simulation as a function of arrays, for libraries that differentiate.

Contacts keep no memory between calls: each step starts as if the robots had been placed at the given state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import integration
from ..array_types import Array
from ..engine.forks import new_lock
from ..engine.function import CompiledFunction
from ..engine.program import Output
from ..robot.arguments import Q, V
from ..summaries import summarized


@summarized
class SteppedState(NamedTuple):
    """The state after a step."""

    q: Any  # (..., nq)
    v: Any  # (..., nv)


@summarized
class StepGradients(NamedTuple):
    """Cotangents of the arguments of a step."""

    q: Array  # (..., nq) tangent to the configuration manifold
    v: Array  # (..., nv)
    tau: Array  # (..., nv)
    control: Array  # (..., nu)


class StepFunction:
    """The step of a copy of a simulation as a function; `Simulation.step_function` makes it.

    `step(q, v, tau, control)` returns the state after the step. Arguments are float64 arrays with the same leading axes;
    `sizes` gives their last axes. `pullback` multiplies by the transposed derivative. A lock serializes calls from several
    threads.
    """

    def __init__(self, simulation: Any) -> None:
        self._simulation, robot = simulation, simulation.robot
        self.name = f"step of {robot.name}"
        self.sizes = {"q": robot.nq, "v": robot.nv, "tau": robot.nv, "control": len(robot.controls)}
        self._rate: CompiledFunction[Any] = robot.bind(
            "configuration_rate", integration.write_configuration_rate, (Q, V), (Output("rate", (robot.nq,)),)
        )
        self._lock = new_lock()

    def __reduce__(self) -> tuple[object, ...]:
        return StepFunction, (self._simulation,)

    def __repr__(self) -> str:
        return f"<{self.name}: function of {', '.join(self.sizes)}>"

    def __call__(self, q: Array, v: Array, tau: Array, control: Array) -> SteppedState:
        """Return the state after a step. Raises as `Simulation.step` does."""
        batch, (q, v, tau, control) = self._rows(q, v, tau, control)
        if not len(q):
            return SteppedState(q.reshape(*batch, q.shape[1]), v.reshape(*batch, v.shape[1]))
        with self._lock:
            sim = self._put(q, v)
            sim.step(tau, control if control.shape[1] else None)
            return SteppedState(np.array(sim.q).reshape(*batch, q.shape[1]), np.array(sim.v).reshape(*batch, v.shape[1]))

    def pullback(self, q: Array, v: Array, tau: Array, control: Array, q_bar: Array, v_bar: Array) -> StepGradients:
        """Return cotangents of the arguments for given cotangents of the state after the step.

        The cotangents of q are projected on the tangent space. Raises as `Simulation.derivatives` does.
        """
        batch, (q, v, tau, control, q_bar, v_bar) = self._rows(q, v, tau, control, q_bar, v_bar)
        if not len(q):
            return StepGradients(*(x.reshape(*batch, x.shape[1]) for x in (q, v, tau, control)))
        given = control if control.shape[1] else None
        with self._lock:
            D = self._put(q, v).derivatives(tau, given)
            self._simulation.step(tau, given)
            after = self._simulation.q
        start, end = self._rates(q), self._rates(after)
        above = np.concatenate([np.einsum("nij,ni->nj", end, q_bar), v_bar], axis=1)
        below = np.einsum("nij,ni->nj", D.A, above)
        nv = v.shape[1]
        along = np.linalg.solve(np.einsum("nki,nkj->nij", start, start), below[:, :nv, None])
        found = (
            (start @ along)[..., 0], below[:, nv:], np.einsum("nij,ni->nj", D.B, above),
            np.einsum("nij,ni->nj", D.B_control, above) if given is not None else control,
        )  # fmt: skip
        return StepGradients(*(x.reshape(*batch, x.shape[1]) for x in found))

    def arranged(self, arrays: Sequence[Any], library: Any) -> list[Any]:
        """Return q, v, tau and control, arrays of any library, with the same leading axes.

        `library` is the module with `broadcast_shapes` and `broadcast_to`. Raises ValueError for wrong shapes.
        """
        for (name, size), x in zip(self.sizes.items(), arrays, strict=True):
            if x.ndim == 0 or x.shape[-1] != size:
                raise ValueError(f"{self.name}: {name} must have shape (..., {size}); got {tuple(x.shape)}")
        batch = library.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        return [library.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays]

    def _rows(self, *arrays: Array) -> tuple[tuple[int, ...], list[Array]]:
        """Return the leading axes, and the arrays with one axis in place of them. Raises ValueError for wrong shapes."""
        named = zip(
            (*self.sizes, "q_bar", "v_bar"), (*self.sizes.values(), *list(self.sizes.values())[:2]), arrays, strict=False
        )
        batch = np.shape(arrays[0])[:-1]
        for name, size, x in named:
            if np.shape(x) != (*batch, size):
                raise ValueError(f"{self.name}: {name} must have shape {(*batch, size)}; got {np.shape(x)}")
        rows = int(np.prod(batch))
        return batch, [np.array(x, np.float64, order="C").reshape(rows, np.shape(x)[-1]) for x in arrays]

    def _put(self, q: Array, v: Array) -> Any:
        """Place the robots at a state, as at the start of a simulation."""
        sim = self._simulation
        if sim.q.shape == q.shape:
            sim.reset(q, v, which=np.arange(len(q)))
        else:
            sim.reset(q, v)
        return sim

    def _rates(self, q: Array) -> Array:
        """Return R (n, nq, nv), the matrix from velocities v to rates of configurations R v."""
        columns: Array = self._rate(q[:, None], np.eye(self.sizes["v"]))
        return np.swapaxes(columns, 1, 2)
