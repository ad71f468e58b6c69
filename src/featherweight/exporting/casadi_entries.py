"""The functions through which CasADi calls an external function, around the parts of a kernel."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

from ..engine.backends.llvm.emit import Kernel
from ..engine.backends.llvm.ir import CACHE_LINE, Function
from .routine import Routine

Pattern = tuple[tuple[int, int], tuple[int, ...]]  # numbers of rows and columns, and indices of nonzeros, column by column


class CasadiInterface(NamedTuple):
    """Properties of a function that CasADi asks for."""

    names_in: tuple[str, ...]
    names_out: tuple[str, ...]
    patterns_in: tuple[Pattern, ...]
    patterns_out: tuple[Pattern, ...]
    read: tuple[int, ...]  # indices of the arguments that the code reads, in its order
    blocks: tuple[int | None, ...] = ()  # for a Jacobian in lanes: the array of the code for each result


class CasadiCode(NamedTuple):
    """Code that CasADi's functions call, with its interface."""

    routine: Routine
    kernel: Kernel
    interface: CasadiInterface
    in_lanes: bool  # whether it writes whole matrices, row by row; results are a subset of their numbers


def entries(code: CasadiCode) -> list[Function]:
    """Return NAME and the functions that describe it to CasADi."""
    r, interface = code.routine, code.interface
    n_in, n_out = len(interface.names_in), len(interface.names_out)
    lookups = [
        _lookup(f"{r.name}_name_{way}", [x.encode() + b"\0" for x in names], "i8")
        for way, names in (("in", interface.names_in), ("out", interface.names_out))
    ]
    lookups += [
        _lookup(f"{r.name}_sparsity_{way}", [_compressed(p) for p in patterns], "i64")
        for way, patterns in (("in", interface.patterns_in), ("out", interface.patterns_out))
    ]
    counts = [_count(f"{r.name}_n_in", n_in), _count(f"{r.name}_n_out", n_out)]
    size = _scratch(code) + sum(_written(code))
    return [_call(code), *counts, *lookups, _work(r.name, (n_in, n_out, 0, size))]


def _scratch(code: CasadiCode) -> int:
    """Return the count of numbers that code needs in `w`, including the padding to a cache line."""
    return code.kernel.workspace + CACHE_LINE // 8


def _written(code: CasadiCode) -> list[int]:
    """Return the sizes of the arrays that code writes, all of which may have to be in `w`."""
    if not code.in_lanes:
        return [y.size for y in code.routine.outputs]
    pairs = zip(code.interface.blocks, code.interface.patterns_out, strict=True)
    return [math.prod(shape) for block, (shape, _) in pairs if block is not None]


def _call(code: CasadiCode) -> Function:
    """Return `int NAME(const double **arg, double **res, long long *iw, double *w, int mem)`.

    Null arguments are zero, and null results are not computed.
    """
    r = code.routine
    f = Function("i32", r.name, ["ptr %arg", "ptr %res", "ptr %iw", "ptr %w", "i32 %mem"], linkage="external")
    most = max((x.size for x in r.inputs), default=1)
    zeros = f"@{r.name}.zeros"
    f.declarations[f"{zeros} = internal constant [{most} x double] zeroinitializer"] = None
    pointers = []
    for k in code.interface.read:
        given = f.load("ptr", "%arg", k)
        pointers.append(f"ptr {f.select(f.equal(given, 'null', 'ptr'), zeros, given, 'ptr')}")
    spare = []
    at = _scratch(code)
    for size in _written(code):
        spare.append(f.at("double", "%w", at))
        at += size
    results = spare
    if not code.in_lanes:
        wanted = [f.load("ptr", "%res", k) for k in range(len(r.outputs))]
        results = [f.select(f.equal(y, "null", "ptr"), own, y, "ptr") for y, own in zip(wanted, spare, strict=True)]
    workspace = f.aligned("%w")
    for part in code.kernel.parts:
        f.call("void", f"@{part}", *pointers, *(f"ptr {y}" for y in results), f"ptr {workspace}")
    if code.in_lanes:
        _gather(f, code, spare)
    f.ret("i32", "0")
    return f


def _gather(f: Function, code: CasadiCode, matrices: Sequence[str]) -> None:
    """Emit code that gathers results from row-major matrices: the entries of their patterns, column by column."""
    for k, (block, pattern) in enumerate(zip(code.interface.blocks, code.interface.patterns_out, strict=True)):
        (rows, columns), places = pattern
        if block is None or not places:
            continue
        table = f"{code.routine.name}.places{k}"
        data = struct.pack(f"<{len(places)}q", *(p % rows * columns + p // rows for p in places))
        f.declarations[_constant(table, data, "i64")] = None
        wanted = f.load("ptr", "%res", k)
        with f.unless(f.equal(wanted, "null", "ptr")), f.loop(len(places)) as i:
            f.store("double", f.load("double", matrices[block], f.load("i64", f"@{table}", i)), wanted, i)


def _count(name: str, value: int) -> Function:
    f = Function("i64", name, [], linkage="external")
    f.ret("i64", str(value))
    return f


def _work(name: str, sizes: Sequence[int]) -> Function:
    """Return `int NAME_work(long long *sz_arg, *sz_res, *sz_iw, *sz_w)`."""
    pointers = [f"%p{k}" for k in range(len(sizes))]
    f = Function("i32", f"{name}_work", [f"ptr {p}" for p in pointers], linkage="external")
    for p, size in zip(pointers, sizes, strict=True):
        with f.unless(f.equal(p, "null", "ptr")):
            f.store("i64", size, p)
    f.ret("i32", "0")
    return f


def _lookup(name: str, items: Sequence[bytes], kind: str) -> Function:
    """Return a function from an index to the address of an item, or null.

    All items are in one constant, so no addresses are stored.
    """
    width = 8 if kind == "i64" else 1
    starts = [sum(map(len, items[:k])) // width for k in range(len(items))]
    blob = b"".join(items)
    f = Function("ptr", name, ["i64 %i"], linkage="external")
    f.declarations[_constant(f"{name}.items", blob, kind)] = None
    f.declarations[_constant(f"{name}.starts", struct.pack(f"<{len(starts)}q", *starts), "i64")] = None
    f.require(f.binary("icmp ult", "i64", "%i", len(items)), "none")
    f.ret("ptr", f.at(kind, f"@{name}.items", f.load("i64", f"@{name}.starts", "%i")))
    f.label("none")
    f.ret("ptr", "null")
    return f


def _constant(name: str, data: bytes, kind: str) -> str:
    if kind == "i8":
        values = [str(byte) for byte in data]
    else:
        values = [str(x) for x in struct.unpack(f"<{len(data) // 8}q", data)]
    items = ", ".join(f"{kind} {v}" for v in values)
    return f"@{name} = internal constant [{len(values)} x {kind}] [{items}]"


def _compressed(pattern: Pattern) -> bytes:
    """Return rows, columns, column starts, and row indices of nonzeros, as 64-bit numbers."""
    (rows, columns), places = pattern
    starts = [0] * (columns + 1)
    for k in places:
        starts[k // rows + 1] += 1
    for j in range(columns):
        starts[j + 1] += starts[j]
    numbers = [rows, columns, *starts, *(k % rows for k in places)]
    return struct.pack(f"<{len(numbers)}q", *numbers)
