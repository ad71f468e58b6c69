"""Calls of Python from XLA, for functions that compute with NumPy's arrays in double precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np


def call_python(
    on_numbers: Callable[..., Any], shapes: Iterable[tuple[int, ...]], args: tuple[jax.Array, ...], vmap_method: str
) -> tuple[jax.Array, ...]:
    """Return the results of a function of NumPy's arrays, which have these shapes, in the precision of the first argument."""
    dtype = args[0].dtype

    def in_python(*arrays: Any) -> tuple[Any, ...]:
        return tuple(np.asarray(x, dtype) for x in on_numbers(*(np.asarray(x, np.float64) for x in arrays)))

    described = tuple(jax.ShapeDtypeStruct(shape, dtype) for shape in shapes)
    results: tuple[jax.Array, ...] = jax.pure_callback(in_python, described, *args, vmap_method=vmap_method)
    return results
