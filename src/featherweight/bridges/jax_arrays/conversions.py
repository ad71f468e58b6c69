"""JAX's arrays from arguments, and calls of functions of NumPy's arrays from XLA."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def arrays_of(owner: str, named: Mapping[str, Any]) -> dict[str, jax.Array]:
    """Return arguments as arrays. Raises TypeError, which names the argument of the owner, unless all are arrays of numbers."""
    arrays = {}
    for name, x in named.items():
        try:
            arrays[name] = jnp.asarray(x)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{owner}: {name} must be an array of numbers: {error}") from None
    return arrays


def promoted(arrays: Sequence[jax.Array], to: Sequence[jax.Array]) -> list[jax.Array]:
    """Return arrays in the type to which the arrays `to` promote: float32, or float64 if one of them has it."""
    dtype = jnp.promote_types(jnp.result_type(*to, float), jnp.float32)
    return [x.astype(dtype) for x in arrays]


def call_python(
    on_numbers: Callable[..., Any], results: Sequence[jax.ShapeDtypeStruct], args: Sequence[jax.Array]
) -> tuple[jax.Array, ...]:
    """Return the results of a function of NumPy's arrays, with numbers in double precision, in these shapes and types."""

    def in_python(*arrays: Any) -> tuple[Any, ...]:
        given = [np.asarray(x, np.float64 if jnp.issubdtype(x.dtype, jnp.floating) else x.dtype) for x in arrays]
        return tuple(np.asarray(x, y.dtype) for x, y in zip(on_numbers(*given), results, strict=True))

    found: tuple[jax.Array, ...] = jax.pure_callback(in_python, tuple(results), *args, vmap_method="sequential")
    return found


def like(arrays: Iterable[jax.Array]) -> list[jax.ShapeDtypeStruct]:
    """Return the shapes and types of arrays."""
    return [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
