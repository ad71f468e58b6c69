"""A step of a simulation as a function of JAX's arrays, with gradients through contact.

XLA calls Python by `jax.pure_callback`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class ArrayState(NamedTuple):
    """The state after a step."""

    q: jax.Array  # (..., nq)
    v: jax.Array  # (..., nv)


def stepping(function: Any) -> Callable[..., ArrayState]:
    """Return the step of a `Simulation.step_function` as a function of JAX's arrays."""
    sizes = function.sizes

    def called(on_numbers: Any, names: tuple[str, ...], args: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        batch, dtype = args[0].shape[:-1], args[0].dtype
        shapes = [jax.ShapeDtypeStruct((*batch, sizes[name]), dtype) for name in names]

        def in_python(*arrays: Any) -> tuple[Any, ...]:
            values = on_numbers(*(np.asarray(x, np.float64) for x in arrays))
            return tuple(np.asarray(x, dtype) for x in values)

        results: tuple[jax.Array, ...] = jax.pure_callback(in_python, tuple(shapes), *args, vmap_method="broadcast_all")
        return results

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
