"""LLVM IR of the handler that XLA calls for CUDA devices: it launches a kernel on XLA's stream.

The processor runs the handler. It does not wait, and finds the kernel of the device in a table. Tests run it with substitutes
for XLA and for the driver, whose kernels compute; it has not run on a device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...engine.backends.cuda.code import KernelRow
from ...engine.program import CoreShape
from .call_frame import FAILED_PRECONDITION, INTERNAL, ORDINAL, STREAM, Handler

DRIVER = ("cuLaunchKernel", "cuCtxPushCurrent", "cuCtxPopCurrent")
LAUNCH, PUSH, POP, TABLE, COUNT = range(5)  # indices in `@words`: the driver's functions, and the table by device number
BUFFER, SIZE, END = 1, 2, 0  # the driver's keys for the parameters of a launch
MESSAGE_BYTES = 128


def emit_device_handler(shapes: Sequence[CoreShape], inputs: int) -> str:
    """Return a module with `ptr @handler(ptr frame)`, and `@words` to fill in; arguments and results have these core shapes."""
    f = Handler(shapes, inputs)
    parameters, launch = f.slot("i64", 1 + 2 * len(shapes)), f.slot("i64", 5)
    size, states_at, before, message = f.slot("i64"), f.slot("i64"), f.slot("ptr"), f.slot("i8", MESSAGE_BYTES)
    f.answer_questions()
    buffers = f.buffers()
    states = f.count_states(buffers[inputs], shapes[inputs], states_at)
    f.require(f.less(0, states), "fine")
    f.store("i64", states, parameters)
    for k, (buffer, shape) in enumerate(zip(buffers, shapes, strict=True)):
        f.store("ptr", f.data(buffer), parameters, 1 + 2 * k)
        f.store("i64", f.step(buffer, shape, math.prod(shape)), parameters, 2 + 2 * k)
    f.store("i64", 8 * (1 + 2 * len(shapes)), size)
    for k, key in enumerate((BUFFER, SIZE, END)):
        f.store("i64", key, launch, 2 * k)
    f.store("ptr", parameters, launch, 1)
    f.store("ptr", size, launch, 3)
    row = _row_of_device(f)
    f.return_error(f.ask(STREAM, 32, f.context, "0"))
    stream = f.field("ptr", f.request, 24)
    refused = f.call("i32", _word(f, PUSH), f"ptr {_of(f, row, 'context', 'ptr')}")
    pushing = f.block
    f.require(f.equal(refused, 0, "i32"), "failed")
    failed = _launch(f, row, states, stream, launch)
    f.call("i32", _word(f, POP), f"ptr {before}")
    launching = f.block
    f.branch(f.equal(failed, 0, "i32"), "fine", "failed")
    f.label("failed")
    status = f.phi("i32", (refused, pushing), (failed, launching))
    text = f.text("a kernel of Featherweight's could not be launched: CUDA's driver says %d")
    f.declarations["declare i32 @snprintf(ptr, i64, ptr, ...)"] = None
    f.call("i32 (ptr, i64, ptr, ...)", "@snprintf", f"ptr {message}", f"i64 {MESSAGE_BYTES}", f"ptr {text}", f"i32 {status}")
    f.fail(INTERNAL, message)
    f.label("elsewhere")
    f.fail(FAILED_PRECONDITION, f.text("a function of Featherweight's was compiled for other devices than this one"))
    f.label("fine")
    f.ret("ptr", "null")
    words = f"@words = global [{COUNT + 1} x i64] zeroinitializer"
    return "\n".join([words, *f.constants, *f.declarations, str(f), "attributes #0 = { nounwind }"])


def _row_of_device(f: Handler) -> str:
    """Return the address of the table's row for the device that XLA uses."""
    f.return_error(f.ask(ORDINAL, 28, f.context, "0"))
    ordinal = f.cast("zext", "i32", f.field("i32", f.request, 24), "i64")
    f.require(f.less(ordinal, f.load("i64", "@words", COUNT)), "elsewhere")
    row = f.at("i64", f.load("ptr", "@words", TABLE), f.mul(ordinal, len(KernelRow._fields)))
    f.require(f.negation(f.equal(_of(f, row, "kernel"), 0)), "elsewhere")
    return row


def _launch(f: Handler, row: str, states: str, stream: str, launch: str) -> str:
    """Launch the kernel; return the driver's status."""
    threads = _of(f, row, "threads")
    blocks = f.div(f.add(states, f.sub(threads, 1)), threads)
    blocks, threads, shared = (f.cast("trunc", "i64", n, "i32") for n in (blocks, threads, _of(f, row, "shared_bytes")))
    grid = [f"i32 {n}, i32 1, i32 1" for n in (blocks, threads)]
    kernel = f"ptr {_of(f, row, 'kernel', 'ptr')}"
    return f.call("i32", _word(f, LAUNCH), kernel, *grid, f"i32 {shared}", f"ptr {stream}", "ptr null", f"ptr {launch}")


def _of(f: Handler, row: str, field: str, kind: str = "i64") -> str:
    return f.load(kind, row, KernelRow._fields.index(field))


def _word(f: Handler, word: int) -> str:
    return f.load("ptr", "@words", word)
