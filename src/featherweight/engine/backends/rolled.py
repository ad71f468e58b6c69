"""Kernels with loops, compiled from their syntax trees: one compilation serves every model. Jacobians loop over columns."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Array
from ..derivative_program import JacobianProgram, OneInLanes
from ..loops.batch_loop import rows_code
from ..loops.kernel_tables import words_of_value
from ..program import ComposedProgram, CoreShape, FusedProgram, KernelProgram, Program, WithoutLastResult
from ..program_trace import ProgramTrace
from ..threads import processors, share_out
from .host_arrays import HostArrays
from .interpreted import delivered, rows_of
from .llvm.ir import Function, Type
from .llvm.jacobian_columns import JacobianColumns
from .llvm.jit import Code, compile_object, load_object
from .protocol import Batch

COLUMN_GRAIN = 200_000  # least number of entries of a matrix for more than one thread

_ROWS = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def compile(program: Program, traced: ProgramTrace) -> RolledLoops:
    """Return an executable that compiles each kernel once, for all models, at the first call."""
    return RolledLoops(program)


class RolledLoops(HostArrays):
    """The kernels of a program on rows of arrays, which threads share."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._shares: dict[int, list[RolledProgram]] = {}  # programs for parts of the columns, one for each thread

    @cached_property
    def _rolled(self) -> RolledProgram:
        return RolledProgram(self.program)

    @property
    def address(self) -> int | None:  # type: ignore[override]
        return self._one_state.address("one")

    @cached_property
    def _one_state(self) -> Code:
        return load_object(compile_object(self._rolled.write_one_state("one")), "one")

    def run(
        self, arrays: Sequence[Array], batch: Batch, dtype: np.dtype[Any], out: Sequence[Array] | None, threads: int | None
    ) -> Sequence[Any]:
        rows = [np.ascontiguousarray(a) for a in rows_of(self.program, arrays, batch)]
        shapes = [(len(rows[0]), *r.shape) for r in self.program.outputs]
        straight = out is not None and all(o.dtype == dtype == np.float64 and o.flags.c_contiguous for o in out)
        straight = straight and not any(np.may_share_memory(o, r) for o in out or () for r in rows)
        if straight and out is not None:
            results = [o.reshape(shape) for o, shape in zip(out, shapes, strict=True)]
        else:
            results = [np.empty(shape) for shape in shapes]
        self._fill(rows, results, 1 if threads == 1 else threads or processors())
        if straight and out is not None:
            return out
        return delivered(self.program.outputs, results, batch, dtype, out)

    def _fill(self, rows: list[Array], results: list[Array], threads: int) -> None:
        states, kernels = len(rows[0]), self.program.kernels
        arrays = [*rows, *results]
        if (
            len(kernels) == 1
            and kernels[0].part is not None
            and states < threads
            and kernels[0].results[0].size >= COLUMN_GRAIN
        ):
            if threads not in self._shares:
                self._shares[threads] = [RolledProgram(p) for p in kernels[0].shares(threads)]
            shares = self._shares[threads]

            def run_shares(start: int, stop: int) -> None:
                for share in shares[start:stop]:
                    share.run(arrays, 0, states)

            share_out(run_shares, len(shares), len(shares))
            return
        rolled = self._rolled
        share_out(
            lambda begin, stop: rolled.run(arrays, begin, stop),
            states,
            threads,
            what=f"{rolled.program.title}, {states} states",
        )


class RolledKernel:
    """The machine code of a kernel, with the constants of one model."""

    def __init__(self, program: KernelProgram) -> None:
        absent = [not program.takes(a) for a in program.arguments]
        constants = [_as_arrays(c) for c in program.constants]
        zeros = [np.zeros(a.shape) if no else None for a, no in zip(program.arguments, absent, strict=True)]
        words = [w for c in constants for w in words_of_value(c)]
        for a, zero in zip(program.arguments, zeros, strict=True):
            place = (0, 8 * a.size) if zero is None else (zero.ctypes.data, 0)
            words += [*place, *a.shape]
        for r in program.results:
            words += [0, 8 * r.size, *r.in_kernel]
        self._code = rows_code(program, constants)  # kept alive, as the arrays are
        self._words, self._kept = np.array(words, np.int64), (constants, zeros)
        self.address, self.words = self._code.address("rows"), int(self._words.ctypes.data)


class Step(NamedTuple):
    """A kernel, or a Jacobian by columns, with its function in Python and the arrays that it reads and writes."""

    kernel: RolledKernel | JacobianColumns
    rows: Any
    arrays: tuple[int, ...]

    @classmethod
    def of(cls, kernel: RolledKernel | JacobianColumns, arrays: Sequence[int]) -> Step:
        return cls(kernel, _ROWS(kernel.address), tuple(arrays))

    def run(self, places: Sequence[int], begin: int, stop: int) -> None:
        """Compute some states, for the addresses of all arrays. Raises MemoryError."""
        pointers = (ctypes.c_int64 * len(self.arrays))(*(places[k] for k in self.arrays))
        if self.rows(self.kernel.words, pointers, begin, stop):
            raise MemoryError("out of memory for the lists of a kernel")


class RolledProgram:
    """A program as a sequence of kernels, on its inputs, its results, and intermediate arrays."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._between: list[CoreShape] = []
        inputs, outputs = len(program.inputs), len(program.outputs)
        self._given = inputs + outputs
        self._steps = self._steps_of(program, [*range(inputs)], [*range(inputs, self._given)])

    def _steps_of(self, program: Program, read: list[int], written: list[int]) -> list[Step]:
        program = program.traceable
        if isinstance(program, OneInLanes):
            return self._steps_of(program.program, read, written)
        if isinstance(program, WithoutLastResult):
            return self._steps_of(program.program, read, [*written, self._new(program.program.outputs[-1].shape)])
        if isinstance(program, KernelProgram):
            return [Step.of(RolledKernel(program), (*read, *written))]
        if isinstance(program, JacobianProgram):
            columns = JacobianColumns(program)
            return [Step.of(columns, (*read, *written, *map(self._new, columns.between)))]
        known = {a.name: k for a, k in zip(program.inputs, read, strict=True)}
        steps: list[Step] = []
        if isinstance(program, FusedProgram):
            left = iter(written)
            for part in program.parts:
                steps += self._steps_of(part, [known[a.name] for a in part.inputs], [next(left) for _ in part.outputs])
            return steps
        assert isinstance(program, ComposedProgram)
        final = dict(zip(program.results, written, strict=True))
        called = {other: name for name, other in program.also}
        final |= {called[name]: place for name, place in final.items() if name in called}
        for part in program.parts:
            made = {y.name: final[y.name] if y.name in final else self._new(y.shape) for y in part.outputs}
            steps += self._steps_of(part, [known[a.name] for a in part.inputs], [*made.values()])
            known |= made
            known |= {other: known[name] for other, name in called.items() if name in known}
        return steps

    def _new(self, shape: CoreShape) -> int:
        """Return an intermediate array."""
        self._between.append(shape)
        return self._given + len(self._between) - 1

    def run(self, arrays: Sequence[Array], begin: int, stop: int) -> None:
        """Compute some states of contiguous arrays (states, *core): inputs, and results."""
        addresses = [a.ctypes.data for a in arrays]
        if not self._between:
            for step in self._steps:
                step.run(addresses, begin, stop)
            return
        between = [np.empty(shape) for shape in self._between]
        rows = [8 * math.prod(a.shape[1:]) for a in arrays]
        for i in range(begin, stop):
            places = [a + i * size for a, size in zip(addresses, rows, strict=True)] + [x.ctypes.data for x in between]
            for step in self._steps:
                step.run(places, 0, 1)

    def write_one_state(self, name: str) -> str:
        """Return a module with `int name(double **arguments)`, which contains the addresses of kernels and their constants."""
        f = Function("i32", name, ["ptr %arguments"], "external", "nounwind")
        places = [f.load("ptr", "%arguments", k) for k in range(self._given)]
        sizes = [8 * math.prod(shape) for shape in self._between]
        pointers = f.slot("ptr", max(len(s.arrays) for s in self._steps))
        failed = f.fresh("failed")
        memory = f.call("ptr", "@malloc", f"i64 {sum(sizes)}") if sizes else "null"
        if sizes:
            f.require(f.value(f"icmp ne ptr {memory}, null"), failed)
        places += [f.at("i8", memory, sum(sizes[:k])) for k in range(len(sizes))]
        for step in self._steps:
            for k, place in enumerate(step.arrays):
                f.store("ptr", places[place], pointers, k)
            function = f.cast("inttoptr", "i64", str(step.kernel.address), "ptr")
            words = f.cast("inttoptr", "i64", str(step.kernel.words), "ptr")
            ended = f.call("i64", function, f"ptr {words}", f"ptr {pointers}", "i64 0", "i64 1")
            f.require(f.equal(ended, 0), failed)
        f.call("void", "@free", f"ptr {memory}")
        f.ret("i32", "0")
        f.label(failed)
        nan = Type("double", 1).constant(math.nan)
        for result, output in zip(places[self._given - len(self.program.outputs) :], self.program.outputs, strict=False):
            with f.loop(output.size) as i:
                f.store("double", nan, result, i)
        f.call("void", "@free", f"ptr {memory}")
        f.ret("i32", "1")
        return "\n".join(["declare ptr @malloc(i64)", "declare void @free(ptr)", *f.declarations, str(f)])


def _as_arrays(constant: Any) -> Any:
    """Return nested tuples as arrays, in the same named tuple."""
    if hasattr(constant, "_fields"):
        return type(constant)(*(_as_arrays(c) for c in constant))
    return np.array(constant) if isinstance(constant, tuple) else constant
