"""One state at a time: a function of pointers to the arguments, for the entry and for callers that are compiled too."""

from __future__ import annotations

from collections.abc import Sequence

from ...trace import Trace
from .emit import emit_kernel
from .ir import Function, Type
from .loop import assemble

STACK_BYTES = 32_768  # a workspace lies on the stack up to here


def emit_single(t: Trace, outputs: Sequence[int], type: Type, group: int, fma: bool) -> str:
    """A module with `void @single(ptr arguments)`, the results' pointers last; `outputs` are the sizes of these.

    Sines and cosines of inputs are computed `group` at a time.
    """
    kernel = emit_kernel(t, type, fma, outputs, group)
    f = Function("void", "single", ["ptr %arguments"], internal=False)
    pointers = [f"ptr {f.load('ptr', '%arguments', k)}" for k in range(len(t.inputs) + len(outputs))]
    size = type.item_bytes * kernel.workspace + 64
    on_stack = size <= STACK_BYTES
    room = f.slot("i8", size, 64) if on_stack else f.call("ptr", "@malloc", f"i64 {size}")
    workspace = f.aligned(room)
    for part in kernel.parts:
        f.call("void", f"@{part}", *pointers, f"ptr {workspace}")
    if not on_stack:
        f.call("void", "@free", f"ptr {room}")
    f.line("ret void")
    return assemble(kernel, type, ["declare ptr @malloc(i64)", "declare void @free(ptr)"], [str(f)], fma)
