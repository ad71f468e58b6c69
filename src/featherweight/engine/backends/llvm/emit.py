"""Straight-line LLVM IR for a trace: one state a scalar, or W states a vector.

Products that feed one sum only are fused into it by explicit `llvm.fma` calls and nothing is left to the compiler's
taste, so a state gives the same bits alone, in a vector, and at any place in it. Long traces are cut into functions of
some thousand nodes, which hand live values over in a workspace: LLVM's time grows faster than linearly in a function.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import NamedTuple

from ...operations import ADD, CONSTANT, COS, INPUT, MUL, OPERATIONS, SIN, SUB
from ...trace import Trace
from .ir import Function, Type
from .schedule import schedule
from .trig import sincos_name

PART = 1400  # nodes a function; its code should fit the first-level instruction cache


class Kernel(NamedTuple):
    """IR of the parts of a trace, `void @PART(ptr in0, ..., ptr out0, ..., ptr workspace)`, to be called in order.

    They work on one block of arrays of lanes, index-major: x[index][lane].
    """

    definitions: str
    declarations: tuple[str, ...]
    parts: tuple[str, ...]
    sincos_lanes: tuple[int, ...]  # widths of the sines and cosines that it calls
    workspace: int  # slots of one machine type each


def emit_kernel(t: Trace, type: Type, fma: bool, sizes: Sequence[int] = (), group: int = 1) -> Kernel:
    """The IR of a whole trace; without `fma` in hardware nothing is fused.

    Outputs go to arrays of the given sizes, one after the other, or all to one. A scalar kernel computes the sines and cosines
    of its inputs `group` at a time.
    """
    return _Emitter(t, type, fma, sizes, group).kernel()


class _Emitter:
    name = "fw.kernel"

    def __init__(self, t: Trace, type: Type, fma: bool, sizes: Sequence[int], group: int) -> None:
        self.trace, self.type = t, type
        self.first = [0, *accumulate(sizes)][:-1] or [0]  # output that each array begins with
        self.group = group if type.lanes == 1 else 1
        g = self.graph = t.graph
        self.fused = _fused(t) if fma else {}  # node of a sum -> the product fused into it
        gone = set(self.fused.values())
        self.turns = _turns(t)
        turned = {i for i in t.live if g.op[i] in (SIN, COS) and g.operands(i)[0] in self.turns}
        wanted = {j for i in t.live if i not in turned for j in g.operands(i)} | {
            x[0] for x in t.outputs if isinstance(x, tuple)
        }
        gone |= turned | (set(self.turns) - wanted)
        nodes = [i for i in t.live if g.op[i] not in (INPUT, CONSTANT) and i not in gone]
        self.nodes = schedule(nodes, self.reads, lambda i: OPERATIONS[g.op[i]].latency)
        self.part_of = {i: k // PART for k, i in enumerate(self.nodes)}
        self.parts = (len(self.nodes) + PART - 1) // PART
        self.slot, self.workspace = self._allocate(self._place_turns())
        self.names: dict[int, str] = {}  # of the values of nodes, in the function that is being written
        arguments = [f"ptr noalias readonly %in{k}" for k in range(len(t.inputs))]
        arguments += [f"ptr noalias %out{k}" for k in range(len(self.first))]
        self.arguments = [*arguments, "ptr noalias %ws"]
        self.functions: list[Function] = []
        self.outputs: dict[int, list[tuple[int, bool]]] = {}  # node -> the outputs that are its value, or the negative of it
        for k, x in enumerate(t.outputs):
            if isinstance(x, tuple):
                self.outputs.setdefault(x[0], []).append((k, x[1]))

    def reads(self, i: int) -> tuple[int, ...]:
        """The nodes that the instruction of node i reads."""
        product = self.fused.get(i)
        if product is None:
            return self.graph.operands(i)
        return tuple(j for j in self.graph.operands(i) if j != product) + self.graph.operands(product)

    def _place_turns(self) -> int:
        """Fixed slots for the sines and cosines of inputs, group after group: all sines, then all cosines."""
        self.turn_slot: dict[tuple[int, int], int] = {}
        for k, angle in enumerate(self.turns):
            base = 2 * (k - k % self.group) + k % self.group
            self.turn_slot[SIN, angle], self.turn_slot[COS, angle] = base, base + self.group
        return 2 * -(-len(self.turns) // self.group) * self.group

    def _allocate(self, size: int) -> tuple[dict[int, int], int]:
        """Workspace slots from `size` on for values that a later part reads; a slot is free after its last reader."""
        last: dict[int, int] = {}
        for i in self.nodes:
            for j in self.reads(i):
                if j in self.part_of:
                    last[j] = self.part_of[i]
        expiring: list[list[int]] = [[] for _ in range(self.parts + 1)]
        slot: dict[int, int] = {}
        free: list[int] = []
        previous = -1
        for i in self.nodes:
            part = self.part_of[i]
            if part != previous:
                free += [slot[j] for j in expiring[previous]] if previous >= 0 else []
                previous = part
            if last.get(i, part) > part:
                if free:
                    slot[i] = free.pop()
                else:
                    slot[i], size = size, size + 1
                expiring[last[i]].append(i)
        return slot, size

    def kernel(self) -> Kernel:
        if self.turns:
            self._write_turns()
        for part in range(self.parts):
            self._write_part(part)
        constants = [(k, x) for k, x in enumerate(self.trace.outputs) if not isinstance(x, tuple)]
        if self.outputs or constants or not self.functions:
            self._write_rest(constants)
        T, m = self.type.ir, self.type.mangled
        widths = {self.type.lanes * self.group} if self.turns else set()
        if any(self.graph.op[i] in (SIN, COS) for i in self.nodes):
            widths.add(self.type.lanes)
        intrinsics = [op.instruction for op in OPERATIONS if op.arity == 1 and op.instruction]
        declarations = (f"declare {T} @llvm.fma.{m}({T}, {T}, {T})", *(f"declare {T} @{x}.{m}({T})" for x in intrinsics))
        definitions = "\n".join(map(str, self.functions))
        names = tuple(f.name for f in self.functions)
        return Kernel(definitions, declarations, names, tuple(sorted(widths)), self.workspace)

    @contextmanager
    def _function(self, part: str) -> Iterator[Function]:
        """The function that instructions go to from now on."""
        self.f, self.names = Function("void", f"{self.name}.{part}", self.arguments), {}
        yield self.f
        self.f.ret()
        self.functions.append(self.f)

    def _write_part(self, part: int) -> None:
        """Some thousand nodes, and what comes of them: outputs, and values for later parts."""
        with self._function(str(part)):
            for i in self.nodes[part * PART : (part + 1) * PART]:
                self.names[i] = self._instruction(i)
                if i in self.slot:
                    self._store("%ws", self.slot[i], self.names[i])
                self._outputs_of(i, self.outputs.pop(i, ()))

    def _write_rest(self, constants: Sequence[tuple[int, float]]) -> None:
        """Outputs that are inputs handed through, or constants."""
        with self._function("rest"):
            for i, places in self.outputs.items():
                self._outputs_of(i, places)
            for k, x in constants:
                self._output(k, self.type.constant(x))

    def _write_turns(self) -> None:
        """Sine and cosine of inputs. In a scalar kernel, a vector of angles at a time."""
        angles = list(self.turns)
        wide = Type(self.type.precision, self.type.lanes * self.group)
        with self._function("turns") as f:
            for k in range(0, len(angles), self.group):
                group = angles[k : k + self.group]
                for angle in group:
                    if self.graph.op[angle] != INPUT:
                        self.names[angle] = self._instruction(angle)
                pair = self._sincos(wide, self._gathered(wide, group))
                for which, op in enumerate((SIN, COS)):
                    address = f.at(self.type.ir, "%ws", self.turn_slot[op, group[0]])
                    f.store(wide.ir, f.member(wide.ir, pair, which), address, align=self.type.bytes)

    def _gathered(self, wide: Type, group: Sequence[int]) -> str:
        """The values of nodes in one vector."""
        if self.group == 1:
            return self._value(group[0])
        vector = "zeroinitializer"
        for lane, i in enumerate(group):
            vector = self.f.insert(wide, vector, self._value(i), lane)
        return vector

    def _sincos(self, type: Type, angle: str) -> str:
        """Both, as a pair."""
        return self.f.call(f"{{ {type.ir}, {type.ir} }}", f"@{sincos_name(type)}", f"{type.ir} {angle}")

    def _load(self, base: str, index: int) -> str:
        return self.f.load(self.type.ir, base, index, self.type.bytes)

    def _store(self, base: str, index: int, value: str) -> None:
        self.f.store(self.type.ir, value, base, index, self.type.bytes)

    def _outputs_of(self, i: int, places: Iterable[tuple[int, bool]]) -> None:
        for k, negative in places:
            self._output(k, self._negated(i) if negative else self._value(i))

    def _output(self, k: int, value: str) -> None:
        array = bisect_right(self.first, k) - 1
        self._store(f"%out{array}", k - self.first[array], value)

    def _value(self, i: int) -> str:
        """The name of node i in this part, loaded at its first use."""
        name = self.names.get(i)
        if name is None:
            g = self.graph
            if g.op[i] == CONSTANT:
                name = self.type.constant(g.a[i])
            elif g.op[i] == INPUT:
                name = self._load(f"%in{int(g.a[i])}", g.b[i])
            elif i in self.slot:
                name = self._load("%ws", self.slot[i])
            else:
                name = self._load("%ws", self.turn_slot[g.op[i], g.operands(i)[0]])
            self.names[i] = name
        return name

    def _negated(self, i: int) -> str:
        g = self.graph
        if g.op[i] == CONSTANT:
            return self.type.constant(-g.a[i])
        return self.f.value(f"fneg {self.type.ir} {self._value(i)}")

    def _instruction(self, i: int) -> str:
        """The value of node i, computed."""
        g, T = self.graph, self.type.ir
        op = g.op[i]
        if op in (SIN, COS):
            return self._sine_or_cosine(i)
        product = self.fused.get(i)
        if product is not None:
            return self._fused_sum(i, product)
        instruction = OPERATIONS[op].instruction
        if OPERATIONS[op].arity == 1:
            return self.f.value(f"call {T} @{instruction}.{self.type.mangled}({T} {self._value(g.operands(i)[0])})")
        a, b = g.operands(i)
        return self.f.value(f"{instruction} {T} {self._value(a)}, {self._value(b)}")

    def _fused_sum(self, i: int, product: int) -> str:
        g, T = self.graph, self.type.ir
        x, y = g.operands(product)
        a, b = g.operands(i)
        if product == a:
            addend = self._value(b) if g.op[i] == ADD else self._negated(b)
            left = self._value(x)
        else:
            addend = self._value(a)
            left = self._value(x) if g.op[i] == ADD else self._negated(x)
        return self.f.value(f"call {T} @llvm.fma.{self.type.mangled}({T} {left}, {T} {self._value(y)}, {T} {addend})")

    def _sine_or_cosine(self, i: int) -> str:
        """Of a computed angle: one call for both, made where the first of them is met in a function."""
        g = self.graph
        angle = g.operands(i)[0]
        pair = self.names.get(-1 - angle)
        if pair is None:
            pair = self.names[-1 - angle] = self._sincos(self.type, self._value(angle))
        return self.f.member(self.type.ir, pair, 0 if g.op[i] == SIN else 1)


def _turns(t: Trace) -> dict[int, None]:
    """The inputs, and inputs with a constant added, whose sine or cosine is wanted, in order."""
    g = t.graph

    def early(i: int) -> bool:
        shifted = g.op[i] in (ADD, SUB) and sorted(g.op[j] for j in g.operands(i)) == [INPUT, CONSTANT]
        return g.op[i] == INPUT or shifted

    angles = (g.operands(i)[0] for i in t.live if g.op[i] in (SIN, COS))
    return {angle: None for angle in angles if early(angle)}


def _fused(t: Trace) -> dict[int, int]:
    """For each sum that takes a product nobody else uses: that product."""
    g = t.graph
    uses: dict[int, int] = {}
    for i in t.live:
        for j in g.operands(i):
            uses[j] = uses.get(j, 0) + 1
    for x in t.outputs:
        if isinstance(x, tuple):
            uses[x[0]] = uses.get(x[0], 0) + 1
    fused: dict[int, int] = {}
    for i in t.live:
        if g.op[i] in (ADD, SUB):
            for j in reversed(g.operands(i)):
                if g.op[j] == MUL and uses[j] == 1:
                    fused[i] = j
                    break
    return fused
