"""Object code of routines for a target: straight-line code with a plain C entry, without calls and without state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..engine.backends.llvm.emit import Kernel, KernelStyle, emit_kernel
from ..engine.backends.llvm.ir import CACHE_LINE, Function, Type
from ..engine.backends.llvm.jit import emitted, parsed
from ..engine.backends.llvm.single import emit_lanes
from ..engine.backends.llvm.trig import sincos_ir
from ..engine.jacobian_trace import JacobianTrace
from ..engine.trace import Trace
from .elf import Elf
from .export_targets import ITEM_BYTES, ExportTarget
from .routine import Routine


class ObjectCode(NamedTuple):
    """Object code of a routine or a standalone kernel, compiled by LLVM."""

    data: bytes
    symbols: tuple[str, ...]  # global symbols
    workspace: int  # bytes of workspace for a call


InLanes = Callable[[int], JacobianTrace | None]
Entry = Callable[[Routine, Kernel, Type], Sequence[Function]]
"""Callable functions around the parts of a kernel."""


def compile_routine(routine: Routine, target: ExportTarget, precision: str, entry: Entry | None = None) -> ObjectCode:
    """Return one object file. Raises RuntimeError if the code would call library functions."""
    type = Type(precision, 1)
    sizes, style = [y.size for y in routine.outputs], KernelStyle(linkage="internal", freestanding=True)
    kernel = emit_for_one_state(routine.trace, routine.in_lanes, sizes, target, precision, style)
    functions = (entry or c_entry)(routine, kernel, type)
    machine = target.machine()
    with parsed(_module(kernel, functions, target, type), machine) as module:
        data = emitted(machine, module)
    if needed := undefined_symbols(data):
        raise RuntimeError(
            f"{routine.name}: code for {target.name} ({target.triple}, {target.cpu}) would call {', '.join(needed)}; "
            f"the processor has no instructions for {precision}: choose the other precision or other features"
        )
    return ObjectCode(data, tuple(f.name for f in functions), workspace_bytes(kernel, precision))


def workspace_bytes(kernel: Kernel, precision: str) -> int:
    """Return the bytes of workspace that a kernel needs, including the padding that aligns it to a cache line."""
    return kernel.workspace * ITEM_BYTES[precision] + CACHE_LINE if kernel.workspace else 0


def emit_for_one_state(
    trace: Trace, in_lanes: InLanes, sizes: Sequence[int], target: ExportTarget, precision: str, style: KernelStyle
) -> Kernel:
    """Emit the kernel that a function uses for one state, so that results are bitwise equal on the same processor.

    Derivatives are in the lanes of the target where `in_lanes` has them.
    """
    lanes = target.lanes(precision)
    vectors = in_lanes(lanes) if lanes > 1 else None
    if vectors:
        return emit_lanes(vectors, precision, target.fma, style)
    return emit_kernel(trace, Type(precision, 1), target.fma, sizes, lanes, style)


def _module(kernel: Kernel, functions: Sequence[Function], target: ExportTarget, type: Type) -> str:
    declared = dict.fromkeys([*kernel.declarations, *(d for f in functions for d in f.declarations)])
    texts = [*kernel.definitions, *map(str, functions)]
    for width in kernel.sincos_lanes:
        sincos = sincos_ir(type.precision, width, target.fma)
        declared |= dict.fromkeys(sincos.declarations)
        texts.append(sincos.definition)
    wide = f' "prefer-vector-width"="{8 * target.vector_bytes}"' if target.vector_bytes else ""
    lines = [*declared, *texts, f"attributes #0 = {{ noinline nounwind{wide} }}"]
    return "\n".join(lines).replace("define hidden", "define internal")


def c_entry(routine: Routine, kernel: Kernel, type: Type) -> list[Function]:
    """Return `int NAME(const T *argument, ..., T *result, ..., void *workspace)`, which returns 0, or 1 without a workspace."""
    arguments = [f"ptr %a{k}" for k in range(len(routine.inputs))] + [f"ptr %r{k}" for k in range(len(routine.outputs))]
    f = Function("i32", routine.name, [*arguments, "ptr %workspace"], linkage="external")
    workspace = "null"
    if kernel.workspace:
        f.return_if(f.equal("%workspace", "null", "ptr"), "i32", "1")
        workspace = f.aligned("%workspace")
    for part in kernel.parts:
        f.call("void", f"@{part}", *arguments, f"ptr {workspace}")
    f.ret("i32", "0")
    size = Function("i32", f"{routine.name}_workspace_bytes", [], linkage="external")
    size.ret("i32", str(workspace_bytes(kernel, type.precision)))
    return [f, size]


def undefined_symbols(data: bytes) -> list[str]:
    """Return the undefined functions of an object file; none are known for formats other than ELF."""
    return Elf(data).undefined if data[:4] == b"\x7fELF" else []
