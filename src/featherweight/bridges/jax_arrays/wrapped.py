"""Compiled functions as functions of JAX's arrays."""

from __future__ import annotations

from typing import Any

from ...engine.execution import batch_axes, bound, result_class
from ...engine.function import CompiledFunction
from ..arguments import compiled_function
from .conversions import arrays_of, promoted
from .primitive import call


def wrap(function: CompiledFunction[Any]) -> Wrapped:
    """Return a function of a robot as a function of JAX's arrays, with positional or keyword arguments.

    Leading axes broadcast. Optional arguments are supported. Arguments promote as in JAX: results are float32, or float64 if an
    argument is float64 and 64-bit types are enabled (`jax_enable_x64`). Several results are a named tuple.

    The function computes on the device of its arguments: on processors, where XLA's threads share large batches, or on CUDA
    devices, on XLA's stream, with the extra `cuda`. The CUDA path is tested with substitutes for XLA and for the driver, and
    has not run on a device. Arrays that are spread over several devices are gathered on each, unless `shard_map` makes each
    device compute its own part.

    Derivatives of any order are with respect to arrays. Changes of a configuration that leave the unit quaternions count by
    their projection on the changes that velocities make. Cotangents q_bar (nq) are in the same space: <q_bar, dq> = <v_bar, v>,
    where dq is the change of q along v.

    Raises TypeError for an argument that is not a compiled function, and ValueError for one that is not traced. The returned
    function raises TypeError for a wrong number or name of arguments, ValueError for a wrong shape (both name the argument),
    and NotImplementedError on a device where it does not compute.
    """
    return Wrapped(compiled_function(function))


class Wrapped:
    """A compiled function of JAX's arrays, made by `wrap`."""

    def __init__(self, function: CompiledFunction[Any]) -> None:
        function.machine_code  # noqa: B018  # raises if it is not traced
        self.function, self.__name__, self.__doc__ = function, function.name, function.__doc__

    def __call__(self, *args: Any, **named: Any) -> Any:
        f = self.function.chosen(named)
        given = zip((x.name for x in f.program.inputs), bound(f.program, args, named), strict=True)
        arrays = [*arrays_of(f.name, dict(given)).values()]
        batch_axes(f.program, arrays)  # raises if they do not fit
        values, outputs = call(f, promoted(arrays, arrays)), f.program.outputs
        return values[0] if len(outputs) == 1 else result_class(f.name, tuple(y.name for y in outputs))(*values)

    def __repr__(self) -> str:
        return f"featherweight.jax.wrap({self.function!r})"
