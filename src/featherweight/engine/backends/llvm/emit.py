"""Straight-line LLVM IR for a trace: one state a scalar, or W states a vector.

Products that feed one sum only are fused into it by explicit `llvm.fma` calls and nothing is left to the compiler's
taste, so a state gives the same bits alone, in a vector, and at any place in it. Long traces are cut into functions of
some thousand nodes, which hand live values over in a workspace: LLVM's time grows faster than linearly in a function.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import NamedTuple

from ...operations import ADD, CONSTANT, COS, INPUT, MUL, OPERATIONS, SIN, SUB
from ...trace import Trace
from .ir import Function, Type, pointer_type
from .registers import Registers, registers
from .schedule import schedule
from .trig import sincos_name

FEW_ZEROS = 32  # outputs that are written one by one
PART = 1400  # nodes a function; its code should fit the first-level instruction cache
SHORT_PART, LONG = 500, 40_000  # and in code of so many nodes: LLVM's time, and not much else, depends on it


class Kernel(NamedTuple):
    """IR of the parts of a trace, `void @PART(ptr in0, ..., ptr out0, ..., ptr workspace)`, to be called in order.

    They work on one block of arrays of lanes, index-major: x[index][lane].
    """

    definitions: tuple[str, ...]  # of the parts
    declarations: tuple[str, ...]
    parts: tuple[str, ...]
    sincos_lanes: tuple[int, ...]  # widths of the sines and cosines that it calls
    workspace: int  # slots of one machine type each


def emit_kernel(t: Trace, type: Type, fma: bool, sizes: Sequence[int] = (), group: int = 1) -> Kernel:
    """The IR of a whole trace; without `fma` in hardware nothing is fused.

    Outputs go to arrays of the given sizes, one after the other, or all to one. A scalar kernel computes the sines and cosines
    of its inputs `group` at a time.
    """
    return Emitter(t, type, fma, sizes, group).kernel()


class Emitter:
    """What a kernel is written by."""

    name, linkage = "fw.kernel", "hidden"
    freestanding = False  # whether it calls no library, not even for zeros

    def __init__(self, t: Trace, type: Type, fma: bool, sizes: Sequence[int], group: int) -> None:
        self.trace, self.type = t, type
        self.first = [0, *accumulate(sizes)][:-1] or [0]  # output that each array begins with
        self.group = group if type.lanes == 1 else 1
        g = self.graph = t.graph
        self.fused: dict[int, int] = {}  # node of a sum -> the product fused into it
        uses = self._uses()
        if fma:
            self.fused = _fused(t, uses)
        gone = set(self.fused.values())
        self.turns = _turns(t)
        turned = [i for i in t.live if g.op[i] in (SIN, COS) and g.operands(i)[0] in self.turns]
        gone.update(turned)
        uses.subtract(g.operands(i)[0] for i in turned)
        gone.update(i for i in self.turns if not uses[i])
        nodes = [i for i in t.live if self._is_computed(i) and i not in gone]
        self.nodes = self._ordered(nodes)
        self.part = self._part_size()
        self.part_of = {i: k // self.part for k, i in enumerate(self.nodes)}
        self.parts = -(-len(self.nodes) // self.part)
        self.slot, self.workspace = self._slots()
        self.registers = registers(type.item_bytes * max(type.lanes, group))
        pointers = [f"%in{k}" for k in range(len(t.inputs))] + [f"%out{k}" for k in range(len(self.first))] + ["%ws"]
        readonly = ["readonly "] * len(t.inputs) + [""] * len(pointers)
        kinds = [pointer_type(self._space(p)) for p in pointers]
        self.arguments = [f"{kind} noalias {r}{p}" for kind, p, r in zip(kinds, pointers, readonly, strict=False)]
        self.functions: list[Function] = []
        self.outputs: dict[int, list[tuple[int, bool]]] = {}  # node -> the outputs that are its value, or the negative of it
        for k, x in enumerate(t.outputs):
            if isinstance(x, tuple):
                self.outputs.setdefault(x[0], []).append((k, x[1]))

    def reads(self, i: int) -> tuple[int, ...]:
        """The nodes that the instruction of node i reads."""
        product = self.fused.get(i)
        if product is None:
            return self.operands(i)
        return tuple(j for j in self.graph.operands(i) if j != product) + self.graph.operands(product)

    def _ordered(self, nodes: Sequence[int]) -> list[int]:
        """Nodes in the order in which they are computed."""
        return schedule(nodes, self.reads, lambda i: OPERATIONS[self.graph.op[i]].latency)

    def _part_size(self) -> int:
        """Nodes of a function."""
        return PART if len(self.nodes) < LONG else SHORT_PART

    def _new_function(self, part: str) -> Function:
        return Function("void", f"{self.name}.{part}", self.arguments, self.linkage)

    def _space(self, base: str) -> int:
        """The address space that a pointer leads to."""
        return 0

    def _uses(self) -> Counter[int]:
        """How often each node is an operand or an output."""
        uses = Counter(j for i in self.trace.live for j in self.operands(i))
        uses.update(x[0] for x in self.trace.outputs if isinstance(x, tuple))
        return uses

    def operands(self, i: int) -> tuple[int, ...]:
        return self.graph.operands(i)

    def _is_computed(self, i: int) -> bool:
        """Whether an instruction gives the value of a node."""
        return self.graph.op[i] not in (INPUT, CONSTANT)

    def type_of(self, i: int) -> Type:
        return self.type

    @property
    def result_type(self) -> Type:
        return self.type

    def _slots(self) -> tuple[dict[int, int], int]:
        """Workspace slots of values that a later part reads, and how many slots there are."""
        return self._allocate(self.nodes, self._place_turns())

    def _place_turns(self) -> int:
        """Fixed slots for the sines and cosines of inputs, group after group: all sines, then all cosines."""
        self.turn_slot: dict[tuple[int, int], int] = {}
        for k, angle in enumerate(self.turns):
            base = 2 * (k - k % self.group) + k % self.group
            self.turn_slot[SIN, angle], self.turn_slot[COS, angle] = base, base + self.group
        return 2 * -(-len(self.turns) // self.group) * self.group

    def _allocate(self, nodes: Iterable[int], size: int) -> tuple[dict[int, int], int]:
        """Slots from `size` on for those of `nodes` that a later part reads; a slot is free after its last reader."""
        last: dict[int, int] = {}
        for i in self.nodes:
            for j in self.reads(i):
                if j in self.part_of:
                    last[j] = self.part_of[i]
        expiring: list[list[int]] = [[] for _ in range(self.parts + 1)]
        slot: dict[int, int] = {}
        free: list[int] = []
        previous = -1
        for i in nodes:
            part = self.part_of[i]
            if part != previous:
                free += [slot[j] for p in range(max(previous, 0), part) for j in expiring[p]]
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
        zeros = {k for k, x in constants if x == 0.0 and math.copysign(1.0, x) > 0.0}
        if len(zeros) > FEW_ZEROS:
            self._write_zeros(zeros)
            constants = [(k, x) for k, x in constants if k not in zeros]
        if self.outputs or constants or not self.functions:
            self._write_rest(constants)
        widths = {self.type.lanes * self.group} if self.turns else set()
        if any(self.graph.op[i] in (SIN, COS) for i in self.nodes):
            widths.add(self.type.lanes)
        definitions = tuple(map(str, self.functions))
        names = tuple(f.name for f in self.functions)
        declarations = dict.fromkeys(d for f in self.functions for d in f.declarations)
        return Kernel(definitions, tuple(declarations), names, tuple(sorted(widths)), self.workspace)

    @contextmanager
    def _function(self, part: str) -> Iterator[Function]:
        """The function that instructions go to from now on."""
        self.f, self.held = self._new_function(part), Registers()
        self.pairs: dict[int, str] = {}  # sines and cosines of nodes
        self.rooms: dict[int, str] = {}  # nodes whose value lies on the stack, and what is free there
        self.free_rooms: dict[Type, list[str]] = defaultdict(list)
        yield self.f
        self.f.ret()
        self.functions.append(self.f)

    def _write_part(self, part: int) -> None:
        """Some thousand nodes, and what comes of them: outputs, and values for later parts."""
        with self._function(str(part)):
            nodes = self.nodes[part * self.part : (part + 1) * self.part]
            self.held = Registers([self.reads(i) for i in nodes], self.registers)
            for k, i in enumerate(nodes):
                self.held.names[i] = self._instruction(i)
                if i in self.slot:
                    self._store("%ws", self.slot[i], self.held.names[i], self.type_of(i))
                self._outputs_of(i, self.outputs.pop(i, ()))
                self._let_go(i, k)

    def _let_go(self, i: int, k: int) -> None:
        """After instruction k, of node i: of what is read no more, and of what registers do not hold."""
        for j in self.held.read(k, (i, *self.reads(i))):
            room = self.rooms.pop(j, None)
            if room:
                self.free_rooms[self.type_of(j)].append(room)
        for j, name in self.held.let_go():
            in_memory = j not in self.part_of or j in self.slot or j in self.rooms
            self.held.loaded.add(j)
            if not in_memory:
                type = self.type_of(j)
                free = self.free_rooms[type]
                self.rooms[j] = room = free.pop() if free else self._room(type)
                self._store(room, 0, name, type)

    def _room(self, type: Type) -> str:
        """Memory for a value that registers do not hold, in this function."""
        return self.f.slot(type.ir, 1, type.bytes)

    def _write_rest(self, constants: Sequence[tuple[int, float]]) -> None:
        """Outputs that are inputs handed through, or constants."""
        with self._function("rest"):
            for i, places in self.outputs.items():
                self._outputs_of(i, places)
            for k, x in constants:
                self._output(k, self.result_type.constant(x))

    def _write_zeros(self, zeros: Iterable[int]) -> None:
        """Arrays with outputs that are zero, before all others are written: LLVM thinks for hours about many stores of one."""
        with self._function("zeros") as f:
            for array, items in sorted(self._arrays_of(zeros).items()):
                if self.freestanding:
                    with f.loop(items) as index:
                        self._store(f"%out{array}", index, self.type.constant(0.0), self.type)
                else:
                    f.clear_bytes(f"%out{array}", items * self.type.bytes)
        self.functions.insert(0, self.functions.pop())

    def _arrays_of(self, outputs: Iterable[int]) -> dict[int, int]:
        """The arrays that outputs go to, and how many there go to each."""
        arrays = {bisect_right(self.first, k) - 1 for k in outputs}
        ends = [*self.first[1:], len(self.trace.outputs)]
        return {array: ends[array] - self.first[array] for array in arrays}

    def _write_turns(self) -> None:
        """Sine and cosine of inputs. In a scalar kernel, a vector of angles at a time."""
        angles = list(self.turns)
        wide = Type(self.type.precision, self.type.lanes * self.group)
        with self._function("turns") as f:
            for k in range(0, len(angles), self.group):
                group = angles[k : k + self.group]
                for angle in group:
                    if self.graph.op[angle] != INPUT:
                        self.held.names[angle] = self._instruction(angle)
                pair = self._sincos(wide, self._gathered(wide, group))
                for which, op in enumerate((SIN, COS)):
                    space = self._space("%ws")
                    address = f.at(self.type.ir, "%ws", self.turn_slot[op, group[0]], space)
                    f.store(wide.ir, f.member(wide.ir, pair, which), address, 0, self.type.bytes, space)

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

    def _load(self, base: str, index: int, type: Type, again: bool) -> str:
        return self.f.load(type.ir, base, index, type.bytes, again, self._space(base))

    def _store(self, base: str, index: int | str, value: str, type: Type) -> None:
        self.f.store(type.ir, value, base, index, type.bytes, self._space(base))

    def _outputs_of(self, i: int, places: Iterable[tuple[int, bool]]) -> None:
        for k, negative in places:
            self._output(k, self._negated(i, self.type_of(i)) if negative else self._value(i))

    def _output(self, k: int, value: str) -> None:
        array = bisect_right(self.first, k) - 1
        self._store(f"%out{array}", k - self.first[array], value, self.type)

    def _value(self, i: int) -> str:
        """The value of node i in this function: a constant, the name of an instruction, or loaded."""
        if self.graph.op[i] == CONSTANT:
            return self.type.constant(self.graph.a[i])
        name = self.held.names.get(i)
        if name is None:
            name = self.held.names[i] = self._load(*self._home(i), self.type_of(i), i in self.held.loaded)
            self.held.loaded.add(i)
        return name

    def _home(self, i: int) -> tuple[str, int]:
        """Where in memory the value of a node lies."""
        g = self.graph
        if i in self.rooms:
            return self.rooms[i], 0
        if i in self.slot:
            return "%ws", self.slot[i]
        if g.op[i] == INPUT:
            return f"%in{int(g.a[i])}", g.b[i]
        return "%ws", self.turn_slot[g.op[i], g.operands(i)[0]]

    def _operand(self, i: int, type: Type) -> str:
        """The value of node i for an instruction of a type."""
        return self._value(i)

    def _negated(self, i: int, type: Type) -> str:
        g = self.graph
        if g.op[i] == CONSTANT:
            return type.constant(-g.a[i])
        return self.f.value(f"fneg {type.ir} {self._operand(i, type)}")

    def _instruction(self, i: int) -> str:
        """The value of node i, computed."""
        g = self.graph
        op, type = g.op[i], self.type_of(i)
        if op in (SIN, COS):
            return self._sine_or_cosine(i)
        product = self.fused.get(i)
        if product is not None:
            return self._fused_sum(i, product, type)
        operands = [self._operand(j, type) for j in g.operands(i)]
        if OPERATIONS[op].arity == 1:
            return self.f.intrinsic(OPERATIONS[op].instruction, type, *operands)
        return self.f.binary(OPERATIONS[op].instruction, type.ir, *operands)

    def _fused_sum(self, i: int, product: int, type: Type) -> str:
        g = self.graph
        x, y = g.operands(product)
        a, b = g.operands(i)
        if product == a:
            addend = self._operand(b, type) if g.op[i] == ADD else self._negated(b, type)
            left = self._operand(x, type)
        else:
            addend = self._operand(a, type)
            left = self._operand(x, type) if g.op[i] == ADD else self._negated(x, type)
        return self.f.intrinsic("fma", type, left, self._operand(y, type), addend)

    def _sine_or_cosine(self, i: int) -> str:
        """Of a computed angle: one call for both, made where the first of them is met in a function."""
        g = self.graph
        angle = g.operands(i)[0]
        pair = self.pairs.get(angle)
        if pair is None:
            pair = self.pairs[angle] = self._sincos(self.type, self._value(angle))
        return self.f.member(self.type.ir, pair, 0 if g.op[i] == SIN else 1)


def _turns(t: Trace) -> dict[int, None]:
    """The inputs, and inputs with a constant added, whose sine or cosine is wanted, in order."""
    g = t.graph

    def early(i: int) -> bool:
        shifted = g.op[i] in (ADD, SUB) and sorted(g.op[j] for j in g.operands(i)) == [INPUT, CONSTANT]
        return g.op[i] == INPUT or shifted

    angles = (g.operands(i)[0] for i in t.live if g.op[i] in (SIN, COS))
    return {angle: None for angle in angles if early(angle)}


def _fused(t: Trace, uses: Counter[int]) -> dict[int, int]:
    """For each sum that takes a product nobody else uses: that product."""
    g = t.graph
    fused: dict[int, int] = {}
    for i in t.live:
        if g.op[i] in (ADD, SUB):
            for j in reversed(g.operands(i)):
                if g.op[j] == MUL and uses[j] == 1:
                    fused[i] = j
                    break
    return fused
