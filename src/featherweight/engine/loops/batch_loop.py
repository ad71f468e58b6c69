"""Kernels over states: constants, rows of arrays that a kernel reads, and rows that it writes.

The machine code of a kernel is the same for all models: `i64 rows(ptr words, ptr pointers, i64 begin, i64 stop)` computes
states from `begin` to `stop` - 1. `words` has the constants; and for each array its address (0 for the next of `pointers`), the
stride of states in bytes, and the lengths of a state's axes. It returns 1 without memory for lists, otherwise 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..backends.llvm.ir import Function
from ..backends.llvm.jit import Code, host, load_object
from ..program import KernelProgram
from .kernel_code import Specialization, code_of
from .kernel_sources import KernelError
from .kernel_types import FLOAT, NONE, ArrayType, TupleType, Type, named_tuples, type_of
from .kernel_writer import ATTRIBUTES, words_of
from .loop_writer import argument_words, write_module
from .plan import Plan
from .planner import Planner
from .workspaces import begin_workspace, end_workspace, has_failed, that_allocate


def rows_code(program: KernelProgram, constants: Sequence[Any]) -> Code:
    """Return the machine code of a program's kernel, for constants of these types."""
    types = [*map(type_of, constants), *(ArrayType("float64", len(a.shape)) if a.shape else FLOAT for a in program.arguments)]
    written: list[Type] = [ArrayType("float64", len(r.in_kernel)) for r in program.results]
    types.append(written[0] if len(written) == 1 else TupleType(tuple(written)))
    text = f"over states, {len(constants)} constants: {' '.join(map(str, types))}"
    kernel = Specialization(program.kernel, True, text, named_tuples(types), program.title, thorough=True)
    _, code = code_of(kernel, lambda: ({}, _written(program.kernel, tuple(types), len(constants))))
    return load_object(code, "rows")


def _written(kernel: Callable[..., None], types: tuple[Type, ...], constants: int) -> str:
    """Return the module of a kernel."""
    fma = host().fma
    planner = Planner(fma, wraps=True)
    plan = planner.function(kernel, types)  # type: ignore[arg-type]
    if plan.result != NONE:
        raise KernelError(f"{kernel.__qualname__} returns {plan.result}; a kernel over states must write to its results")
    lines, name = write_module(planner.plan, planner.fused, fma, checked=False)
    return "\n".join([*lines, write_rows(planner.plan, name, types[:constants], types[constants:])])


def write_rows(plan: Plan, kernel: str, constants: Sequence[Type], arrays: Sequence[Type]) -> str:
    """Return the function `rows`."""
    f = Function("i64", "rows", ["ptr %words", "ptr %pointers", "i64 %begin", "i64 %stop"], "external", ATTRIBUTES)
    workspace = begin_workspace(f) if id(plan.functions[-1]) in that_allocate(plan) else ""
    kinds = [w for t in constants for w in words_of(t)]
    fixed = [f"ptr {workspace}"] if workspace else []
    fixed += argument_words(f, kinds, "%words")
    rows, at, next_pointer = [], len(kinds), "0"
    for axes in axes_of(arrays):
        address, stride, *shape = (f.load("i64", "%words", at + k) for k in range(2 + axes))
        at += 2 + axes
        given = f.equal(address, 0)
        pointer = f.load("i64", "%pointers", next_pointer)
        rows.append((f.select(given, pointer, address), stride, [f"i64 {n}" for n in shape]))
        next_pointer = f.add(next_pointer, f.cast("zext", "i1", given, "i64"))
    failed = f.fresh("failed")
    with f.loop("%stop", "%begin") as i:
        state = []
        for address, stride, lengths in rows:
            pointer = f.cast("inttoptr", "i64", f.add(address, f.mul(i, stride)), "ptr")
            state += [f"ptr {pointer}", *lengths] if lengths else [f"double {f.load('double', pointer)}"]
        f.call("void", f"@{kernel}", *fixed, *state)
        if workspace:
            f.require(f.negation(has_failed(f, workspace)), failed)
    for label, result in (("", 0), (failed, 1)) if workspace else (("", 0),):
        if label:
            f.label(label)
        if workspace:
            end_workspace(f, workspace)
        f.ret("i64", str(result))
    return str(f)


def axes_of(types: Sequence[Type]) -> Iterator[int]:
    """Yield the numbers of axes of arrays; numbers have none."""
    for t in types:
        if isinstance(t, TupleType):
            yield from axes_of(t.items)
        else:
            yield t.axes if isinstance(t, ArrayType) else 0
