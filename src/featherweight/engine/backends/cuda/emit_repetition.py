"""A kernel for many steps: a thread takes one state on, in its own memory, and writes one in so many to the results.

Programs are the functions that `emit_thread` writes, called one after the other, so that a step has the bits of these programs
called one by one. Their code is there once, however many rounds a step has. What rounds hand on lies in two places in turn:
nothing is written where it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from ...trace import Trace
from ..llvm.emit import Kernel
from ..llvm.ir import Function, Type, pointer_type
from .emit_thread import ATTRIBUTES, OUTLINED, emit_thread
from .kernel import ENTRY, TOGETHER, memory_of_thread, sincos_of_thread
from .repetition import Repetition, Stage, written_before
from .target import CONSTANTS, GLOBAL, OWN, SHARED, Target

THREADS = 32  # of a block


def emit_repetition(r: Repetition, traces: Sequence[Trace], type: Type, keeps: bool, target: Target) -> str:
    """A module with the kernel, for the traces of its stages.

    The kernel's parameters are all of eight bytes: how many states there are, how many are written after the first of each, and
    after how many steps each; then for each array of the state, each input and each result (an array of the state) the address
    of its first row and the elements from row to row, 0 for one row that serves all. Where the address of an array of the state
    or of an input is 0, it is zero. Rows of inputs hold one array for each step, rows of results one for each state written.
    """
    return _Steps(r, traces, type, keeps, target).module()


class _Steps:
    """The code around the stages."""

    def __init__(self, r: Repetition, traces: Sequence[Trace], type: Type, keeps: bool, target: Target) -> None:
        self.r, self.type, self.keeps, self.target = r, type, keeps, target
        self.tables = {x.name: x for x in r.tables}
        self.kernels = [self._emitted(k, t) for k, t in enumerate(traces)]
        sizes = [r.sizes[name] * (2 if name in r.carried else 1) for name in r.own]
        workspace = max(k.workspace for k in self.kernels)
        self.place = dict(zip(r.own, accumulate(sizes, initial=workspace), strict=False))
        self.room = workspace + sum(sizes)
        self.rows = [*(f"from_{name}" for name in r.state), *(f"in_{x.name}" for x in r.inputs), *(f"to_{x}" for x in r.state)]
        self.parameters = ["i64 %states", "i64 %kept", "i64 %every"]
        for name in self.rows:
            self.parameters += [f"{pointer_type(GLOBAL)} %{name}", f"i64 %step_{name}"]

    def _space(self, name: str) -> int:
        return CONSTANTS if name in self.tables else OWN

    def _emitted(self, k: int, t: Trace) -> Kernel:
        stage = self.r.stages[k]
        spaces = [self._space(name) for name in (*stage.reads, *stage.writes)]
        sizes = [self.r.sizes[name] for name in stage.writes]
        return emit_thread(t, self.type, sizes, spaces, self.keeps, f"fw.stage{k}", stage.fused)

    def module(self) -> str:
        declarations = dict.fromkeys([*(d for k in self.kernels for d in k.declarations), *self.target.declarations])
        functions = [d for k in self.kernels for d in k.definitions]
        if any(k.sincos_lanes for k in self.kernels):
            more, sincos = sincos_of_thread(self.type)
            declarations |= dict.fromkeys(more)
            functions.append(sincos)
        head = f'target triple = "{self.target.triple}"'
        code = [*functions, str(self._computing()), str(self._kernel())]
        return "\n".join([head, *declarations, *self._constants(), *code, ATTRIBUTES])

    def _constants(self) -> Iterator[str]:
        for name, table in self.tables.items():
            values = [x for row in table.rows for x in row]
            items = ", ".join(f"{self.type.ir} {self.type.constant(x)}" for x in values)
            kind = f"[{len(values)} x {self.type.ir}]"
            yield f"@fw.{name} = internal addrspace({CONSTANTS}) constant {kind} [{items}], align {self.type.bytes}"

    def _kernel(self) -> Function:
        """What the device starts."""
        f = Function("void", ENTRY, self.parameters, self.target.convention, OUTLINED)
        values = [f"i32 {f.value(x)}" for x in (self.target.thread, self.target.block)]
        f.call("void", "@fw_compute", *values, f"{pointer_type(SHARED)} null", *self.parameters)
        f.ret()
        return f

    def _computing(self) -> Function:
        """One state. Threads beyond the last state compute that again."""
        r = self.r
        arguments = ["i32 %thread", "i32 %block", f"{pointer_type(SHARED)} %shared", *self.parameters]
        self.f = f = Function("void", "fw_compute", arguments)
        self.own = memory_of_thread(f, self.room * self.type.bytes, self.keeps, self.target)
        thread, block = (f.cast("zext", "i32", x, "i64") for x in ("%thread", "%block"))
        row = f.least(f.add(f.mul(block, THREADS), thread), f.sub("%states", 1))
        self.row = {x: f.at(self.type.ir, f"%{x}", f.mul(row, f"%step_{x}"), GLOBAL) for x in self.rows}
        self._begin()
        self._write_results("0")
        with f.loop("%kept") as some:
            with f.rounds("%every") as more:
                step = f.add(f.mul(some, "%every"), more)
                self._read_inputs(step)
                self._step(f.mul(step, r.rounds) if r.rounds % 2 else "0")
            self._write_results(f.add(some, 1), f.mul(f.mul(f.add(some, 1), "%every"), r.rounds) if r.rounds % 2 else "0")
        f.ret()
        return f

    def _at(self, name: str, turn: str = "0", after: bool = False) -> str:
        """Where an array lies in the thread's own memory in a round: as it was before it, or is after it."""
        f, place = self.f, f"{self.place[name]}"
        if name in self.r.carried:
            n = self.r.sizes[name]
            odd = "0" if turn == "0" else f.binary("and", "i64", turn, 1)
            if odd != "0":
                place = f.add(place, f.mul(f.sub(1, odd) if after else odd, n))
            elif after:
                place = f"{self.place[name] + n}"
        return f.at(self.type.ir, self.own, place, OWN)

    def _copy(self, source: str, goal: str, n: int, spaces: tuple[int, int]) -> None:
        """Elements, of which some are on their way at a time."""
        T, f = self.type, self.f
        for begin in range(0, n, TOGETHER):
            these = range(begin, min(begin + TOGETHER, n))
            values = [f.load(T.ir, source, k, T.bytes, space=spaces[0]) for k in these]
            for k, value in zip(these, values, strict=True):
                f.store(T.ir, value, goal, k, T.bytes, spaces[1])

    def _begin(self) -> None:
        """The first state, and inputs that are not given."""
        f = self.f
        for name, source in [*((x, f"from_{x}") for x in self.r.state), *((x.name, f"in_{x.name}") for x in self.r.inputs)]:
            goal, n = self._at(name), self.r.sizes[name]
            with f.choice(self._is_none(source)) as (none, given):
                with none, f.loop(n) as k:
                    f.store(self.type.ir, self.type.constant(0.0), goal, k, self.type.bytes, OWN)
                with given:
                    if name in self.r.state:
                        self._copy(self.row[source], goal, n, (GLOBAL, OWN))

    def _is_none(self, source: str) -> str:
        return self.f.equal(f"%{source}", "null", pointer_type(GLOBAL))

    def _read_inputs(self, step: str) -> None:
        """Those of a step that are given, within their bounds; NaN stays what it is."""
        f, T = self.f, self.type
        for x in self.r.inputs:
            goal, n = self._at(x.name), len(x.low)
            with f.choice(self._is_none(f"in_{x.name}")) as (none, given):
                with none:
                    pass
                with given:
                    source = f.at(T.ir, self.row[f"in_{x.name}"], f.mul(step, n), GLOBAL)
                    for begin in range(0, n, TOGETHER):
                        these = range(begin, min(begin + TOGETHER, n))
                        values = [f.load(T.ir, source, k, T.bytes, space=GLOBAL) for k in these]
                        for k, value in zip(these, values, strict=True):
                            f.store(T.ir, self._bounded(value, x.low[k], x.high[k]), goal, k, T.bytes, OWN)

    def _bounded(self, value: str, low: float, high: float) -> str:
        for beyond, bound in (("olt", low), ("ogt", high)):
            if abs(bound) != float("inf"):
                limit = self.type.constant(bound)
                over = self.f.binary(f"fcmp {beyond}", self.type.ir, value, limit)
                value = self.f.select(over, limit, value, self.type.ir)
        return value

    def _write_results(self, kept: str, turn: str = "0") -> None:
        for name in self.r.state:
            n = self.r.sizes[name]
            goal = self.f.at(self.type.ir, self.row[f"to_{name}"], self.f.mul(kept, n), GLOBAL)
            self._copy(self._at(name, turn), goal, n, (OWN, GLOBAL))

    def _step(self, turn: str) -> None:
        """`turn` is the number of rounds before it."""
        r, f = self.r, self.f
        for k, stage in enumerate(r.first):
            self._call(k, [*(self._where(x, turn, "0") for x in stage.reads), *(self._at(x, turn) for x in stage.writes)])
        if r.rounds == 1:
            self._round(turn, "0")
        else:
            with f.rounds(r.rounds) as number:
                self._round(number if turn == "0" else f.add(turn, number), number)

    def _round(self, turn: str, number: str) -> None:
        for k, stage in enumerate(self.r.again):
            written = written_before(self.r.again, k)
            reads = [self._where(x, turn, number, x in written) for x in stage.reads]
            self._call(len(self.r.first) + k, [*reads, *(self._at(x, turn, True) for x in stage.writes)])

    def _where(self, name: str, turn: str, number: str, after: bool = False) -> str:
        table = self.tables.get(name)
        if table is None:
            return self._at(name, turn, after)
        row = self.f.mul(number, self.r.sizes[name]) if len(table.rows) > 1 else "0"
        return self.f.at(self.type.ir, f"@fw.{name}", row, CONSTANTS)

    def _call(self, k: int, places: Sequence[str]) -> None:
        stage: Stage = self.r.stages[k]
        names = (*stage.reads, *stage.writes)
        pointers = [f"{pointer_type(self._space(x))} {place}" for x, place in zip(names, places, strict=True)]
        for part in self.kernels[k].parts:
            self.f.call("void", f"@{part}", *pointers, f"{pointer_type(OWN)} {self.own}")
