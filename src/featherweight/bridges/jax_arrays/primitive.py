"""JAX's primitive for compiled functions, and its rules: shapes, batches, derivatives, and the call from XLA.

A function y = F(x) has three forms: its value; forward, y_dot = F'(x) x_dot, linear in x_dot; and backward,
x_bar = F'(x)ᵀ y_bar, linear in y_bar. Forward and backward are each other's transposes. If x also varies, they are values of
compiled functions of their own, which again have derivatives.

Batch axes come first. An argument has all of them, or none. An argument without batch axes is shared by all states and is not
copied.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, xla
from jax.sharding import PartitionSpec

from ...engine.function import CompiledFunction
from .xla_target import device_target, target

ON_PROCESSORS = "Processors take arguments that are put there: jax.device_put(x, jax.devices('cpu')[0])"
VALUE, FORWARD, BACKWARD = "value", "forward", "backward"

Shape = tuple[int, ...]

compiled_p = Primitive("featherweight")
compiled_p.multiple_results = True
compiled_p.def_impl(functools.partial(xla.apply_primitive, compiled_p))


def call(function: CompiledFunction[Any], args: Sequence[Any], way: str = VALUE) -> list[Any]:
    """Return the results for arguments of one dtype whose batch axes broadcast."""
    cores = [len(x.shape) for x in computed(function, way).program.inputs]
    batches = [x.shape[: x.ndim - core] for x, core in zip(args, cores, strict=True)]
    batch = jnp.broadcast_shapes(*batches)
    whole = [
        jnp.broadcast_to(x, batch + x.shape[x.ndim - core :]) if own not in (batch, ()) else x
        for x, own, core in zip(args, batches, cores, strict=True)
    ]
    return list(compiled_p.bind(*_varying_alike(whole), function=function, way=way))


def computed(function: CompiledFunction[Any], way: str) -> CompiledFunction[Any]:
    """Return the compiled function of a form: the function itself, its pushforward or its pullback."""
    if way == VALUE:
        return function
    return function.ambient.pushforward if way == FORWARD else function.ambient.pullback


def _varying_alike(args: Sequence[Any]) -> list[Any]:
    """Mark all arguments as different between the devices of a `shard_map`, if one of them is."""
    axes = [jax.typeof(x).mat.varying for x in args]
    every = frozenset().union(*axes)
    return [jax.lax.pcast(x, tuple(every - own), to="varying") if every - own else x for x, own in zip(args, axes, strict=True)]


# shapes


def _results(*args: Any, function: CompiledFunction[Any], way: str) -> list[Any]:
    program = computed(function, way).program
    batch = _batch([x.shape for x in args], [x.shape for x in program.inputs])
    any_of = args[0]
    shapes = [batch + y.shape for y in program.outputs]
    shardings = [any_of.sharding.update(spec=PartitionSpec(*[None] * len(shape))) for shape in shapes]
    return [any_of.update(shape=s, sharding=own, weak_type=False) for s, own in zip(shapes, shardings, strict=True)]


compiled_p.def_abstract_eval(_results)


def _batch(shapes: Sequence[Shape], cores: Sequence[Shape]) -> Shape:
    """Return the batch axes of arguments that have all of them or none."""
    return max((shape[: len(shape) - len(core)] for shape, core in zip(shapes, cores, strict=True)), key=len)


# batches


def _batched(args: Sequence[Any], axes: Sequence[int | None], *, function: CompiledFunction[Any], way: str) -> Any:
    cores = [x.shape for x in computed(function, way).program.inputs]
    shapes = [x.shape if k is None else x.shape[:k] + x.shape[k + 1 :] for x, k in zip(args, axes, strict=True)]
    rank = len(_batch(shapes, cores))
    moved = []
    for x, k, core in zip(args, axes, cores, strict=True):
        if k is not None:
            x = jnp.moveaxis(x, k, 0)
            missing = rank - (x.ndim - 1 - len(core))
            x = jnp.expand_dims(x, tuple(range(1, 1 + missing)))
        moved.append(x)
    results = call(function, moved, way)
    return results, [0] * len(results)


batching.primitive_batchers[compiled_p] = _batched

# derivatives


def _moved(args: Sequence[Any], tangents: Sequence[Any], *, function: CompiledFunction[Any], way: str) -> Any:
    """Return the results and their tangents."""
    results = call(function, args, way)
    n = len(function.program.inputs)
    if way != VALUE and all(type(t) is ad.Zero for t in tangents[:n]):
        return results, call(function, [*args[:n], *map(ad.instantiate_zeros, tangents[n:])], way)
    return results, call(computed(function, way), [*args, *map(ad.instantiate_zeros, tangents)], FORWARD)


def _transposed(bars: Sequence[Any], *args: Any, function: CompiledFunction[Any], way: str) -> list[Any]:
    """Return the cotangents of the linear arguments of a call, for cotangents of its results."""
    n = len(function.program.inputs)
    if way == VALUE or any(ad.is_undefined_primal(x) for x in args[:n]):
        raise NotImplementedError(f"{function.name} is not linear in its arguments")
    linear = args[n:]
    cores = [x.shape for x in computed(function, way).program.inputs]
    batch = _batch([x.aval.shape if ad.is_undefined_primal(x) else x.shape for x in args], cores)
    other = BACKWARD if way == FORWARD else FORWARD
    cotangents = call(function, [*args[:n], *map(ad.instantiate_zeros, bars)], other)
    pairs = zip(cotangents, linear, strict=True)
    own = [_summed(bar, x.aval.shape, batch) if ad.is_undefined_primal(x) else None for bar, x in pairs]
    return [None] * n + own


def _summed(bar: Any, shape: Shape, batch: Shape) -> Any:
    """Sum a cotangent over the states, for an argument that all states share."""
    return bar if bar.shape == shape else bar.sum(tuple(range(len(batch))))


ad.primitive_jvps[compiled_p] = _moved
ad.primitive_transposes[compiled_p] = _transposed

# calls from XLA


def _lowered(ctx: Any, *operands: Any, function: CompiledFunction[Any], way: str) -> Any:
    f = computed(function, way)
    batch = _batch([x.shape for x in ctx.avals_in], [x.shape for x in f.program.inputs])
    many = not all(isinstance(n, int) for n in batch) or math.prod(batch) != 1
    return jax.ffi.ffi_lowering(target(f, _precision(ctx), many))(ctx, *operands)


def _lowered_for_devices(ctx: Any, *operands: Any, function: CompiledFunction[Any], way: str) -> Any:
    try:
        name = device_target(computed(function, way), _precision(ctx))
    except (ImportError, RuntimeError) as error:
        raise NotImplementedError(f"{function.name} does not compute on CUDA devices here: {error}. {ON_PROCESSORS}") from error
    return jax.ffi.ffi_lowering(name)(ctx, *operands)


def _refused(ctx: Any, *operands: Any, function: CompiledFunction[Any], way: str) -> Any:
    raise NotImplementedError(f"{function.name} computes on processors and CUDA devices in JAX. {ON_PROCESSORS}")


def _precision(ctx: Any) -> str:
    return "double" if ctx.avals_in[0].dtype == jnp.float64 else "float"


mlir.register_lowering(compiled_p, _lowered, platform="cpu")
mlir.register_lowering(compiled_p, _lowered_for_devices, platform="cuda")
mlir.register_lowering(compiled_p, _refused)
