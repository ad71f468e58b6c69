"""Numba, as the compiled parts of simulation use it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.experimental import structref
from numba.extending import lower_builtin, overload_method, register_jitable, type_callable
from numba.np.arrayobj import populate_array

F = TypeVar("F", bound=Callable[..., Any])


def jitable(function: F) -> F:
    """A function that compiled ones call, and is compiled as part of them; plain Python otherwise."""
    return register_jitable(function)  # type: ignore[no-any-return]


def rounded_alike(function: F) -> F:
    """As `jitable`, with each operation rounded by itself, so that NumPy has the same bits."""
    return register_jitable(fastmath=False)(function)  # type: ignore[no-any-return]


def compiled(function: F) -> F:
    """The function as machine code that runs without the GIL and is kept on disk, where there is a place for it."""
    options: dict[str, Any] = dict(nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
    try:
        dispatcher: F = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that can be written
        return numba.njit(**options)(function)  # type: ignore[no-any-return]
    # Numba compiles anew if the function's own file has changed; code of the others is part of it too
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = package_digest()
    return dispatcher


@functools.cache
def package_digest() -> str:
    """Hash of every file of this package."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def by_reference(kind: type) -> Any:
    """A class for compiled functions: `Reference(*x)` has the fields of a named tuple x, and its methods without arguments.

    It is passed on as one pointer, where Numba passes on each array of a named tuple by itself, and counts references to it.
    """

    @structref.register
    class ReferenceType(types.StructRef):  # type: ignore[misc]
        def preprocess_fields(self, fields: Any) -> Any:
            return tuple((name, types.unliteral(t)) for name, t in fields)

    class Reference:
        pass

    structref.define_attributes(ReferenceType)
    structref.define_constructor(Reference, ReferenceType, list(kind._fields))  # type: ignore[attr-defined]
    for name, method in vars(kind).items():
        if isinstance(method, FunctionType) and not name.startswith("_"):
            overload_method(ReferenceType, name)(_implementation(method))
    return Reference


def _implementation(method: Any) -> Callable[..., Any]:
    def typed(self):  # type: ignore[no-untyped-def]  # Numba compares its signature with the implementation's
        return method

    return typed


def as_matrix(numbers: Any, rows: int, columns: int) -> Any:
    """The first numbers (float64, contiguous) as a matrix (rows, columns), without a copy."""
    return numbers[: rows * columns].reshape(rows, columns)


@type_callable(as_matrix)  # type: ignore[untyped-decorator]
def _type_matrix(context: Any) -> Any:
    return lambda numbers, rows, columns: types.Array(numbers.dtype, 2, "C")


@lower_builtin(as_matrix, types.Array, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
def _matrix_view(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Numba's own `reshape` needs its runtime."""
    source = context.make_array(signature.args[0])(context, builder, values[0])
    view = context.make_array(signature.return_type)(context, builder)
    shape = [context.cast(builder, x, t, types.intp) for x, t in zip(values[1:], signature.args[1:], strict=True)]
    size = context.get_constant(types.intp, 8)
    strides = [builder.mul(shape[1], size), size]
    populate_array(view, source.data, shape, strides, size, source.meminfo)
    return impl_ret_borrowed(context, builder, signature.return_type, view._getvalue())


LANES = 8  # numbers that `subtract_multiples` takes at a time


def subtract_multiples(numbers: Any, target: int, source: int, stride: int, length: int, factors: Any) -> None:
    """numbers[target + j] -= sum of factors[k] numbers[source + k stride + j], j < length, a multiple of `LANES`.

    The target must not overlap the sources.
    """
    into = numbers[target : target + length]
    for k, factor in enumerate(factors):
        into -= factor * numbers[source + k * stride : source + k * stride + length]


@type_callable(subtract_multiples)  # type: ignore[untyped-decorator]
def _type_multiples(context: Any) -> Any:
    return lambda numbers, target, source, stride, length, factors: types.void


@lower_builtin(subtract_multiples, types.Array, *[types.Integer] * 4, types.UniTuple)  # type: ignore[untyped-decorator]
def _subtract_multiples(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """On vectors: LLVM would not know that rows of one matrix are apart."""
    data = context.make_array(signature.args[0])(context, builder, values[0]).data
    target, source, stride, length = (
        context.cast(builder, x, t, types.intp) for x, t in zip(values[1:5], signature.args[1:5], strict=True)
    )
    lanes = ir.VectorType(ir.DoubleType(), LANES)
    nothing, all_lanes = ir.Constant(lanes, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    spread, starts = [], []
    for k, factor in enumerate(cgutils.unpack_tuple(builder, values[5])):
        spread.append(builder.shuffle_vector(builder.insert_element(nothing, factor, ir.IntType(32)(0)), nothing, all_lanes))
        starts.append(builder.add(source, builder.mul(stride, context.get_constant(types.intp, k))))

    def place(start: Any, j: Any) -> Any:
        return builder.bitcast(builder.gep(data, [builder.add(start, j)]), lanes.as_pointer())

    zero, step = context.get_constant(types.intp, 0), context.get_constant(types.intp, LANES)
    with cgutils.for_range_slice(builder, zero, length, step) as (j, _):
        total = builder.load(place(target, j), align=8)
        for start, factor in zip(starts, spread, strict=True):
            product = builder.fmul(factor, builder.load(place(start, j), align=8), flags=("contract",))
            total = builder.fsub(total, product, flags=("contract",))
        builder.store(total, place(target, j), align=8)
    return context.get_dummy_value()
