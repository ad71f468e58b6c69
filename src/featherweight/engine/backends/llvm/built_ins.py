"""Built-in functions around compiled loops: calls of them, copies of arguments to their arrays, and copies of their results.

A call through ctypes takes 0.15 µs longer than one of a built-in function, and a copy of an array by NumPy's method 0.05 µs. A
step of the simulation of a small robot takes 2 µs, so that users would notice both. A built-in function reads its table, an
array of words that Python passes as `self`.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import cache
from . import python_objects as objects
from .entry_arguments import has, interface
from .ir import Function
from .jit import compile_optimized, host, load_object

MOST_AXES = 3
CALL = ("code", "words", "brief")  # words of the table of a call: `i64 code(i64 words)`
GOAL = ("to", "bytes", "given", "robots", "rank", *(f"dim{d}" for d in range(MOST_AXES)))
"""An array that arguments overwrite. `robots` is the length of its axis of robots, which `rank` does not count, or 0."""

RESULT = ("source", "names", "used", "descr", "row", "read_only", "rank", *(f"dim{d}" for d in range(MOST_AXES)))
READING = ("result_class", "results", "code", "words")  # of a function that copies results, after a call unless `code` is 0
NO_ARGUMENTS, FASTCALL = 0x04, 0x80  # METH_...
FUNCTIONS = {
    "call_loop": NO_ARGUMENTS, "write_arrays": FASTCALL, "write_and_call": FASTCALL, "read_arrays": NO_ARGUMENTS,
    "enter_use": NO_ARGUMENTS, "leave_use": NO_ARGUMENTS,
}  # fmt: skip


def built_in(function: str, table: Sequence[int], *keeps: Any) -> Callable[..., Any]:
    """Return one of FUNCTIONS with a table. It keeps objects alive, which own the memory that the words refer to."""
    made: Callable[..., Any] = objects.new_function(_definitions()[function], np.array(table, np.int64), keeps)
    return made


def entrance() -> tuple[Callable[[], bool], Callable[[], bool]]:
    """Return functions that enter and leave a use by one thread, which may nest; they return whether they did.

    A lock of Python takes three times as long.
    """
    state = np.zeros(2, np.int64)
    at = (int(state.ctypes.data),)
    return built_in("enter_use", at, state), built_in("leave_use", at, state)


@functools.cache
def _definitions() -> dict[str, int]:
    """Return the addresses of the definitions of all functions, whose code stays loaded."""
    kept = cache.kept(lambda: compile_optimized(emit_built_ins()), "built-in functions", host(), objects.layout())
    code = load_object(kept, "interfaces", *FUNCTIONS)
    objects.provide_interfaces(code)
    titles = [ctypes.create_string_buffer(name.encode()) for name in FUNCTIONS]
    rows = [(ctypes.addressof(x), code.address(name), FUNCTIONS[name], 0) for x, name in zip(titles, FUNCTIONS, strict=True)]
    words = np.array(rows, np.int64)
    _loaded.append((code, titles, words))
    return {name: words[k].ctypes.data for k, name in enumerate(FUNCTIONS)}


_loaded: list[Any] = []  # Python refers to definitions by their addresses


def emit_built_ins() -> str:
    """Return a module with FUNCTIONS and `@interfaces`."""
    functions = _call(), _write(), _write_and_call(), _copied(), _chosen(), _read(), _enter(), _leave()
    addresses = f"@interfaces = global [{len(objects.Interfaces._fields)} x ptr] zeroinitializer"
    declared = dict.fromkeys(line for f in functions for line in f.declarations)
    return "\n".join([addresses, *declared, *map(str, functions), "attributes #0 = { nounwind }"])


def _table(f: Function) -> str:
    return f.field("ptr", "%self", objects.DATA)


def _word(f: Function, table: str, names: Sequence[str], name: str, kind: str = "i64") -> str:
    return f.load(kind, table, list(names).index(name))


def _call() -> Function:
    """Call a loop; the interpreter's lock is released unless the loop is brief."""
    f = Function("ptr", "call_loop", ["ptr %self", "ptr %none"], linkage="external")
    f.ret("ptr", f.call("ptr", interface(f, "int_of_number"), f"i64 {_number_of_loop(f, _table(f))}"))
    return f


def _number_of_loop(f: Function, table: str) -> str:
    """Call the loop of a table; return its number."""
    code, words = _word(f, table, CALL, "code", "ptr"), _word(f, table, CALL, "words")
    with f.choice(f.equal(_word(f, table, CALL, "brief"), 0)) as (free, brief):
        with free:
            thread = f.call("ptr", interface(f, "save_thread"))
            freely, end = f.call("i64", code, f"i64 {words}"), f.block
            f.call("void", interface(f, "restore_thread"), f"ptr {thread}")
        with brief:
            briefly, other_end = f.call("i64", code, f"i64 {words}"), f.block
    return f.phi("i64", (freely, end), (briefly, other_end))


def _write() -> Function:
    """Copy arguments to goals; return whether all are arrays of float64 or float32 with the right shapes, or None.

    None writes zeros, or clears the goal's flag `given`, which arrays set.
    """
    f = Function("ptr", "write_arrays", ["ptr %self", "ptr %args", "i64 %nargs"], linkage="external")
    _write_goals(f, _table(f))
    return _with_answers(f)


def _write_and_call() -> Function:
    """Copy arguments to goals, as `write_arrays` does, and call a loop; return its number, or None without the call."""
    f = Function("ptr", "write_and_call", ["ptr %self", "ptr %args", "i64 %nargs"], linkage="external")
    table = _table(f)
    _write_goals(f, f.at("i64", table, len(CALL)))
    f.ret("ptr", f.call("ptr", interface(f, "int_of_number"), f"i64 {_number_of_loop(f, table)}"))
    f.label("refused")
    _return_none(f)
    return f


def _write_goals(f: Function, table: str) -> None:
    """Copy arguments to the goals of a table; go to `refused` if an argument does not fit."""
    ignored, cursor = f.slot("i8"), (f.slot("i64"), f.slot("i64"))
    f.require(f.equal(f.load("i64", table), "%nargs"), "refused")
    with f.loop("%nargs") as k:
        goal, x = f.at("i64", table, f.add(f.mul(k, len(GOAL)), 1)), f.load("ptr", "%args", k)
        to, given = (_word(f, goal, GOAL, name, "ptr") for name in ("to", "given"))
        bytes, flagged = _word(f, goal, GOAL, "bytes"), f.negation(f.equal(given, "null", "ptr"))
        with f.choice(f.equal(x, interface(f, "none"), "ptr")) as (nothing, array):
            with nothing:
                f.clear_bytes(f.select(flagged, given, to, "ptr"), f.select(flagged, 1, bytes))
            with array:
                single = _require_fit(f, goal, x)
                contiguous = has(f, f.field("i32", x, objects.FLAGS), objects.CONTIGUOUS)
                with f.choice(f.both(contiguous, f.negation(single))) as (whole, apart):
                    with whole:
                        f.copy_bytes(to, f.field("ptr", x, objects.DATA), bytes)
                    with apart:
                        _copy_numbers(f, x, single, to, f.div(bytes, 8), cursor)
                f.store("i8", 1, f.select(flagged, given, ignored, "ptr"))


def _require_fit(f: Function, goal: str, x: str) -> str:
    """Go to `refused` unless an argument is an array of floats with the shape of a goal; return whether they are float32."""
    f.require(f.equal(f.field("ptr", x, objects.TYPE), interface(f, "array_class"), "ptr"), "refused")
    descr = f.field("ptr", x, objects.DESCR)
    double, single = (f.equal(descr, interface(f, name), "ptr") for name in ("double", "single"))
    f.require(f.either(double, single), "refused")
    f.require(has(f, f.field("i32", x, objects.FLAGS), objects.ALIGNED), "refused")
    rank, robots, axes = _word(f, goal, GOAL, "rank"), _word(f, goal, GOAL, "robots"), f.field("i32", x, objects.NDIM)
    extra, dims = f.sub(f.cast("sext", "i32", axes, "i64"), rank), f.field("ptr", x, objects.DIMS)
    with f.choice(f.equal(extra, 0)) as (without, other):
        with without:
            f.require(f.less(robots, 2), "refused")
        with other:
            f.require(f.both(f.equal(extra, 1), f.less(0, robots)), "refused")
            f.require(f.equal(f.load("i64", dims), robots), "refused")
    core = f.at("i64", goal, GOAL.index("dim0"))
    with f.loop(rank) as d:
        f.require(f.equal(f.load("i64", dims, f.add(extra, d)), f.load("i64", core, d)), "refused")
    return single


def _copy_numbers(f: Function, x: str, single: str, to: str, count: str, cursor: tuple[str, str]) -> None:
    """Copy `count` numbers of an array with any strides; `cursor` is memory for what is left of an index, and an offset."""
    dims, strides, data = (f.field("ptr", x, place) for place in (objects.DIMS, objects.STRIDES, objects.DATA))
    axes, (left, offset) = f.cast("sext", "i32", f.field("i32", x, objects.NDIM), "i64"), cursor
    with f.loop(count) as k:
        f.store("i64", k, left)
        f.store("i64", 0, offset)
        with f.loop(axes) as outer:
            d = f.sub(f.sub(axes, 1), outer)
            index, length = f.load("i64", left), f.load("i64", dims, d)
            before = f.div(index, length)
            f.store("i64", before, left)
            moved = f.mul(f.sub(index, f.mul(before, length)), f.load("i64", strides, d))
            f.store("i64", f.add(f.load("i64", offset), moved), offset)
        number = f.at("i8", data, f.load("i64", offset))
        with f.choice(single) as (short, long):
            with short:
                widened, end = f.cast("fpext", "float", f.load("float", number), "double"), f.block
            with long:
                same, other_end = f.load("double", number), f.block
        f.store("double", f.phi("double", (widened, end), (same, other_end)), to, k)


def _rows(f: Function, result: str) -> str:
    """Return the number of rows of a result that count: all, unless another number stands in memory."""
    used, every = _word(f, result, RESULT, "used", "ptr"), f.at("i64", result, RESULT.index("dim0"))
    return f.load("i64", f.select(f.equal(used, "null", "ptr"), every, used, "ptr"))


def _copied() -> Function:
    """Return a new array with the rows of a result."""
    f = Function("ptr", "copied", ["ptr %result"])
    dims = f.slot("i64", MOST_AXES)
    rows, rank, descr = _rows(f, "%result"), _word(f, "%result", RESULT, "rank"), _word(f, "%result", RESULT, "descr", "ptr")
    f.copy_bytes(dims, f.at("i64", "%result", RESULT.index("dim0")), str(8 * MOST_AXES))
    f.store("i64", rows, dims)
    f.call("void", interface(f, "increment"), f"ptr {descr}")  # the array takes the reference
    what = f"ptr {interface(f, 'array_class')}", f"ptr {descr}", f"i32 {f.cast('trunc', 'i64', rank, 'i32')}", f"ptr {dims}"
    array = f.call("ptr", interface(f, "new_array"), *what, "ptr null", "ptr null", "i32 0", "ptr null")
    f.require(f.negation(f.equal(array, "null", "ptr")), "done")
    bytes, source = f.mul(rows, _word(f, "%result", RESULT, "row")), _word(f, "%result", RESULT, "source", "ptr")
    f.copy_bytes(f.field("ptr", array, objects.DATA), source, bytes)
    f.require(f.equal(_word(f, "%result", RESULT, "read_only"), 1), "done")
    flags = f.field("i32", array, objects.FLAGS)
    f.store("i32", f.binary("and", "i32", flags, ~objects.WRITEABLE), f.at("i8", array, objects.FLAGS))
    f.jump("done")
    f.label("done")
    f.ret("ptr", array)
    return f


def _chosen() -> Function:
    """Return a list of the items of the list `names` that have the numbers of a result."""
    f = Function("ptr", "chosen", ["ptr %result"])
    rows = _rows(f, "%result")
    chosen = f.call("ptr", interface(f, "new_list"), f"i64 {rows}")
    f.require(f.negation(f.equal(chosen, "null", "ptr")), "done")
    numbers, names = (_word(f, "%result", RESULT, name, "ptr") for name in ("source", "names"))
    every, own = f.field("ptr", names, objects.ITEMS_OF_LIST), f.field("ptr", chosen, objects.ITEMS_OF_LIST)
    with f.loop(rows) as i:
        name = f.load("ptr", every, f.load("i64", numbers, i))
        f.call("void", interface(f, "increment"), f"ptr {name}")
        f.store("ptr", name, own, i)
    f.jump("done")
    f.label("done")
    f.ret("ptr", chosen)
    return f


def _read() -> Function:
    """Return copies of results: one, or a named tuple of several."""
    f = Function("ptr", "read_arrays", ["ptr %self", "ptr %none"], linkage="external")
    table = _table(f)
    kind, count, code, words = (
        _word(f, table, READING, name, kind)
        for name, kind in (("result_class", "ptr"), ("results", "i64"), ("code", "ptr"), ("words", "i64"))
    )
    results = f.at("i64", table, len(READING))
    f.branch(f.equal(code, "null", "ptr"), "read", "call")
    f.label("call")
    f.branch(f.equal(f.call("i64", code, f"i64 {words}"), 0), "nothing", "read")
    f.label("nothing")
    _return_none(f)
    f.label("read")
    f.branch(f.equal(kind, "null", "ptr"), "alone", "several")
    f.label("alone")
    f.ret("ptr", f.call("ptr", "@copied", f"ptr {results}"))
    f.label("several")
    named = f.call("ptr", interface(f, "allocate"), f"ptr {kind}", f"i64 {count}")
    f.require(f.negation(f.equal(named, "null", "ptr")), "failed")
    items = f.at("i8", named, objects.ITEMS_OF_TUPLE)
    with f.loop(count) as j:
        result = f.at("i64", results, f.mul(j, len(RESULT)))
        with f.choice(f.equal(_word(f, result, RESULT, "names", "ptr"), "null", "ptr")) as (array, list):
            with array:
                copied, end = f.call("ptr", "@copied", f"ptr {result}"), f.block
            with list:
                chosen, other_end = f.call("ptr", "@chosen", f"ptr {result}"), f.block
        item = f.phi("ptr", (copied, end), (chosen, other_end))
        f.require(f.negation(f.equal(item, "null", "ptr")), "drop")
        f.store("ptr", item, items, j)
    f.ret("ptr", named)
    f.label("drop")  # Python frees the items that are there
    f.call("void", interface(f, "decrement"), f"ptr {named}")
    f.jump("failed")
    f.label("failed")
    f.ret("ptr", "null")
    return f


def _enter() -> Function:
    """Note one more use by this thread; return whether no other thread has one."""
    f = Function("ptr", "enter_use", ["ptr %self", "ptr %none"], linkage="external")
    use, thread = f.load("ptr", _table(f)), f.call("ptr", interface(f, "thread_state"))
    depth = f.load("i64", use, 1)
    allowed = f.either(f.equal(depth, 0), f.equal(f.load("ptr", use), thread, "ptr"))
    f.require(allowed, "refused")
    f.store("ptr", thread, use)
    f.store("i64", f.add(depth, 1), use, 1)
    return _with_answers(f)


def _leave() -> Function:
    """End a use by this thread; return whether there was one."""
    f = Function("ptr", "leave_use", ["ptr %self", "ptr %none"], linkage="external")
    use, thread = f.load("ptr", _table(f)), f.call("ptr", interface(f, "thread_state"))
    depth = f.load("i64", use, 1)
    f.require(f.both(f.less(0, depth), f.equal(f.load("ptr", use), thread, "ptr")), "refused")
    f.store("i64", f.sub(depth, 1), use, 1)
    return _with_answers(f)


def _return_none(f: Function) -> None:
    none = interface(f, "none")
    f.call("void", interface(f, "increment"), f"ptr {none}")
    f.ret("ptr", none)


def _with_answers(f: Function) -> Function:
    """Return True here, and False at the label `refused`."""
    f.ret("ptr", f.call("ptr", interface(f, "bool_of_number"), "i64 1"))
    f.label("refused")
    f.ret("ptr", f.call("ptr", interface(f, "bool_of_number"), "i64 0"))
    return f
