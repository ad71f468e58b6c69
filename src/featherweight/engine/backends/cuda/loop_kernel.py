"""A kernel with loops for a device: one thread for each number, which calls the function with tables.

The function is planned and written as for this machine. Its calls of machine code go to functions of the same module, one for
each straight-line function, by number. A thread first copies a template of its own tables, and adds the address of the copy to
the words that are addresses inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...function import CompiledFunction
from ...loops.kernel_tables import Layout
from ...loops.kernel_types import INT, TableType
from ...loops.kernel_writer import REAL
from ...loops.loop_writer import write_module
from ...loops.planner import Planner
from ..llvm.ir import Function, pointer_type
from ..llvm.trig import sincos_ir, sincos_name
from .emit_thread import OF_FUNCTIONS, OUTLINED, emit_thread
from .kernel import ENTRY, memory_of_thread
from .target import OWN, SHARED, Target

THREADS = 32  # threads per block
DISPATCHER = "fw.dispatch"
PARAMETERS = ["i64 %states", "ptr %template", "i64 %words", "ptr %places", "i64 %addresses", "ptr %own", "ptr %shared_table"]
"""Number of threads; a thread's template, its words, the positions of addresses; the memory of all threads; the table."""


def emit_loop_kernel(
    function: Callable[..., int], layouts: tuple[Layout, Layout], calls: Sequence[CompiledFunction], target: Target
) -> str:
    """Return a module with the kernel, whose parameters are `PARAMETERS`.

    `function(own, shared, number)` takes a table of each thread, a table of all threads, and the thread's number. It calls the
    straight-line functions `calls` by their numbers, from 1 on.
    """
    planner = Planner(fused=True)
    planner.kernel(function, (*map(TableType, layouts), INT))  # type: ignore[arg-type]
    lines, kernel = write_module(planner.plan, True, True, dispatcher=DISPATCHER)
    declarations: dict[str, None] = dict.fromkeys(target.declarations)
    definitions = [str(_dispatcher(len(calls)))]
    for number, called in enumerate(calls, 1):
        further, texts = _straight(called, number, target)
        declarations |= dict.fromkeys(further)
        definitions += texts
    text = "\n".join(lines)
    if f"@{sincos_name(REAL)}(" in "".join(definitions) and f" @{sincos_name(REAL)}(double %x)" not in text:
        sincos = sincos_ir(REAL.precision, 1)
        declarations |= dict.fromkeys(sincos.declarations)
        definitions.append(sincos.definition)
    declared = {line for line in lines if "\n" not in line}
    definitions += [str(_preparing()), str(_computing(kernel)), str(_kernel(target))]
    head = [f'target triple = "{target.triple}"', *(d for d in declarations if d not in declared)]
    return "\n".join([*head, text, *definitions, OF_FUNCTIONS]).replace("define hidden", "define internal")


def _straight(f: CompiledFunction, number: int, target: Target) -> tuple[Sequence[str], Iterator[str]]:
    """Return declarations and definitions of a straight-line function, `void fw.callN(ptr arrays)`."""
    sizes = [y.size for y in f.program.outputs]
    arrays = len(f.program.inputs) + len(sizes)
    written = emit_thread(f.trace, REAL, sizes, [0] * arrays, True, f"fw.call{number}")
    g = Function("void", f"fw.call{number}", ["ptr %arrays"], attributes=OUTLINED)
    memory = memory_of_thread(g, max(written.workspace, 1) * REAL.bytes, True, target)
    pointers = [f"ptr {g.load('ptr', g.at('i64', '%arrays', k))}" for k in range(arrays)]
    for part in written.parts:
        g.call("void", f"@{part}", *pointers, f"{pointer_type(OWN)} {memory}")
    g.ret()
    return written.declarations, iter([*written.definitions, str(g)])


def _dispatcher(count: int) -> Function:
    """Return the function that calls one of the straight-line functions by its number; 0 calls none."""
    f = Function("void", DISPATCHER, ["i64 %number", "ptr %arrays"], attributes=OUTLINED)
    ways = " ".join(f"i64 {k}, label %call{k}" for k in range(1, count + 1))
    f.line(f"switch i64 %number, label %none [ {ways} ]")
    for k in range(1, count + 1):
        f.label(f"call{k}")
        f.call("void", f"@fw.call{k}", "ptr %arrays")
        f.ret()
    f.label("none")
    f.ret()
    return f


def _phase(name: str) -> tuple[Function, str, str]:
    """Return a function of one thread, in which surplus threads return; the thread's number, and its own memory."""
    f = Function(
        "void", name, ["i32 %thread", "i32 %block", f"{pointer_type(SHARED)} %shared", *PARAMETERS], attributes=OUTLINED
    )
    thread, block = (f.cast("zext", "i32", x, "i64") for x in ("%thread", "%block"))
    number = f.add(f.mul(block, THREADS), thread)
    beyond, there = f.fresh("beyond"), f.fresh("there")
    f.branch(f.less(number, "%states"), there, beyond)
    f.label(beyond)
    f.ret()
    f.label(there)
    return f, number, f.at("i64", "%own", f.mul(number, "%words"))


def _preparing() -> Function:
    """Return the function that copies the template.

    It is separate, so that words of tables are constant in the main function.
    """
    f, _, own = _phase("fw_prepare")
    with f.loop("%words") as k:
        f.store("i64", f.load("i64", "%template", k), own, k)
    begin = f.cast("ptrtoint", "ptr", own, "i64")
    with f.loop("%addresses") as k:
        place = f.load("i64", "%places", k)
        f.store("i64", f.add(f.load("i64", own, place), begin), own, place)
    f.ret()
    return f


def _computing(kernel: str) -> Function:
    f, number, own = _phase("fw_compute")
    f.call("i64", f"@{kernel}", f"ptr {own}", "ptr %shared_table", f"i64 {number}")
    f.ret()
    return f


def _kernel(target: Target) -> Function:
    """Write the function that the device starts."""
    f = Function("void", ENTRY, PARAMETERS, target.convention, OUTLINED)
    passed = [*(f"i32 {f.value(x)}" for x in (target.thread, target.block)), f"{pointer_type(SHARED)} null", *PARAMETERS]
    for phase in ("fw_prepare", "fw_compute"):
        f.call("void", f"@{phase}", *passed)
    f.ret()
    return f
