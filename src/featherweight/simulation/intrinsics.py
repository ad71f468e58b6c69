"""Functions of compiled loops that Numba cannot make of Python: views and vectors, in LLVM's words. Imports Numba."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import populate_array

from .views import LANES, as_matrix, subtract_multiples


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
