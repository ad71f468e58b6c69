"""JAX's primitive for a step of a simulation, and its rules: shapes, batches, derivatives, and the call from XLA.

As in `primitive`, a step y = F(x) has three forms: its value; forward, y_dot = F'(x) x_dot, and backward, x_bar = F'(x)ᵀ y_bar,
which are each other's transposes. Arguments x are q, v, activations, memory, tau and control, after which derivatives take q
after the step, and then x_dot without the memory, or y_bar without it. All have the same batch axes in front.

XLA calls Python, with NumPy's arrays: `jax.pure_callback` would turn them into JAX's arrays and back, which takes longer than
the steps of 64 robots.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, xla

from .primitive import BACKWARD, FORWARD, VALUE

if TYPE_CHECKING:
    from ...simulation.step_function import StepFunction

STATE, ARGUMENTS, MEMORY = 4, 6, 3  # arrays of a state, arguments of a step, and the place of the memory among them

step_p = Primitive("featherweight_step")
step_p.multiple_results = True
step_p.def_impl(functools.partial(xla.apply_primitive, step_p))


def call(function: StepFunction, args: Sequence[Any], form: str = VALUE) -> list[Any]:
    """Return the results of a form of a step for arguments with the same batch axes."""
    return list(step_p.bind(*args, function=function, form=form))


def _results(*args: Any, function: StepFunction, form: str) -> list[Any]:
    return list(args[:MEMORY]) + {VALUE: [args[MEMORY]], FORWARD: [], BACKWARD: list(args[STATE:ARGUMENTS])}[form]


def _batched(args: Sequence[Any], axes: Sequence[int | None], *, function: StepFunction, form: str) -> Any:
    size = next(x.shape[k] for x, k in zip(args, axes, strict=True) if k is not None)
    pairs = zip(args, axes, strict=True)
    whole = [jnp.broadcast_to(x, (size, *x.shape)) if k is None else jnp.moveaxis(x, k, 0) for x, k in pairs]
    results = call(function, whole, form)
    return results, [0] * len(results)


def _moved(args: Sequence[Any], tangents: Sequence[Any], *, function: StepFunction, form: str) -> Any:
    """Return the results and their tangents."""
    results = call(function, args, form)
    if form == VALUE:
        rates = [ad.instantiate_zeros(t) for k, t in enumerate(tangents) if k != MEMORY]
        return results, [*call(function, [*args, results[0], *rates], FORWARD), tangents[MEMORY]]
    if any(type(t) is not ad.Zero for k, t in enumerate(tangents[: ARGUMENTS + 1]) if k != MEMORY):
        raise NotImplementedError(f"{function.name}: second derivatives of a step are not implemented")
    return results, call(function, [*args[: ARGUMENTS + 1], *map(ad.instantiate_zeros, tangents[ARGUMENTS + 1 :])], form)


def _transposed(bars: Sequence[Any], *args: Any, function: StepFunction, form: str) -> list[Any]:
    """Return the cotangents of the arguments along which a derivative goes, for cotangents of its results."""
    known, linear = args[: ARGUMENTS + 1], args[ARGUMENTS + 1 :]
    other = BACKWARD if form == FORWARD else FORWARD
    found = call(function, [*known, *map(ad.instantiate_zeros, bars)], other)
    return [None] * len(known) + [y if ad.is_undefined_primal(x) else None for x, y in zip(linear, found, strict=True)]


def _lowered(ctx: Any, *operands: Any, function: StepFunction, form: str) -> Any:
    types = [x.dtype for x in ctx.avals_out]
    words = [ShapedArray((*x.shape, 2), np.dtype(np.int32)) if x.dtype == np.float64 else x for x in ctx.avals_out]

    def in_python(*arrays: Any) -> tuple[Any, ...]:
        given = [np.asarray(x, np.float64 if x.dtype.kind == "f" else x.dtype) for x in arrays]
        state, (tau, control), derivative = given[:STATE], given[STATE:ARGUMENTS], given[ARGUMENTS:]
        if form == VALUE:
            found: Any = function(state, tau, control)
        else:
            product = function.pushforward if form == FORWARD else function.pullback
            found = product(state, tau, control, derivative[0], derivative[1:])
        found = (np.asarray(x, dtype, order="C") for x, dtype in zip(found, types, strict=True))
        return tuple(x.view(y.dtype).reshape(y.shape) for x, y in zip(found, words, strict=True))

    # JAX rounds results to the precision of the calling thread, which need not be that of the program; integers keep their bits
    calling, joining = ctx.replace(avals_out=words), ctx.replace(avals_in=words)
    results, *_ = mlir.emit_python_callback(
        calling, in_python, None, list(operands), ctx.avals_in, words, has_side_effect=False
    )
    return mlir.lower_fun(_numbers_of_words(types), multiple_results=True)(joining, *results)


def _numbers_of_words(types: Sequence[Any]) -> Callable[..., list[jax.Array]]:
    return lambda *words: [jax.lax.bitcast_convert_type(x, t) for x, t in zip(words, types, strict=True)]


step_p.def_abstract_eval(_results)
batching.primitive_batchers[step_p] = _batched
ad.primitive_jvps[step_p] = _moved
ad.primitive_transposes[step_p] = _transposed
mlir.register_lowering(step_p, _lowered)
