"""Solutions of optimal control as functions of JAX's arrays, with gradients by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .python_calls import call_python


class ArrayPlan(NamedTuple):
    """A solution, or many along a first axis."""

    q: jax.Array  # (..., knots + 1, nq)
    v: jax.Array  # (..., knots + 1, nv)
    u: jax.Array  # (..., knots, nu)
    cost: jax.Array  # (...)


def planning(function: Any) -> Callable[..., ArrayPlan]:
    """Return the solutions of an `OptimalControl.plan_function` as a function of JAX's arrays."""

    def primal(*args: jax.Array) -> tuple[jax.Array, ...]:
        n, sizes, knots = args[0].shape[0], function.sizes, function.knots
        shapes = (n, knots + 1, sizes["q"]), (n, knots + 1, sizes["v"]), (n, knots, sizes["u"]), (n,)
        return call_python(lambda *x: function(*x)[:4], shapes, args, "sequential")

    def forward(*args: jax.Array) -> Any:
        return primal(*args), args

    def backward(args: Any, bars: Any) -> Any:
        def on_numbers(*arrays: Any) -> Any:  # in double precision from the start, also where JAX has single precision
            given, own_bars = arrays[: len(args)], arrays[len(args) :]
            return function.pullback(function(*given), given[2:], own_bars)

        return call_python(on_numbers, [x.shape for x in args], (*args, *bars), "sequential")

    solve: Any = jax.custom_vjp(primal)
    solve.defvjp(forward, backward)

    def planned(
        q: Any, v: Any = None, *, targets: Mapping[str, Any] | None = None, parameters: Mapping[str, Any] | None = None
    ) -> ArrayPlan:
        start = jnp.asarray(q)
        speed = jnp.zeros(function.sizes["v"]) if v is None else jnp.asarray(v)
        named = [{name: jnp.asarray(x) for name, x in (part or {}).items()} for part in (targets, parameters)]
        arrays = function.arranged(start, speed, *named, jnp.broadcast_to)
        dtype = jnp.promote_types(jnp.result_type(*arrays, float), jnp.float32)
        found = solve(*(x.astype(dtype) for x in arrays))
        return ArrayPlan(*(found if start.ndim == 2 else (x[0] for x in found)))

    return planned
