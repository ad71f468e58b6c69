"""One state at a time: a function of pointers to the arguments, for the entry and for compiled callers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate

from ...jacobian_trace import JacobianTrace
from ...trace import Trace
from ..straight_plan import plan_lanes, sizes_in_lanes
from .emit import HOST, Kernel, KernelStyle, emit_kernel, host_options, write_kernel
from .ir import CACHE_LINE, Function, Type
from .loop import assemble

STACK_BYTES = 32_768  # greatest size of a workspace on the stack


def emit_single(t: Trace, outputs: Sequence[int], type: Type, group: int, fma: bool) -> list[str]:
    """Return modules with `i32 @single(ptr arguments)`, the results' pointers last; `outputs` are the sizes of the results.

    The function returns 0. Without memory for its workspace, it returns 1 and writes NaN as results.

    Sines and cosines of inputs are computed `group` at a time.
    """
    return _module(emit_kernel(t, type, fma, outputs, group), len(t.inputs), outputs, type, fma)


def emit_single_in_lanes(t: JacobianTrace, type: Type, fma: bool) -> list[str]:
    """Return the same for derivatives whose directions are in the lanes of `type`."""
    return _module(emit_lanes(t, type.precision, fma), len(t.trace.inputs) - 1, sizes_in_lanes(t), type, fma)


def _module(kernel: Kernel, inputs: int, outputs: Sequence[int], type: Type, fma: bool) -> list[str]:
    """Return a kernel with a workspace of scalars, and the function that calls it."""
    f = Function("i32", "single", ["ptr %arguments"], linkage="external")
    pointers = [f"ptr {f.load('ptr', '%arguments', k)}" for k in range(inputs + len(outputs))]
    with _workspace(f, type.item_bytes * kernel.workspace, pointers[inputs:], outputs, type) as workspace:
        for part in kernel.parts:
            f.call("void", f"@{part}", *pointers, f"ptr {workspace}")
    return _of_kernel(kernel, type, f, fma)


def _of_kernel(kernel: Kernel, type: Type, f: Function, fma: bool) -> list[str]:
    """Return modules of a kernel and the function that calls it."""
    return assemble([kernel], type, ["declare ptr @malloc(i64)", "declare void @free(ptr)"], [str(f)], fma)


@contextmanager
def _workspace(f: Function, size: int, results: Sequence[str], sizes: Sequence[int], type: Type) -> Iterator[str]:
    """Yield memory for the code that follows, on the stack if it is small; then the function returns 0."""
    on_stack = size + CACHE_LINE <= STACK_BYTES
    memory = f.slot("i8", size + CACHE_LINE, CACHE_LINE) if on_stack else f.call("ptr", "@malloc", f"i64 {size + CACHE_LINE}")
    if not on_stack:
        _give_nan_without_memory(f, memory, results, sizes, type)
    yield f.aligned(memory)
    if not on_stack:
        f.call("void", "@free", f"ptr {memory}")
    f.ret("i32", "0")


def _give_nan_without_memory(f: Function, memory: str, results: Sequence[str], sizes: Sequence[int], type: Type) -> None:
    """Write NaN for callers that ignore the returned status."""
    f.branch(f.equal(memory, "null", "ptr"), "no.memory", "memory")
    f.label("no.memory")
    for result, size in zip(results, sizes, strict=True):
        with f.loop(size) as i:
            f.store(type.precision, Type(type.precision, 1).constant(math.nan), result.removeprefix("ptr "), i)
    f.ret("i32", "1")
    f.label("memory")


def emit_interleaved(t: Trace, outputs: Sequence[int], type: Type, fma: bool) -> list[str]:
    """Return modules with `i32 @interleaved(ptr arguments, ptr lanes)`: the states of all lanes of interleaved arrays.

    Results are written in the lanes of a mask of 64-bit words. The function returns 0. Without memory, it returns 1 and writes
    NaN in all lanes.
    """
    kernel, inputs = emit_kernel(t, type, fma, outputs), len(t.inputs)
    f = Function("i32", "interleaved", ["ptr %arguments", "ptr %lanes"], linkage="external")
    pointers = [f"ptr {f.load('ptr', '%arguments', k)}" for k in range(inputs + len(outputs))]
    size, numbers = type.bytes * (kernel.workspace + sum(outputs)), [n * type.lanes for n in outputs]
    masks, bits = f"<{type.lanes} x i64>", f"<{type.lanes} x i1>"
    with _workspace(f, size, pointers[inputs:], numbers, type) as workspace:
        taking = f.value(f"icmp slt {masks} {f.load(masks, '%lanes')}, zeroinitializer")
        all_lanes = f.value(f"icmp eq i{type.lanes} {f.value(f'bitcast {bits} {taking} to i{type.lanes}')}, -1")
        with f.choice(all_lanes) as (all, some):
            with all:
                for part in kernel.parts:
                    f.call("void", f"@{part}", *pointers, f"ptr {workspace}")
            with some:
                places = [f.at(type.ir, workspace, begin) for begin in accumulate(outputs[:-1], initial=kernel.workspace)]
                for part in kernel.parts:
                    f.call("void", f"@{part}", *pointers[:inputs], *[f"ptr {x}" for x in places], f"ptr {workspace}")
                for n, result, made in zip(outputs, pointers[inputs:], places, strict=True):
                    goal = result.removeprefix("ptr ")
                    with f.loop(n) as i:
                        new, old = f.load(type.ir, made, i, type.bytes), f.load(type.ir, goal, i, type.bytes)
                        f.store(type.ir, f.select(taking, new, old, type.ir, bits), goal, i, type.bytes)
    return _of_kernel(kernel, type, f, fma)


def emit_lanes(t: JacobianTrace, precision: str, fma: bool, style: KernelStyle = HOST) -> Kernel:
    """Return the IR of a whole trace. Each derivative of a result with respect to an argument is a separate array.

    Scalars are computed as elsewhere, and multiply vectors in all lanes. A result's row is assembled from the lanes that
    contain its columns. The workspace consists of scalars. Sines and cosines of inputs are computed as many at a time as there
    are lanes.
    """
    scalar = Type(precision, 1)
    return write_kernel(plan_lanes(t, host_options(scalar, fma, t.lanes)), scalar, style)
