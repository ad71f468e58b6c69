"""A step of a simulation as a function of JAX's arrays, with gradients through contact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .python_calls import call_python


class ArrayState(NamedTuple):
    """The state after a step."""

    q: jax.Array  # (..., nq)
    v: jax.Array  # (..., nv)


def stepping(function: Any) -> Callable[..., ArrayState]:
    """Return the step of a `Simulation.step_function` as a function of JAX's arrays."""
    sizes = function.sizes

    def called(on_numbers: Any, names: tuple[str, ...], args: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        batch = args[0].shape[:-1]
        return call_python(on_numbers, [(*batch, sizes[name]) for name in names], args, "broadcast_all")

    def primal(q: jax.Array, v: jax.Array, tau: jax.Array, control: jax.Array) -> tuple[jax.Array, ...]:
        return called(function, ("q", "v"), (q, v, tau, control))

    def forward(*args: jax.Array) -> Any:
        return primal(*args), args

    def backward(args: Any, bars: Any) -> Any:
        return called(function.pullback, ("q", "v", "tau", "control"), (*args, *bars))

    step: Any = jax.custom_vjp(primal)
    step.defvjp(forward, backward)

    def stepped(q: Any, v: Any, tau: Any = None, control: Any = None) -> ArrayState:
        given = {"q": q, "v": v, "tau": tau, "control": control}
        arrays = []
        for name, x in given.items():
            x = jnp.zeros(sizes[name]) if x is None and name in ("tau", "control") else jnp.asarray(x)
            if x.ndim == 0 or x.shape[-1] != sizes[name]:
                raise ValueError(f"{function.name}: {name} must have shape (..., {sizes[name]}); got {x.shape}")
            arrays.append(x)
        dtype = jnp.promote_types(jnp.result_type(*arrays[:2], float), jnp.float32)
        batch = jnp.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        return ArrayState(*step(*(jnp.broadcast_to(x, (*batch, x.shape[-1])).astype(dtype) for x in arrays)))

    return stepped
