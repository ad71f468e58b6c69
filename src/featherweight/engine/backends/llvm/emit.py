"""Straight-line LLVM IR for a trace: one state a scalar, or W states a vector.

Products that feed one sum only are fused into it by explicit `llvm.fma` calls and nothing is left to the compiler's
taste, so a state gives the same bits alone, in a vector, and at any place in it. Long traces are cut into functions of
some thousand nodes, which hand live values over in a workspace: LLVM's time grows faster than linearly in a function.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from ...operations import ADD, CONSTANT, COS, INPUT, MUL, OPERATIONS, SIN, SUB
from ...trace import Trace
from .ir import Type
from .schedule import schedule

PART = 1400  # nodes a function; its code should fit the first-level instruction cache


class Kernel(NamedTuple):
    """IR of the parts of a trace, `void @PART(ptr in0, ..., ptr out0, ..., ptr workspace)`, to be called in order.

    They work on one block of arrays of lanes, index-major: x[index][lane].
    """

    definitions: str
    declarations: tuple[str, ...]
    parts: tuple[str, ...]
    sincos_lanes: tuple[int, ...]  # widths of `@fw.sincos.MANGLED` that it calls
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
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        arguments = [f"ptr noalias readonly %in{k}" for k in range(len(t.inputs))]
        arguments += [f"ptr noalias %out{k}" for k in range(len(self.first))]
        self.arguments = ", ".join([*arguments, "ptr noalias %ws"])

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
        g = self.graph
        outputs: dict[int, list[tuple[int, bool]]] = {}
        for k, x in enumerate(self.trace.outputs):
            if isinstance(x, tuple):
                outputs.setdefault(x[0], []).append((k, x[1]))
        text = self._function("turns", self._turn_lines())
        for part in range(self.parts):
            self.lines, self.names = [], {}
            for i in self.nodes[part * PART : (part + 1) * PART]:
                self._instruction(i)
                if i in self.slot:
                    self._store("%ws", self.slot[i], self.names[i])
                for k, negative in outputs.pop(i, ()):
                    self._output(k, self._negated(i) if negative else self._value(i))
            text += self._function(str(part), self.lines)
        self.lines, self.names = [], {}
        for i, places in outputs.items():  # inputs handed through
            for k, negative in places:
                self._output(k, self._negated(i) if negative else self._value(i))
        for k, x in enumerate(self.trace.outputs):
            if not isinstance(x, tuple):
                self._output(k, self.type.constant(x))
        text += self._function("rest", self.lines)
        parts = ["turns"] * bool(self.turns) + [str(k) for k in range(self.parts)]
        parts += ["rest"] * (bool(self.lines) or not parts)
        T, m = self.type.ir, self.type.mangled
        widths = {self.type.lanes * self.group} if self.turns else set()
        if any(g.op[i] in (SIN, COS) for i in self.nodes):
            widths.add(self.type.lanes)
        intrinsics = [op.instruction for op in OPERATIONS if op.arity == 1 and op.instruction]
        declarations = (f"declare {T} @llvm.fma.{m}({T}, {T}, {T})", *(f"declare {T} @{x}.{m}({T})" for x in intrinsics))
        names = tuple(f"{self.name}.{part}" for part in parts)
        return Kernel("\n".join(text), declarations, names, tuple(sorted(widths)), self.workspace)

    def _function(self, part: str, lines: list[str]) -> list[str]:
        return [f"define internal void @{self.name}.{part}({self.arguments}) #0 {{", *lines, "  ret void", "}"]

    def _turn_lines(self) -> list[str]:
        """Sine and cosine of inputs. In a scalar kernel, a vector of angles at a time."""
        self.lines, self.names = [], {}
        angles = list(self.turns)
        wide = Type(self.type.precision, self.type.lanes * self.group)
        T = wide.ir
        for k in range(0, len(angles), self.group):
            group = angles[k : k + self.group]
            for angle in group:
                if self.graph.op[angle] != INPUT:
                    self._instruction(angle)
            value = self._value(group[0])
            if self.group > 1:
                previous = "zeroinitializer"
                for lane, angle in enumerate(group):
                    value = self._value(angle)
                    name = f"%g{k}.{lane}"
                    self.lines.append(f"  {name} = insertelement {T} {previous}, {self.type.ir} {value}, i64 {lane}")
                    previous = value = name
            self.lines.append(f"  %t{k} = call {{ {T}, {T} }} @fw.sincos.{wide.mangled}({T} {value})")
            for which, op in enumerate((SIN, COS)):
                self.lines.append(f"  %t{k}.{which} = extractvalue {{ {T}, {T} }} %t{k}, {which}")
                address = self._address("%ws", self.turn_slot[op, group[0]])
                self.lines.append(f"  store {T} %t{k}.{which}, ptr {address}, align {self._align}")
        return self.lines

    def _address(self, base: str, index: int) -> str:
        if index == 0:
            return base
        name = f"%p{len(self.lines)}"
        self.lines.append(f"  {name} = getelementptr {self.type.ir}, ptr {base}, i64 {index}")
        return name

    def _load(self, base: str, index: int) -> str:
        address = self._address(base, index)
        name = f"%l{len(self.lines)}"
        self.lines.append(f"  {name} = load {self.type.ir}, ptr {address}, align {self._align}")
        return name

    def _store(self, base: str, index: int, value: str) -> None:
        address = self._address(base, index)
        self.lines.append(f"  store {self.type.ir} {value}, ptr {address}, align {self._align}")

    @property
    def _align(self) -> int:
        return self.type.item_bytes * self.type.lanes

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
        value = self._value(i)
        name = f"%n{len(self.lines)}"
        self.lines.append(f"  {name} = fneg {self.type.ir} {value}")
        return name

    def _instruction(self, i: int) -> None:
        g, T = self.graph, self.type.ir
        op = g.op[i]
        if op in (SIN, COS):
            self._sincos(i)
            return
        product = self.fused.get(i)
        if product is not None:
            x, y = g.operands(product)
            a, b = g.operands(i)
            if product == a:
                addend = self._value(b) if op == ADD else self._negated(b)
                left = self._value(x)
            else:
                addend = self._value(a)
                left = self._value(x) if op == ADD else self._negated(x)
            code = f"call {T} @llvm.fma.{self.type.mangled}({T} {left}, {T} {self._value(y)}, {T} {addend})"
        elif OPERATIONS[op].arity == 1:
            code = f"call {T} @{OPERATIONS[op].instruction}.{self.type.mangled}({T} {self._value(g.operands(i)[0])})"
        else:
            a, b = g.operands(i)
            code = f"{OPERATIONS[op].instruction} {T} {self._value(a)}, {self._value(b)}"
        self.names[i] = f"%v{i}"
        self.lines.append(f"  %v{i} = {code}")

    def _sincos(self, i: int) -> None:
        """Sine and cosine of a computed angle are one call, made where the first of them is met in a part."""
        g, T = self.graph, self.type.ir
        angle = g.operands(i)[0]
        pair = self.names.get(-1 - angle)
        if pair is None:
            value = self._value(angle)
            pair = self.names[-1 - angle] = f"%t{i}"
            self.lines.append(f"  {pair} = call {{ {T}, {T} }} @fw.sincos.{self.type.mangled}({T} {value})")
        self.names[i] = f"%v{i}"
        self.lines.append(f"  %v{i} = extractvalue {{ {T}, {T} }} {pair}, {0 if g.op[i] == SIN else 1}")


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
