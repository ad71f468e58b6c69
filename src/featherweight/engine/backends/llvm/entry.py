"""Calls from Python at the price of a C extension.

NumPy's ufunc machinery costs more than the dynamics of a small robot. So a function gets an entry of its own: a built-in Python
function, written in LLVM IR, that takes arguments by place or by name, reads NumPy's arrays where they lie, makes the results,
and releases the GIL around the kernel. What each argument is decides the way:

    single     arrays of the core shapes, elements adjacent
    gathered   arrays of any strides, of either precision, lists and tuples of numbers: copied to the stack first
    batch      adjacent rows of so few states that one thread is enough: the loop of the ufunc, without the ufunc

Anything else, what is wrong above all, it hands to the general call. An entry depends on the shapes only: what computes lies in
other modules, whose addresses are filled into the entry's table once they are there, with those of this process. Until then,
too, the general call answers.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from ...program import CoreShape, Program
from .ir import Function, Type
from .jit import load_object
from .python_objects import (
    ALIGNED,
    CONTIGUOUS,
    DATA,
    DESCR,
    DIMS,
    FLAGS,
    ITEMS_OF_LIST,
    ITEMS_OF_TUPLE,
    KIND_OF_DESCR,
    NDIM,
    NUMBER_OF_DESCR,
    NUMBERS,
    ORDER_OF_DESCR,
    SIZE_OF_LIST,
    SIZE_OF_TUPLE,
    STRIDES,
    TYPE,
    VALUE_OF_FLOAT,
    WRITEABLE,
    Interfaces,
    interfaces,
)

STACK_BYTES = 16_384  # of arguments that are gathered, at most
MOST_RANK = 3  # of arguments that are gathered

OWN = ("descr", "result_class", "single", "loop", "most_states", "other")  # of the table: what belongs to one function
NAMES = len(Interfaces._fields) + len(OWN)  # where the names of inputs, and "out", begin in the table

# what an argument is: bits
SINGLE, BATCH, PLAIN, SAME, OTHER, NUMBERS_OF_PYTHON = 1, 2, 4, 8, 16, 32
KIND = ["ptr %object", "i64 %rank", "ptr %core"]


def emit_entry(shapes: Sequence[CoreShape], inputs: int, type: Type) -> str:
    """A module with `ptr @entry(ptr self, ptr args, i64 nargs, ptr kwnames)` and its `@table`, for one precision.

    `shapes` are the core shapes of the inputs and then the outputs.
    """
    words = NAMES + inputs + 1
    texts = [f"@table = global [{words} x ptr] zeroinitializer"]
    for k, shape in enumerate(shapes):
        dims = ", ".join(f"i64 {d}" for d in shape) or "i64 0"
        texts.append(f"@core.{k} = internal constant [{max(1, len(shape))} x i64] [{dims}]")
    texts.append(str(_kind_of(type)))
    for k, shape in enumerate(shapes[:inputs]):
        if len(shape) <= MOST_RANK:
            texts.append(str(_gather(k, shape, type)))
    texts.append(str(_Entry(shapes, inputs, type).written()))
    return "\n".join([*texts, "attributes #0 = { noinline nounwind }"])


def _interface(f: Function, name: str) -> str:
    """What a word of the table holds."""
    return f.load("ptr", "@table", [*Interfaces._fields, *OWN].index(name))


def _kind_of(type: Type) -> Function:
    """What an argument is, in bits; none of them for what the general call must look at."""
    f = Function("i32", "fw.kind", KIND)
    is_a = f.field("ptr", "%object", TYPE)
    f.branch(f.equal(is_a, _interface(f, "array_class"), "ptr"), "array", "python")
    f.label("python")
    f.branch(f.equal("%rank", 1), "sequence", "number")
    for label, classes in (
        ("sequence", ("list_class", "tuple_class")),
        ("number", ("float_class", "float64_class", "int_class")),
    ):
        f.label(label)
        for name in classes:
            on = f.fresh("no")
            f.branch(f.equal(is_a, _interface(f, name), "ptr"), "plain" if label == "sequence" else "scalar", on)
            f.label(on)
        f.jump("none")
    f.label("scalar")
    f.branch(f.equal("%rank", 0), "plain", "none")
    f.label("plain")
    f.line(f"ret i32 {SINGLE | NUMBERS_OF_PYTHON}")
    f.label("array")
    flags = f.field("i32", "%object", FLAGS)
    f.require(f.equal(f.value(f"and i32 {flags}, {ALIGNED}"), ALIGNED, "i32"), "none")
    axes = f.value(f"sext i32 {f.field('i32', '%object', NDIM)} to i64")
    extra = f.value(f"sub i64 {axes}, %rank")
    f.require(f.value(f"icmp ult i64 {extra}, 2"), "none")
    dims = f.field("ptr", "%object", DIMS)
    with f.loop("%rank") as i:
        same = f.equal(f.load("i64", dims, f.add(extra, i)), f.load("i64", "%core", i))
        f.require(same, "none")
    shape = f.value(f"select i1 {f.equal(extra, 0)}, i32 {SINGLE}, i32 {BATCH}")
    descr = f.field("ptr", "%object", DESCR)
    f.branch(f.equal(descr, _interface(f, "descr"), "ptr"), "same", "described")
    f.label("described")  # unpickled arrays have descriptors of their own
    f.require(f.equal(f.field("i8", descr, KIND_OF_DESCR), ord("f"), "i8"), "none")
    f.require(f.equal(f.field("i8", descr, ORDER_OF_DESCR), ord("="), "i8"), "none")
    number = f.field("i32", descr, NUMBER_OF_DESCR)
    other = NUMBERS["float" if type.precision == "double" else "double"]
    on = f.fresh("no")
    f.branch(f.equal(number, NUMBERS[type.precision], "i32"), "same", on)
    f.label(on)
    f.require(f.equal(number, other, "i32"), "none")
    f.line(f"ret i32 {f.value(f'or i32 {shape}, {OTHER}')}")
    f.label("same")
    adjacent = f.equal(f.value(f"and i32 {flags}, {CONTIGUOUS}"), CONTIGUOUS, "i32")
    more = f.value(f"select i1 {adjacent}, i32 {SAME | PLAIN}, i32 {SAME}")
    f.line(f"ret i32 {f.value(f'or i32 {shape}, {more}')}")
    f.label("none")
    f.line("ret i32 0")
    return f


def _gather(k: int, shape: CoreShape, type: Type) -> Function:
    """Copy the elements of an argument, of which @fw.kind thinks well, to a buffer; whether all of them are numbers."""
    f = Function("i1", f"fw.gather.{k}", ["ptr %object", "ptr %buffer", "i32 %kind"])
    T = type.precision
    is_array = f.equal(f.value(f"and i32 %kind, {NUMBERS_OF_PYTHON}"), 0, "i32")
    f.branch(is_array, "array", "python")
    f.label("array")
    data, strides = f.field("ptr", "%object", DATA), f.field("ptr", "%object", STRIDES)
    steps = [f.load("i64", strides, d) for d in range(len(shape))]
    f.branch(f.equal(f.value(f"and i32 %kind, {SAME}"), SAME, "i32"), "same", "other")
    sources = {"same": T, "other": "float" if T == "double" else "double"}
    for label, source in sources.items():
        f.label(label)
        with _elements(f, shape) as index:
            at = data
            for i, step in zip(index, steps, strict=True):
                at = f.value(f"getelementptr i8, ptr {at}, i64 {f.mul(i, step)}")
            x = f.load(source, at)
            if source != T:
                x = f.value(f"{'fpext' if T == 'double' else 'fptrunc'} {source} {x} to {T}")
            f.store(T, x, "%buffer", _flat(f, index, shape))
        f.line("ret i1 true")
    f.label("python")
    if T == "double" and len(shape) < 2:
        _gather_numbers(f, shape)
    f.jump("none")
    f.label("none")
    f.line("ret i1 false")
    return f


def _gather_numbers(f: Function, shape: CoreShape) -> None:
    """Python's numbers: floats where they lie, integers by Python; booleans and all else are left to the general call."""
    if not shape:
        f.store("double", _number(f, "%object"), "%buffer")
        f.line("ret i1 true")
        f.label(f.fresh("unreached"))
        return
    listed = f.equal(f.field("ptr", "%object", TYPE), _interface(f, "list_class"), "ptr")
    size = [f.field("i64", "%object", x) for x in (SIZE_OF_LIST, SIZE_OF_TUPLE)]
    f.require(f.equal(f.value(f"select i1 {listed}, i64 {size[0]}, i64 {size[1]}"), shape[0]), "none")
    inside = f.at("i8", "%object", ITEMS_OF_TUPLE)
    behind = f.field("ptr", "%object", ITEMS_OF_LIST)  # of a tuple it means nothing, and is not used
    items = f.value(f"select i1 {listed}, ptr {behind}, ptr {inside}")
    with f.loop(str(shape[0])) as i:
        f.store("double", _number(f, f.load("ptr", items, i)), "%buffer", i)
    f.line("ret i1 true")
    f.label(f.fresh("unreached"))


def _number(f: Function, object: str) -> str:
    """The double that a Python number is; goes to "none" for what is none."""
    is_a = f.field("ptr", object, TYPE)
    real, whole, done = f.fresh("real"), f.fresh("whole"), f.fresh("done")
    floats = [f.equal(is_a, _interface(f, name), "ptr") for name in ("float_class", "float64_class")]
    f.branch(f.either(*floats), real, whole)
    f.label(real)
    x = f.field("double", object, VALUE_OF_FLOAT)
    f.jump(done)
    f.label(whole)
    f.require(f.equal(is_a, _interface(f, "int_class"), "ptr"), "none")
    y = f.call("double", _interface(f, "int_as_double"), f"ptr {object}")
    failed, fine = f.fresh("failed"), f.fresh("fine")
    f.branch(f.equal(f.call("ptr", _interface(f, "error_occurred")), "null", "ptr"), fine, failed)
    f.label(failed)
    f.call("void", _interface(f, "error_clear"))
    f.jump("none")
    f.label(fine)
    f.jump(done)
    f.label(done)
    return f.value(f"phi double [ {x}, %{real} ], [ {y}, %{fine} ]")


@contextmanager
def _elements(f: Function, shape: CoreShape) -> Iterator[list[str]]:
    """The body of loops over the indices of an array."""
    with ExitStack() as loops:
        yield [loops.enter_context(f.loop(str(d))) for d in shape]


def _flat(f: Function, index: Sequence[str], shape: CoreShape) -> str:
    """The place of an element among all of them."""
    at = "0"
    for i, d in zip(index, shape, strict=True):
        at = f.add(f.mul(at, d), i)
    return at


class _Entry:
    """The entry itself."""

    def __init__(self, shapes: Sequence[CoreShape], inputs: int, type: Type) -> None:
        self.shapes, self.type, self.n = shapes, type, inputs
        self.sizes = [math.prod(s) for s in shapes]
        self.outputs = range(inputs, len(shapes))
        self.f = Function("ptr", "entry", ["ptr %self", "ptr %args", "i64 %nargs", "ptr %kwnames"], internal=False)

    def written(self) -> Function:
        f, bytes = self.f, self.type.item_bytes
        self.given = f.slot("ptr", self.n + 1)  # the inputs and `out`
        self.data = f.slot("ptr", len(self.shapes))  # where arguments of the kernel lie
        self.results = f.slot("ptr", len(self.outputs))
        self.dims = f.slot("i64", 1 + max(map(len, self.shapes)))
        self.steps = f.slot("i64", sum(1 + len(s) for s in self.shapes))
        gathered = bytes * sum(64 + s for s in self.sizes[: self.n])
        self.gathers = gathered <= STACK_BYTES and all(len(s) <= MOST_RANK for s in self.shapes[: self.n])
        buffer = f.slot("i8", gathered, 64) if self.gathers else ""
        self._bind()
        kinds = [f.call("i32", "@fw.kind", f"ptr {a}", f"i64 {len(s)}", f"ptr @core.{k}")
                 for k, (a, s) in enumerate(zip(self.arguments, self.shapes, strict=False))]  # fmt: skip
        every = some = kinds[0]
        for kind in kinds[1:]:
            every, some = f.value(f"and i32 {every}, {kind}"), f.value(f"or i32 {some}, {kind}")
        for kind in kinds:
            f.require(f.value(f"icmp ne i32 {kind}, 0"), "general")
        f.branch(self._has(every, SINGLE | PLAIN), "single", "look")
        f.label("look")
        f.require(f.value(f"icmp ne i32 {f.value(f'and i32 {some}, {SAME | NUMBERS_OF_PYTHON}')}, 0"), "other")
        f.branch(self._has(some, BATCH), "batch", "gather")
        f.label("single")
        for k, a in enumerate(self.arguments):
            f.store("ptr", f.field("ptr", a, DATA), self.data, k)
        f.jump("one")
        f.label("gather")
        self._gathered(kinds, every, buffer)
        f.label("one")
        self._run(None)
        f.label("batch")
        self._run(self._batch(kinds, every))
        f.label("other")
        entry = _interface(f, "other")
        f.require(f.value(f"icmp ne ptr {entry}, null"), "general")
        f.line(f"ret ptr {f.call('ptr', entry, 'ptr %self', 'ptr %args', 'i64 %nargs', 'ptr %kwnames')}")
        f.label("general")
        answer = f.call("ptr", _interface(f, "vectorcall"), "ptr %self", "ptr %args", "i64 %nargs", "ptr %kwnames")
        f.line(f"ret ptr {answer}")
        f.label("failed")
        f.line("ret ptr null")
        return f

    def _has(self, bits: str, wanted: int) -> str:
        return self.f.equal(self.f.value(f"and i32 {bits}, {wanted}"), wanted, "i32")

    def _bind(self) -> None:
        """Arguments by place, and then by name: names are interned, so their addresses tell."""
        f, n = self.f, self.n
        for k in range(n + 1):
            f.store("ptr", "null", self.given, k)
        f.require(f.value(f"icmp ule i64 %nargs, {n}"), "general")
        with f.loop("%nargs") as i:
            f.store("ptr", f.load("ptr", "%args", i), self.given, i)
        f.branch(f.equal("%kwnames", "null", "ptr"), "bound", "named")
        f.label("named")
        names, values = f.at("i8", "%kwnames", ITEMS_OF_TUPLE), f.at("ptr", "%args", "%nargs")
        with f.loop(f.field("i64", "%kwnames", SIZE_OF_TUPLE)) as i:
            name, value, found = f.load("ptr", names, i), f.load("ptr", values, i), f.fresh("found")
            places = []
            for k in range(n + 1):
                on = f.fresh("no")
                places.append((k, f.block))
                f.branch(f.equal(name, f.load("ptr", "@table", NAMES + k), "ptr"), found, on)
                f.label(on)
            f.jump("general")
            f.label(found)
            place = f.value("phi i64 " + ", ".join(f"[ {k}, %{block} ]" for k, block in places))
            f.require(f.equal(f.load("ptr", self.given, place), "null", "ptr"), "general")
            f.store("ptr", value, self.given, place)
        f.jump("bound")
        f.label("bound")
        self.arguments = [f.load("ptr", self.given, k) for k in range(n)]
        for a in self.arguments:
            f.require(f.value(f"icmp ne ptr {a}, null"), "general")
        self.out = f.load("ptr", self.given, n)
        self.makes = f.equal(self.out, "null", "ptr")

    def _gathered(self, kinds: Sequence[str], every: str, buffer: str) -> None:
        """Copy what is not adjacent, or not of this precision. What is all of single precision has single results."""
        f = self.f
        if not self.gathers:
            f.jump("general")
            return
        if self.type.precision == "float":
            f.require(self._has(every, SAME), "general")
        offset = 0
        for k, (a, kind) in enumerate(zip(self.arguments, kinds, strict=True)):
            plain, copied, after = f.fresh("plain"), f.fresh("copied"), f.fresh("after")
            f.branch(self._has(kind, PLAIN), plain, copied)
            f.label(plain)
            f.store("ptr", f.field("ptr", a, DATA), self.data, k)
            f.jump(after)
            f.label(copied)
            room = f.at("i8", buffer, offset)
            f.store("ptr", room, self.data, k)
            f.require(f.call("i1", f"@fw.gather.{k}", f"ptr {a}", f"ptr {room}", f"i32 {kind}"), "general")
            f.jump(after)
            f.label(after)
            offset += 64 * -(-self.sizes[k] * self.type.item_bytes // 64)
        f.jump("one")

    def _batch(self, kinds: Sequence[str], every: str) -> str:
        """The number of states, the same of all arguments that have an axis before their core."""
        f, count = self.f, self.f.value("add i64 0, -1")
        f.require(self._has(every, PLAIN), "general")
        place = 0
        for k, (a, kind) in enumerate(zip(self.arguments, kinds, strict=True)):
            rows = self._has(kind, BATCH)
            dims = f.field("ptr", a, DIMS)  # of an array without axes it is null
            states = f.load("i64", f.value(f"select i1 {rows}, ptr {dims}, ptr {self.dims}"))
            fits = f.either(f.equal(count, -1), f.equal(count, states))
            f.require(f.value(f"select i1 {rows}, i1 {fits}, i1 true"), "general")
            count = f.value(f"select i1 {rows}, i64 {states}, i64 {count}")
            f.store("ptr", f.field("ptr", a, DATA), self.data, k)
            step = f.value(f"select i1 {rows}, i64 {self.sizes[k] * self.type.item_bytes}, i64 0")
            f.store("i64", step, self.steps, k)
        most = f.value(f"ptrtoint ptr {_interface(f, 'most_states')} to i64")
        f.require(f.both(f.value(f"icmp sle i64 {count}, {most}"), f.value(f"icmp sgt i64 {count}, 0")), "general")
        for k in self.outputs:
            f.store("i64", self.sizes[k] * self.type.item_bytes, self.steps, k)
        place = len(self.shapes)
        for shape in self.shapes:
            for d in range(len(shape)):
                f.store("i64", math.prod(shape[d + 1 :]) * self.type.item_bytes, self.steps, place + d)
            place += len(shape)
        return count

    def _run(self, states: str | None) -> None:
        """Find or make the results, and compute them, for one state or many."""
        f, many = self.f, states is not None
        code = _interface(f, "loop" if many else "single")
        f.require(f.value(f"icmp ne ptr {code}, null"), "general")
        make, use, run = f.fresh("make"), f.fresh("use"), f.fresh("run")
        f.branch(self.makes, make, use)
        f.label(use)
        self._use_given(states)
        f.jump(run)
        f.label(make)
        self._make(states)
        f.jump(run)
        f.label(run)
        thread = f.call("ptr", _interface(f, "save_thread"))
        if states is None:
            f.call("void", code, f"ptr {self.data}")
        else:
            f.store("i64", states, self.dims)
            f.call("void", code, f"ptr {self.data}", f"ptr {self.dims}", f"ptr {self.steps}", "ptr null")
        f.call("void", _interface(f, "restore_thread"), f"ptr {thread}")
        self._return(many)

    def _make(self, states: str | None) -> None:
        """New arrays."""
        f, extra = self.f, int(states is not None)
        number, array_class, new = NUMBERS[self.type.precision], _interface(f, "array_class"), _interface(f, "new_array")
        if states is not None:
            f.store("i64", states, self.dims)
        for j, k in enumerate(self.outputs):
            for d, x in enumerate(self.shapes[k]):
                f.store("i64", x, self.dims, d + extra)
            arguments = [f"ptr {array_class}", f"i32 {len(self.shapes[k]) + extra}", f"ptr {self.dims}", f"i32 {number}"]
            made = f.call("ptr", new, *arguments, "ptr null", "ptr null", "i32 0", "i32 0", "ptr null")
            fine, gone = f.fresh("made"), f.fresh("gone")
            f.branch(f.equal(made, "null", "ptr"), gone, fine)
            f.label(gone)
            for i in range(j):
                f.call("void", _interface(f, "decrement"), f"ptr {f.load('ptr', self.results, i)}")
            f.jump("failed")
            f.label(fine)
            f.store("ptr", made, self.results, j)
            f.store("ptr", f.field("ptr", made, DATA), self.data, k)

    def _use_given(self, states: str | None) -> None:
        """Arrays of the caller, if they fit and overlap with nothing; overlaps are NumPy's business."""
        f, bits = self.f, (SINGLE if states is None else BATCH) | PLAIN
        ranges = []
        if len(self.outputs) > 1:
            is_a = f.field("ptr", self.out, TYPE)
            fits = f.either(*(f.equal(is_a, _interface(f, x), "ptr") for x in ("tuple_class", "result_class")))
            f.require(fits, "general")
            f.require(f.equal(f.field("i64", self.out, SIZE_OF_TUPLE), len(self.outputs)), "general")
        for k in range(self.n):
            begin = f.value(f"ptrtoint ptr {f.load('ptr', self.data, k)} to i64")
            ranges.append((begin, f.add(begin, self._bytes(k, states))))
        for j, k in enumerate(self.outputs):
            array = self.out if len(self.outputs) == 1 else f.field("ptr", self.out, ITEMS_OF_TUPLE + 8 * j)
            kind = f.call("i32", "@fw.kind", f"ptr {array}", f"i64 {len(self.shapes[k])}", f"ptr @core.{k}")
            f.require(self._has(kind, bits), "general")
            flags = f.field("i32", array, FLAGS)
            f.require(f.equal(f.value(f"and i32 {flags}, {WRITEABLE}"), WRITEABLE, "i32"), "general")
            if states is not None:
                f.require(f.equal(f.load("i64", f.field("ptr", array, DIMS)), states), "general")
            data = f.field("ptr", array, DATA)
            begin = f.value(f"ptrtoint ptr {data} to i64")
            end = f.add(begin, self._bytes(k, states))
            for other, other_end in ranges:
                before, after = f.value(f"icmp ule i64 {end}, {other}"), f.value(f"icmp ule i64 {other_end}, {begin}")
                f.require(f.either(before, after), "general")
            ranges.append((begin, end))
            f.store("ptr", array, self.results, j)
            f.store("ptr", data, self.data, k)
        for j in range(len(self.outputs)):
            f.call("void", _interface(f, "increment"), f"ptr {f.load('ptr', self.results, j)}")

    def _bytes(self, k: int, states: str | None) -> str:
        """Of an argument or result, of one state or many."""
        one = self.sizes[k] * self.type.item_bytes
        return str(one) if states is None else self.f.mul(states, one)

    def _return(self, many: bool) -> None:
        """The result, or a named tuple of them; numbers where there are no axes, unless the caller gave arrays."""
        f = self.f
        numbers = [j for j, k in enumerate(self.outputs) if not self.shapes[k] and not many]
        if numbers:
            convert, after = f.fresh("convert"), f.fresh("after")
            f.branch(self.makes, convert, after)
            f.label(convert)
            for j in numbers:
                number = f.call("ptr", _interface(f, "array_or_scalar"), f"ptr {f.load('ptr', self.results, j)}")
                f.store("ptr", number, self.results, j)
            f.jump(after)
            f.label(after)
        results = [f.load("ptr", self.results, j) for j in range(len(self.outputs))]
        if len(results) == 1:
            f.line(f"ret ptr {results[0]}")
            return
        bundle = f.call("ptr", _interface(f, "allocate"), f"ptr {_interface(f, 'result_class')}", f"i64 {len(results)}")
        fine, gone = f.fresh("bundled"), f.fresh("gone")
        f.branch(f.equal(bundle, "null", "ptr"), gone, fine)
        f.label(gone)
        for result in results:
            f.call("void", _interface(f, "decrement"), f"ptr {result}")
        f.jump("failed")
        f.label(fine)
        for j, result in enumerate(results):
            f.store("ptr", result, f.at("i8", bundle, ITEMS_OF_TUPLE + 8 * j))
        f.line(f"ret ptr {bundle}")


class Entry:
    """An entry that is loaded, and its table."""

    def __init__(self, code: bytes, program: Program, precision: str, result_class: type | None) -> None:
        self.address, self._table = load_object(code, "entry", "table")
        names = [sys.intern(a.name) for a in program.inputs] + [sys.intern("out")]
        descr = np.dtype(np.float64 if precision == "double" else np.float32)
        self._kept = (names, descr, result_class)
        self._fill(0, *interfaces())
        self._set("descr", id(descr))
        self._set("result_class", id(result_class) if result_class is not None else 0)
        self._fill(NAMES, *map(id, names))

    def _fill(self, first: int, *words: int) -> None:
        ctypes.memmove(self._table + 8 * first, (ctypes.c_void_p * len(words))(*words), 8 * len(words))

    def _set(self, name: str, word: int) -> None:
        self._fill(len(Interfaces._fields) + OWN.index(name), word)

    def computes_one(self, address: int) -> None:
        """`void f(ptr arguments)` at that address computes one state."""
        self._set("single", address)

    def computes_many(self, address: int, most: int) -> None:
        """The loop of a ufunc at that address computes a batch, of so many states on one thread."""
        self._set("most_states", most)
        self._set("loop", address)

    def hands_on(self, other: Entry) -> None:
        """Arguments that are all of the other precision go to another entry."""
        self._set("other", other.address)

    def built_in(self, name: str, general: Callable[..., Any]) -> Any:
        """A built-in function; `general` answers the calls that the entry does not."""

        class MethodDefinition(ctypes.Structure):
            _fields_ = (
                ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
            )  # fmt: skip

        fastcall_with_keywords = 0x82
        definition = MethodDefinition(name.encode(), self.address, fastcall_with_keywords, None)
        for kept in (definition, self):  # for ever: functions read them when they go, at exit the last
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        new = ctypes.pythonapi.PyCFunction_NewEx
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        return new(ctypes.addressof(definition), general, None)
