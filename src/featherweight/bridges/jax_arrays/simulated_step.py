"""A step of a simulation as a function of JAX's arrays, with gradients through contact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ..arguments import function_of
from .conversions import arrays_of, call_python, promoted

if TYPE_CHECKING:
    from ...simulation import Simulation
    from ...simulation.step_function import StepFunction


def step(simulation: Simulation) -> SimulatedStep:
    """Return the step of a `Simulation` as a function of JAX's arrays, with gradients through contact.

        step = featherweight.jax.step(simulation)
        q, v = step(q, v, tau=tau, control=control)

    q (..., nq), v (..., nv), tau (..., nv) and control (..., nu) broadcast; tau and control default to zero. The function uses
    the robot, step size, ground and contact model of the simulation, not its state, and does not change it. `jit`, `vmap`,
    `grad`, `vjp`, `jacrev` and `lax.scan` work; forward differentiation (`jvp`, `jacfwd`) and second derivatives do not. XLA
    calls Python for each step, once for all robots of a batch. The derivative is that of `Simulation.derivatives`, which
    processes one robot after the other.

    Gradients with respect to configurations are tangent to their manifold, as with `wrap`. Raises TypeError for an argument
    that is not a simulation. Calls raise ValueError for wrong shapes. A step that fails ends the computation with the message
    of `SimulationError`.
    """
    return SimulatedStep(function_of(simulation, "step", "Simulation"))


class ArrayState(NamedTuple):
    """The state after a step."""

    q: jax.Array  # (..., nq)
    v: jax.Array  # (..., nv)


@dataclass(frozen=True)
class SimulatedStep:
    """A step of a simulation as a function of JAX's arrays, made by `featherweight.jax.step`."""

    function: StepFunction

    def __call__(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, control: ArrayLike | None = None
    ) -> ArrayState:
        """Return the state after a step, as `step` describes. Raises TypeError for arguments that are not arrays of numbers."""
        f = self.function
        inputs = {"tau": tau, "control": control}
        given = {"q": q, "v": v} | {name: jnp.zeros(f.sizes[name]) if x is None else x for name, x in inputs.items()}
        arrays = f.arranged([*arrays_of(f.name, given).values()], jnp)
        return ArrayState(*_step(f, *promoted(arrays, arrays[:2])))


def _value(function: StepFunction, *args: jax.Array) -> tuple[jax.Array, ...]:
    return call_python(function, [x.shape for x in args[:2]], args, "broadcast_all")


def _backward(function: StepFunction, args: Any, bars: Any) -> Any:
    return call_python(function.pullback, [x.shape for x in args], (*args, *bars), "broadcast_all")


_step: Any = jax.custom_vjp(_value, nondiff_argnums=(0,))
_step.defvjp(lambda function, *args: (_value(function, *args), args), _backward)
