"""The workspace of a call: memory for the lists that kernels make, consecutive in blocks of growing size.

A function that returns no list frees its memory when it ends; a loop does so before each iteration if no list outlives one.
Blocks are freed when the call ends. If the system has no memory, a mark in the workspace says so, and all functions return.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..backends.llvm.ir import Function
from .kernel_types import ArrayType, TupleType, Type
from .plan import Allocate, Assign, Call, For, FunctionPlan, Plan, Read, While

NEXT, END, BLOCK, FIRST, FAILED, WORDS = range(6)  # words of a workspace: addresses, and whether memory ran out
FOLLOWING, STOP, HEAD = 0, 1, 16  # words of a block: the next block and its own end, and their size in bytes
LEAST = 1 << 16  # least size of a block in bytes
GRAIN = 64  # alignment in bytes: a cache line, so that two lists do not share one

ALLOCATE, GROW, FREE = '"workspace.allocate"', '"workspace.grow"', '"workspace.free"'


def holds_arrays(type: Type) -> bool:
    return isinstance(type, ArrayType) or (isinstance(type, TupleType) and any(map(holds_arrays, type.items)))


def nodes(x: object) -> Iterator[Any]:
    """Yield the statements and expressions inside a node, including itself, in any order."""
    pending = [x]
    while pending:
        y = pending.pop()
        if isinstance(y, (list, tuple)):
            if hasattr(y, "_fields"):
                yield y
            pending.extend(y)


def that_allocate(plan: Plan) -> set[int]:
    """Return the functions, by `id`, that make lists, directly or in callees, and therefore need the workspace."""
    found: set[int] = set()
    for function in plan.functions:  # callees come first
        if any(isinstance(x, Allocate) or (isinstance(x, Call) and id(x.function) in found) for x in nodes(function.body)):
            found.add(id(function))
    return found


def loops_that_release(function: FunctionPlan, allocating: set[int]) -> set[int]:
    """Return the loops, by `id`, that make lists none of which outlives an iteration."""
    found: set[int] = set()
    everywhere = _uses(function.body)
    for loop in nodes(function.body):
        if not isinstance(loop, (For, While)):
            continue
        parts = [loop.body] if isinstance(loop, For) else [loop.head, loop.test, loop.body]
        within = _uses(parts)
        makes = any(isinstance(x, Allocate) or (isinstance(x, Call) and id(x.function) in allocating) for x in nodes(parts))
        kept = {v for v, (sets, _) in within.items() if sets and within[v] != everywhere[v]}
        if makes and not kept:
            found.add(id(loop))
    return found


def _uses(part: object) -> dict[int, tuple[int, int]]:
    """Return how often variables of arrays are set and read."""
    found: dict[int, tuple[int, int]] = {}
    for x in nodes(part):
        if isinstance(x, (Assign, Read)) and holds_arrays(x.variable.type):
            sets, reads = found.get(x.variable.number, (0, 0))
            new = isinstance(x, Assign)
            found[x.variable.number] = sets + new, reads + (not new)
    return found


def begin_workspace(f: Function) -> str:
    """Return an empty workspace on the stack, in a function's first block."""
    workspace = f.slot("i64", WORDS)
    for k in range(WORDS):
        f.store("i64", 0, workspace, k)
    return workspace


def end_workspace(f: Function, workspace: str) -> None:
    """Free its blocks."""
    f.call("void", f"@{FREE}", f"ptr {workspace}")


Mark = tuple[str, str, str]


def mark_workspace(f: Function, workspace: str) -> Mark:
    """Return the size of the workspace in use."""
    taken, end, block = (f.load("i64", workspace, k) for k in (NEXT, END, BLOCK))
    return taken, end, block


def release_workspace(f: Function, workspace: str, mark: Mark) -> None:
    """Free the memory allocated since the mark."""
    for k, word in zip((NEXT, END, BLOCK), mark, strict=True):
        f.store("i64", word, workspace, k)


def has_failed(f: Function, workspace: str) -> str:
    return f.negation(f.equal(f.load("i64", workspace, FAILED), 0))


def workspace_parts() -> tuple[list[str], list[str]]:
    """Return declarations, and the text of functions that allocate memory, allocate another block, and free all."""
    return ["declare noalias ptr @malloc(i64)", "declare void @free(ptr)"], [str(_allocate()), str(_grow()), str(_free())]


def _allocate() -> Function:
    """Return `ptr allocate(ptr workspace, i64 bytes)`, which returns 0 without memory."""
    f = Function("noalias ptr", ALLOCATE, ["ptr %w", "i64 %bytes"], attributes="noinline nounwind")
    size = f.binary("and", "i64", f.add("%bytes", GRAIN - 1), -GRAIN)
    taken, end = f.load("i64", "%w", NEXT), f.load("i64", "%w", END)
    after, fits, full = f.add(taken, size), f.fresh("fits"), f.fresh("full")
    f.branch(f.value(f"icmp ugt i64 {after}, {end}"), full, fits)
    f.label(fits)
    f.store("i64", after, "%w", NEXT)
    f.ret("ptr", f.cast("inttoptr", "i64", taken, "ptr"))
    f.label(full)
    f.ret("ptr", f.call("ptr", f"@{GROW}", "ptr %w", f"i64 {size}"))
    return f


def _grow() -> Function:
    """Return the function that allocates from the next large enough block; from a new one if there is none."""
    f = Function("ptr", GROW, ["ptr %w", "i64 %size"], attributes="noinline nounwind")
    search, some, new, there, use, none = (f.fresh(x) for x in ("search", "some", "new", "there", "use", "none"))
    block, empty = f.load("i64", "%w", BLOCK), f.at("i64", "%w", FIRST)
    f.jump(search)
    f.label(search)
    last = f.value(f"phi i64 [ {block}, %start ], [ %following, %{some} ]")
    is_first = f.equal(last, 0)
    link = f.select(
        is_first, empty, f.cast("inttoptr", "i64", last, "ptr"), "ptr"
    )  # a block starts with its successor's address
    f.line(f"%following = load i64, ptr {link}")
    f.branch(f.equal("%following", 0), new, some)
    f.label(some)
    end = f.load("i64", f.cast("inttoptr", "i64", "%following", "ptr"), STOP)
    f.branch(f.less(end, f.add(_begin(f, "%following"), "%size")), search, use)
    f.label(new)
    length = f.select(is_first, 0, f.sub(f.load("i64", f.select(is_first, "%w", link, "ptr"), STOP), last))
    wanted = f.add("%size", HEAD + GRAIN)
    for other in (f.mul(length, 2), LEAST):
        wanted = f.select(f.less(wanted, other), other, wanted)
    memory = f.call("ptr", "@malloc", f"i64 {wanted}")
    number = f.cast("ptrtoint", "ptr", memory, "i64")
    f.branch(f.equal(number, 0), none, there)
    f.label(there)
    f.store("i64", number, link)
    f.store("i64", 0, memory, FOLLOWING)
    f.store("i64", f.add(number, wanted), memory, STOP)
    f.jump(use)
    f.label(use)
    chosen = f.value(f"phi i64 [ %following, %{some} ], [ {number}, %{there} ]")
    begin = _begin(f, chosen)
    f.store("i64", f.add(begin, "%size"), "%w", NEXT)
    f.store("i64", f.load("i64", f.cast("inttoptr", "i64", chosen, "ptr"), STOP), "%w", END)
    f.store("i64", chosen, "%w", BLOCK)
    f.ret("ptr", f.cast("inttoptr", "i64", begin, "ptr"))
    f.label(none)
    f.store("i64", 1, "%w", FAILED)
    f.ret("ptr", "null")
    return f


def _begin(f: Function, block: str) -> str:
    """Return the start of a block's memory, at a cache line."""
    return f.binary("and", "i64", f.add(block, HEAD + GRAIN - 1), -GRAIN)


def _free() -> Function:
    f = Function("void", FREE, ["ptr %w"], attributes="noinline nounwind")
    first = f.load("i64", "%w", FIRST)
    head, body, done = f.fresh("head"), f.fresh("body"), f.fresh("done")
    f.jump(head)
    f.label(head)
    block = f.value(f"phi i64 [ {first}, %start ], [ %following, %{body} ]")
    f.branch(f.equal(block, 0), done, body)
    f.label(body)
    old = f.cast("inttoptr", "i64", block, "ptr")
    f.line(f"%following = load i64, ptr {old}")
    f.call("void", "@free", f"ptr {old}")
    f.jump(head)
    f.label(done)
    f.ret()
    return f
