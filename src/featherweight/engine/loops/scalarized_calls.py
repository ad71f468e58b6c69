"""Work of vectors of robots on one robot after the other: separate the arrays, call a kernel, interleave the results."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Array
from .. import cache
from ..backends.llvm.ir import Function, Type
from ..backends.llvm.jit import Code, compile_optimized, host, load_object
from ..backends.llvm.tiles import IntoLanes, OutOfLanes
from .kernel_tables import Interleaved
from .machine_calls import Kept, MachineCall

Move = tuple[Interleaved, Sequence[Array]]  # an interleaved array, and the separate array of each robot
BEFORE, KERNEL, FURTHER, COUNTS, ROWS, TABLES = 0, 2, 3, 7, 11, 12
"""Words: a call for all lanes, a kernel's address, its last arguments, how many moves of each kind, numbers of rows, tables."""


class Counted(NamedTuple):
    """Interleaved arrays of which each robot uses the first rows."""

    rows: Interleaved  # (1 or more,) the number of rows comes first
    arrays: Sequence[Interleaved]


def call_apart(
    run: Any, further: Sequence[int], tables: Sequence[int], reads: Sequence[Move], writes: Sequence[Move],
    counted: Counted | None = None,
) -> Kept:  # fmt: skip
    """Return a call of `run(table, *further)` for each lane's own table and four numbers, and objects to keep alive.

    It first copies the arrays `reads` to those of the lanes, and finally copies `writes` back for active lanes. Of `counted`
    arrays, it copies as many rows as any lane uses.
    """
    address = ctypes.cast(run, ctypes.c_void_p).value
    return _call([0, 0, address, *further], tables, reads, writes, counted), [run, reads, writes, counted]


def then_separated(call: MachineCall, kept: object, result: Move) -> Kept:
    """Return a call for all lanes that copies a result to the arrays of each lane, and objects to keep alive."""
    words = [call.address, call.pointers.ctypes.data, 0, 0, 0, 0, 0]
    return _call(words, [0] * len(result[1]), [result], [], None), [call, kept, result]


def _call(
    words: Sequence[int | None], tables: Sequence[int], reads: Sequence[Move], writes: Sequence[Move], counted: Counted | None
) -> MachineCall:  # fmt: skip
    lanes, kinds = len(tables), []
    by_rows = [x.array.ctypes.data for x in counted.arrays] if counted else []
    for moves in (reads, writes):
        some = [m for m in moves if m[0].array.size]
        kinds += [[m for m in some if m[0].array.itemsize == size] for size in (8, 1)]
    words = [*words, *map(len, kinds), counted.rows.array.ctypes.data if counted else 0, *tables]
    for interleaved, apart in (m for kind in kinds for m in kind):
        x = interleaved.array
        size = x.size // lanes
        words += [x.ctypes.data, size, size // len(x) if x.ctypes.data in by_rows else size, *(a.ctypes.data for a in apart)]
    return MachineCall(_mover(lanes).address("apart"), np.array(words, np.int64))


@functools.cache
def _mover(lanes: int) -> Code:
    """Return `i32 apart(ptr words, ptr lanes)`."""
    return load_object(cache.kept(lambda: compile_optimized(_written(lanes)), "apart", lanes, host()), "apart")


def _written(lanes: int) -> str:
    f = Function("i32", "apart", ["ptr %words", "ptr %lanes"], "external", "nounwind")
    masks, bits = f"<{lanes} x i64>", f"<{lanes} x i1>"
    taking = f.value(f"icmp slt {masks} {f.load(masks, '%lanes')}, zeroinitializer")
    buffer = f.slot(masks, lanes, 64)
    counts, rows = [f.load("i64", "%words", COUNTS + k) for k in range(4)], _rows(f, lanes)
    before, pointers = (f.load("i64", "%words", BEFORE + k) for k in (0, 1))
    some, on = f.fresh("some"), f.fresh("on")
    f.branch(f.equal(before, 0), on, some)
    f.label(some)
    first, arguments = (f.cast("inttoptr", "i64", x, "ptr") for x in (before, pointers))
    f.call("i32", first, f"ptr {arguments}", "ptr %lanes")
    f.jump(on)
    f.label(on)
    record = 3 + lanes
    place: str = f.at("i64", "%words", TABLES + lanes)
    for kind, count in zip(("i64", "i8"), counts[:2], strict=True):
        with f.loop(count) as k:
            _unweave(f, f.at("i64", place, f.mul(k, record)), kind, lanes, rows)
        place = f.at("i64", place, f.mul(count, record))
    address, alone, done = f.load("i64", "%words", KERNEL), f.fresh("alone"), f.fresh("done")
    f.branch(f.equal(address, 0), done, alone)
    f.label(alone)
    kernel = f.cast("inttoptr", "i64", address, "ptr")
    further = [f"i64 {f.load('i64', '%words', FURTHER + k)}" for k in range(4)]
    for lane in range(lanes):
        there, after = f.fresh("there"), f.fresh("after")
        f.branch(f.value(f"extractelement {bits} {taking}, i64 {lane}"), there, after)
        f.label(there)
        f.call("i64", kernel, f"i64 {f.load('i64', '%words', TABLES + lane)}", *further)
        f.jump(after)
        f.label(after)
    for kind, count in zip(("i64", "i8"), counts[2:], strict=True):
        with f.loop(count) as k:
            _weave(f, f.at("i64", place, f.mul(k, record)), kind, lanes, rows, taking, buffer)
        place = f.at("i64", place, f.mul(count, record))
    f.jump(done)
    f.label(done)
    f.ret("i32", "0")
    return "\n".join([*f.declarations, str(f)])


def _rows(f: Function, lanes: int) -> str:
    """Return a multiple of the number of lanes that is at least one, and at least the number of rows of any robot."""
    many, known, counted, slot = f"<{lanes} x i64>", f.fresh("known"), f.fresh("counted"), f.slot("i64")
    f.store("i64", lanes, slot)
    address = f.load("i64", "%words", ROWS)
    f.branch(f.equal(address, 0), known, counted)
    f.label(counted)
    reduce = f"@llvm.vector.reduce.smax.v{lanes}i64"
    f.declarations[f"declare i64 {reduce}({many})"] = None
    most = f.call("i64", reduce, f"{many} {f.load(many, f.cast('inttoptr', 'i64', address, 'ptr'))}")
    rounded = f.binary("and", "i64", f.add(most, lanes - 1), -lanes)
    f.store("i64", f.select(f.less(rounded, lanes), lanes, rounded), slot)
    f.jump(known)
    f.label(known)
    return f.load("i64", slot)


def _size(f: Function, record: str, rows: str) -> str:
    """Return how many numbers of an array are copied."""
    return f.least(f.load("i64", record, 1), f.mul(f.load("i64", record, 2), rows))


def _pointers(f: Function, record: str, lanes: int) -> list[str]:
    return [f.cast("inttoptr", "i64", f.load("i64", record, k), "ptr") for k in (0, *range(3, 3 + lanes))]


def _unweave(f: Function, record: str, kind: str, lanes: int, rows: str) -> None:
    """Copy an interleaved array to those of the lanes."""
    wide, (interleaved, *apart) = f"<{lanes} x {kind}>", _pointers(f, record, lanes)
    count = _size(f, record, rows)
    with f.loop(tiled := _tiled(f, kind, count, lanes), step=lanes) as i:
        places = [f.at(wide, interleaved, f.add(i, k)) for k in range(lanes)]
        OutOfLanes(Type("double", lanes)).tile(f, [f.at("double", x, i) for x in apart], places)
    with f.loop(count, tiled) as i:
        vector = f.load(wide, f.at(wide, interleaved, i), align=1)
        for lane, array in enumerate(apart):
            f.store(kind, f.value(f"extractelement {wide} {vector}, i64 {lane}"), array, i)


def _weave(f: Function, record: str, kind: str, lanes: int, rows: str, taking: str, buffer: str) -> None:
    """Copy the arrays of active lanes to an interleaved one."""
    wide, bits, (interleaved, *apart) = f"<{lanes} x {kind}>", f"<{lanes} x i1>", _pointers(f, record, lanes)
    count = _size(f, record, rows)
    with f.loop(tiled := _tiled(f, kind, count, lanes), step=lanes) as i:
        places = [f.at(wide, buffer, k) for k in range(lanes)]
        IntoLanes(Type("double", lanes)).tile(f, [f.at("double", x, i) for x in apart], places)
        for k, made in enumerate(places):
            address = f.at(wide, interleaved, f.add(i, k))
            f.store(wide, f.select(taking, f.load(wide, made), f.load(wide, address), wide, bits), address)
    with f.loop(count, tiled) as i:
        address, vector = f.at(wide, interleaved, i), "poison"
        for lane, array in enumerate(apart):
            vector = f.value(f"insertelement {wide} {vector}, {kind} {f.load(kind, array, i)}, i64 {lane}")
        old = f.load(wide, address, align=1)
        f.store(wide, f.select(taking, vector, old, wide, bits), address, align=1)


def _tiled(f: Function, kind: str, count: str, lanes: int) -> str | int:
    """Return the number of elements that are moved by tiles."""
    return f.binary("and", "i64", count, -lanes) if kind == "i64" else "0"
