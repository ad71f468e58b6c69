"""A kernel for a device: load the rows of a block of states, compute one state per thread, and store rows.

Rows of (batch, n) are read by neighbouring threads at a stride of n. So that device memory is accessed along rows, the threads
of a block together copy its rows to shared memory, a padded row for each state, and store results in the same way. Arguments
that are too large for that are accessed in place.

Surplus threads of a block compute the last state again: there are no branches except the loops of copies, and threads can
synchronize.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...program import CoreShape
from ...trace import Trace
from ..llvm.emit import Kernel
from ..llvm.ir import Function, Type, Vector, pointer_type
from ..llvm.trig import sincos_ir
from .emit_thread import ATTRIBUTES, GLOBAL, INLINED, OUTLINED, OWN, SHARED, SHORT, Target, emit_thread

SOME, TOGETHER = 4, 16  # elements in flight per thread in a copy, from separate rows and from dense ones
PIECE = 16  # bytes that a thread writes at once
LARGE = 512  # least size in bytes of a result for which the order of writes matters
ENTRY = "fw_kernel"


class KernelLayout(NamedTuple):
    """Options for the code of a kernel, in addition to the trace and the precision."""

    staged: tuple[bool, ...]  # for each argument and result, whether it goes through shared memory
    keeps: bool  # whether the assembler allocates registers
    threads: int  # threads per block

    def shared_bytes(self, sizes: Sequence[int], type: Type) -> int:
        """Return the bytes of shared memory that the kernel needs."""
        return self.threads * type.bytes * sum(padded(n) for n, staged in zip(sizes, self.staged, strict=True) if staged)

    def waits(self, n: int, k: int, type: Type) -> bool:
        """Return whether result k of n elements is first stored in the thread's own memory."""
        return not self.staged[k] and n * type.bytes > LARGE


def padded(n: int) -> int:
    """Return the elements of a row in shared memory: odd, so that rows start in different banks."""
    return n | 1


def emit_module(t: Trace, shapes: Sequence[CoreShape], type: Type, layout: KernelLayout, target: Target) -> str:
    """Return a module with the kernel, and with its three phases as functions.

    The kernel's parameters are eight bytes each: the number of states, and for each argument and result the address of its
    first row and the row stride in elements, 0 for one row for all states.
    """
    sizes = [math.prod(shape) for shape in shapes]
    inputs = len(t.inputs)
    waits = [k >= inputs and layout.waits(n, k, type) for k, n in enumerate(sizes)]
    spaces = [SHARED if staged else OWN if waiting else GLOBAL for staged, waiting in zip(layout.staged, waits, strict=True)]
    kernel = emit_thread(t, type, sizes[inputs:], spaces, layout.keeps)
    block = _Block(kernel, sizes, inputs, type, layout, target)
    functions = [str(f) for f in (*block.copies(), *block.phases(), block.kernel())]
    declarations = dict.fromkeys([*kernel.declarations, *target.declarations])
    if kernel.sincos_lanes:
        more, sincos = sincos_of_thread(type)
        declarations |= dict.fromkeys(more)
        functions.append(sincos)
    shared = f"@fw_shared = external addrspace({SHARED}) global [0 x {type.ir}], align 16" if any(layout.staged) else ""
    return "\n".join([f'target triple = "{target.triple}"', shared, *declarations, *kernel.definitions, *functions, ATTRIBUTES])


def sincos_of_thread(type: Type) -> tuple[tuple[str, ...], str]:
    """Return the declarations for sines and cosines in a module, and their function, which is inlined."""
    sincos = sincos_ir(type.precision, 1)
    own = sincos.definition.replace("define hidden", "define internal").replace(") noinline nounwind", f") {INLINED}")
    return sincos.declarations, own


def memory_of_thread(f: Function, bytes: int, keeps: bool, target: Target) -> str:
    """Return the address of a thread's own memory, for a kernel with the parameter "%states"."""
    memory = f.value(f"alloca i8, i64 {bytes}, align 16" + (f", addrspace({target.stack})" if target.stack else ""))
    if target.stack != OWN:
        memory = f.cast("addrspacecast", pointer_type(target.stack), memory, pointer_type(OWN))
    if keeps:
        return memory
    # At an offset that assemblers do not know to be zero; otherwise they try again to keep everything in registers.
    return f.at("i8", memory, f.binary("shl", "i64", f.binary("lshr", "i64", "%states", 62), 4), OWN)


class _Block:
    """The code around the parts of a kernel."""

    def __init__(
        self, kernel: Kernel, sizes: Sequence[int], inputs: int, type: Type, layout: KernelLayout, target: Target
    ) -> None:
        self.parts, self.workspace = kernel.parts, max(kernel.workspace, 1)
        self.sizes, self.inputs, self.type, self.layout, self.target = sizes, inputs, type, layout, target
        self.parameters = ["i64 %states"]
        for k in range(len(sizes)):
            self.parameters += [f"{pointer_type(GLOBAL)} %a{k}", f"i64 %step{k}"]
        self.arguments = ["i32 %thread", "i32 %block", f"{pointer_type(SHARED)} %shared", *self.parameters]

    def kernel(self) -> Function:
        """Return the function that the device starts."""
        target = self.target
        f = Function("void", ENTRY, self.parameters, target.convention, OUTLINED)
        values = [f.value(x) for x in (target.thread, target.block)]
        shared = "@fw_shared" if any(self.layout.staged) else "null"
        passed = [*(f"i32 {v}" for v in values), f"{pointer_type(SHARED)} {shared}", *self.parameters]
        brought, taken = any(self.layout.staged[: self.inputs]), any(self.layout.staged[self.inputs :])
        if brought:
            f.call("void", "@fw_bring", *passed)
            f.line(target.barrier)
        f.call("void", "@fw_compute", *passed)
        if taken:
            f.line(target.barrier)
            f.call("void", "@fw_take", *passed)
        f.ret()
        return f

    def phases(self) -> list[Function]:
        """Return the functions of the three phases; all threads of a block finish a phase before the next starts."""
        return [self._copying("fw_bring", range(self.inputs)), self._computing(),
                self._copying("fw_take", range(self.inputs, len(self.sizes)))]  # fmt: skip

    def _phase(self, name: str) -> tuple[Function, str, str]:
        """Return a function, the number of the block's first state, and the number of its states (i64)."""
        f = Function("void", name, self.arguments)
        first = f.mul(f.cast("zext", "i32", "%block", "i64"), self.layout.threads)
        return f, first, f.least(f.sub("%states", first), self.layout.threads)

    def _at_row(self, f: Function, k: int, row: str) -> str:
        """Return the address of an argument's row in device memory."""
        return f.at(self.type.ir, f"%a{k}", f.mul(row, f"%step{k}"), GLOBAL)

    def _staged_at(self, f: Function, k: int) -> str:
        """Return the address of the block's rows of an argument in shared memory."""
        before = sum(padded(n) for n, staged in zip(self.sizes[:k], self.layout.staged, strict=False) if staged)
        return f.at(self.type.ir, "%shared", self.layout.threads * before, SHARED)

    def _copying(self, name: str, which: Sequence[int]) -> Function:
        f, first, rows = self._phase(name)
        for k in which:
            if self.layout.staged[k]:
                places = [f"{pointer_type(GLOBAL)} {self._at_row(f, k, first)}", f"i64 %step{k}",
                          f"{pointer_type(SHARED)} {self._staged_at(f, k)}"]  # fmt: skip
                f.call("void", f"@fw_copy{k}", f"i32 %thread, i64 {rows}", *places)
        f.ret()
        return f

    def _computing(self) -> Function:
        """Return the function of one state. Surplus threads compute the last state again."""
        f, first, rows = self._phase("fw_compute")
        memory = memory_of_thread(f, self.workspace * self.type.bytes, self.layout.keeps, self.target)
        row = f.least(f.cast("zext", "i32", "%thread", "i64"), f.sub(rows, 1))
        pointers, waiting = [], []
        for k, (n, staged) in enumerate(zip(self.sizes, self.layout.staged, strict=True)):
            if staged:
                place = f.at(self.type.ir, self._staged_at(f, k), f.mul(row, padded(n)), SHARED)
                pointers.append(f"{pointer_type(SHARED)} {place}")
                continue
            far = self._at_row(f, k, f.add(first, row))
            if k < self.inputs or not self.layout.waits(n, k, self.type):
                pointers.append(f"{pointer_type(GLOBAL)} {far}")
                continue
            own = memory_of_thread(f, n * self.type.bytes, True, self.target)
            pointers.append(f"{pointer_type(OWN)} {own}")
            waiting.append((n, own, far))
        for part in self.parts:
            f.call("void", f"@{part}", *pointers, f"{pointer_type(OWN)} {memory}")
        for result in waiting:
            self._write_in_order(f, *result)
        f.ret()
        return f

    def _write_in_order(self, f: Function, n: int, own: str, far: str) -> None:
        """Copy a result from the thread's memory to device memory, in aligned pieces of `PIECE` bytes.

        All writes to a sector of device memory are adjacent; otherwise incomplete sectors are often written back.
        """
        T, type = self.type.ir, self.type
        together = Vector(type.precision, PIECE // type.bytes)
        number = f.cast("ptrtoint", pointer_type(GLOBAL), far, "i64")
        left = f.binary("and", "i64", f.sub(0, f.div(number, type.bytes)), together.lanes - 1)
        head = f.least(left, n)
        with f.loop(head, metadata=SHORT) as k:
            f.store(T, f.load(T, own, k, space=OWN), far, k, space=GLOBAL)
        last = f.sub(n, f.binary("urem", "i64", f.sub(n, head), together.lanes))
        with f.loop(last, head, together.lanes, SHORT) as k:
            piece = "poison"
            for lane in range(together.lanes):
                piece = f.insert(together, piece, f.load(T, own, f.add(k, lane), space=OWN), lane)
            f.store(together.ir, piece, f.at(T, far, k, GLOBAL), align=PIECE, space=GLOBAL)
        with f.loop(n, last, metadata=SHORT) as k:
            f.store(T, f.load(T, own, k, space=OWN), far, k, space=GLOBAL)

    # copies

    def copies(self) -> list[Function]:
        return [self._copy(k) for k, staged in enumerate(self.layout.staged) if staged]

    def _copy(self, k: int) -> Function:
        """Return the function that copies rows between device memory and shared memory, element by element in thread order."""
        arguments = ["i32 %thread", "i64 %rows", f"{pointer_type(GLOBAL)} %far", "i64 %step", f"{pointer_type(SHARED)} %near"]
        f = Function("void", f"fw_copy{k}", arguments)
        if not self.sizes[k]:
            f.ret()
            return f
        with f.choice(f.equal("%rows", self.layout.threads)) as (full, part):
            with full, f.choice(f.equal("%step", self.sizes[k])) as (dense, apart):
                with dense:
                    self._copy_block(f, k)
                with apart:
                    self._copy_rows(f, k, SOME)
            with part:
                self._copy_rows(f, k, 1)
        f.ret()
        return f

    def _copy_block(self, f: Function, k: int) -> None:
        """Copy as many adjacent rows as there are threads; the elements that thread i moves are `threads` elements apart.

        The element e of the block is in row e / n; if rows are padded by one, it is at e + e / n elements in shared memory.
        With i = q n + r, the rows of all its elements follow from q and r: e = i + j threads is in row q + (j threads + r) / n.
        """
        n, threads, T = self.sizes[k], self.layout.threads, self.type
        padding = padded(n) - n
        thread = f.cast("zext", "i32", "%thread", "i64")
        row = f.div(thread, n)
        first = f.sub(thread, f.mul(row, n))
        far, near = f.at(T.ir, "%far", thread, GLOBAL), f.at(T.ir, "%near", f.add(thread, row) if padding else thread, SHARED)
        places: list[tuple[str, str]] = []
        for j in range(n):
            rows, left = divmod(j * threads, n)
            place = f.at(T.ir, near, j * threads + rows * padding, SHARED)
            if padding and left:
                place = f.at(T.ir, place, f.cast("zext", "i1", f.binary("icmp uge", "i64", first, n - left), "i64"), SHARED)
            places.append((f.at(T.ir, far, j * threads, GLOBAL), place))
            if len(places) == TOGETHER or j == n - 1:
                self._move(f, k, places)
                places.clear()

    def _copy_rows(self, f: Function, k: int, together: int) -> None:
        """Copy the existing rows, anywhere; if several elements are moved together, the block has its full number of rows."""
        n, threads = self.sizes[k], self.layout.threads
        thread = f.cast("zext", "i32", "%thread", "i64")
        last = n // together * together if together > 1 else 0
        if last or together == 1:
            with f.loop(last * threads if last else f.mul("%rows", n), thread, together * threads, SHORT) as element:
                self._move(f, k, [self._places(f, k, f.add(element, j * threads)) for j in range(together)])
        if together > 1 and last < n:
            self._move(f, k, [self._places(f, k, f.add(thread, j * threads)) for j in range(last, n)])

    def _places(self, f: Function, k: int, element: str) -> tuple[str, str]:
        """Return the addresses of an element of a block's rows in device memory and in shared memory."""
        n, T = self.sizes[k], self.type
        short = f.cast("trunc", "i64", element, "i32")
        row = f.binary("udiv", "i32", short, n)
        column = f.binary("sub", "i32", short, f.binary("mul", "i32", row, n))
        wide = [f.cast("zext", "i32", x, "i64") for x in (row, column)]
        far = f.at(T.ir, "%far", f.add(f.mul(wide[0], "%step"), wide[1]), GLOBAL)
        place = f.binary("add", "i32", f.binary("mul", "i32", row, padded(n)), column)
        return far, f.at(T.ir, "%near", f.cast("zext", "i32", place, "i64"), SHARED)

    def _move(self, f: Function, k: int, places: Sequence[tuple[str, str]]) -> None:
        """Move elements of an argument from device memory to shared memory, or of a result back: read all, then write."""
        T, near = self.type.ir, k < self.inputs
        source, goal = (GLOBAL, SHARED) if near else (SHARED, GLOBAL)
        values = [f.load(T, far if near else place, align=self.type.bytes, space=source) for far, place in places]
        for value, (far, place) in zip(values, places, strict=True):
            f.store(T, value, place if near else far, align=self.type.bytes, space=goal)
