"""A step of a simulation as a function of states in JAX's arrays, with gradients through contact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ..arguments import array_state, function_of
from .conversions import arrays_of, promoted
from .step_primitive import call

if TYPE_CHECKING:
    from ...simulation import Simulation, State
    from ...simulation.step_function import StepFunction


def step(simulation: Simulation, *, contacts: int | None = None) -> SimulatedStep:
    """Return the step of a `Simulation` as a function of states in JAX's arrays, with gradients through contact.

        step = featherweight.jax.step(simulation)
        state = step.start(q, v)                            # or step.from_state(simulation.state)
        state = step(state, tau=tau, control=control)
        state.q, state.v, state.activation

    A state is a pytree (`ArrayState`) that holds all that the next step reads, and passes through `jit`, `vmap` and `lax.scan`.
    With `jax_enable_x64`, a step gives the bits of `Simulation.advance`; in single precision, q, v and activations are rounded
    after each step. Leading axes of the state, tau (..., nv) and control (..., nu) broadcast; tau and control default to zero.
    The function uses the robot, step size, ground and contact model of the simulation, and its `vary`; it does not change the
    simulation. XLA calls Python for each step, once for all robots of a batch, which move in one call of `Simulation.advance`.

    `grad`, `vjp`, `jacrev`, `jvp` and `jacfwd` are with respect to q, v, activations, tau and control, by the derivatives of
    `Simulation.derivatives`, on threads. Gradients with respect to configurations are tangent to their manifold, as with
    `wrap`. The memory of a state has no gradient: it only starts the solver of contacts. Second derivatives do not work.

    `contacts` is the number of contacts of a robot that states take; the default is that of the simulation now (16
    until it needs more).

    Raises TypeError for an argument that is not a simulation. Calls raise ValueError for wrong shapes. A step that fails ends
    the computation with the message of `SimulationError`; so do more contacts than these.
    """
    return SimulatedStep(function_of(simulation, "step", "Simulation", contacts=contacts))


class ArrayState(NamedTuple):
    """States of robots in JAX's arrays, a pytree.

    `memory` has the bits of all other numbers that the next step reads, as integers: time, impulses of the last step, overlaps
    that are still being separated, and what sensors remember. It belongs to the simulation that made it.
    """

    q: jax.Array  # (..., nq)
    v: jax.Array  # (..., nv)
    activation: jax.Array  # (..., na) activations of actuators, followed by the states of delays
    memory: jax.Array  # (..., words) int32


@dataclass(frozen=True)
class SimulatedStep:
    """A step of a simulation as a function of JAX's arrays, made by `featherweight.jax.step`."""

    function: StepFunction

    def start(self, q: ArrayLike, v: ArrayLike | None = None) -> ArrayState:
        """Return the state of robots at q (..., nq) and v (..., nv), zero by default, as after `Simulation.reset`.

        The pairs of shapes that do not touch are those of the simulation.
        """
        f = self.function
        given = arrays_of(f.name, {"q": q, "v": jnp.zeros(f.sizes["v"], jnp.float32) if v is None else v})
        rest = {"activation": jnp.asarray(f.started.activation), "memory": jnp.asarray(f.started.memory)}
        *numbers, memory = f.arranged(given | rest, jnp)
        q, v, activation = promoted(numbers, numbers[:2])
        return ArrayState(q, v, activation, memory)

    def from_state(self, state: State) -> ArrayState:
        """Return a `State` of the simulation as JAX's arrays. Raises as `Simulation.advance` does for other states."""
        return ArrayState(*map(jnp.asarray, self.function.arrays(state)))

    def to_state(self, state: ArrayState) -> State:
        """Return states (...) or (robots, ...) as a `State`, outside of transformations."""
        return self.function.state([*map(np.asarray, state)])

    def __call__(self, state: ArrayState, tau: ArrayLike | None = None, control: ArrayLike | None = None) -> ArrayState:
        """Return the state after a step, as `step` describes. Raises TypeError for arguments that are not arrays of numbers."""
        f = self.function
        given = array_state(f.name, state, ArrayState)._asdict()
        for name, x in {"tau": tau, "control": control}.items():
            given[name] = jnp.zeros(f.sizes[name], jnp.float32) if x is None else x
        *numbers, memory, tau, control = f.arranged(arrays_of(f.name, given), jnp)
        q, v, activation, tau, control = promoted([*numbers, tau, control], numbers[:2])
        return ArrayState(*call(f, [q, v, activation, memory, tau, control]))
